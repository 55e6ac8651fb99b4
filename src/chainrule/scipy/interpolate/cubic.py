"""Cubic interpolants: piecewise polynomials that are given by values and slopes at the nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, MissingRuleError, ShapeError
from chainrule.interop.manipulation import pad
from chainrule.scipy.dispatch import call_ours, has_tensors
from chainrule.scipy.interpolate.interpolant import (
    ENDS,
    TABLE,
    column,
    coordinates_and_values,
    require,
    require_order,
)
from chainrule.scipy.interpolate.piecewise import PPoly
from chainrule.scipy.linalg.banded import solve_bands
from chainrule.scipy.operands import inexact

Slopes = Callable[..., Tensor]


def _nodes(name: str, x: Any, axis: int, *values: Any) -> tuple[Tensor, list[Tensor]]:
    """Return checked nodes, and values with the axis of the nodes first."""
    increasing = "`x` must be strictly increasing sequence."
    require_order(name, x, increasing)
    (x,), found = coordinates_and_values(name, [x], list(values))
    y = found[0]
    if not y.ndim or not -y.ndim <= axis < y.ndim:
        raise ShapeError(f"{name}: axis {axis} is not one of the {y.ndim} axes of `y`")
    if x.ndim != 1 or x.shape[0] < 2:
        raise ShapeError(
            f"{name}: `x` must be 1-dimensional and must contain at least 2 elements, got the "
            f"shape {list(x.shape)}"
        )
    if any(part.shape != y.shape for part in found):
        raise ShapeError(f"{name}: The shapes of `y` and `dydx` must be identical.")
    if x.shape[0] != y.shape[axis]:
        raise ShapeError(
            f"{name}: The length of `y` along `axis`={axis}, {y.shape[axis]}, doesn't match the "
            f"length of `x`, {x.shape[0]}"
        )
    for label, part in zip(("x", "y", "dydx"), (x, *found), strict=False):
        require(name, ops.isfinite(part), f"`{label}` must contain only finite values.")
    require(name, ops.greater(ops.diff(x), 0), increasing)
    return x, [ops.movedim(part, axis, 0) for part in found]


def hermite(x: Tensor, y: Tensor, slopes: Tensor) -> Tensor:
    """Return the coefficients of the cubics with given values and slopes."""
    widths = column(ops.diff(x), y)
    slope = ops.diff(y, dim=0) / widths
    t = (slopes[:-1] + slopes[1:] - 2 * slope) / widths
    return ops.stack([t / widths, (slope - slopes[:-1]) / widths - t, slopes[:-1], y[:-1]])


def _coefficients(name: str, x: Any, y: Any, axis: int, slopes: tuple[Slopes], *rest: Any) -> Any:
    x, (y,) = _nodes(name, x, axis, y)
    return hermite(x, y, slopes[0](x, y, *rest) if y.numel() else y), x


class _CubicInterpolant(PPoly):
    def _make(
        self, slopes: Slopes, x: Any, y: Any, axis: int, extrapolate: Any, *rest: Any
    ) -> None:
        name = type(self).__name__
        c, nodes = call_ours(_coefficients, (name, x, y, axis, (slopes,), *rest), {})
        self._set(c, nodes, extrapolate, axis % (c.ndim - 1))

    def _take(self, found: Any) -> None:
        self._set(found.c, found.x, found.extrapolate, found.axis)


def _with_slopes(x: Any, y: Any, dydx: Any, axis: int) -> tuple[Tensor, Tensor]:
    x, (y, slopes) = _nodes("CubicHermiteSpline", x, axis, y, dydx)
    return hermite(x, y, slopes), x


class CubicHermiteSpline(_CubicInterpolant):
    """The piecewise cubic with given values and slopes at the nodes.

    Its arguments and methods are those of `scipy.interpolate.CubicHermiteSpline`.

    Notes
    -----
    Derivatives: with respect to nodes, values, slopes and points.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> CubicHermiteSpline = cr.scipy.interpolate.CubicHermiteSpline
    >>> x, y = np.array([0.0, 1.0]), np.array([0.0, 0.0])
    >>> cr.grad(lambda slopes: CubicHermiteSpline(x, y, slopes)(0.5))(np.ones(2))
    array([ 0.125, -0.125])
    """

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
        if has_tensors(x, y, dydx):
            c, nodes = call_ours(_with_slopes, (x, y, dydx, axis), {})
            self._set(c, nodes, extrapolate, axis % (c.ndim - 1))
        else:
            self._take(TABLE.scipys.CubicHermiteSpline(x, y, dydx, axis, extrapolate))


# --- splines --------------------------------------------------------------------------------------


def _end(kind: Any, near: Tensor, far: Tensor, slopes: tuple[Tensor, Tensor], sign: int) -> Any:
    """Return an end's two coefficients and right side: of the first two or the last two slopes."""
    if kind == "not-a-knot":
        both = near + far
        right = (near + 2 * both) * far * slopes[0] + near**2 * slopes[1]
        return far, both, right / both
    order, value = kind
    if order == 1:
        return 0 * near + 1, 0 * near, value
    return 2 * near, near, 3 * near * slopes[0] + sign * 0.5 * value * near**2


