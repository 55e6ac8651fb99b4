"""Indexing: ``x[key]``, ``x[key] = value``, and functions that select elements."""

from __future__ import annotations

import warnings
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from chainrule.arguments import Operand, cast, constant, either, one_dim, tensor_of, watched
from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.inplace import set_item
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.operands import scalar_array
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import CPU, device_of, is_array, is_basic_index, is_known, move, ndarray
from chainrule.errors import (
    ArgumentTypeError,
    DTypeError,
    OutOfBoundsError,
    ShapeError,
)
from chainrule.kernels.flat_indexing import check_in_range
from chainrule.operation import operation
from chainrule.ops.index_errors import translate_index_error
from chainrule.ops.reshape import broadcast_to, reshape
from chainrule.ops.selections import Selection
from chainrule.ops.wrappers import reshape_result
from chainrule.primitives import indexing, shaping

__all__ = ["gather", "take_along_dim", "take_along_axis", "index_select", "take", "masked_select"]

Array = Any

_INTS = {int}
_BASIC = {int, slice, NoneType, EllipsisType}  # indices that make views

_select = indexing.select.apply
_getitem = indexing.getitem.apply
_index = indexing.index.apply
_reshape = shaping.reshape.apply
_take_along_axis = indexing.take_along_axis.apply

# --- indexing by brackets -------------------------------------------------------------------------


@operation(method="__getitem__")
def get_item(x: Tensor, key: Any) -> Tensor:
    """Return ``x[key]``: a view for ints, slices, Ellipsis and None, else a copy."""
    try:
        kind = key.__class__
        if kind is int:
            # With an Ellipsis, NumPy returns a view even of a single element, not a scalar.
            return _select(x, key=(key, ...))
        if kind is slice:
            return _getitem(x, key=key)
        if key is None:
            return _getitem(x, key=(None, ...))
        if kind is tuple:
            kinds = {part.__class__ for part in key}
            if kinds == _INTS:
                return _select(x, key=(*key, ...))
            if kinds <= _BASIC:
                return _getitem(x, key=key if EllipsisType in kinds else (*key, ...))
        key = as_key(_tuple_of(x, key) if kind is list else key, x._array)
        if not is_basic_index(key):
            if key.__class__ is tuple and len(key) > 2:
                x, key = _ordered(x, key)
            if isinstance(key, ArrayProxy) and key.is_unknown_mask:
                found: Tensor = Selection.of(x, key)
                return found
            return _index(x, key=key)
        key = key if key.__class__ is tuple else (key,)
        if all([part.__class__ is int for part in key]):
            return _select(x, key=(*key, ...))
        return _getitem(x, key=key if Ellipsis in key else (*key, ...))
    except IndexError as error:
        raise translate_index_error(error) from None


@operation(method="__setitem__")
def set_at(x: Tensor, key: Any, value: Operand) -> None:
    """Write ``x[key] = value`` and record it."""
    if not isinstance(value, Tensor):
        if isinstance(value, Selection):
            return value.write_to(x, as_key(key, x._array))
        scalar = isinstance(value, bool | int | float | complex | np.generic)
        if isinstance(value, str | bytes | dict | type(None)):
            raise ArgumentTypeError(
                f"setitem: can't assign a {type(value).__name__} to a tensor of dtype {x.dtype}: "
                "give a Tensor, an array or a number"
            )
        value = make(scalar_array(value, x._array), None) if scalar else tensor_of(value)
        if x._array.__class__ is not ndarray:
            value = constant(value._array, x)
    shape = value._array.shape
    if shape and shape[0] == 1:  # as in x[0] = [5]
        leading = next((i for i, length in enumerate(shape) if length != 1), len(shape))
        value = _reshape(value, shape=shape[leading:])
    try:
        key = as_key(_tuple_of(x, key) if key.__class__ is list else key, x._array)
        if key.__class__ is tuple and len(key) > 2:
            x, key = _ordered(x, key)
        set_item(x, key, value)
    except IndexError as error:
        raise translate_index_error(error) from None


def _tuple_of(x: Tensor, key: list[Any]) -> Any:
    """Return a list as a tuple if it contains tensors, as PyTorch does.

    Lists of lists and of arrays are arrays, as in NumPy.
    """
    if len(key) >= 32 or getattr(x, "numpy_indices", False):
        return key
    if not any(isinstance(part, Tensor) for part in key):
        return key
    warnings.warn(
        "x[[a, b]] is x[a, b], as in PyTorch, which deprecates it: write x[tuple(indices)], or "
        "x[np.array(indices)] for an array of indices of the first dimension",
        stacklevel=user_stack_level(),
    )
    return tuple(key)


