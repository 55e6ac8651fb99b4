"""Reads and writes through basic indices (slices and integers): rewrite rules, and their order.

Code that writes through slices, and its derivative, often writes a region twice, or reads what it
has just written. Keys that are the same select the same elements, each once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainrule.backend import is_basic_index
from chainrule.compiler.ir.op_traits import returns_new_memory
from chainrule.compiler.ir.program import Op, Program, Value, same_type

if TYPE_CHECKING:
    from chainrule.compiler.passes.rewrites import Context


def getitem(op: Op, context: Context) -> Any:
    """x[:, None], or x[0] of a single row, is a reshape; what was written there is what is read."""
    x, key = op.args
    if x.size == op.out.size and _keeps_order(key):
        return "np.reshape", (x, op.out.shape), {}
    written = _write_before(x, key, context)
    if written is None or written.args[1].shape != op.out.shape:
        return None
    base, value, _ = written.args
    if written.function == "assign_at":
        return value
    if context.uses[x] == 1:
        return "np.add", (context.add("getitem", base, key), value), {}
    return None


def assign_at(op: Op, context: Context) -> Any:
    """What was written to the same region before does not matter."""
    x, value, key = op.args
    written = _write_before(x, key, context)
    if written is None:
        return None
    context.uses[x] -= 1
    context.uses[written.args[0]] += 1
    return "assign_at", (written.args[0], value, key), {}


def plus_at(op: Op, context: Context) -> Any:
    """Adding to a region just assigned assigns the sum."""
    x, value, key = op.args
    written = _write_before(x, key, context, "assign_at")
    if written is None or not (isinstance(value, Value) and value.dtype == x.dtype):
        return None
    base, first, _ = written.args
    if first.size not in (1, value.size) and value.size != 1:
        return None  # neither has the shape of the sum
    context.uses[x] -= 1
    context.uses[base] += 1
    return "assign_at", (base, context.add("np.add", first, value), key), {}


def index_add(op: Op, context: Context) -> Any:
    """Zeros with all of their elements written are a reshape."""
    (value,) = op.args
    complete = isinstance(value, Value) and value.size == op.out.size
    if not complete or not _keeps_order(op.kwargs["key"]):
        return None
    return "np.reshape", (value, op.kwargs["shape"]), {}


def add_to_slice(op: Op, context: Context) -> Any:
    """x + (zeros with y in a slice) adds y to that slice of x."""
    for position in (1, 0):
        padded = context.definition(op.args[position], "index_add")
        other = op.args[1 - position]
        if padded is None or context.uses[padded.out] != 1:
            continue
        if not isinstance(other, Value) or not same_type(other, op.out):
            continue
        key = padded.kwargs["key"]
        if same_type(padded.out, op.out) and _is_basic(key):
            return "plus_at", (other, padded.args[0], key), {}
    return None


def _write_before(x: Any, key: Any, context: Context, *functions: str) -> Op | None:
    """Return the op that wrote a region of x last, if it wrote the same one; else None."""
    for function in functions or ("assign_at", "plus_at"):
        written = context.definition(x, function)
        if written is not None and _is_basic(key) and _is_same(written.args[2], key):
            value = written.args[1]
            return written if isinstance(value, Value) and value.dtype == x.dtype else None
    return None


def _is_same(key: Any, other: Any) -> bool:
    """Whether two basic indices are the same: x[0] is x[0, ...], but not x[True]."""
    first, second = _parts(key), _parts(other)
    return len(first) == len(second) and all(
        type(part) is type(each) and part == each for part, each in zip(first, second, strict=True)
    )


def _parts(key: Any) -> tuple[Any, ...]:
    parts = key if isinstance(key, tuple) else (key,)
    return parts[:-1] if parts[-1:] == (Ellipsis,) else parts


def _is_basic(key: Any) -> bool:
    """Whether an index consists of slices and integers, constant or not."""
    parts = key if isinstance(key, tuple) else (key,)
    return is_basic_index(tuple([0 if _is_integer(part) else part for part in parts]))


def _is_integer(part: Any) -> bool:
    return isinstance(part, Value) and not part.shape and part.dtype.kind == "i"


def _keeps_order(key: Any) -> bool:
    """Whether an index that selects all elements keeps their order."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        part is None or part is Ellipsis or part == slice(None) or type(part) is int
        for part in parts
    )


def delay_writes(program: Program) -> Program:
    """Return the program with writes after the last reads of the array, so that none is copied."""
    roots: dict[Value, Value] = {}
    last_read: dict[Value, int] = {}
    first_use: dict[Value, int] = {}
    for number, op in enumerate(program.ops):
        for value in op.inputs:
            last_read[roots.get(value, value)] = number
            first_use.setdefault(value, number)
        if not returns_new_memory(op.function) and op.inputs:
            first = op.inputs[0]
            roots.update(dict.fromkeys(op.outs, roots.get(first, first)))
    delayed: dict[int, list[Op]] = {}
    ops: list[Op] = []
    for number, op in enumerate(program.ops):
        last = last_read.get(op.args[0], 0) if op.function in _WRITES else 0
        if number < last < first_use.get(op.out, len(program.ops)):
            delayed.setdefault(last, []).append(op)
        else:
            ops.append(op)
        ops += delayed.pop(number, [])
    return program.with_ops(ops)


_WRITES = ("assign_at", "plus_at")
