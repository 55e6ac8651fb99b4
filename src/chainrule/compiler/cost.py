"""Cost model of programs: operations, FLOPs, memory traffic and peak memory."""

from __future__ import annotations

from typing import NamedTuple

from chainrule.compiler.ir.op_traits import VIEWS, returns_new_memory
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.passes.buffer_planning import plan_buffers


class Cost(NamedTuple):
    """Totals of a program. An elementary function counts as one FLOP per element."""

    operations: int
    flops: int
    bytes: int
    """Bytes read and written, each operand once per operation."""
    buffers: int
    """Bytes of scratch memory, which is kept from call to call."""
    peak: int
    """Peak memory in bytes, inputs, outputs and scratch memory included."""

    def __str__(self) -> str:
        return (
            f"{self.operations} operations, {_with_prefix(self.flops)}FLOP, "
            f"{_with_prefix(self.bytes)}B read and written, {_with_prefix(self.buffers)}B of "
            f"scratch, {_with_prefix(self.peak)}B at most"
        )


def _with_prefix(number: float) -> str:
    """Return a number with three digits and an SI prefix."""
    for prefix in ("", "k", "M", "G"):
        if number < 1000:
            return f"{number:.3g} {prefix}"
        number /= 1000
    return f"{number:.3g} T"


def flops_of(op: Op) -> int:
    """Return the FLOPs of an op; a multiplication and an addition count as two.

    An `if` counts its more expensive branch, a `while` loop a single step.
    """
    function = op.function
    if op.regions:
        parts = [sum(map(flops_of, region.ops)) for region in op.regions]
        steps: int = op.kwargs.get("length", 1)
        return max(parts) if function == "if" else steps * sum(parts)
    if function in VIEWS or function in _DATA_MOVEMENT:
        return 0
    if function == "np.matmul":
        inner = op.inputs[0].shape[-1] if op.inputs else 0
        return 2 * op.out.size * inner
    if function == "np.vdot":
        return 2 * max((v.size for v in op.inputs), default=0)
    sizes = [v.size for v in (*op.inputs, *op.outs)]
    return max(sizes, default=0)


_DATA_MOVEMENT = frozenset(
    ["np.astype", "np.zeros", "np.ones", "np.concat", "np.stack", "np.broadcast_to", "assign_at"]
)


def cost_of(program: Program) -> Cost:
    """Return the summed cost of the ops of a program."""
    ops = [op for op in program.ops if op.function not in VIEWS]
    plan = plan_buffers(program)
    return Cost(
        len(ops),
        sum(map(flops_of, ops)),
        sum(v.nbytes for op in ops for v in (*op.inputs, *op.outs)),
        sum(v.nbytes for v in plan.buffers),
        _peak(program),
    )


def _peak(program: Program) -> int:
    """Return the most bytes that are live at once."""
    plan = plan_buffers(program)
    last_use: dict[Value, int] = {}
    for number, op in enumerate(program.ops):
        for value in op.inputs:
            last_use[value] = number
    last_use.update(dict.fromkeys(program.results(), len(program.ops)))
    fixed = [*program.inputs, *program.constants, *plan.buffers, *plan.results]
    dying: dict[int, int] = {}  # bytes whose last use is the op of this index
    live = peak = sum(v.nbytes for v in fixed)
    for number, op in enumerate(program.ops):
        if returns_new_memory(op.function):
            for value in op.outs:
                if value not in plan.memory:
                    live += value.nbytes
                    end = last_use.get(value, number)
                    dying[end] = dying.get(end, 0) + value.nbytes
        peak = max(peak, live)
        live -= dying.pop(number, 0)
    return peak


class Report:
    """The programs of one signature, and their costs: print it."""

    def __init__(self, programs: tuple[Program, ...]) -> None:
        self.programs = programs

    @property
    def cost(self) -> Cost:
        """Cost of the forward program, without the programs of backward passes."""
        return cost_of(self.programs[0])

    def __str__(self) -> str:
        return "\n\n".join(f"{program}\n  # {cost_of(program)}" for program in self.programs)

    __repr__ = __str__
