"""FITPACK's splines of one variable: `splrep`, `UnivariateSpline` and its relatives, and fits.

Interpolating splines and those with given knots depend on the data by linear systems; for smoothing
splines see `smoothing`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, MissingRuleError, ShapeError
from chainrule.interop.operands import is_tracked, tensor_of
from chainrule.linalg import qr, solve
from chainrule.scipy.dispatch import call_ours, has_tensors
from chainrule.scipy.interpolate.bsplines import BSpline, design, make_interp_spline, padded, splev
from chainrule.scipy.interpolate.interpolant import (
    TABLE,
    Interpolant,
    column,
    coordinates_and_values,
    require,
)
from chainrule.scipy.interpolate.piecewise import PPoly
from chainrule.scipy.interpolate.smoothing import smoothing

_EXT = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}


def _fitted(x: Any, y: Any, t: Any, k: int, w: Any, axis: int) -> tuple[Tensor, Tensor]:
    """Return the knots and the coefficients with the least sum of squares at points."""
    name = "make_lsq_spline"
    (x, t, w), (y,) = coordinates_and_values(name, [x, t, 1.0 if w is None else w], [y])
    y = ops.movedim(y, axis, 0)
    if x.ndim != 1 or x.shape[0] != y.shape[0]:
        raise ShapeError(
            f"{name}: Shapes of x {list(x.shape)} and y {list(y.shape)} are incompatible"
        )
    require(name, ops.diff(x) >= 0, "Expect x to be a 1D non-decreasing sequence.")
    require(name, ops.diff(t) >= 0, "Expect t to be a 1D non-decreasing sequence.")
    size, matrix = t.shape[0] - k - 1, design(t, k, x)
    weights = ops.broadcast_to(w, x.shape)
    sides = ops.reshape(column(weights, y) * y, (x.shape[0], -1))
    q, r = qr(cast(weights[:, None] * matrix, sides.dtype))
    found = solve(r, ops.adjoint(q) @ sides)
    return t, ops.reshape(found, (size, *y.shape[1:]))


def make_lsq_spline(
    x: Any,
    y: Any,
    t: Any,
    k: int = 3,
    w: Any = None,
    axis: int = 0,
    check_finite: bool = True,
    **settings: Any,
) -> BSpline:
    """Return the spline with given knots nearest to points: `scipy.interpolate.make_lsq_spline`.

    Parameters
    ----------
    x, y : array or Tensor
        Points in ascending order, and values with as many elements along `axis`.
    t : array or Tensor
        All knots, those at the ends as well.
    k : int, default 3
        The degree.
    w : array or Tensor, optional
        Weights of the residuals.
    axis, check_finite, **settings
        As in SciPy.

    Returns
    -------
    BSpline

    Notes
    -----
    Derivatives: with respect to points, values, knots and weights.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x, t = np.linspace(0.0, 1.0, 5), np.array([0.0, 0.0, 1.0, 1.0])
    >>> cr.grad(lambda y: cr.scipy.interpolate.make_lsq_spline(x, y, t, 1)(0.5))(x).round(6)
    array([0.2, 0.2, 0.2, 0.2, 0.2])
    """
    if not has_tensors(x, y, t, w):
        scipys = TABLE.scipys.make_lsq_spline
        return BSpline.of(scipys(x, y, t, k, w, axis, check_finite, **settings))
    knots, c = call_ours(_fitted, (x, y, t, operator.index(k), w, axis), {})
    return BSpline.construct_fast(knots, c, k, True, axis % c.ndim)


def _spline(name: str, x: Any, y: Any, w: Any, k: int, s: Any, t: Any) -> BSpline:
    """Return the spline through points, or of least squares with inner knots `t`."""
    if t is not None:
        knots = np.concatenate([np.repeat(x[:1], k + 1), t, np.repeat(x[-1:], k + 1)])
        return make_lsq_spline(x, y, knots, k, w)
    if is_tracked(s) or s != 0:
        return smoothing(name, x, y, w, k, s)
    return make_interp_spline(x, y, k)


def _without(name: str, **settings: Any) -> None:
    """Raise for settings that splines of tensors don't take."""
    for setting, value in settings.items():
        if value not in (None, 0):
            raise MissingRuleError(
                f"scipy.interpolate.{name} of tensors takes no {setting}: leave it out, or pass "
                "x.detach() where no gradient is needed"
            )


