"""The `for` that replaces the ops of all steps of a rerolled loop."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from chainrule.compiler.ir.op_traits import VIEWS
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.passes.stacked_slices import Rows, StackedSlices, slice_index
from chainrule.compiler.passes.step_tables import is_larger
from chainrule.compiler.passes.structural_keys import (
    Leaf,
    Window,
    is_basic,
    rebuild_op,
    structural_key,
)

T = TypeVar("T")
Reroll = Callable[[list[Op], set[Value], dict[Value, Any]], list[Op]]

NOWHERE = (-1, 0)
_MIN_COPIED = 1 << 8
"""Number of elements from which copies at each step cost more than a step before the loop."""


class LoopBuilder(StackedSlices):
    """Build the rerolled program: copy ops, and add loops in place of repeated ones."""

    def __init__(
        self,
        source: list[Op],
        leaves: list[Sequence[Leaf]],
        definitions: dict[Value, tuple[int, int]],
        last_use: dict[Value, int],
        constants: dict[Value, Any],
        reroll: Reroll,
    ) -> None:
        super().__init__(constants, {})
        self.reroll = reroll  # of the body
        self.source, self.leaves = source, leaves
        self.definitions, self.last_use = definitions, last_use

    def is_regular(self, first: Leaf, second: Leaf) -> bool:
        """Whether what two steps use are slices of one array or table, so needs no stacking."""
        if first is second or not isinstance(first, Value):
            return True
        if first in self.constants and second in self.constants:
            return True
        maker, other = self.made.get(first), self.made.get(second)
        if maker is None or other is None or maker.function not in VIEWS:
            return False
        (key, leaves), (other_key, others) = structural_key(maker), structural_key(other)
        return key == other_key and all(
            self.is_regular(a, b) and not is_larger((a, b), first)
            for a, b in zip(leaves, others, strict=True)
        )

    def first_step_needs_copies(
        self, begin: int, period: int, leaves: list[Sequence[Leaf]]
    ) -> bool:
        """Whether only the first step tells large arrays apart that are one carry for the others.

        A loop that begins with it would carry each of them, and copy it at every step.
        """
        first: dict[tuple[int, int], Leaf] = {}
        size = 0
        for offset in range(period):
            at = begin + offset
            for one, other in zip(leaves[at], leaves[at + period], strict=True):
                made = self.definitions.get(other, NOWHERE)
                if begin <= made[0] < begin + period and isinstance(one, Value):
                    size += 0 if first.setdefault(made, one) is one else one.size
        return size >= _MIN_COPIED

    def roll(self, begin: int, period: int, steps: int) -> None:
        """Append a loop in place of `steps` times `period` ops."""
        self.begin, self.period, self.steps = begin, period, steps
        self.begin_loop()
        self.results: dict[tuple[int, int], Value] = {}  # of the body, by op and result index
        self.carries: dict[tuple[int, int, Value], Value] = {}
        for offset in range(period):
            self._add_to_body(offset)
        self._finish()

    def _add_to_body(self, offset: int) -> None:
        """Append the op that does what those at one place of all steps do."""
        op = self.source[self.begin + offset]
        columns = [*zip(*self._steps_of(self.leaves, offset), strict=True)]
        may_tile = op.function == "getitem" and len(columns) > 1
        tiles = self._tiles(columns) if may_tile else []
        others = [self._leaf(column) for column in columns[len(tiles) :]]
        leaves = self.side_by_side([*tiles, *others], columns)
        outs = []
        for position, value in enumerate(op.outs):
            hint = self._out(self.steps - 1, offset, position).hint
            outs.append(Value(value.shape, value.dtype, hint))
            self.results[offset, position] = outs[-1]
        self.body.append(rebuild_op(op, iter(leaves), tuple(outs)))

    # --- inputs of a step ---

    def _leaf(self, column: Sequence[Leaf]) -> Leaf:
        """Return the leaf of the body for a column of leaves, one of each step."""
        index, position = self.definitions.get(column[1], NOWHERE)
        if index >= self.begin + self.period:
            return self.results[index - self.begin - self.period, position]
        if index < self.begin:
            return self.outside(column)
        value = column[1]
        key = (index - self.begin, position, column[0])
        if key not in self.carries:
            hint = self._out(self.steps - 1, *key[:2]).hint
            self.carries[key] = Value(value.shape, value.dtype, hint)
        return self.carries[key]

    def _tiles(self, columns: list[tuple[Leaf, ...]]) -> list[Leaf]:
        """Return leaves for windows of one array that follow each other: rows of a view of it."""
        (base, *_), (first, second, *_) = columns[:2]
        if not isinstance(first, Window) or any(each is not base for each in columns[0]):
            return []
        if self.definitions.get(base, (-1, 0))[0] >= self.begin:
            return []
        move = second.start - first.start
        windows = tuple(first._replace(start=first.start + i * move) for i in range(self.steps))
        if first.step != 1 or abs(move) != first.length or not move or columns[1] != windows:
            return []
        found = self._rows_of(base, min(first, windows[-1]).start, first.length, move < 0)
        return [found, first._replace(start=0)]

    def _rows_of(self, base: Value, begin: int, length: int, reverse: bool) -> Value:
        """Return the slice input that takes `length` items after another of an array."""
        rest, dtype = base.shape[1:], base.dtype
        items = Value((self.steps * length, *rest), dtype)
        table = Value((self.steps, length, *rest), dtype)
        key = (slice(begin, begin + self.steps * length, 1),)
        self.add(Op("getitem", (base, key), {}, (items,)))
        self.add(Op("np.reshape", (items, table.shape), {}, (table,)))
        if reverse:
            table, forward = Value(table.shape, dtype), table
            self.add(Op("getitem", (forward, (slice(None, None, -1),)), {}, (table,)))
        found = Value((length, *rest), dtype)
        self.slices[found] = table
        return found

    # --- results of the loop ---

    def _out(self, step: int, offset: int, position: int) -> Value:
        return self.source[self.begin + step * self.period + offset].outs[position]

    def _steps_of(self, items: Sequence[T], offset: int) -> Sequence[T]:
        """Return the items of one place in all steps, of a sequence with one for each op."""
        return items[self.begin + offset : self.begin + self.period * self.steps : self.period]

    def _finish(self) -> None:
        """Append the loop, then the slices of its stacks that later ops use."""
        final, end = self.steps - 1, self.begin + self.period * self.steps
        inputs = list(self.carries.values())
        begins = [self._first(first, carry) for (_, _, first), carry in self.carries.items()]
        outputs = [self._next(self.results[o, p], x) for (o, p, _), x in self.carries.items()]
        outs = [Value(v.shape, v.dtype) for v in outputs]
        stacked: dict[Value, list[tuple[int, Value]]] = {}  # with the steps whose value is used
        makers = {op.outs[0]: op for op in self.body if op.function in _BATCHED}
        after: list[Op] = []
        views = {offset: self._views(offset, end) for offset in range(self.period)}
        for (offset, position), value in self.results.items():
            column = [op.outs[position] for op in self._steps_of(self.source, offset)]
            used = [step for step, each in enumerate(column) if self.last_use.get(each, -1) >= end]
            if views[offset]:
                continue
            if used == [final] and value in outputs:
                outs[outputs.index(value)] = self._whole(value, column[final], after)
            elif used and (stack := self._stack_of(value, makers)) is not None:
                after += [Op("getitem", (stack, step), {}, (column[step],)) for step in used]
            elif used == [final]:  # a carry that no step reads
                zeros = Value(value.shape, value.dtype)
                self.add(Op("np.zeros", (value.shape, value.dtype), {}, (zeros,)))
                inputs.append(Value(value.shape, value.dtype, value.hint))
                begins.append(zeros)
                outputs.append(value)
                outs.append(self._whole(value, column[final], after))
            elif used:
                stacked[value] = [(step, column[step]) for step in used]
        self._check_size(self.steps * sum([value.size for value in stacked]))
        ops = self.reroll(self.body, {*outputs, *stacked}, self.constants)
        for value, keys in _as_stacks(list(stacked), ops).items():
            plural = f"{value.hint}s" if value.hint else ""
            outs.append(Value((self.steps, *value.shape), value.dtype, plural))
            outputs.append(value)
            for item, key in keys:
                for step, out in stacked[item]:
                    parts = (*key, *self._part(item, step))
                    index = (step, *parts) if parts else step
                    after.append(Op("getitem", (outs[-1], index), {}, (out,)))
        body = Program("steps", [*inputs, *self.slices], {}, ops, outputs, [])
        args = (tuple(begins), tuple(self.slices.values()))
        settings = {"length": self.steps, "reverse": False}
        location = self.source[self.begin].location
        self.add(Op("for", args, settings, tuple(outs), location, (body,)))
        for op in (*after, *itertools.chain.from_iterable(views.values())):
            self.add(op)

    def _whole(self, value: Value, last: Value, after: list[Op]) -> Value:
        """Return the result of the loop of which the last step's is a part, or that itself."""
        part = self._part(value, self.steps - 1)
        if not part:
            return last
        found = Value(value.shape, value.dtype)
        after.append(Op("getitem", (found, part), {}, (last,)))
        return found

    def _views(self, offset: int, end: int) -> list[Op]:
        """Return ops that make again, of other results, what ops from `end` on use of an op."""
        return []

    def _check_size(self, elements: int) -> None:
        """Raise if what the steps stack takes too much memory."""

    def _part(self, value: Value, step: int) -> tuple[slice, ...]:
        """Return the index of what a step made in a result of the body; () if that is all of it."""
        return ()

    def _first(self, first: Value, carry: Value) -> Value:
        """Return what a carry is before the first step."""
        return first

    def _next(self, result: Value, carry: Value) -> Value:
        """Return what a carry is after a step."""
        return result

    def _stack_of(self, value: Value, makers: dict[Value, Op]) -> Value | None:
        """Return the stack of a view of a slice input, as a view of the table; else None."""
        if value in self.slices:
            table = self.slices[value]
            return table if isinstance(table, Value) else None
        op = makers.get(value)
        args = None if op is None else _BATCHED[op.function](*op.args, self.steps)
        base = None if op is None or args is None else self._stack_of(op.args[0], makers)
        if op is None or args is None or base is None:
            return None
        stack = Value((self.steps, *value.shape), value.dtype)
        self.add(Op(op.function, (base, args), op.kwargs, (stack,), op.location))
        return stack


