"""Loops whose steps have slices of other lengths, such as `a[i, i + 1 :]`: see `ragged_ops`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from chainrule.compiler.ir.op_traits import VIEWS
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.passes.ragged_indices import INDEX_RULES
from chainrule.compiler.passes.ragged_keys import index_parts, loop_leaves, ragged_key
from chainrule.compiler.passes.ragged_ops import RULES, RaggedBody, RaggedError, Range, Ranges
from chainrule.compiler.passes.reroll_loop import NOWHERE
from chainrule.compiler.passes.step_tables import is_larger
from chainrule.compiler.passes.structural_keys import INDEX_POSITIONS, Leaf

_MAX_STACKED = 1 << 25
"""Number of elements that a loop stacks at most: each step as many as the largest of them."""


class RaggedLoopBuilder(RaggedBody):
    """Build loops of steps that differ in sizes, beside others."""

    rules = RULES | INDEX_RULES
    keys: Sequence[int] = ()  # of the ops, while such a loop is built

    def begin_loop(self) -> None:
        super().begin_loop()
        self.ranges, self.frames, self.masks, self.filled, self.written = {}, {}, {}, {}, {}
        self.parts: dict[tuple[Leaf, ...], Value] = {}
        self.numbers = {}
        self.inside: dict[Leaf, Value] = {}  # of loops in a step, by what the first step's have

    def roll_ragged(
        self,
        begin: int,
        period: int,
        steps: int,
        leaves: list[Sequence[Leaf]],
        keys: list[int],
    ) -> None:
        """Append a loop in place of ops with equal ragged keys; raise RaggedError if it can't be.

        `leaves` are those of the ragged keys, and `keys` are equal for ops of equal sizes.
        """
        self.ragged_leaves, self.keys = leaves, keys
        try:
            self.roll(begin, period, steps)
        finally:
            self.keys = ()

    def _add_to_body(self, offset: int) -> None:
        if not self.keys or len(set(self._steps_of(self.keys, offset))) == 1:
            super()._add_to_body(offset)
            return
        ops = self._steps_of(self.source, offset)
        columns = [*zip(*self._steps_of(self.ragged_leaves, offset), strict=True)]
        lowered = self._loop(ops, columns) if ops[0].regions else (self.lowered(ops, columns),)
        for position, (found, out) in enumerate(zip(lowered, ops[-1].outs, strict=True)):
            found.hint = out.hint
            self.results[offset, position] = found

    def _loop(self, ops: Sequence[Op], columns: Sequence[tuple[Leaf, ...]]) -> tuple[Value, ...]:
        """Append the loop that steps have within them; return its results."""
        given, count = iter(columns), len(ops[0].args[0])
        begins = [self._leaf(next(given)) for _ in range(count)]
        tables = [self._rows_of_loop(next(given)) for _ in ops[0].args[1]]
        outer, before = self.body, (dict(self.parts), dict(self.known), dict(self.masks))
        written, filled = dict(self.written), dict(self.filled)
        self.body = []
        inputs = []
        for value in begins:
            inputs.append(Value(value.shape, value.dtype, value.hint))
            self.ranges[inputs[-1]] = self.ranges_of(value)
        for table in tables:
            dtype = np.dtype(np.int64) if isinstance(table, range) else table.dtype
            inputs.append(Value(() if isinstance(table, range) else table.shape[1:], dtype))
            if isinstance(table, Value):
                self.ranges[inputs[-1]] = self.ranges_of(table)[1:]
        self.inside.update(zip(ops[0].regions[0].inputs, inputs, strict=True))
        regions = [op.regions[0] for op in ops]
        *parts, last = zip(*[loop_leaves(op) for op in ops], strict=True)
        for number, step in enumerate(parts):
            own = zip(*[leaves for leaves, _, _ in step], step[0][2], strict=True)
            inner = [region.ops[number] for region in regions]
            found = self.lowered(inner, [self._column(each, given) for each in own])
            self.inside[inner[0].out] = found
        own = zip(*[leaves for leaves, _, _ in last], last[0][2], strict=True)
        outputs = [self._leaf(self._column(each, given)) for each in own]
        for number, carry in enumerate(inputs[:count]):
            result = self.placed(outputs[number], self.ranges_of(carry), ops[0])
            if result.shape != carry.shape:
                raise RaggedError
            outputs[number] = result
        region = Program("steps", inputs, {}, self.body, outputs, [])
        self.body, self.written, self.filled = outer, written, filled
        self.parts, self.known, self.masks = before
        length = ops[0].kwargs["length"]
        outs = [Value(x.shape, x.dtype) for x in outputs[:count]]
        outs += [Value((length, *x.shape), x.dtype) for x in outputs[count:]]
        for out, x in zip(outs, outputs, strict=True):
            lead = () if len(out.shape) == len(x.shape) else (None,)
            self.ranges[out] = (*lead, *self.ranges_of(x))
        args, location = (tuple(begins), tuple(tables)), ops[-1].location
        self.body.append(Op("for", args, ops[0].kwargs, tuple(outs), location, (region,)))
        return tuple(outs)

    def lowered(self, ops: Sequence[Op], columns: Sequence[tuple[Leaf, ...]]) -> Value:
        if ops[0].function == "np.stack":
            ops = [self._slice_of_stack(op) for op in ops]
            columns = [*zip(*[ragged_key(op)[1] for op in ops], strict=True)]
        return super().lowered(ops, columns)

    def _slice_of_stack(self, op: Op) -> Op:
        """Return the op that takes parts of a stack that follow each other, as one slice of it."""
        makers = [self.made.get(value) for value in op.args[0]]
        if op.kwargs.get("axis", 0) != 0 or None in makers:
            raise RaggedError
        ops = [maker for maker in makers if maker and maker.function == "getitem"]
        keys = [maker.args[1] for maker in ops if isinstance(maker.args[1], tuple)]
        stacks = {maker.args[0] for maker in ops}
        if len(keys) < len(makers) or len(stacks) > 1 or len({*map(len, keys)}) > 1:
            raise RaggedError
        axis = next((a for a, part in enumerate(keys[0]) if part != keys[-1][a]), 0)
        lead, numbers, rest = keys[0][:axis], [key[axis] for key in keys], keys[0][axis + 1 :]
        if any([type(part) is not int for part in (*lead, *numbers)]):
            raise RaggedError
        step = 1 if numbers[-1] >= numbers[0] else -1
        end = numbers[0] + step * len(keys)
        same = [(*lead, number, *rest) for number in range(numbers[0], end, step)]
        if keys != same:
            raise RaggedError
        key = (*lead, slice(numbers[0], end if end >= 0 else None, step), *rest)
        return Op("getitem", (stacks.pop(), key), {}, op.outs, op.location)

    def _column(self, own: tuple[Leaf, ...], given: Iterator[tuple[Leaf, ...]]) -> Any:
        """Return the leaves of all steps at one place of a loop within them."""
        *leaves, number = own
        return tuple(leaves) if number is not None else next(given)

    def _rows_of_loop(self, column: tuple[Leaf, ...]) -> Value | range:
        """Return what the loop within a step takes a slice of at a time."""
        if not isinstance(column[0], range):
            found: Value = self._leaf(column)
            return found
        if all([each == column[0] for each in column]):
            return column[0]
        rows: Value = self.outside([self._constant(np.array(each)) for each in column])
        return rows

    # --- inputs of a step ---

    def _leaf(self, column: Sequence[Leaf]) -> Leaf:
        if self.inside and column[0] in self.inside:
            return self.inside[column[0]]
        if not self.keys or not _is_ragged(column):
            return super()._leaf(column)
        index, position = self.definitions.get(column[1], NOWHERE)
        if index >= self.begin + self.period:
            return super()._leaf(column)
        if index < self.begin:
            return self._from_before(tuple(column))
        key = (index - self.begin, position, column[0])
        if key not in self.carries:
            results = self._steps_of(self.source, key[0])
            shapes = [*zip(*[op.outs[position].shape for op in results], strict=True)]
            ranges, size = list[Range | None](), list[int]()
            for axis, lengths in enumerate(zip(*[x.shape for x in column], strict=True)):
                longest = max(*lengths, *shapes[axis])
                size.append(longest)
                is_even = len(set(lengths)) == 1
                ranges.append(None if is_even else Range((0,) * self.steps, lengths, longest))
            hint = results[-1].outs[position].hint
            self.carries[key] = found = Value(tuple(size), column[0].dtype, hint)
            self.ranges[found] = tuple(ranges)
        return self.carries[key]

    def _from_before(self, column: tuple[Leaf, ...]) -> Value:
        """Return values that were made before the loop: views of arrays, or rows of a table."""
        found = self.parts.get(column)
        if found is None:
            found = self.parts[column] = self._same_views(column) or self._table(column)
        return found

    def _same_views(self, column: tuple[Leaf, ...]) -> Value | None:
        makers = [self.made.get(value) for value in column]
        if any([op is None or op.function not in VIEWS for op in makers]):
            return None
        ops: list[Any] = makers
        pairs = [ragged_key(op) for op in ops]
        if any([key != pairs[0][0] for key, _ in pairs]):
            return None
        columns = [*zip(*[leaves for _, leaves in pairs], strict=True)]
        if any([is_larger(each, column[0]) for each in columns]):
            return None
        begin, parts, known = len(self.body), dict(self.parts), dict(self.known)
        try:
            return self.lowered(ops, columns)
        except RaggedError:
            del self.body[begin:]
            self.parts, self.known, self.masks = parts, known, {}
            return None

    def _table(self, column: tuple[Leaf, ...]) -> Value:
        """Return the rows of a table of these values, each beside elements that are not its."""
        ranges, rows = self._rows(column)
        shape = next(iter(rows.values())).shape if rows else ()
        if not rows:
            lengths = zip(*[value.shape for value in column], strict=True)
            ranges = tuple([None if len(set(n)) == 1 else self.frame(n) for n in lengths])
            pairs = zip(column[0].shape, ranges, strict=True)
            shape = tuple([size if place is None else place.size for size, place in pairs])
        padded = [
            rows[step] if step in rows else self._padded(value, step, shape, ranges)
            for step, value in enumerate(column)
        ]
        found: Value = self.outside(padded)
        self.ranges[found] = ranges
        return found

    def _rows(self, column: tuple[Leaf, ...]) -> tuple[Ranges, dict[int, Value]]:
        """Return where values lie in the rows of a stack of which they are parts, and the rows."""
        parts: dict[int, tuple[Value, int, Any]] = {}
        for step, value in enumerate(column):
            op = self.made.get(value)
            if op is not None and op.function == "getitem" and type(op.args[1]) is tuple:
                row, *rest = op.args[1]
                if type(row) is int and all([isinstance(part, slice) for part in rest]):
                    parts[step] = op.args[0], row, rest
        if not parts:
            return (), {}
        stack = Counter([x for x, _, _ in parts.values()]).most_common(1)[0][0]
        parts = {k: part for k, part in parts.items() if part[0] is stack}
        ndim = len(column[0].shape)
        if len(stack.shape) != ndim + 1 or any([len(part[2]) != ndim for part in parts.values()]):
            return (), {}
        ranges: list[Range | None] = []
        for axis, size in enumerate(stack.shape[1:]):
            lengths = tuple([value.shape[axis] for value in column])
            if len(set(lengths)) == 1:
                ranges.append(None)
                continue
            known = {k: part[2][axis].indices(size)[0] for k, part in parts.items()}
            begins = _continued(known, lengths, size)
            ends = tuple([a + b for a, b in zip(begins, lengths, strict=True)])
            ranges.append(Range(begins, ends, size))
        rows = {}
        for step, (_, row, _) in parts.items():
            rows[step] = Value(stack.shape[1:], stack.dtype)
            self.add(Op("getitem", (stack, row), {}, (rows[step],)))
        return tuple(ranges), rows

    def _padded(self, value: Value, step: int, shape: tuple[int, ...], ranges: Ranges) -> Value:
        """Return a value of one step beside zeros."""
        part = _part_of(ranges, step)
        if value in self.constants:
            array = np.zeros(shape, value.dtype)
            array[part] = self.constants[value]
            return self._constant(array)
        zeros, found = Value(shape, value.dtype), Value(shape, value.dtype)
        self.add(Op("np.zeros", (shape, value.dtype), {}, (zeros,)))
        self.add(Op("assign_at", (zeros, value, part), {}, (found,)))
        return found

    # --- results of the loop ---

    def _views(self, offset: int, end: int) -> list[Op]:
        """Views of what the loop leaves as it is are made after it: their elements aren't kept."""
        if not self.keys:
            return []
        column = self._steps_of(self.source, offset)
        ops = [op for op in column if any([self.last_use.get(x, -1) >= end for x in op.outs])]
        inputs = [x for op in ops for x in op.inputs]
        if not inputs or ops[0].function not in VIEWS:
            return []
        if all([self.definitions.get(x, NOWHERE)[0] < self.begin for x in inputs]):
            return ops
        last = last_version(ops, self.source[self.begin : end])
        if last is None or self.definitions[last][0] < end - self.period:
            return []
        self.last_use[last] = max(self.last_use.get(last, end), end)
        return [Op("getitem", (last, op.args[1]), {}, op.outs, op.location) for op in ops]

    def _check_size(self, elements: int) -> None:
        if self.keys and elements > _MAX_STACKED:
            raise RaggedError

    def _part(self, value: Value, step: int) -> tuple[slice, ...]:
        return _part_of(self.ranges.get(value, ()), step)

    def _first(self, first: Value, carry: Value) -> Value:
        ranges = self.ranges.get(carry, ())
        return self._padded(first, 0, carry.shape, ranges) if first.shape != carry.shape else first

    def _next(self, result: Value, carry: Value) -> Value:
        """Return a result where the carry lies, and as long."""
        given, wanted = self.ranges_of(result), self.ranges_of(carry)
        if given == wanted and result.shape == carry.shape:
            return result
        op = Op("getitem", (), {}, ())
        for axis, place in enumerate(given):
            size = carry.shape[axis]
            if (place is None) != (wanted[axis] is None):
                raise RaggedError
            if place is None:
                continue
            lengths, zeros = place.lengths, (0,) * self.steps
            if place.size != size or any(place.begins):
                ranges: list[Range | None] = [*self.ranges_of(result)]
                ranges[axis] = Range(zeros, lengths, size)
                result = self.placed(result, tuple(ranges), op)
        return result


