"""NumPy's namespace, whose arrays record what happens to them.

``import chainrule.numpy as np`` in the place of ``import numpy as np``: arrays that `zeros`,
`array`, `linspace` and the like return are differentiable, also when they are written to. All
names are NumPy's; functions have NumPy's arguments and results. Modules such as `linalg` are
imported from here as well.

>>> import chainrule as cr
>>> import chainrule.numpy as np
>>> def trajectory(v):
...     y = np.zeros(4)
...     for i in range(1, 4):
...         y[i] = y[i - 1] + v * 0.5**i
...     return y[3]
>>> cr.grad(trajectory)(2.0)
0.875
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from functools import update_wrapper
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any

import numpy as _numpy

from chainrule.interop.source_code import run_code
from chainrule.numpy import array_operators as _array_operators  # noqa: F401 - it fills the class
from chainrule.numpy.array_class import as_ndarrays as _as_ndarrays
from chainrule.numpy.array_class import call as _call
from chainrule.numpy.array_class import ndarray as ndarray
from chainrule.numpy.grid import asarray_chkfinite as asarray_chkfinite
from chainrule.numpy.grid import broadcast as broadcast
from chainrule.numpy.grid import c_ as c_
from chainrule.numpy.grid import fftfreq as _fftfreq
from chainrule.numpy.grid import fromiter as fromiter
from chainrule.numpy.grid import frompyfunc as frompyfunc
from chainrule.numpy.grid import isfortran as isfortran
from chainrule.numpy.grid import iterable as iterable
from chainrule.numpy.grid import kaiser as kaiser
from chainrule.numpy.grid import ndenumerate as ndenumerate
from chainrule.numpy.grid import r_ as r_
from chainrule.numpy.grid import rfftfreq as _rfftfreq
from chainrule.numpy.grid import vectorize as vectorize


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy whose arguments may be recorded arrays and lists of them."""

    def recording(*args: Any, **kwargs: Any) -> Any:
        return _call(function, args, kwargs)

    return update_wrapper(recording, function)


class _Ufunc:
    """A ufunc of NumPy: its calls and methods return recorded arrays."""

    def __init__(self, ufunc: Any) -> None:
        self.ufunc = ufunc
        self.__name__ = ufunc.__name__
        self.__doc__ = ufunc.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _as_ndarrays(self.ufunc(*_lists_as_arrays(args), **kwargs))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.ufunc, name)
        return _recording_method(value) if name in _UFUNC_METHODS else value

    def __repr__(self) -> str:
        return repr(self.ufunc)


_UFUNC_METHODS = frozenset(["reduce", "accumulate", "outer", "at", "reduceat"])


def _recording_method(method: Callable[..., Any]) -> Callable[..., Any]:
    def recording(array: Any, *args: Any, **kwargs: Any) -> Any:
        return _as_ndarrays(method(*_lists_as_arrays((array,)), *args, **kwargs))

    return recording


def _lists_as_arrays(args: tuple[Any, ...]) -> tuple[Any, ...]:
    if any([type(value) in (list, tuple) for value in args]):
        return tuple([_call(_numpy.asarray, (value,), {}) for value in args])
    return args


class _Module(types.ModuleType):
    """A module of NumPy whose functions return recorded arrays."""

    def __init__(self, name: str, module: Any) -> None:
        super().__init__(name, module.__doc__)
        self.__path__: list[str] = []  # its own modules are found by `_Finder`, too
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = _of(getattr(self._module, name))
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return dir(self._module)


