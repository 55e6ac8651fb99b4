"""Loop rerolling: repeated sequences of ops, from unrolled Python loops, become one `for`.

Two ops are alike if they have the same structural key: function, settings and operand types. Where
a sequence of ops repeats, the operands tell the role of each value in the loop: defined in the same
step, carried from the step before, invariant, or sliced. The arithmetic stays as it was, so results
are the same to the bit.
"""

from __future__ import annotations

from typing import Any

from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.op_traits import VIEWS
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.passes.reroll_loop import LoopBuilder, structural_key

MIN_STEPS = 8
"""Least number of steps of a rerolled loop."""
MIN_OPS_SAVED = 64
"""Least number of ops by which rerolling a loop must shorten the program."""
_MAX_CANDIDATES = 48
"""Number of positions that are tried as the start of the second step."""
_MAX_COMPARED_PER_OP = 40
"""Number of comparisons per op of the program after which the search stops."""
_OUTSIDE = ("outside", 0, 0)
_FAR = ("far", 0, 0)

Role = tuple[str, int, int]  # "same" or previous step ("before"), op within the step, its result


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
        found = [structural_key(op) for op in ops]
        self.leaves = [leaves for _, leaves in found]
        self.keys = [numbers.setdefault(key, len(numbers)) for key, _ in found]
        self.definitions: dict[Value, tuple[int, int]] = {}  # op index, result index
        last_use: dict[Value, int] = {}
        for index, op in enumerate(ops):
            for position, value in enumerate(op.outs):
                self.definitions[value] = index, position
            for value in op.inputs:
                last_use[value] = index
        last_use.update(dict.fromkeys(needed, len(ops)))
        self.occurrences: dict[int, list[int]] = {}  # the indices of the ops of each key
        self.rank: list[int] = []  # of each op among those of its key
        for index, key in enumerate(self.keys):
            indices = self.occurrences.setdefault(key, [])
            self.rank.append(len(indices))
            indices.append(index)
        self.budget = _MAX_COMPARED_PER_OP * len(ops)
        self.builder = LoopBuilder(ops, self.leaves, self.definitions, last_use, constants)

    def run(self) -> list[Op]:
        begin = 0
        while begin < len(self.ops):
            count, period = self._best_loop(begin)
            if period:
                self.builder.roll(begin, period, count // period)
            else:
                for index in range(begin, begin + count):
                    self.builder.copy(self.ops[index])
            begin += count
        return self.builder.ops

    def _best_loop(self, begin: int) -> tuple[int, int]:
        """Return the number of ops that a loop from `begin` replaces, and of those in its body.

        If there is no loop: the number of ops to copy, and 0.
        """
        loops: list[tuple[int, int]] = []
        found = [loop for loop in self._repeats(begin) if _is_profitable(*loop)]
        most = max((period * steps for period, steps in found), default=0)
        for period, steps in [loop for loop in found if loop[0] * loop[1] > 0.9 * most][:4]:
            body = self.ops[begin : begin + period]
            if all(op.function in VIEWS for op in body):
                return period * steps, 0  # a loop that uses these views makes them in its body
            if not any(op.function == DRAW for op in body):
                steps = self._consistent_steps(begin, period, steps)
                if _is_profitable(period, steps):
                    loops.append((period * steps, period))
        if not loops:
            return 1, 0
        most = max(loops)[0]
        similar = [(count, period) for count, period in loops if count > 0.9 * most]
        return min(similar, key=lambda loop: (self._count_stacked(begin, loop[1]), loop[1]))

    def _count_stacked(self, begin: int, period: int) -> int:
        """Return the number of values of a step that the loop would have to stack."""
        second, third = (
            [leaf for leaves in self.leaves[start : start + period] for leaf in leaves]
            for start in (begin + period, begin + 2 * period)
        )
        roles = self._roles(begin, period, 1)
        return sum(
            role == _OUTSIDE and not self.builder.is_regular(a, b)
            for role, a, b in zip(roles, second, third, strict=True)
        )

    def _repeats(self, begin: int) -> list[tuple[int, int]]:
        """Return period and count of each repetition of the keys from `begin` on."""
        keys, rank = self.keys, self.rank[begin]
        found = []
        for second in self.occurrences[keys[begin]][rank + 1 : rank + 1 + _MAX_CANDIDATES]:
            period, steps = second - begin, 1
            if self.budget < 0 or begin + MIN_STEPS * period > len(keys):
                break
            body = keys[begin:second]
            while keys[begin + steps * period : begin + (steps + 1) * period] == body:
                steps += 1
            self.budget -= 1 if steps == 1 else period * steps // 4
            if steps >= MIN_STEPS:
                found.append((period, steps))
        return found

    def _consistent_steps(self, begin: int, period: int, steps: int) -> int:
        """Return the number of leading steps in which all operands have the same roles."""
        first, roles = (self._roles(begin, period, step) for step in (0, 1))
        if first != [_OUTSIDE if role[0] == "before" else role for role in roles]:
            return 1
        for step in range(2, steps):
            self.budget -= period
            if self._roles(begin, period, step) != roles:
                return step
        return steps

    def _roles(self, begin: int, period: int, step: int) -> list[Role]:
        """Return the role of each leaf in the ops of one step."""
        start = begin + step * period
        definitions, roles = self.definitions, []
        for leaves in self.leaves[start : start + period]:
            for leaf in leaves:
                index, position = definitions.get(leaf, (-1, 0))
                if index >= start:
                    roles.append(("same", index - start, position))
                elif index < begin:
                    roles.append(_OUTSIDE)
                elif index >= start - period:
                    roles.append(("before", index - start + period, position))
                else:
                    roles.append(_FAR)
        return roles


def _is_profitable(period: int, steps: int) -> bool:
    return steps >= MIN_STEPS and period * (steps - 1) >= MIN_OPS_SAVED
