"""A program of small arrays as one function of machine code, loops and products included.

Every value has its place in memory that is laid out beforehand, so that no Python and no allocation
is between the operations: a recurrent net, the steps of an equation, the residuals of one
observation. Products are written out: for such sizes a call of BLAS takes longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.compiler.native.access import Accesses
from chainrule.compiler.native.code import Code, code_of
from chainrule.compiler.native.layout import Layout, UnfitError
from chainrule.compiler.native.nest import LOOP
from chainrule.compiler.native.scalars import CODES
from chainrule.compiler.native.statements import statement_rows
from chainrule.compiler.program import Program, Value

Run = Callable[..., Any]

LONGEST = 1200
"""The most rows of source: Numba takes some seconds for as many."""


def whole(program: Program) -> tuple[Code, Callable[[Run], Run], str]:
    """Return a small program's code, what makes a function of arrays of that, and its source."""
    layout = Layout(program)
    parameters = [layout.parameter(v) for v in program.inputs]
    rows = list(statement_rows(program, Accesses(program, program.constants), layout))
    outs = [Value(v.shape, v.dtype, v.hint) for v in program.results()]
    names = [layout.parameter(out, "out") for out in outs]
    accesses = Accesses(program, program.constants)
    for out, value in zip(outs, program.results(), strict=True):
        rows += layout.copied(value, accesses, layout.place(out))
    if len(rows) > LONGEST:
        raise UnfitError("the function would take long to compile")
    scratch = {code: n for code, n in sorted(layout.sizes.items()) if n}
    constants = layout.constants
    heads = [*parameters, *(layout.place(v).array for v in constants), *names]
    heads += [f"memory_{code}" for code in scratch]
    text = f"def {LOOP}({', '.join(heads)}):\n"
    text += "".join(f"    {row}\n" for row in rows or ["pass"])
    text = f"{text}\n"
    arrays = [*program.inputs, *constants, *outs]
    types = (*(CODES[v.dtype] for v in arrays), *scratch)
    code = code_of(text, types, frozenset(layout.calls))

    def made(loop: Run) -> Run:
        return _runner(program, loop, outs, list(constants.values()), scratch)

    return code, made, text


def _runner(
    program: Program, loop: Run, outs: list[Value], constants: list[Any], scratch: dict[str, int]
) -> Run:
    fixed = [array.ravel() for array in constants]
    types = [(out.shape, out.dtype) for out in outs]
    count = len(program.outputs)
    order = {value: i for i, value in enumerate(program.inputs)}
    targets = [order[write.target] for write in program.writes]
    free: list[list[Any]] = []  # popping and appending are atomic: each call has its own

    def run(*arrays: Any) -> Any:
        memory = free.pop() if free else [np.empty(n, code) for code, n in scratch.items()]
        made = [np.empty(shape, dtype) for shape, dtype in types]
        flat = [array.ravel() for array in made]
        loop(*[array.ravel() for array in arrays], *fixed, *flat, *memory)
        free.append(memory)
        for target, array in zip(targets, made[count:], strict=True):
            arrays[target][...] = array
        return made[0] if count == 1 else tuple(made[:count])

    return run
