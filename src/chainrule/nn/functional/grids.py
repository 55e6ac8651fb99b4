"""Images looked at through a grid of positions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import RECORDERS, Operand, floating
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_known
from chainrule.errors import ArgumentError, DTypeError, ShapeError

__all__ = ["affine_grid", "grid_sample"]

_PADDINGS = ("zeros", "border", "reflection")


def affine_grid(theta: Operand, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the positions that an affine map sends the pixels of an image to.

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
    flat = make(points.reshape(-1, rank + 1).astype(maps.dtype), None)
    grid = RECORDERS["matmul"](flat, RECORDERS["permute_dims"](maps, axes=(0, 2, 1)))
    return ops.reshape(grid, (sizes[0], *sizes[2:], rank))


def grid_sample(
    input: Operand,
    grid: Operand,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Return what images hold at given positions, between their pixels.

    Parameters
    ----------
    input : Tensor, shape (n, c, h, w) or (n, c, d, h, w)
        Images.
    grid : Tensor, shape (n, h', w', 2) or (n, d', h', w', 3)
        Positions (x, y) or (x, y, z), where an image reaches from -1 to 1.
    mode : {"bilinear", "nearest", "bicubic"}
        How to read between pixels; "bicubic" for images only.
    padding_mode : {"zeros", "border", "reflection"}
        What is outside: nothing, the pixel at the edge, or the image mirrored.
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
    x, positions = floating(input), floating(grid)
    _check(x, positions, mode, padding_mode)
    places = []
    for i, n in enumerate(reversed(x.shape[2:])):  # x, the last dimension, comes first
        at = RECORDERS["getitem"](positions, key=(..., i))
        at = (at + 1) * ((n - 1) / 2) if align_corners else ((at + 1) * n - 1) * 0.5
        if mode != "bicubic":
            at = _inside(at, n, padding_mode, bool(align_corners))
        places.append(at)
    taps = [_taps(mode, at) for at in reversed(places)]
    total: Tensor | None = None
    for chosen in itertools.product(*taps):
        value = _read(x, [place for place, _ in chosen], padding_mode, bool(align_corners), mode)
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
    """Return positions brought inside, where the padding asks for it."""
    if padding_mode == "zeros":
        return at
    if padding_mode == "reflection":
        low, span = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
        if span == 0:
            return at * 0
        beyond = abs(at - low)
        turns = beyond._array // span  # constant: how often the position is folded over
        rest = beyond - make((turns * span).astype(at.dtype), None)
        odd = make(turns % 2 == 1, None)
        at = ops.where(odd, span - rest, rest) + low
    # At the edge itself and beyond, PyTorch lets no gradient pass.
    array = at._array
    free = make((array > 0) & (array < n - 1), None)
    return ops.where(free, at, ops.clamp(at.detach(), 0, n - 1))


def _taps(mode: str, at: Tensor) -> list[tuple[Any, Any]]:
    """Return the pixels that a position along one dimension reads, and their weights."""
    if mode == "nearest":
        return [(_whole(np.rint(at._array)), None)]
    floor = np.floor(at._array)
    beyond = at - make(floor, None)
    if mode == "bilinear":
        return [(_whole(floor), 1 - beyond), (_whole(floor + 1), beyond)]
    weights = [
        _cubic_far(beyond + 1),
        _cubic_near(beyond),
        _cubic_near(1 - beyond),
        _cubic_far(2 - beyond),
    ]
    return [(_whole(floor + j), weight) for j, weight in zip(range(-1, 3), weights, strict=True)]


def _whole(at: Any) -> Any:
    """Return positions as integers; those that are none, far outside."""
    return np.where(np.isfinite(at), np.clip(at, -(2.0**30), 2.0**30), -1.0).astype(np.int64)


def _cubic_near(d: Tensor, a: float = -0.75) -> Any:
    return ((a + 2) * d - (a + 3)) * d * d + 1


def _cubic_far(d: Tensor, a: float = -0.75) -> Any:
    return ((d - 5) * d + 8) * d * a - 4 * a


def _read(x: Tensor, places: list[Any], padding_mode: str, align: bool, mode: str) -> Tensor:
    """Return the pixels at whole positions; zero for those outside."""
    found: Any = True
    key = []
    for place, n in zip(places, x.shape[2:], strict=True):
        if mode == "bicubic" and padding_mode != "zeros":
            place = _fold(place, n, padding_mode, align)
        found = found & (place >= 0) & (place < n)
        key.append(np.clip(place, 0, n - 1))
    flat: Any = 0
    for place, n in zip(key, x.shape[2:], strict=True):
        flat = flat * n + place
    n, c = x.shape[:2]
    rows = ops.reshape(x, (n, c, int(np.prod(x.shape[2:]))))
    index = np.broadcast_to(flat.reshape(n, 1, -1), (n, c, flat[0].size))
    values = RECORDERS["take_along_axis"](rows, make(index, None), axis=2)
    values = ops.reshape(values, (n, c, *flat.shape[1:]))
    if is_known(found) and found.all():
        return values
    return RECORDERS["masked"](values, make(np.broadcast_to(found[:, None], values.shape), None))


def _fold(place: Any, n: int, padding_mode: str, align_corners: bool) -> Any:
    """Return whole positions brought inside."""
    if padding_mode == "reflection":
        if align_corners:
            span = max(n - 1, 1)
            place = abs(place)
            rest, turns = place % span, place // span
            place = np.where(turns % 2 == 1, span - rest, rest)
        else:
            place = np.where(place < 0, -1 - place, place)
            rest, turns = place % n, place // n
            place = np.where(turns % 2 == 1, n - 1 - rest, rest)
    return np.clip(place, 0, n - 1)
