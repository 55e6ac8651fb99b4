"""Distributions over categories: their numbers, as one-hot vectors, and counts of them."""

from __future__ import annotations

import math

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, floating
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.backend import holds_somewhere
from chainrule.creation import eye, full, ones, zeros
from chainrule.distributions import constraints
from chainrule.distributions.counts import Binomial, ProbsOrLogits, enumerated
from chainrule.distributions.distribution import Distribution, Draws, drawn_shape
from chainrule.errors import ArgumentError, ShapeError
from chainrule.nn import functional as F
from chainrule.random import multinomial

__all__ = ["Categorical", "Multinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough"]


class Categories(ProbsOrLogits):
    """A distribution over categories, of given weights along the last dimension."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    is_binary = False

    def _set_weights(self, probs: Operand | None, logits: Operand | None) -> None:
        """Normalise the weights, or the logarithms of them."""
        ((name, given),) = self._chosen(probs, logits).items()
        weights = floating(given)
        if weights.ndim < 1:
            raise ShapeError(f"`{name}` parameter must be at least one-dimensional.")
        if name == "probs":
            total = ops.sum(weights, -1, keepdim=True)
            if holds_somewhere((total.detach() == 0)._array):
                raise ArgumentError(
                    f"Expected parameter probs of {type(self).__name__} to satisfy the constraint "
                    f"Simplex(): all weights of a row are 0, in\n{weights.detach()!r}"
                )
            weights = weights / total
        else:
            weights = weights - ops.logsumexp(weights, -1, keepdim=True)
        self.__dict__[name] = weights

    @property
    def _num_events(self) -> int:
        return self.param_shape[-1]

    def _drawn(self, sample_shape: Draws) -> Tensor:
        """Return numbers of categories."""
        with no_grad():
            rows, shape = self.probs.reshape(-1, self._num_events), drawn_shape(sample_shape)
            drawn = multinomial(rows, math.prod(shape), replacement=True)
            return drawn.t().reshape(*shape, *self.batch_shape)

    def _chosen_logits(self, numbers: Tensor) -> Tensor:
        places, logits = ops.broadcast_tensors(numbers.unsqueeze(-1), self.logits)
        return ops.gather(logits, -1, places[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        """Return the entropy, in nats: impossible numbers contribute 0."""
        least = float(ops.finfo(self.logits.dtype).min)
        return -ops.sum(ops.clamp(self.logits, min=least) * self.probs, -1)


class Categorical(Categories):
    """The numbers from 0 to n - 1 with given probabilities, along the last dimension.

    Parameters
    ----------
    probs : Tensor, shape (…, n)
        Weights, which are normalised to probabilities.
    logits : Tensor, shape (…, n)
        Their logarithms, up to a constant, instead.
    validate_args : bool, optional
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

    has_enumerate_support = True

    def __init__(
        self,
        probs: Operand | None = None,
        logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_weights(probs, logits)
        Distribution.__init__(self, self._param.shape[:-1], (), validate_args)

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return full(self.batch_shape, math.nan, dtype=self._like.dtype, device=self._like.device)

    variance = mean

    @property
    def mode(self) -> Tensor:
        return ops.argmax(self._param, -1)

    def sample(self, sample_shape: Draws = ()) -> Tensor:
        return self._drawn(sample_shape)

    def log_prob(self, value: Operand) -> Tensor:
        return self._chosen_logits(self._value(value).long())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return enumerated(self, self._num_events, expand, np.int64)


class OneHotCategorical(Categories):
    """One-hot vectors of categories with given probabilities.

    Parameters
    ----------
    probs, logits, validate_args
        As for `Categorical`.

    Raises
    ------
    ArgumentError
        As for `Categorical`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.OneHotCategorical(cr.tensor([0.0, 1.0])).sample()
    tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: Operand | None = None,
        logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_weights(probs, logits)
        shape = self._param.shape
        Distribution.__init__(self, shape[:-1], shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    @property
    def mode(self) -> Tensor:
        return self._vectors(ops.argmax(self._param, -1))

    def _vectors(self, numbers: Tensor) -> Tensor:
        return F.one_hot(numbers, self._num_events).to(self._like.dtype)

    def sample(self, sample_shape: Draws = ()) -> Tensor:
        return self._vectors(self._drawn(sample_shape))

    def log_prob(self, value: Operand) -> Tensor:
        return self._chosen_logits(ops.argmax(self._value(value), -1))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        number = self._num_events
        values = eye(number, dtype=self._like.dtype, device=self._like.device)
        values = values.reshape(number, *(1,) * len(self.batch_shape), number)
        return ops.broadcast_to(values, (number, *self.batch_shape, number)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors with the derivative of the probabilities, which is biased [1]_.

    Parameters
    ----------
    probs, logits, validate_args
        As for `Categorical`.

    Raises
    ------
    ArgumentError
        As for `Categorical`.

    References
    ----------
    .. [1] Y. Bengio, N. Léonard, A. Courville, arXiv:1308.3432, 2013.

    Examples
    --------
    >>> import chainrule as cr
    >>> p = cr.tensor([0.5, 0.5], requires_grad=True)
    >>> m = cr.distributions.OneHotCategoricalStraightThrough(p)
    >>> (m.rsample() * cr.tensor([0.0, 1.0])).sum().backward()
    >>> p.grad
    tensor([-0.5000,  0.5000])
    """

    has_rsample = True

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(Categories):
    """How often each category occurs in draws.

    Parameters
    ----------
    total_count : int
        Number of draws.
    probs, logits, validate_args
        As for `Categorical`.

    Raises
    ------
    ArgumentError
        As for `Categorical`; if `total_count` is not an int.

    Examples
    --------
    >>> import chainrule as cr
    >>> m = cr.distributions.Multinomial(2, cr.tensor([0.5, 0.5]))
    >>> m.log_prob(cr.tensor([1.0, 1.0])).exp()
    tensor(0.5000)
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: Operand | None = None,
        logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise ArgumentError(
                f"Multinomial: inhomogeneous total_count is not supported: expected an int, got "
                f"{total_count!r}"
            )
        self.total_count = total_count
        self._set_weights(probs, logits)
        shape = self._param.shape
        Distribution.__init__(self, shape[:-1], shape[-1:], validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Draws = ()) -> Tensor:
        with no_grad():
            drawn = self._drawn((self.total_count, *drawn_shape(sample_shape)))
            drawn, shape = ops.movedim(drawn, 0, -1), self._extended_shape(sample_shape)
            kind = {"dtype": self._like.dtype, "device": self._like.device}
            return zeros(shape, **kind).scatter_add(-1, drawn, ones(drawn.shape, **kind))

    def log_prob(self, value: Operand) -> Tensor:
        value = self._value(value)
        logits = ops.where((value == 0) & (self.logits == -math.inf), 0.0, self.logits)
        choices = ops.lgamma(ops.sum(value, -1) + 1) - ops.sum(ops.lgamma(value + 1), -1)
        return choices + ops.sum(logits * value, -1)

    def entropy(self) -> Tensor:
        n, each = self.total_count, Binomial(self.total_count, self.probs, validate_args=False)
        counts = each.enumerate_support(False)
        choices = ops.sum(ops.exp(each.log_prob(counts)) * ops.lgamma(counts + 1), (0, -1))
        return n * super().entropy() - math.lgamma(n + 1) + choices
