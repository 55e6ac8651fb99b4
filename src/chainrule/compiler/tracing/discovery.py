"""Discovery of the objects that a function can reach by name: globals, closure, attributes.

Guards check before each call that captured tensors are the same objects as in the trace, and that
Python numbers are equal. Of an object they check only attributes that some reachable code names: a
counter that only the surrounding loop uses may change. Of a function they check code and default
arguments, of a class the named methods and attributes.
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
from chainrule.compiler.ir.constants import constant_key, equality, same_constant

_PLAIN = (str, bytes, bytearray, type(None), np.generic, np.dtype, numbers.Number, range, slice)
_BY_IDENTITY = (Tensor, types.FunctionType, types.BuiltinFunctionType, np.ufunc, np.ndarray)
_MAX_VISITS = 5000
"""Number of objects that one search visits, breadth first."""


class Found:
    """An object that a function can reach: the path to it, and its value when it was found."""

    __slots__ = ("by_value", "form", "path", "scope", "value")

    def __init__(
        self, scope: Any, path: str, value: Any, by_value: bool = False, form: str = ""
    ) -> None:
        self.scope = scope  # a namespace (dict), a cell, or an object
        self.path = path  # source code of the access from there
        self.value = value
        self.by_value = by_value  # whether an equal object of the same type will do
        self.form = form  # source of the condition on object and value, if not identity

    def holds(self) -> bool:
        """Whether the condition still holds."""
        names = {"scope": self.scope, "held": self.value, "constant_key": constant_key}
        try:
            if self.form:
                return bool(eval(self.form.format(f"scope{self.path}", "held"), names))
            value = eval(f"scope{self.path}", names)
        except (KeyError, AttributeError, IndexError, TypeError, ValueError):
            return False
        return value is self.value or (self.by_value and same_constant(value, self.value))


_LACKS = "{1}.isdisjoint({0})"
_EMPTY = "{0} == {1}"


class _DictItem:
    """The item of a dict for a key without literal, such as a tensor."""

    __slots__ = ("key", "of")

    def __init__(self, of: dict[Any, Any], key: Any) -> None:
        self.of, self.key = of, key

    @property
    def value(self) -> Any:
        return self.of[self.key]


def reachable(function: Any, objects: Iterable[Any]) -> list[Found]:
    """Return the tensors, numbers, containers and objects that a function can reach by name.

    `objects` are further starting points: its arguments.
    """
    names: set[str] = set()
    while True:  # methods of objects may use more names
        before = len(names)
        search = _Search(names)
        search.function(function)
        for item in objects:
            search.add(item, "", item)
        search.run()
        if len(names) == before:
            return search.found


class _Search:
    """Breadth-first search from a function, along names that some code uses."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.found: list[Found] = []
        self._seen: set[int] = set()
        self._known: set[tuple[int, str]] = set()  # methods of classes
        self._queue: deque[tuple[Any, str, Any]] = deque()

    def add(self, scope: Any, path: str, value: Any) -> None:
        """Add an object to the queue."""
        self._queue.append((scope, path, value))

    def run(self) -> None:
        """Visit the objects of the queue, and those that they lead to."""
        visits = 0
        while self._queue and visits < _MAX_VISITS:
            self._visit(*self._queue.popleft())
            visits += 1

    def function(self, function: Any) -> None:
        """Visit the closure, defaults and globals of a function."""
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
            except ValueError:  # an empty cell
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

    def _visit(self, scope: Any, path: str, value: Any) -> None:
        if isinstance(value, (*_PLAIN, *_BY_IDENTITY)) or is_generator(value):
            if path or is_generator(value):
                self.found.append(Found(scope, path, value, isinstance(value, _PLAIN)))
            if isinstance(value, types.FunctionType):
                self.function(value)
            elif is_generator(getattr(value, "__self__", None)):  # a method of a generator
                self.add(value.__self__, "", value.__self__)
            return
        if isinstance(value, type):
            self._class(scope, path, value)
            return
        if id(value) in self._seen:  # reached before by another path: check the identity
            if path:
                self.found.append(Found(scope, path, value))
            return
        self._seen.add(id(value))
        if _wrapped(value) is not None or isinstance(value, types.MethodType):
            if path and not isinstance(value, types.MethodType):
                self.found.append(Found(scope, path, value))
            self.function(value)
        elif isinstance(value, types.ModuleType):
            self._module(value)
        elif isinstance(value, dict):
            self._dict(scope, path, value)
        elif isinstance(value, list | tuple | deque):
            self._sequence(scope, path, value)
        elif isinstance(value, set | frozenset):
            self.found.append(Found(scope, path, copy.copy(value), True))
            self._queue += [(part, "", part) for part in value]
        else:
            self._object(scope, path, value)

    def _module(self, module: types.ModuleType) -> None:
        self._queue += [(item, "", item) for item in module_generators(module, self.names)]
        if module.__name__.split(".")[0] not in _LIBRARIES:
            space = vars(module)
            self._queue += [
                (space, f"[{n!r}]", space[n]) for n in sorted(self.names & space.keys())
            ]

    def _dict(self, scope: Any, path: str, value: dict[Any, Any]) -> None:
        self.found.append(Found(scope, f"{path}.__len__()", len(value), True))
        for key, part in value.items():
            if _is_literal(key):
                self.add(scope, f"{path}[{key!r}]", part)
            else:
                self.add(_DictItem(value, key), ".value", part)
        if all(map(_is_literal, value)):
            form, keys = equality(list(value))
            self.found.append(Found(scope, path, keys, form=form.replace("{0}", "list({0})")))
        elif path:
            self.found.append(Found(scope, path, value))

    def _sequence(self, scope: Any, path: str, value: Any) -> None:
        if len(value) > _MAX_ITEMWISE and all(isinstance(part, _PLAIN) for part in value):
            self.found.append(Found(scope, path, copy.copy(value), True))
            return
        if path:
            self.found.append(Found(scope, f"{path}.__len__()", len(value), True))
        self._queue += [(scope, f"{path}[{i}]", part) for i, part in enumerate(value)]

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
            attributes = _attributes(value, classes)
            if not (attributes or hasattr(value, "__dict__")) and path:  # an opaque object
                self.found.append(Found(scope, path, value))
            if not own and hasattr(value, "__dict__"):  # new ones would hide class attributes
                lacking = frozenset(self.names - dict(attributes).keys())
                self.found.append(Found(scope, f"{path}.__dict__", lacking, form=_LACKS))
            parts = [
                (f".{name}", part)
                for name, part in {**self._class_attributes(classes), **dict(attributes)}.items()
                if name.isidentifier() and (everything or name in self.names)
            ]
        self._queue += [(scope, path + step, part) for step, part in parts]

    def _class(self, scope: Any, path: str, cls: type) -> None:
        """Visit the methods and attributes of a class that is reached itself."""
        if path:
            self.found.append(Found(scope, path, cls))
        if id(cls) not in self._seen:
            self._seen.add(id(cls))
            classes = [c for c in cls.__mro__ if c.__module__ != "builtins"]
            for each in (*classes, *inspect.getmro(type(cls))):
                self._methods(each)
            self._queue += [
                (cls, f".{name}", part) for name, part in self._class_attributes(classes).items()
            ]

    def _methods(self, cls: type) -> None:
        """Visit the methods that some code names, and the special methods of operators."""
        for name, member in () if _is_library(cls) else list(vars(cls).items()):
            called = name in self.names or (name.startswith("__") and name not in _LIFECYCLE)
            methods = [m for m in _functions(member) if isinstance(m, types.FunctionType)]
            if called and methods:
                if (id(cls), name) not in self._known:
                    self._known.add((id(cls), name))
                    self.found.append(Found(cls, f".__dict__[{name!r}]", member))
                for method in methods:
                    self.function(method)

    def _class_attributes(self, classes: list[Any]) -> dict[str, Any]:
        """Return the class attributes that some code names, without descriptors."""
        return {
            name: part
            for cls in reversed(classes)
            if not _is_library(cls)
            for name, part in vars(cls).items()
            if name in self.names and name not in _LIFECYCLE and not hasattr(type(part), "__get__")
        }


