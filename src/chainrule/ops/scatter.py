"""Elements written, added or combined at indices; each function returns a new tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.arguments import Operand, one_dim, tensor_of
from chainrule.autograd.error_messages import broadcast_text
from chainrule.autograd.operands import scalar_array
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import check_known, dtype_title, is_array, is_known, namespace
from chainrule.errors import ArgumentError, CompileError, DTypeError, ShapeError
from chainrule.kernels import flat_indexing
from chainrule.operation import inplace_form, operation
from chainrule.ops.index_errors import in_our_words, indexing
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

# --- combining ------------------------------------------------------------------------------------
#
# How values that go to indices are combined with what is there.

Array = Any


def alike(operation: str, x: Tensor, value: Operand) -> Tensor:
    """Return a value as a tensor of the dtype of `x`; numbers are converted."""
    if value.__class__ is not Tensor and isinstance(
        value, bool | int | float | complex | np.generic
    ):
        made = scalar_array(value, x._array)
        if not np.can_cast(made.dtype, x.dtype, "same_kind"):
            raise DTypeError(
                f"{operation}(): value {value!r} cannot be converted to type {x.dtype}"
            )
        return make(made.astype(x.dtype), None)
    tensor = tensor_of(value)
    if tensor._array.dtype != x._array.dtype:
        raise DTypeError(
            f"{operation}(): Expected self.dtype to be equal to src.dtype, got "
            f"{dtype_title(x.dtype)} and {dtype_title(tensor.dtype)}: convert one of them"
        )
    return tensor


def write(x: Tensor, value: Tensor, key: Any) -> Tensor:
    """Return `x` with `value`, which has the shape of ``x[key]``, at an index."""
    kept = None
    if value.requires_grad and not flat_indexing.is_masks(key):
        kept = namespace(x._array).lasting(key, x.shape)
    return indexing_primitives.assign.apply(
        x, value, path=((index_primitive, {"key": key}),), lasting=kept
    )


def add(x: Tensor, value: Tensor, key: Any) -> Tensor:
    return indexing_primitives.add_at.apply(x, value, key=key)


def _multiply(x: Tensor, value: Tensor, key: Any) -> Tensor:
    return product(x, value, key, True)


WAYS: dict[Any, Callable[[Tensor, Tensor, Any], Tensor]] = {
    None: write,
    "add": add,
    "multiply": _multiply,
}


def way(operation: str, reduce: str, own: bool) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Return how a reduction combines; without `own`, what is overwritten does not take part."""
    if reduce == "sum":
        return add if own else lambda x, value, key: add(_cleared(x, key), value, key)
    if reduce == "mean":
        return lambda x, value, key: _average(x, value, key, own)
    if reduce == "prod":
        return lambda x, value, key: product(x, value, key, own)
    if reduce in ("amax", "amin"):
        extreme = (
            indexing_primitives.maximum_at if reduce == "amax" else indexing_primitives.minimum_at
        )
        return lambda x, value, key: extreme.apply(x, value, key=key, own=own)
    raise ArgumentError(
        f"{operation}(): reduce argument must be either sum, prod, mean, amax or amin, got "
        f"{reduce!r}"
    )


def _cleared(x: Tensor, key: Any) -> Tensor:
    """Return `x` with zeros at an index."""
    zero = make(namespace(x._array).zeros((), dtype=x.dtype), None)
    return indexing_primitives.assign.apply(
        x, zero, path=((index_primitive, {"key": key}),), lasting=None
    )


def _counts(x: Tensor, key: Any) -> Array:
    """Return how often an index picks each element of `x`."""
    shape, xp = x.shape, namespace(x._array)
    if not xp.known:
        ones = xp.ones(xp.index(x._array, key).shape, np.dtype(np.int64))
        return xp.index_add(ones, shape=shape, key=key)
    places = flat_indexing.flat_positions(key, shape)
    if places is None:
        places = np.arange(math.prod(shape)).reshape(shape)[key]
    return np.bincount(places.reshape(-1), minlength=math.prod(shape)).reshape(shape)


