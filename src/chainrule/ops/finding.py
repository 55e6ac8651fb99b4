"""Where elements are, which ones there are, and how many: results of integers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np

from chainrule.arguments import RECORDERS, Operand, floating, one_dim, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import check_known, holds_somewhere, namespace
from chainrule.errors import DTypeError, ShapeError

__all__ = [
    "nonzero",
    "argwhere",
    "unique",
    "unique_consecutive",
    "searchsorted",
    "bucketize",
    "bincount",
    "histc",
    "histogram",
]

Array = Any

# --- where ----------------------------------------------------------------------------------------


def nonzero(x: Operand, /, *, as_tuple: bool = False) -> Any:
    """Return where the elements are that are not zero.

    Parameters
    ----------
    x : Tensor
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
    array = tensor_of(x)._array
    check_known(array, "nonzero", _MASK)
    if as_tuple:
        return tuple([make(place, None) for place in np.nonzero(np.atleast_1d(array))])
    return make(np.argwhere(array), None)


_MASK = "choose with where(), multiply with a mask"


def argwhere(x: Operand, /) -> Tensor:
    """Return where the elements are that are not zero, as rows: NumPy's name of `nonzero`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.argwhere(cr.tensor([0, 1, 2]))
    tensor([[1],
            [2]])
    """
    return cast(Tensor, nonzero(x))


# --- which ----------------------------------------------------------------------------------------


