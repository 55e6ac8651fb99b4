"""SEMANTICS 12–14: `.grad`: how it accumulates, whose memory it is, and which tensors have one."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import equal, leaf, memory, share_memory
from helpers.torch_comparison import same_as_torch

# --- 12: accumulation -----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_s12_gradients_accumulate_in_place(shape):
    x = cr.ones(shape, requires_grad=True)
    (x * 2).sum().backward()
    grad, data = x.grad, memory(x.grad)
    (x * 3).sum().backward()
    assert x.grad is grad
    assert np.shares_memory(memory(x.grad), data)
    assert equal(grad, np.full(shape, 5, np.float32))


def test_s12_until_grad_is_taken_away():
    x = leaf([1.0])
    (x * 2).backward()
    kept, x.grad = x.grad, None
    (x * 3).backward()
    assert kept.tolist() == [2]
    assert x.grad.tolist() == [3]


def test_s12_out_of_place_under_create_graph():
    x = leaf([3.0])
    (x * x).backward(create_graph=True)
    first = x.grad
    (x * x).backward(create_graph=True)
    assert x.grad is not first
    assert not share_memory(x.grad, first)
    assert first.tolist() == [6]
    assert x.grad.tolist() == [12]
    assert x.grad.grad_fn is not None


def test_s12_create_graph_after_a_plain_pass():
    x = leaf([3.0])
    (x * x).backward()
    plain = x.grad
    (x * x * x).backward(create_graph=True)
    assert x.grad is not plain
    assert plain.tolist() == [6]
    assert x.grad.tolist() == [33]
    (second,) = cr.autograd_grad(x.grad, x)
    assert second.tolist() == [18]


def test_s12_accumulating_in_place_is_a_write_that_graphs_notice():
    x, w = leaf([3.0]), leaf([1.0])
    (x * x).backward()
    product = w * x.grad
    (x * x).backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_s12_accumulating_into_a_part_of_a_buffer_is_a_write_to_it(lib):
    buffer = lib.zeros(4)
    x, w = lib.leaf([1.0, 2.0], "float32"), lib.leaf(np.ones(4), "float32")
    x.grad = buffer[1:3]
    y = (w * buffer).sum()
    lib.backward((x * x).sum())
    assert buffer.tolist() == [0.0, 2.0, 4.0, 0.0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        lib.backward(y)


def test_s12_as_in_torch():
    def program(m):
        x = m.leaf([1.0, 2.0])
        steps = []
        for create_graph in (False, False, True, True, False):
            before = x.grad
            (x**3).sum().backward(create_graph=create_graph)
            steps.append([x.grad is before, x.grad.requires_grad, x.grad.detach().clone()])
        return steps

    same_as_torch(program)


# --- 13: .grad shares memory with nothing ---------------------------------------------------------

PATHS = {
    "the leaf itself": lambda x, y: x,
    "+ 0": lambda x, y: x + 0,
    "x + y": lambda x, y: x + y,
    "y + x": lambda x, y: y + x,
    "x + x": lambda x, y: x + x,
    "x - y": lambda x, y: x - y,
    "view": lambda x, y: x.view(2, 2),
    "T.T": lambda x, y: x.T.T,
    "reshape of a sum": lambda x, y: (x + y).reshape(4).reshape(2, 2),
    "expand": lambda x, y: x.expand(2, 2),
    "clone": lambda x, y: x.clone() + y.clone(),
    "where": lambda x, y: cr.where(cr.ones(2, 2, dtype=cr.bool), x, y),
    "cat": lambda x, y: cr.cat([x[:1], y[1:]]),
    "stack": lambda x, y: cr.stack([x[0], y[0]]),
    "getitem": lambda x, y: x[:] + y[:],
    "unbind": lambda x, y: cr.stack([*x[:1].unbind(), *y[1:].unbind()]),
    "relu": lambda x, y: x.relu() + y.relu(),
    "long way": lambda x, y: ((x + 0) + (y + 0)) + 0,
}
paths = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())


@pytest.mark.parametrize("create_graph", [False, True])
@paths
def test_s13_not_with_the_gradient_that_came_in(path, create_graph):
    x, y = cr.ones(2, 2, requires_grad=True), cr.ones(2, 2, requires_grad=True)
    g = cr.tensor([[1.0, 2.0], [3.0, 4.0]])
    root = path(x, y)
    root.backward(g, create_graph=create_graph)
    held = [t for t in (x.grad, y.grad, g, x, y, root) if t is not None]
    for i, a in enumerate(held[:-1]):
        for b in held[i + 1 :]:
            if not (a is x and b is root) and not (a is y and b is root):
                assert not share_memory(a, b)
    assert g.tolist() == [[1, 2], [3, 4]]


@paths
def test_s13_nor_is_it_changed_by_the_next_pass_over_a_sibling(path):
    x, y = cr.ones(2, 2, requires_grad=True), cr.ones(2, 2, requires_grad=True)
    path(x, y).backward(cr.ones(2, 2))
    kept = None if y.grad is None else memory(y.grad).copy()
    x.grad.mul_(100)
    assert kept is None or equal(y.grad, kept)


REDUCTIONS = {
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(),
    "sum over a dimension": lambda x: x.sum(0).sum(),
    "expand": lambda x: x[:1].expand(5, 3).sum(),
    "keepdim": lambda x: x.sum(0, keepdim=True).sum(),
    "T": lambda x: x.T.sum(),
}


@pytest.mark.parametrize("function", REDUCTIONS.values(), ids=REDUCTIONS.keys())
@pytest.mark.parametrize("create_graph", [False, True])
def test_s13_nor_is_it_a_broadcast_buffer(function, create_graph):
    x = cr.ones(2, 3, requires_grad=True)
    function(x).backward(create_graph=create_graph)
    array = memory(x.grad)
    assert array.flags.writeable
    assert 0 not in array.strides
    with cr.no_grad():
        x.grad[0, 0] = 100
    assert memory(x.grad).max() == 100
    assert (array == 100).sum() == 1


def test_s13_nor_the_array_that_came_in():
    x, g = leaf([1.0, 2.0]), np.ones(2, np.float32)
    x.backward(g)
    x.grad.add_(1)
    assert g.tolist() == [1, 1]


@pytest.mark.parametrize(
    "view",
    [lambda g: g, lambda g: g[:2], lambda g: g.T[:2], lambda g: g.detach()],
    ids=["itself", "slice", "T", "detach"],
)
def test_s13_nor_a_view_of_the_gradient(view):
    x, base = cr.ones(2, 2, requires_grad=True), cr.ones(2, 2)
    x.backward(view(base))
    x.grad.zero_()
    assert base.tolist() == [[1, 1], [1, 1]]


def test_s13_one_gradient_for_two_leaves():
    x, y, g = leaf([1.0]), leaf([1.0]), cr.ones(1)
    cr.autograd_backward([x, y], [g, g])
    x.grad.zero_()
    assert (g.item(), y.grad.item()) == (1, 1)


def test_s13_the_next_pass_leaves_the_gradient_alone():
    x, g = leaf([1.0]), cr.ones(1)
    for _ in range(3):
        x.backward(g)
    assert g.tolist() == [1]
    assert x.grad.tolist() == [3]


def test_s13_a_gradient_nobody_else_holds_is_as_good():
    x = leaf([1.0])
    x.backward(cr.ones(1))
    x.backward(cr.ones(1))
    assert x.grad.tolist() == [2]


def test_s13_retained_gradients_share_nothing_either():
    x = leaf([1.0, 2.0])
    y = x + 0
    z = y + 0
    y.retain_grad()
    z.retain_grad()
    g = cr.ones(2)
    z.backward(g)
    grads = [x.grad, y.grad, z.grad, g]
    for i, a in enumerate(grads):
        assert not any(share_memory(a, b) for b in grads[i + 1 :])


def test_s13_nor_those_of_inputs():
    x = leaf([1.0, 2.0])
    y = x + 0
    g = cr.ones(2)
    y.backward(g, inputs=[y, x])
    assert not share_memory(x.grad, y.grad)
    assert not share_memory(x.grad, g)
    assert not share_memory(y.grad, g)


def test_s13_a_custom_backward_may_return_one_tensor_twice():
    @cr.autograd_function
    def add(ctx, a, b):
        return a + b

    @add.backward
    def _(ctx, g):
        return g, g

    x, y, g = leaf([1.0]), leaf([1.0]), cr.ones(1)
    add(x, y).backward(g)
    assert not share_memory(x.grad, y.grad)
    assert not share_memory(x.grad, g)
    assert not share_memory(y.grad, g)


def test_s13_a_custom_backward_may_keep_what_it_returns():
    kept = []

    @cr.autograd_function
    def identity(ctx, a):
        return a + 0

    @identity.backward
    def _(ctx, g):
        kept.append(g)
        return g

    x = leaf([1.0])
    identity(x).backward()
    identity(x).backward()
    assert [g.tolist() for g in kept] == [[1], [1]]
    assert x.grad.tolist() == [2]


def test_s13_a_hook_may_keep_what_it_saw_and_what_it_returned():
    seen, given = [], cr.tensor([5.0])
    x = leaf([1.0])
    x.register_hook(lambda g: seen.append(g) or given)
    (x + 0).backward()
    (x + 0).backward()
    assert [g.tolist() for g in seen] == [[1], [1]]
    assert given.tolist() == [5]
    assert x.grad.tolist() == [10]


# --- 14: only leaves get .grad; retain_grad -------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_s14_only_leaves_get_grad():
    x, c = leaf([2.0]), cr.ones(1)
    y = x * 3
    z = y * y * c
    z.backward()
    assert x.grad is not None
    assert y.grad is None
    assert z.grad is None
    assert c.grad is None


def test_s14_retain_grad_keeps_that_of_a_non_leaf():
    x = leaf([2.0])
    y = x * 3
    assert y.retain_grad() is None
    (y * y).backward()
    assert y.grad.tolist() == [12]
    assert x.grad.tolist() == [36]


def test_s14_retain_grad_is_idempotent():
    y = leaf([2.0]) * 3
    y.retain_grad()
    y.retain_grad()
    (y * y).backward()
    assert y.grad.tolist() == [12]


def test_s14_retained_gradients_accumulate_over_passes():
    y = leaf([2.0]) * 3
    y.retain_grad()
    z = y * y
    z.backward(retain_graph=True)
    z.backward()
    assert y.grad.tolist() == [24]


def test_s14_retain_grad_is_a_no_op_on_leaves():
    x = leaf([2.0])
    assert x.retain_grad() is None
    assert not x.retains_grad
    (x * x).backward()
    assert x.grad.tolist() == [4]


def test_s14_retains_grad_tells():
    y = leaf([2.0]) * 3
    assert not y.retains_grad
    y.retain_grad()
    assert y.retains_grad


def test_s14_retain_grad_of_the_root():
    y = leaf([2.0]) * 3
    y.retain_grad()
    y.backward()
    assert y.grad.tolist() == [1]


def test_s14_retain_grad_sees_the_total_and_what_hooks_made_of_it():
    y = leaf([2.0]) * 3
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (y * 2 + y).backward()
    assert y.grad.tolist() == [300]


def test_s14_retain_grad_of_one_of_several_outputs():
    first, second = leaf([1.0, 2.0]).unbind()
    second.retain_grad()
    (first * 3 + second * 5).backward()
    assert second.grad.item() == 5


def test_s14_retain_grad_under_create_graph():
    y = (x := leaf([2.0])) * 3
    y.retain_grad()
    (y * y * y).backward(create_graph=True)
    (second,) = cr.autograd_grad(y.grad, x)
    assert second.tolist() == [6 * 6 * 3]


def test_s14_retain_grad_does_not_keep_the_tensor_alive():
    gc.disable()
    try:
        y = leaf([2.0]) * 3
        y.retain_grad()
        z = y + 1
        alive = weakref.ref(y)
        del y
        assert alive() is None
        z.backward()
    finally:
        gc.enable()


def test_s14_retain_grad_needs_a_tensor_that_requires_grad():
    with pytest.raises(RuntimeError, match=r"can't retain_grad .*_grad=False: no gradient"):
        cr.ones(1).retain_grad()


def test_s14_retained_gradients_do_not_come_from_autograd_grad():
    y = (x := leaf([2.0])) * 3
    y.retain_grad()
    cr.autograd_grad(y * y, y)
    assert y.grad is None
    assert x.grad is None


def test_s14_as_in_torch():
    def program(m):
        x = m.leaf([1.0, 2.0])
        y = x * x
        y.retain_grad()
        z = y.exp()
        z.retain_grad()
        z.sum().backward(retain_graph=True)
        (z + y).sum().backward()
        return x.grad, y.grad, z.grad, bool(y.retains_grad), bool(x.retains_grad)

    same_as_torch(program)
