"""The Poisson distribution."""

from __future__ import annotations

from chainrule.scipy.stats import poisson as _of_tensors

pmf, logpmf, cdf = _of_tensors.pmf, _of_tensors.logpmf, _of_tensors.cdf
