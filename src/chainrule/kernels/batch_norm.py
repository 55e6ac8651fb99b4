"""Batch normalisation of blocks of channels that stay in the cache, and its derivative.

A block is a matrix with a row for each sample, which a long row of factors scales. Where there are
few samples, such a row would be as large as the block: then channels are an axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from chainrule.kernels import fast_numpy, threads
from chainrule.kernels.parallel import PARALLEL_MIN_ELEMENTS

Array = Any
Axes = tuple[int, ...]

_BLOCK_ELEMENTS = 1 << 17
"""Number of elements of a block: smaller ones cost more calls than cache misses."""

_LONG_CHANNEL = 64
"""Number of elements of a channel of one sample from which an inner loop for each costs little."""

_FEW_SAMPLES = 4
"""Number of samples below which a row of factors is not worth its memory."""


class _Channels:
    """Arrays as (samples, channels, elements), and the statistics of each channel."""

    def __init__(self, xp: Any, shape: tuple[int, ...], axis: Axes) -> None:
        self.xp = xp
        self.length = math.prod(shape[2:])
        samples, channels = shape[:2]
        # Each sample has statistics of its own if axis 0 is not reduced.
        self.samples, self.channels = (samples, channels) if 0 in axis else (1, samples * channels)
        self.repeats = self.channels // max(channels, 1)
        self.kept = tuple([1 if i in axis else n for i, n in enumerate(shape)])
        self.count = max(self.samples * self.length, 1)
        self.is_long = self.length >= _LONG_CHANNEL and self.samples < _FEW_SAMPLES

    def matrix(self, x: Array) -> Array:
        """Return an array as it is computed with."""
        shape = (self.channels, self.length) if self.is_long else (self.channels * self.length,)
        return x.reshape(self.samples, *shape)

    def part(self, x: Array, block: slice) -> Array:
        """Return the channels of a block of a matrix."""
        if self.is_long:
            return x[:, block]
        return x[:, block.start * self.length : block.stop * self.length]

    def repeated(self, w: Array) -> Array:
        """Return one number for each channel."""
        return self.xp.tile(w, self.repeats) if self.repeats != 1 else w

    def for_blocks(self, run: Callable[[slice], None]) -> None:
        """Call a function for the channels of each block, in several threads if that pays."""
        size = self.samples * self.length
        step = max(1, _BLOCK_ELEMENTS // max(size, 1))
        blocks = [slice(i, i + step) for i in range(0, self.channels, step)]
        if size * self.channels >= PARALLEL_MIN_ELEMENTS:
            threads.parallel_for(lambda i: run(blocks[i]), range(len(blocks)))
        else:
            for block in blocks:
                run(block)

    def column(self, values: Array) -> Array:
        """Return values of the channels of a block, broadcast to its elements."""
        if self.length == 1:
            return values
        return values[:, None] if self.is_long else values.repeat(self.length)

    def sums(self, x: Array) -> Array:
        """Return the sums of a block's channels."""
        if self.is_long:
            return self.xp.add.reduce(self.xp.add.reduce(x, 0), 1)
        rows = fast_numpy.block_column_sums(x)
        if self.length == 1:
            return rows
        return fast_numpy.block_row_sums(rows.reshape(-1, self.length))

    def products(self, x: Array, y: Array) -> Array:
        """Return the sums of products."""
        if self.length < _LONG_CHANNEL:
            return self.sums(x * y)
        shape = (self.samples, -1, self.length)
        return self.xp.add.reduce(self.xp.vecdot(x.reshape(shape), y.reshape(shape)), 0)


def batch_normalized(
    xp: Any, x: Array, weight: Array, bias: Array, *, axis: Axes, eps: float
) -> tuple[Array, Array, Array]:
    """Return (x - mean) / √(variance + eps) · weight + bias, means and variances."""
    channels = _Channels(xp, x.shape, axis)
    out = xp.empty(x.shape, x.dtype)
    mean, variance = xp.empty((2, channels.channels), x.dtype)
    weight, bias = channels.repeated(weight), channels.repeated(bias)
    images, results = channels.matrix(x), channels.matrix(out)

    def run(block: slice) -> None:
        part, result = channels.part(images, block), channels.part(results, block)
        mean[block] = channels.sums(part) / channels.count
        xp.subtract(part, channels.column(mean[block]), out=result)
        variance[block] = channels.products(result, result) / channels.count
        factor = weight[block] / xp.sqrt(variance[block] + eps)
        xp.multiply(result, channels.column(factor), out=result)
        xp.add(result, channels.column(bias[block]), out=result)

    channels.for_blocks(run)
    return out, mean.reshape(channels.kept), variance.reshape(channels.kept)


def batch_normalized_rule(
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
    channels = _Channels(xp, x.shape, axis)
    out = xp.empty(x.shape, x.dtype)
    total, inner = xp.empty((2, channels.channels), x.dtype)
    images, gradients, results = map(channels.matrix, (x, g, out))
    weight, mean = channels.repeated(weight), mean.reshape(-1)
    scale = 1 / xp.sqrt(variance.reshape(-1) + eps)

    def run(block: slice) -> None:
        part, gradient, result = [channels.part(m, block) for m in (images, gradients, results)]
        factor = scale[block]
        total[block] = channels.sums(gradient)
        xp.subtract(part, channels.column(mean[block]), out=result)
        inner[block] = channels.products(gradient, result) * factor
        xp.multiply(result, channels.column(inner[block] * factor / -channels.count), out=result)
        xp.add(result, gradient, out=result)
        xp.subtract(result, channels.column(total[block] / channels.count), out=result)
        xp.multiply(result, channels.column(factor * weight[block]), out=result)

    channels.for_blocks(run)
    return out, total.reshape(channels.kept), inner.reshape(channels.kept)
