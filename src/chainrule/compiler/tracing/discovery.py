"""Discovery of what a function reads: globals, closures, attributes, and what they contain.

A search follows the code that a trace runs. Before a code object starts, the search visits the
globals and the closure that this code names, and looks up the attributes that it names in all
objects visited so far. So a value is recorded as it was before any code that names it ran, whatever
package the code belongs to. Code of this package and of NumPy is not followed.

Guards compare the recorded values before each later call. A counter that only the surrounding loop
uses may change, since no code of the function names it.
"""

from __future__ import annotations

import builtins
import contextlib
import contextvars
import functools
import gc
import importlib
import importlib.util
import inspect
import marshal
import numbers
import operator
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, MappingView
from enum import Enum
from typing import Any

import numpy as np

from chainrule.autograd.node import Node
from chainrule.autograd.tensor import Tensor
from chainrule.compiler.tracing.code_names import COMPUTED_LOOKUPS, CodeNames, code_names
from chainrule.compiler.tracing.locations import (
    is_internal,
    is_internal_class,
    is_internal_module,
    is_standard,
    is_standard_class,
    is_standard_module,
)
from chainrule.errors import CompileError

_PLAIN = (str, bytes, type(None), np.generic, np.dtype, numbers.Number, range, slice)
_BUILTIN_FUNCTIONS = (types.BuiltinFunctionType, np.ufunc)
_BY_IDENTITY = (Tensor, types.FunctionType, *_BUILTIN_FUNCTIONS, np.ndarray)
_PROXIES = (weakref.ProxyType, weakref.CallableProxyType)

_MAX_FOUND = 20_000
"""Number of recorded values from which a function is refused, since each call compares them."""

MAX_COMPARED_BYTES = 1 << 20
"""Largest size, in bytes, of memory that is compared at each call."""

_MAX_ITEMWISE = 8
"""Number of plain items above which a container is compared at once, not item by item."""

_MAX_PATH = 160
"""Length, in characters, of a path after which a new one begins at an object on it."""


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
        names = {"scope": self.scope, "held": self.value, **FORM_SCOPE}
        try:
            source = self.form.format(f"scope{self.path}", "held") or f"scope{self.path}"
            value = eval(compile(source, "<compiled check>", "eval"), names)
            if self.form:
                return bool(value)
        except (KeyError, AttributeError, IndexError, TypeError, ValueError):
            return False
        same = value is self.value
        return same or (self.by_value and type(value) is type(self.value) and value == self.value)


FORM_SCOPE: dict[str, Any] = {"dumps": marshal.dumps, "memoryview": memoryview}
"""Names that the conditions of `Found` use."""

_LACKS = "{1}.isdisjoint({0})"
_LACKS_GLOBALS = "{0}.keys().isdisjoint({1})"
_ORDER = "[*{0}] == {1}"
_IDENTITIES = "[*map(id, {0})] == {1}"
_EMPTY = "{0} == {1}"
_CONTENT = "dumps({0}, 2) == {1}"
_MEMORY = "memoryview({0}).tobytes() == {1}"


class _Identities(list[int]):
    """The ids of objects, which are held so that no others get them."""

    def __init__(self, parts: Iterable[Any]) -> None:
        self.parts = list(parts)
        super().__init__(map(id, self.parts))


class _DictItem:
    """The item of a dict for a key without literal, such as a tensor."""

    __slots__ = ("key", "of")

    def __init__(self, of: dict[Any, Any], key: Any) -> None:
        self.of, self.key = of, key

    @property
    def value(self) -> Any:
        return dict.__getitem__(self.of, self.key)


class _Holder:
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