def _tridiagonal(
    below: list[Tensor], diagonal: list[Tensor], above: list[Tensor], b: Tensor
) -> Tensor:
    """Return the solution of a system, given the bands without the elements that don't exist."""
    lower = pad(ops.cat([ops.reshape(part, (-1,)) for part in below]), {0: (0, 1)})
    upper = pad(ops.cat([ops.reshape(part, (-1,)) for part in above]), {0: (1, 0)})
    middle = ops.cat([ops.reshape(part, (-1,)) for part in diagonal])
    rows = ops.reshape(b, (b.shape[0], -1))
    return ops.reshape(
        solve_bands(cast(ops.stack([upper, middle, lower]), b.dtype), rows, (1, 1)), b.shape
    )


def _spline_slopes(x: Tensor, y: Tensor, bc_type: Any) -> Tensor:
    """Return the slopes at the nodes with which second derivatives are continuous."""
    n, dx = x.shape[0], ops.diff(x)
    widths, ends = column(dx, y), _boundaries(bc_type, y)
    slope = ops.diff(y, dim=0) / widths
    if n == 2:
        ends = [(1, slope[0]) if isinstance(end, str) else end for end in ends]
    elif n == 3 and ends == ["not-a-knot"] * 2:  # a parabola
        bend = (slope[1] - slope[0]) / (widths[0] + widths[1])
        first, last = slope[0] - bend * widths[0], slope[1] + bend * widths[1]
        return ops.stack([first, slope[0] + bend * widths[0], last])
    inner = 3 * (widths[1:] * slope[:-1] + widths[:-1] * slope[1:])
    middle = 2 * (dx[:-1] + dx[1:])
    if ends[0] == "periodic":
        return _periodic_slopes(dx, middle, inner, slope)
    d0, u0, b0 = _end(ends[0], dx[0], dx[1 % (n - 1)], (slope[0], slope[1 % (n - 1)]), -1)
    dn, ln, bn = _end(ends[1], dx[-1], dx[-2 % (n - 1)], (slope[-1], slope[-2 % (n - 1)]), 1)
    b = ops.cat([b0[None], inner, bn[None]])
    return _tridiagonal([dx[1:], ln], [d0, middle, dn], [u0, dx[:-1]], b)


def _periodic_slopes(dx: Tensor, middle: Tensor, inner: Tensor, slope: Tensor) -> Tensor:
    """Return the slopes of a periodic spline, whose system has two corners.

    The last of the n - 1 unknowns is taken out: the others are the sum of a solution for it being
    0, and of one for it being 1.
    """
    corner = 2 * (dx[-1] + dx[0])
    first = 3 * (dx[0] * slope[-1] + dx[-1] * slope[0])
    if slope.shape[0] == 2:
        mean = (slope[0] / dx[0] + slope[1] / dx[1]) / (1 / dx[0] + 1 / dx[1])
        return ops.stack([mean] * 3)
    after = dx.shape[0] - 2
    effect = column(pad(-dx[:1], {0: (0, after)}) + pad(-dx[-3:-2], {0: (after, 0)}), slope)
    fixed, moved = [
        _tridiagonal([dx[1:-1]], [corner, middle[:-1]], [dx[-1], dx[:-3]], right)
        for right in (ops.cat([first[None], inner[:-1]]), cast(effect, inner.dtype))
    ]
    last = (inner[-1] - dx[-2] * fixed[0] - dx[-1] * fixed[-1]) / (
        middle[-1] + dx[-2] * moved[0] + dx[-1] * moved[-1]
    )
    found = fixed + last * moved
    return ops.cat([found, last[None], found[:1]])


