"""Distributions on the real line with a location and a scale, and on the circle."""

from __future__ import annotations

import math

from chainrule import ops
from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.creation import full_like
from chainrule.distributions import constraints, draws
from chainrule.distributions.distribution import (
    LOG_2PI,
    Distribution,
    Draws,
    ExponentialFamily,
)
from chainrule.primitives import special as rules

__all__ = ["Cauchy", "Gumbel", "Laplace", "Normal", "StudentT", "Uniform", "VonMises"]

EULER = 0.57721566490153286  # γ


class LocationScale(Distribution):
    """Numbers loc + scale * z, where z is drawn from a distribution without parameters."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor
    _noise: str

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        self._init(validate_args, loc=loc, scale=scale)

    def _standardised(self, value: Operand) -> Tensor:
        return (self._value(value) - self.loc) / self.scale

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return ops.square(self.stddev)

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + self.scale * draws.noise(self._noise, shape, self.loc)


class Normal(LocationScale, ExponentialFamily):
    """The normal distribution.

    Parameters
    ----------
    loc, scale : Tensor or number
        Mean and standard deviation.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> import chainrule as cr
    >>> scale = cr.tensor(2.0, requires_grad=True)
    >>> cr.distributions.Normal(0.0, scale).log_prob(1.0).backward()
    >>> scale.grad
    tensor(-0.3750)
    """

    _mean_carrier_measure = 0

    @property
    def stddev(self) -> Tensor:
        return self.scale

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + self.scale * draws.standard_normal(shape, self.loc)

    def log_prob(self, value: Operand) -> Tensor:
        return -0.5 * ops.square(self._standardised(value)) - ops.log(self.scale) - 0.5 * LOG_2PI

    def cdf(self, value: Operand) -> Tensor:
        return 0.5 * (1 + ops.erf(self._standardised(value) * math.sqrt(0.5)))

    def icdf(self, value: Operand) -> Tensor:
        return self.loc + self.scale * math.sqrt(2) * ops.erfinv(2 * tensor_of(value) - 1)

    def entropy(self) -> Tensor:
        return ops.log(self.scale) + 0.5 * (1 + LOG_2PI)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        variance = ops.square(self.scale)
        return self.loc / variance, -0.5 / variance

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return -0.25 * ops.square(x) / y + 0.5 * ops.log(-math.pi / y)


class Laplace(LocationScale):
    """The Laplace distribution, of density exp(-|x - loc| / scale) / (2 scale).

    Parameters
    ----------
    loc, scale : Tensor or number
        Mean, and the mean distance from it.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import Laplace
    >>> Laplace(0.0, 1.0).log_prob(2.0)
    tensor(-2.6931)
    """

    _noise = "laplace"

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    def log_prob(self, value: Operand) -> Tensor:
        return -ops.abs(self._standardised(value)) - ops.log(2 * self.scale)

    def cdf(self, value: Operand) -> Tensor:
        z = self._standardised(value)
        return 0.5 - 0.5 * ops.sign(z) * ops.expm1(-ops.abs(z))

    def icdf(self, value: Operand) -> Tensor:
        term = tensor_of(value) - 0.5
        return self.loc - self.scale * ops.sign(term) * ops.log1p(-2 * ops.abs(term))

    def entropy(self) -> Tensor:
        return 1 + ops.log(2 * self.scale)


class Cauchy(LocationScale):
    """The Cauchy distribution, which has no mean.

    Parameters
    ----------
    loc, scale : Tensor or number
        Median, and the half width at half maximum.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import Cauchy
    >>> Cauchy(0.0, 1.0).cdf(1.0)
    tensor(0.7500)
    """

    _noise = "standard_cauchy"

    @property
    def mean(self) -> Tensor:
        return full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return full_like(self.loc, math.inf)

    @property
    def stddev(self) -> Tensor:
        return self.variance

    def log_prob(self, value: Operand) -> Tensor:
        square = ops.square(self._standardised(value))
        return -math.log(math.pi) - ops.log(self.scale) - ops.log1p(square)

    def cdf(self, value: Operand) -> Tensor:
        return ops.atan(self._standardised(value)) / math.pi + 0.5

    def icdf(self, value: Operand) -> Tensor:
        return self.loc + self.scale * ops.tan(math.pi * (tensor_of(value) - 0.5))

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + ops.log(self.scale)


class Gumbel(LocationScale):
    """The Gumbel distribution, that of the largest of many numbers.

    Parameters
    ----------
    loc, scale : Tensor or number
        Mode and scale.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import Gumbel
    >>> Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    _noise = "gumbel"

    @property
    def mean(self) -> Tensor:
        return self.loc + EULER * self.scale

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    def log_prob(self, value: Operand) -> Tensor:
        z = self._standardised(value)
        return -z - ops.exp(-z) - ops.log(self.scale)

    def cdf(self, value: Operand) -> Tensor:
        return ops.exp(-ops.exp(-self._standardised(value)))

    def icdf(self, value: Operand) -> Tensor:
        return self.loc - self.scale * ops.log(-ops.log(tensor_of(value)))

    def entropy(self) -> Tensor:
        return ops.log(self.scale) + (1 + EULER)


