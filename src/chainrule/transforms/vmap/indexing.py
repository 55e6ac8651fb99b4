"""Batching rules of indexing: reads, sums and writes whose indices may differ between examples."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule.backend import CPU, is_basic_index, is_known, move
from chainrule.transforms.vmap.batched_array import BatchedArray, Level
from chainrule.transforms.vmap.namespace import (
    align_ranks,
    batched,
    broadcast_batch,
    data_of,
    inner_xp,
    is_array,
    is_batched,
    loop_over_batch,
    pad_rank,
    raise_data_dependent_shape,
    rule,
    view,
)

Array = Any
Shape = tuple[int, ...]


def _parts(key: Any) -> tuple[Any, ...]:
    return key if type(key) is tuple else (key,)


@rule("get_item")
def _get_item(level: Level, name: str, x: BatchedArray, key: Any) -> Any:
    if not is_basic_index(key):
        return _index(level, "index", x, key)
    return view(level, x, lambda data: data[(slice(None), *_parts(key))])


@rule("set_item")
def _set_item(level: Level, name: str, x: BatchedArray, key: Any, value: Any) -> None:
    x.check_writable()
    if data_of(level, value if is_array(value) else 0).shape[0] not in (1, x.data.shape[0]):
        x.materialize()
    if is_basic_index(key):
        region = (slice(None), *_parts(key))
        if not is_array(value):
            x.data[region] = value
            return
        data, rank = data_of(level, value), x.data[region].ndim
        while data.ndim > rank and data.shape[1] == 1:  # NumPy drops leading axes of length 1
            data = data[:, 0]
        x.data[region] = pad_rank(data, rank)
        return
    if any(is_batched(level, part) and part.data.shape[0] > 1 for part in _parts(key)):
        x.materialize()
    value = value if is_array(value) else np.asarray(value)
    own = isinstance(x.data, np.ndarray) and isinstance(data_of(level, value), np.ndarray)
    target = _Target(level, x.data, value, key) if own else None
    if target is not None and target.places is not None:
        target.part()[target.places] = target.value  # a view
        return
    found = _write(level, "assign_at", x.data, value, key)
    if found is None:
        _write_each(level, x, key, value)
    else:
        x.data[...] = found


def _write_each(level: Level, x: BatchedArray, key: Any, value: Any) -> None:
    def write(target: Array, value: Array, *key: Any) -> Array:
        target[key] = value
        return np.zeros(())

    loop_over_batch(level, write, x, value, *_parts(key), title="setitem")


class _IndexedAxes:
    """Axes of an array that an index with integer arrays selects from, and their new position."""

    def __init__(self, key: Any, shape: Shape) -> None:
        parts = _parts(key)
        taken = sum(1 for part in parts if part is not None and part is not Ellipsis)
        rest = [slice(None)] * (len(shape) - taken)
        at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
        self.parts = [*parts[:at], *rest, *parts[at + 1 :]]
        basic = [part is None or isinstance(part, slice) for part in self.parts]
        self.basic = tuple(
            part if plain else slice(None) for part, plain in zip(self.parts, basic, strict=True)
        )
        self.indexed = [i for i, plain in enumerate(basic) if not plain]
        self.arrays = [self.parts[i] for i in self.indexed]
        adjacent = self.indexed[-1] - self.indexed[0] < len(self.indexed)
        self.to = self.indexed[0] if adjacent else 0  # NumPy moves separated ones to the front


def _integer_axes(level: Level, key: Any, shape: Shape) -> _IndexedAxes | None:
    """Return the axes of an index of integers; None for masks that differ between examples."""
    parts: list[Any] = []
    for part in _parts(key):
        found = part if is_array(part) else np.asarray(part) if isinstance(part, list) else None
        if found is None or found.dtype.kind != "b":
            parts.append(part)
            continue
        mask = data_of(level, found)
        if mask.shape[0] != 1 or mask.ndim == 1 or not is_known(mask):
            return None
        parts += np.nonzero(move(mask[0], CPU))
    return _IndexedAxes(tuple(parts), shape)


def _positions(level: Level, axes: _IndexedAxes, count: int) -> tuple[list[Array], int]:
    """Return index arrays with the batch index in front, and their number of axes."""
    datas = align_ranks(level, *[np.asarray(p) if not is_array(p) else p for p in axes.arrays])
    rank = datas[0].ndim
    own = np.arange(count).reshape(count, *(1,) * (rank - 1))
    return [own, *datas], rank - 1


def _indexed_axes_first(data: Array, axes: _IndexedAxes) -> Array:
    """Return `data` with the indexed axes right behind the batch axis."""
    return inner_xp(data).permute_dims(data, _order(data.ndim, axes))


def _order(ndim: int, axes: _IndexedAxes) -> tuple[int, ...]:
    """Return the order of axes in which the indexed ones follow the batch axis."""
    front = [0, *[i + 1 for i in axes.indexed]]
    return (*front, *[i for i in range(ndim) if i not in front])


@rule("index")
def _index(level: Level, name: str, x: Any, key: Any) -> Any:
    if is_basic_index(key):
        return _get_item(level, name, x, key)
    axes = _integer_axes(level, key, x.shape)
    if axes is None:
        if any(data_of(level, part).shape[0] > 1 for part in _parts(key) if is_array(part)):
            raise_data_dependent_shape()
        return loop_over_batch(level, "index", x, key)
    data = data_of(level, x)[(slice(None), *axes.basic)]
    count = data.shape[0]
    own, extra = _positions(level, axes, count)
    data = _indexed_axes_first(data, axes)
    if count == 1:  # all examples read one array
        found = inner_xp(data, *own).index(data[0], tuple(own[1:]))
    else:
        found = inner_xp(data, *own).index(data, tuple(own))
    found = _move_axes(found, 1, 1 + axes.to, extra)
    xp = inner_xp(found)
    is_symbol = not (isinstance(found, np.ndarray) or getattr(xp, "waits", False))
    return batched(level, found if is_symbol else xp.ascontiguousarray(found))


def _move_axes(data: Array, source: int, to: int, count: int) -> Array:
    """Return an array with `count` axes moved from `source` to `to`."""
    if source == to:
        return data
    taken = list(range(source, source + count))
    order = [i for i in range(data.ndim) if i not in taken]
    order[to:to] = taken
    return inner_xp(data).permute_dims(data, tuple(order))


@rule("index_add")
def _index_add(level: Level, name: str, value: Any, *, shape: Shape, key: Any) -> Any:
    data = data_of(level, value)
    if is_basic_index(key):
        return batched(
            level,
            inner_xp(data).index_add(
                data, shape=(data.shape[0], *shape), key=(slice(None), *_parts(key))
            ),
        )
    axes = _integer_axes(level, key, shape)
    if axes is None:
        return loop_over_batch(level, name, value, shape=shape, key=key)
    data = broadcast_batch(level, data)
    (own, *indices), extra = _positions(level, axes, level.count)
    region = np.broadcast_to(np.empty(()), shape)[axes.basic].shape
    lengths = tuple(region[i] for i in axes.indexed)
    rest = tuple(n for i, n in enumerate(region) if i not in axes.indexed)
    data = _move_axes(data, 1 + axes.to, 1, extra)
    xp = inner_xp(data, *indices)
    found = xp.index_add(data, shape=(level.count, *lengths, *rest), key=(own, *indices))
    order = [1 + axes.indexed.index(i) if i in axes.indexed else None for i in range(len(region))]
    others = iter(range(1 + len(lengths), 1 + len(region)))
    found = xp.permute_dims(found, (0, *[next(others) if i is None else i for i in order]))
    basic = (slice(None), *axes.basic)
    return batched(level, xp.index_add(found, shape=(level.count, *shape), key=basic))


@rule("add_at")
def _add_at(level: Level, name: str, base: Any, value: Any, *, key: Any) -> Any:
    return base + _index_add(level, "index_add", value, shape=base.shape, key=key)


@rule("assign_at", "maximum_at", "minimum_at")
def _write_at(level: Level, name: str, base: Any, value: Any, key: Any) -> Any:
    data, written = data_of(level, base), data_of(level, value)
    datas = [written, *[data_of(level, part) for part in _parts(key) if is_array(part)]]
    if any(each.shape[0] not in (1, data.shape[0]) for each in datas):
        data = broadcast_batch(level, data)
    found = _write(level, name, data, value, key)
    if found is None:
        return loop_over_batch(level, name, base, value, key=key)
    return batched(level, found)


def _write(level: Level, name: str, data: Array, value: Any, key: Any) -> Array | None:
    """Return data with a value written at a key of each example; None if that takes a loop."""
    written = data_of(level, value)
    xp = inner_xp(data, written)
    combine = functools.partial(_combined, xp, name)
    if is_basic_index(key):
        region = (slice(None), *_parts(key))
        rank = np.broadcast_to(np.empty(()), data.shape)[region].ndim
        return combine(data, pad_rank(written, rank), region)
    target = _Target(level, data, value, key)
    if target.places is not None:
        found = combine(target.part(), target.value, target.places)
        found = xp.permute_dims(found, tuple(np.argsort(target.order).tolist()))
        return xp.assign_at(data, found, target.region)
    if len(_parts(key)) > 1 or name != "assign_at" or written.ndim > 1:
        return None
    mask = data_of(level, _parts(key)[0])
    mask = mask[(..., *(None,) * (data.ndim - mask.ndim))]
    return inner_xp(mask, data, written).where(mask, pad_rank(written, data.ndim), data)


class _Target:
    """The region of data that an index of integers selects, and the value that is written to it.

    `part` has the indexed axes behind the batch axis, and `value` fits its elements at `places`,
    which is None for a mask that differs between examples.
    """

    def __init__(self, level: Level, data: Array, value: Any, key: Any) -> None:
        self.data = data
        self.places: tuple[Array, ...] | None = None
        axes = _integer_axes(level, key, data.shape[1:])
        if axes is None:
            return
        self.region = (slice(None), *axes.basic)
        ndim = np.broadcast_to(np.empty(()), data.shape)[self.region].ndim
        self.order = _order(ndim, axes)
        places, extra = _positions(level, axes, data.shape[0])
        self.places = tuple(places)
        rank, value = ndim - len(axes.indexed) + extra, data_of(level, value)
        while value.ndim > rank and value.shape[1] == 1:  # NumPy drops leading axes of length 1
            value = value[:, 0]
        self.value = _move_axes(pad_rank(value, rank), 1 + axes.to, 1, extra)

    def part(self) -> Array:
        """Return the region, as a view of data if that is an array of NumPy."""
        return inner_xp(self.data).permute_dims(self.data[self.region], self.order)


def _combined(xp: Any, name: str, base: Array, value: Array, key: Any) -> Array:
    """Call `assign_at`, or a function like it whose key is a keyword."""
    function = getattr(xp, name)
    return function(base, value, key) if name == "assign_at" else function(base, value, key=key)


@rule("lasting")
def _lasting(level: Level, name: str, key: Any, shape: Shape) -> Any:
    axes = None if is_basic_index(key) else _integer_axes(level, key, shape)
    if axes is None:
        return _lasting_of_each(level, key, shape)
    counts = [data_of(level, part).shape[0] for part in axes.arrays if is_array(part)]
    count = max(counts, default=1)
    places, extra = _positions(level, axes, count)
    part = np.broadcast_to(np.empty(()), (count, *shape))[(slice(None), *axes.basic)]
    sizes = tuple([part.shape[i] for i in _order(part.ndim, axes)])
    found = inner_xp(*places).lasting(tuple(places), sizes)
    if found is None:
        ends = np.broadcast_shapes(*[place.shape for place in places])
        found = np.ones((*ends, *sizes[1 + len(axes.indexed) :]), bool)
    return batched(level, _move_axes(found, 1, 1 + axes.to, extra))


def _lasting_of_each(level: Level, key: Any, shape: Shape) -> Any:
    def one(*key: Any) -> Any:
        found = inner_xp(*[part for part in key if is_array(part)]).lasting(key, shape)
        if found is None:
            found = np.ones(np.broadcast_to(np.empty(()), shape)[key].shape, bool)
        return found

    return loop_over_batch(level, one, *_parts(key), title="setitem")


@rule("diagonal")
def _diagonal(level: Level, name: str, x: Any, *, offset: int = 0, key: Any) -> Any:
    return x.make_view(lambda data: inner_xp(data).diagonal(data, offset=offset, key=key))


@rule("real_pairs", "complex_pairs")
def _pairs(level: Level, name: str, x: Any) -> Any:
    return x.make_view(lambda data: getattr(inner_xp(data), name)(data))


@rule("windows")
def _windows(level: Level, name: str, x: Any, *, size: int, step: int, key: Any) -> Any:
    return x.make_view(lambda data: inner_xp(data).windows(data, size=size, step=step, key=key))
