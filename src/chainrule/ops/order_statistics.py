"""Order statistics: the elements at a rank, and those that are there most often."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from chainrule.arguments import (
    Operand,
    cast,
    either,
    floating,
    one_dim,
    tensor_of,
    whole_number,
)
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import check_known, dtype_title, holds_somewhere, is_known, whole
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.operation import operation
from chainrule.ops.permute import movedim
from chainrule.ops.reductions import Extremes, chosen
from chainrule.ops.reshape import reshape
from chainrule.ops.sort_search import MIN_PARTITION_LENGTH, sort
from chainrule.ops.where import where
from chainrule.ops.wrappers import reshaped
from chainrule.primitives import elementwise, indexing, reductions

__all__ = [
    "median",
    "nanmedian",
    "kthvalue",
    "mode",
    "msort",
    "quantile",
    "nanquantile",
    "bincount",
    "histc",
    "histogram",
]

Array = Any


@operation()
def median(
    input: Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    """Return the median: of all elements, or of each row along a dimension and where it is.

    Parameters
    ----------
    input : Tensor
        Real numbers. Where one is nan, the median is nan.
    dim : int, optional
        Along which dimension: of everything, as a 0-d tensor, if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep the dimension, with length 1. Also spelled `keepdims`.

    Returns
    -------
    Tensor, or named tuple (values, indices) of Tensors
        The lower one of two elements in the middle. Of nothing at all: nan.

    Raises
    ------
    ShapeError
        If there is no element along `dim`.

    Notes
    -----
    Derivative: 1 for the element whose index is returned; without `dim` shared evenly by all
    elements that are equal to the median.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.median(cr.tensor([3.0, 1.0, 2.0, 4.0]))
    tensor(2.)
    >>> cr.median(cr.tensor([[3.0, 1.0, 2.0]]), 1).indices
    tensor([2])
    """
    return _median("median", input, either(dim, axis), keepdim or keepdims)


@operation()
def nanmedian(
    input: Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    """Return the median of what is not nan; the arguments and results are those of `median`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nanmedian(cr.tensor([cr.nan, 1.0, 2.0]))
    tensor(1.)
    """
    return _median("nanmedian", input, either(dim, axis), keepdim or keepdims)


def _median(name: str, x: Operand, dim: int | None, keepdim: bool) -> Any:
    x = tensor_of(x)
    if dim is None and x.numel() == 0:
        return elementwise.add.apply(reductions.sum.apply(x, axis=None, keepdims=False), math.nan)
    if dim is None:
        row = reshape(x, -1)
        place = _middle(row._array, name == "nanmedian")
        value = row._array[place]
        if not is_known(row._array):
            return _at_value(row, value)
        hits = np.flatnonzero((row._array == value) | ((value != value) & np.isnan(row._array)))
        return reductions.max.apply(indexing.index.apply(row, key=hits), axis=None, keepdims=False)
    return _ranked(name, x, dim, keepdim, lambda array: _middle(array, name == "nanmedian"))


def _at_value(row: Tensor, value: Array) -> Tensor:
    """Return the one element of `value`; its gradient is shared by all that equal it."""
    if row.dtype.kind != "f":
        return make(value.reshape(()), None)
    hits = (row._array == value) | ((value != value) & np.isnan(row._array))
    low = make(np.asarray(-np.inf, row.dtype), None)
    return reductions.max.apply(where(make(hits, None), row, low), axis=None, keepdims=False)


def _middle(array: Array, past_nan: bool) -> Array:
    """Return where the median is along the last axis, which is kept."""
    length = array.shape[-1]
    middle = (length - 1) // 2
    if array.dtype.kind != "f":
        return _kth(array, middle)
    count = np.count_nonzero(np.isnan(array), axis=-1, keepdims=True)
    if is_known(count) and not count.any():
        return _kth(array, middle)
    if past_nan:
        ranks = np.maximum(length - count - 1, 0) // 2
        return np.take_along_axis(np.argsort(array, axis=-1, kind="stable"), ranks, -1)
    first = np.argmax(np.isnan(array), axis=-1, keepdims=True)
    return np.where(count > 0, first, _kth(array, middle))


def _kth(array: Array, rank: int) -> Array:
    """Return where the element of a rank is along the last axis, which is kept."""
    return np.argpartition(array, rank, axis=-1)[..., rank : rank + 1]


def _ranked(name: str, x: Tensor, dim: int, keepdim: bool, places_in: Any) -> Extremes:
    """Return the elements whose places along a dimension a function of rows gives."""
    number = one_dim(dim, x.ndim)
    if x.ndim == 0:
        return Extremes(elementwise.clone.apply(x), make(np.zeros((), np.int64), None))
    if x.shape[number] == 0:
        raise ShapeError(f"{name}(): Expected reduction dim {number} to have non-zero size.")
    places = np.moveaxis(places_in(np.moveaxis(x._array, number, -1)), -1, number)
    return chosen(x, make(places, None), number, keepdim)


@operation()
def kthvalue(
    input: Operand,
    k: int,
    dim: int = -1,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool = False,
) -> Extremes:
    """Return the k-th smallest element along a dimension, and where it is.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan is larger than any.
    k : int
        1 for the smallest.
    dim : int, default -1
        Along which dimension. Also spelled `axis`.
    keepdim : bool, default False
        Keep the dimension, with length 1. Also spelled `keepdims`.

    Returns
    -------
    named tuple (values, indices) of Tensors

    Raises
    ------
    ArgumentError
        If there are fewer than `k` elements.

    Notes
    -----
    Derivative: 1 for the element whose index is returned.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.kthvalue(cr.tensor([3.0, 1.0, 2.0]), 2)
    Extremes(values=tensor(2.), indices=tensor(2))
    """
    input = tensor_of(input)
    number = one_dim(dim if axis is None else axis, input.ndim)
    length, k = input.shape[number] if input.ndim else 1, whole_number(k, "kthvalue", "k")
    if not 1 <= k <= length:
        raise ArgumentError(
            f"kthvalue(): selected number k out of range for dimension {number}: got {k}, expected "
            f"1 to {length}"
        )
    return _ranked("kthvalue", input, number, keepdim or keepdims, lambda array: _kth(array, k - 1))


@operation()
def mode(
    input: Operand,
    dim: int = -1,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool = False,
) -> Extremes:
    """Return the most frequent element along a dimension, and where it is last.

    Parameters
    ----------
    input : Tensor
        Real numbers.
    dim : int, default -1
        Along which dimension. Also spelled `axis`.
    keepdim : bool, default False
        Keep the dimension, with length 1. Also spelled `keepdims`.

    Returns
    -------
    named tuple (values, indices) of Tensors
        The smallest of several that are as frequent.

    Raises
    ------
    ShapeError
        If there is no element along `dim`.

    Notes
    -----
    Derivative: 1 for the element whose index is returned.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.mode(cr.tensor([2.0, 1.0, 2.0, 3.0]))
    Extremes(values=tensor(2.), indices=tensor(2))
    """
    input = tensor_of(input)
    return _ranked(
        "mode", input, dim if axis is None else axis, keepdim or keepdims, _most_frequent
    )


def _most_frequent(array: Array) -> Array:
    """Return where the most frequent element is along the last axis, which is kept."""
    order = np.argsort(array, axis=-1, kind="stable")
    ordered = np.take_along_axis(array, order, -1)
    number = np.arange(array.shape[-1])
    first = np.ones((*array.shape[:-1], 1), bool)
    new = np.concatenate([first, ordered[..., 1:] != ordered[..., :-1]], axis=-1)
    start = np.maximum.accumulate(np.where(new, number, 0), axis=-1)
    # How often each has come so far is largest where the longest run of equal elements ends.
    ends = np.argmax(number - start, axis=-1, keepdims=True)
    return np.take_along_axis(order, ends, -1)


@operation()
def msort(input: Operand) -> Tensor:
    """Return the elements in order along the first dimension.

    Notes
    -----
    Derivative: each element's gradient goes back to where the element was.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.msort(cr.tensor([3.0, 1.0, 2.0]))
    tensor([1., 2., 3.])
    """
    values: Tensor = sort(input, 0).values
    return values


# --- quantiles ------------------------------------------------------------------------------------
#
# Quantiles: what lies between the elements at two ranks.


@operation()
def quantile(
    input: Operand,
    q: float | Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    axis: int | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return quantiles: values that given shares of the elements lie below.

    Parameters
    ----------
    input : Tensor
        Real floating numbers. Where one is nan, so are the quantiles.
    q : number, or Tensor of at most one dimension
        Shares, from 0 (the smallest element) to 1 (the largest).
    dim : int, optional
        Along which dimension: of everything if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep the dimension, with length 1. Also spelled `keepdims`.
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}, default "linear"
        What to do where the rank q (n - 1) is no integer.

    Returns
    -------
    Tensor
        If `q` has a dimension, it comes first.

    Raises
    ------
    DTypeError
        If `input` is not of real floating numbers.
    ArgumentError
        If `q` is not from [0, 1], or `interpolation` is something else.
    ShapeError
        If there is no element.

    Notes
    -----
    Derivative: of an element next to the rank, its weight; of `q`, the difference of the two
    elements, times n - 1, unless `interpolation` makes steps. Where the rank is an integer, or both
    neighbours are one infinity, they are not subtracted; PyTorch gets a nan there.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.quantile(cr.tensor([1.0, 2.0, 4.0]), 0.75)
    tensor(3.)
    """
    return _quantile("quantile", input, q, either(dim, axis), keepdim or keepdims, interpolation)


