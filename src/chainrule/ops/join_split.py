"""Joining and splitting: cat, stack, split, chunk, unbind and their variants."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.arguments import Operand, cast, either, one_dim, tensor_of, whole_number, written
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.views import View, view_of
from chainrule.backend import promoted
from chainrule.errors import ArgumentError, ArgumentTypeError, OutOfBoundsError, ShapeError
from chainrule.operation import operation
from chainrule.ops.reshape import reshape
from chainrule.primitives import Primitive, indexing, shaping
from chainrule.primitives.indexing import getitem, select

__all__ = [
    "cat",
    "concat",
    "concatenate",
    "stack",
    "split",
    "chunk",
    "unbind",
    "unstack",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "hstack",
    "vstack",
    "row_stack",
    "dstack",
    "column_stack",
    "block_diag",
    "tensor_split",
    "hsplit",
    "vsplit",
    "dsplit",
    "split_with_sizes",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
]

_concat = shaping.concat.apply


def cat(
    tensors: Sequence[Operand],
    dim: int | None = None,
    *,
    axis: int | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return tensors joined along an existing dimension.

    Parameters
    ----------
    tensors : sequence of Tensors
        Of equal shapes except along `dim`. Tensors of shape (0,) are ignored.
    dim : int, default 0
        The dimension to join along. Also spelled `axis`.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, of the promoted dtype

    Raises
    ------
    ShapeError
        If there are no tensors, or their shapes don't match.

    Notes
    -----
    Derivative: 1; each tensor gets its part of the gradient.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cat([cr.zeros(2), cr.ones(1)])
    tensor([0., 0., 1.])
    """
    if isinstance(tensors, Tensor):
        raise _not_a_list("cat")
    if out is not None:
        found: Tensor = written(cat(tensors, dim, axis=axis), out)
        return found
    parts: list[Any] = list(tensors)
    shapes = set()
    dtype = None
    for part in parts:
        if type(part) is not Tensor:
            break
        array = part._array
        if array.dtype is not dtype:
            if dtype is not None:
                break
            dtype = array.dtype
        shapes.add(array.shape)
    else:
        if shapes and () not in shapes and (0,) not in shapes:  # one dtype
            ndim = len(array.shape)
            number = 0 if axis is None is dim else one_dim(either(dim, axis), ndim)
            if len(shapes) == 1 or len({(n[:number], n[number + 1 :]) for n in shapes}) == 1:
                return _concat(*parts, axis=number)
    parts = same_dtype("cat", parts)
    for i, part in enumerate(parts):
        if part.ndim == 0:
            raise ShapeError(
                f"zero-dimensional tensor (at position {i}) cannot be concatenated: "
                "cr.stack([...]) makes a vector of numbers"
            )
    like = next((part for part in parts if part._array.shape != (0,)), parts[0]).shape
    number = _joining_dim(either(dim, axis), len(like))
    empty = (*like[:number], 0, *like[number + 1 :])
    for i, part in enumerate(parts):
        if part._array.shape == (0,) != empty:
            parts[i] = shaping.reshape.apply(part, shape=empty)
        else:
            _check_shapes(like, part.shape, number, i)
    return _concat(*parts, axis=number)


concat = concatenate = cat


def _joining_dim(dim: int | None, ndim: int) -> int:
    """Return the dimension to join along, 0 by default, counted from the front."""
    return one_dim(0 if dim is None else dim, ndim)


def same_dtype(operation: str, tensors: Sequence[Operand]) -> list[Tensor]:
    """Return the operands as tensors of their promoted dtype."""
    if isinstance(tensors, Tensor):
        raise _not_a_list(operation)
    if not tensors:
        raise ShapeError(f"{operation}(): expected a non-empty list of Tensors")
    parts: list[Any] = list(tensors)
    for part in parts:
        if type(part) is not Tensor:
            parts = as_tensors(parts)
            break
    dtypes = {part._array.dtype for part in parts}
    if len(dtypes) == 1:
        return parts
    dtype = functools.reduce(promoted, [part.dtype for part in parts])
    return [cast(part, dtype) for part in parts]


def _not_a_list(operation: str) -> TypeError:
    return TypeError(
        f"{operation}(): argument 'tensors' (position 1) must be a list or tuple of Tensors, not "
        f"Tensor: write {operation}([a, b])"
    )


