"""Sorting and searching: sort, topk, unique elements, nonzero, searchsorted, isin."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from chainrule.arguments import Operand, constant, either, on_host, one_dim, tensor_of, whole_number
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import elements_for_shape, is_known, namespace, ndarray, promote
from chainrule.errors import ArgumentError, ShapeError
from chainrule.operation import operation
from chainrule.ops.indexing import get_item
from chainrule.ops.reductions import Extremes
from chainrule.ops.reshape import reshape
from chainrule.primitives import elementwise, indexing, reductions, shaping

__all__ = [
    "nonzero",
    "nonzero_static",
    "argwhere",
    "unique",
    "unique_consecutive",
    "searchsorted",
    "bucketize",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "isin",
    "sort",
    "argsort",
    "topk",
]

Array = Any

# --- elements that are not zero -------------------------------------------------------------------


@overload
def nonzero(input: Operand, *, as_tuple: Literal[False] = False) -> Tensor: ...


@overload
def nonzero(input: Operand, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...


@operation()
def nonzero(input: Operand, *, as_tuple: bool = False) -> Any:
    """Return the indices of the elements that are not zero.

    Parameters
    ----------
    input : Tensor
        Numbers or bools.
    as_tuple : bool, default False
        Return a vector of indices for each dimension, as ``x[…]`` takes them, instead of a matrix.

    Returns
    -------
    Tensor of int64, shape (number of elements, number of dimensions); or tuple of vectors

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[0, 1], [2, 0]])
    >>> cr.nonzero(x)
    tensor([[0, 1],
            [1, 0]])
    >>> x[cr.nonzero(x, as_tuple=True)]
    tensor([1, 2])
    """
    array = tensor_of(input)._array
    array = elements_for_shape(array, "nonzero", _NONZERO_ADVICE)
    if as_tuple:
        array = array.reshape(1) if array.ndim == 0 else array
        return tuple([make(indices, None) for indices in array.nonzero()])
    return make(namespace(array).argwhere(array), None)


_NONZERO_ADVICE = "choose with where(), multiply with a mask, or nonzero_static()"


@operation()
def nonzero_static(input: Operand, *, size: int, fill_value: int = -1) -> Tensor:
    """Return the indices of the first elements that are not zero, in a matrix of a given size.

    Parameters
    ----------
    input : Tensor
        Numbers or bools.
    size : int
        Number of rows of the result, whatever the number of elements that are not zero.
    fill_value : int, default -1
        Stands in the rows for which there are no elements.

    Returns
    -------
    Tensor of int64, shape (size, number of dimensions)
        The shape doesn't depend on values, so that compiled functions and `vmap` can use it.

    Raises
    ------
    ArgumentError
        If `size` is negative.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nonzero_static(cr.tensor([0, 5, 0, 7]), size=3)
    tensor([[ 1],
            [ 3],
            [-1]])
    """
    x, count = tensor_of(input), whole_number(size, "nonzero_static", "size")
    if count < 0:
        raise ArgumentError(f"nonzero_static: size must be non-negative, but got {count}")
    xp, array = namespace(x._array), x._array
    found = xp.reshape(array != 0, (x.numel(),))
    first = xp.argsort(xp.logical_not(found), stable=True)[:count]
    first = xp.concat([first, xp.zeros(max(count - x.numel(), 0), dtype=np.int64)])
    valid = xp.arange(count) < xp.sum(found)
    columns, step = [], x.numel()
    for length in x.shape:
        step //= max(length, 1)
        columns.append(xp.where(valid, first // max(step, 1) % max(length, 1), fill_value))
    if not columns:
        return make(xp.zeros((count, 0), dtype=np.int64), None)
    return make(xp.stack(columns, axis=1), None)


@operation()
def argwhere(input: Operand) -> Tensor:
    """Return the indices of the elements that are not zero, as rows: NumPy's name of `nonzero`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.argwhere(cr.tensor([0, 1, 2]))
    tensor([[1],
            [2]])
    """
    return nonzero(input)


# --- unique elements ------------------------------------------------------------------------------


@operation()
def unique(
    input: Operand,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    axis: int | None = None,
) -> Any:
    """Return the distinct elements, or the distinct slices along a dimension.

    Parameters
    ----------
    input : Tensor
        Any tensor. Each nan is distinct.
    sorted : bool, default True
        Accepted for compatibility: the results are always in ascending order.
    return_inverse : bool, default False
        Also return the index, in the result, of each element of `input`.
    return_counts : bool, default False
        Also return the number of occurrences of each.
    dim : int, optional
        The dimension whose slices are compared; if left out, elements are. Also spelled `axis`.

    Returns
    -------
    Tensor, or tuple of Tensors
        The values have a derivative: the gradient goes to the first of equal elements.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique(cr.tensor([3, 1, 2, 1]), return_counts=True)
    (tensor([1, 2, 3]), tensor([2, 1, 1]))
    """
    input = tensor_of(input)
    array = input._array
    array = elements_for_shape(array, "unique", "sort() it")
    array = on_host(array)
    dim = either(dim, axis)
    number = None if dim is None else one_dim(dim, array.ndim)
    if number is not None and array.ndim == 0:
        array = array.reshape(1)
    tracked = input.requires_grad and is_grad_enabled()
    values, *first, inverse, counts = np.unique(  # type: ignore[call-overload]  # its number of results
        array,
        return_index=tracked,  # needs a stable sort, which is slower
        return_inverse=True,
        return_counts=True,
        axis=number,
        equal_nan=False,
    )
    found = _take_slices(input, first[0], number) if tracked else constant(values, input)
    inverse = inverse.reshape(-1) if number is not None else inverse.reshape(array.shape)
    return _requested_results(found, inverse, counts, return_inverse, return_counts)


def _take_slices(x: Tensor, first: Array, dim: int | None) -> Tensor:
    """Return the elements, or the slices along a dimension, at the positions `first`."""
    if dim is None or x.ndim == 0:
        return get_item(reshape(x, -1), first)
    return get_item(x, (*[slice(None)] * dim, first))


def _requested_results(
    values: Tensor, inverse: Array, counts: Array, return_inverse: bool, return_counts: bool
) -> Any:
    """Return the values, with those of the other results that were requested."""
    found = [values]
    if return_inverse:
        found.append(constant(inverse, values))
    if return_counts:
        found.append(constant(counts, values))
    return found[0] if len(found) == 1 else tuple(found)


@operation()
def unique_consecutive(
    input: Operand,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    axis: int | None = None,
) -> Any:
    """Return the elements, or slices, without those that equal their predecessor.

    The arguments and results are those of `unique`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique_consecutive(cr.tensor([1, 1, 2, 2, 1]))
    tensor([1, 2, 1])
    """
    input = tensor_of(input)
    array = input._array
    array = elements_for_shape(array, "unique_consecutive", "compare x[1:] with x[:-1]")
    array = on_host(array)
    dim = either(dim, axis)
    number = 0 if dim is None else one_dim(dim, array.ndim)
    rows = array.reshape(-1) if dim is None else array
    length = rows.shape[number] if rows.ndim else 1
    rows = rows if rows.ndim else rows.reshape(1)
    slices = np.moveaxis(rows, number, 0)
    slices = slices.reshape(length, math.prod(slices.shape[1:]))
    new = np.ones(length, bool)
    new[1:] = np.any(slices[1:] != slices[:-1], axis=1)
    first = np.flatnonzero(new)
    inverse = np.cumsum(new) - 1
    inverse = inverse.reshape(array.shape) if dim is None else inverse
    counts = np.diff(first, append=length)
    found = _take_slices(input, first, dim if dim is None else number)
    return _requested_results(found, inverse, counts, return_inverse, return_counts)


# --- binary search --------------------------------------------------------------------------------


@operation(method=False, array_api=True)
def searchsorted(
    sorted_sequence: Operand,
    input: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Operand | None = None,
) -> Tensor:
    """Return the indices at which values can be inserted into sorted rows to keep them sorted.

    Parameters
    ----------
    sorted_sequence : Tensor, shape (n,) or (..., n)
        Rows in ascending order.
    input : Tensor or number
        The values: of any shape for one row, else with the same leading dimensions.
    out_int32 : bool, default False
        Return int32 instead of int64.
    right : bool, default False
        Insert after equal elements instead of before. Also spelled ``side="right"``.
    side : {"left", "right"}, optional
        NumPy's and the array API's spelling of `right`.
    sorter : Tensor of integers, optional
        Indices that sort `sorted_sequence`, if it is not sorted.

    Returns
    -------
    Tensor of int64, shape of `input`

    Raises
    ------
    ShapeError
        If the leading dimensions differ.
    ArgumentError
        If `side` is neither of these, or contradicts `right`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.searchsorted(cr.tensor([1, 3, 5]), cr.tensor([3, 6]))
    tensor([1, 3])
    """
    sequence = tensor_of(sorted_sequence)
    rows, values = on_host(sequence._array), on_host(tensor_of(input)._array)
    if side not in (None, "left", "right"):
        raise ArgumentError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if right and side == "left":
        raise ArgumentError("torch.searchsorted(): side and right can't be set to opposites")
    if rows.ndim == 0 or (
        rows.ndim > 1 and (values.ndim != rows.ndim or values.shape[:-1] != rows.shape[:-1])
    ):
        raise ShapeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(rows.shape)} and input value tensor {list(values.shape)}"
        )
    if sorter is not None:
        order = on_host(tensor_of(sorter)._array)
        if order.shape != rows.shape:
            raise ShapeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got "
                f"boundary tensor {list(rows.shape)} and sorter tensor {list(order.shape)}"
            )
        rows = np.take_along_axis(rows, order, -1)
    after = right or side == "right"
    if rows.ndim == 1:
        found = np.searchsorted(rows, values, "right" if after else "left")
        positions = namespace(found).asarray(found)
    else:
        positions = _searchsorted_rows(rows, values, after)
    return constant(positions.astype(np.int32 if out_int32 else np.int64), sequence)


def _searchsorted_rows(rows: Array, values: Array, after: bool) -> Array:
    """Return the insertion indices of values in their rows, by a stable sort of both together."""
    length = values.shape[-1]
    joined = [rows, values] if after else [values, rows]  # equal elements keep this order
    order = np.argsort(np.concatenate(joined, axis=-1), axis=-1, kind="stable")
    is_row = order < rows.shape[-1] if after else order >= length
    smaller = np.cumsum(is_row, axis=-1)
    if not is_known(smaller):
        positions = np.take_along_axis(smaller, np.argsort(order, axis=-1), -1)
        return positions[..., rows.shape[-1] :] if after else positions[..., :length]
    positions = np.empty_like(smaller)
    np.put_along_axis(positions, order, smaller, -1)
    return positions[..., rows.shape[-1] :] if after else positions[..., :length]


def bucketize(
    input: Operand, boundaries: Operand, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Return the index of the interval between boundaries that contains each element.

    Parameters
    ----------
    input : Tensor or number
        The values.
    boundaries : Tensor, 1-d
        In ascending order.
    out_int32 : bool, default False
        Return int32 instead of int64.
    right : bool, default False
        Whether an element that equals a boundary is in the interval after it.

    Returns
    -------
    Tensor of int64, shape of `input`
        0 before the first boundary.

    Raises
    ------
    ShapeError
        If `boundaries` is not a vector.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.bucketize(cr.tensor([0.5, 2.0, 9.0]), cr.tensor([1.0, 2.0]))
    tensor([0, 1, 2])
    """
    edges = tensor_of(boundaries)
    if edges.ndim != 1:
        raise ShapeError(f"bucketize(): boundaries tensor must be 1 dimension, got {edges.ndim}")
    return searchsorted(edges, input, out_int32=out_int32, right=right)


