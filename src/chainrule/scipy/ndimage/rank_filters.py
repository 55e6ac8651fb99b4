"""Filters of images by order: the largest and the smallest element, the median, other ranks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.scipy.ndimage.arguments import TABLE, image, one_for_each, window_axes
from chainrule.scipy.ndimage.linear_filters import extended


def windows_of(
    name: str, x: Tensor, size: Any, footprint: Any, mode: Any, cval: Any, origin: Any, axes: Any
) -> Tensor:
    """Return the elements of the window around each element, along a new last axis."""
    axes = window_axes(name, axes, x.ndim)
    if footprint is None:
        if size is None:
            raise ArgumentError(f"{name}: no footprint or filter size provided")
        footprint = np.ones([int(n) for n in one_for_each(name, "size", size, len(axes))], bool)
    footprint = np.asarray(footprint, bool)
    if footprint.ndim != len(axes) or not footprint.any():
        raise ArgumentError(
            f"{name}: expected a footprint along {len(axes)} axes with an element in it, got the "
            f"shape {list(footprint.shape)}"
        )
    lengths = [x.shape[axis] for axis in axes]
    x = extended(name, x, axes, footprint.shape, mode, cval, origin)
    parts = []
    for starts in itertools.product(*map(range, footprint.shape)):
        if footprint[starts]:
            key = [slice(None)] * x.ndim
            for axis, start, n in zip(axes, starts, lengths, strict=True):
                key[axis] = slice(start, start + n)
            parts.append(x[tuple(key)])
    return ops.stack(parts, dim=-1)


def _of_rank(windows: Tensor, rank: int) -> Tensor:
    ordered, _ = ops.sort(windows, dim=-1)
    return ordered[..., rank]


@TABLE.function("maximum_filter", "composite")
def maximum_filter(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Tensor:
    """Return the largest elements of windows; equal ones share the derivative."""
    x = image("maximum_filter", input, output)
    windows = windows_of("maximum_filter", x, size, footprint, mode, cval, origin, axes)
    return ops.amax(windows, dim=-1)


@TABLE.function("minimum_filter", "composite")
def minimum_filter(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Tensor:
    """Return the smallest elements of windows; equal ones share the derivative."""
    x = image("minimum_filter", input, output)
    windows = windows_of("minimum_filter", x, size, footprint, mode, cval, origin, axes)
    return ops.amin(windows, dim=-1)


@TABLE.function("median_filter", "composite")
def median_filter(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Tensor:
    """Return the medians of windows: of an even number of elements, the upper one."""
    x = image("median_filter", input, output)
    windows = windows_of("median_filter", x, size, footprint, mode, cval, origin, axes)
    return _of_rank(windows, windows.shape[-1] // 2)


@TABLE.function("percentile_filter", "composite")
def percentile_filter(
    input: Any,
    percentile: float,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Tensor:
    """Return the elements of windows that are above a share of the others, in percent."""
    x = image("percentile_filter", input, output)
    windows = windows_of("percentile_filter", x, size, footprint, mode, cval, origin, axes)
    share = percentile + 100.0 if percentile < 0 else percentile
    if not 0 <= share <= 100:
        raise ArgumentError(f"percentile_filter: invalid percentile: {percentile}")
    count = windows.shape[-1]
    return _of_rank(windows, count - 1 if share == 100 else int(count * share / 100))


@TABLE.function("rank_filter", "composite")
def rank_filter(
    input: Any,
    rank: int,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Tensor:
    """Return the elements of windows that are larger than `rank` others of them."""
    x = image("rank_filter", input, output)
    windows = windows_of("rank_filter", x, size, footprint, mode, cval, origin, axes)
    count = windows.shape[-1]
    if not -count <= rank < count:
        raise ArgumentError(
            f"rank_filter: expected a rank from {-count} to {count - 1}, got {rank}: the windows "
            f"have {count} elements"
        )
    return _of_rank(windows, rank)
