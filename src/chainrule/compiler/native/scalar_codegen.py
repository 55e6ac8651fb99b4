"""Scalar source of an operation for one element, with explicit types.

A Python number, which NumPy promotes weakly (`x * 0.5`), gets the type of the array: `f4(0.5)`. So
the arithmetic of a loop equals that of NumPy to the bit; only elementary functions differ, within
the bounds of `vector_math`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.program import Op
from chainrule.primitives.primitive import TABLE

CODES = {
    np.dtype(kind): code
    for code, kind in {
        "f4": np.float32,
        "f8": np.float64,
        "i4": np.int32,
        "i8": np.int64,
        "u1": np.uint8,
        "b1": np.bool_,
    }.items()
}
"""Names in generated source of the types that loops support."""


class Operand(NamedTuple):
    """An argument: its source, its dtype (None for Python numbers), and its value if constant.

    `text` is the real part of a complex argument, and `imag` the source of the other part.
    """

    text: str
    dtype: Any
    number: Any = None
    imag: str = ""


_ARITHMETIC = {
    "np.add": "{0} + {1}",
    "np.subtract": "{0} - {1}",
    "np.multiply": "{0} * {1}",
    "np.negative": "-{0}",
    "np.positive": "{0}",
    "np.abs": "abs({0})",
    "np.absolute": "abs({0})",
    "np.square": "{0} * {0}",
    "np.maximum": "{1} if ({1} >= {0}) | ({1} != {1}) else {0}",
    "np.minimum": "{1} if ({1} <= {0}) | ({1} != {1}) else {0}",
    "np.fmax": "{0} if ({0} >= {1}) | ({1} != {1}) else {1}",
    "np.fmin": "{0} if ({0} <= {1}) | ({1} != {1}) else {1}",
}
"""Operations computed in the type of the result. Of 0.0 and -0.0 the extrema are the second, as
NumPy's are."""

_FLOATING = {
    "np.divide": "{0} / {1}",
    "np.true_divide": "{0} / {1}",
    "np.reciprocal": "{one} / {0}",
    "np.sqrt": "np.sqrt({0})",
    "np.floor": "np.floor({0})",
    "np.ceil": "np.ceil({0})",
    "np.trunc": "np.trunc({0})",
    "np.rint": "np.rint({0})",
    "np.copysign": "np.copysign({0}, {1})",
    "np.conj": "{0}",
    "np.conjugate": "{0}",
    "np.fabs": "abs({0})",
}
"""Operations computed in the type of the result, which must be floating."""

_COMPARISONS = {
    "np.equal": "{0} == {1}",
    "np.not_equal": "{0} != {1}",
    "np.less": "{0} < {1}",
    "np.less_equal": "{0} <= {1}",
    "np.greater": "{0} > {1}",
    "np.greater_equal": "{0} >= {1}",
    "np.isnan": "{0} != {0}",
    "np.isinf": "abs({0}) == {inf}",
    "np.isfinite": "abs({0}) < {inf}",
    "np.signbit": "np.copysign({one}, {0}) < {zero}",
}
"""Operations computed in the common type of the operands."""

_LOGIC = {
    "np.logical_and": "{0} & {1}",
    "np.logical_or": "{0} | {1}",
    "np.logical_xor": "{0} != {1}",
    "np.logical_not": "not {0}",
    "np.bitwise_and": "{0} & {1}",
    "np.bitwise_or": "{0} | {1}",
    "np.bitwise_xor": "{0} != {1}",
    "np.invert": "not {0}",
}
"""Operations on booleans."""

_BITWISE = {
    "np.bitwise_and": "{0} & {1}",
    "np.bitwise_or": "{0} | {1}",
    "np.bitwise_xor": "{0} ^ {1}",
    "np.invert": "{0} ^ {ones}",
    "np.bitwise_invert": "{0} ^ {ones}",
}
"""Operations on integers."""

ELEMENTARY = {
    "np.exp": "exp",
    "np.expm1": "expm1",
    "np.log": "log",
    "np.log1p": "log1p",
    "np.tanh": "tanh",
    "np.sign": "sign",
    "kernels.erf": "erf",
    **{
        f"np.{name}": primitive.name
        for primitive in TABLE.values()
        if primitive.libm
        for name in (primitive.name, getattr(np, primitive.name).__name__)
    },
}
"""Functions with vectorisable code in `vector_math` and `trigonometry`."""

