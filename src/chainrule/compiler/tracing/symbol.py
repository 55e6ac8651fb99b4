"""Symbols: the abstract arrays on which a function is traced.

Like an array, a symbol has memory: it can be written to, and it may be a view of another symbol.
Its content at a given time is a value of the program. A write gives the base a new value; views of
the base derive theirs again. So aliasing in a trace has NumPy's semantics, while the program that
results is free of it.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.autograd.array_proxy import ArrayProxy, class_in_isinstance
from chainrule.autograd.conversions import asked_for_value, product_left_to
from chainrule.backend import CPU
from chainrule.compiler.ir.program import Value
from chainrule.compiler.tracing.size_reads import READS, user_shape, user_size
from chainrule.errors import CompileError

if TYPE_CHECKING:
    from chainrule.compiler.tracing.trace import Trace

# --- memory layout --------------------------------------------------------------------------------
#
# Strides of symbols, as far as they are known, since they decide whether reshape() gives a view.
# NumPy computes them on dummy arrays that have these strides but no memory.

Strides = tuple[int, ...] | None  # None: not known
Layout = Callable[[Any], Any]


@lru_cache(1024)
def c_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides of C order."""
    strides, step = [], itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


@lru_cache(1024)
def _is_c_order(strides: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    steps = [s for s, n in zip(strides, shape, strict=True) if s and n > 1]
    return all(a >= b > 0 for a, b in itertools.pairwise([*steps, 1]))


def dummy_array(shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...]) -> Any:
    """Return an array with these strides, whose elements must not be read."""
    return np.lib.stride_tricks.as_strided(np.empty((), dtype), shape, strides)


def copy_strides(array: Any, dtype: Any) -> tuple[int, ...]:
    """Return the strides of a copy of an array, which keeps the order of its elements."""
    size = np.dtype(dtype).itemsize
    if array.flags.c_contiguous:
        return c_strides(array.shape, size)
    # NumPy sorts the axes by their strides, whatever their lengths: a small array has that order.
    small = np.lib.stride_tricks.as_strided(array, [min(n, 2) for n in array.shape], array.strides)
    like = np.empty_like(small, dtype).strides
    order = sorted(range(array.ndim), key=lambda axis: (-like[axis], -small.shape[axis], axis))
    sorted_strides = c_strides(tuple([array.shape[axis] for axis in order]), size)
    return tuple([sorted_strides[order.index(axis)] for axis in range(array.ndim)])


def view_index(view: Any, base: Any) -> tuple[tuple[int | slice, ...], tuple[int, ...]] | None:
    """Return key and axes: `view` is ``base[key].transpose(axes)``, but for axes of length one.

    None if it can't be written so.
    """
    if view is base or view.dtype != base.dtype or not view.size:
        return None
    if view.flags.writeable != base.flags.writeable or min(base.strides, default=1) <= 0:
        return None
    key: list[int | slice] = [0] * base.ndim
    offset = address_of(view) - address_of(base)
    order = sorted(range(base.ndim), key=lambda axis: (-base.strides[axis], -base.shape[axis]))
    for axis in order:
        key[axis], offset = divmod(offset, base.strides[axis])
    taken: list[int] = []
    for stride, length in zip(view.strides, view.shape, strict=True):
        if length > 1:
            fitting = [a for a in order if a not in taken and base.strides[a] <= abs(stride)]
            if not fitting:
                return None
            taken.append(fitting[0])
            first, step = key[fitting[0]], stride // base.strides[fitting[0]]
            assert isinstance(first, int)
            end = first + step * length
            key[fitting[0]] = slice(first, None if end < 0 else end, step)
    axes = tuple([sorted(taken).index(axis) for axis in taken])
    return (tuple(key), axes) if _is_view_by(view, base, tuple(key), axes) else None


def _is_view_by(view: Any, base: Any, key: tuple[int | slice, ...], axes: tuple[int, ...]) -> bool:
    for index, length in zip(key, base.shape, strict=True):
        if not (isinstance(index, slice) or 0 <= index < length):
            return False
    found = base[(*key, ...)].transpose(axes)
    long = [axis for axis in range(view.ndim) if view.shape[axis] > 1]
    shape, strides = (tuple([e[axis] for axis in long]) for e in (view.shape, view.strides))
    return (address_of(found), found.shape, found.strides) == (address_of(view), shape, strides)


def address_of(array: Any) -> int:
    """Return where the first element of an array is in memory."""
    address: int = array.__array_interface__["data"][0]
    return address


# --- symbols --------------------------------------------------------------------------------------

TRACING: ContextVar[Trace | None] = ContextVar("chainrule trace", default=None)
"""The active trace of this thread or task."""


def note_memory_use(aspect: str) -> None:
    """Record in the active trace that the program depends on this aspect of memory."""
    trace = TRACING.get()
    if trace is not None:
        trace.memory_uses.add(aspect)


