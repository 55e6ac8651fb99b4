"""Decorators of `torch.jit`: `script` compiles functions, and leaves modules as they are."""

from __future__ import annotations

import sys
from importlib import import_module
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from chainrule.compiler import compile
from chainrule.errors import ArgumentTypeError
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
    return compile(obj) if isinstance(obj, FunctionType) else obj


def trace(func: Any, example_inputs: Any = None, **settings: Any) -> Any:
    """Return `script(func)`: a compiled function is traced again when its arguments need it."""
    return script(func)


def ignore(function: F) -> F:
    """Return `function`: nothing is left out of compilation."""
    return function


unused = export = script_method = ignore


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
