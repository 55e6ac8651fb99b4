"""Distributions of extremes, lifetimes and incomes: those of positive numbers with powers.

Parametrised as in SciPy's documentation (N. L. Johnson et al., Continuous Univariate
Distributions, chapters 20 to 23).
"""

from __future__ import annotations

import math
from typing import Any

from chainrule import ops
from chainrule.scipy.stats.distribution import describe
from chainrule.scipy.stats.ratios import finite_if, log_complement, log_one_plus, sp
from chainrule.scipy.stats.real_line import EULER

_INF = math.inf
_POSITIVE = (0.0, _INF)


def _weibull_moment(c: Any, order: int) -> Any:
    return sp.gamma(1 + order / c)


weibull_min = describe(
    "weibull_min",
    "c",
    lambda x, c: ops.log(c) + sp.xlogy(c - 1, x) - x**c,
    support=_POSITIVE,
    logsf=lambda x, c: -(x**c),
    ppf=lambda q, c: (-ops.log1p(-q)) ** (1 / c),
    isf=lambda q, c: (-ops.log(q)) ** (1 / c),
    mean=lambda c: _weibull_moment(c, 1),
    var=lambda c: _weibull_moment(c, 2) - ops.square(_weibull_moment(c, 1)),
    entropy=lambda c: EULER - EULER / c - ops.log(c) + 1,
)

weibull_max = describe(
    "weibull_max",
    "c",
    lambda x, c: ops.log(c) + sp.xlogy(c - 1, -x) - (-x) ** c,
    support=(-_INF, 0.0),
    logcdf=lambda x, c: -((-x) ** c),
    ppf=lambda q, c: -((-ops.log(q)) ** (1 / c)),
    isf=lambda q, c: -((-ops.log1p(-q)) ** (1 / c)),
    mean=lambda c: -_weibull_moment(c, 1),
    var=lambda c: _weibull_moment(c, 2) - ops.square(_weibull_moment(c, 1)),
    entropy=lambda c: EULER - EULER / c - ops.log(c) + 1,
)


def _exponweib_log_density(x: Any, a: Any, c: Any) -> Any:
    power = x**c
    return ops.log(a * c) + sp.xlogy(a - 1, -ops.expm1(-power)) - power + sp.xlogy(c - 1, x)


exponweib = describe(
    "exponweib",
    "a c",
    _exponweib_log_density,
    support=_POSITIVE,
    logcdf=lambda x, a, c: a * log_complement(-(x**c)),
    ppf=lambda q, a, c: (-ops.log1p(-(q ** (1 / a)))) ** (1 / c),
    isf=lambda q, a, c: (-ops.log(-ops.expm1(ops.log1p(-q) / a))) ** (1 / c),
)

invweibull = describe(
    "invweibull",
    "c",
    lambda x, c: ops.log(c) - (c + 1) * ops.log(x) - x ** (-c),
    support=_POSITIVE,
    is_open=True,
    logcdf=lambda x, c: -(x ** (-c)),
    ppf=lambda q, c: (-ops.log(q)) ** (-1 / c),
    isf=lambda q, c: (-ops.log1p(-q)) ** (-1 / c),
    mean=lambda c: finite_if(c > 1, lambda c: sp.gamma(1 - 1 / c), c, safe=2.0),
    entropy=lambda c: 1 + EULER + EULER / c - ops.log(c),
)


def _pareto_var(b: Any) -> Any:
    return finite_if(b > 2, lambda b: b / (b - 2) / ops.square(b - 1), b, safe=3.0)


pareto = describe(
    "pareto",
    "b",
    lambda x, b: ops.log(b) - (b + 1) * ops.log(x),
    support=(1.0, _INF),
    logsf=lambda x, b: -b * ops.log(x),
    ppf=lambda q, b: (1 - q) ** (-1 / b),
    isf=lambda q, b: q ** (-1 / b),
    mean=lambda b: finite_if(b > 1, lambda b: b / (b - 1), b, safe=2.0),
    var=_pareto_var,
    entropy=lambda b: 1 + 1 / b - ops.log(b),
)

