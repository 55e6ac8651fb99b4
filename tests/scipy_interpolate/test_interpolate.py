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
    *("ppoly-descending", "cubic-ends", "cubic-periodic-4", "pchip", "interpolating-2", "splev-3"),
    *("interp1d-linear", "grid-linear", "radial-thin_plate_spline"),
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


def test_slopes() -> None:
    for label, (call, arrays) in CASES.items():
        weighted = lambda *xs, f=call: sum(  # noqa: E731
            (part**2).sum() for part in parts_of(f(cr.scipy.interpolate, *xs))
        )
        ways = [RNG.normal(size=x.shape) for x in arrays]
        slope = sum(
            (g * way).sum()
            for g, way in zip(
                cr.grad(weighted, tuple(range(len(ways))))(*arrays), ways, strict=True
            )
        )
        ends = [
            weighted(*[cr.tensor(x + step * w) for x, w in zip(arrays, ways, strict=True)]).item()
            for step in (-1e-6, 1e-6)
        ]
        np.testing.assert_allclose(slope, (ends[1] - ends[0]) / 2e-6, 2e-4, 1e-5, err_msg=label)


@pytest.mark.parametrize(
    "label",
    [x if x in QUICK else pytest.param(x, marks=pytest.mark.thorough) for x in CASES],
)
@pytest.mark.filterwarnings("ignore:.*searchsorted runs for each")
def test_derivatives(label: str) -> None:
    call, arrays = CASES[label]
    backend = None if label in QUICK else "numpy"  # LLVM would take most of the time

    def ours(*xs: Any) -> Any:
        return tuple(parts_of(call(cr.scipy.interpolate, *xs)))

    tensors = [cr.tensor(x, requires_grad=True) for x in arrays]
    assert cr.gradcheck(ours, tensors, check_forward_ad=True, fast_mode=True)
    assert cr.gradgradcheck(ours, tensors, atol=1e-4, fast_mode=True)
    eager = ours(*tensors)
    # The gradient's program below has the values, too: that of the values alone takes its time.
    compiled = cr.compile(ours)(*tensors) if label in QUICK else eager
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
    for p, c in zip(
        plain, cr.compile(cr.grad(weighted, every), backend=backend)(*arrays), strict=True
    ):
        assert type(p) in (np.ndarray, np.float64)
        np.testing.assert_allclose(c, p, 1e-7, 1e-9)


