"""Layers that change shapes and sizes, and distances of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.nn import functional as F
from chainrule.nn.modules.layer import FunctionLayer

__all__ = [
    "ChannelShuffle",
    "CosineSimilarity",
    "Flatten",
    "Fold",
    "PairwiseDistance",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unflatten",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]

Sizes = int | Sequence[int]


class Flatten(FunctionLayer):
    """Join consecutive dimensions, all but the first by default.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.Flatten()(cr.rand(8, 3, 5, 5)).shape
    (8, 75)
    """

    function = ops.flatten
    start_dim: int = 1
    end_dim: int = -1


class Unflatten(FunctionLayer):
    """Split one dimension into several.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.Unflatten(1, (3, 5))(cr.rand(8, 15)).shape
    (8, 3, 5)
    """

    function = ops.unflatten
    dim: int
    unflattened_size: Sequence[int]

    def forward(self, input: Tensor) -> Any:
        """Return the input in its new shape."""
        return ops.unflatten(input, self.dim, self.unflattened_size)


class Fold(FunctionLayer):
    """Sum blocks into an image: see `nn.functional.fold`."""

    function = F.fold
    output_size: Sizes
    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


class Unfold(FunctionLayer):
    """Return the blocks of an image as columns: see `nn.functional.unfold`."""

    function = F.unfold
    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


class PixelShuffle(FunctionLayer):
    """Turn channels into pixels of a larger image: see `nn.functional.pixel_shuffle`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.PixelShuffle(2)(cr.rand(8, 12, 5, 5)).shape
    (8, 3, 10, 10)
    """

    function = F.pixel_shuffle
    upscale_factor: int


class PixelUnshuffle(FunctionLayer):
    """Turn pixels into channels of a smaller image: see `nn.functional.pixel_unshuffle`."""

    function = F.pixel_unshuffle
    downscale_factor: int


class ChannelShuffle(FunctionLayer):
    """Interleave groups of channels: see `nn.functional.channel_shuffle`."""

    function = F.channel_shuffle
    groups: int


class Upsample(FunctionLayer):
    """Resize by interpolation, to a size or by a factor: see `nn.functional.interpolate`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.Upsample(scale_factor=2, mode="nearest")(cr.rand(8, 3, 5, 5)).shape
    (8, 3, 10, 10)
    """

    function = F.interpolate
    size: Any = None
    scale_factor: Any = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None

    def _convert(self) -> None:
        factor = self.scale_factor
        if factor is not None:
            several = isinstance(factor, Sequence)
            self.scale_factor = tuple(map(float, factor)) if several else float(factor)

    def extra_repr(self) -> str:
        """Return the size or the factor, and the mode."""
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={getattr(self, name)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images to the nearest value."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images by bilinear interpolation, with aligned corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class CosineSimilarity(FunctionLayer):
    """The cosine of the angle of pairs: see `nn.functional.cosine_similarity`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.CosineSimilarity(dim=-1)(cr.tensor([1.0, 0.0]), cr.tensor([1.0, 1.0]))
    tensor(0.7071)
    """

    function = F.cosine_similarity
    _shown = ()
    dim: int = 1
    eps: float = 1e-8


class PairwiseDistance(FunctionLayer):
    """The distance of pairs: see `nn.functional.pairwise_distance`."""

    function = F.pairwise_distance
    _shown = ()
    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False

    @property
    def norm(self) -> float:
        """PyTorch's name of `p`."""
        return self.p
