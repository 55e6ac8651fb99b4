"""Operands of functions and operators, converted to tensors."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from chainrule.autograd.location import INTERNAL
from chainrule.autograd.tensor import Tensor, default_dtype, make
from chainrule.autograd.views import current_node
from chainrule.backend import is_array, namespace, ndarray, numpy_xp, whole
from chainrule.errors import ArgumentTypeError

Array = Any

_NUMBERS = frozenset([float, int])
_SCALARS = (bool, int, float, complex, np.generic)


def scalar_array(value: Any, like: Array) -> Array:
    """Return a scalar as a 0-d array, in the dtype of `like` where that can hold its kind."""
    dtype = like.dtype
    xp = numpy_xp if like.__class__ is ndarray else namespace(whole(like))
    if value.__class__ in _NUMBERS and dtype.kind in "fc":  # the usual case
        return xp.asarray(value, dtype=dtype)
    kind = "b" if isinstance(value, bool | np.bool_) else None
    kind = kind or ("i" if isinstance(value, int | np.integer) else None)
    kind = kind or ("c" if isinstance(value, complex | np.complexfloating) else "f")
    rank = "biufc".index(dtype.kind)
    if kind == "f" and rank < 3:
        dtype = default_dtype()
    elif kind == "i" and rank < 1:
        dtype = np.dtype(np.int64)
    elif kind == "i" and rank < 3:
        value = int(value)  # NumPy's scalars out of range would wrap around
    elif kind == "c" and rank < 4:
        wide = dtype if rank == 3 else default_dtype()
        dtype = np.dtype(np.complex128 if wide.itemsize > 4 else np.complex64)
    return xp.asarray(value, dtype=dtype)


def last_scalar_array(value: Any, like: np.ndarray[Any, Any]) -> Array:
    """Return `scalar_array`, found again if it is the same as the last time, as in a loop."""
    known, dtype, array = _last[0]
    if value is not known or like.dtype is not dtype:
        array = scalar_array(value, like)
        _last[0] = value, like.dtype, array
    return array


_last: list[tuple[Any, Any, Array]] = [(None, None, None)]


def as_operands(a: Any, b: Any) -> tuple[Any, Any]:
    """Return both operands of an operator as tensors, or `(NotImplemented, None)`."""
    if type(a) is not Tensor:
        a = _operand(a, b)
    if type(b) is not Tensor:
        b = _operand(b, a)
    if a is NotImplemented or b is NotImplemented:
        return NotImplemented, None
    return a, b


def check_operands(name: str, a: Any, b: Any) -> None:
    """Raise for an operand of an arithmetic operator that is a text, a sequence, None or PyTorch's.

    Python would repeat a sequence, where the tensor can be an index, or else speak of that.
    """
    if INTERNAL[sys._getframe(3).f_code.co_filename]:  # above a recorder and `apply_to_others`
        return  # called by a function, which names itself
    for value, other in ((a, b), (b, a)):
        mend = mend_of_operand(value)
        if not mend or not isinstance(other, Tensor):
            continue
        is_index = other.dtype.kind in "iub" and other._array.size == 1
        if name == "multiply" and is_index and hasattr(value, "__len__"):
            continue
        raise ArgumentTypeError(
            f"unsupported operand type(s) for {_SYMBOLS.get(name, name)}: {_type_name(a)!r} and "
            f"{_type_name(b)!r}: {mend}"
        )


def mend_of_operand(value: Any) -> str:
    """Return what to write for an operand that no tensor computes with; "" if Python shall say."""
    if value is None:
        return "is a return statement missing, or is it a .grad before backward()?"
    if isinstance(value, list | tuple):
        tensors = [isinstance(each, Tensor) for each in value]
        if any(tensors):
            which = "one Tensor" if len(value) == 1 else "Tensor that is meant"
            one = f"take the {which} out of the {type(value).__name__}, as with [0]"
            many = "join the Tensors first, with cr.stack() or cr.cat()"
            return many if all(tensors) and len(value) > 1 else one
        if value and all(each is None for each in value):
            return "there is no gradient in it"
        text = repr(value)
        return f"write cr.tensor({text if len(text) < _LONG else '...'})"
    if isinstance(value, str | bytes):
        return "a tensor computes with numbers"
    is_torchs = type(value).__module__.partition(".")[0] == "torch"
    return "write cr.from_dlpack(t) for PyTorch's tensor t" if is_torchs else ""


def _type_name(value: Any) -> str:
    kind = type(value)
    return f"torch.{kind.__name__}" if kind.__module__.startswith("torch") else kind.__name__


_LONG = 80  # characters of an operand that an error doesn't repeat
_SYMBOLS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "matmul": "@"}


def carried_class(operands: Sequence[Any]) -> type[Tensor] | None:
    """Return the class that the results for these operands have, if it is not `Tensor`."""
    for value in operands:
        kind = type(value)
        if kind is not Tensor and isinstance(value, Tensor) and kind.is_carried:
            return kind
    if BESIDE_ARRAYS.get() is None:
        return None
    return _class_beside(operands) if any([is_array(x) and x.ndim for x in operands]) else None


def as_carried_results(results: Any, operands: Iterable[Any]) -> Any:
    """Return results of a function of NumPy's, of the class that they have for these operands."""
    kind = None if BESIDE_ARRAYS.get() is None else _class_beside(operands)
    if kind is None:
        return results
    if results.__class__ in (tuple, list):
        return results.__class__([_in_class(part, kind) for part in results])
    return _in_class(results, kind)


