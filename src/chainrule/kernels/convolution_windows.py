"""Convolution by windows that are copied into the rows of a matrix, in blocks of samples.

Windows are copied from images whose last axis is that of the channels, in runs of a row of the
kernel. Blocks run in several threads, each of which copies windows and multiplies. They and the
order of their sums do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from chainrule.kernels.convolution_phases import overlap, view
from chainrule.kernels.product_stacks import Stack, for_parts, parts_of

Array = Any
Sizes = tuple[int, ...]

_WINDOW_ELEMENTS = 1 << 17
"""Number of elements of the windows of a block, which stay in the second-level cache."""


class Windows:
    """Windows of padded images as the rows of matrices, one for each block of samples."""

    def __init__(
        self,
        xp: Any,
        x: Array,
        outputs: int,  # of the product, whose number is to be known for dividing it
        pad_before: Sizes | None,
        kernel: Sizes,
        size: Sizes,
        stride: Sizes | None,
        dilation: Sizes | None,
        *,
        sums: bool = False,  # over windows, for the gradient of the kernels
    ) -> None:
        ones = (1,) * len(size)
        self.xp, self.dtype, self.kernel, self.size = xp, x.dtype, kernel, size
        self.stride, self.dilation = stride or ones, dilation or ones
        self.padded = tuple(
            [
                (m - 1) * s + d * (k - 1) + 1
                for m, k, s, d in zip(size, kernel, self.stride, self.dilation, strict=True)
            ]
        )
        (_, *target), source = overlap(x.shape[2:], pad_before or (0,) * len(size), self.padded)
        self.images, self.target = channels_last(x[source]), tuple(target)
        samples, self.channels = x.shape[:2]
        self.plane, self.row = math.prod(size), self.channels * math.prod(kernel)
        most = max(_WINDOW_ELEMENTS // (self.row * self.plane), 1)
        multiplies = self.row * outputs
        self.parts = parts_of(xp, samples, most, samples * self.plane * multiplies)
        alone = len(self.parts) == 1
        self.stack = Stack(x, self.plane, multiplies, alone=alone, sums=sums)

    def for_blocks(self, run: Callable[[int, slice, Array], None]) -> None:
        """Call a function for each block, in several threads if that pays.

        It takes the number of the part, the samples, and their windows (samples, plane, row).
        """

        def run_part(i: int, blocks: list[slice]) -> None:
            interior, windows, copied = self._buffers(blocks[0])
            for block in blocks:
                images = self.images[block]
                n = len(images)
                interior[:n] = images
                copied[:n] = windows[:n]
                run(i, block, copied[:n].reshape(n, self.plane, self.row))

        for_parts(run_part, self.parts, parallel=self.stack.step > 0)

    def _buffers(self, block: slice) -> tuple[Array, Array, Array]:
        """Return the interior of padded images, views of their windows, and memory for copies."""
        samples = block.stop - block.start
        padded = self.xp.zeros((samples, *self.padded, self.channels), self.dtype)
        first, *steps, last = padded.strides
        moved = [step * s for step, s in zip(steps, self.stride, strict=True)]
        dilated = [step * d for step, d in zip(steps, self.dilation, strict=True)]
        shape = (samples, *self.size, *self.kernel, self.channels)
        windows = view(self.xp, padded, 0, shape, (first, *moved, *dilated, last))
        return padded[(slice(None), *self.target)], windows, self.xp.empty(shape, self.dtype)


def channels_last(x: Array) -> Array:
    """Return a view of (n, c, …) as (n, …, c)."""
    return x.transpose(0, *range(2, x.ndim), 1)


def correlate_windows(windows: Windows, w: Array, out: Array) -> None:
    """Fill in the output: the windows times the kernels."""
    xp, outputs, row = windows.xp, len(w), windows.row
    matrix = channels_last(w).reshape(outputs, -1).T.copy()
    columns = out.reshape(len(out), outputs, -1).swapaxes(1, 2)

    def run(_: int, block: slice, rows: Array) -> None:
        n = len(rows)
        if not windows.stack.step:
            columns[block] = xp.matmul(rows.reshape(-1, row), matrix).reshape(n, -1, outputs)
            return
        for piece, step in windows.stack.pieces():
            products = xp.matmul(rows[:, piece].reshape(n, -1, step, row), matrix)
            columns[block, piece] = products.reshape(n, -1, outputs)

    windows.for_blocks(run)


def sum_windows(windows: Windows, y: Array) -> Array:
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

    windows.for_blocks(run)
    kernels = totals.sum(0).reshape(outputs, *windows.kernel, -1)
    return kernels.transpose(0, kernels.ndim - 1, *range(1, kernels.ndim - 1)).copy()
