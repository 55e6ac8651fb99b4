"""Loop rerolling: repeated sequences of ops, from unrolled Python loops, become one `for`.

Two ops are alike if they have the same structural key: function, settings and operand types. Where
a sequence of ops repeats, the operands tell the role of each value in the loop: defined in the same
step, carried from the step before, invariant, or sliced. The arithmetic stays as it was, so results
are the same to the bit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.op_traits import VIEWS
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.passes.ragged_keys import ragged_key
from chainrule.compiler.passes.ragged_loops import RaggedLoopBuilder
from chainrule.compiler.passes.ragged_ops import RaggedError
from chainrule.compiler.passes.repetitions import Repetition, repetitions
from chainrule.compiler.passes.structural_keys import Window, structural_key

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
        self.ops, self.constants = ops, constants
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
        self.leaves, self.definitions, self.last_use = leaves, definitions, last_use
        self.operands = Operands(leaves, definitions)
        self.ragged = self.operands  # by keys without sizes, once they are asked for
        self.unfit: set[Loop] = set()  # which can't be built

    def run(self) -> list[Op]:
        candidates = self._candidates(self.keys, self.operands)
        loops = self._chosen(candidates)
        rest = len(self.ops) - sum([loop.period * loop.steps for loop in loops])
        if rest < MIN_OPS_SAVED and len(loops) < MIN_STEPS:
            return self._built(loops)
        self._compare_without_sizes()
        known = {each for each, _ in candidates}
        candidates += self._candidates(self.ragged_keys, self.ragged, known)
        for _ in range(_MOST_TRIED):
            try:
                return self._built(self._chosen(candidates))
            except _UnfitError as error:
                self.unfit.add(error.args[0])
        return self._built(loops)

    def _compare_without_sizes(self) -> None:
        """Number the ops by keys that are equal for those that differ in sizes alone."""
        numbers: dict[Any, int] = {}
        pairs = [ragged_key(op) for op in self.ops]
        self.ragged_keys = [numbers.setdefault(key, len(numbers)) for key, _ in pairs]
        self.ragged_leaves = [leaves for _, leaves in pairs]
        self.ragged = Operands(self.ragged_leaves, self.definitions)

    def _built(self, loops: list[Loop]) -> list[Op]:
        """Return the ops with these loops."""
        given = self.ops, self.leaves, self.definitions, self.last_use, self.constants, reroll_ops
        builder = RaggedLoopBuilder(*given)
        begin = 0
        for loop in loops:
            leaves = self.ragged_leaves if loop.is_ragged else self.leaves
            if builder.first_step_needs_copies(loop.begin, loop.period, leaves):
                rest = loop._replace(begin=loop.begin + loop.period, steps=loop.steps - 1)
                loop = rest if is_profitable(rest.period, rest.steps) else loop
            for op in self.ops[begin : loop.begin]:
                builder.copy(op)
            if loop.is_ragged:
                try:
                    builder.roll_ragged(*loop[:3], self.ragged_leaves, self.keys)
                except RaggedError:
                    raise _UnfitError(loop) from None
            else:
                builder.roll(*loop[:3])
            begin = loop.end
        for op in self.ops[begin:]:
            builder.copy(op)
        return builder.ops

    def _candidates(
        self, keys: list[int], operands: Operands, known: Container[Repetition] = ()
    ) -> list[tuple[Repetition, Loop]]:
        """Return repetitions that aren't known yet, and the first loop in each."""
        repeated = set(repetitions(keys, MIN_STEPS))
        repeated.update(repetitions(operands.local_keys(keys), MIN_STEPS))
        loops = [
            (each, self._loop_in(each, operands))
            for each in sorted(repeated)
            if each not in known and self._is_rollable(each)
        ]
        return [(each, loop) for each, loop in loops if loop is not None]

    def _chosen(self, candidates: list[tuple[Repetition, Loop]]) -> list[Loop]:
        """Return loops that don't overlap in their order, those that save most chosen first."""
        chosen: list[Loop] = []
        fit = [(each, loop) for each, loop in candidates if loop not in self.unfit]
        pending = [(0, len(self.ops), fit)]
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
                operands = self.ragged if known.is_ragged else self.operands
                loop = known if whole else self._loop_in(part, operands)
                if loop is not None and loop not in self.unfit:
                    yield part, loop

    def _is_rollable(self, repeated: Repetition) -> bool:
        """Whether a loop of these ops is of use: views alone are made where they are used.

        Stacks alone become slices of what loops have stacked.
        """
        body = self.ops[repeated.start : repeated.start + repeated.period]
        if any(op.function == DRAW for op in body):
            return False
        return not all(op.function in VIEWS or op.function == "np.stack" for op in body)

    def _loop_in(self, repeated: Repetition, operands: Operands) -> Loop | None:
        """Return the first loop of a repetition in which the operands have the same roles."""
        start, end, shortest = repeated
        far = operands.max_distance(repeated)
        # A step may use what the one before made; if more is needed, a step of the loop is several.
        for factor in sorted({1, far // (2 * shortest) + 1, -(-far // shortest)} - {0}):
            period = factor * shortest
            if end - start < MIN_STEPS * period:
                break
            found = operands.consistent(start, end, period)
            if found is not None and is_profitable(period, found[1]):
                if operands is not self.operands:
                    loop = self._with_few_carries(Loop(found[0], period, found[1], True))
                    return None if self._is_wasteful(loop) else loop
                return self._with_fixed_windows(Loop(found[0], period, found[1]))
        return None

    def _with_fixed_windows(self, loop: Loop) -> Loop:
        """Return a loop whose steps are several, if windows alternate: slices take less time."""
        begin, period, steps, _ = loop
        columns = []
        for offset in range(period):
            first, second = [self.leaves[begin + offset + step * period] for step in (0, 1)]
            for place, (leaf, other) in enumerate(zip(first, second, strict=True)):
                if leaf.__class__ is Window and leaf != other:
                    ops = self.leaves[begin + offset : loop.end : period]
                    columns.append([leaves[place] for leaves in ops])
        if not columns:
            return loop
        for count in range(2, min(_MOST_ALTERNATING, steps // MIN_STEPS) + 1):
            if all([column[count:] == column[:-count] for column in columns]):
                return Loop(begin, count * period, steps // count)
        return loop

    def _is_wasteful(self, loop: Loop) -> bool:
        """Whether steps that all take as long as the longest take much longer together."""
        size = longest = count = 0
        for offset in range(loop.period):
            ops = self.ops[loop.begin + offset : loop.end : loop.period]
            shapes = [op.outs[0].shape for op in ops if op.outs]
            if len(set(shapes)) > 1:
                size += sum(map(math.prod, shapes))
                longest += loop.steps * math.prod(map(max, *shapes))
                count += loop.steps
        return longest > _MOST_LONGER * size + _FREE_ELEMENTS * count

    def _with_few_carries(self, loop: Loop) -> Loop:
        """Return a loop whose steps begin where the least is carried from one to the next."""
        begin, period = loop.begin, loop.period
        crossing = [0] * (period + 1)  # what is made before a place of a step, and used after it
        first = begin + loop.steps // 2 * period
        ops = range(first, min(first + 2 * period, loop.end))
        last_use = {x: op for op in ops for x in self.ragged_leaves[op] if isinstance(x, Value)}
        for value, last in last_use.items():
            made = self.definitions.get(value, (-1, 0))[0]
            if first <= made < first + period:
                for place in range(made + 1, min(last, made + period) + 1):
                    crossing[(place - first) % period] += value.size
        shift = min(range(period), key=crossing.__getitem__)
        if crossing[shift] == crossing[0]:
            return loop
        found = self.ragged.consistent(begin + shift, loop.end, period)
        if found is None or found[0] != begin + shift or not is_profitable(period, found[1]):
            return loop
        return Loop(found[0], period, found[1], True)


class Loop(NamedTuple):
    """The ops of some steps, from `begin` on."""

    begin: int
    period: int
    steps: int
    is_ragged: bool = False  # whether steps differ in sizes

    @property
    def end(self) -> int:
        return self.begin + self.period * self.steps


class _UnfitError(Exception):
    """A loop can't be built."""


def _ops_saved(loop: Loop) -> float:
    return loop.period * (loop.steps - 1) * (_RAGGED_SHARE if loop.is_ragged else 1)


_MOST_ALTERNATING = 8
"""Number of windows that alternate in a loop, as those of colours on a chessboard, at most."""

_MOST_LONGER = 8
"""Number of times that more elements may be computed if steps of other sizes are rolled up.

Three for an LU factorisation, whose steps write to matrices that shrink in both axes, and six for
the products of a Cholesky factorisation by columns.
"""

_FREE_ELEMENTS = 16
"""Number of elements of an op that take hardly longer than one."""

_MOST_TRIED = 8
"""Number of times that the program is built with ragged loops, until all of them can be."""

_RAGGED_SHARE = 0.9
"""What a loop counts of the ops that it saves if its steps take longer than without it."""


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
        later = np.where(differs, np.maximum(maker, other), np.where(far, other, -1))
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