def splrep(
    x: Any,
    y: Any,
    w: Any = None,
    xb: Any = None,
    xe: Any = None,
    k: int = 3,
    task: int = 0,
    s: Any = None,
    t: Any = None,
    full_output: Any = 0,
    per: Any = 0,
    quiet: Any = 1,
) -> Any:
    """Return knots, coefficients and degree of a spline: `scipy.interpolate.splrep`.

    Derivatives: with respect to points, values, knots, weights and `s`.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> splev, splrep = cr.scipy.interpolate.splev, cr.scipy.interpolate.splrep
    >>> cr.grad(lambda y: splev(1.5, splrep(x, y)))(x**3)
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """
    if not has_tensors(x, y, w, xb, xe, s, t):
        return TABLE.scipys.splrep(x, y, w, xb, xe, k, task, s, t, full_output, per, quiet)
    _without("splrep", xb=xb, xe=xe, full_output=full_output, per=per)
    if s is None:
        s = 0.0 if w is None else len(x) - np.sqrt(2 * len(x))
    found = _spline("splrep", x, y, w, k, s, t)
    c = found.c
    if has_tensors(c):
        c = call_ours(lambda c: padded(tensor_of(c), len(found.t)), (c,), {})
    return found.t, c, k


class UnivariateSpline(Interpolant):
    """A spline of one variable: `scipy.interpolate.UnivariateSpline`.

    Its arguments and methods are SciPy's.

    Notes
    -----
    Derivatives: with respect to data, weights, `s` and points.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> spline = cr.scipy.interpolate.UnivariateSpline
    >>> cr.grad(lambda y: spline(x, y, s=0)(1.5))(x**3)
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        w: Any = None,
        bbox: Any = (None, None),
        k: int = 3,
        s: Any = None,
        ext: Any = 0,
        check_finite: bool = False,
    ) -> None:
        self._make("UnivariateSpline", (x, y), w, bbox, k, ext, check_finite, s=s)

    def _make(
        self,
        name: str,
        data: tuple[Any, ...],
        w: Any,
        bbox: Any,
        k: int,
        ext: Any,
        check_finite: bool,
        **smoothing: Any,
    ) -> None:
        """Set the spline of points, values and maybe knots: SciPy's if all are arrays."""
        self.ext = _EXT.get(ext, ext)
        if not has_tensors(*data, w, *smoothing.values()):
            settings = {"ext": ext, "check_finite": check_finite, **smoothing}
            found = getattr(TABLE.scipys, name)(*data, w, list(bbox), k, **settings)
            t, c, k = found._eval_args
            self._set(t, c, k, found)
            return
        _without(name, bbox=None if bbox[0] is None is bbox[1] else bbox)
        x, y, *knots = data
        t, s = (knots[0] if knots else None), smoothing.get("s", 0)
        self._set(*_spline(name, np.ravel(x), np.ravel(y), w, k, s, t).tck, None)

    def _set(self, t: Any, c: Any, k: int, scipys: Any) -> None:
        self.t, self.c, self.k, self._scipys = t, c, k, scipys

    @staticmethod
    def _of(spline: BSpline, ext: int) -> UnivariateSpline:
        self = object.__new__(UnivariateSpline)
        self.ext = ext
        self._set(*spline.tck, None)
        return self

    def data(self) -> tuple[Any, ...]:
        """Return knots and coefficients."""
        return self.t, self.c

    def of_scipy(self) -> Any:
        """Return SciPy's object."""
        if self._scipys is None:
            t, c, k = BSpline.construct_fast(self.t, self.c, self.k).of_scipy().tck
            c = np.concatenate([c, np.zeros(len(t) - len(c))])
            self._scipys = TABLE.scipys.UnivariateSpline._from_tck((t, c, k), self.ext)
        return self._scipys

    @property
    def _as_bspline(self) -> BSpline:
        return BSpline.construct_fast(self.t, self.c, self.k)

    def __call__(self, x: Any, nu: int = 0, ext: Any = None) -> Any:
        """Return the derivative of order `nu` at points."""
        ext = self.ext if ext is None else _EXT.get(ext, ext)
        if not self._has_tensors(x):
            return self.of_scipy()(x, nu, ext)
        return splev(x, (self.t, self.c, self.k), nu, ext)

    def derivatives(self, x: Any) -> Any:
        """Return all derivatives at a point."""
        if not self._has_tensors(x):
            return self.of_scipy().derivatives(x)
        return np.stack([self(x, nu, 0) for nu in range(self.k + 1)])

    def integral(self, a: Any, b: Any) -> Any:
        """Return the integral of the part between the ends."""
        if not self._has_tensors(a, b):
            return self.of_scipy().integral(a, b)
        return self._as_bspline.integrate(a, b, extrapolate=False)

    def derivative(self, n: int = 1) -> UnivariateSpline:
        """Return the derivative of order `n`, which is 0 where the spline is constant."""
        return self._of(self._as_bspline.derivative(n), 1 if self.ext == 3 else self.ext)

    def antiderivative(self, n: int = 1) -> UnivariateSpline:
        """Return the antiderivative of order `n` that is 0 at the first knot."""
        return self._of(self._as_bspline.antiderivative(n), self.ext)

    def roots(self) -> Any:
        """Return the zeros of a cubic spline between its ends."""
        if not self._has_tensors():
            return self.of_scipy().roots()
        if self.k != 3:
            raise ArgumentError("finding roots unsupported for non-cubic splines")
        return PPoly.from_spline(self._as_bspline).roots(extrapolate=False)

    def get_knots(self) -> Any:
        """Return the knots, those at the ends once."""
        return self.t[self.k : len(self.t) - self.k]

    def get_coeffs(self) -> Any:
        """Return the coefficients."""
        return self.c[: len(self.t) - self.k - 1]


