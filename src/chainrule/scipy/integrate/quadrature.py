"""Integrals of functions: fixed rules, and adaptive ones with Leibniz's derivatives.

The value of an adaptive integral is SciPy's own. Its derivatives are integrals of the integrand's
derivatives, by Gauss's rule of 21 points on intervals that are divided until the integrals of the
integrand and of its gradient are known to ten digits; those with respect to a limit are the
integrand there, and its derivatives (Leibniz's rule). Both are recorded operations, so that all
orders and modes follow: with respect to the limits, `args`, and all else that the integrand is a
function of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import chainrule.numpy
from chainrule import ops
from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.modes import is_grad_enabled, no_grad
from chainrule.autograd.node import AccumulateGrad, GradientEdge, Node, endpoint
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.versions import next_seq
from chainrule.autograd.views import current_node
from chainrule.backend.extensions import SCIPY, LazyModule
from chainrule.errors import ArgumentError, AutogradError, ShapeError
from chainrule.interop.operands import are_known, arrays_of, tensor_of
from chainrule.interrupts import errstate
from chainrule.scipy.dispatch import has_tensors

Function = Callable[..., Any]

scipy_integrate = LazyModule("scipy.integrate", SCIPY)

_TOLERANCE = 1e-10
"""Relative tolerance of the subdivision on which derivatives are integrated."""
_MOST_INTERVALS = 400
_AGREEMENT = 1e-6
"""Relative difference from SciPy's value up to which the rule on the subdivision is trusted."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(21)
_LIMIT_NODES, _LIMIT_WEIGHTS = np.polynomial.legendre.leggauss(5)


# --- the fixed rule -------------------------------------------------------------------------------


def fixed_quad(func: Function, a: Any, b: Any, args: Any = (), n: int = 5) -> tuple[Any, None]:
    """Return the integral of a function of arrays by Gauss's rule of order `n`, and None.

    Derivatives are those of the rule, with respect to the limits, `args`, and what `func` is a
    function of otherwise. It can be compiled and mapped.
    """
    if not has_tensors(a, b) and np.isinf([a, b]).any():
        raise ArgumentError("Gaussian quadrature is only available for finite limits.")
    nodes, weights = np.polynomial.legendre.leggauss(n)
    points = (b - a) * (nodes + 1) / 2.0 + a
    return (b - a) / 2.0 * np.sum(weights * func(points, *args), axis=-1), None


# --- intervals ------------------------------------------------------------------------------------


class _Range:
    """An integral over a range: the same over a finite one, with t for x.

    x = a + (1 - t)/t, b - (1 - t)/t, or both signs of (1 - t)/t, and t from 0 to 1, as in QUADPACK.
    """

    def __init__(self, a: float, b: float) -> None:
        self.sign = 1.0
        if a > b and (math.isinf(a) or math.isinf(b)):
            a, b, self.sign = b, a, -1.0
        self.a, self.b = a, b
        self.is_finite = not (math.isinf(a) or math.isinf(b))
        self.ends = (a, b) if self.is_finite else (0.0, 1.0)

    def integrand(self, f: Callable[[float], Any]) -> Callable[[float], Any]:
        """Return the integrand of the finite range."""
        if self.is_finite:
            return f
        left, right = math.isinf(self.a), math.isinf(self.b)
        f = _zero_far_away(f)

        def at(t: float) -> Any:
            away = (1 - t) / t
            if left and right:
                return (f(away) + f(-away)) / (t * t)
            return f(self.b - away if left else self.a + away) / (t * t)

        return at


_FAR = 100.0
"""Argument from which an undefined integrand counts as zero, where another factor is."""


def _zero_far_away(f: Callable[[float], Any]) -> Callable[[float], Any]:
    """Return an integrand that is 0 far away where it is nan, as exp(x) exp(-x²) is there."""

    def at(x: float) -> Any:
        found = f(x)
        if abs(x) < _FAR or not np.isnan(arrays_of(found)).any():
            return found
        return np.zeros(np.shape(found))

    return at


def _sum_over(intervals: Sequence[tuple[float, float]], f: Callable[[float], Any]) -> Any:
    """Return the integral over intervals by Gauss's rule, recorded."""
    values, weights = [], []
    for low, high in intervals:
        half = (high - low) / 2
        values += [f(low + half * (1 + node)) for node in _NODES.tolist()]
        weights += (half * _WEIGHTS).tolist()
    tensors = [tensor_of(value) for value in values]
    stacked = ops.stack(tensors)
    shape = (-1, *[1] * (stacked.ndim - 1))
    factors = np.asarray(weights, stacked.dtype).reshape(shape)
    return ops.sum(stacked * factors, dim=0)


