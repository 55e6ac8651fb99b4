"""Which lines of a program share a loop.

Lines that act element by element on arrays of one shape join, each with the loop that makes or
reads one of its operands, and reductions close the loop of what they reduce. A line may join a loop
only if none of its operands needs that loop to have ended. Products, decompositions, sorts and
draws stay calls between the loops.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from typing import Any

from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.program import Op, Program, Shape, Value, every_op
from chainrule.compiler.native.scalar_codegen import CODES, ELEMENTARY, is_fusible, scalar
from chainrule.compiler.native.strides import Accesses

REDUCTIONS = {"np.sum": "sum", "np.max": "max", "np.min": "min", "np.vdot": "sum"}
FEWEST = 2
"""So many lines are worth a loop of their own; fewer stay NumPy's, unless a function is dear."""

CALL = 1000
"""A call of NumPy's takes as long as an operation on so many elements."""

CALLS = 3
"""A call of a loop takes as long as so many of NumPy's."""

_DEAR = frozenset(ELEMENTARY)
_LARGE = 1 << 16
_LATEST = 8  # loops of a shape that a line may still join


class FusionGroup:
    """Lines that run in one loop over arrays of one shape; or one line that stays a call."""

    def __init__(self, number: int, shape: Shape | None) -> None:
        self.number = number
        self.shape = shape
        self.ops: list[tuple[int, Op]] = []
        self.bases: set[Value] = set()  # what its lines read
        self.level = 0  # higher than that of all that must have ended before
        self.needs: set[FusionGroup] = set()
        self.needed_by: set[FusionGroup] = set()

    def after(self, other: FusionGroup) -> None:
        """Note that another must have ended before this one begins."""
        self.needs.add(other)
        other.needed_by.add(self)
        self.level = max(self.level, other.level + 1)

    @property
    def reads(self) -> set[Value]:
        """The values that its lines read."""
        return {v for _, op in self.ops for v in op.inputs}

    @property
    def is_loop(self) -> bool:
        """Say whether it is worth a loop."""
        if self.shape is None:
            return False
        count = len(self.ops)
        if count >= FEWEST:  # it is one call, and one pass over memory
            return (count - CALLS) * CALL + (count - 1) * math.prod(self.shape) > 0
        op = self.ops[0][1]
        return op.function in _DEAR and op.out.size >= _LARGE


def loop_shape(op: Op, expression: Any = scalar) -> Shape | None:
    """Return the shape of the loop that a line can be part of, if it can."""
    if op.function in REDUCTIONS and len(op.outs) == 1:
        x = op.args[0]
        known = isinstance(x, Value) and x.size and _reduces(op, x)
        return x.shape if known else None
    return op.out.shape if is_fusible(op, expression) else None


def _reduces(op: Op, x: Value) -> bool:
    if op.function == "np.vdot":
        y = op.args[1]
        alike = isinstance(y, Value) and (y.shape, y.dtype) == (x.shape, x.dtype)
        return alike and CODES.get(x.dtype) in ("f4", "f8")
    known = len(op.args) == 1 and set(op.kwargs) <= {"axis", "keepdims"}
    kinds = ("f4", "f8", "i8") if op.function == "np.sum" else ("f4", "f8")
    return known and CODES.get(op.out.dtype) in kinds and CODES.get(x.dtype) in CODES.values()


def clustered(program: Program, accesses: Accesses, expression: Any = scalar) -> list[FusionGroup]:
    """Return the clusters of a program, in an order in which they can run.

    `expression` says what a line is for one element, if it's anything.
    """
    return _Partition(program, accesses, expression).ordered()


