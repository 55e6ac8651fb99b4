"""A program of small arrays as one function of machine code, loops and products included.

Every value has its place in memory that is laid out beforehand, so that no Python and no allocation
is between the operations: a recurrent net, the steps of an equation, the residuals of one
observation. Products are written out: for such sizes a call of BLAS takes longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.program import Program, Value
from chainrule.compiler.native.code import Code, code_of
from chainrule.compiler.native.layout import Layout, UnfitError
from chainrule.compiler.native.loop_nest import LOOP
from chainrule.compiler.native.scalar_codegen import CODES
from chainrule.compiler.native.statement_codegen import statement_rows
from chainrule.compiler.native.strides import Accesses

Run = Callable[..., Any]

LONGEST = 1200
"""The most rows of source: Numba takes some seconds for as many."""


class Function(NamedTuple):
    """A small program as source: a function of its inputs, constants, outputs and scratch."""

    text: str
    types: tuple[str, ...]
    calls: frozenset[str]
    constants: list[Any]
    outs: list[Value]
    scratch: dict[str, int]  # how many elements of each type


def function_of(program: Program, over: dict[Value, Value] | None = None) -> Function:
    """Return a small program as source; raise UnfitError if it isn't one.

    `over` says which outputs are written over an input, when all else is done.
    """
    over = over or {}
    layout = Layout(program)
    parameters = [layout.parameter(v) for v in program.inputs]
    rows = list(statement_rows(program, Accesses(program, program.constants), layout))
    outs = [Value(v.shape, v.dtype, v.hint) for v in program.results() if v not in over]
    names = [layout.parameter(out, "out") for out in outs]
    accesses = Accesses(program, program.constants)
    new = iter(outs)
    for value in program.results():
        rows += layout.copied(value, accesses, layout.place(over.get(value) or next(new)))
    if len(rows) > LONGEST:
        raise UnfitError("the function would take long to compile")
    scratch = {code: n for code, n in sorted(layout.sizes.items()) if n}
    constants = layout.constants
    heads = [*parameters, *(layout.place(v).array for v in constants), *names]
    heads += [f"memory_{code}" for code in scratch]
    text = f"def {LOOP}({', '.join(heads)}):\n"
    text += "".join(f"    {row}\n" for row in rows or ["pass"])
    types = (*(CODES[v.dtype] for v in [*program.inputs, *constants, *outs]), *scratch)
    calls = frozenset(layout.calls)
    return Function(f"{text}\n", types, calls, list(constants.values()), outs, scratch)


def whole(program: Program) -> tuple[Code, Callable[[Run], Run], str]:
    """Return a small program's code, what makes a function of arrays of that, and its source."""
    function = function_of(program)
    code = code_of(function.text, function.types, function.calls)
    return code, lambda loop: _runner(program, loop, function), function.text


def _runner(program: Program, loop: Run, function: Function) -> Run:
    fixed = [array.ravel() for array in function.constants]
    types = [(out.shape, out.dtype) for out in function.outs]
    count = len(program.outputs)
    order = {value: i for i, value in enumerate(program.inputs)}
    targets = [order[write.target] for write in program.writes]
    free: list[list[Any]] = []  # popping and appending are atomic: each call has its own

    def run(*arrays: Any) -> Any:
        memory = free.pop() if free else [np.empty(n, code) for code, n in function.scratch.items()]
        made = [np.empty(shape, dtype) for shape, dtype in types]
        flat = [array.ravel() for array in made]
        loop(*[array.ravel() for array in arrays], *fixed, *flat, *memory)
        free.append(memory)
        for target, array in zip(targets, made[count:], strict=True):
            arrays[target][...] = array
        return made[0] if count == 1 else tuple(made[:count])

    return run
