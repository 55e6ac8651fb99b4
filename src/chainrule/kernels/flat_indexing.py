"""Gather and scatter through the flattened array.

NumPy indexes one dimension with one integer array several times faster than several dimensions, and
`np.add.at` ten times faster: see `benchmarks/scatter.py`. So an index of many elements is first
converted to positions in the flattened array.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.errors import OutOfBoundsError
from chainrule.interrupts import errstate

Array = Any
Shape = tuple[int, ...]

_FLAT_MIN_ELEMENTS = 512
"""Number of elements from which flat indexing pays."""

_ROUNDS_MIN_ELEMENTS = 1 << 14
"""Number of elements from which whole entries are added in rounds."""

_ROUNDS_MIN_LENGTH = 128
"""Length of entries from which they are; shorter ones are added one by one."""


def is_basic_index(key: Any) -> bool:
    """Return whether an index has only ints, slices, Ellipsis and None, and so gives a view."""
    for part in key if key.__class__ is tuple else (key,):
        kind = part.__class__
        if kind is slice or kind is int or part is None or part is Ellipsis:
            continue
        if kind is bool or not isinstance(part, int | np.integer):
            return False
    return True


def flat_positions(key: Any, shape: Shape) -> Array | None:
    """Return the positions in the flattened array of the elements that an index selects.

    None leaves it to NumPy: for partial slices, new axes and non-adjacent index arrays.
    """
    along = _index_along(key, shape)
    if along is not None:
        index, axis = along
        index = _normalized(index, shape[axis], axis)
        step = math.prod(shape[axis + 1 :])
        return (index if step == 1 else index * step) + _places_beside(shape, index.shape, axis)
    axes = _index_per_axis(key, shape)
    if axes is None:
        return None
    picked = [i for i, (part, _, _) in enumerate(axes) if part is not None]
    if not picked or picked[-1] - picked[0] >= len(picked):
        return None
    first, last = picked[0], picked[-1] + 1
    lengths = [length for _, length, _ in axes]
    found: Any = 0
    try:
        for part, length, axis in axes[first:last]:
            found = found * length + _normalized(part, length, axis)
    except ValueError:
        return None  # the index arrays don't broadcast: NumPy raises
    if last < len(axes):
        after = math.prod(lengths[last:])
        inner = np.arange(after).reshape(lengths[last:])
        found = (found * after)[(..., *(None,) * inner.ndim)] + inner
    if first:
        outer = np.arange(math.prod(lengths[:first])) * math.prod(lengths[first:])
        found = outer.reshape(lengths[:first])[(..., *(None,) * found.ndim)] + found
    return found


def _index_per_axis(key: Any, shape: Shape) -> list[tuple[Any, int, int]] | None:
    """Return for each axis its index (None for a full slice), length and number.

    The axes of a mask count as one.
    """
    parts = list(key) if key.__class__ is tuple else [key]
    indexed = sum([part.ndim if _is_mask(part) else part is not Ellipsis for part in parts])
    if indexed > len(shape):
        return None  # too many indices: NumPy raises
    if Ellipsis not in [part for part in parts if part.__class__ is not np.ndarray]:
        parts.append(Ellipsis)
    axes: list[tuple[Any, int, int]] = []
    axis = 0
    for part in parts:
        if part is Ellipsis:
            stop = axis + len(shape) - indexed
            axes += [(None, shape[i], i) for i in range(axis, stop)]
        elif _is_mask(part):
            stop = axis + part.ndim
            if part.shape != shape[axis:stop] or part.ndim == 0:
                return None
            axes.append((np.flatnonzero(part), part.size, axis))
        elif part.__class__ in (int, np.ndarray):
            stop = axis + 1
            axes.append((part, shape[axis], axis))
        elif part.__class__ is slice and part == slice(None):
            stop = axis + 1
            axes.append((None, shape[axis], axis))
        else:
            return None
        axis = stop
    return axes


def _is_mask(part: Any) -> bool:
    return part.__class__ is np.ndarray and part.dtype.kind == "b"


def _normalized(index: Any, length: int, axis: int) -> Any:
    """Return an index with negative numbers resolved; raise if it is out of bounds."""
    if index.__class__ is int:
        index = np.array(index)
    if index.size == 0:
        return index.astype(np.intp, copy=False)
    if index.dtype == np.intp and np.maximum.reduce(index.view(np.uintp), axis=None) < length:
        return index  # a negative number would be larger
    low, high = int(index.min()), int(index.max())
    if low < -length or high >= length:
        wrong = low if low < -length else high
        raise OutOfBoundsError(f"index {wrong} is out of bounds for axis {axis} with size {length}")
    index = index.astype(np.intp, copy=False)
    return index if low >= 0 else np.where(index < 0, index + length, index)


def check_in_range(parts: Sequence[Any], shape: Shape) -> None:
    """Raise if arrays of indices are out of range: those of NumPy's, for an array of a device."""
    taken = sum(map(_axes_of, parts))
    if taken > len(shape):
        raise OutOfBoundsError(
            f"too many indices for array: array is {len(shape)}-dimensional, but {taken} were "
            "indexed"
        )
    axis = 0
    for part in parts:
        if part is Ellipsis:
            axis += len(shape) - taken
        elif isinstance(part, np.ndarray) and part.dtype.kind in "iu":
            length = shape[axis]
            wrong = part[(part < -length) | (part >= length)]
            if wrong.size:
                raise OutOfBoundsError(
                    f"index {wrong[0]} is out of bounds for axis {axis} with size {length}"
                )
        axis += _axes_of(part)


