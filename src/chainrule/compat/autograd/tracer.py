"""Functions with rules of their own, recorded as one node: `primitive`, and what boxes are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import update_wrapper
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.conversions import RUNNING, Running, is_differentiated
from chainrule.autograd.function import autograd_function
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.modes import MODES, enable_grad
from chainrule.autograd.tensor import Tensor, make
from chainrule.compat.autograd.call_trace import Node as Node
from chainrule.compat.autograd.call_trace import trace as trace
from chainrule.errors import MissingRuleError
from chainrule.interop.operands import arrays_of
from chainrule.interrupts import call_with
from chainrule.numpy import ndarray
from chainrule.numpy.array_class import as_ndarrays

__all__ = ["Box", "Rules", "getval", "isbox", "notrace_primitive", "primitive", "rules_of"]


def isbox(value: Any) -> bool:
    """Tell whether a value is an array that a transform differentiates."""
    return isinstance(value, Tensor) and value.requires_grad


def getval(value: Any) -> Any:
    """Return the numbers of a recorded array, without history; other values as they are."""
    if not isinstance(value, Tensor):
        return value
    array = arrays_of(value)
    return array if array.ndim else array[()]


class _BoxType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isbox(instance)


class Box(metaclass=_BoxType):
    """The class of values that a transform differentiates, for `isinstance` alone."""

    @classmethod
    def register(cls, value_type: type) -> None:
        """Accept a subclass of NumPy's array, whose objects are differentiated as arrays."""
        check_array_type(value_type)


def check_array_type(value_type: type) -> None:
    """Raise if the objects of a class can't be differentiated by."""
    if not issubclass(value_type, np.ndarray | np.generic | float | complex):
        raise TypeError(
            f"objects of {value_type.__name__} can't be differentiated by: gradients are arrays, "
            "and dicts, lists, tuples and dataclasses of them. Make it a dataclass of arrays"
        )


# Programs written for HIPS autograd read the number of a box so, to print it.
ndarray._value = property(getval)  # type: ignore[attr-defined]


PLAIN: ContextVar[Running | None] = ContextVar("chainrule compat plain", default=None)
"""The transform whose call of a primitive is running: functions of NumPy are its own there."""


# --- primitives -----------------------------------------------------------------------------------


class Rules:
    """The rules of a primitive: a function of ``(argnums, ans, args, kwargs)``, and its tangent."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function, self.name = function, name
        self.vjp: Callable[..., Any] | None = None
        self.jvp: Callable[..., Any] | None = None

    def rule(self, kind: str, argnums: Sequence[int]) -> Callable[..., Any]:
        """Return a rule, or raise if there is none."""
        found: Callable[..., Any] | None = getattr(self, kind)
        if found is None:
            raise MissingRuleError(
                f"{kind.upper()} of {self.name} wrt argnums {tuple(argnums)} not defined: give it "
                f"one with def{kind}({self.name}, ...)"
            )
        return found


def primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is recorded as one node, whose rules `defvjp` and `defjvp` give.

    Parameters
    ----------
    f_raw : callable
        Called with NumPy arrays and numbers in the place of recorded ones. Returns floating or
        complex arrays, numbers, or dicts, lists, tuples, dataclasses of them.

    Returns
    -------
    callable
        Takes the arguments of `f_raw`. Positional ones, and what is in their containers, can be
        differentiated by.

    Raises
    ------
    TypeError
        If a keyword argument is differentiated.
    MissingRuleError
        When a derivative is computed for which there is no rule.

    Examples
    --------
    >>> from chainrule.compat.autograd import grad
    >>> from chainrule.compat.autograd.extend import defvjp, primitive
    >>> @primitive
    ... def square(x):
    ...     return x * x
    >>> defvjp(square, lambda ans, x: lambda g: 2 * x * g)
    >>> grad(square)(3.0), grad(grad(square))(3.0)
    (np.float64(6.0), np.float64(2.0))
    """
    name = getattr(f_raw, "__name__", type(f_raw).__name__)
    rules = Rules(f_raw, name)

    def recorded(*args: Any, **kwargs: Any) -> Any:
        _refuse_boxes(name, kwargs)
        if any([isbox(leaf) for _, leaf in pytree.leaves(args)]):
            call = _Call(rules, args, kwargs)
            return call.result_with(_node(call, *call.boxes))
        values = pytree.map_leaves(args, getval)
        return call_with({PLAIN: RUNNING.get()}, f_raw, *values, **kwargs)

    update_wrapper(recorded, f_raw)
    recorded._rules = rules  # type: ignore[attr-defined]
    return recorded


def rules_of(function: Any) -> Rules:
    """Return the rules of a function that `primitive` returned.

    Those of other functions have no effect: their operations are recorded, with built-in rules.
    """
    rules: Rules | None = getattr(function, "_rules", None)
    if rules is None:
        name = getattr(function, "__name__", type(function).__name__)
        warnings.warn(
            f"A rule for {name!r} has no effect: it is not made by primitive(), so that what it "
            f"computes is recorded. Write {name} = primitive({name}) first",
            UserWarning,
            stacklevel=user_stack_level(),
        )
        return Rules(function, name)
    return rules


