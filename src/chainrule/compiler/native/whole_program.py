"""A program of small arrays as one machine code function, including loops and products.

All values have static addresses in preallocated buffers, so there is neither Python nor allocation
between operations: for recurrent networks, time steps of an equation, residuals of one observation.
Products are generated inline: for such sizes a BLAS call takes longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.codegen.numpy_source import Source
from chainrule.compiler.codegen.run import runner
from chainrule.compiler.ir.program import Program, Value
from chainrule.compiler.native.code import Code, cached_code
from chainrule.compiler.native.decompositions import decompose
from chainrule.compiler.native.jit import max_lines
from chainrule.compiler.native.layout import BudgetError, Layout
from chainrule.compiler.native.loop_nest import LOOP_NAME
from chainrule.compiler.native.scalar_codegen import CODES
from chainrule.compiler.native.statement_codegen import statement_lines
from chainrule.compiler.native.strides import Accesses

Run = Callable[..., Any]

_MAX_KEPT = 1 << 20
"""Number of elements of scratch that are kept between calls."""


class Function(NamedTuple):
    """The source of a small program: a function of inputs, constants, outputs and scratch."""

    text: str
    types: tuple[str, ...]
    constants: list[Any]
    outs: list[Value]
    scratch: dict[str, int]  # number of elements of each type
    is_checked: bool  # whether the last argument is set if NumPy has to compute instead


def function_of(program: Program, over: dict[Value, Value] | None = None) -> Function:
    """Return a small program as source; raise UnfitError if it is not supported.

    `over` maps outputs to the inputs that they overwrite at the end.
    """
    over = over or {}
    program = decompose(program)
    layout = Layout(program)
    parameters = [layout.parameter(v) for v in program.inputs]
    lines = list(statement_lines(program, Accesses(program, program.constants), layout))
    outs = [Value(v.shape, v.dtype, v.hint) for v in program.results() if v not in over]
    names = [layout.parameter(out, "out") for out in outs]
    accesses = Accesses(program, program.constants)
    new = iter(outs)
    for value in program.results():
        lines += layout.copy_lines(value, accesses, layout.address(over.get(value) or next(new)))
    if len(lines) > max_lines():
        raise BudgetError(len(lines))
    scratch = {code: n for code, n in sorted(layout.sizes.items()) if n}
    constants = layout.constants
    heads = [*parameters, *(layout.address(v).array for v in constants), *names]
    heads += [f"memory_{code}" for code in scratch]
    heads += ["status"] * layout.is_checked
    text = f"def {LOOP_NAME}({', '.join(heads)}):\n"
    text += "".join(f"    {row}\n" for row in lines or ["pass"])
    types = (*(CODES[v.dtype] for v in [*program.inputs, *constants, *outs]), *scratch)
    types += ("i8",) * layout.is_checked
    arrays = list(constants.values())
    return Function(f"{text}\n", types, arrays, outs, scratch, layout.is_checked)


def whole_function(program: Program) -> tuple[Code, Callable[[Run], Run], str]:
    """Return the code of a small program, a factory of the function on arrays, and the source."""
    function = function_of(program)
    code = cached_code(function.text, function.types)
    return code, lambda loop: _runner(program, loop, function), function.text


def numpy_runner(program: Program) -> Run:
    """Return a program that runs as NumPy calls, made when first called."""
    made: list[Run] = []

    def run(*arrays: Any) -> Any:
        if not made:
            made.append(runner(Source(program)))
        return made[0](*arrays)

    return run


def _runner(program: Program, loop: Run, function: Function) -> Run:
    fixed = [array.ravel() for array in function.constants]
    types = [(out.shape, out.dtype) for out in function.outs]
    count = len(program.outputs)
    order = {value: i for i, value in enumerate(program.inputs)}
    targets = [order[write.target] for write in program.writes]
    free: list[list[Any]] = []  # free scratch; pop and append are atomic
    is_kept = sum(function.scratch.values()) <= _MAX_KEPT
    otherwise = numpy_runner(program)
    is_checked = function.is_checked

    def run(*arrays: Any) -> Any:
        memory = free.pop() if free else [np.empty(n, code) for code, n in function.scratch.items()]
        results = [np.empty(shape, dtype) for shape, dtype in types]
        flat = [array.ravel() for array in results]
        status = [np.zeros(1, np.int64)] if is_checked else []
        loop(*[array.ravel() for array in arrays], *fixed, *flat, *memory, *status)
        if is_kept:
            free.append(memory)
        if is_checked and status[0][0]:
            return otherwise(*arrays)
        for target, array in zip(targets, results[count:], strict=True):
            arrays[target][...] = array
        return results[0] if count == 1 else tuple(results[:count])

    return run
