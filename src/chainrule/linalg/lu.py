"""LU decompositions, and solutions of linear systems from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace, numpy_xp
from chainrule.errors import LinAlgError, ShapeError
from chainrule.kernels.lu import factorize, row_permutation
from chainrule.linalg.arguments import adjoint as conjugate_transpose
from chainrule.linalg.arguments import is_tracked, matrices, square, transposed, with_common_dtype
from chainrule.linalg.solve import solve_triangular
from chainrule.ops import concat, conj, tril, triu
from chainrule.primitives import decompositions, indexing, shaping

__all__ = ["lu", "lu_factor", "lu_factor_ex", "lu_solve"]

Array = Any


class LUResult(NamedTuple):
    """Result of `lu`."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactors(NamedTuple):
    """Result of `lu_factor`."""

    LU: Tensor
    pivots: Tensor


class LUFactorsEx(NamedTuple):
    """Result of `lu_factor_ex`."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


def _factorize(x: Tensor, pivot: bool) -> tuple[Array, Array]:
    """Return both factors in one matrix, and the pivots, counted from 0."""
    xp = namespace(x._array)
    found: tuple[Array, Array]
    if xp is numpy_xp:
        found = xp.factorize(x._array, pivot=pivot)
    else:
        found = factorize(xp, x._array, pivot=pivot)
    return found


def _triangles(x: Tensor, packed: Array, pivots: Array, pivot: bool) -> tuple[Tensor, Tensor]:
    """Return both factors, recorded if `x` requires grad."""
    xp = namespace(x._array)
    m, n = x.shape[-2:]
    k = min(m, n)
    if not is_tracked(x):
        factors = make(packed, None)
        eye = make(xp.eye(m, k, dtype=x.dtype), None)
        return tril(factors[..., :k], -1) + eye, triu(factors[..., :k, :])
    x = _permute_rows(x, row_permutation(xp, pivots, m)) if pivot else x
    lower, upper = decompositions.lu.apply(x[..., :k, :k], make(packed[..., :k, :k], None))
    if m > k:
        below = solve_triangular(upper, x[..., k:, :], upper=True, left=False)
        lower = concat([lower, below], axis=-2)
    if n > k:
        right = solve_triangular(lower, x[..., k:], upper=False, unitriangular=True)
        upper = concat([upper, right], axis=-1)
    return lower, upper


def _packed(x: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return both factors in one matrix, recorded."""
    xp = namespace(x._array)
    m, n = x.shape[-2:]
    below = tril(lower, -1)
    missing = (m, n - m) if m <= n else (m - n, n)
    filler = make(xp.zeros((*x.shape[:-2], *missing), dtype=x.dtype), None)
    if m <= n:
        return concat([below, filler], axis=-1) + upper
    return below + concat([upper, filler], axis=-2)


def _permute_rows(x: Tensor, order: Array) -> Tensor:
    """Return the rows of matrices in another order."""
    grid = np.ix_(*[np.arange(size) for size in order.shape])[:-1]
    shape = np.broadcast_shapes(x.shape[:-2], order.shape[:-1])
    if x.shape[:-2] != shape:
        x = shaping.broadcast_to.apply(x, shape=(*shape, *x.shape[-2:]))
    if order.shape[:-1] != shape:
        order = namespace(order).broadcast_to(order, (*shape, order.shape[-1]))
        return _permute_rows(x, order)
    return indexing.index.apply(x, key=(*grid, order))


def lu(A: Operand, *, pivot: bool = True) -> LUResult:
    """Return a permutation, a lower and an upper triangular matrix whose product is A = P L U.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        Real or complex matrices.
    pivot : bool, default True
        Exchange rows, so that the pivot is the largest element of its column. Without that, P is
        empty, and a zero pivot gives inf and nan.

    Returns
    -------
    P : Tensor, shape (..., m, m)
    L : Tensor, shape (..., m, k) with k = min(m, n)
        With ones on the diagonal.
    U : Tensor, shape (..., k, n)

    Raises
    ------
    LinAlgError
        In a backward pass, and forward too if m > n, if the first k columns are linearly dependent.

    Notes
    -----
    Derivative: with Φ = L⁻¹ Pᵀ dA U⁻¹, dL is L times the part of Φ below the diagonal, dU the rest
    times U [1]_. P has none.

    References
    ----------
    .. [1] S. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions with
       application in optimum experimental design", arXiv:1001.1654, 2010.

    Examples
    --------
    >>> import chainrule as cr
    >>> P, L, U = cr.linalg.lu(cr.tensor([[1.0, 2.0], [4.0, 4.0]]))
    >>> U
    tensor([[4., 4.],
            [0., 1.]])
    >>> P @ L @ U
    tensor([[1., 2.],
            [4., 4.]])
    """
    x = matrices(A, "lu")
    packed, pivots = _factorize(x, pivot)
    lower, upper = _triangles(x, packed, pivots, pivot)
    xp = namespace(x._array)
    if not pivot:
        return LUResult(make(xp.zeros((0,), dtype=x.dtype), None), lower, upper)
    eye = xp.eye(x.shape[-2], dtype=x.dtype)
    rows = eye[row_permutation(xp, pivots, x.shape[-2])]
    return LUResult(make(rows.swapaxes(-1, -2), None), lower, upper)