def _ordered(x: Tensor, key: tuple[Any, ...]) -> tuple[Tensor, Any]:
    """Return a view and the index of it for which NumPy has PyTorch's order of dimensions.

    In ``x[0, :, i]``, NumPy counts 0 as an array that is apart from i, so that the dimension of i
    is the first. PyTorch selects with the ints first, and ignores an Ellipsis of no dimensions.
    """
    kinds = [part.__class__ for part in key]
    taken = [i for i, kind in enumerate(kinds) if kind is int or kind not in _BASIC]
    if not taken or taken[-1] - taken[0] < len(taken) or getattr(x, "numpy_indices", False):
        return x, key
    dims = [_dims(part) for part in key]
    if EllipsisType in kinds and sum(dims) == x._array.ndim:
        key = tuple([part for part in key if part is not Ellipsis])
        dims = [_dims(part) for part in key]
    if int in kinds and len(taken) > kinds.count(int):
        view: list[Any] = []
        for part, count in zip(key, dims, strict=True):
            kept = part is Ellipsis or part.__class__ is int
            view += [part] if kept else [slice(None)] * count
        if not any(part is Ellipsis for part in view):
            view.append(...)
        x = _getitem(x, key=tuple(view))
        key = tuple([part for part in key if part.__class__ is not int])
    return x, key


def _dims(part: Any) -> int:
    """Return the number of dimensions that a part of an index takes."""
    if part is None or part is Ellipsis or part.__class__ is bool:
        return 0
    is_mask = hasattr(part, "dtype") and part.dtype.kind == "b"
    return part.ndim if is_mask else 1


@operation(method="__delitem__")
def delete_at(x: Tensor, key: Any) -> None:
    """Raise: a tensor keeps its elements."""
    raise ArgumentTypeError(
        f"Tensor does not support deleting items, as by del x[{key!r}]: its shape {list(x.shape)} "
        "is fixed. Write what is kept, x[mask] or cat([x[:i], x[i + 1:]])"
    )


def as_key(key: Any, array: Array) -> Any:
    """Return an index for `array`, on its device, without tensors and lists."""
    if array.__class__ is not ndarray and (device := device_of(array)) is not CPU:
        parts = [_as_index(part, None) for part in (key if key.__class__ is tuple else (key,))]
        check_in_range(parts, array.shape)  # CuPy would wrap them around
        parts = [move(part, device) if isinstance(part, ndarray) else part for part in parts]
        return tuple(parts) if key.__class__ is tuple else parts[0]
    if key.__class__ is tuple:
        return tuple([_as_index(part, CPU) for part in key])
    return _as_index(key, CPU)


def _as_index(part: Any, device: Any) -> Any:
    """Return the index of one dimension as an int, a slice, None, Ellipsis or an array.

    Arrays go to a device, or for None stay where they are.
    """
    if part is None or part is Ellipsis or part.__class__ in (int, slice, bool):
        return part
    if isinstance(part, Tensor):
        array = part._array
        if array.dtype.char == "B" and not getattr(part, "numpy_indices", False):
            array = _mask_of_bytes(array)
        if array.ndim == 0 and array.dtype.kind in "iu" and is_known(array):
            return int(array)
        # A copy: the graph keeps the index, and the tensor may be written to later.
        found = array.copy()
    elif isinstance(part, np.generic) and not isinstance(part, np.bool_):
        return part.__index__() if isinstance(part, np.integer) else _raise_invalid_index(part)
    elif isinstance(part, ndarray | list | tuple | range | np.bool_):
        found = watched(part).copy() if part.__class__ is ndarray else _index_array(part)
        if found.size == 0 and found.dtype.kind == "f":
            found = found.astype(np.int64)
    elif is_array(part):  # a symbol or a batched array
        found = part
    elif hasattr(part, "__array__"):  # such as a Series of pandas
        found = watched(np.asarray(part)).copy()
    elif hasattr(part, "__index__"):
        return part.__index__()
    elif hasattr(part, "__array__"):  # a column of pandas, an array of xarray
        found = _index_array(part)
    else:
        _raise_invalid_index(part)
    if found.dtype.kind not in "iub":
        _raise_invalid_index(found)
    return found if device is None else move(found, device)


def _mask_of_bytes(array: Array) -> Array:
    """Return a tensor of uint8 as the mask that it is in PyTorch, from before it had bools."""
    warnings.warn(
        "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
        "instead. A tensor of uint8 is a mask, as in PyTorch: convert positions with .long()",
        stacklevel=user_stack_level(),
    )
    return array != 0


def _index_array(part: Any) -> Array:
    """Return a sequence of numbers as an array; raise if it is a list of indices of dimensions."""
    try:
        return np.array(part)
    except (TypeError, ValueError):  # it contains slices, or sequences of different lengths
        raise OutOfBoundsError(
            f"a {type(part).__name__} as an index must be an array of integers or bools: write a "
            "tuple for indices of several dimensions, x[tuple(indices)]"
        ) from None


