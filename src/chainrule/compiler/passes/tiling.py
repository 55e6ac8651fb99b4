"""Chains of operations on large arrays, a block at a time: what one makes, the next finds near.

NumPy goes over memory once for each operation, and large results are fresh memory each time. So
lines that act element by element on one large shape are done for some rows at a time, in scratch
memory of that size, by several threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from chainrule.compiler.ir.op_traits import BLOCKS, is_elementwise
from chainrule.compiler.ir.program import Op, Program, Shape, Value, mapped

if TYPE_CHECKING:
    from chainrule.compiler.codegen.numpy_source import Source

BLOCK = 1 << 17
"""So many elements are done at a time: with fewer, threads wait for the interpreter's lock."""

MANY = 4
"""So many blocks are worth it: what has fewer is in the cache anyway."""

FEWEST = 2
"""So many operations find something in the cache."""

_ALSO = frozenset(["np.where", "np.astype"])


def in_blocks(program: Program) -> Program:
    """Return the program with lines that do several on large arrays, a block at a time."""
    if not any(_shape(op) for op in program.ops):
        return program
    return program.with_ops(list(_Groups(program).ops()))


def _shape(op: Op) -> Shape | None:
    """Return the shape of what a line makes, if blocks of it can be made."""
    if len(op.outs) != 1 or op.out.size < MANY * BLOCK:
        return None
    shape = op.out.shape
    if not (is_elementwise(op.function) or op.function in _ALSO):
        return None
    enough = shape[0] >= MANY * _rows(shape)
    return shape if enough and all(_fits(v, shape) for v in op.inputs) else None


def _rows(shape: Shape) -> int:
    """Return how many rows make a block."""
    return max(BLOCK // math.prod(shape[1:]), 1)


def _fits(value: Value, shape: Shape) -> bool:
    return _is_cut(value, shape) or len(value.shape) < len(shape) or value.shape[0] == 1


def _is_cut(value: Value, shape: Shape) -> bool:
    """Say whether a block takes some rows of an array, not all of it."""
    return len(value.shape) == len(shape) and value.shape[0] == shape[0]


class _Groups:
    """Lines of one shape that follow each other; what needs none of them comes before."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.group: list[Op] = []
        self.made: set[Value] = set()
        self.shape: Shape | None = None
        self.last = {v: n for n, op in enumerate(program.ops) for v in op.inputs}
        self.last |= dict.fromkeys(program.results(), len(program.ops))
        self.targets = {write.value: write.target for write in program.writes}

    def ops(self) -> Iterator[Op]:
        for number, op in enumerate(self.program.ops):
            shape = _shape(op)
            if shape is None and self.made.isdisjoint(op.inputs):
                yield op
                continue
            if shape != self.shape:
                yield from self._done(number)
            if shape is None:
                yield op
            else:
                self.shape = shape
                self.group.append(op)
                self.made.add(op.out)
        yield from self._done(len(self.program.ops))

    def _done(self, number: int) -> list[Op]:
        """Return the group as one line, if it is worth it, and begin another."""
        group, made, shape = self.group, self.made, self.shape
        self.group, self.made, self.shape = [], set(), None
        outs = tuple([op.out for op in group if self.last.get(op.out, -1) >= number])
        if len(group) < FEWEST or shape is None or not outs:
            return group
        rows = _rows(shape)
        cut = dict.fromkeys(v for op in group for v in op.inputs if _is_cut(v, shape))
        inputs = tuple([v for v in cut if v not in made])
        parts = {v: Value((rows, *v.shape[1:]), v.dtype, v.hint) for v in made}
        for value in inputs:
            hint = f"{value.hint}_part" if value.hint else ""
            parts[value] = Value((rows, *value.shape[1:]), value.dtype, hint)
        ops = [_of_parts(op, parts) for op in group]
        found = [parts[v] for v in outs]
        body = Program("part", [parts[v] for v in inputs], {}, ops, found, [])
        over = tuple([self._over(out, inputs, group) for out in outs])
        settings = {"length": shape[0], "rows": rows, "over": over}
        return [Op(BLOCKS, inputs, settings, outs, group[-1].location, (body,))]

    def _over(self, out: Value, inputs: tuple[Value, ...], group: list[Op]) -> int | None:
        """Return the input over which a result is to be written: nothing reads it afterwards."""
        target = self.targets.get(out)
        if target not in inputs:
            return None
        places = [n for n, op in enumerate(group) if target in op.inputs]
        (made,) = [n for n, op in enumerate(group) if op.out is out]
        return inputs.index(target) if places[-1] <= made else None


def _of_parts(op: Op, parts: dict[Value, Value]) -> Op:
    def part(value: Value) -> Value:
        return parts.get(value, value)

    args, kwargs = mapped(op.args, part), mapped(op.kwargs, part)
    return Op(op.function, args, kwargs, (parts[op.out],), op.location)


def block_rows(source: Source, op: Op) -> Iterator[str]:
    """Yield the source of such a line: a function of some rows, and its calls."""
    (body,), names, plan = op.regions, source.names, source.plan
    part, rows = names.another("part"), names.another("rows")
    for out in op.outs:
        names[out] = names[plan.places[out]]
    targets = {v: f"{names[out]}[{rows}]" for v, out in zip(body.outputs, op.outs, strict=True)}
    yield f"def {part}({rows}):"
    yield from (f"    {row}" for row in _begin(source, op, rows, targets))
    yield from (f"    {row}" for row in source.statements(body))
    for value, target in targets.items():
        if value not in plan.places:
            yield f"    {target} = {source.show(value)}"
    yield f"each_block({part}, {op.kwargs['length']}, {op.kwargs['rows']})"


def _begin(source: Source, op: Op, rows: str, targets: dict[Value, str]) -> Iterator[str]:
    """Yield what names the parts of arrays, and makes scratch memory."""
    (body,), names, plan = op.regions, source.names, source.plan
    uses = source.uses_in(body)
    for value, whole in zip(body.inputs, op.args, strict=True):
        shown = f"{source.show(whole)}[{rows}]"
        if uses[value] == 1:
            source.inline[value] = shown
        else:
            yield f"{names[value]} = {shown}"
    for value, target in targets.items():
        if value in plan.places:
            yield f"{names[value]} = {target}"
    if plan.scratch[body]:
        count = names.another("n")
        yield f"{count} = {rows}.stop - {rows}.start"
    for value in plan.scratch[body]:
        shape = ", ".join([count, *map(str, value.shape[1:])])
        shape = shape if len(value.shape) == 1 else f"({shape})"
        yield f"{names[value]} = np.empty({shape}, {source.show(value.dtype)})"
