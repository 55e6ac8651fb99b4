"""NumPy functions of large arrays, by other NumPy functions that take a fraction of the time.

What a million float32 took on one core, in ms: `np.add.reduce` 0.13, `np.einsum` in rows 0.045,
along the columns of ten 1.2, ones times these 0.12;
`np.where` under a random mask 3.8, bit patterns 0.37; `np.maximum` with a number 0.30, `clip` with
two 0.08; `np.cumsum` 2.9, products with a triangle of ones 0.9. `benchmarks/kernels.py` has the
whole operations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

Array = Any

_ROW = 512  # einsum adds so many numbers in a few running sums: about as precise as in pairs
_SEGMENT = 32

BIT_PATTERNS = {"e": np.int16, "f": np.int32, "d": np.int64}


_SHARED = 1 << 22
"""From so many elements on, one thread can't read as fast as the memory gives."""


def total(x: Array) -> Array:
    """Return the sum of all numbers, of an array whose elements lie side by side."""
    flat = x.reshape(-1)
    whole = flat.size - flat.size % _ROW
    rows = flat[:whole].reshape(-1, _ROW)
    sums = np.empty(len(rows), x.dtype)
    if x.size < _SHARED:
        _fill_row_sums(np, sums, rows)
    else:
        from chainrule.kernels import parallel  # not when chainrule is imported

        parallel.share(_fill_row_sums, np, (sums, rows), {}, by_rows=True)
    return np.add.reduce(sums) + np.add.reduce(flat[whole:])


def _fill_row_sums(xp: Any, out: Array, rows: Array) -> None:
    xp.einsum("ij->i", rows, out=out)


