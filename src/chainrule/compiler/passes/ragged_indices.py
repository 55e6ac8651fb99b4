"""Reads and writes through indices in steps that differ in sizes: see `ragged_ops`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from chainrule.compiler.ir.program import Op, Value
from chainrule.compiler.passes.ragged_keys import index_parts
from chainrule.compiler.passes.ragged_ops import RaggedBody, RaggedError, Range, Ranges, Rule, Type
from chainrule.compiler.passes.structural_keys import INDEX_POSITIONS, Window


class _Region(NamedTuple):
    """An index in the body, and what it selects."""

    key: tuple[Any, ...]
    shape: tuple[int, ...]
    ranges: Ranges
    is_clipped: bool  # whether some elements stand for others, which lie outside
    listed: int | None  # the axis that index arrays select along


def _getitem(body: RaggedBody, ops: Sequence[Op], columns: Any) -> Value:
    x, op = body._leaf(columns[0]), ops[-1]
    region = _region(body, ops, columns[1:], x.shape, body.ranges_of(x))
    like = Type(region.shape, x.dtype, region.ranges, op.location)
    return body.emit("getitem", (x, region.key), {}, like)


def _assign_at(body: RaggedBody, ops: Sequence[Op], columns: Any) -> Value:
    """Write to a region, where elements that are not the step's keep what they are."""
    x: Value = body._leaf(columns[0])
    value, op = body._leaf(columns[1]), ops[-1]
    region = _region(body, ops, columns[2:], x.shape, body.ranges_of(x), repeats=True)
    if body.written.get(x) == (value, region.key, region.ranges):
        return x  # NumPy's `a[i] += b` writes to the view, and then the view to its place
    given, places = value, region.ranges
    value = body.placed(value, region.ranges[len(region.ranges) - len(value.shape) :], op)
    if region.listed is not None:
        value, region = _repeated(body, value, region, op)
    if any(region.ranges):
        if region.is_clipped:
            raise RaggedError
        if op.function == "assign_at":
            like = Type(region.shape, x.dtype, region.ranges, op.location)
            old = body.emit("getitem", (x, region.key), {}, like)
            if value.dtype != x.dtype:
                like = body.type_of(value, op)._replace(dtype=x.dtype)
                value = body.emit("np.astype", (value, x.dtype), {}, like)
        else:
            old = body.constant(-0.0 if value.dtype.kind in "fc" else 0, value.dtype)
        value = body.kept(value, region.ranges, old, op)
    found = body.emit(op.function, (x, value, region.key), {}, body.type_of(x, op))
    if op.function == "assign_at":
        body.written[found] = given, region.key, places
    return found


def _index_add(body: RaggedBody, ops: Sequence[Op], columns: Any) -> Value:
    value, op = body._leaf(columns[0]), ops[-1]
    ranges = body.common(body.lengths_of(ops), [])
    shape = body.broadcast_shape(ops, ranges)
    region = _region(body, ops, columns[1:], shape, ranges)
    value = body.placed(value, region.ranges, op)
    if any(region.ranges):
        value = body.kept(value, region.ranges, 0, op)
    like = Type(shape, value.dtype, ranges, op.location)
    return body.emit("index_add", (value,), {"shape": shape, "key": region.key}, like)


def _repeated(body: RaggedBody, value: Value, region: _Region, op: Op) -> tuple[Value, _Region]:
    """Return what to write by index arrays: the last element again where there are no others."""
    assert region.listed is not None
    axis = region.listed - len(region.shape)
    place = region.ranges[axis]
    ranges = [*region.ranges]
    ranges[axis] = None
    if place is None or op.function != "assign_at":
        return value, region
    if len(value.shape) >= -axis and value.shape[axis] != 1:
        number = len(value.shape) + axis
        own = [*body.ranges_of(value)]
        own[number] = None
        key = (*[slice(None)] * number, body.nearest(place))
        like = Type(value.shape, value.dtype, tuple(own), op.location)
        value = body.emit("getitem", (value, key), {}, like)
    return value, region._replace(ranges=tuple(ranges))


def _region(
    body: RaggedBody,
    ops: Sequence[Op],
    columns: Any,
    shape: tuple[int, ...],
    ranges: Ranges,
    repeats: bool = False,
) -> _Region:
    """Return what the indices of all steps select of an array of the body.

    Elements of index arrays that aren't the step's are 0, or the nearest one again if `repeats`.
    """
    op = ops[-1]
    place = INDEX_POSITIONS.get(op.function)
    parts = index_parts(op.kwargs["key"] if place is None else op.args[place], len(shape))
    return _Selection(body, ops, shape, ranges, repeats).of(parts, iter(columns))


