"""Libraries of plain NumPy, imported anew with chainrule's NumPy, SciPy and `math` in their place.

``from chainrule.imported.filterpy.kalman import KalmanFilter`` in the place of
``from filterpy.kalman import KalmanFilter``: the library's code runs a second time, and what it
imports by the names ``numpy``, ``scipy``, ``math``, ``cmath`` and ``autograd`` are namespaces whose
functions record. So ``np.asarray(x, float)``, ``np.zeros(3)`` and ``math.exp(x)`` in it keep the
gradient.

The library itself, other libraries that it imports, and NumPy remain as they are: nothing is
patched. A library that it depends on can be imported anew before it, and then serves it. The
classes of the two copies are different ones. Modules that are compiled to machine code are shared
by both.
"""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import suppress
from functools import partial, update_wrapper
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any

from chainrule.autograd.conversions import DifferentiatedError
from chainrule.errors import AutogradError
from chainrule.interop.math_modules import NUMBERS
from chainrule.interop.operands import arrays_of, is_tracked
from chainrule.interop.source_code import recording_code, run_code

__path__: list[str] = []


class _Finder(MetaPathFinder):
    """Finds libraries under names of this package, where Python finds them under their own."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = fullname.removeprefix(f"{__name__}.")
        if name == fullname:
            return None
        if name in _NAMESPACES:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: import chainrule.numpy, chainrule.scipy or "
                "chainrule.compat.autograd"
            )
        found = _found(name, path if "." in name else None)
        if found is None:
            return None
        loader: Any = _Shared(found)
        if isinstance(found.loader, SourceFileLoader):
            loader = _Library(fullname, found.loader.path)
        spec = ModuleSpec(fullname, loader, origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        spec.has_location = found.has_location
        return spec


def _found(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    finders = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    found = (finder.find_spec(name, path) for finder in finders)
    return next((spec for spec in found if spec is not None), None)


class _Library(SourceFileLoader):
    """Runs the code of a library's module with other namespaces for its imports."""

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the module's code, in which ``float(x)`` of a tensor is recorded as well."""
        return recording_code(self, fullname) or super().get_code(fullname)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        library = self.name.removeprefix(f"{__name__}.").partition(".")[0]
        code: Any = self.get_code(self.name)
        run_code(code, module, _finder(library))


class _Shared(Loader):
    """Takes the names of a module that isn't Python code; its functions get NumPy's own arrays."""

    def __init__(self, original: ModuleSpec) -> None:
        self.original = original

    def exec_module(self, module: ModuleType) -> None:
        """Take the names; a namespace package has none."""
        if self.original.loader is None:
            return
        for name, value in vars(import_module(self.original.name)).items():
            is_function = callable(value) and not isinstance(value, type)
            vars(module).setdefault(name, _OfNumbers(value) if is_function else value)


