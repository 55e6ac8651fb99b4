"""Where values live: fresh arrays, scratch memory used again, or the memory of a parameter.

Small arrays are made as they are needed: a call with `out=` costs as much as NumPy's cache of small
blocks saves. Large ones are laid out beforehand, since the time goes into touching fresh memory.
"""

from __future__ import annotations

from typing import NamedTuple

from chainrule.compiler.ir.op_traits import (
    BLOCKS,
    is_elementwise,
    makes_new,
    takes_out,
    written_over,
)
from chainrule.compiler.ir.program import Op, Program, Value, is_alike

LARGE = 1 << 14
"""From so many bytes on, memory is planned."""


class Plan(NamedTuple):
    """What the emitter does with each value."""

    places: dict[Value, Value]  # lines that write with out=: into the memory of which value
    buffers: list[Value]  # the first values of scratch memory
    results: list[Value]  # large outputs, which go into memory that the caller gives
    settled: set[Value]  # inputs that hold what is to be written to them already
    borrowed: set[int]  # which outputs are memory that something else has, too
    lent: dict[Program, set[int]]  # the same of each body
    scratch: dict[Program, list[Value]]  # the first values of a body's own scratch memory


def planned(program: Program) -> Plan:
    """Decide for each large value where it lives."""
    plan = _Planner(program).plan()
    for op in program.ops:
        for body in op.regions:
            inner = planned(body)
            if op.function == BLOCKS:  # which has memory for its results, and makes its own
                plan.places.update(inner.places)
                plan.scratch[body] = inner.buffers
                continue
            plan.places.update({v: p for v, p in inner.places.items() if p not in inner.results})
            plan.buffers.extend(inner.buffers)
            plan.lent.update(inner.lent)
            plan.lent[body] = inner.borrowed
    return plan


class _Planner:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.roots: dict[Value, Value] = {}
        self.last = self._last_uses()
        self.places: dict[Value, Value] = {}
        self.buffers: list[Value] = []
        self.free: list[Value] = []  # the first values of buffers whose content nobody needs
        self.results: list[Value] = []
        self.settled: set[Value] = set()
        self.targets = {write.value: write.target for write in program.writes}
        self.returned = {self.root(v) for v in program.outputs}
        self.kept = self.returned | {self.root(write.value) for write in program.writes}

    def root(self, value: Value) -> Value:
        """Return the value whose memory a value may be."""
        return self.roots.get(value, value)

    def _last_uses(self) -> dict[Value, int]:
        """Return the number of the last line that needs the memory of each value."""
        last: dict[Value, int] = {}
        for number, op in enumerate(self.program.ops):
            for value in op.inputs:
                last[self.root(value)] = number
            if not makes_new(op.function):  # it may be memory of what it's made of
                whose = [self.root(value) for value in op.inputs]
                for out in op.outs:
                    if whose:
                        self.roots[out] = whose[0]
        end = len(self.program.ops)
        for value in self.program.results():
            last[self.root(value)] = end
        return last

    def plan(self) -> Plan:
        for number, op in enumerate(self.program.ops):
            dying = {self.root(v) for v in op.inputs if self.last[self.root(v)] == number}
            if takes_out(op.function):
                for out in op.outs:
                    self._settle(op, out, number, dying)
            elif op.function == "plus_at":
                self._go_on(op, dying)
            self.free += [
                self.places[v] for v in dying if v in self.places and self.places[v] in self.buffers
            ]
        for value, place in self.places.items():  # memory has the first of the user's names for it
            place.hint = place.hint or value.hint
        return Plan(self.places, self.buffers, self.results, self.settled, self._borrowed(), {}, {})

    def _borrowed(self) -> set[int]:
        """Return which outputs are memory of an input, a constant, scratch or another output."""
        program = self.program
        taken = {*program.inputs, *program.constants, *program.free(), *self.buffers}
        found = set()
        for position, value in enumerate(self.program.outputs):
            root = self.root(value)
            memory = self.places.get(root, root)
            if memory in taken:
                found.add(position)
            taken.add(memory)
        return found

    def _settle(self, op: Op, out: Value, number: int, dying: set[Value]) -> None:
        if not any(isinstance(arg, Value) for arg in op.args):
            return
        target = self.targets.get(out)
        if target is not None and self._is_over(target, op, out, number):
            self.places[out] = target
            self.settled.add(target)
            return
        if out.nbytes < LARGE:
            return
        if self.root(out) in self.returned:  # what the caller keeps gets memory of its own
            self.places[out] = out
            self.results.append(out)
            return
        place = self._used_again(op, dying) or self._free_one(out)
        if place is None:
            place = out
            self.buffers.append(out)
        self.places[out] = place

    def _is_over(self, target: Value, op: Op, out: Value, number: int) -> bool:
        """Say whether nothing needs the former content of an input after this line."""
        last = self.last.get(target, -1)  # what is returned is needed to the end
        reads = [v for v in op.inputs if self.root(v) is target]
        over = written_over(op, out)
        return last < number or (last == number and all(v in over for v in reads))

    def _used_again(self, op: Op, dying: set[Value]) -> Value | None:
        """Return the memory of an input that dies here, if the result can take its place."""
        if not is_elementwise(op.function):
            return None
        for value in op.inputs:
            place = self.places.get(value)
            if value in dying and is_alike(value, op.out) and place in self.buffers:
                dying.discard(value)  # its buffer goes on
                return place
        return None

    def _go_on(self, op: Op, dying: set[Value]) -> None:
        """Add to the memory of the base itself, if nobody else needs it."""
        base = op.args[0]
        given = {*self.program.inputs, *self.program.constants}
        if base not in dying or base in given or self.root(op.out) in self.kept:
            return
        place = self.places.get(base, base)
        if place in self.program.inputs or place in self.results:
            return
        dying.discard(base)
        self.places[op.out] = place

    def _free_one(self, out: Value) -> Value | None:
        for place in self.free:
            if is_alike(place, out):
                self.free.remove(place)
                return place
        return None
