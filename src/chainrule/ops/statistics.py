"""Variances, norms, softmax, covariances: functions composed of reductions."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np

from chainrule.arguments import (
    Dims,
    DTypeLike,
    Operand,
    cast,
    constant,
    either,
    floating,
    many_dims,
    one_dim,
    over,
    tensor_of,
)
from chainrule.autograd.location import called_name, user_stack_level
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import holds_somewhere, namespace
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.operation import operation
from chainrule.ops.diagonals import diagonal
from chainrule.ops.elementary import clamp
from chainrule.ops.matmul import matmul
from chainrule.ops.permute import movedim
from chainrule.ops.reductions import amax, amin, check_floating, mean, sum
from chainrule.ops.where import where
from chainrule.ops.wrappers import apply_along_dim, reshape_result, zeros_depending_on
from chainrule.primitives import decompositions, elementwise, norms, reductions, shaping

__all__ = [
    "var",
    "std",
    "norm",
    "logsumexp",
    "softmax",
    "log_softmax",
    "nansum",
    "nanmean",
    "var_mean",
    "std_mean",
    "aminmax",
    "dist",
    "renorm",
    "cov",
    "corrcoef",
]

_sum = reductions.sum.apply


@operation()
def var(
    input: Operand,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Dims = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the variance of the elements along dimensions.

    Parameters
    ----------
    input : Tensor
        Real or complex floating numbers.
    dim : int or sequence of ints, optional
        Dimensions to reduce: all if left out. Also spelled `axis`.
    unbiased : bool, optional
        PyTorch's older spelling of the correction: True is 1, False is 0. A bool as `dim`, as in
        ``x.var(False)``, is taken as `unbiased`.
    correction : number, default 1
        The sum of squares is divided by n - correction: 1 for a sample, 0 for a population.
    keepdim : bool, default False
        Keep the reduced dimensions, with length 1. Also spelled `keepdims`.

    Returns
    -------
    Tensor, shape of `input` without `dim`; real
        If n ≤ correction: inf, or nan if all elements are equal, as for n ≤ 1.

    Raises
    ------
    DTypeError
        If `input` is of integers or bools.

    Notes
    -----
    Derivative: 2 (x - mean) / (n - correction).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.var(cr.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    input = tensor_of(input)
    check_floating(input, "var")
    if dim.__class__ is bool:
        dim, unbiased = None, dim
    dims = many_dims(over(dim, axis), input.ndim)
    count = math.prod(input.shape if dims is None else [input.shape[i] for i in dims])
    if count == 0:
        total = _sum(squared_magnitudes(input), axis=dims, keepdims=keepdim or keepdims)
    else:
        centred = elementwise.subtract.apply(
            input, reductions.mean.apply(input, axis=dims, keepdims=True)
        )
        total = _sum(squared_magnitudes(centred), axis=dims, keepdims=keepdim or keepdims)
    lost = unbiased if correction is None else correction
    lost = 1 if lost is None else lost
    freedom = count - lost
    if freedom <= 0:
        warnings.warn(
            f"{called_name() or 'var'}(): degrees of freedom is <= 0: of {count} elements, less "
            f"the correction {lost:g}, there is no spread. Pass correction=0 for that of a "
            "population",
            UserWarning,
            stacklevel=user_stack_level(),
        )
    undefined = math.inf if count > 1 else math.nan  # of one element, the sum is 0
    return elementwise.multiply.apply(total, 1 / freedom if freedom > 0 else undefined)


def squared_magnitudes(x: Tensor) -> Tensor:
    """Return |x|², which is real also for complex x."""
    if x._array.dtype.kind == "c":
        return elementwise.real.apply(elementwise.multiply.apply(x, elementwise.conj.apply(x)))
    return elementwise.square.apply(x)


@operation()
def std(
    input: Operand,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Dims = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the standard deviation; the arguments are those of `var`.

    Notes
    -----
    Derivative: (x - mean) / ((n - correction) · std), and 0 where all elements are equal. For fewer
    than two elements, result and derivative are nan unless ``correction=0``.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.std(cr.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    check_floating(input := tensor_of(input), "std")
    return elementwise.root_of_spread.apply(
        var(input, dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims)
    )


@operation()
def norm(
    input: Operand,
    p: float | str = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
    dtype: DTypeLike = None,
) -> Tensor:
    """Return the vector norm of the elements along dimensions.

    Parameters
    ----------
    input : Tensor
        Real or complex floating numbers.
    p : number, "fro" or "nuc", default 2
        Order: the norm is the p-th root of the sum of the p-th powers of magnitudes. "fro" is 2;
        inf gives the largest magnitude, -inf the smallest; 0 counts the nonzero elements. "nuc"
        is the sum of the singular values of matrices, by default those of the last two dimensions.
    dim : int or sequence of ints, optional
        Dimensions to reduce: all if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep the reduced dimensions, with length 1. Also spelled `keepdims`.
    dtype : dtype, optional
        Convert `input` to this first.

    Returns
    -------
    Tensor, shape of `input` without `dim`; real

    Raises
    ------
    ArgumentError
        If `p` is another string.
    DTypeError
        If `input` is of integers or bools.

    Notes
    -----
    Derivative for p = 2: x / norm, and 0 at 0. Elements are scaled by the largest one, so that
    squares of large and of small numbers neither overflow nor underflow.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.norm(cr.tensor([3.0, 4.0]))
    tensor(5.)
    >>> cr.norm(cr.tensor([3e30, 4e30]))
    tensor(5.0000e+30)
    """
    input = tensor_of(input)
    if dtype is not None:
        input = cast(input, dtype)
    check_floating(input, "norm")
    axes, keep = many_dims(over(dim, axis), input.ndim), keepdim or keepdims
    if p == "nuc":
        return _nuclear_norm(input, axes, keep)
    settings = {"axis": axes, "keepdims": keep}
    if p == 1:
        return _sum(elementwise.abs.apply(input), **settings)
    if p in (math.inf, -math.inf):
        extreme = reductions.max if p == math.inf else reductions.min
        return extreme.apply(elementwise.abs.apply(input), **settings)
    if isinstance(p, str) and p != "fro":
        raise ArgumentError(
            f"norm: p must be a number, 'fro' or 'nuc', got {p!r}: for other norms of matrices, "
            "use linalg.matrix_norm"
        )
    if p == 0:
        magnitudes = elementwise.abs.apply(input)
        count = cast(reductions.count_nonzero.apply(input, **settings), magnitudes.dtype)
        return count + _sum(zeros_depending_on(magnitudes), **settings)
    return norms.p_norm.apply(input, p=2.0 if p == "fro" else float(p), **settings)


def _nuclear_norm(input: Tensor, axis: tuple[int, ...] | None, keepdims: bool) -> Tensor:
    """Return the sums of the singular values of matrices."""
    axes = axis or (input.ndim - 2, input.ndim - 1)
    if input.ndim < 2 or len(axes) != 2:
        raise ShapeError(
            "norm: p='nuc' is a norm of matrices, and needs two dimensions to reduce, got "
            f"dim={axis} for the shape {list(input.shape)}"
        )
    values = decompositions.svd.apply(movedim(input, axes, (-2, -1)), full=False)[1]
    summed: Tensor = _sum(values, axis=(values.ndim - 1,), keepdims=False)
    if not keepdims:
        return summed
    return reshape_result(summed, tuple(1 if i in axes else n for i, n in enumerate(input.shape)))


@operation()
def logsumexp(
    input: Operand,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the logarithm of the sum of exponentials along dimensions.

    Parameters
    ----------
    input : Tensor
        Exponents: integers are taken as numbers of the default dtype.
    dim : int or sequence of ints, optional
        Dimensions to sum over: all if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep the reduced dimensions, with length 1. Also spelled `keepdims`.

    Returns
    -------
    Tensor, shape of `input` without `dim`

    Notes
    -----
    Evaluated as m + log Σ exp(x - m) with m = max x, which cannot overflow [1]_.
    Derivative: softmax x; 0 where all of `input` is -inf, nan for an element that is inf.
    Of no elements, the result is -inf.

    References
    ----------
    .. [1] P. Blanchard, D. J. Higham, N. J. Higham, IMA J. Numer. Anal. 41(4), 2021.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.logsumexp(cr.tensor([-1000.0, -1000.0, 0.0]), dim=0)
    tensor(0.)
    """
    input = floating(input)
    dims = many_dims(either(dim, axis), input.ndim)
    return reductions.logsumexp.apply(input, axis=dims, keepdims=keepdim or keepdims)


