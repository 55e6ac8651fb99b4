"""Primitives that read and write at indices.

`getitem` and `index_add` are each other's adjoint; `assign` writes a value over a region.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule.primitives.primitive import Primitive, forward_of, general, linear, use_kernel

Array = Any
Shape = tuple[int, ...]
Path = tuple[tuple[Primitive, dict[str, Any]], ...]


def _read(xp: Any, x: Array, *, key: Any) -> Array:
    return x[key]


def _scatter(xp: Any, g: Array, x_shape: Shape, *, key: Any) -> Array:
    return xp.index_add(g, shape=x_shape, key=key)


getitem = linear("getitem", _scatter, forward=_read, label="SliceBackward0", view=True, part="read")
select = linear("select", _scatter, forward=_read, view=True, part="read")  # with ints alone
index = linear("index", _scatter, part="read")  # with arrays and masks: a copy

index_add = linear(
    "index_add",
    lambda xp, g, *, shape, key: xp.index(g, key=key),
    forward=lambda xp, x, *, shape, key: xp.index_add(x, shape=shape, key=key),
    label="IndexAddBackward0",
)


def _gather(xp: Any, g: Array, *, key: Any) -> Array:
    return xp.index(g, key=key)


add_at = general(
    "add_at",
    lambda xp, base, value, *, key: xp.add_at(base, value, key=key),
    vjp=(lambda xp, g: g, _gather),
    jvp=None,
    label="IndexPutBackward0",
    broadcasts=False,
)


def _extreme_value(xp: Any, dtype: Any, extreme: str) -> float:
    """Return the largest or smallest number of a dtype."""
    if xp.isdtype(dtype, "real floating"):
        return math.inf if extreme == "max" else -math.inf
    if xp.isdtype(dtype, "bool"):
        return extreme == "max"
    return int(getattr(xp.iinfo(dtype), extreme))


def _extremum_masks(xp: Any, base: Array, value: Array, out: Array, key: Any, own: bool) -> Any:
    """Return masks of the candidates that are the extremum, and their number for each element."""
    old = xp.logical_or(base == out, base != base)
    new = xp.logical_or(value == xp.index(out, key=key), value != value)
    if not own:
        arriving = xp.ones(value.shape, dtype=base.dtype)
        untouched = xp.index_add(arriving, shape=base.shape, key=key) == 0
        old = xp.logical_and(old, untouched)
    count = xp.astype(old, out.dtype)
    count = count + xp.index_add(xp.astype(new, out.dtype), shape=out.shape, key=key)
    return old, new, count


def _base_rule(
    xp: Any, g: Array, base: Array, value: Array, out: Array, *, key: Any, own: bool
) -> Array:
    old, _, count = _extremum_masks(xp, base, value, out, key, own)
    return xp.masked(g / count, old)


def _value_vjp(
    xp: Any, g: Array, base: Array, value: Array, out: Array, *, key: Any, own: bool
) -> Array:
    _, new, count = _extremum_masks(xp, base, value, out, key, own)
    return xp.masked(xp.index(g / count, key=key), new)


def _value_jvp(
    xp: Any, t: Array, base: Array, value: Array, out: Array, *, key: Any, own: bool
) -> Array:
    _, new, count = _extremum_masks(xp, base, value, out, key, own)
    return xp.index_add(xp.masked(t, new), shape=out.shape, key=key) / count


def _extremum_at(name: str) -> Primitive:
    """Return the primitive that reduces values into a base by maximum or minimum.

    With ``own=False`` the base's own element is no candidate where a value is scattered to it.
    """
    extreme = "min" if name == "maximum_at" else "max"

    def forward(xp: Any, base: Array, value: Array, *, key: Any, own: bool) -> Array:
        if not own:
            worst = xp.asarray(_extreme_value(xp, base.dtype, extreme), dtype=base.dtype)
            base = xp.assign_at(base, worst, key)
        return getattr(xp, name)(base, value, key=key)

    return general(
        name,
        forward,
        vjp=(_base_rule, _value_vjp),
        jvp=(_base_rule, _value_jvp),
        label="ScatterReduceBackward0",
        broadcasts=False,
    )


maximum_at = _extremum_at("maximum_at")
minimum_at = _extremum_at("minimum_at")


def _place(xp: Any, g: Array, x_shape: Shape, *, key: Any) -> Array:
    return xp.assign_at(xp.zeros(x_shape, dtype=g.dtype), g, key)


diagonal = linear(  # of the last two axes; `key` is the same index as arrays, for writes
    "diagonal",
    _place,
    view=True,
)


@use_kernel
def _sum_of_windows(xp: Any, g: Array, *, shape: Shape, size: int, step: int, key: Any) -> Array:
    return xp.index_add(g, shape=shape, key=key)


windows = linear(  # of the last axis; `key` is the same index as arrays
    "windows",
    lambda xp, g, x_shape, *, size, step, key: _sum_of_windows(
        xp, g, shape=x_shape, size=size, step=step, key=key
    ),
    label="UnfoldBackward0",
    view=True,
)


real_part = linear(
    "real_part",
    lambda xp, g, x_dtype: xp.astype(g, x_dtype),
    forward=lambda xp, x: x.real,
    label="ViewAsRealBackward0",
    view=True,
)
imag_part = linear(
    "imag_part",
    lambda xp, g: g * -1j,
    forward=lambda xp, x: x.imag,
    label="ViewAsRealBackward0",
    view=True,
)

real_pairs = linear(  # real and imaginary parts in a last axis of length 2
    "real_pairs",
    lambda xp, g: xp.complex(g[..., 0], -g[..., 1]),
    label="ViewAsRealBackward0",
    view=True,
)
complex_pairs = linear(  # the inverse
    "complex_pairs",
    lambda xp, g: xp.real_pairs(xp.conj(g)),
    label="ViewAsComplexBackward0",
    view=True,
)

_REPLACE_PART = {
    real_part: lambda xp, whole, new: xp.complex(new, xp.imag(whole)),
    imag_part: lambda xp, whole, new: xp.complex(xp.real(whole), new),
    real_pairs: lambda xp, whole, new: xp.complex(new[..., 0], new[..., 1]),
    complex_pairs: lambda xp, whole, new: xp.real_pairs(new),
}
"""Numbers with another part, by the view that the part is."""

_TRANSPOSED = {
    imag_part: lambda xp, g: -xp.imag(g),  # the real part of g i value
    real_pairs: lambda xp, g: xp.real_pairs(xp.conj(g)),
    complex_pairs: lambda xp, g: xp.complex(g[..., 0], -g[..., 1]),
}
"""Adjoints of placing a part, by the view that it is, where that isn't the view itself."""


