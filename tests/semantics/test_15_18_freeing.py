"""SEMANTICS 15–18: what a pass frees, and what can be walked again."""

from __future__ import annotations

import weakref

import pytest

import chainrule as cr
from helpers.tensors import equal, leaf, memory
from helpers.torch_comparison import CHAINRULE, raises_runtime_error, same_as_torch

SECOND_TIME = r"Trying to backward through the graph a second time.*Specify retain_graph=True"

# --- 15: retain_graph defaults to create_graph ----------------------------------------------------


def test_s15_without_create_graph_the_graph_is_freed():
    y = leaf([2.0]) * 3
    y.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()


def test_s15_create_graph_retains_it():
    y = (x := leaf([2.0])) * 3
    y.backward(create_graph=True)
    y.backward()
    assert x.grad.tolist() == [6]
    z = x.exp()
    cr.autograd_grad(z, x, create_graph=True)
    cr.autograd_grad(z, x)


def test_s15_unless_told_not_to():
    y = leaf([2.0]).exp()
    y.backward(create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()


def test_s15_retain_graph_alone():
    y = (x := leaf([2.0])) * 3
    for _ in range(3):
        y.backward(retain_graph=True)
    assert x.grad.tolist() == [9]
    assert not x.grad.requires_grad


def custom(x):
    return _custom(x)


@cr.autograd_function
def _custom(ctx, x):
    ctx.save_for_backward(x=x)
    return x * x


@_custom.backward
def _(ctx, g):
    return 2 * g * ctx.saved_variables.x


SAVERS = {
    "x * c": lambda m, x: x * m.tensor([[3.0]], "float64"),
    "2 * x": lambda m, x: 2 * x,
    "x / 2": lambda m, x: x / 2,
    "x / x": lambda m, x: x / x,
    "x * x": lambda m, x: x * x,
    "x ** 2": lambda m, x: x**2,
    "exp": lambda m, x: x.exp(),
    "log": lambda m, x: x.log(),
    "sqrt": lambda m, x: x.sqrt(),
    "sin": lambda m, x: x.sin(),
    "tanh": lambda m, x: x.tanh(),
    "sigmoid": lambda m, x: x.sigmoid(),
    "relu": lambda m, x: x.relu(),
    "abs": lambda m, x: x.abs(),
    "clamp": lambda m, x: x.clamp(min=0.0),
    "x @ x": lambda m, x: x @ x,
    "x @ c": lambda m, x: x @ m.ones(2, 2).double(),
    "where": lambda m, x: m.where(x > 0, x, -x),
    "maximum": lambda m, x: m.maximum(x, x),
    "max": lambda m, x: x.max(),
    "prod": lambda m, x: x.prod(),
    "softmax": lambda m, x: x.softmax(0),
    "logsumexp": lambda m, x: x.logsumexp(0),
}
FREE = {
    "x + 1": lambda m, x: x + 1,
    "x + c": lambda m, x: x + m.tensor([[3.0]], "float64"),
    "x + x": lambda m, x: x + x,
    "x - 1": lambda m, x: x - 1,
    "-x": lambda m, x: -x,
    "sum": lambda m, x: x.sum(),
    "sum over a dimension": lambda m, x: x.sum(0),
    "mean": lambda m, x: x.mean(),
    "view": lambda m, x: x.view(4),
    "T": lambda m, x: x.T,
    "permute": lambda m, x: x.permute(1, 0),
    "x[0]": lambda m, x: x[0],
    "x[:1]": lambda m, x: x[:1],
    "expand": lambda m, x: x.expand(3, 2, 2),
    "unsqueeze": lambda m, x: x.unsqueeze(0),
    "cat": lambda m, x: m.cat([x, x]),
    "stack": lambda m, x: m.stack([x, x]),
    "unbind": lambda m, x: x.unbind()[1],
    "clone": lambda m, x: x.clone(),
    "cast": lambda m, x: x.float(),
    "cumsum": lambda m, x: x.cumsum(0),
}


def fails_the_second_time(m, function):
    y = function(m, m.leaf([[1.0, 2.0], [3.0, 4.0]]))
    y.backward(m.ones(y.shape).to(y.dtype))
    return raises_runtime_error(lambda: y.backward(m.ones(y.shape).to(y.dtype)))


def in_chainrule(function):
    return lambda x: function(CHAINRULE, x)


# --- 16: freed buffers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function", [custom, *map(in_chainrule, SAVERS.values())], ids=["custom", *SAVERS]
)
def test_s16_the_second_time(function):
    x = cr.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = function(x).sum()
    y.backward()
    first = memory(x.grad).copy()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        cr.autograd_grad(y, x)
    assert equal(x.grad, first)


def test_s16_the_error_names_the_operation_and_its_line():
    y = leaf([1.0]).exp()  # this line
    y.backward()
    with pytest.raises(RuntimeError, match=r"ExpBackward0.*test_15_18_freeing.*# this line"):
        y.backward()


def test_s16_autograd_grad_frees_too():
    x = leaf([1.0])
    y = x.exp()
    cr.autograd_grad(y, x)
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()
    assert x.grad is None