@errstate(all="ignore")
def _limit_term(name: str, f: Function, limit: Any) -> Any:
    """Return ∫ f from the value of a limit to the limit: zero, with Leibniz's derivatives.

    Gauss's rule of 5 points on this interval of no length is exact for the first ten derivatives.
    """
    start = limit.detach()
    width = limit - start
    total: Any = 0.0
    points = zip(_LIMIT_NODES.tolist(), _LIMIT_WEIGHTS.tolist(), strict=True)
    for node, weight in points:
        total = total + weight / 2 * tensor_of(f(start + width * ((node + 1) / 2)))
    if not np.isfinite(arrays_of(total)).all():
        raise AutogradError(
            f"{name}: the integrand is not finite at the limit {start.item()}, so that the "
            "integral has no derivative with respect to it. Pass limit.detach() if it is a constant"
        )
    return width * total


def _constant(name: str, limit: Any) -> float:
    """Return a limit as a number."""
    _check_known(name, limit)
    if not isinstance(limit, Tensor):
        return float(limit)
    if limit.numel() != 1:
        raise ShapeError(f"{name}: a limit is a number, got shape {list(limit.shape)}")
    return float(limit.detach().item())


def _check_known(name: str, value: Any) -> None:
    if not are_known(value):
        raise AutogradError(
            f"{name} looks at values, which a compiled function doesn't know, nor does vmap: call "
            "fixed_quad, or loop over the examples outside"
        )


class _WithGradient:
    """An integrand and its gradient, as a function of numbers that returns one vector.

    The gradient is with respect to what the integrand is a function of: tensors that were there
    before it was called. These are found by calling it at some points.
    """

    def __init__(self, f: Callable[[float], Any], points: Sequence[float]) -> None:
        self.f = f
        self.edges: dict[tuple[int, int], GradientEdge] = {}
        for x in points:
            first = next_seq()
            self.edges |= self._frontier(tensor_of(self.f(x)), first)

    def _frontier(self, out: Tensor, first: int) -> dict[tuple[int, int], GradientEdge]:
        """Return the edges that lead from nodes of this call to older ones."""
        found: dict[tuple[int, int], GradientEdge] = {}
        seen: set[Node] = set()
        stack = [current_node(out)]
        while stack:
            edge = stack.pop()
            if edge is None:
                continue
            node, index = endpoint(edge)
            if node.seq < first or isinstance(node, AccumulateGrad):
                found[id(node), index] = GradientEdge(node, index)
            elif node not in seen:
                seen.add(node)
                stack.extend(node.edges)
        return found

    def __call__(self, x: float) -> Any:
        first = next_seq()
        out = tensor_of(self.f(x))
        total = ops.sum(out)
        reached = self._frontier(total, first).keys() & self.edges.keys()
        edges: dict[Any, Any] = {key: edge for key, edge in self.edges.items() if key in reached}
        found = autograd_grad(total, [*edges.values()], retain_graph=True) if edges else ()
        gradients = dict(zip(edges, found, strict=True))
        parts = [
            _mixed(arrays_of(gradients[key])) if key in gradients else 0.0 for key in self.edges
        ]
        return np.concatenate([np.ravel(arrays_of(out)), parts])


def _mixed(gradient: Any) -> float:
    """Return a sum of the elements with different weights, which is as smooth as they are."""
    flat = np.ravel(gradient)
    return float(flat @ (1 + 0.3 * np.cos(np.arange(flat.size))))


@errstate(all="ignore")
def _intervals(f: Function, over: _Range, points: Any) -> list[tuple[float, float]]:
    """Return intervals on which the integrand and its gradient are integrated well."""
    low, high = over.ends
    nodes = (low + (high - low) * (_LIMIT_NODES + 1) / 2).tolist()
    vector = _WithGradient(over.integrand(f), nodes)
    found = scipy_integrate.quad_vec(
        vector,
        low,
        high,
        epsabs=1e-14,
        epsrel=_TOLERANCE,
        norm="max",
        limit=_MOST_INTERVALS,
        points=points if over.is_finite else None,
        full_output=True,
    )
    return [tuple(pair) for pair in found[2].intervals.tolist()]


