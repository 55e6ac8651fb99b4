"""SEMANTICS 21–25: `autograd_grad`."""

from __future__ import annotations

import pytest

import chainrule as cr
from helpers.tensors import equal, leaf, memory, share_memory
from helpers.torch_comparison import CHAINRULE, raises_runtime_error, same_as_torch

UNUSED = (
    "One of the differentiated Tensors appears to not have been used in the graph. "
    "Set allow_unused=True"
)

# --- 21: a tuple in the order of inputs -----------------------------------------------------------


def test_s21_a_tuple_even_for_one():
    x = leaf([3.0])
    for inputs in (x, [x], (x,)):
        grads = cr.autograd_grad(x * x, inputs)
        assert type(grads) is tuple
        assert [g.tolist() for g in grads] == [[6]]


def test_s21_in_the_order_of_inputs():
    a, b, c = leaf(2.0), leaf(3.0), leaf(5.0)
    y = a * b * c
    for order in ([a, b, c], [c, a, b], [b, c, a]):
        grads = cr.autograd_grad(y, order, retain_graph=True)
        assert [g.item() for g in grads] == [30 / t.item() for t in order]


def test_s21_touches_no_grad():
    x, w = leaf([3.0]), leaf([2.0])
    cr.autograd_grad(x * w, x)
    assert x.grad is None
    assert w.grad is None


def test_s21_leaves_a_grad_that_is_there_alone():
    x = leaf([3.0])
    (x * x).backward()
    before = x.grad
    cr.autograd_grad(x * x, x)
    cr.autograd_grad(x * x, x, create_graph=True)
    assert x.grad is before
    assert before.tolist() == [6]


@pytest.mark.parametrize("create_graph", [False, True])
def test_s21_not_even_that_of_a_non_leaf_on_the_way(create_graph):
    x = leaf([3.0])
    y = x * 2
    y.retain_grad()
    cr.autograd_grad(y * y, x, create_graph=create_graph)
    assert y.grad is None


def test_s21_a_dict_gives_a_dict():
    w, b = leaf(2.0), leaf(3.0)
    grads = cr.autograd_grad(w * 5 + b, {"b": b, "w": w})
    assert type(grads) is dict
    assert {name: g.item() for name, g in grads.items()} == {"b": 1, "w": 5}
    assert list(grads) == ["b", "w"]


def test_s21_a_dict_with_any_keys():
    w = leaf(2.0)
    grads = cr.autograd_grad(w * 5, {0: w, ("layer", 1): w})
    assert [g.item() for g in grads.values()] == [5, 5]


def test_s21_any_iterable():
    a, b = leaf(2.0), leaf(3.0)
    grads = cr.autograd_grad(a * b, (t for t in [a, b]))
    assert [g.item() for g in grads] == [3, 2]
    grads = cr.autograd_grad(a * b, {"a": a, "b": b}.values())
    assert [g.item() for g in grads] == [3, 2]


def test_s21_the_same_input_twice():
    x = leaf([3.0])
    first, second = cr.autograd_grad(x * x, [x, x])
    assert first.tolist() == second.tolist() == [6]
    assert not share_memory(first, second)


def test_s21_several_outputs_sum():
    x = leaf([1.0, 2.0])
    (g,) = cr.autograd_grad([x.sum(), x * x], x, [None, cr.ones(2)])
    assert g.tolist() == [3, 5]


def test_s21_the_same_output_twice():
    x = leaf(3.0)
    y = x * x
    assert cr.autograd_grad([y, y], x)[0].item() == 12


def test_s21_an_output_that_depends_on_another():
    x = leaf(3.0)
    y = x * x
    assert cr.autograd_grad([y, y * y], x)[0].item() == 6 + 4 * 27


def test_s21_grad_outputs_weight():
    x = leaf([1.0, 2.0])
    weights = cr.tensor([10.0, 100.0])
    for form in (weights, [weights], (weights,)):
        assert cr.autograd_grad(x * x, x, form)[0].tolist() == [20, 400]
    assert cr.autograd_grad([x * x], x, grad_outputs=[weights])[0].tolist() == [20, 400]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_s21_gradients_have_their_inputs_shape_and_dtype(shape):
    x = cr.full(shape, 3.0, dtype=cr.float32, requires_grad=True)
    (g,) = cr.autograd_grad(x.double() ** 2, x)
    assert g.shape == shape
    assert g.dtype == cr.float32


