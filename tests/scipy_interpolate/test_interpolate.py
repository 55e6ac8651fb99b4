"""`cr.scipy.interpolate`: SciPy's values, and derivatives beside their differences."""

from __future__ import annotations

import copy
import importlib
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_interpolate = pytest.importorskip("scipy.interpolate")

RNG = np.random.default_rng(7)
X = np.cumsum(RNG.uniform(0.5, 1.5, 7))
Y, ROWS = RNG.normal(size=7), RNG.normal(size=(7, 2))
TENTHS = np.array([0.1, 0.2, 0.3])
INSIDE = np.linspace(X[0] + 0.1, X[-1] - 0.2, 4)
AROUND = np.array([[X[0] - 0.7, INSIDE[1]], [INSIDE[2], X[-1] + 0.4]])
GRID = [np.cumsum(RNG.uniform(0.7, 1.3, n)) for n in (6, 7)]
TABLE = RNG.normal(size=(6, 7))
AT = np.stack([g[:3] + np.array([0.31, 0.42, 0.23]) for g in GRID], axis=-1)
PLACES, HEIGHTS = RNG.uniform(size=(9, 2)), RNG.normal(size=9)
WANTED = RNG.uniform(size=(3, 2))


def closed(y: Any) -> Any:
    """Return values of which the last is the first."""
    return np.concatenate([y[:-1], y[:1]])


def spline(s: Any, kind: str, *, nu: int = 0, **settings: Any) -> Callable[..., Any]:
    return lambda y, x, q: getattr(s, kind)(x, y, **settings)(q, nu)


