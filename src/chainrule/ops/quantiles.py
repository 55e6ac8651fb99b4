"""Elements by their rank: medians, quantiles, the most frequent one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS, Operand, cast, either, one_dim, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import dtype_title, holds_somewhere, namespace
from chainrule.errors import DTypeError, ShapeError
from chainrule.ops.calls import reshaped
from chainrule.ops.extrema import Extremes, chosen, sort
from chainrule.ops.kinks import where
from chainrule.ops.ordering import movedim
from chainrule.ops.partial import MANY
from chainrule.ops.shaping import reshape

__all__ = [
    "median",
    "nanmedian",
    "kthvalue",
    "mode",
    "quantile",
    "nanquantile",
    "msort",
]

Array = Any

# --- one element ----------------------------------------------------------------------------------


def median(
    x: Operand,
    /,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    """Return the median: of all elements, or of each row along a dimension and where it is.

    Parameters
    ----------
    x : Tensor
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
    return _median("median", x, either(dim, axis), keepdim or keepdims)


def nanmedian(
    x: Operand,
    /,
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
    return _median("nanmedian", x, either(dim, axis), keepdim or keepdims)


def _median(name: str, x: Operand, dim: int | None, keepdim: bool) -> Any:
    x = tensor_of(x)
    if dim is None and x.numel() == 0:
        return RECORDERS["add"](RECORDERS["sum"](x, axis=None, keepdims=False), math.nan)
    if dim is None:
        row = reshape(x, -1)
        place = _middle(row._array, name == "nanmedian")
        value = row._array[place]
        if not namespace(row._array).known:
            return _at_value(row, value)
        hits = np.flatnonzero((row._array == value) | ((value != value) & np.isnan(row._array)))
        return RECORDERS["max"](RECORDERS["index"](row, key=hits), axis=None, keepdims=False)
    return _ranked(name, x, dim, keepdim, lambda array: _middle(array, name == "nanmedian"))


def _at_value(row: Tensor, value: Array) -> Tensor:
    """Return the one element of `value`; its gradient is shared by all that equal it."""
    if row.dtype.kind != "f":
        return make(value.reshape(()), None)
    hits = (row._array == value) | ((value != value) & np.isnan(row._array))
    low = make(np.asarray(-np.inf, row.dtype), None)
    return RECORDERS["max"](where(make(hits, None), row, low), axis=None, keepdims=False)


def _middle(array: Array, past_nan: bool) -> Array:
    """Return where the median is along the last axis, which is kept."""
    length = array.shape[-1]
    middle = (length - 1) // 2
    if array.dtype.kind != "f":
        return _kth(array, middle)
    count = np.count_nonzero(np.isnan(array), axis=-1, keepdims=True)
    if namespace(count).known and not count.any():
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
        return Extremes(RECORDERS["clone"](x), make(np.zeros((), np.int64), None))
    if x.shape[number] == 0:
        raise ShapeError(f"{name}(): Expected reduction dim {number} to have non-zero size.")
    places = np.moveaxis(places_in(np.moveaxis(x._array, number, -1)), -1, number)
    return chosen(x, make(places, None), number, keepdim)


def kthvalue(
    x: Operand, /, k: int, dim: int = -1, keepdim: bool = False, *, axis: int | None = None
) -> Extremes:
    """Return the k-th smallest element along a dimension, and where it is.

    Parameters
    ----------
    x : Tensor
        Real numbers; nan is larger than any.
    k : int
        1 for the smallest.
    dim : int, default -1
        Along which dimension. Also spelled `axis`.
    keepdim : bool, default False
        Keep the dimension, with length 1.

    Returns
    -------
    named tuple (values, indices) of Tensors

    Raises
    ------
    ValueError
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
    x = tensor_of(x)
    number = one_dim(dim if axis is None else axis, x.ndim)
    length = x.shape[number] if x.ndim else 1
    if not 1 <= k <= length:
        raise ValueError(
            f"kthvalue(): selected number k out of range for dimension {number}: got {k}, expected "
            f"1 to {length}"
        )
    return _ranked("kthvalue", x, number, keepdim, lambda array: _kth(array, k - 1))


def mode(
    x: Operand, /, dim: int = -1, keepdim: bool = False, *, axis: int | None = None
) -> Extremes:
    """Return the most frequent element along a dimension, and where it is last.

    Parameters
    ----------
    x : Tensor
        Real numbers.
    dim : int, default -1
        Along which dimension. Also spelled `axis`.
    keepdim : bool, default False
        Keep the dimension, with length 1.

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
    x = tensor_of(x)
    return _ranked("mode", x, dim if axis is None else axis, keepdim, _most_frequent)


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


def msort(x: Operand, /) -> Tensor:
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
    values: Tensor = sort(x, 0).values
    return values


# --- between two elements -------------------------------------------------------------------------


def quantile(
    x: Operand,
    /,
    q: float | Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return quantiles: values that given shares of the elements lie below.

    Parameters
    ----------
    x : Tensor
        Real floating numbers. Where one is nan, so are the quantiles.
    q : number, or Tensor of at most one dimension
        Shares, from 0 (the smallest element) to 1 (the largest).
    dim : int, optional
        Along which dimension: of everything if left out.
    keepdim : bool, default False
        Keep the dimension, with length 1.
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}, default "linear"
        What to do where the rank q (n - 1) is no integer.

    Returns
    -------
    Tensor
        If `q` has a dimension, it comes first.

    Raises
    ------
    DTypeError
        If `x` is not of real floating numbers.
    ValueError
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
    return _quantile("quantile", x, q, dim, keepdim, interpolation)


def nanquantile(
    x: Operand,
    /,
    q: float | Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return quantiles of what is not nan; the arguments are those of `quantile`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nanquantile(cr.tensor([1.0, cr.nan, 3.0]), 0.5)
    tensor(2.)
    """
    return _quantile("nanquantile", x, q, dim, keepdim, interpolation)


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
        raise ValueError(f"{name}() q must be a scalar or 1D tensor, got {shares.ndim} dimensions")
    if holds_somewhere(~((shares >= 0) & (shares <= 1))):
        raise ValueError(f"{name}() q must be in the range [0, 1] but got {shares.tolist()}")
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
    known = namespace(missing).known and namespace(shares).known
    if length > MANY and known and not missing.any():  # then the ranks are the same in all rows
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
    low = np.floor(ranks)
    if interpolation == "nearest":
        low, weight = np.rint(ranks), None
    elif interpolation == "higher":
        low, weight = np.ceil(ranks), None
    elif interpolation == "lower":
        weight = None
    elif interpolation == "midpoint":
        weight = np.where(ranks > low, 0.5, 0.0)
    elif interpolation == "linear":
        weight = ranks - low
    else:
        raise ValueError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    below = _picked(x, order, low)
    if weight is None or (known and q is None and not weight.any()):
        return below
    above = _picked(x, order, np.ceil(ranks))
    usable = (weight > 0) & ~((above._array == below._array) & np.isinf(above._array))
    ends = [RECORDERS["masked"](end, make(usable, None)) for end in (above, below)]
    step = RECORDERS["subtract"](*ends)
    share = make(weight.astype(x.dtype), None)
    if q is not None and interpolation == "linear":
        exact = RECORDERS["multiply"](cast(q, np.float64), make(np.multiply(steps, 1.0), None))
        share = cast(RECORDERS["subtract"](exact, make(low, None)), x.dtype)
    return RECORDERS["add"](below, RECORDERS["multiply"](step, share))


def _picked(x: Tensor, order: Array, ranks: Array) -> Tensor:
    places = np.take_along_axis(order, ranks.astype(np.intp), -1)
    return RECORDERS["take_along_axis"](x, make(places, None), axis=x.ndim - 1)
