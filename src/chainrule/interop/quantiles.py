"""Quantiles and medians, with the arguments of NumPy's functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule import array_api as xp
from chainrule import ops
from chainrule.arguments import floating, many_dims
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.errors import ArgumentError, ArgumentTypeError, CompileError, DTypeError
from chainrule.interop.operands import array_of, constant, in_double, is_tracked

Array = Any
Axis = Any

_MIN_RANKS_TO_SORT = 16
"""Number of ranks from which a full sort replaces a partition."""


def _at_ranks(
    a: Tensor,
    q: Any,
    axis: Axis,
    method: Any,
    keepdims: bool,
    weights: Any = None,
    *,
    skip_nan: bool,
) -> Tensor:
    """Return quantiles, interpolated between neighbours in the sorted order."""
    axes = many_dims(axis, a.ndim)
    axes = tuple(range(a.ndim)) if axes is None else axes
    others = [i for i in range(a.ndim) if i not in axes]
    shape = [a.shape[i] for i in others]
    n = math.prod([a.shape[i] for i in axes])
    rows = xp.reshape(ops.permute_dims(floating(a), [*others, *axes]), (*shape, n))
    q = np.asarray(q, np.float64)
    if weights is not None:
        heights = _in_rows(array_of(weights), a, axes, others)
        result = ops.moveaxis(_row_quantiles(rows, q.ravel(), method, skip_nan, heights), -1, 0)
    elif not is_known(rows._array):
        function = ops.nanquantile if skip_nan else ops.quantile
        result = function(rows, q.ravel(), -1, interpolation=method)
    elif n:
        result = ops.moveaxis(_row_quantiles(rows, q.ravel(), method, skip_nan), -1, 0)
    else:
        result = constant(np.full((q.size, *shape), np.nan, rows.dtype))
    kept = [1 if i in axes else a.shape[i] for i in range(a.ndim)] if keepdims else shape
    return xp.reshape(result, (*q.shape, *kept))


def _in_rows(weights: Array, a: Tensor, axes: Sequence[int], others: list[int]) -> Array:
    """Return the weights of the elements of each row."""
    if weights.shape != a.shape:
        if weights.shape != tuple([a.shape[i] for i in axes]):
            raise ArgumentError(
                f"quantile: expected weights of the shape of a, {list(a.shape)}, or of its axis, "
                f"got {list(weights.shape)}"
            )
        order = np.argsort(axes)
        weights = np.expand_dims(np.transpose(weights, order), tuple(others))
        weights = np.broadcast_to(weights, a.shape)
    rows = np.transpose(weights, [*others, *axes])
    return rows.reshape(*[a.shape[i] for i in others], -1)


def _row_quantiles(
    rows: Tensor, q: Array, method: Any, skip_nan: bool, weights: Array | None = None
) -> Tensor:
    if not is_known(rows._array) or (weights is not None and not is_known(weights)):
        raise CompileError(
            "quantile: weights= needs the numbers of its arguments, which a compiled or mapped "
            "function doesn't have: call it outside"
        )
    numbers = array_of(rows)
    missing = np.isnan(numbers).sum(-1, keepdims=True)
    counts = rows.shape[-1] - (missing if skip_nan else 0 * missing)
    if weights is None:
        ranks, undefined = _ranks(counts, q, method)
    else:
        ranks, undefined = _weighted_ranks(numbers, q, method, skip_nan, weights)
    low = np.floor(ranks).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(counts - 1, 0))
    positions = _positions_of_ranks(numbers, low, high)
    lower, upper = [ops.take_along_dim(rows, constant(part), -1) for part in positions]
    result = _interpolate(lower, upper, ranks - np.floor(ranks))
    if not skip_nan:
        undefined = undefined | (missing > 0)
    return ops.where(constant(undefined), np.nan, result) if undefined.any() else result


def _ranks(counts: Array, q: Array, method: Any) -> tuple[Array, Array]:
    """Return the fractional ranks of the quantiles of each row, and a mask of undefined ones.

    The ranks are NumPy's quantiles of 0, 1, …, n - 1: for each method, since all of them are linear
    between neighbours.
    """
    ranks = np.zeros((*counts.shape[:-1], q.size))
    for count in np.unique(counts[counts > 0]):
        ranks[counts[..., 0] == count] = np.quantile(np.arange(count), q, method=method)
    return ranks, np.broadcast_to(counts == 0, ranks.shape)


def _weighted_ranks(
    numbers: Array, q: Array, method: Any, skip_nan: bool, weights: Array
) -> tuple[Array, Array]:
    """Return the ranks of weighted quantiles: NumPy's of the elements' ranks in each row."""
    own = np.argsort(np.argsort(numbers, -1), -1).astype(np.float64)
    if skip_nan:
        own = np.where(np.isnan(numbers), np.nan, own)
    find = np.nanquantile if skip_nan else np.quantile
    ranks = np.moveaxis(find(own, q, -1, weights=weights, method=method), 0, -1)
    undefined = np.isnan(ranks)
    return np.where(undefined, 0.0, ranks), undefined


def _positions_of_ranks(numbers: Array, *ranks: Array) -> list[Array]:
    """Return the positions in each row of the elements of these ranks."""
    wanted = np.unique(np.concatenate([part.ravel() for part in ranks]))
    is_few = len(wanted) < _MIN_RANKS_TO_SORT
    order = np.argpartition(numbers, wanted, -1) if is_few else np.argsort(numbers, -1)
    return [np.take_along_axis(order, part, -1) for part in ranks]


def _interpolate(lower: Tensor, upper: Tensor, fraction: Array) -> Tensor:
    """Return the linear interpolation between two tensors."""
    # Differences of infinities are nan: take the lower one where it is exact.
    ends = array_of(lower), array_of(upper)
    exact = (fraction == 0) | (np.isinf(ends[0]) & (ends[0] == ends[1]))
    if exact.any():
        mask = constant(exact)
        step = ops.where(mask, 0.0, upper) - ops.where(mask, 0.0, lower)
    else:
        step = upper - lower
    return lower + constant(fraction.astype(ends[0].dtype)) * step


# --- quantile, percentile and median --------------------------------------------------------------


def _check_q(name: str, q: Any, scale: float) -> Array:
    if is_tracked(q):
        raise ArgumentTypeError(
            f"numpy.{name} has no derivative rule for q in chainrule, only for a: call it with "
            "q.detach().numpy()"
        )
    q = array_of(q) / scale
    if not ((q >= 0) & (q <= 1)).all():
        raise ArgumentError(f"{name}: q must be in the range [0, {scale}], got {q * scale}")
    return q


_PICKING = frozenset(["inverted_cdf", "closest_observation", "lower", "higher", "nearest"])
"""Methods that return elements, without arithmetic."""


def _by_rank(name: str, scale: float, *, skip_nan: bool) -> Any:
    def find(
        a: Tensor,
        q: Any,
        axis: Axis = None,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: Any = None,
    ) -> Tensor:
        if a.is_complex():
            raise DTypeError(
                f"{name}: expected real numbers, got {a.dtype}: a must be an array of real "
                "numbers, between which to interpolate. Take the real part, or the absolute value"
            )
        is_single = isinstance(q, int | float) or getattr(q, "dtype", None) == np.float32
        if method not in _PICKING and (not is_single or isinstance(q, np.float64)):
            a = in_double(a)
        q = _check_q(name, q, scale)
        return _at_ranks(a, q, axis, method, keepdims, weights, skip_nan=skip_nan)

    return find


quantile = _by_rank("quantile", 1, skip_nan=False)
percentile = _by_rank("percentile", 100, skip_nan=False)
nanquantile = _by_rank("nanquantile", 1, skip_nan=True)
nanpercentile = _by_rank("nanpercentile", 100, skip_nan=True)


def median(a: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the median."""
    return _at_ranks(a, 0.5, axis, "linear", keepdims, skip_nan=False)


def nanmedian(a: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the median of the elements that are not nan."""
    return _at_ranks(a, 0.5, axis, "linear", keepdims, skip_nan=True)
