"""The same elements in another shape or order. Most results are views: they share memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.arguments import (
    RECORDERS,
    Operand,
    Sizes,
    either,
    many_dims,
    one_dim,
    sizes_of,
    tensor_of,
)
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import ShapeError

__all__ = [
    "reshape",
    "flatten",
    "squeeze",
    "unsqueeze",
    "expand_dims",
    "broadcast_to",
    "permute",
    "permute_dims",
    "transpose",
    "swapaxes",
    "t",
    "matrix_transpose",
    "movedim",
    "moveaxis",
    "flip",
    "roll",
    "tril",
    "triu",
    "diag",
]

_reshape = RECORDERS["reshape"]
_permute = RECORDERS["permute_dims"]
_broadcast = RECORDERS["broadcast_to"]

# --- reshaping ------------------------------------------------------------------------------------


def reshape(x: Operand, /, *shape: Any) -> Tensor:
    """Return the elements of `x`, in row-major order, in another shape.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    *shape : int, or one sequence of ints
        ``reshape(x, (2, 3))`` and ``x.reshape(2, 3)`` are the same. One size may be -1: it is
        worked out from the others.

    Returns
    -------
    Tensor, shape `shape`
        A view if the memory layout allows it, else a copy.

    Raises
    ------
    ShapeError
        If the number of elements differs.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.reshape(cr.arange(4), (2, -1))
    tensor([[0, 1],
            [2, 3]])
    """
    x = tensor_of(x)
    sizes = _full_shape(x, sizes_of(shape))
    return RECORDERS["reshape" if _fits_in_place(x, sizes) else "reshape_copy"](x, shape=sizes)


def _full_shape(x: Tensor, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape with its -1 worked out."""
    count = x.numel()
    unknown = [i for i, size in enumerate(sizes) if size < 0]
    known = math.prod([size for size in sizes if size >= 0])
    if len(unknown) > 1:
        raise ShapeError(f"only one dimension can be inferred, but the shape is {list(sizes)}")
    if any(sizes[i] != -1 for i in unknown):
        raise ShapeError(f"invalid shape dimension {sizes[unknown[0]]} in {list(sizes)}")
    if unknown and known == 0:
        raise ShapeError(
            f"cannot reshape tensor of {count} elements into shape {list(sizes)} because the "
            "unspecified dimension size -1 can be any value and is ambiguous"
        )
    if count % known if unknown else known != count:
        raise ShapeError(f"shape '{list(sizes)}' is invalid for input of size {count}")
    if not unknown:
        return sizes
    return (*sizes[: unknown[0]], count // known, *sizes[unknown[0] + 1 :])


def _fits_in_place(x: Tensor, sizes: tuple[int, ...]) -> bool:
    """Say whether a view of the memory of `x` can have this shape."""
    array = x._array
    if array.flags.c_contiguous:
        return True
    try:
        array.reshape(sizes, copy=False)
    except ValueError:
        return False
    return True


def view(x: Tensor, /, *shape: Any) -> Tensor:
    """Return a view of `x` in another shape; the arguments are those of `reshape`.

    Raises
    ------
    ShapeError
        If the memory layout needs a copy: use `reshape`.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3).view(-1).shape
    (6,)
    """
    sizes = _full_shape(x, sizes_of(shape))
    if not _fits_in_place(x, sizes):
        raise ShapeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return _reshape(x, shape=sizes)


def contiguous(x: Tensor, /) -> Tensor:
    """Return `x` itself if its elements lie in memory in row-major order, else a copy that does.

    Notes
    -----
    Derivative: 1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3).t().contiguous().is_contiguous()
    True
    """
    return x if x.is_contiguous() else RECORDERS["reshape_copy"](x, shape=x.shape)


def flatten(x: Operand, /, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return `x` with the dimensions from `start_dim` to `end_dim` made into one.

    Parameters
    ----------
    x : Tensor
        Any tensor; a 0-d one becomes 1-d.
    start_dim, end_dim : int, default 0 and -1
        The first and the last of the dimensions, included.

    Returns
    -------
    Tensor
        A view if the memory layout allows it.

    Raises
    ------
    ValueError
        If `start_dim` comes after `end_dim`.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.flatten(cr.zeros(2, 3, 4), 1).shape
    (2, 12)
    """
    x = tensor_of(x)
    first, last = one_dim(start_dim, x.ndim), one_dim(end_dim, x.ndim)
    if first > last:
        raise ValueError("flatten() has invalid args: start_dim cannot come after end_dim")
    middle = math.prod(x.shape[first : last + 1])
    return reshape(x, (*x.shape[:first], middle, *x.shape[last + 1 :]))


def squeeze(x: Operand, /, dim: int | Sequence[int] | None = None, *, axis: Any = None) -> Tensor:
    """Return `x` without dimensions of length 1.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    dim : int or sequence of ints, optional
        Which dimensions, if they have length 1: all if left out. Also spelled `axis`.

    Returns
    -------
    Tensor
        A view.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.squeeze(cr.zeros(1, 2, 1)).shape
    (2,)
    """
    x = tensor_of(x)
    dims = many_dims(either(dim, axis), x.ndim)
    kept = [n for i, n in enumerate(x.shape) if n != 1 or (dims is not None and i not in dims)]
    return _reshape(x, shape=tuple(kept))


def unsqueeze(x: Operand, /, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """Return `x` with a new dimension of length 1.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    dim : int
        Where the new dimension stands in the result. Also spelled `axis`.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If `dim` is out of range.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.unsqueeze(cr.zeros(2), 0).shape
    (1, 2)
    """
    x = tensor_of(x)
    number = one_dim(either(dim, axis), x.ndim + 1)
    return _reshape(x, shape=(*x.shape[:number], 1, *x.shape[number:]))


expand_dims = unsqueeze


def expand(x: Tensor, /, *sizes: Any) -> Tensor:
    """Return `x` with dimensions of length 1 repeated, without copying.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    *sizes : int, or one sequence of ints
        The shape to have; -1 keeps a size. New dimensions come first.

    Returns
    -------
    Tensor
        A view that can't be written to: several of its elements lie in one place.

    Raises
    ------
    ShapeError
        If a size does not fit.

    Notes
    -----
    Derivative: 1 for each repetition: the gradient is summed over them.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ones(2, 1).expand(-1, 3).shape
    (2, 3)
    """
    shape = sizes_of(sizes)
    lead = len(shape) - x.ndim
    if lead < 0:
        raise ShapeError(
            f"expand: the number of sizes provided ({len(shape)}) must be greater or equal to the "
            f"number of dimensions in the tensor ({x.ndim})"
        )
    if -1 in shape[:lead]:
        raise ShapeError("expand: -1 is not allowed in a leading, non-existing dimension")
    return broadcast_to(x, [x.shape[i - lead] if n == -1 else n for i, n in enumerate(shape)])


def broadcast_to(x: Operand, /, shape: Sizes) -> Tensor:
    """Return `x` broadcast to `shape`, without copying.

    Parameters
    ----------
    x : Tensor
        Any tensor whose shape broadcasts to `shape`.
    shape : sequence of ints
        The shape to have.

    Returns
    -------
    Tensor, shape `shape`
        A view that can't be written to.

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
    >>> cr.broadcast_to(cr.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    x, sizes = tensor_of(x), sizes_of((shape,))
    lead = len(sizes) - x.ndim
    for i, length in enumerate(x.shape):
        if lead < 0 or length not in (1, sizes[lead + i]):
            raise ShapeError(
                f"The expanded size of the tensor ({sizes[lead + i] if lead >= 0 else 'none'}) must "
                f"match the existing size ({length}) at non-singleton dimension {lead + i}. Target "
                f"sizes: {list(sizes)}. Tensor sizes: {list(x.shape)}"
            )
    return _broadcast(x, shape=sizes)


# --- reordering dimensions ------------------------------------------------------------------------


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
    ValueError
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
        raise ValueError(
            f"permute: the dimensions {tuple(axes)} must name each of the tensor's {x.ndim} once"
        )
    return _permute(x, axes=order)


def permute(x: Operand, /, *dims: Any) -> Tensor:
    """Return `x` with its dimensions in another order, as `permute_dims` does.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    *dims : int, or one sequence of ints
        ``x.permute(2, 0, 1)`` and ``permute(x, (2, 0, 1))`` are the same.

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
    return permute_dims(x, sizes_of(dims))


def transpose(x: Operand, dim0: int, dim1: int, /) -> Tensor:
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
    IndexError
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


swapaxes = transpose


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
            f"tensor.mT is only supported on matrices or batches of matrices. Got {x.ndim}-D tensor."
        )
    return transpose(x, -2, -1)


def reverse_dims(x: Tensor) -> Tensor:
    """Return `x` with all dimensions in reverse order: the transpose of a matrix."""
    return _permute(x, axes=tuple(range(x.ndim))[::-1])


def movedim(x: Operand, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
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
    ValueError
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
        raise ValueError(
            f"movedim: Invalid source or destination dims: source ({source}) should contain the "
            f"same number of dims as destination ({destination})"
        )
    order = [i for i in range(x.ndim) if i not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return _permute(x, axes=tuple(order))


moveaxis = movedim

# --- reordering elements --------------------------------------------------------------------------


def flip(x: Operand, /, dims: int | Sequence[int] | None = None, *, axis: Any = None) -> Tensor:
    """Return a copy of `x` with the elements along dimensions in reverse order.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    dims : int or sequence of ints, optional
        Which dimensions: all if left out. Also spelled `axis`.

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
    return RECORDERS["flip"](x, axis=many_dims(either(dims, axis), x.ndim))


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
    if named is None:
        return _reshape(RECORDERS["roll"](reshape(x, -1), shift=steps, axis=(0,)), shape=x.shape)
    places = many_dims(named, x.ndim) or ()
    if len(places) != len(steps):
        raise ValueError(f"roll: shifts and dims must align: shifts {shifts}, dims {named}")
    return RECORDERS["roll"](x, shift=steps, axis=places)


# --- triangles and diagonals ----------------------------------------------------------------------


def tril(x: Operand, /, diagonal: int = 0) -> Tensor:
    """Return `x` with zeros above a diagonal of its last two dimensions.

    Parameters
    ----------
    x : Tensor, shape (..., m, n)
        Matrices.
    diagonal : int, default 0
        Which diagonal is the last one kept: 0 is the main one, 1 the one above.

    Returns
    -------
    Tensor, shape of `x`

    Raises
    ------
    ShapeError
        If there are fewer than two dimensions.

    Notes
    -----
    Derivative: 1 for the elements that are kept.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.tril(cr.tensor([[1, 2], [3, 4]]))
    tensor([[1, 0],
            [3, 4]])
    """
    return _triangle("tril", x, diagonal)


def triu(x: Operand, /, diagonal: int = 0) -> Tensor:
    """Return `x` with zeros below a diagonal of its last two dimensions.

    Parameters
    ----------
    x : Tensor, shape (..., m, n)
        Matrices.
    diagonal : int, default 0
        Which diagonal is the first one kept: 0 is the main one, 1 the one above.

    Returns
    -------
    Tensor, shape of `x`

    Raises
    ------
    ShapeError
        If there are fewer than two dimensions.

    Notes
    -----
    Derivative: 1 for the elements that are kept.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.triu(cr.tensor([[1, 2], [3, 4]]))
    tensor([[1, 2],
            [0, 4]])
    """
    return _triangle("triu", x, diagonal)


def _triangle(name: str, x: Operand, diagonal: int) -> Tensor:
    x = tensor_of(x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: input tensor must have at least 2 dimensions, got {x.ndim}")
    xp = namespace(x._array)
    mask = getattr(xp, name)(xp.ones(x.shape[-2:], dtype=bool), k=diagonal)
    return RECORDERS["masked"](x, make(mask, None))


def diag(x: Operand, /, diagonal: int = 0) -> Tensor:
    """Return the diagonal of a matrix, or the matrix with a vector on its diagonal.

    Parameters
    ----------
    x : Tensor, shape (m, n) or (n,)
        A matrix, or a vector.
    diagonal : int, default 0
        Which diagonal: 0 is the main one, positive ones lie above it.

    Returns
    -------
    Tensor, 1-d for a matrix and 2-d for a vector

    Raises
    ------
    ShapeError
        If `x` is neither.

    Notes
    -----
    Derivative: 1 on the diagonal.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.diag(cr.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    x = tensor_of(x)
    if x.ndim == 1:
        size = x.shape[0] + abs(diagonal)
        return RECORDERS["index_add"](x, shape=(size, size), key=_diagonal(x.shape[0], diagonal))
    if x.ndim != 2:
        raise ShapeError(f"diag(): Supports 1D or 2D tensors. Got {x.ndim}D")
    rows, columns = x.shape
    length = min(rows + min(diagonal, 0), columns - max(diagonal, 0))
    return RECORDERS["index"](x, key=_diagonal(max(length, 0), diagonal))


def _diagonal(length: int, diagonal: int) -> tuple[Any, Any]:
    steps = np.arange(length)
    return steps - min(diagonal, 0), steps + max(diagonal, 0)
