"""Passes: each takes a program and returns one that gives the same with less work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.compiler.ir.abstract_eval import DRAW, frozen, outcome, resolve
from chainrule.compiler.ir.op_traits import is_elementwise, number_of
from chainrule.compiler.ir.program import Line, Program, Value, every_line
from chainrule.compiler.passes.regions import everywhere, needed_part, without_invariants
from chainrule.compiler.passes.reroll import rolled
from chainrule.compiler.passes.rewrites import simplified
from chainrule.compiler.passes.vectorize_loops import batched

Pass = Callable[[Program], Program]


def without_dead_lines(program: Program) -> Program:
    """Leave out what nothing needs: lines, constants, and writes of what is there already."""
    program = program.with_lines(program.lines)
    program.writes = [write for write in program.writes if write.value is not write.target]
    needed = set(program.results())
    kept = []
    for line in reversed(program.lines):
        if line.bodies:
            line = needed_part(line, needed, without_dead_lines)
        draws = any(part.function == DRAW for part in every_line([line]))
        if draws or not needed.isdisjoint(line.outs):
            needed.update(line.inputs)
            kept.append(line)
    program.lines = kept[::-1]
    program.constants = {v: a for v, a in program.constants.items() if v in needed}
    return program


def without_repeats(program: Program) -> Program:
    """Compute once what is computed twice."""
    seen: dict[Any, tuple[Value, ...]] = {}
    same: dict[Value, Value] = {}
    lines = []
    for line in program.lines:
        line = line.replaced(lambda v: same.get(v, v))
        key = _key(line)
        if key is None or key not in seen:
            if key is not None:
                seen[key] = line.outs
            lines.append(line)
        else:
            for old, new in zip(line.outs, seen[key], strict=True):
                new.hint = new.hint or old.hint
                same[old] = new
    return _renamed(program.with_lines(lines), same)


def _key(line: Line) -> Any:
    """Return what two lines have in common that compute the same; None for what is never so."""
    if line.function == DRAW or line.bodies:
        return None
    key = (line.function, frozen(line.args, _same), frozen(line.kwargs, _same))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _same(leaf: Any) -> Any:
    """Return what two arguments have in common that are the same."""
    if isinstance(leaf, float):
        return (float, repr(leaf))  # 0.0 and -0.0 are equal, and not the same
    return leaf if isinstance(leaf, Value) else (type(leaf), leaf)


def _renamed(program: Program, same: dict[Value, Value]) -> Program:
    """Put other values in the place of some of the results."""
    program.outputs = [same.get(v, v) for v in program.outputs]
    program.writes = [w._replace(value=same.get(w.value, w.value)) for w in program.writes]
    return program


def with_constants_folded(program: Program) -> Program:
    """Compute small arrays that are known now: numbers, and the seeds of a Jacobian's rows."""
    known = dict(program.constants)
    lines = []
    for line in program.lines:
        if any(v not in known for v in line.inputs) or not _is_foldable(line):
            lines.append(line)
            continue
        filled = line.replaced(known.__getitem__)
        with np.errstate(all="ignore"):
            result = resolve(line.function)(*filled.args, **filled.kwargs)
        results = result if isinstance(result, tuple | list) else [result]
        known.update(zip(line.outs, map(np.asarray, results), strict=True))
    program = program.with_lines(lines)
    program.constants = known
    return program


_FOLDED = 1 << 10
"""The most elements of what is computed beforehand."""


def _is_foldable(line: Line) -> bool:
    """Say whether a line may be computed beforehand; an array of ones is shorter as a call."""
    if line.bodies or line.function == DRAW:
        return False
    if all(v.size <= 1 for v in (*line.inputs, *line.outs)):
        return True
    if line.function in ("np.reshape", "np.permute_dims", "np.astype"):
        return True
    small = all(v.size <= _FOLDED for v in (*line.inputs, *line.outs))
    return small and (line.function == "index_add" or line.function in _JOINING)


