"""Normalisation with weight and bias in blocks of rows that stay in the cache, and its derivative.

A row is what is normalised together. In a *pattern* of rows each channel has one number of weight
and bias: for `layer_norm` a row is a pattern, and each of its elements a channel; for `group_norm`
a pattern is a sample, and its rows are the groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from chainrule.interrupts import errstate
from chainrule.kernels import fast_numpy, threads
from chainrule.kernels.fast_numpy import MAX_PLAIN_SUM

Array = Any
Axes = tuple[int, ...]

_BLOCK_ELEMENTS = 1 << 18
"""Number of elements of a block: smaller ones cost more calls than cache misses."""

PARALLEL_MIN_ELEMENTS = 1 << 17
"""Number of elements from which a second thread pays: two blocks of half of them."""

_SHORT_ROW = 32
"""Number of elements of a row below which `tile` takes less time than an assignment."""

_LONG = 512
"""Number of elements from which an inner loop for each row costs less than repeating a column."""


class _Rows:
    """Arrays as matrices (lines, length), where a line is a row, or the elements of a channel."""

    def __init__(self, xp: Any, x: Array, weight: Array, axis: Axes) -> None:
        self.xp = xp
        trailing = x.shape[axis[0] :]
        self.row = math.prod(trailing)
        self.rows = x.size // self.row
        self.by_channel = weight.shape != trailing  # a channel is long: its factor is a column
        self.length = trailing[-1] if self.by_channel else self.row
        self.lines = self.row // self.length  # of a row
        self.pattern = weight.size // self.lines if self.by_channel else 1  # rows of a pattern
        size = min(_BLOCK_ELEMENTS, max(x.size // 2, PARALLEL_MIN_ELEMENTS // 2))
        step = max(size // (self.row * self.pattern), 1) * self.pattern
        self.blocks = [slice(i, min(i + step, self.rows)) for i in range(0, self.rows, step)]
        self.step = min(step, self.rows)

    def for_blocks(self, run: Callable[[int, slice], None]) -> None:
        """Call a function of each block's number and rows, in several threads if it pays."""

        def block(i: int) -> None:
            rows = self.blocks[i]
            if self.row >= _LONG:
                _with_small_buffers(self.xp, run, (i, rows))
            else:
                run(i, rows)

        if self.rows * self.row >= PARALLEL_MIN_ELEMENTS:
            threads.parallel_for(block, range(len(self.blocks)))
        else:
            for i in range(len(self.blocks)):
                block(i)

    def matrix(self, x: Array) -> Array:
        """Return an array as its rows."""
        return x.reshape(-1, self.row)

    def in_lines(self, x: Array) -> Array:
        """Return rows as their lines."""
        return x.reshape(-1, self.length) if self.lines > 1 else x

    def factors(self, w: Array) -> Array:
        """Return a weight for the lines of the largest block."""
        w = w.reshape(-1)
        if self.by_channel:
            return _column(
                _repeated(self.xp, w, self.step // self.pattern).reshape(-1), self.length
            )
        return _repeated(self.xp, w, self.step) if len(w) < _LONG else w[None]

    def head(self, factors: Array, count: int) -> Array:
        """Return the factors of the first `count` lines."""
        return factors[:count] if len(factors) > 1 else factors

    def column(self, values: Array) -> Array:
        """Return one value for each row, for ufuncs with a block."""
        return _column(values, self.row)

    def sums(self, x: Array) -> Array:
        """Return the sum of each row."""
        if self.row > MAX_PLAIN_SUM:
            return self.of_rows(fast_numpy.block_row_sums(self.in_lines(x)))
        return fast_numpy.block_row_sums(x)

    def squares(self, x: Array) -> Array:
        """Return the sum of squares of each row."""
        if self.row > MAX_PLAIN_SUM:
            x = self.in_lines(x)
            return self.of_rows(self.xp.vecdot(x, x))
        return self.xp.vecdot(x, x)

    def products(self, x: Array, w: Array) -> Array:
        """Return the product of each row with a vector."""
        if self.row <= MAX_PLAIN_SUM:
            return fast_numpy.row_products(x, w)
        return self.xp.vecdot(x, w)

    def of_rows(self, sums: Array) -> Array:
        """Return the sums of rows from those of their lines."""
        return sums.reshape(-1, self.lines).sum(1) if self.lines > 1 else sums

    def to_lines(self, values: Array) -> Array:
        """Return the values of rows for each of their lines."""
        return values.repeat(self.lines) if self.lines > 1 else values

    def total(self, x: Array) -> Array:
        """Return the sum of a block's rows."""
        return fast_numpy.block_column_sums(x)


def _repeated(xp: Any, row: Array, count: int) -> Array:
    """Return a matrix of equal rows."""
    if len(row) < _SHORT_ROW:
        return xp.tile(row, count).reshape(count, -1)
    out = xp.empty((count, len(row)), row.dtype)
    out[...] = row
    return out


def _column(values: Array, length: int) -> Array:
    """Return one value for each of several lines of a length."""
    return values[:, None] if length >= _LONG else values.repeat(length).reshape(-1, length)


@errstate()  # it includes the size of buffers
def _with_small_buffers(xp: Any, run: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Call a function: NumPy copies broadcast columns into buffers that rows are shorter than."""
    xp.setbufsize(256)  # in this thread alone
    run(*arguments)


def layer_normalized(
    xp: Any, x: Array, weight: Array, bias: Array, *, axis: Axes, eps: float
) -> tuple[Array, Array, Array]:
    """Return standard · weight + bias, the standard values and their scale."""
    rows = _Rows(xp, x, weight, axis)
    out, standard = xp.empty(x.shape, x.dtype), xp.empty(x.shape, x.dtype)
    scale = xp.empty(rows.rows, x.dtype)
    inputs, results, standards = map(rows.matrix, (x, out, standard))
    weights, offsets = rows.factors(weight), rows.factors(bias)

    def run(_: int, block: slice) -> None:
        part, kept, result = inputs[block], standards[block], results[block]
        mean = rows.sums(part) / rows.row
        xp.subtract(part, rows.column(mean), out=kept)
        square = rows.squares(kept) / rows.row
        square += eps
        factor = xp.divide(1, xp.sqrt(square, out=square), out=scale[block])
        xp.multiply(kept, rows.column(factor), out=kept)
        kept, result = rows.in_lines(kept), rows.in_lines(result)
        xp.multiply(kept, rows.head(weights, len(kept)), out=result)
        xp.add(result, rows.head(offsets, len(kept)), out=result)

    rows.for_blocks(run)
    return out, standard, scale.reshape(x.shape[: axis[0]] + (1,) * len(axis))


def layer_normalized_rule(
    xp: Any, g: Array, standard: Array, scale: Array, weight: Array, *, axis: Axes
) -> tuple[Array, Array, Array]:
    """Return the cotangents of x, the weight and the bias."""
    rows = _Rows(xp, g, weight, axis)
    product = xp.empty(g.shape, g.dtype)
    gradients, standards, results = map(rows.matrix, (g, standard, product))
    scales = scale.reshape(-1)
    count = weight.size
    weights = None if rows.by_channel else rows.factors(weight)
    of_weight, of_bias = xp.empty((2, len(rows.blocks), count), g.dtype)

    def by_element(i: int, block: slice) -> None:
        part, kept, result = gradients[block], standards[block], results[block]
        xp.multiply(part, kept, out=result)
        of_weight[i], of_bias[i] = rows.total(result), rows.total(part)
        w, factor = weight.reshape(-1), scales[block] / -rows.row
        inner, total = rows.products(result, w) * factor, rows.products(part, w) * factor
        xp.multiply(part, rows.head(weights, len(part)), out=result)
        xp.multiply(result, rows.column(scales[block]), out=result)
        xp.add(result, kept * rows.column(inner), out=result)
        xp.add(result, rows.column(total), out=result)

    def by_channel(i: int, block: slice) -> None:
        kept, result = standards[block], results[block]
        part = rows.in_lines(gradients[block])
        inner, total = xp.vecdot(part, rows.in_lines(kept)), fast_numpy.block_row_sums(part)
        of_weight[i], of_bias[i] = (s.reshape(-1, count).sum(0) for s in (inner, total))
        w = _repeated(xp, weight.reshape(-1), len(part) // count).reshape(-1)
        factor = scales[block] / -rows.row
        inner, total = [rows.of_rows(s * w) * factor for s in (inner, total)]
        xp.multiply(kept, rows.column(inner), out=result)
        xp.add(result, rows.column(total), out=result)
        result = rows.in_lines(result)
        w *= rows.to_lines(scales[block])
        xp.add(result, part * _column(w, rows.length), out=result)

    rows.for_blocks(by_channel if rows.by_channel else by_element)
    return product, of_weight.sum(0).reshape(weight.shape), of_bias.sum(0).reshape(weight.shape)
