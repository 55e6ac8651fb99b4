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
in runs of a row of the kernel (`Windows`). With 3×3 kernels, 16 to 32 channels at 8×8 take 0.6 of
the time, 3 to 32 at 32×32 1.8 times as long. `_copies_windows` compares the two.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from chainrule.interrupts import errstate
from chainrule.kernels.convolution_by_taps import (
    correlate_by_taps,
    is_finite,
    spread_by_taps,
    weight_by_taps,
)
from chainrule.kernels.convolution_phases import Phases, overlap, pad_or_crop, phases_of, view
from chainrule.kernels.convolution_windows import Windows, correlate_windows, sum_windows
from chainrule.kernels.grouped_convolution import MAX_PAIRS, Bands, correlate, correlate_weight
from chainrule.kernels.product_stacks import Stack, for_parts, parts_of

Array = Any
Sizes = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]
Window = tuple[Sizes, Pads, Sizes, int]  # stride, padding before and after, dilation, groups

_SCRATCH_ELEMENTS = 1 << 18
"""Number of scratch elements that a batch of samples may take besides the result."""

_MIN_COLUMNS = 1024
"""Number of columns from which a matrix product runs at full speed."""

_MAX_PHASES, _MAX_ZEROS = 4, 1.3
"""Phases that are computed one by one, or more if kernels would be so many times larger."""

_MULTIPLY, _COPY, _WINDOW_COPY, _TRANSPOSE, _SPREAD, _RUN = 0.015, 0.35, 0.15, 1.0, 1.0, 10.0
"""Nanoseconds for a multiplication of a product, a copy of an element (in long rows, in windows, to
another order of axes, to one more shift of the rows), and the beginning of a run."""


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
    found = _by_kernels(xp, x, w, pad_before, size, stride, dilation, groups)
    if found is not None:
        return found
    if max(stride) == 1:
        return _correlate(xp, x, w, pad_before, size, dilation, groups)
    if groups == 1 and 0 not in (x.size, w.size, *size):
        out = xp.empty((len(x), len(w), *size), x.dtype)
        windows = Windows(xp, x, len(w), pad_before, w.shape[2:], size, stride, dilation)
        correlate_windows(windows, w, out)
        return out
    found = _correlate_phases(xp, x, w, pad_before, size, stride, dilation, groups)
    if is_finite(xp, found):
        return found
    padded = pad_or_crop(xp, x, pad_before, _padded_size(x.shape[2:], padding))
    return correlate_by_taps(xp, padded, w, size, stride, dilation, groups)


def _by_kernels(
    xp: Any,
    x: Array,
    w: Array,
    pad_before: Sizes,
    size: Sizes,
    stride: Sizes,
    dilation: Sizes | None,
    groups: int,
) -> Array | None:
    """Return the cross-correlation by machine code or a band of the kernels, where these serve."""
    native = getattr(xp, "correlations", None)
    if native is not None:
        found: Array | None = native.correlate(x, w, pad_before, size, stride, dilation, groups)
        if found is not None:
            return found
    bands = _bands(xp, x, w.shape[1], len(w), w.shape[2:], size, stride, dilation, groups)
    if bands is None:
        return None
    target, source = overlap(x.shape[2:], pad_before, bands.padded)
    found = correlate(bands, x[source], w, target)
    return found if is_finite(xp, found) else None


