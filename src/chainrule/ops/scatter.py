"""Elements written, added or combined at indices; each function returns a new tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS, Operand, one_dim, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.kernels import flat_indexing
from chainrule.ops.combining import WAYS, add, alike, way, write
from chainrule.ops.index_errors import in_our_words, indexing
from chainrule.ops.indexing import index_of
from chainrule.ops.reshape import broadcast_to
from chainrule.ops.wrappers import reshaped

__all__ = [
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "index_add",
    "index_copy",
    "index_fill",
    "index_reduce",
]

# --- one number for each index --------------------------------------------------------------------


def scatter(
    input: Operand,
    dim: int,
    index: Operand,
    src: Operand = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    """Return `input` with the elements of `src` written at `index` along a dimension.

    For three dimensions and dim = 1, ``out[i, index[i, j, k], k] = src[i, j, k]``.

    Parameters
    ----------
    input : Tensor
        What to write to a copy of.
    dim : int
        Along which dimension.
    index : Tensor of integers
        Of as many dimensions as `input`; nowhere longer than `src`, nor, except along `dim`, than
        `input`.
    src : Tensor or number
        What to write, of the dtype of `input`. A number can also be given as `value`.
    reduce : {"add", "multiply"}, optional
        Combine with what is there. `scatter_add` and `scatter_reduce` are the newer spellings.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    OutOfBoundsError
        If an index is out of range.
    ShapeError
        If the shapes don't fit.
    DTypeError
        If the dtypes differ.

    Notes
    -----
    Of values written to one place the last one stays. Derivative: 1 for what is in the result, 0
    for what was overwritten, also for an element of `src` that a later one replaced; PyTorch gives
    that the gradient of the element which replaced it.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.scatter(cr.zeros(3), 0, cr.tensor([2, 0]), cr.tensor([5.0, 7.0]))
    tensor([7., 0., 5.])
    """
    if (src is None) == (value is None):
        raise TypeError("scatter(): give either src or value: what is written")
    combine = WAYS.get(reduce)
    if combine is None:
        raise ArgumentError(
            f"scatter(): reduce argument must be either add or multiply, got {reduce!r}"
        )
    return _along("scatter", combine, input, dim, index, value if src is None else src)


def scatter_add(input: Operand, dim: int, index: Operand, src: Operand) -> Tensor:
    """Return `input` with the elements of `src` added at `index`; the arguments are `scatter`'s.

    Notes
    -----
    What comes to one place adds up. Derivative: 1 for every element of `input` and `src`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.scatter_add(cr.zeros(3), 0, cr.tensor([2, 0, 2]), cr.tensor([1.0, 2.0, 3.0]))
    tensor([2., 0., 4.])
    """
    return _along("scatter_add", add, input, dim, index, src)


def scatter_reduce(
    input: Operand,
    dim: int,
    index: Operand,
    src: Operand,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Return `input` with the elements of `src` combined into it at `index`.

    The first arguments are those of `scatter`.

    Parameters
    ----------
    reduce : {"sum", "prod", "mean", "amax", "amin"}
        How all that comes to one place is combined.
    include_self : bool, default True
        Whether the element of `input` there is one of them.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: as of `sum`, `prod` (exact where there are zeros, to any order), `mean`, `amax` and
    `amin` (shared evenly by equal elements; where `include_self` is false, PyTorch leaves a share
    for the element of `input` all the same).

    Examples
    --------
    >>> import chainrule as cr
    >>> x, index = cr.ones(2), cr.tensor([1, 1, 1])
    >>> cr.scatter_reduce(x, 0, index, cr.tensor([2.0, 3.0, 5.0]), "prod")
    tensor([ 1., 30.])
    """
    return _along(
        "scatter_reduce", way("scatter_reduce", reduce, include_self), input, dim, index, src
    )


def _along(
    operation: str,
    combine: Callable[[Tensor, Tensor, Any], Tensor],
    x: Operand,
    dim: int,
    index: Operand,
    src: Operand,
) -> Tensor:
    """Combine `x` with `src` at an index along a dimension."""
    x, places = tensor_of(x), index_of(operation, index)._array
    src = alike(operation, x, src)
    shape = x._array.shape
    number = one_dim(dim, len(shape))
    if not shape:
        src = src if src.ndim else RECORDERS["reshape"](src, shape=(1,))
        row = RECORDERS["reshape"](x, shape=(1,))
        return reshaped(_along(operation, combine, row, 0, places.reshape(-1), src), ())
    if places.size == 0:
        return RECORDERS["clone"](x)
    if not places.shape == shape == src._array.shape:
        src = _cut(operation, shape, places.shape, src, number)
    kept = x.requires_grad or src.requires_grad  # the user may write to the index afterwards
    try:
        return combine(x, src, flat_indexing.grid(places.astype(np.intp, copy=kept), number))
    except IndexError as error:
        raise in_our_words(error) from None


