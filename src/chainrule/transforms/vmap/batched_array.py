"""Batched arrays: the arrays of all examples, with the shape of one.

A function under `vmap` sees an array without the batch axis. That is the first axis of `data`; its
length is the number of examples, or 1 where all examples share the values, as arrays from outside
do. So nothing is repeated, and whatever doesn't depend on a batched argument is computed once.
"""

from __future__ import annotations

import itertools
import math
import operator
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.conversions import asked_for_value
from chainrule.autograd.remarks import STRICT, Told
from chainrule.autograd.reverse import BackwardPass
from chainrule.backend import CPU, is_known, namespace, numpy_xp, whole
from chainrule.errors import AutogradError, InPlaceError

Array = Any  # of NumPy, of another library, a compiler's symbol, or batched by an outer vmap

Take = Callable[[Array], Array]

_depths = itertools.count(1)


def next_depth() -> int:
    """Return a number larger than the depth of each level so far, and smaller than later ones."""
    return next(_depths)


def _all(data: Array) -> Array:
    return data


def _is_copy(found: Array, data: Array) -> bool:
    """Return whether two arrays are known to have memory of their own."""
    if isinstance(found, np.ndarray):
        return not np.may_share_memory(found, data)
    xp = namespace(found)
    return getattr(xp, "waits", False) and not xp.may_share_memory(found, data)


class Owner(NamedTuple):
    """The transform and function of a run, without the function: the graph must not keep it."""

    title: str
    told: Told
    strict: bool


class Level:
    """One run of a function under vmap, with its number of examples; nested runs are deeper.

    `outer` converts an array to the form it has outside the run: a symbol, an array that an outer
    vmap has batched. `xp` makes arrays of numbers: NumPy, or CuPy where arguments are on a GPU.
    """

    __slots__ = ("count", "depth", "finished", "outer", "owner", "strict", "xp")

    def __init__(self, count: int, outer: Take, owner: Owner) -> None:
        self.count = count
        self.owner = owner
        self.strict = owner.strict or STRICT.get()  # also for backward passes that run later
        self.depth = next_depth()
        self.outer = outer
        self.xp = numpy_xp
        self.finished = False  # the function has returned; backward passes may still run


