"""Loops that Python unrolled: stretches of lines that repeat become the body of one `for`.

Two lines are alike if they call the same function with the same settings on arrays of the same
types. Where a stretch of lines is followed by others that are alike, again and again, each use of a
value tells what it is to the loop: made in the same step, handed on from the step before, the same
in all steps, or another in each. Nothing is computed in another way than before, so results are the
same to the bit.
"""

from __future__ import annotations

from typing import Any

from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.op_traits import VIEWS
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.passes.reroll_loop import LoopBuilder, parts_of

STEPS = 8
"""A loop has at least so many steps,"""
SAVED = 64
"""and stands for at least so many lines more than its body has."""
_CANDIDATES = 48
"""So many places are tried where the second step might begin."""
_OUTSIDE = ("outside", 0, 0)
_FAR = ("far", 0, 0)

Role = tuple[str, int, int]  # made in the same step or in the one before: by which line, as what


def rolled(program: Program) -> Program:
    """Return the program with loops in the place of repeated stretches."""
    constants = dict(program.constants)
    ops = rolled_lines(program.ops, set(program.results()), constants)
    program = program.with_ops(ops)
    program.constants = constants
    return program


def rolled_lines(ops: list[Op], needed: set[Value], constants: dict[Value, Any]) -> list[Op]:
    """Return the same lines with loops; adds to the constants the tables that loops read."""
    if len(ops) < SAVED:
        return ops
    return _Roller(ops, needed, constants).run()


class _Roller:
    def __init__(self, ops: list[Op], needed: set[Value], constants: dict[Value, Any]) -> None:
        self.ops = ops
        kinds: dict[Any, int] = {}
        found = [parts_of(op) for op in ops]
        self.leaves = [leaves for _, leaves in found]
        self.signs = [kinds.setdefault(key, len(kinds)) for key, _ in found]
        self.where: dict[Value, tuple[int, int]] = {}
        last: dict[Value, int] = {}
        for number, op in enumerate(ops):
            for position, value in enumerate(op.outs):
                self.where[value] = number, position
            for value in op.inputs:
                last[value] = number
        last.update(dict.fromkeys(needed, len(ops)))
        self.places: dict[int, list[int]] = {}  # where lines of each kind stand
        self.rank: list[int] = []
        for number, sign in enumerate(self.signs):
            at = self.places.setdefault(sign, [])
            self.rank.append(len(at))
            at.append(number)
        self.budget = 40 * len(ops)  # so many lines are compared before giving up
        self.builder = LoopBuilder(ops, self.leaves, self.where, last, constants)

    def run(self) -> list[Op]:
        begin = 0
        while begin < len(self.ops):
            count, period = self._loop_at(begin)
            if period:
                self.builder.roll(begin, period, count // period)
            else:
                for number in range(begin, begin + count):
                    self.builder.copy(self.ops[number])
            begin += count
        return self.builder.ops

    def _loop_at(self, begin: int) -> tuple[int, int]:
        """Return how many lines a loop stands for that begins here, and how many are its body.

        Where none does, how many lines to go on, and 0.
        """
        loops: list[tuple[int, int]] = []
        found = [loop for loop in self._repeats(begin) if _is_worth(*loop)]
        most = max((period * steps for period, steps in found), default=0)
        for period, steps in [loop for loop in found if loop[0] * loop[1] > 0.9 * most][:4]:
            body = self.ops[begin : begin + period]
            if all(op.function in VIEWS for op in body):
                return period * steps, 0  # a loop that uses them takes them in
            if not any(op.function == DRAW for op in body):
                steps = self._connected(begin, period, steps)
                if _is_worth(period, steps):
                    loops.append((period * steps, period))
        if not loops:
            return 1, 0
        most = max(loops)[0]
        alike = [(count, period) for count, period in loops if count > 0.9 * most]
        return min(alike, key=lambda loop: (self._stacked(begin, loop[1]), loop[1]))

    def _stacked(self, begin: int, period: int) -> int:
        """Return how many values of a step would have to be stacked for the loop."""
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
        """Return after how many lines, and how often, the lines from here repeat."""
        signs, rank = self.signs, self.rank[begin]
        found = []
        for second in self.places[signs[begin]][rank + 1 : rank + 1 + _CANDIDATES]:
            period, steps = second - begin, 1
            if self.budget < 0 or begin + STEPS * period > len(signs):
                break
            body = signs[begin:second]
            while signs[begin + steps * period : begin + (steps + 1) * period] == body:
                steps += 1
            self.budget -= 1 if steps == 1 else period * steps // 4
            if steps >= STEPS:
                found.append((period, steps))
        return found

    def _connected(self, begin: int, period: int, steps: int) -> int:
        """Return for how many steps values are used in the same way."""
        first, roles = (self._roles(begin, period, step) for step in (0, 1))
        if first != [_OUTSIDE if role[0] == "before" else role for role in roles]:
            return 1
        for step in range(2, steps):
            self.budget -= period
            if self._roles(begin, period, step) != roles:
                return step
        return steps

    def _roles(self, begin: int, period: int, step: int) -> list[Role]:
        """Return what each leaf of a step's lines is to the step."""
        start = begin + step * period
        where, roles = self.where, []
        for leaves in self.leaves[start : start + period]:
            for leaf in leaves:
                number, position = where.get(leaf, (-1, 0))
                if number >= start:
                    roles.append(("same", number - start, position))
                elif number < begin:
                    roles.append(_OUTSIDE)
                elif number >= start - period:
                    roles.append(("before", number - start + period, position))
                else:
                    roles.append(_FAR)
        return roles


def _is_worth(period: int, steps: int) -> bool:
    return steps >= STEPS and period * (steps - 1) >= SAVED
