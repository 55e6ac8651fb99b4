"""Memory of convolutions of stride 1 by shifts of padded images, whose rows are long.

In a padded image with flattened spatial axes, a shift by one pixel is a constant offset, so the
windows of many samples are long slices of one row, and one matrix product handles them all. The
margin is computed too and discarded, but the copies are far longer than those of single windows.

Each dimension of the kernel is handled on one side of the product: the trailing ones by repeating
the input (as im2col does), the leading ones by summing shifted rows of the output. The split that
moves less memory depends on the channels. Measured with batch 32 and a 3×3 kernel: 16 to 16
channels at 28×28 take 0.9 ms half and half, 1.04 with all on the input, 1.16 with all on the
output; 3 to 32 channels at 32×32 take 0.8, 0.56 and 2.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule.kernels.convolution_phases import overlap, view
from chainrule.kernels.product_stacks import Stack, parts_of

Array = Any
Sizes = tuple[int, ...]

_SCRATCH_ELEMENTS = 1 << 18
"""Number of scratch elements that a batch of samples may take besides the result."""

_MIN_COLUMNS = 1024
"""Number of columns from which a matrix product runs at full speed."""


class Layout:
    """Memory layout of a batch of padded images: each channel is one flat row."""

    def __init__(
        self,
        xp: Any,
        kind: type,  # of arrays
        dtype: Any,
        shape: Sizes,  # of the images
        outputs: int,  # channels of the output
        pad_before: Sizes | None,
        kernel: Sizes,
        size: Sizes,
        dilation: Sizes | None,
        groups: int,
        sums: bool,  # over windows, for the gradient of the kernels
    ) -> None:
        self.xp, self.dtype = xp, dtype
        rank, samples = len(kernel), shape[0]
        dilation = dilation or (1,) * rank
        self.padded = tuple(
            [n + d * (k - 1) for n, k, d in zip(size, kernel, dilation, strict=True)]
        )
        steps = [math.prod(self.padded[i + 1 :]) for i in range(rank)]
        self.offsets = tuple([s * d for s, d in zip(steps, dilation, strict=True)])
        self.steps, self.size, self.kernel = steps, size, kernel
        self.groups, self.inputs, self.outputs = groups, shape[1] // groups, outputs // groups
        # The leading `split` dimensions of the kernel are summed in the output.
        costs = [
            self.inputs * math.prod(kernel[i:]) + self.outputs * math.prod(kernel[:i])
            for i in range(rank + 1)
        ]
        self.split = costs.index(min(costs))
        plane = math.prod(self.padded)
        fitting = _SCRATCH_ELEMENTS // (min(costs) * groups * plane)
        self.inner, self.outer = kernel[self.split :], kernel[: self.split]
        self.height = math.prod(self.outer) * self.outputs
        self.depth = math.prod(self.inner) * self.inputs
        multiplies = groups * self.height * self.depth
        most = max(fitting, -(-_MIN_COLUMNS // plane))
        self.parts = parts_of(xp, samples, most, samples * plane * multiplies)
        self.samples = self.parts[0][0].stop
        self.plane, self.columns = plane, self.samples * plane
        self.target, self.source = overlap(shape[2:], pad_before or (0,) * rank, self.padded)
        alone, multiplies = len(self.parts) == 1, self.height * self.depth
        self.stack = Stack(kind, self.columns, multiplies, alone=alone, sums=sums)

    def images(self) -> tuple[Array, Array, Array]:
        """Return zeroed rows as images, their shifted views, and a buffer for copies of these."""
        channels = self.groups * self.inputs
        offsets = self.offsets[self.split :]
        tail = sum([(k - 1) * o for k, o in zip(self.inner, offsets, strict=True)])
        rows = self.xp.zeros((channels, self.columns + tail), self.dtype)
        shape = (channels, self.samples, *self.padded)
        images = rows[:, : self.columns].reshape(shape).swapaxes(0, 1)
        item = rows.itemsize
        strides = (rows.strides[0], *[o * item for o in offsets], item)
        shifted = view(self.xp, rows, 0, (channels, *self.inner, self.columns), strides)
        return images, shifted, self.xp.empty(shifted.shape, self.dtype)

    def outer_offsets(self) -> list[int]:
        """Return the offsets of the output rows, in the order of the kernel elements."""
        found = [0]
        for k, offset in zip(self.outer, self.offsets[: self.split], strict=True):
            found = [start + i * offset for start in found for i in range(k)]
        return found

    def shifted_outputs(self, rows: Array) -> list[Array]:
        """Return views of rows (groups, outer, o, columns) as outputs at the outer offsets."""
        item = rows.itemsize
        strides = (
            item * self.plane,
            rows.strides[0],
            rows.strides[2],
            *[item * s for s in self.steps],
        )
        shape = (self.samples, self.groups, self.outputs, *self.size)
        return [
            view(self.xp, rows, i * self.outputs * self.columns + offset, shape, strides)
            for i, offset in enumerate(self.outer_offsets())
        ]

    def kernel_matrix(self, w: Array) -> Array:
        """Return kernels (o, c, …) as (groups, outer × o, c × inner)."""
        g, o, c, rank = self.groups, self.outputs, self.inputs, len(self.kernel)
        s = self.split
        order = (0, *range(3, 3 + s), 1, 2, *range(3 + s, 3 + rank))
        matrix = w.reshape(g, o, c, *self.kernel).transpose(order)
        return matrix.reshape(g, self.height, self.depth)

    def kernels(self, matrix: Array) -> Array:
        """Return kernels (o, c, …) from their matrix: the inverse of `kernel_matrix`."""
        g, o, c, rank = self.groups, self.outputs, self.inputs, len(self.kernel)
        s = self.split
        order = (0, s + 1, s + 2, *range(1, s + 1), *range(s + 3, rank + 3))
        w = matrix.reshape(g, *self.outer, o, c, *self.inner).transpose(order)
        return w.reshape(g * o, c, *self.kernel)
