"""Descriptions of standard distributions, and the evaluation of their methods.

A description has the functions of the standard distribution: of y = (x - loc) / scale, or for a
discrete one of k = x - loc. Formulas are evaluated inside of the support alone, so that none has
to be finite outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.backend.extensions import SCIPY, LazyModule
from chainrule.interop.operands import arrays_of, is_tracked, may_hold, tensor_of
from chainrule.scipy.stats.ratios import log_complement

Function = Callable[..., Any]
Support = tuple[Any, Any]

scipy_stats = LazyModule("scipy.stats", SCIPY)

_INF = math.inf


@dataclass(frozen=True)
class Description:
    """The functions of a standard distribution, each of y or k, and of the shape parameters.

    The logarithm of the density is given, and of the others those that have a closed form. What
    isn't given follows from others, if these have one.
    """

    name: str
    shapes: str
    log_density: Function
    support: Support | Callable[..., Support] = (-_INF, _INF)
    valid: Function | None = None  # of the shapes: by default all are positive
    is_open: bool = False  # the density is 0 at the ends of the support
    discrete: bool = False
    counts: str = ""  # shapes that are integers
    cdf: Function | None = None
    sf: Function | None = None
    logcdf: Function | None = None
    logsf: Function | None = None
    ppf: Function | None = None
    isf: Function | None = None
    pdf: Function | None = None
    mean: Function | float | None = None
    var: Function | float | None = None
    entropy: Function | float | None = None
    reasons: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def function_of(name: str, d: Description) -> Function | None:
    """Return a function of a description that follows from others, or None."""
    f, g = d.__dict__, _derived
    if (given := f.get(name)) is not None:
        found: Function | None = given
        return found
    return g[name](d) if name in g else None


def _composed(outer: Function, inner: Function | None) -> Function | None:
    return None if inner is None else lambda y, *shapes: outer(inner(y, *shapes))


def _of_first(*candidates: tuple[Function, Function | None]) -> Function | None:
    found = [_composed(outer, inner) for outer, inner in candidates]
    return next((function for function in found if function is not None), None)


def _at_complement(inner: Function | None) -> Function | None:
    return None if inner is None else lambda q, *shapes: inner(1 - q, *shapes)


def _complement(p: Any) -> Any:
    return 1 - p


_derived: dict[str, Callable[[Description], Function | None]] = {
    "pdf": lambda d: _composed(ops.exp, d.log_density),
    "cdf": lambda d: _of_first((ops.exp, d.logcdf), (_complement, d.sf), (_minus_expm1, d.logsf)),
    "sf": lambda d: _of_first((ops.exp, d.logsf), (_complement, d.cdf), (_minus_expm1, d.logcdf)),
    "logcdf": lambda d: _log_of_either(d.cdf, d.sf) or _composed(log_complement, d.logsf),
    "logsf": lambda d: _log_of_either(d.sf, d.cdf) or _composed(log_complement, d.logcdf),
    "ppf": lambda d: _at_complement(d.isf) or _by_newton("ppf", function_of("cdf", d), d),
    "isf": lambda d: _at_complement(d.ppf) or _by_newton("isf", function_of("sf", d), d),
}


def _by_newton(name: str, probability: Function | None, d: Description) -> Function | None:
    """Return a quantile: SciPy's value, with the derivatives of the equation that it solves.

    Each of Newton's steps from the value, a constant, doubles the order to which they are right
    and adds one: three are right to the seventh.
    """
    if probability is None or d.discrete:
        return None
    density: Any = function_of("pdf", d)
    sign = 1 if name == "ppf" else -1

    def quantile(q: Any, *shapes: Any) -> Any:
        found = getattr(getattr(scipy_stats, d.name), name)(*arrays_of([q, *shapes]))
        value = x = cast(tensor_of(np.asarray(found)), q.dtype)
        if not is_tracked(q, shapes):
            return value
        for _ in range(3):
            x = x - sign * (probability(x, *shapes) - q) / density(x, *shapes)
        return value + (x - x.detach())

    return quantile


def _minus_expm1(log: Any) -> Any:
    return -ops.expm1(log)


def _log_of_either(function: Function | None, complement: Function | None) -> Function | None:
    """Return log F, of the complement where this is the smaller one."""
    if function is None or complement is None:
        return _composed(ops.log, function) or _composed(_log1p_of_minus, complement)

    def log(y: Any, *shapes: Any) -> Any:
        value, rest = function(y, *shapes), complement(y, *shapes)
        near_one = rest < 0.5
        small = ops.log1p(-ops.where(near_one, rest, 0.0))
        return ops.where(near_one, small, ops.log(ops.where(near_one, 1.0, value)))

    return log


def _log1p_of_minus(p: Any) -> Any:
    return ops.log1p(-p)


@dataclass(frozen=True)
class Parameters:
    """The shape parameters, the location and the scale: NaN where they are invalid."""

    shapes: list[Tensor]
    loc: Tensor
    scale: Tensor
    support: Support


# --- methods --------------------------------------------------------------------------------------


def _interior(support: Support) -> Any:
    """Return a point inside of the support."""
    a, b = [end.detach() if isinstance(end, Tensor) else end for end in support]
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        if a == -_INF:
            return 0.0 if b == _INF else b - 1.0
        return a + 1.0 if b == _INF else (a + b) / 2
    a, b = ops.where(ops.isinf(tensor_of(a)), tensor_of(b) - 2.0, a), b
    b = ops.where(ops.isinf(tensor_of(b)), a + 2.0, b)
    return ops.where(ops.isinf(a), 0.0, (a + b) / 2)


def _any_of(*conditions: Any) -> Any:
    """Return where one of the conditions holds, None if they are known to hold nowhere."""
    found = None
    for condition in conditions:
        if condition is not None and may_hold(condition):
            found = condition if found is None else ops.logical_or(found, condition)
    return found


def _inside(x: Tensor, p: Parameters, excluded: Any, interior: Any) -> Tensor:
    """Return the standardised variate, at excluded points that of an interior one.

    The point itself is moved, so that derivatives with respect to location and scale are finite.
    """
    if excluded is not None:
        x = ops.where(excluded, ops.detach(interior * p.scale + p.loc), x)
    return (x - p.loc) / p.scale


def _outside(y: Tensor, support: Support, closed: bool) -> Any:
    """Return where a point is outside of the support, None if it is nowhere."""
    a, b = support
    left = right = None
    if isinstance(a, Tensor) or a != -_INF:
        left = y < a if closed else y <= a
    if isinstance(b, Tensor) or b != _INF:
        right = y > b if closed else y >= b
    return _any_of(left, right, ops.isinf(y))  # at ∞, formulas are often ∞ - ∞


def _density(in_logs: bool) -> Function:
    """Return the method pdf or logpdf."""

    def evaluate(function: Function, x: Tensor, p: Parameters, d: Description) -> Tensor:
        y = (x - p.loc) / p.scale
        outside = _outside(y, p.support, not d.is_open)
        if outside is not None:
            y = _inside(x, p, outside, _interior(p.support))
        found = function(y, *p.shapes)
        found = found - ops.log(p.scale) if in_logs else found / p.scale
        if outside is not None:
            found = ops.where(outside, -_INF if in_logs else 0.0, found)
        result: Tensor = found
        return result

    return evaluate


def _probability(in_logs: bool) -> Function:
    """Return the method pmf or logpmf."""

    def evaluate(function: Function, x: Tensor, p: Parameters, d: Description) -> Tensor:
        k = (x - p.loc) / p.scale
        missing = _any_of(ops.isnan(k))
        outside = _any_of(_outside(k, p.support, closed=True), k != ops.floor(k))
        excluded = _any_of(outside, missing)
        if excluded is not None:
            k = ops.where(excluded, _interior_integer(p.support), k)
        found = function(k, *p.shapes)
        found = found if in_logs else ops.exp(found)
        if outside is not None:
            found = ops.where(outside, -_INF if in_logs else 0.0, found)
        return found if missing is None else ops.where(missing, math.nan, found)

    return evaluate


def _interior_integer(support: Support) -> Any:
    a, b = support
    return a if isinstance(a, Tensor) or a != -_INF else (0.0 if b == _INF else b)


def _cumulative(below: float, above: float) -> Function:
    """Return a cumulative method, given its values left and right of the support."""

    def evaluate(function: Function, x: Tensor, p: Parameters, d: Description) -> Tensor:
        a, b = p.support
        y = (x - p.loc) / p.scale
        missing = _any_of(ops.isnan(y)) if d.discrete else None
        y = ops.floor(y) if d.discrete else y
        left, right = _any_of(y < a if d.discrete else y <= a), _any_of(y >= b)
        excluded = _any_of(left, right, missing)
        if excluded is not None and d.discrete:
            y = ops.where(excluded, _interior_integer(p.support), y)
        elif excluded is not None:
            y = _inside(x, p, excluded, _interior(p.support))
        found = function(y, *p.shapes)
        for condition, value in ((left, below), (right, above), (missing, math.nan)):
            found = found if condition is None else ops.where(condition, value, found)
        result: Tensor = found
        return result

    return evaluate


def _quantile(first: int) -> Function:
    """Return the method ppf or isf, given which end of the support belongs to q = 0."""

    def evaluate(function: Function, q: Tensor, p: Parameters, d: Description) -> Tensor:
        low, high = _any_of(q == 0), _any_of(q == 1)
        excluded = _any_of(ops.logical_not(ops.logical_and(q > 0, q < 1)))
        q = q if excluded is None else ops.where(excluded, 0.5, q)
        found = function(q, *p.shapes)
        if excluded is not None:
            found = ops.where(excluded, math.nan, found)
        for condition, end in ((low, p.support[first]), (high, p.support[1 - first])):
            found = found if condition is None else ops.where(condition, end, found)
        result: Tensor = found * p.scale + p.loc
        return result

    return evaluate


EVALUATE: dict[str, Function] = {
    "pdf": _density(False),
    "logpdf": _density(True),
    "pmf": _probability(False),
    "logpmf": _probability(True),
    "cdf": _cumulative(0.0, 1.0),
    "sf": _cumulative(1.0, 0.0),
    "logcdf": _cumulative(-_INF, 0.0),
    "logsf": _cumulative(0.0, -_INF),
    "ppf": _quantile(0),
    "isf": _quantile(1),
}
"""How a method is evaluated, from the function of the standard distribution."""
