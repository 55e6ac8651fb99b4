"""SEMANTICS 44: hooks on nodes and on what was accumulated, and the order of all of them."""

from __future__ import annotations

import pytest

from helpers.tensors import leaf


def test_s44_a_hook_on_a_node_sees_what_comes_in_and_what_goes_out(lib):
    x, w = lib.leaf([2.0]), lib.leaf([3.0])
    y = x * w
    seen = []
    y.grad_fn.register_hook(lambda grads, outs: seen.append((grads, outs)))
    (y * 5).backward()
    ((grads, outs),) = seen
    assert [g.item() for g in grads] == [15.0, 10.0]
    assert [g.item() for g in outs] == [5.0]


def test_s44_a_hook_on_a_node_may_replace_what_comes_out(lib):
    x, w = lib.leaf([2.0]), lib.leaf([3.0])
    y = x * w
    y.grad_fn.register_hook(lambda grads, outs: (grads[0] * 10, None))
    y.backward()
    assert x.grad.tolist() == [30.0]
    assert w.grad is None


def test_s44_hooks_on_a_node_see_earlier_changes(lib):
    x = lib.leaf([2.0])
    y = x.exp()
    y.grad_fn.register_hook(lambda grads, outs: (grads[0] * 0 + 1,))
    y.grad_fn.register_hook(lambda grads, outs: (grads[0] * 5,))
    y.backward()
    assert x.grad.tolist() == [5.0]


def test_s44_an_input_without_grad_is_none_to_a_node_hook(lib):
    y = lib.leaf([2.0]) * lib.tensor([3.0], dtype="float64")
    seen = []
    y.grad_fn.register_hook(lambda grads, outs: seen.append([g is None for g in grads]))
    y.backward()
    assert seen == [[False, True]]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (lambda g: (g, g, g), RuntimeError, "3"),
        (lambda g: 4, TypeError, "int"),
        (lambda g: ("text", g), TypeError, "str"),
    ],
    ids=["count", "number", "text"],
)
def test_s44_a_node_hook_that_returns_nonsense(lib, value, kind, text):
    y = lib.leaf([2.0]) * lib.leaf([3.0])
    y.grad_fn.register_hook(lambda grads, outs: value(grads[0]))
    with pytest.raises(kind, match=text):
        y.backward()


def test_s44_a_pre_hook_sees_and_replaces_what_comes_in(lib):
    x = lib.leaf([2.0])
    y = x * 3
    seen = []
    y.grad_fn.register_prehook(lambda outs: seen.append([g.item() for g in outs]))
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 10,))
    y.grad_fn.register_prehook(lambda outs: seen.append([g.item() for g in outs]))
    y.backward()
    assert seen == [[1.0], [10.0]]
    assert x.grad.tolist() == [30.0]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (lambda g: (g, g), RuntimeError, "2"),
        (lambda g: 4, TypeError, "int"),
        (lambda g: ("text",), TypeError, "str"),
    ],
    ids=["count", "number", "text"],
)
def test_s44_a_pre_hook_that_returns_nonsense(lib, value, kind, text):
    y = lib.leaf([2.0]) * 3
    y.grad_fn.register_prehook(lambda outs: value(outs[0]))
    with pytest.raises(kind, match=text):
        y.backward()


def test_s44_a_pre_hook_may_stop_the_gradient(lib):
    x = lib.leaf([2.0])
    y = x * 3
    y.grad_fn.register_prehook(lambda outs: (None,))
    (y + x).backward()
    assert x.grad.tolist() == [1.0]


def test_s44_hooks_on_a_node_of_several_outputs_get_none_for_what_got_nothing(lib):
    x = lib.leaf([1.0, 2.0, 3.0])
    _, b, _ = x.unbind()
    seen = []

    def shown(outs):
        return [None if g is None else g.item() for g in outs]

    b.grad_fn.register_prehook(lambda outs: seen.append(shown(outs)))
    b.grad_fn.register_hook(lambda grads, outs: seen.append(shown(outs)))
    (b * 5).backward()
    assert seen == [[None, 5.0, None], [None, 5.0, None]]
    assert x.grad.tolist() == [0.0, 5.0, 0.0]


def test_s44_a_pre_hook_of_several_outputs_may_fill_in_or_leave_out(lib):
    x = lib.leaf([1.0, 2.0])
    a, b = x.unbind()
    a.grad_fn.register_prehook(lambda outs: (outs[1] * 2, None))
    (a + b).backward()
    assert x.grad.tolist() == [2.0, 0.0]


def test_s44_hooks_on_nodes_can_be_removed(lib):
    x = lib.leaf([1.0])
    y = x * 1
    handles = [
        y.grad_fn.register_prehook(lambda outs: (outs[0] * 10,)),
        y.grad_fn.register_hook(lambda grads, outs: tuple(g and g * 10 for g in grads)),
    ]
    for handle in handles:
        handle.remove()
    y.backward()
    assert x.grad.tolist() == [1.0]


def test_s44_a_post_accumulate_hook_gets_the_leaf_with_its_gradient(lib):
    x = lib.leaf([1.0, 2.0])
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda p: seen.append((p is x, p.grad.tolist())))
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    handle.remove()
    (x * 4).sum().backward()
    assert seen == [(True, [2.0, 2.0]), (True, [5.0, 5.0])]