@operation()
def softmax(
    input: Operand, dim: int | None = None, dtype: DTypeLike = None, *, axis: int | None = None
) -> Tensor:
    """Return exp x divided by its sum along a dimension.

    Parameters
    ----------
    input : Tensor
        Exponents: integers are taken as numbers of the default dtype.
    dim : int
        Dimension along which the result sums to 1. Also spelled `axis`. Optional if there is only
        one.
    dtype : dtype, optional
        Convert to this first.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    The largest exponent is subtracted first, which avoids overflow; -inf gives 0. If all exponents
    are -inf, or one is inf, result and gradient are nan. Derivative: diag s - s sᵀ, where s is the
    result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.softmax(cr.tensor([1.0, 1.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return apply_along_dim(reductions.softmax, cast(floating(input), dtype), either(dim, axis))


@operation()
def log_softmax(
    input: Operand, dim: int | None = None, dtype: DTypeLike = None, *, axis: int | None = None
) -> Tensor:
    """Return the logarithm of `softmax`, accurate where it is tiny; the arguments are the same.

    Notes
    -----
    Derivative: I - 1 sᵀ, where s is the softmax. nan where `softmax` is.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.log_softmax(cr.tensor([0.0, 1000.0]), dim=0)
    tensor([-1000.,     0.])
    """
    return apply_along_dim(reductions.log_softmax, cast(floating(input), dtype), either(dim, axis))


# --- sums and means that ignore nan ---------------------------------------------------------------


@operation()
def nansum(
    input: Operand,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
    dtype: DTypeLike = None,
) -> Tensor:
    """Return the sum along dimensions, ignoring nan; the arguments are those of `sum`.

    Notes
    -----
    Derivative: 1; 0 for nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nansum(cr.tensor([1.0, cr.nan, 2.0]))
    tensor(3.)
    """
    input = cast(tensor_of(input), dtype)
    if input.dtype.kind in "fc":
        input = elementwise.masked.apply(input, _not_nan(input))
    return sum(input, axis=over(dim, axis), keepdims=keepdim or keepdims)


def _not_nan(x: Tensor) -> Tensor:
    return elementwise.logical_not.apply(elementwise.isnan.apply(x))


@operation()
def nanmean(
    input: Operand,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
    dtype: DTypeLike = None,
) -> Tensor:
    """Return the mean along dimensions, ignoring nan; the arguments are those of `sum`.

    Raises
    ------
    DTypeError
        If `input` is of integers or bools and no floating `dtype` is given.

    Notes
    -----
    Derivative: 1/n for the mean of n elements; 0 for nan. The mean of no elements is nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nanmean(cr.tensor([1.0, cr.nan, 2.0]))
    tensor(1.5000)
    """
    input = cast(tensor_of(input), dtype)
    check_floating(input, "nanmean")
    dims, keep = over(dim, axis), keepdim or keepdims
    count = sum(_not_nan(input), axis=dims, keepdims=keep)._array
    xp = namespace(count)
    inverse = xp.where(count > 0, 1 / xp.maximum(count, 1), np.nan)
    weight = inverse.astype(elementwise.abs.apply(input.detach()).dtype)
    return elementwise.multiply.apply(nansum(input, axis=dims, keepdims=keep), make(weight, None))


# --- pairs of statistics --------------------------------------------------------------------------


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
    variance = var(
        input, dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims
    )
    dims = None if isinstance(dim, bool) else over(dim, axis)
    return variance, mean(input, axis=dims, keepdims=keepdim or keepdims)


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
    deviation = std(
        input, dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims
    )
    dims = None if isinstance(dim, bool) else over(dim, axis)
    return deviation, mean(input, axis=dims, keepdims=keepdim or keepdims)


class Bounds(NamedTuple):
    """The smallest and the largest elements."""

    min: Tensor
    max: Tensor


@operation()
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


# --- distances and clipped norms ------------------------------------------------------------------


@operation()
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
    return norm(elementwise.subtract.apply(floating(input), floating(other)), p)


@operation(inplace=True)
def renorm(input: Operand, p: float, dim: int, maxnorm: float) -> Tensor:
    """Return `input` with each slice along a dimension scaled to a norm of at most `maxnorm`.

    Parameters
    ----------
    input : Tensor
        Floating numbers, at least two dimensions.
    p : number
        Order of the norm, positive.
    dim : int
        Dimension that the slices are indexed by.
    maxnorm : number
        Upper bound of the norms.

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
    Slices of a larger norm are multiplied by maxnorm / (norm + 1e-7).

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
    slice_norms = norm(input, p, others, True)
    ratio = elementwise.divide.apply(
        constant(np.asarray(maxnorm, slice_norms.dtype), slice_norms),
        elementwise.add.apply(slice_norms, 1e-7),
    )
    factor = where(elementwise.greater.apply(slice_norms, maxnorm), ratio, 1.0)
    return elementwise.multiply.apply(input, cast(factor, input.dtype))


