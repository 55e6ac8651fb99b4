"""Triangles and diagonals of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS, Operand, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import ShapeError

__all__ = [
    "tril",
    "triu",
    "diag",
]


def tril(x: Operand, /, diagonal: int = 0, *, k: int = 0) -> Tensor:
    """Return `x` with zeros above a diagonal of its last two dimensions.

    Parameters
    ----------
    x : Tensor, shape (..., m, n)
        Matrices.
    diagonal : int, default 0
        Which diagonal is the last one kept: 0 is the main one, 1 the one above. Also spelled `k`.

    Returns
    -------
    Tensor, shape of `x`

    Raises
    ------
    ShapeError
        If there are fewer than two dimensions.

    Notes
    -----
    Derivative: 1 for the elements that are kept.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.tril(cr.tensor([[1, 2], [3, 4]]))
    tensor([[1, 0],
            [3, 4]])
    """
    return _triangle("tril", x, diagonal + k)


def triu(x: Operand, /, diagonal: int = 0, *, k: int = 0) -> Tensor:
    """Return `x` with zeros below a diagonal of its last two dimensions.

    Parameters
    ----------
    x : Tensor, shape (..., m, n)
        Matrices.
    diagonal : int, default 0
        Which diagonal is the first one kept: 0 is the main one, 1 the one above.

    Returns
    -------
    Tensor, shape of `x`

    Raises
    ------
    ShapeError
        If there are fewer than two dimensions.

    Notes
    -----
    Derivative: 1 for the elements that are kept.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.triu(cr.tensor([[1, 2], [3, 4]]))
    tensor([[1, 2],
            [0, 4]])
    """
    return _triangle("triu", x, diagonal + k)


def _triangle(name: str, x: Operand, diagonal: int) -> Tensor:
    x = tensor_of(x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: input tensor must have at least 2 dimensions, got {x.ndim}")
    xp = namespace(x._array)
    mask = getattr(xp, name)(xp.ones(x.shape[-2:], dtype=bool), k=diagonal)
    return RECORDERS["masked"](x, make(mask, None))


def diag(x: Operand, /, diagonal: int = 0) -> Tensor:
    """Return the diagonal of a matrix, or the matrix with a vector on its diagonal.

    Parameters
    ----------
    x : Tensor, shape (m, n) or (n,)
        A matrix, or a vector.
    diagonal : int, default 0
        Which diagonal: 0 is the main one, positive ones lie above it.

    Returns
    -------
    Tensor, 1-d for a matrix and 2-d for a vector

    Raises
    ------
    ShapeError
        If `x` is neither.

    Notes
    -----
    Derivative: 1 on the diagonal.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.diag(cr.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    x = tensor_of(x)
    if x.ndim == 1:
        size = x.shape[0] + abs(diagonal)
        return RECORDERS["index_add"](x, shape=(size, size), key=_diagonal(x.shape[0], diagonal))
    if x.ndim != 2:
        raise ShapeError(f"diag(): Supports 1D or 2D tensors. Got {x.ndim}D")
    rows, columns = x.shape
    length = min(rows + min(diagonal, 0), columns - max(diagonal, 0))
    return RECORDERS["index"](x, key=_diagonal(max(length, 0), diagonal))


def _diagonal(length: int, diagonal: int) -> tuple[Any, Any]:
    steps = np.arange(length)
    return steps - min(diagonal, 0), steps + max(diagonal, 0)
