"""Reading and adding at indices along one axis, whose numbers are checked as they are used."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.compiler.eager.generic import u8
from chainrule.compiler.eager.kernel import PART, Kernel
from chainrule.compiler.eager.substitute import is_plain
from chainrule.kernels import gather_scatter, threads

Array = Any
Shape = tuple[int, ...]

# --- loops ----------------------------------------------------------------------------------------
# A number that is negative or beyond an axis is not used, and `wrong` says that there was one. Both
# have a bit in common with no other: the sign, of themselves or of what is left of the axis.


def _take(
    start: int, stop: int, x: Array, index: Array, length: int, n: int, out: Array, wrong: Array
) -> None:
    """Fill in the rows of `x` at an index."""
    for i in range(start, stop):
        k = index[u8(i)]
        if k < 0 or k >= length:
            wrong[0] = 1
        else:
            source, target = u8(k * n), u8(i * n)
            for j in range(u8(n)):
                out[target + j] = x[source + j]


def _add_rows(
    start: int,
    stop: int,
    g: Array,
    index: Array,
    count: int,
    length: int,
    n: int,
    out: Array,
    wrong: Array,
) -> None:
    """Fill in the rows from start on: of each the sum of those of `g` that come to it."""
    for j in range(u8(start * n), u8(stop * n)):
        out[j] = 0
    for i in range(count):
        k = index[u8(i)]
        if k < 0 or k >= length:
            wrong[0] = 1
        elif start <= k < stop:
            source, target = u8(i * n), u8(k * n)
            for j in range(u8(n)):
                out[target + j] += g[source + j]


def _take_along(
    start: int, stop: int, x: Array, index: Array, length: int, n: int, out: Array, wrong: Array
) -> None:
    """Fill in what each row of `x` has at the same row of an index."""
    for i in range(start, stop):
        row, places = u8(i * length), u8(i * n)
        for j in range(u8(n)):
            k = u8(index[places + j])
            if k >= u8(length):  # as a negative one is
                wrong[0] = 1
                break  # what may end at any turn, LLVM makes no instructions of that gather: slow
            out[places + j] = x[row + k]


def _add_along(
    start: int,
    stop: int,
    base: Array,
    has_base: int,
    value: Array,
    index: Array,
    length: int,
    n: int,
    out: Array,
    wrong: Array,
) -> None:
    """Fill in rows of `base`, or zeros, with `value` added at the same row of an index."""
    for i in range(start, stop):
        row, places = u8(i * length), u8(i * n)
        if has_base:
            for j in range(u8(length)):
                out[row + j] = base[row + j]
        else:
            for j in range(u8(length)):
                out[row + j] = 0
        odd = 0
        for j in range(u8(n)):
            odd |= index[places + j] | (length - 1 - index[places + j])
        if odd >= 0:
            for j in range(u8(n)):
                out[row + u8(index[places + j])] += value[places + j]
        else:
            wrong[0] = 1


# --- how they are called --------------------------------------------------------------------------

_TAKE = Kernel(_take, "real i8 n n real i8")
_ADD_ROWS = Kernel(_add_rows, "real i8 n n n real i8")
_TAKE_ALONG = Kernel(_take_along, "real i8 n n real i8")
_ADD_ALONG = Kernel(_add_along, "real n real i8 n n real i8")


_INDEX = np.dtype(np.int64)


def _is_index(index: Any) -> bool:
    return is_plain(index) and index.dtype == _INDEX


def _first_axis(key: Any, shape: Shape) -> Array | None:
    """Return an index of the first axis, if that is all that a key says."""
    parts = key if key.__class__ is tuple else (key,)
    if not parts or not shape or not _is_index(parts[0]) or not parts[0].ndim:
        return None
    if len(parts) == 1:
        return parts[0]
    for part in parts[1:]:
        if part is not Ellipsis and not (part.__class__ is slice and part == slice(None)):
            return None
    slices = sum([part is not Ellipsis for part in parts[1:]])
    return parts[0] if slices < len(shape) and len(parts) - slices <= 2 else None


def index(x: Array, *, key: Any) -> Array | None:
    numbers = _first_axis(key, x.shape)
    if numbers is None:
        places = gather_scatter.index_along_last(x.shape, key)
        return _gathered(x, places) if _is_index(places) else None
    n = x.size // len(x)
    out, wrong = np.empty(numbers.shape + x.shape[1:], x.dtype), np.zeros(1, _INDEX)
    if out.size == 0:
        return None
    task = _TAKE.tasks[x.dtype.char]
    task(numbers.size, PART // n or 1, x, numbers, len(x), n, out, wrong)
    return None if wrong[0] else out


def index_vjp(g: Array, shape: Shape, *, key: Any) -> Array | None:
    numbers = _first_axis(key, shape)
    if numbers is None:
        places = gather_scatter.index_along_last(shape, key)
        return _added(None, g, places, shape) if _is_index(places) else None
    n, wrong = math.prod(shape[1:]), np.zeros(1, _INDEX)
    out = np.empty(shape, g.dtype)
    if out.size == 0:
        return None
    parts = threads.get_num_threads() * (4 if n >= 16 else 1)  # each looks at all numbers
    task = _ADD_ROWS.tasks[g.dtype.char]
    step = -(-shape[0] // parts)
    task(shape[0], step, g, numbers, numbers.size, shape[0], n, out, wrong)
    return None if wrong[0] else out


def _gathered(x: Array, index: Array) -> Array | None:
    """Return what `x` has at an index along the last axis, which has all of its rows."""
    length, n = x.shape[-1], index.shape[-1]
    out, wrong = np.empty(index.shape, x.dtype), np.zeros(1, _INDEX)
    task = _TAKE_ALONG.tasks[x.dtype.char]
    task(index.size // n, PART // n or 1, x, index, length, n, out, wrong)
    return None if wrong[0] else out


def _added(base: Array | None, value: Array, index: Array, shape: Shape) -> Array | None:
    """Return `base`, or zeros, with `value` added at such an index."""
    if index.shape != value.shape or 0 in shape:
        return None
    length, n = shape[-1], index.shape[-1]
    out, wrong = np.empty(shape, value.dtype), np.zeros(1, _INDEX)
    begin = (value, 0) if base is None else (base, 1)
    task, step = _ADD_ALONG.tasks[value.dtype.char], PART // (length + n) or 1
    task(out.size // length, step, *begin, value, index, length, n, out, wrong)
    return None if wrong[0] else out


def _along_last(x_shape: Shape, index: Array, axis: int) -> bool:
    """Say whether an index, in C order, has all rows of an array, and is along the last axis."""
    return (
        axis == len(x_shape) - 1
        and index.dtype == _INDEX
        and index.size > 0
        and index.shape[:-1] == x_shape[:-1]
    )


def take_along_axis(x: Array, index: Array, *, axis: int) -> Array | None:
    return _gathered(x, index) if _along_last(x.shape, index, axis) else None


def take_along_axis_vjp(g: Array, shape: Shape, index: Array, *, axis: int) -> Array | None:
    return _added(None, g, index, shape) if _along_last(shape, index, axis) else None


def add_along_axis(x: Array, index: Array, *, shape: Shape, axis: int) -> Array | None:
    return _added(None, x, index, shape) if _along_last(shape, index, axis) else None


def add_along_axis_vjp(g: Array, index: Array, *, shape: Shape, axis: int) -> Array | None:
    return _gathered(g, index) if _along_last(g.shape, index, axis) else None


def add_at(base: Array, value: Array, *, key: Any) -> Array | None:
    if value.dtype is not base.dtype:
        return None
    places = gather_scatter.index_along_last(base.shape, key)
    return _added(base, value, places, base.shape) if _is_index(places) else None


def add_at_vjp(g: Array, *, key: Any) -> Array | None:
    return index(g, key=key)
