"""Convolution as matrix products: the trilinear form of image, kernel and output, by its partials.

Everything is brought to stride 1: an image is split into one image for each phase of the stride.
Then a shift by one place in a padded image that is laid out flat is an offset, so the windows of
many samples are long slices of one row, and one product does them all. It computes a margin that
nobody asked for, and copies in far longer runs than windows one by one would.

The positions of a kernel can be gathered on either side of the product: the input is repeated for
the trailing dimensions of the kernel, the output, for the leading ones, summed over shifted rows.
Which moves less depends on the channels. Measured with batch 32 and a 3×3 kernel: 16 to 16 channels
at 28×28 take 0.9 ms half and half, 1.04 with all on the input, 1.16 with all on the output; 3 to 32
channels at 32×32 take 0.8, 0.56 and 2.
"""

from __future__ import annotations

import math
from typing import Any

Array = Any
Sizes = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]
Window = tuple[Sizes, Pads, Sizes, int]  # stride, padding before and after, dilation, groups

_SCRATCH = 1 << 18  # elements that some samples at a time may take besides the result
_COLUMNS = 1024  # of fewer columns a product is slower than it need be


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
    before = tuple([low for low, _ in padding])
    if max(stride) == 1:
        return _correlate(xp, x, w, before, size, dilation, groups)
    phases = _Phases(w.shape[2:], stride, dilation, size)
    images = phases.split(xp, _placed(xp, x, before, phases.room))
    return _correlate(xp, images, phases.kernels(xp, w), None, size, None, groups)


def convolve_input(xp: Any, y: Array, w: Array, *, size: Sizes, window: Window) -> Array:
    """Return what is adjoint to `convolve` in its images of this size, applied to `y`."""
    stride, padding, dilation, groups = window
    before = tuple([low for low, _ in padding])
    if max(stride) == 1:
        return _correlate_back(xp, y, w, before, size, dilation, groups)
    phases = _Phases(w.shape[2:], stride, dilation, y.shape[2:])
    images = _correlate_back(xp, y, phases.kernels(xp, w), None, phases.rows, None, groups)
    return _placed(xp, phases.join(xp, images), tuple([-b for b in before]), size)


def convolve_weight(xp: Any, x: Array, y: Array, *, size: Sizes, window: Window) -> Array:
    """Return what is adjoint to `convolve` in its kernels of this size, applied to `y`."""
    stride, padding, dilation, groups = window
    before = tuple([low for low, _ in padding])
    if max(stride) == 1:
        return _correlate_with_output(xp, x, y, before, size, dilation, groups)
    phases = _Phases(size, stride, dilation, y.shape[2:])
    images = phases.split(xp, _placed(xp, x, before, phases.room))
    w = _correlate_with_output(xp, images, y, None, phases.kernel, None, groups)
    places = tuple([slice(0, e, d) for e, d in zip(phases.extent, dilation, strict=True)])
    return phases.join(xp, w)[(..., *places)].copy()


# --- strides --------------------------------------------------------------------------------------


