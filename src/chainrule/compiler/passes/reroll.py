"""Loop rerolling: repeated sequences of ops, from unrolled Python loops, become one `for`.

Two ops are alike if they have the same structural key: function, settings and operand types. Where
a sequence of ops repeats, the operands tell the role of each value in the loop: defined in the same
step, carried from the step before, invariant, or sliced. The arithmetic stays as it was, so results
are the same to the bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.op_traits import VIEWS
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.passes.repetitions import Repetition, repetitions
from chainrule.compiler.passes.reroll_loop import LoopBuilder
from chainrule.compiler.passes.structural_keys import structural_key

MIN_STEPS = 8
"""Least number of steps of a rerolled loop."""
MIN_OPS_SAVED = 64
"""Least number of ops by which rerolling a loop must shorten the program."""


def reroll_loops(program: Program) -> Program:
    """Return the program with loops in place of repeated sequences of ops."""
    constants = dict(program.constants)
    ops = reroll_ops(program.ops, set(program.results()), constants)
    program = program.with_ops(ops)
    program.constants = constants
    return program


def reroll_ops(ops: list[Op], needed: set[Value], constants: dict[Value, Any]) -> list[Op]:
    """Return the same ops with loops; adds the tables that the loops read to the constants."""
    if len(ops) < MIN_OPS_SAVED:
        return ops
    return _LoopFinder(ops, needed, constants).run()


class _LoopFinder:
    """Search for repeated sequences of ops, on integers that number the structural keys."""

    def __init__(self, ops: list[Op], needed: set[Value], constants: dict[Value, Any]) -> None:
        self.ops = ops
        numbers: dict[Any, int] = {}
        known: dict[int, int] = {}  # of what ops of one kind share
        self.keys: list[int] = []
        leaves: list[Sequence[Any]] = []
        definitions: dict[Value, tuple[int, int]] = {}  # op index, result index
        last_use: dict[Value, int] = {}
        for index, op in enumerate(ops):
            number = known.get(id(op.structure)) if op.structure else None
            if number is not None and op.operands is not None:
                operands: Sequence[Any] = op.operands
                leaves.append(operands)
            else:
                key, each = structural_key(op)
                number = numbers.setdefault(key, len(numbers))
                if op.structure:
                    known[id(op.structure)] = number
                operands = op.inputs
                leaves.append(each)
            self.keys.append(number)
            for value in operands:
                last_use[value] = index
            for position, value in enumerate(op.outs):
                definitions[value] = index, position
        last_use.update(dict.fromkeys(needed, len(ops)))
        self.operands = Operands(leaves, definitions)
        self.builder = LoopBuilder(ops, leaves, definitions, last_use, constants, reroll_ops)

    def run(self) -> list[Op]:
        begin = 0
        for loop in self._loops():
            if self.builder.first_step_needs_copies(*loop):
                rest = Loop(loop.begin + loop.period, loop.period, loop.steps - 1)
                loop = rest if is_profitable(rest.period, rest.steps) else loop
            for op in self.ops[begin : loop.begin]:
                self.builder.copy(op)
            self.builder.roll(*loop)
            begin = loop.end
        for op in self.ops[begin:]:
            self.builder.copy(op)
        return self.builder.ops

    def _loops(self) -> list[Loop]:
        """Return loops that don't overlap in their order, those that save most chosen first."""
        repeated = set(repetitions(self.keys, MIN_STEPS))
        repeated.update(repetitions(self.operands.local_keys(self.keys), MIN_STEPS))
        found = [each for each in sorted(repeated) if self._is_rollable(each)]
        loops = [(each, self._loop_in(each)) for each in found]
        chosen: list[Loop] = []
        pending = [(0, len(self.ops), [(each, loop) for each, loop in loops if loop is not None])]
        while pending:
            begin, end, candidates = pending.pop()
            if candidates:
                best = max((loop for _, loop in candidates), key=_ops_saved)
                chosen.append(best)
                for part in [(begin, best.begin), (best.end, end)]:
                    pending.append((*part, list(self._within(*part, candidates))))
        return sorted(chosen)

    def _within(
        self, begin: int, end: int, candidates: list[tuple[Repetition, Loop]]
    ) -> Iterator[tuple[Repetition, Loop]]:
        """Yield repetitions and loops in a part of the program."""
        for repeated, known in candidates:
            part = repeated._replace(start=max(repeated.start, begin), end=min(repeated.end, end))
            if part.end - part.start >= MIN_STEPS * part.period:
                whole = begin <= known.begin and known.end <= end
                loop = known if whole else self._loop_in(part)
                if loop is not None:
                    yield part, loop

    def _is_rollable(self, repeated: Repetition) -> bool:
        """Whether a loop of these ops is of use: views alone are made where they are used.

        Stacks alone become slices of what loops have stacked.
        """
        body = self.ops[repeated.start : repeated.start + repeated.period]
        if any(op.function == DRAW for op in body):
            return False
        return not all(op.function in VIEWS or op.function == "np.stack" for op in body)

    def _loop_in(self, repeated: Repetition) -> Loop | None:
        """Return the first loop of a repetition in which the operands have the same roles."""
        start, end, shortest = repeated
        far = self.operands.max_distance(repeated)
        # A step may use what the one before made; if more is needed, a step of the loop is several.
        for factor in sorted({1, far // (2 * shortest) + 1, -(-far // shortest)} - {0}):
            period = factor * shortest
            if end - start < MIN_STEPS * period:
                break
            found = self.operands.consistent(start, end, period)
            if found is not None and is_profitable(period, found[1]):
                return Loop(found[0], period, found[1])
        return None


class Loop(NamedTuple):
    """The ops of some steps, from `begin` on."""

    begin: int
    period: int
    steps: int

    @property
    def end(self) -> int:
        return self.begin + self.period * self.steps


def _ops_saved(loop: Loop) -> int:
    return loop.period * (loop.steps - 1)


class Operands:
    """Where the operands of all ops are made, to tell their roles in the steps of a loop.

    In a loop with period q, the role of an operand is the same in two steps if its maker is as far
    away, or if both makers are before the loop.
    """

    def __init__(
        self, leaves: list[Sequence[Any]], definitions: dict[Value, tuple[int, int]]
    ) -> None:
        made = [definitions.get(leaf, _NOWHERE) for each in leaves for leaf in each]
        flat = np.fromiter(itertools.chain.from_iterable(made), np.int64, 2 * len(made))
        self.maker, self.result = flat.reshape(-1, 2).T
        counts = [len(each) for each in leaves]
        self.first = np.concatenate([[0], np.cumsum(counts)])  # of each op
        self.owner = np.repeat(np.arange(len(leaves)), counts)

    def local_keys(self, keys: list[int]) -> Any:
        """Return keys of the ops that tell apart, too, how far away their operands are made.

        By these, the first op of a row of a table differs from those that follow, so that all ops
        of a row are what is repeated. Distances that are rare are of what is made before a loop.
        """
        found, count = np.array(keys, np.int64), len(keys)
        distance = np.where(self.maker >= 0, self.owner - self.maker, 0)
        position = np.arange(len(self.owner)) - self.first[self.owner]
        most = int(position.max(initial=0)) + 1
        kind = _numbered(found[self.owner] * most + position)
        kind, inverse = np.unique(kind * count + distance, return_inverse=True)
        distance[np.bincount(inverse)[inverse] < MIN_STEPS] = 0
        counts, used = np.diff(self.first), count
        for place in range(min(most, _MOST_ARGUMENTS)):
            ops = np.flatnonzero(counts > place)
            numbers = _numbered(found[ops] * count + distance[self.first[ops] + place])
            found[ops] = numbers + used  # equal keys have equally many operands
            used += len(ops)
        many: dict[bytes, int] = {}
        for op in np.flatnonzero(counts > _MOST_ARGUMENTS):
            rest = distance[self.first[op] + _MOST_ARGUMENTS : self.first[op + 1]]
            found[op] = used + many.setdefault(found[op].tobytes() + rest.tobytes(), len(many))
        return found

    def max_distance(self, repeated: Repetition) -> int:
        """Return how far back operands are made within a repetition, where steps agree."""
        start, end, period = repeated
        owner, maker, _, equal = self._pairs(start, end, period)
        distances = (owner - maker)[equal & (maker >= start)]
        return int(distances.max(initial=0))

    def consistent(self, start: int, end: int, period: int) -> tuple[int, int] | None:
        """Return the first place where a loop of MIN_STEPS can begin, and the number of its steps.

        Step 0 may use what was made before the loop where later steps use what the step before
        them made.
        """
        owner, maker, other, equal = self._pairs(start, end, period)
        distance = owner - maker
        far = equal & (maker >= 0) & (distance >= 2 * period)
        # The places after which a loop must begin, so that a pair of operands has the same role.
        differs = ~equal & ((maker >= 0) | (other >= 0))
        later = np.where(differs, np.maximum(maker, other), np.where(far, maker, -1))
        at_first = np.where(differs, np.maximum(maker, other - period), -1)
        # The last place where it can begin, so that the operand is of the step before, not sooner.
        carried = equal & (maker >= 0) & (distance > period) & ~far
        latest = np.where(carried, maker - period, np.iinfo(np.int64).max)
        size, index = end - start - period, owner - start
        after, after_first = np.full(size, -1), np.full(size, -1)
        before = np.full(size, np.iinfo(np.int64).max)
        np.maximum.at(after, index, later)
        np.maximum.at(after_first, index, at_first)
        np.minimum.at(before, index, latest)
        begins = np.arange(start, end - MIN_STEPS * period + 1)
        count = len(begins)
        fits = _window_max(after_first, period)[:count] < begins
        fits &= _window_max(after, (MIN_STEPS - 2) * period)[period:][:count] < begins
        fits &= -_window_max(-before, period)[2 * period :][:count] >= begins
        if not fits.any():
            return None
        begin = int(begins[fits.argmax()])
        ends = np.flatnonzero(after[begin - start + period :] >= begin)
        steps = (int(ends[0]) // period + 2) if len(ends) else (end - begin) // period
        return begin, steps

    def _pairs(self, start: int, end: int, period: int) -> tuple[Any, Any, Any, Any]:
        """Return the op of each operand, its maker, that one step later, and if these agree."""
        first, last = self.first[start], self.first[end - period]
        shift = self.first[start + period] - first
        owner, maker, other = (
            self.owner[first:last],
            self.maker[first:last],
            self.maker[first + shift : last + shift],
        )
        results = self.result[first:last], self.result[first + shift : last + shift]
        equal = (other - maker == period) & (results[0] == results[1]) & (maker >= 0)
        return owner, maker, other, equal


_NOWHERE = (-1, 0)
"""The maker of what no op of the program makes: inputs, constants, integers."""


_MOST_ARGUMENTS = 8
"""Number of operands up to which those of all ops are compared at once."""


def _numbered(items: Any) -> Any:
    """Return the numbers of items, by their order: equal ones have equal numbers."""
    return np.unique(items, return_inverse=True)[1]


def _window_max(array: Any, width: int) -> Any:
    """Return the largest element of each window of this width."""
    covered = 1
    found = array
    while 2 * covered <= width:
        found = np.maximum(found[: len(found) - covered], found[covered:])
        covered *= 2
    return np.maximum(found[: len(array) - width + 1], found[width - covered :])


def is_profitable(period: int, steps: int) -> bool:
    """Whether a loop is worth it, of so many steps with so many ops each."""
    return steps >= MIN_STEPS and period * (steps - 1) >= MIN_OPS_SAVED