class _Partition:
    """Places the lines one by one; since levels rise along all needs, none needs itself."""

    def __init__(self, program: Program, accesses: Accesses, expression: Any) -> None:
        self.accesses, self.expression = accesses, expression
        self.groups: dict[int, FusionGroup] = {}
        self.home: dict[Value, FusionGroup] = {}  # the cluster that makes a value
        self.inside: set[Value] = set()  # values that a loop has element by element
        self.open: dict[Shape, list[FusionGroup]] = defaultdict(list)
        self.draw: FusionGroup | None = None
        self.count = 0
        for number, op in enumerate(program.ops):
            self._place(number, op)

    def _new(self, shape: Shape | None) -> FusionGroup:
        group = self.groups[self.count] = FusionGroup(self.count, shape)
        self.count += 1
        if shape is not None:
            self.open[shape].append(group)
            del self.open[shape][:-_LATEST]
        return group

    def _place(self, number: int, op: Op) -> None:
        shape = None if self.accesses.is_view(op) else loop_shape(op, self.expression)
        inputs = set(op.inputs)
        bases = {self.accesses.of(v).base for v in inputs}
        read = inputs if shape is None else bases  # loops look through views
        homes = {self.home[v] for v in read if v in self.home}
        chosen = None
        if shape is not None:
            apart = {h for v in inputs if (h := self._ended(v)) is not None}
            chosen = self._chosen(shape, homes, apart, bases)
        if chosen is None:
            chosen = self._new(shape)
        for home in homes - {chosen}:
            chosen.after(home)
        if any(part.function == DRAW for part in every_op([op])):  # draws keep their order
            if self.draw is not None:
                chosen.after(self.draw)
            self.draw = chosen
        chosen.ops.append((number, op))
        chosen.bases |= bases
        for value in op.outs:
            self.home[value] = chosen
        if shape is not None and op.function not in REDUCTIONS:
            self.inside.add(op.out)
        if shape is not None:
            for home in homes - {chosen}:
                self._merge(home, chosen)

    def _ended(self, value: Value) -> FusionGroup | None:
        """Return the cluster that must have ended before a loop reads a value."""
        base = self.accesses.of(value).base
        return None if value is base and value in self.inside else self.home.get(base)

    def _chosen(
        self, shape: Shape, homes: set[FusionGroup], apart: set[FusionGroup], bases: set[Value]
    ) -> FusionGroup | None:
        """Return the loop that a line joins: the latest that has to do with its operands."""
        for group in reversed(self.open[shape]):
            if group in apart or (group not in homes and bases.isdisjoint(group.bases)):
                continue
            if all(h is group or h.level < group.level for h in homes) or not group.needed_by:
                return group
        return None

    def _merge(self, first: FusionGroup, second: FusionGroup) -> None:
        """Make one loop of two of which the second reads what the first makes, if it can be."""
        if first.shape != second.shape or first not in self.open[second.shape or ()]:
            return
        if any(self._ended(v) is first for _, op in second.ops for v in op.inputs):
            return
        level = max([first.level, *(c.level + 1 for c in second.needs - {first})])
        others = first.needed_by - {second}
        if any(c.level < second.level or c.level <= level for c in others):
            return  # one of them may have to run between the two
        first.level = level
        first.ops = sorted([*first.ops, *second.ops], key=lambda item: item[0])
        first.bases |= second.bases
        for _, op in second.ops:
            for out in op.outs:
                self.home[out] = first
        for group in second.needs:
            group.needed_by.discard(second)
            if group is not first:
                first.after(group)
        for group in second.needed_by:
            group.needs.discard(second)
            group.after(first)
        self.open[second.shape or ()].remove(second)
        del self.groups[second.number]

    def ordered(self) -> list[FusionGroup]:
        """Return the clusters so that each comes after those that it needs, early lines first."""
        waiting = {c: len(c.needs) for c in self.groups.values()}
        ready = [(c.ops[-1][0], n) for n, c in self.groups.items() if not waiting[c]]
        heapq.heapify(ready)
        found = []
        while ready:
            found.append(self.groups[heapq.heappop(ready)[1]])
            for group in found[-1].needed_by:
                waiting[group] -= 1
                if not waiting[group]:
                    heapq.heappush(ready, (group.ops[-1][0], group.number))
        assert len(found) == len(self.groups)
        return found
