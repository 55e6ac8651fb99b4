"""SciPy's functions that are composed of others: its own Python code, on arrays that record.

A module of SciPy is run a second time, with `numpy` and SciPy's functions as names for chainrule's.
SciPy itself is not changed. What it does in compiled code raises where a gradient is recorded.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

import chainrule.numpy
from chainrule.autograd.conversions import DifferentiatedError
from chainrule.backend import is_known
from chainrule.backend.extensions import SCIPY
from chainrule.errors import AutogradError, MissingRuleError
from chainrule.interop.math_modules import NUMBERS
from chainrule.interop.operands import are_known, arrays_of, is_tracked, tensors_in
from chainrule.interop.source_code import recording_code, run_code
from chainrule.numpy.array_class import ndarray
from chainrule.scipy.dispatch import RUN_AGAIN, Table, are_constants, either, missing_rule
from chainrule.scipy.own_classes import class_of, recording

__all__ = ["compose", "compose_others", "replace_compiled", "run_again", "stand_for"]

_COMPILED = "SciPy computes it, in part, in compiled code"

_NEEDS_ARRAY = re.compile(r"numpy\.ndarray|bytes-like|buffer|Can't call numpy\(\)")
"""In errors of compiled code about an argument that isn't an array of NumPy's."""

_TABLES: dict[str, Table] = {}
_COMPOSED: dict[str, frozenset[str]] = {}
_RUN: dict[str, ModuleType] = {}
_COMPILED_RULES: dict[str, dict[str, Callable[..., Any]]] = {}


def compose(table: Table, names: Sequence[str]) -> None:
    """Register functions of SciPy's as compositions of those that have a rule."""
    _TABLES[table.path], _COMPOSED[table.path] = table, frozenset(names)
    for name in names:
        table.function(name, "composite")(functools.partial(_composed, table, name))


def compose_others(table: Table) -> None:
    """Let SciPy's own code stand for the functions of a module that have no rule, where it can."""
    _TABLES[table.path] = table
    _COMPOSED.setdefault(table.path, frozenset())
    table.composed = functools.partial(_attempt, table)


def stand_for(module: ModuleType) -> None:
    """Let a module stand for one of SciPy's that has no rules."""
    table = Table(module.__name__.removeprefix("chainrule."), SCIPY)
    compose_others(table)
    get, names = table.namespace()
    for name, value in {"__getattr__": get, "__dir__": names, "__all__": names()}.items():
        setattr(module, name, value)
    module.__doc__ = table.scipys.__doc__


def _attempt(table: Table, name: str) -> Any:
    scipys = getattr(table.scipys, name)
    found = inspect.unwrap(scipys)
    if inspect.isclass(found):
        return _class(table, found)
    if not inspect.isfunction(found) or not _is_python(found.__module__):
        return None

    return _naming(f"{table.path}.{name}", functools.partial(_composed, table, name), scipys)


