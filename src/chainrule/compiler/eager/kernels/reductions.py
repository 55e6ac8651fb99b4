"""Sums of all numbers, of rows or of columns, and what spreads a cotangent over what was summed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.backend import ndarray
from chainrule.compiler.eager.generic import plus, real, u8
from chainrule.compiler.eager.kernel import PART, Kernel
from chainrule.compiler.eager.substitute import are_fit
from chainrule.compiler.native.loop_nest import PARTIAL_SUM_LENGTH as RUN
from chainrule.kernels import fast_numpy
from chainrule.primitives.primitive import Plan, Rule

Array = Any
Shape = tuple[int, ...]
Axes = tuple[int, ...] | None

_BLOCKS = 8  # of rows whose columns are added up apart

# --- loops ----------------------------------------------------------------------------------------


def _total(start: int, stop: int, x: Array, parts: Array) -> None:
    """Fill in the sum of each part."""
    total = 0.0
    for first in range(start, stop, RUN):
        part = real(0.0)
        for j in range(u8(first), u8(min(first + RUN, stop))):
            part = plus(part, x[j])
        total += part
    parts[u8(start // PART)] = total


def _row_sums(start: int, stop: int, x: Array, n: int, scale: float, out: Array) -> None:
    """Fill in the sum of each row, times a number."""
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
    """Fill in the sums of the columns of some rows, times a number."""
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
    """Fill in a number."""
    number = real(value)
    for i in range(u8(start), u8(stop)):
        out[i] = number


def _fill_rows(start: int, stop: int, numbers: Array, n: int, out: Array) -> None:
    """Fill each row with its number."""
    for i in range(start, stop):
        number, row = numbers[u8(i)], u8(i * n)
        for j in range(u8(n)):
            out[row + j] = number


def _repeat(start: int, stop: int, numbers: Array, n: int, out: Array) -> None:
    """Fill each row with the same numbers."""
    for i in range(start, stop):
        row = u8(i * n)
        for j in range(u8(n)):
            out[row + j] = numbers[j]


# --- how they are called --------------------------------------------------------------------------

_TOTAL = Kernel(_total, "real f8", PART=PART, RUN=RUN)
_ROW_SUMS = Kernel(_row_sums, "real n d real", RUN=RUN)
_COLUMN_SUMS = Kernel(_column_sums, "real n n d real")
_FILL = Kernel(_fill, "d real")
_FILL_ROWS = Kernel(_fill_rows, "real n real")
_REPEAT = Kernel(_repeat, "real n real")


def _kept(shape: Shape, axis: Axes, keepdims: bool) -> Shape:
    """Return the shape of a reduction."""
    if axis is None:
        return (1,) * len(shape) if keepdims else ()
    if keepdims:
        return tuple([1 if i in axis else n for i, n in enumerate(shape)])
    return tuple([n for i, n in enumerate(shape) if i not in axis])


def _split(shape: Shape, axis: Axes) -> tuple[int, int, int] | None:
    """Return how many rows and columns there are, and whether all, rows or columns are summed.

    As 2, 1 and 0: None where neither is.
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


def _all(x: Array, keepdims: bool, mean: bool) -> Array:
    n, dtype = x.size, x.dtype
    parts = np.empty(-(-n // PART))
    _TOTAL.tasks[dtype.char](n, PART, x, parts)
    total = parts.item() if n <= PART else np.add.reduce(parts)
    return np.array(total / n if mean else total, dtype, ndmin=x.ndim if keepdims else 0)


def _reduced(x: Array, axis: Axes, keepdims: bool, mean: bool) -> Array | None:
    if axis is None:
        return _all(x, keepdims, mean)
    found = _split(x.shape, axis)
    if found is None:
        return None
    rows, n, kind = found
    if kind == 2:
        return _all(x, keepdims, mean)
    char, out = x.dtype.char, np.empty(_kept(x.shape, axis, keepdims), x.dtype)
    if kind == 1:
        scale = 1.0 / n if mean else 1.0
        _ROW_SUMS(char, rows, n, x, n, scale, out)
        return out
    task, scale = _COLUMN_SUMS.tasks[char], 1.0 / rows if mean else 1.0
    step = max(-(-rows // _BLOCKS), PART // n, 1)
    if step >= rows:
        task(rows, step, x, n, step, scale, out)
        return out
    parts = np.empty((-(-rows // step), n), x.dtype)
    task(rows, step, x, n, step, scale, parts)
    np.add.reduce(parts, 0, out=out.reshape(-1))
    return out


def _spread(g: Array, shape: Shape, axis: Axes) -> Array | None:
    """Return what is made of a sum's cotangent."""
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
    """Computes sums or means of `least` elements and more, and spreads `later` elements or more."""

    def __init__(self, name: str, least: int, later: int) -> None:
        self.mean = name == "mean"
        self.least, self.later = least, later

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function."""
        mean, least = self.mean, self.least

        def forward(x: Array, *, axis: Axes = None, keepdims: bool = False) -> Array:
            if axis == (0,) and x.ndim == 2 and fast_numpy.has_narrow_columns(x):
                return plain(x, axis=axis, keepdims=keepdims)
            if x.size >= least and are_fit((x,)):
                found = _reduced(x, axis, keepdims, mean)
                if found is not None:
                    return found
            return plain(x, axis=axis, keepdims=keepdims)

        return forward

    def vjp(self, plan: Plan, plain: Rule) -> Rule:
        """Return the pull of a plan."""
        mean, later = self.mean, self.later

        def vjp(xp: Any, g: Any, saved: tuple[Any, ...], settings: Any) -> tuple[Any, ...]:
            (shape,) = saved
            size = math.prod(shape)
            if g.__class__ is ndarray and size >= later and g.size and are_fit((g,)):
                part = np.asarray(g / (size // g.size)) if mean else g
                found = _spread(part, shape, settings["axis"])
                if found is not None:
                    return (found,)
            grads: tuple[Any, ...] = plain(xp, g, saved, settings)
            return grads

        return vjp
