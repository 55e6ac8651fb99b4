"""Images at other points: splines of order 0 to 5 through the elements, as SciPy evaluates them.

The coefficients of the splines are those of a recursive filter, which is linear. The value at a
point is a sum of the coefficients around it, with weights that are polynomials of its coordinates:
derivatives with respect to image and coordinates follow from these sums.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.interop.manipulation import pad
from chainrule.interop.operands import may_hold
from chainrule.kernels.scipy_linalg import scipy_linalg
from chainrule.primitives.primitive import Primitive, applied, linear
from chainrule.scipy import special
from chainrule.scipy.ndimage.arguments import (
    MODES,
    TABLE,
    axes_of,
    check_mode,
    doubles,
    image,
    number_of,
    one_for_each,
)

Array = Any

_PADDED = 12  # elements beyond the edges, in the modes of which SciPy has no exact filter
_SHORT = 32  # elements, below which SciPy's recursion over a reflected row isn't symmetric

# --- coefficients of splines ----------------------------------------------------------------------


def _with_ends(xp: Any, x: Array, factor: float) -> Array:
    """Return rows with the first and last element multiplied."""
    weights = np.ones(x.shape[-1])
    weights[[0, -1]] = factor
    return x * xp.asarray(weights.astype(x.dtype))


@functools.cache
def _filter_matrix(n: int, order: int, mode: str) -> Any:
    """Return the coefficients of the splines through unit vectors, in rows."""
    return scipy_linalg(np, np.eye(n), routine="spline_filter1d", order=order, mode=mode)


def _spline_adjoint(xp: Any, g: Array, *, order: int, mode: str) -> Array:
    filtered, n = applied(spline_rows, xp), g.shape[-1]
    if mode in ("mirror", "constant", "grid-constant", "wrap"):  # symmetric with half the ends
        g = filtered(_with_ends(xp, g, 2.0), order=order, mode=mode)
        return _with_ends(xp, g, 0.5)
    if n < _SHORT and mode != "grid-wrap":
        matrix = _filter_matrix(n, order, mode).astype(g.dtype)
        return xp.matmul(g, xp.asarray(np.ascontiguousarray(matrix.T)))
    return filtered(g, order=order, mode=mode)


spline_rows: Primitive = linear(
    "scipy_spline_filter",
    _spline_adjoint,
    forward=lambda xp, x, *, order, mode: xp.scipy_linalg(
        x, routine="spline_filter1d", order=order, mode=mode
    ),
)
"""Coefficients of splines, along the last axis."""


def _coefficients(x: Tensor, axis: int, order: int, mode: str) -> Tensor:
    if order < 2 or x.shape[axis] == 1:
        return x
    rows = ops.movedim(x, axis, -1)
    return ops.movedim(spline_rows.apply(rows, order=order, mode=mode), -1, axis)


def _check_order(name: str, order: int, least: int = 0) -> None:
    if not least <= order <= 5:
        raise ArgumentError(
            f"{name}: spline order not supported: expected {least} to 5, got {order}"
        )


@TABLE.function("spline_filter1d", "linear")
def spline_filter1d(
    input: Any, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror"
) -> Tensor:
    """Return the coefficients of splines along one axis, in double precision."""
    return _filtered("spline_filter1d", input, order, [axis], output, mode, 0)


@TABLE.function("spline_filter", "linear")
def spline_filter(
    input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror"
) -> Tensor:
    """Return the coefficients of splines along all axes, in double precision."""
    return _filtered("spline_filter", input, order, None, output, mode, 2)


def _filtered(
    name: str, input: Any, order: int, axes: Any, output: Any, mode: str, least: int
) -> Tensor:
    x = image(name, input, None if output is np.float64 else output)
    (x,) = doubles(name, x)
    _check_order(name, order, least)
    check_mode(name, mode)
    for axis in axes_of(name, axes, x.ndim):
        x = _coefficients(x, axis, order, mode)
    return x


# --- points of an image ---------------------------------------------------------------------------


class _Splines:
    """The splines of an image along its last axes, and the values at points."""

    def __init__(
        self, name: str, x: Tensor, rank: int, order: int, mode: str, cval: Any, prefilter: bool
    ) -> None:
        _check_order(name, order)
        check_mode(name, mode)
        self.order, self.mode, self.dtype = order, mode, x.dtype
        (self.cval,) = doubles(name, cval)
        (x,) = doubles(name, x)
        self.axes = range(x.ndim - rank, x.ndim)
        self.padded = 0
        if prefilter and order > 1:
            if mode in ("nearest", "grid-constant"):
                self.padded = _PADDED
                for axis in self.axes:
                    width = {axis: (_PADDED, _PADDED)}
                    x = pad(x, width, MODES[mode], constant_values=self.cval)
            for axis in self.axes:
                x = _coefficients(x, axis, order, mode)
        self.coefficients = x

    def _around(self, axis: int, at: Tensor) -> tuple[Tensor, Any, Any, Tensor | None]:
        """Return weights, positions along an axis and where there are some, along a last axis.

        The last result is where points are outside of the image, if they have the value there.
        """
        n, order = self.coefficients.shape[axis], self.order
        at = at + self.padded
        outside = None
        if self.mode == "constant":
            outside = ops.logical_not(ops.logical_and(at >= 0, at <= n - 1))
            at = ops.where(outside, 0.0, at) if may_hold(outside) else at
        at = _folded(at, n, self.mode)
        start = ops.floor(at + 0.5 * (1 - order % 2)).detach()
        weights = _weights(at + 0.5 * (1 - order % 2) - start, order)
        first = cast(start, "int64") - order // 2
        places, inside = _positions(first[..., None] + np.arange(order + 1), n, self.mode)
        return weights, places, inside, outside

    def along_each(self, points: Sequence[Any]) -> Tensor:
        """Return the values at the points of a grid, given those along each axis."""
        found, outsides = self.coefficients, []
        for axis, at in zip(self.axes, points, strict=True):
            weights, places, inside, outside = self._around(axis, at)
            values = found[(slice(None),) * axis + (places,)]
            after = (1,) * (found.ndim - axis - 1)
            if inside is not None:
                values = ops.where(ops.reshape(inside, (*inside.shape, *after)), values, self.cval)
            wide = ops.reshape(weights, (*weights.shape, *after))
            found = ops.sum(wide * values, dim=axis + 1)
            outsides.append((outside, after))
        for outside, after in outsides:
            if outside is not None and may_hold(outside):
                wide = ops.reshape(outside, (*outside.shape, *after))
                found = ops.where(wide, self.cval, found)
        return cast(found, self.dtype)

    def at(self, points: Sequence[Tensor]) -> Tensor:
        """Return the values at points, given their coordinates along each axis."""
        shape, rank = points[0].shape, len(points)
        rows, index, insides, outsides = [], [], [], []
        for i, (axis, at) in enumerate(zip(self.axes, points, strict=True)):
            weights, places, inside, outside = self._around(axis, ops.reshape(at, (-1,)))
            spread = [-1 if j == i else 1 for j in range(rank)]
            rows.append(weights)
            index.append(ops.reshape(places, (places.shape[0], *spread)))
            if inside is not None:
                insides.append(ops.reshape(inside, (inside.shape[0], *spread)))
            if outside is not None:
                outsides.append(outside)
        before, flat = self.axes.start, index[0]
        for axis, places in zip(self.axes[1:], index[1:], strict=True):
            flat = flat * self.coefficients.shape[axis] + places
        rows_of = ops.reshape(self.coefficients, (*self.coefficients.shape[:before], -1))
        found = rows_of[(slice(None),) * before + (flat,)]
        for inside in insides:
            found = ops.where(inside, found, self.cval)
        for weights in rows:
            wide = ops.reshape(weights, (*weights.shape, *[1] * (found.ndim - before - 2)))
            found = ops.sum(wide * found, dim=before + 1)
        for outside in outsides:
            if may_hold(outside):
                found = ops.where(outside, self.cval, found)
        return cast(ops.reshape(found, (*found.shape[:before], *shape)), self.dtype)


def _folded(at: Tensor, n: int, mode: str) -> Tensor:
    """Return coordinates of the points within an image that have the same value."""
    if mode in ("constant", "grid-constant", "nearest"):
        return at
    if n == 1:
        return 0.0 * at
    if mode in ("reflect", "grid-mirror"):
        rest = _remainder(at + 0.5, 2 * n)
        return ops.where(rest > n, 2 * n - rest, rest) - 0.5
    if mode == "mirror":
        rest = _remainder(at, 2 * (n - 1))
        return ops.where(rest > n - 1, 2 * (n - 1) - rest, rest)
    if mode == "grid-wrap":
        return _remainder(at, n)
    below = at + (n - 1) * (ops.floor(-at / (n - 1)) + 1)
    above = at - (n - 1) * ops.floor(at / (n - 1))
    return ops.where(at < 0, below, ops.where(at > n - 1, above, at))


def _remainder(x: Tensor, period: int) -> Tensor:
    return x - period * ops.floor(x / period)


def _positions(index: Tensor, n: int, mode: str) -> tuple[Tensor, Tensor | None]:
    """Return positions in an image, and where they are those of an element."""
    if mode == "grid-constant":
        inside = ops.logical_and(index >= 0, index < n)
        return ops.clamp(index, 0, n - 1), inside
    if mode == "nearest" or n == 1:
        return ops.clamp(index, 0, n - 1), None
    if mode == "grid-wrap":
        return ops.remainder(index, n), None
    if mode in ("reflect", "grid-mirror"):
        rest = ops.remainder(index, 2 * n)
        return ops.where(rest >= n, 2 * n - 1 - rest, rest), None
    rest = ops.remainder(index, 2 * (n - 1))
    return ops.where(rest >= n, 2 * (n - 1) - rest, rest), None


def _weights(share: Tensor, order: int) -> Tensor:
    """Return the B-splines that are not 0 at points between knots, along a last axis.

    Algorithm A2.2 of L. Piegl, W. Tiller, The NURBS Book, Springer 1997, for knots 1 apart.
    """
    parts: list[Any] = [share.new_ones(share.shape)]
    for m in range(1, order + 1):
        saved: Any = 0.0
        for r in range(m):
            part = parts[r] / m
            parts[r] = saved + (r + 1 - share) * part
            saved = (share + (m - 1 - r)) * part
        parts.append(saved)
    return ops.stack(parts, dim=-1)


# --- SciPy's functions ----------------------------------------------------------------------------


@TABLE.function("map_coordinates", "composite")
def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Tensor:
    """Return an image at points, whose coordinates are along the first axis."""
    name = "map_coordinates"
    x = image(name, input, output)
    (points,) = doubles(name, coordinates)
    if not x.ndim or not points.ndim or points.shape[0] != x.ndim:
        raise ShapeError(
            f"{name}: invalid shape for coordinate array: expected {x.ndim} coordinates along "
            f"the first axis, got {list(points.shape)}"
        )
    return _Splines(name, x, x.ndim, order, mode, cval, prefilter).at(list(points))


@TABLE.function("shift", "composite")
def shift(
    input: Any,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Tensor:
    """Return a shifted image, with derivatives with respect to the shifts."""
    x = image("shift", input, output)
    shifts = one_for_each("shift", "shift", shift, x.ndim)
    points = [np.arange(float(n)) - by for n, by in zip(x.shape, shifts, strict=True)]
    splines = _Splines("shift", x, x.ndim, order, mode, cval, prefilter)
    return splines.along_each(doubles("shift", *points))


@TABLE.function("zoom", "linear")
def zoom(
    input: Any,
    zoom: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Tensor:
    """Return an image with more or fewer elements along each axis."""
    x = image("zoom", input, output)
    factors = one_for_each("zoom", "zoom", zoom, x.ndim)
    points = []
    for n, factor in zip(x.shape, factors, strict=True):
        size = round(n * number_of("zoom", "zoom", factor, "pass a number"))
        last, steps = (n, size) if grid_mode else (n - 1, size - 1)
        step = last / steps if steps else 1.0
        at = np.arange(float(size))
        points.append((at + 0.5) * step - 0.5 if grid_mode else at * step)
    splines = _Splines("zoom", x, x.ndim, order, mode, cval, prefilter)
    return splines.along_each(doubles("zoom", *points))


@TABLE.function("affine_transform", "composite")
def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Tensor:
    """Return the image at ``matrix @ o + offset`` for each index ``o``."""
    name = "affine_transform"
    x, (matrix,) = image(name, input, output), doubles(name, matrix)
    rank, shape = x.ndim, tuple(x.shape) if output_shape is None else tuple(output_shape)
    if matrix.ndim == 2 and tuple(matrix.shape) in ((rank, rank + 1), (rank + 1, rank + 1)):
        offset, matrix = matrix[:rank, rank], matrix[:rank, :rank]
    if matrix.ndim not in (1, 2) or tuple(matrix.shape) != (rank, len(shape))[: matrix.ndim]:
        raise ShapeError(
            f"{name}: expected a matrix of {rank} rows and {len(shape)} columns, or its diagonal, "
            f"got the shape {list(matrix.shape)}"
        )
    offsets = one_for_each(name, "offset", offset, rank)
    splines = _Splines(name, x, rank, order, mode, cval, prefilter)
    if matrix.ndim == 1:
        at = [np.arange(float(n)) * m + by for n, m, by in zip(shape, matrix, offsets, strict=True)]
        return splines.along_each(doubles(name, *at))
    return splines.at(_transformed(name, matrix, offsets, shape))


def _transformed(name: str, matrix: Tensor, offsets: Any, shape: Sequence[int]) -> list[Tensor]:
    """Return the coordinates of the points that the indices of a shape are mapped to."""
    grid = np.meshgrid(*[np.arange(float(n)) for n in shape], indexing="ij", sparse=True)
    points = [
        sum([m * at for m, at in zip(row, grid, strict=True)], by)
        for row, by in zip(matrix, offsets, strict=True)
    ]
    return [ops.broadcast_to(at, tuple(shape)) for at in doubles(name, *points)]


@TABLE.function("rotate", "composite")
def rotate(
    input: Any,
    angle: Any,
    axes: Any = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Tensor:
    """Return an image rotated by an angle in degrees in the plane of two axes."""
    x = image("rotate", input, output)
    plane = sorted(axes_of("rotate", tuple(axes), x.ndim))
    if len(plane) != 2:
        raise ArgumentError(f"rotate: axes should contain exactly two values, got {axes}")
    (turn,) = doubles("rotate", angle)
    c, s = special.cosdg(turn), special.sindg(turn)
    sizes = np.array([x.shape[axis] for axis in plane])
    shape = sizes
    if reshape:
        known = number_of("rotate", "the angle", angle, "pass reshape=False")
        shape = _bounds(known, sizes)
    matrix = ops.stack([ops.stack([c, s]), ops.stack([-s, c])])
    offset = (sizes - 1) / 2 - ops.matmul(matrix, doubles("rotate", (shape - 1) / 2)[0])
    splines = _Splines("rotate", ops.movedim(x, plane, (-2, -1)), 2, order, mode, cval, prefilter)
    found = splines.at(_transformed("rotate", matrix, list(offset), [int(n) for n in shape]))
    return ops.movedim(found, (-2, -1), plane)


def _bounds(angle: float, sizes: Any) -> Any:
    """Return the shape that a rotated plane needs."""
    c, s = special.cosdg(angle), special.sindg(angle)
    (height, width) = sizes
    corners = np.array([[c, s], [-s, c]]) @ [[0, 0, height, height], [0, width, 0, width]]
    return (np.ptp(corners, axis=1) + 0.5).astype(int)