class _Selection:
    """What an index selects of an array, taken part by part."""

    def __init__(
        self,
        body: RaggedBody,
        ops: Sequence[Op],
        shape: tuple[int, ...],
        ranges: Ranges,
        repeats: bool,
    ) -> None:
        self.body, self.ops, self.shape, self.ranges = body, ops, shape, ranges
        self.repeats = repeats and ops[0].function == "assign_at"
        self.axes: list[tuple[int, Range | None]] = []  # of the result
        self.indices: list[Value] = []
        self.listed: int | None = None

    def of(self, parts: Sequence[tuple[Any, int | None]], columns: Iterator[Any]) -> _Region:
        """Return the region of an index of these parts, each with its axis, and of all steps."""
        by_part = [() if axis is None else next(columns) for _, axis in parts]
        windows = [
            _window(self.body, column, self.shape[axis], self.ranges[axis])
            for column, (item, axis) in zip(by_part, parts, strict=True)
            if isinstance(item, slice) and axis is not None
        ]
        are_arrays = any([window.is_array for window in windows])
        indexed = {axis for _, axis in parts}
        others = [
            (self.shape[a], self.ranges[a]) for a in range(len(self.shape)) if a not in indexed
        ]
        following, key = len(windows), list[Any]()
        for column, (item, axis) in zip(by_part, parts, strict=True):
            if item is None or item is ...:
                self.axes += [(1, None)] if item is None else others
                key.append(item)
            elif isinstance(item, slice):
                window, following = windows[-following], following - 1
                self.axes.append((window.length, window.range))
                key.append(window.array(self.body, following) if are_arrays else window.slice)
            else:
                key.append(self._number_or_array(item, column, axis))
        if ... not in key:
            self.axes += others
        _check_order(key, self.indices, are_arrays)
        sizes, places = zip(*self.axes, strict=True) if self.axes else ((), ())
        is_clipped = any([window.is_clipped for window in windows])
        return _Region(tuple(key), sizes, places, is_clipped, self.listed)

    def _number_or_array(self, item: Any, column: Any, axis: int | None) -> Any:
        """Return the part of an index that is a number, or an array of numbers, in each step."""
        lies = None if axis is None else self.ranges[axis]
        if type(item) is int:
            begins = (0,) * len(self.ops) if lies is None else lies.begins
            return self.body.outside(tuple(map(sum, zip(column, begins, strict=True))))
        found = self.body._leaf(column)
        if isinstance(item, Value) and not item.shape:  # of a loop within the step
            if lies is not None:
                raise RaggedError
            return found
        self.indices.append(found)
        part = _indices(self.body, found, self.ops[-1], self.repeats)
        if len(self.indices) == 1:
            place = self.body.ranges_of(found)
            self.listed = len(self.axes)
            self.axes.append((part.shape[0], place[0] if place else None))
        return part


def _check_order(key: list[Any], indices: list[Value], are_arrays: bool) -> None:
    """Raise if NumPy would put the axes that indices select elsewhere than at their place."""
    if not indices and not are_arrays:
        return
    if indices and (are_arrays or len({(x.shape, x.dtype) for x in indices}) > 1):
        raise RaggedError
    used = [i for i, part in enumerate(key) if isinstance(part, Value | int)]
    if used[-1] - used[0] >= len(used):
        raise RaggedError


def _indices(body: RaggedBody, found: Value, op: Op, repeats: bool) -> Value:
    """Return an array of indices with some that exist beside those of the step."""
    if found.dtype.kind not in "iu" or len(found.shape) != 1:
        raise RaggedError
    (place,) = body.ranges_of(found)
    if place is None:
        return found
    if not repeats:
        return body.kept(found, (place,), 0, op)
    like = Type(found.shape, found.dtype)
    return body.emit("getitem", (found, (body.nearest(place),)), {}, like)


class _Window(NamedTuple):
    """A slice of an axis in all steps."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    length: int
    range: Range | None
    whole: Window | None  # the one slice of all steps, if there is one
    size: int  # of the axis

    @property
    def is_array(self) -> bool:
        return self.whole is None

    @property
    def is_clipped(self) -> bool:
        """Whether some elements stand for others, which lie outside of the axis."""
        return self.whole is None and self.range is not None

    @property
    def slice(self) -> Any:
        assert self.whole is not None
        key = self.whole.key
        if key.step != 1:
            return key
        return slice(key.start or None, key.stop if key.stop < self.size else None)

    def array(self, body: RaggedBody, following: int) -> Any:
        """Return the slice as indices; `following` others of the same index follow it."""
        if self.whole is not None:
            return body._constant(self.whole._replace(following=following).indices)
        if self.range is None:
            each = zip(self.starts, self.steps, strict=True)
            return body.outside(tuple([Window(a, self.length, b, following) for a, b in each]))
        positions, step = body.positions(self.length), body.number(self.steps)
        like = Type(positions.shape, positions.dtype)
        positions = (
            positions if step == 1 else body.emit("np.multiply", (positions, step), {}, like)
        )
        found = body.clipped(positions, self.starts, self.size)
        like = Type((self.length, *[1] * following), positions.dtype)
        return body.emit("np.reshape", (found, like.shape), {}, like) if following else found


def _window(body: RaggedBody, column: Any, size: int, place: Range | None) -> _Window:
    """Return the slice of an axis of a size, whose elements in each step are those of a range."""
    begins = place.begins if place else (0,) * len(column)
    starts = tuple([a + window.start for a, window in zip(begins, column, strict=True)])
    lengths = tuple([window.length for window in column])
    steps = tuple([window.step for window in column])
    step, longest = steps[0], max(lengths)
    if len(set(lengths)) == 1:
        is_one = len(set(starts)) == len(set(steps)) == 1
        whole = Window(starts[0], longest, step) if is_one else None
        return _Window(starts, steps, longest, None, whole, size)
    anchor = min(starts) if step > 0 else max(starts)
    if len(set(steps)) > 1 or any([(start - anchor) % step for start in starts]):
        found = body.frame(lengths)
        found = Range((0,) * len(starts), lengths, longest) if any(found.begins) else found
        return _Window(starts, steps, found.size, found, None, size)
    first = tuple([(start - anchor) // step for start in starts])
    ends = tuple([a + b for a, b in zip(first, lengths, strict=True)])
    found = Range(first, ends, max(ends))
    body.frames.setdefault(lengths, found)
    return _Window(starts, steps, found.size, found, Window(anchor, found.size, step), size)


INDEX_RULES: dict[str, Rule] = {
    "getitem": _getitem,
    **dict.fromkeys(("assign_at", "plus_at"), _assign_at),
    "index_add": _index_add,
}
