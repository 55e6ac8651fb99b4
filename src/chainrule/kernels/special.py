"""Special functions of SciPy or CuPy, imported when one is first called.

SciPy is optional. The commonest functions have fallbacks in plain NumPy (`erf_gamma`); where SciPy
is installed, its faster ones are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from chainrule.errors import DeviceFunctionError, MissingExtraError
from chainrule.interrupts import errstate
from chainrule.kernels import erf_gamma

Array = Any
Kernel = Callable[..., Array]


@cache
def kernel_for(name: str, xp: Any) -> Kernel:
    """Return the function of a name for arrays of NumPy's module or of CuPy's namespace."""
    try:
        return _FACTORIES[name](name, _library(name, xp))
    except MissingExtraError:
        if name in NUMPY_FALLBACKS:
            return _cast_to_input(NUMPY_FALLBACKS[name])
        raise


def _library(name: str, xp: Any) -> Any:
    if xp.__name__ != "numpy":
        return xp.special
    try:
        return import_module("scipy.special")
    except ImportError as error:
        raise MissingExtraError(
            f"{name} needs SciPy, which is not installed: pip install 'chainrule[scipy]'"
        ) from error


def _cast_to_input(function: Kernel) -> Kernel:
    """Wrap a function so that the result has the dtype of the last input, also float16."""

    def kernel(*arrays: Array, **settings: Any) -> Array:
        out = function(*arrays, **settings)
        dtype = arrays[-1].dtype
        return out if out.dtype == dtype else out.astype(dtype)

    return kernel


# --- functions of a library -----------------------------------------------------------------------


def _from_library(name: str, library: Any) -> Kernel:
    return _cast_to_input(getattr(library, _LIBRARY_NAMES.get(name, name)))


_LIBRARY_NAMES = {"lgamma": "gammaln"}


def _polygamma(name: str, library: Any) -> Kernel:
    psi, zeta, is_numpy = library.psi, library.zeta, library.__name__ == "scipy.special"

    def polygamma(x: Array, *, order: int) -> Array:
        if order == 0:
            return psi(x)
        wide = x.astype("float64")  # the factorial overflows float32
        factor = float(math.factorial(order)) if order <= 170 else math.inf
        is_near = order <= 4 and x.size >= 256 and is_numpy and (wide > 0).all()
        found = _hurwitz_zeta(order + 1, wide) if is_near else zeta(float(order + 1), wide)
        return (-1) ** (order + 1) * factor * found

    return _cast_to_input(polygamma)


@errstate(all="ignore")
def _hurwitz_zeta(s: int, x: Array) -> Array:
    """Return Σ (x + k)⁻ˢ of positive x, by Euler's and Maclaurin's sum (DLMF 25.11.28).

    For s = 2 … 5 it takes a twentieth of the time of SciPy's, which sums for each element.
    """
    flat, out = x.reshape(-1), np.empty(x.size)
    for first in range(0, x.size, _ZETA_PART):
        part = flat[first : first + _ZETA_PART]
        y = 1 / (part + _ZETA_TERMS)
        power, square = y ** (s - 1), y * y
        total = np.full(part.shape, 0.0)
        for j in range(len(_BERNOULLI), 0, -1):
            rising = math.prod(range(s, s + 2 * j - 1)) / math.factorial(2 * j)
            total = (total + _BERNOULLI[j - 1] * rising) * square
        total = power * (total + y / 2 + 1 / (s - 1))
        for k in range(_ZETA_TERMS - 1, -1, -1):  # the small ones first
            y = 1 / (part + k)
            power = y * y
            for _ in range(s - 2):
                power *= y
            total += power
        out[first : first + _ZETA_PART] = total
    return out.reshape(x.shape)


_ZETA_TERMS, _ZETA_PART = 12, 8192
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""Terms before the formula for the rest, elements at a time, and Bernoulli's numbers B₂ … B₁₆."""


def _with_asymptotics(function: Callable[..., Array], sign: int) -> Callable[..., Array]:
    """Return a scaled Bessel function that is finite for huge arguments (DLMF 10.40.1, 10.40.2)."""
    factor = math.sqrt(math.pi / 2) if sign > 0 else 1 / math.sqrt(2 * math.pi)

    def scaled(order: float, x: Array) -> Array:
        size = abs(x) if sign < 0 and order == int(order) else x  # K has positive arguments only
        huge = (size > 1e9) & (order < 1e3)
        if not huge.any():
            return function(order, x)
        size, square = np.where(huge, size, 1e9), 4 * order * order
        first, second = (square - 1) / (8 * size), (square - 9) / (16 * size)
        found = factor / np.sqrt(size) * (1 + sign * first + first * second)
        odd = (x < 0) & (order % 2 == 1)
        return np.where(huge, np.where(odd, -found, found), function(order, x))

    return scaled


def _bessel(name: str, library: Any) -> Kernel:
    letter, scaled = name[len("bessel_")], name.endswith("e")
    end = "e" if scaled else ""
    general = getattr(library, f"{letter}v{end}", None)
    if scaled and general is not None:
        general = _with_asymptotics(general, -1 if letter == "i" else 1)
    integer_orders = {n: getattr(library, f"{letter}{n}{end}") for n in (0, 1)}
    flips = letter in "jy"  # J₋ₙ = (-1)ⁿ Jₙ, Y likewise; I₋ₙ = Iₙ, K likewise

    def bessel(x: Array, *, order: float) -> Array:
        sign = -1 if order < 0 and flips and order % 2 == 1 else 1
        if order < 0 and (order == int(order) or letter == "k"):
            order = -order
        if order in integer_orders:
            return sign * integer_orders[int(order)](x)
        if general is None:
            raise DeviceFunctionError(
                f"{name} of order {order}: CuPy has the orders 0 and 1 only: move the tensors "
                "with .cpu()"
            )
        return sign * general(order, x)

    return _cast_to_input(bessel)


# --- extensions of the namespaces, with the array module first ------------------------------------


def _numpy_polygamma(x: Array, *, order: int) -> Array:
    if order:
        raise MissingExtraError(
            "polygamma of an order above 0, and so the second derivative of lgamma, needs SciPy, "
            "which is not installed: pip install 'chainrule[scipy]'"
        )
    return erf_gamma.digamma(x)


NUMPY_FALLBACKS: dict[str, Kernel] = {
    "erf": erf_gamma.erf,
    "erfc": erf_gamma.erfc,
    "lgamma": erf_gamma.lgamma,
    "polygamma": _numpy_polygamma,
}
"""Fallbacks for use without SciPy."""

_FACTORIES: dict[str, Callable[[str, Any], Kernel]] = {
    "polygamma": _polygamma,
    **dict.fromkeys(
        ("bessel_j", "bessel_y", "bessel_i", "bessel_k", "bessel_ie", "bessel_ke"), _bessel
    ),
    **dict.fromkeys(
        (
            *("erf", "erfc", "erfi", "erfcx", "erfinv", "dawsn", "ndtri", "log_ndtr"),
            *("expi", "exp1", "lgamma", "gamma", "beta", "betaln", "betainc", "zeta"),
            *("gammainc", "gammaincc", "rel_entr"),
        ),
        _from_library,
    ),
}
"""Factories that make the function of each name from a library."""


def _extension(name: str) -> Kernel:
    def function(xp: Any, *arrays: Array, **settings: Any) -> Array:
        return kernel_for(name, xp)(*arrays, **settings)

    return function


globals().update({name: _extension(name) for name in _FACTORIES})
