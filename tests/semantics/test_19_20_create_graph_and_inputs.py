"""SEMANTICS 19–20: `create_graph` and modes inside a pass, and `backward(inputs=)`."""

from __future__ import annotations

import pytest

import chainrule as cr
from helpers.tensors import leaf
from helpers.torch_comparison import same_as_torch

SECOND_TIME = r"Trying to backward through the graph a second time.*Specify retain_graph=True"

# --- 19: create_graph, and modes inside a pass ----------------------------------------------------


def test_s19_gradients_have_a_grad_fn():
    x = leaf([3.0])
    (g,) = cr.autograd_grad(x**3, x, create_graph=True)
    assert g.requires_grad
    assert g.grad_fn is not None
    (x**3).backward(create_graph=True)
    assert x.grad.grad_fn is not None


def test_s19_without_it_they_do_not():
    x = leaf([3.0])
    (g,) = cr.autograd_grad(x**3, x)
    assert not g.requires_grad
    assert g.is_leaf
    (x**3).backward()
    assert not x.grad.requires_grad


def test_s19_a_constant_gradient_does_not_require_grad():
    x = leaf([3.0])
    (g,) = cr.autograd_grad(x + 1, x, create_graph=True)
    assert not g.requires_grad
    (x * 2).backward(create_graph=True)
    assert x.grad.tolist() == [2]


def test_s19_derivatives_of_every_order():
    x = leaf(2.0, cr.float64)
    y, orders = x**5, []
    for _ in range(6):
        (y,) = cr.autograd_grad(y, x, create_graph=True, materialize_grads=True)
        orders.append(y.item())
        if not y.requires_grad:
            break
    assert orders[:5] == [80, 160, 240, 240, 120]


def test_s19_mixed_partials():
    x, y = leaf(2.0), leaf(3.0)
    (gx,) = cr.autograd_grad(x * x * y * y * y, x, create_graph=True)
    (gxy,) = cr.autograd_grad(gx, y)
    assert gxy.item() == 2 * 2 * 3 * 9


def test_s19_a_penalty_on_the_gradient():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (g,) = cr.autograd_grad((x * w).sum(), x, create_graph=True)
    (g * g).sum().backward()
    assert w.grad.tolist() == [6, 8]
    assert x.grad is None


def test_s19_through_grad_itself():
    x = leaf([2.0])
    (x**3).backward(create_graph=True)
    first, x.grad = x.grad, None
    first.backward()
    assert x.grad.tolist() == [12]


def test_s19_gradient_arguments_are_differentiated_too():
    x, v = leaf([2.0]), leaf([5.0])
    (g,) = cr.autograd_grad(x * x, x, v, create_graph=True)
    gx, gv = cr.autograd_grad(g, [x, v])
    assert gx.tolist() == [10]
    assert gv.tolist() == [4]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("recording", [False, True])
def test_s19_inside_a_pass_recording_is_create_graph(create_graph, recording):
    seen = []

    @cr.autograd_function
    def spy(ctx, x):
        return x + 0

    @spy.backward
    def _(ctx, g):
        seen.append(cr.is_grad_enabled())
        return g

    x = leaf([1.0])
    y = spy(x)
    y.register_hook(lambda g: seen.append(cr.is_grad_enabled()))
    y.grad_fn.register_hook(lambda *_: seen.append(cr.is_grad_enabled()))
    y.grad_fn.register_prehook(lambda *_: seen.append(cr.is_grad_enabled()))
    x.register_hook(lambda g: seen.append(cr.is_grad_enabled()))
    x.register_post_accumulate_grad_hook(lambda _: seen.append(cr.is_grad_enabled()))
    with cr.set_grad_enabled(recording):
        y.backward(create_graph=create_graph)
        assert cr.is_grad_enabled() is recording
    assert seen == [create_graph] * 6
    assert cr.is_grad_enabled()


