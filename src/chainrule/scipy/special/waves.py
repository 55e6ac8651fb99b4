"""Mathieu, spheroidal and parabolic cylinder functions (DLMF 12, 28, 30).

Each comes with its derivative, whose own derivative is that of the differential equation. Mathieu
and spheroidal functions are computed in double precision: in single precision SciPy's are nan, or
never return.
"""

from __future__ import annotations

from typing import Any

from chainrule.primitives.primitive import Rule
from chainrule.scipy.special.ufunc import ufunc

Array = Any

_DEGREE = 0.017453292519943295  # π/180


def _slope(xp: Any, d: Array) -> Array:
    return d


# --- parabolic cylinder functions (DLMF 12.2.2, 12.2.3) -------------------------------------------

_ORDER = {"v": "derivatives with respect to the order have no closed form"}

for _name in ("pbdv", "pbvv"):
    ufunc(
        _name,
        "v x",
        "y d",
        reasons=_ORDER,
        x=(_slope, lambda xp, v, x, y: (x * x / 4 - v - 0.5) * y),
    )
ufunc("pbwa", "a x", "y d", x=(_slope, lambda xp, a, x, y: (a - x * x / 4) * y))

# --- Mathieu functions (DLMF 28.2.1, 28.20.1) -----------------------------------------------------

for _name in ("mathieu_a", "mathieu_b"):
    ufunc(_name, "m q", integer="m", double=True)


def _mathieu(value: str, modified: bool) -> tuple[Rule, Rule]:
    """Return the derivatives by x: in degrees, or of a modified function in radians."""

    def curvature(xp: Any, m: Array, q: Array, x: Array, y: Array) -> Array:
        a = getattr(xp.special, value)(m, q)
        if modified:
            return (a - 2 * q * xp.cosh(2 * x)) * y
        return -_DEGREE * (a - 2 * q * xp.cos(2 * _DEGREE * x)) * y

    return (_slope if modified else lambda xp, d: _DEGREE * d), curvature


for _name, _value in (("cem", "mathieu_a"), ("sem", "mathieu_b")):
    ufunc(f"mathieu_{_name}", "m q x", "y d", integer="m", double=True, x=_mathieu(_value, False))
    for _kind in "12":
        ufunc(
            f"mathieu_mod{_name}{_kind}",
            "m q x",
            "y d",
            integer="m",
            double=True,
            x=_mathieu(_value, True),
        )

# --- spheroidal wave functions (DLMF 30.2.1) ------------------------------------------------------
#
# Prolate: (1 - x²) y'' - 2x y' + (λ - c²x² - m²/(1 - x²)) y = 0, oblate: ic in the place of c, and
# ix in that of x for radial ones.


def _equation(kind: str, x: str) -> Any:
    """Return y'' as a function of the characteristic value λ and of all else."""

    def prolate(m: Array, c: Array, x: Array, y: Array, d: Array, cv: Array) -> Array:
        square = 1 - x * x
        return (2 * x * d - (cv - c * c * x * x - m * m / square) * y) / square

    def angular(m: Array, c: Array, x: Array, y: Array, d: Array, cv: Array) -> Array:
        square = 1 - x * x
        return (2 * x * d - (cv + c * c * x * x - m * m / square) * y) / square

    def radial(m: Array, c: Array, x: Array, y: Array, d: Array, cv: Array) -> Array:
        square = 1 + x * x
        return ((cv - c * c * x * x - m * m / square) * y - 2 * x * d) / square

    return prolate if kind == "pro" else angular if x == "ang" else radial


def _spheroidal(kind: str, name: str) -> None:
    """Declare a spheroidal function, with its characteristic value computed, and given."""
    equation, value = _equation(kind, name[:3]), f"{kind}_cv"

    def computed(xp: Any, m: Array, n: Array, c: Array, x: Array, y: Array, d: Array) -> Array:
        return equation(m, c, x, y, d, getattr(xp.special, value)(m, n, c))

    def given(xp: Any, m: Array, c: Array, cv: Array, x: Array, y: Array, d: Array) -> Array:
        return equation(m, c, x, y, d, cv)

    ufunc(f"{kind}_{name}", "m n c x", "y d", integer="m n", double=True, x=(_slope, computed))
    ufunc(f"{kind}_{name}_cv", "m n c cv x", "y d", integer="m n", double=True, x=(_slope, given))


for _kind in ("pro", "obl"):
    ufunc(f"{_kind}_cv", "m n c", integer="m n", double=True)
    for _name in ("ang1", "rad1", "rad2"):
        _spheroidal(_kind, _name)
