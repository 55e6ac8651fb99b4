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
from chainrule.compiler.ir.program import Program, Shape, Value
from chainrule.compiler.native.call_tables import MEMORY, Kernels, SeparateArrays
from chainrule.compiler.native.code import Code, cached_code
from chainrule.compiler.native.compile_cost import (
    FUNCTION_MS,
    KERNELS_SHARE,
    LINE_MS,
    Cost,
    budget_ms,
)
from chainrule.compiler.native.complex_codegen import REAL_DTYPES, element_code
from chainrule.compiler.native.complex_split import split_complex
from chainrule.compiler.native.decompositions import decompose
from chainrule.compiler.native.layout import BudgetError, Layout, Products
from chainrule.compiler.native.loop_nest import LOOP_NAME
from chainrule.compiler.native.loop_sharing import share_loops
from chainrule.compiler.native.scalar_codegen import ELEMENTARY
from chainrule.compiler.native.statement_codegen import Block, Repeat, lines_of, statement_blocks
from chainrule.compiler.native.strides import Accesses
from chainrule.compiler.passes import eliminate_dead_code

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
    is_checked: bool  # whether an argument is set if NumPy has to compute instead
    products: Products
    table: Any = None  # the calls that it makes: its first argument


class WholeCall(NamedTuple):
    """What a call of a program as one function needs, without the program."""

    dtypes: list[Any]  # of the inputs
    outs: list[tuple[Shape, Any]]  # shapes and dtypes
    output_count: int  # what follows is written to the inputs `targets`
    targets: list[int]
    constants: list[Any]
    scratch: dict[str, int]
    is_checked: bool
    products: Products
    code: Code

    @property
    def codes(self) -> list[Code]:
        """The machine code."""
        return [self.code]

    def runner(self, functions: list[Run], program: Callable[[], Program]) -> Run:
        """Return the function on arrays, given the function of `code`.

        NumPy computes `program` if that reports that it cannot.
        """
        loop, otherwise = self.products.bound(functions[0]), numpy_runner(program)
        fixed, types, targets = self.constants, self.outs, self.targets
        count = self.output_count
        scratch, is_checked, given = [*self.scratch.items()], self.is_checked, len(self.dtypes)
        free: list[list[Any]] = []  # free scratch; pop and append are atomic
        is_kept = sum(self.scratch.values()) <= _MAX_KEPT
        parts = [REAL_DTYPES.get(t) for t in (*self.dtypes, *(dtype for _, dtype in types))]
        split = [i for i, part in enumerate(parts) if part is not None]

        def run(*arrays: Any) -> Any:
            memory = free.pop() if free else [np.empty(n, code) for code, n in scratch]
            results = [np.empty(shape, dtype) for shape, dtype in types]
            flat = [array.ravel() for array in (*arrays, *results)]
            for i in split:
                flat[i] = flat[i].view(parts[i])
            status = [np.zeros(1, np.int64)] if is_checked else []
            loop(*flat[:given], *fixed, *flat[given:], *memory, *status)
            if is_kept:
                free.append(memory)
            if is_checked and status[0][0]:
                return otherwise(*arrays)
            for target, array in zip(targets, results[count:], strict=True):
                arrays[target][...] = array
            return results[0] if count == 1 else tuple(results[:count])

        return run


