"""What losses share: their two inputs in one dtype, weights, and what becomes of many losses."""

from __future__ import annotations

import math
import warnings
from typing import Any

from chainrule import ops
from chainrule.arguments import Operand, cast, floating
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_array, promoted
from chainrule.errors import ArgumentError, ShapeError


def pair(input: Operand, target: Operand) -> tuple[Tensor, Tensor]:
    """Return two tensors of one floating dtype."""
    x, y = floating(input), floating(target)
    if x.dtype != y.dtype:
        dtype = promoted(x.dtype, y.dtype)
        x, y = cast(x, dtype), cast(y, dtype)
    return x, y


def like_sized(name: str, input: Operand, target: Operand) -> tuple[Tensor, Tensor]:
    """Return `pair`, with a warning if the shapes differ: they then broadcast."""
    x, y = pair(input, target)
    if x.shape != y.shape:
        warnings.warn(
            f"{name}: using a target size ({list(y.shape)}) that is different to the input size "
            f"({list(x.shape)}). This will likely lead to incorrect results due to broadcasting: "
            "reshape one of them, so that they have the same size.",
            UserWarning,
            stacklevel=3,
        )
    return x, y


def check_reduction(name: str, reduction: str) -> None:
    """Raise unless `reduction` is one of the three words."""
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(
            f"{name}: {reduction!r} is not a valid value for reduction: try 'mean', 'sum' or 'none'"
        )


def reduced(losses: Tensor, name: str, reduction: str) -> Tensor:
    """Return the mean or the sum of the losses, or the losses."""
    check_reduction(name, reduction)
    if reduction == "mean":
        return ops.mean(losses)
    return ops.sum(losses) if reduction == "sum" else losses


def weighted(
    losses: Tensor, weight: Operand | None, name: str, reduction: str, shared: bool = True
) -> Tensor:
    """Return the losses times their weights, reduced; a `shared` mean is divided by their sum."""
    if weight is None:
        return reduced(losses, name, reduction)
    factors = cast(floating(weight), losses.dtype)
    if factors.shape != losses.shape:
        raise ShapeError(
            f"{name}: Weights and input must have the same size, but got {list(factors.shape)} and "
            f"{list(losses.shape)}"
        )
    check_reduction(name, reduction)
    losses = ops.multiply(losses, factors)
    if reduction == "mean" and shared:
        return ops.divide(ops.sum(losses), ops.sum(factors))
    return reduced(losses, name, reduction)


def shared_out(total: Tensor, count: Any) -> Tensor:
    """Return a sum divided by a number of elements; nan for none, without NumPy's warning."""
    if is_array(count):  # not known yet
        return ops.divide(total, make(count.astype(total.dtype), None))
    return ops.divide(total, count) if count else ops.multiply(total, math.nan)
