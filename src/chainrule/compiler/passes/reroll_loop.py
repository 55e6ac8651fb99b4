"""Structural keys of ops, and the `for` that replaces the ops of all steps of a rerolled loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from chainrule.compiler.ir.constants import constant_key
from chainrule.compiler.ir.op_traits import VIEWS
from chainrule.compiler.ir.program import Op, Program, Value

# --- structural keys ------------------------------------------------------------------------------

T = TypeVar("T")
Leaf = Any  # a value, or an integer or a window within an index


class Window(NamedTuple):
    """A slice of the first axis: steps of a loop may take windows that begin elsewhere."""

    start: int
    length: int
    step: int

    @property
    def indices(self) -> Any:
        return self.start + self.step * np.arange(self.length)

    @property
    def key(self) -> slice:
        stop = self.start + self.step * self.length
        return slice(self.start, None if stop < 0 else stop, self.step)


_INDEX_POSITIONS = {"getitem": 1, "assign_at": 2, "plus_at": 2}
"""Position of the index among the arguments; other functions have a keyword `key`."""


def structural_key(op: Op) -> tuple[Any, Sequence[Leaf]]:
    """Return a hashable key of the op's structure, and its leaves.

    Ops with equal keys do the same to other leaves. Ops with regions have unique keys.
    """
    if op.structure:  # of an op without an index
        return op.structure[0], op.inputs
    leaves: list[Leaf] = []
    if op.regions:
        return object(), leaves
    index = _INDEX_POSITIONS.get(op.function)
    args = tuple(
        [
            _index_key(op, a, leaves) if i == index else _key(a, leaves)
            for i, a in enumerate(op.args)
        ]
    )
    kwargs = tuple(
        [
            (k, _index_key(op, a, leaves) if k == "key" else _key(a, leaves))
            for k, a in op.kwargs.items()
        ]
    )
    key = (op.function, args, kwargs)
    try:
        hash(key)
    except TypeError:
        return object(), leaves
    if op.structure is not None and index is None and "key" not in op.kwargs:
        op.structure.append(key)
    return key, leaves


def _index_key(op: Op, index: Any, leaves: list[Leaf]) -> Any:
    window = _window(op, index)
    if window is None:
        return _key(index, leaves, True)
    leaves.append(window)
    rest = index[1:] if isinstance(index, tuple) else ()
    return (Window, window.length, *[_key(part, leaves, True) for part in rest])


def _key(tree: Any, leaves: list[Leaf], index: bool = False) -> Any:
    kind = tree.__class__
    if kind is Value:
        leaves.append(tree)
        return (tree.shape, tree.dtype)
    if isinstance(tree, (tuple, list)):
        return (kind, *[_key(item, leaves, index) for item in tree])
    if kind is slice:
        return ("slice", *[_key(part, leaves) for part in _ends(tree)])
    if index and kind is int:
        leaves.append(tree)
        return int
    return constant_key(tree)


def _window(op: Op, index: Any) -> Window | None:
    """Return the window that an index begins with, if an array of integers could replace it."""
    first, *rest = index if isinstance(index, tuple) and index else (index,)
    if not isinstance(first, slice) or not all(
        _is_basic(part) or getattr(part, "ndim", 1) == 0 for part in rest
    ):
        return None
    shape = op.kwargs["shape"] if "shape" in op.kwargs else op.args[0].shape
    start, _, step = first.indices(shape[0])
    return Window(start, len(range(shape[0])[first]), step)


def _is_basic(part: Any) -> bool:
    return isinstance(part, int | slice | EllipsisType | None)


def _ends(part: slice) -> tuple[Any, Any, Any]:
    return part.start, part.stop, part.step


def rebuild_op(op: Op, leaves: Iterator[Leaf], outs: tuple[Value, ...]) -> Op:
    """Return the op with other leaves, in the order of `structural_key`, and other results."""
    index = _INDEX_POSITIONS.get(op.function)
    args = tuple(
        [
            _substitute_index(op, a, leaves) if i == index else _substitute(a, leaves)
            for i, a in enumerate(op.args)
        ]
    )
    kwargs = {
        k: _substitute_index(op, a, leaves) if k == "key" else _substitute(a, leaves)
        for k, a in op.kwargs.items()
    }
    return Op(op.function, args, kwargs, outs, op.location)


def _substitute_index(op: Op, index: Any, leaves: Iterator[Leaf]) -> Any:
    if _window(op, index) is None:
        return _substitute(index, leaves, True)
    found = next(leaves)
    first = found.key if isinstance(found, Window) else found
    if not isinstance(index, tuple):
        return first
    return (first, *[_substitute(part, leaves, True) for part in index[1:]])


def _substitute(tree: Any, leaves: Iterator[Leaf], index: bool = False) -> Any:
    if isinstance(tree, Value) or (index and type(tree) is int):
        return next(leaves)
    if isinstance(tree, tuple | list):
        items = [_substitute(item, leaves, index) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, slice):
        return slice(*[_substitute(part, leaves) for part in _ends(tree)])
    return tree


# --- loop construction ----------------------------------------------------------------------------


Reroll = Callable[[list[Op], set[Value], dict[Value, Any]], list[Op]]


class LoopBuilder:
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
        self.reroll = reroll  # of the body
        self.source, self.leaves, self.constants = source, leaves, constants
        self.definitions, self.last_use = definitions, last_use
        self.ops: list[Op] = []
        self.made: dict[Value, Op] = {}

    def add(self, op: Op) -> None:
        """Append an op as it is."""
        self.ops.append(op)
        self.made.update(dict.fromkeys(op.outs, op))

    def copy(self, op: Op) -> None:
        """Append an op; a stack of values that a loop has stacked already becomes a slice."""
        if op.function == "np.stack" and op.kwargs.get("axis") == 0:
            runs = self._runs(op.args[0])
            if len(runs) == 1 and isinstance(runs[0], list) and len(runs[0]) == 1:
                op = Op("getitem", runs[0][0], {}, op.outs, op.location)
            elif len(runs) <= len(op.args[0]) // 2:
                arrays = tuple([self._add_run(run) for run in runs])
                op = Op("np.concat", (arrays,), {"axis": 0}, op.outs, op.location)
        self.add(op)

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
            self.is_regular(a, b) and not _is_larger((a, b), first)
            for a, b in zip(leaves, others, strict=True)
        )

    def roll(self, begin: int, period: int, steps: int) -> None:
        """Append a loop in place of `steps` times `period` ops."""
        self.begin, self.period, self.steps = begin, period, steps
        self.body: list[Op] = []
        self.results: dict[tuple[int, int], Value] = {}  # of the body, by op and result index
        self.carries: dict[tuple[int, int, Value], Value] = {}
        self.slices: dict[Value, Value | range] = {}
        self.known: dict[tuple[Leaf, ...], Leaf] = {}
        for offset in range(period):
            op = self.source[begin + offset]
            columns = [*zip(*self._steps_of(self.leaves, offset), strict=True)]
            may_tile = op.function == "getitem" and len(columns) > 1
            tiles = self._tiles(columns) if may_tile else []
            leaves = [*tiles, *[self._leaf(column) for column in columns[len(tiles) :]]]
            outs = []
            for position, value in enumerate(op.outs):
                hint = self._out(steps - 1, offset, position).hint
                outs.append(Value(value.shape, value.dtype, hint))
                self.results[offset, position] = outs[-1]
            self.body.append(rebuild_op(op, iter(leaves), tuple(outs)))
        self._finish()

    # --- inputs of a step ---

    def _leaf(self, column: Sequence[Leaf]) -> Leaf:
        """Return the leaf of the body for a column of leaves, one of each step."""
        index, position = self.definitions.get(column[1], (-1, 0))
        if index >= self.begin + self.period:
            return self.results[index - self.begin - self.period, position]
        if index < self.begin:
            return self._outside(column)
        value = column[1]
        key = (index - self.begin, position, column[0])
        if key not in self.carries:
            hint = self._out(self.steps - 1, *key[:2]).hint
            self.carries[key] = Value(value.shape, value.dtype, hint)
        return self.carries[key]

    def _outside(self, column: Sequence[Leaf]) -> Leaf:
        """Return the leaf of the body for leaves defined before the loop."""
        first = column[0]
        if all(leaf is first or leaf == first for leaf in column):
            return first
        key = tuple(column)
        if key not in self.known:
            self.known[key] = self._view_in_body(key) or self._slice(key)
        return self.known[key]

    def _view_in_body(self, column: tuple[Leaf, ...]) -> Value | None:
        """Return a view made in the body, if the column is views of the same kind; else None."""
        makers = [self.made.get(leaf) for leaf in column]
        if None in makers:
            return None
        ops: list[Any] = makers
        if ops[0].function not in VIEWS or len(ops[0].outs) != 1:
            return None
        parts = [structural_key(op) for op in ops]
        if any(key != parts[0][0] for key, _ in parts):
            return None
        columns = list(zip(*(leaves for _, leaves in parts), strict=True))
        if any(_is_larger(each, column[0]) for each in columns):
            return None
        leaves = [self._outside(each) for each in columns]
        out = Value(column[0].shape, column[0].dtype)
        self.body.append(rebuild_op(ops[0], iter(leaves), (out,)))
        return out

    def _slice(self, column: tuple[Leaf, ...]) -> Value:
        """Return a slice input of the body: of a range, a constant table or a stack."""
        table: Value | range
        if isinstance(column[0], Window):
            table = self._constant(np.stack([window.indices for window in column]))
            shape, dtype = table.shape[1:], table.dtype
        elif isinstance(column[0], int):
            shape, dtype = (), np.dtype(np.int64)
            step = column[1] - column[0]
            table = range(column[0], column[0] + step * len(column), step or 1)
            if tuple(table) != column:
                table = self._constant(np.array(column, np.int64))
        else:
            shape, dtype = column[0].shape, column[0].dtype
            if all(value in self.constants for value in column):
                table = self._constant(np.stack([self.constants[v] for v in column]))
            else:
                table = Value((len(column), *shape), dtype)
                self.copy(Op("np.stack", (column,), {"axis": 0}, (table,)))
        found = Value(shape, dtype)
        self.slices[found] = table
        return found

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

    def _constant(self, array: Any) -> Value:
        value = Value(array.shape, array.dtype)
        self.constants[value] = array
        return value

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
        begins = [first for _, _, first in self.carries]
        outputs = [self.results[offset, position] for offset, position, _ in self.carries]
        outs = [Value(v.shape, v.dtype) for v in outputs]
        stacked: dict[Value, list[tuple[int, Value]]] = {}  # with the steps whose value is used
        makers = {op.outs[0]: op for op in self.body if op.function in _BATCHED}
        after: list[Op] = []
        for (offset, position), value in self.results.items():
            column = [op.outs[position] for op in self._steps_of(self.source, offset)]
            used = [step for step, each in enumerate(column) if self.last_use.get(each, -1) >= end]
            if used == [final] and value in outputs:
                outs[outputs.index(value)] = column[final]
            elif used and (stack := self._stack_of(value, makers)) is not None:
                after += [Op("getitem", (stack, step), {}, (column[step],)) for step in used]
            elif used == [final]:  # a carry that no step reads
                zeros = Value(value.shape, value.dtype)
                self.add(Op("np.zeros", (value.shape, value.dtype), {}, (zeros,)))
                inputs.append(Value(value.shape, value.dtype, value.hint))
                begins.append(zeros)
                outputs.append(value)
                outs.append(column[final])
            elif used:
                stacked[value] = [(step, column[step]) for step in used]
        ops = self.reroll(self.body, {*outputs, *stacked}, self.constants)
        for value, keys in _as_stacks(list(stacked), ops).items():
            plural = f"{value.hint}s" if value.hint else ""
            outs.append(Value((self.steps, *value.shape), value.dtype, plural))
            outputs.append(value)
            for item, key in keys:
                for step, out in stacked[item]:
                    index = (step, *key) if key else step
                    after.append(Op("getitem", (outs[-1], index), {}, (out,)))
        body = Program("steps", [*inputs, *self.slices], {}, ops, outputs, [])
        args = (tuple(begins), tuple(self.slices.values()))
        settings = {"length": self.steps, "reverse": False}
        location = self.source[self.begin].location
        self.add(Op("for", args, settings, tuple(outs), location, (body,)))
        for op in after:
            self.add(op)

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

    # --- stacks of slices of stacks ---

    def _runs(self, values: Sequence[Value]) -> list[_Run]:
        """Return the values as runs of slices that follow each other, of one stack or several.

        Several take turns where a step of the loop that made them is several steps of the user's.
        """
        items = [_slice_index(self.made.get(value)) for value in values]
        following = _following([stack for stack, _ in items])
        runs: list[_Run] = []
        begin = 0
        while begin < len(values):
            count, step = _turns(items, begin, following[begin] - begin)
            stacks = items[begin : following[begin] if count > 1 else begin + 1]
            slices = [
                (stack, _slice_of(stack, index, count, step))
                for stack, index in stacks
                if stack is not None
            ]
            runs.append(slices or values[begin])
            begin += count * len(stacks)
        return runs

    def _add_run(self, run: _Run) -> Value:
        """Append the ops that give a run as one array."""
        if isinstance(run, Value):
            return self._added("np.reshape", (run, (1, *run.shape)), (1, *run.shape), run.dtype)
        shape, dtype = run[0][0].shape[1:], run[0][0].dtype
        count = len(range(*run[0][1].indices(run[0][0].shape[0])))
        parts = [self._added("getitem", part, (count, *shape), dtype) for part in run]
        if len(parts) == 1:
            return parts[0]
        turns = Value((count, len(parts), *shape), dtype)
        self.add(Op("np.stack", (tuple(parts),), {"axis": 1}, (turns,)))
        flat = (count * len(parts), *shape)
        return self._added("np.reshape", (turns, flat), flat, dtype)

    def _added(self, function: str, args: tuple[Any, ...], shape: Any, dtype: Any) -> Value:
        out = Value(shape, dtype)
        self.add(Op(function, args, {}, (out,)))
        return out


_Run = list[tuple[Value, slice]] | Value
"""The slices of stacks that take turns, or a value that is no slice of one."""


def _following(items: Sequence[Any]) -> list[int]:
    """Return for each item the position of the next one that is the same, else its own."""
    found, last = [], dict[Any, int]()
    for position in reversed(range(len(items))):
        found.append(last.get(items[position], position))
        last[items[position]] = position
    return found[::-1]


def _turns(items: Sequence[tuple[Value | None, int]], begin: int, period: int) -> tuple[int, int]:
    """Return how many times stacks take turns from a position on, and the step of their indices."""
    if items[begin][0] is None or not period:
        return 1, 1
    step, end = items[begin + period][1] - items[begin][1], begin + period
    while end < len(items) and step in (1, -1):
        (stack, index), (other, before) = items[end], items[end - period]
        if stack is None or stack is not other or index != before + step:
            break
        end += 1
    return max((end - begin) // period, 1), step


def _batched_key(base: Value, key: Any, steps: int) -> tuple[Any, ...] | None:
    parts = key if isinstance(key, tuple) else (key,)
    return (slice(None), *parts) if all(map(_is_basic, parts)) else None


_BATCHED: dict[str, Callable[..., tuple[Any, ...] | None]] = {
    "getitem": _batched_key,
    "np.permute_dims": lambda base, axes, steps: (0, *[axis + 1 for axis in axes]),
    "np.reshape": lambda base, shape, steps: (steps, *shape),
}
"""Views, and the second argument by which they do the same to each row of a table."""


def _as_stacks(values: list[Value], ops: list[Op]) -> dict[Value, list[tuple[Value, Any]]]:
    """Return what a step has to return for values, and the index of each in that.

    Of the stack that a loop within the step makes, most slices may be asked for, or few.
    """
    makers = {out: op for op in ops for out in op.outs}
    slices = {value: _slice_index(makers.get(value)) for value in values}
    counts = Counter(stack for stack, _ in slices.values())
    found: dict[Value, list[tuple[Value, Any]]] = {}
    for value, (stack, index) in slices.items():
        if stack in makers and 2 * counts[stack] >= stack.shape[0]:
            found.setdefault(stack, []).append((value, (index,)))
        else:
            found[value] = [(value, ())]
    return found


def _is_larger(column: Sequence[Leaf], value: Value) -> bool:
    """Whether stacking these values takes more memory than stacking views of them."""
    return isinstance(column[0], Value) and column[0].size > value.size and len(set(column)) > 1


def _slice_index(op: Op | None) -> tuple[Value | None, int]:
    """Return the array that an op takes one slice of along the first axis, and the index."""
    if op is None or op.function != "getitem":
        return None, 0
    stack, key = op.args
    if type(key) is tuple and len(key) == 2 and key[1] is Ellipsis:
        key = key[0]
    return (stack, key) if type(key) is int and key >= 0 else (None, 0)


def _slice_of(stack: Value, first: int, count: int, step: int) -> slice:
    """Return the slice of so many consecutive indices, in either direction."""
    full, last = count == stack.shape[0], first + (count - 1) * step
    if count == 1 or step > 0:
        return slice(None) if full else slice(first, last + 1)
    return slice(None, None, -1) if full else slice(first, last - 1 if last else None, -1)
