"""What a program costs: operations, arithmetic, memory traffic and memory."""

from __future__ import annotations

from typing import NamedTuple

from chainrule.compiler.ir.op_traits import VIEWS, makes_new
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.passes.buffer_planning import planned


class Cost(NamedTuple):
    """Totals of a program. FLOPs count an elementary function as one operation."""

    operations: int
    flops: int
    bytes: int
    """Read and written, each operand once a line."""
    buffers: int
    """Bytes of scratch memory, which calls hand on to each other."""
    peak: int
    """The most bytes that live at once, inputs, outputs and scratch memory included."""

    def __str__(self) -> str:
        return (
            f"{self.operations} operations, {_counted(self.flops)}FLOP, "
            f"{_counted(self.bytes)}B read and written, {_counted(self.buffers)}B of scratch, "
            f"{_counted(self.peak)}B at most"
        )


def _counted(number: float) -> str:
    """Return a number with three digits and its prefix."""
    for prefix in ("", "k", "M", "G"):
        if number < 1000:
            return f"{number:.3g} {prefix}"
        number /= 1000
    return f"{number:.3g} T"


def flops_of(op: Op) -> int:
    """Return the arithmetic of a line, a multiplication and an addition counted as two.

    Of a branch the larger part, of a `while` loop one step.
    """
    function = op.function
    if op.regions:
        parts = [sum(map(flops_of, body.ops)) for body in op.regions]
        steps: int = op.kwargs.get("length", 1)
        return max(parts) if function == "if" else steps * sum(parts)
    if function in VIEWS or function in _MOVES:
        return 0
    if function == "np.matmul":
        inner = op.inputs[0].shape[-1] if op.inputs else 0
        return 2 * op.out.size * inner
    if function == "np.vdot":
        return 2 * max((v.size for v in op.inputs), default=0)
    sizes = [v.size for v in (*op.inputs, *op.outs)]
    return max(sizes, default=0)


_MOVES = frozenset(
    ["np.astype", "np.zeros", "np.ones", "np.concat", "np.stack", "np.broadcast_to", "assign_at"]
)


def cost_of(program: Program) -> Cost:
    """Add up what the lines of a program cost."""
    ops = [op for op in program.ops if op.function not in VIEWS]
    plan = planned(program)
    return Cost(
        len(ops),
        sum(map(flops_of, ops)),
        sum(v.nbytes for op in ops for v in (*op.inputs, *op.outs)),
        sum(v.nbytes for v in plan.buffers),
        _peak(program),
    )


def _peak(program: Program) -> int:
    """Return the most bytes that live at once."""
    plan = planned(program)
    last: dict[Value, int] = {}
    for number, op in enumerate(program.ops):
        for value in op.inputs:
            last[value] = number
    last.update(dict.fromkeys(program.results(), len(program.ops)))
    fixed = [*program.inputs, *program.constants, *plan.buffers, *plan.results]
    standing = sum(v.nbytes for v in fixed)
    dying: dict[int, int] = {}
    live = most = standing
    for number, op in enumerate(program.ops):
        if makes_new(op.function):
            for value in op.outs:
                if value not in plan.places:
                    live += value.nbytes
                    end = last.get(value, number)
                    dying[end] = dying.get(end, 0) + value.nbytes
        most = max(most, live)
        live -= dying.pop(number, 0)
    return most


class Report:
    """The programs of one signature, and what they cost: print it."""

    def __init__(self, programs: tuple[Program, ...]) -> None:
        self.programs = programs

    @property
    def cost(self) -> Cost:
        """What the program costs, without the backward program of a result's gradient."""
        return cost_of(self.programs[0])

    def __str__(self) -> str:
        return "\n\n".join(f"{program}\n  # {cost_of(program)}" for program in self.programs)

    __repr__ = __str__
