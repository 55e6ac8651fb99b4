"""Splines of several variables: products of B-splines, on grids and through scattered points.

Values are linear in the coefficients, and coefficients in the data: an interpolating spline solves
one banded system along each axis, and a spline with given knots is a fit of least squares.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.interop.operands import is_tracked, tensor_of
from chainrule.linalg import qr, solve
from chainrule.scipy.dispatch import call_ours, has_tensors, missing_rule
from chainrule.scipy.interpolate.bsplines import BSpline, design, interpolated, product_of_splines
from chainrule.scipy.interpolate.interpolant import (
    TABLE,
    Interpolant,
    coordinates_and_values,
    only_where,
    within,
)

# --- values ---------------------------------------------------------------------------------------


def _between(q: Tensor, t: Tensor, k: int) -> Tensor:
    """Return points, those beyond the ends moved to them, as FITPACK does."""
    return ops.minimum(ops.maximum(q, t[k]), t[t.shape[0] - k - 1])


def _on_grid(knots: Any, c: Any, degrees: Any, points: Any, orders: Any) -> Tensor:
    (*coordinates,), (c,) = coordinates_and_values("bisplev", [*knots, *points], [c])
    (tx, ty), (x, y) = coordinates[:2], coordinates[2:]
    left, right = [
        design(t, k, _between(ops.reshape(q, (-1,)), t, k), nu)
        for t, k, q, nu in zip((tx, ty), degrees, (x, y), orders, strict=True)
    ]
    found: Tensor = left @ c @ right.T
    return found


def _scattered(knots: Any, c: Any, degrees: Any, points: Any, orders: Any) -> Tensor:
    (x, y, tx, ty), (c,) = coordinates_and_values("ev", [*points, *knots], [c])
    x, y = ops.broadcast_tensors(x, y)
    inside = [
        _between(ops.reshape(q, (-1,)), t, k)
        for q, t, k in zip((x, y), (tx, ty), degrees, strict=True)
    ]
    return ops.reshape(product_of_splines((tx, ty), c, degrees, inside, orders), x.shape)


# --- two variables: FITPACK -----------------------------------------------------------------------


class BivariateSpline(Interpolant):
    """A product of splines of two variables, with the methods of FITPACK's."""

    def _set(self, tck: Any, degrees: tuple[int, int], scipys: Any) -> None:
        (self.tx, self.ty, self.c), self.degrees, self._scipys = tck, degrees, scipys

    def _adopt(self, found: Any) -> None:
        """Take over SciPy's spline."""
        (tx, ty, c), (kx, ky) = found.tck, found.degrees
        c = np.reshape(c, (len(tx) - kx - 1, len(ty) - ky - 1))
        self._set((tx, ty, c), (kx, ky), found)

    def data(self) -> tuple[Any, ...]:
        """Return knots and coefficients."""
        return self.tx, self.ty, self.c

    def of_scipy(self) -> Any:
        """Return SciPy's object."""
        if self._scipys is None:
            found = TABLE.scipys.BivariateSpline._from_tck(
                (*map(np.asarray, (self.tx, self.ty)), np.ravel(self.c), *self.degrees)
            )
            self._scipys = found
        return self._scipys

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
        """Return values, or derivatives, on the grid of two arrays, or at points."""
        if not self._has_tensors(x, y):
            return self.of_scipy()(x, y, dx, dy, grid)
        function = _on_grid if grid else _scattered
        given = ((self.tx, self.ty), self.c, self.degrees, (x, y), (dx, dy))
        return call_ours(function, given, {})

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
        """Return values, or derivatives, at points."""
        return self(xi, yi, dx, dy, grid=False)

    def integral(self, xa: Any, xb: Any, ya: Any, yb: Any) -> Any:
        """Return the integral over a rectangle."""
        if not self._has_tensors(xa, xb, ya, yb):
            return self.of_scipy().integral(xa, xb, ya, yb)
        (kx, ky), c = self.degrees, self.c
        for t, k, a, b in ((self.tx, kx, xa, xb), (self.ty, ky, ya, yb)):
            low, high = t[k], t[len(t) - k - 1]
            c = BSpline(t, c, k).integrate(np.clip(a, low, high), np.clip(b, low, high))
        return c

    def get_knots(self) -> tuple[Any, Any]:
        """Return the knots of both axes."""
        return self.tx, self.ty

    def get_coeffs(self) -> Any:
        """Return the coefficients, row by row."""
        return self.c.reshape(-1)


CHOSEN = (
    "FITPACK chooses its knots by the data. LSQBivariateSpline takes knots, and "
    "RectBivariateSpline with s=0 goes through values on a grid"
)
"""Why smoothing splines of two variables have no derivative, and what has one."""


