"""Linear filters of images: correlations, Gaussian and uniform filters, derivatives.

A filter along one axis is a correlation of the image, extended beyond its edges, with weights, of
which those of Gaussian filters depend on the width: it has a derivative, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.interop.manipulation import pad
from chainrule.scipy.ndimage.arguments import (
    MODES,
    TABLE,
    axes_of,
    check_mode,
    doubles,
    each_axis,
    image,
    number_of,
    one_for_each,
    window_axes,
)
from chainrule.scipy.signal.convolutions import direct

_SMALL = 1e-15  # of a Gaussian filter's width, which SciPy counts as none

# --- correlations ---------------------------------------------------------------------------------


def _around(name: str, size: int, origin: int) -> tuple[int, int]:
    """Return the numbers of elements of a window before and after its centre."""
    before = size // 2 + int(origin)
    if not 0 <= before < size:
        raise ArgumentError(f"{name}: origin {origin} is outside of a window of {size}")
    return before, size - 1 - before


def extended(
    name: str,
    x: Tensor,
    axes: Sequence[int],
    sizes: Sequence[int],
    mode: Any,
    cval: Any,
    origin: Any,
) -> Tensor:
    """Return an image that goes on beyond its edges, for a window of these sizes."""
    for axis, size, way, start in each_axis(name, axes, size=sizes, mode=mode, origin=origin):
        width = {axis: _around(name, size, start)}
        x = pad(x, width, MODES[check_mode(name, way)], constant_values=cval)
    return x


def _along(
    name: str, x: Tensor, weights: Any, axis: int, mode: Any, cval: Any, origin: int = 0
) -> Tensor:
    """Return the correlation with weights along one axis."""
    wide, weights = doubles(name, x, weights)
    if weights.ndim != 1 or not weights.shape[0]:
        raise ArgumentError(
            f"{name}: no filter weights given: expected a vector, got the shape "
            f"{list(weights.shape)}"
        )
    size, (axis,) = weights.shape[0], axes_of(name, axis, x.ndim)
    wide = extended(name, wide, [axis], [size], mode, cval, origin)
    rows, part = ops.movedim(wide, axis, -1), (size - 1, x.shape[axis])
    found = direct(rows, ops.flip(weights, (0,)), [part], 1)
    return cast(ops.movedim(found, -1, axis), x.dtype)


def _mirrored(weights: Tensor, origin: Any) -> tuple[Tensor, list[int]]:
    """Return the weights and origins of the correlation that a convolution is."""
    origins = one_for_each("convolve", "origin", origin, weights.ndim)
    sizes = weights.shape
    moved = [-int(o) - (1 - size % 2) for o, size in zip(origins, sizes, strict=True)]
    return ops.flip(weights, tuple(range(weights.ndim))), moved


@TABLE.function("correlate1d", "bilinear")
def correlate1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Tensor:
    """Return the correlation with weights along one axis."""
    x = image("correlate1d", input, output)
    return _along("correlate1d", x, weights, axis, mode, cval, origin)


@TABLE.function("convolve1d", "bilinear")
def convolve1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Tensor:
    """Return the convolution with weights along one axis."""
    x = image("convolve1d", input, output)
    weights, (origin,) = _mirrored(ops.atleast_1d(*doubles("convolve1d", weights)), origin)
    return _along("convolve1d", x, weights, axis, mode, cval, origin)


def _correlation(
    name: str, x: Tensor, weights: Tensor, mode: Any, cval: Any, origins: Any, axes: Any
) -> Tensor:
    axes = window_axes(name, axes, x.ndim)
    if weights.ndim != len(axes) or 0 in weights.shape:
        raise ArgumentError(
            f"{name}: expected weights along {len(axes)} axes, got the shape {list(weights.shape)}"
        )
    sizes = weights.shape
    (wide,) = doubles(name, x)
    wide = extended(name, wide, axes, sizes, mode, cval, origins)
    shape = [x.shape[axis] for axis in axes]
    last = tuple(range(-len(axes), 0))
    wide = ops.movedim(wide, axes, last)
    if len(axes) <= 3:
        parts = [(size - 1, n) for size, n in zip(sizes, shape, strict=True)]
        found = direct(wide, ops.flip(weights, tuple(range(len(axes)))), parts, len(axes))
    else:
        found = _sum_of_shifted(wide, weights, shape)
    return cast(ops.movedim(found, last, axes), x.dtype)


def _sum_of_shifted(x: Tensor, weights: Tensor, shape: list[int]) -> Tensor:
    """Return the correlation along the last axes, as a sum of shifted images."""
    terms = []
    for at in np.ndindex(*weights.shape):
        part = tuple([slice(i, i + n) for i, n in zip(at, shape, strict=True)])
        terms.append(weights[at] * x[(..., *part)])
    return sum(terms[1:], terms[0])


@TABLE.function("correlate", "bilinear")
def correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Tensor:
    """Return the correlation with an array of weights."""
    x, (weights,) = image("correlate", input, output), doubles("correlate", weights)
    return _correlation("correlate", x, weights, mode, cval, origin, axes)


@TABLE.function("convolve", "bilinear")
def convolve(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Tensor:
    """Return the convolution with an array of weights."""
    x, (weights,) = image("convolve", input, output), doubles("convolve", weights)
    weights, origins = _mirrored(weights, origin)
    return _correlation("convolve", x, weights, mode, cval, origins, axes)


# --- filters along each axis ----------------------------------------------------------------------


def _gaussian(name: str, sigma: Any, order: int, truncate: float, radius: Any) -> Tensor:
    """Return the weights of a correlation: of the derivative of order m, (1/σ)ᵐ Heₘ(x/σ) φ(x)."""
    if order < 0:
        raise ArgumentError(f"{name}: order must be non-negative, got {order}")
    if radius is None:
        mend = "pass radius="
        radius = int(truncate * number_of(name, "sigma", sigma, mend) + 0.5)
    if radius != int(radius) or radius < 0:
        raise ArgumentError(f"{name}: Radius must be a nonnegative integer, got {radius}")
    (sigma,) = doubles(name, sigma)
    scaled = np.arange(-radius, radius + 1.0) / sigma
    density = ops.exp(-0.5 * ops.square(scaled))
    density = density / ops.sum(density)
    before, hermite = 0.0, 1.0
    for m in range(order):
        before, hermite = hermite, scaled * hermite - m * before
    weights: Tensor = density * hermite / sigma**order
    return weights


@TABLE.function("gaussian_filter1d", "composite")
def gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Tensor:
    """Return an image filtered by a Gaussian, or its derivative, along one axis."""
    x = image("gaussian_filter1d", input, output)
    weights = _gaussian("gaussian_filter1d", sigma, order, truncate, radius)
    return _along("gaussian_filter1d", x, weights, axis, mode, cval)


@TABLE.function("gaussian_filter", "composite")
def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Tensor:
    """Return an image filtered by a Gaussian, or its derivatives, along axes."""
    name = "gaussian_filter"
    x = image(name, input, output)
    axes = axes_of(name, axes, x.ndim)
    settings = {"sigma": sigma, "order": order, "mode": mode, "radius": radius}
    for axis, width, m, way, r in each_axis(name, axes, **settings):
        if isinstance(width, Tensor) or width > _SMALL:
            x = _along(name, x, _gaussian(name, width, m, truncate, r), axis, way, cval)
    return x


@TABLE.function("uniform_filter1d", "linear")
def uniform_filter1d(
    input: Any,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Tensor:
    """Return the means of windows along one axis."""
    x = image("uniform_filter1d", input, output)
    return _mean("uniform_filter1d", x, size, axis, mode, cval, origin)


def _mean(name: str, x: Tensor, size: int, axis: int, mode: Any, cval: Any, origin: int) -> Tensor:
    if size < 1:
        raise ArgumentError(f"{name}: incorrect filter size: {size}")
    return _along(name, x, np.full(size, 1.0 / size), axis, mode, cval, origin)


@TABLE.function("uniform_filter", "linear")
def uniform_filter(
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Tensor:
    """Return the means of windows."""
    name = "uniform_filter"
    x = image(name, input, output)
    axes = axes_of(name, axes, x.ndim)
    for axis, n, way, o in each_axis(name, axes, size=size, mode=mode, origin=origin):
        if n > 1:
            x = _mean(name, x, n, axis, way, cval, o)
    return x


# --- derivatives ----------------------------------------------------------------------------------


def _slope(
    name: str, x: Tensor, axis: int, mode: Any, cval: Any, smoothing: Sequence[float]
) -> Tensor:
    (axis,), modes = axes_of(name, axis, x.ndim), one_for_each(name, "mode", mode, x.ndim)
    found = _along(name, x, [-1.0, 0.0, 1.0], axis, modes[axis], cval)
    for other in range(x.ndim):
        if other != axis:
            found = _along(name, found, smoothing, other, modes[other], cval)
    return found


@TABLE.function("sobel", "linear")
def sobel(
    input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
) -> Tensor:
    """Return differences along one axis, smoothed along the others by 1, 2, 1."""
    return _slope("sobel", image("sobel", input, output), axis, mode, cval, [1.0, 2.0, 1.0])


@TABLE.function("prewitt", "linear")
def prewitt(
    input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
) -> Tensor:
    """Return differences along one axis, summed over three elements of the others."""
    return _slope("prewitt", image("prewitt", input, output), axis, mode, cval, [1.0, 1.0, 1.0])


@TABLE.function("laplace", "linear")
def laplace(
    input: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None
) -> Tensor:
    """Return the sum of the second differences along axes."""
    x = image("laplace", input, output)
    axes = axes_of("laplace", axes, x.ndim)
    found = [
        _along("laplace", x, [1.0, -2.0, 1.0], axis, way, cval)
        for axis, way in each_axis("laplace", axes, mode=mode)
    ]
    return sum(found[1:], found[0])


def _of_gaussians(
    name: str,
    order: int,
    input: Any,
    sigma: Any,
    output: Any,
    axes: Any,
    mode: Any,
    **settings: Any,
) -> list[Tensor]:
    """Return the derivatives of an order along axes, of an image that is smoothed along all axes.

    As in SciPy, the mode of an axis is that of all filters of the derivative along this axis.
    """
    x = image(name, input, output)
    each = each_axis(name, axes_of(name, axes, x.ndim), mode=mode)
    return [
        gaussian_filter(x, sigma, _order_along(axis, order, x.ndim), mode=way, **settings)
        for axis, way in each
    ]


def _order_along(axis: int, order: int, ndim: int) -> list[int]:
    return [order if axis == other else 0 for other in range(ndim)]


@TABLE.function("gaussian_laplace", "composite")
def gaussian_laplace(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Tensor:
    """Return the Laplacian of an image that is smoothed by a Gaussian."""
    name = "gaussian_laplace"
    found = _of_gaussians(name, 2, input, sigma, output, axes, mode=mode, cval=cval, **kwargs)
    return sum(found[1:], found[0])


@TABLE.function("gaussian_gradient_magnitude", "composite")
def gaussian_gradient_magnitude(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Tensor:
    """Return the length of a smoothed image's gradient, with the derivative 0 where it is 0."""
    name = "gaussian_gradient_magnitude"
    found = _of_gaussians(name, 1, input, sigma, output, axes, mode=mode, cval=cval, **kwargs)
    squares = [ops.square(part) for part in found]
    total = sum(squares[1:], squares[0])
    zero = total == 0
    return ops.where(zero, 0.0, ops.sqrt(ops.where(zero, 1.0, total)))
