"""Gather and scatter-add along the last axis, in chunks of rows, and sums of its windows.

The flat positions of a chunk stay in the cache: all chunks use the same buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule.kernels import flat_indexing
from chainrule.kernels.parallel import parallel_fill

Array = Any

_INDEX = np.dtype(np.intp)

_CHUNK_POSITIONS = 1 << 16
"""Number of flat positions computed at a time."""


class _OutOfRangeError(Exception):
    """An index is negative or out of bounds."""


def covers_rows(x_shape: tuple[int, ...], index: Array) -> bool:
    """Return whether an index along the last axis covers all rows of an array."""
    return bool(
        index.dtype == _INDEX
        and index.size
        and (index.shape == x_shape or index.shape[:-1] == x_shape[:-1])
        and index.flags.c_contiguous
    )


def index_along_last(x_shape: tuple[int, ...], key: Any) -> Array | None:
    """Return the index along the last axis that is equivalent to a full index, or None."""
    if key.__class__ is not tuple or len(key) != len(x_shape) or len(key) < 2:
        return None
    index: Array = key[-1]
    if index.__class__ is not np.ndarray or not covers_rows(x_shape, index):
        return None
    after = len(key) - 1
    for length, part in zip(x_shape, key[:-1], strict=False):
        known = flat_indexing.axis_range(length, after)
        after -= 1
        if part is known:
            continue
        if part.__class__ is not np.ndarray or part.shape != known.shape or (part != known).any():
            return None
    return index


def gather_along_last(x: Array, index: Array) -> Array | None:
    """Return `x` at a C-contiguous index along the last axis; None if out of range."""
    out = np.empty(index.shape, x.dtype)
    if not any(x.strides):  # one number, broadcast: the cotangent of a sum
        if not _in_range(index, x.shape[-1]):
            return None
        out.fill(x[(0,) * x.ndim])
        return out
    if not x.flags.c_contiguous:
        if x.size > 4 * index.size:
            return None
        x = np.ascontiguousarray(x)
    rows = (out.reshape(-1, index.shape[-1]), x.reshape(-1, x.shape[-1]))
    try:
        parallel_fill(_gather, np, (*rows, index.reshape(rows[0].shape)), {}, by_rows=True)
    except _OutOfRangeError:
        return None
    return out


def _gather(xp: Any, out: Array, x: Array, index: Array) -> None:
    for chunk, positions in _flat_positions(index, x.shape[1]):
        if not _in_range(index[chunk], x.shape[1]):
            raise _OutOfRangeError
        # mode="wrap" skips the bounds check and writes to `out` without a buffer.
        x[chunk].reshape(-1).take(positions, mode="wrap", out=out[chunk])


def add_along_last(out: Array, index: Array, value: Array) -> bool:
    """Add `value` at an index along the last axis, accumulating repeated indices.

    Return False, with `out` unchanged, if an index is out of range.
    """
    if not _in_range(index, out.shape[-1]):
        return False
    rows = out.reshape(-1, out.shape[-1])
    index = index.reshape(-1, index.shape[-1])
    value = value.reshape(index.shape)
    product = flat_indexing.vector_product(out, value)
    for chunk, positions in _flat_positions(index, rows.shape[1]):
        part = rows[chunk].reshape(-1), positions.reshape(-1), value[chunk].reshape(-1)
        flat_indexing.add_each(product, *part)
    return True


def assign_along_last(out: Array, index: Array, value: Array) -> bool:
    """Write `value` at an index along the last axis; of repeated indices the last value stays.

    Return False, with `out` unchanged, if an index is out of range.
    """
    if not _in_range(index, out.shape[-1]):
        return False
    rows = [array.reshape(-1, array.shape[-1]) for array in (out, index, value)]
    parallel_fill(_assign, np, tuple(rows), {}, by_rows=True)
    return True


def _assign(xp: Any, out: Array, index: Array, value: Array) -> None:
    for chunk, positions in _flat_positions(index, out.shape[1]):
        out[chunk].reshape(-1)[positions] = value[chunk]


def lasting(key: Any, shape: tuple[int, ...]) -> Array | None:
    """Return the mask of assigned values that no later one overwrites; None if all survive."""
    index = index_along_last(shape, key)
    if index is None or not _in_range(index, shape[-1]):
        return flat_indexing.lasting(key, shape)
    survives = np.empty(index.shape, np.bool_)
    rows = survives.reshape(-1, index.shape[-1]), index.reshape(-1, index.shape[-1])
    parallel_fill(_lasting, np, rows, {"length": shape[-1]}, by_rows=True)
    return None if survives.all() else survives


def _lasting(xp: Any, survives: Array, index: Array, *, length: int) -> None:
    for chunk, positions in _flat_positions(index, length):
        rows = survives[chunk]
        rows[...] = flat_indexing.last_writers(positions, len(rows) * length)


def sum_of_windows(
    xp: Any, g: Array, *, shape: tuple[int, ...], size: int, step: int, key: Any
) -> Array:
    """Return the sum of windows of the last axis, `step` apart, each at its place.

    At each element, they are added in their order.
    """
    out = np.zeros(shape, g.dtype)
    count = g.shape[-2]
    if count <= size:
        for i in range(count):
            out[..., i * step : i * step + size] += g[..., i, :]
    else:
        end = (count - 1) * step + 1
        for i in reversed(range(size)):
            out[..., i : i + end : step] += g[..., i]
    return out


def _in_range(index: Array, length: int) -> bool:
    """Return whether an index, of numbers that are not negative, is in range."""
    return bool(
        np.maximum.reduce(index.view(np.uintp), axis=None) < length
    )  # as unsigned, a negative number is large


def _flat_positions(index: Array, length: int) -> Iterator[tuple[slice, Array]]:
    """Yield a slice of rows, and the flat positions in them that the index selects."""
    count, width = index.shape
    step = min(max(_CHUNK_POSITIONS // width, 1), count)
    starts = np.arange(0, step * length, length).reshape(-1, 1)
    buffer = np.empty((step, width), np.intp)
    for first in range(0, count, step):
        part = index[first : first + step]
        found = buffer[: len(part)]
        np.add(part, starts[: len(part)], out=found)
        yield slice(first, first + step), found
