"""Distributions on the real line (N. L. Johnson et al., Continuous Univariate Distributions, 1994).

Parametrised as in SciPy's documentation.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule import ops
from chainrule.scipy.stats.distribution import describe
from chainrule.scipy.stats.ratios import (
    SQRT_2PI_LOG,
    by_size,
    log1p_square,
    log_norm_pdf,
    log_one_plus,
    sp,
)
from chainrule.special import polygamma

EULER = 0.5772156649015329
_LOG_2 = math.log(2)
_LOG_PI = math.log(math.pi)
_NONE = math.nan  # of Cauchy's distribution


norm = describe(
    "norm",
    "",
    log_norm_pdf,
    cdf=sp.ndtr,
    logcdf=sp.log_ndtr,
    sf=lambda x: sp.ndtr(-x),
    logsf=lambda x: sp.log_ndtr(-x),
    ppf=sp.ndtri,
    isf=lambda q: -sp.ndtri(q),
    mean=0.0,
    var=1.0,
    entropy=SQRT_2PI_LOG + 0.5,
)

# --- Student's and Cauchy's -----------------------------------------------------------------------


def _t_log_density(x: Any, df: Any) -> Any:
    is_normal = ops.isinf(df)
    df = ops.where(is_normal, 1.0, df)
    finite = (
        ops.log(sp.poch(df / 2, 0.5))
        - 0.5 * (ops.log(df) + _LOG_PI)
        - (df + 1) / 2 * ops.log1p(x * x / df)
    )
    return ops.where(is_normal, log_norm_pdf(x), finite)


def _t_var(df: Any) -> Any:
    inner = ops.where(df > 2, df, 3.0)
    inner = ops.where(ops.isinf(df), 3.0, inner)
    found = ops.where(ops.isinf(df), 1.0, inner / (inner - 2))
    return ops.where(df > 2, found, ops.where(df > 1, math.inf, math.nan))


def _t_entropy(df: Any) -> Any:
    def small(df: Any) -> Any:
        half, next_half = df / 2, (df + 1) / 2
        return (
            next_half * (sp.psi(next_half) - sp.psi(half))
            + 0.5 * ops.log(df)
            + sp.betaln(half, 0.5)
        )

    def large(df: Any) -> Any:
        u = 1 / df
        series = u * (1 + u * (1 / 4 - u * (1 / 6 + u * (1 / 8 - u * (3 / 10 + u / 4)))))
        return SQRT_2PI_LOG + 0.5 + series

    return by_size(df, 1000.0, small, large)


t = describe(
    "t",
    "df",
    _t_log_density,
    cdf=lambda x, df: sp.stdtr(df, x),
    sf=lambda x, df: sp.stdtr(df, -x),
    ppf=lambda q, df: sp.stdtrit(df, q),
    isf=lambda q, df: -sp.stdtrit(df, q),
    mean=lambda df: ops.where(df > 1, 0.0, math.inf),
    var=_t_var,
    entropy=_t_entropy,
)


def _cauchy_ppf(q: Any) -> Any:
    central = ops.abs(q - 0.5) < 0.25
    angle = math.pi * q
    upper = q > 0.5
    outer = 1 / ops.tan(math.pi * ops.where(upper, 1 - q, q))
    return ops.where(central, ops.tan(angle - math.pi / 2), ops.where(upper, outer, -outer))


cauchy = describe(
    "cauchy",
    "",
    lambda x: -_LOG_PI - log1p_square(x),
    cdf=lambda x: ops.atan2(1.0, -x) / math.pi,
    sf=lambda x: ops.atan2(1.0, x) / math.pi,
    ppf=_cauchy_ppf,
    isf=lambda q: -_cauchy_ppf(q),
    mean=_NONE,
    var=_NONE,
    entropy=math.log(4 * math.pi),
)

# --- Laplace's, the logistic, and others of hyperbolic functions ----------------------------------


def _laplace_cdf(x: Any) -> Any:
    half = 0.5 * ops.exp(-ops.abs(x))
    return ops.where(x > 0, 1 - half, half)


def _laplace_ppf(q: Any) -> Any:
    upper = q > 0.5
    log = ops.log(2 * ops.where(upper, 1 - q, q))
    return ops.where(upper, -log, log)


laplace = describe(
    "laplace",
    "",
    lambda x: -_LOG_2 - ops.abs(x),
    cdf=_laplace_cdf,
    sf=lambda x: _laplace_cdf(-x),
    ppf=_laplace_ppf,
    isf=lambda q: -_laplace_ppf(q),
    mean=0.0,
    var=2.0,
    entropy=_LOG_2 + 1,
)


def _two_sided(kappa: Any) -> tuple[Any, Any]:
    """Return 1/κ and κ + 1/κ."""
    inverse = 1 / kappa
    return inverse, kappa + inverse


def _asymmetric_log_density(x: Any, kappa: Any) -> Any:
    inverse, total = _two_sided(kappa)
    return ops.where(x >= 0, -x * kappa, x * inverse) - ops.log(total)


def _asymmetric_cdf(x: Any, kappa: Any) -> Any:
    inverse, total = _two_sided(kappa)
    right, left = ops.clamp_min(x, 0.0), ops.clamp_max(x, 0.0)
    upper = 1 - ops.exp(-right * kappa) * (inverse / total)
    return ops.where(x >= 0, upper, ops.exp(left * inverse) * (kappa / total))


def _asymmetric_sf(x: Any, kappa: Any) -> Any:
    return _asymmetric_cdf(-x, 1 / kappa)


def _asymmetric_ppf(q: Any, kappa: Any) -> Any:
    inverse, total = _two_sided(kappa)
    upper = q >= kappa / total
    right = -ops.log((1 - q) * total * kappa) * inverse
    return ops.where(upper, right, ops.log(q * total / kappa) * kappa)


laplace_asymmetric = describe(
    "laplace_asymmetric",
    "kappa",
    _asymmetric_log_density,
    cdf=_asymmetric_cdf,
    sf=_asymmetric_sf,
    ppf=_asymmetric_ppf,
    isf=lambda q, kappa: -_asymmetric_ppf(q, 1 / kappa),
    mean=lambda kappa: 1 / kappa - kappa,
    var=lambda kappa: kappa * kappa + 1 / (kappa * kappa),
    entropy=lambda kappa: 1 + ops.log(kappa + 1 / kappa),
)

logistic = describe(
    "logistic",
    "",
    lambda x: sp.log_expit(x) + sp.log_expit(-x),
    cdf=sp.expit,
    logcdf=sp.log_expit,
    sf=lambda x: sp.expit(-x),
    logsf=lambda x: sp.log_expit(-x),
    ppf=sp.logit,
    isf=lambda q: -sp.logit(q),
    mean=0.0,
    var=math.pi**2 / 3,
    entropy=2.0,
)


def _genlogistic_var(c: Any) -> Any:
    return math.pi**2 / 6 + polygamma(1, c)


genlogistic = describe(
    "genlogistic",
    "c",
    lambda x, c: ops.log(c) + c * sp.log_expit(x) + sp.log_expit(-x),
    logcdf=lambda x, c: c * sp.log_expit(x),
    ppf=lambda q, c: -ops.log(ops.expm1(-ops.log(q) / c)),
    mean=lambda c: EULER + sp.psi(c),
    var=_genlogistic_var,
)

hypsecant = describe(
    "hypsecant",
    "",
    lambda x: _LOG_2 - _LOG_PI - ops.logaddexp(x, -x),
    cdf=lambda x: 2 / math.pi * ops.atan(ops.exp(x)),
    sf=lambda x: 2 / math.pi * ops.atan(ops.exp(-x)),
    ppf=lambda q: ops.log(ops.tan(math.pi * q / 2)),
    isf=lambda q: -ops.log(ops.tan(math.pi * q / 2)),
    mean=0.0,
    var=math.pi**2 / 4,
    entropy=math.log(2 * math.pi),
)

# --- of extreme values (Johnson et al., chapter 22) -----------------------------------------------

gumbel_r = describe(
    "gumbel_r",
    "",
    lambda x: -x - ops.exp(-x),
    logcdf=lambda x: -ops.exp(-x),
    ppf=lambda q: -ops.log(-ops.log(q)),
    isf=lambda q: -ops.log(-ops.log1p(-q)),
    mean=EULER,
    var=math.pi**2 / 6,
    entropy=EULER + 1,
)

gumbel_l = describe(
    "gumbel_l",
    "",
    lambda x: x - ops.exp(x),
    logsf=lambda x: -ops.exp(x),
    ppf=lambda q: ops.log(-ops.log1p(-q)),
    isf=lambda q: ops.log(-ops.log(q)),
    mean=-EULER,
    var=math.pi**2 / 6,
    entropy=EULER + 1,
)


def _log_reduced(x: Any, c: Any) -> Any:
    """Return log(1 - cx)/c, which is -x for c = 0."""
    return -x * log_one_plus(-c * x)


def _extreme_log_density(x: Any, c: Any) -> Any:
    reduced = _log_reduced(x, c)
    return reduced - ops.exp(reduced) - ops.log1p(-c * x)


def _extreme_support(c: Any) -> tuple[Any, Any]:
    end = 1 / ops.where(c == 0, 1.0, c)
    return ops.where(c < 0, end, -math.inf), ops.where(c > 0, end, math.inf)


def _of_reduced(y: Any, c: Any) -> Any:
    """Return (1 - e^(-cy))/c."""
    return y * sp.exprel(-c * y)


genextreme = describe(
    "genextreme",
    "c",
    _extreme_log_density,
    support=_extreme_support,
    valid=ops.isfinite,
    is_open=True,
    logcdf=lambda x, c: -ops.exp(_log_reduced(x, c)),
    ppf=lambda q, c: _of_reduced(-ops.log(-ops.log(q)), c),
    isf=lambda q, c: _of_reduced(-ops.log(-ops.log1p(-q)), c),
)

_LEAST = -700.0
"""Up to this x, exp(x) may underflow: P(c, u) is uᶜ/Γ(c + 1) there (DLMF 8.7.1)."""


def _loggamma_logcdf(x: Any, c: Any) -> Any:
    tiny = x < _LEAST
    first = c * ops.where(tiny, x, 0.0) - sp.gammaln(c + 1)
    exact = ops.log(sp.gammainc(c, ops.exp(ops.where(tiny, 0.0, x))))
    return ops.where(tiny, first, exact)


def _loggamma_sf(x: Any, c: Any) -> Any:
    tiny = x < _LEAST
    first = -ops.expm1(c * ops.where(tiny, x, 0.0) - sp.gammaln(c + 1))
    return ops.where(tiny, first, sp.gammaincc(c, ops.exp(ops.where(tiny, 0.0, x))))


def _loggamma_quantile(inverse: Any, log_p: Any, c: Any) -> Any:
    first = (log_p + sp.gammaln(c + 1)) / c
    tiny = first < _LEAST
    return ops.where(tiny, first, ops.log(ops.where(tiny, 1.0, inverse)))


def _loggamma_entropy(c: Any) -> Any:
    def large(c: Any) -> Any:
        u = 1 / c
        return SQRT_2PI_LOG + 0.5 - 0.5 * ops.log(c) + u * (1 / 6 - u * u * (1 / 90 - u * u / 210))

    return by_size(c, 200.0, lambda c: sp.gammaln(c) - c * sp.psi(c) + c, large)


loggamma = describe(
    "loggamma",
    "c",
    lambda x, c: c * x - ops.exp(x) - sp.gammaln(c),
    logcdf=_loggamma_logcdf,
    cdf=lambda x, c: ops.exp(_loggamma_logcdf(x, c)),
    sf=_loggamma_sf,
    ppf=lambda q, c: _loggamma_quantile(sp.gammaincinv(c, q), ops.log(q), c),
    isf=lambda q, c: _loggamma_quantile(sp.gammainccinv(c, q), ops.log1p(-q), c),
    mean=sp.psi,
    var=lambda c: polygamma(1, c),
    entropy=_loggamma_entropy,
)

moyal = describe(
    "moyal",
    "",
    lambda x: -0.5 * (x + ops.exp(-x)) - SQRT_2PI_LOG,
    cdf=lambda x: sp.erfc(ops.exp(-0.5 * x) / math.sqrt(2)),
    sf=lambda x: sp.erf(ops.exp(-0.5 * x) / math.sqrt(2)),
    ppf=lambda q: -ops.log(2 * ops.square(sp.erfcinv(q))),
    mean=EULER + _LOG_2,
    var=math.pi**2 / 2,
)

# --- made from the normal distribution ------------------------------------------------------------


def _is_finite_and_positive(a: Any, b: Any) -> Any:
    return ops.logical_and(ops.isfinite(a), b > 0)


johnsonsu = describe(
    "johnsonsu",
    "a b",
    lambda x, a, b: ops.log(b) - 0.5 * ops.log1p(x * x) + log_norm_pdf(a + b * ops.arcsinh(x)),
    valid=_is_finite_and_positive,
    cdf=lambda x, a, b: sp.ndtr(a + b * ops.arcsinh(x)),
    logcdf=lambda x, a, b: sp.log_ndtr(a + b * ops.arcsinh(x)),
    sf=lambda x, a, b: sp.ndtr(-a - b * ops.arcsinh(x)),
    logsf=lambda x, a, b: sp.log_ndtr(-a - b * ops.arcsinh(x)),
    ppf=lambda q, a, b: ops.sinh((sp.ndtri(q) - a) / b),
    isf=lambda q, a, b: ops.sinh((-sp.ndtri(q) - a) / b),
)


def _skew_shift(a: Any) -> Any:
    return math.sqrt(2 / math.pi) * a / ops.sqrt(1 + a * a)


skewnorm = describe(
    "skewnorm",
    "a",
    lambda x, a: _LOG_2 + log_norm_pdf(x) + sp.log_ndtr(a * x),
    valid=ops.isfinite,
    cdf=lambda x, a: sp.ndtr(x) - 2 * sp.owens_t(x, a),
    sf=lambda x, a: sp.ndtr(-x) + 2 * sp.owens_t(x, a),
    mean=_skew_shift,
    var=lambda a: 1 - ops.square(_skew_shift(a)),
)


def _exponnorm_tail(x: Any, k: Any) -> Any:
    """Return the logarithm of exp(1/(2K²) - x/K) Φ(x - 1/K)."""
    return (0.5 / k - x) / k + sp.log_ndtr(x - 1 / k)


exponnorm = describe(
    "exponnorm",
    "K",
    lambda x, k: _exponnorm_tail(x, k) - ops.log(k),
    cdf=lambda x, k: sp.ndtr(x) - ops.exp(_exponnorm_tail(x, k)),
    sf=lambda x, k: sp.ndtr(-x) + ops.exp(_exponnorm_tail(x, k)),
    mean=lambda k: k,
    var=lambda k: 1 + k * k,
)


def _gennorm_half(x: Any, beta: Any) -> Any:
    """Return half the probability of values further from 0 than x."""
    return 0.5 * sp.gammaincc(1 / beta, _power(x, beta))


def _power(x: Any, beta: Any) -> Any:
    size = ops.abs(x)
    zero = size == 0
    return ops.where(zero, 0.0, ops.exp(beta * ops.log(ops.where(zero, 1.0, size))))


def _gennorm_cdf(x: Any, beta: Any) -> Any:
    half = _gennorm_half(x, beta)
    return ops.where(x > 0, 1 - half, half)


def _gennorm_ppf(q: Any, beta: Any) -> Any:
    side = ops.where(q > 0.5, 1.0, -1.0)
    tail = 2 * ops.where(q > 0.5, 1 - q, q)
    return side * sp.gammainccinv(1 / beta, tail) ** (1 / beta)


def _gennorm_var(beta: Any) -> Any:
    return ops.exp(sp.gammaln(3 / beta) - sp.gammaln(1 / beta))


gennorm = describe(
    "gennorm",
    "beta",
    lambda x, beta: ops.log(0.5 * beta) - sp.gammaln(1 / beta) - _power(x, beta),
    cdf=_gennorm_cdf,
    sf=lambda x, beta: _gennorm_cdf(-x, beta),
    ppf=_gennorm_ppf,
    isf=lambda q, beta: -_gennorm_ppf(q, beta),
    mean=0.0,
    var=_gennorm_var,
    entropy=lambda beta: 1 / beta - ops.log(0.5 * beta) + sp.gammaln(1 / beta),
)

# --- on the circle --------------------------------------------------------------------------------


def _von_mises_entropy(kappa: Any) -> Any:
    i0e = sp.i0e(kappa)
    return -kappa * sp.i1e(kappa) / i0e + ops.log(2 * math.pi * i0e) + kappa


vonmises = describe(
    "vonmises",
    "kappa",
    lambda x, kappa: (
        -2 * kappa * ops.square(ops.sin(x / 2)) - math.log(2 * math.pi) - ops.log(sp.i0e(kappa))
    ),
    valid=lambda kappa: kappa >= 0,
    entropy=_von_mises_entropy,
)