def _in_class(result: Any, kind: type[Tensor]) -> Any:
    """Return a new tensor with dimensions as one of a class; integers as NumPy's own array."""
    if type(result) is not Tensor or not result._array.ndim:
        return result
    if result._array.__class__ is ndarray and result._array.dtype.kind in "biu":
        return result._array
    result.__class__ = kind
    return result


def _class_beside(operands: Iterable[Any]) -> type[Tensor] | None:
    """Return the class of results beside NumPy's arrays, if all tensors are in place of numbers."""
    has_others = any([isinstance(x, Tensor) and x._array.ndim for x in operands])
    return None if has_others else BESIDE_ARRAYS.get()


BESIDE_ARRAYS: ContextVar[type[Tensor] | None]
BESIDE_ARRAYS = ContextVar("chainrule class beside arrays", default=None)
"""The class of the results of tensors without dimensions and NumPy's arrays, if it isn't `Tensor`.

A transform sets it where it hands over a tensor in the place of a Python number: with an array of
NumPy's, that gives what behaves as one.
"""


def carried_operands(operands: Sequence[Any], kind: type[Tensor]) -> list[Tensor] | None:
    """Return operands as tensors of a carried class that have arrays of NumPy's.

    None if none of them is of the class, or if it takes more to convert one.
    """
    for value in operands:
        if type(value) is kind:
            break
    else:
        return None
    found = []
    for value in operands:
        tensor = _carried_operand(value, kind)
        if tensor is None:
            return None
        found.append(tensor)
    return found


def carried_pair(a: Any, b: Any, kind: type[Tensor]) -> tuple[Any, Any] | None:
    """Return two operands, one of them of a carried class, as `carried_operands` does.

    One may be a number beside real ones, and stays one.
    """
    x = a if type(a) in _NUMBERS and b.dtype.kind == "f" else _carried_operand(a, kind, b)
    y = b if type(b) in _NUMBERS and a.dtype.kind == "f" else _carried_operand(b, kind, a)
    return None if x is None or y is None else (x, y)


