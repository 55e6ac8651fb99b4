"""Interpolation: resizing of images, and sampling at given positions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, cast, constant, floating, whole_number
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_known, namespace
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.kernels.resampling import Taps, make_taps
from chainrule.nn.functional.adaptive_pooling import area
from chainrule.primitives import contraction, elementwise, resampling, shaping
from chainrule.primitives import indexing as indexing_primitives

__all__ = [
    "interpolate",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
    "affine_grid",
    "grid_sample",
]

_RANKS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
_MODES = ("nearest", "nearest-exact", "area", *_RANKS)


def interpolate(
    input: Operand,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Return signals, images or volumes resized.

    Parameters
    ----------
    input : Tensor, shape (n, c, l), (n, c, h, w) or (n, c, d, h, w)
        The input to resize.
    size : int, or an int for each spatial dimension, optional
        The new size.
    scale_factor : float, or a float for each spatial dimension, optional
        The ratio of the new size, rounded down, to the old one. Give either this or `size`.
    mode : str, default "nearest"
        "nearest" and "nearest-exact" (the nearest to the left corner or to the centre of a pixel),
        "linear", "bilinear", "trilinear" (for 1, 2 and 3 spatial dimensions), "bicubic" for images,
        or "area", the mean over the area of a new pixel.
    align_corners : bool, default False
        For linear and cubic modes: align the centres of the corner pixels, instead of their outer
        corners.
    recompute_scale_factor : bool, default False
        Compute positions from the two sizes even where `scale_factor` is given.
    antialias : bool, default False
        For "bilinear" and "bicubic": widen the kernel where the image becomes smaller.

    Returns
    -------
    Tensor, shape (n, c, ...), dtype of `input`

    Raises
    ------
    ArgumentError
        If not exactly one of `size` and `scale_factor` is given, or `mode` doesn't fit the rank of
        the input or another option.
    ShapeError
        If the input has fewer than three dimensions or more than five, or a size isn't positive.

    Notes
    -----
    A separable linear map, so the derivative is the transposed map. The cubic kernel is that of
    Keys [1]_ with a = -0.75, as in PyTorch; with `antialias` a = -0.5.

    References
    ----------
    .. [1] R. G. Keys, Cubic convolution interpolation for digital image processing, IEEE
       Trans. ASSP 29(6), 1981.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[[1.0, 3.0]]])
    >>> cr.nn.functional.interpolate(x, scale_factor=2)
    tensor([[[1., 1., 3., 3.]]])
    >>> cr.nn.functional.interpolate(x, size=3, mode="linear", align_corners=True)
    tensor([[[1., 2., 3.]]])
    """
    if (
        mode in ("nearest", "nearest-exact")
        and isinstance(input, Tensor)
        and input.dtype == np.uint8
    ):
        floats = cast(input, np.float32)
        picked = interpolate(
            floats, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
        )
        return cast(picked, np.uint8)
    x = floating(input)
    rank = x.ndim - 2
    _check_mode(x, mode, align_corners, antialias)
    sizes, scales = _output_sizes(x, size, scale_factor)
    if recompute_scale_factor:
        if scale_factor is None:
            raise ArgumentError(
                "interpolate: recompute_scale_factor is not meaningful with an explicit size"
            )
        scales = [None] * rank
    if min(sizes) < 1 or 0 in x.shape[1:]:
        raise ShapeError(
            f"interpolate: Input and output sizes should be greater than 0, but got input "
            f"{list(x.shape)} and output sizes {list(sizes)}"
        )
    if mode == "area":
        return area(x, tuple(sizes))
    wide = x.dtype.itemsize >= 8
    for i, (n, count, scale) in enumerate(zip(x.shape[2:], sizes, scales, strict=True)):
        if antialias:
            taps = _antialiased(mode, n, count, bool(align_corners), scale)
        elif mode in _RANKS:
            taps = _linear_or_cubic(mode, n, count, bool(align_corners), scale, wide)
        else:
            taps = _nearest(mode, n, count, scale)
        x = resampling.resample.apply(x, taps=taps, axis=2 + i)
    return x


