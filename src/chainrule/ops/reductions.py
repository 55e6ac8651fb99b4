"""Sums, products, counts and truth along dimensions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from chainrule.arguments import (
    Dims,
    DTypeLike,
    Operand,
    cast,
    either,
    many_dims,
    one_dim,
    over,
    tensor_of,
)
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import dtype_title, namespace
from chainrule.errors import ArgumentError, DTypeError, OutOfBoundsError
from chainrule.operation import operation
from chainrule.ops.wrappers import apply_along_dim, reshape_result
from chainrule.primitives import elementwise, indexing, reductions, shaping
from chainrule.primitives.primitive import Primitive

__all__ = [
    "sum",
    "mean",
    "prod",
    "cumsum",
    "cumulative_sum",
    "cumprod",
    "cumulative_prod",
    "all",
    "any",
    "count_nonzero",
    "max",
    "min",
    "amax",
    "amin",
    "argmax",
    "argmin",
]


@operation()
def sum(
    input: Operand,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
    dtype: DTypeLike = None,
) -> Tensor:
    """Return the sum of the elements along dimensions.

    Parameters
    ----------
    input : Tensor
        Numbers or bools.
    dim : int or sequence of ints, optional
        What to sum over: everything if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep the dimensions that were summed over, with length 1. Also spelled `keepdims`.
    dtype : dtype, optional
        Convert to this first.

    Returns
    -------
    Tensor, shape of `input` without `dim`
        Of the dtype of `input`; int64 for integers and bools. Of no element: 0.

    Raises
    ------
    OutOfBoundsError
        If a dimension is out of range.

    Notes
    -----
    Derivative: 1 for every element.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cr.sum(x)
    tensor(10.)
    >>> cr.sum(x, dim=0)
    tensor([4., 6.])
    """
    if input.__class__ is not Tensor or dtype is not None:
        input = cast(tensor_of(input), dtype)
    if axis is not None:
        dim = either(dim, axis)
    if dim is not None:
        dim = many_dims(dim, input._array.ndim)
        if dim == () and axis is None:
            dim = None  # as `over` says
    total = _sum(input, axis=dim, keepdims=keepdim or keepdims)
    if total._node is not None or (dtype is None and total._array.dtype.kind == "f"):
        return total
    return _accumulated(total, dtype)


_sum = reductions.sum.apply


def _accumulated(x: Tensor, dtype: DTypeLike) -> Tensor:
    """Return a sum in the dtype that was asked for; if none was, NumPy's uint64 as int64."""
    if dtype is not None:
        return cast(x, dtype)
    return cast(x, "int64") if x._array.dtype.kind == "u" else x


@operation(array_api=True)
def mean(
    input: Operand,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
    dtype: DTypeLike = None,
) -> Tensor:
    """Return the mean of the elements along dimensions; the arguments are those of `sum`.

    Raises
    ------
    DTypeError
        If `input` is of integers or bools and no floating `dtype` is given.

    Notes
    -----
    Derivative: 1/n for every element, where n of them are averaged. No element gives nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.mean(cr.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    tensor([1.5000, 3.5000])
    """
    input = cast(tensor_of(input), dtype)
    check_floating(input, "mean")
    dims = many_dims(over(dim, axis), input.ndim)
    return reductions.mean.apply(input, axis=dims, keepdims=keepdim or keepdims)


def check_floating(x: Tensor, operation: str) -> None:
    if x._array.dtype.kind not in "fc":
        raise DTypeError(
            f"{operation}(): could not infer output dtype. Input dtype must be either a floating "
            f"point or complex dtype. Got: {dtype_title(x.dtype)}. Convert it first, with .float()"
        )


@operation()
def prod(
    input: Operand,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
    dtype: DTypeLike = None,
) -> Tensor:
    """Return the product of the elements along dimensions; the arguments are those of `sum`.

    Notes
    -----
    Derivative: for each element the product of the others, computed without division, so it is
    right where there are zeros. The product of no element is 1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.prod(cr.tensor([2.0, 3.0, 4.0]))
    tensor(24.)
    """
    input = cast(tensor_of(input), dtype)
    dims = many_dims(either(dim, axis), input.ndim)
    return _accumulated(
        reductions.prod.apply(input, axis=dims, keepdims=keepdim or keepdims), dtype
    )


