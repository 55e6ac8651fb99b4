"""Passes for ops with regions: recursion, dead results, loop-invariant code motion."""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import partial
from typing import Any

from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.program import Op, Program, Value

Pass = Callable[[Program], Program]


def in_regions(pass_: Pass) -> Pass:
    """Return the pass that runs in all regions first, then on the program."""

    def run(program: Program) -> Program:
        ops, constants = [], program.constants
        for op in program.ops:
            if op.regions:
                regions = []
                for region in op.regions:
                    region, constants = _run_in_region(run, region, constants)
                    regions.append(region)
                op = with_regions(op, tuple(regions))
            ops.append(op)
        program = program.with_ops(ops)
        program.constants = constants
        return pass_(program)

    return run


def _run_in_region(
    pass_: Pass, region: Program, constants: dict[Value, Any]
) -> tuple[Program, dict[Value, Any]]:
    """Run a pass on a region, which shares the constants of the program."""
    region = region.with_ops(region.ops)
    region.constants = constants
    region = pass_(region)
    constants, region.constants = {**constants, **region.constants}, {}
    return region, constants


def with_regions(op: Op, regions: tuple[Program, ...]) -> Op:
    """Return the op with other regions."""
    return Op(op.function, op.args, op.kwargs, op.outs, op.location, regions)


def eliminate_dead_results(op: Op, live: set[Value], eliminate: Pass) -> Op:
    """Return an op with regions without its dead results; `eliminate` runs on the regions."""
    if op.function == "if":
        keep = [i for i, out in enumerate(op.outs) if out in live]
        regions = tuple([_with_outputs(region, keep, eliminate) for region in op.regions])
        outs = tuple([op.outs[i] for i in keep])
        return Op("if", op.args, op.kwargs, outs, op.location, regions)
    count = len(op.args[0])
    keep = [i for i, out in enumerate(op.outs) if out in live]
    while True:
        regions = tuple(
            [
                _with_outputs(region, keep if region is op.regions[-1] else None, eliminate)
                for region in op.regions
            ]
        )
        used = {v for region in regions for v in used_in(region)}
        inputs = {i for region in regions for i, v in enumerate(region.inputs) if v in used}
        more = sorted({*keep, *(i for i in inputs if i < count)})
        if more == keep:
            break
        keep = more
    carries = [i for i in keep if i < count]
    slices = [i for i in sorted(inputs) if i >= count]
    for region in regions:
        region.inputs = [region.inputs[i] for i in (*carries, *slices)]
    args: tuple[Any, ...] = (tuple([op.args[0][i] for i in carries]),)
    if op.function == "for":
        args = (*args, tuple([op.args[1][i - count] for i in slices]))
    outs = tuple([op.outs[i] for i in keep])
    return Op(op.function, args, op.kwargs, outs, op.location, regions)


def used_in(region: Program) -> set[Value]:
    """Return the values that the ops and outputs of a region use."""
    return {v for op in region.ops for v in op.inputs} | set(region.outputs)


def _with_outputs(region: Program, keep: list[int] | None, eliminate: Pass) -> Program:
    """Return a region with these of its outputs (None: all), without dead code."""
    region = region.with_ops(region.ops)
    if keep is not None:
        region.outputs = [region.outputs[i] for i in keep]
    return eliminate(region)


def hoist_invariants(program: Program) -> Program:
    """Turn loop-invariant carries and slices of loop bodies into free values.

    Ops of a `for` that read only free values move before the loop.
    """
    definitions: dict[Value, Op] = {}
    same: dict[Value, Value] = {}
    ops: list[Op] = []
    for op in program.ops:
        op = _reads_copied(op.substitute(lambda v: same.get(v, v)), definitions)
        if op.function in ("for", "while"):
            op, invariant = _hoist_from_loop(op, definitions)
            if op.function == "for":
                op, moved = _hoist_ops(op, definitions, program.constants)
                ops += moved
                definitions.update((v, each) for each in moved for v in each.outs)
                invariant |= _invariant_results(op)
            for out, value in invariant.items():
                if out.shape == value.shape:
                    same[out] = value
                    continue
                copies = Op("np.broadcast_to", (value, out.shape), {}, (out,), op.location)
                ops.append(copies)
                definitions[out] = copies
            outs = tuple([_like(v) if v in invariant else v for v in op.outs])
            op = Op(op.function, op.args, op.kwargs, outs, op.location, op.regions)
        definitions.update((v, op) for v in op.outs)
        ops.append(op)
    program = program.with_ops(ops)
    program.outputs = [same.get(v, v) for v in program.outputs]
    program.writes = [w._replace(value=same.get(w.value, w.value)) for w in program.writes]
    return program