def _raise_invalid_index(part: Any) -> Any:
    found_type = part.dtype if isinstance(part, ndarray) else type(part).__name__
    mends = {
        "str": ". A tensor has no names: write the number of the column, as in x[:, 0]",
        "float": f". Write int({part})",
        "set": ". A set has no order: write x[sorted(indices)]",
    }
    mend = ". Convert them with .long()" if isinstance(part, ndarray) else ""
    raise OutOfBoundsError(
        "only integers, slices (`:`), ellipsis (`...`), None and long, byte or bool Tensors are "
        f"valid indices (got {found_type}){mends.get(str(found_type), mend)}"
    )


# --- selection along a dimension or by a mask -----------------------------------------------------


@operation()
def gather(input: Operand, dim: int, index: Operand, *, sparse_grad: bool = False) -> Tensor:
    """Return the elements of `input` at `index` along a dimension.

    For three dimensions and dim = 1, ``out[i, j, k] = x[i, index[i, j, k], k]``.

    Parameters
    ----------
    input : Tensor
        x: the tensor to select from.
    dim : int
        The dimension to index.
    index : Tensor of integers
        Of as many dimensions as x, and not longer than x, except along `dim`.
    sparse_grad : bool, default False
        Has no effect: gradients are dense.

    Returns
    -------
    Tensor, shape of `index`

    Raises
    ------
    OutOfBoundsError
        If an index is out of range.
    ShapeError
        If the shapes don't match.

    Notes
    -----
    Derivative: 1 for each selection of the element.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cr.gather(x, 1, cr.tensor([[1], [0]]))
    tensor([[2.],
            [3.]])
    """
    x, index = tensor_of(input), index_of("gather", index)
    shape, index_shape = x._array.shape, index._array.shape
    number = one_dim(dim, len(shape))
    if index_shape == shape != ():
        return _take_along(x, index, number)
    if not (index_shape and shape) and max(len(index_shape), len(shape)) <= 1:
        # A 0-d tensor counts as a vector of one element.
        return _take_along_as(reshape(x, (-1,)), reshape(index, (-1,)), 0, index_shape)
    if 0 in index_shape and len(index_shape) != len(shape):  # PyTorch takes any shape
        return reshape(reshape(x, (-1,))[:0], index_shape)
    if len(index_shape) != len(shape):
        is_row = index_shape == (*shape[:number], *shape[number + 1 :])
        mend = f": for one element of each, write index.unsqueeze({number})" if is_row else ""
        raise ShapeError(
            "Index tensor must have the same number of dimensions as input tensor: got "
            f"{index.ndim} and {x.ndim}{mend}"
        )
    if index_shape == (*shape[:number], index_shape[number], *shape[number + 1 :]):
        return _take_along(x, index, number)
    for i, (wanted, size) in enumerate(zip(index.shape, x.shape, strict=True)):
        if i != number and wanted > size:
            raise ShapeError(
                f"Size does not match at dimension {i} expected index {list(index.shape)} to be no "
                f"larger than self {list(x.shape)} apart from dimension {number}"
            )
    part = tuple([slice(None if i == number else n) for i, n in enumerate(index.shape)])
    return _take_along(_getitem(x, key=part), index, number)


def _take_along_as(x: Tensor, index: Tensor, dim: int, shape: tuple[int, ...]) -> Tensor:
    """Return `x` at `index` along a dimension, in another shape."""
    taken = _take_along(x, index, dim)
    return taken if taken.shape == shape else reshape_result(taken, shape)


def _take_along(x: Tensor, index: Tensor, dim: int) -> Tensor:
    try:
        return _take_along_axis(x, index, axis=dim)
    except IndexError as error:
        raise translate_index_error(error) from None


def index_of(operation: str, index: Operand) -> Tensor:
    """Return an index as a tensor, which must have an integer dtype."""
    tensor = tensor_of(index)
    if tensor._array.dtype.kind not in "iu":
        raise DTypeError(
            f"{operation}(): Expected dtype int64 for index, got {tensor.dtype}: convert it with "
            ".long()"
        )
    return tensor


