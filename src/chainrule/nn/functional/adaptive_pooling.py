"""Adaptive pooling: average and maximum pooling to a given size. Maxima with their indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from operator import index
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, constant
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import move, namespace
from chainrule.errors import ArgumentError, ShapeError
from chainrule.kernels.resampling import Taps
from chainrule.nn.functional.pooling import (
    Sizes,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    with_batch_axis,
    without_batch_axis,
)
from chainrule.primitives import elementwise, indexing, resampling

__all__ = [
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d_with_indices",
    "max_pool1d_with_indices",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
]

Size = int | Sequence[int | None] | None


def adaptive_avg_pool1d(input: Operand, output_size: Size) -> Tensor:
    """Return signals of a given length: `adaptive_avg_pool2d` in one dimension.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.adaptive_avg_pool1d(cr.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    return _avg("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_avg_pool2d(input: Operand, output_size: Size) -> Tensor:
    """Return images of a given size, each pixel the mean of a window.

    Parameters
    ----------
    input : Tensor, shape (n, c, h, w) or (c, h, w)
        Images.
    output_size : int or two ints, or None in place of one
        The size of the results; None keeps that of the input.

    Returns
    -------
    Tensor, shape (n, c, h', w') or (c, h', w')
        Window i of h' goes from ⌊i h / h'⌋ to before ⌈(i + 1) h / h'⌉: windows may overlap.

    Raises
    ------
    ShapeError
        If the input is not a batch of images, or has no pixels.
    ArgumentError
        If `output_size` is negative, or of the wrong length.

    Notes
    -----
    Linear: each number's gradient is the sum of those of its windows, each over its size.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.adaptive_avg_pool2d(cr.arange(8.0).reshape(1, 2, 4), (1, 2))
    tensor([[[2.5000, 4.5000]]])
    """
    return _avg("adaptive_avg_pool2d", 2, input, output_size)


def adaptive_avg_pool3d(input: Operand, output_size: Size) -> Tensor:
    """Return volumes of a given size: `adaptive_avg_pool2d` in three dimensions.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.adaptive_avg_pool3d(cr.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[3.5000]]]])
    """
    return _avg("adaptive_avg_pool3d", 3, input, output_size)


def adaptive_max_pool1d(input: Operand, output_size: Size, return_indices: bool = False) -> Any:
    """Return signals of a given length: `adaptive_max_pool2d` in one dimension.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.adaptive_max_pool1d(cr.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    return _max("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Operand, output_size: Size, return_indices: bool = False) -> Any:
    """Return images of a given size, each pixel the largest of a window.

    Parameters
    ----------
    input, output_size
        As for `adaptive_avg_pool2d`, windows too.
    return_indices : bool, default False
        Whether to return also the indices of the maxima in the flattened images.

    Returns
    -------
    Tensor, shape (n, c, h', w') or (c, h', w'); with `return_indices` two of them

    Raises
    ------
    ShapeError, ArgumentError
        As for `adaptive_avg_pool2d`.

    Notes
    -----
    Derivative: 1 for the largest number of the window, the first of several equal ones, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.adaptive_max_pool2d(cr.arange(8.0).reshape(1, 2, 4), (1, 2))
    tensor([[[5., 7.]]])
    """
    return _max("adaptive_max_pool2d", 2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Operand, output_size: Size, return_indices: bool = False) -> Any:
    """Return volumes of a given size: `adaptive_max_pool2d` in three dimensions.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.adaptive_max_pool3d(cr.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[7.]]]])
    """
    return _max("adaptive_max_pool3d", 3, input, output_size, return_indices)


# --- windows and implementation -------------------------------------------------------------------


def _sizes(name: str, rank: int, input: Operand, output_size: Size) -> tuple[Tensor, bool, Sizes]:
    x, single = with_batch_axis(name, input, rank)
    if 0 in x.shape[1:]:
        raise ShapeError(
            f"{name}: Expected input to have non-zero size for non-batch dimensions, but input has "
            f"sizes {list(x.shape)}"
        )
    listed = output_size if isinstance(output_size, Sequence) else (output_size,) * rank
    if len(listed) != rank:
        raise ArgumentError(f"{name}: output_size must be {rank} ints, but got {output_size!r}")
    sizes = tuple([n if m is None else index(m) for n, m in zip(x.shape[2:], listed, strict=True)])
    if min(sizes) < 0:
        raise ArgumentError(
            f"{name}: elements of output_size must be greater than or equal to 0 but got {sizes}"
        )
    return x, single, sizes


def _edges(n: int, count: int) -> tuple[Any, Any]:
    """Return the start and the stop of each of `count` windows over n elements."""
    i = np.arange(count)
    return i * n // max(count, 1), -(-(i + 1) * n // max(count, 1))


@lru_cache(maxsize=256)
def _sums(n: int, count: int) -> Taps:
    starts, stops = _edges(n, count)
    layers = []
    for j in range(int((stops - starts).max(initial=0))):
        rows = np.flatnonzero(starts + j < stops)
        layers.append((rows, starts[rows] + j, None))
    return Taps(count, n, layers)


def _avg(name: str, rank: int, input: Operand, output_size: Size) -> Tensor:
    x, single, sizes = _sizes(name, rank, input, output_size)
    return without_batch_axis(area(x, sizes), single)


def area(x: Tensor, sizes: Sizes) -> Tensor:
    """Return the means of windows, with the given number of windows in each dimension."""
    if set(sizes) == {1} and x.numel():
        return ops.mean(x, tuple(range(2, x.ndim)), keepdim=True)
    divisor = np.ones((), x._array.real.dtype)
    for i, (n, count) in enumerate(zip(x.shape[2:], sizes, strict=True)):
        starts, stops = _edges(n, count)
        x = resampling.resample.apply(x, taps=_sums(n, count), axis=2 + i)
        divisor = np.multiply.outer(divisor, (stops - starts).astype(divisor.dtype))
    if divisor.size and (divisor == divisor.flat[0]).all():
        divisor = np.asarray(divisor.flat[0])
    return elementwise.divide.apply(x, constant(divisor, x))


def _max(name: str, rank: int, input: Operand, output_size: Size, return_indices: bool) -> Any:
    x, single, sizes = _sizes(name, rank, input, output_size)
    size = x.shape[2:]
    # Each window's positions in the flattened images; a shorter one repeats its last position.
    flat = np.zeros((1,) * 2 * rank, np.int64)
    for axis, (n, count) in enumerate(zip(size, sizes, strict=True)):
        starts, stops = _edges(n, count)
        within = np.arange(int((stops - starts).max(initial=1)))
        positions = np.minimum(starts[:, None] + within, stops[:, None] - 1)
        shape = [1] * 2 * rank
        shape[axis], shape[rank + axis] = positions.shape
        flat = flat * n + positions.reshape(shape)
    flat = move(flat.reshape(*sizes, int(np.prod(flat.shape[rank:]))), x.device)
    rows = ops.reshape(x, (*x.shape[:2], int(np.prod(size))))
    windows = rows._array[:, :, flat]
    # As in PyTorch: the first of equal numbers, but the last nan.
    hit = windows.argmax(-1)
    xp = namespace(windows)
    is_nan = xp.isnan(windows)
    last = windows.shape[-1] - 1 - is_nan[..., ::-1].argmax(-1)
    hit = xp.where(is_nan.any(-1), last, hit)[..., None]
    around = xp.broadcast_to(flat, windows.shape)
    indices = xp.take_along_axis(around, hit, axis=windows.ndim - 1)[..., 0]
    chosen = make(indices.reshape(*x.shape[:2], int(np.prod(sizes))), None)
    out = indexing.take_along_axis.apply(rows, chosen, axis=2)
    out = without_batch_axis(ops.reshape(out, (*x.shape[:2], *sizes)), single)
    return (out, without_batch_axis(make(indices, None), single)) if return_indices else out


# --- with the indices of maxima -------------------------------------------------------------------

Pair = tuple[Tensor, Tensor]


def _with_indices(pool: Callable[..., Any], count: int) -> Callable[..., Pair]:
    """Return a function of the input and as many settings; `return_indices` has no effect."""

    @wraps(pool)
    def pool_with_indices(
        input: Operand, *settings: Any, return_indices: bool = True, **named: Any
    ) -> Pair:
        found: Pair = pool(input, *settings[:count], return_indices=True, **named)
        return found

    name = f"{pool.__name__}_with_indices"
    pool_with_indices.__name__ = pool_with_indices.__qualname__ = name
    pool_with_indices.__doc__ = f"""Return `{pool.__name__}` with `return_indices=True`.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.ones(1, 1, *[4] * {pool.__name__[-2]})
    >>> values, indices = cr.nn.functional.{name}(x, 2)
    >>> values.shape == indices.shape
    True
    """
    return pool_with_indices


max_pool1d_with_indices = _with_indices(max_pool1d, 5)
max_pool2d_with_indices = _with_indices(max_pool2d, 5)
max_pool3d_with_indices = _with_indices(max_pool3d, 5)
adaptive_max_pool1d_with_indices = _with_indices(adaptive_max_pool1d, 1)
adaptive_max_pool2d_with_indices = _with_indices(adaptive_max_pool2d, 1)
adaptive_max_pool3d_with_indices = _with_indices(adaptive_max_pool3d, 1)
