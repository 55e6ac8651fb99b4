"""Permutations of dimensions, and of the elements along them: transpose, flip, roll, rot90."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.arguments import (
    Operand,
    either,
    many_dims,
    one_dim,
    sizes_of,
    tensor_of,
    whole_number,
)
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.operation import operation, tensor_property
from chainrule.ops.reshape import reshape
from chainrule.primitives import elementwise, shaping

__all__ = [
    "permute",
    "permute_dims",
    "transpose",
    "swapaxes",
    "swapdims",
    "t",
    "matrix_transpose",
    "movedim",
    "moveaxis",
    "flip",
    "roll",
    "fliplr",
    "flipud",
    "rot90",
]

_permute = shaping.permute_dims.apply


@operation(method=False, array_api=True)
def permute_dims(input: Operand, axes: Sequence[int]) -> Tensor:
    """Return `input` with its dimensions in another order.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    axes : sequence of ints
        The dimension of `input` for each dimension of the result.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ArgumentError
        If `axes` does not contain every dimension once.

    Notes
    -----
    Derivative: 1; the gradient's dimensions are permuted back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.permute_dims(cr.zeros(2, 3, 4), (2, 0, 1)).shape
    (4, 2, 3)
    """
    input = tensor_of(input)
    order = tuple([one_dim(axis, input.ndim) for axis in axes])
    if sorted(order) != list(range(input.ndim)):
        raise ArgumentError(
            f"permute: the dimensions {tuple(axes)} must contain each of the tensor's {input.ndim} "
            f"dimensions once, as {tuple(range(input.ndim))} does, which changes nothing"
        )
    return _permute(input, axes=order)


@operation()
def permute(input: Operand, *order: Any, dims: Sequence[int] | None = None) -> Tensor:
    """Return `input` with its dimensions in another order, as `permute_dims` does.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    *order : int, or one sequence of ints
        ``x.permute(2, 0, 1)`` and ``permute(x, (2, 0, 1))`` are the same. Also spelled `dims`.

    Returns
    -------
    Tensor
        A view.

    Notes
    -----
    Derivative: 1; the gradient's dimensions are permuted back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    return permute_dims(input, sizes_of(order) if dims is None else dims)


@operation(aliases="swapdims")
def transpose(input: Operand, dim0: int, dim1: int) -> Tensor:
    """Return `input` with two dimensions exchanged.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    dim0, dim1 : int
        The dimensions to exchange.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    OutOfBoundsError
        If a dimension is out of range.

    Notes
    -----
    Derivative: 1; the gradient's dimensions are permuted back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.transpose(cr.zeros(2, 3, 4), 0, -1).shape
    (4, 3, 2)
    """
    input = tensor_of(input)
    first, second = one_dim(dim0, input.ndim), one_dim(dim1, input.ndim)
    order = list(range(input.ndim))
    if order:
        order[first], order[second] = second, first
    return shaping.transpose.apply(input, axes=tuple(order))


swapdims = transpose


@operation(numpy="swapaxes a axis1=axis0 axis2=axis1")
def swapaxes(input: Operand, axis0: int, axis1: int) -> Tensor:
    """Return `input` with two dimensions exchanged: NumPy's name of `transpose`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.swapaxes(cr.zeros(2, 3, 4), 0, -1).shape
    (4, 3, 2)
    """
    return transpose(input, axis0, axis1)


@operation()
def t(input: Operand) -> Tensor:
    """Return the transpose of a matrix; a tensor of fewer dimensions as it is.

    Raises
    ------
    ShapeError
        If there are more than two dimensions.

    Notes
    -----
    Derivative: 1; the gradient is transposed back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.t(cr.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """
    input = tensor_of(input)
    if input.ndim > 2:
        raise ShapeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D: use .mT or "
            "permute"
        )
    return shaping.transpose.apply(
        input, axes=(1, 0) if input.ndim == 2 else tuple(range(input.ndim))
    )


@operation(method=False, numpy=("matrix_transpose x", "linalg.matrix_transpose x"), array_api=True)
def matrix_transpose(input: Operand) -> Tensor:
    """Return `input` with its last two dimensions exchanged: each matrix of a stack transposed.

    Raises
    ------
    ShapeError
        If there are fewer than two dimensions.

    Notes
    -----
    Derivative: 1; the gradient is transposed back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.matrix_transpose(cr.zeros(5, 2, 3)).shape
    (5, 3, 2)
    """
    input = tensor_of(input)
    if input.ndim < 2:
        raise ShapeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got "
            f"{input.ndim}-D tensor."
        )
    return transpose(input, -2, -1)


