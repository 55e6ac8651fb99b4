"""NumPy's functions that pick, arrange and rank, with NumPy's arguments, by chainrule's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.creation import fresh
from chainrule.errors import ShapeError
from chainrule.ops import (
    arithmetic,
    diagonals,
    extrema,
    finding,
    indexing,
    moments,
    ordering,
    quantiles,
    reductions,
    repeating,
    running,
    stacking,
    turning,
)


def _take(a: Any, indices: Any, axis: int | None = None) -> Tensor:
    places = indices if isinstance(indices, Tensor) else np.asarray(indices)
    return indexing.take(a, places, axis=axis)


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    length = ary.shape[axis]
    if isinstance(indices_or_sections, int) and length % indices_or_sections:
        raise ShapeError(
            f"split: array split does not result in an equal division: {length} elements into "
            f"{indices_or_sections} parts (array_split allows that)"
        )
    return stacking.tensor_split(ary, indices_or_sections, axis)


def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    return diagonals.diagonal(a, offset, axis1, axis2)


def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    return reductions.sum(_diagonal(a, offset, axis1, axis2), -1)


def _quantile(function: Callable[..., Tensor], share: float) -> Callable[..., Tensor]:
    """Percentiles are hundredths; `method` is PyTorch's `interpolation`."""

    def of(
        a: Any, q: Any, axis: int | None = None, *, method: str = "linear", keepdims: bool = False
    ) -> Tensor:
        shares = np.multiply(q.numpy() if isinstance(q, Tensor) else q, share)
        return function(a, shares, axis, keepdims, interpolation=method)

    return of


def _median(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """NumPy's is the mean of the two in the middle, PyTorch's the lower one."""

    def of(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        return function(a, 0.5, axis, keepdims, interpolation="midpoint")

    return of


def _sort(a: Any, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Any:
    if axis is None:
        a, axis = a.reshape(-1), 0
    return extrema.sort(a, axis=axis)


def _trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    return running.trapezoid(y, x, dx=dx if x is None else None, dim=axis)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.take: _take,
    np.take_along_axis: indexing.take_along_axis,
    np.repeat: lambda a, repeats, axis=None: repeating.repeat(a, repeats, axis=axis),
    np.tile: lambda A, reps: repeating.tile(A, reps),
    np.meshgrid: lambda *xi, indexing="xy": repeating.meshgrid(*xi, indexing=indexing),
    np.hstack: stacking.hstack,
    np.vstack: stacking.vstack,
    np.dstack: stacking.dstack,
    np.column_stack: stacking.column_stack,
    np.atleast_1d: stacking.atleast_1d,
    np.atleast_2d: stacking.atleast_2d,
    np.split: _split,
    np.array_split: lambda ary, parts, axis=0: stacking.tensor_split(ary, parts, axis),
    np.hsplit: stacking.hsplit,
    np.vsplit: stacking.vsplit,
    np.dsplit: stacking.dsplit,
    np.fliplr: turning.fliplr,
    np.flipud: turning.flipud,
    np.rot90: lambda m, k=1, axes=(0, 1): turning.rot90(m, k, axes),
    np.swapaxes: ordering.swapaxes,
    np.diagonal: _diagonal,
    np.trace: _trace,
    np.diag: lambda v, k=0: diagonals.diag(v, k),
    np.diagflat: lambda v, k=0: diagonals.diagflat(v, k),
    np.diff: running.diff,
    np.trapezoid: _trapezoid,
    np.sort: _sort,
    np.median: _median(quantiles.quantile),
    np.nanmedian: _median(quantiles.nanquantile),
    np.quantile: _quantile(quantiles.quantile, 1),
    np.nanquantile: _quantile(quantiles.nanquantile, 1),
    np.percentile: _quantile(quantiles.quantile, 0.01),
    np.nanpercentile: _quantile(quantiles.nanquantile, 0.01),
    np.nansum: moments.nansum,
    np.nanmean: moments.nanmean,
    np.ptp: lambda a, axis=None, *, keepdims=False: arithmetic.subtract(
        extrema.amax(a, axis, keepdims), extrema.amin(a, axis, keepdims)
    ),
    np.bincount: finding.bincount,
    np.vander: fresh.vander,
}
