"""Loops that write to arrays: a step touches what it reads and writes, not the whole arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import chainrule as cr
import chainrule.numpy as np
from chainrule.compiler.ir.program import Program, Value
from chainrule.compiler.native.layout import Layout

pytest.importorskip("llvmlite", reason="machine code needs LLVM")

SIZE = 61  # no other loop of the programs is as long
RNG = numpy.random.default_rng(8)


def recursion(x: Any, w: Any) -> Any:
    y = np.zeros(SIZE)
    for i in range(1, SIZE):
        y[i] = np.sin(y[i - 1]) * w[0] + x[i]
    return y


def added_in_place(x: Any, w: Any) -> Any:
    y = x.copy()
    for i in range(SIZE - 1):
        y[i + 1] += w[0] * np.tanh(y[i])
    return y


def relaxation(x: Any, w: Any) -> Any:
    y = np.zeros(SIZE)
    for i in range(1, SIZE - 1):
        y[i] = 0.5 * (y[i - 1] + y[i + 1] + x[i] * w[0])
    return y


def tridiagonal(x: Any, w: Any) -> Any:
    c, d = np.zeros(SIZE), np.zeros(SIZE)
    c[0], d[0] = 0.3, x[0]
    for i in range(1, SIZE):
        pivot = 2.0 + w[0] - 0.3 * c[i - 1]
        c[i] = 0.3 / pivot
        d[i] = (x[i] - 0.3 * d[i - 1]) / pivot
    for i in range(SIZE - 2, -1, -1):
        d[i] = d[i] - c[i] * d[i + 1]
    return d


def rows(x: Any, w: Any) -> Any:
    y = np.zeros((SIZE, 3))
    for i in range(1, SIZE):
        y[i] = y[i - 1] * 0.5 + x[i] * w[:3]
    return y


def columns(x: Any, w: Any) -> Any:
    y = np.zeros((3, SIZE))
    for i in range(1, SIZE):
        y[:, i] = y[:, i - 1] * 0.5 + x[i] * w[:3]
    return y


def first_element(x: Any, w: Any) -> Any:
    y = np.zeros(SIZE)
    y[0] = x[0]
    for i in range(1, SIZE):
        y[i] = x[i] - w[0] * y[i - 1] + 0.1 * y[0]
    return y


def windows(x: Any, w: Any) -> Any:
    y = np.zeros(SIZE - 4)
    for i in range(SIZE - 4):
        y[i] = (x[i : i + 5] * w).sum()
    return y


def autoregression(x: Any, w: Any) -> Any:
    y = np.zeros(SIZE)
    for i in range(5, SIZE):
        y[i] = np.tanh((y[i - 5 : i] * w).sum()) + x[i]
    return y


def butterflies(x: Any, w: Any) -> Any:
    y = x.copy()
    for i in range(SIZE // 2):
        y[2 * i : 2 * i + 2] = np.array([y[2 * i] + w[0] * y[2 * i + 1], y[2 * i] - y[2 * i + 1]])
    return y


def shifted_state(x: Any, w: Any) -> Any:
    state, y = np.zeros(5), np.zeros(SIZE)
    for i in range(SIZE):
        state[1:] = state[:-1].copy()
        state[0] = x[i]
        y[i] = (state * w).sum()
    return y


PROGRAMS = [
    *(recursion, added_in_place, relaxation, tridiagonal, rows, columns, first_element),
    *(windows, autoregression, butterflies, shifted_state),
]


@pytest.mark.no_verify("it compares by itself")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_no_step_copies_an_array(program: Callable[..., Any]) -> None:
    def loss(x: Any, w: Any) -> Any:
        return (program(x, w) ** 2).sum()

    x, w = RNG.normal(size=SIZE), RNG.normal(size=5) * 0.3
    gradient = cr.grad(loss, ("x", "w"))
    compiled = cr.compile(gradient)
    wanted = gradient(x, w)
    for name, found in compiled(x, w).items():
        numpy.testing.assert_allclose(found, wanted[name], rtol=1e-9, atol=1e-12)
    loops = re.split(r"\n {4}(?! )", compiled.source_native)
    steps = [loop for loop in loops if loop.startswith("for iteration")]
    assert steps
    for step in steps:
        assert not re.search(rf"\n +for \w+ in range\(u8\(({SIZE}|{3 * SIZE})\)\)", step)


def waves(c: Any) -> Any:
    x = cr.arange(512, dtype=cr.float64)
    p, v = cr.exp(-(((x - 256) / 10) ** 2)), cr.zeros(511, dtype=cr.float64)
    for _ in range(100):
        v = v - 0.3 * (p[1:] - p[:-1])
        p = p.clone()
        p[1:-1] -= 0.3 * c[1:-1] * (v[1:] - v[:-1])
    return (p**2).sum()


@pytest.mark.no_verify("it compares by itself")
def test_rows_of_a_part_of_a_stack_are_read_where_they_are() -> None:
    c = cr.linspace(0.5, 1, 512, dtype=cr.float64)
    compiled = cr.compile(cr.grad(waves))
    wanted = cr.grad(waves)(c).numpy()
    numpy.testing.assert_allclose(compiled(c).numpy(), wanted, rtol=1e-9, atol=1e-12)
    assert "[98:1:-1]" in compiled.source  # the backward pass leaves out the first and last steps
    assert "place" not in compiled.source_native  # which rows that are copied would have


@pytest.mark.no_verify("it looks at the program alone")
@pytest.mark.parametrize(("size", "apart"), [(63, 64), (64, 80), (512, 528), (513, 544)])
def test_values_do_not_begin_at_the_same_place_of_a_page(size: int, apart: int) -> None:
    values = [Value((size,), numpy.dtype("f8")) for _ in range(3)]
    layout = Layout(Program("f", [], {}, [], [], []))
    starts = [int(layout.allocate(value).start[3:-1]) for value in values]
    assert starts == [0, apart, 2 * apart]
