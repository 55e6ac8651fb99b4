"""Order: sorted elements, where they were, and the first few."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS, Operand, either, one_dim, tensor_of, whole_number
from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import ArgumentError
from chainrule.ops.extrema import Extremes
from chainrule.ops.partial import MANY, foremost

__all__ = ["sort", "argsort", "topk"]


def sort(
    input: Operand,
    dim: int = -1,
    descending: bool = False,
    stable: bool = True,
    *,
    axis: int | None = None,
) -> Any:
    """Return the elements in order along a dimension, and where they were.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan is larger than any.
    dim : int, default -1
        Along which dimension.
    descending : bool, default False
        Largest first.
    stable : bool, default True
        Equal elements always keep their order; this is here for code that asks for it.
    axis : int, optional
        The array API's form: the dimension, and the result is the values alone.

    Returns
    -------
    named tuple (values, indices) of Tensors, shape of `input`; or a Tensor

    Notes
    -----
    Derivative: each element's gradient goes back to where the element was; equal ones are kept in
    their order.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.sort(cr.tensor([3.0, 1.0, 2.0])).values
    tensor([1., 2., 3.])
    """
    if axis is not None:
        return sort(input, axis, descending, stable).values
    input = tensor_of(input)
    number = one_dim(dim, input.ndim)
    indices = _order(input, number, descending)
    if input.ndim == 0:
        return Extremes(RECORDERS["clone"](input), indices)
    return Extremes(RECORDERS["take_along_axis"](input, indices, axis=number), indices)


def argsort(
    input: Operand,
    dim: int | None = None,
    descending: bool = False,
    stable: bool = True,
    *,
    axis: int | None = None,
) -> Tensor:
    """Return where the elements are, in order along a dimension; the arguments are those of `sort`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.argsort(cr.tensor([3.0, 1.0, 2.0]), descending=True)
    tensor([0, 2, 1])
    """
    input = tensor_of(input)
    dim = either(dim, axis)
    return _order(input, one_dim(-1 if dim is None else dim, input.ndim), descending)


def _order(x: Tensor, dim: int, descending: bool) -> Tensor:
    if x.ndim == 0:
        return RECORDERS["argmax"](x, axis=None, keepdims=False)
    if not descending:
        return RECORDERS["argsort"](x, axis=dim, stable=True)
    # Sorting the reversed rows and reversing the result keeps equal elements in their order.
    backwards = RECORDERS["flip"](x.detach(), axis=dim)
    order = RECORDERS["flip"](RECORDERS["argsort"](backwards, axis=dim, stable=True), axis=dim)
    return RECORDERS["subtract"](x.shape[dim] - 1, order)


def topk(
    input: Operand,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    axis: int | None = None,
) -> Extremes:
    """Return the `k` largest elements along a dimension, largest first, and where they were.

    Parameters
    ----------
    input : Tensor
        Real numbers; nan is larger than any.
    k : int
        How many.
    dim : int, default -1
        Along which dimension. Also spelled `axis`.
    largest : bool, default True
        False gives the smallest, smallest first.
    sorted : bool, default True
        They are always in order; this is here for code that asks for it.

    Returns
    -------
    named tuple (values, indices) of Tensors

    Raises
    ------
    ArgumentError
        If there are fewer than `k` elements along `dim`.

    Notes
    -----
    Derivative: each element's gradient goes back to where the element was.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.topk(cr.tensor([3.0, 1.0, 2.0]), 2).values
    tensor([3., 2.])
    """
    input = tensor_of(input)
    number = one_dim(dim if axis is None else axis, input.ndim)
    k = whole_number(k, "topk", "k")
    if not 0 <= k <= (input.shape[number] if input.ndim else 1):
        raise ArgumentError(
            f"topk: selected index k = {k} out of range for shape {list(input.shape)}"
        )
    if input.ndim == 0:
        return Extremes(RECORDERS["clone"](input), _order(input, number, largest))
    if input.shape[number] > MANY and k < input.shape[number] // 4:
        places = foremost(np.moveaxis(input._array, number, -1), k, largest)
        first = make(np.moveaxis(places, -1, number), None)
    else:
        first = _order(input, number, largest)[(slice(None),) * number + (slice(k),)]
    return Extremes(RECORDERS["take_along_axis"](input, first, axis=number), first)