def _is_ragged(column: Sequence[Leaf]) -> bool:
    return isinstance(column[0], Value) and any([x.shape != column[0].shape for x in column])


def _part_of(ranges: Ranges, step: int) -> tuple[slice, ...]:
    """Return the index of the elements of one step."""
    if not any(ranges):
        return ()
    return tuple([(p and slice(p.begins[step], p.ends[step])) or slice(None) for p in ranges])


def _continued(known: dict[int, int], lengths: Sequence[int], size: int) -> tuple[int, ...]:
    """Return where the elements of all steps begin, in a line with what is known of some."""
    steps = sorted(known)
    found = []
    for step, length in enumerate(lengths):
        begin = known.get(step)
        if begin is None:
            near = sorted(steps, key=lambda each: abs(each - step))[:2]
            rise = known[near[-1]] - known[near[0]]
            run = near[-1] - near[0] or 1
            begin = known[near[0]] + (step - near[0]) * rise // run
            begin = min(max(begin, 0), size - length)
        if begin < 0 or begin + length > size:
            raise RaggedError
        found.append(begin)
    return tuple(found)


# --- arrays of which a part is final --------------------------------------------------------------


def last_version(reads: Sequence[Op], ops: Sequence[Op]) -> Value | None:
    """Return what becomes of an array that ops write to, if what is read of it doesn't change.

    No write that comes after a read may be to a place that it has read, as in a factorisation that
    computes one column after the other.
    """
    writers: dict[Value, list[Op]] = {}
    for op in ops:
        if op.function in ("assign_at", "plus_at"):
            writers.setdefault(op.args[0], []).append(op)
    value = reads[0].args[0]
    versions, writes = {value: 0}, list[Op]()
    while value in writers:
        if len(writers[value]) > 1:
            return None
        writes += writers[value]
        value = writes[-1].out
        versions[value] = len(writes)
    begins = [versions.get(op.args[0]) for op in reads]
    if None in begins or not writes or len(writes) * len(reads) > _MAX_COMPARED:
        return None
    given, changed = [_places(op) for op in reads], [_places(op) for op in writes]
    if None in given or None in changed:
        return None
    first, other = np.array(given, np.int64), np.array(changed, np.int64)
    overlaps = np.arange(len(writes)) >= np.array(begins, np.int64)[:, None]
    for axis in range(first.shape[1]):
        low, high = first[:, axis].T
        overlaps &= (low[:, None] < other[:, axis, 1]) & (other[:, axis, 0] < high[:, None])
    return None if overlaps.any() else value


_MAX_COMPARED = 1 << 24
"""Number of pairs of reads and writes that are compared at most."""


def _places(op: Op) -> list[tuple[int, int]] | None:
    """Return where the places along each axis begin and end that an index selects."""
    if op.function not in INDEX_POSITIONS:
        return None
    key, shape = op.args[INDEX_POSITIONS[op.function]], op.args[0].shape
    found = [(0, size) for size in shape]
    for item, axis in index_parts(key, len(shape)):
        if isinstance(item, slice) and axis is not None:
            places = range(shape[axis])[item]
            found[axis] = (min(places), max(places) + 1) if places else (shape[axis], 0)
        elif type(item) is int and axis is not None:
            place = item % shape[axis]
            found[axis] = place, place + 1
        elif axis is not None:
            return None
    return found
