"""Functions that are NumPy's own outside of transforms, and recorded inside."""

from __future__ import annotations

import types
from collections.abc import Callable, Container, MutableMapping
from functools import update_wrapper
from typing import Any

import numpy as np

from chainrule.autograd.conversions import RUNNING
from chainrule.compat.autograd.tracer import PLAIN, primitive

__all__ = ["wrap_namespace", "wrapped_names"]


class _Ufunc:
    """A ufunc: its call and its methods are recorded inside a transform."""

    def __init__(self, own: Any, recorded: Any) -> None:
        self._own, self._recorded = own, recorded
        self.__name__, self.__doc__ = own.__name__, own.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        chosen = self._own if RUNNING.get() is PLAIN.get() else self._recorded
        return chosen(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own if RUNNING.get() is PLAIN.get() else self._recorded, name)

    def __repr__(self) -> str:
        return repr(self._own)


def _function(own: Callable[..., Any], recorded: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return (own if RUNNING.get() is PLAIN.get() else recorded)(*args, **kwargs)

    return update_wrapper(function, own)


def _joining(join: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes the arrays that it joins from any iterable."""

    def function(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        is_array = isinstance(arrays, list | tuple) or hasattr(arrays, "__array__")
        return join(arrays if is_array else list(arrays), *args, **kwargs)

    return update_wrapper(function, join)


_JOINING = {"concatenate", "stack", "vstack", "hstack", "column_stack"}


def wrapped_names(module: Any, recorded: Any, without: Container[str]) -> dict[str, Any]:
    """Return the public names of a module of NumPy's, `recorded` inside a transform."""
    found: dict[str, Any] = {}
    for name in dir(module):
        if name.startswith("_") or name in without:
            continue
        value = getattr(module, name)
        if isinstance(value, np.ufunc):
            found[name] = _Ufunc(value, getattr(recorded, name))
        elif isinstance(value, type | types.ModuleType) or not callable(value):
            own = module.__name__ == "numpy" and name in ("r_", "c_")
            found[name] = getattr(recorded, name) if own else value
        else:
            function = _function(value, getattr(recorded, name))
            found[name] = _joining(function) if name in _JOINING else function
    return found


def wrap_namespace(old: Any, new: MutableMapping[str, Any]) -> None:
    """Put the functions of a namespace into another one, as primitives without rules."""
    for name, value in dict(old).items():
        is_class = isinstance(value, type | types.ModuleType)
        new[name] = primitive(value) if callable(value) and not is_class else value