def _with_derivatives(
    name: str, f: Function, limits: tuple[Any, Any], points: Any, value: Any
) -> Any:
    """Return the value of an integral as a tensor with the derivatives of the rule."""
    over = _Range(*[_constant(name, limit) for limit in limits])
    pieces = _intervals(f, over, points)
    total = over.sign * _sum_over(pieces, over.integrand(f))
    found, wanted = arrays_of(total), np.asarray(value)
    scale = np.abs(wanted).max(initial=0.0)
    if not np.abs(found - wanted).max(initial=0.0) <= _AGREEMENT * scale + 1e-8:
        raise AutogradError(
            f"{name}: the rule by which derivatives are integrated differs from the value, "
            f"{found} and {wanted}: the integrand has a singularity or oscillates. Divide the "
            "range there with points=, or at a finite limit"
        )
    moving = total - total.detach()
    for limit, sign in zip(limits, (-1, 1), strict=True):
        if isinstance(limit, Tensor) and math.isfinite(_constant(name, limit)):
            moving = moving + sign * _limit_term(name, f, ops.reshape(limit, ()))
    return moving + np.asarray(value, moving.dtype)


# --- adaptive rules -------------------------------------------------------------------------------


def quad(
    func: Function, a: Any, b: Any, args: Any = (), full_output: Any = 0, **options: Any
) -> Any:
    """Return the integral of `func` from `a` to `b`, and an estimate of the absolute error.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``, a real number. Tensors that it refers to are differentiated, too.
    a, b : number or 0-d Tensor
        Limits; infinite ones are allowed.
    args : tuple
        Further arguments of `func`.
    full_output, **options
        Of `scipy.integrate.quad`.

    Returns
    -------
    tuple
        As SciPy's; the integral is a tensor if `func` returns one, or a limit is one.

    Raises
    ------
    AutogradError
        If derivatives are asked for with `weight`, or the integrand is infinite at a limit that
        is differentiated, or too rough.

    Notes
    -----
    Derivatives: with respect to a limit, the integrand there (Leibniz's rule); with respect to all
    else the integral of the integrand's derivative. In both modes, to every order.

    Examples
    --------
    >>> import chainrule as cr
    >>> rate = cr.tensor(2.0, dtype=cr.float64, requires_grad=True)
    >>> total, error = cr.scipy.integrate.quad(lambda x: cr.exp(-rate * x), 0, float("inf"))
    >>> cr.autograd_grad(total, rate)[0]
    tensor(-0.2500, dtype=float64)
    """
    if not callable(func) or type(func).__module__ in _FOREIGN:
        return scipy_integrate.quad(func, a, b, args, full_output, **options)
    args = args if isinstance(args, tuple) else (args,)
    limits = (_constant("quad", a), _constant("quad", b))
    kept = _Values(func, args)
    result = scipy_integrate.quad(kept, *limits, full_output=full_output, **options)
    if not kept.are_tensors and not has_tensors(a, b):
        return result
    value = result[0]
    if is_grad_enabled():
        if options.get("weight") is not None or options.get("complex_func"):
            raise AutogradError(
                "quad has no derivatives with weight= or complex_func=: write the weight, or the "
                "real and imaginary parts, into the integrand, or detach() what it depends on"
            )
        value = _with_derivatives("quad", kept.call, (a, b), options.get("points"), value)
    else:
        value = tensor_of(np.float64(value))
    return (value, *result[1:])


_FOREIGN = ("ctypes", "_ctypes", "scipy._lib._ccallback")
"""Modules of callables that are compiled functions."""


class _Values:
    """An integrand as a function of numbers; remembers whether it returned tensors."""

    def __init__(self, func: Function, args: tuple[Any, ...]) -> None:
        self.func, self.args, self.are_tensors = func, args, False

    def call(self, x: Any) -> Any:
        return self.func(x, *self.args)

    def __call__(self, x: Any) -> Any:
        found = self.func(x, *self.args)
        _check_known("quad", found)
        if isinstance(found, Tensor):
            self.are_tensors = True
            if found.numel() != 1:
                raise ShapeError(
                    f"quad: expected func to return a number, got shape {list(found.shape)}. "
                    "quad_vec integrates arrays"
                )
            return found.detach().item()
        return found