def _naming(
    name: str, function: Callable[..., Any], scipys: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Return a function whose errors of compiled code name it.

    Where that is reached, integers and truth values that SciPy's own finds are constants.
    """

    def call(*args: Any, **settings: Any) -> Any:
        try:
            return function(*args, **settings)
        except (AutogradError, TypeError) as error:
            is_refused = isinstance(error, DifferentiatedError | MissingRuleError)
            if not is_refused and not _NEEDS_ARRAY.search(str(error)):
                raise
            if str(error).startswith(f"{name}:"):  # which has a reason of its own
                raise
            refused = error
        if scipys is not None and not any(map(callable, args)):
            with contextlib.suppress(Exception):
                found = scipys(*arrays_of(args), **arrays_of(settings))
                if found is not None and are_constants(found):
                    return found
        raise missing_rule(name, _COMPILED) from refused

    return call


def _class(table: Table, scipys: type) -> Any:
    """Return a class of SciPy's that is run again for what is differentiated, and in transforms."""
    if not _runs_again(scipys):
        return None

    def again(kind: type) -> Any:
        return getattr(run_again(kind.__module__), kind.__name__)

    naming = functools.partial(_naming, f"{table.path}.{scipys.__name__}")
    return class_of(scipys, f"chainrule.{table.path}", again, naming)


def _runs_again(scipys: type) -> bool:
    bases = [kind.__module__ for kind in scipys.__mro__ if kind.__module__.startswith("scipy")]
    is_data = issubclass(scipys, BaseException | tuple)
    return bool(bases) and all(map(_is_python, bases)) and not is_data


def _composed(table: Table, name: str, *args: Any, **settings: Any) -> Any:
    module = inspect.unwrap(getattr(table.scipys, name)).__module__
    function = getattr(run_again(module), name)
    return function(*recording(args), **recording(settings))


def run_again(name: str) -> ModuleType:
    """Return a module of SciPy whose code was run with functions that record."""
    if name not in _RUN:
        spec: Any = find_spec(name)
        made = _RUN[name] = ModuleType(name)
        made.__package__, made.__file__ = name.rpartition(".")[0], spec.origin
        code = recording_code(spec.loader, name, has_shortcuts=True)
        code = code or spec.loader.get_code(name)
        try:
            run_code(code, made, _found)
        except BaseException:
            del _RUN[name]
            raise
        for value in [*vars(made).values()]:
            if isinstance(value, type) and value.__module__ == name:
                setattr(value, RUN_AGAIN, True)
        for own, rule in _rules(name).items():  # in the place of compiled code
            kind, _, method = own.rpartition(".")
            if (kind or method) in vars(made):
                setattr(getattr(made, kind) if kind else made, method, rule)
    return _RUN[name]


def _rules(module: str) -> dict[str, Any]:
    table = _TABLES.get(".".join(module.split(".")[:2]))
    if table is None:
        return _ARRAY_API
    names = {*table.declared, *table.objects} - _COMPOSED[table.path]
    rules = {name: _rule(table.find(name)) for name in names}
    return rules | _COMPILED_RULES.get(module, {})


def _rule(function: Any) -> Any:
    """Return a rule for calls by SciPy's own code, which have settings of its decorators."""
    if not inspect.isfunction(function):
        return function

    @functools.wraps(function)
    def rule(*args: Any, _no_deco: bool = False, **settings: Any) -> Any:
        return function(*args, **settings)

    return rule


def replace_compiled(module: str, **functions: Callable[..., Any]) -> None:
    """Give rules to private functions of SciPy's that are compiled, and to ``Class.method``."""
    _COMPILED_RULES.setdefault(module, {}).update(functions)


def _found(name: str, names: Sequence[str]) -> Any:
    """Return what `import` finds for code that runs again; None for Python's own."""
    first = name.partition(".")[0]
    if first == "numpy":
        import_module(f"chainrule.{name}")
        return sys.modules[f"chainrule.{name if names else first}"]
    if first == "scipy":
        import_module(name)
        return _Names(name if names else first)
    return NUMBERS.get(first)


class _Names(ModuleType):
    """The names of a module of SciPy: chainrule's functions, and its own code, run again."""

    def __getattr__(self, name: str) -> Any:
        value = self._find(name)
        setattr(self, name, value)
        return value

    def _find(self, name: str) -> Any:
        if name == "__all__":  # of ``from … import *``
            own = import_module(self.__name__)
            return getattr(own, "__all__", [each for each in vars(own) if each[0] != "_"])
        if name in _COMPILED_RULES.get(self.__name__, {}):
            return _COMPILED_RULES[self.__name__][name]
        own = getattr(import_module(self.__name__), name)
        if isinstance(own, ModuleType):
            is_numpy = (
                own.__name__.rpartition(".")[2] == "numpy"
            )  # also the one of `array_api_compat`
            return chainrule.numpy if is_numpy else _Names(own.__name__)
        if inspect.isroutine(own) and not inspect.isfunction(inspect.unwrap(own)):
            return _of_numbers(f"{self.__name__}.{name}", own)
        if name in ("get_lapack_funcs", "get_blas_funcs"):
            return functools.partial(_fortran, own)
        if self.__name__.startswith(("scipy._lib", "scipy._external")):
            return _ARRAY_API[name] if name in _ARRAY_API else _of_library(own)
        package = ".".join(self.__name__.split(".")[:2])
        package = self.__name__ if self.__name__ in _TABLES else package
        table = _TABLES.get(package)
        is_public = name[0] != "_" and getattr(import_module(package), name, None) is not None
        if is_public and (
            table is None or name in {**table.declared, **table.objects, **table.makers}
        ):
            return getattr(_ours(package), name, own)
        if table is not None and callable(own) and _is_python(self.__name__):
            return getattr(run_again(self.__name__), name)
        if table is not None and inspect.isclass(own) and _runs_again(own):
            return getattr(run_again(own.__module__), own.__name__)
        if table is not None and inspect.isfunction(own):  # of a package
            module = inspect.unwrap(own).__module__
            if _is_python(module) and hasattr(run_again(module), name):
                return either(name, own, getattr(run_again(module), name))
        return own


def _of_numbers(name: str, compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiled function, which takes arrays that record nothing as NumPy's.

    Integers and truth values that it finds are constants.
    """

    @functools.wraps(compiled, updated=())
    def function(*args: Any, **settings: Any) -> Any:
        for x in tensors_in((args, settings)):
            if not is_known(x._array):
                np.asarray(x._array)  # the error of a symbol or a batched array says what to do
        numbers = [_numbers_in(x) for x in args]
        options = arrays_of(settings)
        if not is_tracked(args, settings):
            return compiled(*numbers, **options)
        with contextlib.suppress(Exception):
            found = compiled(*numbers, **options)
            if found is not None and are_constants(found):
                return found
        raise missing_rule(name, "it is compiled code")

    return function


def _numbers_in(x: Any) -> Any:
    """Return an argument with NumPy's arrays: itself if it has them, as it may be written to."""
    return x if next(tensors_in(x), None) is None else arrays_of(x)


def _fortran(get: Callable[..., Any], names: Any, arrays: Any = (), **settings: Any) -> Any:
    found = get(names, arrays_of(arrays), **settings)
    single = isinstance(names, str)
    functions = [
        _of_numbers(f"scipy.linalg: {f.typecode}{f}", f) for f in ([found] if single else found)
    ]
    return functions[0] if single else functions


def _of_library(own: Any) -> Any:
    """Return a function or class of SciPy's library, run again if it computes with arrays."""
    found = inspect.unwrap(own) if inspect.isfunction(own) else own
    if not isinstance(found, FunctionType | type) or found.__module__ not in _LIBRARY:
        return own
    return getattr(run_again(found.__module__), own.__name__, own)


_LIBRARY = frozenset(
    [
        *("scipy._lib._array_api", "scipy._lib._util"),
        "scipy._lib._elementwise_iterative_method",
        *(
            f"scipy.{package}.array_api_extra.{name}"
            for package in ("_lib", "_external")  # from SciPy 1.18 on
            for name in ("_delegation", "_lib._funcs", "_lib._at")
        ),
    ]
)


def _apply_where(
    cond: Any, args: Any, f1: Any, f2: Any = None, /, *, fill_value: Any = None, **_: Any
) -> Any:
    """Return `f1` of the elements where a condition holds, and `f2` or a number elsewhere."""
    xp = chainrule.numpy
    args = args if isinstance(args, list | tuple) else [args]
    cond, *arrays = xp.broadcast_arrays(cond, *args)
    if are_known(cond) and xp.all(cond):
        return f1(*arrays)
    if not cond.ndim and are_known(cond):
        return fill_value if f2 is None else f2(*arrays)
    if not are_known((cond, arrays)):  # elements can't be chosen: both are computed of all
        other = fill_value if f2 is None else f2(*_only_where(~cond, arrays))
        return xp.where(cond, f1(*_only_where(cond, arrays)), other)
    first = f1(*[x[cond] for x in arrays])
    other = fill_value if f2 is None else f2(*[x[~cond] for x in arrays])
    found = xp.empty(cond.shape, xp.result_type(first, other))
    found[cond], found[~cond] = first, other
    return found


def _only_where(cond: Any, arrays: Any) -> Any:
    """Return arrays that are constant where a condition doesn't hold: no NaN flows back there."""
    return [
        chainrule.numpy.where(cond, x, x.detach()) if isinstance(x, ndarray) else x for x in arrays
    ]


def _lazyselect(conditions: Any, choices: Any, arrays: Any, default: Any = 0) -> Any:
    """Return the function of the elements whose condition holds, the last of several."""
    xp = chainrule.numpy
    arrays = xp.broadcast_arrays(*arrays)
    found = xp.full(arrays[0].shape, default, xp.result_type(*arrays))
    for cond, function in zip(conditions, choices, strict=True):
        found = _apply_where(cond, [*arrays, found], lambda *x, f=function: f(*x[:-1]), _last)
    return found


def _last(*arrays: Any) -> Any:
    return arrays[-1]


def _ours(package: str) -> Any:
    try:
        return import_module(f"chainrule.{package}")
    except ImportError:
        return None


@functools.cache
def _is_python(name: str) -> bool:
    if name in ("scipy.linalg.blas", "scipy.linalg.lapack"):  # which look for what is compiled
        return False
    found = find_spec(name)
    if found is None or not isinstance(found.loader, SourceFileLoader):
        return False
    return not found.submodule_search_locations


_ARRAY_API: dict[str, Callable[..., Any]] = {
    "array_namespace": lambda *arrays, **_: chainrule.numpy,
    "is_numpy": lambda xp: xp is chainrule.numpy,
    "is_array_api_obj": lambda x: isinstance(x, ndarray),
    "is_numpy_namespace": lambda xp: xp is chainrule.numpy,
    "is_numpy_array": lambda x: isinstance(x, ndarray),
    "xp_device": lambda x: "cpu",
    "apply_where": _apply_where,
    "_lazyselect": _lazyselect,
}
"""What SciPy asks to tell one library of arrays from another: here, it is NumPy."""
