"""Ranges of numbers: evenly spaced, or with evenly spaced exponents."""

from __future__ import annotations

import math
import warnings
from operator import index
from typing import Any, Unpack

import numpy as np

from chainrule.arguments import (
    DeviceLike,
    DTypeLike,
    MemoryOptions,
    complex_dtype,
    created,
    dtype_of,
    dtype_or_default,
    leaf,
    plain_number,
)
from chainrule.autograd.tensor import Tensor, default_dtype
from chainrule.errors import ArgumentError, ArgumentTypeError

__all__ = ["arange", "linspace", "logspace"]

Array = Any


def arange(
    start: float | None = None,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return evenly spaced values from `start` up to, without, `end`.

    Parameters
    ----------
    start : number
        The first value. Given alone it is `end`, and the values start at 0.
    end : number, optional
        The end of the range, which is excluded.
    step : number, default 1
        The distance between them; not 0.
    dtype : dtype, optional
        If left out: int64 if the three are ints, else the default dtype. Given one of integers, the
        three are rounded towards zero first.
    device, requires_grad
        As for `zeros`.

    Returns
    -------
    Tensor, shape (⌈(end - start) / step⌉,)

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.arange(2, 8, 2)
    tensor([2, 4, 6])
    >>> cr.arange(0.0, 1.0, 0.25)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if end is None:
        start, end = None, start
    if end is None:
        raise ArgumentTypeError("arange() needs an end: arange(end) or arange(start, end)")
    start = 0 if start is None else start
    if dtype is not None:
        start, end, step = _round_ends((start, end, step), dtype)
    if step == 0:
        raise ArgumentError("arange(): step must be nonzero")
    try:
        plain = all(isinstance(x, int | float) for x in (start, end, step))
        count = max(math.ceil((end - start) / step), 0) if plain else 0
        values = created("arange", (count,), np.dtype(np.float64), start, end, step)
    except (ValueError, OverflowError):
        raise ArgumentError(f"arange(): unsupported range: {start} -> {end}") from None
    kind = default_dtype() if values.dtype.kind == "f" else np.dtype(np.int64)
    return leaf(
        values.astype(kind if dtype is None else dtype_of(dtype)), device, requires_grad, memory
    )


def range(  # not for `from chainrule import *`
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return evenly spaced values from `start` to `end`, with it: PyTorch's former `arange`.

    Parameters
    ----------
    start, end, step : number
        As for `arange`, but `end` belongs to the range.
    dtype : dtype, optional
        The default dtype if left out, also for ints.
    device, requires_grad
        As for `zeros`.

    Returns
    -------
    Tensor, shape (⌊(end - start) / step⌋ + 1,)

    Examples
    --------
    >>> import warnings
    >>> import chainrule as cr
    >>> warnings.simplefilter("ignore")
    >>> cr.range(1, 4)
    tensor([1., 2., 3., 4.])
    """
    warnings.warn(
        "range() is deprecated, as PyTorch's is, since it contains its end: write arange()",
        UserWarning,
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    if step == 0 or (end - start) / step < 0:
        reason = "step must be nonzero" if step == 0 else "upper bound and lower bound inconsistent"
        raise ArgumentError(f"range(): {reason} with step sign: {start} -> {end} by {step}")
    kind = dtype_or_default(dtype)
    values = start + step * np.arange(math.floor((end - start) / step) + 1, dtype=np.float64)
    return leaf(values.astype(kind), device, requires_grad, memory)


def linspace(
    start: complex,
    end: complex,
    steps: int,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return `steps` evenly spaced values from `start` to `end`, both included.

    Parameters
    ----------
    start, end : number
        The first and the last value; complex ones make a complex tensor.
    steps : int
        Number of values.
    dtype, device, requires_grad
        As for `zeros`.

    Returns
    -------
    Tensor, shape (steps,)
        Computed in double precision and then rounded; for a dtype of integers both ends are
        rounded towards zero before.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linspace(-4, 4, 5)
    tensor([-4., -2.,  0.,  2.,  4.])
    """
    first, last = _round_ends((start, end), dtype)
    return _to_tensor(_evenly_spaced(first, last, steps), dtype, device, requires_grad, memory)


def logspace(
    start: complex,
    end: complex,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return `steps` powers of `base`, their exponents evenly spaced from `start` to `end`.

    Parameters
    ----------
    start, end : number
        The first and the last exponent.
    steps : int
        Number of values.
    base : number, default 10
        The base of the powers.
    dtype, device, requires_grad
        As for `zeros`.

    Returns
    -------
    Tensor, shape (steps,)
        Computed in double precision and then rounded.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.logspace(-1, 1, 3)
    tensor([ 0.1000,  1.0000, 10.0000])
    """
    first, last = _round_ends((start, end), dtype)
    return _to_tensor(
        np.power(base, _evenly_spaced(first, last, steps)), dtype, device, requires_grad, memory
    )


def _round_ends(ends: tuple[Any, ...], dtype: DTypeLike) -> tuple[Any, ...]:
    """Return the arguments of a range, rounded towards zero for a dtype of integers."""
    if dtype is None or dtype_of(dtype).kind not in "iu":
        return ends
    return tuple([int(plain_number(end)) for end in ends])


def _evenly_spaced(start: complex, end: complex, steps: int) -> Array:
    """Return evenly spaced values in double precision."""
    count = index(steps)
    if count < 0:
        raise ArgumentError(f"number of steps must be non-negative, got {count}")
    ends = plain_number(start), plain_number(end)
    return created("linspace", (count,), np.dtype(np.float64), *ends, count)


def _to_tensor(
    values: Array,
    dtype: DTypeLike,
    device: DeviceLike,
    requires_grad: bool,
    memory: MemoryOptions,
) -> Tensor:
    """Return a tensor of values computed in double precision; of the default dtype of its kind."""
    if dtype is None and values.dtype.kind == "c":
        dtype = complex_dtype()
    return leaf(values.astype(dtype_or_default(dtype)), device, requires_grad, memory)
