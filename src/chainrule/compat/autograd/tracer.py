"""Functions with rules of their own, recorded as one node: `primitive`, and what boxes are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import update_wrapper
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.conversions import RUNNING, Running
from chainrule.autograd.location import user_stack_level
from chainrule.compat.autograd.call_trace import Node as Node
from chainrule.compat.autograd.call_trace import trace as trace
from chainrule.errors import ArgumentTypeError, MissingRuleError
from chainrule.foreign import ForeignCall, is_box, number_of
from chainrule.interrupts import call_with
from chainrule.numpy import ndarray

__all__ = ["Box", "Rules", "getval", "isbox", "notrace_primitive", "primitive", "rules_of"]


isbox, getval = is_box, number_of


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
        raise ArgumentTypeError(
            f"objects of {value_type.__name__} can't be differentiated by: gradients are arrays, "
            "and dicts, lists, tuples and dataclasses of them. Make it a dataclass of arrays"
        )


def _value(box: Any) -> Any:
    """Return the number of a box, as programs written for HIPS autograd read it to print it."""
    return getval(box)


# The class has the attribute only where this package is imported, so it does not declare it.
setattr(ndarray, _value.__name__, property(_value))


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
            return _Call(rules, args, kwargs).recorded()
        values = pytree.map_leaves(args, getval)
        return call_with({PLAIN: RUNNING.get()}, f_raw, *values, **kwargs)

    update_wrapper(recorded, f_raw)
    vars(recorded)["_rules"] = rules
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
            raise ArgumentTypeError(
                f"{name}: the keyword argument {path.strip('[]')} is differentiated, and rules are "
                "given for positional arguments: pass it by position"
            )


class _Call(ForeignCall):
    """A recorded call of a primitive."""

    def __init__(self, rules: Rules, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__(rules.name, rules.function, args, kwargs)
        self.rules = rules

    def call(self, args: Any) -> Any:
        return call_with({PLAIN: RUNNING.get()}, super().call, args)

    def cotangents(self, g: Any, ans: Any, args: Any) -> Sequence[Any]:
        vjp = self.rules.rule("vjp", self.argnums)(self.argnums, ans, args, self.kwargs)
        found = vjp(pytree.map_leaves(g, conjugate))
        return [pytree.map_leaves(part, conjugate) for part in found]

    def tangent(self, tangents: Sequence[Any], ans: Any, args: Any) -> Any:
        rule = self.rules.rule("jvp", self.argnums)
        return rule(self.argnums, tangents, ans, args, self.kwargs)


def conjugate(value: Any) -> Any:
    """Return complex numbers conjugated, others as they are."""
    if value is None or not np.iscomplexobj(value):
        return value
    return np.conjugate(value)
