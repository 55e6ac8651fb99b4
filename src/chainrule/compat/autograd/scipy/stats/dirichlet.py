"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import scipy.stats as _scipy
from scipy.special import gammaln

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.tracer import isbox

__all__ = ["logpdf", "pdf", "rvs"]

rvs = _scipy.dirichlet.rvs


def logpdf(x: Any, alpha: Any) -> Any:
    """Return the logarithm of the density, as `scipy.stats.dirichlet` does."""
    if not isbox(x) and not isbox(alpha):
        return _scipy.dirichlet.logpdf(x, alpha)
    rest = 1 - np.sum(x, 0, keepdims=True)
    whole = np.concatenate([x, rest]) if len(x) < len(alpha) else x
    terms = (alpha - 1) * np.log(np.transpose(whole))
    return np.sum(terms, -1) + gammaln(np.sum(alpha)) - np.sum(gammaln(alpha))


def pdf(x: Any, alpha: Any) -> Any:
    """Return the density, as `scipy.stats.dirichlet` does."""
    return np.exp(logpdf(x, alpha))
