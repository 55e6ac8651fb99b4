"""Convolution as matrix products: the trilinear form of image, kernel and output, by its partials.

Strided convolutions in groups, and the adjoints with respect to images, are reduced to stride 1: an
image is split into one image for each phase of the stride. In a padded image with flattened spatial
axes, a shift by one pixel is a constant offset, so the windows of many samples are long slices of
one row, and one matrix product handles them all. The margin is computed too and discarded, but the
copies are far longer than those of single windows.

Each dimension of the kernel is handled on one side of the product: the trailing ones by repeating
the input (as im2col does), the leading ones by summing shifted rows of the output. The split that
moves less memory depends on the channels. Measured with batch 32 and a 3×3 kernel: 16 to 16
channels at 28×28 take 0.9 ms half and half, 1.04 with all on the input, 1.16 with all on the
output; 3 to 32 channels at 32×32 take 0.8, 0.56 and 2.

In small images, or with wide kernels, the margin is a large part of the products, and with strides
phases pad the kernel. Then windows are copied from images whose last axis is that of the channels,
in runs of a row of the kernel (`_Windows`). With 3×3 kernels, 16 to 32 channels at 8×8 take 0.6 of
the time, 3 to 32 at 32×32 1.8 times as long. `_copies_windows` compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from chainrule.interrupts import errstate
from chainrule.kernels.convolution_by_taps import (
    correlate_by_taps,
    is_finite,
    spread_by_taps,
    weight_by_taps,
)
from chainrule.kernels.convolution_phases import Phases, overlap, pad_or_crop
from chainrule.kernels.grouped_convolution import MAX_PAIRS, Bands, correlate, correlate_weight

Array = Any
Sizes = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]
Window = tuple[Sizes, Pads, Sizes, int]  # stride, padding before and after, dilation, groups

_SCRATCH_ELEMENTS = 1 << 18
"""Number of scratch elements that a batch of samples may take besides the result."""

_MIN_COLUMNS = 1024
"""Number of columns from which a matrix product runs at full speed."""

_MULTIPLY, _COPY, _WINDOW_COPY, _TRANSPOSE, _RUN = 0.015, 0.35, 0.15, 1.0, 10.0
"""Nanoseconds for a multiplication of a product, a copy of an element (in long rows, in windows, to
another order of axes), and the beginning of a run."""


def convolve(xp: Any, x: Array, w: Array, *, window: Window) -> Array:
    """Return the cross-correlation of images (n, c, …) with kernels (o, c / groups, …)."""
    stride, padding, dilation, groups = window
    size = tuple(
        [
            (n + sum(pads) - d * (k - 1) - 1) // s + 1
            for n, k, s, pads, d in zip(
                x.shape[2:], w.shape[2:], stride, padding, dilation, strict=True
            )
        ]
    )
    pad_before = tuple([low for low, _ in padding])
    bands = _bands(xp, x, w.shape[1], len(w), w.shape[2:], size, stride, dilation, groups)
    if bands is not None:
        target, source = overlap(x.shape[2:], pad_before, bands.padded)
        found = correlate(bands, x[source], w, target)
        if is_finite(xp, found):
            return found
    if max(stride) == 1:
        return _correlate(xp, x, w, pad_before, size, dilation, groups)
    if groups == 1 and 0 not in (x.size, w.size, *size):
        out = xp.empty((len(x), len(w), *size), x.dtype)
        windows = _Windows(xp, x, pad_before, w.shape[2:], size, stride, dilation)
        _correlate_windows(xp, windows, w, out)
        return out
    if bands is None:
        found = _correlate_phases(xp, x, w, pad_before, size, stride, dilation, groups)
        if is_finite(xp, found):
            return found
    padded = pad_or_crop(xp, x, pad_before, _padded_size(x.shape[2:], padding))
    return correlate_by_taps(xp, padded, w, size, stride, dilation, groups)


def convolve_input(xp: Any, y: Array, w: Array, *, size: Sizes, window: Window) -> Array:
    """Return the adjoint of `convolve` with respect to images of shape `size`, applied to `y`."""
    stride, padding, dilation, groups = window
    pad_before = tuple([low for low, _ in padding])
    if max(stride) == 1:
        return _correlate_input(xp, y, w, pad_before, size, dilation, groups)
    images = _spread_phases(xp, y, w, stride, dilation, groups)
    if not is_finite(xp, images):
        shape = _padded_size(size, padding)
        images = spread_by_taps(xp, y, w, shape, stride, dilation, groups)
    return pad_or_crop(xp, images, tuple([-b for b in pad_before]), size)


def convolve_weight(xp: Any, x: Array, y: Array, *, size: Sizes, window: Window) -> Array:
    """Return the adjoint of `convolve` with respect to kernels of shape `size`, applied to `y`."""
    found = _convolve_weight(xp, x, y, size, window)
    if is_finite(xp, found):
        return found
    stride, padding, dilation, groups = window
    pad_before = tuple([low for low, _ in padding])
    padded = pad_or_crop(xp, x, pad_before, _padded_size(x.shape[2:], padding))
    return weight_by_taps(xp, padded, y, size, stride, dilation, groups)


def _padded_size(size: Sizes, padding: Any) -> Sizes:
    return tuple([n + sum(pads) for n, pads in zip(size, padding, strict=True)])


@errstate(all="ignore")  # of zeros times infinities: see `is_finite`
def _convolve_weight(xp: Any, x: Array, y: Array, size: Sizes, window: Window) -> Array:
    stride, padding, dilation, groups = window
    pad_before = tuple([low for low, _ in padding])
    channels = x.shape[1] // groups, y.shape[1]
    bands = _bands(xp, x, *channels, size, y.shape[2:], stride, dilation, groups)
    if bands is not None:
        target, source = overlap(x.shape[2:], pad_before, bands.padded)
        return correlate_weight(bands, x[source], y, target)
    if max(stride) == 1:
        return _correlate_weight(xp, x, y, pad_before, size, dilation, groups)
    if groups == 1 and 0 not in (x.size, y.size, *size):
        windows = _Windows(xp, x, pad_before, size, y.shape[2:], stride, dilation)
        return _sum_windows(xp, windows, y, size)
    phases = Phases(size, stride, dilation, y.shape[2:])
    images = phases.split(xp, pad_or_crop(xp, x, pad_before, phases.padded))
    w = _correlate_weight(xp, images, y, None, phases.kernel, None, groups)
    taps = tuple([slice(0, e, d) for e, d in zip(phases.extent, dilation, strict=True)])
    return phases.join(xp, w)[(..., *taps)].copy()


# --- strides --------------------------------------------------------------------------------------


def _bands(
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
    if groups == 1 or inputs * outputs > MAX_PAIRS or 0 in (x.size, outputs, *kernel, *size):
        return None
    if getattr(xp, "waits", False):  # a device, on which `is_finite` doesn't look
        return None
    dilation = dilation or (1,) * len(kernel)
    return Bands(xp, groups, (inputs, outputs), kernel, size, stride, dilation, x.dtype)


@errstate(all="ignore")  # of zeros times infinities: see `is_finite`
def _correlate_phases(
    xp: Any,
    x: Array,
    w: Array,
    pad_before: Sizes,
    size: Sizes,
    stride: Sizes,
    dilation: Sizes,
    groups: int,
) -> Array:
    phases = Phases(w.shape[2:], stride, dilation, size)
    images = phases.split(xp, pad_or_crop(xp, x, pad_before, phases.padded))
    return _correlate(xp, images, phases.kernels(xp, w), None, size, None, groups)


@errstate(all="ignore")
def _spread_phases(
    xp: Any, y: Array, w: Array, stride: Sizes, dilation: Sizes, groups: int
) -> Array:
    """Return the adjoint of `_correlate_phases` with respect to padded images."""
    phases = Phases(w.shape[2:], stride, dilation, y.shape[2:])
    images = _correlate_input(xp, y, phases.kernels(xp, w), None, phases.rows, None, groups)
    return phases.join(xp, images)


# --- stride 1 -------------------------------------------------------------------------------------


class _Layout:
    """Memory layout of a batch of padded images: each channel is one flat row."""

    def __init__(
        self,
        xp: Any,
        dtype: Any,
        samples: int,
        channels: tuple[int, int],  # of the input and of the output, both of one group
        groups: int,
        kernel: Sizes,
        size: Sizes,
        dilation: Sizes | None,
    ) -> None:
        self.xp, self.dtype = xp, dtype
        rank = len(kernel)
        dilation = dilation or (1,) * rank
        self.padded = tuple(
            [n + d * (k - 1) for n, k, d in zip(size, kernel, dilation, strict=True)]
        )
        steps = [math.prod(self.padded[i + 1 :]) for i in range(rank)]
        self.offsets = tuple([s * d for s, d in zip(steps, dilation, strict=True)])
        self.steps, self.size, self.kernel = steps, size, kernel
        self.groups, (self.inputs, self.outputs) = groups, channels
        # The leading `split` dimensions of the kernel are summed in the output.
        costs = [
            self.inputs * math.prod(kernel[i:]) + self.outputs * math.prod(kernel[:i])
            for i in range(rank + 1)
        ]
        self.split = costs.index(min(costs))
        plane = math.prod(self.padded)
        fitting = _SCRATCH_ELEMENTS // (min(costs) * groups * plane)
        batches = -(-samples // max(fitting, -(-_MIN_COLUMNS // plane)))
        self.samples = -(-samples // batches)  # batches of the same size
        self.plane, self.columns = plane, self.samples * plane
        self.inner, self.outer = kernel[self.split :], kernel[: self.split]

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
        shifted = self.xp.lib.stride_tricks.as_strided(
            rows, (channels, *self.inner, self.columns), strides
        )
        return images, shifted, self.xp.empty(shifted.shape, self.dtype)

    def outer_offsets(self) -> list[int]:
        """Return the offsets of the output rows, in the order of the kernel elements."""
        found = [0]
        for k, offset in zip(self.outer, self.offsets[: self.split], strict=True):
            found = [start + i * offset for start in found for i in range(k)]
        return found

    def kernel_matrix(self, w: Array) -> Array:
        """Return kernels (o, c, …) as (groups, outer × o, c × inner)."""
        g, o, c, rank = self.groups, self.outputs, self.inputs, len(self.kernel)
        s = self.split
        order = (0, *range(3, 3 + s), 1, 2, *range(3 + s, 3 + rank))
        matrix = w.reshape(g, o, c, *self.kernel).transpose(order)
        return matrix.reshape(g, math.prod(self.outer) * o, c * math.prod(self.inner))

    def kernels(self, matrix: Array) -> Array:
        """Return kernels (o, c, …) from their matrix: the inverse of `kernel_matrix`."""
        g, o, c, rank = self.groups, self.outputs, self.inputs, len(self.kernel)
        s = self.split
        order = (0, s + 1, s + 2, *range(1, s + 1), *range(s + 3, rank + 3))
        w = matrix.reshape(g, *self.outer, o, c, *self.inner).transpose(order)
        return w.reshape(g * o, c, *self.kernel)


class _Windows:
    """Windows of padded images as the rows of a matrix, for a batch of samples at a time."""

    def __init__(
        self,
        xp: Any,
        x: Array,
        pad_before: Sizes | None,
        kernel: Sizes,
        size: Sizes,
        stride: Sizes | None,
        dilation: Sizes | None,
    ) -> None:
        (n, channels, *_), self.size = x.shape, size
        ones = (1,) * len(size)
        stride, dilation = stride or ones, dilation or ones
        shape = tuple(
            [
                (m - 1) * s + d * (k - 1) + 1
                for m, k, s, d in zip(size, kernel, stride, dilation, strict=True)
            ]
        )
        self.plane, self.row = math.prod(self.size), channels * math.prod(kernel)
        batches = -(-n // max(_SCRATCH_ELEMENTS // (self.row * self.plane), 1))
        self.samples = -(-n // batches)
        before = pad_before or (0,) * len(self.size)
        (_, *target), source = overlap(x.shape[2:], before, shape)
        self.images = xp.moveaxis(x[source], 1, -1)
        padded = xp.zeros((self.samples, *shape, channels), x.dtype)
        self.interior = padded[(slice(None), *target)]
        first, *steps, last = padded.strides
        moved = [step * s for step, s in zip(steps, stride, strict=True)]
        dilated = [step * d for step, d in zip(steps, dilation, strict=True)]
        shape = (self.samples, *self.size, *kernel, channels)
        strides = (first, *moved, *dilated, last)
        self.windows = xp.lib.stride_tricks.as_strided(padded, shape, strides)
        self.rows = xp.empty((self.samples * self.plane, self.row), x.dtype)
        self.copied = self.rows.reshape(shape)

    def batches(self) -> Iterator[tuple[slice, Array]]:
        """Yield the samples of each batch, and the matrix of their windows."""
        for start in range(0, len(self.images), self.samples):
            batch = slice(start, start + self.samples)
            images = self.images[batch]
            count = len(images)
            self.interior[:count] = images
            self.copied[:count] = self.windows[:count]
            yield batch, self.rows[: count * self.plane]


def _copies_windows(x: Array, layout: _Layout, dilation: Sizes | None) -> bool:
    """Return whether copying windows takes less time than shifts of rows with their margin."""
    if layout.groups > 1:
        return False
    samples, inputs, outputs, kernel = len(x), layout.inputs, layout.outputs, layout.kernel
    pixels, padded = samples * math.prod(layout.size), samples * math.prod(layout.padded)
    taps = math.prod(kernel)
    moved = inputs * math.prod(layout.inner) + outputs * math.prod(layout.outer)
    by_shifts = padded * (_MULTIPLY * inputs * taps * outputs + _COPY * moved)
    runs = taps if dilation and dilation[-1] > 1 else taps // kernel[-1]
    by_windows = pixels * (
        inputs * taps * (_MULTIPLY * outputs + _WINDOW_COPY) + _RUN * runs
    ) + _TRANSPOSE * float(x.size)
    return by_windows < by_shifts


def _correlate_windows(xp: Any, windows: _Windows, w: Array, out: Array) -> None:
    """Fill in the output: the kernels times the windows."""
    outputs = len(w)
    matrix = xp.moveaxis(w, 1, -1).reshape(outputs, -1)
    columns = out.reshape(len(out), outputs, -1)
    for batch, rows in windows.batches():
        products = xp.matmul(matrix, rows.T).reshape(outputs, -1, windows.plane)
        columns[batch] = products.swapaxes(0, 1)


def _sum_windows(xp: Any, windows: _Windows, y: Array, kernel: Sizes) -> Array:
    """Return the gradient of the kernels: the sum of the windows times the output's elements."""
    outputs = y.shape[1]
    columns = y.reshape(len(y), outputs, -1).swapaxes(0, 1)
    total = xp.zeros((outputs, windows.row), windows.rows.dtype)
    for batch, rows in windows.batches():
        total += xp.matmul(columns[:, batch].reshape(outputs, -1), rows)
    return xp.moveaxis(total.reshape(outputs, *kernel, -1), -1, 1).copy()


