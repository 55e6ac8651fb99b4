"""What the arguments of Fourier transforms mean, and the three transforms that all others are."""

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
    """Return the norm with which a transform the other way has the same factor."""
    return OPPOSITE[norm_of(norm)]


def operand(name: str, x: Operand, *, real: bool = False) -> Tensor:
    """Return a tensor of floating or complex numbers, of no less than single precision."""
    x = floating(x)
    if real and x.is_complex():
        raise DTypeError(
            f"{name} expects a real input tensor, but got {dtype_title(x.dtype)}: "
            f"{name.replace('rfft', 'fft') if 'rfft' in name else 'ifft'} takes complex numbers"
        )
    return cast(x, np.float32) if x.dtype == np.float16 else x


class Task(NamedTuple):
    """What to transform, and how: `sizes` are numbers of points, -1 for as many as there are."""

    name: str
    x: Tensor
    axes: Axes
    sizes: tuple[int, ...]


def along_one(name: str, x: Operand, n: int | None, dim: int | None, *, real: bool = False) -> Task:
    """Return the task along one dimension: the last one if none is named."""
    x = operand(name, x, real=real)
    dim = -1 if dim is None else dim
    _check_there_are_dims(name, x, dim)
    axis = one_dim(dim, x.ndim)
    return Task(name, x, (axis,), (-1 if n is None else n,))


def _check_there_are_dims(name: str, x: Tensor, dim: Dims) -> None:
    if x.ndim == 0 and dim not in ((), []):
        raise OutOfBoundsError(f"{name}: Dimension specified as {dim} but tensor has no dimensions")


def along_several(name: str, x: Operand, s: Points, dim: Dims, *, real: bool = False) -> Task:
    """Return the task along several dimensions: the last ones if `s` alone is given, else all."""
    x = operand(name, x, real=real)
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
    return Task(name, x, axes, (-1,) * len(axes) if sizes is None else sizes)


def points_of(name: str, n: int) -> int:
    """Return a number of points, of which there must be one at least."""
    if n < 1:
        raise ShapeError(f"{name}: Invalid number of data points ({n}) specified: give at least 1")
    return n


def resized(name: str, x: Tensor, axes: Axes, sizes: Sequence[int]) -> Tensor:
    """Return `x` cut to these sizes, or with zeros after it; -1 leaves a dimension as it is."""
    shape = list(x.shape)
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = points_of(name, shape[axis] if size == -1 else size)
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


def c2c(task: Task, norm: str, *, inverse: bool = False) -> Tensor:
    """Transform complex numbers; real ones take half the time."""
    x = resized(*task)
    if not task.axes:
        return to_complex(x)
    return fourier.fft_c2c.apply(x, axes=task.axes, norm=norm, inverse=inverse)


def r2c(task: Task, norm: str) -> Tensor:
    """Transform real numbers to half of their spectrum."""
    _check_axes(task)
    return fourier.fft_r2c.apply(resized(*task), axes=task.axes, norm=norm)


def c2r(task: Task, norm: str) -> Tensor:
    """Transform half a spectrum to real numbers; the last size is the number of these."""
    _check_axes(task)
    name, x, axes, sizes = task
    n = points_of(name, 2 * (x.shape[axes[-1]] - 1) if sizes[-1] == -1 else sizes[-1])
    x = resized(name, to_complex(x), axes, [*sizes[:-1], n // 2 + 1])
    return fourier.fft_c2r.apply(x, axes=axes, norm=norm, n=n)


def _check_axes(task: Task) -> None:
    """A transform with half a spectrum needs an axis along which it is half."""
    if not task.axes:
        raise ShapeError(f"{task.name} must transform at least one axis")
