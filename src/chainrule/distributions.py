"""Probability distributions under the names of `torch.distributions`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, floating, tensor_of
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.backend import holds_somewhere
from chainrule.errors import ArgumentError
from chainrule.missing_names import missing
from chainrule.nn import functional as F
from chainrule.random import bernoulli, multinomial, rand, randn

__all__ = ["Distribution", "Bernoulli", "Categorical", "Normal", "Uniform", "kl_divergence"]


class Distribution:
    """The base class: shapes, and what follows from the others' methods.

    Parameters
    ----------
    batch_shape : tuple
        The shape of independent distributions, that of the broadcast parameters.
    validate_args : bool, default True
        Raise if parameters are invalid, or a value has no density.

    Raises
    ------
    ArgumentError
        As said there.
    """

    has_rsample: ClassVar[bool] = False
    event_shape: tuple[int, ...] = ()

    def __init__(self, batch_shape: tuple[int, ...], validate_args: bool | None) -> None:
        self.batch_shape = batch_shape
        self._validates = validate_args is None or validate_args

    def _check(self, is_valid: Tensor, what: str) -> None:
        """Raise if a condition is known not to hold everywhere."""
        if self._validates and holds_somewhere(~is_valid.detach()._array):
            raise ArgumentError(f"{type(self).__name__}: {what}")

    def _extended(self, sample_shape: Sequence[int]) -> tuple[int, ...]:
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        raise NotImplementedError

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return ops.sqrt(self.variance)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws of the shape ``(*sample_shape, *batch_shape)``, outside the graph."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws that are differentiable functions of the parameters."""
        raise NotImplementedError(
            f"{type(self).__name__}.rsample: draws are no differentiable function of the "
            "parameters: say sample(), and differentiate log_prob()"
        )

    def log_prob(self, value: Operand) -> Tensor:
        """Return the logarithm of the density, or probability, of values."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Return the entropy, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return ops.exp(self.entropy())


class _Discrete(Distribution):
    """A distribution with probabilities or logits: each is computed from the other when asked for.

    PyTorch's clamp of probabilities applies: their logarithms are finite.
    """

    def __init__(
        self,
        probs: Operand | None,
        logits: Operand | None,
        event_dims: int,
        validate_args: bool | None,
    ) -> None:
        if (probs is None) == (logits is None):
            raise ArgumentError(
                f"{type(self).__name__}: expected probs or logits, and not both, got "
                f"{'neither' if probs is None else 'both'}"
            )
        self._probs = None if probs is None else floating(probs)
        self._logits = None if logits is None else floating(logits)
        given = self._given()
        super().__init__(given.shape[: given.ndim - event_dims], validate_args)

    def _given(self) -> Tensor:
        given = self._logits if self._probs is None else self._probs
        assert given is not None
        return given

    def _clamped(self) -> Tensor:
        """Return the probabilities, as far from 0 and 1 as their dtype tells apart."""
        eps = float(np.finfo(self.probs.dtype).eps)
        return ops.clamp(self.probs, eps, 1 - eps)

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        raise NotImplementedError

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return self._given().shape


class Categorical(_Discrete):
    """The numbers from 0 to n - 1 with given probabilities, along the last dimension.

    Parameters
    ----------
    probs : Tensor, shape (…, n)
        Weights, which are normalised to probabilities.
    logits : Tensor, shape (…, n)
        Their logarithms, up to a constant, instead.
    validate_args : bool, default True
        As for `Distribution`.

    Raises
    ------
    ArgumentError
        If both or neither are given, weights are negative or sum to 0, or a value is no category.

    Examples
    --------
    >>> import chainrule as cr
    >>> policy = cr.distributions.Categorical(cr.tensor([1.0, 3.0]))
    >>> policy.probs
    tensor([0.2500, 0.7500])
    >>> policy.log_prob(cr.tensor(1)).exp()
    tensor(0.7500)
    """

    def __init__(
        self,
        probs: Operand | None = None,
        logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits, 1, validate_args)
        if self._probs is not None:
            total = ops.sum(self._probs, -1, keepdim=True)
            self._check((self._probs >= 0) & (total > 0), "weights are ≥ 0, and their sum > 0")
            self._probs = self._probs / total
        elif self._logits is not None:
            self._logits = self._logits - ops.logsumexp(self._logits, -1, keepdim=True)

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        if self._probs is None:
            self._probs = ops.softmax(self._given(), -1)
        return self._probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        if self._logits is None:
            self._logits = ops.log(self._clamped())
        return self._logits

    @property
    def mode(self) -> Tensor:
        """The most probable number."""
        return ops.argmax(self.probs, -1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws of the shape ``(*sample_shape, *batch_shape)``, of int64."""
        with no_grad():
            rows = self.probs.reshape(-1, self.probs.shape[-1])
            drawn = multinomial(rows, math.prod(sample_shape), replacement=True)
            return drawn.t().reshape(self._extended(sample_shape))

    def log_prob(self, value: Operand) -> Tensor:
        """Return the logarithms of the probabilities of numbers."""
        value = tensor_of(value)
        number = self.logits.shape[-1]
        self._check((value >= 0) & (value < number), f"values are from 0 to {number - 1}")
        places, logits = ops.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return ops.gather(logits, -1, places[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        """Return the entropy, in nats: impossible numbers contribute 0."""
        least = float(np.finfo(self.logits.dtype).min)
        return -ops.sum(ops.clamp(self.logits, min=least) * self.probs, -1)


class Bernoulli(_Discrete):
    """1 with a given probability, otherwise 0.

    Parameters
    ----------
    probs : Tensor or number
        The probabilities of 1.
    logits : Tensor or number
        The logarithms of their odds, log(p / (1 - p)), instead.
    validate_args : bool, default True
        As for `Distribution`.

    Raises
    ------
    ArgumentError
        If both or neither are given, a probability is not from 0 to 1, or a value is not 0 or 1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.Bernoulli(0.5).entropy()
    tensor(0.6931)
    """

    def __init__(
        self,
        probs: Operand | None = None,
        logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits, 0, validate_args)
        if self._probs is not None:
            self._check((self._probs >= 0) & (self._probs <= 1), "probabilities are from 0 to 1")

    @property
    def probs(self) -> Tensor:
        """The probabilities of 1."""
        if self._probs is None:
            self._probs = ops.sigmoid(self._given())
        return self._probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the odds."""
        if self._logits is None:
            p = self._clamped()
            self._logits = ops.log(p) - ops.log1p(-p)
        return self._logits

    @property
    def mean(self) -> Tensor:
        """The expected value: the probability of 1."""
        return self.probs

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return zeros and ones of the shape ``(*sample_shape, *batch_shape)``."""
        with no_grad():
            return bernoulli(ops.broadcast_to(self.probs, self._extended(sample_shape)))

    def log_prob(self, value: Operand) -> Tensor:
        """Return the logarithms of the probabilities of zeros and ones."""
        value = floating(value)
        self._check((value == 0) | (value == 1), "values are 0 or 1")
        logits, value = ops.broadcast_tensors(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        """Return the entropy, in nats."""
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")


class Normal(Distribution):
    """The normal distribution.

    Parameters
    ----------
    loc, scale : Tensor or number
        Mean and standard deviation.
    validate_args : bool, default True
        As for `Distribution`.

    Raises
    ------
    ArgumentError
        If a standard deviation is not positive.

    Examples
    --------
    >>> import chainrule as cr
    >>> scale = cr.tensor(2.0, requires_grad=True)
    >>> cr.distributions.Normal(0.0, scale).log_prob(1.0).backward()
    >>> scale.grad
    tensor(-0.3750)
    """

    has_rsample = True

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        self.loc, self.scale = ops.broadcast_tensors(floating(loc), floating(scale))
        super().__init__(self.loc.shape, validate_args)
        self._check(self.scale > 0, "scale is positive")

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        return self.loc

    mode = mean

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return ops.square(self.scale)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return ``loc + scale * z`` for standard normal ``z``."""
        return self.loc + self.scale * randn(
            self._extended(sample_shape), dtype=self.loc.dtype, device=self.loc.device
        )

    def log_prob(self, value: Operand) -> Tensor:
        """Return the logarithm of the density."""
        z = (floating(value) - self.loc) / self.scale
        return -0.5 * ops.square(z) - ops.log(self.scale) - 0.5 * math.log(2 * math.pi)

    def entropy(self) -> Tensor:
        """Return the entropy, in nats."""
        return ops.log(self.scale) + 0.5 * (1 + math.log(2 * math.pi))

    def cdf(self, value: Operand) -> Tensor:
        """Return the probability of a smaller value."""
        return 0.5 * (1 + ops.erf((floating(value) - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value: Operand) -> Tensor:
        """Return the inverse of `cdf`."""
        return self.loc + self.scale * math.sqrt(2) * ops.erfinv(2 * floating(value) - 1)


class Uniform(Distribution):
    """The uniform distribution from `low`, included, to `high`.

    Parameters
    ----------
    low, high : Tensor or number
        The bounds.
    validate_args : bool, default True
        As for `Distribution`; without, the density of values outside is 0.

    Raises
    ------
    ArgumentError
        If `low` is not below `high`, or a value not between them.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.Uniform(0.0, 4.0).log_prob(1.0).exp()
    tensor(0.2500)
    """

    has_rsample = True

    def __init__(self, low: Operand, high: Operand, validate_args: bool | None = None) -> None:
        self.low, self.high = ops.broadcast_tensors(floating(low), floating(high))
        super().__init__(self.low.shape, validate_args)
        self._check(self.low < self.high, "low is below high")

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return ops.square(self.high - self.low) / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return ``low + (high - low) * u`` for ``u`` from 0 to 1."""
        return self.low + (self.high - self.low) * rand(
            self._extended(sample_shape), dtype=self.low.dtype, device=self.low.device
        )

    def log_prob(self, value: Operand) -> Tensor:
        """Return the logarithm of the density."""
        value = floating(value)
        is_inside = (self.low <= value) & (value <= self.high)
        self._check(is_inside, "values are from low to high")
        is_inside = is_inside & (value < self.high)
        return ops.where(is_inside, -ops.log(self.high - self.low), -math.inf)

    def entropy(self) -> Tensor:
        """Return the entropy, in nats."""
        return ops.log(self.high - self.low)


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the Kullback-Leibler divergence of two distributions of one family, in nats.

    Parameters
    ----------
    p, q : Categorical, Bernoulli or Normal
        The expectation is over `p`.

    Returns
    -------
    Tensor
        Of the broadcast batch shapes.

    Raises
    ------
    NotImplementedError
        For other pairs of families.

    Examples
    --------
    >>> from chainrule.distributions import Normal
    >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.5000)
    """
    if isinstance(p, Normal) and isinstance(q, Normal):
        ratio = p.scale / q.scale
        distance = (p.loc - q.loc) / q.scale
        return 0.5 * (ops.square(ratio) + ops.square(distance) - 1) - ops.log(ratio)
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        terms = p.probs * (p.logits - q.logits)
        terms = ops.where(q.probs == 0, math.inf, terms)
        return ops.sum(ops.where(p.probs == 0, 0.0, terms), -1)
    if isinstance(p, Bernoulli) and isinstance(q, Bernoulli):
        cross_entropy = F.binary_cross_entropy_with_logits(
            *ops.broadcast_tensors(q.logits, p.probs), reduction="none"
        )
        return cross_entropy - p.entropy()
    raise NotImplementedError(
        f"kl_divergence: expected two distributions of one family, Categorical, Bernoulli or "
        f"Normal, got {type(p).__name__} and {type(q).__name__}"
    )


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
