"""Primitives of two real numbers, and what else is everyday element by element."""

from __future__ import annotations

from typing import Any

from chainrule.primitives.primitive import constant, elementwise, general, symmetric

Array = Any


def _other_than(xp: Any, value: Array, mask: Array) -> Array:
    """Return `value` with ones where `mask`: what is masked later must not divide by zero now."""
    return xp.where(mask, xp.ones_like(value), value)


def _apart(xp: Any, value: Array, mask: Array) -> Array:
    return xp.masked(value, xp.logical_not(mask))


# --- plane geometry: at the origin, where there is no derivative, it is taken as 0 ----------------


def _over_square(xp: Any, leg: Array, x: Array, y: Array) -> Array:
    # leg / (x² + y²), by way of the hypotenuse: squares overflow at 1e19 in float32.
    out = xp.hypot(x, y)
    origin = out == 0
    out = _other_than(xp, out, origin)
    return _apart(xp, leg / out / out, origin)


atan2 = elementwise(
    "atan2",
    lambda xp, x, y: _over_square(xp, y, x, y),
    lambda xp, x, y: -_over_square(xp, x, x, y),
    form="binary",
    libm=True,
)


def _cosine(xp: Any, leg: Array, out: Array) -> Array:
    return _apart(xp, leg / _other_than(xp, out, out == 0), out == 0)


hypot = elementwise(
    "hypot",
    lambda xp, x, out: _cosine(xp, x, out),
    lambda xp, y, out: _cosine(xp, y, out),
    form="binary",
    libm=True,
)

# --- logarithms -----------------------------------------------------------------------------------


def _share(xp: Any, x: Array, y: Array, scale: float) -> Array:
    # e^x / (e^x + e^y) is 1/2 also of equal infinities, where x - y would be nan.
    tie = xp.logical_and(x == y, xp.isinf(x))
    return xp.sigmoid(scale * (_apart(xp, x, tie) - _apart(xp, y, tie)))


logaddexp = elementwise(
    "logaddexp",
    lambda xp, x, y: _share(xp, x, y, 1.0),
    lambda xp, x, y: _share(xp, y, x, 1.0),
    form="binary",
)
logaddexp2 = elementwise(
    "logaddexp2",
    lambda xp, x, y: _share(xp, x, y, 0.6931471805599453),  # ln 2
    lambda xp, x, y: _share(xp, y, x, 0.6931471805599453),
)


def _by_logarithm(xp: Any, c: Array, x: Array, y: Array) -> Array:
    # c log y, and 0 where x log y is 0 around any x = 0.
    corner = xp.logical_and(x == 0, y <= 0)
    return xp.xlogy(c, _other_than(xp, y, corner))


def _by_logarithm1p(xp: Any, c: Array, x: Array, y: Array) -> Array:
    corner = xp.logical_and(x == 0, y <= -1)
    return xp.xlog1py(c, _apart(xp, y, corner))


def _quotient(xp: Any, x: Array, y: Array) -> Array:
    # x / y, and 0 / 0 is 0: x log y is 0 there along all of y.
    corner = xp.logical_and(x == 0, y == 0)
    return _apart(xp, x / _other_than(xp, y, corner), corner)


xlogy = symmetric(
    "xlogy",
    lambda xp, g, x, y: _by_logarithm(xp, g, x, y),
    lambda xp, g, x, y: g * _quotient(xp, x, y),
    form="binary",
)
xlog1py = symmetric(
    "xlog1py",
    lambda xp, g, x, y: _by_logarithm1p(xp, g, x, y),
    lambda xp, g, x, y: g * _quotient(xp, x, 1 + y),
)

# --- kinks and steps ------------------------------------------------------------------------------

copysign = elementwise(
    "copysign",
    lambda xp, x, y: xp.sign(x) * xp.copysign(xp.ones_like(x), y),  # 0 at 0, as of abs
    lambda xp, y: xp.zeros_like(y),
    form="binary",
)

nextafter = symmetric(  # x, as far as numbers that are not rounded are concerned
    "nextafter", lambda xp, g: g, lambda xp, g: xp.zeros_like(g)
)


def _quotient_towards_zero(xp: Any, x: Array, y: Array, out: Array) -> Array:
    # An integer but for rounding; trunc(x / y) may be the next one.
    return xp.round((x - out) / y)


fmod = symmetric(
    "fmod",
    lambda xp, g: g,
    lambda xp, g, x, y, out: -g * _quotient_towards_zero(xp, x, y, out),
    form="binary",
)


def _first(xp: Any, x: Array, y: Array) -> Array:
    """Say where fmax takes x: of equals, and of two nans, it is the first."""
    return xp.logical_or(x >= y, xp.isnan(y))


def _second(xp: Any, x: Array, y: Array) -> Array:
    return xp.logical_not(_first(xp, x, y))


fmax = symmetric(
    "fmax",
    lambda xp, g, x, y: xp.masked(g, _first(xp, x, y)),
    lambda xp, g, x, y: xp.masked(g, _second(xp, x, y)),
    form="binary",
)
fmin = symmetric(
    "fmin",
    lambda xp, g, x, y: xp.masked(g, _first(xp, -x, -y)),
    lambda xp, g, x, y: xp.masked(g, _second(xp, -x, -y)),
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

# --- without derivative ---------------------------------------------------------------------------

signbit = constant("signbit")
bitwise_left_shift = constant("bitwise_left_shift")
bitwise_right_shift = constant("bitwise_right_shift")
gcd = constant("gcd")
lcm = constant("lcm")
exponent = constant("exponent")
