"""One loop made of the lines of its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from chainrule.compiler.ir.op_traits import VIEWS
from chainrule.compiler.ir.program import Op, Program, Value

# --- alike ----------------------------------------------------------------------------------------
#
# What lines have in common that do the same with other values.

Leaf = Any  # a value, or a number within an index

_INDICES = {"getitem": 1, "assign_at": 2, "plus_at": 2}
"""Where these functions have an index; others have a keyword `key`."""


def parts_of(op: Op) -> tuple[Any, list[Leaf]]:
    """Return what is alike in lines that do the same, and what differs: values, and positions.

    The first can be looked up. What has bodies is like nothing else.
    """
    leaves: list[Leaf] = []
    if op.regions:
        return object(), leaves
    place = _INDICES.get(op.function)
    args = tuple([_key(arg, leaves, i == place) for i, arg in enumerate(op.args)])
    kwargs = tuple([(k, _key(arg, leaves, k == "key")) for k, arg in op.kwargs.items()])
    key = (op.function, args, kwargs)
    try:
        hash(key)
    except TypeError:
        return object(), leaves
    return key, leaves


def _key(tree: Any, leaves: list[Leaf], index: bool) -> Any:
    if isinstance(tree, Value):
        leaves.append(tree)
        return (tree.shape, tree.dtype)
    if isinstance(tree, tuple | list):
        return (type(tree), *[_key(item, leaves, index) for item in tree])
    if isinstance(tree, slice):
        return ("slice", *[_key(part, leaves, False) for part in _ends(tree)])
    if index and type(tree) is int:
        leaves.append(tree)
        return int
    return (float, repr(tree)) if isinstance(tree, float) else (type(tree), tree)


def _ends(part: slice) -> tuple[Any, Any, Any]:
    return part.start, part.stop, part.step


def with_leaves(op: Op, leaves: Iterator[Leaf], outs: tuple[Value, ...]) -> Op:
    """Return a line that does the same with other leaves, given in the order of `parts_of`."""
    place = _INDICES.get(op.function)
    args = tuple([_filled(arg, leaves, i == place) for i, arg in enumerate(op.args)])
    kwargs = {k: _filled(arg, leaves, k == "key") for k, arg in op.kwargs.items()}
    return Op(op.function, args, kwargs, outs, op.location)


def _filled(tree: Any, leaves: Iterator[Leaf], index: bool) -> Any:
    if isinstance(tree, Value) or (index and type(tree) is int):
        return next(leaves)
    if isinstance(tree, tuple | list):
        items = [_filled(item, leaves, index) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, slice):
        return slice(*[_filled(part, leaves, False) for part in _ends(tree)])
    return tree


# --- reroll loop ----------------------------------------------------------------------------------


class LoopBuilder:
    """Copies lines, and puts loops in the place of others."""

    def __init__(
        self,
        given: list[Op],
        leaves: list[list[Leaf]],
        where: dict[Value, tuple[int, int]],
        last: dict[Value, int],
        constants: dict[Value, Any],
    ) -> None:
        self.given, self.leaves, self.where, self.last = given, leaves, where, last
        self.constants = constants
        self.ops: list[Op] = []
        self.made: dict[Value, Op] = {}

    def add(self, op: Op) -> None:
        """Add a line as it is."""
        self.ops.append(op)
        self.made.update(dict.fromkeys(op.outs, op))

    def copy(self, op: Op) -> None:
        """Add a line; one that stacks what loops stacked already takes it from there."""
        if op.function == "np.stack" and op.kwargs.get("axis") == 0:
            parts = self._runs(op.args[0])
            if len(parts) == 1 and len(op.args[0]) > 1:
                op = Op("getitem", parts[0], {}, op.outs, op.location)
            elif len(parts) <= len(op.args[0]) // 2:
                pieces = tuple([self._piece(part) for part in parts])
                op = Op("np.concat", (pieces,), {"axis": 0}, op.outs, op.location)
        self.add(op)

    def is_regular(self, first: Leaf, second: Leaf) -> bool:
        """Say whether what two steps use comes from one stack, table or place."""
        if first is second or not isinstance(first, Value):
            return True
        if first in self.constants and second in self.constants:
            return True
        one, other = self.made.get(first), self.made.get(second)
        if one is None or other is None or one.function not in VIEWS:
            return False
        (key, leaves), (other_key, others) = parts_of(one), parts_of(other)
        return key == other_key and all(
            self.is_regular(a, b) and not _is_larger((a, b), first)
            for a, b in zip(leaves, others, strict=True)
        )

    def roll(self, begin: int, period: int, steps: int) -> None:
        """Add a loop for these lines."""
        self.begin, self.period, self.steps = begin, period, steps
        self.body: list[Op] = []
        self.fresh: dict[tuple[int, int], Value] = {}
        self.carries: dict[tuple[int, int, Value], Value] = {}
        self.slices: dict[Value, Value | range] = {}
        self.known: dict[tuple[Leaf, ...], Leaf] = {}
        numbers = range(begin, begin + period * steps, period)
        for offset in range(period):
            op = self.given[begin + offset]
            columns = zip(*(self.leaves[n + offset] for n in numbers), strict=True)
            leaves = [self._leaf(column) for column in columns]
            outs = []
            for position, value in enumerate(op.outs):
                hint = self._out(steps - 1, offset, position).hint
                outs.append(Value(value.shape, value.dtype, hint))
                self.fresh[offset, position] = outs[-1]
            self.body.append(with_leaves(op, iter(leaves), tuple(outs)))
        self._finish()

    # --- what a step uses ---

    def _leaf(self, column: Sequence[Leaf]) -> Leaf:
        """Return what stands in the body for these leaves, one of each step."""
        number, position = self.where.get(column[1], (-1, 0))
        if number >= self.begin + self.period:
            return self.fresh[number - self.begin - self.period, position]
        if number < self.begin:
            return self._outside(column)
        value = column[1]
        key = (number - self.begin, position, column[0])
        if key not in self.carries:
            hint = self._out(self.steps - 1, *key[:2]).hint
            self.carries[key] = Value(value.shape, value.dtype, hint)
        return self.carries[key]

    def _outside(self, column: Sequence[Leaf]) -> Leaf:
        """Return the same for leaves that no step makes."""
        first = column[0]
        if all(leaf is first or leaf == first for leaf in column):
            return first
        key = tuple(column)
        if key not in self.known:
            self.known[key] = self._viewed(key) or self._sliced(key)
        return self.known[key]

    def _viewed(self, column: tuple[Leaf, ...]) -> Value | None:
        """Make views, of which each step has its own, within the body."""
        makers = [self.made.get(leaf) for leaf in column]
        if None in makers:
            return None
        ops: list[Any] = makers
        if ops[0].function not in VIEWS or len(ops[0].outs) != 1:
            return None
        parts = [parts_of(op) for op in ops]
        if any(key != parts[0][0] for key, _ in parts):
            return None
        columns = list(zip(*(leaves for _, leaves in parts), strict=True))
        if any(_is_larger(each, column[0]) for each in columns):
            return None
        leaves = [self._outside(each) for each in columns]
        out = Value(column[0].shape, column[0].dtype)
        self.body.append(with_leaves(ops[0], iter(leaves), (out,)))
        return out

    def _sliced(self, column: tuple[Leaf, ...]) -> Value:
        """Return the slice of a table, of numbers or arrays."""
        table: Value | range
        if isinstance(column[0], int):
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

    def _constant(self, array: Any) -> Value:
        value = Value(array.shape, array.dtype)
        self.constants[value] = array
        return value

    # --- what comes out ---

    def _out(self, step: int, offset: int, position: int) -> Value:
        return self.given[self.begin + step * self.period + offset].outs[position]

    def _is_used_later(self, value: Value) -> bool:
        return self.last.get(value, -1) >= self.begin + self.period * self.steps

    def _finish(self) -> None:
        """Add the loop, and what gives the values that are used after it."""
        final = self.steps - 1
        inputs = list(self.carries.values())
        begins = [first for _, _, first in self.carries]
        outputs = [self.fresh[offset, position] for offset, position, _ in self.carries]
        outs = [Value(v.shape, v.dtype) for v in outputs]
        stacked: list[tuple[Value, Value]] = []
        after: list[Op] = []
        for (offset, position), value in self.fresh.items():
            column = [self._out(step, offset, position) for step in range(self.steps)]
            used = [step for step, each in enumerate(column) if self._is_used_later(each)]
            if used == [final] and value in outputs:
                outs[outputs.index(value)] = column[final]
            elif used == [final]:  # carried, though no step takes it
                zeros = Value(value.shape, value.dtype)
                self.add(Op("np.zeros", (value.shape, value.dtype), {}, (zeros,)))
                inputs.append(Value(value.shape, value.dtype, value.hint))
                begins.append(zeros)
                outputs.append(value)
                outs.append(column[final])
            elif used:
                plural = f"{value.hint}s" if value.hint else ""
                stack = Value((self.steps, *value.shape), value.dtype, plural)
                stacked.append((stack, value))
                after += [Op("getitem", (stack, s), {}, (column[s],)) for s in used]
        outputs += [value for _, value in stacked]
        outs += [stack for stack, _ in stacked]
        body = Program("steps", [*inputs, *self.slices], {}, self.body, outputs, [])
        args = (tuple(begins), tuple(self.slices.values()))
        settings = {"length": self.steps, "reverse": False}
        place = self.given[self.begin].location
        self.add(Op("for", args, settings, tuple(outs), place, (body,)))
        for op in after:
            self.add(op)

    # --- stacks of stacks ---

    def _runs(self, values: Sequence[Value]) -> list[tuple[Any, ...]]:
        """Return parts of loops' stacks, with their slices, and single values."""
        runs: list[Any] = []
        for value in values:
            stack, at = _place_of(self.made.get(value))
            if stack is None:
                runs.append([value])
                continue
            run: Any = runs[-1] if runs else [None]
            if run[0] is stack and len(run) == 2:
                run.append(at - run[1][0])
            if run[0] is stack and run[2] in (1, -1) and at == run[1][-1] + run[2]:
                run[1].append(at)
            else:
                runs.append([stack, [at]])
        return [tuple(run) if len(run) == 1 else (run[0], _slice_of(*run[:2])) for run in runs]

    def _piece(self, part: tuple[Any, ...]) -> Value:
        """Add a line that gives a part of a stack."""
        value = part[0]
        if len(part) == 1:
            out = Value((1, *value.shape), value.dtype)
            self.add(Op("np.reshape", (value, out.shape), {}, (out,)))
        else:
            count = len(range(*part[1].indices(value.shape[0])))
            out = Value((count, *value.shape[1:]), value.dtype)
            self.add(Op("getitem", part, {}, (out,)))
        return out


def _is_larger(column: Sequence[Leaf], value: Value) -> bool:
    """Say whether these values would make a larger stack than views of them."""
    first = column[0]
    return isinstance(first, Value) and first.size > value.size and len(set(column)) > 1


def _place_of(op: Op | None) -> tuple[Value | None, int]:
    """Return what a line takes one slice of, along the first axis, and which."""
    if op is None or op.function != "getitem":
        return None, 0
    stack, key = op.args
    if type(key) is tuple and len(key) == 2 and key[1] is Ellipsis:
        key = key[0]
    return (stack, key) if type(key) is int and key >= 0 else (None, 0)


def _slice_of(stack: Value, positions: list[int]) -> slice:
    """Return the slice of positions one after the other, in either direction."""
    first, last = positions[0], positions[-1]
    whole = len(positions) == stack.shape[0]
    if len(positions) == 1 or last > first:
        return slice(None) if whole else slice(first, last + 1)
    return slice(None, None, -1) if whole else slice(first, last - 1 if last else None, -1)
