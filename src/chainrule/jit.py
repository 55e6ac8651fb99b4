"""Decorators of `torch.jit`: `script` compiles functions, and leaves modules as they are."""

from __future__ import annotations

import builtins
import sys
from importlib import import_module
from types import FunctionType, ModuleType, UnionType
from typing import TYPE_CHECKING, Any, Final, TypeVar, Union, get_args, get_origin

from chainrule.compiler import compile
from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.missing_names import missing

__all__ = [
    "script",
    "trace",
    "ignore",
    "unused",
    "export",
    "script_method",
    "is_scripting",
    "is_tracing",
    "trace_module",
    "script_if_tracing",
    "annotate",
    "Attribute",
    "Final",
    "isinstance",
    "interface",
    "freeze",
    "optimize_for_inference",
    "set_fusion_strategy",
    "Future",
    "fork",
    "wait",
]

F = TypeVar("F")


def script(obj: Any) -> Any:
    """Return a function compiled by `chainrule.compile`; a module as it is.

    Examples
    --------
    >>> import chainrule as cr
    >>> @cr.jit.script
    ... def double(x):
    ...     return x + x
    >>> double(cr.ones(2))
    tensor([2., 2.])
    """
    return compile(obj) if builtins.isinstance(obj, FunctionType) else obj


def trace(func: Any, example_inputs: Any = None, **settings: Any) -> Any:
    """Return `script(func)`: a compiled function is traced again when its arguments need it."""
    return script(func)


def ignore(function: F) -> F:
    """Return `function`: nothing is left out of compilation."""
    return function


unused = export = script_method = script_if_tracing = interface = ignore


def trace_module(mod: Any, inputs: Any = None, **settings: Any) -> Any:
    """Return the module as it is, as `script` does."""
    return mod


freeze = optimize_for_inference = trace_module


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return `the_value`: types need no declaration."""
    return the_value


def Attribute(value: Any, type: Any) -> Any:
    """Return `value`: types need no declaration."""
    return value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether an object is of a type, and its elements of the types given for them.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.jit.isinstance([1], list[int]), cr.jit.isinstance([1], list[str])
    (True, False)
    """
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, kind) for kind in target_type)
    kind, parts = get_origin(target_type) or target_type, get_args(target_type)
    if kind in (Union, UnionType):
        return isinstance(obj, parts)
    if not builtins.isinstance(obj, type(None) if kind is None else kind):
        return False
    if builtins.isinstance(obj, dict) and parts:
        return all(isinstance(k, parts[0]) and isinstance(v, parts[1]) for k, v in obj.items())
    if builtins.isinstance(obj, tuple) and parts and parts[-1] is not Ellipsis:
        return len(obj) == len(parts) and all(map(isinstance, obj, parts))
    return not builtins.isinstance(obj, list | tuple | set) or all(
        isinstance(part, parts[:1] or object) for part in obj
    )


def set_fusion_strategy(strategy: Any) -> None:
    """Do nothing: what is fused is decided for each function."""


class Future:
    """The result of `fork`, or a value that is set later: `wait` returns it."""

    def __init__(self, **settings: Any) -> None:
        self._values: list[Any] = []

    def set_result(self, result: Any) -> None:
        """Set the result."""
        self._values.append(result)

    def done(self) -> bool:
        """Return whether there is a result."""
        return bool(self._values)

    def wait(self) -> Any:
        """Return the result; raise if there is none yet."""
        if not self._values:
            raise ArgumentError("Future.wait: there is no result: call set_result before")
        return self._values[-1]

    value = wait

    def then(self, callback: Any) -> Future:
        """Return the future of a function of this one."""
        return fork(callback, self)


def fork(func: Any, *args: Any, **kwargs: Any) -> Future:
    """Return the future of a call, which is made at once: operations share large work by threads.

    Examples
    --------
    >>> import chainrule as cr
    >>> future = cr.jit.fork(cr.exp, cr.zeros(2))
    >>> cr.jit.wait(future)
    tensor([1., 1.])
    """
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """Return the result of a `fork`."""
    return future.wait()


def is_scripting() -> bool:
    """Return False: what is compiled runs as Python once, to be traced."""
    return False


is_tracing = is_scripting


class _Callable(ModuleType):
    """The type of this module, which raises where it is called as JAX's `jit` is."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ArgumentTypeError("cr.jit is a module, as torch.jit is: write cr.compile(f)")


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        if name == "ScriptModule":  # modules stay as they are
            return import_module("chainrule.nn").Module
        raise missing(__name__, name)

    sys.modules[__name__].__class__ = _Callable
