"""Creation of tensors from others, index tables, and Vandermonde matrices."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from chainrule.arguments import (
    DeviceLike,
    DTypeLike,
    MemoryOptions,
    Operand,
    Sizes,
    cast,
    constant,
    dtype_or_default,
    leaf,
    tensor_of,
)
from chainrule.autograd.tensor import Tensor
from chainrule.creation.data import asarray, tensor
from chainrule.creation.filled import empty, full, ones, zeros
from chainrule.errors import ArgumentError, ShapeError
from chainrule.operation import operation
from chainrule.primitives import elementwise, shaping

__all__ = ["as_tensor", "scalar_tensor", "tril_indices", "triu_indices", "vander"]


def as_tensor(data: Any, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Return `data` as a tensor, without copying where that is possible.

    The arguments are those of `asarray`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.as_tensor([1.0, 2.0])
    tensor([1., 2.])
    """
    return asarray(data, dtype=dtype, device=device)


def scalar_tensor(
    value: complex,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return a 0-d tensor of a number, in the default dtype even for an integer.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.scalar_tensor(3)
    tensor(3.)
    """
    kind = dtype_or_default(dtype)
    return full((), value, dtype=kind, device=device, requires_grad=requires_grad, **memory)


def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DTypeLike = "int64",
    device: DeviceLike = None,
) -> Tensor:
    """Return the indices of a matrix's elements on and below a diagonal, row by row.

    Parameters
    ----------
    row, col : int
        The shape of the matrix.
    offset : int, default 0
        Number of the diagonal: 0 is the main one, positive numbers are above it.
    dtype, device : optional
        int64 on the CPU if left out.

    Returns
    -------
    Tensor, shape (2, number of elements)
        Rows and columns.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return leaf(np.stack(np.tril_indices(row, offset, col)).astype(dtype), device)


def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DTypeLike = "int64",
    device: DeviceLike = None,
) -> Tensor:
    """Return the indices of a matrix's elements on and above a diagonal; see `tril_indices`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return leaf(np.stack(np.triu_indices(row, offset, col)).astype(dtype), device)


def vander(input: Operand, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the matrix whose columns are powers of a vector: a Vandermonde matrix.

    Parameters
    ----------
    input : Tensor, 1-d
        The base of the powers.
    N : int, optional
        Number of columns: as many as rows if left out.
    increasing : bool, default False
        Powers from 0 on, instead of down to 0.

    Returns
    -------
    Tensor, shape (length of `input`, N)
        int64 for integers and bools.

    Raises
    ------
    ShapeError
        If `input` is no vector.
    ArgumentError
        If `N` is negative.

    Notes
    -----
    Derivative: n xⁿ⁻¹ of xⁿ.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.vander(cr.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    input = tensor_of(input)
    if input.ndim != 1:
        raise ShapeError(f"x must be a one-dimensional tensor, got {input.ndim} dimensions")
    count = input.shape[0] if N is None else N
    if count < 0:
        raise ArgumentError(f"N must be non-negative, got {count}")
    input = cast(input, "int64") if input.dtype.kind in "iub" else input
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    column = shaping.reshape.apply(input, shape=(input.shape[0], 1))
    return elementwise.pow.apply(column, constant(powers.astype(input.dtype), input))


# --- methods of tensors ---------------------------------------------------------------------------


@operation()
def new_zeros(
    x: Tensor,
    *sizes: Any,
    size: Sizes | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return zeros of a shape, by default in the dtype and on the device of this tensor."""
    target = device or x.device
    return zeros(
        *sizes,
        size=size,
        dtype=dtype or x.dtype,
        device=target,
        requires_grad=requires_grad,
        **memory,
    )


@operation()
def new_ones(
    x: Tensor,
    *sizes: Any,
    size: Sizes | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return ones of a shape, by default in the dtype and on the device of this tensor."""
    target = device or x.device
    return ones(
        *sizes,
        size=size,
        dtype=dtype or x.dtype,
        device=target,
        requires_grad=requires_grad,
        **memory,
    )


@operation()
def new_empty(
    x: Tensor,
    *sizes: Any,
    size: Sizes | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return uninitialised memory, by default in the dtype and on the device of this tensor."""
    target = device or x.device
    return empty(
        *sizes,
        size=size,
        dtype=dtype or x.dtype,
        device=target,
        requires_grad=requires_grad,
        **memory,
    )


@operation()
def new_full(
    x: Tensor,
    size: Sizes,
    fill_value: Any,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return a constant tensor, by default in the dtype and on the device of this tensor."""
    target = device or x.device
    return full(
        size,
        fill_value,
        dtype=dtype or x.dtype,
        device=target,
        requires_grad=requires_grad,
        **memory,
    )


@operation()
def new_tensor(
    x: Tensor,
    data: Any,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return a copy of `data`, by default in the dtype and on the device of this tensor."""
    return tensor(
        data,
        dtype=dtype or x.dtype,
        device=device or x.device,
        requires_grad=requires_grad,
        **memory,
    )
