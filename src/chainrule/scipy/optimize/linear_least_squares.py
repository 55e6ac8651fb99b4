"""Linear least squares with bounds: `nnls` and `lsq_linear`, with derivatives of the solution.

SciPy finds which unknowns the bounds hold. The others are the solution of the least squares problem
without bounds that is left, which is recorded: its derivative is that of the implicit function
theorem where each bound that is touched pushes, and bounds that hold have derivatives, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.backend import whole
from chainrule.errors import ArgumentError, LinAlgError, ShapeError
from chainrule.implicit.examples import with_numbers
from chainrule.implicit.solutions import numbers_of
from chainrule.linalg import pinv
from chainrule.scipy.dispatch import call_ours, has_tensors
from chainrule.scipy.operands import inexact
from chainrule.scipy.optimize.bounds import held_by_bounds, warn_of_doubtful
from chainrule.scipy.optimize.unknowns import OPTIMIZE, joined, warn_of_failure

__all__ = ["lsq_linear", "nnls"]

_AGREEMENT = 1e-5  # of SciPy's solution and the recorded one, which a small pivot spoils


def nnls(A: Any, b: Any, *, maxiter: int | None = None, **settings: Any) -> tuple[Any, Any]:
    """Minimise ‖A x - b‖ for x ≥ 0: `scipy.optimize.nnls`, with derivatives.

    Parameters
    ----------
    A : array, shape (m, n)
        Coefficients.
    b : array, shape (m,)
        Right side.
    maxiter : int, optional
        As in SciPy.

    Returns
    -------
    x : array, shape (n,)
        The solution, differentiable with respect to `A` and `b`.
    rnorm : float
        ‖A x - b‖, differentiable where it is not 0.

    Raises
    ------
    RuntimeError
        If it did not converge.
    LinAlgError
        If `A` doesn't determine the unknowns that are positive.
    ShapeError
        If the shapes don't fit.

    Warns
    -----
    UserWarning
        If an unknown is 0 without being pushed there: the derivative is that to one side.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> A = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> cr.grad(lambda b: cr.scipy.optimize.nnls(A, b)[0][0])(np.array([2.0, 1.0, -1.0]))
    array([0.5, 0.5, 0. ])
    """
    if not has_tensors(A, b):
        found: tuple[Any, Any] = OPTIMIZE.nnls(A, b, maxiter=maxiter, **settings)
        return found

    def solver(a: Any, y: Any, low: Any, high: Any) -> Any:
        return OPTIMIZE.nnls(a, y, maxiter=maxiter, **settings)[0]

    x, rest = _solution("nnls", solver, A, b, 0.0, np.inf)
    return x, call_ours(lambda r: ops.sqrt(ops.sum(ops.square(r))), (rest,), {})


def lsq_linear(A: Any, b: Any, bounds: Any = (-np.inf, np.inf), **settings: Any) -> Any:
    """Minimise ½‖A x - b‖² with bounds: `scipy.optimize.lsq_linear`, with derivatives.

    Parameters
    ----------
    A : array, shape (m, n)
        Coefficients.
    b : array, shape (m,)
        Right side.
    bounds : pair of numbers or arrays, or scipy.optimize.Bounds
        The lowest and highest values, with respect to which the solution is differentiable, too.
    **settings
        As in SciPy: `method`, `tol`, `max_iter` and others.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's result, of which `x`, `fun` and `cost` are differentiable; without
        `unbounded_sol`, where one of the arguments is differentiated.

    Raises
    ------
    LinAlgError
        If `A` doesn't determine the unknowns that no bound holds.
    ShapeError, ArgumentError
        If the arguments don't fit.

    Warns
    -----
    UserWarning
        If it did not converge, or a bound is touched that doesn't push.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> A = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> def first(b, high):
    ...     return cr.scipy.optimize.lsq_linear(A, b, (0.0, high)).x[0]
    >>> cr.grad(first, (0, 1))(np.array([2.0, 1.0, 3.0]), np.array([4.0, 1.0]))
    (array([0.5, 0.5, 0. ]), array([ 0. , -0.5]))
    """
    low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    if not has_tensors(A, b, low, high):
        return OPTIMIZE.lsq_linear(A, b, bounds, **settings)
    results: list[Any] = []

    def solver(*numbers: Any) -> Any:
        a, y, *ends = numbers
        results.append(OPTIMIZE.lsq_linear(a, y, tuple(ends), **settings))
        return results[-1].x

    x, rest = _solution("lsq_linear", solver, A, b, low, high)
    result = results[0] if len(results) == 1 else joined(results)
    result.pop("unbounded_sol", None)
    result.x, result.fun = x, rest
    result.cost = call_ours(lambda r: 0.5 * ops.sum(ops.square(r)), (rest,), {})
    warn_of_failure("lsq_linear", results, x)
    return result


def _solution(title: str, solver: Callable[..., Any], *given: Any) -> tuple[Any, Any]:
    """Return the solution and the residuals, recorded, in the kind of the arguments."""
    found: tuple[Any, Any] = call_ours(functools.partial(_recorded, title, solver), given, {})
    return found


def _recorded(
    title: str, solver: Callable[..., Any], A: Any, b: Any, low: Any, high: Any
) -> tuple[Tensor, Tensor]:
    if hasattr(A, "tocsr") or hasattr(A, "matvec"):
        raise ArgumentError(f"{title}: expected a dense matrix A for derivatives: A.toarray()")
    A, b, low, high = inexact(title, A, b, low, high, real=True)
    if A.ndim != 2 or b.shape != A.shape[:1]:
        raise ShapeError(
            f"{title}: expected A of shape (m, n) and b of shape (m,), got {list(A.shape)} and "
            f"{list(b.shape)}"
        )
    n = A.shape[1]
    low, high = [ops.broadcast_to(end, (n,)) for end in (low, high)]

    def numbers() -> list[Any]:
        a, y, *ends = [numbers_of(x.detach()) for x in (A, b, low, high)]
        x = np.asarray(solver(a, y, *ends), float)
        return [x, *held_by_bounds(x, a.T @ (a @ x - y), (ends[0], ends[1]))]

    value, *sides, doubtful = with_numbers(f"scipy.optimize.{title}", numbers)
    at_low, at_high = [tensor_of(side) for side in sides]
    fixed = ops.where(at_low, low, ops.where(at_high, high, 0.0))
    held = ops.logical_or(at_low, at_high)
    free = ops.where(held, 0.0, 1.0).to(A.dtype)
    rows = ops.cat([A * free, ops.diag(1 - free)])
    right = ops.cat([b - ops.matmul(A, fixed), 0 * fixed])
    x = ops.where(held, fixed, ops.matmul(pinv(rows), right))
    off = ops.abs(x.detach() - tensor_of(value)) > _AGREEMENT * (1 + ops.abs(tensor_of(value)))
    if whole(off._array).any():
        raise LinAlgError(
            f"{title}: A doesn't determine the unknowns that no bound holds, or SciPy's solution "
            "is far from the minimum: its derivative is not defined. Add a small multiple of the "
            "identity matrix to the rows of A, or take a smaller tolerance"
        )
    warn_of_doubtful(title, doubtful, x)
    return x, ops.matmul(A, x) - b
