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
import gc
import importlib
import importlib.util
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

from chainrule.compiler.tracing.code_names import CodeNames, code_names
from chainrule.compiler.tracing.found import (
    EMPTY,
    IDENTITIES,
    LACKS,
    LACKS_GLOBALS,
    Found,
    Identities,
)
from chainrule.compiler.tracing.locations import (
    is_internal,
    is_internal_class,
    is_internal_module,
    is_standard,
    is_standard_module,
)
from chainrule.compiler.tracing.object_kinds import (
    LOCK_NAMES,
    has_state,
    is_cached_property,
    is_readable,
    public_methods,
)
from chainrule.compiler.tracing.object_search import Holder, ObjectSearch
from chainrule.compiler.tracing.outside import outside_function


class Search(ObjectSearch):
    """The objects that the code of a trace names, with their values before it ran."""

    def __init__(self, note: Callable[[Any], None] = lambda value: None) -> None:
        super().__init__(note)
        self._functions: dict[int, list[Any]] = {}  # known functions by their code
        self._codes: dict[int, types.CodeType] = {}  # code that has run, and that within it
        self._missing: dict[int, tuple[Any, set[str]]] = {}  # namespaces, and names they lack
        self._imports: set[str] = set()
        self._own_names: set[str] = set()  # in code that is not of the standard library

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
        if not space.get("__builtins__", True):
            self._named_tuple(frame)
            return True
        if self._serves_package(frame):
            return False
        used = code_names(code)
        standard = is_standard[code.co_filename]
        nested = id(code) in self._codes
        self._ran.add(id(code))
        self._keep_codes(code)
        new = used.attributes - self._names
        self._names |= new
        if not standard:
            self._own_names |= used.attributes | used.globals
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
        if outside_function(code, used, space):
            self.complete = False
        self._visit_queue()
        return True

    def _named_tuple(self, frame: types.FrameType) -> None:
        """Record the defaults of the fields of a named tuple that the user's code makes."""
        caller = _caller(frame)
        if caller is None or is_internal[caller.f_code.co_filename]:
            return
        for cls in getattr(frame.f_locals.get("_cls"), "__mro__", ()):
            make: Any = getattr(vars(cls).get("__new__"), "__func__", None)
            if getattr(make, "__code__", None) is frame.f_code and make.__defaults__:
                self._record(make, ".__defaults__", make.__defaults__)
                self.add(make.__defaults__, "", make.__defaults__)

    def _serves_package(self, frame: types.FrameType) -> bool:
        """Whether this package has called a function of the standard library for itself."""
        if not is_standard[frame.f_code.co_filename]:
            return False
        caller = _caller(frame)
        if caller is None or not is_internal[caller.f_code.co_filename]:
            return False
        names = frame.f_code.co_varnames[: min(frame.f_code.co_argcount, 1)]
        return not any(id(frame.f_locals.get(name)) in self._by_object for name in names)

    def finish(self) -> list[Found]:
        """Add what can only be known after the trace; return all that was found."""
        for holder in self._holders:
            self._finish_holder(holder)
        missing = {name for name in self._imports if name not in sys.modules}
        if missing:
            self._missing[id(sys.modules)] = sys.modules, missing
        for space, names in self._missing.values():
            lacking = frozenset(names)
            self.found.append(Found(space, "", lacking, form=LACKS_GLOBALS))
        for cached in self._caches:
            content = _cache_of(cached)
            held = Identities(content.values())
            self.found.append(Found(content, ".values()", held, form=IDENTITIES))
        imported = [sys.modules[name] for name in self._imports if name in sys.modules]
        if not all(is_internal_module(m) or is_standard_module(m) for m in imported):
            self.complete = False  # a call after the import finds its values
        self._visit_queue()
        if self._reads_streams() or self._reads_states():
            self.complete = False
        if self.errors:
            raise self.errors[0]
        return self.found

    def _reads_streams(self) -> bool:
        """Whether some code may read a file or buffer that it finds, other than that of a log."""
        return any(
            value not in (sys.stdout, sys.stderr) and is_readable(value)
            for path, value in self._streams
            if not path.endswith(".stream")
        )

    def _reads_states(self) -> bool:
        """Whether some code may read the state of a lock, or that of a random generator."""
        used = self._own_names | (self._names - LOCK_NAMES)  # Python's queues look at locks, too
        return not self._state_names.isdisjoint(used)

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
                self.found.append(Found(cell, "", types.CellType(), form=EMPTY))
        for name in ("__defaults__", "__kwdefaults__"):
            defaults = getattr(function, name)
            if defaults is not None:
                self._record(function, f".{name}", defaults)
                self.add(defaults, "", defaults)

    def _globals(self, used: CodeNames, space: dict[str, Any], standard: bool) -> None:
        if standard:  # its functions and constants don't change, but `os.environ` does
            names = {n for n in used.globals & space.keys() if not n.startswith("_")}
            for name in sorted(names):
                if has_state(space[name]):
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
        if name in sys.modules:  # None for one that must not be imported
            self._named.add(id(sys.modules[name]))
            self.add(sys.modules, f"[{name!r}]", sys.modules[name])
        else:
            self._imports.add(name)

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
                first, *attributes = name.split(".")
                value = given.get(first, frame.f_globals.get(first, self))
                for attribute in attributes:
                    own = None if value is self else getattr(value, "__dict__", None)
                    value = own.get(attribute, self) if isinstance(own, dict) else self
                if value is not self:
                    self._record_whole(value)
                elif attributes:  # of a class, or computed by a property
                    self._look_everywhere()
        if standard:
            return
        self.computes |= bool(used.computed or used.any_attribute or used.any_global)
        if used.any_attribute:
            self._look_everywhere()
        if used.any_global:
            self._namespace(frame.f_globals)
        if used.tolerant:
            self._tolerant = True

    def _record_whole(self, value: Any) -> None:
        if isinstance(value, type(None)) or id(value) in self._whole:
            return
        for each in (value, *type(value).__mro__):  # a name may be one of the class
            self._whole[id(each)] = each
            holder = self._by_object.get(id(each))
            if holder is not None:
                self._look_up(holder, frozenset())

    def _finish_holder(self, holder: Holder) -> None:
        """Record that an object has no more attributes of these names than it had."""
        value, space = holder.value, holder.space
        if space is None or isinstance(value, type | types.FunctionType):
            return
        if isinstance(value, types.ModuleType):
            if self._tolerant and not is_standard_module(value) and not holder.whole:
                lacking = frozenset(self._names - holder.before)
                self.found.append(Found(space, "", lacking, form=LACKS_GLOBALS))
            return
        path = f"{holder.path}.__dict__"
        if is_internal_class(type(value)):
            methods = public_methods(type(value)) - holder.before
            if methods:  # which this package calls, such as `forward`
                self.found.append(Found(holder.scope, path, methods, form=LACKS))
            return
        cached = {n for n in space.keys() - holder.before if is_cached_property(type(value), n)}
        for name in sorted(cached & self._names):
            self.add(holder.scope, f"{holder.path}.{name}", space[name])
        if self._is_whole(value):
            names = [*holder.before & space.keys(), *cached]
            self.found.append(Found(holder.scope, path, frozenset(names), form="{0}.keys() == {1}"))
        lacking = frozenset(self._names - holder.before - cached)
        self.found.append(Found(holder.scope, path, lacking, form=LACKS))


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


def _caller(frame: types.FrameType) -> types.FrameType | None:
    """Return the frame that a frame was called by, not counting those of the standard library."""
    caller = frame.f_back
    while caller is not None and is_standard[caller.f_code.co_filename]:
        caller = caller.f_back
    return caller
