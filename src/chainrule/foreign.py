"""Functions of foreign code with derivatives given by rules, recorded as one node: `wrap`."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.function import autograd_function
from chainrule.autograd.function_wrapper import FunctionWrapper, Made
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_array, is_known
from chainrule.errors import ArgumentTypeError, AutogradError, MissingRuleError, ShapeError
from chainrule.implicit.examples import with_foreign
from chainrule.interop.operands import arrays_of
from chainrule.numpy.array_class import as_ndarrays
from chainrule.transforms.arguments import title_of
from chainrule.transforms.vmap.namespace import deepest_level, loop_over_batch

__all__ = ["ForeignCall", "is_box", "number_of", "wrap"]


def is_box(value: Any) -> bool:
    """Tell whether a value is a tensor that requires grad."""
    return isinstance(value, Tensor) and value.requires_grad


def number_of(value: Any) -> Any:
    """Return the numbers of a tensor, without history; other values as they are."""
    if not isinstance(value, Tensor):
        return value
    array = arrays_of(value)
    return array if array.ndim else array[()]


# --- recorded calls -------------------------------------------------------------------------------


class ForeignCall(ABC):
    """A recorded call of a function of numbers: its arguments and result, with places for tensors.

    A subclass gives the rules.
    """

    def __init__(self, name: str, function: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        self.name, self.function, self.args, self.kwargs = name, function, args, kwargs
        self.is_box = [is_box(leaf) for _, leaf in pytree.leaves(args)]
        self.boxes = [leaf for _, leaf in pytree.leaves(args) if is_box(leaf)]
        self.argnums = tuple(
            i for i, arg in enumerate(args) if any([is_box(leaf) for _, leaf in pytree.leaves(arg)])
        )
        self.result: Any = None

    @abstractmethod
    def cotangents(self, g: Any, ans: Any, args: Any) -> Sequence[Any]:
        """Return the cotangents of the arguments `argnums`, given that of the result."""

    @abstractmethod
    def tangent(self, tangents: Sequence[Any], ans: Any, args: Any) -> Any:
        """Return the tangent of the result, given those of the arguments `argnums`."""

    def call(self, args: Any) -> Any:
        """Call the function."""
        return self.function(*args, **self.kwargs)

    def recorded(self) -> Any:
        """Return the result, as that of a node."""
        return self.result_with(_node(self, *self.boxes))

    def args_with(self, values: Sequence[Any]) -> Any:
        """Return the arguments with other values in the place of the recorded ones."""
        following, flags = iter(values), iter(self.is_box)
        return pytree.map_leaves(self.args, lambda leaf: next(following) if next(flags) else leaf)

    def result_with(self, values: Any) -> Any:
        """Return the result with other values in the place of its floating or complex numbers."""
        following = iter(values if isinstance(values, tuple) else (values,))
        return pytree.map_leaves(
            self.result, lambda x: self.shown(next(following)) if is_output(x) else x
        )

    def shown(self, value: Any) -> Any:
        """Return a tensor as rules get it."""
        return as_ndarrays(value)

    def compute(self, values: Sequence[Any]) -> list[Tensor]:
        """Call the function, and return the tensors of its result."""

        def numbers() -> list[Any]:
            self.result = self._checked(
                self.call(pytree.map_leaves(self.args_with(values), number_of))
            )
            taken = [number_of(value) for value in values]
            outputs = [number_of(x) for _, x in pytree.leaves(self.result) if is_output(x)]
            return [_own(x if is_array(x) else np.asarray(x), taken) for x in outputs]

        return [make(array, None) for array in with_foreign(self.name, numbers)]

    def _checked(self, result: Any) -> Any:
        for _, leaf in pytree.leaves(result):
            if is_box(leaf):
                raise ArgumentTypeError(
                    f"{self.name}: its result depends on an array that is differentiated and is "
                    "not among its arguments, so that no rule gives its gradient: pass it as an "
                    "argument"
                )
        return result


def _own(array: Any, taken: Sequence[Any]) -> Any:
    """Return an array, or a copy if it shares memory with an argument."""
    plain = isinstance(array, np.ndarray)
    return array.copy() if plain and any(np.may_share_memory(array, x) for x in taken) else array


def is_output(leaf: Any) -> bool:
    """Whether a part of a result is differentiated: floating or complex numbers."""
    if isinstance(leaf, np.generic | Tensor) or is_array(leaf):
        return bool(leaf.dtype.kind in "fc")
    return isinstance(leaf, float | complex)


@autograd_function(name="Foreign")
def _node(ctx: Any, call: ForeignCall, *boxes: Tensor) -> tuple[Tensor, ...]:
    outputs = call.compute(boxes)
    ctx.call, ctx.count = call, len(boxes)
    ctx.save_for_backward(*boxes, *outputs)
    return tuple(outputs)


@_node.backward
def _vjp(ctx: Any, *cotangents: Tensor) -> tuple[Any, ...]:
    call: ForeignCall = ctx.call
    saved, count = ctx.saved_tensors, ctx.count

    def rule(values: Sequence[Any], gs: Sequence[Any]) -> list[Any]:
        g, args, ans = call.result_with(tuple(gs)), *_given(call, values, count)
        found = dict(zip(call.argnums, call.cotangents(g, ans, args), strict=True))
        pairs = [
            (leaf, grad)
            for i, arg in enumerate(call.args)
            for _, leaf, grad in pytree.zip_leaves(arg, found.get(i, arg))
            if is_box(leaf)
        ]
        return [_of_shape(call.name, grad, x) for (_, grad), x in zip(pairs, values, strict=False)]

    return (None, *_by_rule(call, rule, saved, cotangents))


@_node.jvp
def _jvp(ctx: Any, _: Any, *tangents: Any) -> tuple[Any, ...]:
    call: ForeignCall = ctx.call
    saved, count = ctx.saved_tensors, ctx.count
    filled = [_zeros(x) if t is None else t for t, x in zip(tangents, saved, strict=False)]

    def rule(values: Sequence[Any], ts: Sequence[Any]) -> list[Any]:
        args, ans = _given(call, values, count)
        given = call.args_with([call.shown(t) for t in ts])
        found = call.tangent([given[i] for i in call.argnums], ans, args)
        pairs = [(t, x) for _, x, t in pytree.zip_leaves(call.result, found) if is_output(x)]
        outputs = values[count:]
        return [_of_shape(call.name, t, x) for (t, _), x in zip(pairs, outputs, strict=True)]

    return tuple(_by_rule(call, rule, saved, filled))


def _given(call: ForeignCall, values: Sequence[Any], count: int) -> tuple[Any, Any]:
    """Return arguments and result for a rule, of the saved boxes and outputs."""
    args = call.args_with([call.shown(x) for x in values[:count]])
    return args, call.result_with(tuple(values[count:]))


Rule = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


def _by_rule(
    call: ForeignCall, rule: Rule, saved: Sequence[Tensor], directions: Sequence[Tensor]
) -> list[Any]:
    """Return what a rule computes; for each example of a vmap, if it needs numbers."""
    arrays = [t._array for t in (*saved, *directions)]
    if is_grad_enabled() or deepest_level(arrays) is None:
        return rule(saved, directions)
    try:
        return rule(saved, directions)
    except (AutogradError, TypeError):

        def of_numbers(*arrays: Any) -> list[Any]:
            level = deepest_level(arrays)
            if level is not None:
                return list(loop_over_batch(level, of_numbers, *arrays, title=call.name))
            tensors = [make(np.asarray(x), None) for x in arrays]
            found = rule(tensors[: len(saved)], tensors[len(saved) :])
            return [arrays_of(t) for t in found]

        return [make(array, None) for array in of_numbers(*arrays)]


def _zeros(x: Tensor) -> Tensor:
    return make(np.zeros(x.shape, x.dtype), None)


def _of_shape(name: str, found: Any, x: Tensor) -> Any:
    """Return a derivative that a rule gave, checked: a tensor, or an array without history."""
    if found is None:
        return _zeros(x)
    if np.iscomplexobj(found) and x.dtype.kind != "c":
        found = np.real(found)
    if not isinstance(found, Tensor):
        found = np.asarray(found, x.dtype)
    if found.shape != x.shape:
        raise ShapeError(
            f"{name}: its rule returned a derivative of shape {found.shape} for an array of shape "
            f"{x.shape}: sum it over broadcast dimensions"
        )
    return found


# --- wrap -----------------------------------------------------------------------------------------


def wrap(
    f: Callable[..., Any],
    *,
    vjp: Callable[..., Any] | None = None,
    jvp: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Return a differentiable function of foreign code, whose derivatives rules give.

    Parameters
    ----------
    f : callable
        A function of NumPy arrays and numbers that knows nothing of tensors: of a C extension, a
        simulator, a server. Its arguments and its result may be dicts, lists, tuples, dataclasses.
    vjp : callable, optional
        The rule of reverse mode: ``vjp(g, out, *args)`` takes the cotangent of the result in the
        structure of the result `out`, and returns a tuple with the cotangent of each argument in
        the structure of the argument, or of a single argument its cotangent. None stands for an
        argument without a derivative.
    jvp : callable, optional
        The rule of forward mode: ``jvp(t, out, *args)`` takes a tuple of the tangents of the
        arguments, zeros where there is none, or the tangent of a single argument, and returns the
        tangent of the result.

    Returns
    -------
    callable
        Takes the arguments of `f`. Tensors, and what a transform hands to a function, are recorded
        as one operation; `f` gets their numbers. Arrays go to `f` as they are.

    Raises
    ------
    MissingRuleError
        When a derivative is computed for which there is no rule.
    AutogradError
        If a rule returns None for an argument that is differentiated; or for a second derivative,
        if a rule returns numbers without history.
    ShapeError, TypeError
        If a derivative has not the shape and the structure of what it belongs to, or `f` closes
        over a tensor that is differentiated.

    Warns
    -----
    PerformanceWarning
        Under `vmap`, where `f` runs for one example after the other.

    Notes
    -----
    Rules get arrays. For a second derivative they get arrays that record, so a rule that is made
    of NumPy's or chainrule's functions is differentiated, and one that calls a wrapped function
    again. Complex cotangents are PyTorch's gradients ∂L/∂z*. In a compiled function, `f` is traced
    if it is made of NumPy's functions, and refused otherwise.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> import chainrule as cr
    >>> gamma = cr.wrap(
    ...     lambda x: math.gamma(x), vjp=lambda g, out, x: g * out * cr.scipy.special.digamma(x)
    ... )
    >>> round(cr.grad(gamma)(3.0), 6)
    1.845569

    Several arguments, and a rule for forward mode:

    >>> def weighted(x, w):
    ...     return {"sum": float(np.dot(x, w))}
    >>> f = cr.wrap(
    ...     weighted,
    ...     vjp=lambda g, out, x, w: (g["sum"] * w, g["sum"] * x),
    ...     jvp=lambda t, out, x, w: {"sum": t[0] @ w + x @ t[1]},
    ... )
    >>> cr.grad(lambda x: f(x, np.array([1.0, 2.0]))["sum"] ** 2)(np.array([3.0, 4.0]))
    array([22., 44.])
    """
    if not callable(f) or not all(rule is None or callable(rule) for rule in (vjp, jvp)):
        raise ArgumentTypeError(
            f"wrap: expected functions, got f={f!r}, vjp={vjp!r}, jvp={jvp!r}: "
            "write wrap(f, vjp=..., jvp=...)"
        )
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # written in C
        signature = None

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if signature is not None:
            bound = signature.bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        leaves = [leaf for _, leaf in pytree.leaves((args, kwargs))]
        if not any([isinstance(leaf, Tensor) for leaf in leaves]):
            return f(*args, **kwargs)
        return _WrappedCall(f, args, kwargs, vjp, jvp).recorded()

    return FunctionWrapper(wrapped, f, Made(wrap, (f,), {"vjp": vjp, "jvp": jvp}))