def reverse_dims(x: Tensor) -> Tensor:
    """Return `x` with all dimensions in reverse order: the transpose of a matrix."""
    return _permute(x, axes=(1, 0) if x._array.ndim == 2 else tuple(range(x.ndim))[::-1])


@operation(aliases="moveaxis", numpy="moveaxis a source= destination=", array_api="moveaxis")
def movedim(
    input: Operand, source: int | Sequence[int], destination: int | Sequence[int]
) -> Tensor:
    """Return `input` with some dimensions moved; the others keep their order.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    source, destination : int or sequence of ints
        Positions of the dimensions in `input`, and in the result.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ArgumentError
        If `source` and `destination` differ in length.

    Notes
    -----
    Derivative: 1; the gradient's dimensions are permuted back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.movedim(cr.zeros(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    input = tensor_of(input)
    sources, targets = many_dims(source, input.ndim) or (), many_dims(destination, input.ndim) or ()
    if len(sources) != len(targets):
        raise ArgumentError(
            f"movedim: Invalid source or destination dims: source ({source}) should contain the "
            f"same number of dims as destination ({destination})"
        )
    order = [i for i in range(input.ndim) if i not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return _permute(input, axes=tuple(order))


moveaxis = movedim


@operation(array_api=True)
def flip(
    input: Operand,
    *along: int | Sequence[int],
    dims: int | Sequence[int] | None = None,
    axis: Any = None,
) -> Tensor:
    """Return a copy of `input` with the elements along dimensions in reverse order.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    *along : ints, or one sequence of ints
        The dimensions to flip; all if left out. Also spelled `dims` and `axis`.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 1; the gradient is flipped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.flip(cr.tensor([1, 2, 3]))
    tensor([3, 2, 1])
    """
    input = tensor_of(input)
    listed: Any = along[0] if len(along) == 1 else along or dims
    return shaping.flip.apply(input, axis=many_dims(either(listed, axis), input.ndim))


@operation()
def roll(
    input: Operand,
    shifts: int | Sequence[int],
    dims: int | Sequence[int] | None = None,
    *,
    axis: Any = None,
) -> Tensor:
    """Return `input` with the elements shifted along dimensions, from the end to the front.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    shifts : int or sequence of ints
        Number of positions, for each dimension.
    dims : int or sequence of ints, optional
        The dimensions to shift along; the flattened tensor's if left out. Also spelled `axis`.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 1; the gradient is rolled back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.roll(cr.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    input = tensor_of(input)
    named = either(dims, axis)
    listed = shifts if shifts.__class__ is not int and isinstance(shifts, Sequence) else (shifts,)
    steps = tuple([whole_number(shift, "roll", "a shift") for shift in listed])
    if not steps:
        raise ArgumentError("roll: shifts required: give a number, or one for each of dims")
    if named is None:
        return reshape(shaping.roll.apply(reshape(input, -1), shift=steps, axis=(0,)), input.shape)
    axes = many_dims(named, input.ndim) or ()
    if len(axes) != len(steps):
        raise ArgumentError(f"roll: shifts and dims must align: shifts {shifts}, dims {named}")
    return shaping.roll.apply(input, shift=steps, axis=axes)


# --- flips of rows and columns, rotations ---------------------------------------------------------


@operation()
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


@operation()
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


@operation()
def rot90(input: Operand, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Return a copy of `input` rotated by multiples of 90° in the plane of two dimensions.

    Parameters
    ----------
    input : Tensor
        Of at least two dimensions.
    k : int, default 1
        Number of rotations by 90°, from the first dimension towards the second.
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
    Derivative: 1; the gradient is rotated back.

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
    quarter_turns = whole_number(k, "rot90", "k") % 4
    if quarter_turns == 0:
        return elementwise.clone.apply(input)
    if quarter_turns == 2:
        return flip(input, (first, second))
    transposed = transpose(input, first, second)
    return flip(transposed, first if quarter_turns == 1 else second)


tensor_property("T", reverse_dims, doc="The tensor with its dimensions in reverse order.")
tensor_property("mT", matrix_transpose, doc="The tensor with each matrix transposed.")
