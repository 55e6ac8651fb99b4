"""NumPy source of ops with regions: `for`, `while`, `if` and tiled loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from chainrule.compiler.codegen.expression import Expression, binary, literal
from chainrule.compiler.ir.op_traits import TILED, WRITES, returns_new_memory, takes_out
from chainrule.compiler.ir.program import Op, Program, Value, same_type
from chainrule.compiler.passes.tiling import tiled_source

if TYPE_CHECKING:
    from chainrule.compiler.codegen.numpy_source import Source


def region_source(source: Source, op: Op) -> list[str]:
    """Return the source lines of an op with regions."""
    return list(_GENERATORS[op.function](source, op))


def _for(source: Source, op: Op) -> Iterator[str]:
    (body,) = op.regions
    names, count = source.names, len(op.args[0])
    accumulators = _accumulators(body, count)
    for i, (out, value) in enumerate(zip(op.outs, op.args[0], strict=False)):
        carry = body.inputs[i]
        carry.hint = carry.hint or out.hint
        names[out] = names[carry]
        is_kept = body.outputs[i] is carry  # a result of the loop, which later ops may write to
        no_copy = not is_kept and (i not in accumulators or _may_overwrite(source, op, value))
        shown = source.show(value)
        yield f"{names[carry]} = {shown if no_copy else f'np.array({shown})'}"
    stacks = op.outs[count:]
    for out in stacks:
        yield f"{names[out]} = np.empty({out.shape}, {source.show(out.dtype)})"
    number = names[Value((), int, "i")]
    steps = f"range({op.kwargs['length']})"
    yield f"for {number} in {f'reversed({steps})' if op.kwargs['reverse'] else steps}:"
    uses = source.uses_in(body)
    lines = []
    for value, stack in zip(body.inputs[count:], op.args[1], strict=True):
        if isinstance(stack, range):
            source.inline[value] = _range_item(stack, number)
            continue
        entry = source.item(stack, number)
        if uses[value] == 1:
            source.inline[value] = entry
        else:
            lines.append(f"{names[value]} = {entry.text}")
    in_stack = _write_into_stacks(
        source, body, count, [f"{names[out]}[{number}]" for out in stacks]
    )
    lines += _body_statements(source, body, count, accumulators)
    for out, value in zip(stacks, body.outputs[count:], strict=True):
        if value not in in_stack:
            lines.append(f"{names[out]}[{number}] = {source.show(value)}")
    lines += _next_carries(source, body, count)
    yield from _indented(lines)
    for carry, value in zip(body.inputs, body.outputs[:count], strict=False):
        if value in in_stack:  # the final carry must not alias the stack
            yield f"{names[carry]} = {names[carry]}.copy()"


def _write_into_stacks(source: Source, body: Program, count: int, slots: list[str]) -> set[Value]:
    """Let ops write large stacked values into the stacks directly; return these values."""
    made = {v for op in body.ops if takes_out(op.function) for v in op.outs}
    in_stack = set()
    for value, slot in zip(body.outputs[count:], slots, strict=True):
        unique = body.outputs[count:].count(value) == 1
        large = value.nbytes >= source.plan.min_bytes
        if value in made and unique and large and value not in source.plan.memory:
            memory = source.plan.memory[value] = Value(value.shape, value.dtype)
            source.names[memory] = slot
            in_stack.add(value)
    return in_stack


def _range_item(numbers: range, index: str) -> Expression:
    """Return the expression of the item of a range at the index of a step."""
    start, step, found = numbers.start, numbers.step, Expression(index)
    if abs(step) != 1:
        found = binary("*", literal(abs(step)), found)
    if step < 0:
        return binary("-", literal(start), found)
    if start == 0:
        return found
    return binary("+" if start > 0 else "-", found, literal(abs(start)))


def _while(source: Source, op: Op) -> Iterator[str]:
    condition, body = op.regions
    names = source.names
    for first, carry, out, value in zip(
        condition.inputs, body.inputs, op.outs, op.args[0], strict=True
    ):
        carry.hint = carry.hint or out.hint
        names[out] = names[first] = names[carry]
        yield f"{names[carry]} = np.array({source.show(value)})"
    test = list(source.statements(condition))
    shown = source.show(condition.outputs[0])
    only = condition.ops[0] if len(condition.ops) == 1 else None
    if only and only.out is condition.outputs[0] and not only.function.startswith("native."):
        yield f"while {source.expression(only).text}:"
        lines = []
    else:
        yield "while True:"
        lines = [*test, f"if not {shown}:", "    break"]
    lines += _body_statements(source, body, len(op.outs), {})
    lines += _next_carries(source, body, len(op.outs))
    yield from _indented(lines)


def _if(source: Source, op: Op) -> Iterator[str]:
    heads = (f"if {source.show(op.args[0])}:", "else:")
    for head, branch in zip(heads, op.regions, strict=True):
        yield head
        aliased = source.plan.region_aliased[branch]
        made = {v for inner in branch.ops for v in inner.outs}
        for i, (out, value) in enumerate(zip(op.outs, branch.outputs, strict=True)):
            own = value in made and i not in aliased and branch.outputs.count(value) == 1
            if own and value not in source.plan.memory:
                source.names[value] = source.names[out]
        lines = list(source.statements(branch))
        for i, (out, value) in enumerate(zip(op.outs, branch.outputs, strict=True)):
            shown = source.show(value)
            if shown != source.names[out]:
                copied = f"np.array({shown})" if i in aliased else shown
                lines.append(f"{source.names[out]} = {copied}")
        yield from _indented(lines)


_GENERATORS = {"for": _for, "while": _while, "if": _if, TILED: tiled_source}


def _body_statements(
    source: Source, body: Program, count: int, accumulators: dict[int, list[Op]]
) -> Iterator[str]:
    """Yield the statements of a loop body; a new carry reuses the name of the one it replaces."""
    names, aliased = source.names, source.plan.region_aliased[body]
    last_use = _last_uses(body)
    for i, op in enumerate(body.ops):
        if op.regions or len(op.outs) != 1:
            continue
        for j, value in enumerate(body.outputs[:count]):
            unique = body.outputs[:count].count(value) == 1 and body.inputs[j] not in body.outputs
            free = unique and j not in aliased and value not in source.plan.memory
            if value is op.out and free and last_use.get(body.inputs[j], -1) <= i:
                names[value] = names[body.inputs[j]]
    in_place = {op.out for ops in accumulators.values() for op in ops}
    for op in body.ops:
        if not op.regions and op.outs[0] in in_place:
            source.plan.memory[op.out] = op.args[0]
    yield from source.statements(body)


def _last_uses(body: Program) -> dict[Value, int]:
    """Return the index of the last op that reads each value, views of it included."""
    last: dict[Value, int] = {}
    root: dict[Value, Value] = {}
    for number, op in enumerate(body.ops):
        for value in op.inputs:
            last[root.get(value, value)] = number
        if not returns_new_memory(op.function) and op.inputs:
            first = op.inputs[0]
            root.update(dict.fromkeys(op.outs, root.get(first, first)))
    for value in body.outputs:
        if value in root:
            last[root[value]] = len(body.ops)
    return last


def _accumulators(body: Program, count: int) -> dict[int, list[Op]]:
    """Return the ops that update a carry in place, by the position of the carry."""
    readers: dict[Value, list[Op]] = {}
    for op in body.ops:
        for value in op.inputs:
            readers.setdefault(value, []).append(op)
    last_use = _last_uses(body)
    numbers = {op.outs: number for number, op in enumerate(body.ops)}
    found = {}
    for j, (carry, new) in enumerate(zip(body.inputs[:count], body.outputs, strict=False)):
        chain: list[Op] = []
        value = carry
        while value is not new and value not in body.outputs:
            ops = [op for op in readers.get(value, ()) if _updates(op, value)]
            if len(ops) != 1 or last_use[value] > numbers[ops[0].outs]:
                break
            chain += ops
            value = ops[0].out
        is_alone = body.outputs.count(new) == 1 and last_use.get(new, 0) < len(body.ops)
        if value is new and chain and is_alone:
            found[j] = chain
    return found


def _updates(op: Op, value: Value) -> bool:
    """Whether an op may write its result into the memory of a value."""
    is_sum = op.function == "np.add" and not op.kwargs
    if not (is_sum or op.function in WRITES) or not value.shape:
        return False
    return op.args[0] is value and same_type(op.out, value) and op.inputs.count(value) == 1


def _may_overwrite(source: Source, op: Op, value: Value) -> bool:
    """Whether a loop may overwrite the memory of an initial carry."""
    maker = source.made.get(value)
    return (
        maker is not None
        and returns_new_memory(maker.function)
        and value not in source.plan.memory
        and source.uses[value] == 1
    )


def _next_carries(source: Source, body: Program, count: int) -> Iterator[str]:
    """Yield the assignment of the next step's carries."""
    aliased, names = source.plan.region_aliased[body], source.names
    targets, values = [], []
    for j, (carry, value) in enumerate(zip(body.inputs, body.outputs[:count], strict=False)):
        shown = source.show(value)
        if shown != names[carry]:
            targets.append(names[carry])
            values.append(f"np.array({shown})" if j in aliased else shown)
    if targets:
        yield f"{', '.join(targets)} = {', '.join(values)}"


def _indented(lines: list[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines or ["pass"])
