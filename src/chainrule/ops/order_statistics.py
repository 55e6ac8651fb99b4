"""Order statistics: medians, k-th values, modes, quantiles, histograms."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, overload

import numpy as np

from chainrule.arguments import (
    Operand,
    cast,
    constant,
    either,
    floating,
    on_host,
    one_dim,
    tensor_of,
    whole_number,
)
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import (
    accumulate,
    check_known,
    dtype_title,
    elements_for_shape,
    holds_somewhere,
    is_known,
    whole,
)
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.operation import operation
from chainrule.ops.permute import movedim
from chainrule.ops.reductions import Extremes, take_extremes
from chainrule.ops.reshape import reshape
from chainrule.ops.sort_search import is_partitioned, partial_order, sort
from chainrule.ops.where import where
from chainrule.ops.wrappers import reshape_result
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


@overload
def median(
    input: Operand,
    dim: None = None,
    keepdim: bool = False,
    *,
    axis: None = None,
    keepdims: bool = False,
) -> Tensor: ...


@overload
def median(
    input: Operand, dim: int, keepdim: bool = False, *, keepdims: bool = False
) -> Extremes: ...


@overload
def median(
    input: Operand,
    dim: None = None,
    keepdim: bool = False,
    *,
    axis: int,
    keepdims: bool = False,
) -> Extremes: ...


@operation()
def median(
    input: Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    """Return the median of all elements, or the medians along a dimension with their indices.

    Parameters
    ----------
    input : Tensor
        Real numbers. If an element is nan, the median is nan.
    dim : int, optional
        Dimension to reduce. If left out, the median of all elements as a 0-d tensor. Also spelled
        `axis`.
    keepdim : bool, default False
        Keep the reduced dimension, with length 1. Also spelled `keepdims`.

    Returns
    -------
    Tensor, or named tuple (values, indices) of Tensors
        Of an even number of elements, the lower of the two in the middle. nan if `input` is empty.

    Raises
    ------
    ShapeError
        If `dim` has length 0.

    Notes
    -----
    Derivative: 1 for the element whose index is returned; without `dim`, shared evenly by all
    elements equal to the median.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.median(cr.tensor([3.0, 1.0, 2.0, 4.0]))
    tensor(2.)
    >>> cr.median(cr.tensor([[3.0, 1.0, 2.0]]), 1).indices
    tensor([2])
    """
    return _median("median", input, either(dim, axis), keepdim or keepdims)


@overload
def nanmedian(
    input: Operand,
    dim: None = None,
    keepdim: bool = False,
    *,
    axis: None = None,
    keepdims: bool = False,
) -> Tensor: ...


@overload
def nanmedian(
    input: Operand, dim: int, keepdim: bool = False, *, keepdims: bool = False
) -> Extremes: ...


@overload
def nanmedian(
    input: Operand,
    dim: None = None,
    keepdim: bool = False,
    *,
    axis: int,
    keepdims: bool = False,
) -> Extremes: ...


@operation()
def nanmedian(
    input: Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    """Return the median, ignoring nan; the arguments and results are those of `median`.

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
        array = on_host(row._array)
        value = array[_median_index(array, name == "nanmedian")]
        if not is_known(array):
            return _element_of_value(row, value)
        equal = np.flatnonzero((array == value) | ((value != value) & np.isnan(array)))
        return reductions.max.apply(indexing.index.apply(row, key=equal), axis=None, keepdims=False)
    return _select(name, x, dim, keepdim, lambda array: _median_index(array, name == "nanmedian"))


def _element_of_value(row: Tensor, value: Array) -> Tensor:
    """Return `value` as a scalar whose gradient is shared by all elements that equal it."""
    if row.dtype.kind != "f":
        return make(value.reshape(()), None)
    equal = (row._array == value) | ((value != value) & np.isnan(row._array))
    low = constant(np.asarray(-np.inf, row.dtype), row)
    return reductions.max.apply(where(make(equal, None), row, low), axis=None, keepdims=False)


def _median_index(array: Array, ignore_nan: bool) -> Array:
    """Return the index of the median along the last axis, which is kept with length 1."""
    length = array.shape[-1]
    middle = (length - 1) // 2
    if array.dtype.kind != "f":
        return _kth_index(array, middle)
    count = np.count_nonzero(np.isnan(array), axis=-1, keepdims=True)
    if is_known(count) and not count.any():
        return _kth_index(array, middle)
    if ignore_nan:
        ranks = np.maximum(length - count - 1, 0) // 2
        return np.take_along_axis(np.argsort(array, axis=-1, kind="stable"), ranks, -1)
    first = np.argmax(np.isnan(array), axis=-1, keepdims=True)
    return np.where(count > 0, first, _kth_index(array, middle))


