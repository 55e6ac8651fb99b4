"""SEMANTICS 34: operations save only what they need, so writes to the rest do no harm."""

from __future__ import annotations

import weakref

import pytest

import chainrule as cr
from helpers.tensors import leaf
from helpers.torch_comparison import same_as_torch

CHANGED = "modified by an inplace operation"

# y and w are 2 × 2 and both require grad; c is a constant of that shape.
SAVES_NOTHING_OF_Y = {
    "y + w": lambda lib, y, w, c: y + w,
    "w - y": lambda lib, y, w, c: w - y,
    "-y": lambda lib, y, w, c: -y,
    "y + 1": lambda lib, y, w, c: y + 1,
    "2 * y": lambda lib, y, w, c: 2 * y,
    "y / 2": lambda lib, y, w, c: y / 2,
    "y * c": lambda lib, y, w, c: y * c,
    "c * y": lambda lib, y, w, c: c * y,
    "y / c": lambda lib, y, w, c: y / c,
    "y @ c": lambda lib, y, w, c: y @ c,
    "c @ y": lambda lib, y, w, c: c @ y,
    "sum": lambda lib, y, w, c: y.sum(),
    "mean": lambda lib, y, w, c: y.mean(0),
    "cumsum": lambda lib, y, w, c: y.cumsum(0),
    "reshape": lambda lib, y, w, c: y.reshape(4) * 1,
    "transpose": lambda lib, y, w, c: y.T * 1,
    "expand": lambda lib, y, w, c: y[None].expand(3, 2, 2) * 1,
    "cat": lambda lib, y, w, c: lib.cat([y, w]),
    "stack": lambda lib, y, w, c: lib.stack([y, y, w]),
    "getitem": lambda lib, y, w, c: y[0] * 1,
    "index": lambda lib, y, w, c: y[[0, 0, 1]],
    "mask": lambda lib, y, w, c: y[lib.tensor([True, False])],
    "where": lambda lib, y, w, c: lib.where(c > 0, y, w),
    "masked_fill": lambda lib, y, w, c: y.masked_fill(c > 0, 0.0),
    "flip": lambda lib, y, w, c: y.flip(0),
    "roll": lambda lib, y, w, c: y.roll(1, 0),
    "tril": lambda lib, y, w, c: y.tril(),
    "clone": lambda lib, y, w, c: y.clone(),
    "cast": lambda lib, y, w, c: y.double(),
    "max(dim)": lambda lib, y, w, c: y.max(0)[0],
    "sort": lambda lib, y, w, c: y.sort(0)[0],
    "round": lambda lib, y, w, c: y.round(),
    "add_": lambda lib, y, w, c: lib.zeros(2, 2).add_(y),
    "mul_ by a constant": lambda lib, y, w, c: (y * 1).mul_(c),
    "setitem": lambda lib, y, w, c: put(lib.zeros(2, 2), y),
}

SAVES_THE_RESULT = {
    "exp": lambda y: y.exp(),
    "sqrt": lambda y: y.sqrt(),
    "tanh": lambda y: y.tanh(),
    "sigmoid": lambda y: y.sigmoid(),
    "relu": lambda y: y.relu(),
    "reciprocal": lambda y: y.reciprocal(),
    "rsqrt": lambda y: y.rsqrt(),
    "softmax": lambda y: y.softmax(0),
    "log_softmax": lambda y: y.log_softmax(0),
}