def _boundaries(bc_type: Any, y: Tensor) -> list[Any]:
    """Return the conditions at both ends: a name, or the order and the value of a derivative."""
    if isinstance(bc_type, str):
        bc_type = (bc_type, bc_type)
        if bc_type[0] == "periodic":
            same = ops.isclose(y[0].detach(), y[-1].detach(), rtol=1e-15, atol=1e-15)
            require(
                "CubicSpline",
                same,
                "The first and last `y` point must be identical (within machine precision) when "
                "bc_type='periodic'.",
            )
    elif len(bc_type) != 2:
        raise ArgumentError(
            "CubicSpline: `bc_type` must contain 2 elements to specify start and end conditions."
        )
    elif any(isinstance(end, str) and end == "periodic" for end in bc_type):
        raise ArgumentError(
            "CubicSpline: 'periodic' `bc_type` is defined for both curve ends and cannot be used "
            "with other boundary conditions."
        )
    return [_boundary(end, y) for end in bc_type]


def _boundary(end: Any, y: Tensor) -> Any:
    if isinstance(end, str):
        if end in ENDS:
            return ENDS[end], 0 * y[0]
        if end not in ("not-a-knot", "periodic"):
            raise ArgumentError(f"CubicSpline: bc_type={end} is not allowed.")
        return end
    try:
        order, value = end
    except (TypeError, ValueError):
        raise ArgumentError(
            "CubicSpline: A specified derivative value must be given in the form (order, value)."
        ) from None
    if order not in (1, 2):
        raise ArgumentError("CubicSpline: The specified derivative order must be 1 or 2.")
    _, (value, _) = coordinates_and_values("CubicSpline", [0.0], [value, y])
    if value.shape != y.shape[1:]:
        raise ShapeError(
            f"CubicSpline: `deriv_value` shape {list(value.shape)} is not the expected one "
            f"{list(y.shape[1:])}."
        )
    return order, value


class CubicSpline(_CubicInterpolant):
    """The interpolating cubic spline, whose second derivative is continuous.

    Parameters
    ----------
    x : array or Tensor, shape (n,)
        Nodes in ascending order.
    y : array or Tensor
        Values, with n elements along `axis`; real or complex.
    axis : int, default 0
        The axis of `y` along the nodes.
    bc_type : str or pair, default "not-a-knot"
        "not-a-knot", "periodic", "clamped" or "natural", or for each end a name or the order, 1 or
        2, and the value of a derivative.
    extrapolate : bool or "periodic", optional
        Whether there are values outside, or NaN.

    Notes
    -----
    The slopes at the nodes solve one tridiagonal system. Derivatives: with respect to nodes,
    values, the values of derivatives at the ends, and points.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> CubicSpline = cr.scipy.interpolate.CubicSpline
    >>> cr.grad(lambda y: CubicSpline(x, y)(1.5))(x**3)
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        axis: int = 0,
        bc_type: Any = "not-a-knot",
        extrapolate: Any = None,
    ) -> None:
        if not has_tensors(x, y, bc_type):
            self._take(TABLE.scipys.CubicSpline(x, y, axis, bc_type, extrapolate))
            return
        if extrapolate is None:
            extrapolate = "periodic" if isinstance(bc_type, str) and bc_type == "periodic" else True
        self._make(_spline_slopes, x, y, axis, extrapolate, bc_type)


# --- interpolants that keep the shape of the data -------------------------------------------------


def monotone_slopes(x: Tensor, y: Tensor) -> Tensor:
    """Return slopes with which the interpolant is monotone where the data are.

    F. N. Fritsch, J. Butland, SIAM J. Sci. Comput. 5(2), 1984; ends as C. Moler, Numerical
    Computing with MATLAB, 2004, chapter 3.6.
    """
    (y,) = inexact("PchipInterpolator", y, real=True)
    h = column(ops.diff(x), y)
    m = ops.diff(y, dim=0) / h
    if y.shape[0] == 2:
        return ops.cat([m, m])
    monotone = ops.sign(m[1:]) * ops.sign(m[:-1]) > 0
    before, after = ops.where(monotone, m[:-1], 1), ops.where(monotone, m[1:], 1)
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    inner = ops.where(monotone, (w1 + w2) / (w1 / before + w2 / after), 0)
    first, last = _one_sided(h[0], h[1], m[0], m[1]), _one_sided(h[-1], h[-2], m[-1], m[-2])
    return ops.cat([first[None], inner, last[None]])


def _one_sided(h0: Tensor, h1: Tensor, m0: Tensor, m1: Tensor) -> Tensor:
    """Return the slope at an end by three points, no steeper than keeps the shape."""
    slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    is_steep = ops.logical_and(ops.sign(m0) != ops.sign(m1), ops.abs(slope) > 3 * ops.abs(m0))
    limited = ops.where(is_steep, 3 * m0, slope)
    return ops.where(ops.sign(slope) != ops.sign(m0), 0, limited)


class PchipInterpolator(_CubicInterpolant):
    """The monotone piecewise cubic: `scipy.interpolate.PchipInterpolator`.

    Notes
    -----
    Derivatives: with respect to nodes, values and points. Where neighbouring slopes of the data
    have unlike signs the slope is the constant 0.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> pchip = cr.scipy.interpolate.PchipInterpolator
    >>> cr.grad(lambda y: pchip(x, y)(1.5))(x).round(5)
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        if has_tensors(x, y):
            self._make(monotone_slopes, x, y, axis, extrapolate)
        else:
            self._take(TABLE.scipys.PchipInterpolator(x, y, axis, extrapolate))


