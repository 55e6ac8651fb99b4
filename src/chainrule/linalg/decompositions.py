"""Cholesky and QR decompositions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from chainrule import ops
from chainrule.arguments import Operand
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import ArgumentError, LinAlgError
from chainrule.linalg.arguments import (
    adjoint,
    apply_lapack,
    is_tracked,
    matmul,
    matrices,
    square,
)
from chainrule.primitives import decompositions

__all__ = ["cholesky", "qr"]

Array = Any


def cholesky(A: Operand, *, upper: bool = False) -> Tensor:
    """Return the Cholesky factor L of Hermitian positive-definite matrices, A = L Lᴴ.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Only the lower triangle is read (the upper one, for ``upper=True``).
    upper : bool, default False
        Return Lᴴ instead.

    Returns
    -------
    Tensor, shape of `A`
        Triangular, with a positive diagonal.

    Raises
    ------
    LinAlgError
        If a matrix isn't positive-definite: the message names the first minor that isn't.
    ShapeError
        If the matrices aren't square.

    Notes
    -----
    Derivative: L Φ(L⁻¹ dA L⁻ᴴ), where Φ takes the lower triangle and half of the diagonal [1]_. The
    gradient is that of a function of Hermitian matrices, and Hermitian itself.

    References
    ----------
    .. [1] I. Murray, "Differentiation of the Cholesky decomposition", arXiv:1602.07527, 2016.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.cholesky(cr.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    x = square(A, "cholesky")
    upper = bool(upper)

    def reason(matrix: Array) -> str:
        return _not_positive_definite(matrix.swapaxes(-1, -2).conj() if upper else matrix)

    result: Tensor = apply_lapack("cholesky", decompositions.cholesky, reason, x, upper=upper)
    _check_diagonal(result._array, x._array, reason)
    return result


def _check_diagonal(factor: Array, x: Array, reason: Callable[[Array], str]) -> None:
    """Raise if a factor has nan on its diagonal: LAPACK accepts nan in its input."""
    xp = namespace(x)
    bad = xp.isnan(factor.diagonal(0, -2, -1)).any(axis=-1) if xp.known else None
    if bad is not None and bad.any():
        first = bad.reshape(-1).argmax()
        prefix = f"(Batch element {first}): " if x.ndim > 2 else ""
        raise LinAlgError(f"linalg.cholesky: {prefix}{reason(x.reshape(-1, *x.shape[-2:])[first])}")


def _not_positive_definite(matrix: Array) -> str:
    return (
        "The factorization could not be completed because the input is not positive-definite (the "
        f"leading minor of order {leading_minor(matrix)} is not positive-definite)."
    )


def leading_minor(matrix: Array) -> int:
    """Return the order of the first leading minor that is not positive-definite."""
    orders = range(1, matrix.shape[-1] + 1)
    return next((k for k in orders if not _is_positive(matrix[:k, :k])), matrix.shape[-1])


def _is_positive(matrix: Array) -> bool:
    xp = namespace(matrix)
    try:
        factor = xp.linalg.cholesky(matrix)
    except ValueError:  # base class of NumPy's LinAlgError
        return False
    return not (xp.isnan(matrix).any() or xp.isnan(factor).any())


class QRResult(NamedTuple):
    """Result of `qr`."""

    Q: Tensor
    R: Tensor


def qr(A: Operand, mode: str = "reduced") -> QRResult:
    """Return a matrix with orthonormal columns and an upper triangular one whose product is A.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        Real or complex matrices.
    mode : {"reduced", "complete", "r"}
        The shapes of the result: with k = min(m, n) columns; with all m; or R alone, where Q is
        empty.

    Returns
    -------
    Q : Tensor, shape (..., m, k) or (..., m, m)
    R : Tensor, shape (..., k, n) or (..., m, n)

    Raises
    ------
    ArgumentError
        If there is no such mode.
    LinAlgError
        In a backward pass, if the first k columns are linearly dependent.

    Notes
    -----
    Derivative: [1]_; for matrices with more columns than rows, that of the first m columns and of
    Qᴴ times the rest. The columns that "complete" adds are defined up to a rotation; functions that
    don't depend on it can be differentiated through them, too (not in PyTorch).

    References
    ----------
    .. [1] S. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions with
       application in optimum experimental design", arXiv:1001.1654, 2010.

    Examples
    --------
    >>> import chainrule as cr
    >>> Q, R = cr.linalg.qr(cr.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> (Q @ R).round(decimals=4)
    tensor([[3., 1.],
            [4., 2.]])
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(
            f"linalg.qr: qr received unrecognized mode {mode!r}: expected one of 'reduced', 'r', "
            "or 'complete'"
        )
    x = matrices(A, "qr")
    m, n = x.shape[-2:]
    settings = {"complete": mode == "complete" and m > n}
    if n > m and is_tracked(x):
        q, r = decompositions.qr.apply(x[..., :m], **settings)
        r = ops.concat([r, matmul(adjoint(q), x[..., m:])], axis=-1)
    else:
        q, r = decompositions.qr.apply(x, **settings)
    if mode == "r":
        q = make(namespace(x._array).zeros(0, x.dtype), None)
    return QRResult(q, r)
