"""Arguments of Fourier transforms, and the three transforms from which all others are made."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import NamedTuple

import numpy as np

from chainrule.arguments import Dims, Operand, cast, floating, many_dims, one_dim
from chainrule.autograd.tensor import Tensor
from chainrule.backend import dtype_title
from chainrule.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError
from chainrule.primitives import fourier, indexing
from chainrule.primitives.fourier import OPPOSITE

Axes = tuple[int, ...]
Points = Sequence[int] | int | None


def norm_of(norm: str | None) -> str:
    """Return where a transform divides by the number of points."""
    if norm is None:
        return "backward"
    if norm not in OPPOSITE:
        raise ArgumentError(
            f"Invalid normalization mode: {norm!r}: norm must be 'backward', 'ortho' or 'forward'"
        )
    return norm


def opposite(norm: str | None) -> str:
    """Return the norm with which the inverse transform has the same factor."""
    return OPPOSITE[norm_of(norm)]


def checked_input(name: str, x: Operand, *, real: bool = False) -> Tensor:
    """Return a floating or complex tensor of at least single precision."""
    x = floating(x)
    if real and x.is_complex():
        raise DTypeError(
            f"{name} expects a real input tensor, but got {dtype_title(x.dtype)}: "
            f"{name.replace('rfft', 'fft') if 'rfft' in name else 'ifft'} takes complex numbers"
        )
    return cast(x, np.float32) if x.dtype == np.float16 else x


class Transform(NamedTuple):
    """Arguments of a transform; `sizes` are numbers of points, -1 for the length of the axis."""

    name: str
    x: Tensor
    axes: Axes
    sizes: tuple[int, ...]


def one_axis(
    name: str, x: Operand, n: int | None, dim: int | None, *, real: bool = False
) -> Transform:
    """Return the arguments of a transform along one dimension, by default the last one."""
    x = checked_input(name, x, real=real)
    dim = -1 if dim is None else dim
    _check_there_are_dims(name, x, dim)
    axis = one_dim(dim, x.ndim)
    return Transform(name, x, (axis,), (-1 if n is None else n,))


def _check_there_are_dims(name: str, x: Tensor, dim: Dims) -> None:
    if x.ndim == 0 and dim not in ((), []):
        raise OutOfBoundsError(f"{name}: Dimension specified as {dim} but tensor has no dimensions")


def many_axes(name: str, x: Operand, s: Points, dim: Dims, *, real: bool = False) -> Transform:
    """Return the arguments of a transform along several dimensions.

    They are the last ones if only `s` is given, all if neither is.
    """
    x = checked_input(name, x, real=real)
    sizes = None if s is None else tuple(map(index, s if isinstance(s, Sequence) else (s,)))
    if dim is not None:
        _check_there_are_dims(name, x, dim)
        axes = many_dims(dim, x.ndim) or ()
    elif sizes is None:
        axes = tuple(range(x.ndim))
    else:
        if len(sizes) > x.ndim:
            raise ShapeError(
                f"{name}: Got shape with {len(sizes)} values but input tensor only has {x.ndim} "
                "dimensions."
            )
        axes = tuple(range(x.ndim - len(sizes), x.ndim))
    if sizes is not None and len(sizes) != len(axes):
        raise ShapeError(
            f"{name}: When given, dim and shape arguments must have the same length, but got "
            f"{len(axes)} dimensions and {len(sizes)} sizes"
        )
    return Transform(name, x, axes, (-1,) * len(axes) if sizes is None else sizes)


def check_points(name: str, n: int) -> int:
    """Return a number of points; raise if it is less than 1."""
    if n < 1:
        raise ShapeError(f"{name}: Invalid number of data points ({n}) specified: give at least 1")
    return n


def resize(name: str, x: Tensor, axes: Axes, sizes: Sequence[int]) -> Tensor:
    """Return `x` truncated or padded with zeros to these sizes; -1 keeps a dimension."""
    shape = list(x.shape)
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = check_points(name, shape[axis] if size == -1 else size)
    key = tuple([slice(min(n, m)) for n, m in zip(shape, x.shape, strict=True)])
    if any(n < m for n, m in zip(shape, x.shape, strict=True)):
        x = indexing.getitem.apply(x, key=key)
    if x.shape != tuple(shape):
        x = indexing.index_add.apply(x, shape=tuple(shape), key=key)
    return x


def to_complex(x: Tensor) -> Tensor:
    """Return real numbers as complex ones of the same precision."""
    return x if x.is_complex() else cast(x, np.result_type(x.dtype, np.complex64))


# --- the three transforms -------------------------------------------------------------------------


def c2c(transform: Transform, norm: str, *, inverse: bool = False) -> Tensor:
    """Transform complex numbers; real input takes half the time."""
    x = resize(*transform)
    if not transform.axes:
        return to_complex(x)
    return fourier.fft_c2c.apply(x, axes=transform.axes, norm=norm, inverse=inverse)


def r2c(transform: Transform, norm: str) -> Tensor:
    """Transform real numbers to half of their spectrum."""
    _check_axes(transform)
    return fourier.fft_r2c.apply(resize(*transform), axes=transform.axes, norm=norm)


def c2r(transform: Transform, norm: str) -> Tensor:
    """Transform half a spectrum to real numbers; the last size is their number."""
    _check_axes(transform)
    name, x, axes, sizes = transform
    n = check_points(name, 2 * (x.shape[axes[-1]] - 1) if sizes[-1] == -1 else sizes[-1])
    x = resize(name, to_complex(x), axes, [*sizes[:-1], n // 2 + 1])
    return fourier.fft_c2r.apply(x, axes=axes, norm=norm, n=n)


def _check_axes(transform: Transform) -> None:
    """Raise if a transform with half a spectrum has no axis."""
    if not transform.axes:
        raise ShapeError(f"{transform.name} must transform at least one axis")