def _average(x: Tensor, value: Tensor, key: Any, own: bool) -> Tensor:
    number = _counts(x, key)
    number = number + 1 if own else np.maximum(number, 1)
    total = add(x if own else _cleared(x, key), value, key)
    divide = elementwise.divide if x.dtype.kind in "fc" else elementwise.floor_divide
    return divide.apply(total, make(number.astype(x.dtype), None))


def product(x: Tensor, value: Tensor, key: Any, own: bool) -> Tensor:
    """Return the product of all that comes to each element.

    Factors of one element are multiplied in pairs, pairs in pairs and so on: no division, so every
    derivative is exact where there are zeros.
    """
    if not all(namespace(part).known for part in (x._array, *key) if is_array(part)):
        raise CompileError(
            "a product of what comes to the same index can't be compiled, nor mapped, since its "
            "order depends on the index: reduce by a sum, a mean or a maximum, or call it outside"
        )
    size = x.numel()
    places = flat_indexing.flat_positions(key, x.shape)
    if places is None:
        places = np.arange(size).reshape(x.shape)[key]
    places = places.reshape(-1)
    first = np.arange(size)
    if not own:
        first = np.delete(first, places)
    owner = np.concatenate([first, places])
    order = np.argsort(owner, kind="stable")
    owner = owner[order]
    flatly = [shaping.reshape_copy.apply(t, shape=(t.numel(),)) for t in (x, value)]
    if not own:
        flatly[0] = indexing_primitives.index.apply(flatly[0], key=first)
    factors = indexing_primitives.index.apply(shaping.concat.apply(*flatly, axis=0), key=order)
    one = make(np.ones(1, x.dtype), None)
    while len(owner) > size:
        starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        rank = np.arange(len(owner)) - np.repeat(starts, np.diff(np.r_[starts, len(owner)]))
        left = np.flatnonzero(rank % 2 == 0)
        paired = np.r_[owner[1:] == owner[:-1], False][left]
        right = np.where(paired, left + 1, len(owner))
        padded = shaping.concat.apply(factors, one, axis=0)
        factors = elementwise.multiply.apply(
            indexing_primitives.index.apply(factors, key=left),
            indexing_primitives.index.apply(padded, key=right),
        )
        owner = owner[left]
    return reshape_result(factors, x.shape)


# --- scatter --------------------------------------------------------------------------------------