CROWDED = np.r_[X[0] - TENTHS[:2], X[0] + TENTHS[0] * TENTHS, X[-1] - TENTHS[2:], X[-1] + [0, 1]]
CROWDED = np.sort(np.r_[CROWDED, X[0]])
MISTAKES: list[tuple[str, str, Callable[[Any, Any], Any]]] = [
    ("ArgumentError", "strictly increasing sequence", lambda s, y: s.CubicSpline(X[::-1], y)),
    ("ArgumentError", "`y` must contain only finite", lambda s, y: s.CubicSpline(X, y * np.nan)),
    ("ShapeError", "at least 2 elements", lambda s, y: s.PchipInterpolator(X[:1], y[:1])),
    ("ShapeError", "doesn't match the length of `x`, 6", lambda s, y: s.CubicSpline(X[1:], y)),
    ("ShapeError", "axis 1 is not one", lambda s, y: s.CubicSpline(X, y, 1)),
    ("ShapeError", "shapes of `y` and `dydx`", lambda s, y: s.CubicHermiteSpline(X, y, y[1:])),
    ("DTypeError", "expected real numbers", lambda s, y: s.PchipInterpolator(X, y * 1j)),
    ("ArgumentError", "must be identical", lambda s, y: s.CubicSpline(X, y, 0, "periodic")),
    ("ArgumentError", "bc_type=no is not", lambda s, y: s.CubicSpline(X, y, 0, "no")),
    ("ArgumentError", "must contain 2 elements", lambda s, y: s.CubicSpline(X, y, 0, ((1, 0),))),
    ("ArgumentError", "cannot be used",
     lambda s, y: s.CubicSpline(X, y, 0, ("periodic", "natural"))),
    ("ArgumentError", "form .order, value.", lambda s, y: s.CubicSpline(X, y, 0, (1, 2))),
    ("ArgumentError", "must be 1 or 2", lambda s, y: s.CubicSpline(X, y, 0, ((3, 0.0), "natural"))),
    ("ShapeError", r"shape \[2\] is not",
     lambda s, y: s.CubicSpline(X, y, 0, ((1, np.ones(2)), "natural"))),
    ("ShapeError", "at least 2-dimensional", lambda s, y: s.PPoly(y, X)),
    ("ArgumentError", "axis=1 must be between 0 and 1", lambda s, y: s.PPoly(y[None], X, None, 1)),
    ("ShapeError", "at least 2 breakpoints", lambda s, y: s.PPoly(y[None], X[:1])),
    ("ShapeError", r"number of coefficients != len\(x\)-1", lambda s, y: s.PPoly(y[None], X)),
    ("ArgumentError", "strictly increasing or decreasing",
     lambda s, y: s.PPoly(y[None, :2], np.array([0.0, 2.0, 1.0]))),
    ("MissingRuleError", "join the coefficients",
     lambda s, y: s.PPoly(y[None, 1:], X).extend(y, y)),
    ("MissingRuleError", "insert_knot: the derivative has no",
     lambda s, y: s.BSpline(X, y[:4], 2).insert_knot(y[0])),
    ("MissingRuleError", "AAA: the derivative by data has no", lambda s, y: s.AAA(X, y)(0.3)),
    ("ArgumentError", "make_splrep of tensors takes no nest",
     lambda s, y: s.make_splrep(X, y, s=1, nest=9)),
    ("ArgumentError", "sproot works only for cubic", lambda s, y: s.sproot((X, y, 2))),
    ("AttributeError", r"PPoly.rots doesn't", lambda s, y: s.PPoly(y[None, 1:], X).rots()),
    ("ArgumentError", "cannot be negative", lambda s, y: s.BSpline(X, y, -1)),
    ("ShapeError", "need at least 10 knots", lambda s, y: s.BSpline(X, y, 4)),
    ("ShapeError", "at least 5 coefficients, got 3", lambda s, y: s.BSpline(X, y[:3], 1)),
    ("ShapeError", "axis 1 is not one", lambda s, y: s.BSpline(X, y, 1, axis=1)),
    ("ArgumentError", "non-decreasing", lambda s, y: s.BSpline(X[::-1], y, 1)),
    ("ArgumentError", "nans or infs", lambda s, y: s.BSpline(X * np.nan, y, 1)),
    ("ArgumentError", "internal knots", lambda s, y: s.BSpline(np.ones(7), y, 1)),
    ("ArgumentError", "not differentiable",
     lambda s, y: s.BSpline([0.0, 1.0, 2.0, 2.0, 2.0, 3.0, 4.0], y, 1).derivative()),
    ("ArgumentError", "<= k = 0", lambda s, y: s.BSpline(X, y, 1).derivative(2)),
    ("MissingRuleError", "design_matrix has no", lambda s, y: s.BSpline.design_matrix(y, X, 1)),
    ("ShapeError", "are incompatible", lambda s, y: s.make_interp_spline(X[1:], y)),
    ("ShapeError", "axis 2 is not one", lambda s, y: s.make_interp_spline(X, y, axis=2)),
    ("ArgumentError", "infs or NaNs", lambda s, y: s.make_interp_spline(X, y * np.inf)),
    ("ArgumentError", "1D strictly increasing", lambda s, y: s.make_interp_spline(X[::-1], y)),
    ("ArgumentError", "Expect non-negative k", lambda s, y: s.make_interp_spline(X, y, -1)),
    ("ArgumentError", "Too much info", lambda s, y: s.make_interp_spline(X, y, 1, None, "natural")),
    ("ShapeError", "need at least 11", lambda s, y: s.make_interp_spline(X, y, 3, X)),
    ("ArgumentError", "1-D sorted array",
     lambda s, y: s.make_interp_spline(X, y, 2, np.r_[X, X[:3]])),
    ("ArgumentError", "Out of bounds", lambda s, y: s.make_interp_spline(X, y, 2, np.arange(10.0))),
    ("LinAlgError", "Colocation matrix is singular",
     lambda s, y: s.make_interp_spline(X, y, 1, CROWDED)),
    ("ArgumentError", "Unknown boundary condition: 3",
     lambda s, y: s.make_interp_spline(X, y, bc_type=3)),
    ("ArgumentError", "Unknown boundary condition : no",
     lambda s, y: s.make_interp_spline(X, y, bc_type="no")),
    ("ArgumentError", "iterables of pairs",
     lambda s, y: s.make_interp_spline(X, y, bc_type=(2, 3))),
    ("ArgumentError", "orders are 0 to 3",
     lambda s, y: s.make_interp_spline(X, y, bc_type=([(4, 0)], [(1, 0)]))),
    ("ArgumentError", r"expected 2, got 1\+0",
     lambda s, y: s.make_interp_spline(X, y, bc_type=([(1, 0)], None))),
    ("ArgumentError", "does not match while periodic",
     lambda s, y: s.make_interp_spline(X, y, bc_type="periodic")),
    ("ArgumentError", "not in the domain", lambda s, y: s.splev(99.0, (X, y, 1), 0, 2)),
    ("ArgumentError", "der=2<=k=1", lambda s, y: s.splev(1.0, (X, y, 1), 2)),
    ("ArgumentError", "ext = 5", lambda s, y: s.splev(1.0, (X, y, 1), 0, 5)),
    ("ArgumentError", "are not allowed", lambda s, y: s.splev(1.0, s.BSpline(X, y, 1), 0, 1)),
    ("ShapeError", "exactly one dimension", lambda s, y: s.interp1d(X[None], y)),
    ("ShapeError", "must be equal in length", lambda s, y: s.interp1d(X[1:], y)),
    ("ArgumentError", "at least 4 entries", lambda s, y: s.interp1d(X[:3], y[:3], "cubic")),
    ("ArgumentError", "below the interpolation range", lambda s, y: s.interp1d(X, y)(-9.0)),
    ("ArgumentError", "above the interpolation range", lambda s, y: s.interp1d(X, y)(99.0)),
    ("ArgumentError", "Cannot extrapolate",
     lambda s, y: s.interp1d(X, y, bounds_error=True, fill_value="extrapolate")),
    ("ArgumentError", "Method 'no' is", lambda s, y: s.RegularGridInterpolator((X,), y, "no")),
    ("ShapeError", "2 point arrays", lambda s, y: s.RegularGridInterpolator((X, X), y)),
    ("ShapeError", "must be 1-dim", lambda s, y: s.RegularGridInterpolator((X[None],), y)),
    ("ShapeError", "6 points and 7 values", lambda s, y: s.RegularGridInterpolator((X[1:],), y)),
    ("ArgumentError", "strictly ascending",
     lambda s, y: s.RegularGridInterpolator((np.sin(X),), y)),
    ("ArgumentError", "requires at least 6",
     lambda s, y: s.RegularGridInterpolator((X[:5],), y[:5], "quintic")),
    ("ArgumentError", "out of bounds in dimension 0",
     lambda s, y: s.RegularGridInterpolator((X,), y)([99.0])),
    ("ShapeError", "points xi have dimension 2",
     lambda s, y: s.RegularGridInterpolator((X,), y)(np.ones((1, 2)))),
    ("ArgumentError", "Can only compute derivatives",
     lambda s, y: s.RegularGridInterpolator((X,), y)(X[:1], nu=[1])),
    ("ArgumentError", "splinef2d", lambda s, y: s.interpn((X,), y, X[:1], "splinef2d")),
    ("ShapeError", "must be a 2-dim", lambda s, y: s.RBFInterpolator(X, y)),
    ("ShapeError", "length 7, got", lambda s, y: s.RBFInterpolator(X[:, None], y[:4])),
    ("ShapeError", r"shape \(7,\), got",
     lambda s, y: s.RBFInterpolator(X[:, None], y, smoothing=np.ones(3))),
    ("ArgumentError", "must be one of", lambda s, y: s.RBFInterpolator(X[:, None], y, kernel="no")),
    ("ArgumentError", "`epsilon` must be",
     lambda s, y: s.RBFInterpolator(X[:, None], y, kernel="gaussian")),
    ("ArgumentError", "at least -1", lambda s, y: s.RBFInterpolator(X[:, None], y, degree=-2)),
    ("ArgumentError", "At least 8 data", lambda s, y: s.RBFInterpolator(X[:, None], y, degree=7)),
    ("LinAlgError", "points have to differ",
     lambda s, y: s.RBFInterpolator(np.ones((7, 1)), y)),
    ("ShapeError", "second axis", lambda s, y: s.RBFInterpolator(X[:, None], y)(np.ones((1, 2)))),
    ("NotImplementedError", "unsupported", lambda s, y: s.interp1d(X, y, "no")),
    ("NotImplementedError", "unsupported", lambda s, y: s.Akima1DInterpolator(X, y, method="no")),
    ("NotImplementedError", "periodic case t is",
     lambda s, y: s.make_interp_spline(X, y, 3, X, "periodic")),
]  # fmt: skip


