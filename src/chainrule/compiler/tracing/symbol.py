"""Symbols: what stands for arrays while a function is traced.

A symbol is a place in memory, as an array is: it can be written to, and it may be a view of
another. What it holds at a moment is a value of the program. A write makes a new value of the
whole; a view that was made before asks its base again. So aliasing means in a trace what it means
in NumPy, and the program that comes out knows nothing of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.location import here
from chainrule.backend import CPU
from chainrule.compiler.ir.program import Value
from chainrule.errors import CompileError

if TYPE_CHECKING:
    from chainrule.compiler.tracing.trace import Trace

# --- layout ---------------------------------------------------------------------------------------
#
# Where the elements of symbols are in memory, as far as is known: what is a view depends on it.
#
# NumPy is asked, on arrays of the same strides that have no memory, which are never read.

Strides = tuple[int, ...] | None  # None: not known
Layout = Callable[[Any], Any]


def in_order(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides of memory in C order."""
    strides, step = [], itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


def hollow(shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...]) -> Any:
    """Return an array of these strides, whose elements must not be read."""
    return np.lib.stride_tricks.as_strided(np.empty((), dtype), shape, strides)


def copied(array: Any, dtype: Any) -> tuple[int, ...]:
    """Return the strides of a copy of an array, which NumPy keeps in the order of the elements."""
    strides: tuple[int, ...] = np.empty_like(array, dtype).strides
    return strides


# --- symbol ---------------------------------------------------------------------------------------

TRACING: ContextVar[Trace | None] = ContextVar("chainrule trace", default=None)
"""The trace that runs in this thread or task."""


def note(matter: str) -> None:
    """Note in the trace that runs that something of memory mattered."""
    trace = TRACING.get()
    if trace is not None:
        trace.asked.add(matter)


Region = Callable[[Value], Value]
Replace = Callable[[Value, Value], Value]


class Flags:
    """What an array tells of its memory, asked of a symbol."""

    __slots__ = ("_symbol",)

    def __init__(self, symbol: Symbol) -> None:
        self._symbol = symbol

    def __getattr__(self, name: str) -> bool:
        note("layout")
        array = self._symbol.hollow()
        if array is None:
            raise CompileError(
                f"flags.{name}: in which order the elements of a result are in memory is not known "
                "in a compiled function: ask outside, or take contiguous()"
            )
        found: bool = getattr(array.flags, name)
        return found

    @property
    def writeable(self) -> bool:
        symbol: Symbol | None = self._symbol
        while symbol is not None and not symbol.locked:
            symbol = symbol._base
        return symbol is None

    @writeable.setter
    def writeable(self, value: bool) -> None:
        self._symbol.locked = not value


def outlived() -> CompileError:
    """Return the error of who computes with an array after the trace that it belonged to."""
    return CompileError(
        "an array of a compiled function outlived its compilation: it was kept in a list, a "
        "global or an attribute. Return it from the function instead"
    )


