"""Stacks of slices: what a loop has stacked already is read as slices of that.

The steps of a loop, and those of a loop within it, often use what the steps of other loops made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.passes.step_tables import StepTables


class StackedSlices(StepTables):
    """Copy ops, with slices in the place of stacks of slices."""

    def copy(self, op: Op) -> None:
        """Append an op; a stack of values that a loop has stacked already becomes a slice."""
        if op.function == "np.stack" and op.kwargs.get("axis") == 0:
            runs = self._runs(op.args[0])
            if len(runs) == 1 and isinstance(runs[0], list) and len(runs[0]) == 1:
                op = Op("getitem", runs[0][0].args, {}, op.outs, op.location)
            elif len(runs) <= len(op.args[0]) // 2:
                arrays = tuple([self._add_run(run) for run in runs])
                op = Op("np.concat", (arrays,), {"axis": 0}, op.outs, op.location)
        self.add(op)

    def _runs(self, values: Sequence[Value]) -> list[_Run]:
        """Return the values as runs of slices that follow each other, of one stack or several.

        Several take turns where a step of the loop that made them is several steps of the user's.
        """
        items = _slice_indices([self.made.get(value) for value in values])
        following = _following([rows for rows, _ in items])
        runs: list[_Run] = []
        begin = 0
        while begin < len(values):
            count, step = _turns(items, begin, following[begin] - begin)
            parts = items[begin : following[begin] if count > 1 else begin + 1]
            slices = [
                _Slice(rows, _slice_of(rows.size, index, count, step), (count, *rows.shape))
                for rows, index in parts
                if rows is not None
            ]
            runs.append(slices or values[begin])
            begin += count * len(parts)
        return runs

    def _add_run(self, run: _Run) -> Value:
        """Append the ops that give a run as one array."""
        if isinstance(run, Value):
            return self._added("np.reshape", (run, (1, *run.shape)), (1, *run.shape), run.dtype)
        (count, *shape), dtype = run[0].shape, run[0].rows.stack.dtype
        parts = [self._added("getitem", part.args, part.shape, dtype) for part in run]
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


class Rows(NamedTuple):
    """What slices of a stack along one axis have in common."""

    stack: Value
    lead: tuple[int, ...]  # of the key, before the index of the slice
    rest: tuple[Any, ...]  # and after it
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of slices that there are."""
        size: int = self.stack.shape[len(self.lead)]
        return size


