"""Python's operators, and NumPy's ufuncs called on tensors.

The operators are the recorders themselves wherever Python's order of operands allows: small tensors
notice each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS
from chainrule.autograd.tensor import Tensor
from chainrule.backend import ndarray
from chainrule.ops import (
    arithmetic,
    comparison,
    contraction,
    exponential,
    kinks,
    products,
    trigonometry,
)
from chainrule.ops.arithmetic import floor_quotient, power, true_quotient
from chainrule.ops.indexing import get_item, set_at
from chainrule.ops.inplace import METHODS as IN_PLACE

_subtract = RECORDERS["subtract"]
_divide = RECORDERS["divide"]
_matmul = RECORDERS["matmul"]
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
    return RECORDERS["pow"](y, x)


OPERATORS: dict[str, Callable[..., Any]] = {
    "__add__": RECORDERS["add"],
    "__radd__": RECORDERS["add"],
    "__sub__": _subtract,
    "__rsub__": _reflected(_subtract),
    "__mul__": RECORDERS["multiply"],
    "__rmul__": RECORDERS["multiply"],
    "__truediv__": _truediv,
    "__rtruediv__": _rtruediv,
    "__floordiv__": floor_quotient,
    "__rfloordiv__": _reflected(floor_quotient),
    "__mod__": RECORDERS["remainder"],
    "__rmod__": _reflected(RECORDERS["remainder"]),
    "__pow__": power,
    "__rpow__": _rpow,
    "__matmul__": _matmul,
    "__rmatmul__": _reflected(_matmul),
    "__neg__": RECORDERS["negative"],
    "__pos__": arithmetic.positive,
    "__abs__": RECORDERS["abs"],
    "__invert__": RECORDERS["bitwise_invert"],
    "__and__": _compare["bitwise_and"],
    "__rand__": _compare["bitwise_and"],
    "__or__": _compare["bitwise_or"],
    "__ror__": _compare["bitwise_or"],
    "__xor__": _compare["bitwise_xor"],
    "__rxor__": _compare["bitwise_xor"],
    "__eq__": _compare["equal"],
    "__ne__": _compare["not_equal"],
    "__lt__": _compare["less"],
    "__le__": _compare["less_equal"],
    "__gt__": _compare["greater"],
    "__ge__": _compare["greater_equal"],
    "__iadd__": IN_PLACE["add_"],
    "__isub__": IN_PLACE["sub_"],
    "__imul__": IN_PLACE["mul_"],
    "__itruediv__": IN_PLACE["div_"],
    "__ifloordiv__": IN_PLACE["floor_divide_"],
    "__imod__": IN_PLACE["remainder_"],
    "__ipow__": IN_PLACE["pow_"],
    "__iand__": IN_PLACE["bitwise_and_"],
    "__ior__": IN_PLACE["bitwise_or_"],
    "__ixor__": IN_PLACE["bitwise_xor_"],
    "__getitem__": get_item,
    "__setitem__": set_at,
}

# --- NumPy's ufuncs -------------------------------------------------------------------------------

_SAME_NAMES = {
    arithmetic: "add subtract multiply divide floor_divide remainder negative positive square "
    "reciprocal",
    exponential: "sqrt exp expm1 log log1p log2 log10",
    trigonometry: "sin cos tan sinh cosh tanh",
    kinks: "absolute sign maximum minimum floor ceil trunc",
    comparison: "equal not_equal less less_equal greater greater_equal isnan isinf isfinite "
    "logical_not logical_and logical_or logical_xor bitwise_invert bitwise_and bitwise_or "
    "bitwise_xor",
    contraction: "matmul",
    products: "vecdot",
}

_UFUNCS: dict[Any, Callable[..., Any]] = {
    getattr(np, name): getattr(module, name)
    for module, names in _SAME_NAMES.items()
    for name in names.split()
} | {
    np.power: arithmetic.pow,
    np.fabs: kinks.abs,
    np.rint: kinks.round,
    np.arcsin: trigonometry.asin,
    np.arccos: trigonometry.acos,
    np.arctan: trigonometry.atan,
    np.arcsinh: trigonometry.asinh,
    np.arccosh: trigonometry.acosh,
    np.arctanh: trigonometry.atanh,
}


def array_ufunc(x: Tensor, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
    """Record a NumPy ufunc that was called on a tensor, where there is a rule for it."""
    known = (Tensor, ndarray, np.generic, bool, int, float, complex)
    if not all([isinstance(value, known) for value in inputs]):
        return NotImplemented
    function = _UFUNCS.get(ufunc)
    if function is None or method != "__call__":
        call = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise TypeError(
            f"np.{call} has no derivative rule in chainrule: compute it from functions that have "
            "one, give it one with autograd_function, or call it on x.detach().numpy()"
        )
    if settings:
        raise TypeError(
            f"np.{ufunc.__name__} on a Tensor takes no {', '.join(settings)}: call "
            f"chainrule.{function.__name__}, out of place (a = a + t instead of a += t)"
        )
    return function(*inputs)
