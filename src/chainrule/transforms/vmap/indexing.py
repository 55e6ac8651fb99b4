"""Indices of lanes: reading, adding and writing at places that each lane may have others of."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.backend import is_basic_index
from chainrule.errors import AutogradError
from chainrule.transforms.vmap.batched_array import BatchedArray, Level
from chainrule.transforms.vmap.namespace import (
    aligned,
    beneath,
    data_of,
    full,
    is_array,
    lanes,
    looped,
    padded,
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
    x.check_own()
    if data_of(level, value if is_array(value) else 0).shape[0] not in (1, x.data.shape[0]):
        x.spread()
    if is_basic_index(key):
        region = (slice(None), *_parts(key))
        if not is_array(value):
            x.data[region] = value
            return
        data, rank = data_of(level, value), x.data[region].ndim
        while data.ndim > rank and data.shape[1] == 1:  # as NumPy writes it
            data = data[:, 0]
        x.data[region] = padded(data, rank)
        return
    if any(isinstance(part, BatchedArray) for part in _parts(key)):
        x.spread()

    def write(target: Array, value: Array, *key: Any) -> Array:
        target[key] = value
        return np.zeros(())

    looped(level, write, x, value, *_parts(key))


class _Axes:
    """What an index does to the axes of an array of a shape: which it takes along, and where to."""

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
        self.places = [i for i, plain in enumerate(basic) if not plain]
        self.arrays = [self.parts[i] for i in self.places]
        together = self.places[-1] - self.places[0] < len(self.places)
        self.to = self.places[0] if together else 0  # apart, NumPy puts them to the front


def _simple(level: Level, key: Any, shape: Shape) -> _Axes | None:
    """Return what an index of integers does; None for masks, which take several axes."""
    for part in _parts(key):
        found = part if is_array(part) else np.asarray(part) if isinstance(part, list) else None
        if found is not None and found.dtype.kind == "b":
            return None
    return _Axes(key, shape)


def _positions(level: Level, axes: _Axes, count: int) -> tuple[list[Array], int]:
    """Return index arrays that say of each lane which it is, and how many axes they have."""
    datas = aligned(level, *[np.asarray(p) if not is_array(p) else p for p in axes.arrays])
    rank = datas[0].ndim
    own = np.arange(count).reshape(count, *(1,) * (rank - 1))
    return [own, *datas], rank - 1


def _to_front(data: Array, axes: _Axes) -> Array:
    """Return the axes that arrays index right behind the lanes'."""
    xp = beneath(data)
    order = [0, *[i + 1 for i in axes.places]]
    order += [i for i in range(data.ndim) if i not in order]
    return xp.permute_dims(data, tuple(order))


@rule("index")
def _index(level: Level, name: str, x: Any, key: Any) -> Any:
    if is_basic_index(key):
        return _get_item(level, name, x, key)
    axes = _simple(level, key, x.shape)
    if axes is None:
        if any(data_of(level, part).shape[0] > 1 for part in _parts(key) if is_array(part)):
            return _refused()
        return looped(level, "index", x, key)
    data = data_of(level, x)[(slice(None), *axes.basic)]
    count = data.shape[0]
    own, extra = _positions(level, axes, count)
    data = _to_front(data, axes)
    if count == 1:  # all lanes read one array
        found = beneath(data, *own).index(data[0], tuple(own[1:]))
    else:
        found = beneath(data, *own).index(data, tuple(own))
    found = _moved(found, 1, 1 + axes.to, extra)
    return lanes(level, np.ascontiguousarray(found) if isinstance(found, np.ndarray) else found)


def _moved(data: Array, source: int, to: int, count: int) -> Array:
    """Return an array with `count` axes at another place."""
    if source == to:
        return data
    taken = list(range(source, source + count))
    order = [i for i in range(data.ndim) if i not in taken]
    order[to:to] = taken
    return beneath(data).permute_dims(data, tuple(order))


def _refused() -> Any:
    raise AutogradError(
        "vmap: the shape of the result depends on values, which examples differ in: take "
        "where(mask, x, 0) in the place of x[mask], or index outside"
    )


@rule("index_add")
def _index_add(level: Level, name: str, value: Any, *, shape: Shape, key: Any) -> Any:
    data = data_of(level, value)
    if is_basic_index(key):
        return lanes(
            level,
            beneath(data).index_add(
                data, shape=(data.shape[0], *shape), key=(slice(None), *_parts(key))
            ),
        )
    axes = _simple(level, key, shape)
    if axes is None:
        return looped(level, name, value, shape=shape, key=key)
    data = full(level, data)
    (own, *places), extra = _positions(level, axes, level.count)
    region = np.broadcast_to(np.empty(()), shape)[axes.basic].shape
    lengths = tuple(region[i] for i in axes.places)
    rest = tuple(n for i, n in enumerate(region) if i not in axes.places)
    data = _moved(data, 1 + axes.to, 1, extra)
    xp = beneath(data, *places)
    found = xp.index_add(data, shape=(level.count, *lengths, *rest), key=(own, *places))
    order = [1 + axes.places.index(i) if i in axes.places else None for i in range(len(region))]
    others = iter(range(1 + len(lengths), 1 + len(region)))
    found = xp.permute_dims(found, (0, *[next(others) if i is None else i for i in order]))
    basic = (slice(None), *axes.basic)
    return lanes(level, xp.index_add(found, shape=(level.count, *shape), key=basic))


@rule("add_at")
def _add_at(level: Level, name: str, base: Any, value: Any, *, key: Any) -> Any:
    return base + _index_add(level, "index_add", value, shape=base.shape, key=key)


@rule("assign_at")
def _assign_at(level: Level, name: str, base: Any, value: Any, key: Any) -> Any:
    if not is_basic_index(key):
        return looped(level, name, base, value, key)
    data, written = data_of(level, base), data_of(level, value)
    if written.shape[0] not in (1, data.shape[0]):
        data = full(level, data)
    region = (slice(None), *_parts(key))
    rank = np.broadcast_to(np.empty(()), data.shape)[region].ndim
    found = beneath(data, written).assign_at(data, padded(written, rank), region)
    return lanes(level, found)


@rule("lasting")
def _lasting(level: Level, name: str, key: Any, shape: Shape) -> Any:
    def one(*key: Any) -> Any:
        found = beneath(*[part for part in key if is_array(part)]).lasting(key, shape)
        if found is None:
            found = np.ones(np.broadcast_to(np.empty(()), shape)[key].shape, bool)
        return found

    return looped(level, one, *_parts(key))


@rule("diagonal")
def _diagonal(level: Level, name: str, x: Any, *, offset: int = 0, key: Any) -> Any:
    return x.showing(lambda data: beneath(data).diagonal(data, offset=offset, key=key))


@rule("windows")
def _windows(level: Level, name: str, x: Any, *, size: int, step: int, key: Any) -> Any:
    return x.showing(lambda data: beneath(data).windows(data, size=size, step=step, key=key))