def _batched_key(base: Value, key: Any, steps: int) -> tuple[Any, ...] | None:
    parts = key if isinstance(key, tuple) else (key,)
    return (slice(None), *parts) if all(map(is_basic, parts)) else None


_BATCHED: dict[str, Callable[..., tuple[Any, ...] | None]] = {
    "getitem": _batched_key,
    "np.permute_dims": lambda base, axes, steps: (0, *[axis + 1 for axis in axes]),
    "np.reshape": lambda base, shape, steps: (steps, *shape),
}
"""Views, and the second argument by which they do the same to each row of a table."""


def _as_stacks(values: list[Value], ops: list[Op]) -> dict[Value, list[tuple[Value, Any]]]:
    """Return what a step has to return for values, and the index of each in that.

    Of the stack that a loop within the step makes, most slices may be asked for, or few; if only
    a part of each slice is, an op is added that takes these parts of the whole stack.
    """
    makers = {out: op for op in ops for out in op.outs}
    slices = {value: slice_index(makers.get(value)) for value in values}
    counts = Counter(rows for rows, _ in slices.values())
    found: dict[Value, list[tuple[Value, Any]]] = {}
    parts: dict[Rows, Value] = {}
    for value, (rows, index) in slices.items():
        if rows is None or rows.stack not in makers or 2 * counts[rows] < rows.stack.shape[0]:
            found[value] = [(value, ())]
            continue
        stack = parts.get(rows, rows.stack)
        if rows.rest and rows not in parts:
            stack = parts[rows] = Value((rows.stack.shape[0], *rows.shape), rows.stack.dtype)
            ops.append(Op("getitem", (rows.stack, (slice(None), *rows.rest)), {}, (stack,)))
        found.setdefault(stack, []).append((value, (index,)))
    return found
