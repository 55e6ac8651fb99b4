"""Special functions.

Their derivatives are those of the Digital Library of Mathematical Functions, https://dlmf.nist.gov,
by chapter: 5 gamma, 6 exponential integrals, 7 error functions, 8 incomplete gamma and beta,
10 Bessel functions, 25 zeta. Each is stated in functions of this module, so that derivatives of any
order exist. Families with an order (Bessel functions, polygamma) use the recurrences in the order,
which avoid the divisions by x of other formulas.
"""

from __future__ import annotations

from typing import Any, NoReturn

from chainrule.errors import AutogradError
from chainrule.primitives.primitive import Rule, elementwise, symmetric

Array = Any


def _not_implemented(name: str, argument: str) -> Rule:
    """Return the rule of an argument whose derivative is not implemented."""

    def rule(xp: Any) -> NoReturn:
        raise AutogradError(
            f"the derivative of {name} for {argument} is not implemented: it has no closed form. "
            f"Pass {argument}.detach() if it is to count as constant, or give it a derivative of "
            "your own with autograd_function"
        )

    return rule


# --- error functions: 2/√π e^(-x²) ----------------------------------------------------------------

_SLOPE = 1.1283791670955126  # 2/√π


def _excess(xp: Any, x: Array, out: Array, scale: float, sign: int) -> Array:
    """Return scale · x · out - 1; for large x, where that cancels, its asymptotic series.

    For `dawsn` the scale is 2 and the sign 1, for `erfcx` they are √π and -1 (DLMF 7.12.1).
    """
    far = (xp.abs(x) if sign > 0 else x) > (8.0 if getattr(x.dtype, "itemsize", 8) < 8 else 50.0)
    near = scale * xp.where(far, xp.zeros_like(x), x) * out - 1
    inverse = 1 / xp.where(far, x, xp.ones_like(x))
    z = sign / 2 * inverse * inverse
    return xp.where(far, (((((10395 * z + 945) * z + 105) * z + 15) * z + 3) * z + 1) * z, near)


erf = elementwise("erf", lambda xp, x: _SLOPE * xp.exp(-x * x))
erfc = elementwise("erfc", lambda xp, x: -_SLOPE * xp.exp(-x * x))
erfi = elementwise("erfi", lambda xp, x: _SLOPE * xp.exp(x * x))
erfcx = elementwise(
    "erfcx",
    lambda xp, x, out: _SLOPE * _excess(xp, x, out, 1.7724538509055159, -1),  # √π
)
erfinv = elementwise("erfinv", lambda xp, out: xp.exp(out * out) / _SLOPE)
dawsn = elementwise("dawsn", lambda xp, x, out: -_excess(xp, x, out, 2.0, 1))
ndtri = elementwise("ndtri", lambda xp, out: 2.5066282746310002 * xp.exp(out * out / 2))  # √(2π)


def _hazard(xp: Any, x: Array, out: Array) -> Array:
    """Return φ/Φ: for x < 0 by `erfcx`, which avoids cancellation but overflows for x > 0."""
    right = x > 0
    zero = xp.zeros_like(x)
    left = 0.7978845608028654 / xp.erfcx(-0.7071067811865476 * xp.where(right, zero, x))
    a = xp.where(right, xp.minimum(x, 1000.0), zero)  # the result is 0 long before
    b = xp.where(right, out, zero)
    return xp.where(right, 0.3989422804014327 * xp.exp(-0.5 * a * a - b), left)


log_ndtr = elementwise("log_ndtr", _hazard)

# --- exponential integrals ------------------------------------------------------------------------

expi = elementwise("expi", lambda xp, x: xp.exp(x) / x)
exp1 = elementwise("exp1", lambda xp, x: -xp.exp(-x) / x)

# --- gamma, beta, zeta ----------------------------------------------------------------------------

