"""Unchecked linear algebra: error codes instead of exceptions for singular matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule.arguments import Operand
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import LinAlgError
from chainrule.linalg.arguments import accepts, square
from chainrule.linalg.decompositions import cholesky, leading_minor
from chainrule.linalg.lu import lu_factor_ex
from chainrule.linalg.solve import inv, solve
from chainrule.ops import real, tril, where

__all__ = ["cholesky_ex", "inv_ex", "solve_ex"]

Array = Any


class CholeskyExResult(NamedTuple):
    """Result of `cholesky_ex`."""

    L: Tensor
    info: Tensor


class InvExResult(NamedTuple):
    """Result of `inv_ex`."""

    inverse: Tensor
    info: Tensor


class SolveExResult(NamedTuple):
    """Result of `solve_ex`."""

    result: Tensor
    info: Tensor


def cholesky_ex(A: Operand, *, upper: bool = False, check_errors: bool = False) -> CholeskyExResult:
    """Return Cholesky factors, and an error code for matrices that have none.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        As for `cholesky`.
    upper : bool, default False
        As for `cholesky`.
    check_errors : bool, default False
        Raise as `cholesky` does.

    Returns
    -------
    L : Tensor, shape of `A`
        nan where there is no factor (PyTorch: partial results).
    info : Tensor of int32, shape (...)
        0, or the order of the first leading minor that is not positive-definite.

    Notes
    -----
    Derivative: as for `cholesky`; 0 for matrices without a factor.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.cholesky_ex(cr.tensor([[1.0, 2.0], [2.0, 1.0]])).info
    tensor(2, dtype=int32)
    """
    x = square(A, "cholesky")

    def minor(matrix: Array) -> int:
        return leading_minor(matrix.swapaxes(-1, -2).conj() if upper else matrix)

    def factor(matrices: Tensor) -> Tensor:
        return cholesky(matrices, upper=upper)

    def minors(matrices: Tensor) -> Tensor:
        return _first_minors(matrices.mH if upper else matrices)

    return CholeskyExResult(*_unchecked(x, factor, _try_cholesky, minor, minors, check_errors))


def _first_minors(x: Tensor) -> Tensor:
    """Return `leading_minor` of all matrices, 0 for those that are positive-definite."""
    hermitian = tril(x) + tril(x, -1).mH
    pivots = lu_factor_ex(hermitian, pivot=False).LU.diagonal(0, -2, -1)
    failed = ~(real(pivots) > 0)
    return where(failed.any(-1), failed.int().argmax(-1) + 1, 0).int()


def inv_ex(A: Operand, *, check_errors: bool = False) -> InvExResult:
    """Return inverses, and an error code for singular matrices.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        As for `inv`.
    check_errors : bool, default False
        Raise as `inv` does.

    Returns
    -------
    inverse : Tensor, shape of `A`
        nan where there is none (PyTorch: partial results).
    info : Tensor of int32, shape (...)
        0, or the number, from 1, of the first zero on the diagonal of U: see `lu_factor_ex`.

    Notes
    -----
    Derivative: as for `inv`; 0 for singular matrices.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.inv_ex(cr.tensor([[[2.0]], [[0.0]]])).info
    tensor([0, 1], dtype=int32)
    """
    x = square(A, "inv")
    return InvExResult(*_unchecked(x, inv, _try_inverse, _first_zero, _first_zeros, check_errors))


def solve_ex(
    A: Operand, B: Operand, *, left: bool = True, check_errors: bool = False
) -> SolveExResult:
    """Return solutions of linear systems, and an error code for singular matrices.

    Parameters
    ----------
    A, B, left
        As for `solve`.
    check_errors : bool, default False
        Raise as `solve` does.

    Returns
    -------
    result : Tensor, as of `solve`
        nan where the matrix is singular (PyTorch: partial results).
    info : Tensor of int32, shape (...)
        0, or the number, from 1, of the first zero on the diagonal of U: see `lu_factor_ex`.

    Notes
    -----
    Derivatives: as for `solve`; 0 for singular matrices.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.solve_ex(cr.tensor([[2.0]]), cr.tensor([[4.0]])).result
    tensor([[2.]])
    """
    x = square(A, "solve")

    def solution(matrices: Tensor) -> Tensor:
        return solve(matrices, B, left=left)

    return SolveExResult(
        *_unchecked(x, solution, _try_inverse, _first_zero, _first_zeros, check_errors)
    )


def _unchecked(
    x: Tensor,
    function: Callable[[Tensor], Tensor],
    kernel: Callable[[Array], Array],
    error_code: Callable[[Array], int],
    error_codes: Callable[[Tensor], Tensor],
    check_errors: bool,
) -> tuple[Tensor, Tensor]:
    """Return a function's results, nan where it fails, and the error codes (0 for success).

    `error_codes` tells them of matrices that aren't known, in a compiled function or `vmap`.
    """
    xp = namespace(x._array)
    info = np.zeros(x.shape[:-2], np.int32)
    if not xp.known:
        if check_errors or not x.shape[-1]:
            return function(x), make(xp.asarray(info), None)
        return _where_defined(x, function, error_codes(x.detach()))
    try:
        return function(x), make(xp.asarray(info), None)
    except LinAlgError:
        if check_errors:
            raise
    for index in np.ndindex(info.shape):
        if not accepts(kernel, x._array[index]):
            info[index] = error_code(x._array[index])
    if not info.any():  # a matrix that is not finite, for one
        for index in np.ndindex(info.shape):
            info[index] = 0 if xp.isfinite(x._array[index]).all() else 1
    return _where_defined(x, function, make(xp.asarray(info), None))


def _where_defined(
    x: Tensor, function: Callable[[Tensor], Tensor], info: Tensor
) -> tuple[Tensor, Tensor]:
    """Return a function's results, nan for the matrices with an error code, and the codes."""
    bad = info != 0
    eye = make(namespace(x._array).eye(x.shape[-1], dtype=x.dtype), None)
    result = function(where(bad[..., None, None], eye, x))
    mask = bad.reshape(bad.shape + (1,) * (min(result.ndim, x.ndim) - bad.ndim))
    return where(mask, np.nan, result), info


def _try_inverse(matrix: Array) -> Array:
    return namespace(matrix).linalg.inv(matrix)


def _try_cholesky(matrix: Array) -> Array:
    factor = namespace(matrix).linalg.cholesky(matrix)
    if not namespace(matrix).isfinite(factor).all():
        raise np.linalg.LinAlgError
    return factor


def _first_zeros(x: Tensor) -> Tensor:
    return lu_factor_ex(x).info


def _first_zero(matrix: Array) -> int:
    # Rounding may hide the zero pivot that LAPACK met: then report the last one.
    return int(lu_factor_ex(make(matrix, None)).info.item()) or matrix.shape[-1]
