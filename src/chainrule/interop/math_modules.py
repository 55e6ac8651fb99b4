"""Python's `math` and `cmath` with functions that record, for libraries whose code runs again."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor

__all__ = ["NUMBERS"]


def _of_numbers(original: ModuleType) -> ModuleType:
    """Return a module whose functions call NumPy's and SciPy's of the same meaning for tensors."""
    made = ModuleType(original.__name__, original.__doc__)
    for name, value in vars(original).items():
        if name in _NUMPYS:
            value = _for_tensors(value, _NUMPYS[name])
        elif name in _STEPS:
            value = _of_constants(value)
        if not name.startswith("__"):
            setattr(made, name, value)
    return made


def _for_tensors(function: Callable[..., Any], other: str) -> Callable[..., Any]:
    module, _, name = other.rpartition(".")

    def either(*args: Any) -> Any:
        if not any([isinstance(value, Tensor) for value in args]):
            return function(*args)
        if name == "log" and len(args) > 1:
            return either(args[0]) / either(args[1])
        return getattr(import_module(f"chainrule.{module}"), name)(*args)

    return either


def _of_constants(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with integers as results, whose derivative is 0."""
    return lambda x: function(x.detach().item() if isinstance(x, Tensor) else x)


_STEPS = ("ceil", "floor", "trunc")
_OF_INTEGERS = (*_STEPS, "gcd", "lcm", "ldexp", "frexp")
_OTHERS = ("modf", "remainder")  # whose results are others in NumPy
_SAME = {*vars(math), *vars(cmath)}.difference(_OF_INTEGERS, _OTHERS)
_NUMPYS = {
    **{name: f"numpy.{name}" for name in _SAME if isinstance(getattr(np, name, None), np.ufunc)},
    **{name: f"scipy.special.{name}" for name in ("erf", "erfc", "gamma")},
    **{"lgamma": "scipy.special.gammaln", "phase": "numpy.angle"},
}
"""Names of NumPy's and SciPy's functions for those of `math` and `cmath`."""
NUMBERS = {"math": _of_numbers(math), "cmath": _of_numbers(cmath)}
"""The modules, by name."""
