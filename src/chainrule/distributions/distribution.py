"""The base classes of distributions, and the conversion of their parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, floating, tensor_of
from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.autograd.tensor import Tensor, default_dtype
from chainrule.backend import holds_somewhere
from chainrule.creation import tensor, zeros
from chainrule.distributions import constraints
from chainrule.distributions.transform import sum_rightmost
from chainrule.errors import ArgumentError, MissingRuleError, ShapeError
from chainrule.random import randn

__all__ = ["Distribution", "ExponentialFamily"]

_sum_rightmost = sum_rightmost  # under PyTorch's name in `distributions.utils`

T = TypeVar("T")
Shape = Sequence[int]
Draws = Sequence[int] | int
"""The shape of draws, or their number."""


def drawn_shape(sample_shape: Draws) -> tuple[int, ...]:
    """Return the shape of the draws as a tuple; an int is their number."""
    return (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)


class lazy_property(Generic[T]):
    """An attribute that is computed when first asked for, with its graph, and then kept."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> lazy_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.compute(instance)
        instance.__dict__[self.compute.__name__] = value
        return value


def broadcast_all(*values: Operand) -> tuple[Tensor, ...]:
    """Return floating tensors of one shape; numbers take the dtype of the tensors."""
    tensors = [floating(value) for value in values if not isinstance(value, (int, float))]
    dtype = np.result_type(*[t.dtype for t in tensors]) if tensors else default_dtype()
    device = tensors[0].device if tensors else None
    given = iter(tensors)
    converted = [
        tensor(value, dtype=dtype, device=device)
        if isinstance(value, (int, float))
        else next(given)
        for value in values
    ]
    return tuple(ops.broadcast_tensors(*converted))


def clamp_probs(probs: Tensor) -> Tensor:
    """Return probabilities, as far from 0 and 1 as their dtype tells apart."""
    eps = float(ops.finfo(probs.dtype).eps)
    return ops.clamp(probs, eps, 1 - eps)


def logits_to_probs(logits: Operand, is_binary: bool = False) -> Tensor:
    """Return the probabilities of logits: of events, or of categories along the last dimension."""
    x = tensor_of(logits)
    return ops.sigmoid(x) if is_binary else ops.softmax(x, -1)