_LIBM = {
    **dict.fromkeys(["np.power", "np.pow"], "{0} ** {1}"),
    **{f"np.{name}": f"np.{name}({{0}})" for name in ("cbrt", "asinh", "acosh", "atanh")},
    **{f"np.arc{name}": f"np.arc{name}({{0}})" for name in ("sinh", "cosh", "tanh")},
    **{f"np.{name}": f"np.{name}({{0}}, {{1}})" for name in ("fmod", "nextafter")},
    **{f"kernels.{name}": f"math.{name}({{0}})" for name in ("erfc", "lgamma")},
    "kernels.gamma": "math.tgamma({0})",
}
"""Functions of libm, which are used for small arrays only: loops of them are slower than NumPy."""

_POWERS = {
    2: "{0} * {0}",
    3: "{0} * {0} * {0}",
    4: "({0} * {0}) * ({0} * {0})",
    1: "{0}",
    0: "{one}",
    -1: "{one} / {0}",
    -2: "{one} / ({0} * {0})",
    0.5: "np.sqrt({0})",
    1.5: "{0} * np.sqrt({0}) if {0} != -{inf} else {inf}",  # as in C
    -0.5: "{one} / np.sqrt({0} + {zero}) if {0} != -{inf} else {zero}",
}


def literal(value: Any, dtype: Any) -> str | None:
    """Return a constant of a dtype as source, or None if the dtype cannot represent it."""
    code = CODES.get(np.dtype(dtype))
    if code is None or isinstance(value, complex):
        return None
    if code == "b1":
        return str(bool(value))
    if code[0] != "f":
        return f"{code}({int(value)})" if _is_exact(dtype, value) else None
    element = np.dtype(dtype).type(value)
    if math.isnan(element):
        return f"{code}(NAN)"
    if math.isinf(element):
        return f"{code}({'-' if element < 0 else ''}INF)"
    return f"{code}({element!s})"


def _is_exact(dtype: Any, value: Any) -> bool:
    info = np.iinfo(dtype)
    return bool(value == value and int(value) == value and info.min <= value <= info.max)


def typed_operand(element: Any) -> Operand:
    """Return a NumPy scalar as an operand."""
    return Operand(literal(element.item(), element.dtype) or "", element.dtype, element.item())


def cast(operand: Operand, dtype: Any) -> str | None:
    """Return an operand converted to another dtype as source, or None if unsupported."""
    if operand.dtype is None:
        return literal(operand.number, dtype)
    if operand.dtype == dtype:
        return operand.text
    source, target = CODES.get(operand.dtype), CODES.get(dtype)
    if source is None or target is None or (source[0] == "f" and target[0] in "iu"):
        return None  # out of range, NumPy's result depends on the machine
    return f"({operand.text} != {source}(0))" if target == "b1" else f"{target}({operand.text})"


def scalar(op: Op, operands: list[Operand]) -> str | None:
    """Return an operation as an expression of its operands, or None if unsupported."""
    out = CODES.get(op.out.dtype)
    if out is None or op.kwargs or not operands:
        return None
    name = op.function
    if name in _ARITHMETIC:
        return None if out == "b1" else _format(_ARITHMETIC[name], operands, op.out.dtype)
    if name in _FLOATING:
        return None if out[0] != "f" else _format(_FLOATING[name], operands, op.out.dtype)
    if name in _COMPARISONS:
        if name.startswith(("np.is", "np.signbit")) and op.inputs[0].dtype.kind != "f":
            return None
        return _format(_COMPARISONS[name], operands, _common_dtype(operands), "b1")
    if name in _BITWISE and out[0] in "iu":
        return _format(_BITWISE[name], operands, op.out.dtype)
    if name in _LOGIC:
        truths = all(o.dtype == np.bool_ or isinstance(o.number, bool) for o in operands)
        known = truths or name.startswith("np.logical")
        return _format(_LOGIC[name], operands, np.dtype(bool)) if known else None
    if name in ELEMENTARY:
        return _elementary(ELEMENTARY[name], operands, op.out.dtype)
    other = _SPECIAL_CASES.get(name)
    return None if other is None else other(op, operands)


def scalar_or_libm(op: Op, operands: list[Operand]) -> str | None:
    """Return the expression of an operation, with functions of libm allowed."""
    found = scalar(op, operands)
    code = CODES.get(op.out.dtype, "")
    if found is None and op.function in _LIBM and code[:1] == "f" and not op.kwargs:
        return _format(_LIBM[op.function], operands, op.out.dtype)
    return found


def _common_dtype(operands: list[Operand]) -> Any:
    return np.result_type(*(o.number if o.dtype is None else o.dtype for o in operands))


