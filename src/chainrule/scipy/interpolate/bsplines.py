"""B-splines: `scipy.interpolate.BSpline`, and interpolation by them.

At a point k + 1 B-splines of degree k are not zero. Their values there, a row of the collocation
matrix, come from the recursion of Cox and de Boor, and are differentiated by knots and points.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, Self

import numpy as np

from chainrule import ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.backend import holds_somewhere
from chainrule.errors import ArgumentError, LinAlgError, MissingRuleError, ShapeError
from chainrule.interop.calculus import interval_of
from chainrule.interop.manipulation import pad
from chainrule.interop.operands import arrays_of, is_tracked, may_hold, tensor_of
from chainrule.linalg import solve
from chainrule.scipy.dispatch import call_ours, has_tensors, missing_rule
from chainrule.scipy.interpolate.interpolant import (
    ENDS,
    TABLE,
    Interpolant,
    column,
    coordinates_and_values,
    integral,
    only_where,
    require,
    require_order,
    within,
    wrapped,
)
from chainrule.scipy.linalg.banded import solve_bands

# --- values ---------------------------------------------------------------------------------------


def basis(t: Tensor, k: int, q: Tensor, nu: int = 0) -> tuple[Tensor, Any]:
    """Return rows of derivatives of the B-splines that are not zero at points, and their numbers.

    C. de Boor, A Practical Guide to Splines, 1978, chapter X.
    """
    n = t.shape[0] - k - 1
    first = interval_of(q, t[k : n + 1])
    knots = t[first[:, None] + np.arange(1, 2 * k + 1)]
    q = q[:, None]
    found = ops.broadcast_to(q * 0 + (nu <= k), (q.shape[0], 1))
    for j in range(1, k + 1):
        left, right = knots[:, k - j : k], knots[:, k : k + j]
        width = right - left
        part = found / ops.where(width > 0, width, np.inf)
        is_value = j <= k - nu
        below = part * (right - q) if is_value else -j * part
        above = part * (q - left) if is_value else j * part
        found = pad(below, {-1: (0, 1)}) + pad(above, {-1: (1, 0)})
    return found, first


def design(t: Tensor, k: int, q: Tensor, nu: int = 0) -> Tensor:
    """Return the derivatives of all B-splines at points, in rows."""
    rows, first = basis(t, k, q, nu)
    position = np.arange(t.shape[0] - k - 1) - tensor_of(first)[:, None]
    known = rows[np.arange(q.shape[0])[:, None], ops.clamp(position, 0, k)]
    return ops.where((position >= 0) & (position <= k), known, 0)


def product_of_splines(knots: Any, c: Tensor, degrees: Any, points: Any, orders: Any) -> Tensor:
    """Return the values of a product of splines, whose points are arrays, one for each axis."""
    rows, index, count = [], [], len(knots)
    for i, (t, k, q, nu) in enumerate(zip(knots, degrees, points, orders, strict=True)):
        weights, first = basis(t, k, q, nu)
        rows.append(weights)
        offsets = np.arange(k + 1).reshape([-1 if j == i else 1 for j in range(count)])
        index.append(first.reshape((-1, *[1] * count)) + offsets)
    found: Tensor = c[tuple(index)]
    for weights in rows:
        wide = ops.reshape(weights, (*weights.shape, *[1] * (found.ndim - 2)))
        found = ops.sum(wide * found, dim=1)
    return found


def spline_value(
    t: Any, c: Any, k: int, q: Any, nu: int = 0, extrapolate: Any = True, axis: int = 0
) -> Tensor:
    """Return the derivative of order `nu` at points."""
    (t, q), (c,) = coordinates_and_values("BSpline", [t, q], [c])
    shape, rank = q.shape, q.ndim
    q, start, end = ops.reshape(q, (-1,)), t[k], t[t.shape[0] - k - 1]
    if extrapolate == "periodic":
        q, _ = wrapped(q, start, end)
    inside = within(q, start, end, bool(extrapolate))
    if may_hold(ops.logical_not(inside)):
        q = ops.where(inside, q, start)
    rows, first = basis(t, k, q, nu)
    terms = c[first[:, None] + np.arange(k + 1)]
    found = ops.sum(ops.reshape(rows, (*rows.shape, *[1] * (c.ndim - 1))) * terms, dim=1)
    found = ops.reshape(only_where(inside, found), (*shape, *c.shape[1:]))
    return ops.movedim(found, tuple(range(rank)), tuple(range(axis, axis + rank)))


def powers(t: Any, c: Any, k: int) -> Tensor:
    """Return the coefficients of a spline's polynomials between its knots, highest first."""
    (t,), (c,) = coordinates_and_values("PPoly.from_spline", [t], [c])
    return ops.stack(
        [spline_value(t, c, k, t[:-1], nu) / math.factorial(nu) for nu in range(k, -1, -1)]
    )


