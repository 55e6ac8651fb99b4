"""Pooling layers: maxima, means and norms of windows, and the inverse of maxima."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from chainrule.arguments import Operand
from chainrule.autograd.tensor import Tensor
from chainrule.nn import functional as F
from chainrule.nn.functional.fractional_pooling import output_sizes
from chainrule.nn.modules.layer import FunctionLayer, repeated

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]

Sizes = int | Sequence[int]


class _Pool(FunctionLayer):
    """A layer whose windows follow one another unless a stride is given."""

    _repeated: ClassVar[int] = 0  # sizes are kept as tuples of so many numbers

    def _convert(self) -> None:
        values = self.__dict__
        if values["stride"] is None:
            values["stride"] = values["kernel_size"]
        if self._repeated:
            for name in ("kernel_size", "stride", "padding"):
                values[name] = repeated(values[name], self._repeated)


class MaxPool1d(_Pool):
    """The maximum of each window of sequences: see `nn.functional.max_pool1d`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.MaxPool1d(2)(cr.tensor([[[1.0, 3.0, 2.0, 0.0]]]))
    tensor([[[3., 2.]]])
    """

    function = F.max_pool1d
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False


class MaxPool2d(_Pool):
    """The maximum of each window of images: see `nn.functional.max_pool2d`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.MaxPool2d(2)(cr.arange(16.0).reshape(1, 1, 4, 4))
    tensor([[[[ 5.,  7.],
              [13., 15.]]]])
    """

    function = F.max_pool2d
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False


class MaxPool3d(_Pool):
    """The maximum of each window of volumes: see `nn.functional.max_pool3d`."""

    function = F.max_pool3d
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False


class AvgPool1d(_Pool):
    """The mean of each window of sequences: see `nn.functional.avg_pool1d`."""

    function = F.avg_pool1d
    _shown = ("kernel_size", "stride", "padding")
    _repeated = 1
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True


class AvgPool2d(_Pool):
    """The mean of each window of images: see `nn.functional.avg_pool2d`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.AvgPool2d(2)(cr.arange(16.0).reshape(1, 1, 4, 4))
    tensor([[[[ 2.5000,  4.5000],
              [10.5000, 12.5000]]]])
    """

    function = F.avg_pool2d
    _shown = ("kernel_size", "stride", "padding")
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None


class AvgPool3d(_Pool):
    """The mean of each window of volumes: see `nn.functional.avg_pool3d`."""

    function = F.avg_pool3d
    _shown = ("kernel_size", "stride", "padding")
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None


class LPPool1d(FunctionLayer):
    """The p-norm of each window of sequences: see `nn.functional.lp_pool1d`."""

    function = F.lp_pool1d
    norm_type: float
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False


class LPPool2d(FunctionLayer):
    """The p-norm of each window of images: see `nn.functional.lp_pool2d`."""

    function = F.lp_pool2d
    norm_type: float
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False


class LPPool3d(FunctionLayer):
    """The p-norm of each window of volumes: see `nn.functional.lp_pool3d`."""

    function = F.lp_pool3d
    norm_type: float
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False


class AdaptiveMaxPool1d(FunctionLayer):
    """Maxima in an output of given size: see `nn.functional.adaptive_max_pool1d`."""

    function = F.adaptive_max_pool1d
    _shown = ("output_size",)
    output_size: Any
    return_indices: bool = False


class AdaptiveAvgPool1d(FunctionLayer):
    """Means in an output of given size: see `nn.functional.adaptive_avg_pool1d`."""

    function = F.adaptive_avg_pool1d
    output_size: Any


class AdaptiveMaxPool2d(FunctionLayer):
    """Maxima in an output of given size: see `nn.functional.adaptive_max_pool2d`."""

    function = F.adaptive_max_pool2d
    _shown = ("output_size",)
    output_size: Any
    return_indices: bool = False


class AdaptiveAvgPool2d(FunctionLayer):
    """Means in an output of given size: see `nn.functional.adaptive_avg_pool2d`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.AdaptiveAvgPool2d(1)(cr.rand(8, 3, 5, 7)).shape
    (8, 3, 1, 1)
    """

    function = F.adaptive_avg_pool2d
    output_size: Any


class AdaptiveMaxPool3d(FunctionLayer):
    """Maxima in an output of given size: see `nn.functional.adaptive_max_pool3d`."""

    function = F.adaptive_max_pool3d
    _shown = ("output_size",)
    output_size: Any
    return_indices: bool = False


class AdaptiveAvgPool3d(FunctionLayer):
    """Means in an output of given size: see `nn.functional.adaptive_avg_pool3d`."""

    function = F.adaptive_avg_pool3d
    output_size: Any


class _FractionalMaxPool(FunctionLayer):
    """A layer of windows of one size at random distances, in an output of given size or ratio."""

    function = F.fractional_max_pool2d
    _rank: ClassVar[int] = 2
    kernel_size: Sizes
    output_size: Sizes | None = None
    output_ratio: float | Sequence[float] | None = None
    return_indices: bool = False
    _random_samples: Any = None

    def _convert(self) -> None:
        values = self.__dict__
        values["kernel_size"] = repeated(values["kernel_size"], self._rank)
        size, ratio = values["output_size"], values["output_ratio"]
        output_sizes(type(self).__name__, (2,) * self._rank, size, ratio)  # checks them
        values["output_size"] = None if size is None else repeated(size, self._rank)
        values["output_ratio"] = None if ratio is None else repeated(ratio, self._rank)
        self._buffers["_random_samples"] = values["_random_samples"]

    def extra_repr(self) -> str:
        """Return nothing, as in PyTorch."""
        return ""


class FractionalMaxPool2d(_FractionalMaxPool):
    """Maxima of windows at random distances: see `nn.functional.fractional_max_pool2d`."""


class FractionalMaxPool3d(_FractionalMaxPool):
    """Maxima of windows at random distances: see `nn.functional.fractional_max_pool3d`."""

    function = F.fractional_max_pool3d
    _rank = 3


class _Unpool(_Pool):
    """The inverse of max pooling with ``return_indices=True``: zeros elsewhere."""

    def forward(
        self, input: Operand, indices: Operand, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """Return the input at the indices, in an output of the given size."""
        values = self.__dict__
        sizes = values["kernel_size"], values["stride"], values["padding"]
        found: Tensor = type(self).function(input, indices, *sizes, output_size)
        return found


class MaxUnpool1d(_Unpool):
    """The inverse of `MaxPool1d`: see `nn.functional.max_unpool1d`."""

    function = F.max_unpool1d
    _repeated = 1
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0


class MaxUnpool2d(_Unpool):
    """The inverse of `MaxPool2d`: see `nn.functional.max_unpool2d`."""

    function = F.max_unpool2d
    _repeated = 2
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0


class MaxUnpool3d(_Unpool):
    """The inverse of `MaxPool3d`: see `nn.functional.max_unpool3d`."""

    function = F.max_unpool3d
    _repeated = 3
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
