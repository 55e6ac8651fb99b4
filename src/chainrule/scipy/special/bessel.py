"""Airy, Bessel, Kelvin and Struve functions, and their integrals (DLMF 9, 10, 11).

The recurrences in the order avoid the divisions by x of other formulas.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule.primitives.primitive import Rule
from chainrule.scipy.special.ufunc import ufunc

Array = Any

_ORDER = {"v": "derivatives with respect to the order have no closed form"}

# --- Airy functions: w'' = z w (DLMF 9.2.1) -------------------------------------------------------

ufunc(
    "airy",
    "z",
    "ai aip bi bip",
    z=(
        lambda xp, aip: aip,
        lambda xp, z, ai: z * ai,
        lambda xp, bip: bip,
        lambda xp, z, bi: z * bi,
    ),
)


def _root(xp: Any, z: Array) -> Array:
    """Return the root of z, and 0 for z < 0, with derivative 0 there."""
    right = z > 0
    return xp.where(right, xp.sqrt(xp.where(right, z, xp.ones_like(z))), xp.zeros_like(z))


# Ai is scaled by exp(2/3 z^(3/2)), which is complex for z < 0, Bi by exp(-|Re 2/3 z^(3/2)|).
ufunc(
    "airye",
    "z",
    "eai eaip ebi ebip",
    holomorphic=False,
    z=(
        lambda xp, z, eai, eaip: eaip + _root(xp, z) * eai,
        lambda xp, z, eai, eaip: z * eai + _root(xp, z) * eaip,
        lambda xp, z, ebi, ebip: ebip - _root(xp, z) * ebi,
        lambda xp, z, ebi, ebip: z * ebi - _root(xp, z) * ebip,
    ),
)
ufunc(
    "itairy",
    "x",
    "apt bpt ant bnt",
    x=(
        lambda xp, x: xp.special.airy(x)[0],
        lambda xp, x: xp.special.airy(x)[2],
        lambda xp, x: xp.special.airy(-x)[0],
        lambda xp, x: xp.special.airy(-x)[2],
    ),
)

# --- Bessel functions (DLMF 10.6.1, 10.29.1) ------------------------------------------------------


def _neighbours(name: str, sign: int) -> Rule:
    """Return the rule (f of the order below + sign · f of the order above) / 2."""

    def rule(xp: Any, v: Array, z: Array) -> Array:
        f = getattr(xp.special, name)
        return (f(v - 1, z) + sign * f(v + 1, z)) / 2

    return rule


_by_order = {
    name: _neighbours(name, -1)
    for name in ("jv", "yv", "jve", "yve", "hankel1", "hankel2", "hankel1e", "hankel2e")
}
_by_order |= {name: _neighbours(name, 1) for name in ("iv", "ive", "kv", "kve")}

for _name in ("jv", "yv", "hankel1", "hankel2", "iv"):
    ufunc(_name, "v z", reasons=_ORDER, z=_by_order[_name])
for _name in ("jve", "yve"):  # scaled by exp(-|Im z|)
    ufunc(_name, "v z", reasons=_ORDER, holomorphic=False, z=_by_order[_name])
ufunc("yn", "n x", integer="n", x=lambda xp, n, x: _by_order["yv"](xp, n, x))
ufunc("kn", "n x", integer="n", x=lambda xp, n, x: -_by_order["kv"](xp, n, x))
ufunc("kv", "v z", reasons=_ORDER, z=lambda xp, v, z: -_by_order["kv"](xp, v, z))
ufunc(
    "ive",  # scaled by exp(-|Re z|)
    "v z",
    reasons=_ORDER,
    holomorphic=False,
    z=lambda xp, v, z, out: _by_order["ive"](xp, v, z) - xp.sign(z) * out,
)
ufunc(
    "kve",  # scaled by exp(z)
    "v z",
    reasons=_ORDER,
    z=lambda xp, v, z, out: out - _by_order["kve"](xp, v, z),
)
ufunc(
    "hankel1e",  # scaled by exp(-iz)
    "v z",
    reasons=_ORDER,
    z=lambda xp, v, z, out: _by_order["hankel1e"](xp, v, z) - 1j * out,
)
ufunc(
    "hankel2e",  # scaled by exp(iz)
    "v z",
    reasons=_ORDER,
    z=lambda xp, v, z, out: _by_order["hankel2e"](xp, v, z) + 1j * out,
)

# --- spherical Bessel functions (DLMF 10.51.2, 10.51.5) -------------------------------------------


def _of_orders_around(name: str, below: int, above: int) -> Rule:
    """Return the rule (± n · f of the order below ± (n + 1) · f of the order above) / (2n + 1)."""

    def rule(xp: Any, n: Array, z: Array) -> Array:
        f = getattr(xp.special, name)
        lower = f(xp.maximum(n - 1, 0 * n), z)  # that of n = 0 has the factor 0
        return (below * n * lower + above * (n + 1) * f(n + 1, z)) / (2 * n + 1)

    return rule


SPHERICAL: dict[str, Rule] = {
    "spherical_jn": _of_orders_around("spherical_jn", 1, -1),
    "spherical_yn": _of_orders_around("spherical_yn", 1, -1),
    "spherical_in": _of_orders_around("spherical_in", 1, 1),
    "spherical_kn": _of_orders_around("spherical_kn", -1, -1),
}
"""Derivatives of the functions of SciPy's with the argument `derivative`."""

for _name, _slope in SPHERICAL.items():
    ufunc(_name, "n z", integer="n", kinds=("f", "fc"), z=_slope)

