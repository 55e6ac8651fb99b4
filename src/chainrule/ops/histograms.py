"""How many elements there are of each number, or in each bin."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from chainrule.arguments import RECORDERS, Operand, floating, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import check_known, holds_somewhere
from chainrule.errors import ArgumentError, DTypeError, ShapeError

__all__ = ["bincount", "histc", "histogram"]


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
        weight = RECORDERS["astype"](weight, dtype=np.dtype(np.float64))
    return RECORDERS["index_add"](weight, shape=(length,), key=(places.astype(np.intp),))


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
