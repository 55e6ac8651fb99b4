"""The beta distribution."""

from __future__ import annotations

import scipy.stats as _scipy
from scipy.special import psi

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.scipy.stats.location_scale import functions_of as _functions_of

pdf, logpdf, cdf, logcdf, sf, logsf = _functions_of(
    _scipy.beta,
    "a b",
    lambda y, a, b: (a - 1) / y - (b - 1) / (1 - y),
    lambda y, a, b: np.log(y) - psi(a) + psi(a + b),
    lambda y, a, b: np.log1p(-y) - psi(b) + psi(a + b),
)