def padded(c: Tensor, size: int) -> Tensor:
    """Return coefficients with zeros after them, as many as there are knots."""
    return pad(c, {0: (0, size - c.shape[0])}) if c.shape[0] < size else c


def _derivative(t: Any, c: Any, k: int) -> tuple[Tensor, Tensor]:
    """Return knots and coefficients of the derivative."""
    (t,), (c,) = coordinates_and_values("BSpline.derivative", [t], [c])
    if k < 1:
        raise ArgumentError(f"BSpline.derivative: order of derivative must be <= k = {k}")
    n = t.shape[0] - k - 1
    widths = t[k + 1 : k + n] - t[1:n]
    require(
        "BSpline.derivative",
        widths > 0,
        "the spline has internal repeated knots and is not differentiable",
    )
    found = k * ops.diff(c[:n], dim=0) / column(widths, c)
    return t[1:-1], padded(found, t.shape[0] - 2)


def _antiderivative(t: Any, c: Any, k: int) -> tuple[Tensor, Tensor]:
    """Return knots and coefficients of the antiderivative that is 0 at the first knot."""
    (t,), (c,) = coordinates_and_values("BSpline.antiderivative", [t], [c])
    n = t.shape[0] - k - 1
    sums = ops.cumsum(c[:n] * column(t[k + 1 :] - t[:n], c), dim=0) / (k + 1)
    last = ops.broadcast_to(sums[-1:], (k + 2, *c.shape[1:]))
    return ops.cat([t[:1], t, t[-1:]]), ops.cat([pad(sums, {0: (1, 0)}), last])


def _integral(t: Any, c: Any, k: int, a: Any, b: Any, extrapolate: Any) -> Any:
    (t, a, b), (c,) = coordinates_and_values("BSpline.integrate", [t, a, b], [c])
    start, end = t[k], t[t.shape[0] - k - 1]
    if not extrapolate:
        a, b = [ops.minimum(ops.maximum(bound, start), end) for bound in (a, b)]
    knots, sums = _antiderivative(t, c, k)
    whole_at = functools.partial(spline_value, knots, sums, k + 1)
    return integral(whole_at, start, end, a, b, periodic=extrapolate == "periodic")


def _checked(t: Any, c: Any, k: int, axis: int) -> tuple[Tensor, Tensor]:
    """Return knots, and coefficients with their axis first."""
    sorted_knots = "Knots must be in a non-decreasing order."
    require_order("BSpline", t, sorted_knots, is_strict=False)
    (t,), (c,) = coordinates_and_values("BSpline", [t], [c])
    if k < 0:
        raise ArgumentError("BSpline: Spline order cannot be negative.")
    if t.ndim != 1 or t.shape[0] < 2 * k + 2:
        raise ShapeError(
            f"BSpline: Knot vector must be one-dimensional, and need at least {2 * k + 2} knots "
            f"for degree {k}: got the shape {list(t.shape)}"
        )
    if not c.ndim or not -c.ndim <= axis < c.ndim:
        raise ShapeError(f"BSpline: axis {axis} is not one of the {c.ndim} axes of c")
    c, n = ops.movedim(c, axis, 0), t.shape[0] - k - 1
    if c.shape[0] < n:
        raise ShapeError(
            "BSpline: Knots, coefficients and degree are inconsistent: expected at least "
            f"{n} coefficients, got {c.shape[0]}"
        )
    require("BSpline", ops.isfinite(t), "Knots should not have nans or infs.")
    require("BSpline", ops.diff(t) >= 0, sorted_knots)
    require("BSpline", t[n] > t[k], "Need at least two internal knots.")
    return t, c


