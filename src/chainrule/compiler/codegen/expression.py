"""Expressions of generated Python source: text that knows its precedence, and literals of values.

Source is composed of expressions only by the functions below, which add parentheses where Python's
grammar needs them: `(-2.0) ** n`, `(-x)[0]`, `(a == b) == c`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.constants import number_of

_BINARY = {
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 1),
    "|": 2,
    "^": 3,
    "&": 4,
    **dict.fromkeys(("+", "-"), 5),
    **dict.fromkeys(("*", "/", "@", "%"), 6),
    "**": 8,
}
"""Precedence of Python's binary operators."""
_COMPARISON, _UNARY, _NUMBER, _PRIMARY = 1, 7, 9, 10
"""Precedence of comparisons, signs, bare numbers (`2 .real`); names, calls and items."""


class Expression(NamedTuple):
    """The text of an expression, and the precedence of its outermost operator."""

    text: str
    precedence: int = _PRIMARY

    def within(self, precedence: int) -> str:
        """Return the text as an operand that must bind at least as tightly as this."""
        return self.text if self.precedence >= precedence else f"({self.text})"


def binary(operator: str, left: Expression, right: Expression) -> Expression:
    """Return an operation of two operands."""
    own = _BINARY[operator]
    if operator == "**":  # groups from the right, and its exponent may have a sign
        first, second = _NUMBER, _UNARY
    else:  # comparisons in a row would be a chain
        first, second = own + (own == _COMPARISON), own + 1
    return Expression(f"{left.within(first)} {operator} {right.within(second)}", own)


def negative(x: Expression) -> Expression:
    """Return -x."""
    return Expression(f"-{x.within(_UNARY)}", _UNARY)


def call(function: str, arguments: Iterable[str]) -> Expression:
    """Return the call of a function with arguments, of which some may be `name=value`."""
    return Expression(f"{function}({', '.join(arguments)})")


def method(x: Expression, name: str, arguments: Iterable[str]) -> Expression:
    """Return the call of a method of x."""
    return call(f"{x.within(_PRIMARY)}.{name}", arguments)


def attribute(x: Expression, name: str) -> Expression:
    """Return an attribute of x."""
    return Expression(f"{x.within(_PRIMARY)}.{name}")


def item(x: Expression, index: str) -> Expression:
    """Return x[index]."""
    return Expression(f"{x.within(_PRIMARY)}[{index}]")


# --- literals -------------------------------------------------------------------------------------

_KINDS = (bool, int, float, complex, str, bytes)


def literal(value: Any) -> Expression:
    """Return the literal of a value, with all its bits; raise TypeError if it has none."""
    if isinstance(value, np.generic):
        plain = value.item()
        if isinstance(plain, np.generic):
            raise TypeError(f"{value.dtype} has no literal")
        return call(f"np.{type(value).__name__}", [literal(plain).text])
    if isinstance(value, np.dtype):
        return Expression(f"np.{value.name}")
    if isinstance(value, type) and issubclass(value, np.generic):
        return Expression(f"np.{value.__name__}")
    if value is Ellipsis:
        return Expression("...")
    if isinstance(value, slice):
        return call("slice", [literal(part).text for part in (value.start, value.stop, value.step)])
    # Of a subclass, such as an IntEnum, repr() may return anything.
    kind: Any = next((k for k in _KINDS if isinstance(value, k)), type(value))
    if kind is complex:  # its repr, a sum, loses the signs of zeros
        return call("complex", [literal(value.real).text, literal(value.imag).text])
    if kind in (int, float):
        text = kind.__repr__(value)
        digits = text.removeprefix("-")
        found = Expression(digits, _NUMBER) if digits[0].isdigit() else Expression(f"np.{digits}")
        return found if digits == text else negative(found)
    if kind in (bool, str, bytes, type(None)):
        return Expression(kind.__repr__(value))
    raise TypeError(f"{kind.__name__} has no literal")


def array_literal(array: Any) -> Expression:
    """Return the literal of an array, with no more digits than its dtype needs."""
    kind = literal(array.dtype).text
    if array.size == 0:
        return call("np.empty", [str(array.shape), kind])
    return call("np.array", [_nested(array), kind])


def _nested(array: Any) -> str:
    if array.ndim:
        return f"[{', '.join(map(_nested, array))}]"
    return literal(number_of(array)).text
