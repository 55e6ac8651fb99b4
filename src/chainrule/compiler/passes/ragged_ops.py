"""Ops of steps that differ in sizes, on axes that are as long as all steps need.

An axis whose length differs from step to step is *ragged*. In the body of the loop it is as long as
all steps need, and its `Range` says which elements are those of a step: the others hold anything.
A slice of an array becomes the same slice in all steps, from the first index that one of them
takes to the last; so operands mostly lie side by side. Where they do not, one is gathered. Masks
keep the elements that are not a step's from sums and from what is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.op_traits import is_elementwise
from chainrule.compiler.ir.program import Op, Value, map_values
from chainrule.compiler.passes.ragged_keys import Number
from chainrule.compiler.passes.reroll_loop import LoopBuilder
from chainrule.compiler.passes.structural_keys import Leaf

Lengths = tuple[int, ...]  # of an axis in each step


class RaggedError(Exception):
    """An op can't run on more elements than those of its step."""


class Range(NamedTuple):
    """The elements of a ragged axis that are those of a step, for each step."""

    begins: tuple[int, ...]
    ends: tuple[int, ...]
    size: int  # of the axis in the body

    @property
    def lengths(self) -> Lengths:
        return tuple([end - begin for begin, end in zip(self.begins, self.ends, strict=True)])


_PARTIAL = ("np.floor_divide", "np.remainder", "np.power")
"""Functions of integers that fail for some, which may stand beside those of a step."""

Ranges = tuple[Range | None, ...]  # of the axes of a value; None for one that isn't ragged


