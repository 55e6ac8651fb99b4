"""The base class of interpolants of `scipy.interpolate`, and checks of data and points."""

from __future__ import annotations

import abc
import contextvars
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.backend import holds_somewhere
from chainrule.backend.extensions import SCIPY
from chainrule.errors import ArgumentError, MissingRuleError
from chainrule.interop.operands import are_known, is_tracked, may_hold
from chainrule.scipy.dispatch import Table, call_ours, has_tensors, refused
from chainrule.scipy.operands import inexact

TABLE = Table("scipy.interpolate", SCIPY)
"""The functions and classes of tensors of `scipy.interpolate`."""

ENDS = {"clamped": 1, "natural": 2}
"""Names of conditions at an end: the order of the derivative that is 0 there."""


def coordinates_and_values(
    name: str, coordinates: list[Any], values: list[Any]
) -> tuple[list[Tensor], list[Tensor]]:
    """Return operands as tensors of one precision, of which coordinates are real."""
    count = len(coordinates)
    found = inexact(name, *coordinates, *values)
    if found[0].is_complex():
        return inexact(name, *coordinates, real=True), found[count:]
    return found[:count], found[count:]


def require(name: str, holds: Tensor, text: str) -> None:
    """Raise if a condition is known not to hold for all elements."""
    if holds_somewhere(ops.logical_not(holds)._array):
        raise ArgumentError(f"{name}: {text}")


def require_order(name: str, x: Any, text: str, is_strict: bool = True) -> None:
    """Raise if an array isn't in ascending order, also where a compiled function is traced."""
    if not has_tensors(x) and np.ndim(x) == 1:
        steps = np.diff(np.asarray(x))
        if not (steps > 0 if is_strict else steps >= 0).all():
            raise ArgumentError(f"{name}: {text}")


def column(x: Tensor, like: Tensor) -> Tensor:
    """Return an array with as many axes after its own as `like` has after its first."""
    return ops.reshape(x, (*x.shape, *[1] * (like.ndim - 1)))


def wrapped(q: Tensor, start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """Return points of the period from `start` to `end`, and the periods that they are away."""
    turns = ops.floor((q - start) / (end - start)).detach()
    known = ops.isfinite(turns)
    if may_hold(ops.logical_not(known)):  # 0 · NaN would reach the gradients of the ends
        q, turns = ops.where(known, q, math.nan), ops.where(known, turns, 0)
    return q - turns * (end - start), turns


def within(q: Tensor, start: Tensor, end: Tensor, extrapolate: bool) -> Tensor:
    """Return whether there is a value at points: not at NaN, and outside if it is extrapolated."""
    if extrapolate:
        return ops.logical_not(ops.isnan(q))
    return ops.logical_and(ops.greater_equal(q, start), ops.less_equal(q, end))


def only_where(inside: Tensor, values: Tensor) -> Tensor:
    """Return values at points, and NaN elsewhere."""
    outside = ops.logical_not(inside)
    if not may_hold(outside):
        return values
    return ops.masked_fill(
        values, ops.reshape(outside, (*inside.shape, *[1] * (values.ndim - inside.ndim))), math.nan
    )


class Interpolant(abc.ABC):
    """A function that was made of data: SciPy's where all is known, recorded where it isn't."""

    @abc.abstractmethod
    def data(self) -> tuple[Any, ...]:
        """Return what the values depend on."""

    @abc.abstractmethod
    def of_scipy(self) -> Any:
        """Return SciPy's object of the same data, without derivatives."""

    def _has_tensors(self, *values: Any) -> bool:
        """Whether these values or the data are tensors, so that a call is recorded."""
        return has_tensors(*self.data(), *values)

    def _of_data(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what depends on the data alone, and is kept: in no trace, if they are arrays."""
        if self._has_tensors():
            return call_ours(function, arguments, {})
        return contextvars.Context().run(call_ours, function, arguments, {})

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of SciPy's object."""
        if name.startswith("_"):
            raise AttributeError(name)
        full = f"scipy.interpolate.{type(self).__name__}.{name}"
        if is_tracked(self.data()) or not are_known(list(self.data())):
            if not hasattr(getattr(TABLE.scipys, type(self).__name__), name):
                raise AttributeError(f"{full} doesn't exist")
            raise MissingRuleError(
                f"{full} has no derivative rule in chainrule: where no gradient is needed, make "
                "the interpolant of x.detach()"
            )
        found = getattr(self.of_scipy(), name)
        return refused(full, found, "it is SciPy's own here") if callable(found) else found


def polynomial(parts: Tensor, degree: int, distance: Tensor, nu: int = 0) -> Tensor:
    """Return the derivative of order `nu`, given the coefficients that it needs, highest first."""
    distance = ops.reshape(distance, (*distance.shape, *[1] * (parts.ndim - 1 - distance.ndim)))
    found = math.perm(degree, nu) * parts[0]
    for power in range(degree - 1, nu - 1, -1):
        found = found * distance + math.perm(power, nu) * parts[degree - power]
    return found


def integral(
    antiderivative: Any, start: Tensor, end: Tensor, a: Any, b: Any, periodic: bool
) -> Any:
    """Return the integral from `a` to `b`, by an antiderivative from `start` to `end`."""
    found = []
    for bound in (a, b):
        if periodic:
            at, turns = wrapped(bound, start, end)
            found.append(antiderivative(at) + turns * (antiderivative(end) - antiderivative(start)))
        else:
            found.append(antiderivative(bound))
    return found[1] - found[0]
