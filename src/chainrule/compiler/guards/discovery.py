"""Where a function finds what it uses: its globals, its closure, and what these lead to.

A compiled function holds for what it saw. So it asks before each call whether the tensors it closes
over are still the same ones, and Python numbers still the same numbers. Of an object it asks only
for the attributes that some code names which the function can reach: a counter that only the loop
around it knows may change. Of a function it asks for the code and the default arguments, of a class
for the methods and attributes that are named.
"""

from __future__ import annotations

import builtins
import copy
import dis
import functools
import inspect
import numbers
import operator
import os
import sys
import types
from collections import deque
from collections.abc import Iterable, MappingView
from enum import Enum
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor

_PLAIN = (str, bytes, bytearray, type(None), np.generic, np.dtype, numbers.Number, range, slice)
_BY_IDENTITY = (Tensor, types.FunctionType, types.BuiltinFunctionType, np.ufunc, np.ndarray)
_MOST = 5000
"""Things to look at: what is nearer comes first."""


class Found:
    """Something that a function can get at: how, and what it was."""

    __slots__ = ("alike", "form", "path", "scope", "value")

    def __init__(
        self, scope: Any, path: str, value: Any, alike: bool = False, form: str = ""
    ) -> None:
        self.scope = scope  # a namespace (dict), a cell, or an object
        self.path = path  # source that leads on from there
        self.value = value
        self.alike = alike  # whether an equal one is as good
        self.form = form  # source of what has to hold for the two, if not that they are the same

    def holds(self) -> bool:
        """Say whether it is still the same."""
        names = {"scope": self.scope, "held": self.value}
        try:
            if self.form:
                return bool(eval(self.form.format(f"scope{self.path}", "held"), names))
            value = eval(f"scope{self.path}", names)
        except (KeyError, AttributeError, IndexError, TypeError, ValueError):
            return False
        same = value is self.value
        return same or (self.alike and type(value) is type(self.value) and value == self.value)


_LACKS = "{1}.isdisjoint({0})"
_ORDER = "list({0}) == {1}"
_EMPTY = "{0} == {1}"


class _At:
    """What a dict has for a key that source can't spell, such as a tensor."""

    __slots__ = ("key", "of")

    def __init__(self, of: dict[Any, Any], key: Any) -> None:
        self.of, self.key = of, key

    @property
    def value(self) -> Any:
        return self.of[self.key]


def reachable(function: Any, objects: Iterable[Any]) -> list[Found]:
    """Return what a function can get at by names: tensors, numbers, containers and their kin.

    And what the objects among its arguments hold.
    """
    names: set[str] = set()
    while True:  # an object's methods bring more names
        before = len(names)
        search = _Search(names)
        search.function(function)
        for item in objects:
            search.add(item, "", item)
        search.run()
        if len(names) == before:
            return search.found


