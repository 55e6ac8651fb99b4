"""Calls that sum, average and rank."""

from __future__ import annotations

import numpy as np

from numpy_calls.arrays import FEW, TRUE, gaps

_METHODS = ["linear", "lower", "higher", "midpoint", "hazen", "weibull", "median_unbiased"]
_METHODS += ["normal_unbiased", "interpolated_inverted_cdf", "inverted_cdf"]
_METHODS += ["averaged_inverted_cdf", "closest_observation", "nearest"]

_WEIGHTS = np.arange(1.0, 9.0).reshape(4, 2)  # of the axes 2 and 0

STATISTICS = {
    np.sum: [
        lambda a: np.sum(a),
        lambda t: np.sum(t, axis=(0, 2), keepdims=True),
        lambda a: np.sum(a, 1, dtype=np.float64, where=True),
        lambda a, o: np.sum(a, axis=0, initial=o, where=TRUE),
        lambda c: np.sum(c, 1, keepdims=True, where=[True, False, True]),
    ],
    np.prod: [
        lambda a: np.prod(a),
        lambda t: np.prod(t, axis=(0, 1)),
        lambda a: np.prod(a, 1),
        lambda a, o: np.prod(a, axis=1, initial=o, where=TRUE),
    ],
    np.mean: [
        lambda a: np.mean(a),
        lambda a: np.mean(a, axis=1, keepdims=True),
        lambda a: np.mean(a, axis=1, where=TRUE),
        lambda c: np.mean(c, where=np.array([True, False, True])),
    ],
    np.var: [
        lambda a: np.var(a),
        lambda a: np.var(a, axis=0, ddof=1),
        lambda a: np.var(a, axis=1, correction=1, keepdims=True),
        lambda c: np.var(c),
        lambda a: np.var(a, axis=1, where=TRUE),
        lambda c: np.var(c, keepdims=True, correction=0.5, where=TRUE),
    ],
    np.std: [
        lambda a: np.std(a),
        lambda a: np.std(a, 0, None, None, 1),
        lambda c: np.std(c, 1),
        lambda a: np.std(a, ddof=1, where=TRUE),
    ],
    np.max: [
        lambda a: np.max(a),
        lambda t: np.max(t, axis=(0, 2)),
        lambda a: np.max(a, 1),
        lambda a, o: np.max(a, axis=1, initial=o, where=TRUE),
        lambda d, o: np.max(d[:0], initial=o),
    ],
    np.min: [
        lambda a: np.min(a),
        lambda a: np.min(a, axis=0, keepdims=True),
        lambda a, o: np.min(a, axis=0, keepdims=True, initial=o, where=TRUE),
    ],
    np.amax: [lambda a: np.amax(a, axis=0)],
    np.amin: [lambda a: np.amin(a)],
    np.ptp: [lambda a: np.ptp(a), lambda a: np.ptp(a, axis=1, keepdims=True)],
    np.average: [
        lambda a: np.average(a),
        lambda a, p: np.average(a, weights=p),
        lambda a, p: np.average(a, axis=0, weights=p, returned=True),
        lambda a, q: np.average(a, axis=1, weights=q[:3], keepdims=True),
        lambda a: np.average(a, axis=1, returned=True),
        lambda t, p: np.average(t, axis=(1, 0), weights=p.T),
    ],
    np.median: [
        lambda a: np.median(a),
        lambda v: np.median(v),
        lambda t: np.median(t, axis=(0, -1), keepdims=True),
        lambda g: np.median(gaps(g), axis=1),
        lambda v: np.median(1.0 * v, overwrite_input=True),
    ],
    np.quantile: [
        lambda a: np.quantile(a, 0.3),
        lambda f: np.quantile(f, [[0.0, 0.25], [0.8, 1.0]], axis=0),
        lambda t: np.quantile(t, [0.1, 0.7], axis=(0, 2), keepdims=True),
        *[lambda f, m=m: np.quantile(f, [0.13, 0.5, 0.77], axis=1, method=m) for m in _METHODS],
    ],
    np.percentile: [
        lambda a: np.percentile(a, 30),
        lambda a: np.percentile(a, [10, 90], axis=1),
        lambda a: np.percentile(a, [30, 80], 0, weights=[1.0, 3.0], method="inverted_cdf"),
        lambda t: np.percentile(t, 60, (2, 0), weights=_WEIGHTS, method="inverted_cdf"),
        lambda g: np.percentile(gaps(g), 60, weights=g**2, method="inverted_cdf", keepdims=True),
    ],
    np.cumsum: [lambda a: np.cumsum(a), lambda a: np.cumsum(a, axis=1)],
    np.cumprod: [lambda a: np.cumprod(a), lambda a: np.cumprod(a, axis=0)],
    np.cumulative_sum: [
        lambda d: np.cumulative_sum(d),
        lambda d: np.cumulative_sum(d[0], include_initial=True),
        lambda a: np.cumulative_sum(a, axis=1, include_initial=True),
    ],
    np.cumulative_prod: [
        lambda d: np.cumulative_prod(d),
        lambda d: np.cumulative_prod(d[0]),
        lambda a: np.cumulative_prod(a, axis=0, include_initial=True),
    ],
    np.nansum: [
        lambda g: np.nansum(gaps(g)),
        lambda g: np.nansum(gaps(g), axis=1, keepdims=True),
        lambda g, o: np.nansum(gaps(g), axis=1, initial=o, where=FEW),
    ],
    np.nanprod: [
        lambda g: np.nanprod(gaps(g)),
        lambda g: np.nanprod(gaps(g), axis=0),
        lambda g: np.nanprod(gaps(g), where=FEW, initial=2.0),
    ],
    np.nancumsum: [lambda g: np.nancumsum(gaps(g)), lambda g: np.nancumsum(gaps(g), axis=1)],
    np.nancumprod: [lambda g: np.nancumprod(gaps(g)), lambda g: np.nancumprod(gaps(g), axis=0)],
    np.nanmean: [
        lambda g: np.nanmean(gaps(g)),
        lambda g: np.nanmean(gaps(g), axis=1, keepdims=True),
        lambda g: np.nanmean(gaps(g), axis=0, where=FEW),
    ],
    np.nanvar: [
        lambda g: np.nanvar(gaps(g)),
        lambda g: np.nanvar(gaps(g), axis=0, ddof=1),
        lambda c: np.nanvar(c),
        lambda g: np.nanvar(gaps(g), axis=1, where=FEW, keepdims=True),
        lambda g, o: np.nanvar(gaps(g), axis=1, mean=o),
    ],
    np.nanstd: [
        lambda g: np.nanstd(gaps(g)),
        lambda g: np.nanstd(gaps(g), axis=1, correction=1),
        lambda g: np.nanstd(gaps(g), axis=1, where=FEW),
    ],
    np.nanmax: [
        lambda g: np.nanmax(gaps(g)),
        lambda g: np.nanmax(gaps(g), axis=0, keepdims=True),
        lambda g, o: np.nanmax(gaps(g), axis=1, initial=o, where=FEW),
    ],
    np.nanmin: [
        lambda g: np.nanmin(gaps(g)),
        lambda g: np.nanmin(gaps(g), axis=1),
        lambda g, o: np.nanmin(np.where(np.arange(4) < 3, g, np.nan), axis=0, initial=o),
    ],
    np.nanmedian: [
        lambda g: np.nanmedian(gaps(g)),
        lambda g: np.nanmedian(gaps(g), axis=1, keepdims=True),
    ],
    np.nanquantile: [
        lambda g: np.nanquantile(gaps(g), [0.2, 0.6], axis=1),
        lambda g: np.nanquantile(gaps(g), 0.4, axis=0, method="hazen"),
        lambda g: np.nanquantile(gaps(g), [[0.4, 0.5]]),
        lambda g: np.nanquantile(np.where(np.arange(4) < 3, g, np.nan), 0.5, axis=0),
    ],
    np.nanpercentile: [
        lambda g: np.nanpercentile(gaps(g), 60, axis=0),
        lambda g: np.nanpercentile(gaps(g), [[9, 60]], weights=g**2, method="inverted_cdf"),
    ],
    np.cov: [
        lambda a: np.cov(a),
        lambda d, e: np.cov(d, e),
        lambda r: np.cov(r, rowvar=False, bias=True),
        lambda a: np.cov(a[:1], rowvar=False, ddof=0),
        lambda a: np.cov(a, fweights=[1, 2, 1], ddof=0),
        lambda a, q: np.cov(a, aweights=q[:3]),
        lambda a, q: np.cov(a, fweights=[2, 1, 3], aweights=q[:3]),
        lambda c: np.cov(c),
        lambda d: np.cov(d),
    ],
    np.corrcoef: [
        lambda a: np.corrcoef(a),
        lambda d, e: np.corrcoef(d, e),
        lambda r: np.corrcoef(r, rowvar=False),
    ],
    np.bincount: [
        lambda d: np.bincount([1, 0, 1], weights=d),
        lambda d: np.bincount(np.array([1, 0, 1]), d, minlength=5),
    ],
    np.histogram: [
        lambda u: np.histogram(u, bins=4, density=True),
        lambda a: np.histogram(a, bins=3),
        lambda u, p: np.histogram(u, 3, weights=np.ravel(p)),
        lambda u, p: np.histogram(u, 3, weights=np.ravel(p), density=True),
        lambda p: np.histogram(np.arange(6.0), [0, 2, 5.0], weights=np.ravel(p)),
        lambda p: np.histogram(np.arange(6.0), bins=4, range=(1, 6), weights=np.ravel(p)),
    ],
    np.histogram2d: [
        lambda u, p: np.histogram2d(u, np.ravel(p), bins=3, density=True),
        lambda u, p, a: np.histogram2d(u, np.ravel(p), (2, 4), weights=np.ravel(a)),
        lambda a: np.histogram2d(
            np.arange(6.0), [1.0, 2, 3, 4, 4, 9], [0, 2, 5], weights=a.ravel()
        ),
        lambda u, a: np.histogram2d(u, a.ravel(), 3, [[-1, 1], (-2, 1)], weights=u),
    ],
    np.histogramdd: [
        lambda r, w: np.histogramdd(r, bins=2, weights=w, density=True),
        lambda r: np.histogramdd(r, (2, [-1.0, 0.0, 1.0], 3)),
        lambda d, e: np.histogramdd([d, e], 2, [None, (-1, 1)]),
        lambda v: np.histogramdd(v[:, None], 2),
    ],
    np.histogram_bin_edges: [
        lambda a: np.histogram_bin_edges(a),
        lambda a: np.histogram_bin_edges(a, "sturges"),
        lambda q: np.histogram_bin_edges([1.0, 2.0], q),
        lambda a, q: np.histogram_bin_edges(a, 4, (-q[0], q[3])),
        lambda a: np.histogram_bin_edges(a, 4, (2, 2)) * a[0, 0],
    ],
}
