"""SEMANTICS 31–33: what may be written in place, and how a write that does harm is found out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import equal, leaf, share_memory
from helpers.torch_comparison import same_as_torch

LEAF = "a leaf Variable that requires grad is being used in an in-place operation"
VIEW_OF_LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation"
CHANGED = (
    "one of the variables needed for gradient computation has been modified by an inplace operation"
)


def iadd(x):
    x += 1


def imul(x):
    x *= 2


def setitem(x):
    x[0] = 5.0


def set_all(x):
    x[...] = 5.0


def set_mask(x):
    x[x > 0] = 5.0


def set_list(x):
    x[[0]] = 5.0


WRITES = {
    "add_": lambda x: x.add_(1),
    "sub_": lambda x: x.sub_(1),
    "mul_": lambda x: x.mul_(2),
    "div_": lambda x: x.div_(2),
    "pow_": lambda x: x.pow_(2),
    "zero_": lambda x: x.zero_(),
    "fill_": lambda x: x.fill_(3),
    "copy_": lambda x: x.copy_(x.detach() * 2),
    "exp_": lambda x: x.exp_(),
    "log_": lambda x: x.log_(),
    "sqrt_": lambda x: x.sqrt_(),
    "neg_": lambda x: x.neg_(),
    "sigmoid_": lambda x: x.sigmoid_(),
    "tanh_": lambda x: x.tanh_(),
    "relu_": lambda x: x.relu_(),
    "clamp_": lambda x: x.clamp_(min=2),
    "round_": lambda x: x.round_(),
    "addcmul_": lambda x: x.addcmul_(x.detach(), x.detach()),
    "lerp_": lambda x: x.lerp_(x.detach() + 1, 0.5),
    "masked_fill_": lambda x: x.masked_fill_(x > 0, 7),
    "normal_": lambda x: x.normal_(),
    "uniform_": lambda x: x.uniform_(),
    "+=": iadd,
    "*=": imul,
    "[0] =": setitem,
    "[...] =": set_all,
    "[mask] =": set_mask,
    "[[0]] =": set_list,
}
writes = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())

VIEWS = {
    "select": lambda x: x[0],
    "slice": lambda x: x[0:1],
    "ellipsis": lambda x: x[...],
    "none": lambda x: x[None],
    "element": lambda x: x[0, 1],
    "reshape": lambda x: x.reshape(4),
    "view": lambda x: x.view(4),
    "flatten": lambda x: x.flatten(),
    "T": lambda x: x.T,
    "transpose": lambda x: x.transpose(0, 1),
    "permute": lambda x: x.permute(1, 0),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x.squeeze(),
    "view of a view": lambda x: x.T[1].reshape(2, 1),
}
views = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())


# --- 31: leaves -----------------------------------------------------------------------------------


@writes
def test_s31_a_leaf_refuses_every_write(lib, write):
    x = lib.leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match=f"{LEAF}|{VIEW_OF_LEAF}"):
        write(x)
    assert x.tolist() == [1.0, 2.0]
    assert (x._version, x.is_leaf, x.grad_fn, x.requires_grad) == (0, True, None, True)


@views
def test_s31_a_view_of_a_leaf_refuses(lib, view):
    x = lib.leaf([[1.0, 2.0], [3.0, 4.0]])
    v = view(x)
    with pytest.raises(RuntimeError, match=VIEW_OF_LEAF):
        v.mul_(10)
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert (x._version, x.is_leaf, v.requires_grad) == (0, True, True)


@writes
def test_s31_a_view_of_a_leaf_refuses_every_write(lib, write):
    x = lib.leaf([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(RuntimeError, match=VIEW_OF_LEAF):
        write(x[0])
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert x._version == 0


def test_s31_setting_an_element_of_a_leaf_says_view_as_pytorch_does(lib):
    x = lib.leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match=VIEW_OF_LEAF):
        x[0] = 3.0


def test_s31_an_expanded_leaf_refuses(lib):
    x = lib.leaf([1.0])
    with pytest.raises(RuntimeError, match=VIEW_OF_LEAF):
        x.expand(3).add_(1)


def test_s31_a_view_made_before_requires_grad_refuses(lib):
    x = lib.ones(3)
    v = x[0:1]
    x.requires_grad_()
    with pytest.raises(RuntimeError, match=VIEW_OF_LEAF):
        v.mul_(2)
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_s31_the_error_stays_after_a_first_error(lib):
    x = lib.leaf([1.0])
    for _ in range(2):
        with pytest.raises(RuntimeError, match=LEAF):
            x.add_(1)


def test_s31_enable_grad_inside_no_grad_refuses_again(lib):
    x = lib.leaf([1.0])
    with lib.no_grad():
        x.add_(1)
        with lib.enable_grad(), pytest.raises(RuntimeError, match=LEAF):
            x.add_(1)
    assert x.tolist() == [2.0]


@writes
def test_s31_no_grad_allows_every_write_and_the_leaf_stays_one(lib, write):
    x = lib.leaf([1.0, 2.0])
    with lib.no_grad():
        write(x)
    assert (x._version, x.is_leaf, x.grad_fn, x.requires_grad) == (1, True, None, True)


@views
def test_s31_no_grad_allows_writes_through_views(lib, view):
    x = lib.leaf([[1.0, 2.0], [3.0, 4.0]])
    v = view(x)
    with lib.no_grad():
        v.zero_()
    assert v.sum().item() == 0
    assert (x._version, x.is_leaf, x.requires_grad) == (1, True, True)


def test_s31_a_leaf_may_be_the_value_that_is_written(lib):
    x = lib.leaf([2.0])
    buffer = lib.zeros(3, dtype=lib.float64)
    buffer.add_(x)
    buffer[0] = x[0]
    buffer.sum().backward()
    assert x.grad.tolist() == [3.0]


def test_s31_the_message_names_the_operation_and_the_mend():
    with pytest.raises(RuntimeError, match=r"sub_.*no_grad\(\)"):
        leaf([1.0]).sub_(1)


# --- 32: the version counter ----------------------------------------------------------------------


@writes
def test_s32_one_write_counts_one(lib, write):
    x = lib.ones(2)
    write(x)
    assert x._version == 1


@pytest.mark.parametrize("mode", ["no_grad", "enable_grad"])
def test_s32_writes_count_in_every_mode(lib, mode):
    x = lib.leaf([1.0]) * 1
    with getattr(lib, mode)():
        x.add_(1)
        x.mul_(2)
    assert x._version == 2


@views
def test_s32_views_share_the_counter_of_their_base(lib, view):
    x = lib.ones(2, 2)
    v = view(x)
    x.add_(1)
    assert v._version == 1
    v.add_(1)
    assert x._version == v._version == 2


def test_s32_detached_aliases_share_the_counter(lib):
    y = lib.leaf([1.0, 2.0]) * 2
    alias, part = y.detach(), y.detach()[0]
    alias.add_(1)
    assert (y._version, alias._version, part._version) == (1, 1, 1)
    part.add_(1)
    y.add_(1)
    assert (y._version, alias._version, part._version) == (3, 3, 3)


@pytest.mark.parametrize(
    "copy",
    [
        lambda x: x.clone(),
        lambda x: x * 1,
        lambda x: x[[0, 1]],
        lambda x: x.T.reshape(-1),
        lambda x: x.T.contiguous(),
    ],
    ids=["clone", "product", "index", "reshape", "contiguous"],
)
def test_s32_copies_have_their_own_counter(lib, copy):
    x = lib.ones(2, 2)
    c = copy(x)
    x.add_(1)
    assert (x._version, c._version) == (1, 0)
    assert c.tolist() == copy(lib.ones(2, 2)).tolist()


def test_s32_reading_and_backward_do_not_count(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * x
    y.sum().backward()
    y.tolist(), y[0].item(), repr(y), y.detach().numpy()
    assert (x._version, y._version) == (0, 0)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(cr.ones(5)),
        lambda x: x.long().add_(0.5),
        lambda x: x.__setitem__(7, 1.0),
        lambda x: x.__setitem__(0, cr.ones(5)),
    ],
    ids=["shape", "dtype", "index", "value"],
)
def test_s32_a_write_that_failed_does_not_count(write):
    x = cr.ones(2)
    with pytest.raises((RuntimeError, IndexError)):
        write(x)
    assert x._version == 0
    assert equal(x, np.ones(2, np.float32))


def test_s32_data_is_the_memory_outside_of_the_graph():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    assert not x.data.requires_grad
    assert share_memory(x.data, x)
    x.data[0] = 5.0
    x.data *= 2
    assert x.tolist() == [10.0, 4.0]
    assert x._version == x.data._version == 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("key", [1, -1, (1,), (..., 1), slice(1, 2), (None, slice(1, None))])
def test_s32_a_write_through_data_beside_what_was_saved_does_not_count(key):
    def program(m):
        x, memory = m.leaf([2.0]), m.tensor([3.0, 4.0])
        y = x * memory[:1]
        memory.data[key] = m.tensor([7.0])[0]
        (y * memory[1]).sum().backward()
        return x.grad, memory

    same_as_torch(program)


@pytest.mark.parametrize(
    "key", [0, -2, (0,), (..., 0), slice(0, 2), (None, slice(None)), [0], (0, True)]
)
def test_s32_a_write_through_data_into_what_was_saved_counts(key):
    x, memory = leaf([2.0]), cr.tensor([3.0, 4.0])
    y = (x * memory[:1]).sum()
    memory.data[key] = 7.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_s32_more_writes_through_data_than_are_remembered_count():
    x, memory = leaf([2.0]), cr.tensor([3.0, 4.0])
    y = (x * memory[:1]).sum()
    memory.data[0] = 7.0
    for _ in range(200):
        memory.data[1] = 7.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_s32_data_can_be_set():
    def program(m):
        x = m.leaf([1.0, 2.0])
        y = (x * x).sum()
        other = m.tensor([3.0, 4.0])
        x.data = other
        other[0] = 7.0  # shared
        z = (x * x).sum()
        z.backward()
        return x, x.grad, z, x.is_leaf, y

    same_as_torch(program)


@pytest.mark.parametrize(
    ("new", "dtype"), [([1.0, 2.0, 3.0], "float32"), ([[1.5], [2.5]], "float64")]
)
def test_s32_data_of_another_shape_and_dtype(new, dtype):
    def program(m):
        x = m.leaf([1.0, 2.0], "float32")
        x.data = m.tensor(new, dtype)
        (x * x).sum().backward()
        return x, x.grad

    same_as_torch(program)


def test_s32_data_of_the_result_of_an_operation():
    def program(m):
        w = m.leaf([1.0, 2.0])
        x = w * 3
        x.data = m.tensor([5.0, 6.0])
        (x * x).sum().backward()
        return x, w.grad

    same_as_torch(program)


def test_s32_graphs_keep_the_values_that_they_were_recorded_with():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    x.data = cr.tensor([5.0, 6.0])
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    y = (x * x).sum()
    x.grad = None
    x.data = cr.ones(3)
    y.backward()  # of the former shape: dropped
    assert x.grad is None


@pytest.mark.parametrize("recorded", [False, True])
def test_s32_views_keep_the_memory_when_data_is_set(recorded):
    w = leaf([2.0, 3.0])
    x = w * 1 if recorded else cr.tensor([2.0, 3.0])
    first, second = x[0:1], x.reshape(2, 1)
    x.data = cr.tensor([10.0, 20.0])
    third = x[0:1]
    first.mul_(w[1])
    assert (first.tolist(), second.tolist(), x.tolist()) == ([6.0], [[6.0], [3.0]], [10.0, 20.0])
    (g,) = cr.autograd_grad(second.sum(), w, retain_graph=True)
    assert g.tolist() == ([3.0, 3.0] if recorded else [0.0, 2.0])
    third.mul_(w[0])
    (g,) = cr.autograd_grad(x.sum(), w)
    assert x.tolist() == [20.0, 20.0]
    assert g.tolist() == ([12.0, 1.0] if recorded else [10.0, 0.0])


def test_s32_data_of_a_view():
    base = cr.tensor([1.0, 2.0])
    view, w = base[0:1], leaf(3.0)
    view.data = cr.tensor([5.0])
    view.mul_(w)
    assert (base.tolist(), view.tolist(), base.requires_grad) == ([1.0, 2.0], [15.0], False)


def test_s32_what_data_can_not_be():
    x = leaf([1.0, 2.0])
    with pytest.raises(TypeError, match=r"x has to be a Tensor, but got list: from_numpy\(\)"):
        x.data = [1.0]
    with pytest.raises(RuntimeError, match="t requires grad, which Long can't"):
        x.data = cr.tensor([1, 2])
    x.grad = cr.ones(2)
    with pytest.raises(RuntimeError, match=r"say t\.grad = None first"):
        x.data = cr.ones(3)
    assert x.tolist() == [1.0, 2.0]


def test_s32_data_in_a_compiled_function():
    w = leaf([1.0, 2.0])

    @cr.compile
    def step(x):
        loss = (w * x).sum()
        loss.backward()
        w.data -= 0.5 * w.grad
        w.grad = None
        return loss

    for wanted in (3.0, 2.0):
        assert step(cr.ones(2)).item() == wanted
    assert w.tolist() == [0.0, 1.0]

    def assign(x):
        w.data = x * 2

    with pytest.raises(RuntimeError, match=r"t\.data = x: .* t\.copy_\(x\)"):
        cr.compile(assign)(cr.ones(2))


def test_s32_tensor_copies_and_from_numpy_shares(lib):
    array = np.ones(2)
    copied, shared = lib.tensor(array), lib.from_numpy(array)
    array[0] = 5.0
    assert copied.tolist() == [1.0, 1.0]
    assert shared.tolist() == [5.0, 1.0]
    shared[1] = 7.0
    assert array.tolist() == [5.0, 7.0]


def test_s32_from_numpy_says_that_it_shares():
    assert "share" in cr.from_numpy.__doc__


def test_s32_tensors_of_one_array_share_the_counter():
    array = np.ones(4)
    a, b = cr.from_numpy(array), cr.from_numpy(array[1:])
    a.add_(1)
    assert (a._version, b._version) == (1, 1)


# --- 33: what was saved has changed ---------------------------------------------------------------


def test_s33_the_message_says_everything():
    y = leaf([1.0, 2.0]).exp()
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError) as info:
        z.sum().backward()
    text = str(info.value)
    assert text.startswith(CHANGED)
    for part in (
        "[Float32 [2]], which is output 0 of ExpBackward0, is at version 1; "
        "expected version 0 instead",
        "Hint: ",
        "detect_anomaly",
        "add_",
        Path(__file__).name,
        "y.add_(1)",
    ):
        assert part in text


def test_s33_the_error_is_of_both_kinds():
    assert issubclass(cr.InPlaceError, cr.AutogradError)
    assert issubclass(cr.InPlaceError, RuntimeError)


@writes
def test_s33_every_write_is_noticed(lib, write):
    y = lib.leaf([1.0, 2.0]) * 1
    z = y * y
    write(y)
    with pytest.raises(RuntimeError, match=CHANGED):
        z.sum().backward()


@writes
def test_s33_who_wrote_it_is_said(write, request):
    y = leaf([1.0, 2.0]) * 1
    z = y * y
    write(y)
    name = request.node.callspec.id
    written = {"+=": "add_", "*=": "mul_"}.get(name, "setitem" if "[" in name else name)
    with pytest.raises(RuntimeError, match=f"{written}.*{Path(__file__).name}"):
        z.sum().backward()


@views
def test_s33_a_write_through_a_view_is_noticed(lib, view):
    y = lib.leaf([[1.0, 2.0], [3.0, 4.0]]) * 1
    z = y * y
    view(y).zero_()
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        z.sum().backward()


@views
def test_s33_a_write_to_the_base_of_a_saved_view_is_noticed(lib, view):
    y = lib.leaf([[1.0, 2.0], [3.0, 4.0]]) * 1
    v = view(y)
    w = v * v
    y.zero_()
    with pytest.raises(RuntimeError, match=CHANGED):
        w.sum().backward()


def test_s33_a_write_to_what_windows_show_is_noticed(lib):
    y = lib.leaf([1.0, 2.0, 3.0]) * 1
    v = y.unfold(0, 2, 1)
    w = v[1:] * v[1:]
    y.mul_(2)
    assert v._version == 1
    with pytest.raises(RuntimeError, match=CHANGED):
        w.sum().backward()


def test_s33_a_write_through_a_detached_alias_is_noticed(lib):
    y = lib.leaf([1.0, 2.0]) * 1
    z = y * y
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        z.sum().backward()


def test_s33_a_write_under_no_grad_is_noticed(lib):
    w = lib.leaf([1.0, 2.0])
    z = (w * w).sum()
    with lib.no_grad():
        w.sub_(0.1)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        z.backward()
    assert w.grad is None


def test_s33_a_write_to_a_saved_constant_is_noticed(lib):
    c = lib.ones(2)
    z = lib.leaf([1.0, 2.0], "float32") * c
    c.add_(1)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        z.sum().backward()


def test_s33_a_write_to_another_part_of_the_memory_counts_too(lib):
    y = lib.leaf([1.0, 2.0]) * 1
    z = y[0] * y[0]
    y[1] = 5.0
    with pytest.raises(RuntimeError, match=CHANGED):
        z.backward()


def test_s33_the_saved_result_counts(lib):
    y = lib.leaf([1.0, 2.0]).exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        y.sum().backward()


def test_s33_versions_are_counted_from_when_it_was_saved(lib):
    y = lib.leaf([1.0, 2.0]) * 1
    y.add_(1)
    y.add_(1)
    z = y * y
    y.add_(1)
    y.add_(1)
    y.add_(1)
    with pytest.raises(RuntimeError, match="is at version 5; expected version 2"):
        z.sum().backward()


def test_s33_many_writes_are_counted_all(lib):
    y = lib.leaf([1.0, 2.0]) * 1
    z = y * y
    for _ in range(100):
        y.detach().add_(1)
    with pytest.raises(RuntimeError, match="is at version 100; expected version 0"):
        z.sum().backward()


def test_s33_writes_before_it_was_saved_do_no_harm(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    y.mul_(3)
    (y * y).sum().backward()
    assert x.grad.tolist() == [18.0, 36.0]


def test_s33_writes_after_the_pass_do_no_harm(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    (y * y).sum().backward()
    y.add_(1)
    assert x.grad.tolist() == [2.0, 4.0]


def test_s33_the_index_of_one_of_several_outputs_is_said():
    class Both(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            return g + 2 * h

    _, b = Both.apply(leaf([1.0, 2.0]))
    z = b * b
    b.detach().zero_()
    with pytest.raises(RuntimeError, match="which is output 1 of Both"):
        z.sum().backward()


@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64"])
def test_s33_the_dtype_and_shape_are_said(dtype):
    y = cr.ones((2, 3), dtype=dtype, requires_grad=True) * 1
    z = y * y
    y.zero_()
    title = {"float16": "Half|Float16", "float64": "Float64|Double", "complex64": "Complex"}[dtype]
    with pytest.raises(RuntimeError, match=rf"\[({title})\w* \[2, 3\]\]"):
        z.backward(cr.ones_like(z))


def test_s33_autograd_grad_and_create_graph_notice_it(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    z = (y * y).sum()
    y.zero_()
    for create_graph in (False, True):
        with pytest.raises(RuntimeError, match=CHANGED):
            lib.grad(z, x, create_graph=create_graph)


def test_s33_a_write_between_first_and_second_order_is_noticed(lib):
    x = lib.leaf([2.0])
    y = x * 1
    (g,) = lib.grad((y**3).sum(), y, create_graph=True)
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match=CHANGED):
        lib.grad(g.sum(), x)


@pytest.mark.parametrize("retain", [False, True])
def test_s33_the_same_pass_fails_the_same_way_again(lib, retain):
    y = lib.leaf([1.0, 2.0]) * 1
    z = (y * y).sum()
    y.zero_()
    for _ in range(3):
        with pytest.raises(RuntimeError, match=CHANGED):
            z.backward(retain_graph=retain)


def test_s33_it_fails_the_same_way_after_nodes_that_had_run():
    y = leaf([1.0, 2.0]) * 1
    z = (y * y).sin().exp().sum()
    y.zero_()
    for _ in range(3):
        with pytest.raises(RuntimeError, match=CHANGED):
            z.backward()


def test_s33_other_graphs_work_after_the_error(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    z = (y * y).sum()
    y.zero_()
    with pytest.raises(RuntimeError, match=CHANGED):
        z.backward()
    (y + x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
