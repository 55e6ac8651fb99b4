"""Convolutions, in one to three dimensions, and their transposes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from chainrule import ops
from chainrule.arguments import Operand, are_integers, floating, tensor_of
from chainrule.autograd.record import add_to_new
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.nn.functional.pooling import Sizes, per_dim, with_batch_axis, without_batch_axis
from chainrule.primitives import convolution

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
]

IntOrInts = int | Sequence[int]


def conv1d(
    input: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts | str = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation of signals with kernels: `conv2d` in one dimension.

    Parameters
    ----------
    input : Tensor, shape (n, c, l) or (c, l)
        Signals.
    weight : Tensor, shape (o, c / groups, k)
        Kernels.
    bias, stride, padding, dilation, groups
        As for `conv2d`.

    Returns
    -------
    Tensor, shape (n, o, l') or (o, l')

    Examples
    --------
    >>> import chainrule as cr
    >>> step = cr.tensor([[0.0, 0.0, 1.0, 1.0]])
    >>> cr.conv1d(step, cr.tensor([[[-1.0, 1.0]]]))
    tensor([[0., 1., 0.]])
    """
    return _conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts | str = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation of images with kernels, called convolution in networks.

    Parameters
    ----------
    input : Tensor, shape (n, c, h, w) or (c, h, w)
        Images of c channels.
    weight : Tensor, shape (o, c / groups, kh, kw)
        A kernel for each of o output channels.
    bias : Tensor, shape (o,), optional
        Added to each output channel.
    stride : int or two ints, default 1
        Step of the kernel, in pixels.
    padding : int or two ints or {"valid", "same"}, default 0
        Number of zeros on each side of an image; none for "valid"; for "same" as many as keep its
        size (one more at the end if their number is odd).
    dilation : int or two ints, default 1
        Distance between the pixels that a kernel covers.
    groups : int, default 1
        Number of groups of input and output channels that are convolved separately.

    Returns
    -------
    Tensor, shape (n, o, h', w') or (o, h', w')
        h' = ⌊(h + 2 padding - dilation (kh - 1) - 1) / stride⌋ + 1, and w' alike.

    Raises
    ------
    ShapeError
        If the shapes don't fit each other, `groups`, or the kernel.
    DTypeError
        If input, weight and bias are of different dtypes.
    ArgumentError
        If stride, padding, dilation or groups is out of range.

    Notes
    -----
    Linear in the input and in the weight, and computed as a matrix product [1]_. The derivative for
    the input is the transposed convolution of the gradient, that for the weight the correlation of
    input and gradient. Differentiable to every order.

    References
    ----------
    .. [1] K. Chellapilla, S. Puri, P. Simard, High performance convolutional neural networks for
       document processing, IWFHR 2006.

    Examples
    --------
    >>> import chainrule as cr
    >>> image = cr.arange(9.0).reshape(1, 3, 3)
    >>> cr.conv2d(image, cr.ones(1, 1, 2, 2))
    tensor([[[ 8., 12.],
             [20., 24.]]])
    """
    return _conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts | str = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation of volumes with kernels: `conv2d` in three dimensions.

    Parameters
    ----------
    input : Tensor, shape (n, c, d, h, w) or (c, d, h, w)
        Volumes.
    weight : Tensor, shape (o, c / groups, kd, kh, kw)
        Kernels.
    bias, stride, padding, dilation, groups
        As for `conv2d`.

    Returns
    -------
    Tensor, shape (n, o, d', h', w') or (o, d', h', w')

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.conv3d(cr.ones(1, 2, 2, 2), cr.ones(1, 1, 2, 2, 2))
    tensor([[[[8.]]]])
    """
    return _conv("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    output_padding: IntOrInts = 0,
    groups: int = 1,
    dilation: IntOrInts = 1,
) -> Tensor:
    """Return the transposed convolution of signals: `conv_transpose2d` in one dimension.

    Parameters
    ----------
    input : Tensor, shape (n, c, l) or (c, l)
        Signals.
    weight : Tensor, shape (c, o / groups, k)
        Kernels.
    bias, stride, padding, output_padding, groups, dilation
        As for `conv_transpose2d`.

    Returns
    -------
    Tensor, shape (n, o, l') or (o, l')

    Examples
    --------
    >>> import chainrule as cr
    >>> kernel = cr.tensor([[[1.0, 0.5]]])
    >>> cr.conv_transpose1d(cr.tensor([[1.0, 2.0]]), kernel, stride=2)
    tensor([[1.0000, 0.5000, 2.0000, 1.0000]])
    """
    settings = (stride, padding, output_padding, groups, dilation)
    return _conv_transpose("conv_transpose1d", 1, input, weight, bias, *settings)


