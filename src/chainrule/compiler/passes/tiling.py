"""Tiling: elementwise ops on large arrays run block by block, with intermediates in the cache.

NumPy reads and writes memory once for each op, and allocates new memory for each large result. So
elementwise ops on one large shape are grouped and run for some rows at a time, in scratch memory of
that size, by several threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from chainrule.compiler.ir.op_traits import TILED, is_elementwise
from chainrule.compiler.ir.program import Op, Program, Shape, Value, map_values

if TYPE_CHECKING:
    from chainrule.compiler.codegen.numpy_source import Source

BLOCK_SIZE = 1 << 17
"""Number of elements of a block: with fewer, threads wait for the interpreter lock."""

MIN_BLOCKS = 4
"""Number of blocks from which tiling pays: arrays of fewer blocks stay in the cache anyway."""

MIN_OPS = 2
"""Number of ops from which tiling pays: a single op has no intermediate results."""

_ALSO_TILED = frozenset(["np.where", "np.astype"])


def tile_elementwise(program: Program) -> Program:
    """Return the program with groups of elementwise ops on large arrays as tiled ops."""
    if not any(_tiled_shape(op) for op in program.ops):
        return program
    return program.with_ops(list(_Groups(program).ops()))


def _tiled_shape(op: Op) -> Shape | None:
    """Return the shape of an op's result if the op can be tiled, else None."""
    if len(op.outs) != 1 or op.out.size < MIN_BLOCKS * BLOCK_SIZE:
        return None
    shape = op.out.shape
    if not (is_elementwise(op.function) or op.function in _ALSO_TILED):
        return None
    enough = shape[0] >= MIN_BLOCKS * _block_rows(shape)
    return shape if enough and all(_is_tileable(v, shape) for v in op.inputs) else None


def _block_rows(shape: Shape) -> int:
    """Return the number of rows of a block."""
    return max(BLOCK_SIZE // math.prod(shape[1:]), 1)


def _is_tileable(value: Value, shape: Shape) -> bool:
    return _is_sliced(value, shape) or len(value.shape) < len(shape) or value.shape[0] == 1


def _is_sliced(value: Value, shape: Shape) -> bool:
    """Whether a block uses a slice of rows of an operand; others are broadcast."""
    return len(value.shape) == len(shape) and value.shape[0] == shape[0]


class _Groups:
    """Collect tileable ops of one shape; ops independent of the open group move before it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.group: list[Op] = []
        self.made: set[Value] = set()
        self.shape: Shape | None = None
        self.last_use = {v: n for n, op in enumerate(program.ops) for v in op.inputs}
        self.last_use |= dict.fromkeys(program.results(), len(program.ops))
        self.targets = {write.value: write.target for write in program.writes}

    def ops(self) -> Iterator[Op]:
        for number, op in enumerate(self.program.ops):
            shape = _tiled_shape(op)
            if shape is None and self.made.isdisjoint(op.inputs):
                yield op
                continue
            if shape != self.shape:
                yield from self._close(number)
            if shape is None:
                yield op
            else:
                self.shape = shape
                self.group.append(op)
                self.made.add(op.out)
        yield from self._close(len(self.program.ops))

    def _close(self, number: int) -> list[Op]:
        """Return the group as one tiled op if that pays, and start another group."""
        group, made, shape = self.group, self.made, self.shape
        self.group, self.made, self.shape = [], set(), None
        outs = tuple([op.out for op in group if self.last_use.get(op.out, -1) >= number])
        if len(group) < MIN_OPS or shape is None or not outs:
            return group
        rows = _block_rows(shape)
        sliced = dict.fromkeys(v for op in group for v in op.inputs if _is_sliced(v, shape))
        inputs = tuple([v for v in sliced if v not in made])
        parts = {v: Value((rows, *v.shape[1:]), v.dtype, v.hint) for v in made}
        for value in inputs:
            hint = f"{value.hint}_part" if value.hint else ""
            parts[value] = Value((rows, *value.shape[1:]), value.dtype, hint)
        ops = [_on_parts(op, parts) for op in group]
        found = [parts[v] for v in outs]
        body = Program("part", [parts[v] for v in inputs], {}, ops, found, [])
        over = tuple([self._over(out, inputs, group) for out in outs])
        settings = {"length": shape[0], "rows": rows, "over": over}
        return [Op(TILED, inputs, settings, outs, group[-1].location, (body,))]

    def _over(self, out: Value, inputs: tuple[Value, ...], group: list[Op]) -> int | None:
        """Return the position of the input that a result overwrites, if nothing reads it later."""
        target = self.targets.get(out)
        if target not in inputs:
            return None
        uses = [n for n, op in enumerate(group) if target in op.inputs]
        (made,) = [n for n, op in enumerate(group) if op.out is out]
        return inputs.index(target) if uses[-1] <= made else None


def _on_parts(op: Op, parts: dict[Value, Value]) -> Op:
    def part(value: Value) -> Value:
        return parts.get(value, value)

    args, kwargs = map_values(op.args, part), map_values(op.kwargs, part)
    return Op(op.function, args, kwargs, (parts[op.out],), op.location)


def tiled_source(source: Source, op: Op) -> Iterator[str]:
    """Yield the source lines of a tiled op: a function of a slice of rows, and its calls."""
    (body,), names, plan = op.regions, source.names, source.plan
    part, rows = names.another("part"), names.another("rows")
    for out in op.outs:
        names[out] = names[plan.memory[out]]
    targets = {v: f"{names[out]}[{rows}]" for v, out in zip(body.outputs, op.outs, strict=True)}
    yield f"def {part}({rows}):"
    yield from (f"    {line}" for line in _prologue(source, op, rows, targets))
    yield from (f"    {line}" for line in source.statements(body))
    for value, target in targets.items():
        if value not in plan.memory:
            yield f"    {target} = {source.show(value)}"
    yield f"each_block({part}, {op.kwargs['length']}, {op.kwargs['rows']})"


def _prologue(source: Source, op: Op, rows: str, targets: dict[Value, str]) -> Iterator[str]:
    """Yield the lines that slice the operands and allocate scratch memory."""
    (body,), names, plan = op.regions, source.names, source.plan
    uses = source.uses_in(body)
    for value, array in zip(body.inputs, op.args, strict=True):
        part = source.item(array, rows)
        if uses[value] == 1:
            source.inline[value] = part
        else:
            yield f"{names[value]} = {part.text}"
    for value, target in targets.items():
        if value in plan.memory:
            yield f"{names[value]} = {target}"
    if plan.region_scratch[body]:
        count = names.another("n")
        yield f"{count} = {rows}.stop - {rows}.start"
    for value in plan.region_scratch[body]:
        shape = ", ".join([count, *map(str, value.shape[1:])])
        shape = shape if len(value.shape) == 1 else f"({shape})"
        yield f"{names[value]} = np.empty({shape}, {source.show(value.dtype)})"
