"""Faster formulations of NumPy functions for large arrays, in terms of other NumPy functions.

Times for a million float32 on one core, in ms: `np.add.reduce` 0.13, `np.einsum` by rows 0.045;
sums of ten columns 1.2, a product with ones 0.12; `np.where` with a random mask 3.8, bit patterns
0.37; `np.maximum` with a number 0.30, `clip` with two bounds 0.08; `np.cumsum` 2.9, products with a
triangle of ones 0.9. `benchmarks/kernels.py` measures the complete operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from chainrule.interrupts import errstate

Array = Any

_ROW_LENGTH = 512
"""Number of elements in each partial sum: einsum is then about as precise as pairwise summation."""

_SEGMENT_LENGTH = 32
"""Number of elements in a segment of a cumulative sum whose row no better length divides."""

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
    step = _DOT_MAX_ELEMENTS // x.shape[1]
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


_DOT_MAX_ELEMENTS = 1 << 15
"""Number of elements up to which OpenBLAS computes a product in one thread."""

_NARROW_MAX_COLUMNS = 256
"""Number of columns up to which NumPy's overhead for each row exceeds the additions."""


_BLOCK_MAX_COLUMNS = 1024
"""Number of columns up to which products with ones are faster where no memory has to be read."""


def is_transposed(x: Array) -> bool:
    """Return whether a matrix is in Fortran order and large enough for `transposed`."""
    return bool(
        x.flags.f_contiguous
        and min(x.shape) >= 2 * _TILE_ROWS
        and x.size >= _PARALLEL_MIN_ELEMENTS >> 5
    )


