"""Products after loops: recurrences and their gradients, compared with eager computation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler import build, passes


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    optimize = passes.optimize
    monkeypatch.setattr(build, "optimize", lambda program: optimize(program, check=True))


def numbers(*shape: int, seed: int = 0, **options: Any) -> cr.Tensor:
    return cr.tensor(np.random.default_rng(seed).uniform(-1, 1, shape), **options)


def in_loop(function: Callable[..., Any], *args: Any) -> list[int]:
    """Return the number of matrix products in each loop, compared with eager results."""
    compiled = cr.compile(function, backend="numpy")
    results = [[x.detach().numpy() for x in f(*args)] for f in (compiled, function)]
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    loops = [op for op in compiled.program.programs[0].ops if op.function == "for"]
    return [sum(op.function == "np.matmul" for op in loop.regions[0].ops) for loop in loops]


def recurrence(x: Any, h: Any, w: Any, transposed: bool = False) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = (row + h @ (w.T if transposed else w)).tanh()
        return h, h * 2

    return cr.scan(step, h, x)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("batch", [1, 3])
def test_gradients_of_recurrent_weights(transposed: bool, batch: int) -> None:
    def gradients(x: Any, h: Any, w: Any) -> Any:
        last, all_h = recurrence(x, h, w, transposed)
        return cr.autograd_grad(last.sum() + (all_h * all_h).sum(), [x, h, w])

    inputs = [(7, batch, 5), (batch, 5), (5, 5)]
    args = [numbers(*shape, seed=i, requires_grad=True) for i, shape in enumerate(inputs)]
    assert in_loop(gradients, *args) == [1, 1]  # of the state, and of its cotangent


def test_a_sum_that_starts_elsewhere() -> None:
    def total(x: Any, y: Any, start: Any) -> Any:
        return (cr.scan(lambda s, each: (s + each[0] @ each[1], None), start, (x, y))[0],)

    args = numbers(6, 4, 2), numbers(6, 2, 3, seed=1), numbers(4, 3, seed=2)
    assert in_loop(total, *args) == []  # nothing is left in it


def test_operands_that_are_computed_in_the_loop_are_kept_if_they_are_small() -> None:
    def total(x: Any, start: Any) -> Any:
        def step(s: Any, each: Any) -> Any:
            column = each.sin()
            return s + column @ column.T, None

        return (cr.scan(step, start, x)[0],)

    assert in_loop(total, numbers(6, 8, 2), numbers(8, 8)) == [0]
    assert in_loop(total, numbers(6, 3, 9), numbers(3, 3)) == [1]


@pytest.mark.parametrize(
    "step",
    [
        lambda s, each: (s + each @ each.T, s.sum()),  # the sum is read
        lambda s, each: (s + (s @ each) @ each.T, None),
        lambda s, each: (s - each @ each.T, None),
        lambda s, each: (s * 0.5 + each @ each.T, None),
        lambda s, each: (each @ each.T + each @ each.T * 2, None),
    ],
)
def test_other_carries_stay_in_the_loop(step: Callable[..., Any]) -> None:
    def run(x: Any, start: Any) -> Any:
        last, seen = cr.scan(step, start, x)
        return (last,) if seen is None else (last, seen)

    assert in_loop(run, numbers(5, 4, 2), numbers(4, 4))[0] >= 1


def test_a_partial_sum_that_is_stacked_stays_in_the_loop() -> None:
    def sums(x: Any, start: Any) -> Any:
        def step(s: Any, each: Any) -> Any:
            s = s + each @ each.T
            return s, s

        return cr.scan(step, start, x)

    assert in_loop(sums, numbers(5, 4, 2), numbers(4, 4)) == [1]


def test_no_steps() -> None:
    def total(x: Any, start: Any) -> Any:
        return (cr.scan(lambda s, each: (s + each @ each.T, None), start, x)[0],)

    compiled = cr.compile(total, backend="numpy")
    start = numbers(4, 4)
    np.testing.assert_array_equal(compiled(numbers(0, 4, 2), start)[0].numpy(), start.numpy())
