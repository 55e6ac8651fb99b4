"""SEMANTICS 1–6: leaves, flags, `.grad`, `grad_fn` and how tensors print."""

from __future__ import annotations

import copy
import gc
import weakref

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import leaf, memory
from helpers.torch_comparison import same_as_torch

FACTORIES = {
    "tensor": lambda **kw: cr.tensor([1.0, 2.0], **kw),
    "zeros": lambda **kw: cr.zeros(2, **kw),
    "ones": lambda **kw: cr.ones(2, **kw),
    "full": lambda **kw: cr.full((2,), 3.0, **kw),
    "empty": lambda **kw: cr.empty(2, **kw),
    "eye": lambda **kw: cr.eye(2, **kw),
    "arange": lambda **kw: cr.arange(0.0, 2.0, **kw),
    "linspace": lambda **kw: cr.linspace(0, 1, 2, **kw),
    "rand": lambda **kw: cr.rand(2, **kw),
    "randn": lambda **kw: cr.randn(2, **kw),
    "zeros_like": lambda **kw: cr.zeros_like(leaf([1.0, 2.0]), **kw),
    "ones_like": lambda **kw: cr.ones_like(leaf([1.0, 2.0]), **kw),
}
factories = pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES.keys())


# --- 1: requires_grad and is_leaf -----------------------------------------------------------------


@factories
def test_s01_requires_grad_defaults_to_false(make):
    x = make()
    assert x.requires_grad is False
    assert x.is_leaf is True


@factories
def test_s01_a_tensor_made_to_require_grad_is_a_leaf(make):
    x = make(requires_grad=True)
    assert x.requires_grad is True
    assert x.is_leaf is True
    assert x.grad_fn is None


def test_s01_from_numpy_and_asarray_of_arrays_do_not_require_grad():
    array = np.ones(2)
    for x in (cr.from_numpy(array), cr.asarray(array)):
        assert not x.requires_grad
        assert x.is_leaf


@pytest.mark.parametrize("recording", [True, False])
@pytest.mark.parametrize("second", [True, False])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("shape", [(), (0,), (3,)])
def test_s01_a_result_requires_grad_iff_recording_and_some_input_does(
    shape, first, second, recording
):
    a = cr.zeros(shape, requires_grad=first)
    b = cr.zeros(shape, requires_grad=second)
    with cr.set_grad_enabled(recording):
        c = a * b
    assert c.requires_grad == (recording and (first or second))
    assert c.is_leaf != c.requires_grad
    assert (c.grad_fn is None) == c.is_leaf


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x > 1,
        lambda x: x == x,
        lambda x: x.argmax(),
        lambda x: x.isnan(),
        lambda x: x.long(),
        lambda x: x.max(0)[1],
        lambda x: x.sort()[1],
    ],
)
def test_s01_integer_and_bool_results_do_not_require_grad(function):
    y = function(leaf([1.0, 2.0]))
    assert not y.requires_grad
    assert y.is_leaf


def test_s01_one_input_of_many_is_enough():
    constants = [cr.ones(1) for _ in range(5)]
    assert not cr.cat(constants).requires_grad
    assert cr.cat([*constants, leaf([1.0])]).requires_grad


def test_s01_detached_tensors_are_leaves():
    y = leaf([1.0]) * 2
    assert y.detach().is_leaf
    assert not y.detach().requires_grad
    assert y.requires_grad


def test_s01_flags_are_those_of_the_time_of_recording():
    x = cr.tensor([1.0])
    before = x * 2
    x.requires_grad_()
    assert not before.requires_grad
    assert (x * 2).requires_grad


def test_s01_a_view_made_before_its_base_required_grad_does_not():
    x = cr.zeros(4)
    view = x[:2]
    x.requires_grad_()
    assert not view.requires_grad
    assert x[:2].requires_grad


def test_s01_a_view_that_is_a_leaf_of_its_own_stays_one():
    x = cr.zeros(4)
    view = x[:2].requires_grad_()
    x.requires_grad_()
    assert view.is_leaf
    (view * 3).sum().backward()
    assert view.grad.tolist() == [3, 3]
    assert x.grad is None


@pytest.mark.parametrize("name", ["is_leaf", "grad_fn"])
def test_s01_places_in_the_graph_cannot_be_assigned(name):
    with pytest.raises(AttributeError):
        setattr(cr.zeros(1), name, None)


