"""Products that sum over shared axes."""

from __future__ import annotations

from typing import Any

from chainrule.primitives.primitive import general

Array = Any


def _swap(xp: Any, x: Array) -> Array:
    return x.T if x.ndim == 2 else xp.matrix_transpose(x)


def _matmul_x(xp: Any, g: Array, y: Array, x_ndim: int) -> Array:
    # A vector is a row on the left and a column on the right of a product.
    if y.ndim == 1:
        return g * y if x_ndim == 1 else xp.expand_dims(g, axis=-1) * y
    if x_ndim == 1 and y.ndim > 2:
        return xp.squeeze(xp.matmul(xp.expand_dims(g, axis=-2), _swap(xp, y)), axis=-2)
    return xp.matmul(g, _swap(xp, y))


def _matmul_y(xp: Any, g: Array, x: Array, y_ndim: int) -> Array:
    if x.ndim == 1:
        return g * x if y_ndim == 1 else xp.expand_dims(x, axis=-1) * xp.expand_dims(g, axis=-2)
    if y_ndim == 1:
        return xp.matmul(_swap(xp, x), xp.expand_dims(g, axis=-1))[..., 0]
    return xp.matmul(_swap(xp, x), g)


matmul = general(
    "matmul",
    None,
    vjp=(_matmul_x, _matmul_y),
    jvp=(lambda xp, t, y: xp.matmul(t, y), lambda xp, t, x: xp.matmul(x, t)),
    label="MmBackward0",
    broadcasts=False,
)
