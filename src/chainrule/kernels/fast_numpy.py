"""Faster formulations of NumPy functions for large arrays, in terms of other NumPy functions.

Times for a million float32 on one core, in ms: `np.add.reduce` 0.13, `np.einsum` by rows 0.045;
sums of ten columns 1.2, a product with ones 0.12; `np.where` with a random mask 3.8, bit patterns
0.37; `np.maximum` with a number 0.30, `clip` with two bounds 0.08; `np.cumsum` 2.9, products with a
triangle of ones 0.9. `benchmarks/kernels.py` measures the complete operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

Array = Any

_ROW_LENGTH = 512
"""Number of elements in each partial sum: einsum is then about as precise as pairwise summation."""


BIT_PATTERNS = {"e": np.int16, "f": np.int32, "d": np.int64}
"""Integer types of the same width as floating types, by type character."""


_PARALLEL_MIN_ELEMENTS = 1 << 22
"""Number of elements from which one thread cannot use the full memory bandwidth."""


def total(x: Array) -> Array:
    """Return the sum of all elements of a contiguous array."""
    flat = x.reshape(-1)
    end = flat.size - flat.size % _ROW_LENGTH
    rows = flat[:end].reshape(-1, _ROW_LENGTH)
    sums = np.empty(len(rows), x.dtype)
    if x.size < _PARALLEL_MIN_ELEMENTS:
        _fill_row_sums(np, sums, rows)
    else:
        from chainrule.kernels import parallel  # keeps import chainrule fast

        parallel.parallel_fill(_fill_row_sums, np, (sums, rows), {}, by_rows=True)
    return np.add.reduce(sums) + np.add.reduce(flat[end:])


def _fill_row_sums(xp: Any, out: Array, rows: Array) -> None:
    xp.einsum("ij->i", rows, out=out)


def column_sums(x: Array) -> Array:
    """Return the sums along the first axis of a large matrix, by partial sums of blocks of rows.

    The blocks do not depend on the number of threads, so neither does the result.
    """
    from chainrule.kernels import parallel, threads

    step = max(parallel.PART_MAX_ELEMENTS // x.shape[1], 1)
    sums = np.empty((-(-len(x) // step), x.shape[1]), x.dtype)
    threads.parallel_for(
        lambda i: np.add.reduce(x[i * step : (i + 1) * step], 0, out=sums[i]), range(len(sums))
    )
    return np.add.reduce(sums, 0)


def has_narrow_columns(x: Array) -> bool:
    """Return whether column sums of a matrix are computed as products with ones."""
    return bool(
        x.dtype.isnative and (x.size < _DOT_MAX_ELEMENTS or x.shape[1] <= _NARROW_MAX_COLUMNS)
    )


def narrow_column_sums(x: Array) -> Array:
    """Return the column sums of a small or narrow matrix, as BLAS products with ones.

    Nothing is multiplied by 0, so infinities stay in their columns. Each product is too small for
    the BLAS to parallelise, so the result does not depend on its number of threads.
    """
    columns = x.shape[1]
    if columns <= _FEW_COLUMNS and x.size >= _DOT_MAX_ELEMENTS >> 1:
        count = _WIDE_ROW // columns  # of rows side by side
        end = len(x) - len(x) % count
        wide = narrow_column_sums(x[:end].reshape(-1, count * columns))
        rows = (wide.reshape(count, columns), x[end:])
        return narrow_column_sums(np.concatenate(rows))
    step = _DOT_MAX_ELEMENTS // columns
    if len(x) <= step:
        return _ones(len(x), x.dtype.char).dot(x)
    sums, ones = np.empty((-(-len(x) // step), x.shape[1]), x.dtype), _ones(step, x.dtype.char)

    def part(i: int) -> None:
        block = x[i * step : (i + 1) * step]
        ones[: len(block)].dot(block, out=sums[i])

    _for_each_part(part, len(sums), x.size)
    return narrow_column_sums(sums)


def block_column_sums(x: Array) -> Array:
    """Return the column sums of a block of a matrix that is in the cache."""
    if x.dtype.isnative and x.shape[1] <= _BLOCK_MAX_COLUMNS:
        return narrow_column_sums(x)
    return np.add.reduce(x, 0)


def has_small_matrices(x: Array) -> bool:
    """Return whether column sums of a stack of matrices are computed as products with ones."""
    return bool(x.dtype.isnative and x.shape[1] * x.shape[2] < _DOT_MAX_ELEMENTS)


def stacked_column_sums(x: Array) -> Array:
    """Return the column sums of each of a stack of small matrices, as products with ones.

    A million float32 as 4,000 × 25 × 10 take 0.2 ms, where NumPy adds 100,000 rows of ten in 1.7.
    """
    return np.matmul(_ones(x.shape[1], x.dtype.char), x)


def between_axes(x: Array, axis: tuple[int, ...]) -> tuple[int, int] | None:
    """Return where the axes between two groups of axes at both ends begin and end, if that pays.

    Sums over the first axes add rows as they lie, where NumPy adds up each of many short rows.
    """
    ndim, shape = x.ndim, x.shape
    if x.size < _ENDS_MIN_ELEMENTS or axis[0] != 0 or shape[0] < 4:
        return None
    first = 1
    while axis[first] == first:
        first += 1
    last = ndim - len(axis) + first
    if axis[first:] != tuple(range(last, ndim)) or math.prod(shape[last:]) > _ENDS_MAX_ROW:
        return None
    return first, last


def _for_each_part(part: Callable[[int], None], count: int, size: int) -> None:
    """Run all parts of a computation on `size` elements, in parallel if that is large."""
    if size < _PARALLEL_MIN_ELEMENTS:
        for i in range(count):
            part(i)
    else:
        from chainrule.kernels import threads  # keeps import chainrule fast

        threads.parallel_for(part, range(count))


@lru_cache(16)
def _ones(n: int, char: str) -> Array:
    return np.ones(n, char)


_ENDS_MIN_ELEMENTS, _ENDS_MAX_ROW = 8192, 2048
"""Number of elements from which sums over both ends of the axes begin with the first ones, and up
to which many of them the last axes may have."""

_DOT_MAX_ELEMENTS = 1 << 15
"""Number of elements up to which OpenBLAS computes a product in one thread."""

_FEW_COLUMNS, _WIDE_ROW = 16, 50
"""Number of columns up to which rows are put side by side, and the length that these have then."""

_NARROW_MAX_COLUMNS = 256
"""Number of columns up to which NumPy's overhead for each row exceeds the additions."""


