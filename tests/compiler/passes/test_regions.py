"""Passes for ops with regions: what is the same in all steps of a loop leaves it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

A = np.random.default_rng(0).standard_normal((3, 3))


def iterated(x: Any, rate: Any) -> Any:
    for _ in range(20):
        x = x - (rate * cr.tensor(A).mT).tanh() @ (x * rate.exp()).sin()
    return x.sum()


def in_loops(source: str) -> str:
    """Return the lines of the source that are in a loop."""
    lines = source[source.index("    for ") :].splitlines()
    return "\n".join(line for line in lines if line.startswith(" " * 8))


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_what_is_the_same_in_all_steps_is_computed_once(backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite", reason="machine code needs LLVM")
    gradients = cr.grad(iterated, (0, 1))
    compiled = cr.compile(gradients, backend=backend)
    x, rate = cr.tensor(A[0].copy()), cr.tensor(0.3, dtype=cr.float64)
    for found, expected in zip(compiled(x, rate), gradients(x, rate), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    steps = in_loops(compiled.source)
    assert "np.tanh(" not in steps
    assert "np.exp(" not in steps
    assert "np.sin(" in steps
    assert ", 3, 3]" not in compiled.source  # no stack of them


def test_invariants_of_inner_loops_leave_both() -> None:
    def nested(x: Any, rate: Any) -> Any:
        for _ in range(10):
            for _ in range(10):
                x = x * rate.cos() + (x * rate).sin() * rate.tanh()
            x = x / x.norm()
        return x

    compiled = cr.compile(nested, backend="numpy")
    x, rate = cr.tensor(A[0].copy()), cr.tensor(0.3, dtype=cr.float64)
    np.testing.assert_allclose(compiled(x, rate), nested(x, rate), rtol=1e-12)
    assert compiled.source.count("np.cos(") == 1
    assert "np.cos(" not in in_loops(compiled.source)


def observed(x: Any, rate: Any) -> Any:
    costs = []
    for t in range(20):
        x = x - rate * (x * (t + 1)).sin()
        costs.append((x * x).sum())
    return cr.stack(costs).sum()


def test_gradients_of_sums_are_no_stacks() -> None:
    compiled = cr.compile(cr.grad(observed), backend="numpy")
    x, rate = cr.tensor(A[0].copy()), cr.tensor(0.1, dtype=cr.float64)
    np.testing.assert_allclose(compiled(x, rate), cr.grad(observed)(x, rate), rtol=1e-12)
    assert "np.broadcast_to(" not in compiled.source


def test_writes_in_steps_leave_invariants_as_they_are() -> None:
    def written(x: Any, start: Any) -> Any:
        total = x
        for k in range(20):
            grid = (start * 2).reshape(4, 3).clone()
            grid[1] += total * k
            total = total + grid.sum(0).sin()
        return total

    compiled = cr.compile(written, backend="numpy")
    x, start = cr.tensor(A[0].copy()), cr.tensor(np.arange(12.0))
    np.testing.assert_allclose(compiled(x, start), written(x, start), rtol=1e-12)
