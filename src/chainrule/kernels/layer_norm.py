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
from chainrule.kernels import threads

Array = Any
Axes = tuple[int, ...]

_BLOCK_ELEMENTS = 1 << 18
"""Number of elements of a block: smaller ones cost more calls than cache misses."""

PARALLEL_MIN_ELEMENTS = 1 << 17
"""Number of elements from which a second thread pays: two blocks of half of them."""

_LONG = 512
"""Number of elements from which an inner loop for each row costs less than repeating a column."""

_LONG_ROW = 1024
"""Number of elements of rows that a sum over rows adds at full speed."""


_MAX_PLAIN_SUM = 2048
"""Number of elements up to which a sum needs no pairwise additions for its precision."""


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
        if not self.by_channel:  # long rows of whole lines: see `total`
            self.folded = max(_LONG_ROW // self.row, 1)
            step = max(step // self.folded, 1) * self.folded
        self.blocks = [slice(i, min(i + step, self.rows)) for i in range(0, self.rows, step)]
        self.step = min(step, self.rows)

    def for_blocks(self, run: Callable[[int, slice, slice], None]) -> None:
        """Call a function of each block's number, rows and lines, in several threads if it pays."""
        lines = self.lines

        def block(i: int) -> None:
            rows = self.blocks[i]
            arguments = i, rows, slice(rows.start * lines, rows.stop * lines)
            if self.length >= _LONG:
                _with_small_buffers(self.xp, run, arguments)
            else:
                run(*arguments)

        if self.rows * self.row >= PARALLEL_MIN_ELEMENTS:
            threads.parallel_for(block, range(len(self.blocks)))
        else:
            for i in range(len(self.blocks)):
                block(i)

    def matrix(self, x: Array) -> Array:
        return x.reshape(-1, self.length)

    def factors(self, w: Array) -> Array:
        """Return a weight for the lines of the largest block."""
        if self.by_channel:
            return self.xp.tile(w.reshape(-1), self.step // self.pattern)[:, None]
        w = w.reshape(-1)
        return self.xp.tile(w, self.step).reshape(-1, len(w)) if len(w) < _LONG else w[None]

    def head(self, factors: Array, count: int) -> Array:
        """Return the factors of the first `count` lines."""
        return factors[:count] if len(factors) > 1 else factors

    def column(self, values: Array) -> Array:
        """Return one value for each line, for ufuncs with a block."""
        if self.length >= _LONG:
            return values[:, None]
        return values.repeat(self.length).reshape(-1, self.length)

    def sums(self, x: Array) -> Array:
        """Return the sum of each line."""
        if self.length > _MAX_PLAIN_SUM:
            return self.xp.add.reduce(x, 1)
        return self.xp.einsum("ij->i", x)

    def of_rows(self, sums: Array) -> Array:
        """Return the sums of rows from those of their lines."""
        return sums.reshape(-1, self.lines).sum(1) if self.lines > 1 else sums

    def to_lines(self, values: Array) -> Array:
        """Return the values of rows for each of their lines."""
        return values.repeat(self.lines) if self.lines > 1 else values

    def total(self, x: Array) -> Array:
        """Return the sum of a block's lines."""
        whole = len(x) // self.folded * self.folded
        if self.folded == 1 or not whole:
            return x.sum(0)
        out = x[:whole].reshape(-1, self.folded * self.length).sum(0)
        out = out.reshape(self.folded, self.length).sum(0)
        return out + x[whole:].sum(0) if whole < len(x) else out


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

    def run(_: int, block: slice, lines: slice) -> None:
        part, kept, result = inputs[lines], standards[lines], results[lines]
        mean = rows.of_rows(rows.sums(part)) / rows.row
        xp.subtract(part, rows.column(rows.to_lines(mean)), out=kept)
        square = rows.of_rows(xp.vecdot(kept, kept)) / rows.row
        square += eps
        factor = xp.divide(1, xp.sqrt(square, out=square), out=scale[block])
        xp.multiply(kept, rows.column(rows.to_lines(factor)), out=kept)
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
    scales, weights = scale.reshape(-1), rows.factors(weight)
    count = weight.size
    of_weight, of_bias = xp.empty((2, len(rows.blocks), count), g.dtype)

    def by_element(i: int, block: slice, lines: slice) -> None:
        part, kept, result = gradients[lines], standards[lines], results[lines]
        of_bias[i] = rows.total(part)
        of_weight[i] = rows.total(xp.multiply(part, kept, out=result))
        scaled = part * rows.head(weights, len(part))
        factor = scales[block] / -rows.row
        inner = xp.vecdot(scaled, kept) * factor
        total = rows.sums(scaled) * factor
        xp.multiply(kept, rows.column(inner), out=result)
        xp.add(result, rows.column(total), out=result)
        scaled *= rows.column(scales[block])
        xp.add(result, scaled, out=result)

    def by_channel(i: int, block: slice, lines: slice) -> None:
        part, kept, result = gradients[lines], standards[lines], results[lines]
        inner, total = xp.vecdot(part, kept), rows.sums(part)
        of_weight[i], of_bias[i] = (s.reshape(-1, count).sum(0) for s in (inner, total))
        w = rows.head(weights, len(part))[:, 0]
        factor = scales[block] / -rows.row
        inner, total = [rows.to_lines(rows.of_rows(s * w) * factor) for s in (inner, total)]
        xp.multiply(kept, rows.column(inner), out=result)
        xp.add(result, rows.column(total), out=result)
        xp.add(result, part * rows.column(rows.to_lines(scales[block]) * w), out=result)

    rows.for_blocks(by_channel if rows.by_channel else by_element)
    return product, of_weight.sum(0).reshape(weight.shape), of_bias.sum(0).reshape(weight.shape)
