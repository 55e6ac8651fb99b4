"""Orthogonal polynomials, Legendre functions, and hypergeometric functions (DLMF 13, 14, 15, 18).

A derivative of a polynomial is the polynomial of one degree less of the next family (DLMF 18.9.15
to 18.9.26), so no formula divides by 1 - x², which is 0 at the ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.operation import SCIPY_UFUNCS
from chainrule.primitives.primitive import Rule
from chainrule.scipy.special.ufunc import ufunc, with_parameters

Array = Any

_DEGREE = {"n": "derivatives with respect to the degree have no closed form"}

# --- polynomials ----------------------------------------------------------------------------------


def _polynomial(name: str, inputs: str, partial: Callable[..., Array], **options: Any) -> None:
    """Declare a polynomial; `partial` takes the special functions, n - 1, and all arguments.

    For n = 0 it is called with n = 1, and the result is 0: there is no degree -1.
    """
    names = tuple(inputs.split())

    def rule(xp: Any, **values: Array) -> Array:
        n = values["n"]
        first = n == 0
        values["n"] = xp.where(first, xp.ones_like(n), n)
        found = partial(xp, values["n"] - 1, **values)
        return xp.masked(found, xp.logical_not(first))

    ufunc(name, inputs, reasons=_DEGREE, x=with_parameters(names, rule), **options)


def _legendre(xp: Any, m: Array, n: Array, x: Array) -> Array:
    one = xp.ones_like(n)
    return (n + 1) / 2 * xp.special.eval_jacobi(m, one, one, x)


def _chebyt(xp: Any, m: Array, n: Array, x: Array) -> Array:
    return n * xp.special.eval_chebyu(m, x)


def _chebyu(xp: Any, m: Array, n: Array, x: Array) -> Array:
    return 2 * xp.special.eval_gegenbauer(m, 2 * xp.ones_like(n), x)


_polynomial("eval_legendre", "n x", _legendre)
_polynomial("eval_chebyt", "n x", _chebyt)
_polynomial("eval_chebyu", "n x", _chebyu)
# Cₙ(x) = 2 Tₙ(x/2), Sₙ(x) = Uₙ(x/2); shifted polynomials are those of 2x - 1
_polynomial("eval_chebyc", "n x", lambda xp, m, n, x: _chebyt(xp, m, n, x / 2))
_polynomial("eval_chebys", "n x", lambda xp, m, n, x: _chebyu(xp, m, n, x / 2) / 2)
_polynomial("eval_sh_legendre", "n x", lambda xp, m, n, x: 2 * _legendre(xp, m, n, 2 * x - 1))
_polynomial("eval_sh_chebyt", "n x", lambda xp, m, n, x: 2 * _chebyt(xp, m, n, 2 * x - 1))
_polynomial("eval_sh_chebyu", "n x", lambda xp, m, n, x: 2 * _chebyu(xp, m, n, 2 * x - 1))
_polynomial(
    "eval_jacobi",
    "n alpha beta x",
    lambda xp, m, n, alpha, beta, x: (
        (n + alpha + beta + 1) / 2 * xp.special.eval_jacobi(m, alpha + 1, beta + 1, x)
    ),
)
_polynomial(
    "eval_sh_jacobi",
    "n p q x",
    lambda xp, m, n, p, q, x: n * xp.special.eval_sh_jacobi(m, p + 2, q + 1, x),
)
_polynomial(
    "eval_gegenbauer",
    "n alpha x",
    lambda xp, m, n, alpha, x: 2 * alpha * xp.special.eval_gegenbauer(m, alpha + 1, x),
)
_polynomial(
    "eval_laguerre",
    "n x",
    lambda xp, m, n, x: -xp.special.eval_genlaguerre(m, xp.ones_like(n), x),
)
_polynomial(
    "eval_genlaguerre",
    "n alpha x",
    lambda xp, m, n, alpha, x: -xp.special.eval_genlaguerre(m, alpha + 1, x),
)


def _of_integers(name: str) -> Rule:
    """Return the forward function of a family that takes integer degrees only."""

    def forward(xp: Any, n: Array, x: Array) -> Array:
        found = getattr(xp.special, name)(xp.astype(n, np.dtype("l")), x)
        return xp.astype(found, x.dtype)

    return forward


for _name, _factor in (("eval_hermite", 2), ("eval_hermitenorm", 1)):
    _polynomial(
        _name,
        "n x",
        lambda xp, m, n, x, name=_name, factor=_factor: factor * n * _of_integers(name)(xp, m, x),
        integer="n",
        forward=_of_integers(_name),
    )

# --- Legendre functions ---------------------------------------------------------------------------


def _slope_of_legendre(xp: Any, m: Array, v: Array, x: Array) -> Array:
    factor = v + m
    below = xp.where(factor == 0, v, v - 1)  # there is no function of an order below -v
    lpmv = xp.special.lpmv
    return (factor * lpmv(m, below, x) - v * x * lpmv(m, v, x)) / ((1 - x) * (1 + x))


ufunc(
    "lpmv",  # DLMF 14.10.5, infinite or nan at ±1
    "m v x",
    integer="m",
    reasons={"v": _DEGREE["n"]},
    x=_slope_of_legendre,
)


def _spherical(xp: Any, n: Array, m: Array, theta: Array) -> Array:
    """Return spherical Legendre functions of integers: SciPy's, or by those that scale them."""
    if isinstance(theta, Tensor):
        return SCIPY_UFUNCS["sph_legendre_p"](n, m, theta)
    if isinstance(theta, np.ndarray):
        count = np.dtype("l")
        found = xp.special.sph_legendre_p(xp.astype(n, count), xp.astype(m, count), theta)
        return xp.astype(found[0], theta.dtype)  # of derivatives of the orders from 0 to 0
    exists = xp.abs(m) <= n
    m = xp.masked(m, exists)
    ratio = xp.special.gammaln(n - m + 1) - xp.special.gammaln(n + m + 1)
    scale = xp.sqrt((2 * n + 1) / (4 * math.pi)) * xp.exp(ratio / 2)
    return xp.masked(scale * xp.special.lpmv(m, n, xp.cos(theta)), exists)


