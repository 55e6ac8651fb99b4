"""SEMANTICS 35–36: the history of what is written in place, wholly and at an index."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.checks import gradcheck, gradgradcheck
from helpers.tensors import equal, leaf
from helpers.torch_comparison import same_as_torch

# --- 35: a write gives the same object a new history ----------------------------------------------


def test_s35_the_object_stays_and_its_history_is_new(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 2
    before = y.grad_fn
    z = y.mul_(3)
    assert z is y
    assert y.grad_fn is not before
    assert y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


@pytest.mark.parametrize(
    ("symbol", "expected"), [("+", 2.0), ("-", 2.0), ("*", 6.0), ("/", 0.5), ("**", 16.0)]
)
def test_s35_augmented_assignment_keeps_the_object(lib, symbol, expected):
    x = lib.leaf([1.0])
    y = x * 2
    names = {"y": y}
    exec(f"y {symbol}= {3 if symbol in '+-*' else 4}", names)
    assert names["y"] is y
    y.sum().backward()
    assert x.grad.tolist() == [64.0 if symbol == "**" else expected]


def test_s35_augmented_assignment_of_a_leaf_leaves_the_name_alone():
    x = leaf([1.0])
    y = x
    with pytest.raises(RuntimeError, match="a leaf Variable"):
        y += 1
    assert y is x


IN_PLACE = {
    "add_": ((3.0,), {}),
    "sub_": ((3.0,), {"alpha": 2}),
    "mul_": ((3.0,), {}),
    "div_": ((3.0,), {}),
    "pow_": ((3.0,), {}),
    "exp_": ((), {}),
    "expm1_": ((), {}),
    "log_": ((), {}),
    "log2_": ((), {}),
    "sqrt_": ((), {}),
    "rsqrt_": ((), {}),
    "neg_": ((), {}),
    "abs_": ((), {}),
    "reciprocal_": ((), {}),
    "square_": ((), {}),
    "sin_": ((), {}),
    "tanh_": ((), {}),
    "atan_": ((), {}),
    "sigmoid_": ((), {}),
    "relu_": ((), {}),
    "clamp_": ((0.6,), {}),
    "floor_": ((), {}),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_s35_each_method_in_place_has_the_gradient_of_its_twin(lib, name):
    arguments, keywords = IN_PLACE[name]
    x = lib.leaf([[0.5, 0.7], [1.1, 2.3]])
    weight = lib.tensor([[1.0, -2.0], [3.0, 0.5]], dtype="float64")

    def gradient(method):
        y = x * 1
        z = getattr(y, method)(*arguments, **keywords)
        return lib.grad((z * weight).sum(), x)[0].tolist()

    assert gradient(name) == gradient(name[:-1])


def test_s35_writes_in_a_row_are_one_after_the_other(lib):
    x = lib.leaf([0.5])
    y = x * 2
    y.add_(1).mul_(3).pow_(2).neg_()
    y.backward()
    assert y.tolist() == [-36.0]
    assert x.grad.tolist() == [-72.0]


def test_s35_a_hundred_writes(lib):
    x = lib.leaf([1.0])
    y = x * 1
    for _ in range(100):
        y.add_(x)
    y.backward()
    assert x.grad.tolist() == [101.0]


def test_s35_earlier_consumers_keep_the_old_history(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 2
    early = y + 1
    y.mul_(10)
    late = y + 1
    assert lib.grad(early.sum(), x, retain_graph=True)[0].tolist() == [2.0, 2.0]
    assert lib.grad(late.sum(), x)[0].tolist() == [20.0, 20.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda b, x: b.add_(x),
        lambda b, x: b.mul_(x),
        lambda b, x: b.copy_(x),
        lambda b, x: b.sub_(1).add_(x, alpha=3),
        lambda b, x: b.addcmul_(x, x),
        lambda b, x: b.lerp_(x, 0.5),
        lambda b, x: b.__setitem__(0, x[0]),
        lambda b, x: b.__setitem__(slice(None), x),
        lambda b, x: b[0:1].copy_(x[0:1]),
        lambda b, x: b.fill_(x[0]),
        lambda b, x: b.masked_fill_(b > 0, x[0]),
    ],
    ids=[
        "add_",
        "mul_",
        "copy_",
        "alpha",
        "addcmul_",
        "lerp_",
        "set",
        "slice",
        "view",
        "fill_",
        "masked_fill_",
    ],
)
def test_s35_a_plain_tensor_starts_to_require_grad(lib, write):
    x = lib.leaf([1.0, 2.0])
    b = lib.ones(2, dtype=lib.float64)
    write(b, x)
    assert (b.requires_grad, b.is_leaf) == (True, False)
    b.sum().backward()
    assert x.grad is not None
    assert any(x.grad.tolist())


def test_s35_under_no_grad_it_does_not(lib):
    b = lib.zeros(2, dtype=lib.float64)
    with lib.no_grad():
        b.add_(lib.leaf([1.0, 2.0]))
    assert (b.requires_grad, b.grad_fn) == (False, None)


def test_s35_under_no_grad_the_history_stays(lib):
    x = lib.leaf([1.0, 2.0])
    y = x + 1
    node = y.grad_fn
    with lib.no_grad():
        y.mul_(5)
    assert y.grad_fn is node
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_s35_a_plain_tensor_written_with_plain_values_stays_plain(lib):
    b = lib.zeros(2)
    b.add_(1)
    b[0] = 5
    assert (b.requires_grad, b.is_leaf, b.grad_fn) == (False, True, None)


@pytest.mark.parametrize("name", ["add_", "mul_", "sub_", "copy_"])
def test_s35_the_value_broadcasts_and_its_gradient_is_summed(lib, name):
    row = lib.leaf([1.0, 2.0])
    y = lib.leaf([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]) * 1
    getattr(y, name)(row)
    y.sum().backward()
    sign = -1.0 if name == "sub_" else 1.0
    assert row.grad.tolist() == [3.0 * sign, 3.0 * sign]


@pytest.mark.parametrize("name", ["add_", "mul_", "copy_"])
def test_s35_the_target_keeps_its_dtype_and_gradients_have_that_of_their_leaf(lib, name):
    wide, x = lib.leaf([1.0, 2.0]), lib.leaf([1.0, 2.0], "float32")
    y = x * 1
    getattr(y, name)(wide)
    assert y.dtype == lib.float32
    y.sum().backward()
    assert wide.grad.dtype == lib.float64
    assert x.grad is None or x.grad.dtype == lib.float32


@pytest.mark.parametrize("write", ["__setitem__", "copy_"])
def test_s35_an_integer_target_takes_the_values_without_grad(lib, write):
    x = lib.leaf([2.7])
    target = lib.zeros(1, dtype=lib.int64)
    getattr(target, write)(*([0, x[0]] if write == "__setitem__" else [x]))
    assert target.tolist() == [2]
    assert (target.requires_grad, target.is_leaf, target.grad_fn) == (False, True, None)


def test_s35_adding_a_tensor_to_itself(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    y.add_(y)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_s35_filling_ends_the_history_of_what_was_there(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    y.zero_()
    (y + x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_s35_retain_grad_goes_along_with_the_new_history(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [6.0, 6.0]


def test_s35_second_order_through_writes():
    def program(x):
        y = x * 1
        y.mul_(x).exp_()
        y[0] = x.sum() ** 2
        return (y * y).sum()

    x = leaf([0.3, 0.4, 0.5], "float64")
    assert gradcheck(program, (x,))
    assert gradgradcheck(program, (x,))


def test_s35_a_loop_that_fills_a_buffer():
    def program(lib):
        x = lib.leaf([1.0, 2.0, 3.0])
        out = lib.zeros(4, dtype=lib.float64)
        for i in range(3):
            out[i + 1] = out[i].clone() * x[i] + x[i]
        return lib.grad(out.sum(), x)

    same_as_torch(program)


# --- 36: setitem ----------------------------------------------------------------------------------

KEYS = {
    "int": 1,
    "negative int": -1,
    "ints": (1, 2),
    "slice": slice(0, 2),
    "step": slice(None, None, 2),
    "all": slice(None),
    "empty slice": slice(2, 2),
    "ellipsis": ...,
    "ellipsis, int": (..., 0),
    "int, slice": (1, slice(1, None)),
    "none": (None, 0),
    "list": [0, 2],
    "list, list": ([0, 2], [1, 1]),
    "slice, list": (slice(None), [0, 2]),
    "int, list": (1, [2, 0]),
    "array": np.array([2, 0]),
    "nested array": np.array([[2, 0], [1, 1]])[:1],
    "numpy int": np.int64(1),
    "mask": np.array([True, False, True]),
    "mask of elements": np.arange(12).reshape(3, 4) % 5 == 0,
    "mask of nothing": np.zeros((3, 4), bool),
    "mask, int": (np.array([True, False, True]), 2),
    "mask, slice": (np.array([True, False, True]), slice(1, 3)),
    "no index": (),
}
keys = pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())


def tensors_in(key):
    """Return a key with its arrays as tensors."""
    if isinstance(key, tuple):
        return tuple(tensors_in(part) for part in key)
    return cr.tensor(key) if isinstance(key, np.ndarray) else key


@keys
def test_s36_the_gradient_is_zero_where_overwritten_and_flows_into_the_value(key):
    base = np.arange(12.0).reshape(3, 4)
    x, v = leaf(base), leaf(-1.0 - base[key])
    weight = np.arange(1.0, 13.0).reshape(3, 4)
    y = x * 1
    y[key] = v
    (y * weight).sum().backward()
    overwritten = np.zeros((3, 4), bool)
    overwritten[key] = True
    assert equal(x.grad, np.where(overwritten, 0.0, weight))
    assert equal(v.grad, weight[key])
    assert equal(y, np.where(overwritten, -1.0 - base, base))


@keys
def test_s36_differences_agree_for_every_key(key):
    v = leaf(np.random.default_rng(0).normal(size=np.zeros((3, 4))[key].shape))
    x = leaf(np.random.default_rng(1).normal(size=(3, 4)))

    def program(x, v):
        y = x * x
        y[tensors_in(key)] = v.sin()
        return y * y

    assert gradcheck(program, (x, v))


@keys
def test_s36_the_value_broadcasts_and_gets_the_sum(key):
    x, v = leaf(np.ones((3, 4))), leaf(2.0, "float64")
    y = x * 1
    y[key] = v
    y.sum().backward()
    assert v.grad.item() == np.zeros((3, 4))[key].size


@keys
def test_s36_numbers_and_arrays_may_be_written(key):
    x = leaf(np.ones((3, 4)))
    expected = np.ones((3, 4))
    expected[key] = 0.0
    for value in (0.0, 0, np.float32(0), np.zeros(()), cr.tensor(0), False):
        y = x * 1
        y[key] = value
        assert equal(y, expected)
        assert equal(cr.autograd_grad(y.sum(), x)[0], expected)


@keys
def test_s36_a_plain_target_starts_to_require_grad(key):
    v = leaf(5.0)
    target = cr.zeros(3, 4)
    target[key] = v
    assert target.requires_grad
    assert not target.is_leaf


@pytest.mark.parametrize("key", ["int", "list", "mask", "slice", "ints"])
def test_s36_the_same_as_pytorch(key):
    key = KEYS[key]

    def program(lib):
        x = lib.leaf(np.arange(12.0).reshape(3, 4))
        v = lib.leaf(np.ones((3, 4))[key] * 7)
        y = x.sin()
        y[key] = v * v
        return [y, *lib.grad((y**3).sum(), [x, v])]

    same_as_torch(program)


@pytest.mark.parametrize("shape", [(), (1,), (4,), (1, 4), (2, 1), (2, 4), (1, 2, 4), (1, 1, 1)])
def test_s36_values_of_every_broadcastable_shape(lib, shape):
    v = lib.leaf(np.ones(shape))
    y = lib.zeros(3, 4, dtype=lib.float64)
    y[0:2] = v
    y.sum().backward()
    assert tuple(v.grad.shape) == shape
    assert set(v.grad.flatten().tolist()) == {8.0 / max(1, np.prod(shape))}


SINGLE = {
    "ints": (2, 3),
    "ints of tensors": (np.array(2), np.array(3)),
    "mask of one": np.arange(12).reshape(3, 4) == 11,
}


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
@pytest.mark.parametrize("key", SINGLE.values(), ids=SINGLE.keys())
def test_s36_one_number_in_brackets_fits_a_single_element(lib, key, shape):
    v = lib.leaf(np.full(shape, 5.0))
    y = lib.zeros(3, 4, dtype=lib.float64)
    y[key] = v * v
    lib.backward((y * 2).sum())
    assert y[2, 3].item() == 25.0
    assert v.grad.tolist() == np.full(shape, 20.0).tolist()


def test_s36_it_does_in_a_vector_and_in_no_dimensions_and_in_both_modes():
    def program(x, v):
        y, z = x * 2, cr.zeros((), dtype=cr.float64)
        y[1] = v * v
        z[()] = v
        return y * z

    inputs = (leaf([1.0, 2.0], dtype=cr.float64), leaf([3.0], dtype=cr.float64))
    assert program(*inputs).tolist() == [6.0, 27.0]
    assert gradcheck(program, inputs, check_forward_ad=True)
    assert gradgradcheck(program, inputs)


def test_s36_a_value_of_another_dtype_is_cast_and_its_gradient_cast_back(lib):
    v = lib.leaf([1.0, 2.0])
    y = lib.zeros(3, 2)
    y[0] = v
    assert y.dtype == lib.float32
    y.sum().backward()
    assert (v.grad.dtype, v.grad.tolist()) == (lib.float64, [1.0, 1.0])


CHAINS = {
    "y[0][1]": lambda y, v: y[0].__setitem__(1, v),
    "y[1:][0]": lambda y, v: y[1:].__setitem__(0, v),
    "y.T[2]": lambda y, v: y.T.__setitem__(2, v),
    "y.view(-1)[::5]": lambda y, v: y.view(-1).__setitem__(slice(None, None, 5), v),
    "y[None][0, 1]": lambda y, v: y[None].__setitem__((0, 1), v),
    "y.permute[1, [0, 2]]": lambda y, v: y.permute(1, 0).__setitem__((1, [0, 2]), v),
    "y[:, 1:3][mask]": lambda y, v: y[:, 1:3].__setitem__(y[:, 1:3] > 4, v),
    "y.unsqueeze(1)[..., 0]": lambda y, v: y.unsqueeze(1).__setitem__((..., 0), v),
}


@pytest.mark.parametrize("write", CHAINS.values(), ids=CHAINS.keys())
def test_s36_through_chains_of_views(write):
    def program(lib):
        x, v = lib.leaf(np.arange(12.0).reshape(3, 4)), lib.leaf(2.0)
        y = x * 1
        write(y, v * 3)
        return [y, y.grad_fn.name().split("::")[-1], *lib.grad((y**2).sum(), [x, v])]

    same_as_torch(program)


def test_s36_a_part_may_be_written_to_another(lib):
    x = lib.leaf([1.0, 2.0, 3.0])
    y = x * 1
    y[0] = y[2]
    (y * lib.tensor([10.0, 1.0, 1.0], dtype="float64")).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 11.0]


def test_s36_a_tensor_may_be_written_from_what_was_computed_of_it(lib):
    x = lib.leaf([1.0, 2.0, 3.0])
    y = x * 1
    y[0] = y.sum()
    y.sum().backward()
    assert y.tolist() == [6.0, 2.0, 3.0]
    assert x.grad.tolist() == [1.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.__setitem__(slice(1, None), y[:-1]),
        lambda y: y.__setitem__(slice(None, -1), y[1:]),
        lambda y: y.__setitem__(slice(None), y.flip(0)),
        lambda y: y.__setitem__([0, 1, 2], y[[2, 0, 1]]),
        lambda y: y[1:].copy_(y[:-1]),
        lambda y: y[1:].add_(y[:-1]),
        lambda y: y[:-1].sub_(y[1:]),
    ],
    ids=["right", "left", "flip", "rotate", "copy_", "add_", "sub_"],
)
def test_s36_source_and_target_may_overlap(write):
    x = leaf([0.5, 1.5, 2.5, 3.5], "float64")

    def program(x):
        y = x * 1
        write(y)
        return y * y

    assert gradcheck(program, (x,))


@pytest.mark.parametrize(
    ("key", "shape"),
    [([0, 0], (2, 1)), (np.array([1, 0, 1]), (3, 2)), (([0, 0], [1, 1]), (2,)), ([[2], [2]], ())],
    ids=str,
)
def test_s36_of_values_written_to_one_place_the_last_counts(key, shape):
    x, v = (
        leaf(np.arange(6.0).reshape(3, 2)),
        leaf(np.arange(1.0, 1 + np.prod(shape)).reshape(shape)),
    )

    def program(x, v):
        y = x * 1
        y[key] = v
        return y * y

    assert gradcheck(program, (x, v))


def test_s36_adding_to_one_place_twice_counts_once():
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    y[[0, 0]] += x[1]
    y.sum().backward()
    assert y.tolist() == [3.0, 2.0, 3.0]
    assert x.grad.tolist() == [1.0, 2.0, 1.0]


@pytest.mark.parametrize(
    "change",
    [
        "y[0] += v",
        "y[1:] *= v",
        "y[y > 2] -= v",
        "y[[0, 2]] /= v",
        "y[..., 0] **= 2",
        "y[0][0] += v",
        "y.T[0] *= v",
        "y[:, 1] = y[:, 1] + v",
        "y[0] += y[1]",
    ],
)
def test_s36_augmented_assignment_to_a_part(change):
    def program(lib):
        x, v = lib.leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), lib.leaf(3.0)
        y = x * 1
        exec(change, {"y": y, "v": v})
        return [y, *lib.grad((y * y).sum(), [x, v], allow_unused=True)]

    same_as_torch(program)


def test_s36_a_part_may_be_added_to_the_whole():
    def program(y):
        y = y * 1
        y += y[0]
        return y * y

    assert gradcheck(program, (leaf([[1.0, 2.0], [3.0, 4.0]], "float64"),))


def test_s36_the_value_is_not_saved(lib):
    v = lib.leaf([1.0]) * 1
    y = lib.zeros(3, dtype=lib.float64)
    y[1:2] = v
    v.zero_()
    y.sum().backward()
    assert y.tolist() == [0.0, 1.0, 0.0]


def test_s36_what_was_saved_before_is_noticed(lib):
    y = lib.leaf([1.0, 2.0]) * 1
    z = y.log()
    y[0] = 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_s36_under_no_grad_nothing_is_recorded(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    node = y.grad_fn
    with lib.no_grad():
        y[0] = 5.0
    assert y.grad_fn is node
    assert y.tolist() == [5.0, 2.0]


def test_s36_second_order(lib):
    x, v = lib.leaf([2.0, 3.0]), lib.leaf(5.0)
    y = x**3
    y[0] = v**3
    g, h = lib.grad((y**2).sum(), [x, v], create_graph=True)
    lib.backward([g.sum(), h])
    assert x.grad.tolist() == [0.0, 30 * 3.0**4]
    assert v.grad.item() == 30 * 5.0**4


WRONG = {
    "index": (5, 1.0, cr.OutOfBoundsError, "index 5 is out of bounds for dimension 0 with size 3"),
    "index in a list": ([0, 5], 1.0, IndexError, "out of bounds for dimension 0 with size 3"),
    "too many": ((0, 0, 0), 1.0, IndexError, "too many indices for tensor"),
    "float": (1.5, 1.0, IndexError, "valid indices"),
    "text": ("a", 1.0, (IndexError, TypeError), "valid indices"),
    "mask": (np.array([True, False]), 1.0, IndexError, "index"),
    "shape": (0, np.ones(3), RuntimeError, "shape"),
    "shape of a list": ([0, 1], np.ones(3), RuntimeError, "shape mismatch"),
    "shape of an element": (
        (0, 1),
        np.ones(2),
        RuntimeError,
        r"of shape \[2\] cannot be broadcast to indexing result of shape \[\]",
    ),
    "matrix for a mask": (np.eye(3, 4) > 0, np.ones((3, 1)), RuntimeError, "shape mismatch"),
    "shape of a mask": (np.array([True, True, False]), np.ones((3, 4)), RuntimeError, "shape"),
    "complex": (0, 1j, RuntimeError, "can't be cast"),
    "no number": (0, "a", TypeError, "str"),
}


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize(("key", "value", "kind", "text"), WRONG.values(), ids=WRONG.keys())
def test_s36_an_error_leaves_everything_as_it_was(key, value, kind, text, tracked):
    y = cr.ones((3, 4), requires_grad=tracked) * 1
    node = y.grad_fn
    with pytest.raises(kind, match=text):
        y[key] = value
    assert equal(y, np.ones((3, 4), np.float32))
    assert y._version == 0
    assert y.grad_fn is node


def test_s36_an_error_does_not_make_a_plain_target_require_grad():
    y = cr.ones(3)
    with pytest.raises(RuntimeError, match="shape"):
        y[0:2] = leaf([1.0, 2.0, 3.0])
    assert (y.requires_grad, y._version) == (False, 0)
