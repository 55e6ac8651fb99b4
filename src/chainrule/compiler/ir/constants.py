"""Constants of programs as values with all their bits: keys, scalars, uniform arrays.

`==` alone takes 1, 1.0 and True for one constant, 0.0 for -0.0, and no nan for itself.
"""

from __future__ import annotations

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
    types: Any = {*map(type, value)} if kind in _SETS else ()
    if kind in _ORDERED:
        types = [*map(type, value)]
    if not (_is_exact(value) or (types and all(map(_is_exact, value)))):
        return "constant_key({0}) == {1}", constant_key(value)
    if not types or {*types} == {str}:
        return "{0} == {1}", value
    if kind not in _SETS:
        return "({0}, [*map(type, {0})]) == {1}", (value, types)
    if len(types) > 1:  # {1, 2.0} and {1.0, 2} have the same types
        return "constant_key({0}) == {1}", constant_key(value)
    return "({0}, {{*map(type, {0})}}) == {1}", (value, types)


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
    element = array.reshape(())[()]
    return float(str(element)) if array.dtype.kind == "f" else element.item()


def uniform_element(array: Any) -> Any:
    """Return the element that all of an array are to the bit, as a 0-d array, else None."""
    if array.size == 0:
        return None
    flat = np.ascontiguousarray(array).reshape(-1)
    elements = flat.view(np.uint8).reshape(flat.size, -1)
    return flat[0].reshape(()) if (elements == elements[0]).all() else None
