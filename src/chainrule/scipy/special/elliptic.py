"""Elliptic integrals and functions, and the arithmetic-geometric mean (DLMF 19, 22)."""

from __future__ import annotations

from typing import Any

from numpy.polynomial.legendre import leggauss

from chainrule.primitives.primitive import is_complex
from chainrule.scipy.special.ufunc import ufunc

Array = Any

# --- derivatives of Legendre's integrals by the parameter -----------------------------------------
#
# Formulas with elliptic integrals divide by m. For |m| < 1/2 Gauss's rule with 16 nodes is used,
# which is exact to rounding: the integrands are smooth there.

_NODES, _WEIGHTS = ((part + offset) / 2 for part, offset in zip(leggauss(16), (1, 0), strict=True))


def _by_parameter(xp: Any, phi: Array, m: Array, first_kind: bool) -> Array:
    """Return ∂F/∂m or ∂E/∂m for |φ| ≤ π/2 and |m| < 1/2, by quadrature (DLMF 19.2.4, 19.2.5)."""
    total = None
    for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
        sine = xp.sin(phi * node)
        square = sine * sine
        rest = 1 - m * square
        root = xp.sqrt(rest)
        term = weight / 2 * square / (rest * root if first_kind else -root)
        total = term if total is None else total + term
    return phi * total


_HALF_PI = 1.5707963267948966


def _split(xp: Any, m: Array) -> tuple[Array, Array, Array]:
    """Return whether |m| < 1/2, m where it is, and m elsewhere."""
    small = xp.abs(m) < 0.5
    zero = xp.zeros_like(m)
    return small, xp.where(small, m, zero), xp.where(small, zero + 0.75, m)


def _k_slope(xp: Any, m: Array) -> Array:
    """Return dK/dm (DLMF 19.4.1)."""
    small, near, far = _split(xp, m)
    k, e = xp.special.ellipk(far), xp.special.ellipe(far)
    direct = (e - (1 - far) * k) / (2 * far * (1 - far))
    return xp.where(small, _by_parameter(xp, _HALF_PI * xp.ones_like(m), near, True), direct)


def _e_slope(xp: Any, m: Array) -> Array:
    """Return dE/dm (DLMF 19.4.2)."""
    small, near, far = _split(xp, m)
    direct = (xp.special.ellipe(far) - xp.special.ellipk(far)) / (2 * far)
    return xp.where(small, _by_parameter(xp, _HALF_PI * xp.ones_like(m), near, False), direct)


def _turns(xp: Any, phi: Array) -> Array:
    """Return the number of half turns in φ, for the integrals are quasiperiodic."""
    return xp.round(phi / (2 * _HALF_PI))


def _incomplete(xp: Any, phi: Array, m: Array, first_kind: bool) -> Array:
    """Return ∂F/∂m or ∂E/∂m (DLMF 19.4.5, 19.4.6)."""
    m = m + xp.zeros_like(phi)
    phi = phi + xp.zeros_like(m)
    small, near, far = _split(xp, m)
    turns = _turns(xp, phi)
    slope = _k_slope if first_kind else _e_slope
    reduced = phi - 2 * _HALF_PI * turns
    by_rule = _by_parameter(xp, reduced, near, first_kind) + 2 * turns * slope(xp, near)
    f, e = xp.special.ellipkinc(phi, far), xp.special.ellipeinc(phi, far)
    if first_kind:
        sine = xp.sin(phi)
        root = xp.sqrt(1 - far * sine * sine)
        direct = (e / (1 - far) - f) / (2 * far) - sine * xp.cos(phi) / (2 * (1 - far) * root)
    else:
        direct = (e - f) / (2 * far)
    return xp.where(small, by_rule, direct)


def _delta(xp: Any, phi: Array, m: Array) -> Array:
    sine = xp.sin(phi)
    return xp.sqrt(1 - m * sine * sine)


# --- Legendre's integrals -------------------------------------------------------------------------


def _km1_slope(xp: Any, p: Array) -> Array:
    """Return the derivative of K(1 - p), for small p without the rounding of 1 - p."""
    small = p < 0.5
    near = xp.where(small, p, 0.25 + xp.zeros_like(p))
    far = xp.where(small, 0.75 + xp.zeros_like(p), p)
    k, e = xp.special.ellipkm1(near), xp.special.ellipe(1 - near)
    direct = (near * k - e) / (2 * near * (1 - near))
    return xp.where(small, direct, -_k_slope(xp, 1 - far))


ufunc("ellipk", "m", m=_k_slope)
ufunc("ellipkm1", "p", p=_km1_slope)
ufunc("ellipe", "m", m=_e_slope)
ufunc(
    "ellipkinc",
    "phi m",
    phi=lambda xp, phi, m: 1 / _delta(xp, phi, m),
    m=lambda xp, phi, m: _incomplete(xp, phi, m, True),
)
ufunc(
    "ellipeinc",
    "phi m",
    phi=_delta,
    m=lambda xp, phi, m: _incomplete(xp, phi, m, False),
)

# --- Jacobi's functions: F(ph, m) = u, sn = sin ph, cn = cos ph, dn = √(1 - m sn²) ----------------