def with_algebra(program: Program) -> Program:
    """Rewrite lines by the rules of `algebra`, each looking at the lines that made its inputs."""
    made: dict[Value, Line] = {}
    same: dict[Value, Any] = {}
    uses = Counter(v for line in program.lines for v in line.inputs)
    uses.update(program.results())
    program = program.with_lines(program.lines)
    program.constants = dict(program.constants)
    lines: list[Line] = []

    def add(function: str, *args: Any, **kwargs: Any) -> Value:
        """Add a line of a rule's own; return what comes out."""
        types = outcome(function, args, kwargs).types
        outs = tuple(Value(shape, dtype) for shape, dtype in types)
        new = simplified(Line(function, args, kwargs, outs), made, program.constants, uses, add)
        if isinstance(new, Value):
            return new
        uses.update(new.inputs)
        lines.append(new)
        made[new.out] = new
        return new.out

    for line in program.lines:
        line = line.replaced(lambda v: same.get(v, v))
        found = simplified(line, made, program.constants, uses, add)
        if isinstance(found, Value):
            found.hint = found.hint or line.out.hint
            same[line.out] = found
            continue
        lines.append(found)
        for value in found.outs:
            made[value] = found
    program.lines = lines
    return _renamed(program, same)


def uniform_values(program: Program) -> dict[Value, Any]:
    """Return the values of which all elements are the same known number, as 0-d arrays."""
    found = {
        v: a.reshape(-1)[0].reshape(())
        for v, a in program.constants.items()
        if a.size == 1 or (0 < a.size <= _LOOKED_AT and (a == a.reshape(-1)[0]).all())
    }
    for line in program.lines:
        if line.function in _FILLED:
            found[line.out] = np.asarray(_FILLED[line.function], line.out.dtype)
        elif line.function in _MOVING and line.args[0] in found:
            found[line.out] = found[line.args[0]].astype(line.out.dtype)
        elif is_elementwise(line.function) and all(v in found for v in line.inputs):
            filled = line.replaced(found.__getitem__)
            with np.errstate(all="ignore"):
                result = resolve(line.function)(*filled.args, **filled.kwargs)
            if len(line.outs) == 1:
                found[line.out] = np.asarray(result)
    return found


_FILLED = {"np.zeros": 0, "np.ones": 1}
_JOINING = ("np.stack", "np.concat")
_MOVING = ("np.broadcast_to", "np.reshape", "np.permute_dims", "np.astype", "getitem")
_LOOKED_AT = 1 << 16


def with_operands_narrowed(program: Program) -> Program:
    """Hand numbers and what is not yet broadcast to functions that broadcast themselves."""
    made = {value: line for line in program.lines for value in line.outs}
    uniform = uniform_values(program)
    lines = []
    for line in program.lines:
        if is_elementwise(line.function) and not all(v in uniform for v in line.inputs):
            line = _narrowed(line, made, uniform)
        lines.append(line)
    return program.with_lines(lines)


def _narrowed(line: Line, made: dict[Value, Line], uniform: dict[Value, Any]) -> Line:
    """Replace each argument by less, as long as the result has the same type."""
    wanted = [(v.shape, v.dtype) for v in line.outs]
    for position, value in enumerate(line.args):
        for less in _lesser(value, made, uniform):
            args = (*line.args[:position], less, *line.args[position + 1 :])
            if not any(isinstance(arg, Value) for arg in args):
                continue
            try:
                fits = outcome(line.function, args, line.kwargs).types == wanted
            except Exception:
                continue
            if fits:
                line = Line(line.function, args, line.kwargs, line.outs, line.location)
                break
    return line


def _lesser(value: Any, made: dict[Value, Line], uniform: dict[Value, Any]) -> list[Any]:
    """Return what could stand for a value in a function that broadcasts, the least first."""
    if not isinstance(value, Value):
        return []
    number = uniform.get(value)
    if number is not None and number.dtype.kind in "fiub":
        return [number_of(number), number[()]]
    line = made.get(value)
    while line is not None and line.function == "np.broadcast_to":
        value = line.args[0]
        line = made.get(value)
    return [value]


PASSES: tuple[Pass, ...] = (
    without_dead_lines,
    everywhere(with_constants_folded),
    everywhere(rolled),
    everywhere(without_invariants),
    without_dead_lines,
    everywhere(batched),
    everywhere(with_constants_folded),
    everywhere(with_operands_narrowed),
    everywhere(without_repeats),
    everywhere(with_algebra),
    everywhere(with_operands_narrowed),
    everywhere(with_constants_folded),
    everywhere(without_repeats),
    without_dead_lines,
)


def optimized(program: Program, check: bool = False) -> Program:
    """Return the program after all passes, each verified if `check`."""
    for step in PASSES:
        program = step(program)
        if check:
            program.check()
    return program
