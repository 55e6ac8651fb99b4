"""Array namespaces and devices: all that differs between NumPy, CuPy and other array libraries.

A rule receives a namespace `xp`: the array API's functions plus a few extensions.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from chainrule.backend.devices import (
    CPU,
    cuda_is_available,
    device,
    device_of,
    imported,
    move,
    storage_of,
)
from chainrule.backend.dtypes import dtype_title, promote, promoted
from chainrule.backend.extensions import KERNELS, Namespace
from chainrule.backend.numpy_namespace import numpy_xp
from chainrule.backend.reports import REPORTS, silent
from chainrule.errors import CompileError
from chainrule.kernels.flat_indexing import is_basic_index

__all__ = [
    "CPU",
    "KERNELS",
    "REPORTS",
    "Array",
    "Namespace",
    "check_known",
    "cuda_is_available",
    "device",
    "device_of",
    "dtype_title",
    "first_where",
    "holds_somewhere",
    "imported",
    "is_array",
    "is_basic_index",
    "is_known",
    "move",
    "namespace",
    "namespace_among",
    "ndarray",
    "numpy_xp",
    "promote",
    "promoted",
    "silent",
    "storage_of",
    "whole",
]

Array = Any  # numpy.ndarray, cupy.ndarray, or whatever an array namespace computes on

ndarray = np.ndarray


def is_array(x: Any) -> bool:
    """Say whether something is a NumPy array, or what a compiler has in the place of one."""
    return isinstance(x, ndarray) or getattr(type(x), "namespace", None) is not None


def holds_somewhere(condition: Array) -> bool:
    """Say whether a condition is known to hold for an element, of any lane: for checks."""
    condition = whole(condition)
    return is_known(condition) and bool(condition.any())


def first_where(condition: Array, values: Array) -> Any:
    """Return the first value where a condition is known to hold, in any lane; None for nowhere."""
    if not holds_somewhere(condition):
        return None
    condition = whole(condition)
    values = namespace(condition).broadcast_to(whole(values), condition.shape)
    return values[condition][0]


def is_known(array: Array) -> bool:
    """Say whether the elements can be looked at: of a symbol they can't, of lanes if they're alike.

    A namespace's `known` is about any of its arrays.
    """
    if isinstance(array, ndarray):
        return True
    known: bool = getattr(array, "known", namespace(array).known)
    return known


def whole(array: Array) -> Array:
    """Return all elements that are computed on: where vmap maps, those of all lanes."""
    return getattr(array, "whole", array)


def check_known(array: Array, operation: str, mend: str) -> None:
    """Raise if the shape of a result is to depend on elements that aren't known."""
    if not is_known(array):
        raise CompileError(
            f"{operation}: the shape of the result depends on values, which a compiled function "
            f"doesn't know, nor one in vmap: {mend}, or call it outside"
        )


def namespace(array: Array) -> Namespace:
    """Return the namespace that computes on `array`."""
    cls: Any = type(array)
    if cls is ndarray or isinstance(array, np.generic):
        return numpy_xp
    return _foreign_namespace(cls)


def namespace_among(arrays: Iterable[Array]) -> Namespace:
    """Return the namespace that computes on these: anybody's rather than NumPy's."""
    for array in arrays:
        if array.__class__ is not ndarray:
            found = namespace(array)
            if found is not numpy_xp:
                return found
    return numpy_xp


@cache
def _foreign_namespace(cls: type) -> Namespace:
    if cls.__module__.split(".")[0] == "cupy":
        from chainrule.backend.cupy_namespace import cupy_namespace

        return cupy_namespace()
    if issubclass(cls, ndarray):
        return numpy_xp
    own: Namespace | None = getattr(cls, "namespace", None)  # a compiler's symbols bring theirs
    if own is not None:
        return own
    raise TypeError(f"{cls.__module__}.{cls.__name__} is not an array that chainrule computes on")