def function_of(
    program: Program,
    over: dict[Value, Value] | None = None,
    max_ms: float | None = None,
    kernels: Kernels | None = None,
) -> Function:
    """Return a small program as source; raise UnfitError if it is not supported.

    `over` maps outputs to the inputs that they overwrite at the end. With `kernels`, the function
    is theirs, and makes the calls of a table. Raise BudgetError if it takes longer than `max_ms` to
    compile, by default the time that a call may take.
    """
    over = over or {}
    real = eliminate_dead_code(decompose(split_complex(program)))
    inputs = dict(zip(program.inputs, real.inputs, strict=True))
    layout = Layout(real) if kernels is None else SeparateArrays(real, kernels.repeats)
    arguments = [layout.parameter(v) for v in real.inputs]
    outs = [Value(v.shape, v.dtype, v.hint) for v in program.results() if v not in over]
    targets = [
        inputs[over[v]] if v in over else Value(part.shape, part.dtype, v.hint)
        for v, part in zip(program.results(), real.results(), strict=True)
    ]
    limit = budget_ms() if max_ms is None else max_ms
    blocks = _blocks(real, targets, layout, limit, kernels is None)
    constants, products = layout.constants, layout.products
    names = [layout.address(v).array for v in targets if v not in real.inputs]
    arguments += [*(layout.address(v).array for v in constants), *names]
    types = tuple([element_code(v.dtype) for v in [*program.inputs, *constants, *outs]])
    ends, arrays = ["status"] * layout.is_checked, list(constants.values())
    if isinstance(layout, SeparateArrays) and kernels is not None:
        heads = [*arguments, MEMORY, *ends]
        table, size = kernels.table(blocks, layout, heads, limit)
        types = ("i8",) * (1 + len(heads))
        return Function("", types, arrays, outs, {"u1": size}, layout.is_checked, products, table)
    ends += ["products", "team"] * bool(products.parts)
    scratch = {code: n for code, n in sorted(layout.sizes.items()) if n}
    heads = [*arguments, *(f"{MEMORY}_{code}" for code in scratch), *ends]
    functions, lines = share_loops([line for block in blocks for line in lines_of(block)])
    body = "".join(f"    {line}\n" for line in lines or ["pass"])
    text = "\n".join([*functions, f"def {LOOP_NAME}({', '.join(heads)}):\n{body}\n"])
    types = (*types, *scratch, *["i8"] * len(ends))
    return Function(text, types, arrays, outs, scratch, layout.is_checked, products)


def _blocks(
    program: Program, targets: list[Value], layout: Layout, max_ms: float, fused: bool
) -> list[Block | Repeat]:
    """Return the lines that compute a program and copy its results to `targets`."""
    accesses = Accesses(program, program.constants)
    if fused:
        computed = [op.function for op in program.ops if not accesses.is_view(op)]
        least = LINE_MS * len(computed) + FUNCTION_MS * sum(map(ELEMENTARY.__contains__, computed))
        if least > max_ms:
            raise BudgetError(least)
    results = [*zip(program.results(), targets, strict=True)]
    for target in targets:
        if target not in program.inputs:
            layout.parameter(target, "out")
    layout.place({v: layout.address(t) for v, t in results if t not in program.inputs}, program)
    blocks: list[Block | Repeat] = []
    cost = Cost()
    for block in statement_blocks(program, accesses, layout, fused):
        blocks.append(block)
        if fused:
            cost.add(lines_of(block))
        if cost.milliseconds > max_ms:
            raise BudgetError(cost.milliseconds)
    for value, target in results:
        blocks.append(Block(layout.copy_lines(value, accesses, layout.address(target))))
    return blocks


def whole_function(program: Program) -> tuple[WholeCall, str]:
    """Return what a call of a small program needs, and the source of the function."""
    function = function_of(program, max_ms=(1 - KERNELS_SHARE) * budget_ms())
    order = {value: i for i, value in enumerate(program.inputs)}
    call = WholeCall(
        [v.dtype for v in program.inputs],
        [(out.shape, out.dtype) for out in function.outs],
        len(program.outputs),
        [order[write.target] for write in program.writes],
        [array.ravel() for array in function.constants],
        function.scratch,
        function.is_checked,
        function.products,
        cached_code(function.text, function.types),
    )
    return call, function.text


def numpy_runner(program: Callable[[], Program]) -> Run:
    """Return a program that runs as NumPy calls, made when first called."""
    made: list[Run] = []

    def run(*arrays: Any) -> Any:
        if not made:
            made.append(runner(Source(program())))
        return made[0](*arrays)

    return run