def test_s19_backward_under_no_grad():
    x = leaf([3.0])
    y = x * x
    with cr.no_grad():
        y.backward()
        assert not cr.is_grad_enabled()
    assert x.grad.tolist() == [6]
    assert not x.grad.requires_grad


def test_s19_create_graph_under_no_grad():
    x = leaf([3.0])
    y = x**3
    with cr.no_grad():
        (g,) = cr.autograd_grad(y, x, create_graph=True)
    assert g.requires_grad
    assert cr.autograd_grad(g, x)[0].tolist() == [18]


def test_s19_a_failed_pass_restores_the_mode():
    y = leaf([1.0]).exp()
    y.backward()
    for create_graph in (False, True):
        with pytest.raises(RuntimeError, match=SECOND_TIME):
            y.backward(create_graph=create_graph)
        assert cr.is_grad_enabled()


def test_s19_as_in_torch():
    def program(m):
        x, w = m.leaf([[1.0, -2.0], [0.5, 3.0]]), m.leaf([[2.0], [1.0]])
        y = ((x @ w).sigmoid() * w / (x * x).sum(1, keepdim=True)).tanh().sum()
        first = m.grad(y, [x, w], create_graph=True)
        norm = sum((g * g).sum() for g in first)
        second = m.grad(norm, [x, w], create_graph=True)
        third = m.grad(sum(g.sum() for g in second), [x, w])
        return first, second, third

    same_as_torch(program, rtol=1e-9)


def test_s19_a_recorded_pass_is_recorded_whole_under_no_grad():
    def program(lib):
        x = lib.leaf([1.0, 2.0])
        once, more = (x * x * x).sum(), (x * x * x).sum()
        with lib.module.no_grad():
            grads = lib.grad([once, once], x, create_graph=True)
            lib.backward(more, create_graph=True)
        grad = x.grad
        x.grad = None
        assert grads[0].requires_grad
        assert grad.requires_grad
        return grads, lib.grad(grads[0].sum() + grad.sum(), x)

    same_as_torch(program)


def test_s19_the_result_of_a_shared_cotangent_is_recorded_under_no_grad():
    x = leaf([1.0, 2.0])
    y = leaf([3.0, 4.0])
    z = (x + y) * x
    with cr.no_grad():
        gx, gy = cr.autograd_grad(z, [x, y], x * 1, create_graph=True)
        same = cr.autograd_grad(z, y, z, create_graph=True)[0]
    assert gx.requires_grad
    assert gy.requires_grad
    assert same.requires_grad


# --- 20: backward(inputs=) ------------------------------------------------------------------------


def test_s20_inputs_alone_get_a_gradient():
    x, w = leaf([2.0]), leaf([3.0])
    (x * w).backward(inputs=[x])
    assert x.grad.tolist() == [3]
    assert w.grad is None


@pytest.mark.parametrize("form", [lambda t: t, lambda t: [t], lambda t: (t,)])
def test_s20_a_single_tensor_a_list_or_a_tuple(form):
    x, w = leaf([2.0]), leaf([3.0])
    (x * w).backward(inputs=form(x))
    cr.autograd_backward([x * w], inputs=form(x))
    assert x.grad.tolist() == [6]
    assert w.grad is None


def test_s20_any_iterable():
    x, w = leaf([2.0]), leaf([3.0])
    (x * w).backward(inputs=(t for t in [x, w]))
    (x * w).backward(inputs={"w": w}.values())
    assert (x.grad.tolist(), w.grad.tolist()) == ([3], [4])


def test_s20_non_leaves_included():
    x = leaf([2.0])
    y = x * 3
    (y * y).backward(inputs=[y])
    assert y.grad.tolist() == [12]
    assert x.grad is None


def test_s20_a_non_leaf_and_the_leaf_behind_it():
    x = leaf([2.0])
    y = x * 3
    (y * y).backward(inputs=[y, x])
    assert y.grad.tolist() == [12]
    assert x.grad.tolist() == [36]


