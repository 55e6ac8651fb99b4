"""Reductions with the arguments of NumPy's functions, with `where` and `initial`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import array_api as xp
from chainrule import ops
from chainrule.arguments import cast, floating, many_dims
from chainrule.autograd.tensor import Tensor
from chainrule.backend import real_dtype
from chainrule.errors import ArgumentError
from chainrule.interop.operands import array_of, constant
from chainrule.ops.statistics import squared_magnitudes

Axis = Any


def mask_of(a: Tensor, where: Any) -> Tensor | None:
    """Return the mask `where` in the shape of `a`; None if it includes all elements."""
    if where is None or where is True:
        return None
    mask = where if isinstance(where, Tensor) else constant(array_of(where))
    mask = mask if mask.dtype == np.bool_ else cast(mask, np.bool_)
    if np.broadcast_shapes(mask.shape, a.shape) != a.shape:
        raise ArgumentError(
            f"where= must fit the shape of a, {list(a.shape)}, but has {list(mask.shape)}"
        )
    return ops.broadcast_to(mask, a.shape)


def fill(a: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """Return `a` with a value where a mask doesn't hold."""
    return a if mask is None else ops.where(mask, a, value)


# --- sums, products, extrema ----------------------------------------------------------------------


def _sum_or_product(
    reduction: Callable[..., Tensor], binary: Callable[..., Tensor], neutral: float
) -> Callable[..., Tensor]:
    def total(
        a: Tensor,
        axis: Axis = None,
        dtype: Any = None,
        keepdims: bool = False,
        initial: Tensor | None = None,
        where: Any = None,
    ) -> Tensor:
        chosen = fill(a, mask_of(a, where), neutral)
        found = reduction(chosen, axis=axis, dtype=dtype, keepdims=keepdims)
        return found if initial is None else binary(found, initial)

    return total


sum = _sum_or_product(xp.sum, ops.add, 0)
prod = _sum_or_product(xp.prod, ops.multiply, 1)


def _extreme(
    name: str, reduction: Callable[..., Tensor], binary: Callable[..., Tensor], infinity: float
) -> Callable[..., Tensor]:
    def extreme(
        a: Tensor,
        axis: Axis = None,
        keepdims: bool = False,
        initial: Tensor | None = None,
        where: Any = None,
    ) -> Tensor:
        if initial is None:
            if where is not None and where is not True:
                raise ArgumentError(
                    f"reduction operation '{name}' does not have an identity, so to use a where "
                    "mask one has to specify 'initial'"
                )
            return reduction(a, axis=axis, keepdims=keepdims)
        # Masked elements must not share the gradient with an equal `initial`: floats have an
        # infinity for that.
        chosen = fill(a, mask_of(a, where), infinity if a.dtype.kind == "f" else initial)
        axes = many_dims(axis, a.ndim)
        if 0 in [a.shape[i] for i in (range(a.ndim) if axes is None else axes)]:
            empty = xp.sum(chosen, axis=axis, dtype=a.dtype, keepdims=keepdims)
            return empty + cast(initial, a.dtype)
        return binary(reduction(chosen, axis=axis, keepdims=keepdims), initial)

    return extreme


max = _extreme("maximum", xp.max, ops.maximum, -np.inf)
min = _extreme("minimum", xp.min, ops.minimum, np.inf)


# --- means and variances --------------------------------------------------------------------------


def mean(
    a: Tensor, axis: Axis = None, dtype: Any = None, keepdims: bool = False, *, where: Any = None
) -> Tensor:
    """Return the mean, of the elements for which a condition holds."""
    a = floating(cast(a, dtype))
    mask = mask_of(a, where)
    if mask is None:
        return cast(ops.mean(a, axis=axis, keepdims=keepdims), dtype)
    total = xp.sum(fill(a, mask, 0), axis=axis, keepdims=keepdims)
    return cast(total / _count(a, mask, axis, keepdims), dtype)


def _count(a: Tensor, mask: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    return xp.sum(cast(mask, real_dtype(a.dtype)), axis=axis, keepdims=keepdims)


def var(
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
    """Return the variance: of a population, unless `ddof` or `correction` is given."""
    correction = correction_of(ddof, correction)
    a = _for_variance(a, dtype)
    mask = mask_of(a, where)
    if mask is None and mean is None:
        return cast(ops.var(a, axis=axis, correction=correction, keepdims=keepdims), dtype)
    mask = constant(np.ones(a.shape, np.bool_)) if mask is None else mask
    mean = _mean(a, axis, keepdims=True, where=mask) if mean is None else mean
    centred = fill(a - mean, mask, 0)
    freedom = ops.clamp(_count(a, mask, axis, keepdims) - correction, min=0)
    return cast(xp.sum(squared_magnitudes(centred), axis=axis, keepdims=keepdims) / freedom, dtype)


_mean = mean


def _for_variance(a: Tensor, dtype: Any) -> Tensor:
    if dtype is not None and np.dtype(dtype).kind != "c" and a.is_complex():
        raise ArgumentError(
            f"the variance of complex numbers in the dtype {np.dtype(dtype)}, which holds no "
            "imaginary parts: take the real part first, or leave dtype= out"
        )
    return floating(cast(a, dtype))


def std(
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
    """Return the standard deviation: of a population, unless `ddof` or `correction` is given."""
    if (where is None or where is True) and mean is None:
        a, correction = _for_variance(a, dtype), correction_of(ddof, correction)
        return cast(ops.std(a, axis=axis, correction=correction, keepdims=keepdims), dtype)
    return root(var(a, axis, dtype, ddof, keepdims, where=where, mean=mean, correction=correction))


def root(variance: Tensor) -> Tensor:
    """Return the square root, with the derivative 0 at 0."""
    zero = ops.eq(variance, 0)
    return ops.where(zero, 0.0, ops.sqrt(ops.where(zero, 1.0, variance)))


def correction_of(ddof: float, correction: float | None) -> float:
    """Return the correction of the degrees of freedom, from either of its names."""
    if correction is not None and ddof != 0:
        raise ArgumentError(
            f"ddof and correction can't be provided simultaneously: got {ddof} and {correction}"
        )
    return ddof if correction is None else correction
