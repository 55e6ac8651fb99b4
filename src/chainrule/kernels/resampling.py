"""Sparse linear maps along one axis: window sums, interpolation, reflections, unfolding.

A sparse matrix is stored as a few layers, each of which writes to an output at most once:
`out[rows] += weights * x[columns]`. So a layer is one vectorised expression, and absent entries
multiply nothing: there is no 0 * inf. The transpose has the same form.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

Array = Any
Layer = tuple[Any, Any, Any]


class Taps:
    """A sparse matrix of shape `rows` × `columns`, in layers (rows, columns, weights or None)."""

    def __init__(self, rows: int, columns: int, layers: Sequence[Layer]) -> None:
        self.rows = rows
        self.columns = columns
        self.layers = tuple([layer for layer in layers if len(layer[0])])
        rows_used = np.concatenate([layer[0] for layer in self.layers] or [np.zeros(0, int)])
        written = np.bincount(rows_used, minlength=rows)
        self.disjoint = bool(written.max(initial=0) <= 1)
        self.complete = bool(written.min(initial=1) >= 1)
        # Evenly spaced indices as slices.
        self.sliced_layers = [(_as_slice(r), _as_slice(p), w) for r, p, w in self.layers]

    @cached_property
    def transposed(self) -> Taps:
        """The transposed matrix."""
        layers: list[Layer] = []
        for rows, columns, weights in self.layers:
            layers += _to_layers(columns, rows, weights)
        transposed = Taps(self.columns, self.rows, layers)
        transposed.__dict__["transposed"] = self
        return transposed


def make_taps(rows: Array, columns: Array, weights: Array | None, shape: tuple[int, int]) -> Taps:
    """Return the sparse matrix of this shape from its entries, in any order."""
    return Taps(*shape, _to_layers(rows, columns, weights))


def _to_layers(rows: Array, columns: Array, weights: Array | None) -> list[Layer]:
    """Return entries as layers, each with ascending, unique rows."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    rank = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    layers = []
    for i in range(rank.max(initial=-1) + 1):
        entries = order[rank == i]
        layers.append(
            (rows[entries], columns[entries], None if weights is None else weights[entries])
        )
    return layers


def _as_slice(index: Array) -> Any:
    """Return evenly spaced ascending indices as a slice, others unchanged."""
    if len(index) == 1:
        return slice(int(index[0]), int(index[0]) + 1)
    step = int(index[1] - index[0])
    if step < 1 or (np.diff(index) != step).any():
        return index
    return slice(int(index[0]), int(index[-1]) + 1, step)


def resample(xp: Any, x: Array, *, taps: Taps, axis: int) -> Array:
    """Apply a sparse matrix along an axis."""
    lead = (slice(None),) * axis
    shape = (*x.shape[:axis], taps.rows, *x.shape[axis + 1 :])
    sliced_layers = taps.sliced_layers
    if len(sliced_layers) == 1 and taps.complete and isinstance(sliced_layers[0][0], slice):
        part = _layer_values(xp, x, sliced_layers[0], axis)
        return part.copy() if xp.may_share_memory(part, x) else part
    new = xp.empty if taps.disjoint and taps.complete else xp.zeros
    out = new(shape, x.dtype)
    for i, layer in enumerate(sliced_layers):
        chosen = layer[0] if isinstance(layer[0], slice) else xp.asarray(layer[0])
        part, rows = _layer_values(xp, x, layer, axis), (*lead, chosen)
        if taps.disjoint or i == 0:
            out[rows] = part
        elif isinstance(layer[0], slice):
            view = out[rows]
            xp.add(view, part, out=view)
        else:
            out[rows] += part  # rows are unique in a layer
    return out


def _layer_values(xp: Any, x: Array, layer: Layer, axis: int) -> Array:
    """Return the values that one layer writes."""
    _, columns, weights = layer
    if isinstance(columns, slice):
        part = x[(*(slice(None),) * axis, columns)]
    else:
        part = xp.take(x, xp.asarray(columns), axis)
    if weights is None:
        return part
    column = xp.asarray(weights.astype(x.real.dtype))
    return part * column.reshape(-1, *(1,) * (x.ndim - axis - 1))