class Search:
    """The objects that the code of a trace names, with their values before it ran."""

    def __init__(self, note: Callable[[Any], None] = lambda value: None) -> None:
        self.found: list[Found] = []
        self.complete = True  # whether all code that ran was reported, and nothing imported
        self._note = note  # takes each array and random generator as it is found
        self._names: set[str] = set()
        self.computes = False  # whether some code looks something up by a computed name
        self._any_attribute = self._tolerant = False
        self._places: set[tuple[int, str]] = set()
        self._kept: dict[int, Any] = {}  # visited objects by id, held so that ids stay theirs
        self._queue: deque[tuple[Any, str, Any]] = deque()
        self._holders: list[_Holder] = []
        self._by_object: dict[int, _Holder] = {}
        self._functions: dict[int, list[Any]] = {}  # known functions by their code
        self._codes: dict[int, types.CodeType] = {}  # code that has run, and that within it
        self._ran: set[int] = set()
        self._members: dict[int, list[tuple[type, str, Any]]] = {}  # methods of classes by code
        self._whole: dict[int, Any] = {}  # objects looked into by computed names
        self._missing: dict[int, tuple[Any, set[str]]] = {}  # namespaces, and names they lack
        self._caches: list[Any] = []
        self._imports: set[str] = set()
        self._refused = False

    # --- starting points ---

    def add(self, scope: Any, path: str, value: Any) -> None:
        """Add an object to the queue."""
        self._queue.append((scope, path, value))

    def begin(self, function: Any, objects: Iterable[Any]) -> None:
        """Visit the function that is about to run, and its arguments."""
        self.add(function, "", function)
        for item in objects:
            self.add(item, "", item)
        self._visit_queue()

    def visit(self, *objects: Any) -> None:
        """Visit objects that the trace has come across otherwise, such as hooks."""
        for item in objects:
            self.add(item, "", item)
        self._visit_queue()

    def started(self, frame: types.FrameType) -> bool:
        """Record what a code object names, before it runs; return whether it was of interest."""
        code, space = frame.f_code, frame.f_globals
        if code.co_name == "<module>" and code.co_filename == space.get("__file__"):
            return False  # of a module that is imported
        if not space.get("__builtins__", True) or self._serves_package(frame):
            return False  # of a named tuple, or of this package
        used = code_names(code)
        standard = is_standard[code.co_filename]
        nested = id(code) in self._codes
        self._ran.add(id(code))
        self._keep_codes(code)
        new = used.attributes - self._names
        self._names |= new
        if id(code) not in self._functions and not nested and not standard:
            self._identify(frame)
        for function in self._functions.get(id(code), ()):
            self._expand(function)
        for member in self._members.pop(id(code), ()):
            self._member(*member)
        self._globals(used, space, standard)
        self._modules(frame, used, standard)
        for holder in list(self._holders):
            self._look_up(holder, new)
        self._computed(frame, used, standard)
        self._visit_queue()
        return True

    def _serves_package(self, frame: types.FrameType) -> bool:
        """Whether this package has called a function of the standard library for itself."""
        caller = frame.f_back
        if not is_standard[frame.f_code.co_filename]:
            return False
        while caller is not None and is_standard[caller.f_code.co_filename]:
            caller = caller.f_back
        if caller is None or not is_internal[caller.f_code.co_filename]:
            return False
        names = frame.f_code.co_varnames[: min(frame.f_code.co_argcount, 1)]
        return not any(id(frame.f_locals.get(name)) in self._by_object for name in names)

    def finish(self) -> list[Found]:
        """Add what can only be known after the trace; return all that was found."""
        for holder in self._holders:
            self._finish_holder(holder)
        for space, names in self._missing.values():
            lacking = frozenset(names)
            self.found.append(Found(space, "", lacking, form=_LACKS_GLOBALS))
        for cached in self._caches:
            content = _cache_of(cached)
            held = _Identities(content.values())
            self.found.append(Found(content, ".values()", held, form=_IDENTITIES))
        imported = [sys.modules[name] for name in self._imports if name in sys.modules]
        if not all(is_internal_module(m) or is_standard_module(m) for m in imported):
            self.complete = False  # a call after the import finds its values
        self._visit_queue()
        return self.found

    def codes(self) -> list[types.CodeType]:
        """Return the code objects that have run."""
        return [self._codes[key] for key in self._ran]

    # --- code ---

    def _keep_codes(self, code: types.CodeType) -> None:
        self._codes[id(code)] = code
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._keep_codes(constant)

    def _identify(self, frame: types.FrameType) -> None:
        """Find the function that runs, which no path has led to."""
        code, space = frame.f_code, frame.f_globals
        found = space.get(code.co_name)
        if isinstance(found, types.FunctionType) and found.__code__ is code:
            self._record(space, f"[{code.co_name!r}]", found)
            self._register(found)
            return
        if code.co_argcount:
            first = frame.f_locals.get(code.co_varnames[0])
            for cls in type(first).__mro__:
                self._open_class(cls)
        if id(code) not in self._functions and code.co_flags & inspect.CO_OPTIMIZED:
            for other in gc.get_referrers(code):
                if isinstance(other, types.FunctionType) and other.__code__ is code:
                    self._register(other)

    def _register(self, function: types.FunctionType) -> None:
        """Note a function that may run, or has run already."""
        if id(function) in self._kept:
            return
        self._kept[id(function)] = function
        self._open(function, "", function, vars(function))
        code = function.__code__
        if is_internal[code.co_filename]:
            self._enter(function)
            return
        self._functions.setdefault(id(code), []).append(function)
        if id(code) in self._ran:
            self._expand(function)

    def _enter(self, function: types.FunctionType) -> None:
        """Visit the functions that a function of this package closes over: those of the user."""
        space = function.__globals__
        values = [] if "__name__" in space else list(space.values())  # of a generated function
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # an empty cell
                values.append(cell.cell_contents)
        for value in (*values, vars(function).get("__wrapped__")):
            if callable(value):
                self.add(value, "", value)

    def _expand(self, function: types.FunctionType) -> None:
        """Visit the closure and defaults of a function that runs."""
        if (id(function), ".__code__") in self._places:
            return
        self._record(function, ".__code__", function.__code__)
        for cell in function.__closure__ or ():
            try:
                self.add(cell, ".cell_contents", cell.cell_contents)
            except ValueError:  # an empty cell
                self.found.append(Found(cell, "", types.CellType(), form=_EMPTY))
        for name in ("__defaults__", "__kwdefaults__"):
            defaults = getattr(function, name)
            if defaults is not None:
                self._record(function, f".{name}", defaults)
                self.add(defaults, "", defaults)

    def _globals(self, used: CodeNames, space: dict[str, Any], standard: bool) -> None:
        if standard:  # its functions and constants don't change, but `os.environ` does
            names = {n for n in used.globals & space.keys() if not n.startswith("_")}
            for name in sorted(names):
                if _has_state(space[name]):
                    self.add(space, f"[{name!r}]", space[name])
            return
        for name in sorted(used.globals & space.keys()):
            self.add(space, f"[{name!r}]", space[name])
        missing = used.globals - space.keys()
        if missing:
            _, names = self._missing.setdefault(id(space), (space, set()))
            names |= missing
            for name in missing & vars(builtins).keys():
                value = vars(builtins)[name]
                fixed = isinstance(value, types.BuiltinFunctionType) or (
                    isinstance(value, type) and value.__module__ == "builtins"
                )
                if not fixed:
                    self.add(vars(builtins), f"[{name!r}]", value)

    def _modules(self, frame: types.FrameType, used: CodeNames, standard: bool) -> None:
        """Visit the modules that code imports."""
        names: list[Any] = [_absolute(n, level, frame.f_globals) for n, level in used.modules]
        if frame.f_code is importlib.import_module.__code__:
            given = frame.f_locals
            name, package = given["name"], given.get("package")
            is_relative = isinstance(name, str) and name.startswith(".") and package
            names.append(importlib.util.resolve_name(name, package) if is_relative else name)
        elif standard:
            return
        for key in used.module_keys:
            known = {**frame.f_globals, **frame.f_locals}
            names.append(key[1:] if key.startswith("'") else known.get(key))
            if not isinstance(names[-1], str):
                self._all_modules()
        for name in names:
            if not isinstance(name, str):
                continue
            parts = name.split(".")
            for i in range(len(parts)):
                self._module(".".join(parts[: i + 1]))
        if used.any_module:
            self._all_modules()

    def _module(self, name: str) -> None:
        module = sys.modules.get(name)
        if module is None:
            self._imports.add(name)
        else:
            self.add(sys.modules, f"[{name!r}]", module)

    def _all_modules(self) -> None:
        """Visit all modules: code looks one up by a name that it computes."""
        for name, module in list(sys.modules.items()):
            known = isinstance(module, types.ModuleType) and not is_standard_module(module)
            if known and not is_internal_module(module):
                self._open(vars(module), "", module, vars(module))
                self._imports.discard(name)

    def _computed(self, frame: types.FrameType, used: CodeNames, standard: bool) -> None:
        """Record all attributes of the objects into which code looks by computed names."""
        if used.computed or (used.any_attribute and standard):
            code, given = frame.f_code, frame.f_locals
            arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            names = arguments if used.any_attribute else used.computed
            for name in names:
                value = given.get(name, frame.f_globals.get(name, self))
                if value is not self:
                    self._record_whole(value)
        if standard:
            return
        self.computes |= bool(used.computed or used.any_attribute or used.any_global)
        if used.any_attribute:
            self._look_everywhere()
        if used.any_global:
            self._namespace(frame.f_globals)
        if used.tolerant:
            self._tolerant = True

    def _look_everywhere(self) -> None:
        self._any_attribute = True
        for holder in list(self._holders):
            self._look_up(holder, frozenset())

    def _record_whole(self, value: Any) -> None:
        if isinstance(value, type(None)) or id(value) in self._whole:
            return
        self._whole[id(value)] = value
        holder = self._by_object.get(id(value))
        if holder is not None:
            self._look_up(holder, frozenset())

    # --- objects ---

    def _record(self, scope: Any, path: str, value: Any, by_value: bool = False) -> None:
        """Record the value at a path."""
        place = id(scope), path
        if place not in self._places:
            self._places.add(place)
            self.found.append(Found(scope, path, value, by_value))

    def _visit_queue(self) -> None:
        """Visit the objects of the queue, and those that they lead to."""
        while self._queue and not self._refused:
            scope, path, value = self._queue.popleft()
            if len(self.found) > _MAX_FOUND:
                self._refuse(scope, path)
            elif not path or (id(scope), path) not in self._places:
                self._visit(scope, path, value)

    def _refuse(self, scope: Any, path: str) -> None:
        self._refused = True
        CompileError(  # noted by the trace, which raises it at its end
            f"a compiled function reaches more than {_MAX_FOUND:,} values by name, which each call "
            f"would have to compare (one is at {_readable(path) or type(scope).__name__}): pass "
            "what it needs of them as an argument, or read it outside"
        )

    def _visit(self, scope: Any, path: str, value: Any) -> None:
        kind = type(value)
        if kind in _PROXIES:
            self._proxy(scope, path, value)
        elif isinstance(value, _PLAIN):
            if path:
                self._record(scope, path, value, True)
            if getattr(value, "__dict__", None):
                self._object(scope, path, value)
        elif is_generator(value):
            self._record(scope, path, value)
            self._note(value)
        elif isinstance(value, _BY_IDENTITY):
            self._by_identity(scope, path, value)
        elif isinstance(value, type):
            if path:
                self._record(scope, path, value)
            self._open_class(value)
            for cls in (*value.__mro__[1:], *type(value).__mro__):
                self._open_class(cls)
        elif isinstance(value, types.ModuleType):
            if path:
                self._record(scope, path, value)
            self._visit_module(value)
        elif isinstance(value, types.MethodType):
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
        if getattr(value, "__dict__", None) is not None:  # of a subclass
            self._object(scope, path, value)

    def _by_identity(self, scope: Any, path: str, value: Any) -> None:
        if path:
            self._record(scope, path, value)
        if isinstance(value, types.FunctionType):
            self._register(value)
        elif isinstance(value, np.ndarray):
            if path:
                self._note(value)
            if value.dtype.hasobject:
                for i, part in enumerate(value.flat):
                    self.add(value, f".item({i})", part)
        elif value in COMPUTED_LOOKUPS:
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

    def _dict(self, scope: Any, path: str, value: dict[Any, Any]) -> None:
        if self._at_once(scope, path, value):
            return
        self.found.append(Found(scope, f"{path}.__len__()", len(value), True))
        own_access = type(value).__getitem__ is not dict.__getitem__
        literal = not own_access and all(map(_is_literal, value))
        for key, part in list(value.items()):
            if not own_access and _is_literal(key):
                self.add(scope, f"{path}[{key!r}]", part)
            else:
                self.add(_DictItem(value, key), ".value", part)
        if literal:
            self.found.append(Found(scope, path, list(value), form=_ORDER))
            return
        if path:
            self._record(scope, path, value)
        self.found.append(Found(value, "", _Identities(value), form=_IDENTITIES))

    def _sequence(self, scope: Any, path: str, value: Any) -> None:
        if self._at_once(scope, path, value):
            return
        self.found.append(Found(scope, f"{path}.__len__()", len(value), True))
        for i, part in enumerate(value):
            self.add(scope, f"{path}[{i}]", part)

    def _at_once(self, scope: Any, path: str, value: Any) -> bool:
        """Record the content of a container with many numbers or strings and nothing else."""
        if type(value) not in _BUILTIN_CONTAINERS or not _is_all_plain(value):
            return False
        size = Found(scope, f"{path}.__len__()", len(value), True)
        self.found += [size, Found(scope, path, marshal.dumps(value, 2), form=_CONTENT)]
        return True

    def _set(self, scope: Any, path: str, value: Any) -> None:
        parts = list(value)
        if all(isinstance(part, _PLAIN) for part in parts):
            if path:
                self.found.append(Found(scope, f"{path}.__class__", type(value)))
            self.found.append(Found(scope, path, parts, form=_ORDER))
            return
        if path:
            self._record(scope, path, value)
        self.found.append(Found(value, "", _Identities(parts), form=_IDENTITIES))
        for part in parts:
            self.add(part, "", part)

    def _object(self, scope: Any, path: str, value: Any) -> None:
        if path:
            self._record(scope, path, value)
        wrapped = _wrapped(value)
        if wrapped is not None:
            self.add(scope, f"{path}.__wrapped__", wrapped)
        classes = [c for c in type(value).__mro__ if c is not object]
        own = [c for c in classes if is_internal_class(c)]
        if own and (wrapped is not None or isinstance(value, Node)):
            return
        if own and own[0].__module__.startswith(_TRACED_BY):
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
        slots = [
            n for c in with_slots for n, m in vars(c).items() if inspect.ismemberdescriptor(m)
        ]
        holder = self._open(scope, path, value, space, slots)
        if holder is not None:
            if own:
                self._all_attributes(holder)
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
        elif isinstance(value, contextvars.ContextVar):
            self.add(value, ".get(...)", value.get(...))
        elif isinstance(value, functools._lru_cache_wrapper):
            self._caches.append(value)
        elif not self._memory(value) and opaque and not is_iterator(value):
            for part in gc.get_referents(value):
                if not isinstance(part, types.ModuleType | type):
                    self.add(part, "", part)
            if isinstance(value, _GETTERS):
                self._strings(value.__reduce__())

    def _strings(self, names: Any) -> None:
        """Look up the names that an `attrgetter` or `methodcaller` was made with."""
        for text in names if isinstance(names, tuple) else ():
            self._strings(text)
            new = frozenset(text.split(".")) - self._names if isinstance(text, str) else ()
            self._names.update(new)
            for holder in list(self._holders) if new else ():
                self._look_up(holder, new)

    def _memory(self, value: Any) -> bool:
        """Record the bytes of an object that has a buffer."""
        try:
            view = memoryview(value)
        except (TypeError, ValueError):
            return False
        if view.nbytes <= MAX_COMPARED_BYTES:
            self.found.append(Found(value, "", view.tobytes(), form=_MEMORY))
        else:
            CompileError(large_memory(type(value).__name__, view.nbytes))
        return True

    # --- attributes ---

    def _open(
        self, scope: Any, path: str, value: Any, space: Any, slots: Iterable[str] = ()
    ) -> _Holder | None:
        """Look up all names in an object, now and later."""
        if id(value) in self._by_object:
            return None
        holder = self._by_object[id(value)] = _Holder(scope, path, value, space, slots)
        self._holders.append(holder)
        self._look_up(holder, frozenset(self._names))
        return holder

    def _open_class(self, cls: type) -> None:
        """Visit the methods and attributes of a class."""
        if id(cls) in self._by_object or is_standard_class(cls) or is_internal_class(cls):
            return
        for name, member in list(vars(cls).items()):
            for function in _functions(member):
                if isinstance(function, types.FunctionType):
                    self._register(function)
                    code = id(function.__code__)
                    self._members.setdefault(code, []).append((cls, name, member))
                    if code in self._ran:
                        self._member(cls, name, member)
        size = len(vars(cls))
        self._open(cls, "", cls, vars(cls))
        self.found.append(Found(cls, ".__dict__.__len__()", size, True))

    def _member(self, cls: type, name: str, member: Any) -> None:
        self.add(cls, f".__dict__[{name!r}]", member)

    def _look_up(self, holder: _Holder, names: Iterable[str]) -> None:
        """Visit the attributes of an object that have one of these names."""
        value, space = holder.value, holder.space
        is_module = isinstance(value, types.ModuleType)
        if not holder.whole and self._is_whole(value):
            self._all_attributes(holder)
        if space:
            for name in sorted(space.keys() & names):
                self._attribute(holder, name, space[name], is_module)
        for name in sorted(holder.slots & frozenset(names)):
            if hasattr(value, name):
                self.add(holder.scope, f"{holder.path}.{name}", getattr(value, name))
            else:
                self.found.append(Found(value, "", name, form="not hasattr({0}, {1})"))
        if space is None and not holder.slots:
            for name in sorted(names):
                if isinstance(getattr(type(value), name, None), types.GetSetDescriptorType):
                    self._c_attribute(holder, name)

    def _c_attribute(self, holder: _Holder, name: str) -> None:
        try:
            part = getattr(holder.value, name)
        except Exception:
            return
        if isinstance(part, _PLAIN):
            self.add(holder.scope, f"{holder.path}.{name}", part)

    def _is_whole(self, value: Any) -> bool:
        if id(value) in self._whole:
            return True
        if not self._any_attribute:
            return False
        return not (isinstance(value, types.ModuleType) and is_standard_module(value))

    def _all_attributes(self, holder: _Holder) -> None:
        holder.whole = True
        if isinstance(holder.value, types.ModuleType):
            self._namespace(holder.space)
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
        self.found.append(Found(space, "", list(space), form=_ORDER))
        for name in [n for n in space if not (n.startswith("__") and n.endswith("__"))]:
            self.add(space, f"[{name!r}]", space[name])

    def _attribute(self, holder: _Holder, name: str, part: Any, is_module: bool) -> None:
        """Visit an attribute from the namespace of an object."""
        value, scope, path = holder.value, holder.scope, holder.path
        if is_module:
            self.add(scope, f"[{name!r}]", part)
        elif isinstance(value, type):
            if not isinstance(part, types.MemberDescriptorType | types.GetSetDescriptorType):
                self.add(value, f".__dict__[{name!r}]", part)
        elif name.isidentifier() and _is_plain_access(type(value), name):
            self.add(scope, f"{path}.{name}", part)
        else:
            self.add(scope, f"{path}.__dict__[{name!r}]", part)

    def _finish_holder(self, holder: _Holder) -> None:
        """Record that an object has no more attributes of these names than it had."""
        value, space = holder.value, holder.space
        if space is None or isinstance(value, type | types.FunctionType):
            return
        if isinstance(value, types.ModuleType):
            if self._tolerant and not is_standard_module(value) and not holder.whole:
                lacking = frozenset(self._names - holder.before)
                self.found.append(Found(space, "", lacking, form=_LACKS_GLOBALS))
            return
        if is_internal_class(type(value)):
            return
        cached = {n for n in space.keys() - holder.before if _is_cached_property(type(value), n)}
        for name in sorted(cached & self._names):
            self.add(holder.scope, f"{holder.path}.{name}", space[name])
        path = f"{holder.path}.__dict__"
        if self._is_whole(value):
            names = [*holder.before & space.keys(), *cached]
            self.found.append(Found(holder.scope, path, frozenset(names), form="{0}.keys() == {1}"))
        lacking = frozenset(self._names - holder.before - cached)
        self.found.append(Found(holder.scope, path, lacking, form=_LACKS))


