"""Changes of shape: reshaping, dimensions of length 1, broadcasting. Most results are views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.arguments import (
    Operand,
    Sizes,
    either,
    many_dims,
    one_dim,
    sizes_of,
    tensor_of,
)
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known, namespace, ndarray
from chainrule.errors import ArgumentError, ArgumentTypeError, ShapeError
from chainrule.operation import operation
from chainrule.primitives import shaping

__all__ = [
    "reshape",
    "flatten",
    "ravel",
    "squeeze",
    "unsqueeze",
    "expand_dims",
    "broadcast_to",
    "broadcast_shapes",
    "broadcast_arrays",
    "broadcast_tensors",
]

_reshape = shaping.reshape.apply
_broadcast_to = shaping.broadcast_to.apply


@operation()
def reshape(input: Operand, *sizes: Any, shape: Sizes | None = None) -> Tensor:
    """Return the elements of `input`, in row-major order, in another shape.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    *sizes : int, or one sequence of ints
        ``reshape(x, (2, 3))`` and ``x.reshape(2, 3)`` are the same. One size may be -1: it is
        inferred from the others. Also spelled `shape`.

    Returns
    -------
    Tensor, shape `shape`
        A view if the memory layout allows it, else a copy.

    Raises
    ------
    ShapeError
        If the number of elements differs.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.reshape(cr.arange(4), (2, -1))
    tensor([[0, 1],
            [2, 3]])
    """
    input, requested = tensor_of(input), sizes_of(sizes if shape is None else (shape,))
    new_shape = view_shape(input, requested)
    if new_shape is not None:
        return _reshape(input, shape=new_shape)
    return shaping.reshape_copy.apply(input, shape=infer_shape(input, requested))


def view_shape(x: Tensor, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape of a view of `x`, a size of -1 inferred; None if it needs a copy."""
    array: Any = x._array
    known = array.__class__ is ndarray or is_known(array)
    contiguous = known and array.flags.c_contiguous
    if contiguous and math.prod(sizes) == array.size and (not sizes or min(sizes) >= 0):
        return sizes
    if min(sizes, default=0) < -1:
        return None
    try:
        view = array.reshape(sizes) if contiguous else namespace(array).reshaped_view(array, sizes)
    except ValueError:
        return None
    shape: tuple[int, ...] = view.shape
    return shape


