"""Reductions and normalisations of the elements that a mask selects: PyTorch's `torch.masked`.

>>> import chainrule as cr
>>> cr.masked.mean(cr.tensor([1.0, 2.0, cr.nan]), mask=cr.tensor([True, True, False]))
tensor(1.5000)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan

import numpy as np

from chainrule import linalg, ops
from chainrule.arguments import (
    DTypeLike,
    Operand,
    cast,
    floating,
    many_dims,
    over,
    tensor_of,
)
from chainrule.autograd.tensor import Tensor
from chainrule.backend import real_dtype
from chainrule.errors import ShapeError
from chainrule.ops.statistics import squared_magnitudes

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

Dims = int | Sequence[int] | None
Mask = Operand | None


def _filled(name: str, input: Operand, mask: Mask, fill: float, dtype: DTypeLike) -> Tensor:
    """Return the input in `dtype`, with `fill` where the mask is False.

    No gradient flows to those elements, whatever they are.
    """
    x = cast(tensor_of(input), dtype)
    if mask is None:
        return x
    chosen = _mask_like(name, x, mask)
    value: float = fill
    if x.dtype.kind in "iu" and fill in (inf, -inf):
        limits = np.iinfo(x.dtype)
        value = limits.max if fill > 0 else limits.min
    elif x.dtype.kind == "b":
        value = fill > 0
    return ops.where(chosen, x, value)


def _mask_like(name: str, x: Tensor, mask: Operand) -> Tensor:
    chosen = cast(tensor_of(mask), np.bool_)
    try:
        return ops.broadcast_to(chosen, x.shape)
    except ShapeError:
        raise ShapeError(
            f"masked.{name}: expected a mask whose shape broadcasts to that of the input, "
            f"{list(x.shape)}, got {list(chosen.shape)}"
        ) from None


def sum(
    input: Operand,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    mask: Mask = None,
) -> Tensor:
    """Return the sum of the elements where the mask is True.

    Parameters
    ----------
    input : Tensor, array or number
        The elements. Those where the mask is False may be anything, nan and infinities included:
        they have no effect on values and derivatives.
    dim : int or sequence of ints, optional
        The dimensions to reduce: all of them if left out.
    keepdim : bool, default False
        Whether these remain in the result, with length 1.
    dtype : dtype, optional
        The elements are converted to it first.
    mask : Tensor of bools, optional
        Which elements count: all of them if left out. Its shape broadcasts to that of `input`.

    Returns
    -------
    Tensor, shape of `input` without `dim`
        What the function of the same name of `chainrule` gives for the elements that count. Of none
        of them the sum is 0, the product 1, the mean nan, the maximum -inf, the minimum inf.

    Raises
    ------
    ShapeError
        If the mask doesn't broadcast to the shape of `input`.

    Notes
    -----
    Derivative: that of the unmasked function, and 0 for elements that don't count.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[1.0, 2.0], [3.0, cr.inf]])
    >>> cr.masked.sum(x, 1, mask=cr.isfinite(x))
    tensor([3., 3.])
    """
    return ops.sum(_filled("sum", input, mask, 0, dtype), dim, keepdim)


def prod(
    input: Operand,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    mask: Mask = None,
) -> Tensor:
    """Return the product of the elements where the mask is True; the arguments are those of `sum`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.prod(cr.tensor([2.0, 0.0, 5.0]), mask=cr.tensor([True, False, True]))
    tensor(10.)
    """
    x = _filled("prod", input, mask, 1, dtype)
    dims = _dims(x, dim)
    for each in sorted(dims, reverse=True):
        x = ops.prod(x, each, keepdim)
    return x if dims else ops.prod(x)


def _dims(x: Tensor, dim: Dims) -> tuple[int, ...]:
    """Return the dimensions to reduce, from 0 on: all for None, and for an empty sequence."""
    return many_dims(over(dim, None), x.ndim) or tuple(range(x.ndim))


def amax(
    input: Operand,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    mask: Mask = None,
) -> Tensor:
    """Return the largest element where the mask is True; the arguments are those of `sum`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.amax(cr.tensor([2.0, 9.0, 5.0]), mask=cr.tensor([True, False, True]))
    tensor(5.)
    """
    return ops.amax(_filled("amax", input, mask, -inf, dtype), _all(dim), keepdim)


def _all(dim: Dims) -> Dims:
    return () if dim is None else dim


def amin(
    input: Operand,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    mask: Mask = None,
) -> Tensor:
    """Return the smallest element where the mask is True; the arguments are those of `sum`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.amin(cr.tensor([2.0, 1.0, 5.0]), mask=cr.tensor([True, False, True]))
    tensor(2.)
    """
    return ops.amin(_filled("amin", input, mask, inf, dtype), _all(dim), keepdim)


def argmax(
    input: Operand,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    mask: Mask = None,
) -> Tensor:
    """Return the index of the largest element where the mask is True, as int64 or `dtype`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.argmax(cr.tensor([2.0, 9.0, 5.0]), mask=cr.tensor([True, False, True]))
    tensor(2)
    """
    return cast(ops.argmax(_filled("argmax", input, mask, -inf, None), dim, keepdim), dtype)


def argmin(
    input: Operand,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    mask: Mask = None,
) -> Tensor:
    """Return the index of the smallest element where the mask is True, as int64 or `dtype`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.argmin(cr.tensor([2.0, 1.0, 5.0]), mask=cr.tensor([True, False, True]))
    tensor(0)
    """
    return cast(ops.argmin(_filled("argmin", input, mask, inf, None), dim, keepdim), dtype)


def mean(
    input: Operand,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    mask: Mask = None,
) -> Tensor:
    """Return the mean of the elements where the mask is True; the arguments are those of `sum`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.mean(cr.tensor([1.0, 9.0, 5.0]), mask=cr.tensor([True, False, True]))
    tensor(3.)
    """
    x = floating(cast(tensor_of(input), dtype))
    return _mean(x, _count("mean", x, dim, keepdim, mask), dim, keepdim, mask)


def _count(name: str, x: Tensor, dim: Dims, keepdim: bool, mask: Mask) -> Tensor:
    """Return how many elements count, in the real dtype of `x`."""
    chosen = ops.broadcast_to(True, x.shape) if mask is None else _mask_like(name, x, mask)
    return cast(ops.sum(chosen, dim, keepdim), real_dtype(x.dtype))


def _mean(x: Tensor, count: Tensor, dim: Dims, keepdim: bool, mask: Mask) -> Tensor:
    """Return the sum divided by `count`; nan where that isn't positive."""
    total = ops.sum(_filled("mean", x, mask, 0, None), dim, keepdim)
    return ops.where(count > 0, total / ops.where(count > 0, count, 1), nan)


