"""Functions of two operands take them by PyTorch's names, too."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from graphs import same_as_torch

NAMES = [
    "add",
    "subtract",
    "sub",
    "rsub",
    "multiply",
    "mul",
    "divide",
    "div",
    "true_divide",
    "floor_divide",
    "remainder",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "fmod",
    "atan2",
    "arctan2",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "copysign",
    "nextafter",
    "xlogy",
    "ldexp",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "eq",
    "isclose",
    "logical_and",
    "logical_or",
    "logical_xor",
    "kron",
    "inner",
    "cross",
    "matmul",
]
X = np.array([1.5, -2.0, 3.0])
Y = np.array([2.5, 1.0, 0.5])


@pytest.mark.parametrize("name", NAMES)
def test_input_and_other(name):
    def program(lib):
        x, y = lib.tensor(X), lib.tensor(Y)
        return getattr(lib, name)(input=x, other=y), getattr(lib, name)(x, other=y)

    same_as_torch(program)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "rsub"])
def test_other_of_a_method(name):
    def program(lib):
        return getattr(lib.tensor(X), name)(other=lib.tensor(Y))

    same_as_torch(program)


INTEGERS = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_left_shift",
    "bitwise_right_shift",
    "gcd",
    "lcm",
]


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    def program(lib):
        return getattr(lib, name)(input=lib.tensor([6, 4]), other=lib.tensor([2, 3]))

    same_as_torch(program)


CALLS = {
    "add alpha": lambda lib, x, y: lib.add(x, other=y, alpha=2),
    "sub alpha": lambda lib, x, y: lib.sub(input=x, other=y, alpha=2),
    "div mode": lambda lib, x, y: lib.div(x, other=y, rounding_mode="floor"),
    "pow": lambda lib, x, y: lib.pow(input=x.abs(), exponent=y),
    "float_power": lambda lib, x, y: lib.float_power(input=x.abs(), exponent=y),
    "heaviside": lambda lib, x, y: lib.heaviside(input=x, values=y),
    "dot": lambda lib, x, y: lib.dot(input=x, tensor=y),
    "vdot": lambda lib, x, y: lib.vdot(input=x, other=y),
    "outer": lambda lib, x, y: lib.outer(input=x, vec2=y),
    "mv": lambda lib, x, y: lib.mv(input=x[None], vec=y),
    "mm": lambda lib, x, y: lib.mm(input=x[None], mat2=y[:, None]),
    "bmm": lambda lib, x, y: lib.bmm(input=x[None, None], mat2=y[None, :, None]),
    "where": lambda lib, x, y: lib.where(condition=x > y, input=x, other=y),
    "allclose": lambda lib, x, y: lib.allclose(input=x, other=y, atol=9.0),
    "gather": lambda lib, x, y: lib.gather(
        input=x, dim=0, index=lib.tensor([2, 0]), sparse_grad=False
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_calls(call):
    same_as_torch(lambda lib: call(lib, lib.tensor(X), lib.tensor(Y)))


def test_sparse_gradients_are_refused():
    with pytest.raises(ValueError, match="gather: there are no sparse gradients"):
        cr.gather(cr.zeros(3), 0, cr.tensor([0]), sparse_grad=True)