@operation(inplace=True)
def cumsum(
    input: Operand, dim: int | None = None, *, axis: int | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Return the running sums of the elements along a dimension.

    Parameters
    ----------
    input : Tensor
        Numbers or bools.
    dim : int
        Along which dimension. Also spelled `axis`. It can be left out where there is only one.
    dtype : dtype, optional
        Convert to this first.

    Returns
    -------
    Tensor, shape of `input`
        Of the dtype of `input`; int64 for integers and bools.

    Notes
    -----
    Derivative: element i contributes 1 to every sum from the i-th on.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cumsum(cr.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.])
    """
    input = cast(tensor_of(input), dtype)
    return _accumulated(apply_along_dim(reductions.cumulative_sum, input, either(dim, axis)), dtype)


@operation(method=False, array_api=True)
def cumulative_sum(
    input: Operand,
    *,
    axis: int | None = None,
    dtype: DTypeLike = None,
    include_initial: bool = False,
) -> Tensor:
    """Return the running sums along an axis: the array API's `cumsum`.

    Parameters
    ----------
    input : Tensor
        Numbers or bools.
    axis : int, optional
        Along which axis. It can be left out where there is only one.
    dtype : dtype, optional
        Convert to this first.
    include_initial : bool, default False
        Begin with the sum of nothing, 0: the result is longer by one.

    Returns
    -------
    Tensor
        Of the dtype of `input`; int64 for integers and bools, uint64 for unsigned ones.

    Notes
    -----
    Derivative: as for `cumsum`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cumulative_sum(cr.tensor([1, 2, 3]), include_initial=True)
    tensor([0, 1, 3, 6])
    """
    return _cumulated(reductions.cumulative_sum, input, axis, dtype, 0 if include_initial else None)


def _cumulated(
    primitive: Primitive, x: Operand, axis: Any, dtype: DTypeLike, initial: int | None
) -> Tensor:
    x = tensor_of(x)
    dtype = accumulator_dtype(x) if dtype is None else dtype
    result = cast(apply_along_dim(primitive, cast(x, dtype), axis), dtype)
    if initial is None:
        return result
    number = one_dim(0 if axis is None else axis, result.ndim)
    shape = (*result.shape[:number], 1, *result.shape[number + 1 :])
    first = make(namespace(result._array).full(shape, initial, dtype=result.dtype), None)
    return shaping.concat.apply(first, result, axis=number)


def accumulator_dtype(x: Tensor) -> Any:
    """Return the dtype that the array API sums in: a wide one for integers."""
    kind = x._array.dtype.kind
    return np.dtype("uint64" if kind == "u" else "int64") if kind in "biu" else x.dtype


@operation(inplace=True)
def cumprod(
    input: Operand, dim: int | None = None, *, axis: int | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Return the running products along a dimension; the arguments are those of `cumsum`.

    Notes
    -----
    Derivative: element i contributes to every product from the i-th on what the others multiply to,
    computed without division (in n² steps), so it is right where there are zeros.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cumprod(cr.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 2., 6.])
    """
    input = cast(tensor_of(input), dtype)
    return _accumulated(
        apply_along_dim(reductions.cumulative_prod, input, either(dim, axis)), dtype
    )


@operation(method=False, array_api=True)
def cumulative_prod(
    input: Operand,
    *,
    axis: int | None = None,
    dtype: DTypeLike = None,
    include_initial: bool = False,
) -> Tensor:
    """Return the running products along an axis; the arguments are those of `cumulative_sum`.

    With `include_initial` the result begins with the product of nothing, 1.

    Notes
    -----
    Derivative: as for `cumprod`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cumulative_prod(cr.tensor([2, 3]), include_initial=True)
    tensor([1, 2, 6])
    """
    return _cumulated(
        reductions.cumulative_prod, input, axis, dtype, 1 if include_initial else None
    )


