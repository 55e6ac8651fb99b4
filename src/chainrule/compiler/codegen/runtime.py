"""Functions that generated source calls beside NumPy's own; exports contain copies of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from chainrule.interrupts import errstate
from chainrule.kernels.triangular import solve_triangular

Array = Any

__all__ = [
    "add_along_axis",
    "add_at",
    "assign_at",
    "bits",
    "diagonal",
    "draw",
    "each_block",
    "getitem",
    "index_add",
    "maximum_at",
    "lasting",
    "logcumsumexp",
    "masked",
    "plus_at",
    "minimum_at",
    "solve_triangular",
    "take_along_axis",
    "windows",
    "with_imag",
    "with_real",
]


def masked(x: Array, mask: Array, out: Array = None) -> Array:
    """Return x where mask, else 0, even where x is nan: bit patterns times 0 or 1."""
    integer = {"f": np.int32, "d": np.int64, "e": np.int16}.get(x.dtype.char)
    if integer is None or x.ndim == 0:
        found = np.where(mask, x, np.zeros((), x.dtype))
        if out is None:
            return found
        out[...] = found
        return out
    if out is None:
        return np.multiply(x.view(integer), mask).view(x.dtype)
    np.multiply(x.view(integer), mask, out=out.view(integer))
    return out


def each_block(part: Any, length: int, rows: int) -> None:
    """Call a function with slices of so many rows."""
    for begin in range(0, length, rows):
        part(slice(begin, min(begin + rows, length)))


def getitem(x: Array, key: Any) -> Array:
    """Return x[key]."""
    return x[key]


def assign_at(base: Array, value: Array, key: Any) -> Array:
    """Return a copy of base with value at key."""
    out = np.array(base, order="C")
    out[key] = value
    return out


def index_add(value: Array, *, shape: tuple[int, ...], key: Any, out: Array | None = None) -> Array:
    """Return zeros of a shape with value added at key, repeated indices adding up."""
    if out is None:
        out = np.zeros(shape, value.dtype)
    else:
        out.fill(0)
    if any(isinstance(part, np.ndarray) for part in (key if isinstance(key, tuple) else (key,))):
        np.add.at(out, key, value)
    else:
        out[key] = value
    return out


def add_at(base: Array, value: Array, *, key: Any) -> Array:
    """Return a copy of base with value added at key, repeated indices adding up."""
    out = np.array(base, order="C")
    np.add.at(out, key, value)
    return out


def plus_at(base: Array, value: Array, key: Any) -> Array:
    """Return a copy of base with value added to a region of slices and numbers."""
    out = np.array(base, order="C")
    out[key] += value
    return out


def maximum_at(base: Array, value: Array, *, key: Any) -> Array:
    """Return a copy of base with the larger of it and value at key."""
    out = np.array(base, order="C")
    np.maximum.at(out, key, value)
    return out


def lasting(*, shape: tuple[int, ...], key: Any) -> Array:
    """Say which of the values written at key are not overwritten by later ones of them."""
    owner = np.zeros(shape, np.intp)
    places = owner[key]
    number = np.arange(places.size).reshape(places.shape)
    owner[key] = number
    return owner[key] == number


def minimum_at(base: Array, value: Array, *, key: Any) -> Array:
    """Return a copy of base with the smaller of it and value at key."""
    out = np.array(base, order="C")
    np.minimum.at(out, key, value)
    return out


@errstate(invalid="ignore")  # NumPy warns of nan
def logcumsumexp(x: Array, *, axis: int) -> Array:
    """Return the logarithms of the running sums of exponentials."""
    return np.logaddexp.accumulate(x, axis)


def take_along_axis(x: Array, index: Array, *, axis: int) -> Array:
    """Return the elements of x at an index along one axis."""
    return np.take_along_axis(x, index, axis)


def add_along_axis(x: Array, index: Array, *, shape: tuple[int, ...], axis: int) -> Array:
    """Return zeros of a shape with x added at an index along one axis."""
    out = np.zeros(shape, x.dtype)
    key: list[Any] = list(np.indices(index.shape, sparse=True))
    key[axis] = index
    np.add.at(out, tuple(key), x)
    return out


def bits(x: Array, dtype: Any) -> Array:
    """Return the same bits as another dtype."""
    return np.array(x, order="C").view(dtype)


def diagonal(x: Array, offset: int) -> Array:
    """Return the diagonals of the last two axes."""
    return np.diagonal(x, offset, -2, -1)


def draw(generator: Any, method: Any, *args: Any, **settings: Any) -> Array:
    """Return what a generator's method draws, or a function that draws from it."""
    call = getattr(generator, method) if isinstance(method, str) else partial(method, generator)
    return np.asarray(call(*args, **settings))


def windows(x: Array, size: int, step: int) -> Array:
    """Return a view of the stretches of size elements of the last axis, step apart."""
    return np.lib.stride_tricks.sliding_window_view(x, size, axis=-1)[..., ::step, :]


def with_real(x: Array, real: Array) -> Array:
    """Return a copy of x with another real part."""
    out = np.array(x)
    out.real = real
    return out


def with_imag(x: Array, imag: Array) -> Array:
    """Return a copy of x with another imaginary part."""
    out = np.array(x)
    out.imag = imag
    return out
