"""Places in a tensor by number, and one number in all places."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS, Operand, Sizes, cast, sizes_of, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import CPU, move
from chainrule.errors import DTypeError, ShapeError

__all__ = ["fill", "unravel_index"]


def unravel_index(indices: Operand, shape: Sizes) -> tuple[Tensor, ...]:
    """Return the indices, dimension by dimension, of elements numbered in row-major order.

    Parameters
    ----------
    indices : Tensor of integers
        Numbers of elements.
    shape : int or sequence of ints
        The shape of the tensor that they are in.

    Returns
    -------
    tuple of Tensors of int64, shape of `indices`
        One for each dimension of `shape`.

    Raises
    ------
    DTypeError
        If `indices` are no integers.
    IndexError
        If a number is that of no element.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unravel_index(cr.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    numbers = tensor_of(indices)
    if numbers.dtype.kind not in "iu":
        raise DTypeError(f"expected 'indices' to be integer dtype, but got {numbers.dtype}")
    sizes = sizes_of((shape,))
    try:
        found = np.unravel_index(move(numbers._array, CPU), sizes)
    except ValueError as error:
        raise IndexError(
            f"unravel_index: an index is out of range for the shape {list(sizes)}: {error}"
        ) from None
    return tuple([make(move(np.asarray(places), numbers.device), None) for places in found])


def fill(input: Operand, value: Any) -> Tensor:
    """Return a tensor like `input` with one value everywhere.

    Parameters
    ----------
    input : Tensor
        Its shape and dtype are taken.
    value : number or Tensor of shape ()
        What to fill with.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ShapeError
        If `value` has dimensions.

    Notes
    -----
    Derivatives: 0 for `input`, 1 for `value` at each element.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fill(cr.zeros(2), 3)
    tensor([3., 3.])
    """
    x, number = tensor_of(input), tensor_of(value)
    if number.ndim:
        raise ShapeError(
            "fill only supports 0-dimension value tensor but got tensor with "
            f"{number.ndim} dimensions"
        )
    spread = RECORDERS["broadcast_to"](cast(number, x.dtype), shape=x.shape)
    return RECORDERS["clone"](spread)