lgamma = elementwise("lgamma", lambda xp, x: xp.polygamma(x, order=0))
polygamma = elementwise("polygamma", lambda xp, x, *, order: xp.polygamma(x, order=order + 1))
gamma = elementwise("gamma", lambda xp, x, out: out * xp.polygamma(x, order=0))
betaln = elementwise(
    "betaln",
    lambda xp, x, y: xp.polygamma(x, order=0) - xp.polygamma(x + y, order=0),
    lambda xp, x, y: xp.polygamma(y, order=0) - xp.polygamma(x + y, order=0),
)
beta = elementwise(
    "beta",
    lambda xp, x, y, out: out * (xp.polygamma(x, order=0) - xp.polygamma(x + y, order=0)),
    lambda xp, x, y, out: out * (xp.polygamma(y, order=0) - xp.polygamma(x + y, order=0)),
)
zeta = elementwise(
    "zeta",
    _not_implemented("zeta", "x"),
    lambda xp, x, y: -xp.astype(x, y.dtype) * xp.zeta(x + 1, y),  # x may be of an integer dtype
)


def _gamma_density(xp: Any, a: Array, x: Array) -> Array:
    a = xp.astype(a, x.dtype)  # it may be of an integer dtype
    return xp.exp(xp.xlogy(a - 1, x) - x - xp.lgamma(a))


def _log_gamma_moments(xp: Any, a: Array, x: Array, *, order: int) -> Array:
    # The derivative of (log t - ψ(a))^k p(t) by a.
    found = xp.gammainc_moment(a, x, order=order + 1)
    if order < 2:
        below = 0 if order == 0 else xp.gammainc(a, x)
    else:
        below = xp.gammainc_moment(a, x, order=order - 1)
    return found - order * xp.polygamma(a, order=1) * below


gammainc_moment = elementwise(
    "gammainc_moment",
    _log_gamma_moments,
    lambda xp, a, x, *, order: (
        _gamma_density(xp, a, x) * (xp.log(x) - xp.polygamma(a, order=0)) ** order
    ),
    forward=lambda xp, a, x, *, order: xp.gammainc_moment(a, x, order=order),
)
gammainc = elementwise(
    "gammainc",
    lambda xp, a, x: xp.gammainc_moment(a, x, order=1),
    _gamma_density,
    forward=lambda xp, a, x: xp.gammainc(a, x),
)
gammaincc = elementwise(
    "gammaincc",
    lambda xp, a, x: -xp.gammainc_moment(a, x, order=1),
    lambda xp, a, x: -_gamma_density(xp, a, x),
    forward=lambda xp, a, x: xp.gammaincc(a, x),
)


def _beta_density(xp: Any, a: Array, b: Array, x: Array) -> Array:
    a, b = xp.astype(a, x.dtype), xp.astype(b, x.dtype)
    return xp.exp(xp.xlogy(a - 1, x) + xp.xlog1py(b - 1, -x) - xp.betaln(a, b))


def _lower_beta_moment(xp: Any, a: Array, b: Array, x: Array, j: int, k: int) -> Array:
    return xp.betainc_moment(a, b, x, order=(j, k)) if j + k else xp.betainc(a, b, x)


def _log_beta_moments(
    xp: Any, a: Array, b: Array, x: Array, orders: tuple[int, int], first: bool
) -> Array:
    """Return the derivative of a moment by a or, if not `first`, by b."""
    j, k = orders
    found = xp.betainc_moment(a, b, x, order=(j + 1, k) if first else (j, k + 1))
    both = xp.polygamma(a + b, order=1)
    if j:
        slope = xp.polygamma(a, order=1) - both if first else -both
        found = found - j * slope * _lower_beta_moment(xp, a, b, x, j - 1, k)
    if k:
        slope = -both if first else xp.polygamma(b, order=1) - both
        found = found - k * slope * _lower_beta_moment(xp, a, b, x, j, k - 1)
    return found


