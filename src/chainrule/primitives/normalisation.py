"""Primitives of normalisation layers: centring, mean square, standardisation."""

from __future__ import annotations

import math
from typing import Any

from chainrule.primitives.primitive import general, linear, use_kernel

Array = Any
Axes = tuple[int, ...]


def _count(shape: tuple[int, ...], axis: Axes) -> int:
    return max(math.prod([shape[i] for i in axis]), 1)


def _center(xp: Any, x: Array, axis: Axes) -> Array:
    return x - xp.sum(x, axis=axis, keepdims=True) / _count(x.shape, axis)


# x without its mean along axes: a projection, and so its own adjoint
center = linear(
    "center",
    lambda xp, g, *, axis: _center(xp, g, axis),
    forward=lambda xp, x, *, axis: _center(xp, x, axis),
)


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
