"""Interpolation of values on grids: `interp1d`, `RegularGridInterpolator` and `interpn`.

Linear, cubic and quintic interpolants are splines along each axis in turn: at a point, values of
the B-splines along each axis are the weights of (k + 1)ⁿ coefficients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.errors import ArgumentError, MissingRuleError, ShapeError
from chainrule.interop.calculus import interval_of
from chainrule.interop.operands import array_of, arrays_of, may_hold
from chainrule.scipy.dispatch import call_ours, has_tensors
from chainrule.scipy.interpolate.bsplines import (
    interpolated,
    make_interp_spline,
    product_of_splines,
    spline_value,
)
from chainrule.scipy.interpolate.cubic import hermite, monotone_slopes
from chainrule.scipy.interpolate.interpolant import (
    TABLE,
    Interpolant,
    column,
    coordinates_and_values,
    only_where,
    polynomial,
    require,
    require_order,
)
from chainrule.scipy.operands import inexact

# --- one axis -------------------------------------------------------------------------------------

_ORDERS = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
_STEPS = ("nearest", "nearest-up", "previous", "next")


def _is_extrapolate(fill_value: Any) -> bool:
    return isinstance(fill_value, str) and fill_value == "extrapolate"


def _in_order(x: Any, y: Any, axis: int, is_sorted: bool) -> tuple[Tensor, Tensor]:
    """Return nodes in ascending order, and their values."""
    (x,), (y,) = coordinates_and_values("interp1d", [x], [y])
    if x.ndim != 1:
        raise ShapeError("interp1d: the x array must have exactly one dimension.")
    if not y.ndim or not -y.ndim <= axis < y.ndim or y.shape[axis] != x.shape[0]:
        raise ShapeError(
            "interp1d: x and y arrays must be equal in length along interpolation axis, got the "
            f"shapes {list(x.shape)} and {list(y.shape)}"
        )
    if not is_sorted and may_hold(ops.diff(x) < 0):
        known = is_known(x._array)
        order = np.argsort(array_of(x), kind="stable") if known else ops.argsort(x, stable=True)
        x, y = x[order], ops.movedim(ops.movedim(y, axis, 0)[order], 0, axis)
    return x, y


def _step(x: Tensor, q: Tensor, kind: str) -> Any:
    """Return the number of the node whose value is taken."""
    x, q = x.detach(), q.detach()
    if kind.startswith("nearest"):
        middles = x[1:] / 2 + x[:-1] / 2
        found = ops.searchsorted(middles, q, right=kind == "nearest-up")
    else:
        found = ops.searchsorted(x, q, right=kind == "previous") - int(kind == "previous")
    return ops.clamp(found, 0, x.shape[0] - 1)


def _at(
    x: Any, y: Any, spline: Any, q: Any, kind: Any, axis: int, fill: Any, is_bounded: Any
) -> Tensor:
    (x, q), (y,) = coordinates_and_values("interp1d", [x, q], [y])
    axis %= y.ndim
    y = ops.movedim(y, axis, 0)
    if spline is not None:
        knots, coefficients, degree = spline
        found = spline_value(knots, coefficients, degree, q)
    elif kind in _STEPS:
        found = y[_step(x, q, kind)]
    else:
        interval, widths = interval_of(q, x), ops.diff(x)
        slopes = ops.diff(y, dim=0) / column(ops.where(widths > 0, widths, 1), y)
        found = polynomial(ops.stack([slopes, y[:-1]])[:, interval], 1, q - x[interval])
    if fill is not None:
        found = _filled(found, (q < x[0], q > x[-1]), fill, is_bounded)
    return ops.movedim(found, tuple(range(q.ndim)), tuple(range(axis, axis + q.ndim)))


def _filled(found: Tensor, beyond: tuple[Tensor, Tensor], fill: Any, is_bounded: Any) -> Tensor:
    """Return values, or those for points below and above the range."""
    for outside, value, end in zip(beyond, fill, ("below", "above"), strict=True):
        if is_bounded:
            require(
                "interp1d",
                ops.logical_not(outside),
                f"A value in x_new is {end} the interpolation range: pass fill_value",
            )
        if may_hold(outside):
            wide = ops.reshape(outside, (*outside.shape, *[1] * (found.ndim - outside.ndim)))
            found = ops.where(wide, value, found)
    return found


def _as_changed(found: Any, ours: Any) -> Any:
    """Return SciPy's object with the attributes of ours, which users may have changed."""
    found.method, found.bounds_error = ours.method, ours.bounds_error
    found.fill_value = ours.fill_value
    return found


