"""Gamma and beta functions, exponential and Fresnel integrals, and elementary functions.

Formulas are those of the DLMF, chapters 4 to 7 and 25, unless said otherwise.
"""

from __future__ import annotations

from typing import Any

from chainrule.primitives.primitive import is_complex
from chainrule.scipy.special.ufunc import ufunc

Array = Any

_PI = 3.141592653589793
_DEGREE = 0.017453292519943295  # π/180

# --- gamma functions (DLMF 5.2, 5.5.3) ------------------------------------------------------------

ufunc("gammasgn", "x", constant=True)
ufunc("round", "x", constant=True)
ufunc("loggamma", "z", z=lambda xp, z: xp.special.psi(z))
ufunc(
    "zetac",
    "x",
    reasons={"x": "the derivative of Riemann's zeta function has no closed form"},
)


def _rgamma_partial(xp: Any, z: Array, out: Array) -> Array:
    """Return -ψ/Γ; for z < 1/2 by reflection, 1/Γ(z) = sin(πz) Γ(1 - z)/π, finite at the poles."""
    if is_complex(z):
        return -out * xp.special.psi(z)
    left = z < 0.5
    other = xp.where(left, 1 - z, 1 - xp.zeros_like(z))
    turn = xp.where(left, z, xp.zeros_like(z)) * _PI
    reflected = xp.special.gamma(other) * (
        xp.cos(turn) - xp.sin(turn) / _PI * xp.special.psi(other)
    )
    right = xp.where(left, xp.ones_like(z), z)
    return xp.where(left, reflected, -xp.special.psi(right) * xp.special.rgamma(right))


ufunc("rgamma", "z", z=_rgamma_partial)
ufunc(
    "poch",
    "z m",
    z=lambda xp, z, m, out: out * (xp.special.psi(z + m) - xp.special.psi(z)),
    m=lambda xp, z, m, out: out * xp.special.psi(z + m),
)
ufunc(
    "binom",
    "x y",
    x=lambda xp, x, y, out: out * (xp.special.psi(x + 1) - xp.special.psi(x - y + 1)),
    y=lambda xp, x, y, out: out * (xp.special.psi(x - y + 1) - xp.special.psi(y + 1)),
)

# --- exponential, trigonometric and Fresnel integrals (DLMF 6.2, 7.2, 8.19.13, 25.12.2) -----------


def _expn_partial(xp: Any, n: Array, x: Array) -> Array:
    zero = n == 0
    order = xp.where(zero, xp.ones_like(n), n)
    first = xp.exp(-x) * (x + 1) / (x * x)
    return -xp.where(zero, first, xp.special.expn(order - 1, x))


ufunc("expn", "n x", integer="n", x=_expn_partial)


def _sinc(xp: Any, x: Array, sign: float) -> Array:
    """Return sin(x)/x or, for sign 1, sinh(x)/x (DLMF 10.16.9, 10.39.9)."""
    return xp.special.hyp0f1(1.5 * xp.ones_like(xp.real(x)), sign / 4 * x * x)


ufunc("sici", "z", "si ci", z=(lambda xp, z: _sinc(xp, z, -1), lambda xp, z: xp.cos(z) / z))
ufunc("shichi", "z", "shi chi", z=(lambda xp, z: _sinc(xp, z, 1), lambda xp, z: xp.cosh(z) / z))
ufunc(
    "fresnel",
    "z",
    "s c",
    z=(
        lambda xp, z: xp.sin(_PI / 2 * z * z),
        lambda xp, z: xp.cos(_PI / 2 * z * z),
    ),
)


def _phase(xp: Any, x: Array, sign: int) -> Array:
    """Return exp(± i x²)."""
    return xp.complex(xp.cos(x * x), sign * xp.sin(x * x))