def test_mistakes() -> None:
    y = cr.tensor(Y, requires_grad=True)
    builtin = {"AttributeError": AttributeError, "NotImplementedError": NotImplementedError}
    for kind, text, call in MISTAKES:
        with pytest.raises(builtin.get(kind) or getattr(cr, kind), match=text):
            call(cr.scipy.interpolate, y)


def test_arrays_out_of_order_are_seen_while_a_function_is_compiled() -> None:
    s, wrong = cr.scipy.interpolate, X[[0, 2, 1, 3, 4, 5, 6]]
    for call in (
        lambda y: s.CubicSpline(wrong, y)(1.5),
        lambda y: s.make_interp_spline(wrong, y)(1.5),
        lambda y: s.make_interp_spline(X, y, 2, np.r_[wrong, X[:3]])(1.5),
        lambda y: s.BSpline(wrong, y, 2)(1.5),
        lambda y: s.RegularGridInterpolator((wrong,), y)([1.5]),
    ):
        with pytest.raises(cr.ArgumentError, match=r"increasing|sorted|order|ascending"):
            cr.compile(call)(cr.tensor(Y))


def test_a_point_that_is_nan_gives_no_gradient_to_others() -> None:
    s, inside = cr.scipy.interpolate, X[0] + 0.4
    for periodic in (
        lambda x, q: s.CubicSpline(x, Y, extrapolate="periodic")(q),
        lambda x, q: s.BSpline(x, Y, 2, "periodic")(q),
    ):
        found = []
        for q in (np.array([inside, X[-1] + 1]), np.array([inside, X[-1] + 1, np.nan, np.inf])):
            x = cr.tensor(X, requires_grad=True)
            values = periodic(x, q)
            assert values[2:].isnan().all()
            found.append(cr.autograd_grad(values[:2].sum(), x)[0].numpy())
        assert np.isfinite(found[0]).all()
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("transform", [cr.compile, cr.vmap])
def test_interpolants_of_arrays_are_used_in_a_transform_first(transform: Any) -> None:
    s, q = cr.scipy.interpolate, cr.tensor(AT)
    makers = [lambda: s.RBFInterpolator(PLACES, HEIGHTS)]
    for method in ("linear", "cubic", "nearest"):
        makers.append(lambda m=method: s.RegularGridInterpolator(GRID, TABLE, m))
    for make in makers:
        used, wanted = make(), make()(q)
        shape = (3, 1, 2) if transform is cr.vmap else (3, 2)
        found = transform(lambda q, used=used: used(q))(q.reshape(shape))
        np.testing.assert_allclose(found.numpy().reshape(3), wanted, 1e-9)
        np.testing.assert_allclose(used(q), wanted, 1e-9)  # it kept nothing of the transform