def _beta_moment_density(xp: Any, a: Array, b: Array, x: Array, orders: tuple[int, int]) -> Array:
    both = xp.polygamma(a + b, order=0)
    left = xp.log(x) - xp.polygamma(a, order=0) + both
    right = xp.log1p(-x) - xp.polygamma(b, order=0) + both
    return _beta_density(xp, a, b, x) * left ** orders[0] * right ** orders[1]


betainc_moment = elementwise(
    "betainc_moment",
    lambda xp, a, b, x, *, order: _log_beta_moments(xp, a, b, x, order, True),
    lambda xp, a, b, x, *, order: _log_beta_moments(xp, a, b, x, order, False),
    lambda xp, a, b, x, *, order: _beta_moment_density(xp, a, b, x, order),
    forward=lambda xp, a, b, x, *, order: xp.betainc_moment(a, b, x, order=order),
)
betainc = elementwise(
    "betainc",
    lambda xp, a, b, x: xp.betainc_moment(a, b, x, order=(1, 0)),
    lambda xp, a, b, x: xp.betainc_moment(a, b, x, order=(0, 1)),
    _beta_density,
    forward=lambda xp, a, b, x: xp.betainc(a, b, x),
)

# --- Bessel functions -----------------------------------------------------------------------------


def _neighbours(name: str, sign: int) -> Rule:
    """Return the rule (f₋ + sign · f₊) / 2 of the orders below and above; f₋₁ is sign · f₁."""

    def rule(xp: Any, x: Array, *, order: float) -> Array:
        function = getattr(xp, name)
        if order == 0:
            return sign * function(x, order=1)
        return (function(x, order=order - 1) + sign * function(x, order=order + 1)) / 2

    return rule


_of_ie, _of_k, _of_ke = (_neighbours(name, 1) for name in ("bessel_ie", "bessel_k", "bessel_ke"))

bessel_j = elementwise("bessel_j", _neighbours("bessel_j", -1))
bessel_y = elementwise("bessel_y", _neighbours("bessel_y", -1))
bessel_i = elementwise("bessel_i", _neighbours("bessel_i", 1))
bessel_k = elementwise("bessel_k", lambda xp, x, *, order: -_of_k(xp, x, order=order))
# Scaled: I(x) e^(-|x|) and K(x) e^x.
bessel_ie = elementwise(
    "bessel_ie",
    lambda xp, x, out, *, order: _of_ie(xp, x, order=order) - xp.sign(x) * out,
)
bessel_ke = elementwise("bessel_ke", lambda xp, x, out, *, order: out - _of_ke(xp, x, order=order))


def _spherical_partial(xp: Any, x: Array, *, order: int) -> Array:
    above = (order + 1) / (2 * order + 1) * xp.spherical_bessel_j(x, order=order + 1)
    if order == 0:
        return -above
    return order / (2 * order + 1) * xp.spherical_bessel_j(x, order=order - 1) - above


spherical_bessel_j = elementwise("spherical_bessel_j", _spherical_partial)

# --- logit and entropies --------------------------------------------------------------------------


def _x_times_one_minus_x(xp: Any, x: Array) -> Array:
    """Return x (1 - x), and nan where x is outside of [0, 1]."""
    product = x * (1 - x)
    return xp.where(product < 0, xp.zeros_like(x) + float("nan"), product)


logit = symmetric(
    "logit",
    lambda xp, g, x: g / _x_times_one_minus_x(xp, x),
    forward=lambda xp, x: xp.log(x / (1 - x)),
)


def _entr(xp: Any, x: Array) -> Array:
    outside = x < 0
    inside = xp.masked(x, xp.logical_not(outside))
    return xp.where(outside, xp.zeros_like(x) - float("inf"), 0 - xp.xlogy(inside, inside))


entr = elementwise("entr", lambda xp, x: -1 - xp.log(x), forward=_entr)

rel_entr = elementwise("rel_entr", lambda xp, x, y: 1 + xp.log(x / y), lambda xp, x, y: -x / y)