def lu_factor_ex(A: Operand, *, pivot: bool = True, check_errors: bool = False) -> LUFactorsEx:
    """Return the result of `lu_factor`, and the position of the first zero pivot without raising.

    Returns
    -------
    LU : Tensor, shape of `A`
    pivots : Tensor of int32, shape (..., min(m, n))
    info : Tensor of int32, shape (...)
        0, or the number, from 1, of the first zero on the diagonal of U.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.lu_factor_ex(cr.tensor([[1.0, 2.0], [1.0, 2.0]])).info
    tensor(2, dtype=int32)
    """
    x = matrices(A, "lu_factor")
    packed, pivots = _factorize(x, pivot)
    xp = namespace(x._array)
    zeros = packed.diagonal(0, -2, -1) == 0
    found = xp.where(zeros.any(axis=-1), zeros.argmax(axis=-1) + 1, 0) if zeros.size else None
    if found is None:
        found = xp.zeros(x.shape[:-2], dtype=np.int64)
    if check_errors and xp.known and found.any():
        first = int(found.reshape(-1).nonzero()[0][0])
        prefix = f"(Batch element {first}): " if x.ndim > 2 else ""
        raise LinAlgError(
            f"linalg.lu_factor: {prefix}U[{int(found.reshape(-1)[first])},"
            f"{int(found.reshape(-1)[first])}] is zero and using it on lu_solve would result in a "
            "division by zero. lu_factor_ex() returns the factors all the same"
        )
    factors = (
        _packed(x, *_triangles(x, packed, pivots, pivot)) if is_tracked(x) else make(packed, None)
    )
    one_based = make(xp.asarray(pivots + 1, dtype=np.int32), None)
    return LUFactorsEx(factors, one_based, make(xp.asarray(found, dtype=np.int32), None))


def lu_factor(A: Operand, *, pivot: bool = True) -> LUFactors:
    """Return L and U in one matrix, and the row exchanges: the arguments of `lu_solve`.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        Real or complex matrices.
    pivot : bool, default True
        As for `lu`.

    Returns
    -------
    LU : Tensor, shape of `A`
        U, and L below the diagonal.
    pivots : Tensor of int32, shape (..., min(m, n))
        The number, from 1, of the row with which each row was exchanged, in this order.

    Raises
    ------
    LinAlgError
        If there is a zero on the diagonal of U.

    Notes
    -----
    Derivative: as for `lu`.

    Examples
    --------
    >>> import chainrule as cr
    >>> LU, pivots = cr.linalg.lu_factor(cr.tensor([[1.0, 2.0], [4.0, 4.0]]))
    >>> LU
    tensor([[4.0000, 4.0000],
            [0.2500, 1.0000]])
    >>> cr.linalg.lu_solve(LU, pivots, cr.tensor([[3.0], [8.0]]))
    tensor([[1.],
            [1.]])
    """
    packed, pivots, _ = lu_factor_ex(A, pivot=pivot, check_errors=True)
    return LUFactors(packed, pivots)


def lu_solve(
    LU: Operand, pivots: Operand, B: Operand, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """Return X, the solution of A X = B, from the result of `lu_factor` for A.

    Parameters
    ----------
    LU : Tensor, shape (..., n, n)
    pivots : Tensor of integers, shape (..., n)
    B : Tensor, shape (..., n, k)
        Right sides.
    left : bool, default True
        Solve A X = B, else X A = B.
    adjoint : bool, default False
        Use Aᴴ instead of A.

    Returns
    -------
    Tensor, shape of `B`, its stack broadcast with that of `LU`

    Raises
    ------
    LinAlgError
        If there is a zero on the diagonal of U.
    ShapeError
        If the shapes don't fit.

    Notes
    -----
    Derivatives: those of the two triangular systems, in `LU` and `B`.

    Examples
    --------
    >>> import chainrule as cr
    >>> LU, pivots = cr.linalg.lu_factor(cr.tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> cr.linalg.lu_solve(LU, pivots, cr.tensor([[2.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    factors, sides = with_common_dtype(square(LU, "lu_solve"), matrices(B, "lu_solve"))
    n = factors.shape[-1]
    one_based = tensor_of(pivots)._array
    if one_based.shape != factors.shape[:-1]:
        raise ShapeError(
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the "
            f"matrix: expected the shape {list(factors.shape[:-1])}, got {list(one_based.shape)}"
        )
    if sides.shape[-2 if left else -1] != n:
        raise ShapeError(
            f"linalg.lu_solve: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({n}x{n} and {sides.shape[-2]}x{sides.shape[-1]})"
        )
    order = row_permutation(namespace(one_based), one_based.astype(np.int64) - 1, n)
    if left and not adjoint:
        return _solve_factors(factors, order, sides)
    if left:
        return conj(_solve_transposed_factors(factors, order, conj(sides)))
    if adjoint:
        return conjugate_transpose(_solve_factors(factors, order, conjugate_transpose(sides)))
    return transposed(_solve_transposed_factors(factors, order, transposed(sides)))


def _solve_factors(factors: Tensor, order: Array, sides: Tensor) -> Tensor:
    inner = solve_triangular(factors, _permute_rows(sides, order), upper=False, unitriangular=True)
    return solve_triangular(factors, inner, upper=True)


def _solve_transposed_factors(factors: Tensor, order: Array, sides: Tensor) -> Tensor:
    transposed_factors = transposed(factors)
    inner = solve_triangular(transposed_factors, sides, upper=False)
    outer = solve_triangular(transposed_factors, inner, upper=True, unitriangular=True)
    return _permute_rows(outer, order.argsort(axis=-1))
