"""Tables of what the steps of a loop use that was made before it, one row for each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.compiler.ir.op_traits import VIEWS
from chainrule.compiler.ir.program import Op, Value
from chainrule.compiler.passes.structural_keys import Leaf, Window, rebuild_op, structural_key


class StepTables:
    """Build the inputs of the body of a loop: invariants, slices of tables, views of either."""

    def __init__(self, constants: dict[Value, Any], made: dict[Value, Op]) -> None:
        self.constants = constants
        self.made = made
        self.ops: list[Op] = []

    def begin_loop(self) -> None:
        """Begin another loop, without inputs."""
        self.body: list[Op] = []
        self.slices: dict[Value, Value | range] = {}
        self.known: dict[tuple[Leaf, ...], Leaf] = {}

    def add(self, op: Op) -> None:
        """Append an op as it is."""
        self.ops.append(op)
        self.made.update(dict.fromkeys(op.outs, op))

    def copy(self, op: Op) -> None:
        """Append an op, or what does the same."""
        self.add(op)

    def outside(self, column: Sequence[Leaf]) -> Leaf:
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
        if any(is_larger(each, column[0]) for each in columns):
            return None
        leaves = self.side_by_side([self.outside(each) for each in columns], columns)
        out = Value(column[0].shape, column[0].dtype)
        self.body.append(rebuild_op(ops[0], iter(leaves), (out,)))
        return out

    def side_by_side(
        self, leaves: Sequence[Leaf], columns: Sequence[Sequence[Leaf]]
    ) -> Sequence[Leaf]:
        """Return the leaves of an op, whose windows are all index arrays if one of them is."""
        are_windows = [isinstance(column[0], Window) for column in columns]
        pairs = [*zip(leaves, are_windows, strict=True)]
        if not any(isinstance(leaf, Value) for leaf, is_window in pairs if is_window):
            return leaves
        return [
            self._constant(leaf.indices) if isinstance(leaf, Window) else leaf for leaf in leaves
        ]

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

    def _constant(self, array: Any) -> Value:
        value = Value(array.shape, array.dtype)
        self.constants[value] = array
        return value


def is_larger(column: Sequence[Leaf], value: Value) -> bool:
    """Whether stacking these values takes more memory than stacking views of them."""
    return isinstance(column[0], Value) and column[0].size > value.size and len(set(column)) > 1
