"""Convolution by one matrix product for each element of the kernel, and its adjoints.

Faster ways multiply by zeros: of banded matrices, of kernels that are padded to whole strides, of
margins. There an infinity or nan would reach pixels whose windows don't contain it. A result of
theirs that isn't finite is computed anew by these. Kernels of one element are always computed so,
from images as they lie in memory, and kernels as large as the images by one product.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule.interrupts import errstate
from chainrule.kernels.convolution_phases import extension, pad_or_crop
from chainrule.kernels.product_stacks import matmul

Array = Any
Sizes = tuple[int, ...]

_MAX_PRODUCTS = 1 << 18
"""Number of elements of the products of samples that are made before they are added."""


@errstate(all="ignore")
def is_finite(xp: Any, x: Array) -> bool:
    """Return whether all elements are finite; False, too, if only their sum overflows.

    True on a device, for which looking would wait.
    """
    if extension(xp, "waits"):
        return True
    wide = "float32" if x.dtype.char == "e" else None
    return math.isfinite(abs(x.sum(dtype=wide)))


def _taps(kernel: Sizes, size: Sizes, stride: Sizes, dilation: Sizes) -> Iterator[tuple[Any, Any]]:
    """Yield the index of each element of a kernel, and that of the pixels that it multiplies."""
    for tap in itertools.product(*map(range, kernel)):
        starts = [t * d for t, d in zip(tap, dilation, strict=True)]
        pixels = [
            slice(start, start + (n - 1) * s + 1, s)
            for start, n, s in zip(starts, size, stride, strict=True)
        ]
        yield (..., *tap), (..., *pixels)


def correlate_by_taps(
    xp: Any, x: Array, w: Array, size: Sizes, stride: Sizes, dilation: Sizes, groups: int
) -> Array:
    """Return the cross-correlation of padded images (n, c, …) with kernels (o, c / groups, …)."""
    n, (o, c, *kernel) = len(x), w.shape
    w = w.reshape(groups, o // groups, c, *kernel)
    out = xp.zeros((n, groups, o // groups, math.prod(size)), x.dtype)
    for tap, pixels in _taps(tuple(kernel), size, stride, dilation):
        out += xp.matmul(w[tap], x[pixels].reshape(n, groups, c, -1))
    return out.reshape(n, o, *size)


def spread_by_taps(
    xp: Any, y: Array, w: Array, shape: Sizes, stride: Sizes, dilation: Sizes, groups: int
) -> Array:
    """Return the adjoint of `correlate_by_taps` with respect to padded images of a shape."""
    n, size, (o, c, *kernel) = len(y), y.shape[2:], w.shape
    w = w.reshape(groups, o // groups, c, *kernel).swapaxes(1, 2)
    y = y.reshape(n, groups, o // groups, -1)
    out = xp.zeros((n, groups * c, *shape), y.dtype)
    for tap, pixels in _taps(tuple(kernel), size, stride, dilation):
        out[pixels] += xp.matmul(w[tap], y).reshape(n, groups * c, *size)
    return out


def weight_by_taps(
    xp: Any, x: Array, y: Array, kernel: Sizes, stride: Sizes, dilation: Sizes, groups: int
) -> Array:
    """Return the adjoint of `correlate_by_taps` with respect to kernels of shape `kernel`."""
    n, o, size = len(y), y.shape[1] // groups, y.shape[2:]
    y = y.reshape(n, groups, o, -1)
    out = xp.empty((groups, o, x.shape[1] // groups, *kernel), x.dtype)
    for tap, pixels in _taps(kernel, size, stride, dilation):
        images = x[pixels].reshape(n, groups, -1, y.shape[-1])
        out[tap] = xp.matmul(y, images.swapaxes(-1, -2)).sum(0)
    return out.reshape(groups * o, -1, *kernel)


# --- kernels of one element -----------------------------------------------------------------------


def is_pointwise(x: Array, pad_before: Sizes | None, kernel: Sizes, size: Sizes) -> bool:
    """Return whether each pixel of the output comes from the same pixel of the image."""
    return math.prod(kernel) == 1 and x.shape[2:] == size and not any(pad_before or ())


def sampled(xp: Any, x: Array, pad_before: Sizes, size: Sizes, stride: Sizes) -> Array:
    """Return the pixels that kernels of one element see, in steps of the stride."""
    padded = tuple([(n - 1) * s + 1 for n, s in zip(size, stride, strict=True)])
    return pad_or_crop(xp, x, pad_before, padded)[(..., *[slice(None, None, s) for s in stride])]


def correlate_pixels(xp: Any, x: Array, w: Array, groups: int) -> Array:
    """Return the cross-correlation of images (n, c, …) with kernels (o, c / groups, 1, …)."""
    n, size = len(x), x.shape[2:]
    x = x.reshape(n, groups, -1, math.prod(size))
    matrices = w.reshape(groups, -1, w.shape[1])
    return _matmul(xp, xp.broadcast_to(matrices, (n, *matrices.shape)), x).reshape(n, -1, *size)


def weight_of_pixels(xp: Any, x: Array, y: Array, groups: int) -> Array:
    """Return the gradient of the kernels, (groups, o / groups, c / groups)."""
    n, pixels = len(x), math.prod(x.shape[2:])
    x = x.reshape(n, groups, -1, pixels).swapaxes(2, 3)
    y = y.reshape(n, groups, -1, pixels)
    inputs, outputs = x.shape[3], y.shape[2]
    if inputs * outputs > pixels * (inputs + outputs):  # a product of each sample is larger than it
        y = y.transpose(1, 2, 0, 3).reshape(groups, outputs, -1)
        return xp.matmul(y, x.swapaxes(0, 1).reshape(groups, -1, inputs))
    step = max(_MAX_PRODUCTS // (groups * inputs * outputs), 1)
    total = _matmul(xp, y[:step], x[:step]).sum(0)
    for i in range(step, n, step):
        total += _matmul(xp, y[i : i + step], x[i : i + step]).sum(0)
    return total


def _matmul(xp: Any, x: Array, y: Array) -> Array:
    return matmul(x, y) if xp is np else xp.matmul(x, y)


# --- kernels of the size of the images ------------------------------------------------------------


def is_single(shape: Sizes, pad_before: Sizes, kernel: Sizes, size: Sizes, dilation: Sizes) -> bool:
    """Return whether there is one window, which is the whole image."""
    return (
        shape == kernel
        and math.prod(size) == 1
        and not any(pad_before)
        and all([d == 1 or k == 1 for k, d in zip(kernel, dilation, strict=True)])
    )


def correlate_images(xp: Any, x: Array, w: Array, groups: int) -> Array:
    """Return the products (n, o, 1, …) of images and kernels of their size."""
    rows = x.reshape(len(x), groups, -1).swapaxes(0, 1)
    products = xp.matmul(rows, w.reshape(groups, len(w) // groups, -1).swapaxes(1, 2))
    return products.swapaxes(0, 1).reshape(len(x), len(w), *(1,) * (w.ndim - 2))


def spread_images(xp: Any, y: Array, w: Array, groups: int) -> Array:
    """Return the adjoint of `correlate_images` with respect to the images."""
    rows = y.reshape(len(y), groups, -1).swapaxes(0, 1)
    products = xp.matmul(rows, w.reshape(groups, len(w) // groups, -1))
    return products.swapaxes(0, 1).reshape(len(y), -1, *w.shape[2:])


def weight_of_images(xp: Any, x: Array, y: Array, groups: int) -> Array:
    """Return the adjoint of `correlate_images` with respect to the kernels."""
    columns = y.reshape(len(y), groups, -1).transpose(1, 2, 0)
    products = xp.matmul(columns, x.reshape(len(x), groups, -1).swapaxes(0, 1))
    return products.reshape(y.shape[1], -1, *x.shape[2:])
