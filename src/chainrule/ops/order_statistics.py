"""Order statistics: the elements at a rank, and those that are there most often."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS, Operand, either, one_dim, tensor_of, whole_number
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_known
from chainrule.errors import ArgumentError, ShapeError
from chainrule.ops.extrema import Extremes, chosen
from chainrule.ops.reshape import reshape
from chainrule.ops.sort_search import sort
from chainrule.ops.where import where

__all__ = ["median", "nanmedian", "kthvalue", "mode", "msort"]

Array = Any


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
        return RECORDERS["add"](RECORDERS["sum"](x, axis=None, keepdims=False), math.nan)
    if dim is None:
        row = reshape(x, -1)
        place = _middle(row._array, name == "nanmedian")
        value = row._array[place]
        if not is_known(row._array):
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
        return Extremes(RECORDERS["clone"](x), make(np.zeros((), np.int64), None))
    if x.shape[number] == 0:
        raise ShapeError(f"{name}(): Expected reduction dim {number} to have non-zero size.")
    places = np.moveaxis(places_in(np.moveaxis(x._array, number, -1)), -1, number)
    return chosen(x, make(places, None), number, keepdim)


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
