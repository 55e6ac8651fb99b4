"""Base class of array proxies: the symbols of a compiler, the batched arrays of `vmap`.

A proxy has the interface of an array. Methods and operators call functions of its namespace; a
subclass defines that and the shape, dtype and memory.
"""

from __future__ import annotations

import dis
import sys
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from types import MethodType
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.errors import NoLengthError


def _class_for_caller(x: Any) -> type:
    frame: Any = sys._getframe(1)
    while frame.f_code in _ASK_FOR_CALLER:
        frame = frame.f_back
    module = frame.f_globals.get("__name__", "")
    if module.startswith(_WITH_CONVERSIONS):
        return type(x)
    if module != "functools" and frame.f_code.co_code[frame.f_lasti] in _READS_ATTRIBUTE:
        return type(x)  # but for `singledispatch`, which is in the place of `isinstance`
    is_number = not x.ndim and getattr(x, "is_scalar", True)
    return _NUMBERS.get(x.dtype, type(x)) if is_number else np.ndarray


_ASK_FOR_CALLER = {np.isscalar.__code__, ABCMeta.__instancecheck__.__code__}
# SciPy's code hands on what is no instance of NumPy's classes, and converts what is.
_WITH_CONVERSIONS = ("chainrule", "scipy.")
_READS_ATTRIBUTE = {dis.opmap.get(name) for name in ("LOAD_ATTR", "LOAD_METHOD")}
# Not NumPy's classes of numbers, of which libraries know that NumPy converts them.
_NUMBERS: dict[Any, type] = {np.dtype(kind): kind for kind in (float, complex)}

class_in_isinstance = property(_class_for_caller, vars(object)["__class__"].__set__)
"""The attribute ``__class__`` of what stands for a NumPy array or number.

Code that isn't ours finds in ``isinstance(x, numpy.ndarray)`` what NumPy has in its place: many
functions of NumPy, and programs, decide by that what they compute. Read by name, it is the class.
"""


class of_arrays:
    """Decorator of ``__len__``: numbers don't have it, so ``hasattr(x[0], "__len__")`` is false."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self.__code__ = function.__code__

    def __get__(self, x: Any, owner: Any = None) -> Any:
        if x is None:
            return self
        if not x.ndim:
            raise NoLengthError(f"object of type 'numpy.{x.dtype.name}' has no len()")
        return MethodType(self._function, x)


class NumberProxy(ABC):
    """What stands for a Python number: an instance of `int` or `float`, but of no such type."""

    __slots__ = ()

    @abstractmethod
    def as_float(self) -> Any:
        """Return what stands for the number as a float."""

    @abstractmethod
    def as_array(self, dtype: Any = None) -> Any:
        """Return the number as an array of shape (), or what stands for one."""


def as_float(number: Any) -> Any:
    """Return a number as a float, or what stands for one."""
    return number.as_float() if isinstance(number, NumberProxy) else float(number)


class ArrayProxy:
    """Attributes, methods and operators of arrays, defined by functions of a namespace."""

    __slots__ = ()

    namespace: Any = None  # set by the module `namespace` of each kind of proxy
    is_visible = False  # whether users' functions get it in the place of an array
    is_scalar = False  # whether it stands for a NumPy scalar, which does not change
    __array_priority__: float  # operators are left to the operand of higher priority
    shape: Any
    dtype: Any
    ndim: Any
    size: Any
    copy: Any

    @property
    def is_unknown_mask(self) -> bool:
        """Whether these are truth values of which can't be said how many are true."""
        return bool(self.dtype.kind == "b" and self.ndim)

    def has_same_elements(self, other: ArrayProxy) -> bool:
        """Return whether the elements are certainly those of `other`."""
        return self is other

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return int(self.size * self.itemsize)

    @property
    def T(self) -> Any:
        return self.namespace.permute_dims(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> Any:
        return self.namespace.matrix_transpose(self)

    @property
    def __array_interface__(self) -> Any:
        raise AttributeError("__array_interface__")

    def finished_by(self, function: Callable[[Any], Any]) -> Any:
        """Return what stands for a function of the array, such as the labelled array."""
        return self

    @of_arrays
    def __len__(self) -> int:
        length: int = self.shape[0]
        return length

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __reversed__(self) -> Iterator[Any]:
        return iter(self[::-1])

    def __getitem__(self, key: Any) -> Any:
        return self.namespace.get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.namespace.set_item(self, key, value)

    def astype(self, dtype: Any, copy: bool = True, **_: Any) -> Any:
        if np.dtype(dtype) == self.dtype:
            return self.copy("K") if copy else self
        return self.namespace.astype(self, dtype)

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

    def check_aliasing_known(self) -> None:
        """Raise if it is unknown whether this is a view or a copy of another array."""

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
"""Methods of arrays that are namespace functions of the same name."""

_ARITHMETIC = {
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
_COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_UNARY = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "invert"}


_PROTOCOL = (Tensor, ArrayProxy)


def _operator(name: str) -> Callable[[ArrayProxy, Any], Any]:
    def method(self: ArrayProxy, other: Any) -> Any:
        if (
            type(other) is not type(self)
            and isinstance(other, _PROTOCOL)
            and other.__array_priority__ > self.__array_priority__
        ):
            return NotImplemented
        return getattr(self.namespace, name)(self, other)

    return method


def _reflected(name: str) -> Callable[[ArrayProxy, Any], Any]:
    return lambda self, other: getattr(self.namespace, name)(other, self)


def _in_place(name: str) -> Callable[[ArrayProxy, Any], Any]:
    def method(self: ArrayProxy, other: Any) -> Any:
        result = getattr(self.namespace, name)(self, other)
        if self.is_scalar:
            return result
        self[...] = result
        return self

    return method


def _unary(name: str) -> Callable[[ArrayProxy], Any]:
    return lambda self: getattr(self.namespace, name)(self)


for _stem, _name in (_ARITHMETIC | _COMPARISONS).items():
    setattr(ArrayProxy, f"__{_stem}__", _operator(_name))
for _stem, _name in _ARITHMETIC.items():
    setattr(ArrayProxy, f"__r{_stem}__", _reflected(_name))
    setattr(ArrayProxy, f"__i{_stem}__", _in_place(_name))
for _stem, _name in _UNARY.items():
    setattr(ArrayProxy, f"__{_stem}__", _unary(_name))
