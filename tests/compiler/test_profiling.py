"""Reports of compiled functions: program, cost and profile."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import chainrule as cr


@cr.compile
def network(x: Any, w: Any) -> Any:
    hidden = (x @ w).relu()
    return (hidden * hidden).sum()


def test_the_program_prints_its_ops_and_their_cost() -> None:
    w = cr.ones(20, 5, requires_grad=True)
    network(cr.ones(10, 20), w)
    text = str(network.program)
    assert "program network(" in text
    assert "hidden: f4[10, 5] = np.maximum(" in text
    assert "program network_backward(g: f4[]" in text
    assert text.count("FLOP") == 2


def test_costs_are_counted() -> None:
    @cr.compile
    def product(a: Any, b: Any) -> Any:
        return (a @ b).exp()

    product(cr.ones(10, 20), cr.ones(20, 5))
    cost = product.program.cost
    assert cost.operations == 2
    assert cost.flops == 2 * 10 * 20 * 5 + 10 * 5
    assert cost.bytes == 4 * (200 + 100 + 50 + 50 + 50)
    assert cost.buffers == 0
    assert cost.peak == 4 * (200 + 100 + 50 + 50)


def test_large_values_share_memory() -> None:
    @cr.compile
    def chain(x: Any) -> Any:
        for _ in range(10):
            x = (x * 2).sin()
        return x.sum()

    chain(cr.ones(100_000))
    assert chain.program.cost.buffers == 400_000
    assert chain.program.cost.peak < 1_000_000


def test_profile_measures_each_statement_and_changes_nothing() -> None:
    total = cr.zeros(3)

    @cr.compile
    def counted(x: Any) -> Any:
        total.add_(x)
        return total.exp()

    found = cr.profile(counted, cr.ones(3), calls=3)
    assert total.tolist() == [0, 0, 0]
    assert ["total" in row.statement for row in found.rows] == [True, True]
    assert found.seconds == sum(row.seconds for row in found.rows) > 0
    assert "np.exp(total)" in str(found)


def test_profile_needs_a_function() -> None:
    with pytest.raises(cr.ArgumentError, match=r"cr\.profile\(function, \*arguments\)"):
        cr.profile(cr.ones(1))  # type: ignore[call-overload]


def test_functions_that_are_not_compiled_are_profiled_by_line() -> None:
    def layer(x: Any, w: Any) -> Any:
        return (x @ w).tanh()

    def loss(x: Any, w: Any) -> Any:
        for _ in range(2):
            x = layer(x, w)
        scale = 2
        return (x * scale).sum()

    w = cr.ones(3, 3, requires_grad=True)
    found = cr.profile(loss, cr.ones(5, 3), w, calls=2)
    first = layer.__code__.co_firstlineno
    lines = {row.location.line - first: row for row in found.rows}
    assert list(lines) == [1, 4, 5, 6, 7]  # in order, without the lines of `def`
    assert all(row.forward > 0 for row in found.rows)
    assert [line for line, row in lines.items() if row.backward] == [1, 7]
    assert found.seconds == pytest.approx(sum(row.forward + row.backward for row in found.rows))
    assert "return (x @ w).tanh()" in str(found)
    assert w.grad is None


def test_a_profile_by_line_leaves_no_hooks_and_no_tracer() -> None:
    w = cr.ones(3, requires_grad=True)
    kept = []

    def square() -> Any:
        kept.append((w * w).sum())
        return kept[-1]

    before = sys.gettrace()
    cr.profile(square, calls=1)
    assert sys.gettrace() is before
    hooks = kept[0].grad_fn.hooks
    assert not hooks.pre
    assert not hooks.post
    with pytest.raises(ZeroDivisionError):
        cr.profile(lambda: 1 / 0)
    assert sys.gettrace() is before
    assert cr.profile(lambda: None, calls=1).backward == 0.0


def test_there_is_no_program_before_a_call() -> None:
    with pytest.raises(cr.CompileError, match="has not been compiled yet: call it once"):
        _ = cr.compile(lambda x: x).source


def test_results_have_memory_of_their_own() -> None:
    @cr.compile
    def doubled(x: Any) -> Any:
        return x * 2

    x = cr.ones(100_000)
    first = doubled(x)
    part = first[:10]
    second = doubled(x * 3)
    assert (first == 2).all()
    assert (second == 6).all()
    del first
    third = doubled(x * 4)  # a view of the first result is alive
    assert (part == 2).all()
    assert (third == 8).all()
    memory = third.numpy().ctypes.data
    del third
    fourth = doubled(x * 5)
    assert fourth.numpy().ctypes.data == memory  # it was unreferenced
    assert (fourth == 10).all()
    assert (second == 6).all()
    assert (part == 2).all()
