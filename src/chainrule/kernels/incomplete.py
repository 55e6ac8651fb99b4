"""Derivatives of the incomplete gamma and beta functions with respect to their parameters.

They are moments of a logarithm over a part of the distribution, here by double-exponential
quadrature: for an integrand that decays like exp(-w), w = exp(u - exp(-u)/10) and the trapezoidal
rule in u (H. Takahasi, M. Mori, Publ. RIMS 9, 1974); the factor 1/10 needs fewer nodes. The part
of the smaller probability is integrated; the rest follows from the moments of the whole, which
polygamma functions give.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.errors import DeviceFunctionError, MissingExtraError
from chainrule.interrupts import errstate

Array = Any

_STEP = 0.09
_U = np.arange(-5.8, 4.6, _STEP)
_NODES = np.exp(_U - 0.1 * np.exp(-_U))
_WEIGHTS = _STEP * _NODES * (1 + 0.1 * np.exp(-_U))


def _special(xp: Any) -> Any:
    if xp.__name__ != "numpy":
        raise DeviceFunctionError(
            "derivatives by a parameter are computed on the CPU only: move the tensors with .cpu()"
        )
    try:
        import scipy.special
    except ImportError as error:
        raise MissingExtraError(
            "derivatives by parameters need SciPy, which is not installed: "
            "pip install 'chainrule[scipy]'"
        ) from error
    return scipy.special


def _integral(shape: tuple[int, ...], scale: Array, integrand: Callable[[Array], Array]) -> Array:
    """Return the integrals over w > 0 of functions that decay over a length of `scale`."""
    if math.prod(shape) <= _SMALL:  # all nodes at once, which takes fewer calls
        nodes = _NODES.reshape(-1, *(1,) * len(shape))
        return np.tensordot(_WEIGHTS, integrand(nodes * scale), 1) * scale
    total = np.zeros(shape)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += weight * integrand(node * scale)
    return total * scale


_SMALL = 1024
"""Number of elements up to which all nodes are evaluated at once."""


@errstate(all="ignore")
def gammainc_moment(xp: Any, a: Array, x: Array, *, order: int) -> Array:
    """Return ∫ p(t) (log t - ψ(a))^order dt from 0 to x, p being the gamma density of shape a."""
    special = _special(xp)
    dtype = np.result_type(a, x)
    a, x = np.broadcast_arrays(np.asarray(a, float), np.asarray(x, float))
    upper = x > np.maximum(a, 1)
    sign = np.where(upper, -1.0, 1.0)
    log_x, mean = np.log(x), special.psi(a)
    height = np.exp(special.xlogy(a, x) - x - special.gammaln(a))
    width = np.where(upper, np.sqrt(np.maximum(x, 1)), 1 / np.sqrt(special.zeta(2.0, a)))
    scale = 1 / (np.maximum(sign * (a - x), 0) + width)

    def integrand(w: Array) -> Array:
        drop = sign * a * w + x * np.expm1(-sign * w)
        return np.exp(-drop) * (log_x - sign * w - mean) ** order

    part = height * _integral(a.shape, scale, integrand)
    cumulants = {(n, 0): special.polygamma(n - 1, a) for n in range(2, order + 1)}
    found = np.where(upper, _moment(cumulants, order, 0) - part, part)
    found = np.where(x == 0, 0.0, np.where(np.isinf(x), _moment(cumulants, order, 0), found))
    return np.where((a > 0) & (x >= 0), found, np.nan).astype(dtype)


@errstate(all="ignore")
def betainc_moment(xp: Any, a: Array, b: Array, x: Array, *, order: tuple[int, int]) -> Array:
    """Return ∫ p(t) (log t - E log t)^j (log(1-t) - E log(1-t))^k dt from 0 to x, order = (j, k).

    p is the beta density of the parameters a and b.
    """
    special = _special(xp)
    dtype = np.result_type(a, b, x)
    parts: Any = np.broadcast_arrays(*[np.asarray(part, float) for part in (a, b, x)])
    a, b, x = parts
    j, k = order
    both: Array = special.psi(a + b)
    upper = x > a / (a + b)
    swapped: Any = [np.where(upper, b, a), np.where(upper, a, b), np.where(upper, 1 - x, x)]
    first, second, y = swapped
    log_y, beside = np.log(y), np.log1p(-y)
    height = np.exp(special.xlogy(first, y) + (second - 1) * beside - special.betaln(a, b))
    spread = special.zeta(2.0, first) - special.zeta(2.0, a + b)
    rate = first - np.maximum(second - 1, 0) * y / (1 - y)
    scale = 1 / (np.maximum(rate, 0) + np.minimum(1 / np.sqrt(spread), first))
    mean_t, mean_rest = special.psi(a) - both, special.psi(b) - both

    def integrand(w: Array) -> Array:
        log_t, log_rest = log_y - w, np.log1p(-y * np.exp(-w))
        value = np.exp(-first * w + (second - 1) * (log_rest - beside))
        log_t, log_rest = np.where(upper, log_rest, log_t), np.where(upper, log_t, log_rest)
        return value * (log_t - mean_t) ** j * (log_rest - mean_rest) ** k

    part = height * _integral(a.shape, scale, integrand)
    cumulants: dict[tuple[int, int], Array] = {}
    for n in range(2, j + k + 1):
        shared = -special.polygamma(n - 1, a + b)
        cumulants |= {(p, n - p): shared for p in range(1, n)}
        cumulants[n, 0] = special.polygamma(n - 1, a) + shared
        cumulants[0, n] = special.polygamma(n - 1, b) + shared
    whole = _moment(cumulants, j, k)
    found = np.where(upper, whole - part, part)
    found = np.where(x == 0, 0.0, np.where(x == 1, whole, found))
    return np.where((a > 0) & (b > 0) & (x >= 0) & (x <= 1), found, np.nan).astype(dtype)


def _moment(cumulants: dict[tuple[int, int], Array], j: int, k: int) -> Array:
    """Return the central moment of orders j and k, from the cumulants of order 2 and above."""
    if j < 0 or k < 0:
        return 0.0
    if j == k == 0:
        return 1.0
    total: Array = 0.0
    for p in range(j or 1):
        for q in range(k + 1 if j else k):
            cumulant = cumulants.get((j - p, k - q))
            if cumulant is not None:
                ways = math.comb(j - 1, p) * math.comb(k, q) if j else math.comb(k - 1, q)
                total = total + ways * cumulant * _moment(cumulants, p, q)
    return total
