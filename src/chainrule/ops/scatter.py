"""Scatters: elements or slices written, added or reduced at indices, out of place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.arguments import Operand, constant, is_one, number_for, one_dim, tensor_of
from chainrule.autograd.error_messages import broadcast_text
from chainrule.autograd.operands import scalar_array
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import (
    CPU,
    check_known,
    dtype_title,
    is_array,
    is_known,
    move,
    namespace,
    ndarray,
)
from chainrule.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from chainrule.kernels import flat_indexing
from chainrule.operation import inplace_form, operation
from chainrule.ops.index_errors import translate_index_error, translated_index_errors
from chainrule.ops.indexing import as_key, index_of
from chainrule.ops.reshape import broadcast_to
from chainrule.ops.where import where
from chainrule.ops.wrappers import reshape_result
from chainrule.primitives import elementwise, shaping
from chainrule.primitives import indexing as indexing_primitives
from chainrule.primitives.indexing import index as index_primitive

__all__ = [
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "index_add",
    "index_copy",
    "index_fill",
    "index_reduce",
    "index_put",
    "put",
    "masked_scatter",
    "index_put_",
]

# --- combining values with the elements at an index -----------------------------------------------

Array = Any
Combine = Callable[[Tensor, Tensor, Any], Tensor]  # of a tensor, values and an index


def value_like(operation: str, x: Tensor, value: Operand) -> Tensor:
    """Return a value as a tensor of the dtype of `x`; Python numbers are converted."""
    if value.__class__ is not Tensor and isinstance(
        value, bool | int | float | complex | np.generic
    ):
        made = scalar_array(number_for(operation, value, x.dtype), x._array)
        return make(made.astype(x.dtype), None)
    tensor = tensor_of(value)
    if tensor._array.dtype != x._array.dtype:
        raise DTypeError(
            f"{operation}(): Expected self.dtype to be equal to src.dtype, got "
            f"{dtype_title(x.dtype)} and {dtype_title(tensor.dtype)}: write src.to(x.dtype)"
        )
    return tensor


def write_at(x: Tensor, value: Tensor, key: Any) -> Tensor:
    """Return `x` with `value`, which has the shape of ``x[key]``, written at an index."""
    lasting = None
    if value.requires_grad and not flat_indexing.is_masks(key):
        lasting = namespace(x._array).lasting(key, x.shape)
    return indexing_primitives.assign.apply(
        x, value, path=((index_primitive, {"key": key}),), lasting=lasting
    )


def add_at(x: Tensor, value: Tensor, key: Any) -> Tensor:
    """Return `x` with `value` added at an index, where repetitions accumulate."""
    return indexing_primitives.add_at.apply(x, value, key=key)


def _multiply_at(x: Tensor, value: Tensor, key: Any) -> Tensor:
    return product_at(x, value, key, True)


_COMBINERS: dict[Any, Combine] = {
    None: write_at,
    "add": add_at,
    "multiply": _multiply_at,
}


def reduction(operation: str, reduce: str, include_self: bool) -> Combine:
    """Return the function that reduces values into a tensor, its own elements included or not."""
    if reduce == "sum":
        if include_self:
            return add_at
        return lambda x, value, key: add_at(_zero_at(x, key), value, key)
    if reduce == "mean":
        return lambda x, value, key: _mean_at(x, value, key, include_self)
    if reduce == "prod":
        return lambda x, value, key: product_at(x, value, key, include_self)
    if reduce in ("amax", "amin"):
        extreme = (
            indexing_primitives.maximum_at if reduce == "amax" else indexing_primitives.minimum_at
        )
        return lambda x, value, key: extreme.apply(x, value, key=key, own=include_self)
    raise ArgumentError(
        f"{operation}(): reduce argument must be either sum, prod, mean, amax or amin, got "
        f"{reduce!r}"
    )


def _zero_at(x: Tensor, key: Any) -> Tensor:
    """Return `x` with zeros at an index."""
    zero = make(namespace(x._array).zeros((), dtype=x.dtype), None)
    return indexing_primitives.assign.apply(
        x, zero, path=((index_primitive, {"key": key}),), lasting=None
    )


def _counts_at(x: Tensor, key: Any) -> Array:
    """Return how often an index selects each element of `x`."""
    shape, xp = x.shape, namespace(x._array)
    if x._array.__class__ is not ndarray:
        ones = xp.ones(xp.index(x._array, key).shape, np.dtype(np.int64))
        return xp.index_add(ones, shape=shape, key=key)
    positions = flat_indexing.flat_positions(key, shape)
    if positions is None:
        positions = np.arange(math.prod(shape)).reshape(shape)[key]
    return np.bincount(positions.reshape(-1), minlength=math.prod(shape)).reshape(shape)


def _mean_at(x: Tensor, value: Tensor, key: Any, include_self: bool) -> Tensor:
    """Return `x` with the mean of the values written at an index."""
    number = _counts_at(x, key)
    number = number + 1 if include_self else namespace(number).maximum(number, 1)
    total = add_at(x if include_self else _zero_at(x, key), value, key)
    divide = elementwise.divide if x.dtype.kind in "fc" else elementwise.floor_divide
    return divide.apply(total, make(number.astype(x.dtype), None))


def product_at(x: Tensor, value: Tensor, key: Any, include_self: bool) -> Tensor:
    """Return `x` with the product of the values written at an index.

    The factors of each element are multiplied pairwise, in a tree. There is no division, so the
    derivatives of all orders are exact at zeros.
    """
    if not all(namespace(part).known for part in (x._array, *key) if is_array(part)):
        return _product_at_unknown(x, value, key, include_self)
    key = tuple([move(part, CPU) if is_array(part) else part for part in key])
    size = x.numel()
    positions = flat_indexing.flat_positions(key, x.shape)
    if positions is None:
        positions = np.arange(size).reshape(x.shape)[key]
    positions = positions.reshape(-1)
    first = np.arange(size)
    if not include_self:
        first = np.delete(first, positions)
    target = np.concatenate([first, positions])
    order = np.argsort(target, kind="stable")
    target = target[order]
    flat = [shaping.reshape_copy.apply(t, shape=(t.numel(),)) for t in (x, value)]
    if not include_self:
        flat[0] = indexing_primitives.index.apply(flat[0], key=first)
    factors = indexing_primitives.index.apply(shaping.concat.apply(*flat, axis=0), key=order)
    one = constant(np.ones(1, x.dtype), x)
    while len(target) > size:
        starts = np.flatnonzero(np.r_[True, target[1:] != target[:-1]])
        rank = np.arange(len(target)) - np.repeat(starts, np.diff(np.r_[starts, len(target)]))
        left = np.flatnonzero(rank % 2 == 0)
        paired = np.r_[target[1:] == target[:-1], False][left]
        right = np.where(paired, left + 1, len(target))
        padded = shaping.concat.apply(factors, one, axis=0)
        factors = elementwise.multiply.apply(
            indexing_primitives.index.apply(factors, key=left),
            indexing_primitives.index.apply(padded, key=right),
        )
        target = target[left]
    return reshape_result(factors, x.shape)


def _product_at_unknown(x: Tensor, value: Tensor, key: Any, include_self: bool) -> Tensor:
    """Return `product_at` for an index whose elements aren't known, by a scan of sorted factors."""
    counts = _counts_at(x, key)
    if not include_self:
        x = where(make(counts > 0, None), 1, x)
    xp, size, count = namespace(counts), x.numel(), value.numel()
    positions = xp.index(xp.reshape(xp.arange(size), x.shape), key)
    target = xp.concat([xp.arange(size), xp.reshape(positions, (count,))])
    order = xp.argsort(target, stable=True)
    target = xp.index(target, (order,))
    flat = [shaping.reshape.apply(t, shape=(t.numel(),)) for t in (x, value)]
    factors = indexing_primitives.index.apply(shaping.concat.apply(*flat, axis=0), key=(order,))
    distance = 1
    while distance <= count:  # factors[i] is the product of up to 2 * distance factors until i
        same = make(target[distance:] == target[:-distance], None)
        more = elementwise.multiply.apply(factors[distance:], where(same, factors[:-distance], 1))
        factors = shaping.concat.apply(factors[:distance], more, axis=0)
        distance *= 2
    last = xp.cumulative_sum(xp.reshape(counts, (size,)) + 1, axis=0) - 1
    return reshape_result(indexing_primitives.index.apply(factors, key=(last,)), x.shape)


