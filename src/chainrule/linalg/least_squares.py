"""Least squares, and decompositions of low rank."""

from __future__ import annotations

from typing import NamedTuple

from chainrule import ops
from chainrule.arguments import Operand, floating
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import check_known, namespace
from chainrule.errors import ArgumentError, ShapeError
from chainrule.linalg.arguments import column, matmul, matrices, with_common_dtype, without_column
from chainrule.linalg.deprecated import SVDResult, svd
from chainrule.linalg.eigen_svd import svdvals
from chainrule.linalg.rank import matrix_rank
from chainrule.linalg.solve import pinv
from chainrule.ops import mean
from chainrule.primitives import elementwise

__all__ = [
    "lstsq",
    "pca_lowrank",
    "svd_lowrank",
]


class LstsqResult(NamedTuple):
    """Result of `lstsq`."""

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
        Singular values up to this fraction of the largest one count as zero: by default max(m, n)
        times the precision of the dtype.
    driver : {"gelsy", "gelsd", "gelss", "gels"}, optional
        PyTorch's names. All compute the same solution; "gels" omits the rank, and only "gelsd" and
        "gelss" return singular values.

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
    Computed as pinv(A) B, with its derivative [1]_; see the note of `pinv` on an `rcond` that cuts
    off more than rounding errors. The rank has no derivative.

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
    a, b = with_common_dtype(matrices(A, "lstsq"), floating(B))
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


# --- decompositions of low rank -------------------------------------------------------------------


def svd_lowrank(
    A: Operand, q: int | None = 6, niter: int = 2, M: Operand | None = None
) -> SVDResult:
    """Return the q largest singular values of matrices A - M, with their vectors.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        Real or complex matrices.
    q : int, default 6
        Number of singular values, min(m, n) at most; 6 if None.
    niter : int, default 2
        Accepted for compatibility, without effect: PyTorch approximates by this many iterations.
    M : Tensor, optional
        Subtracted from `A`; its shape broadcasts with that of `A`.

    Returns
    -------
    U : Tensor, shape (..., m, q)
    S : Tensor, shape (..., q); real
    V : Tensor, shape (..., n, q)

    Raises
    ------
    ArgumentError
        If `q` is out of range.

    Notes
    -----
    The first columns of the complete `svd`, with its derivatives.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.svd_lowrank(cr.tensor([[3.0, 0.0], [0.0, -4.0]]), q=1).S
    tensor([4.])
    """
    x = matrices(A, "svd_lowrank")
    count, most = 6 if q is None else q, min(x.shape[-2:])
    if not 0 <= count <= most:
        raise ArgumentError(
            f"svd_lowrank: q(={count}) must be non-negative integer and not greater than "
            f"min(m, n)={most}"
        )
    if M is not None:
        x = elementwise.subtract.apply(x, matrices(M, "svd_lowrank"))
    u, s, v = svd(x)
    return SVDResult(u[..., :count], s[..., :count], v[..., :count])


def pca_lowrank(A: Operand, q: int | None = None, center: bool = True, niter: int = 2) -> SVDResult:
    """Return the principal components of observations, which are the rows of matrices.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        m observations of n variables.
    q : int, optional
        Number of components: the smallest of 6, m and n if left out.
    center : bool, default True
        Subtract the mean observation.
    niter : int, default 2
        Accepted for compatibility, without effect.

    Returns
    -------
    U : Tensor, shape (..., m, q)
    S : Tensor, shape (..., q); real
        S² / (m - 1) are the variances along the components.
    V : Tensor, shape (..., n, q)
        The components are its columns: ``A @ V`` are the observations' coordinates.

    Raises
    ------
    ArgumentError
        If `q` is out of range.

    Examples
    --------
    >>> import chainrule as cr
    >>> U, S, V = cr.pca_lowrank(cr.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), q=1)
    >>> V.abs()
    tensor([[0.4472],
            [0.8944]])
    """
    x = matrices(A, "pca_lowrank")
    count, most = min(6, *x.shape[-2:]) if q is None else q, min(x.shape[-2:])
    if not 0 <= count <= most:
        raise ArgumentError(
            f"pca_lowrank: q(={count}) must be non-negative integer and not greater than "
            f"min(m, n)={most}"
        )
    return svd_lowrank(x, count, niter, mean(x, -2, True) if center else None)
