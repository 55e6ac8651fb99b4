"""Distributions made of others: transformed, independent, mixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

from chainrule import ops
from chainrule.arguments import Operand
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.categorical import Categorical
from chainrule.distributions.distribution import Distribution, Draws, Shape
from chainrule.distributions.transform import ComposeTransform, Transform, sum_rightmost
from chainrule.errors import ArgumentError, MissingRuleError, ShapeError

__all__ = ["Independent", "MixtureSameFamily", "TransformedDistribution"]

D = TypeVar("D", bound=Distribution)


class Independent(Distribution, Generic[D]):
    """A distribution whose last batch dimensions are dimensions of one draw.

    Parameters
    ----------
    base_distribution : Distribution
        Of numbers, usually.
    reinterpreted_batch_ndims : int
        Over so many dimensions `log_prob` is summed.
    validate_args : bool, optional
        As for `Distribution`.

    Raises
    ------
    ShapeError
        If the batch has fewer dimensions.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.distributions import Independent, Normal
    >>> m = Independent(Normal(cr.zeros(2, 3), 1.0), 1)
    >>> m.batch_shape, m.event_shape, m.log_prob(cr.zeros(2, 3)).shape
    ((2,), (3,), (2,))
    """

    arg_constraints: Mapping[str, constraints.Constraint] = {}

    def __init__(
        self,
        base_distribution: D,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        number = reinterpreted_batch_ndims
        shape = base_distribution._extended_shape()
        cut = len(base_distribution.batch_shape) - number
        if cut < 0:
            raise ShapeError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), got "
                f"{number} and {len(base_distribution.batch_shape)}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, number
        self.has_rsample = base_distribution.has_rsample
        self.has_enumerate_support = not number and base_distribution.has_enumerate_support
        super().__init__(shape[:cut], shape[cut:], validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        new: Self = super().expand(batch_shape, _instance)
        inner = self.event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand((*batch_shape, *inner))
        return new

    @constraints.dependent_property()
    def support(self) -> constraints.Constraint:
        found, number = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(found, number) if number else found

    @property
    def _like(self) -> Tensor:
        return self.base_dist._like

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Draws = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Operand) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise MissingRuleError(
                "Enumeration over cartesian product is not implemented: enumerate base_dist, and "
                "combine its values by cr.cartesian_prod()"
            )
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of f(x) for x of another distribution and an invertible f.

    Parameters
    ----------
    base_distribution : Distribution
        That of x.
    transforms : Transform, or list of them
        They are applied in order.
    validate_args : bool, optional
        As for `Distribution`.

    Raises
    ------
    ShapeError
        If the draws of the base have fewer dimensions than the transforms need.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.distributions import Normal, TanhTransform, TransformedDistribution
    >>> squashed = TransformedDistribution(Normal(0.0, 1.0), TanhTransform(cache_size=1))
    >>> squashed.log_prob(0.5)
    tensor(-0.7821)
    """

    arg_constraints: Mapping[str, constraints.Constraint] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        given: Any = [transforms] if isinstance(transforms, Transform) else transforms
        parts = list(given) if isinstance(given, Sequence) else [given]
        if not all(isinstance(part, Transform) for part in parts):
            raise ArgumentError(
                f"transforms must be a Transform or a list of Transforms, but was {transforms}"
            )
        whole, base, shape = (
            ComposeTransform(parts),
            base_distribution,
            base_distribution._extended_shape(),
        )
        needed, own = whole.domain.event_dim, len(base.event_shape)
        if len(shape) < needed:
            raise ShapeError(
                f"base_distribution needs to have shape with size at least {needed}, but got "
                f"{list(shape)}"
            )
        result = whole.forward_shape(shape)
        start = whole.inverse_shape(result)
        if start != shape:  # parameters of the transforms are of a larger batch
            base = base.expand(start[: len(start) - own])
        if needed > own:
            base = Independent(base, needed - own)
        self.base_dist, self.transforms = base, parts
        self.has_rsample = base.has_rsample
        change = whole.codomain.event_dim - needed
        event_dim = max(whole.codomain.event_dim, len(base.event_shape) + change)
        cut = len(result) - event_dim
        super().__init__(result[:cut], result[cut:], validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        new: Self = super().expand(batch_shape, _instance)
        shape = ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self.event_shape))
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return new

    @constraints.dependent_property()
    def support(self) -> constraints.Constraint:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        extra = len(self.event_shape) - found.event_dim
        return constraints.independent(found, extra) if extra > 0 else found

    @property
    def _like(self) -> Tensor:
        return self.base_dist._like

    def sample(self, sample_shape: Draws = ()) -> Tensor:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Operand) -> Tensor:
        y, event_dim = self._value(value), len(self.event_shape)
        jacobian: Tensor | float = 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(x, y)
            jacobian = jacobian + sum_rightmost(term, event_dim - transform.domain.event_dim)
            y = x
        density = self.base_dist.log_prob(y)
        return sum_rightmost(density, event_dim - len(self.base_dist.event_shape)) - jacobian

    def _sign(self) -> Any:
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return sign

    def cdf(self, value: Operand) -> Tensor:
        y = self._value(value)
        for transform in reversed(self.transforms):
            y = transform.inv(y)
        found: Tensor = self._reflected(self.base_dist.cdf(y))
        return found

    def icdf(self, value: Operand) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._reflected(value)))

    def _reflected(self, probability: Any) -> Any:
        """Return a probability, or 1 minus it where the transforms decrease."""
        sign = self._sign()
        if isinstance(sign, int):
            return probability if sign == 1 else 1 - probability
        return sign * (probability - 0.5) + 0.5


