"""Average, power and maximum pooling over sliding windows, and maximum unpooling."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, are_integers, cast, constant, floating, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import first_where, namespace
from chainrule.errors import ArgumentError, ArgumentTypeError, OutOfBoundsError, ShapeError
from chainrule.kernels.resampling import Taps
from chainrule.primitives import elementwise, pooling, resampling

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

# --- arguments of sliding windows -----------------------------------------------------------------

Sizes = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


def per_dim(name: str, argument: str, value: Any, rank: int, minimum: int = 1) -> Sizes:
    """Return an int, or an int for each spatial dimension, as a tuple of ints."""
    try:
        is_one = not hasattr(value, "__iter__") or getattr(value, "ndim", 1) == 0
        listed = (index(value),) if is_one else tuple(map(index, value))
    except TypeError:
        raise ArgumentTypeError(
            f"{name}: {argument} must be an int, or {rank} of them, not {value!r}"
        ) from None
    if len(listed) == 1:
        listed *= rank
    if len(listed) != rank:
        raise ArgumentError(
            f"{name}: {argument} must be an int, or a tuple of {rank} ints, one for each spatial "
            f"dimension, but got {value!r}"
        )
    if min(listed) < minimum:
        wrong = "non-positive" if minimum else "negative"
        raise ArgumentError(f"{name}: {wrong} {argument} is not supported: got {value!r}")
    return listed


def with_batch_axis(
    name: str, input: Operand, rank: int, *, integers: bool = False
) -> tuple[Tensor, bool]:
    """Return floats of the shape (n, c, …), and whether the batch dimension was missing."""
    x = tensor_of(input) if integers else floating(input)
    if x.ndim == rank + 1:
        return ops.unsqueeze(x, 0), True
    if x.ndim != rank + 2:
        sizes = ("depth", "height", "width")[-rank:] if rank > 1 else ("length",)
        raise ShapeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got "
            f"input of size: {list(x.shape)}. Give it the shape (n, channels, {', '.join(sizes)})"
        )
    return x, False


def without_batch_axis(x: Tensor, single: bool) -> Tensor:
    """Return the result for one sample without the dimension that `with_batch_axis` added."""
    return ops.squeeze(x, 0) if single else x


def window_settings(
    name: str, rank: int, kernel_size: Any, stride: Any, padding: Any
) -> tuple[Sizes, Sizes, Sizes]:
    """Return size, stride and padding of windows in each dimension; the stride may be left out."""
    kernel = per_dim(name, "kernel_size", kernel_size, rank)
    absent = stride is None or (hasattr(stride, "__len__") and not len(stride))
    strides = kernel if absent else per_dim(name, "stride", stride, rank)
    return kernel, strides, per_dim(name, "padding", padding, rank, 0)


def window_layout(
    name: str,
    size: Sizes,
    kernel: Sizes,
    strides: Sizes,
    pads: Sizes,
    steps: Sizes,
    ceil_mode: bool,
) -> tuple[Pairs, Sizes]:
    """Return the padding before and after, and the number of windows, for each dimension."""
    around, counts = [], []
    for n, k, s, p, d in zip(size, kernel, strides, pads, steps, strict=True):
        extent = d * (k - 1) + 1
        if p > extent // 2:
            raise ArgumentError(
                f"{name}: pad should be at most half of effective kernel size, but got pad={p}, "
                f"kernel_size={k} and dilation={d}"
            )
        reach = n + 2 * p - extent
        count = -(-reach // s) + 1 if ceil_mode else reach // s + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1  # the last window must not start in the padding at the end
        if count < 1:
            raise ShapeError(
                f"{name}: Given input size per channel: {list(size)}. Calculated output size is "
                f"too small: the kernel {list(kernel)} doesn't fit in"
            )
        around.append((p, (count - 1) * s + extent - n - p))
        counts.append(count)
    return tuple(around), tuple(counts)


# --- average and power pooling --------------------------------------------------------------------

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
        As for `max_pool2d`; the padding is 0.
    count_include_pad : bool, default True
        Whether the mean includes the padding.
    divisor_override : int, optional
        Divide the sum by this instead of by the count.

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
    integers = are_integers(input)
    x, single = with_batch_axis(name, input, rank, integers=integers)
    dtype = x.dtype
    if integers:
        x = cast(x, np.int64)  # for the sums
    kernel, strides, pads = window_settings(name, rank, kernel_size, stride, padding)
    ones = (1,) * rank
    _, counts = window_layout(name, x.shape[2:], kernel, strides, pads, ones, ceil_mode)
    real, windows = (
        x._array.real.dtype,
        tuple(zip(x.shape[2:], kernel, strides, pads, counts, strict=True)),
    )
    for i, window in enumerate(windows):
        x = resampling.resample.apply(x, taps=_window_sums(*window), axis=2 + i)
    if divisor_override is None:
        divisor = _window_sizes(windows, count_include_pad, real)
    else:
        divisor = np.asarray(divisor_override, real)
    if integers:
        quotient = ops.divide(x, constant(divisor, x), rounding_mode="trunc")
        return without_batch_axis(cast(quotient, dtype), single)
    return without_batch_axis(elementwise.divide.apply(x, constant(divisor, x)), single)


@lru_cache(maxsize=32)
def _window_sizes(
    windows: tuple[tuple[int, ...], ...], count_include_pad: bool, dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    """Return the number of elements of each window; one number, if all are equal; read-only."""
    sizes = np.ones((), dtype)
    for n, k, s, p, count in windows:
        edge = p if count_include_pad else 0
        starts = np.arange(count) * s - p
        lengths = np.minimum(starts + k, n + edge) - np.maximum(starts, -edge)
        sizes = np.multiply.outer(sizes, lengths.astype(dtype))
    if sizes.size and (sizes == sizes.flat[0]).all():
        sizes = np.asarray(sizes.flat[0])
    sizes.flags.writeable = False
    return sizes


@lru_cache(maxsize=256)
def _window_sums(n: int, kernel: int, stride: int, padding: int, count: int) -> Taps:
    """Return the map from a dimension of n elements to the sums of its windows."""
    layers = []
    for j in range(kernel):
        positions = np.arange(count) * stride - padding + j
        rows = np.flatnonzero((positions >= 0) & (positions < n))
        layers.append((rows, positions[rows], None))
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
        p: 1 gives the sum, inf the largest absolute value and -inf the smallest.
    kernel_size, stride, ceil_mode
        As for `max_pool2d`.

    Returns
    -------
    Tensor, shape (n, c, h', w') or (c, h', w')
        As in PyTorch, nan where the sum of powers is negative and 1 / p is no integer; a last
        window that extends over the end is scaled up to the full size.

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
    x, single = with_batch_axis(name, input, rank)
    if math.isinf(norm_type):  # the limits: the largest and the smallest size
        sign = 1 if norm_type > 0 else -1
        settings = (kernel_size, stride, 0, 1, ceil_mode, False)
        extremum = _max_pool(name, rank, ops.multiply(ops.abs(x), sign), *settings)
        return without_batch_axis(ops.multiply(extremum, sign), single)
    size = math.prod(per_dim(name, "kernel_size", kernel_size, rank))
    powers = ops.pow(x, norm_type)
    # As in PyTorch, windows that extend over the end are scaled up to the full size.
    total = _avg_pool(name, rank, powers, kernel_size, stride, 0, ceil_mode, True, None) * size
    # As by PyTorch's sign, the gradient is 0 where the total is 0, instead of infinite.
    some = ops.not_equal(total, 0)
    root = ops.pow(ops.where(some, total, 1.0), 1.0 / norm_type)
    return without_batch_axis(elementwise.masked.apply(root, some), single)


# --- maximum pooling and unpooling ----------------------------------------------------------------


def max_pool1d(
    input: Operand,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest number in each window of signals: `max_pool2d` in one dimension.

    Parameters
    ----------
    input : Tensor, shape (n, c, l) or (c, l)
        Signals.
    kernel_size, stride, padding, dilation, ceil_mode, return_indices
        As for `max_pool2d`.

    Returns
    -------
    Tensor, shape (n, c, l') or (c, l'); with `return_indices` two of them

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.max_pool1d(cr.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    settings = (kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return _max_pool("max_pool1d", 1, input, *settings)


def max_pool2d(
    input: Operand,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest number in each window of images.

    Parameters
    ----------
    input : Tensor, shape (n, c, h, w) or (c, h, w); real
        Images.
    kernel_size : int or two ints
        The size of a window.
    stride : int or two ints, default `kernel_size`
        Distance between windows.
    padding : int or two ints, default 0
        Number of pixels by which windows extend over the edge; half a window at most.
    dilation : int or two ints, default 1
        Distance between the pixels of a window.
    ceil_mode : bool, default False
        Whether a last window may extend over the end.
    return_indices : bool, default False
        Whether to return also the indices of the maxima in the flattened images.

    Returns
    -------
    Tensor, shape (n, c, h', w') or (c, h', w'); with `return_indices` two of them
        h' = (h + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1, rounded down, or up in
        `ceil_mode` (if the last window still starts inside).

    Raises
    ------
    ShapeError
        If the input is not a batch of images, or is smaller than a window.
    ArgumentError
        If a setting is out of range.

    Notes
    -----
    Derivative: 1 for the largest number of the window, the first of several equal ones, else 0. A
    nan counts as the largest.

    Examples
    --------
    >>> import chainrule as cr
    >>> image = cr.tensor([[[1.0, 5.0, 2.0, 0.0], [4.0, 3.0, 2.0, 9.0]]])
    >>> cr.nn.functional.max_pool2d(image, 2)
    tensor([[[5., 9.]]])
    """
    settings = (kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return _max_pool("max_pool2d", 2, input, *settings)


def max_pool3d(
    input: Operand,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest number in each window of volumes: `max_pool2d` in three dimensions.

    Parameters
    ----------
    input : Tensor, shape (n, c, d, h, w) or (c, d, h, w)
        Volumes.
    kernel_size, stride, padding, dilation, ceil_mode, return_indices
        As for `max_pool2d`.

    Returns
    -------
    Tensor, shape (n, c, d', h', w') or (c, d', h', w'); with `return_indices` two of them

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.max_pool3d(cr.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    settings = (kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return _max_pool("max_pool3d", 3, input, *settings)


def _max_pool(
    name: str,
    rank: int,
    input: Operand,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    if isinstance(input, Tensor) and input._array.dtype.kind in "iu":
        return _max_pool_of_integers(
            name, rank, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
        )
    x, single = with_batch_axis(name, input, rank)
    kinds = {kernel_size.__class__, stride.__class__, padding.__class__, dilation.__class__}
    known = _known_window if kinds <= _PLAIN else _window
    sizes = (kernel_size, stride, padding, dilation)
    window = known(name, rank, x._array.shape[2:], sizes, bool(ceil_mode))
    out = pooling.max_pool.apply(x, window=window)
    if not return_indices:
        return without_batch_axis(out, single)
    positions = pooling.pool_positions.apply(x, out, window=window)._array
    indices = make(_flat_indices(positions, x.shape[2:], window), None)
    return without_batch_axis(out, single), without_batch_axis(indices, single)


def _max_pool_of_integers(name: str, rank: int, x: Tensor, *settings: Any) -> Any:
    """Return pooled integers, computed in double precision."""
    found = _max_pool(name, rank, cast(x, np.float64), *settings)
    if isinstance(found, Tensor):
        return cast(found, x.dtype)
    return cast(found[0], x.dtype), found[1]


def _window(name: str, rank: int, shape: Sizes, sizes: Any, ceil_mode: bool) -> Any:
    """Return the `window` setting of the primitive for images of a shape."""
    kernel_size, stride, padding, dilation = sizes
    kernel, strides, pads = window_settings(name, rank, kernel_size, stride, padding)
    steps = per_dim(name, "dilation", dilation, rank)
    around, _ = window_layout(name, shape, kernel, strides, pads, steps, ceil_mode)
    return kernel, strides, around, steps


_known_window = functools.lru_cache(256)(_window)
_PLAIN = frozenset([int, type(None)])
"""Types of settings that may be cached: 2.0 equals 2, but must raise an error."""


def _flat_indices(positions: Any, size: Sizes, window: Any) -> Any:
    """Return positions in the windows as indices into the flattened images."""
    kernel, strides, around, steps = window
    xp = namespace(positions)
    found = xp.zeros(positions.shape, np.int64)
    rank = len(kernel)
    for axis, within in enumerate(xp.unravel_index(positions, kernel)):
        count = positions.shape[2 + axis]
        starts = xp.arange(count) * strides[axis] - around[axis][0]
        starts = starts.reshape(-1, *(1,) * (rank - axis - 1))
        found = found * size[axis] + starts + within * steps[axis]
    return found


def max_unpool1d(
    input: Operand,
    indices: Operand,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return signals with the maxima at their positions: `max_unpool2d` in one dimension.

    Examples
    --------
    >>> import chainrule as cr
    >>> F = cr.nn.functional
    >>> out, indices = F.max_pool1d(cr.tensor([[1.0, 3.0, 2.0, 0.0]]), 2, return_indices=True)
    >>> F.max_unpool1d(out, indices, 2)
    tensor([[0., 3., 2., 0.]])
    """
    settings = (kernel_size, stride, padding, output_size)
    return _unpool("max_unpool1d", 1, input, indices, *settings)


def max_unpool2d(
    input: Operand,
    indices: Operand,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return images with the maxima at their former positions, and zeros elsewhere.

    Parameters
    ----------
    input : Tensor, shape (n, c, h, w) or (c, h, w)
        The result of `max_pool2d`.
    indices : Tensor of ints, shape of `input`
        The indices that `max_pool2d` returns with `return_indices`.
    kernel_size, stride, padding
        The arguments of `max_pool2d`.
    output_size : sequence of ints, optional
        The size of the images, if it isn't (h - 1) stride - 2 padding + kernel_size.

    Returns
    -------
    Tensor, shape (n, c, h', w') or (c, h', w')

    Raises
    ------
    ShapeError
        If `indices` isn't of the shape of `input`, or `output_size` doesn't fit the settings.
    OutOfBoundsError
        If an index is outside of the images.

    Notes
    -----
    Linear: the gradient of each number is that at its index.

    Examples
    --------
    >>> import chainrule as cr
    >>> F = cr.nn.functional
    >>> image = cr.tensor([[[1.0, 5.0], [4.0, 3.0]]])
    >>> F.max_unpool2d(*F.max_pool2d(image, 2, return_indices=True), 2)
    tensor([[[0., 5.],
             [0., 0.]]])
    """
    settings = (kernel_size, stride, padding, output_size)
    return _unpool("max_unpool2d", 2, input, indices, *settings)


def max_unpool3d(
    input: Operand,
    indices: Operand,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return volumes with the maxima at their positions: `max_unpool2d` in three dimensions.

    Examples
    --------
    >>> import chainrule as cr
    >>> F = cr.nn.functional
    >>> volume = cr.tensor([[[[1.0, 5.0]]]])
    >>> F.max_unpool3d(*F.max_pool3d(volume, (1, 1, 2), return_indices=True), (1, 1, 2))
    tensor([[[[0., 5.]]]])
    """
    settings = (kernel_size, stride, padding, output_size)
    return _unpool("max_unpool3d", 3, input, indices, *settings)


def _unpool(
    name: str,
    rank: int,
    input: Operand,
    indices: Operand,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    output_size: Any,
) -> Tensor:
    x, single = with_batch_axis(name, input, rank)
    positions = tensor_of(indices)
    if positions.shape != (x.shape[1:] if single else x.shape):
        raise ShapeError(
            f"{name}: Expected shape of indices to be same as that of the input tensor, but got "
            f"{list(positions.shape)} and {list(x.shape[1:] if single else x.shape)}"
        )
    size = _unpooled_size(name, x.shape[2:], kernel_size, stride, padding, output_size)
    count = int(np.prod(size))
    flat = positions._array.reshape(*x.shape[:2], int(np.prod(x.shape[2:])))
    outside = first_where((flat < 0) | (flat >= count), flat)
    if outside is not None:
        raise OutOfBoundsError(
            f"{name}: Found an invalid max index: {outside} (output volumes are of size "
            f"{' x '.join(map(str, size))})"
        )
    rows = ops.reshape(x, flat.shape)
    key = (*np.ogrid[: flat.shape[0], : flat.shape[1], :1][:2], flat)
    zeros = constant(np.zeros((*x.shape[:2], count), x.dtype), x)
    out = ops.index_put(zeros, [make(part, None) for part in key], rows)
    return without_batch_axis(ops.reshape(out, (*x.shape[:2], *size)), single)


def _unpooled_size(
    name: str, size: Sizes, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Sizes:
    """Return the size of the images before pooling."""
    rank = len(size)
    kernel = per_dim(name, "kernel_size", kernel_size, rank)
    strides = kernel if stride is None else per_dim(name, "stride", stride, rank)
    pads = per_dim(name, "padding", padding, rank, 0)
    settings = zip(size, kernel, strides, pads, strict=True)
    natural = tuple([(n - 1) * s - 2 * p + k for n, k, s, p in settings])
    if output_size is None:
        return natural
    given = tuple(map(index, output_size))[-rank:]
    if len(given) < rank or any(
        abs(m - n) >= s for m, n, s in zip(given, natural, strides, strict=True)
    ):
        raise ShapeError(
            f"{name}: invalid output_size {list(output_size)}: each dimension must be within a "
            f"stride of {list(natural)}"
        )
    return given