def test_s01_flags_as_in_torch():
    def program(m):
        x, c = m.leaf([[1.0, -2.0]]), m.ones(1, 2)
        y = x * c
        tensors = [x, c, y, c + c, x[0], x.T, y.detach(), x.detach().clone(), x.clone()]
        return [(bool(t.requires_grad), bool(t.is_leaf), t.grad_fn is None) for t in tensors]

    same_as_torch(program)


# --- 2: requires_grad_() --------------------------------------------------------------------------


def test_s02_requires_grad_returns_the_tensor_itself():
    x = cr.zeros(2)
    assert x.requires_grad_() is x
    assert x.requires_grad
    assert x.requires_grad_(False) is x
    assert not x.requires_grad
    assert x.requires_grad_(requires_grad=True) is x


def test_s02_requires_grad_is_settable_as_an_attribute():
    x = cr.zeros(2)
    x.requires_grad = True
    assert (x * 2).requires_grad
    x.requires_grad = False
    assert not (x * 2).requires_grad


def test_s02_requires_grad_works_under_no_grad():
    with cr.no_grad():
        x = cr.zeros(2).requires_grad_()
    assert x.requires_grad


def test_s02_true_on_a_non_leaf_changes_nothing():
    y = leaf([1.0]) * 2
    node = y.grad_fn
    assert y.requires_grad_() is y
    y.requires_grad = True
    assert y.grad_fn is node
    assert not y.is_leaf


@pytest.mark.parametrize("shape", [(), (0,), (2,)])
def test_s02_false_on_a_non_leaf_raises(shape):
    y = cr.zeros(shape, requires_grad=True) * 2
    node = y.grad_fn
    text = "you can only change requires_grad flags of leaf variables"
    with pytest.raises(RuntimeError, match=text):
        y.requires_grad_(False)
    with pytest.raises(RuntimeError, match=text):
        y.requires_grad = False
    assert y.requires_grad
    assert y.grad_fn is node


def test_s02_the_error_names_what_made_the_tensor_and_detach():
    y = leaf([1.0]).exp()
    with pytest.raises(RuntimeError, match=r"ExpBackward0.*detach\(\)"):
        y.requires_grad_(False)


def test_s02_false_on_a_constant_is_fine():
    y = cr.ones(2) * 2
    assert y.requires_grad_(False) is y


def test_s02_true_twice_keeps_hooks_and_grad():
    x, calls = leaf([1.0]), []
    x.register_hook(calls.append)
    (x * 2).backward()
    x.requires_grad_().requires_grad_()
    (x * 2).backward()
    assert len(calls) == 2
    assert x.grad.tolist() == [4]


def test_s02_switching_off_keeps_the_grad():
    x = leaf([1.0])
    (x * 2).backward()
    x.requires_grad_(False)
    assert x.grad.tolist() == [2]


def test_s02_a_leaf_frozen_after_the_forward_gets_nothing():
    def program(m):
        x, w = m.leaf([1.0]), m.leaf([3.0])
        y = x * w
        x.requires_grad_(False)
        y.backward()
        return x.grad, w.grad

    same_as_torch(program)


def frozen_for_a_while(x):
    return x.requires_grad_(False).requires_grad_(True)


def test_s02_a_leaf_has_one_node_whatever_its_flag_did_meanwhile():
    def program(m):
        x, seen = m.leaf([1.0]), []
        x.register_hook(lambda g: seen.append(g.detach().clone()))
        y = x * 2
        frozen_for_a_while(x)
        z = x * 3
        grads = m.grad(y + z, x, retain_graph=True)
        (y + z).backward()
        return grads, x.grad, seen

    same_as_torch(program)


def test_s02_hooks_survive_a_while_without_grad():
    x, calls = leaf([1.0]), []
    x.register_hook(lambda g: calls.append(g.item()))
    x.register_post_accumulate_grad_hook(lambda t: calls.append("post"))
    (frozen_for_a_while(x) * 2).backward()
    assert calls == [2, "post"]


def test_s02_old_and_new_graphs_meet_in_one_leaf():
    x = leaf([1.0])
    y = x * 2
    z = frozen_for_a_while(x) * 3
    assert y.grad_fn.next_functions[0][0] is z.grad_fn.next_functions[0][0]
    assert cr.autograd_grad(y + z, x)[0].tolist() == [5]


