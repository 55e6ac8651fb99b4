"""New axes beside index arrays and computed integers, which machine code doesn't have: reshapes.

Loops that take windows of arrays often index with them, as in ``x[:, i : i + 3, None]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.compiler.ir.program import Op, Program, Shape, Value, values_in
from chainrule.compiler.passes.structural_keys import INDEX_POSITIONS


def split_new_axes(program: Program) -> Program:
    """Return the program with reshapes in the place of new axes in indices that hold values."""
    return program.with_ops([part for op in program.ops for part in _split(op)])


def _split(op: Op) -> list[Op]:
    """Return the op, or what does the same without new axes in its index."""
    position = INDEX_POSITIONS.get(op.function)
    key = op.kwargs.get("key") if position is None else op.args[position]
    if not isinstance(key, tuple) or not any(part is None for part in key) or not op.args:
        return [op]
    shape = op.kwargs["shape"] if "shape" in op.kwargs else op.args[0].shape
    axes = _added_axes(key, shape) if values_in(key) else []
    if not axes:
        return [op]

    def without(value: Value) -> Value:
        kept = [n for i, n in enumerate(value.shape, -len(value.shape)) if i not in axes]
        return Value(tuple(kept), value.dtype, value.hint)

    rest = tuple([part for part in key if part is not None])
    if op.function == "getitem":
        read = without(op.out)
        return [
            Op("getitem", (op.args[0], rest), {}, (read,), op.location),
            Op("np.reshape", (read, op.out.shape), {}, op.outs, op.location),
        ]
    args, kwargs, before = [*op.args], dict(op.kwargs), list[Op]()
    if position is None:
        kwargs["key"] = rest
    else:
        args[position] = rest
    place = (len(args) if position is None else position) - 1
    value = args[place]
    if isinstance(value, Value):
        args[place] = without(value)
        shaped = (value, args[place].shape)
        before.append(Op("np.reshape", shaped, {}, (args[place],), op.location))
    return [*before, Op(op.function, tuple(args), kwargs, op.outs, op.location)]


def _added_axes(key: tuple[Any, ...], shape: Shape) -> list[int]:
    """Return the axes that an index with values adds to its selection, counted from the end."""
    used = sum(part is not None and part is not ... for part in key)
    rest = [slice(None)] * (len(shape) - used)
    at = next((i for i, part in enumerate(key) if part is ...), len(key))
    parts = [*key[:at], *rest, *key[at + 1 :]]
    chosen = [i for i, part in enumerate(parts) if not (part is None or isinstance(part, slice))]
    if chosen[-1] - chosen[0] >= len(chosen):
        return []  # NumPy moves their axes to the front
    arrays = [parts[i] for i in chosen if isinstance(parts[i], Value)]
    broadcast = np.broadcast_shapes(*[array.shape for array in arrays])
    axes: list[bool] = []  # whether each is new
    for i, part in enumerate(parts):
        if part is None or isinstance(part, slice):
            axes.append(part is None)
        elif i == chosen[0]:
            axes += [False] * len(broadcast)
    return [i - len(axes) for i, is_new in enumerate(axes) if is_new]
