"""Lines with bodies as NumPy source: `for`, `while` and `if`, indented."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from chainrule.compiler.ir.op_traits import BLOCKS, makes_new, takes_out
from chainrule.compiler.ir.program import Op, Program, Value, is_alike
from chainrule.compiler.passes.buffer_planning import LARGE
from chainrule.compiler.passes.tiling import block_rows

if TYPE_CHECKING:
    from chainrule.compiler.codegen.numpy_source import Source


def loop_rows(source: Source, op: Op) -> list[str]:
    """Return the rows of a line with bodies."""
    return list(_WRITERS[op.function](source, op))


def _for(source: Source, op: Op) -> Iterator[str]:
    (body,) = op.regions
    names, count = source.names, len(op.args[0])
    added = _added(body, count)
    for i, (out, value) in enumerate(zip(op.outs, op.args[0], strict=False)):
        carry = body.inputs[i]
        carry.hint = carry.hint or out.hint
        names[out] = names[carry]
        fresh = i not in added or _is_own(source, op, value)
        shown = source.show(value)
        yield f"{names[carry]} = {shown if fresh else f'np.array({shown})'}"
    stacks = op.outs[count:]
    for out in stacks:
        yield f"{names[out]} = np.empty({out.shape}, {source.show(out.dtype)})"
    number = names[Value((), int, "i")]
    steps = f"range({op.kwargs['length']})"
    yield f"for {number} in {f'reversed({steps})' if op.kwargs['reverse'] else steps}:"
    uses = source.uses_in(body)
    rows = []
    for value, stack in zip(body.inputs[count:], op.args[1], strict=True):
        if isinstance(stack, range):
            source.inline[value] = _counted(stack, number)
            continue
        shown = f"{source.show(stack)}[{number}]"
        if uses[value] == 1:
            source.inline[value] = shown
        else:
            rows.append(f"{names[value]} = {shown}")
    placed = _into_stacks(source, body, count, [f"{names[out]}[{number}]" for out in stacks])
    rows += _steps(source, body, count, added)
    for out, value in zip(stacks, body.outputs[count:], strict=True):
        if value not in placed:
            rows.append(f"{names[out]}[{number}] = {source.show(value)}")
    rows += _handed_on(source, body, count)
    yield from _indented(rows)
    for carry, value in zip(body.inputs, body.outputs[:count], strict=False):
        if value in placed:  # the last one is not to be memory of the stack
            yield f"{names[carry]} = {names[carry]}.copy()"


def _into_stacks(source: Source, body: Program, count: int, slots: list[str]) -> set[Value]:
    """Let lines write large values right into the stacks that keep them; return these values."""
    made = {v for op in body.ops if takes_out(op.function) for v in op.outs}
    placed = set()
    for value, slot in zip(body.outputs[count:], slots, strict=True):
        alone = body.outputs[count:].count(value) == 1
        if value in made and alone and value.nbytes >= LARGE and value not in source.plan.places:
            place = source.plan.places[value] = Value(value.shape, value.dtype)
            source.names[place] = slot
            placed.add(value)
    return placed


def _counted(numbers: range, number: str) -> str:
    """Return the number of a range that belongs to the number of a step."""
    start, step = numbers.start, numbers.step
    if step < 0:
        return f"{start} - {number}" if step == -1 else f"{start} - {-step} * {number}"
    text = number if step == 1 else f"{step} * {number}"
    return f"{text} + {start}" if start > 0 else f"{text} - {-start}" if start else text


def _while(source: Source, op: Op) -> Iterator[str]:
    condition, body = op.regions
    names = source.names
    for first, carry, out, value in zip(
        condition.inputs, body.inputs, op.outs, op.args[0], strict=True
    ):
        carry.hint = carry.hint or out.hint
        names[out] = names[first] = names[carry]
        yield f"{names[carry]} = np.array({source.show(value)})"
    asked = list(source.statements(condition))
    shown = source.show(condition.outputs[0])
    if len(condition.ops) == 1 and condition.ops[0].out is condition.outputs[0]:
        yield f"while {source.expression(condition.ops[0])}:"
        rows = []
    else:
        yield "while True:"
        rows = [*asked, f"if not {shown}:", "    break"]
    rows += _steps(source, body, len(op.outs), {})
    rows += _handed_on(source, body, len(op.outs))
    yield from _indented(rows)


def _if(source: Source, op: Op) -> Iterator[str]:
    heads = (f"if {source.show(op.args[0])}:", "else:")
    for head, body in zip(heads, op.regions, strict=True):
        yield head
        lent = source.plan.lent[body]
        made = {v for row in body.ops for v in row.outs}
        for i, (out, value) in enumerate(zip(op.outs, body.outputs, strict=True)):
            own = value in made and i not in lent and body.outputs.count(value) == 1
            if own and value not in source.plan.places:
                source.names[value] = source.names[out]
        rows = list(source.statements(body))
        for i, (out, value) in enumerate(zip(op.outs, body.outputs, strict=True)):
            shown = source.show(value)
            if shown != source.names[out]:
                copied = f"np.array({shown})" if i in lent else shown
                rows.append(f"{source.names[out]} = {copied}")
        yield from _indented(rows)


_WRITERS = {"for": _for, "while": _while, "if": _if, BLOCKS: block_rows}


def _steps(source: Source, body: Program, count: int, added: dict[int, Op]) -> Iterator[str]:
    """Yield a body's statements; a new carry takes the name of the one that it replaces."""
    names, lent = source.names, source.plan.lent[body]
    last = _last_uses(body)
    for i, op in enumerate(body.ops):
        if op.regions or len(op.outs) != 1:
            continue
        for j, value in enumerate(body.outputs[:count]):
            alone = body.outputs[:count].count(value) == 1 and body.inputs[j] not in body.outputs
            free = alone and j not in lent and value not in source.plan.places
            if value is op.out and free and last.get(body.inputs[j], -1) <= i:
                names[value] = names[body.inputs[j]]
    in_place = {op.out for op in added.values()}
    for op in body.ops:
        if not op.regions and op.outs[0] in in_place:
            source.plan.places[op.out] = op.args[0]
    yield from source.statements(body)


