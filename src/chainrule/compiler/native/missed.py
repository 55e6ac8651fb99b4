"""Missed optimisations: loops that Python runs, lines beyond the budget, calls of NumPy.

A loop of a program is one function of machine code, or Python runs its steps. That matters where
the calls of a step take longer than what they compute; a step of large arrays is as fast in NumPy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from chainrule.autograd.remarks import Remark
from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.op_traits import is_elementwise
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.native.compile_cost import budget_ms
from chainrule.compiler.native.complex_codegen import REAL_DTYPES
from chainrule.compiler.native.fusion_groups import CALL_ELEMENTS, REDUCTIONS
from chainrule.compiler.native.layout import BudgetError, LargeError, UnfitError
from chainrule.compiler.native.scalar_codegen import CODES
from chainrule.compiler.native.small_groups import count_calls, why_unfit

_LOOPS = ("for", "while")

_FACTORISATION_ELEMENTS = 5
"""Number of elements computed in the time that LAPACK takes for an entry and row of a matrix."""

_MULTIPLIES_PER_ELEMENT = 64
"""Number of multiplications of a product that take as long as one element."""

Found = tuple[Op, UnfitError]
"""An operation without machine code, and the reason."""


def python_loops(program: Program, lowered: Program, min_calls: int) -> Iterator[Remark]:
    """Yield a remark for each operation that keeps Python running the steps of a loop.

    `lowered` has the loops that are left; those of fewer than `min_calls` NumPy calls don't matter.
    """
    known = {out: found for found in _loops_of(program, {}) for out in found[0].outs}
    for left, _ in _loops_of(lowered, {}):
        op, constants = known[left.outs[0]]
        if count_calls([op]) >= min_calls and _calls_dominate(op):
            for part, reason in _obstacles(op, constants):
                yield _loop_remark(op, part, reason)


def _loops_of(program: Program, constants: dict[Value, Any]) -> Iterator[tuple[Op, Any]]:
    """Yield the loops of a program, with the constants that they know."""
    constants = {**constants, **program.constants}
    for op in program.ops:
        if op.function in _LOOPS:
            yield op, constants
        for region in op.regions:
            yield from _loops_of(region, constants)


def _calls_dominate(op: Op) -> bool:
    """Whether the NumPy calls of a loop take longer than what they compute."""
    parts = [part for region in op.regions for part in region.ops]
    return sum(map(_work, parts)) <= CALL_ELEMENTS * count_calls(parts)


def _work(op: Op) -> int:
    """Return the work of an operation, in elements computed by elementwise ones."""
    if op.regions:
        steps: int = op.kwargs.get("length", 1)
        return steps * sum(_work(part) for region in op.regions for part in region.ops)
    size = max((v.size for v in (*op.inputs, *op.outs)), default=0)
    if op.function.startswith("np.linalg.") and op.inputs and op.inputs[0].shape:
        return _FACTORISATION_ELEMENTS * size * op.inputs[0].shape[-1]
    if op.function == "np.matmul":
        return op.out.size * op.inputs[0].shape[-1] // _MULTIPLIES_PER_ELEMENT
    return size


def _obstacles(op: Op, constants: dict[Value, Any]) -> list[Found]:
    """Return the operations that keep a loop from being one function of machine code."""
    found = [] if op.function == "for" else [(op, UnfitError("its length is not known"))]
    for region in op.regions:
        found += _unfit_ops(region, constants)
    if not found:
        reason = why_unfit(op, constants)
        if reason is not None and not isinstance(reason, LargeError):
            found = [(op, reason)]
    return found


def _unfit_ops(program: Program, constants: dict[Value, Any]) -> list[Found]:
    """Return the operations of a program that have no machine code, each function once."""
    constants = {**constants, **program.constants}
    found: dict[str, Found] = {}
    seen = set()
    for op in program.ops:
        key = (op.function, tuple([(v.shape, v.dtype) for v in op.inputs]), repr(op.kwargs))
        if key in seen:
            continue
        if op.regions:
            if op.function == "while":
                found.setdefault(op.function, (op, UnfitError("its length is not known")))
            for region in op.regions:
                for inner in _unfit_ops(region, constants):
                    found.setdefault(_topic(*inner), inner)
            continue
        seen.add(key)
        reason = _why(op, constants)
        if reason is not None and not isinstance(reason, LargeError | BudgetError):
            found.setdefault(_topic(op, reason), (op, reason))
    return list(found.values())


def _topic(op: Op, reason: UnfitError) -> str:
    """Return what a remark is about: a type that many operations have, or the operation."""
    return reason.args[1] if len(reason.args) > 1 else op.function


def _why(op: Op, constants: dict[Value, Any]) -> UnfitError | None:
    """Return the reason why an operation has no machine code."""
    for value in (*op.inputs, *op.outs):
        if value.dtype not in CODES and value.dtype not in REAL_DTYPES:
            text = f"{value.dtype} is not among the types of machine code"
            return UnfitError(text, str(value.dtype))
    return why_unfit(op, constants)


def _loop_remark(loop: Op, op: Op, reason: UnfitError) -> Remark:
    steps = loop.kwargs.get("length")
    what = "a while loop" if steps is None else f"a loop of {steps} steps"
    calls = count_calls([part for region in loop.regions for part in region.ops])
    consequence = f"Python runs {what}{_at(loop)}, {calls} NumPy calls for each step"
    if isinstance(reason, BudgetError):
        return budget_remark([op], reason.milliseconds, consequence)
    what = "it" if op is loop else f"{_described(op)}{_at(op)}"
    cause = f"{what} has no machine code: {reason.args[0]}"
    return Remark(_topic(op, reason), f"{consequence}, since {cause}. {_mend(op, reason)}")


def _described(op: Op) -> str:
    """Return the name of an operation, and the types that it takes."""
    name = "a draw of random numbers" if op.function == DRAW else op.function
    types = ", ".join(dict.fromkeys(value.type_text for value in op.inputs))
    return f"{name} of {types}" if types else name


def _at(op: Op) -> str:
    return "" if op.location is None else f" (at {op.location})"


def _mend(op: Op, reason: UnfitError) -> str:
    if op.function == "while":
        return "Use scan() over the largest number of steps, with where() as the condition"
    for text, mend in _MENDS.items():
        if text in str(reason) or text == op.function:
            return mend
    return (
        "Compute it before or after the loop for all steps at once, or from operations that have "
        "machine code (see docs/compiling.md)"
    )


_MENDS = {
    DRAW: "Draw the numbers of all steps before the loop, and scan over them",
    "complex": "Compute with real and imaginary parts",
    "is not among the types": "Convert it to float32, float64, int32 or int64 before the loop",
}
"""What to write, by a part of the reason or the name of the operation."""


# --- the budget -----------------------------------------------------------------------------------


def budget_remark(ops: Iterable[Op], needed_ms: float, consequence: str = "") -> Remark:
    """Return the remark for operations that would take too long to compile."""
    counts = Counter(op.function for op in ops)
    names = ", ".join([name for name, _ in counts.most_common(3)])
    more = "" if len(counts) <= 3 else f" and {len(counts) - 3} other functions"
    budget, needed = budget_ms() / 1000, needed_ms / 1000
    consequence = consequence or f"{counts.total()} operations ({names}{more}) remain NumPy calls"
    return Remark(
        "CHAINRULE_COMPILE_SECONDS",
        f"{consequence}, since LLVM would take about {needed:.2g} s more, beyond "
        f"the budget of {budget:g} s for a call. Set CHAINRULE_COMPILE_SECONDS to a larger number "
        "(the machine code is kept on disk), or write repeated steps as scan()",
        is_told=budget > 0,  # with 0, machine code is not wanted
    )


# --- single operations ----------------------------------------------------------------------------


def numpy_calls(program: Program, lowered: Program) -> Iterator[Remark]:
    """Yield a remark for each elementwise function and reduction without machine code.

    Whatever else is left is a call as documented: products, LAPACK, FFT, sorts, random numbers,
    special functions, convolution, copies.
    """
    left = {out for op in lowered.ops for out in op.outs}
    ops = [op for op in program.ops if _is_computation(op) and not left.isdisjoint(op.outs)]
    for op, reason in _unfit_ops(program.with_ops(ops), {}):
        text = f"NumPy computes {_described(op)}{_at(op)}, which has no machine code: "
        text += f"{reason.args[0]}. {_mend(op, reason)}"
        yield Remark(_topic(op, reason), text, is_told=False)


def _is_computation(op: Op) -> bool:
    """Whether an operation is elementwise or a reduction."""
    return op.function in REDUCTIONS or op.function in _REDUCTIONS or is_elementwise(op.function)


_REDUCTIONS = frozenset(["np.mean", "np.prod", "np.any", "np.all", "np.std", "np.var"])
