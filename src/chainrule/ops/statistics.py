"""Spread, size and softmax: what is composed of reductions."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from chainrule.arguments import (
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
from chainrule.backend import holds_somewhere
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.operation import operation
from chainrule.ops.diagonals import diagonal
from chainrule.ops.elementary import clamp
from chainrule.ops.matmul import matmul
from chainrule.ops.reductions import amax, amin, check_floating, mean, sum
from chainrule.ops.where import where
from chainrule.ops.wrappers import apply_along_dim, reshape_result, zeros_depending_on
from chainrule.primitives import elementwise, norms, reductions, shaping

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
        What to take the variance over: everything if left out. Also spelled `axis`.
    unbiased : bool, optional
        PyTorch's older spelling of the correction: True is 1, False is 0. ``x.var(False)`` means
        this, too.
    correction : number, default 1
        The sum of squares is divided by n - correction: 1 for a sample, 0 for a population.
    keepdim : bool, default False
        Keep those dimensions, with length 1. Also spelled `keepdims`.

    Returns
    -------
    Tensor, shape of `input` without `dim`; real
        Where n ≤ correction, inf; nan if there is no spread either, as of one element.

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
        total = _sum(_squares(input), axis=dims, keepdims=keepdim or keepdims)
    else:
        centred = elementwise.subtract.apply(
            input, reductions.mean.apply(input, axis=dims, keepdims=True)
        )
        total = _sum(_squares(centred), axis=dims, keepdims=keepdim or keepdims)
    lost = unbiased if correction is None else correction
    freedom = count - (1 if lost is None else lost)
    infinite = math.inf if count > 1 else math.nan  # the spread of one element is 0
    return elementwise.multiply.apply(total, 1 / freedom if freedom > 0 else infinite)


def _squares(x: Tensor) -> Tensor:
    """Return |x|²: real also where x is complex."""
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
    """Return the standard deviation, the root of the variance; the arguments are those of `var`.

    Notes
    -----
    Derivative: (x - mean) / ((n - correction) · std), and 0 where all elements are equal. Of one
    element, and of none, both are nan, unless ``correction=0``.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.std(cr.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
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
    """Return the norm of the elements along dimensions, taken as one vector.

    Parameters
    ----------
    input : Tensor
        Real or complex floating numbers.
    p : number or "fro", default 2
        The p-th root of the sum of p-th powers of magnitudes: 2 (also "fro") the root of the sum of
        squares, 1 their sum, inf the largest and -inf the smallest one; 0 counts what is not 0.
    dim : int or sequence of ints, optional
        What to take the norm over: everything if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep those dimensions, with length 1. Also spelled `keepdims`.
    dtype : dtype, optional
        What to convert `input` to first.

    Returns
    -------
    Tensor, shape of `input` without `dim`; real

    Raises
    ------
    ArgumentError
        If `p` is something else.
    DTypeError
        If `input` is of integers or bools.

    Notes
    -----
    Derivative for p = 2: x / norm, and 0 at 0. Elements are scaled by the largest one, so that
    squares of huge and of tiny numbers neither overflow nor vanish.

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
    settings = {"axis": many_dims(over(dim, axis), input.ndim), "keepdims": keepdim or keepdims}
    if p == 1:
        return _sum(elementwise.abs.apply(input), **settings)
    if p in (math.inf, -math.inf):
        extreme = reductions.max if p == math.inf else reductions.min
        return extreme.apply(elementwise.abs.apply(input), **settings)
    if isinstance(p, str) and p != "fro":
        raise ArgumentError(
            f"norm: p must be a number or 'fro', got {p!r}: matrices have linalg.matrix_norm"
        )
    if p == 0:
        sizes = elementwise.abs.apply(input)
        count = cast(reductions.count_nonzero.apply(input, **settings), sizes.dtype)
        return count + _sum(zeros_depending_on(sizes), **settings)
    return norms.p_norm.apply(input, p=2.0 if p == "fro" else float(p), **settings)


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
        What to sum over: everything if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep those dimensions, with length 1. Also spelled `keepdims`.

    Returns
    -------
    Tensor, shape of `input` without `dim`

    Notes
    -----
    Evaluated as m + log Σ exp(x - m) with m = max x, which cannot overflow [1]_.
    Derivative: softmax x; 0 where all of `input` is -inf, nan for an element that is inf.
    The logarithm of no exponentials is -inf.

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
    input: Operand, dim: int | None = None, *, axis: int | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Return exp x, divided by its sum along a dimension.

    Parameters
    ----------
    input : Tensor
        Exponents: integers are taken as numbers of the default dtype.
    dim : int
        Along which dimension the result sums to 1. Also spelled `axis`. It can be left out where
        there is only one.
    dtype : dtype, optional
        Convert to this first.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    The largest exponent is subtracted first, so nothing overflows; -inf gives 0. Where all are
    -inf, or one is inf, result and gradient are nan. Derivative: diag s - s sᵀ, where s is the
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
    input: Operand, dim: int | None = None, *, axis: int | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Return the logarithm of `softmax`, precise where that is tiny; the arguments are the same.

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


# --- moments --------------------------------------------------------------------------------------
#
# Means and spreads around gaps, and sizes held within bounds.

# --- around gaps ----------------------------------------------------------------------------------


@operation(numpy="nansum a axis= dtype= keepdims=")
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
        input = elementwise.masked.apply(input, _present(input))
    return sum(input, axis=over(dim, axis), keepdims=keepdim or keepdims)


def _present(x: Tensor) -> Tensor:
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
    weight = share.astype(elementwise.abs.apply(input.detach()).dtype)
    return elementwise.multiply.apply(nansum(input, axis=dims, keepdims=keep), make(weight, None))


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


# --- sizes ----------------------------------------------------------------------------------------


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
    shorter = elementwise.divide.apply(
        make(np.asarray(maxnorm, size.dtype), None), elementwise.add.apply(size, 1e-7)
    )
    factor = where(elementwise.greater.apply(size, maxnorm), shorter, 1.0)
    return elementwise.multiply.apply(input, cast(factor, input.dtype))


# --- covariance -----------------------------------------------------------------------------------
#
# Covariance and correlation of variables.


@operation()
def cov(
    input: Operand,
    *,
    correction: int = 1,
    fweights: Operand | None = None,
    aweights: Operand | None = None,
) -> Tensor:
    """Return the covariances of variables, which are the rows of a matrix.

    Parameters
    ----------
    input : Tensor, shape (variables, observations) or (observations,)
        Integers are taken as numbers of the default dtype.
    correction : int, default 1
        What is subtracted from the number of observations: 1 for a sample, 0 for a population.
    fweights : Tensor of integers, shape (observations,), optional
        How often each observation was made.
    aweights : Tensor, shape (observations,), optional
        How much each observation counts.

    Returns
    -------
    Tensor, shape (variables, variables); 0-d of one variable

    Raises
    ------
    ShapeError
        If there are more dimensions, or the weights don't fit.
    DTypeError, ArgumentError
        If `fweights` are no integers, or weights are negative.

    Notes
    -----
    The sum of conjugated products of deviations from the mean, divided by the sum of weights w less
    the correction (times Σ w a / Σ w for `aweights` a). Differentiable to every order, also by the
    `aweights`.

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
        scaled, freedom = centred, rows.shape[1] - correction
        product = matmul(scaled, elementwise.conj.apply(centred).mT)
        return _squeezed(
            elementwise.multiply.apply(product, 1 / freedom if freedom > 0 else math.inf)
        )
    total = sum(weights)
    middle = elementwise.divide.apply(
        sum(elementwise.multiply.apply(rows, weights), 1, True), total
    )
    centred = elementwise.subtract.apply(rows, middle)
    if aweights is None or correction == 0:
        divisor = elementwise.subtract.apply(total, correction)
    else:
        squares = sum(elementwise.multiply.apply(weights, cast(tensor_of(aweights), weights.dtype)))
        lost = elementwise.divide.apply(elementwise.multiply.apply(squares, correction), total)
        divisor = elementwise.subtract.apply(total, lost)
    product = matmul(
        elementwise.multiply.apply(centred, weights), elementwise.conj.apply(centred).mT
    )
    return _squeezed(elementwise.divide.apply(product, clamp(divisor, min=0)))


def _weights(rows: Tensor, **given: Operand | None) -> Tensor | None:
    """Return the product of the weights of observations, of those that are given."""
    weights = None
    for name, value in given.items():
        if value is None:
            continue
        found = tensor_of(value)
        if found.shape != rows.shape[1:]:
            raise ShapeError(
                f"cov(): expected {name} to have the same numel as there are observations in the "
                f"input: {rows.shape[1]}, but got shape {list(found.shape)}"
            )
        if name == "fweights" and found.dtype.kind not in "iu":
            raise DTypeError(
                f"cov(): expected fweights to have integral dtype but got {found.dtype}: how often "
                "each observation was made. aweights takes other numbers"
            )
        if holds_somewhere(found._array < 0):
            raise ArgumentError(f"cov(): {name} cannot be negative")
        found = cast(found, elementwise.abs.apply(rows.detach()).dtype)
        weights = found if weights is None else elementwise.multiply.apply(weights, found)
    return weights


def _squeezed(x: Tensor) -> Tensor:
    return reshape_result(x, ()) if x.shape == (1, 1) else x


@operation()
def corrcoef(input: Operand) -> Tensor:
    """Return the correlations of variables, which are the rows of a matrix.

    Parameters
    ----------
    input : Tensor, shape (variables, observations) or (observations,)
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape (variables, variables); 0-d of one variable
        From -1 to 1; nan where a variable is constant.

    Raises
    ------
    ShapeError
        If there are more dimensions.

    Notes
    -----
    Covariances divided by both standard deviations.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.corrcoef(cr.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    pairs = cov(input)
    if pairs.ndim == 0:
        return elementwise.divide.apply(pairs, pairs)
    spread = elementwise.sqrt.apply(diagonal(pairs))
    across = shaping.reshape.apply(spread, shape=(-1, 1))
    ratio = elementwise.divide.apply(elementwise.divide.apply(pairs, across), spread)
    return ratio if ratio.dtype.kind == "c" else clamp(ratio, -1, 1)
