"""Lanes: many arrays of one shape, side by side, that look like one of them.

What is mapped over, a function sees as an array without the mapped dimension. It's the first one of
`data`, whose length is the number of lanes; or 1, where all lanes are alike, as of what comes from
outside: then nothing is repeated, and what depends on nothing that is mapped is computed once.
"""

from __future__ import annotations

import itertools
import math
import operator
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.location import here
from chainrule.backend import CPU, is_known, whole
from chainrule.errors import AutogradError, InPlaceError

Array = Any  # of NumPy, of another library, a compiler's symbol, or lanes of a map around this one

Take = Callable[[Array], Array]

_depths = itertools.count(1)


def _all(data: Array) -> Array:
    return data


class Level:
    """One run of a mapped function: how many lanes it has; one within another is deeper.

    `outer` gives what an array is outside of it: a compiler's symbol, lanes of a map around.
    """

    __slots__ = ("count", "depth", "outer", "over")

    def __init__(self, count: int, outer: Take) -> None:
        self.count = count
        self.depth = next(_depths)
        self.outer = outer
        self.over = False  # the function has returned: passes go on, but no user's code


class BatchedArray(ArrayProxy):
    """Arrays of one shape and dtype, one for each lane of a level."""

    __slots__ = ("__weakref__", "_take", "_views", "base", "data", "level", "outside")

    __array_priority__ = 950.0  # arrays and symbols leave operators to lanes

    def __init__(self, level: Level, data: Array, *, outside: bool = False) -> None:
        self.level = level
        self.data = data
        self.base: BatchedArray | None = None  # whose memory this one shows
        self.outside = outside  # the memory is that of an array from outside the map
        self._take: Take = _all  # how it's taken from the base's data
        self._views: list[weakref.ref[BatchedArray]] = []  # that show this one's memory

    # --- what an array tells of itself ---

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.data.shape[1:]
        return shape

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def device(self) -> Any:
        return CPU if isinstance(self.data, np.ndarray) else self.data.device

    @property
    def ndim(self) -> int:
        ndim: int = self.data.ndim - 1
        return ndim

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def memory(self) -> Any:
        """The array whose memory this is."""
        return self.data

    @property
    def one(self) -> Any:
        """One of the lanes, for what they have in common: how their memory is laid out."""
        return self.data[0, ...] if self.data.shape[0] else self.data

    @property
    def flags(self) -> Any:
        return self.one.flags

    @property
    def strides(self) -> Any:
        return self.data.strides[1:]

    @property
    def real(self) -> Any:
        return self.namespace.real(self)

    @property
    def imag(self) -> Any:
        return self.namespace.imag(self)

    def __repr__(self) -> str:
        return f"<{self.level.count} lanes of {self.dtype} {list(self.shape)}: {self.data!r}>"

    # --- values: of all lanes, if they are alike ---

    @property
    def known(self) -> bool:
        """Whether elements can be looked at."""
        return self.data.shape[0] == 1 and is_known(self.data)

    @property
    def whole(self) -> Array:
        """The elements of all lanes, with their dimension in front."""
        return whole(self.data)

    def _alike(self) -> Array:
        if self.data.shape[0] == 1:
            return self.data[0]
        place = here()
        if self.level.over:
            raise AutogradError(
                "vmap: a tensor of a mapped function was kept, and asked for a value after the "
                f"function had returned{'' if place is None else f', at {place}'}: it has one for "
                "each example. Return it from the function"
            )
        raise AutogradError(
            "vmap: a value was asked for, which each lane has another of"
            f"{'' if place is None else f', at {place}'}: bool(), item(), int(), float(), tolist() "
            "and numpy() have one answer. Choose with cr.where() in the place of `if`, or look at "
            "values outside"
        )

    def __bool__(self) -> bool:
        return bool(self._alike())

    def __int__(self) -> int:
        return int(self._alike())

    def __float__(self) -> float:
        return float(self._alike())

    def __complex__(self) -> complex:
        return complex(self._alike())

    def __index__(self) -> int:
        return operator.index(self._alike())

    def item(self, *at: Any) -> Any:
        return self._alike().item(*at)

    def tolist(self) -> Any:
        return self._alike().tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        found: bytes = self._alike().tobytes(order)
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._alike(), dtype, copy=copy)

    # --- memory ---

    def showing(self, take: Take) -> BatchedArray:
        """Return lanes that show a part of this memory, or of a copy, as `take` makes it."""
        found = BatchedArray(self.level, take(self.data))
        if isinstance(found.data, np.ndarray) and not np.may_share_memory(found.data, self.data):
            return found
        base = found.base = self if self.base is None else self.base
        found.outside = base.outside
        if base.data.shape[0] != self.level.count:
            before = self._take
            found._take = take if self.base is None else lambda data: take(before(data))
            base._views.append(weakref.ref(found))
        return found

    def check_own(self) -> None:
        """Raise if the memory is not the map's own: histories outside know of no writes inside."""
        if self.outside:
            raise InPlaceError(
                "vmap: inplace arithmetic is not possible in a mapped function on what was passed "
                "to it, or on a tensor from outside: clone() it and write to that, or write out of "
                "place"
            )

    def spread(self) -> None:
        """Give each lane memory of its own, before something is written that lanes differ in."""
        base = self if self.base is None else self.base
        if base.data.shape[0] == self.level.count:
            return
        xp = self.namespace.beneath(base.data)
        shape = (self.level.count, *base.data.shape[1:])
        base.data = laid_out(xp.broadcast_to(base.data, shape))
        views, base._views = base._views, []
        for view in [found for reference in views if (found := reference()) is not None]:
            view.data = view._take(base.data)

    def copy(self, order: str = "C") -> BatchedArray:
        return BatchedArray(self.level, self.data.copy(order))

    def view(self, dtype: Any) -> BatchedArray:
        return self.showing(lambda data: data.view(dtype))

    def reshape(self, *shape: Any, copy: bool | None = None) -> Any:
        shape = tuple(shape[0]) if isinstance(shape[0], tuple | list) else shape
        return self.namespace.reshape(self, shape, copy=copy)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        axes = (axis1 % self.ndim + 1, axis2 % self.ndim + 1)
        return self.showing(lambda data: data.diagonal(offset, *axes))


def laid_out(data: Array, front: int = 1) -> Array:
    """Return a copy in which lanes lie one behind the other, and each as it lay.

    So what reshapes one is a view where it is one of a single example. `front` are the dimensions
    of lanes.
    """
    if isinstance(data, BatchedArray):
        return BatchedArray(data.level, laid_out(data.data, front + 1))
    if not isinstance(data, np.ndarray):
        return BatchedArray.namespace.beneath(data).array(data)
    rest = sorted(range(front, data.ndim), key=lambda i: -abs(data.strides[i]))
    order = [*range(front), *rest]
    made = np.empty([data.shape[i] for i in order], data.dtype)
    made[...] = data.transpose(order)
    return made.transpose(np.argsort(order))
