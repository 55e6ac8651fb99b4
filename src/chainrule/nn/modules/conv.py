"""Convolutions of one to three spatial dimensions, and their transposes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from chainrule.arguments import DeviceLike, DTypeLike, Operand
from chainrule.autograd.tensor import Tensor
from chainrule.creation import empty
from chainrule.errors import ArgumentError
from chainrule.nn import functional as F
from chainrule.nn.modules.layer import repeated
from chainrule.nn.modules.lazy import LazyModuleMixin
from chainrule.nn.modules.linear import draw_uniform
from chainrule.nn.modules.module import Module
from chainrule.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """The settings and parameters of convolutions and their transposes."""

    convolve: ClassVar[Callable[..., Tensor]]
    ndim: ClassVar[int]  # spatial dimensions
    transposed: ClassVar[bool] = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int],
        padding: int | Sequence[int] | str,
        dilation: int | Sequence[int],
        output_padding: int | Sequence[int],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: DeviceLike,
        dtype: DTypeLike,
    ) -> None:
        super().__init__()
        name, n = type(self).__name__, self.ndim
        if groups <= 0:
            raise ArgumentError(f"{name}: groups must be a positive integer, got {groups}")
        for title, count in (("in_channels", in_channels), ("out_channels", out_channels)):
            if count % groups:
                raise ArgumentError(
                    f"{name}: {title} must be divisible by groups, got {count} and {groups}"
                )
        modes = _PADDING_MODES[:1] if self.transposed else _PADDING_MODES
        if padding_mode not in modes:
            raise ArgumentError(f"{name}: padding_mode is one of {modes}, got {padding_mode!r}")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = repeated(kernel_size, n), repeated(stride, n)
        self.padding = padding if isinstance(padding, str) else repeated(padding, n)
        self.dilation = repeated(dilation, n)
        self.output_padding = repeated(output_padding, n)
        self.groups, self.padding_mode = groups, padding_mode
        channels = (out_channels, in_channels // groups)
        if self.transposed:
            channels = (in_channels, out_channels // groups)
        shape = (*channels, *self.kernel_size)
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters again, uniformly between ±1/√(inputs of one unit)."""
        draw_uniform(self, math.prod(self.weight.shape[1:]))

    def extra_repr(self) -> str:
        """Return the settings that aren't the usual ones."""
        n = self.ndim
        zeros, ones = (0,) * n, (1,) * n
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        for name, usual in (("padding", zeros), ("dilation", ones), ("output_padding", zeros)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    """A convolution.

    Parameters
    ----------
    in_channels, out_channels : int
        The channels of inputs and outputs.
    kernel_size, stride, dilation : int or sequence of int
        For all spatial dimensions, or for each.
    padding : int, sequence of int, 'same' or 'valid'
        Added on both sides of each dimension.
    groups : int, default 1
        The number of parts of the channels that are convolved separately.
    bias : bool, default True
        Whether there is a bias.
    padding_mode : {'zeros', 'reflect', 'replicate', 'circular'}
        The values of the padding.
    device, dtype
        Of the parameters.

    Attributes
    ----------
    weight : Parameter, shape (out_channels, in_channels / groups, *kernel_size)
    bias : Parameter, shape (out_channels,), or None
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        sizes = kernel_size, stride, padding, dilation, 0
        rest = groups, bias, padding_mode, device, dtype
        super().__init__(in_channels, out_channels, *sizes, *rest)

    def _around(self) -> list[int]:
        """Return the padding before and after each dimension, the last one first."""
        if self.padding == "valid":
            return [0, 0] * self.ndim
        around = []
        for i in reversed(range(self.ndim)):
            if self.padding == "same":
                total = self.dilation[i] * (self.kernel_size[i] - 1)
                around += [total // 2, total - total // 2]
            else:
                around += [self.padding[i]] * 2
        return around

    def forward(self, input: Operand) -> Tensor:
        """Return the convolution of the input."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Operand, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return the convolution by another weight: layers of users call it, as in PyTorch."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._around(), mode=self.padding_mode), 0
        settings = self.stride, padding, self.dilation, self.groups
        return type(self).convolve(input, weight, bias, *settings)


class Conv1d(_Conv):
    """A convolution of sequences, of shape (n, c, l) or (c, l): see `nn.functional.conv1d`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.Conv1d(3, 4, kernel_size=3, padding=1)(cr.rand(8, 3, 10)).shape
    (8, 4, 10)
    """

    convolve, ndim = F.conv1d, 1


class Conv2d(_Conv):
    """A convolution of images, of shape (n, c, h, w) or (c, h, w): see `nn.functional.conv2d`.

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = cr.nn.Conv2d(3, 8, kernel_size=3, padding=1)
    >>> layer
    Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    >>> layer(cr.ones(2, 3, 5, 5)).shape
    (2, 8, 5, 5)
    """

    convolve, ndim = F.conv2d, 2


class Conv3d(_Conv):
    """A convolution of volumes, of shape (n, c, d, h, w): see `nn.functional.conv3d`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.Conv3d(1, 2, kernel_size=3)(cr.rand(8, 1, 5, 6, 7)).shape
    (8, 2, 3, 4, 5)
    """

    convolve, ndim = F.conv3d, 3


