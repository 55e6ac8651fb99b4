"""Functions under SciPy's names: SciPy's own of arrays, recorded ones of tensors.

A module that stands for one of SciPy's has a `Table`, in which functions of tensors are declared
with the name of SciPy's that they stand for.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from abc import ABCMeta
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from chainrule import pytree
from chainrule.autograd.conversions import DifferentiatedError
from chainrule.autograd.operands import plain
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import LazyModule, is_array, is_known
from chainrule.errors import MissingRuleError
from chainrule.interop.operands import arrays_of, is_tracked
from chainrule.interrupts import ERRSTATE, call_with, ignore_all
from chainrule.numpy.array_class import as_ndarrays, in_float64
from chainrule.scipy.error_texts import explaining

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class Declared(NamedTuple):
    """A function of tensors and the kind of its derivative."""

    function: Function
    kind: str


class Table:
    """The functions of tensors of one of SciPy's modules, and reasons for those that have none.

    Parameters
    ----------
    path : str
        The module's name.
    needs : str
        How to install it, for the error where it is missing.
    has_scipys_numbers : bool, default False
        Where no gradient is recorded and all elements are known, SciPy itself computes with the
        numbers of tensors.
    """

    def __init__(self, path: str, needs: str, *, has_scipys_numbers: bool = False) -> None:
        self.path = path
        self.scipys = LazyModule(path, needs)
        self.has_scipys_numbers = has_scipys_numbers
        self.declared: dict[str, Declared] = {}
        self.objects: dict[str, Any] = {}  # that stand for themselves, also for arrays
        self.makers: dict[str, Callable[[], Any]] = {}  # of further objects, when they are needed
        self.refused: dict[str, str] = {}  # reasons by name
        self.of_values: frozenset[str] = frozenset()  # functions that answer without a derivative
        self.composed: Callable[[str], Function | None] = lambda name: None  # of all other names

    def function(self, name: str, kind: str) -> Callable[[F], F]:
        """Register a function of tensors under a name of SciPy's, with the kind of its rule."""

        def register(function: F) -> F:
            self.declared[name] = Declared(function, kind)
            return function

        return register

    def find(self, name: str) -> Any:
        """Return what stands for a name of SciPy's."""
        if name in self.makers:
            self.objects[name] = self.makers.pop(name)()
        if name in self.objects:
            return self.objects[name]
        full = f"{self.path}.{name}"
        found = _attribute(self.scipys, name, full)
        if isinstance(found, ModuleType):
            return _standing_for(found)
        declared = self.declared.get(name)
        if declared is not None:
            ours, by_scipy = declared.function, self.has_scipys_numbers
            return either(full, found, ours, has_scipys_numbers=by_scipy)
        if name in self.of_values:
            return either(full, found, functools.partial(_of_values, found))
        composed = None if name in self.refused else self.composed(name)
        if isinstance(composed, type):
            return composed
        if composed is not None:
            return without_rule(either(full, found, composed, has_scipys_numbers=True))
        if not inspect.isroutine(found):
            return found
        reason = self.refused.get(name, "compute it from functions that have one")
        return refused(full, found, reason)

    def namespace(self) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
        """Return ``__getattr__`` and ``__dir__`` of the module that stands for SciPy's."""
        get, names = namespace_of(self.path, self.find)
        return get, lambda: sorted({*self.objects, *self.makers, *self.declared, *names()})


