"""Kernel of the VJP of max pooling, for windows that don't overlap."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from chainrule.compiler.native.generic import u8
from chainrule.compiler.native.kernel import Kernel

Array = Any
Window = Any

TALL = WIDE = DOWN = RIGHT = 2  # height and width of windows, vertical and horizontal stride


def _max_pool_vjp(
    start: int,
    stop: int,
    g: Array,
    x: Array,
    out: Array,
    height: int,
    width: int,
    rows: int,
    columns: int,
    total: Array,
) -> None:
    """Write the cotangent of each window to the position of its first maximum."""
    for image in range(start, stop):
        base = image * height * width
        for j in range(u8(base), u8(base + height * width)):
            total[j] = 0
        for row in range(rows):
            first = base + row * DOWN * width
            at = u8((image * rows + row) * columns)
            for column in range(columns):
                window, found = at + u8(column), 0
                for a in range(TALL - 1, -1, -1):
                    for b in range(WIDE - 1, -1, -1):
                        place = first + a * width + column * RIGHT + b
                        found += (place - found) * int(x[u8(place)] == out[window])
                total[u8(found)] = g[window]


@lru_cache(32)
def _kernel(tall: int, wide: int, down: int, right: int) -> Kernel:
    kinds = "real real real n n n n real"
    return Kernel(_max_pool_vjp, kinds, TALL=tall, WIDE=wide, DOWN=down, RIGHT=right)


def max_pool_vjp(g: Array, x: Array, out: Array, *, window: Window) -> Array | None:
    kernel, stride, padding, dilation = window
    disjoint = all(d == 1 and s >= k for k, s, d in zip(kernel, stride, dilation, strict=True))
    if x.ndim != 4 or not disjoint or any(low or high > 0 for low, high in padding):
        return None
    if out.size == 0 or (top := np.maximum.reduce(out, None)) != top:  # nan
        return None
    total, pixels = np.empty(x.shape, g.dtype), x.shape[2] * x.shape[3]
    sizes = (*x.shape[2:], *out.shape[2:])
    images = x.size // pixels
    _kernel(*kernel, *stride)(g.dtype.char, images, pixels, g, x, out, *sizes, total)
    return total
