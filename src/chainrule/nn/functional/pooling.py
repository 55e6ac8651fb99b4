"""Average pooling: the mean, or the sum of powers, of each window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import RECORDERS, Operand
from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import ArgumentError
from chainrule.kernels.resampling import Taps
from chainrule.nn.functional.windows import batched, layout_of, per_dim, unbatched, window_of

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
]

IntOrInts = int | Sequence[int]


def avg_pool1d(
    input: Operand,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of signals: `avg_pool2d` in one dimension.

    Parameters
    ----------
    input : Tensor, shape (n, c, l) or (c, l)
        Signals.
    kernel_size, stride, padding, ceil_mode, count_include_pad
        As for `avg_pool2d`.

    Returns
    -------
    Tensor, shape (n, c, l') or (c, l')

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.avg_pool1d(cr.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    settings = (kernel_size, stride, padding, ceil_mode, count_include_pad, None)
    return _avg_pool("avg_pool1d", 1, input, *settings)


def avg_pool2d(
    input: Operand,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of images.

    Parameters
    ----------
    input : Tensor, shape (n, c, h, w) or (c, h, w)
        Images.
    kernel_size, stride, padding, ceil_mode
        As for `max_pool2d`; what lies over the edge is 0.
    count_include_pad : bool, default True
        Whether the padding counts among the numbers whose mean is taken.
    divisor_override : int, optional
        Divide the sum by this instead of by the numbers' count.

    Returns
    -------
    Tensor, shape (n, c, h', w') or (c, h', w')

    Raises
    ------
    ShapeError, ArgumentError
        As for `max_pool2d`; also if `divisor_override` is 0.

    Notes
    -----
    Linear: each number's gradient is the sum of those of its windows, each over its divisor.

    Examples
    --------
    >>> import chainrule as cr
    >>> image = cr.tensor([[[1.0, 5.0, 2.0, 0.0], [4.0, 2.0, 2.0, 8.0]]])
    >>> cr.nn.functional.avg_pool2d(image, 2)
    tensor([[[3., 3.]]])
    """
    settings = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return _avg_pool("avg_pool2d", 2, input, *settings)


def avg_pool3d(
    input: Operand,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of volumes: `avg_pool2d` in three dimensions.

    Parameters
    ----------
    input : Tensor, shape (n, c, d, h, w) or (c, d, h, w)
        Volumes.
    kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        As for `avg_pool2d`.

    Returns
    -------
    Tensor, shape (n, c, d', h', w') or (c, d', h', w')

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.avg_pool3d(cr.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[3.5000]]]])
    """
    settings = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return _avg_pool("avg_pool3d", 3, input, *settings)


def _avg_pool(
    name: str,
    rank: int,
    input: Operand,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    if divisor_override == 0:
        raise ArgumentError(f"{name}: divisor must be not zero")
    x, single = batched(name, input, rank)
    kernel, strides, pads = window_of(name, rank, kernel_size, stride, padding)
    ones = (1,) * rank
    _, counts = layout_of(name, x.shape[2:], kernel, strides, pads, ones, ceil_mode)
    size, divisor = x.shape[2:], np.ones((), x._array.real.dtype)
    for i, (n, k, s, p, count) in enumerate(zip(size, kernel, strides, pads, counts, strict=True)):
        x = RECORDERS["resample"](x, taps=_window_sums(n, k, s, p, count), axis=2 + i)
        edge = p if count_include_pad else 0
        starts = np.arange(count) * s - p
        lengths = np.minimum(starts + k, n + edge) - np.maximum(starts, -edge)
        divisor = np.multiply.outer(divisor, lengths.astype(divisor.dtype))
    if divisor_override is not None:
        divisor = np.asarray(divisor_override, divisor.dtype)
    elif divisor.size and (divisor == divisor.flat[0]).all():
        divisor = np.asarray(divisor.flat[0])
    return unbatched(RECORDERS["divide"](x, make(divisor, None)), single)


@lru_cache(maxsize=256)
def _window_sums(n: int, kernel: int, stride: int, padding: int, count: int) -> Taps:
    """Return the map from a dimension of n elements to the sums of its windows."""
    layers = []
    for j in range(kernel):
        places = np.arange(count) * stride - padding + j
        rows = np.flatnonzero((places >= 0) & (places < n))
        layers.append((rows, places[rows], None))
    return Taps(count, n, layers)


def lp_pool1d(
    input: Operand,
    norm_type: float,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return (Σ x^p)^(1/p) of each window of signals: `lp_pool2d` in one dimension.

    Parameters
    ----------
    input : Tensor, shape (n, c, l) or (c, l)
        Signals.
    norm_type, kernel_size, stride, ceil_mode
        As for `lp_pool2d`.

    Returns
    -------
    Tensor, shape (n, c, l') or (c, l')

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.lp_pool1d(cr.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]])
    """
    return _lp_pool("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Operand,
    norm_type: float,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return (Σ x^p)^(1/p) of each window of images.

    Parameters
    ----------
    input : Tensor, shape (n, c, h, w) or (c, h, w)
        Images.
    norm_type : float
        p: 1 gives the sum; the larger it is, the nearer is the result to the maximum.
    kernel_size, stride, ceil_mode
        As for `max_pool2d`.

    Returns
    -------
    Tensor, shape (n, c, h', w') or (c, h', w')
        0 where the sum of powers is negative, as in PyTorch; where a last window reaches over the
        end, its mean power counts for what is missing.

    Notes
    -----
    Derivative: (x / out)^(p - 1); 0 where the sum is 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.lp_pool2d(cr.tensor([[[3.0, 4.0], [0.0, 0.0]]]), 2, 2)
    tensor([[[5.]]])
    """
    return _lp_pool("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Operand,
    norm_type: float,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return (Σ x^p)^(1/p) of each window of volumes: `lp_pool2d` in three dimensions.

    Parameters
    ----------
    input : Tensor, shape (n, c, d, h, w) or (c, d, h, w)
        Volumes.
    norm_type, kernel_size, stride, ceil_mode
        As for `lp_pool2d`.

    Returns
    -------
    Tensor, shape (n, c, d', h', w') or (c, d', h', w')

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.lp_pool3d(cr.ones(1, 1, 2, 2), 2, (1, 2, 2))
    tensor([[[[2.]]]])
    """
    return _lp_pool("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


def _lp_pool(
    name: str,
    rank: int,
    input: Operand,
    norm_type: float,
    kernel_size: Any,
    stride: Any,
    ceil_mode: bool,
) -> Tensor:
    x, single = batched(name, input, rank)
    size = math.prod(per_dim(name, "kernel_size", kernel_size, rank))
    powers = ops.pow(x, norm_type)
    # As in PyTorch, windows that reach over the end count as if they were full.
    total = _avg_pool(name, rank, powers, kernel_size, stride, 0, ceil_mode, True, None) * size
    # PyTorch's relu: where nothing is above zero, the root gets no gradient, and no infinite one.
    some = ops.greater(total, 0)
    root = ops.pow(ops.where(some, total, 1.0), 1.0 / norm_type)
    return unbatched(RECORDERS["masked"](root, some), single)
