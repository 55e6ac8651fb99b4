"""The multivariate normal distribution."""

from __future__ import annotations

from chainrule.scipy.stats import multivariate_normal as _of_tensors

__all__ = ["entropy", "logpdf", "pdf", "rvs"]

logpdf, pdf = _of_tensors.logpdf, _of_tensors.pdf
entropy, rvs = _of_tensors.entropy, _of_tensors.rvs
