"""New tensors, with the arguments of NumPy's functions."""

from __future__ import annotations

import builtins
import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import creation, ops
from chainrule.arguments import cast, one_dim
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.interop.operands import (
    array_of,
    constant,
    in_double,
    is_tracked,
    tensor_of,
    tensors_of,
)
from chainrule.ops.permute import reverse_dims


def array(
    object: Tensor,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    ndmin: int = 0,
) -> Any:
    """Return `object` as a tensor, copied by default, recorded, or as an array of objects."""
    if dtype is not None and dtype in (builtins.object, "object", "O"):
        return np.fromiter(object.ravel(), builtins.object).reshape(object.shape)
    copied = getattr(copy, "name", copy) not in ("IF_NEEDED", "NEVER", False, None)
    a = cast(object, dtype)
    a = _in_order(ops.clone(a) if copied and a is object else a, order)
    return a[(None,) * (ndmin - a.ndim)] if a.ndim < ndmin else a


def asarray(a: Tensor, dtype: Any = None, order: Any = None, *, copy: bool | None = None) -> Any:
    """Return `a` as a tensor."""
    return array(a, dtype, copy=copy, order=order)


def _in_order(a: Tensor, order: Any) -> Tensor:
    """Return `a` with its elements in C order or in Fortran's, or as it is."""
    return asfortranarray(a) if order == "F" else a.contiguous() if order == "C" else a


def ascontiguousarray(a: Tensor, dtype: Any = None) -> Tensor:
    """Return `a` as a tensor in C order, of at least one dimension."""
    out: Tensor = array(a, dtype, copy=False, ndmin=1).contiguous()
    return out


def asfortranarray(a: Tensor, dtype: Any = None) -> Tensor:
    """Return `a` as a tensor in Fortran order."""
    reversed_axes = reverse_dims(cast(a, dtype))
    return reverse_dims(reversed_axes.contiguous())


def copy(a: Tensor, order: Any = "K") -> Tensor:
    """Return a copy, recorded."""
    return _in_order(ops.clone(a), order)


def astype(x: Tensor, dtype: Any, copy: bool = True) -> Tensor:
    """Return `x` in another dtype, recorded."""
    return ops.astype(x, dtype, copy=copy)


def full(shape: Any, fill_value: Tensor, dtype: Any = None, order: Any = "C") -> Tensor:
    """Return `fill_value` everywhere, recorded."""
    sizes = tuple(map(operator.index, shape)) if np.iterable(shape) else (operator.index(shape),)
    return _in_order(ops.clone(ops.broadcast_to(cast(fill_value, dtype), sizes)), order)


def full_like(
    a: Tensor, fill_value: Tensor, dtype: Any = None, order: Any = "K", shape: Any = None
) -> Tensor:
    """Return `fill_value` everywhere in the shape and the dtype of `a`."""
    sizes = a.shape if shape is None else shape
    return full(sizes, fill_value, a.dtype if dtype is None else dtype, order)


def fromiter(iter: Any, dtype: Any, count: int = -1) -> Tensor:
    """Return the items of an iterable, numbers or tensors, as a vector."""
    items = list(itertools.islice(iter, None if count < 0 else count))
    if len(items) < count:
        raise ArgumentError(
            f"iterator too short: Expected {count} but iterator had only {len(items)}"
        )
    return cast(tensor_of(items), dtype)


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any
) -> Any:
    """Return a function's result for the coordinates of a shape."""
    return function(*[constant(row) for row in np.indices(shape, dtype)], **kwargs)


def arange(start_or_stop: Any, stop: Any = None, step: Any = 1, *, dtype: Any = None) -> Tensor:
    """Return evenly spaced numbers from `start` on."""
    start, end = (0, start_or_stop) if stop is None else (start_or_stop, stop)
    numbers = np.arange(*[array_of(part) for part in (start, end, step)], dtype=dtype)
    if not is_tracked(start, step):
        return constant(numbers)
    first, distance = tensors_of([start, step])
    return cast(first + distance * constant(np.arange(len(numbers))), dtype)


def linspace(
    start: Tensor,
    stop: Tensor,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Return evenly spaced numbers from `start` to `stop`, which may be tensors."""
    count = operator.index(num)
    if count < 0:
        raise ArgumentError(f"linspace: the number of samples can't be negative, got {num}")
    start, stop = ops.broadcast_tensors(start, stop)
    if (start + stop).dtype.kind not in "fc":
        start = cast(start, np.float64)
    distance = stop - start
    parts = count - 1 if endpoint else count
    positions = constant(np.arange(count, dtype=np.float64).reshape(-1, *(1,) * start.ndim))
    positions = cast(positions, distance.dtype)
    numbers = positions * (distance / max(parts, 1)) + start  # rounded as NumPy's
    if endpoint and count > 1:  # the last is exactly `stop`, without rounding
        numbers = ops.cat([numbers[:-1], cast(stop, numbers.dtype)[None]], 0)
    numbers = cast(ops.moveaxis(numbers, 0, one_dim(axis, numbers.ndim)), dtype)
    if not retstep:
        return numbers
    return numbers, distance / parts if parts else distance * np.nan


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the matrix whose columns are powers of a vector."""
    return creation.vander(in_double(x), N, increasing)


def logspace(
    start: Tensor,
    stop: Tensor,
    num: int = 50,
    endpoint: bool = True,
    base: Tensor | float = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """Return numbers whose logarithms are evenly spaced."""
    if isinstance(base, Tensor) and base.ndim:
        start, stop, base = ops.broadcast_tensors(start, stop, base)
        base = ops.expand_dims(base, axis)
    return cast(ops.pow(base, linspace(start, stop, num, endpoint, axis=axis)), dtype)


def geomspace(
    start: Tensor,
    stop: Tensor,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """Return a geometric sequence from `start` to `stop`, both of one sign."""
    start, stop = ops.broadcast_tensors(in_double(start), in_double(stop))
    if start.is_complex() or stop.is_complex() or bool(ops.any(start * stop <= 0)):
        raise ArgumentError(
            "geomspace of tensors: start and stop have to be real, not zero and of one sign; for "
            "others, take chainrule.exp of a linspace of logarithms"
        )
    if start.dtype.kind != "f":
        start = cast(start, np.float64)
    signs = ops.expand_dims(ops.sign(start), axis)
    logs = linspace(ops.log(ops.abs(start)), ops.log(ops.abs(stop)), num, endpoint, axis=axis)
    return cast(signs * ops.exp(logs), dtype)
