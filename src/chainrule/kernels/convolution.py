"""Convolution as matrix products: the trilinear form of image, kernel and output, by its partials.

Strided convolutions in groups, and the adjoints with respect to images, are reduced to stride 1: an
image is split into one image for each phase of the stride. Products of shifted images
(`convolution_shifts`) take long copies, but compute the margin, too.

In small images, or with wide kernels, the margin is a large part of the products, and with strides
phases pad the kernel. Then windows are copied from images whose last axis is that of the channels,
in runs of a row of the kernel (`Windows`). With 3×3 kernels, 16 to 32 channels at 8×8 take 0.6 of
the time, 3 to 32 at 32×32 1.8 times as long. `_copies_windows` compares the two.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

from chainrule.interrupts import errstate
from chainrule.kernels.convolution_by_taps import (
    correlate_by_taps,
    correlate_images,
    correlate_pixels,
    is_finite,
    is_pointwise,
    is_single,
    sampled,
    spread_by_taps,
    spread_images,
    weight_by_taps,
    weight_of_images,
    weight_of_pixels,
)
from chainrule.kernels.convolution_phases import (
    MULTIPLY,
    Phases,
    extension,
    is_by_phase,
    overlap,
    pad_or_crop,
    phases_of,
)
from chainrule.kernels.convolution_shifts import Layout
from chainrule.kernels.convolution_windows import (
    Windows,
    correlate_windows,
    sum_windows,
    windows_of,
)
from chainrule.kernels.grouped_convolution import bands_of, correlate, correlate_weight
from chainrule.kernels.product_stacks import for_parts

Array = Any
Sizes = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]
Window = tuple[Sizes, Pads, Sizes, int]  # stride, padding before and after, dilation, groups

_COPY, _WINDOW_COPY, _FAR_COPY, _TRANSPOSE, _SPREAD, _RUN = 0.35, 0.03, 0.3, 0.5, 0.7, 8.0
"""Nanoseconds for a copy of an element (in long rows, in windows, in windows beyond the cache, to
another order of axes, to one more shift of the rows), and the beginning of a run."""

_CACHE = 1 << 19
"""Number of elements that the second-level cache holds."""


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
    if is_single(x.shape[2:], pad_before, w.shape[2:], size, dilation):
        return correlate_images(xp, x, w, groups)
    found = _by_kernels(xp, x, w, pad_before, size, stride, dilation, groups)
    if found is not None:
        return found
    if max(stride) == 1:
        return _correlate(xp, x, w, pad_before, size, dilation, groups)
    if math.prod(w.shape[2:]) == 1:
        return _correlate(xp, sampled(xp, x, pad_before, size, stride), w, None, size, None, groups)
    if groups == 1 and 0 not in (x.size, w.size, *size):
        out = xp.empty((len(x), len(w), *size), x.dtype)
        correlate_windows(
            windows_of(
                *(xp, x.__class__, x.dtype, x.shape, len(w)),
                *(pad_before, w.shape[2:], size, stride, dilation, False),
            ),
            *(x, w, out),
        )
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
    native = extension(xp, "correlations")
    if native is not None:
        found: Array | None = native.correlate(x, w, pad_before, size, stride, dilation, groups)
        if found is not None:
            return found
    bands = bands_of(xp, x, w.shape[1], len(w), w.shape[2:], size, stride, dilation, groups)
    if bands is None:
        return None
    target, source = overlap(x.shape[2:], pad_before, bands.padded)
    found = correlate(bands, x[source], w, target)
    return found if is_finite(xp, found) else None


def convolve_input(xp: Any, y: Array, w: Array, *, size: Sizes, window: Window) -> Array:
    """Return the adjoint of `convolve` with respect to images of shape `size`, applied to `y`."""
    stride, padding, dilation, groups = window
    pad_before = tuple([low for low, _ in padding])
    if is_single(size, pad_before, w.shape[2:], y.shape[2:], dilation):
        return spread_images(xp, y, w, groups)
    if max(stride) == 1:
        return _correlate_input(xp, y, w, pad_before, size, dilation, groups)
    if is_by_phase(xp, y, w.shape[1], w.shape[2:], stride, dilation, groups):
        return _spread_by_phase(xp, y, w, pad_before, size, stride, dilation, groups)
    images = _spread_phases(xp, y, w, stride, dilation, groups)
    if not is_finite(xp, images):
        shape = _padded_size(size, padding)
        images = spread_by_taps(xp, y, w, shape, stride, dilation, groups)
    return pad_or_crop(xp, images, tuple([-b for b in pad_before]), size)


def convolve_weight(xp: Any, x: Array, y: Array, *, size: Sizes, window: Window) -> Array:
    """Return the adjoint of `convolve` with respect to kernels of shape `size`, applied to `y`."""
    stride, padding, dilation, groups = window
    pad_before = tuple([low for low, _ in padding])
    if is_single(x.shape[2:], pad_before, size, y.shape[2:], dilation):
        return weight_of_images(xp, x, y, groups)
    found = _convolve_weight(xp, x, y, size, window)
    if is_finite(xp, found):
        return found
    padded = pad_or_crop(xp, x, pad_before, _padded_size(x.shape[2:], padding))
    return weight_by_taps(xp, padded, y, size, stride, dilation, groups)


def _padded_size(size: Sizes, padding: Any) -> Sizes:
    return tuple([n + sum(pads) for n, pads in zip(size, padding, strict=True)])


@errstate(all="ignore")  # of zeros times infinities: see `is_finite`
def _convolve_weight(xp: Any, x: Array, y: Array, size: Sizes, window: Window) -> Array:
    stride, padding, dilation, groups = window
    pad_before = tuple([low for low, _ in padding])
    native = extension(xp, "correlations")
    if native is not None:
        found = native.correlate_weight(x, y, pad_before, size, stride, dilation, groups)
        if found is not None:
            return found
    channels = x.shape[1] // groups, y.shape[1]
    bands = bands_of(xp, x, *channels, size, y.shape[2:], stride, dilation, groups)
    if bands is not None:
        target, source = overlap(x.shape[2:], pad_before, bands.padded)
        return correlate_weight(bands, x[source], y, target)
    if max(stride) == 1:
        return _correlate_weight(xp, x, y, pad_before, size, dilation, groups)
    if math.prod(size) == 1:
        x = sampled(xp, x, pad_before, y.shape[2:], stride)
        return _correlate_weight(xp, x, y, None, size, None, groups)
    if groups == 1 and 0 not in (x.size, y.size, *size):
        windows = windows_of(
            *(xp, x.__class__, x.dtype, x.shape, y.shape[1]),
            *(pad_before, size, y.shape[2:], stride, dilation, True),
        )
        return sum_windows(windows, x, y)
    phases = Phases(size, stride, dilation, y.shape[2:])
    images = phases.split(xp, pad_or_crop(xp, x, pad_before, phases.padded))
    w = _correlate_weight(xp, images, y, None, phases.kernel, None, groups)
    taps = tuple([slice(0, e, d) for e, d in zip(phases.extent, dilation, strict=True)])
    return phases.join(xp, w)[(..., *taps)].copy()


# --- strides --------------------------------------------------------------------------------------


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


@lru_cache(256)
def _plan(
    xp: Any,
    kind: type,
    dtype: Any,
    shape: Sizes,
    outputs: int,
    pad_before: Sizes | None,
    kernel: Sizes,
    size: Sizes,
    dilation: Sizes | None,
    groups: int,
    sums: bool,
) -> Layout | Windows:
    """Return how to compute a convolution of stride 1, or with `sums` the gradient of kernels."""
    layout = Layout(
        *(xp, kind, dtype, shape, outputs, pad_before),
        *(kernel, size, dilation, groups, sums),
    )
    if not _copies_windows(shape, layout, dilation, sums):
        return layout
    arguments = xp, kind, dtype, shape, outputs, pad_before, kernel, size, None, dilation, sums
    return windows_of(*arguments)


def _copies_windows(shape: Sizes, layout: Layout, dilation: Sizes | None, sums: bool) -> bool:
    """Return whether copying windows takes less time than shifts of rows with their margin.

    With `sums`, the gradient of kernels is computed.
    """
    if layout.groups > 1:
        return False
    samples, inputs, outputs, kernel = shape[0], layout.inputs, layout.outputs, layout.kernel
    pixels, padded = samples * math.prod(layout.size), samples * math.prod(layout.padded)
    taps = math.prod(kernel)
    moved = inputs * math.prod(layout.inner) + outputs * math.prod(layout.outer)
    spread = outputs * (math.prod(layout.outer) - 1) if sums else 0
    by_shifts = padded * (
        MULTIPLY * inputs * taps * outputs + _COPY * moved + _SPREAD * float(spread)
    )
    row = inputs * taps
    runs = taps if dilation and dilation[-1] > 1 else taps // kernel[-1]
    copies = _RUN * runs + (_WINDOW_COPY if row * pixels <= samples * _CACHE else _FAR_COPY) * row
    if not sums:
        copies += _TRANSPOSE * outputs
    by_windows = pixels * (MULTIPLY * row * outputs + copies) + _TRANSPOSE * math.prod(shape)
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
    if is_pointwise(x, pad_before, w.shape[2:], size):
        return correlate_pixels(xp, x, w, groups)
    out = xp.empty((n, len(w), *size), dtype)
    layout = _plan(
        *(xp, x.__class__, dtype, x.shape, len(w), pad_before),
        *(w.shape[2:], size, dilation, groups, False),
    )
    if isinstance(layout, Windows):
        correlate_windows(layout, x, w, out)
        return out
    x, matrix = x[layout.source], layout.kernel_matrix(w)
    grouped = out.reshape(n, groups, layout.outputs, *size)
    first, *others = layout.outer_offsets()
    stack, target = layout.stack, layout.target
    trimmed = (..., *[slice(0, m) for m in size])

    def run(_: int, batches: list[slice], memory: tuple[Array, Array, Array]) -> None:
        images, shifted, copied = memory
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

    for_parts(run, layout.parts, layout.images, parallel=stack.step > 0)
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
    flipped = w[(..., *(slice(None, None, -1),) * rank)]
    if groups == 1:
        flipped = flipped.swapaxes(0, 1)
    else:
        flipped = flipped.reshape(groups, o // groups, c, *kernel).swapaxes(1, 2)
        flipped = flipped.reshape(groups * c, o // groups, *kernel)
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
    if is_pointwise(x, pad_before, kernel, size):
        return weight_of_pixels(xp, x, y, groups).reshape(o, c, *kernel)
    layout = _plan(
        *(xp, x.__class__, dtype, x.shape, o, pad_before, kernel, size, dilation, groups, True)
    )
    if isinstance(layout, Windows):
        return sum_windows(layout, x, y)
    x, y = x[layout.source], y.reshape(n, groups, layout.outputs, *size)
    stack, target = layout.stack, layout.target
    totals = xp.zeros((len(layout.parts), groups, layout.height, layout.depth), dtype)

    def run(i: int, batches: list[slice], memory: tuple[Array, Array, Array]) -> None:
        images, shifted, copied = memory
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

    for_parts(run, layout.parts, layout.images, parallel=stack.step > 0)
    return layout.kernels(totals.sum(0))
