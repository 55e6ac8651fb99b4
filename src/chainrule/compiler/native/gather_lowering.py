"""Lowering of gathers, scatters and running sums of large arrays to calls of kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.compiler.codegen import runtime
from chainrule.compiler.ir.program import Op, Program, Shape, Value
from chainrule.compiler.native import gather_scatter
from chainrule.compiler.native.call_wrapper import fresh, to_out
from chainrule.compiler.native.kernel import MIN_SIZE
from chainrule.compiler.native.running_sums import running_product, running_sum
from chainrule.compiler.passes import eliminate_dead_code
from chainrule.compiler.passes.regions import with_regions

Array = Any
Out = tuple[Array | None]

# --- functions of compiled programs ---------------------------------------------------------------
# Where an index is out of bounds, NumPy computes instead, and raises.


def flat_index(shape: Shape, *indices: Array, out: Out = (None,)) -> Array:
    """Return the positions of indices along the axes of an array of a shape, in C order."""
    made = fresh(out[0], np.broadcast_shapes(*[index.shape for index in indices]), np.int64)
    if not gather_scatter.flatten(indices, shape, made):
        np.broadcast_to(np.zeros((), bool), shape)[indices]
    return to_out(out[0], made)


def gather(x: Array, index: Array, axes: int = 1, out: Out = (None,)) -> Array:
    """Return the elements of `x` at an index of its first axes, taken as one."""
    rows = x if axes == 1 else x.reshape(-1, *x.shape[axes:])
    found = gather_scatter.take_rows(rows, _plain(index, np.int64), out[0])
    return to_out(out[0], rows[index]) if found is None else found


def gather_columns(*parts: Any, out: Out = (None,)) -> Array:
    """Return matrices side by side: each part is one, or a tuple of a matrix and of row numbers."""
    widths = [(part[0] if part.__class__ is tuple else part).shape[1] for part in parts]
    rows = [len(part[-1]) if part.__class__ is tuple else len(part) for part in parts]
    made = out[0]
    if made is None:
        made = np.empty((rows[0], sum(widths)), parts[0][0].dtype)
    begin = 0
    for part, width in zip(parts, widths, strict=True):
        columns = made[:, begin : begin + width]
        if part.__class__ is tuple:
            gather(part[0], part[1], out=(columns,))
        else:
            columns[...] = part
        begin += width
    return made


def index_add(value: Array, shape: Shape, index: Array, axes: int = 1, out: Out = (None,)) -> Array:
    """Return zeros with values added at an index of the first axes, taken as one."""
    return _add(None, value, shape, index, axes, out[0])


def add_at(base: Array, value: Array, index: Array, axes: int = 1, out: Out = (None,)) -> Array:
    """Return a copy of an array with values added at an index of the first axes."""
    return _add(_plain(base), value, base.shape, index, axes, out[0])


def _add(
    base: Array | None, value: Array, shape: Shape, index: Array, axes: int, out: Array | None
) -> Array:
    value = np.broadcast_to(value, index.shape + shape[axes:])
    made = fresh(out, shape, value.dtype)
    rows = made.reshape(-1, *shape[axes:])
    if gather_scatter.add_rows(base, value, _plain(index, np.int64), rows) is None:
        np.add.at(rows, index, value)  # raises
    return to_out(out, made)


def gather_last(x: Array, index: Array, out: Out = (None,)) -> Array:
    """Return the elements of `x` at an index of the last axis."""
    found = gather_scatter.take_along_last(_plain(x), _plain(index, np.int64), out[0], shared=True)
    return to_out(out[0], x[..., index]) if found is None else found


def index_add_last(value: Array, shape: Shape, index: Array, out: Out = (None,)) -> Array:
    """Return zeros with values added at an index of the last axis."""
    found = _add_last(None, value, shape, index, out[0])
    if found is not None:
        return found
    return to_out(out[0], runtime.index_add(value, shape=shape, key=(..., index)))


def add_at_last(base: Array, value: Array, index: Array, out: Out = (None,)) -> Array:
    """Return a copy of an array with values added at an index of the last axis."""
    found = _add_last(_plain(base), value, base.shape, index, out[0])
    if found is not None:
        return found
    return to_out(out[0], runtime.add_at(base, value, key=(..., index)))


def _add_last(
    base: Array | None, value: Array, shape: Shape, index: Array, out: Array | None
) -> Array | None:
    value = _plain(np.broadcast_to(value, shape[:-1] + index.shape))
    index = _plain(index, np.int64)
    return gather_scatter.add_along_last(base, value, index, shape, out, shared=True)


def gather_along(x: Array, index: Array, axis: int, out: Out = (None,)) -> Array:
    """Return the elements of `x` at an index along one axis."""
    plain = _plain(x), _plain(index)
    if axis == x.ndim - 1:
        found = gather_scatter.take_along_last(*plain, out[0])
    else:
        found = gather_scatter.take_across(*plain, axis, out[0])
    return to_out(out[0], np.take_along_axis(x, index, axis)) if found is None else found


def scatter_along(x: Array, index: Array, shape: Shape, axis: int, out: Out = (None,)) -> Array:
    """Return zeros with the elements of `x` added at an index along one axis."""
    plain = _plain(x), _plain(index)
    if axis == x.ndim - 1:
        found = gather_scatter.add_along_last(None, *plain, shape, out[0])
    else:
        found = gather_scatter.add_across(*plain, shape, axis, out[0])
    if found is not None:
        return found
    return to_out(out[0], runtime.add_along_axis(x, index, shape=shape, axis=axis))


def _plain(array: Array, dtype: Any = None) -> Array:
    return np.require(array, dtype, ["C", "A"])


_FUNCTIONS: tuple[Callable[..., Array], ...] = (
    *(flat_index, gather, gather_columns, index_add, add_at),
    *(gather_last, index_add_last, add_at_last, gather_along, scatter_along),
    *(running_sum, running_product),
)
FUNCTIONS = {function.__name__: function for function in _FUNCTIONS}
"""Functions of the namespace `native` of compiled programs."""

# --- lowering -------------------------------------------------------------------------------------

_ADDED = 8
"""Number of elements that a loop computes in the time that NumPy takes to add one at an index."""


def lower_indexing(program: Program) -> tuple[Program, int]:
    """Return a program that calls kernels for large gathers, scatters and running sums.

    The second result is the work that they save, in elements computed by operations.
    """
    lowering = _Lowering(program)
    return _with_gathered_columns(lowering.program), lowering.work


Found = tuple[str, tuple[Any, ...], int] | None
"""The name of a function, its arguments, and the number of elements that it moves."""


class _Lowering:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.ops: list[Op] = []
        self.work = 0
        self.flat: dict[tuple[Shape, tuple[Value, ...]], Value] = {}
        self.zeros = {op.out for op in program.ops if op.function == "np.zeros"}
        for op in program.ops:
            self._add(op)
        self.program = eliminate_dead_code(program.with_ops(self.ops))

    def _add(self, op: Op) -> None:
        if op.regions:
            lowered = [lower_indexing(region) for region in op.regions]
            self.ops.append(with_regions(op, tuple([region for region, _ in lowered])))
            self.work += op.kwargs.get("length", 1) * sum([saved for _, saved in lowered])
            return
        match op.function:
            case "getitem":
                found = self._gather(op)
            case "index_add":
                value = op.args[0]
                found = self._scatter(op, value, "index_add", (value, op.kwargs["shape"]))
            case "add_at":
                found = self._add_at(op)
            case "take_along_axis":
                found = _gather_along(op)
            case "add_along_axis":
                found = _scatter_along(op)
            case "np.cumulative_sum" | "np.cumulative_prod":
                found = _running(op)
            case _:
                found = None
        if found is None:
            self.ops.append(op)
            return
        name, args, moved = found
        self.work += moved * (1 if name.startswith("gather") else _ADDED)
        self.ops.append(Op(f"native.{name}", args, {"over": (None,)}, op.outs, op.location))

    def _gather(self, op: Op) -> Found:
        x, key = op.args
        if op.out.size < MIN_SIZE or not _is_real(x) or not x.size:
            return None
        last = _last_index(key, x)
        if last is not None:
            return "gather_last", (x, last), op.out.size
        indices = _leading_indices(key)
        if not indices:
            return None
        return "gather", (x, *self._as_one(op, indices, x.shape)), op.out.size

    def _add_at(self, op: Op) -> Found:
        base, value = op.args
        if self._is_zero(base):
            return self._scatter(op, value, "index_add", (value, base.shape))
        is_same = base.dtype == op.out.dtype and base.shape == op.out.shape
        return self._scatter(op, value, "add_at", (base, value)) if is_same else None

    def _is_zero(self, base: Value) -> bool:
        """Whether an array is known to have zeros only, none of them negative."""
        known = self.program.constants.get(base)
        if known is None:
            return base in self.zeros
        return not known.any() and not np.signbit(known).any()

    def _scatter(self, op: Op, value: Any, name: str, args: tuple[Any, ...]) -> Found:
        out, key = op.out, op.kwargs["key"]
        if not isinstance(value, Value) or value.dtype != out.dtype or not _is_real(value):
            return None
        last = _last_index(key, out)
        if last is not None:
            moved = out.size // (out.shape[-1] or 1) * last.size
            fits = moved >= MIN_SIZE and out.size
            return (f"{name}_last", (*args, last), moved) if fits else None
        indices = _leading_indices(key)
        if not indices or not out.size:
            return None
        shape = np.broadcast_shapes(*[index.shape for index in indices])
        moved = Value((*shape, *out.shape[len(indices) :]), out.dtype).size
        if moved < MIN_SIZE:
            return None
        return name, (*args, *self._as_one(op, indices, out.shape)), moved

    def _as_one(self, op: Op, indices: tuple[Value, ...], shape: Shape) -> tuple[Any, ...]:
        """Return one index of the first axes, and their number if there are several."""
        if len(indices) == 1:
            return indices
        indexed = shape[: len(indices)]
        if (indexed, indices) not in self.flat:
            flat = Value(np.broadcast_shapes(*[index.shape for index in indices]), np.int64)
            args = (indexed, *indices)
            self.ops.append(Op("native.flat_index", args, {"over": (None,)}, (flat,), op.location))
            self.flat[indexed, indices] = flat
        return self.flat[indexed, indices], len(indices)


def _gather_along(op: Op) -> Found:
    x, index = op.args
    axis = op.kwargs["axis"] % len(x.shape)
    fits = _is_along(x, index, axis)
    return ("gather_along", (x, index, axis), index.size) if fits else None


def _scatter_along(op: Op) -> Found:
    x, index = op.args
    axis = op.kwargs["axis"] % len(x.shape)
    fits = _is_along(op.out, index, axis) and x.shape == index.shape and x.dtype == op.out.dtype
    return ("scatter_along", (x, index, op.out.shape, axis), index.size) if fits else None


def _running(op: Op) -> Found:
    x, axis = op.args[0], op.kwargs.get("axis", 0)
    is_same = x.dtype == op.out.dtype and _is_real(x) and op.kwargs.keys() <= {"axis"}
    if not is_same or x.size < MIN_SIZE or len(op.args) > 1:
        return None
    name = "running_sum" if op.function == "np.cumulative_sum" else "running_product"
    return name, (x, axis % len(x.shape)), x.size


def _is_along(x: Value, index: Value, axis: int) -> bool:
    """Whether indices along one axis are as many as the elements beside it."""
    others = [(*v.shape[:axis], *v.shape[axis + 1 :]) for v in (x, index)]
    return (
        index.size >= MIN_SIZE
        and others[0] == others[1]
        and index.dtype == np.int64
        and _is_real(x)
    )


def _is_real(value: Value) -> bool:
    return value.dtype.char in "fd" and value.dtype.isnative


def _is_index(part: Any) -> bool:
    known = isinstance(part, Value) and part.dtype.kind in "iu" and part.dtype.isnative
    return known and part.dtype != np.uint64


def _is_full(part: Any) -> bool:
    """Whether a part of a key takes all of one or more axes."""
    return part is Ellipsis or (isinstance(part, slice) and part == slice(None))


def _last_index(key: Any, x: Value) -> Value | None:
    """Return the index array of a key that indexes the last of several axes only."""
    parts = key if isinstance(key, tuple) else (key,)
    if len(parts) < 2 or not all(map(_is_full, parts[:-1])) or not _is_index(parts[-1]):
        return None
    is_last = Ellipsis in parts[:-1] or len(parts) == len(x.shape)
    index: Value = parts[-1]
    return index if is_last and index.shape and len(x.shape) > 1 else None


def _leading_indices(key: Any) -> tuple[Value, ...]:
    """Return the index arrays of a key that indexes the first axes only; else an empty tuple."""
    parts = key if isinstance(key, tuple) else (key,)
    count = 0
    while count < len(parts) and _is_index(parts[count]):
        count += 1
    known = all(map(_is_full, parts[count:])) and any([v.shape for v in parts[:count]])
    return parts[:count] if known else ()


def _with_gathered_columns(program: Program) -> Program:
    """Return a program in which gathers write to the columns of a concatenation directly."""
    made = {op.out: op for op in program.ops if op.function == "native.gather"}
    uses: dict[Value, int] = {}
    for op in program.ops:
        for value in op.inputs:
            uses[value] = uses.get(value, 0) + 1
    for value in program.results():
        uses[value] = uses.get(value, 0) + 1

    def is_row_gather(value: Any) -> bool:
        op = made.get(value)
        is_matrix = op is not None and len(op.args) == 2 and len(op.args[0].shape) == 2
        return is_matrix and uses[value] == 1 and len(value.shape) == 2

    ops: list[Op] = []
    merged: set[Value] = set()
    for op in program.ops:
        if op.function in ("np.concat", "np.concatenate") and len(op.out.shape) == 2:
            values = op.args[0]
            axis = (*op.args[1:], *op.kwargs.values())
            gathers = [v for v in values if is_row_gather(v)]
            if gathers and axis in ((1,), (-1,)) and all(v.dtype == op.out.dtype for v in values):
                parts = tuple([made[v].args if v in gathers else v for v in values])
                merged.update(gathers)
                op = Op("native.gather_columns", parts, {"over": (None,)}, op.outs, op.location)
        ops.append(op)
    return program.with_ops([op for op in ops if merged.isdisjoint(op.outs)]) if merged else program
