"""SEMANTICS 7–20: `backward` and `autograd_backward`."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import chainrule as cr
from graphs import CHAINRULE, equal, leaf, memory, raised, same_as_torch, shares

SECOND_TIME = r"Trying to backward through the graph a second time.*Specify retain_graph=True"

# --- 7: the implicit gradient ---------------------------------------------------------------------


def test_s07_backward_returns_none():
    x = leaf([1.0])
    assert (x * 2).backward() is None
    assert cr.autograd_backward(x * 2) is None
    assert cr.autograd_backward([x * 2]) is None
    assert (x * 2).backward(inputs=[x]) is None


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1, 1)])
def test_s07_the_implicit_gradient_is_ones_for_one_element_of_any_ndim(shape):
    x = cr.full(shape, 3.0, requires_grad=True)
    (x * x).backward()
    assert equal(x.grad, np.full(shape, 6, np.float32))


@pytest.mark.parametrize("dtype", [cr.float16, cr.float32, cr.float64], ids=str)
def test_s07_the_implicit_gradient_has_the_dtype_of_the_root(dtype):
    x = leaf(3.0, dtype)
    seen = []
    y = x * x
    y.register_hook(lambda g: seen.append(g.dtype))
    y.backward()
    assert seen == [dtype]
    assert x.grad.dtype == dtype


@pytest.mark.parametrize("shape", [(2,), (0,), (1, 2), (3, 0)])
def test_s07_there_is_none_for_other_numbers_of_elements(shape):
    x = cr.ones(shape, requires_grad=True)
    y = x * x
    with pytest.raises(
        RuntimeError, match="grad can be implicitly created only for scalar outputs"
    ):
        y.backward()
    assert x.grad is None
    y.sum().backward()  # nothing was freed


def test_s07_the_error_shows_the_shape():
    with pytest.raises(RuntimeError, match=r"\[2, 3\]"):
        (cr.ones(2, 3, requires_grad=True) * 2).backward()


def test_s07_a_leaf_of_several_elements_too():
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        leaf([1.0, 2.0]).backward()


def test_s07_nor_for_one_of_several_roots():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        cr.autograd_backward([x.sum(), x * 2])
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        cr.autograd_backward([x * 2, x.sum()], [None, cr.ones(())])
    assert x.grad is None


def test_s07_nor_for_complex_numbers():
    z = leaf(1 + 2j)
    with pytest.raises(RuntimeError, match="only for real scalar outputs"):
        (z * z).backward()


def test_s07_a_gradient_replaces_it():
    x = leaf([1.0, 2.0])
    (x * x).backward(cr.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2, 40]
    y = leaf(3.0)
    (y * y).backward(gradient=cr.tensor(0.5))
    assert y.grad.item() == 3


# --- 8: roots without history ---------------------------------------------------------------------

NO_HISTORY = "element {} of tensors does not require grad and does not have a grad_fn"


def no_grad_result():
    with cr.no_grad():
        return leaf([1.0]) * 2


ROOTS = {
    "constant": lambda: cr.ones(1),
    "result of constants": lambda: cr.ones(1) * 2,
    "detached": lambda: (leaf([1.0]) * 2).detach(),
    "made under no_grad": no_grad_result,
    "integer": lambda: leaf([1.0]).argmax(),
    "empty": lambda: cr.zeros(0),
}


@pytest.mark.parametrize("make", ROOTS.values(), ids=ROOTS.keys())
def test_s08_a_root_without_history(make):
    with pytest.raises(RuntimeError, match=NO_HISTORY.format(0)):
        make().backward()
    with pytest.raises(RuntimeError, match=NO_HISTORY.format(0)):
        cr.autograd_grad(make(), leaf([1.0]))


def test_s08_a_gradient_does_not_help():
    with pytest.raises(RuntimeError, match=NO_HISTORY.format(0)):
        cr.ones(2).backward(cr.ones(2))


@pytest.mark.parametrize("index", [0, 1, 2])
def test_s08_the_index_is_that_of_the_offending_root(index):
    x = leaf([1.0])
    roots = [x * 2, x * 3, x * 4]
    roots[index] = cr.ones(1)
    with pytest.raises(RuntimeError, match=NO_HISTORY.format(index)):
        cr.autograd_backward(roots)


def test_s08_good_roots_before_it_are_left_alone():
    x = leaf([1.0])
    y = x * x
    with pytest.raises(RuntimeError, match=NO_HISTORY.format(1)):
        cr.autograd_backward([y, cr.ones(1)])
    assert x.grad is None
    y.backward()
    assert x.grad.tolist() == [2]


@pytest.mark.parametrize("root", [1.0, None, "loss", np.ones(1)], ids=type)
def test_s08_a_root_that_is_no_tensor(root):
    with pytest.raises(TypeError):
        cr.autograd_backward([root])


# --- 9: backward on a leaf ------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,)])
def test_s09_the_gradient_of_a_leaf_by_itself_is_one(shape):
    x = cr.full(shape, 5.0, requires_grad=True)
    x.backward()
    assert equal(x.grad, np.ones(shape, np.float32))


def test_s09_its_grad_becomes_the_gradient():
    x = leaf([1.0, 2.0])
    x.backward(cr.tensor([3.0, 4.0]))
    assert x.grad.tolist() == [3, 4]
    x.backward(cr.tensor([1.0, 1.0]))
    assert x.grad.tolist() == [4, 5]


def test_s09_an_empty_leaf():
    x = cr.zeros(0, requires_grad=True)
    x.backward(cr.zeros(0))
    assert x.grad.shape == (0,)


def test_s09_its_hooks_fire():
    x, calls = leaf(1.0), []
    x.register_hook(lambda g: calls.append(("hook", g.item())))
    x.register_post_accumulate_grad_hook(lambda t: calls.append(("post", t.grad.item())))
    x.backward(cr.tensor(7.0))
    assert calls == [("hook", 7), ("post", 7)]


def test_s09_a_hook_may_replace_the_gradient():
    x = leaf(1.0)
    x.register_hook(lambda g: g * 10)
    x.backward()
    assert x.grad.item() == 10


def test_s09_under_no_grad_too():
    x = leaf(1.0)
    with cr.no_grad():
        x.backward()
    assert x.grad.item() == 1


# --- 10: several roots ----------------------------------------------------------------------------


def test_s10_roots_sum():
    x = leaf([1.0, 2.0])
    cr.autograd_backward([(x * 2).sum(), (x * x).sum()])
    assert x.grad.tolist() == [4, 6]


def test_s10_a_single_tensor_a_list_or_a_tuple():
    for form in (lambda t: t, lambda t: [t], lambda t: (t,)):
        x = leaf([1.0, 2.0])
        cr.autograd_backward(form(x * 2), form(cr.tensor([1.0, 10.0])))
        assert x.grad.tolist() == [2, 20]


def test_s10_a_single_tensor_with_a_list_of_one_gradient():
    x = leaf([1.0, 2.0])
    cr.autograd_backward(x * 2, [cr.ones(2)])
    cr.autograd_backward([x * 2], cr.ones(2))
    assert x.grad.tolist() == [4, 4]


def test_s10_none_entries():
    x = leaf([1.0, 2.0])
    cr.autograd_backward([x.sum(), x * 2, x.prod()], [None, cr.ones(2), None])
    assert x.grad.tolist() == [1 + 2 + 2, 1 + 2 + 1]


def test_s10_none_for_all():
    x = leaf(2.0)
    cr.autograd_backward([x * 2, x * 3], None)
    cr.autograd_backward([x * 2, x * 3], [None, None])
    assert x.grad.item() == 10


@pytest.mark.parametrize(("tensors", "gradients"), [(2, 1), (1, 2), (3, 2), (2, 0), (1, 0)])
def test_s10_a_count_that_does_not_match(tensors, gradients):
    x = leaf(1.0)
    text = f"got {tensors} tensors and {gradients} gradients"
    with pytest.raises(RuntimeError, match=text):
        cr.autograd_backward([x * 2] * tensors, [cr.ones(())] * gradients)
    assert x.grad is None


def test_s10_a_single_gradient_for_two_tensors():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        cr.autograd_backward([x * 2, x * 3], cr.ones(()))


def test_s10_no_roots_at_all():
    with pytest.raises(RuntimeError, match="empty"):
        cr.autograd_backward([])


def test_s10_duplicated_roots_sum():
    x = leaf(3.0)
    y = x * x
    cr.autograd_backward([y, y, y])
    assert x.grad.item() == 18


def test_s10_duplicated_roots_with_gradients_of_their_own():
    x = leaf([3.0])
    y = x * x
    cr.autograd_backward([y, y], [cr.tensor([1.0]), cr.tensor([10.0])])
    assert x.grad.tolist() == [66]


def test_s10_a_duplicated_root_with_one_gradient_object():
    x, g = leaf([3.0]), cr.tensor([1.0])
    y = x * x
    cr.autograd_backward([y, y], [g, g])
    assert x.grad.tolist() == [12]
    assert g.tolist() == [1]


@pytest.mark.parametrize("swap", [False, True])
def test_s10_a_root_may_depend_on_another(swap):
    x, calls = leaf(3.0), []
    y = x * x
    y.register_hook(lambda g: calls.append(g.item()))
    roots = [y, y * 5]
    cr.autograd_backward(roots[::-1] if swap else roots)
    assert x.grad.item() == 36
    assert calls == [6]


@pytest.mark.parametrize("swap", [False, True])
def test_s10_a_leaf_and_what_depends_on_it(swap):
    x = leaf(3.0)
    roots = [x, x * 5]
    cr.autograd_backward(roots[::-1] if swap else roots)
    assert x.grad.item() == 6


def test_s10_a_leaf_twice():
    x = leaf(3.0)
    cr.autograd_backward([x, x])
    assert x.grad.item() == 2


def test_s10_a_shared_subgraph_is_passed_once():
    x, calls = leaf(3.0), []
    h = x * x
    h.register_hook(lambda g: calls.append(g.item()))
    cr.autograd_backward([h * 2, h * 3])  # in two passes, the second would find h freed
    assert calls == [5]
    assert x.grad.item() == 30


def test_s10_roots_of_different_shapes_and_dtypes():
    x = leaf([1.0, 2.0], cr.float32)
    cr.autograd_backward([x.double().sum(), x[0], (x * 2)[None]], [None, None, cr.ones(1, 2)])
    assert equal(x.grad, np.array([4, 3], np.float32))


def test_s10_two_outputs_of_one_node():
    x = leaf([3.0, 4.0])
    first, second = (x * x).unbind()
    cr.autograd_backward([second, first], [cr.tensor(10.0), None])
    assert x.grad.tolist() == [6, 80]


def test_s10_a_view_and_its_base():
    y = (x := leaf([[1.0, 2.0]])) * 3
    cr.autograd_backward([y, y.T], [cr.ones(1, 2), cr.tensor([[10.0], [20.0]])])
    assert x.grad.tolist() == [[33, 63]]


def test_s10_independent_roots():
    x, y = leaf(1.0), leaf(1.0)
    cr.autograd_backward([x * 2, y * 3])
    assert (x.grad.item(), y.grad.item()) == (2, 3)


def test_s10_as_in_torch():
    def program(m):
        x, w = m.leaf([1.0, -2.0, 3.0]), m.leaf([0.5, 0.25, 2.0])
        h = x * w
        y = h.exp()
        roots = [y, h, x, y.sum(), h, y * w]
        grads = [y.detach(), m.tensor([1.0, 2.0, 3.0], "float64"), w.detach(), None]
        m.backward(roots, [*grads, grads[1], grads[1]])
        return x.grad, w.grad

    same_as_torch(program)


# --- 11: a gradient has its tensor's shape --------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "wrong"),
    [
        ((3,), (2,)),
        ((3,), (1,)),
        ((3,), ()),
        ((3,), (3, 1)),
        ((3,), (1, 3)),
        ((), (1,)),
        ((1,), ()),
        ((2, 3), (3, 2)),
        ((2, 3), (6,)),
        ((1,), (0,)),
    ],
)
def test_s11_another_shape_is_refused_even_if_it_broadcasts(shape, wrong):
    x = cr.ones(shape, requires_grad=True)
    y = x * x
    with pytest.raises(RuntimeError, match="Mismatch in shape") as caught:
        y.backward(cr.ones(wrong))
    assert str(list(wrong)) in str(caught.value)
    assert str(list(shape)) in str(caught.value)
    assert x.grad is None
    y.backward(cr.ones(shape))


@pytest.mark.parametrize("index", [0, 1])
def test_s11_the_error_names_the_one_of_several(index):
    x = leaf([1.0, 2.0])
    grads = [cr.ones(2), cr.ones(2)]
    grads[index] = cr.ones(3)
    with pytest.raises(RuntimeError, match=rf"Mismatch in shape: grad_output\[{index}\]"):
        cr.autograd_backward([x * 2, x * 3], grads)
    assert x.grad is None


def test_s11_a_leaf_too():
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        leaf([1.0]).backward(cr.ones(2))


def test_s11_a_gradient_of_another_real_dtype_is_cast():
    x = leaf([1.0, 2.0], cr.float32)
    (x * x).backward(cr.tensor([1.0, 10.0], dtype=cr.float64))
    assert equal(x.grad, np.array([2, 40], np.float32))


def test_s11_a_complex_gradient_for_a_real_root_is_refused():
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="dtype"):
        (x * 2).backward(cr.tensor([1 + 2j]))
    assert x.grad is None


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
    assert not shares(x.grad, first)
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
                assert not shares(a, b)
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
        assert not any(shares(a, b) for b in grads[i + 1 :])


def test_s13_nor_those_of_inputs():
    x = leaf([1.0, 2.0])
    y = x + 0
    g = cr.ones(2)
    y.backward(g, inputs=[y, x])
    assert not shares(x.grad, y.grad)
    assert not shares(x.grad, g)
    assert not shares(y.grad, g)


def test_s13_a_custom_backward_may_return_one_tensor_twice():
    @cr.autograd_function
    def add(ctx, a, b):
        return a + b

    @add.backward
    def _(ctx, g):
        return g, g

    x, y, g = leaf([1.0]), leaf([1.0]), cr.ones(1)
    add(x, y).backward(g)
    assert not shares(x.grad, y.grad)
    assert not shares(x.grad, g)
    assert not shares(y.grad, g)


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
    with pytest.raises(RuntimeError, match=r"can't retain_grad on Tensor that has requires_grad"):
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
    return raised(lambda: y.backward(m.ones(y.shape).to(y.dtype)))


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
    with pytest.raises(RuntimeError, match=r"ExpBackward0.*test_07_20_backward.*# this line"):
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
            raised(lambda: a.backward(retain_graph=True)),
            raised(lambda: b.backward(retain_graph=True)),
            raised(lambda: a.backward()),
            raised(lambda: a.backward()),
            raised(lambda: b.backward()),
            raised(lambda: c.backward()),
            raised(lambda: m.grad(c, h)),
            x.grad,
        ]

    same_as_torch(program)


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
