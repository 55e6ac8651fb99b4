"""Distributions on an interval (N. L. Johnson et al., Continuous Univariate Distributions, 1994).

Parametrised as in SciPy's documentation.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule import ops
from chainrule.scipy.stats.distribution import describe
from chainrule.scipy.stats.ratios import SQRT_2PI_LOG, log_norm_pdf, log_normal_mass, sp

_UNIT = (0.0, 1.0)
_INF = math.inf

uniform = describe(
    "uniform",
    "",
    lambda x: 0 * x,
    support=_UNIT,
    cdf=lambda x: x,
    sf=lambda x: 1 - x,
    ppf=lambda q: q,
    isf=lambda q: 1 - q,
    mean=0.5,
    var=1 / 12,
    entropy=0.0,
)


def _beta_var(a: Any, b: Any) -> Any:
    total = a + b
    return a * b / (total * total * (total + 1))


def _beta_entropy(a: Any, b: Any) -> Any:
    return sp.betaln(a, b) - (a - 1) * sp.psi(a) - (b - 1) * sp.psi(b) + (a + b - 2) * sp.psi(a + b)


beta = describe(
    "beta",
    "a b",
    lambda x, a, b: sp.xlog1py(b - 1, -x) + sp.xlogy(a - 1, x) - sp.betaln(a, b),
    support=_UNIT,
    cdf=lambda x, a, b: sp.betainc(a, b, x),
    sf=lambda x, a, b: sp.betaincc(a, b, x),
    ppf=lambda q, a, b: sp.betaincinv(a, b, q),
    isf=lambda q, a, b: sp.betainccinv(a, b, q),
    mean=lambda a, b: a / (a + b),
    var=_beta_var,
    entropy=_beta_entropy,
)

arcsine = describe(
    "arcsine",
    "",
    lambda x: -math.log(math.pi) - 0.5 * ops.log(x * (1 - x)),
    support=_UNIT,
    cdf=lambda x: 2 / math.pi * ops.asin(ops.sqrt(x)),
    ppf=lambda q: ops.square(ops.sin(math.pi / 2 * q)),
    mean=0.5,
    var=1 / 8,
    entropy=math.log(math.pi / 4),
)

powerlaw = describe(
    "powerlaw",
    "a",
    lambda x, a: ops.log(a) + sp.xlogy(a - 1, x),
    support=_UNIT,
    logcdf=lambda x, a: a * ops.log(x),
    ppf=lambda q, a: q ** (1 / a),
    mean=lambda a: a / (a + 1),
    var=lambda a: a / (a + 2) / ops.square(a + 1),
    entropy=lambda a: 1 - 1 / a - ops.log(a),
)


# --- the triangle ---------------------------------------------------------------------------------


def _in_unit(c: Any) -> Any:
    return ops.logical_and(c >= 0, c <= 1)


def _by_side(rises: Any, rising: Any, falling: Any, c: Any) -> Any:
    """Return a value on either side of the peak, of which one has no width for c of 0 or 1."""
    return ops.where(rises, rising(ops.where(c == 0, 1.0, c)), falling(ops.where(c == 1, 0.0, c)))


def _triangle_log_density(x: Any, c: Any) -> Any:
    def rising(c: Any) -> Any:
        return ops.log(2 * x / c)

    def falling(c: Any) -> Any:
        return ops.log(2 * (1 - x) / (1 - c))

    return _by_side(_rises(x, c), rising, falling, c)


def _rises(x: Any, c: Any) -> Any:
    return ops.logical_or(x < c, c == 1)


def _triangle_cdf(x: Any, c: Any) -> Any:
    def falling(c: Any) -> Any:
        return 1 - ops.square(1 - x) / (1 - c)

    return _by_side(_rises(x, c), lambda c: x * x / c, falling, c)


def _triangle_ppf(q: Any, c: Any) -> Any:
    return ops.where(q < c, ops.sqrt(c * q), 1 - ops.sqrt((1 - c) * (1 - q)))


triang = describe(
    "triang",
    "c",
    _triangle_log_density,
    support=_UNIT,
    valid=_in_unit,
    cdf=_triangle_cdf,
    ppf=_triangle_ppf,
    mean=lambda c: (c + 1) / 3,
    var=lambda c: (1 - c + c * c) / 18,
    entropy=0.5 - math.log(2),
)

# --- truncated and transformed --------------------------------------------------------------------


def _truncnorm_logcdf(x: Any, a: Any, b: Any) -> Any:
    mass = log_normal_mass(a, b)
    below = log_normal_mass(a, x) - mass
    near = below > -0.1  # where the complement has more digits
    above = log_normal_mass(ops.where(near, x, a), b) - mass
    above = ops.where(near, above, -1.0)
    return ops.where(near, ops.log1p(-ops.exp(above)), below)


def _truncnorm_logsf(x: Any, a: Any, b: Any) -> Any:
    return _truncnorm_logcdf(-x, -b, -a)


def _truncnorm_ppf(q: Any, a: Any, b: Any) -> Any:
    flipped = a > 0
    low, high = ops.where(flipped, -b, a), ops.where(flipped, -a, b)
    p = ops.where(flipped, 1 - q, q)
    log = ops.logaddexp(sp.log_ndtr(low), ops.log(p) + log_normal_mass(low, high))
    found = sp.ndtri_exp(log)
    return ops.where(flipped, -found, found)


def _truncnorm_isf(q: Any, a: Any, b: Any) -> Any:
    return -_truncnorm_ppf(q, -b, -a)


def _end_densities(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the density of the truncated distribution at both ends."""
    mass = log_normal_mass(a, b)
    return ops.exp(log_norm_pdf(a) - mass), ops.exp(log_norm_pdf(b) - mass)