class _Phases:
    """A convolution with strides as one without: of every stride-th pixel an image of its own."""

    def __init__(self, kernel: Sizes, stride: Sizes, dilation: Sizes, size: Sizes) -> None:
        self.stride = stride
        self.dilation = dilation
        self.extent = tuple([d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)])
        # Of a kernel shorter than the stride, some pixels are never looked at.
        self.used = tuple(map(min, stride, self.extent))
        self.kernel = tuple([-(-e // s) for e, s in zip(self.extent, stride, strict=True)])
        self.rows = tuple([n + k - 1 for n, k in zip(size, self.kernel, strict=True)])
        self.room = tuple([n * s for n, s in zip(self.rows, stride, strict=True)])

    def split(self, xp: Any, x: Array) -> Array:
        """Return (n, c, …) as (n, c × phases, …)."""
        rank = len(self.stride)
        rows = [n // s for n, s in zip(x.shape[2:], self.stride, strict=True)]
        pairs = [n for pair in zip(rows, self.stride, strict=True) for n in pair]
        x = x.reshape(*x.shape[:2], *pairs)[self._looked_at()]
        order = (0, 1, *range(3, 2 * rank + 2, 2), *range(2, 2 * rank + 2, 2))
        return x.transpose(order).reshape(len(x), x.shape[1] * math.prod(self.used), *rows)

    def join(self, xp: Any, x: Array) -> Array:
        """Return (n, c × phases, …) as (n, c, …), zero where nothing looked."""
        rank = len(self.stride)
        n, rows = len(x), x.shape[2:]
        channels = x.shape[1] // math.prod(self.used)
        pairs = [n for pair in zip(rows, self.stride, strict=True) for n in pair]
        out = xp.zeros((n, channels, *pairs), x.dtype)
        order = (0, 1, *[i + j * rank + 2 for i in range(rank) for j in (1, 0)])
        out[self._looked_at()] = x.reshape(n, channels, *self.used, *rows).transpose(order)
        whole = [n * s for n, s in zip(rows, self.stride, strict=True)]
        return out.reshape(n, channels, *whole)

    def kernels(self, xp: Any, w: Array) -> Array:
        """Return the kernels of the phases."""
        room = [k * s for k, s in zip(self.kernel, self.stride, strict=True)]
        wide = xp.zeros((*w.shape[:2], *room), w.dtype)
        places = [slice(0, e, d) for e, d in zip(self.extent, self.dilation, strict=True)]
        wide[(..., *places)] = w
        return self.split(xp, wide)

    def _looked_at(self) -> tuple[Any, ...]:
        return (..., *[part for u in self.used for part in (slice(None), slice(0, u))])


def _placed(xp: Any, x: Array, before: Sizes, room: Sizes) -> Array:
    """Return images of the size `room` with `x` in them from `before` on; what is outside goes."""
    if room == x.shape[2:] and not any(before):
        return x
    out = xp.zeros((*x.shape[:2], *room), x.dtype)
    target, source = _overlap(x.shape[2:], before, room)
    out[target] = x[source]
    return out


def _overlap(size: Sizes, before: Sizes, room: Sizes) -> tuple[Any, Any]:
    """Return where in the room an image lies that begins at `before`, and which part of it."""
    target, source = [], []
    for n, start, whole in zip(size, before, room, strict=True):
        low, high = max(start, 0), max(min(start + n, whole), 0)
        target.append(slice(low, max(low, high)))
        source.append(slice(low - start, max(low, high) - start))
    return (..., *target), (..., *source)


# --- stride 1 -------------------------------------------------------------------------------------


class _Layout:
    """Some samples of padded images laid out flat: each channel's are one row."""

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
        self.room = tuple([n + d * (k - 1) for n, k, d in zip(size, kernel, dilation, strict=True)])
        steps = [math.prod(self.room[i + 1 :]) for i in range(rank)]
        self.offsets = tuple([s * d for s, d in zip(steps, dilation, strict=True)])
        self.steps, self.size, self.kernel = steps, size, kernel
        self.groups, (self.inputs, self.outputs) = groups, channels
        # The leading `split` dimensions of the kernel are summed over in the output.
        costs = [
            self.inputs * math.prod(kernel[i:]) + self.outputs * math.prod(kernel[:i])
            for i in range(rank + 1)
        ]
        self.split = costs.index(min(costs))
        plane = math.prod(self.room)
        fitting = _SCRATCH // (min(costs) * groups * plane)
        self.samples = max(1, min(samples, max(fitting, -(-_COLUMNS // plane))))
        self.plane, self.columns = plane, self.samples * plane
        self.inner, self.outer = kernel[self.split :], kernel[: self.split]

    def images(self) -> tuple[Array, Array, Array]:
        """Return zeroed rows as images, the rows shifted, and memory to copy these to."""
        channels = self.groups * self.inputs
        offsets = self.offsets[self.split :]
        tail = sum([(k - 1) * o for k, o in zip(self.inner, offsets, strict=True)])
        rows = self.xp.zeros((channels, self.columns + tail), self.dtype)
        shape = (channels, self.samples, *self.room)
        images = rows[:, : self.columns].reshape(shape).swapaxes(0, 1)
        item = rows.itemsize
        strides = (rows.strides[0], *[o * item for o in offsets], item)
        shifted = self.xp.lib.stride_tricks.as_strided(
            rows, (channels, *self.inner, self.columns), strides
        )
        return images, shifted, self.xp.empty(shifted.shape, self.dtype)

    def outer_offsets(self) -> list[int]:
        """Return by how much the rows of the output are shifted, in the order of positions."""
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
        """Return such a matrix as kernels."""
        g, o, c, rank = self.groups, self.outputs, self.inputs, len(self.kernel)
        s = self.split
        order = (0, s + 1, s + 2, *range(1, s + 1), *range(s + 3, rank + 3))
        w = matrix.reshape(g, *self.outer, o, c, *self.inner).transpose(order)
        return w.reshape(g * o, c, *self.kernel)


def _correlate(
    xp: Any,
    x: Array,
    w: Array,
    before: Sizes | None,
    size: Sizes,
    dilation: Sizes | None,
    groups: int,
) -> Array:
    """Return outputs of this size: the first window has `before` places in front of the image."""
    n, dtype = len(x), xp.result_type(x, w)
    if 0 in (x.size, w.size, n, *size):
        return xp.zeros((n, len(w), *size), dtype)
    out = xp.empty((n, len(w), *size), dtype)
    at = _Layout(xp, dtype, n, (w.shape[1], len(w) // groups), groups, w.shape[2:], size, dilation)
    target, source = _overlap(x.shape[2:], before or (0,) * len(size), at.room)
    x = x[source]
    images, shifted, copied = at.images()
    places, matrix = images[target], at.kernel_matrix(w)
    columns = copied.reshape(groups, -1, at.columns)
    first, *others = at.outer_offsets()
    products = xp.empty((groups, matrix.shape[1], at.columns), dtype)
    rows = products.reshape(groups, -1, at.outputs, at.columns)
    total = rows[:, first]
    shape = (groups, at.outputs, at.samples, *at.room)
    result = xp.moveaxis(total.reshape(shape), 2, 0)[(..., *[slice(0, m) for m in size])]
    grouped = out.reshape(n, groups, at.outputs, *size)
    for start in range(0, n, at.samples):
        some, count = slice(start, start + at.samples), min(at.samples, n - start)
        places[:count] = x[some]
        copied[...] = shifted
        xp.matmul(matrix, columns, out=products)
        for i, offset in enumerate(others, 1):
            head = total[..., : at.columns - offset]
            xp.add(head, rows[:, i, :, offset:], out=head)
        grouped[some] = result[:count]
    return out


def _correlate_back(
    xp: Any,
    y: Array,
    w: Array,
    before: Sizes | None,
    size: Sizes,
    dilation: Sizes | None,
    groups: int,
) -> Array:
    """Return what is adjoint to `_correlate` in its images of this size: it is one itself."""
    o, c, *kernel = w.shape
    rank = len(kernel)
    flipped = w.reshape(groups, o // groups, c, *kernel)[(..., *(slice(None, None, -1),) * rank)]
    flipped = flipped.swapaxes(1, 2).reshape(groups * c, o // groups, *kernel)
    start = tuple(
        [
            d * (k - 1) - b
            for d, k, b in zip(dilation or (1,) * rank, kernel, before or (0,) * rank, strict=True)
        ]
    )
    return _correlate(xp, y, flipped, start, size, dilation, groups)


def _correlate_with_output(
    xp: Any,
    x: Array,
    y: Array,
    before: Sizes | None,
    kernel: Sizes,
    dilation: Sizes | None,
    groups: int,
) -> Array:
    """Return what is adjoint to `_correlate` in its kernels of this size."""
    (n, o, *_), size, dtype = y.shape, y.shape[2:], xp.result_type(x, y)
    c = x.shape[1] // groups
    if 0 in (x.size, y.size, *kernel):
        return xp.zeros((o, c, *kernel), dtype)
    at = _Layout(xp, dtype, n, (c, o // groups), groups, kernel, size, dilation)
    target, source = _overlap(x.shape[2:], before or (0,) * len(size), at.room)
    x = x[source]
    images, shifted, copied = at.images()
    places = images[target]
    columns = copied.reshape(groups, -1, at.columns).swapaxes(1, 2)
    rows = xp.zeros((groups, math.prod(at.outer), at.outputs, at.columns), dtype)
    item = rows.itemsize
    strides = (item * at.plane, rows.strides[0], rows.strides[2], *[item * s for s in at.steps])
    outputs = [
        xp.lib.stride_tricks.as_strided(
            rows[:, i, :, offset:], (at.samples, groups, at.outputs, *size), strides
        )
        for i, offset in enumerate(at.outer_offsets())
    ]
    y = y.reshape(n, groups, at.outputs, *size)
    matrix = rows.reshape(groups, -1, at.columns)
    total = xp.zeros((groups, matrix.shape[1], columns.shape[2]), dtype)
    for start in range(0, n, at.samples):
        some, count = slice(start, start + at.samples), min(at.samples, n - start)
        places[:count] = x[some]
        copied[...] = shifted
        for output in outputs:
            output[:count] = y[some]
            output[count:] = 0
        xp.add(total, xp.matmul(matrix, columns), out=total)
    return at.kernels(total)
