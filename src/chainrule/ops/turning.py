"""Tensors mirrored, and turned by right angles."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.arguments import RECORDERS, Operand, one_dim, tensor_of, whole_number
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.ops.permute import flip, transpose

__all__ = ["fliplr", "flipud", "rot90"]


def fliplr(input: Operand) -> Tensor:
    """Return a copy of `input` with its columns, the second dimension, in reverse order.

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
    input = tensor_of(input)
    if input.ndim < 2:
        raise ShapeError(f"fliplr: Input must be >= 2-d, got {input.ndim}-d")
    return flip(input, 1)


def flipud(input: Operand) -> Tensor:
    """Return a copy of `input` with its rows, the first dimension, in reverse order.

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
    input = tensor_of(input)
    if input.ndim < 1:
        raise ShapeError(f"flipud: Input must be >= 1-d, got {input.ndim}-d")
    return flip(input, 0)


def rot90(input: Operand, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Return a copy of `input` turned by right angles in the plane of two dimensions.

    Parameters
    ----------
    input : Tensor
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
    input = tensor_of(input)
    if len(dims) != 2:
        raise ArgumentError(f"rot90: expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise ShapeError(f"rot90: expected total dims >= 2, but got total dims = {input.ndim}")
    first, second = one_dim(dims[0], input.ndim), one_dim(dims[1], input.ndim)
    if first == second:
        raise ArgumentError(f"rot90: expected rotation dims to be different, but got {tuple(dims)}")
    turns = whole_number(k, "rot90", "k") % 4
    if turns == 0:
        return RECORDERS["clone"](input)
    if turns == 2:
        return flip(input, (first, second))
    turned = transpose(input, first, second)
    return flip(turned, first if turns == 1 else second)