class interp1d(Interpolant):
    """The interpolant of values along one axis: `scipy.interpolate.interp1d`.

    Its arguments are SciPy's; `fill_value` may have a gradient, too.

    Notes
    -----
    Derivatives: with respect to nodes, values, fill values and points.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([0.0, 1.0, 2.0])
    >>> cr.grad(lambda y: cr.scipy.interpolate.interp1d(x, y)(1.25))(x)
    array([0.  , 0.75, 0.25])
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        self._scipys: Any = None
        self._kind, self.axis = kind, axis
        extrapolates = _is_extrapolate(fill_value)
        if bounds_error and extrapolates:
            raise ArgumentError("interp1d: Cannot extrapolate and raise at the same time.")
        if has_tensors(x, y, fill_value):
            self.x, self.y = call_ours(_in_order, (x, y, axis, assume_sorted), {})
        else:
            settings = (kind, axis, copy, bounds_error, fill_value, assume_sorted)
            self._scipys = TABLE.scipys.interp1d(x, y, *settings)
            self.x, self.y = self._scipys.x, self._scipys.y
        self.bounds_error = not extrapolates if bounds_error is None else bounds_error
        self.fill_value = fill_value
        order = _ORDERS.get(kind) if isinstance(kind, str) else kind
        if order is None and kind not in ("linear", *_STEPS):
            raise MissingRuleError(  # a NotImplementedError, as SciPy's
                f"interp1d: {kind} is unsupported: Use make_interp_spline."
            )
        least = 1 if order is None else order + 1
        if self.x.shape[0] < least:
            raise ArgumentError(f"interp1d: x and y arrays must have at least {least} entries")
        self._spline: Any = None
        if order is not None:
            spline = make_interp_spline(self.x, self.y, order, axis=axis, check_finite=False)
            self._spline = spline.tck

    def data(self) -> tuple[Any, ...]:
        """Return nodes, values and fill values."""
        return self.x, self.y, self.fill_value

    def of_scipy(self) -> Any:
        """Return SciPy's object."""
        if self._scipys is not None:
            return _as_changed(self._scipys, self)
        x, y, fill_value = arrays_of([*self.data()])
        settings = (self._kind, self.axis, True, self.bounds_error, fill_value)
        return TABLE.scipys.interp1d(x, y, *settings)

    def __call__(self, x: Any) -> Any:
        """Return the values at points."""
        if not self._has_tensors(x):
            return self._scipys(x)
        fill: Any = self.fill_value
        if not isinstance(fill, tuple):
            fill = (fill, fill)
        if _is_extrapolate(self.fill_value):
            last = call_ours(_ends, (self.y, self.axis), {})
            steps = {"previous": (np.nan, last[1]), "next": (last[0], np.nan)}
            fill = steps.get(self._kind)
        is_bounded = bool(self.bounds_error)
        spline = self._spline
        settings = (self._kind, self.axis, fill, is_bounded)
        return call_ours(_at, (self.x, self.y, spline, x, *settings), {})


def _ends(y: Any, axis: int) -> tuple[Tensor, Tensor]:
    (y,) = inexact("interp1d", y)
    y = ops.movedim(y, axis, 0)
    return y[0], y[-1]


# --- several axes ---------------------------------------------------------------------------------

_DEGREES = {"linear": 1, "slinear": 1, "cubic": 3, "quintic": 5}
_METHODS = ("linear", "nearest", "slinear", "cubic", "quintic", "pchip")
_WITH_NU = ("slinear", "cubic", "quintic")


def _on_grid(points: Any, values: Any) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return checked coordinates of the axes in ascending order, and the values there."""
    name = "RegularGridInterpolator"
    texts = [
        f"The points in dimension {i} must be strictly ascending or descending"
        for i in range(len(points))
    ]
    for x, text in zip(points, texts, strict=True):
        if not has_tensors(x) and np.ndim(x) == 1 and len(x) > 1:
            require_order(name, np.asarray(x) * np.sign(x[-1] - x[0]), text)
    grid, (values,) = coordinates_and_values(name, [*points], [values])
    if len(grid) > values.ndim:
        raise ShapeError(
            f"{name}: There are {len(grid)} point arrays, but values has {values.ndim} dimensions"
        )
    for i, x in enumerate(grid):
        if x.ndim != 1:
            raise ShapeError(f"{name}: The points in dimension {i} must be 1-dimensional")
        if x.shape[0] != values.shape[i]:
            raise ShapeError(
                f"{name}: There are {x.shape[0]} points and {values.shape[i]} values in "
                f"dimension {i}"
            )
        descends = x[-1:] < x[:1]
        if may_hold(descends):
            grid[i] = ops.where(descends, ops.flip(x, (0,)), x)
            wide = ops.reshape(descends, (1,) * values.ndim)
            values = ops.where(wide, ops.flip(values, (i,)), values)
        require(name, ops.diff(grid[i]) > 0, texts[i])
    return tuple(grid), values


def _tensor_product(grid: Any, values: Any, degree: int) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return the knots of each axis, and the coefficients of the products of B-splines."""
    grid, (c,) = coordinates_and_values("RegularGridInterpolator", [*grid], [values])
    knots = []
    for i, x in enumerate(grid):
        if x.shape[0] == 1:  # it is constant along the axis
            x, c = ops.cat([x, x + 1]), ops.cat([c, c], dim=i)
        t, c = interpolated(x, c, degree, None, (None, None), i, True)
        knots.append(t)
        c = ops.movedim(c, 0, i)
    return tuple(knots), c


