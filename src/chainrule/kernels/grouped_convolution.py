"""Convolutions in many groups of few channels, as in depthwise convolution.

Matrix products of single pixels would have a row and a column or two. Instead, a product computes a
tile of neighbouring pixels of a row: the kernels become banded (Toeplitz) matrices, from the pixels
in the windows of a tile to the tile. That multiplies by zeros, but a BLAS multiplies several times
as fast as NumPy adds up shifted images.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule.interrupts import errstate
from chainrule.kernels.convolution_phases import extension

Array = Any
Sizes = tuple[int, ...]

_MAX_PAIRS = 4
"""Number of pairs of an input and an output of a group up to which this is faster."""

_TILE = 16
"""Number of pixels of a tile: wider ones multiply by more zeros."""

_BLOCK_ELEMENTS = 1 << 19
"""Number of elements of windows that are copied at a time."""


class Bands:
    """Windows of the tiles of padded images, (groups, rows, elements), for blocks of samples."""

    def __init__(
        self,
        xp: Any,
        groups: int,
        channels: tuple[int, int],  # of the input and of the output, both of one group
        kernel: Sizes,
        size: Sizes,
        stride: Sizes,
        dilation: Sizes,
        dtype: Any,
    ) -> None:
        self.xp, self.groups, self.dtype = xp, groups, dtype
        self.inputs, self.outputs = channels
        self.kernel, self.size, self.stride, self.dilation = kernel, size, stride, dilation
        *self.lines, width = size
        self.tiles = -(-width // _TILE)
        self.tile = -(-width // self.tiles)
        self.span = (self.tile - 1) * stride[-1] + dilation[-1] * (kernel[-1] - 1) + 1
        self.depth = self.inputs * math.prod(kernel[:-1]) * self.span
        # The last tile may be wider than the rest of its row.
        full = [*self.lines, self.tiles * self.tile]
        self.padded = tuple(
            [
                (n - 1) * s + d * (k - 1) + 1
                for n, k, s, d in zip(full, kernel, stride, dilation, strict=True)
            ]
        )
        self.rows = math.prod(self.lines) * self.tiles

    def blocks(self, samples: int) -> list[slice]:
        """Return the samples of each block."""
        step = max(1, _BLOCK_ELEMENTS // max(self.groups * self.rows * self.depth, 1))
        return [slice(i, min(i + step, samples)) for i in range(0, samples, step)]

    def images(self, x: Array, target: Any) -> Array:
        """Return padded images of all samples; `target` is the place of an image."""
        padded = self.xp.zeros((*x.shape[:2], *self.padded), self.dtype)
        padded[target] = x
        return padded

    def windows(self, padded: Array) -> Array:
        """Return the windows of all tiles as the rows of a matrix for each group."""
        xp, rank = self.xp, len(self.kernel)
        sample, channel, *steps = padded.strides
        dilated = [step * d for step, d in zip(steps, self.dilation, strict=True)]
        moved = [step * s for step, s in zip(steps, self.stride, strict=True)]
        shape = (self.groups, len(padded), *self.lines, self.tiles)
        strides = (channel * self.inputs, sample, *moved[:-1], moved[-1] * self.tile)
        shape += (self.inputs, *self.kernel[: rank - 1], self.span)
        strides += (channel, *dilated[:-1], steps[-1])
        view = xp.lib.stride_tricks.as_strided(padded, shape, strides)
        return view.reshape(self.groups, len(padded) * self.rows, self.depth)

    def _diagonals(self, matrices: Array) -> Array:
        """Return the view (groups, o, c, *kernel, tile) of the bands' nonzero elements."""
        shape = (self.groups, self.inputs, *self.kernel[:-1], self.span, self.outputs, self.tile)
        matrices = matrices.reshape(shape)
        group, channel, *lead, row, output, column = matrices.strides
        return self.xp.lib.stride_tricks.as_strided(
            matrices,
            (self.groups, self.outputs, self.inputs, *self.kernel, self.tile),
            (
                group,
                output,
                channel,
                *lead,
                row * self.dilation[-1],
                row * self.stride[-1] + column,
            ),
        )

    def matrices(self, w: Array) -> Array:
        """Return the banded matrices of kernels (groups · o, c, …)."""
        shape = (self.groups, self.depth, self.outputs * self.tile)
        found = self.xp.zeros(shape, self.dtype)
        kernels = w.reshape(self.groups, self.outputs, self.inputs, *self.kernel, 1)
        self._diagonals(found)[...] = kernels
        return found

    def kernels(self, matrices: Array) -> Array:
        """Return the adjoint of `matrices`: sums along the bands."""
        sums = self._diagonals(matrices).sum(-1)
        return sums.reshape(self.groups * self.outputs, self.inputs, *self.kernel)

    def tiled(self, y: Array) -> Array:
        """Return outputs, padded to whole tiles, as (groups, samples, *lines, tiles, o, tile)."""
        rank = len(self.size)
        y = y.reshape(len(y), self.groups, self.outputs, *self.lines, self.tiles, self.tile)
        return y.transpose(1, 0, *range(3, 3 + rank), 2, 3 + rank)

    def full(self, samples: int) -> tuple[int, ...]:
        """Return the shape of outputs that are padded to whole tiles."""
        return (samples, self.groups * self.outputs, *self.lines, self.tiles * self.tile)


def bands_of(
    xp: Any,
    x: Array,
    inputs: int,
    outputs: int,
    kernel: Sizes,
    size: Sizes,
    stride: Sizes,
    dilation: Sizes | None,
    groups: int,
) -> Bands | None:
    """Return how to compute a convolution in groups of few channels, None for others."""
    outputs //= groups
    if groups == 1 or inputs * outputs > _MAX_PAIRS or 0 in (x.size, outputs, *kernel, *size):
        return None
    if extension(xp, "waits"):  # a device, on which `is_finite` doesn't look
        return None
    dilation = dilation or (1,) * len(kernel)
    return Bands(xp, groups, (inputs, outputs), kernel, size, stride, dilation, x.dtype)


@errstate(all="ignore")  # of zeros times infinities: see `is_finite`
def correlate(bands: Bands, x: Array, w: Array, target: Any) -> Array:
    """Return the outputs (n, o, …); the images `x` are at `target` in the padding."""
    xp, padded, matrices = bands.xp, bands.images(x, target), bands.matrices(w)
    out = xp.empty(bands.full(len(x)), bands.dtype)
    for block in bands.blocks(len(x)):
        results = bands.tiled(out[block])
        results[...] = xp.matmul(bands.windows(padded[block]), matrices).reshape(results.shape)
    return out if out.shape[-1] == bands.size[-1] else out[..., : bands.size[-1]].copy()


def correlate_weight(bands: Bands, x: Array, y: Array, target: Any) -> Array:
    """Return the gradient of the kernels, (groups · o, c, …), given that of the outputs."""
    xp, padded = bands.xp, bands.images(x, target)
    if bands.full(len(y)) != y.shape:
        whole = xp.zeros(bands.full(len(y)), y.dtype)
        whole[..., : y.shape[-1]] = y
        y = whole
    total = xp.zeros((bands.groups, bands.depth, bands.outputs * bands.tile), bands.dtype)
    for block in bands.blocks(len(x)):
        windows = bands.windows(padded[block])
        gradients = bands.tiled(y[block]).reshape(*windows.shape[:2], -1)
        total += xp.matmul(windows.swapaxes(1, 2), gradients)
    return bands.kernels(total)
