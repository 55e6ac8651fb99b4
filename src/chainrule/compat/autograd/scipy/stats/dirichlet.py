"""The Dirichlet distribution."""

from __future__ import annotations

from chainrule.scipy.stats import dirichlet as _of_tensors

__all__ = ["logpdf", "pdf", "rvs"]

logpdf, pdf, rvs = _of_tensors.logpdf, _of_tensors.pdf, _of_tensors.rvs
