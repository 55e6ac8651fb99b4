"""Symbols: what stands for arrays while a function is traced.

A symbol is a place in memory, as an array is: it can be written to, and it may be a view of
another. What it holds at a moment is a value of the program. A write makes a new value of the
whole; a view that was made before asks its base again. So aliasing means in a trace what it means
in NumPy, and the program that comes out knows nothing of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from chainrule.autograd.location import here
from chainrule.autograd.tensor import Tensor
from chainrule.backend import CPU
from chainrule.compiler.layout import Strides, copied, hollow, in_order
from chainrule.compiler.program import Value
from chainrule.errors import CompileError

if TYPE_CHECKING:
    from chainrule.compiler.trace import Trace

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


class Symbol:
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
    namespace: Any = None  # set by the module of that name, which is above this one

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
    def itemsize(self) -> int:
        return int(self._value.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return self._value.nbytes

    @property
    def strides(self) -> Any:
        raise CompileError(
            "where an array is in memory is not known in a compiled function: its strides, offset "
            "and address are questions to ask outside"
        )

    ctypes = strides

    @property
    def T(self) -> Any:
        return self.namespace.permute_dims(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> Any:
        return self.namespace.matrix_transpose(self)

    @property
    def real(self) -> Any:
        return self.namespace.part(self, "real")

    @property
    def imag(self) -> Any:
        return self.namespace.part(self, "imag")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Symbol]:
        return iter([self[i] for i in range(len(self))])

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

    @property
    def __array_interface__(self) -> Any:
        raise AttributeError("__array_interface__")

    # --- computing ---

    def __getitem__(self, key: Any) -> Any:
        return self.namespace.get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.namespace.set_item(self, key, value)

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

    def astype(self, dtype: Any, copy: bool = True, **_: Any) -> Any:
        if np.dtype(dtype) == self.dtype:
            return self.copy("K") if copy else self
        return self.namespace.astype(self, dtype)

    def reshape(self, *shape: Any, copy: bool | None = None) -> Any:
        if copy is False and self.layout is not None:  # raises where it takes a copy
            self.hollow().reshape(*shape, copy=False)
        return self.namespace.reshape(self, shape[0] if isinstance(shape[0], tuple) else shape)

    def transpose(self, *axes: Any) -> Any:
        if not axes:
            return self.T
        return self.namespace.permute_dims(self, axes[0] if isinstance(axes[0], tuple) else axes)

    def swapaxes(self, first: int, second: int) -> Any:
        order = list(range(self.ndim))
        order[first], order[second] = order[second], order[first]
        return self.namespace.permute_dims(self, tuple(order))

    def ravel(self) -> Any:
        return self.namespace.reshape(self, (self.size,))

    def fill(self, value: Any) -> None:
        self[...] = value

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        return np.diagonal(self, offset, axis1, axis2)

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        function = getattr(self.namespace, name)
        return lambda *args, **kwargs: function(self, *args, **kwargs)


_METHODS = frozenset(
    [
        *("all", "any", "argmax", "argmin", "argsort", "clip", "conj", "cumprod", "cumsum"),
        *("dot", "flatten", "max", "mean", "min", "prod", "repeat", "round", "sort"),
        *("squeeze", "std", "sum", "take", "trace", "var"),
    ]
)
"""Methods of arrays that are functions of their first argument."""


def _operator(name: str) -> Callable[[Symbol, Any], Any]:
    def method(self: Symbol, other: Any) -> Any:
        if isinstance(other, Tensor):
            return NotImplemented
        return getattr(self.namespace, name)(self, other)

    return method


def _reflected(name: str) -> Callable[[Symbol, Any], Any]:
    def method(self: Symbol, other: Any) -> Any:
        return getattr(self.namespace, name)(other, self)

    return method


def _in_place(name: str) -> Callable[[Symbol, Any], Symbol]:
    def method(self: Symbol, other: Any) -> Symbol:
        self[...] = getattr(self.namespace, name)(self, other)
        return self

    return method


_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
for _stem, _name in _BINARY.items():
    setattr(Symbol, f"__{_stem}__", _operator(_name))
    setattr(Symbol, f"__r{_stem}__", _reflected(_name))
    setattr(Symbol, f"__i{_stem}__", _in_place(_name))
for _stem, _name in {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}.items():
    setattr(Symbol, f"__{_stem}__", _operator(_name))
for _stem, _name in {
    "neg": "negative",
    "pos": "positive",
    "abs": "abs",
    "invert": "invert",
}.items():
    setattr(Symbol, f"__{_stem}__", lambda self, name=_name: getattr(self.namespace, name)(self))