def notrace_primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gets numbers without history, so that its result has none."""

    def constant(*args: Any, **kwargs: Any) -> Any:
        values = [pytree.map_leaves(part, getval) for part in (args, kwargs)]
        return f_raw(*values[0], **values[1])

    return update_wrapper(constant, f_raw)


def _refuse_boxes(name: str, kwargs: dict[str, Any]) -> None:
    if not kwargs:
        return
    for path, leaf in pytree.leaves(kwargs):
        if isbox(leaf):
            raise TypeError(
                f"{name}: the keyword argument {path.strip('[]')} is differentiated, and rules are "
                "given for positional arguments: pass it by position"
            )


class _Call:
    """A recorded call of a primitive: its arguments and its result, with places for tensors."""

    def __init__(self, rules: Rules, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.rules, self.args, self.kwargs = rules, args, kwargs
        self.boxes = [leaf for _, leaf in pytree.leaves(args) if isbox(leaf)]
        self.argnums = tuple(
            i for i, arg in enumerate(args) if any([isbox(leaf) for _, leaf in pytree.leaves(arg)])
        )
        self.is_box = [isbox(leaf) for _, leaf in pytree.leaves(args)]
        self.result: Any = None

    def args_with(self, values: Sequence[Any]) -> Any:
        """Return the arguments with other values in the place of the recorded ones."""
        following, flags = iter(values), iter(self.is_box)
        return pytree.map_leaves(self.args, lambda leaf: next(following) if next(flags) else leaf)

    def compute(self, values: Sequence[Any]) -> list[Tensor]:
        """Call the function, and return the tensors of its result."""
        args = pytree.map_leaves(self.args_with(values), getval)
        # Recorded, so that what it closes over can't become a number without notice.
        modes: dict[ContextVar[Any], Any] = {MODES: enable_grad().entered(MODES.get())}
        self.result = call_with({**modes, PLAIN: RUNNING.get()}, self._call, args)
        arrays = [np.asarray(x) for _, x in pytree.leaves(self.result) if _is_output(x)]
        taken = [getval(value) for value in values]
        return [
            make(a.copy() if any([np.may_share_memory(a, x) for x in taken]) else a, None)
            for a in map(np.asarray, map(getval, arrays))
        ]

    def _call(self, args: Any) -> Any:
        result = self.rules.function(*args, **self.kwargs)
        for _, leaf in pytree.leaves(result):
            if isinstance(leaf, Tensor) and is_differentiated(leaf):
                raise TypeError(
                    f"{self.rules.name}: its result depends on an array that is differentiated and "
                    "is not among its arguments, so that no rule gives its gradient: pass it as an "
                    "argument"
                )
        return result

    def result_with(self, values: Any) -> Any:
        """Return the result with other values in the place of its floating or complex numbers."""
        following = iter(values if isinstance(values, tuple) else (values,))
        return pytree.map_leaves(
            self.result, lambda x: as_ndarrays(next(following)) if _is_output(x) else x
        )


def _is_output(leaf: Any) -> bool:
    if isinstance(leaf, np.ndarray | np.generic | Tensor):
        return bool(leaf.dtype.kind in "fc")
    return isinstance(leaf, float | complex)


@autograd_function
def _node(ctx: Any, call: _Call, *boxes: Tensor) -> tuple[Tensor, ...]:
    outputs = call.compute(boxes)
    ctx.call, ctx.count = call, len(boxes)
    ctx.save_for_backward(*boxes, *outputs)
    return tuple(outputs)


@_node.backward
def _vjp(ctx: Any, *cotangents: Tensor) -> tuple[Any, ...]:
    call: _Call = ctx.call
    args, ans, saved = _restored(ctx)
    gs = [conjugate(as_ndarrays(g)) for g in cotangents]
    vjp = call.rules.rule("vjp", call.argnums)(call.argnums, ans, args, call.kwargs)
    found = dict(zip(call.argnums, vjp(call.result_with(tuple(gs))), strict=True))
    grads: list[Any] = []
    for i, arg in enumerate(call.args):
        for _, leaf, grad in pytree.zip_leaves(arg, found.get(i, arg)):
            if isbox(leaf):
                grads.append(_of_shape(call.rules.name, conjugate(grad), saved[len(grads)]))
    return (None, *grads)


@_node.jvp
def _jvp(ctx: Any, _: Any, *tangents: Any) -> tuple[Any, ...]:
    call: _Call = ctx.call
    args, ans, saved = _restored(ctx)
    given = call.args_with(
        [as_ndarrays(_zeros(x) if t is None else t) for t, x in zip(tangents, saved, strict=False)]
    )
    gs = [given[i] for i in call.argnums]
    found = call.rules.rule("jvp", call.argnums)(call.argnums, gs, ans, args, call.kwargs)
    pairs = pytree.zip_leaves(call.result, found)
    return tuple(
        _of_shape(call.rules.name, t, np.asarray(getval(x))) for _, x, t in pairs if _is_output(x)
    )


def _restored(ctx: Any) -> tuple[Any, Any, Any]:
    """Return arguments and result for a rule, and the saved arguments."""
    call, saved = ctx.call, ctx.saved_tensors
    boxes = [as_ndarrays(x) for x in saved[: ctx.count]]
    return call.args_with(boxes), call.result_with(tuple(saved[ctx.count :])), saved


def _zeros(x: Tensor) -> Tensor:
    return make(np.zeros(x.shape, x.dtype), None)


def _of_shape(name: str, found: Any, x: Any) -> Any:
    """Return a derivative that a rule gave, checked: a tensor, None for zeros."""
    if found is None:
        return None
    if np.iscomplexobj(found) and x.dtype.kind != "c":
        found = np.real(found)
    if not isinstance(found, Tensor):
        found = make(np.asarray(found, x.dtype), None)
    if found.shape != x.shape:
        raise ValueError(
            f"{name}: its rule returned a derivative of shape {found.shape} for an array of shape "
            f"{x.shape}: sum it over broadcast dimensions, as unbroadcast_f(x, lambda g: ...) does"
        )
    return found


def conjugate(value: Any) -> Any:
    """Return complex numbers conjugated, others as they are."""
    if value is None or not np.iscomplexobj(value):
        return value
    return np.conjugate(value)
