"""Means and spreads around gaps, and sizes held within bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chainrule.arguments import (
    RECORDERS,
    Dims,
    DTypeLike,
    Operand,
    cast,
    either,
    floating,
    many_dims,
    one_dim,
    over,
    tensor_of,
)
from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import ArgumentError, ShapeError
from chainrule.ops.extrema import amax, amin
from chainrule.ops.reductions import check_floating, mean, sum
from chainrule.ops.statistics import norm, std, var
from chainrule.ops.where import where

__all__ = [
    "nansum",
    "nanmean",
    "var_mean",
    "std_mean",
    "aminmax",
    "dist",
    "renorm",
]

# --- around gaps ----------------------------------------------------------------------------------


def nansum(
    input: Operand,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
    dtype: DTypeLike = None,
) -> Tensor:
    """Return the sum of what is not nan along dimensions; the arguments are those of `sum`.

    Notes
    -----
    Derivative: 1, and 0 for a nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nansum(cr.tensor([1.0, cr.nan, 2.0]))
    tensor(3.)
    """
    input = cast(tensor_of(input), dtype)
    if input.dtype.kind in "fc":
        input = RECORDERS["masked"](input, _present(input))
    return sum(input, axis=over(dim, axis), keepdims=keepdim or keepdims)


def _present(x: Tensor) -> Tensor:
    return RECORDERS["logical_not"](RECORDERS["isnan"](x))


def nanmean(
    input: Operand,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
    dtype: DTypeLike = None,
) -> Tensor:
    """Return the mean of what is not nan along dimensions; the arguments are those of `sum`.

    Raises
    ------
    DTypeError
        If `input` is of integers or bools and no floating `dtype` is given.

    Notes
    -----
    Derivative: 1/n where n elements are averaged, and 0 for a nan. No element gives nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nanmean(cr.tensor([1.0, cr.nan, 2.0]))
    tensor(1.5000)
    """
    input = cast(tensor_of(input), dtype)
    check_floating(input, "nanmean")
    dims, keep = over(dim, axis), keepdim or keepdims
    number = sum(_present(input), axis=dims, keepdims=keep)._array
    share = np.where(number > 0, 1 / np.maximum(number, 1), np.nan)
    weight = share.astype(RECORDERS["abs"](input.detach()).dtype)
    return RECORDERS["multiply"](nansum(input, axis=dims, keepdims=keep), make(weight, None))


# --- two at once ----------------------------------------------------------------------------------


def var_mean(
    input: Operand,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Dims = None,
    keepdims: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean along dimensions; the arguments are those of `var`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.var_mean(cr.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    spread = var(input, dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims)
    dims = None if isinstance(dim, bool) else over(dim, axis)
    return spread, mean(input, axis=dims, keepdims=keepdim or keepdims)


def std_mean(
    input: Operand,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Dims = None,
    keepdims: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean; the arguments are those of `var`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.std_mean(cr.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    spread = std(input, dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims)
    dims = None if isinstance(dim, bool) else over(dim, axis)
    return spread, mean(input, axis=dims, keepdims=keepdim or keepdims)


class Bounds(NamedTuple):
    """Smallest and largest elements."""

    min: Tensor
    max: Tensor


def aminmax(
    input: Operand,
    *,
    dim: Dims = None,
    keepdim: bool = False,
    axis: Dims = None,
    keepdims: bool = False,
) -> Bounds:
    """Return the smallest and the largest element along dimensions; see `amin` and `amax`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.aminmax(cr.tensor([3.0, 1.0, 2.0]))
    Bounds(min=tensor(1.), max=tensor(3.))
    """
    dims, keep = either(dim, axis), keepdim or keepdims
    return Bounds(amin(input, dims, keep), amax(input, dims, keep))


# --- sizes ----------------------------------------------------------------------------------------


def dist(input: Operand, other: Operand, p: float = 2) -> Tensor:
    """Return the norm of the difference of two tensors.

    Parameters
    ----------
    input, other : Tensors
        Their shapes broadcast.
    p : number, default 2
        The order, as for `norm`.

    Returns
    -------
    Tensor, 0-d; real

    Notes
    -----
    Derivative: that of `norm`; 0 where the tensors are equal.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.dist(cr.tensor([1.0, 1.0]), cr.tensor([4.0, 5.0]))
    tensor(5.)
    """
    return norm(RECORDERS["subtract"](floating(input), floating(other)), p)


def renorm(input: Operand, p: float, dim: int, maxnorm: float) -> Tensor:
    """Return `input` with the slices along a dimension shortened to a norm of at most `maxnorm`.

    Parameters
    ----------
    input : Tensor
        Of at least two dimensions; floating numbers.
    p : number
        The order of the norm: positive.
    dim : int
        The dimension whose slices are meant.
    maxnorm : number
        The largest norm to have.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    ShapeError
        If there are fewer than two dimensions.
    ArgumentError
        If `p` is not positive, or `maxnorm` is negative.

    Notes
    -----
    Longer slices are multiplied by maxnorm / (norm + 1e-7).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.renorm(cr.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    input = tensor_of(input)
    check_floating(input, "renorm")
    if input.ndim < 2:
        raise ShapeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    if p <= 0:
        raise ArgumentError(f"renorm: non-positive-norm not supported, got p = {p}")
    if maxnorm < 0:
        raise ArgumentError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    number = one_dim(dim, input.ndim)
    others = many_dims([i for i in range(input.ndim) if i != number], input.ndim)
    size = norm(input, p, others, True)
    shorter = RECORDERS["divide"](
        make(np.asarray(maxnorm, size.dtype), None), RECORDERS["add"](size, 1e-7)
    )
    factor = where(RECORDERS["greater"](size, maxnorm), shorter, 1.0)
    return RECORDERS["multiply"](input, cast(factor, input.dtype))