class MixtureSameFamily(Distribution):
    """A mixture of distributions of one family.

    Parameters
    ----------
    mixture_distribution : Categorical
        The probabilities of the components.
    component_distribution : Distribution
        The components, as the last dimension of its batch.
    validate_args : bool, optional
        As for `Distribution`.

    Raises
    ------
    ArgumentError, ShapeError
        If they don't fit each other.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.distributions import Categorical, MixtureSameFamily, Normal
    >>> m = MixtureSameFamily(Categorical(cr.ones(2)), Normal(cr.tensor([-1.0, 1.0]), 1.0))
    >>> m.mean, m.variance
    (tensor(0.), tensor(2.))
    """

    arg_constraints: Mapping[str, constraints.Constraint] = {}

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentError("the mixture distribution must be a Categorical")
        weights, components = mixture_distribution, component_distribution
        if not components.batch_shape or weights.batch_shape not in (
            (),
            components.batch_shape[:-1],
        ):
            raise ShapeError(
                f"mixture_distribution.batch_shape {list(weights.batch_shape)} is not compatible "
                f"with component_distribution.batch_shape {list(components.batch_shape)}"
            )
        if weights.logits.shape[-1] != components.batch_shape[-1]:
            raise ShapeError(
                f"mixture_distribution has {weights.logits.shape[-1]} components, "
                f"component_distribution {components.batch_shape[-1]}"
            )
        self._mixture_distribution, self._component_distribution = weights, components
        super().__init__(components.batch_shape[:-1], components.event_shape, validate_args)

    @property
    def mixture_distribution(self) -> Categorical:
        """The probabilities of the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        new: Self = super().expand(batch_shape, _instance)
        number = self.component_distribution.batch_shape[-1]
        new._component_distribution = self.component_distribution.expand((*batch_shape, number))
        new._mixture_distribution = self.mixture_distribution.expand(batch_shape)
        return new

    @constraints.dependent_property()
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    @property
    def _like(self) -> Tensor:
        return self.component_distribution._like

    def _averaged(self, values: Tensor) -> Tensor:
        """Average what the components have over them."""
        probs = self.mixture_distribution.probs
        number = len(self.event_shape)
        weights = probs.reshape(*probs.shape, *(1,) * number)
        return ops.sum(weights * values, -1 - number)

    @property
    def mean(self) -> Tensor:
        return self._averaged(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        component = self.component_distribution
        between = ops.square(component.mean - self.mean.unsqueeze(-1 - len(self.event_shape)))
        return self._averaged(component.variance) + self._averaged(between)

    def _of_all(self, value: Operand) -> Tensor:
        return self._value(value).unsqueeze(-1 - len(self.event_shape))

    def log_prob(self, value: Operand) -> Tensor:
        densities = self.component_distribution.log_prob(self._of_all(value))
        weights = ops.log_softmax(self.mixture_distribution.logits, -1)
        return ops.logsumexp(densities + weights, -1)

    def cdf(self, value: Operand) -> Tensor:
        found = self.component_distribution.cdf(self._of_all(value))
        return ops.sum(found * self.mixture_distribution.probs, -1)

    def sample(self, sample_shape: Draws = ()) -> Tensor:
        with no_grad():
            weights = self.mixture_distribution.expand(self.batch_shape)
            chosen = weights.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            number = len(self.event_shape)
            index = chosen.reshape(*chosen.shape, *(1,) * (number + 1))
            index = ops.broadcast_to(index, (*chosen.shape, 1, *self.event_shape))
            return ops.gather(drawn, -1 - number, index).squeeze(-1 - number)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )
