"""Smoothing splines, curves and surfaces: SciPy's values, beside differences of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_interpolate = pytest.importorskip("scipy.interpolate")

RNG = np.random.default_rng(2)
T = np.linspace(0.0, 1.0, 20) + 0.01 * np.cos(np.arange(20.0))
Y = np.sin(5 * T) + 0.1 * np.cos(31 * T)
ROUGH = Y + 0.2 * np.cos(np.arange(20.0) ** 2)
W = 1.0 + T
Q = np.array([0.2, 0.55])
GX, GY = np.arange(5.0), np.arange(6.0) ** 1.1
Z = np.sin(GX)[:, None] * np.cos(GY / 2)
PX, PY = RNG.uniform(0, 1, (2, 30))
PZ = np.sin(3 * PX) * PY
C = np.cos(np.arange(16.0)).reshape(4, 2, 2)
KNOTS = (np.r_[0, 0, 0, 1, 2, 2, 2.0], np.r_[0, 0, 1.0, 1], np.r_[0, 0, 1.0, 1])
POINTS = np.array([[1.2, 0.3, 0.4], [0.4, 0.3, 0.9]])

Case = tuple[Callable[[Any, Any, Any], Any], Any, float]
"""A program of SciPy's module and NumPy's, where to differentiate it, and to how many digits."""


def curve(xp: Any, s: Any, spline: Any) -> Any:
    return xp.concatenate([xp.asarray(part) for part in s.splev(Q, spline[0])])


CASES: dict[str, Case] = {
    "splrep": (lambda s, xp, y: s.splev(Q, s.splrep(T, y, s=0.05)), Y, 1e-3),
    "splrep-points": (lambda s, xp, x: s.splev(Q, s.splrep(x, Y, s=0.05)), T, 3e-2),
    "splrep-weights": (lambda s, xp, w: s.splev(Q, s.splrep(T, Y, w, s=0.1)), W, 1e-3),
    "splrep-polynomial": (lambda s, xp, y: s.splev(Q, s.splrep(T, y, s=50.0)), Y, 1e-6),
    "splrep-quintic": (lambda s, xp, y: s.splev(Q, s.splrep(T, y, s=0.1, k=5)), Y, 1e-3),
    "univariate": (
        lambda s, xp, y: s.UnivariateSpline(T, y, s=0.05).integral(0.1, 0.7), Y, 3e-3),
    "splprep": (lambda s, xp, y: curve(xp, s, s.splprep([T * T, y], s=0)), Y, 1e-5),
    "splprep-smooth": (
        lambda s, xp, y: curve(xp, s, s.splprep([T * T, y], u=T, s=0.05)), Y, 1e-3),
    "splprep-weights": (
        lambda s, xp, w: curve(xp, s, s.splprep([T * T, Y], w, s=0.05)), W, 1e-3),
    "stiffness": (lambda s, xp, v: s.make_smoothing_spline(T, Y, lam=v[0])(Q), np.array([1e-3]),
                  1e-5),
    "stiff-values": (
        lambda s, xp, y: s.make_smoothing_spline(T, y, lam=1e-4).derivative()(Q), Y, 1e-6),
    "stiff-points": (lambda s, xp, x: s.make_smoothing_spline(x, Y, W, 1e-4)(Q), T, 1e-5),
    "stiff-columns": (
        lambda s, xp, y: s.make_smoothing_spline(T, xp.stack([y, y * y]), lam=1e-4, axis=1)(
            Q).ravel(), Y, 1e-6),
    "validated": (
        lambda s, xp, y: s.make_smoothing_spline(30 * T, y)([6.0, 12.0]), ROUGH, 1e-3),
    "grid": (lambda s, xp, z: s.RectBivariateSpline(GX, GY, z.reshape(5, 6))(
        [1.2, 2.3], [0.4, 3.3], dx=1).ravel(), Z.ravel(), 1e-6),
    "grid-axis": (
        lambda s, xp, x: s.RectBivariateSpline(x, GY, Z).integral(0.5, 2.2, 1, 3), GX, 1e-6),
    "grid-points": (
        lambda s, xp, q: s.RectBivariateSpline(GX, GY, Z, kx=2, ky=1).ev(q, q + 0.4),
        np.array([-1.0, 1.2]), 1e-6),
    "surface": (
        lambda s, xp, z: s.LSQBivariateSpline(PX, PY, z, [0.5], [], kx=2, ky=2).ev(Q, Q), PZ, 1e-6),
    "surface-weights": (
        lambda s, xp, w: s.LSQBivariateSpline(
            PX, PY, PZ, [0.5], [0.4], w, [0, 1, 0, 1], 2, 2)(Q, Q).ravel(), PX + 1, 1e-5),
    "bisplev": (
        lambda s, xp, c: s.bisplev(Q, Q, (KNOTS[0], KNOTS[0] / 2, c, 2, 2), 1, 0).ravel(),
        C.ravel(), 1e-6),
    "products": (
        lambda s, xp, q: s.NdBSpline(KNOTS, C, (2, 1, 1))(q.reshape(2, 3), nu=(1, 0, 0)),
        POINTS.ravel(), 1e-6),
    "products-values": (
        lambda s, xp, c: s.NdBSpline(KNOTS, c.reshape(4, 2, 2), (2, 1, 1))(POINTS), C.ravel(),
        1e-6),
}  # fmt: skip

COMPILED = ("stiffness", "grid", "surface", "products")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_values_and_both_orders(name: str) -> None:
    program, x, digits = CASES[name]
    weights = np.cos(np.arange(1.0, 1.0 + np.size(program(scipy_interpolate, np, x))))

    def ours(x: Any) -> Any:
        return (weights * program(cr.scipy.interpolate, cr.numpy, x)).sum()

    def scipys(x: Any) -> Any:
        return (weights * program(scipy_interpolate, np, x)).sum()

    step = 1e-5 * max(1.0, abs(x).max()) if x.size > 1 else 1e-7
    direction = np.cos(np.arange(x.size) ** 2.0)
    value, slope = cr.value_and_grad(ours)(x)
    assert value == pytest.approx(scipys(x), rel=1e-8)
    change = (scipys(x + step * direction) - scipys(x - step * direction)) / (2 * step)
    assert slope @ direction == pytest.approx(change, rel=digits, abs=digits)
    assert cr.jvp(ours, (x,), (direction,))[1] == pytest.approx(slope @ direction, rel=1e-8)
    ends = [cr.grad(ours)(x + sign * step * direction) for sign in (1, -1)]
    second = cr.hvp(ours, x, direction)
    wanted = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(second, wanted, 10 * digits, 10 * digits * (1 + abs(wanted).max()))
    if name in COMPILED:
        compiled = cr.compile(cr.grad(ours), backend="numpy")
        np.testing.assert_allclose(compiled(x), slope, 1e-8, 1e-10)


def test_the_sum_of_squares_is_a_parameter() -> None:
    def value(s: Any) -> Any:
        return cr.scipy.interpolate.splev(0.4, cr.scipy.interpolate.splrep(T, Y, s=s))

    ends = [value(s) for s in (0.045, 0.055)]
    assert cr.grad(value)(0.05) == pytest.approx((ends[1] - ends[0]) / 0.01, rel=0.05)


def test_what_has_no_derivative_says_what_has_one() -> None:
    s = cr.scipy.interpolate
    for call in (
        lambda z: s.RectBivariateSpline(GX, GY, z, s=0.3)(1.0, 1.0)[0, 0],
        lambda z: s.SmoothBivariateSpline(np.ravel(z), np.ravel(z), np.ravel(z)),
        lambda z: s.bisplrep(np.ravel(z), np.ravel(z), np.ravel(z)),
    ):
        with pytest.raises(cr.MissingRuleError, match=r"knots by the data. LSQBivariateSpline"):
            cr.grad(call)(Z)
    with pytest.raises(cr.MissingRuleError, match=r"bbox .* leave it out"):
        cr.grad(lambda z: s.RectBivariateSpline(GX, GY, z, [0, 9, 0, 9])(1.0, 1.0)[0, 0])(Z)
    with pytest.raises(cr.ArgumentError, match=r"splprep of tensors takes no per"):
        cr.grad(lambda y: s.splprep([T, y], per=1)[1].sum())(Y)
    with pytest.raises(cr.ArgumentError, match=r"NdBSpline: nu needs 3 orders"):
        s.NdBSpline(KNOTS, cr.numpy.array(C), (2, 1, 1))(POINTS, nu=(1,))
    for wrong, text in (
        ({"lam": -1.0}, "Regularization parameter should be non-negative"),
        ({"lam": 1.0, "w": -W}, "Invalid vector of weights"),
    ):
        with pytest.raises(cr.ArgumentError, match=text):
            s.make_smoothing_spline(T, cr.numpy.array(Y), **wrong)
    with pytest.raises(cr.ArgumentError, match="x should be an ascending array"):
        s.make_smoothing_spline(T[::-1].copy(), cr.numpy.array(Y))
    with pytest.raises(cr.ArgumentError, match="at least 5 points x"):
        s.make_smoothing_spline(T[:4], cr.numpy.array(Y[:4]))
