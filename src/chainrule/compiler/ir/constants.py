"""Constants of programs as values with all their bits: keys, scalars, uniform arrays.

`==` alone takes 1, 1.0 and True for one constant, 0.0 for -0.0, and no nan for itself.
"""

from __future__ import annotations

import marshal
import numbers
from collections import deque
from typing import Any

import numpy as np

from chainrule.compiler.ir.program import Value

_DECIDED_BY_VALUE = (int, bool, str, bytes, type(None))
_ORDERED = (tuple, list, deque)
_SETS = (set, frozenset)


def constant_key(value: Any) -> Any:
    """Return a key that is equal for constants of the same types and bits; nans are all alike."""
    kind = type(value)
    if kind in _DECIDED_BY_VALUE:
        return kind, value
    if kind in (float, complex):
        return kind, repr(value)
    if kind in _ORDERED:
        return (kind, *map(constant_key, value))
    if kind in _SETS:
        return kind, frozenset(map(constant_key, value))
    if kind is dict:
        return (kind, *((constant_key(k), constant_key(v)) for k, v in value.items()))
    if kind is slice:
        return (kind, *map(constant_key, (value.start, value.stop, value.step)))
    if isinstance(value, np.generic):
        bits = repr(value.item()) if value.dtype.kind in "fc" else value.tobytes()
        return kind, value.dtype, bits
    if isinstance(value, numbers.Number | range):  # Decimal("0") == Decimal("-0.0")
        return kind, repr(value)
    return kind, value


def equality(value: Any) -> tuple[str, Any]:
    """Return the source of the check that {0} is the same constant, and what {1} is in it.

    The caller has compared the types. Most constants need no key, which takes ten times as long.
    """
    kind = type(value)
    if kind in (float, complex) and not _is_exact(value):
        return "repr({0}) == {1}", repr(value)
    if _is_exact(value) or (kind is list and {*map(type, value)} == {str}):
        return "{0} == {1}", value
    if kind in _CONTAINERS and count_marshalled(value) is not None:
        return "dumps({0}, 2) == {1}", marshal.dumps(value, 2)
    return "constant_key({0}) == {1}", constant_key(value)


EQUALITY_SCOPE: dict[str, Any] = {"dumps": marshal.dumps, "constant_key": constant_key}
"""Names that the source of `equality` uses."""

_CONTAINERS = (list, tuple, dict)
_MARSHALLED = (int, float, complex, bool, str, type(None))
"""Types of which `marshal` writes all bits, unlike any object of another type."""

_MAX_NESTING = 20
"""Depth of containers that are written by `marshal`; it also ends the walk of cyclic ones."""


def count_marshalled(value: Any) -> int | None:
    """Return the number of numbers and strings in a container that `marshal` writes, else None."""
    pending, count = [(value, 0)], 0
    while pending:
        part, depth = pending.pop()
        if type(part) in _MARSHALLED:
            count += 1
        elif type(part) in _CONTAINERS and depth < _MAX_NESTING:
            pending += [(p, depth + 1) for p in part]
            if type(part) is dict:
                pending += [(p, depth + 1) for p in part.values()]
        else:
            return None
    return count


def _is_exact(value: Any) -> bool:
    """Whether a constant equals no other constant of its type."""
    return type(value) in _DECIDED_BY_VALUE or (type(value) is float and value == value != 0)


def same_constant(value: Any, other: Any) -> bool:
    """Whether two constants have the same type and bits."""
    return type(value) is type(other) and bool(constant_key(value) == constant_key(other))


def scalar_of(value: Any, constants: dict[Value, Any]) -> Any:
    """Return the Python number that an argument is if it is a scalar constant, else None."""
    if isinstance(value, Value):
        array = constants.get(value)
        if array is None or array.ndim or array.dtype.kind not in "biuf":
            return None
        return number_of(array)
    return value if isinstance(value, int | float) else None


def number_of(array: Any) -> Any:
    """Return the one element of an array as the shortest Python number that its dtype rounds to."""
    element = np.reshape(array, ())[()]
    return float(str(element)) if array.dtype.kind == "f" else element.item()


def uniform_element(array: Any) -> Any:
    """Return the element that all of an array are to the bit, as a 0-d array, else None."""
    if array.size == 0:
        return None
    flat = np.ascontiguousarray(array).reshape(-1)
    elements = flat.view(np.uint8).reshape(flat.size, -1)
    return flat[0].reshape(()) if (elements == elements[0]).all() else None
