"""Largest and smallest elements, and where they are."""

from __future__ import annotations

from typing import Any, NamedTuple

from chainrule.arguments import (
    RECORDERS,
    Dims,
    Operand,
    either,
    many_dims,
    one_dim,
    over,
    tensor_of,
)
from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import ArgumentError, OutOfBoundsError
from chainrule.ops.wrappers import reshaped

__all__ = ["max", "min", "amax", "amin", "argmax", "argmin"]


class Extremes(NamedTuple):
    """Values, and where along the dimension they were."""

    values: Tensor
    indices: Tensor


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
    return _extreme("max", input, dim, keepdim, axis, keepdims, other)


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
    return _extreme("min", input, dim, keepdim, axis, keepdims, other)


def _extreme(
    name: str, x: Operand, dim: Any, keepdim: bool, axis: Dims, keepdims: bool, other: Any
) -> Any:
    x = tensor_of(x)
    if isinstance(dim, Tensor) and other is None:
        dim, other = None, dim
    if other is not None:
        if dim is not None or axis is not None:
            raise ValueError(
                f"{name}: expected a dimension or another tensor, got both: compare first, and "
                "reduce the result"
            )
        return RECORDERS[f"{name}imum"](x, other)
    if dim is None:
        return _reduced(name, x, axis, keepdim or keepdims)
    number = one_dim(either(dim, axis), x.ndim)
    indices = _positions(f"arg{name}", x, number, True)
    return chosen(x, indices, number, keepdim or keepdims)


def chosen(x: Tensor, indices: Tensor, dim: int, keepdim: bool) -> Extremes:
    """Return the elements at `indices`, of length 1 along `dim`."""
    if x.ndim == 0:
        return Extremes(RECORDERS["clone"](x), indices)
    values = RECORDERS["take_along_axis"](x, indices, axis=dim)
    if keepdim:
        return Extremes(values, indices)
    shape = (*x.shape[:dim], *x.shape[dim + 1 :])
    return Extremes(reshaped(values, shape), make(indices._array.reshape(shape), None))


def _reduced(name: str, x: Tensor, dims: Dims, keepdims: bool, called: str | None = None) -> Tensor:
    axes = many_dims(dims, x.ndim)
    empty = [i for i in (range(x.ndim) if axes is None else axes) if x.shape[i] == 0]
    if empty and axes is None:
        raise ArgumentError(
            f"{called or name}(): Expected reduction dim to be specified for input.numel() == 0, "
            f"and to have a length that is not 0: the shape is {list(x.shape)}"
        )
    if empty:
        raise OutOfBoundsError(
            f"{called or name}(): Expected reduction dim {empty[0]} to have non-zero size: the "
            f"shape is {list(x.shape)}"
        )
    return RECORDERS[name](x, axis=axes, keepdims=keepdims)


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
    return _reduced("max", tensor_of(input), over(dim, axis), keepdim or keepdims, "amax")


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
    return _reduced("min", tensor_of(input), over(dim, axis), keepdim or keepdims, "amin")


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
    return _positions("argmax", tensor_of(input), either(dim, axis), keepdim or keepdims)


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
    return _positions("argmin", tensor_of(input), either(dim, axis), keepdim or keepdims)


def _positions(name: str, x: Tensor, dim: int | None, keepdims: bool) -> Tensor:
    number = None if dim is None else one_dim(dim, x.ndim)
    if x.numel() == 0 and (number is None or x.shape[number] == 0):
        raise ArgumentError(f"{name}(): there is no element to choose in shape {list(x.shape)}")
    if x.ndim == 0:
        number = None
    return RECORDERS[name](x, axis=number, keepdims=keepdims)
