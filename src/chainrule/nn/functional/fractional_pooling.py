"""Fractional maximum pooling: windows of one size at random distances."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from chainrule import ops
from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.creation import arange
from chainrule.errors import ArgumentError, ShapeError
from chainrule.nn.functional.pooling import Sizes, per_dim, with_batch_axis, without_batch_axis
from chainrule.random import rand

__all__ = [
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]


def fractional_max_pool2d(
    input: Operand,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Operand | None = None,
) -> Any:
    """Return the largest number of each window of images, the windows at random distances.

    Parameters
    ----------
    input : Tensor, shape (n, c, h, w) or (c, h, w)
        Images.
    kernel_size : int or two ints
        The size (kh, kw) of the windows.
    output_size : int or two ints, optional
        The size (h', w') of the results.
    output_ratio : number between 0 and 1, or two, optional
        The size of the results over that of the images, in place of `output_size`.
    return_indices : bool, default False
        Whether to return also the indices of the maxima in the flattened images.
    _random_samples : Tensor, shape (n, c, 2), optional
        The random numbers between 0 and 1 of each image, of its columns and its rows.

    Returns
    -------
    Tensor, shape (n, c, h', w') or (c, h', w'); with `return_indices` two of them
        With u the random number and α = (h - kh) / (h' - 1), window i of the rows begins at
        ⌊α (i + u)⌋ - ⌊α u⌋, the last one at h - kh: distances are ⌊α⌋ or ⌈α⌉ [1]_.

    Raises
    ------
    ArgumentError
        If neither or both of `output_size` and `output_ratio` are given.
    ShapeError
        If windows don't fit, or `_random_samples` has another shape.

    Notes
    -----
    Derivative: 1 for the largest number of the window, the first of several equal ones, else 0.

    References
    ----------
    .. [1] B. Graham, Fractional max-pooling, arXiv:1412.6071.

    Examples
    --------
    >>> import chainrule as cr
    >>> image, samples = cr.arange(25.0).reshape(1, 5, 5), cr.zeros(1, 1, 2)
    >>> cr.nn.functional.fractional_max_pool2d(image, 2, 3, _random_samples=samples)
    tensor([[[ 6.,  7.,  9.],
             [11., 12., 14.],
             [21., 22., 24.]]])
    """
    settings = kernel_size, output_size, output_ratio, _random_samples
    result, indices = _pool("fractional_max_pool2d", 2, input, *settings)
    return (result, indices) if return_indices else result


def fractional_max_pool3d(
    input: Operand,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Operand | None = None,
) -> Any:
    """Return the largest number of each window of volumes: see `fractional_max_pool2d`.

    Its `_random_samples` are of the depths, the rows and the columns.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.fractional_max_pool3d(cr.arange(8.0).reshape(1, 2, 2, 2), 2, 1)
    tensor([[[[7.]]]])
    """
    settings = kernel_size, output_size, output_ratio, _random_samples
    result, indices = _pool("fractional_max_pool3d", 3, input, *settings)
    return (result, indices) if return_indices else result


def fractional_max_pool2d_with_indices(
    input: Operand,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Operand | None = None,
) -> tuple[Tensor, Tensor]:
    """Return `fractional_max_pool2d` and its indices, whatever `return_indices` is.

    Examples
    --------
    >>> import chainrule as cr
    >>> image = cr.tensor([[[1.0, 3.0], [2.0, 0.0]]])
    >>> cr.nn.functional.fractional_max_pool2d_with_indices(image, 2, 1)
    (tensor([[[3.]]]), tensor([[[1]]]))
    """
    settings = kernel_size, output_size, output_ratio, _random_samples
    return _pool("fractional_max_pool2d", 2, input, *settings)


def fractional_max_pool3d_with_indices(
    input: Operand,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Operand | None = None,
) -> tuple[Tensor, Tensor]:
    """Return `fractional_max_pool3d` and its indices, whatever `return_indices` is.

    Examples
    --------
    >>> import chainrule as cr
    >>> volume = cr.arange(8.0).reshape(1, 2, 2, 2)
    >>> cr.nn.functional.fractional_max_pool3d_with_indices(volume, 2, 1)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    settings = kernel_size, output_size, output_ratio, _random_samples
    return _pool("fractional_max_pool3d", 3, input, *settings)


def output_sizes(name: str, size: Sizes, output_size: Any, output_ratio: Any) -> Sizes:
    """Return the size of the results, given itself or as a part of that of the input."""
    if (output_size is None) == (output_ratio is None):
        raise ArgumentError(
            f"{name} requires specifying either an output_size or an output_ratio, and only one"
        )
    if output_ratio is None:
        return per_dim(name, "output_size", output_size, len(size))
    scalar = not hasattr(output_ratio, "__iter__")
    ratios = (output_ratio,) * len(size) if scalar else tuple(output_ratio)
    if len(ratios) != len(size) or not all(0 < ratio < 1 for ratio in ratios):
        raise ArgumentError(
            f"{name}: output_ratio must be between 0 and 1, or {len(size)} such numbers (got "
            f"{output_ratio})"
        )
    return tuple([int(n * ratio) for n, ratio in zip(size, ratios, strict=True)])


def _pool(
    name: str,
    rank: int,
    input: Operand,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    samples: Operand | None,
) -> tuple[Tensor, Tensor]:
    x, single = with_batch_axis(name, input, rank)
    size = x.shape[2:]
    kernel = per_dim(name, "kernel_size", kernel_size, rank)
    outputs = output_sizes(name, size, output_size, output_ratio)
    for n, k, count in zip(size, kernel, outputs, strict=True):
        if not 0 < count <= n - k + 1:
            raise ShapeError(
                f"{name}: {count} windows of {k} don't fit into {n}: the kernel {list(kernel)} and "
                f"the output size {list(outputs)} are too large for inputs of {list(size)}"
            )
    wanted = (*x.shape[:2], rank)
    u = rand(wanted, dtype=x.dtype, device=x.device) if samples is None else tensor_of(samples)
    if u.shape != wanted:
        raise ShapeError(
            f"{name}: expected _random_samples of shape {list(wanted)}, got {list(u.shape)}"
        )
    positions = _positions(u.flip(-1) if rank == 2 else u, size, kernel, outputs)
    flat = ops.flatten(x, 2)
    windows = ops.gather(flat.detach(), 2, ops.flatten(positions, 2)).reshape(positions.shape)
    best = windows.argmax(-1, keepdim=True)
    indices = ops.gather(positions, -1, best).squeeze(-1)
    result = ops.gather(flat, 2, ops.flatten(indices, 2)).reshape(indices.shape)
    return without_batch_axis(result, single), without_batch_axis(indices, single)


def _positions(u: Tensor, size: Sizes, kernel: Sizes, outputs: Sizes) -> Tensor:
    """Return the positions in the flattened images of all elements of each window.

    The last dimension is that of the elements of a window.
    """
    rank = len(size)
    total: Any = 0
    for axis, (n, k, count) in enumerate(zip(size, kernel, outputs, strict=True)):
        starts = _starts(u[:, :, axis : axis + 1], n - k, count)
        inside = starts[..., None] + arange(k, device=u.device)
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = count, k
        total = total * n + inside.reshape(*u.shape[:2], *shape)
    positions: Tensor = total.reshape(*u.shape[:2], *outputs, prod(kernel))
    return positions


def _starts(u: Tensor, last: int, count: int) -> Tensor:
    """Return where windows begin along a dimension, the last of `count` at `last`."""
    alpha = last / max(count - 1, 1)
    steps = ((arange(count, dtype=u.dtype, device=u.device) + u) * alpha).to("int64")
    ends = arange(count, device=u.device) == count - 1
    return ops.where(ends, last, steps - (u * alpha).to("int64"))