def _axes_of(part: Any) -> int:
    """Return how many axes a part of an index takes."""
    if part is None or part is Ellipsis or isinstance(part, bool | np.bool_):
        return 0
    kind = getattr(part, "dtype", None)
    return part.ndim if kind is not None and kind.kind == "b" else 1


def grid(index: Array, axis: int) -> tuple[Array, ...]:
    """Return the index of all axes that is equivalent to `take_along_axis` with `index`."""
    last = index.ndim - 1
    return tuple(
        [index if i == axis else axis_range(n, last - i) for i, n in enumerate(index.shape)]
    )


def axis_range(n: int, after: int) -> Array:
    """Return a read-only `arange(n)` with `after` trailing axes of length 1.

    Short ones are cached, so that they can be recognised by identity.
    """
    return _cached_range(n, after) if n <= _ROUNDS_MIN_ELEMENTS else _new_range(n, after)


def _index_along(key: Any, shape: Shape) -> tuple[Array, int] | None:
    """Return the index and the axis of which a key is the `grid`; None for other keys."""
    if key.__class__ is not tuple or len(key) != len(shape) or len(key) < 2:
        return None
    axis, after = None, len(key)
    for part in key:
        after -= 1
        if part.__class__ is not np.ndarray:
            return None
        if part.ndim != after + 1 or part is not axis_range(len(part), after):
            if axis is not None or part.ndim != len(key) or part.dtype.kind != "i":
                return None
            axis = len(key) - 1 - after
    if axis is None:
        return None
    index = key[axis]
    for i, length in enumerate(index.shape):
        if i != axis and (len(key[i]) != length or length > shape[i]):
            return None
    return index, axis


def _places_beside(shape: Shape, index_shape: Shape, axis: int) -> Array:
    """Return the positions of the elements of the other axes, in the flattened array."""
    count = math.prod(index_shape) // max(index_shape[axis], 1)
    return (_cached_places if count <= _ROUNDS_MIN_ELEMENTS else _new_places)(
        shape, index_shape, axis
    )


def _new_places(shape: Shape, index_shape: Shape, axis: int) -> Array:
    places, last = np.zeros((), np.intp), len(shape) - 1
    for i, n in enumerate(index_shape):
        if i != axis:
            places = places + axis_range(n, last - i) * math.prod(shape[i + 1 :])
    return places


_cached_places = functools.lru_cache(64)(_new_places)


def _new_range(n: int, after: int) -> Array:
    found = np.arange(n).reshape((-1,) + (1,) * after)
    found.flags.writeable = False
    return found


_cached_range = functools.lru_cache(64)(_new_range)


