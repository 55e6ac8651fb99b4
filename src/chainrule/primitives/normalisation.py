"""What normalisations are made of: no more passes over the array than they need."""

from __future__ import annotations

import math
from typing import Any

from chainrule.primitives.primitive import general, linear

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
    else:  # products of vectors with themselves make no array of squares
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
