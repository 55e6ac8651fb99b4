"""Pitfalls: the known ways in which operations make a nan or an infinity, and their mends.

A pitfall is a condition on the values at one element: the inputs under their names (``x``, ``y``),
the result ``out``, and in a backward pass ``g``, the cotangent that arrives there. Real numbers
only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from chainrule.primitives import (
    contraction,
    elementwise,
    matrix_functions,
    normalisation,
    reductions,
    special,
)
from chainrule.primitives.primitive import Primitive

Values = Mapping[str, float]


class Pitfall(NamedTuple):
    """A known way to a nan or an infinity."""

    title: str
    applies: Callable[[Values], bool]
    mend: str


def _is(name: str, test: Callable[[float], bool]) -> Callable[[Values], bool]:
    return lambda v: name in v and test(v[name])


def _zero(name: str) -> Callable[[Values], bool]:
    return _is(name, lambda value: value == 0)


def _negative(name: str) -> Callable[[Values], bool]:
    return _is(name, lambda value: value < 0)


def _infinite(name: str) -> Callable[[Values], bool]:
    return _is(name, math.isinf)


def _both(one: Callable[[Values], bool], other: Callable[[Values], bool]) -> Callable[..., bool]:
    return lambda v: one(v) and other(v)


def _either(one: Callable[[Values], bool], other: Callable[[Values], bool]) -> Callable[..., bool]:
    return lambda v: one(v) or other(v)


_POSITIVE = (
    "keep the argument positive: x.clamp(min=1e-12), or select the elements before and not after"
)
_ROOT = (
    "add a small number under the root, or take cr.linalg.vector_norm, whose derivative at 0 is 0, "
    "for a root of squares"
)
_RATIO = (
    "add a small number to the denominator, or replace its zeros before the division: "
    "x / cr.where(y == 0, 1.0, y)"
)
_OUTSIDE = "keep the argument inside its domain with clamp(), a little away from the ends"
_OVERFLOW = (
    "subtract the maximum first, or use a function that does: softmax, log_softmax, logsumexp, "
    "log_sigmoid; or compute in float64"
)
_DIFFERENCE = "make the infinities finite first: clamp the operands, or mask with where before"

_LARGE = (
    "make the numbers smaller, by a smaller learning rate, or by data and weights of about 1; or "
    "compute in float64"
)

GIVEN = Pitfall(
    "a nan from before",
    lambda v: True,
    "look for it with cr.isnan() in the data and the parameters, which an update with a learning "
    "rate that is too large may have made",
)
LARGE = Pitfall(
    "overflow: the result is larger than its dtype can hold",
    lambda v: math.isinf(v.get("out", 0)) and not any(math.isinf(v.get(n, 0)) for n in "xy"),
    _LARGE,
)
SINGULAR = Pitfall(
    "the logarithm of the determinant of a singular matrix",
    lambda v: v.get("sign") == 0 or v.get("out") == -math.inf,
    "add a small multiple of the identity to the matrix: A + 1e-6 * cr.eye(n)",
)
LOG_OF_NEGATIVE = Pitfall("the logarithm of a negative number", _negative("x"), _POSITIVE)
LOG_OF_ZERO = Pitfall(
    "the logarithm of 0",
    _zero("x"),
    f"{_POSITIVE}; for the logarithm of a softmax or sigmoid, take log_softmax or logsigmoid",
)
ROOT_OF_NEGATIVE = Pitfall("the root of a negative number", _negative("x"), _POSITIVE)
ROOT_OF_ZERO = Pitfall(
    "the derivative of a root at 0, which is infinite", _either(_zero("x"), _zero("out")), _ROOT
)
ZERO_BY_ZERO = Pitfall("0 / 0", _both(_zero("x"), _zero("y")), _RATIO)
BY_ZERO = Pitfall("a division by zero", _zero("y"), _RATIO)
INF_BY_INF = Pitfall("inf / inf", _both(_infinite("x"), _infinite("y")), _DIFFERENCE)
INF_MINUS_INF = Pitfall("inf - inf", _both(_infinite("x"), _infinite("y")), _DIFFERENCE)
ZERO_TIMES_INF = Pitfall(
    "0 * inf",
    _either(_both(_zero("x"), _infinite("y")), _both(_infinite("x"), _zero("y"))),
    "a mask that multiplies doesn't remove an infinity: use where(mask, x, 0) in its place",
)
INVERSE_OF_ZERO = Pitfall("a division by zero", _zero("x"), _RATIO)
NEGATIVE_BASE = Pitfall(
    "a negative number to a power that is no integer",
    lambda v: v.get("x", 0) < 0 and not _exponent(v).is_integer(),
    "take the power of x.abs(), with x.sign() before it if you need the sign",
)
ZERO_BASE = Pitfall(
    "0 to a power whose value or derivative there is infinite",
    lambda v: v.get("x") == 0 and _exponent(v) < 1,
    "add a small number to the base: (x + 1e-12) ** p",
)
OUTSIDE_ONE = Pitfall(
    "an argument outside of [-1, 1]", _is("x", lambda value: abs(value) > 1), _OUTSIDE
)
AT_ONE = Pitfall(
    "a derivative at the end of the domain [-1, 1], where it is infinite",
    _is("x", lambda value: abs(value) == 1),
    _OUTSIDE,
)
BELOW_ONE = Pitfall("an argument below 1", _is("x", lambda value: value <= 1), _OUTSIDE)
BELOW_MINUS_ONE = Pitfall(
    "the logarithm of a number that is not positive", _is("x", lambda value: value <= -1), _POSITIVE
)
OVERFLOW = Pitfall(
    "overflow: the result is larger than its dtype can hold",
    _both(_is("x", math.isfinite), _is("out", math.isinf)),
    _OVERFLOW,
)
OF_INFINITY = Pitfall("a periodic function of an infinity", _infinite("x"), _DIFFERENCE)
EMPTY_SOFTMAX = Pitfall(
    "a softmax of -inf alone: every element of the row is masked",
    _is("row_max", lambda value: value == -math.inf),
    "leave one element unmasked, mask with a large finite number such as -1e9, or replace these "
    "rows after with where and before with finite numbers",
)
EMPTY_ROW = Pitfall(
    "a reduction of -inf alone: every element of the row is masked",
    EMPTY_SOFTMAX.applies,
    EMPTY_SOFTMAX.mend,
)
OPPOSITE_INFINITIES = Pitfall(
    "inf - inf in a sum",
    _both(
        _is("row_max", lambda value: value == math.inf),
        _is("row_min", lambda value: value == -math.inf),
    ),
    _DIFFERENCE,
)
INFINITE_ROW = Pitfall(
    "a softmax of +inf", _is("row_max", lambda value: value == math.inf), _DIFFERENCE
)
NO_ELEMENTS = Pitfall(
    "0 / 0: the mean of no elements",
    _is("row_size", lambda value: value == 0),
    "leave empty selections out, or divide by max(count, 1)",
)
UNDERFLOW = Pitfall(
    "a logit at 0 or 1, where it is infinite",
    _is("x", lambda value: value in (0, 1)),
    "give logit an eps, or compute with logits from the start",
)


EQUAL_VALUES = Pitfall(
    "a normalisation of equal values, whose variance is 0",
    lambda v: v.get("variance") == 0 or v.get("row_min", 0.0) == v.get("row_max", 1.0),
    "give eps a small number, which is 1e-5 by default, or more than one value",
)


def _exponent(values: Values) -> float:
    return float(values.get("y", values.get("exponent", 1.0)))


_LOGS = (LOG_OF_NEGATIVE, LOG_OF_ZERO)
_POWERS = (NEGATIVE_BASE, ZERO_BASE, OVERFLOW)

PITFALLS: dict[Primitive, tuple[Pitfall, ...]] = {
    **dict.fromkeys([elementwise.log, elementwise.log2, elementwise.log10], _LOGS),
    elementwise.log1p: (BELOW_MINUS_ONE,),
    elementwise.sqrt: (ROOT_OF_NEGATIVE, ROOT_OF_ZERO),
    elementwise.divide: (ZERO_BY_ZERO, INF_BY_INF, BY_ZERO, LARGE),
    elementwise.reciprocal: (INVERSE_OF_ZERO, LARGE),
    elementwise.multiply: (ZERO_TIMES_INF, LARGE),
    elementwise.add: (INF_MINUS_INF, LARGE),
    elementwise.subtract: (INF_MINUS_INF, LARGE),
    contraction.matmul: (LARGE,),
    matrix_functions.slogdet: (SINGULAR,),
    elementwise.pow: _POWERS,
    elementwise.power: _POWERS,
    **dict.fromkeys([elementwise.asin, elementwise.acos], (OUTSIDE_ONE, AT_ONE)),
    elementwise.atanh: (OUTSIDE_ONE, AT_ONE),
    elementwise.acosh: (BELOW_ONE,),
    **dict.fromkeys([elementwise.sin, elementwise.cos, elementwise.tan], (OF_INFINITY,)),
    **dict.fromkeys(
        [
            *(elementwise.exp, elementwise.expm1, elementwise.square),
            *(elementwise.sinh, elementwise.cosh),
        ],
        (OVERFLOW,),
    ),
    **dict.fromkeys([reductions.softmax, reductions.log_softmax], (EMPTY_SOFTMAX, INFINITE_ROW)),
    reductions.logsumexp: (EMPTY_ROW,),
    reductions.sum: (OPPOSITE_INFINITIES, LARGE),
    reductions.mean: (NO_ELEMENTS, OPPOSITE_INFINITIES, LARGE),
    special.logit: (UNDERFLOW,),
    **dict.fromkeys([normalisation.standardize, normalisation.batch_normalize], (EQUAL_VALUES,)),
}