class StudentT(LocationScale):
    """Student's t distribution.

    Parameters
    ----------
    df : Tensor or number
        Degrees of freedom.
    loc, scale : Tensor or number
        Median, and scale.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import StudentT
    >>> StudentT(5.0).variance
    tensor(1.6667)
    """

    arg_constraints = {"df": constraints.positive, **LocationScale.arg_constraints}
    df: Tensor

    def __init__(
        self,
        df: Operand,
        loc: Operand = 0.0,
        scale: Operand = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self._init(validate_args, df=df, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        return ops.where(self.df > 1, self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        is_finite = self.df > 2
        df = ops.where(is_finite, self.df, 3.0)
        found = ops.where(is_finite, ops.square(self.scale) * df / (df - 2), math.inf)
        return ops.where(self.df > 1, found, math.nan)

    @property
    def stddev(self) -> Tensor:
        return ops.sqrt(self.variance)

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        """Return loc + scale z / √(v / df) for a normal z and v of the χ² distribution."""
        shape = self._extended_shape(sample_shape)
        half = ops.broadcast_to(0.5 * self.df, shape)
        ratio = ops.log(half) - draws.log_standard_gamma(half)
        return self.loc + self.scale * draws.standard_normal(shape, half) * ops.exp(0.5 * ratio)

    def _log_scale(self) -> Tensor:
        """Return the logarithm of scale √df B(df/2, 1/2), the inverse of the density at `loc`."""
        half = 0.5 * self.df
        log_beta = ops.lgamma(half) + 0.5 * math.log(math.pi) - ops.lgamma(half + 0.5)
        return ops.log(self.scale) + 0.5 * ops.log(self.df) + log_beta

    def log_prob(self, value: Operand) -> Tensor:
        square = ops.square(self._standardised(value))
        return -0.5 * (self.df + 1) * ops.log1p(square / self.df) - self._log_scale()

    def entropy(self) -> Tensor:
        half = 0.5 * (self.df + 1)
        return self._log_scale() + half * (ops.digamma(half) - ops.digamma(0.5 * self.df))


class Uniform(Distribution):
    """The uniform distribution from `low`, included, to `high`.

    Parameters
    ----------
    low, high : Tensor or number
        The bounds.
    validate_args : bool, optional
        As for `Distribution`; without, the density of values outside is 0.

    Raises
    ------
    ArgumentError
        If `low` is not below `high`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.Uniform(0.0, 4.0).log_prob(1.0).exp()
    tensor(0.2500)
    """

    arg_constraints = {"low": constraints.dependent, "high": constraints.dependent}
    has_rsample = True
    low: Tensor
    high: Tensor

    def __init__(self, low: Operand, high: Operand, validate_args: bool | None = None) -> None:
        self._init(validate_args, low=low, high=high)
        if self._validate_args:
            below = constraints.greater_than(self.low.detach())
            self._demand(below, self.high, "parameter high", "satisfy the constraint")

    @constraints.dependent_property()
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        return full_like(self.low, math.nan)

    @property
    def variance(self) -> Tensor:
        return ops.square(self.high - self.low) / 12

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.low + (self.high - self.low) * draws.uniform(shape, self.low)

    def log_prob(self, value: Operand) -> Tensor:
        value = self._value(value)
        is_inside = (self.low <= value) & (value < self.high)
        return ops.where(is_inside, -ops.log(self.high - self.low), -math.inf)

    def cdf(self, value: Operand) -> Tensor:
        return ops.clamp((self._value(value) - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value: Operand) -> Tensor:
        return self.low + (self.high - self.low) * value

    def entropy(self) -> Tensor:
        return ops.log(self.high - self.low)


class VonMises(Distribution):
    """The von Mises distribution of angles, of density proportional to exp(κ cos(x - loc)).

    Parameters
    ----------
    loc : Tensor or number
        Mean, in radians.
    concentration : Tensor or number
        κ, about one over the variance.
    validate_args : bool, optional
        As for `Distribution`.

    Notes
    -----
    Draws are differentiable, by implicit derivatives [1]_. The variance is the circular one,
    1 - I₁(κ) / I₀(κ).

    References
    ----------
    .. [1] M. Figurnov, S. Mohamed, A. Mnih, Implicit reparameterization gradients, NeurIPS 2018.

    Examples
    --------
    >>> from chainrule.distributions import VonMises
    >>> VonMises(0.0, 1.0).log_prob(0.0)
    tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = True
    loc: Tensor
    concentration: Tensor

    def __init__(
        self, loc: Operand, concentration: Operand, validate_args: bool | None = None
    ) -> None:
        self._init(validate_args, loc=loc, concentration=concentration)

    def _bessel(self, order: int) -> Tensor:
        """Return the modified Bessel function of κ, times exp(-κ)."""
        scaled: Tensor = rules.bessel_ie.apply(self.concentration, order=order)
        return scaled

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 1 - self._bessel(1) / self._bessel(0)

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        angle: Tensor = self.loc + draws.von_mises_angle(
            ops.broadcast_to(self.concentration, shape)
        )
        turns = ops.floor((angle.detach() + math.pi) / (2 * math.pi))
        return angle - 2 * math.pi * turns

    def log_prob(self, value: Operand) -> Tensor:
        fall: Tensor = self.concentration * (ops.cos(self._value(value) - self.loc) - 1)
        norm: Tensor = LOG_2PI + ops.log(self._bessel(0))
        return fall - norm