def infer_shape(x: Tensor, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape with a size of -1 inferred from the number of elements."""
    count = x.numel()
    unknown = [i for i, size in enumerate(sizes) if size < 0]
    known = math.prod([size for size in sizes if size >= 0])
    if len(unknown) > 1:
        raise ShapeError(
            f"only one dimension can be inferred, but the shape is {list(sizes)}: say -1 once, and "
            f"the other sizes, of {list(x.shape)}"
        )
    if any(sizes[i] != -1 for i in unknown):
        raise ShapeError(f"invalid shape dimension {sizes[unknown[0]]} in {list(sizes)}")
    if unknown and known == 0:
        raise ShapeError(
            f"cannot reshape tensor of {count} elements into shape {list(sizes)} because the "
            "unspecified dimension size -1 can be any value and is ambiguous"
        )
    if count % known if unknown else known != count:
        rest = f"no multiple of {known}" if unknown else f"not {known}"
        raise ShapeError(
            f"shape '{list(sizes)}' is invalid for input of size {count}: {list(x.shape)} has "
            f"{count} elements, {rest}. One size may be -1, which is then computed"
        )
    if not unknown:
        return sizes
    return (*sizes[: unknown[0]], count // known, *sizes[unknown[0] + 1 :])


@operation()
def flatten(input: Operand, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return `input` with the dimensions from `start_dim` to `end_dim` merged into one.

    Parameters
    ----------
    input : Tensor
        Any tensor; a 0-d one becomes 1-d.
    start_dim, end_dim : int, default 0 and -1
        The first and the last of the dimensions, included.

    Returns
    -------
    Tensor
        A view if the memory layout allows it.

    Raises
    ------
    ArgumentError
        If `start_dim` comes after `end_dim`.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.flatten(cr.zeros(2, 3, 4), 1).shape
    (2, 12)
    """
    input = tensor_of(input)
    first, last = one_dim(start_dim, input.ndim), one_dim(end_dim, input.ndim)
    if first > last:
        raise ArgumentError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last and input.ndim:
        return tensor_of(input)
    middle = math.prod(input.shape[first : last + 1])
    return reshape(input, (*input.shape[:first], middle, *input.shape[last + 1 :]))


@operation()
def ravel(input: Operand) -> Tensor:
    """Return the elements of `input`, in row-major order, as a vector.

    Notes
    -----
    A view if memory holds the elements in this order. Derivative: 1; the gradient is reshaped
    back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ravel(cr.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    flat = reshape(input, -1)
    if namespace(flat._array).is_contiguous(flat._array) is False:
        return shaping.reshape_copy.apply(flat, shape=flat.shape)
    return flat


@operation()
def squeeze(input: Operand, dim: int | Sequence[int] | None = None, *, axis: Any = None) -> Tensor:
    """Return `input` without dimensions of length 1.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    dim : int or sequence of ints, optional
        The dimensions to remove, if they have length 1; all if left out. Also spelled `axis`.

    Returns
    -------
    Tensor
        A view.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.squeeze(cr.zeros(1, 2, 1)).shape
    (2,)
    """
    input = tensor_of(input)
    dims = many_dims(either(dim, axis), input.ndim)
    kept = [n for i, n in enumerate(input.shape) if n != 1 or (dims is not None and i not in dims)]
    return _reshape(input, shape=tuple(kept))


@operation()
def unsqueeze(input: Operand, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """Return `input` with a new dimension of length 1.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    dim : int
        The position of the new dimension in the result. Also spelled `axis`.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    OutOfBoundsError
        If `dim` is out of range.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unsqueeze(cr.zeros(2), 0).shape
    (1, 2)
    """
    input = tensor_of(input)
    number = one_dim(either(dim, axis), input.ndim + 1)
    return _reshape(input, shape=(*input.shape[:number], 1, *input.shape[number:]))


@operation(method=False, numpy="expand_dims a axis=", array_api=True)
def expand_dims(input: Operand, axis: int | Sequence[int]) -> Tensor:
    """Return `input` with new dimensions of length 1: the array API's `unsqueeze`.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    axis : int or sequence of ints
        The positions of the new dimensions in the result.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    OutOfBoundsError
        If an axis is out of range.
    ArgumentError
        If an axis is repeated.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.expand_dims(cr.zeros(2), (0, -1)).shape
    (1, 2, 1)
    """
    input = tensor_of(input)
    if axis is None:
        raise ArgumentTypeError(
            "expand_dims: expected an int or a sequence of ints as the axis, got None"
        )
    count = len(axis) if isinstance(axis, Sequence) else 1
    new = many_dims(axis, input.ndim + count) or ()
    sizes = iter(input.shape)
    return _reshape(
        input, shape=tuple([1 if i in new else next(sizes) for i in range(input.ndim + count)])
    )


@operation()
def expand(x: Tensor, /, *sizes: Any) -> Tensor:
    """Return `x` with dimensions of length 1 repeated, without copying.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    *sizes : int, or one sequence of ints
        The new shape; -1 keeps a size. New dimensions come first.

    Returns
    -------
    Tensor
        A read-only view: several of its elements share memory.

    Raises
    ------
    ShapeError
        If a size differs from that of a dimension longer than 1.

    Notes
    -----
    Derivative: 1 for each repetition: the gradient is summed over them.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ones(2, 1).expand(-1, 3).shape
    (2, 3)
    """
    shape = sizes_of(sizes)
    if -1 in shape:
        added = len(shape) - x.ndim
        if -1 in shape[: max(added, 0)]:
            raise ShapeError("expand: -1 is not allowed in a leading, non-existing dimension")
        shape = tuple([x.shape[i - added] if n == -1 else n for i, n in enumerate(shape)])
    return _expand(x, shape)


@operation(numpy="broadcast_to array shape= subok=-", array_api=True)
def broadcast_to(input: Operand, shape: Sizes) -> Tensor:
    """Return `input` broadcast to `shape`, without copying.

    Parameters
    ----------
    input : Tensor
        Any tensor whose shape broadcasts to `shape`.
    shape : sequence of ints
        The new shape.

    Returns
    -------
    Tensor, shape `shape`
        A read-only view.

    Raises
    ------
    ShapeError
        If `input` does not broadcast to `shape`.

    Notes
    -----
    Derivative: 1 for each repetition: the gradient is summed over them.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.broadcast_to(cr.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return _expand(tensor_of(input), sizes_of((shape,)))


def _expand(x: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Return `x` broadcast to `sizes`, as a read-only view if the shape changes."""
    lengths = x._array.shape
    added = len(sizes) - len(lengths)
    if added < 0:
        raise ShapeError(
            f"broadcast_to: the number of sizes provided ({len(sizes)}) must be greater or equal "
            f"to the number of dimensions in the tensor ({x.ndim})"
        )
    for i, length in enumerate(lengths):
        if length != 1 and length != sizes[added + i]:
            raise ShapeError(
                f"The expanded size of the tensor ({sizes[added + i]}) must match the existing "
                f"size ({length}) at non-singleton dimension {added + i}. Target sizes: "
                f"{list(sizes)}. Tensor sizes: {list(lengths)}"
            )
    result = _broadcast_to(x, shape=sizes)
    if sizes != lengths and isinstance(result._array, ndarray):
        result._array.flags.writeable = False  # a write would reach several elements
    return result


# --- broadcasting ---------------------------------------------------------------------------------


@operation(method=False, array_api=True)
def broadcast_shapes(*shapes: Sizes) -> tuple[int, ...]:
    """Return the shape that several shapes broadcast to.

    Parameters
    ----------
    *shapes : tuple of ints, or int
        Aligned at their last dimensions; a length of 1 broadcasts to any length.

    Raises
    ------
    ShapeError
        If the shapes don't broadcast.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    sizes = [sizes_of((shape,)) for shape in shapes]
    try:
        return np.broadcast_shapes(*sizes)
    except ValueError:
        raise ShapeError(
            f"broadcast_shapes(): the shapes {', '.join(map(str, map(list, sizes)))} can't be "
            "broadcast: aligned at their last dimensions, lengths must be equal or 1"
        ) from None


@operation(method=False, array_api="broadcast_arrays")
def broadcast_tensors(*tensors: Operand) -> tuple[Tensor, ...]:
    """Return tensors broadcast to one shape, without copying.

    Parameters
    ----------
    *tensors : Tensor, array or number
        Their shapes broadcast; their dtypes stay.

    Returns
    -------
    tuple of Tensors
        Views; read-only where they had to be broadcast.

    Raises
    ------
    ShapeError
        If the shapes don't broadcast.

    Notes
    -----
    Derivative: 1 for each repetition: the gradient is summed over them.

    Examples
    --------
    >>> import chainrule as cr
    >>> x, y = cr.broadcast_tensors(cr.zeros(2, 1), cr.zeros(3))
    >>> x.shape, y.shape
    ((2, 3), (2, 3))
    """
    operands = as_tensors(tensors)
    shape = broadcast_shapes(*[operand.shape for operand in operands])
    return tuple([broadcast_to(operand, shape) for operand in operands])


broadcast_arrays = broadcast_tensors


@operation()
def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """Return the tensor expanded to the shape of `other`."""
    return expand(x, other.shape)


@operation()
def reshape_as(x: Tensor, other: Tensor) -> Tensor:
    """Return the tensor reshaped to the shape of `other`."""
    return reshape(x, other.shape)