def _correlate(
    xp: Any,
    x: Array,
    w: Array,
    pad_before: Sizes | None,
    size: Sizes,
    dilation: Sizes | None,
    groups: int,
) -> Array:
    """Return the output of shape `size`: the first window begins `pad_before` pixels outside."""
    n, dtype = len(x), xp.result_type(x, w)
    if 0 in (x.size, w.size, n, *size):
        return xp.zeros((n, len(w), *size), dtype)
    native = getattr(xp, "correlations", None)
    if native is not None:
        found = native.correlate(x, w, pad_before, size, dilation, groups)
        if found is not None:
            return found
    out = xp.empty((n, len(w), *size), dtype)
    layout = _Layout(
        xp, dtype, n, (w.shape[1], len(w) // groups), groups, w.shape[2:], size, dilation
    )
    if _copies_windows(x, layout, dilation):
        windows = _Windows(xp, x, pad_before, layout.kernel, size, None, dilation)
        _correlate_windows(xp, windows, w, out)
        return out
    target, source = overlap(x.shape[2:], pad_before or (0,) * len(size), layout.padded)
    x = x[source]
    images, shifted, copied = layout.images()
    interior, matrix = images[target], layout.kernel_matrix(w)
    columns = copied.reshape(groups, -1, layout.columns)
    first, *others = layout.outer_offsets()
    products = xp.empty((groups, matrix.shape[1], layout.columns), dtype)
    rows = products.reshape(groups, -1, layout.outputs, layout.columns)
    total = rows[:, first]
    shape = (groups, layout.outputs, layout.samples, *layout.padded)
    result = xp.moveaxis(total.reshape(shape), 2, 0)[(..., *[slice(0, m) for m in size])]
    grouped = out.reshape(n, groups, layout.outputs, *size)
    for start in range(0, n, layout.samples):
        batch, count = slice(start, start + layout.samples), min(layout.samples, n - start)
        interior[:count] = x[batch]
        copied[...] = shifted
        xp.matmul(matrix, columns, out=products)
        for i, offset in enumerate(others, 1):
            head = total[..., : layout.columns - offset]
            xp.add(head, rows[:, i, :, offset:], out=head)
        grouped[batch] = result[:count]
    return out


def _correlate_input(
    xp: Any,
    y: Array,
    w: Array,
    pad_before: Sizes | None,
    size: Sizes,
    dilation: Sizes | None,
    groups: int,
) -> Array:
    """Return the adjoint of `_correlate` with respect to the images: itself a correlation."""
    o, c, *kernel = w.shape
    rank = len(kernel)
    flipped = w.reshape(groups, o // groups, c, *kernel)[(..., *(slice(None, None, -1),) * rank)]
    flipped = flipped.swapaxes(1, 2).reshape(groups * c, o // groups, *kernel)
    start = tuple(
        [
            d * (k - 1) - b
            for d, k, b in zip(
                dilation or (1,) * rank, kernel, pad_before or (0,) * rank, strict=True
            )
        ]
    )
    ones = (1,) * rank
    bands = _bands(xp, y, o // groups, groups * c, w.shape[2:], size, ones, dilation, groups)
    if bands is not None:
        target, source = overlap(y.shape[2:], start, bands.padded)
        found = correlate(bands, y[source], flipped, target)
        if is_finite(xp, found):
            return found
    return _correlate(xp, y, flipped, start, size, dilation, groups)


def _correlate_weight(
    xp: Any,
    x: Array,
    y: Array,
    pad_before: Sizes | None,
    kernel: Sizes,
    dilation: Sizes | None,
    groups: int,
) -> Array:
    """Return the adjoint of `_correlate` with respect to the kernels."""
    (n, o, *_), size, dtype = y.shape, y.shape[2:], xp.result_type(x, y)
    c = x.shape[1] // groups
    if 0 in (x.size, y.size, *kernel):
        return xp.zeros((o, c, *kernel), dtype)
    native = getattr(xp, "correlations", None)
    if native is not None:
        found = native.correlate_weight(x, y, pad_before, kernel, dilation, groups)
        if found is not None:
            return found
    layout = _Layout(xp, dtype, n, (c, o // groups), groups, kernel, size, dilation)
    if _copies_windows(x, layout, dilation):
        windows = _Windows(xp, x, pad_before, kernel, size, None, dilation)
        return _sum_windows(xp, windows, y, kernel)
    target, source = overlap(x.shape[2:], pad_before or (0,) * len(size), layout.padded)
    x = x[source]
    images, shifted, copied = layout.images()
    interior = images[target]
    columns = copied.reshape(groups, -1, layout.columns).swapaxes(1, 2)
    rows = xp.zeros((groups, math.prod(layout.outer), layout.outputs, layout.columns), dtype)
    item = rows.itemsize
    strides = (
        item * layout.plane,
        rows.strides[0],
        rows.strides[2],
        *[item * s for s in layout.steps],
    )
    outputs = [
        xp.lib.stride_tricks.as_strided(
            rows[:, i, :, offset:], (layout.samples, groups, layout.outputs, *size), strides
        )
        for i, offset in enumerate(layout.outer_offsets())
    ]
    y = y.reshape(n, groups, layout.outputs, *size)
    matrix = rows.reshape(groups, -1, layout.columns)
    total = xp.zeros((groups, matrix.shape[1], columns.shape[2]), dtype)
    for start in range(0, n, layout.samples):
        batch, count = slice(start, start + layout.samples), min(layout.samples, n - start)
        interior[:count] = x[batch]
        copied[...] = shifted
        for output in outputs:
            output[:count] = y[batch]
            output[count:] = 0
        xp.add(total, xp.matmul(matrix, columns), out=total)
    return layout.kernels(total)
