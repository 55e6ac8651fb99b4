"""Elementwise primitives of two real numbers, roots, and integer functions."""

from __future__ import annotations

from typing import Any

from chainrule.primitives.primitive import constant, elementwise, general, symmetric

Array = Any


def _with_ones(xp: Any, value: Array, mask: Array) -> Array:
    """Return `value` with ones where `mask`, so that no division by zero occurs there."""
    return xp.where(mask, xp.ones_like(value), value)


def _with_zeros(xp: Any, value: Array, mask: Array) -> Array:
    return xp.masked(value, xp.logical_not(mask))


# --- plane geometry: the derivative at the origin, where there is none, is taken as 0 -------------


def _over_squared_norm(xp: Any, leg: Array, x: Array, y: Array) -> Array:
    # leg / (x² + y²), through the hypotenuse: squares overflow at 1e19 in float32.
    out = xp.hypot(x, y)
    origin = out == 0
    out = _with_ones(xp, out, origin)
    return _with_zeros(xp, leg / out / out, origin)


atan2 = elementwise(
    "atan2",
    lambda xp, x, y: _over_squared_norm(xp, y, x, y),
    lambda xp, x, y: -_over_squared_norm(xp, x, x, y),
    form="binary",
    libm=True,
)


def _cosine(xp: Any, leg: Array, out: Array) -> Array:
    return _with_zeros(xp, leg / _with_ones(xp, out, out == 0), out == 0)


hypot = elementwise(
    "hypot",
    lambda xp, x, out: _cosine(xp, x, out),
    lambda xp, y, out: _cosine(xp, y, out),
    form="binary",
    libm=True,
)

# --- logarithms -----------------------------------------------------------------------------------


def _exp_share(xp: Any, x: Array, y: Array, scale: float) -> Array:
    # e^x / (e^x + e^y), which is 1/2 for equal infinities, too: x - y would be nan there.
    tie = xp.logical_and(x == y, xp.isinf(x))
    return xp.sigmoid(scale * (_with_zeros(xp, x, tie) - _with_zeros(xp, y, tie)))


logaddexp = elementwise(
    "logaddexp",
    lambda xp, x, y: _exp_share(xp, x, y, 1.0),
    lambda xp, x, y: _exp_share(xp, y, x, 1.0),
    form="binary",
)
logaddexp2 = elementwise(
    "logaddexp2",
    lambda xp, x, y: _exp_share(xp, x, y, 0.6931471805599453),  # ln 2
    lambda xp, x, y: _exp_share(xp, y, x, 0.6931471805599453),
)


def _times_log(xp: Any, c: Array, x: Array, y: Array) -> Array:
    # c log y, and 0 at x = 0, y <= 0, where x log y is 0.
    corner = xp.logical_and(x == 0, y <= 0)
    return xp.xlogy(c, _with_ones(xp, y, corner))


def _times_log1p(xp: Any, c: Array, x: Array, y: Array) -> Array:
    corner = xp.logical_and(x == 0, y <= -1)
    return xp.xlog1py(c, _with_zeros(xp, y, corner))


def _quotient(xp: Any, x: Array, y: Array) -> Array:
    # x / y with 0 / 0 = 0: x log y is 0 at x = 0 for all y.
    corner = xp.logical_and(x == 0, y == 0)
    return _with_zeros(xp, x / _with_ones(xp, y, corner), corner)


xlogy = symmetric(
    "xlogy",
    lambda xp, g, x, y: _times_log(xp, g, x, y),
    lambda xp, g, x, y: g * _quotient(xp, x, y),
    form="binary",
)
xlog1py = symmetric(
    "xlog1py",
    lambda xp, g, x, y: _times_log1p(xp, g, x, y),
    lambda xp, g, x, y: g * _quotient(xp, x, 1 + y),
)

# --- signs, remainders and extrema ----------------------------------------------------------------

copysign = elementwise(
    "copysign",
    lambda xp, x, y: xp.sign(x) * xp.copysign(xp.ones_like(x), y),  # 0 at 0, as of abs
    lambda xp, y: xp.zeros_like(y),
    form="binary",
)

nextafter = symmetric(  # the identity in x, up to rounding
    "nextafter", lambda xp, g: g, lambda xp, g: xp.zeros_like(g)
)


def _quotient_without(xp: Any, x: Array, y: Array, out: Array) -> Array:
    # An integer up to rounding; trunc(x / y) may be off by one.
    return xp.round((x - out) / y)


fmod = symmetric(
    "fmod",
    lambda xp, g: g,
    lambda xp, g, x, y, out: -g * _quotient_without(xp, x, y, out),
    form="binary",
)


def _truncated_quotient(xp: Any, x: Array, y: Array) -> Array:
    if xp.isdtype(xp.result_type(x, y), "real floating"):
        return xp.trunc(xp.divide(x, y))
    return xp.floor_divide(x - xp.fmod(x, y), y)


truncated_quotient = symmetric(
    "truncated_quotient",
    lambda xp, g: xp.zeros_like(g),
    lambda xp, g: xp.zeros_like(g),
    forward=_truncated_quotient,
    label="DivBackward0",
    form="binary",
    steps=True,
)


def _takes_first(xp: Any, x: Array, y: Array) -> Array:
    """Return the mask where fmax takes x; for equal numbers and two nans it takes x."""
    return xp.logical_or(x >= y, xp.isnan(y))


def _takes_second(xp: Any, x: Array, y: Array) -> Array:
    return xp.logical_not(_takes_first(xp, x, y))


fmax = symmetric(
    "fmax",
    lambda xp, g, x, y: xp.masked(g, _takes_first(xp, x, y)),
    lambda xp, g, x, y: xp.masked(g, _takes_second(xp, x, y)),
    form="binary",
)
fmin = symmetric(
    "fmin",
    lambda xp, g, x, y: xp.masked(g, _takes_first(xp, -x, -y)),
    lambda xp, g, x, y: xp.masked(g, _takes_second(xp, -x, -y)),
    form="binary",
)

heaviside = symmetric(
    "heaviside", lambda xp, g: xp.zeros_like(g), lambda xp, g, x: xp.masked(g, x == 0)
)

nan_to_num = symmetric("nan_to_num", lambda xp, g, x: xp.masked(g, xp.isfinite(x)))

# --- roots and powers -----------------------------------------------------------------------------

exp2 = elementwise("exp2", lambda xp, out: 0.6931471805599453 * out, libm=True)  # ln 2
cbrt = symmetric("cbrt", lambda xp, g, out: g / (3 * out * out))

# --- complex numbers from real ones ---------------------------------------------------------------

complex = general(
    "complex",
    None,
    vjp=(lambda xp, g: xp.real(g), lambda xp, g: -xp.imag(g)),
    jvp=(
        lambda xp, t: xp.complex(t, xp.zeros_like(t)),
        lambda xp, t: xp.complex(xp.zeros_like(t), t),
    ),
)

# --- functions without derivative -----------------------------------------------------------------

signbit = constant("signbit")
bitwise_left_shift = constant("bitwise_left_shift")
bitwise_right_shift = constant("bitwise_right_shift")
gcd = constant("gcd")
lcm = constant("lcm")
exponent = constant("exponent")