class BSpline(Interpolant):
    """A spline in the basis of B-splines, with SciPy's methods.

    Parameters
    ----------
    t : array or Tensor, shape (n + k + 1,)
        Knots, in an order that does not decrease.
    c : array or Tensor, shape (n, ...)
        Coefficients.
    k : int
        The degree.
    extrapolate : bool or "periodic", default True
        Whether there are values outside of ``t[k]`` … ``t[n]``, or NaN.
    axis : int, default 0
        The axis of `c` along the knots.

    Notes
    -----
    Derivatives: with respect to knots, coefficients and points.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> t = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    >>> cr.grad(lambda c: cr.scipy.interpolate.BSpline(t, c, 2)(0.5))(np.ones(3))
    array([0.25, 0.5 , 0.25])
    """

    t: Any
    c: Any
    k: int
    extrapolate: Any
    axis: int

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        k = operator.index(k)
        if has_tensors(t, c):
            t, c = call_ours(_checked, (t, c, k, axis), {})
        else:
            found = TABLE.scipys.BSpline(t, c, k, extrapolate, axis)
            t, c = found.t, found.c
        self._set(t, c, k, extrapolate, axis % c.ndim)

    def _set(self, t: Any, c: Any, k: int, extrapolate: Any, axis: int) -> None:
        self.t, self.c, self.k, self.axis = t, c, k, axis
        self.extrapolate = extrapolate if extrapolate == "periodic" else bool(extrapolate)

    @classmethod
    def construct_fast(cls, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> Self:
        """Return one with these knots and coefficients, without checks."""
        self = object.__new__(cls)
        self._set(t, c, k, extrapolate, axis)
        return self

    @classmethod
    def of(cls, found: Any) -> Self:
        """Return a spline of SciPy's as one of these."""
        return cls.construct_fast(found.t, found.c, found.k, found.extrapolate, found.axis)

    @classmethod
    def basis_element(cls, t: Any, extrapolate: Any = True) -> Self:
        """Return the B-spline with knots `t`."""
        (knots,), _ = coordinates_and_values("BSpline.basis_element", [t], [])
        k = knots.shape[0] - 2
        if not has_tensors(t):
            return cls.of(TABLE.scipys.BSpline.basis_element(t, extrapolate))
        c = np.zeros(3 * k + 2, knots.dtype)
        c[k] = 1
        return cls.construct_fast(call_ours(_surrounded, (t, k), {}), c, k, extrapolate)

    @staticmethod
    def design_matrix(x: Any, t: Any, k: int, extrapolate: Any = False) -> Any:
        """Return the values of all B-splines at points, as SciPy's sparse array."""
        if has_tensors(x, t):
            raise MissingRuleError(
                "scipy.interpolate.BSpline.design_matrix has no derivative rule in chainrule: "
                "BSpline(t, numpy.eye(len(t) - k - 1), k)(x) is the dense matrix"
            )
        return TABLE.scipys.BSpline.design_matrix(x, t, k, extrapolate)

    @property
    def tck(self) -> tuple[Any, Any, int]:
        """Knots, coefficients and degree."""
        return self.t, self.c, self.k

    def data(self) -> tuple[Any, ...]:
        """Return knots and coefficients."""
        return self.t, self.c

    def of_scipy(self) -> Any:
        """Return SciPy's object."""
        t, c = arrays_of([self.t, self.c])
        return TABLE.scipys.BSpline.construct_fast(t, c, self.k, self.extrapolate, self.axis)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Return the derivative of order `nu` at points."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if not self._has_tensors(x):
            return self.of_scipy()(x, nu, extrapolate)
        return call_ours(spline_value, (*self.tck, x, nu, extrapolate, self.axis), {})

    def derivative(self, nu: int = 1) -> Self:
        """Return the derivative of order `nu`."""
        if not self._has_tensors() or nu < 0:
            return self.of(self.of_scipy().derivative(nu))
        t, c = self.t, self.c
        for done in range(nu):
            t, c = call_ours(_derivative, (t, c, self.k - done), {})
        return self.construct_fast(t, c, self.k - nu, self.extrapolate, self.axis)

    def insert_knot(self, x: Any, m: int = 1) -> Self:
        """Return the same spline with a knot `m` times more: its coefficients are linear in these.

        Knots are constants.
        """
        if not self._has_tensors(x):
            return self.of(self.of_scipy().insert_knot(x, m))
        if is_tracked(self.t, x):
            reason = "by knots it has none. The values of the spline don't depend on them"
            raise missing_rule("scipy.interpolate.BSpline.insert_knot: the derivative", reason)
        t, at = arrays_of([self.t, x])
        count = len(t) - self.k - 1
        more = TABLE.scipys.BSpline(t, np.eye(count), self.k, self.extrapolate).insert_knot(at, m)
        c = np.tensordot(more.c[: len(more.t) - self.k - 1], self.c[:count], 1)
        return self.construct_fast(more.t, c, self.k, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> Self:
        """Return the antiderivative of order `nu` that is 0 at the first knot."""
        if not self._has_tensors() or nu < 0:
            return self.of(self.of_scipy().antiderivative(nu))
        t, c = self.t, self.c
        for done in range(nu):
            t, c = call_ours(_antiderivative, (t, c, self.k + done), {})
        extrapolate = self.extrapolate != "periodic" and self.extrapolate
        return self.construct_fast(t, c, self.k + nu, extrapolate, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """Return the integral from `a` to `b`; without extrapolation, of the part inside."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if not self._has_tensors(a, b):
            return self.of_scipy().integrate(a, b, extrapolate)
        return call_ours(_integral, (*self.tck, a, b, extrapolate), {})


def _surrounded(t: Any, k: int) -> Tensor:
    (t,), _ = coordinates_and_values("BSpline.basis_element", [t], [])
    before, after = ops.broadcast_to(t[:1] - 1, (k,)), ops.broadcast_to(t[-1:] + 1, (k,))
    return ops.cat([before, t, after])


# --- interpolation --------------------------------------------------------------------------------


def _ends_repeated(x: Tensor, inner: Tensor, times: int) -> Tensor:
    first, last = [ops.broadcast_to(end, (times,)) for end in (x[:1], x[-1:])]
    return ops.cat([first, inner, last])


def _knots(x: Tensor, k: int, bc_type: Any) -> Tensor:
    """Return the knots that SciPy chooses for nodes."""
    if isinstance(bc_type, str) and bc_type == "periodic":
        middle = x if k % 2 else ops.cat([x[:1], (x[1:-1] + x[:-2]) / 2, x[-1:]])
        steps, turns = ops.diff(middle), np.arange(k) % (x.shape[0] - 1)
        before = middle[0] - ops.cumsum(ops.flip(steps, (0,))[turns], dim=0)
        after = middle[-1] + ops.cumsum(steps[turns], dim=0)
        return ops.cat([ops.flip(before, (0,)), middle, after])
    if any(end is not None for end in bc_type):
        return _ends_repeated(x, x, k)
    half = (k + 1) // 2
    inner = x[half:-half] if k % 2 else ((x[1:] + x[:-1]) / 2)[half:-half]
    return _ends_repeated(x, inner, k + 1)


_INCREASING = "Expect x to be a 1D strictly increasing sequence."
_SORTED = "Expect t to be a 1-D sorted array_like."


def _conditions(end: Any, y: Tensor) -> tuple[list[int], list[Tensor]]:
    """Return the orders and the values of the derivatives at an end."""
    if end is None:
        return [], []
    if isinstance(end, str):
        if end not in ENDS:
            raise ArgumentError(f"make_interp_spline: Unknown boundary condition : {end}")
        return [ENDS[end]], [0 * y[0]]
    try:
        orders, values = [*zip(*end, strict=True)] or [(), ()]
    except (TypeError, ValueError):
        raise ArgumentError(
            "make_interp_spline: Derivatives, `bc_type`, should be specified as a pair of "
            "iterables of pairs of (order, value)."
        ) from None
    _, given = coordinates_and_values("make_interp_spline", [0.0], [y, *values])
    return [*orders], [ops.broadcast_to(value, y.shape[1:]) for value in given[1:]]


def _in_bands(rows: Tensor, first: Any, k: int) -> Tensor:
    """Return a matrix whose row i has k + 1 elements from a column on, in bands."""
    n = rows.shape[0]
    first = tensor_of(first)
    band, columns = np.arange(2 * k + 1)[:, None], np.arange(n)
    row = band + columns - k
    exists, row = (row >= 0) & (row < n), np.clip(row, 0, n - 1)
    away = np.arange(n) - first
    if holds_somewhere(((away < 0) | (away > k))._array):
        raise LinAlgError(
            "make_interp_spline: Colocation matrix is singular: between the knots t[i] and "
            "t[i + k + 1] there has to be the node x[i]"
        )
    position = columns - first[row]
    exists = (position >= 0) & (position <= k) & exists
    found: Tensor = rows[row, ops.clamp(position, 0, k)]
    return ops.where(exists, found, 0)


def interpolated(
    x: Any, y: Any, k: int, t: Any, bc_type: Any, axis: int, finite: bool
) -> tuple[Tensor, Tensor]:
    """Return the knots and coefficients of the spline through points."""
    name = "make_interp_spline"
    require_order(name, x, _INCREASING)
    require_order(name, t, _SORTED, is_strict=False)
    (x, *knots), (y,) = coordinates_and_values(name, [x] if t is None else [x, t], [y])
    x, y = _points(name, x, y, axis, finite)
    if k < 2 and t is None:
        return ops.cat([x[:1], x, x[-1:]]) if k else ops.cat([x, x[-1:]]), y
    t = knots[0] if knots else _knots(x, k, bc_type)
    n, size = x.shape[0], t.shape[0] - k - 1
    if t.ndim != 1 or size < n:
        raise ShapeError(f"{name}: Got {list(t.shape)} knots, need at least {n + k + 1}.")
    require(name, ops.diff(t) >= 0, _SORTED)
    require(name, (x[0] >= t[k]) & (x[-1] <= t[-k]), "Out of bounds: x is beyond t[k] or t[-k].")
    if isinstance(bc_type, str):
        return t, _periodic(x, y, t, k)
    (left, before), (right, after) = [_conditions(end, y) for end in bc_type]
    if not all(0 <= order <= k for order in (*left, *right)):
        raise ArgumentError(f"{name}: Bad boundary conditions: orders are 0 to {k}")
    if size - n != len(left) + len(right):
        raise ArgumentError(
            f"{name}: The number of derivatives at boundaries does not match: expected "
            f"{size - n}, got {len(left)}+{len(right)}"
        )
    parts = [
        *[basis(t, k, x[:1], order) for order in left],
        basis(t, k, x),
        *[basis(t, k, x[-1:], order) for order in right],
    ]
    rows = ops.cat([part for part, _ in parts])
    first = ops.cat([tensor_of(start) for _, start in parts])
    sides = ops.cat([*[v[None] for v in before], y, *[v[None] for v in after]])
    bands = cast(_in_bands(rows, first, k), sides.dtype)
    solution = solve_bands(bands, ops.reshape(sides, (size, -1)), (k, k))
    return t, ops.reshape(solution, (size, *y.shape[1:]))


def _points(name: str, x: Tensor, y: Tensor, axis: int, finite: bool) -> tuple[Tensor, Tensor]:
    """Return checked nodes, and values with their axis first."""
    if not y.ndim or not -y.ndim <= axis < y.ndim:
        raise ShapeError(f"{name}: axis {axis} is not one of the {y.ndim} axes of y")
    y = ops.movedim(y, axis, 0)
    if x.ndim != 1 or x.shape[0] != y.shape[0]:
        raise ShapeError(
            f"{name}: Shapes of x {list(x.shape)} and y {list(y.shape)} are incompatible"
        )
    if finite:
        for part in (x, y):
            require(name, ops.isfinite(part), "array must not contain infs or NaNs")
    require(name, ops.diff(x) > 0, _INCREASING)
    return x, y


def _periodic(x: Tensor, y: Tensor, t: Tensor, k: int) -> Tensor:
    """Return the coefficients of a periodic spline, of which the last k are the first ones."""
    n = x.shape[0] - 1
    same = ops.isclose(y[0].detach(), y[-1].detach(), atol=1e-15)
    require("make_interp_spline", same, "First and last points does not match while periodic case "
            "expected")  # fmt: skip
    rows, first = basis(t, k, x[:-1])
    position = (np.arange(n) - tensor_of(first)[:, None]) % n
    turns = []
    for turn in range(0, k + 1, n):
        found = rows[np.arange(n)[:, None], ops.clamp(position + turn, 0, k)]
        turns.append(ops.where(position + turn <= k, found, 0))
    matrix = ops.sum(ops.stack(turns), dim=0)
    sides = ops.reshape(y[:-1], (n, -1))
    c = ops.reshape(solve(cast(matrix, sides.dtype), sides), (n, *y.shape[1:]))
    return c[np.arange(n + k) % n]


def make_interp_spline(
    x: Any,
    y: Any,
    k: int = 3,
    t: Any = None,
    bc_type: Any = None,
    axis: int = 0,
    check_finite: bool = True,
) -> BSpline:
    """Return the spline of degree `k` through points: `scipy.interpolate.make_interp_spline`.

    Parameters
    ----------
    x, y : array or Tensor
        Nodes in ascending order, and values with as many elements along `axis`.
    k : int, default 3
        The degree.
    t : array or Tensor, optional
        Knots.
    bc_type : str or pair, optional
        "not-a-knot", "periodic", "clamped" or "natural", or for each end None, a name or a list of
        orders and values of derivatives.
    axis : int, default 0
        The axis of `y` along the nodes.
    check_finite : bool, default True
        Whether to raise for NaN and infinite numbers.

    Returns
    -------
    BSpline

    Notes
    -----
    The coefficients solve a banded system; with periodic ends a dense one, if a gradient is
    recorded. Derivatives: with respect to nodes, values, knots and the derivatives at the ends.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> make = cr.scipy.interpolate.make_interp_spline
    >>> cr.grad(lambda y: make(x, y)(1.5))(x**3)
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """
    if not has_tensors(x, y, t, bc_type):
        found = TABLE.scipys.make_interp_spline(x, y, k, t, bc_type, axis, check_finite)
        return BSpline.of(found)
    k, is_name = operator.index(k), isinstance(bc_type, str)
    if is_name and bc_type == "periodic" and t is not None:
        raise MissingRuleError(  # a NotImplementedError, as SciPy's
            "make_interp_spline: For periodic case t is constructed automatically and can not be "
            "passed manually: leave t out"
        )
    if bc_type is None or (is_name and bc_type == "not-a-knot"):
        bc_type = (None, None)
    elif is_name and bc_type != "periodic":
        bc_type = (bc_type, bc_type)
    elif not is_name and (not isinstance(bc_type, list | tuple) or len(bc_type) != 2):
        raise ArgumentError(f"make_interp_spline: Unknown boundary condition: {bc_type}")
    if k < 0:
        raise ArgumentError("make_interp_spline: Expect non-negative k.")
    has_ends = isinstance(bc_type, tuple | list) and any(end is not None for end in bc_type)
    if (has_ends and k < 2 and t is None) or (k == 0 and t is not None):
        raise ArgumentError(
            f"make_interp_spline: Too much info for k={k}: bc_type can only be None."
        )
    knots, c = call_ours(interpolated, (x, y, k, t, bc_type, axis, check_finite), {})
    extrapolate = "periodic" if isinstance(bc_type, str) and k > 1 else True
    return BSpline.construct_fast(knots, c, k, extrapolate, axis % c.ndim)


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """Return the derivative of order `der` of a spline at points: `scipy.interpolate.splev`.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> tck = np.array([0.0, 0.0, 1.0, 1.0]), np.array([2.0, 5.0]), 1
    >>> cr.grad(lambda x: cr.scipy.interpolate.splev(x, tck))(0.5)
    3.0
    """
    is_object = hasattr(tck, "tck")
    t, c, k = tck.tck if is_object else tck
    if not has_tensors(x, t, c):
        return TABLE.scipys.splev(x, tck.of_scipy() if isinstance(tck, BSpline) else tck, der, ext)
    if is_object and (np.ndim(c) > 1 or ext):
        raise ArgumentError(
            "splev: BSpline objects with c.ndim > 1, or with ext other than 0, are not allowed. "
            "Use BSpline.__call__(x) instead."
        )
    if not is_object and (isinstance(c, list) or c.ndim > 1):
        return [splev(x, (t, part, k), der, ext) for part in c]
    if not 0 <= der <= k:
        raise ArgumentError(f"splev: 0<=der={der}<=k={k} must hold")
    if ext not in (0, 1, 2, 3):
        raise ArgumentError(f"splev: ext = {ext} not in (0, 1, 2, 3)")
    return call_ours(_extended, (t, c, k, x, der, ext), {})


def _extended(t: Any, c: Any, k: int, q: Any, nu: int, ext: int) -> Tensor:
    (t, q), (c,) = coordinates_and_values("splev", [t, q], [c])
    start, end = t[k], t[t.shape[0] - k - 1]
    inside = within(q, start, end, False)
    if ext == 2:
        require("splev", inside, "Found x value not in the domain")
    elif ext == 3 and not nu:  # as FITPACK does: it extrapolates derivatives
        q = ops.minimum(ops.maximum(q, start), end)
    found = spline_value(t, c, k, q, nu)
    return ops.where(inside, found, 0) if ext == 1 else found
