"""Padding layers: constants, reflections, copies of the border, and periodic continuation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from chainrule.arguments import Operand
from chainrule.autograd.tensor import Tensor
from chainrule.nn import functional as F
from chainrule.nn.modules.layer import repeated
from chainrule.nn.modules.module import Module

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """A layer that pads the last dimensions.

    Parameters
    ----------
    padding : int or sequence of int
        On all sides, or before and after each dimension, the last one first.
    """

    mode: ClassVar[str] = "constant"
    ndim: ClassVar[int]
    value: Any = None

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = repeated(padding, 2 * self.ndim)

    def forward(self, input: Operand) -> Tensor:
        """Return the padded input."""
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """Return the padding."""
        return str(self.padding)


class _ConstantPad(_Pad):
    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """Return the padding and its value."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_Pad):
    value = 0.0


class _ReflectionPad(_Pad):
    mode = "reflect"


class _ReplicationPad(_Pad):
    mode = "replicate"


class _CircularPad(_Pad):
    mode = "circular"


class ZeroPad1d(_ZeroPad):
    """Zeros around the last dimension."""

    ndim = 1


class ZeroPad2d(_ZeroPad):
    """Zeros around the last two dimensions.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.ZeroPad2d(1)(cr.rand(8, 3, 5, 5)).shape
    (8, 3, 7, 7)
    """

    ndim = 2


class ZeroPad3d(_ZeroPad):
    """Zeros around the last three dimensions."""

    ndim = 3


class ConstantPad1d(_ConstantPad):
    """A constant around the last dimension."""

    ndim = 1


class ConstantPad2d(_ConstantPad):
    """A constant around the last two dimensions."""

    ndim = 2


class ConstantPad3d(_ConstantPad):
    """A constant around the last three dimensions."""

    ndim = 3


class ReflectionPad1d(_ReflectionPad):
    """The values mirrored at the border around the last dimension."""

    ndim = 1


class ReflectionPad2d(_ReflectionPad):
    """The values mirrored at the border around the last two dimensions."""

    ndim = 2


class ReflectionPad3d(_ReflectionPad):
    """The values mirrored at the border around the last three dimensions."""

    ndim = 3


class ReplicationPad1d(_ReplicationPad):
    """Copies of the border around the last dimension."""

    ndim = 1


class ReplicationPad2d(_ReplicationPad):
    """Copies of the border around the last two dimensions."""

    ndim = 2


class ReplicationPad3d(_ReplicationPad):
    """Copies of the border around the last three dimensions."""

    ndim = 3


class CircularPad1d(_CircularPad):
    """The values of the other end around the last dimension."""

    ndim = 1


class CircularPad2d(_CircularPad):
    """The values of the other end around the last two dimensions."""

    ndim = 2


class CircularPad3d(_CircularPad):
    """The values of the other end around the last three dimensions."""

    ndim = 3