def probs_to_logits(probs: Operand, is_binary: bool = False) -> Tensor:
    """Return the logits of probabilities, which are kept from 0 and 1 by their precision."""
    x = clamp_probs(tensor_of(probs))
    return ops.subtract(ops.log(x), ops.log1p(ops.negative(x))) if is_binary else ops.log(x)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements of a lower triangle, row by row, as a vector."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ArgumentError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = np.tril_indices(n, diag)
    found: Tensor = mat[..., rows, columns]
    return found


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return the matrix of which `tril_matrix_to_vec` returns the elements, zero elsewhere."""
    length = vec.shape[-1]
    n = (math.sqrt((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1)) - 1) / 2 - diag
    if abs(n - round(n)) > 1e-8:
        raise ArgumentError(
            f"The size of last dimension is {length} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    rows, columns = np.tril_indices(round(n), diag)
    made = zeros(*vec.shape[:-1], round(n), round(n), dtype=vec.dtype, device=vec.device)
    made[..., rows, columns] = vec
    return made


def _standard_normal(shape: Draws, dtype: Any, device: Any) -> Tensor:
    """Return normal draws: for distributions that others derive from these."""
    return randn(drawn_shape(shape), dtype=dtype, device=device)


class Distribution:
    """The base class: shapes, validation, and what follows from the others' methods.

    Parameters
    ----------
    batch_shape : tuple of int
        The shape of independent distributions, that of the broadcast parameters.
    event_shape : tuple of int
        The shape of one draw: () for numbers.
    validate_args : bool, optional
        Raise if a parameter is outside of `arg_constraints`, or a value outside of `support`. The
        default is True (False in Python's mode -O); see `set_default_validate_args`.

    Raises
    ------
    ArgumentError
        As said there. In a compiled function values are not known, and not checked.

    Notes
    -----
    A subclass names its parameters in `arg_constraints`; those are attributes, tensors whose last
    dimensions are those of the constraint. `expand` and `repr` follow from that.

    Examples
    --------
    >>> from chainrule.distributions import Normal
    >>> m = Normal(0.0, 1.0).expand((2, 3))
    >>> m.batch_shape, m.sample((5,)).shape
    ((2, 3), (5, 2, 3))
    """

    has_rsample: bool = False
    has_enumerate_support: bool = False
    _validate_args: bool = __debug__

    def __init__(
        self,
        batch_shape: Shape = (),
        event_shape: Shape = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = tuple(batch_shape), tuple(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _init(
        self, validate_args: bool | None, event_shape: Shape = (), **parameters: Operand
    ) -> None:
        """Initialise a distribution whose parameters have the shape of the batch."""
        named = dict(zip(parameters, broadcast_all(*parameters.values()), strict=True))
        self.__dict__.update(named)
        Distribution.__init__(self, self._like.shape, event_shape, validate_args)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions validate their arguments if `validate_args` is left out."""
        if value not in (True, False):
            raise ArgumentError(f"set_default_validate_args: expected a bool, got {value!r}")
        Distribution._validate_args = value

    # --- what a subclass defines ------------------------------------------------------------------

    @property
    def arg_constraints(self) -> Mapping[str, constraints.Constraint]:
        """The constraint of each parameter."""
        raise self._lacks("arg_constraints")

    @property
    def support(self) -> constraints.Constraint:
        """The set of possible values."""
        raise self._lacks("support")

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        raise self._has_no("mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise self._has_no("mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise self._has_no("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return ops.sqrt(self.variance)

    def sample(self, sample_shape: Draws = ()) -> Tensor:
        """Return draws of the shape ``sample_shape + batch_shape + event_shape``, constants.

        An int is the number of draws.
        """
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        """Return draws that are differentiable functions of the parameters."""
        raise MissingRuleError(
            f"{type(self).__name__}.rsample: draws are no differentiable function of the "
            "parameters: say sample(), and differentiate log_prob()"
        )

    def sample_n(self, n: int) -> Tensor:
        """Return `n` draws: ``sample((n,))``."""
        return self.sample((n,))

    def log_prob(self, value: Operand) -> Tensor:
        """Return the logarithm of the density, or of the probability, of values."""
        raise self._has_no("log_prob")

    def cdf(self, value: Operand) -> Tensor:
        """Return the probability of at most these values."""
        raise self._has_no("cdf")

    def icdf(self, value: Operand) -> Tensor:
        """Return the inverse of `cdf`: quantiles."""
        raise self._has_no("icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all possible values along a new first dimension, for the whole batch."""
        raise self._has_no("enumerate_support")

    def entropy(self) -> Tensor:
        """Return the entropy, in nats."""
        raise self._has_no("entropy")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return ops.exp(self.entropy())

    def _lacks(self, name: str) -> MissingRuleError:
        return MissingRuleError(f"{type(self).__name__} has no {name}: its class defines it")

    def _has_no(self, name: str) -> MissingRuleError:
        return MissingRuleError(
            f"{type(self).__name__} has no {name}: no closed form is known. Average over sample()"
        )

    # --- shapes -----------------------------------------------------------------------------------

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of independent distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one draw."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Draws = ()) -> tuple[int, ...]:
        return (*drawn_shape(sample_shape), *self.batch_shape, *self.event_shape)

    def _parameters(self) -> dict[str, Tensor]:
        """Return the parameters that were given, or computed by now."""
        known = vars(self)
        return {name: known[name] for name in self.arg_constraints if name in known}

    @property
    def _like(self) -> Tensor:
        """A parameter, for the dtype and the device."""
        return next(iter(self._parameters().values()))

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        """Return the distribution with another, broadcast batch shape."""
        new: Self = self._get_checked_instance(type(self), _instance)
        new.__dict__.update(vars(self), _batch_shape=tuple(batch_shape))
        for name, value in self._parameters().items():
            event = value.shape[value.ndim - self.arg_constraints[name].event_dim :]
            new.__dict__[name] = ops.broadcast_to(value, (*batch_shape, *event))
        return new

    def _get_checked_instance(self, cls: Any, _instance: Any = None) -> Any:
        """Return the object for `expand` to fill; PyTorch's subclasses call it."""
        own: Any = type(self)
        if _instance is None and own.__init__ is not cls.__init__:
            raise MissingRuleError(
                f"{type(self).__name__} has an __init__ of its own, so it needs an expand, too"
            )
        return object.__new__(own) if _instance is None else _instance

    # --- validation -------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        for name, value in self._parameters().items():
            constraint = self.arg_constraints[name]
            if not constraints.is_dependent(constraint):
                self._demand(constraint, value, f"parameter {name}", "satisfy the constraint")

    def _demand(
        self, constraint: constraints.Constraint, value: Tensor, what: str, verb: str
    ) -> None:
        """Raise if values are known not to satisfy a constraint."""
        with no_grad():
            is_valid = constraint.check(value.detach())
        if holds_somewhere(~is_valid._array):
            raise ArgumentError(
                f"Expected {what} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                f"distribution {self!r} to {verb} {constraint!r}, but found invalid values:\n"
                f"{value.detach()!r}"
            )

    def _value(self, value: Operand) -> Tensor:
        """Return a value to be scored as a tensor, validated."""
        if isinstance(value, (int, float)):
            found = tensor(value, dtype=self._like.dtype, device=self._like.device)
        else:
            found = tensor_of(value)
        if self._validate_args:
            self._validate_sample(found)
        return found

    def _validate_sample(self, value: Tensor) -> None:
        """Raise if the shape of a value, or the value, is impossible."""
        start = value.ndim - len(self.event_shape)
        if start < 0 or value.shape[start:] != self.event_shape:
            raise ShapeError(
                f"The right-most size of value must match event_shape: {list(value.shape)} vs "
                f"{list(self.event_shape)}, of {self!r}"
            )
        expected = self._extended_shape()
        for i, j in zip(reversed(value.shape), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ShapeError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{list(value.shape)} vs {list(expected)}, of {self!r}"
                )
        self._demand(self.support, value, "value argument", "be within the support")

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}: {value.detach() if value.numel() == 1 else value.shape}"
            for name, value in self._parameters().items()
        )
        return f"{type(self).__name__}({shown})"


class ExponentialFamily(Distribution):
    """Distributions of densities exp(η · t(x) - A(η) + k(x)), of natural parameters η.

    A subclass that defines `_natural_params`, a tuple of tensors, `_log_normalizer(*η)`, which is
    A, and `_mean_carrier_measure`, which is E k(x), has an entropy and a divergence without
    formulas of their own: both are Bregman divergences of A [1]_.

    References
    ----------
    .. [1] F. Nielsen, R. Nock, Entropies and cross-entropies of exponential families, ICIP 2010.

    Examples
    --------
    >>> from chainrule.distributions import ExponentialFamily, Gamma
    >>> isinstance(Gamma(1.0, 1.0), ExponentialFamily)
    True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise self._has_no("natural parameters")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise self._has_no("log-normaliser")

    @property
    def _mean_carrier_measure(self) -> float:
        raise self._has_no("mean carrier measure")

    def _expected_statistics(self) -> tuple[tuple[Tensor, ...], Tensor, tuple[Tensor, ...]]:
        """Return η, A(η) and its gradient, which is E t(x)."""
        with enable_grad():
            natural = tuple(
                p if p.requires_grad else p.detach().requires_grad_() for p in self._natural_params
            )
            normaliser = self._log_normalizer(*natural)
            slopes = autograd_grad(ops.sum(normaliser), natural, create_graph=True)
        return natural, normaliser, slopes

    def _event_sum(self, product: Tensor) -> Tensor:
        """Sum over the dimensions of a natural parameter beyond the batch."""
        extra = product.ndim - len(self.batch_shape)
        return ops.sum(product, tuple(range(-extra, 0))) if extra else product

    def entropy(self) -> Tensor:
        natural, normaliser, slopes = self._expected_statistics()
        result = normaliser - self._mean_carrier_measure
        for parameter, slope in zip(natural, slopes, strict=True):
            result = result - self._event_sum(parameter * slope)
        return result


LOG_2PI = math.log(2 * math.pi)
