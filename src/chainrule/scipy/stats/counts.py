"""Discrete distributions (N. L. Johnson et al., Univariate Discrete Distributions, 2005).

Parametrised as in SciPy's documentation. The number k and the parameters that count are integers.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule import ops
from chainrule.scipy.stats.distribution import describe
from chainrule.scipy.stats.ratios import sp

_INF = math.inf
_NATURAL = (0.0, _INF)
_FROM_ONE = (1.0, _INF)


def _is_probability(p: Any) -> Any:
    return ops.logical_and(p >= 0, p <= 1)


def _is_positive_probability(p: Any) -> Any:
    return ops.logical_and(p > 0, p <= 1)


def _is_inner_probability(p: Any) -> Any:
    return ops.logical_and(p > 0, p < 1)


def _is_count(n: Any) -> Any:
    return ops.logical_and(n >= 0, n == ops.floor(n))


def _log_choose(n: Any, k: Any) -> Any:
    return -ops.log1p(n) - sp.betaln(n - k + 1, k + 1)


poisson = describe(
    "poisson",
    "mu",
    lambda k, mu: sp.xlogy(k, mu) - sp.gammaln(k + 1) - mu,
    support=_NATURAL,
    valid=lambda mu: mu >= 0,
    discrete=True,
    cdf=lambda k, mu: sp.pdtr(k, mu),
    sf=lambda k, mu: sp.pdtrc(k, mu),
    mean=lambda mu: mu,
    var=lambda mu: mu,
)

binom = describe(
    "binom",
    "n p",
    lambda k, n, p: _log_choose(n, k) + sp.xlogy(k, p) + sp.xlog1py(n - k, -p),
    support=lambda n, p: (0.0, n),
    valid=lambda n, p: ops.logical_and(_is_count(n), _is_probability(p)),
    discrete=True,
    counts="n",
    cdf=lambda k, n, p: sp.betaincc(k + 1, n - k, p),
    sf=lambda k, n, p: sp.betainc(k + 1, n - k, p),
    mean=lambda n, p: n * p,
    var=lambda n, p: n * p * (1 - p),
)


def _bernoulli_log(k: Any, p: Any) -> Any:
    return sp.xlogy(k, p) + sp.xlog1py(1 - k, -p)


bernoulli = describe(
    "bernoulli",
    "p",
    _bernoulli_log,
    support=(0.0, 1.0),
    valid=_is_probability,
    discrete=True,
    cdf=lambda k, p: 1 - p + 0 * k,
    sf=lambda k, p: p + 0 * k,
    mean=lambda p: p,
    var=lambda p: p * (1 - p),
    entropy=lambda p: sp.entr(p) + sp.entr(1 - p),
)

nbinom = describe(
    "nbinom",
    "n p",
    lambda k, n, p: (
        sp.gammaln(n + k) - sp.gammaln(k + 1) - sp.gammaln(n) + n * ops.log(p) + sp.xlog1py(k, -p)
    ),
    support=_NATURAL,
    valid=lambda n, p: ops.logical_and(n > 0, _is_positive_probability(p)),
    discrete=True,
    cdf=lambda k, n, p: sp.betainc(n, k + 1, p),
    sf=lambda k, n, p: sp.betaincc(n, k + 1, p),
    mean=lambda n, p: n * (1 - p) / p,
    var=lambda n, p: n * (1 - p) / (p * p),
)

geom = describe(
    "geom",
    "p",
    lambda k, p: sp.xlog1py(k - 1, -p) + ops.log(p),
    support=_FROM_ONE,
    valid=_is_positive_probability,
    discrete=True,
    logsf=lambda k, p: k * ops.log1p(-p),
    mean=lambda p: 1 / p,
    var=lambda p: (1 - p) / (p * p),
    entropy=lambda p: (sp.entr(p) + sp.entr(1 - p)) / p,
)

# --- mixtures by a beta distribution --------------------------------------------------------------


def _betabinom_valid(n: Any, a: Any, b: Any) -> Any:
    return ops.logical_and(_is_count(n), ops.logical_and(a > 0, b > 0))


def _betabinom_var(n: Any, a: Any, b: Any) -> Any:
    total = a + b
    return n * (total + n) * a * b / (total * total * (total + 1))


betabinom = describe(
    "betabinom",
    "n a b",
    lambda k, n, a, b: _log_choose(n, k) + sp.betaln(k + a, n - k + b) - sp.betaln(a, b),
    support=lambda n, a, b: (0.0, n),
    valid=_betabinom_valid,
    discrete=True,
    counts="n",
    mean=lambda n, a, b: n * a / (a + b),
    var=_betabinom_var,
)

betanbinom = describe(
    "betanbinom",
    "n a b",
    lambda k, n, a, b: (
        sp.betaln(a + n, b + k) - sp.betaln(a, b) - ops.log(n + k) - sp.betaln(n, k + 1)
    ),
    support=_NATURAL,
    valid=_betabinom_valid,
    discrete=True,
    counts="n",
)


def _hypergeom_support(M: Any, n: Any, N: Any) -> tuple[Any, Any]:
    return ops.maximum(N - (M - n), 0.0), ops.minimum(n, N)


def _hypergeom_valid(M: Any, n: Any, N: Any) -> Any:
    ordered = ops.logical_and(n <= M, N <= M)
    counting = ops.logical_and(_is_count(M), ops.logical_and(_is_count(n), _is_count(N)))
    return ops.logical_and(ordered, counting)


hypergeom = describe(
    "hypergeom",
    "M n N",
    lambda k, M, n, N: _log_choose(n, k) + _log_choose(M - n, N - k) - _log_choose(M, N),
    support=_hypergeom_support,
    valid=_hypergeom_valid,
    discrete=True,
    counts="M n N",
    mean=lambda M, n, N: n * N / M,
    var=lambda M, n, N: n * N * (M - n) * (M - N) / (M * M * (M - 1)),
)

yulesimon = describe(
    "yulesimon",
    "alpha",
    lambda k, alpha: ops.log(alpha) + sp.betaln(k, alpha + 1),
    support=_FROM_ONE,
    discrete=True,
    sf=lambda k, alpha: k * sp.beta(k, alpha + 1),
)

# --- power, exponential and logarithmic series ----------------------------------------------------

_TERMS = 12
_BERNOULLI = [
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600,
]  # fmt: skip
"""B(2j)/(2j)! of j from 1."""


def log_zeta(a: Any, q: Any) -> Any:
    """Return log ζ(a, q) for a > 1 and q > 0, differentiable by `a` (DLMF 25.11.43).

    By Euler and Maclaurin: the first terms of the sum, the integral of the rest, and corrections.
    """
    end = q + _TERMS
    total = 0.0
    for k in range(_TERMS):
        total = total + (q + k) ** (-a)
    tail = end ** (1 - a)
    total = total + tail / (a - 1) + 0.5 * end ** (-a)
    factor = a * end ** (-a - 1)
    for j, coefficient in enumerate(_BERNOULLI):
        total = total + coefficient * factor
        factor = factor * (a + 2 * j + 1) * (a + 2 * j + 2) / (end * end)
    return ops.log(total)


zipf = describe(
    "zipf",
    "a",
    lambda k, a: -a * ops.log(k) - log_zeta(a, 1.0),
    support=_FROM_ONE,
    valid=lambda a: a > 1,
    discrete=True,
    logsf=lambda k, a: log_zeta(a, k + 1) - log_zeta(a, 1.0),
)

planck = describe(
    "planck",
    "lambda_",
    lambda k, lambda_: ops.log(-ops.expm1(-lambda_)) - lambda_ * k,
    support=_NATURAL,
    discrete=True,
    logsf=lambda k, lambda_: -lambda_ * (k + 1),
    mean=lambda lambda_: 1 / ops.expm1(lambda_),
    var=lambda lambda_: ops.exp(-lambda_) / ops.square(ops.expm1(-lambda_)),
)

logser = describe(
    "logser",
    "p",
    lambda k, p: k * ops.log(p) - ops.log(k) - ops.log(-ops.log1p(-p)),
    support=_FROM_ONE,
    valid=_is_inner_probability,
    discrete=True,
    mean=lambda p: p / (p - 1) / ops.log1p(-p),
)


def _dlaplace_cdf(k: Any, a: Any) -> Any:
    right, left = ops.clamp_min(k, 0.0), ops.clamp_max(k, -1.0)
    total = ops.exp(a) + 1
    return ops.where(k >= 0, 1 - ops.exp(-a * right) / total, ops.exp(a * (left + 1)) / total)


dlaplace = describe(
    "dlaplace",
    "a",
    lambda k, a: ops.log(ops.tanh(a / 2)) - a * ops.abs(k),
    discrete=True,
    cdf=_dlaplace_cdf,
    mean=lambda a: 0 * a,
    var=lambda a: 2 * ops.exp(a) / ops.square(ops.expm1(a)),
    entropy=lambda a: a / ops.sinh(a) - ops.log(ops.tanh(a / 2)),
)


def _randint_valid(low: Any, high: Any) -> Any:
    whole = ops.logical_and(low == ops.floor(low), high == ops.floor(high))
    return ops.logical_and(high > low, whole)


randint = describe(
    "randint",
    "low high",
    lambda k, low, high: -ops.log(high - low) + 0 * k,
    support=lambda low, high: (low, high - 1),
    valid=_randint_valid,
    discrete=True,
    counts="low high",
    cdf=lambda k, low, high: (k - low + 1) / (high - low),
    mean=lambda low, high: (high + low - 1) / 2,
    var=lambda low, high: (ops.square(high - low) - 1) / 12,
    entropy=lambda low, high: ops.log(high - low),
)