def test_curvatures_at_both_ends_and_antiderivatives_of_a_period() -> None:
    found, wanted = [], []
    for s, results in ((cr.scipy.interpolate, found), (scipy_interpolate, wanted)):
        y = cr.tensor(Y, requires_grad=True) if s is cr.scipy.interpolate else Y
        results.append(s.CubicSpline(X, y, bc_type=((2, 0.7), (2, -0.4)))(AROUND))
        whole = s.CubicSpline(X, y, extrapolate="periodic").antiderivative()
        results.append(whole(AROUND))
        assert whole.extrapolate is False
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.detach(), other, 1e-9, 1e-12)


def test_neighbors() -> None:
    settings = {"neighbors": 5, "smoothing": 0.1}
    weights = RNG.normal(size=3)

    def weighted(s: Any, d: Any, y: Any, q: Any) -> Any:
        return s.RBFInterpolator(y, d, **settings)(q) @ weights

    arrays = [HEIGHTS, PLACES, WANTED]
    tensors = [cr.tensor(x, requires_grad=True) for x in arrays]
    ours = lambda *xs: weighted(cr.scipy.interpolate, *xs)  # noqa: E731
    np.testing.assert_allclose(ours(*tensors).item(), weighted(scipy_interpolate, *arrays), 1e-9)
    assert cr.gradcheck(ours, tensors, fast_mode=True)
    with pytest.raises(cr.AutogradError, match="leave neighbors out"):
        cr.compile(ours)(*tensors)