def _cut(
    operation: str, shape: tuple[int, ...], places: tuple[int, ...], src: Tensor, dim: int
) -> Tensor:
    """Return the part of `src` that comes to as many places."""
    if len(places) != len(shape) or src.ndim not in (0, len(shape)):
        raise ShapeError(
            f"{operation}(): Index tensor must have the same number of dimensions as self tensor "
            f"and src: got {len(places)}, {len(shape)} and {src.ndim}"
        )
    for i, wanted in enumerate(places):
        if (i != dim and wanted > shape[i]) or (src.ndim and wanted > src.shape[i]):
            raise ShapeError(
                f"{operation}(): Expected index {list(places)} to be no larger than self "
                f"{list(shape)} apart from dimension {dim} and to be no larger size than src "
                f"{list(src.shape)}"
            )
    if src.shape == places:
        return src
    return src[tuple([slice(n) for n in places])] if src.ndim else broadcast_to(src, places)


# --- a slice for each index -----------------------------------------------------------------------


def index_add(
    input: Operand, dim: int, index: Operand, source: Operand, *, alpha: float = 1
) -> Tensor:
    """Return `input` with slices added at `index` along a dimension.

    Parameters
    ----------
    input : Tensor
        What to add to.
    dim : int
        Along which dimension.
    index : Tensor of integers, 1-d
        Where the slices go; they may repeat.
    source : Tensor
        The slices, of the shape and dtype of `input`, but along `dim` as many as there are indices.
    alpha : number, default 1
        What `source` is multiplied by.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    OutOfBoundsError
        If an index is out of range.
    ShapeError
        If the shapes don't fit.
    DTypeError
        If the dtypes differ.

    Notes
    -----
    Derivative: 1 for every element of `input`, alpha for every element of `source`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.index_add(cr.zeros(3), 0, cr.tensor([2, 2]), cr.tensor([1.0, 2.0]))
    tensor([0., 0., 3.])
    """
    scaled = source if alpha == 1 else RECORDERS["multiply"](source, alpha)
    return _slices("index_add", add, input, dim, index, scaled)


def index_copy(input: Operand, dim: int, index: Operand, source: Operand) -> Tensor:
    """Return `input` with slices written at `index`; the arguments are those of `index_add`.

    Notes
    -----
    Of slices written to one place the last one stays. Derivative: 1 for what is in the result, 0
    for what was overwritten.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.index_copy(cr.zeros(3), 0, cr.tensor([2, 0]), cr.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    return _slices("index_copy", write, input, dim, index, source)


def index_fill(input: Operand, dim: int, index: Operand, value: Operand) -> Tensor:
    """Return `input` with a number written to the slices at `index` along a dimension.

    Parameters
    ----------
    input, dim, index
        As for `index_add`.
    value : number or 0-d Tensor
        What to write.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    ShapeError
        If `value` has dimensions.

    Notes
    -----
    Derivative: 1 for what is in the result; all places that hold `value` add up.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.index_fill(cr.zeros(3), 0, cr.tensor([2, 0]), 7)
    tensor([7., 0., 7.])
    """
    input = tensor_of(input)
    number = alike("index_fill", input, value)
    if number.ndim:
        raise ShapeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{number.ndim} dimension(s): index_copy takes slices"
        )
    return _slices("index_fill", write, input, dim, index, number)


def index_reduce(
    input: Operand,
    dim: int,
    index: Operand,
    source: Operand,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Return `input` with slices combined into it at `index`.

    The first arguments are those of `index_add`, the others those of `scatter_reduce`.

    Notes
    -----
    Derivative: as for `scatter_reduce`.

    Examples
    --------
    >>> import chainrule as cr
    >>> source = cr.tensor([1.0, 2.0])
    >>> cr.index_reduce(cr.zeros(3), 0, cr.tensor([2, 2]), source, "amax")
    tensor([0., 0., 2.])
    """
    combine = way("index_reduce", reduce, include_self)
    return _slices("index_reduce", combine, input, dim, index, source)


def _slices(
    operation: str,
    combine: Callable[[Tensor, Tensor, Any], Tensor],
    x: Operand,
    dim: int,
    index: Operand,
    source: Operand,
) -> Tensor:
    """Combine `x` with slices at an index along a dimension."""
    x, places = tensor_of(x), index_of(operation, index)._array
    source = alike(operation, x, source)
    if places.ndim > 1:
        raise ShapeError(
            f"{operation}(): Index is supposed to be a vector, but got dim: {places.ndim}"
        )
    number = one_dim(dim, x.ndim)
    places = places.reshape(-1).astype(np.intp)
    if x.ndim == 0:
        row = RECORDERS["reshape"](x, shape=(1,))
        source = source if source.ndim else RECORDERS["reshape"](source, shape=(1,))
        return reshaped(_slices(operation, combine, row, 0, places, source), ())
    wanted = (*x.shape[:number], len(places), *x.shape[number + 1 :])
    if operation == "index_fill":
        source = broadcast_to(source, wanted)
    if source.shape != wanted:
        raise ShapeError(
            f"{operation}(): Number of indices ({len(places)}) should be equal to source.size(dim) "
            f"and the source must match the shape of the input elsewhere: expected {list(wanted)}, "
            f"got {list(source.shape)}"
        )
    with indexing():
        return combine(x, source, (*(slice(None),) * number, places))
