"""`scipy.interpolate` over tensors: splines, interpolants of grids and of scattered data.

Given arrays, values are SciPy's own; see `docs/stats.md` for the derivatives.

>>> import numpy as np
>>> import chainrule as cr
>>> x = np.linspace(0.0, 1.0, 5)
>>> spline = cr.scipy.interpolate.CubicSpline(x, np.exp(x))
>>> round(cr.grad(spline)(0.5), 3)
1.649
"""

from __future__ import annotations

from chainrule.scipy.interpolate import (
    bsplines,
    cubic,
    fitpack,
    grids,
    polynomial_interpolants,
    radial,
    scattered,
    smoothing,
    surfaces,
)
from chainrule.scipy.interpolate.interpolant import TABLE as _TABLE
from chainrule.scipy.interpolate.piecewise import PPoly as _PPoly
from chainrule.scipy.own_code import compose_others as _compose_others

_OURS = (
    _PPoly,
    *(cubic.CubicHermiteSpline, cubic.CubicSpline, cubic.PchipInterpolator),
    *(cubic.Akima1DInterpolator, cubic.pchip_interpolate),
    *(grids.interp1d, grids.RegularGridInterpolator, grids.interpn, radial.RBFInterpolator),
    *(bsplines.BSpline, bsplines.make_interp_spline, bsplines.splev),
    *(polynomial_interpolants.BarycentricInterpolator, polynomial_interpolants.KroghInterpolator),
    *(scattered.LinearNDInterpolator, scattered.NearestNDInterpolator),
    scattered.CloughTocher2DInterpolator,
    *(fitpack.UnivariateSpline, fitpack.InterpolatedUnivariateSpline),
    *(fitpack.LSQUnivariateSpline, fitpack.make_lsq_spline, fitpack.splrep),
    *(smoothing.splprep, smoothing.make_smoothing_spline, smoothing.make_splrep),
    *(surfaces.RectBivariateSpline, surfaces.LSQBivariateSpline, surfaces.bisplev),
    surfaces.NdBSpline,
    surfaces.SmoothBivariateSpline,
)
_TABLE.objects = {found.__name__: found for found in _OURS} | {"pchip": cubic.PchipInterpolator}

_TABLE.refused["bisplrep"] = surfaces.CHOSEN

_compose_others(_TABLE)

__getattr__, __dir__ = _TABLE.namespace()
