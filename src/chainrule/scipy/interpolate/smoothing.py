"""Smoothing splines of one variable, by the equations that their coefficients fulfil.

FITPACK chooses knots among the points, and how stiff the spline is so that the residuals reach the
given sum of squares. The knots stay at their points; coefficients and stiffness are functions of
the data by the implicit function theorem.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import ArgumentError
from chainrule.implicit import implicit_function
from chainrule.implicit.examples import with_numbers
from chainrule.interop.operands import arrays_of, is_tracked
from chainrule.linalg import qr, solve
from chainrule.scipy.dispatch import call_ours, has_tensors, missing_rule
from chainrule.scipy.interpolate.bsplines import BSpline, design, interpolated, make_interp_spline
from chainrule.scipy.interpolate.interpolant import TABLE, coordinates_and_values, require
from chainrule.scipy.linalg.banded import solve_bands
from chainrule.transforms.gradients import grad

# --- given sums of squares: FITPACK ---------------------------------------------------------------


def _jumps(t: Tensor, k: int) -> Tensor:
    """Return the jumps of the B-splines' derivatives of order k at the inner knots, in rows.

    They are given but for a common factor: (t[j+k+1] - t[j]) / Π (t[l] - t[i]) over i ≠ l.
    """
    size = t.shape[0] - k - 1
    knots = np.arange(k + 1, size)
    first = knots - k - 1
    offsets = np.arange(k + 2)
    spline = first[:, None] + offsets
    among = spline[..., None] + offsets
    steps = ops.where(among == knots[:, None, None], 1.0, t[knots][:, None, None] - t[among])
    values = (t[spline + k + 1] - t[spline]) / ops.prod(steps, dim=-1)
    position = np.arange(size) - first[:, None]
    inside = (position >= 0) & (position <= k + 1)
    rows = np.arange(knots.size)[:, None]
    return ops.where(inside, values[rows, np.clip(position, 0, k + 1)], 0.0)


def _knots_of_points(name: str, x: Tensor, t: Any) -> Tensor:
    """Return FITPACK's knots, which are among the points, as functions of these."""
    points = arrays_of(x)
    index = np.clip(np.searchsorted(points, t), 0, len(points) - 1)
    if (points[index] == t).all():
        return x[index]
    if is_tracked(x):
        raise missing_rule(
            f"scipy.interpolate.{name}: the derivative by x",
            "some knots of this spline are not at points: make_lsq_spline takes knots",
        )
    return make(t, None)


def smoothed(
    name: str, x: Any, sides: Any, w: Any, s: Any, t: Any, c: Any, k: int
) -> tuple[Tensor, Tensor]:
    """Return the knots and coefficients that FITPACK found, as functions of the data.

    `sides` and `c` have a column for each dimension of a curve.
    """
    (x, w, s), (sides,) = coordinates_and_values(name, [x, w, s], [sides])
    t = _knots_of_points(name, x, t)
    matrix, weights = design(t, k, x), ops.broadcast_to(w, x.shape)[:, None]
    jumps = _jumps(t, k)

    def residuals(c: Tensor) -> Tensor:
        found: Tensor = weights * (matrix @ c - sides)
        return found

    with no_grad():
        start = make(np.asarray(c), None)
        rest = residuals(start)
        slope = (weights * matrix).T @ rest
        force = jumps.T @ (jumps @ start)
        size = float(ops.sum(force * force).item())
        stiffness = -float(ops.sum(slope * force).item()) / size if size else 0.0
        reached = float(ops.sum(rest * rest).item())
    if stiffness <= 0 or not jumps.shape[0] or reached == 0:  # nothing but the least squares
        q, r = qr(weights * matrix)
        return t, solve(r, q.T @ (weights * sides))
    target = s * (reached / s.detach())

    def equations(found: Any) -> Any:
        rest = residuals(found["c"])
        bent = jumps.T @ (jumps @ found["c"])
        return {
            "slope": (weights * matrix).T @ rest + ops.exp(found["log"]) * bent,
            "sum": (ops.sum(rest * rest) - target) / reached,
        }

    begin = {"c": start, "log": make(np.log(np.asarray(stiffness)), None)}
    return t, implicit_function(lambda: begin, equations)()["c"]


def smoothing(name: str, x: Any, y: Any, w: Any, k: int, s: Any) -> BSpline:
    """Return the spline of `splrep` and `UnivariateSpline` with a sum of squared residuals `s`."""
    numbers = [arrays_of(value) for value in (x, y, w, s)]
    if name == "splrep":
        t, c, _ = TABLE.scipys.splrep(numbers[0], numbers[1], numbers[2], k=k, s=numbers[3])
    else:
        t, c, _ = TABLE.scipys.UnivariateSpline(*numbers[:3], k=k, s=numbers[3])._eval_args
    if s is None:
        s = float(len(numbers[0]))
    c = c[: len(t) - k - 1, None]
    sides = np.reshape(y, (-1, 1))
    given = (name, x, sides, 1.0 if w is None else w, s, t, c, k)
    knots, found = call_ours(smoothed, given, {})
    return BSpline.construct_fast(knots, found[:, 0], k)


