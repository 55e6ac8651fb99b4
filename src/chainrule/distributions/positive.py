"""Distributions of positive numbers, and of numbers above a bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

from chainrule import ops
from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.creation import zeros_like
from chainrule.distributions import constraints, draws
from chainrule.distributions.composite import TransformedDistribution
from chainrule.distributions.distribution import (
    LOG_2PI,
    Distribution,
    Draws,
    ExponentialFamily,
)
from chainrule.distributions.location_scale import EULER, Normal
from chainrule.distributions.transforms import ExpTransform, PowerTransform
from chainrule.special import betaln

__all__ = [
    "Chi2",
    "Exponential",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "HalfCauchy",
    "HalfNormal",
    "InverseGamma",
    "LogNormal",
    "Pareto",
    "Weibull",
]


class Exponential(ExponentialFamily):
    """The exponential distribution, of density rate · exp(-rate · x).

    Parameters
    ----------
    rate : Tensor or number
        One over the mean.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import Exponential
    >>> Exponential(2.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    rate: Tensor

    def __init__(self, rate: Operand, validate_args: bool | None = None) -> None:
        self._init(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.rate)

    @property
    def variance(self) -> Tensor:
        return 1 / ops.square(self.rate)

    @property
    def stddev(self) -> Tensor:
        return 1 / self.rate

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return draws.noise("standard_exponential", shape, self.rate) / self.rate

    def log_prob(self, value: Operand) -> Tensor:
        return ops.log(self.rate) - self.rate * self._value(value)

    def cdf(self, value: Operand) -> Tensor:
        return -ops.expm1(-self.rate * self._value(value))

    def icdf(self, value: Operand) -> Tensor:
        return -ops.log1p(-tensor_of(value)) / self.rate

    def entropy(self) -> Tensor:
        return 1 - ops.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return -ops.log(-natural_params[0])


class Gamma(ExponentialFamily):
    """The gamma distribution, of density proportional to x^(concentration - 1) exp(-rate · x).

    Parameters
    ----------
    concentration, rate : Tensor or number
        The shape, and one over the scale.
    validate_args : bool, optional
        As for `Distribution`.

    Notes
    -----
    Draws are differentiable by both parameters, the concentration by implicit derivatives [1]_,
    which need SciPy.

    References
    ----------
    .. [1] M. Figurnov, S. Mohamed, A. Mnih, Implicit reparameterization gradients, NeurIPS 2018.

    Examples
    --------
    >>> import chainrule as cr
    >>> rng = cr.manual_seed(0)
    >>> a = cr.tensor(3.0, requires_grad=True)
    >>> cr.distributions.Gamma(a, 1.0).rsample((10_000,)).mean().backward()
    >>> round(a.grad.item(), 1)
    1.0
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    concentration: Tensor
    rate: Tensor

    def __init__(
        self, concentration: Operand, rate: Operand, validate_args: bool | None = None
    ) -> None:
        self._init(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ops.clamp((self.concentration - 1) / self.rate, min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / ops.square(self.rate)

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        a = ops.broadcast_to(self.concentration, self._extended_shape(sample_shape))
        tiny = float(ops.finfo(a.dtype).tiny)
        return ops.clamp(ops.exp(draws.log_standard_gamma(a) - ops.log(self.rate)), min=tiny)

    def log_prob(self, value: Operand) -> Tensor:
        value, a = self._value(value), self.concentration
        scaled = ops.xlogy(a, self.rate) - self.rate * value
        return scaled + ops.xlogy(a - 1, value) - ops.lgamma(a)

    def cdf(self, value: Operand) -> Tensor:
        return ops.igamma(self.concentration, self.rate * self._value(value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - ops.log(self.rate) + ops.lgamma(a) + (1 - a) * ops.digamma(a)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return ops.lgamma(x + 1) - (x + 1) * ops.log(-y)


class Chi2(Gamma):
    """The χ² distribution, that of a sum of `df` squares of standard normal numbers.

    Parameters
    ----------
    df : Tensor or number
        Degrees of freedom.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import Chi2
    >>> Chi2(3.0).variance
    tensor(6.)
    """

    arg_constraints = {"df": constraints.positive}
    df: Tensor

    def __init__(self, df: Operand, validate_args: bool | None = None) -> None:
        self._init(validate_args, df=df)

    # A gamma distribution's parameters are set, and to type checkers remain so; these follow from
    # `df`, as which alone they can be differentiated, expanded and validated.
    @property
    def concentration(self) -> Tensor:  # type: ignore[override]
        """Half of the degrees of freedom."""
        return 0.5 * self.df

    @property
    def rate(self) -> Tensor:  # type: ignore[override]
        """1/2."""
        return zeros_like(self.df) + 0.5


class InverseGamma(TransformedDistribution):
    """The distribution of 1 / x for x of the gamma distribution.

    Parameters
    ----------
    concentration, rate : Tensor or number
        Those of the gamma distribution.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import InverseGamma
    >>> InverseGamma(3.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = Gamma.arg_constraints
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(
        self, concentration: Operand, rate: Operand, validate_args: bool | None = None
    ) -> None:
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(-1.0), validate_args)

    @property
    def concentration(self) -> Tensor:
        """The concentration of the gamma distribution."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma distribution."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        is_finite = a > 1
        return ops.where(is_finite, self.rate / (ops.where(is_finite, a, 2.0) - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        is_finite = self.concentration > 2
        a = ops.where(is_finite, self.concentration, 3.0)
        found = ops.square(self.rate) / (ops.square(a - 1) * (a - 2))
        return ops.where(is_finite, found, math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + ops.log(self.rate) + ops.lgamma(a) - (1 + a) * ops.digamma(a)


class FisherSnedecor(Distribution):
    """Fisher's F distribution, that of the ratio of two mean squares.

    Parameters
    ----------
    df1, df2 : Tensor or number
        Degrees of freedom above and below.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import FisherSnedecor
    >>> FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    df1: Tensor
    df2: Tensor

    def __init__(self, df1: Operand, df2: Operand, validate_args: bool | None = None) -> None:
        self._init(validate_args, df1=df1, df2=df2)

    @property
    def mean(self) -> Tensor:
        is_finite = self.df2 > 2
        df2 = ops.where(is_finite, self.df2, 3.0)
        return ops.where(is_finite, df2 / (df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return ops.where(self.df1 > 2, found, math.nan)

    @property
    def variance(self) -> Tensor:
        is_finite = self.df2 > 4
        a, b = self.df1, ops.where(is_finite, self.df2, 5.0)
        found = 2 * ops.square(b) * (a + b - 2) / (a * ops.square(b - 2) * (b - 4))
        return ops.where(is_finite, found, math.nan)

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        a, b = (ops.broadcast_to(0.5 * df, shape) for df in (self.df1, self.df2))
        above, below = (draws.log_standard_gamma(x) - ops.log(x) for x in (a, b))
        return ops.clamp(ops.exp(above - below), min=float(ops.finfo(a.dtype).tiny))

    def log_prob(self, value: Operand) -> Tensor:
        value, a, b = self._value(value), 0.5 * self.df1, 0.5 * self.df2
        ratio = self.df1 / self.df2
        norm = a * ops.log(ratio) - betaln(a, b)
        return norm + (a - 1) * ops.log(value) - (a + b) * ops.log1p(ratio * value)


class Weibull(Distribution):
    """The Weibull distribution, that of the scaled power 1 / concentration of an exponential one.

    Parameters
    ----------
    scale, concentration : Tensor or number
        Scale and shape.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import Weibull
    >>> Weibull(1.0, 2.0).cdf(1.0)
    tensor(0.6321)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True
    scale: Tensor
    concentration: Tensor

    def __init__(
        self, scale: Operand, concentration: Operand, validate_args: bool | None = None
    ) -> None:
        self._init(validate_args, scale=scale, concentration=concentration)

    def _moment(self, order: int) -> Tensor:
        return self.scale**order * ops.exp(ops.lgamma(1 + order / self.concentration))

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        base = ops.clamp(1 - 1 / self.concentration, min=0)
        return self.scale * base ** (1 / self.concentration)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - ops.square(self._moment(1))

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = draws.noise("standard_exponential", shape, self.scale)
        return self.scale * ops.exp(ops.log(drawn) / self.concentration)

    def log_prob(self, value: Operand) -> Tensor:
        k, z = self.concentration, self._value(value) / self.scale
        return ops.log(k / self.scale) + (k - 1) * ops.log(z) - z**k

    def cdf(self, value: Operand) -> Tensor:
        return -ops.expm1(-((self._value(value) / self.scale) ** self.concentration))

    def icdf(self, value: Operand) -> Tensor:
        return self.scale * (-ops.log1p(-tensor_of(value))) ** (1 / self.concentration)

    def entropy(self) -> Tensor:
        k = self.concentration
        return EULER * (1 - 1 / k) + ops.log(self.scale / k) + 1


class Pareto(Distribution):
    """The Pareto distribution of numbers above `scale`, of density proportional to 1 / x^(alpha+1).

    Parameters
    ----------
    scale, alpha : Tensor or number
        The lower bound, and the shape.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import Pareto
    >>> Pareto(1.0, 3.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"scale": constraints.positive, "alpha": constraints.positive}
    has_rsample = True
    scale: Tensor
    alpha: Tensor

    def __init__(self, scale: Operand, alpha: Operand, validate_args: bool | None = None) -> None:
        self._init(validate_args, scale=scale, alpha=alpha)

    @constraints.dependent_property()
    def support(self) -> constraints.Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        is_finite = self.alpha > 1
        a = ops.where(is_finite, self.alpha, 2.0)
        return ops.where(is_finite, self.scale * a / (a - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        is_finite = self.alpha > 2
        a = ops.where(is_finite, self.alpha, 3.0)
        found = ops.square(self.scale) * a / (ops.square(a - 1) * (a - 2))
        return ops.where(is_finite, found, math.inf)

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = draws.noise("standard_exponential", shape, self.scale)
        return self.scale * ops.exp(drawn / self.alpha)

    def log_prob(self, value: Operand) -> Tensor:
        value, a = self._value(value), self.alpha
        return ops.log(a) + a * ops.log(self.scale) - (a + 1) * ops.log(value)

    def cdf(self, value: Operand) -> Tensor:
        return -ops.expm1(-self.alpha * ops.log(self._value(value) / self.scale))

    def icdf(self, value: Operand) -> Tensor:
        return self.scale * ops.exp(-ops.log1p(-tensor_of(value)) / self.alpha)

    def entropy(self) -> Tensor:
        return ops.log(self.scale / self.alpha) + 1 + 1 / self.alpha


class GeneralizedPareto(Distribution):
    """The generalised Pareto distribution, of the excesses over a high threshold.

    It is exponential for concentration 0, uniform for -1, and has a heavy tail above 0.

    Parameters
    ----------
    loc, scale, concentration : Tensor or number
        The lower bound, the scale and the shape.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import GeneralizedPareto
    >>> GeneralizedPareto(0.0, 1.0, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    loc: Tensor
    scale: Tensor
    concentration: Tensor

    def __init__(
        self,
        loc: Operand,
        scale: Operand,
        concentration: Operand,
        validate_args: bool | None = None,
    ) -> None:
        self._init(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property()
    def support(self) -> constraints.Constraint:
        is_bounded = self.concentration < 0
        shape = ops.where(is_bounded, self.concentration, -1.0)
        upper = ops.where(is_bounded, self.loc - self.scale / shape, math.inf)
        return constraints.interval(self.loc, upper)

    def _decay(self, value: Tensor) -> Tensor:
        """Return minus the logarithm of the probability of larger values: log1p(ξz) / ξ."""
        z = (value - self.loc) / self.scale
        return z * _ratio(ops.log1p, self.concentration * z, (1, -1 / 2, 1 / 3, -1 / 4, 1 / 5))

    def _above(self, decay: Tensor) -> Tensor:
        """Return the inverse of `_decay`."""
        x = self.concentration * decay
        z = decay * _ratio(ops.expm1, x, (1, 1 / 2, 1 / 6, 1 / 24, 1 / 120))
        return self.loc + self.scale * z

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        drawn = draws.noise("standard_exponential", self._extended_shape(sample_shape), self.loc)
        return self._above(drawn)

    def log_prob(self, value: Operand) -> Tensor:
        decay = self._decay(self._value(value))
        return -ops.log(self.scale) - (1 + self.concentration) * decay

    def log_survival_function(self, value: Operand) -> Tensor:
        """Return the logarithm of the probability of larger values."""
        return -self._decay(self._value(value))

    def log_cdf(self, value: Operand) -> Tensor:
        """Return the logarithm of `cdf`."""
        return ops.log(self.cdf(value))

    def cdf(self, value: Operand) -> Tensor:
        return -ops.expm1(-self._decay(self._value(value)))

    def icdf(self, value: Operand) -> Tensor:
        return self._above(-ops.log1p(-tensor_of(value)))

    @property
    def mean(self) -> Tensor:
        is_finite = self.concentration < 1
        shape = ops.where(is_finite, self.concentration, 0.5)
        return ops.where(is_finite, self.loc + self.scale / (1 - shape), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        is_finite = self.concentration < 0.5
        shape = ops.where(is_finite, self.concentration, 0.25)
        found = ops.square(self.scale) / (ops.square(1 - shape) * (1 - 2 * shape))
        return ops.where(is_finite, found, math.nan)

    def entropy(self) -> Tensor:
        return ops.log(self.scale) + self.concentration + 1


def _ratio(function: Callable[[Tensor], Tensor], x: Tensor, series: Sequence[float]) -> Tensor:
    """Return f(x) / x, near 0 by its series, whose derivatives don't cancel."""
    is_small = ops.abs(x) < 1e-3
    small, large = ops.where(is_small, x, 0.0), ops.where(is_small, 1.0, x)
    polynomial = reduce(lambda total, c: total * small + c, reversed(series), zeros_like(x))
    return ops.where(is_small, polynomial, function(large) / large)


class LogNormal(TransformedDistribution):
    """The distribution of exp(x) for a normal x.

    Parameters
    ----------
    loc, scale : Tensor or number
        Mean and standard deviation of the logarithm.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import LogNormal
    >>> LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = Normal.arg_constraints
    support = constraints.positive
    has_rsample = True
    base_dist: Normal

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """Mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """Standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return ops.exp(self.loc + 0.5 * ops.square(self.scale))

    @property
    def mode(self) -> Tensor:
        return ops.exp(self.loc - ops.square(self.scale))

    @property
    def variance(self) -> Tensor:
        square = ops.square(self.scale)
        return ops.expm1(square) * ops.exp(2 * self.loc + square)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class _Half(Distribution):
    """The distribution of |x|, x being of a symmetric distribution around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    scale: Tensor

    def __init__(self, scale: Operand, validate_args: bool | None = None) -> None:
        self._init(validate_args, scale=scale)

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    def _within(self, value: Operand, density: Tensor) -> Tensor:
        """Return log-densities, which are -inf for negative values."""
        return ops.where(tensor_of(value) >= 0, density, -math.inf)


class HalfNormal(_Half):
    """The distribution of |x| for x of the normal distribution around 0.

    Parameters
    ----------
    scale : Tensor or number
        The standard deviation of x.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import HalfNormal
    >>> HalfNormal(1.0).mean
    tensor(0.7979)
    """

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return ops.square(self.scale) * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.scale * ops.abs(draws.standard_normal(shape, self.scale))

    def log_prob(self, value: Operand) -> Tensor:
        value = self._value(value)
        density = -0.5 * ops.square(value / self.scale) - ops.log(self.scale)
        return self._within(value, density + (math.log(2) - 0.5 * LOG_2PI))

    def cdf(self, value: Operand) -> Tensor:
        return ops.erf(self._value(value) / (self.scale * math.sqrt(2)))

    def icdf(self, value: Operand) -> Tensor:
        return self.scale * math.sqrt(2) * ops.erfinv(tensor_of(value))

    def entropy(self) -> Tensor:
        return ops.log(self.scale) + 0.5 * (1 + LOG_2PI) - math.log(2)


class HalfCauchy(_Half):
    """The distribution of |x| for x of the Cauchy distribution around 0.

    Parameters
    ----------
    scale : Tensor or number
        The scale of x, the median of |x|.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import HalfCauchy
    >>> HalfCauchy(1.0).cdf(1.0)
    tensor(0.5000)
    """

    @property
    def mean(self) -> Tensor:
        return zeros_like(self.scale) + math.inf

    @property
    def variance(self) -> Tensor:
        return zeros_like(self.scale) + math.inf

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.scale * ops.abs(draws.noise("standard_cauchy", shape, self.scale))

    def log_prob(self, value: Operand) -> Tensor:
        value = self._value(value)
        density = -ops.log1p(ops.square(value / self.scale)) - ops.log(self.scale)
        return self._within(value, density + math.log(2 / math.pi))

    def cdf(self, value: Operand) -> Tensor:
        return ops.atan(self._value(value) / self.scale) * (2 / math.pi)

    def icdf(self, value: Operand) -> Tensor:
        return self.scale * ops.tan(tensor_of(value) * (math.pi / 2))

    def entropy(self) -> Tensor:
        return ops.log(self.scale) + math.log(2 * math.pi)