@operation()
def take_along_dim(
    input: Operand, indices: Operand, dim: int | None = None, *, axis: int | None = None
) -> Tensor:
    """Return the elements of `input` at `indices` along a dimension.

    Parameters
    ----------
    input : Tensor
        The tensor to select from.
    indices : Tensor of integers
        As `argmax` and `argsort` return them. The other dimensions broadcast with those of `input`.
    dim : int, optional
        The dimension to index: that of the flattened tensor if left out. Also spelled `axis`.

    Returns
    -------
    Tensor

    Raises
    ------
    OutOfBoundsError
        If an index is out of range.

    Notes
    -----
    Derivative: 1 for each selection of the element.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[1.0, 5.0], [7.0, 2.0]])
    >>> cr.take_along_dim(x, cr.argmax(x, 1, keepdim=True), 1)
    tensor([[5.],
            [7.]])
    """
    input, index = tensor_of(input), index_of("take_along_dim", indices)
    dim = either(dim, axis)
    if dim is None:
        return _take_along_as(reshape(input, -1), reshape(index, -1), 0, (index.numel(),))
    if index.ndim != input.ndim:
        raise ShapeError(
            "take_along_dim(): input and indices should have the same number of dimensions, but "
            f"got {input.ndim} dimensions for input, and {index.ndim} dimensions for indices"
        )
    number = one_dim(dim, input.ndim)
    others = np.broadcast_shapes(
        *[(*t.shape[:number], 1, *t.shape[number + 1 :]) for t in (input, index)]
    )
    input, index = [
        t if shape == t.shape else broadcast_to(t, shape)
        for t, shape in [
            (t, (*others[:number], t.shape[number], *others[number + 1 :])) for t in (input, index)
        ]
    ]
    return _take_along_as(input, index, number, index.shape)


@operation(method=False, array_api=True)
def take_along_axis(x: Operand, indices: Operand, /, axis: int = -1) -> Tensor:
    """Return the elements of `x` at `indices` along an axis: the array API's `take_along_dim`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.take_along_axis(cr.tensor([[1.0, 5.0]]), cr.tensor([[1]]))
    tensor([[5.]])
    """
    return take_along_dim(x, indices, axis)


@operation()
def index_select(input: Operand, dim: int, index: Operand) -> Tensor:
    """Return the slices of `input` at `index` along a dimension.

    Parameters
    ----------
    input : Tensor
        The tensor to select from.
    dim : int
        The dimension to index.
    index : Tensor of integers, 1-d
        Indices of the slices; they may repeat.

    Returns
    -------
    Tensor

    Raises
    ------
    OutOfBoundsError
        If an index is out of range.

    Notes
    -----
    Derivative: 1 for each selection of the slice.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.index_select(cr.tensor([[1, 2], [3, 4]]), 1, cr.tensor([1]))
    tensor([[2],
            [4]])
    """
    input, index = tensor_of(input), index_of("index_select", index)
    ndim = input._array.ndim
    if index._array.ndim > 1:
        raise OutOfBoundsError("index_select(): Index is supposed to be a vector")
    number = one_dim(dim, ndim)
    if ndim == 0 and index.numel() != 1:
        raise OutOfBoundsError(
            f"index_select(): Index to scalar can have only 1 value, got {index.numel()} value(s)"
        )
    if ndim == 0:
        return reshape_result(get_item(reshape(input, (1,)), reshape(index, -1)), ())
    index = index if index._array.ndim else reshape(index, (1,))
    index = cast(index, np.int64) if index._array.dtype.char == "B" else index  # not a mask
    before = (slice(None),) * number
    try:
        if input._array.__class__ is ndarray:
            return _index(input, key=(*before, _as_index(index, CPU)))
        return _index(input, key=as_key((*before, index), input._array))
    except IndexError as error:
        raise translate_index_error(error) from None


@operation(array_api=True)
def take(x: Operand, indices: Operand, /, *, axis: int | None = None) -> Tensor:
    """Return the slices of `x` at `indices` along an axis; of the flattened tensor without one.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.take(cr.tensor([[1, 2], [3, 4]]), cr.tensor([3, 0]))
    tensor([4, 1])
    """
    x, index = tensor_of(x), index_of("take", indices)
    if axis is None:
        return reshape(get_item(reshape(x, -1), reshape(index, -1)), index.shape)
    return index_select(x, axis, index)


@operation()
def masked_select(input: Operand, mask: Operand) -> Tensor:
    """Return the elements of `input` where `mask` is true, as a vector.

    Parameters
    ----------
    input : Tensor
        The tensor to select from.
    mask : Tensor of bools
        Its shape broadcasts with that of `input`.

    Returns
    -------
    Tensor, 1-d

    Raises
    ------
    TypeError
        If `mask` does not have the dtype bool.

    Notes
    -----
    Derivative: 1 for the selected elements, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([1.0, -2.0, 3.0])
    >>> cr.masked_select(x, x > 0)
    tensor([1., 3.])
    """
    input, mask = tensor_of(input), tensor_of(mask)
    if mask.dtype.kind != "b":
        raise ArgumentTypeError(f"masked_select: expected BoolTensor for mask, got {mask.dtype}")
    shape = np.broadcast_shapes(input.shape, mask.shape)
    return get_item(
        input if input.shape == shape else broadcast_to(input, shape),
        mask if mask.shape == shape else broadcast_to(mask, shape),
    )
