"""Reading and writing at many places of an array, through its flat memory.

NumPy indexes one dimension with one array of ints several times faster than it indexes several
dimensions, and `np.add.at` ten times faster: `benchmarks/scatter.py` has the figures. So an index
of many elements becomes positions in the flattened array first.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from chainrule.errors import OutOfBoundsError

Array = Any
Shape = tuple[int, ...]

_MANY = 512
"""From so many elements on, working out positions costs less than it saves."""

_MANY_ROWS = 1 << 14
"""From so many elements on, entries are added in rounds."""


def is_basic_index(key: Any) -> bool:
    """Say whether an index is of ints, slices, Ellipsis and None alone, and so gives a view."""
    parts = key if type(key) is tuple else (key,)
    return all(
        part is None or part is Ellipsis or isinstance(part, slice | int | np.integer)
        for part in parts
    ) and not any(isinstance(part, bool | np.bool_) for part in parts)


def positions(key: Any, shape: Shape) -> Array | None:
    """Return where in a flattened array of `shape` the elements are that an index picks.

    None where NumPy has to do it: for parts of slices, for new axes, for arrays that are apart.
    """
    axes = _full_axes(key, shape)
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
            found = found * length + _checked(part, length, axis)
    except ValueError:
        return None  # the arrays don't fit each other: NumPy says so
    if last < len(axes):
        after = math.prod(lengths[last:])
        inner = np.arange(after).reshape(lengths[last:])
        found = (found * after)[(..., *(None,) * inner.ndim)] + inner
    if first:
        outer = np.arange(math.prod(lengths[:first])) * math.prod(lengths[first:])
        found = outer.reshape(lengths[:first])[(..., *(None,) * found.ndim)] + found
    return found


def _full_axes(key: Any, shape: Shape) -> list[tuple[Any, int, int]] | None:
    """Return for each axis its index (None for all of it), length and number.

    The axes of a mask are one.
    """
    parts = list(key) if key.__class__ is tuple else [key]
    taken = sum([part.ndim if _is_mask(part) else part is not Ellipsis for part in parts])
    if taken > len(shape):
        return None  # NumPy says so
    if Ellipsis not in [part for part in parts if part.__class__ is not np.ndarray]:
        parts.append(Ellipsis)
    axes: list[tuple[Any, int, int]] = []
    axis = 0
    for part in parts:
        if part is Ellipsis:
            stop = axis + len(shape) - taken
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


def _checked(index: Any, length: int, axis: int) -> Any:
    """Return an index with negative numbers counted from the front."""
    if index.__class__ is int:
        index = np.array(index)
    if index.size == 0:
        return index.astype(np.intp, copy=False)
    if index.dtype == np.intp and np.maximum.reduce(index.view(np.uintp), axis=None) < length:
        return index  # a negative one would have been larger
    low, high = int(index.min()), int(index.max())
    if low < -length or high >= length:
        wrong = low if low < -length else high
        raise OutOfBoundsError(f"index {wrong} is out of bounds for axis {axis} with size {length}")
    index = index.astype(np.intp, copy=False)
    return index if low >= 0 else np.where(index < 0, index + length, index)


def grid(index: Array, axis: int) -> tuple[Array, ...]:
    """Return the index of all axes that picks what `index` does along one; the others count up."""
    last = index.ndim - 1
    return tuple([index if i == axis else counts(n, last - i) for i, n in enumerate(index.shape)])


def counts(n: int, after: int) -> Array:
    """Return the numbers below n along a first axis, before others of length 1; not to change.

    Those of a length that is met often are the same array each time.
    """
    return _known_counts(n, after) if n <= _MANY_ROWS else _new_counts(n, after)


def _new_counts(n: int, after: int) -> Array:
    found = np.arange(n).reshape((-1,) + (1,) * after)
    found.flags.writeable = False
    return found


_known_counts = functools.lru_cache(64)(_new_counts)


def _worth_it(x: Array, key: Any, copies: bool) -> bool:
    """Say whether single elements are picked, many of them, from memory in C order.

    Whole rows, and one dimension by ints, NumPy handles as fast. Other memory may be copied first,
    unless few of its elements are asked for.
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
    if count < _MANY or dims != x.ndim or (dims == 1 and not masks):
        return False
    return bool(x.flags.c_contiguous) or (copies and x.size <= 4 * count)