class _WrappedCall(ForeignCall):
    """A call of a function made by `wrap`."""

    def __init__(self, f: Any, args: Any, kwargs: Any, vjp: Any, jvp: Any) -> None:
        super().__init__(title_of(f), f, args, pytree.map_leaves(kwargs, self._constant))
        self.vjp, self.jvp = vjp, jvp
        self._leaves = [leaf for _, leaf in pytree.leaves((args, kwargs))]

    def _constant(self, leaf: Any) -> Any:
        if is_box(leaf):
            raise ArgumentTypeError(
                "wrap: a keyword argument is differentiated, and rules give derivatives of "
                "positional ones: pass it by position"
            )
        return number_of(leaf)

    def recorded(self) -> Any:
        values: Any = _node(self, *self.boxes) if self.boxes else tuple(self.compute(()))
        following = iter(values)
        as_tensors = any(type(leaf) is Tensor for leaf in self._leaves)

        def shown(leaf: Any) -> Any:
            if not is_output(leaf):
                return leaf
            value = next(following)
            return value if as_tensors else as_ndarrays(value)

        return pytree.map_leaves(self.result, shown)

    def shown(self, value: Any) -> Any:
        plain = not is_grad_enabled() and is_known(value._array)
        return number_of(value) if plain else as_ndarrays(value)

    def cotangents(self, g: Any, ans: Any, args: Any) -> Sequence[Any]:
        found = self._rule("vjp", self.vjp)(g, ans, *args, **self.kwargs)
        if len(args) == 1:
            found = (found,)
        if not isinstance(found, tuple | list) or len(found) != len(args):
            raise AutogradError(
                f"wrap: the vjp of {self.name} must return a tuple with a cotangent for each of "
                f"its {len(args)} arguments, got {pytree.describe(found)}"
            )
        for i in self.argnums:
            self._check(f"argument {i}", self.args[i], found[i])
        return [found[i] for i in self.argnums]

    def tangent(self, tangents: Sequence[Any], ans: Any, args: Any) -> Any:
        known = dict(zip(self.argnums, tangents, strict=True))
        ts = tuple([self._tangent_of(arg, known.get(i)) for i, arg in enumerate(self.args)])
        rule = self._rule("jvp", self.jvp)
        found = rule(ts[0] if len(ts) == 1 else ts, ans, *args, **self.kwargs)
        self._check("the result", self.result, found)
        return found

    def _rule(self, kind: str, rule: Any) -> Callable[..., Any]:
        if rule is None:
            raise MissingRuleError(
                f"{self.name} was wrapped without a rule for "
                f"{'reverse' if kind == 'vjp' else 'forward'} mode: wrap(f, {kind}=...) gives one"
            )
        found: Callable[..., Any] = rule
        return found

    def _tangent_of(self, arg: Any, tangent: Any) -> Any:
        """Return the tangent of an argument: zeros of its numbers that are not differentiated."""
        tangents = [t for _, t in pytree.leaves(arg if tangent is None else tangent)]
        leaves = [leaf for _, leaf in pytree.leaves(arg)]
        parts = iter(
            [
                t if is_box(leaf) else np.zeros(np.shape(number_of(leaf)))
                for leaf, t in zip(leaves, tangents, strict=True)
            ]
        )
        return pytree.map_leaves(arg, lambda _: next(parts))

    def _check(self, what: str, like: Any, found: Any) -> None:
        """Raise if a derivative lacks a part, or has another structure."""
        for path, x, d in pytree.zip_leaves(like, found):
            inner = pytree.children(x) is not None or pytree.children(d) is not None
            if inner or (d is None and (is_box(x) or (like is self.result and is_output(x)))):
                raise AutogradError(
                    f"wrap: a rule of {self.name} returned {pytree.describe(d)} as the derivative "
                    f"of {what}{path}, which is differentiated and {pytree.describe(x)}: return an "
                    "array of its shape, np.zeros_like(x) where the derivative is zero; a constant "
                    "is passed as x.detach()"
                )
