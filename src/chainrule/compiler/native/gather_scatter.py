"""Kernels of gathering and scatter-adding along one axis, with bounds checks of the indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.compiler.native.call_wrapper import fresh, to_out
from chainrule.compiler.native.generic import u8
from chainrule.compiler.native.kernel import PART, Kernel, is_plain
from chainrule.kernels import gather_scatter, threads

Array = Any
Shape = tuple[int, ...]

# --- loops ----------------------------------------------------------------------------------------
# Negative indices count from the end; those out of bounds set `wrong`. As unsigned numbers,
# negative ones are large. A step is the distance of rows in memory, in elements.


def _flatten(
    start: int, stop: int, flat: Array, is_first: int, index: Array, length: int, wrong: Array
) -> None:
    """Extend the flat positions of some axes by the indices along one more axis."""
    signs = 0
    for i in range(u8(start), u8(stop)):
        k = index[i] + length if index[i] < 0 else index[i]
        signs |= k | (length - 1 - k)
        flat[i] = k if is_first else flat[i] * length + k
    if signs < 0:
        wrong[0] = 1


def _take(
    start: int,
    stop: int,
    x: Array,
    x_step: int,
    index: Array,
    length: int,
    n: int,
    out: Array,
    out_step: int,
    wrong: Array,
) -> None:
    """Fill `out` with the rows of `x` at an index."""
    if n == 1:
        for i in range(u8(start), u8(stop)):
            k = index[i] + length if index[i] < 0 else index[i]
            if u8(k) >= u8(length):
                wrong[0] = 1
                break  # keeps LLVM from using gather instructions, which are slow
            out[i * u8(out_step)] = x[u8(k * x_step)]
    else:
        for i in range(u8(start), u8(stop)):
            k = index[i] + length if index[i] < 0 else index[i]
            if u8(k) >= u8(length):
                wrong[0] = 1
            else:
                source, target = u8(k * x_step), i * u8(out_step)
                for j in range(u8(n)):
                    out[target + j] = x[source + j]


def _add_rows(
    start: int,
    stop: int,
    base: Array,
    has_base: int,
    value: Array,
    value_step: int,
    index: Array,
    count: int,
    length: int,
    n: int,
    out: Array,
    wrong: Array,
) -> None:
    """Fill rows of `out` with `base`, or zeros; add the rows of `value` whose index they are."""
    if has_base:
        for j in range(u8(start * n), u8(stop * n)):
            out[j] = base[j]
    else:
        for j in range(u8(start * n), u8(stop * n)):
            out[j] = 0
    for i in range(u8(count)):
        k = index[i] + length if index[i] < 0 else index[i]
        if u8(k) >= u8(length):
            wrong[0] = 1
        elif start <= k < stop:
            source, target = i * u8(value_step), u8(k * n)
            if n == 1:
                out[target] += value[source]
            else:
                for j in range(u8(n)):
                    out[target + j] += value[source + j]


def _take_along(
    start: int,
    stop: int,
    x: Array,
    index: Array,
    index_step: int,
    length: int,
    n: int,
    out: Array,
    wrong: Array,
) -> None:
    """Fill each row of `out` with the elements of the row of `x` at a row of indices."""
    for i in range(start, stop):
        row, first, target = u8(i * length), u8(i * index_step), u8(i * n)
        for j in range(u8(n)):
            k = index[first + j]
            k = k + length if k < 0 else k
            if u8(k) >= u8(length):
                wrong[0] = 1
                break  # keeps LLVM from using gather instructions, which are slow
            out[target + j] = x[row + u8(k)]


def _add_along(
    start: int,
    stop: int,
    base: Array,
    has_base: int,
    value: Array,
    index: Array,
    index_step: int,
    length: int,
    n: int,
    out: Array,
    wrong: Array,
) -> None:
    """Fill rows of `out` with `base`, or zeros, and add `value` at a row of indices."""
    for i in range(start, stop):
        row, first, source = u8(i * length), u8(i * index_step), u8(i * n)
        if has_base:
            for j in range(u8(length)):
                out[row + j] = base[row + j]
        else:
            for j in range(u8(length)):
                out[row + j] = 0
        signs = 0
        for j in range(u8(n)):
            k = index[first + j] + length if index[first + j] < 0 else index[first + j]
            signs |= k | (length - 1 - k)
        if signs >= 0:
            for j in range(u8(n)):
                k = index[first + j] + length if index[first + j] < 0 else index[first + j]
                out[row + u8(k)] += value[source + j]
        else:
            wrong[0] = 1


def _take_across(
    start: int,
    stop: int,
    x: Array,
    index: Array,
    length: int,
    rows: int,
    n: int,
    out: Array,
    wrong: Array,
) -> None:
    """Fill rows of `out` with elements of `x` at indices along an axis that is not the last."""
    for i in range(u8(start), u8(stop)):
        first = i * u8(n)
        block = i // u8(rows) * u8(length)
        for j in range(u8(n)):
            k = index[first + j]
            k = k + length if k < 0 else k
            if u8(k) >= u8(length):
                wrong[0] = 1
                break
            out[first + j] = x[(block + u8(k)) * u8(n) + j]


def _add_across(
    start: int,
    stop: int,
    value: Array,
    index: Array,
    length: int,
    rows: int,
    n: int,
    out: Array,
    wrong: Array,
) -> None:
    """Fill blocks of `out` with zeros, and add `value` at indices along their rows."""
    for j in range(u8(start * length * n), u8(stop * length * n)):
        out[j] = 0
    for i in range(u8(start * rows), u8(stop * rows)):
        first = i * u8(n)
        block = i // u8(rows) * u8(length)
        for j in range(u8(n)):
            k = index[first + j]
            k = k + length if k < 0 else k
            if u8(k) >= u8(length):
                wrong[0] = 1
                break
            out[(block + u8(k)) * u8(n) + j] += value[first + j]


# --- calls of the loops ---------------------------------------------------------------------------

_FLATTEN = Kernel(_flatten, "i8 n i8 n i8")
_TAKE = Kernel(_take, "real n i8 n n real n i8")
_ADD_ROWS = Kernel(_add_rows, "real n real n i8 n n n real i8")
_TAKE_ALONG = Kernel(_take_along, "real i8 n n n real i8")
_ADD_ALONG = Kernel(_add_along, "real n real i8 n n n real i8")
_TAKE_ACROSS = Kernel(_take_across, "real i8 n n n real i8")
_ADD_ACROSS = Kernel(_add_across, "real i8 n n n real i8")


_INDEX_DTYPE = np.dtype(np.int64)


def _is_index(index: Any) -> bool:
    return is_plain(index) and index.dtype == _INDEX_DTYPE


def _first_axis_index(key: Any, shape: Shape) -> Array | None:
    """Return the index array of a key that indexes the first axis only; None for other keys."""
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
    indices = _first_axis_index(key, x.shape)
    if indices is None:
        along_last = gather_scatter.index_along_last(x.shape, key)
        return take_along_last(x, along_last) if _is_index(along_last) else None
    return take_rows(x, indices) if indices.size and x.size else None


def index_vjp(g: Array, shape: Shape, *, key: Any) -> Array | None:
    return _add_at(None, g, shape, key)


def add_at(base: Array, value: Array, *, key: Any) -> Array | None:
    return _add_at(base, value, base.shape, key) if value.dtype is base.dtype else None


def add_at_vjp(g: Array, *, key: Any) -> Array | None:
    return index(g, key=key)


def _add_at(base: Array | None, value: Array, shape: Shape, key: Any) -> Array | None:
    """Return `base`, or zeros, with `value` added at a key."""
    indices = _first_axis_index(key, shape)
    if indices is None:
        along_last = gather_scatter.index_along_last(shape, key)
        return add_along_last(base, value, along_last, shape) if _is_index(along_last) else None
    if value.shape != indices.shape + shape[1:] or 0 in shape:
        return None
    return add_rows(base, value, indices, np.empty(shape, value.dtype))


def row_step(x: Array, row_ndim: int) -> int | None:
    """Return the distance of the rows of an array, in elements; None if rows are not contiguous."""
    if x.flags.c_contiguous:
        width: int = math.prod(x.shape[x.ndim - row_ndim :])
        return width
    step, rest = divmod(x.strides[0], x.itemsize)
    fits = x.ndim == row_ndim + 1 and not rest and x[:1].flags.c_contiguous
    return int(step) if fits else None


def with_rows(x: Array, row_ndim: int) -> tuple[Array, int]:
    """Return an array that kernels can read, and the distance of its rows: a copy if need be."""
    step = row_step(x, row_ndim) if x.flags.aligned else None
    if step is None:
        x = np.array(x, order="C")
        step = math.prod(x.shape[x.ndim - row_ndim :])
    return x, step


def take_rows(x: Array, index: Array, out: Array | None = None) -> Array | None:
    """Return the rows of `x` at an index; None, with `out` half-filled, if it is out of bounds.

    `out` may be part of a wider array. Neither `x` nor the index is empty.
    """
    x, step = with_rows(x, x.ndim - 1)
    n, out_step = math.prod(x.shape[1:]), None
    if out is not None:
        out_step = row_step(out, x.ndim - 1)
    made = np.empty(index.shape + x.shape[1:], x.dtype) if out is None or out_step is None else out
    wrong, task = np.zeros(1, _INDEX_DTYPE), _TAKE.tasks[x.dtype.char]
    rows, target = _TAKEN_AT_A_TIME // n or 1, (made, n if out_step is None else out_step)
    task(index.size, rows, x, step, index, len(x), n, *target, wrong)
    return None if wrong[0] else to_out(out, made)


_TAKEN_AT_A_TIME = 1 << 13
"""Number of elements that a thread gathers at a time."""


def add_rows(base: Array | None, value: Array, index: Array, out: Array) -> Array | None:
    """Fill `out` with `base`, or zeros, and add rows at an index; None if it is out of bounds.

    `base` and `out` are contiguous, and `out` is not empty.
    """
    shape, count = out.shape, index.size
    value, step = with_rows(value, len(shape) - 1)
    n, wrong = math.prod(shape[1:]), np.zeros(1, _INDEX_DTYPE)
    begin = (value, 0) if base is None else (base, 1)
    # Each part reads all indices, and a row that it skips costs as much as adding 32 elements.
    worthwhile = 1 + (shape[0] + count) * n // (32 * max(count, 1))
    parts = min(worthwhile, 4 * threads.get_num_threads())
    task = _ADD_ROWS.tasks[value.dtype.char]
    task(
        shape[0], -(-shape[0] // parts), *begin, value, step, index, count, shape[0], n, out, wrong
    )
    return None if wrong[0] else out


def flatten(indices: tuple[Array, ...], shape: Shape, out: Array) -> bool:
    """Fill `out` with the positions of indices along the axes of a shape.

    Return False if one is out of bounds.
    """
    wrong, task = np.zeros(1, _INDEX_DTYPE), _FLATTEN.tasks["d"]
    for axis, (index, length) in enumerate(zip(indices, shape, strict=True)):
        plain = np.require(np.broadcast_to(index, out.shape), _INDEX_DTYPE, ["C", "A"])
        task(out.size, _TAKEN_AT_A_TIME, out, int(axis == 0), plain, length, wrong)
    return not wrong[0]


def take_along_last(
    x: Array, index: Array, out: Array | None = None, shared: bool = False
) -> Array | None:
    """Return the elements of `x` at indices along the last axis; None if one is out of bounds.

    Each row has its own indices, or all share them. The arrays are contiguous and not empty.
    """
    length, n = x.shape[-1], index.size if shared else index.shape[-1]
    made = fresh(out, x.shape[:-1] + index.shape if shared else index.shape, x.dtype)
    wrong, task = np.zeros(1, _INDEX_DTYPE), _TAKE_ALONG.tasks[x.dtype.char]
    step = 0 if shared else n
    task(made.size // n, PART // n or 1, x, index, step, length, n, made, wrong)
    return None if wrong[0] else to_out(out, made)


def add_along_last(
    base: Array | None,
    value: Array,
    index: Array,
    shape: Shape,
    out: Array | None = None,
    shared: bool = False,
) -> Array | None:
    """Return `base`, or zeros, with `value` added at indices along the last axis.

    Each row has its own indices, or all share them.
    """
    if 0 in shape or value.shape != (shape[:-1] + index.shape if shared else index.shape):
        return None
    length, n = shape[-1], index.size if shared else index.shape[-1]
    made = fresh(out, shape, value.dtype)
    wrong, task = np.zeros(1, _INDEX_DTYPE), _ADD_ALONG.tasks[value.dtype.char]
    begin = (value, 0) if base is None else (base, 1)
    rows, step = PART // (length + n) or 1, 0 if shared else n
    task(made.size // length, rows, *begin, value, index, step, length, n, made, wrong)
    return None if wrong[0] else to_out(out, made)


def take_across(x: Array, index: Array, axis: int, out: Array | None = None) -> Array | None:
    """Return the elements of `x` at indices along an axis that is not the last.

    The arrays are contiguous and not empty.
    """
    made, n = fresh(out, index.shape, x.dtype), math.prod(x.shape[axis + 1 :])
    wrong, task = np.zeros(1, _INDEX_DTYPE), _TAKE_ACROSS.tasks[x.dtype.char]
    sizes = (x.shape[axis], index.shape[axis], n)
    task(index.size // n, _TAKEN_AT_A_TIME // n or 1, x, index, *sizes, made, wrong)
    return None if wrong[0] else to_out(out, made)


def add_across(
    value: Array, index: Array, shape: Shape, axis: int, out: Array | None = None
) -> Array | None:
    """Return zeros with `value` added at indices along an axis that is not the last."""
    made, n = fresh(out, shape, value.dtype), math.prod(shape[axis + 1 :])
    wrong, task = np.zeros(1, _INDEX_DTYPE), _ADD_ACROSS.tasks[value.dtype.char]
    sizes = (shape[axis], index.shape[axis], n)
    task(math.prod(shape[:axis]), 1, value, index, *sizes, made, wrong)
    return None if wrong[0] else to_out(out, made)


def _along_last(x_shape: Shape, index: Array, axis: int) -> bool:
    """Whether an index array is along the last axis, and has the same rows as the operand."""
    return (
        axis == len(x_shape) - 1
        and index.dtype == _INDEX_DTYPE
        and index.size > 0
        and index.shape[:-1] == x_shape[:-1]
    )


def take_along_axis(x: Array, index: Array, *, axis: int) -> Array | None:
    return take_along_last(x, index) if _along_last(x.shape, index, axis) else None


def take_along_axis_vjp(g: Array, shape: Shape, index: Array, *, axis: int) -> Array | None:
    return add_along_last(None, g, index, shape) if _along_last(shape, index, axis) else None


def add_along_axis(x: Array, index: Array, *, shape: Shape, axis: int) -> Array | None:
    return add_along_last(None, x, index, shape) if _along_last(shape, index, axis) else None


def add_along_axis_vjp(g: Array, index: Array, *, shape: Shape, axis: int) -> Array | None:
    return take_along_last(g, index) if _along_last(g.shape, index, axis) else None