# --- one number for each index --------------------------------------------------------------------


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
        What to write to a copy of.
    dim : int
        Along which dimension.
    index : Tensor of integers
        Of as many dimensions as `input`; nowhere longer than `src`, nor, except along `dim`, than
        `input`.
    src : Tensor or number
        What to write, of the dtype of `input`. A number can also be given as `value`.
    reduce : {"add", "multiply"}, optional
        Combine with what is there. `scatter_add` and `scatter_reduce` are the newer spellings.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    OutOfBoundsError
        If an index is out of range.
    ShapeError
        If the shapes don't fit.
    DTypeError
        If the dtypes differ.

    Notes
    -----
    Of values written to one place the last one stays. Derivative: 1 for what is in the result, 0
    for what was overwritten, also for an element of `src` that a later one replaced; PyTorch gives
    that the gradient of the element which replaced it.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.scatter(cr.zeros(3), 0, cr.tensor([2, 0]), cr.tensor([5.0, 7.0]))
    tensor([7., 0., 5.])
    """
    if (src is None) == (value is None):
        raise TypeError("scatter(): give either src or value: what is written")
    combine = WAYS.get(reduce)
    if combine is None:
        raise ArgumentError(
            f"scatter(): reduce argument must be either add or multiply, got {reduce!r}"
        )
    return _along("scatter", combine, input, dim, index, value if src is None else src)


@operation(inplace=True)
def scatter_add(input: Operand, dim: int, index: Operand, src: Operand) -> Tensor:
    """Return `input` with the elements of `src` added at `index`; the arguments are `scatter`'s.

    Notes
    -----
    What comes to one place adds up. Derivative: 1 for every element of `input` and `src`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.scatter_add(cr.zeros(3), 0, cr.tensor([2, 0, 2]), cr.tensor([1.0, 2.0, 3.0]))
    tensor([2., 0., 4.])
    """
    return _along("scatter_add", add, input, dim, index, src)


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
    """Return `input` with the elements of `src` combined into it at `index`.

    The first arguments are those of `scatter`.

    Parameters
    ----------
    reduce : {"sum", "prod", "mean", "amax", "amin"}
        How all that comes to one place is combined.
    include_self : bool, default True
        Whether the element of `input` there is one of them.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: as of `sum`, `prod` (exact where there are zeros, to any order), `mean`, `amax` and
    `amin` (shared evenly by equal elements; where `include_self` is false, PyTorch leaves a share
    for the element of `input` all the same).

    Examples
    --------
    >>> import chainrule as cr
    >>> x, index = cr.ones(2), cr.tensor([1, 1, 1])
    >>> cr.scatter_reduce(x, 0, index, cr.tensor([2.0, 3.0, 5.0]), "prod")
    tensor([ 1., 30.])
    """
    return _along(
        "scatter_reduce", way("scatter_reduce", reduce, include_self), input, dim, index, src
    )


def _along(
    operation: str,
    combine: Callable[[Tensor, Tensor, Any], Tensor],
    x: Operand,
    dim: int,
    index: Operand,
    src: Operand,
) -> Tensor:
    """Combine `x` with `src` at an index along a dimension."""
    x, places = tensor_of(x), index_of(operation, index)._array
    src = alike(operation, x, src)
    shape = x._array.shape
    number = one_dim(dim, len(shape))
    if not shape:
        src = src if src.ndim else shaping.reshape.apply(src, shape=(1,))
        row = shaping.reshape.apply(x, shape=(1,))
        return reshape_result(_along(operation, combine, row, 0, places.reshape(-1), src), ())
    if places.size == 0:
        return elementwise.clone.apply(x)
    if not places.shape == shape == src._array.shape:
        src = _cut(operation, shape, places.shape, src, number)
    kept = x.requires_grad or src.requires_grad  # the user may write to the index afterwards
    try:
        return combine(x, src, flat_indexing.grid(places.astype(np.intp, copy=kept), number))
    except IndexError as error:
        raise in_our_words(error) from None


def _cut(
    operation: str, shape: tuple[int, ...], places: tuple[int, ...], src: Tensor, dim: int
) -> Tensor:
    """Return the part of `src` that comes to as many places."""
    if len(places) != len(shape) or src.ndim not in (0, len(shape)):
        raise ShapeError(
            f"{operation}(): Index tensor must have the same number of dimensions as self tensor "
            f"and src: got {len(places)}, {len(shape)} and {src.ndim}"
        )
    for i, wanted in enumerate(places):
        if (i != dim and wanted > shape[i]) or (src.ndim and wanted > src.shape[i]):
            raise ShapeError(
                f"{operation}(): Expected index {list(places)} to be no larger than self "
                f"{list(shape)} apart from dimension {dim} and to be no larger size than src "
                f"{list(src.shape)}"
            )
    if src.shape == places:
        return src
    return src[tuple([slice(n) for n in places])] if src.ndim else broadcast_to(src, places)


# --- a slice for each index -----------------------------------------------------------------------


@operation(inplace=True)
def index_add(
    input: Operand, dim: int, index: Operand, source: Operand, *, alpha: float = 1
) -> Tensor:
    """Return `input` with slices added at `index` along a dimension.

    Parameters
    ----------
    input : Tensor
        What to add to.
    dim : int
        Along which dimension.
    index : Tensor of integers, 1-d
        Where the slices go; they may repeat.
    source : Tensor
        The slices, of the shape and dtype of `input`, but along `dim` as many as there are indices.
    alpha : number, default 1
        What `source` is multiplied by.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    OutOfBoundsError
        If an index is out of range.
    ShapeError
        If the shapes don't fit.
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
    scaled = source if alpha == 1 else elementwise.multiply.apply(source, alpha)
    return _slices("index_add", add, input, dim, index, scaled)