_TRACED_BY = ("chainrule.compiler.", "chainrule.control_flow")
"""Modules whose objects a trace changes as it goes on."""

_GETTERS = (operator.attrgetter, operator.methodcaller)
_BUILTIN_CONTAINERS = (list, tuple, dict)
_PLAIN_EXACT = (int, float, complex, bool, str, bytes, type(None))


def _is_all_plain(value: Any) -> bool:
    """Whether a container has many numbers and strings, in containers of builtin types."""
    pending, count = [(value, 0)], 0
    while pending:
        part, depth = pending.pop()
        if type(part) in _PLAIN_EXACT:
            count += 1
        elif type(part) in _BUILTIN_CONTAINERS and depth < _MAX_NESTING:
            pending += [(p, depth + 1) for p in part]
            if type(part) is dict:
                pending += [(p, depth + 1) for p in part.values()]
        else:
            return False
    return count > _MAX_ITEMWISE


_MAX_NESTING = 20
"""Depth of containers that are compared at once; it also ends the walk of cyclic ones."""


def large_memory(kind: str, size: int) -> str:
    """Return the error message for memory that is too large to compare."""
    return (
        f"a compiled function reads Python numbers from a {kind} of {size / 1e6:.1f} MB that it "
        "finds by name, which each call would have to compare: pass it as an argument, make a "
        "tensor of it outside, or read what is needed outside"
    )


