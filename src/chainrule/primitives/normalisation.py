"""Primitives of normalisation layers: mean square, standardisation, batch normalisation."""

from __future__ import annotations

import math
from typing import Any

from chainrule.primitives.primitive import general, use_kernel

Array = Any
Axes = tuple[int, ...]


def _count(shape: tuple[int, ...], axis: Axes) -> int:
    return max(math.prod([shape[i] for i in axis]), 1)


def _center(xp: Any, x: Array, axis: Axes) -> Array:
    return x - xp.sum(x, axis=axis, keepdims=True) / _count(x.shape, axis)


def _mean_square(xp: Any, x: Array, *, axis: Axes) -> Array:
    shape, ndim = x.shape, x.ndim
    kept = tuple([1 if i in axis else n for i, n in enumerate(shape)])
    last = ndim
    while last - 1 in axis:
        last -= 1
    if last == ndim or x.size == 0:
        total = xp.sum(x * x, axis=axis, keepdims=True)
    else:  # inner products need no array of squares
        rows = xp.reshape(x, (*shape[:last], math.prod(shape[last:])))
        total = xp.vecdot(rows, rows)
        others = tuple([i for i in axis if i < last])
        total = xp.reshape(xp.sum(total, axis=others) if others else total, kept)
    return total / _count(shape, axis)


def _mean_square_vjp(xp: Any, g: Array, x: Array, *, axis: Axes) -> Array:
    return x * (g * (2 / _count(x.shape, axis)))


def _mean_square_jvp(xp: Any, t: Array, x: Array, *, axis: Axes) -> Array:
    return xp.sum(t * x, axis=axis, keepdims=True) * (2 / _count(x.shape, axis))


mean_square = general("mean_square", _mean_square, vjp=(_mean_square_vjp,), jvp=(_mean_square_jvp,))


def _mean(xp: Any, x: Array, axis: Axes) -> Array:
    return xp.sum(x, axis=axis, keepdims=True) / _count(x.shape, axis)


@use_kernel
def _standardized(xp: Any, x: Array, *, axis: Axes, eps: float) -> tuple[Array, Array]:
    centred = _center(xp, x, axis)
    scale = 1 / xp.sqrt(_mean_square(xp, centred, axis=axis) + eps)
    return centred * scale, scale


@use_kernel
def _standardized_rule(xp: Any, v: Array, out: Array, scale: Array, *, axis: Axes) -> Array:
    return (v - _mean(xp, v, axis) - out * _mean(xp, v * out, axis)) * scale


def _standardize_vjp(
    xp: Any, g: dict[int, Array], out: Array, scale: Array, *, axis: Axes, eps: float
) -> Array:
    total = None
    if 0 in g:
        total = _standardized_rule(xp, g[0], out, scale, axis=axis)
    if 1 in g:  # of the scale: only in derivatives of higher order
        part = out * (g[1] * scale * scale * (-1 / _count(out.shape, axis)))
        total = part if total is None else total + part
    return total


def _standardize_jvp(
    xp: Any, t: Array, out: Array, scale: Array, *, axis: Axes, eps: float
) -> tuple[Array, Array]:
    slope = -scale * scale * _mean(xp, t * out, axis)
    return _standardized_rule(xp, t, out, scale, axis=axis), slope


# (x - mean) / √(variance + eps) along axes, and the scale 1 / √(variance + eps)
standardize = general(
    "standardize",
    lambda xp, x, *, axis, eps: _standardized(xp, x, axis=axis, eps=eps),
    vjp=(_standardize_vjp,),
    jvp=(_standardize_jvp,),
    outputs=("out", "scale"),
    label="NativeLayerNormBackward0",
)


# --- batch normalisation --------------------------------------------------------------------------


def _per_channel(xp: Any, w: Array, x: Array) -> Array:
    return xp.reshape(w, (-1,) + (1,) * (len(x.shape) - 2))


