"""Least squares."""

from __future__ import annotations

from typing import NamedTuple

from chainrule import ops
from chainrule.arguments import Operand, floating
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import check_known, namespace
from chainrule.errors import ArgumentError, ShapeError
from chainrule.linalg.arguments import column, matmul, matrices, of_one_dtype, without_column
from chainrule.linalg.eigen_svd import svdvals
from chainrule.linalg.rank import matrix_rank
from chainrule.linalg.solve import pinv

__all__ = ["lstsq"]


class LstsqResult(NamedTuple):
    """What `lstsq` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def lstsq(
    A: Operand, B: Operand, rcond: float | None = None, *, driver: str | None = None
) -> LstsqResult:
    """Return X that minimises ‖A X - B‖, and among those the one with the smallest ‖X‖.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        Matrices.
    B : Tensor, shape (..., m, k), or (..., m) with one vector for each matrix
        Right sides.
    rcond : float, optional
        Singular values up to this part of the largest one count as zero: by default max(m, n) times
        the precision of the dtype.
    driver : {"gelsy", "gelsd", "gelss", "gels"}, optional
        PyTorch's names. All give the same solution here; as there, "gels" leaves out the rank, and
        only "gelsd" and "gelss" give singular values.

    Returns
    -------
    solution : Tensor, shape (..., n, k) or (..., n)
    residuals : Tensor, shape (..., k), or (...) for vectors
        The squared lengths of the columns of A X - B; of size 0 unless m > n and all matrices have
        rank n.
    rank : Tensor of ints, shape (...)
    singular_values : Tensor, shape (..., min(m, n))

    Raises
    ------
    ShapeError, ArgumentError
        If the shapes don't fit; if there is no such driver.

    Notes
    -----
    Computed as pinv(A) B, whose derivative it has [1]_, with what is said there of an `rcond` that
    cuts off more than rounding errors; the rank has none.

    References
    ----------
    .. [1] G. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
       problems whose variables separate", SIAM J. Numer. Anal. 10(2), 1973.

    Examples
    --------
    >>> import chainrule as cr
    >>> A = cr.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> cr.linalg.lstsq(A, cr.tensor([[1.0], [2.0], [3.0]])).residuals
    tensor([9.])
    """
    if driver not in (None, *_DRIVERS):
        raise ArgumentError(
            f"linalg.lstsq: parameter `driver` should be one of {_DRIVERS}, but got {driver!r}"
        )
    a, b = of_one_dtype(matrices(A, "lstsq"), floating(B))
    m, n = a.shape[-2:]
    is_vector = b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]
    b = column(b) if is_vector else b
    if b.ndim < 2 or b.shape[-2] != m:
        raise ShapeError(
            f"linalg.lstsq: input.size(-2) should match other.size(-2), but A has shape "
            f"{list(a.shape)} and B {list(b.shape)}"
        )
    solution = matmul(pinv(a, rtol=rcond), b)
    rank = matrix_rank(a, rtol=rcond)
    xp = namespace(a._array)
    if m > n:
        check_known(a._array, "linalg.lstsq", "the solution is pinv(A) @ B")
    if m > n and bool((rank._array == n).all()):
        residuals = ops.sum(ops.square(ops.abs(matmul(a, solution) - b)), dim=-2)
    else:
        residuals = make(xp.zeros(0, a._array.real.dtype), None)
    if is_vector:
        solution = without_column(solution)
        residuals = without_column(residuals) if residuals.ndim > 1 or m > n else residuals
    singular = make(xp.zeros(0, a._array.real.dtype), None)
    if driver in ("gelsd", "gelss"):
        singular = svdvals(a)
    if driver == "gels":
        rank = make(xp.zeros(0, rank.dtype), None)
    return LstsqResult(solution, residuals, rank, singular)
