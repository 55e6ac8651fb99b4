"""Euclidean distances of all pairs and their gradients, in blocks of rows that fit the cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule.interrupts import errstate
from chainrule.kernels import flat_indexing

Array = Any

_BLOCK_SIZE = 1 << 16
"""Number of distances that are computed at a time."""


def _rows_at_a_time(columns: int) -> int:
    return max(_BLOCK_SIZE // max(columns, 1), 1)


def _blocks(out: Array) -> Iterator[slice]:
    rows, columns = out.shape
    step = _rows_at_a_time(columns)
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))


def _scratch(out: Array) -> Array:
    """Return memory for a block of an array."""
    return np.empty_like(out[: _rows_at_a_time(out.shape[1])])


def _centred(x: Array, y: Array) -> tuple[Array, Array, Array, Array]:
    """Return both sets minus the mean of the second, and their squared lengths."""
    mean = y.mean(0)
    mean[~np.isfinite(mean)] = 0
    x, y = x - mean, y - mean
    return x, y, np.einsum("ij,ij->i", x, x)[:, None], np.einsum("ij,ij->i", y, y)


def pair_distances(xp: Any, x: Array, y: Array, *, near_ratio: float | None) -> Array:
    """Return the distances of all pairs, from the differences of their coordinates.

    With a `near_ratio` they come from a matrix product, but for pairs whose squared distance is
    below this share of the sum of their squared lengths.
    """
    out = np.empty((*x.shape[:-1], y.shape[-2]), x.dtype)
    for i in np.ndindex(x.shape[:-2]):
        if near_ratio is None:
            _by_differences(out[i], x[i], y[i])
        else:
            _by_product(out[i], x[i], y[i], near_ratio)
    return out


def _by_differences(out: Array, x: Array, y: Array) -> None:
    scratch, coordinates = _scratch(out), np.ascontiguousarray(y.T)
    for rows in _blocks(out):
        part, points = out[rows], x[rows]
        for m, others in enumerate(coordinates):
            d = scratch[: len(part)] if m else part
            np.subtract(points[:, m, None], others, out=d)
            np.multiply(d, d, out=d)
            if m:
                part += d
        np.sqrt(part, out=part)


def _by_product(out: Array, x: Array, y: Array, near_ratio: float) -> None:
    a, b, a_sizes, b_sizes = _centred(x, y)
    b *= -2
    np.matmul(a, b.T, out=out)
    scratch = _scratch(out)
    for rows in _blocks(out):
        part = out[rows]
        sizes = np.add(a_sizes[rows], b_sizes, out=scratch[: len(part)])
        part += sizes
        sizes *= near_ratio
        far = part >= sizes  # not nan
        if not far.all():
            i, j = np.nonzero(~far)
            d = x[rows][i] - y[j]
            part[i, j] = np.einsum("ij,ij->i", d, d)
        np.sqrt(part, out=part)


@errstate(divide="ignore", invalid="ignore")  # points that coincide
def pair_gradients(
    xp: Any,
    g: Array,
    x: Array,
    y: Array,
    out: Array,
    needs: tuple[bool, ...],
    *,
    near_ratio: float | None,
) -> tuple[Array | None, Array | None]:
    """Return the gradients of distances by both sets of points, those that are needed."""
    found: Any = [
        np.zeros(each.shape, out.dtype) if need else None
        for each, need in zip((x, y), needs, strict=True)
    ]
    for i in np.ndindex(x.shape[:-2]):
        gradients = [None if each is None else each[i] for each in found]
        if near_ratio is None:
            _gradients_by_differences(gradients, g[i], x[i], y[i], out[i])
        else:
            _gradients_by_product(gradients, g[i], x[i], y[i], out[i], near_ratio)
    return found[0], found[1]


def _weights(g: Array, out: Array, scratch: Array) -> Array:
    """Return g / out, and 0 where points coincide."""
    w = np.divide(g, out, out=scratch[: len(out)])
    zero = out == 0
    if zero.any():
        w[zero] = 0
    return w


def _gradients_by_differences(
    found: list[Array | None], g: Array, x: Array, y: Array, out: Array
) -> None:
    of_x, of_y = found
    coordinates = np.ascontiguousarray(y.T)
    scratch, differences = _scratch(out), _scratch(out)
    for rows in _blocks(out):
        points = x[rows]
        w = _weights(g[rows], out[rows], scratch)
        for m, others in enumerate(coordinates):
            d = np.subtract(points[:, m, None], others, out=differences[: len(points)])
            d *= w
            if of_x is not None:
                of_x[rows, m] = d.sum(1)
            if of_y is not None:
                of_y[:, m] -= d.sum(0)


def _gradients_by_product(
    found: list[Array | None], g: Array, x: Array, y: Array, out: Array, near_ratio: float
) -> None:
    of_x, of_y = found
    a, b, a_sizes, b_sizes = _centred(x, y)
    a_sizes, b_sizes = a_sizes * near_ratio, b_sizes * near_ratio
    weights, columns = np.empty_like(out), np.zeros(len(y), out.dtype)
    squares, limits = (_scratch(out) for _ in range(2))
    for rows in _blocks(out):
        part = out[rows]
        w = _weights(g[rows], part, weights[rows])
        square = np.multiply(part, part, out=squares[: len(part)])
        far = square >= np.add(a_sizes[rows], b_sizes, out=limits[: len(part)])  # not nan
        if not far.all():
            i, j = np.nonzero(~far)
            d = (x[rows][i] - y[j]) * w[i, j, None]
            w[i, j] = 0
            if of_x is not None:
                flat_indexing.add(of_x, i + rows.start, d)
            if of_y is not None:
                flat_indexing.add(of_y, j, -d)
        if of_x is not None:
            of_x[rows] += w.sum(1)[:, None] * a[rows]
        if of_y is not None:
            columns += w.sum(0)
    if of_x is not None:
        of_x -= weights @ b
    if of_y is not None:
        of_y += columns[:, None] * b - weights.T @ a