def namespace_of(
    path: str, find: Callable[[str], Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a module with the names of one of SciPy's.

    They are what ``from chainrule.scipy.special import *`` imports.
    """
    find = functools.cache(find)

    def names() -> list[str]:
        module = import_module(path)
        return list(getattr(module, "__all__", [name for name in vars(module) if name[0] != "_"]))

    def get(name: str) -> Any:
        if name == "__all__":
            return names()
        if name == "__path__":  # private modules below it are SciPy's
            return []
        if name.startswith("__"):
            raise AttributeError(f"module 'chainrule.{path}' has no attribute {name!r}")
        return find(name)

    return get, names


def _attribute(module: Any, name: str, full: str) -> Any:
    """Return what SciPy's module has under a name, a module that nobody imported among it."""
    with contextlib.suppress(ModuleNotFoundError):
        if not hasattr(module, name):
            return import_module(full)
    return getattr(module, name)


def _standing_for(module: ModuleType) -> ModuleType:
    with contextlib.suppress(ImportError):
        return import_module(f"chainrule.{module.__name__}")
    return module


def missing_rule(name: str, reason: str) -> MissingRuleError:
    """Return the error of a function of SciPy's that has no derivative here."""
    return MissingRuleError(
        f"{name} has no derivative rule in chainrule: {reason}. Where no gradient is needed, pass "
        "x.detach()"
    )


def without_rule(function: Any) -> Any:
    """Return a function, marked as one that stands for SciPy's own: errors don't advise it."""
    function.has_rule = False
    return function


def refused(name: str, scipys: Function, reason: str) -> Function:
    """Return SciPy's function, which raises if a gradient is asked for, or elements are unknown."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise missing_rule(name, reason)

    refuse.__doc__ = f"No derivative: {reason}."
    found: Function = without_rule(either(name, scipys, refuse, has_scipys_numbers=True))
    return found


def _of_values(scipys: Function, *args: Any, **settings: Any) -> Any:
    """Return an answer that is no real number, such as whether a matrix is symmetric."""
    return scipys(*arrays_of(args), **arrays_of(settings))


def are_constants(results: Any) -> bool:
    """Return whether results are integers, truth values and texts, whose derivative is 0."""
    if isinstance(results, set | frozenset):
        return all(map(are_constants, results))
    leaves = [leaf for leaf in _leaves(results) if leaf is not None]
    return all(map(_is_constant, leaves))


def _is_constant(leaf: Any) -> bool:
    if isinstance(leaf, set | frozenset):
        return are_constants(leaf)
    x = np.asarray(leaf)
    if x.dtype == object:
        return x.ndim > 0 and all(map(are_constants, x.ravel()))
    return x.dtype.kind in "iubU"


# --- the choice between SciPy's function and ours -------------------------------------------------


def either(
    name: str, scipys: Function, ours: Function, *, has_scipys_numbers: bool = False
) -> Function:
    """Return the function of both, with results in the kind of the arguments."""

    @explaining(name)
    def function(*args: Any, **settings: Any) -> Any:
        tensors = [leaf for leaf in _leaves((args, settings)) if _is_tensor(leaf)]
        known = all([getattr(t, "_array", t).__class__ is np.ndarray for t in tensors])
        if tensors and not (has_scipys_numbers and known and not is_tracked(args, settings)):
            return _call_ours(ours, args, settings, tensors)
        of_numbers = functools.partial(_by_scipy, scipys, tensors) if tensors else scipys
        if not any(map(callable, args)):
            return of_numbers(*args, **settings)
        before = [_kept(x) for x in args], {key: _kept(x) for key, x in settings.items()}
        try:
            return of_numbers(*args, **settings)
        except Exception as error:
            if not _is_of_differentiated(error):  # which a function closes over
                raise
        return _call_ours(ours, *before, tensors)

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = ours.__doc__
    function.__module__ = f"chainrule.{name.rpartition('.')[0]}"
    with contextlib.suppress(ValueError):  # for help(), and code that asks for the arguments
        function.__signature__ = _signature(scipys)  # type: ignore[attr-defined]  # for `inspect`
    return function


def _kept(argument: Any) -> Any:
    """Return an argument, a generator of random numbers as it is now."""
    return copy.deepcopy(argument) if hasattr(argument, "random") else argument


def _is_of_differentiated(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, DifferentiatedError):
        error = error.__cause__ or error.__context__
    return error is not None


class _Makers(NamedTuple):
    """What a class of `either_class` makes."""

    scipys: type
    ours: Function
    chooses: Callable[..., bool]
    kind: type
    plain: Function


class _EitherKind(ABCMeta):
    """The class of classes of `either_class`, and of those that users derive from them."""

    def __instancecheck__(cls, instance: Any) -> bool:
        makers = _MAKERS.get(cls)
        if makers is None:
            return super().__instancecheck__(instance)
        return isinstance(instance, makers.scipys | makers.kind)

    def __subclasscheck__(cls, kind: type) -> bool:
        makers = _MAKERS.get(cls)
        is_scipys = makers is not None and makers.scipys in kind.__mro__
        return is_scipys or super().__subclasscheck__(kind)

    def __call__(cls, *args: Any, **settings: Any) -> Any:
        makers = _MAKERS.get(cls)
        if makers is None:
            return super().__call__(*args, **settings)
        is_ours = makers.chooses([*args, *settings.values()])
        return (makers.ours if is_ours else makers.plain)(*args, **settings)


_MAKERS: dict[type, _Makers] = {}


def either_class(
    scipys: type,
    ours: Function,
    chooses: Callable[..., bool],
    kind: type,
    plain: Function | None = None,
) -> Any:
    """Return a class whose calls make an object of SciPy's, or by `ours` where `chooses` says so.

    `plain` makes SciPy's, in the place of its class. Objects of that and of `kind` count as its
    instances.
    """
    contents = {"__module__": f"chainrule.{scipys.__module__}", "__doc__": scipys.__doc__}
    found = _EitherKind(scipys.__name__, (scipys,), contents)
    _MAKERS[found] = _Makers(scipys, ours, chooses, kind, plain or scipys)
    return found


def has_tensors(*values: Any) -> bool:
    """Return whether a tensor, a symbol or a batched array is among arguments."""
    return any(map(_is_tensor, _leaves(values)))


def call_ours(function: Function, args: Any, kwargs: Any) -> Any:
    """Call a function of tensors, with results in the kind of the arguments.

    They are of the class that its operands are carried in, or arrays if all operands are symbols
    or batched arrays. A function among the arguments gets that class, too; others compute with
    plain tensors, and without warnings where a formula is infinite or undefined.
    """
    tensors = [leaf for leaf in _leaves((args, kwargs)) if _is_tensor(leaf)]
    return _call_ours(function, args, kwargs, tensors)


def _call_ours(function: Function, args: Any, kwargs: Any, tensors: list[Any]) -> Any:
    has_functions = any([callable(value) for value in (*args, *kwargs.values())])
    quiet = {} if has_functions else {ERRSTATE: ignore_all(ERRSTATE.get())}
    if _is_carried(tensors):
        if not has_functions:
            args, kwargs = _plain(args), _plain(kwargs)
        return _mapped(as_ndarrays, call_with(quiet, in_float64, function, *args, **kwargs))
    found = call_with(quiet, function, *args, **kwargs)
    if not tensors or any([isinstance(leaf, Tensor) for leaf in tensors]):
        return found
    return _mapped(_arrays_in, found)


def _mapped(convert: Callable[[Any], Any], found: Any) -> Any:
    return found.map_parts(convert) if hasattr(found, "map_parts") else convert(found)


def _is_tensor(leaf: Any) -> bool:
    if isinstance(leaf, Tensor) or hasattr(type(leaf), RUN_AGAIN):
        return True
    return is_array(leaf) and not isinstance(leaf, np.ndarray)


RUN_AGAIN = "_chainrule_runs_again"
"""An attribute of classes of SciPy's whose code was run again: their objects hold tensors."""


def _is_carried(tensors: list[Any]) -> bool:
    return any([isinstance(leaf, Tensor) and leaf.is_carried for leaf in tensors])


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, list | tuple):
        for part in tree:
            yield from _leaves(part)
    elif isinstance(tree, dict):
        yield from _leaves(list(tree.values()))
    else:
        yield tree


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return plain(value)
    if value.__class__ in (list, tuple):
        return value.__class__([_plain(part) for part in value])
    if value.__class__ is dict:
        return {key: _plain(part) for key, part in value.items()}
    return value


def _arrays_in(results: Any) -> Any:
    """Return results for symbols or batched arrays as such."""
    return pytree.map_leaves(
        results,
        lambda leaf: (
            leaf._array if isinstance(leaf, Tensor) and not is_known(leaf._array) else leaf
        ),
    )


@functools.cache
def _signature(function: Function) -> inspect.Signature:
    return inspect.signature(function)


def _by_scipy(scipys: Function, tensors: list[Any], *args: Any, **settings: Any) -> Any:
    """Return SciPy's results as tensors, in single precision if the arguments are.

    Nothing is overwritten: the log of writes would not know.
    """
    numbers, options = arrays_of(args), arrays_of(settings)
    with contextlib.suppress(ValueError):  # of compiled functions, which have no signature
        bound = _signature(scipys).bind(*numbers, **options)
        for name in bound.arguments:
            if name.startswith("overwrite"):
                bound.arguments[name] = False
        numbers, options = bound.args, bound.kwargs
    dtypes = [x.dtype for x in _leaves((args, settings)) if isinstance(x, Tensor | np.ndarray)]
    narrow = np.result_type(*dtypes).char in "eFf"

    def convert(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray | np.inexact | float | complex):
            return leaf
        array = np.asarray(leaf)
        if narrow and array.dtype.char in "dD":
            array = array.astype(array.dtype.char.translate(_NARROW))
        return make(array, None)

    results = pytree.map_leaves(scipys(*numbers, **options), convert)
    return as_ndarrays(results) if _is_carried(tensors) else results


_NARROW = str.maketrans("dD", "fF")
