"""Convolution by windows that are copied into the rows of a matrix, in blocks of samples.

Windows are copied from images whose last axis is that of the channels, in runs of a row of the
kernel. Blocks run in several threads, each of which copies windows and multiplies. They and the
order of their sums do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from chainrule.kernels.convolution_phases import overlap, view
from chainrule.kernels.fast_numpy import is_transposed, transposed
from chainrule.kernels.product_stacks import Stack, for_parts, parts_of

Array = Any
Sizes = tuple[int, ...]

_WINDOW_ELEMENTS = 1 << 17
"""Number of elements of the windows of a block, which stay in the second-level cache."""

_WAY_BYTES, _WAYS, _LINE_BYTES = 4096, 8, 64
"""Bytes of a way of the first-level cache, number of its ways, bytes of a line."""


class Windows:
    """Windows of padded images as the rows of matrices, one for each block of samples."""

    def __init__(
        self,
        xp: Any,
        kind: type,  # of arrays
        dtype: Any,
        shape: Sizes,  # of the images
        outputs: int,  # of the product, whose number is to be known for dividing it
        pad_before: Sizes | None,
        kernel: Sizes,
        size: Sizes,
        stride: Sizes | None,
        dilation: Sizes | None,
        sums: bool,  # over windows, for the gradient of the kernels
    ) -> None:
        ones = (1,) * len(size)
        self.xp, self.dtype, self.kernel, self.size = xp, dtype, kernel, size
        self.stride, self.dilation = stride or ones, dilation or ones
        self.padded = tuple(
            [
                (m - 1) * s + d * (k - 1) + 1
                for m, k, s, d in zip(size, kernel, self.stride, self.dilation, strict=True)
            ]
        )
        (_, *target), self.source = overlap(shape[2:], pad_before or (0,) * len(size), self.padded)
        self.target = tuple(target)
        samples, self.channels = shape[:2]
        self.plane, self.row = math.prod(size), self.channels * math.prod(kernel)
        most = max(_WINDOW_ELEMENTS // (self.row * self.plane), 1)
        multiplies = self.row * outputs
        self.parts = parts_of(xp, samples, most, samples * self.plane * multiplies)
        alone = len(self.parts) == 1
        self.stack = Stack(kind, self.plane, multiplies, alone=alone, sums=sums)

    def for_blocks(self, x: Array, run: Callable[[int, slice, Array], None]) -> None:
        """Call a function for each block of images, in several threads if that pays.

        It takes the number of the part, the samples, and their windows (samples, plane, row).
        """

        x = channels_last(x[self.source])

        def run_part(i: int, blocks: list[slice], memory: tuple[Array, Array, Array]) -> None:
            interior, windows, copied = memory
            for block in blocks:
                images = x[block]
                n = len(images)
                copy_channels_last(images, interior[:n])
                copied[:n] = windows[:n]
                run(i, block, copied[:n].reshape(n, self.plane, self.row))

        for_parts(run_part, self.parts, self._memory, parallel=self.stack.step > 0)

    def _memory(self) -> tuple[Array, Array, Array]:
        """Return the interior of padded images, views of their windows, and memory for copies."""
        samples = self.parts[0][0].stop
        padded = self.xp.zeros((samples, *self.padded, self.channels), self.dtype)
        first, *steps, last = padded.strides
        moved = [step * s for step, s in zip(steps, self.stride, strict=True)]
        dilated = [step * d for step, d in zip(steps, self.dilation, strict=True)]
        shape = (samples, *self.size, *self.kernel, self.channels)
        windows = view(self.xp, padded, 0, shape, (first, *moved, *dilated, last))
        return padded[(slice(None), *self.target)], windows, self.xp.empty(shape, self.dtype)


windows_of = lru_cache(256)(Windows)
"""Return the windows of arguments that may have come before."""


def channels_last(x: Array) -> Array:
    """Return a view of (n, c, …) as (n, …, c)."""
    return x.transpose(0, *range(2, x.ndim), 1)


def copy_channels_last(images: Array, out: Array) -> None:
    """Copy images (n, …, c), which are a view of (n, c, …), to memory in that order.

    The channels of a pixel are one image apart. Where that is a multiple of a large power of two,
    few lines of the first-level cache hold them: with 64 channels of 32×32 pixels a copy takes
    seven times as long. Such images are first copied to places further apart.
    """
    n, *size, channels = images.shape
    apart = math.gcd(images.strides[-1], _WAY_BYTES)
    if images.__class__ is np.ndarray and channels * apart > _WAY_BYTES * _WAYS:
        plane = math.prod(size)
        rows = np.empty((n, channels, plane + _LINE_BYTES // images.itemsize), images.dtype)
        spread = rows[..., :plane].reshape(n, channels, *size)
        spread[...] = images.transpose(0, images.ndim - 1, *range(1, images.ndim - 1))
        images = channels_last(spread)
    out[...] = images


def kernel_matrix(w: Array) -> Array:
    """Return a copy of kernels (o, c, …) as the matrix (elements of a window, o)."""
    if w.strides[0] < w.strides[1]:  # of the adjoint: a view of (c, o, …)
        return w.transpose(*range(2, w.ndim), 1, 0).reshape(-1, len(w))
    matrix = channels_last(w).reshape(len(w), -1).T
    return transposed(matrix) if is_transposed(matrix) else matrix.copy()


def correlate_windows(windows: Windows, x: Array, w: Array, out: Array) -> None:
    """Fill in the output: the windows times the kernels."""
    xp, outputs, row = windows.xp, len(w), windows.row
    matrix = kernel_matrix(w)
    columns = out.reshape(len(out), outputs, -1).swapaxes(1, 2)

    def run(_: int, block: slice, rows: Array) -> None:
        n = len(rows)
        if not windows.stack.step:
            columns[block] = xp.matmul(rows.reshape(-1, row), matrix).reshape(n, -1, outputs)
            return
        for piece, step in windows.stack.pieces():
            products = xp.matmul(rows[:, piece].reshape(n, -1, step, row), matrix)
            columns[block, piece] = products.reshape(n, -1, outputs)

    windows.for_blocks(x, run)


def sum_windows(windows: Windows, x: Array, y: Array) -> Array:
    """Return the gradient of the kernels: the sum of the windows times the output's elements."""
    xp, outputs, row = windows.xp, y.shape[1], windows.row
    columns = y.reshape(len(y), outputs, -1)
    totals = xp.zeros((len(windows.parts), outputs, row), windows.dtype)

    def run(i: int, block: slice, rows: Array) -> None:
        if not windows.stack.step:
            part = columns[block].swapaxes(0, 1).reshape(outputs, -1)
            totals[i] += xp.matmul(part, rows.reshape(-1, row))
            return
        n = len(rows)
        for piece, step in windows.stack.pieces():
            part = columns[block, :, piece].reshape(n, outputs, -1, step).swapaxes(1, 2)
            products = xp.matmul(part, rows[:, piece].reshape(n, -1, step, row))
            totals[i] += products.reshape(-1, outputs, row).sum(0)

    windows.for_blocks(x, run)
    kernels = totals.sum(0).reshape(outputs, *windows.kernel, -1)
    return kernels.transpose(0, kernels.ndim - 1, *range(1, kernels.ndim - 1)).copy()