def convolve_input(xp: Any, y: Array, w: Array, *, size: Sizes, window: Window) -> Array:
    """Return the adjoint of `convolve` with respect to images of shape `size`, applied to `y`."""
    stride, padding, dilation, groups = window
    pad_before = tuple([low for low, _ in padding])
    if max(stride) == 1:
        return _correlate_input(xp, y, w, pad_before, size, dilation, groups)
    if _is_by_phase(xp, w.shape[2:], stride, dilation):
        return _spread_by_phase(xp, y, w, pad_before, size, stride, dilation, groups)
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
    native = getattr(xp, "correlations", None)
    if native is not None:
        found = native.correlate_weight(x, y, pad_before, size, stride, dilation, groups)
        if found is not None:
            return found
    channels = x.shape[1] // groups, y.shape[1]
    bands = _bands(xp, x, *channels, size, y.shape[2:], stride, dilation, groups)
    if bands is not None:
        target, source = overlap(x.shape[2:], pad_before, bands.padded)
        return correlate_weight(bands, x[source], y, target)
    if max(stride) == 1:
        return _correlate_weight(xp, x, y, pad_before, size, dilation, groups)
    if groups == 1 and 0 not in (x.size, y.size, *size):
        windows = Windows(
            xp, x, y.shape[1], pad_before, size, y.shape[2:], stride, dilation, sums=True
        )
        return sum_windows(windows, y)
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


