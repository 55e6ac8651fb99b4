"""In-place changes of shape: the base, its views, its history, and refusals."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import chainrule as cr
from chainrule.checks import gradcheck, gradgradcheck
from helpers.tensors import leaf, share_memory
from helpers.torch_comparison import same_as_torch

TURNS = {
    "t_": lambda y: y.t_(),
    "transpose_": lambda y: y.transpose_(0, -1),
    "swapaxes_": lambda y: y.swapaxes_(0, 1),
    "swapdims_": lambda y: y.swapdims_(-1, 0),
    "unsqueeze_": lambda y: y.unsqueeze_(1),
    "unsqueeze_ -1": lambda y: y.unsqueeze_(-1),
    "squeeze_": lambda y: y.unsqueeze_(0).squeeze_(),
    "squeeze_ 0": lambda y: y.unsqueeze_(0).squeeze_(0),
    "squeeze_ nothing": lambda y: y.squeeze_(0),
    "several": lambda y: y.t_().unsqueeze_(0).transpose_(1, 2).squeeze_(0),
}
turns = pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS.keys())
DATA = np.arange(1.0, 7.0).reshape(2, 3)


@turns
def test_the_tensor_and_its_memory_are_the_same_and_the_shape_is_pytorchs(turn):
    def program(lib):
        x = lib.tensor(DATA)
        kept = x.detach()
        assert turn(x) is x
        x.mul_(2)
        return x, list(x.shape), list(x.stride()), x.is_contiguous(), x.is_leaf, kept

    same_as_torch(program)


@turns
def test_the_history_follows(turn):
    def program(lib):
        x = lib.leaf(DATA)
        y = x * x
        turn(y)
        weight = lib.tensor(np.arange(6.0)).reshape(y.shape)
        return [y, y.requires_grad, *lib.grad((y * weight).sum(), x)]

    same_as_torch(program)


@turns
def test_derivatives_agree_with_differences(turn):
    def program(x):
        y = x * x
        v = y[1]
        turn(y)
        y.exp_()
        v.mul_(x.sum())
        return y.sin(), v

    x = leaf(DATA / 6)
    assert gradcheck(program, (x,), fast_mode=True)
    assert gradgradcheck(program, (x,), fast_mode=True)


@turns
def test_views_made_before_and_after_see_what_is_written(turn):
    def program(lib):
        x = lib.leaf(DATA)
        y = x * 1
        early = y[:, 1:]
        turn(y)
        late = y[..., 0]
        early.mul_(10)
        late.mul_(3)
        y.add_(1)
        total = (y * y).sum() + (early * 2).sum() + (late * 5).sum()
        return [y, early, late, *lib.grad(total, x)]

    same_as_torch(program)


def test_a_view_of_an_earlier_view_is_recorded_on_that():
    y = leaf(DATA) * 1
    early = y[0]
    y.t_()
    late = early[1:]
    assert late.grad_fn.next_functions[0][0] is early.grad_fn


def test_a_plain_base_is_recorded_through_a_view_made_before():
    x = leaf([1.0, 2.0])
    base = cr.zeros(3, 2, dtype="float64")
    row = base[0]
    base.t_()
    row.copy_(x)
    assert base.requires_grad
    (base * cr.tensor([[1.0], [10.0]])).sum().backward()
    assert x.grad.tolist() == [1.0, 10.0]


def test_reshaping_a_view_in_place_does_not_change_its_base():
    def program(lib):
        x = lib.leaf(DATA)
        y = x * 1
        v = y[:, 1:]
        v.t_()
        v.mul_(lib.tensor([[2.0], [3.0]], "float64"))
        return [y, v, list(y.shape), *lib.grad((y * y).sum() + (v * 7).sum(), x)]

    same_as_torch(program)


def test_a_view_of_a_leaf_can_be_reshaped_where_pytorch_refuses():
    x = leaf(DATA)
    v = x[0]
    v.unsqueeze_(1)
    (v * v).sum().backward()
    assert x.grad.tolist() == [[2.0, 4.0, 6.0], [0.0, 0.0, 0.0]]


def test_one_of_several_views_can_be_reshaped_but_not_written():
    parts = (leaf(DATA) * 1).unbind()
    assert parts[0].unsqueeze_(0).shape == (1, 3)
    with pytest.raises(cr.InPlaceError, match="returns multiple views"):
        parts[0].mul_(2)


@pytest.mark.parametrize("recording", [True, False])
def test_a_leaf_that_requires_grad_refuses(recording):
    x = leaf(DATA)
    with (
        cr.set_grad_enabled(recording),
        pytest.raises(cr.InPlaceError, match=r"a leaf Variable that requires grad .*\(t_\).*clone"),
    ):
        x.t_()
    assert x.shape == (2, 3)


def test_without_recording_the_history_follows_too():
    x = leaf(DATA)
    y = x * x
    with cr.no_grad():
        y.t_()
    assert y.requires_grad
    (y * cr.tensor([[1.0], [0.0], [0.0]])).sum().backward()
    assert x.grad.tolist() == [[2.0, 0.0, 0.0], [8.0, 0.0, 0.0]]


def test_what_the_graph_saved_is_not_stale():
    x = leaf(DATA)
    y = x * 1
    z = y * y
    y.t_()
    z.sum().backward()
    assert x.grad.tolist() == (2 * DATA).tolist()


def test_a_reshaped_tensor_can_be_a_leaf_a_copy_and_detached():
    x = cr.tensor(DATA).t_().requires_grad_()
    assert x.is_leaf
    with pytest.raises(cr.InPlaceError, match="a view of a leaf Variable"):
        x[0].mul_(2)
    assert copy.deepcopy(x).shape == (3, 2)
    (x * x).sum().backward()
    assert x.grad.shape == (3, 2)
    y = x * 2
    assert y.t_()._base is None
    y.detach_()
    assert (y.requires_grad, y.is_leaf, y.shape) == (False, True, (2, 3))


def test_the_node_of_a_frozen_leaf_is_not_used_again():
    x = leaf(DATA)
    former = (x * 3).sum()
    x.requires_grad_(False).t_().requires_grad_()
    former.backward()  # of the former shape: there is nothing left that it could be added to
    assert x.grad is None
    (x * x).sum().backward()
    assert x.grad.tolist() == (2 * DATA.T).tolist()


def test_a_retained_gradient_has_the_new_shape():
    x = leaf(DATA)
    y = x * 2
    y.retain_grad()
    y.t_()
    (y * cr.tensor([[1.0], [2.0], [3.0]])).sum().backward()
    assert y.grad.tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]  # PyTorch's has the old shape
    assert x.grad.tolist() == [[2.0, 4.0, 6.0]] * 2


def test_a_custom_forward_may_return_what_it_reshaped():
    def forward(ctx, x):
        return (x * 2).unsqueeze_(0)

    double = cr.autograd_function(forward, lambda ctx, g: 2 * g[0])
    x = leaf([1.0, 2.0])
    y = double(x)
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_a_custom_forward_that_reshapes_its_argument_reshapes_the_users_tensor():
    def forward(ctx, x):
        return x.unsqueeze_(0)

    function = cr.autograd_function(forward, lambda ctx, g: 5 * g[0])
    x = leaf([1.0, 2.0])
    y = x * 1
    z = function(y)
    assert (y.shape, z.shape, share_memory(y, z)) == ((1, 2), (1, 2), True)
    (z.sum() + 100 * y.sum()).backward()
    assert x.grad.tolist() == [105.0, 105.0]


def test_a_wrong_dimension_leaves_the_tensor_alone():
    x = cr.zeros(2, 3)
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.transpose_(0, 5)
    with pytest.raises(cr.ShapeError, match="t"):
        cr.zeros(2, 3, 4).t_()
    assert x.shape == (2, 3)
    assert x._base is None


def test_reversed_flips_the_first_dimension():
    x = cr.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    back = reversed(x)
    assert back.tolist() == [[3.0, 4.0], [1.0, 2.0]]
    back[0].sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert reversed(cr.tensor(5.0)).item() == 5
