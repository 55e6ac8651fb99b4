"""Parts of a tensor that are views of it, and tensors with such a part replaced."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chainrule.arguments import RECORDERS, Operand, one_dim, sizes_of, tensor_of, whole_number
from chainrule.autograd.inplace import set_item
from chainrule.autograd.tensor import Tensor
from chainrule.errors import OutOfBoundsError, ShapeError
from chainrule.ops.diagonals import diagonal
from chainrule.ops.views import view

__all__ = [
    "narrow",
    "narrow_copy",
    "select",
    "unflatten",
    "select_scatter",
    "slice_scatter",
    "diagonal_scatter",
]


def narrow(input: Operand, dim: int, start: int | Tensor, length: int) -> Tensor:
    """Return `length` elements along a dimension, from `start` on.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    dim : int
        Along which dimension.
    start : int or 0-d Tensor
        The first element; a negative number counts from the end.
    length : int
        How many.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    OutOfBoundsError
        If `start` is out of range.
    ShapeError
        If there are not so many elements.

    Notes
    -----
    Derivative: 1 for what is picked, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.narrow(cr.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    input = tensor_of(input)
    if input.ndim == 0:
        raise ShapeError("narrow() cannot be applied to a 0-dim tensor.")
    number, first = one_dim(dim, input.ndim), whole_number(start, "narrow", "start")
    size, length = input.shape[number], whole_number(length, "narrow", "length")
    if not -size <= first <= size:
        raise OutOfBoundsError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {first})"
        )
    first += size if first < 0 else 0
    if length < 0 or first + length > size:
        raise ShapeError(
            f"narrow(): start ({first}) + length ({length}) exceeds dimension size ({size}), or "
            "length is negative"
        )
    lead = (slice(None),) * number
    return RECORDERS["getitem"](input, key=(*lead, slice(first, first + length), ...))


