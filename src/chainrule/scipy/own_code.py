"""SciPy's functions that are composed of others: its own Python code, on arrays that record.

A module of SciPy is run a second time, with `numpy` and SciPy's functions as names for chainrule's.
SciPy itself is not changed. What it does in compiled code raises where a gradient is recorded.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, resolve_name
from types import ModuleType
from typing import Any

import chainrule.numpy
from chainrule.interop.source_code import recording_builtins, recording_code
from chainrule.numpy.array_class import as_ndarrays, ndarray
from chainrule.scipy.dispatch import Table

__all__ = ["compose"]

_TABLES: dict[str, Table] = {}
_COMPOSED: dict[str, frozenset[str]] = {}
_RUN: dict[str, ModuleType] = {}


def compose(table: Table, names: Sequence[str]) -> None:
    """Register functions of SciPy's as compositions of those that have a rule."""
    _TABLES[table.path], _COMPOSED[table.path] = table, frozenset(names)
    for name in names:
        table.function(name, "composite")(functools.partial(_composed, table, name))


def _composed(table: Table, name: str, *args: Any, **settings: Any) -> Any:
    module = inspect.unwrap(getattr(table.scipys, name)).__module__
    function = getattr(_run(module), name)
    return function(*as_ndarrays(args), **{key: as_ndarrays(x) for key, x in settings.items()})


def _run(name: str) -> ModuleType:
    """Return a module of SciPy whose code was run with functions that record."""
    if name not in _RUN:
        spec: Any = find_spec(name)
        made = _RUN[name] = ModuleType(name)
        made.__package__ = name.rpartition(".")[0]
        vars(made)["__builtins__"] = recording_builtins(_import)
        code = recording_code(spec.loader, name) or spec.loader.get_code(name)
        try:
            exec(code, vars(made))
        except BaseException:
            del _RUN[name]
            raise
        table = _TABLES[made.__package__]
        rules = {*table.declared} - _COMPOSED[table.path]
        for own in {*vars(made)} & rules:  # a rule, in the place of compiled code
            setattr(made, own, table.find(own))
    return _RUN[name]


def _import(
    name: str,
    globals: Any = None,
    locals: Any = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    if level:
        name = resolve_name("." * level + name, globals["__package__"])
    first = name.partition(".")[0]
    if first == "numpy":
        import_module(f"chainrule.{name}")
        return sys.modules[f"chainrule.{name if fromlist else first}"]
    if first == "scipy":
        import_module(name)
        return _Names(name if fromlist else first)
    return builtins.__import__(name, globals, locals, fromlist or (), 0)


class _Names(ModuleType):
    """The names of a module of SciPy: chainrule's functions, and its own code, run again."""

    def __getattr__(self, name: str) -> Any:
        value = self._find(name)
        setattr(self, name, value)
        return value

    def _find(self, name: str) -> Any:
        own = getattr(import_module(self.__name__), name)
        if isinstance(own, ModuleType):
            is_scipys = own.__name__.startswith("scipy")
            return _Names(own.__name__) if is_scipys and name != "numpy" else chainrule.numpy
        if self.__name__.startswith("scipy._lib"):
            return _ARRAY_API.get(name, own)
        package = ".".join(self.__name__.split(".")[:2])
        table = _TABLES.get(package)
        is_public = getattr(import_module(package), name, None) is not None
        if is_public and (table is None or name in table.declared):
            return getattr(_ours(package), name, own)
        if table is not None and callable(own) and _is_python(self.__name__):
            return getattr(_run(self.__name__), name)
        return own


def _ours(package: str) -> Any:
    try:
        return import_module(f"chainrule.{package}")
    except ImportError:
        return None


@functools.cache
def _is_python(name: str) -> bool:
    found = find_spec(name)
    if found is None or not isinstance(found.loader, SourceFileLoader):
        return False
    return not found.submodule_search_locations


_ARRAY_API: dict[str, Callable[..., Any]] = {
    "array_namespace": lambda *arrays, **_: chainrule.numpy,
    "is_numpy": lambda xp: xp is chainrule.numpy,
    "is_array_api_obj": lambda x: isinstance(x, ndarray),
    "xp_device": lambda x: "cpu",
}
"""What SciPy asks to tell one library of arrays from another: here, it is NumPy."""
