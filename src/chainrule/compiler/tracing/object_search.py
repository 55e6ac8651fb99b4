"""Search of objects: their contents and attributes, with the values that they have now."""

from __future__ import annotations

import abc
import contextvars
import functools
import gc
import inspect
import io
import pickle
import sys
import types
import weakref
from abc import ABCMeta, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import numpy as np

from chainrule.compiler.tracing.code_names import COMPUTED_LOOKUPS, names_in
from chainrule.compiler.tracing.container_search import ContainerSearch
from chainrule.compiler.tracing.found import (
    CACHED,
    CLASS_SIZE,
    IDENTITIES,
    LAYOUT,
    ORDER,
    REFERENTS,
    Found,
    Identities,
)
from chainrule.compiler.tracing.locations import (
    is_internal_class,
    is_internal_module,
    is_standard_class,
    is_standard_module,
)
from chainrule.compiler.tracing.object_kinds import (
    BY_IDENTITY,
    FIXED,
    GETTERS,
    PLAIN,
    PROXIES,
    TRACED_BY,
    c_attributes,
    computed_in_c,
    functions_of,
    has_hidden_state,
    is_generator,
    is_iterator,
    is_plain_access,
    module_generators,
    public_methods,
    state_names,
    wrapped,
)
from chainrule.compiler.tracing.varying_numbers import VaryingNumber
from chainrule.errors import CompileError

_MAX_FOUND = 20_000
"""Number of recorded values from which a function is refused, since each call compares them."""

_WHOLE_READS = (*COMPUTED_LOOKUPS, pickle.dump, pickle.dumps)
"""Functions of C that read attributes of any name."""

_MAX_PATH = 160
"""Length, in characters, of a path after which a new one begins at an object on it."""


class Holder:
    """An object whose attributes are recorded as soon as some code names them."""

    __slots__ = ("before", "path", "scope", "slots", "space", "value", "whole")

    def __init__(
        self, scope: Any, path: str, value: Any, space: Any, slots: Iterable[str] = ()
    ) -> None:
        self.scope, self.path, self.value = scope, path, value
        self.space = space  # the namespace of its attributes, or None
        self.slots = frozenset(slots)
        self.before = frozenset(space or ())  # names that it had when it was found
        self.whole = False  # whether all attributes are recorded


