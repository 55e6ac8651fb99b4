"""The polynomial through points, and rational functions in barycentric form."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.errors import ArgumentError, ShapeError
from chainrule.interop.operands import array_of, arrays_of, is_tracked
from chainrule.scipy.dispatch import call_ours, has_tensors, missing_rule
from chainrule.scipy.interpolate.interpolant import (
    TABLE,
    Interpolant,
    column,
    coordinates_and_values,
)
from chainrule.scipy.operands import inexact
from chainrule.scipy.own_code import replace_compiled
from chainrule.transforms import jvp


def _points(name: str, xi: Any, yi: Any, axis: int) -> tuple[Tensor, Tensor]:
    """Return nodes, and values with the axis of the nodes first."""
    (x,), (y,) = coordinates_and_values(name, [xi], [yi])
    if x.ndim != 1 or not y.ndim or not -y.ndim <= axis < y.ndim or y.shape[axis] != x.shape[0]:
        raise ShapeError(
            f"{name}: expected a vector of nodes, and as many values along axis {axis}, got the "
            f"shapes {list(x.shape)} and {list(y.shape)}"
        )
    return x, ops.movedim(y, axis, 0)


def _lagrange(x: Tensor, y: Tensor, q: Tensor) -> Tensor:
    """Return Σ y[i] Π (q - x[j]) / (x[i] - x[j]), which is smooth at the nodes, too."""
    same = np.eye(x.shape[0], dtype=bool)
    apart = ops.where(same, 1.0, x[:, None] - x)
    shares = ops.where(same, 1.0, (q[:, None] - x)[:, None, :] / apart)
    return ops.tensordot(ops.prod(shares, dim=-1), y, dims=1)


def _newton(x: Tensor, y: Tensor, q: Tensor) -> Tensor:
    """Return the value of Newton's form: of equal nodes, `y` has the value and derivatives.

    F. T. Krogh, Math. Comp. 24, 1970, pages 185 to 190.
    """
    nodes, n = array_of(x), x.shape[0]
    c: list[Any] = [y[0]]
    differences: list[Any] = [None] * n  # of divided differences, which equal nodes go on with
    for k in range(1, n):
        equal = next((s for s in range(1, k + 1) if nodes[k - s] != nodes[k]), k + 1) - 1
        differences[0] = y[k] / math.factorial(equal)
        for i in range(k - equal):
            if nodes[i] == nodes[k]:
                raise ArgumentError("KroghInterpolator: equal elements of xi must be neighbours")
            before = differences[i + 1] if equal else c[i]
            differences[i + 1] = (before - differences[i]) / (x[i] - x[k])
        c.append(differences[k - equal])
    found: Tensor = c[0] + 0 * column(q, y)
    product = q * 0 + 1
    for k in range(1, n):
        product = product * (q - x[k - 1])
        found = found + column(product, y) * c[k]
    return found


def _has_equal_nodes(x: Tensor) -> bool:
    return is_known(x._array) and np.unique(array_of(x)).size < x.shape[0]


def _value(name: str, xi: Any, yi: Any, axis: int, q: Any, der: int) -> Tensor:
    """Return a derivative of the polynomial at points, of the order `der`."""
    x, y = _points(name, xi, yi, axis)
    (x, q), (y,) = coordinates_and_values(name, [x, q], [y])
    formula = _newton if _has_equal_nodes(x) else _lagrange
    if formula is _newton and name != "KroghInterpolator":
        raise ArgumentError(f"{name}: elements of xi can't be equal: KroghInterpolator takes them")
    rest = y.shape[1:]
    rows = ops.reshape(y, (y.shape[0], -1))
    function: Callable[[Tensor], Tensor] = functools.partial(formula, x, rows)
    for _ in range(der):
        function = _slope(function)
    found = ops.reshape(function(ops.reshape(q, (-1,))), (*q.shape, *rest))
    at = axis % y.ndim
    return ops.movedim(found, tuple(range(q.ndim)), tuple(range(at, at + q.ndim)))


def _slope(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return the derivative of a function of which each row depends on one point."""
    return lambda at: jvp(function, (at,), (at.new_ones(at.shape),))[1]


def _joined(first: Any, second: Any, axis: int) -> Any:
    if not has_tensors(first, second):
        return np.concatenate([first, second], axis)
    parts = (first, second)
    return call_ours(
        lambda *given: ops.cat(inexact("BarycentricInterpolator", *given), axis), parts, {}
    )


class _Polynomial(Interpolant):
    """The polynomial through points; all of it is recorded where a point, or data, is."""

    def __init__(self, xi: Any, yi: Any, axis: int = 0) -> None:
        self.xi, self.yi, self._axis = xi, yi, axis
        if has_tensors(xi, yi):
            call_ours(_points, (type(self).__name__, xi, yi, axis), {})

    def data(self) -> tuple[Any, ...]:
        """Return nodes and values."""
        return self.xi, self.yi

    def of_scipy(self) -> Any:
        """Return SciPy's object."""
        made = getattr(TABLE.scipys, type(self).__name__)
        return made(*arrays_of([self.xi, self.yi]), axis=self._axis)

    def __call__(self, x: Any) -> Any:
        """Return the values at points."""
        return self.derivative(x, 0)

    def derivative(self, x: Any, der: int = 1) -> Any:
        """Return the derivative of an order at points."""
        if der < 0:
            raise ArgumentError(f"{type(self).__name__}: der must not be negative, got {der}")
        if not self._has_tensors(x):
            return self.of_scipy().derivative(x, der) if der else self.of_scipy()(x)
        given = (type(self).__name__, self.xi, self.yi, self._axis, x, der)
        return call_ours(_value, given, {})

    def derivatives(self, x: Any, der: int | None = None) -> Any:
        """Return the derivatives of the orders from 0 to below `der` at points."""
        if not self._has_tensors(x):
            return self.of_scipy().derivatives(x, der)
        orders = range(len(self.xi) if der is None else der)
        return call_ours(
            lambda *parts: ops.stack(parts), [self.derivative(x, k) for k in orders], {}
        )