def test_s21_empty_tensors():
    x = cr.zeros(0, 3, requires_grad=True)
    (g,) = cr.autograd_grad((x * 2).sum(), x)
    assert g.shape == (0, 3)


def test_s21_the_checks_of_backward_hold():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        cr.autograd_grad(x * x, x)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        cr.autograd_grad(x * x, x, cr.ones(3))
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        cr.autograd_grad(x.sum(), x, [None, None])
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad"):
        cr.autograd_grad([x.sum(), cr.ones(())], x)


def test_s21_it_frees_and_retains_as_backward_does():
    x = leaf([3.0])
    y = x * x
    cr.autograd_grad(y, x, retain_graph=True)
    cr.autograd_grad(y, x)
    with pytest.raises(RuntimeError, match="a second time"):
        cr.autograd_grad(y, x)


def test_s21_the_output_itself_as_input():
    x = leaf([3.0])
    y = x * x
    assert cr.autograd_grad(y, y)[0].tolist() == [1]
    assert cr.autograd_grad(x, x)[0].tolist() == [1]


def test_s21_as_in_torch():
    def program(m):
        x, w, b = m.leaf([[1.0, 2.0], [3.0, -4.0]]), m.leaf([[0.5], [2.0]]), m.leaf([1.0])
        y = (x @ w + b).tanh()
        weights = m.tensor([[1.0], [-3.0]], "float64")
        return m.grad([y, w.sum()], [b, x, w], [weights, None])

    same_as_torch(program)


# --- 22: only nodes on a path to inputs run -------------------------------------------------------


def test_s22_an_upstream_leafs_hook_does_not_fire():
    x, calls = leaf([3.0]), []
    x.register_hook(lambda g: calls.append("x"))
    y = x * 2
    y.register_hook(lambda g: calls.append("y"))
    z = y * y
    z.register_hook(lambda g: calls.append("z"))
    cr.autograd_grad(z, y)
    assert calls == ["z", "y"]


def test_s22_a_sibling_leafs_hook_does_not_fire():
    x, w, calls = leaf([3.0]), leaf([2.0]), []
    x.register_hook(lambda g: calls.append("x"))
    w.register_hook(lambda g: calls.append("w"))
    x.register_post_accumulate_grad_hook(lambda t: calls.append("post"))
    cr.autograd_grad(x * w, x)
    assert calls == ["x"]


def test_s22_hooks_of_requested_tensors_change_what_comes_back():
    x = leaf([3.0])
    y = x * 2
    for t in (x, y):
        t.register_hook(lambda g: g * 10)
    gx, gy = cr.autograd_grad(y * 1, [x, y])
    assert gy.tolist() == [10]
    assert gx.tolist() == [200]


def test_s22_nodes_off_the_path_do_not_run():
    ran = []
    x, w = leaf([3.0]), leaf([2.0])
    a, b, c = x.exp(), w.exp(), x.sin()
    for name, t in (("a", a), ("b", b), ("c", c)):
        t.grad_fn.register_hook(lambda *_, name=name: ran.append(name))
    cr.autograd_grad(a * b + c, [a, c])
    assert ran == []
    cr.autograd_grad((a * b).sin() + c, x)
    assert ran == ["c", "a"]


def test_s22_the_node_of_a_requested_tensor_does_not_run():
    ran = []

    @cr.autograd_function
    def spy(ctx, x):
        return x + 0

    @spy.backward
    def _(ctx, g):
        ran.append("spy")
        return g

    y = spy(leaf([1.0]))
    cr.autograd_grad(y * 2, y)
    assert ran == []


def test_s22_a_failing_backward_off_the_path_does_no_harm():
    @cr.autograd_function
    def broken(ctx, x):
        return x + 0

    @broken.backward
    def _(ctx, g):
        raise ValueError("must not run")

    x, w = leaf([1.0]), leaf([2.0])
    assert cr.autograd_grad(broken(x) * w, w)[0].tolist() == [1]