class Symbol(ArrayProxy):
    """An array of known shape and dtype and unknown elements."""

    __slots__ = (
        "__weakref__",
        "_base",
        "_replace",
        "_seen",
        "_take",
        "_value",
        "doubtful",
        "layout",
        "locked",
        "writes",
    )

    __array_priority__ = 900.0  # NumPy's scalars and arrays leave operators to symbols
    device = CPU

    _take: Region
    _replace: Replace | None
    _seen: int

    def __init__(self, value: Value, ordered: bool = True) -> None:
        self._value = value
        self._base: Symbol | None = None
        self.writes = 0
        self.layout: Strides = in_order(value.shape, value.dtype.itemsize) if ordered else None
        self.doubtful = self.locked = False  # locked: memory from outside that is read-only

    @classmethod
    def region(
        cls, base: Symbol, take: Region, replace: Replace | None, layout: Strides = None
    ) -> Symbol:
        """Return a symbol of a region of another's memory.

        `take` gives the region's value from the whole's; `replace` the whole's from the whole's
        before and the region's, or is None where the region can't be written to.
        """
        made = cls(take(base.value))
        made._base, made._take, made._replace = base, take, replace
        made._seen = base.stamp
        made.layout = layout
        return made

    def hollow(self) -> Any:
        """Return an array of the same strides, to be asked and not read; None if unknown."""
        if self.layout is None:
            return None
        return hollow(self.shape, self.dtype, self.layout)

    @property
    def ordered(self) -> bool:
        """Whether what a function makes of it is in C order for certain."""
        if self.layout is None:
            return False
        steps = [s for s, n in zip(self.layout, self.shape, strict=True) if s and n > 1]
        return all(a >= b > 0 for a, b in itertools.pairwise([*steps, 1]))

    @property
    def flags(self) -> Flags:
        return Flags(self)

    # --- memory ---

    @property
    def base(self) -> Symbol | None:
        """The symbol whose memory this one shows, as of an array."""
        base = self._base
        while base is not None and base._base is not None:
            base = base._base
        return base

    @property
    def stamp(self) -> int:
        """How often the memory was written to."""
        return self.writes if self._base is None else self._base.stamp

    @property
    def value(self) -> Value:
        """What the memory holds now."""
        if self._base is not None and self._seen != self._base.stamp:
            self._certain()
            self._value, self._seen = self._take(self._base.value), self._base.stamp
        return self._value

    def put(self, value: Value) -> None:
        """Write a value over all elements."""
        note("writes")
        if self._base is None and not self.locked:
            self._value = value
            self.writes += 1
            return
        self._certain()
        if self._base is None or self._replace is None or self.locked:
            raise ValueError("assignment destination is read-only")
        self._base.put(self._replace(self._base.value, value))
        self._value, self._seen = value, self._base.stamp

    def _certain(self) -> None:
        """Raise if this may be a view or a copy, and it matters."""
        if self.doubtful:
            raise CompileError(
                "reshape() of a tensor whose order in memory isn't known may be a view or a copy, "
                "and one of the two was written to: clone() what is to be kept apart, or write "
                "before the tensor is reshaped"
            )

    # --- what an array tells of itself ---

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    @property
    def dtype(self) -> Any:
        return self._value.dtype

    @property
    def ndim(self) -> int:
        return len(self._value.shape)

    @property
    def size(self) -> int:
        return self._value.size

    @property
    def strides(self) -> Any:
        raise CompileError(
            "where an array is in memory is not known in a compiled function: its strides, offset "
            "and address are questions to ask outside"
        )

    ctypes = strides

    @property
    def real(self) -> Any:
        return self.namespace.part(self, "real")

    @property
    def imag(self) -> Any:
        return self.namespace.part(self, "imag")

    def __repr__(self) -> str:
        return f"<unknown array in a compiled function: {self._value.type_text}>"

    # --- what needs the elements: not known ---

    def _unknown(self, *_: Any, **__: Any) -> NoReturn:
        if TRACING.get() is None:
            raise outlived()
        place = here()
        raise CompileError(
            "a value was asked for while the function was being compiled, where only shapes and "
            f"dtypes are known{'' if place is None else f', at {place}'}. Choose with cr.where() "
            "in the place of `if`, loop with cr.while_loop() or cr.scan(), pass what the function "
            "must know as a Python number (a static argument), or look at values outside"
        )

    __bool__ = __int__ = __float__ = __complex__ = __index__ = _unknown
    item = tolist = tobytes = __array__ = _unknown

    # --- computing ---

    def copy(self, order: str = "C") -> Symbol:
        return Symbol(self.value) if order == "C" else self.made(self.value)

    def made(self, value: Value) -> Symbol:
        """Return a symbol of a value in fresh memory, which has the order of this one's."""
        array, found = self.hollow(), Symbol(value, self.ndim < 2)
        if array is not None:
            found.layout = copied(array, value.dtype)
        return found

    def view(self, dtype: Any) -> Any:
        return self.namespace.bits(self, np.dtype(dtype))

    def reshape(self, *shape: Any, copy: bool | None = None) -> Any:
        if copy is False and self.layout is not None:  # raises where it takes a copy
            self.hollow().reshape(*shape, copy=False)
        return self.namespace.reshape(self, shape[0] if isinstance(shape[0], tuple) else shape)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        return np.diagonal(self, offset, axis1, axis2)
