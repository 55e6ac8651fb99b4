"""Max pooling of planes as machine code: values, positions of the maxima, and their scatter.

The functions take what those of `kernels.pooling` take, and return None for what is not supported.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from chainrule.backend import numpy_xp
from chainrule.compiler.native.generic import u8
from chainrule.compiler.native.kernel import Kernel, is_plain
from chainrule.kernels import pooling
from chainrule.kernels.pooling import Sizes, Window

Array = Any

# Constants of the machine code: rows and columns of the kernel, strides, dilations, the number of
# windows in a row, which short loops need to have vector instructions, and whether windows fill the
# rows and columns that they span, without overlap.
TALL = WIDE = DOWN = RIGHT = ROW_STEP = COLUMN_STEP = COLUMNS = 1
IS_DENSE = 0


def _max_pool(
    start: int, stop: int, x: Array, height: int, width: int, rows: int, out: Array
) -> None:
    """Compute the maximum of each window, nan if it contains one."""
    for image in range(start, stop):
        for row in range(rows):
            first, at = (image * height + row * DOWN) * width, (image * rows + row) * COLUMNS
            for j in range(COLUMNS):
                best = x[first + j * RIGHT]
                for a in range(TALL):
                    for b in range(WIDE):
                        item = x[first + a * ROW_STEP * width + b * COLUMN_STEP + j * RIGHT]
                        best = item if (item > best) | (item != item) else best
                out[at + j] = best


def _pool_positions(
    start: int,
    stop: int,
    x: Array,
    out: Array,
    height: int,
    width: int,
    rows: int,
    found: Array,
    is_nan: Array,
) -> None:
    """Find the first maximum of each window, and whether some are nan."""
    for image in range(start, stop):
        for row in range(rows):
            first, at = (image * height + row * DOWN) * width, (image * rows + row) * COLUMNS
            unordered = 0
            for j in range(COLUMNS):
                best, place = out[at + j], TALL * WIDE - 1
                unordered += int(best != best)
                for a in range(TALL - 1, -1, -1):
                    for b in range(WIDE - 1, -1, -1):
                        item = x[first + a * ROW_STEP * width + b * COLUMN_STEP + j * RIGHT]
                        place = a * WIDE + b if item == best else place
                found[at + j] = place
            if unordered > 0:
                is_nan[0] = 1


def _pool_place(
    start: int,
    stop: int,
    g: Array,
    found: Array,
    height: int,
    width: int,
    rows: int,
    total: Array,
) -> None:
    """Scatter-add numbers at the positions of their windows."""
    for image in range(start, stop):
        for j in range(u8(image * height * width), u8((image + 1) * height * width)):
            total[j] = 0
        for a in range(TALL):
            for row in range(rows):
                at = (image * rows + row) * COLUMNS
                line = (image * height + row * DOWN + a * ROW_STEP) * width
                for j in range(COLUMNS if IS_DENSE else 0):
                    for b in range(WIDE):
                        item = g[at + j] if found[at + j] == a * WIDE + b else 0
                        total[line + j * WIDE + b] = item
                for b in range(0 if IS_DENSE else WIDE):
                    for j in range(COLUMNS):
                        item = g[at + j] if found[at + j] == a * WIDE + b else 0
                        total[line + b * COLUMN_STEP + j * RIGHT] += item


_KINDS = {
    _max_pool: "real n n n real",
    _pool_positions: "real real n n n {} i8",
    _pool_place: "real {} n n n real",
}


def _position_type(window: Window) -> str:
    """Return the type of positions, which NumPy's have, too."""
    return "u1" if math.prod(window[0]) <= 256 else "i4"


@lru_cache(64)
def _kernel(function: Any, window: Window, columns: int) -> Kernel:
    """Return the machine code of a function for a window."""
    sizes, strides, _, dilations = window
    kinds = _KINDS[function].format(_position_type(window))
    names = ("TALL", "WIDE", "DOWN", "RIGHT", "ROW_STEP", "COLUMN_STEP")
    numbers: dict[str, Any] = dict(zip(names, (*sizes, *strides, *dilations), strict=True))
    is_dense = int(sizes == strides and dilations == (1, 1))
    return Kernel(function, kinds, COLUMNS=columns, IS_DENSE=is_dense, **numbers)


def _run(function: Any, window: Window, size: Sizes, counts: Sizes, *arrays: Array) -> None:
    """Run a function for all planes of a size, with these numbers of windows."""
    images, pixels = math.prod(size[:2]), math.prod(size[2:])
    kernel = _kernel(function, window, counts[-1])
    count = 1 if function is _max_pool else 2
    flat = [array.ravel() for array in arrays]
    sizes = (*size[2:], counts[-2])
    kernel(arrays[0].dtype.char, images, pixels, *flat[:count], *sizes, *flat[count:])


def _are_supported(window: Window, first: Array, *others: Array) -> bool:
    known = first.ndim == 4 and first.size and first.dtype.char in "fd"
    return bool(known and len(window[0]) == 2 and all(map(is_plain, (first, *others))))


def max_pool(x: Array, *, window: Window) -> Array | None:
    """Return the maximum of each window; nan if the window contains one."""
    counts = pooling.window_counts(x.shape[2:], window)
    if not _are_supported(window, x) or min(counts) < 1:
        return None
    out = np.empty((*x.shape[:2], *counts), x.dtype)
    padded = pooling.padded(numpy_xp, x, window, -math.inf)
    _run(_max_pool, window, padded.shape, counts, padded, out)
    return out


def pool_positions(x: Array, out: Array, *, window: Window) -> Array | None:
    """Return the position of the maximum in each window: the first one, or the last nan."""
    if not _are_supported(window, x, out) or out.dtype != x.dtype or not out.size:
        return None
    found = np.empty(out.shape, _position_type(window))
    padded, is_nan = pooling.padded(numpy_xp, x, window, math.nan), np.zeros(1, np.int64)
    _run(_pool_positions, window, padded.shape, out.shape, padded, out, found, is_nan)
    return None if is_nan[0] else found


def pool_place(g: Array, positions: Array, *, size: Sizes, window: Window) -> Array | None:
    """Scatter-add `g` at its positions into images of this size."""
    if not _are_supported(window, g, positions) or positions.dtype != _position_type(window):
        return None
    spans = zip(size, window[2], strict=True)
    padded = [n + low + max(high, 0) for n, (low, high) in spans]
    total: Array = np.empty((*g.shape[:2], *padded), g.dtype)
    _run(_pool_place, window, total.shape, g.shape, g, positions, total)
    if total.shape[2:] == tuple(size):
        return total
    inside = [slice(low, low + n) for n, (low, _) in zip(size, window[2], strict=True)]
    return np.ascontiguousarray(total[(..., *inside)])


def max_pool_vjp(g: Array, x: Array, out: Array, *, window: Window) -> Array | None:
    """Return `pool_place` of `g` at `pool_positions`."""
    positions = pool_positions(x, out, window=window)
    return None if positions is None else pool_place(g, positions, size=x.shape[2:], window=window)
