"""Reading and adding along the last axis, a few rows at a time.

The positions of some rows stay in the cache, in memory that is used again for the next ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule.kernels import flat_indexing
from chainrule.kernels.parallel import share

Array = Any

_INDEX = np.dtype(np.intp)

_SOME = 1 << 16
"""So many positions are worked out at a time."""


class _OutsideError(Exception):
    """A number in an index is negative, or none of the axis."""


def fits(x_shape: tuple[int, ...], index: Array) -> bool:
    """Say whether an index along the last axis has all rows of an array."""
    return bool(
        index.dtype == _INDEX
        and index.size
        and (index.shape == x_shape or index.shape[:-1] == x_shape[:-1])
        and index.flags.c_contiguous
    )


def index_along_last(x_shape: tuple[int, ...], key: Any) -> Array | None:
    """Return the index along the last axis if that is what the index of all axes says."""
    if key.__class__ is not tuple or len(key) != len(x_shape) or len(key) < 2:
        return None
    index: Array = key[-1]
    if index.__class__ is not np.ndarray or not fits(x_shape, index):
        return None
    after = len(key) - 1
    for length, part in zip(x_shape, key[:-1], strict=False):
        known = flat_indexing.counts(length, after)
        after -= 1
        if part is known:
            continue
        if part.__class__ is not np.ndarray or part.shape != known.shape or (part != known).any():
            return None
    return index


def gathered(x: Array, index: Array) -> Array | None:
    """Return what `x` holds at an index along the last axis, both in C order; None if outside."""
    out = np.empty(index.shape, x.dtype)
    rows = (out.reshape(-1, index.shape[-1]), x.reshape(-1, x.shape[-1]))
    try:
        share(_gather, np, (*rows, index.reshape(rows[0].shape)), {}, by_rows=True)
    except _OutsideError:
        return None
    return out


def _gather(xp: Any, out: Array, x: Array, index: Array) -> None:
    for some, places in _places(index, x.shape[1]):
        if not _inside(index[some], x.shape[1]):
            raise _OutsideError
        # "wrap" looks for no wrong ones, and writes to `out` itself
        x[some].reshape(-1).take(places, mode="wrap", out=out[some])


def added(out: Array, index: Array, value: Array) -> bool:
    """Add `value` to what is at an index along the last axis, repeated ones adding up.

    Say whether that could be done: if not, nothing has been.
    """
    if not _inside(index, out.shape[-1]):
        return False
    rows = out.reshape(-1, out.shape[-1])
    index = index.reshape(-1, index.shape[-1])
    value = value.reshape(index.shape)
    for some, places in _places(index, rows.shape[1]):
        np.add.at(rows[some].reshape(-1), places.reshape(-1), value[some].reshape(-1))
    return True


def _inside(index: Array, length: int) -> bool:
    return bool(np.maximum.reduce(index.view(np.uintp), axis=None) < length)  # nor negative


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