class ObjectSearch(ContainerSearch):
    """The objects that were visited, and the attributes of theirs that some code names."""

    def __init__(self, note: Callable[[Any], None] = lambda value: None) -> None:
        super().__init__()
        self._note = note  # takes each array and random generator as it is found
        self._names: set[str] = set()
        self.computes = False  # whether some code looks something up by a computed name
        self._any_attribute = self._tolerant = False
        self._kept: dict[int, Any] = {}  # visited objects by id, held so that ids stay theirs
        self._queue: deque[tuple[Any, str, Any]] = deque()
        self._holders: list[Holder] = []
        self._by_object: dict[int, Holder] = {}
        self._ran: set[int] = set()
        self._members: dict[int, list[tuple[type, str, Any]]] = {}  # methods of classes by code
        self._whole: dict[int, Any] = {}  # objects looked into by computed names
        self._named: set[int] = set()  # ids of modules that code imports or looks up by name
        self._caches: list[Any] = []
        self._streams: list[tuple[str, Any]] = []
        self._state_names = {"__subclasses__"}  # by which code reads what no guard compares

    @abstractmethod
    def _register(self, function: types.FunctionType) -> None:
        """Note a function that may run, or has run already."""

    @abstractmethod
    def _all_modules(self) -> None:
        """Visit all modules."""

    # --- starting points ---

    def add(self, scope: Any, path: str, value: Any) -> None:
        """Add an object to the queue."""
        self._queue.append((scope, path, value))

    def _look_everywhere(self) -> None:
        self._any_attribute = True
        for holder in list(self._holders):
            self._look_up(holder, frozenset())

    # --- objects ---

    def _visit_queue(self) -> None:
        """Visit the objects of the queue, and those that they lead to."""
        while self._queue and not self.errors:
            scope, path, value = self._queue.popleft()
            if len(self.found) > _MAX_FOUND:
                self._refuse(scope, path)
            elif not path or (id(scope), path) not in self._places:
                self._visit(scope, path, value)

    def _refuse(self, scope: Any, path: str) -> None:
        message = (
            f"a compiled function reaches more than {_MAX_FOUND:,} values by name, which each call "
            f"would have to compare (one is at {_readable(path) or type(scope).__name__}): pass "
            "what it needs of them as an argument, or read it outside"
        )
        self.errors.append(CompileError(message))

    def _visit(self, scope: Any, path: str, value: Any) -> None:
        kind = type(value)
        if kind is VaryingNumber:
            return  # the trace notes what depends on it
        if kind in PROXIES:
            self._proxy(scope, path, value)
        elif isinstance(value, PLAIN):
            if path:
                self._record(scope, path, value, True)
            self._subclass(scope, path, value)
            if kind.__module__ == "decimal":
                self._decimal_context()
            if isinstance(value, str) and "{" in value:
                self._strings((value,))  # of `str.format`
        elif is_generator(value):
            self._record(scope, path, value)
            self._note(value)
            self._state_names |= state_names(value)
        elif isinstance(value, BY_IDENTITY):
            self._by_identity(scope, path, value)
        elif isinstance(value, type):
            if path:
                self._record(scope, path, value)
            self._visit_class(value)
        elif isinstance(value, types.ModuleType):
            if path:
                self._record(scope, path, value)
            self._visit_module(value)
        elif isinstance(value, types.MethodType):
            if value.__name__ in state_names(value.__self__):
                self.complete = False
            self.add(scope, f"{path}.__self__", value.__self__)
            self.add(scope, f"{path}.__func__", value.__func__)
        elif id(value) in self._kept:  # reached before by another path: check the identity
            if path:
                self._record(scope, path, value)
        else:
            self._kept[id(value)] = value
            if len(path) > _MAX_PATH:
                self._record(scope, path, value)
                scope, path = value, ""
            self._container(scope, path, value)

    def _visit_class(self, value: type) -> None:
        if value.__module__ == "decimal":
            self._decimal_context()
        if issubclass(value, pickle.Pickler):
            self._look_everywhere()
        if isinstance(value, ABCMeta):
            self._record(abc, ".get_cache_token()", abc.get_cache_token(), True)
        self._open_class(value)
        metaclass: type = type(value)
        for cls in [*value.__mro__[1:], *metaclass.__mro__]:
            self._open_class(cls)

    def _container(self, scope: Any, path: str, value: Any) -> None:
        if value is sys.modules:
            if scope is not vars(sys):  # else the code says which module it looks up
                self._all_modules()
        elif isinstance(value, dict):
            self._dict(scope, path, value)
        elif isinstance(value, list | tuple | deque):
            self._sequence(scope, path, value)
        elif isinstance(value, set | frozenset):
            self._set(scope, path, value)
        else:
            self._object(scope, path, value)
            return
        self._subclass(scope, path, value)

    def _subclass(self, scope: Any, path: str, value: Any) -> None:
        """Visit the attributes that a subclass of a number, array or container has beside these."""
        own = getattr(value, "__dict__", None) is not None
        if own and not is_internal_class(type(value)) and not isinstance(value, Enum):
            self._object(scope, path, value)

    def _decimal_context(self) -> None:
        """Record the settings by which decimal numbers are rounded."""
        decimal = sys.modules["decimal"]
        for name in ("prec", "rounding", "Emin", "Emax"):
            part = getattr(decimal.getcontext(), name)
            self._record(decimal, f".getcontext().{name}", part, True)

    def _by_identity(self, scope: Any, path: str, value: Any) -> None:
        if path:
            self._record(scope, path, value)
        if isinstance(value, types.FunctionType):
            self._register(value)
        elif isinstance(value, np.ndarray):
            if path:
                self._note(value)
            layout = value.shape, value.strides, value.dtype
            self.found.append(Found(value, "", layout, form=LAYOUT))  # it may be resized
            self._subclass(scope, path, value)
            if value.dtype.hasobject:
                for i, part in enumerate(value.flat):
                    self.add(value, f".item({i})", part)
        elif any(value is lookup for lookup in _WHOLE_READS):
            self._look_everywhere()
        elif isinstance(value, types.BuiltinFunctionType):
            owner = value.__self__
            if not isinstance(owner, types.ModuleType | type | None):
                self.add(owner, "", owner)

    def _visit_module(self, module: types.ModuleType) -> None:
        for generator in module_generators(module, self._names):
            self.add(generator, "", generator)
        if not is_internal_module(module):
            self._open(vars(module), "", module, vars(module))

    def _object(self, scope: Any, path: str, value: Any) -> None:
        if path:
            self._record(scope, path, value)
        self._state_names |= state_names(value)
        inner = wrapped(value)
        if inner is not None:
            self.add(scope, f"{path}.__wrapped__", inner)
        classes = [c for c in type(value).__mro__ if c is not object]
        own = [c for c in classes if is_internal_class(c)]
        if own and (inner is not None or isinstance(value, FIXED)):
            return
        if own and own[0].__module__.startswith(TRACED_BY):
            for part in getattr(value, "__dict__", {}).values():
                if callable(part):
                    self.add(part, "", part)
            return
        self._record(value, ".__class__", type(value))
        for cls in (*classes, *type(type(value)).__mro__):
            self._open_class(cls)
        space = getattr(value, "__dict__", None)
        space = space if isinstance(space, dict) else None
        with_slots = [c for c in classes if "__slots__" in vars(c)]
        slots = [n for c in with_slots for n, m in vars(c).items() if inspect.ismemberdescriptor(m)]
        holder = self._open(scope, path, value, space, slots)
        if holder is not None:
            if own:
                self._all_attributes(holder)
                for name in public_methods(type(value)):  # which this package may call
                    self._record(type(value), f".{name}", getattr(type(value), name))
            elif hasattr(type(value), "__dataclass_fields__"):  # a container for this package
                self._look_up(holder, frozenset(type(value).__dataclass_fields__))
        if not own:
            self._hidden(scope, path, value, space is None and not slots)

    def _proxy(self, scope: Any, path: str, value: Any) -> None:
        if path:
            self._record(scope, path, value)
        try:
            referent = value.__repr__.__self__
        except ReferenceError:
            return
        reference = weakref.ref(referent)
        self.add(reference, "()", referent)

    def _hidden(self, scope: Any, path: str, value: Any, opaque: bool) -> None:
        """Record the content of an object that is not in its attributes."""
        if isinstance(value, functools.partial):
            for name in ("func", "args", "keywords"):
                self.add(scope, f"{path}.{name}", getattr(value, name))
        elif isinstance(value, weakref.ref):
            self.add(value, "()", value())
        elif isinstance(value, BaseException):
            for name in ("args", "__cause__", "__context__"):
                self.add(scope, f"{path}.{name}", getattr(value, name))
        elif isinstance(value, io.IOBase):
            self._streams.append((path, value))
        elif isinstance(value, contextvars.ContextVar):
            self.add(value, ".get(...)", value.get(...))
        elif isinstance(value, functools._lru_cache_wrapper):
            self._caches.append(value)
        elif not self._memory(value) and opaque and not is_iterator(value):
            parts = gc.get_referents(value)
            if has_hidden_state(value):
                self.complete = False
            elif parts != [type(value)]:
                self.found.append(Found(value, "", Identities(parts), form=REFERENTS))
            for part in parts:
                if not isinstance(part, types.ModuleType | type):
                    self.add(part, "", part)
            if isinstance(value, GETTERS):
                self._strings(value.__reduce__())

    def _strings(self, names: Any) -> None:
        """Look up names in strings: those of an `attrgetter`, a `methodcaller`, or a format."""
        for text in names if isinstance(names, tuple) else ():
            self._strings(text)
            new = frozenset(names_in(text)) - self._names if isinstance(text, str) else ()
            self._names.update(new)
            for holder in list(self._holders) if new else ():
                self._look_up(holder, new)

    # --- attributes ---

    def _open(
        self, scope: Any, path: str, value: Any, space: Any, slots: Iterable[str] = ()
    ) -> Holder | None:
        """Look up all names in an object, now and later."""
        if id(value) in self._by_object:
            return None
        holder = self._by_object[id(value)] = Holder(scope, path, value, space, slots)
        self._holders.append(holder)
        self._look_up(holder, frozenset(self._names))
        return holder

    def _open_class(self, cls: type) -> None:
        """Visit the methods and attributes of a class."""
        if id(cls) in self._by_object or is_standard_class(cls) or is_internal_class(cls):
            return
        for name, member in list(vars(cls).items()):
            for function in functions_of(member):
                if isinstance(function, types.FunctionType):
                    self._register(function)
                    code = id(function.__code__)
                    self._members.setdefault(code, []).append((cls, name, member))
                    if code in self._ran:
                        self._member(cls, name, member)
        self._record(cls, ".__mro__", cls.__mro__)
        size = len(vars(cls).keys() - CACHED)
        self._open(cls, "", cls, vars(cls))
        self.found.append(Found(cls, ".__dict__", size, form=CLASS_SIZE))

    def _member(self, cls: type, name: str, member: Any) -> None:
        self.add(cls, f".__dict__[{name!r}]", member)

    def _look_up(self, holder: Holder, names: Iterable[str]) -> None:
        """Visit the attributes of an object that have one of these names."""
        value, space = holder.value, holder.space
        is_module = isinstance(value, types.ModuleType)
        in_c = space is not None and not computed_in_c(type(value)).isdisjoint(names)
        if not holder.whole and (in_c or self._is_whole(value)):
            self._all_attributes(holder)
        if space:
            for name in sorted(space.keys() & names):
                self._attribute(holder, name, space[name], is_module)
        for name in sorted(holder.slots & frozenset(names)):
            if hasattr(value, name):
                self.add(holder.scope, f"{holder.path}.{name}", getattr(value, name))
            else:
                self.found.append(Found(value, "", name, form="not hasattr({0}, {1})"))
        for name in sorted(c_attributes(type(value)).intersection(names)):
            self._c_attribute(holder, name)

    def _c_attribute(self, holder: Holder, name: str) -> None:
        try:
            part, again = getattr(holder.value, name), getattr(holder.value, name)
        except Exception:
            return
        if isinstance(part, PLAIN) or part is again:
            self.add(holder.scope, f"{holder.path}.{name}", part)

    def _is_whole(self, value: Any) -> bool:
        if id(value) in self._whole:
            return True
        if not self._any_attribute:
            return False
        return not (isinstance(value, types.ModuleType) and is_standard_module(value))

    def _all_attributes(self, holder: Holder) -> None:
        holder.whole = True
        if isinstance(holder.value, types.ModuleType):
            if id(holder.value) in self._whole or id(holder.value) in self._named:
                self._namespace(holder.space)
            else:  # merely in sight: what it contains is not searched
                held = Identities(holder.space.values())
                self.found.append(Found(holder.space, ".values()", held, form=IDENTITIES))
            return
        for name in sorted(map(str, holder.space or ())):
            if not (isinstance(holder.value, type) and name.startswith("__")):
                self._attribute(holder, name, holder.space[name], False)
        for name in sorted(holder.slots):
            if hasattr(holder.value, name):
                self.add(holder.scope, f"{holder.path}.{name}", getattr(holder.value, name))

    def _namespace(self, space: dict[str, Any]) -> None:
        """Visit all globals of a module."""
        if (id(space), "") in self._places:
            return
        self._places.add((id(space), ""))
        self._kept[id(space)] = space
        self.found.append(Found(space, "", list(space), form=ORDER))
        for name in [n for n in space if not (n.startswith("__") and n.endswith("__"))]:
            self.add(space, f"[{name!r}]", space[name])

    def _attribute(self, holder: Holder, name: str, part: Any, is_module: bool) -> None:
        """Visit an attribute from the namespace of an object."""
        value, scope, path = holder.value, holder.scope, holder.path
        if is_module:
            self.add(scope, f"[{name!r}]", part)
        elif isinstance(value, type):
            if not isinstance(part, types.MemberDescriptorType | types.GetSetDescriptorType):
                self.add(value, f".__dict__[{name!r}]", part)
        elif name.isidentifier() and is_plain_access(type(value), name):
            self.add(scope, f"{path}.{name}", part)
        else:
            self.add(scope, f"{path}.__dict__[{name!r}]", part)


def _readable(path: str) -> str:
    return path if len(path) < 60 else f"{path[:60]}…"
