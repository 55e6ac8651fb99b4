"""Shape manipulation: reshape, permute, broadcast, join, split. Most primitives return views."""

from __future__ import annotations

from typing import Any

from chainrule.primitives.primitive import linear

Array = Any
Shape = tuple[int, ...]

reshape = linear(
    "reshape",
    lambda xp, g, x_shape: xp.reshape(g, x_shape),
    label="ViewBackward0",
    view=True,
)

reshape_copy = linear(  # where the memory layout allows no view
    "reshape_copy",
    lambda xp, g, x_shape: xp.reshape(g, x_shape),
    forward=lambda xp, x, *, shape: xp.reshape(x, shape, copy=True),
    label="UnsafeViewBackward0",
)


def _inverse(axes: Shape) -> Shape:
    back = [0] * len(axes)
    for position, axis in enumerate(axes):
        back[axis] = position
    return tuple(back)


permute_dims = linear(
    "permute_dims",
    lambda xp, g, *, axes: xp.permute_dims(g, _inverse(axes)),
    label="PermuteBackward0",
    view=True,
    form="permutation",
)

transpose = linear(
    "transpose",
    lambda xp, g, *, axes: xp.permute_dims(g, axes),
    forward=lambda xp, x, *, axes: xp.permute_dims(x, axes),
    label="TransposeBackward0",
    view=True,
    form="permutation",
)


def sum_to(xp: Any, g: Array, shape: Shape) -> Array:
    """Return `g` summed to a shape that broadcasts to its own: the adjoint of broadcasting."""
    lead = g.ndim - len(shape)
    axes = tuple(
        [i for i in range(g.ndim) if i < lead or (shape[i - lead] == 1 and g.shape[i] != 1)]
    )
    if axes:
        g = xp.sum(g, axis=axes, keepdims=True)
    return xp.reshape(g, shape) if lead else g


broadcast_to = linear(
    "broadcast_to",
    lambda xp, g, x_shape: sum_to(xp, g, x_shape),
    label="ExpandBackward0",
    view=True,
)

flip = linear(
    "flip",
    lambda xp, g, *, axis: xp.flip(g, axis=axis),
)

roll = linear(
    "roll",
    lambda xp, g, *, shift, axis: xp.roll(g, shift=tuple(-n for n in shift), axis=axis),
    forward=lambda xp, x, *, shift, axis: xp.roll(x, shift=shift, axis=axis),
)


def _split_like(xp: Any, g: Array, shapes: tuple[Shape, ...], axis: int) -> tuple[Array, ...]:
    """Return `g` split along `axis` into parts as long as the inputs."""
    pieces, start = [], 0
    for shape in shapes:
        stop = start + shape[axis]
        pieces.append(g[(*(slice(None),) * axis, slice(start, stop), ...)])
        start = stop
    return tuple(pieces)


concat = linear(
    "concat",
    lambda xp, g, shapes, *, axis: _split_like(xp, g, shapes, axis),
    forward=lambda xp, *arrays, axis: xp.concat(arrays, axis=axis),
    label="CatBackward0",
    joint=True,
)

stack = linear(
    "stack",
    lambda xp, g, shapes, *, axis: tuple(
        [g[(*(slice(None),) * axis, i, ...)] for i in range(len(shapes))]
    ),
    forward=lambda xp, *arrays, axis: xp.stack(arrays, axis=axis),
    joint=True,
)


def _unbind_adjoint(xp: Any, g: dict[int, Array], x_shape: Shape, *, axis: int) -> Array:
    some = next(iter(g.values()))
    zeros = None if len(g) == x_shape[axis] else xp.zeros_like(some)
    return xp.stack([g.get(i, zeros) for i in range(x_shape[axis])], axis=axis)


def _unbind(xp: Any, x: Array, *, axis: int) -> tuple[Array, ...]:
    # With an Ellipsis the result is a view, even where it is 0-d.
    lead = (slice(None),) * axis
    return tuple([x[(*lead, i, ...)] for i in range(x.shape[axis])])


unbind = linear(
    "unbind",
    _unbind_adjoint,
    forward=_unbind,
    multiple=True,
)


def _split_adjoint(
    xp: Any, g: dict[int, Array], x_shape: Shape, *, axis: int, sizes: Shape
) -> Array:
    some = next(iter(g.values()))
    parts = []
    for i, size in enumerate(sizes):
        part = g.get(i)
        if part is None:
            shape = (*x_shape[:axis], size, *x_shape[axis + 1 :])
            part = xp.zeros(shape, dtype=some.dtype)
        parts.append(part)
    return xp.concat(parts, axis=axis)


def _split(xp: Any, x: Array, *, axis: int, sizes: Shape) -> tuple[Array, ...]:
    pieces, start = [], 0
    for size in sizes:
        pieces.append(x[(*(slice(None),) * axis, slice(start, start + size), ...)])
        start += size
    return tuple(pieces)


split = linear("split", _split_adjoint, forward=_split, multiple=True)
