"""Operands by the parameter names of PyTorch."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import chainrule as cr
import chainrule.nn.functional as F
from helpers.torch_comparison import same_as_torch

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
        input=x, dim=0, index=lib.tensor([2, 0]), sparse_grad=True
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_calls(call):
    same_as_torch(lambda lib: call(lib, lib.tensor(X), lib.tensor(Y)))


@pytest.mark.parametrize("module", ["", "fft", "special"])
def test_the_operand_that_pytorch_calls_input_has_no_other_name(module):
    torch = pytest.importorskip("torch")
    ours, theirs = (getattr(lib, module) if module else lib for lib in (cr, torch))
    hidden = []
    for name in ours.__all__:
        function = getattr(ours, name)
        if hasattr(theirs, name) and inspect.isfunction(function):
            first = next(iter(inspect.signature(function).parameters.values()), None)
            if first is not None and first.kind is first.POSITIONAL_ONLY:
                hidden.append(name)
    # The array API gives operands no names, and other ones than PyTorch to some after them.
    assert set(hidden) <= {
        "bilinear",
        "take",
        "fftfreq",
        "rfftfreq",
        "is_tensor",
        "typename",
        "einsum",
    }


def test_an_operand_alone_is_input():
    def program(lib):
        x = lib.tensor(X)
        return (
            lib.abs(input=x),
            lib.sum(input=x, dim=0),
            lib.squeeze(input=x[None]),
            lib.sort(input=x)[0],
            lib.softmax(input=x, dim=0),
            lib.clamp(input=x, min=0),
            lib.diag(input=x),
            lib.where(x > 0, input=x, other=x * 2),
            lib.special.erfcx(input=x),
            lib.fft.fft(input=x).real,
            lib.gather(input=x, dim=0, index=lib.tensor([1, 0])),
            lib.igamma(input=x.abs(), other=x.abs()),
            lib.tensordot(a=x, b=x, dims=1),
            lib.cdist(x1=x[:, None], x2=x[:, None]),
            lib.hstack(tensors=(x, x)),
            lib.complex(real=x, imag=x).imag,
            lib.isin(elements=x, test_elements=x[:1]),
            lib.searchsorted(x.sort()[0], input=x),
            lib.zeros_like(input=x),
            lib.linalg.cross(input=x, other=x * 2 + 1),
        )

    same_as_torch(program)


def test_dimensions_are_axes_too():
    def program(lib):
        x = lib.tensor(np.arange(6.0).reshape(2, 3))
        return (
            lib.quantile(x, 0.3, axis=1, keepdims=True),
            lib.nanquantile(x, 0.3, axis=0),
            lib.trapezoid(x, axis=0),
            lib.trapezoid(x),
            lib.cumulative_trapezoid(x, axis=0),
            lib.repeat_interleave(x, 2, axis=1),
        )

    same_as_torch(program)
    with pytest.raises(TypeError, match="two names of one argument"):
        cr.trapezoid(cr.ones(2), dim=0, axis=0)


WITH_WHOLE_NUMBERS = {
    "one_hot": lambda i: F.one_hot(cr.tensor([0, 1]), i(3)),
    "unfold": lambda i: cr.arange(6).unfold(0, i(2), i(1)),
    "stride": lambda i: F.conv1d(cr.ones(1, 1, 6), cr.ones(1, 1, 2), stride=i(2)),
    "kernel_size": lambda i: F.max_pool2d(cr.arange(36.0).reshape(1, 6, 6), i(2)),
    "padding_idx": lambda i: F.embedding(cr.tensor([1]), cr.ones(3, 2), padding_idx=i(1)),
    "ignore_index": lambda i: F.cross_entropy(cr.eye(3), cr.arange(3), ignore_index=i(1)),
    "bins": lambda i: cr.histc(cr.ones(3), i(4)),
    "zeros": lambda i: cr.zeros(i(3), 2),
    "topk": lambda i: cr.arange(6).topk(i(2))[0],
}


@pytest.mark.parametrize("call", WITH_WHOLE_NUMBERS.values(), ids=WITH_WHOLE_NUMBERS.keys())
def test_tensors_of_one_int_are_whole_numbers(call):
    assert cr.equal(call(cr.tensor), call(int))
    with pytest.raises(TypeError, match="int"):
        call(str)