# --- integrals of Bessel functions (DLMF 10.22, 10.43) --------------------------------------------


def near_zero(xp: Any, x: Array, series: tuple[float, ...], power: int, far: Any) -> Array:
    """Return a power series in x^power for |x| < 1, and `far(x)` elsewhere, where that cancels."""
    near = xp.abs(x) < 1
    small = xp.where(near, x, xp.zeros_like(x)) ** power
    total = series[-1] * xp.ones_like(x)
    for coefficient in reversed(series[:-1]):
        total = total * small + coefficient
    return xp.where(near, total, far(xp.where(near, xp.ones_like(x), x)))


# (1 - J₀(x)) / x² and (I₀(x) - 1) / x² (DLMF 10.8.3, 10.25.2)
_I_SERIES = (0.25, 1 / 64, 1 / 2304, 1 / 147456, 1 / 14745600, 1 / 2123366400, 1 / 416179814400)
_J_SERIES = tuple([(-1) ** k * c for k, c in enumerate(_I_SERIES)])

ufunc(
    "itj0y0",
    "x",
    "ij0 iy0",
    x=(lambda xp, x: xp.special.j0(x), lambda xp, x: xp.special.y0(x)),
)
ufunc(
    "it2j0y0",
    "x",
    "ij0 iy0",
    x=(
        lambda xp, x: x * near_zero(xp, x, _J_SERIES, 2, lambda x: (1 - xp.special.j0(x)) / x / x),
        lambda xp, x: -xp.special.y0(x) / x,
    ),
)
ufunc(
    "iti0k0",
    "x",
    "ii0 ik0",
    x=(lambda xp, x: xp.special.i0(x), lambda xp, x: xp.special.k0(x)),
)
ufunc(
    "it2i0k0",
    "x",
    "ii0 ik0",
    x=(
        lambda xp, x: x * near_zero(xp, x, _I_SERIES, 2, lambda x: (xp.special.i0(x) - 1) / x / x),
        lambda xp, x: -xp.special.k0(x) / x,
    ),
)
ufunc(
    "besselpoly",  # ∫ x^lmb J_nu(2ax) dx from 0 to 1
    "a lmb nu",
    a=lambda xp, a, lmb, nu: (
        xp.special.besselpoly(a, lmb + 1, nu - 1) - xp.special.besselpoly(a, lmb + 1, nu + 1)
    ),
)

# --- Kelvin functions: y'' = iy - y'/x for y = ber + i bei (DLMF 10.61.3) -------------------------


def _series(first: int) -> tuple[float, ...]:
    """Return the coefficients of y'/x in powers of x⁴ (DLMF 10.65.1), y starting with x^first."""
    powers = range(first, first + 24, 4)
    signs = [(-1) ** (n // 4) for n in powers]
    return tuple(
        [s * n / 2.0**n / math.factorial(n // 2) ** 2 for s, n in zip(signs, powers, strict=True)]
    )


_BER, _BEI = _series(4), _series(2)


def _over_x(xp: Any, x: Array, slope: str) -> Array:
    f = getattr(xp.special, slope)
    if slope == "berp":
        return x * x * near_zero(xp, x, _BER, 4, lambda x: f(x) / x / x / x)
    return near_zero(xp, x, _BEI, 4, lambda x: f(x) / x)


ufunc("ber", "x", x=lambda xp, x: xp.special.berp(x))
ufunc("bei", "x", x=lambda xp, x: xp.special.beip(x))
ufunc("ker", "x", x=lambda xp, x: xp.special.kerp(x))
ufunc("kei", "x", x=lambda xp, x: xp.special.keip(x))
ufunc("berp", "x", x=lambda xp, x: -xp.special.bei(x) - _over_x(xp, x, "berp"))
ufunc("beip", "x", x=lambda xp, x: xp.special.ber(x) - _over_x(xp, x, "beip"))
ufunc("kerp", "x", x=lambda xp, x, out: -xp.special.kei(x) - out / x)
ufunc("keip", "x", x=lambda xp, x, out: xp.special.ker(x) - out / x)
ufunc(
    "kelvin",
    "x",
    "be ke bep kep",
    real=True,
    x=(
        lambda xp, bep: bep,
        lambda xp, kep: kep,
        lambda xp, x, be: 1j * be - xp.complex(_over_x(xp, x, "berp"), _over_x(xp, x, "beip")),
        lambda xp, x, ke, kep: 1j * ke - kep / x,
    ),
)

# --- Struve functions (DLMF 11.4.25, 11.4.26) -----------------------------------------------------


def _excess(xp: Any, v: Array, x: Array) -> Array:
    return xp.pow(x / 2, v) * xp.special.rgamma(v + 1.5) * 0.5641895835477563  # 1/√π


def _struve(name: str, sign: int) -> Rule:
    def rule(xp: Any, v: Array, x: Array) -> Array:
        f = getattr(xp.special, name)
        return (f(v - 1, x) + sign * f(v + 1, x) + _excess(xp, v, x)) / 2

    return rule


ufunc("struve", "v x", reasons=_ORDER, x=_struve("struve", -1))
ufunc("modstruve", "v x", reasons=_ORDER, x=_struve("modstruve", 1))
ufunc("itstruve0", "x", x=lambda xp, x: xp.special.struve(xp.zeros_like(x), x))
ufunc("it2struve0", "x", x=lambda xp, x: -xp.special.struve(xp.zeros_like(x), x) / x)
ufunc("itmodstruve0", "x", x=lambda xp, x: xp.special.modstruve(xp.zeros_like(x), x))
