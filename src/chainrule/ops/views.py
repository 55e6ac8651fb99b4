"""Methods of tensors that look at the same memory otherwise, and their opposites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.arguments import (
    DTypeLike,
    Operand,
    Sizes,
    cast,
    dtype_of,
    one_dim,
    sizes_of,
    tensor_of,
    whole_number,
)
from chainrule.autograd.inplace import set_item
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import CPU, move, namespace, storage_of
from chainrule.errors import DTypeError, OutOfBoundsError, ShapeError
from chainrule.operation import operation
from chainrule.ops.diagonals import diagonal
from chainrule.ops.reshape import full_shape, view_shape
from chainrule.ops.wrappers import reshape_result
from chainrule.primitives import elementwise, indexing, reductions, shaping

__all__ = [
    "narrow",
    "narrow_copy",
    "select",
    "unflatten",
    "select_scatter",
    "slice_scatter",
    "diagonal_scatter",
    "as_strided",
    "fill",
    "unravel_index",
]

_DTYPES = (np.dtype, type)


@operation()
def view(x: Tensor, /, *sizes: Any, size: Sizes | None = None, dtype: DTypeLike = None) -> Tensor:
    """Return a view of `x` in another shape; the arguments are those of `reshape`.

    Parameters
    ----------
    dtype : dtype, optional
        In the place of a shape: read the bits of the elements as numbers of this dtype. If it is
        narrower or wider, the last dimension becomes longer or shorter.

    Raises
    ------
    ShapeError
        If the memory layout needs a copy: use `reshape`. If the last dimension can't hold the
        other dtype.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back. Another dtype has none.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3).view(-1).shape
    (6,)
    """
    if len(sizes) == 1 and isinstance(sizes[0], _DTYPES):
        return _bits(x, sizes[0])
    if dtype is not None:
        return _bits(x, dtype)
    wanted = sizes_of(sizes if size is None else (size,))
    fitting = view_shape(x, wanted)
    if fitting is None:
        full_shape(x, wanted)  # which raises if it's the number of elements that doesn't fit
        raise ShapeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return shaping.reshape.apply(x, shape=fitting)


def _bits(x: Tensor, dtype: DTypeLike) -> Tensor:
    target = dtype_of(dtype)
    if target == x.dtype:
        return shaping.reshape.apply(x, shape=x.shape)
    times = target.itemsize / x.dtype.itemsize
    as_other = f"to view {x.dtype} as {target} (different element sizes), but got"
    if times != 1 and x.ndim == 0:
        raise ShapeError(f"view: self.dim() cannot be 0 {as_other} a number")
    if times > 1 and x.shape[-1] % times:
        raise ShapeError(
            f"view: self.size(-1) must be divisible by {times:.0f} {as_other} {x.shape[-1]}"
        )
    try:
        return make(x._array.view(target), None)
    except ValueError:
        raise ShapeError(
            f"view: self.stride(-1) must be 1 {as_other} {x.stride(-1)}: take contiguous() first"
        ) from None


@operation()
def contiguous(x: Tensor, /) -> Tensor:
    """Return `x` itself if its elements lie in memory in row-major order, else a copy that does.

    Notes
    -----
    Derivative: 1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3).t().contiguous().is_contiguous()
    True
    """
    found = namespace(x._array).is_contiguous(x._array)
    if found is None:  # a compiler that can't tell which of the two it is refuses writes to it
        return reshape_result(reshape_result(x, (x.numel(),)), x.shape)
    return x if found else shaping.reshape_copy.apply(x, shape=x.shape)


@operation()
def sum_to_size(x: Tensor, /, *sizes: Any) -> Tensor:
    """Return the tensor summed to a shape that broadcasts to its own.

    Parameters
    ----------
    *sizes : int, or one sequence of ints
        The shape to have.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If that shape does not broadcast to the tensor's.

    Notes
    -----
    Derivative: 1 for every element.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    shape = sizes_of(sizes)
    lead = x.ndim - len(shape)
    fits = lead >= 0 and all(
        [n in (1, length) for n, length in zip(shape, x.shape[lead:], strict=True)]
    )
    if not fits:
        raise ShapeError(
            f"size {list(shape)} is not expandable to size {list(x.shape)}: sum_to_size() sums "
            "over leading dimensions, and over those where the size is 1"
        )
    axes = tuple([i for i in range(x.ndim) if i < lead or shape[i - lead] != x.shape[i]])
    return reshape_result(reductions.sum.apply(x, axis=axes, keepdims=True), shape) if axes else x


