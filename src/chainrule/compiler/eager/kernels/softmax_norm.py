"""Kernels of softmax, normalisation and running sums along rows, which stay in the cache."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.compiler.native.generic import exp, log, plus, rank, ranked, real, times_plus, u8
from chainrule.compiler.native.kernel import Kernel
from chainrule.compiler.native.running_sums import running
from chainrule.primitives import normalisation
from chainrule.primitives.shaping import sum_to

Array = Any
Axes = tuple[int, ...]

# --- loops: `n` is the length of a row ------------------------------------------------------------


def _softmax(start: int, stop: int, x: Array, n: int, lowest: int, nan: int, out: Array) -> None:
    """Fill `out` with the softmax of rows; one loop computes exp for several short rows."""
    count = max(1024 // n, 1)
    for first in range(start, stop, count):
        last = min(first + count, stop)
        for i in range(first, last):
            row = u8(i * n)
            top = lowest
            for j in range(u8(n)):
                key = rank(x[row + j], nan)
                top = key if key > top else top
            largest = ranked(top)
            for j in range(u8(n)):
                out[row + j] = x[row + j] - largest
        for j in range(u8(first * n), u8(last * n)):
            out[j] = exp(out[j])
        for i in range(first, last):
            row = u8(i * n)
            total = real(0.0)
            for j in range(u8(n)):
                total = plus(total, out[row + j])
            scale = real(1.0) / total
            for j in range(u8(n)):
                out[row + j] *= scale


def _softmax_vjp(start: int, stop: int, v: Array, out: Array, n: int, product: Array) -> None:
    """Fill `product` with (v - Σ v out) out."""
    for i in range(start, stop):
        row = u8(i * n)
        total = real(0.0)
        for j in range(u8(n)):
            total = times_plus(total, v[row + j], out[row + j])
        for j in range(u8(n)):
            product[row + j] = (v[row + j] - total) * out[row + j]


def _log_softmax(
    start: int, stop: int, x: Array, n: int, lowest: int, nan: int, out: Array
) -> None:
    """Fill `out` with x - log Σ exp x."""
    for i in range(start, stop):
        row = u8(i * n)
        top = lowest
        for j in range(u8(n)):
            key = rank(x[row + j], nan)
            top = key if key > top else top
        largest = ranked(top)
        total = real(0.0)
        for j in range(u8(n)):
            total = plus(total, exp(x[row + j] - largest))
        log_total = log(total)
        for j in range(u8(n)):
            out[row + j] = (x[row + j] - largest) - log_total


def _log_softmax_vjp(start: int, stop: int, g: Array, out: Array, n: int, product: Array) -> None:
    """Fill `product` with g - exp(out) Σ g."""
    for i in range(start, stop):
        row = u8(i * n)
        total = real(0.0)
        for j in range(u8(n)):
            total = plus(total, g[row + j])
        for j in range(u8(n)):
            product[row + j] = g[row + j] - exp(out[row + j]) * total


def _standardize(
    start: int, stop: int, x: Array, n: int, eps: float, out: Array, scale: Array
) -> None:
    """Fill `out` with (x - mean) scale, and `scale` with 1 / √(variance + eps)."""
    for i in range(start, stop):
        row = u8(i * n)
        total = real(0.0)
        for j in range(u8(n)):
            total = plus(total, x[row + j])
        mean = total / real(n)
        square = real(0.0)
        for j in range(u8(n)):
            centred = x[row + j] - mean
            square = times_plus(square, centred, centred)
        factor = real(1.0) / np.sqrt(square / real(n) + real(eps))
        for j in range(u8(n)):
            out[row + j] = (x[row + j] - mean) * factor
        scale[u8(i)] = factor


def _standardize_vjp(
    start: int, stop: int, v: Array, out: Array, scale: Array, n: int, product: Array
) -> None:
    """Fill `product` with (v - mean of v - out · mean of v out) scale."""
    for i in range(start, stop):
        row = u8(i * n)
        total, inner = real(0.0), real(0.0)
        for j in range(u8(n)):
            total = plus(total, v[row + j])
            inner = times_plus(inner, v[row + j], out[row + j])
        mean, slope, factor = total / real(n), inner / real(n), scale[u8(i)]
        for j in range(u8(n)):
            product[row + j] = (v[row + j] - mean - out[row + j] * slope) * factor


def _layer_normalize(
    start: int,
    stop: int,
    x: Array,
    weight: Array,
    bias: Array,
    n: int,
    eps: float,
    out: Array,
    standard: Array,
    scale: Array,
) -> None:
    """Fill `standard` and `scale` as `_standardize` does, `out` with standard · weight + bias."""
    for i in range(start, stop):
        row = u8(i * n)
        total = real(0.0)
        for j in range(u8(n)):
            total = plus(total, x[row + j])
        mean = total / real(n)
        square = real(0.0)
        for j in range(u8(n)):
            centred = x[row + j] - mean
            square = times_plus(square, centred, centred)
        factor = real(1.0) / np.sqrt(square / real(n) + real(eps))
        for j in range(u8(n)):
            value = (x[row + j] - mean) * factor
            standard[row + j] = value
            out[row + j] = value * weight[j] + bias[j]
        scale[u8(i)] = factor


def _layer_normalize_vjp(
    start: int,
    stop: int,
    g: Array,
    standard: Array,
    scale: Array,
    weight: Array,
    n: int,
    product: Array,
) -> None:
    """Fill `product` with the rule of `_standardize_vjp` for v = g · weight."""
    for i in range(start, stop):
        row = u8(i * n)
        total, inner = real(0.0), real(0.0)
        for j in range(u8(n)):
            v = g[row + j] * weight[j]
            total = plus(total, v)
            inner = times_plus(inner, v, standard[row + j])
        mean, slope, factor = total / real(n), inner / real(n), scale[u8(i)]
        for j in range(u8(n)):
            v = g[row + j] * weight[j]
            product[row + j] = (v - mean - standard[row + j] * slope) * factor


# --- calls of the loops ---------------------------------------------------------------------------

_SOFTMAX = Kernel(_softmax, "real n n n real")
_LOG_SOFTMAX = Kernel(_log_softmax, "real n n n real")
_SOFTMAX_VJP = Kernel(_softmax_vjp, "real real n real")
_LOG_SOFTMAX_VJP = Kernel(_log_softmax_vjp, "real real n real")
_STANDARDIZE = Kernel(_standardize, "real n d real real")
_STANDARDIZE_VJP = Kernel(_standardize_vjp, "real real real n real")
_LAYER_NORMALIZE = Kernel(_layer_normalize, "real real real n d real real real")
_LAYER_NORMALIZE_VJP = Kernel(_layer_normalize_vjp, "real real real real n real")

_LIMITS = {"f": (-(1 << 31), (1 << 31) - 1), "d": (-(1 << 63), (1 << 63) - 1)}
"""Integers below and above all those that `rank` returns."""


def _run_softmax(kernel: Kernel, x: Array, axis: int) -> Array | None:
    if axis != x.ndim - 1:
        return None
    n, char, out = x.shape[-1], x.dtype.char, np.empty(x.shape, x.dtype)
    kernel(char, x.size // n, n, x, n, *_LIMITS[char], out)
    return out


def _run_softmax_vjp(kernel: Kernel, v: Array, out: Array, axis: int) -> Array | None:
    if axis != v.ndim - 1:
        return None
    n, product = v.shape[-1], np.empty(v.shape, v.dtype)
    kernel(v.dtype.char, v.size // n, n, v, out, n, product)
    return product


def softmax(x: Array, *, axis: int) -> Array | None:
    return _run_softmax(_SOFTMAX, x, axis)


def softmax_vjp(g: Array, out: Array, *, axis: int) -> Array | None:
    return _run_softmax_vjp(_SOFTMAX_VJP, g, out, axis)


def log_softmax(x: Array, *, axis: int) -> Array | None:
    return _run_softmax(_LOG_SOFTMAX, x, axis)


def log_softmax_vjp(g: Array, out: Array, *, axis: int) -> Array | None:
    return _run_softmax_vjp(_LOG_SOFTMAX_VJP, g, out, axis)


def _trailing_size(shape: tuple[int, ...], axis: Axes) -> int:
    """Return the number of elements along the axes if these are the last ones, else 0."""
    first = len(shape) - len(axis)
    return math.prod(shape[first:]) if tuple(sorted(axis)) == tuple(range(first, len(shape))) else 0


def standardize(x: Array, *, axis: Axes, eps: float) -> tuple[Array, Array] | None:
    n = _trailing_size(x.shape, axis)
    if not n:
        return None
    out = np.empty(x.shape, x.dtype)
    first = x.ndim - len(axis)
    scale = np.empty(x.shape[:first] + (1,) * len(axis), x.dtype)
    _STANDARDIZE(x.dtype.char, x.size // n, n, x, n, float(eps), out, scale)
    return out, scale


def standardize_vjp(g: Array, out: Array, scale: Array, *, axis: Axes, eps: float) -> Array | None:
    n = _trailing_size(g.shape, axis)
    if not n:
        return None
    product = np.empty(g.shape, g.dtype)
    _STANDARDIZE_VJP(g.dtype.char, g.size // n, n, g, out, scale, n, product)
    return product


def layer_normalize(
    x: Array, weight: Array, bias: Array, *, axis: Axes, eps: float
) -> tuple[Array, Array, Array] | None:
    n = _trailing_size(x.shape, axis)
    if not n:
        return None
    if weight.shape != x.shape[x.ndim - len(axis) :]:  # one for each channel of groups
        if x.size >= normalisation.MIN_SIZE:
            return None
        found = standardize(x, axis=axis, eps=eps)
        if found is None:
            return None
        weight, bias = [normalisation.of_channels(np, w, x, axis) for w in (weight, bias)]
        return found[0] * weight + bias, *found
    out, standard = np.empty(x.shape, x.dtype), np.empty(x.shape, x.dtype)
    first = x.ndim - len(axis)
    scale = np.empty(x.shape[:first] + (1,) * len(axis), x.dtype)
    arrays = x, weight, bias, n, float(eps), out, standard, scale
    _LAYER_NORMALIZE(x.dtype.char, x.size // n, n, *arrays)
    return out, standard, scale


def layer_normalize_vjp(
    g: Array, weight: Array, standard: Array, scale: Array, *, axis: Axes, eps: float
) -> tuple[Array, Array, Array] | None:
    n = _trailing_size(g.shape, axis)
    if not n:
        return None
    if weight.shape != g.shape[g.ndim - len(axis) :]:
        if g.size >= normalisation.MIN_SIZE:
            return None
        broadcast = normalisation.of_channels(np, weight, g, axis)
        product = standardize_vjp(g * broadcast, standard, scale, axis=axis, eps=eps)
        sums = [sum_to(np, v, broadcast.shape).reshape(weight.shape) for v in (g * standard, g)]
        return None if product is None else (product, *sums)
    product = np.empty(g.shape, g.dtype)
    arrays = g, standard, scale, weight, n, product
    _LAYER_NORMALIZE_VJP(g.dtype.char, g.size // n, n, *arrays)
    rows, standards = g.reshape(-1, n), standard.reshape(-1, n)
    of_weight = np.einsum("ij,ij->j", rows, standards).reshape(weight.shape)
    return product, of_weight, rows.sum(0).reshape(weight.shape)


def running_sum(x: Array, *, axis: int) -> Array | None:
    return _running(x, axis, back=False)


def running_sum_vjp(g: Array, *, axis: int) -> Array | None:
    return _running(g, axis, back=True)


def _running(x: Array, axis: int, *, back: bool) -> Array | None:
    if not x.size or not x.ndim:
        return None
    out = np.empty(x.shape, x.dtype)
    running(x, axis % x.ndim, out, back=back)
    return out