Take = Callable[[Value], Value]
Replace = Callable[[Value, Value], Value]


class Flags:
    """The `flags` of a symbol, as of an array."""

    __slots__ = ("_symbol",)

    def __init__(self, symbol: Symbol) -> None:
        self._symbol = symbol

    def __getattr__(self, name: str) -> bool:
        note_memory_use("layout")
        array = self._symbol.dummy()
        if array is None:
            raise CompileError(
                f"flags.{name}: in which order the elements of a result are in memory is not known "
                "in a compiled function: read it outside, or take contiguous()"
            )
        found: bool = getattr(array.flags, name)
        return found

    @property
    def writeable(self) -> bool:
        symbol: Symbol | None = self._symbol
        while symbol is not None and not symbol.read_only:
            symbol = symbol._base
        return symbol is None

    @writeable.setter
    def writeable(self, value: bool) -> None:
        self._symbol.read_only, self._symbol.kind = not value, None

    def __getitem__(self, name: str) -> bool:
        found: bool = getattr(self, name.lower())
        return found


def outlived_error() -> CompileError:
    """Return the error for a symbol that is used after its trace."""
    return CompileError(
        "an array of a compiled function outlived its compilation: it was kept in a list, a "
        "global or an attribute. Return it from the function instead"
    )


def _reader(name: str) -> Any:
    """Return a method of symbols that reads elements by NumPy's method of this name."""

    def read(symbol: Symbol, *args: Any) -> Any:
        return getattr(symbol._elements(sys._getframe(1)), name)(*args)

    read.__name__ = name
    return read