def _use_flat_index(x: Array, key: Any, copies: bool) -> bool:
    """Return whether an index selects many single elements of a C-contiguous array.

    NumPy is as fast for entire rows and for one integer-indexed dimension. With `copies`, other
    arrays may be copied to C order first if the index selects enough of their elements.
    """
    parts = key if key.__class__ is tuple else (key,)
    dims = count = 0
    masks = False
    for part in parts:
        if part.__class__ is np.ndarray:
            count = max(count, part.size)
            masks = masks or part.dtype.kind == "b"
            dims += part.ndim if part.dtype.kind == "b" else 1
        elif part.__class__ is int:
            dims += 1
    if count < _FLAT_MIN_ELEMENTS or dims != x.ndim or (dims == 1 and not masks):
        return False
    return bool(x.flags.c_contiguous) or (copies and x.size <= 4 * count)


def _take_axis(key: Any, ndim: int) -> tuple[Array, int] | None:
    """Return the index array and its axis if it is the only one and has integers, else None.

    `take` is twice as fast then.
    """
    if key.__class__ is not tuple:
        is_taken = ndim and key.__class__ is np.ndarray and key.dtype.kind == "i"
        return (key, 0) if is_taken else None
    if len(key) > ndim + 1:
        return None
    found, axis, has_ellipsis = None, 0, False
    for part in key:
        if part is Ellipsis and not has_ellipsis:
            axis += ndim - len(key) + 1
            has_ellipsis = True
            continue
        if part.__class__ is np.ndarray and found is None and part.dtype.kind == "i":
            found = part, axis
        elif part.__class__ is not slice or part != _ALL:
            return None
        axis += 1
    return found if axis <= ndim else None


_ALL = slice(None)


def read(x: Array, key: Any) -> Array:
    """Return ``x[key]``, in C order unless the dimensions of `x` are in another one."""
    if x.flags.c_contiguous and x.size and (taken := _take_axis(key, x.ndim)) is not None:
        return x.take(*taken)
    found = flat_positions(key, x.shape) if _use_flat_index(x, key, True) else None
    if found is not None:
        return x.reshape(-1).take(found)
    out = x[key]
    if out.flags.c_contiguous or list(x.strides) != sorted(x.strides, reverse=True):
        return out
    return np.ascontiguousarray(out)


def write(out: Array, key: Any, value: Array) -> None:
    """Assign ``out[key] = value``."""
    found = flat_positions(key, out.shape) if _use_flat_index(out, key, False) else None
    if found is not None:
        out.reshape(-1)[found] = value
        return
    is_view = value.base is not None or out.base is not None
    if is_view and is_masks(key) and np.may_share_memory(out, value):
        value = value.copy()  # at a mask, NumPy goes on to read what it has written
    out[key] = value


def add(out: Array, key: Any, value: Array, ufunc: Any = np.add, *, zeros: bool = False) -> None:
    """Add `value` to a C-contiguous array at an index, accumulating repeated indices.

    Other ufuncs combine in their own way. `zeros` states that `out` is all zeros.
    """
    index = _row_index(out, key, value) if ufunc is np.add else None
    if index is not None and value.size >= _FLAT_MIN_ELEMENTS:
        length = value.size // index.size
        if length * (1 + (out.dtype.kind == "c")) >= _PRODUCT_MIN_LENGTH:
            product = _sparse_product("csc_matvecs", out, value)
            if product is not None:
                return _add_by_product(product, out, index, value)
        if value.size >= _ROUNDS_MIN_ELEMENTS and length >= _ROUNDS_MIN_LENGTH:
            return _add_rows(out, index, value, zeros)
        return _add_entries(out, index, value)
    found = None
    if out.ndim > 1 and value.size >= _FLAT_MIN_ELEMENTS:
        columns = _column_index(out, key, value) if ufunc is np.add else None
        if columns is not None:
            return _add_columns(out, columns, value)
        found = flat_positions(key, out.shape)
    if found is not None:
        value = np.broadcast_to(value, found.shape).reshape(-1)
        out, key = out.reshape(-1), found.reshape(-1)
    if ufunc is not np.add:
        _extremes_at(ufunc, out, key, value)
    elif out.ndim > 1 or not _is_row(key, value) or value.size < _FLAT_MIN_ELEMENTS:
        np.add.at(out, key, value)
    else:
        add_each(vector_product(out, value), out, _normalized(key, len(out), 0), value)
    return None


