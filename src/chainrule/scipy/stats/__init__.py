"""`scipy.stats` over tensors: distributions, statistics of samples and tests.

Given arrays and numbers, a function is SciPy's own; given a tensor it is recorded. What is
differentiable is in `docs/stats.md`.

>>> import numpy as np
>>> import chainrule as cr
>>> data = np.array([1.0, 2.0, 4.0])
>>> cr.grad(lambda a: cr.scipy.stats.gamma.logpdf(data, a, scale=2.0).sum())(1.5)
-0.1090...
"""

from __future__ import annotations

from chainrule.scipy.stats import counts, half_line, interval, lifetimes, real_line
from chainrule.scipy.stats.distribution import TABLE, scipy_stats
from chainrule.scipy.tensor_functions import namespace

FAMILIES = (real_line, half_line, lifetimes, interval, counts)
"""The modules that describe distributions."""

__getattr__, __dir__ = namespace(__name__, scipy_stats, {**TABLE}, {})
