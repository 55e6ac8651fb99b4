"""SEMANTICS 39–40: the gradient of x[idx], and operands that do not fit each other."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import chainrule as cr
import chainrule.numpy
from chainrule.autograd import error_messages
from chainrule.checks import gradcheck, gradgradcheck
from helpers.tensors import equal, leaf
from helpers.torch_comparison import same_as_torch

# --- 39: reading at indices -----------------------------------------------------------------------

KEYS = {
    "int": 1,
    "negative int": -1,
    "ints": (1, 2),
    "slice": slice(0, 2),
    "negative slice": slice(-2, None),
    "step": (slice(None), slice(None, None, 2)),
    "ellipsis": ...,
    "ellipsis, int": (..., 0),
    "int, ellipsis": (0, ...),
    "none": (None, 0),
    "none in the middle": (slice(None), None, 1),
    "list": [0, 2],
    "nested lists": [[0, 2], [1, 1]],
    "list twice": ([0, 2], [1, 1]),
    "list, slice": ([0, 2], slice(1, 3)),
    "slice, list": (slice(None), [0, 2]),
    "int, list": (1, [2, 0]),
    "broadcast lists": ([[0], [2]], [0, 3]),
    "repeated": [1, 1, 1],
    "negative repeated": [0, -3, 0],
    "repeated pairs": ([0, 0, 1], [2, 2, 2]),
    "array": np.array([2, 0]),
    "matrix of indices": np.array([[2, 0], [2, 2]]),
    "0-d array": np.array(1),
    "uint8": (np.array([1, 0], np.int32),),
    "numpy int": np.int64(1),
    "mask": np.array([True, False, True]),
    "mask of elements": np.arange(12).reshape(3, 4) % 5 == 0,
    "mask of nothing": np.zeros((3, 4), bool),
    "mask, int": (np.array([True, False, True]), 2),
    "mask, list": (np.array([True, False, True]), [1, 1]),
    "list of bools": [True, False, True],
    "empty list": [],
    "empty slice": slice(2, 2),
    "no index": (),
    "true": True,
    "false": False,
}
keys = pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())


def tensors_in(lib, key):
    """Return a key with its arrays as tensors."""
    if isinstance(key, tuple):
        return tuple(tensors_in(lib, part) for part in key)
    return lib.tensor(key) if isinstance(key, np.ndarray) else key


@keys
def test_s39_the_gradient_counts_how_often_each_element_was_read(key):
    x = leaf(np.arange(12.0).reshape(3, 4))
    expected = np.zeros((3, 4))
    np.add.at(expected, key, 1.0)
    for spelled in (key, tensors_in(cr, key)):
        z = x[spelled]
        assert equal(z, np.arange(12.0).reshape(3, 4)[key])
        assert equal(cr.autograd_grad(z.sum(), x)[0], expected)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@keys
def test_s39_the_same_as_pytorch(key):
    if key is KEYS["nested lists"]:
        key = np.array(key)  # PyTorch still reads a list of lists as a tuple of lists
    weight = np.random.default_rng(0).random(np.zeros((3, 4))[key].shape)

    def program(lib):
        x = lib.leaf(np.arange(12.0).reshape(3, 4))
        z = x[tensors_in(lib, key)]
        return [z, *lib.grad((z * lib.tensor(weight)).sum(), x)]

    same_as_torch(program)


@keys
def test_s39_second_order(key):
    x = leaf(np.random.default_rng(0).normal(size=(3, 4)))

    def program(x):
        return (x * x).sin()[key]

    assert gradcheck(program, (x,))
    assert gradgradcheck(program, (x,))


def test_s39_a_hundred_thousand_contributions_to_two_elements(lib):
    x = lib.leaf([1.0, 2.0])
    index = lib.tensor(np.arange(100_000) % 2)
    x[index].sum().backward()
    assert x.grad.tolist() == [50_000.0, 50_000.0]


def test_s39_each_contribution_keeps_its_weight(lib):
    x = lib.leaf([1.0, 2.0, 3.0])
    z = x[[0, 2, 0, 0]]
    z.backward(lib.tensor([1.0, 10.0, 100.0, 1000.0], dtype="float64"))
    assert x.grad.tolist() == [1101.0, 0.0, 10.0]


def test_s39_several_reads_of_one_tensor_add_up(lib):
    x = lib.leaf([1.0, 2.0, 3.0])
    (x[0] + x[[0, 1]].sum() + x[1:].sum() + x[lib.tensor([True, False, True])].sum()).backward()
    assert x.grad.tolist() == [3.0, 2.0, 2.0]


def test_s39_indices_of_elements_in_python_loops(lib):
    x = lib.leaf([[1.0, 2.0], [3.0, 4.0]])
    sum(x[i, j] * x[j][i] for i in range(2) for j in range(2)).backward()
    assert x.grad.tolist() == [[2.0, 6.0], [4.0, 8.0]]


@pytest.mark.parametrize("key", [[0, 0], [0], np.array([0]), (..., [0]), (slice(None), [0])])
def test_s39_numbers_without_dimensions_have_no_index(key):
    arrays = chainrule.numpy.array(1.5)
    for x in (cr.tensor(1.5), cr.tensor(1.5, requires_grad=True), arrays):
        with pytest.raises(IndexError, match="0-dim"):
            x[key]
        for transform, given in ((cr.compile, x), (cr.vmap, cr.stack([x, x]))):
            with pytest.raises(IndexError, match="too many indices"):
                transform(operator.itemgetter(key))(given)
    assert cr.tensor([1.5])[[0, 0]].tolist() == [1.5, 1.5]


def test_s39_iterating_reads_every_row(lib):
    x = lib.leaf([[1.0, 2.0], [3.0, 4.0]])
    a, b = x
    (a * b).sum().backward()
    assert x.grad.tolist() == [[3.0, 4.0], [1.0, 2.0]]


def test_s39_plain_indices_give_views_and_lists_give_copies(lib):
    y = lib.leaf([[1.0, 2.0], [3.0, 4.0]]) * 1
    for view in (y[0], y[0:1], y[..., 0], y[None], y[0, 0]):
        assert view._version == 0
        assert view._base is y
    for copy in (y[[0]], y[lib.tensor([0])], y[y > 0]):
        assert copy._base is None


def test_s39_an_index_needs_no_grad_and_gets_none():
    x = leaf([1.0, 2.0])
    node = x[cr.tensor([0, 1])].grad_fn
    assert [edge is not None for edge, _ in node.next_functions] == [True]


OUT_OF_RANGE = {
    "int": (3, "index 3 is out of bounds for dimension 0 with size 3"),
    "negative": (-4, "index -4 is out of bounds for dimension 0 with size 3"),
    "second": ((0, 9), "index 9 is out of bounds for dimension 1 with size 4"),
    "list": ([0, 3], "index 3 is out of bounds for dimension 0 with size 3"),
    "array": (np.array([5]), "index 5 is out of bounds for dimension 0 with size 3"),
    "too many": ((0, 0, 0), "too many indices for tensor"),
    "float": (1.0, "valid indices"),
    "mask": (np.array([True, False]), "mask|boolean"),
}


@pytest.mark.parametrize(("key", "text"), OUT_OF_RANGE.values(), ids=OUT_OF_RANGE.keys())
def test_s39_no_such_element(lib, key, text):
    x = lib.leaf(np.zeros((3, 4)))
    with pytest.raises(IndexError, match=text):
        x[tensors_in(lib, key)]


@pytest.mark.parametrize(
    "key", ["a", {1}, 1.5, np.array([0.5]), object()], ids=lambda key: type(key).__name__
)
def test_s39_what_is_no_index_says_what_is(key):
    with pytest.raises(IndexError, match=r"only integers, slices .* are valid indices"):
        cr.ones(3)[key]


# --- 40: operands that do not fit -----------------------------------------------------------------

LONG_GOT_FLOAT = "result type Float can't be cast to the desired output type Long"
NO_MATCH = "output with shape .* doesn't match the broadcast shape"

IN_PLACE = {
    "long + float": (lambda t: t.tensor([1, 2]), lambda x: x.add_(1.5), LONG_GOT_FLOAT),
    "long * float": (lambda t: t.tensor([1, 2]), lambda x: x.mul_(0.5), LONG_GOT_FLOAT),
    "long / long": (lambda t: t.tensor([1, 2]), lambda x: x.div_(2), LONG_GOT_FLOAT),
    "long /= long": (lambda t: t.tensor([1, 2]), lambda x: operator.itruediv(x, x), LONG_GOT_FLOAT),
    "long + tensor": (lambda t: t.tensor([1, 2]), lambda x: x.add_(x.float()), LONG_GOT_FLOAT),
    "exp of long": (lambda t: t.tensor([1, 2]), lambda x: x.exp_(), LONG_GOT_FLOAT),
    "int": (
        lambda t: t.tensor([1, 2], dtype="int32"),
        lambda x: x.add_(1.5),
        "result type Float can't be cast to the desired output type Int",
    ),
    "bool": (
        lambda t: t.tensor([True]),
        lambda x: x.add_(1),
        "result type Long can't be cast to the desired output type Bool",
    ),
    "complex": (
        lambda t: t.ones(2),
        lambda x: x.mul_(1j),
        "result type ComplexFloat can't be cast to the desired output type Float",
    ),
    "larger": (lambda t: t.ones(1), lambda x: x.add_(x.expand(3)), r"\[1\] .* shape \[3\]"),
    "more dimensions": (lambda t: t.ones(3), lambda x: x.add_(x.expand(2, 3)), r"\[2, 3\]"),
    "0-d": (lambda t: t.ones(()), lambda x: x.mul_(x.expand(2)), NO_MATCH),
    "sub_": (lambda t: t.ones(1), lambda x: x.sub_(x.expand(3)), NO_MATCH),
    "div_": (lambda t: t.ones(1), lambda x: x.div_(x.expand(3)), NO_MATCH),
    "pow_": (lambda t: t.ones(1), lambda x: x.pow_(x.expand(3)), NO_MATCH),
    "+=": (lambda t: t.ones(1), lambda x: operator.iadd(x, x.expand(3)), NO_MATCH),
    "copy_": (lambda t: t.ones(1), lambda x: x.copy_(x.new_zeros(3)), r"\[1\] .* shape \[3\]"),
}


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize(("make", "write", "text"), IN_PLACE.values(), ids=IN_PLACE.keys())
def test_s40_a_result_that_does_not_fit_leaves_the_target_alone(lib, make, write, text, tracked):
    x = make(lib)
    tracked = tracked and x.is_floating_point()
    if tracked:
        x = x.requires_grad_() * 1
    before, node, version = x.tolist(), x.grad_fn, x._version
    with pytest.raises(RuntimeError, match=text):
        write(x)
    assert (x.tolist(), x._version, x.requires_grad) == (before, version, tracked)
    assert x.grad_fn is node


@pytest.mark.parametrize(
    "view", [lambda x: x[0:1], lambda x: x.view(2, 1)[:1]], ids=["slice", "deep"]
)
def test_s40_a_result_that_does_not_fit_a_view_leaves_the_base_alone(lib, view):
    y = lib.leaf([1.0, 2.0]) * 1
    node = y.grad_fn
    with pytest.raises(RuntimeError, match=NO_MATCH):
        view(y).add_(lib.ones(3))
    assert (y.tolist(), y._version) == ([1.0, 2.0], 0)
    assert y.grad_fn is node


def test_s40_a_plain_target_does_not_start_to_require_grad_by_a_failure(lib):
    b = lib.ones(1)
    with pytest.raises(RuntimeError, match=NO_MATCH):
        b.add_(lib.leaf([1.0, 2.0]))
    assert (b.requires_grad, b._version, b.tolist()) == (False, 0, [1.0])


def test_s40_a_narrower_float_target_takes_a_wider_result(lib):
    x = lib.ones(2)
    x.add_(lib.ones(2, dtype=lib.float64))
    assert (x.dtype, x.tolist()) == (lib.float32, [2.0, 2.0])


def test_s40_an_integer_target_takes_integer_results(lib):
    x = lib.tensor([5, 7])
    x.add_(1)
    x.mul_(x)
    x //= 2
    assert (x.dtype, x.tolist()) == (lib.int64, [18, 32])


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "maximum", "eq", "lt"])
@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        ((3,), (4,), r"\(3\) must match the size of tensor b \(4\) at non-singleton dimension 0"),
        ((2, 3), (2, 4), r"\(3\) must .* b \(4\) at non-singleton dimension 1"),
        ((2, 3), (4,), r"\(3\) must .* b \(4\) at non-singleton dimension 1"),
        ((5, 1, 3), (4, 2, 3), r"\(5\) must .* b \(4\) at non-singleton dimension 0"),
        ((2, 3), (3, 1), r"\(2\) must .* b \(3\) at non-singleton dimension 0"),
        ((0,), (2,), r"\(0\) must .* b \(2\) at non-singleton dimension 0"),
    ],
    ids=str,
)
@pytest.mark.parametrize("tracked", [False, True])
def test_s40_sizes_that_do_not_broadcast(lib, name, left, right, text, tracked):
    a, b = lib.ones(left).requires_grad_(tracked), lib.ones(right)
    with pytest.raises(RuntimeError, match="The size of tensor a " + text):
        getattr(a, name)(b)


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_", "pow_"])
@pytest.mark.parametrize("tracked", [False, True])
def test_s40_sizes_that_do_not_broadcast_in_place(lib, name, tracked):
    a = lib.ones(3).requires_grad_(tracked) * 1
    with pytest.raises(
        RuntimeError,
        match=r"The size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton "
        "dimension 0",
    ):
        getattr(a, name)(lib.ones(4))
    assert (a.tolist(), a._version) == ([1.0, 1.0, 1.0], 0)


@pytest.mark.parametrize("operator_", ["+", "-", "*", "/", "**", "<", "=="])
def test_s40_sizes_that_do_not_broadcast_in_operators(operator_):
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match"):
        eval(f"a {operator_} b", {"a": cr.ones(3), "b": cr.ones(4)})
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match"):
        eval(f"a {operator_} b", {"a": cr.ones(3), "b": np.ones(4)})


def test_s40_where_and_masked_fill_do_not_broadcast(lib):
    with pytest.raises(RuntimeError, match=r"The size of tensor .* must match the size of tensor"):
        lib.where(lib.tensor([True, False]), lib.ones(3), lib.ones(3))
    with pytest.raises(RuntimeError, match=r"The size of tensor .* must match the size of tensor"):
        lib.ones(3).masked_fill(lib.tensor([True, False]), 0.0)


@pytest.mark.parametrize(
    "multiply",
    [lambda a, b: a @ b, lambda a, b: a.mm(b), lambda a, b: a.matmul(b)],
    ids=["@", "mm", "f"],
)
@pytest.mark.parametrize("tracked", [False, True])
def test_s40_matrices_that_can_not_be_multiplied(lib, multiply, tracked):
    a = lib.ones(2, 3).requires_grad_(tracked)
    with pytest.raises(
        RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"
    ):
        multiply(a, lib.ones(2, 3))


@pytest.mark.parametrize(
    "operation",
    [
        lambda: cr.ones(3) + cr.ones(4),
        lambda: cr.ones(2, 3) @ cr.ones(2, 3),
        lambda: cr.ones(1).add_(cr.ones(3)),
    ],
    ids=["broadcast", "matmul", "in place"],
)
def test_s40_shape_errors_are_value_errors_and_runtime_errors(operation):
    with pytest.raises(cr.ShapeError) as info:
        operation()
    assert isinstance(info.value, ValueError)
    assert isinstance(info.value, RuntimeError)


def test_s40_dtype_errors_are_type_errors_and_runtime_errors():
    with pytest.raises(cr.DTypeError) as info:
        cr.tensor([1]).add_(0.5)
    assert isinstance(info.value, TypeError)
    assert isinstance(info.value, RuntimeError)


@pytest.mark.parametrize("operation", ["add", "matmul", "where"])
def test_s40_errors_name_the_operation_and_the_line(operation):
    calls = {
        "add": lambda: cr.ones(3) + cr.ones(4),
        "matmul": lambda: cr.ones(2, 3) @ cr.ones(4, 3),
        "where": lambda: cr.where(cr.tensor([True]), cr.ones(3), cr.ones(4)),
    }
    with pytest.raises(cr.ShapeError, match=r"test_39_40_indices_and_fit\.py"):
        calls[operation]()


@pytest.mark.parametrize("name", ["add", "mul", "matmul", "maximum"])
def test_s40_tensors_on_two_devices(monkeypatch, name):
    cpu, cuda = cr.ones(3), cr.ones(4)
    places = {id(cpu._array): cr.device("cpu"), id(cuda._array): cr.device("cuda", 0)}
    monkeypatch.setattr(error_messages, "device_of", lambda array: places[id(array)])
    with pytest.raises(cr.DeviceError) as info:
        getattr(cr, name)(cpu, cuda)
    for part in ("Expected all tensors to be on the same device", "cpu", "cuda:0", ".to(device)"):
        assert part in str(info.value)
