"""Convolutions and correlations, by sums of products or through spectra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule import fft, ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.backend.extensions import SCIPY, LazyModule
from chainrule.errors import ArgumentError, ShapeError
from chainrule.interop.manipulation import pad
from chainrule.primitives import convolution
from chainrule.scipy.operands import inexact
from chainrule.scipy.signal.arguments import TABLE

scipy_fft = LazyModule("scipy.fft", SCIPY)

_MODES = ("full", "valid", "same")
_BOUNDARIES = {"symm": "symmetric", "symmetric": "symmetric", "wrap": "wrap", "circular": "wrap"}
_FILL = ("fill", "pad")


def direct(x: Tensor, kernel: Tensor, parts: Sequence[tuple[int, int]], rank: int) -> Tensor:
    """Return parts of the convolution along the last `rank` axes of `x`, by sums of products.

    A part is the first element of the full convolution and the number of elements.
    """
    sizes = x.shape[x.ndim - rank :]
    pads = []
    for n, k, (start, size) in zip(sizes, kernel.shape, parts, strict=True):
        before = k - 1 - start
        pads.append((before, size + start - n))
    image = ops.reshape(x, (-1, 1, *sizes))
    weights = ops.reshape(ops.flip(kernel, tuple(range(rank))), (1, 1, *kernel.shape))
    window = ((1,) * rank, tuple(pads), (1,) * rank, 1)
    found: Tensor = convolution.convolve.apply(image, weights, window=window)
    return ops.reshape(found, (*x.shape[: x.ndim - rank], *[size for _, size in parts]))


def _by_spectrum(
    x: Tensor, kernel: Tensor, parts: Sequence[tuple[int, int]], axes: tuple[int, ...]
) -> Tensor:
    """Return parts of the convolution along axes, as the product of the spectra."""
    full = [x.shape[axis] + kernel.shape[axis] - 1 for axis in axes]
    is_real = not x.is_complex()
    sizes = [scipy_fft.next_fast_len(n, is_real) for n in full]
    forward, inverse = (fft.rfftn, fft.irfftn) if is_real else (fft.fftn, fft.ifftn)
    found = inverse(forward(x, sizes, axes) * forward(kernel, sizes, axes), sizes, axes)
    kept = [slice(None)] * found.ndim
    for axis, (start, size) in zip(axes, parts, strict=True):
        kept[axis] = slice(start, start + size)
    return cast(found[tuple(kept)], x.dtype)


# --- arguments ------------------------------------------------------------------------------------


def _pair(name: str, in1: Any, in2: Any) -> tuple[Tensor, Tensor]:
    x, kernel = inexact(name, in1, in2)
    if x.ndim != kernel.ndim:
        raise ShapeError(
            f"{name}: in1 and in2 should have the same dimensionality, got the shapes "
            f"{list(x.shape)} and {list(kernel.shape)}"
        )
    if 0 in (*x.shape, *kernel.shape):
        raise ShapeError(
            f"{name}: expected arrays that are not empty, got the shapes {list(x.shape)} and "
            f"{list(kernel.shape)}"
        )
    return x, kernel


def _parts(
    name: str, mode: str, sizes: Sequence[int], kernel: Sequence[int]
) -> list[tuple[int, int]]:
    """Return the first element and the number of elements of a mode's part, along each axis."""
    if mode not in _MODES:
        raise ArgumentError(f"{name}: mode is 'valid', 'same' or 'full', got {mode!r}")
    if mode == "full":
        return [(0, n + k - 1) for n, k in zip(sizes, kernel, strict=True)]
    if mode == "same":
        return [((k - 1) // 2, n) for n, k in zip(sizes, kernel, strict=True)]
    pairs = [*zip(sizes, kernel, strict=True)]
    if not (all(n >= k for n, k in pairs) or all(n <= k for n, k in pairs)):
        raise ArgumentError(
            f"{name}: for 'valid' mode, one must be at least as large as the other in every "
            f"dimension, got the sizes {list(sizes)} and {list(kernel)}"
        )
    return [(min(n, k) - 1, abs(n - k) + 1) for n, k in pairs]


def _mirrored(x: Tensor) -> Tensor:
    return ops.conj(ops.flip(x, tuple(range(x.ndim))))


# --- along all axes -------------------------------------------------------------------------------


def _convolution(name: str, x: Tensor, kernel: Tensor, mode: str, method: str) -> Tensor:
    parts = _parts(name, mode, x.shape, kernel.shape)
    if method not in ("auto", "direct", "fft"):
        raise ArgumentError(f"{name}: method is 'auto', 'direct' or 'fft', got {method!r}")
    if not x.ndim:
        return x * kernel
    if method == "auto":
        method = TABLE.scipys.choose_conv_method(*map(_zeros_like, (x, kernel)), mode)
    rank = x.ndim
    if method == "fft" or rank > 3:
        return _by_spectrum(x, kernel, parts, tuple(range(rank)))
    if kernel.numel() > x.numel():
        x, kernel = kernel, x
    return direct(x, kernel, parts, rank)


def _zeros_like(x: Tensor) -> Any:
    """Return an array of one number in memory."""
    return np.broadcast_to(np.zeros((), x.dtype), tuple(x.shape))


@TABLE.function("convolve", "bilinear")
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Tensor:
    """Return the convolution along all axes, up to three of them by sums of products."""
    return _convolution("convolve", *_pair("convolve", in1, in2), mode, method)


@TABLE.function("correlate", "bilinear")
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Tensor:
    """Return the correlation with the conjugate of `in2`, along all axes."""
    x, kernel = _pair("correlate", in1, in2)
    return _convolution("correlate", x, _mirrored(kernel), mode, method)


def _with_axes(name: str) -> Any:
    def convolution_along(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Tensor:
        """Return the convolution along axes, through spectra; the others are broadcast."""
        x, kernel = _pair(name, in1, in2)
        if not x.ndim:
            return x * kernel
        given = range(x.ndim) if axes is None else np.atleast_1d(axes).tolist()
        if any(not -x.ndim <= axis < x.ndim for axis in given):
            raise ArgumentError(f"{name}: axes exceeds dimensionality of input, got {axes}")
        along = sorted(axis % x.ndim for axis in given)
        if len(set(along)) < len(along) or not along:
            raise ArgumentError(f"{name}: all axes must be unique, and one at least: got {axes}")
        for axis in set(range(x.ndim)) - set(along):
            sizes = {x.shape[axis], kernel.shape[axis]} - {1}
            if len(sizes) > 1:
                raise ShapeError(
                    f"{name}: incompatible shapes for in1 and in2: {list(x.shape)} and "
                    f"{list(kernel.shape)} along axis {axis}, which is not among the axes"
                )
        sizes_x, sizes_k = [[t.shape[axis] for axis in along] for t in (x, kernel)]
        return _by_spectrum(x, kernel, _parts(name, mode, sizes_x, sizes_k), tuple(along))

    convolution_along.__name__ = convolution_along.__qualname__ = name
    return TABLE.function(name, "bilinear")(convolution_along)


fftconvolve, oaconvolve = _with_axes("fftconvolve"), _with_axes("oaconvolve")


# --- of images ------------------------------------------------------------------------------------


def _of_images(
    name: str, in1: Any, in2: Any, mode: str, boundary: str, fillvalue: Any, is_correlation: bool
) -> Tensor:
    x, kernel = _pair(name, in1, in2)
    if x.ndim != 2:
        raise ShapeError(f"{name}: inputs must both be 2-D arrays, got {list(x.shape)}")
    if boundary not in (*_FILL, *_BOUNDARIES):
        raise ArgumentError(
            f"{name}: boundary is 'fill', 'circular', 'wrap', or 'symmetric', got {boundary!r}"
        )
    parts = _parts(name, mode, x.shape, kernel.shape)
    if mode == "same" and is_correlation:  # its centre is that of the kernel before it is turned
        parts = [(k // 2, n) for n, k in zip(x.shape, kernel.shape, strict=True)]
    if is_correlation:
        kernel = _mirrored(kernel)
    if mode == "valid":
        return (
            direct(x, kernel, parts, 2)
            if x.numel() >= kernel.numel()
            else direct(kernel, x, parts, 2)
        )
    edges = [k - 1 for k in kernel.shape]
    widths = [(edge, edge) for edge in edges]
    if boundary in _BOUNDARIES:
        x = pad(x, widths, _BOUNDARIES[boundary])
    elif isinstance(fillvalue, Tensor) or fillvalue:
        x = pad(x, widths, constant_values=fillvalue)
    else:
        return direct(x, kernel, parts, 2)
    shifted = [(start + edge, size) for (start, size), edge in zip(parts, edges, strict=True)]
    return direct(x, kernel, shifted, 2)


@TABLE.function("convolve2d", "bilinear")
def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Tensor:
    """Return the convolution of two images, with a choice of what is beyond the edges."""
    return _of_images("convolve2d", in1, in2, mode, boundary, fillvalue, False)


@TABLE.function("correlate2d", "bilinear")
def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Tensor:
    """Return the correlation of two images, with a choice of what is beyond the edges."""
    return _of_images("correlate2d", in1, in2, mode, boundary, fillvalue, True)
