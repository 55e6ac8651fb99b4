"""The Poisson distribution."""

from __future__ import annotations

import numpy as np
import scipy.stats as _scipy

from chainrule.compat.autograd.scipy.partial_derivatives import from_partials as _from_partials

logpmf = _from_partials(_scipy.poisson.logpmf, "k mu", [None, lambda ans, k, mu: k / mu - 1])
pmf = _from_partials(_scipy.poisson.pmf, "k mu", [None, lambda ans, k, mu: ans * (k / mu - 1)])
cdf = _from_partials(_scipy.poisson.cdf, "k mu", [None, lambda ans, k, mu: -pmf(np.floor(k), mu)])