# Calls, and the arrays that are differentiated. The first one is the one that is batched.
CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "ppoly": (
        lambda s, c, x, q: s.PPoly(c, x)(q), [RNG.normal(size=(3, 6)), X, AROUND],
    ),
    "ppoly-descending": (
        lambda s, c, x, q: s.PPoly(c, x)(q, 1), [RNG.normal(size=(3, 6)), X[::-1].copy(), AROUND],
    ),
    "ppoly-axis": (
        lambda s, c, q: s.PPoly(c, X, axis=1)(q), [RNG.normal(size=(2, 3, 6, 2)), AROUND],
    ),
    "hermite": (
        lambda s, y, d, x, q: s.CubicHermiteSpline(x, y, d)(q), [Y, RNG.normal(size=7), X, AROUND],
    ),
    **{
        f"cubic-{bc}": (
            lambda s, y, x, q, b=bc: s.CubicSpline(x, y, bc_type=b)(q), [Y, X, AROUND],
        )
        for bc in ("not-a-knot", "natural", "clamped")
    },
    "cubic-ends": (
        lambda s, y, a, b, x, q: s.CubicSpline(x, y, 0, ((1, a), (2, b)))(q, 1),
        [ROWS, RNG.normal(size=2), RNG.normal(size=2), X, INSIDE],
    ),
    **{
        f"cubic-periodic-{n}": (
            lambda s, y, x, q, n=n: s.CubicSpline(x[:n], closed(y[:n]), bc_type="periodic")(q),
            [Y, X, AROUND],
        )
        for n in (2, 3, 4, 7)
    },
    **{
        f"cubic-of-{n}": (lambda s, y, q, n=n: s.CubicSpline(X[:n], y[:n])(q), [ROWS, AROUND])
        for n in (2, 3, 4)
    },
    "cubic-mixed-3": (
        lambda s, y, x: s.CubicSpline(x[:3], y[:3], bc_type=("natural", "not-a-knot"))(INSIDE),
        [Y, X],
    ),
    "cubic-calculus": (
        lambda s, y, a, b: (
            s.CubicSpline(X, y).antiderivative(2)(AROUND),
            s.CubicSpline(X, y).derivative(2)(AROUND),
            s.CubicSpline(X, y).integrate(a, b),
        ),
        [Y, np.array(1.3), np.array(9.2)],
    ),
    "periodic-calculus": (
        lambda s, y, a, b: (
            s.CubicSpline(X, closed(y), bc_type="periodic").integrate(a, b),
            s.CubicSpline(X, closed(y), bc_type="periodic").antiderivative()(INSIDE),
        ),
        [Y, np.array(19.3), np.array(-7.2)],
    ),
    "pchip": (lambda s, y, x, q: s.PchipInterpolator(x, y)(q), [Y, X, AROUND]),
    "pchip-monotone": (
        lambda s, y, q: s.PchipInterpolator(X, y, axis=1)(q), [np.cumsum(ROWS.T**2, 1), INSIDE],
    ),
    "pchip-of-2": (lambda s, y, q: s.PchipInterpolator(X[:2], y)(q), [Y[:2], INSIDE]),
    "pchip-function": (lambda s, y, q: s.pchip_interpolate(X, y, q, 1), [Y, INSIDE]),
    "akima": (
        lambda s, y, x, q: s.Akima1DInterpolator(x, y, extrapolate=True)(q), [Y, X, AROUND],
    ),
    "makima": (
        lambda s, y, x, q: s.Akima1DInterpolator(x, y, method="makima")(q), [ROWS, X, INSIDE],
    ),
    "bspline": (
        lambda s, c, t, q: s.BSpline(t, c, 3)(q), [RNG.normal(size=7), np.arange(11.0), AROUND],
    ),
    "bspline-calculus": (
        lambda s, c, t, a, b: (
            s.BSpline(t, c, 2).derivative()(AROUND), s.BSpline(t, c, 2).antiderivative()(AROUND),
            s.BSpline(t, c, 2).integrate(a, b), s.BSpline(t, c, 2, False).integrate(-9.0, b),
            s.BSpline(t, c, 2, "periodic").integrate(a, 3 * b),
        ),
        [RNG.normal(size=8), np.cumsum(RNG.uniform(0.5, 1, 11)), np.array(2.1), np.array(5.3)],
    ),
    "basis-element": (
        lambda s, t, q: s.BSpline.basis_element(t)(q), [np.array([0.0, 1.0, 2.5, 3.0]), INSIDE / 4],
    ),
    **{
        f"interpolating-{k}": (
            lambda s, y, x, q, k=k: s.make_interp_spline(x, y, k)(q), [Y, X, AROUND],
        )
        for k in range(6)
    },
    "interpolating-ends": (
        lambda s, y, a, x, q: s.make_interp_spline(
            x, y, 5, bc_type=([(1, a), (2, 0.5)], [(2, -0.5), (3, a)])
        )(q, 1),
        [Y, np.array(0.4), X, INSIDE],
    ),
    "interpolating-natural": (
        lambda s, y, x: s.make_interp_spline(x, y, bc_type="natural")(INSIDE), [ROWS, X],
    ),
    "interpolating-knots": (
        lambda s, y, t, x: s.make_interp_spline(x, y, 2, t)(INSIDE),
        [ROWS, np.r_[X[0] - TENTHS[::-1], X[2:6] - 0.3, X[-1] + TENTHS], X],
    ),
    **{
        f"interpolating-periodic-{k}-{n}": (
            lambda s, y, x, q, k=k, n=n: s.make_interp_spline(
                x[:n], closed(y[:n]), k, bc_type="periodic"
            )(q),
            [Y, X, AROUND],
        )
        for k, n in ((2, 7), (3, 7), (4, 7), (5, 4), (5, 6))
    },
    **{
        f"splev-{ext}": (
            lambda s, c, t, q, e=ext: s.splev(q, (t, c, 3), 0, e),
            [RNG.normal(size=7), np.arange(11.0), AROUND],
        )
        for ext in (0, 1, 3)
    },
    **{
        f"interp1d-{kind}": (
            lambda s, y, x, q, k=kind: s.interp1d(x, y, k, fill_value="extrapolate")(q),
            [Y, X, INSIDE],
        )
        for kind in ("linear", "nearest", "previous", "next", "zero", "quadratic", "cubic", 5)
    },
    "interp1d-filled": (
        lambda s, y, a, q: s.interp1d(
            X[::-1], y, axis=0, bounds_error=False, fill_value=(a, 2.0)
        )(q),
        [ROWS, np.array([0.3, 0.1]), AROUND],
    ),
    **{
        f"grid-{method}": (
            lambda s, v, a, q, m=method: s.RegularGridInterpolator((a, GRID[1]), v, m)(q),
            [TABLE, GRID[0], AT],
        )
        for method in ("linear", "nearest", "slinear", "cubic", "quintic", "pchip")
    },
    "grid-derivative": (
        lambda s, v, q: s.RegularGridInterpolator(GRID, v, "cubic")(q, nu=[1, 0]), [TABLE, AT],
    ),
    "grid-outside": (
        lambda s, v, p, q: s.interpn(
            (GRID[0][::-1], GRID[1]), v[..., None], (p, q), bounds_error=False, fill_value=None
        ),
        [TABLE, AROUND, AROUND[0]],
    ),
    **{
        f"radial-{kernel}": (
            lambda s, d, y, q, k=kernel: s.RBFInterpolator(y, d, kernel=k, epsilon=2.0)(q),
            [HEIGHTS, PLACES, WANTED],
        )
        for kernel in (
            "linear", "thin_plate_spline", "cubic", "quintic", "multiquadric",
            "inverse_multiquadric", "inverse_quadratic", "gaussian",
        )
    },
    "radial-smooth": (
        lambda s, d, a, q: s.RBFInterpolator(PLACES, d, smoothing=a, degree=2)(q),
        [HEIGHTS, RNG.uniform(size=9), WANTED],
    ),
}  # fmt: skip
QUICK = {
    *("ppoly-descending", "cubic-not-a-knot", "cubic-ends", "cubic-periodic-7", "pchip", "akima"),
    *("bspline-calculus", "interpolating-3", "splev-3", "interp1d-linear", "grid-cubic"),
    *("grid-pchip", "radial-thin_plate_spline", "cubic-calculus", "interpolating-periodic-4-7"),
}