# --- 3: integers and bools ------------------------------------------------------------------------

WHOLE = [cr.bool, cr.uint8, cr.int8, cr.int16, cr.int32, cr.int64]
ONLY_FLOATS = "only Tensors of floating point and complex dtype can require gradients"


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_s03_whole_numbers_cannot_require_grad(dtype):
    x = cr.zeros(2, dtype=dtype)
    with pytest.raises(RuntimeError, match=ONLY_FLOATS):
        x.requires_grad_()
    with pytest.raises(RuntimeError, match=ONLY_FLOATS):
        x.requires_grad = True
    assert not x.requires_grad
    x.requires_grad_(False)


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
@pytest.mark.parametrize(
    "make",
    [
        lambda **kw: cr.tensor([0, 1], **kw),
        lambda **kw: cr.tensor(1, **kw),
        lambda **kw: cr.tensor([], **kw),
        lambda **kw: cr.zeros(2, **kw),
        lambda **kw: cr.ones_like(cr.zeros(2), **kw),
        lambda **kw: cr.full((2,), 1, **kw),
    ],
)
def test_s03_nor_be_made_so(make, dtype):
    with pytest.raises(RuntimeError, match=ONLY_FLOATS):
        make(dtype=dtype, requires_grad=True)


@pytest.mark.parametrize(
    "make", [lambda **kw: cr.tensor([1, 2], **kw), lambda **kw: cr.arange(3, **kw)]
)
def test_s03_the_error_says_what_came_and_how_to_convert(make):
    with pytest.raises(RuntimeError, match=r"(int64|Long).*float"):
        make(requires_grad=True)


@pytest.mark.parametrize(
    "dtype", [cr.float16, cr.float32, cr.float64, cr.complex64, cr.complex128], ids=str
)
def test_s03_every_inexact_dtype_can_require_grad(dtype):
    x = cr.ones(2, dtype=dtype, requires_grad=True)
    (x * 2).sum().backward(cr.ones((), dtype=dtype))
    assert x.grad.dtype == dtype
    assert x.grad.tolist() == [2, 2]


# --- 4: .grad -------------------------------------------------------------------------------------


@pytest.mark.parametrize("requires_grad", [True, False])
def test_s04_grad_is_none_before_any_backward(requires_grad):
    x = cr.ones(2, requires_grad=requires_grad)
    assert x.grad is None
    x * 2
    assert x.grad is None


def test_s04_grad_is_the_same_object_at_each_reading():
    x = leaf([1.0])
    (x * 2).backward()
    assert x.grad is x.grad
    assert not x.grad.requires_grad
    assert x.grad.is_leaf


def test_s04_grad_is_settable():
    x = leaf([3.0])
    (x * 2).backward()
    x.grad = x.grad / 2
    assert x.grad.tolist() == [1]
    x.grad = None
    assert x.grad is None


def test_s04_what_was_set_is_what_comes_back():
    x, grad = leaf([3.0]), cr.ones(1)
    x.grad = grad
    assert x.grad is grad


def test_s04_a_pass_accumulates_into_what_was_set():
    x, grad = leaf([3.0]), cr.ones(1)
    x.grad = grad
    (x * 2).backward()
    assert x.grad is grad
    assert grad.tolist() == [3]


def test_s04_grad_is_deletable():
    x = leaf([3.0])
    (x * 2).backward()
    del x.grad
    assert x.grad is None
    del x.grad
    (x * 2).backward()
    assert x.grad.tolist() == [2]


def test_s04_a_tensor_without_grad_may_be_given_one():
    x = cr.ones(2)
    x.grad = cr.ones(2)
    assert not x.requires_grad
    assert x.grad.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("shape", "wrong"),
    [
        ((2,), (3,)),
        ((2,), (1,)),
        ((2,), ()),
        ((), (1,)),
        ((2, 3), (3, 2)),
        ((0,), (1,)),
        ((1,), ()),
    ],
)
def test_s04_grad_of_another_size_is_rejected(shape, wrong):
    x = cr.ones(shape, requires_grad=True)
    x.grad = kept = cr.ones(shape)
    with pytest.raises(RuntimeError, match="assigned grad has data of a different size"):
        x.grad = cr.ones(wrong)
    assert x.grad is kept