lomax = describe(
    "lomax",
    "c",
    lambda x, c: ops.log(c) - (c + 1) * ops.log1p(x),
    support=_POSITIVE,
    logsf=lambda x, c: -c * ops.log1p(x),
    ppf=lambda q, c: ops.expm1(-ops.log1p(-q) / c),
    isf=lambda q, c: ops.expm1(-ops.log(q) / c),
    mean=lambda c: finite_if(c > 1, lambda c: 1 / (c - 1), c, safe=2.0),
    var=_pareto_var,
    entropy=lambda c: 1 + 1 / c - ops.log(c),
)


def _genpareto_support(c: Any) -> tuple[float, Any]:
    negative = c < 0
    return 0.0, ops.where(negative, -1 / ops.where(negative, c, -1.0), _INF)


def _genpareto_logsf(x: Any, c: Any) -> Any:
    return -x * log_one_plus(c * x)


def _genpareto_log_density(x: Any, c: Any) -> Any:
    z = c * x
    near = ops.abs(z) < 0.5
    inner = -(c + 1) * x * log_one_plus(ops.where(near, z, 0.0))
    outer = -sp.xlog1py(c + 1, ops.where(near, 1.0, z)) / ops.where(near, 1.0, c)
    return ops.where(near, inner, outer)


genpareto = describe(
    "genpareto",
    "c",
    _genpareto_log_density,
    support=_genpareto_support,
    valid=ops.isfinite,
    logsf=_genpareto_logsf,
    ppf=lambda q, c: -ops.log1p(-q) * sp.exprel(-c * ops.log1p(-q)),
    isf=lambda q, c: -ops.log(q) * sp.exprel(-c * ops.log(q)),
    mean=lambda c: finite_if(c < 1, lambda c: 1 / (1 - c), c, safe=0.0),
    var=lambda c: finite_if(c < 0.5, lambda c: 1 / ((1 - c) ** 2 * (1 - 2 * c)), c, safe=0.0),
    entropy=lambda c: 1 + c,
)

# --- logistic in the logarithm --------------------------------------------------------------------


def _fisk_mean(c: Any) -> Any:
    def finite(c: Any) -> Any:
        return math.pi / c / ops.sin(math.pi / c)

    return ops.where(c > 1, finite(ops.where(c > 1, c, 2.0)), math.nan)


fisk = describe(
    "fisk",
    "c",
    lambda x, c: ops.log(c) + sp.xlogy(c - 1, x) - 2 * ops.log1p(x**c),
    support=_POSITIVE,
    cdf=lambda x, c: sp.expit(c * ops.log(x)),
    sf=lambda x, c: sp.expit(-c * ops.log(x)),
    logsf=lambda x, c: sp.log_expit(-c * ops.log(x)),
    logcdf=lambda x, c: sp.log_expit(c * ops.log(x)),
    ppf=lambda q, c: ops.exp(sp.logit(q) / c),
    isf=lambda q, c: ops.exp(-sp.logit(q) / c),
    mean=_fisk_mean,
    entropy=lambda c: 2 - ops.log(c),
)

burr12 = describe(
    "burr12",
    "c d",
    lambda x, c, d: ops.log(c * d) + sp.xlogy(c - 1, x) - (d + 1) * ops.log1p(x**c),
    support=_POSITIVE,
    logsf=lambda x, c, d: -d * ops.log1p(x**c),
    ppf=lambda q, c, d: ops.expm1(-ops.log1p(-q) / d) ** (1 / c),
    isf=lambda q, c, d: ops.expm1(-ops.log(q) / d) ** (1 / c),
)


def _burr_log_density(x: Any, c: Any, d: Any) -> Any:
    small = x < 1
    left, right = ops.where(small, x, 0.5), ops.where(small, 2.0, x)
    below = sp.xlogy(c * d - 1, left) - (d + 1) * ops.log1p(left**c)
    above = -(c + 1) * ops.log(right) - (d + 1) * ops.log1p(right ** (-c))
    return ops.log(c * d) + ops.where(small, below, above)


burr = describe(
    "burr",
    "c d",
    _burr_log_density,
    support=_POSITIVE,
    logcdf=lambda x, c, d: -d * ops.log1p(x ** (-c)),
    ppf=lambda q, c, d: ops.expm1(-ops.log(q) / d) ** (-1 / c),
    isf=lambda q, c, d: ops.expm1(-ops.log1p(-q) / d) ** (-1 / c),
)
