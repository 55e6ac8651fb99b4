"""Shapes and tensors made to fit each other."""

from __future__ import annotations

import numpy as np

from chainrule.arguments import Operand, Sizes, sizes_of
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ShapeError
from chainrule.ops.reshape import broadcast_to

__all__ = ["broadcast_shapes", "broadcast_arrays", "broadcast_tensors"]


def broadcast_shapes(*shapes: Sizes) -> tuple[int, ...]:
    """Return the shape that these broadcast to.

    Parameters
    ----------
    *shapes : tuple of ints, or int
        Aligned at their ends; a length of 1 fits any.

    Raises
    ------
    ShapeError
        If they don't fit.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    listed = [sizes_of((shape,)) for shape in shapes]
    try:
        return np.broadcast_shapes(*listed)
    except ValueError:
        raise ShapeError(
            f"broadcast_shapes(): the shapes {', '.join(map(str, map(list, listed)))} can't be "
            "broadcast: aligned at their ends, lengths must be equal or 1"
        ) from None


def broadcast_tensors(*tensors: Operand) -> tuple[Tensor, ...]:
    """Return tensors broadcast to one shape, without copying.

    Parameters
    ----------
    *tensors : Tensor, array or number
        Their shapes broadcast; their dtypes stay.

    Returns
    -------
    tuple of Tensors
        Views; those that had to be broadcast can't be written to.

    Raises
    ------
    ShapeError
        If the shapes don't fit.

    Notes
    -----
    Derivative: 1 for each repetition: the gradient is summed over them.

    Examples
    --------
    >>> import chainrule as cr
    >>> x, y = cr.broadcast_tensors(cr.zeros(2, 1), cr.zeros(3))
    >>> x.shape, y.shape
    ((2, 3), (2, 3))
    """
    listed = as_tensors(tensors)
    shape = broadcast_shapes(*[tensor.shape for tensor in listed])
    return tuple([broadcast_to(tensor, shape) for tensor in listed])


broadcast_arrays = broadcast_tensors