@operation(inplace=True)
def index_copy(input: Operand, dim: int, index: Operand, source: Operand) -> Tensor:
    """Return `input` with slices written at `index`; the arguments are those of `index_add`.

    Notes
    -----
    Of slices written to one place the last one stays. Derivative: 1 for what is in the result, 0
    for what was overwritten.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.index_copy(cr.zeros(3), 0, cr.tensor([2, 0]), cr.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    return _slices("index_copy", write, input, dim, index, source)


@operation(inplace=True)
def index_fill(input: Operand, dim: int, index: Operand, value: Operand) -> Tensor:
    """Return `input` with a number written to the slices at `index` along a dimension.

    Parameters
    ----------
    input, dim, index
        As for `index_add`.
    value : number or 0-d Tensor
        What to write.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    ShapeError
        If `value` has dimensions.

    Notes
    -----
    Derivative: 1 for what is in the result; all places that hold `value` add up.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.index_fill(cr.zeros(3), 0, cr.tensor([2, 0]), 7)
    tensor([7., 0., 7.])
    """
    input = tensor_of(input)
    number = alike("index_fill", input, value)
    if number.ndim:
        raise ShapeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{number.ndim} dimension(s): index_copy takes slices"
        )
    return _slices("index_fill", write, input, dim, index, number)


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
    """Return `input` with slices combined into it at `index`.

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
    combine = way("index_reduce", reduce, include_self)
    return _slices("index_reduce", combine, input, dim, index, source)


def _slices(
    operation: str,
    combine: Callable[[Tensor, Tensor, Any], Tensor],
    x: Operand,
    dim: int,
    index: Operand,
    source: Operand,
) -> Tensor:
    """Combine `x` with slices at an index along a dimension."""
    x, places = tensor_of(x), index_of(operation, index)._array
    source = alike(operation, x, source)
    if places.ndim > 1:
        raise ShapeError(
            f"{operation}(): Index is supposed to be a vector, but got dim: {places.ndim}"
        )
    number = one_dim(dim, x.ndim)
    places = places.reshape(-1).astype(np.intp)
    if x.ndim == 0:
        row = shaping.reshape.apply(x, shape=(1,))
        source = source if source.ndim else shaping.reshape.apply(source, shape=(1,))
        return reshape_result(_slices(operation, combine, row, 0, places, source), ())
    wanted = (*x.shape[:number], len(places), *x.shape[number + 1 :])
    if operation == "index_fill":
        source = broadcast_to(source, wanted)
    if source.shape != wanted:
        raise ShapeError(
            f"{operation}(): Number of indices ({len(places)}) should be equal to source.size(dim) "
            f"and the source must match the shape of the input elsewhere: expected {list(wanted)}, "
            f"got {list(source.shape)}"
        )
    with indexing():
        return combine(x, source, (*(slice(None),) * number, places))


# --- putting --------------------------------------------------------------------------------------
#
# Elements written or added at any index.


