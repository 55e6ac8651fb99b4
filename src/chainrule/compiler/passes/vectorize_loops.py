"""Loops whose steps don't depend on each other, as one step on arrays of one dimension more.

A Jacobian or a Hessian row by row multiplies the same matrix with one vector after the other, and
reads it from memory each time: all of them at once are one product of matrices. Only such loops
become a batch; others have their step's arrays in the cache, which those of all steps may not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.backend import is_basic_index
from chainrule.compiler.ir.abstract_eval import DRAW, abstract_eval
from chainrule.compiler.ir.op_traits import is_elementwise
from chainrule.compiler.ir.program import Op, Program, Value, values_in

MATRIX = 1 << 10
"""A matrix of so many elements is worth being read once: smaller ones stay in the cache."""

MOST = 1 << 23
"""The most elements of an array of all steps."""


class _UnfitError(Exception):
    """A line of the body has no form for all steps at once."""


def batched(program: Program) -> Program:
    """Return the program with batches in the place of loops that are worth it."""
    ops: list[Op] = []
    for op in program.ops:
        try:
            ops += _Batch(op).ops if _is_worth(op) else [op]
        except _UnfitError:
            ops.append(op)
    return program.with_ops(ops)


def _is_worth(op: Op) -> bool:
    """Say whether a loop multiplies one large matrix with another vector in each step."""
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
        if any(out.size * steps > MOST for out in each.outs):
            return False
        if each.function == "np.matmul":
            matrix = any(v not in varying and v.size >= MATRIX for v in each.args)
            vector = any(v in varying and v.size == max(v.shape) for v in each.args)
            found = found or (matrix and vector)
    return found


class _Batch:
    """The lines that do what a loop does, all steps at once: they are the last dimension."""

    def __init__(self, loop: Op) -> None:
        self.steps: int = loop.kwargs["length"]
        self.ops: list[Op] = []
        self.all: dict[Value, Value] = {}  # what varies: its values in all steps
        (body,) = loop.regions
        for value, stack in zip(body.inputs, loop.args[1], strict=True):
            if not isinstance(stack, Value):
                raise _UnfitError("numbers of steps")
            axes = (*range(1, len(stack.shape)), 0)
            self.all[value] = self.add("np.permute_dims", stack, axes)
        for op in body.ops:
            if self.all.keys().isdisjoint(op.inputs):
                self.ops.append(op)
            else:
                self._op(op)
        for out, value in zip(loop.outs, body.outputs, strict=True):
            result = self.all.get(value)
            if result is None:
                self._add("np.broadcast_to", (value, out.shape), {}, loop, out)
            else:
                axes = (len(value.shape), *range(len(value.shape)))
                self._add("np.permute_dims", (result, axes), {}, loop, out)

    def _op(self, op: Op) -> None:
        write = _elementwise if is_elementwise(op.function) else _WRITERS.get(op.function)
        if write is None or len(op.outs) != 1:
            raise _UnfitError(op.function)
        function, args, kwargs = write(self, op)
        out = Value((*op.out.shape, self.steps), op.out.dtype, op.out.hint)
        self._add(function, args, kwargs, op, out)
        self.all[op.out] = out

    def _add(self, function: str, args: Any, kwargs: Any, op: Op, out: Value) -> None:
        if abstract_eval(function, args, kwargs).types != [(out.shape, out.dtype)]:
            raise _UnfitError(f"another result of {function}")
        self.ops.append(Op(function, args, kwargs, (out,), op.location))

    # --- what the forms of lines are made of ---

    def add(self, function: str, *args: Any) -> Value:
        """Add a line; return what comes out."""
        ((shape, dtype),) = abstract_eval(function, args, {}).types
        out = Value(shape, dtype)
        self.ops.append(Op(function, args, {}, (out,)))
        return out

    def shaped(self, value: Value, *shape: int) -> Value:
        return value if value.shape == shape else self.add("np.reshape", value, shape)

    def operand(self, value: Any) -> Any:
        """Return an operand of an elementwise function; what doesn't vary is broadcast."""
        if not isinstance(value, Value) or not value.shape:
            return self.all.get(value, value) if isinstance(value, Value) else value
        found = self.all.get(value)
        return self.shaped(value, *value.shape, 1) if found is None else found

    def repeated(self, value: Value) -> Value:
        """Return the value of all steps, copied for each where it doesn't vary."""
        shape = (*value.shape, self.steps)
        found = self.operand(value)
        return found if value in self.all else self.add("np.broadcast_to", found, shape)

    def only(self, op: Op) -> Value:
        """Return the first argument in all steps, if it is all that varies."""
        first, *others = op.args
        if any(v in self.all for v in values_in((others, tuple(op.kwargs.values())))):
            raise _UnfitError(f"another argument of {op.function} varies")
        return self.all[first]


