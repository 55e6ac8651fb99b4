"""Views of parts of tensors, strides and dtypes, and tensors with such a part replaced."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
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
from chainrule.backend import CPU, address_of, move, namespace, storage_of
from chainrule.errors import DTypeError, OutOfBoundsError, ShapeError
from chainrule.operation import operation
from chainrule.ops.diagonals import diagonal
from chainrule.ops.reshape import infer_shape, view_shape
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
    "as_strided_scatter",
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
        Instead of a shape: reinterpret the memory as elements of this dtype. If it is narrower or
        wider, the last dimension becomes longer or shorter.

    Raises
    ------
    ShapeError
        If the memory layout needs a copy: use `reshape`. If the last dimension is not a multiple
        of the size of the other dtype.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back. A view in another dtype has none.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3).view(-1).shape
    (6,)
    """
    if len(sizes) == 1 and isinstance(sizes[0], _DTYPES):
        return _view_dtype(x, sizes[0])
    if dtype is not None:
        return _view_dtype(x, dtype)
    requested = sizes_of(sizes if size is None else (size,))
    new_shape = view_shape(x, requested)
    if new_shape is None:
        infer_shape(x, requested)  # raises if the number of elements differs
        raise ShapeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return shaping.reshape.apply(x, shape=new_shape)


def _view_dtype(x: Tensor, dtype: DTypeLike) -> Tensor:
    """Return the memory of `x` reinterpreted as elements of another dtype."""
    target = dtype_of(dtype)
    if target == x.dtype:
        return shaping.reshape.apply(x, shape=x.shape)
    ratio = target.itemsize / x.dtype.itemsize
    conversion = f"to view {x.dtype} as {target} (different element sizes), but got"
    if ratio != 1 and x.ndim == 0:
        raise ShapeError(f"view: self.dim() cannot be 0 {conversion} a number")
    if ratio > 1 and x.shape[-1] % ratio:
        raise ShapeError(
            f"view: self.size(-1) must be divisible by {ratio:.0f} {conversion} {x.shape[-1]}"
        )
    try:
        return make(x._array.view(target), None)
    except ValueError:
        raise ShapeError(
            f"view: self.stride(-1) must be 1 {conversion} {x.stride(-1)}: take contiguous() first"
        ) from None


@operation()
def contiguous(x: Tensor, /, memory_format: Any = None) -> Tensor:
    """Return `x` itself if its memory is in row-major order, else a copy in that order.

    PyTorch's `memory_format` has no effect.

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
    if found is None:  # unknown to the compiler, which refuses writes to the result
        return reshape_result(reshape_result(x, (x.numel(),)), x.shape)
    return x if found else shaping.reshape_copy.apply(x, shape=x.shape)


@operation()
def sum_to_size(x: Tensor, /, *sizes: Any) -> Tensor:
    """Return the tensor summed to a shape that broadcasts to the tensor's shape.

    Parameters
    ----------
    *sizes : int, or one sequence of ints
        The new shape.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If the new shape does not broadcast to the tensor's.

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
    if not axes:
        return x
    total = reductions.sum.apply(x, axis=axes, keepdims=True)
    return reshape_result(cast(total, "int64") if total.dtype.kind == "u" else total, shape)