def column_sums(x: Array) -> Array:
    """Return the sums along the first axis of a large matrix: of some rows each, and then of these.

    Which rows does not depend on the number of threads, nor does the result.
    """
    from chainrule.kernels import parallel, threads

    step = max(parallel.PART // x.shape[1], 1)
    sums = np.empty((-(-len(x) // step), x.shape[1]), x.dtype)
    threads.each(
        lambda i: np.add.reduce(x[i * step : (i + 1) * step], 0, out=sums[i]), range(len(sums))
    )
    return np.add.reduce(sums, 0)


def are_narrow(x: Array) -> bool:
    """Say whether the columns of a matrix are summed by products with ones."""
    return bool(x.dtype.isnative and (x.size < _PRODUCT or x.shape[1] <= _NARROW))


def narrow_column_sums(x: Array) -> Array:
    """Return the same of a small or narrow matrix: products with ones, by the BLAS.

    Nothing is multiplied by 0, so infinities stay in their columns. Each product is too small for
    the BLAS to share, so the result does not depend on its threads.
    """
    step = _PRODUCT // x.shape[1]
    if len(x) <= step:
        return _ones(len(x), x.dtype.char).dot(x)
    sums, ones = np.empty((-(-len(x) // step), x.shape[1]), x.dtype), _ones(step, x.dtype.char)

    def part(i: int) -> None:
        some = x[i * step : (i + 1) * step]
        ones[: len(some)].dot(some, out=sums[i])

    _each(part, len(sums), x.size)
    return narrow_column_sums(sums)


def _each(part: Callable[[int], None], count: int, size: int) -> None:
    """Do parts of work on so many elements, by several threads if these are many."""
    if size < _SHARED:
        for i in range(count):
            part(i)
    else:
        from chainrule.kernels import threads  # not when chainrule is imported

        threads.each(part, range(count))


@lru_cache(16)
def _ones(n: int, char: str) -> Array:
    return np.ones(n, char)


_PRODUCT = 1 << 15
"""So many elements OpenBLAS multiplies in one thread."""

_NARROW = 256
"""NumPy adds rows of so few numbers one by one, each with more effort than it is worth."""


def is_transposed(x: Array) -> bool:
    """Say whether a matrix is in Fortran's order, and large enough for `transposed`."""
    return bool(x.flags.f_contiguous and min(x.shape) >= 2 * _TALL and x.size >= _SHARED >> 5)


def transposed(x: Array) -> Array:
    """Return a copy in C order of a matrix in Fortran's, block by block.

    Row by row NumPy takes one element of each line of the cache, and has lost the line when it
    comes to the next: a matrix of ten million numbers takes twice the time.
    """
    out = np.empty(x.shape, x.dtype)

    def part(i: int) -> None:
        rows = slice(i * _TALL, (i + 1) * _TALL)
        for j in range(0, x.shape[1], _BLOCK):
            out[rows, j : j + _BLOCK] = x[rows, j : j + _BLOCK]

    _each(part, -(-len(x) // _TALL), x.size)
    return out


_TALL, _BLOCK = 128, 64


def has_short_rows(x: Array) -> bool:
    """Say whether sums along the last axis are `row_sums`."""
    n = x.shape[-1]
    if n < _SHORT:
        return bool(n > 1 and x.size >= _FEW_ROWS * n and x.dtype.isnative)
    return bool(n <= 2048 and x.size >= _PRODUCT)


def row_sums(x: Array) -> Array:
    """Return the sums along the last axis, of at most a few thousand numbers each.

    Of a handful each they are products with ones, as those of narrow columns are: 0.05 ms for
    90,000 rows of three, of which NumPy makes 90,000 loops in 1.0.
    """
    n = x.shape[-1]
    if n >= _SHORT:
        return np.einsum("...j->...", x)
    rows, ones, step = x.reshape(-1, n), _ones(n, x.dtype.char), _PRODUCT // n
    sums = np.empty(len(rows), x.dtype)

    def part(i: int) -> None:
        some = slice(i * step, (i + 1) * step)
        rows[some].dot(ones, out=sums[some])

    _each(part, -(-len(rows) // step), x.size)
    return sums.reshape(x.shape[:-1])


_SHORT = 32
_FEW_ROWS = 256


def where(condition: Array, x: Array, y: Array) -> Array:
    """Return x where the condition holds, else y, of arrays of one shape: no branch to mispredict.

    What differs between the two bit patterns is kept or dropped by a product with 1 or 0.
    """
    integer = BIT_PATTERNS[x.dtype.char]
    other = y.view(integer)
    bits = np.bitwise_xor(x.view(integer), other)
    np.multiply(bits, condition, out=bits)
    return np.bitwise_xor(bits, other, out=bits).view(x.dtype)


def cumulative_sum(x: Array, *, backwards: bool = False) -> Array | None:
    """Return running sums along the last axis, by products; None where that is not exact enough.

    A stretch of a row times a triangle of ones gives its running sums, if what comes before is
    added to its first element. An infinity would spoil the whole stretch, since 0 * inf is nan:
    then None.
    """
    n = x.shape[-1]
    length = next((k for k in range(48, 23, -1) if n % k == 0), _SEGMENT)
    count = -(-n // length)
    rows = np.empty((x.size // n, count * length), x.dtype)
    rows[:, :n] = x.reshape(-1, n)
    rows[:, n:] = 0
    stretches = rows.reshape(-1, count, length)
    with np.errstate(all="ignore"):
        carried = np.cumsum(np.einsum("ijk->ij", stretches)[:, :: -1 if backwards else 1], axis=1)
        if not np.isfinite(carried[:, -1]).all():
            return None
        if backwards:
            stretches[:, :-1, -1] += carried[:, -2::-1]
        else:
            stretches[:, 1:, 0] += carried[:, :-1]
        sums = stretches.reshape(-1, length) @ _triangle(length, x.dtype.char, backwards)
    sums = sums.reshape(rows.shape)[:, :n]
    return np.ascontiguousarray(sums).reshape(x.shape)


@cache
def _triangle(length: int, char: str, backwards: bool) -> Array:
    upper = np.triu(np.ones((length, length), char))
    return upper.T.copy() if backwards else upper


def cumulative_sum_vjp(xp: Any, g: Array, *, axis: int) -> Array:
    """Return sums of each element and all that follow along an axis."""
    if g.size >= 4096 and axis == g.ndim - 1 and g.shape[-1] >= 64:
        found = cumulative_sum(g, backwards=True)
        if found is not None:
            return found
    return np.flip(np.cumulative_sum(np.flip(g, axis), axis=axis), axis).copy()
