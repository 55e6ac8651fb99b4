"""The largest singular values of matrices, with their vectors."""

from __future__ import annotations

from chainrule.arguments import RECORDERS, Operand
from chainrule.errors import ArgumentError
from chainrule.linalg.arguments import matrices
from chainrule.linalg.deprecated import SVDResult, svd
from chainrule.ops import mean

__all__ = ["pca_lowrank", "svd_lowrank"]


def svd_lowrank(
    A: Operand, q: int | None = 6, niter: int = 2, M: Operand | None = None
) -> SVDResult:
    """Return the q largest singular values of matrices A - M, with their vectors.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        Real or complex matrices.
    q : int, default 6
        How many, min(m, n) at most; 6 if None.
    niter : int, default 2
        Plays no part: PyTorch approximates, by so many iterations from random vectors.
    M : Tensor, optional
        What is subtracted from `A`, with which its shape broadcasts.

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
    The first columns of `svd`, which is computed as a whole, and has these derivatives.

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
        x = RECORDERS["subtract"](x, matrices(M, "svd_lowrank"))
    u, s, v = svd(x)
    return SVDResult(u[..., :count], s[..., :count], v[..., :count])


def pca_lowrank(A: Operand, q: int | None = None, center: bool = True, niter: int = 2) -> SVDResult:
    """Return the principal components of observations, which are the rows of matrices.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        m observations of n variables.
    q : int, optional
        How many components: the smallest of 6, m and n if left out.
    center : bool, default True
        Subtract the mean observation.
    niter : int, default 2
        Plays no part, as of `svd_lowrank`.

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