@operation()
def nanquantile(
    input: Operand,
    q: float | Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    axis: int | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return quantiles of what is not nan; the arguments are those of `quantile`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nanquantile(cr.tensor([1.0, cr.nan, 3.0]), 0.5)
    tensor(2.)
    """
    return _quantile("nanquantile", input, q, either(dim, axis), keepdim or keepdims, interpolation)


def _quantile(
    name: str, x: Operand, q: Any, dim: int | None, keepdim: bool, interpolation: str
) -> Tensor:
    x = tensor_of(x)
    if x.dtype.kind != "f":
        raise DTypeError(
            f"{name}() input tensor must be either float or double dtype, got "
            f"{dtype_title(x.dtype)}: convert it first, with .float()"
        )
    if x.numel() == 0:
        raise ShapeError(f"{name}() input tensor must be non-empty, got shape {list(x.shape)}")
    shares = q._array.astype(np.float64) if isinstance(q, Tensor) else np.asarray(q, np.float64)
    if shares.ndim > 1:
        raise ArgumentError(
            f"{name}() q must be a scalar or 1D tensor, got {shares.ndim} dimensions"
        )
    if holds_somewhere(~((shares >= 0) & (shares <= 1))):
        raise ArgumentError(
            f"{name}() q must be in the range [0, 1] but got {whole(shares).tolist()}"
        )
    number = None if dim is None or x.ndim == 0 else one_dim(dim, x.ndim)
    rows = reshape(x, -1) if number is None else movedim(x, number, -1)
    q = reshape(q, -1) if isinstance(q, Tensor) and q.requires_grad else None
    values = _at_ranks(rows, shares.reshape(-1), q, interpolation, name)
    # The shares stand last: to the front with them, or away.
    kept = (1,) * x.ndim if number is None else (*x.shape[:number], 1, *x.shape[number + 1 :])
    short = () if number is None else (*x.shape[:number], *x.shape[number + 1 :])
    shape = kept if keepdim else short
    if shares.ndim == 0:
        return reshaped(values, shape)
    return reshape(movedim(values, -1, 0), (len(shares), *shape))


def _at_ranks(x: Tensor, shares: Array, q: Tensor | None, interpolation: str, name: str) -> Tensor:
    """Return what is at the ranks q (n - 1) of each row; `q` are the shares, if they need grad."""
    missing = np.count_nonzero(np.isnan(x._array), axis=-1, keepdims=True)
    length = x.shape[-1]
    known = is_known(missing) and is_known(shares)
    if length > MIN_PARTITION_LENGTH and known and not missing.any():  # equal ranks in all rows
        needed = shares * (length - 1)
        wanted = np.unique([np.floor(needed), np.ceil(needed)]).astype(np.intp)
        order = np.argpartition(x._array, wanted, axis=-1)
    else:
        order = np.argsort(x._array, axis=-1, kind="stable")
    steps = length - 1
    if name == "nanquantile":
        steps = np.maximum(length - missing - 1, 0)
    ranks = shares * steps
    if name != "nanquantile":
        ranks = np.where(missing > 0, length - 1, ranks)  # where a nan is
    low, weight = _neighbours(ranks, interpolation, name)
    below = _picked(x, order, low)
    if weight is None or (known and q is None and not weight.any()):
        return below
    above = _picked(x, order, np.ceil(ranks))
    usable = (weight > 0) & ~((above._array == below._array) & np.isinf(above._array))
    ends = [elementwise.masked.apply(end, make(usable, None)) for end in (above, below)]
    step = elementwise.subtract.apply(*ends)
    share = make(weight.astype(x.dtype), None)
    if q is not None and interpolation == "linear":
        exact = elementwise.multiply.apply(cast(q, np.float64), make(np.multiply(steps, 1.0), None))
        share = cast(elementwise.subtract.apply(exact, make(low, None)), x.dtype)
    return elementwise.add.apply(below, elementwise.multiply.apply(step, share))


def _neighbours(ranks: Array, interpolation: str, name: str) -> tuple[Array, Array | None]:
    """Return the rank to take, and the weight of the next; None if it never has any."""
    if interpolation == "nearest":
        return np.rint(ranks), None
    if interpolation == "higher":
        return np.ceil(ranks), None
    low = np.floor(ranks)
    if interpolation == "lower":
        return low, None
    if interpolation == "midpoint":
        return low, np.where(ranks > low, 0.5, 0.0)
    if interpolation == "linear":
        return low, ranks - low
    raise ArgumentError(
        f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, "
        f"but got {interpolation}"
    )


def _picked(x: Tensor, order: Array, ranks: Array) -> Tensor:
    places = np.take_along_axis(order, ranks.astype(np.intp), -1)
    return indexing.take_along_axis.apply(x, make(places, None), axis=x.ndim - 1)


# --- histograms -----------------------------------------------------------------------------------
#
# How many elements there are of each number, or in each bin.


@operation(numpy="bincount x weights minlength=")
def bincount(input: Operand, weights: Operand | None = None, minlength: int = 0) -> Tensor:
    """Return how often each of the numbers 0, 1, 2 … is there, or the sum of its weights.

    Parameters
    ----------
    input : Tensor of integers, 1-d
        None is negative.
    weights : Tensor, shape of `input`, optional
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
        If `input` is no vector, or the weights don't fit.
    DTypeError
        If `input` is not of integers.
    ArgumentError
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
    places = tensor_of(input)._array
    if places.dtype.kind not in "iu":
        raise DTypeError(f"bincount: expected integers, got {places.dtype}")
    if places.ndim != 1 or holds_somewhere(places < 0):
        raise (ShapeError if places.ndim != 1 else ArgumentError)(
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
        weight = elementwise.astype.apply(weight, dtype=np.dtype(np.float64))
    return indexing.index_add.apply(weight, shape=(length,), key=(places.astype(np.intp),))


@operation()
def histc(input: Operand, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return how many elements lie in each of several equally wide bins.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan and what lies outside are not counted.
    bins : int, default 100
        How many bins.
    min, max : number, default 0
        Where the first bin begins and the last one ends. If they are equal, the smallest and the
        largest element.

    Returns
    -------
    Tensor, shape (bins,), of the dtype of `input`
        Without history: the result has no derivative.

    Raises
    ------
    ArgumentError
        If there is no bin, or `max` is less than `min`, or the range is not finite.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.histc(cr.tensor([1.0, 2.0, 1.0]), bins=3, min=0, max=3)
    tensor([0., 2., 1.])
    """
    values = floating(input)
    array = values._array.reshape(-1)
    low, high = float(min), float(max)
    if bins <= 0:
        raise ArgumentError(f"torch.histogram(): bins must be > 0, got {bins}")
    if low == high and array.size:
        check_known(array, "histc", "give min and max")
        low, high = float(array.min()), float(array.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (np.isfinite(low) and np.isfinite(high)) or high < low:
        raise ArgumentError(
            f"torch.histc: range of [{low}, {high}] is not finite, or max is less than min"
        )
    counts = np.histogram(array, bins, (low, high))[0]
    return make(counts.astype(values.dtype), None)


class Histogram(NamedTuple):
    """Counts, and the edges of the bins."""

    hist: Tensor
    bin_edges: Tensor


@operation()
def histogram(
    input: Operand,
    bins: int | Operand,
    *,
    range: tuple[float, float] | None = None,
    weight: Operand | None = None,
    density: bool = False,
) -> Histogram:
    """Return how many elements lie in each of several bins, and the bins' edges.

    Parameters
    ----------
    input : Tensor
        Real numbers; what lies outside is not counted.
    bins : int, or Tensor, 1-d
        How many equally wide bins, or the edges of bins.
    range : pair of numbers, optional
        Where the first bin begins and the last one ends: the smallest and the largest element.
    weight : Tensor, shape of `input`, optional
        What each element counts.
    density : bool, default False
        Divide so that the integral is 1.

    Returns
    -------
    named tuple (hist, bin_edges) of Tensors, of the dtype of `input`
        Without history: the result has no derivative.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.histogram(cr.tensor([1.0, 2.0, 1.0]), 3, range=(0, 3)).hist
    tensor([0., 2., 1.])
    """
    values = floating(input)
    edges: Any = bins if isinstance(bins, int) else tensor_of(bins)._array
    weights = None if weight is None else tensor_of(weight)._array.reshape(-1)
    if isinstance(bins, int) and range is None:
        check_known(values._array, "histogram", "give a range")
    counts, edges = np.histogram(
        values._array.reshape(-1), edges, range, density=density, weights=weights
    )
    return Histogram(*[make(part.astype(values.dtype), None) for part in (counts, edges)])
