"""A program with calls of loops in the place of the lines that they do."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

from chainrule.compiler.ir.program import Line, Program, Value
from chainrule.compiler.native.fusion_groups import CALL, Cluster, clustered
from chainrule.compiler.native.loop_codegen import Loop, loop_of
from chainrule.compiler.native.rematerialisation import rematerialise
from chainrule.compiler.native.small_groups import runs, stretch_of
from chainrule.compiler.native.strides import Accesses
from chainrule.compiler.passes import without_dead_lines

MOST = 32
"""So many different loops are compiled: each takes some tenths of a second."""


def with_loops(program: Program) -> tuple[Program, list[Loop]]:
    """Return the program that calls loops, and the loops."""
    return _Fusion(program, {}, (f"{program.name}_{i}" for i in itertools.count(1))).fused()


class _Fusion:
    def __init__(self, program: Program, constants: dict[Value, Any], names: Iterator[str]) -> None:
        self.program, self.names = program, names
        self.constants = {**constants, **program.constants}
        self.accesses = Accesses(program, self.constants)
        self.clusters = clustered(program, self.accesses)
        rematerialise(self.clusters, program, self.accesses)
        self.lines: list[Line] = []
        views = [line for line in program.lines if self.accesses.is_view(line)]
        self.waiting = {line.out: line for line in views}  # until a line reads them

    def fused(self) -> tuple[Program, list[Loop]]:
        stretches = self._stretches()
        gone = {cluster for run in stretches for cluster in run}
        loops = self._loops(gone) | {run[-1]: loop for run, loop in stretches.items()}
        found = list(loops.values())
        views = set(self.waiting)
        for cluster in self.clusters:
            loop = loops.get(cluster)
            if loop is not None:
                place = cluster.lines[-1][1].location
                over = {"over": loop.over}
                self._add(Line(f"native.{loop.name}", loop.inputs, over, loop.outs, place))
            if loop is not None or cluster in gone:
                continue
            for _, line in cluster.lines:
                if line.bodies:
                    line, inner = self._with_bodies(line)
                    found += inner
                if views.isdisjoint(line.outs):
                    self._add(line)
        for value in self.program.results():
            self._look_at(value)
        return without_dead_lines(self.program.with_lines(self.lines)), found

    def _add(self, line: Line) -> None:
        """Add a line, and before it the views that it reads: loops look through them."""
        for value in line.inputs:
            self._look_at(value)
        self.lines.append(line)

    def _look_at(self, value: Value) -> None:
        if value in self.waiting:
            self._add(self.waiting.pop(value))

    def _with_bodies(self, line: Line) -> tuple[Line, list[Loop]]:
        """Return a line whose bodies call loops, and these."""
        parts = [_Fusion(body, self.constants, self.names).fused() for body in line.bodies]
        bodies = tuple(body for body, _ in parts)
        times = line.kwargs.get("length", 1)
        loops = [loop._replace(work=loop.work * times) for _, inner in parts for loop in inner]
        place = line.location
        return Line(line.function, line.args, line.kwargs, line.outs, place, bodies), loops

    def _stretches(self) -> dict[tuple[Cluster, ...], Loop]:
        """Return the functions of clusters that are small, and follow each other."""
        found = {}
        for run in runs(self.clusters, self.accesses):
            part = stretch_of(run, self.clusters, self.program, self.accesses, next(self.names))
            if part is not None:
                found[tuple(run)] = part
        return found

    def _loops(self, gone: set[Cluster]) -> dict[Cluster, Loop]:
        """Return the loops of the clusters that are worth one, of not too many different texts."""
        readers = Counter(v for c in self.clusters for v in c.reads)
        results = set(self.program.results())
        targets = {write.value: write.target for write in self.program.writes}
        loops: dict[Cluster, Loop] = {}
        for cluster in self.clusters:
            if cluster.is_loop and cluster not in gone:
                made = [v for _, line in cluster.lines for v in line.outs]
                reads = cluster.reads
                wanted = {v for v in made if v in results or readers[v] > (v in reads)}
                loops[cluster] = loop_of(cluster, next(self.names), self.accesses, wanted, targets)
        worth: Counter[str] = Counter()
        for cluster, loop in loops.items():
            worth[loop.text] += len(cluster.lines) * CALL + loop.work
        kept = {text for text, _ in worth.most_common(MOST)}
        return {cluster: loop for cluster, loop in loops.items() if loop.text in kept}
