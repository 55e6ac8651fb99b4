"""einops on tensors: its functions under their own names, and its layers as modules of `nn`.

einops finds the backend of an array among the subclasses of its `AbstractBackend`: from the import
of this module on, its own functions take tensors, too::

    from chainrule.compat.einops import Rearrange, rearrange  # for einops and einops.layers.torch
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from einops import asnumpy, einsum, pack, parse_shape, rearrange, reduce, repeat, unpack
from einops._backends import AbstractBackend  # whose subclasses einops looks through
from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

import chainrule as cr
from chainrule import nn
from chainrule.autograd.tensor import Tensor

__all__ = [
    "EinMix",
    "Rearrange",
    "Reduce",
    "asnumpy",
    "einsum",
    "pack",
    "parse_shape",
    "rearrange",
    "reduce",
    "repeat",
    "unpack",
]


class _TensorBackend(AbstractBackend):
    """What einops asks of a library of arrays."""

    framework_name = "chainrule"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: Any) -> Tensor:
        return cr.from_numpy(x)

    def to_numpy(self, x: Tensor) -> Any:
        return x.detach().cpu().numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        return cr.arange(start, stop)

    def transpose(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        return x.permute(tuple(axes))

    def reduce(self, x: Tensor, operation: str, axes: Sequence[int]) -> Tensor:
        if operation != "prod":
            return _REDUCTIONS[operation](x, dim=tuple(axes))
        for axis in sorted(axes, reverse=True):
            x = x.prod(dim=axis)
        return x

    def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
        return cr.stack(tensors)

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        return x.unsqueeze(new_position)

    def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Tensor:
        sizes = [-1] * n_axes
        for position, size in pos2len.items():
            x = x.unsqueeze(position)
            sizes[position] = size
        return x.expand(sizes)

    def tile(self, x: Tensor, repeats: Sequence[int]) -> Tensor:
        return x.tile(tuple(repeats))

    def concat(self, tensors: list[Tensor], axis: int) -> Tensor:
        return cr.cat(tensors, dim=axis)

    def is_float_type(self, x: Tensor) -> bool:
        return x.is_floating_point() or x.is_complex()

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        return cr.einsum(pattern, *x)


_REDUCTIONS: dict[str, Callable[..., Tensor]] = {
    **{"sum": cr.sum, "mean": cr.mean, "min": cr.amin, "max": cr.amax},
    **{"any": cr.any, "all": cr.all},
}
"""The reductions over several axes by einops's names."""


class Rearrange(RearrangeMixin, nn.Module):
    """A layer that rearranges the axes of its input: see :func:`einops.rearrange`.

    Parameters
    ----------
    pattern : str
        The axes before and after ``->``; those in parentheses are one axis of the tensor.
    **axes_lengths : int
        Sizes of axes that the shape of the input does not tell.

    Raises
    ------
    einops.EinopsError
        If the pattern is wrong, or the input does not fit it.

    Examples
    --------
    >>> flatten = Rearrange("b c h w -> b (c h w)")
    >>> flatten(cr.zeros(2, 3, 4, 5)).shape
    (2, 60)
    """

    def __init__(self, pattern: str, **axes_lengths: int) -> None:
        RearrangeMixin.__init__(self, pattern, **axes_lengths)

    def forward(self, input: Tensor) -> Tensor:
        found: Tensor = self._apply_recipe(input)
        return found


class Reduce(ReduceMixin, nn.Module):
    """A layer that reduces axes of its input: see :func:`einops.reduce`.

    Parameters
    ----------
    pattern : str
        The axes before and after ``->``: those that are missing after it are reduced.
    reduction : {"min", "max", "sum", "mean", "prod", "any", "all"}
        How to reduce.
    **axes_lengths : int
        Sizes of axes that the shape of the input does not tell.

    Raises
    ------
    einops.EinopsError
        If the pattern is wrong, or the input does not fit it.

    Examples
    --------
    >>> pool = Reduce("b c (h 2) (w 2) -> b c h w", "max")
    >>> pool(cr.zeros(2, 3, 4, 6)).shape
    (2, 3, 2, 3)
    """

    def __init__(self, pattern: str, reduction: str, **axes_lengths: int) -> None:
        ReduceMixin.__init__(self, pattern, reduction, **axes_lengths)

    def forward(self, input: Tensor) -> Tensor:
        found: Tensor = self._apply_recipe(input)
        return found


class EinMix(_EinmixMixin, nn.Module):
    """A linear layer over named axes: an einsum of its input with a weight, and a bias.

    Parameters
    ----------
    pattern : str
        The axes of the input, ``->``, and those of the result.
    weight_shape : str
        The axes of the weight.
    bias_shape : str, optional
        The axes of the bias; without it there is none.
    **axes_lengths : int
        The sizes of the axes of weight and bias.

    Raises
    ------
    einops.EinopsError
        If the patterns are wrong, or sizes are missing.

    Examples
    --------
    >>> layer = EinMix("b i -> b o", "i o", bias_shape="o", i=3, o=2)
    >>> layer(cr.zeros(5, 3)).shape
    (5, 2)
    """

    def __init__(
        self, pattern: str, weight_shape: str, bias_shape: str | None = None, **axes_lengths: int
    ) -> None:
        _EinmixMixin.__init__(self, pattern, weight_shape, bias_shape, **axes_lengths)

    def _create_parameters(
        self,
        weight_shape: list[int],
        weight_bound: float,
        bias_shape: list[int] | None,
        bias_bound: float,
    ) -> None:
        self.weight = nn.Parameter(_uniform(weight_shape, weight_bound))
        self.bias = nn.Parameter(_uniform(bias_shape, bias_bound)) if bias_shape else None

    def _create_rearrange_layers(
        self,
        pre_reshape_pattern: str | None,
        pre_reshape_lengths: dict[str, int] | None,
        post_reshape_pattern: str | None,
        post_reshape_lengths: dict[str, int] | None,
    ) -> None:
        self.pre_rearrange = _rearranging(pre_reshape_pattern, pre_reshape_lengths)
        self.post_rearrange = _rearranging(post_reshape_pattern, post_reshape_lengths)

    def forward(self, input: Tensor) -> Tensor:
        if self.pre_rearrange is not None:
            input = self.pre_rearrange(input)
        result = cr.einsum(self.einsum_pattern, input, self.weight)
        if self.bias is not None:
            result = result + self.bias
        return result if self.post_rearrange is None else self.post_rearrange(result)


def _uniform(shape: list[int], bound: float) -> Tensor:
    return cr.empty(shape).uniform_(-bound, bound)


def _rearranging(pattern: str | None, lengths: dict[str, int] | None) -> Rearrange | None:
    return None if pattern is None else Rearrange(pattern, **(lengths or {}))