def narrow_copy(input: Operand, dim: int, start: int, length: int) -> Tensor:
    """Return what `narrow` does, in memory of its own.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.narrow_copy(cr.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    copy: Tensor = RECORDERS["clone"](narrow(input, dim, start, length))
    return copy


def select(input: Operand, dim: int, index: int | Tensor) -> Tensor:
    """Return the slice at an index of a dimension, which the result doesn't have any more.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    dim : int
        Which dimension.
    index : int
        Which slice; a negative number counts from the end.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    OutOfBoundsError
        If `index` is out of range.
    ShapeError
        If `input` has no dimension.

    Notes
    -----
    Derivative: 1 for what is picked, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.select(cr.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    input = tensor_of(input)
    if input.ndim == 0:
        raise ShapeError("select() cannot be applied to a 0-dim tensor.")
    number, place = one_dim(dim, input.ndim), whole_number(index, "select", "index")
    size = input.shape[number]
    if not -size <= place < size:
        raise OutOfBoundsError(
            f"select(): index {place} out of range for tensor of size {list(input.shape)} at "
            f"dimension {number}"
        )
    return RECORDERS["select"](input, key=(*(slice(None),) * number, place, ...))


def unfold(x: Tensor, /, dimension: int, size: int, step: int) -> Tensor:
    """Return all stretches of `size` elements along a dimension, `step` apart.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    dimension : int
        Along which dimension: it counts the stretches in the result.
    size : int
        The length of a stretch: the last dimension of the result.
    step : int
        How many elements further on the next stretch begins.

    Returns
    -------
    Tensor, of one dimension more
        A view. Where stretches overlap it can't be written to.

    Raises
    ------
    ShapeError
        If `size` is longer than the dimension, or `step` is not positive.

    Notes
    -----
    Derivative: 1 for each stretch that an element is in.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    if x.ndim == 0:
        x = RECORDERS["reshape"](x, shape=(1,))
        return RECORDERS["select"](unfold(x, 0, size, step), key=(0, ...))
    number = one_dim(dimension, x.ndim)
    length = x.shape[number]
    if not 0 <= size <= length:
        raise ShapeError(
            f"maximum size for tensor at dimension {dimension} is {length} but size is {size}"
        )
    if step <= 0:
        raise ShapeError(f"step is {step} but must be > 0")
    if number < x.ndim - 1:
        order = (*range(number), *range(number + 1, x.ndim), number)
        x = RECORDERS["permute_dims"](x, axes=order)
    starts = np.arange((length - size) // step + 1) * step
    key = (Ellipsis, starts[:, None] + np.arange(size))
    out = RECORDERS["windows"](x, size=size, step=step, key=key)
    if step < size:
        out._array.flags.writeable = False  # a write would reach several elements
    if number < x.ndim - 1:
        last = out.ndim - 2
        order = (*range(number), last, *range(number, last), out.ndim - 1)
        out = RECORDERS["permute_dims"](out, axes=order)
    return out


def unflatten(input: Operand, dim: int, sizes: int | Sequence[int]) -> Tensor:
    """Return `input` with one dimension made into several: the opposite of `flatten`.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    dim : int
        Which dimension.
    sizes : sequence of ints
        The dimensions that take its place; one may be -1: it is worked out from the others.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ShapeError
        If the sizes don't multiply to the length of the dimension.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unflatten(cr.zeros(2, 6), 1, (2, -1)).shape
    (2, 2, 3)
    """
    input = tensor_of(input)
    number, parts = one_dim(dim, input.ndim), sizes_of((sizes,))
    if input.ndim == 0:
        raise ShapeError("unflatten: a 0-dim tensor has no dimension to divide into others")
    length = input.shape[number]
    known = int(np.prod([n for n in parts if n != -1]))
    fits = parts.count(-1) <= 1 and (
        length % known == 0 if -1 in parts and known else known == length
    )
    if not parts or not fits:
        raise ShapeError(
            f"unflatten: Provided sizes {list(parts)} don't multiply up to the size of dim "
            f"{number} ({length}) in the input tensor"
        )
    parts = tuple([length // known if n == -1 else n for n in parts])
    return view(input, (*input.shape[:number], *parts, *input.shape[number + 1 :]))


# --- replaced -------------------------------------------------------------------------------------


def select_scatter(input: Operand, src: Operand, dim: int, index: int) -> Tensor:
    """Return `input` with the slice at an index of a dimension replaced.

    Parameters
    ----------
    input : Tensor
        What to replace a part in, of a copy.
    src : Tensor
        What to put there: of the shape that ``select(x, dim, index)`` has.
    dim, index : int
        As for `select`.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    ShapeError
        If the shape of `src` is another one.

    Notes
    -----
    Derivative: 1 for what is in the result, 0 for what was replaced.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.select_scatter(cr.zeros(2, 2), cr.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    out = RECORDERS["clone"](tensor_of(input))
    return _replaced("select_scatter", out, select(out, dim, index), src)


def slice_scatter(
    input: Operand,
    src: Operand,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Return `input` with the slices from `start` to `end` replaced; see `select_scatter`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.slice_scatter(cr.zeros(4), cr.ones(2), start=2)
    tensor([0., 0., 1., 1.])
    """
    out = RECORDERS["clone"](tensor_of(input))
    lead = (slice(None),) * one_dim(dim, out.ndim)
    part = RECORDERS["getitem"](out, key=(*lead, slice(start, end, step), ...))
    return _replaced("slice_scatter", out, part, src)


def diagonal_scatter(
    input: Operand, src: Operand, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Return `input` with a diagonal replaced; see `diagonal` and `select_scatter`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.diagonal_scatter(cr.zeros(2, 2), cr.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    out = RECORDERS["clone"](tensor_of(input))
    return _replaced("diagonal_scatter", out, diagonal(out, offset, dim1, dim2), src)


def _replaced(operation: str, out: Tensor, part: Tensor, src: Operand) -> Tensor:
    """Write to a part of a copy that nobody else has seen, and return the copy."""
    value = tensor_of(src)
    if value.shape != part.shape:
        raise ShapeError(
            f"{operation}: expected src to have a size equal to the slice of self. src size = "
            f"{list(value.shape)}, slice size = {list(part.shape)}"
        )
    set_item(part, Ellipsis, value, operation)
    return out