@operation()
def stride(x: Tensor, dim: int | None = None) -> Any:
    """Return the steps in memory between neighbours, in elements, for all dimensions or one.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3).stride()
    (3, 1)
    """
    strides = tuple([step // x._array.itemsize for step in x._array.strides])
    return strides if dim is None else strides[one_dim(dim, x.ndim)]


@operation()
def storage_offset(x: Tensor) -> int:
    """Return the number of elements in memory before the first one of this tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3)[1].storage_offset()
    3
    """
    first = storage_of(x._array)
    apart = address_of(x._array) - address_of(first)
    return int(apart // x._array.itemsize)


# --- views of parts -------------------------------------------------------------------------------


@operation()
def narrow(input: Operand, dim: int, start: int | Tensor, length: int) -> Tensor:
    """Return `length` elements along a dimension, from `start` on.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    dim : int
        The dimension to select along.
    start : int or 0-d Tensor
        Index of the first element; a negative number counts from the end.
    length : int
        Number of elements.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    OutOfBoundsError
        If `start` is out of range.
    ShapeError
        If there are fewer elements.

    Notes
    -----
    Derivative: 1 for the selected elements, else 0.

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
    """Return a copy of the elements that `narrow` selects.

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
    """Return the slice at an index of a dimension, without that dimension.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    dim : int
        The dimension to remove.
    index : int
        Index of the slice; a negative number counts from the end.

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
    Derivative: 1 for the selected elements, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.select(cr.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    input = tensor_of(input)
    if input.ndim == 0:
        raise ShapeError("select() cannot be applied to a 0-dim tensor.")
    number, position = one_dim(dim, input.ndim), whole_number(index, "select", "index")
    size = input.shape[number]
    if not -size <= position < size:
        raise OutOfBoundsError(
            f"select(): index {position} out of range for tensor of size {list(input.shape)} at "
            f"dimension {number}"
        )
    return indexing.select.apply(input, key=(*(slice(None),) * number, position, ...))


@operation()
def unfold(x: Tensor, /, dimension: int, size: int, step: int) -> Tensor:
    """Return sliding windows of `size` elements along a dimension, `step` apart.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    dimension : int
        The dimension to slide along: the index of the window in the result.
    size : int
        Length of a window: the last dimension of the result.
    step : int
        Number of elements between the starts of neighbouring windows.

    Returns
    -------
    Tensor, of one dimension more
        A view; read-only if the windows overlap.

    Raises
    ------
    ShapeError
        If `size` is longer than the dimension, or `step` is not positive.

    Notes
    -----
    Derivative: 1 for each window that contains the element.

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
    size, step = whole_number(size, "unfold", "size"), whole_number(step, "unfold", "step")
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
    key = (Ellipsis, _window_places((length - size) // step + 1, size, step))
    out = indexing.windows.apply(x, size=size, step=step, key=key)
    if step < size:
        namespace(out._array).lock(out._array)  # a write would reach several elements
    if number < x.ndim - 1:
        last = out.ndim - 2
        order = (*range(number), last, *range(number, last), out.ndim - 1)
        out = shaping.permute_dims.apply(out, axes=order)
    return out


def _window_places(count: int, size: int, step: int) -> Any:
    """Return the index of windows, read-only: those of few elements are kept."""
    find = _kept_places if count * size <= _KEPT_PLACES else _new_places
    return find(count, size, step)


def _new_places(count: int, size: int, step: int) -> Any:
    places = np.arange(count)[:, None] * step + np.arange(size)
    places.flags.writeable = False
    return places


_KEPT_PLACES = 1 << 14
_kept_places = lru_cache(64)(_new_places)


@operation()
def unflatten(input: Operand, dim: int, sizes: int | Sequence[int]) -> Tensor:
    """Return `input` with one dimension split into several: the inverse of `flatten`.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    dim : int
        The dimension to split.
    sizes : sequence of ints
        Lengths of the new dimensions; one may be -1: it is inferred from the others.

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
        raise ShapeError("unflatten: a 0-dim tensor has no dimension to split")
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


# --- copies with a part replaced ------------------------------------------------------------------


@operation()
def select_scatter(input: Operand, src: Operand, dim: int, index: int) -> Tensor:
    """Return `input` with the slice at an index of a dimension replaced.

    Parameters
    ----------
    input : Tensor
        The tensor to copy.
    src : Tensor
        The new values, of the shape of ``select(input, dim, index)``.
    dim, index : int
        As for `select`.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    ShapeError
        If `src` has another shape.

    Notes
    -----
    Derivative: 1 for the elements in the result, 0 for those that were replaced.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.select_scatter(cr.zeros(2, 2), cr.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    out = elementwise.clone.apply(tensor_of(input))
    return _overwrite_part("select_scatter", out, select(out, dim, index), src)


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
    return _overwrite_part("slice_scatter", out, part, src)


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
    return _overwrite_part("diagonal_scatter", out, diagonal(out, offset, dim1, dim2), src)


def _overwrite_part(operation: str, out: Tensor, part: Tensor, src: Operand) -> Tensor:
    """Write `src` to `part`, a view of the fresh copy `out`, and return `out`."""
    value = tensor_of(src)
    if value.shape != part.shape:
        raise ShapeError(
            f"{operation}: expected src to have a size equal to the slice of self. src size = "
            f"{list(value.shape)}, slice size = {list(part.shape)}"
        )
    set_item(part, Ellipsis, value, operation)
    return out


# --- indices of flat positions, constant tensors, arbitrary strides -------------------------------


def unravel_index(indices: Operand, shape: Sizes) -> tuple[Tensor, ...]:
    """Return the indices in each dimension for positions in the flattened tensor.

    Parameters
    ----------
    indices : Tensor of integers
        Positions in row-major order.
    shape : int or sequence of ints
        The shape of the tensor.

    Returns
    -------
    tuple of Tensors of int64, shape of `indices`
        One for each dimension of `shape`.

    Raises
    ------
    DTypeError
        If `indices` are not integers.
    OutOfBoundsError
        If a position is out of range.

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
    """Return a tensor like `input` with all elements set to one value.

    Parameters
    ----------
    input : Tensor
        The tensor that gives the shape and dtype.
    value : number or Tensor of shape ()
        The value of all elements.

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
    array: Any = x._array
    mask = make(namespace(array).asarray(np.asarray(True)), None)
    if not isinstance(value, Tensor):
        number = tensor_of(namespace(array).asarray(number._array))
    return elementwise.where.apply(mask, cast(number, x.dtype), x)


@operation()
def as_strided(
    input: Operand, size: Sizes, stride: Sizes, storage_offset: int | None = None
) -> Tensor:
    """Return elements of the tensor's memory by a shape, strides and an offset.

    Parameters
    ----------
    input : Tensor
        The tensor whose memory is read.
    size, stride : sequence of ints
        The new shape, and the step in memory along each dimension, in elements.
    storage_offset : int, optional
        Number of elements in memory before the first one: that of `input` if left out.

    Returns
    -------
    Tensor, shape `size`
        A read-only copy (PyTorch: a view).

    Raises
    ------
    ShapeError
        If `size` and `stride` differ in length, one is negative, or an offset in memory holds no
        element of `input`.

    See Also
    --------
    unfold : sliding windows along a dimension, as a view.

    Notes
    -----
    Derivative: 1 for each occurrence of the element in the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.as_strided(cr.arange(5), (3, 3), (1, 1))
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    x, indices = _strided_indices(tensor_of(input), size, stride, storage_offset)
    result = indexing.index.apply(x, key=indices)
    if isinstance(result._array, np.ndarray):
        result._array.flags.writeable = False  # a write would not reach the memory
    return result


@operation()
def as_strided_scatter(
    input: Operand,
    src: Operand,
    size: Sizes,
    stride: Sizes,
    storage_offset: int | None = None,
) -> Tensor:
    """Return `input` with the elements replaced that `as_strided` returns.

    Parameters
    ----------
    input : Tensor
        The tensor that is copied.
    src : Tensor, shape `size`
        The new elements. Of several for one element the last one remains.
    size, stride, storage_offset
        As for `as_strided`.

    Returns
    -------
    Tensor, shape of `input`

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.as_strided_scatter(cr.zeros(5), cr.ones(2), (2,), (3,))
    tensor([1., 0., 0., 1., 0.])
    """
    x, value = tensor_of(input), tensor_of(src)
    row, indices = _strided_indices(x, size, stride, storage_offset)
    if value.shape != sizes_of((size,)):
        raise ShapeError(
            f"as_strided_scatter: expected src of shape {list(sizes_of((size,)))}, got "
            f"{list(value.shape)}"
        )
    out = elementwise.clone.apply(row)
    set_item(out, indices, value, "as_strided_scatter")
    return out if x.ndim else reshape_result(out, ())


def _strided_indices(
    x: Tensor, size: Sizes, stride: Sizes, storage_offset: int | None
) -> tuple[Tensor, tuple[Any, ...]]:
    """Return a tensor of one dimension at least, and the indices of the elements by strides."""
    sizes, strides = sizes_of((size,)), sizes_of((stride,))
    if len(sizes) != len(strides):
        raise ShapeError(
            f"as_strided: mismatch in length of strides and shape: {list(strides)} and "
            f"{list(sizes)}"
        )
    if min((*sizes, *strides), default=0) < 0:
        raise ShapeError(
            "as_strided: Negative strides and sizes are not supported, got strides "
            f"{list(strides)} and the shape {list(sizes)}"
        )
    first = 0 if storage_offset is None else storage_offset - x.storage_offset()
    offsets = np.full(sizes, first)
    for axis, (length, step) in enumerate(zip(sizes, strides, strict=True)):
        offsets += (np.arange(length) * step).reshape(-1, *(1,) * (len(sizes) - axis - 1))
    if not x.ndim:
        x = shaping.reshape.apply(x, shape=(1,))
    return x, _indices_at_offsets(x, offsets)


def _indices_at_offsets(x: Tensor, offsets: Any) -> tuple[Any, ...]:
    """Return the indices of the elements at offsets in memory, relative to the first element."""
    strides, indices = stride(x), [np.zeros_like(offsets)] * x.ndim
    valid = np.asarray(offsets >= 0)
    remainder = offsets
    for axis in sorted(range(x.ndim), key=lambda axis: -strides[axis]):
        if x.shape[axis] > 1 and strides[axis] > 0:
            indices[axis], remainder = np.divmod(remainder, strides[axis])
            valid &= indices[axis] < x.shape[axis]
    valid &= remainder == 0
    if offsets.size and not (valid.all() and x.numel() and min(strides) >= 0):
        raise ShapeError(
            "as_strided: setStorage: an offset is out of bounds, or holds no element of the tensor "
            f"of shape {list(x.shape)} and strides {list(strides)}: call as_strided on the tensor "
            "that this one is a view of"
        )
    return tuple(indices)


@operation()
def view_as(x: Tensor, other: Tensor) -> Tensor:
    """Return a view of the tensor in the shape of `other`."""
    return view(x, other.shape)