def unique(
    x: Operand,
    /,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements, or the distinct slices along a dimension.

    Parameters
    ----------
    x : Tensor
        Any tensor. Each nan is distinct.
    sorted : bool, default True
        They are always in order; this is here for code that asks for it.
    return_inverse : bool, default False
        Also say for each element which of them it is.
    return_counts : bool, default False
        Also say how often each is there.
    dim : int, optional
        Along which dimension slices are compared: elements are, if left out.

    Returns
    -------
    Tensor, or tuple of Tensors
        Without history: the result has no derivative.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique(cr.tensor([3, 1, 2, 1]), return_counts=True)
    (tensor([1, 2, 3]), tensor([2, 1, 1]))
    """
    array = tensor_of(x)._array
    check_known(array, "unique", "sort() it")
    number = None if dim is None else one_dim(dim, array.ndim)
    if number is not None and array.ndim == 0:
        array = array.reshape(1)
    values, inverse, counts = np.unique(
        array, return_inverse=True, return_counts=True, axis=number, equal_nan=False
    )
    inverse = inverse.reshape(-1) if number is not None else inverse.reshape(array.shape)
    return _asked(values, inverse, counts, return_inverse, return_counts)


def _asked(
    values: Array, inverse: Array, counts: Array, return_inverse: bool, return_counts: bool
) -> Any:
    found = [make(values, None)]
    if return_inverse:
        found.append(make(inverse, None))
    if return_counts:
        found.append(make(counts, None))
    return found[0] if len(found) == 1 else tuple(found)


def unique_consecutive(
    x: Operand,
    /,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the elements, or slices, without those that equal the one before.

    The arguments and results are those of `unique`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique_consecutive(cr.tensor([1, 1, 2, 2, 1]))
    tensor([1, 2, 1])
    """
    array = tensor_of(x)._array
    check_known(array, "unique_consecutive", "compare x[1:] with x[:-1]")
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
    return _asked(np.take(rows, first, number), inverse, counts, return_inverse, return_counts)


# --- between which --------------------------------------------------------------------------------


def searchsorted(
    sorted_sequence: Operand,
    x: Operand,
    /,
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
    x : Tensor or number
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
    Tensor of int64, shape of `x`

    Raises
    ------
    ShapeError
        If the leading dimensions differ.
    ValueError
        If `side` is something else, or contradicts `right`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.searchsorted(cr.tensor([1, 3, 5]), cr.tensor([3, 6]))
    tensor([1, 3])
    """
    rows, values = tensor_of(sorted_sequence)._array, tensor_of(x)._array
    if side not in (None, "left", "right"):
        raise ValueError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise ValueError("torch.searchsorted(): side and right can't be set to opposites")
    if rows.ndim == 0 or (
        rows.ndim > 1 and (values.ndim != rows.ndim or values.shape[:-1] != rows.shape[:-1])
    ):
        raise ShapeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(rows.shape)} and input value tensor {list(values.shape)}"
        )
    if sorter is not None:
        rows = np.take_along_axis(rows, tensor_of(sorter)._array, -1)
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
    if not namespace(smaller).known:
        places = np.take_along_axis(smaller, np.argsort(order, axis=-1), -1)
        return places[..., rows.shape[-1] :] if after else places[..., :length]
    places = np.empty_like(smaller)
    np.put_along_axis(places, order, smaller, -1)
    return places[..., rows.shape[-1] :] if after else places[..., :length]


def bucketize(
    x: Operand, boundaries: Operand, /, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Return between which boundaries each element lies.

    Parameters
    ----------
    x : Tensor or number
        The values.
    boundaries : Tensor, 1-d
        In ascending order.
    out_int32 : bool, default False
        Return int32 instead of int64.
    right : bool, default False
        An element that equals a boundary lies after it, instead of before.

    Returns
    -------
    Tensor of int64, shape of `x`
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
    return searchsorted(edges, x, out_int32=out_int32, right=right)


# --- how many -------------------------------------------------------------------------------------


def bincount(x: Operand, /, weights: Operand | None = None, minlength: int = 0) -> Tensor:
    """Return how often each of the numbers 0, 1, 2 … is there, or the sum of its weights.

    Parameters
    ----------
    x : Tensor of integers, 1-d
        None is negative.
    weights : Tensor, shape of `x`, optional
        What each counts.
    minlength : int, default 0
        The least length of the result.

    Returns
    -------
    Tensor, 1-d
        int64; with weights, of their dtype (float64 for integers).

    Raises
    ------
    ShapeError
        If `x` is no vector, or the weights don't fit.
    DTypeError
        If `x` is not of integers.
    ValueError
        If one of them is negative.

    Notes
    -----
    Derivative by a weight: 1 where it is summed.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.bincount(cr.tensor([1, 1, 3]))
    tensor([0, 2, 0, 1])
    """
    places = tensor_of(x)._array
    if places.dtype.kind not in "iu":
        raise DTypeError(f"bincount: expected integers, got {places.dtype}")
    if places.ndim != 1 or holds_somewhere(places < 0):
        raise (ShapeError if places.ndim != 1 else ValueError)(
            "bincount only supports 1-d non-negative integral inputs."
        )
    check_known(places, "bincount", "scatter_add() ones into zeros of a length that you know")
    length = max(minlength, int(places.max()) + 1 if places.size else 0)
    if weights is None:
        return make(np.bincount(places, minlength=length), None)
    weight = tensor_of(weights)
    if weight.shape != places.shape:
        raise ShapeError(
            f"weights should be 1-d and have the same length as input: got {list(weight.shape)} "
            f"and {list(places.shape)}"
        )
    if weight.dtype.kind not in "fc":
        weight = RECORDERS["astype"](weight, dtype=np.dtype(np.float64))
    return RECORDERS["index_add"](weight, shape=(length,), key=(places.astype(np.intp),))


def histc(x: Operand, /, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return how many elements lie in each of several equally wide bins.

    Parameters
    ----------
    x : Tensor
        Real numbers; nan and what lies outside are not counted.
    bins : int, default 100
        How many bins.
    min, max : number, default 0
        Where the first bin begins and the last one ends. If they are equal, the smallest and the
        largest element.

    Returns
    -------
    Tensor, shape (bins,), of the dtype of `x`
        Without history: the result has no derivative.

    Raises
    ------
    ValueError
        If there is no bin, or `max` is less than `min`, or the range is not finite.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.histc(cr.tensor([1.0, 2.0, 1.0]), bins=3, min=0, max=3)
    tensor([0., 2., 1.])
    """
    values = floating(x)
    array = values._array.reshape(-1)
    low, high = float(min), float(max)
    if bins <= 0:
        raise ValueError(f"torch.histogram(): bins must be > 0, got {bins}")
    if low == high and array.size:
        check_known(array, "histc", "give min and max")
        low, high = float(array.min()), float(array.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (np.isfinite(low) and np.isfinite(high)) or high < low:
        raise ValueError(
            f"torch.histc: range of [{low}, {high}] is not finite, or max is less than min"
        )
    counts = np.histogram(array, bins, (low, high))[0]
    return make(counts.astype(values.dtype), None)


class Histogram(NamedTuple):
    """Counts, and the edges of the bins."""

    hist: Tensor
    bin_edges: Tensor


def histogram(
    x: Operand,
    /,
    bins: int | Operand,
    *,
    range: tuple[float, float] | None = None,
    weight: Operand | None = None,
    density: bool = False,
) -> Histogram:
    """Return how many elements lie in each of several bins, and the bins' edges.

    Parameters
    ----------
    x : Tensor
        Real numbers; what lies outside is not counted.
    bins : int, or Tensor, 1-d
        How many equally wide bins, or the edges of bins.
    range : pair of numbers, optional
        Where the first bin begins and the last one ends: the smallest and the largest element.
    weight : Tensor, shape of `x`, optional
        What each element counts.
    density : bool, default False
        Divide so that the integral is 1.

    Returns
    -------
    named tuple (hist, bin_edges) of Tensors, of the dtype of `x`
        Without history: the result has no derivative.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.histogram(cr.tensor([1.0, 2.0, 1.0]), 3, range=(0, 3)).hist
    tensor([0., 2., 1.])
    """
    values = floating(x)
    edges: Any = bins if isinstance(bins, int) else tensor_of(bins)._array
    weights = None if weight is None else tensor_of(weight)._array.reshape(-1)
    if isinstance(bins, int) and range is None:
        check_known(values._array, "histogram", "give a range")
    counts, edges = np.histogram(
        values._array.reshape(-1), edges, range, density=density, weights=weights
    )
    return Histogram(*[make(part.astype(values.dtype), None) for part in (counts, edges)])