class _OfNumbers:
    """A function of compiled code, which raises for what is differentiated."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_tracked(args, kwargs):
            name = getattr(self._function, "__name__", "a function")
            raise AutogradError(
                f"{name} is compiled code, which records nothing: give it a derivative "
                "by cr.wrap, or hand it x.detach() if no gradient passes there"
            )
        return self._function(*arrays_of(args), **arrays_of(kwargs))

    def __getattr__(self, name: str) -> Any:  # of a ufunc
        return getattr(self._function, name)


def _finder(library: str) -> Callable[[str, Sequence[str]], Any]:
    """Return what finds the modules that those of a library import."""

    def find(name: str, names: Sequence[str]) -> Any:
        first = name.partition(".")[0]
        if name in ("numba", "sys"):
            return _NUMBA if name == "numba" else _Sys(library)
        if first == library or f"{__name__}.{first}" in sys.modules:
            builtins.__import__(f"{__name__}.{name}", fromlist=tuple(names))
            return sys.modules[f"{__name__}.{name if names else first}"]
        return _NAMESPACES[first](name if names else first, name) if first in _NAMESPACES else None

    return find


class _Sys(ModuleType):
    """The module `sys`, where a library finds its modules by their own names."""

    def __init__(self, library: str) -> None:
        super().__init__("sys")
        vars(self)["modules"] = _Modules(library)

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(sys, name, value)


class _Modules(MutableMapping[str, Any]):
    """Python's modules by name, of a library those that are imported anew."""

    def __init__(self, library: str) -> None:
        self._library = library

    def _full(self, name: str) -> str:
        is_own = name.partition(".")[0] == self._library
        return f"{__name__}.{name}" if is_own else name

    def __getitem__(self, name: str) -> Any:
        return sys.modules[self._full(name)]

    def __setitem__(self, name: str, module: Any) -> None:
        sys.modules[self._full(name)] = module

    def __delitem__(self, name: str) -> None:
        del sys.modules[self._full(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(sys.modules)

    def __len__(self) -> int:
        return len(sys.modules)


# --- namespaces -----------------------------------------------------------------------------------


def _ours(package: str, wanted: str, name: str) -> Any:
    import_module(f"{package}.{name}")
    return import_module(f"{package}.{wanted}")


def _scipy(wanted: str, name: str) -> Any:
    import_module(name)
    return _Scipy(wanted)


class _Scipy(ModuleType):
    """A module of SciPy, with those functions of `chainrule.scipy` that it has."""

    def __getattr__(self, name: str) -> Any:
        try:
            value = getattr(import_module(f"chainrule.{self.__name__}"), name)
        except (ImportError, AttributeError):
            value = getattr(import_module(self.__name__), name)
        if isinstance(value, ModuleType):
            value = _Scipy(f"{self.__name__}.{name}")
        elif self.__name__ == "scipy.optimize" and isinstance(value, FunctionType):
            value = _solver(getattr(import_module(self.__name__), name), value)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return dir(import_module(self.__name__))


def _solver(original: Any, ours: Any) -> Any:
    """Return a solver of SciPy's, which is ours where what is differentiated enters it."""

    first = next(iter(inspect.signature(original).parameters))

    def solve(*args: Any, **kwargs: Any) -> Any:
        function, rest = (args[0], args[1:]) if args else (kwargs.pop(first), ())

        def number_or_raise(*given: Any, **named: Any) -> Any:
            value = function(*given, **named)
            if is_tracked(value):
                raise DifferentiatedError(
                    "this solver's function depends on what is differentiated"
                )
            return arrays_of(value)

        if not is_tracked(rest, kwargs) and callable(function):
            with suppress(DifferentiatedError):
                return original(number_or_raise, *arrays_of(rest), **arrays_of(kwargs))
        return ours(function, *rest, **kwargs)

    return update_wrapper(solve, original)


def _math(wanted: str, name: str) -> Any:
    return NUMBERS[name]


_NAMESPACES: dict[str, Callable[[str, str], Any]] = {
    "numpy": partial(_ours, "chainrule"),
    "scipy": _scipy,
    "math": _math,
    "cmath": _math,
    "autograd": partial(_ours, "chainrule.compat"),  # that of HIPS
}


class _Numba(ModuleType):
    """Numba, whose compiled functions are those of Python."""

    prange = range

    def jit(self, *args: Any, **settings: Any) -> Any:
        """Return a function as it is, or a decorator that does, of signatures and settings."""
        if len(args) == 1 and isinstance(args[0], FunctionType):
            return args[0]
        return lambda function: function

    njit = jit

    def vectorize(self, *args: Any, **settings: Any) -> Any:
        """Return a function that is called for each element, or a decorator that makes one."""
        elementwise = import_module("chainrule.numpy").vectorize
        is_function = len(args) == 1 and isinstance(args[0], FunctionType)
        return elementwise(args[0]) if is_function else elementwise

    def guvectorize(self, *args: Any, **settings: Any) -> Any:
        """Return a decorator: of a function that writes to its arguments, the compiled one."""
        return _compiled

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module("numba"), name)


def _compiled(function: FunctionType) -> Any:
    """Return the compiled function of the library itself, which has NumPy's arrays."""
    library = import_module(function.__module__.removeprefix(f"{__name__}."))
    return _OfNumbers(getattr(library, function.__name__))


_NUMBA = _Numba("numba")

sys.meta_path.insert(0, _Finder())