@pytest.mark.parametrize("wrong", [cr.float64, cr.float16, cr.int64, cr.complex64], ids=str)
def test_s04_grad_of_another_dtype_is_rejected(wrong):
    x = leaf([1.0], cr.float32)
    with pytest.raises(RuntimeError, match="assigned grad has data of a different type"):
        x.grad = cr.ones(1, dtype=wrong)
    assert x.grad is None


@pytest.mark.parametrize(
    "wrong", [1.0, [1.0], np.ones(1), "no"], ids=["float", "list", "array", "str"]
)
def test_s04_grad_must_be_a_tensor(wrong):
    with pytest.raises(TypeError, match="expected to be a Tensor or None"):
        leaf([1.0]).grad = wrong


def test_s04_a_tensor_cannot_be_its_own_grad():
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="own grad"):
        x.grad = x


def test_s04_reading_grad_of_a_non_leaf_warns():
    y = leaf([1.0]) * 2
    with pytest.warns(UserWarning, match=r"not a leaf Tensor.*retain_grad"):
        assert y.grad is None


# --- 5: grad_fn -----------------------------------------------------------------------------------


def chain(node):
    """Return the names from a node along first inputs."""
    names = []
    while node is not None:
        names.append(node.name)
        node = node.next_functions[0][0] if node.next_functions else None
    return names


@pytest.mark.parametrize("x", [leaf([1.0]), cr.ones(1), leaf([1.0]).detach()])
def test_s05_leaves_have_no_grad_fn(x):
    assert x.grad_fn is None


NAMES = {
    "AddBackward0": lambda m, x: x + 1,
    "SubBackward0": lambda m, x: x - 1,
    "MulBackward0": lambda m, x: x * 2,
    "DivBackward0": lambda m, x: x / 2,
    "PowBackward0": lambda m, x: x**2,
    "NegBackward0": lambda m, x: -x,
    "ExpBackward0": lambda m, x: x.exp(),
    "LogBackward0": lambda m, x: x.log(),
    "SqrtBackward0": lambda m, x: x.sqrt(),
    "SinBackward0": lambda m, x: x.sin(),
    "TanhBackward0": lambda m, x: x.tanh(),
    "ReluBackward0": lambda m, x: x.relu(),
    "SigmoidBackward0": lambda m, x: x.sigmoid(),
    "AbsBackward0": lambda m, x: x.abs(),
    "MeanBackward0": lambda m, x: x.mean(),
    "SumBackward0": lambda m, x: x.sum(),
    "ProdBackward0": lambda m, x: x.prod(),
    "MmBackward0": lambda m, x: x.mm(x),
    "ViewBackward0": lambda m, x: x.view(-1),
    "PermuteBackward0": lambda m, x: x.T,
    "TransposeBackward0": lambda m, x: x.transpose(0, 1),
    "SelectBackward0": lambda m, x: x[0],
    "SliceBackward0": lambda m, x: x[:1],
    "IndexBackward0": lambda m, x: x[[0, 1]],
    "ExpandBackward0": lambda m, x: x.expand(3, 2, 2),
    "CloneBackward0": lambda m, x: x.clone(),
    "CatBackward0": lambda m, x: m.cat([x, x]),
    "StackBackward0": lambda m, x: m.stack([x, x]),
    "WhereBackward0": lambda m, x: m.where(x > 0, x, x),
    "SoftmaxBackward0": lambda m, x: x.softmax(0),
    "MaximumBackward0": lambda m, x: m.maximum(x, x),
    "UnbindBackward0": lambda m, x: x.unbind()[0],
}


@pytest.mark.parametrize(("name", "function"), NAMES.items(), ids=NAMES.keys())
def test_s05_nodes_have_names(name, function):
    node = function(cr, leaf([[1.0, 2.0], [3.0, 4.0]])).grad_fn
    assert node.name == name
    assert node.name() == name
    assert repr(node).startswith(f"<{name}")


@pytest.mark.parametrize("function", NAMES.values(), ids=NAMES.keys())
def test_s05_which_are_those_of_torch(function):
    same_as_torch(lambda m: function(m, m.leaf([[1.0, 2.0], [3.0, 4.0]])).grad_fn.name())


def test_s05_a_custom_function_gives_its_name():
    @cr.autograd_function
    def cube(ctx, x):
        return x * x * x

    assert cube(leaf([1.0])).grad_fn.name == "cubeBackward"


