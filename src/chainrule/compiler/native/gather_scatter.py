"""Kernels of gathering and scatter-adding along one axis, with bounds checks of the indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.compiler.codegen import runtime
from chainrule.compiler.ir.program import Op
from chainrule.compiler.native.generic import u8
from chainrule.compiler.native.kernel import MIN_SIZE, PART, Kernel, is_plain
from chainrule.kernels import gather_scatter, threads

Array = Any
Shape = tuple[int, ...]

# --- loops ----------------------------------------------------------------------------------------
# Negative and too large indices are skipped, and set `wrong`. Such an index k is found by a sign
# bit: that of k, or that of length - 1 - k.


def _take(
    start: int, stop: int, x: Array, index: Array, length: int, n: int, out: Array, wrong: Array
) -> None:
    """Fill `out` with the rows of `x` at an index."""
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
    base: Array,
    has_base: int,
    value: Array,
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
    for i in range(count):
        k = index[u8(i)]
        if k < 0 or k >= length:
            wrong[0] = 1
        elif start <= k < stop:
            source, target = u8(i * n), u8(k * n)
            for j in range(u8(n)):
                out[target + j] += value[source + j]


def _take_along(
    start: int, stop: int, x: Array, index: Array, length: int, n: int, out: Array, wrong: Array
) -> None:
    """Fill each row of `out` with the elements of the row of `x` at its row of indices."""
    for i in range(start, stop):
        row, first = u8(i * length), u8(i * n)
        for j in range(u8(n)):
            k = u8(index[first + j])
            if k >= u8(length):  # also true of negative indices
                wrong[0] = 1
                break  # keeps LLVM from using gather instructions, which are slow
            out[first + j] = x[row + k]


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
    """Fill rows of `out` with `base`, or zeros, and add `value` at its row of indices."""
    for i in range(start, stop):
        row, first = u8(i * length), u8(i * n)
        if has_base:
            for j in range(u8(length)):
                out[row + j] = base[row + j]
        else:
            for j in range(u8(length)):
                out[row + j] = 0
        signs = 0
        for j in range(u8(n)):
            signs |= index[first + j] | (length - 1 - index[first + j])
        if signs >= 0:
            for j in range(u8(n)):
                out[row + u8(index[first + j])] += value[first + j]
        else:
            wrong[0] = 1


# --- calls of the loops ---------------------------------------------------------------------------

_TAKE = Kernel(_take, "real i8 n n real i8")
_ADD_ROWS = Kernel(_add_rows, "real n real i8 n n n real i8")
_TAKE_ALONG = Kernel(_take_along, "real i8 n n real i8")
_ADD_ALONG = Kernel(_add_along, "real n real i8 n n real i8")


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
        return _gather(x, along_last) if _is_index(along_last) else None
    n = x.size // len(x)
    out, wrong = np.empty(indices.shape + x.shape[1:], x.dtype), np.zeros(1, _INDEX_DTYPE)
    if out.size == 0:
        return None
    task = _TAKE.tasks[x.dtype.char]
    task(indices.size, PART // n or 1, x, indices, len(x), n, out, wrong)
    return None if wrong[0] else out


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
        return _scatter_add(base, value, along_last, shape) if _is_index(along_last) else None
    if value.shape != indices.shape + shape[1:] or 0 in shape:
        return None
    n, wrong = math.prod(shape[1:]), np.zeros(1, _INDEX_DTYPE)
    out = np.empty(shape, value.dtype)
    begin = (value, 0) if base is None else (base, 1)
    parts = threads.get_num_threads() * (4 if n >= 16 else 1)  # each part reads all indices
    task, step = _ADD_ROWS.tasks[value.dtype.char], -(-shape[0] // parts)
    task(shape[0], step, *begin, value, indices, indices.size, shape[0], n, out, wrong)
    return None if wrong[0] else out


def _gather(x: Array, index: Array) -> Array | None:
    """Return the elements of `x` at indices along the last axis, of which each row has its own."""
    length, n = x.shape[-1], index.shape[-1]
    out, wrong = np.empty(index.shape, x.dtype), np.zeros(1, _INDEX_DTYPE)
    task = _TAKE_ALONG.tasks[x.dtype.char]
    task(index.size // n, PART // n or 1, x, index, length, n, out, wrong)
    return None if wrong[0] else out


def _scatter_add(base: Array | None, value: Array, index: Array, shape: Shape) -> Array | None:
    """Return `base`, or zeros, with `value` added at indices along the last axis."""
    if index.shape != value.shape or 0 in shape:
        return None
    length, n = shape[-1], index.shape[-1]
    out, wrong = np.empty(shape, value.dtype), np.zeros(1, _INDEX_DTYPE)
    begin = (value, 0) if base is None else (base, 1)
    task, step = _ADD_ALONG.tasks[value.dtype.char], PART // (length + n) or 1
    task(out.size // length, step, *begin, value, index, length, n, out, wrong)
    return None if wrong[0] else out


def _along_last(x_shape: Shape, index: Array, axis: int) -> bool:
    """Whether an index array is along the last axis, and has the same rows as the operand."""
    return (
        axis == len(x_shape) - 1
        and index.dtype == _INDEX_DTYPE
        and index.size > 0
        and index.shape[:-1] == x_shape[:-1]
    )


def take_along_axis(x: Array, index: Array, *, axis: int) -> Array | None:
    return _gather(x, index) if _along_last(x.shape, index, axis) else None


def take_along_axis_vjp(g: Array, shape: Shape, index: Array, *, axis: int) -> Array | None:
    return _scatter_add(None, g, index, shape) if _along_last(shape, index, axis) else None


def add_along_axis(x: Array, index: Array, *, shape: Shape, axis: int) -> Array | None:
    return _scatter_add(None, x, index, shape) if _along_last(shape, index, axis) else None


def add_along_axis_vjp(g: Array, index: Array, *, shape: Shape, axis: int) -> Array | None:
    return _gather(g, index) if _along_last(g.shape, index, axis) else None


# --- functions of compiled programs ---------------------------------------------------------------


def _index_add(value: Array, *, shape: Shape, key: Any) -> Array | None:
    return _add_at(None, value, shape, key)


_KERNELS: dict[str, tuple[Callable[..., Array | None], int]] = {
    "index_add": (_index_add, 0),
    "add_at": (add_at, 1),
    "take_along_axis": (take_along_axis, 1),
    "add_along_axis": (add_along_axis, 0),
}
"""For a function of `codegen.runtime`: its kernel, and the operand whose elements are moved."""


def _with_kernel(name: str) -> Callable[..., Array]:
    """Return a function of `codegen.runtime`, with a kernel for large arrays."""
    (kernel, moved), otherwise = _KERNELS[name], getattr(runtime, name)

    def function(*operands: Array, **settings: Any) -> Array:
        found = None
        if "out" in settings:  # of slices
            return otherwise(*operands, **settings)
        if operands[moved].size >= MIN_SIZE and operands[0].dtype.char in "fd":
            plain = list(operands)
            plain[moved] = np.require(operands[moved], requirements=["C", "A", "W"])
            if all([is_plain(operand) for operand in plain]):
                found = kernel(*plain, **settings)
        return otherwise(*operands, **settings) if found is None else found

    return function


RUNTIME = {name: _with_kernel(name) for name in _KERNELS}
"""Functions in the place of those of `codegen.runtime`."""

_ELEMENTS = 8
"""Number of elements that a loop computes in the time that NumPy takes to add one at an index."""


def work(op: Op) -> int:
    """Return the work that a kernel saves, in elements computed by operations."""
    if op.function not in _KERNELS:
        return 0
    size: int = op.inputs[_KERNELS[op.function][1]].size
    return _ELEMENTS * size if size >= MIN_SIZE else 0
