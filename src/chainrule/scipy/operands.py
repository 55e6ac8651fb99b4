"""Operands of SciPy's functions as tensors of one dtype."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule.arguments import cast
from chainrule.autograd.operands import scalar_array
from chainrule.autograd.tensor import Tensor, default_dtype, make
from chainrule.backend import promoted
from chainrule.errors import DTypeError
from chainrule.interop.operands import tensor_of


def floats(name: str, *values: Any) -> list[Tensor]:
    """Return operands of `name` as tensors of one floating dtype: that of tensors and arrays.

    Numbers take this dtype. Without a floating operand it is the default dtype.
    """
    found = [value if _is_number(value) else tensor_of(value) for value in values]
    dtype, like = None, None
    for part in found:
        if isinstance(part, Tensor):
            like = part if like is None or part.requires_grad else like
            if (kind := part._array.dtype.kind) == "f":
                dtype = part.dtype if dtype is None else promoted(dtype, part.dtype)
            elif kind == "c":
                raise _complex_error(name)
    dtype = default_dtype() if dtype is None else dtype
    like = make(np.zeros((), dtype), None) if like is None else cast(like, dtype)
    tensors = []
    for part in found:
        if isinstance(part, complex):
            raise _complex_error(name)
        if not isinstance(part, Tensor):
            part = make(scalar_array(part, like._array), None)
        tensors.append(cast(part, dtype))
    return tensors


def inexact(name: str, *values: Any, real: bool = False) -> list[Tensor]:
    """Return operands of `name` as tensors of one floating or complex dtype.

    It is that of tensors and arrays, which numbers take, and float64 if these are integers.
    """
    found = [tensor_of(value) for value in values]
    arrays = [
        x.dtype
        for x, value in zip(found, values, strict=True)
        if not isinstance(value, int | float)
    ]
    dtype = functools.reduce(promoted, arrays or [np.dtype(np.float64)])
    if dtype.kind not in "fc":
        dtype = np.dtype(np.float64)
    if real and dtype.kind == "c":
        raise _complex_error(name)
    return [cast(x, dtype) for x in found]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex | np.generic)


def _complex_error(name: str) -> DTypeError:
    return DTypeError(
        f"{name}: expected real numbers, got complex ones, for which it is not defined. Take the "
        "real part, or the absolute value, first"
    )