def _has_state(value: Any) -> bool:
    """Whether an object of the standard library holds what may change."""
    fixed = (*_PLAIN, *_BY_IDENTITY, type, types.ModuleType, types.MethodType, Enum)
    return not isinstance(value, fixed)


def _readable(path: str) -> str:
    return path if len(path) < 60 else f"{path[:60]}…"


def _absolute(name: str, level: int, space: dict[str, Any]) -> str | None:
    """Return the absolute name of an imported module."""
    package = space.get("__package__") or ""
    try:
        return importlib.util.resolve_name("." * level + name, package) if level else name
    except ImportError:
        return None


def _cache_of(cached: Any) -> dict[Any, Any]:
    """Return the cache of a function that `functools.lru_cache` made."""
    parts = gc.get_referents(cached)
    own = getattr(cached, "__dict__", None)
    return next((p for p in parts if isinstance(p, dict) and p is not own), {})


def _is_cached_property(cls: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(cls, name, None), functools.cached_property)


def _is_plain_access(cls: type, name: str) -> bool:
    """Whether `x.name` of an instance is what its `__dict__` holds."""
    return cls.__getattribute__ is object.__getattribute__ and not hasattr(
        type(inspect.getattr_static(cls, name, None)), "__set__"
    )


def _functions(member: Any) -> Iterator[Any]:
    """Yield the functions of a class member: a method, property or other descriptor."""
    yield member
    if isinstance(member, property):
        yield from (member.fget, member.fset)
    for name in ("__func__", "func", "fget"):
        yield getattr(member, name, None)
    wrapped = _wrapped(member)
    if wrapped is not None:
        yield wrapped


def _wrapped(thing: Any) -> Any:
    """Return the function that a decorator has wrapped, or None."""
    space = getattr(thing, "__dict__", None)  # some objects have any attribute
    return space.get("__wrapped__") if isinstance(space, dict) else None


def _is_literal(key: Any) -> bool:
    """Whether the `repr` of a key is a literal of it."""
    if isinstance(key, tuple):
        return type(key) is tuple and all(map(_is_literal, key))
    return isinstance(key, bool | int | str | bytes | None) and type(key).__module__ == "builtins"


def is_constant(x: Any) -> bool:
    """Whether an object is immutable or a singleton: numbers, strings, functions, classes."""
    fixed = (*_PLAIN, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, Enum)
    if isinstance(x, frozenset):
        return all(map(is_constant, x))
    return isinstance(x, fixed) or x is ...


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