def region(xp: Any, x: Array, path: Path) -> Array:
    """Return the view of `x` that a path of view operations gives."""
    for primitive, settings in path:
        x = forward_of(primitive, xp)(x, **settings)
    return x


def _assign(xp: Any, base: Array, value: Array, *, path: Path, lasting: Any = None) -> Array:
    """Return `base` with `value` written over the region, following the path and back.

    `lasting` is None or, where an index repeats, the mask of the values that are not overwritten.
    """
    writes = bool(path) and "key" in path[-1][1]
    before = path[:-1] if writes else path
    around = []  # the array that each step is applied to
    part = base
    for primitive, settings in before:
        around.append(part)
        part = forward_of(primitive, xp)(part, **settings)
    value = xp.astype(value, part.dtype)
    if writes:
        new = xp.assign_at(part, value, path[-1][1]["key"])
    else:
        new = xp.broadcast_to(value, part.shape)
    for (primitive, settings), whole in zip(reversed(before), reversed(around), strict=True):
        if "key" in settings:
            new = xp.assign_at(whole, new, settings["key"])
        elif primitive in _REPLACE_PART:
            new = _REPLACE_PART[primitive](xp, whole, new)
        else:
            # All other writable views are bijections: the adjoint is the inverse.
            plan = primitive.plan((True,))
            new = plan.vjp(xp, new, (whole.shape,) if plan.saves else (), settings)[0]
    return new


def _assign_value(xp: Any, g: Array, *, path: Path, lasting: Any = None) -> Array:
    part = g
    for primitive, settings in path:
        if primitive in _TRANSPOSED:
            part = _TRANSPOSED[primitive](xp, part)
        else:
            part = forward_of(primitive, xp)(part, **settings)
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
    part="write",
)


def _scatter_along_axis(xp: Any, g: Array, x_shape: Shape, index: Array, *, axis: int) -> Array:
    return xp.add_along_axis(g, index, shape=x_shape, axis=axis)


take_along_axis = general(
    "take_along_axis",
    lambda xp, x, index, *, axis: xp.take_along_axis(x, index, axis=axis),
    vjp=(_scatter_along_axis, None),
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
