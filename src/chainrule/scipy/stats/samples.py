"""Statistics of samples: means, moments, scores, entropies, distances, transformations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import many_dims
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ArgumentTypeError, ShapeError
from chainrule.implicit import implicit_function
from chainrule.interop.operands import arrays_of, tensor_of
from chainrule.scipy.operands import floats
from chainrule.scipy.stats.description import scipy_stats
from chainrule.scipy.stats.ratios import sp
from chainrule.transforms.gradients import grad

Axis = Any

# --- axes -----------------------------------------------------------------------------------------


def with_axis_last(x: Tensor, axis: Axis) -> Tensor:
    """Return a sample with its axes joined into one, the last; all axes for None."""
    if axis is None:
        return ops.reshape(x, (-1,))
    axes = many_dims(axis, x.ndim) or ()
    if len(axes) == 1:
        return ops.movedim(x, axes[0], -1)
    rest = [i for i in range(x.ndim) if i not in axes]
    moved = ops.permute_dims(x, [*rest, *axes])
    return ops.reshape(moved, (*[x.shape[i] for i in rest], -1))


def kept(found: Any, x: Tensor, axis: Axis, keepdims: bool) -> Any:
    """Return a statistic of a sample `x`, with axes of length one for those that are gone."""
    if not keepdims:
        return found
    axes = range(x.ndim) if axis is None else many_dims(axis, x.ndim) or ()
    for i in sorted(axes):
        found = ops.unsqueeze(found, i)
    return found


def checked(name: str, x: Tensor, nan_policy: str) -> Tensor:
    """Return a sample; raise for NaN if that is asked for, and if NaN are to be left out."""
    if nan_policy == "raise" and np.isnan(arrays_of(x)).any():
        raise ArgumentError("The input contains nan values")
    if nan_policy not in ("propagate", "raise"):
        raise ArgumentError(
            f"{name} of tensors takes nan_policy 'propagate' or 'raise', got {nan_policy!r}: leave "
            "NaN out before, as in x[~np.isnan(x)]"
        )
    return x


def sample(name: str, x: Any, axis: Axis, nan_policy: str) -> tuple[Tensor, Tensor]:
    """Return a sample as a tensor, and with its axis last."""
    (t,) = floats(name, x)
    return t, with_axis_last(checked(name, t, nan_policy), axis)


# --- means ----------------------------------------------------------------------------------------


def power_mean(name: str, a: Any, p: Any, axis: Axis, weights: Any, rest: Any) -> Any:
    """Return the mean of powers, rooted; the geometric mean for p = 0."""
    nan_policy, keepdims = rest
    given = [a] if weights is None else [a, weights]
    x, *more = floats(name, *given)
    values = with_axis_last(checked(name, x, nan_policy), axis)
    w = None
    if more:
        spread = more[0]
        if spread.ndim == 1 and x.ndim > 1 and axis is not None:
            shape = [1] * x.ndim
            shape[axis] = -1
            spread = ops.reshape(spread, shape)
        w = with_axis_last(ops.broadcast_to(spread, x.shape), axis)

    def mean(values: Any) -> Any:
        if w is None:
            return ops.mean(values, dim=-1)
        return ops.sum(w * values, dim=-1) / ops.sum(w, dim=-1)

    is_geometric = not isinstance(p, Tensor) and p == 0
    found = ops.exp(mean(ops.log(values))) if is_geometric else mean(values**p) ** (1 / p)
    return kept(found, x, axis, keepdims)


def gmean(
    a: Any, axis: Axis = 0, dtype: Any = None, weights: Any = None,
    *, nan_policy: str = "propagate", keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return the geometric mean exp(mean(log a)), weighted if `weights` are given."""
    a = a if dtype is None else tensor_of(a).to(np.dtype(dtype))
    return power_mean("gmean", a, 0, axis, weights, (nan_policy, keepdims))