def test_s44_a_post_accumulate_hook_may_return_the_leaf(lib):
    """As PyTorch's example does; anything else is an error."""
    x = lib.leaf([1.0, 2.0])
    handle = x.register_post_accumulate_grad_hook(lambda p: p.add_(p.grad, alpha=-0.5))
    x.sum().backward()
    handle.remove()
    assert x.tolist() == [0.5, 1.5]
    x.register_post_accumulate_grad_hook(lambda p: 5)
    with pytest.raises((RuntimeError, TypeError), match="hook"):
        x.sum().backward()


def test_s44_a_post_accumulate_hook_may_be_an_optimiser(lib):
    x = lib.leaf([1.0, 2.0])

    def step(p):
        with lib.no_grad():
            p.sub_(0.5 * p.grad)
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    for _ in range(2):
        x.sum().backward()
    assert x.tolist() == [0.0, 1.0]
    assert x.grad is None


def test_s44_a_post_accumulate_hook_is_not_called_by_autograd_grad(lib):
    x = lib.leaf([1.0])
    seen = []
    x.register_post_accumulate_grad_hook(seen.append)
    lib.grad((x * 2).sum(), x)
    assert seen == []


def test_s44_a_post_accumulate_hook_is_for_leaves(lib):
    for x in (lib.leaf([1.0]) * 1, lib.ones(1)):
        with pytest.raises(RuntimeError, match=r"post accumulate grad hook|require gradient"):
            x.register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match=r"the output of MulBackward0, made at .*Use regis"):
        (leaf([1.0]) * 1).register_post_accumulate_grad_hook(print)


# --- the order ------------------------------------------------------------------------------------


def test_s44_the_order_around_one_node():
    x = leaf([1.0])
    y = x * 2
    order = []
    stored = lambda: y.grad is not None  # noqa: E731
    node = y.grad_fn
    node.register_hook(lambda *g: order.append(("post", stored())))
    y.retain_grad()
    node.register_prehook(lambda g: order.append(("pre", stored())))
    y.register_hook(lambda g: order.append(("tensor", stored())))
    node.register_hook(lambda *g: order.append(("post 2", stored())))
    node.register_prehook(lambda g: order.append(("pre 2", stored())))
    y.register_hook(lambda g: order.append(("tensor 2", stored())))
    y.backward()
    assert order == [
        ("tensor", False),
        ("tensor 2", False),
        ("pre", False),
        ("pre 2", False),
        ("post", True),
        ("post 2", True),
    ]


def test_s44_the_order_around_a_leaf(lib):
    x = lib.leaf([1.0])
    node = (x * 2).grad_fn.next_functions[0][0]
    order = []
    node.register_hook(lambda *g: order.append(("post", x.grad is not None)))
    x.register_post_accumulate_grad_hook(lambda p: order.append(("accumulated", True)))
    node.register_prehook(lambda g: order.append(("pre", x.grad is not None)))
    x.register_hook(lambda g: order.append(("tensor", x.grad is not None)))
    (x * 2).backward()
    assert order == [("tensor", False), ("pre", False), ("accumulated", True), ("post", True)]


def test_s44_what_is_retained_has_passed_all_tensor_hooks(lib):
    x = lib.leaf([1.0])
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.backward()
    assert y.grad.tolist() == [5.0]


def test_s44_what_is_retained_has_passed_the_pre_hooks():
    y = leaf([1.0]) * 2
    y.retain_grad()
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 5,))
    y.backward()
    assert y.grad.tolist() == [5.0]


def test_s44_a_hook_set_before_a_write_stays_with_the_old_node(lib):
    x = lib.leaf([1.0])
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(("old", g.item())))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("new", g.item())))
    y.backward()
    assert seen == [("new", 1.0), ("old", 3.0)]


def test_s44_a_hook_on_the_base_stays_with_the_old_node_when_a_view_is_written(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y[0:1].mul_(3)
    y.sum().backward()
    assert seen == [[3.0, 1.0]]


def test_s44_a_hook_on_a_view_stays_with_the_old_node_when_the_base_is_written(lib):
    y = lib.leaf([1.0, 2.0]) * 1
    v = y[0:1]
    seen = []
    v.register_hook(lambda g: seen.append(g.tolist()))
    y.mul_(3)
    v.sum().backward()
    assert seen == []


def test_s44_a_custom_functions_hooks_see_the_gradients_of_its_tensors(lib):
    seen = []

    class Scale(lib.autograd.Function):
        @staticmethod
        def forward(ctx, k, x, constant, y):
            return x * k + y * 3

        @staticmethod
        def backward(ctx, g):
            return None, g * 2, None, g * 3

    x, y = lib.leaf([1.0]), lib.leaf([1.0])
    z = Scale.apply(2, x, lib.tensor([1.0]), y)
    node = z.grad_fn
    assert len(node.next_functions) == 3
    node.register_hook(lambda grads, outs: seen.append([g is not None and g.item() for g in grads]))
    node.register_hook(lambda grads, outs: (grads[0] * 10, None, grads[2]))
    z.backward()
    assert seen == [[2.0, False, 3.0]]
    assert (x.grad.item(), y.grad.item()) == (20.0, 3.0)