# --- elements at indices along a dimension --------------------------------------------------------


@operation(inplace=True)
def scatter(
    input: Operand,
    dim: int,
    index: Operand,
    src: Operand | None = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    """Return `input` with the elements of `src` written at `index` along a dimension.

    For three dimensions and dim = 1, ``out[i, index[i, j, k], k] = src[i, j, k]``.

    Parameters
    ----------
    input : Tensor
        The tensor to copy.
    dim : int
        The dimension to index.
    index : Tensor of integers
        Of as many dimensions as `input`; not longer than `src`, nor, except along `dim`, than
        `input`.
    src : Tensor or number
        The values, of the dtype of `input`. A number can also be given as `value`.
    reduce : {"add", "multiply"}, optional
        How to combine values with the elements of `input`. `scatter_add` and `scatter_reduce` are
        the newer spellings.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    OutOfBoundsError
        If an index is out of range.
    ShapeError
        If the shapes don't match.
    DTypeError
        If the dtypes differ.

    Notes
    -----
    If an index is repeated, the last value is kept. Derivative: 1 for the values in the result, 0
    for those that were overwritten, also for an element of `src` that a later one replaced; PyTorch
    gives that the gradient of the element which replaced it.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.scatter(cr.zeros(3), 0, cr.tensor([2, 0]), cr.tensor([5.0, 7.0]))
    tensor([7., 0., 5.])
    """
    if (src is None) == (value is None):
        raise ArgumentTypeError("scatter(): give either src or value, the values to write")
    combine = _COMBINERS.get(reduce)
    if combine is None:
        raise ArgumentError(
            f"scatter(): reduce argument must be either add or multiply, got {reduce!r}"
        )
    return _scatter_along("scatter", combine, input, dim, index, value if src is None else src)


@operation(inplace=True)
def scatter_add(input: Operand, dim: int, index: Operand, src: Operand) -> Tensor:
    """Return `input` with the elements of `src` added at `index`; the arguments are `scatter`'s.

    Notes
    -----
    Values at the same index accumulate. Derivative: 1 for every element of `input` and `src`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.scatter_add(cr.zeros(3), 0, cr.tensor([2, 0, 2]), cr.tensor([1.0, 2.0, 3.0]))
    tensor([2., 0., 4.])
    """
    return _scatter_along("scatter_add", add_at, input, dim, index, src)


@operation(inplace=True)
def scatter_reduce(
    input: Operand,
    dim: int,
    index: Operand,
    src: Operand,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Return `input` with the elements of `src` reduced into it at `index`.

    The first arguments are those of `scatter`.

    Parameters
    ----------
    reduce : {"sum", "prod", "mean", "amax", "amin"}
        How the values at the same index are combined.
    include_self : bool, default True
        Whether the element of `input` is one of them.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: as of `sum`, `prod` (exact at zeros, to any order), `mean`, `amax` and `amin`
    (divided evenly among equal elements; if `include_self` is false, PyTorch still leaves a share
    for the element of `input`).

    Examples
    --------
    >>> import chainrule as cr
    >>> x, index = cr.ones(2), cr.tensor([1, 1, 1])
    >>> cr.scatter_reduce(x, 0, index, cr.tensor([2.0, 3.0, 5.0]), "prod")
    tensor([ 1., 30.])
    """
    return _scatter_along(
        "scatter_reduce", reduction("scatter_reduce", reduce, include_self), input, dim, index, src
    )


def _scatter_along(
    operation: str,
    combine: Combine,
    x: Operand,
    dim: int,
    index: Operand,
    src: Operand,
) -> Tensor:
    """Combine `x` with `src` at an index along a dimension."""
    x, positions = tensor_of(x), index_of(operation, index)._array
    src = value_like(operation, x, src)
    shape = x._array.shape
    number = one_dim(dim, len(shape))
    if not shape:
        src = src if src.ndim else shaping.reshape.apply(src, shape=(1,))
        row = shaping.reshape.apply(x, shape=(1,))
        return reshape_result(
            _scatter_along(operation, combine, row, 0, positions.reshape(-1), src), ()
        )
    if positions.size == 0:
        return elementwise.clone.apply(x)
    if positions.ndim == 0 and len(shape) == 1:  # it counts as a vector of one element
        positions = positions.reshape(1)
        src = src if src.ndim else shaping.reshape.apply(src, shape=(1,))
    if not positions.shape == shape == src._array.shape:
        src = _match_source(operation, shape, positions.shape, src, number)
    copied = x.requires_grad or src.requires_grad  # the user may write to the index afterwards
    try:
        return combine(x, src, flat_indexing.grid(positions.astype(np.intp, copy=copied), number))
    except IndexError as error:
        raise translate_index_error(error) from None


def _match_source(
    operation: str, shape: tuple[int, ...], index_shape: tuple[int, ...], src: Tensor, dim: int
) -> Tensor:
    """Return `src` cut or broadcast to the shape of the index."""
    if len(index_shape) != len(shape) or src.ndim not in (0, len(shape)):
        raise ShapeError(
            f"{operation}(): Index tensor must have the same number of dimensions as self tensor "
            f"and src: got {len(index_shape)}, {len(shape)} and {src.ndim}"
        )
    for i, wanted in enumerate(index_shape):
        if (i != dim and wanted > shape[i]) or (src.ndim and wanted > src.shape[i]):
            raise ShapeError(
                f"{operation}(): Expected index {list(index_shape)} to be no larger than self "
                f"{list(shape)} apart from dimension {dim} and to be no larger size than src "
                f"{list(src.shape)}"
            )
    if src.shape == index_shape:
        return src
    if src.ndim:
        return src[tuple([slice(n) for n in index_shape])]
    return broadcast_to(src, index_shape)


# --- slices at indices along a dimension ----------------------------------------------------------


@operation(inplace=True)
def index_add(
    input: Operand, dim: int, index: Operand, source: Operand, *, alpha: float = 1
) -> Tensor:
    """Return `input` with slices added at `index` along a dimension.

    Parameters
    ----------
    input : Tensor
        The tensor to copy.
    dim : int
        The dimension to index.
    index : Tensor of integers, 1-d
        Indices of the slices; they may repeat.
    source : Tensor
        The slices, of the shape and dtype of `input`, but as long as `index` along `dim`.
    alpha : number, default 1
        Factor of `source`.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    OutOfBoundsError
        If an index is out of range.
    ShapeError
        If the shapes don't match.
    DTypeError
        If the dtypes differ.

    Notes
    -----
    Derivative: 1 for every element of `input`, alpha for every element of `source`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.index_add(cr.zeros(3), 0, cr.tensor([2, 2]), cr.tensor([1.0, 2.0]))
    tensor([0., 0., 3.])
    """
    scaled = source if is_one(alpha) else elementwise.multiply.apply(source, alpha)
    return _scatter_slices("index_add", add_at, input, dim, index, scaled)


@operation(inplace=True)
def index_copy(input: Operand, dim: int, index: Operand, source: Operand) -> Tensor:
    """Return `input` with slices written at `index`; the arguments are those of `index_add`.

    Notes
    -----
    If an index is repeated, the last slice is kept. Derivative: 1 for the values in the result, 0
    for those that were overwritten.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.index_copy(cr.zeros(3), 0, cr.tensor([2, 0]), cr.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    return _scatter_slices("index_copy", write_at, input, dim, index, source)


@operation(inplace=True)
def index_fill(input: Operand, dim: int, index: Operand, value: Operand) -> Tensor:
    """Return `input` with a number written to the slices at `index` along a dimension.

    Parameters
    ----------
    input, dim, index
        As for `index_add`.
    value : number or 0-d Tensor
        The new value.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    ShapeError
        If `value` has dimensions.

    Notes
    -----
    Derivatives: for `input` 1 for the elements in the result, else 0; for `value` the gradient is
    summed over its elements.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.index_fill(cr.zeros(3), 0, cr.tensor([2, 0]), 7)
    tensor([7., 0., 7.])
    """
    input = tensor_of(input)
    number = value_like("index_fill", input, value)
    if number.ndim:
        raise ShapeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{number.ndim} dimension(s): index_copy takes slices"
        )
    return _scatter_slices("index_fill", write_at, input, dim, index, number)


@operation(inplace=True)
def index_reduce(
    input: Operand,
    dim: int,
    index: Operand,
    source: Operand,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Return `input` with slices reduced into it at `index`.

    The first arguments are those of `index_add`, the others those of `scatter_reduce`.

    Notes
    -----
    Derivative: as for `scatter_reduce`.

    Examples
    --------
    >>> import chainrule as cr
    >>> source = cr.tensor([1.0, 2.0])
    >>> cr.index_reduce(cr.zeros(3), 0, cr.tensor([2, 2]), source, "amax")
    tensor([0., 0., 2.])
    """
    combine = reduction("index_reduce", reduce, include_self)
    return _scatter_slices("index_reduce", combine, input, dim, index, source)


def _scatter_slices(
    operation: str,
    combine: Combine,
    x: Operand,
    dim: int,
    index: Operand,
    source: Operand,
) -> Tensor:
    """Combine `x` with slices at an index along a dimension."""
    x, positions = tensor_of(x), index_of(operation, index)._array
    source = value_like(operation, x, source)
    if positions.ndim > 1:
        raise ShapeError(
            f"{operation}(): Index is supposed to be a vector, but got dim: {positions.ndim}"
        )
    number = one_dim(dim, x.ndim)
    positions = positions.reshape(-1).astype(np.intp)
    if x.ndim == 0:
        row = shaping.reshape.apply(x, shape=(1,))
        source = source if source.ndim else shaping.reshape.apply(source, shape=(1,))
        return reshape_result(_scatter_slices(operation, combine, row, 0, positions, source), ())
    wanted = (*x.shape[:number], len(positions), *x.shape[number + 1 :])
    if operation == "index_fill":
        source = broadcast_to(source, wanted)
    if source.shape != wanted:
        raise ShapeError(
            f"{operation}(): Number of indices ({len(positions)}) should be equal to "
            "source.size(dim) and the source must match the shape of the input elsewhere: "
            f"expected {list(wanted)}, got {list(source.shape)}"
        )
    with translated_index_errors():
        return combine(x, source, (*(slice(None),) * number, positions))


# --- elements at any index, in the flattened tensor, by a mask ------------------------------------


@operation(inplace=True)
def index_put(
    input: Operand, indices: Sequence[Operand], values: Operand, accumulate: bool = False
) -> Tensor:
    """Return `input` with values at ``x[indices]``.

    Parameters
    ----------
    input : Tensor
        The tensor to copy, x.
    indices : sequence of Tensors of integers or bools
        One for each of the first dimensions; None selects a whole dimension.
    values : Tensor
        Of the dtype of `input`; the shape broadcasts to that of ``x[indices]``.
    accumulate : bool, default False
        Whether to add the values instead of overwriting.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    OutOfBoundsError
        If an index is out of range.
    DTypeError
        If the dtypes differ.

    Notes
    -----
    Derivative: as for `scatter`, or as for `scatter_add` if it accumulates.

    Examples
    --------
    >>> import chainrule as cr
    >>> index = cr.tensor([0, 0])
    >>> cr.index_put(cr.zeros(2), (index,), cr.tensor([1.0, 2.0]), accumulate=True)
    tensor([3., 0.])
    """
    input = tensor_of(input)
    value = value_like("index_put", input, values)
    with translated_index_errors():
        key = as_key(tuple([slice(None) if i is None else i for i in indices]), input._array)
    return _put(input, value, key, accumulate)


index_put_ = inplace_form(index_put)


def _put(x: Tensor, value: Tensor, key: Any, accumulate: bool) -> Tensor:
    with translated_index_errors():
        shape = np.broadcast_to(np.empty((), bool), x.shape)[_placeholder_index(key)].shape
        if broadcast_text([shape, value.shape]) or np.broadcast_shapes(shape, value.shape) != shape:
            raise ShapeError(
                f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to "
                f"indexing result of shape {list(shape)}"
            )
        value = value if value.shape == shape else broadcast_to(value, shape)
        return (add_at if accumulate else write_at)(x, value, key)


def _placeholder_index(key: Any) -> Any:
    """Return an index in which arrays without known values are replaced by zeros."""
    if key.__class__ is tuple:
        return tuple(map(_placeholder_index, key))
    if not is_array(key):
        return key
    if is_known(key) and not namespace(key).waits:
        return key
    if key.dtype.kind == "b":
        check_known(key, "index_put", "choose with where(mask, value, x)")
        return move(key, CPU)
    return np.zeros(key.shape, np.intp)


@operation(inplace=True)
def put(input: Operand, index: Operand, source: Operand, accumulate: bool = False) -> Tensor:
    """Return `input` with the elements of `source` at `index` in the flattened tensor.

    Parameters
    ----------
    input : Tensor
        The tensor to copy.
    index : Tensor of integers
        Positions in the flattened tensor.
    source : Tensor
        Of as many elements as `index`, and of the dtype of `input`.
    accumulate : bool, default False
        Whether to add the values instead of overwriting.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    ShapeError
        If the numbers of elements differ.

    Notes
    -----
    Derivative: as for `scatter`, or as for `scatter_add` if it accumulates.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.put(cr.zeros(2, 2), cr.tensor([3, 1]), cr.tensor([5.0, 6.0]))
    tensor([[0., 6.],
            [0., 5.]])
    """
    input, positions = tensor_of(input), index_of("put", index)._array
    source = value_like("put", input, source)
    if source.numel() != positions.size:
        raise ShapeError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.numel()}, index.numel() = {positions.size}"
        )
    row, values = [shaping.reshape_copy.apply(t, shape=(t.numel(),)) for t in (input, source)]
    return reshape_result(
        _put(row, values, (positions.reshape(-1).astype(np.intp),), accumulate), input.shape
    )


@operation(inplace=True)
def masked_scatter(input: Operand, mask: Operand, source: Operand) -> Tensor:
    """Return `input` with elements of `source`, in their order, written where `mask` is true.

    Parameters
    ----------
    input : Tensor
        The tensor to copy.
    mask : Tensor of bools
        Its shape broadcasts with that of `input`.
    source : Tensor
        Of the dtype of `input`, with at least as many elements as `mask` has true ones.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If `mask` does not have the dtype bool.
    ShapeError
        If `source` has too few elements.

    Notes
    -----
    Derivative: 1 for the values in the result, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> mask = cr.tensor([False, True, True])
    >>> cr.masked_scatter(cr.zeros(3), mask, cr.tensor([1.0, 2.0, 3.0]))
    tensor([0., 1., 2.])
    """
    input, mask = tensor_of(input), tensor_of(mask)
    source = value_like("masked_scatter", input, source)
    if mask.dtype.kind != "b":
        raise DTypeError(f"masked_scatter: expected BoolTensor for mask, got {mask.dtype}")
    shape = np.broadcast_shapes(input.shape, mask.shape)
    if not is_known(mask._array):
        return _masked_scatter_unknown(input, broadcast_to(mask, shape), source)
    xp = namespace(mask._array)
    where = xp.asarray(xp.broadcast_to(mask._array, shape), copy=True)
    count = int(xp.count_nonzero(where))
    if source.numel() < count:
        raise ShapeError(
            f"masked_scatter: expected source to have at least as many elements ({source.numel()}) "
            f"as there are true ones in mask ({count})"
        )
    values = shaping.reshape_copy.apply(source, shape=(source.numel(),))[:count]
    return write_at(input if input.shape == shape else broadcast_to(input, shape), values, (where,))


def _masked_scatter_unknown(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return `masked_scatter` for a mask whose values are not known."""
    number = np.cumsum(mask._array.reshape(-1)).reshape(mask.shape) - 1
    positions = np.clip(number, 0, max(source.numel() - 1, 0))
    values = shaping.reshape_copy.apply(source, shape=(source.numel(),))
    return where(mask, indexing_primitives.index.apply(values, key=positions), x)
