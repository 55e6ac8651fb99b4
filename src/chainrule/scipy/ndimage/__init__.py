"""`scipy.ndimage` over tensors: filters, interpolation of images, and measurements.

Given arrays, a function is SciPy's own; see `docs/stats.md` for the derivatives.

>>> import numpy as np
>>> import chainrule as cr
>>> ndimage = cr.scipy.ndimage
>>> step = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
>>> round(cr.grad(lambda sigma: ndimage.gaussian_filter1d(step, sigma)[2])(1.0), 3)
0.199
>>> cr.grad(lambda dx: ndimage.shift(step, dx, order=1)[3])(0.25)
-1.0
"""

from __future__ import annotations

from chainrule.scipy.ndimage import (
    interpolation,
    linear_filters,
    measurements,
    morphology,
    rank_filters,
)
from chainrule.scipy.ndimage.arguments import TABLE as _TABLE
from chainrule.scipy.own_code import compose_others as _compose_others

_FAMILIES = (interpolation, linear_filters, measurements, morphology, rank_filters)

_compose_others(_TABLE)
_TABLE.of_values = frozenset(["label", "find_objects", "watershed_ift"])

__getattr__, __dir__ = _TABLE.namespace()
