"""Transforms that map unconstrained numbers to values of a constraint.

`biject_to(constraint)` is a bijection, as for Hamiltonian Monte Carlo; `transform_to(constraint)`
may have more arguments than values, as for optimisers.

>>> import chainrule as cr
>>> from chainrule.distributions import biject_to, constraints
>>> biject_to(constraints.positive)(cr.tensor(0.0))
tensor(1.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.distributions import constraints, transforms
from chainrule.distributions.constraints import Constraint
from chainrule.distributions.transforms import Transform
from chainrule.errors import ArgumentTypeError, MissingRuleError

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """A table of transforms by constraint, called with a constraint.

    Examples
    --------
    >>> from chainrule.distributions import constraints, transform_to
    >>> transform_to(constraints.interval(-1.0, 1.0))(0.0)
    tensor(0.)
    """

    def __init__(self) -> None:
        self._factories: dict[type[Constraint], Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Register the function that makes a transform from a constraint; also a decorator.

        Parameters
        ----------
        constraint : Constraint, or a class of them
            An object stands for its class.
        factory : function
            It takes the constraint, and returns the transform.

        Raises
        ------
        TypeError
            If `constraint` is something else.
        """
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise ArgumentTypeError(
                f"register: expected a constraint or a class of them, got {constraint}"
            )
        self._factories[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """Return the transform from unconstrained numbers to a constraint."""
        factory = self._factories.get(type(constraint))
        if factory is None:
            raise MissingRuleError(
                f"Cannot transform {type(constraint).__name__} constraints: register() a transform"
            )
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Factory], Factory]:
    def register(factory: Factory) -> Factory:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_both(constraints.real)
def _identity(constraint: Any) -> Transform:
    return transforms.identity_transform


@_both(constraints.positive, constraints.nonnegative)
def _above(constraint: Any) -> Transform:
    bound, exp = constraint.lower_bound, transforms.ExpTransform()
    if isinstance(bound, (int, float)) and bound == 0:
        return exp
    return transforms.ComposeTransform([exp, transforms.AffineTransform(bound, 1)])


@_both(constraints.less_than)
def _below(constraint: Any) -> Transform:
    affine = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), affine])


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if all(isinstance(bound, (int, float)) for bound in (low, high)) and (low, high) == (0, 1):
        return sigmoid
    return transforms.ComposeTransform([sigmoid, transforms.AffineTransform(low, high - low)])


@_both(constraints.corr_cholesky)
def _correlations(constraint: Any) -> Transform:
    return transforms.CorrCholeskyTransform()


@_both(constraints.lower_cholesky)
def _triangular(constraint: Any) -> Transform:
    return transforms.LowerCholeskyTransform()


@_both(constraints.positive_definite, constraints.positive_semidefinite)
def _positive_definite(constraint: Any) -> Transform:
    return transforms.PositiveDefiniteTransform()


biject_to.register(constraints.simplex, lambda _: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _: transforms.SoftmaxTransform())


def _of_parts(registry: ConstraintRegistry) -> None:
    """Register what is made of the transforms of the parts."""

    def independent(constraint: Any) -> Transform:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    def cat(constraint: Any) -> Transform:
        parts = [registry(part) for part in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    def stack(constraint: Any) -> Transform:
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)

    registry.register(constraints.independent, independent)
    registry.register(constraints.cat, cat)
    registry.register(constraints.stack, stack)


_of_parts(biject_to)
_of_parts(transform_to)
