"""Distributions of positive numbers (N. L. Johnson et al., Continuous Univariate Distributions).

Parametrised as in SciPy's documentation. `_POSITIVE` is the support, of which the left end belongs
to it or, if the density is said to be open, does not.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule import ops
from chainrule.scipy.stats.distribution import describe
from chainrule.scipy.stats.ratios import (
    SQRT_2PI_LOG,
    by_size,
    finite_if,
    log1p_square,
    log_norm_pdf,
    sp,
)
from chainrule.scipy.stats.real_line import EULER

_INF = math.inf
_POSITIVE = (0.0, _INF)
_LOG_2 = math.log(2)
_LOG_PI = math.log(math.pi)


# --- the exponential, gamma and related ones (Johnson et al., chapters 17 to 19) ------------------

expon = describe(
    "expon",
    "",
    lambda x: -x,
    support=_POSITIVE,
    logsf=lambda x: -x,
    ppf=lambda q: -ops.log1p(-q),
    isf=lambda q: -ops.log(q),
    mean=1.0,
    var=1.0,
    entropy=1.0,
)


def _gamma_log_density(x: Any, a: Any) -> Any:
    return sp.xlogy(a - 1, x) - x - sp.gammaln(a)


def _gamma_entropy(a: Any) -> Any:
    def large(a: Any) -> Any:
        u = 1 / a
        series = u * (1 / 3 + u * (1 / 12 + u * (1 / 90 - u / 120)))
        return SQRT_2PI_LOG + 0.5 + 0.5 * ops.log(a) - series

    return by_size(a, 500.0, lambda a: sp.psi(a) * (1 - a) + a + sp.gammaln(a), large)


def _invgamma_entropy(a: Any) -> Any:
    def large(a: Any) -> Any:
        u = 1 / a
        series = u * (2 / 3 + u * (1 / 12 - u * (1 / 90 + u / 120)))
        return SQRT_2PI_LOG + 0.5 - 1.5 * ops.log(a) + series

    return by_size(a, 500.0, lambda a: a - (a + 1) * sp.psi(a) + sp.gammaln(a), large)


gamma = describe(
    "gamma",
    "a",
    _gamma_log_density,
    support=_POSITIVE,
    cdf=lambda x, a: sp.gammainc(a, x),
    sf=lambda x, a: sp.gammaincc(a, x),
    ppf=lambda q, a: sp.gammaincinv(a, q),
    isf=lambda q, a: sp.gammainccinv(a, q),
    mean=lambda a: a,
    var=lambda a: a,
    entropy=_gamma_entropy,
)

chi2 = describe(
    "chi2",
    "df",
    lambda x, df: _gamma_log_density(x / 2, df / 2) - _LOG_2,
    support=_POSITIVE,
    cdf=lambda x, df: sp.chdtr(df, x),
    sf=lambda x, df: sp.chdtrc(df, x),
    ppf=lambda q, df: 2 * sp.gammaincinv(df / 2, q),
    isf=lambda q, df: sp.chdtri(df, q),
    mean=lambda df: df,
    var=lambda df: 2 * df,
    entropy=lambda df: _gamma_entropy(df / 2) + _LOG_2,
)


def _chi_mean(df: Any) -> Any:
    return math.sqrt(2) * sp.poch(df / 2, 0.5)


chi = describe(
    "chi",
    "df",
    lambda x, df: (1 - df / 2) * _LOG_2 - sp.gammaln(df / 2) + sp.xlogy(df - 1, x) - x * x / 2,
    support=_POSITIVE,
    cdf=lambda x, df: sp.gammainc(df / 2, x * x / 2),
    sf=lambda x, df: sp.gammaincc(df / 2, x * x / 2),
    ppf=lambda q, df: ops.sqrt(2 * sp.gammaincinv(df / 2, q)),
    isf=lambda q, df: ops.sqrt(2 * sp.gammainccinv(df / 2, q)),
    mean=_chi_mean,
    var=lambda df: df - ops.square(_chi_mean(df)),
)

invgamma = describe(
    "invgamma",
    "a",
    lambda x, a: -(a + 1) * ops.log(x) - sp.gammaln(a) - 1 / x,
    support=_POSITIVE,
    is_open=True,
    cdf=lambda x, a: sp.gammaincc(a, 1 / x),
    sf=lambda x, a: sp.gammainc(a, 1 / x),
    ppf=lambda q, a: 1 / sp.gammainccinv(a, q),
    isf=lambda q, a: 1 / sp.gammaincinv(a, q),
    mean=lambda a: finite_if(a > 1, lambda a: 1 / (a - 1), a, safe=2.0),
    var=lambda a: finite_if(a > 2, lambda a: 1 / ((a - 1) ** 2 * (a - 2)), a, safe=3.0),
    entropy=_invgamma_entropy,
)


def _gengamma_valid(a: Any, c: Any) -> Any:
    return ops.logical_and(a > 0, c != 0)


def _gengamma_cdf(x: Any, a: Any, c: Any) -> Any:
    u = x**c
    return ops.where(c > 0, sp.gammainc(a, u), sp.gammaincc(a, u))


def _gengamma_sf(x: Any, a: Any, c: Any) -> Any:
    u = x**c
    return ops.where(c > 0, sp.gammaincc(a, u), sp.gammainc(a, u))


def _gengamma_log_density(x: Any, a: Any, c: Any) -> Any:
    at_zero = ops.logical_and(x == 0, c < 0)  # where the density of an inverse vanishes
    x = ops.where(at_zero, 1.0, x)
    found = ops.log(ops.abs(c)) + sp.xlogy(c * a - 1, x) - x**c - sp.gammaln(a)
    return ops.where(at_zero, -_INF, found)


gengamma = describe(
    "gengamma",
    "a c",
    _gengamma_log_density,
    support=_POSITIVE,
    valid=_gengamma_valid,
    cdf=_gengamma_cdf,
    sf=_gengamma_sf,
    ppf=lambda q, a, c: ops.where(c > 0, sp.gammaincinv(a, q), sp.gammainccinv(a, q)) ** (1 / c),
    isf=lambda q, a, c: ops.where(c > 0, sp.gammainccinv(a, q), sp.gammaincinv(a, q)) ** (1 / c),
    entropy=lambda a, c: _gamma_entropy(a) + sp.psi(a) * (1 / c - 1) - ops.log(ops.abs(c)),
)

rayleigh = describe(
    "rayleigh",
    "",
    lambda x: ops.log(x) - 0.5 * x * x,
    support=_POSITIVE,
    pdf=lambda x: x * ops.exp(-0.5 * x * x),
    logsf=lambda x: -0.5 * x * x,
    ppf=lambda q: ops.sqrt(-2 * ops.log1p(-q)),
    isf=lambda q: ops.sqrt(-2 * ops.log(q)),
    mean=math.sqrt(math.pi / 2),
    var=2 - math.pi / 2,
    entropy=EULER / 2 + 1 - 0.5 * _LOG_2,
)

maxwell = describe(
    "maxwell",
    "",
    lambda x: 0.5 * math.log(2 / math.pi) + 2 * ops.log(x) - 0.5 * x * x,
    support=_POSITIVE,
    pdf=lambda x: math.sqrt(2 / math.pi) * x * x * ops.exp(-0.5 * x * x),
    cdf=lambda x: sp.gammainc(1.5, x * x / 2),
    sf=lambda x: sp.gammaincc(1.5, x * x / 2),
    ppf=lambda q: ops.sqrt(2 * sp.gammaincinv(1.5, q)),
    isf=lambda q: ops.sqrt(2 * sp.gammainccinv(1.5, q)),
    mean=2 * math.sqrt(2 / math.pi),
    var=3 - 8 / math.pi,
    entropy=EULER + SQRT_2PI_LOG - 0.5,
)


def _nakagami_mean(nu: Any) -> Any:
    return sp.poch(nu, 0.5) / ops.sqrt(nu)


nakagami = describe(
    "nakagami",
    "nu",
    lambda x, nu: _LOG_2 + sp.xlogy(nu, nu) - sp.gammaln(nu) + sp.xlogy(2 * nu - 1, x) - nu * x * x,
    support=_POSITIVE,
    cdf=lambda x, nu: sp.gammainc(nu, nu * x * x),
    sf=lambda x, nu: sp.gammaincc(nu, nu * x * x),
    ppf=lambda q, nu: ops.sqrt(sp.gammaincinv(nu, q) / nu),
    isf=lambda q, nu: ops.sqrt(sp.gammainccinv(nu, q) / nu),
    mean=_nakagami_mean,
    var=lambda nu: 1 - ops.square(_nakagami_mean(nu)),
)


def _f_log_density(x: Any, dfn: Any, dfd: Any) -> Any:
    n, m = dfn / 2, dfd / 2
    return (
        sp.xlogy(m, dfd) + sp.xlogy(n, dfn) + sp.xlogy(n - 1, x)
        - (n + m) * ops.log(dfd + dfn * x) - sp.betaln(n, m)
    )  # fmt: skip


def _f_var(dfn: Any, dfd: Any) -> Any:
    m = ops.where(dfd > 4, dfd, 5.0)
    found = 2 * m * m * (dfn + m - 2) / (dfn * (m - 2) ** 2 * (m - 4))
    return ops.where(dfd > 4, found, _INF)


f = describe(
    "f",
    "dfn dfd",
    _f_log_density,
    support=_POSITIVE,
    cdf=lambda x, dfn, dfd: sp.fdtr(dfn, dfd, x),
    sf=lambda x, dfn, dfd: sp.fdtrc(dfn, dfd, x),
    ppf=lambda q, dfn, dfd: sp.fdtri(dfn, dfd, q),
    mean=lambda dfn, dfd: finite_if(dfd > 2, lambda m: m / (m - 2), dfd, safe=3.0),
    var=_f_var,
)


def _by_half(x: Any, lower: Any, upper: Any, a: Any, b: Any) -> Any:
    """Return I at x/(1 + x), or its complement at 1/(1 + x) where this is the smaller one."""
    large = x > 1
    left, right = ops.where(large, 1.0, x), ops.where(large, x, 1.0)
    return ops.where(large, upper(b, a, 1 / (1 + right)), lower(a, b, left / (1 + left)))


def _prime_quantile(p: Any, rest: Any) -> Any:
    """Return the odds p/(1 - p), given p and 1 - p with all of their digits."""
    return p / rest


betaprime = describe(
    "betaprime",
    "a b",
    lambda x, a, b: sp.xlogy(a - 1, x) - sp.xlog1py(a + b, x) - sp.betaln(a, b),
    support=_POSITIVE,
    cdf=lambda x, a, b: _by_half(x, sp.betainc, sp.betaincc, a, b),
    sf=lambda x, a, b: _by_half(x, sp.betaincc, sp.betainc, a, b),
    ppf=lambda q, a, b: _prime_quantile(sp.betaincinv(a, b, q), sp.betainccinv(b, a, q)),
    isf=lambda q, a, b: _prime_quantile(sp.betainccinv(a, b, q), sp.betaincinv(b, a, q)),
    mean=lambda a, b: finite_if(b > 1, lambda a, b: a / (b - 1), a, b, safe=2.0),
)

# --- made from the normal distribution ------------------------------------------------------------


def _lognorm_var(s: Any) -> Any:
    return ops.exp(s * s) * ops.expm1(s * s)


lognorm = describe(
    "lognorm",
    "s",
    lambda x, s: log_norm_pdf(ops.log(x) / s) - ops.log(s * x),
    support=_POSITIVE,
    is_open=True,
    cdf=lambda x, s: sp.ndtr(ops.log(x) / s),
    logcdf=lambda x, s: sp.log_ndtr(ops.log(x) / s),
    sf=lambda x, s: sp.ndtr(-ops.log(x) / s),
    logsf=lambda x, s: sp.log_ndtr(-ops.log(x) / s),
    ppf=lambda q, s: ops.exp(s * sp.ndtri(q)),
    isf=lambda q, s: ops.exp(-s * sp.ndtri(q)),
    mean=lambda s: ops.exp(s * s / 2),
    var=_lognorm_var,
    entropy=lambda s: SQRT_2PI_LOG + 0.5 + ops.log(s),
)

halfnorm = describe(
    "halfnorm",
    "",
    lambda x: 0.5 * math.log(2 / math.pi) - 0.5 * x * x,
    support=_POSITIVE,
    cdf=lambda x: sp.erf(x / math.sqrt(2)),
    sf=lambda x: 2 * sp.ndtr(-x),
    ppf=lambda q: sp.ndtri((1 + q) / 2),
    isf=lambda q: -sp.ndtri(q / 2),
    mean=math.sqrt(2 / math.pi),
    var=1 - 2 / math.pi,
    entropy=0.5 * math.log(math.pi / 2) + 0.5,
)

halfcauchy = describe(
    "halfcauchy",
    "",
    lambda x: math.log(2 / math.pi) - log1p_square(x),
    support=_POSITIVE,
    cdf=lambda x: 2 / math.pi * ops.atan(x),
    sf=lambda x: 2 / math.pi * ops.atan2(1.0, x),
    ppf=lambda q: ops.tan(math.pi / 2 * q),
    isf=lambda q: 1 / ops.tan(math.pi / 2 * q),
    mean=_INF,
    var=_INF,
    entropy=math.log(2 * math.pi),
)

halflogistic = describe(
    "halflogistic",
    "",
    lambda x: _LOG_2 + sp.log_expit(x) + sp.log_expit(-x),
    support=_POSITIVE,
    cdf=lambda x: ops.tanh(x / 2),
    sf=lambda x: 2 * sp.expit(-x),
    ppf=lambda q: 2 * ops.atanh(q),
    isf=lambda q: ops.where(q < 0.5, -sp.logit(q / 2), 2 * ops.atanh(1 - q)),
    mean=2 * _LOG_2,
    var=math.pi**2 / 3 - (2 * _LOG_2) ** 2,
    entropy=2 - _LOG_2,
)

levy = describe(
    "levy",
    "",
    lambda x: -SQRT_2PI_LOG - 1.5 * ops.log(x) - 0.5 / x,
    support=_POSITIVE,
    is_open=True,
    cdf=lambda x: sp.erfc(ops.sqrt(0.5 / x)),
    sf=lambda x: sp.erf(ops.sqrt(0.5 / x)),
    ppf=lambda q: 1 / ops.square(sp.ndtri(q / 2)),
    isf=lambda q: 0.5 / ops.square(sp.erfinv(q)),
    mean=_INF,
    var=_INF,
)


def _inverse_normal_logs(x: Any, mu: Any, sign: float) -> tuple[Any, Any]:
    """Return the logarithms of Φ(±(x/μ - 1)/√x) and of exp(2/μ) Φ(-(x/μ + 1)/√x)."""
    root = 1 / ops.sqrt(x)
    first = sp.log_ndtr(sign * root * (x / mu - 1))
    return first, 2 / mu + sp.log_ndtr(-root * (x / mu + 1))


def _inverse_normal_logcdf(x: Any, mu: Any) -> Any:
    a, b = _inverse_normal_logs(x, mu, 1.0)
    return a + ops.log1p(ops.exp(b - a))


def _inverse_normal_logsf(x: Any, mu: Any) -> Any:
    a, b = _inverse_normal_logs(x, mu, -1.0)
    return a + ops.log1p(-ops.exp(b - a))


invgauss = describe(
    "invgauss",
    "mu",
    lambda x, mu: -SQRT_2PI_LOG - 1.5 * ops.log(x) - ops.square(x / mu - 1) / (2 * x),
    support=_POSITIVE,
    is_open=True,
    valid=lambda mu: mu >= 0,
    logcdf=_inverse_normal_logcdf,
    logsf=_inverse_normal_logsf,
    mean=lambda mu: mu,
    var=lambda mu: mu**3,
)


def _fatigue(x: Any) -> Any:
    return ops.sqrt(x) - 1 / ops.sqrt(x)


def _fatigue_quantile(z: Any, c: Any) -> Any:
    return 0.25 * ops.square(c * z + ops.sqrt(ops.square(c * z) + 4))


fatiguelife = describe(
    "fatiguelife",
    "c",
    lambda x, c: ops.log1p(x) - ops.log(2 * c) - 1.5 * ops.log(x) + log_norm_pdf(_fatigue(x) / c),
    support=_POSITIVE,
    is_open=True,
    cdf=lambda x, c: sp.ndtr(_fatigue(x) / c),
    sf=lambda x, c: sp.ndtr(-_fatigue(x) / c),
    ppf=lambda q, c: _fatigue_quantile(sp.ndtri(q), c),
    isf=lambda q, c: _fatigue_quantile(-sp.ndtri(q), c),
    mean=lambda c: c * c / 2 + 1,
    var=lambda c: c * c * (5 * c * c / 4 + 1),
)
