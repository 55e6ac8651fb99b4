"""Carries of a loop that are entries of one array are carried as that array.

Tables that are filled cell by cell, in lists of numbers, hand a row of them to the next step: each
entry of what an inner loop stacks is a carry, and the next step stacks them again.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.passes.stacked_slices import Rows, StackedSlices, slice_index

_MIN_ENTRIES = 3
"""Number of carries from which one array takes less time."""

_Run = tuple[Rows, int, list[int]]
"""Rows of a stack, the index of the first, and the carries that are these rows in their order."""


def pack_carries(program: Program) -> Program:
    """Return a program whose loops carry arrays in the place of their entries."""
    runs = {op: [*_runs(op)] for op in program.ops if op.function == "for"}
    if not any(runs.values()):
        return program
    steps = StackedSlices(program.constants, {})
    for op in program.ops:
        if runs.get(op):
            _pack(op, runs[op], steps)
        else:
            steps.copy(op)
    return program.with_ops(steps.ops)


def _runs(loop: Op) -> Iterator[_Run]:
    """Yield the carries of a loop whose next values are entries that follow each other."""
    (body,) = loop.regions
    made = {value: op for op in body.ops for value in op.outs}
    carries: defaultdict[Rows, dict[int, int]] = defaultdict(dict)  # by the index of their entry
    for carry in range(len(loop.args[0])):
        rows, index = slice_index(made.get(body.outputs[carry]))
        if rows is not None:
            carries[rows].setdefault(index, carry)
    for rows, found in carries.items():
        places = sorted(found)
        for _, group in itertools.groupby(enumerate(places), lambda item: item[1] - item[0]):
            run = [index for _, index in group]
            if len(run) >= _MIN_ENTRIES:
                yield rows, run[0], [found[index] for index in run]


def _pack(loop: Op, runs: list[_Run], steps: StackedSlices) -> None:
    """Append a loop that carries an array for each run, and after it the entries."""
    (body,), (begins, tables), count = loop.regions, loop.args, len(loop.args[0])
    packed = {carry for _, _, carries in runs for carry in carries}
    kept = [carry for carry in range(count) if carry not in packed]
    firsts, inputs = ([items[i] for i in kept] for items in (begins, body.inputs))
    ends, outs = ([items[i] for i in kept] for items in (body.outputs, loop.outs))
    inner = StackedSlices({}, {})
    entries: list[Op] = []  # of the results
    lasts: list[Op] = []  # the ops of the body that take the next arrays
    for rows, index, carries in runs:
        shape, dtype = (len(carries), *rows.shape), rows.stack.dtype
        first, row, end, out = (Value(shape, dtype) for _ in range(4))
        steps.copy(Op("np.stack", (tuple([begins[i] for i in carries]),), {"axis": 0}, (first,)))
        for place, carry in enumerate(carries):
            inner.add(Op("getitem", (row, place), {}, (body.inputs[carry],)))
            entries.append(Op("getitem", (out, place), {}, (loop.outs[carry],)))
        part = slice(index, index + len(carries))
        key = (part, *rows.rest) if rows.rest else part
        lasts.append(Op("getitem", (rows.stack, key), {}, (end,)))
        for items, value in ((firsts, first), (inputs, row), (ends, end), (outs, out)):
            items.append(value)
    for op in body.ops:
        inner.copy(op)
    region = body.with_ops([*inner.ops, *lasts])
    region.inputs = [*inputs, *body.inputs[count:]]
    region.outputs = [*ends, *body.outputs[count:]]
    args, results = (tuple(firsts), tables), (*outs, *loop.outs[count:])
    steps.add(Op("for", args, loop.kwargs, results, loop.location, (region,)))
    for op in entries:
        steps.add(op)