class RaggedBody(LoopBuilder):
    """Append ops to the body of a loop whose steps differ in sizes."""

    rules: Mapping[str, Rule]  # of functions that aren't elementwise
    ranges: dict[Value, Ranges]  # of the ragged values of the body
    frames: dict[Lengths, Range]  # of axes that could lie anywhere
    masks: dict[Any, Value]
    numbers: dict[Any, Value]  # constants
    filled: dict[Value, tuple[Ranges, Any]]  # values with a number beside the step's elements
    written: dict[Value, tuple[Value, Any, Ranges]]  # what was written last to values, and where

    def lowered(self, ops: Sequence[Op], columns: Sequence[tuple[Leaf, ...]]) -> Value:
        """Append what does the same as one op of each step; return its result."""
        function = ops[0].function
        rule = _elementwise if is_elementwise(function) else self.rules.get(function)
        out = ops[0].outs[0] if len(ops[0].outs) == 1 else None
        if rule is None or out is None or (out.dtype.kind in "iu" and function in _PARTIAL):
            raise RaggedError
        found: Value = rule(self, ops, columns)
        return found

    def ranges_of(self, value: Value) -> Ranges:
        """Return the ranges of the axes of a value of the body."""
        return self.ranges.get(value) or (None,) * len(value.shape)

    def frame(self, lengths: Lengths) -> Range:
        """Return where an axis lies that could lie anywhere: as another of these lengths."""
        return self.frames.setdefault(lengths, Range((0,) * len(lengths), lengths, max(lengths)))

    def emit(
        self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any], like: Type
    ) -> Value:
        """Append an op; return its result."""
        out = Value(like.shape, like.dtype)
        self.body.append(Op(function, args, kwargs, (out,), like.location))
        if any(like.ranges):
            self.ranges[out] = like.ranges
        return out

    def type_of(self, value: Value, op: Op) -> Type:
        """Return the type of a value of the body, for another one of an op."""
        return Type(value.shape, value.dtype, self.ranges_of(value), op.location)

    def lengths_of(self, ops: Sequence[Op]) -> list[Lengths]:
        """Return the lengths of the axes of the results of all steps."""
        return [*zip(*[op.out.shape for op in ops], strict=True)]

    # --- elements of a step ---

    def mask(self, place: Range) -> Value:
        """Return which elements of an axis are those of the step."""
        found = self.masks.get(place)
        if found is None:
            parts = []
            if any(place.begins):
                parts.append(("np.greater_equal", self.number(place.begins)))
            if min(place.ends) < place.size:
                parts.append(("np.less", self.number(place.ends)))
            like = Type((place.size,), np.dtype(bool))
            positions = self.positions(place.size)
            conditions = [self.emit(name, (positions, end), {}, like) for name, end in parts]
            found = conditions[0]
            if len(conditions) > 1:
                found = self.emit("np.logical_and", tuple(conditions), {}, like)
            self.masks[place] = found
        return found

    def constant(self, number: Any, dtype: Any) -> Value:
        """Return a number as a value, the same for equal ones."""
        key = repr(number), dtype
        if key not in self.numbers:
            self.numbers[key] = self._constant(np.array(number, dtype))
        return self.numbers[key]

    def number(self, column: tuple[int, ...]) -> Any:
        """Return the number of each step, to compute with."""
        if len(set(column)) == 1:
            return column[0]
        if column not in self.masks:
            self.masks[column] = found = Value((), np.int64)
            self.slices[found] = self._constant(np.array(column, np.int64))
        return self.masks[column]

    def positions(self, size: int) -> Value:
        """Return the numbers of the elements of an axis."""
        if size not in self.masks:
            self.masks[size] = self._constant(np.arange(size))
        return self.masks[size]

    def mask_of(self, ranges: Ranges) -> Value:
        """Return which elements of an array are those of the step: it broadcasts to the array."""
        found: Value | None = None
        for axis, place in enumerate(ranges):
            if place is None:
                continue
            shape = (place.size, *[1] * (len(ranges) - 1 - axis))
            part = self.mask(place)
            if len(shape) > 1:
                part = self.emit("np.reshape", (part, shape), {}, Type(shape, part.dtype))
            if found is not None:
                both = np.broadcast_shapes(found.shape, shape)
                part = self.emit("np.logical_and", (found, part), {}, Type(both, part.dtype))
            found = part
        assert found is not None
        return found

    def kept(self, value: Value, ranges: Ranges, fill: Any, op: Op) -> Value:
        """Return an array with another number in the place of elements that aren't the step's."""
        is_number = not isinstance(fill, Value)
        if is_number and self.filled.get(value) == (ranges, fill):
            return value
        other = self.constant(fill, value.dtype) if is_number else fill
        shape = np.broadcast_shapes(value.shape, other.shape)
        like = Type(shape, value.dtype, self.ranges.get(value, ()), op.location)
        found = self.emit("np.where", (self.mask_of(ranges), value, other), {}, like)
        if is_number:
            self.filled[found] = ranges, fill
        return found

    # --- operands side by side ---

    def common(self, lengths: Sequence[Lengths], operands: Sequence[Value]) -> Ranges:
        """Return where the axes lie of the result of operands that broadcast to these lengths."""
        found: list[Range | None] = []
        for axis, each in enumerate(lengths, -len(lengths)):
            places = [
                self.ranges_of(x)[axis]
                for x in operands
                if len(x.shape) >= -axis and (self.ranges_of(x)[axis] or x.shape[axis] != 1)
            ]
            if len(set(each)) == 1:
                if any(places):
                    raise RaggedError
                found.append(None)
                continue
            if any([place is None or place.lengths != each for place in places]):
                raise RaggedError
            if not places:
                found.append(self.frame(each))
                continue
            begins = Counter([place.begins for place in places if place]).most_common(1)[0][0]
            found.append(min([p for p in places if p and p.begins == begins], key=lambda p: p.size))
        return tuple(found)

    def placed(self, value: Value, ranges: Ranges, op: Op) -> Value:
        """Return an operand whose ragged axes lie where those of the result do."""
        for axis in range(-len(value.shape), 0):
            place, target = self.ranges_of(value)[axis], ranges[axis]
            if place is not None and place != target:
                if target is None or place.lengths != target.lengths:
                    raise RaggedError
                value = self._moved(value, axis, place, target, op)
            elif target is not None and place is None and value.shape[axis] != 1:
                raise RaggedError
        return value

    def _moved(self, value: Value, axis: int, place: Range, target: Range, op: Op) -> Value:
        """Return an array of which one axis lies elsewhere."""
        shifts = tuple([a - b for a, b in zip(place.begins, target.begins, strict=True)])
        number, size = len(value.shape) + axis, target.size
        item: Any
        if len(set(shifts)) == 1 and shifts[0] >= 0 and shifts[0] + size <= place.size:
            item = slice(shifts[0], shifts[0] + size)
        else:
            item = self.clipped(self.positions(size), shifts, place.size)
        shape = (*value.shape[:number], size, *value.shape[number + 1 :])
        ranges = [*self.ranges_of(value)]
        ranges[number] = target
        like = Type(shape, value.dtype, tuple(ranges), op.location)
        return self.emit("getitem", (value, (*[slice(None)] * number, item)), {}, like)

    def clipped(self, positions: Value, starts: tuple[int, ...], size: int) -> Value:
        """Return indices from a start on, those outside of an axis in the place of its ends."""
        like = Type(positions.shape, positions.dtype)
        found = self.emit("np.add", (positions, self.number(starts)), {}, like)
        found = self.emit("np.maximum", (found, 0), {}, like)
        return self.emit("np.minimum", (found, size - 1), {}, like)

    def nearest(self, place: Range) -> Value:
        """Return for each element of an axis the number of the nearest one that is the step's."""
        if 0 in place.lengths:
            raise RaggedError
        found, like = self.positions(place.size), Type((place.size,), np.dtype(np.int64))
        if any(place.begins):
            found = self.emit("np.maximum", (found, self.number(place.begins)), {}, like)
        last = tuple([end - 1 for end in place.ends])
        return self.emit("np.minimum", (found, self.number(last)), {}, like)

    def broadcast_shape(self, ops: Sequence[Op], ranges: Ranges) -> tuple[int, ...]:
        """Return the shape of a result in the body."""
        shape = ops[0].out.shape
        pairs = zip(shape, ranges, strict=True)
        return tuple([size if place is None else place.size for size, place in pairs])


