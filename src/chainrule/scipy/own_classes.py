"""SciPy's classes in Python: objects whose methods take what is differentiated.

An object that is made of it is one of SciPy's code, run again. One that is made of numbers alone is
SciPy's own and knows how it was made: a method that gets what is differentiated makes it again.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.conversions import RUNNING
from chainrule.errors import AutogradError
from chainrule.numpy.array_class import as_ndarrays
from chainrule.scipy.dispatch import RUN_AGAIN, either_class, has_tensors

__all__ = ["class_of", "recording"]

Naming = Callable[[Callable[..., Any]], Callable[..., Any]]

_MADE = "_chainrule_made"


class _Made(NamedTuple):
    """How an object was made: by its class, one of the class's methods, or one of an object."""

    again: Callable[[], Any]  # returns the class or the object whose method was called
    method: str
    args: Any
    settings: Any
    attributes: dict[str, Any]  # of the object then

    def object(self, now: Any) -> Any:
        """Return the object, made again of arrays that record."""
        found = vars(now)
        if any([found.get(name, self) is not value for name, value in self.attributes.items()]):
            raise AutogradError(
                f"{type(now).__name__}: this object was changed after it was made of numbers, and "
                "can't be made again for what is differentiated: make it within the function, or "
                "of tensors"
            )
        owner = self.again()
        make = getattr(owner, self.method) if self.method else owner
        return make(*recording(self.args), **recording(self.settings))


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
    return _again(values) if _is_kept(values) else as_ndarrays(values)


def class_of(scipys: type, module: str, again: Callable[[], Any], naming: Naming) -> Any:
    """Return the class that stands for one of SciPy's in a module.

    `again` returns the class that was run again, and `naming` a function whose errors name it.
    """

    write = getattr(scipys, "__setitem__", None)

    @naming
    def make(*args: Any, **settings: Any) -> Any:
        return again()(*recording(args), **recording(settings))

    def plain(*args: Any, **settings: Any) -> Any:
        return keep(scipys(*args, **settings), again, "", args, settings)

    def chooses(values: Any) -> bool:
        return RUNNING.get() is not None or has_tensors(values)

    def keep(value: Any, owner: Any, name: str, args: Any, settings: Any) -> Any:
        if type(value) is scipys:
            made = _Made(owner, name, _copied(args), _copied(settings), dict(vars(value)))
            with contextlib.suppress(TypeError):  # of a class with slots
                value.__class__ = found
                vars(value)[_MADE] = made
        return value

    def of_class(name: str) -> Any:
        def call(*args: Any, **settings: Any) -> Any:
            if chooses([*args, *settings.values()]):
                return getattr(again(), name)(*recording(args), **recording(settings))
            return keep(getattr(scipys, name)(*args, **settings), again, name, args, settings)

        return staticmethod(functools.wraps(getattr(scipys, name))(call))

    def method(name: str) -> Any:
        scipys_own = getattr(scipys, name)

        @functools.wraps(scipys_own)
        def call(self: Any, *args: Any, **settings: Any) -> Any:
            if has_tensors(args, settings) and _is_kept(self):
                return getattr(_again(self), name)(*recording(args), **recording(settings))
            found = scipys_own(self, *args, **settings)
            return keep(found, functools.partial(_again, self), name, args, settings)

        return call

    def set_item(self: Any, *args: Any) -> None:
        if _is_kept(self):
            vars(self)[_MADE] = vars(self)[_MADE]._replace(attributes={"": None})
        assert write is not None
        write(self, *args)

    found = either_class(scipys, make, chooses, _Recording, plain)
    found.__module__ = module
    if write is not None:
        found.__setitem__ = set_item
    for name in dir(scipys):
        value = inspect.getattr_static(scipys, name)
        if isinstance(value, staticmethod | classmethod):
            if name[0] != "_":
                setattr(found, name, of_class(name))
        elif inspect.isfunction(value) and (name[0] != "_" or name in _OPERATORS):
            setattr(found, name, method(name))
    return found


_OPERATORS = frozenset(
    f"__{name}__"
    for name in (
        *("call", "getitem", "pow", "matmul", "rmatmul", "mul", "rmul", "truediv"),
        *("add", "radd", "sub", "rsub"),
    )
)


def _is_kept(value: Any) -> bool:
    return hasattr(value, "__dict__") and _MADE in vars(value)


def _again(kept: Any) -> Any:
    made = vars(kept)[_MADE]
    return contextvars.Context().run(made.object, kept)  # in no trace: it is made of numbers


def _copied(values: Any) -> Any:
    if values.__class__ in (list, tuple):
        return values.__class__([_copied(part) for part in values])
    if values.__class__ is dict:
        return {key: _copied(part) for key, part in values.items()}
    return values.copy() if values.__class__ is np.ndarray else values