def _is_row(key: Any, value: Array) -> bool:
    """Return whether an index is an array in one dimension, with a value for each number."""
    return key.__class__ is np.ndarray and key.dtype.kind == "i" and key.shape == value.shape


def vector_product(out: Array, value: Array) -> Any:
    """Return what `add_each` adds many real numbers with, in half the time; None for others."""
    return None if out.dtype.kind == "c" else _sparse_product("csc_matvec", out, value)


def add_each(product: Any, out: Array, positions: Array, value: Array) -> None:
    """Add numbers at positions in range, all in one dimension, in their order.

    `product` is the `vector_product` of all that are added.
    """
    if add_runs(out, positions, value):
        return
    if product is None:
        np.add.at(out, positions, value)
    else:  # the matrix is a column of them
        ends, one = np.array([0, positions.size]), np.ones(1, out.dtype)
        rows, column = np.ascontiguousarray(positions), np.ascontiguousarray(value)
        product(len(out), 1, ends, rows, column, one, out)


def add_runs(out: Array, index: Array, value: Array) -> bool:
    """Add at an index that is sorted and often repeats: one sum for each run of the same number.

    Return False, with `out` unchanged, for another index. Where `np.add.at` meets the same element
    again and again, it waits for each addition.
    """
    size = index.size
    if size < _RUNS_MIN_ELEMENTS or out.dtype is not value.dtype or out.dtype.char not in "fdFD":
        return False
    for part in (index[:_RUNS_SAMPLE], index):  # most others are known by their beginning
        following, before = part[1:], part[:-1]
        steps = following != before
        is_sorted = before[0] >= 0 and np.greater_equal(following, before).all()
        if not is_sorted or np.count_nonzero(steps) * _RUNS_MIN_LENGTH > part.size:
            return False
    if index[-1] >= len(out):
        return False  # NumPy raises
    starts = np.concatenate([[0], np.flatnonzero(steps) + 1])
    out[index[starts]] += np.add.reduceat(value, starts)
    return True


_RUNS_MIN_ELEMENTS = 1 << 14
"""Number of elements from which a sorted index is looked for."""

_RUNS_MIN_LENGTH = 32
"""Mean number of times that a number must repeat: a sum takes as long as 32 additions."""

_RUNS_SAMPLE = 256
"""Number of elements at the beginning that show that an index is not sorted."""


@errstate(invalid="ignore")  # np.maximum.at warns of nan, unlike np.maximum
def _extremes_at(ufunc: Any, out: Array, key: Any, value: Array) -> None:
    ufunc.at(out, key, value)


def _row_index(out: Array, key: Any, value: Array) -> Array | None:
    """Return the one integer index at which entries of the first axis are added, or None."""
    index = key[0] if key.__class__ is tuple and len(key) == 1 else key
    if index.__class__ is not np.ndarray or index.dtype.kind != "i" or out.ndim < 2:
        return None
    return index if index.size and value.shape == index.shape + out.shape[1:] else None


def _column_index(out: Array, key: Any, value: Array) -> Array | None:
    """Return the one integer index, in one dimension, of the last axis; None for other keys."""
    taken = _take_axis(key, out.ndim)
    if taken is None or taken[1] != out.ndim - 1 or value.shape != out.shape[:-1] + taken[0].shape:
        return None
    return taken[0] if taken[0].ndim == 1 else None