SAVES_Y = {
    "hardtanh": lambda lib, y, w, c: lib.nn.functional.hardtanh(y, 0.0, 2.5),
    "relu6": lambda lib, y, w, c: lib.nn.functional.relu6(y),
    "logsigmoid": lambda lib, y, w, c: lib.nn.functional.logsigmoid(y),
    # The rules of these use the result too, which is computed anew if it was written.
    "softplus": lambda lib, y, w, c: lib.nn.functional.softplus(y, 2.0, 3.0),
    "fmod": lambda lib, y, w, c: y.fmod(w),
    "max_pool1d": lambda lib, y, w, c: lib.nn.functional.max_pool1d(y, 2),
    "max_pool2d": lambda lib, y, w, c: lib.nn.functional.max_pool2d(y[None], (1, 2)),
    "y * w": lambda lib, y, w, c: y * w,
    "w * y": lambda lib, y, w, c: w * y,
    "w / y": lambda lib, y, w, c: w / y,
    "c / y": lambda lib, y, w, c: c / y,
    "y @ w": lambda lib, y, w, c: y @ w,
    "w @ y": lambda lib, y, w, c: w @ y,
    "y ** 2": lambda lib, y, w, c: y**2,
    "sin": lambda lib, y, w, c: y.sin(),
    "cos": lambda lib, y, w, c: y.cos(),
    "log": lambda lib, y, w, c: y.log(),
    "log1p": lambda lib, y, w, c: y.log1p(),
    "abs": lambda lib, y, w, c: y.abs(),
    "clamp": lambda lib, y, w, c: y.clamp(max=2.0),
    "maximum": lambda lib, y, w, c: lib.maximum(y, w),
}


def put(target, value):
    target[...] = value
    return target


def operands(lib):
    x = lib.leaf([[1.0, 2.0], [3.0, 4.0]], "float32")
    w = lib.leaf([[0.5, 1.5], [2.5, 3.5]], "float32")
    return x, x * 1, w * 1, lib.ones(2, 2) * 2


def cases(table):
    return pytest.mark.parametrize("make", table.values(), ids=table.keys())


@cases(SAVES_NOTHING_OF_Y)
def test_s34_an_operand_that_was_not_saved_may_be_overwritten(lib, make):
    x, y, w, c = operands(lib)
    expected = lib.grad(make(lib, y, w, c).sum(), x, retain_graph=True)[0]
    z = make(lib, y, w, c)
    y.zero_()
    z.sum().backward()
    assert x.grad.tolist() == expected.tolist()


@cases(SAVES_THE_RESULT)
def test_s34_where_the_result_is_saved_the_operand_may_be_overwritten(lib, make):
    x, y, _, _ = operands(lib)
    expected = lib.grad(make(y).sum(), x, retain_graph=True)[0]
    z = make(y)
    y.zero_()
    z.sum().backward()
    assert x.grad.tolist() == expected.tolist()


@cases(SAVES_THE_RESULT)
def test_s34_where_the_result_is_saved_it_must_not_be_overwritten(lib, make):
    _, y, _, _ = operands(lib)
    z = make(y)
    z.zero_()
    with pytest.raises(RuntimeError, match=CHANGED):
        z.sum().backward()


@cases(SAVES_Y)
def test_s34_a_saved_operand_must_not_be_overwritten(lib, make):
    _, y, w, c = operands(lib)
    z = make(lib, y, w, c)
    y.zero_()
    with pytest.raises(RuntimeError, match=CHANGED):
        z.sum().backward()


@cases(SAVES_Y)
def test_s34_where_the_operand_is_saved_the_result_may_be_overwritten(lib, make):
    x, y, w, c = operands(lib)
    expected = lib.grad(make(lib, y, w, c).sum(), x, retain_graph=True)[0]
    z = make(lib, y, w, c)
    z.add_(5)
    z.sum().backward()
    assert x.grad.tolist() == expected.tolist()


def test_s34_a_result_that_was_overwritten_has_a_second_derivative():
    x = leaf([0.5, -1.5, 2.0])
    y = cr.nn.functional.softplus(x * 1)
    y.mul_(3)
    (grad,) = cr.autograd_grad(y.sum(), x, create_graph=True)
    grad.sum().backward()
    z = leaf([0.5, -1.5, 2.0])
    (3 * z.sigmoid()).sum().backward()
    cr.testing.assert_close(x.grad, z.grad)


