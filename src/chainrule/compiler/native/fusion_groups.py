"""Fusion: partition the operations of a program into groups that share a loop nest.

Elementwise operations on arrays of one shape join the group that produces or reads one of their
operands; reductions end a group. An operation may join a group only if no operand requires that the
group's loop has finished. Products, decompositions, sorts and random draws remain calls.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Set

from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.op_traits import WRITES
from chainrule.compiler.ir.program import Op, Program, Shape, Value, every_op
from chainrule.compiler.native.complex_codegen import (
    PARTS,
    Expression,
    is_fusible,
    scalar_or_complex,
)
from chainrule.compiler.native.scalar_codegen import CODES, ELEMENTARY
from chainrule.compiler.native.strides import Accesses

REDUCTIONS = {"np.sum": "sum", "np.max": "max", "np.min": "min", "np.vdot": "sum"}
MIN_OPS = 2
"""Number of operations from which a loop may pay; a single one must be expensive."""

CALL_ELEMENTS = 1000
"""Number of elements whose computation takes as long as a NumPy call."""

LOOP_CALLS = 3
"""Number of NumPy calls that take as long as the call of a compiled loop."""

# NumPy casts the mask first; threads of a BLAS wait for ours, which spin on their cores.
_EXPENSIVE = frozenset([*ELEMENTARY, "masked", "np.vdot"])
_EXPENSIVE_MIN_ELEMENTS = 1 << 16
_MAX_OPEN_GROUPS = 8  # groups of a shape that an operation may still join


class FusionGroup:
    """Operations that run in one loop nest of a shape, or one operation that remains a call."""

    def __init__(self, number: int, shape: Shape | None) -> None:
        self.number = number
        self.shape = shape
        self.ops: list[tuple[int, Op]] = []
        self.bases: set[Value] = set()  # base values that its operations read
        self.owners: set[Value] = set()  # those, and the stacks that they are entries of
        self.level = 0  # above the levels of all predecessors
        self.predecessors: set[FusionGroup] = set()
        self.successors: set[FusionGroup] = set()
        self.barriers: set[FusionGroup] = set()  # predecessors that it can't be merged with

    def run_after(self, other: FusionGroup) -> None:
        """Record that another group must finish before this one begins."""
        self.predecessors.add(other)
        other.successors.add(self)
        self.level = max(self.level, other.level + 1)

    @property
    def reads(self) -> set[Value]:
        """The values that its operations read."""
        return {v for _, op in self.ops for v in op.inputs}

    def stored(self, results: Set[Value], readers: Counter[Value]) -> set[Value]:
        """Return the values that results or other groups need; `readers` counts reading groups."""
        made, reads = {v for _, op in self.ops for v in op.outs}, self.reads
        return {v for v in made if v in results or readers[v] > (v in reads)}

    @property
    def is_loop(self) -> bool:
        """Whether a loop is faster than NumPy calls."""
        if self.shape is None:
            return False
        count = sum(op.function not in PARTS for _, op in self.ops)
        if count >= MIN_OPS:  # saves calls, and passes over memory
            return (count - LOOP_CALLS) * CALL_ELEMENTS + (count - 1) * math.prod(self.shape) > 0
        op = self.ops[0][1]
        size = math.prod(self.shape)
        return op.function in _EXPENSIVE and size >= _EXPENSIVE_MIN_ELEMENTS


def loop_shape(op: Op, expression: Expression = scalar_or_complex) -> Shape | None:
    """Return the shape of the loop nest that an operation can be part of, or None."""
    if op.function in REDUCTIONS and len(op.outs) == 1:
        x = op.args[0]
        known = isinstance(x, Value) and x.size and _is_reduction(op, x)
        return x.shape if known else None
    return op.out.shape if is_fusible(op, expression) else None


def _is_reduction(op: Op, x: Value) -> bool:
    if op.function == "np.vdot":
        y = op.args[1]
        alike = isinstance(y, Value) and (y.shape, y.dtype) == (x.shape, x.dtype)
        return alike and CODES.get(x.dtype) in ("f4", "f8")
    known = len(op.args) == 1 and set(op.kwargs) <= {"axis", "keepdims"}
    kinds = ("f4", "f8", "i8") if op.function == "np.sum" else ("f4", "f8")
    return known and CODES.get(op.out.dtype) in kinds and CODES.get(x.dtype) in CODES.values()


def find_groups(
    program: Program, accesses: Accesses, expression: Expression = scalar_or_complex
) -> list[FusionGroup]:
    """Return the fusion groups of a program in an executable order.

    `expression` returns the scalar source of an operation, or None if it has none.
    """
    return _Partition(program, accesses, expression).ordered()


def single_groups(
    program: Program, accesses: Accesses, expression: Expression = scalar_or_complex
) -> list[FusionGroup]:
    """Return a group for each operation of a program, in its order."""
    found = []
    for number, op in enumerate(program.ops):
        shape = None if accesses.is_view(op) else loop_shape(op, expression)
        found.append(FusionGroup(number, shape))
        found[-1].ops.append((number, op))
    return found


class _Partition:
    """Greedy partition; levels rise along dependences, so there are no cycles."""

    def __init__(self, program: Program, accesses: Accesses, expression: Expression) -> None:
        self.accesses, self.expression = accesses, expression
        self.groups: dict[int, FusionGroup] = {}
        self.producer: dict[Value, FusionGroup] = {}  # the group that computes a value
        self.elementwise_values: set[Value] = set()  # available in the loop that computes them
        self.open: dict[Shape, list[FusionGroup]] = defaultdict(list)
        self.readers: defaultdict[Value, set[FusionGroup]] = defaultdict(set)  # of memory
        self.draw: FusionGroup | None = None
        self.count = 0
        for number, op in enumerate(program.ops):
            self._place(number, op)

    def _new(self, shape: Shape | None) -> FusionGroup:
        group = self.groups[self.count] = FusionGroup(self.count, shape)
        self.count += 1
        if shape is not None:
            self.open[shape].append(group)
            del self.open[shape][:-_MAX_OPEN_GROUPS]
        return group

    def _place(self, number: int, op: Op) -> None:
        shape = None if self.accesses.is_view(op) else loop_shape(op, self.expression)
        inputs = set(op.inputs)
        bases = {self.accesses.of(v).base for v in inputs}
        read = inputs if shape is None else bases  # loops read the bases of views
        producers = {self.producer[v] for v in read if v in self.producer}
        chosen = None
        barriers: set[FusionGroup] = set()
        if shape is not None:
            barriers.update(h for v in inputs if (h := self._barrier(v)) is not None)
            chosen = self._choose(shape, producers, barriers, bases)
        if chosen is None:
            chosen = self._new(shape)
        for producer in producers - {chosen}:
            chosen.run_after(producer)
        if any(part.function == DRAW for part in every_op([op])):  # draws keep their order
            if self.draw is not None:
                chosen.run_after(self.draw)
            self.draw = chosen
        if op.function in WRITES and isinstance(op.args[0], Value):
            for reader in self.readers[op.args[0]] - {chosen}:  # so that no copy is written to
                chosen.run_after(reader)
        for owner in {owner for v in inputs for owner in self.accesses.owners(v)}:
            self.readers[owner].add(chosen)
            chosen.owners.add(owner)
        chosen.ops.append((number, op))
        chosen.bases |= bases
        chosen.barriers |= barriers
        for value in op.outs:
            self.producer[value] = chosen
        if shape is not None and op.function not in REDUCTIONS:
            self.elementwise_values.add(op.out)
        if shape is not None:
            for producer in producers - {chosen}:
                self._merge(producer, chosen)

    def _barrier(self, value: Value) -> FusionGroup | None:
        """Return the group that must finish before another loop reads a value."""
        base = self.accesses.of(value).base
        return (
            None if value is base and value in self.elementwise_values else self.producer.get(base)
        )

    def _choose(
        self,
        shape: Shape,
        producers: set[FusionGroup],
        barriers: set[FusionGroup],
        bases: set[Value],
    ) -> FusionGroup | None:
        """Return the group that an operation joins: the latest that shares a value with it."""
        for group in reversed(self.open[shape]):
            if group in barriers or (group not in producers and bases.isdisjoint(group.bases)):
                continue
            if all(h is group or h.level < group.level for h in producers) or not group.successors:
                return group
        return None

    def _merge(self, first: FusionGroup, second: FusionGroup) -> None:
        """Merge a group into its predecessor of the same shape, if dependences allow it."""
        if first.shape != second.shape or first not in self.open[second.shape or ()]:
            return
        if first in second.barriers:
            return
        level = max([first.level, *(c.level + 1 for c in second.predecessors - {first})])
        others = first.successors - {second}
        if any(c.level < second.level or c.level <= level for c in others):
            return  # one of them may depend on both
        first.level = level
        first.ops = sorted([*first.ops, *second.ops], key=lambda item: item[0])
        first.bases |= second.bases
        first.barriers |= second.barriers
        first.owners |= second.owners
        for owner in second.owners:
            self.readers[owner].add(first)
            self.readers[owner].discard(second)
        for _, op in second.ops:
            for out in op.outs:
                self.producer[out] = first
        for group in second.predecessors:
            group.successors.discard(second)
            if group is not first:
                first.run_after(group)
        for group in second.successors:
            group.predecessors.discard(second)
            group.run_after(first)
            if second in group.barriers:
                group.barriers.discard(second)
                group.barriers.add(first)
        self.open[second.shape or ()].remove(second)
        del self.groups[second.number]

    def ordered(self) -> list[FusionGroup]:
        """Return the groups in topological order, early operations first."""
        unmet = {c: len(c.predecessors) for c in self.groups.values()}
        ready = [(c.ops[-1][0], n) for n, c in self.groups.items() if not unmet[c]]
        heapq.heapify(ready)
        found = []
        while ready:
            found.append(self.groups[heapq.heappop(ready)[1]])
            for group in found[-1].successors:
                unmet[group] -= 1
                if not unmet[group]:
                    heapq.heappush(ready, (group.ops[-1][0], group.number))
        assert len(found) == len(self.groups)
        return found