def test_s20_a_non_leaf_that_retains_its_grad_counts_once():
    x = leaf([2.0])
    y = x * 3
    y.retain_grad()
    (y * y).backward(inputs=[y, x])
    assert y.grad.tolist() == [12]


def test_s20_the_root_itself():
    y = leaf([2.0]) * 3
    y.backward(cr.tensor([7.0]), inputs=[y])
    assert y.grad.tolist() == [7]


def test_s20_the_same_input_twice_counts_once():
    x = leaf([2.0])
    (x * 3).backward(inputs=[x, x])
    assert x.grad.tolist() == [3]


def test_s20_two_outputs_of_one_node():
    x = leaf([2.0, 3.0])
    first, second = x.unbind()
    (first * second).backward(inputs=[second, first])
    assert (first.grad.item(), second.grad.item()) == (3, 2)
    assert x.grad is None


def test_s20_they_accumulate_in_place():
    x = leaf([2.0])
    y = x * 3
    z = y * y
    z.backward(inputs=[x, y], retain_graph=True)
    grads = x.grad, y.grad
    z.backward(inputs=[x, y])
    assert x.grad is grads[0]
    assert y.grad is grads[1]
    assert y.grad.tolist() == [24]


def test_s20_under_create_graph_out_of_place():
    x = leaf([2.0])
    (x * x).backward(inputs=[x], create_graph=True)
    first = x.grad
    (x * x).backward(inputs=[x], create_graph=True)
    assert x.grad is not first
    assert cr.autograd_grad(x.grad, x)[0].tolist() == [4]


def test_s20_an_input_that_is_not_reached_gets_nothing():
    x, w = leaf([2.0]), leaf([3.0])
    (x * 2).backward(inputs=[x, w])
    assert w.grad is None
    assert x.grad.tolist() == [2]


@pytest.mark.parametrize("empty", [[], (), {}])
def test_s20_empty_inputs(empty):
    x = leaf([2.0])
    y = x * x
    text = r"'inputs' argument to backward\(\) cannot be empty"
    with pytest.raises(RuntimeError, match=text):
        y.backward(inputs=empty)
    with pytest.raises(RuntimeError, match=text):
        cr.autograd_backward(y, inputs=empty)
    assert x.grad is None
    y.backward()


def test_s20_an_input_that_requires_no_grad():
    x = leaf([2.0])
    y = x * cr.ones(1)
    with pytest.raises(RuntimeError, match="does not require grad"):
        y.backward(inputs=[x, cr.ones(1)])
    assert x.grad is None
    y.backward()


def test_s20_hooks_of_inputs_fire_and_no_others():
    calls = []
    x, w = leaf([2.0]), leaf([3.0])
    for name, t in (("x", x), ("w", w)):
        t.register_hook(lambda g, name=name: calls.append(name))
        t.register_post_accumulate_grad_hook(lambda t, name=name: calls.append(f"post {name}"))
    (x * w).backward(inputs=[x])
    assert calls == ["x", "post x"]


def test_s20_a_hook_changes_what_an_input_gets():
    y = leaf([2.0]) * 3
    y.register_hook(lambda g: g * 10)
    (y * 2).backward(inputs=[y])
    assert y.grad.tolist() == [20]


def test_s20_only_nodes_on_the_way_run():
    ran = []
    x, w = leaf([2.0]), leaf([3.0])
    a, b = x * 2, w * 2
    a.grad_fn.register_hook(lambda *_: ran.append("a"))
    b.grad_fn.register_hook(lambda *_: ran.append("b"))
    (a + b).backward(inputs=[x])
    assert ran == ["a"]


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_s20_as_in_torch():
    def program(m):
        x, w, u = m.leaf([1.0, 2.0]), m.leaf([3.0, 4.0]), m.leaf([1.0, 1.0])
        y = x * w
        z = y.exp() + y * u
        z.sum().backward(inputs=[y, w], retain_graph=True)
        first = y.grad.clone()
        z.sum().backward(inputs=[x, w])
        return x.grad, w.grad, u.grad, first

    same_as_torch(program)
