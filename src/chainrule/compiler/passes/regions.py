"""What passes do with lines that have bodies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from chainrule.compiler.ir.program import Op, Program, Value

Pass = Callable[[Program], Program]


def everywhere(step: Pass) -> Pass:
    """Return the pass that runs within bodies first, then on the program."""

    def run(program: Program) -> Program:
        ops, constants = [], program.constants
        for op in program.ops:
            if op.regions:
                regions = []
                for body in op.regions:
                    found, constants = _within(run, body, constants)
                    regions.append(found)
                op = with_regions(op, tuple(regions))
            ops.append(op)
        program = program.with_ops(ops)
        program.constants = constants
        return step(program)

    return run


def _within(
    step: Pass, body: Program, constants: dict[Value, Any]
) -> tuple[Program, dict[Value, Any]]:
    """Run a pass on a body, which shares the constants of the program."""
    body = body.with_ops(body.ops)
    body.constants = constants
    body = step(body)
    constants, body.constants = {**constants, **body.constants}, {}
    return body, constants


def with_regions(op: Op, regions: tuple[Program, ...]) -> Op:
    """Return the line with other bodies."""
    return Op(op.function, op.args, op.kwargs, op.outs, op.location, regions)


def needed_part(op: Op, needed: set[Value], strip: Pass) -> Op:
    """Return a line without the results that nobody needs; `strip` does it within bodies."""
    if op.function == "if":
        keep = [i for i, out in enumerate(op.outs) if out in needed]
        regions = tuple([_only(body, keep, strip) for body in op.regions])
        outs = tuple([op.outs[i] for i in keep])
        return Op("if", op.args, op.kwargs, outs, op.location, regions)
    count = len(op.args[0])
    keep = [i for i, out in enumerate(op.outs) if out in needed]
    while True:
        regions = tuple(
            [_only(body, keep if body is op.regions[-1] else None, strip) for body in op.regions]
        )
        used = {v for body in regions for v in used_in(body)}
        inputs = {i for body in regions for i, v in enumerate(body.inputs) if v in used}
        more = sorted({*keep, *(i for i in inputs if i < count)})
        if more == keep:
            break
        keep = more
    carries = [i for i in keep if i < count]
    slices = [i for i in sorted(inputs) if i >= count]
    for body in regions:
        body.inputs = [body.inputs[i] for i in (*carries, *slices)]
    args: tuple[Any, ...] = (tuple([op.args[0][i] for i in carries]),)
    if op.function == "for":
        args = (*args, tuple([op.args[1][i - count] for i in slices]))
    outs = tuple([op.outs[i] for i in keep])
    return Op(op.function, args, op.kwargs, outs, op.location, regions)


def used_in(body: Program) -> set[Value]:
    """Return the values that the lines and results of a body use."""
    return {v for op in body.ops for v in op.inputs} | set(body.outputs)


def _only(body: Program, keep: list[int] | None, strip: Pass) -> Program:
    """Return a body with some of its outputs, and what these need."""
    body = body.with_ops(body.ops)
    if keep is not None:
        body.outputs = [body.outputs[i] for i in keep]
    return strip(body)


def without_invariants(program: Program) -> Program:
    """Let bodies use from outside what is the same in each step, rather than carry or slice it."""
    made: dict[Value, Op] = {}
    same: dict[Value, Value] = {}
    ops: list[Op] = []
    for op in program.ops:
        op = op.replaced(lambda v: same.get(v, v))
        if op.function in ("for", "while"):
            op, known = _freed(op, made)
            for out, value in known.items():
                if out.shape == value.shape:
                    same[out] = value
                    continue
                copies = Op("np.broadcast_to", (value, out.shape), {}, (out,), op.location)
                ops.append(copies)
                made[out] = copies
            outs = tuple([_like(v) if v in known else v for v in op.outs])
            op = Op(op.function, op.args, op.kwargs, outs, op.location, op.regions)
        made.update((v, op) for v in op.outs)
        ops.append(op)
    program = program.with_ops(ops)
    program.outputs = [same.get(v, v) for v in program.outputs]
    program.writes = [w._replace(value=same.get(w.value, w.value)) for w in program.writes]
    return program


def _freed(op: Op, made: dict[Value, Op]) -> tuple[Op, dict[Value, Value]]:
    """Return a loop without its invariants, and what they make of its results."""
    body, count = op.regions[-1], len(op.args[0])
    fixed = {i: value for i, value in enumerate(op.args[0]) if body.outputs[i] is body.inputs[i]}
    for i, value in enumerate(op.args[1] if op.function == "for" else ()):
        maker = made.get(value)
        if maker is not None and maker.function == "np.broadcast_to":
            source = maker.args[0]
            if isinstance(source, Value) and source.shape == value.shape[1:]:
                fixed[count + i] = source
    regions = []
    for each in op.regions:
        others = {each.inputs[i]: value for i, value in fixed.items()}
        change = partial(_exchanged, others)
        each = each.with_ops([row.replaced(change) for row in each.ops])
        each.outputs = [
            v if i in fixed and i < count else others.get(v, v) for i, v in enumerate(each.outputs)
        ]
        regions.append(each)
    known = {op.outs[i]: value for i, value in fixed.items() if i < count}
    if op.function == "for":
        own = {*body.inputs, *(v for row in body.ops for v in row.outs)}
        pairs = zip(op.outs[count:], regions[-1].outputs[count:], strict=True)
        known |= {out: value for out, value in pairs if value not in own}
    return with_regions(op, tuple(regions)), known


def _exchanged(others: dict[Value, Value], value: Value) -> Value:
    return others.get(value, value)


def _like(value: Value) -> Value:
    return Value(value.shape, value.dtype, value.hint)
