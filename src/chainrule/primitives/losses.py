"""Losses of single elements: those that a composition would lose digits in, or be slow at."""

from __future__ import annotations

from typing import Any

from chainrule.primitives.primitive import elementwise

Array = Any


def _limited(xp: Any, x: Array, delta: float) -> Array:
    return xp.minimum(xp.maximum(x, -delta), delta)


def _huber(xp: Any, x: Array, *, delta: float) -> Array:
    # x²/2 inside; delta |x| - delta²/2 outside
    near = _limited(xp, x, delta)
    return near * (x - 0.5 * near)


huber = elementwise(
    "huber",
    lambda xp, x, *, delta: _limited(xp, x, delta),
    forward=_huber,
    label="HuberLossBackward0",
)


def _logs(xp: Any, x: Array) -> tuple[Array, Array]:
    # The logarithm of 0 counts as -100.
    return xp.maximum(xp.log(x), -100.0), xp.maximum(xp.log1p(-x), -100.0)


def _binary_cross_entropy(xp: Any, x: Array, y: Array) -> Array:
    yes, no = _logs(xp, x)
    return -(y * yes + (1 - y) * no)


def _binary_cross_entropy_y(xp: Any, x: Array) -> Array:
    yes, no = _logs(xp, x)
    return no - yes


binary_cross_entropy = elementwise(
    "binary_cross_entropy",
    lambda xp, x, y: (x - y) / xp.maximum(x * (1 - x), 1e-12),
    _binary_cross_entropy_y,
    forward=_binary_cross_entropy,
)


def _with_logits(xp: Any, x: Array, y: Array) -> Array:
    # No two large numbers are subtracted: a small loss keeps its digits, whatever the target.
    return xp.maximum(x, 0.0) - x * y + xp.log1p(xp.exp(-xp.abs(x)))


binary_cross_entropy_with_logits = elementwise(
    "binary_cross_entropy_with_logits",
    lambda xp, x, y: xp.sigmoid(x) - y,
    lambda xp, x: -x,
    forward=_with_logits,
)