def conv_transpose2d(
    input: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    output_padding: IntOrInts = 0,
    groups: int = 1,
    dilation: IntOrInts = 1,
) -> Tensor:
    """Return the transposed convolution of images: the sum of kernels scaled by the pixels.

    Parameters
    ----------
    input : Tensor, shape (n, c, h, w) or (c, h, w)
        Images of c channels.
    weight : Tensor, shape (c, o / groups, kh, kw)
        For each input channel, a kernel for each output channel.
    bias : Tensor, shape (o,), optional
        Added to each output channel.
    stride : int or two ints, default 1
        Distance between the kernels of neighbouring pixels.
    padding : int or two ints, default 0
        Number of pixels cut off on each side.
    output_padding : int or two ints, default 0
        By how many pixels less to cut off at the end; less than stride or dilation.
    groups : int, default 1
        Number of groups of input and output channels that are convolved separately.
    dilation : int or two ints, default 1
        Distance between the pixels of a kernel.

    Returns
    -------
    Tensor, shape (n, o, h', w') or (o, h', w')
        h' = (h - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1, and w' alike.

    Raises
    ------
    ShapeError, DTypeError, ArgumentError
        As for `conv2d`; also if the output would be empty.

    Notes
    -----
    The adjoint of `conv2d` in its input, with the same settings. Differentiable to every order.

    Examples
    --------
    >>> import chainrule as cr
    >>> pixels = cr.tensor([[[1.0, 2.0]]])
    >>> cr.conv_transpose2d(pixels, cr.ones(1, 1, 2, 2))
    tensor([[[1., 3., 2.],
             [1., 3., 2.]]])
    """
    settings = (stride, padding, output_padding, groups, dilation)
    return _conv_transpose("conv_transpose2d", 2, input, weight, bias, *settings)


def conv_transpose3d(
    input: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    output_padding: IntOrInts = 0,
    groups: int = 1,
    dilation: IntOrInts = 1,
) -> Tensor:
    """Return the transposed convolution of volumes: `conv_transpose2d` in three dimensions.

    Parameters
    ----------
    input : Tensor, shape (n, c, d, h, w) or (c, d, h, w)
        Volumes.
    weight : Tensor, shape (c, o / groups, kd, kh, kw)
        Kernels.
    bias, stride, padding, output_padding, groups, dilation
        As for `conv_transpose2d`.

    Returns
    -------
    Tensor, shape (n, o, d', h', w') or (o, d', h', w')

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.conv_transpose3d(cr.ones(1, 1, 1, 2), cr.ones(1, 1, 1, 1, 2))
    tensor([[[[1., 2., 1.]]]])
    """
    settings = (stride, padding, output_padding, groups, dilation)
    return _conv_transpose("conv_transpose3d", 3, input, weight, bias, *settings)


