"""Passes: each takes a program and returns one that gives the same with less work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.compiler.ir.abstract_eval import DRAW, abstract_eval, frozen, resolve
from chainrule.compiler.ir.op_traits import is_elementwise, number_of
from chainrule.compiler.ir.program import Op, Program, Value, every_op
from chainrule.compiler.passes.regions import everywhere, needed_part, without_invariants
from chainrule.compiler.passes.reroll import rolled
from chainrule.compiler.passes.rewrites import simplified
from chainrule.compiler.passes.vectorize_loops import batched

Pass = Callable[[Program], Program]


def without_dead_lines(program: Program) -> Program:
    """Leave out what nothing needs: lines, constants, and writes of what is there already."""
    program = program.with_ops(program.ops)
    program.writes = [write for write in program.writes if write.value is not write.target]
    needed = set(program.results())
    kept = []
    for op in reversed(program.ops):
        if op.regions:
            op = needed_part(op, needed, without_dead_lines)
        draws = any(part.function == DRAW for part in every_op([op]))
        if draws or not needed.isdisjoint(op.outs):
            needed.update(op.inputs)
            kept.append(op)
    program.ops = kept[::-1]
    program.constants = {v: a for v, a in program.constants.items() if v in needed}
    return program


def without_repeats(program: Program) -> Program:
    """Compute once what is computed twice."""
    seen: dict[Any, tuple[Value, ...]] = {}
    same: dict[Value, Value] = {}
    ops = []
    for op in program.ops:
        op = op.replaced(lambda v: same.get(v, v))
        key = _key(op)
        if key is None or key not in seen:
            if key is not None:
                seen[key] = op.outs
            ops.append(op)
        else:
            for old, new in zip(op.outs, seen[key], strict=True):
                new.hint = new.hint or old.hint
                same[old] = new
    return _renamed(program.with_ops(ops), same)


def _key(op: Op) -> Any:
    """Return what two lines have in common that compute the same; None for what is never so."""
    if op.function == DRAW or op.regions:
        return None
    key = (op.function, frozen(op.args, _same), frozen(op.kwargs, _same))
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
    ops = []
    for op in program.ops:
        if any(v not in known for v in op.inputs) or not _is_foldable(op):
            ops.append(op)
            continue
        filled = op.replaced(known.__getitem__)
        with np.errstate(all="ignore"):
            result = resolve(op.function)(*filled.args, **filled.kwargs)
        results = result if isinstance(result, tuple | list) else [result]
        known.update(zip(op.outs, map(np.asarray, results), strict=True))
    program = program.with_ops(ops)
    program.constants = known
    return program


_FOLDED = 1 << 10
"""The most elements of what is computed beforehand."""


def _is_foldable(op: Op) -> bool:
    """Say whether a line may be computed beforehand; an array of ones is shorter as a call."""
    if op.regions or op.function == DRAW:
        return False
    if all(v.size <= 1 for v in (*op.inputs, *op.outs)):
        return True
    if op.function in ("np.reshape", "np.permute_dims", "np.astype"):
        return True
    small = all(v.size <= _FOLDED for v in (*op.inputs, *op.outs))
    return small and (op.function == "index_add" or op.function in _JOINING)


def with_algebra(program: Program) -> Program:
    """Rewrite lines by the rules of `algebra`, each looking at the lines that made its inputs."""
    made: dict[Value, Op] = {}
    same: dict[Value, Any] = {}
    uses = Counter(v for op in program.ops for v in op.inputs)
    uses.update(program.results())
    program = program.with_ops(program.ops)
    program.constants = dict(program.constants)
    ops: list[Op] = []

    def add(function: str, *args: Any, **kwargs: Any) -> Value:
        """Add a line of a rule's own; return what comes out."""
        types = abstract_eval(function, args, kwargs).types
        outs = tuple(Value(shape, dtype) for shape, dtype in types)
        new = simplified(Op(function, args, kwargs, outs), made, program.constants, uses, add)
        if isinstance(new, Value):
            return new
        uses.update(new.inputs)
        ops.append(new)
        made[new.out] = new
        return new.out

    for op in program.ops:
        op = op.replaced(lambda v: same.get(v, v))
        found = simplified(op, made, program.constants, uses, add)
        if isinstance(found, Value):
            found.hint = found.hint or op.out.hint
            same[op.out] = found
            continue
        ops.append(found)
        for value in found.outs:
            made[value] = found
    program.ops = ops
    return _renamed(program, same)


def uniform_values(program: Program) -> dict[Value, Any]:
    """Return the values of which all elements are the same known number, as 0-d arrays."""
    found = {
        v: a.reshape(-1)[0].reshape(())
        for v, a in program.constants.items()
        if a.size == 1 or (0 < a.size <= _LOOKED_AT and (a == a.reshape(-1)[0]).all())
    }
    for op in program.ops:
        if op.function in _FILLED:
            found[op.out] = np.asarray(_FILLED[op.function], op.out.dtype)
        elif op.function in _MOVING and op.args[0] in found:
            found[op.out] = found[op.args[0]].astype(op.out.dtype)
        elif is_elementwise(op.function) and all(v in found for v in op.inputs):
            filled = op.replaced(found.__getitem__)
            with np.errstate(all="ignore"):
                result = resolve(op.function)(*filled.args, **filled.kwargs)
            if len(op.outs) == 1:
                found[op.out] = np.asarray(result)
    return found


_FILLED = {"np.zeros": 0, "np.ones": 1}
_JOINING = ("np.stack", "np.concat")
_MOVING = ("np.broadcast_to", "np.reshape", "np.permute_dims", "np.astype", "getitem")
_LOOKED_AT = 1 << 16


def with_operands_narrowed(program: Program) -> Program:
    """Hand numbers and what is not yet broadcast to functions that broadcast themselves."""
    made = {value: op for op in program.ops for value in op.outs}
    uniform = uniform_values(program)
    ops = []
    for op in program.ops:
        if is_elementwise(op.function) and not all(v in uniform for v in op.inputs):
            op = _narrowed(op, made, uniform)
        ops.append(op)
    return program.with_ops(ops)


def _narrowed(op: Op, made: dict[Value, Op], uniform: dict[Value, Any]) -> Op:
    """Replace each argument by less, as long as the result has the same type."""
    wanted = [(v.shape, v.dtype) for v in op.outs]
    for position, value in enumerate(op.args):
        for less in _lesser(value, made, uniform):
            args = (*op.args[:position], less, *op.args[position + 1 :])
            if not any(isinstance(arg, Value) for arg in args):
                continue
            try:
                fits = abstract_eval(op.function, args, op.kwargs).types == wanted
            except Exception:
                continue
            if fits:
                op = Op(op.function, args, op.kwargs, op.outs, op.location)
                break
    return op


def _lesser(value: Any, made: dict[Value, Op], uniform: dict[Value, Any]) -> list[Any]:
    """Return what could stand for a value in a function that broadcasts, the least first."""
    if not isinstance(value, Value):
        return []
    number = uniform.get(value)
    if number is not None and number.dtype.kind in "fiub":
        return [number_of(number), number[()]]
    op = made.get(value)
    while op is not None and op.function == "np.broadcast_to":
        value = op.args[0]
        op = made.get(value)
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
