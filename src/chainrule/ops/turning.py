"""Tensors mirrored, and turned by right angles."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.arguments import RECORDERS, Operand, one_dim, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.ops.ordering import flip, transpose

__all__ = ["fliplr", "flipud", "rot90"]


def fliplr(x: Operand, /) -> Tensor:
    """Return a copy of `x` with its columns, the second dimension, in reverse order.

    Raises
    ------
    ShapeError
        If there are fewer than two dimensions.

    Notes
    -----
    Derivative: 1; the gradient is flipped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fliplr(cr.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    x = tensor_of(x)
    if x.ndim < 2:
        raise ShapeError(f"fliplr: Input must be >= 2-d, got {x.ndim}-d")
    return flip(x, 1)


def flipud(x: Operand, /) -> Tensor:
    """Return a copy of `x` with its rows, the first dimension, in reverse order.

    Raises
    ------
    ShapeError
        If there is no dimension.

    Notes
    -----
    Derivative: 1; the gradient is flipped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.flipud(cr.tensor([1, 2]))
    tensor([2, 1])
    """
    x = tensor_of(x)
    if x.ndim < 1:
        raise ShapeError(f"flipud: Input must be >= 1-d, got {x.ndim}-d")
    return flip(x, 0)


def rot90(x: Operand, /, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Return a copy of `x` turned by right angles in the plane of two dimensions.

    Parameters
    ----------
    x : Tensor
        Of at least two dimensions.
    k : int, default 1
        By how many right angles, from the first dimension towards the second.
    dims : sequence of two ints, default (0, 1)
        The two dimensions.

    Returns
    -------
    Tensor

    Raises
    ------
    ArgumentError
        If `dims` are not two different dimensions.

    Notes
    -----
    Derivative: 1; the gradient is turned back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.rot90(cr.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    x = tensor_of(x)
    if len(dims) != 2:
        raise ArgumentError(f"rot90: expected total rotation dims == 2, but got dims = {len(dims)}")
    if x.ndim < 2:
        raise ShapeError(f"rot90: expected total dims >= 2, but got total dims = {x.ndim}")
    first, second = one_dim(dims[0], x.ndim), one_dim(dims[1], x.ndim)
    if first == second:
        raise ArgumentError(f"rot90: expected rotation dims to be different, but got {tuple(dims)}")
    turns = k % 4
    if turns == 0:
        return RECORDERS["clone"](x)
    if turns == 2:
        return flip(x, (first, second))
    turned = transpose(x, first, second)
    return flip(turned, first if turns == 1 else second)
