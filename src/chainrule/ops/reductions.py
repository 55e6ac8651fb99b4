"""Reductions along dimensions: sums, products, counts, logical reductions, extrema."""

from __future__ import annotations

from typing import Any, NamedTuple, overload

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
    written,
)
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import dtype_title, namespace
from chainrule.errors import ArgumentError, ArgumentTypeError, DTypeError, OutOfBoundsError
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
    out: Tensor | None = None,
) -> Tensor:
    """Return the sum of the elements along dimensions.

    Parameters
    ----------
    input : Tensor
        Numbers or bools.
    dim : int or sequence of ints, optional
        Dimensions to sum over: all if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep the reduced dimensions, with length 1. Also spelled `keepdims`.
    dtype : dtype, optional
        Convert to this first.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape of `input` without `dim`
        Of the dtype of `input`; int64 for integers and bools. The sum of no elements is 0.

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
    if out is not None:
        found: Tensor = written(
            sum(input, dim, keepdim, axis=axis, keepdims=keepdims, dtype=dtype), out
        )
        return found
    if type(input) is not Tensor or dtype is not None:
        input = cast(tensor_of(input), dtype)
    if axis is not None:
        dim = either(dim, axis)
    if dim is not None:
        dim = many_dims(dim, input._array.ndim)
        if dim == () and axis is None:
            dim = None  # see `over`
    total = _sum(input, axis=dim, keepdims=keepdim or keepdims)
    if total._node is not None or (dtype is None and total._array.dtype.kind == "f"):
        return total
    return _cast_accumulated(total, dtype)


_sum = reductions.sum.apply


def _cast_accumulated(x: Tensor, dtype: DTypeLike) -> Tensor:
    """Cast a sum to `dtype`; if it is None, uint64 to int64."""
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
    out: Tensor | None = None,
) -> Tensor:
    """Return the mean of the elements along dimensions; the arguments are those of `sum`.

    Raises
    ------
    DTypeError
        If `input` is of integers or bools and no floating `dtype` is given.

    Notes
    -----
    Derivative: 1/n for the mean of n elements. The mean of no elements is nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.mean(cr.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    tensor([1.5000, 3.5000])
    """
    if out is not None:
        found: Tensor = written(
            mean(input, dim, keepdim, axis=axis, keepdims=keepdims, dtype=dtype), out
        )
        return found
    input = cast(tensor_of(input), dtype)
    check_floating(input, "mean")
    dims = many_dims(over(dim, axis), input.ndim)
    return reductions.mean.apply(input, axis=dims, keepdims=keepdim or keepdims)


def check_floating(x: Tensor, operation: str) -> None:
    """Raise DTypeError if `x` is not of real or complex floating numbers."""
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
    Derivative: for each element the product of the others, computed without division, so that it
    is correct where there are zeros. The product of no elements is 1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.prod(cr.tensor([2.0, 3.0, 4.0]))
    tensor(24.)
    """
    input = cast(tensor_of(input), dtype)
    dims = many_dims(either(dim, axis), input.ndim)
    return _cast_accumulated(
        reductions.prod.apply(input, axis=dims, keepdims=keepdim or keepdims), dtype
    )


@operation(inplace=True)
def cumsum(
    input: Operand, dim: int | None = None, *, axis: int | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Return the cumulative sums of the elements along a dimension.

    Parameters
    ----------
    input : Tensor
        Numbers or bools.
    dim : int
        Dimension to sum along. Also spelled `axis`. Optional if there is only one.
    dtype : dtype, optional
        Convert to this first.

    Returns
    -------
    Tensor, shape of `input`
        Of the dtype of `input`; int64 for integers and bools.

    Notes
    -----
    Derivative: 1 of sum k for element i ≤ k, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cumsum(cr.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.])
    """
    input = cast(tensor_of(input), dtype)
    return _cast_accumulated(
        apply_along_dim(reductions.cumulative_sum, input, either(dim, axis)), dtype
    )


@operation(method=False, array_api=True)
def cumulative_sum(
    input: Operand,
    *,
    axis: int | None = None,
    dtype: DTypeLike = None,
    include_initial: bool = False,
) -> Tensor:
    """Return the cumulative sums along an axis: the array API's `cumsum`.

    Parameters
    ----------
    input : Tensor
        Numbers or bools.
    axis : int, optional
        Axis to sum along. Optional if there is only one.
    dtype : dtype, optional
        Convert to this first.
    include_initial : bool, default False
        Begin with 0, the sum of no elements: the result is longer by one.

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
    return _cumulative(
        reductions.cumulative_sum, input, axis, dtype, 0 if include_initial else None
    )


def _cumulative(
    primitive: Primitive, x: Operand, axis: Any, dtype: DTypeLike, initial: int | None
) -> Tensor:
    """Apply a cumulative primitive along an axis; prepend `initial` unless it is None."""
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
    """Return the dtype in which the array API accumulates: 64 bits for integers and bools."""
    kind = x._array.dtype.kind
    return np.dtype("uint64" if kind == "u" else "int64") if kind in "biu" else x.dtype


@operation(inplace=True)
def cumprod(
    input: Operand, dim: int | None = None, *, axis: int | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Return the cumulative products along a dimension; the arguments are those of `cumsum`.

    Notes
    -----
    Derivative: of product k for element i ≤ k, the product of the other elements up to k, computed
    without division (in n² steps), so that it is correct where there are zeros.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cumprod(cr.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 2., 6.])
    """
    input = cast(tensor_of(input), dtype)
    return _cast_accumulated(
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
    """Return the cumulative products along an axis; the arguments are those of `cumulative_sum`.

    With `include_initial` the result begins with 1, the product of no elements.

    Notes
    -----
    Derivative: as for `cumprod`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cumulative_prod(cr.tensor([2, 3]), include_initial=True)
    tensor([1, 2, 6])
    """
    return _cumulative(
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
    """Test whether all elements along dimensions are true; the arguments are those of `sum`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.all(cr.tensor([True, False]))
    tensor(False)
    """
    return _reduce(reductions.all, input, either(dim, axis), keepdim or keepdims)


@operation(array_api=True)
def any(
    input: Operand,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
) -> Tensor:
    """Test whether any element along dimensions is true; the arguments are those of `sum`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.any(cr.tensor([True, False]))
    tensor(True)
    """
    return _reduce(reductions.any, input, either(dim, axis), keepdim or keepdims)


@operation(array_api=True)
def count_nonzero(
    input: Operand,
    dim: Dims = None,
    *,
    axis: Dims = None,
    keepdims: bool = False,
) -> Tensor:
    """Count the nonzero elements along dimensions; the arguments are those of `sum`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.count_nonzero(cr.tensor([1.0, 0.0, 2.0]))
    tensor(2)
    """
    return _reduce(reductions.count_nonzero, input, over(dim, axis), keepdims)


def _reduce(primitive: Primitive, x: Operand, dim: Dims, keepdims: bool) -> Tensor:
    """Apply a reduction that accepts empty dimensions."""
    x = tensor_of(x)
    return primitive.apply(x, axis=many_dims(dim, x.ndim), keepdims=keepdims)


# --- extrema and their indices --------------------------------------------------------------------


class Extremes(NamedTuple):
    """Selected elements, and their indices along the dimension."""

    values: Tensor
    indices: Tensor


@overload
def max(
    input: Operand,
    dim: Tensor | None = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
    other: Operand | None = None,
    out: Tensor | None = None,
) -> Tensor: ...


@overload
def max(
    input: Operand,
    dim: int,
    keepdim: bool = False,
    *,
    keepdims: bool = False,
    out: tuple[Tensor, Tensor] | None = None,
) -> Extremes: ...


@operation()
def max(
    input: Operand,
    dim: int | Tensor | None = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
    other: Operand | None = None,
    out: Any = None,
) -> Any:
    """Return the largest element: of all, of each row along a dimension, or of two tensors.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan is larger than any.
    dim : int or Tensor, optional
        ``max(x)`` is the largest of all elements. ``max(x, dim)`` is PyTorch's form: the largest
        along one dimension, and its index. ``max(x, y)`` with a tensor is `maximum`.
    keepdim : bool, default False
        Keep the dimension, with length 1.
    axis, keepdims : optional
        The array API's form: the largest along one or several dimensions, as `amax`.
    other : Tensor, array or number, optional
        The second tensor, passed by name.
    out : Tensor, or two for values and indices, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, or named tuple (values, indices) of Tensors

    Raises
    ------
    ArgumentError
        If there is no element.

    Notes
    -----
    Derivative: for ``max(x)``, 1 shared evenly by the largest elements; for ``max(x, dim)``, 1 at
    the returned index; for ``max(x, y)``, 1/2 for each where they are equal.

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
    found = _extreme(reductions.max, input, dim, keepdim, axis, keepdims, other)
    return found if out is None else written(found, out)


@overload
def min(
    input: Operand,
    dim: Tensor | None = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
    other: Operand | None = None,
    out: Tensor | None = None,
) -> Tensor: ...


@overload
def min(
    input: Operand,
    dim: int,
    keepdim: bool = False,
    *,
    keepdims: bool = False,
    out: tuple[Tensor, Tensor] | None = None,
) -> Extremes: ...


@operation()
def min(
    input: Operand,
    dim: int | Tensor | None = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
    other: Operand | None = None,
    out: Any = None,
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
    found = _extreme(reductions.min, input, dim, keepdim, axis, keepdims, other)
    return found if out is None else written(found, out)


def _extreme(
    primitive: Primitive,
    x: Operand,
    dim: Any,
    keepdim: bool,
    axis: Dims,
    keepdims: bool,
    other: Any,
) -> Any:
    """Implement the three forms of `max` and `min`."""
    x = tensor_of(x)
    if isinstance(dim, Tensor) and other is None:
        dim, other = None, dim
    if other is not None:
        if dim is not None or axis is not None:
            raise ArgumentError(
                f"{primitive.name}: expected a dimension or another tensor, got both: compare "
                "first, and reduce the result"
            )
        binary, _ = _EXTREMES[primitive]
        return binary.apply(x, other)
    if dim is None:
        return _reduce_nonempty(primitive, x, axis, keepdim or keepdims)
    if isinstance(dim, float):
        raise ArgumentTypeError(
            f"{primitive.name}: a dimension must be an int, not float: to compare with a number, "
            f"write cr.{primitive.name}imum(x, {dim!r})"
        )
    number = one_dim(either(dim, axis), x.ndim)
    _, arg_primitive = _EXTREMES[primitive]
    indices = _arg_extreme(arg_primitive, x, number, True)
    return take_extremes(x, indices, number, keepdim or keepdims)


_EXTREMES = {
    reductions.max: (elementwise.maximum, reductions.argmax),
    reductions.min: (elementwise.minimum, reductions.argmin),
}
"""The binary primitive and the index primitive of each reduction."""


def take_extremes(x: Tensor, indices: Tensor, dim: int, keepdim: bool) -> Extremes:
    """Return the elements at `indices`, which have length 1 along `dim`, with the indices."""
    if x.ndim == 0:
        return Extremes(elementwise.clone.apply(x), indices)
    values = indexing.take_along_axis.apply(x, indices, axis=dim)
    if keepdim:
        return Extremes(values, indices)
    shape = (*x.shape[:dim], *x.shape[dim + 1 :])
    return Extremes(reshape_result(values, shape), make(indices._array.reshape(shape), None))


def _reduce_nonempty(
    primitive: Primitive, x: Tensor, dims: Dims, keepdims: bool, name: str = ""
) -> Tensor:
    """Apply a reduction; raise if a reduced dimension has length 0."""
    name = name or primitive.name
    axes = many_dims(dims, x.ndim)
    empty = [i for i in (range(x.ndim) if axes is None else axes) if x.shape[i] == 0]
    if empty and axes is None:
        raise ArgumentError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0, and to have "
            f"nonzero length: the shape is {list(x.shape)}"
        )
    if empty:
        raise OutOfBoundsError(
            f"{name}(): Expected reduction dim {empty[0]} to have non-zero size: the shape is "
            f"{list(x.shape)}"
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
        Dimensions to reduce: all if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep the reduced dimensions, with length 1. Also spelled `keepdims`.

    Returns
    -------
    Tensor, shape of `input` without `dim`

    Raises
    ------
    ArgumentError
        If there is no element.

    Notes
    -----
    Derivative: 1, shared evenly by the largest elements.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.amax(cr.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=0)
    tensor([7., 5.])
    """
    dims = over(dim, axis)
    return _reduce_nonempty(reductions.max, tensor_of(input), dims, keepdim or keepdims, "amax")


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
    Derivative: 1, shared evenly by the smallest elements.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.amin(cr.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=0)
    tensor([1., 2.])
    """
    dims = over(dim, axis)
    return _reduce_nonempty(reductions.min, tensor_of(input), dims, keepdim or keepdims, "amin")


@operation(array_api=True)
def argmax(
    input: Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the index of the largest element, the first of equal ones.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan is larger than any.
    dim : int, optional
        Dimension to reduce; the index into the flattened tensor if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep the dimension, with length 1. Also spelled `keepdims`.

    Returns
    -------
    Tensor of int64

    Raises
    ------
    ArgumentError
        If there is no element.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.argmax(cr.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
    tensor([1, 0])
    """
    return _arg_extreme(reductions.argmax, tensor_of(input), either(dim, axis), keepdim or keepdims)


@operation(array_api=True)
def argmin(
    input: Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the index of the smallest element; the arguments are those of `argmax`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.argmin(cr.tensor([3.0, 1.0, 2.0]))
    tensor(1)
    """
    return _arg_extreme(reductions.argmin, tensor_of(input), either(dim, axis), keepdim or keepdims)


def _arg_extreme(primitive: Primitive, x: Tensor, dim: int | None, keepdims: bool) -> Tensor:
    """Apply argmax or argmin; raise if there is no element."""
    number = None if dim is None else one_dim(dim, x.ndim)
    if x.numel() == 0 and (number is None or x.shape[number] == 0):
        raise ArgumentError(
            f"{primitive.name}(): there is no element to choose in shape {list(x.shape)}"
        )
    if x.ndim == 0:
        number = None
    return primitive.apply(x, axis=number, keepdims=keepdims)
