"""Error functions, log Γ and digamma in plain NumPy, used when SciPy is not installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.interrupts import errstate

Array = Any


def _polynomial(t: Array, coefficients: tuple[float, ...]) -> Array:
    """Return Σ cₖ tᵏ; importing numpy.polynomial for this would take 30 ms."""
    value = t * 0 + coefficients[-1]
    for c in reversed(coefficients[:-1]):
        value = value * t + c
    return value


def _chebyshev(t: Array, coefficients: tuple[float, ...]) -> Array:
    """Return Σ cₖ Tₖ(t), by Clenshaw's recurrence."""
    value, previous, double = coefficients[-1], 0.0, 2 * t
    for c in reversed(coefficients[1:-1]):
        value, previous = double * value - previous + c, value
    return t * value - previous + coefficients[0]


# Chebyshev coefficients, computed by interpolation in 50 digits.
_ERF_SMALL = (  # erf(x) / x on |x| ≤ 1, in 2x² - 1
    *(0.9754769393826541, -0.14226120510371365, 0.010035582187599796, -0.0005768764699767485),
    *(2.741993125219606e-05, -1.1043175507344507e-06, 3.8488755420345036e-08),
    *(-1.1808582533875466e-09, 3.2334215826050907e-11, -7.991015947004549e-13),
    *(1.7990725113961456e-14, -3.718635487818693e-16, 7.103599003714253e-18),
)
_ERFC_LARGE = (  # (1 + 2x) e^(x²) erfc(x) on x ≥ 1, in (x - 5) / (x + 3)
    *(1.214373361609205, -0.08560693623397121, -0.005999640519915682, 0.007801951554945334),
    *(-0.002715651717391105, 0.0006115494911330234, -9.340626641960768e-05),
    *(7.818816898966098e-06, 2.7197258578141963e-07, -1.6637239214622205e-07),
    *(1.3133701262289988e-08, 2.0754203597909473e-09, -4.4148718962068737e-10),
    *(-1.7967351765140848e-11, 1.1481428873007284e-11, -2.807460684069243e-14),
    *(-3.012251024442509e-13, 7.106503405462323e-15, 8.542035882836416e-15),
    *(-2.329298464180819e-16, -2.6466825044432234e-16, 3.6530930803828e-18),
)


def _erf_small(x: Array) -> Array:
    """Return erf(x) where |x| ≤ 1."""
    x = np.clip(x, -1, 1)
    return x * _chebyshev(2 * x * x - 1, _ERF_SMALL)


@errstate(under="ignore")
def _erfc_large(x: Array) -> Array:
    """Return erfc(x) where x ≥ 1, to full relative precision.

    The method is Shepherd and Laframboise's, Math. Comp. 36(153), 1981. x² is split into an exact
    square and a small remainder: the relative error of e^(-x²) is the absolute error of x².
    """
    x = np.clip(x, 1, 30)  # from 27 on it is 0
    rounded = x.astype(np.float32).astype(np.float64)
    decay = np.exp(-rounded * rounded) * np.exp((rounded - x) * (rounded + x))
    return decay * _chebyshev((x - 5) / (x + 3), _ERFC_LARGE) / (1 + 2 * x)


def erf(x: Array) -> Array:
    """Return the error function."""
    wide = np.asarray(x, np.float64)
    size = np.abs(wide)
    return np.where(size <= 1, _erf_small(wide), np.copysign(1 - _erfc_large(size), wide))


def erfc(x: Array) -> Array:
    """Return the complementary error function, 1 - erf(x)."""
    wide = np.asarray(x, np.float64)
    erfc_of_abs = _erfc_large(np.abs(wide))
    return np.where(
        np.abs(wide) <= 1, 1 - _erf_small(wide), np.where(wide < 0, 2 - erfc_of_abs, erfc_of_abs)
    )


_STIRLING_SHIFT = 10
"""Shift of the argument of Stirling's series, which is accurate for large arguments."""

# B₂ₖ / (2k (2k - 1)) and B₂ₖ / 2k, k = 1, 2, …, of the Bernoulli numbers B.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_STIRLING_DERIVATIVE = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


@errstate(all="ignore")
def lgamma(x: Array) -> Array:
    """Return log |Γ(x)|: Stirling's series at x + 10, reflected at 1/2 (DLMF 5.11.1, 5.5.3)."""
    wide = np.asarray(x, np.float64)
    left = wide < 0.5
    at = np.where(left, 1 - wide, wide)
    product = at
    for i in range(1, _STIRLING_SHIFT):
        product = product * (at + i)
    shifted = at + _STIRLING_SHIFT
    series = _polynomial(1 / (shifted * shifted), _STIRLING) / shifted
    stirling = (
        (shifted - 0.5) * np.log(shifted) - shifted + 0.9189385332046727 + series
    )  # log √(2π)
    large = (at - 0.5) * np.log(at) - at + 0.9189385332046727 + 1 / (12 * at)
    value = np.where(at > 1e10, large, stirling - np.log(product))
    sine = np.abs(np.sin(np.pi * (wide - np.round(wide))))
    value = np.where(left, 1.1447298858494002 - np.log(sine) - value, value)  # log π
    return np.where(np.isinf(wide), np.inf, value)


@errstate(all="ignore")
def digamma(x: Array) -> Array:
    """Return the derivative of log Γ, in the same way (DLMF 5.11.2, 5.5.2 and 5.5.4)."""
    wide = np.asarray(x, np.float64)
    left = wide < 0.5
    at = np.where(left, 1 - wide, wide)
    shifted = at + _STIRLING_SHIFT
    square = 1 / (shifted * shifted)
    value = np.log(shifted) - 0.5 / shifted - square * _polynomial(square, _STIRLING_DERIVATIVE)
    for i in range(_STIRLING_SHIFT):
        value = value - 1 / (at + i)
    part = wide - np.round(wide)
    value = np.where(left, value - np.pi / np.tan(np.pi * part), value)
    pole = np.where(wide == 0, np.copysign(np.inf, -wide), np.nan)
    return np.where((part == 0) & (wide <= 0), pole, value)
