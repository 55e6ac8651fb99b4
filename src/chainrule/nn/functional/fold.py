"""Rearrangement of images: windows as columns, channels as pixels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.kernels.resampling import Taps
from chainrule.nn.functional.pooling import Sizes, per_dim, with_batch_axis, without_batch_axis
from chainrule.primitives import resampling, shaping

__all__ = ["unfold", "fold", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle"]

IntOrInts = int | Sequence[int]


def unfold(
    input: Operand,
    kernel_size: IntOrInts,
    dilation: IntOrInts = 1,
    padding: IntOrInts = 0,
    stride: IntOrInts = 1,
) -> Tensor:
    """Return all sliding windows of images as columns.

    Parameters
    ----------
    input : Tensor, shape (n, c, h, w) or (c, h, w)
        Images.
    kernel_size : int or two ints
        The size of a window.
    dilation, padding, stride : int or two ints
        As for `conv2d`.

    Returns
    -------
    Tensor, shape (n, c kh kw, l) or (c kh kw, l)
        A column for each of l windows, row by row.

    Raises
    ------
    ShapeError
        If the input is not a batch of images, or is smaller than a window.
    ArgumentError
        If a setting is out of range.

    Notes
    -----
    Linear; its derivative is `fold` of the gradient.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.unfold(cr.arange(6.0).reshape(1, 2, 3), 2)
    tensor([[0., 1.],
            [1., 2.],
            [3., 4.],
            [4., 5.]])
    """
    x, single = with_batch_axis("unfold", input, 2)
    kernel, windows = _windows("unfold", x.shape[2:], kernel_size, dilation, padding, stride)
    for i, (n, window) in enumerate(zip(x.shape[2:], windows, strict=True)):
        x = resampling.resample.apply(x, taps=_unfolding(n, *window), axis=2 + i)
    n, c, counts = *x.shape[:2], [window[-1] for window in windows]
    x = ops.reshape(x, (n, c, kernel[0], counts[0], kernel[1], counts[1]))
    x = shaping.permute_dims.apply(x, axes=(0, 1, 2, 4, 3, 5))
    return without_batch_axis(
        ops.reshape(x, (n, c * kernel[0] * kernel[1], counts[0] * counts[1])), single
    )


def fold(
    input: Operand,
    output_size: IntOrInts,
    kernel_size: IntOrInts,
    dilation: IntOrInts = 1,
    padding: IntOrInts = 0,
    stride: IntOrInts = 1,
) -> Tensor:
    """Return images that are the sum of columns, each at the position of its window.

    Parameters
    ----------
    input : Tensor, shape (n, c kh kw, l) or (c kh kw, l)
        Columns, as `unfold` makes them.
    output_size : int or two ints
        The size of the images.
    kernel_size, dilation, padding, stride : int or two ints
        As for `unfold`.

    Returns
    -------
    Tensor, shape (n, c, h, w) or (c, h, w)

    Raises
    ------
    ShapeError
        If the shape isn't that of `unfold` of such images.

    Notes
    -----
    Linear; its derivative is `unfold` of the gradient.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.fold(cr.ones(4, 2), (2, 3), 2)
    tensor([[[1., 2., 1.],
             [1., 2., 1.]]])
    """
    x, single = with_batch_axis("fold", input, 1)
    size = per_dim("fold", "output_size", output_size, 2)
    kernel, windows = _windows("fold", size, kernel_size, dilation, padding, stride)
    counts = [window[-1] for window in windows]
    area = kernel[0] * kernel[1]
    if x.shape[1] % area:
        raise ShapeError(
            "fold: Expected size of input's dimension 1 to be divisible by the product of "
            f"kernel_size, but got input.size(1)={x.shape[1]} and kernel_size={kernel}"
        )
    if x.shape[2] != counts[0] * counts[1]:
        raise ShapeError(
            f"fold: Given output_size={size}, kernel_size={kernel}, expected size of input's "
            f"dimension 2 to match the calculated number of sliding blocks {counts[0]} * "
            f"{counts[1]} = {counts[0] * counts[1]}, but got input.size(2)={x.shape[2]}"
        )
    n, c = x.shape[0], x.shape[1] // area
    x = ops.reshape(x, (n, c, kernel[0], kernel[1], counts[0], counts[1]))
    x = shaping.permute_dims.apply(x, axes=(0, 1, 2, 4, 3, 5))
    x = ops.reshape(x, (n, c, kernel[0] * counts[0], kernel[1] * counts[1]))
    for i, (length, window) in reversed(list(enumerate(zip(size, windows, strict=True)))):
        x = resampling.resample.apply(x, taps=_unfolding(length, *window).transposed, axis=2 + i)
    return without_batch_axis(x, single)


def _windows(name: str, size: Sizes, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """Return the kernel's size, and for each dimension the settings and the count of windows."""
    kernels = per_dim(name, "kernel_size", kernel, 2)
    dilations = per_dim(name, "dilation", dilation, 2)
    pads = per_dim(name, "padding", padding, 2, 0)
    strides = per_dim(name, "stride", stride, 2)
    windows = []
    for n, k, d, p, s in zip(size, kernels, dilations, pads, strides, strict=True):
        count = (n + 2 * p - d * (k - 1) - 1) // s + 1
        if count < 1:
            raise ShapeError(
                f"{name}: Given images of size {list(size)}, kernel_size={kernels}, dilation="
                f"{dilations}, padding={pads}, stride={strides}, calculated shape of the array of "
                "sliding blocks has a size of 0 or less, which must be positive"
            )
        windows.append((k, d, p, s, count))
    return kernels, windows


