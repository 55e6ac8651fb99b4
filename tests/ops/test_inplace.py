"""In-place methods."""

import numpy as np
import pytest

import chainrule as cr
from chainrule import operation
from helpers.torch_comparison import compare_with_torch

FUNCTIONAL = [
    "square",
    "reciprocal",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "rsqrt",
    "sigmoid",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "abs",
    "sign",
    "relu",
    "floor",
    "ceil",
    "trunc",
    "round",
    "neg",
]


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_a_method_in_place_does_what_the_function_does(name):
    x = cr.tensor([0.25, 0.75])
    version, expected = x._version, getattr(x, name)()
    assert getattr(x, f"{name}_")() is x
    assert x.tolist() == expected.tolist()
    assert x._version == version + 1


@pytest.mark.parametrize(
    ("name", "arguments", "keywords", "expected"),
    [
        ("add_", (2,), {}, [3, 6]),
        ("add_", (2,), {"alpha": 10}, [21, 24]),
        ("sub_", (np.array([1.0, 1.0], np.float32),), {"alpha": 2}, [-1, 2]),
        ("mul_", (3,), {}, [3, 12]),
        ("div_", (2,), {}, [0.5, 2]),
        ("div_", (3,), {"rounding_mode": "floor"}, [0, 1]),
        ("pow_", (2,), {}, [1, 16]),
        ("remainder_", (3,), {}, [1, 1]),
        ("floor_divide_", (3,), {}, [0, 1]),
        ("clamp_", (), {"min": 2, "max": 3}, [2, 3]),
        ("clip_", (2, 3), {}, [2, 3]),
        ("addcmul_", (2, 3), {"value": 0.5}, [4, 7]),
        ("addcdiv_", (6.0, 3.0), {}, [3, 6]),
        ("lerp_", (3.0, 0.5), {}, [2, 3.5]),
        ("zero_", (), {}, [0, 0]),
        ("fill_", (7,), {}, [7, 7]),
        ("copy_", (np.array([8, 9]),), {}, [8, 9]),
    ],
)
def test_arguments(name, arguments, keywords, expected):
    x = cr.tensor([1.0, 4.0])
    assert getattr(x, name)(*arguments, **keywords) is x
    assert x.tolist() == expected
    assert x.dtype == cr.float32


def test_tensors_as_arguments_are_recorded():
    x = cr.tensor([1.0, 4.0], requires_grad=True)
    y = cr.tensor([2.0, 3.0], requires_grad=True)
    z = (x * 1).addcmul_(x, y, value=2).masked_fill_(cr.tensor([True, False]), 0).lerp_(y, 0.25)
    gx, gy = cr.autograd_grad(z.sum(), [x, y])
    assert gx.tolist() == [0, 0.75 * (1 + 2 * 3)]
    assert gy.tolist() == [0.25, 0.25 + 0.75 * 2 * 4]


def test_filling_ends_the_history():
    x = cr.tensor([1.0, 4.0], requires_grad=True)
    y = x * 2
    y.zero_()
    (gradient,) = cr.autograd_grad((y + x).sum(), [x])
    assert gradient.tolist() == [1, 1]


def test_fill_and_copy_pass_gradients_to_their_source():
    value = cr.tensor(3.0, requires_grad=True)
    cr.zeros(3).fill_(value).sum().backward()
    assert value.grad.item() == 3
    row = cr.tensor([1.0, 2.0], requires_grad=True)
    (cr.zeros(2, 2).copy_(row) * cr.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert row.grad.tolist() == [4, 6]
    with pytest.raises(cr.ShapeError, match="only supports 0-dimension value tensor"):
        cr.zeros(2).fill_(row)


def test_integers_refuse_results_that_are_none():
    x = cr.tensor([1, 2])
    message = "result type Float can't be cast to the desired output type Long"
    for write in (
        lambda: x.div_(2),
        lambda: x.add_(0.5),
        lambda: x.mul_(cr.tensor(0.5)),
        lambda: x.sqrt_(),
        lambda: x.clamp_(min=0.5),
    ):
        with pytest.raises(cr.DTypeError, match=message):
            write()
    assert x.tolist() == [1, 2]
    assert x.add_(1).mul_(3).tolist() == [6, 9]


def test_the_shape_can_not_change():
    x = cr.ones(1)
    with pytest.raises(
        cr.ShapeError, match=r"output with shape \[1\] doesn't match the broadcast shape \[3\]"
    ):
        x.add_(cr.ones(3))
    assert x.tolist() == [1]


@pytest.mark.parametrize("name", ["normal_", "uniform_"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_random_filling(name, dtype):
    x = cr.zeros(1000, dtype=dtype)
    assert getattr(x, name)(rng=np.random.default_rng(0)) is x
    y = getattr(cr.zeros(1000, dtype=dtype), name)(rng=np.random.default_rng(0))
    assert x.dtype == dtype
    assert x.equal(y)


def test_random_filling_has_its_moments():
    rng = np.random.default_rng(0)
    x = cr.zeros(20000).normal_(5, 2, rng=rng)
    assert x.mean().item() == pytest.approx(5, abs=0.05)
    assert x.std().item() == pytest.approx(2, abs=0.05)
    x.uniform_(-1, 3, rng=rng)
    assert x.min().item() >= -1
    assert x.max().item() < 3
    assert x.mean().item() == pytest.approx(1, abs=0.05)


def test_leaves_are_protected():
    x = cr.ones(2, requires_grad=True)
    for name in ("zero_", "sin_", "relu_", "normal_"):
        with pytest.raises(
            cr.InPlaceError, match="a leaf Variable that requires grad is being used"
        ):
            getattr(x, name)()
    with cr.no_grad():
        assert x.zero_() is x
    assert x.requires_grad


def test_every_method_in_place_is_attached():
    assert {name for _, name in operation._IN_PLACE} <= vars(cr.Tensor).keys()


def test_parts_of_complex_numbers_are_written_to():
    def function(lib, z, x):
        y = z * 1
        before = y + 1
        y.real = x
        y.imag = x.exp()
        y[0].real = 3
        return before, y * y

    compare_with_torch(function, np.array([1 + 2j, -0.5j]), np.array([0.5, -1.0]))
    z = cr.tensor([1 + 2j, 3 - 1j])
    z.real, z.imag = np.array([5.0, 6.0]), 7
    assert z.tolist() == [5 + 7j, 6 + 7j]
    x = cr.tensor([1.0, 2.0])
    x.real = 3.0
    assert x.tolist() == [3.0, 3.0]


def test_parts_that_cannot_be_written_to():
    z = cr.tensor([1 + 2j], requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        z.real = 1.0
    with pytest.raises(cr.DTypeError, match="has no imaginary part to write to"):
        cr.ones(2).imag = 1.0
    with pytest.raises(cr.DTypeError, match="complex: expected real numbers"):
        cr.tensor([1j]).real = 1j
    with pytest.raises(cr.ShapeError):
        cr.tensor([1j]).real = cr.ones(3)
