"""Kullback-Leibler divergences: a table of formulas by pairs of families.

The divergence is -H(p) - E log q(x) for x of p. Where q's log-density is made of x, log x and
others whose expectations under p are known, that is all there is to say: `_MOMENTS`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import linalg, ops
from chainrule.arguments import constant
from chainrule.autograd.tensor import Tensor
from chainrule.backend import holds_somewhere
from chainrule.creation import full
from chainrule.distributions.categorical import Categorical, OneHotCategorical
from chainrule.distributions.composite import Independent, TransformedDistribution
from chainrule.distributions.counts import Bernoulli, Binomial, Geometric, Poisson
from chainrule.distributions.distribution import Distribution, ExponentialFamily
from chainrule.distributions.location_scale import (
    EULER,
    Cauchy,
    Gumbel,
    Laplace,
    Normal,
    Uniform,
)
from chainrule.distributions.multivariate import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    Wishart,
    half_log_det,
    squared_distance,
)
from chainrule.distributions.positive import Exponential, Gamma, HalfNormal, Pareto
from chainrule.distributions.transform import sum_rightmost
from chainrule.distributions.unit_interval import Beta, ContinuousBernoulli, Dirichlet
from chainrule.errors import ArgumentTypeError, MissingRuleError
from chainrule.nn import functional as F
from chainrule.special import betaln

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Tensor]
_FORMULAS: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Return the decorator of a function that computes divergences of two families.

    Parameters
    ----------
    type_p, type_q : subclasses of Distribution
        The formula is used for them, and for their subclasses without a formula of their own.

    Returns
    -------
    function

    Raises
    ------
    TypeError
        If they are no such classes.

    Examples
    --------
    >>> from chainrule.distributions import Normal, kl_divergence, register_kl
    >>> class Standard(Normal):
    ...     def __init__(self):
    ...         super().__init__(0.0, 1.0)
    >>> @register_kl(Standard, Standard)
    ... def zero(p, q):
    ...     return p.loc - q.loc
    >>> kl_divergence(Standard(), Standard())
    tensor(0.)
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type):  # others have base classes of their own
            raise ArgumentTypeError(f"register_kl: expected classes, got {kind!r}")

    def register(formula: Formula) -> Formula:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return register


def _formula(type_p: type, type_q: type) -> Formula | None:
    """Return the formula of the nearest classes above two, first by p."""
    lines = [kind.__mro__ for kind in (type_p, type_q)]
    found = [pair for pair in _FORMULAS if pair[0] in lines[0] and pair[1] in lines[1]]
    if not found:
        return None
    ranks = [(lines[0].index(p), lines[1].index(q)) for p, q in found]
    by_p, by_q = min(ranks), min(ranks, key=lambda rank: rank[::-1])
    if by_p != by_q:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}): register a formula "
            "for these two classes",
            RuntimeWarning,
            stacklevel=3,
        )
    return _FORMULAS[found[ranks.index(by_p)]]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the Kullback-Leibler divergence ∫ p(x) log(p(x) / q(x)) dx, in nats.

    Parameters
    ----------
    p, q : Distribution
        Of families with a known formula; the expectation is over `p`.

    Returns
    -------
    Tensor
        Of the broadcast batch shapes; inf where `p` has values that are impossible for `q`.

    Raises
    ------
    MissingRuleError
        For pairs of families without a formula: see `register_kl`.

    Examples
    --------
    >>> from chainrule.distributions import Normal
    >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.5000)
    """
    formula = _formula(type(p), type(q))
    if formula is None:
        raise _missing(p, q)
    return formula(p, q)


def _missing(p: Distribution, q: Distribution) -> MissingRuleError:
    return MissingRuleError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
        f"{type(q).__name__}: average p.log_prob(x) - q.log_prob(x) over x = p.sample(…), or "
        "register_kl a formula"
    )


