"""Cumulative extrema, cumulative logsumexp, finite differences and integrals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.arguments import (
    Dims,
    Operand,
    constant,
    either,
    floating,
    many_dims,
    one_dim,
    tensor_of,
    whole_number,
)
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import accumulate, namespace, ndarray
from chainrule.creation import full
from chainrule.errors import ArgumentError, ArgumentTypeError, ShapeError
from chainrule.kernels.fast_numpy import last_positions
from chainrule.operation import operation
from chainrule.ops.join_split import cat, stack
from chainrule.ops.permute import moveaxis, movedim
from chainrule.ops.reductions import Extremes, cumsum, sum
from chainrule.ops.reshape import broadcast_to
from chainrule.ops.statistics import logsumexp
from chainrule.ops.wrappers import apply_along_dim
from chainrule.primitives import elementwise, indexing, reductions, shaping

__all__ = [
    "cummax",
    "cummin",
    "logcumsumexp",
    "diff",
    "trapezoid",
    "trapz",
    "cumulative_trapezoid",
    "gradient",
]

Array = Any

# --- cumulative extrema and logsumexp -------------------------------------------------------------


@operation()
def cummax(input: Operand, dim: int | None = None, *, axis: int | None = None) -> Extremes:
    """Return the cumulative maximum along a dimension, and its indices.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan is larger than any.
    dim : int
        Dimension to scan. Also spelled `axis`.

    Returns
    -------
    named tuple (values, indices) of Tensors, shape of `input`
        Of equal elements, the index of the last one.

    Notes
    -----
    Derivative: 1 for the element whose index is returned.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cummax(cr.tensor([1.0, 3.0, 2.0]), 0).values
    tensor([1., 3., 3.])
    """
    return _cumulative_extreme("cummax", np.maximum, input, either(dim, axis))


@operation()
def cummin(input: Operand, dim: int | None = None, *, axis: int | None = None) -> Extremes:
    """Return the cumulative minimum along a dimension, and its indices; see `cummax`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cummin(cr.tensor([2.0, 3.0, 1.0]), 0).values
    tensor([2., 2., 1.])
    """
    return _cumulative_extreme("cummin", np.minimum, input, either(dim, axis))


def _cumulative_extreme(name: str, ufunc: Any, x: Operand, dim: int | None) -> Extremes:
    """Return the cumulative results of np.maximum or np.minimum, with their last indices."""
    x = tensor_of(x)
    if dim is None:
        raise ArgumentTypeError(f"{name}() needs dim (or axis)")
    number = one_dim(dim, x.ndim)
    if x.ndim == 0:
        return Extremes(elementwise.clone.apply(x), constant(np.zeros((), np.int64), x))
    array = x._array
    extreme = accumulate(ufunc, array, number)
    is_extreme = array == extreme
    xp = namespace(array)
    if array.dtype.kind == "f" and (array.__class__ is not ndarray or np.isnan(extreme).any()):
        is_extreme = is_extreme | xp.isnan(array)
    found = last_positions(is_extreme) if number == x.ndim - 1 else None
    if found is None:
        along = xp.arange(array.shape[number])
        positions = along.reshape((-1,) + (1,) * (x.ndim - 1 - number))
        found = accumulate(np.maximum, is_extreme * positions, number)
    indices = make(found, None)
    return Extremes(indexing.take_along_axis.apply(x, indices, axis=number), indices)


@operation()
def logcumsumexp(input: Operand, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """Return the logarithms of the cumulative sums of exponentials along a dimension.

    Parameters
    ----------
    input : Tensor
        Exponents: integers are taken as numbers of the default dtype.
    dim : int
        Dimension to sum along. Also spelled `axis`. Optional if there is only one.

    Returns
    -------
    Tensor, shape of `input`
        For complex numbers the principal values, as for `logsumexp` (PyTorch's may differ).

    Notes
    -----
    Evaluated without overflow. Derivative: exp(xᵢ - outₖ) of outₖ with respect to xᵢ, i ≤ k; 0
    where both are -inf.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.logcumsumexp(cr.tensor([-1000.0, 0.0, -1000.0]), 0)
    tensor([-1000.,     0.,     0.])
    """
    input = floating(input)
    if input._array.dtype.kind == "c":
        return _complex_logcumsumexp(input, either(dim, axis))
    return apply_along_dim(reductions.logcumsumexp, input, either(dim, axis))


def _complex_logcumsumexp(x: Tensor, dim: int | None) -> Tensor:
    """Return a prefix scan by recursive doubling (Hillis, Steele, Commun. ACM 29(12), 1986)."""
    if dim is None and x.ndim > 1:
        raise ArgumentTypeError(
            f"logcumsumexp() needs dim (or axis): the tensor has {x.ndim} dimensions"
        )
    number = one_dim(0 if dim is None else dim, x.ndim)
    if x.ndim == 0 or x.shape[number] == 0:
        return logsumexp(x[None], 0)
    sums, step = logsumexp(movedim(x, number, 0)[None], 0), 1
    while step < sums.shape[0]:
        sums = cat([sums[:step], logsumexp(stack([sums[step:], sums[:-step]]), 0)])
        step *= 2
    result: Tensor = elementwise.clone.apply(movedim(sums, 0, number))
    return result


# --- differences and integrals --------------------------------------------------------------------


@operation(array_api=True)
def diff(
    input: Operand,
    n: int = 1,
    dim: int = -1,
    prepend: Operand | None = None,
    append: Operand | None = None,
    *,
    axis: int | None = None,
) -> Tensor:
    """Return the n-th differences of neighbouring elements along a dimension.

    Parameters
    ----------
    input : Tensor
        At least one dimension. The difference of two bools is `not_equal`.
    n : int, default 1
        Order: how many times differences are taken.
    dim : int, default -1
        Dimension along which to subtract. Also spelled `axis`.
    prepend, append : Tensor, optional
        Values to concatenate before and after `input` first.

    Returns
    -------
    Tensor
        Shorter by `n` along `dim`.

    Raises
    ------
    ShapeError
        If `input` has no dimension.
    ArgumentError
        If `n` is negative.

    Notes
    -----
    Derivative, for n = 1: 1 for the later element, -1 for the earlier.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.diff(cr.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    input = tensor_of(input)
    if input.ndim == 0:
        raise ShapeError("diff expects input to be at least one-dimensional")
    n = whole_number(n, "diff", "n")
    if n < 0:
        raise ArgumentError(f"diff: order must be non-negative but got {n}")
    number = one_dim(dim if axis is None else axis, input.ndim)
    if n == 0:
        copy: Tensor = elementwise.clone.apply(input)
        return copy
    ends = [tensor_of(end) for end in (prepend, input, append) if end is not None]
    input = cat(ends, number) if len(ends) > 1 else input
    lead = (slice(None),) * number
    subtract = elementwise.not_equal if input.dtype.kind == "b" else elementwise.subtract
    for _ in range(min(n, input.shape[number])):
        later = indexing.getitem.apply(input, key=(*lead, slice(1, None), ...))
        input = subtract.apply(
            later, indexing.getitem.apply(input, key=(*lead, slice(None, -1), ...))
        )
    result: Tensor = input
    return result


def trapezoid(
    y: Operand,
    x: Operand | None = None,
    *,
    dx: float | None = None,
    dim: int | None = None,
    axis: int | None = None,
) -> Tensor:
    """Return the integral along a dimension by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        The values; integers are taken as numbers of the default dtype.
    x : Tensor, optional
        Coordinates of the values: of the shape of `y`, or a vector.
    dx : number, default 1
        Spacing of the values, if `x` is left out.
    dim : int, default -1
        Dimension to integrate along. Also spelled `axis`.

    Returns
    -------
    Tensor, shape of `y` without `dim`
        In units of y times x.

    Raises
    ------
    ShapeError
        If `y` has no dimension.

    Notes
    -----
    Derivatives at inner points: (xᵢ₊₁ - xᵢ₋₁) / 2 for yᵢ, (yᵢ₋₁ - yᵢ₊₁) / 2 for xᵢ.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.trapezoid(cr.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    dim = _dim_or_last(dim, axis)
    return sum(_trapezoid_areas("trapezoid", y, x, dx, dim), dim)


trapz = trapezoid


def cumulative_trapezoid(
    y: Operand,
    x: Operand | None = None,
    *,
    dx: float | None = None,
    dim: int | None = None,
    axis: int | None = None,
) -> Tensor:
    """Return the cumulative integrals along a dimension; the arguments are those of `trapezoid`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cumulative_trapezoid(cr.tensor([1.0, 2.0, 3.0]))
    tensor([1.5000, 4.0000])
    """
    dim = _dim_or_last(dim, axis)
    return cumsum(_trapezoid_areas("cumulative_trapezoid", y, x, dx, dim), dim)


def _dim_or_last(dim: int | None, axis: int | None) -> int:
    """Return `dim` or `axis`, by default the last dimension."""
    named: int | None = either(dim, axis)
    return -1 if named is None else named


def _trapezoid_areas(
    name: str, y: Operand, x: Operand | None, dx: float | None, dim: int
) -> Tensor:
    """Return the areas of the trapezoids between neighbouring values."""
    y = floating(y)
    if y.ndim == 0:
        raise ShapeError(f"{name}: expected y of at least one dimension, got 0")
    if x is not None and dx is not None:
        raise ArgumentTypeError(
            f"{name}: x and dx both define the spacing of the values: give one of them"
        )
    number = one_dim(dim, y.ndim)
    lead = (slice(None),) * number
    left = indexing.getitem.apply(y, key=(*lead, slice(None, -1), ...))
    right = indexing.getitem.apply(y, key=(*lead, slice(1, None), ...))
    mean = elementwise.multiply.apply(elementwise.add.apply(left, right), 0.5)
    if x is None:
        return mean if dx is None else elementwise.multiply.apply(mean, dx)
    x = tensor_of(x)
    width = diff(x, 1, 0 if x.ndim == 1 else number)
    if x.ndim == 1:
        width = shaping.reshape.apply(width, shape=(-1,) + (1,) * (y.ndim - 1 - number))
    return elementwise.multiply.apply(mean, width)


# --- numerical gradients --------------------------------------------------------------------------


def gradient(
    input: Operand,
    *,
    spacing: Operand | Sequence[Operand] | None = None,
    dim: Dims = None,
    edge_order: int = 1,
    axis: Dims = None,
) -> tuple[Tensor, ...]:
    """Return the numerical gradient of sampled values along dimensions, by finite differences.

    Parameters
    ----------
    input : Tensor
        The samples; integers are taken as numbers of the default dtype.
    spacing : number, or sequence of numbers or Tensors, optional
        Spacing of the samples, by default 1: one number for all dimensions, or one for each. A
        vector has the coordinates of the samples along its dimension.
    dim : int or sequence of ints, optional
        Dimensions to differentiate along: all if left out. Also spelled `axis`.
    edge_order : 1 or 2
        Accuracy at the ends: the slope of the line through two samples, or of the parabola through
        three.

    Returns
    -------
    tuple of Tensors, shape of `input`
        One for each dimension.

    Raises
    ------
    ShapeError
        If `spacing` is a sequence whose length is not the number of dimensions.
    ArgumentError
        If `edge_order` is neither 1 nor 2, or there are at most `edge_order` samples.

    See Also
    --------
    autograd_grad : exact derivatives of computed tensors.

    Notes
    -----
    At inner samples, the slope of the parabola through three neighbours [1]_. The result is linear
    in `input`, and also differentiable with respect to coordinates.

    References
    ----------
    .. [1] B. Fornberg, Math. Comp. 51(184), 1988, 699–706.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.gradient(cr.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    samples = floating(input)
    dims = many_dims(either(dim, axis), samples.ndim)
    dims = tuple(range(samples.ndim)) if dims is None else dims
    spacing = 1 if spacing is None else spacing
    distances = list(spacing) if isinstance(spacing, list | tuple) else [spacing] * len(dims)
    if len(distances) != len(dims):
        raise ShapeError(
            "gradient: expected spacing to be unspecified, a scalar, or as long as dim, but got "
            f"a spacing argument of length {len(distances)} and {len(dims)} dimensions"
        )
    if edge_order not in (1, 2):
        raise ArgumentError(
            f"gradient: only supports edge_order=1 and edge_order=2, got {edge_order}"
        )
    return tuple(
        [
            gradient_along_axis(samples, _spacing_tensor(h, samples), number, edge_order)
            for h, number in zip(distances, dims, strict=True)
        ]
    )


def _spacing_tensor(value: Any, samples: Tensor) -> Tensor:
    """Return a spacing or coordinates as a tensor; numbers get the dtype of the samples."""
    if isinstance(value, int | float):
        return full((), value, dtype=samples.dtype)
    return tensor_of(value)


def gradient_along_axis(f: Tensor, h: Tensor, axis: int, edge_order: int) -> Tensor:
    """Return the slopes of the parabolas through three neighbours along one axis.

    With distances d to the previous and e to the next sample, the weights are -e / (d (d + e)),
    (e - d) / (d e) and d / (e (d + e)). Second-order edges are slopes of the outermost parabolas.
    """
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ArgumentError(
            "gradient: expected each dimension size to be at least edge_order+1. Shape of array "
            "too small to calculate a numerical gradient, at least (edge_order + 1) elements are "
            f"required: axis {axis} has {n}"
        )
    if h.ndim and h.shape != (n,):
        raise ArgumentError(
            f"gradient: expected a distance, or {n} coordinates along axis {axis}, got the shape "
            f"{list(h.shape)}"
        )
    f = moveaxis(f, axis, -1)
    steps = diff(h) if h.ndim else broadcast_to(h, (n - 1,))
    rises = diff(f) / steps
    first, last = rises[..., :1], rises[..., -1:]
    d, e = steps[:-1], steps[1:]
    if h.ndim:
        inner = (rises[..., :-1] * e + rises[..., 1:] * d) / (d + e)
    else:  # the middle sample has weight 0, and would give nan if it is infinite
        inner = (f[..., 2:] - f[..., :-2]) / (2 * h)
    if edge_order == 2:
        first = first + (rises[..., :1] - rises[..., 1:2]) * d[:1] / (d + e)[:1]
        last = last + (rises[..., -1:] - rises[..., -2:-1]) * e[-1:] / (d + e)[-1:]
    return moveaxis(cat([first, inner, last], -1), -1, axis)