def _akima_slopes(x: Tensor, y: Tensor, is_modified: bool) -> Tensor:
    """Return the slopes of H. Akima, J. ACM 17(4), 1970, or the modified ones of MATLAB."""
    (y,) = inexact("Akima1DInterpolator", y, real=True)
    m = ops.diff(y, dim=0) / column(ops.diff(x), y)
    if y.shape[0] == 2:
        return ops.cat([m, m])
    first = 2 * m[0] - m[1]
    last = 2 * m[-1] - m[-2]
    m = ops.cat([(2 * first - m[0])[None], first[None], m, last[None], (2 * last - m[-1])[None]])
    change = ops.abs(ops.diff(m, dim=0))
    if is_modified:
        change = change + 0.5 * ops.abs(m[1:] + m[:-1])
    before, after = change[:-2], change[2:]
    both = before + after
    is_defined = both > 1e-9 * ops.amax(both.detach())
    share = before / ops.where(is_defined, both, 1)
    return ops.where(is_defined, m[1:-2] + share * (m[2:-1] - m[1:-2]), 0.5 * (m[3:] + m[:-3]))


class Akima1DInterpolator(_CubicInterpolant):
    """The piecewise cubic of Akima: `scipy.interpolate.Akima1DInterpolator`.

    Notes
    -----
    Derivatives: with respect to nodes, values and points. Where the data's slope does not change
    their rule has a kink, where the derivative is one of those at its sides.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> akima = cr.scipy.interpolate.Akima1DInterpolator
    >>> cr.grad(akima(x, x**2))(1.5)
    3.0
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        axis: int = 0,
        *,
        method: str = "akima",
        extrapolate: Any = None,
    ) -> None:
        if method not in ("akima", "makima"):
            raise MissingRuleError(  # a NotImplementedError, as SciPy's
                f"Akima1DInterpolator: `method`={method} is unsupported: take 'akima' or 'makima'"
            )
        if has_tensors(x, y):
            extrapolate = False if extrapolate is None else extrapolate
            self._make(_akima_slopes, x, y, axis, extrapolate, method == "makima")
            return
        settings = {"method": method, "extrapolate": extrapolate}
        self._take(TABLE.scipys.Akima1DInterpolator(x, y, axis, **settings))


def pchip_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """Return derivatives of the monotone interpolant: `scipy.interpolate.pchip_interpolate`.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> nodes = np.array([0.0, 1.0, 2.0, 3.0])
    >>> cr.grad(lambda x: cr.scipy.interpolate.pchip_interpolate(nodes, nodes, x))(1.5)
    1.0
    """
    found = PchipInterpolator(xi, yi, axis)
    if np.ndim(der) == 0:
        return found.derivative(der)(x)
    return [found.derivative(order)(x) for order in der]