def _sum_per_channel(xp: Any, x: Array) -> Array:
    """Return the sums (c,) of sums along axes (n or 1, c, 1, …)."""
    return xp.sum(x, axis=(0, *range(2, len(x.shape))))


@use_kernel
def _batch_normalized(
    xp: Any, x: Array, weight: Array, bias: Array, *, axis: Axes, eps: float
) -> tuple[Array, Array, Array]:
    mean = _mean(xp, x, axis)
    centred = x - mean
    variance = _mean_square(xp, centred, axis=axis)
    factor = _per_channel(xp, weight, x) / xp.sqrt(variance + eps)
    return centred * factor + _per_channel(xp, bias, x), mean, variance


@use_kernel
def _batch_normalized_rule(
    xp: Any,
    g: Array,
    x: Array,
    weight: Array,
    mean: Array,
    variance: Array,
    *,
    axis: Axes,
    eps: float,
) -> tuple[Array, Array, Array]:
    """Return the cotangent of x, and the sums of g and of g times x without mean and scale."""
    scale = 1 / xp.sqrt(variance + eps)
    standard = (x - mean) * scale
    total = xp.sum(g, axis=axis, keepdims=True)
    inner = xp.sum(g * standard, axis=axis, keepdims=True)
    centred = g - (total + standard * inner) / _count(x.shape, axis)
    return centred * (scale * _per_channel(xp, weight, x)), total, inner


def _batch_normalize_vjp(
    xp: Any,
    g: dict[int, Array],
    x: Array,
    weight: Array,
    mean: Array,
    variance: Array,
    *,
    axis: Axes,
    eps: float,
) -> tuple[Array, Array, Array]:
    grad_x = grad_weight = grad_bias = None
    if 0 in g:
        grad_x, total, inner = _batch_normalized_rule(
            xp, g[0], x, weight, mean, variance, axis=axis, eps=eps
        )
        grad_weight, grad_bias = _sum_per_channel(xp, inner), _sum_per_channel(xp, total)
    # Of mean and variance: in derivatives of higher order.
    parts = [g[1] + xp.zeros_like(x)] if 1 in g else []
    parts += [(x - mean) * (2 * g[2])] if 2 in g else []
    for part in parts:
        part = part / _count(x.shape, axis)
        grad_x = part if grad_x is None else grad_x + part
    return grad_x, grad_weight, grad_bias


def _batch_normalize_jvp(
    xp: Any,
    t: tuple[Array | None, Array | None, Array | None],
    x: Array,
    weight: Array,
    mean: Array,
    variance: Array,
    *,
    axis: Axes,
    eps: float,
) -> tuple[Array, Array, Array]:
    of_x, of_weight, of_bias = t
    scale = 1 / xp.sqrt(variance + eps)
    standard = (x - mean) * scale
    slope = spread = xp.zeros_like(mean)
    out = xp.zeros_like(x)
    if of_x is not None:
        slope, inner = _mean(xp, of_x, axis), _mean(xp, of_x * standard, axis)
        spread = 2 * inner / scale
        out = (of_x - slope - standard * inner) * (scale * _per_channel(xp, weight, x))
    if of_weight is not None:
        out = out + standard * _per_channel(xp, of_weight, x)
    if of_bias is not None:
        out = out + _per_channel(xp, of_bias, x)
    return out, slope, spread


# (x - mean) / √(variance + eps) · weight + bias: one weight and bias for each channel, axis 1, and
# statistics along other axes
batch_normalize = general(
    "batch_normalize",
    lambda xp, x, weight, bias, *, axis, eps: _batch_normalized(
        xp, x, weight, bias, axis=axis, eps=eps
    ),
    vjp=_batch_normalize_vjp,
    jvp=_batch_normalize_jvp,
    outputs=("out", "mean", "variance"),
    label="NativeBatchNormBackward0",
    broadcasts=False,
)