def _nearest(grid: Any, values: Tensor, q: Tensor) -> Tensor:
    index: list[Any] = []
    for i, x in enumerate(grid):
        interval = interval_of(q[:, i], x)
        if x.shape[0] > 1:
            share = (q[:, i] - x[interval]) / (x[interval + 1] - x[interval])
            interval = ops.where(share > 0.5, interval + 1, interval)
        index.append(interval)
    found: Tensor = values[tuple(index)]
    return found


def _monotone(grid: Any, values: Tensor, q: Tensor) -> Tensor:
    """Return the values of monotone cubics along the last axis, through these along the next, …."""
    rank, each = len(grid), np.arange(q.shape[0])
    for i in range(rank - 1, -1, -1):
        is_first = i == rank - 1
        y = ops.movedim(values, i if is_first else i + 1, 0)
        interval = interval_of(q[:, i], grid[i])
        c = hermite(grid[i], y, monotone_slopes(grid[i], y))
        parts = c[:, interval] if is_first else c[:, interval, each]
        values = polynomial(parts, 3, q[:, i] - grid[i][interval])
    return values


def _as_points(xi: Any, rank: int) -> Tensor:
    """Return points with their coordinates along the last axis."""
    if isinstance(xi, tuple):
        return ops.stack(ops.broadcast_tensors(*inexact("RegularGridInterpolator", *xi)), dim=-1)
    (found,) = inexact("RegularGridInterpolator", xi)
    if found.ndim < 2:
        found = ops.reshape(found, (-1, 1 if not found.ndim else rank))
    if found.shape[-1] != rank:
        raise ShapeError(
            f"RegularGridInterpolator: The requested sample points xi have dimension "
            f"{found.shape[-1]} but this RegularGridInterpolator has dimension {rank}"
        )
    return found


def _at_points(
    grid: Any, values: Any, made: Any, xi: Any, method: str, nu: Any, fill: Any, bounded: Any
) -> Tensor:
    points = _as_points(xi, len(grid))
    (q, *grid), (values,) = coordinates_and_values(
        "RegularGridInterpolator", [points, *grid], [values]
    )
    shape, q = points.shape[:-1], ops.reshape(q, (-1, len(grid)))
    known = ops.logical_not(ops.any(ops.isnan(q), dim=-1))
    if may_hold(ops.logical_not(known)):
        q = ops.where(known[:, None], q, ops.stack([x[0] for x in grid]))
    insides = [(q[:, i] >= x[0]) & (q[:, i] <= x[-1]) for i, x in enumerate(grid)]
    if bounded:
        for i, inside in enumerate(insides):
            text = f"One of the requested xi is out of bounds in dimension {i}"
            require("RegularGridInterpolator", inside & known, text)
    if method == "nearest":
        found = _nearest(grid, values, q)
    elif method == "pchip":
        found = _monotone(grid, values, q)
    else:
        orders = (0,) * len(grid) if nu is None else nu
        knots, (c,) = coordinates_and_values("RegularGridInterpolator", [*made[0]], [made[1]])
        found = product_of_splines(
            knots, c, [_DEGREES[method]] * len(knots), ops.unbind(q, 1), orders
        )
    if not bounded and fill is not None:
        inside = ops.all(ops.stack(insides), dim=0)
        if may_hold(ops.logical_not(inside)):
            wide = ops.reshape(inside, (-1, *[1] * (found.ndim - 1)))
            found = ops.where(wide, found, fill)
    return ops.reshape(only_where(known, found), (*shape, *found.shape[1:]))


