"""Piecewise polynomials over tensors: `scipy.interpolate.PPoly`.

Coefficients are tensors of shape (order, intervals, ...). Which interval a point is in has no
derivative; the value there has those of a polynomial in the distance from the interval's start.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from chainrule import ops
from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import ArgumentError, MissingRuleError, ShapeError
from chainrule.implicit.examples import with_numbers
from chainrule.implicit.implicit_node import solution
from chainrule.implicit.inverse import DiagonalInverse
from chainrule.interop.calculus import interval_of
from chainrule.interop.manipulation import pad
from chainrule.interop.operands import arrays_of, may_hold
from chainrule.scipy.dispatch import call_ours, has_tensors
from chainrule.scipy.interpolate.bsplines import BSpline, powers
from chainrule.scipy.interpolate.interpolant import (
    TABLE,
    Interpolant,
    column,
    coordinates_and_values,
    integral,
    only_where,
    polynomial,
    require,
    within,
    wrapped,
)
from chainrule.scipy.operands import inexact

# --- coefficients and values ----------------------------------------------------------------------


def _ascending(x: Tensor) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """Return a function that puts points in ascending order, and the first and the last one."""
    descends = x[-1] < x[0]
    if not may_hold(descends):
        return lambda points: points, x
    sign = ops.where(descends, -1, 1).astype(x.dtype)
    ends = ops.stack([x[0], x[-1]])
    return lambda points: sign * points, ops.stack([ops.amin(ends), ops.amax(ends)])


def _value(c: Any, x: Any, q: Any, nu: int = 0, extrapolate: Any = True, axis: int = 0) -> Tensor:
    """Return the derivative of order `nu` at points."""
    (x, q), (c,) = coordinates_and_values("PPoly", [x, q], [c])
    if extrapolate == "periodic":
        q, _ = wrapped(q, x[0], x[-1])
    ascending, points = _ascending(x)
    inside = within(q, points[0], points[-1], bool(extrapolate))
    if may_hold(ops.logical_not(inside)):
        q = ops.where(inside, q, x[0])
    interval = interval_of(ascending(q), ascending(x))
    parts = c[: max(c.shape[0] - nu, 1), interval]
    found = polynomial(parts, c.shape[0] - 1, q - x[interval], nu)
    found = only_where(inside, found)
    return ops.movedim(found, tuple(range(q.ndim)), tuple(range(axis, axis + q.ndim)))


def _derivative(c: Any, nu: int) -> Tensor:
    (c,) = inexact("PPoly", c)
    powers = c.shape[0] - nu
    if powers < 1:
        zero: Tensor = 0 * c[:1]
        return zero
    factors = [math.perm(power + nu, nu) for power in range(powers - 1, -1, -1)]
    return ops.stack([factor * part for factor, part in zip(factors, c, strict=False)])


def _antiderivative(c: Any, x: Any) -> Tensor:
    """Return the coefficients of the antiderivative that is 0 at the first breakpoint."""
    (x,), (c,) = coordinates_and_values("PPoly", [x], [c])
    widths = column(ops.diff(x), c[0])
    parts = [c[i] / (c.shape[0] - i) for i in range(c.shape[0])]
    total = parts[0]
    for part in parts[1:]:
        total = total * widths + part
    starts = ops.cumsum((total * widths)[:-1], dim=0)
    return ops.stack([*parts, pad(starts, {0: (1, 0)})])


def _integral(c: Any, x: Any, a: Any, b: Any, extrapolate: Any) -> Any:
    (x, a, b), (c,) = coordinates_and_values("PPoly.integrate", [x, a, b], [c])
    whole, is_periodic = _antiderivative(c, x), extrapolate == "periodic"
    whole_at = functools.partial(_value, whole, x, extrapolate=bool(extrapolate))
    return integral(whole_at, x[0], x[-1], a, b, is_periodic)


# --- roots ----------------------------------------------------------------------------------------


def _roots(c: Any, x: Any, y: Any, discontinuity: bool, extrapolate: bool) -> Tensor:
    """Return where the polynomials of one column have the value `y`, in ascending order."""
    (x, y, c), _ = coordinates_and_values("PPoly.solve", [x, y, c], [0.0])
    numbers = functools.partial(_located, (c, x, y), discontinuity, extrapolate)
    q, interval, starts, is_whole = with_numbers("scipy.interpolate.PPoly.solve", numbers)
    if not q.shape[0]:
        none: Tensor = x[:0]
        return none

    def equation(q: Tensor) -> Tensor:
        distance = q - x[interval]
        value = polynomial(c[:, interval], c.shape[0] - 1, distance) - y
        return ops.where(make(starts, None), distance, value)

    found = solution(equation, q, DiagonalInverse, title="PPoly.solve")
    result: Tensor = ops.masked_fill(found, make(is_whole, None), math.nan)
    return result


def _located(operands: Any, discontinuity: bool, extrapolate: bool) -> list[Any]:
    """Return SciPy's roots, their intervals, and whether they are the intervals' starts.

    They are where a polynomial jumps over the value, and where it is equal to it in the whole
    interval; then nan follows, for which the last result is true.
    """
    c, x, y = [np.asarray(array) for array in arrays_of(list(operands))]
    found = TABLE.scipys.PPoly.construct_fast(c, x)
    crossings = found.solve(y[()], False, extrapolate)
    q = found.solve(y[()], discontinuity, extrapolate)
    is_whole = np.isnan(q)
    starts = np.append(is_whole[1:], np.zeros(min(q.size, 1), bool))
    following = iter([*crossings, math.nan])
    expected = next(following)
    for i, root in enumerate(q):
        if root == expected or is_whole[i]:
            expected = next(following)
        else:
            starts[i] = True
    q = np.where(is_whole, x[0], q)
    starts |= is_whole
    sign = -1 if x[-1] < x[0] else 1
    last = x.size - 2
    after = np.clip(np.searchsorted(sign * x, sign * q, "right") - 1, 0, last)
    before = np.clip(np.searchsorted(sign * x, sign * q, "left") - 1, 0, last)
    rest = [
        np.abs(TABLE.scipys.PPoly.construct_fast(c[:, [i]], x[[i, i + 1]])(at) - y)
        for interval in (before, after)
        for i, at in zip(interval, q, strict=True)
    ]
    is_before = np.array(rest[: q.size]) < np.array(rest[q.size :])
    return [q, np.where(is_before & ~starts, before, after), starts, is_whole]


def _checked(c: Any, x: Any, axis: int) -> tuple[Tensor, Tensor]:
    """Return coefficients with their axes first, and breakpoints."""
    (x,), (c,) = coordinates_and_values("PPoly", [x], [c])
    if c.ndim < 2:
        raise ShapeError("PPoly: Coefficients array must be at least 2-dimensional.")
    if not 0 <= axis < c.ndim - 1:
        raise ArgumentError(f"PPoly: axis={axis} must be between 0 and {c.ndim - 1}")
    c = ops.movedim(c, (axis, axis + 1), (0, 1))
    if x.ndim != 1 or x.shape[0] < 2:
        raise ShapeError(
            "PPoly: x must be 1-dimensional, and at least 2 breakpoints are needed: got "
            f"the shape {list(x.shape)}"
        )
    if not c.shape[0] or c.shape[1] != x.shape[0] - 1:
        raise ShapeError(
            "PPoly: number of coefficients != len(x)-1: expected the shape (order, "
            f"{x.shape[0] - 1}, ...), got {list(c.shape)}"
        )
    steps = ops.diff(x) * ops.sign(x[-1] - x[0])
    require("PPoly", ops.greater_equal(steps, 0), "`x` must be strictly increasing or decreasing.")
    return c, x


class PPoly(Interpolant):
    """A piecewise polynomial, with SciPy's methods.

    Parameters
    ----------
    c : array or Tensor, shape (k, m, ...)
        Coefficients of the powers k - 1, ..., 0 of the distance from an interval's start.
    x : array or Tensor, shape (m + 1,)
        Breakpoints, in ascending or descending order.
    extrapolate : bool or "periodic", default True
        Whether there are values outside, or NaN.
    axis : int, default 0
        The axis of results that points take.

    Notes
    -----
    Derivatives: with respect to coefficients, breakpoints and points.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> square = cr.scipy.interpolate.PPoly(np.array([[1.0], [0.0], [0.0]]), np.array([0.0, 9.0]))
    >>> cr.grad(square)(3.0)
    6.0
    """

    c: Any
    x: Any
    extrapolate: Any
    axis: int

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        if has_tensors(c, x):
            c, x = call_ours(_checked, (c, x, axis), {})
        else:
            found = TABLE.scipys.PPoly(c, x, extrapolate, axis)
            c, x = found.c, found.x
        self._set(c, x, extrapolate, axis)

    def _set(self, c: Any, x: Any, extrapolate: Any, axis: int) -> None:
        if extrapolate is None:
            extrapolate = True
        self.c, self.x, self.axis = c, x, axis
        self.extrapolate = extrapolate if extrapolate == "periodic" else bool(extrapolate)

    @classmethod
    def construct_fast(cls, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> Self:
        """Return one with these coefficients, without checks."""
        self = object.__new__(cls)
        self._set(c, x, extrapolate, axis)
        return self

    def data(self) -> tuple[Any, ...]:
        """Return coefficients and breakpoints."""
        return self.c, self.x

    def of_scipy(self) -> Any:
        """Return SciPy's object."""
        c, x = arrays_of([self.c, self.x])
        return TABLE.scipys.PPoly.construct_fast(c, x, self.extrapolate, self.axis)

    def _with(self, c: Any, extrapolate: Any) -> Self:
        return self.construct_fast(c, self.x, extrapolate, self.axis)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Return the derivative of order `nu` at points."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if not self._has_tensors(x):
            return self.of_scipy()(x, nu, extrapolate)
        return call_ours(_value, (self.c, self.x, x, nu, extrapolate, self.axis), {})

    def derivative(self, nu: int = 1) -> Self:
        """Return the derivative of order `nu`, or the antiderivative of order -nu."""
        if nu < 0:
            return self.antiderivative(-nu)
        if not self._has_tensors():
            return self._with(self.of_scipy().derivative(nu).c, self.extrapolate)
        return self._with(call_ours(_derivative, (self.c, nu), {}), self.extrapolate)

    def antiderivative(self, nu: int = 1) -> Self:
        """Return the antiderivative of order `nu` that is 0 at the first breakpoint."""
        if nu <= 0:
            return self.derivative(-nu)
        extrapolate = self.extrapolate != "periodic" and self.extrapolate
        if not self._has_tensors():
            return self._with(self.of_scipy().antiderivative(nu).c, extrapolate)
        c = self.c
        for _ in range(nu):
            c = call_ours(_antiderivative, (c, self.x), {})
        return self._with(c, extrapolate)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """Return the integral from `a` to `b`."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if not self._has_tensors(a, b):
            return self.of_scipy().integrate(a, b, extrapolate)
        return call_ours(_integral, (self.c, self.x, a, b, extrapolate), {})

    def solve(self, y: Any = 0.0, discontinuity: bool = True, extrapolate: Any = None) -> Any:
        """Return where the polynomial has the value `y`; in an object array if it has columns."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if not self._has_tensors(y):
            return self.of_scipy().solve(y, discontinuity, extrapolate)
        c = self.c
        if c.dtype.kind == "c":
            raise ArgumentError("PPoly.solve: Root finding is only for real-valued polynomials")
        found = np.empty(c.shape[2:], dtype=object)
        for i in np.ndindex(*c.shape[2:]):
            of_column = (c[(..., *i)], self.x, y, discontinuity, bool(extrapolate))
            found[i] = call_ours(_roots, of_column, {})
        return found if found.ndim else found[()]

    def roots(self, discontinuity: bool = True, extrapolate: Any = None) -> Any:
        """Return where the polynomial is 0, with derivatives; see `solve`."""
        return self.solve(0.0, discontinuity, extrapolate)

    @classmethod
    def from_spline(cls, tck: Any, extrapolate: Any = None) -> Self:
        """Return a spline, an object or knots, coefficients and degree, as polynomials."""
        if isinstance(tck, BSpline):
            extrapolate = tck.extrapolate if extrapolate is None else extrapolate
        t, c, k = getattr(tck, "tck", tck)
        if not has_tensors(t, c):
            found = TABLE.scipys.PPoly.from_spline((t, c, k), extrapolate)
            return cls.construct_fast(found.c, found.x, found.extrapolate)
        c = call_ours(powers, (t, c, k), {})
        return cls.construct_fast(c, t, extrapolate)

    def extend(self, c: Any, x: Any) -> None:
        """Add breakpoints and coefficients, all of them arrays."""
        if self._has_tensors(c, x):
            raise MissingRuleError(
                "scipy.interpolate.PPoly.extend has no derivative rule in chainrule: join the "
                "coefficients by np.concatenate, and make a PPoly of them"
            )
        found = self.of_scipy()
        found.extend(c, x)
        self.c, self.x = found.c, found.x
