"""Rematerialisation keeps the meaning of programs and reduces memory traffic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.compiler import build, passes
from chainrule.compiler.ir.program import Program
from chainrule.compiler.native import fusion_groups
from chainrule.compiler.native.rematerialisation import rematerialise
from chainrule.compiler.native.strides import Accesses

W = cr.tensor(np.random.default_rng(0).normal(size=(6, 6)) / 3, requires_grad=True)
X = cr.tensor(np.random.default_rng(1).normal(size=(4, 6)))


@pytest.fixture(autouse=True)
def small_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion_groups, "LOOP_CALLS", 0)


def find_groups(program: Program) -> tuple[list[fusion_groups.FusionGroup], Accesses]:
    accesses = Accesses(program, program.constants)
    return fusion_groups.find_groups(program, accesses), accesses


def changed(program: Program) -> tuple[Program, int, int]:
    """Return a rematerialised program, and its memory traffic before and after."""
    found, accesses = find_groups(program)
    before = traffic(program, found, accesses)
    rematerialise(found, program, accesses)
    for group in found:
        if group.shape is not None:
            assert {fusion_groups.loop_shape(op) for _, op in group.ops} == {group.shape}
    ops = [op for group in found for _, op in group.ops]
    return program.with_ops(ops), before, traffic(program, found, accesses)


def traffic(program: Program, found: list[fusion_groups.FusionGroup], accesses: Accesses) -> int:
    """Return the number of arrays that all loops read and write."""
    made = [{v for _, op in group.ops for v in op.outs} for group in found]
    reads = [{accesses.of(v).base for v in c.reads} - m for c, m in zip(found, made, strict=True)]
    wanted = {accesses.of(v).base for v in program.results()}.union(*reads)
    loops = [(r, m) for c, r, m in zip(found, reads, made, strict=True) if c.is_loop]
    return sum(len(r) + len(m & wanted) for r, m in loops)


def both(function: Callable[[Any], Any]) -> list[tuple[int, int]]:
    """Compare a compiled function with its rematerialised form; return their traffic."""
    seen = []

    def optimized(program: Program) -> Program:
        found, *numbers = changed(passes.optimize(program))
        found.check()
        seen.append((numbers[0], numbers[1]))
        return found

    plain = cr.compile(function, backend="numpy")
    wanted = plain(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "optimize", optimized)
        again = cr.compile(function, backend="numpy")
        for _ in range(2):
            for a, b in zip(again(X), wanted, strict=True):
                np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    return seen


def activation(x: Any) -> Any:
    h = x @ W
    y = 0.5 * h * (1 + cr.tanh(0.8 * (h + 0.04 * h * h * h)))
    return [cr.autograd_grad((y @ W).square().sum(), W)[0]]


def test_an_activation_stores_only_its_tanh() -> None:
    ((before, after),) = both(activation)
    forward, loss, backward = (
        1 + 2,
        1 + 1,
        3 + 1,
    )  # (h → tanh, y), (y → 2y), (g, h, tanh → gradient)
    assert (
        after == forward + loss + backward - 2 < before
    )  # the loss is a single operation, left to NumPy


def test_expensive_operations_are_not_recomputed() -> None:
    def function(x: Any) -> Any:
        h = x @ W
        y = cr.exp(h) * h
        return [cr.autograd_grad((y @ W).square().sum(), W)[0]]

    ((before, after),) = both(function)
    assert before == after


def test_operations_on_many_paths_are_visited_once() -> None:
    def function(x: Any) -> Any:
        y = h = x @ W
        for _ in range(22):
            y = y * y - y  # 3 ** 22 paths lead back to h
        return [(y @ W) * y + h]

    ((before, after),) = both(function)
    assert after <= before


def test_no_lifetime_is_extended() -> None:
    def function(x: Any) -> Any:
        h = x @ W
        a, b, c = h + 1, h * 2, h - 3  # three live arrays to read, or one dead one
        return [a, b, c, (a @ W) * a * b * c + 1]

    ((before, after),) = both(function)
    assert before == after


# --- random programs ------------------------------------------------------------------------------

OPERATIONS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a - 0.5 * b,
    lambda a, b: -a,
    lambda a, b: cr.maximum(a, b),
    lambda a, b: cr.where(a > b, a, 0.25),
    lambda a, b: cr.tanh(a),
    lambda a, b: a / (1 + b * b),
    lambda a, b: (a + b).mul_(2),
    lambda a, b: a @ W,
    lambda a, b: a - b.mean(-1, keepdim=True),
    lambda a, b: a.flip(0) + b,
]
numbers = st.integers(0, 50)
steps = st.lists(st.tuples(st.sampled_from(OPERATIONS), numbers, numbers), min_size=4, max_size=24)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_random_programs_keep_their_meaning(steps: list[Any]) -> None:
    def function(x: Any) -> Any:
        values = [x, x @ W]
        for operation, i, j in steps:
            values.append(operation(values[-1 - i % len(values)], values[-1 - j % len(values)]))
        loss = sum((v.tanh() * v).sum() for v in [values[1], *values[-3:]])
        return [*cr.autograd_grad(loss, [W], materialize_grads=True), values[-1]]

    for before, after in both(function):
        assert after <= before