@lru_cache(maxsize=256)
def _unfolding(n: int, kernel: int, dilation: int, padding: int, stride: int, count: int) -> Taps:
    """Return the map from a dimension of n elements to its windows, position by position."""
    layers = []
    for j in range(kernel):
        positions = np.arange(count) * stride + j * dilation - padding
        inside = np.flatnonzero((positions >= 0) & (positions < n))
        layers.append((j * count + inside, positions[inside], None))
    return Taps(kernel * count, n, layers)


# --- rearrangement of channels and pixels ---------------------------------------------------------


def pixel_shuffle(input: Operand, upscale_factor: int) -> Tensor:
    """Return larger images with fewer channels: r² channels become squares of r × r pixels.

    Parameters
    ----------
    input : Tensor, shape (..., c r², h, w)
        Images.
    upscale_factor : int
        r.

    Returns
    -------
    Tensor, shape (..., c, h r, w r)

    Raises
    ------
    ShapeError
        If there are less than three dimensions, or r² doesn't divide the channels.
    ArgumentError
        If r is not positive.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.pixel_shuffle(cr.arange(4.0).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    x, r = _images("pixel_shuffle", input, upscale_factor, "upscale_factor")
    *lead, channels, h, w = x.shape
    if channels % (r * r):
        raise ShapeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    x = ops.reshape(x, (*lead, channels // (r * r), r, r, h, w))
    x = shaping.permute_dims.apply(x, axes=_permute_last(x.ndim, (0, 3, 1, 4, 2)))
    return _contiguous_reshape(x, (*lead, channels // (r * r), h * r, w * r))


def pixel_unshuffle(input: Operand, downscale_factor: int) -> Tensor:
    """Return smaller images with more channels: squares of r × r pixels become r² channels.

    Parameters
    ----------
    input : Tensor, shape (..., c, h r, w r)
        Images.
    downscale_factor : int
        r.

    Returns
    -------
    Tensor, shape (..., c r², h, w)

    Raises
    ------
    ShapeError
        If there are less than three dimensions, or r doesn't divide height and width.
    ArgumentError
        If r is not positive.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.pixel_unshuffle(cr.arange(4.0).reshape(1, 2, 2), 2).flatten()
    tensor([0., 1., 2., 3.])
    """
    x, r = _images("pixel_unshuffle", input, downscale_factor, "downscale_factor")
    *lead, channels, h, w = x.shape
    if h % r or w % r:
        raise ShapeError(
            "pixel_unshuffle expects height and width to be divisible by downscale_factor, but "
            f"input.size(-2)={h} and input.size(-1)={w} are not both divisible by {r}"
        )
    x = ops.reshape(x, (*lead, channels, h // r, r, w // r, r))
    x = shaping.permute_dims.apply(x, axes=_permute_last(x.ndim, (0, 2, 4, 1, 3)))
    return _contiguous_reshape(x, (*lead, channels * r * r, h // r, w // r))


def channel_shuffle(input: Operand, groups: int) -> Tensor:
    """Return images with interleaved groups of channels: the first of each group, then the second.

    Parameters
    ----------
    input : Tensor, shape (n, c, ...)
        Images.
    groups : int
        Number of groups of channels.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    ShapeError
        If there are less than three dimensions, or `groups` doesn't divide the channels.
    ArgumentError
        If `groups` is not positive.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.channel_shuffle(cr.arange(6.0).reshape(1, 6, 1), 2).flatten()
    tensor([0., 3., 1., 4., 2., 5.])
    """
    x, count = _images("channel_shuffle", input, groups, "groups")
    n, channels, *size = x.shape
    if channels % count:
        raise ShapeError(
            f"channel_shuffle: number of channels must be divisible by groups. Got {channels} "
            f"channels and {count} groups."
        )
    x = ops.reshape(x, (n, count, channels // count, *size))
    x = shaping.permute_dims.apply(x, axes=(0, 2, 1, *range(3, x.ndim)))
    return _contiguous_reshape(x, (n, channels, *size))


def _images(name: str, input: Operand, factor: int, argument: str) -> tuple[Tensor, int]:
    x = tensor_of(input)
    if x.ndim < 3:
        raise ShapeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {x.ndim} "
            f"dimension(s): shape {list(x.shape)}"
        )
    if factor < 1:
        raise ArgumentError(f"{name} expects a positive {argument}, but got {factor}")
    return x, factor


def _contiguous_reshape(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a reshaped copy, even where a view is possible."""
    result: Tensor = shaping.reshape_copy.apply(x, shape=shape)
    return result


def _permute_last(ndim: int, order: Sizes) -> Sizes:
    """Return axes with the last ones permuted."""
    lead = ndim - len(order)
    return (*range(lead), *[lead + i for i in order])
