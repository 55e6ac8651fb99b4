"""Distributions of whole numbers: successes, trials, events."""

from __future__ import annotations

from typing import Any

from chainrule import ops
from chainrule.arguments import Operand
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.creation import arange, zeros_like
from chainrule.distributions import constraints, draws
from chainrule.distributions.distribution import (
    Distribution,
    Draws,
    ExponentialFamily,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)
from chainrule.errors import ArgumentError, MissingRuleError
from chainrule.nn import functional as F
from chainrule.random import bernoulli, binomial, poisson

__all__ = ["Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson"]


class ProbsOrLogits(Distribution):
    """A distribution with probabilities or logits: each is computed from the other when asked for.

    As in PyTorch, the logarithms of probabilities of 0 and 1 are those of the nearest numbers.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    is_binary = True

    def _init_either(
        self,
        probs: Operand | None,
        logits: Operand | None,
        validate_args: bool | None,
        **others: Operand,
    ) -> None:
        self._init(validate_args, (), **others, **self._chosen(probs, logits))

    def _chosen(self, probs: Operand | None, logits: Operand | None) -> dict[str, Operand]:
        """Return the one that was given, by its name."""
        if probs is not None and logits is None:
            return {"probs": probs}
        if logits is not None and probs is None:
            return {"logits": logits}
        raise ArgumentError(
            f"{type(self).__name__}: Either `probs` or `logits` must be specified, but not both. "
            f"Got {'neither' if probs is None else 'both'}"
        )

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, self.is_binary)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the odds, log(p / (1 - p)); of categories, of the probabilities."""
        return probs_to_logits(self.probs, self.is_binary)

    @property
    def _param(self) -> Tensor:
        return self.probs if "probs" in vars(self) else self.logits

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the probabilities."""
        return self._param.shape


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """1 with a given probability, otherwise 0.

    Parameters
    ----------
    probs : Tensor or number
        The probabilities of 1.
    logits : Tensor or number
        The logarithms of their odds, log(p / (1 - p)), instead.
    validate_args : bool, optional
        As for `Distribution`.

    Raises
    ------
    ArgumentError
        If both or neither are given.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.Bernoulli(0.5).entropy()
    tensor(0.6931)
    """

    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Operand | None = None,
        logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._init_either(probs, logits, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        found = (self.probs >= 0.5).to(self.probs.dtype)
        return ops.where(self.probs == 0.5, float("nan"), found)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Draws = ()) -> Tensor:
        with no_grad():
            return bernoulli(ops.broadcast_to(self.probs, self._extended_shape(sample_shape)))

    def log_prob(self, value: Operand) -> Tensor:
        logits, value = ops.broadcast_tensors(self.logits, self._value(value).to(self.logits.dtype))
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return enumerated(self, 2, expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return F.softplus(natural_params[0])


def enumerated(dist: Distribution, number: int, expand: bool, dtype: Any = None) -> Tensor:
    """Return the numbers from 0 on along a new first dimension, for a batch."""
    like = dist._like
    values = arange(number, dtype=dtype or like.dtype, device=like.device)
    values = values.reshape(-1, *(1,) * len(dist.batch_shape))
    return ops.broadcast_to(values, (number, *dist.batch_shape)) if expand else values


class Geometric(ProbsOrLogits):
    """The number of failures before the first success.

    Parameters
    ----------
    probs : Tensor or number
        The probability of success, positive.
    logits : Tensor or number
        The logarithms of their odds, instead.
    validate_args : bool, optional
        As for `Distribution`.

    Raises
    ------
    ArgumentError
        If both or neither are given.

    Examples
    --------
    >>> from chainrule.distributions import Geometric
    >>> Geometric(0.25).mean
    tensor(3.)
    """

    support = constraints.nonnegative_integer

    def __init__(
        self,
        probs: Operand | None = None,
        logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._init_either(probs, logits, validate_args)
        if self._validate_args and probs is not None:
            what = "parameter probs"
            self._demand(constraints.positive, self.probs, what, "satisfy the constraint")

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Draws = ()) -> Tensor:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            drawn = draws.noise("standard_exponential", shape, self.probs)
            return ops.floor(-drawn / ops.log1p(-self.probs))

    def log_prob(self, value: Operand) -> Tensor:
        value = self._value(value)
        is_certain = (self.probs == 1) & (value == 0)
        failure = ops.where(is_certain, 0.0, ops.log1p(-ops.where(is_certain, 0.0, self.probs)))
        return value * failure + ops.log(self.probs)

    def entropy(self) -> Tensor:
        cross = F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return cross / self.probs


class Binomial(ProbsOrLogits):
    """The number of successes in trials of equal probability.

    Parameters
    ----------
    total_count : Tensor or int
        The number of trials.
    probs : Tensor or number
        The probability of success.
    logits : Tensor or number
        The logarithms of their odds, instead.
    validate_args : bool, optional
        As for `Distribution`.

    Raises
    ------
    ArgumentError
        If both or neither are given.

    Examples
    --------
    >>> from chainrule.distributions import Binomial
    >>> Binomial(2, 0.5).log_prob(1.0).exp()
    tensor(0.5000)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        **ProbsOrLogits.arg_constraints,
    }
    has_enumerate_support = True
    total_count: Tensor

    def __init__(
        self,
        total_count: Operand = 1,
        probs: Operand | None = None,
        logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._init_either(probs, logits, validate_args, total_count=total_count)

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ops.minimum(ops.floor((self.total_count + 1) * self.probs), self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Draws = ()) -> Tensor:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            counts, probs = (ops.broadcast_to(x, shape) for x in (self.total_count, self.probs))
            return binomial(counts, probs)

    def log_prob(self, value: Operand) -> Tensor:
        value, n, logits = self._value(value), self.total_count, self.logits
        choices = ops.lgamma(n + 1) - ops.lgamma(value + 1) - ops.lgamma(n - value + 1)
        return choices + value * logits - n * F.softplus(logits)

    def entropy(self) -> Tensor:
        densities = self.log_prob(self.enumerate_support(False))
        return -ops.sum(ops.exp(densities) * densities, 0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        number = int(self.total_count.max().item())
        if bool((self.total_count != number).any()):
            raise MissingRuleError(
                "Inhomogeneous total count not supported by `enumerate_support`: say it for each"
            )
        return enumerated(self, number + 1, expand)


class NegativeBinomial(ProbsOrLogits):
    """The number of successes before a given number of failures.

    Parameters
    ----------
    total_count : Tensor or number
        The number of failures, also between whole numbers.
    probs : Tensor or number
        The probability of success, less than 1.
    logits : Tensor or number
        The logarithms of their odds, instead.
    validate_args : bool, optional
        As for `Distribution`.

    Raises
    ------
    ArgumentError
        If both or neither are given.

    Examples
    --------
    >>> from chainrule.distributions import NegativeBinomial
    >>> NegativeBinomial(3, 0.5).mean
    tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    total_count: Tensor

    def __init__(
        self,
        total_count: Operand,
        probs: Operand | None = None,
        logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._init_either(probs, logits, validate_args, total_count=total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * ops.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ops.clamp(ops.floor((self.total_count - 1) * ops.exp(self.logits)), min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / ops.sigmoid(-self.logits)

    def sample(self, sample_shape: Draws = ()) -> Tensor:
        """Return Poisson draws whose means are drawn from gamma distributions."""
        with no_grad():
            shape = self._extended_shape(sample_shape)
            counts = ops.broadcast_to(self.total_count, shape)
            log_rate = draws.log_standard_gamma(ops.where(counts > 0, counts, 1.0)) + self.logits
            return poisson(ops.where(counts > 0, ops.exp(log_rate), 0.0))

    def log_prob(self, value: Operand) -> Tensor:
        value, n = self._value(value), self.total_count
        chances = -n * F.softplus(self.logits) - value * F.softplus(-self.logits)
        is_certain = n + value == 0  # no trials: lgamma(0) is infinite
        n = ops.where(is_certain, 1.0, n)
        return chances + ops.lgamma(n + value) - ops.lgamma(1 + value) - ops.lgamma(n)


class Poisson(ExponentialFamily):
    """The number of events that happen at a rate.

    Parameters
    ----------
    rate : Tensor or number
        The mean.
    validate_args : bool, optional
        As for `Distribution`.

    Examples
    --------
    >>> from chainrule.distributions import Poisson
    >>> Poisson(2.0).log_prob(0.0)
    tensor(-2.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    rate: Tensor

    def __init__(self, rate: Operand, validate_args: bool | None = None) -> None:
        self._init(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return ops.floor(self.rate)

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Draws = ()) -> Tensor:
        with no_grad():
            return poisson(ops.broadcast_to(self.rate, self._extended_shape(sample_shape)))

    def log_prob(self, value: Operand) -> Tensor:
        value = self._value(value)
        return ops.xlogy(value, self.rate) - self.rate - ops.lgamma(value + 1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (ops.log(self.rate),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return ops.exp(natural_params[0])
