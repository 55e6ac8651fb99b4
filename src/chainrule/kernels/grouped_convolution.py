"""The gradient of the kernels of many groups of few channels, as in depthwise convolution.

Matrix products of such groups have a row and a column or two. Sums of products over shifted images
read them where they are, for as many images at a time as fit in the cache. In a padded image with
flattened spatial axes, a shift by one pixel is a constant offset.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

Array = Any
Sizes = tuple[int, ...]

MAX_PAIRS = 4
"""Number of pairs of an input and an output of a group up to which this is faster."""

_BLOCK_ELEMENTS = 1 << 14
"""Number of elements of the images that are read at a time."""


def correlate_weight(
    xp: Any,
    x: Array,
    y: Array,
    target: Any,
    padded: Sizes,
    offsets: list[int],
    groups: int,
) -> Array:
    """Return the gradient of the kernels, (groups, outputs, inputs, elements).

    The images `x`, (n, c, …), are at `target` in the padding, the gradients `y` in its corner.
    `offsets` are those of the elements of the kernel.
    """
    rows, plane = len(x) * groups, math.prod(padded)
    block = max(1, min(rows, _BLOCK_ELEMENTS // plane))
    length = plane - offsets[-1]  # the last window begins at its last element
    sums = xp.empty(
        (rows, y.shape[1] // groups, x.shape[1] // groups, len(offsets)), xp.result_type(x, y)
    )
    corner = (..., *[slice(0, m) for m in y.shape[2:]])
    starts = range(0, rows, block)
    pairs = zip(
        _padded_blocks(xp, x, rows, block, target, padded),
        _padded_blocks(xp, y, rows, block, corner, padded),
        strict=True,
    )
    for start, (images, gradients) in zip(starts, pairs, strict=True):
        columns = gradients[:, :, :length, None]
        for t, offset in enumerate(offsets):
            products = xp.matmul(images[:, None, :, offset : offset + length], columns)
            sums[start : start + block, :, :, t] = products[..., 0]
    return sums.reshape(len(x), groups, *sums.shape[1:]).sum(0)


def _padded_blocks(
    xp: Any, x: Array, rows: int, block: int, target: Any, padded: Sizes
) -> Iterator[Array]:
    """Yield the images of a block of groups of samples, padded and flat; they share memory."""
    images = x.reshape(rows, -1, *x.shape[2:])
    flat = xp.zeros((block, images.shape[1], math.prod(padded)), x.dtype)
    interior = flat.reshape(*flat.shape[:2], *padded)[target]
    for start in range(0, rows, block):
        found = images[start : start + block]
        interior[: len(found)] = found
        yield flat[: len(found)]


def offsets_of(kernel: Sizes, units: Sizes) -> list[int]:
    """Return the offsets of the elements of a kernel, given those of a step in each dimension."""
    places = itertools.product(*map(range, kernel))
    return [sum(i * unit for i, unit in zip(place, units, strict=True)) for place in places]