# --- sets, by the array API -----------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """Unique values, their first positions, the index of each element's value, and counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Unique values and their counts."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Unique values, and the index of each element's value among them."""

    values: Tensor
    inverse_indices: Tensor


@operation(method=False, array_api=True)
def unique_all(input: Operand) -> UniqueAll:
    """Return the distinct values of `input`, their first positions, inverse indices and counts.

    Parameters
    ----------
    input : Tensor
        Any tensor, which is flattened; each nan is distinct from every other.

    Returns
    -------
    named tuple (values, indices, inverse_indices, counts) of Tensors
        `values` ascend; `indices` are their first positions in the flattened input;
        ``values[inverse_indices]`` is `input`; `counts` are the numbers of occurrences.

    Notes
    -----
    Derivative: the gradient of a value goes to its first occurrence.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique_all(cr.tensor([3, 1, 3])).indices
    tensor([1, 0])
    """
    input = tensor_of(input)
    array: Any = on_host(input._array)
    array = elements_for_shape(array, "unique", "sort() it")
    _, first, inverse, counts = namespace(array).unique(
        array, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    return UniqueAll(
        get_item(reshape(input, -1), first),
        *[constant(x, input) for x in (first, inverse.reshape(array.shape), counts)],
    )


@operation(method=False, array_api=True)
def unique_counts(input: Operand) -> UniqueCounts:
    """Return the distinct values of `input` and their counts; see `unique_all`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique_counts(cr.tensor([3, 1, 3])).counts
    tensor([1, 2])
    """
    found = unique_all(input)
    return UniqueCounts(found.values, found.counts)


@operation(method=False, array_api=True)
def unique_inverse(input: Operand) -> UniqueInverse:
    """Return the distinct values of `input` and their inverse indices; see `unique_all`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique_inverse(cr.tensor([3, 1, 3])).inverse_indices
    tensor([1, 0, 1])
    """
    found = unique_all(input)
    return UniqueInverse(found.values, found.inverse_indices)


@operation(method=False, array_api=True)
def unique_values(input: Operand) -> Tensor:
    """Return the distinct values of `input`; see `unique_all`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique_values(cr.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    return unique_all(input).values


@operation(method=False, array_api=True)
def isin(
    elements: Operand,
    test_elements: Operand,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Return whether each element is one of `test_elements`.

    Parameters
    ----------
    elements : Tensor, array or number
        The elements to look up.
    test_elements : Tensor, array or number
        The elements to compare with. nan equals nothing.
    assume_unique : bool, default False
        Assume that neither has repeated values, which may save time.
    invert : bool, default False
        Return the opposite.

    Returns
    -------
    Tensor of bools, shape of `elements`

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.isin(cr.tensor([1, 2, 3]), cr.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    x, y = [t._array for t in as_tensors((elements, test_elements))]
    found = namespace(x).isin(*promote(x, y), assume_unique=assume_unique, invert=invert)
    return make(namespace(x).asarray(found), None)


# --- partial sorting ------------------------------------------------------------------------------

_MIN_PARTITION_LENGTH, _MIN_PARTITIONED = 32, 4096


def is_partitioned(shape: tuple[int, ...], length: int) -> bool:
    """Return whether rows are partitioned instead of sorted, if few ranks are needed.

    It takes a tenth of the time for 300 rows of 300, and a fiftieth for a million elements.
    """
    return length >= _MIN_PARTITION_LENGTH and math.prod(shape) >= _MIN_PARTITIONED


def partial_order(rows: Array, ranks: Array) -> Array:
    """Return the indices that a stable sort of each row has at these ranks; others at others."""
    order = np.argpartition(rows, ranks, axis=-1)
    found = np.take_along_axis(rows, order[..., ranks], -1)
    values = [found[..., i : i + 1] for i in range(len(ranks))]
    if any((_count_equal(rows, value) != 1).any() for value in values):  # ties, or nan
        return np.argsort(rows, axis=-1, kind="stable")
    return order


def partial_argsort(rows: Array, k: int, largest: bool) -> Array:
    """Return the indices of the k largest or smallest elements of each row, by a stable sort."""
    length = rows.shape[-1]
    if k * (length + _LENGTH_OF_CALL) <= _MAX_SHARE * length and rows.dtype.char in "fdil":
        extremes = _successive_extremes(rows, k, largest)
        if extremes is not None:
            return extremes
    start = length - k if largest else 0
    positions = np.argpartition(rows, min(start if largest else k, length - 1), axis=-1)
    positions = np.sort(positions[..., start : start + k], axis=-1)
    found = np.take_along_axis(rows, positions, -1)
    last = (found.min if largest else found.max)(axis=-1, keepdims=True)
    if np.any(_count_equal(rows, last) != np.maximum(_count_equal(found, last), 1)):  # it took any
        positions, found = np.broadcast_to(np.arange(length), rows.shape), rows
    if largest:  # sorting the reversed row and reversing the result keeps equal elements in order
        size = found.shape[-1]
        order = size - 1 - np.argsort(found[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    else:
        order = np.argsort(found, axis=-1, kind="stable")
    return np.take_along_axis(positions, order[..., :k], -1)


def _successive_extremes(rows: Array, k: int, largest: bool) -> Array | None:
    """Return `partial_argsort` by the first extreme of each row, again and again.

    None if it comes to elements that are as those that it has found are replaced by, or to nan,
    of which NumPy finds the first. A pass for a million elements takes 0.09 ms, `argpartition` 8.
    """
    remaining = np.array(rows, order="C").reshape(-1, rows.shape[-1])
    found: Any = -np.inf if largest else np.inf
    if rows.dtype.kind == "i":
        found = getattr(np.iinfo(rows.dtype), "min" if largest else "max")
    each = np.arange(len(remaining))
    positions = np.empty((len(remaining), k), np.intp)
    for i in range(k):
        chosen = (remaining.argmax if largest else remaining.argmin)(axis=1)
        values = remaining[each, chosen]
        if (values == found).any() or (not largest and (values != values).any()):
            return None
        positions[:, i] = chosen
        remaining[each, chosen] = found
    return positions.reshape(*rows.shape[:-1], k)


_LENGTH_OF_CALL, _MAX_SHARE = 600, 50
"""Number of elements that an extreme is found of in the time that a row costs, and up to which
multiple of a row's length `argpartition` takes longer."""


def _count_equal(rows: Array, value: Array) -> Array:
    return np.count_nonzero(rows == value, axis=-1)


# --- sorting --------------------------------------------------------------------------------------


@overload
def sort(
    input: Operand,
    dim: int = -1,
    descending: bool = False,
    stable: bool = True,
    *,
    axis: None = None,
) -> Extremes: ...


@overload
def sort(
    input: Operand, dim: int = -1, descending: bool = False, stable: bool = True, *, axis: int
) -> Tensor: ...


@operation()
def sort(
    input: Operand,
    dim: int = -1,
    descending: bool = False,
    stable: bool = True,
    *,
    axis: int | None = None,
) -> Any:
    """Return the elements sorted along a dimension, and their original indices.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan is larger than any.
    dim : int, default -1
        The dimension to sort along.
    descending : bool, default False
        Whether the largest come first.
    stable : bool, default True
        Accepted for compatibility: equal elements always keep their order.
    axis : int, optional
        The dimension, in the array API's spelling: the values alone are returned.

    Returns
    -------
    named tuple (values, indices) of Tensors, shape of `input`; or a Tensor

    Notes
    -----
    Derivative: the gradient is permuted back to the order of `input`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.sort(cr.tensor([3.0, 1.0, 2.0])).values
    tensor([1., 2., 3.])
    """
    if axis is not None:
        return sort(input, axis, descending, stable).values
    input = tensor_of(input)
    number = one_dim(dim, input.ndim)
    indices = _argsort(input, number, descending)
    if input.ndim == 0:
        return Extremes(elementwise.clone.apply(input), indices)
    return Extremes(indexing.take_along_axis.apply(input, indices, axis=number), indices)


@operation(array_api=True)
def argsort(
    input: Operand,
    dim: int | None = None,
    descending: bool = False,
    stable: bool = True,
    *,
    axis: int | None = None,
) -> Tensor:
    """Return the indices that sort along a dimension; the arguments are those of `sort`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.argsort(cr.tensor([3.0, 1.0, 2.0]), descending=True)
    tensor([0, 2, 1])
    """
    input = tensor_of(input)
    dim = either(dim, axis)
    return _argsort(input, one_dim(-1 if dim is None else dim, input.ndim), descending)


def _argsort(x: Tensor, dim: int, descending: bool) -> Tensor:
    """Return the indices that sort along a dimension, stably."""
    if x.ndim == 0:
        return reductions.argmax.apply(x, axis=None, keepdims=False)
    if not descending:
        return reductions.argsort.apply(x, axis=dim, stable=True)
    # Sorting the reversed rows and reversing the result keeps equal elements in their order.
    backwards = shaping.flip.apply(x.detach(), axis=dim)
    order = shaping.flip.apply(reductions.argsort.apply(backwards, axis=dim, stable=True), axis=dim)
    return elementwise.subtract.apply(x.shape[dim] - 1, order)


@operation()
def topk(
    input: Operand,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    axis: int | None = None,
) -> Extremes:
    """Return the `k` largest elements along a dimension, largest first, and their indices.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan is larger than any.
    k : int
        Number of elements.
    dim : int, default -1
        The dimension to select along. Also spelled `axis`.
    largest : bool, default True
        False selects the smallest, smallest first.
    sorted : bool, default True
        Accepted for compatibility: the results are always sorted.

    Returns
    -------
    named tuple (values, indices) of Tensors

    Raises
    ------
    ArgumentError
        If there are fewer than `k` elements along `dim`.

    Notes
    -----
    Derivative: 1 for the selected elements, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.topk(cr.tensor([3.0, 1.0, 2.0]), 2).values
    tensor([3., 2.])
    """
    input = tensor_of(input)
    number = one_dim(dim if axis is None else axis, input.ndim)
    k = whole_number(k, "topk", "k")
    if not 0 <= k <= (input.shape[number] if input.ndim else 1):
        raise ArgumentError(
            f"topk: selected index k = {k} out of range for shape {list(input.shape)}: it is from "
            f"0 to the size of dimension {number}"
        )
    if input.ndim == 0:
        return Extremes(elementwise.clone.apply(input), _argsort(input, number, largest))
    length = input.shape[number]
    is_few = 0 < k < length // 4 and is_partitioned(input.shape, length)
    if is_few and input._array.__class__ is ndarray:
        positions = partial_argsort(np.moveaxis(input._array, number, -1), k, largest)
        first = make(np.moveaxis(positions, -1, number), None)
    else:
        first = _argsort(input, number, largest)[(slice(None),) * number + (slice(k),)]
    return Extremes(indexing.take_along_axis.apply(input, first, axis=number), first)
