"""Operands of functions of signals: rows of coefficients, and the axis of time last."""

from __future__ import annotations

from typing import Any

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.backend.extensions import SCIPY
from chainrule.errors import ArgumentError, ShapeError
from chainrule.interop.manipulation import pad
from chainrule.scipy.dispatch import Table

TABLE = Table("scipy.signal", SCIPY, has_scipys_numbers=True)
"""The functions of tensors of `scipy.signal`."""


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
