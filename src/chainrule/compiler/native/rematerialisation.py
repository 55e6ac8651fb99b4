"""Rematerialisation: recompute cheap values in a loop rather than read them from memory.

A backward pass needs values of the forward pass, which the forward loop has to store. If a few
cheap operations compute them from fewer arrays, most of which are stored anyway, the backward loop
recomputes them, and the forward loop stores less (Briggs, Cooper, Torczon, Rematerialization,
PLDI 1992).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.native.fusion_groups import REDUCTIONS, FusionGroup
from chainrule.compiler.native.scalar_codegen import ELEMENTARY
from chainrule.compiler.native.strides import Accesses

MAX_OPS_PER_ARRAY = 6
"""Number of operations that take no longer than reading or writing an array."""

MAX_OPS = 8 * MAX_OPS_PER_ARRAY
"""Largest number of operations that compute one value again."""

_EXPENSIVE = frozenset(
    [
        *(*ELEMENTARY, *REDUCTIONS),
        *("np.divide", "np.sqrt", "np.power", "np.pow", "np.remainder", "np.floor_divide"),
    ]
)


def rematerialise(groups: list[FusionGroup], program: Program, accesses: Accesses) -> None:
    """Recompute values in loops that would read them from earlier loops."""
    uses = _Uses(groups, program, accesses)
    for position, group in enumerate(groups):
        if group.is_loop:
            _Reader(group, position, uses).rematerialise_reads()


class _Uses:
    """The groups that read each value of a program, and so its lifetime."""

    def __init__(self, groups: list[FusionGroup], program: Program, accesses: Accesses) -> None:
        self.groups, self.accesses = groups, accesses
        self.producer = {v: n for n, c in enumerate(groups) for _, op in c.ops for v in op.outs}
        self.cheap_ops: dict[Value, tuple[int, Op]] = {
            op.out: (number, op)
            for group in groups
            if group.shape is not None
            for number, op in group.ops
            if op.function not in _EXPENSIVE
        }
        self.readers: dict[Value, set[int]] = defaultdict(set)
        for value in (*program.results(), *program.inputs, *accesses.constants):
            self.readers[accesses.of(value).base].add(len(groups))
        for position, group in enumerate(groups):
            self.add_reads(position, group.reads)

    def add_reads(self, position: int, reads: Iterable[Value]) -> None:
        """Record the values that a group reads from other groups."""
        for value in reads:
            base = self.accesses.of(value).base
            if self.producer.get(base) != position:
                self.readers[base].add(position)

    def is_live(self, value: Value, position: int) -> bool:
        """Return whether a value is in memory when a group begins."""
        return max(self.readers[self.accesses.of(value).base], default=-1) >= position


class _Recipe(NamedTuple):
    """The operations that compute a value again, and the values that these read."""

    value: Value
    ops: dict[int, Op]
    leaves: set[Value]


class _Reader:
    """A loop, and the values that it reads from earlier loops."""

    def __init__(self, group: FusionGroup, position: int, uses: _Uses) -> None:
        self.group, self.position, self.uses = group, position, uses
        own = {v for _, op in group.ops for v in op.outs}
        self.reads = {v for v in group.reads - own if uses.accesses.of(v).base is v}

    def rematerialise_reads(self) -> None:
        """Recompute the largest number of values that reduces the arrays read and written.

        The shortest recipes come first: they contain no values of longer ones, so that they don't
        depend on how many are chosen.
        """
        found = [self._recipe(v) for v in self.reads if self._op(v) is not None]
        recipes = sorted(
            [recipe for recipe in found if recipe is not None],
            key=lambda recipe: (len(recipe.ops), max(recipe.ops)),
        )
        ops: dict[int, Op] = {}
        leaves: set[Value] = set()
        count, reads, writes = 0, 0, 0  # arrays that are not read and written any more
        for number, recipe in enumerate(recipes, 1):
            ops |= recipe.ops
            new = recipe.leaves - leaves
            leaves |= new
            reads += 1 - len(new - self.reads)
            writes += self.uses.readers[recipe.value] == {self.position}
            writes -= sum(not self.uses.is_live(leaf, self.position) for leaf in new)
            if min(reads, writes) >= 0 and len(ops) <= MAX_OPS_PER_ARRAY * (reads + writes):
                count = number
        if count:
            chosen = recipes[:count]
            merged = {number: op for recipe in chosen for number, op in recipe.ops.items()}
            self._insert(merged, {recipe.value for recipe in chosen})

    def _op(self, value: Value) -> tuple[int, Op] | None:
        """Return the cheap operation of an earlier loop of the same shape that makes a value."""
        made = self.uses.producer.get(value)
        if made is None or made >= self.position:
            return None
        return self.uses.cheap_ops.get(value) if self._has_same_shape(made) else None

    def _has_same_shape(self, position: int) -> bool:
        return self.uses.groups[position].shape == self.group.shape

    def _recipe(self, value: Value) -> _Recipe | None:
        """Return how to compute a value from those that the loop reads all the same."""
        found = _Recipe(value, {}, set())
        pending = [value]
        while pending:
            item = pending.pop()
            known = self._op(item)
            if known is None:
                found.leaves.add(item)
            elif known[0] not in found.ops:
                if len(found.ops) == MAX_OPS:
                    return None
                found.ops[known[0]] = known[1]
                pending += known[1].inputs
        return found

    def _insert(self, ops: dict[int, Op], chosen: set[Value]) -> None:
        uses, group = self.uses, self.group
        for value in chosen:
            uses.readers[value].discard(self.position)
        copies: dict[Value, Value] = {}

        def with_copies(op: Op) -> Op:
            return op.substitute(lambda v: copies.get(v, v))

        copied_ops = []
        for number, op in sorted(ops.items(), key=lambda item: item[0]):
            copy = with_copies(op)
            copy.outs = (Value(op.out.shape, op.out.dtype, op.out.hint),)
            copies[op.out] = copy.out
            copied_ops.append((number, copy))
        group.ops = copied_ops + [(number, with_copies(op)) for number, op in group.ops]
        uses.add_reads(
            self.position, {v for _, op in copied_ops for v in op.inputs} - set(copies.values())
        )