_BLOCK_MAX_COLUMNS = 1024
"""Number of columns up to which products with ones are faster where no memory has to be read."""


def is_transposed(x: Array) -> bool:
    """Return whether a matrix is in Fortran order and large enough for `transposed`."""
    size = x.size
    return bool(
        size >= _TRANSPOSED_MIN_ELEMENTS
        and x.ndim == 2
        and x.flags.f_contiguous
        and (_columns_collide(x) or (size >> 1 >= _TRANSPOSED_MIN_ELEMENTS and min(x.shape) >= 64))
    )


def _columns_collide(x: Array) -> bool:
    """Return whether a row of a tile lies in more lines of the first-level cache than it has.

    It is so if columns are apart by a multiple of a large power of two.
    """
    apart: int = math.gcd(x.strides[1], _WAY_BYTES)
    return bool(min(x.shape[1], _TILE_COLUMNS) * apart > _WAY_BYTES * _WAYS)


def transposed(x: Array) -> Array:
    """Return a C-ordered copy of a Fortran-ordered matrix, tile by tile.

    NumPy copies row by row and reads one element of each cache line, which is evicted before the
    next row needs it: twice as slow for ten million elements. Columns that collide are copied to
    places further apart before: 128×1024 take 59 µs in place of 367.
    """
    out = np.empty(x.shape, x.dtype)
    length, width = x.shape
    if _columns_collide(x):

        def part(i: int) -> None:
            columns = slice(i * _TILE_COLUMNS, (i + 1) * _TILE_COLUMNS)
            block = x[:, columns].T
            spread = np.empty((len(block), length + 64 // x.itemsize), x.dtype)[:, :length]
            spread[...] = block
            out[:, columns] = spread.T

        _for_each_part(part, -(-width // _TILE_COLUMNS), x.size)
        return out

    def tile_row(i: int) -> None:
        rows = slice(i * _TILE_ROWS, (i + 1) * _TILE_ROWS)
        for j in range(0, width, _TILE_COLUMNS):
            out[rows, j : j + _TILE_COLUMNS] = x[rows, j : j + _TILE_COLUMNS]

    _for_each_part(tile_row, -(-length // _TILE_ROWS), x.size)
    return out


_TILE_ROWS, _TILE_COLUMNS = 128, 64
"""Shape of a tile of `transposed`, which fits into the first-level cache."""

_TRANSPOSED_MIN_ELEMENTS = 1 << 13
"""Number of elements from which copies of colliding columns pay; of others, twice as many."""

_WAY_BYTES, _WAYS = 4096, 8
"""Bytes of a way of the first-level cache, and number of its ways."""


def has_short_rows(x: Array) -> bool:
    """Return whether sums along the last axis are computed by `row_sums`."""
    n = x.shape[-1]
    if n < _SHORT_ROW_LENGTH:
        return bool(n > 1 and x.size >= _MIN_SHORT_ROWS * n and x.dtype.isnative)
    return bool(n <= 2048 and x.size >= _DOT_MAX_ELEMENTS)


def row_sums(x: Array) -> Array:
    """Return the sums along the last axis, of at most a few thousand elements each.

    Very short rows are summed as products with ones, as narrow columns are: 0.05 ms for 90,000 rows
    of three, where NumPy runs 90,000 loops in 1.0 ms.
    """
    n = x.shape[-1]
    if n >= _SHORT_ROW_LENGTH:
        return np.einsum("...j->...", x)
    rows, ones, step = x.reshape(-1, n), _ones(n, x.dtype.char), _DOT_MAX_ELEMENTS // n
    sums = np.empty(len(rows), x.dtype)

    def part(i: int) -> None:
        block = slice(i * step, (i + 1) * step)
        rows[block].dot(ones, out=sums[block])

    _for_each_part(part, -(-len(rows) // step), x.size)
    return sums.reshape(x.shape[:-1])


def row_products(x: Array, weight: Array | None = None) -> Array:
    """Return the product of each row of a matrix with a vector; without one, the sum of each row.

    A single BLAS product is too small for the BLAS to parallelise, as in `narrow_column_sums`.
    """
    if weight is None:
        weight = _ones(x.shape[1], x.dtype.char)
    step = max(_DOT_MAX_ELEMENTS // x.shape[1], 1)
    if len(x) <= step:
        return x.dot(weight)
    products = np.empty(len(x), x.dtype.char)
    for i in range(0, len(x), step):
        x[i : i + step].dot(weight, out=products[i : i + step])
    return products


def block_row_sums(x: Array) -> Array:
    """Return the row sums of a block of a matrix."""
    n = x.shape[1]
    if n < _ROW_LENGTH:
        return row_products(x)
    return np.einsum("ij->i", x) if n <= MAX_PLAIN_SUM else np.add.reduce(x, 1)


MAX_PLAIN_SUM = 2048
"""Number of elements up to which a sum needs no pairwise additions for its precision."""


_SHORT_ROW_LENGTH = 32
"""Number of elements below which rows are summed as products with ones."""

_MIN_SHORT_ROWS = 256
"""Number of short rows from which such products pay."""


def where(condition: Array, x: Array, y: Array) -> Array:
    """Return x where the condition holds, else y, for arrays of one shape, without branches.

    The difference (xor) of the two bit patterns is multiplied by 1 or 0.
    """
    integer = BIT_PATTERNS[x.dtype.char]
    other = y.view(integer)
    bits = np.bitwise_xor(x.view(integer), other)
    np.multiply(bits, condition, out=bits)
    return np.bitwise_xor(bits, other, out=bits).view(x.dtype)


def last_positions(mask: Array) -> Array | None:
    """Return for each element the last position so far, along the last axis, where a mask is True.

    The first of each row must be. None if many are: runs of the same position are short then.
    """
    if mask.__class__ is not np.ndarray or mask.size < _MIN_RUN_ELEMENTS:
        return None
    starts = np.flatnonzero(mask)
    if starts.size * _MIN_RUN > mask.size:
        return None
    positions = starts % mask.shape[-1]
    return np.repeat(positions, np.diff(starts, append=mask.size)).reshape(mask.shape)


_MIN_RUN_ELEMENTS = 1024
"""Number of elements from which runs of one position are looked for."""

_MIN_RUN = 8
"""Mean length of runs from which repeating their positions pays."""


def roll(x: Array, shift: Any, axis: Any) -> Array:
    """Return `np.roll`, which takes 4 µs to build the keys, of a tuple of one shift and axis."""
    if axis.__class__ is not tuple or len(axis) != 1 or axis[0] < 0 or not x.size:
        return np.roll(x, shift, axis)
    start, before = shift[0] % x.shape[axis[0]], (slice(None),) * axis[0]
    out = np.empty(x.shape, x.dtype)
    out[(*before, slice(start, None))] = x[(*before, slice(x.shape[axis[0]] - start))]
    if start:
        out[(*before, slice(start))] = x[(*before, slice(-start, None))]
    return out