_MAX_ITEMWISE = 8
"""Number of plain items above which a list is compared at once, not item by item."""

_LIBRARIES = frozenset(["chainrule", "numpy", "scipy", *sys.stdlib_module_names])
_DYNAMIC = ("getattr", "vars", "__dict__", "asdict", "fields")
_LIFECYCLE = ("__init__", "__new__", "__init_subclass__", "__del__", "__repr__", "__reduce__")
_BY_NAME = (operator.attrgetter, operator.methodcaller)


def _functions(member: Any) -> list[Any]:
    """Return the functions of a class member: a method, property or other descriptor."""
    found = [getattr(member, name, None) for name in ("__func__", "fget", "func")]
    return [member, *found, getattr(type(member), "__get__", None)]


def _is_library(cls: type) -> bool:
    return cls.__module__ == "builtins" or _package(cls) in _LIBRARIES


def _attributes(value: Any, classes: list[Any]) -> list[tuple[str, Any]]:
    """Return the attributes of an object, from its dict and its slots."""
    slots = [name for cls in classes for name in vars(cls).get("__slots__", ())]
    in_slots = [(name, getattr(value, name)) for name in slots if hasattr(value, name)]
    return [*getattr(value, "__dict__", {}).items(), *in_slots]


def _wrapped(thing: Any) -> Any:
    """Return the function that a decorator has wrapped, or None."""
    return getattr(thing, "__dict__", {}).get("__wrapped__")  # some objects have any attribute


