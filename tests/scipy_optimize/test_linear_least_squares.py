"""`nnls` and `lsq_linear`: SciPy's solutions, and derivatives where bounds hold some unknowns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_optimize = pytest.importorskip("scipy.optimize")
optimize = cr.scipy.optimize

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(8, 4)), RNG.normal(size=8)
LOW, HIGH = np.full(4, -0.1), np.array([0.15, 0.05, 2.0, np.inf])


def tensors(*arrays: Any) -> list[cr.Tensor]:
    return [cr.tensor(x, requires_grad=True) for x in arrays]


def both(a: Any, b: Any) -> tuple[Any, Any]:
    found: tuple[Any, Any] = optimize.nnls(a, b)
    return found


def bounded(a: Any, b: Any, low: Any, high: Any) -> tuple[Any, ...]:
    found = optimize.lsq_linear(a, b, (low, high))
    return found.x, found.fun, found.cost


def test_nnls() -> None:
    wanted = scipy_optimize.nnls(A, B)
    assert 0 < np.count_nonzero(wanted[0]) < 4
    for found in (both(A, B), both(*map(cr.tensor, (A, B)))):
        np.testing.assert_allclose(found[0], wanted[0], 1e-10, 1e-14)
        np.testing.assert_allclose(found[1], wanted[1], 1e-12)
    assert cr.gradcheck(both, tensors(A, B), check_forward_ad=True)
    assert cr.gradgradcheck(both, tensors(A, B))
    assert type(cr.grad(lambda b: both(A, b)[1])(B)) is np.ndarray


def test_lsq_linear_with_bounds_that_are_differentiated() -> None:
    wanted = scipy_optimize.lsq_linear(A, B, (LOW, HIGH))
    assert {-1, 0, 1} == set(wanted.active_mask)
    result = optimize.lsq_linear(cr.tensor(A), B, scipy_optimize.Bounds(LOW, HIGH))
    assert result.success
    assert "unbounded_sol" not in result
    for name in ("x", "fun", "cost"):
        np.testing.assert_allclose(result[name], wanted[name], 1e-7, 1e-9)
    points = tensors(A, B, LOW, HIGH[:3])
    with_open_end = lambda a, b, low, high: bounded(a, b, low, cr.cat([high, cr.tensor([np.inf])]))  # noqa: E731
    assert cr.gradcheck(with_open_end, points, check_forward_ad=True)
    assert cr.gradgradcheck(with_open_end, points)
    assert isinstance(optimize.lsq_linear(A, B).unbounded_sol, tuple)


@pytest.mark.filterwarnings("ignore::chainrule.PerformanceWarning")
def test_examples_have_bounds_of_their_own_that_hold() -> None:
    rows = RNG.normal(size=(3, 8))
    found = cr.vmap(lambda b: both(A, b)[0])(rows)
    np.testing.assert_allclose(found, [scipy_optimize.nnls(A, b)[0] for b in rows], 1e-9, 1e-12)
    slope = cr.grad(lambda b: bounded(A, b, LOW, HIGH)[0][1])
    np.testing.assert_allclose(cr.vmap(slope)(rows), [slope(b) for b in rows], 1e-9, 1e-12)


def test_mistakes_and_warnings() -> None:
    gradient = cr.grad(lambda b, a: both(a, b)[0].sum())
    with pytest.raises(cr.errors.LinAlgError, match="A doesn't determine the unknowns"):
        gradient(np.ones(3), np.ones((3, 2)))
    with pytest.raises(cr.errors.ShapeError, match=r"b of shape \(m,\), got \[8, 4\] and \[3\]"):
        gradient(np.ones(3), A)
    sparse = pytest.importorskip("scipy.sparse").csr_array(np.eye(2))
    with pytest.raises(cr.errors.ArgumentError, match=r"a dense matrix.*A\.toarray\(\)"):
        gradient(np.ones(2), sparse)
    with pytest.raises(cr.errors.CompileError, match=r"scipy\.optimize\.nnls: a solver"):
        cr.compile(cr.grad(lambda b: both(A, b)[0].sum()))(B)
    with pytest.warns(UserWarning, match="a bound or constraint that doesn't push it"):
        gradient(np.array([1.0, 0.0]), np.eye(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(gradient(np.array([1.0, -1.0]), np.eye(2)), [1.0, 0.0])
