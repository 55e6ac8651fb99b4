"""Calls of NumPy's functions on arrays of which every write must be known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.interop.operands import array_of, constant
from chainrule.ops.indexing import set_at


def locked(value: Any) -> Any:
    """Return arguments with tensors replaced by read-only arrays of the same memory.

    A function that writes to one raises, and a result that shares its memory is read-only too.
    """
    if isinstance(value, Tensor):
        array = array_of(value)
        if array.__class__ is np.ndarray:
            array = array.view()
            array.flags.writeable = False
        return array
    return _each(locked, value)


def is_locked(results: Any) -> bool:
    """Return whether an array among the results can't be written to."""
    if isinstance(results, list | tuple):
        return any([is_locked(part) for part in results])
    # `flags.writeable` warns where the array is one of `numpy.broadcast_arrays`.
    return isinstance(results, np.ndarray) and not results.flags.num & _WRITEABLE


_WRITEABLE = 0x0400  # NPY_ARRAY_WRITEABLE


def is_function(value: Any) -> bool:
    """Return whether there is a function among arguments."""
    if value.__class__ in (list, tuple):
        return any([is_function(part) for part in value])
    if value.__class__ is dict:
        return is_function(list(value.values()))
    is_operand = getattr(value.__class__, "__array_ufunc__", value) is None  # as a polynomial is
    return callable(value) and not isinstance(value, type) and not is_operand


def call_on_copies(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function that writes to arguments, on copies, and write what changed to the tensors.

    The result may be one of the arguments.
    """
    copies: dict[int, tuple[Tensor, Any]] = {}

    def copied(value: Any) -> Any:
        if isinstance(value, Tensor):
            return copies.setdefault(id(value), (value, np.array(array_of(value))))[1]
        return _each(copied, value)

    results = function(*copied(args), **copied(kwargs))
    for tensor, array in copies.values():
        if not np.array_equal(array_of(tensor), array):
            set_at(tensor, ..., constant(array.copy()))
    for tensor, array in copies.values():
        if results is array:
            return tensor
    return results


def _each(convert: Callable[[Any], Any], value: Any) -> Any:
    if value.__class__ in (list, tuple):
        return value.__class__([convert(part) for part in value])
    if value.__class__ is dict:
        return {key: convert(part) for key, part in value.items()}
    return value
