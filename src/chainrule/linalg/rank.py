"""Matrix ranks, and the tolerances below which a singular value counts as zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.arguments import Operand
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.linalg.arguments import matrices, square

__all__ = ["matrix_rank"]


def tolerances(x: Tensor, atol: Operand | None, rtol: Operand | None) -> tuple[Any, Any]:
    """Return both tolerances as numbers, or as arrays of one column for a batch."""
    if rtol is None:
        precision = float(np.finfo(x.dtype).eps) * max(x.shape[-2:])
        rtol = precision if atol is None else 0.0
    return _column(atol if atol is not None else 0.0), _column(rtol)


def _column(value: Any) -> Any:
    array = value._array if isinstance(value, Tensor) else value
    return array[..., None] if getattr(array, "ndim", 0) else float(array)


def matrix_rank(
    A: Operand,
    tol: Operand | None = None,
    hermitian: bool = False,
    *,
    atol: Operand | None = None,
    rtol: Operand | None = None,
) -> Tensor:
    """Return the rank of matrices: how many singular values are not zero.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        Real or complex matrices.
    tol : number or Tensor, optional
        An older name of `atol`.
    hermitian : bool, default False
        Take `A` as Hermitian, and the magnitudes of eigenvalues for singular values.
    atol, rtol : number or Tensor of shape (...), optional
        Singular values that count as zero: see `pinv`.

    Returns
    -------
    Tensor of int64, shape (...)
        Ranks have no derivative.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.matrix_rank(cr.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    x = square(A, "matrix_rank") if hermitian else matrices(A, "matrix_rank")
    low, part = tolerances(x, tol if atol is None else atol, rtol)
    array = x._array
    xp = namespace(array)
    if hermitian:
        sizes = xp.abs(xp.linalg.eigvalsh(array))
    else:
        sizes = xp.linalg.svd(array, compute_uv=False)
    if 0 in sizes.shape:
        return make(xp.zeros(sizes.shape[:-1], "int64"), None)
    floor = xp.maximum(low, part * xp.max(sizes, axis=-1, keepdims=True))
    return make(xp.asarray((sizes > floor).sum(axis=-1)), None)