@pytest.mark.parametrize("operation", ["mul", "div", "matmul"])
def test_s34_an_operand_is_saved_only_if_the_other_needs_grad(lib, operation):
    x, y, _, c = operands(lib)
    z = getattr(y, operation)(c)
    c.add_(1)
    with pytest.raises(RuntimeError, match=CHANGED):
        z.sum().backward()
    z = getattr(y, operation)(c)
    y.add_(1)
    z.sum().backward()
    assert x.grad is not None


def test_s34_an_index_tensor_that_is_written_later_does_not_move_the_gradient():
    x = leaf([1.0, 2.0, 3.0])
    index = cr.tensor([0, 0, 1])
    z = x[index]
    index.fill_(2)
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 1.0, 0.0]


def test_s34_an_index_array_that_is_written_later_does_not_move_the_gradient():
    x = leaf([1.0, 2.0, 3.0]) * 1
    x.retain_grad()
    index = [0, 0, 1]
    z = x[index]
    index[:] = [2, 2, 2]
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 1.0, 0.0]


def test_s34_a_mask_that_is_written_later_does_not_move_the_gradient_of_setitem():
    x, v = leaf([1.0, 2.0, 3.0]), leaf([5.0])
    y = x * 1
    mask = cr.tensor([True, False, False])
    y[mask] = v
    mask.fill_(True)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0]
    assert v.grad.tolist() == [1.0]


def test_s34_gather_saves_the_index_alone():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    z = y.gather(0, cr.tensor([[0, 1]]))
    y.zero_()  # PyTorch saves y here, and raises
    z.sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def array_of(y):
    return weakref.ref(y.detach().numpy())


@pytest.mark.parametrize(
    "operation",
    [lambda y: y + 1, lambda y: y.sum(), lambda y: y * 3.0, lambda y: y.exp(), lambda y: y[[0]]],
    ids=["add", "sum", "product", "exp", "index"],
)
def test_s34_what_no_rule_needs_dies_when_the_user_drops_it(operation):
    y = leaf([1.0, 2.0]) * 2
    memory = array_of(y)
    z = operation(y)
    del y
    assert memory() is None
    z.sum().backward()


def test_s34_what_a_rule_needs_lives_until_the_pass_has_used_it():
    y = leaf([1.0, 2.0]) * 2
    memory = array_of(y)
    z = y.sin()
    del y
    assert memory() is not None
    z.sum().backward()
    assert memory() is None


def test_s34_nothing_is_saved_where_nothing_needs_grad():
    y = cr.ones(2)
    memory = array_of(y)
    z = y.sin() * y
    del y
    assert memory() is None
    assert z.grad_fn is None


def test_s34_nothing_is_saved_under_no_grad():
    y = leaf([1.0, 2.0])
    memory = array_of(y)
    with cr.no_grad():
        z = y.sin()
    del y
    assert memory() is None
    assert z.grad_fn is None


# --- looking at what was saved --------------------------------------------------------------------


def test_s34_a_node_shows_what_it_saved():
    def program(lib):
        x, y = lib.leaf([1.0, 2.0]), lib.leaf([3.0, 4.0])
        product, power = x * y, x.exp()
        assert product.grad_fn._saved_self is x
        assert product.grad_fn._saved_other is y
        half = x * lib.tensor([5.0, 6.0], "float64")
        assert half.grad_fn._saved_self is None
        result = power.grad_fn._saved_result
        assert result.grad_fn is power.grad_fn
        return result.detach(), half.grad_fn._saved_other, power.relu().grad_fn._saved_result

    same_as_torch(program)


def test_s34_what_a_node_saved_is_checked_and_freed():
    x = leaf([1.0, 2.0])
    y = x * 1
    z = y * y
    assert z.grad_fn._saved_result is None
    y.add_(1)
    with pytest.raises(cr.InPlaceError, match="modified by an inplace operation"):
        z.grad_fn._saved_self  # noqa: B018
    out = x.exp()
    out.sum().backward()
    with pytest.raises(cr.FreedGraphError, match="directly access saved tensors after they have"):
        out.grad_fn._saved_result  # noqa: B018
