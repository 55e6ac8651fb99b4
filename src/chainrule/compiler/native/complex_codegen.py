"""Scalar source of complex operations: a real and an imaginary part, each by real arithmetic.

Loops read and write complex arrays as pairs of real numbers, so their machine code knows real types
only. The formulas are NumPy's; quotients are those of Smith (Algorithm 116: complex division,
CACM 1962), in which no square overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.compiler.ir.program import Op, Value
from chainrule.compiler.native.scalar_codegen import (
    CODES,
    Operand,
    cast,
    literal,
    operands_of,
    scalar,
    typed_operand,
)

REAL_DTYPES: dict[Any, Any] = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}
"""The dtype of the parts of complex numbers."""

Parts = tuple[str, str]


def element_code(dtype: Any) -> str:
    """Return the type in machine code of the elements of an array, or of their parts."""
    return CODES[REAL_DTYPES.get(dtype, dtype)]


def complex_operand(number: Any, dtype: Any) -> Operand:
    """Return a constant of a complex dtype as an operand."""
    part = REAL_DTYPES[np.dtype(dtype)]
    number = complex(number)
    real, imag = literal(number.real, part), literal(number.imag, part)
    return Operand(real or "", np.dtype(dtype), number, imag or "")


def scalar_or_complex(op: Op, operands: list[Operand]) -> str | Parts | None:
    """Return the source of an operation for one element: two parts of a complex result."""
    part = REAL_DTYPES.get(op.out.dtype)
    if part is None and not any(operand.dtype in REAL_DTYPES for operand in operands):
        return scalar(op, operands)
    if op.kwargs:
        return None
    if part is None:
        return _real_result(op, operands)
    rule = _RULES.get(op.function)
    if rule is None:
        return None
    if op.function in _SELECTIONS:
        return rule(op, operands, part)
    pairs = [_pair(operand, part) for operand in operands]
    return None if None in pairs else rule(CODES[part], *pairs)


def _real_result(op: Op, operands: list[Operand]) -> str | None:
    x, dtype = operands[0], op.out.dtype
    code = CODES.get(dtype)
    if len(operands) != 1 or x.number is not None or dtype != REAL_DTYPES.get(x.dtype):
        return None
    if op.function == "np.real":
        return x.text
    if op.function == "np.imag":
        return x.imag
    return f"hypot_{code}({x.text}, {x.imag})" if op.function in _ABSOLUTE else None


_ABSOLUTE = ("np.abs", "np.absolute")
PARTS = frozenset(["np.real", "np.imag"])
"""Operations that choose a part: they take no time, in loops or as views of NumPy."""


def _pair(operand: Operand, part: Any) -> Parts | None:
    """Return both parts of an operand in the dtype of the parts of the result."""
    if operand.dtype is None:
        number = complex(operand.number)
        operand = complex_operand(number, np.result_type(part, np.complex64))
    own = REAL_DTYPES.get(operand.dtype)
    real = cast(operand if own is None else Operand(operand.text, own), part)
    imag = literal(0, part) if own is None else cast(Operand(operand.imag, own), part)
    return None if real is None or imag is None else (real, imag)


# --- rules: the code of the parts, and pairs of real and imaginary parts --------------------------


def _add(_: str, x: Parts, y: Parts) -> Parts:
    return f"{x[0]} + {y[0]}", f"{x[1]} + {y[1]}"


def _subtract(_: str, x: Parts, y: Parts) -> Parts:
    return f"{x[0]} - {y[0]}", f"{x[1]} - {y[1]}"


def _multiply(_: str, x: Parts, y: Parts) -> Parts:
    return f"{x[0]} * {y[0]} - {x[1]} * {y[1]}", f"{x[0]} * {y[1]} + {x[1]} * {y[0]}"


def _divide(code: str, x: Parts, y: Parts) -> Parts:
    if y[1] == literal(0, np.dtype(code)):
        scale = f"({code}(1) / {y[0]})"
        return f"{x[0]} * {scale}", f"{x[1]} * {scale}"
    operands = ", ".join((*x, *y))
    return f"quotient_real({operands})", f"quotient_imag({operands})"


def _where(op: Op, operands: list[Operand], part: Any) -> Parts | None:
    if len(operands) != 3:
        return None
    mask = cast(operands[0], np.dtype(bool))
    x, y = _pair(operands[1], part), _pair(operands[2], part)
    if mask is None or x is None or y is None:
        return None
    return f"{x[0]} if {mask} else {y[0]}", f"{x[1]} if {mask} else {y[1]}"


def _masked(op: Op, operands: list[Operand], part: Any) -> Parts | None:
    return _where(op, [operands[1], operands[0], Operand("", None, 0)], part)


_SELECTIONS = ("np.where", "masked")
_RULES: dict[str, Callable[..., Parts | None]] = {
    "np.add": _add,
    "np.subtract": _subtract,
    "np.multiply": _multiply,
    "np.square": lambda code, x: _multiply(code, x, x),
    "np.divide": _divide,
    "np.true_divide": _divide,
    "np.negative": lambda _, x: (f"-{x[0]}", f"-{x[1]}"),
    "np.positive": lambda _, x: x,
    "np.conj": lambda _, x: (x[0], f"-{x[1]}"),
    "np.conjugate": lambda _, x: (x[0], f"-{x[1]}"),
    "np.astype": lambda _, x: x,
    "kernels.complex": lambda _, x, y: (x[0], y[0]),
    "np.where": _where,
    "masked": _masked,
}


# --- operations of loops --------------------------------------------------------------------------

Expression = Callable[[Op, list[Operand]], str | Parts | None]
"""A function that returns the source of an operation, or None if it has none."""


def constant_operand(item: Any) -> Operand:
    """Return a number among the arguments of an operation as an operand."""
    if not isinstance(item, np.generic):
        return Operand("", None, item)
    return complex_operand(item, item.dtype) if item.dtype in REAL_DTYPES else typed_operand(item)


def is_fusible(op: Op, expression: Expression = scalar_or_complex) -> bool:
    """Return whether an operation is elementwise, with a supported function and types."""
    if len(op.outs) != 1 or op.out.size == 0:
        return False
    operands = []
    for item in operands_of(op):
        if isinstance(item, Value):
            operands.append(Operand("x", item.dtype, None, "y"))
        elif isinstance(item, np.generic) and (item.dtype in CODES or item.dtype in REAL_DTYPES):
            operands.append(constant_operand(item))
        elif isinstance(item, _NUMBERS) or (op.function == "np.clip" and item is None):
            operands.append(Operand("", None, item))
        else:
            return False
    return any(o.dtype is not None for o in operands) and expression(op, operands) is not None


_NUMBERS = bool | int | float | complex
