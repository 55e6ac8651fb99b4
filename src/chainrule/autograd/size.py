"""Shapes as PyTorch has them: tuples of sizes that know the number of elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any, cast


class _AnyTuple(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, tuple)


class Size(tuple[int, ...], metaclass=_AnyTuple):
    """The shape of a tensor: a tuple of ints; all tuples are instances.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3).size().numel()
    6
    """

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements."""
        return prod(self)


# Without the call of the metaclass.
as_size: Callable[[type[Size], Iterable[int]], Size] = cast(Any, tuple.__new__)


class ShapeOrCount(int):
    """The number of elements, as the array API has it; called, the shape, as PyTorch has it."""

    shape: tuple[int, ...]

    def __call__(self, dim: int | None = None) -> Any:
        return as_size(Size, self.shape) if dim is None else self.shape[dim]
