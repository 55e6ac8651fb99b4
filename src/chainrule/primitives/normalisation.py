"""Primitives of normalisation layers: mean square, standardisation, layers, batches."""

from __future__ import annotations

import math
from typing import Any

from chainrule.primitives.primitive import general, use_kernel
from chainrule.primitives.shaping import sum_to

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


# --- normalisation with weight and bias ----------------------------------------------------------

_MIN_CHANNEL = 32
"""Number of elements of a channel from which a kernel scales it as a row of its own."""


MIN_SIZE = 1 << 14
"""Number of elements from which blocks of rows are worth their overhead."""


def _fits_kernel(x: Array, weight: Array, axis: Axes) -> bool:
    """Whether a kernel normalises rows: elements, or long channels, have a weight each."""
    if x.size < MIN_SIZE or axis[0] != x.ndim - len(axis):
        return False
    trailing, shape = x.shape[axis[0] :], weight.shape
    if shape == trailing:
        return True
    return (
        len(axis) == 2
        and shape == (x.shape[axis[0] - 1], trailing[0], 1)
        and trailing[1] >= _MIN_CHANNEL
    )


def of_channels(xp: Any, w: Array, x: Array, axis: Axes) -> Array:
    """Return one number for each channel of groups (n, groups, channels, …) to broadcast with x."""
    if len(w.shape) == 1 < len(axis):
        first = axis[0]
        return xp.reshape(w, (*x.shape[first - 1 : first + 1], *(1,) * (len(axis) - 1)))
    return w


def _layer_normalized(
    xp: Any, x: Array, weight: Array, bias: Array, *, axis: Axes, eps: float
) -> tuple[Array, Array, Array]:
    weight, bias = of_channels(xp, weight, x, axis), of_channels(xp, bias, x, axis)
    kernels = xp.rule_kernels
    if kernels is not None and x.dtype.char in "fd" and _fits_kernel(x, weight, axis):
        found: tuple[Array, Array, Array] = kernels["layer_normalized"](
            x, weight, bias, axis=axis, eps=eps
        )
        return found
    standard, scale = _standardized(xp, x, axis=axis, eps=eps)
    return standard * weight + bias, standard, scale


def _layer_normalize_vjp(
    xp: Any,
    g: dict[int, Array],
    weight: Array,
    standard: Array,
    scale: Array,
    needs: tuple[bool, ...],
    *,
    axis: Axes,
    eps: float,
) -> tuple[Array, Array, Array]:
    broadcast = of_channels(xp, weight, standard, axis)
    found = _layer_normalize_cotangents(xp, g, broadcast, standard, scale, needs, axis, eps)
    if broadcast is weight:
        return found
    of_x, *others = found
    of_weight, of_bias = [w if w is None else xp.reshape(w, weight.shape) for w in others]
    return of_x, of_weight, of_bias


def _layer_normalize_cotangents(
    xp: Any,
    g: dict[int, Array],
    weight: Array,
    standard: Array,
    scale: Array,
    needs: tuple[bool, ...],
    axis: Axes,
    eps: float,
) -> tuple[Array, Array, Array]:
    of_out = g.get(0)
    kernels = xp.rule_kernels
    if (
        (kernels is not None and len(g) == 1 and of_out is not None and all(needs))
        and of_out.dtype.char in "fd"
        and _fits_kernel(of_out, weight, axis)
    ):
        found: tuple[Array, Array, Array] = kernels["layer_normalized_rule"](
            of_out, standard, scale, weight, axis=axis
        )
        return found
    cotangents = {i - 1: value for i, value in g.items() if i}  # of the standard values and scale
    of_weight = of_bias = None
    if of_out is not None:
        part = of_out * weight
        cotangents |= {0: cotangents[0] + part if 0 in cotangents else part}
        if needs[1]:
            of_weight = sum_to(xp, of_out * standard, weight.shape)
        if needs[2]:
            of_bias = sum_to(xp, of_out, weight.shape)
    of_x = _standardize_vjp(xp, cotangents, standard, scale, axis=axis, eps=eps)
    return of_x, of_weight, of_bias


def _layer_normalize_jvp(
    xp: Any,
    t: tuple[Array | None, Array | None, Array | None],
    weight: Array,
    standard: Array,
    scale: Array,
    *,
    axis: Axes,
    eps: float,
) -> tuple[Array, Array, Array]:
    of_x, of_weight, of_bias = t
    moved, slope = xp.zeros_like(standard), xp.zeros_like(scale)
    if of_x is not None:
        moved, slope = _standardize_jvp(xp, of_x, standard, scale, axis=axis, eps=eps)
    out = moved * of_channels(xp, weight, standard, axis)
    if of_weight is not None:
        out = out + standard * of_channels(xp, of_weight, standard, axis)
    if of_bias is not None:
        out = out + of_channels(xp, of_bias, standard, axis)
    return out, moved, slope


# standard · weight + bias, where standard = (x - mean) / √(variance + eps) along axes; weight and
# bias have a shape that broadcasts, or one dimension for the channels of groups. The standard
# values are saved, and not x, which may be overwritten.
layer_normalize = general(
    "layer_normalize",
    _layer_normalized,
    vjp=_layer_normalize_vjp,
    jvp=_layer_normalize_jvp,
    outputs=("out", "standard", "scale"),
    label="NativeLayerNormBackward0",
    broadcasts=False,
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