class InterpolatedUnivariateSpline(UnivariateSpline):
    """The spline through points: `scipy.interpolate.InterpolatedUnivariateSpline`.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> spline = cr.scipy.interpolate.InterpolatedUnivariateSpline(x, x**3)
    >>> cr.grad(spline)(1.5)
    6.75
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        w: Any = None,
        bbox: Any = (None, None),
        k: int = 3,
        ext: Any = 0,
        check_finite: bool = False,
    ) -> None:
        self._make("InterpolatedUnivariateSpline", (x, y), w, bbox, k, ext, check_finite)


class LSQUnivariateSpline(UnivariateSpline):
    """The spline with inner knots `t` nearest to points: `scipy.interpolate.LSQUnivariateSpline`.

    Notes
    -----
    Derivatives: with respect to data, weights, knots and points.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.linspace(0.0, 3.0, 9)
    >>> fit = lambda y: cr.scipy.interpolate.LSQUnivariateSpline(x, y, [1.5])(1.5)
    >>> round(float(cr.grad(fit)(x**2).sum()), 6)
    1.0
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        t: Any,
        w: Any = None,
        bbox: Any = (None, None),
        k: int = 3,
        ext: Any = 0,
        check_finite: bool = False,
    ) -> None:
        self._make("LSQUnivariateSpline", (x, y, t), w, bbox, k, ext, check_finite)


@TABLE.function("splint", "composite")
def splint(a: Any, b: Any, tck: Any, full_output: int = 0) -> Any:
    """Return the integral of a spline that is zero beyond its ends: `scipy.interpolate.splint`."""
    if full_output:
        raise ArgumentError("splint: full_output=1 is for arrays without a gradient: leave it out")
    t, c, k = tck
    start, end = t[k], t[-k - 1]
    return BSpline(t, c[: len(t) - k - 1], k).integrate(
        np.clip(a, start, end), np.clip(b, start, end)
    )


@TABLE.function("spalde", "composite")
def spalde(x: Any, tck: Any) -> Any:
    """Return all derivatives of a spline at points: `scipy.interpolate.spalde`."""
    return np.stack([splev(x, tck, der) for der in range(tck[2] + 1)], axis=-1)


@TABLE.function("sproot", "equation")
def sproot(tck: Any, mest: int = 10) -> Any:
    """Return the roots of a cubic spline: `scipy.interpolate.sproot`."""
    t, c, k = getattr(tck, "tck", tck)
    if k != 3:
        raise ArgumentError(f"sproot works only for cubic (k=3) splines, got k={k}")
    if isinstance(c, list | tuple):
        return [sproot((t, each, k)) for each in c]
    spline = BSpline.construct_fast(t, c[: len(t) - k - 1], k)
    return PPoly.from_spline(spline).roots(extrapolate=False)


@TABLE.function("insert", "linear")
def insert(x: Any, tck: Any, m: int = 1, per: int = 0) -> Any:
    """Return a spline with a further knot: `scipy.interpolate.insert`."""
    if per:
        raise ArgumentError("insert: per=1 is for arrays without a gradient: leave it out")
    if isinstance(tck, BSpline):
        return tck.insert_knot(x, m)
    t, c, k = tck
    if isinstance(c, list | tuple):
        parts = [insert(x, (t, each, k), m) for each in c]
        return parts[0][0], [each[1] for each in parts], k
    more = BSpline.construct_fast(t, c[: len(t) - k - 1], k).insert_knot(x, m)
    return more.t, np.concatenate([more.c, 0 * more.c[: k + 1]]), k
