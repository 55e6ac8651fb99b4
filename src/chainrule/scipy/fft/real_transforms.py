"""Discrete cosine and sine transforms: one primitive, whose adjoint is a transform, too.

Types 2 and 3 are each other's transpose, and types 1 and 4 their own, but for weights of the terms
at the ends (G. Strang, "The discrete cosine transform", SIAM Review 41(1), 1999).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.fft.arguments import Transform, many_axes, norm_of, one_axis, opposite, resize
from chainrule.primitives.primitive import Primitive, applied, linear
from chainrule.scipy.fft.arguments import TABLE, in_double, sizes_of

Array = Any
Axes = tuple[int, ...]

_TRANSPOSE = {1: 1, 2: 3, 3: 2, 4: 4}
"""Type of the transposed transform, and of the inverse one."""

_DOUBLED = {"dctn": 0, "dstn": -1}
"""The term that type 3 counts once, and all others twice."""


def _weighted(xp: Any, x: Array, axes: Axes, at: tuple[int, ...], factor: float) -> Array:
    """Return `x` times a factor at some positions along each axis."""
    for axis in axes:
        weights = np.ones(x.shape[axis])
        weights[list(at)] = factor
        shaped = weights.reshape(-1, *(1,) * (x.ndim - 1 - axis))
        x = x * xp.asarray(shaped, dtype=x.dtype)
    return x


def _adjoint(
    xp: Any, g: Array, *, function: str, type: int, axes: Axes, norm: str, orthogonalize: bool
) -> Array:
    def back(g: Array) -> Array:
        return applied(real_transform, xp)(
            g,
            function=function,
            type=_TRANSPOSE[type],
            axes=axes,
            norm=norm,
            orthogonalize=orthogonalize,
        )

    end = _DOUBLED[function]
    if orthogonalize or type == 4 or (type == 1 and function == "dstn"):
        return back(g)
    if type == 1:
        ends = (0, -1)
        return _weighted(xp, back(_weighted(xp, g, axes, ends, 2.0)), axes, ends, 0.5)
    if type == 2:
        return back(_weighted(xp, g, axes, (end,), 2.0))
    return _weighted(xp, back(g), axes, (end,), 0.5)


def _forward(
    xp: Any, x: Array, *, function: str, type: int, axes: Axes, norm: str, orthogonalize: bool
) -> Array:
    return xp.scipy_fft(
        x, routine=function, type=type, axes=axes, norm=norm, orthogonalize=orthogonalize
    )


real_transform: Primitive = linear("scipy_real_transform", _adjoint, forward=_forward)


def _transform(
    function: str,
    given: Transform,
    type: Any,
    norm: str | None,
    orthogonalize: bool | None,
    inverse: bool,
) -> Tensor:
    name, x, axes, sizes = given
    if type not in _TRANSPOSE:
        raise ArgumentError(f"scipy.fft.{name}: expected type 1, 2, 3 or 4, got {type!r}")
    x = resize(name, x, axes, sizes)
    if not axes:
        return x
    if x.is_complex():  # of which SciPy doesn't pass it on
        orthogonalize = None
    return real_transform.apply(
        x,
        function=function,
        type=_TRANSPOSE[type] if inverse else int(type),
        axes=axes,
        norm=opposite(norm) if inverse else norm_of(norm),
        orthogonalize=norm == "ortho" if orthogonalize is None else bool(orthogonalize),
    )


def _along_one(name: str) -> Any:
    inverse, function = name.startswith("i"), f"{name.removeprefix('i')}n"

    def transform(
        x: Any,
        type: int = 2,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        orthogonalize: bool | None = None,
    ) -> Tensor:
        given = one_axis(name, in_double(x), n, axis)
        return _transform(function, given, type, norm, orthogonalize, inverse)

    return transform


def _along_many(name: str) -> Any:
    inverse, function = name.startswith("i"), name.removeprefix("i")

    def transform(
        x: Any,
        type: int = 2,
        s: Any = None,
        axes: Any = None,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        orthogonalize: bool | None = None,
    ) -> Tensor:
        given = many_axes(name, in_double(x), sizes_of(s), sizes_of(axes))
        return _transform(function, given, type, norm, orthogonalize, inverse)

    return transform


_WORDS = {
    "dct": "discrete cosine transform",
    "idct": "inverse discrete cosine transform",
    "dst": "discrete sine transform",
    "idst": "inverse discrete sine transform",
}

for _name, _words in _WORDS.items():
    for _full, _make, _axes in (
        (_name, _along_one, "an axis"),
        (f"{_name}n", _along_many, "several axes"),
    ):
        _function = _make(_full)
        _function.__name__ = _function.__qualname__ = _full
        _function.__doc__ = f"Return the {_words} along {_axes}, of a type from 1 to 4."
        TABLE.function(_full, "linear")(_function)