def test_s05_the_same_node_object_every_time():
    x = leaf([1.0, 2.0])
    y = x * 2
    z = y + x
    assert y.grad_fn is y.grad_fn
    assert z.grad_fn.next_functions[0][0] is y.grad_fn
    assert z.grad_fn.next_functions[1][0] is y.grad_fn.next_functions[0][0]


def test_s05_views_too():
    y = leaf([[1.0, 2.0]]) * 2
    view = y.T
    assert view.grad_fn is view.grad_fn
    assert view.grad_fn.next_functions[0][0] is y.grad_fn


def test_s05_next_functions_are_ordered_per_input():
    a, b = leaf([1.0]), leaf([2.0])
    e, s = a.exp(), b.sin()
    assert [node for node, _ in (e - s).grad_fn.next_functions] == [e.grad_fn, s.grad_fn]
    assert [node for node, _ in (s - e).grad_fn.next_functions] == [s.grad_fn, e.grad_fn]
    assert [node for node, _ in cr.cat([e, s, e]).grad_fn.next_functions] == [
        e.grad_fn,
        s.grad_fn,
        e.grad_fn,
    ]


def test_s05_leaves_give_an_accumulate_grad_node_without_successors():
    x = leaf([1.0])
    node, index = (x * 2).grad_fn.next_functions[0]
    assert node.name == "AccumulateGrad"
    assert index == 0
    assert node.next_functions == ()
    assert node.variable is x


def test_s05_different_leaves_have_different_nodes():
    (a, _), (b, _) = (leaf([1.0]) * leaf([2.0])).grad_fn.next_functions
    assert a is not b


def test_s05_inputs_that_need_no_grad_give_none_and_zero():
    x, c = leaf([1.0]), cr.ones(1)
    assert (c * x).grad_fn.next_functions[0] == (None, 0)
    assert (x * c).grad_fn.next_functions[1] == (None, 0)
    assert (x * 3).grad_fn.next_functions[1] == (None, 0)
    assert (x * x.detach()).grad_fn.next_functions[1] == (None, 0)


def test_s05_edges_name_the_output_they_lead_to():
    first, second = leaf([[1.0, 2.0], [3.0, 4.0]]).unbind()
    assert first.grad_fn is second.grad_fn
    product = second * first
    assert product.grad_fn.next_functions == ((first.grad_fn, 1), (first.grad_fn, 0))


def test_s05_output_nr_tells_outputs_apart():
    parts = leaf([1.0, 2.0, 3.0]).split(1)
    assert [part.output_nr for part in parts] == [0, 1, 2]


def test_s05_the_graph_can_be_walked_to_the_leaf():
    y = (leaf([1.0]) * 2 + 1).exp().mean()
    assert chain(y.grad_fn) == [
        "MeanBackward0",
        "ExpBackward0",
        "AddBackward0",
        "MulBackward0",
        "AccumulateGrad",
    ]


def test_s05_the_structure_is_that_of_torch():
    def walk(node):
        if node is None:
            return None
        name = node.name().rpartition("::")[2]
        return [name, [[walk(below), index] for below, index in node.next_functions]]

    def program(m):
        x, w, c = m.leaf([[1.0, 2.0]]), m.leaf([[3.0], [4.0]]), m.tensor([[5.0]], "float64")
        h = (x @ w) * 2 - c
        first, second = w.unbind()
        outputs = [h, h.exp() / h, x + x, first * second, (c * h).mean(), x[0] + w[:1]]
        return [walk(y.grad_fn) for y in outputs]

    same_as_torch(program)


def test_s05_a_graph_keeps_its_nodes_when_tensors_are_gone():
    x = leaf([1.0])
    node = (x * 2).exp().grad_fn
    gc.collect()
    assert chain(node) == ["ExpBackward0", "MulBackward0", "AccumulateGrad"]


def test_s05_a_node_keeps_no_leaf_alive():
    x = leaf([1.0])
    node, alive = (x + 1).grad_fn, weakref.ref(x)
    del x
    assert alive() is None
    assert node.next_functions[0][0].variable is None


# --- 6: repr --------------------------------------------------------------------------------------

