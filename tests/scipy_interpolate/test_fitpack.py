"""FITPACK's splines: SciPy's values, and derivatives beside differences of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_interpolate = pytest.importorskip("scipy.interpolate")

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 7, 12))
Y, W = np.sin(1.3 * X) + 0.1 * RNG.normal(size=12), RNG.uniform(0.5, 2, 12)
Q, AROUND = np.linspace(X[0] + 0.1, X[-1] - 0.1, 7), np.array([X[0] - 1, 3.0, X[-1] + 0.5])
KNOTS = np.r_[(0,) * 4, 3, 4, (8,) * 4]

CASES: dict[str, Callable[[Any], Callable[..., Any]]] = {
    **{
        f"splrep-{k}": lambda s, k=k: lambda y, x, w: s.splev(Q, s.splrep(x, y, k=k))
        for k in (2, 3, 4)
    },
    "splrep-knots": lambda s: lambda y, x, w: s.splev(Q, s.splrep(x, y, w, t=[2.5, 4.5])),
    "splrep-weights": lambda s: lambda y, x, w: s.splrep(x, y, w, s=0)[1],
    "splint": lambda s: lambda y, x, w: s.splint(-1, w[0], s.splrep(x, y)),
    "spalde": lambda s: lambda y, x, w: s.spalde(2.2, s.splrep(x, y)),
    "univariate": lambda s: lambda y, x, w: s.UnivariateSpline(x, y, s=0)(Q),
    "columns of one": lambda s: (
        lambda y, x, w: s.InterpolatedUnivariateSpline(x[:, None], y[:, None])(Q)
    ),
    "zeros": lambda s: lambda y, x, w: s.UnivariateSpline(x, y, s=0, ext=1)(AROUND),
    "const": lambda s: lambda y, x, w: s.UnivariateSpline(x, y, s=0, ext="const")(AROUND),
    "slope": lambda s: lambda y, x, w: s.InterpolatedUnivariateSpline(x, y, k=2)(Q, 1),
    "roots": lambda s: lambda y, x, w: s.InterpolatedUnivariateSpline(x, y).roots(),
    "peaks": lambda s: (
        lambda y, x, w: s.InterpolatedUnivariateSpline(x, y, k=4).derivative().roots()
    ),
    "integral": lambda s: lambda y, x, w: s.InterpolatedUnivariateSpline(x, y).integral(-1, w[0]),
    "antiderivative": lambda s: (
        lambda y, x, w: s.InterpolatedUnivariateSpline(x, y).antiderivative()(Q)
    ),
    **{
        f"slope beyond the ends, {ext}": lambda s, ext=ext: (
            lambda y, x, w: s.UnivariateSpline(x, y, s=0, ext=ext).derivative()(AROUND)
        )
        for ext in ("extrapolate", "zeros", "const")
    },
    "derivatives": lambda s: lambda y, x, w: s.InterpolatedUnivariateSpline(x, y).derivatives(2.2),
    "lsq": lambda s: lambda y, x, w: s.LSQUnivariateSpline(x, y, [2.5, 4.5], w)(Q),
    "lsq-coefficients": lambda s: (
        lambda y, x, w: s.LSQUnivariateSpline(x, y, [2.5, 4.5]).get_coeffs()
    ),
    "lsq-columns": lambda s: (
        lambda y, x, w: s.make_lsq_spline(x, np.stack([y, y * w], axis=1), KNOTS)(Q)
    ),
}


def test_splines_and_their_derivatives() -> None:
    arrays = (Y, X, W)
    ways = tuple([RNG.normal(size=12) * scale for scale in (1, 0.1, 0.3)])
    for label, case in CASES.items():
        numpys, ours = case(scipy_interpolate), case(cr.scipy.interpolate)
        wanted = numpys(*arrays)
        ends = [
            numpys(*[a + step * w for a, w in zip(arrays, ways, strict=True)])
            for step in (-1e-6, 1e-6)
        ]
        np.testing.assert_array_equal(ours(*arrays), wanted, err_msg=label)
        found, tangent = cr.jvp(ours, arrays, ways)
        np.testing.assert_allclose(found, wanted, 1e-9, 1e-10, err_msg=label)
        np.testing.assert_allclose(tangent, (ends[1] - ends[0]) / 2e-6, 1e-5, 1e-6, err_msg=label)
        blocks = cr.jacobian(ours, (0, 1, 2), mode="reverse")(*arrays)
        products = sum(b @ w for b, w in zip(blocks, ways, strict=True))
        np.testing.assert_allclose(products, tangent, 1e-8, 1e-9, err_msg=label)


def test_splines_of_arrays_have_scipys_methods_and_slopes() -> None:
    smooth, scipys = [s.UnivariateSpline(X, Y) for s in (cr.scipy.interpolate, scipy_interpolate)]
    np.testing.assert_array_equal(smooth.get_knots(), scipys.get_knots())
    np.testing.assert_array_equal(smooth.get_coeffs(), scipys.get_coeffs())
    assert smooth.get_residual() == scipys.get_residual()
    np.testing.assert_allclose(cr.grad(smooth)(3.0), scipys(3.0, 1), 1e-12)


def test_splines_without_a_derivative_say_so() -> None:
    def value(**settings: Any) -> Callable[[Any], Any]:
        return lambda y: cr.scipy.interpolate.UnivariateSpline(X, y, **settings)(3.0)

    for y in (Y, cr.tensor(Y)):
        slope = cr.scipy.interpolate.UnivariateSpline(X, y, s=0, ext="raise").derivative()
        with pytest.raises(ValueError, match=r"x value|out of|between|interval|range"):
            slope(AROUND)
    with pytest.raises(cr.MissingRuleError, match="of tensors takes no bbox"):
        cr.grad(value(s=0, bbox=(-1, 9)))(Y)
    with pytest.raises(cr.MissingRuleError, match="of tensors takes no per"):
        cr.grad(lambda y: cr.scipy.interpolate.splrep(X, y, per=1)[1].sum())(Y)
    with pytest.raises(cr.ArgumentError, match="finding roots unsupported"):
        cr.grad(lambda y: cr.scipy.interpolate.UnivariateSpline(X, y, k=4, s=0).roots().sum())(Y)
    with pytest.raises(cr.ShapeError, match="make_lsq_spline: Shapes of x"):
        cr.grad(lambda y: cr.scipy.interpolate.make_lsq_spline(X[1:], y, KNOTS)(3.0))(Y)
    for name, x, t in (("x", X[::-1], KNOTS), ("t", X, KNOTS[::-1])):
        with pytest.raises(cr.ArgumentError, match=f"Expect {name} to be a 1D non-decreasing"):
            cr.grad(lambda y, x=x, t=t: cr.scipy.interpolate.make_lsq_spline(x, y, t)(3.0))(Y)
