"""Primitives that read and write at indices.

`getitem` and `index_add` are each other's adjoint; `assign` writes a value over a region.
"""

from __future__ import annotations

from typing import Any

from chainrule.primitives.primitive import Primitive, forward_of, general, linear

Array = Any
Shape = tuple[int, ...]
Path = tuple[tuple[Primitive, dict[str, Any]], ...]


def _read(xp: Any, x: Array, *, key: Any) -> Array:
    return x[key]


def _scatter(xp: Any, g: Array, x_shape: Shape, *, key: Any) -> Array:
    return xp.index_add(g, shape=x_shape, key=key)


getitem = linear("getitem", _scatter, forward=_read, label="SliceBackward0", view=True)  # a view
select = linear("select", _scatter, forward=_read, view=True)  # the same, with ints alone
index = linear("index", _scatter, forward=_read)  # with arrays and masks: a copy

index_add = linear(
    "index_add",
    lambda xp, g, *, shape, key: g[key],
    forward=lambda xp, x, *, shape, key: xp.index_add(x, shape=shape, key=key),
    label="IndexAddBackward0",
)


def region(xp: Any, x: Array, path: Path) -> Array:
    """Return the part of `x` that a path of view operations leads to."""
    for primitive, settings in path:
        x = forward_of(primitive, xp)(x, **settings)
    return x


def _assign(xp: Any, base: Array, value: Array, *, path: Path, lasting: Any = None) -> Array:
    """Return `base` with `value` written over the region: one step of the path in, one out.

    `lasting` is None or, where an index repeats, says which of the values are not overwritten.
    """
    around = []  # what each step was taken on
    part = base
    for primitive, settings in path:
        around.append(part)
        part = forward_of(primitive, xp)(part, **settings)
    new = xp.broadcast_to(xp.astype(value, base.dtype), part.shape)
    for (primitive, settings), whole in zip(reversed(path), reversed(around), strict=True):
        if "key" in settings:
            new = xp.assign_at(whole, new, settings["key"])
        else:
            # Every other view that can be written to is a bijection: its adjoint is its inverse.
            plan = primitive.plan((True,))
            new = plan.pull(xp, new, (whole.shape,) if plan.saves else (), settings)[0]
    return new


def _assign_value(xp: Any, g: Array, *, path: Path, lasting: Any = None) -> Array:
    part = region(xp, g, path)
    return part if lasting is None else xp.masked(part, xp.asarray(lasting))


def _assign_base(xp: Any, g: Array, value_dtype: Any, *, path: Path) -> Array:
    return _assign(xp, g, xp.zeros((), dtype=value_dtype), path=path)


assign = general(
    "assign",
    _assign,
    vjp=(_assign_base, _assign_value),
    jvp=None,
    label="CopySlices",
    broadcasts=False,
)


def _along(xp: Any, g: Array, x_shape: Shape, index: Array, *, axis: int) -> Array:
    return xp.add_along_axis(g, index, shape=x_shape, axis=axis)


take_along_axis = general(
    "take_along_axis",
    lambda xp, x, index, *, axis: xp.take_along_axis(x, index, axis=axis),
    vjp=(_along, None),
    jvp=(lambda xp, t, index, *, axis: xp.take_along_axis(t, index, axis=axis), None),
    label="GatherBackward0",
    broadcasts=False,
)

add_along_axis = general(
    "add_along_axis",
    lambda xp, x, index, *, shape, axis: xp.add_along_axis(x, index, shape=shape, axis=axis),
    vjp=(lambda xp, g, index, *, axis: xp.take_along_axis(g, index, axis=axis), None),
    jvp=(
        lambda xp, t, index, *, shape, axis: xp.add_along_axis(t, index, shape=shape, axis=axis),
        None,
    ),
    label="ScatterBackward0",
    broadcasts=False,
)
