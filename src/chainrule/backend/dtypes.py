"""Type promotion, and PyTorch's names of dtypes for error messages."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

Array = Any
DType = np.dtype[Any]


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


_TORCH_NAMES = {
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


def dtype_title(dtype: DType) -> str:
    """Return PyTorch's name of a dtype ("Float", "Long"), as used in error messages."""
    return _TORCH_NAMES.get(dtype.name, dtype.name)
