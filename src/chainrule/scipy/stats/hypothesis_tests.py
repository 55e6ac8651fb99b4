"""Hypothesis tests whose statistic and p-value are smooth, with SciPy's arguments and results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.backend import holds_somewhere
from chainrule.errors import ArgumentError, ArgumentTypeError, ShapeError
from chainrule.scipy.operands import floats
from chainrule.scipy.stats.ratios import sp
from chainrule.scipy.stats.samples import checked, kept, kurtosis, skew, with_axis_last

Axis = Any


class _Significance(NamedTuple):
    statistic: Any
    pvalue: Any


class ConfidenceInterval(NamedTuple):
    """Both ends of an interval of confidence."""

    low: Any
    high: Any


Ends = Callable[[float], tuple[Any, Any]]


class SignificanceResult(_Significance):
    """The statistic and the p-value of a test, and for Student's the degrees of freedom `df`."""

    df: Any = None
    ends: Ends | None = None

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Return the interval that contains the estimate's true value so often."""
        if self.ends is None:
            raise AttributeError("this test of tensors has no confidence_interval")
        return ConfidenceInterval(*self.ends(confidence_level))

    def map_parts(self, function: Callable[[Any], Any]) -> SignificanceResult:
        """Return the result with a function applied to all of its parts."""
        made = SignificanceResult(function(self.statistic), function(self.pvalue))
        made.df, ends = function(self.df), self.ends
        if ends is not None:
            low_and_high = ends
            made.ends = lambda level: tuple([function(end) for end in low_and_high(level)])
        return made


class LinregressResult(NamedTuple):
    """A line through points, as SciPy's: the fields in the order in which it is unpacked."""

    slope: Any
    intercept: Any
    rvalue: Any
    pvalue: Any
    stderr: Any


class _Linregress(LinregressResult):
    intercept_stderr: Any = None

    def map_parts(self, function: Callable[[Any], Any]) -> _Linregress:
        made = _Linregress(*[function(part) for part in self])
        made.intercept_stderr = function(self.intercept_stderr)
        return made


def _constant(like: Tensor, value: Any) -> Tensor:
    """Return a number, or numbers that broadcast, in the shape and the dtype of a tensor."""
    number = np.asarray(value, like.dtype)
    return ops.broadcast_to(number, np.broadcast_shapes(like.shape, number.shape))


# --- p-values -------------------------------------------------------------------------------------


def _unknown_alternative(alternative: Any) -> ArgumentError:
    return ArgumentError(
        f"`alternative` must be 'less', 'greater', or 'two-sided', got {alternative!r}"
    )


def _student_pvalue(t: Any, df: Any, alternative: str) -> Any:
    if alternative == "less":
        return sp.stdtr(df, t)
    if alternative == "greater":
        return sp.stdtr(df, -t)
    if alternative == "two-sided":
        return 2 * sp.stdtr(df, -ops.abs(t))
    raise _unknown_alternative(alternative)


def _of_student(
    t: Any, df: Any, alternative: str, keep: Callable[[Any], Any], estimate: Any, error: Any
) -> Any:
    df = df if isinstance(df, Tensor) else _constant(t, df)
    made = SignificanceResult(keep(t), keep(_student_pvalue(t, df, alternative)))
    made.df = keep(df)

    def reach(level: float) -> Any:
        return sp.stdtrit(df, _constant(t, level)) * error

    def ends(level: float) -> tuple[Any, Any]:
        low, high = _ends(estimate, reach, alternative, level)
        return keep(low), keep(high)

    made.ends = ends
    return made


def _ends(
    estimate: Any, reach: Callable[[float], Any], alternative: str, level: float
) -> tuple[Any, Any]:
    """Return both ends of an interval around an estimate; `reach` returns its quantiles."""
    unbounded = _constant(estimate, np.inf)
    if alternative == "less":
        return -unbounded, estimate + reach(level)
    if alternative == "greater":
        return estimate - reach(level), unbounded
    half = reach((1 + level) / 2)
    return estimate - half, estimate + half


