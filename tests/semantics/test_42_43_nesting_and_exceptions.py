"""SEMANTICS 42–43: passes inside passes, and exceptions in them."""

from __future__ import annotations

import gc
import os
import signal
import time
import weakref

import pytest

import chainrule as cr
from helpers.tensors import leaf

# --- 42: passes inside passes ---------------------------------------------------------------------


def test_s42_a_pass_over_another_graph_inside_a_hook(lib):
    x, w = lib.leaf([2.0]), lib.leaf([3.0])
    y = x * x

    def inner(g):
        with lib.enable_grad():
            (w * w * g.detach()).sum().backward()

    y.register_hook(inner)
    (y * 5).backward()
    assert x.grad.tolist() == [20.0]
    assert w.grad.tolist() == [30.0]


def test_s42_a_pass_over_the_same_graph_inside_a_hook(lib):
    x = lib.leaf([2.0])
    y = x * x
    seen = []

    def inner(g):
        if not seen:
            seen.append(None)
            seen[0] = lib.grad(y, x, retain_graph=True)[0].item()

    y.register_hook(inner)
    y.backward()
    assert seen == [4.0]
    assert x.grad.tolist() == [4.0]


def test_s42_both_passes_may_accumulate_into_one_leaf(lib):
    x = lib.leaf([2.0])
    y = x * 3

    def inner(g):
        with lib.enable_grad():
            (x * 100).backward()

    y.register_hook(inner)
    y.backward()
    assert x.grad.tolist() == [103.0]


def test_s42_a_hook_inside_a_hook_inside_a_hook(lib):
    x = lib.leaf([1.0])
    depth = []

    def inner(g):
        if len(depth) < 30:
            depth.append(lib.is_grad_enabled())
            with lib.enable_grad():
                y = x * 1
            y.register_hook(inner)
            y.backward()

    y = x * 1
    y.register_hook(inner)
    y.backward()
    assert len(depth) == 30
    assert x.grad.tolist() == [31.0]


def test_s42_a_pass_inside_the_backward_of_a_function(lib):
    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            with lib.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (x**3).sum().backward()
            return g * x.grad

    x = lib.leaf([2.0])
    (Cube.apply(x) * 10).backward()
    assert x.grad.tolist() == [120.0]
    assert lib.is_grad_enabled()


def test_s42_the_modes_of_the_outer_pass_come_back(lib):
    x = lib.leaf([1.0])
    y = x * 1
    modes = []

    def inner(g):
        with lib.enable_grad():
            z = x * x
        lib.grad(z, x, create_graph=True)
        modes.append(lib.is_grad_enabled())

    y.register_hook(inner)
    y.backward()
    assert modes == [False]
    assert lib.is_grad_enabled()


class Countdown(cr.autograd.Function):
    """Runs a pass within its backward, which runs a pass within its backward, …"""

    @staticmethod
    def forward(ctx, x, depth, at_the_bottom):
        ctx.rest = depth, at_the_bottom
        return x * 2

    @staticmethod
    def backward(ctx, g):
        depth, at_the_bottom = ctx.rest
        if not depth:
            return g * at_the_bottom(), None, None
        with cr.enable_grad():
            x = leaf([1.0])
            Countdown.apply(x, depth - 1, at_the_bottom).backward()
        return g * x.grad, None, None


def test_s42_passes_nest_deeper_than_calls_may():
    x = leaf([1.0])
    Countdown.apply(x, 2000, lambda: 3.0).backward()
    assert x.grad.tolist() == [3.0]
    assert cr.is_grad_enabled()


def test_s42_modes_and_errors_come_through_all_levels():
    seen = []

    def fail():
        seen.append((cr.is_grad_enabled(), cr.is_anomaly_enabled()))
        raise KeyError("at the bottom")

    x = leaf([1.0])
    with cr.detect_anomaly(), pytest.raises(KeyError, match="at the bottom"):
        Countdown.apply(x, 100, fail).backward()
    assert seen == [(False, True)]
    assert cr.is_grad_enabled()
    Countdown.apply(x, 3, lambda: 1.0).backward()
    assert x.grad.tolist() == [1.0]