def make_splrep(
    x: Any,
    y: Any,
    *,
    w: Any = None,
    k: int = 3,
    s: Any = 0,
    **settings: Any,
) -> Any:
    """Return a smoothing spline, as a `BSpline`: `scipy.interpolate.make_splrep`.

    Derivatives: with respect to points, values, weights and `s`. Of tensors it takes no other
    settings.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.linspace(0.0, 1.0, 9)
    >>> fit = cr.scipy.interpolate.make_splrep
    >>> round(cr.grad(lambda s: fit(x, np.cos(9 * x), s=s)(0.5))(0.1), 2)
    0.09
    """
    scipys = TABLE.scipys.make_splrep
    if not has_tensors(x, y, w, s, *settings.values()):
        return BSpline.of(scipys(x, y, w=w, k=k, s=s, **settings))
    refused = [name for name, value in settings.items() if value is not None]
    if refused:
        raise ArgumentError(
            f"scipy.interpolate.make_splrep of tensors takes no {refused[0]}: leave it out, or "
            "pass x.detach() where no gradient is needed"
        )
    if not is_tracked(s) and s == 0:
        if w is not None:
            raise ArgumentError("make_splrep: s=0 is for interpolation only, and takes no w")
        return make_interp_spline(x, y, k)
    numbers = arrays_of({"x": x, "y": y, "w": w, "s": s})
    found = scipys(**numbers, k=k)
    sides, c = np.reshape(y, (-1, 1)), found.c[:, None]
    given = ("make_splrep", x, sides, 1.0 if w is None else w, s, found.t, c, k)
    knots, c = call_ours(smoothed, given, {})
    return BSpline.construct_fast(knots, c[:, 0], k)


def splprep(
    x: Any,
    w: Any = None,
    u: Any = None,
    ub: Any = None,
    ue: Any = None,
    k: int = 3,
    task: int = 0,
    s: Any = None,
    t: Any = None,
    full_output: Any = 0,
    nest: Any = None,
    per: Any = 0,
    quiet: Any = 1,
) -> Any:
    """Return knots, coefficients and degree of a curve, and its parameters: `splprep` of SciPy.

    Derivatives: with respect to points, parameters, weights and `s`.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> splev, splprep = cr.scipy.interpolate.splev, cr.scipy.interpolate.splprep
    >>> cr.grad(lambda y: splev(0.5, splprep([x, y], u=x / 3, s=0)[0])[1])(x**3)
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """
    if not has_tensors(x, w, u, ub, ue, s):
        return TABLE.scipys.splprep(x, w, u, ub, ue, k, task, s, t, full_output, nest, per, quiet)
    refused = {"ub": ub, "ue": ue, "t": t, "per": per or None, "full_output": full_output or None}
    for setting, value in refused.items():
        if value is not None:
            raise ArgumentError(
                f"scipy.interpolate.splprep of tensors takes no {setting}: leave it out, or pass "
                "x.detach() where no gradient is needed"
            )
    sides = np.stack(list(x), axis=1)
    if u is None:
        steps = np.sqrt(np.sum((sides[1:] - sides[:-1]) ** 2, axis=1))
        u = np.concatenate([np.zeros(1), np.cumsum(steps)])
        u = u / u[-1]
    count = len(u)
    if s is None:
        s = count - np.sqrt(2 * count)
    if not is_tracked(s) and s == 0:
        found = make_interp_spline(u, sides, k)
        knots, c = found.t, found.c
    else:
        numbers = [arrays_of(value) for value in (list(x), w, u)]
        (t, c, _), _ = TABLE.scipys.splprep(*numbers, k=k, s=arrays_of(s))
        given = ("splprep", u, sides, 1.0 if w is None else w, s, t, np.stack(c, 1), k)
        knots, c = call_ours(smoothed, given, {})
    return [knots, [c[:, i] for i in range(c.shape[1])], k], u


# --- given stiffness: natural splines -------------------------------------------------------------


