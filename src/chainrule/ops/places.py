"""Places in a tensor by number, and one number in all places."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS, Operand, Sizes, cast, sizes_of, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import CPU, move, namespace
from chainrule.errors import DTypeError, OutOfBoundsError, ShapeError
from chainrule.ops.views import storage_offset as storage_offset_of
from chainrule.ops.views import stride as stride_of

__all__ = ["as_strided", "fill", "unravel_index"]


def unravel_index(indices: Operand, shape: Sizes) -> tuple[Tensor, ...]:
    """Return the indices, dimension by dimension, of elements numbered in row-major order.

    Parameters
    ----------
    indices : Tensor of integers
        Numbers of elements.
    shape : int or sequence of ints
        The shape of the tensor that they are in.

    Returns
    -------
    tuple of Tensors of int64, shape of `indices`
        One for each dimension of `shape`.

    Raises
    ------
    DTypeError
        If `indices` are no integers.
    OutOfBoundsError
        If a number is that of no element.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unravel_index(cr.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    numbers = tensor_of(indices)
    if numbers.dtype.kind not in "iu":
        raise DTypeError(f"expected 'indices' to be integer dtype, but got {numbers.dtype}")
    sizes = sizes_of((shape,))
    try:
        found = np.unravel_index(move(numbers._array, CPU), sizes)
    except ValueError as error:
        raise OutOfBoundsError(
            f"unravel_index: an index is out of range for the shape {list(sizes)}: {error}"
        ) from None
    return tuple(
        [make(move(namespace(part).asarray(part), numbers.device), None) for part in found]
    )


def fill(input: Operand, value: Any) -> Tensor:
    """Return a tensor like `input` with one value everywhere.

    Parameters
    ----------
    input : Tensor
        Its shape and dtype are taken.
    value : number or Tensor of shape ()
        What to fill with.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ShapeError
        If `value` has dimensions.

    Notes
    -----
    Derivatives: 0 for `input`, 1 for `value` at each element.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fill(cr.zeros(2), 3)
    tensor([3., 3.])
    """
    x, number = tensor_of(input), tensor_of(value)
    if number.ndim:
        raise ShapeError(
            "fill only supports 0-dimension value tensor but got tensor with "
            f"{number.ndim} dimensions"
        )
    spread = RECORDERS["broadcast_to"](cast(number, x.dtype), shape=x.shape)
    return RECORDERS["clone"](spread)


def as_strided(
    input: Operand, size: Sizes, stride: Sizes, storage_offset: int | None = None
) -> Tensor:
    """Return elements of the tensor's memory, counted by steps in it instead of dimensions.

    Parameters
    ----------
    input : Tensor
        Whose memory.
    size, stride : sequence of ints
        The shape to have, and by how many elements neighbours are apart along each dimension.
    storage_offset : int, optional
        How many elements of the memory come before the first one: as of `input` if left out.

    Returns
    -------
    Tensor, shape `size`
        A copy that can't be written to (PyTorch: a view).

    Raises
    ------
    ShapeError
        If `size` and `stride` differ in length, one is negative, or a place in memory is that of
        no element of `input`.

    See Also
    --------
    unfold : stretches along a dimension, as a view.

    Notes
    -----
    Derivative: 1 for each time that an element is there.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.as_strided(cr.arange(5), (3, 3), (1, 1))
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    x, sizes, steps = tensor_of(input), sizes_of((size,)), sizes_of((stride,))
    if len(sizes) != len(steps):
        raise ShapeError(
            f"as_strided: mismatch in length of strides and shape: {list(steps)} and {list(sizes)}"
        )
    if min((*sizes, *steps), default=0) < 0:
        raise ShapeError(
            "as_strided: Negative strides and sizes are not supported, got strides "
            f"{list(steps)} and the shape {list(sizes)}"
        )
    first = 0 if storage_offset is None else storage_offset - storage_offset_of(x)
    places = np.full(sizes, first)
    for axis, (length, step) in enumerate(zip(sizes, steps, strict=True)):
        places += (np.arange(length) * step).reshape(-1, *(1,) * (len(sizes) - axis - 1))
    if not x.ndim:
        x = RECORDERS["reshape"](x, shape=(1,))
    result = RECORDERS["index"](x, key=_elements_at(x, places))
    if isinstance(result._array, np.ndarray):
        result._array.flags.writeable = False  # a write would not reach the memory
    return result


def _elements_at(x: Tensor, places: Any) -> tuple[Any, ...]:
    """Return the indices of the elements at places in memory, counted from the first one."""
    steps, indices = stride_of(x), [np.zeros_like(places)] * x.ndim
    inside = np.asarray(places >= 0)
    rest = places
    for axis in sorted(range(x.ndim), key=lambda axis: -steps[axis]):
        if x.shape[axis] > 1 and steps[axis] > 0:
            indices[axis], rest = np.divmod(rest, steps[axis])
            inside &= indices[axis] < x.shape[axis]
    inside &= rest == 0
    if places.size and not (inside.all() and x.numel() and min(steps) >= 0):
        raise ShapeError(
            "as_strided: setStorage: a place is out of bounds, or is that of no element of the "
            f"tensor, of shape {list(x.shape)} and strides {list(steps)}: take it of the tensor "
            "that this one is a view of"
        )
    return tuple(indices)
