"""Buffer planning: liveness analysis, and reuse of memory for large results.

A value is a new array, uses scratch memory that dead values leave, or overwrites an input. Small
arrays are allocated as needed: a call with `out=` costs as much as NumPy's cache of small blocks
saves. For large ones most of the time goes into the page faults of new memory.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from chainrule.compiler.ir.op_traits import (
    TILED,
    WRITES,
    is_elementwise,
    is_padding,
    overwritable_inputs,
    returns_new_memory,
    takes_out,
)
from chainrule.compiler.ir.program import Op, Program, Value, same_type

MIN_PLANNED_BYTES = 1 << 14
"""Size of a value, in bytes, from which its memory is planned."""


_SHARING = ("np.broadcast_to", "windows", "diagonal")
"""Functions whose results are views that NumPy locks."""


class Plan(NamedTuple):
    """The memory of each value. A buffer is known by the first value that it holds."""

    min_bytes: float  # size from which memory is planned
    memory: dict[Value, Value]  # of results written with out=: the buffer, result or input
    buffers: list[Value]  # scratch memory
    results: list[Value]  # large outputs, whose memory the caller passes
    written: set[Value]  # inputs that an op overwrites: their write at the end is done
    aliased: set[int]  # outputs that alias an input, a constant, scratch or another output
    locked: set[int]  # outputs whose elements share memory: nothing can write to them
    region_aliased: dict[Program, set[int]]  # outputs of each region that need a copy
    region_scratch: dict[Program, list[Value]]  # scratch memory of the regions of tiled ops


def plan_buffers(program: Program, any_size: bool = False) -> Plan:
    """Return the memory plan of a program and its regions; of one for any size, without buffers."""
    plan = _Planner(program, math.inf if any_size else MIN_PLANNED_BYTES).plan()
    for op in program.ops:
        for region in op.regions:
            inner = plan_buffers(region, any_size)
            if op.function == TILED:  # its results have memory; each thread allocates scratch
                plan.memory.update(inner.memory)
                plan.region_scratch[region] = inner.buffers
                continue
            plan.memory.update({v: m for v, m in inner.memory.items() if m not in inner.results})
            plan.buffers.extend(inner.buffers)
            plan.region_aliased.update(inner.region_aliased)
            plan.region_aliased[region] = inner.aliased | inner.locked
    return plan


class _Planner:
    def __init__(self, program: Program, min_bytes: float) -> None:
        self.program = program
        self.min_bytes = min_bytes
        self.roots: dict[Value, Value] = {}
        self.locked: set[Value] = set()
        self.last_use = self._last_uses()
        self.memory: dict[Value, Value] = {}
        self.buffers: list[Value] = []
        self.free: list[Value] = []  # buffers whose content is dead
        self.results: list[Value] = []
        self.written: set[Value] = set()
        self.targets = {write.value: write.target for write in program.writes}
        self.given = {*program.inputs, *program.constants, *program.free_values()}
        self.returned = {self.root(v) for v in program.outputs}
        self.live_at_end = self.returned | {self.root(write.value) for write in program.writes}

    def root(self, value: Value) -> Value:
        """Return the value of which a value may be a view, or the value itself."""
        return self.roots.get(value, value)

    def _last_uses(self) -> dict[Value, int]:
        """Return the index of the last op that needs the memory of each value."""
        last: dict[Value, int] = {}
        for number, op in enumerate(self.program.ops):
            for value in op.inputs:
                last[self.root(value)] = number
            if not returns_new_memory(op.function):  # the result may be a view
                roots = [self.root(value) for value in op.inputs]
                for out in op.outs:
                    if roots:
                        self.roots[out] = roots[0]
                if op.function in _SHARING or not self.locked.isdisjoint(op.inputs[:1]):
                    self.locked.update(op.outs)
        end = len(self.program.ops)
        for value in self.program.results():
            last[self.root(value)] = end
        return last

    def plan(self) -> Plan:
        for number, op in enumerate(self.program.ops):
            roots = dict.fromkeys(map(self.root, op.inputs))  # ordered, unlike a set
            dying = {v: None for v in roots if self.last_use[v] == number}
            if takes_out(op.function) or is_padding(op):
                for out in op.outs:
                    self._assign(op, out, number, dying)
            elif op.function in WRITES:
                self._write_in_place(op, dying)
            self.free += [
                self.memory[v] for v in dying if v in self.memory and self.memory[v] in self.buffers
            ]
        for value, buffer in self.memory.items():  # a buffer is named after its first named value
            buffer.hint = buffer.hint or value.hint
        return Plan(
            self.min_bytes,
            self.memory,
            self.buffers,
            self.results,
            self.written,
            self._aliased(),
            {i for i, value in enumerate(self.program.outputs) if value in self.locked},
            region_aliased={},
            region_scratch={},
        )

    def _aliased(self) -> set[int]:
        """Return the positions of outputs that alias memory of anything else."""
        taken = {*self.given, *self.buffers}
        found = set()
        for position, value in enumerate(self.program.outputs):
            root = self.root(value)
            memory = self.memory.get(root, root)
            if memory in taken:
                found.add(position)
            taken.add(memory)
        return found

    def _assign(self, op: Op, out: Value, number: int, dying: dict[Value, None]) -> None:
        """Decide on the memory of a result of an op that takes `out=`."""
        if not op.inputs:
            return
        target = self.targets.get(out)
        if target is not None and self._can_overwrite(target, op, out, number):
            self.memory[out] = target
            self.written.add(target)
            return
        if out.nbytes < self.min_bytes:
            return
        if self.root(out) in self.returned:  # an output must not be in scratch memory
            self.memory[out] = out
            self.results.append(out)
            return
        buffer = self._dying_operand(op, dying) or self._free_buffer(out)
        if buffer is None:
            buffer = out
            self.buffers.append(out)
        self.memory[out] = buffer

    def _can_overwrite(self, target: Value, op: Op, out: Value, number: int) -> bool:
        """Whether no later op, and no other operand of this one, reads the input."""
        last = self.last_use.get(target, -1)  # outputs are read at the end
        reads = [v for v in op.inputs if self.root(v) is target]
        over = overwritable_inputs(op, out)
        return last < number or (last == number and all(v in over for v in reads))

    def _dying_operand(self, op: Op, dying: dict[Value, None]) -> Value | None:
        """Return the buffer of an operand that dies here, if the result fits it."""
        if not is_elementwise(op.function):
            return None
        for value in op.inputs:
            buffer = self.memory.get(value)
            if value in dying and same_type(value, op.out) and buffer in self.buffers:
                del dying[value]  # its buffer stays in use
                return buffer
        return None

    def _write_in_place(self, op: Op, dying: dict[Value, None]) -> None:
        """Let an op write to the memory of its base, if that dies here."""
        base = op.args[0]
        if base not in dying or base in self.given or not base.shape:  # numbers are no arrays
            return
        if base in self.memory and self.root(op.out) in self.live_at_end:
            return
        memory = self.memory.get(base, base)
        if memory in self.program.inputs or memory in self.results:
            return
        del dying[base]
        self.memory[op.out] = memory

    def _free_buffer(self, out: Value) -> Value | None:
        for buffer in self.free:
            if same_type(buffer, out):
                self.free.remove(buffer)
                return buffer
        return None