def _kth_index(array: Array, rank: int) -> Array:
    """Return the index of the element of a rank along the last axis, kept with length 1."""
    return np.argpartition(array, rank, axis=-1)[..., rank : rank + 1]


def _select(name: str, x: Tensor, dim: int, keepdim: bool, index_of: Any) -> Extremes:
    """Return the elements along a dimension at the indices that `index_of` finds in each row."""
    number = one_dim(dim, x.ndim)
    if x.ndim == 0:
        return Extremes(elementwise.clone.apply(x), constant(np.zeros((), np.int64), x))
    if x.shape[number] == 0:
        raise ShapeError(f"{name}(): Expected reduction dim {number} to have non-zero size.")
    indices = np.moveaxis(index_of(np.moveaxis(on_host(x._array), number, -1)), -1, number)
    return take_extremes(x, constant(indices, x), number, keepdim)


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
    """Return the k-th smallest element along a dimension, and its index.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan is larger than any.
    k : int
        Rank: 1 for the smallest element.
    dim : int, default -1
        Dimension to reduce. Also spelled `axis`.
    keepdim : bool, default False
        Keep the reduced dimension, with length 1. Also spelled `keepdims`.

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
    return _select(
        "kthvalue", input, number, keepdim or keepdims, lambda array: _kth_index(array, k - 1)
    )


@operation()
def mode(
    input: Operand,
    dim: int = -1,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool = False,
) -> Extremes:
    """Return the most frequent element along a dimension, and the index of its last occurrence.

    Parameters
    ----------
    input : Tensor
        Real numbers.
    dim : int, default -1
        Dimension to reduce. Also spelled `axis`.
    keepdim : bool, default False
        Keep the reduced dimension, with length 1. Also spelled `keepdims`.

    Returns
    -------
    named tuple (values, indices) of Tensors
        The smallest of several equally frequent elements.

    Raises
    ------
    ShapeError
        If `dim` has length 0.

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
    return _select("mode", input, dim if axis is None else axis, keepdim or keepdims, _mode_index)


def _mode_index(array: Array) -> Array:
    """Return the index of the most frequent element along the last axis, kept with length 1."""
    order = np.argsort(array, axis=-1, kind="stable")
    ordered = np.take_along_axis(array, order, -1)
    number = np.arange(array.shape[-1])
    first = np.ones((*array.shape[:-1], 1), bool)
    is_start = np.concatenate([first, ordered[..., 1:] != ordered[..., :-1]], axis=-1)
    start = accumulate(np.maximum, np.where(is_start, number, 0), -1)
    # number - start, the position in a run of equal elements, is largest at the end of the longest.
    end = np.argmax(number - start, axis=-1, keepdims=True)
    return np.take_along_axis(order, end, -1)


@operation()
def msort(input: Operand) -> Tensor:
    """Sort the elements along the first dimension, in ascending order.

    Notes
    -----
    Derivative: 1 from each element of `input` to its position in the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.msort(cr.tensor([3.0, 1.0, 2.0]))
    tensor([1., 2., 3.])
    """
    values: Tensor = sort(input, 0).values
    return values


