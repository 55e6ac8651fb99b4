"""Where elements are, and which ones there are: results of integers."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from chainrule.arguments import Operand, either, one_dim, tensor_of
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import check_known, is_known, namespace
from chainrule.errors import ArgumentError, ShapeError
from chainrule.ops.indexing import get_item
from chainrule.ops.reshape import reshape

__all__ = [
    "nonzero",
    "argwhere",
    "unique",
    "unique_consecutive",
    "searchsorted",
    "bucketize",
]

Array = Any

# --- where ----------------------------------------------------------------------------------------


def nonzero(input: Operand, *, as_tuple: bool = False) -> Any:
    """Return where the elements are that are not zero.

    Parameters
    ----------
    input : Tensor
        Numbers or bools.
    as_tuple : bool, default False
        Return an index for each dimension, as ``x[…]`` takes them, instead of one matrix.

    Returns
    -------
    Tensor of int64, shape (number of elements, number of dimensions); or tuple of vectors

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[0, 1], [2, 0]])
    >>> cr.nonzero(x)
    tensor([[0, 1],
            [1, 0]])
    >>> x[cr.nonzero(x, as_tuple=True)]
    tensor([1, 2])
    """
    array = tensor_of(input)._array
    check_known(array, "nonzero", _MASK)
    if as_tuple:
        return tuple([make(place, None) for place in np.nonzero(np.atleast_1d(array))])
    return make(np.argwhere(array), None)


_MASK = "choose with where(), multiply with a mask"


def argwhere(input: Operand) -> Tensor:
    """Return where the elements are that are not zero, as rows: NumPy's name of `nonzero`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.argwhere(cr.tensor([0, 1, 2]))
    tensor([[1],
            [2]])
    """
    return cast(Tensor, nonzero(input))


# --- which ----------------------------------------------------------------------------------------


def unique(
    input: Operand,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    axis: int | None = None,
) -> Any:
    """Return the distinct elements, or the distinct slices along a dimension.

    Parameters
    ----------
    input : Tensor
        Any tensor. Each nan is distinct.
    sorted : bool, default True
        They are always in order; this is here for code that asks for it.
    return_inverse : bool, default False
        Also say for each element which of them it is.
    return_counts : bool, default False
        Also say how often each is there.
    dim : int, optional
        Along which dimension slices are compared: elements are, if left out. Also spelled `axis`.

    Returns
    -------
    Tensor, or tuple of Tensors
        The values have a derivative: the gradient goes to the first of equal elements.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique(cr.tensor([3, 1, 2, 1]), return_counts=True)
    (tensor([1, 2, 3]), tensor([2, 1, 1]))
    """
    input = tensor_of(input)
    array = input._array
    check_known(array, "unique", "sort() it")
    dim = either(dim, axis)
    number = None if dim is None else one_dim(dim, array.ndim)
    if number is not None and array.ndim == 0:
        array = array.reshape(1)
    tracked = input.requires_grad and is_grad_enabled()
    values, *first, inverse, counts = np.unique(  # type: ignore[call-overload]  # as many as asked
        array,
        return_index=tracked,  # which takes a slower, stable sort
        return_inverse=True,
        return_counts=True,
        axis=number,
        equal_nan=False,
    )
    found = _picked(input, first[0], number) if tracked else make(values, None)
    inverse = inverse.reshape(-1) if number is not None else inverse.reshape(array.shape)
    return _asked(found, inverse, counts, return_inverse, return_counts)


def _picked(x: Tensor, first: Array, dim: int | None) -> Tensor:
    """Return the elements, or the slices along a dimension, at these positions."""
    if dim is None or x.ndim == 0:
        return get_item(reshape(x, -1), first)
    return get_item(x, (*[slice(None)] * dim, first))


def _asked(
    values: Tensor, inverse: Array, counts: Array, return_inverse: bool, return_counts: bool
) -> Any:
    found = [values]
    if return_inverse:
        found.append(make(inverse, None))
    if return_counts:
        found.append(make(counts, None))
    return found[0] if len(found) == 1 else tuple(found)


def unique_consecutive(
    input: Operand,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    axis: int | None = None,
) -> Any:
    """Return the elements, or slices, without those that equal the one before.

    The arguments and results are those of `unique`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unique_consecutive(cr.tensor([1, 1, 2, 2, 1]))
    tensor([1, 2, 1])
    """
    input = tensor_of(input)
    array = input._array
    check_known(array, "unique_consecutive", "compare x[1:] with x[:-1]")
    dim = either(dim, axis)
    number = 0 if dim is None else one_dim(dim, array.ndim)
    rows = array.reshape(-1) if dim is None else array
    length = rows.shape[number] if rows.ndim else 1
    rows = rows if rows.ndim else rows.reshape(1)
    slices = np.moveaxis(rows, number, 0)
    slices = slices.reshape(length, math.prod(slices.shape[1:]))
    new = np.ones(length, bool)
    new[1:] = np.any(slices[1:] != slices[:-1], axis=1)
    first = np.flatnonzero(new)
    inverse = np.cumsum(new) - 1
    inverse = inverse.reshape(array.shape) if dim is None else inverse
    counts = np.diff(first, append=length)
    found = _picked(input, first, dim if dim is None else number)
    return _asked(found, inverse, counts, return_inverse, return_counts)


# --- between which --------------------------------------------------------------------------------


def searchsorted(
    sorted_sequence: Operand,
    input: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Operand | None = None,
) -> Tensor:
    """Return where values would be inserted into sorted rows, so that these stay sorted.

    Parameters
    ----------
    sorted_sequence : Tensor, shape (n,) or (..., n)
        Rows in ascending order.
    input : Tensor or number
        The values: of any shape for one row, else with the same leading dimensions.
    out_int32 : bool, default False
        Return int32 instead of int64.
    right : bool, default False
        Among equal elements, after them instead of before. Also spelled ``side="right"``.
    side : {"left", "right"}, optional
        The same, as NumPy and the array API have it.
    sorter : Tensor of integers, optional
        The order that would sort `sorted_sequence`, if it isn't sorted.

    Returns
    -------
    Tensor of int64, shape of `input`

    Raises
    ------
    ShapeError
        If the leading dimensions differ.
    ArgumentError
        If `side` is something else, or contradicts `right`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.searchsorted(cr.tensor([1, 3, 5]), cr.tensor([3, 6]))
    tensor([1, 3])
    """
    rows, values = tensor_of(sorted_sequence)._array, tensor_of(input)._array
    if side not in (None, "left", "right"):
        raise ArgumentError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if right and side == "left":
        raise ArgumentError("torch.searchsorted(): side and right can't be set to opposites")
    if rows.ndim == 0 or (
        rows.ndim > 1 and (values.ndim != rows.ndim or values.shape[:-1] != rows.shape[:-1])
    ):
        raise ShapeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(rows.shape)} and input value tensor {list(values.shape)}"
        )
    if sorter is not None:
        order = tensor_of(sorter)._array
        if order.shape != rows.shape:
            raise ShapeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got "
                f"boundary tensor {list(rows.shape)} and sorter tensor {list(order.shape)}"
            )
        rows = np.take_along_axis(rows, order, -1)
    after = right or side == "right"
    if rows.ndim == 1:
        found = np.searchsorted(rows, values, "right" if after else "left")
        places = namespace(found).asarray(found)
    else:
        places = _merged(rows, values, after)
    return make(places.astype(np.int32 if out_int32 else np.int64), None)


def _merged(rows: Array, values: Array, after: bool) -> Array:
    """Return where values would be inserted into their rows, by sorting both as one."""
    length = values.shape[-1]
    joined = [rows, values] if after else [values, rows]  # a stable sort keeps the first ones first
    order = np.argsort(np.concatenate(joined, axis=-1), axis=-1, kind="stable")
    is_row = order < rows.shape[-1] if after else order >= length
    smaller = np.cumsum(is_row, axis=-1)
    if not is_known(smaller):
        places = np.take_along_axis(smaller, np.argsort(order, axis=-1), -1)
        return places[..., rows.shape[-1] :] if after else places[..., :length]
    places = np.empty_like(smaller)
    np.put_along_axis(places, order, smaller, -1)
    return places[..., rows.shape[-1] :] if after else places[..., :length]


def bucketize(
    input: Operand, boundaries: Operand, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Return between which boundaries each element lies.

    Parameters
    ----------
    input : Tensor or number
        The values.
    boundaries : Tensor, 1-d
        In ascending order.
    out_int32 : bool, default False
        Return int32 instead of int64.
    right : bool, default False
        An element that equals a boundary lies after it, instead of before.

    Returns
    -------
    Tensor of int64, shape of `input`
        0 before the first boundary.

    Raises
    ------
    ShapeError
        If `boundaries` is no vector.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.bucketize(cr.tensor([0.5, 2.0, 9.0]), cr.tensor([1.0, 2.0]))
    tensor([0, 1, 2])
    """
    edges = tensor_of(boundaries)
    if edges.ndim != 1:
        raise ShapeError(f"bucketize(): boundaries tensor must be 1 dimension, got {edges.ndim}")
    return searchsorted(edges, input, out_int32=out_int32, right=right)