def _add_columns(out: Array, index: Array, value: Array) -> None:
    """Add columns, in blocks of rows, all of which have the same positions."""
    width, length = out.shape[-1], index.size
    rows, values = out.reshape(-1, width), value.reshape(-1, length)
    step = max(_COLUMN_POSITIONS // length, 1)
    starts = np.arange(min(step, len(rows)))[:, None] * width
    positions = (starts + _normalized(index, width, out.ndim - 1)).reshape(-1)
    product = vector_product(out, value)
    for first in range(0, len(rows), step):
        block = values[first : first + step]
        places = positions[: block.size]
        add_each(product, rows[first : first + step].reshape(-1), places, block.reshape(-1))


_COLUMN_POSITIONS = 1 << 14
"""Number of positions of a block of rows."""


def _sparse_product(routine: str, out: Array, value: Array) -> Any:
    """Return SciPy's routine that adds the product of a sparse matrix; None without it.

    It is not public, and the public product adds to new memory. SciPy is imported for many elements
    alone.
    """
    if out.dtype is not value.dtype or out.dtype.char not in "fdFD":
        return None
    if "scipy.sparse" not in sys.modules and value.size < _IMPORT_MIN_ELEMENTS:
        return None
    try:
        from scipy.sparse import _sparsetools
    except ImportError:
        return None
    return getattr(_sparsetools, routine, None)


def _add_by_product(product: Any, out: Array, index: Array, value: Array) -> None:
    """Add entries in their order, as the product with a matrix of a one in each column."""
    index = _normalized(index.reshape(-1), len(out), 0)
    real = out.dtype.char.lower()  # an infinity times a complex one would be nan
    columns, rows = np.ascontiguousarray(value).reshape(-1).view(real), out.reshape(-1).view(real)
    starts, ones = np.arange(index.size + 1), np.ones(index.size, real)
    length = len(columns) // index.size
    product(len(out), index.size, length, starts, index, ones, columns, rows)


_PRODUCT_MIN_LENGTH = 3
"""Length of entries from which a sparse product pays; pairs are added as complex numbers."""

_IMPORT_MIN_ELEMENTS = 1 << 19
"""Number of elements from which SciPy is imported, which takes as long as adding 50 million."""


def _add_entries(out: Array, index: Array, value: Array) -> None:
    """Add entries number by number; those of even length as complex numbers, half as many."""
    length = value.size // index.size
    index = _normalized(index.reshape(-1, 1), len(out), 0)
    if length % 2 == 0 and out.dtype.char in "fd" and out.dtype is value.dtype:
        double = np.complex128 if out.itemsize == 8 else np.complex64
        value, length = np.ascontiguousarray(value).reshape(-1).view(double), length // 2
        out = out.reshape(-1).view(double)
    positions = index * length + np.arange(length)
    np.add.at(out.reshape(-1), positions.reshape(-1), value.reshape(-1))


def _add_rows(out: Array, index: Array, value: Array, zeros: bool) -> None:
    """Add entries in rounds: the first of each index, then the second of each, and so on."""
    index = _normalized(index.reshape(-1), len(out), 0)
    value = value.reshape(index.size, *out.shape[1:])
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    occurrence = np.arange(index.size) - np.searchsorted(ordered, ordered)
    rounds = int(occurrence.max()) + 1
    if rounds * 8 > index.size:  # no faster than one by one
        for row_number, row in zip(index.tolist(), value, strict=True):
            out[row_number] += row
        return
    if zeros:  # the first round is an assignment
        chosen = order[occurrence == 0]
        out[index[chosen]] = value[chosen]
    for number in range(int(zeros), rounds):
        chosen = order[occurrence == number]
        out[index[chosen]] += value[chosen]


def is_masks(key: Any) -> bool:
    """Return whether all arrays of an index are masks, so that no element is repeated."""
    parts = key if key.__class__ is tuple else (key,)
    return all([part.dtype.kind == "b" for part in parts if hasattr(part, "dtype")])


def lasting(key: Any, shape: Shape) -> Array | None:
    """Return the mask of assigned values that no later one overwrites; None if all survive."""
    taken = _take_axis(key, len(shape))
    if taken is not None:  # whole entries survive
        index, axis = taken
        survives = last_writers(_normalized(index, shape[axis], axis), shape[axis])
        after = shape[axis + 1 :]
        survives = survives.reshape(survives.shape + (1,) * len(after))
        survives = np.broadcast_to(survives, shape[:axis] + index.shape + after)
    else:
        found = flat_positions(key, shape)
        if found is None:
            found = np.arange(math.prod(shape)).reshape(shape)[key]
        survives = last_writers(found, math.prod(shape))
    return None if survives.all() else survives


def last_writers(positions: Array, count: int) -> Array:
    """Return which of `positions`, each smaller than `count`, no later one repeats."""
    kind = np.int32 if positions.size < 1 << 31 else np.intp  # half the memory is read
    last_writer = np.empty(count, kind)
    number = np.arange(positions.size, dtype=kind).reshape(positions.shape)
    last_writer[positions] = number
    survives: Array = last_writer.take(positions, mode="wrap") == number  # without a check
    return survives