_EIGHTH = 0.3989422804014327  # cos(π/4)/√π
ufunc(
    "modfresnelp",  # F = ∫ exp(it²) dt from x to ∞, K = exp(-i(x² + π/4)) F / √π
    "x",
    "f k",
    real=True,
    x=(
        lambda xp, x: -_phase(xp, x, 1),
        lambda xp, x, k: -2j * x * k - (_EIGHTH - 1j * _EIGHTH),
    ),
)
ufunc(
    "modfresnelm",
    "x",
    "f k",
    real=True,
    x=(
        lambda xp, x: -_phase(xp, x, -1),
        lambda xp, x, k: 2j * x * k - (_EIGHTH + 1j * _EIGHTH),
    ),
)


def _log1p_over(xp: Any, x: Array) -> Array:
    """Return log(1 + x)/x, smooth at 0 (DLMF 15.4.1)."""
    one = xp.ones_like(xp.real(x))
    return xp.special.hyp2f1(one, one, 2 * one, -x)


ufunc("spence", "z", z=lambda xp, z: -_log1p_over(xp, z - 1))
ufunc(
    "exprel",  # (e^x - 1)/x = M(1, 2, x) (DLMF 13.6.2)
    "x",
    x=lambda xp, x: _exprel_partial(xp, x),
)


def _exprel_partial(xp: Any, x: Array) -> Array:
    one = xp.ones_like(x)
    return xp.special.hyp1f1(2 * one, 3 * one, x) / 2


ufunc("wrightomega", "z", z=lambda xp, out: out / (1 + out))
ufunc(
    "lambertw",  # W exp(W) = z
    "z k tol",
    integer="k",
    reasons={"tol": "it is a tolerance"},
    kinds=("c", "f", "f"),
    double=True,
    z=lambda xp, out: xp.exp(-out) / (1 + out),
)

# --- error functions ------------------------------------------------------------------------------

ufunc(
    "wofz",
    "z",
    z=lambda xp, z, out: 1.1283791670955126j - 2 * z * out,  # 2i/√π (DLMF 7.10.2)
)


def _faddeeva(xp: Any, x: Array, sigma: Array, gamma: Array) -> tuple[Array, Array]:
    """Return z = (x + iγ)/(σ√2), and w'(z)."""
    scale = 0.7071067811865476 / sigma
    # of one shape: broadcasting is left to the engine
    zero = xp.zeros_like(x * sigma * gamma)
    z = xp.complex(x * scale + zero, gamma * scale + zero)
    return z, 1.1283791670955126j - 2 * z * xp.special.wofz(z)


def _voigt_x(xp: Any, x: Array, sigma: Array, gamma: Array) -> Array:
    return xp.real(_faddeeva(xp, x, sigma, gamma)[1]) / (sigma * sigma) * 0.28209479177387814


def _voigt_gamma(xp: Any, x: Array, sigma: Array, gamma: Array) -> Array:
    return -xp.imag(_faddeeva(xp, x, sigma, gamma)[1]) / (sigma * sigma) * 0.28209479177387814


def _voigt_sigma(xp: Any, x: Array, sigma: Array, gamma: Array, out: Array) -> Array:
    z, slope = _faddeeva(xp, x, sigma, gamma)
    return -out / sigma - 0.3989422804014327 * xp.real(z * slope) / (sigma * sigma)


ufunc("voigt_profile", "x sigma gamma", x=_voigt_x, sigma=_voigt_sigma, gamma=_voigt_gamma)
ufunc(
    "owens_t",  # Patefield and Tandy, J. Stat. Softw. 5(5), 2000, equation 1
    "h a",
    h=lambda xp, h, a: (
        -0.19947114020071635 * xp.exp(-h * h / 2) * xp.special.erf(0.7071067811865476 * a * h)
    ),
    a=lambda xp, h, a: xp.exp(-h * h * (1 + a * a) / 2) / (2 * _PI * (1 + a * a)),
)


def _ndtri_exp_partial(xp: Any, y: Array, out: Array) -> Array:
    """Return Φ/φ at the result: for negative ones by `erfcx`, as both are tiny."""
    right = out > 0
    zero = xp.zeros_like(out)
    left = 1.2533141373155003 * xp.special.erfcx(-0.7071067811865476 * xp.where(right, zero, out))
    safe = xp.where(right, out, zero)
    return xp.where(right, 2.5066282746310002 * xp.exp(y + safe * safe / 2), left)