def var(
    input: Operand,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    mask: Mask = None,
) -> Tensor:
    """Return the variance of the elements where the mask is True.

    The other arguments are those of `sum`.

    Parameters
    ----------
    correction : number, default 1
        What the number of elements is reduced by before the sum of squares is divided by it.
    unbiased : bool, optional
        Another name of corrections of 1 and 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.var(cr.tensor([1.0, 9.0, 5.0]), mask=cr.tensor([True, False, True]))
    tensor(8.)
    """
    lost = float(unbiased is not False) if correction is None else correction
    x = floating(cast(tensor_of(input), dtype))
    centre = _mean(x, _count("var", x, dim, True, mask), dim, True, mask)
    deviation = _filled("var", x, mask, 0, None) - ops.where(ops.isnan(centre), 0, centre)
    freedom = _count("var", x, dim, keepdim, mask) - lost
    return _mean(squared_magnitudes(deviation), freedom, dim, keepdim, mask)


def std(
    input: Operand,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    mask: Mask = None,
) -> Tensor:
    """Return the standard deviation of the elements where the mask is True: see `var`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.std(cr.tensor([1.0, 9.0, 7.0]), 0, False, mask=cr.tensor([True, False, True]))
    tensor(3.)
    """
    return ops.sqrt(
        var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask)
    )


def median(
    input: Operand,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    mask: Mask = None,
) -> Tensor:
    """Return the lower median of the elements where the mask is True, along one dimension.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.median(cr.tensor([1.0, 9.0, 7.0]), mask=cr.tensor([True, False, True]))
    tensor(1.)
    """
    x = floating(cast(tensor_of(input), dtype))
    return ops.nanmedian(_filled("median", x, mask, nan, None), dim, keepdim).values


