"""Spread, size and softmax: what is composed of reductions."""

from __future__ import annotations

import math

from chainrule.arguments import (
    RECORDERS,
    Dims,
    DTypeLike,
    Operand,
    cast,
    either,
    floating,
    many_dims,
    over,
    tensor_of,
)
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.ops.reductions import check_floating
from chainrule.ops.wrappers import along, nothing_of

_sum = RECORDERS["sum"]

__all__ = [
    "var",
    "std",
    "norm",
    "logsumexp",
    "softmax",
    "log_softmax",
]


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
        centred = RECORDERS["subtract"](input, RECORDERS["mean"](input, axis=dims, keepdims=True))
        total = _sum(_squares(centred), axis=dims, keepdims=keepdim or keepdims)
    lost = unbiased if correction is None else correction
    freedom = count - (1 if lost is None else lost)
    infinite = math.inf if count > 1 else math.nan  # the spread of one element is 0
    return RECORDERS["multiply"](total, 1 / freedom if freedom > 0 else infinite)


def _squares(x: Tensor) -> Tensor:
    """Return |x|²: real also where x is complex."""
    if x._array.dtype.kind == "c":
        return RECORDERS["real"](RECORDERS["multiply"](x, RECORDERS["conj"](x)))
    return RECORDERS["square"](x)


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
    return RECORDERS["root_of_spread"](
        var(input, dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims)
    )


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
        return _sum(RECORDERS["abs"](input), **settings)
    if p in (math.inf, -math.inf):
        return RECORDERS["max" if p == math.inf else "min"](RECORDERS["abs"](input), **settings)
    if isinstance(p, str) and p != "fro":
        raise ArgumentError(
            f"norm: p must be a number or 'fro', got {p!r}: matrices have linalg.matrix_norm"
        )
    if p == 0:
        sizes = RECORDERS["abs"](input)
        count = cast(RECORDERS["count_nonzero"](input, **settings), sizes.dtype)
        return count + _sum(nothing_of(sizes), **settings)
    return RECORDERS["p_norm"](input, p=2.0 if p == "fro" else float(p), **settings)


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
    return RECORDERS["logsumexp"](input, axis=dims, keepdims=keepdim or keepdims)


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
    return along("softmax", cast(floating(input), dtype), either(dim, axis))


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
    return along("log_softmax", cast(floating(input), dtype), either(dim, axis))