# --- Student's ------------------------------------------------------------------------------------


def _mean_and_variance(values: Any) -> tuple[Any, Any]:
    return ops.mean(values, dim=-1), ops.var(values, dim=-1, correction=1)


def ttest_1samp(
    a: Any, popmean: Any, axis: Axis = 0, nan_policy: str = "propagate",
    alternative: str = "two-sided", *, keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return Student's t for the mean of a sample, and its p-value."""
    x, popmean = floats("ttest_1samp", a, popmean)
    if popmean.ndim and axis is not None and popmean.ndim == x.ndim:
        if popmean.shape[axis] != 1:
            raise ArgumentError("`popmean.shape[axis]` must equal 1.")
        popmean = ops.squeeze(popmean, axis)
    values = with_axis_last(checked("ttest_1samp", x, nan_policy), axis)
    count = values.shape[-1]
    mean, variance = _mean_and_variance(values)
    error = ops.sqrt(variance / count)
    t = (mean - popmean) / error

    def keep(found: Any) -> Any:
        return kept(found, x, axis, keepdims)

    return _of_student(t, count - 1, alternative, keep, mean, error)


def ttest_rel(
    a: Any, b: Any, axis: Axis = 0, nan_policy: str = "propagate", alternative: str = "two-sided",
    *, keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return Student's t for the mean of the differences of two related samples."""
    a, b = floats("ttest_rel", a, b)
    return ttest_1samp(a - b, 0.0, axis, nan_policy, alternative, keepdims=keepdims)


def ttest_ind(
    a: Any, b: Any, *, axis: Axis = 0, equal_var: bool = True, nan_policy: str = "propagate",
    alternative: str = "two-sided", trim: float = 0, method: Any = None, keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return Student's t for the means of two samples, or Welch's if `equal_var` is false."""
    if trim or method is not None:
        raise ArgumentError(
            "ttest_ind of tensors takes neither trim nor method: trimmed and resampled statistics "
            "depend on the order of the data. Pass x.detach().numpy()"
        )
    a, b = floats("ttest_ind", a, b)
    first, second = [with_axis_last(checked("ttest_ind", x, nan_policy), axis) for x in (a, b)]
    (m1, v1), (m2, v2) = _mean_and_variance(first), _mean_and_variance(second)
    t, df = _two_means(m1, v1, first.shape[-1], m2, v2, second.shape[-1], equal_var)

    def keep(found: Any) -> Any:
        return kept(found, a, axis, keepdims)

    return _of_student(t, df, alternative, keep, m1 - m2, (m1 - m2) / t)


def _two_means(m1: Any, v1: Any, n1: Any, m2: Any, v2: Any, n2: Any, equal_var: bool) -> Any:
    """Return t and the degrees of freedom of two samples (B. L. Welch, Biometrika 34, 1947)."""
    if equal_var:
        df = n1 + n2 - 2
        pooled = ((n1 - 1) * v1 + (n2 - 1) * v2) / df
        return (m1 - m2) / ops.sqrt(pooled * (1 / n1 + 1 / n2)), df
    e1, e2 = v1 / n1, v2 / n2
    df = ops.square(e1 + e2) / (ops.square(e1) / (n1 - 1) + ops.square(e2) / (n2 - 1))
    return (m1 - m2) / ops.sqrt(e1 + e2), df


def ttest_ind_from_stats(
    mean1: Any, std1: Any, nobs1: Any, mean2: Any, std2: Any, nobs2: Any,
    equal_var: bool = True, alternative: str = "two-sided",
) -> Any:  # fmt: skip
    """Return Student's t for two means, given deviations and numbers of observations."""
    m1, s1, n1, m2, s2, n2 = floats("ttest_ind_from_stats", mean1, std1, nobs1, mean2, std2, nobs2)
    t, df = _two_means(m1, ops.square(s1), n1, m2, ops.square(s2), n2, equal_var)
    df = df if isinstance(df, Tensor) else _constant(t, df)
    return SignificanceResult(t, _student_pvalue(t, df, alternative))


# --- correlation ----------------------------------------------------------------------------------


def _largest(part: Any) -> Any:
    largest = ops.amax(ops.abs(part.detach()), dim=-1, keepdim=True)
    return ops.where(largest == 0, 1.0, largest)


def _of_pairs(name: str, x: Any, y: Any, axis: Axis, scaled: bool = False) -> Any:
    """Return means and mean squares of two samples, the latter about the means."""
    x, y = floats(name, x, y)
    x, y = with_axis_last(x, axis), with_axis_last(y, axis)
    if x.shape[-1] != y.shape[-1] or x.shape[-1] < 2:
        raise ShapeError(
            f"{name}: expected samples of one length, two at least, got {x.shape[-1]} and "
            f"{y.shape[-1]}"
        )
    mean_x, mean_y = ops.mean(x, dim=-1), ops.mean(y, dim=-1)
    dx, dy = x - mean_x[..., None], y - mean_y[..., None]
    if scaled:  # so that squares neither overflow nor underflow
        dx, dy = [part / _largest(part) for part in (dx, dy)]
    return mean_x, mean_y, *[ops.mean(part, dim=-1) for part in (dx * dx, dx * dy, dy * dy)]


def pearsonr(
    x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: Axis = 0
) -> Any:
    """Return Pearson's correlation of two samples, and its p-value for normal ones."""
    if method is not None:
        raise ArgumentError("pearsonr of tensors takes no method: pass x.detach().numpy()")
    _, _, xx, xy, yy = _of_pairs("pearsonr", x, y, axis, scaled=True)
    r = ops.clamp(xy / (ops.sqrt(xx) * ops.sqrt(yy)), -1.0, 1.0)
    count = with_axis_last(floats("pearsonr", x, y)[0], axis).shape[-1]
    if count == 2:
        return SignificanceResult(ops.round(r), _constant(r, 1))
    half = _constant(r, count / 2 - 1)

    def tail(r: Any) -> Any:
        """Return the probability of a larger correlation: beta on (-1, 1)."""
        return sp.betaincc(half, half, (1 + r) / 2)

    tails = {
        "two-sided": lambda: 2 * tail(ops.abs(r)),
        "greater": lambda: tail(r),
        "less": lambda: tail(-r),
    }
    if alternative not in tails:
        raise _unknown_alternative(alternative)
    made = SignificanceResult(r, tails[alternative]())

    def ends(level: float) -> tuple[Any, Any]:  # by Fisher's transformation
        error = 1 / np.sqrt(count - 3) if count > 3 else np.nan

        def reach(level: float) -> Any:
            return sp.ndtri(_constant(r, level)) * error

        low, high = _ends(ops.arctanh(r), reach, alternative, level)
        return ops.tanh(low), ops.tanh(high)

    made.ends = ends
    return made


_TINY = 1e-20


def linregress(
    x: Any, y: Any, alternative: str = "two-sided", *, axis: Axis = 0,
    nan_policy: str = "propagate", keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return the line through points by least squares, and a test of its slope."""
    if nan_policy != "propagate" or keepdims:
        raise ArgumentError("linregress of tensors takes neither nan_policy nor keepdims")
    mean_x, mean_y, xx, xy, yy = _of_pairs("linregress", x, y, axis)
    if holds_somewhere((xx == 0)._array):
        raise ArgumentError("Cannot calculate a linear regression if all x values are identical")
    count = with_axis_last(floats("linregress", x, y)[0], axis).shape[-1]
    flat = yy == 0
    r = ops.clamp(xy / ops.sqrt(xx * ops.where(flat, 1.0, yy)), -1.0, 1.0)
    slope = xy / xx
    intercept = mean_y - slope * mean_x
    df = count - 2
    if df == 0:
        nothing = _constant(r, 0)
        made = _Linregress(slope, intercept, r, ops.where(yy == 0, 1.0, nothing), nothing)
        made.intercept_stderr = nothing
        return made
    t = r * ops.sqrt(df / ((1.0 - r + _TINY) * (1.0 + r + _TINY)))
    error = ops.sqrt((1 - r * r) * yy / xx / df)
    pvalue = _student_pvalue(t, _constant(t, df), alternative)
    made = _Linregress(slope, intercept, r, pvalue, error)
    made.intercept_stderr = error * ops.sqrt(xx + mean_x * mean_x)
    return made


# --- variances and frequencies --------------------------------------------------------------------


def _groups(name: str, samples: Any, axis: Axis, nan_policy: str) -> tuple[Any, list[Any]]:
    if len(samples) < 2:
        raise ArgumentTypeError(f"{name}: expected at least two samples, got {len(samples)}")
    found = floats(name, *samples)
    return found[0], [with_axis_last(checked(name, x, nan_policy), axis) for x in found]


def _sum(parts: Any) -> Any:
    return functools.reduce(ops.add, parts)


def f_oneway(
    *samples: Any, axis: Axis = 0, equal_var: bool = True, nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return F of the analysis of variance of several samples; Welch's for unequal variances."""
    like, groups = _groups("f_oneway", samples, axis, nan_policy)
    counts = [x.shape[-1] for x in groups]
    k, total = len(groups), sum(counts)
    center = _sum([ops.sum(x.detach(), dim=-1, keepdim=True) for x in groups]) / total
    groups = [x - center for x in groups]  # as it is large in some data, where sums would cancel
    means = [ops.mean(x, dim=-1) for x in groups]
    if equal_var:
        grand = _sum([n * m for n, m in zip(counts, means, strict=True)]) / total
        between = _sum([n * ops.square(m - grand) for n, m in zip(counts, means, strict=True)])
        within = _sum(
            [n * ops.var(x, dim=-1, correction=0) for n, x in zip(counts, groups, strict=True)]
        )
        f, df = (between / (k - 1)) / (within / (total - k)), total - k
    else:
        f, df = _welch(counts, means, [ops.var(x, dim=-1, correction=1) for x in groups])
    df = df if isinstance(df, Tensor) else _constant(f, df)
    pvalue = sp.fdtrc(_constant(f, k - 1), df, f)
    return SignificanceResult(*[kept(part, like, axis, keepdims) for part in (f, pvalue)])


def _welch(counts: list[int], means: list[Any], variances: list[Any]) -> tuple[Any, Any]:
    """Return F and its second degrees of freedom (B. L. Welch, Biometrika 38, 1951)."""
    k = len(counts)
    weights = [n / v for n, v in zip(counts, variances, strict=True)]
    total = _sum(weights)
    grand = _sum([w * m for w, m in zip(weights, means, strict=True)]) / total
    between = _sum([w * ops.square(m - grand) for w, m in zip(weights, means, strict=True)])
    rest = _sum([ops.square(1 - w / total) / (n - 1) for w, n in zip(weights, counts, strict=True)])
    f = between / (k - 1) / (1 + 2 * (k - 2) / (k * k - 1) * rest)
    return f, (k * k - 1) / (3 * rest)


def bartlett(
    *samples: Any, axis: Axis = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """Return Bartlett's statistic of equal variances of normal samples."""
    like, groups = _groups("bartlett", samples, axis, nan_policy)
    counts = [x.shape[-1] for x in groups]
    k, rest = len(groups), sum(counts) - len(groups)
    variances = [ops.var(x, dim=-1, correction=1) for x in groups]
    pairs = [*zip(counts, variances, strict=True)]
    pooled = _sum([(n - 1) * v for n, v in pairs]) / rest
    numerator = rest * ops.log(pooled) - _sum([(n - 1) * ops.log(v) for n, v in pairs])
    denominator = 1 + (sum(1 / (n - 1) for n in counts) - 1 / rest) / (3 * (k - 1))
    return _of_chi2(numerator / denominator, k - 1, like, axis, keepdims)


def _of_chi2(statistic: Any, df: Any, like: Any, axis: Axis, keepdims: bool) -> Any:
    pvalue = sp.chdtrc(_constant(statistic, df), statistic)
    return SignificanceResult(*[kept(x, like, axis, keepdims) for x in (statistic, pvalue)])


_POWERS = {
    "pearson": 1.0,
    "log-likelihood": 0.0,
    "freeman-tukey": -0.5,
    "mod-log-likelihood": -1.0,
    "neyman": -2.0,
    "cressie-read": 2 / 3,
}


def power_divergence(
    f_obs: Any, f_exp: Any = None, ddof: int = 0, axis: Axis = 0, lambda_: Any = None,
    *, nan_policy: str = "propagate", keepdims: bool = False, sum_check: bool = True,
) -> Any:  # fmt: skip
    """Return the divergence of observed from expected frequencies, and its p-value."""
    power = 1.0 if lambda_ is None else _POWERS.get(lambda_, lambda_)
    if isinstance(power, str):
        raise ArgumentError(f"invalid string for lambda_: {power!r}. Valid strings are "
                         f"{', '.join(map(repr, _POWERS))}")  # fmt: skip
    given = [f_obs] if f_exp is None else [f_obs, f_exp]
    like, *rest = ops.broadcast_tensors(*floats("power_divergence", *given))
    observed = with_axis_last(checked("power_divergence", like, nan_policy), axis)
    if rest:
        expected = with_axis_last(rest[0], axis)
        sums = [ops.sum(x.detach(), dim=-1) for x in (observed, expected)]
        least = ops.minimum(sums[0], sums[1])
        if sum_check and holds_somewhere((ops.abs(sums[0] - sums[1]) > 1.5e-8 * least)._array):
            raise ArgumentError(
                "For each axis slice, the sum of the observed frequencies must agree with the sum "
                "of the expected frequencies to a relative tolerance of 1.5e-08: scale f_exp by "
                "f_obs.sum() / f_exp.sum()"
            )
    else:
        expected = ops.mean(observed, dim=-1, keepdim=True)
    if power == 1:
        terms = ops.square(observed - expected) / expected
    elif power == 0:
        terms = 2.0 * sp.xlogy(observed, observed / expected)
    elif power == -1:
        terms = 2.0 * sp.xlogy(expected, expected / observed)
    else:
        terms = observed * ((observed / expected) ** power - 1) / (0.5 * power * (power + 1))
    df = observed.shape[-1] - 1 - ddof
    return _of_chi2(ops.sum(terms, dim=-1), df, like, axis, keepdims)


def chisquare(
    f_obs: Any, f_exp: Any = None, ddof: int = 0, axis: Axis = 0, *, sum_check: bool = True,
    nan_policy: str = "propagate", keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return Pearson's χ² of observed and expected frequencies, and its p-value."""
    return power_divergence(
        f_obs, f_exp, ddof, axis, "pearson",
        nan_policy=nan_policy, keepdims=keepdims, sum_check=sum_check,
    )  # fmt: skip


def jarque_bera(
    x: Any, *, axis: Axis = None, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """Return Jarque and Bera's statistic of normality, and its p-value."""
    (t,) = floats("jarque_bera", x)
    values = with_axis_last(checked("jarque_bera", t, nan_policy), axis)
    s, k = skew(values, -1), kurtosis(values, -1)
    statistic = values.shape[-1] / 6 * (s * s + k * k / 4)
    return _of_chi2(statistic, 2, t, axis, keepdims)
