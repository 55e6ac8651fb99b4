"""Runs of fusion groups on small arrays, compiled to one function each.

Between the large products of a small model, call overhead dominates: the loss of a batch, the
updates of biases. So consecutive small groups share one function, as a small program does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.constants import constant_key
from chainrule.compiler.ir.program import Names, Op, Program, Value
from chainrule.compiler.native.call_tables import Kernels
from chainrule.compiler.native.complex_codegen import REAL_DTYPES
from chainrule.compiler.native.complex_split import FUNCTIONS
from chainrule.compiler.native.decompositions import RULES
from chainrule.compiler.native.fusion_groups import LOOP_CALLS, FusionGroup, loop_shape
from chainrule.compiler.native.layout import BudgetError, UnfitError
from chainrule.compiler.native.loop_codegen import Loop
from chainrule.compiler.native.loop_nest import LOOP_NAME, RESERVED
from chainrule.compiler.native.scalar_codegen import CODES, scalar_or_libm
from chainrule.compiler.native.statement_codegen import WRITERS
from chainrule.compiler.native.strides import Accesses
from chainrule.compiler.native.whole_program import Function, function_of
from chainrule.compiler.passes.structural_keys import structural_key

MAX_ELEMENTS = 1 << 13
"""Largest number of elements of an array; for larger ones the call overhead does not matter."""

MAX_MULTIPLIES = 1 << 12
"""Largest number of multiplications of a product; beyond that BLAS is faster."""


def small_runs(groups: list[FusionGroup], accesses: Accesses) -> Iterator[list[FusionGroup]]:
    """Yield runs of consecutive small groups for which one call is faster than several."""
    run: list[FusionGroup] = []
    known: dict[Any, bool] = {}
    for group in groups:
        if _is_small(group, accesses, known):
            run.append(group)
        elif not all(_is_free(op, accesses) for _, op in group.ops):
            if pays(run):
                yield run
            run = []
    if pays(run):
        yield run


def pays(run: list[FusionGroup]) -> bool:
    """Return whether one call is faster than those of a run."""
    return sum(map(_numpy_calls, run)) > LOOP_CALLS


def _numpy_calls(group: FusionGroup) -> int:
    """Return the cost of a group in NumPy calls."""
    return LOOP_CALLS if group.is_loop else count_calls(op for _, op in group.ops)


_LINALG = frozenset(
    [
        *("np.linalg.solve", "np.linalg.inv", "np.linalg.slogdet", "np.linalg.cholesky"),
        *("np.linalg.qr", "kernels.inverses", "solve_triangular"),
    ]
)
_LINALG_CALLS = 25
"""Number of elementwise calls that take as long as one of these functions, of a small matrix."""


def count_calls(ops: Iterable[Op]) -> int:
    """Return the cost of operations in elementwise NumPy calls, with each iteration of loops."""
    count = 0
    for op in ops:
        inner = sum(count_calls(region.ops) for region in op.regions)
        own = _LINALG_CALLS if op.function in _LINALG else 1
        count += own + op.kwargs.get("length", 1) * inner
    return count


def _is_free(op: Op, accesses: Accesses) -> bool:
    """Return whether an operation is a view or has no inputs, so that it can precede a run."""
    return accesses.is_view(op) or not (op.inputs or op.regions or op.function == DRAW)


def _is_small(group: FusionGroup, accesses: Accesses, known: dict[Any, bool]) -> bool:
    ops = [op for _, op in group.ops]
    values = {v for op in ops for v in (*op.inputs, *op.outs)}
    values |= {accesses.of(v).base for v in values}
    has_loop = any(op.regions for op in ops)  # over stacks of any size
    if any((v.dtype not in CODES and v.dtype not in REAL_DTYPES) or not v.size for v in values):
        return False
    if not has_loop and any(v.size > MAX_ELEMENTS for v in values):
        return False
    if any(_is_free(op, accesses) for op in ops):
        return False
    return all(_is_supported(op, accesses, known) for op in ops)


def _is_supported(op: Op, accesses: Accesses, known: dict[Any, bool]) -> bool:
    """Return whether an operation alone has a function; `known` says so of those alike."""
    if op.function == "np.matmul" and op.out.size * op.args[0].shape[-1] > MAX_MULTIPLIES:
        return False
    if loop_shape(op, scalar_or_libm) is not None:
        return True
    if op.function not in WRITERS and op.function not in RULES and op.function not in FUNCTIONS:
        return False
    structure, leaves = structural_key(op)
    order = {value: number for number, value in enumerate(op.inputs)}
    constants = [accesses.constants.get(value) for value in order]
    numbers = [constant_key(c[()]) if c is not None and not c.ndim else None for c in constants]
    key = structure, *numbers, *[order.get(leaf, (leaf,)) for leaf in leaves]
    if key not in known:
        reason = why_unfit(op, accesses.constants)
        known[key] = reason is None or isinstance(reason, BudgetError)  # a table may be in time
    return known[key]


def why_unfit(op: Op, constants: dict[Value, Any]) -> UnfitError | None:
    """Return the reason why an operation alone can't be a function, None if it can."""
    inputs = [v for v in dict.fromkeys(op.inputs) if v not in constants or constants[v].ndim]
    numbers = {v: constants[v] for v in op.inputs if v in constants and v not in inputs}
    try:
        function_of(Program("part", inputs, numbers, [op], list(op.outs), []))
    except UnfitError as reason:
        return reason.with_traceback(None)
    return None