PRINTED = {
    "values": (lambda m: m.tensor([1.0, 2.5]), "tensor([1.0000, 2.5000])"),
    "0-d": (lambda m: m.tensor(1.5), "tensor(1.5000)"),
    "empty": (lambda m: m.tensor([]), "tensor([])"),
    "int": (lambda m: m.tensor([1, 2]), "tensor([1, 2])"),
    "bool": (lambda m: m.tensor([True, False]), "tensor([ True, False])"),
    "other dtype": (
        lambda m: m.tensor([1.0], dtype=m.float64),
        ("tensor([1.], dtype=float64)", "tensor([1.], dtype=torch.float64)"),
    ),
    "other int": (
        lambda m: m.tensor([1], dtype=m.int32),
        ("tensor([1], dtype=int32)", "tensor([1], dtype=torch.int32)"),
    ),
    "complex": (lambda m: m.tensor([1 + 2j]), "tensor([1.+2.j])"),
    "leaf": (
        lambda m: m.tensor([1.0], requires_grad=True),
        "tensor([1.], requires_grad=True)",
    ),
    "leaf of another dtype": (
        lambda m: m.tensor([1.0], dtype=m.float16, requires_grad=True),
        (
            "tensor([1.], dtype=float16, requires_grad=True)",
            "tensor([1.], dtype=torch.float16, requires_grad=True)",
        ),
    ),
    "non-leaf": (
        lambda m: m.tensor([1.0], requires_grad=True) * 2,
        "tensor([2.], grad_fn=<MulBackward0>)",
    ),
    "non-leaf 0-d": (
        lambda m: m.tensor([1.0, 2.0], requires_grad=True).mean(),
        "tensor(1.5000, grad_fn=<MeanBackward0>)",
    ),
    "non-leaf of another dtype": (
        lambda m: m.tensor([1.0], dtype=m.float64, requires_grad=True).exp(),
        (
            "tensor([2.7183], dtype=float64, grad_fn=<ExpBackward0>)",
            "tensor([2.7183], dtype=torch.float64, grad_fn=<ExpBackward0>)",
        ),
    ),
    "detached": (
        lambda m: m.tensor([1.0], requires_grad=True).detach(),
        "tensor([1.])",
    ),
    "no integers": (
        lambda m: m.zeros(0, dtype=m.int64),
        ("tensor([], dtype=int64)", "tensor([], dtype=torch.int64)"),
    ),
    "no bools": (
        lambda m: m.zeros(2, 0, dtype=m.bool),
        ("tensor([], size=(2, 0), dtype=bool)", "tensor([], size=(2, 0), dtype=torch.bool)"),
    ),
    "matrix": (
        lambda m: m.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True),
        "tensor([[1., 2.],\n        [3., 4.]], requires_grad=True)",
    ),
}


@pytest.mark.parametrize(("make", "expected"), PRINTED.values(), ids=PRINTED.keys())
def test_s06_repr(make, expected):
    ours = expected if isinstance(expected, str) else expected[0]
    assert repr(make(cr)) == ours
    assert str(make(cr)) == ours


@pytest.mark.parametrize(("make", "expected"), PRINTED.values(), ids=PRINTED.keys())
def test_s06_repr_is_that_of_torch_but_for_its_name_in_dtypes(make, expected):
    torch = pytest.importorskip("torch")
    assert repr(make(torch)) == (expected if isinstance(expected, str) else expected[1])


def test_s06_the_default_dtype_is_not_printed():
    x = cr.tensor([1.0], dtype=cr.float64)
    cr.set_default_dtype(cr.float64)
    try:
        assert repr(x) == "tensor([1.])"
        assert repr(cr.tensor([1.0], dtype=cr.float32)) == "tensor([1.], dtype=float32)"
    finally:
        cr.set_default_dtype(cr.float32)


def test_s06_the_cpu_is_not_printed():
    assert "device" not in repr(cr.ones(1, device="cpu"))


def test_s06_printing_records_nothing_and_needs_no_grad_mode():
    y = leaf([1.0]) * 2
    node = y.grad_fn
    repr(y)
    assert y.grad_fn is node
    with cr.no_grad():
        assert repr(y) == "tensor([2.], grad_fn=<MulBackward0>)"


def test_s06_a_custom_function_is_named_in_repr():
    @cr.autograd_function
    def cube(ctx, x):
        return x * x * x

    assert repr(cube(leaf([2.0]))) == "tensor([8.], grad_fn=<cubeBackward>)"


def test_s06_a_copy_prints_the_same():
    x = leaf([1.0])
    assert repr(copy.deepcopy(x)) == repr(x)
    assert memory(x).tolist() == [1]
