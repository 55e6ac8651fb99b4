"""New axes beside index arrays and computed integers, which machine code doesn't have: reshapes.

Loops that take windows of arrays often index with them, as in ``x[:, i : i + 3, None]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.compiler.ir.program import Op, Program, Shape, Value, values_in

_POSITIONS = {"getitem": 1, "assign_at": 2, "plus_at": 2}
_KEYED = ("index_add", "add_at")


def split_new_axes(program: Program) -> Program:
    """Return the program with reshapes in the place of new axes in indices that hold values."""
    if not any(_new_axes(op) for op in program.ops):
        return program
    ops: list[Op] = []
    for op in program.ops:
        axes = _new_axes(op)
        ops += _without(op, axes) if axes else [op]
    return program.with_ops(ops)


def _without(op: Op, axes: list[int]) -> list[Op]:
    """Return what does the same as an op whose selection has new axes, counted from its end."""
    if op.function == "getitem":
        x, key = op.args
        kept = tuple([n for i, n in enumerate(op.out.shape, -len(op.out.shape)) if i not in axes])
        part = Value(kept, op.out.dtype, op.out.hint)
        read = Op("getitem", (x, _dropped(key)), {}, (part,), op.location)
        return [read, Op("np.reshape", (part, op.out.shape), {}, op.outs, op.location)]
    place = len(op.args) - 1 if op.function in _KEYED else 1
    value, args, kwargs = op.args[place], [*op.args], dict(op.kwargs)
    before: list[Op] = []
    if isinstance(value, Value):
        kept = tuple([n for i, n in enumerate(value.shape, -len(value.shape)) if i not in axes])
        args[place] = Value(kept, value.dtype, value.hint)
        before = [Op("np.reshape", (value, kept), {}, (args[place],), op.location)]
    if op.function in _KEYED:
        kwargs["key"] = _dropped(kwargs["key"])
    else:
        args[2] = _dropped(args[2])
    return [*before, Op(op.function, tuple(args), kwargs, op.outs, op.location)]


def _dropped(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([part for part in key if part is not None])


def _new_axes(op: Op) -> list[int]:
    """Return the axes that an index with values adds to its selection, counted from the end."""
    key = op.args[_POSITIONS[op.function]] if op.function in _POSITIONS else op.kwargs.get("key")
    if op.function not in _POSITIONS and op.function not in _KEYED:
        return []
    if not isinstance(key, tuple) or not values_in(key) or not any(p is None for p in key):
        return []
    shape = op.kwargs["shape"] if op.function == "index_add" else op.args[0].shape
    return _added_axes(key, shape)


def _added_axes(key: tuple[Any, ...], shape: Shape) -> list[int]:
    used = sum(part is not None and part is not ... for part in key)
    rest = [slice(None)] * (len(shape) - used)
    at = key.index(...) if any(part is ... for part in key) else len(key)
    parts = [*key[:at], *rest, *key[at + 1 :]]
    chosen = [i for i, part in enumerate(parts) if not (part is None or isinstance(part, slice))]
    if chosen[-1] - chosen[0] >= len(chosen):
        return []  # NumPy moves their axes to the front
    broadcast = np.broadcast_shapes(
        *(parts[i].shape for i in chosen if isinstance(parts[i], Value))
    )
    axes: list[bool] = []  # whether each is new
    for i, part in enumerate(parts):
        if part is None or isinstance(part, slice):
            axes.append(part is None)
        elif i == chosen[0]:
            axes += [False] * len(broadcast)
    return [i - len(axes) for i, is_new in enumerate(axes) if is_new]