class Type(NamedTuple):
    """The shape and dtype of a result in the body, its ranges, and the line that it comes from."""

    shape: tuple[int, ...]
    dtype: Any
    ranges: Ranges = ()
    location: Any = None


Rule = Callable[[RaggedBody, Sequence[Op], Sequence[tuple[Leaf, ...]]], Value]


# --- elementwise ops, and views -------------------------------------------------------------------


def _elementwise(body: RaggedBody, ops: Sequence[Op], columns: Any) -> Value:
    op = ops[-1]
    if not op.inputs:
        raise RaggedError
    dtype = np.result_type(*[x.dtype for x in op.inputs])
    leaves = [
        _number(body, column, dtype) if isinstance(column[0], Number) else body._leaf(column)
        for column in columns
    ]
    operands = [x for x in leaves if isinstance(x, Value)]
    ranges = body.common(body.lengths_of(ops), operands)
    placed = iter([body.placed(x, ranges, op) if isinstance(x, Value) else x for x in leaves])
    args = tuple([next(placed) if x.__class__ in (Value, int, float) else x for x in op.args])
    kwargs = {name: map_values(x, lambda _: next(placed)) for name, x in op.kwargs.items()}
    like = Type(body.broadcast_shape(ops, ranges), op.out.dtype, ranges, op.location)
    return body.emit(op.function, args, kwargs, like)


def _number(body: RaggedBody, column: tuple[Number, ...], dtype: Any) -> Any:
    """Return a number that steps may have their own of, with the dtype that NumPy gives it."""
    values = [number.value for number in column]
    if all([value == values[0] for value in values]):
        return values[0]
    if type(values[0]) is float and dtype.kind not in "fc":
        dtype = np.dtype(np.float64)
    return body.outside([body._constant(np.array(value, dtype)) for value in values])