class _Slice(NamedTuple):
    """Rows of a stack that follow each other."""

    rows: Rows
    part: slice
    shape: tuple[int, ...]

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments of the op that takes them."""
        rows = self.rows
        key = (*rows.lead, self.part, *rows.rest)
        return rows.stack, key if len(key) > 1 else self.part


_Run = list[_Slice] | Value
"""The slices of stacks that take turns, or a value that is no slice of one."""


def _following(items: Sequence[Any]) -> list[int]:
    """Return for each item the position of the next one that is the same, else its own."""
    found, last = [], dict[Any, int]()
    for position in reversed(range(len(items))):
        found.append(last.get(items[position], position))
        last[items[position]] = position
    return found[::-1]


def _turns(items: Sequence[tuple[Rows | None, int]], begin: int, period: int) -> tuple[int, int]:
    """Return how many times stacks take turns from a position on, and the step of their indices."""
    if items[begin][0] is None or not period:
        return 1, 1
    step, end = items[begin + period][1] - items[begin][1], begin + period
    while end < len(items) and step in (1, -1):
        (rows, index), (other, before) = items[end], items[end - period]
        if rows is None or rows != other or index != before + step:
            break
        end += 1
    return max((end - begin) // period, 1), step


def _slice_indices(ops: Sequence[Op | None]) -> list[tuple[Rows | None, int]]:
    """Return the stacks and indices of slices, on the first axis where those of a stack differ."""
    keys: dict[Value, list[Sequence[Any]]] = {}
    for op in ops:
        if op is not None and op.function == "getitem":
            keys.setdefault(op.args[0], []).append(_parts(op.args[1]))
    axes: dict[Value, int] = {}
    for stack, (first, *others) in keys.items():
        differ = (axis for axis, part in enumerate(first) if any(k[axis] != part for k in others))
        same = {len(key) for key in others} == {len(first)}
        axes[stack] = next(differ, 0) if same and all(map(_is_fixed, first)) else 0
    return [
        slice_index(op, axes[op.args[0]] if op is not None and op.function == "getitem" else 0)
        for op in ops
    ]


def slice_index(op: Op | None, axis: int = 0) -> tuple[Rows | None, int]:
    """Return the stack that an op takes one slice of along an axis, and the index."""
    if op is None or op.function != "getitem":
        return None, 0
    stack, key = op.args
    lead, index, rest = (parts := _parts(key))[:axis], parts[axis], parts[axis + 1 :]
    if any(type(part) is not int or part < 0 for part in (*lead, index)):
        return None, 0
    if not all(map(_is_fixed, rest)):
        return None, 0
    return Rows(stack, tuple(lead), () if rest == (...,) else tuple(rest), op.out.shape), index


def _parts(key: Any) -> tuple[Any, ...]:
    return key if type(key) is tuple and key else (key,)


def _is_fixed(part: Any) -> bool:
    return type(part) is int or part is ...


def _slice_of(size: int, first: int, count: int, step: int) -> slice:
    """Return the slice of so many consecutive indices of `size`, in either direction."""
    full, last = count == size, first + (count - 1) * step
    if count == 1 or step > 0:
        return slice(None) if full else slice(first, last + 1)
    return slice(None, None, -1) if full else slice(first, last - 1 if last else None, -1)


# --- loops within the steps of loops --------------------------------------------------------------

_SHARED_COLUMNS = 3
"""Number of columns of a table from which a step takes its row, and those from the row."""


def share_tables(program: Program) -> Program:
    """Return a program whose loops take the rows of a table in the place of many of its columns.

    In steps that have loops of their own, a stack of columns becomes a slice of the row.
    """
    if not any(op.regions for op in program.ops):
        return program
    ops: list[Op] = []
    made: dict[Value, Op] = {}
    for op in program.ops:
        if op.function == "for":
            op = _with_rows(op, made, ops)
        if op.regions:
            regions = tuple([share_tables(region) for region in op.regions])
            op = Op(op.function, op.args, op.kwargs, op.outs, op.location, regions)
        made.update(dict.fromkeys(op.outs, op))
        ops.append(op)
    return program.with_ops(ops)


def _with_rows(op: Op, made: dict[Value, Op], before: list[Op]) -> Op:
    """Return a loop that takes rows of tables, which are appended to the ops before it."""
    begins, tables = op.args
    (body,), count = op.regions, len(begins)
    columns: defaultdict[tuple[Value, Any], list[tuple[Value, Op]]] = defaultdict(list)
    for value, table in zip(body.inputs[count:], tables, strict=True):
        maker = made.get(table) if isinstance(table, Value) else None
        if maker is not None and _is_column(maker):
            part = maker.args[1][0]
            columns[maker.args[0], (part.start, part.stop, part.step)].append((value, maker))
    steps = StackedSlices({}, {})
    rows: dict[Value, Value] = {}
    for (stack, _), found in columns.items():
        if len(found) < _SHARED_COLUMNS:
            continue
        length, rest = found[0][1].out.shape[0], stack.shape[1:]
        table, row = Value((length, *rest), stack.dtype), Value(rest, stack.dtype)
        before.append(Op("getitem", (stack, found[0][1].args[1][0]), {}, (table,)))
        rows[row] = table
        for value, maker in found:
            index = maker.args[1][1:]
            key = index if len(index) > 1 else index[0]
            steps.add(Op("getitem", (row, key), {}, (value,)))
    if not rows:
        return op
    for inner in body.ops:
        steps.copy(inner)
    kept = [i for i, value in enumerate(body.inputs) if value not in steps.made]
    inputs = [*[body.inputs[i] for i in kept], *rows]
    args = (begins, (*[tables[i - count] for i in kept if i >= count], *rows.values()))
    body = Program(body.name, inputs, body.constants, steps.ops, body.outputs, body.writes)
    return Op("for", args, op.kwargs, op.outs, op.location, (body,))


def _is_column(op: Op) -> bool:
    """Whether an op takes the same place of slices of an array."""
    key = op.args[1] if op.function == "getitem" else None
    return (
        isinstance(key, tuple)
        and len(key) > 1
        and isinstance(key[0], slice)
        and all([type(part) is int for part in key[1:]])
    )
