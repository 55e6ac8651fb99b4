"""Order: sorted elements, where they were, and the first few."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from chainrule.arguments import Operand, either, one_dim, tensor_of, whole_number
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import check_known, is_known, namespace, promote
from chainrule.errors import ArgumentError, ShapeError
from chainrule.operation import operation
from chainrule.ops.indexing import get_item
from chainrule.ops.reductions import Extremes
from chainrule.ops.reshape import reshape
from chainrule.primitives import elementwise, indexing, reductions, shaping

__all__ = [
    "nonzero",
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

# --- finding --------------------------------------------------------------------------------------
#
# Where elements are, and which ones there are: results of integers.

Array = Any

# --- where ----------------------------------------------------------------------------------------


@overload
def nonzero(input: Operand, *, as_tuple: Literal[False] = False) -> Tensor: ...


@overload
def nonzero(input: Operand, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...


@operation()
def nonzero(input: Operand, *, as_tuple: bool = False) -> Any:
    """Return where the elements are that are not zero.

    Parameters
    ----------
    input : Tensor
        Numbers or bools.
    as_tuple : bool, default False
        Return an index for each dimension, as ``x[…]`` takes them, instead of one matrix.

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
    check_known(array, "nonzero", _MASK)
    if as_tuple:
        return tuple([make(place, None) for place in np.nonzero(np.atleast_1d(array))])
    return make(np.argwhere(array), None)


_MASK = "choose with where(), multiply with a mask"


@operation()
def argwhere(input: Operand) -> Tensor:
    """Return where the elements are that are not zero, as rows: NumPy's name of `nonzero`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.argwhere(cr.tensor([0, 1, 2]))
    tensor([[1],
            [2]])
    """
    return nonzero(input)


# --- which ----------------------------------------------------------------------------------------


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
        They are always in order; this is here for code that asks for it.
    return_inverse : bool, default False
        Also say for each element which of them it is.
    return_counts : bool, default False
        Also say how often each is there.
    dim : int, optional
        Along which dimension slices are compared: elements are, if left out. Also spelled `axis`.

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
    check_known(array, "unique", "sort() it")
    dim = either(dim, axis)
    number = None if dim is None else one_dim(dim, array.ndim)
    if number is not None and array.ndim == 0:
        array = array.reshape(1)
    tracked = input.requires_grad and is_grad_enabled()
    values, *first, inverse, counts = np.unique(  # type: ignore[call-overload]  # as many as asked
        array,
        return_index=tracked,  # which takes a slower, stable sort
        return_inverse=True,
        return_counts=True,
        axis=number,
        equal_nan=False,
    )
    found = _picked(input, first[0], number) if tracked else make(values, None)
    inverse = inverse.reshape(-1) if number is not None else inverse.reshape(array.shape)
    return _asked(found, inverse, counts, return_inverse, return_counts)


def _picked(x: Tensor, first: Array, dim: int | None) -> Tensor:
    """Return the elements, or the slices along a dimension, at these positions."""
    if dim is None or x.ndim == 0:
        return get_item(reshape(x, -1), first)
    return get_item(x, (*[slice(None)] * dim, first))


def _asked(
    values: Tensor, inverse: Array, counts: Array, return_inverse: bool, return_counts: bool
) -> Any:
    found = [values]
    if return_inverse:
        found.append(make(inverse, None))
    if return_counts:
        found.append(make(counts, None))
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
    """Return the elements, or slices, without those that equal the one before.

    The arguments and results are those of `unique`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique_consecutive(cr.tensor([1, 1, 2, 2, 1]))
    tensor([1, 2, 1])
    """
    input = tensor_of(input)
    array = input._array
    check_known(array, "unique_consecutive", "compare x[1:] with x[:-1]")
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
    found = _picked(input, first, dim if dim is None else number)
    return _asked(found, inverse, counts, return_inverse, return_counts)


