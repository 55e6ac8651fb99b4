"""Python's operators.

The operators are the recorders themselves wherever Python's order of operands allows: small tensors
notice each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.autograd.inplace import ufunc_in_place
from chainrule.autograd.operands import is_operand
from chainrule.autograd.tensor import Tensor
from chainrule.ops import arithmetic, comparison
from chainrule.ops.arithmetic import floor_quotient, power, true_quotient
from chainrule.ops.indexing import get_item, set_at
from chainrule.ops.inplace import METHODS as IN_PLACE
from chainrule.primitives import contraction, elementwise
from chainrule.primitives.primitive import Primitive

_subtract = elementwise.subtract.apply
_divide = elementwise.divide.apply
_matmul = contraction.matmul.apply
_compare = comparison.OPERATORS


def _truediv(x: Tensor, y: Any) -> Any:
    if x._array.dtype.kind in "fc":
        return _divide(x, y)
    return true_quotient(x, y)


def _reflected(recorder: Callable[[Any, Any], Any]) -> Callable[[Tensor, Any], Any]:
    """Return the operator for where the tensor is the right operand."""

    def method(x: Tensor, y: Any) -> Any:
        return recorder(y, x)

    return method


def _rtruediv(x: Tensor, y: Any) -> Any:
    return true_quotient(y, x)


def _rpow(x: Tensor, y: Any) -> Any:
    return elementwise.pow.apply(y, x)


def _divmod(x: Any, y: Any) -> Any:
    quotient = floor_quotient(x, y)
    return quotient if quotient is NotImplemented else (quotient, elementwise.remainder.apply(x, y))


def _in_place(name: str) -> Callable[[Tensor, Any], Any]:
    """Return the operator of a method that writes in place."""
    method = IN_PLACE[name]

    def operator(x: Tensor, y: Any) -> Any:
        return method(x, y) if y.__class__ in _USUAL or is_operand(y) else NotImplemented

    return operator


def _ufunc_in_place(name: str, ufunc: Primitive) -> Callable[[Tensor, Any], Any]:
    """Return the operator of a method that is one ufunc, without a call of the method."""

    def operator(x: Tensor, y: Any) -> Any:
        if y.__class__ in _USUAL or is_operand(y):
            return ufunc_in_place(x, name, ufunc, y)
        return NotImplemented

    return operator


_USUAL = frozenset([Tensor, float, int])

OPERATORS: dict[str, Callable[..., Any]] = {
    "__add__": elementwise.add.apply,
    "__radd__": elementwise.add.apply,
    "__sub__": _subtract,
    "__rsub__": _reflected(_subtract),
    "__mul__": elementwise.multiply.apply,
    "__rmul__": elementwise.multiply.apply,
    "__truediv__": _truediv,
    "__rtruediv__": _rtruediv,
    "__floordiv__": floor_quotient,
    "__rfloordiv__": _reflected(floor_quotient),
    "__mod__": elementwise.remainder.apply,
    "__rmod__": _reflected(elementwise.remainder.apply),
    "__pow__": power,
    "__rpow__": _rpow,
    "__matmul__": _matmul,
    "__rmatmul__": _reflected(_matmul),
    "__neg__": elementwise.negative.apply,
    "__pos__": arithmetic.positive,
    "__abs__": elementwise.abs.apply,
    "__invert__": elementwise.bitwise_invert.apply,
    "__and__": _compare["bitwise_and"],
    "__rand__": _compare["bitwise_and"],
    "__or__": _compare["bitwise_or"],
    "__ror__": _compare["bitwise_or"],
    "__xor__": _compare["bitwise_xor"],
    "__rxor__": _compare["bitwise_xor"],
    "__lshift__": arithmetic.left_shift,
    "__rlshift__": _reflected(arithmetic.left_shift),
    "__rshift__": arithmetic.right_shift,
    "__rrshift__": _reflected(arithmetic.right_shift),
    "__divmod__": _divmod,
    "__rdivmod__": _reflected(_divmod),
    "__eq__": _compare["equal"],
    "__ne__": _compare["not_equal"],
    "__lt__": _compare["less"],
    "__le__": _compare["less_equal"],
    "__gt__": _compare["greater"],
    "__ge__": _compare["greater_equal"],
    "__iadd__": _ufunc_in_place("add_", elementwise.add),
    "__isub__": _ufunc_in_place("sub_", elementwise.subtract),
    "__imul__": _ufunc_in_place("mul_", elementwise.multiply),
    "__itruediv__": _in_place("div_"),
    "__ifloordiv__": _in_place("floor_divide_"),
    "__imod__": _in_place("remainder_"),
    "__ipow__": _in_place("pow_"),
    "__iand__": _in_place("bitwise_and_"),
    "__ior__": _in_place("bitwise_or_"),
    "__ixor__": _in_place("bitwise_xor_"),
    "__ilshift__": _in_place("bitwise_left_shift_"),
    "__irshift__": _in_place("bitwise_right_shift_"),
    "__getitem__": get_item,
    "__setitem__": set_at,
}