@operation(array_api=True)
def all(
    input: Operand,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
) -> Tensor:
    """Say along dimensions whether every element is true; the arguments are those of `sum`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.all(cr.tensor([True, False]))
    tensor(False)
    """
    return _counted(reductions.all, input, either(dim, axis), keepdim or keepdims)


@operation(array_api=True)
def any(
    input: Operand,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
) -> Tensor:
    """Say along dimensions whether some element is true; the arguments are those of `sum`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.any(cr.tensor([True, False]))
    tensor(True)
    """
    return _counted(reductions.any, input, either(dim, axis), keepdim or keepdims)


@operation(array_api=True)
def count_nonzero(
    input: Operand,
    dim: Dims = None,
    *,
    axis: Dims = None,
    keepdims: bool = False,
) -> Tensor:
    """Return along dimensions how many elements are not zero; the arguments are those of `sum`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.count_nonzero(cr.tensor([1.0, 0.0, 2.0]))
    tensor(2)
    """
    return _counted(reductions.count_nonzero, input, over(dim, axis), keepdims)


def _counted(primitive: Primitive, x: Operand, dim: Dims, keepdims: bool) -> Tensor:
    x = tensor_of(x)
    return primitive.apply(x, axis=many_dims(dim, x.ndim), keepdims=keepdims)


# --- extrema --------------------------------------------------------------------------------------
#
# Largest and smallest elements, and where they are.


class Extremes(NamedTuple):
    """Values, and where along the dimension they were."""

    values: Tensor
    indices: Tensor


@operation()
def max(
    input: Operand,
    dim: int | Tensor | None = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
    other: Operand | None = None,
) -> Any:
    """Return the largest element: of all, of each row along a dimension, or of two tensors.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan is larger than any.
    dim : int or Tensor, optional
        ``max(x)`` is the largest of all elements. ``max(x, dim)`` is PyTorch's form: the largest
        along one dimension, and where it is. ``max(x, y)`` with a tensor is `maximum`.
    keepdim : bool, default False
        Keep the dimension, with length 1.
    axis, keepdims : optional
        The array API's form: the largest along one or several dimensions, as `amax` returns it.
    other : Tensor, array or number, optional
        The second of two tensors, by name.

    Returns
    -------
    Tensor, or named tuple (values, indices) of Tensors

    Raises
    ------
    ArgumentError
        If there is no element to choose.

    Notes
    -----
    Derivative: ``max(x)`` spreads evenly over equal largest elements, ``max(x, dim)`` goes to the
    index that it returns, ``max(x, y)`` gives half to each where they are equal.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[1.0, 5.0], [7.0, 2.0]])
    >>> cr.max(x)
    tensor(7.)
    >>> values, indices = cr.max(x, dim=1)
    >>> indices
    tensor([1, 0])
    """
    return _extreme(reductions.max, input, dim, keepdim, axis, keepdims, other)


@operation()
def min(
    input: Operand,
    dim: int | Tensor | None = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
    other: Operand | None = None,
) -> Any:
    """Return the smallest element: of all, of each row along a dimension, or of two tensors.

    The arguments and results are those of `max`.

    Notes
    -----
    Derivative: as for `max`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.min(cr.tensor([3.0, 1.0]), dim=0).values
    tensor(1.)
    """
    return _extreme(reductions.min, input, dim, keepdim, axis, keepdims, other)


def _extreme(
    primitive: Primitive,
    x: Operand,
    dim: Any,
    keepdim: bool,
    axis: Dims,
    keepdims: bool,
    other: Any,
) -> Any:
    x = tensor_of(x)
    if isinstance(dim, Tensor) and other is None:
        dim, other = None, dim
    if other is not None:
        if dim is not None or axis is not None:
            raise ValueError(
                f"{primitive.name}: expected a dimension or another tensor, got both: compare "
                "first, and reduce the result"
            )
        pairwise, _ = _EXTREMES[primitive]
        return pairwise.apply(x, other)
    if dim is None:
        return _reduced(primitive, x, axis, keepdim or keepdims)
    number = one_dim(either(dim, axis), x.ndim)
    _, argument = _EXTREMES[primitive]
    indices = _positions(argument, x, number, True)
    return take_extremes(x, indices, number, keepdim or keepdims)


