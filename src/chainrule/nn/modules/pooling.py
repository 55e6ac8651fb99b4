"""Pooling layers: maxima, means and norms of windows, and the inverse of maxima."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from chainrule.arguments import Operand
from chainrule.autograd.tensor import Tensor
from chainrule.nn import functional as F
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
    """The maximum of each window of sequences: see `nn.functional.max_pool1d`."""

    function = F.max_pool1d
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False


class MaxPool2d(_Pool):
    """The maximum of each window of images: see `nn.functional.max_pool2d`."""

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
    """The mean of each window of images: see `nn.functional.avg_pool2d`."""

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
    """Means in an output of given size: see `nn.functional.adaptive_avg_pool2d`."""

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


class _Unpool(_Pool):
    """The inverse of max pooling with ``return_indices=True``: zeros elsewhere."""

    def forward(
        self, input: Operand, indices: Operand, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """Return the input at the indices, in an output of the given size."""
        values = self.__dict__
        sizes = values["kernel_size"], values["stride"], values["padding"]
        return type(self).function(input, indices, *sizes, output_size)  # type: ignore[no-any-return]


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
