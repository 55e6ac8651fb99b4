"""What the functions of sliding windows ask of their arguments."""

from __future__ import annotations

from operator import index
from typing import Any

from chainrule import ops
from chainrule.arguments import Operand, floating
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ShapeError

Sizes = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


def per_dim(name: str, argument: str, value: Any, rank: int, least: int = 1) -> Sizes:
    """Return an argument that is one int, or one for each spatial dimension."""
    try:
        listed = tuple(map(index, value)) if hasattr(value, "__iter__") else (index(value),)
    except TypeError:
        raise TypeError(
            f"{name}: {argument} must be an int, or {rank} of them, not {value!r}"
        ) from None
    if len(listed) == 1:
        listed *= rank
    if len(listed) != rank:
        raise ArgumentError(
            f"{name}: {argument} must be an int, or a tuple of {rank} ints, one for each spatial "
            f"dimension, but got {value!r}"
        )
    if min(listed) < least:
        wrong = "non-positive" if least else "negative"
        raise ArgumentError(f"{name}: {wrong} {argument} is not supported: got {value!r}")
    return listed


def batched(name: str, input: Operand, rank: int) -> tuple[Tensor, bool]:
    """Return floats of the shape (n, c, …), and whether the samples' dimension was missing."""
    x = floating(input)
    if x.ndim == rank + 1:
        return ops.unsqueeze(x, 0), True
    if x.ndim != rank + 2:
        raise ShapeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got "
            f"input of size: {list(x.shape)}"
        )
    return x, False


def unbatched(x: Tensor, single: bool) -> Tensor:
    """Return the result for one sample without the dimension that `batched` added."""
    return ops.squeeze(x, 0) if single else x


def window_of(
    name: str, rank: int, kernel_size: Any, stride: Any, padding: Any
) -> tuple[Sizes, Sizes, Sizes]:
    """Return size, stride and padding of windows in each dimension; the stride may be left out."""
    kernel = per_dim(name, "kernel_size", kernel_size, rank)
    absent = stride is None or (hasattr(stride, "__len__") and not len(stride))
    strides = kernel if absent else per_dim(name, "stride", stride, rank)
    return kernel, strides, per_dim(name, "padding", padding, rank, 0)


def layout_of(
    name: str,
    size: Sizes,
    kernel: Sizes,
    strides: Sizes,
    pads: Sizes,
    steps: Sizes,
    ceil_mode: bool,
) -> tuple[Pairs, Sizes]:
    """Return what windows need before and after the images, and their count in each dimension."""
    around, counts = [], []
    for n, k, s, p, d in zip(size, kernel, strides, pads, steps, strict=True):
        extent = d * (k - 1) + 1
        if p > extent // 2:
            raise ArgumentError(
                f"{name}: pad should be at most half of effective kernel size, but got pad={p}, "
                f"kernel_size={k} and dilation={d}"
            )
        reach = n + 2 * p - extent
        count = -(-reach // s) + 1 if ceil_mode else reach // s + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1  # the last window begins inside the image or its padding before
        if count < 1:
            raise ShapeError(
                f"{name}: Given input size per channel: {list(size)}. Calculated output size is "
                f"too small: the kernel {list(kernel)} doesn't fit in"
            )
        around.append((p, (count - 1) * s + extent - n - p))
        counts.append(count)
    return tuple(around), tuple(counts)
