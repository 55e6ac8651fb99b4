"""SciPy's classes in Python: objects whose methods take what is differentiated.

An object that is made of it is one of SciPy's code, run again. One that is made of numbers alone is
SciPy's own: a method that gets what is differentiated runs on a copy of the other kind.
"""

from __future__ import annotations

import contextlib
import copyreg
import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from chainrule.autograd.conversions import RUNNING
from chainrule.numpy.array_class import as_ndarrays
from chainrule.scipy.dispatch import RUN_AGAIN, either_class, has_tensors

__all__ = ["class_of", "recording"]

_SCIPYS: dict[type, type] = {}
"""SciPy's classes, by those that stand for them."""
_AGAIN: dict[type, Callable[[], Any]] = {}
"""Functions that return the class that was run again, by SciPy's class."""


class _RunAgain(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return hasattr(type(instance), RUN_AGAIN)


class _Recording(metaclass=_RunAgain):
    """Objects of classes that were run again."""


def recording(values: Any) -> Any:
    """Return arguments for code that runs again: arrays that record, and objects of its classes."""
    if values.__class__ in (list, tuple):
        return values.__class__([recording(part) for part in values])
    if values.__class__ is dict:
        return {key: recording(part) for key, part in values.items()}
    kind = _SCIPYS.get(values.__class__, values.__class__)
    is_own = kind.__module__.startswith("scipy.") and not hasattr(kind, RUN_AGAIN)
    if not is_own or _standing_for(kind) is None:
        return as_ndarrays(values)
    return _copied(values, _AGAIN[kind]())


def _copied(value: Any, kind: Any) -> Any:
    """Return a copy of an object as one of another class, as `copy.copy` makes it."""
    make, args, state = (*value.__reduce_ex__(2), None)[:3]
    if make is not vars(copyreg)["__newobj__"]:
        return value
    made, state = make(kind, *recording(args[1:])), recording(state)
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
    else:
        vars(made).update(state or {})
    return made


@functools.cache
def _standing_for(kind: type) -> Any:
    """Return the class that stands for one of SciPy's, or for one beside it that is private."""
    package, _, module = f"chainrule.{kind.__module__}".rpartition(".")
    for path in (package, f"{package}.{module.lstrip('_')}"):  # as `scipy.stats.qmc`
        with contextlib.suppress(ImportError):
            for base in kind.__mro__:
                found: Any = getattr(import_module(path), base.__name__, None)
                if _SCIPYS.get(found) is base and base.__module__ == kind.__module__:
                    return found if base is kind else found.standing_for(kind)
    return None


def _adopted(value: Any) -> Any:
    """Return a result of SciPy's own, whose methods take what is differentiated."""
    if value.__class__ in (list, tuple):
        return value.__class__([_adopted(part) for part in value])
    if value.__class__.__module__.startswith("scipy."):
        found = _standing_for(value.__class__)
        with contextlib.suppress(TypeError):  # of a class with slots
            value.__class__ = found or value.__class__
    return value


def class_of(
    scipys: type,
    module: str,
    again: Callable[[type], Any],
    naming: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> Any:
    """Return the class that stands for one of SciPy's in a module.

    `again` returns the class that was run again, and `naming` a function whose errors name it.
    """

    def run(function: Any, args: Any, settings: Any) -> Any:
        return naming(function)(*recording(args), **recording(settings))

    def make(*args: Any, **settings: Any) -> Any:
        return run(again(scipys), args, settings)

    def plain(*args: Any, **settings: Any) -> Any:
        return _adopted(scipys(*args, **settings))

    def chooses(values: Any) -> bool:
        return RUNNING.get() is not None or has_tensors(values)

    def of_class(name: str) -> Any:
        scipys_own = getattr(scipys, name)

        def call(*args: Any, **settings: Any) -> Any:
            if chooses([*args, *settings.values()]):
                return run(getattr(again(scipys), name), args, settings)
            return _adopted(scipys_own(*args, **settings))

        return staticmethod(functools.wraps(scipys_own)(call))

    def method(scipys_own: Any) -> Any:
        @functools.wraps(scipys_own)
        def call(self: Any, *args: Any, **settings: Any) -> Any:
            if self.__class__ is not found or not has_tensors(args, settings):
                return _adopted(scipys_own(self, *args, **settings))
            return run(getattr(recording(self), scipys_own.__name__), args, settings)

        return call

    found = either_class(scipys, make, chooses, _Recording, plain)
    found.__module__ = module
    found.standing_for = staticmethod(lambda kind: class_of(kind, module, again, naming))
    _SCIPYS[found], _AGAIN[scipys] = scipys, functools.partial(again, scipys)
    for name in dir(scipys):
        value = inspect.getattr_static(scipys, name)
        if isinstance(value, staticmethod | classmethod):
            if name[0] != "_":
                setattr(found, name, of_class(name))
        elif inspect.isfunction(value) and (name[0] != "_" or name in _OPERATORS):
            setattr(found, name, method(value))
    return found


_OPERATORS = frozenset(
    f"__{name}__"
    for name in (
        *("call", "getitem", "pow", "matmul", "rmatmul", "mul", "rmul", "truediv"),
        *("add", "radd", "sub", "rsub"),
    )
)
