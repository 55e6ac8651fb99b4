"""Elements written or added at any index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS, Operand, tensor_of
from chainrule.autograd.error_messages import broadcast_text
from chainrule.autograd.tensor import Tensor
from chainrule.backend import check_known, is_array, is_known
from chainrule.errors import DTypeError, ShapeError
from chainrule.ops.combining import add, alike, write
from chainrule.ops.index_errors import indexing
from chainrule.ops.indexing import as_key, index_of
from chainrule.ops.reshape import broadcast_to
from chainrule.ops.where import where
from chainrule.ops.wrappers import reshaped

__all__ = ["index_put", "put", "masked_scatter"]


def index_put(
    input: Operand, indices: Sequence[Operand], values: Operand, accumulate: bool = False
) -> Tensor:
    """Return `input` with values at ``x[indices]``.

    Parameters
    ----------
    input : Tensor
        What to write to a copy of.
    indices : sequence of Tensors of integers or bools
        One for each of the first dimensions; None means all of one.
    values : Tensor
        Of the dtype of `input`; the shape broadcasts to that of ``x[indices]``.
    accumulate : bool, default False
        Add instead of overwriting.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    OutOfBoundsError
        If an index is out of range.
    DTypeError
        If the dtypes differ.

    Notes
    -----
    Derivative: as for `scatter`, or as for `scatter_add` if it accumulates.

    Examples
    --------
    >>> import chainrule as cr
    >>> index = cr.tensor([0, 0])
    >>> cr.index_put(cr.zeros(2), (index,), cr.tensor([1.0, 2.0]), accumulate=True)
    tensor([3., 0.])
    """
    input = tensor_of(input)
    value = alike("index_put", input, values)
    key = as_key(tuple([slice(None) if i is None else i for i in indices]), input._array)
    return _put(input, value, key, accumulate)


def _put(x: Tensor, value: Tensor, key: Any, accumulate: bool) -> Tensor:
    with indexing():
        shape = np.broadcast_to(np.empty((), bool), x.shape)[_stand_in(key)].shape
        if broadcast_text([shape, value.shape]) or np.broadcast_shapes(shape, value.shape) != shape:
            raise ShapeError(
                f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to "
                f"indexing result of shape {list(shape)}"
            )
        value = value if value.shape == shape else broadcast_to(value, shape)
        return (add if accumulate else write)(x, value, key)


def _stand_in(key: Any) -> Any:
    """Return an index of the same shape, for those that are not known."""
    if key.__class__ is tuple:
        return tuple(map(_stand_in, key))
    if not is_array(key) or is_known(key):
        return key
    if key.dtype.kind == "b":
        check_known(key, "index_put", "choose with where(mask, value, x)")
    return np.zeros(key.shape, np.intp)


def put(input: Operand, index: Operand, source: Operand, accumulate: bool = False) -> Tensor:
    """Return `input` with the elements of `source` at `index` in the flattened tensor.

    Parameters
    ----------
    input : Tensor
        What to write to a copy of.
    index : Tensor of integers
        Where.
    source : Tensor
        Of as many elements as `index`, and of the dtype of `input`.
    accumulate : bool, default False
        Add instead of overwriting.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    ShapeError
        If the numbers of elements differ.

    Notes
    -----
    Derivative: as for `scatter`, or as for `scatter_add` if it accumulates.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.put(cr.zeros(2, 2), cr.tensor([3, 1]), cr.tensor([5.0, 6.0]))
    tensor([[0., 6.],
            [0., 5.]])
    """
    input, places = tensor_of(input), index_of("put", index)._array
    source = alike("put", input, source)
    if source.numel() != places.size:
        raise ShapeError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.numel()}, index.numel() = {places.size}"
        )
    row, values = [RECORDERS["reshape_copy"](t, shape=(t.numel(),)) for t in (input, source)]
    return reshaped(
        _put(row, values, (places.reshape(-1).astype(np.intp),), accumulate), input.shape
    )


def masked_scatter(input: Operand, mask: Operand, source: Operand) -> Tensor:
    """Return `input` with elements of `source`, in their order, written where `mask` is true.

    Parameters
    ----------
    input : Tensor
        What to write to a copy of.
    mask : Tensor of bools
        Its shape broadcasts with that of `input`.
    source : Tensor
        Of the dtype of `input`, and of at least as many elements as are to be written.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If `mask` is not of bools.
    ShapeError
        If `source` has too few elements.

    Notes
    -----
    Derivative: 1 for what is in the result, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> mask = cr.tensor([False, True, True])
    >>> cr.masked_scatter(cr.zeros(3), mask, cr.tensor([1.0, 2.0, 3.0]))
    tensor([0., 1., 2.])
    """
    input, mask = tensor_of(input), tensor_of(mask)
    source = alike("masked_scatter", input, source)
    if mask.dtype.kind != "b":
        raise DTypeError(f"masked_scatter: expected BoolTensor for mask, got {mask.dtype}")
    shape = np.broadcast_shapes(input.shape, mask.shape)
    if not is_known(mask._array):
        return _chosen(input, broadcast_to(mask, shape), source)
    where = np.array(np.broadcast_to(mask._array, shape))
    count = int(np.count_nonzero(where))
    if source.numel() < count:
        raise ShapeError(
            f"masked_scatter: expected source to have at least as many elements ({source.numel()}) "
            f"as there are true ones in mask ({count})"
        )
    values = RECORDERS["reshape_copy"](source, shape=(source.numel(),))[:count]
    return write(input if input.shape == shape else broadcast_to(input, shape), values, (where,))


def _chosen(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Do `masked_scatter` without knowing how many elements of `source` it takes."""
    number = np.cumsum(mask._array.reshape(-1)).reshape(mask.shape) - 1
    places = np.clip(number, 0, max(source.numel() - 1, 0))
    values = RECORDERS["reshape_copy"](source, shape=(source.numel(),))
    return where(mask, RECORDERS["index"](values, key=places), x)