def test_s22_a_root_that_does_not_lead_there_does_not_run():
    ran = []
    x, w = leaf([3.0]), leaf([2.0])
    a, b = x.exp(), w.exp()
    b.grad_fn.register_hook(lambda *_: ran.append("b"))
    cr.autograd_grad([a, b], x)
    assert ran == []
    b.backward()


@pytest.mark.parametrize("of_leaf", [True, False])
def test_s22_hooks_of_a_root_off_the_path(of_leaf):
    def program(m):
        calls = []
        x, w = m.leaf([3.0]), m.leaf([2.0])
        y = w if of_leaf else w * 3
        y.register_hook(lambda g: calls.append("y"))
        grads = m.grad([x * 2, y], x)
        m.backward([x * 2, y], inputs=[x])
        return calls, grads, x.grad

    same_as_torch(program)
    assert program(CHAINRULE)[0] == []


def test_s22_as_in_torch():
    def program(m):
        calls = []
        x, w = m.leaf([3.0]), m.leaf([2.0])
        y = x * w
        z = y.exp()
        for name, t in {"x": x, "w": w, "y": y, "z": z}.items():
            t.register_hook(lambda g, name=name: calls.append(name))
        results = [m.grad(z, t, retain_graph=True) for t in (y, w, z)]
        return calls, results

    same_as_torch(program)


# --- 23: non-leaves, and two outputs of one node --------------------------------------------------


def test_s23_non_leaf_inputs():
    x = leaf([3.0])
    y = x * 2
    (g,) = cr.autograd_grad(y * y, y)
    assert g.tolist() == [12]


def test_s23_a_non_leaf_and_what_it_came_from():
    x = leaf([3.0])
    y = x * 2
    gy, gx = cr.autograd_grad(y * y + x, [y, x])
    assert gy.tolist() == [12]
    assert gx.tolist() == [25]


def test_s23_two_outputs_of_one_node():
    first, second = leaf([3.0, 5.0]).unbind()
    grads = cr.autograd_grad(first * second, [second, first])
    assert [g.item() for g in grads] == [3, 5]


def test_s23_one_output_of_a_node_where_both_are_used():
    first, second = leaf([3.0, 5.0]).unbind()
    assert cr.autograd_grad(first * second, second)[0].item() == 3


def test_s23_two_outputs_of_a_custom_function():
    @cr.autograd_function
    def both(ctx, x):
        return x * 2, x * 3

    @both.backward
    def _(ctx, ga, gb):
        return 2 * ga + 3 * gb

    x = leaf([1.0])
    a, b = both(x)
    ga, gb, gx = cr.autograd_grad(a * a + 10 * b, [a, b, x])
    assert (ga.item(), gb.item(), gx.item()) == (4, 10, 38)


def test_s23_an_output_used_by_nobody_but_its_sibling():
    first, second = leaf([3.0, 5.0]).unbind()
    a, b = cr.autograd_grad(first * 2, [first, second], allow_unused=True)
    assert a.item() == 2
    assert b is None


def test_s23_a_view_and_its_base():
    y = leaf([[1.0, 2.0]]) * 1
    view = y[0]
    gy, gv = cr.autograd_grad((view * 3).sum() + y.sum(), [y, view])
    assert gv.tolist() == [3, 3]
    assert gy.tolist() == [[4, 4]]


def test_s23_as_in_torch():
    def program(m):
        x = m.leaf([[1.0, 2.0], [3.0, 4.0]])
        first, second = x.split(1)
        y = first * second.exp()
        return m.grad(y.sum(), [second, y, first, x], create_graph=True)

    same_as_torch(program)


# --- 24: unused inputs ----------------------------------------------------------------------------


def test_s24_an_unused_input():
    x, unused = leaf([3.0]), leaf([2.0])
    with pytest.raises(RuntimeError, match=UNUSED):
        cr.autograd_grad(x * x, [x, unused])


@pytest.mark.parametrize("index", [0, 1, 2])
def test_s24_the_error_says_which(index):
    x = leaf([3.0])
    inputs = [x * 1, x * 1, x * 1]
    y = inputs[0] * inputs[1] * inputs[2]
    inputs[index] = leaf([[2.0]])
    with pytest.raises(RuntimeError, match=rf"{UNUSED}.*input {index}"):
        cr.autograd_grad(y, inputs)