Form = tuple[str, tuple[Any, ...], dict[str, Any]]


def _elementwise(batch: _Batch, op: Op) -> Form:
    if op.kwargs:
        raise _UnfitError("settings of an elementwise function")
    return op.function, tuple([batch.operand(arg) for arg in op.args]), {}


def _matmul(batch: _Batch, op: Op) -> Form:
    """What varies is columns of a matrix: A @ b for all b is A @ B, and b @ A is A.T @ B."""
    a, b = op.args
    if (a in batch.all) == (b in batch.all) or max(len(a.shape), len(b.shape)) > 2:
        raise _UnfitError("a product of two that vary")
    if b in batch.all:
        matrix, columns = batch.shaped(a, -1, a.shape[-1]), batch.all[b]
        columns = batch.shaped(columns, b.shape[0], -1)
    else:
        turned = b if len(b.shape) == 2 else batch.shaped(b, -1, 1)
        matrix, columns = batch.add("np.permute_dims", turned, (1, 0)), batch.all[a]
    product = batch.add("np.matmul", matrix, columns)
    return "np.reshape", (product, (*op.out.shape, batch.steps)), {}


def _reshape(batch: _Batch, op: Op) -> Form:
    return "np.reshape", (batch.only(op), (*op.out.shape, batch.steps)), {}


def _broadcast(batch: _Batch, op: Op) -> Form:
    return "np.broadcast_to", (batch.only(op), (*op.out.shape, batch.steps)), {}


def _permute(batch: _Batch, op: Op) -> Form:
    axes = [axis % len(op.out.shape) for axis in op.args[1]]
    return "np.permute_dims", (batch.only(op), (*axes, len(axes))), {}


def _astype(batch: _Batch, op: Op) -> Form:
    return "np.astype", (batch.only(op), *op.args[1:]), op.kwargs


def _reduced(batch: _Batch, op: Op) -> Form:
    if len(op.args) > 1:
        raise _UnfitError("settings by position")
    ndim, axis = len(op.args[0].shape), op.kwargs.get("axis")
    axes = range(ndim) if axis is None else np.atleast_1d(axis).tolist()
    settings = {**op.kwargs, "axis": tuple([a % ndim for a in axes])}
    return op.function, (batch.only(op),), settings


def _picked(batch: _Batch, op: Op) -> Form:
    return "getitem", (batch.only(op), _before(op.args[1])), {}


def _placed(batch: _Batch, op: Op) -> Form:
    settings = {"shape": (*op.out.shape, batch.steps), "key": _before(op.kwargs["key"])}
    return "index_add", (batch.only(op),), settings


def _written(batch: _Batch, op: Op) -> Form:
    base, value, key = op.args
    return op.function, (batch.repeated(base), batch.operand(value), _before(key)), {}


def _joined(batch: _Batch, op: Op) -> Form:
    parts = [batch.repeated(part) for part in op.args[0]]
    axis = op.kwargs.get("axis", 0)
    return op.function, (tuple(parts),), {"axis": axis % len(op.out.shape)}


def _before(key: Any) -> Any:
    """Return an index that leaves the dimension of steps as it is."""
    parts = key if isinstance(key, tuple) else (key,)
    if values_in(parts) or not is_basic_index(parts):
        raise _UnfitError("an index of arrays")
    return (*parts, slice(None)) if any(part is Ellipsis for part in parts) else key


_WRITERS: dict[str, Callable[[_Batch, Op], Form]] = {
    "np.matmul": _matmul,
    "np.reshape": _reshape,
    "np.permute_dims": _permute,
    "np.broadcast_to": _broadcast,
    "np.astype": _astype,
    "getitem": _picked,
    "index_add": _placed,
    "plus_at": _written,
    "assign_at": _written,
    "np.where": _elementwise,
    "np.stack": _joined,
    "np.concat": _joined,
    **dict.fromkeys(("np.sum", "np.max", "np.min", "np.mean"), _reduced),
}