def _format(
    template: str, operands: list[Operand], dtype: Any, out: str | None = None
) -> str | None:
    """Return a template filled in with operands of one type; integer results keep their type."""
    dtype = np.dtype(dtype)
    code = CODES.get(dtype)
    texts = [cast(operand, dtype) for operand in operands]
    if code is None or None in texts:
        return None
    zero, one, inf = f"{code}(0)", f"{code}(1)", f"{code}(INF)"
    ones = f"{code}({-1 if code[0] == 'i' else 255})"
    text = template.format(*texts, zero=zero, one=one, inf=inf, ones=ones)
    return f"{code}({text})" if out is None and code[0] in "iu" else text


def _elementary(stem: str, operands: list[Operand], dtype: Any) -> str | None:
    code = CODES[dtype]
    texts = [cast(operand, dtype) for operand in operands]
    if code[0] != "f" or None in texts:
        return None
    return f"{stem}_{code}({', '.join(map(str, texts))})"


def _power(op: Op, operands: list[Operand]) -> str | None:
    number = operands[1].number
    template = None if number is None else _POWERS.get(number)
    if op.out.dtype.kind != "f":
        is_whole = isinstance(number, int) and number >= 0 and op.out.dtype.kind in "iu"
        return _format(template, operands[:1], op.out.dtype) if is_whole and template else None
    if template is not None:
        return _format(template, operands[:1], op.out.dtype)
    return _elementary("pow", operands, op.out.dtype) if CODES[op.out.dtype] == "f4" else None


def _divided(op: Op, operands: list[Operand]) -> str | None:
    """Divide integers. By 0 and -1, the processor may raise an exception; NumPy returns 0 by 0."""
    if CODES[op.out.dtype][0] not in "iu":
        return None
    sign, number = "//" if op.function == "np.floor_divide" else "%", operands[1].number
    if isinstance(number, int) and number > 0:
        return _format(f"{{0}} {sign} {{1}}", operands, op.out.dtype)
    is_safe = "({1} != {zero}) & ({1} != {ones})" if op.out.dtype.kind == "i" else "{1} != {zero}"
    quotient = f"{{0}} {sign} ({{1}} if {is_safe} else {{one}})"
    other = "{zero} - {0} if {1} == {ones} else {zero}" if op.out.dtype.kind == "i" else "{zero}"
    other = other if sign == "//" else "{zero}"
    return _format(f"{quotient} if {is_safe} else ({other})", operands, op.out.dtype)


def _where(op: Op, operands: list[Operand]) -> str | None:
    if len(operands) != 3:
        return None
    mask = cast(operands[0], np.dtype(bool))
    found = _format("{0} if {{mask}} else {1}", operands[1:], op.out.dtype, "")
    return None if found is None or mask is None else found.format(mask=mask)


def _masked(op: Op, operands: list[Operand]) -> str | None:
    zero = Operand("", None, 0)
    return _where(op, [operands[1], operands[0], zero])


def _clip(op: Op, operands: list[Operand]) -> str | None:
    if len(operands) != 3 or CODES[op.out.dtype] == "b1":
        return None
    low, high = (o.dtype is not None or o.number is not None for o in operands[1:])
    if not low or not high:
        if not low and not high:
            return None
        name = "np.maximum" if low else "np.minimum"
        return _format(_ARITHMETIC[name], [operands[0], operands[1 if low else 2]], op.out.dtype)
    return _format("clip({0}, {1}, {2})", operands, op.out.dtype)


def _astype(op: Op, operands: list[Operand]) -> str | None:
    (operand,), dtype = operands, op.out.dtype
    if operand.dtype is None:
        return None
    if operand.dtype.kind == "f" and CODES[dtype] in ("i4", "i8"):
        return _truncated(operand, dtype)
    return cast(operand, dtype)


def _truncated(operand: Operand, dtype: Any) -> str | None:
    """Return a number as an integer: the least one if it is out of range, as on x86 processors."""
    code, kind = CODES[dtype], CODES.get(operand.dtype)
    if kind is None:
        return None
    info, x = np.iinfo(dtype), operand.text
    low, high = f"{kind}({float(info.min)})", f"{kind}({-float(info.min)})"
    return f"{code}({x}) if ({x} >= {low}) & ({x} < {high}) else {code}({info.min})"


_SPECIAL_CASES = {
    "np.power": _power,
    "np.pow": _power,
    "np.remainder": _divided,
    "np.floor_divide": _divided,
    "np.where": _where,
    "masked": _masked,
    "np.clip": _clip,
    "np.astype": _astype,
}


def operands_of(op: Op) -> list[Any]:
    """Return the arguments of an operation that are numbers or arrays, without settings."""
    if op.function == "np.astype":
        return list(op.args[:1])
    return list(op.args)
