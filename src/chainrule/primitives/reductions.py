"""Reductions and cumulative operations along axes.

In reductions `axis` is None or a tuple of non-negative ints.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule.primitives.primitive import (
    constant,
    general,
    is_complex,
    linear,
    symmetric,
    use_kernel,
)

Array = Any
Axes = tuple[int, ...] | None


def kept(shape: tuple[int, ...], axis: Axes) -> tuple[int, ...]:
    """Return the shape with the reduced axes kept, of length 1."""
    if axis is None:
        return (1,) * len(shape)
    return tuple([1 if i in axis else n for i, n in enumerate(shape)])


def _broadcast_back(xp: Any, g: Array, shape: tuple[int, ...], axis: Axes, keepdims: bool) -> Array:
    """Return `g`, the cotangent of a reduction, repeated along the reduced axes."""
    if axis is not None and not keepdims:
        g = xp.reshape(g, kept(shape, axis))
    return xp.spread(g, shape)


def _sum_vjp(xp: Any, g: Array, x_shape: Any, *, axis: Axes, keepdims: bool) -> Array:
    if axis is None or keepdims:
        return xp.spread(g, x_shape)
    return _broadcast_back(xp, g, x_shape, axis, keepdims)


sum = linear("sum", _sum_vjp, form="reduction")


def _count(shape: tuple[int, ...], axis: Axes) -> int:
    return math.prod(shape if axis is None else [shape[i] for i in axis])


def _mean_vjp(xp: Any, g: Array, x_shape: Any, *, axis: Axes, keepdims: bool) -> Array:
    n = _count(x_shape, axis)
    return _broadcast_back(xp, g / n if n else g * math.nan, x_shape, axis, keepdims)


mean = linear("mean", _mean_vjp, form="reduction")


def _extremum_mask(
    xp: Any, x: Array, out: Array, axis: Axes, keepdims: bool
) -> tuple[Array, Array]:
    """Return the mask of the extremum (nan included), and its count along the axes."""
    top = out if keepdims else xp.reshape(out, kept(x.shape, axis))
    hit = xp.logical_or(x == top, x != x)
    return hit, xp.sum(xp.astype(hit, x.dtype), axis=axis, keepdims=True)


def _extremum_vjp(xp: Any, g: Array, x: Array, out: Array, *, axis: Axes, keepdims: bool) -> Array:
    hit, count = _extremum_mask(xp, x, out, axis, keepdims)
    return xp.masked(_broadcast_back(xp, g, x.shape, axis, keepdims) / count, hit)


def _extremum_jvp(xp: Any, t: Array, x: Array, out: Array, *, axis: Axes, keepdims: bool) -> Array:
    hit, count = _extremum_mask(xp, x, out, axis, keepdims)
    return xp.sum(xp.masked(t / count, hit), axis=axis, keepdims=keepdims)


max = general(
    "max", None, vjp=(_extremum_vjp,), jvp=(_extremum_jvp,), label="MaxBackward0", form="reduction"
)
min = general(
    "min", None, vjp=(_extremum_vjp,), jvp=(_extremum_jvp,), label="MinBackward0", form="reduction"
)


def products_of_others(xp: Any, x: Array, axis: Axes) -> Array:
    """Return for each element the product of all others along `axis`, exact where there are zeros.

    It is the product of those before times that of those after: without division.
    """
    shape = x.shape
    axes = tuple(range(len(shape))) if axis is None else axis
    kept = tuple([i for i in range(len(shape)) if i not in axes])
    order = kept + axes
    rows = xp.reshape(
        xp.permute_dims(x, order), (math.prod([shape[i] for i in kept]), _count(shape, axes))
    )
    if rows.shape[1] == 0:
        return x
    others = xp.reshape(_row_products_of_others(xp, rows), tuple([shape[i] for i in order]))
    return xp.permute_dims(others, tuple([order.index(i) for i in range(len(shape))]))


@use_kernel
def _row_products_of_others(xp: Any, rows: Array) -> Array:
    ones = xp.ones_like(rows[:, :1])
    before = xp.cumulative_prod(xp.concat([ones, rows[:, :-1]], axis=1), axis=1)
    after = xp.cumulative_prod(xp.concat([ones, xp.flip(rows[:, 1:], axis=1)], axis=1), axis=1)
    return before * xp.flip(after, axis=1)


def _prod_vjp(xp: Any, g: Array, x: Array, *, axis: Axes, keepdims: bool) -> Array:
    return _broadcast_back(xp, g, x.shape, axis, keepdims) * products_of_others(xp, x, axis)


def _prod_jvp(xp: Any, t: Array, x: Array, *, axis: Axes, keepdims: bool) -> Array:
    return xp.sum(t * products_of_others(xp, x, axis), axis=axis, keepdims=keepdims)


prod = general("prod", None, vjp=(_prod_vjp,), jvp=(_prod_jvp,), form="reduction")


@use_kernel
def _cumulative_sum_vjp(xp: Any, g: Array, *, axis: int) -> Array:
    return xp.flip(xp.cumulative_sum(xp.flip(g, axis=axis), axis=axis), axis=axis)


cumulative_sum = linear(
    "cumulative_sum",
    lambda xp, g, *, axis: _cumulative_sum_vjp(xp, g, axis=axis),
    label="CumsumBackward0",
)


def _linear_recurrence(xp: Any, v: Array, ratios: Array) -> Array:
    """Return s with s_0 = v_0, s_k = v_k + ratio_k s_(k-1) along the last axis, in log n doublings.

    Each step reaches twice as far back (Hillis, Steele, Commun. ACM 29(12), 1986). There is one
    ratio fewer than values: the first value has no predecessor.
    """
    step, last = 1, v.ndim - 1
    while step < v.shape[last]:
        v = xp.concat([v[..., :step], v[..., step:] + ratios * v[..., :-step]], axis=last)
        if 2 * step < v.shape[last]:
            ratios = ratios[..., step:] * ratios[..., :-step]
        step *= 2
    return v


def _linear_recurrence_reversed(xp: Any, v: Array, ratios: Array) -> Array:
    """Return s with s_k = v_k + ratio_k s_(k+1): `_linear_recurrence` from the end."""
    axis = (v.ndim - 1,)
    return xp.flip(
        _linear_recurrence(xp, xp.flip(v, axis=axis), xp.flip(ratios, axis=axis)), axis=axis
    )


# Rules of cumulative_prod don't divide, so zeros are exact, except where a product of some factors
# overflows although the product of all factors up to there doesn't: there they divide sums.


def _products_before(xp: Any, out: Array) -> Array:
    """Return the product of all factors before each."""
    return xp.concat([xp.ones_like(out[..., :1]), out[..., :-1]], axis=out.ndim - 1)


def _cumulative_prod_vjp(xp: Any, g: Array, x: Array, out: Array, *, axis: int) -> Array:
    if 0 in x.shape:
        return g
    if xp.rule_kernels is not None and g.dtype.char in "fd":
        found: Array | None = xp.rule_kernels["cumulative_prod_vjp"](g, x, out, axis=axis)
        if found is not None:
            return found
    last = x.ndim - 1
    g, x, out = [xp.moveaxis(v, axis, -1) for v in (g, x, out)]
    after = _linear_recurrence_reversed(xp, g, x[..., 1:])
    too_large = xp.logical_and(x != 0, xp.logical_not(xp.isfinite(after)))
    divisor = xp.where(too_large, x, xp.ones_like(x))
    quotients = _cumulative_sum_vjp(xp, g * out, axis=last) / divisor
    return xp.moveaxis(xp.where(too_large, quotients, _products_before(xp, out) * after), -1, axis)


def _cumulative_prod_jvp(xp: Any, t: Array, x: Array, out: Array, *, axis: int) -> Array:
    if 0 in x.shape:
        return t
    t, x, out = [xp.moveaxis(v, axis, -1) for v in (t, x, out)]
    slopes = _linear_recurrence(xp, _products_before(xp, out) * t, x[..., 1:])
    too_large = xp.logical_not(xp.isfinite(slopes))
    shares = t / xp.where(x == 0, xp.ones_like(x), x)
    products = out * xp.cumulative_sum(shares, axis=x.ndim - 1)
    return xp.moveaxis(xp.where(too_large, products, slopes), -1, axis)


cumulative_prod = general(
    "cumulative_prod",
    None,
    vjp=(_cumulative_prod_vjp,),
    jvp=(_cumulative_prod_jvp,),
    label="CumprodBackward0",
)


def _max_or_neg_inf(xp: Any, x: Array, axis: Axes) -> Array:
    """Return the maximum along axes, with the axes kept; -inf where there is no element."""
    if 0 in x.shape:
        return xp.zeros(kept(x.shape, axis), dtype=x.dtype) - math.inf
    return xp.max(x, axis=axis, keepdims=True)


@use_kernel
def _logsumexp(xp: Any, x: Array, *, axis: Axes, keepdims: bool) -> Array:
    # m + log sum exp(x - m) (Blanchard, Higham, Higham, IMA J. Numer. Anal. 41(4), 2021); an
    # infinite m is not subtracted, since inf - inf is nan, and is the result, whatever the sum.
    # For complex numbers m is real, so that the logarithm's phase is the principal one.
    m = _max_or_neg_inf(xp, xp.real(x) if is_complex(x) else x, axis)
    zero = xp.zeros_like(m)
    shifted = x - xp.where(xp.isfinite(m), m, zero)
    shifted = shifted if is_complex(x) else xp.minimum(shifted, zero)
    total = xp.sum(xp.exp(shifted), axis=axis, keepdims=keepdims)
    log = xp.log(xp.where(total == 0, xp.ones_like(total), total))
    return log + (m if keepdims else xp.reshape(m, total.shape))


def _exponentials(xp: Any, x: Array, out: Array, axis: Axes, keepdims: bool) -> tuple[Array, Array]:
    """Return exp(x - out) and its sums along the axes, which are kept: their ratio is softmax."""
    top = out if keepdims else xp.reshape(out, kept(x.shape, axis))
    # For a result of -inf, exp(-inf) = 0; for one of inf, nan as in PyTorch.
    e = xp.exp(x - xp.where(top == -math.inf, xp.zeros_like(top), top))
    return e, _normaliser(xp, xp.sum(e, axis=axis, keepdims=True))


def _normaliser(xp: Any, total: Array) -> Array:
    """Return sums that are 1 up to the rounding of a large logarithm; 1 for 0, inf and nan."""
    return xp.where(xp.logical_and(xp.isfinite(total), total != 0), total, xp.ones_like(total))


@use_kernel
def _logsumexp_vjp(xp: Any, g: Array, x: Array, out: Array, *, axis: Axes, keepdims: bool) -> Array:
    e, total = _exponentials(xp, x, out, axis, keepdims)
    return e * ((g if keepdims else xp.reshape(g, total.shape)) / total)


def _logsumexp_jvp(xp: Any, t: Array, x: Array, out: Array, *, axis: Axes, keepdims: bool) -> Array:
    e, total = _exponentials(xp, x, out, axis, keepdims)
    slope = xp.sum(t * e, axis=axis, keepdims=True) / total
    return slope if keepdims else xp.reshape(slope, out.shape)


logsumexp = general(
    "logsumexp",
    lambda xp, x, *, axis, keepdims: _logsumexp(xp, x, axis=axis, keepdims=keepdims),
    vjp=(
        lambda xp, g, x, out, *, axis, keepdims: _logsumexp_vjp(
            xp, g, x, out, axis=axis, keepdims=keepdims
        ),
    ),
    jvp=(_logsumexp_jvp,),
    label="LogsumexpBackward0",
)


def _exp_ratios(xp: Any, x: Array, out: Array) -> tuple[Array, Array]:
    """Return exp(x - out) and, for all but the first, exp(out_(k-1) - out_k): both at most 1."""
    some = out != -math.inf
    share = xp.masked(xp.exp(xp.masked(x, some) - xp.masked(out, some)), some)
    before, after = out[..., :-1], out[..., 1:]
    apart = xp.logical_or(before != after, xp.isfinite(after))  # inf - inf would be nan
    return share, xp.exp(xp.masked(before, apart) - xp.masked(after, apart))


def _logcumsumexp_vjp(xp: Any, g: Array, x: Array, out: Array, *, axis: int) -> Array:
    if 0 in x.shape:
        return g
    g, x, out = [xp.moveaxis(v, axis, -1) for v in (g, x, out)]
    share, ratios = _exp_ratios(xp, x, out)
    return xp.moveaxis(share * _linear_recurrence_reversed(xp, g, ratios), -1, axis)


def _logcumsumexp_jvp(xp: Any, t: Array, x: Array, out: Array, *, axis: int) -> Array:
    if 0 in x.shape:
        return t
    t, x, out = [xp.moveaxis(v, axis, -1) for v in (t, x, out)]
    share, ratios = _exp_ratios(xp, x, out)
    return xp.moveaxis(_linear_recurrence(xp, share * t, ratios), -1, axis)


logcumsumexp = general(
    "logcumsumexp",
    None,
    vjp=(_logcumsumexp_vjp,),
    jvp=(_logcumsumexp_jvp,),
)


@use_kernel
def _softmax(xp: Any, x: Array, *, axis: int) -> Array:
    e = xp.exp(x - _max_or_neg_inf(xp, x, (axis,)))
    return e / xp.sum(e, axis=axis, keepdims=True)


@use_kernel
def _softmax_rule(xp: Any, v: Array, out: Array, *, axis: int) -> Array:
    return (v - xp.sum(v * out, axis=axis, keepdims=True)) * out


softmax = symmetric(
    "softmax",
    lambda xp, g, out, *, axis: _softmax_rule(xp, g, out, axis=axis),
    forward=lambda xp, x, *, axis: _softmax(xp, x, axis=axis),
)


@use_kernel
def _log_softmax(xp: Any, x: Array, *, axis: int) -> Array:
    shifted = x - _max_or_neg_inf(xp, x, (axis,))
    if 0 in x.shape:  # log 0 would warn
        return shifted
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


@use_kernel
def _log_softmax_vjp(xp: Any, g: Array, out: Array, *, axis: int) -> Array:
    return g - xp.exp(out) * xp.sum(g, axis=axis, keepdims=True)


log_softmax = general(
    "log_softmax",
    lambda xp, x, *, axis: _log_softmax(xp, x, axis=axis),
    vjp=(lambda xp, g, out, *, axis: _log_softmax_vjp(xp, g, out, axis=axis),),
    jvp=(lambda xp, t, out, *, axis: t - xp.sum(t * xp.exp(out), axis=axis, keepdims=True),),
)

argmax = constant("argmax")
argmin = constant("argmin")
argsort = constant("argsort")
all = constant("all")
any = constant("any")
count_nonzero = constant("count_nonzero")