# --- one family -----------------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    logits, probs = ops.broadcast_tensors(q.logits, p.probs)
    return F.binary_cross_entropy_with_logits(logits, probs, reduction="none") - p.entropy()


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    terms = (a - c) * ops.digamma(a) + (b - d) * ops.digamma(b)
    return betaln(c, d) - betaln(a, b) + terms + (c + d - a - b) * ops.digamma(a + b)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    log_ratio = p.logits - q.logits
    found = p.total_count * (p.probs * log_ratio + F.softplus(q.logits) - F.softplus(p.logits))
    has_more = p.total_count < q.total_count
    if holds_somewhere(has_more._array):
        raise MissingRuleError(
            "KL between Binomials where q.total_count > p.total_count is not implemented: sum "
            "p.log_prob(k).exp() * (p.log_prob(k) - q.log_prob(k)) over k = p.enumerate_support()"
        )
    found = ops.where(has_more, math.nan, found)
    return ops.where(p.total_count > q.total_count, math.inf, found)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = ops.where(q.probs == 0, math.inf, terms)
    return ops.sum(ops.where(p.probs == 0, 0.0, terms), -1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p, q)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    # F. Chyzak, F. Nielsen, arXiv:1905.10965, 2019
    above = ops.square(p.scale + q.scale) + ops.square(p.loc - q.loc)
    return ops.log(above) - ops.log(4 * p.scale * q.scale)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = ops.sum(a, -1)
    norms = p._log_normalizer(a) - q._log_normalizer(b)
    means = ops.digamma(a) - ops.digamma(total).unsqueeze(-1)
    return ops.sum((a - b) * means, -1) - norms


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ops.log(ratio)


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    norms = ops.lgamma(b) - ops.lgamma(a) + b * ops.log(p.rate / q.rate)
    return norms + (a - b) * ops.digamma(a) + a * (q.rate / p.rate - 1)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, shift = p.scale / q.scale, (p.loc - q.loc) / q.scale
    tail = ops.exp(ops.lgamma(1 + ratio) - shift)
    return -ops.log(ratio) + EULER * (ratio - 1) + shift + tail - 1


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - ops.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    ratio = p.scale / q.scale
    return 0.5 * (ops.square(ratio) - 1) - ops.log(ratio)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, ops.abs(p.loc - q.loc)
    return -ops.log(ratio) + distance / q.scale + ratio * ops.exp(-distance / p.scale) - 1


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc) / q.scale
    return 0.5 * (ops.square(ratio) + ops.square(distance) - 1) - ops.log(ratio)


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    found = q.alpha * ops.log(p.scale / q.scale) - ops.log(ratio) + ratio - 1
    return ops.where(p.scale < q.scale, math.inf, found)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (ops.log(p.rate) - ops.log(q.rate)) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    found = ops.log((q.high - q.low) / (p.high - p.low))
    return ops.where((q.low > p.low) | (q.high < p.high), math.inf, found)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """Return the Bregman divergence of the log-normaliser between natural parameters."""
    if type(p) is not type(q):
        raise _missing(p, q)
    natural, normaliser, slopes = p._expected_statistics()
    result = q._log_normalizer(*q._natural_params) - normaliser
    for theirs, ours, slope in zip(q._natural_params, natural, slopes, strict=True):
        result = result - p._event_sum((theirs - ours) * slope)
    return result


@register_kl(Independent, Independent)
def _independent(p: Independent[Any], q: Independent[Any]) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise MissingRuleError(
            "kl_divergence of Independent: different reinterpreted_batch_ndims, "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}: make both events of "
            "as many dimensions"
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise MissingRuleError(
            "kl_divergence of TransformedDistribution: the transforms differ, "
            f"{p.transforms} and {q.transforms}: estimate it by the mean of p.log_prob(x) - "
            "q.log_prob(x), with x = p.rsample((1000,))"
        )
    return kl_divergence(p.base_dist, q.base_dist)


# --- vectors and matrices -------------------------------------------------------------------------


def _trace(factor: Tensor, other: Tensor) -> Tensor:
    """Return the trace of (L Lᵀ)⁻¹ M Mᵀ, for lower-triangular L and any M."""
    solved = linalg.solve_triangular(factor, other, upper=False)
    return ops.sum(ops.square(solved), (-2, -1))


def _between_normals(log_dets: Tensor, trace: Tensor, distance: Tensor, size: int) -> Tensor:
    return log_dets + 0.5 * (trace + distance - size)


