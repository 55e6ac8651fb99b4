"""Loop vectorisation: loops with independent steps become ops on arrays with a batch axis.

A Jacobian or Hessian computed row by row multiplies the same matrix with one vector per step, and
reads it from memory each time: all steps at once are one matrix product. Only such loops are
vectorised: in others the arrays of one step fit the cache, and those of all steps may not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.backend import is_basic_index
from chainrule.compiler.ir.abstract_eval import DRAW, abstract_eval
from chainrule.compiler.ir.op_traits import is_elementwise
from chainrule.compiler.ir.program import Op, Program, Value, values_in

MIN_MATRIX_SIZE = 1 << 10
"""Number of elements of the matrix from which vectorising pays: smaller ones stay in the cache."""

MAX_BATCH_SIZE = 1 << 23
"""Largest number of elements of an array with the batch axis."""


class _NoBatchRuleError(Exception):
    """An op of the loop body has no vectorised form."""


def vectorize_independent_loops(program: Program) -> Program:
    """Return the program with batched ops in place of loops where that pays."""
    ops: list[Op] = []
    for op in program.ops:
        try:
            ops += _Batch(op).ops if _is_profitable(op) else [op]
        except _NoBatchRuleError:
            ops.append(op)
    return program.with_ops(ops)


def _is_profitable(op: Op) -> bool:
    """Whether a loop without carry multiplies one large matrix with a vector of each step."""
    if op.function != "for" or op.args[0]:
        return False
    (body,) = op.regions
    steps = op.kwargs["length"]
    varying = set(body.inputs)
    found = False
    for each in body.ops:
        if each.regions or each.function == DRAW:
            return False
        if varying.isdisjoint(each.inputs):
            continue
        varying.update(each.outs)
        if any(out.size * steps > MAX_BATCH_SIZE for out in each.outs):
            return False
        if each.function == "np.matmul":
            matrix = any(v not in varying and v.size >= MIN_MATRIX_SIZE for v in each.args)
            vector = any(v in varying and v.size == max(v.shape) for v in each.args)
            found = found or (matrix and vector)
    return found


class _Batch:
    """The ops of a loop for all steps at once; the batch axis, one entry per step, is the last."""

    def __init__(self, loop: Op) -> None:
        self.steps: int = loop.kwargs["length"]
        self.ops: list[Op] = []
        self.batched: dict[Value, Value] = {}  # of each value that varies with the step
        (body,) = loop.regions
        for value, stack in zip(body.inputs, loop.args[1], strict=True):
            if not isinstance(stack, Value):
                raise _NoBatchRuleError("a slice of a range")
            axes = (*range(1, len(stack.shape)), 0)
            self.batched[value] = self.add("np.permute_dims", stack, axes)
        for op in body.ops:
            if self.batched.keys().isdisjoint(op.inputs):
                self.ops.append(op)
            else:
                self._add_batched(op)
        for out, value in zip(loop.outs, body.outputs, strict=True):
            result = self.batched.get(value)
            if result is None:
                self._add("np.broadcast_to", (value, out.shape), {}, loop, out)
            else:
                axes = (len(value.shape), *range(len(value.shape)))
                self._add("np.permute_dims", (result, axes), {}, loop, out)

    def _add_batched(self, op: Op) -> None:
        rule = _elementwise if is_elementwise(op.function) else _BATCH_RULES.get(op.function)
        if rule is None or len(op.outs) != 1:
            raise _NoBatchRuleError(op.function)
        function, args, kwargs = rule(self, op)
        out = Value((*op.out.shape, self.steps), op.out.dtype, op.out.hint)
        self._add(function, args, kwargs, op, out)
        self.batched[op.out] = out

    def _add(self, function: str, args: Any, kwargs: Any, op: Op, out: Value) -> None:
        if abstract_eval(function, args, kwargs).types != [(out.shape, out.dtype)]:
            raise _NoBatchRuleError(f"{function} has a result of another type")
        self.ops.append(Op(function, args, kwargs, (out,), op.location))

    # --- helpers of the batch rules ---

    def add(self, function: str, *args: Any) -> Value:
        """Append an op; return its result."""
        ((shape, dtype),) = abstract_eval(function, args, {}).types
        out = Value(shape, dtype)
        self.ops.append(Op(function, args, {}, (out,)))
        return out

    def reshape(self, value: Value, *shape: int) -> Value:
        return value if value.shape == shape else self.add("np.reshape", value, shape)

    def operand(self, value: Any) -> Any:
        """Return an operand that broadcasts along the batch axis."""
        if not isinstance(value, Value) or not value.shape:
            return self.batched.get(value, value) if isinstance(value, Value) else value
        found = self.batched.get(value)
        return self.reshape(value, *value.shape, 1) if found is None else found

    def broadcast_operand(self, value: Value) -> Value:
        """Return an operand with the full batch axis, repeated where it doesn't vary."""
        shape = (*value.shape, self.steps)
        found = self.operand(value)
        return found if value in self.batched else self.add("np.broadcast_to", found, shape)

    def single_operand(self, op: Op) -> Value:
        """Return the first operand, batched; raise if any other operand varies."""
        first, *others = op.args
        if any(v in self.batched for v in values_in((others, tuple(op.kwargs.values())))):
            raise _NoBatchRuleError(f"another argument of {op.function} varies")
        return self.batched[first]