def _last_uses(body: Program) -> dict[Value, int]:
    """Return the number of the last line that reads a value, also through views of it."""
    last: dict[Value, int] = {}
    root: dict[Value, Value] = {}
    for number, op in enumerate(body.ops):
        for value in op.inputs:
            last[root.get(value, value)] = number
        if not makes_new(op.function) and op.inputs:
            first = op.inputs[0]
            root.update(dict.fromkeys(op.outs, root.get(first, first)))
    for value in body.outputs:
        if value in root:
            last[root[value]] = len(body.ops)
    return last


def _added(body: Program, count: int) -> dict[int, Op]:
    """Return the carries that are sums, to which each step adds something: in place."""
    uses = Counter(v for op in body.ops for v in op.inputs)
    uses.update(body.outputs)
    found = {}
    for op in body.ops:
        if op.function not in ("np.add", "plus_at", "assign_at") or op.kwargs:
            continue
        for j, value in enumerate(body.outputs[:count]):
            total = body.inputs[j]
            grows = op.out is value and op.args[0] is total and total.shape
            if grows and is_alike(total, value) and uses[total] == uses[value] == 1:
                found[j] = op
    return found


def _is_own(source: Source, op: Op, value: Value) -> bool:
    """Say whether a loop may write over a value that it begins with."""
    maker = source.made.get(value)
    return (
        maker is not None
        and makes_new(maker.function)
        and value not in source.plan.places
        and source.uses[value] == 1
    )


def _handed_on(source: Source, body: Program, count: int) -> Iterator[str]:
    """Yield the assignment of the next step's carries."""
    lent, names = source.plan.lent[body], source.names
    targets, values = [], []
    for j, (carry, value) in enumerate(zip(body.inputs, body.outputs[:count], strict=False)):
        shown = source.show(value)
        if shown != names[carry]:
            targets.append(names[carry])
            values.append(f"np.array({shown})" if j in lent else shown)
    if targets:
        yield f"{', '.join(targets)} = {', '.join(values)}"


def _indented(rows: list[str]) -> Iterator[str]:
    return (f"    {row}" for row in rows or ["pass"])