def test_s77_an_interrupt_leaves_no_pass_that_goes_on():
    done = []

    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)  # which Python hands to the first thread
        time.sleep(0.2)
        done.append(None)
        return 1.0

    x = leaf([1.0])
    with pytest.raises(KeyboardInterrupt):
        Countdown.apply(x, 30, interrupt).backward()
    assert done == [None]
    assert x.grad is None
    assert cr.is_grad_enabled()
    Countdown.apply(x, 30, lambda: 2.0).backward()
    assert x.grad.tolist() == [2.0]


# --- 43: exceptions -------------------------------------------------------------------------------


class Mine(Exception):
    pass


def fail(*arguments):
    raise Mine("my own words")


def registered(kind, x, y):
    """Register a hook of some kind, that fails, in the graph from x to y."""
    return {
        "tensor": lambda: y.register_hook(fail),
        "leaf": lambda: x.register_hook(fail),
        "node": lambda: y.grad_fn.register_hook(fail),
        "pre": lambda: y.grad_fn.register_prehook(fail),
        "accumulated": lambda: x.register_post_accumulate_grad_hook(fail),
    }[kind]()


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("kind", ["tensor", "leaf", "node", "pre", "accumulated"])
def test_s43_an_exception_in_a_hook_reaches_the_caller(lib, kind, create_graph):
    x = lib.leaf([2.0])
    y = x + 1
    handle = registered(kind, x, y)
    with pytest.raises(Mine, match=r"^my own words"):
        y.backward(create_graph=create_graph)
    assert lib.is_grad_enabled()
    handle.remove()
    x.grad = None
    y.backward()
    assert x.grad.tolist() == [1.0]


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("error", [Mine, KeyboardInterrupt, SystemExit, StopIteration])
def test_s43_every_exception_leaves_the_modes_as_they_were(outer, error):
    def hook(g):
        cr.set_grad_enabled(True)
        raise error("stop")

    y = leaf([1.0]) * 1
    y.register_hook(hook)
    with cr.set_grad_enabled(outer):
        with pytest.raises(error, match="stop"):
            y.backward()
        assert cr.is_grad_enabled() == outer
    assert cr.is_grad_enabled()


def test_s43_an_exception_says_which_node_it_was_at():
    y = leaf([1.0]) * 1
    y.register_hook(fail)
    with pytest.raises(Mine) as info:
        (y * 2).backward()
    assert any("MulBackward0" in note for note in info.value.__notes__)


def test_s43_a_failed_pass_leaves_nothing_for_the_next(lib):
    x = lib.leaf([1.0])
    y = x * 2
    z = x * 3
    handle = y.register_hook(fail)
    with pytest.raises(Mine):
        lib.backward([y, z])
    handle.remove()
    x.grad = None
    (x * 5).backward()
    assert x.grad.tolist() == [5.0]


def test_s43_an_exception_in_an_inner_pass_goes_through_the_outer(lib):
    x = lib.leaf([1.0])
    y = x * 2

    def inner(g):
        with lib.enable_grad():
            z = x * 3
        z.register_hook(fail)
        z.backward()

    y.register_hook(inner)
    with pytest.raises(Mine, match=r"^my own words"):
        y.backward()
    assert lib.is_grad_enabled()


def test_s43_an_exception_caught_inside_a_hook_does_no_harm(lib):
    x = lib.leaf([1.0])
    y = x * 2

    def inner(g):
        with lib.enable_grad():
            z = x * 3
        z.register_hook(fail)
        with pytest.raises(Mine):
            z.backward()
        assert not lib.is_grad_enabled()

    y.register_hook(inner)
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_s43_a_failed_pass_frees_what_it_held():
    class Marker:
        pass

    marker = Marker()
    dead = weakref.ref(marker)

    def hook(g, marker=marker):
        raise Mine

    y = leaf([1.0]) * 1
    y.register_hook(hook)
    del marker, hook
    try:
        y.backward()
    except Mine as error:
        error.__traceback__ = None
    del y
    gc.collect()
    assert dead() is None