def transposed(x: Array) -> Array:
    """Return a C-ordered copy of a Fortran-ordered matrix, tile by tile.

    NumPy copies row by row and reads one element of each cache line, which is evicted before the
    next row needs it: twice as slow for ten million elements.
    """
    out = np.empty(x.shape, x.dtype)

    def part(i: int) -> None:
        rows = slice(i * _TILE_ROWS, (i + 1) * _TILE_ROWS)
        for j in range(0, x.shape[1], _TILE_COLUMNS):
            out[rows, j : j + _TILE_COLUMNS] = x[rows, j : j + _TILE_COLUMNS]

    _for_each_part(part, -(-len(x) // _TILE_ROWS), x.size)
    return out


_TILE_ROWS, _TILE_COLUMNS = 128, 64
"""Shape of a tile of `transposed`, which fits into the first-level cache."""


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


def has_many_sequences(x: Array, axis: int) -> bool:
    """Return whether an array is accumulated for all sequences along an axis at a time."""
    n: int = x.shape[axis]
    if n == 0 or x.size < _MIN_SEQUENCES * n:
        return False
    return n <= _MAX_STEPS if axis == x.ndim - 1 else math.prod(x.shape[axis + 1 :]) >= _MIN_ROW


def accumulated(ufunc: Any, x: Array, axis: int, *, backwards: bool = False) -> Array:
    """Return the accumulation along an axis, one step for all sequences after the other.

    NumPy goes along each sequence and waits for every addition: 0.34 ms for 2,000 of 50 float64,
    and 0.14 for all at a time. The order of the additions is the same.
    """
    out = np.array(x, order="C")
    sequences = out if axis == x.ndim - 1 else out.swapaxes(axis, -1)
    step = _SEQUENCES_AT_A_TIME if sequences is out else len(sequences)
    sequences = out.reshape(-1, x.shape[axis]) if sequences is out else sequences
    numbers = range(1, x.shape[axis])
    for first in range(0, len(sequences), step):  # those at hand stay in the cache
        block = sequences[first : first + step]
        for i in numbers:
            i, before = (-1 - i, -i) if backwards else (i, i - 1)
            ufunc(block[..., before], block[..., i], out=block[..., i])
    return out


_MIN_SEQUENCES = 512
"""Number of sequences from which accumulating all of them step by step pays."""

_MAX_STEPS = 256
"""Length up to which sequences along the last axis are accumulated together."""

_MIN_ROW = 64
"""Number of contiguous elements of a step along another axis from which it pays."""

_SEQUENCES_AT_A_TIME = 4096
"""Number of sequences along the last axis that are accumulated together."""


@errstate(all="ignore")
def cumulative_sum(x: Array, *, backwards: bool = False) -> Array | None:
    """Return cumulative sums along the last axis by matrix products, or None for infinite sums.

    A segment of a row times a triangle of ones gives its cumulative sums, once the sum of the
    preceding segments is added to its first element. An infinity would make the whole segment nan,
    since 0 * inf is nan; None is returned then.
    """
    n = x.shape[-1]
    length = next((k for k in range(48, 23, -1) if n % k == 0), _SEGMENT_LENGTH)
    count = -(-n // length)
    rows = np.empty((x.size // n, count * length), x.dtype)
    rows[:, :n] = x.reshape(-1, n)
    rows[:, n:] = 0
    segments = rows.reshape(-1, count, length)
    carried = np.cumsum(np.einsum("ijk->ij", segments)[:, :: -1 if backwards else 1], axis=1)
    if not np.isfinite(carried[:, -1]).all():
        return None
    if backwards:
        segments[:, :-1, -1] += carried[:, -2::-1]
    else:
        segments[:, 1:, 0] += carried[:, :-1]
    sums = segments.reshape(-1, length) @ _triangle(length, x.dtype.char, backwards)
    sums = sums.reshape(rows.shape)[:, :n]
    return np.ascontiguousarray(sums).reshape(x.shape)


@cache
def _triangle(length: int, char: str, backwards: bool) -> Array:
    upper = np.triu(np.ones((length, length), char))
    return upper.T.copy() if backwards else upper


def cumulative_sum_vjp(xp: Any, g: Array, *, axis: int) -> Array:
    """Return the adjoint of `cumulative_sum`: cumulative sums from the end of an axis."""
    if g.size >= 4096 and axis == g.ndim - 1 and g.shape[-1] >= 64:
        found = cumulative_sum(g, backwards=True)
        if found is not None:
            return found
    if has_many_sequences(g, axis):
        return accumulated(np.add, g, axis, backwards=True)
    return np.flip(np.cumulative_sum(np.flip(g, axis), axis=axis), axis).copy()


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


def sequence_products(x: Array) -> Array:
    """Return the products along the last axis, for all sequences at a time."""
    sequences = x.reshape(-1, x.shape[-1])
    out = sequences[:, 0].copy()
    for first in range(0, len(sequences), _SEQUENCES_AT_A_TIME):
        block = slice(first, first + _SEQUENCES_AT_A_TIME)
        product = out[block]
        for i in range(1, x.shape[-1]):
            product *= sequences[block, i]
    return out.reshape(x.shape[:-1])


_MIN_TRANSPOSED = 6
"""Length of sequences from which several passes pay for a copy with contiguous steps."""


def row_products_of_others(xp: Any, rows: Array) -> Array:
    """Return for each element the product of those before it in its row, times that of those after.

    The multiplications are those of the formula, to the bit, but in two passes for many rows.
    """
    out = np.empty(rows.shape, rows.dtype)
    if not has_many_sequences(rows, 1):
        np.cumprod(rows[:, :-1], 1, out=out[:, 1:])
        out[:, 0] = 1
        out[:, :-1] *= np.cumprod(rows[:, :0:-1], 1)[:, ::-1]
        return out
    for first in range(0, len(rows), _SEQUENCES_AT_A_TIME):
        block = rows[first : first + _SEQUENCES_AT_A_TIME].T
        products = out[first : first + _SEQUENCES_AT_A_TIME].T
        if len(block) >= _MIN_TRANSPOSED:
            block, products = np.ascontiguousarray(block), np.empty(block.shape, block.dtype)
        products[0] = 1
        for i in range(1, len(block)):
            np.multiply(products[i - 1], block[i - 1], out=products[i])
        after = np.ones(block.shape[1], block.dtype)
        for i in range(len(block) - 2, -1, -1):
            after *= block[i + 1]
            products[i] *= after
        out[first : first + _SEQUENCES_AT_A_TIME] = products.T
    return out


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