def _angle_by_m(xp: Any, m: Array, ph: Array, dn: Array) -> Array:
    return -dn * _incomplete(xp, ph, m, True)


ufunc(
    "ellipj",
    "u m",
    "sn cn dn ph",
    u=(
        lambda xp, cn, dn: cn * dn,
        lambda xp, sn, dn: -sn * dn,
        lambda xp, m, sn, cn: -m * sn * cn,
        lambda xp, dn: dn,
    ),
    m=(
        lambda xp, m, cn, dn, ph: cn * _angle_by_m(xp, m, ph, dn),
        lambda xp, m, sn, dn, ph: -sn * _angle_by_m(xp, m, ph, dn),
        lambda xp, m, sn, cn, dn, ph: (
            -(sn * sn / dn + 2 * m * sn * cn * _angle_by_m(xp, m, ph, dn) / dn) / 2
        ),
        lambda xp, m, dn, ph: _angle_by_m(xp, m, ph, dn),
    ),
)

# --- Carlson's integrals (DLMF 19.16, 19.18): partial fractions under the integral sign -----------


def _rd_first(xp: Any, x: Array, y: Array, z: Array) -> Array:
    """Return the derivative of R_D(x, y, z) by x; nan where x = z."""
    return -0.5 * (xp.special.elliprd(x, y, z) - xp.special.elliprd(z, y, x)) / (x - z)


def _rd_last(xp: Any, x: Array, y: Array, z: Array, out: Array) -> Array:
    """Return the derivative of R_D by z, from Euler's relation: its degree is -3/2."""
    return -(1.5 * out + x * _rd_first(xp, x, y, z) + y * _rd_first(xp, y, x, z)) / z


def _rc(xp: Any, x: Array, y: Array, out: Array) -> Array:
    """Return the derivative of R_C by x: for y > 0 in a form that is smooth at x = y."""
    if is_complex(out):
        return (out - 1 / xp.sqrt(x)) / (2 * (y - x))
    positive = y > 0
    one = xp.ones_like(out)
    above, half = xp.where(positive, y, one), 1.5 * one
    smooth = xp.special.hyp2f1(half, half, 2.5 * one, 1 - x / above) / (above * xp.sqrt(above))
    below = xp.where(positive, -one, y)
    return xp.where(positive, -smooth / 6, (out - 1 / xp.sqrt(x)) / (2 * (below - x)))


ufunc(
    "elliprc",  # DLMF 19.6.15 and 15.4.4; for y < 0 Cauchy's principal value
    "x y",
    x=_rc,
    y=lambda xp, x, y, out: -(out / 2 + x * _rc(xp, x, y, out)) / y,
)
ufunc(
    "elliprf",
    "x y z",
    x=lambda xp, x, y, z: xp.special.elliprd(y, z, x) / -6,
    y=lambda xp, x, y, z: xp.special.elliprd(x, z, y) / -6,
    z=lambda xp, x, y, z: xp.special.elliprd(x, y, z) / -6,
)
ufunc("elliprd", "x y z", x=_rd_first, y=lambda xp, x, y, z: _rd_first(xp, y, x, z), z=_rd_last)


def _rg(xp: Any, x: Array, y: Array, z: Array) -> Array:
    """Return the derivative of R_G by x."""
    return xp.special.elliprf(x, y, z) / 4 - x / 12 * xp.special.elliprd(y, z, x)


ufunc(
    "elliprg",
    "x y z",
    x=_rg,
    y=lambda xp, x, y, z: _rg(xp, y, x, z),
    z=lambda xp, x, y, z: _rg(xp, z, x, y),
)


def _rj(xp: Any, x: Array, y: Array, z: Array, p: Array, out: Array) -> Array:
    """Return the derivative of R_J by x; nan where x = p."""
    return -0.5 * (xp.special.elliprd(y, z, x) - out) / (p - x)


def _rj_last(xp: Any, x: Array, y: Array, z: Array, p: Array, out: Array) -> Array:
    by_x, by_y, by_z = (_rj(xp, *args, p, out) for args in ((x, y, z), (y, x, z), (z, x, y)))
    return -(1.5 * out + x * by_x + y * by_y + z * by_z) / p


ufunc(
    "elliprj",
    "x y z p",
    x=_rj,
    y=lambda xp, x, y, z, p, out: _rj(xp, y, x, z, p, out),
    z=lambda xp, x, y, z, p, out: _rj(xp, z, x, y, p, out),
    p=_rj_last,
)

# --- arithmetic-geometric mean: π (a + b) / (4 K(m)), m = ((a - b)/(a + b))² (DLMF 19.8.5) --------


def _agm_partial(xp: Any, a: Array, b: Array, out: Array) -> Array:
    """Return the derivative by a."""
    total = a + b
    ratio = (a - b) / total
    m = ratio * ratio
    change = _k_slope(xp, m) / xp.special.ellipk(m) * 4 * ratio * b / (total * total)
    return out * (1 / total - change)


ufunc("agm", "a b", a=_agm_partial, b=lambda xp, a, b, out: _agm_partial(xp, b, a, out))