# --- between which --------------------------------------------------------------------------------


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
    """Return where values would be inserted into sorted rows, so that these stay sorted.

    Parameters
    ----------
    sorted_sequence : Tensor, shape (n,) or (..., n)
        Rows in ascending order.
    input : Tensor or number
        The values: of any shape for one row, else with the same leading dimensions.
    out_int32 : bool, default False
        Return int32 instead of int64.
    right : bool, default False
        Among equal elements, after them instead of before. Also spelled ``side="right"``.
    side : {"left", "right"}, optional
        The same, as NumPy and the array API have it.
    sorter : Tensor of integers, optional
        The order that would sort `sorted_sequence`, if it isn't sorted.

    Returns
    -------
    Tensor of int64, shape of `input`

    Raises
    ------
    ShapeError
        If the leading dimensions differ.
    ArgumentError
        If `side` is something else, or contradicts `right`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.searchsorted(cr.tensor([1, 3, 5]), cr.tensor([3, 6]))
    tensor([1, 3])
    """
    rows, values = tensor_of(sorted_sequence)._array, tensor_of(input)._array
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
        order = tensor_of(sorter)._array
        if order.shape != rows.shape:
            raise ShapeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got "
                f"boundary tensor {list(rows.shape)} and sorter tensor {list(order.shape)}"
            )
        rows = np.take_along_axis(rows, order, -1)
    after = right or side == "right"
    if rows.ndim == 1:
        found = np.searchsorted(rows, values, "right" if after else "left")
        places = namespace(found).asarray(found)
    else:
        places = _merged(rows, values, after)
    return make(places.astype(np.int32 if out_int32 else np.int64), None)


def _merged(rows: Array, values: Array, after: bool) -> Array:
    """Return where values would be inserted into their rows, by sorting both as one."""
    length = values.shape[-1]
    joined = [rows, values] if after else [values, rows]  # a stable sort keeps the first ones first
    order = np.argsort(np.concatenate(joined, axis=-1), axis=-1, kind="stable")
    is_row = order < rows.shape[-1] if after else order >= length
    smaller = np.cumsum(is_row, axis=-1)
    if not is_known(smaller):
        places = np.take_along_axis(smaller, np.argsort(order, axis=-1), -1)
        return places[..., rows.shape[-1] :] if after else places[..., :length]
    places = np.empty_like(smaller)
    np.put_along_axis(places, order, smaller, -1)
    return places[..., rows.shape[-1] :] if after else places[..., :length]