class _Search:
    """One walk from a function, breadth first, through what some code names."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.found: list[Found] = []
        self._seen: set[int] = set()
        self._known: set[tuple[int, str]] = set()  # methods of classes
        self._open: deque[tuple[Any, str, Any]] = deque()

    def add(self, scope: Any, path: str, value: Any) -> None:
        """Put on the list what is to be looked at."""
        self._open.append((scope, path, value))

    def run(self) -> None:
        """Look at what is there, and at what that leads to."""
        steps = 0
        while self._open and steps < _MOST:
            self._look(*self._open.popleft())
            steps += 1

    def function(self, function: Any) -> None:
        """Look at what the names in a function mean."""
        if isinstance(function, types.MethodType):
            self.add(function, ".__self__", function.__self__)
            function = function.__func__
        wrapped = _wrapped(function)
        if wrapped is not None:
            self.function(wrapped)
        if not isinstance(function, types.FunctionType):
            if wrapped is None and not isinstance(function, type):
                self.add(function, "", function)
            return
        if id(function) in self._seen or _is_installed(function):
            return
        self._seen.add(id(function))
        self.found.append(Found(function, ".__code__", function.__code__))
        used = _names(function.__code__)
        self.names |= used
        for cell in function.__closure__ or ():
            try:
                self.add(cell, ".cell_contents", cell.cell_contents)
            except ValueError:  # not filled yet
                self.found.append(Found(cell, "", types.CellType(), form=_EMPTY))
        for name in ("__defaults__", "__kwdefaults__"):
            defaults = getattr(function, name)
            if defaults is not None:
                self.found.append(Found(function, f".{name}", defaults))
                self.add(defaults, "", defaults)
        space = function.__globals__
        for name in sorted(used & space.keys()):
            self.add(space, f"[{name!r}]", space[name])
        missing = frozenset(
            name
            for name in _globals(function.__code__)
            if name not in space and not hasattr(builtins, name)
        )
        if missing:
            self.found.append(Found(space, "", missing, form=_LACKS))

    def _look(self, scope: Any, path: str, value: Any) -> None:
        if isinstance(value, (*_PLAIN, *_BY_IDENTITY)) or is_generator(value):
            if path or is_generator(value):
                self.found.append(Found(scope, path, value, isinstance(value, _PLAIN)))
            if isinstance(value, types.FunctionType):
                self.function(value)
            elif is_generator(getattr(value, "__self__", None)):  # a method of what draws
                self.add(value.__self__, "", value.__self__)
            return
        if isinstance(value, type):
            self._class(scope, path, value)
            return
        if id(value) in self._seen:  # by another way before: still the same object?
            if path:
                self.found.append(Found(scope, path, value))
            return
        self._seen.add(id(value))
        if _wrapped(value) is not None or isinstance(value, types.MethodType):
            self.function(value)
        elif isinstance(value, types.ModuleType):
            self._module(value)
        elif isinstance(value, dict):
            self._dict(scope, path, value)
        elif isinstance(value, list | tuple | deque):
            self._sequence(scope, path, value)
        elif isinstance(value, set | frozenset):
            self.found.append(Found(scope, path, copy.copy(value), True))
            self._open += [(part, "", part) for part in value]
        else:
            self._object(scope, path, value)

    def _module(self, module: types.ModuleType) -> None:
        self._open += [(item, "", item) for item in drawing(module, self.names)]
        if module.__name__.split(".")[0] not in _LIBRARIES:
            space = vars(module)
            self._open += [(space, f"[{n!r}]", space[n]) for n in sorted(self.names & space.keys())]

    def _dict(self, scope: Any, path: str, value: dict[Any, Any]) -> None:
        self.found.append(Found(scope, f"{path}.__len__()", len(value), True))
        for key, part in value.items():
            if _is_literal(key):
                self.add(scope, f"{path}[{key!r}]", part)
            else:
                self.add(_At(value, key), ".value", part)
        if all(map(_is_literal, value)):
            self.found.append(Found(scope, path, list(value), form=_ORDER))
        elif path:
            self.found.append(Found(scope, path, value))

    def _sequence(self, scope: Any, path: str, value: Any) -> None:
        if len(value) > _SHORT and all(isinstance(part, _PLAIN) for part in value):
            self.found.append(Found(scope, path, copy.copy(value), True))
            return
        if path:
            self.found.append(Found(scope, f"{path}.__len__()", len(value), True))
        self._open += [(scope, f"{path}[{i}]", part) for i, part in enumerate(value)]

    def _object(self, scope: Any, path: str, value: Any) -> None:
        if path:
            self.found.append(Found(scope, f"{path}.__class__", type(value)))
        if isinstance(value, functools.partial):
            parts = [(f".{name}", getattr(value, name)) for name in ("func", "args", "keywords")]
        else:
            if type(value) in _BY_NAME:
                self.names.add("getattr")
            classes = [c for c in type(value).__mro__ if c.__module__ != "builtins"]
            own = [c for c in classes if _package(c) == "chainrule"]
            for cls in classes:
                self._methods(cls)
            everything = own or not self.names.isdisjoint(_DYNAMIC)
            held = _attributes(value, classes)
            if not (held or hasattr(value, "__dict__")) and path:  # nobody knows what is in it
                self.found.append(Found(scope, path, value))
            if not own and hasattr(value, "__dict__"):  # that go before methods, and defaults
                lacking = frozenset(self.names - dict(held).keys())
                self.found.append(Found(scope, f"{path}.__dict__", lacking, form=_LACKS))
            parts = [
                (f".{name}", part)
                for name, part in {**self._shared(classes), **dict(held)}.items()
                if name.isidentifier() and (everything or name in self.names)
            ]
        self._open += [(scope, path + step, part) for step, part in parts]

    def _class(self, scope: Any, path: str, cls: type) -> None:
        """Look at what code gets at by a class itself."""
        if path:
            self.found.append(Found(scope, path, cls))
        if id(cls) not in self._seen:
            self._seen.add(id(cls))
            classes = [c for c in cls.__mro__ if c.__module__ != "builtins"]
            for each in (*classes, *inspect.getmro(type(cls))):
                self._methods(each)
            self._open += [(cls, f".{n}", part) for n, part in self._shared(classes).items()]

    def _methods(self, cls: type) -> None:
        """Look at the methods that some code names, and at those that operators call."""
        for name, member in () if _is_library(cls) else list(vars(cls).items()):
            called = name in self.names or (name.startswith("__") and name not in _MAKING)
            methods = [m for m in _functions(member) if isinstance(m, types.FunctionType)]
            if called and methods:
                if (id(cls), name) not in self._known:
                    self._known.add((id(cls), name))
                    self.found.append(Found(cls, f".__dict__[{name!r}]", member))
                for method in methods:
                    self.function(method)

    def _shared(self, classes: list[Any]) -> dict[str, Any]:
        """Return the attributes of classes that some code names, but for methods and the like."""
        return {
            name: part
            for cls in reversed(classes)
            if not _is_library(cls)
            for name, part in vars(cls).items()
            if name in self.names and name not in _MAKING and not hasattr(type(part), "__get__")
        }


_SHORT = 8
"""Of more plain numbers than these a list is compared as a whole."""

_LIBRARIES = frozenset(["chainrule", "numpy", "scipy", *sys.stdlib_module_names])
_DYNAMIC = ("getattr", "vars", "__dict__", "asdict", "fields")
_MAKING = ("__init__", "__new__", "__init_subclass__", "__del__", "__repr__", "__reduce__")
_BY_NAME = (operator.attrgetter, operator.methodcaller)


def _functions(member: Any) -> list[Any]:
    """Return the functions behind a member of a class: a method, property or other descriptor."""
    found = [getattr(member, name, None) for name in ("__func__", "fget", "func")]
    return [member, *found, getattr(type(member), "__get__", None)]


def _is_library(cls: type) -> bool:
    return cls.__module__ == "builtins" or _package(cls) in _LIBRARIES


def _attributes(value: Any, classes: list[Any]) -> list[tuple[str, Any]]:
    """Return what an object holds, in its dict and its slots."""
    slots = [name for cls in classes for name in vars(cls).get("__slots__", ())]
    held = [(name, getattr(value, name)) for name in slots if hasattr(value, name)]
    return [*getattr(value, "__dict__", {}).items(), *held]


def _wrapped(thing: Any) -> Any:
    """Return the function that a decorator has wrapped; some objects have any attribute."""
    return getattr(thing, "__dict__", {}).get("__wrapped__")


def _is_installed(function: types.FunctionType) -> bool:
    """Say whether a function is of a library, whose globals are nobody's to change."""
    installed = f"{os.sep}site-packages{os.sep}" in function.__code__.co_filename
    return installed or _package(function) in _LIBRARIES


