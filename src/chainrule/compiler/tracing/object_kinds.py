"""Kinds of objects that a search meets: plain values, iterators, random generators, wrappers."""

from __future__ import annotations

import functools
import gc
import numbers
import operator
import struct
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator, MappingView
from enum import Enum
from typing import Any

import numpy as np

from chainrule.autograd.node import Node
from chainrule.autograd.tensor import Tensor
from chainrule.primitives.primitive import Plan, Primitive

PLAIN = (str, bytes, type(None), np.generic, np.dtype, numbers.Number, range, slice)
_BUILTIN_FUNCTIONS = (types.BuiltinFunctionType, np.ufunc)
BY_IDENTITY = (Tensor, types.FunctionType, *_BUILTIN_FUNCTIONS, np.ndarray)
PROXIES = (weakref.ProxyType, weakref.CallableProxyType)

GETTERS = (operator.attrgetter, operator.methodcaller)

FIXED = (Node, Primitive, Plan)
"""Classes of this package whose objects don't change, or only as a trace goes on."""

TRACED_BY = ("chainrule.compiler.", "chainrule.control_flow")
"""Modules whose objects a trace changes as it goes on."""


def has_state(value: Any) -> bool:
    """Whether an object of the standard library holds what may change."""
    fixed = (*PLAIN, *BY_IDENTITY, type, types.ModuleType, types.MethodType, Enum)
    return not isinstance(value, fixed)


def by_class(function: Callable[[Any], frozenset[str]]) -> Callable[[type], frozenset[str]]:
    """Cache the result of a function for each class."""
    return functools.lru_cache(4096)(function)


@by_class
def c_attributes(cls: Any) -> frozenset[str]:
    """Return the names of attributes that classes in C, but not type or object, define."""
    descriptors = (types.GetSetDescriptorType, types.MemberDescriptorType)
    found = [
        name
        for each in cls.__mro__
        if each not in (object, type, types.FunctionType, types.ModuleType)
        for name, member in vars(each).items()
        if isinstance(member, descriptors) and not name.startswith("__")
    ]
    return frozenset(found)


@by_class
def public_methods(cls: Any) -> frozenset[str]:
    """Return the names of methods that classes of a package define, except for its base class."""
    *own, _ = [c for c in cls.__mro__ if c.__module__.partition(".")[0] == _package(cls)] or [cls]
    found = {name for c in own for name, member in vars(c).items() if callable(member)}
    return frozenset(name for name in found if name[0] != "_")


def _package(cls: Any) -> str:
    name: str = cls.__module__.partition(".")[0]
    return name


@by_class
def computed_in_c(cls: Any) -> frozenset[str]:
    """Return the names of attributes that descriptors of other packages in C compute.

    Whatever they read from the object, such as a dict of cached values, no code names.
    """
    found = []
    for name in dir(cls):
        member = class_member(cls, name)
        getter = getattr(type(member), "__get__", None)
        if isinstance(getter, types.WrapperDescriptorType):
            found += [name] if type(member).__module__ not in ("builtins", "functools") else []
    return frozenset(found)


def has_hidden_state(value: Any) -> bool:
    """Whether an object of a class in C holds what nothing shows: a digest, a compressor.

    What has a value's equality is taken to be immutable, as dates and patterns are, and what can be
    pickled to show its state in attributes, as contexts of `decimal` do.
    """
    cls: Any = type(value)
    plain: Any = object
    holds = cls.__basicsize__ > object.__basicsize__ and not gc.is_tracked(value)
    shows = cls.__reduce__ is not plain.__reduce__ or cls.__reduce_ex__ is not plain.__reduce_ex__
    by_identity = cls.__hash__ is plain.__hash__
    return holds and by_identity and not shows and not isinstance(value, _STATELESS)


LOCKS = (type(threading.Lock()), type(threading.RLock()))
_STATELESS = (*LOCKS, struct.Struct, types.CodeType)


def class_member(cls: type, name: str) -> Any:
    """Return what classes define under a name for their objects, without calling descriptors."""
    for each in cls.__mro__:
        if name in each.__dict__:
            return each.__dict__[name]
    return None


def is_cached_property(cls: type, name: str) -> bool:
    return isinstance(class_member(cls, name), functools.cached_property)


def is_plain_access(cls: type, name: str) -> bool:
    """Whether `x.name` of an instance is what its `__dict__` holds."""
    own: Any = cls.__getattribute__
    return own is object.__getattribute__ and not hasattr(type(class_member(cls, name)), "__set__")


