"""`scipy.stats` over tensors: distributions, statistics of samples and tests.

Given arrays and numbers, a function is SciPy's own; given a tensor it is recorded. What is
differentiable is in `docs/stats.md`.

>>> import numpy as np
>>> import chainrule as cr
>>> data = np.array([1.0, 2.0, 4.0])
>>> cr.grad(lambda a: cr.scipy.stats.gamma.logpdf(data, a, scale=2.0).sum())(1.5)
-0.1094...
"""

from __future__ import annotations

from functools import partial

from chainrule.backend.extensions import SCIPY
from chainrule.scipy.dispatch import Table
from chainrule.scipy.own_code import compose_others as _compose_others
from chainrule.scipy.stats import (
    counts,
    discrepancy,
    fitting,
    half_line,
    hypothesis_tests,
    interval,
    lifetimes,
    more_distributions,
    multivariate,
    real_line,
    samples,
)
from chainrule.scipy.stats.distribution import TABLE
from chainrule.scipy.stats.kde import GaussianKDE

FAMILIES = (real_line, half_line, lifetimes, interval, counts)
"""The modules that describe distributions."""

_SAMPLES = """
    gmean hmean pmean trim_mean moment skew kurtosis sem variation zmap zscore gzscore gstd entropy
    wasserstein_distance energy_distance boxcox boxcox_llf yeojohnson yeojohnson_llf
    differential_entropy"""
_TESTS = """
    ttest_1samp ttest_rel ttest_ind ttest_ind_from_stats pearsonr linregress f_oneway bartlett
    power_divergence chisquare jarque_bera"""


_RANKS = "it depends on the order of the data alone"
_COUNTS = "it counts data"
_NUMERICAL = "it is the result of a search"
_DISTRIBUTION = "its p-value is of a distribution without a rule"

_REASONS = {
    **dict.fromkeys(
        [
            *("rankdata", "spearmanr", "kendalltau", "weightedtau", "mannwhitneyu", "wilcoxon"),
            *("kruskal", "friedmanchisquare", "ranksums", "mood", "ansari", "fligner", "somersd"),
            *("brunnermunzel", "median_test", "chatterjeexi", "ks_2samp", "cramervonmises_2samp"),
            *("page_trend_test", "percentileofscore"),
        ],
        _RANKS,
    ),
    **dict.fromkeys(
        [
            *("cumfreq", "relfreq", "mode", "ecdf", "find_repeats", "contingency"),
            *("binomtest", "fisher_exact", "barnard_exact", "boschloo_exact"),
        ],
        _COUNTS,
    ),
    **dict.fromkeys(["kstest", "ks_1samp", "cramervonmises"], _DISTRIBUTION),
    "tukey_hsd": f"{_DISTRIBUTION}, the studentized range",
    **dict.fromkeys(
        ["boxcox_normmax", "yeojohnson_normmax", "ppcc_max", "goodness_of_fit"],
        _NUMERICAL,
    ),
}  # fmt: skip
"""Why functions of SciPy's have no derivative."""

_TABLE = Table("scipy.stats", SCIPY)
_TABLE.objects = {**TABLE, **multivariate.TABLE, "gaussian_kde": GaussianKDE}
_TABLE.makers = {
    name: partial(more_distributions.distribution_of, name)
    for name in more_distributions.NAMES.split()
}
_TABLE.refused = _REASONS
for _module, _names in ((samples, _SAMPLES), (hypothesis_tests, _TESTS)):
    for _name in _names.split():
        _TABLE.function(_name, "composite")(getattr(_module, _name))

_TABLE.function("fit", "equation")(fitting.fit_within_bounds)
_TABLE.function("siegelslopes", "composite")(discrepancy.siegelslopes)
_compose_others(_TABLE)

__getattr__, __dir__ = _TABLE.namespace()