# --- quantiles ------------------------------------------------------------------------------------


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
    """Return the q-quantiles: values below which a fraction q of the elements lies.

    Parameters
    ----------
    input : Tensor
        Real floating numbers. If an element is nan, so are the quantiles.
    q : number, or Tensor of at most one dimension
        Fractions, from 0 (the smallest element) to 1 (the largest).
    dim : int, optional
        Dimension to reduce: all elements if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep the reduced dimension, with length 1. Also spelled `keepdims`.
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}, default "linear"
        Interpolation between neighbours where the rank q (n - 1) is not an integer.

    Returns
    -------
    Tensor
        If `q` has a dimension, it is the first one of the result.

    Raises
    ------
    DTypeError
        If `input` is not of real floating numbers.
    ArgumentError
        If `q` is outside of [0, 1], or `interpolation` is unknown.
    ShapeError
        If `input` is empty.

    Notes
    -----
    Derivative: for an element next to the rank, its weight; for `q`, with linear interpolation, the
    difference of the two elements times n - 1, else 0. The neighbours are not subtracted where the
    rank is an integer or both are the same infinity; PyTorch gives nan there.

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
    """Return quantiles, ignoring nan; the arguments are those of `quantile`.

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
    given = on_host(q._array) if isinstance(q, Tensor) else np.asarray(q)
    fractions = given.astype(np.float64)
    if fractions.ndim > 1:
        raise ArgumentError(
            f"{name}() q must be a scalar or 1D tensor, got {fractions.ndim} dimensions"
        )
    if holds_somewhere(~((fractions >= 0) & (fractions <= 1))):
        raise ArgumentError(
            f"{name}() q must be in the range [0, 1] but got {whole(fractions).tolist()}"
        )
    number = None if dim is None or x.ndim == 0 else one_dim(dim, x.ndim)
    rows = reshape(x, -1) if number is None else movedim(x, number, -1)
    q = reshape(q, -1) if isinstance(q, Tensor) and q.requires_grad else None
    values = _at_ranks(rows, fractions.reshape(-1), q, interpolation, name)
    # The fractions are the last axis of `values`: move it to the front, or remove it.
    kept = (1,) * x.ndim if number is None else (*x.shape[:number], 1, *x.shape[number + 1 :])
    reduced = () if number is None else (*x.shape[:number], *x.shape[number + 1 :])
    shape = kept if keepdim else reduced
    if fractions.ndim == 0:
        return reshape_result(values, shape)
    return reshape(movedim(values, -1, 0), (len(fractions), *shape))


def _at_ranks(
    x: Tensor, fractions: Array, q: Tensor | None, interpolation: str, name: str
) -> Tensor:
    """Return the values at the ranks fractions · (n - 1) of each row.

    `q` are the same fractions as a tensor if they require grad.
    """
    array = on_host(x._array)
    missing = np.count_nonzero(np.isnan(array), axis=-1, keepdims=True)
    length = x.shape[-1]
    known = is_known(missing) and is_known(fractions)
    if is_partitioned(x.shape, length) and known and not missing.any():  # equal ranks in all rows
        needed = fractions * (length - 1)
        wanted = np.unique([np.floor(needed), np.ceil(needed)]).astype(np.intp)
        order = partial_order(array, wanted)
    else:
        order = np.argsort(array, axis=-1, kind="stable")
    steps = length - 1
    if name == "nanquantile":
        steps = np.maximum(length - missing - 1, 0)
    ranks = fractions * steps
    if name != "nanquantile":
        ranks = np.where(missing > 0, length - 1, ranks)  # nan is sorted last
    low, weight = _rank_and_weight(ranks, interpolation, name)
    below = _take_ranks(x, order, low)
    if weight is None or (known and q is None and not weight.any()):
        return below
    above = _take_ranks(x, order, np.ceil(ranks))
    last, first = on_host(above._array), on_host(below._array)
    usable = constant((weight > 0) & ~((last == first) & np.isinf(last)), x)
    ends = [elementwise.masked.apply(end, usable) for end in (above, below)]
    step = elementwise.subtract.apply(*ends)
    step_weight = constant(weight.astype(x.dtype), x)
    if q is not None and interpolation == "linear":
        count = constant(np.multiply(steps, 1.0), x)
        exact = elementwise.multiply.apply(cast(q, np.float64), count)
        step_weight = cast(elementwise.subtract.apply(exact, constant(low, x)), x.dtype)
    return elementwise.add.apply(below, elementwise.multiply.apply(step, step_weight))


def _rank_and_weight(ranks: Array, interpolation: str, name: str) -> tuple[Array, Array | None]:
    """Return the rank of the lower neighbour, and the weight of the upper one or None."""
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


def _take_ranks(x: Tensor, order: Array, ranks: Array) -> Tensor:
    """Return the elements of each row at `ranks`, given the indices that sort the rows."""
    indices = np.take_along_axis(order, ranks.astype(np.intp), -1)
    return indexing.take_along_axis.apply(x, constant(indices, x), axis=x.ndim - 1)


# --- counts and histograms ------------------------------------------------------------------------