def upsample(
    input: Operand,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Return `interpolate` of the same arguments, under its older name.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.upsample(cr.tensor([[[1.0, 3.0]]]), 4)
    tensor([[[1., 1., 3., 3.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Operand,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Return `interpolate` with the nearest pixels, under its older name.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.upsample_nearest(cr.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor)


def upsample_bilinear(
    input: Operand,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Return `interpolate` with ``mode="bilinear", align_corners=True``, under its older name.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.upsample_bilinear(cr.tensor([[[[1.0, 3.0]]]]), size=(1, 3))
    tensor([[[[1., 2., 3.]]]])
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


def _check_mode(x: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    rank = x.ndim - 2
    if mode not in _MODES:
        raise ArgumentError(f"interpolate: mode is one of {', '.join(_MODES)}, but got {mode!r}")
    if not 1 <= rank <= 3:
        raise ShapeError(
            "interpolate: Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{x.ndim}D): the first two dimensions are samples and channels"
        )
    if _RANKS.get(mode, rank) != rank:
        raise ArgumentError(
            f"interpolate: mode {mode!r} needs {_RANKS[mode] + 2}D input, but got {x.ndim}D input"
            + (": for one sample, write x.unsqueeze(0)" if rank + 1 == _RANKS[mode] else "")
        )
    if align_corners is not None and mode not in _RANKS:
        raise ArgumentError(
            "interpolate: align_corners option can only be set with the interpolating modes: "
            f"{' | '.join(_RANKS)}, not with {mode!r}"
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError(
            "interpolate: Anti-alias option is restricted to bilinear and bicubic modes and "
            f"requires a 4-D tensor as input, but got mode {mode!r}"
        )


def _output_sizes(x: Tensor, size: Any, scale_factor: Any) -> tuple[list[int], list[float | None]]:
    """Return the output sizes, and the given scale factors."""
    rank = x.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ArgumentError(
            "interpolate: either size or scale_factor should be defined, and "
            + ("only one of them" if size is not None else "one of them has to be")
        )
    given = size if scale_factor is None else scale_factor
    listed = list(given) if isinstance(given, Sequence) else [given] * rank
    if len(listed) != rank:
        name = "size" if scale_factor is None else "scale_factor"
        raise ArgumentError(
            f"interpolate: Input and {name} must have the same number of spatial dimensions, but "
            f"got input with spatial dimensions of {list(x.shape[2:])} and {name} of {given!r}"
        )
    if scale_factor is None:
        return [whole_number(n, "interpolate", "a size") for n in listed], [None] * rank
    sizes = [math.floor(float(n * s)) for n, s in zip(x.shape[2:], listed, strict=True)]
    return sizes, [float(s) for s in listed]


# --- interpolation matrices along one dimension ---------------------------------------------------


@lru_cache(maxsize=256)
def _nearest(mode: str, n: int, count: int, scale: float | None) -> Taps:
    # In single precision for every dtype, as in PyTorch: rounding decides between neighbours.
    step = np.float32(n / count if scale is None else 1 / scale)
    rows = np.arange(count)
    centre = np.float32(0.5) if mode == "nearest-exact" else np.float32(0)
    positions = np.floor((rows.astype(np.float32) + centre) * step).astype(np.int64)
    return make_taps(rows, np.minimum(positions, n - 1), None, (count, n))


def _positions(n: int, count: int, align_corners: bool, scale: float | None, dtype: Any) -> Any:
    """Return the centres of the output pixels in coordinates of the input pixels."""
    rows = np.arange(count, dtype=dtype)
    if align_corners:
        return rows * dtype((n - 1) / (count - 1) if count > 1 else 0)
    step = dtype(n / count if scale is None else 1 / scale)
    return step * (rows + dtype(0.5)) - dtype(0.5)


@lru_cache(maxsize=256)
def _linear_or_cubic(
    mode: str, n: int, count: int, align_corners: bool, scale: float | None, wide: bool
) -> Taps:
    dtype = np.float64 if wide else np.float32
    at = _positions(n, count, align_corners, scale, dtype)
    rows = np.arange(count)
    if mode == "bicubic":
        first = np.floor(at).astype(np.int64)
        offset = at - first
        layers = [
            (rows, np.clip(first + j, 0, n - 1), _cubic(abs(offset - j), -0.75))
            for j in range(-1, 3)
        ]
    else:
        at = at if align_corners else np.maximum(at, 0)
        first = np.minimum(np.floor(at).astype(np.int64), n - 1)
        offset = np.clip(at - first, 0, 1)
        layers = [(rows, first, 1 - offset), (rows, np.minimum(first + 1, n - 1), offset)]
    return Taps(count, n, layers)


def _cubic(distance: Any, a: float) -> Any:
    """Return Keys' kernel."""
    d = distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


@lru_cache(maxsize=256)
def _antialiased(mode: str, n: int, count: int, align_corners: bool, scale: float | None) -> Taps:
    """Return the map with a kernel widened to the output pixel, where this is the larger one."""
    if align_corners:
        step = (n - 1) / (count - 1) if count > 1 else 0.0
    else:
        step = n / count if scale is None else 1 / scale
    half = (2.0 if mode == "bicubic" else 1.0) * max(step, 1.0)
    scale_up = max(step, 1.0)
    rows, positions, weights = [], [], []
    for i in range(count):
        centre = step * (i + 0.5)
        low = max(int(centre - half + 0.5), 0)
        high = min(int(centre + half + 0.5), n)
        at = np.arange(low, high)
        distance = abs(at - centre + 0.5) / scale_up
        weight = _cubic(distance, -0.5) if mode == "bicubic" else np.maximum(1 - distance, 0)
        rows.append(np.full(len(at), i))
        positions.append(at)
        weights.append(weight / weight.sum())
    return make_taps(
        np.concatenate(rows), np.concatenate(positions), np.concatenate(weights), (count, n)
    )


# --- sampling on grids ----------------------------------------------------------------------------

_PADDINGS = ("zeros", "border", "reflection")


def affine_grid(theta: Operand, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the positions to which an affine map moves the pixels of an image.

    Parameters
    ----------
    theta : Tensor, shape (n, 2, 3) or (n, 3, 4)
        Maps from (x, y, 1), or (x, y, z, 1), to positions, where an image reaches from -1 to 1.
    size : sequence of 4 or 5 ints
        The shape (n, c, h, w) or (n, c, d, h, w) that the sampled images will have.
    align_corners : bool, default False
        Whether -1 and 1 are the centres of the corner pixels, rather than their outer corners.

    Returns
    -------
    Tensor, shape (n, h, w, 2) or (n, d, h, w, 3)
        For `grid_sample`.

    Raises
    ------
    ShapeError
        If `theta` and `size` don't fit each other.

    Notes
    -----
    Linear in `theta`.

    Examples
    --------
    >>> import chainrule as cr
    >>> identity = cr.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> cr.nn.functional.affine_grid(identity, (1, 1, 1, 2), align_corners=True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    maps = floating(theta)
    sizes = tuple(size)
    rank = len(sizes) - 2
    if rank not in (2, 3) or min(sizes) < 1:
        raise ShapeError(
            f"affine_grid only supports 4D and 5D sizes of positive numbers, but got {sizes}"
        )
    if maps.shape != (sizes[0], rank, rank + 1):
        raise ShapeError(
            f"affine_grid: Expected a batch of {rank}D affine matrices of shape {sizes[0]}x{rank}x"
            f"{rank + 1} for size {sizes}. Got {list(maps.shape)}."
        )
    axes = []
    for n in sizes[2:]:
        at = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        axes.append(at if align_corners else at * (n - 1) / n)
    grids = reversed(np.meshgrid(*axes, indexing="ij"))
    points = np.stack([*grids, np.ones(sizes[2:])], axis=-1)
    flat = constant(points.reshape(-1, rank + 1).astype(maps.dtype), maps)
    grid = contraction.matmul.apply(flat, shaping.permute_dims.apply(maps, axes=(0, 2, 1)))
    return ops.reshape(grid, (sizes[0], *sizes[2:], rank))


def grid_sample(
    input: Operand,
    grid: Operand,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Return images interpolated at given positions.

    Parameters
    ----------
    input : Tensor, shape (n, c, h, w) or (n, c, d, h, w)
        Images.
    grid : Tensor, shape (n, h', w', 2) or (n, d', h', w', 3)
        Positions (x, y) or (x, y, z), where an image reaches from -1 to 1.
    mode : {"bilinear", "nearest", "bicubic"}
        The interpolation; "bicubic" for images only.
    padding_mode : {"zeros", "border", "reflection"}
        Values outside of the image: zero, the pixel at the edge, or the mirrored image.
    align_corners : bool, default False
        Whether -1 and 1 are the centres of the corner pixels, rather than their outer corners.

    Returns
    -------
    Tensor, shape (n, c, h', w') or (n, c, d', h', w')

    Raises
    ------
    ShapeError, DTypeError
        If `input` and `grid` don't fit each other.
    ArgumentError
        If a mode is another word.

    Notes
    -----
    Linear in the input, piecewise polynomial in the grid: its derivative there is that of the
    piece, and 0 for "nearest". Differentiable to every order.

    Examples
    --------
    >>> import chainrule as cr
    >>> image = cr.tensor([[[[1.0, 3.0]]]])
    >>> middle = cr.zeros(1, 1, 1, 2)
    >>> cr.nn.functional.grid_sample(image, middle)
    tensor([[[[2.]]]])
    """
    x, points = floating(input), floating(grid)
    _check(x, points, mode, padding_mode)
    positions = []
    for i, n in enumerate(reversed(x.shape[2:])):  # x, the last dimension, comes first
        at = indexing_primitives.getitem.apply(points, key=(..., i))
        at = (at + 1) * ((n - 1) / 2) if align_corners else ((at + 1) * n - 1) * 0.5
        if mode != "bicubic":
            at = _inside(at, n, padding_mode, bool(align_corners))
        positions.append(at)
    taps = [_pixels_and_weights(mode, at) for at in reversed(positions)]
    total: Tensor | None = None
    for chosen in itertools.product(*taps):
        value = _gather_pixels(
            x, [position for position, _ in chosen], padding_mode, bool(align_corners), mode
        )
        for _, weight in chosen:
            if weight is not None:
                value = value * ops.unsqueeze(weight, 1)
        total = value if total is None else total + value
    assert total is not None
    return total


def _check(x: Tensor, grid: Tensor, mode: str, padding_mode: str) -> None:
    rank = x.ndim - 2
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ArgumentError(
            "grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: "
            f"{mode!r}"
        )
    if padding_mode not in _PADDINGS:
        raise ArgumentError(
            "grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but "
            f"got: {padding_mode!r}"
        )
    if rank not in (2, 3) or grid.ndim != x.ndim or grid.shape[-1] != rank:
        raise ShapeError(
            "grid_sample(): expected 4D or 5D input and grid with same number of dimensions, and "
            "grid to have size 2 or 3 in the last one, but got input with sizes "
            f"{list(x.shape)} and grid with sizes {list(grid.shape)}"
        )
    if x.shape[0] != grid.shape[0] or 0 in x.shape[1:]:
        raise ShapeError(
            "grid_sample(): expected grid and input to have same batch size, and input to have "
            f"pixels, but got input with sizes {list(x.shape)} and grid with sizes "
            f"{list(grid.shape)}"
        )
    if mode == "bicubic" and rank != 2:
        raise ArgumentError("grid_sample(): bicubic interpolation only supports 4D input")
    if x.dtype != grid.dtype:
        raise DTypeError(
            f"grid_sample(): expected input and grid to have same dtype, but input has {x.dtype} "
            f"and grid has {grid.dtype}"
        )


def _inside(at: Tensor, n: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Return positions clamped or reflected into the image, as the padding mode says."""
    if padding_mode == "zeros":
        return at
    if padding_mode == "reflection":
        low, span = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
        if span == 0:
            return at * 0
        offset = abs(at - low)
        folds = offset._array // span  # constant: number of reflections
        rest = offset - make((folds * span).astype(at.dtype), None)
        odd = make(folds % 2 == 1, None)
        at = ops.where(odd, span - rest, rest) + low
    # At the edge and outside, the gradient is 0, as in PyTorch.
    array = at._array
    free = make((array > 0) & (array < n - 1), None)
    return ops.where(free, at, ops.clamp(at.detach(), 0, n - 1))


def _pixels_and_weights(mode: str, at: Tensor) -> list[tuple[Any, Any]]:
    """Return the pixels that contribute to a position along one dimension, and their weights."""
    if mode == "nearest":
        return [(_to_integers(namespace(at._array).rint(at._array)), None)]
    floor = namespace(at._array).floor(at._array)
    offset = at - make(floor, None)
    if mode == "bilinear":
        return [(_to_integers(floor), 1 - offset), (_to_integers(floor + 1), offset)]
    weights = [
        _cubic_far(offset + 1),
        _cubic_near(offset),
        _cubic_near(1 - offset),
        _cubic_far(2 - offset),
    ]
    return [
        (_to_integers(floor + j), weight) for j, weight in zip(range(-1, 3), weights, strict=True)
    ]


def _to_integers(at: Any) -> Any:
    """Return positions as integers; positions that are not finite become -1."""
    xp = namespace(at)
    return xp.where(xp.isfinite(at), xp.clip(at, -(2.0**30), 2.0**30), -1.0).astype(np.int64)


def _cubic_near(d: Tensor, a: float = -0.75) -> Any:
    return ((a + 2) * d - (a + 3)) * d * d + 1


def _cubic_far(d: Tensor, a: float = -0.75) -> Any:
    return ((d - 5) * d + 8) * d * a - 4 * a


def _gather_pixels(
    x: Tensor, positions: list[Any], padding_mode: str, align: bool, mode: str
) -> Tensor:
    """Return the pixels at integer positions; zero for those outside."""
    found: Any = True
    key = []
    for position, n in zip(positions, x.shape[2:], strict=True):
        if mode == "bicubic" and padding_mode != "zeros":
            position = _fold_inside(position, n, padding_mode, align)
        found = found & (position >= 0) & (position < n)
        key.append(namespace(position).clip(position, 0, n - 1))
    flat: Any = 0
    for position, n in zip(key, x.shape[2:], strict=True):
        flat = flat * n + position
    n, c = x.shape[:2]
    xp = namespace(flat)
    rows = ops.reshape(x, (n, c, int(np.prod(x.shape[2:]))))
    index = xp.broadcast_to(flat.reshape(n, 1, -1), (n, c, flat[0].size))
    values = indexing_primitives.take_along_axis.apply(rows, make(index, None), axis=2)
    values = ops.reshape(values, (n, c, *flat.shape[1:]))
    if is_known(found) and not xp.waits and found.all():
        return values
    mask = make(xp.broadcast_to(found[:, None], values.shape), None)
    return elementwise.masked.apply(values, mask)


def _fold_inside(position: Any, n: int, padding_mode: str, align_corners: bool) -> Any:
    """Return integer positions clamped or reflected into the image."""
    xp = namespace(position)
    if padding_mode == "reflection":
        if align_corners:
            span = max(n - 1, 1)
            position = abs(position)
            rest, folds = position % span, position // span
            position = xp.where(folds % 2 == 1, span - rest, rest)
        else:
            position = xp.where(position < 0, -1 - position, position)
            rest, folds = position % n, position // n
            position = xp.where(folds % 2 == 1, n - 1 - rest, rest)
    return xp.clip(position, 0, n - 1)
