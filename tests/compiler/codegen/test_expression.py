"""Generated expressions: their text means the operations that it was composed of."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.compiler.codegen import expression
from chainrule.compiler.codegen.expression import Expression, literal

OPERATORS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "%": "mod",
    "@": "matmul",
    "**": "pow",
    "&": "and",
    "|": "or",
    "^": "xor",
}
MIRRORED = {"==": "eq", "!=": "ne", "<": "gt", "<=": "ge", ">": "lt", ">=": "le"}
COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class Note:
    """An operand that notes what is done with it."""

    def __init__(self, *tree: Any) -> None:
        self.tree = tree

    def __neg__(self) -> Note:
        return Note("neg", self.tree)

    def __getitem__(self, key: Any) -> Note:
        return Note("item", self.tree, key)

    def __call__(self, *args: Any) -> Note:
        return Note("call", self.tree, *args)

    def __getattr__(self, name: str) -> Note:
        return Note("attribute", self.tree, name)

    def __bool__(self) -> bool:
        raise AssertionError("a chain of comparisons")

    __hash__ = None  # type: ignore[assignment]


def _add_operator(name: str, reflects: bool) -> None:
    def apply(self: Note, other: Any) -> Note:
        return Note(name, self.tree, plain(other))

    def reflected(self: Note, other: Any) -> Note:
        return Note(name, plain(other), self.tree)

    setattr(Note, f"__{name}__", apply)
    if reflects:
        setattr(Note, f"__r{name}__", reflected)


for _name in OPERATORS.values():
    _add_operator(_name, True)
for _name in COMPARISONS.values():
    _add_operator(_name, False)


def plain(value: Any) -> Any:
    return value.tree if isinstance(value, Note) else repr(value)


Made = tuple[Expression, Any]  # an expression, and the tree that its text must mean


def binary(operator: str, left: Made, right: Made) -> Made:
    text = expression.binary(operator, left[0], right[0])
    if operator in OPERATORS:
        return text, (OPERATORS[operator], left[1], right[1])
    if isinstance(left[1], str):  # Python asks the right operand for the mirrored comparison
        return text, (MIRRORED[operator], right[1], left[1])
    return text, (COMPARISONS[operator], left[1], right[1])


def operands(x: Made) -> list[Made]:
    """Return an operand, and what unary forms make of it."""
    called = "call", ("attribute", x[1], "f"), 1
    return [
        x,
        (expression.negative(x[0]), ("neg", x[1])),
        (expression.item(x[0], "0"), ("item", x[1], 0)),
        (expression.attribute(x[0], "T"), ("attribute", x[1], "T")),
        (expression.method(x[0], "f", ["1"]), called),
    ]


A, B, C = (operands((Expression(name), (name,))) for name in "abc")
NUMBERS = [2, -2, 0.5, -0.5, -0.0, math.inf, -math.inf, math.nan, True, complex(0, -1.0), -1j]
LITERALS = [(literal(number), repr(number)) for number in NUMBERS]
EVERY_OPERATOR = [*OPERATORS, *COMPARISONS]


def demand(made: Made) -> None:
    scope = {name: Note(name) for name in "abc"} | {"np": np}
    assert eval(made[0].text, scope).tree == made[1], made[0].text


@pytest.mark.parametrize("outer", EVERY_OPERATOR)
def test_text_means_the_operations_it_was_composed_of(outer: str) -> None:
    minus = LITERALS[1]
    inside = [(A[0], B[0]), (A[1], B[1]), (A[0], minus), (minus, B[0])]
    for inner, (a, b) in itertools.product(EVERY_OPERATOR, inside):
        part = binary(inner, a, b)
        for form in operands(part):
            demand(form)
            demand(binary(outer, form, C[0]))
            demand(binary(outer, C[0], form))
    literals = [*itertools.product(A, LITERALS), *itertools.product(LITERALS, B)]
    for a, b in [*itertools.product(A, B), *literals]:
        for form in operands(binary(outer, a, b)):
            demand(form)


def test_no_superfluous_parentheses() -> None:
    a, b, two = Expression("a"), Expression("b"), literal(2)
    product = expression.binary("*", a, expression.negative(b))
    assert expression.binary("-", product, expression.binary("**", a, literal(-0.5))).text == (
        "a * -b - a ** -0.5"
    )
    assert expression.binary("+", expression.binary("+", a, b), two).text == "a + b + 2"
    assert expression.negative(expression.item(a, "0")).text == "-a[0]"


def bits(value: Any) -> Any:
    """Return a description of a constant with the signs of zeros; all nans are alike."""
    if isinstance(value, complex | np.complexfloating):
        return type(value), bits(value.real), bits(value.imag)
    if isinstance(value, float | np.floating):
        return type(value), math.isnan(value) or (float(value), math.copysign(1, value))
    return type(value), value


floats = st.floats(width=16) | st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf])
constants = st.one_of(
    *(st.integers(), st.booleans(), st.none(), st.text(), st.binary(), st.floats(), floats),
    st.builds(complex, floats, floats),
    *(st.builds(kind, floats) for kind in (np.float16, np.float32, np.float64)),
    st.builds(lambda re, im: np.complex64(complex(re, im)), floats, floats),
    st.builds(np.uint8, st.integers(0, 255)),
    st.builds(np.bool, st.booleans()),
)


@given(constants)
def test_literals_keep_type_and_bits(value: Any) -> None:
    assert bits(eval(literal(value).text, {"np": np})) == bits(value)


@given(st.lists(st.builds(complex, floats, floats), min_size=1, max_size=6))
@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64", "complex128", "bool"])
def test_array_literals_keep_dtype_and_bits(dtype: str, values: list[complex]) -> None:
    kept = values if dtype[0] == "c" else [value.real for value in values]
    array = np.array(kept).astype(dtype).reshape(1, -1)
    again = eval(expression.array_literal(array).text, {"np": np})
    assert (again.shape, again.dtype) == (array.shape, array.dtype)
    assert [bits(x) for x in again.ravel()] == [bits(x) for x in array.ravel()]


@pytest.mark.parametrize("value", [object(), 2 + np.longdouble(1), [1]])
def test_other_objects_have_no_literal(value: Any) -> None:
    with pytest.raises(TypeError, match="has no literal"):
        literal(value)
