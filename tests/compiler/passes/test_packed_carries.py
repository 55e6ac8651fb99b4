"""Loops whose carries are entries of one array carry the array."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

Function = Callable[..., Any]


def cells(x: Any, y: Any) -> Any:
    """A smooth edit distance: a table in lists of numbers, cell by cell."""
    above = [0.5 * j + x[0] * 0 for j in range(len(y) + 1)]
    for i in range(len(x)):
        row = [above[0] + 1.0]
        for j in range(len(y)):
            ways = cr.stack([above[j] + (x[i] - y[j]) ** 2, above[j + 1] + 1, row[j] + 1])
            row.append(-cr.logsumexp(-ways, 0))
        above = row
    return above[-1]


def lattice(x: Any, y: Any) -> Any:
    """A binomial lattice, whose list of values becomes shorter by one in each step."""
    values = [cr.relu(x[0] * 1.1 ** (2 * k - len(x)) - y[0]) for k in range(len(x) + 1)]
    while len(values) > 1:
        pairs = zip(values[1:], values[:-1], strict=True)
        values = [0.55 * up + 0.44 * down for up, down in pairs]
    return values[0]


def backwards(x: Any, y: Any) -> Any:
    """Rows that are read from their end, beside numbers that are no entries of them."""
    row, total = [*x], y[0]
    for _ in range(6):
        here, found = total, []
        for value in row[::-1]:
            here = 0.5 * here + cr.sin(value)
            found.append(here)
        row, total = found, total + found[0] * found[-1]
    return total + sum(row)


@pytest.mark.parametrize("program", [cells, lattice, backwards])
@pytest.mark.parametrize("n", [2, 3, 4, 12])
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_tables_in_lists_of_numbers(program: Function, n: int, backend: Any) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite", reason="machine code needs llvmlite")
    x, y = (cr.tensor(v) for v in np.random.default_rng(n).standard_normal((2, n)))
    function = cr.value_and_grad(program, (0, 1))
    found = cr.compile(function, backend=backend)(x, y)
    for one, other in zip(cr.tree.leaves(found), cr.tree.leaves(function(x, y)), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12, atol=1e-14)


def test_a_row_is_one_carry() -> None:
    x, y = (cr.tensor(v) for v in np.random.default_rng(0).standard_normal((2, 12)))
    compiled = cr.compile(cr.value_and_grad(cells, (0, 1)), backend="numpy")
    compiled(x, y)
    assigned = re.findall(r"^ +((?:\w+, )+\w+) = ", compiled.source, re.MULTILINE)
    assert max((names.count(",") for names in assigned), default=0) <= 3


def test_carries_of_a_scan_that_are_entries_of_a_row() -> None:
    def step(carry: Any, x: Any) -> Any:
        a, b, c, total = carry
        row = cr.stack([a, b, c]) * x + cr.stack([c, a, b])
        return (row[0], row[1], row[2], total + row.sum()), row[2]

    def loss(start: Any, xs: Any) -> Any:
        last, ys = cr.scan(step, (start[0], start[1], start[2], start[0] * 0), xs)
        return last[0] * last[2] + last[3] + (ys**2).sum()

    start, xs = cr.tensor([0.3, -0.2, 0.7]), cr.linspace(0.1, 0.9, 10)
    function = cr.value_and_grad(loss, (0, 1))
    found = cr.compile(function)(start, xs)
    for one, other in zip(cr.tree.leaves(found), cr.tree.leaves(function(start, xs)), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)
