"""The polynomial through points: SciPy's values, and derivatives beside their differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_interpolate = pytest.importorskip("scipy.interpolate")
interpolate = cr.scipy.interpolate

RNG = np.random.default_rng(2)
X, Y = np.sort(RNG.uniform(0, 3, 5)), RNG.normal(size=(5, 2))
POINTS = np.append(RNG.uniform(0, 3, 3), X[2])
KINDS = ("KroghInterpolator", "BarycentricInterpolator")


def tensors(*arrays: Any) -> list[cr.Tensor]:
    return [cr.tensor(x, requires_grad=True) for x in arrays]


@pytest.mark.parametrize("kind", KINDS)
def test_values_and_derivatives(kind: str) -> None:
    ours, scipys = getattr(interpolate, kind), getattr(scipy_interpolate, kind)
    wanted, across = scipys(X, Y), scipys(X, Y.T, axis=1)
    x, y, points = tensors(X, Y, POINTS)
    for found, value in (
        (ours(x, y)(POINTS), wanted(POINTS)),
        (ours(X, Y)(points), wanted(POINTS)),
        (ours(X, y).derivative(POINTS, 2), wanted.derivative(POINTS, 2)),
        (ours(X, y).derivatives(POINTS, 3), wanted.derivatives(POINTS, 3)),
        (ours(X, cr.tensor(Y.T), axis=1)(points), across(POINTS)),
    ):
        np.testing.assert_allclose(found.detach().numpy(), value, 1e-9, 1e-10)
    np.testing.assert_allclose(ours(X, Y).derivatives(0.3), wanted.derivatives(0.3), 1e-12)
    assert cr.gradcheck(
        lambda x, y, q: ours(x, y)(q), (x, y, points), check_forward_ad=True, fast_mode=True
    )
    assert cr.gradgradcheck(lambda x, y, q: ours(x, y)(q), (x, y, points), fast_mode=True)
    assert cr.gradcheck(lambda y, q: ours(X, y).derivative(q), (y, points), fast_mode=True)
    loss = lambda x, y: (ours(x, y)(POINTS) ** 2).sum()  # noqa: E731
    compiled = cr.compile(cr.grad(loss, (0, 1)))(X, Y)
    for found, value in zip(compiled, cr.grad(loss, (0, 1))(X, Y), strict=True):
        np.testing.assert_allclose(found, value, 1e-9, 1e-11)
    mapped = cr.vmap(lambda y: ours(X, y)(POINTS))(np.stack([Y, -Y]))
    np.testing.assert_allclose(mapped[1], -wanted(POINTS), 1e-9, 1e-11)


def test_equal_nodes_have_derivatives() -> None:
    nodes, values = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 2.0]), RNG.normal(size=6)
    wanted = scipy_interpolate.KroghInterpolator(nodes, values)
    ours = interpolate.KroghInterpolator(nodes, cr.tensor(values, requires_grad=True))
    np.testing.assert_allclose(ours(POINTS).detach().numpy(), wanted(POINTS), 1e-11)
    np.testing.assert_allclose(ours.derivatives(0.0, 2).tolist(), values[:2], 1e-12)
    at = lambda x: interpolate.KroghInterpolator(x, values)(0.7)  # noqa: E731
    step = 1e-6 * (nodes == 1)
    ends = [scipy_interpolate.KroghInterpolator(nodes + s, values)(0.7) for s in (step, -step)]
    slope = cr.grad(at)(nodes)[nodes == 1].sum()
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, rtol=1e-7)
    with pytest.raises(cr.errors.ArgumentError, match="equal elements of xi must be neighbours"):
        cr.grad(at)(np.array([0.0, 1.0, 0.0, 2.0, 3.0, 4.0]))
    with pytest.raises(cr.errors.ArgumentError, match=r"can't be equal: KroghInterpolator"):
        cr.grad(lambda y: interpolate.barycentric_interpolate(nodes, y, 0.5))(values)


def test_functions_values_that_come_later_and_mistakes() -> None:
    y = Y[:, 0]
    slopes = [
        cr.grad(lambda y: interpolate.krogh_interpolate(X, y, 0.5, 1))(y),
        cr.grad(lambda y: interpolate.barycentric_interpolate(X, y, 0.5, der=1))(y),
    ]
    units = scipy_interpolate.KroghInterpolator(X, np.eye(5)).derivative(0.5)
    np.testing.assert_allclose(slopes, [units, units], 1e-9)
    assert interpolate.pchip is interpolate.PchipInterpolator

    def later(y: Any) -> Any:
        polynomial = interpolate.BarycentricInterpolator(X[:3])
        polynomial.set_yi(y[:3])
        polynomial.add_xi(X[3:], y[3:])
        return polynomial(0.5)

    np.testing.assert_allclose(later(y), scipy_interpolate.barycentric_interpolate(X, y, 0.5))
    units = scipy_interpolate.KroghInterpolator(X, np.eye(5))(0.5)
    np.testing.assert_allclose(cr.grad(later)(y), units, 1e-9)
    with pytest.raises(cr.errors.ArgumentError, match="der must not be negative, got -1"):
        interpolate.krogh_interpolate(X, cr.tensor(y), 0.5, -1)
    with pytest.raises(cr.errors.ShapeError, match="as many values along axis 0, got the shapes"):
        interpolate.KroghInterpolator(X, cr.tensor(y[:4]))
