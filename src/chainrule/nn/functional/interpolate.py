"""Images in another size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS, Operand, cast, floating, whole_number
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.kernels.resampling import Taps, taps_of
from chainrule.nn.functional.adaptive import area

__all__ = ["interpolate", "upsample"]

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
    """Return signals, images or volumes in another size.

    Parameters
    ----------
    input : Tensor, shape (n, c, l), (n, c, h, w) or (n, c, d, h, w)
        What to resize.
    size : int or as many ints as there are spatial dimensions, optional
        The new size; or else
    scale_factor : float or as many, optional
        how many times larger than the old one, rounded down.
    mode : str, default "nearest"
        "nearest" and "nearest-exact" (the nearest to the left corner or to the centre of a pixel),
        "linear", "bilinear", "trilinear" (one for each rank), "bicubic" for images, or "area", the
        mean of what a new pixel covers.
    align_corners : bool, default False
        For linear and cubic modes: whether the centres of the corner pixels stay where they are,
        rather than their outer corners.
    recompute_scale_factor : bool, default False
        Whether positions follow from the two sizes even where `scale_factor` is given.
    antialias : bool, default False
        For "bilinear" and "bicubic": whether the kernel is widened where the image is made smaller.

    Returns
    -------
    Tensor, shape (n, c, ...), dtype of `input`

    Raises
    ------
    ArgumentError
        If not one of `size` and `scale_factor` is given, `mode` is another word or is not for input
        of this rank, or an option is not for `mode`.
    ShapeError
        If the input has less than three dimensions or more than five, or a size isn't positive.

    Notes
    -----
    Linear, one dimension after the other, so the derivative is the transposed map. The cubic kernel
    is that of Keys [1]_ with a = -0.75, as in PyTorch; with `antialias` a = -0.5.

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
    sizes, scales = _targets(x, size, scale_factor)
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
            taps = _smooth(mode, n, count, bool(align_corners), scale)
        elif mode in _RANKS:
            taps = _weighed(mode, n, count, bool(align_corners), scale, wide)
        else:
            taps = _nearest(mode, n, count, scale)
        x = RECORDERS["resample"](x, taps=taps, axis=2 + i)
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


def _targets(x: Tensor, size: Any, scale_factor: Any) -> tuple[list[int], list[float | None]]:
    """Return the new sizes, and the factors that were given."""
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


# --- the maps of one dimension --------------------------------------------------------------------


@lru_cache(maxsize=256)
def _nearest(mode: str, n: int, count: int, scale: float | None) -> Taps:
    # In single precision, as PyTorch does it, whatever the input is: the choice depends on it.
    step = np.float32(n / count if scale is None else 1 / scale)
    rows = np.arange(count)
    centre = np.float32(0.5) if mode == "nearest-exact" else np.float32(0)
    places = np.floor((rows.astype(np.float32) + centre) * step).astype(np.int64)
    return taps_of(rows, np.minimum(places, n - 1), None, (count, n))


def _positions(n: int, count: int, align_corners: bool, scale: float | None, dtype: Any) -> Any:
    """Return where the new pixels' centres are among the old ones'."""
    rows = np.arange(count, dtype=dtype)
    if align_corners:
        return rows * dtype((n - 1) / (count - 1) if count > 1 else 0)
    step = dtype(n / count if scale is None else 1 / scale)
    return step * (rows + dtype(0.5)) - dtype(0.5)


@lru_cache(maxsize=256)
def _weighed(
    mode: str, n: int, count: int, align_corners: bool, scale: float | None, wide: bool
) -> Taps:
    dtype = np.float64 if wide else np.float32
    at = _positions(n, count, align_corners, scale, dtype)
    rows = np.arange(count)
    if mode == "bicubic":
        first = np.floor(at).astype(np.int64)
        beyond = at - first
        layers = [
            (rows, np.clip(first + j, 0, n - 1), _cubic(abs(beyond - j), -0.75))
            for j in range(-1, 3)
        ]
    else:
        at = at if align_corners else np.maximum(at, 0)
        first = np.minimum(np.floor(at).astype(np.int64), n - 1)
        beyond = np.clip(at - first, 0, 1)
        layers = [(rows, first, 1 - beyond), (rows, np.minimum(first + 1, n - 1), beyond)]
    return Taps(count, n, layers)


def _cubic(distance: Any, a: float) -> Any:
    """Return Keys' kernel."""
    d = distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


@lru_cache(maxsize=256)
def _smooth(mode: str, n: int, count: int, align_corners: bool, scale: float | None) -> Taps:
    """Return the map whose kernel is as wide as a new pixel, where that is the wider one."""
    if align_corners:
        step = (n - 1) / (count - 1) if count > 1 else 0.0
    else:
        step = n / count if scale is None else 1 / scale
    half = (2.0 if mode == "bicubic" else 1.0) * max(step, 1.0)
    stretch = max(step, 1.0)
    rows, places, weights = [], [], []
    for i in range(count):
        centre = step * (i + 0.5)
        low = max(int(centre - half + 0.5), 0)
        high = min(int(centre + half + 0.5), n)
        at = np.arange(low, high)
        distance = abs(at - centre + 0.5) / stretch
        weight = _cubic(distance, -0.5) if mode == "bicubic" else np.maximum(1 - distance, 0)
        rows.append(np.full(len(at), i))
        places.append(at)
        weights.append(weight / weight.sum())
    return taps_of(
        np.concatenate(rows), np.concatenate(places), np.concatenate(weights), (count, n)
    )
