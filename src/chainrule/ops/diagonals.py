"""Triangular parts and diagonals of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.arguments import Operand, one_dim, tensor_of, whole_number
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace, ndarray
from chainrule.errors import ArgumentError, ShapeError
from chainrule.operation import operation
from chainrule.ops.reductions import sum
from chainrule.ops.reshape import reshape
from chainrule.primitives import elementwise, indexing, shaping

__all__ = [
    "tril",
    "triu",
    "diag",
    "diagonal",
    "diag_embed",
    "diagflat",
    "trace",
]


@operation(inplace=True, array_api=True)
def tril(input: Operand, diagonal: int = 0, *, k: int | None = None) -> Tensor:
    """Return `input` with zeros above a diagonal of its last two dimensions.

    Parameters
    ----------
    input : Tensor, shape (..., m, n)
        Matrices.
    diagonal : int, default 0
        The last diagonal to keep: 0 is the main one, 1 the one above. Also spelled `k`.

    Returns
    -------
    Tensor, shape of `input`

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
    return _keep_triangle("tril", input, diagonal if k is None else k)


@operation(inplace=True, array_api=True)
def triu(input: Operand, diagonal: int = 0, *, k: int | None = None) -> Tensor:
    """Return `input` with zeros below a diagonal of its last two dimensions.

    Parameters
    ----------
    input : Tensor, shape (..., m, n)
        Matrices.
    diagonal : int, default 0
        The first diagonal to keep: 0 is the main one, 1 the one above. Also spelled `k`.

    Returns
    -------
    Tensor, shape of `input`

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
    return _keep_triangle("triu", input, diagonal if k is None else k)


def _keep_triangle(name: str, x: Operand, diagonal: int) -> Tensor:
    """Return `x` with zeros outside the triangle that NumPy's function of this name keeps."""
    x = tensor_of(x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: input tensor must have at least 2 dimensions, got {x.ndim}")
    number = whole_number(diagonal, name, "diagonal")
    if x._array.__class__ is ndarray and x._array.size:
        mask = _triangle(name, x.shape[-2], x.shape[-1], number)
    else:
        xp = namespace(x._array)
        mask = getattr(xp, name)(xp.ones(x.shape[-2:], dtype=bool), k=number)
    return elementwise.masked.apply(x, make(mask, None))


def _triangle(name: str, rows: int, columns: int, diagonal: int) -> Any:
    """Return the mask of a triangle: each row is the one above it, one place further right."""
    line = np.full(rows + columns - 1, name == "triu")
    end = rows + diagonal - (name == "triu")  # of what is on the left, in the last row
    line[: max(end, 0)] = name == "tril"
    return ndarray((rows, columns), bool, line, rows - 1, (-1, 1))


@operation(numpy="diagonal a offset= axis1=dim1 axis2=dim2")
def diagonal(input: Operand, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a diagonal of two dimensions as the last dimension of the result.

    Parameters
    ----------
    input : Tensor
        Of at least two dimensions.
    offset : int, default 0
        The diagonal: 0 is the main one, positive ones are above it.
    dim1, dim2 : int, default 0 and 1
        The two dimensions.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ArgumentError
        If the two dimensions are the same.
    OutOfBoundsError
        If a dimension is out of range.

    Notes
    -----
    Derivative: 1 on the diagonal.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.zeros(2, 2)
    >>> cr.diagonal(x).fill_(1)
    tensor([1., 1.])
    >>> x
    tensor([[1., 0.],
            [0., 1.]])
    """
    input = tensor_of(input)
    first, second = one_dim(dim1, input.ndim), one_dim(dim2, input.ndim)
    if first == second:
        raise ArgumentError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    order = (*[i for i in range(input.ndim) if i not in (first, second)], first, second)
    if order != tuple(range(input.ndim)):
        input = shaping.permute_dims.apply(input, axes=order)
    rows, columns = input.shape[-2:]
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    key = (Ellipsis, *_diagonal_indices(length, offset))
    return indexing.diagonal.apply(input, offset=offset, key=key)


@operation()
def diag_embed(input: Operand, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices with the last dimension of `input` on a diagonal, and zeros elsewhere.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    offset : int, default 0
        The diagonal: 0 is the main one, positive ones are above it.
    dim1, dim2 : int, default -2 and -1
        The dimensions of the matrices in the result.

    Returns
    -------
    Tensor, of one dimension more

    Raises
    ------
    ArgumentError
        If the two dimensions are the same.
    ShapeError
        If `input` has no dimension.

    Notes
    -----
    Derivative: 1 on the diagonal.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.diag_embed(cr.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    input = tensor_of(input)
    if input.ndim == 0:
        raise ShapeError("diag_embed: expected a tensor of at least 1 dimension, got 0")
    ndim = input.ndim + 1
    first, second = one_dim(dim1, ndim), one_dim(dim2, ndim)
    if first == second:
        raise ArgumentError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = input.shape[-1] + abs(offset)
    key = (Ellipsis, *_diagonal_indices(input.shape[-1], offset))
    out = indexing.index_add.apply(input, shape=(*input.shape[:-1], size, size), key=key)
    if (first, second) == (ndim - 2, ndim - 1):
        return out
    order = list(range(ndim - 2))
    for position, axis in sorted([(first, ndim - 2), (second, ndim - 1)]):
        order.insert(position, axis)
    return shaping.permute_dims.apply(out, axes=tuple(order))


@operation(numpy="diagflat v k=offset")
def diagflat(input: Operand, offset: int = 0) -> Tensor:
    """Return the matrix with all elements of `input`, in row-major order, on a diagonal.

    Notes
    -----
    Derivative: 1 on the diagonal.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.diagflat(cr.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(reshape(input, -1), offset)


@operation()
def trace(input: Operand) -> Tensor:
    """Return the sum of the diagonal of a matrix.

    Parameters
    ----------
    input : Tensor, shape (m, n)
        A matrix.

    Returns
    -------
    Tensor, 0-d
        Of the dtype of `input`; int64 for integers.

    Raises
    ------
    ShapeError
        If `input` is not a matrix.

    Notes
    -----
    Derivative: 1 on the diagonal.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.trace(cr.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    input = tensor_of(input)
    if input.ndim != 2:
        raise ShapeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return sum(diagonal(input))


@operation(numpy="diag v k=diagonal")
def diag(input: Operand, diagonal: int = 0) -> Tensor:
    """Return the diagonal of a matrix, or the matrix with a vector on its diagonal.

    Parameters
    ----------
    input : Tensor, shape (m, n) or (n,)
        A matrix, or a vector.
    diagonal : int, default 0
        The diagonal: 0 is the main one, positive ones are above it.

    Returns
    -------
    Tensor, 1-d for a matrix and 2-d for a vector

    Raises
    ------
    ShapeError
        If `input` is neither.

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
    input = tensor_of(input)
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise ShapeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    rows, columns = input.shape
    length = min(rows + min(diagonal, 0), columns - max(diagonal, 0))
    return indexing.index.apply(input, key=_diagonal_indices(max(length, 0), diagonal))


def _diagonal_indices(length: int, diagonal: int) -> tuple[Any, Any]:
    """Return the row and column indices of a diagonal's elements."""
    steps = np.arange(length)
    return steps - min(diagonal, 0), steps + max(diagonal, 0)