def _slope_by_angle(xp: Any, n: Array, m: Array, theta: Array) -> Array:
    """Return the derivative by neighbours (DLMF 14.10.1 and .4), finite at the poles, too."""
    zero = n * 0
    above = xp.sqrt(xp.maximum((n - m) * (n + m + 1), zero))
    below = xp.sqrt(xp.maximum((n + m) * (n - m + 1), zero))
    after, before = [_spherical(xp, n, m + step, theta) for step in (1, -1)]
    half = xp.where(xp.sin(theta) < 0, zero - 0.5, zero + 0.5)  # they are functions of |sin θ|
    return half * (above * after - below * before)


ufunc(
    "sph_legendre_p",
    "n m theta",
    integer="n m",
    kinds=("f", "f", "f"),
    forward=_spherical,
    theta=_slope_by_angle,
)

# --- hypergeometric functions (DLMF 13.3.15, 13.3.22, 15.5.1, 16.3.1) -----------------------------

ufunc("hyp0f1", "v z", z=lambda xp, v, z: xp.special.hyp0f1(v + 1, z) / v)
ufunc("hyp1f1", "a b x", x=lambda xp, a, b, x: a / b * xp.special.hyp1f1(a + 1, b + 1, x))
ufunc(
    "hyp2f1",
    "a b c z",
    z=lambda xp, a, b, c, z: a * b / c * xp.special.hyp2f1(a + 1, b + 1, c + 1, z),
)
ufunc("hyperu", "a b x", x=lambda xp, a, b, x: -a * xp.special.hyperu(a + 1, b + 1, x))
ufunc("wright_bessel", "a b x", x=lambda xp, a, b, x: xp.special.wright_bessel(a, a + b, x))
ufunc(
    "log_wright_bessel",
    "a b x",
    x=lambda xp, a, b, x, out: xp.exp(xp.special.log_wright_bessel(a, a + b, x) - out),
)
