"""Rematerialisation: recompute cheap values in a loop rather than read them from memory.

A backward pass needs values of the forward pass, which the forward loop has to store. If a few
cheap operations compute them from fewer arrays, most of which are stored anyway, the backward loop
recomputes them, and the forward loop stores less (Briggs, Cooper, Torczon, Rematerialization,
PLDI 1992).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.native.fusion_groups import REDUCTIONS, FusionGroup
from chainrule.compiler.native.scalar_codegen import ELEMENTARY
from chainrule.compiler.native.strides import Accesses

MAX_OPS_PER_ARRAY = 6
"""Number of operations that take no longer than reading or writing an array."""

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


class _Reader:
    """A loop, and the values that it reads from earlier loops."""

    def __init__(self, group: FusionGroup, position: int, uses: _Uses) -> None:
        self.group, self.position, self.uses = group, position, uses
        own = {v for _, op in group.ops for v in op.outs}
        self.reads = {v for v in group.reads - own if uses.accesses.of(v).base is v}
        self.producers: dict[Value, tuple[int, Op]] = {
            op.out: (number, op)
            for other in uses.groups[:position]
            if other.shape == group.shape
            for number, op in other.ops
            if op.function not in _EXPENSIVE
        }

    def rematerialise_reads(self) -> None:
        """Recompute values if that reduces the number of arrays read and written."""
        chosen = {v for v in self.reads if v in self.producers}
        while chosen:
            recipes = {v: self._recipe(v, self.reads - chosen) for v in chosen}
            ops = {number: op for recipe, _ in recipes.values() for number, op in recipe}
            leaves = {leaf for _, needed in recipes.values() for leaf in needed}
            new = [leaf for leaf in leaves if not self.uses.is_live(leaf, self.position)]
            freed = [v for v in chosen if self.uses.readers[v] == {self.position}]
            reads = len(self.reads) - len((self.reads - chosen) | leaves)  # fewer than before
            writes = len(freed) - len(new)
            if min(reads, writes) >= 0 and len(ops) <= MAX_OPS_PER_ARRAY * (reads + writes):
                self._insert(ops, chosen)
                return
            chosen.remove(max(chosen, key=lambda v: (len(recipes[v][0]), self.producers[v][0])))

    def _recipe(
        self, value: Value, available: set[Value]
    ) -> tuple[list[tuple[int, Op]], set[Value]]:
        """Return the operations that compute a value from available ones, and these."""
        ops: dict[int, Op] = {}
        leaves: set[Value] = set()
        pending = [value]
        while pending:
            item = pending.pop()
            if item in available or item not in self.producers:
                leaves.add(item)
            else:
                number, op = self.producers[item]
                ops[number] = op
                pending += op.inputs
        return list(ops.items()), leaves

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
