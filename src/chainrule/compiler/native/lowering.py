"""A program with calls of loops in the place of the lines that they do."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.native.fusion_groups import CALL, FusionGroup, clustered
from chainrule.compiler.native.loop_codegen import Loop, loop_of
from chainrule.compiler.native.rematerialisation import rematerialise
from chainrule.compiler.native.small_groups import runs, stretch_of
from chainrule.compiler.native.strides import Accesses
from chainrule.compiler.passes import eliminate_dead_code

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
        self.groups = clustered(program, self.accesses)
        rematerialise(self.groups, program, self.accesses)
        self.ops: list[Op] = []
        views = [op for op in program.ops if self.accesses.is_view(op)]
        self.waiting = {op.out: op for op in views}  # until a line reads them

    def fused(self) -> tuple[Program, list[Loop]]:
        stretches = self._stretches()
        gone = {group for run in stretches for group in run}
        loops = self._loops(gone) | {run[-1]: loop for run, loop in stretches.items()}
        found = list(loops.values())
        views = set(self.waiting)
        for group in self.groups:
            loop = loops.get(group)
            if loop is not None:
                place = group.ops[-1][1].location
                over = {"over": loop.over}
                self._add(Op(f"native.{loop.name}", loop.inputs, over, loop.outs, place))
            if loop is not None or group in gone:
                continue
            for _, op in group.ops:
                if op.regions:
                    op, inner = self._with_bodies(op)
                    found += inner
                if views.isdisjoint(op.outs):
                    self._add(op)
        for value in self.program.results():
            self._look_at(value)
        return eliminate_dead_code(self.program.with_ops(self.ops)), found

    def _add(self, op: Op) -> None:
        """Add a line, and before it the views that it reads: loops look through them."""
        for value in op.inputs:
            self._look_at(value)
        self.ops.append(op)

    def _look_at(self, value: Value) -> None:
        if value in self.waiting:
            self._add(self.waiting.pop(value))

    def _with_bodies(self, op: Op) -> tuple[Op, list[Loop]]:
        """Return a line whose bodies call loops, and these."""
        parts = [_Fusion(body, self.constants, self.names).fused() for body in op.regions]
        regions = tuple(body for body, _ in parts)
        times = op.kwargs.get("length", 1)
        loops = [loop._replace(work=loop.work * times) for _, inner in parts for loop in inner]
        place = op.location
        return Op(op.function, op.args, op.kwargs, op.outs, place, regions), loops

    def _stretches(self) -> dict[tuple[FusionGroup, ...], Loop]:
        """Return the functions of clusters that are small, and follow each other."""
        found = {}
        for run in runs(self.groups, self.accesses):
            part = stretch_of(run, self.groups, self.program, self.accesses, next(self.names))
            if part is not None:
                found[tuple(run)] = part
        return found

    def _loops(self, gone: set[FusionGroup]) -> dict[FusionGroup, Loop]:
        """Return the loops of the clusters that are worth one, of not too many different texts."""
        readers = Counter(v for c in self.groups for v in c.reads)
        results = set(self.program.results())
        targets = {write.value: write.target for write in self.program.writes}
        loops: dict[FusionGroup, Loop] = {}
        for group in self.groups:
            if group.is_loop and group not in gone:
                made = [v for _, op in group.ops for v in op.outs]
                reads = group.reads
                wanted = {v for v in made if v in results or readers[v] > (v in reads)}
                loops[group] = loop_of(group, next(self.names), self.accesses, wanted, targets)
        worth: Counter[str] = Counter()
        for group, loop in loops.items():
            worth[loop.text] += len(group.ops) * CALL + loop.work
        kept = {text for text, _ in worth.most_common(MOST)}
        return {group: loop for group, loop in loops.items() if loop.text in kept}


# --- comparisons ----------------------------------------------------------------------------------
#
# What is put at one place of each row, by comparing: so that loops can do it.


def with_comparisons(program: Program) -> Program:
    """Return a program that compares positions where it adds one number to each row of zeros.

    Only with an index by which the same program also takes elements: NumPy looks there whether it
    is in range, which a comparison wouldn't.
    """
    taken = [op for op in program.ops if op.function == "take_along_axis"]
    checked = {(op.args[1], *_along(op, op.args[0])) for op in taken}
    if not checked:
        return program
    found = program.with_ops([])
    found.constants = dict(program.constants)
    for op in program.ops:
        if op.function == "add_along_axis" and _is_one_of_each(op):
            axis, size = _along(op, op.out)
            if (op.args[1], axis, size) in checked:
                found.ops += _compared(op, axis, found)
                continue
        found.ops.append(op)
    return found


def _along(op: Op, array: Value) -> tuple[int, int]:
    """Return the axis of a line, and the size of an array there."""
    axis = op.kwargs["axis"] % len(array.shape)
    return axis, array.shape[axis]


def _is_one_of_each(op: Op) -> bool:
    x, index = op.args
    axis, _ = _along(op, op.out)
    row = (*op.out.shape[:axis], 1, *op.out.shape[axis + 1 :])
    return bool(x.shape == index.shape == row)


def _compared(op: Op, axis: int, program: Program) -> list[Op]:
    x, index = op.args
    size, after = op.out.shape[axis], len(op.out.shape) - axis - 1
    places = np.arange(size).reshape((size,) + (1,) * after)
    here = []
    for array in (places, places - size):  # from the end, too
        constant = Value(array.shape, array.dtype)
        program.constants[constant] = array
        equal = Value(op.out.shape, np.dtype(bool))
        here.append(Op("np.equal", (index, constant), {}, (equal,), op.location))
    either = Value(op.out.shape, np.dtype(bool))
    args = (here[0].out, here[1].out)
    return [
        *here,
        Op("np.logical_or", args, {}, (either,), op.location),
        Op("np.where", (either, x, 0), {}, op.outs, op.location),
    ]