def test_s16_a_pass_of_several_roots_frees_all():
    x = leaf([1.0])
    y, z = x.exp(), x.sin()
    cr.autograd_backward([y, z])
    for root in (y, z):
        with pytest.raises(RuntimeError, match=SECOND_TIME):
            root.backward()


def test_s16_the_memory_is_let_go():
    x = leaf([1.0, 2.0])
    constant = cr.tensor([3.0, 4.0])
    alive = weakref.ref(memory(constant))
    y = (x * constant).sum()
    del constant
    assert alive() is not None
    y.backward()
    assert alive() is None


def test_s16_computing_again_is_fine():
    x = leaf([1.0])
    for _ in range(3):
        (x * x).backward()
    assert x.grad.tolist() == [6]


# --- 17: only where something was saved -----------------------------------------------------------


@pytest.mark.parametrize("function", FREE.values(), ids=FREE.keys())
def test_s17_what_saves_nothing_can_be_walked_again(function):
    assert not fails_the_second_time(CHAINRULE, function)


@pytest.mark.parametrize("function", SAVERS.values(), ids=SAVERS.keys())
def test_s17_what_saved_something_cannot(function):
    assert fails_the_second_time(CHAINRULE, function)


@pytest.mark.parametrize("function", [*FREE.values(), *SAVERS.values()], ids=[*FREE, *SAVERS])
def test_s17_as_in_torch(function):
    same_as_torch(lambda m: fails_the_second_time(m, function))


def test_s17_a_sum_twice():
    b = leaf([1.0])
    c = b + 1
    c.backward()
    c.backward()
    assert b.grad.tolist() == [2]


def test_s17_a_leaf_any_number_of_times():
    x = leaf(1.0)
    for _ in range(5):
        x.backward()
    assert x.grad.item() == 5


def test_s17_a_custom_function_that_saved_nothing():
    @cr.autograd_function
    def double(ctx, x):
        return x + x

    @double.backward
    def _(ctx, g):
        return g + g

    y = double(x := leaf([1.0]))
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4]


def test_s17_a_freed_node_that_is_not_reached_does_no_harm():
    x, w = leaf([1.0]), leaf([1.0])
    h = x.exp()
    h.backward()
    ((h + w) + w).backward(inputs=[w])
    assert w.grad.tolist() == [2]
    assert cr.autograd_grad(h + w, w)[0].tolist() == [1]


def test_s17_whether_the_saved_constant_is_needed_counts():
    x, c = leaf([2.0]), cr.tensor([3.0])
    y = c / x
    y.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()


# --- 18: freed state is per node ------------------------------------------------------------------


def test_s18_a_shared_freed_subgraph_fails():
    x = leaf([2.0])
    h = x * x
    a, b = h + 1, h + 2
    a.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        b.backward()


def test_s18_what_is_not_shared_works():
    x = leaf([2.0])
    a, b = x * x, x.exp()
    a.backward()
    b.backward()


def test_s18_nodes_downstream_of_the_freed_one_are_not_freed_by_its_pass():
    x = leaf([2.0])
    h = x * x
    z = h.exp()
    h.backward()
    cr.autograd_grad(z, h)


def test_s18_retain_once_then_plain_then_no_more():
    x = leaf([2.0])
    y = (x * x).exp()
    y.backward(retain_graph=True)
    first = memory(x.grad).copy()
    y.backward()
    assert equal(x.grad, 2 * first)
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward(retain_graph=True)


def test_s18_retaining_is_of_the_pass_and_not_of_the_node():
    x = leaf([2.0])
    h = x * x
    a, b = h + 1, h + 2
    a.backward(retain_graph=True)
    b.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        a.backward()


def test_s18_autograd_grad_frees_only_the_nodes_it_ran():
    x = leaf([2.0])
    h = x * x
    z = h.exp()
    cr.autograd_grad(z, h)
    h.backward()
    assert x.grad.tolist() == [4]


def test_s18_backward_with_inputs_too():
    x, w = leaf([2.0]), leaf([3.0])
    h, k = x * x, w * w
    z = h + k
    z.backward(inputs=[x])
    k.backward()
    assert w.grad.tolist() == [6]
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        h.backward()


def test_s18_a_joint_pass_over_the_shared_subgraph_is_one_pass():
    x = leaf([2.0])
    h = x * x
    cr.autograd_backward([h + 1, h + 2])
    assert x.grad.tolist() == [8]


def test_s18_as_in_torch():
    def program(m):
        x = m.leaf([2.0])
        h = x * x
        a, b, c = h * 2, h + 1, h.exp()
        return [
            raises_runtime_error(lambda: a.backward(retain_graph=True)),
            raises_runtime_error(lambda: b.backward(retain_graph=True)),
            raises_runtime_error(lambda: a.backward()),
            raises_runtime_error(lambda: a.backward()),
            raises_runtime_error(lambda: b.backward()),
            raises_runtime_error(lambda: c.backward()),
            raises_runtime_error(lambda: m.grad(c, h)),
            x.grad,
        ]

    same_as_torch(program)
