"""The normal distribution."""

from __future__ import annotations

from chainrule.scipy.stats import norm as _of_tensors

pdf, logpdf = _of_tensors.pdf, _of_tensors.logpdf
cdf, logcdf = _of_tensors.cdf, _of_tensors.logcdf
sf, logsf = _of_tensors.sf, _of_tensors.logsf