def test_s24_by_name_where_it_was_given_by_name():
    x, bias = leaf([3.0]), leaf([2.0])
    with pytest.raises(RuntimeError, match=rf"{UNUSED}.*'bias'"):
        cr.autograd_grad(x * x, {"x": x, "bias": bias})


def test_s24_what_was_detached_is_unused():
    x = leaf([3.0])
    y = x.detach().requires_grad_()
    with pytest.raises(RuntimeError, match=UNUSED):
        cr.autograd_grad(y * y, x)


def test_s24_downstream_of_the_output_is_unused():
    x = leaf([3.0])
    y = x * x
    z = y * 2
    with pytest.raises(RuntimeError, match=UNUSED):
        cr.autograd_grad(y, z)


def test_s24_allow_unused_gives_none():
    x, unused = leaf([3.0]), leaf([2.0])
    g, none = cr.autograd_grad(x * x, [x, unused], allow_unused=True)
    assert g.tolist() == [6]
    assert none is None
    assert cr.autograd_grad(x * x, {"u": unused}, allow_unused=True) == {"u": None}


def test_s24_with_allow_unused_all_may_be_unused():
    x, unused = leaf([3.0]), leaf([2.0])
    assert cr.autograd_grad(x * x, unused, allow_unused=True) == (None,)


@pytest.mark.parametrize("allow_unused", [None, False, True])
def test_s24_an_input_that_requires_no_grad(allow_unused):
    x = leaf([3.0])
    y = x * cr.ones(1)
    with pytest.raises(
        RuntimeError, match="One of the differentiated Tensors does not require grad"
    ):
        cr.autograd_grad(y, [x, cr.ones(1)], allow_unused=allow_unused)
    y.backward()  # nothing was freed


def test_s24_by_name_too():
    x, c = leaf([3.0]), cr.ones(1)
    with pytest.raises(RuntimeError, match=r"does not require grad.*'c'"):
        cr.autograd_grad(x * c, {"x": x, "c": c})


@pytest.mark.parametrize("wrong", [1.0, None, "x"])
def test_s24_an_input_that_is_no_tensor(wrong):
    x = leaf([3.0])
    with pytest.raises(TypeError):
        cr.autograd_grad(x * x, [x, wrong])


def test_s24_where_backward_returns_none_the_input_is_unused():
    @cr.autograd_function
    def stop(ctx, x):
        return x + 0

    @stop.backward
    def _(ctx, g):
        return None

    x = leaf([3.0])
    with pytest.raises(RuntimeError, match=UNUSED):
        cr.autograd_grad(stop(x), x)
    assert cr.autograd_grad(stop(x), x, allow_unused=True) == (None,)


def test_s24_as_in_torch():
    def program(m):
        x, w, u = m.leaf([1.0]), m.leaf([2.0]), m.leaf([3.0])
        y, z = x * w, w.exp()
        cases = [[x, u], [u], [x, z], [z, x], [y, u]]
        return [
            [
                raises_runtime_error(lambda inputs=inputs: m.grad(y, inputs, retain_graph=True)),
                m.grad(y, inputs, retain_graph=True, allow_unused=True),
            ]
            for inputs in cases
        ]

    same_as_torch(program)


# --- 25: materialize_grads ------------------------------------------------------------------------


def test_s25_zeros_for_what_is_unused():
    x, unused = leaf([3.0]), leaf([[1.0, 2.0]], cr.float64)
    g, zeros = cr.autograd_grad(x * x, [x, unused], materialize_grads=True)
    assert g.tolist() == [6]
    assert zeros.dtype == cr.float64
    assert zeros.tolist() == [[0, 0]]


@pytest.mark.parametrize("allow_unused", [None, True])
def test_s25_it_implies_allow_unused(allow_unused):
    x, unused = leaf([3.0]), leaf(2.0)
    grads = cr.autograd_grad(x * x, unused, allow_unused=allow_unused, materialize_grads=True)
    assert grads[0].item() == 0