def _truncnorm_mean(a: Any, b: Any) -> Any:
    at_a, at_b = _end_densities(a, b)
    return at_a - at_b


def _times(end: Any, density: Any) -> Any:
    """Return the product, 0 at an infinite end."""
    return ops.where(ops.isinf(end), 0.0, ops.where(ops.isinf(end), 0.0, end) * density)


def _truncnorm_var(a: Any, b: Any) -> Any:
    at_a, at_b = _end_densities(a, b)
    mean = at_a - at_b
    return 1 + _times(a - mean, at_a) - _times(b - mean, at_b)


def _truncnorm_entropy(a: Any, b: Any) -> Any:
    at_a, at_b = _end_densities(a, b)
    slope = (_times(a, at_a) - _times(b, at_b)) / 2
    return SQRT_2PI_LOG + 0.5 + log_normal_mass(a, b) + slope


truncnorm = describe(
    "truncnorm",
    "a b",
    lambda x, a, b: log_norm_pdf(x) - log_normal_mass(a, b),
    support=lambda a, b: (a, b),
    valid=lambda a, b: a < b,
    logcdf=_truncnorm_logcdf,
    logsf=_truncnorm_logsf,
    ppf=_truncnorm_ppf,
    isf=_truncnorm_isf,
    mean=_truncnorm_mean,
    var=_truncnorm_var,
    entropy=_truncnorm_entropy,
)

truncexpon = describe(
    "truncexpon",
    "b",
    lambda x, b: -x - ops.log(-ops.expm1(-b)),
    support=lambda b: (0.0, b),
    cdf=lambda x, b: ops.expm1(-x) / ops.expm1(-b),
    sf=lambda x, b: ops.exp(-x) * ops.expm1(x - b) / ops.expm1(-b),
    ppf=lambda q, b: -ops.log1p(q * ops.expm1(-b)),
    isf=lambda q, b: -ops.log(ops.exp(-b) - q * ops.expm1(-b)),
    mean=lambda b: 1 - b / ops.expm1(b),
    entropy=lambda b: ops.log(ops.expm1(b)) + (1 + ops.exp(b) * (b - 1)) / -ops.expm1(b),
)