@operation(inplace=True)
def index_put(
    input: Operand, indices: Sequence[Operand], values: Operand, accumulate: bool = False
) -> Tensor:
    """Return `input` with values at ``x[indices]``.

    Parameters
    ----------
    input : Tensor
        What to write to a copy of.
    indices : sequence of Tensors of integers or bools
        One for each of the first dimensions; None means all of one.
    values : Tensor
        Of the dtype of `input`; the shape broadcasts to that of ``x[indices]``.
    accumulate : bool, default False
        Add instead of overwriting.

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
    value = alike("index_put", input, values)
    key = as_key(tuple([slice(None) if i is None else i for i in indices]), input._array)
    return _put(input, value, key, accumulate)


index_put_ = inplace_form(index_put)


def _put(x: Tensor, value: Tensor, key: Any, accumulate: bool) -> Tensor:
    with indexing():
        shape = np.broadcast_to(np.empty((), bool), x.shape)[_stand_in(key)].shape
        if broadcast_text([shape, value.shape]) or np.broadcast_shapes(shape, value.shape) != shape:
            raise ShapeError(
                f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to "
                f"indexing result of shape {list(shape)}"
            )
        value = value if value.shape == shape else broadcast_to(value, shape)
        return (add if accumulate else write)(x, value, key)


def _stand_in(key: Any) -> Any:
    """Return an index of the same shape, for those that are not known."""
    if key.__class__ is tuple:
        return tuple(map(_stand_in, key))
    if not is_array(key) or is_known(key):
        return key
    if key.dtype.kind == "b":
        check_known(key, "index_put", "choose with where(mask, value, x)")
    return np.zeros(key.shape, np.intp)


@operation(inplace=True)
def put(input: Operand, index: Operand, source: Operand, accumulate: bool = False) -> Tensor:
    """Return `input` with the elements of `source` at `index` in the flattened tensor.

    Parameters
    ----------
    input : Tensor
        What to write to a copy of.
    index : Tensor of integers
        Where.
    source : Tensor
        Of as many elements as `index`, and of the dtype of `input`.
    accumulate : bool, default False
        Add instead of overwriting.

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
    input, places = tensor_of(input), index_of("put", index)._array
    source = alike("put", input, source)
    if source.numel() != places.size:
        raise ShapeError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.numel()}, index.numel() = {places.size}"
        )
    row, values = [shaping.reshape_copy.apply(t, shape=(t.numel(),)) for t in (input, source)]
    return reshape_result(
        _put(row, values, (places.reshape(-1).astype(np.intp),), accumulate), input.shape
    )


@operation(inplace=True)
def masked_scatter(input: Operand, mask: Operand, source: Operand) -> Tensor:
    """Return `input` with elements of `source`, in their order, written where `mask` is true.

    Parameters
    ----------
    input : Tensor
        What to write to a copy of.
    mask : Tensor of bools
        Its shape broadcasts with that of `input`.
    source : Tensor
        Of the dtype of `input`, and of at least as many elements as are to be written.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If `mask` is not of bools.
    ShapeError
        If `source` has too few elements.

    Notes
    -----
    Derivative: 1 for what is in the result, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> mask = cr.tensor([False, True, True])
    >>> cr.masked_scatter(cr.zeros(3), mask, cr.tensor([1.0, 2.0, 3.0]))
    tensor([0., 1., 2.])
    """
    input, mask = tensor_of(input), tensor_of(mask)
    source = alike("masked_scatter", input, source)
    if mask.dtype.kind != "b":
        raise DTypeError(f"masked_scatter: expected BoolTensor for mask, got {mask.dtype}")
    shape = np.broadcast_shapes(input.shape, mask.shape)
    if not is_known(mask._array):
        return _chosen(input, broadcast_to(mask, shape), source)
    where = np.array(np.broadcast_to(mask._array, shape))
    count = int(np.count_nonzero(where))
    if source.numel() < count:
        raise ShapeError(
            f"masked_scatter: expected source to have at least as many elements ({source.numel()}) "
            f"as there are true ones in mask ({count})"
        )
    values = shaping.reshape_copy.apply(source, shape=(source.numel(),))[:count]
    return write(input if input.shape == shape else broadcast_to(input, shape), values, (where,))


def _chosen(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Do `masked_scatter` without knowing how many elements of `source` it takes."""
    number = np.cumsum(mask._array.reshape(-1)).reshape(mask.shape) - 1
    places = np.clip(number, 0, max(source.numel() - 1, 0))
    values = shaping.reshape_copy.apply(source, shape=(source.numel(),))
    return where(mask, indexing_primitives.index.apply(values, key=places), x)