def test_s25_with_allow_unused_false_it_makes_no_sense():
    x = leaf([3.0])
    y = x * x
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed"):
        cr.autograd_grad(y, x, allow_unused=False, materialize_grads=True)
    y.backward()


def test_s25_a_dict_of_zeros():
    x, b = leaf([3.0]), leaf([1.0])
    grads = cr.autograd_grad(x * x, {"x": x, "b": b}, materialize_grads=True)
    assert {name: g.item() for name, g in grads.items()} == {"x": 6, "b": 0}


def test_s25_zeros_are_the_users_own():
    x, u = leaf([3.0]), leaf([1.0, 2.0])
    first, second = cr.autograd_grad(x * x, [u, u], materialize_grads=True)
    first.add_(1)
    assert second.tolist() == [0, 0]
    assert memory(u).tolist() == [1, 2]


def test_s25_under_create_graph_zeros_can_be_used_again():
    x, u = leaf([3.0]), leaf([1.0])
    g, zeros = cr.autograd_grad(x * x, [x, u], create_graph=True, materialize_grads=True)
    assert cr.autograd_grad((g + zeros).sum(), x)[0].tolist() == [2]


def test_s25_a_complex_input_gets_complex_zeros():
    x, z = leaf([3.0]), leaf([1 + 1j])
    (zeros,) = cr.autograd_grad(x * x, z, materialize_grads=True)
    assert equal(zeros, memory(z) * 0)


def test_s25_as_in_torch():
    def program(m):
        x, u, e = m.leaf([1.0, 2.0]), m.leaf(3.0), m.leaf([])
        y = (x * x).sum()
        return m.grad(y, [u, x, e], materialize_grads=True)

    same_as_torch(program)


# --- several cotangents at once -------------------------------------------------------------------


def test_batches_of_cotangents_give_batches_of_gradients():
    def program(lib):
        x, y = lib.leaf([1.0, 2.0]), lib.leaf([3.0, 4.0])
        z, w = x * y, x.sum()
        several = lib.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]], "float64")
        numbers = lib.tensor([1.0, 0.0, -1.0], "float64")
        grads = lib.grad(
            [z, w], [x, y], [several, numbers], is_grads_batched=True, create_graph=True
        )
        return grads, lib.grad(grads[0].sum(), [x, y], allow_unused=True)

    same_as_torch(program)


def test_in_a_batch_unused_inputs_are_none_or_zeros():
    x, y = leaf([1.0, 2.0]), leaf([3.0])
    z, cotangents = x * x, cr.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    grads = cr.autograd_grad(
        z, [x, y], cotangents, retain_graph=True, allow_unused=True, is_grads_batched=True
    )
    assert grads[1] is None
    grads = cr.autograd_grad(z, [x, y], cotangents, materialize_grads=True, is_grads_batched=True)
    assert grads[0].tolist() == [[2.0, 0.0], [0.0, 4.0], [2.0, 4.0]]
    assert grads[1].tolist() == [[0.0], [0.0], [0.0]]


def test_a_batch_by_name_frees_the_graph_after_its_last_pass():
    x = leaf([1.0, 2.0])
    y = x * x
    cotangents = cr.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert cr.autograd_grad(y, {"x": x}, cotangents, is_grads_batched=True)["x"].tolist() == [
        [2.0, 0.0],
        [0.0, 4.0],
    ]
    with pytest.raises(cr.FreedGraphError):
        y.sum().backward()


def test_a_batch_has_one_length():
    x = leaf([1.0, 2.0])
    lengths = [cr.ones(2, 2), cr.ones(3, 2)]
    with pytest.raises(cr.AutogradError, match=r"has one length, which is not 0: got \[2, 3\]"):
        cr.autograd_grad([x * 2, x * 3], x, lengths, is_grads_batched=True)
    with pytest.raises(cr.ShapeError, match="we interpret the first dimension of each grad_output"):
        cr.autograd_grad(x * 2, x, cr.ones(2), is_grads_batched=True)
    with pytest.raises(cr.AutogradError, match="is_grads_batched=True: the first dimension"):
        cr.autograd_grad(x * 2, x, is_grads_batched=True)
