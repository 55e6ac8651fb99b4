"""Reading and adding along the last axis, a few rows at a time.

The positions of some rows stay in the cache, in memory that is used again for the next ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule.kernels.blocks import share

Array = Any

_SOME = 1 << 16
"""So many positions are worked out at a time."""


def fits(x_shape: tuple[int, ...], index: Array) -> bool:
    """Say whether an index along the last axis has all rows of an array, and is no wrong one."""
    return bool(
        index.dtype == np.intp
        and index.size
        and index.shape[:-1] == x_shape[:-1]
        and index.flags.c_contiguous
        and np.maximum.reduce(index.view(np.uintp), axis=None) < x_shape[-1]  # or negative
    )


def gathered(x: Array, index: Array) -> Array:
    """Return what `x` holds at an index along the last axis, both in C order."""
    out = np.empty(index.shape, x.dtype)
    rows = (out.reshape(-1, index.shape[-1]), x.reshape(-1, x.shape[-1]))
    share(_gather, np, (*rows, index.reshape(rows[0].shape)), {}, by_rows=True)
    return out


def _gather(lib: Any, out: Array, x: Array, index: Array) -> None:
    for some, places in _places(index, x.shape[1]):
        # "wrap" looks for no wrong ones, and writes to `out` itself
        x[some].reshape(-1).take(places, mode="wrap", out=out[some])


def added(out: Array, index: Array, value: Array) -> None:
    """Add `value` to what is at an index along the last axis, repeated ones adding up."""
    rows = out.reshape(-1, out.shape[-1])
    index = index.reshape(-1, index.shape[-1])
    value = value.reshape(index.shape)
    for some, places in _places(index, rows.shape[1]):
        np.add.at(rows[some].reshape(-1), places.reshape(-1), value[some].reshape(-1))


def _places(index: Array, length: int) -> Iterator[tuple[slice, Array]]:
    """Yield some rows, and where in their memory the elements are that the index picks."""
    count, width = index.shape
    step = min(max(_SOME // width, 1), count)
    starts = np.arange(0, step * length, length).reshape(-1, 1)
    buffer = np.empty((step, width), np.intp)
    for first in range(0, count, step):
        part = index[first : first + step]
        found = buffer[: len(part)]
        np.add(part, starts[: len(part)], out=found)
        yield slice(first, first + step), found
