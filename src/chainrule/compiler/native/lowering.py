"""Lowering: replace fusion groups of a program by calls of compiled loops."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.native.call_tables import Kernels
from chainrule.compiler.native.compile_cost import KERNELS_SHARE, budget_ms, compile_ms
from chainrule.compiler.native.fusion_groups import CALL_ELEMENTS, FusionGroup, find_groups
from chainrule.compiler.native.layout import BudgetError, UnfitError
from chainrule.compiler.native.loop_codegen import Loop, generate_loop
from chainrule.compiler.native.rematerialisation import rematerialise
from chainrule.compiler.native.small_groups import Readers, pays, small_function, small_runs
from chainrule.compiler.native.strides import Accesses
from chainrule.compiler.passes import eliminate_dead_code

_NEARLY_WHOLE = 0.9
"""Share of the operations of a program from which a run takes as long to compile as the whole."""


def lower_loops(
    program: Program, whole: UnfitError | None = None
) -> tuple[Program, list[Loop], Budget]:
    """Return a program that calls loops, the loops, and what their lines were taken from.

    `whole` is the reason why the program is not a single function, if that was tried.
    """
    names = (f"{program.name}_{i}" for i in itertools.count(1))
    budget = Budget(budget_ms(), whole if isinstance(whole, BudgetError) else None)
    lowered, loops = _Lowering(program, {}, names, budget).lower()
    loops = [loop if loop.table is None else _finished(loop, budget.kernels) for loop in loops]
    return lowered, loops, budget


def _finished(loop: Loop, kernels: Kernels) -> Loop:
    """Return a loop that calls kernels with the source of their function, which all such share."""
    types = kernels.types
    return loop._replace(text=kernels.text, types=types, unused=len(types) - len(loop.types))


class Budget:
    """The milliseconds that may still be spent on compiling, and what lies beyond."""

    def __init__(self, milliseconds: float, whole: BudgetError | None = None) -> None:
        self.total = self.left = milliseconds
        self.whole = whole  # set if a function of the whole program would take too long
        self.kernels = Kernels()  # of all functions that would take too long alone
        self.known: set[str] = set()
        self.beyond: list[Op] = []
        self.beyond_ms = 0.0

    def leave(self, groups: Iterable[FusionGroup], milliseconds: float) -> None:
        """Note groups whose function would take so long to compile."""
        self.beyond += [op for group in groups for _, op in group.ops]
        self.beyond_ms += milliseconds

    def reserved_for_kernels(self, functions: list[Loop | UnfitError]) -> float:
        """Return the milliseconds to keep for kernels if not all functions can be compiled."""
        costs = [compile_ms(f.text) for f in functions if isinstance(f, Loop)]
        fits = sum(costs) <= (1 - KERNELS_SHARE) * self.left
        if fits and not any(isinstance(f, BudgetError) for f in functions):
            return 0.0
        return max(KERNELS_SHARE * self.total - self.kernels.milliseconds, 0.0)

    def allows(self, text: str, reserved: float = 0) -> bool:
        """Return whether a function can be compiled, too; equal ones are compiled once."""
        cost = compile_ms(text)
        if text not in self.known and cost <= self.left - reserved:
            self.known.add(text)
            self.left -= cost
        return text in self.known


class _Lowering:
    def __init__(
        self,
        program: Program,
        constants: dict[Value, Any],
        names: Iterator[str],
        budget: Budget,
        is_region: bool = False,
    ) -> None:
        self.program, self.names, self.budget = program, names, budget
        self.is_region = is_region
        self.constants = {**constants, **program.constants}
        self.accesses = Accesses(program, self.constants)
        self.groups = find_groups(program, self.accesses)
        rematerialise(self.groups, program, self.accesses)
        self.ops: list[Op] = []
        views = [op for op in program.ops if self.accesses.is_view(op)]
        self.pending_views = {op.out: op for op in views}  # until an operation reads them

    def lower(self) -> tuple[Program, list[Loop]]:
        functions = self._small_functions()
        covered = {group for run in functions for group in run}
        loops = self._loops(covered) | {run[-1]: loop for run, loop in functions.items()}
        found = list(loops.values())
        views = set(self.pending_views)
        for group in self.groups:
            loop = loops.get(group)
            if loop is not None:
                location = group.ops[-1][1].location
                over = {"over": loop.over}
                self._add(Op(f"native.{loop.name}", loop.inputs, over, loop.outs, location))
            if loop is not None or group in covered:
                continue
            for _, op in group.ops:
                if op.regions:
                    op, region_loops = self._lower_regions(op)
                    found += region_loops
                if views.isdisjoint(op.outs):
                    self._add(op)
        for value in self.program.results():
            self._materialise(value)
        return eliminate_dead_code(self.program.with_ops(self.ops)), found

    def _add(self, op: Op) -> None:
        """Add an operation, and before it the views that it reads; loops need no views."""
        for value in op.inputs:
            self._materialise(value)
        self.ops.append(op)

    def _materialise(self, value: Value) -> None:
        if value in self.pending_views:
            self._add(self.pending_views.pop(value))

    def _lower_regions(self, op: Op) -> tuple[Op, list[Loop]]:
        """Return an operation whose regions call loops, and the loops."""
        parts = [
            _Lowering(region, self.constants, self.names, self.budget, is_region=True).lower()
            for region in op.regions
        ]
        regions = tuple(region for region, _ in parts)
        times = op.kwargs.get("length", 1)
        loops = [
            loop._replace(work=loop.work * times, calls=loop.calls * times)
            for _, region_loops in parts
            for loop in region_loops
        ]
        location = op.location
        return Op(op.function, op.args, op.kwargs, op.outs, location, regions), loops

    def _small_functions(self) -> dict[tuple[FusionGroup, ...], Loop]:
        """Return the functions of runs of small groups."""
        budget = self.budget
        readers = Readers(self.groups, self.program.results(), self.accesses)
        runs = [*small_runs(self.groups, self.accesses)]
        whole = self.budget.whole
        functions = [
            whole if whole and self._is_nearly_whole(run) else self._small_function(run, readers)
            for run in runs
        ]
        reserved = budget.reserved_for_kernels(functions)
        found = {}
        for run, function in zip(runs, functions, strict=True):
            if isinstance(function, Loop) and budget.allows(function.text, reserved):
                found[tuple(run)] = function
            elif not isinstance(function, UnfitError) or isinstance(function, BudgetError):
                found |= self._table_functions(run, readers)
        return found

    def _table_functions(
        self, run: list[FusionGroup], readers: Readers
    ) -> dict[tuple[FusionGroup, ...], Loop]:
        """Return the function of a run that calls kernels, or of its halves within the budget."""
        budget, half = self.budget, len(run) // 2
        before = budget.kernels.milliseconds
        has_loops = any(op.function == "for" for group in run for _, op in group.ops)
        for repeats in (False, True) if has_loops else (False,):
            budget.kernels.repeats = repeats
            function = self._small_function(run, readers, budget.kernels)
            if not isinstance(function, BudgetError):
                break
        budget.left -= budget.kernels.milliseconds - before
        if isinstance(function, Loop):
            return {tuple(run): function}
        if not isinstance(function, BudgetError):
            return {}
        if half and pays(run[half:]):
            return self._table_functions(run[:half], readers) | self._table_functions(
                run[half:], readers
            )
        budget.leave(run, function.milliseconds)
        return {}

    def _is_nearly_whole(self, run: list[FusionGroup]) -> bool:
        """Return whether a run has nearly all operations of the program."""
        return not self.is_region and self._computed(run) >= _NEARLY_WHOLE * self._computed_in_all

    @cached_property
    def _computed_in_all(self) -> int:
        return self._computed(self.groups)

    def _computed(self, groups: list[FusionGroup]) -> int:
        """Return the number of operations of groups that aren't views."""
        return sum(not self.accesses.is_view(op) for group in groups for _, op in group.ops)

    def _small_function(
        self, run: list[FusionGroup], readers: Readers, kernels: Kernels | None = None
    ) -> Loop | UnfitError:
        """Return the function of a run, or the reason why there is none."""
        name = next(self.names)
        try:
            return small_function(run, self.program, readers, name, self.budget.left, kernels)
        except UnfitError as reason:
            return reason.with_traceback(None)

    def _loops(self, covered: set[FusionGroup]) -> dict[FusionGroup, Loop]:
        """Return the loops of groups that benefit, within the budget."""
        reader_count = Counter(v for c in self.groups for v in c.reads)
        results = set(self.program.results())
        targets = {write.value: write.target for write in self.program.writes}
        loops: dict[FusionGroup, Loop] = {}
        for group in self.groups:
            if group.is_loop and group not in covered:
                stored = group.stored(results, reader_count)
                loops[group] = generate_loop(
                    group, next(self.names), self.accesses, stored, targets
                )
        benefit: Counter[str] = Counter()
        for group, loop in loops.items():
            benefit[loop.text] += len(group.ops) * CALL_ELEMENTS + loop.work
        kept = {text for text, _ in benefit.most_common() if self.budget.allows(text)}
        for group, loop in loops.items():
            if loop.text not in kept:
                self.budget.leave([group], compile_ms(loop.text))
        return {group: loop for group, loop in loops.items() if loop.text in kept}