ufunc("ndtri_exp", "y", y=_ndtri_exp_partial)

# --- powers and losses ----------------------------------------------------------------------------


def _power_slope(xp: Any, log: Array, exponent: Array) -> Array:
    """Return the derivative of (exp(λL) - 1)/λ by λ."""
    x = exponent * log
    return log * log * _exprel_partial(xp, x)


ufunc(
    "boxcox",
    "x lmbda",
    x=lambda xp, x, lmbda: xp.pow(x, lmbda - 1),
    lmbda=lambda xp, x, lmbda: _power_slope(xp, xp.log(x), lmbda),
)
ufunc(
    "boxcox1p",
    "x lmbda",
    x=lambda xp, x, lmbda: xp.exp((lmbda - 1) * xp.log1p(x)),
    lmbda=lambda xp, x, lmbda: _power_slope(xp, xp.log1p(x), lmbda),
)


def _root_slope(xp: Any, y: Array, exponent: Array) -> Array:
    """Return the derivative of log(1 + λy)/λ by λ (DLMF 15.5.1)."""
    one = xp.ones_like(y * exponent)
    return -y * y * xp.special.hyp2f1(2 * one, 2 * one, 3 * one, -exponent * y) / 2


ufunc(
    "inv_boxcox",
    "y lmbda",
    y=lambda xp, y, lmbda, out: out / (1 + lmbda * y),
    lmbda=lambda xp, y, lmbda, out: out * _root_slope(xp, y, lmbda),
)
ufunc(
    "inv_boxcox1p",
    "y lmbda",
    y=lambda xp, y, lmbda, out: (out + 1) / (1 + lmbda * y),
    lmbda=lambda xp, y, lmbda, out: (out + 1) * _root_slope(xp, y, lmbda),
)
ufunc(
    "powm1",
    "x y",
    x=lambda xp, x, y: y * xp.pow(x, y - 1),
    y=lambda xp, x, y: xp.special.xlogy(xp.pow(x, y), x),
)


def _excess(xp: Any, delta: Array, r: Array) -> Array:
    """Return |r| - δ where that is positive, else 0."""
    over = xp.abs(r) - delta
    return xp.masked(over, over > 0)


ufunc(
    "huber",
    "delta r",
    delta=_excess,
    r=lambda xp, delta, r: r - xp.sign(r) * _excess(xp, delta, r),
)


def _ratio(xp: Any, delta: Array, r: Array) -> tuple[Array, Array]:
    """Return r/δ and √(1 + (r/δ)²); the loss is 0 for δ = 0."""
    flat = delta == 0
    u = xp.masked(r / xp.where(flat, xp.ones_like(delta), delta), xp.logical_not(flat))
    return u, xp.sqrt(1 + u * u)


def _pseudo_huber_delta(xp: Any, delta: Array, r: Array) -> Array:
    u, s = _ratio(xp, delta, r)
    square = u * u / (1 + s)
    return delta * square * square / s


def _pseudo_huber_r(xp: Any, delta: Array, r: Array) -> Array:
    u, s = _ratio(xp, delta, r)
    return delta * u / s


ufunc("pseudo_huber", "delta r", delta=_pseudo_huber_delta, r=_pseudo_huber_r)

# --- degrees --------------------------------------------------------------------------------------

ufunc("sindg", "x", x=lambda xp, x: _DEGREE * xp.special.cosdg(x))
ufunc("cosdg", "x", x=lambda xp, x: -_DEGREE * xp.special.sindg(x))
ufunc("tandg", "x", x=lambda xp, out: _DEGREE * (1 + out * out))
ufunc("cotdg", "x", x=lambda xp, out: -_DEGREE * (1 + out * out))
ufunc(
    "radian",
    "d m s",
    d=lambda xp, d: _DEGREE * xp.ones_like(d),
    m=lambda xp, m: _DEGREE / 60 * xp.ones_like(m),
    s=lambda xp, s: _DEGREE / 3600 * xp.ones_like(s),
)