def _is_installed(function: types.FunctionType) -> bool:
    """Whether a function belongs to an installed library, whose globals don't change."""
    installed = f"{os.sep}site-packages{os.sep}" in function.__code__.co_filename
    return installed or _package(function) in _LIBRARIES


def _package(thing: Any) -> str:
    return (getattr(thing, "__module__", None) or "").split(".")[0]


def _is_literal(key: Any) -> bool:
    """Whether the `repr` of a key is a literal of it."""
    if type(key) is tuple:
        return all(map(_is_literal, key))
    return isinstance(key, bool | int | str | bytes | None) and type(key).__module__ == "builtins"


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
        elif isinstance(constant, str) and constant.isidentifier():
            names.add(constant)  # for getattr() and similar functions
    return names


@functools.lru_cache(1024)
def _globals(code: types.CodeType) -> frozenset[str]:
    """Return the names that a function and its inner functions look up as globals."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname in _GLOBAL_OPCODES}
    inner = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return frozenset(found.union(*map(_globals, inner)))


_GLOBAL_OPCODES = ("LOAD_GLOBAL", "LOAD_NAME")


def is_constant(x: Any) -> bool:
    """Whether an object is immutable or a singleton: numbers, strings, functions, classes."""
    fixed = (*_PLAIN, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, Enum)
    if isinstance(x, frozenset):
        return all(map(is_constant, x))
    return (isinstance(x, fixed) and not isinstance(x, bytearray)) or x is ...


def is_iterator(x: Any) -> bool:
    """Whether an object is an iterator with hidden state, or a view of a dict."""
    hidden_state = hasattr(type(x), "__next__") and not hasattr(x, "__dict__")
    return hidden_state or isinstance(x, MappingView)


def is_generator(x: Any) -> bool:
    """Whether an object is a random generator of NumPy or Python."""
    classes = [
        vars(sys.modules[n]).get(c) for n, c in _GENERATOR_CLASSES.items() if n in sys.modules
    ]
    return hasattr(type(x), "bit_generator") or isinstance(x, tuple(filter(None, classes)))


_GENERATOR_CLASSES = {"random": "Random", "numpy.random": "RandomState"}
"""Generator classes by module, for modules that are not imported only for this check."""


def module_generators(module: types.ModuleType, names: set[str]) -> list[Any]:
    """Return the global generator of a module, if some code may use it."""
    if module is sys.modules.get("random"):
        return [vars(module)["_inst"]]
    if module is sys.modules.get("numpy.random") or (module is np and "random" in names):
        return [np.random.mtrand._rand]
    return []