def norm(
    input: Operand,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    mask: Mask = None,
) -> Tensor:
    """Return the vector norm of the elements where the mask is True.

    `ord` is that of `linalg.vector_norm`; the other arguments are those of `sum`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.norm(cr.tensor([3.0, 9.0, 4.0]), mask=cr.tensor([True, False, True]))
    tensor(5.)
    """
    order = 2.0 if ord is None else ord
    x = _filled("norm", input, mask, inf if order < 0 else 0, dtype)
    return linalg.vector_norm(x, order, dim, keepdim)


def normalize(
    input: Operand,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: DTypeLike = None,
    mask: Mask = None,
) -> Tensor:
    """Return the elements divided by their norm along a dimension, or by `eps` if it is less.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.normalize(cr.tensor([3.0, 9.0, 4.0]), 2, 0, mask=cr.tensor([True, False, True]))
    tensor([0.6000, 0.0000, 0.8000])
    """
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled("normalize", input, mask, 0, dtype) / ops.clamp(size, min=eps)


def softmax(input: Operand, dim: int, *, dtype: DTypeLike = None, mask: Mask = None) -> Tensor:
    """Return the softmax of the elements where the mask is True, 0 for the others.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.softmax(cr.tensor([1.0, 9.0, 1.0]), 0, mask=cr.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return ops.softmax(_floats("softmax", input, mask, -inf, dtype), dim)


def _floats(name: str, input: Operand, mask: Mask, fill: float, dtype: DTypeLike) -> Tensor:
    return _filled(name, floating(cast(tensor_of(input), dtype)), mask, fill, None)


def log_softmax(input: Operand, dim: int, *, dtype: DTypeLike = None, mask: Mask = None) -> Tensor:
    """Return the logarithm of `softmax`, -inf for elements that don't count.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.log_softmax(cr.tensor([1.0, 9.0]), 0, mask=cr.tensor([True, False]))
    tensor([0., -inf])
    """
    return ops.log_softmax(_floats("log_softmax", input, mask, -inf, dtype), dim)


def softmin(input: Operand, dim: int, *, dtype: DTypeLike = None, mask: Mask = None) -> Tensor:
    """Return the `softmax` of the negative elements.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.softmin(cr.tensor([1.0, -9.0, 1.0]), 0, mask=cr.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return ops.softmax(-_floats("softmin", input, mask, inf, dtype), dim)


def logsumexp(
    input: Operand,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    mask: Mask = None,
) -> Tensor:
    """Return log Σ exp(x) of the elements where the mask is True; the arguments are those of `sum`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.logsumexp(cr.tensor([1.0, 9.0]), 0, mask=cr.tensor([True, False]))
    tensor(1.)
    """
    x = _floats("logsumexp", input, mask, -inf, dtype)
    return ops.logsumexp(x, _dims(x, dim), keepdim)


def logaddexp(
    input: Operand,
    other: Operand,
    *,
    dtype: DTypeLike = None,
    input_mask: Mask = None,
    other_mask: Mask = None,
) -> Tensor:
    """Return log(exp(x) + exp(y)), where an element that doesn't count is -inf.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.logaddexp(cr.tensor([1.0]), cr.tensor([2.0]), other_mask=cr.tensor([False]))
    tensor([1.])
    """
    x = _floats("logaddexp", input, input_mask, -inf, None)
    return cast(ops.logaddexp(x, _floats("logaddexp", other, other_mask, -inf, None)), dtype)


def cumsum(input: Operand, dim: int, *, dtype: DTypeLike = None, mask: Mask = None) -> Tensor:
    """Return the cumulative sums along a dimension of the elements where the mask is True.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.cumsum(cr.tensor([1.0, 9.0, 1.0]), 0, mask=cr.tensor([True, False, True]))
    tensor([1., 1., 2.])
    """
    return ops.cumsum(_filled("cumsum", input, mask, 0, dtype), dim)


def cumprod(input: Operand, dim: int, *, dtype: DTypeLike = None, mask: Mask = None) -> Tensor:
    """Return the cumulative products along a dimension of the elements where the mask is True.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.masked.cumprod(cr.tensor([2.0, 9.0, 3.0]), 0, mask=cr.tensor([True, False, True]))
    tensor([2., 2., 6.])
    """
    return ops.cumprod(_filled("cumprod", input, mask, 1, dtype), dim)
