"""What passes do with lines that have bodies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from chainrule.compiler.ir.program import Line, Program, Value

Pass = Callable[[Program], Program]


def everywhere(step: Pass) -> Pass:
    """Return the pass that runs within bodies first, then on the program."""

    def run(program: Program) -> Program:
        lines, constants = [], program.constants
        for line in program.lines:
            if line.bodies:
                bodies = []
                for body in line.bodies:
                    found, constants = _within(run, body, constants)
                    bodies.append(found)
                line = with_bodies(line, tuple(bodies))
            lines.append(line)
        program = program.with_lines(lines)
        program.constants = constants
        return step(program)

    return run


def _within(
    step: Pass, body: Program, constants: dict[Value, Any]
) -> tuple[Program, dict[Value, Any]]:
    """Run a pass on a body, which shares the constants of the program."""
    body = body.with_lines(body.lines)
    body.constants = constants
    body = step(body)
    constants, body.constants = {**constants, **body.constants}, {}
    return body, constants


def with_bodies(line: Line, bodies: tuple[Program, ...]) -> Line:
    """Return the line with other bodies."""
    return Line(line.function, line.args, line.kwargs, line.outs, line.location, bodies)


def needed_part(line: Line, needed: set[Value], strip: Pass) -> Line:
    """Return a line without the results that nobody needs; `strip` does it within bodies."""
    if line.function == "if":
        keep = [i for i, out in enumerate(line.outs) if out in needed]
        bodies = tuple([_only(body, keep, strip) for body in line.bodies])
        outs = tuple([line.outs[i] for i in keep])
        return Line("if", line.args, line.kwargs, outs, line.location, bodies)
    count = len(line.args[0])
    keep = [i for i, out in enumerate(line.outs) if out in needed]
    while True:
        bodies = tuple(
            [_only(body, keep if body is line.bodies[-1] else None, strip) for body in line.bodies]
        )
        used = {v for body in bodies for v in used_in(body)}
        inputs = {i for body in bodies for i, v in enumerate(body.inputs) if v in used}
        more = sorted({*keep, *(i for i in inputs if i < count)})
        if more == keep:
            break
        keep = more
    carries = [i for i in keep if i < count]
    slices = [i for i in sorted(inputs) if i >= count]
    for body in bodies:
        body.inputs = [body.inputs[i] for i in (*carries, *slices)]
    args: tuple[Any, ...] = (tuple([line.args[0][i] for i in carries]),)
    if line.function == "for":
        args = (*args, tuple([line.args[1][i - count] for i in slices]))
    outs = tuple([line.outs[i] for i in keep])
    return Line(line.function, args, line.kwargs, outs, line.location, bodies)


def used_in(body: Program) -> set[Value]:
    """Return the values that the lines and results of a body use."""
    return {v for line in body.lines for v in line.inputs} | set(body.outputs)


def _only(body: Program, keep: list[int] | None, strip: Pass) -> Program:
    """Return a body with some of its outputs, and what these need."""
    body = body.with_lines(body.lines)
    if keep is not None:
        body.outputs = [body.outputs[i] for i in keep]
    return strip(body)


def without_invariants(program: Program) -> Program:
    """Let bodies use from outside what is the same in each step, rather than carry or slice it."""
    made: dict[Value, Line] = {}
    same: dict[Value, Value] = {}
    lines: list[Line] = []
    for line in program.lines:
        line = line.replaced(lambda v: same.get(v, v))
        if line.function in ("for", "while"):
            line, known = _freed(line, made)
            for out, value in known.items():
                if out.shape == value.shape:
                    same[out] = value
                    continue
                copies = Line("np.broadcast_to", (value, out.shape), {}, (out,), line.location)
                lines.append(copies)
                made[out] = copies
            outs = tuple([_like(v) if v in known else v for v in line.outs])
            line = Line(line.function, line.args, line.kwargs, outs, line.location, line.bodies)
        made.update((v, line) for v in line.outs)
        lines.append(line)
    program = program.with_lines(lines)
    program.outputs = [same.get(v, v) for v in program.outputs]
    program.writes = [w._replace(value=same.get(w.value, w.value)) for w in program.writes]
    return program


def _freed(line: Line, made: dict[Value, Line]) -> tuple[Line, dict[Value, Value]]:
    """Return a loop without its invariants, and what they make of its results."""
    body, count = line.bodies[-1], len(line.args[0])
    fixed = {i: value for i, value in enumerate(line.args[0]) if body.outputs[i] is body.inputs[i]}
    for i, value in enumerate(line.args[1] if line.function == "for" else ()):
        maker = made.get(value)
        if maker is not None and maker.function == "np.broadcast_to":
            source = maker.args[0]
            if isinstance(source, Value) and source.shape == value.shape[1:]:
                fixed[count + i] = source
    bodies = []
    for each in line.bodies:
        others = {each.inputs[i]: value for i, value in fixed.items()}
        change = partial(_exchanged, others)
        each = each.with_lines([row.replaced(change) for row in each.lines])
        each.outputs = [
            v if i in fixed and i < count else others.get(v, v) for i, v in enumerate(each.outputs)
        ]
        bodies.append(each)
    known = {line.outs[i]: value for i, value in fixed.items() if i < count}
    if line.function == "for":
        own = {*body.inputs, *(v for row in body.lines for v in row.outs)}
        pairs = zip(line.outs[count:], bodies[-1].outputs[count:], strict=True)
        known |= {out: value for out, value in pairs if value not in own}
    return with_bodies(line, tuple(bodies)), known


def _exchanged(others: dict[Value, Value], value: Value) -> Value:
    return others.get(value, value)


def _like(value: Value) -> Value:
    return Value(value.shape, value.dtype, value.hint)