def test_kinds() -> None:
    s = cr.scipy.interpolate
    spline = s.CubicSpline(X, Y)
    assert isinstance(spline, s.PPoly)
    wanted = scipy_interpolate.CubicSpline(X, Y)
    np.testing.assert_array_equal(spline.roots(), wanted.roots())  # without tensors SciPy's own
    for same in (copy.deepcopy(spline), pickle.loads(pickle.dumps(spline))):
        np.testing.assert_array_equal(same(INSIDE), wanted(INSIDE))
        assert cr.grad(same)(INSIDE[0]) == pytest.approx(wanted(INSIDE[0], 1))
    narrow = s.CubicSpline(*[cr.tensor(part.astype(np.float32)) for part in (X, Y)])
    assert narrow(cr.tensor(INSIDE.astype(np.float32))).dtype == np.float32
    whole = s.CubicSpline(cr.tensor([0, 1, 2, 3]), [0, 1, 8, 27])(1.5)
    assert whole.dtype == np.float64
    assert whole.item() == pytest.approx(3.375)
    turning = s.CubicSpline(X, cr.tensor(ROWS[:, 0] + 1j * ROWS[:, 1]))(INSIDE).numpy()
    np.testing.assert_allclose(
        turning, scipy_interpolate.CubicSpline(X, ROWS[:, 0] + 1j * ROWS[:, 1])(INSIDE), 1e-10
    )
    absent = s.CubicSpline(X, cr.tensor(Y), extrapolate=False)(cr.tensor([np.nan, -9.0, 9e9]))
    assert absent.isnan().all()
    # An object that was made of tensors under one transform is used under another.
    radial = s.RBFInterpolator(PLACES, cr.tensor(HEIGHTS, requires_grad=True))
    inner = cr.vmap(lambda q: radial(q[None])[0])(cr.tensor(WANTED))
    np.testing.assert_allclose(inner.detach(), radial(WANTED).detach(), 1e-9)


def test_a_library_imported_anew_records(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "of_curves.py").write_text(
        "from scipy.interpolate import CubicSpline, interp1d\n\n\n"
        "def curve(x, y):\n    return CubicSpline(x, y)(1.5) + interp1d(x, y)(1.25)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    curve = importlib.import_module("chainrule.imported.of_curves").curve
    x = np.arange(4.0)
    found = cr.grad(curve, 1)(x, x**2)
    np.testing.assert_allclose(found, [-0.0625, 0.5625 + 0.75, 0.5625 + 0.25, -0.0625], 1e-12)


def test_scipys_own_class_names_ours() -> None:
    with pytest.raises(cr.AutogradError, match=r"chainrule.scipy.interpolate"):
        cr.grad(lambda y: scipy_interpolate.make_interp_spline(X, y)(1.5))(Y)


def test_attributes_of_interpolants_on_grids_may_be_changed() -> None:
    for make in (lambda v: v, cr.tensor):
        both = [
            scipy_interpolate.RegularGridInterpolator(GRID, TABLE),
            cr.scipy.interpolate.RegularGridInterpolator(GRID, make(TABLE)),
        ]
        for each in both:
            each.fill_value, each.bounds_error, each.method = -101.0, False, "nearest"
        outside = np.concatenate([AT, AT + 100.0])
        np.testing.assert_array_equal(np.asarray(both[1](outside)), both[0](outside))
