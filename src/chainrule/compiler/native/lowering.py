"""A program with calls of loops in the place of the lines that they do."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

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


# --- comparisons ----------------------------------------------------------------------------------
#
# What is put at one place of each row, by comparing: so that loops can do it.


def with_comparisons(program: Program) -> Program:
    """Return a program that compares positions where it adds one number to each row of zeros.

    Only with an index by which the same program also takes elements: NumPy looks there whether it
    is in range, which a comparison wouldn't.
    """
    taken = [line for line in program.lines if line.function == "take_along_axis"]
    checked = {(line.args[1], *_along(line, line.args[0])) for line in taken}
    if not checked:
        return program
    found = program.with_lines([])
    found.constants = dict(program.constants)
    for line in program.lines:
        if line.function == "add_along_axis" and _is_one_of_each(line):
            axis, size = _along(line, line.out)
            if (line.args[1], axis, size) in checked:
                found.lines += _compared(line, axis, found)
                continue
        found.lines.append(line)
    return found


def _along(line: Line, array: Value) -> tuple[int, int]:
    """Return the axis of a line, and the size of an array there."""
    axis = line.kwargs["axis"] % len(array.shape)
    return axis, array.shape[axis]


def _is_one_of_each(line: Line) -> bool:
    x, index = line.args
    axis, _ = _along(line, line.out)
    row = (*line.out.shape[:axis], 1, *line.out.shape[axis + 1 :])
    return bool(x.shape == index.shape == row)


def _compared(line: Line, axis: int, program: Program) -> list[Line]:
    x, index = line.args
    size, after = line.out.shape[axis], len(line.out.shape) - axis - 1
    places = np.arange(size).reshape((size,) + (1,) * after)
    here = []
    for array in (places, places - size):  # from the end, too
        constant = Value(array.shape, array.dtype)
        program.constants[constant] = array
        equal = Value(line.out.shape, np.dtype(bool))
        here.append(Line("np.equal", (index, constant), {}, (equal,), line.location))
    either = Value(line.out.shape, np.dtype(bool))
    args = (here[0].out, here[1].out)
    return [
        *here,
        Line("np.logical_or", args, {}, (either,), line.location),
        Line("np.where", (either, x, 0), {}, line.outs, line.location),
    ]