# --- one-hot scatters as comparisons --------------------------------------------------------------


def lower_one_hots(program: Program) -> Program:
    """Return a program in which one-hot scatters are comparisons, so that they can be fused.

    A one-hot scatter adds one element to each row of zeros. It is replaced only if the program also
    gathers with the same index, which checks its bounds; a comparison would not.
    """
    taken = [op for op in program.ops if op.function == "take_along_axis"]
    checked = {(op.args[1], *_axis_and_size(op, op.args[0])) for op in taken}
    if not checked:
        return program
    found = program.with_ops([])
    found.constants = dict(program.constants)
    for op in program.ops:
        if op.function == "add_along_axis" and _is_one_per_row(op):
            axis, size = _axis_and_size(op, op.out)
            if (op.args[1], axis, size) in checked:
                found.ops += _as_comparison(op, axis, found)
                continue
        found.ops.append(op)
    return found


def _axis_and_size(op: Op, array: Value) -> tuple[int, int]:
    """Return the axis of an operation, and the size of an array along it."""
    axis = op.kwargs["axis"] % len(array.shape)
    return axis, array.shape[axis]


def _is_one_per_row(op: Op) -> bool:
    x, index = op.args
    axis, _ = _axis_and_size(op, op.out)
    row = (*op.out.shape[:axis], 1, *op.out.shape[axis + 1 :])
    return bool(x.shape == index.shape == row)


def _as_comparison(op: Op, axis: int, program: Program) -> list[Op]:
    x, index = op.args
    size, after = op.out.shape[axis], len(op.out.shape) - axis - 1
    positions = np.arange(size).reshape((size,) + (1,) * after)
    equalities = []
    for array in (positions, positions - size):  # negative indices, too
        constant = Value(array.shape, array.dtype)
        program.constants[constant] = array
        equal = Value(op.out.shape, np.dtype(bool))
        equalities.append(Op("np.equal", (index, constant), {}, (equal,), op.location))
    either = Value(op.out.shape, np.dtype(bool))
    args = (equalities[0].out, equalities[1].out)
    return [
        *equalities,
        Op("np.logical_or", args, {}, (either,), op.location),
        Op("np.where", (either, x, 0), {}, op.outs, op.location),
    ]