def hmean(
    a: Any, axis: Axis = 0, dtype: Any = None,
    *, weights: Any = None, nan_policy: str = "propagate", keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return the harmonic mean 1 / mean(1 / a), weighted if `weights` are given."""
    a = a if dtype is None else tensor_of(a).to(np.dtype(dtype))
    return power_mean("hmean", a, -1, axis, weights, (nan_policy, keepdims))


def pmean(
    a: Any, p: Any, *, axis: Axis = 0, dtype: Any = None, weights: Any = None,
    nan_policy: str = "propagate", keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return the power mean mean(aᵖ)^(1/p), weighted if `weights` are given."""
    a = a if dtype is None else tensor_of(a).to(np.dtype(dtype))
    return power_mean("pmean", a, p, axis, weights, (nan_policy, keepdims))


def trim_mean(
    a: Any, proportiontocut: float, axis: Axis = 0,
    *, nan_policy: str = "propagate", keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return the mean without a proportion of the smallest and of the largest values."""
    x, values = sample("trim_mean", a, axis, nan_policy)
    count = values.shape[-1]
    cut = int(proportiontocut * count)
    if count and 2 * cut >= count:
        raise ArgumentError("Proportion too big.")
    ordered = ops.sort(values, dim=-1)[0][..., cut : count - cut]
    return kept(ops.mean(ordered, dim=-1), x, axis, keepdims)


# --- moments --------------------------------------------------------------------------------------


def _centred(values: Any, center: Any = None) -> Any:
    return values - (ops.mean(values, dim=-1, keepdim=True) if center is None else center)


def _central(values: Any, order: int) -> Any:
    return ops.mean(_centred(values) ** order, dim=-1)


def moment(
    a: Any, order: Any = 1, axis: Axis = 0, nan_policy: str = "propagate",
    *, center: Any = None, keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return the moment of an order about the mean, or about `center`."""
    x, values = sample("moment", a, axis, nan_policy)
    if np.ndim(order):
        several = [
            moment(x, int(k), axis, nan_policy, center=center, keepdims=keepdims) for k in order
        ]
        return ops.stack(several)
    if order != int(order):
        raise ArgumentError("All elements of `order` must be integral.")
    if order == 0:
        return kept(1 + 0 * ops.mean(values, dim=-1), x, axis, keepdims)
    if order == 1 and center is None:
        return kept(0 * ops.mean(values, dim=-1), x, axis, keepdims)
    found = ops.mean(_centred(values, center) ** int(order), dim=-1)
    return kept(found, x, axis, keepdims)


def _standardised(values: Any, order: int) -> Any:
    """Return a central moment over a power of the variance, NaN where this is rounding."""
    variance = _central(values, 2)
    mean = ops.mean(values, dim=-1)
    rounding = np.finfo(values.dtype).resolution
    is_constant = variance <= ops.square(rounding * mean.detach())
    safe = ops.where(is_constant, 1.0, variance)
    return ops.where(is_constant, math.nan, _central(values, order) / safe ** (order / 2))


def skew(
    a: Any, axis: Axis = 0, bias: bool = True, nan_policy: str = "propagate",
    *, keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return the skewness m₃/m₂^(3/2), corrected for bias if `bias` is false."""
    x, values = sample("skew", a, axis, nan_policy)
    found, n = _standardised(values, 3), values.shape[-1]
    if not bias and n > 2:
        found = math.sqrt((n - 1.0) * n) / (n - 2.0) * found
    return kept(found, x, axis, keepdims)


def kurtosis(
    a: Any, axis: Axis = 0, fisher: bool = True, bias: bool = True,
    nan_policy: str = "propagate", *, keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return the kurtosis m₄/m₂², less 3 if `fisher` is true."""
    x, values = sample("kurtosis", a, axis, nan_policy)
    found, n = _standardised(values, 4), values.shape[-1]
    if not bias and n > 3:
        excess = ((n * n - 1.0) * found - 3 * (n - 1.0) ** 2) / ((n - 2.0) * (n - 3.0))
        found = excess + 3.0
    return kept(found - 3.0 if fisher else found, x, axis, keepdims)


def _std(values: Any, ddof: Any) -> Any:
    return ops.std(values, dim=-1, correction=ddof)


def sem(
    a: Any, axis: Axis = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Any:
    """Return the standard error of the mean."""
    x, values = sample("sem", a, axis, nan_policy)
    return kept(_std(values, ddof) / math.sqrt(values.shape[-1]), x, axis, keepdims)


def variation(
    a: Any, axis: Axis = 0, nan_policy: str = "propagate", ddof: int = 0, *, keepdims: bool = False
) -> Any:
    """Return the standard deviation over the mean."""
    x, values = sample("variation", a, axis, nan_policy)
    return kept(_std(values, ddof) / ops.mean(values, dim=-1), x, axis, keepdims)


# --- scores ---------------------------------------------------------------------------------------


def zmap(
    scores: Any, compare: Any, axis: Axis = 0, ddof: int = 0, nan_policy: str = "propagate"
) -> Any:
    """Return `scores` less the mean of `compare`, over its standard deviation."""
    scores, x = floats("zmap", scores, compare)
    x = checked("zmap", x, nan_policy)
    dims = None if axis is None else axis
    if x.shape == ():
        return scores * math.nan
    mean = ops.mean(x, dim=dims, keepdim=True)
    std = ops.std(x, dim=dims, correction=ddof, keepdim=True)
    first = ops.amin(x.detach(), dim=dims, keepdim=True) == ops.amax(
        x.detach(), dim=dims, keepdim=True
    )
    std = ops.where(first, math.nan, std)  # of equal numbers, the deviation is rounding
    return (scores - mean) / std


def zscore(a: Any, axis: Axis = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """Return the standard scores of a sample: less its mean, over its standard deviation."""
    return zmap(a, a, axis, ddof, nan_policy)


def gzscore(a: Any, *, axis: Axis = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """Return the standard scores of the logarithms."""
    return zscore(ops.log(floats("gzscore", a)[0]), axis, ddof, nan_policy)


def gstd(a: Any, axis: Axis = 0, ddof: int = 1, *, keepdims: bool = False,
         nan_policy: str = "propagate") -> Any:  # fmt: skip
    """Return the geometric standard deviation: exp of that of the logarithms."""
    x, values = sample("gstd", a, axis, nan_policy)
    return kept(ops.exp(_std(ops.log(values), ddof)), x, axis, keepdims)


# --- entropy, and distances of distributions ------------------------------------------------------


def entropy(
    pk: Any, qk: Any = None, base: Any = None, axis: Axis = 0,
    *, nan_policy: str = "propagate", keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return the entropy of probabilities, or the relative entropy with respect to `qk`.

    Both are divided by their sums. Derivatives: those of the normalised probabilities, too.
    """
    given = [pk] if qk is None else [pk, qk]
    if base is not None and not isinstance(base, Tensor) and base <= 0:
        raise ArgumentError("`base` must be a positive number or `None`.")
    x, *rest = ops.broadcast_tensors(*floats("entropy", *given))
    p = with_axis_last(checked("entropy", x, nan_policy), axis)
    p = p / ops.sum(p, dim=-1, keepdim=True)
    if rest:
        q = with_axis_last(rest[0], axis)
        found = ops.sum(sp.rel_entr(p, q / ops.sum(q, dim=-1, keepdim=True)), dim=-1)
    else:
        found = ops.sum(sp.entr(p), dim=-1)
    return kept(found if base is None else found / math.log(base), x, axis, keepdims)


def _weights_of(values: Tensor, weights: Any) -> Any:
    """Return weights that sum to one."""
    if weights is None:
        return ops.broadcast_to(np.asarray(1 / values.shape[0], values.dtype), values.shape)
    w = floats("weights", values, weights)[1]
    if w.shape != values.shape:
        raise ShapeError(
            f"expected as many weights as values, got {list(w.shape)} and {list(values.shape)}"
        )
    return w / ops.sum(w)


def _cdf_distance(name: str, p: int, u: Any, v: Any, u_weights: Any, v_weights: Any) -> Any:
    """Return (∫ |U - V|ᵖ dx)^(1/p) of the distribution functions of two weighted samples."""
    u, v = floats(name, u, v)
    if u.ndim != 1 or v.ndim != 1 or not u.shape[0] or not v.shape[0]:
        raise ShapeError(f"{name}: expected two vectors of values, got {u.shape} and {v.shape}")
    every, order = ops.sort(ops.cat([u, v]))
    mass = ops.cat([_weights_of(u, u_weights), -_weights_of(v, v_weights)])[order]
    difference = ops.cumsum(mass, dim=0)[:-1]
    steps = every[1:] - every[:-1]
    if p == 1:
        return ops.sum(ops.abs(difference) * steps)
    total = ops.sum(ops.square(difference) * steps)
    zero = total == 0
    return ops.where(zero, 0.0, ops.sqrt(ops.where(zero, 1.0, total)))


def wasserstein_distance(
    u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None
) -> Any:
    """Return the Wasserstein-1 distance of two samples on the line.

    Derivatives: with respect to values and weights, the order of the values given.
    """
    return _cdf_distance("wasserstein_distance", 1, u_values, v_values, u_weights, v_weights)


def energy_distance(
    u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None
) -> Any:
    """Return the energy distance of two samples on the line."""
    found = _cdf_distance("energy_distance", 2, u_values, v_values, u_weights, v_weights)
    return math.sqrt(2) * found


# --- transformations to normality -----------------------------------------------------------------


def _likeliest_power(name: str, x: Any) -> Any:
    """Return the power that SciPy finds, where the slope of the likelihood is zero."""
    likelihood: Any = boxcox_llf if name == "boxcox" else yeojohnson_llf

    def solver(x: Any) -> Any:
        return getattr(scipy_stats, name)(arrays_of(x))[1]

    return implicit_function(solver, lambda power, x: grad(lambda p: likelihood(p, x))(power))(x)


def boxcox(x: Any, lmbda: Any = None, alpha: Any = None, optimizer: Any = None) -> Any:
    """Return Box and Cox's transformation (xᵝ - 1)/β for a power `lmbda`.

    Without it, return that of the likeliest power, and the power.
    """
    if lmbda is None:
        if alpha is not None or optimizer is not None:
            raise ArgumentTypeError(
                "boxcox of tensors takes no alpha and no optimizer: the interval has no derivative"
            )
        lmbda = _likeliest_power("boxcox", x)
        return sp.boxcox(*floats("boxcox", x, lmbda)), lmbda
    return sp.boxcox(*floats("boxcox", x, lmbda))


def boxcox_llf(
    lmb: Any, data: Any, *, axis: Axis = 0, keepdims: bool = False, nan_policy: str = "propagate"
) -> Any:
    """Return the log-likelihood of Box and Cox's power, the normal's parameters maximised out."""
    lmb, x = floats("boxcox_llf", lmb, data)
    values = with_axis_last(checked("boxcox_llf", x, nan_policy), axis)
    count = values.shape[-1]
    # In units in which no power overflows: the same for any unit, so that it counts as constant.
    low, high = [f(values, dim=-1, keepdim=True).detach() for f in (ops.amin, ops.amax)]
    unit = ops.where(lmb < 0, low, high)
    logs = ops.sum(ops.log(values), dim=-1)
    spread = ops.log(ops.var(sp.boxcox(values / unit, lmb), dim=-1, correction=0))
    log_variance = 2 * lmb * ops.log(unit)[..., 0] + spread
    found = (lmb - 1) * logs - count / 2 * log_variance
    return kept(found, x, axis, keepdims)


def _yeo_johnson(x: Any, lmb: Any) -> Any:
    positive = x >= 0
    right = sp.boxcox1p(ops.where(positive, x, 0.0), lmb)
    left = -sp.boxcox1p(ops.where(positive, 0.0, -x), 2 - lmb)
    return ops.where(positive, right, left)


def yeojohnson(x: Any, lmbda: Any = None) -> Any:
    """Return Yeo and Johnson's transformation for a power `lmbda`.

    Without it, return that of the likeliest power, and the power.
    """
    if lmbda is None:
        lmbda = _likeliest_power("yeojohnson", x)
        return _yeo_johnson(*floats("yeojohnson", x, lmbda)), lmbda
    return _yeo_johnson(*floats("yeojohnson", x, lmbda))


def yeojohnson_llf(
    lmb: Any, data: Any, *, axis: Axis = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """Return the log-likelihood of Yeo and Johnson's power."""
    lmb, x = floats("yeojohnson_llf", lmb, data)
    values = with_axis_last(checked("yeojohnson_llf", x, nan_policy), axis)
    variance = ops.var(_yeo_johnson(values, lmb), dim=-1, correction=0)
    jacobian = ops.sum(ops.sign(values) * ops.log1p(ops.abs(values)), dim=-1)
    found = -values.shape[-1] / 2 * ops.log(variance) + (lmb - 1) * jacobian
    return kept(found, x, axis, keepdims)


# --- differential entropy of a sample -------------------------------------------------------------


def differential_entropy(
    values: Any, *, window_length: int | None = None, base: Any = None, axis: Axis = 0,
    method: str = "auto", nan_policy: str = "propagate", keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return an estimate of the differential entropy from the spacings of the ordered sample."""
    x, y = sample("differential_entropy", values, axis, nan_policy)
    n = y.shape[-1]
    m = window_length if window_length is not None else math.floor(math.sqrt(n) + 0.5)
    if not 2 <= 2 * m < n:
        raise ArgumentError(f"Window length ({m}) must be positive and less than half the sample "
                         f"size ({n}).")  # fmt: skip
    if method == "auto":
        method = "van es" if n <= 10 else "ebrahimi" if n <= 1000 else "vasicek"
    if method not in ("vasicek", "van es", "ebrahimi", "correa"):
        raise ArgumentError(f"`method` must be one of 'auto', 'vasicek', 'van es', got {method!r}")
    ordered = ops.sort(y, dim=-1)[0]
    found = _ESTIMATES[method](ordered, m, n)
    return kept(found if base is None else found / math.log(base), x, axis, keepdims)


def _padded(ordered: Any, m: int) -> Any:
    shape = (*ordered.shape[:-1], m)
    low = ops.broadcast_to(ordered[..., :1], shape)
    high = ops.broadcast_to(ordered[..., -1:], shape)
    return ops.cat([low, ordered, high], dim=-1)


def _vasicek(ordered: Any, m: int, n: int) -> Any:
    padded = _padded(ordered, m)
    differences = padded[..., 2 * m :] - padded[..., : -2 * m]
    return ops.mean(ops.log(n / (2 * m) * differences), dim=-1)


def _van_es(ordered: Any, m: int, n: int) -> Any:
    difference = ordered[..., m:] - ordered[..., :-m]
    first = ops.sum(ops.log((n + 1) / m * difference), dim=-1) / (n - m)
    k = np.arange(m, n + 1)
    return first + float(np.sum(1 / k) + np.log(m) - np.log(n + 1))


def _ebrahimi(ordered: Any, m: int, n: int) -> Any:
    padded = _padded(ordered, m)
    differences = padded[..., 2 * m :] - padded[..., : -2 * m]
    i = np.arange(1, n + 1)
    factor = np.full(n, 2.0, ordered.dtype)
    factor[i <= m] = 1 + (i[i <= m] - 1) / m
    factor[i >= n - m + 1] = 1 + (n - i[i >= n - m + 1]) / m
    return ops.mean(ops.log(n * differences / (factor * m)), dim=-1)


def _correa(ordered: Any, m: int, n: int) -> Any:
    padded = _padded(ordered, m)
    index = np.arange(n)[:, None] + np.arange(2 * m + 1)[None, :]
    windows = padded[..., index]
    j = np.arange(-m, m + 1).astype(ordered.dtype)
    means = ops.mean(windows, dim=-1, keepdim=True)
    difference = windows - means
    slope = ops.sum(difference * j, dim=-1) / (n * ops.sum(ops.square(difference), dim=-1))
    return -ops.mean(ops.log(slope), dim=-1)


_ESTIMATES = {"vasicek": _vasicek, "van es": _van_es, "ebrahimi": _ebrahimi, "correa": _correa}
