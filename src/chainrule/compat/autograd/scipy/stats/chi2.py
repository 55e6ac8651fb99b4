"""The chi-squared distribution."""

from __future__ import annotations

import scipy.stats as _scipy
from scipy.special import psi

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.scipy.stats.location_scale import functions_of as _functions_of

pdf, logpdf, cdf, logcdf, sf, logsf = _functions_of(
    _scipy.chi2,
    "df",
    lambda y, df: (df / 2 - 1) / y - 0.5,
    lambda y, df: (np.log(y / 2) - psi(df / 2)) / 2,
)