def _hoist_from_loop(op: Op, definitions: dict[Value, Op]) -> tuple[Op, dict[Value, Value]]:
    """Return a loop without invariant inputs, and the value that each invariant result has."""
    body, count = op.regions[-1], len(op.args[0])
    fixed = {i: value for i, value in enumerate(op.args[0]) if body.outputs[i] is body.inputs[i]}
    for i, value in enumerate(op.args[1] if op.function == "for" else ()):
        definition = definitions.get(value)
        if definition is not None and definition.function == "np.broadcast_to":
            source = definition.args[0]
            if isinstance(source, Value) and source.shape == value.shape[1:]:
                fixed[count + i] = source
    regions = []
    for each in op.regions:
        others = {each.inputs[i]: value for i, value in fixed.items()}
        change = partial(_lookup, others)
        each = each.with_ops([inner.substitute(change) for inner in each.ops])
        each.outputs = [
            v if i in fixed and i < count else others.get(v, v) for i, v in enumerate(each.outputs)
        ]
        regions.append(each)
    invariant = {op.outs[i]: value for i, value in fixed.items() if i < count}
    return with_regions(op, tuple(regions)), invariant


def _hoist_ops(
    op: Op, definitions: dict[Value, Op], constants: dict[Value, Any]
) -> tuple[Op, list[Op]]:
    """Return a `for` without the ops that read only free values, and these.

    Ops of constants stay: they are cheap, written to in place, or known to be uniform.
    """
    body, count = op.regions[-1], len(op.args[0])
    tables = zip(body.inputs[count:], op.args[1], strict=True)
    counters = {value for value, table in tables if isinstance(table, range)}
    bound = {*body.inputs}
    kept, moved = [], []
    for each in body.ops:
        each = _reads_copied(each, definitions, counters)
        stays = each.regions or each.function == DRAW or not each.outs
        stays = stays or all(value in constants for value in each.inputs)
        if stays or not bound.isdisjoint(each.inputs):
            bound.update(each.outs)
            kept.append(each)
        else:
            moved.append(each)
    return with_regions(op, (*op.regions[:-1], body.with_ops(kept))), moved


def _invariant_results(op: Op) -> dict[Value, Value]:
    """Return the results of a `for` that stack the same free value, with it."""
    body, count = op.regions[-1], len(op.args[0])
    bound = {*body.inputs, *(v for each in body.ops for v in each.outs)}
    pairs = zip(op.outs[count:], body.outputs[count:], strict=True)
    return {out: value for out, value in pairs if value not in bound}


def _reads_copied(op: Op, definitions: dict[Value, Op], counters: Set[Value] = frozenset()) -> Op:
    """Return an op that reads entries of a stack of copies as copies of one.

    The entries are those of numbers, slices and loop counters.
    """
    source = definitions.get(op.args[0]) if op.function == "getitem" else None
    if source is None or source.function != "np.broadcast_to":
        return op
    one, key = source.args[0], op.args[1]
    first, *rest = key if isinstance(key, tuple) else (key,)
    is_stack = isinstance(one, Value) and one.shape == source.out.shape[1:]
    is_entry = isinstance(first, slice | int) or (isinstance(first, Value) and first in counters)
    if is_stack and is_entry and rest in ([], [Ellipsis]):
        return Op("np.broadcast_to", (one, op.out.shape), {}, op.outs, op.location)
    return op


def _lookup(others: dict[Value, Value], value: Value) -> Value:
    return others.get(value, value)


def _like(value: Value) -> Value:
    return Value(value.shape, value.dtype, value.hint)