def _carried_operand(value: Any, kind: type[Tensor], beside: Any = None) -> Tensor | None:
    of = type(value)
    if of is not kind:
        if of is ndarray and value.dtype.kind in "fc":
            value = make(value, None)
        elif of is Tensor:
            value = _alias(value)
        elif beside is not None and (of is complex or of in _NUMBERS):
            if beside._array.__class__ is not ndarray:
                return None
            value = make(scalar_array(value, beside._array), None)
        else:
            return None
        value.__class__ = kind
    return value if value._array.__class__ is ndarray else None


def plain(value: Any) -> Any:
    """Return a tensor of a subclass as a tensor, with the same array and history."""
    if type(value) is Tensor or not isinstance(value, Tensor):
        return value
    return _alias(value)


def _alias(value: Tensor) -> Tensor:
    """Return a new tensor with the same array and history."""
    return make(value._array, value._node if value._view is None else current_node(value))


def is_operand(value: Any) -> bool:
    """Return whether a value is accepted as an operand; if not, Python tries its operator."""
    if isinstance(value, (Tensor, *_SCALARS)):
        return True
    return is_array(value) and value.dtype.kind in "biufc"


def _operand(value: Any, other: Any) -> Any:
    if isinstance(value, Tensor):
        return plain(value)
    if isinstance(value, _SCALARS):
        like = _array_beside(other)
        if like is not None:
            return make(scalar_array(value, like), None)
        value = np.asarray(value, None if isinstance(value, np.generic) else _scalar_dtype(value))
        return make(value, None)
    if is_array(value) and value.dtype.kind in "biufc":
        return make(plain_array(value), None)
    return value.elements() if getattr(value, "is_selection", False) else NotImplemented


def plain_array(array: Array) -> Array:
    """Return an array; raise for one whose operations are not those of NumPy's arrays."""
    if array.__class__ is not ndarray and has_own_operations(array.__class__):
        kind = type(array).__name__
        mend = "Pass numpy.asarray(x), which has its numbers alone"
        if isinstance(array, np.ma.MaskedArray):
            mend = "Pass x.filled(0.0), with a number for what is masked, or x.compressed()"
        raise ArgumentTypeError(
            f"a {kind} has operations of its own, which record nothing: those of NumPy's arrays "
            f"would silently take their place. {mend}"
        )
    return array


@functools.cache
def has_own_operations(kind: type[Any]) -> bool:
    """Return whether a subclass of NumPy's arrays computes differently, as matrices do."""
    return issubclass(kind, ndarray) and any(
        getattr(kind, name) is not getattr(ndarray, name) for name in _OPERATIONS
    )


_OPERATIONS = ("__array_ufunc__", "__array_function__", "__add__", "__mul__", "__pow__")


def _array_beside(operand: Any) -> Array | None:
    """Return the array that a number takes its dtype from; None if that is a Python number, too."""
    if isinstance(operand, Tensor):
        return operand._array
    if isinstance(operand, np.generic):
        return np.asarray(operand)
    return operand if is_array(operand) else None


def _scalar_dtype(value: Any) -> Any:
    """Return the dtype of a Python number without a tensor; None is NumPy's, for integers."""
    if isinstance(value, complex):
        return np.complex128 if default_dtype().itemsize > 4 else np.complex64
    return default_dtype() if isinstance(value, float) else None


def as_tensors(operands: Sequence[Any]) -> list[Tensor]:
    """Return the operands of a function as tensors; numbers take the dtype of the others."""
    tensors: list[Tensor] = []
    like: Any = tensors  # not looked for yet
    for value in operands:
        if type(value) is Tensor or (isinstance(value, Tensor) and value.is_carried):
            tensors.append(value)
            continue
        if like is tensors:
            like = next((t for t in operands if isinstance(t, Tensor)), None)
            if like is None:
                like = next((x for x in operands if _array_beside(x) is not None), None)
        tensor = _operand(value, like)
        if tensor is NotImplemented:
            mend = mend_of_operand(value)
            raise ArgumentTypeError(
                f"expected a Tensor, an array or a number, got {_type_name(value)}"
                + (mend and f": {mend}")
            )
        tensors.append(tensor)
    return tensors