# --- covariance and correlation -------------------------------------------------------------------


@operation()
def cov(
    input: Operand,
    *,
    correction: int = 1,
    fweights: Operand | None = None,
    aweights: Operand | None = None,
) -> Tensor:
    """Return the covariance matrix of variables, which are the rows of a matrix.

    Parameters
    ----------
    input : Tensor, shape (variables, observations) or (observations,)
        Integers are taken as numbers of the default dtype.
    correction : int, default 1
        Subtracted from the number of observations: 1 for a sample, 0 for a population.
    fweights : Tensor of integers, shape (observations,), optional
        Frequency of each observation.
    aweights : Tensor, shape (observations,), optional
        Weight of each observation.

    Returns
    -------
    Tensor, shape (variables, variables); 0-d for one variable

    Raises
    ------
    ShapeError
        If `input` has more than two dimensions, or the weights have another shape.
    DTypeError, ArgumentError
        If `fweights` are not integers, or weights are negative.

    Notes
    -----
    The sum of products of deviations from the mean, the second factor conjugated, divided by the
    sum of weights w minus the correction (times Σ w a / Σ w for `aweights` a). Differentiable to
    every order, also with respect to `aweights`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cov(cr.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    input = floating(input)
    if input.ndim > 2:
        raise ShapeError(
            f"cov(): expected input to have two or fewer dimensions but got {input.ndim}"
        )
    rows = shaping.reshape.apply(input, shape=(1, input.numel())) if input.ndim < 2 else input
    weights = _weights(rows, fweights=fweights, aweights=aweights)
    if weights is None:
        centred = elementwise.subtract.apply(rows, mean(rows, 1, True))
        freedom = rows.shape[1] - correction
        product = matmul(centred, elementwise.conj.apply(centred).mT)
        return _squeeze_single(
            elementwise.multiply.apply(product, 1 / freedom if freedom > 0 else math.inf)
        )
    total = sum(weights)
    average = elementwise.divide.apply(
        sum(elementwise.multiply.apply(rows, weights), 1, True), total
    )
    centred = elementwise.subtract.apply(rows, average)
    if aweights is None or correction == 0:
        divisor = elementwise.subtract.apply(total, correction)
    else:
        squares = sum(elementwise.multiply.apply(weights, cast(tensor_of(aweights), weights.dtype)))
        lost = elementwise.divide.apply(elementwise.multiply.apply(squares, correction), total)
        divisor = elementwise.subtract.apply(total, lost)
    product = matmul(
        elementwise.multiply.apply(centred, weights), elementwise.conj.apply(centred).mT
    )
    return _squeeze_single(elementwise.divide.apply(product, clamp(divisor, min=0)))


def _weights(rows: Tensor, **given: Operand | None) -> Tensor | None:
    """Return the product of the given weights of observations, None if there are none."""
    weights = None
    for name, value in given.items():
        if value is None:
            continue
        weight = tensor_of(value)
        if weight.shape != rows.shape[1:]:
            raise ShapeError(
                f"cov(): expected {name} to have the same numel as there are observations in the "
                f"input: {rows.shape[1]}, but got shape {list(weight.shape)}"
            )
        if name == "fweights" and weight.dtype.kind not in "iu":
            raise DTypeError(
                f"cov(): expected fweights to have integral dtype but got {weight.dtype}: "
                "aweights takes other numbers"
            )
        if holds_somewhere(weight._array < 0):
            raise ArgumentError(f"cov(): {name} cannot be negative")
        weight = cast(weight, elementwise.abs.apply(rows.detach()).dtype)
        weights = weight if weights is None else elementwise.multiply.apply(weights, weight)
    return weights


def _squeeze_single(x: Tensor) -> Tensor:
    """Return a matrix of one element as a 0-d tensor, others unchanged."""
    return reshape_result(x, ()) if x.shape == (1, 1) else x


@operation()
def corrcoef(input: Operand) -> Tensor:
    """Return the correlation matrix of variables, which are the rows of a matrix.

    Parameters
    ----------
    input : Tensor, shape (variables, observations) or (observations,)
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape (variables, variables); 0-d for one variable
        From -1 to 1; nan where a variable is constant.

    Raises
    ------
    ShapeError
        If `input` has more than two dimensions.

    Notes
    -----
    Covariances divided by the standard deviations of both variables.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.corrcoef(cr.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    covariance = cov(input)
    if covariance.ndim == 0:
        return elementwise.divide.apply(covariance, covariance)
    deviation = elementwise.sqrt.apply(diagonal(covariance))
    column = shaping.reshape.apply(deviation, shape=(-1, 1))
    ratio = elementwise.divide.apply(elementwise.divide.apply(covariance, column), deviation)
    return ratio if ratio.dtype.kind == "c" else clamp(ratio, -1, 1)
