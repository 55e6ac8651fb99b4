"""Operands of functions of signals: one dtype, and the axis of time last."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.backend import promoted
from chainrule.backend.extensions import SCIPY
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.interop.manipulation import pad
from chainrule.interop.operands import tensor_of
from chainrule.scipy.dispatch import Table

TABLE = Table("scipy.signal", SCIPY, has_scipys_numbers=True)
"""The functions of tensors of `scipy.signal`."""


def signals(name: str, *values: Any, real: bool = False) -> list[Tensor]:
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
        raise DTypeError(f"{name}: x must be real, got complex numbers: take x.real")
    return [cast(x, dtype) for x in found]


def vector(name: str, label: str, x: Tensor) -> Tensor:
    """Return a row of coefficients; a number is a row of one."""
    x = ops.atleast_1d(x)
    if x.ndim != 1 or not x.shape[0]:
        raise ShapeError(
            f"{name}: expected one row of coefficients for {label}, got the shape {list(x.shape)}"
        )
    return x


def axis_last(name: str, x: Tensor, axis: int) -> Tensor:
    """Return a signal with an axis moved to the end."""
    if not -x.ndim <= axis < x.ndim:
        raise ArgumentError(f"{name}: axis {axis} is not one of the {x.ndim} axes of x")
    if not x.shape[axis]:
        raise ShapeError(f"{name}: expected at least one sample along axis {axis}, got none")
    return ops.movedim(x, axis, -1)


def padded(x: Tensor, before: int, after: int, mode: str = "constant", value: Any = 0) -> Tensor:
    """Return a signal with samples before and after, along the last axis, as `numpy.pad` does."""
    return pad(x, {-1: (before, after)}, mode, constant_values=value)
