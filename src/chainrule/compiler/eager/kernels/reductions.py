"""Kernels of sums and means over all elements, rows or columns, and of their VJPs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.backend import ndarray
from chainrule.compiler.eager.substitute import are_supported
from chainrule.compiler.native.generic import plus, real, u8
from chainrule.compiler.native.kernel import PART, Kernel
from chainrule.compiler.native.loop_nest import PARTIAL_SUM_LENGTH as RUN
from chainrule.kernels import fast_numpy
from chainrule.primitives.primitive import Plan, Rule

Array = Any
Shape = tuple[int, ...]
Axes = tuple[int, ...] | None

_MAX_BLOCKS = 8
"""Number of blocks of rows whose column sums are computed in parallel."""

# --- loops ----------------------------------------------------------------------------------------


def _total(start: int, stop: int, x: Array, parts: Array) -> None:
    """Fill `parts` with the sum of each part."""
    total = 0.0
    for first in range(start, stop, RUN):
        part = real(0.0)
        for j in range(u8(first), u8(min(first + RUN, stop))):
            part = plus(part, x[j])
        total += part
    parts[u8(start // PART)] = total


def _row_sums(start: int, stop: int, x: Array, n: int, scale: float, out: Array) -> None:
    """Fill `out` with the sum of each row, times `scale`."""
    for i in range(start, stop):
        total = 0.0
        for first in range(i * n, i * n + n, RUN):
            part = real(0.0)
            for j in range(u8(first), u8(min(first + RUN, i * n + n))):
                part = plus(part, x[j])
            total += part
        out[u8(i)] = real(total * scale)


def _column_sums(
    start: int, stop: int, x: Array, n: int, step: int, scale: float, parts: Array
) -> None:
    """Fill a row of `parts` with the column sums of these rows, times `scale`."""
    sums = u8(start // step * n)
    for j in range(u8(n)):
        parts[sums + j] = 0
    for i in range(start, stop):
        row = u8(i * n)
        for j in range(u8(n)):
            parts[sums + j] += x[row + j]
    if scale != 1.0:
        for j in range(u8(n)):
            parts[sums + j] *= real(scale)


def _fill(start: int, stop: int, value: float, out: Array) -> None:
    """Fill `out` with a number."""
    number = real(value)
    for i in range(u8(start), u8(stop)):
        out[i] = number


def _fill_rows(start: int, stop: int, numbers: Array, n: int, out: Array) -> None:
    """Fill each row of `out` with its number."""
    for i in range(start, stop):
        number, row = numbers[u8(i)], u8(i * n)
        for j in range(u8(n)):
            out[row + j] = number


def _repeat(start: int, stop: int, numbers: Array, n: int, out: Array) -> None:
    """Copy `numbers` to each row of `out`."""
    for i in range(start, stop):
        row = u8(i * n)
        for j in range(u8(n)):
            out[row + j] = numbers[j]


# --- calls of the loops ---------------------------------------------------------------------------

_TOTAL = Kernel(_total, "real f8", PART=PART, RUN=RUN)
_ROW_SUMS = Kernel(_row_sums, "real n d real", RUN=RUN)
_COLUMN_SUMS = Kernel(_column_sums, "real n n d real")
_FILL = Kernel(_fill, "d real")
_FILL_ROWS = Kernel(_fill_rows, "real n real")
_REPEAT = Kernel(_repeat, "real n real")


def _reduced_shape(shape: Shape, axis: Axes, keepdims: bool) -> Shape:
    """Return the shape of the result of a reduction."""
    if axis is None:
        return (1,) * len(shape) if keepdims else ()
    if keepdims:
        return tuple([1 if i in axis else n for i, n in enumerate(shape)])
    return tuple([n for i, n in enumerate(shape) if i not in axis])


def _split(shape: Shape, axis: Axes) -> tuple[int, int, int] | None:
    """Return the numbers of rows and columns, and the kind of sum; None for other axes.

    Kinds: 2 for the sum of all elements, 1 for row sums, 0 for column sums.
    """
    ndim = len(shape)
    if axis is None or len(axis) == ndim:
        return 1, math.prod(shape), 2
    axes = tuple(sorted(axis))
    if axes == tuple(range(ndim - len(axes), ndim)):
        first = ndim - len(axes)
        return math.prod(shape[:first]), math.prod(shape[first:]), 1
    if axes == tuple(range(len(axes))):
        return math.prod(shape[: len(axes)]), math.prod(shape[len(axes) :]), 0
    return None


def _sum_all(x: Array, keepdims: bool, mean: bool) -> Array:
    n, dtype = x.size, x.dtype
    parts = np.empty(-(-n // PART))
    _TOTAL.tasks[dtype.char](n, PART, x, parts)
    total = parts.item() if n <= PART else np.add.reduce(parts)
    return np.array(total / n if mean else total, dtype, ndmin=x.ndim if keepdims else 0)


def _sum(x: Array, axis: Axes, keepdims: bool, mean: bool) -> Array | None:
    if axis is None:
        return _sum_all(x, keepdims, mean)
    found = _split(x.shape, axis)
    if found is None:
        return None
    rows, n, kind = found
    if kind == 2:
        return _sum_all(x, keepdims, mean)
    char, out = x.dtype.char, np.empty(_reduced_shape(x.shape, axis, keepdims), x.dtype)
    if kind == 1:
        scale = 1.0 / n if mean else 1.0
        _ROW_SUMS(char, rows, n, x, n, scale, out)
        return out
    task, scale = _COLUMN_SUMS.tasks[char], 1.0 / rows if mean else 1.0
    step = max(-(-rows // _MAX_BLOCKS), PART // n, 1)
    if step >= rows:
        task(rows, step, x, n, step, scale, out)
        return out
    parts = np.empty((-(-rows // step), n), x.dtype)
    task(rows, step, x, n, step, scale, parts)
    np.add.reduce(parts, 0, out=out.reshape(-1))
    return out


def _broadcast(g: Array, shape: Shape, axis: Axes) -> Array | None:
    """Return the cotangent of a sum, broadcast to the shape of the operand."""
    found = _split(shape, axis)
    if found is None:
        return None
    rows, n, kind = found
    out = np.empty(shape, g.dtype)
    if kind == 2:
        _FILL(g.dtype.char, out.size, 1, g.item(), out)
    else:
        kernel = _FILL_ROWS if kind else _REPEAT
        kernel(g.dtype.char, rows, n, g, n, out)
    return out


class Sums:
    """Substitute of `sum` or `mean`, from numbers of elements that differ for value and VJP."""

    def __init__(self, name: str, min_size: int, min_vjp_size: int) -> None:
        self.mean = name == "mean"
        self.min_size, self.min_vjp_size = min_size, min_vjp_size

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function; `plain` is NumPy's."""
        mean, min_size = self.mean, self.min_size

        def forward(x: Array, *, axis: Axes = None, keepdims: bool = False) -> Array:
            if axis == (0,) and x.ndim == 2 and fast_numpy.has_narrow_columns(x):
                return plain(x, axis=axis, keepdims=keepdims)
            if x.size >= min_size and are_supported((x,)):
                found = _sum(x, axis, keepdims, mean)
                if found is not None:
                    return found
            return plain(x, axis=axis, keepdims=keepdims)

        return forward

    def vjp(self, plan: Plan, plain: Rule) -> Rule:
        """Return the VJP function of a plan."""
        mean, min_size = self.mean, self.min_vjp_size

        def vjp(xp: Any, g: Any, saved: tuple[Any, ...], settings: Any) -> tuple[Any, ...]:
            (shape,) = saved
            size = math.prod(shape)
            if g.__class__ is ndarray and size >= min_size and g.size and are_supported((g,)):
                part = np.asarray(g / (size // g.size)) if mean else g
                found = _broadcast(part, shape, settings["axis"])
                if found is not None:
                    return (found,)
            grads: tuple[Any, ...] = plain(xp, g, saved, settings)
            return grads

        return vjp