def small_function(
    run: list[FusionGroup],
    program: Program,
    readers: Readers,
    name: str,
    max_ms: float,
    kernels: Kernels | None = None,
) -> Loop:
    """Return a run of groups as one function, or as calls of `kernels`.

    Raise UnfitError if that is not supported, and BudgetError if it takes longer than `max_ms`
    to compile.
    """
    subprogram = _Subprogram(run, readers).program(name)
    over = _in_place_outputs(subprogram, program)
    function = function_of(subprogram, over, max_ms, kernels)
    if function.is_checked and over:  # NumPy may have to compute from the inputs again
        over = {}
        function = function_of(subprogram, over, max_ms, kernels)
    order = {value: i for i, value in enumerate(subprogram.inputs)}
    return Loop(
        name,
        function.text,
        _wrapper(subprogram, function, over),
        function.types,
        False,  # long
        False,  # parallel
        tuple(subprogram.inputs),
        tuple(subprogram.outputs),
        tuple([order[over[out]] if out in over else None for out in subprogram.outputs]),
        sum(v.size for op in subprogram.ops for v in op.outs),
        count_calls(op for op in subprogram.ops if not readers.accesses.is_view(op)),
        subprogram if function.is_checked else None,
        function.table,
        products=function.products,
        constants=tuple([array.ravel() for array in function.constants]),
    )


def _in_place_outputs(subprogram: Program, program: Program) -> dict[Value, Value]:
    """Return the outputs that overwrite an input."""
    targets = {write.value: write.target for write in program.writes}
    return {
        v: t
        for v in subprogram.outputs
        if (t := targets.get(v)) is not None and t in subprogram.inputs
    }


class Readers:
    """The number of operations that read each value, themselves or through views.

    Counted once for all runs: a run reads its outputs less often than the whole program does.
    """

    def __init__(
        self, groups: list[FusionGroup], results: Iterable[Value], accesses: Accesses
    ) -> None:
        self.accesses = accesses
        self.counts = self._count(groups)
        for value in results:
            self.counts.update(self._with_bases(value))

    def outside(self, run: list[FusionGroup]) -> set[Value]:
        """Return the values of a run that results or other groups read."""
        inside = self._count(run)
        made = [v for group in run for _, op in group.ops for v in op.outs]
        return {v for v in made if self.counts[v] > inside[v]}

    def _count(self, groups: list[FusionGroup]) -> Counter[Value]:
        ops = [op for group in groups for _, op in group.ops]
        reads = [v for op in ops if not self.accesses.is_view(op) for v in op.inputs]
        return Counter(v for read in reads for v in self._with_bases(read))

    def _with_bases(self, value: Value) -> Iterator[Value]:
        """Yield a value, and what it is a view of."""
        yield value
        op = self.accesses.producers.get(value)
        while op is not None and self.accesses.is_view(op):
            value = op.args[0]
            yield value
            op = self.accesses.producers.get(value)


