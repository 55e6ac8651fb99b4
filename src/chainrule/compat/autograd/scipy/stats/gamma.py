"""The gamma distribution."""

from __future__ import annotations

import scipy.stats as _scipy
from scipy.special import psi

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.scipy.stats.location_scale import functions_of as _functions_of

pdf, logpdf, cdf, logcdf, sf, logsf = _functions_of(
    _scipy.gamma,
    "a",
    lambda y, a: (a - 1) / y - 1,
    lambda y, a: np.log(y) - psi(a),
)
