"""Sizes that note what user code does with them, so that an export knows what it depends on.

An export traces a function at several sizes and compares the programs. That shows all that a size
changes in a program, but not a comparison that had the same outcome each time. So user code gets
the entries of shapes as `Size`: arithmetic gives sizes again, and whatever depends on the value in
another way is noted. The engine gets plain integers.
"""

from __future__ import annotations

import dis
import inspect
import math
import operator
import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from types import FrameType
from typing import Any

import numpy as np

from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.location import INTERNAL
from chainrule.autograd.tensor import Tensor
from chainrule.numpy.array_class import ndarray
from chainrule.transforms.vmap.batched_array import BatchedArray

Read = tuple[str, tuple[float, ...]]
"""What was done with a size, and the numbers: two for a comparison."""

READS: ContextVar[list[Read] | None] = ContextVar("chainrule reads of sizes", default=None)
"""The list that receives the reads of sizes by user code in this thread or task, if any."""

LIMIT: ContextVar[float] = ContextVar("chainrule limit of sizes", default=math.inf)
"""Number of elements above which an array ends a trace that only tries a size."""


class TooLargeError(Exception):
    """An array of a trace is larger than the limit."""


def check_limit(shape: tuple[int, ...]) -> None:
    """Raise if an array of this shape is larger than the limit."""
    limit = LIMIT.get()
    if limit != math.inf and math.prod(shape) > limit:
        raise TooLargeError


_NUMPY = os.path.dirname(np.__file__) + os.sep


def _is_users(frame: FrameType | None) -> bool:
    """Whether the code of a frame is the user's; NumPy's code acts for its caller."""
    while frame is not None and frame.f_code.co_filename.startswith(_NUMPY):
        frame = frame.f_back
    if frame is None or INTERNAL[frame.f_code.co_filename]:
        return False
    return "__name__" in frame.f_globals  # generated functions of the engine have no module


def _note(kind: str, *numbers: Any) -> None:
    """Note a read, unless the engine reads on behalf of itself."""
    reads = READS.get()
    if reads is not None and _is_users(sys._getframe(2)):
        reads.append((kind, tuple([plain(x) if _is_number(x) else 0 for x in numbers])))


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float)


class _Tracked:
    """Operations of tracked numbers."""

    __slots__ = ()


class Size(_Tracked, int):
    """A size, or an integer computed from sizes."""


class Ratio(_Tracked, float):
    """A real number computed from sizes."""


def plain(x: Any) -> Any:
    """Return a tracked number as Python's own; other objects as they are."""
    if isinstance(x, Size):
        return int.__int__(x)
    return float.__float__(x) if isinstance(x, Ratio) else x


def _tracked(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_tracked, x))
    kinds = {int: Size, float: Ratio}
    return kinds[type(x)](x) if type(x) in kinds else x


def _arithmetic(kind: type, name: str) -> Callable[..., Any]:
    function = getattr(kind, name)

    def compute(self: Any, *others: Any) -> Any:
        result = function(self, *others)
        if result is NotImplemented and isinstance(others[0], float):
            return getattr(Ratio(plain(self)), name)(*others)
        return _tracked(result)

    return compute


def _read(kind: type, name: str) -> Callable[..., Any]:
    function = getattr(kind, name)

    def read(self: Any, *others: Any) -> Any:
        _note(name, self, *others)
        return function(self, *others)

    return read


_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow")
_BITS = ("and", "or", "xor", "lshift", "rshift")
_UNARY = ("neg", "pos", "abs", "round", "floor", "ceil")
_READS = ("eq", "ne", "lt", "le", "gt", "ge", "bool", "int", "float", "trunc", "hash")
_TEXTS = ("str", "repr", "format")

for _class, _base in ((Size, int), (Ratio, float)):
    for _name in (*_ARITHMETIC, *(_BITS if _base is int else ()), *_UNARY):
        for _method in (f"__{_name}__", f"__r{_name}__"):
            if hasattr(_base, _method):
                setattr(_class, _method, _arithmetic(_base, _method))
    for _name in (*_READS, *_TEXTS):
        setattr(_class, f"__{_name}__", _read(_base, f"__{_name}__"))
    for _name in dir(_base):
        if not _name.startswith("_") and inspect.isroutine(_base.__dict__[_name]):
            setattr(_class, _name, _read(_base, _name))


def user_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape for the caller of `Symbol.shape`: of sizes, if user code asks for it."""
    reads = READS.get()
    if reads is None:
        return shape
    frame: FrameType | None = sys._getframe(2)
    lengths = False
    while frame is not None and frame.f_code in _ACCESSORS:
        lengths = lengths or frame.f_code in _LENGTHS
        frame = frame.f_back
    if not _is_users(frame):
        return shape
    if lengths:  # `len` returns a plain integer
        reads.append(("len", tuple(shape[:1])))
        return shape
    return tuple(map(Size, shape))


def user_size(size: int) -> int:
    """Return the number of elements for the caller of `Symbol.size`."""
    reads = READS.get()
    if reads is None:
        return size
    frame: FrameType | None = sys._getframe(2)
    direct = frame is not None and frame.f_code not in _ACCESSORS - _SIZES
    while frame is not None and frame.f_code in _ACCESSORS:
        frame = frame.f_back
    if frame is None or not _is_users(frame):
        return size
    if direct:
        return Size(size)
    if not _is_called(frame):  # a plain integer
        reads.append(("size", (size,)))
    return size


def _is_called(frame: FrameType) -> bool:
    """Whether the attribute that a frame reads is called at once, as in ``x.size(0)``."""
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            method = instruction.opname == "LOAD_METHOD" or "NULL|self" in instruction.argrepr
            return method and instruction.argval == "size"
    return False


def _codes(*functions: Any) -> frozenset[Any]:
    return frozenset(operator.attrgetter("__code__")(f) for f in functions)


_shape: Any = Tensor.shape
_size: Any = Tensor.size
_LENGTHS = _codes(Tensor.__len__, ArrayProxy.__len__)
_batched: Any = BatchedArray.shape
_array_shape: Any = ndarray.shape
_array_size: Any = ndarray.size
_SIZES = _codes(_array_size.fget)
_ACCESSORS = (
    _LENGTHS
    | _SIZES
    | _codes(*(_shape.fget, _array_shape.fget, _size.fget, _batched.fget, Tensor.numel))
)
"""Code of the properties and methods by which user code reads the shape of a tensor."""
