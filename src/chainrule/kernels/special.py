"""The special functions: SciPy's, or CuPy's of the same names, imported when one is first called.

SciPy is an extra. Of the commonest there are programs in NumPy alone, in `erf_and_gamma`; where
SciPy is installed, its own are taken for those too, which are faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from chainrule.errors import MissingExtraError
from chainrule.kernels import erf_gamma

Array = Any
Kernel = Callable[..., Array]


@cache
def _kernel(name: str, xp: Any) -> Kernel:
    """Return the function of that name for arrays of a module, `numpy` or `cupy`."""
    try:
        return _MAKERS[name](name, _library(name, xp))
    except MissingExtraError:
        if name in _OWN:
            return _in_its_dtype(_OWN[name])
        raise


def _library(name: str, xp: Any) -> Any:
    path = {"numpy": "scipy.special", "cupy": "cupyx.scipy.special"}[xp.__name__]
    try:
        return import_module(path)
    except ImportError as error:
        raise MissingExtraError(
            f"{name} needs SciPy, which is not installed: pip install 'chainrule[scipy]'"
        ) from error


def _in_its_dtype(function: Kernel) -> Kernel:
    """SciPy has no float16, and some of its functions give doubles only."""

    def kernel(*arrays: Array, **settings: Any) -> Array:
        out = function(*arrays, **settings)
        dtype = arrays[-1].dtype
        return out if out.dtype == dtype else out.astype(dtype)

    return kernel


# --- from a library -------------------------------------------------------------------------------


def _same(name: str, library: Any) -> Kernel:
    return _in_its_dtype(getattr(library, _LIBRARY_NAMES.get(name, name)))


_LIBRARY_NAMES = {"lgamma": "gammaln"}


def _polygamma(name: str, library: Any) -> Kernel:
    psi, zeta = library.psi, library.zeta

    def polygamma(x: Array, *, order: int) -> Array:
        if order == 0:
            return psi(x)
        wide = x.astype("float64")  # the factorial soon leaves float32
        factor = float(math.factorial(order)) if order <= 170 else math.inf
        return (-1) ** (order + 1) * factor * zeta(float(order + 1), wide)

    return _in_its_dtype(polygamma)


def _far_out(function: Callable[..., Array], sign: int) -> Callable[..., Array]:
    """Return a scaled Bessel function that isn't nan for huge arguments (DLMF 10.40.1, 10.40.2)."""
    factor = math.sqrt(math.pi / 2) if sign > 0 else 1 / math.sqrt(2 * math.pi)

    def scaled(order: float, x: Array) -> Array:
        size = abs(x) if sign < 0 and order == int(order) else x  # K is of positive numbers
        far = (size > 1e9) & (order < 1e3)
        if not far.any():
            return function(order, x)
        size, square = np.where(far, size, 1e9), 4 * order * order
        first, second = (square - 1) / (8 * size), (square - 9) / (16 * size)
        found = factor / np.sqrt(size) * (1 + sign * first + first * second)
        odd = (x < 0) & (order % 2 == 1)
        return np.where(far, np.where(odd, -found, found), function(order, x))

    return scaled


def _bessel(name: str, library: Any) -> Kernel:
    letter, scaled = name[len("bessel_")], name.endswith("e")
    end = "e" if scaled else ""
    general = getattr(library, f"{letter}v{end}", None)
    if scaled and general is not None:
        general = _far_out(general, -1 if letter == "i" else 1)
    quick = {n: getattr(library, f"{letter}{n}{end}") for n in (0, 1)}
    flips = letter in "jy"  # J₋ₙ = (-1)ⁿ Jₙ, and Y's; I₋ₙ = Iₙ, and K's

    def bessel(x: Array, *, order: float) -> Array:
        sign = -1 if order < 0 and flips and order % 2 == 1 else 1
        if order < 0 and (order == int(order) or letter == "k"):
            order = -order
        if order in quick:
            return sign * quick[int(order)](x)
        if general is None:
            raise NotImplementedError(  # CuPy's library has no other one
                f"{name} of order {order}: {library.__name__} has the orders 0 and 1 alone; "
                "compute on the CPU"
            )
        return sign * general(order, x)

    return _in_its_dtype(bessel)


# --- the functions, with the array module first ---------------------------------------------------


def _own_polygamma(x: Array, *, order: int) -> Array:
    if order:
        raise MissingExtraError(
            "polygamma of an order above 0, and so the second derivative of lgamma, needs SciPy, "
            "which is not installed: pip install 'chainrule[scipy]'"
        )
    return erf_gamma.digamma(x)


_OWN: dict[str, Kernel] = {
    "erf": erf_gamma.erf,
    "erfc": erf_gamma.erfc,
    "lgamma": erf_gamma.lgamma,
    "polygamma": _own_polygamma,
}
"""What is also there without SciPy."""

_MAKERS: dict[str, Callable[[str, Any], Kernel]] = {
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
        _same,
    ),
}
"""How the function of each name is made of a library."""


def _of_module(name: str) -> Kernel:
    def function(xp: Any, *arrays: Array, **settings: Any) -> Array:
        return _kernel(name, xp)(*arrays, **settings)

    return function


globals().update({name: _of_module(name) for name in _MAKERS})
