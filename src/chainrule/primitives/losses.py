"""Elementwise losses and cross entropy, where a composition would lose precision or time."""

from __future__ import annotations

from typing import Any

from chainrule.primitives.activations import hardtanh
from chainrule.primitives.primitive import applied, elementwise, general, use_kernel
from chainrule.primitives.reductions import softmax

Array = Any


def _huber_partial(xp: Any, x: Array, *, delta: float) -> Array:
    # its own derivative is 0 at a bound, as in PyTorch
    near: Array = applied(hardtanh, xp)(x, low=-delta, high=delta)
    return near


def _huber(xp: Any, x: Array, *, delta: float) -> Array:
    # x²/2 inside; delta |x| - delta²/2 outside
    near = xp.clip(x, -delta, delta)
    return near * (x - 0.5 * near)


huber = elementwise(
    "huber",
    _huber_partial,
    forward=_huber,
    label="HuberLossBackward0",
)


def _clamped_logs(xp: Any, x: Array) -> tuple[Array, Array]:
    # Logarithms are clamped at -100, as in PyTorch.
    return xp.clip(xp.log(x), -100.0, None), xp.clip(xp.log1p(-x), -100.0, None)


def _binary_cross_entropy(xp: Any, x: Array, y: Array) -> Array:
    yes, no = _clamped_logs(xp, x)
    return -(y * yes + (1 - y) * no)


def _binary_cross_entropy_y(xp: Any, x: Array) -> Array:
    yes, no = _clamped_logs(xp, x)
    return no - yes


binary_cross_entropy = elementwise(
    "binary_cross_entropy",
    lambda xp, x, y: (x - y) / xp.clip(x * (1 - x), 1e-12, None),
    _binary_cross_entropy_y,
    forward=_binary_cross_entropy,
)


def _loss_from_logits(xp: Any, x: Array, y: Array) -> Array:
    # Without cancellation: a small loss keeps its precision for every target.
    return xp.clip(x, 0.0, None) - x * y + xp.log1p(xp.exp(-xp.abs(x)))


binary_cross_entropy_with_logits = elementwise(
    "binary_cross_entropy_with_logits",
    lambda xp, x, y: xp.sigmoid(x) - y,
    lambda xp, x: -x,
    forward=_loss_from_logits,
)


# --- cross entropy: log Σ exp x minus x at the target class ---------------------------------------


def _take_class(xp: Any, x: Array, classes: Array, axis: int) -> Array:
    """Return the elements of `x` at the classes, without the axis."""
    picked = xp.take_along_axis(x, xp.expand_dims(classes, axis=axis), axis=axis)
    return xp.squeeze(picked, axis=axis)


@use_kernel
def _class_losses(xp: Any, x: Array, classes: Array, *, axis: int) -> Array:
    shifted = x - xp.max(x, axis=axis, keepdims=True)
    total = xp.sum(xp.exp(shifted), axis=axis)
    return xp.log(total) - _take_class(xp, shifted, classes, axis)


@use_kernel
def _class_losses_vjp(xp: Any, g: Array, x: Array, classes: Array, *, axis: int) -> Array:
    g = xp.expand_dims(g, axis=axis)
    hits = xp.add_along_axis(g, xp.expand_dims(classes, axis=axis), shape=x.shape, axis=axis)
    return g * applied(softmax, xp)(x, axis=axis) - hits


def _class_losses_jvp(xp: Any, t: Array, x: Array, classes: Array, *, axis: int) -> Array:
    share = applied(softmax, xp)(x, axis=axis)
    return xp.sum(share * t, axis=axis) - _take_class(xp, t, classes, axis)


class_losses = general(
    "class_losses",
    lambda xp, x, classes, *, axis: _class_losses(xp, x, classes, axis=axis),
    vjp=(
        lambda xp, g, x, classes, *, axis: _class_losses_vjp(xp, g, x, classes, axis=axis),
        None,
    ),
    jvp=(
        lambda xp, t, x, classes, *, axis: _class_losses_jvp(xp, t, x, classes, axis=axis),
        None,
    ),
    label="CrossEntropyLossBackward0",
    broadcasts=False,
)
