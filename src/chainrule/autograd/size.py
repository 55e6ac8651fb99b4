"""Shapes as PyTorch has them: tuples of sizes that know the number of elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any, cast

from chainrule.errors import ArgumentTypeError, OutOfBoundsError


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
        if dim is None:
            return as_size(Size, self.shape)
        ndim = len(self.shape)
        if not -ndim <= dim < ndim:
            first = ": the first dimension is 0" if dim == ndim else ""
            raise OutOfBoundsError(
                f"size(): Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}],"
                f" but got {dim}){first}"
            )
        return self.shape[dim]

    def __getitem__(self, key: Any) -> Any:
        raise ArgumentTypeError(
            "x.size is the number of elements, and called the shape: write "
            f"x.shape[{key!r}] or x.size({key!r})"
        )
