"""Functions that are NumPy's own for NumPy's arrays, and recorded for recorded ones."""

from __future__ import annotations

import types
from collections.abc import Callable, Container, MutableMapping
from functools import update_wrapper
from typing import Any

import numpy as np

from chainrule.autograd.conversions import RUNNING
from chainrule.compat.autograd.tracer import PLAIN, primitive
from chainrule.interop.memory import is_function
from chainrule.interop.operands import tensors_in

__all__ = ["wrap_namespace", "wrapped_names"]


class _Ufunc:
    """A ufunc: its call and its methods are recorded where an argument is."""

    def __init__(self, own: Any, recorded: Any) -> None:
        self._own, self._recorded = own, recorded
        self.__name__, self.__doc__ = own.__name__, own.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self._recorded if _has_boxes(args, kwargs) else self._own)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._own, name)
        return _function(value, getattr(self._recorded, name)) if callable(value) else value

    def __repr__(self) -> str:
        return repr(self._own)


def _function(own: Callable[..., Any], recorded: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return (recorded if _has_boxes(args, kwargs) else own)(*args, **kwargs)

    return update_wrapper(function, own)


def _has_boxes(args: Any, kwargs: Any) -> bool:
    """Return whether there are recorded arrays among arguments, or functions that may have some."""
    found = next(tensors_in((args, kwargs)), None)
    return found is not None or is_function([args, kwargs])


def _joining(join: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes the arrays that it joins from any iterable."""

    def function(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        is_array = isinstance(arrays, list | tuple) or hasattr(arrays, "__array__")
        return join(arrays if is_array else list(arrays), *args, **kwargs)

    return update_wrapper(function, join)


def _making(own: Callable[..., Any], recorded: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose arrays can be written to inside a transform: they are recorded."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return (own if RUNNING.get() is PLAIN.get() else recorded)(*args, **kwargs)

    return update_wrapper(function, own)


def _converting(convert: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for which recorded numbers in an array of objects are an array of them."""

    def function(a: Any, dtype: Any = None, **kwargs: Any) -> Any:
        if dtype is object and _has_boxes(a, ()):
            dtype = None
        return convert(a, dtype=dtype, **kwargs)

    return update_wrapper(function, convert)


_MAKING = {"empty", "ones", "zeros", "full", "empty_like", "ones_like", "zeros_like", "full_like"}
_CONVERTING = {"array", "asarray"}
_RECORDING = {"broadcast", "c_", "ndenumerate", "r_"}
_JOINING = {"concatenate", "stack", "vstack", "hstack", "column_stack"}


def wrapped_names(module: Any, recorded: Any, without: Container[str]) -> dict[str, Any]:
    """Return the public names of a module of NumPy's, `recorded` for recorded arrays."""
    found: dict[str, Any] = {}
    for name in dir(module):
        if name.startswith("_") or name in without:
            continue
        value = getattr(module, name)
        if isinstance(value, np.ufunc):
            found[name] = _Ufunc(value, getattr(recorded, name))
        elif isinstance(value, type | types.ModuleType) or not callable(value):
            is_recorded = module is np and name in _RECORDING
            found[name] = getattr(recorded, name) if is_recorded else value
        else:
            wrap = _making if name in _MAKING else _function
            function = wrap(value, getattr(recorded, name))
            if name in _CONVERTING:
                function = _converting(function)
            found[name] = _joining(function) if name in _JOINING else function
    return found


def wrap_namespace(old: Any, new: MutableMapping[str, Any]) -> None:
    """Put the functions of a namespace into another one, as primitives without rules."""
    for name, value in dict(old).items():
        is_class = isinstance(value, type | types.ModuleType)
        new[name] = primitive(value) if callable(value) and not is_class else value
