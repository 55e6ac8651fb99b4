"""Strided convolution as one of stride 1, of an image for each phase of the stride."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
Sizes = tuple[int, ...]

_MAX_PHASES, _MAX_ZEROS = 4, 1.3
"""Phases that are computed one by one, or more if kernels would be so many times larger."""

_PHASE, _PHASE_COPY, _JOIN = 60_000.0, 0.25, 3.0
"""Nanoseconds for a phase of a stride, a copy of an element for its product, and to put an element
of the images in its place where phases are computed together, beyond the time for one by one."""

MULTIPLY = 0.015
"""Nanoseconds for a multiplication of a product."""


def extension(xp: Any, name: str) -> Any:
    """Return what a namespace adds to NumPy's, None without: NumPy takes 2 µs to find nothing."""
    return None if xp is np else getattr(xp, name, None)


class Phases:
    """A strided convolution as one of stride 1: each phase of the stride becomes a channel."""

    def __init__(self, kernel: Sizes, stride: Sizes, dilation: Sizes, size: Sizes) -> None:
        self.stride = stride
        self.dilation = dilation
        self.extent = tuple([d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)])
        # If the kernel is shorter than the stride, some pixels are in no window.
        self.used = tuple(map(min, stride, self.extent))
        self.kernel = tuple([-(-e // s) for e, s in zip(self.extent, stride, strict=True)])
        self.rows = tuple([n + k - 1 for n, k in zip(size, self.kernel, strict=True)])
        self.padded = tuple([n * s for n, s in zip(self.rows, stride, strict=True)])

    def split(self, xp: Any, x: Array) -> Array:
        """Return (n, c, …) as (n, c × phases, …)."""
        rank = len(self.stride)
        rows = [n // s for n, s in zip(x.shape[2:], self.stride, strict=True)]
        pairs = [n for pair in zip(rows, self.stride, strict=True) for n in pair]
        x = x.reshape(*x.shape[:2], *pairs)[self._used_index()]
        order = (0, 1, *range(3, 2 * rank + 2, 2), *range(2, 2 * rank + 2, 2))
        return x.transpose(order).reshape(len(x), x.shape[1] * math.prod(self.used), *rows)

    def join(self, xp: Any, x: Array) -> Array:
        """Return (n, c × phases, …) as (n, c, …), with zeros at unused pixels."""
        rank = len(self.stride)
        n, rows = len(x), x.shape[2:]
        channels = x.shape[1] // math.prod(self.used)
        pairs = [n for pair in zip(rows, self.stride, strict=True) for n in pair]
        out = xp.zeros((n, channels, *pairs), x.dtype)
        order = (0, 1, *[i + j * rank + 2 for i in range(rank) for j in (1, 0)])
        out[self._used_index()] = x.reshape(n, channels, *self.used, *rows).transpose(order)
        full = [n * s for n, s in zip(rows, self.stride, strict=True)]
        return out.reshape(n, channels, *full)

    def kernels(self, xp: Any, w: Array) -> Array:
        """Return the kernels, split into phases."""
        padded = [k * s for k, s in zip(self.kernel, self.stride, strict=True)]
        dilated = xp.zeros((*w.shape[:2], *padded), w.dtype)
        taps = [slice(0, e, d) for e, d in zip(self.extent, self.dilation, strict=True)]
        dilated[(..., *taps)] = w
        return self.split(xp, dilated)

    def _used_index(self) -> tuple[Any, ...]:
        return (..., *[part for u in self.used for part in (slice(None), slice(0, u))])


class Phase:
    """The pixels of an axis whose gradient comes from the same elements of the kernel.

    It is that of a convolution of stride 1 with these elements.
    """

    def __init__(
        self, kernel: slice, pixels: slice, size: int, pad_before: int, dilation: int
    ) -> None:
        self.kernel, self.pixels = kernel, pixels
        self.size, self.pad_before, self.dilation = size, pad_before, dilation


def phases_of(n: int, k: int, before: int, stride: int, dilation: int) -> list[Phase]:
    """Return the phases of an axis of `n` pixels and `k` elements of the kernel."""
    common = math.gcd(stride, dilation)
    found = []
    for first in range(min(stride // common, k)):
        row, phase = divmod(dilation * first, stride)
        pixel = (phase - before) % stride
        if pixel < n:
            pad_before = (pixel + before) // stride - row
            pixels, size = slice(pixel, n, stride), -(-(n - pixel) // stride)
            kernel = slice(first, k, stride // common)
            found.append(Phase(kernel, pixels, size, pad_before, dilation // common))
    return found


def is_by_phase(
    xp: Any, y: Array, channels: int, kernel: Sizes, stride: Sizes, dilation: Sizes, groups: int
) -> bool:
    """Return whether one product for each phase is faster than kernels with zeros in their place.

    Such products are short, which pays with many channels, or with machine code.
    """
    extents = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    sizes = [-(-e // s) for e, s in zip(extents, stride, strict=True)]
    joined = math.prod(sizes)
    whole = joined * math.prod(map(min, extents, stride))
    taps, phases = math.prod(kernel), math.prod(stride)
    if taps == 1:
        return True
    if extension(xp, "correlations") is not None:
        return phases <= _MAX_PHASES or whole > _MAX_ZEROS * taps
    by_phase: float = y.size * taps * (MULTIPLY * channels + _PHASE_COPY) + _PHASE * phases
    pixels = math.prod([n + k - 1 for n, k in zip(y.shape[2:], sizes, strict=True)])
    elements = len(y) * pixels * y.shape[1]
    by_zeros: float = elements * (MULTIPLY * channels * whole + _PHASE_COPY * joined)
    by_zeros += _JOIN * len(y) * pixels * groups * channels * phases
    return by_phase < by_zeros


def pad_or_crop(xp: Any, x: Array, pad_before: Sizes, padded: Sizes) -> Array:
    """Return images of shape `padded` that hold `x` from `pad_before` on, cropped to that shape."""
    if padded == x.shape[2:] and not any(pad_before):
        return x
    out = xp.zeros((*x.shape[:2], *padded), x.dtype)
    target, source = overlap(x.shape[2:], pad_before, padded)
    out[target] = x[source]
    return out


def overlap(size: Sizes, pad_before: Sizes, padded: Sizes) -> tuple[Any, Any]:
    """Return the target slices in the padded image, and the source slices in the image itself."""
    target, source = [], []
    for n, start, full in zip(size, pad_before, padded, strict=True):
        low, high = max(start, 0), max(min(start + n, full), 0)
        target.append(slice(low, max(low, high)))
        source.append(slice(low - start, max(low, high) - start))
    return (..., *target), (..., *source)


def view(xp: Any, x: Array, offset: int, shape: Sizes, strides: Sizes) -> Array:
    """Return a view of a contiguous array from an element on, with strides in bytes."""
    if x.__class__ is np.ndarray:  # as_strided takes 6 µs more
        return np.ndarray(shape, x.dtype, x, offset * x.itemsize, strides)
    return xp.lib.stride_tricks.as_strided(x.reshape(-1)[offset:], shape, strides)