def functions_of(member: Any) -> Iterator[Any]:
    """Yield the functions of a class member: a method, property or other descriptor."""
    yield member
    if isinstance(member, property):
        yield from (member.fget, member.fset)
    for name in ("__func__", "func", "fget"):
        yield getattr(member, name, None)
    inner = wrapped(member)
    if inner is not None:
        yield inner


def wrapped(thing: Any) -> Any:
    """Return the function that a decorator has wrapped, or None."""
    space = getattr(thing, "__dict__", None)  # some objects have any attribute
    return space.get("__wrapped__") if isinstance(space, dict) else None


def is_literal(key: Any) -> bool:
    """Whether the `repr` of a key is a literal of it."""
    if isinstance(key, tuple):
        return type(key) is tuple and all(map(is_literal, key))
    return isinstance(key, bool | int | str | bytes | None) and type(key).__module__ == "builtins"


def is_plain(x: Any) -> bool:
    """Whether an object is a number, a string or the like, or a tuple of such."""
    if type(x) is tuple:
        return all(map(is_plain, x))
    return isinstance(x, PLAIN)


def is_constant(x: Any) -> bool:
    """Whether an object is immutable or a singleton: numbers, strings, functions, classes."""
    fixed = (*PLAIN, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, Enum)
    if isinstance(x, frozenset):
        return all(map(is_constant, x))
    return isinstance(x, fixed) or x is ...


def is_iterator(x: Any) -> bool:
    """Whether an object is an iterator with hidden state, or a view of a dict."""
    hidden_state = hasattr(type(x), "__next__") and not hasattr(x, "__dict__")
    return hidden_state or isinstance(x, MappingView)


def is_readable(stream: Any) -> bool:
    try:
        return bool(stream.readable())
    except ValueError:  # a closed file
        return False


def is_generator(x: Any) -> bool:
    """Whether an object is a random generator of NumPy or Python that has a state."""
    if type(x).__name__ == "SystemRandom":
        return False
    classes = [vars(sys.modules[n]).get(c) for n, c in _GENERATOR_CLASSES if n in sys.modules]
    return hasattr(type(x), "bit_generator") or isinstance(x, tuple(filter(None, classes)))


_GENERATOR_CLASSES = (
    ("random", "Random"),
    ("numpy.random", "RandomState"),
    ("numpy.random", "BitGenerator"),
)
"""Generator classes by module, for modules that are not imported only for this check."""


def generator_state(generator: Any) -> Any:
    """Return the state of a random generator of NumPy or Python."""
    generator = getattr(generator, "bit_generator", generator)
    if hasattr(generator, "state"):
        return generator.state
    read = getattr(generator, "get_state", None) or generator.getstate  # NumPy's or Python's
    return read()


LOCK_NAMES = frozenset(["acquire", "locked"])
"""Names by which code reads the state of a lock."""

_FINALIZER_NAMES = frozenset(["alive", "detach", "peek"])

_GENERATOR_NAMES = frozenset(
    [
        *("bit_generator", "get_state", "getstate", "jumped", "seed_seq", "spawn"),
        *("__reduce_ex__", "dump", "dumps"),  # of copies and pickles
    ]
)
"""Names by which code reads the state of a random generator."""


def state_names(x: Any) -> frozenset[str]:
    """Return the names by which code reads the state of a lock, finalizer or generator."""
    if isinstance(x, LOCKS):
        return LOCK_NAMES
    if isinstance(x, weakref.finalize):
        return _FINALIZER_NAMES
    if is_generator(x):
        return _GENERATOR_NAMES | {"state"} if hasattr(x, "state") else _GENERATOR_NAMES
    return _GENERATOR_NAMES if isinstance(x, _seed_class()) else frozenset()


def _seed_class() -> Any:
    """Return NumPy's class of seeds, or () if its module is not imported."""
    module: Any = sys.modules.get("numpy.random")
    return module.SeedSequence if module else ()


def module_generators(module: types.ModuleType, names: set[str]) -> list[Any]:
    """Return the global generator of a module, if some code may use it."""
    if module is sys.modules.get("random"):
        return [vars(module)["_inst"]]
    if module is sys.modules.get("numpy.random") or (module is np and "random" in names):
        return [np.random.mtrand._rand]
    return []