def parts_of(results: Any) -> list[Any]:
    return [*results] if isinstance(results, tuple) else [results]


def test_values() -> None:
    for label, (call, arrays) in CASES.items():
        wanted = parts_of(call(scipy_interpolate, *arrays))
        alone = parts_of(call(cr.scipy.interpolate, *arrays))
        found = parts_of(
            call(cr.scipy.interpolate, *[cr.tensor(x, requires_grad=True) for x in arrays])
        )
        # SciPy solves for the coefficients of grids by iterations.
        close = 1e-4 if label in ("grid-cubic", "grid-quintic", "grid-derivative") else 1e-8
        for w, a, f in zip(wanted, alone, found, strict=True):
            np.testing.assert_array_equal(a, w, err_msg=label)
            np.testing.assert_allclose(f.detach().numpy(), w, close, close, err_msg=label)
            assert f.shape == w.shape, label


@pytest.mark.parametrize(
    "label",
    [x if x in QUICK else pytest.param(x, marks=pytest.mark.thorough) for x in CASES],
)
@pytest.mark.filterwarnings("ignore:.*searchsorted runs for each")
def test_derivatives(label: str) -> None:
    call, arrays = CASES[label]

    def ours(*xs: Any) -> Any:
        return tuple(parts_of(call(cr.scipy.interpolate, *xs)))

    tensors = [cr.tensor(x, requires_grad=True) for x in arrays]
    assert cr.gradcheck(ours, tensors, check_forward_ad=True)
    assert cr.gradgradcheck(ours, tensors, atol=1e-4)
    eager = ours(*tensors)
    compiled = cr.compile(ours)(*tensors)
    stacked = [np.stack([x, x * 1.125]) for x in arrays]
    mapped = cr.vmap(ours)(*stacked)
    shared = cr.vmap(lambda x: ours(x, *arrays[1:]))(stacked[0])
    for i, (e, c) in enumerate(zip(eager, compiled, strict=True)):
        np.testing.assert_allclose(c.detach().numpy(), e.detach().numpy(), 1e-9, 1e-11)
        for both, second in ((mapped, [s[1] for s in stacked]), (shared, arrays[1:])):
            last = second if both is mapped else [stacked[0][1], *second]
            np.testing.assert_allclose(both[i][0], e.detach().numpy(), 1e-8, 1e-10)
            np.testing.assert_allclose(both[i][1], ours(*map(cr.tensor, last))[i], 1e-8, 1e-10)
    weighted = lambda *xs: sum((part**2).sum() for part in ours(*xs))  # noqa: E731
    every = tuple(range(len(arrays)))
    plain = cr.grad(weighted, every)(*arrays)
    for p, c in zip(plain, cr.compile(cr.grad(weighted, every))(*arrays), strict=True):
        assert type(p) in (np.ndarray, np.float64)
        np.testing.assert_allclose(c, p, 1e-7, 1e-9)