def _package(thing: Any) -> str:
    return (getattr(thing, "__module__", None) or "").split(".")[0]


def _is_literal(key: Any) -> bool:
    """Say whether the `repr` of a key is source for it."""
    if isinstance(key, tuple):
        return all(map(_is_literal, key))
    return isinstance(key, bool | int | str | bytes | None) and type(key).__module__ == "builtins"


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
        elif isinstance(constant, str) and constant.isidentifier():
            names.add(constant)  # for getattr(), and its kin
    return names


@functools.lru_cache(1024)
def _globals(code: types.CodeType) -> frozenset[str]:
    """Return the names that a function, and those in it, look up as globals."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname in _LOOKS}
    inner = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return frozenset(found.union(*map(_globals, inner)))


_LOOKS = ("LOAD_GLOBAL", "LOAD_NAME")


def is_constant(x: Any) -> bool:
    """Say whether something can't change, or is one for all: numbers, text, functions, classes."""
    fixed = (*_PLAIN, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, Enum)
    if isinstance(x, frozenset):
        return all(map(is_constant, x))
    return (isinstance(x, fixed) and not isinstance(x, bytearray)) or x is ...


def is_iterator(x: Any) -> bool:
    """Say whether something goes on each time it is asked, in a way that nobody can look at."""
    goes_on = hasattr(type(x), "__next__") and not hasattr(x, "__dict__")
    return goes_on or isinstance(x, MappingView)


def is_generator(x: Any) -> bool:
    """Say whether something draws random numbers, as NumPy's generators, or Python's."""
    kinds = [vars(sys.modules[n]).get(c) for n, c in _DRAWING.items() if n in sys.modules]
    return hasattr(type(x), "bit_generator") or isinstance(x, tuple(filter(None, kinds)))


_DRAWING = {"random": "Random", "numpy.random": "RandomState"}
"""Classes that are known where their module is, which is not imported for that."""


def drawing(module: types.ModuleType, names: set[str]) -> list[Any]:
    """Return what the functions of a module draw from, if some code may use them."""
    if module is sys.modules.get("random"):
        return [vars(module)["_inst"]]
    if module is sys.modules.get("numpy.random") or (module is np and "random" in names):
        return [np.random.mtrand._rand]
    return []
