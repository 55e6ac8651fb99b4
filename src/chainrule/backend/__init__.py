"""Array namespaces and devices: the interface to NumPy, CuPy and other array libraries.

A rule receives a namespace `xp`: the array API's functions plus a few extensions.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from chainrule.backend.devices import (
    CPU,
    DEFAULT_DEVICE,
    PLAIN_DTYPES,
    address_of,
    array_from_dlpack,
    cuda_is_available,
    cupy_module,
    device,
    device_of,
    is_current,
    move,
    storage_of,
    with_plain_dtype,
)
from chainrule.backend.extensions import KERNELS, LazyModule, Namespace, NamespaceDefaults
from chainrule.backend.numpy_namespace import REPLACED_UFUNCS, numpy_xp
from chainrule.errors import CompileError
from chainrule.kernels.flat_indexing import is_basic_index

__all__ = [
    "CPU",
    "DEFAULT_DEVICE",
    "DTYPE_TITLES",
    "KERNELS",
    "REPLACED_UFUNCS",
    "PLAIN_DTYPES",
    "Array",
    "LazyModule",
    "Namespace",
    "NamespaceDefaults",
    "array_from_dlpack",
    "check_known",
    "cuda_is_available",
    "cupy_module",
    "device",
    "device_of",
    "dtype_title",
    "first_where",
    "holds_somewhere",
    "is_array",
    "is_basic_index",
    "is_current",
    "is_known",
    "move",
    "namespace",
    "namespace_among",
    "ndarray",
    "numpy_xp",
    "promote",
    "promoted",
    "real_dtype",
    "storage_of",
    "accumulate",
    "address_of",
    "whole",
    "with_plain_dtype",
]

Array = Any  # numpy.ndarray, cupy.ndarray, or any array that a namespace computes on
DType = np.dtype[Any]

ndarray = np.ndarray


def is_array(x: Any) -> bool:
    """Return whether `x` is an array of NumPy or CuPy, or a symbolic or batched array."""
    return (
        isinstance(x, ndarray)
        or getattr(type(x), "namespace", None) is not None
        or _is_cupys(type(x))
    )


def holds_somewhere(condition: Array) -> bool:
    """Return whether a condition is known to hold for any element of any example."""
    condition = whole(condition)
    return is_known(condition) and bool(condition.any())


def first_where(condition: Array, values: Array) -> Any:
    """Return the first value where a condition is known to hold, in any example, or None."""
    if not holds_somewhere(condition):
        return None
    condition = whole(condition)
    values = namespace(condition).broadcast_to(whole(values), condition.shape)
    return values[condition][0]


def is_known(array: Array) -> bool:
    """Return whether the elements are available: not for symbols; for batched arrays, if all agree.

    An array may have an attribute `known`; the default is that of its namespace.
    """
    if isinstance(array, ndarray):
        return True
    known: bool = getattr(array, "known", namespace(array).known)
    return known


def whole(array: Array) -> Array:
    """Return the underlying array: for a batched array, that of all examples."""
    return getattr(array, "whole", array)


def check_known(array: Array, operation: str, mend: str) -> None:
    """Raise if a result shape depends on elements that are not available."""
    if not is_known(array):
        raise CompileError(
            f"{operation}: the shape of the result depends on values, which a compiled function "
            f"doesn't know, nor does vmap: {mend}, or call it outside"
        )


def elements_for_shape(array: Array, operation: str, mend: str) -> Array:
    """Return the elements on which a result shape depends: of a symbol, if a trace can know them.

    Raises
    ------
    CompileError
        As `check_known`.
    """
    elements = None if is_known(array) else getattr(array, "known_elements", None)
    if elements is None:
        check_known(array, operation, mend)
        return array
    return elements


def namespace(array: Array) -> Namespace:
    """Return the namespace that computes on `array`."""
    cls: Any = type(array)
    return numpy_xp if cls is ndarray else _foreign_namespace(cls)


def namespace_among(arrays: Iterable[Array]) -> Namespace:
    """Return the namespace of the first array that is not NumPy's, else NumPy's."""
    for array in arrays:
        if array.__class__ is not ndarray:
            found = namespace(array)
            if found is not numpy_xp:
                return found
    return numpy_xp


def _is_cupys(cls: type) -> bool:
    return cls.__name__ == "ndarray" and cls.__module__.split(".")[0] == "cupy"


@cache
def _foreign_namespace(cls: type) -> Namespace:
    if _is_cupys(cls):
        from chainrule.backend.cupy_namespace import cupy_namespace

        return cupy_namespace()
    if issubclass(cls, ndarray | np.generic):
        return numpy_xp
    own: Namespace | None = getattr(cls, "namespace", None)  # symbols and batched arrays
    if own is not None:
        return own
    raise TypeError(f"{cls.__module__}.{cls.__name__} is not an array that chainrule computes on")


def accumulate(ufunc: Any, x: Array, axis: int) -> Array:
    """Return the cumulative results of a ufunc; CuPy's accumulate sums and products alone."""
    if _is_cupys(type(x)):
        return namespace(x).accumulate(ufunc.__name__, x, axis=axis)
    return ufunc.accumulate(x, axis=axis)


# --- dtypes ---------------------------------------------------------------------------------------


@cache
def promoted(a: DType, b: DType) -> DType:
    """Return the result dtype of two dtypes: NumPy's, but integers adopt a float's width.

    NumPy promotes int64 and float32 to float64; here, as in PyTorch, the higher kind wins.
    """
    ranks = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    if max(ranks[a.kind], ranks[b.kind]) >= 2 and min(ranks[a.kind], ranks[b.kind]) < 2:
        return a if ranks[a.kind] > ranks[b.kind] else b
    return np.promote_types(a, b)


def promote(x: Array, y: Array) -> tuple[Array, Array]:
    """Return both arrays in their promoted dtype."""
    dtype = promoted(x.dtype, y.dtype)
    return x.astype(dtype, copy=False), y.astype(dtype, copy=False)


@cache
def real_dtype(dtype: DType) -> DType:
    """Return the dtype of the real parts of numbers of a dtype."""
    found: DType = np.zeros((), dtype).real.dtype
    return found


DTYPE_TITLES = {
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "bool": "Bool",
}
"""PyTorch's names of dtypes in those of its older types of tensors, such as `FloatTensor`."""


def dtype_title(dtype: DType) -> str:
    """Return PyTorch's name of a dtype ("Float", "Long"), as used in error messages."""
    return DTYPE_TITLES.get(dtype.name, dtype.name)