class _ConvTranspose(_ConvNd):
    """A transposed convolution: the derivative of a convolution by its input.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, groups, bias, dilation, device, dtype
        Those of the convolution, whose outputs are inputs here.
    output_padding : int or sequence of int, default 0
        Added to one side of the output's shape, which the stride leaves open.
    padding_mode : 'zeros'
        No other.

    Attributes
    ----------
    weight : Parameter, shape (in_channels, out_channels / groups, *kernel_size)
    bias : Parameter, shape (out_channels,), or None
    """

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        sizes = kernel_size, stride, padding, dilation, output_padding
        rest = groups, bias, padding_mode, device, dtype
        super().__init__(in_channels, out_channels, *sizes, *rest)

    def forward(self, input: Operand, output_size: Sequence[int] | None = None) -> Tensor:
        """Return the transposed convolution, of a given spatial shape if that is asked for."""
        extra = self.output_padding
        if output_size is not None:
            extra = self._extra(input, tuple(output_size)[-self.ndim :])
        settings: Any = self.stride, self.padding, extra, self.groups, self.dilation
        return type(self).convolve(input, self.weight, self.bias, *settings)

    def _extra(self, input: Any, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output padding that gives a shape."""
        if len(wanted) != self.ndim:
            raise ArgumentError(
                f"{type(self).__name__}: output_size must have {self.ndim} elements, got {wanted}"
            )
        padding: Any = self.padding
        least = tuple(
            (input.shape[i - self.ndim] - 1) * self.stride[i]
            - 2 * padding[i]
            + self.dilation[i] * (self.kernel_size[i] - 1)
            + 1
            for i in range(self.ndim)
        )
        most = tuple(low + stride - 1 for low, stride in zip(least, self.stride, strict=True))
        if any(
            not low <= size <= high for low, size, high in zip(least, wanted, most, strict=True)
        ):
            raise ArgumentError(
                f"{type(self).__name__}: requested an output size of {wanted}, but valid sizes "
                f"range from {least} to {most} (for an input of {tuple(input.shape)})"
            )
        return tuple(size - low for low, size in zip(least, wanted, strict=True))


class ConvTranspose1d(_ConvTranspose):
    """A transposed convolution of sequences: see `nn.functional.conv_transpose1d`."""

    convolve, ndim = F.conv_transpose1d, 1


class ConvTranspose2d(_ConvTranspose):
    """A transposed convolution of images: see `nn.functional.conv_transpose2d`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.ConvTranspose2d(4, 3, kernel_size=2, stride=2)(cr.rand(8, 4, 5, 5)).shape
    (8, 3, 10, 10)
    """

    convolve, ndim = F.conv_transpose2d, 2


class ConvTranspose3d(_ConvTranspose):
    """A transposed convolution of volumes: see `nn.functional.conv_transpose3d`."""

    convolve, ndim = F.conv_transpose3d, 3


class _LazyConv(LazyModuleMixin):
    """A convolution, or a transposed one, that gets `in_channels` from its first input."""

    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    groups: int
    ndim: ClassVar[int]
    transposed: ClassVar[bool]
    weight: Any
    bias: Any

    def __init__(
        self,
        out_channels: int,
        kernel_size: int | Sequence[int],
        *args: Any,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        **kwargs: Any,
    ) -> None:
        # The arguments are those of the convolution, without in_channels.
        named = dict(zip(_ORDER[self.transposed], args, strict=False))
        bias = named.pop("bias", bias)
        device, dtype = named.pop("device", device), named.pop("dtype", dtype)
        settings: dict[str, Any] = {**named, **kwargs}
        super().__init__(0, 0, kernel_size, bias=False, **settings)
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the parameters again, if they have a shape."""
        if not self.has_uninitialized_params() and self.in_channels:
            super().reset_parameters()  # type: ignore[misc]  # of the convolution

    def initialize_parameters(self, input: Tensor, *args: Any) -> None:
        """Set the shapes of the parameters by an input."""
        if self.has_uninitialized_params():
            self.in_channels = input.shape[-self.ndim - 1]
            for title in ("in_channels", "out_channels"):
                if getattr(self, title) % self.groups:
                    raise ArgumentError(
                        f"{type(self).__name__}: {title} must be divisible by groups, got "
                        f"{getattr(self, title)} and {self.groups}"
                    )
            first, second = self.out_channels, self.in_channels
            if self.transposed:
                first, second = second, first
            self.weight.materialize((first, second // self.groups, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()
        channels = self.weight.shape[not self.transposed]
        self.in_channels = channels if self.transposed else channels * self.groups


_COMMON = ("bias", "padding_mode", "device", "dtype")
_ORDER = {
    False: ("stride", "padding", "dilation", "groups", *_COMMON),
    True: ("stride", "padding", "output_padding", "groups", "bias", "dilation", *_COMMON[1:]),
}
"""Positional arguments after kernel_size, by whether the convolution is transposed."""


class LazyConv1d(_LazyConv, Conv1d):
    """A `Conv1d` without `in_channels`, which the first input tells."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A `Conv2d` without `in_channels`, which the first input tells.

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = cr.nn.LazyConv2d(8, 3)
    >>> layer(cr.ones(1, 2, 5, 5)).shape, layer.weight.shape
    ((1, 8, 3, 3), (8, 2, 3, 3))
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A `Conv3d` without `in_channels`, which the first input tells."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConv, ConvTranspose1d):
    """A `ConvTranspose1d` without `in_channels`, which the first input tells."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConv, ConvTranspose2d):
    """A `ConvTranspose2d` without `in_channels`, which the first input tells."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConv, ConvTranspose3d):
    """A `ConvTranspose3d` without `in_channels`, which the first input tells."""

    cls_to_become = ConvTranspose3d