class _Penalty:
    """The equations of a natural cubic spline with a penalty on its curvature.

    With γ the second derivatives at inner points, (R + λ Qᵀ W⁻¹ Q) γ = Qᵀ y, and the values are
    y - λ W⁻¹ Q γ (C. H. Reinsch, Numerische Mathematik 10, 1967).
    """

    def __init__(self, x: Tensor, w: Tensor) -> None:
        steps = ops.diff(x)
        self.steps, self.w = steps, w
        self.a, self.c = 1 / steps[:-1], 1 / steps[1:]
        self.b = -self.a - self.c

    def differences(self, y: Tensor) -> Tensor:
        """Return Qᵀ y."""
        a, b, c = [part[:, None] for part in (self.a, self.b, self.c)]
        return a * y[:-2] + b * y[1:-1] + c * y[2:]

    def forces(self, curvature: Tensor) -> Tensor:
        """Return W⁻¹ Q γ."""
        a, b, c = [part[:, None] * curvature for part in (self.a, self.b, self.c)]
        zero = a[:1] * 0.0
        two = ops.cat([zero, zero])
        total = ops.cat([a, two]) + ops.cat([zero, b, zero]) + ops.cat([two, c])
        return total / self.w[:, None]

    def bands(self, stiffness: Any) -> Tensor:
        """Return R + λ Qᵀ W⁻¹ Q, in the form of `solve_banded`."""
        a, b, c, h, v = self.a, self.b, self.c, self.steps, 1 / self.w
        middle = (h[:-1] + h[1:]) / 3 + stiffness * (
            a * a * v[:-2] + b * b * v[1:-1] + c * c * v[2:]
        )
        beside = h[1:-1] / 6 + stiffness * (b[:-1] * a[1:] * v[1:-2] + c[:-1] * b[1:] * v[2:-1])
        beyond = stiffness * c[:-2] * a[2:] * v[2:-2]
        zero = middle[:1] * 0.0
        two = ops.cat([zero, zero])
        return ops.stack(
            [
                ops.cat([two, beyond]),
                ops.cat([zero, beside]),
                middle,
                ops.cat([beside, zero]),
                ops.cat([beyond, two]),
            ]
        )

    def removed(self, y: Tensor, stiffness: Any) -> Tensor:
        """Return what smoothing takes away from the values, in columns."""
        curvature = solve_bands(self.bands(stiffness), self.differences(y), (2, 2))
        found: Tensor = stiffness * self.forces(curvature)
        return found

    def score(self, y: Tensor, stiffness: Any) -> Tensor:
        """Return the criterion of generalised cross-validation (G. Wahba, 1990)."""
        count = y.shape[0]
        unit = make(np.eye(count, dtype=y.dtype), None)
        free = ops.trace(self.removed(unit, stiffness))
        return count * ops.sum(self.removed(y, stiffness) ** 2) / free**2


def _natural(x: Any, y: Any, w: Any, lam: Any, axis: int) -> tuple[Tensor, Tensor]:
    name = "make_smoothing_spline"
    (x, w, *given), (y,) = coordinates_and_values(
        name, [x, w, *([] if lam is None else [lam])], [y]
    )
    y = ops.movedim(y, axis, 0)
    if x.ndim != 1 or x.shape[0] != y.shape[0] or x.shape[0] < 5:
        raise ArgumentError(
            f"{name}: expected at least 5 points x, and as many values y, got the shapes "
            f"{list(x.shape)} and {list(y.shape)}"
        )
    require(name, ops.diff(x) > 0, "x should be an ascending array")
    require(name, w > 0, "Invalid vector of weights: they are positive")
    penalty = _Penalty(x, ops.broadcast_to(w, x.shape))
    columns = ops.reshape(y, (x.shape[0], -1))
    if given:
        require(name, given[0] >= 0, "Regularization parameter should be non-negative")
        columns = columns - penalty.removed(columns, given[0])
    else:
        columns = ops.cat(
            [_validated(penalty, x, columns[:, i : i + 1], w) for i in range(columns.shape[1])],
            dim=1,
        )
    t, c = interpolated(x, columns, 3, None, ("natural", "natural"), 0, True)
    return t, ops.reshape(c, (c.shape[0], *y.shape[1:]))


def _validated(penalty: _Penalty, x: Tensor, y: Tensor, w: Tensor) -> Tensor:
    """Return smoothed values of the stiffness of the best score, which SciPy searches for."""

    def numbers() -> list[Any]:
        values, points, weights = arrays_of(y)[:, 0], arrays_of(x), arrays_of(w)
        weights = np.broadcast_to(weights, points.shape)
        spline = TABLE.scipys.make_smoothing_spline(points, values, weights)
        curved = make(spline(points, 2)[1:-1, None], None)
        with no_grad():
            per_unit = arrays_of(_Penalty(make(points, None), make(weights, None)).forces(curved))[
                :, 0
            ]
        return [np.asarray((values - spline(points)) @ per_unit / (per_unit @ per_unit))]

    (found,) = with_numbers("scipy.interpolate.make_smoothing_spline", numbers)
    start = ops.log(make(found, None))
    log = implicit_function(
        lambda: start, grad(lambda log: ops.log(penalty.score(y, ops.exp(log))))
    )()
    return y - penalty.removed(y, ops.exp(log))


def make_smoothing_spline(
    x: Any, y: Any, w: Any = None, lam: Any = None, *, axis: int = 0
) -> BSpline:
    """Return a smoothing cubic spline: `scipy.interpolate.make_smoothing_spline`.

    Derivatives: with respect to points, values, weights and `lam`. Without `lam`, the
    stiffness of the best score is a function of the data, too.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.linspace(0.0, 1.0, 6)
    >>> smooth = cr.scipy.interpolate.make_smoothing_spline
    >>> round(float(cr.grad(lambda y: smooth(x, y, lam=0.1)(0.5))(x**2).sum()), 6)
    1.0
    """
    if not has_tensors(x, y, w, lam):
        return BSpline.of(TABLE.scipys.make_smoothing_spline(x, y, w, lam, axis=axis))
    knots, c = call_ours(_natural, (x, y, 1.0 if w is None else w, lam, axis), {})
    return BSpline.construct_fast(knots, c, 3, True, axis % c.ndim)