def bucketize(
    input: Operand, boundaries: Operand, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Return between which boundaries each element lies.

    Parameters
    ----------
    input : Tensor or number
        The values.
    boundaries : Tensor, 1-d
        In ascending order.
    out_int32 : bool, default False
        Return int32 instead of int64.
    right : bool, default False
        An element that equals a boundary lies after it, instead of before.

    Returns
    -------
    Tensor of int64, shape of `input`
        0 before the first boundary.

    Raises
    ------
    ShapeError
        If `boundaries` is no vector.

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


# --- sets -----------------------------------------------------------------------------------------
#
# The elements of a tensor as a set: each distinct value once. Results are in ascending order.


class UniqueAll(NamedTuple):
    """Distinct values, where each is first, which one each element is, and how often each is."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct values, and how often each is there."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct values, and for each element which of them it is."""

    values: Tensor
    inverse_indices: Tensor


@operation(method=False, array_api=True)
def unique_all(input: Operand) -> UniqueAll:
    """Return the distinct values of `input`, with all that there is to know of where they are.

    Parameters
    ----------
    input : Tensor
        Its elements are taken as one row; each nan is distinct from every other.

    Returns
    -------
    named tuple (values, indices, inverse_indices, counts) of Tensors
        `values` ascend; ``x.flatten()[indices]`` is `values`, first occurrences;
        ``values[inverse_indices]`` is `input`, in its shape; `counts` says how often each is there.

    Notes
    -----
    Derivative: the gradient of a value goes to its first occurrence, the one that was picked.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique_all(cr.tensor([3, 1, 3])).indices
    tensor([1, 0])
    """
    input = tensor_of(input)
    array: Any = input._array
    check_known(array, "unique", "sort() it")
    _, first, inverse, counts = namespace(array).unique(
        array, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    return UniqueAll(
        get_item(reshape(input, -1), first),
        make(first, None),
        make(inverse.reshape(array.shape), None),
        make(counts, None),
    )


@operation(method=False, array_api=True)
def unique_counts(input: Operand) -> UniqueCounts:
    """Return the distinct values of `input` and how often each is there; see `unique_all`.

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
    """Return the distinct values of `input` and which of them each element is; see `unique_all`.

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
    """Say of each element whether it is one of others.

    Parameters
    ----------
    elements : Tensor, array or number
        What is asked about.
    test_elements : Tensor, array or number
        What they are looked for in. nan equals nothing.
    assume_unique : bool, default False
        Promise that no value is there twice in either, which may save time.
    invert : bool, default False
        Say the opposite.

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


# --- partial --------------------------------------------------------------------------------------
#
# Some elements in order, without putting all of them in order.

MANY = 1000
"""Longer rows are not sorted where few ranks are asked for: 1.5 ms for a million, not 80."""


def foremost(rows: Array, k: int, largest: bool) -> Array:
    """Return where the k largest or smallest elements of each row are, equal ones in order."""
    length = rows.shape[-1]
    start = length - k if largest else 0
    places = np.argpartition(rows, min(start if largest else k, length - 1), axis=-1)
    places = np.sort(places[..., start : start + k], axis=-1)
    found = np.take_along_axis(rows, places, -1)
    if largest:  # sorted from the back, equal elements keep their order when turned around
        order = k - 1 - np.argsort(found[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    else:
        order = np.argsort(found, axis=-1, kind="stable")
    return np.take_along_axis(places, order, -1)


# --- sort search ----------------------------------------------------------------------------------


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
    """Return the elements in order along a dimension, and where they were.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan is larger than any.
    dim : int, default -1
        Along which dimension.
    descending : bool, default False
        Largest first.
    stable : bool, default True
        Equal elements always keep their order; this is here for code that asks for it.
    axis : int, optional
        The array API's form: the dimension, and the result is the values alone.

    Returns
    -------
    named tuple (values, indices) of Tensors, shape of `input`; or a Tensor

    Notes
    -----
    Derivative: each element's gradient goes back to where the element was; equal ones are kept in
    their order.

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
    indices = _order(input, number, descending)
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
    """Return where the elements are, in order along a dimension; the arguments are those of `sort`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.argsort(cr.tensor([3.0, 1.0, 2.0]), descending=True)
    tensor([0, 2, 1])
    """
    input = tensor_of(input)
    dim = either(dim, axis)
    return _order(input, one_dim(-1 if dim is None else dim, input.ndim), descending)


def _order(x: Tensor, dim: int, descending: bool) -> Tensor:
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
    """Return the `k` largest elements along a dimension, largest first, and where they were.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan is larger than any.
    k : int
        How many.
    dim : int, default -1
        Along which dimension. Also spelled `axis`.
    largest : bool, default True
        False gives the smallest, smallest first.
    sorted : bool, default True
        They are always in order; this is here for code that asks for it.

    Returns
    -------
    named tuple (values, indices) of Tensors

    Raises
    ------
    ArgumentError
        If there are fewer than `k` elements along `dim`.

    Notes
    -----
    Derivative: each element's gradient goes back to where the element was.

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
            f"topk: selected index k = {k} out of range for shape {list(input.shape)}"
        )
    if input.ndim == 0:
        return Extremes(elementwise.clone.apply(input), _order(input, number, largest))
    if input.shape[number] > MANY and k < input.shape[number] // 4:
        places = foremost(np.moveaxis(input._array, number, -1), k, largest)
        first = make(np.moveaxis(places, -1, number), None)
    else:
        first = _order(input, number, largest)[(slice(None),) * number + (slice(k),)]
    return Extremes(indexing.take_along_axis.apply(input, first, axis=number), first)
