"""Creation of tensors from shapes: zeros, ones, constants, identity matrices."""

from __future__ import annotations

from operator import index
from typing import Any, Unpack

import numpy as np

from chainrule.arguments import (
    DeviceLike,
    DTypeLike,
    MemoryOptions,
    Operand,
    Sizes,
    beside,
    created,
    dtype_of,
    dtype_or_default,
    leaf,
    lengths_of,
    number_for,
    plain_number,
)
from chainrule.autograd.array_proxy import ArrayProxy, NumberProxy
from chainrule.autograd.tensor import Tensor
from chainrule.backend import namespace
from chainrule.creation.data import array_of
from chainrule.errors import ArgumentError

__all__ = [
    "zeros",
    "ones",
    "full",
    "empty",
    "eye",
    "zeros_like",
    "ones_like",
    "full_like",
    "empty_like",
]

Array = Any

# --- creation from shapes -------------------------------------------------------------------------


def zeros(
    *sizes: Any,
    size: Sizes | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return a tensor of zeros.

    Parameters
    ----------
    *sizes : int, or one sequence of ints
        The shape: ``zeros(2, 3)`` and ``zeros((2, 3))`` are the same. Also spelled `size`.
    dtype : dtype, optional
        The default dtype if left out.
    device : device or str, optional
        The CPU if left out.
    requires_grad : bool, default False
        Record operations on the tensor.

    Returns
    -------
    Tensor, shape `sizes`

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    shape, kind = lengths_of(sizes, size), dtype_or_default(dtype)
    return leaf(created("zeros", shape, kind, shape, kind), device, requires_grad, memory)


def ones(
    *sizes: Any,
    size: Sizes | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return a tensor of ones; the arguments are those of `zeros`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ones(2)
    tensor([1., 1.])
    """
    shape, kind = lengths_of(sizes, size), dtype_or_default(dtype)
    return leaf(created("ones", shape, kind, shape, kind), device, requires_grad, memory)


def empty(
    *sizes: Any,
    size: Sizes | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return a tensor of uninitialised memory.

    The arguments are those of `zeros`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.empty(2, 0).shape
    (2, 0)
    """
    shape, kind = lengths_of(sizes, size), dtype_or_default(dtype)
    return leaf(created("empty", shape, kind, shape, kind), device, requires_grad, memory)


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return a tensor with the same value everywhere.

    Parameters
    ----------
    size : int or sequence of ints
        The shape.
    fill_value : number
        The value.
    dtype : dtype, optional
        If left out: the default dtype for a float, int64 for an int, bool for a bool.
    device : device or str, optional
        The CPU if left out.
    requires_grad : bool, default False
        Record operations on the tensor.

    Returns
    -------
    Tensor, shape `sizes`

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.full((2,), 3.5)
    tensor([3.5000, 3.5000])
    >>> cr.full((2,), 3)
    tensor([3, 3])
    """
    value = array_of(fill_value, dtype)
    shape = lengths_of((size,))
    if isinstance(value, ArrayProxy):
        return leaf(_spread(value, shape), device, requires_grad, memory)
    return leaf(created("full", shape, value.dtype, shape, value), device, requires_grad, memory)


def _spread(value: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of a shape whose elements are all that of an array of shape ()."""
    return namespace(value).broadcast_to(value, shape).copy()


def eye(
    n: int,
    m: int | None = None,
    *,
    k: int = 0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n : int
        The number of rows.
    m : int, optional
        The number of columns: as many as rows if left out.
    k : int, default 0
        Number of the diagonal: 0 is the main one, 1 the one above.
    dtype, device, requires_grad
        As for `zeros`.

    Returns
    -------
    Tensor, shape (n, m)

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    rows, columns = index(n), index(n if m is None else m)
    for name, count in (("n", rows), ("m", columns)):
        if count < 0:
            raise ArgumentError(f"eye: {name} must be greater or equal to 0, got {count}")
    kind = dtype_or_default(dtype)
    made = created("eye", (rows, columns), kind, rows, columns, k, kind)
    return leaf(made, device, requires_grad, memory)


# --- creation like another tensor -----------------------------------------------------------------


def zeros_like(
    input: Operand,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return zeros of the shape, dtype and device of `input`.

    Parameters
    ----------
    input : Tensor or array
        The tensor whose shape, dtype and device are taken; its values and history are not used.
    dtype, device : optional
        Another dtype or device than that of `input`.
    requires_grad : bool, default False
        Record operations on the new tensor.

    Returns
    -------
    Tensor, shape of `input`

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros_like(cr.tensor([1, 2]))
    tensor([0, 0])
    """
    array = input._array if isinstance(input, Tensor) else np.asarray(input)
    target = dtype_of(array.dtype if dtype is None else dtype)
    made = namespace(array).zeros(array.shape, dtype=target)
    return leaf(made, beside(made, device), requires_grad, memory)


def ones_like(
    input: Operand,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return ones of the shape, dtype and device of `input`; the arguments are `zeros_like`'s.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ones_like(cr.zeros(2))
    tensor([1., 1.])
    """
    return full_like(input, 1, dtype=dtype, device=device, requires_grad=requires_grad, **memory)


def full_like(
    input: Operand,
    fill_value: Any,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return `fill_value` everywhere; the other arguments are those of `zeros_like`.

    Raises
    ------
    DTypeError
        If the value is complex and the dtype is not.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.full_like(cr.zeros(2), 7)
    tensor([7., 7.])
    """
    array = input._array if isinstance(input, Tensor) else np.asarray(input)
    target = dtype_of(array.dtype if dtype is None else dtype)
    value = number_for("full_like", plain_number(fill_value), target)
    if isinstance(value, NumberProxy):
        made = _spread(value.as_array(target), array.shape)
    else:
        made = namespace(array).full(array.shape, value, dtype=target)
    return leaf(made, beside(made, device), requires_grad, memory)


def empty_like(
    input: Operand,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return uninitialised memory like `input`; the arguments are those of `zeros_like`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.empty_like(cr.zeros(2, 3)).shape
    (2, 3)
    """
    array = input._array if isinstance(input, Tensor) else np.asarray(input)
    target = dtype_of(array.dtype if dtype is None else dtype)
    made = namespace(array).empty(array.shape, dtype=target)
    return leaf(made, beside(made, device), requires_grad, memory)
