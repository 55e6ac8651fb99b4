"""Reads and writes through basic indices (slices and integers): rewrite rules, and their order.

Code that writes through slices, and its derivative, often writes a region twice, or reads what it
has just written. Keys that are the same select the same elements, each once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.backend import is_basic_index
from chainrule.compiler.ir.op_traits import WRITES, is_elementwise, returns_new_memory
from chainrule.compiler.ir.program import Op, Program, Shape, Value, same_type

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
    """What was written to the same region before does not matter; what fills all is the array."""
    x, value, key = op.args
    fits = isinstance(value, Value) and value.size == x.size and value.dtype == x.dtype
    if fits and _is_basic(key) and _keeps_order(key):
        return value if value.shape == x.shape else ("np.reshape", (value, x.shape), {})
    if _is_zero(context.number(value)) and _window(key, x.shape) == [*map(range, x.shape)]:
        return "np.zeros", (x.shape, x.dtype), {}
    written = _write_before(x, key, context)
    if written is None:
        return None
    context.uses[x] -= 1
    context.uses[written.args[0]] += 1
    return "assign_at", (written.args[0], value, key), {}


def _is_zero(number: Any) -> bool:
    return number is not None and repr(complex(number)) == "0j"  # not -0.0


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


def write_nothing(op: Op, context: Context) -> Any:
    """A write to a region without elements changes nothing."""
    x, value, key = op.args
    if not (x.size and same_type(x, op.out) and is_basic_index(key)) or np.size(value) > 1:
        return None
    return None if np.broadcast_to(0, x.shape)[key].size else x


def index_add(op: Op, context: Context) -> Any:
    """Zeros with no elements written are zeros; with all of them written, they are a reshape."""
    (value,) = op.args
    if op.out.size and not np.size(value):
        return "np.zeros", (op.out.shape, op.out.dtype), {}
    complete = isinstance(value, Value) and value.size == op.out.size
    if not complete or not _keeps_order(op.kwargs["key"]):
        return None
    return "np.reshape", (value, op.kwargs["shape"]), {}


def add_to_slice(op: Op, context: Context) -> Any:
    """x + (zeros with y at an index, to slices of which others are added) adds these to x."""
    for position in (1, 0):
        found = _padded(op, position, context)
        if found is not None:
            return _added_at(_base(op.args[1 - position], context), *found)
    for position in (1, 0):
        added = _added_to_padded(op, position, context)
        if added:
            base = op.args[1 - position]
            for part in added[:-1]:
                base = context.add("plus_at", base, *part)
            return "plus_at", (base, *added[-1]), {}
    return None


def _added_to_padded(op: Op, position: int, context: Context) -> list[tuple[Any, Any]]:
    """Return values and keys, in their order, if an operand is the sum of zeros with them there."""
    value, other, found = op.args[position], op.args[1 - position], list[tuple[Any, Any]]()
    if not (isinstance(other, Value) and same_type(other, op.out)):
        return []
    while (written := context.definition(value, "plus_at")) is not None:
        value, part, key = written.args
        if context.uses[written.out] != 1 or not (same_type(value, other) and _is_basic(key)):
            return []
        found.append((part, key))
    padded = context.definition(value, "index_add")
    if not found or padded is None or context.uses[value] != 1:
        return []
    key = padded.kwargs["key"]
    if not (same_type(value, other) and _is_basic(key)):
        return []
    return [(padded.args[0], key), *reversed(found)]


def subtract_from_slice(op: Op, context: Context) -> Any:
    """x - (zeros with y at an index) adds -y to x there."""
    found = _padded(op, 1, context)
    if found is None:
        return None
    base, (value, key) = _base(op.args[0], context), found
    return _added_at(base, context.add("np.negative", value), key)


def _added_at(base: Value, value: Any, key: Any) -> Any:
    if _is_basic(key):
        return "plus_at", (base, value, key), {}
    return "add_at", (base, value), {"key": key}


def _base(x: Value, context: Context) -> Value:
    """Return what is added to; where it is zeros around -(zeros around y), as zeros around -y.

    Their zeros have another sign, which a sum loses.
    """
    padded = context.definition(x, "index_add")
    if padded is None or context.uses[x] != 1:
        return x
    found = _inner_pad(padded.args[0], padded.kwargs["key"], x.shape, context, True)
    if found is None:
        return x
    return context.add("index_add", found[0], shape=x.shape, key=found[1])


def _padded(op: Op, position: int, context: Context) -> tuple[Any, Any] | None:
    """Return what an operand has at a key, and the key, if it has zeros elsewhere."""
    padded, other = context.definition(op.args[position], "index_add"), op.args[1 - position]
    if padded is None or context.uses[padded.out] != 1 or not isinstance(other, Value):
        return None
    key = padded.kwargs["key"]
    if not (same_type(other, op.out) and same_type(padded.out, op.out)):
        return None
    return padded.args[0], key


def pad_padded(op: Op, context: Context) -> Any:
    """Zeros around zeros around x are zeros around x."""
    shape = op.kwargs["shape"]
    found = _inner_pad(op.args[0], op.kwargs["key"], shape, context)
    return found and ("index_add", (found[0],), {"shape": shape, "key": found[1]})


def add_padded(op: Op, context: Context) -> Any:
    """Zeros around x need not be added to a slice."""
    base, value, key = op.args
    found = _inner_pad(value, key, base.shape, context, True)
    return found and ("plus_at", (base, *found), {})


def _inner_pad(
    value: Any, key: Any, shape: Shape, context: Context, of_negative: bool = False
) -> Any:
    """Return what zeros were added to before it is put at a key, and its key in the result.

    With `of_negative`, it may have become negative in between, zeros included.
    """
    negated = context.definition(value, "np.negative") if of_negative else None
    if negated is not None:
        value = negated.args[0]
    inner, outer = context.definition(value, "index_add"), _window(key, shape)
    if inner is None or outer is None:
        return None
    window = _window(inner.kwargs["key"], inner.out.shape)
    if window is None or inner.args[0].shape != tuple(map(len, window)):
        return None
    starts = [a.start + b.start for a, b in zip(outer, window, strict=True)]
    ends = [start + len(part) for start, part in zip(starts, window, strict=True)]
    found = inner.args[0]
    found = found if negated is None else context.add("np.negative", found)
    return found, tuple(map(slice, starts, ends))


def slice_of_elementwise(op: Op, context: Context) -> Any:
    """f(x, y)[1:] computes all elements for some of them, f(x[1:], y[1:]) does not."""
    whole, key = op.args
    made = context.definitions.get(whole)
    if made is None or context.uses[whole] != 1 or not is_elementwise(made.function):
        return None
    values = [v for v in made.inputs if v.shape]
    if made.kwargs or len(made.outs) > 1 or any(v.shape != whole.shape for v in values):
        return None
    if not values or _window(key, whole.shape) is None:
        return None
    parts = {v: context.add("getitem", v, key) for v in values}
    args = tuple(parts.get(arg, arg) if isinstance(arg, Value) else arg for arg in made.args)
    return made.function, args, {}


def _window(key: Any, shape: Shape) -> list[range] | None:
    """Return the indices along each axis that slices without steps select, None of other keys."""
    parts = key if isinstance(key, tuple) else (key,)
    if parts.count(Ellipsis) == 1:
        at = parts.index(Ellipsis)
        rest = parts[at + 1 :]
        parts = (*parts[:at], *[slice(None)] * (len(shape) - len(parts) + 1), *rest)
    if not all(type(part) is slice and part.step in (None, 1) for part in parts):
        return None
    ends = [part.start for part in parts] + [part.stop for part in parts]
    if not all(end is None or type(end) is int for end in ends):
        return None
    parts += (slice(None),) * (len(shape) - len(parts))
    return [range(n)[part] for n, part in zip(shape, parts, strict=True)]


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
        part is None or part is Ellipsis or type(part) is int or _is_forward(part) for part in parts
    )


def _is_forward(part: Any) -> bool:
    return isinstance(part, slice) and part.step in (None, 1)


def copy_small_reads(program: Program) -> Program:
    """Return the program with small parts of an array copied before it is written to.

    If nothing else of it is used afterwards, the write can be in place: else it copies the array.
    """
    roots, firsts, readers = _views_and_readers(program)
    made = {value: number for number, op in enumerate(program.ops) for value in op.outs}
    moved: dict[int, list[int]] = {}  # numbers of the reads to copy, by where they run
    taken: set[int] = set()
    for number, op in enumerate(program.ops):
        x = op.args[0] if op.function in WRITES else None
        if x is None or roots.get(x, x) is not x or x in program.constants or x.dtype.kind == "b":
            continue
        later = [v for last, v in readers.get(x, ()) if last > number]
        parts = {firsts.get(v) for v in later}
        reads = [made[v] for v in parts if v is not None]
        if not later or None in parts or not taken.isdisjoint(reads):
            continue
        if 4 * sum(program.ops[read].out.size for read in reads) > x.size:
            continue
        if all(_is_movable(program.ops[read], x, number, made) for read in reads):
            taken.update(reads)
            for read in sorted(reads):
                moved.setdefault(min(read, number), []).append(read)
    if not moved:
        return program
    ops: list[Op] = []
    for number, op in enumerate(program.ops):
        for read in moved.get(number, ()):
            part = program.ops[read]
            if not _is_basic(part.args[1]):  # a copy by itself
                ops.append(part)
                continue
            view = Value(part.out.shape, part.out.dtype)
            ops.append(Op(part.function, part.args, part.kwargs, (view,), part.location))
            ops.append(Op("np.positive", (view,), {}, part.outs, part.location))
        if number not in taken:
            ops.append(op)
    return program.with_ops(ops)


def _is_movable(read: Op, x: Value, number: int, made: dict[Value, int]) -> bool:
    """Whether an op reads a part of x, and may run before the op with a number."""
    if read.function != "getitem" or read.args[0] is not x:
        return False
    return all(made.get(v, -1) < number for v in read.inputs)


def _views_and_readers(
    program: Program,
) -> tuple[dict[Value, Value], dict[Value, Value], dict[Value, list[tuple[int, Value]]]]:
    """Return the owner of the memory of each view, the view of it that leads there, and uses.

    A use of the memory of a value is the number of an op, or of the end, and the operand.
    """
    roots: dict[Value, Value] = {}
    firsts: dict[Value, Value] = {}
    readers: dict[Value, list[tuple[int, Value]]] = {}
    for number, op in enumerate(program.ops):
        is_view = not returns_new_memory(op.function) and bool(op.inputs)
        for value in op.inputs:
            if op.function != "getitem" or value in roots:  # a view reads nothing
                readers.setdefault(roots.get(value, value), []).append((number, value))
        if is_view:
            first = op.inputs[0]
            roots.update(dict.fromkeys(op.outs, roots.get(first, first)))
            firsts.update({out: firsts.get(first, out) for out in op.outs})
    for value in program.results():
        readers.setdefault(roots.get(value, value), []).append((len(program.ops), value))
    return roots, firsts, readers


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
        last = last_read.get(op.args[0], 0) if op.function in WRITES else 0
        if number < last < first_use.get(op.out, len(program.ops)):
            delayed.setdefault(last, []).append(op)
        else:
            ops.append(op)
        ops += delayed.pop(number, [])
    return program.with_ops(ops)
