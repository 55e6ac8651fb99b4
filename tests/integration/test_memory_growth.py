"""Memory does not grow over many steps of a training loop.

The garbage collector is off: reference counts alone have to free everything (SEMANTICS 72), except
the cycles that create_graph and exceptions make.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import chainrule as cr
from chainrule import optim
from chainrule.autograd.versions import write_log
from helpers.tensors import leaf

Step = Callable[[], object]
STEPS = 1_500


@pytest.fixture(autouse=True)
def counting_alone() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def growth(step: Step, steps: int = STEPS, collect: bool = False) -> tuple[int, int]:
    """Return the growth of allocated memory blocks and known storages over many steps."""

    def state() -> tuple[int, int]:
        if collect:
            gc.collect()
        return sys.getallocatedblocks(), len(write_log.storages)

    for _ in range(1_000):  # what is made once and kept: caches, the last writes, .grad of leaves
        step()
    before = state()
    for _ in range(steps):
        step()
    after = state()
    return after[0] - before[0], after[1] - before[1]


def assert_bounded(step: Step, steps: int = STEPS, collect: bool = False) -> None:
    blocks, storages = growth(step, steps, collect)
    if blocks >= steps / 15:  # other threads allocate, too: a leak is seen again
        blocks, storages = growth(step, steps, collect)
    # A leak of one object a step would be `steps`; a few come and go with the interpreter's own.
    assert blocks < steps / 15, f"{blocks} blocks more after {steps} steps"
    assert storages == 0, f"{storages} storages are still known to have been written"


def test_manual_updates():
    w, x = leaf([0.1, 0.2, 0.3]), cr.tensor([1.0, 2.0, 3.0])

    def step():
        ((w * x).sum() - 1).square().backward()
        with cr.no_grad():
            w.sub_(0.01 * w.grad)
            w.grad.zero_()

    assert_bounded(step)


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam], ids=lambda make: make.__name__)
def test_steps_of_an_optimiser(make):
    w, x = leaf([0.1, 0.2, 0.3]), cr.tensor([1.0, 2.0, 3.0])
    optimiser = make([w], lr=0.01)

    def step():
        optimiser.zero_grad()
        ((w * x).sum() - 1).square().backward()
        optimiser.step()

    assert_bounded(step)


def test_writes_in_place_to_tensors_views_and_regions():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    buffer = cr.zeros(2, 2)  # lives on, and is written again and again

    def step():
        y = x * 2
        y[0].mul_(3)
        y.T[1].add_(x[0])
        y[:, 0] = x[1] * 2
        y.relu_()
        y.sum().backward()
        buffer.copy_(y.detach())

    assert_bounded(step)


def test_a_history_that_is_cut_at_each_step():
    """The state of a recurrent net, written in place and detached."""
    x, state = leaf([0.5, 0.25]), cr.zeros(2)

    def step():
        nonlocal state
        state = state.detach()
        state.mul_(0.5)
        state = (state + x).tanh()
        state.sum().backward()

    assert_bounded(step)


@cr.autograd_function
def scaled(ctx, x, factor):
    ctx.save_for_backward(x=x, factor=factor)
    y = x * factor
    return y, y[:1]


@scaled.backward
def _scaled_backward(ctx, g, h):
    saved = ctx.saved_variables
    return {"x": g * saved.factor, "factor": None}


@cr.autograd_function
def doubled_in_place(ctx, x):
    ctx.mark_dirty(x)
    y = x.mul_(2)
    ctx.save_for_backward(y)
    return y


@doubled_in_place.backward
def _doubled_backward(ctx, g):
    return g * 2


def test_custom_functions():
    x = leaf([1.0, 2.0])

    def step():
        a, b = scaled(x, 3.0)
        c = doubled_in_place(a + 1)
        (c.sum() + b.sum()).backward()

    assert_bounded(step)


def test_graphs_without_a_backward_pass():
    x = leaf([1.0, 2.0])
    assert_bounded(lambda: scaled(x.exp() * x, 2.0)[0].unbind(0))


def test_hooks_that_come_and_go():
    x = leaf([1.0, 2.0])

    def step():
        y = x * x
        with x.register_hook(lambda g: g * 2), y.grad_fn.register_prehook(lambda gs: None):
            y.retain_grad()
            y.register_hook(lambda g: None)
            y.sum().backward()

    assert_bounded(step)


def test_gradients_taken_of_one_graph():
    x = leaf([1.0, 2.0])
    y = (x * x).exp()

    def step():
        cr.autograd_grad(y.sum(), x, retain_graph=True)
        y[0].backward(retain_graph=True)

    assert_bounded(step)


def test_a_leaf_written_a_hundred_thousand_times():
    w = leaf(np.zeros(3))

    def step():
        with cr.no_grad():
            w.add_(1)

    assert_bounded(step, 100_000)


def test_operations_without_any_gradient():
    a = cr.ones(3)
    assert_bounded(lambda: (a * 2).add_(1)[0:2].exp(), 20_000)


def test_second_derivatives():
    x = leaf([1.0, 2.0])

    def step():
        (grad,) = cr.autograd_grad((x**3).sum(), x, create_graph=True)
        cr.autograd_grad(grad.sum(), x)

    assert_bounded(step, collect=True)


def test_create_graph_into_grad():
    x = leaf([1.0, 2.0])

    def step():
        (x**3).sum().backward(create_graph=True)
        x.grad = None

    assert_bounded(step, collect=True)


def freed(x: cr.Tensor) -> None:
    y = (x * x).sum()
    y.backward()
    y.backward()


def overwritten(x: cr.Tensor) -> None:
    y = x * 2
    z = (y * y).sin()
    y.mul_(3)
    z.sum().backward()


def of_a_leaf(x: cr.Tensor) -> None:
    x.mul_(2)


def of_shapes(x: cr.Tensor) -> None:
    y = x * 2
    y[0:1] = cr.ones(3, 3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mistake", [freed, overwritten, of_a_leaf, of_shapes])
def test_errors_that_are_caught(mistake):
    x = leaf([1.0, 2.0])

    def step():
        with pytest.raises(RuntimeError):
            mistake(x)

    assert_bounded(step, 1_000, collect=True)
