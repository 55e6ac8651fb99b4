"""Repetition of elements and tensors, and combinations of elements: grids, products, subsets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.arguments import Operand, constant, either, on_host, one_dim, sizes_of, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.backend import elements_for_shape, holds_somewhere, is_known
from chainrule.errors import ArgumentError, ArgumentTypeError, ShapeError
from chainrule.operation import operation
from chainrule.ops.join_split import stack
from chainrule.ops.reshape import broadcast_to, reshape
from chainrule.primitives import indexing as indexing_primitives
from chainrule.primitives import shaping

__all__ = [
    "tile",
    "repeat",
    "repeat_interleave",
    "meshgrid",
    "cartesian_prod",
    "combinations",
]

# --- repetition -----------------------------------------------------------------------------------


@operation(array_api=True)
def tile(input: Operand, *repeats: Any, dims: Sequence[int] | None = None) -> Tensor:
    """Return `input` repeated along its dimensions, the last ones if fewer numbers are given.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    *repeats : ints, or one sequence of ints
        Number of repetitions along each dimension, also spelled `dims=`; if there are more numbers
        than dimensions, new dimensions come first.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If a number is negative.

    Notes
    -----
    Derivative: 1 for each repetition: the gradient is summed over them.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.tile(cr.tensor([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    input, times = tensor_of(input), sizes_of(repeats if dims is None else (dims,))
    return repeat_whole(input, (1,) * (input.ndim - len(times)) + times)


@operation(method="repeat")
def repeat_whole(x: Tensor, /, *repeats: Any) -> Tensor:
    """Return the tensor repeated along each of its dimensions, as NumPy's `tile` does.

    Parameters
    ----------
    *repeats : ints, or one sequence of ints
        Number of repetitions along each dimension; new dimensions come first.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If there are fewer numbers than dimensions, or one is negative.

    Notes
    -----
    Derivative: 1 for each repetition: the gradient is summed over them.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    times = sizes_of(repeats)
    if len(times) < x.ndim:
        raise ShapeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            f"tensor: got {len(times)} and {x.ndim}: write "
            f"repeat({', '.join(map(str, (1,) * (x.ndim - len(times)) + times))})"
        )
    if min(times, default=1) < 0:
        raise ShapeError(f"repeat: can't repeat a negative number of times: {list(times)}")
    shape = (1,) * (len(times) - x.ndim) + x.shape
    blocks = shaping.reshape.apply(x, shape=tuple(itertools.chain(*[(1, n) for n in shape])))
    repeated_shape = tuple(itertools.chain(*zip(times, shape, strict=True)))
    repeated = shaping.broadcast_to.apply(blocks, shape=repeated_shape)
    result = tuple([n * size for n, size in zip(times, shape, strict=True)])
    return shaping.reshape_copy.apply(repeated, shape=result)


@operation()
def repeat_interleave(
    input: Operand,
    repeats: int | Operand | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
    axis: int | None = None,
) -> Tensor:
    """Return `input` with each element along a dimension repeated.

    Parameters
    ----------
    input : Tensor
        Any tensor.
    repeats : int or Tensor of integers
        Number of repetitions of all elements, or of each. If left out, the result has the indices
        0, 1, … as often as the elements of `input` say.
    dim : int, optional
        The dimension to repeat along: that of the flattened tensor if left out. Also spelled
        `axis`.
    output_size : int, optional
        The expected length of the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If the number of `repeats` is not the length of the dimension, or `output_size` is wrong.

    Notes
    -----
    Derivative: 1 for each repetition: the gradient is summed over them.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.repeat_interleave(cr.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    >>> cr.repeat_interleave(cr.tensor([1, 2]), cr.tensor([3, 1]))
    tensor([1, 1, 1, 2])
    """
    input, dim = tensor_of(input), either(dim, axis)
    if repeats is None:
        counts = on_host(input._array)
        input = constant(np.arange(input.numel()), input)
    elif isinstance(repeats, int | np.ndarray | np.generic):
        counts = np.asarray(repeats)  # known in a compiled function, too
    else:
        counts = on_host(tensor_of(repeats)._array)
    times = counts.reshape(-1)
    if times.dtype.kind not in "iu" or counts.ndim > 1:
        raise ArgumentTypeError("repeats has to be an int, or a 0-dim or 1-dim Tensor of integers")
    if holds_somewhere(times < 0):
        raise ShapeError("repeats can not be negative")
    input = reshape(input, -1) if dim is None or input.ndim == 0 else input
    number = one_dim(0 if dim is None else dim, input.ndim)
    length = input.shape[number]
    if len(times) not in (1, length):
        raise ShapeError(
            f"repeats must have the same size as input along dim, but got {len(times)} repeats for "
            f"a length of {length}"
        )
    if output_size is None:
        times = elements_for_shape(times, "repeat_interleave", "give output_size")
    elif not is_known(times):
        positions = _unknown_indices(times, length, output_size)
        return indexing_primitives.index.apply(input, key=(*(slice(None),) * number, positions))
    total = int(times.sum()) * (length if len(times) == 1 else 1)
    if output_size not in (None, total):
        raise ShapeError(f"repeat_interleave: output_size is {output_size}, not the sum, {total}")
    if len(times) == 1:
        return _repeat_each(input, number, int(times[0]))
    key = (*(slice(None),) * number, np.repeat(np.arange(length), times))
    return indexing_primitives.index.apply(input, key=key)


def _unknown_indices(times: Any, length: int, output_size: int) -> Any:
    """Return the index of the source of each element of the result, for symbolic repetitions."""
    ends = np.cumsum(times if len(times) == length else np.repeat(times, length))
    numbers: Any = np.arange(output_size)
    return np.searchsorted(ends, numbers, side="right")


def _repeat_each(x: Tensor, dim: int, count: int) -> Tensor:
    """Return `x` with each element along a dimension repeated `count` times."""
    before, length, after = x.shape[:dim], x.shape[dim], x.shape[dim + 1 :]
    elements = shaping.reshape.apply(x, shape=(*before, length, 1, *after))
    repeated = shaping.broadcast_to.apply(elements, shape=(*before, length, count, *after))
    return shaping.reshape_copy.apply(repeated, shape=(*before, length * count, *after))


@operation(method=False, array_api=True)
def repeat(x: Operand, repeats: int | Operand, /, *, axis: int | None = None) -> Tensor:
    """Return `x` with each element repeated: the array API's name of `repeat_interleave`.

    PyTorch's method ``x.repeat(2, 3)`` is a different operation: it repeats the whole tensor, as
    `tile` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.repeat(cr.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    return repeat_interleave(x, repeats, axis)


# --- grids and combinations -----------------------------------------------------------------------


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return the coordinates of all points of the grid with the given coordinates on its axes.

    Parameters
    ----------
    *tensors : Tensors of at most one dimension, or one sequence of them
        The coordinates along each axis.
    indexing : {"ij", "xy"}, default "ij"
        With "xy" the first two dimensions of the results are exchanged, as for plots.

    Returns
    -------
    tuple of Tensors, shape (lengths of all axes)
        Read-only views.

    Raises
    ------
    ShapeError
        If there are no tensors, or one has more dimensions.
    ArgumentError
        If `indexing` is neither of these.

    Notes
    -----
    Derivative: 1 for each point: the gradient is summed over them.

    Examples
    --------
    >>> import chainrule as cr
    >>> rows, columns = cr.meshgrid(cr.tensor([1, 2]), cr.tensor([3, 4]))
    >>> rows
    tensor([[1, 1],
            [2, 2]])
    """
    listed = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    axes = [tensor_of(x) for x in listed]
    if not axes:
        raise ShapeError("meshgrid expects a non-empty TensorList")
    if indexing not in ("ij", "xy"):
        raise ArgumentError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing!r}'
        )
    for axis in axes:
        if axis.ndim > 1:
            raise ShapeError(
                f"meshgrid: Expected 0D or 1D tensor in the tensor list but got {axis.ndim}D"
            )
    ndim = len(axes)
    positions = list(range(ndim))
    if indexing == "xy" and ndim > 1:
        positions[:2] = [1, 0]
    lengths = [axes[i].numel() for i in positions]  # to exchange the first two is its own inverse
    return tuple(
        [
            broadcast_to(reshape(axis, (-1,) + (1,) * (ndim - 1 - position)), tuple(lengths))
            for axis, position in zip(axes, positions, strict=True)
        ]
    )


def cartesian_prod(*tensors: Operand) -> Tensor:
    """Return the Cartesian product of vectors: all choices of one element of each, as rows.

    The elements of the last vector change fastest.

    Parameters
    ----------
    *tensors : Tensors, 1-d
        The vectors to choose from.

    Returns
    -------
    Tensor, shape (number of choices, number of tensors)
        A single vector is returned as it is.

    Raises
    ------
    ShapeError
        If a tensor is not a vector.

    Notes
    -----
    Derivative: 1 for each choice that contains the element.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cartesian_prod(cr.tensor([1, 2]), cr.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    vectors = [tensor_of(x) for x in tensors]
    for vector in vectors:
        if vector.ndim != 1:
            raise ShapeError(f"Expect a 1D vector, but got shape {list(vector.shape)}")
    if len(vectors) == 1:
        return vectors[0]
    return stack([reshape(grid, -1) for grid in meshgrid(*vectors)], 1)


def combinations(input: Operand, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all choices of `r` elements of a vector, as rows, in the order of the elements.

    Parameters
    ----------
    input : Tensor, 1-d
        The vector to choose from.
    r : int, default 2
        Number of elements of a choice.
    with_replacement : bool, default False
        Whether an element can be chosen again.

    Returns
    -------
    Tensor, shape (number of choices, r)

    Raises
    ------
    ShapeError
        If `input` is not a vector.
    ArgumentError
        If `r` is negative.

    Notes
    -----
    Derivative: 1 for each choice that contains the element.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.combinations(cr.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    input = tensor_of(input)
    if input.ndim != 1:
        raise ShapeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise ArgumentError(f"Expect a non-negative number, but got {r}")
    n = input.shape[0]
    choose: Any = (
        itertools.combinations_with_replacement if with_replacement else itertools.combinations
    )
    count = math.comb(n + r - 1, r) if with_replacement and n + r else math.comb(n, r)
    flat = itertools.chain.from_iterable(choose(range(n), r))
    key = np.fromiter(flat, np.intp, count * r)
    if r == 0:
        return reshape(input[:0], 0)
    return indexing_primitives.index.apply(input, key=key.reshape(count, r))