def _without(name: str, setting: str, mend: str) -> Any:
    return missing_rule(f"scipy.interpolate.{name}: {setting}", mend)


class RectBivariateSpline(BivariateSpline):
    """A spline through values on a grid: `scipy.interpolate.RectBivariateSpline`.

    Notes
    -----
    Derivatives: with respect to values, the grid and points, if ``s=0``; of a smoothing spline with
    respect to points.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x, y = np.arange(4.0), np.arange(5.0)
    >>> spline = cr.scipy.interpolate.RectBivariateSpline(x, y, np.outer(x**2, y))
    >>> round(float(cr.grad(lambda x: spline.ev(x, 2.0))(1.5)), 6)
    6.0
    """

    def __init__(
        self, x: Any, y: Any, z: Any, bbox: Any = (None,) * 4, kx: int = 3, ky: int = 3,
        s: Any = 0, **settings: Any,
    ) -> None:  # fmt: skip
        if not has_tensors(x, y, z, s):
            found = TABLE.scipys.RectBivariateSpline(x, y, z, list(bbox), kx, ky, s, **settings)
            self._adopt(found)
            return
        if is_tracked(s) or s != 0:
            raise _without("RectBivariateSpline", "a smoothing spline", CHOSEN)
        if any(end is not None for end in bbox):
            raise _without("RectBivariateSpline", "bbox", "leave it out")
        degrees = operator.index(kx), operator.index(ky)
        self._set(call_ours(_through_grid, (x, y, z, degrees), {}), degrees, None)


def _through_grid(x: Any, y: Any, z: Any, degrees: tuple[int, int]) -> tuple[Tensor, ...]:
    knots, c = [], z
    for i, (points, k) in enumerate(zip((x, y), degrees, strict=True)):
        t, c = interpolated(points, c, k, None, (None, None), i, True)
        c = ops.movedim(c, 0, i)
        knots.append(t)
    return (*knots, c)


class LSQBivariateSpline(BivariateSpline):
    """The spline with given knots nearest to points: `scipy.interpolate.LSQBivariateSpline`.

    Notes
    -----
    Derivatives: with respect to values, weights, knots and points.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x, y = map(np.ravel, np.meshgrid(np.arange(5.0), np.arange(5.0)))
    >>> fit = lambda z: cr.scipy.interpolate.LSQBivariateSpline(x, y, z, [], [])
    >>> round(float(cr.grad(lambda z: fit(z).ev(1.5, 2.5))(x * y).sum()), 6)
    1.0
    """

    def __init__(
        self, x: Any, y: Any, z: Any, tx: Any, ty: Any, w: Any = None, bbox: Any = (None,) * 4,
        kx: int = 3, ky: int = 3, eps: Any = None,
    ) -> None:  # fmt: skip
        if not has_tensors(x, y, z, tx, ty, w):
            found = TABLE.scipys.LSQBivariateSpline(x, y, z, tx, ty, w, list(bbox), kx, ky, eps)
            self._adopt(found)
            return
        degrees = operator.index(kx), operator.index(ky)
        given = (x, y, z, tx, ty, 1.0 if w is None else w, list(bbox), degrees)
        self._set(call_ours(_nearest, given, {}), degrees, None)


def _nearest(
    x: Any, y: Any, z: Any, tx: Any, ty: Any, w: Any, bbox: Any, degrees: tuple[int, int]
) -> tuple[Tensor, ...]:
    inner = [np.zeros(0) if not len(t) else t for t in (tx, ty)]
    (x, y, tx, ty, w), (z,) = coordinates_and_values("LSQBivariateSpline", [x, y, *inner, w], [z])
    knots, matrices = [], []
    for i, (q, t, k) in enumerate(zip((x, y), (tx, ty), degrees, strict=True)):
        ends = [
            end(q) if given is None else ops.broadcast_to(tensor_of(given), ())
            for end, given in zip((ops.amin, ops.amax), bbox[2 * i : 2 * i + 2], strict=True)
        ]
        low, high = [ops.broadcast_to(ops.reshape(end, (1,)), (k + 1,)) for end in ends]
        knots.append(ops.cat([low, t, high]))
        matrices.append(design(knots[-1], k, q))
    rows = matrices[0][:, :, None] * matrices[1][:, None, :]
    shape = tuple(rows.shape[1:])
    weights = ops.broadcast_to(w, x.shape)
    q, r = qr(weights[:, None] * ops.reshape(rows, (x.shape[0], -1)))
    found = solve(r, q.T @ (weights * z)[:, None])
    return (*knots, ops.reshape(found, shape))


