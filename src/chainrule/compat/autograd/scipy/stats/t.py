"""Student's t distribution."""

from __future__ import annotations

import scipy.stats as _scipy
from scipy.special import psi

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.scipy.stats.location_scale import functions_of as _functions_of

pdf, logpdf, cdf, logcdf, sf, logsf = _functions_of(
    _scipy.t,
    "df",
    lambda y, df: -(df + 1) * y / (df + y**2),
    lambda y, df: (
        (psi((df + 1) / 2) - psi(df / 2) - 1 / df - np.log1p(y**2 / df)) / 2
        + (df + 1) * y**2 / (2 * df * (df + y**2))
    ),
)