@register_kl(MultivariateNormal, MultivariateNormal)
def _full_full(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    a, b = p._factor, q._factor
    distance = squared_distance(b, q.loc - p.loc)
    logs = half_log_det(b) - half_log_det(a)
    return _between_normals(logs, _trace(b, a), distance, p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_full(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    b = q._factor
    root = ops.diag_embed(ops.sqrt(p.cov_diag))
    trace = _trace(b, p.cov_factor) + _trace(b, root)
    distance = squared_distance(b, q.loc - p.loc)
    logs = half_log_det(b) - p.half_log_det()
    return _between_normals(logs, trace, distance, p.event_shape[0])


def _low_trace(q: LowRankMultivariateNormal, columns: Tensor) -> Tensor:
    """Return the sum of xᵀ Σ⁻¹ x over the columns x of a matrix, for the covariance of `q`."""
    scaled = columns / q.cov_diag.unsqueeze(-1)
    direct = ops.sum(columns * scaled, (-2, -1))
    return direct - _trace(q._capacitance_tril(), ops.matmul(q.cov_factor.mT, scaled))


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_low(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    logs = q.half_log_det() - half_log_det(p._factor)
    distance = q.squared_distance(q.loc - p.loc)
    return _between_normals(logs, _low_trace(q, p._factor), distance, p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_low(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    root = ops.diag_embed(ops.sqrt(p.cov_diag))
    trace = _low_trace(q, p.cov_factor) + _low_trace(q, root)
    distance = q.squared_distance(q.loc - p.loc)
    logs = q.half_log_det() - p.half_log_det()
    return _between_normals(logs, trace, distance, p.event_shape[0])


@register_kl(Wishart, Wishart)
def _wishart(p: Wishart, q: Wishart) -> Tensor:
    size, a, b = p.event_shape[-1], p.df, q.df
    logs = half_log_det(q._factor) - half_log_det(p._factor)
    trace = _trace(q._factor, p._factor)
    norms = ops.mvlgamma(0.5 * b, size) - ops.mvlgamma(0.5 * a, size)
    slope = ops.sum(ops.digamma(p._halves(a)), -1)
    return b * logs + 0.5 * a * (trace - size) + norms + 0.5 * (a - b) * slope


# --- two families: -H(p) - E log q(x) -------------------------------------------------------------


def _log_of_uniform(p: Uniform) -> Tensor:
    low, high = (ops.clamp(x, min=0) for x in (p.low, p.high))  # else the divergence is inf
    return (ops.xlogy(high, high) - ops.xlogy(low, low)) / (p.high - p.low) - 1


def _log_complement_of_uniform(p: Uniform) -> Tensor:
    a, b = (ops.clamp(1 - x, min=0) for x in (p.high, p.low))
    return (ops.xlogy(b, b) - ops.xlogy(a, a)) / (p.high - p.low) - 1


def _exp_of_uniform(p: Uniform, t: Tensor) -> Tensor:
    return (ops.exp(t * p.high) - ops.exp(t * p.low)) / (t * (p.high - p.low))


_MOMENTS: dict[str, dict[type, Callable[..., Tensor]]] = {
    "log": {
        Beta: lambda p: ops.digamma(p.concentration1) - ops.digamma(_total(p)),
        Exponential: lambda p: -EULER - ops.log(p.rate),
        Gamma: lambda p: ops.digamma(p.concentration) - ops.log(p.rate),
        Pareto: lambda p: ops.log(p.scale) + 1 / p.alpha,
        Uniform: _log_of_uniform,
    },
    "log of 1 - x": {Uniform: _log_complement_of_uniform},
    "exp of t x": {
        Exponential: lambda p, t: p.rate / (p.rate - t),
        Gamma: lambda p, t: (p.rate / (p.rate - t)) ** p.concentration,
        Normal: lambda p, t: ops.exp(t * p.loc + 0.5 * ops.square(t * p.scale)),
        Uniform: _exp_of_uniform,
    },
}
"""Expectations by family: of log x, log(1 - x) and exp(t x)."""


def _total(p: Beta) -> Tensor:
    return p.concentration1 + p.concentration0


def _expected(what: str, p: Distribution, *arguments: Tensor) -> Tensor:
    kind = next(kind for kind in type(p).__mro__ if kind in _MOMENTS[what])
    return _MOMENTS[what][kind](p, *arguments)


def _bounds(p: Distribution) -> tuple[Any, Any]:
    """Return the smallest and the largest possible value."""
    support = p.support
    return getattr(support, "lower_bound", -math.inf), getattr(support, "upper_bound", math.inf)


def _inside(found: Tensor, p: Distribution, q: Distribution) -> Tensor:
    """Return inf where values of p are impossible for q."""
    (low, high), (least, largest) = _bounds(p), _bounds(q)
    low, high = (
        x if isinstance(x, Tensor) else constant(np.asarray(x, found.dtype), found)
        for x in (low, high)
    )
    is_outside = (low < least) | (high > largest)
    return ops.where(is_outside, math.inf, found)


def _of_normal(p: Distribution, q: Normal) -> Tensor:
    square = (p.variance + ops.square(p.mean - q.loc)) / ops.square(q.scale)
    return 0.5 * (square + math.log(2 * math.pi)) + ops.log(q.scale)


def _of_exponential(p: Distribution, q: Exponential) -> Tensor:
    return q.rate * p.mean - ops.log(q.rate)


def _of_gamma(p: Distribution, q: Gamma) -> Tensor:
    a, b = q.concentration, q.rate
    return ops.lgamma(a) - a * ops.log(b) - (a - 1) * _expected("log", p) + b * p.mean


def _of_gumbel(p: Distribution, q: Gumbel) -> Tensor:
    tail = ops.exp(q.loc / q.scale) * _expected("exp of t x", p, -1 / q.scale)
    return ops.log(q.scale) + (p.mean - q.loc) / q.scale + tail


def _of_pareto(p: Distribution, q: Pareto) -> Tensor:
    return (q.alpha + 1) * _expected("log", p) - ops.log(q.alpha) - q.alpha * ops.log(q.scale)


def _of_beta(p: Distribution, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    logs = (a - 1) * _expected("log", p) + (b - 1) * _expected("log of 1 - x", p)
    return betaln(a, b) - logs


def _of_continuous_bernoulli(p: Distribution, q: ContinuousBernoulli) -> Tensor:
    return q._log_normalizer(q.logits) - q.logits * p.mean


def _of_uniform(p: Distribution, q: Uniform) -> Tensor:
    return ops.log(q.high - q.low)


def _of_laplace(p: Normal, q: Laplace) -> Tensor:
    z = (p.loc - q.loc) / p.scale
    near = math.sqrt(2 / math.pi) * ops.exp(-0.5 * ops.square(z)) + z * ops.erf(z * math.sqrt(0.5))
    return ops.log(2 * q.scale) + p.scale * near / q.scale


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - p.probs * ops.log(q.rate) - p.entropy()


_CROSS: dict[tuple[type, Callable[..., Tensor]], tuple[type, ...]] = {
    (Normal, _of_normal): (
        *(Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform),
    ),
    (Exponential, _of_exponential): (Beta, ContinuousBernoulli, Gamma, Pareto, Uniform),
    (Gamma, _of_gamma): (Beta, Exponential, Pareto, Uniform),
    (Gumbel, _of_gumbel): (Exponential, Gamma, Normal, Uniform),
    (Laplace, _of_laplace): (Normal,),
    (Pareto, _of_pareto): (Uniform,),
    (Beta, _of_beta): (Uniform,),
    (ContinuousBernoulli, _of_continuous_bernoulli): (*(Beta, ContinuousBernoulli, Uniform),),
    (Uniform, _of_uniform): (Beta, ContinuousBernoulli),
}
"""Cross-entropies -E log q(x) by q, and the families p whose expectations they need."""

_INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    **dict.fromkeys(
        (Gumbel, Laplace, Normal),
        (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    ),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
"""Families q by p that exclude some values of p."""


def _cross(cross_entropy: Callable[..., Tensor]) -> Formula:
    def formula(p: Distribution, q: Distribution) -> Tensor:
        return _inside(cross_entropy(p, q) - p.entropy(), p, q)

    return formula


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    shape = ops.broadcast_shapes(p.batch_shape, q.batch_shape)
    return full(shape, math.inf, dtype=p._like.dtype, device=p._like.device)


for (_q, _cross_entropy), _families in _CROSS.items():
    for _p in _families:
        register_kl(_p, _q)(_cross(_cross_entropy))
for _p, _families in _INFINITE.items():
    for _q in _families:
        register_kl(_p, _q)(_infinite)
