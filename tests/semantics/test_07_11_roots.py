"""SEMANTICS 7–11: what `backward` starts from: roots, and the gradients they are given."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import equal, leaf
from helpers.torch_comparison import same_as_torch

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
