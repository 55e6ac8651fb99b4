"""Reductions with the arguments of NumPy's functions, of all elements or of chosen ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import array_api as xp
from chainrule import ops
from chainrule.arguments import cast, floating, many_dims
from chainrule.autograd.tensor import Tensor
from chainrule.interop.operands import array_of, constant

Axis = Any


def _chosen(a: Tensor, where: Any) -> Tensor | None:
    """Return the mask of the elements that count, in the shape of `a`; None if all do."""
    if where is None or where is True:
        return None
    mask = where if isinstance(where, Tensor) else constant(array_of(where))
    mask = mask if mask.dtype == np.bool_ else cast(mask, np.bool_)
    if np.broadcast_shapes(mask.shape, a.shape) != a.shape:
        raise ValueError(
            f"where= must fit the shape of a, {list(a.shape)}, but has {list(mask.shape)}"
        )
    return ops.broadcast_to(mask, a.shape)


def _filled(a: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    return a if mask is None else ops.where(mask, a, value)


# --- sums, products, extremes ---------------------------------------------------------------------


def _total(
    reduced: Callable[..., Tensor], of_two: Callable[..., Tensor], neutral: float
) -> Callable[..., Tensor]:
    def total(
        a: Tensor,
        axis: Axis = None,
        dtype: Any = None,
        keepdims: bool = False,
        initial: Tensor | None = None,
        where: Any = None,
    ) -> Tensor:
        chosen = _filled(a, _chosen(a, where), neutral)
        found = reduced(chosen, axis=axis, dtype=dtype, keepdims=keepdims)
        return found if initial is None else of_two(found, initial)

    return total


sum = _total(xp.sum, ops.add, 0)
prod = _total(xp.prod, ops.multiply, 1)


def _extreme(
    name: str, reduced: Callable[..., Tensor], of_two: Callable[..., Tensor], infinity: float
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
                raise ValueError(
                    f"reduction operation '{name}' does not have an identity, so to use a where "
                    "mask one has to specify 'initial'"
                )
            return reduced(a, axis=axis, keepdims=keepdims)
        # Where nothing is chosen, `initial` is: floats have a number beyond it, which takes no part
        # in the gradient of equal ones.
        chosen = _filled(a, _chosen(a, where), infinity if a.dtype.kind == "f" else initial)
        axes = many_dims(axis, a.ndim)
        if 0 in [a.shape[i] for i in (range(a.ndim) if axes is None else axes)]:
            nothing = xp.sum(chosen, axis=axis, dtype=a.dtype, keepdims=keepdims)
            return nothing + cast(initial, a.dtype)
        return of_two(reduced(chosen, axis=axis, keepdims=keepdims), initial)

    return extreme


max = _extreme("maximum", xp.max, ops.maximum, -np.inf)
min = _extreme("minimum", xp.min, ops.minimum, np.inf)


# --- averages and spread --------------------------------------------------------------------------


def mean(
    a: Tensor, axis: Axis = None, dtype: Any = None, keepdims: bool = False, *, where: Any = None
) -> Tensor:
    """Return the mean, of the elements for which a condition holds."""
    a = floating(cast(a, dtype))
    mask = _chosen(a, where)
    if mask is None:
        return ops.mean(a, axis=axis, keepdims=keepdims)
    total = xp.sum(_filled(a, mask, 0), axis=axis, keepdims=keepdims)
    return total / _count(a, mask, axis, keepdims)


def _count(a: Tensor, mask: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    real = np.empty(0, a.dtype).real.dtype
    return xp.sum(cast(mask, real), axis=axis, keepdims=keepdims)


def var(
    a: Tensor,
    axis: Axis = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: float | None = None,
) -> Tensor:
    """Return the variance: of a population, unless `ddof` or `correction` is given."""
    lost = lost_of(ddof, correction)
    a = floating(cast(a, dtype))
    mask = _chosen(a, where)
    if mask is None:
        return ops.var(a, axis=axis, correction=lost, keepdims=keepdims)
    centred = _filled(a - mean(a, axis, keepdims=True, where=mask), mask, 0)
    squares = ops.real(centred * ops.conj(centred)) if a.is_complex() else ops.square(centred)
    freedom = ops.clamp(_count(a, mask, axis, keepdims) - lost, min=0)
    return xp.sum(squares, axis=axis, keepdims=keepdims) / freedom


def std(
    a: Tensor,
    axis: Axis = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: float | None = None,
) -> Tensor:
    """Return the standard deviation: of a population, unless `ddof` or `correction` is given."""
    if where is None or where is True:
        lost = lost_of(ddof, correction)
        return ops.std(floating(cast(a, dtype)), axis=axis, correction=lost, keepdims=keepdims)
    return root(var(a, axis, dtype, ddof, keepdims, where=where, correction=correction))


def root(variance: Tensor) -> Tensor:
    """Return the square root, whose derivative is taken as 0 where it is 0."""
    zero = ops.equal(variance, 0)
    return ops.where(zero, 0.0, ops.sqrt(ops.where(zero, 1.0, variance)))


def lost_of(ddof: float, correction: float | None) -> float:
    """Return by how much the count is less: NumPy's older name or the array API's says it."""
    if correction is not None and ddof != 0:
        raise ValueError(
            f"ddof and correction can't be provided simultaneously: got {ddof} and {correction}"
        )
    return ddof if correction is None else correction
