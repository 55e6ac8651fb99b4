"""Functions that several distributions are made of, smooth where their formulas are 0/0."""

from __future__ import annotations

import math
from typing import Any

from chainrule import ops
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.scipy import special as _special  # noqa: F401 - declares the ufuncs

sp: Any = TENSOR_XP.special
"""The ufuncs of `scipy.special`, of tensors."""

SQRT_2PI_LOG = 0.5 * math.log(2 * math.pi)

_SERIES_BELOW = 0.03
"""Up to this size of z, log(1 + z)/z is its series: 14 terms leave less than 1e-21."""
_TERMS = [(-1) ** n / (n + 1) for n in range(14)]


def log_norm_pdf(x: Any) -> Any:
    """Return the logarithm of the standard normal density."""
    return -0.5 * (x * x) - SQRT_2PI_LOG


def log1p_square(x: Any) -> Any:
    """Return log(1 + x²), for x whose square overflows, too."""
    large = ops.abs(x) > 1e8
    near = ops.where(large, 0.0, x)
    far = ops.where(large, ops.abs(x), 1.0)
    return ops.where(large, 2 * ops.log(far), ops.log1p(near * near))


def by_size(x: Any, least: float, small: Any, large: Any) -> Any:
    """Return ``small(x)`` for x up to a bound, and its asymptotic series ``large(x)`` above."""
    is_large = x > least
    low, high = ops.where(is_large, least, x), ops.where(is_large, x, 2 * least)
    return ops.where(is_large, large(high), small(low))


def log_one_plus(z: Any) -> Any:
    """Return log(1 + z)/z, smooth at 0."""
    small = ops.abs(z) < _SERIES_BELOW
    near = ops.where(small, z, 0.0)
    series: Any = _TERMS[-1]
    for term in _TERMS[-2::-1]:
        series = near * series + term
    far = ops.where(small, 1.0, z)
    return ops.where(small, series, ops.log1p(far) / far)


def log_complement(log: Any) -> Any:
    """Return log(1 - e^log) for log < 0, with all digits at both ends."""
    near_one = log < -math.log(2)
    small = ops.log1p(-ops.exp(ops.where(near_one, log, -1.0)))
    return ops.where(near_one, small, ops.log(-ops.expm1(log)))


def log_difference(larger: Any, smaller: Any) -> Any:
    """Return log(e^larger - e^smaller)."""
    return larger + log_complement(smaller - larger)


def log_normal_mass(a: Any, b: Any) -> Any:
    """Return log(Φ(b) - Φ(a)) for a ≤ b, without cancellation in either tail."""
    flipped = a > 0
    low, high = ops.where(flipped, -b, a), ops.where(flipped, -a, b)
    central = high > 0
    tail_high = ops.where(central, -1.0, high)
    tail_low = ops.where(central, -2.0, low)
    in_tail = log_difference(sp.log_ndtr(tail_high), sp.log_ndtr(tail_low))
    mid_low, mid_high = ops.where(central, low, -1.0), ops.where(central, high, 1.0)
    across = ops.log1p(-sp.ndtr(mid_low) - sp.ndtr(-mid_high))
    return ops.where(central, across, in_tail)


def finite_if(condition: Any, function: Any, *arguments: Any, safe: float) -> Any:
    """Return a moment where it is finite, and infinity elsewhere."""
    inner = [ops.where(condition, argument, safe) for argument in arguments]
    return ops.where(condition, function(*inner), math.inf)
