"""Softmax and normalisation kernels with few passes over memory and few temporaries.

The formulas are those of the primitives of the same names, which call these kernels for NumPy
arrays. `einsum` and `vecdot` sum products without storing them.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule.interrupts import errstate
from chainrule.kernels.parallel import parallel_fill, parallelized
from chainrule.kernels.reductions import kept_shape, largest, sum_over

Array = Any
Axes = tuple[int, ...]


def _sums(xp: Any, x: Array, axis: int) -> Array:
    if x.size >= 4096 and axis == x.ndim - 1 and x.shape[-1] <= 2048:
        return xp.einsum("...j->...", x)[..., None]
    return sum_over(x, axis, keepdims=True)


def _products(xp: Any, x: Array, y: Array, axis: int) -> Array:
    """Return the sums of x y along an axis."""
    if x.size >= 4096 and axis == x.ndim - 1 and x.shape[-1] <= 2048:
        return xp.vecdot(x, y)[..., None]
    return sum_over(x * y, axis, keepdims=True)


def _apply_column(xp: Any, ufunc: Any, x: Array, column: Array, out: Array) -> None:
    """Fill in ufunc(x, column), where the column has one number for each row.

    NumPy first broadcasts such a column into buffers, unless a row is longer than they are: with
    small buffers a million float32 take 0.06 ms instead of 0.15.
    """
    if x.size < 1 << 15 or x.shape[-1] < 512 or column.shape[-1] != 1:
        ufunc(x, column, out=out)
        return
    _with_small_buffers(xp, ufunc, x, column, out)


@errstate()  # it includes the size of buffers
def _with_small_buffers(xp: Any, ufunc: Any, x: Array, column: Array, out: Array) -> None:
    xp.setbufsize(256)  # in this thread alone
    ufunc(x, column, out=out)


def _subtract_max(xp: Any, out: Array, x: Array, axis: int) -> None:
    if x.size:
        top = largest(x, axis, keepdims=True)
        _apply_column(xp, xp.subtract, x, top, out)


@errstate(over="ignore")
def _fill_exponentials(xp: Any, out: Array | None, x: Array, axis: int) -> Array:
    """Fill in exponentials, and return their sums."""
    return _sums(xp, xp.exp(x, out=out), axis)


def _exponentials(xp: Any, out: Array, x: Array, axis: int) -> Array:
    """Fill in exponentials, up to a factor for each slice, and return their sums."""
    if x.size < 4096 or axis != x.ndim - 1:
        _subtract_max(xp, out, x, axis)
        xp.exp(out, out=out)
        return _sums(xp, out, axis)
    total = _fill_exponentials(xp, out, x, axis)
    extreme = _extreme_rows(xp, total, 0.1)
    if extreme is not None:
        part = x[extreme]
        _subtract_max(xp, part, part, axis=1)
        out[extreme] = xp.exp(part, out=part)
        total[extreme] = _sums(xp, part, 1)
    return total


def _extreme_rows(xp: Any, total: Array, least: float) -> Array | None:
    """Return the mask of rows whose sum of exponentials needs a shift by the maximum, or None.

    Finding and subtracting the maximum takes two passes. For sums from `least` to the largest,
    nothing has overflowed, and terms lost to underflow are negligible.
    """
    if xp.minimum.reduce(total, None) >= least and xp.maximum.reduce(total, None) <= _LARGEST_SUM:
        return None
    usual = (total >= least) & (total <= _LARGEST_SUM)
    extreme: Array = xp.logical_not(usual)[..., 0]  # true for nan
    return extreme


_LARGEST_SUM = 1e30


@parallelized(by_rows=True)
def softmax(xp: Any, out: Array, x: Array, *, axis: int) -> None:
    """Fill in exponentials over their sum."""
    if x.size:
        _apply_column(xp, xp.multiply, out, 1 / _exponentials(xp, out, x, axis), out)


@parallelized(by_rows=True)
def softmax_rule(xp: Any, product: Array, v: Array, out: Array, *, axis: int) -> None:
    """Fill in (v - Σ v out) out."""
    _apply_column(xp, xp.subtract, v, _products(xp, v, out, axis), product)
    xp.multiply(product, out, out=product)


@parallelized(by_rows=True)
def log_softmax(xp: Any, out: Array, x: Array, *, axis: int) -> None:
    """Fill in x - log Σ exp x."""
    _subtract_max(xp, out, x, axis)
    if x.size:
        _apply_column(xp, xp.subtract, out, xp.log(_sums(xp, xp.exp(out), axis)), out)


@parallelized(by_rows=True)
def log_softmax_vjp(xp: Any, product: Array, g: Array, out: Array, *, axis: int) -> None:
    """Fill in g - exp(out) Σ g."""
    xp.exp(out, out=product)
    _apply_column(xp, xp.multiply, product, _sums(xp, g, axis), product)
    xp.subtract(g, product, out=product)


def _normalized_axes(x: Array, axis: Axes | None) -> tuple[Axes, Axes]:
    """Return the sorted axes, and the shape with these axes of length 1."""
    if axis is not None and len(axis) == 1:
        (only,) = axis
        return axis, (*x.shape[:only], 1, *x.shape[only + 1 :])
    axis = tuple(range(x.ndim)) if axis is None else tuple(sorted(axis))
    return axis, tuple([1 if i in axis else n for i, n in enumerate(x.shape)])


def _all_finite(xp: Any, x: Array) -> bool:
    return bool(xp.logical_and.reduce(xp.isfinite(x), None))


def logsumexp(xp: Any, x: Array, *, axis: Axes | None, keepdims: bool) -> Array:
    """Return log Σ exp x; where the maximum is infinite, that is the result."""
    axis, kept = _normalized_axes(x, axis)
    if x.size < 4096 or axis[0] != x.ndim - len(axis) or x.dtype.kind == "c":
        out = _log_sums(xp, x, axis)
    else:
        out = xp.empty(kept, x.dtype)
        parallel_fill(_fill_log_sums, xp, _flatten_trailing(axis, out, x), {}, by_rows=True)
    return out if keepdims else out.reshape([n for i, n in enumerate(x.shape) if i not in axis])


def _log_sums(xp: Any, x: Array, axis: Axes) -> Array:
    if x.size:
        top = largest(x.real, axis, keepdims=True)
    else:
        top = xp.full(kept_shape(x.shape, axis), -math.inf, x.real.dtype)
    if x.ndim and x.dtype.kind == "f" and _all_finite(xp, top):
        shifted = x - top
        total = sum_over(xp.exp(shifted, out=shifted), axis, keepdims=True)
        return xp.add(top, xp.log(total, out=total), out=total)
    shifted = x - xp.where(xp.isfinite(top), top, 0)
    if x.dtype.kind == "f":
        shifted = xp.minimum(shifted, 0)
    total = sum_over(xp.exp(shifted), axis, keepdims=True)
    return top + xp.log(xp.where(total == 0, 1, total))


def _fill_log_sums(xp: Any, out: Array, x: Array) -> None:
    total = _fill_exponentials(xp, None, x, 1)
    # Terms that underflow are below the rounding error of a sum from here on, unlike quotients by
    # the sum, which `softmax` returns.
    limits = xp.finfo(x.dtype)
    extreme = _extreme_rows(xp, total, min(0.1, float(limits.tiny / limits.eps**2)))
    if extreme is not None:
        total[extreme] = 1
    xp.log(total, out=out)
    if extreme is not None:
        out[extreme] = _log_sums(xp, x[extreme], (1,))


def logsumexp_vjp(
    xp: Any, g: Array, x: Array, out: Array, *, axis: Axes | None, keepdims: bool
) -> Array:
    """Return g exp(x - out), normalised where rounding moved the sum of exponentials off 1."""
    axis, kept = _normalized_axes(x, axis)
    out, g = out.reshape(kept), g.reshape(kept)
    if x.ndim and 0 < x.size < 4096 and x.dtype.kind == "f" and _all_finite(xp, out):
        e = x - out
        xp.exp(e, out=e)
        return xp.multiply(e, g / sum_over(e, axis, keepdims=True), out=e)
    # Where out is -inf the result is 0; where it is inf, nan as in PyTorch.
    top = xp.where(out == -math.inf, 0, out)
    if x.size == 0 or axis[:1] != (x.ndim - len(axis),):
        e = xp.exp(x - top)
        return e * (g / _safe_sums(xp, sum_over(e, axis, keepdims=True)))
    product = xp.empty(x.shape, x.dtype)
    is_large = bool((xp.abs(top) > _MAX_EXACT_LOG).any())
    arrays = _flatten_trailing(axis, product, x, top, g)
    parallel_fill(_fill_softmax, xp, arrays, {"is_large": is_large}, by_rows=True)
    return product


def _fill_softmax(
    xp: Any, product: Array, x: Array, top: Array, g: Array, *, is_large: bool
) -> None:
    _apply_column(xp, xp.subtract, x, top, product)
    xp.exp(product, out=product)
    if is_large:
        g = g / _safe_sums(xp, xp.add.reduce(product, 1, keepdims=True))
    _apply_column(xp, xp.multiply, product, g, product)


_MAX_EXACT_LOG = 8
"""Magnitude of log-sums up to which exp(x - out) needs no normalisation."""


def _safe_sums(xp: Any, total: Array) -> Array:
    return xp.where(xp.isfinite(total) & (total != 0), total, 1)


def _class_index(xp: Any, classes: Array, axis: int) -> tuple[Any, ...]:
    """Return the full index of the elements at `classes` along an axis that `classes` lacks."""
    counts = [
        xp.arange(n).reshape((-1,) + (1,) * (classes.ndim - 1 - i))
        for i, n in enumerate(classes.shape)
    ]
    return (*counts[:axis], classes, *counts[axis:])


def class_losses(xp: Any, x: Array, classes: Array, *, axis: int) -> Array:
    """Return log Σ exp x minus x at the classes."""
    picked = xp.empty(classes.shape, x.dtype)
    total = xp.empty(classes.shape, x.dtype)
    parallel_fill(_class_losses, xp, (total, x, classes, picked), {"axis": axis}, by_rows=True)
    return xp.log(total) - picked


def _class_losses(
    xp: Any, total: Array, x: Array, classes: Array, picked: Array, *, axis: int
) -> None:
    shifted = x - largest(x, axis, keepdims=True)
    picked[...] = shifted[_class_index(xp, classes, axis)]
    xp.exp(shifted, out=shifted)
    total[...] = _sums(xp, shifted, axis).reshape(total.shape)


@parallelized(by_rows=True)
def _class_gradients(xp: Any, out: Array, x: Array, g: Array, classes: Array, *, axis: int) -> None:
    """Fill in g (softmax x - 1 at the class)."""
    if x.size:
        scale = g[(slice(None),) * axis + (None,)] / _exponentials(xp, out, x, axis)
        _apply_column(xp, xp.multiply, out, scale, out)
    out[_class_index(xp, classes, axis)] -= g


def class_losses_vjp(xp: Any, g: Array, x: Array, classes: Array, *, axis: int) -> Array:
    """Return g (softmax x - 1 at the class)."""
    return _class_gradients(xp, x, g, classes, axis=axis)


def standardized(xp: Any, x: Array, *, axis: Axes, eps: float) -> tuple[Array, Array]:
    """Return (x - mean) / √(variance + eps) along axes, and the factor 1 / √(variance + eps)."""
    kept = [1 if i in axis else n for i, n in enumerate(x.shape)]
    scale = xp.empty(kept, x.dtype)
    if x.size == 0:
        scale.fill(eps**-0.5 if eps else math.inf)
        return x.copy(), scale
    if axis[0] != x.ndim - len(axis):
        centred = x - x.mean(axis, keepdims=True)
        xp.divide(1, xp.sqrt((centred * centred).mean(axis, keepdims=True) + eps), out=scale)
        return centred * scale, scale
    out = xp.empty(x.shape, x.dtype)
    parallel_fill(
        _standardize, xp, _flatten_trailing(axis, out, x, scale), {"eps": eps}, by_rows=True
    )
    return out, scale


def _flatten_trailing(axis: Axes, *arrays: Array) -> tuple[Array, ...]:
    """Return arrays as matrices: the reduced trailing axes become one, and so do the others."""
    return tuple([array.reshape(-1, math.prod(array.shape[axis[0] :])) for array in arrays])


def _standardize(xp: Any, out: Array, x: Array, scale: Array, *, eps: float) -> None:
    count = x.shape[1]
    _apply_column(xp, xp.subtract, x, _sums(xp, x, 1) / count, out)
    square = xp.vecdot(out, out)[:, None]
    square /= count
    square += eps
    xp.divide(1, xp.sqrt(square, out=square), out=scale)
    _apply_column(xp, xp.multiply, out, scale, out)


def standardized_rule(xp: Any, v: Array, out: Array, scale: Array, *, axis: Axes) -> Array:
    """Return (v - mean of v - out · mean of v out) scale."""
    if v.size == 0:
        return v
    if axis[0] != v.ndim - len(axis):
        inner = out * (v * out).mean(axis, keepdims=True)
        return (v - v.mean(axis, keepdims=True) - inner) * scale
    product = xp.empty(v.shape, v.dtype)
    parallel_fill(
        _standardize_rule, xp, _flatten_trailing(axis, product, v, out, scale), {}, by_rows=True
    )
    return product


def _standardize_rule(xp: Any, product: Array, v: Array, out: Array, scale: Array) -> None:
    count = v.shape[1]
    _apply_column(xp, xp.multiply, out, xp.vecdot(v, out)[:, None] / count, product)
    _apply_column(xp, xp.add, product, _sums(xp, v, 1) / count, product)
    xp.subtract(v, product, out=product)
    _apply_column(xp, xp.multiply, product, scale, product)
