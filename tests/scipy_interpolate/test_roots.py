"""Roots of splines: SciPy's, and their derivatives beside differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_interpolate = pytest.importorskip("scipy.interpolate")

X = np.array([0.0, 1.0, 1.7, 2.9, 3.6, 4.3, 5.5, 6.0, 7.1])
Y = np.sin(1.3 * X) + 0.05
ON = np.where(np.arange(8) == 3, 0.0, 1.0)  # the fourth interval is 0

CASES: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "spline": lambda s: lambda y, x, v: s.CubicSpline(x, y).solve(v, extrapolate=False),
    "extrapolated": lambda s: lambda y, x, v: s.CubicSpline(x, y).solve(v) / 10,
    "peaks": lambda s: lambda y, x, v: s.CubicSpline(x, y * v).derivative().roots(False, False),
    "akima": lambda s: lambda y, x, v: s.Akima1DInterpolator(x, y).solve(v),
    "pchip": lambda s: lambda y, x, v: s.PchipInterpolator(x, y).solve(v, True, False),
    "descending": lambda s: (
        lambda y, x, v: s.PPoly(np.stack([y[1:], y[:-1], v + 0 * y[1:]]), x[::-1]).roots()
    ),
    "jumps": lambda s: lambda y, x, v: s.PPoly(np.stack([y[1:], y[:-1]]), x).solve(v),
    "no jumps": lambda s: lambda y, x, v: s.PPoly(np.stack([y[1:], y[:-1]]), x).solve(v, False),
    "whole interval": lambda s: (
        lambda y, x, v: s.PPoly(np.stack([y[1:] * ON, y[:-1] * ON + v]), x).solve(v)
    ),
    "b-spline": lambda s: (
        lambda y, x, v: s.PPoly.from_spline(s.make_interp_spline(x, y, 4)).solve(
            v, extrapolate=False
        )
    ),
    "coefficients": lambda s: lambda y, x, v: s.PPoly.from_spline((x, y, 2)).c + v,
}


def test_roots_are_scipys_and_their_derivatives_those_of_differences() -> None:
    arrays, rng = (Y, X, np.array(0.13)), np.random.default_rng(5)
    ways = tuple([rng.normal(size=a.shape) for a in arrays])
    for label, case in CASES.items():
        numpys, ours = case(scipy_interpolate), case(cr.scipy.interpolate)
        wanted = numpys(*arrays)
        ends = [
            numpys(*[a + step * w for a, w in zip(arrays, ways, strict=True)])
            for step in (-1e-7, 1e-7)
        ]
        slope = np.nan_to_num((ends[1] - ends[0]) / 2e-7)  # nan stands after a whole interval
        found, tangent = cr.jvp(ours, arrays, ways)
        assert wanted.size > 1, label
        np.testing.assert_allclose(found, wanted, 1e-12, 1e-13, err_msg=label)
        np.testing.assert_allclose(tangent, slope, 1e-4, 1e-6, err_msg=label)
        jacobians = cr.jacobian(ours, (0, 1, 2), mode="reverse")(*arrays)
        products = [np.tensordot(j, w, w.ndim) for j, w in zip(jacobians, ways, strict=True)]
        np.testing.assert_allclose(sum(products), tangent, 1e-9, 1e-11, err_msg=label)


def test_higher_derivatives_of_roots_and_examples_of_a_batch() -> None:
    def roots(y: Any, x: Any) -> Any:
        return cr.scipy.interpolate.CubicSpline(x, y).roots(extrapolate=False)

    tensors = [cr.tensor(a, requires_grad=True) for a in (Y, X)]
    assert cr.gradgradcheck(roots, tensors, atol=1e-4)
    with pytest.warns(cr.PerformanceWarning, match="solve runs for each of 2 examples"):
        both = cr.vmap(lambda y: roots(y, X))(np.stack([Y, 1.1 * Y + 0.01]))
    np.testing.assert_allclose(both[1], roots(1.1 * Y + 0.01, X), 1e-12)


def test_roots_of_columns_and_of_none() -> None:
    columns = cr.tensor(np.stack([Y, Y + 0.3, Y + 9.0], axis=1), requires_grad=True)
    found = cr.scipy.interpolate.CubicSpline(X, columns).roots(extrapolate=False)
    wanted = scipy_interpolate.CubicSpline(X, columns.detach().numpy()).roots(extrapolate=False)
    assert found.shape == wanted.shape == (3,)
    for ours, numpys in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), numpys, 1e-12)
    assert found[2].shape == (0,)
    found[1].sum().backward()
    assert not columns.grad[:, 0].any()
    assert columns.grad[:, 1].any()


def test_roots_without_a_derivative_say_so() -> None:
    def parabola(a: Any) -> Any:
        c = a * np.array([[1.0], [-2.0], [1.0]])
        return cr.scipy.interpolate.PPoly(c, np.array([0.0, 4.0])).roots().sum()

    with pytest.raises(cr.LinAlgError, match="at a multiple root, where the slope is 0"):
        cr.grad(parabola)(1.0)
    with pytest.raises(cr.ArgumentError, match="only for real-valued polynomials"):
        cr.scipy.interpolate.PPoly(cr.tensor([[1j, 2j]]), np.arange(3.0)).roots()
    with pytest.raises(cr.CompileError, match="solver or a foreign function needs numbers"):
        cr.compile(lambda y: cr.scipy.interpolate.CubicSpline(X, y).roots())(Y)