class Symbol(ArrayProxy):
    """An array of known shape and dtype and unknown elements."""

    __class__ = class_in_isinstance
    is_visible = True

    __slots__ = (
        "__weakref__",
        "_base",
        "_origin",
        "_replace",
        "_take",
        "_value",
        "_value_version",
        "dtype",
        "finish",
        "is_scalar",
        "kind",
        "layout",
        "maybe_view",
        "read_only",
        "writes",
    )

    __array_priority__ = 900.0  # NumPy's scalars and arrays leave operators to symbols
    device = CPU

    _take: Take
    _replace: Replace | None
    _value_version: int  # the version of the base for which `_value` holds
    kind: object  # see `repeated_calls`; None if it isn't known

    def __init__(self, value: Value, c_order: bool = True) -> None:
        trace = TRACING.get()
        self._origin = None if trace is None else trace.origin
        self._value, self.dtype = value, value.dtype
        self._base: Symbol | None = None
        self.kind = None
        self.writes = 0
        self.layout: Strides = c_strides(value.shape, value.dtype.itemsize) if c_order else None
        self.maybe_view = self.read_only = self.is_scalar = False
        self.finish: Callable[[Any], Any] | None = None

    def finished_by(self, function: Callable[[Any], Any]) -> Symbol:
        """Return a symbol in whose place a compiled function returns a function of the array."""
        finished = Symbol(self.value)
        finished.finish = function
        return finished

    @classmethod
    def view_of(
        cls, base: Symbol, take: Take, replace: Replace | None, layout: Strides = None
    ) -> Symbol:
        """Return a symbol that is a view of another.

        `take` gives the value of the view from that of the base. `replace` gives the new value of
        the base from its old one and the written view, or is None if the view is read-only.
        """
        made = cls(take(base.value))
        made.become_view(base, take, replace)
        made.layout = layout
        return made

    def become_view(self, base: Symbol, take: Take, replace: Replace | None) -> None:
        """Become a view, as by `view_of`, of a symbol from whose value the own one was taken."""
        self._base, self._take, self._replace = base, take, replace
        self._value_version = base.version

    @property
    def outlived(self) -> bool:
        """Whether the symbol is of a trace that has ended or was interrupted."""
        trace = TRACING.get()
        return trace is None or self._origin not in (None, trace.origin)

    def dummy(self) -> Any:
        """Return a dummy array with the strides of the symbol; None if they are unknown."""
        if self.layout is None:
            return None
        return dummy_array(self.shape, self.dtype, self.layout)

    @property
    def c_ordered(self) -> bool:
        """Whether results of elementwise functions of it are certainly in C order."""
        return self.layout is not None and _is_c_order(self.layout, self._value.shape)

    @property
    def flags(self) -> Flags:
        return Flags(self)

    # --- memory ---

    @property
    def base(self) -> Symbol | None:
        """The symbol that owns the memory, as the `base` of an array; None if it is this one."""
        base = self._base
        while base is not None and base._base is not None:
            base = base._base
        return base

    @property
    def version(self) -> int:
        """Number of writes to the memory so far."""
        return self.writes if self._base is None else self._base.version

    @property
    def value(self) -> Value:
        """The present content of the memory."""
        if self._base is not None and self._value_version != self._base.version:
            self.check_aliasing_known()
            self._value = self._take(self._base.value)
            self._value_version = self._base.version
        return self._value

    def overwrite(self, value: Value) -> None:
        """Overwrite all elements."""
        note_memory_use("writes")
        if self._base is None and not self.read_only:
            self._value = value
            self.writes += 1
            return
        self.check_aliasing_known()
        if self._base is None or self._replace is None or self.read_only:
            raise ValueError("assignment destination is read-only")
        self._base.overwrite(self._replace(self._base.value, value))
        self._value, self._value_version = value, self._base.version

    def check_aliasing_known(self) -> None:
        """Raise if it is unknown whether this is a view or a copy of its base."""
        if self.maybe_view:
            raise CompileError(
                "reshape() of a tensor whose order in memory isn't known may be a view or a copy, "
                "and one of the two was written to: clone() what is to be kept apart, or write "
                "before the tensor is reshaped"
            )

    # --- attributes of arrays ---

    @property
    def shape(self) -> tuple[int, ...]:
        shape = self._value.shape
        return shape if READS.get() is None else user_shape(shape)

    @shape.setter
    def shape(self, shape: Any) -> None:
        raise CompileError(
            "the shape of an array can't be assigned to in a compiled function: use "
            f"a = a.reshape({shape})"
        )

    @property
    def ndim(self) -> int:
        return len(self._value.shape)

    @property
    def size(self) -> int:
        return user_size(self._value.size)

    @property
    def strides(self) -> Any:
        raise CompileError(
            "where an array is in memory is not known in a compiled function: read its strides, "
            "offset and address outside"
        )

    ctypes = strides

    @property
    def real(self) -> Any:
        return self.namespace.part(self, "real")

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        return self.namespace.part(self, "imag")

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    def __repr__(self) -> str:
        return f"<unknown array in a compiled function: {self._value.type_text}>"

    # --- reads of elements, which have no values unless they depend on constants alone ---

    def _elements(self, frame: FrameType) -> Any:
        """Return the array, if its elements are known; else raise, naming what `frame` does."""
        trace = TRACING.get()
        if trace is None:
            raise outlived_error()
        known = trace.known(self, of_tensors=False)
        if known is not None:
            return known
        where, mend = asked_for_value(frame)
        if not mend and frame.f_code.co_name == "__index__":
            mend = (
                "Pass a size, an index or a number of rounds as a Python int, such as n.item(), "
                "for which the function is compiled (a static argument), or loop with cr.scan() "
                "or cr.while_loop()"
            )
        mend = mend or (
            "Choose with cr.where() in the place of `if`, loop with cr.while_loop() or cr.scan(), "
            "pass what the function must know as a Python number (a static argument), or look at "
            "values outside"
        )
        raise CompileError(
            "a value was asked for while the function was being compiled, where only shapes and "
            f"dtypes are known, {where}. {mend}"
        )

    def __format__(self, form: str) -> str:
        return format(self._elements(sys._getframe(1)), form) if form else repr(self)

    __bool__, __int__, __float__ = _reader("__bool__"), _reader("__int__"), _reader("__float__")
    __complex__, __index__ = _reader("__complex__"), _reader("__index__")
    item, tolist, tobytes = _reader("item"), _reader("tolist"), _reader("tobytes")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        held = product_left_to(self, sys._getframe(1))
        return np.array(self._elements(sys._getframe(1)), dtype) if held is None else held

    @property
    def is_unknown_mask(self) -> bool:
        trace = TRACING.get()
        return (
            super().is_unknown_mask
            and trace is not None
            and trace.known(self, of_tensors=False) is None
        )

    @property
    def known_elements(self) -> Any:
        """The array on which the shape of a result may depend, if its elements are known."""
        trace = TRACING.get()
        return None if trace is None else trace.known(self)

    def has_same_elements(self, other: ArrayProxy) -> bool:
        trace = TRACING.get()
        if trace is None or not isinstance(other, Symbol):
            return False
        return trace.elements.are_same(trace, self.value, other.value)

    # --- copies and views ---

    def copy(self, order: str = "C") -> Any:
        if order == "F":
            return self.T.copy().T
        return Symbol(self.value) if order == "C" else self.new_like(self.value)

    def new_like(self, value: Value) -> Symbol:
        """Return a symbol with new memory, whose elements are in the same order as this one's."""
        array, found = self.dummy(), Symbol(value, self.ndim < 2)
        if array is not None:
            found.layout = copy_strides(array, value.dtype)
        return found

    def view(self, dtype: Any = None) -> Any:
        return self[...] if dtype is None else self.namespace.bits(self, np.dtype(dtype))

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        if copy is False and self.layout is not None:  # raises where a copy is needed
            self.dummy().reshape(shape, order=order, copy=False)
        return self.namespace.reshape(self, shape, order=order)

    def ravel(self, order: str = "C") -> Any:
        return self.namespace.ravel(self, order)