def quad_vec(
    f: Function, a: Any, b: Any, *rest: Any, full_output: bool = False, **options: Any
) -> Any:
    """Return the integral of an array-valued function, and an estimate of the absolute error.

    Derivatives are those of `quad`.
    """
    if options.get("workers", 1) != 1:  # which pickle the function, for other processes
        return scipy_integrate.quad_vec(f, a, b, *rest, full_output=full_output, **options)
    args = options.pop("args", ())
    args = args if isinstance(args, tuple) else (args,)
    limits = (_constant("quad_vec", a), _constant("quad_vec", b))
    are_tensors = False

    def values(x: float) -> Any:
        nonlocal are_tensors
        found = f(x, *args)
        _check_known("quad_vec", found)
        are_tensors = are_tensors or isinstance(found, Tensor)
        return np.asarray(arrays_of(found))[()]

    result = scipy_integrate.quad_vec(values, *limits, *rest, full_output=full_output, **options)
    if not are_tensors and not has_tensors(a, b):
        return result
    if not is_grad_enabled():
        return (tensor_of(np.asarray(result[0])), *result[1:])

    value = _with_derivatives(
        "quad_vec", lambda x: f(x, *args), (a, b), options.get("points"), result[0]
    )
    return (value, *result[1:])


def nquad(
    func: Function, ranges: Any, args: Any = None, opts: Any = None, full_output: bool = False
) -> Any:
    """Return the integral over several variables, and an estimate of the absolute error.

    The limits of a variable may be functions of those after it, as in SciPy. Derivatives are those
    of `quad`, which is called for one variable within the other.
    """
    if full_output or not callable(func) or type(func).__module__ in _FOREIGN:
        return scipy_integrate.nquad(func, ranges, args, opts, full_output)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    count = len(ranges)
    errors = [0.0]

    def over(depth: int, later: tuple[Any, ...]) -> Any:
        """Return the integral over the variables up to one, given those after it."""
        limits = ranges[depth]
        limits = limits(*later, *args) if callable(limits) else limits
        option = opts[depth] if isinstance(opts, list | tuple) else opts
        option = option(*later, *args) if callable(option) else option

        def inner(x: Any) -> Any:
            return func(x, *later, *args) if depth == 0 else over(depth - 1, (x, *later))

        value, error = quad(inner, *limits, **(option or {}))[:2]
        errors[0] = max(errors[0], error)
        return value

    return over(count - 1, ()), errors[0]


def dblquad(
    func: Function,
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> Any:
    """Return the integral of ``func(y, x)`` over y from `gfun` to `hfun`, and x from `a` to `b`."""

    def limits(x: Any, *_: Any) -> list[Any]:
        return [end(x) if callable(end) else end for end in (gfun, hfun)]

    return nquad(func, [limits, [a, b]], args, {"epsabs": epsabs, "epsrel": epsrel})


def tplquad(
    func: Function,
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    qfun: Any,
    rfun: Any,
    args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> Any:
    """Return the integral of ``func(z, y, x)`` over z, y and x, as SciPy's."""

    def inner(y: Any, x: Any, *_: Any) -> list[Any]:
        return [end(x, y) if callable(end) else end for end in (qfun, rfun)]

    def middle(x: Any, *_: Any) -> list[Any]:
        return [end(x) if callable(end) else end for end in (gfun, hfun)]

    return nquad(func, [inner, middle, [a, b]], args, {"epsabs": epsabs, "epsrel": epsrel})


# --- double exponential rules ---------------------------------------------------------------------


def without_far_nodes(name: str, f: Function) -> Function:
    """Return an integrand whose derivative is 0 where it is 0 or not finite, very far away.

    There the rules of SciPy's code have nodes, at which factors of a derivative are infinite.
    """

    def at(x: Any, *args: Any) -> Any:
        with no_grad():
            found = f(x.detach() if isinstance(x, Tensor) else x, *args)
        _check_known(name, found)
        found = arrays_of(found)
        far = np.abs(np.broadcast_to(arrays_of(x), np.shape(found))) > _VERY_FAR
        dead = ~np.isfinite(found) | ((found == 0) & far)
        if not dead.any() or dead.ndim == 0:
            return f(x, *args)
        first = np.argmin(dead, axis=-1)[..., None]
        everywhere = np.broadcast_to(arrays_of(x), found.shape)
        near = np.where(dead, np.take_along_axis(everywhere, first, -1), everywhere)
        return np.where(dead, found, f(chainrule.numpy.asarray(near), *args))

    return at


_VERY_FAR = 1e6
