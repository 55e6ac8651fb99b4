"""Computing again what a loop would have to read: cheaper than memory, where little is to do.

A backward pass needs values of the forward one, and the loop that made them has stored each. Where
they follow by a few multiplications from fewer arrays, most of which are kept anyway, the backward
loop computes them itself, and the first one stores less (Briggs, Cooper, Torczon,
Rematerialization, PLDI 1992).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.native.fusion_groups import REDUCTIONS, FusionGroup
from chainrule.compiler.native.scalar_codegen import ELEMENTARY
from chainrule.compiler.native.strides import Accesses

STEPS = 6
"""So many operations take no longer than to read an array."""

_SLOW = frozenset(
    [
        *(*ELEMENTARY, *REDUCTIONS),
        *("np.divide", "np.sqrt", "np.power", "np.pow", "np.remainder", "np.floor_divide"),
    ]
)


def rematerialise(groups: list[FusionGroup], program: Program, accesses: Accesses) -> None:
    """Let loops compute again what they would read of loops before them."""
    uses = _Uses(groups, program, accesses)
    for place, group in enumerate(groups):
        if group.is_loop:
            _Reader(group, place, uses).change()


class _Uses:
    """Which clusters read the values of a program: till then, they are in memory."""

    def __init__(self, groups: list[FusionGroup], program: Program, accesses: Accesses) -> None:
        self.groups, self.accesses = groups, accesses
        self.home = {v: n for n, c in enumerate(groups) for _, op in c.ops for v in op.outs}
        self.readers: dict[Value, set[int]] = defaultdict(set)
        for value in (*program.results(), *program.inputs, *accesses.constants):
            self.readers[accesses.of(value).base].add(len(groups))
        for place, group in enumerate(groups):
            self.note(place, group.reads)

    def note(self, place: int, reads: Iterable[Value]) -> None:
        """Note what a cluster reads; what it made itself, it has."""
        for value in reads:
            base = self.accesses.of(value).base
            if self.home.get(base) != place:
                self.readers[base].add(place)

    def lives(self, value: Value, place: int) -> bool:
        """Say whether a value is in memory when a cluster begins, whatever that reads."""
        return max(self.readers[self.accesses.of(value).base], default=-1) >= place


class _Reader:
    """A loop, and what it reads of loops before it."""

    def __init__(self, group: FusionGroup, place: int, uses: _Uses) -> None:
        self.group, self.place, self.uses = group, place, uses
        own = {v for _, op in group.ops for v in op.outs}
        self.reads = {v for v in group.reads - own if uses.accesses.of(v).base is v}
        self.made: dict[Value, tuple[int, Op]] = {
            op.out: (number, op)
            for other in uses.groups[:place]
            if other.shape == group.shape
            for number, op in other.ops
            if op.function not in _SLOW
        }

    def change(self) -> None:
        """Compute values again if that leaves fewer arrays to read and to write."""
        chosen = {v for v in self.reads if v in self.made}
        while chosen:
            recipes = {v: self._recipe(v, self.reads - chosen) for v in chosen}
            ops = {number: op for recipe, _ in recipes.values() for number, op in recipe}
            leaves = {leaf for _, needed in recipes.values() for leaf in needed}
            new = [leaf for leaf in leaves if not self.uses.lives(leaf, self.place)]
            freed = [v for v in chosen if self.uses.readers[v] == {self.place}]
            reads = len(self.reads) - len((self.reads - chosen) | leaves)  # fewer than before
            writes = len(freed) - len(new)
            if min(reads, writes) >= 0 and len(ops) <= STEPS * (reads + writes):
                self._insert(ops, chosen)
                return
            chosen.remove(max(chosen, key=lambda v: (len(recipes[v][0]), self.made[v][0])))

    def _recipe(self, value: Value, known: set[Value]) -> tuple[list[tuple[int, Op]], set[Value]]:
        """Return the lines that compute a value, and what they begin with."""
        ops: dict[int, Op] = {}
        leaves: set[Value] = set()
        waiting = [value]
        while waiting:
            item = waiting.pop()
            if item in known or item not in self.made:
                leaves.add(item)
            else:
                number, op = self.made[item]
                ops[number] = op
                waiting += op.inputs
        return list(ops.items()), leaves

    def _insert(self, ops: dict[int, Op], chosen: set[Value]) -> None:
        uses, group = self.uses, self.group
        for value in chosen:
            uses.readers[value].discard(self.place)
        copies: dict[Value, Value] = {}

        def changed(op: Op) -> Op:
            return op.substitute(lambda v: copies.get(v, v))

        first = []
        for number, op in sorted(ops.items(), key=lambda item: item[0]):
            again = changed(op)
            again.outs = (Value(op.out.shape, op.out.dtype, op.out.hint),)
            copies[op.out] = again.out
            first.append((number, again))
        group.ops = first + [(number, changed(op)) for number, op in group.ops]
        uses.note(self.place, {v for _, op in first for v in op.inputs} - set(copies.values()))
