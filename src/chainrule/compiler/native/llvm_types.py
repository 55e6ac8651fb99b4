"""Types and operands of LLVM's instructions.

Numbers have NumPy's types, except that Python numbers take the type of the other operand.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from chainrule.interrupts import errstate

TYPES = {
    **{"f4": "float", "f8": "double", "i4": "i32", "i8": "i64", "u1": "i8", "u8": "i64"},
    "b1": "i1",
}
"""LLVM's names of the types of numbers."""

BITS = {"b1": 1, "u1": 8, "i4": 32, "i8": 64, "u8": 64, "f4": 32, "f8": 64}
UNSIGNED = ("b1", "u1", "u8")
_RANKS = {kind: rank for rank, kind in enumerate(("b1", "u1", "i4", "i8", "f4", "f8"))}


class UnsupportedError(TypeError):
    """The source is outside of the subset."""


class Typed(NamedTuple):
    """An operand: its text, and its type.

    Types besides those of numbers are `int` and `float` of Python constants, which have a `number`
    instead of a text, and `*` followed by the element type for pointers.
    """

    text: str
    kind: str
    number: Any = None


@errstate(over="ignore")
def _rounded(number: Any, kind: str) -> float:
    return float(np.dtype(kind).type(number))


def constant(number: Any, kind: str) -> Typed:
    """Return a number as an operand of a type."""
    if kind == "b1":
        return Typed("true" if number else "false", kind)
    if kind[0] == "f":
        bits = struct.unpack("Q", struct.pack("d", _rounded(number, kind)))[0]
        return Typed(f"0x{bits:016X}", kind)
    half = 0 if kind in UNSIGNED else 1 << (BITS[kind] - 1)
    return Typed(str((int(number) + half) % (1 << BITS[kind]) - half), kind)


VOID = Typed("", "void")
"""What functions without a result return."""


def weak(number: Any) -> Typed:
    """Return a Python number as an operand that takes the type of others."""
    return Typed("", "float" if isinstance(number, float) else "int", number)


def common_kind(*operands: Typed) -> str:
    """Return the type in which operands are combined."""
    kinds = {operand.kind for operand in operands if operand.number is None}
    if not kinds:
        return "f8" if any(operand.kind == "float" for operand in operands) else "i8"
    if any(operand.kind == "float" for operand in operands) and not kinds & {"f4", "f8"}:
        kinds.add("f8")
    if kinds == {"b1"} and any(type(operand.number) in (int, float) for operand in operands):
        return "i8"
    if len(kinds) == 1:
        return next(iter(kinds))
    if not kinds <= _RANKS.keys():
        raise UnsupportedError(f"operands of types {', '.join(sorted(kinds))}")
    return max(kinds, key=_RANKS.__getitem__)


def llvm_type(kind: str) -> str:
    """Return LLVM's name of a type."""
    return "ptr" if kind[0] == "*" else TYPES[kind]


def element_kind(pointer: str) -> str:
    """Return the type of the elements of a pointer; booleans are bytes."""
    return "u1" if pointer == "*b1" else pointer[1:]
