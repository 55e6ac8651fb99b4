"""PyTorch's functions from before `torch.linalg`, with their older arguments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.kernels.lu import row_permutation
from chainrule.linalg import decompositions, eigen_svd
from chainrule.linalg.arguments import adjoint, matrices, transposed, with_common_dtype
from chainrule.linalg.lu import (
    LUFactors,
    LUFactorsEx,
    LUResult,
    lu_factor,
    lu_factor_ex,
)
from chainrule.linalg.lu import (
    lu_solve as _lu_solve,
)
from chainrule.linalg.products import householder_product
from chainrule.linalg.solve import solve_triangular
from chainrule.ops import tril, triu
from chainrule.primitives import elementwise

__all__ = [
    "cholesky",
    "geqrf",
    "lu",
    "lu_solve",
    "lu_unpack",
    "orgqr",
    "qr",
    "svd",
    "triangular_solve",
]


class GeqrfResult(NamedTuple):
    """Result of `geqrf`."""

    a: Tensor
    tau: Tensor


class SVDResult(NamedTuple):
    """Result of `svd`."""

    U: Tensor
    S: Tensor
    V: Tensor


class TriangularSolveResult(NamedTuple):
    """Result of `triangular_solve`."""

    solution: Tensor
    cloned_coefficient: Tensor


def cholesky(input: Operand, upper: bool = False) -> Tensor:
    """Return the triangular factors of positive-definite matrices, as `linalg.cholesky` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cholesky(cr.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    return decompositions.cholesky(input, upper=upper)


def qr(input: Operand, some: bool = True) -> decompositions.QRResult:
    """Return the QR decomposition, as `linalg.qr` does: "complete" if `some` is False.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.qr(cr.tensor([[0.0], [1.0]]), some=False).Q.shape
    (2, 2)
    """
    return decompositions.qr(input, mode="reduced" if some else "complete")


def geqrf(input: Operand) -> GeqrfResult:
    """Return the QR decomposition as LAPACK does: reflections in the place of Q.

    Parameters
    ----------
    input : Tensor, shape (..., m, n)
        Real or complex matrices.

    Returns
    -------
    named tuple
        ``a``, shape (..., m, n): R in the upper triangle, and below the diagonal the vectors of
        Householder reflections, whose scales are ``tau``, of shape (..., min(m, n)).
        `linalg.householder_product` makes Q of them.

    Notes
    -----
    Without a derivative, as in PyTorch: `linalg.qr` has one.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.geqrf(cr.tensor([[3.0], [4.0]])).a[0, 0].item()
    -5.0
    """
    x = matrices(input, "geqrf")
    transposed_a, tau = namespace(x._array).linalg.qr(x._array, mode="raw")
    return GeqrfResult(make(transposed_a.swapaxes(-1, -2).copy(), None), make(tau, None))


orgqr = householder_product  # PyTorch's former name


def svd(input: Operand, some: bool = True, compute_uv: bool = True) -> SVDResult:
    """Return the singular value decomposition A = U diag(S) Vᴴ.

    Parameters
    ----------
    input : Tensor, shape (..., m, n)
        Real or complex matrices A.
    some : bool, default True
        Return min(m, n) vectors of each kind, else all of them.
    compute_uv : bool, default True
        Compute the vectors: if False, `U` and `V` are square matrices of zeros.

    Returns
    -------
    U : Tensor, shape (..., m, m) or (..., m, min(m, n))
    S : Tensor, shape (..., min(m, n)); real
    V : Tensor, shape (..., n, n) or (..., n, min(m, n))
        The vectors are its columns; in `linalg.svd` they are the rows of Vh.

    Raises
    ------
    LinAlgError
        If a matrix holds nan or inf.

    Notes
    -----
    Derivatives: those of `linalg.svd`.

    Examples
    --------
    >>> import chainrule as cr
    >>> U, S, V = cr.svd(cr.tensor([[3.0, 0.0, 0.0], [0.0, -4.0, 0.0]]))
    >>> S, V.shape
    (tensor([4., 3.]), (3, 2))
    """
    if compute_uv:
        u, s, vh = eigen_svd.svd(input, full_matrices=not some)
        return SVDResult(u, s, adjoint(vh))
    x = matrices(input, "svd")
    zeros = namespace(x._array).zeros
    u, v = [make(zeros((*x.shape[:-2], n, n), dtype=x.dtype), None) for n in x.shape[-2:]]
    return SVDResult(u, eigen_svd.svdvals(x), v)


def triangular_solve(
    b: Operand,
    A: Operand,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> TriangularSolveResult:
    """Return X, the solution of A X = b with triangular matrices A, and a copy of A.

    Parameters
    ----------
    b : Tensor, shape (..., n, k)
        Right sides.
    A : Tensor, shape (..., n, n)
        Matrices of which one triangle is read.
    upper : bool, default True
        Read the upper triangle, else the lower one.
    transpose : bool, default False
        Solve Aᵀ X = b.
    unitriangular : bool, default False
        Take the diagonal as ones, without reading it.

    Returns
    -------
    solution : Tensor, shape of `b`
    cloned_coefficient : Tensor
        `A`.

    Raises
    ------
    LinAlgError, ShapeError
        As for `linalg.solve_triangular`, which also has the same derivatives.

    Examples
    --------
    >>> import chainrule as cr
    >>> A = cr.tensor([[2.0, 1.0], [0.0, 4.0]])
    >>> cr.triangular_solve(cr.tensor([[3.0], [4.0]]), A).solution
    tensor([[1.],
            [1.]])
    """
    a, sides = with_common_dtype(matrices(A, "triangular_solve"), matrices(b, "triangular_solve"))
    reader = transposed(a) if transpose else a
    solution = solve_triangular(
        reader, sides, upper=upper != transpose, unitriangular=unitriangular
    )
    return TriangularSolveResult(solution, elementwise.clone.apply(a))


def lu(A: Operand, pivot: bool = True, get_infos: bool = False) -> LUFactors | LUFactorsEx:
    """Return the LU factors in one matrix, and the pivots, as `linalg.lu_factor` does.

    With `get_infos` a singular factor doesn't raise: the result is that of `linalg.lu_factor_ex`.

    Examples
    --------
    >>> import chainrule as cr
    >>> LU, pivots = cr.lu(cr.tensor([[1.0, 2.0], [4.0, 4.0]]))
    >>> LU
    tensor([[4.0000, 4.0000],
            [0.2500, 1.0000]])
    """
    if get_infos:
        return lu_factor_ex(A, pivot=pivot)
    return lu_factor(A, pivot=pivot)


def lu_solve(b: Operand, LU_data: Operand, LU_pivots: Operand) -> Tensor:
    """Return the solution of A X = b from the LU factors of A, as `linalg.lu_solve` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.lu_solve(cr.tensor([[2.0], [4.0]]), *cr.lu(cr.tensor([[2.0, 0.0], [0.0, 4.0]])))
    tensor([[1.],
            [1.]])
    """
    return _lu_solve(LU_data, LU_pivots, b)


def lu_unpack(
    LU_data: Operand, LU_pivots: Operand, unpack_data: bool = True, unpack_pivots: bool = True
) -> LUResult:
    """Return P, L and U, with A = P L U, from the result of `lu`.

    Parameters
    ----------
    LU_data : Tensor, shape (..., m, n)
    LU_pivots : Tensor of integers, shape (..., min(m, n))
        The result of `lu` or `linalg.lu_factor`.
    unpack_data, unpack_pivots : bool, default True
        Return L and U, and P; else they are empty.

    Returns
    -------
    P : Tensor, shape (..., m, m)
    L : Tensor, shape (..., m, k) with k = min(m, n)
    U : Tensor, shape (..., k, n)

    Notes
    -----
    Derivative: 1 for the elements that L and U take from `LU_data`.

    Examples
    --------
    >>> import chainrule as cr
    >>> P, L, U = cr.lu_unpack(*cr.lu(cr.tensor([[1.0, 2.0], [4.0, 4.0]])))
    >>> P @ L @ U
    tensor([[1., 2.],
            [4., 4.]])
    """
    packed = matrices(LU_data, "lu_unpack")
    xp = namespace(packed._array)
    m, n = packed.shape[-2:]
    empty = make(xp.zeros((0,), dtype=packed.dtype), None)
    order, lower, upper = empty, empty, empty
    if unpack_data:
        eye = make(xp.eye(m, min(m, n), dtype=packed.dtype), None)
        lower = elementwise.add.apply(tril(packed[..., : min(m, n)], -1), eye)
        upper = triu(packed[..., : min(m, n), :])
    if unpack_pivots:
        pivots = tensor_of(LU_pivots)._array.astype(np.int64) - 1
        rows = xp.eye(m, dtype=packed.dtype)[row_permutation(xp, pivots, m)]
        order = make(rows.swapaxes(-1, -2), None)
    return LUResult(order, lower, upper)