@operation()
def bincount(input: Operand, weights: Operand | None = None, minlength: int = 0) -> Tensor:
    """Count the occurrences of each of the numbers 0, 1, 2, …, or sum their weights.

    Parameters
    ----------
    input : Tensor of integers, 1-d
        Not negative.
    weights : Tensor, shape of `input`, optional
        Weight of each element.
    minlength : int, default 0
        Minimum length of the result.

    Returns
    -------
    Tensor, 1-d
        int64; with weights, of their dtype (float64 for integers).

    Raises
    ------
    ShapeError
        If `input` is not a vector, or `weights` has another shape.
    DTypeError
        If `input` is not of integers.
    ArgumentError
        If an element is negative.

    Notes
    -----
    Derivative for a weight: 1 for the sum that it is part of.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.bincount(cr.tensor([1, 1, 3]))
    tensor([0, 2, 0, 1])
    """
    input = tensor_of(input)
    values = on_host(input._array)
    if values.dtype.kind not in "iu":
        raise DTypeError(f"bincount: expected integers, got {values.dtype}")
    if values.ndim != 1 or holds_somewhere(values < 0):
        raise (ShapeError if values.ndim != 1 else ArgumentError)(
            "bincount only supports 1-d non-negative integral inputs."
        )
    mend = "add ones to zeros of a known length with scatter_add()"
    values = elements_for_shape(values, "bincount", mend)
    length = max(minlength, int(values.max()) + 1 if values.size else 0)
    if weights is None:
        return constant(np.bincount(values, minlength=length), input)
    weight = tensor_of(weights)
    if weight.shape != values.shape:
        raise ShapeError(
            f"weights should be 1-d and have the same length as input: got {list(weight.shape)} "
            f"and {list(values.shape)}"
        )
    if weight.dtype.kind not in "fc":
        weight = elementwise.astype.apply(weight, dtype=np.dtype(np.float64))
    return indexing.index_add.apply(weight, shape=(length,), key=(values.astype(np.intp),))


@operation()
def histc(input: Operand, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Count the elements in each of several bins of equal width.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan and elements outside of the range are not counted.
    bins : int, default 100
        Number of bins.
    min, max : number, default 0
        Lower edge of the first bin and upper edge of the last one. If they are equal, the smallest
        and the largest element.

    Returns
    -------
    Tensor, shape (bins,), of the dtype of `input`
        The result has no derivative.

    Raises
    ------
    ArgumentError
        If `bins` is not positive, `max` is less than `min`, or the range is not finite.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.histc(cr.tensor([1.0, 2.0, 1.0]), bins=3, min=0, max=3)
    tensor([0., 2., 1.])
    """
    values = floating(input)
    array = on_host(values._array).reshape(-1)
    low, high = float(min), float(max)
    bins = whole_number(bins, "histc", "bins")
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
    return constant(counts.astype(values.dtype), values)


class Histogram(NamedTuple):
    """Counts and bin edges."""

    hist: Tensor
    bin_edges: Tensor


@operation()
def histogram(
    input: Operand,
    bins: int | Operand = 100,
    *,
    range: tuple[float, float] | None = None,
    weight: Operand | None = None,
    density: bool = False,
) -> Histogram:
    """Count the elements in each of several bins; return the counts and the bin edges.

    Parameters
    ----------
    input : Tensor
        Real numbers; elements outside of the range are not counted.
    bins : int, or Tensor, 1-d, default 100
        Number of bins of equal width, or the bin edges.
    range : pair of numbers, optional
        Lower edge of the first bin and upper edge of the last one. By default the smallest and the
        largest element.
    weight : Tensor, shape of `input`, optional
        Weight of each element.
    density : bool, default False
        Normalize the histogram to an integral of 1.

    Returns
    -------
    named tuple (hist, bin_edges) of Tensors, of the dtype of `input`
        The result has no derivative.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.histogram(cr.tensor([1.0, 2.0, 1.0]), 3, range=(0, 3)).hist
    tensor([0., 2., 1.])
    """
    values = floating(input)
    edges: Any = bins if isinstance(bins, int) else on_host(tensor_of(bins)._array)
    weights = None if weight is None else on_host(tensor_of(weight)._array).reshape(-1)
    if isinstance(bins, int) and range is None:
        check_known(values._array, "histogram", "give a range")
    counts, edges = np.histogram(
        on_host(values._array).reshape(-1), edges, range, density=density, weights=weights
    )
    return Histogram(*[constant(part.astype(values.dtype), values) for part in (counts, edges)])