class SmoothBivariateSpline(BivariateSpline):
    """A smoothing spline of scattered points: `scipy.interpolate.SmoothBivariateSpline`.

    Notes
    -----
    Derivatives: with respect to points where it is evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x, y = map(np.ravel, np.meshgrid(np.arange(5.0), np.arange(5.0)))
    >>> spline = cr.scipy.interpolate.SmoothBivariateSpline(x, y, x * y, s=0.1)
    >>> round(float(cr.grad(lambda x: spline.ev(x, 2.0))(1.5)), 6)
    2.0
    """

    def __init__(
        self, x: Any, y: Any, z: Any, w: Any = None, bbox: Any = (None,) * 4,
        kx: int = 3, ky: int = 3, s: Any = None, eps: Any = 1e-16,
    ) -> None:  # fmt: skip
        if has_tensors(x, y, z, w, s):
            raise _without("SmoothBivariateSpline", "the derivative by data", CHOSEN)
        made = TABLE.scipys.SmoothBivariateSpline(x, y, z, w, list(bbox), kx, ky, s, eps)
        self._adopt(made)


def bisplev(x: Any, y: Any, tck: Any, dx: int = 0, dy: int = 0) -> Any:
    """Return values of a spline of two variables on a grid: `scipy.interpolate.bisplev`.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> t = np.array([0.0, 0.0, 1.0, 1.0])
    >>> cr.grad(lambda c: cr.scipy.interpolate.bisplev(0.5, 0.5, (t, t, c, 1, 1)))(np.ones(4))
    array([0.25, 0.25, 0.25, 0.25])
    """
    tx, ty, c, kx, ky = tck
    if not has_tensors(x, y, tx, ty, c):
        return TABLE.scipys.bisplev(x, y, tck, dx, dy)
    c = np.reshape(c, (len(tx) - kx - 1, len(ty) - ky - 1))
    found = call_ours(_on_grid, ((tx, ty), c, (kx, ky), (x, y), (dx, dy)), {})
    if len(found) > 1:
        return found
    return found[0] if found.shape[1] > 1 else found[0, 0]


# --- any number of variables ----------------------------------------------------------------------


class NdBSpline(Interpolant):
    """A product of splines of several variables: `scipy.interpolate.NdBSpline`.

    Notes
    -----
    Derivatives: with respect to knots, coefficients and points.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> t = np.array([0.0, 0.0, 1.0, 1.0])
    >>> spline = cr.scipy.interpolate.NdBSpline((t, t), np.array([[0.0, 1.0], [2.0, 5.0]]), 1)
    >>> cr.grad(lambda x: spline(x[None])[0])(np.array([0.5, 0.5]))
    array([3., 2.])
    """

    def __init__(self, t: Any, c: Any, k: Any, *, extrapolate: Any = None) -> None:
        self.t, self.c, self.extrapolate = tuple(t), c, True if extrapolate is None else extrapolate
        self.k = tuple(k) if np.ndim(k) else (operator.index(k),) * len(self.t)
        self._scipys: Any = None

    def data(self) -> tuple[Any, ...]:
        """Return knots and coefficients."""
        return (*self.t, self.c)

    def of_scipy(self) -> Any:
        """Return SciPy's object."""
        if self._scipys is None:
            settings = {"extrapolate": self.extrapolate}
            self._scipys = TABLE.scipys.NdBSpline(self.t, self.c, self.k, **settings)
        return self._scipys

    def __call__(self, xi: Any, *, nu: Any = None, extrapolate: Any = None) -> Any:
        """Return values, or derivatives of the orders `nu`, at points."""
        if not self._has_tensors(xi):
            return self.of_scipy()(xi, nu=nu, extrapolate=extrapolate)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        nu = (0,) * len(self.t) if nu is None else tuple(int(order) for order in nu)
        if len(nu) != len(self.t) or min(nu) < 0:
            raise ArgumentError(f"NdBSpline: nu needs {len(self.t)} orders from 0 on, got {nu}")
        return call_ours(_of_points, (self.t, self.c, self.k, xi, nu, bool(extrapolate)), {})


def _of_points(knots: Any, c: Any, degrees: Any, xi: Any, nu: Any, extrapolate: bool) -> Tensor:
    (xi, *knots), (c,) = coordinates_and_values("NdBSpline", [xi, *knots], [c])
    shape, flat = xi.shape[:-1], ops.reshape(xi, (-1, len(knots)))
    conditions, points = [], []
    for i, (t, k) in enumerate(zip(knots, degrees, strict=True)):
        q = flat[:, i]
        conditions.append(within(q, t[k], t[t.shape[0] - k - 1], extrapolate))
        points.append(ops.where(conditions[-1], q, t[k]))
    inside = functools.reduce(ops.logical_and, conditions)
    found = only_where(inside, product_of_splines(knots, c, degrees, points, nu))
    return ops.reshape(found, (*shape, *c.shape[len(knots) :]))