_EXTREMES = {
    reductions.max: (elementwise.maximum, reductions.argmax),
    reductions.min: (elementwise.minimum, reductions.argmin),
}
"""By reduction: the primitive of two operands, and that of the index."""


def take_extremes(x: Tensor, indices: Tensor, dim: int, keepdim: bool) -> Extremes:
    """Return the elements at `indices`, of length 1 along `dim`."""
    if x.ndim == 0:
        return Extremes(elementwise.clone.apply(x), indices)
    values = indexing.take_along_axis.apply(x, indices, axis=dim)
    if keepdim:
        return Extremes(values, indices)
    shape = (*x.shape[:dim], *x.shape[dim + 1 :])
    return Extremes(reshape_result(values, shape), make(indices._array.reshape(shape), None))


def _reduced(
    primitive: Primitive, x: Tensor, dims: Dims, keepdims: bool, called: str | None = None
) -> Tensor:
    axes = many_dims(dims, x.ndim)
    empty = [i for i in (range(x.ndim) if axes is None else axes) if x.shape[i] == 0]
    if empty and axes is None:
        raise ArgumentError(
            f"{called or primitive.name}(): Expected reduction dim to be specified for "
            "input.numel() == 0, and to have a length that is not 0: the "
            f"shape is {list(x.shape)}"
        )
    if empty:
        raise OutOfBoundsError(
            f"{called or primitive.name}(): Expected reduction dim {empty[0]} to have non-zero "
            f"size: the shape is {list(x.shape)}"
        )
    return primitive.apply(x, axis=axes, keepdims=keepdims)


@operation()
def amax(
    input: Operand,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the largest element along dimensions.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan is larger than any.
    dim : int or sequence of ints, optional
        Along what: everything if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep those dimensions, with length 1. Also spelled `keepdims`.

    Returns
    -------
    Tensor, shape of `input` without `dim`

    Raises
    ------
    ArgumentError
        If there is no element to choose.

    Notes
    -----
    Derivative: 1, spread evenly over equal largest elements.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.amax(cr.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=0)
    tensor([7., 5.])
    """
    return _reduced(reductions.max, tensor_of(input), over(dim, axis), keepdim or keepdims, "amax")


@operation()
def amin(
    input: Operand,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the smallest element along dimensions; the arguments are those of `amax`.

    Notes
    -----
    Derivative: 1, spread evenly over equal smallest elements.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.amin(cr.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=0)
    tensor([1., 2.])
    """
    return _reduced(reductions.min, tensor_of(input), over(dim, axis), keepdim or keepdims, "amin")


@operation(array_api=True)
def argmax(
    input: Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return where the largest element is: the first one, if several are equal.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan is larger than any.
    dim : int, optional
        Along which dimension: in the flattened tensor if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep the dimension, with length 1. Also spelled `keepdims`.

    Returns
    -------
    Tensor of int64

    Raises
    ------
    ArgumentError
        If there is no element to choose.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.argmax(cr.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
    tensor([1, 0])
    """
    return _positions(reductions.argmax, tensor_of(input), either(dim, axis), keepdim or keepdims)


@operation(array_api=True)
def argmin(
    input: Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return where the smallest element is; the arguments are those of `argmax`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.argmin(cr.tensor([3.0, 1.0, 2.0]))
    tensor(1)
    """
    return _positions(reductions.argmin, tensor_of(input), either(dim, axis), keepdim or keepdims)


def _positions(primitive: Primitive, x: Tensor, dim: int | None, keepdims: bool) -> Tensor:
    number = None if dim is None else one_dim(dim, x.ndim)
    if x.numel() == 0 and (number is None or x.shape[number] == 0):
        raise ArgumentError(
            f"{primitive.name}(): there is no element to choose in shape {list(x.shape)}"
        )
    if x.ndim == 0:
        number = None
    return primitive.apply(x, axis=number, keepdims=keepdims)
