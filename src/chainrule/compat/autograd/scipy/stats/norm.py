"""The normal distribution."""

from __future__ import annotations

import scipy.stats as _scipy

from chainrule.compat.autograd.scipy.stats.location_scale import functions_of as _functions_of

pdf, logpdf, cdf, logcdf, sf, logsf = _functions_of(
    _scipy.norm,
    "",
    lambda y: -y,
)
