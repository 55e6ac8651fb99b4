"""Histograms, with the arguments of NumPy's functions.

Counts have no derivative by the elements. Sums of weights are differentiable by the weights, edges
computed from the extremes of the elements by these, and densities by the edges.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule import array_api as xp
from chainrule import ops
from chainrule.arguments import cast, floating
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.errors import ArgumentError
from chainrule.interop.manipulation import flat
from chainrule.interop.operands import array_of, constant, in_double, tensor_of, tensors_of

Array = Any


def histogram_bin_edges(
    a: Tensor, bins: Any = 10, range: Any = None, weights: Any = None
) -> Tensor:
    """Return the edges of bins, differentiable by the extremes of `a` if they depend on these."""
    if not isinstance(bins, str) and np.ndim(array_of(bins)) == 1:
        return tensor_of(bins)
    numbers = array_of(a)
    if is_known(numbers) or isinstance(bins, str) or not numbers.size:
        limits = None if range is None else tuple([array_of(end) for end in range])
        heights = None if weights is None else array_of(weights)
        edges = np.histogram_bin_edges(numbers, bins, limits, heights)
        if not numbers.size and range is None:
            return constant(edges)
        bins = len(edges) - 1
    low, high = (xp.min(a), xp.max(a)) if range is None else tensors_of([a, *range], weak=True)[1:]
    half = ops.where(low == high, 0.5, 0.0)
    low, high = floating(low - half), floating(high + half)
    # Rounded as NumPy's: elements at an edge are counted by it.
    steps = constant(np.arange(1, bins).astype(low.dtype))
    inner = steps * ((high - low) / bins) + low
    return ops.cat([low[None], inner, high[None]])


def histogram(
    a: Tensor,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the count, or the sum of weights, of each bin, and the edges."""
    edges = histogram_bin_edges(a, bins, range, weights)
    found = _count_cells([array_of(a).ravel()], [array_of(edges)], weights)
    if not density:
        return found, edges
    return found / ops.diff(edges) / xp.sum(found), edges


def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return the count, or the sum of weights, of each integer."""
    return ops.bincount(x, None if weights is None else in_double(weights), minlength)


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Tensor | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """Return the count, or the sum of weights, of each cell, and the edges."""
    columns = _columns(sample)
    count = len(columns)
    all_bins = list(bins) if np.iterable(bins) else [bins] * count
    ranges = [None] * count if range is None else list(range)
    if len(all_bins) != count or len(ranges) != count:
        raise ArgumentError(
            f"histogramdd: the points have {count} coordinates, but there are bins for "
            f"{len(all_bins)} and ranges for {len(ranges)}"
        )
    triples = zip(columns, all_bins, ranges, strict=True)
    edges = [histogram_bin_edges(column, part, ends) for column, part, ends in triples]
    numbers = [array_of(column) for column in columns]
    found = _count_cells(numbers, [array_of(part) for part in edges], weights)
    found = in_double(found) if found.dtype.kind == "f" else cast(found, np.float64)
    if density:
        found = found / xp.sum(found)
        for axis, part in enumerate(edges):
            found = found / xp.reshape(ops.diff(part), (-1, *(1,) * (count - axis - 1)))
    return found, edges


def histogram2d(
    x: Tensor,
    y: Tensor,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the count, or the sum of weights, of each cell, and the edges of both axes."""
    if x.shape != y.shape:
        raise ArgumentError("x and y must have the same length.")
    if np.iterable(bins) and len(list(bins)) != 2:
        bins = [bins, bins]  # the edges of both axes
    found, (first, second) = histogramdd([x, y], bins, range, density, weights)
    return found, first, second


def _columns(sample: Any) -> list[Tensor]:
    if isinstance(sample, list | tuple):
        columns = tensors_of(list(sample))
        joint = np.result_type(*[column.dtype for column in columns])
        return [cast(column, joint) for column in columns]
    points = tensor_of(sample)
    return list(ops.unbind(points if points.ndim > 1 else points[:, None], 1))


def _count_cells(numbers: list[Array], edges: list[Array], weights: Tensor | None) -> Tensor:
    """Return the counts, or the sums of weights, of the cells between edges along each axis."""
    shape = tuple([len(limits) - 1 for limits in edges])
    cells, inside = np.zeros((), np.intp), np.ones((), bool)
    for row, limits in zip(numbers, edges, strict=True):
        inside = inside & (row >= limits[0]) & (row <= limits[-1])
        position = np.searchsorted(limits, row, "right") - 1
        cells = cells * (len(limits) - 1) + np.clip(position, 0, len(limits) - 2)  # with the end
    count = math.prod(shape)
    cells = np.where(inside, cells, count)  # the others' is a cell of its own
    if weights is None and is_known(cells):
        return constant(np.bincount(cells, minlength=count + 1)[:count].reshape(shape))
    weights = constant(np.ones(cells.shape, np.intp)) if weights is None else flat(weights)
    empty = constant(np.zeros(count + 1, weights.dtype))
    found = ops.index_add(empty, 0, constant(cells), weights)
    return xp.reshape(found[:count], shape)
