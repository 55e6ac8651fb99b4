"""Constants through every pass: those that are equal but not the same are told apart."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler import build, passes
from helpers.expression_trees import differences

ALIKE = [
    (0.0, -0.0),
    (0, -0.0),
    (1, 1.0),
    (1, True),
    (2.0, np.float32(2.0)),
    (0.1, np.float32(0.1)),
    (np.float32(0.0), np.float32(-0.0)),
    (complex(0, 1), complex(-0.0, 1)),
    (complex(1, 0.0), complex(1, -0.0)),
    (0j, complex(-0.0, -0.0)),
    (float("nan"), 0.0),
]
PAIRS = ALIKE + [(b, a) for a, b in ALIKE]
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.pow]
ARRAYS = [
    [0.0, -0.0],
    [-0.0, 0.0],
    [-0.0, -0.0],
    [float("nan")] * 2,
    [complex(0, 0), complex(-0.0, 0)],
    [complex(0, -0.0)] * 2,
]


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    optimize = passes.optimize
    monkeypatch.setattr(build, "optimize", lambda program: optimize(program, check=True))
    with np.errstate(all="ignore"):
        yield


def demand(function: Callable[[Any], list[Any]], x: Any) -> None:
    """Compare the results of a function in eager mode and compiled, to the bit."""
    found = cr.compile(function, backend="numpy")(x)
    for i, (got, wanted) in enumerate(zip(found, function(x), strict=True)):
        text = differences(got.detach().numpy(), wanted.detach().numpy())
        assert not text, f"result {i}: {text}"


def vectors() -> Iterator[Any]:
    for dtype in ("float32", "float64", "float16", "complex64", "int64"):
        kept = [0.0, -0.0, -1.0, 3.0] + [np.inf, np.nan] * (dtype[0] != "i")
        yield cr.tensor(np.array(kept).astype(dtype))


@pytest.mark.parametrize("x", list(vectors()), ids=lambda x: str(x.dtype))
def test_both_of_two_equal_numbers(x: Any) -> None:
    def both(x: Any) -> list[Any]:
        pairs = [c for pair in PAIRS for c in pair]
        found = []
        for apply, number in itertools.product(OPERATORS, pairs):
            if apply is operator.lt and (isinstance(number, complex) or x.dtype == cr.complex64):
                continue
            if apply is operator.pow and x.dtype == cr.int64:
                continue  # of integers to negative integers
            found += [apply(x, number), apply(number, x)]
        return found

    demand(both, x)


@pytest.mark.parametrize("array", ARRAYS, ids=str)
@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float16", "float32", "float64"])
def test_arrays_that_are_uniform_only_by_value(array: Any, dtype: str) -> None:
    if isinstance(array[0], complex) and dtype[0] == "f":
        array = [x.real for x in array]

    def applied(x: Any) -> list[Any]:
        constant = cr.tensor(np.array(array, dtype))
        number = cr.tensor(np.array(array[0], dtype))
        return [
            *(apply(x, c) for apply in OPERATORS[:4] for c in (constant, number)),
            *(apply(c, x) for apply in OPERATORS[:4] for c in (constant, number)),
            *(1 / c for c in (constant, number)),
            cr.cat([constant, -constant]) * 1,
        ]

    for x in ([1.0, -1.0], [0.0, -0.0], [-0.0, np.inf]):
        demand(applied, cr.tensor(x, dtype=dtype))


@pytest.mark.parametrize("narrow", ["float32", "float16"])
def test_a_narrow_constant_keeps_its_digits_in_wide_arithmetic(narrow: str) -> None:
    def applied(x: Any) -> list[Any]:
        tenth = cr.tensor([0.1], dtype=narrow)
        row = cr.full((3,), 0.1, dtype=narrow)
        found = [apply(x, c) for apply in OPERATORS for c in (tenth, row)]
        return [*found, -(x * tenth), (-x) * row, cr.maximum(x, row), x.clamp(min=0.1)]

    near = np.array([0.1, np.array(0.1, narrow), 0.3])
    demand(applied, cr.tensor(near))
    demand(applied, cr.tensor(near, dtype="float32"))


def test_a_loop_whose_steps_use_equal_constants() -> None:
    numbers = [complex(0, -0.0), 0j] * 5 + [0.0, -0.0] * 50 + [1, True, 1.0] * 30

    def steps(x: Any) -> list[Any]:
        total = x
        found = []
        for number in numbers:
            total = (total * 0.5 + x).abs() * number + x
            found.append(total)
        return found

    demand(steps, cr.tensor([1.0, -1.0, 0.0, -0.0]))


def arrays() -> list[Any]:
    near = [0.1, np.float32(0.1), np.float16(0.1), 0.0, -0.0, -1.0, np.inf]
    real = [np.array(near).astype(dtype) for dtype in ("float64", "float32", "float16")]
    parts = [complex(a, b) for a, b in zip(near, near[::-1], strict=True)]
    signed = [complex(a, b) for a, b in itertools.product([0.0, -0.0, 1.0, np.inf], repeat=2)]
    return [*real, np.array([1, 0, 2]), np.array(parts), np.array(signed, "complex64")]


@pytest.mark.parametrize("x", arrays(), ids=lambda x: x.dtype.name)
def test_numpys_own_arithmetic_promotes_as_it_does_uncompiled(x: Any) -> None:
    constants = [c for c in (np.float16(0.1), np.float32(0.1), np.float64(0.1), np.int8(1))]
    if x.dtype.kind == "c":
        constants += [1, 1.0, 0, 0.0, -0.0, -1, complex(1, 0), complex(0, -0.0)]

    def applied(x: Any) -> list[Any]:
        found = []
        for c in constants:
            forms = [c]
            if isinstance(c, np.generic):
                forms += [np.full(x.shape, c), np.array([c]), np.array(c)]
                found += [-(np.ones_like(x) * form) for form in forms]
            for form in forms:
                found += [apply(x, form) for apply in OPERATORS[:4]]
                found += [apply(form, x) for apply in OPERATORS[:4]]
                found += [x < form, x == form, -(x * form), (-x) * form, -x + form]
        return found

    compiled = cr.compile(applied, backend="numpy")
    for got, wanted in zip(compiled(x), applied(x), strict=True):
        assert not differences(got, wanted)


def test_a_loop_of_numpys_own_arithmetic() -> None:
    numbers = [complex(0, -0.0), 0j] * 60 + [complex(1, 0.0), complex(1, -0.0)] * 60

    def steps(x: Any) -> Any:
        return np.stack([np.negative(np.conj(x * k * number)) for k, number in enumerate(numbers)])

    x = np.array([complex(0.0, -0.0), complex(-0.0, 1), complex(2, -0.0)])
    compiled = cr.compile(steps, backend="numpy")
    assert not differences(compiled(x), steps(x))
    assert "for i in" in compiled.source


@pytest.mark.parametrize("number", [1.5, -1.5, 0.0, -0.0, 2 + 3j, -2 + 3j, 2 - 3j, np.inf])
def test_a_masked_constant_is_a_positive_zero_elsewhere(number: Any) -> None:
    dtype = "complex128" if isinstance(number, complex) else "float64"

    def sloped(x: Any) -> list[Any]:
        x = x.detach().requires_grad_()
        seed = cr.full((3,), number, dtype=dtype)
        out = cr.where(x.real > 0 if dtype[0] == "c" else x > 0, x, -x * 0)
        return [cr.autograd_grad(cr.where(cr.tensor([True, False, True]), x, out), x, seed)[0]]

    demand(sloped, cr.tensor([1.0, -1.0, 0.0], dtype=dtype))


@pytest.mark.parametrize("bound", [-1, 0, 255, 256, 300, -(2**40)])
def test_integers_are_compared_with_numbers_out_of_their_range(bound: int) -> None:
    def compared(x: Any) -> list[Any]:
        return [x < bound, x >= bound, bound == x, bound > x, x < np.int64(bound)]

    elements = np.array([0, 1, 255])
    for got, wanted in zip(
        compared(cr.tensor(elements.astype(np.uint8))), compared(elements), strict=True
    ):
        np.testing.assert_array_equal(got.numpy(), wanted)
    demand(compared, cr.tensor(np.array([0, 1, 255], np.uint8)))
    x = cr.tensor(np.array([[0, 1], [2, 255]], np.uint8))
    for got, wanted in zip(cr.vmap(compared)(x), compared(x), strict=True):
        np.testing.assert_array_equal(got.numpy(), wanted.numpy())
