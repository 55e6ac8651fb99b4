"""Sums, products, counts and truth along dimensions."""

from __future__ import annotations

from chainrule.arguments import (
    RECORDERS,
    Dims,
    DTypeLike,
    Operand,
    cast,
    either,
    many_dims,
    tensor_of,
)
from chainrule.autograd.tensor import Tensor
from chainrule.backend import dtype_title
from chainrule.errors import DTypeError
from chainrule.ops.calls import along

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
]


def sum(
    x: Operand,
    /,
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
    x : Tensor
        Numbers or bools.
    dim : int or sequence of ints, optional
        What to sum over: everything if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep the dimensions that were summed over, with length 1. Also spelled `keepdims`.
    dtype : dtype, optional
        Convert to this first.

    Returns
    -------
    Tensor, shape of `x` without `dim`
        Of the dtype of `x`; int64 for integers and bools.

    Raises
    ------
    IndexError
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
    if x.__class__ is not Tensor or dtype is not None:
        x = cast(tensor_of(x), dtype)
    if axis is not None:
        dim = either(dim, axis)
    if dim is not None:
        dim = many_dims(dim, x._array.ndim)
    total = _sum(x, axis=dim, keepdims=keepdim or keepdims)
    return total if total._node is not None else _signed(total)


_sum = RECORDERS["sum"]


def _signed(x: Tensor) -> Tensor:
    """Return int64 instead of the uint64 that NumPy sums unsigned integers in."""
    return cast(x, "int64") if x._array.dtype.kind == "u" else x


def mean(
    x: Operand,
    /,
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
        If `x` is of integers or bools and no floating `dtype` is given.

    Notes
    -----
    Derivative: 1/n for every element, where n of them are averaged. No element gives nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.mean(cr.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    tensor([1.5000, 3.5000])
    """
    x = cast(tensor_of(x), dtype)
    check_floating(x, "mean")
    dims = many_dims(either(dim, axis), x.ndim)
    return RECORDERS["mean"](x, axis=dims, keepdims=keepdim or keepdims)


def check_floating(x: Tensor, operation: str) -> None:
    if x._array.dtype.kind not in "fc":
        raise DTypeError(
            f"{operation}(): could not infer output dtype. Input dtype must be either a floating "
            f"point or complex dtype. Got: {dtype_title(x.dtype)}. Convert it first, with .float()"
        )


def prod(
    x: Operand,
    /,
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
    right where there are zeros.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.prod(cr.tensor([2.0, 3.0, 4.0]))
    tensor(24.)
    """
    x = cast(tensor_of(x), dtype)
    dims = many_dims(either(dim, axis), x.ndim)
    return _signed(RECORDERS["prod"](x, axis=dims, keepdims=keepdim or keepdims))


def cumsum(
    x: Operand, /, dim: int | None = None, *, axis: int | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Return the running sums of the elements along a dimension.

    Parameters
    ----------
    x : Tensor
        Numbers or bools.
    dim : int
        Along which dimension. Also spelled `axis`. It can be left out where there is only one.
    dtype : dtype, optional
        Convert to this first.

    Returns
    -------
    Tensor, shape of `x`
        Of the dtype of `x`; int64 for integers and bools.

    Notes
    -----
    Derivative: element i contributes 1 to every sum from the i-th on.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cumsum(cr.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.])
    """
    x = cast(tensor_of(x), dtype)
    return _signed(along("cumulative_sum", x, either(dim, axis)))


cumulative_sum = cumsum


def cumprod(
    x: Operand, /, dim: int | None = None, *, axis: int | None = None, dtype: DTypeLike = None
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
    x = cast(tensor_of(x), dtype)
    return _signed(along("cumulative_prod", x, either(dim, axis)))


cumulative_prod = cumprod


def all(
    x: Operand,
    /,
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
    return _counted("all", x, either(dim, axis), keepdim or keepdims)


def any(
    x: Operand,
    /,
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
    return _counted("any", x, either(dim, axis), keepdim or keepdims)


def count_nonzero(
    x: Operand,
    /,
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
    return _counted("count_nonzero", x, either(dim, axis), keepdims)


def _counted(name: str, x: Operand, dim: Dims, keepdims: bool) -> Tensor:
    x = tensor_of(x)
    return RECORDERS[name](x, axis=many_dims(dim, x.ndim), keepdims=keepdims)