def _check_shapes(first: tuple[int, ...], shape: tuple[int, ...], dim: int, position: int) -> None:
    if len(first) != len(shape):
        fits = len(first) == len(shape) + 1 and first[:dim] + first[dim + 1 :] == shape
        raise ShapeError(
            f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}, of "
            f"the shapes {list(first)} and {list(shape)}, for tensor number {position} in the list"
            f"{f'. It needs unsqueeze({dim})' if fits else ''}"
        )
    odd = [i for i, (n, m) in enumerate(zip(first, shape, strict=True)) if n != m]
    if odd and odd != [dim]:
        raise ShapeError(
            f"Sizes of tensors must match except in dimension {dim}. Expected {list(first)} but "
            f"got {list(shape)} for tensor number {position} in the list."
            f"{f' They fit with dim={odd[0]}' if len(odd) == 1 else ''}"
        )


@operation(method=False, array_api=True)
def stack(
    tensors: Sequence[Operand],
    dim: int | None = None,
    *,
    axis: int | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return tensors joined along a new dimension.

    Parameters
    ----------
    tensors : sequence of Tensors
        Of one shape.
    dim : int, default 0
        The position of the new dimension in the result. Also spelled `axis`.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, of the promoted dtype

    Raises
    ------
    ShapeError
        If there are no tensors, or their shapes differ.

    Notes
    -----
    Derivative: 1; each tensor gets its part of the gradient.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.stack([cr.zeros(2), cr.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    parts = same_dtype("stack", tensors)
    shape = parts[0]._array.shape
    number = _joining_dim(either(dim, axis), len(shape) + 1)
    for i, part in enumerate(parts):
        if part._array.shape != shape:
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {list(parts[0].shape)} at "
                f"entry 0 and {list(part.shape)} at entry {i}: cat() joins tensors along a "
                "dimension that they have, in which their sizes may differ"
            )
    found = shaping.stack.apply(*parts, axis=number)
    return found if out is None else written(found, out)


# --- splitting ------------------------------------------------------------------------------------


@operation(aliases="unsafe_split")
def split(
    input: Operand | None = None,
    split_size_or_sections: int | Sequence[int] | None = None,
    dim: int = 0,
    *,
    axis: int | None = None,
    split_size: int | Sequence[int] | None = None,
    tensor: Operand | None = None,
) -> tuple[Tensor, ...]:
    """Return parts of `input` along a dimension.

    Parameters
    ----------
    input : Tensor
        Any tensor of at least one dimension. PyTorch's function calls it `tensor`.
    split_size_or_sections : int or sequence of ints
        The length of each part (the last may be shorter), or all lengths. PyTorch's method calls it
        `split_size`.
    dim : int, default 0
        The dimension to split. Also spelled `axis`.

    Returns
    -------
    tuple of Tensors
        Views that can't be written to in place while recording.

    Raises
    ------
    ShapeError
        If the lengths don't add up.

    Notes
    -----
    Derivative: 1; the gradient of `input` joins those of the parts.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.split(cr.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    given = tensor if input is None else input
    if given is None:
        raise ArgumentTypeError("split() needs a tensor")
    input = tensor_of(given)
    if input.ndim == 0:
        raise ShapeError("split expects at least a 1-dimensional tensor")
    number = one_dim(dim if axis is None else axis, input.ndim)
    length = input.shape[number]
    lengths = split_size if split_size_or_sections is None else split_size_or_sections
    if lengths is None:
        raise ArgumentTypeError("split() needs split_size_or_sections: the length of each part")
    if isinstance(lengths, Sequence):
        sizes = tuple([whole_number(n, "split", "each of split_size_or_sections") for n in lengths])
        if sum(sizes) != length or min(sizes, default=0) < 0:
            raise ShapeError(
                f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's "
                f"size at dimension {number}), but got split_sizes={list(sizes)}"
            )
    else:
        sizes = _equal_sizes(length, whole_number(lengths, "split", "split_size_or_sections"))
    return _split(input, sizes, number)


def _equal_sizes(length: int, size: int) -> tuple[int, ...]:
    if size < 0 or (size == 0 < length):
        raise ShapeError(f"split expects split_size to be positive, but got split_size={size}")
    if length == 0:
        return (0,)
    return tuple([min(size, length - start) for start in range(0, length, size)])


def _split(x: Tensor, sizes: tuple[int, ...], dim: int) -> tuple[Tensor, ...]:
    parts: Any = shaping.split.apply(x, axis=dim, sizes=sizes)
    start, lead = 0, (slice(None),) * dim
    for part, size in zip(parts, sizes, strict=True):
        part._view = _part_view(x, getitem, (*lead, slice(start, start + size)))
        start += size
    return tuple(parts)


@operation(aliases="unsafe_chunk")
def chunk(
    input: Operand, chunks: int, dim: int = 0, *, axis: int | None = None
) -> tuple[Tensor, ...]:
    """Return `input` in parts of equal length (the last may be shorter), at most `chunks` of them.

    Parameters
    ----------
    input : Tensor
        Any tensor of at least one dimension.
    chunks : int
        Number of parts; there may be fewer if the length is not a multiple of it.
    dim : int, default 0
        The dimension to split. Also spelled `axis`.

    Returns
    -------
    tuple of Tensors
        Views that can't be written to in place while recording.

    Raises
    ------
    ArgumentError
        If `chunks` is not positive.

    Notes
    -----
    Derivative: 1; the gradient of `input` joins those of the parts.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.chunk(cr.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    input = tensor_of(input)
    chunks = whole_number(chunks, "chunk", "chunks")
    if chunks <= 0:
        raise ArgumentError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if input.ndim == 0:
        raise ShapeError("chunk expects at least a 1-dimensional tensor")
    number = one_dim(dim if axis is None else axis, input.ndim)
    if input.shape[number] == 0:
        return _split(input, (0,) * chunks, number)
    return _split(
        input, _equal_sizes(input.shape[number], -(-input.shape[number] // chunks)), number
    )


@operation()
def unbind(input: Operand, dim: int = 0, *, axis: int | None = None) -> tuple[Tensor, ...]:
    """Return the slices of `input` along a dimension, without that dimension.

    Parameters
    ----------
    input : Tensor
        Any tensor of at least one dimension.
    dim : int, default 0
        The dimension to split. Also spelled `axis`.

    Returns
    -------
    tuple of Tensors
        Views that can't be written to in place while recording.

    Raises
    ------
    ShapeError
        If `input` has no dimension.

    Notes
    -----
    Derivative: 1; the gradient of `input` stacks those of the slices.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unbind(cr.tensor([1, 2]))
    (tensor(1), tensor(2))
    """
    input = tensor_of(input)
    if input.ndim == 0:
        raise OutOfBoundsError("unbind: Dimension specified as 0 but tensor has no dimensions")
    number = one_dim(dim if axis is None else axis, input.ndim)
    parts: Any = shaping.unbind.apply(input, axis=number)
    lead = (slice(None),) * number
    for i, part in enumerate(parts):
        part._view = _part_view(input, select, (*lead, i, ...))
    return tuple(parts)


@operation(method=False, numpy="unstack x axis=", array_api=True)
def unstack(input: Operand, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices of `input` along a dimension: the array API's name of `unbind`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unstack(cr.tensor([1, 2]))
    (tensor(1), tensor(2))
    """
    return unbind(input, axis)


def _part_view(x: Tensor, primitive: Primitive, key: tuple[Any, ...]) -> View:
    """Return the record that makes one of several parts a view of the base of `x`."""
    view = view_of(x, primitive, {"key": key})
    view.refusal = view.refusal or "multiple"
    return view


# --- joining along the first, second or third dimension -------------------------------------------


@operation(method=False, numpy="atleast_1d *arys")
def atleast_1d(*tensors: Any) -> Any:
    """Return tensors with at least one dimension: 0-d ones as vectors of one element.

    Parameters
    ----------
    *tensors : Tensors, or one sequence of them
        Any tensors.

    Returns
    -------
    Tensor, or tuple of Tensors if several were given
        Views.

    Notes
    -----
    Derivative: 1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.atleast_1d(cr.tensor(5))
    tensor([5])
    """
    return _apply_to_each(_at_least_1d, tensors)


@operation(method=False, numpy="atleast_2d *arys")
def atleast_2d(*tensors: Any) -> Any:
    """Return tensors with at least two dimensions: vectors as rows; as `atleast_1d` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.atleast_2d(cr.tensor([5, 6]))
    tensor([[5, 6]])
    """
    return _apply_to_each(_at_least_2d, tensors)


@operation(method=False, numpy="atleast_3d *arys")
def atleast_3d(*tensors: Any) -> Any:
    """Return tensors with at least three dimensions; as `atleast_1d` does.

    A vector of n elements gets the shape (1, n, 1), a matrix of shape (m, n) the shape (m, n, 1).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.atleast_3d(cr.zeros(2)).shape, cr.atleast_3d(cr.zeros(2, 3)).shape
    ((1, 2, 1), (2, 3, 1))
    """
    return _apply_to_each(_at_least_3d, tensors)


def _apply_to_each(function: Any, tensors: tuple[Any, ...]) -> Any:
    """Return the result for a single tensor, or the tuple of results for several."""
    if len(tensors) == 1 and not isinstance(tensors[0], list | tuple):
        return function(tensor_of(tensors[0]))
    listed = tensors[0] if len(tensors) == 1 else tensors
    return tuple([function(tensor_of(x)) for x in listed])


def _at_least_1d(x: Tensor) -> Tensor:
    return x if x.ndim else reshape(x, 1)


def _at_least_2d(x: Tensor) -> Tensor:
    return x if x.ndim > 1 else reshape(x, 1, -1)


def _at_least_3d(x: Tensor) -> Tensor:
    if x.ndim > 2:
        return x
    return reshape(x, (*x.shape, 1) if x.ndim == 2 else (1, x.numel(), 1))


def _cat_nonempty(name: str, parts: list[Tensor], dim: int) -> Tensor:
    """Return tensors joined along a dimension, of which there must be at least one."""
    if not parts:
        raise ShapeError(f"{name} expects a non-empty TensorList")
    return cat(parts, dim)


def hstack(tensors: Sequence[Operand]) -> Tensor:
    """Return tensors joined along the second dimension; vectors along their only one.

    Parameters
    ----------
    tensors : sequence of Tensors
        Of equal shapes except along that dimension.

    Returns
    -------
    Tensor, of the promoted dtype

    Raises
    ------
    ShapeError
        If there are no tensors, or their shapes don't match.

    Notes
    -----
    Derivative: 1; each tensor gets its part of the gradient.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.hstack([cr.tensor([1, 2]), cr.tensor([3])])
    tensor([1, 2, 3])
    """
    parts = [_at_least_1d(tensor_of(x)) for x in tensors]
    return _cat_nonempty("hstack", parts, 0 if parts and parts[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Operand]) -> Tensor:
    """Return tensors joined along the first dimension, vectors as rows; as `hstack` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.vstack([cr.tensor([1, 2]), cr.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return _cat_nonempty("vstack", [_at_least_2d(tensor_of(x)) for x in tensors], 0)


row_stack = vstack


@operation(method=False, numpy="dstack [tup]")
def dstack(tensors: Sequence[Operand]) -> Tensor:
    """Return tensors joined along the third dimension, as `atleast_3d` adds it; see `hstack`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.dstack([cr.tensor([1, 2]), cr.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    return _cat_nonempty("dstack", [_at_least_3d(tensor_of(x)) for x in tensors], 2)


@operation(method=False, numpy="column_stack [tup]")
def column_stack(tensors: Sequence[Operand]) -> Tensor:
    """Return tensors joined along the second dimension, vectors as columns; as `hstack` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.column_stack([cr.tensor([1, 2]), cr.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    columns = [tensor_of(x) for x in tensors]
    return _cat_nonempty(
        "column_stack", [x if x.ndim > 1 else reshape(x, (x.numel(), 1)) for x in columns], 1
    )


def block_diag(*tensors: Operand) -> Tensor:
    """Return the block-diagonal matrix of several matrices.

    Parameters
    ----------
    *tensors : Tensors of at most two dimensions
        Vectors count as rows.

    Returns
    -------
    Tensor, 2-d, of the promoted dtype

    Raises
    ------
    ShapeError
        If a tensor has more dimensions, or there are no tensors.

    Notes
    -----
    Derivative: 1; each tensor gets its block of the gradient.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.block_diag(cr.tensor([[1, 2]]), cr.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    parts = [_at_least_2d(x) for x in same_dtype("block_diag", tensors)]
    for i, part in enumerate(parts):
        if part.ndim > 2:
            raise ShapeError(
                "block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{i} has {part.ndim} dimensions"
            )
    columns = sum([part.shape[1] for part in parts])
    positions, top, left = [], 0, 0
    for part in parts:
        rows, width = part.shape
        steps = (top + np.arange(rows))[:, None] * columns + left + np.arange(width)
        positions.append(steps.reshape(-1))
        top, left = top + rows, left + width
    flat = [reshape(part, -1) for part in parts]
    joined = cat(flat, 0)
    key = (np.concatenate(positions),)
    out = indexing.index_add.apply(joined, shape=(top * columns,), key=key)
    return reshape(out, (top, columns))


# --- splitting into equal parts or at indices -----------------------------------------------------


@operation()
def tensor_split(
    input: Operand,
    indices_or_sections: int | Sequence[int] | Tensor | None = None,
    dim: int = 0,
    *,
    axis: int | None = None,
    sections: int | None = None,
    indices: Sequence[int] | None = None,
) -> tuple[Tensor, ...]:
    """Return parts of `input` along a dimension, by their number or by the indices of the cuts.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    indices_or_sections : int, sequence of ints or Tensor of integers
        Number of parts of almost equal length, the longer ones first; or the indices where the
        second, third … part begins, as in slices. Also spelled `sections` and `indices`.
    dim : int, default 0
        The dimension to split. Also spelled `axis`.

    Returns
    -------
    tuple of Tensors
        Views.

    Raises
    ------
    ArgumentError
        If the number of parts is not positive.
    ShapeError
        If `input` has no dimension.

    Notes
    -----
    Derivative: 1; the gradient of `input` joins those of the parts.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.tensor_split(cr.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    input = tensor_of(input)
    cuts: Any = indices_or_sections if sections is None else sections
    cuts = cuts if indices is None else indices
    if input.ndim == 0:
        raise ShapeError("tensor_split expected at least a 1-dimensional tensor, but got 0 dims")
    number = one_dim(dim if axis is None else axis, input.ndim)
    length = input.shape[number]
    cuts = _whole_numbers("tensor_split", cuts)
    if isinstance(cuts, int):
        if cuts <= 0:
            raise ArgumentError(f"number of sections must be larger than 0, got {cuts}")
        shorter, longer = divmod(length, cuts)
        cuts = [i * shorter + min(i, longer) for i in range(1, cuts)]
    lead = (slice(None),) * number
    ends = [*cuts, length]
    return tuple(
        [
            indexing.getitem.apply(input, key=(*lead, slice(start, stop), ...))
            for start, stop in zip([0, *cuts], ends, strict=True)
        ]
    )


def _whole_numbers(operation: str, given: Any) -> int | list[int]:
    """Return an int, or a list of the ints of a sequence, or raise."""
    given = given.tolist() if isinstance(given, Tensor) else given
    name = "indices_or_sections"
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        return whole_number(given, operation, name)
    return [whole_number(each, operation, f"each of {name}") for each in given]


@operation()
def hsplit(input: Operand, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Return parts of `input` along its second dimension; of a vector along its only one.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    indices_or_sections : int or sequence of ints
        Number of parts of equal length, or the indices where the second, third … part begins.

    Returns
    -------
    tuple of Tensors
        Views.

    Raises
    ------
    ShapeError
        If there are too few dimensions, or the parts would not be of equal length.

    Notes
    -----
    Derivative: 1; the gradient of `input` joins those of the parts.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.hsplit(cr.tensor([1, 2, 3, 4]), 2)
    (tensor([1, 2]), tensor([3, 4]))
    """
    return _split_along("hsplit", input, indices_or_sections, 1)


@operation()
def vsplit(input: Operand, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Return parts along the first dimension of a tensor of two or more; as `hsplit` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.vsplit(cr.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return _split_along("vsplit", input, indices_or_sections, 2)


@operation()
def dsplit(input: Operand, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Return parts of `input` along its third dimension; as `hsplit` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> [part.shape for part in cr.dsplit(cr.zeros(2, 2, 4), [1])]
    [(2, 2, 1), (2, 2, 3)]
    """
    return _split_along("dsplit", input, indices_or_sections, 3)


def _split_along(
    name: str, x: Operand, cuts: int | Sequence[int], min_ndim: int
) -> tuple[Tensor, ...]:
    x = tensor_of(x)
    if x.ndim < min_ndim:
        raise ShapeError(
            f"{name} requires a tensor with at least {min_ndim} "
            f"dimension{'s' if min_ndim > 1 else ''}, but got a tensor with {x.ndim} dimensions"
        )
    dim = {"hsplit": 1 if x.ndim > 1 else 0, "vsplit": 0, "dsplit": 2}[name]
    parts = _whole_numbers(name, cuts)
    if isinstance(parts, int) and (parts <= 0 or x.shape[dim] % parts):
        raise ShapeError(
            f"{name} attempted to split along dimension {dim}, but the size of the dimension "
            f"{x.shape[dim]} is not divisible by the split_size {parts}"
        )
    return tensor_split(x, parts, dim)


@operation(aliases="unsafe_split_with_sizes")
def split_with_sizes(
    input: Operand, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Return parts of `input` of given lengths, as `split` does with a list.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.split_with_sizes(cr.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return split(input, tuple(split_sizes), dim)


# PyTorch's parts that may be written to. Here they are views all the same.
unsafe_chunk, unsafe_split, unsafe_split_with_sizes = chunk, split, split_with_sizes
