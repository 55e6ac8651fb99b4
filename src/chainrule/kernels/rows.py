"""Softmax and normalisation along the last axis, in few passes, without fresh arrays for each.

They are the same formulas as those of the primitives of these names, which call them for NumPy
arrays. einsum adds up products of two arrays without making an array of them.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule.kernels.blocks import share, shared

Array = Any
Axes = tuple[int, ...]


def _sums(lib: Any, x: Array, axis: int) -> Array:
    if x.size >= 4096 and axis == x.ndim - 1 and x.shape[-1] <= 2048:
        return lib.einsum("...j->...", x)[..., None]
    return lib.add.reduce(x, axis, None, None, True)


def _products(lib: Any, x: Array, y: Array, axis: int) -> Array:
    """Return the sums of products along an axis."""
    if x.size >= 4096 and axis == x.ndim - 1 and x.shape[-1] <= 2048:
        return lib.einsum("...j,...j->...", x, y)[..., None]
    return lib.add.reduce(x * y, axis, None, None, True)


def _shift(lib: Any, out: Array, x: Array, axis: int) -> None:
    if x.size:
        lib.subtract(x, lib.maximum.reduce(x, axis, keepdims=True), out=out)


@shared(by_rows=True)
def softmax(lib: Any, out: Array, x: Array, *, axis: int) -> None:
    """Fill in exponentials over their sum."""
    _shift(lib, out, x, axis)
    lib.exp(out, out=out)
    lib.divide(out, _sums(lib, out, axis), out=out)


@shared(by_rows=True)
def softmax_rule(lib: Any, product: Array, v: Array, out: Array, *, axis: int) -> None:
    """Fill in (v - Σ v out) out."""
    lib.subtract(v, _products(lib, v, out, axis), out=product)
    lib.multiply(product, out, out=product)


@shared(by_rows=True)
def log_softmax(lib: Any, out: Array, x: Array, *, axis: int) -> None:
    """Fill in x - log Σ exp x."""
    _shift(lib, out, x, axis)
    if x.size:
        lib.subtract(out, lib.log(_sums(lib, lib.exp(out), axis)), out=out)


@shared(by_rows=True)
def log_softmax_vjp(lib: Any, product: Array, g: Array, out: Array, *, axis: int) -> None:
    """Fill in g - exp(out) Σ g."""
    lib.exp(out, out=product)
    lib.multiply(product, _sums(lib, g, axis), out=product)
    lib.subtract(g, product, out=product)


def _key(lib: Any, classes: Array, axis: int) -> tuple[Any, ...]:
    """Return the index of the classes' elements along an axis that `classes` has not."""
    counts = [
        lib.arange(n).reshape((-1,) + (1,) * (classes.ndim - 1 - i))
        for i, n in enumerate(classes.shape)
    ]
    return (*counts[:axis], classes, *counts[axis:])


def class_losses(lib: Any, x: Array, classes: Array, *, axis: int) -> Array:
    """Return log Σ exp x less x at the classes."""
    picked = lib.empty(classes.shape, x.dtype)
    total = lib.empty(classes.shape, x.dtype)
    share(_class_losses, lib, (total, x, classes, picked), {"axis": axis}, by_rows=True)
    return lib.log(total) - picked


def _class_losses(
    lib: Any, total: Array, x: Array, classes: Array, picked: Array, *, axis: int
) -> None:
    shifted = x - lib.maximum.reduce(x, axis, keepdims=True)
    picked[...] = shifted[_key(lib, classes, axis)]
    lib.exp(shifted, out=shifted)
    total[...] = _sums(lib, shifted, axis).reshape(total.shape)


@shared(by_rows=True)
def _class_slopes(lib: Any, out: Array, x: Array, g: Array, classes: Array, *, axis: int) -> None:
    """Fill in g (softmax x - 1 at the class)."""
    _shift(lib, out, x, axis)
    lib.exp(out, out=out)
    lib.multiply(out, lib.expand_dims(g, axis) / _sums(lib, out, axis), out=out)
    out[_key(lib, classes, axis)] -= g


def class_losses_vjp(lib: Any, g: Array, x: Array, classes: Array, *, axis: int) -> Array:
    """Return g (softmax x - 1 at the class)."""
    return _class_slopes(lib, x, g, classes, axis=axis)


def standardized(lib: Any, x: Array, *, axis: Axes, eps: float) -> tuple[Array, Array]:
    """Return (x - mean) / √(variance + eps) along axes, and what it was multiplied by."""
    kept = [1 if i in axis else n for i, n in enumerate(x.shape)]
    scale = lib.empty(kept, x.dtype)
    if x.size == 0:
        scale.fill(eps**-0.5 if eps else math.inf)
        return x.copy(), scale
    if axis[0] != x.ndim - len(axis):
        centred = x - x.mean(axis, keepdims=True)
        lib.divide(1, lib.sqrt((centred * centred).mean(axis, keepdims=True) + eps), out=scale)
        return centred * scale, scale
    out = lib.empty(x.shape, x.dtype)
    share(_standardize, lib, _rows(axis, out, x, scale), {"eps": eps}, by_rows=True)
    return out, scale


def _rows(axis: Axes, *arrays: Array) -> tuple[Array, ...]:
    """Return arrays with the last axes made one, and those before them."""
    return tuple([array.reshape(-1, math.prod(array.shape[axis[0] :])) for array in arrays])


def _standardize(lib: Any, out: Array, x: Array, scale: Array, *, eps: float) -> None:
    count = x.shape[1]
    lib.subtract(x, _sums(lib, x, 1) / count, out=out)
    square = lib.vecdot(out, out)[:, None]
    square /= count
    square += eps
    lib.divide(1, lib.sqrt(square, out=square), out=scale)
    lib.multiply(out, scale, out=out)


def standardized_rule(lib: Any, v: Array, out: Array, scale: Array, *, axis: Axes) -> Array:
    """Return (v - mean of v - out · mean of v out) scale."""
    if v.size == 0:
        return v
    if axis[0] != v.ndim - len(axis):
        inner = out * (v * out).mean(axis, keepdims=True)
        return (v - v.mean(axis, keepdims=True) - inner) * scale
    product = lib.empty(v.shape, v.dtype)
    share(_standardize_rule, lib, _rows(axis, product, v, out, scale), {}, by_rows=True)
    return product


def _standardize_rule(lib: Any, product: Array, v: Array, out: Array, scale: Array) -> None:
    count = v.shape[1]
    lib.multiply(out, lib.vecdot(v, out)[:, None] / count, out=product)
    product += _sums(lib, v, 1) / count
    lib.subtract(v, product, out=product)
    product *= scale