def _permute_dims(body: RaggedBody, ops: Sequence[Op], columns: Any) -> Value:
    x, op = body._leaf(columns[0]), ops[-1]
    axes = op.args[1]
    ranges, shape = body.ranges_of(x), tuple([x.shape[axis] for axis in axes])
    like = Type(shape, x.dtype, tuple([ranges[axis] for axis in axes]), op.location)
    return body.emit(op.function, (x, axes), op.kwargs, like)


def _reshape(body: RaggedBody, ops: Sequence[Op], columns: Any) -> Value:
    """Axes of length 1 come and go."""
    x, op = body._leaf(columns[0]), ops[-1]
    given = [*zip(*[value.shape for value in columns[0]], strict=True)]
    axes = [axis for axis, lengths in enumerate(given) if set(lengths) != {1}]
    shape: list[int] = []
    ranges: list[Range | None] = []
    for lengths in body.lengths_of(ops):
        if set(lengths) == {1}:
            shape.append(1)
            ranges.append(None)
            continue
        if not axes or given[axes[0]] != lengths:
            raise RaggedError
        axis = axes.pop(0)
        shape.append(x.shape[axis])
        ranges.append(body.ranges_of(x)[axis])
    if axes:
        raise RaggedError
    like = Type(tuple(shape), x.dtype, tuple(ranges), op.location)
    return body.emit("np.reshape", (x, like.shape), {}, like)


def _broadcast_to(body: RaggedBody, ops: Sequence[Op], columns: Any) -> Value:
    x, op = body._leaf(columns[0]), ops[-1]
    ranges = body.common(body.lengths_of(ops), [x])
    shape = body.broadcast_shape(ops, ranges)
    like = Type(shape, x.dtype, ranges, op.location)
    return body.emit(op.function, (body.placed(x, ranges, op), shape), {}, like)


def _filled(body: RaggedBody, ops: Sequence[Op], columns: Any) -> Value:
    ranges = body.common(body.lengths_of(ops), [])
    shape, op = body.broadcast_shape(ops, ranges), ops[-1]
    like = Type(shape, op.out.dtype, ranges, op.location)
    return body.emit(op.function, (shape, *op.args[1:]), op.kwargs, like)


# --- sums and products ----------------------------------------------------------------------------


def _reduction(body: RaggedBody, ops: Sequence[Op], columns: Any) -> Value:
    x, op = body._leaf(columns[0]), ops[-1]
    if len(op.args) != 1 or not op.kwargs.keys() <= {"axis", "keepdims", "dtype"}:
        raise RaggedError
    axis, ndim, ranges = op.kwargs.get("axis"), len(x.shape), body.ranges_of(x)
    given = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = {each % ndim for each in given}
    inside = tuple([place if a in axes else None for a, place in enumerate(ranges)])
    if any(inside):
        if op.function in _LEAST and x.dtype.kind != "f":
            raise RaggedError
        x = body.kept(x, inside, _LEAST.get(op.function, _NEUTRAL.get(op.function)), op)
    keeps = op.kwargs.get("keepdims", False)
    left = [a for a in range(ndim) if keeps or a not in axes]
    shape = tuple([1 if a in axes else x.shape[a] for a in left])
    like = tuple([None if a in axes else ranges[a] for a in left])
    return body.emit(op.function, (x,), op.kwargs, Type(shape, op.out.dtype, like, op.location))


_LEAST = {"np.max": -np.inf, "np.min": np.inf}
_NEUTRAL = {"np.sum": 0, "np.prod": 1, "np.any": False, "np.all": True}


