"""Distances of all points from each other."""

from __future__ import annotations

import functools
import math

import numpy as np

from chainrule.arguments import RECORDERS, Operand, cast, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.backend import dtype_title, promoted
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.ops.where import where
from chainrule.ops.wrappers import reshaped

__all__ = ["cdist", "pdist"]

_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


def cdist(
    x1: Operand,
    x2: Operand,
    p: float = 2.0,
    compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """Return the distance of each point of one set from each of another.

    Parameters
    ----------
    x1 : Tensor, shape (..., m, k), real
        Points are rows.
    x2 : Tensor, shape (..., n, k), real
    p : float, default 2.0
        The distance is the p-norm of the difference: 2 for Euclid's, 1 for the sum of magnitudes,
        inf for the largest, 0 for the number of coordinates that differ.
    compute_mode : str, optional
        PyTorch's: "donot_use_mm_for_euclid_dist" takes no matrix products, which is slower.
        Pairs that nearly coincide are computed by their differences in any mode.

    Returns
    -------
    Tensor, shape (..., m, n)
        Stacks of sets broadcast.

    Raises
    ------
    ShapeError
        If the points have different dimensions, or the stacks don't broadcast.
    DTypeError
        If the numbers are complex, or no floats.
    ArgumentError
        If p is negative, or there is no such `compute_mode`.

    Notes
    -----
    Derivative for p = 2: the unit vector from y to x, and 0 where both coincide. For other p the
    differences of all pairs are held in memory; their derivative where coordinates coincide is 0,
    and for p = inf that of several largest ones is shared out evenly, as by `amax` (PyTorch gives
    each of them all of it).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cdist(cr.tensor([[0.0, 0.0]]), cr.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[5., 0.]])
    """
    left, right = _points("cdist", x1, "X1"), _points("cdist", x2, "X2")
    if left.shape[-1] != right.shape[-1]:
        raise ShapeError(
            "cdist: X1 and X2 must have the same number of columns. X1: "
            f"{left.shape[-1]} X2: {right.shape[-1]}"
        )
    _check_exponent("cdist", p)
    if compute_mode is not None and compute_mode not in _MODES:
        raise ArgumentError(
            f"cdist: {compute_mode!r} is not a valid value for compute_mode: {', '.join(_MODES)}"
        )
    dtype = promoted(left.dtype, right.dtype)
    wide = np.dtype(np.float32) if dtype == np.float16 else dtype
    left, right = cast(left, wide), cast(right, wide)
    if p == 2:
        left, right = _same_stacks(left, right)
        with np.errstate(invalid="ignore"):  # products of infinite points are computed again
            d = RECORDERS["cdist"](left, right, direct=compute_mode == _MODES[2])
        return cast(d, dtype)
    return cast(_of_norm(left, right, p), dtype)


def _points(name: str, x: Operand, which: str) -> Tensor:
    points = tensor_of(x)
    if points.dtype.kind != "f":
        raise DTypeError(
            f"{name} only supports floating-point dtypes, {which} got: {dtype_title(points.dtype)}"
        )
    if points.ndim < 2:
        raise ShapeError(f"{name} only supports at least 2D tensors, {which} got: {points.ndim}D")
    return points


def _check_exponent(name: str, p: float) -> None:
    if not p >= 0:
        raise ArgumentError(f"{name} only supports non-negative p values, got {p}")


def _same_stacks(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return stacks of sets broadcast to as many of them."""
    if x.shape[:-2] == y.shape[:-2]:
        return x, y
    try:
        stacks = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        raise ShapeError(
            f"cdist: stacks of shapes {list(x.shape[:-2])} and {list(y.shape[:-2])} don't "
            "broadcast: their sizes must be equal or 1"
        ) from None
    left, right = [RECORDERS["broadcast_to"](t, shape=(*stacks, *t.shape[-2:])) for t in (x, y)]
    return left, right


_MANY, _FLAT = 2**14, 4
"""Of so many pairs in so few dimensions, sums are quicker over one dimension after the other."""


def _of_norm(x: Tensor, y: Tensor, p: float) -> Tensor:
    """Return the p-norms of all differences, of any p but 2, with derivative 0 at zeros."""
    (m, k), n = x.shape[-2:], y.shape[-2]
    if 0 < k <= _FLAT and p != math.inf and m * n >= _MANY:
        pairs = zip(_columns(x, (m, 1)), _columns(y, (1, n)), strict=True)
        parts = [_raised(RECORDERS["subtract"](a, b), p) for a, b in pairs]
        total: Tensor = functools.reduce(RECORDERS["add"], parts)
        return total if p in (0, 1) else _power(total, 1 / p)
    rows = RECORDERS["reshape"](x, shape=(*x.shape[:-1], 1, k))
    columns = RECORDERS["reshape"](y, shape=(*y.shape[:-2], 1, n, k))
    d = RECORDERS["subtract"](rows, columns)
    last = (d.ndim - 1,)
    if p == math.inf and k:
        return RECORDERS["max"](RECORDERS["abs"](d), axis=last, keepdims=False)
    total = RECORDERS["sum"](_raised(d, p), axis=last, keepdims=False)
    return total if p in (0, 1) else _power(total, 1 / p)


def _columns(x: Tensor, shape: tuple[int, int]) -> list[Tensor]:
    """Return the coordinates of all points, one dimension after the other."""
    parts = RECORDERS["unbind"](x, axis=x.ndim - 1)
    return [RECORDERS["reshape"](part, shape=(*x.shape[:-2], *shape)) for part in parts]


def _raised(d: Tensor, p: float) -> Tensor:
    """Return what the p-norm adds up."""
    sizes = RECORDERS["abs"](d)
    if p == 1:
        return sizes
    return RECORDERS["sign"](sizes) if p == 0 else _power(sizes, p)


def _power(x: Tensor, p: float) -> Tensor:
    """Return powers of non-negative numbers: at 0, 0 with the derivative 0."""
    zero = RECORDERS["equal"](x, 0)
    powers = RECORDERS["pow"](where(zero, 1.0, x), p)
    return RECORDERS["masked"](powers, RECORDERS["logical_not"](zero))


def pdist(input: Operand, p: float = 2.0) -> Tensor:
    """Return the distances of all pairs of points of one set.

    Parameters
    ----------
    input : Tensor, shape (n, k), real
        Points are rows.
    p : float, default 2.0
        As for `cdist`.

    Returns
    -------
    Tensor, shape (n (n - 1) / 2,)
        Of the first point and each later one, then of the second and each later one, and so on.

    Raises
    ------
    ShapeError
        If `input` is no matrix.
    DTypeError
        If the numbers are complex, or no floats.
    ArgumentError
        If p is negative.

    Notes
    -----
    Derivatives: as for `cdist`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.pdist(cr.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]))
    tensor([5., 3., 4.])
    """
    points = _points("pdist", input, "x")
    if points.ndim != 2:
        raise ShapeError(f"pdist only supports 2D tensors, got: {points.ndim}D")
    _check_exponent("pdist", p)
    n = points.shape[0]
    rows, columns = np.triu_indices(n, 1)
    square = reshaped(cdist(points, points, p), (n * n,))
    return RECORDERS["index"](square, key=rows * n + columns)