class _Subprogram:
    """The operations of a run as a program, with its inputs and outputs."""

    def __init__(self, run: list[FusionGroup], readers: Readers) -> None:
        self.accesses = readers.accesses
        self.ops = [op for group in run for _, op in group.ops]
        self.inputs: list[Value] = []
        self.known: set[Value] = set()
        self.emitted: list[Op] = []
        self.outside = readers.outside(run)

    def _view(self, value: Value) -> Op | None:
        op = self.accesses.producers.get(value)
        return op if op is not None and self.accesses.is_view(op) else None

    def program(self, name: str) -> Program:
        for op in self.ops:
            self._add(op)
        constants = self.accesses.constants
        numbers = {v: constants[v] for v in self.known if v in constants and v not in self.inputs}
        outputs = [v for op in self.ops for v in op.outs if v in self.outside]
        return Program(name, self.inputs, numbers, self.emitted, outputs, [])

    def _add(self, op: Op) -> None:
        for value in op.inputs:
            self._require(value)
        self.emitted.append(op)
        self.known.update(op.outs)

    def _require(self, value: Value) -> None:
        if value in self.known:
            return
        self.known.add(value)
        op, constant = self._view(value), self.accesses.constants.get(value)
        if op is not None:
            self._add(op)
        elif constant is None or constant.ndim:
            self.inputs.append(value)


def _wrapper(subprogram: Program, function: Function, over: dict[Value, Value]) -> str:
    """Return the source of the function that Python calls."""
    names = Names({*RESERVED, subprogram.name})
    inputs = {v: names.another(f"{v.hint or 'x'}_in") for v in subprogram.inputs}
    none = "None, " * len(subprogram.outputs)
    lines = [f"def {subprogram.name}({', '.join([*inputs.values(), f'out=({none})'])}):"]
    lines.append(f"    # {len(subprogram.ops)} operations")
    arrays, returns = [*inputs.values()], []
    numbers = {name for value, name in inputs.items() if not value.shape}  # counters are ints
    for i, value in enumerate(subprogram.outputs):
        if value in over:
            name = inputs[over[value]]
            lines.append(f"    {name} = over(out[{i}], {name})")
        else:
            name = names.another(f"{value.hint or 'x'}_out")
            kind = "bool" if value.dtype.kind == "b" else f"np.{value.dtype.name}"
            lines.append(f"    {name} = fresh(out[{i}], {value.shape}, {kind})")
            arrays.append(name)
        returns.append(f"to_out(out[{i}], {name})")
    flat = [f"np.ravel({name})" if name in numbers else f"{name}.ravel()" for name in arrays]
    made = [value for value in subprogram.outputs if value not in over]
    for i, value in enumerate([*subprogram.inputs, *made]):
        if value.dtype in REAL_DTYPES:
            flat[i] += f".view(np.{REAL_DTYPES[value.dtype].name})"
    if function.constants:
        flat.insert(len(subprogram.inputs), "*constants")
    flat += [f"np.empty({n}, {code!r})" for code, n in function.scratch.items()]
    if function.is_checked:
        lines.append("    status = np.zeros(1, np.int64)")
        flat.append("status")
    if function.table is not None:
        flat = ["table", *flat, "*unused"]
    lines.append(f"    {LOOP_NAME}({', '.join(flat)})")
    if function.is_checked:
        given = ", ".join(inputs.values())
        lines.append("    if status[0]:")
        lines.append(f"        return otherwise({given})")
    return "\n".join([*lines, f"    return {', '.join(returns)}"]) + "\n"