def _ordered(a: Any, b: Any) -> Any:
    return ops.logical_and(a > 0, b > a)


def _loguniform_mean(a: Any, b: Any) -> Any:
    return (b - a) / (ops.log(b) - ops.log(a))


def _loguniform(name: str) -> Any:
    return describe(
        name,
        "a b",
        lambda x, a, b: -ops.log(x) - ops.log(ops.log(b) - ops.log(a)),
        support=lambda a, b: (a, b),
        valid=_ordered,
        cdf=lambda x, a, b: (ops.log(x) - ops.log(a)) / (ops.log(b) - ops.log(a)),
        ppf=lambda q, a, b: ops.exp(ops.log(a) + q * (ops.log(b) - ops.log(a))),
        mean=_loguniform_mean,
        entropy=lambda a, b: 0.5 * ops.log(a * b) + ops.log(ops.log(b / a)),
    )


loguniform = _loguniform("loguniform")
reciprocal = _loguniform("reciprocal")


def _shape_valid(a: Any, b: Any) -> Any:
    return ops.logical_and(ops.isfinite(a), b > 0)


johnsonsb = describe(
    "johnsonsb",
    "a b",
    lambda x, a, b: ops.log(b) - ops.log(x) - ops.log1p(-x) + log_norm_pdf(a + b * sp.logit(x)),
    support=_UNIT,
    is_open=True,
    valid=_shape_valid,
    cdf=lambda x, a, b: sp.ndtr(a + b * sp.logit(x)),
    sf=lambda x, a, b: sp.ndtr(-a - b * sp.logit(x)),
    ppf=lambda q, a, b: sp.expit((sp.ndtri(q) - a) / b),
    isf=lambda q, a, b: sp.expit((-sp.ndtri(q) - a) / b),
)

bradford = describe(
    "bradford",
    "c",
    lambda x, c: ops.log(c) - ops.log1p(c * x) - ops.log(ops.log1p(c)),
    support=_UNIT,
    cdf=lambda x, c: ops.log1p(c * x) / ops.log1p(c),
    ppf=lambda q, c: ops.expm1(q * ops.log1p(c)) / c,
    mean=lambda c: 1 / ops.log1p(c) - 1 / c,
    entropy=lambda c: ops.log1p(c) / 2 - ops.log(c / ops.log1p(c)),
)

# --- symmetric about 0 ----------------------------------------------------------------------------

semicircular = describe(
    "semicircular",
    "",
    lambda x: math.log(2 / math.pi) + 0.5 * ops.log1p(-x * x),
    support=(-1.0, 1.0),
    cdf=lambda x: 0.5 + (x * ops.sqrt(1 - x * x) + ops.asin(x)) / math.pi,
    mean=0.0,
    var=0.25,
    entropy=math.log(math.pi) - 0.5,
)

anglit = describe(
    "anglit",
    "",
    lambda x: ops.log(ops.cos(2 * x)),
    support=(-math.pi / 4, math.pi / 4),
    cdf=lambda x: ops.square(ops.sin(x + math.pi / 4)),
    sf=lambda x: ops.square(ops.cos(x + math.pi / 4)),
    ppf=lambda q: ops.asin(ops.sqrt(q)) - math.pi / 4,
    mean=0.0,
    var=math.pi**2 / 16 - 0.5,
    entropy=1 - math.log(2),
)

cosine = describe(
    "cosine",
    "",
    lambda x: 2 * ops.log(ops.cos(x / 2)) - math.log(math.pi),
    support=(-math.pi, math.pi),
    cdf=lambda x: (math.pi + x + ops.sin(x)) / (2 * math.pi),
    sf=lambda x: (math.pi - x - ops.sin(x)) / (2 * math.pi),
    mean=0.0,
    var=math.pi**2 / 3 - 2,
    entropy=math.log(4 * math.pi) - 1,
)
