"""Distributions of numbers between 0 and 1, and of shares that sum to 1."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from chainrule import ops
from chainrule.arguments import Operand, floating, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.creation import full_like
from chainrule.distributions import constraints, draws
from chainrule.distributions.categorical import Categories
from chainrule.distributions.composite import Independent, TransformedDistribution
from chainrule.distributions.counts import ProbsOrLogits
from chainrule.distributions.distribution import (
    Distribution,
    Draws,
    ExponentialFamily,
    clamp_probs,
)
from chainrule.distributions.location_scale import EULER, Normal
from chainrule.distributions.transform import log_of
from chainrule.distributions.transforms import (
    ExpTransform,
    SigmoidTransform,
    StickBreakingTransform,
)
from chainrule.errors import ShapeError
from chainrule.nn import functional as F
from chainrule.special import betainc, betaln, xlog1py

__all__ = [
    "Beta",
    "ContinuousBernoulli",
    "Dirichlet",
    "ExpRelaxedCategorical",
    "Kumaraswamy",
    "LogisticNormal",
    "LogitRelaxedBernoulli",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
]


class Beta(ExponentialFamily):
    """The beta distribution, of density proportional to x^(a-1) (1-x)^(b-1).

    Parameters
    ----------
    concentration1, concentration0 : Tensor or number
        a and b, positive.
    validate_args : bool, optional
        As for `Distribution`.

    Notes
    -----
    A draw is x / (x + y) for draws of gamma distributions; see `Gamma` for its derivative.

    Examples
    --------
    >>> from chainrule.distributions import Beta
    >>> Beta(2.0, 2.0).log_prob(0.5).exp()
    tensor(1.5000)
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    concentration1: Tensor
    concentration0: Tensor

    def __init__(
        self,
        concentration1: Operand,
        concentration0: Operand,
        validate_args: bool | None = None,
    ) -> None:
        self._init(validate_args, concentration1=concentration1, concentration0=concentration0)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        both = ops.stack([self.concentration1, self.concentration0], -1)
        return Dirichlet(both, validate_args=False).mode[..., 0]

    @property
    def variance(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return a * b / (ops.square(a + b) * (a + b + 1))

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        parameters = (self.concentration1, self.concentration0)
        x, y = (draws.log_standard_gamma(ops.broadcast_to(a, shape)) for a in parameters)
        return clamp_probs(ops.sigmoid(x - y))

    def log_prob(self, value: Operand) -> Tensor:
        value, a, b = self._value(value), self.concentration1, self.concentration0
        return ops.xlogy(a - 1, value) + xlog1py(b - 1, -value) - betaln(a, b)

    def cdf(self, value: Operand) -> Tensor:
        return betainc(self.concentration1, self.concentration0, self._value(value))

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        means = (a - 1) * ops.digamma(a) + (b - 1) * ops.digamma(b)
        return betaln(a, b) - means + (a + b - 2) * ops.digamma(a + b)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return betaln(*natural_params)


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution, of vectors of shares.

    Parameters
    ----------
    concentration : Tensor, shape (…, n)
        Positive; the mean is proportional to it.
    validate_args : bool, optional
        As for `Distribution`.

    Raises
    ------
    ShapeError
        If `concentration` is a number.

    Notes
    -----
    A draw is a vector of draws of gamma distributions, divided by its sum; see `Gamma` for its
    derivative. Small concentrations do no harm: the draws are kept as logarithms.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.Dirichlet(cr.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    concentration: Tensor

    def __init__(self, concentration: Operand, validate_args: bool | None = None) -> None:
        self.concentration = floating(concentration)
        shape = self.concentration.shape
        if not shape:
            raise ShapeError("`concentration` parameter must be at least one-dimensional.")
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / ops.sum(self.concentration, -1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        excess = ops.clamp(self.concentration - 1, min=0)
        found = excess / ops.sum(excess, -1, keepdim=True)
        peak = F.one_hot(ops.argmax(self.concentration, -1), self.event_shape[0]).to(found.dtype)
        is_flat = ops.all(self.concentration < 1, -1, keepdim=True)
        return ops.where(is_flat, peak, found)

    @property
    def variance(self) -> Tensor:
        total = ops.sum(self.concentration, -1, keepdim=True)
        a = self.concentration
        return a * (total - a) / (ops.square(total) * (total + 1))

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        a = ops.broadcast_to(self.concentration, self._extended_shape(sample_shape))
        return ops.softmax(draws.log_standard_gamma(a), -1)

    def log_prob(self, value: Operand) -> Tensor:
        a = self.concentration
        terms = ops.xlogy(a - 1, self._value(value)) - ops.lgamma(a)
        return ops.sum(terms, -1) + ops.lgamma(ops.sum(a, -1))

    def entropy(self) -> Tensor:
        a, total, number = self.concentration, ops.sum(self.concentration, -1), self.event_shape[0]
        terms = ops.lgamma(a) - (a - 1) * ops.digamma(a)
        return ops.sum(terms, -1) - ops.lgamma(total) + (total - number) * ops.digamma(total)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (a,) = natural_params
        return ops.sum(ops.lgamma(a), -1) - ops.lgamma(ops.sum(a, -1))


class Kumaraswamy(Distribution):
    """The Kumaraswamy distribution, of probabilities 1 - (1 - x^a)^b of values below x.

    Parameters
    ----------
    concentration1, concentration0 : Tensor or number
        a and b, positive.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import Kumaraswamy
    >>> Kumaraswamy(1.0, 3.0).mean
    tensor(0.2500)
    """

    arg_constraints = Beta.arg_constraints
    support = constraints.unit_interval
    has_rsample = True
    concentration1: Tensor
    concentration0: Tensor

    def __init__(
        self,
        concentration1: Operand,
        concentration0: Operand,
        validate_args: bool | None = None,
    ) -> None:
        self._init(validate_args, concentration1=concentration1, concentration0=concentration0)

    def _moment(self, order: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return b * ops.exp(betaln(1 + order / a, b))

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        is_inside = (a >= 1) & (b >= 1) & (a * b > 1)
        a, b = ops.where(is_inside, a, 2.0), ops.where(is_inside, b, 2.0)
        return ops.where(is_inside, ((a - 1) / (a * b - 1)) ** (1 / a), math.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - ops.square(self._moment(1))

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = draws.noise("standard_exponential", shape, self.concentration1)
        return clamp_probs(self._above(drawn))

    def _above(self, decay: Tensor) -> Tensor:
        """Return the number above which there is a probability of exp(-decay)."""
        return (-ops.expm1(-decay / self.concentration0)) ** (1 / self.concentration1)

    def log_prob(self, value: Operand) -> Tensor:
        value, a, b = self._value(value), self.concentration1, self.concentration0
        return ops.log(a * b) + ops.xlogy(a - 1, value) + xlog1py(b - 1, -(value**a))

    def cdf(self, value: Operand) -> Tensor:
        b, power = self.concentration0, self._value(value) ** self.concentration1
        is_end = power == 1  # where log1p has no derivative
        inside = ops.where(is_end, 0.5, power)
        return ops.where(is_end, 1 - (1 - power) ** b, -ops.expm1(b * ops.log1p(-inside)))

    def icdf(self, value: Operand) -> Tensor:
        return self._above(-ops.log1p(-tensor_of(value)))

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = ops.digamma(b + 1) + EULER
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - ops.log(a * b)


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers between 0 and 1 of density proportional to p^x (1 - p)^(1 - x) [1]_.

    Parameters
    ----------
    probs : Tensor or number
        p, which is not the mean.
    logits : Tensor or number
        log(p / (1 - p)), instead.
    lims : tuple
        Not needed: the formulas used here are accurate around p = 1/2.
    validate_args : bool, optional
        As for `Distribution`.

    Raises
    ------
    ArgumentError
        If both or neither are given.

    References
    ----------
    .. [1] G. Loaiza-Ganem, J. P. Cunningham, The continuous Bernoulli, NeurIPS 2019.

    Examples
    --------
    >>> from chainrule.distributions import ContinuousBernoulli
    >>> ContinuousBernoulli(0.5).mean
    tensor(0.5000)
    """

    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Operand | None = None,
        logits: Operand | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._init_either(probs, logits, validate_args)

    @property
    def mean(self) -> Tensor:
        return 0.5 + 0.5 * _langevin(0.5 * self.logits)

    @property
    def variance(self) -> Tensor:
        return 0.25 * _langevin_slope(0.5 * self.logits)

    def _fraction(self, x: Tensor) -> Tensor:
        """Return ∫ exp(l t) dt from 0 to x over that from 0 to 1, for logits l."""
        is_flat = ops.abs(self.logits) < 1e-4
        logits = ops.where(is_flat, 1.0, self.logits)
        sign = ops.sign(logits)  # of e^l - 1 and e^(l x) - 1, without overflow
        size = ops.abs(logits)
        rising = ops.exp(size * (x - 1)) * ops.expm1(-size * x) / ops.expm1(-size)
        falling = ops.expm1(-size * x) / ops.expm1(-size)
        slope = 0.5 * self.logits
        flat = x + slope * x * (x - 1) * (1 + slope * (2 * x - 1) / 3)
        return ops.where(is_flat, flat, ops.where(sign > 0, rising, falling))

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        return self.icdf(draws.uniform(self._extended_shape(sample_shape), self._like))

    def log_prob(self, value: Operand) -> Tensor:
        x, half = self._value(value), 0.5 * self.logits
        # Steep ones by the distance to the likelier end, so that large logits don't cancel
        steep = self.logits * ops.where(half > 0, x - 1, x) - _log_decay(_steepness(half))
        return ops.where(ops.abs(half) < _SMALL, half * (2 * x - 1) - _log_sinhc(half), steep)

    def cdf(self, value: Operand) -> Tensor:
        return self._fraction(ops.clamp(self._value(value), 0, 1))

    def icdf(self, value: Operand) -> Tensor:
        u, half = floating(value), 0.5 * self.logits
        is_flat = ops.abs(self.logits) < 1e-4
        logits = ops.where(is_flat, 1.0, self.logits)
        size = ops.abs(logits)
        # log(1 + u (e^l - 1)) / l, without overflow or cancellation
        fall = ops.expm1(-size)
        steep = ops.log(ops.exp(-size) - u * fall)
        rising = 1 + ops.where(size < 1, ops.log1p((1 - u) * fall), steep) / size
        found = ops.where(logits > 0, rising, -ops.log1p(u * fall) / size)
        return ops.where(is_flat, u + half * u * (1 - u) * (1 + half * (1 - 2 * u) / 1.5), found)

    def entropy(self) -> Tensor:
        half = 0.5 * self.logits
        y = _steepness(half)
        steep = _log_decay(y) + 1 + 2 * y * ops.exp(-2 * y) / ops.expm1(-2 * y)
        return ops.where(ops.abs(half) < _SMALL, _log_sinhc(half) - half * _langevin(half), steep)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        half = 0.5 * natural_params[0]
        return half + _log_sinhc(half)


_SMALL = 0.3
"""Below it, functions of the continuous Bernoulli distribution are computed by series."""


def _near_zero(y: Tensor, series: tuple[float, ...], far: Any) -> Tensor:
    """Return a power series in y² where y is small, else a function of |y|."""
    is_small = ops.abs(y) < _SMALL
    square = ops.square(ops.where(is_small, y, 0.0))
    near = reduce(lambda total, c: total * square + c, reversed(series), full_like(square, 0.0))
    return ops.where(is_small, near, far(_steepness(y)))


def _steepness(y: Tensor) -> Tensor:
    """Return |y|, and 1 where series are used."""
    return ops.where(ops.abs(y) < _SMALL, 1.0, ops.abs(y))


def _log_decay(y: Tensor) -> Tensor:
    """Return log((1 - exp(-2 y)) / (2 y)), the mean of exp(-2 y x) for x from 0 to 1."""
    return ops.log(-ops.expm1(-2 * y) / (2 * y))


def _log_sinhc(y: Tensor) -> Tensor:
    """Return log(sinh(y) / y)."""
    series = (0.0, 1 / 6, -1 / 180, 1 / 2835, -1 / 37800, 1 / 467775, -691 / 3831077250)
    return _near_zero(y, series, lambda y: y + _log_decay(y))


def _langevin(y: Tensor) -> Tensor:
    """Return coth(y) - 1/y, the derivative of `_log_sinhc`."""
    series = (1 / 3, -1 / 45, 2 / 945, -1 / 4725, 2 / 93555, -1382 / 638512875)
    even = _near_zero(y, series, lambda y: (1 / ops.tanh(y) - 1 / y) / y)
    return y * even


def _langevin_slope(y: Tensor) -> Tensor:
    """Return 1/y² - 1/sinh(y)², the derivative of `_langevin`."""
    series = (1 / 3, -3 / 45, 10 / 945, -7 / 4725, 18 / 93555, -11 * 1382 / 638512875)

    def far(y: Tensor) -> Tensor:
        decay = ops.exp(-2 * y)
        return 1 / ops.square(y) - 4 * decay / ops.square(1 - decay)

    return _near_zero(y, series, far)


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The logits of relaxed Bernoulli draws [1]_.

    Parameters
    ----------
    temperature : Tensor or number
        Positive; towards 0 the draws become those of `Bernoulli`.
    probs, logits, validate_args
        As for `Bernoulli`.

    Raises
    ------
    ArgumentError
        As for `Bernoulli`.

    References
    ----------
    .. [1] C. J. Maddison, A. Mnih, Y. W. Teh, The concrete distribution, ICLR 2017.

    Examples
    --------
    >>> from chainrule.distributions.unit_interval import LogitRelaxedBernoulli
    >>> LogitRelaxedBernoulli(1.0, 0.5).log_prob(0.0)
    tensor(-1.3863)
    """

    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Operand,
        probs: Operand | None = None,
        logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._init_either(probs, logits, validate_args)

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return (draws.noise("logistic", shape, self._like) + self.logits) / self.temperature

    def log_prob(self, value: Operand) -> Tensor:
        value = self._value(value)
        difference = self.logits - value * self.temperature
        density: Tensor = difference - 2 * F.softplus(difference) + log_of(self.temperature)
        return density


class _Relaxed(TransformedDistribution):
    """What a relaxed distribution has from its base."""

    base_dist: LogitRelaxedBernoulli | ExpRelaxedCategorical
    has_rsample = True

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logits."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs


class RelaxedBernoulli(_Relaxed):
    """Numbers between 0 and 1 that stand for Bernoulli draws, and are differentiable [1]_.

    Parameters
    ----------
    temperature : Tensor or number
        Positive; towards 0 the draws become those of `Bernoulli`.
    probs, logits, validate_args
        As for `Bernoulli`.

    Raises
    ------
    ArgumentError
        As for `Bernoulli`.

    References
    ----------
    .. [1] C. J. Maddison, A. Mnih, Y. W. Teh, The concrete distribution, ICLR 2017.

    Examples
    --------
    >>> from chainrule.distributions import RelaxedBernoulli
    >>> RelaxedBernoulli(1.0, 0.5).log_prob(0.5).abs() < 1e-6
    tensor(True)
    """

    arg_constraints = ProbsOrLogits.arg_constraints
    support = constraints.unit_interval

    def __init__(
        self,
        temperature: Operand,
        probs: Operand | None = None,
        logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)


class ExpRelaxedCategorical(Categories):
    """The logarithms of relaxed one-hot draws [1]_.

    Parameters
    ----------
    temperature : Tensor or number
        Positive; towards 0 the draws become one-hot.
    probs, logits, validate_args
        As for `Categorical`.

    Raises
    ------
    ArgumentError
        As for `Categorical`.

    References
    ----------
    .. [1] C. J. Maddison, A. Mnih, Y. W. Teh, The concrete distribution, ICLR 2017.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.distributions.unit_interval import ExpRelaxedCategorical
    >>> ExpRelaxedCategorical(1.0, cr.ones(3)).sample().shape
    (3,)
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Operand,
        probs: Operand | None = None,
        logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._set_weights(probs, logits)
        shape = self._param.shape
        Distribution.__init__(self, shape[:-1], shape[-1:], validate_args)

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        scores = (self.logits + draws.noise("gumbel", shape, self._like)) / self.temperature
        return ops.log_softmax(scores, -1)

    def log_prob(self, value: Operand) -> Tensor:
        value, number = self._value(value), self.event_shape[0]
        scores = ops.sum(ops.log_softmax(self.logits - value * self.temperature, -1), -1)
        density: Tensor = scores + math.lgamma(number) + (number - 1) * log_of(self.temperature)
        return density


class RelaxedOneHotCategorical(_Relaxed):
    """Shares that stand for one-hot draws, and are differentiable [1]_: Gumbel softmax.

    Parameters
    ----------
    temperature : Tensor or number
        Positive; towards 0 the draws become one-hot.
    probs, logits, validate_args
        As for `Categorical`.

    Raises
    ------
    ArgumentError
        As for `Categorical`.

    References
    ----------
    .. [1] C. J. Maddison, A. Mnih, Y. W. Teh, The concrete distribution, ICLR 2017.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.RelaxedOneHotCategorical(1.0, cr.ones(3)).rsample().shape
    (3,)
    """

    arg_constraints = Categories.arg_constraints
    support = constraints.simplex

    def __init__(
        self,
        temperature: Operand,
        probs: Operand | None = None,
        logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)


class LogisticNormal(TransformedDistribution):
    """The distribution of shares whose sticks are broken at logits of a normal distribution.

    Parameters
    ----------
    loc, scale : Tensor, shape (…, n)
        Mean and standard deviation of the n logits of n + 1 shares.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.LogisticNormal(cr.zeros(3), 1.0).sample().shape
    (4,)
    """

    base_dist: Independent[Normal]
    arg_constraints = Normal.arg_constraints
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            raise ShapeError("LogisticNormal: loc or scale must be at least one-dimensional.")
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """Means of the logits."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """Standard deviations of the logits."""
        return self.base_dist.base_dist.scale