Call = tuple[str, tuple[Any, ...], dict[str, Any]]
"""Function, arguments and keyword arguments of the batched op."""


def _elementwise(batch: _Batch, op: Op) -> Call:
    if op.kwargs:
        raise _NoBatchRuleError("settings of an elementwise function")
    return op.function, tuple([batch.operand(arg) for arg in op.args]), {}


def _matmul(batch: _Batch, op: Op) -> Call:
    """The vectors become columns of B: A @ b for all b is A @ B, and b @ A is A.T @ B."""
    a, b = op.args
    if (a in batch.batched) == (b in batch.batched) or max(len(a.shape), len(b.shape)) > 2:
        raise _NoBatchRuleError("both operands vary")
    if b in batch.batched:
        matrix, columns = batch.reshape(a, -1, a.shape[-1]), batch.batched[b]
        columns = batch.reshape(columns, b.shape[0], -1)
    else:
        right = b if len(b.shape) == 2 else batch.reshape(b, -1, 1)
        matrix, columns = batch.add("np.permute_dims", right, (1, 0)), batch.batched[a]
    product = batch.add("np.matmul", matrix, columns)
    return "np.reshape", (product, (*op.out.shape, batch.steps)), {}


def _reshape(batch: _Batch, op: Op) -> Call:
    return "np.reshape", (batch.single_operand(op), (*op.out.shape, batch.steps)), {}


def _broadcast(batch: _Batch, op: Op) -> Call:
    return "np.broadcast_to", (batch.single_operand(op), (*op.out.shape, batch.steps)), {}


def _permute(batch: _Batch, op: Op) -> Call:
    axes = [axis % len(op.out.shape) for axis in op.args[1]]
    return "np.permute_dims", (batch.single_operand(op), (*axes, len(axes))), {}


def _astype(batch: _Batch, op: Op) -> Call:
    return "np.astype", (batch.single_operand(op), *op.args[1:]), op.kwargs


def _reduce(batch: _Batch, op: Op) -> Call:
    if len(op.args) > 1:
        raise _NoBatchRuleError("positional settings")
    ndim, axis = len(op.args[0].shape), op.kwargs.get("axis")
    axes = range(ndim) if axis is None else np.atleast_1d(axis).tolist()
    settings = {**op.kwargs, "axis": tuple([a % ndim for a in axes])}
    return op.function, (batch.single_operand(op),), settings


def _getitem(batch: _Batch, op: Op) -> Call:
    return "getitem", (batch.single_operand(op), _batch_index(op.args[1])), {}


def _index_add(batch: _Batch, op: Op) -> Call:
    settings = {"shape": (*op.out.shape, batch.steps), "key": _batch_index(op.kwargs["key"])}
    return "index_add", (batch.single_operand(op),), settings


def _write_at(batch: _Batch, op: Op) -> Call:
    base, value, key = op.args
    args = (batch.broadcast_operand(base), batch.operand(value), _batch_index(key))
    return op.function, args, {}


def _join(batch: _Batch, op: Op) -> Call:
    parts = [batch.broadcast_operand(part) for part in op.args[0]]
    axis = op.kwargs.get("axis", 0)
    return op.function, (tuple(parts),), {"axis": axis % len(op.out.shape)}


def _batch_index(key: Any) -> Any:
    """Return the index with the batch axis kept."""
    parts = key if isinstance(key, tuple) else (key,)
    if values_in(parts) or not is_basic_index(parts):
        raise _NoBatchRuleError("array indices")
    return (*parts, slice(None)) if any(part is Ellipsis for part in parts) else key


_BATCH_RULES: dict[str, Callable[[_Batch, Op], Call]] = {
    "np.matmul": _matmul,
    "np.reshape": _reshape,
    "np.permute_dims": _permute,
    "np.broadcast_to": _broadcast,
    "np.astype": _astype,
    "getitem": _getitem,
    "index_add": _index_add,
    "plus_at": _write_at,
    "assign_at": _write_at,
    "np.where": _elementwise,
    "np.stack": _join,
    "np.concat": _join,
    **dict.fromkeys(("np.sum", "np.max", "np.min", "np.mean"), _reduce),
}
