"""Computing again what a loop would have to read: cheaper than memory, where little is to do.

A backward pass needs values of the forward one, and the loop that made them has stored each. Where
they follow by a few multiplications from fewer arrays, most of which are kept anyway, the backward
loop computes them itself, and the first one stores less (Briggs, Cooper, Torczon,
Rematerialization, PLDI 1992).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from chainrule.compiler.ir.program import Line, Program, Value
from chainrule.compiler.native.fusion_groups import REDUCTIONS, Cluster
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


def rematerialise(clusters: list[Cluster], program: Program, accesses: Accesses) -> None:
    """Let loops compute again what they would read of loops before them."""
    uses = _Uses(clusters, program, accesses)
    for place, cluster in enumerate(clusters):
        if cluster.is_loop:
            _Reader(cluster, place, uses).change()


class _Uses:
    """Which clusters read the values of a program: till then, they are in memory."""

    def __init__(self, clusters: list[Cluster], program: Program, accesses: Accesses) -> None:
        self.clusters, self.accesses = clusters, accesses
        self.home = {v: n for n, c in enumerate(clusters) for _, line in c.lines for v in line.outs}
        self.readers: dict[Value, set[int]] = defaultdict(set)
        for value in (*program.results(), *program.inputs, *accesses.constants):
            self.readers[accesses.of(value).base].add(len(clusters))
        for place, cluster in enumerate(clusters):
            self.note(place, cluster.reads)

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

    def __init__(self, cluster: Cluster, place: int, uses: _Uses) -> None:
        self.cluster, self.place, self.uses = cluster, place, uses
        own = {v for _, line in cluster.lines for v in line.outs}
        self.reads = {v for v in cluster.reads - own if uses.accesses.of(v).base is v}
        self.made: dict[Value, tuple[int, Line]] = {
            line.out: (number, line)
            for other in uses.clusters[:place]
            if other.shape == cluster.shape
            for number, line in other.lines
            if line.function not in _SLOW
        }

    def change(self) -> None:
        """Compute values again if that leaves fewer arrays to read and to write."""
        chosen = {v for v in self.reads if v in self.made}
        while chosen:
            recipes = {v: self._recipe(v, self.reads - chosen) for v in chosen}
            lines = {number: line for recipe, _ in recipes.values() for number, line in recipe}
            leaves = {leaf for _, needed in recipes.values() for leaf in needed}
            new = [leaf for leaf in leaves if not self.uses.lives(leaf, self.place)]
            freed = [v for v in chosen if self.uses.readers[v] == {self.place}]
            reads = len(self.reads) - len((self.reads - chosen) | leaves)  # fewer than before
            writes = len(freed) - len(new)
            if min(reads, writes) >= 0 and len(lines) <= STEPS * (reads + writes):
                self._insert(lines, chosen)
                return
            chosen.remove(max(chosen, key=lambda v: (len(recipes[v][0]), self.made[v][0])))

    def _recipe(self, value: Value, known: set[Value]) -> tuple[list[tuple[int, Line]], set[Value]]:
        """Return the lines that compute a value, and what they begin with."""
        lines: dict[int, Line] = {}
        leaves: set[Value] = set()
        waiting = [value]
        while waiting:
            item = waiting.pop()
            if item in known or item not in self.made:
                leaves.add(item)
            else:
                number, line = self.made[item]
                lines[number] = line
                waiting += line.inputs
        return list(lines.items()), leaves

    def _insert(self, lines: dict[int, Line], chosen: set[Value]) -> None:
        uses, cluster = self.uses, self.cluster
        for value in chosen:
            uses.readers[value].discard(self.place)
        copies: dict[Value, Value] = {}

        def changed(line: Line) -> Line:
            return line.replaced(lambda v: copies.get(v, v))

        first = []
        for number, line in sorted(lines.items(), key=lambda item: item[0]):
            again = changed(line)
            again.outs = (Value(line.out.shape, line.out.dtype, line.out.hint),)
            copies[line.out] = again.out
            first.append((number, again))
        cluster.lines = first + [(number, changed(line)) for number, line in cluster.lines]
        uses.note(self.place, {v for _, line in first for v in line.inputs} - set(copies.values()))
