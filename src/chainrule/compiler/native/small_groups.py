"""Stretches of a program that touch only small arrays: each is one function of machine code.

Between the large products of a small model, calls are what takes the time: the loss of a batch, the
updates of biases. So clusters that follow each other and are small share a function, as a whole
program of small arrays does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.program import Names, Op, Program, Value
from chainrule.compiler.native.fusion_groups import CALLS, FusionGroup, loop_shape
from chainrule.compiler.native.layout import UnfitError
from chainrule.compiler.native.loop_codegen import Loop
from chainrule.compiler.native.loop_nest import LOOP, RESERVED
from chainrule.compiler.native.scalar_codegen import CODES, small_scalar
from chainrule.compiler.native.strides import Accesses
from chainrule.compiler.native.whole_program import Function, function_of

SMALL = 1 << 13
"""The most elements of an array: what larger ones take is more than a call."""

PRODUCT = 1 << 12
"""The most multiplications of a product: with more, a call of BLAS is quicker."""


def runs(groups: list[FusionGroup], accesses: Accesses) -> Iterator[list[FusionGroup]]:
    """Yield the small clusters that follow each other, where one call takes less than theirs."""
    run: list[FusionGroup] = []
    for group in groups:
        if _is_small(group, accesses):
            run.append(group)
        elif not all(_is_nothing(op, accesses) for _, op in group.ops):
            if sum(map(_calls, run)) > CALLS:
                yield run
            run = []
    if sum(map(_calls, run)) > CALLS:
        yield run


def _calls(group: FusionGroup) -> int:
    """Return as how many of NumPy's calls a cluster counts."""
    return CALLS if group.is_loop else len(group.ops)


def _is_nothing(op: Op, accesses: Accesses) -> bool:
    """Say whether a line only looks at memory, or needs nothing: it can come before a stretch."""
    return accesses.is_view(op) or not (op.inputs or op.regions or op.function == DRAW)


def _is_small(group: FusionGroup, accesses: Accesses) -> bool:
    ops = [op for _, op in group.ops]
    values = {v for op in ops for v in (*op.inputs, *op.outs)}
    values |= {accesses.of(v).base for v in values}
    if any(v.dtype not in CODES or not 0 < v.size <= SMALL for v in values):
        return False
    return not any(_is_nothing(op, accesses) for op in ops) and all(map(_fits, ops))


def _fits(op: Op) -> bool:
    if op.function == "np.matmul":
        a, b = op.args
        return max(len(a.shape), len(b.shape)) <= 2 and a.size * math.prod(b.shape[1:]) <= PRODUCT
    return loop_shape(op, small_scalar) is not None


def stretch_of(
    run: list[FusionGroup],
    groups: list[FusionGroup],
    program: Program,
    accesses: Accesses,
    name: str,
) -> Loop | None:
    """Return a run of clusters as one function, if it can be one."""
    part = _Part(run, groups, program, accesses).program(name)
    over = _written_over(part, program)
    try:
        function = function_of(part, over)
    except UnfitError:
        return None
    order = {value: i for i, value in enumerate(part.inputs)}
    return Loop(
        name,
        function.text,
        _caller(part, function, over),
        function.types,
        function.calls,
        False,  # long
        False,  # shared
        tuple(part.inputs),
        tuple(part.outputs),
        tuple([order[over[out]] if out in over else None for out in part.outputs]),
        sum(op.out.size for op in part.ops),
    )


def _written_over(part: Program, program: Program) -> dict[Value, Value]:
    """Return the outputs that go where an input is."""
    targets = {write.value: write.target for write in program.writes}
    return {v: t for v in part.outputs if (t := targets.get(v)) is not None and t in part.inputs}


class _Part:
    """The lines of a run as a program: what it reads, and what others read of it."""

    def __init__(
        self,
        run: list[FusionGroup],
        groups: list[FusionGroup],
        program: Program,
        accesses: Accesses,
    ) -> None:
        self.accesses = accesses
        self.ops = [op for group in run for _, op in group.ops]
        self.inputs: list[Value] = []
        self.known: set[Value] = set()
        self.found: list[Op] = []
        outside = [op for c in groups if c not in run for _, op in c.ops]
        self.outside = set(program.results())
        for op in outside:
            if not accesses.is_view(op):
                self.outside.update(op.inputs)
        for value in [*self.outside]:
            self._through(value)

    def _through(self, value: Value) -> None:
        """Note that who reads a view reads what it is a view of."""
        op = self._view(value)
        for source in () if op is None else op.inputs:
            if source not in self.outside:
                self.outside.add(source)
                self._through(source)

    def _view(self, value: Value) -> Op | None:
        op = self.accesses.made.get(value)
        return op if op is not None and self.accesses.is_view(op) else None

    def program(self, name: str) -> Program:
        for op in self.ops:
            self._add(op)
        constants = self.accesses.constants
        numbers = {v: constants[v] for v in self.known if v in constants and v not in self.inputs}
        outputs = [v for op in self.ops for v in op.outs if v in self.outside]
        return Program(name, self.inputs, numbers, self.found, outputs, [])

    def _add(self, op: Op) -> None:
        for value in op.inputs:
            self._need(value)
        self.found.append(op)
        self.known.update(op.outs)

    def _need(self, value: Value) -> None:
        if value in self.known:
            return
        self.known.add(value)
        op, constant = self._view(value), self.accesses.constants.get(value)
        if op is not None:
            self._add(op)
        elif constant is None or constant.ndim:
            self.inputs.append(value)


def _caller(part: Program, function: Function, over: dict[Value, Value]) -> str:
    """Return the function that Python calls."""
    names = Names({*RESERVED, part.name})
    inputs = {v: names.another(f"{v.hint or 'x'}_in") for v in part.inputs}
    none = "None, " * len(part.outputs)
    rows = [f"def {part.name}({', '.join([*inputs.values(), f'out=({none})'])}):"]
    rows.append(f"    # {len(part.ops)} operations")
    arrays, backs = [*inputs.values()], []
    for i, value in enumerate(part.outputs):
        if value in over:
            name = inputs[over[value]]
            rows.append(f"    {name} = over(out[{i}], {name})")
        else:
            name = names.another(f"{value.hint or 'x'}_out")
            kind = "bool" if value.dtype.kind == "b" else f"np.{value.dtype.name}"
            rows.append(f"    {name} = fresh(out[{i}], {value.shape}, {kind})")
            arrays.append(name)
        backs.append(f"handed(out[{i}], {name})")
    flat = [f"{name}.ravel()" for name in arrays]
    flat += [f"np.empty({n}, {code!r})" for code, n in function.scratch.items()]
    rows.append(f"    {LOOP}({', '.join(flat)})")
    return "\n".join([*rows, f"    return {', '.join(backs)}"]) + "\n"
