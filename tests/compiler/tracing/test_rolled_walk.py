"""Backward passes through loops in Python: equal steps are recorded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.tracing import rolled_walk
from chainrule.compiler.tracing.run import trace_call
from chainrule.errors import FreedGraphError

Loss = Callable[..., Any]
CASES: list[Callable[[int], Loss]] = []


def case(make: Callable[[int], Loss]) -> Callable[[int], Loss]:
    CASES.append(make)
    return make


def arguments(steps: int) -> list[Any]:
    """Return a weight, a state, and an array with one row for each step."""
    rng = np.random.default_rng(0)
    shapes = [(4,), (4,), (steps, 4)]
    return [cr.tensor(0.5 * rng.standard_normal(s), requires_grad=True) for s in shapes]


@case
def shared_weight(steps: int) -> Loss:
    def loss(w: Any, x: Any, rows: Any) -> Any:
        h = x * w
        for t in range(steps):
            h = cr.sin(w * h + rows[t]) + 0.1 * h
        return (h * w).sum() + rows[0].sum()

    return loss


@case
def backwards_in_time(steps: int) -> Loss:
    def loss(w: Any, x: Any, rows: Any) -> Any:
        for t in range(steps):
            x = cr.tanh(rows[-1 - t] * w + x * rows[t, 1])
        return x.sum()

    return loss


@case
def outputs_of_all_steps(steps: int) -> Loss:
    def loss(w: Any, x: Any, rows: Any) -> Any:
        outs = []
        for t in range(steps):
            x = cr.tanh(w * x)
            outs.append(x + rows[t])
        return (cr.stack(outs) ** 2).sum()

    return loss


@case
def outputs_of_a_part(steps: int) -> Loss:
    def loss(w: Any, x: Any, rows: Any) -> Any:
        outs = []
        for t in range(steps):
            x = cr.tanh(w * x + rows[t]) + 0.01 * x
            outs.append(x)
        return (cr.stack(outs[steps // 3 : -(steps // 4)]) * w).sum() + outs[steps // 2].exp().sum()

    return loss


@case
def one_other_step(steps: int) -> Loss:
    def loss(w: Any, x: Any, rows: Any) -> Any:
        for t in range(steps):
            x = cr.sin(w * x)
            if t == steps // 2:
                x = x + cr.exp(-x) * rows[t]
        return x.sum()

    return loss


@case
def one_other_constant(steps: int) -> Loss:
    """Two values that a step saves are the same constant in all steps but one."""

    def loss(w: Any, x: Any, rows: Any) -> Any:
        for t in range(steps):
            x = cr.sin(w * x * (3.0 if t == steps // 2 else 2.0)) * (x / 2.0) + w
        return x.sum() + rows.sum()

    return loss


@case
def one_other_array(steps: int) -> Loss:
    """A value that is saved twice in all steps but one."""

    def loss(w: Any, x: Any, rows: Any) -> Any:
        y = x * 1.0
        for t in range(steps):
            x = cr.sin(x * y) * ((w if t == steps // 2 else y) * x)
        return x.sum() + rows.sum()

    return loss


@case
def one_other_index(steps: int) -> Loss:
    """An index that is the same in two steps that follow each other."""

    def loss(w: Any, x: Any, rows: Any) -> Any:
        indices = [7 * t % steps for t in range(steps)]
        indices[steps // 2] = indices[steps // 2 - 1]
        for i in indices:
            x = cr.tanh(rows[i] * w + x)
        return x.sum()

    return loss


@case
def indices_that_stay(steps: int) -> Loss:
    """An index that is the same in the steps that are walked, and differs later."""

    def loss(w: Any, x: Any, rows: Any) -> Any:
        for t in range(steps):
            x = cr.tanh(rows[min(t, steps // 2)] * w + x)
        return x.sum()

    return loss


@case
def two_steps_back(steps: int) -> Loss:
    def loss(w: Any, x: Any, rows: Any) -> Any:
        a, b, c = x, 0.5 * x, 0.1 * x
        for t in range(steps):
            a, b, c = cr.sin(w * a + 0.3 * c) + rows[t], a, b
        return a.sum() + b.sum()

    return loss


@case
def other_results_near_the_end(steps: int) -> Loss:
    """Gradients that wait for one step each, where edges pass others."""

    def loss(w: Any, x: Any, rows: Any) -> Any:
        states = [x, x * 0.6]
        for t in range(steps):
            states.append(cr.tanh(states[-1] * w + states[-2] * 0.3) + rows[t])
        return sum(states[i].sum() for i in (-1, -3, len(states) // 2))

    return loss


@case
def loops_in_loops(steps: int) -> Loss:
    def loss(w: Any, x: Any, rows: Any) -> Any:
        for t in range(steps):
            for i in range(8):
                x = cr.sin(w * x + 0.1 * i)
            x = 0.9 * x + rows[t]
        y = x * x
        for _ in range(steps):
            y = cr.tanh(w + y) * x
        return (x * y).sum()

    return loss


@case
def parts_and_joins(steps: int) -> Loss:
    def loss(w: Any, x: Any, rows: Any) -> Any:
        for t in range(steps):
            a, b = cr.split(x * w + rows[t], 2)
            x = cr.cat([cr.sin(b), cr.tanh(a) + x[:2]])
        return x.sum()

    return loss


@case
def writes_in_place(steps: int) -> Loss:
    def loss(w: Any, x: Any, rows: Any) -> Any:
        u = x.clone()
        for t in range(steps):
            u[1:-1] += 0.1 * (u[2:] - u[:-2]) * w[1:-1] + rows[t, 1:-1]
        return (u * u).sum()

    return loss


@case
def rows_written(steps: int) -> Loss:
    """An array that is written row by row, from the row before and the one after."""

    def loss(w: Any, x: Any, rows: Any) -> Any:
        y = rows * w
        for t in range(1, steps - 1):
            y[t] = cr.tanh(y[t - 1].clone() * w + y[t + 1]) + 0.1 * rows[-t]
        return (y * y).sum() + x.sum()

    return loss


@case
def windows_written(steps: int) -> Loss:
    def loss(w: Any, x: Any, rows: Any) -> Any:
        y = rows[:, 1] * 1.0
        for t in range(steps - 4):
            y[t + 2 : t + 4] = (y[t : t + 4].clone() * w * x).sum() + rows[t, :2]
        return (y * y).sum()

    return loss


@case
def windows_with_strides(steps: int) -> Loss:
    def loss(w: Any, x: Any, rows: Any) -> Any:
        y = (rows * w).reshape(-1)
        for t in range(steps - 2):
            y[4 * t + 4 : 4 * t + 10 : 2] = cr.sin(y[3 * t : 3 * t + 3].clone()) * x[1:]
        return (y * y).sum()

    return loss


@case
def windows_that_the_end_cuts_off(steps: int) -> Loss:
    """What is written has one element whatever the length of the window."""

    def loss(w: Any, x: Any, rows: Any) -> Any:
        y = rows * w
        for t in range(steps):
            y[t : t + 8] = cr.sin(y[t, 0].clone()) + x[0]
        return (y * y * w).sum()

    return loss


@case
def written_through_a_view(steps: int) -> Loss:
    def loss(w: Any, x: Any, rows: Any) -> Any:
        y = rows * w
        inner = y[1:, 1:]
        for t in range(steps - 2):
            inner[t : t + 2, 1] += x[0] * rows[t, 0]
            inner[t, 0] = x[1] * inner[t, 2].clone()
        return (y * y).sum()

    return loss


@case
def written_at_indices(steps: int) -> Loss:
    """Arrays as indices, through a view; their elements are those of a tensor."""

    def loss(w: Any, x: Any, rows: Any) -> Any:
        y, order = rows * w, (rows[:, 0] > 0).long()
        inner = y[1:]
        for t in range(steps):
            inner[order[t : t + 1] + 2] = cr.sin(inner[0].clone() * x)
        return (y * y).sum()

    return loss


@case
def custom_function(steps: int) -> Loss:
    @cr.autograd_function
    def square(ctx: Any, a: Any) -> Any:
        ctx.save_for_backward(a=a)
        return a * a

    @square.backward
    def _(ctx: Any, g: Any) -> Any:
        return {"a": 2 * g * ctx.saved_variables.a}

    def loss(w: Any, x: Any, rows: Any) -> Any:
        for t in range(steps):
            x = cr.sin(square(w * x)) + rows[t]
        return x.sum()

    return loss


@case
def gradients_in_steps(steps: int) -> Loss:
    def loss(w: Any, x: Any, rows: Any) -> Any:
        for t in range(steps):
            slope = cr.grad(lambda y, t=t: (cr.sin(w * y) * y * rows[t]).sum())(x)
            x = x - 0.1 * slope
        return x.sum()

    return loss


def gradients(loss: Loss, steps: int, inside: bool) -> tuple[list[Any], int]:
    """Return the gradients by a compiled function, and the number of ops of its trace."""
    leaves, recorded = arguments(steps), []

    def step(*args: Any) -> Any:
        total = loss(*args)
        if inside:
            total.backward()
        return total

    def traced(*args: Any) -> Any:
        recorded.append(trace_call(*args))
        return recorded[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chainrule.compiler.build.trace_call", traced)
        total = cr.compile(step, backend="numpy", verify=False)(*leaves)
    if not inside:
        total.backward()
    found = [np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]
    return found, len(recorded[0].trace.ops)


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_gradients_are_those_of_all_steps(
    make: Callable[[int], Loss], monkeypatch: pytest.MonkeyPatch
) -> None:
    for steps, inside in ((11, True), (33, False)):
        loss, leaves = make(steps), arguments(steps)
        loss(*leaves).backward()
        rolled, _ = gradients(loss, steps, inside)
        with monkeypatch.context() as patch:
            patch.setattr(rolled_walk, "MIN_NODES", 10**9)
            walked, _ = gradients(loss, steps, inside)
        for a, b, leaf in zip(rolled, walked, leaves, strict=True):
            np.testing.assert_array_equal(a, b)
            if leaf.grad is not None:
                np.testing.assert_allclose(a, leaf.grad.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "shared_weight",
        "outputs_of_all_steps",
        "two_steps_back",
        "rows_written",
        "windows_written",
        "windows_with_strides",
        "written_through_a_view",
    ],
)
def test_steps_are_recorded_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (make,) = [make for make in CASES if make.__name__ == name]
    rolled = [gradients(make(steps), steps, True)[1] for steps in (40, 60)]
    monkeypatch.setattr(rolled_walk, "MIN_NODES", 10**9)
    walked = [gradients(make(steps), steps, True)[1] for steps in (40, 60)]
    assert rolled[1] - rolled[0] < 0.6 * (walked[1] - walked[0])


def test_saved_values_of_steps_are_freed() -> None:
    def step(*args: Any) -> Any:
        total = shared_weight(40)(*args)
        total.backward()
        with pytest.raises(FreedGraphError):
            total.backward()
        return total

    cr.compile(step, backend="numpy", verify=False)(*arguments(40))