def _conv(
    name: str,
    rank: int,
    input: Operand,
    weight: Operand,
    bias: Operand | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    x, single = with_batch_axis(name, input, rank, integers=are_integers(input, weight))
    w = _weight(name, rank, x, weight)
    settings = stride, padding, dilation, groups
    window_of = _known_window if all(map(_is_plain, settings)) else _window
    window = window_of(name, rank, single, x._array.shape, w._array.shape, settings)
    out = convolution.convolve.apply(x, w, window=window)
    return without_batch_axis(_add_bias(name, out, bias, rank), single)


def _window(
    name: str, rank: int, single: bool, shape: Sizes, weight_shape: Sizes, settings: Any
) -> Any:
    """Return the `window` setting of the primitive for images and kernels of these shapes."""
    stride, padding, dilation, groups = settings
    strides = per_dim(name, "stride", stride, rank)
    dilations = per_dim(name, "dilation", dilation, rank)
    kernel = weight_shape[2:]
    pads = _pads(name, padding, strides, dilations, kernel)
    _check_groups(name, groups, weight_shape)
    if shape[1] != weight_shape[1] * groups:
        raise ShapeError(
            f"{name}: Given groups={groups}, weight of size {list(weight_shape)}, expected input"
            f"{list(shape)} to have {weight_shape[1] * groups} channels, but got {shape[1]} "
            f"channels instead{_mend_of_channels(shape, weight_shape[1] * groups, single)}"
        )
    padded = [n + sum(pad) for n, pad in zip(shape[2:], pads, strict=True)]
    extent = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    if any(n < e for n, e in zip(padded, extent, strict=True)):
        raise ShapeError(
            f"{name}: Calculated padded input size per channel: ({_joined(padded)}). Kernel size: "
            f"({_joined(extent)}). Kernel size can't be greater than actual input size: add padding"
        )
    return strides, pads, dilations, groups


_known_window = lru_cache(256)(_window)


def _is_plain(setting: Any) -> bool:
    """Return whether a setting may be cached: 2.0 equals 2, but must raise an error."""
    if setting.__class__ is tuple:
        return all([each.__class__ is int for each in setting])
    return setting.__class__ is int or setting.__class__ is str


def _mend_of_channels(shape: Sizes, channels: int, single: bool) -> str:
    """Return how an input has its channels at dimension 1, "" if that is unknown."""
    if single and channels == 1:
        return ". For a batch of one channel, write x.unsqueeze(1)"
    if shape[-1] == channels:
        axis = -len(shape) + 1
        return f". If its last dimension is that of the channels, write x.movedim(-1, {axis})"
    return ""


def _conv_transpose(
    name: str,
    rank: int,
    input: Operand,
    weight: Operand,
    bias: Operand | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Tensor:
    x, single = with_batch_axis(name, input, rank, integers=are_integers(input, weight))
    w = _weight(name, rank, x, weight)
    strides = per_dim(name, "stride", stride, rank)
    dilations = per_dim(name, "dilation", dilation, rank)
    pads_cut = per_dim(name, "padding", padding, rank, 0)
    extra = per_dim(name, "output_padding", output_padding, rank, 0)
    _check_groups(name, groups, w.shape)
    if x.shape[1] != w.shape[0]:
        raise ShapeError(
            f"{name}: Given transposed=1, weight of size {list(w.shape)}, expected input"
            f"{list(x.shape)} to have {w.shape[0]} channels, but got {x.shape[1]} channels instead"
            f"{_mend_of_channels(x.shape, w.shape[0], single)}"
        )
    if any(k >= max(s, d) for k, s, d in zip(extra, strides, dilations, strict=True)):
        raise ArgumentError(
            f"{name}: output padding must be smaller than either stride or dilation, but got "
            f"output_padding={extra}, stride={strides}, dilation={dilations}"
        )
    sizes = zip(x.shape[2:], w.shape[2:], strides, dilations, pads_cut, extra, strict=True)
    size = tuple([(n - 1) * s + d * (k - 1) + 1 - 2 * p + o for n, k, s, d, p, o in sizes])
    if min(size) < 1:
        raise ShapeError(
            f"{name}: Given input size per channel: ({_joined(x.shape[2:])}). Calculated output "
            f"size per channel: ({_joined(size)}). Output size is too small: use less padding"
        )
    pads = tuple([(p, p - o) for p, o in zip(pads_cut, extra, strict=True)])
    window = (strides, pads, dilations, groups)
    out = convolution.convolve_input.apply(x, w, size=size, window=window)
    return without_batch_axis(_add_bias(name, out, bias, rank), single)


def _weight(name: str, rank: int, x: Tensor, weight: Operand) -> Tensor:
    w = tensor_of(weight) if x._array.dtype.kind in "iu" else floating(weight)
    if w.ndim != rank + 2:
        raise ShapeError(
            f"{name}: expected weight to be at least 1 at dimension 0, and {rank + 2}-dimensional, "
            f"but got weight of size {list(w.shape)}"
        )
    if 0 in w.shape:
        raise ShapeError(f"{name}: weight must not be empty, but is of size {list(w.shape)}")
    if w.dtype != x.dtype:
        raise DTypeError(
            f"{name}: Input type ({x.dtype}) and weight type ({w.dtype}) should be the same: "
            "convert one with .to(dtype)"
        )
    return w


def _pads(
    name: str, padding: Any, strides: Sizes, dilations: Sizes, kernel: Sizes
) -> tuple[tuple[int, int], ...]:
    rank = len(kernel)
    if not isinstance(padding, str):
        return tuple([(p, p) for p in per_dim(name, "padding", padding, rank, 0)])
    if padding == "valid":
        return ((0, 0),) * rank
    if padding != "same":
        raise ArgumentError(
            f"{name}: Invalid padding string: {padding!r}, should be one of 'valid', 'same'"
        )
    if max(strides) > 1:
        raise ArgumentError(f"{name}: padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
    return tuple([(total // 2, total - total // 2) for total in totals])


def _check_groups(name: str, groups: Any, shape: Sizes) -> None:
    if not isinstance(groups, int) or groups < 1:
        raise ArgumentError(f"{name}: non-positive groups is not supported: got {groups!r}")
    if shape[0] % groups:
        raise ShapeError(
            f"{name}: Given groups={groups}, expected weight to be divisible by {groups} at "
            f"dimension 0, but got weight of size {list(shape)} instead"
        )


def _add_bias(name: str, out: Tensor, bias: Operand | None, rank: int) -> Tensor:
    if bias is None:
        return out
    b = tensor_of(bias) if out._array.dtype.kind in "iu" else floating(bias)
    if b.shape != (out.shape[1],):
        raise ShapeError(
            f"{name}: expected bias to be 1-dimensional with {out.shape[1]} elements, but got bias "
            f"of size {list(b.shape)} instead"
        )
    if b.dtype != out.dtype:
        raise DTypeError(
            f"{name}: Input type ({out.dtype}) and bias type ({b.dtype}) should be the same: "
            "convert one with .to(dtype)"
        )
    return add_to_new(out, ops.reshape(b, (-1, *(1,) * rank)))


def _joined(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))