class _Finder:
    """Finds NumPy's modules under names of this namespace: ``import chainrule.numpy.linalg``."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        loader: Any = self
        if not name.startswith(f"{__name__}."):
            return None
        found = find_spec(_numpys(name))
        if found is None:
            return None
        is_plain = name.startswith(_RUN_AGAIN) and found.submodule_search_locations is None
        return ModuleSpec(name, loader, is_package=not is_plain)

    def create_module(self, spec: ModuleSpec) -> Any:
        if spec.name.startswith(_RUN_AGAIN):
            return None
        return _Module(spec.name, import_module(_numpys(spec.name)))

    def exec_module(self, module: Any) -> None:
        """Run NumPy's code with this namespace; or nothing, where names are looked up later."""
        if module.__name__.startswith(_RUN_AGAIN):
            spec: Any = find_spec(_numpys(module.__name__))
            run_code(spec.loader.get_code(spec.name), module, _found)


_RUN_AGAIN = (f"{__name__}.polynomial", f"{__name__}.lib._polynomial_impl")
"""Modules with classes, whose code runs a second time: NumPy's own would make numbers of arrays."""


def _numpys(name: str) -> str:
    return f"numpy{name.removeprefix(__name__)}"


def _found(name: str, names: Sequence[str]) -> Any:
    """Return what `import` finds for code that runs again; None for Python's own."""
    first, _, rest = name.partition(".")
    if first != "numpy":
        return None
    found = import_module(f"{__name__}.{rest}" if rest else __name__)
    return found if names else sys.modules[__name__]


def _polynomial_class() -> Any:
    """Return `numpy.poly1d` with functions that record."""
    own = import_module(f"{__name__}.lib._polynomial_impl")
    for name in own.__all__:
        if name != "poly1d":
            setattr(own, name, getattr(sys.modules[__name__], name))
    return own.poly1d


_OF_POLYNOMIALS = frozenset(["polyadd", "polysub", "polymul", "polydiv", "polyder", "polyint"])
"""Functions whose results are of the class `poly1d` if an argument is."""


def _as_polynomials(function: Callable[..., Any]) -> Callable[..., Any]:
    def recording(*args: Any, **kwargs: Any) -> Any:
        result, kind = function(*args, **kwargs), globals().get("poly1d")
        if kind is None or not any([isinstance(value, kind) for value in args]):
            return result
        return tuple(map(kind, result)) if isinstance(result, tuple) else kind(result)

    return update_wrapper(recording, function)


sys.meta_path.append(_Finder())


def _undispatched(*_: Any, **__: Any) -> Callable[[Any], Any]:
    """Do `array_function_dispatch` for code that runs again: its functions record by themselves."""
    return lambda function: function


def _real_if_possible(w: Any, t: Any) -> Any:
    """Return numbers as real ones, if they are and `t` is, too."""
    return w.real if not t.is_complex() and not bool((w.imag != 0).any()) else w


_INSTEAD: dict[str, Callable[..., Any]] = {
    "fftfreq": _fftfreq,
    "rfftfreq": _rfftfreq,
    "array_function_dispatch": _undispatched,
    "_to_real_if_imag_zero": _real_if_possible,  # from NumPy 2.5 on
}
"""Functions of NumPy's that don't dispatch, and private ones of its code that runs again."""


def _of(value: Any) -> Any:
    """Return what stands for a name of NumPy's in this namespace."""
    if getattr(value, "__name__", "") in _INSTEAD:
        return _INSTEAD[value.__name__]
    if isinstance(value, _numpy.ufunc):
        return _Ufunc(value)
    if isinstance(value, types.ModuleType) and value.__name__.startswith("numpy."):
        return import_module(f"{__name__}{value.__name__.removeprefix('numpy')}")
    if isinstance(value, type) or not callable(value) or hasattr(value, "__origin__"):  # of typing
        return value
    return _recording(value)


def __getattr__(name: str) -> Any:
    if name == "poly1d":
        value = globals()[name] = _polynomial_class()
        return value
    if name == "__all__":
        modules = types.ModuleType
        return [n for n in _numpy.__all__ if not isinstance(getattr(_numpy, n), modules)]
    value = _of(getattr(_numpy, name))
    globals()[name] = value = _as_polynomials(value) if name in _OF_POLYNOMIALS else value
    return value


def __dir__() -> list[str]:
    return dir(_numpy)
