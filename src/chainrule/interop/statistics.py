"""Averages, cumulative sums, covariances and nan-functions, with NumPy's arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from chainrule import array_api as xp
from chainrule import ops
from chainrule.arguments import cast, floating, many_dims
from chainrule.autograd.tensor import Tensor
from chainrule.backend import holds_somewhere, real_dtype
from chainrule.errors import ArgumentError
from chainrule.interop import reductions
from chainrule.interop.manipulation import flat
from chainrule.interop.operands import array_of, constant, in_double
from chainrule.interop.reductions import correction_of, mask_of, mean, root
from chainrule.ops.statistics import squared_magnitudes
from chainrule.primitives import elementwise

Axis = Any

# --- averages and ranges --------------------------------------------------------------------------


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
        if axes is None or weights.shape != axes_shape:
            of_axes = ", or an axis of theirs" if axes is None else f", or {list(axes_shape)}"
            raise ArgumentError(
                f"average: expected weights of the shape of a, {list(a.shape)}{of_axes}; got "
                f"{list(weights.shape)}"
            )
        order = np.argsort(axes)
        weights = ops.permute_dims(weights, order.tolist())
        weights = weights[tuple([slice(None) if i in axes else None for i in range(a.ndim)])]
    total = xp.sum(ops.broadcast_to(weights, a.shape), axis=axis, keepdims=keepdims)
    if holds_somewhere(ops.eq(total, 0)._array):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    result = xp.sum(a * weights, axis=axis, keepdims=keepdims) / total
    return (
        (result, cast(ops.broadcast_to(total, result.shape), result.dtype)) if returned else result
    )


# --- cumulative sums, and functions that ignore nan -----------------------------------------------


def _replace_nan(a: Tensor, value: float) -> tuple[Tensor, Tensor]:
    """Return `a` with nan replaced by a value, and the mask of the other elements."""
    present = ops.logical_not(ops.isnan(a))
    if value == 0 and a.dtype.kind in "fc":
        return elementwise.masked.apply(a, present), present
    return ops.where(present, a, value), present


def _without_nan(function: Callable[..., Tensor], neutral: float) -> Callable[..., Tensor]:
    @wraps(function)
    def total(a: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return function(_replace_nan(a, neutral)[0], *args, **kwargs)

    return total


nansum, nanprod = _without_nan(reductions.sum, 0), _without_nan(reductions.prod, 1)


def cumsum(a: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return cumulative sums: of all elements, if there is no axis."""
    return ops.cumsum(flat(a) if axis is None or not a.ndim else a, axis=axis or 0, dtype=dtype)


def cumprod(a: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return cumulative products: of all elements, if there is no axis."""
    return ops.cumprod(flat(a) if axis is None or not a.ndim else a, axis=axis or 0, dtype=dtype)


def cumulative_sum(
    x: Tensor, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return cumulative sums, of 0-d tensors too."""
    return ops.cumulative_sum(
        ops.atleast_1d(x), axis=axis, dtype=dtype, include_initial=include_initial
    )


def cumulative_prod(
    x: Tensor, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return cumulative products, of 0-d tensors too."""
    return ops.cumulative_prod(
        ops.atleast_1d(x), axis=axis, dtype=dtype, include_initial=include_initial
    )


nancumsum, nancumprod = _without_nan(cumsum, 0), _without_nan(cumprod, 1)


def _nan_extreme(function: Callable[..., Tensor], infinity: float) -> Any:
    def extreme(
        a: Tensor,
        axis: Axis = None,
        keepdims: bool = False,
        initial: Tensor | None = None,
        where: Any = None,
    ) -> Tensor:
        if a.dtype.kind not in "f":
            return function(a, axis, keepdims, initial, where)
        filled, present = _replace_nan(a, infinity)
        found = function(filled, axis, keepdims, initial, where)
        if initial is not None:
            return found
        return ops.where(ops.any(present, axis=axis, keepdims=keepdims), found, np.nan)

    return extreme


nanmax = _nan_extreme(reductions.max, -np.inf)
nanmin = _nan_extreme(reductions.min, np.inf)


def nanmean(
    a: Tensor, axis: Axis = None, dtype: Any = None, keepdims: bool = False, *, where: Any = None
) -> Tensor:
    """Return the mean of the elements that are not nan; nan if there are none."""
    a = floating(cast(a, dtype))
    if where is None or where is True:
        return ops.nanmean(a, axis=axis, keepdims=keepdims)
    present = _present(a, where)
    total = xp.sum(ops.where(present, a, 0), axis=axis, keepdims=keepdims)
    return total / _freedom(a, present, axis, keepdims)


def _present(a: Tensor, where: Any) -> Tensor:
    """Return the mask of the elements that count: of `where`, and not nan."""
    present, mask = ops.logical_not(ops.isnan(a)), mask_of(a, where)
    return present if mask is None else ops.logical_and(present, mask)


def _freedom(
    a: Tensor, present: Tensor, axis: Axis, keepdims: bool, correction: float = 0
) -> Tensor:
    """Return the number of elements that count, less a correction; nan for none."""
    count = ops.count_nonzero(present, axis=axis, keepdims=keepdims)
    count = cast(count, real_dtype(a.dtype)) - correction
    return ops.where(count > 0, count, np.nan)


def nanvar(
    a: Tensor,
    axis: Axis = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Tensor | None = None,
    correction: float | None = None,
) -> Tensor:
    """Return the variance of the elements that are not nan."""
    a, correction = floating(cast(a, dtype)), correction_of(ddof, correction)
    present = _present(a, where)
    middle = nanmean(a, axis, keepdims=True, where=where) if mean is None else mean
    centred = ops.where(present, a - middle, 0)
    total = xp.sum(squared_magnitudes(centred), axis=axis, keepdims=keepdims)
    return cast(total / _freedom(a, present, axis, keepdims, correction), dtype)


def nanstd(
    a: Tensor,
    axis: Axis = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Tensor | None = None,
    correction: float | None = None,
) -> Tensor:
    """Return the standard deviation of the elements that are not nan, with derivative 0 at 0."""
    return root(
        nanvar(a, axis, dtype, ddof, keepdims, where=where, mean=mean, correction=correction)
    )


# --- covariances and correlations -----------------------------------------------------------------


def _variables(m: Tensor, y: Tensor | None, rowvar: bool, dtype: Any) -> Tensor:
    """Return the observations of each variable in a row."""
    if m.ndim > 2 or (y is not None and y.ndim > 2):
        raise ArgumentError("cov: m and y can have two dimensions at most")
    parts = [
        floating(in_double(part) if dtype is None else cast(part, dtype))
        for part in (m, y)
        if part is not None
    ]
    oriented = [part.mT if not rowvar and part.ndim == 2 else part for part in parts]
    return xp.concat([ops.atleast_2d(part) for part in oriented], axis=0)


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
