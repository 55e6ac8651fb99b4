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
    """Join consecutive dimensions, all but the first by default."""

    function = ops.flatten
    start_dim: int = 1
    end_dim: int = -1


class Unflatten(FunctionLayer):
    """Split one dimension into several."""

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
    """Turn channels into pixels of a larger image: see `nn.functional.pixel_shuffle`."""

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
    """Resize by interpolation, to a size or by a factor: see `nn.functional.interpolate`."""

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
    """The cosine of the angle of pairs: see `nn.functional.cosine_similarity`."""

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
