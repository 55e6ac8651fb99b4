"""Uninitialised tensors in another order of memory."""

from __future__ import annotations

from typing import Any, Unpack

from chainrule.arguments import (
    DeviceLike,
    DTypeLike,
    MemoryOptions,
    Sizes,
    created,
    dtype_or_default,
    leaf,
    sizes_of,
)
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError

__all__ = ["empty_permuted", "empty_strided", "new_empty_strided"]


def empty_permuted(
    size: Sizes,
    physical_layout: Sizes,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return a tensor of uninitialised memory, whose dimensions lie in memory in another order.

    Parameters
    ----------
    size : sequence of ints
        The shape.
    physical_layout : sequence of ints
        The dimensions, from the one with the largest step in memory to the smallest.
    dtype, device, requires_grad
        As for `zeros`.

    Returns
    -------
    Tensor, shape `size`

    Raises
    ------
    ArgumentError
        If `physical_layout` is no permutation of the dimensions.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    shape, order = sizes_of((size,)), sizes_of((physical_layout,))
    if sorted(order) != list(range(len(shape))):
        raise ArgumentError(
            f"empty_permuted: physical_layout {list(order)} is no permutation of the dimensions of "
            f"the size {list(shape)}"
        )
    kind = dtype_or_default(dtype)
    stored = tuple([shape[axis] for axis in order])
    array = created("empty", stored, kind, stored, kind)
    back = [order.index(axis) for axis in range(len(shape))]
    return leaf(array.transpose(back), device, requires_grad, memory)


def empty_strided(
    size: Sizes,
    stride: Sizes,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return a tensor of uninitialised memory with given steps along its dimensions.

    Parameters
    ----------
    size : sequence of ints
        The shape.
    stride : sequence of ints
        The step in memory along each dimension, in elements.
    dtype, device, requires_grad
        As for `zeros`.

    Returns
    -------
    Tensor, shape `size`

    Raises
    ------
    ArgumentError
        If elements would share memory or lie apart: `as_strided` makes such parts of a tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    shape, steps = sizes_of((size,)), sizes_of((stride,))
    if len(steps) != len(shape):
        raise ArgumentError(
            f"empty_strided: mismatch in length of strides and shape: {list(steps)} and "
            f"{list(shape)}"
        )
    order = sorted(range(len(shape)), key=lambda axis: (-steps[axis], -shape[axis]))
    step = 1
    dense = True
    for axis in reversed(order):
        dense &= shape[axis] < 2 or steps[axis] == step
        step *= shape[axis]
    if step and not dense:
        raise ArgumentError(
            f"empty_strided: elements of the size {list(shape)} with the strides {list(steps)} "
            "share memory or lie apart: take as_strided of a tensor"
        )
    return empty_permuted(
        shape, order, dtype=dtype, device=device, requires_grad=requires_grad, **memory
    )


def new_empty_strided(
    x: Tensor,
    size: Sizes,
    stride: Sizes,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return `empty_strided`, by default in the dtype and on the device of a tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ones(2, dtype=cr.int64).new_empty_strided((2, 3), (3, 1)).dtype
    dtype('int64')
    """
    settings: Any = {"dtype": dtype or x.dtype, "device": device or x.device}
    return empty_strided(size, stride, requires_grad=requires_grad, **settings, **memory)