def _axis_taken_along(key: Any) -> int | None:
    """Return the axis that an array of ints indexes alone: `take` needs half the time for it."""
    parts = key if key.__class__ is tuple else (key,)
    last = parts[-1] if parts else None
    if last.__class__ is not np.ndarray or last.dtype.kind != "i":
        return None
    for part in parts[:-1]:
        if part.__class__ is not slice or part != _ALL:
            return None
    return len(parts) - 1


_ALL = slice(None)


def read(x: Array, key: Any) -> Array:
    """Return ``x[key]``."""
    axis = _axis_taken_along(key)
    if axis is not None and x.flags.c_contiguous and x.size:
        return x.take(key if key.__class__ is np.ndarray else key[-1], axis)
    found = positions(key, x.shape) if _worth_it(x, key, True) else None
    return x[key] if found is None else x.reshape(-1).take(found)


def write(out: Array, key: Any, value: Array) -> None:
    """Do ``out[key] = value``."""
    found = positions(key, out.shape) if _worth_it(out, key, False) else None
    if found is None:
        out[key] = value
    else:
        out.reshape(-1)[found] = value


def add(out: Array, key: Any, value: Array, ufunc: Any = np.add, *, zeros: bool = False) -> None:
    """Add `value` to memory in C order at an index, repeated ones adding up.

    Other ufuncs than np.add combine in their own way. `zeros` says that `out` holds nothing else.
    """
    if ufunc is np.add and value.size >= _MANY_ROWS and _is_rows(out, key, value):
        return _add_rows(out, key[0] if key.__class__ is tuple else key, value, zeros)
    found = positions(key, out.shape) if out.ndim > 1 and value.size >= _MANY else None
    if found is not None:
        value = np.broadcast_to(value, found.shape).reshape(-1)
        out, key = out.reshape(-1), found.reshape(-1)
    if ufunc is np.add:
        np.add.at(out, key, value)
    else:
        with np.errstate(invalid="ignore"):  # np.maximum.at warns of nan, as np.maximum doesn't
            ufunc.at(out, key, value)
    return None


def _is_rows(out: Array, key: Any, value: Array) -> bool:
    """Say whether whole entries of the first axis, of some length, are added at one index."""
    parts = key if key.__class__ is tuple else (key,)
    index = parts[0] if parts else None
    return bool(
        len(parts) == 1
        and index.__class__ is np.ndarray
        and index.dtype.kind == "i"
        and index.size
        and out.ndim > 1
        and value.shape == index.shape + out.shape[1:]
        and value.size >= 32 * index.size
    )


def _add_rows(out: Array, index: Array, value: Array, zeros: bool) -> None:
    """Add entries, in rounds: all that come first to their place, all that come second, …"""
    index = _checked(index.reshape(-1), len(out), 0)
    value = value.reshape(index.size, *out.shape[1:])
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    turn = np.arange(index.size) - np.searchsorted(ordered, ordered)
    rounds = int(turn.max()) + 1
    if rounds * 8 > index.size:  # one after the other is as quick
        for place, row in zip(index.tolist(), value, strict=True):
            out[place] += row
        return
    if zeros:  # what comes first need not be added
        chosen = order[turn == 0]
        out[index[chosen]] = value[chosen]
    for number in range(int(zeros), rounds):
        chosen = order[turn == number]
        out[index[chosen]] += value[chosen]


def is_masks(key: Any) -> bool:
    """Say whether all arrays of an index are masks, so that it repeats no element."""
    parts = key if key.__class__ is tuple else (key,)
    return all([part.dtype.kind == "b" for part in parts if hasattr(part, "dtype")])


def lasting(key: Any, shape: Shape) -> Array | None:
    """Say which of the values written at an index are not overwritten by later ones of them.

    None if none is.
    """
    found = positions(key, shape)
    if found is None:
        found = np.arange(math.prod(shape)).reshape(shape)[key]
    owner = np.empty(math.prod(shape), np.intp)
    number = np.arange(found.size).reshape(found.shape)
    owner[found] = number
    stays = owner[found] == number
    return None if stays.all() else stays