class RegularGridInterpolator(Interpolant):
    """The interpolant of values on a rectangular grid.

    Parameters
    ----------
    points : tuple of n arrays or Tensors
        The coordinates along each axis.
    values : array or Tensor
        The values, whose first n axes are those of the grid.
    method : str, default "linear"
        "linear", "nearest", "slinear", "cubic", "quintic" or "pchip".
    bounds_error : bool, default True
        Whether to raise for points outside of the grid.
    fill_value : number or None, default NaN
        The value outside, or None to extrapolate.
    solver, solver_args : optional
        For `scipy.interpolate.RegularGridInterpolator`, which computes with arrays.

    Notes
    -----
    Derivatives: with respect to values, coordinates of the grid, the fill value and points.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x, y = np.arange(3.0), np.arange(4.0)
    >>> plane = cr.scipy.interpolate.RegularGridInterpolator((x, y), 2 * x[:, None] - y)
    >>> cr.grad(lambda p: plane(p)[0])(np.array([0.5, 1.5]))
    array([ 2., -1.])
    """

    def __init__(
        self,
        points: Any,
        values: Any,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Any = np.nan,
        *,
        solver: Any = None,
        solver_args: Any = None,
    ) -> None:
        self._scipys: Any = None
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        self._made: dict[str, Any] = {}
        points = tuple(points)
        if has_tensors(points, values, fill_value):
            self.grid, self.values = call_ours(_on_grid, (points, values), {})
            self._coefficients(self._plain(method))
        else:
            extra = {"solver": solver, "solver_args": solver_args}
            settings = (method, bounds_error, fill_value)
            self._scipys = TABLE.scipys.RegularGridInterpolator(points, values, *settings, **extra)
            self.grid, self.values = self._scipys.grid, self._scipys.values

    def data(self) -> tuple[Any, ...]:
        """Return coordinates, values and the fill value."""
        return self.grid, self.values, self.fill_value

    def of_scipy(self) -> Any:
        """Return SciPy's object."""
        if self._scipys is not None:
            return _as_changed(self._scipys, self)
        grid, values, fill_value = arrays_of([*self.data()])
        settings = (self.method, self.bounds_error, fill_value)
        return TABLE.scipys.RegularGridInterpolator(grid, values, *settings)

    def _plain(self, method: str) -> str:
        """Return the name of a method, for which there are enough points."""
        name = method.removesuffix("_legacy")
        if name not in _METHODS or (name != method and name not in _WITH_NU):
            raise ArgumentError(f"RegularGridInterpolator: Method '{method}' is not defined")
        least = {"slinear": 2, "cubic": 4, "quintic": 6, "pchip": 4}.get(name, 1)
        for i, x in enumerate(self.grid):
            if x.shape[0] < least:
                raise ArgumentError(
                    f"RegularGridInterpolator: There are {x.shape[0]} points in dimension {i}, "
                    f"but method {method} requires at least {least} points per dimension."
                )
        return name

    def _coefficients(self, method: str) -> Any:
        """Return knots and coefficients, which are kept unless another method asks for them."""
        if method not in _DEGREES:
            return None
        if method in self._made:
            return self._made[method]
        made = self._of_data(_tensor_product, self.grid, self.values, _DEGREES[method])
        if method == self.method or not self._has_tensors():
            self._made[method] = made
        return made

    def __call__(self, xi: Any, method: str | None = None, *, nu: Any = None) -> Any:
        """Return the values at points, or derivatives of orders `nu` along the axes."""
        if not self._has_tensors(xi):
            return self.of_scipy()(xi, method, nu=nu)
        method = self._plain(self.method if method is None else method)
        if nu is not None and method not in _WITH_NU:
            raise ArgumentError(
                "RegularGridInterpolator: Can only compute derivatives for methods 'slinear', "
                f"'cubic' and 'quintic', got {method!r}."
            )
        made = self._coefficients(method)
        settings = (method, nu, self.fill_value, self.bounds_error)
        return call_ours(_at_points, (self.grid, self.values, made, xi, *settings), {})


def interpn(
    points: Any,
    values: Any,
    xi: Any,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> Any:
    """Return values at points, interpolated on a rectangular grid: `scipy.interpolate.interpn`.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.arange(3.0)
    >>> cr.grad(lambda v: cr.scipy.interpolate.interpn((x,), v, np.array([1.25]))[0])(x)
    array([0.  , 0.75, 0.25])
    """
    if not has_tensors(points, values, xi, fill_value):
        return TABLE.scipys.interpn(points, values, xi, method, bounds_error, fill_value)
    if method == "splinef2d":
        raise ArgumentError("interpn: splinef2d is SciPy's own: take method='cubic'")
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)
