"""Activation functions: elementwise functions with settings, in few passes over the array.

Arguments of exponentials are limited so that none overflows. Where possible the derivative is
computed from the result, so that no other array is saved.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule.primitives.primitive import elementwise, general, symmetric, use_kernel

Array = Any


def _step_above(xp: Any, x: Array, level: float) -> Array:
    """Return 1 where x > level, else 0, as numbers."""
    return xp.astype(x > level, x.dtype)


def _limit(x: Array, narrow: float, wide: float) -> float:
    """Return `narrow` for half precision, `wide` for wider dtypes."""
    return narrow if getattr(x.dtype, "itemsize", 4) == 2 else wide


# --- piecewise activations ------------------------------------------------------------------------


def _hardtanh(xp: Any, x: Array, *, low: float, high: float) -> Array:
    return xp.clip(x, low, high)


def _inside_mask(xp: Any, v: Array, x: Array, low: float, high: float) -> Array:
    # At a bound the derivative is 0; at nan, it is 1.
    return xp.masked(v, xp.logical_not(xp.logical_or(x <= low, x >= high)))


hardtanh = symmetric(
    "hardtanh",
    lambda xp, g, x, *, low, high: _inside_mask(xp, g, x, low, high),
    forward=_hardtanh,
)


def _leaky_relu(xp: Any, x: Array, *, slope: float) -> Array:
    if slope == 0:
        return xp.clip(x, 0.0, None)
    return (xp.maximum if slope <= 1 else xp.minimum)(x, slope * x)


def _leaky_relu_partial(xp: Any, x: Array, *, slope: float) -> Array:
    step = _step_above(xp, x, 0.0)
    if 0 <= slope <= 1:
        return xp.clip(step, slope, None)
    return step + slope * (1 - step)


leaky_relu = elementwise(
    "leaky_relu", _leaky_relu_partial, forward=_leaky_relu, native="compute", in_parts=True
)


def _elu(xp: Any, x: Array, *, alpha: float, scale: float, rate: float) -> Array:
    # exp z - 1 = 2 t / (1 - t) where t = tanh(z / 2): NumPy's tanh is far faster than its expm1
    t = xp.tanh(xp.clip(x, None, 0.0) * (0.5 * rate))
    curve = 2 * t / (1 - t)
    if alpha * scale != 1:
        curve = curve * (alpha * scale)
    above = xp.clip(x, 0.0, None)
    return curve + (above if scale == 1 else above * scale)


def _elu_partial(xp: Any, x: Array, *, alpha: float, scale: float, rate: float) -> Array:
    negative = x <= 0  # at 0 the slope of the left side, at nan that of the right side
    below = xp.masked(x, negative)
    slope = xp.exp(below if rate == 1 else below * rate)
    if alpha * scale * rate != 1:
        slope = slope * (alpha * scale * rate)
    if alpha * rate == 1:  # both sides have the slope `scale` at 0
        return slope
    step = xp.astype(xp.logical_not(negative), x.dtype)
    return xp.masked(slope, negative) + (step if scale == 1 else step * scale)


elu = elementwise("elu", _elu_partial, forward=_elu, native="compute", in_parts=True)


def _hardswish(xp: Any, x: Array) -> Array:
    return x * (xp.clip(x + 3, 0.0, 6.0) / 6)


def _hardswish_partial(xp: Any, x: Array) -> Array:
    return xp.masked(x / 3 + 0.5, xp.abs(x) < 3) + xp.astype(x >= 3, x.dtype)


hardswish = elementwise(
    "hardswish", _hardswish_partial, forward=_hardswish, native="compute", in_parts=True
)

# --- smooth activations ---------------------------------------------------------------------------


def _softplus(xp: Any, x: Array, *, beta: float, threshold: float) -> Array:
    z = x if beta == 1 else x * beta
    # Above the limit z is the maximum, and no exponential overflows.
    top = min(threshold, _limit(x, 10.0, 80.0))
    out = xp.maximum(xp.log1p(xp.exp(xp.clip(z, None, top))), z)
    if threshold < 20:  # log(1 + exp(z)) and z differ there
        out = xp.where(z > threshold, z, out)
    return out if beta == 1 else out / beta


def _softplus_partial(xp: Any, x: Array, out: Array, *, beta: float, threshold: float) -> Array:
    # sigmoid z = 1 - exp(-softplus z), to full precision in both tails
    slope = -xp.expm1(-out if beta == 1 else out * -beta)
    if threshold >= 37:  # the slope is 1 there anyway
        return slope
    return xp.maximum(slope, _step_above(xp, x if beta == 1 else x * beta, threshold))


softplus = elementwise(
    "softplus", _softplus_partial, forward=_softplus, native="compute", in_parts=True
)


def _logsigmoid(xp: Any, x: Array) -> Array:
    return xp.minimum(x, -xp.log1p(xp.exp(xp.clip(-x, None, _limit(x, 10.0, 80.0)))))


logsigmoid = elementwise(
    "logsigmoid",
    lambda xp, x: xp.sigmoid(-x),
    forward=_logsigmoid,
    native="compute",
    in_parts=True,
)


def _softsign_partial(xp: Any, x: Array) -> Array:
    inverse = 1 / (1 + xp.abs(x))
    return inverse * inverse


softsign = elementwise(
    "softsign", _softsign_partial, forward=lambda xp, x: x / (1 + xp.abs(x)), in_parts=True
)


def _mish_parts(xp: Any, x: Array) -> tuple[Array, Array]:
    # tanh(log(1 + e)) = n / (n + 2) where n = e (e + 2): one exponential, precise in both tails
    e = xp.exp(xp.clip(x, None, _limit(x, 5.0, 30.0)))
    return e, e * (e + 2)


def _mish(xp: Any, x: Array) -> Array:
    _, n = _mish_parts(xp, x)
    return x * (n / (n + 2))


def _mish_partial(xp: Any, x: Array) -> Array:
    e, n = _mish_parts(xp, x)
    inverse = 1 / (n + 2)
    # Above the limit e is too small: it must not be multiplied by a large x.
    small = xp.clip(x, None, _limit(x, 5.0, 30.0))
    return n * inverse + small * (4 * (e * inverse) * ((e + 1) * inverse))


mish = elementwise("mish", _mish_partial, forward=_mish, native="compute", in_parts=True)


def _density(xp: Any, x: Array) -> Array:
    return xp.exp(x * x * -0.5) * 0.3989422804014327


@use_kernel
def _gelu(xp: Any, x: Array) -> tuple[Array, Array]:
    cdf = xp.normal_cdf(x)
    return x * cdf, cdf


@use_kernel
def _gelu_rule(xp: Any, v: Array, x: Array, cdf: Array) -> Array:
    return v * (cdf + x * _density(xp, x))


def _gelu_vjp(xp: Any, g: dict[int, Array], x: Array, cdf: Array) -> Array:
    total = _gelu_rule(xp, g[0], x, cdf) if 0 in g else None
    if 1 in g:  # of Φ: only in derivatives of higher order
        part = g[1] * _density(xp, x)
        total = part if total is None else total + part
    return total


def _gelu_jvp(xp: Any, t: Array, x: Array, cdf: Array) -> tuple[Array, Array]:
    return _gelu_rule(xp, t, x, cdf), t * _density(xp, x)


# x Φ(x), and Φ(x): the derivative needs it, and it is the most expensive part
gelu = general(
    "gelu",
    lambda xp, x: _gelu(xp, x),
    vjp=(_gelu_vjp,),
    jvp=(_gelu_jvp,),
    outputs=("out", "cdf"),
)

_SLOPE = math.sqrt(2 / math.pi)
_CUBIC = 0.044715


def _gelu_tanh(xp: Any, x: Array) -> Array:
    t = xp.tanh(x * (x * x * (_SLOPE * _CUBIC) + _SLOPE))
    return x * (t * 0.5 + 0.5)


def _gelu_tanh_partial(xp: Any, x: Array) -> Array:
    x = xp.clip(x, -20.0, 20.0)  # tanh is ±1 beyond; avoids overflow
    squared = x * x
    t = xp.tanh(x * (squared * (_SLOPE * _CUBIC) + _SLOPE))
    inner = x * (squared * (1.5 * _SLOPE * _CUBIC) + 0.5 * _SLOPE)
    return t * 0.5 + 0.5 + (1 - t * t) * inner


# Hendrycks, Gimpel, Gaussian error linear units, arXiv 1606.08415
gelu_tanh = elementwise(
    "gelu_tanh", _gelu_tanh_partial, forward=_gelu_tanh, label="GeluBackward0", in_parts=True
)
