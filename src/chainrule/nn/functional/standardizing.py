"""What normalisation is made of: mean 0 and variance 1 along dimensions, a scale and an offset."""

from __future__ import annotations

import numpy as np

from chainrule import ops
from chainrule.arguments import RECORDERS, Operand, cast, floating
from chainrule.autograd.tensor import Tensor
from chainrule.errors import DTypeError


def standard(x: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    """Return `x` with mean 0 and variance 1 along `dims`; and the variance, dims kept."""
    centred = RECORDERS["center"](widened(x), axis=dims)
    variance = RECORDERS["mean_square"](centred, axis=dims)
    return cast(ops.multiply(centred, ops.rsqrt(ops.add(variance, eps))), x.dtype), variance


def standardized(x: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    """Return `x` with mean 0 and variance 1 along `dims`."""
    return cast(RECORDERS["standardize"](widened(x), axis=dims, eps=float(eps))[0], x.dtype)


def widened(x: Tensor) -> Tensor:
    """Return what squares are taken of: those of half precision soon overflow."""
    if x.dtype.kind == "c":
        raise DTypeError(
            f"normalisation: expected real numbers, got {x.dtype}: the mean and the variance are "
            "those of real numbers. Normalise the real and the imaginary part"
        )
    return cast(x, np.float32) if x.dtype.itemsize == 2 else x


def affine(
    x: Tensor, weight: Operand | None, bias: Operand | None, shape: tuple[int, ...] | None = None
) -> Tensor:
    """Return x · weight + bias, both in the given shape."""
    if weight is not None:
        factor = cast(floating(weight), x.dtype)
        x = ops.multiply(x, factor if shape is None else ops.reshape(factor, shape))
    if bias is not None:
        offset = cast(floating(bias), x.dtype)
        x = ops.add(x, offset if shape is None else ops.reshape(offset, shape))
    return x
