"""Optimisation passes: each returns an equivalent program that does less work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.compiler.ir.abstract_eval import DRAW, abstract_eval, hashable, resolve
from chainrule.compiler.ir.constants import constant_key, number_of, same_constant, uniform_element
from chainrule.compiler.ir.op_traits import is_elementwise
from chainrule.compiler.ir.program import Op, Program, Value, every_op
from chainrule.compiler.passes.new_axes import split_new_axes
from chainrule.compiler.passes.packed_carries import pack_carries
from chainrule.compiler.passes.products_after_loops import multiply_after_loops
from chainrule.compiler.passes.regions import eliminate_dead_results, hoist_invariants, in_regions
from chainrule.compiler.passes.reroll import reroll_loops
from chainrule.compiler.passes.rewrites import rewrite_op
from chainrule.compiler.passes.slice_rewrites import copy_small_reads, delay_writes
from chainrule.compiler.passes.stacked_slices import share_tables
from chainrule.compiler.passes.vectorize_loops import vectorize_independent_loops
from chainrule.interrupts import errstate

Pass = Callable[[Program], Program]


def eliminate_dead_code(program: Program) -> Program:
    """Remove ops and constants that no result needs, and writes that change nothing."""
    program = program.with_ops(program.ops)
    program.writes = [write for write in program.writes if write.value is not write.target]
    live = set(program.results())
    kept = []
    for op in reversed(program.ops):
        if op.regions:
            op = eliminate_dead_results(op, live, eliminate_dead_code)
        if not live.isdisjoint(op.outs) or op.function == "check" or _draws(op):
            live.update(op.inputs)
            kept.append(op)
    program.ops = kept[::-1]
    program.constants = {v: a for v, a in program.constants.items() if v in live}
    return program


def _draws(op: Op) -> bool:
    if not op.regions:
        return op.function == DRAW
    return any(inner.function == DRAW for inner in every_op([op]))


def eliminate_common_subexpressions(program: Program) -> Program:
    """Replace each op that repeats an earlier one by the results of that one."""
    seen: dict[Any, tuple[Value, ...]] = {}
    same: dict[Value, Value] = {}
    ops = []
    for op in program.ops:
        op = op.substitute(lambda v: same.get(v, v))
        key = _expression_key(op)
        if key is None or key not in seen:
            if key is not None:
                seen[key] = op.outs
            ops.append(op)
        else:
            for old, new in zip(op.outs, seen[key], strict=True):
                new.hint = new.hint or old.hint
                same[old] = new
    return _substitute_results(program.with_ops(ops), same)


def _expression_key(op: Op) -> Any:
    """Return a key equal for ops that compute the same; None for an op that is never merged."""
    if op.function == DRAW or op.regions:
        return None
    key = (op.function, hashable(op.args, _leaf_key), hashable(op.kwargs, _leaf_key))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _leaf_key(leaf: Any) -> Any:
    return leaf if isinstance(leaf, Value) else constant_key(leaf)


def _substitute_results(program: Program, same: dict[Value, Value]) -> Program:
    """Replace values among the outputs and the written values."""
    program.outputs = [same.get(v, v) for v in program.outputs]
    program.writes = [w._replace(value=same.get(w.value, w.value)) for w in program.writes]
    return program


def fold_constants(program: Program) -> Program:
    """Evaluate ops on small constants: scalars, and the seeds of a Jacobian's rows.

    Results without elements are constants, too, as in the first step of a triangular loop; but not
    those of inputs without elements, since an exported program serves other sizes.
    """
    known = dict(program.constants)
    are_full = all(v.size for v in program.inputs)
    ops = []
    for op in program.ops:
        if are_full and op.outs and not any(v.size for v in op.outs) and not _draws(op):
            known.update({v: np.empty(v.shape, v.dtype) for v in op.outs})
            continue
        if not all(map(known.__contains__, op.inputs)) or not _is_foldable(op):
            ops.append(op)
            continue
        filled = op.substitute(known.__getitem__)
        result = _evaluated(filled)
        results = result if isinstance(result, tuple | list) else [result]
        known.update(zip(op.outs, map(np.asarray, results), strict=True))
    program = program.with_ops(ops)
    program.constants = known
    return program


@errstate(all="ignore")
def _evaluated(op: Op) -> Any:
    """Return the result of an op on arrays."""
    return resolve(op.function)(*op.args, **op.kwargs)


_MAX_FOLDED_SIZE = 1 << 10
"""Largest number of elements of an operand or result of a folded op."""


def _is_foldable(op: Op) -> bool:
    """Whether to evaluate an op on constants; `np.ones` is shorter in the source as a call."""
    if op.regions or op.function == DRAW:
        return False
    if all(v.size <= 1 for v in (*op.inputs, *op.outs)):
        return True
    if op.function in ("np.reshape", "np.permute_dims", "np.astype"):
        return True
    small = all(v.size <= _MAX_FOLDED_SIZE for v in (*op.inputs, *op.outs))
    return small and op.function in ("index_add", "np.stack", "np.concat")


def merge_constants(program: Program) -> Program:
    """Replace small constants that have the same type and bits by the first of them."""
    first: dict[Any, Value] = {}
    same: dict[Value, Value] = {}
    for value, array in program.constants.items():
        if array.size <= _MAX_FOLDED_SIZE:
            kept = first.setdefault((array.dtype, array.shape, array.tobytes()), value)
            if kept is not value:
                same[value] = kept
    if not same:
        return program
    ops = []
    for op in program.ops:
        if not same.keys().isdisjoint(op.inputs):
            structure = op.structure
            op = op.substitute(lambda v: same.get(v, v))
            op.structure = structure  # the types are the same
        ops.append(op)
    return _substitute_results(program.with_ops(ops), same)


def simplify_algebra(program: Program) -> Program:
    """Apply the rules of `rewrites`, which match an op and the ops that define its operands."""
    definitions: dict[Value, Op] = {}
    same: dict[Value, Any] = {}
    uses = Counter(v for op in program.ops for v in op.inputs)
    uses.update(program.results())
    program = program.with_ops(program.ops)
    program.constants = dict(program.constants)
    ops: list[Op] = []

    def add(function: str, *args: Any, **kwargs: Any) -> Value:
        """Append an op on behalf of a rule, itself rewritten; return its result."""
        types = abstract_eval(function, args, kwargs).types
        outs = tuple(Value(shape, dtype) for shape, dtype in types)
        new = rewrite_op(
            Op(function, args, kwargs, outs), definitions, program.constants, uses, add
        )
        if isinstance(new, Value):
            return new
        uses.update(new.inputs)
        ops.append(new)
        definitions[new.out] = new
        return new.out

    for op in program.ops:
        op = op.substitute(lambda v: same.get(v, v))
        found = rewrite_op(op, definitions, program.constants, uses, add)
        if isinstance(found, Value):
            found.hint = found.hint or op.out.hint
            same[op.out] = found
            continue
        ops.append(found)
        for value in found.outs:
            definitions[value] = found
    program.ops = ops
    return _substitute_results(program, same)


def uniform_values(program: Program) -> dict[Value, Any]:
    """Return the values whose elements are all the same known number, as 0-d arrays."""
    found = {
        v: element
        for v, a in program.constants.items()
        if a.size <= _MAX_COMPARED_SIZE and (element := uniform_element(a)) is not None
    }
    for op in program.ops:
        if op.function in _FILL_VALUES:
            found[op.out] = np.asarray(_FILL_VALUES[op.function], op.out.dtype)
        elif op.function in _DATA_MOVEMENT and op.args[0] in found:
            found[op.out] = found[op.args[0]].astype(op.out.dtype)
        elif is_elementwise(op.function) and all(v in found for v in op.inputs):
            filled = op.substitute(found.__getitem__)
            result = _evaluated(filled)
            if len(op.outs) == 1:
                found[op.out] = np.asarray(result)
    return found


_FILL_VALUES = {"np.zeros": 0, "np.ones": 1}
_DATA_MOVEMENT = ("np.broadcast_to", "np.reshape", "np.permute_dims", "np.astype", "getitem")
_MAX_COMPARED_SIZE = 1 << 16
"""Largest number of elements of a constant that is checked for being uniform."""


def narrow_operands(program: Program) -> Program:
    """Pass scalars and arrays not yet broadcast to elementwise ops, which broadcast themselves."""
    definitions = {value: op for op in program.ops for value in op.outs}
    uniform = uniform_values(program)
    ops = []
    for op in program.ops:
        if is_elementwise(op.function) and not all(v in uniform for v in op.inputs):
            op = _narrow(op, definitions, uniform)
        ops.append(op)
    return program.with_ops(ops)


def _narrow(op: Op, definitions: dict[Value, Op], uniform: dict[Value, Any]) -> Op:
    """Replace each operand by a smaller one that leaves the types of the results as they are."""
    types = [(v.shape, v.dtype) for v in op.outs]
    for position, value in enumerate(op.args):
        for smaller in _smaller_operands(value, definitions, uniform):
            args = (*op.args[:position], smaller, *op.args[position + 1 :])
            if not any(isinstance(arg, Value) for arg in args):
                continue
            try:
                same_types = abstract_eval(op.function, args, op.kwargs).types == types
            except Exception:
                continue
            if same_types and _keeps_bits(op, position, smaller, uniform.get(value)):
                op = Op(op.function, args, op.kwargs, op.outs, op.location)
                break
    return op


def _keeps_bits(op: Op, position: int, number: Any, element: Any) -> bool:
    """Whether an op computes the same with a Python number, which has no dtype, as with its array.

    0.1 for a float32 is another number where the others are float64.
    """
    if isinstance(number, Value | np.generic):
        return True
    others = [arg for i, arg in enumerate(op.args) if i != position]
    if all(arg.dtype == element.dtype for arg in others if hasattr(arg, "dtype")):
        return True
    function = resolve(op.function)
    if not isinstance(function, np.ufunc) or op.kwargs or len(op.args) != function.nin:
        return False
    loops = []
    for operand in (number, element):
        args = [*op.args[:position], operand, *op.args[position + 1 :]]
        types = [getattr(arg, "dtype", type(arg)) for arg in args]
        loops.append(function.resolve_dtypes((*types, *[None] * function.nout)))
    dtype = loops[0][position]
    same = same_constant(np.asarray(number).astype(dtype)[()], element.astype(dtype)[()])
    return loops[0] == loops[1] and same


def _smaller_operands(
    value: Any, definitions: dict[Value, Op], uniform: dict[Value, Any]
) -> list[Any]:
    """Return what broadcasts to an operand, and is smaller: the smallest first."""
    if not isinstance(value, Value):
        return []
    number = uniform.get(value)
    if number is not None and number.dtype.kind in "fiub":
        return [number_of(number), number[()]]
    source = value
    while (op := definitions.get(source)) is not None and op.function == "np.broadcast_to":
        source = op.args[0]
    return [] if source is value else [source]


PASSES: tuple[Pass, ...] = (
    eliminate_dead_code,
    in_regions(fold_constants),
    merge_constants,
    in_regions(reroll_loops),
    in_regions(split_new_axes),
    share_tables,
    in_regions(pack_carries),
    in_regions(hoist_invariants),
    eliminate_dead_code,
    in_regions(vectorize_independent_loops),
    in_regions(fold_constants),
    in_regions(narrow_operands),
    in_regions(eliminate_common_subexpressions),
    in_regions(simplify_algebra),
    in_regions(narrow_operands),
    in_regions(fold_constants),
    in_regions(eliminate_common_subexpressions),
    in_regions(multiply_after_loops),
    eliminate_dead_code,
    in_regions(delay_writes),
    in_regions(copy_small_reads),
)


def optimize(program: Program, check: bool = False) -> Program:
    """Return the program after all passes, verified after each if `check`."""
    for run in PASSES:
        program = run(program)
        if check:
            program.check()
    return program
