"""Dimensions, and elements along them, in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.arguments import RECORDERS, Operand, either, many_dims, one_dim, sizes_of, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.ops.shaping import reshape

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
]

_permute = RECORDERS["permute_dims"]


def permute_dims(x: Operand, /, axes: Sequence[int]) -> Tensor:
    """Return `x` with its dimensions in another order.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    axes : sequence of ints
        For each dimension of the result, which one of `x` it is.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ArgumentError
        If `axes` does not name every dimension once.

    Notes
    -----
    Derivative: 1; the gradient's dimensions are put back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.permute_dims(cr.zeros(2, 3, 4), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = tensor_of(x)
    order = tuple([one_dim(axis, x.ndim) for axis in axes])
    if sorted(order) != list(range(x.ndim)):
        raise ArgumentError(
            f"permute: the dimensions {tuple(axes)} must name each of the tensor's {x.ndim} once"
        )
    return _permute(x, axes=order)


def permute(x: Operand, /, *order: Any, dims: Sequence[int] | None = None) -> Tensor:
    """Return `x` with its dimensions in another order, as `permute_dims` does.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    *order : int, or one sequence of ints
        ``x.permute(2, 0, 1)`` and ``permute(x, (2, 0, 1))`` are the same. Also spelled `dims`.

    Returns
    -------
    Tensor
        A view.

    Notes
    -----
    Derivative: 1; the gradient's dimensions are put back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    return permute_dims(x, sizes_of(order) if dims is None else dims)


def transpose(x: Operand, /, dim0: int, dim1: int) -> Tensor:
    """Return `x` with two dimensions exchanged.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    dim0, dim1 : int
        The two.

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
    Derivative: 1; the gradient's dimensions are put back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.transpose(cr.zeros(2, 3, 4), 0, -1).shape
    (4, 3, 2)
    """
    x = tensor_of(x)
    first, second = one_dim(dim0, x.ndim), one_dim(dim1, x.ndim)
    order = list(range(x.ndim))
    if order:
        order[first], order[second] = second, first
    return RECORDERS["transpose"](x, axes=tuple(order))


swapdims = transpose


def swapaxes(x: Operand, /, axis0: int, axis1: int) -> Tensor:
    """Return `x` with two dimensions exchanged: NumPy's name of `transpose`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.swapaxes(cr.zeros(2, 3, 4), 0, -1).shape
    (4, 3, 2)
    """
    return transpose(x, axis0, axis1)


def t(x: Operand, /) -> Tensor:
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
    x = tensor_of(x)
    if x.ndim > 2:
        raise ShapeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D: use .mT or permute"
        )
    return RECORDERS["transpose"](x, axes=(1, 0) if x.ndim == 2 else tuple(range(x.ndim)))


def matrix_transpose(x: Operand, /) -> Tensor:
    """Return `x` with its last two dimensions exchanged: each matrix of a stack transposed.

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
    x = tensor_of(x)
    if x.ndim < 2:
        raise ShapeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got "
            f"{x.ndim}-D tensor."
        )
    return transpose(x, -2, -1)


def reverse_dims(x: Tensor) -> Tensor:
    """Return `x` with all dimensions in reverse order: the transpose of a matrix."""
    return _permute(x, axes=(1, 0) if x._array.ndim == 2 else tuple(range(x.ndim))[::-1])


def movedim(x: Operand, /, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Return `x` with some dimensions moved, the others in their order.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    source, destination : int or sequence of ints
        Where the dimensions are in `x`, and where in the result.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ArgumentError
        If the two differ in length.

    Notes
    -----
    Derivative: 1; the gradient's dimensions are put back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.movedim(cr.zeros(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    x = tensor_of(x)
    sources, targets = many_dims(source, x.ndim) or (), many_dims(destination, x.ndim) or ()
    if len(sources) != len(targets):
        raise ArgumentError(
            f"movedim: Invalid source or destination dims: source ({source}) should contain the "
            f"same number of dims as destination ({destination})"
        )
    order = [i for i in range(x.ndim) if i not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return _permute(x, axes=tuple(order))


moveaxis = movedim


def flip(
    x: Operand,
    /,
    *along: int | Sequence[int],
    dims: int | Sequence[int] | None = None,
    axis: Any = None,
) -> Tensor:
    """Return a copy of `x` with the elements along dimensions in reverse order.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    *along : ints, or one sequence of ints
        Which dimensions: all if left out. Also spelled `dims` and `axis`.

    Returns
    -------
    Tensor, shape of `x`

    Notes
    -----
    Derivative: 1; the gradient is flipped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.flip(cr.tensor([1, 2, 3]))
    tensor([3, 2, 1])
    """
    x = tensor_of(x)
    listed: Any = along[0] if len(along) == 1 else along or dims
    return RECORDERS["flip"](x, axis=many_dims(either(listed, axis), x.ndim))


def roll(
    x: Operand,
    /,
    shifts: int | Sequence[int],
    dims: int | Sequence[int] | None = None,
    *,
    axis: Any = None,
) -> Tensor:
    """Return a copy of `x` with the elements moved along dimensions, the last ones to the front.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    shifts : int or sequence of ints
        By how many places, for each dimension.
    dims : int or sequence of ints, optional
        Which dimensions: in the flattened tensor if left out. Also spelled `axis`.

    Returns
    -------
    Tensor, shape of `x`

    Notes
    -----
    Derivative: 1; the gradient is rolled back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.roll(cr.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    x = tensor_of(x)
    named = either(dims, axis)
    steps = tuple(shifts) if isinstance(shifts, Sequence) else (shifts,)
    if not steps:
        raise ArgumentError("roll: shifts required: give a number, or one for each of dims")
    if named is None:
        return reshape(RECORDERS["roll"](reshape(x, -1), shift=steps, axis=(0,)), x.shape)
    places = many_dims(named, x.ndim) or ()
    if len(places) != len(steps):
        raise ArgumentError(f"roll: shifts and dims must align: shifts {shifts}, dims {named}")
    return RECORDERS["roll"](x, shift=steps, axis=places)
