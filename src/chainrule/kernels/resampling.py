"""Sparse linear maps along one axis: window sums, interpolation, reflections, unfolding.

A map is a few layers, each of which writes to an output at most once: `out[rows] += weights *
x[places]`. So a layer is one expression over the whole array, and what holds no entry can't spoil
anything: there is no 0 * inf. The transpose is of the same kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

Array = Any
Layer = tuple[Any, Any, Any]


class Taps:
    """A sparse matrix of `rows` × `places`, as layers of (rows, places, weights or None)."""

    def __init__(self, rows: int, places: int, layers: Sequence[Layer]) -> None:
        self.rows = rows
        self.places = places
        self.layers = tuple([layer for layer in layers if len(layer[0])])
        taken = np.concatenate([layer[0] for layer in self.layers] or [np.zeros(0, int)])
        written = np.bincount(taken, minlength=rows)
        self.disjoint = bool(written.max(initial=0) <= 1)
        self.complete = bool(written.min(initial=1) >= 1)
        # Evenly spaced indices as slices.
        self.steps = [(_progression(r), _progression(p), w) for r, p, w in self.layers]

    @cached_property
    def transposed(self) -> Taps:
        """The transposed matrix."""
        layers: list[Layer] = []
        for rows, places, weights in self.layers:
            layers += _layered(places, rows, weights)
        transposed = Taps(self.places, self.rows, layers)
        transposed.__dict__["transposed"] = self
        return transposed


def taps_of(rows: Array, places: Array, weights: Array | None, shape: tuple[int, int]) -> Taps:
    """Return a map of this shape from its entries, in any order."""
    return Taps(*shape, _layered(rows, places, weights))


def _layered(rows: Array, places: Array, weights: Array | None) -> list[Layer]:
    """Return entries as layers, in each of which the rows ascend and none comes twice."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    rank = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    layers = []
    for i in range(rank.max(initial=-1) + 1):
        some = order[rank == i]
        layers.append((rows[some], places[some], None if weights is None else weights[some]))
    return layers


def _progression(index: Array) -> Any:
    """Return evenly spaced ascending indices as a slice, others as they are."""
    if len(index) == 1:
        return slice(int(index[0]), int(index[0]) + 1)
    step = int(index[1] - index[0])
    if step < 1 or (np.diff(index) != step).any():
        return index
    return slice(int(index[0]), int(index[-1]) + 1, step)


def resample(xp: Any, x: Array, *, taps: Taps, axis: int) -> Array:
    """Return the map applied along an axis."""
    lead = (slice(None),) * axis
    shape = (*x.shape[:axis], taps.rows, *x.shape[axis + 1 :])
    steps = taps.steps
    if len(steps) == 1 and taps.complete and isinstance(steps[0][0], slice):
        part = _layer(xp, x, steps[0], axis)
        return part.copy() if xp.may_share_memory(part, x) else part
    new = xp.empty if taps.disjoint and taps.complete else xp.zeros
    out = new(shape, x.dtype)
    for i, step in enumerate(steps):
        part, rows = _layer(xp, x, step, axis), (*lead, step[0])
        if taps.disjoint or i == 0:
            out[rows] = part
        elif isinstance(step[0], slice):
            view = out[rows]
            xp.add(view, part, out=view)
        else:
            out[rows] += part  # no row twice in a layer
    return out


def _layer(xp: Any, x: Array, step: Layer, axis: int) -> Array:
    """Return what one layer writes."""
    _, places, weights = step
    if isinstance(places, slice):
        part = x[(*(slice(None),) * axis, places)]
    else:
        part = xp.take(x, xp.asarray(places), axis)
    if weights is None:
        return part
    column = xp.asarray(weights.astype(x.real.dtype))
    return part * column.reshape(-1, *(1,) * (x.ndim - axis - 1))