@operation()
def stride(x: Tensor, dim: int | None = None) -> Any:
    """Return by how many elements of memory neighbours are apart, along each dimension or one.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3).stride()
    (3, 1)
    """
    steps = tuple([step // x._array.itemsize for step in x._array.strides])
    return steps if dim is None else steps[one_dim(dim, x.ndim)]


@operation()
def storage_offset(x: Tensor) -> int:
    """Return how many elements of the memory come before the first one of this tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3)[1].storage_offset()
    3
    """
    first = storage_of(x._array)
    apart = x._array.ctypes.data - first.ctypes.data
    return int(apart // x._array.itemsize)


# --- regions --------------------------------------------------------------------------------------
#
# Parts of a tensor that are views of it, and tensors with such a part replaced.


@operation()
def narrow(input: Operand, dim: int, start: int | Tensor, length: int) -> Tensor:
    """Return `length` elements along a dimension, from `start` on.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    dim : int
        Along which dimension.
    start : int or 0-d Tensor
        The first element; a negative number counts from the end.
    length : int
        How many.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    OutOfBoundsError
        If `start` is out of range.
    ShapeError
        If there are not so many elements.

    Notes
    -----
    Derivative: 1 for what is picked, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.narrow(cr.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    input = tensor_of(input)
    if input.ndim == 0:
        raise ShapeError("narrow() cannot be applied to a 0-dim tensor.")
    number, first = one_dim(dim, input.ndim), whole_number(start, "narrow", "start")
    size, length = input.shape[number], whole_number(length, "narrow", "length")
    if not -size <= first <= size:
        raise OutOfBoundsError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {first})"
        )
    first += size if first < 0 else 0
    if length < 0 or first + length > size:
        raise ShapeError(
            f"narrow(): start ({first}) + length ({length}) exceeds dimension size ({size}), or "
            "length is negative"
        )
    lead = (slice(None),) * number
    return indexing.getitem.apply(input, key=(*lead, slice(first, first + length), ...))


@operation()
def narrow_copy(input: Operand, dim: int, start: int, length: int) -> Tensor:
    """Return what `narrow` does, in memory of its own.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.narrow_copy(cr.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    copy: Tensor = elementwise.clone.apply(narrow(input, dim, start, length))
    return copy


@operation()
def select(input: Operand, dim: int, index: int | Tensor) -> Tensor:
    """Return the slice at an index of a dimension, which the result doesn't have any more.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    dim : int
        Which dimension.
    index : int
        Which slice; a negative number counts from the end.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    OutOfBoundsError
        If `index` is out of range.
    ShapeError
        If `input` has no dimension.

    Notes
    -----
    Derivative: 1 for what is picked, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.select(cr.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    input = tensor_of(input)
    if input.ndim == 0:
        raise ShapeError("select() cannot be applied to a 0-dim tensor.")
    number, place = one_dim(dim, input.ndim), whole_number(index, "select", "index")
    size = input.shape[number]
    if not -size <= place < size:
        raise OutOfBoundsError(
            f"select(): index {place} out of range for tensor of size {list(input.shape)} at "
            f"dimension {number}"
        )
    return indexing.select.apply(input, key=(*(slice(None),) * number, place, ...))


@operation()
def unfold(x: Tensor, /, dimension: int, size: int, step: int) -> Tensor:
    """Return all stretches of `size` elements along a dimension, `step` apart.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    dimension : int
        Along which dimension: it counts the stretches in the result.
    size : int
        The length of a stretch: the last dimension of the result.
    step : int
        How many elements further on the next stretch begins.

    Returns
    -------
    Tensor, of one dimension more
        A view. Where stretches overlap it can't be written to.

    Raises
    ------
    ShapeError
        If `size` is longer than the dimension, or `step` is not positive.

    Notes
    -----
    Derivative: 1 for each stretch that an element is in.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    if x.ndim == 0:
        x = shaping.reshape.apply(x, shape=(1,))
        return indexing.select.apply(unfold(x, 0, size, step), key=(0, ...))
    number = one_dim(dimension, x.ndim)
    length = x.shape[number]
    if not 0 <= size <= length:
        raise ShapeError(
            f"maximum size for tensor at dimension {dimension} is {length} but size is {size}"
        )
    if step <= 0:
        raise ShapeError(f"step is {step} but must be > 0")
    if number < x.ndim - 1:
        order = (*range(number), *range(number + 1, x.ndim), number)
        x = shaping.permute_dims.apply(x, axes=order)
    starts = np.arange((length - size) // step + 1) * step
    key = (Ellipsis, starts[:, None] + np.arange(size))
    out = indexing.windows.apply(x, size=size, step=step, key=key)
    if step < size:
        out._array.flags.writeable = False  # a write would reach several elements
    if number < x.ndim - 1:
        last = out.ndim - 2
        order = (*range(number), last, *range(number, last), out.ndim - 1)
        out = shaping.permute_dims.apply(out, axes=order)
    return out


@operation()
def unflatten(input: Operand, dim: int, sizes: int | Sequence[int]) -> Tensor:
    """Return `input` with one dimension made into several: the opposite of `flatten`.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    dim : int
        Which dimension.
    sizes : sequence of ints
        The dimensions that take its place; one may be -1: it is worked out from the others.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ShapeError
        If the sizes don't multiply to the length of the dimension.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unflatten(cr.zeros(2, 6), 1, (2, -1)).shape
    (2, 2, 3)
    """
    input = tensor_of(input)
    number, parts = one_dim(dim, input.ndim), sizes_of((sizes,))
    if input.ndim == 0:
        raise ShapeError("unflatten: a 0-dim tensor has no dimension to divide into others")
    length = input.shape[number]
    known = int(np.prod([n for n in parts if n != -1]))
    fits = parts.count(-1) <= 1 and (
        length % known == 0 if -1 in parts and known else known == length
    )
    if not parts or not fits:
        raise ShapeError(
            f"unflatten: Provided sizes {list(parts)} don't multiply up to the size of dim "
            f"{number} ({length}) in the input tensor"
        )
    parts = tuple([length // known if n == -1 else n for n in parts])
    return view(input, (*input.shape[:number], *parts, *input.shape[number + 1 :]))


# --- replaced -------------------------------------------------------------------------------------


@operation()
def select_scatter(input: Operand, src: Operand, dim: int, index: int) -> Tensor:
    """Return `input` with the slice at an index of a dimension replaced.

    Parameters
    ----------
    input : Tensor
        What to replace a part in, of a copy.
    src : Tensor
        What to put there: of the shape that ``select(x, dim, index)`` has.
    dim, index : int
        As for `select`.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    ShapeError
        If the shape of `src` is another one.

    Notes
    -----
    Derivative: 1 for what is in the result, 0 for what was replaced.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.select_scatter(cr.zeros(2, 2), cr.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    out = elementwise.clone.apply(tensor_of(input))
    return _replaced("select_scatter", out, select(out, dim, index), src)


@operation()
def slice_scatter(
    input: Operand,
    src: Operand,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Return `input` with the slices from `start` to `end` replaced; see `select_scatter`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.slice_scatter(cr.zeros(4), cr.ones(2), start=2)
    tensor([0., 0., 1., 1.])
    """
    out = elementwise.clone.apply(tensor_of(input))
    lead = (slice(None),) * one_dim(dim, out.ndim)
    part = indexing.getitem.apply(out, key=(*lead, slice(start, end, step), ...))
    return _replaced("slice_scatter", out, part, src)


@operation()
def diagonal_scatter(
    input: Operand, src: Operand, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Return `input` with a diagonal replaced; see `diagonal` and `select_scatter`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.diagonal_scatter(cr.zeros(2, 2), cr.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    out = elementwise.clone.apply(tensor_of(input))
    return _replaced("diagonal_scatter", out, diagonal(out, offset, dim1, dim2), src)


def _replaced(operation: str, out: Tensor, part: Tensor, src: Operand) -> Tensor:
    """Write to a part of a copy that nobody else has seen, and return the copy."""
    value = tensor_of(src)
    if value.shape != part.shape:
        raise ShapeError(
            f"{operation}: expected src to have a size equal to the slice of self. src size = "
            f"{list(value.shape)}, slice size = {list(part.shape)}"
        )
    set_item(part, Ellipsis, value, operation)
    return out


# --- places ---------------------------------------------------------------------------------------
#
# Places in a tensor by number, and one number in all places.


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
    spread = shaping.broadcast_to.apply(cast(number, x.dtype), shape=x.shape)
    return elementwise.clone.apply(spread)


@operation()
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
    first = 0 if storage_offset is None else storage_offset - x.storage_offset()
    places = np.full(sizes, first)
    for axis, (length, step) in enumerate(zip(sizes, steps, strict=True)):
        places += (np.arange(length) * step).reshape(-1, *(1,) * (len(sizes) - axis - 1))
    if not x.ndim:
        x = shaping.reshape.apply(x, shape=(1,))
    result = indexing.index.apply(x, key=_elements_at(x, places))
    if isinstance(result._array, np.ndarray):
        result._array.flags.writeable = False  # a write would not reach the memory
    return result


def _elements_at(x: Tensor, places: Any) -> tuple[Any, ...]:
    """Return the indices of the elements at places in memory, counted from the first one."""
    steps, indices = stride(x), [np.zeros_like(places)] * x.ndim
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


@operation()
def view_as(x: Tensor, other: Tensor) -> Tensor:
    """Return a view of the tensor in the shape of `other`."""
    return view(x, other.shape)