def _matmul(body: RaggedBody, ops: Sequence[Op], columns: Any) -> Value:
    x, y = [body._leaf(column) for column in columns]
    op = ops[-1]
    if x.dtype != y.dtype or op.kwargs:
        raise RaggedError
    inner = body.ranges_of(x)[-1], body.ranges_of(y)[-2 if len(y.shape) > 1 else -1]
    if inner[0] is None and inner[1] is None:
        return _plain_matmul(body, op, x, y)
    if inner[0] is None or inner[1] is None or max(len(x.shape), len(y.shape)) > 2:
        raise RaggedError
    place = min(inner[0], inner[1], key=lambda each: each.size)
    x = body.placed(x, (*body.ranges_of(x)[:-1], place), op)
    y = body.placed(y, (place, *body.ranges_of(y)[1:]), op)
    if len(x.shape) == len(y.shape) == 2 and 1 not in (x.shape[0], y.shape[1]):
        x = body.kept(x, (None, place), 0, op)
        y = body.kept(y, (place, None), 0, op)
        return _plain_matmul(body, op, x, y)
    return _sum_of_products(body, op, x, y, place)


def _plain_matmul(body: RaggedBody, op: Op, x: Value, y: Value) -> Value:
    lead = max(x.shape[:-2], y.shape[:-2], key=len)
    rows, columns = x.shape[-2:-1], y.shape[-1:] if len(y.shape) > 1 else ()
    ranges = (*body.ranges_of(x)[-2:-1], *(body.ranges_of(y)[-1:] if columns else ()))
    if any(body.ranges_of(x)[:-2]) or any(body.ranges_of(y)[:-2]) or x.shape[:-2] != y.shape[:-2]:
        raise RaggedError
    like = Type((*lead, *rows, *columns), op.out.dtype, (*[None] * len(lead), *ranges))
    return body.emit("np.matmul", (x, y), {}, like._replace(location=op.location))


def _sum_of_products(body: RaggedBody, op: Op, x: Value, y: Value, place: Any) -> Value:
    """Return the product of a matrix and a vector, or of two, with the step's elements alone."""
    shape: tuple[int, ...] = (*x.shape[:-1], *y.shape[1:])
    ranges = (*body.ranges_of(x)[:-1], *body.ranges_of(y)[1:])
    axis = 0 if len(x.shape) == 1 or (len(y.shape) == 2 and x.shape[0] == 1) else -1
    if axis == 0:  # a row by a matrix: each element of the row by a row of the matrix
        flat = (x.shape[-1], *[1] * (len(y.shape) - 1))
        x = _reshaped(body, x, flat, (place, *[None] * (len(y.shape) - 1)), op)
    elif len(y.shape) == 2:
        y = _reshaped(body, y, y.shape[:1], (place,), op)
    both, found = np.broadcast_shapes(x.shape, y.shape), _both(body.ranges_of(x), body.ranges_of(y))
    product = body.emit("np.multiply", (x, y), {}, Type(both, x.dtype, found, op.location))
    inside = [None] * len(both)
    inside[axis] = place
    product = body.kept(product, tuple(inside), 0, op)
    left = both[1:] if axis == 0 else both[:-1]
    left_ranges = found[1:] if axis == 0 else found[:-1]
    like = Type(left, op.out.dtype, left_ranges, op.location)
    settings = {"axis": (axis % len(both),), "keepdims": False}
    total = body.emit("np.sum", (product,), settings, like)
    return total if left == shape else _reshaped(body, total, shape, ranges, op)


def _both(first: Ranges, second: Ranges) -> Ranges:
    """Return the ranges of the axes of two operands that broadcast, whose axes lie side by side."""
    short, long = sorted([first, second], key=len)
    extended = (*[None] * (len(long) - len(short)), *short)
    return tuple([a or b for a, b in zip(extended, long, strict=True)])


def _reshaped(body: RaggedBody, x: Value, shape: Any, ranges: Any, op: Op) -> Value:
    if x.shape == shape:
        return x
    return body.emit("np.reshape", (x, shape), {}, Type(shape, x.dtype, ranges, op.location))


RULES: dict[str, Rule] = {
    "np.where": _elementwise,
    "np.astype": _elementwise,
    "np.permute_dims": _permute_dims,
    "np.reshape": _reshape,
    "np.broadcast_to": _broadcast_to,
    **dict.fromkeys(("np.zeros", "np.ones", "np.empty"), _filled),
    **dict.fromkeys((*_LEAST, *_NEUTRAL), _reduction),
    "np.matmul": _matmul,
}
