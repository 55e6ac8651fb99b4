"""Constraints: the sets of values that parameters and draws are from.

>>> import chainrule as cr
>>> from chainrule.distributions import constraints
>>> constraints.positive.check(cr.tensor([1.0, -1.0]))
tensor([ True, False])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule import linalg, ops
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known, whole
from chainrule.errors import ArgumentError, MissingRuleError

__all__ = [
    "Constraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "MixtureSameFamilyConstraint",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A set of values. A subclass defines `check`.

    Attributes
    ----------
    is_discrete : bool
        Whether its elements are isolated.
    event_dim : int
        Number of dimensions of one value: 0 for numbers, 1 for vectors, 2 for matrices.

    Examples
    --------
    >>> from chainrule.distributions import constraints
    >>> constraints.interval(0.0, 1.0), constraints.simplex.event_dim
    (Interval(lower_bound=0.0, upper_bound=1.0), 1)
    """

    is_discrete: bool = False
    event_dim: int = 0

    def check(self, value: Tensor) -> Tensor:
        """Return whether each value is in the set: bool, without the dimensions of one value."""
        raise MissingRuleError(f"{type(self).__name__} has no check: define check(self, value)")

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__.removeprefix('_')}({settings})"


# --- sets that depend on parameters ---------------------------------------------------------------


class _OfParameters(Constraint):
    """A set that depends on other parameters, so that the class alone can't check values."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def check(self, value: Tensor) -> Tensor:
        raise ArgumentError(
            "a dependent constraint can't be checked: ask an instance of the distribution for it"
        )


class _Dependent(_OfParameters):
    """One that other settings can be given to."""

    def __call__(self, *, is_discrete: bool = False, event_dim: int = 0) -> _Dependent:
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)


class _DependentProperty(property, _OfParameters):
    """A property that returns a constraint; of a class, it is a dependent constraint."""

    def __init__(
        self,
        function: Callable[[Any], Any] | None = None,
        *,
        is_discrete: bool = False,
        event_dim: int = 0,
    ) -> None:
        property.__init__(self, function)
        _OfParameters.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    # As in PyTorch, one with settings is a decorator: it takes a function in their place.
    def __call__(self, function: Callable[[Any], Any]) -> _DependentProperty:
        return _DependentProperty(function, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Constraint) -> bool:
    """Return whether a constraint depends on parameters.

    Examples
    --------
    >>> from chainrule.distributions import Uniform, constraints
    >>> constraints.is_dependent(Uniform.support), constraints.is_dependent(constraints.real)
    (True, False)
    """
    return isinstance(constraint, _OfParameters)


# --- numbers --------------------------------------------------------------------------------------


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # not nan


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Bounded(Constraint):
    """Numbers between bounds, which may be tensors; None is no bound."""

    lower_bound: Tensor | float
    upper_bound: Tensor | float

    def __init__(self, lower_bound: Any = None, upper_bound: Any = None) -> None:
        if lower_bound is not None:
            self.lower_bound = lower_bound
        if upper_bound is not None:
            self.upper_bound = upper_bound


class _GreaterThan(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound)

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class _GreaterThanEq(_GreaterThan):
    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _LessThan(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound=upper_bound)

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound, upper_bound)

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value % 1 == 0)


class _IntegerGreaterThan(_GreaterThanEq):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value % 1 == 0)


# --- vectors and matrices -------------------------------------------------------------------------


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ops.all((value == 0) | (value == 1), -1) & (ops.sum(value, -1) == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ops.all(value >= 0, -1) & (ops.abs(ops.sum(value, -1) - 1) < 1e-6)


class _Multinomial(_Bounded):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound=upper_bound)

    def check(self, value: Tensor) -> Tensor:
        return ops.all(value >= 0, -1) & (ops.sum(value, -1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return ops.all(ops.tril(value) == value, (-2, -1))


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & ops.all(ops.diagonal(value, 0, -2, -1) > 0, -1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Tensor) -> Tensor:
        tolerance = 10 * value.shape[-1] * ops.finfo(value.dtype).eps
        off = ops.abs(ops.sqrt(ops.sum(ops.square(value), -1)) - 1)
        return super().check(value) & ops.all(off <= tolerance, -1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] == value.shape[-1]:
            return ops.all(value == value, (-2, -1)) | True
        return ops.all(value == value, (-2, -1)) & False


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return ops.all(ops.isclose(value, value.mT, atol=1e-6), (-2, -1))

    @staticmethod
    def _holds(is_symmetric: Tensor) -> bool:
        """Return whether a decomposition may be tried: it needs values, and symmetric ones."""
        array = is_symmetric._array
        return array is whole(array) and is_known(array) and bool(array.all())


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value)
        if not self._holds(is_symmetric):
            return is_symmetric
        return is_symmetric & ops.all(linalg.eigvalsh(value) >= 0, -1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value)
        if not self._holds(is_symmetric):
            return is_symmetric
        return is_symmetric & (linalg.cholesky_ex(value)[1] == 0)


# --- sets made of others --------------------------------------------------------------------------


class _Independent(Constraint):
    """Several values of a set: the rightmost `reinterpreted_batch_ndims` dimensions are one."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        number = self.reinterpreted_batch_ndims
        if result.ndim < number:
            raise ArgumentError(
                f"expected a value of {self.event_dim} dimensions or more, got {value.ndim}"
            )
        return ops.all(result, tuple(range(-number, 0))) if number else result

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The values that all components of a mixture have in common.

    Parameters
    ----------
    base_constraint : Constraint
        That of the components, which are the last dimension of the batch.

    Examples
    --------
    >>> from chainrule.distributions import constraints
    >>> constraints.MixtureSameFamilyConstraint(constraints.real)
    MixtureSameFamilyConstraint(Real())
    """

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        return ops.all(self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)), -1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint})"


class _Joined(Constraint):
    """A constraint for each part of a value along one dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(part.is_discrete for part in self.cseq)
        self.event_dim = max(part.event_dim for part in self.cseq)


class _Cat(_Joined):
    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = list(lengths or [1] * len(self.cseq))

    def check(self, value: Tensor) -> Tensor:
        parts = ops.split(value, self.lengths, self.dim)
        return ops.cat([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Joined):
    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        super().__init__(cseq, dim)
        self.event_dim += self.dim + self.event_dim < 0

    def check(self, value: Tensor) -> Tensor:
        parts = ops.unbind(value, self.dim)
        return ops.stack([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _Independent
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
