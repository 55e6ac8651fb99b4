"""Functions under SciPy's names: SciPy's own of arrays, recorded ones of tensors.

A function of tensors is declared with the name of SciPy's that it stands for and the kind of its
derivative. It is called where a gradient is recorded, or where the elements aren't known: in
compiled functions and under vmap. All else is computed by SciPy itself.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from chainrule import pytree
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import LazyModule, is_array, is_known
from chainrule.errors import MissingRuleError
from chainrule.interop.operands import arrays_of, is_tracked
from chainrule.numpy.array_class import as_ndarrays

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class Declared(NamedTuple):
    """A function of tensors and the kind of its derivative."""

    function: Function
    kind: str


class Table:
    """The functions of tensors of one of SciPy's modules, and reasons for those that have none."""

    def __init__(self, path: str, needs: str) -> None:
        self.path = path
        self.scipys = LazyModule(path, needs)
        self.declared: dict[str, Declared] = {}
        self.refused: dict[str, str] = {}
        self.of_values: frozenset[str] = frozenset()

    def function(self, name: str, kind: str) -> Callable[[F], F]:
        """Register a function of tensors under a name of SciPy's, with the kind of its rule."""

        def register(function: F) -> F:
            self.declared[name] = Declared(function, kind)
            return function

        return register

    def names(self) -> list[str]:
        """Return SciPy's public names."""
        return list(self.scipys.__all__)

    def find(self, name: str) -> Any:
        """Return what stands for a name of SciPy's."""
        found = getattr(self.scipys, name)
        if not callable(found) or isinstance(found, type):
            return found
        declared = self.declared.get(name)
        if declared is not None:
            return either(f"{self.path}.{name}", found, declared.function)
        if name in self.of_values:
            return either(f"{self.path}.{name}", found, functools.partial(_of_values, found))
        reason = self.refused.get(name, "compute it from functions that have one")
        return either(f"{self.path}.{name}", found, refusal(f"{self.path}.{name}", reason))


def refusal(name: str, reason: str) -> Function:
    """Return the function of tensors that raises, for there is no derivative."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise MissingRuleError(
            f"{name} has no derivative rule in chainrule: {reason}. Where no gradient is needed, "
            "pass x.detach()"
        )

    refuse.__doc__ = f"No derivative: {reason}."
    return refuse


def _of_values(scipys: Function, *args: Any, **settings: Any) -> Any:
    """Return an answer that is no real number, such as whether a matrix is symmetric."""
    return scipys(*arrays_of(args), **arrays_of(settings))


# --- the choice between SciPy's function and ours -------------------------------------------------


def either(name: str, scipys: Function, ours: Function) -> Function:
    """Return the function of both, with results in the kind of the arguments."""

    def function(*args: Any, **settings: Any) -> Any:
        proxies, tracked, known, carried = _look(args, settings)
        if proxies is None:
            return scipys(*args, **settings)
        if known and not tracked:
            results = _by_scipy(scipys, args, settings)
        else:
            results = ours(*args, **settings)
        if carried:
            return as_ndarrays(results)
        return _arrays_in(results) if proxies else results

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = ours.__doc__
    function.__module__ = f"chainrule.{name.rpartition('.')[0]}"
    with contextlib.suppress(ValueError):  # for help(), and code that asks for the arguments
        function.__signature__ = _signature(scipys)  # type: ignore[attr-defined]
    return function


def _look(args: Any, settings: Any) -> tuple[bool | None, bool, bool, bool]:
    """Return whether all but arrays are symbols or batched arrays, None if there are only arrays.

    The others tell whether a gradient is recorded, whether all elements are known, and whether an
    argument is an `ndarray` of chainrule.
    """
    proxies, known, carried = None, True, False
    for leaf in _leaves((args, settings)):
        if isinstance(leaf, Tensor):
            proxies = False
            known = known and leaf._array.__class__ is np.ndarray
            carried = carried or leaf.is_carried
        elif is_array(leaf) and not isinstance(leaf, np.ndarray):
            proxies = True if proxies is None else proxies
            known = False
    return proxies, proxies is False and is_tracked(args, settings), known, carried


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, list | tuple):
        for part in tree:
            yield from _leaves(part)
    elif isinstance(tree, dict):
        yield from _leaves(list(tree.values()))
    else:
        yield tree


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


def _by_scipy(scipys: Function, args: Any, settings: Any) -> Any:
    """Return SciPy's results as tensors, in single precision if the arguments are.

    Nothing is overwritten: the log of writes would not know.
    """
    bound = _signature(scipys).bind(*arrays_of(args), **arrays_of(settings))
    for name in bound.arguments:
        if name.startswith("overwrite"):
            bound.arguments[name] = False
    dtypes = [x.dtype for x in _leaves((args, settings)) if isinstance(x, Tensor | np.ndarray)]
    narrow = np.result_type(*dtypes).char in "eFf"

    def convert(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray | np.inexact | float | complex):
            return leaf
        array = np.asarray(leaf)
        if narrow and array.dtype.char in "dD":
            array = array.astype(array.dtype.char.translate(_NARROW))
        return make(array, None)

    return pytree.map_leaves(scipys(*bound.args, **bound.kwargs), convert)


_NARROW = str.maketrans("dD", "fF")