class KroghInterpolator(_Polynomial):
    """The polynomial with given values and derivatives: `scipy.interpolate.KroghInterpolator`.

    Parameters
    ----------
    xi : array, shape (n,)
        Nodes. Equal neighbours stand for the value and derivatives there.
    yi : array
        Values, and derivatives at equal nodes.
    axis : int, default 0
        The axis of `yi` for the nodes.

    Notes
    -----
    Derivatives: with respect to nodes, values and points; that of equal nodes is the sum.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([0.0, 0.0, 1.0])
    >>> krogh = cr.scipy.interpolate.KroghInterpolator
    >>> cr.grad(lambda y: krogh(x, y)(0.5))(np.array([1.0, 0.0, 2.0]))
    array([0.75, 0.25, 0.25])
    """


class BarycentricInterpolator(_Polynomial):
    """The polynomial through points: `scipy.interpolate.BarycentricInterpolator`.

    Parameters
    ----------
    xi : array, shape (n,)
        Nodes.
    yi : array
        Values.
    axis : int, default 0
        The axis of `yi` for the nodes.
    wi, rng : optional
        For `scipy.interpolate.BarycentricInterpolator`, which computes with arrays.

    Notes
    -----
    Derivatives: with respect to nodes, values and points.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([0.0, 1.0, 2.0])
    >>> cr.grad(lambda y: cr.scipy.interpolate.BarycentricInterpolator(x, y)(0.5))(x)
    array([ 0.375,  0.75 , -0.125])
    """

    def __init__(
        self, xi: Any, yi: Any = None, axis: int = 0, *, wi: Any = None, rng: Any = None
    ) -> None:
        self._settings = {"wi": wi, "rng": rng}
        super().__init__(xi, xi if yi is None else yi, axis if yi is not None else 0)

    def of_scipy(self) -> Any:
        """Return SciPy's object."""
        x, y = arrays_of([self.xi, self.yi])
        return TABLE.scipys.BarycentricInterpolator(x, y, self._axis, **self._settings)

    def set_yi(self, yi: Any, axis: int | None = None) -> None:
        """Set the values."""
        self.yi, self._axis = yi, self._axis if axis is None else axis

    def add_xi(self, xi: Any, yi: Any = None) -> None:
        """Add nodes, and their values."""
        self.xi = _joined(self.xi, xi, 0)
        if yi is not None:
            self.yi = _joined(self.yi, yi, self._axis)


@TABLE.function("krogh_interpolate", "composite")
def krogh_interpolate(xi: Any, yi: Any, x: Any, der: int = 0, axis: int = 0) -> Any:
    """Return a derivative of the polynomial with given values and derivatives, at points."""
    return KroghInterpolator(xi, yi, axis).derivative(x, der)


@TABLE.function("barycentric_interpolate", "composite")
def barycentric_interpolate(
    xi: Any, yi: Any, x: Any, axis: int = 0, *, der: int = 0, rng: Any = None
) -> Any:
    """Return a derivative of the polynomial through points, at points."""
    return BarycentricInterpolator(xi, yi, axis).derivative(x, der)


# --- rational interpolants ------------------------------------------------------------------------
#
# SciPy divides by zero at support points, and puts the values in later. Poles and roots are
# eigenvalues.


def _evaluate(self: Any, z: Any) -> Any:
    """Return the ratio of Σ w f / (z - x) and Σ w / (z - x), both times z - x next to a point x."""
    z, weights = cnp.asarray(z), self.weights[:, None]
    values = self._support_values.reshape(len(self._support_values), -1)
    distances = cnp.ravel(z)[:, None] - self._support_points
    zero, infinite = distances == 0, cnp.isinf(distances)
    at_point = zero.any(axis=1, keepdims=True)
    factor = cnp.where(zero, distances, 0.0).sum(axis=1, keepdims=True)
    shares = cnp.where(at_point, factor, 1.0) / cnp.where(zero | infinite, 1.0, distances)
    shares = cnp.where(zero | infinite, 1.0, shares)
    found = (shares @ (weights * values)) / (shares @ weights)
    found = found.reshape(z.shape + self._shape)
    return cnp.moveaxis(found, 0, self._axis) if z.ndim else found


def _weights_of_aaa(
    self: Any, z: Any, f: Any, rtol: Any = None, max_terms: int = 100, **_: Any
) -> Any:
    """Return the support points, values and weights that SciPy's AAA algorithm finds."""
    if is_tracked(z, f):
        reason = (
            "its number of support points jumps with the data. FloaterHormannInterpolator has one"
        )
        raise missing_rule("scipy.interpolate.AAA: the derivative by data", reason)
    settings = {"rtol": rtol, "max_terms": max_terms, "clean_up": False}
    found = TABLE.scipys.AAA(*arrays_of((z, f)), **settings)
    self.errors, self._points, self._values = found.errors, z, f
    return found.support_points, found.support_values, found.weights


_OF_RATIONAL: dict[str, Callable[..., Any]] = {
    "_BarycentricRational.__call__": _evaluate,
    "AAA._compute_weights": _weights_of_aaa,
}
replace_compiled("scipy.interpolate._bary_rational", **_OF_RATIONAL)