def _is_by_phase(xp: Any, kernel: Sizes, stride: Sizes, dilation: Sizes) -> bool:
    """Return whether one product for each phase is faster than kernels with zeros in their place.

    Such products are short, which only machine code makes up for.
    """
    extents = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    whole = math.prod([-(-e // s) * min(s, e) for e, s in zip(extents, stride, strict=True)])
    is_native = getattr(xp, "correlations", None) is not None
    return is_native and (
        math.prod(stride) <= _MAX_PHASES or whole > _MAX_ZEROS * math.prod(kernel)
    )


def _spread_by_phase(
    xp: Any,
    y: Array,
    w: Array,
    pad_before: Sizes,
    size: Sizes,
    stride: Sizes,
    dilation: Sizes,
    groups: int,
) -> Array:
    """Return the adjoint with respect to images: for each phase that of a part of the kernel."""
    images = xp.zeros((len(y), groups * w.shape[1], *size), xp.result_type(y, w))
    axes = zip(size, w.shape[2:], pad_before, stride, dilation, strict=True)
    for phases in itertools.product(*[phases_of(*axis) for axis in axes]):
        kernel = w[(..., *[phase.kernel for phase in phases])]
        counts, before = [p.size for p in phases], [p.pad_before for p in phases]
        steps = tuple([phase.dilation for phase in phases])
        part = _correlate_input(xp, y, kernel, tuple(before), tuple(counts), steps, groups)
        images[(..., *[phase.pixels for phase in phases])] = part
    return images


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
        self.inner, self.outer = kernel[self.split :], kernel[: self.split]
        self.height = math.prod(self.outer) * self.outputs
        self.depth = math.prod(self.inner) * self.inputs
        multiplies = groups * self.height * self.depth
        most = max(fitting, -(-_MIN_COLUMNS // plane))
        self.parts = parts_of(xp, samples, most, samples * plane * multiplies)
        self.samples = self.parts[0][0].stop
        self.plane, self.columns = plane, self.samples * plane

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

    def stack(self, x: Array, *, sums: bool = False) -> Stack:
        """Return how the columns of the products of images are divided."""
        alone, multiplies = len(self.parts) == 1, self.height * self.depth
        return Stack(x, self.columns, multiplies, alone=alone, sums=sums)

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


def _copies_windows(x: Array, layout: _Layout, dilation: Sizes | None, sums: bool = False) -> bool:
    """Return whether copying windows takes less time than shifts of rows with their margin.

    With `sums`, the gradient of kernels is computed.
    """
    if layout.groups > 1:
        return False
    samples, inputs, outputs, kernel = len(x), layout.inputs, layout.outputs, layout.kernel
    pixels, padded = samples * math.prod(layout.size), samples * math.prod(layout.padded)
    taps = math.prod(kernel)
    moved = inputs * math.prod(layout.inner) + outputs * math.prod(layout.outer)
    spread = outputs * (math.prod(layout.outer) - 1) if sums else 0
    by_shifts = padded * (
        _MULTIPLY * inputs * taps * outputs + _COPY * moved + _SPREAD * float(spread)
    )
    runs = taps if dilation and dilation[-1] > 1 else taps // kernel[-1]
    by_windows = pixels * (
        inputs * taps * (_MULTIPLY * outputs + _WINDOW_COPY) + _RUN * runs
    ) + _TRANSPOSE * float(x.size)
    return by_windows < by_shifts


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
    out = xp.empty((n, len(w), *size), dtype)
    layout = _Layout(
        xp, dtype, n, (w.shape[1], len(w) // groups), groups, w.shape[2:], size, dilation
    )
    if _copies_windows(x, layout, dilation):
        windows = Windows(xp, x, len(w), pad_before, layout.kernel, size, None, dilation)
        correlate_windows(windows, w, out)
        return out
    target, source = overlap(x.shape[2:], pad_before or (0,) * len(size), layout.padded)
    x, matrix = x[source], layout.kernel_matrix(w)
    grouped = out.reshape(n, groups, layout.outputs, *size)
    first, *others = layout.outer_offsets()
    stack = layout.stack(x)
    trimmed = (..., *[slice(0, m) for m in size])

    def run(_: int, batches: list[slice]) -> None:
        images, shifted, copied = layout.images()
        interior, columns = images[target], copied.reshape(groups, -1, layout.columns)
        products = xp.empty((groups, layout.height, layout.columns), dtype)
        rows = products.reshape(groups, -1, layout.outputs, layout.columns)
        total = rows[:, first]
        shape = (groups, layout.outputs, layout.samples, *layout.padded)
        result = total.reshape(shape).transpose(2, 0, 1, *range(3, len(shape)))[trimmed]
        for batch in batches:
            count = len(x[batch])
            interior[:count] = x[batch]
            copied[...] = shifted
            if not stack.step:
                xp.matmul(matrix, columns, out=products)
            for piece, length in stack.pieces():
                xp.matmul(
                    matrix[:, None],
                    _divided(columns[..., piece], length),
                    out=_divided(products[..., piece], length),
                )
            for i, offset in enumerate(others, 1):
                head = total[..., : layout.columns - offset]
                xp.add(head, rows[:, i, :, offset:], out=head)
            grouped[batch] = result[:count]

    for_parts(run, layout.parts, parallel=stack.step > 0)
    return out


def _divided(rows: Array, length: int) -> Array:
    """Return a view of (groups, rows, columns) as (groups, steps, rows, columns of a step)."""
    return rows.reshape(*rows.shape[:2], -1, length).swapaxes(1, 2)


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
    found = _by_kernels(xp, y, flipped, start, size, (1,) * rank, dilation, groups)
    if found is not None:
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
    layout = _Layout(xp, dtype, n, (c, o // groups), groups, kernel, size, dilation)
    if _copies_windows(x, layout, dilation, True):
        windows = Windows(xp, x, o, pad_before, kernel, size, None, dilation, sums=True)
        return sum_windows(windows, y)
    target, source = overlap(x.shape[2:], pad_before or (0,) * len(size), layout.padded)
    x, y = x[source], y.reshape(n, groups, layout.outputs, *size)
    stack = layout.stack(x, sums=True)
    totals = xp.zeros((len(layout.parts), groups, layout.height, layout.depth), dtype)

    def run(i: int, batches: list[slice]) -> None:
        images, shifted, copied = layout.images()
        interior, columns = images[target], copied.reshape(groups, -1, layout.columns)
        rows = xp.zeros((groups, math.prod(layout.outer), layout.outputs, layout.columns), dtype)
        outputs, matrix = layout.shifted_outputs(rows), rows.reshape(groups, -1, layout.columns)
        for batch in batches:
            count = len(x[batch])
            interior[:count] = x[batch]
            copied[...] = shifted
            for output in outputs:
                output[:count] = y[batch]
                output[count:] = 0
            if not stack.step:
                totals[i] += xp.matmul(matrix, columns.swapaxes(1, 2))
            for piece, length in stack.pieces():
                windows = _divided(columns[..., piece], length).swapaxes(2, 3)
                totals[i] += xp.matmul(_divided(matrix[..., piece], length), windows).sum(1)

    for_parts(run, layout.parts, parallel=stack.step > 0)
    return layout.kernels(totals.sum(0))