class BatchedArray(ArrayProxy):
    """Arrays of one shape and dtype, one for each example of a level."""

    __slots__ = ("__weakref__", "_take", "_views", "base", "data", "level", "outside")

    __array_priority__ = 950.0  # arrays and symbols leave operators to batched arrays

    def __init__(self, level: Level, data: Array, *, outside: bool = False) -> None:
        self.level = level
        self.data = data
        self.base: BatchedArray | None = None  # the owner of the memory, if this is a view
        self.outside = outside  # the memory belongs to an array from outside vmap
        self._take: Take = _all  # makes the view from the base's data
        self._views: list[weakref.ref[BatchedArray]] = []  # views of this array's memory

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels, from this one outwards."""
        return self.level, *getattr(self.data, "levels", ())

    def at_levels(self, levels: tuple[Level, ...]) -> BatchedArray:
        """Return the same arrays as those of other runs, one for each of `levels`."""
        data = self.data.at_levels(levels[1:]) if len(levels) > 1 else self.data
        return BatchedArray(levels[0], data)

    # --- shape, dtype and memory layout ---

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
        """The array that owns the memory."""
        return self.data

    @property
    def example(self) -> Any:
        """The array of one example, for the memory layout, which all share."""
        return self.data[0, ...] if self.data.shape[0] else self.data

    @property
    def flags(self) -> Any:
        return self.example.flags

    @property
    def strides(self) -> Any:
        return self.data.strides[1:]

    @property
    def ctypes(self) -> Any:
        raise AutogradError(
            "vmap: the examples are at different places in memory: read addresses and offsets "
            "outside, and leave out storage_offset"
        )

    @property
    def real(self) -> Any:
        return self.make_view(lambda data: data.real)

    @property
    def imag(self) -> Any:
        return self.make_view(lambda data: data.imag)

    def __repr__(self) -> str:
        return f"<batch of {self.level.count} {self.dtype} {list(self.shape)}: {self.data!r}>"

    # --- values, where all examples share them ---

    @property
    def known(self) -> bool:
        """Whether elements can be read."""
        return self.data.shape[0] == 1 and is_known(self.data)

    @property
    def is_unknown_mask(self) -> bool:
        if isinstance(self.data, ArrayProxy) and self.data.shape[0] == 1:
            return self.data.is_unknown_mask  # within a trace, which may know it
        return super().is_unknown_mask and not self.known

    @property
    def known_elements(self) -> Any:
        """The array that all examples share, if a trace knows its elements."""
        found = getattr(self.data, "known_elements", None) if self.data.shape[0] == 1 else None
        return None if found is None else found[0]

    def has_same_elements(self, other: ArrayProxy) -> bool:
        if not isinstance(other, BatchedArray) or self.level is not other.level:
            return False
        mine, others = self.data, other.data
        if isinstance(mine, ArrayProxy):
            return mine.has_same_elements(others)
        return isinstance(others, np.ndarray) and np.array_equal(mine, others)

    @property
    def whole(self) -> Array:
        """The elements of all examples, batch axis first."""
        return whole(self.data)

    def _shared_value(self) -> Array:
        if self.data.shape[0] == 1:
            return self.data[0]
        asked, mend = asked_for_value(sys._getframe(1))
        if self.level.finished:
            raise AutogradError(_KEPT.format("its value was asked for", asked))
        raise AutogradError(
            "vmap: a value was asked for that differs between examples, "
            f"{asked}: bool(), item(), int(), float(), tolist() and numpy() return one value. "
            + (mend or "Use cr.where() instead of `if`, or read values outside of vmap")
        )

    def check_kept(self) -> None:
        """Raise if the function has returned; a backward pass may still run."""
        if self.level.finished and not _is_in_pass(sys._getframe(1)):
            asked, _ = asked_for_value(sys._getframe(1))
            raise AutogradError(_KEPT.format("it was used", asked))

    def __bool__(self) -> bool:
        return bool(self._shared_value())

    def __int__(self) -> int:
        return int(self._shared_value())

    def __float__(self) -> float:
        return float(self._shared_value())

    def __complex__(self) -> complex:
        return complex(self._shared_value())

    def __index__(self) -> int:
        return operator.index(self._shared_value())

    def item(self, *at: Any) -> Any:
        return self._shared_value().item(*at)

    def tolist(self) -> Any:
        return self._shared_value().tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        found: bytes = self._shared_value().tobytes(order)
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._shared_value(), dtype, copy=copy)

    # --- memory ---

    def make_view(self, take: Take) -> BatchedArray:
        """Return ``take(data)`` as a view of this memory, or as a copy if `take` copies."""
        found = BatchedArray(self.level, take(self.data))
        if _is_copy(found.data, self.data):
            return found
        base = found.base = self if self.base is None else self.base
        found.outside = base.outside
        if base.data.shape[0] != self.level.count:
            before = self._take
            found._take = take if self.base is None else lambda data: take(before(data))
            base._views.append(weakref.ref(found))
        return found

    def with_axes(self, at: int, count: int) -> BatchedArray:
        """Return the arrays with new axes of length 1, to be read: no view is kept track of."""
        data, at = self.data, at + 1
        if data.__class__ is BatchedArray:
            return BatchedArray(self.level, data.with_axes(at, count))
        return BatchedArray(self.level, data[(*(slice(None),) * at, *(None,) * count)])

    def check_writable(self) -> None:
        """Raise if the memory comes from outside: graphs there don't record writes inside."""
        if self.outside:
            raise InPlaceError(
                "vmap: inplace arithmetic is not possible in a mapped function on its arguments, "
                "or on a tensor from outside: write to a clone() of it, or compute out of place"
            )

    def materialize(self) -> None:
        """Give each example memory of its own, before a write that differs between examples."""
        base = self if self.base is None else self.base
        if base.data.shape[0] == self.level.count:
            return
        xp = self.namespace.inner_xp(base.data)
        shape = (self.level.count, *base.data.shape[1:])
        base.data = copy_batch_major(xp.broadcast_to(base.data, shape))
        views, base._views = base._views, []
        for view in [found for reference in views if (found := reference()) is not None]:
            view.data = view._take(base.data)

    def copy(self, order: str = "C") -> BatchedArray:
        return BatchedArray(self.level, self.data.copy(order))

    def view(self, dtype: Any) -> BatchedArray:
        return self.make_view(lambda data: data.view(dtype))

    def reshape(self, *shape: Any, copy: bool | None = None) -> Any:
        shape = tuple(shape[0]) if isinstance(shape[0], tuple | list) else shape
        return self.namespace.reshape(self, shape, copy=copy)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        axes = (axis1 % self.ndim + 1, axis2 % self.ndim + 1)
        return self.make_view(lambda data: data.diagonal(offset, *axes))


_KEPT = (
    "vmap: a tensor of a function under vmap was kept, and {} after the function had returned, {}: "
    "it has a value for each example. Return it from the function"
)


def _is_in_pass(frame: FrameType | None) -> bool:
    """Whether a frame runs in a backward pass, which calls rules of the user."""
    while frame is not None:
        if frame.f_code is BackwardPass.walk.__code__:
            return True
        frame = frame.f_back
    return False


def copy_batch_major(data: Array, front: int = 1) -> Array:
    """Return a copy that is contiguous along the batch axes, each example in its former order.

    So a reshape is a view wherever it is one for a single example. `front` is the number of batch
    axes.
    """
    if isinstance(data, BatchedArray):
        return BatchedArray(data.level, copy_batch_major(data.data, front + 1))
    xp: Any = numpy_xp if isinstance(data, np.ndarray) else namespace(data)
    if not (xp is numpy_xp or getattr(xp, "waits", False)):  # a symbol
        return xp.array(data)
    rest = sorted(range(front, data.ndim), key=lambda i: -abs(data.strides[i]))
    order = [*range(front), *rest]
    made = xp.empty(tuple([data.shape[i] for i in order]), dtype=data.dtype)
    made[...] = data.transpose(order)
    return made.transpose(np.argsort(order).tolist())
