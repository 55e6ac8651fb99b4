"""Sums, averages, spread and order statistics, with the arguments of NumPy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import array_api as xp
from chainrule import ops
from chainrule.arguments import cast, floating, many_dims
from chainrule.autograd.tensor import Tensor
from chainrule.interop.operands import array_of, constant, is_tracked
from chainrule.interop.shapes import ravel

Axis = Any

# --- averages and spread --------------------------------------------------------------------------


def mean(a: Tensor, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the mean."""
    return ops.mean(floating(cast(a, dtype)), axis=axis, keepdims=keepdims)


def var(
    a: Tensor,
    axis: Axis = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the variance: of a population, unless `ddof` or `correction` is given."""
    lost = ddof if correction is None else correction
    return ops.var(floating(cast(a, dtype)), axis=axis, correction=lost, keepdims=keepdims)


def std(
    a: Tensor,
    axis: Axis = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the standard deviation: of a population, unless `ddof` or `correction` is given."""
    lost = ddof if correction is None else correction
    return ops.std(floating(cast(a, dtype)), axis=axis, correction=lost, keepdims=keepdims)


def ptp(a: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the largest minus the smallest element."""
    return xp.max(a, axis=axis, keepdims=keepdims) - xp.min(a, axis=axis, keepdims=keepdims)


def average(
    a: Tensor,
    axis: Axis = None,
    weights: Tensor | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Return the weighted mean; with `returned`, the sum of the weights, too."""
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        total = constant(np.full(result.shape, a.numel() / max(result.numel(), 1), result.dtype))
        return (result, total) if returned else result
    axes = many_dims(axis, a.ndim)
    if weights.shape != a.shape:
        axes_shape = tuple([a.shape[i] for i in axes or ()])
        if weights.shape != axes_shape:
            raise ValueError(
                f"average: expected weights of the shape of a, {list(a.shape)}, or of its axes, "
                f"{list(axes_shape)}, got {list(weights.shape)}"
            )
        order = np.argsort(axes or ())
        weights = ops.permute_dims(weights, order.tolist())
        weights = weights[tuple([slice(None) if i in axes else None for i in range(a.ndim)])]  # type: ignore[operator]
    total = xp.sum(ops.broadcast_to(weights, a.shape), axis=axis, keepdims=keepdims)
    if bool(ops.any(ops.equal(total, 0))):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    result = xp.sum(a * weights, axis=axis, keepdims=keepdims) / total
    return (result, ops.broadcast_to(total, result.shape)) if returned else result


# --- without nan ----------------------------------------------------------------------------------


def _filled(a: Tensor, value: float) -> tuple[Tensor, Tensor]:
    """Return `a` with a value instead of each nan, and where that isn't."""
    missing = ops.isnan(a)
    return ops.where(missing, value, a), ops.logical_not(missing)


def nanprod(a: Tensor, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product of what is not nan."""
    return xp.prod(_filled(a, 1)[0], axis=axis, dtype=dtype, keepdims=keepdims)


def cumsum(a: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return running sums: of all elements, if there is no axis."""
    return ops.cumsum(ravel(a) if axis is None else a, axis=axis or 0, dtype=dtype)


def cumprod(a: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return running products: of all elements, if there is no axis."""
    return ops.cumprod(ravel(a) if axis is None else a, axis=axis or 0, dtype=dtype)


def nancumsum(a: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return running sums of what is not nan."""
    return cumsum(_filled(a, 0)[0], axis, dtype)


def nancumprod(a: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return running products of what is not nan."""
    return cumprod(_filled(a, 1)[0], axis, dtype)


def _nan_extreme(function: Any, infinity: float) -> Any:
    def extreme(a: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
        if a.dtype.kind not in "f":
            return function(a, axis=axis, keepdims=keepdims)  # type: ignore[no-any-return]
        filled, there = _filled(a, infinity)
        found = function(filled, axis=axis, keepdims=keepdims)
        return ops.where(ops.any(there, axis=axis, keepdims=keepdims), found, np.nan)

    return extreme


nanmax, nanmin = _nan_extreme(xp.max, -np.inf), _nan_extreme(xp.min, np.inf)


def nanmean(a: Tensor, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the mean of what is not nan; nan if that is nothing."""
    return ops.nanmean(floating(cast(a, dtype)), axis=axis, keepdims=keepdims)


def _real(a: Tensor) -> Any:
    return np.empty(0, a.dtype).real.dtype


def nanvar(
    a: Tensor,
    axis: Axis = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the variance of what is not nan."""
    a = floating(cast(a, dtype))
    there = ops.logical_not(ops.isnan(a))
    centred = ops.where(there, a - nanmean(a, axis, keepdims=True), 0)
    count = cast(ops.count_nonzero(there, axis=axis, keepdims=keepdims), _real(a))
    freedom = count - (ddof if correction is None else correction)
    squares = ops.real(centred * ops.conj(centred)) if a.is_complex() else ops.square(centred)
    total = xp.sum(squares, axis=axis, keepdims=keepdims)
    return total / ops.where(freedom > 0, freedom, np.nan)


def nanstd(
    a: Tensor,
    axis: Axis = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the standard deviation of what is not nan; its derivative is 0 where it is 0."""
    variance = nanvar(a, axis, dtype, ddof, keepdims, correction=correction)
    zero = ops.equal(variance, 0)
    return ops.where(zero, 0.0, ops.sqrt(ops.where(zero, 1.0, variance)))


# --- by rank --------------------------------------------------------------------------------------


def _at_ranks(
    a: Tensor, q: Any, axis: Axis, method: Any, keepdims: bool, *, skip_nan: bool
) -> Tensor:
    """Return quantiles, interpolated between neighbours in order.

    Where they lie is what NumPy's quantile makes of the ranks 0 … n - 1 themselves: that holds for
    each of its methods, since all of them are linear between neighbours.
    """
    axes = many_dims(axis, a.ndim)
    axes = tuple(range(a.ndim)) if axes is None else axes
    others = [i for i in range(a.ndim) if i not in axes]
    shape = [a.shape[i] for i in others]
    rows = xp.reshape(ops.permute_dims(floating(a), [*others, *axes]), (*shape, -1))
    rows = xp.sort(rows)
    n = rows.shape[-1]
    counts = n - np.isnan(array_of(rows)).sum(-1)  # nan comes last
    q = np.asarray(q, np.float64)
    ranks = np.zeros((*shape, q.size))
    for count in np.unique(counts if skip_nan else n):
        found = np.quantile(np.arange(count), q.ravel(), method=method) if count else np.nan
        ranks[counts == count if skip_nan else ...] = found
    lost = np.isnan(ranks) if skip_nan else np.broadcast_to((counts < n)[..., None], ranks.shape)
    result = _interpolated(rows, np.where(lost, 0, ranks), lost)
    result = ops.moveaxis(result, -1, 0)
    kept = [1 if i in axes else a.shape[i] for i in range(a.ndim)] if keepdims else shape
    return xp.reshape(result, (*q.shape, *kept))


def _interpolated(rows: Tensor, ranks: Any, lost: Any) -> Tensor:
    low = np.floor(ranks).astype(np.int64)
    share = ranks - low
    high = np.minimum(low + 1, rows.shape[-1] - 1)
    lower = ops.take_along_dim(rows, constant(low), -1)
    upper = ops.take_along_dim(rows, constant(high), -1)
    between = constant(share.astype(rows.dtype))
    # Of an infinity there is nothing to interpolate: its differences are nan.
    ends = array_of(lower), array_of(upper)
    alone = constant((share == 0) | (np.isinf(ends[0]) & (ends[0] == ends[1])))
    step = ops.where(alone, 0.0, upper) - ops.where(alone, 0.0, lower)
    return ops.where(constant(lost), np.nan, lower + between * step)


def _checked(name: str, q: Any, scale: float) -> Any:
    if is_tracked(q):
        raise TypeError(
            f"numpy.{name} has no derivative rule for q in chainrule, only for a: call it with "
            "q.detach().numpy()"
        )
    q = array_of(q) / scale
    if not ((q >= 0) & (q <= 1)).all():
        raise ValueError(f"{name}: q must be in the range [0, {scale}]")
    return q


def _by_rank(name: str, scale: float, *, skip_nan: bool) -> Any:
    def find(
        a: Tensor, q: Any, axis: Axis = None, method: str = "linear", keepdims: bool = False
    ) -> Tensor:
        q = _checked(name, q, scale)
        return _at_ranks(a, q, axis, method, keepdims, skip_nan=skip_nan)

    return find


quantile, nanquantile = (
    _by_rank("quantile", 1, skip_nan=False),
    _by_rank("nanquantile", 1, skip_nan=True),
)
percentile, nanpercentile = (
    _by_rank("percentile", 100, skip_nan=False),
    _by_rank("nanpercentile", 100, skip_nan=True),
)


def median(a: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the middle of the elements in order, the mean of two where there are two."""
    return _at_ranks(a, 0.5, axis, "linear", keepdims, skip_nan=False)


def nanmedian(a: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the middle of the elements that are not nan."""
    return _at_ranks(a, 0.5, axis, "linear", keepdims, skip_nan=True)


# --- together -------------------------------------------------------------------------------------


def _variables(m: Tensor, y: Tensor | None, rowvar: bool, dtype: Any) -> Tensor:
    """Return the observations of each variable in a row."""
    if m.ndim > 2 or (y is not None and y.ndim > 2):
        raise ValueError("cov: m and y can have two dimensions at most")
    rows = [ops.atleast_2d(floating(cast(part, dtype))) for part in (m, y) if part is not None]
    turned = [part.mT if not rowvar and part.shape[0] != 1 else part for part in rows]
    return xp.concat(turned, axis=0)


def cov(
    m: Tensor,
    y: Tensor | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Tensor | None = None,
    *,
    dtype: Any = None,
) -> Tensor:
    """Return the covariances of variables, one in each row."""
    ddof = (0 if bias else 1) if ddof is None else ddof
    counts = None if fweights is None else constant(array_of(fweights))
    rows = _variables(m, y, rowvar, dtype)
    return ops.squeeze(ops.cov(rows, correction=ddof, fweights=counts, aweights=aweights))


def corrcoef(
    x: Tensor, y: Tensor | None = None, rowvar: bool = True, *, dtype: Any = None
) -> Tensor:
    """Return the correlation coefficients of variables, one in each row."""
    return ops.squeeze(ops.corrcoef(_variables(x, y, rowvar, dtype)))
