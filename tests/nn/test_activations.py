"""Activations, compared with PyTorch over their arguments, at kinks and for huge inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.nn import functional as F
from helpers.torch_comparison import compare_with_torch

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(-4, 4, (3, 4))
CALLS: dict[str, tuple[dict[str, Any], ...]] = {
    "relu": ({},),
    "relu6": ({},),
    "leaky_relu": ({}, {"negative_slope": 0.3}, {"negative_slope": 2.0}, {"negative_slope": -1.0}),
    "rrelu": ({}, {"lower": 0.1, "upper": 0.7}),
    "elu": ({}, {"alpha": 0.3}),
    "selu": ({},),
    "celu": ({}, {"alpha": 2.0}),
    "gelu": ({}, {"approximate": "tanh"}),
    "silu": ({},),
    "mish": ({},),
    "softplus": ({}, {"beta": 3.0}, {"beta": 2, "threshold": 1.5}, {"threshold": 60}),
    "softsign": ({},),
    "softmin": ({"dim": 0}, {"dim": -1}),
    "softmax": ({"dim": 1},),
    "log_softmax": ({"dim": 1},),
    "hardtanh": ({}, {"min_val": -0.5, "max_val": 2}),
    "hardsigmoid": ({},),
    "hardswish": ({},),
    "hardshrink": ({}, {"lambd": 1.5}, {"lambd": -1.0}),
    "softshrink": ({}, {"lambd": 1.5}, {"lambd": 0}),
    "tanhshrink": ({},),
    "threshold": (
        {"threshold": 0.5, "value": 7.0},
        {"threshold": -1, "value": 0},
        {"threshold": 0.1, "value": float("-inf")},
    ),
    "logsigmoid": ({},),
    "glu": ({}, {"dim": 1}),
    "sigmoid": ({},),
    "tanh": ({},),
}
GRID = {
    "-".join([name, *[f"{key}={value}" for key, value in settings.items()]]): (name, settings)
    for name, many in CALLS.items()
    for settings in many
}
CLOSE = {"hardsigmoid": {"rtol": 1e-7}}  # PyTorch's 1/6 is in single precision
NO_SECOND = ("hardswish", "hardsigmoid")  # PyTorch has none


@pytest.mark.parametrize("call", GRID)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_as_in_pytorch(call: str, dtype: str) -> None:
    name, settings = GRID[call]
    compare_with_torch(
        lambda lib, x: getattr(lib.nn.functional, name)(x, **settings),
        POINTS.astype(dtype),
        order=2 if name not in NO_SECOND else 1,
        **({"rtol": 1e-5, "atol": 1e-5} if dtype == "float32" else CLOSE.get(name, {})),
    )


EDGES = np.array([-1000.0, -100.0, -20.0, -6.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, 20.0])
EDGES = np.concatenate([EDGES, [20.5, 100.0, 1000.0]])
ELEMENTWISE = [call for call in GRID if GRID[call][0] not in ("glu", "softmin", "softmax")]


@pytest.mark.parametrize("call", ELEMENTWISE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kinks_and_huge_inputs_as_in_pytorch(call: str, dtype: str) -> None:
    name, settings = GRID[call]
    shape = (4, 4) if name in ("log_softmax", "softmax") else (16,)
    compare_with_torch(
        lambda lib, x: getattr(lib.nn.functional, name)(x, **settings),
        EDGES.astype(dtype).reshape(shape),
        rtol=2e-5 if dtype == "float32" else 1e-7,
        atol=1e-6 if dtype == "float32" else 1e-9,
        order=1,
    )


BOUNDED_BELOW = ["elu", "selu", "celu", "relu", "relu6", "hardtanh", "hardsigmoid", "sigmoid"]


@pytest.mark.parametrize("name", [*BOUNDED_BELOW, "softplus", "logsigmoid", "leaky_relu"])
def test_infinities_and_nan_as_in_pytorch(name: str) -> None:
    points = np.array([-np.inf, np.inf, np.nan], "float32")
    compare_with_torch(lambda lib, x: getattr(lib.nn.functional, name)(x), points, order=0)


@pytest.mark.filterwarnings("ignore:overflow encountered in multiply")  # of x³ in tanh
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["mish", "silu", "softplus", "gelu", "gelu-tanh"])
def test_the_slope_of_huge_numbers_is_1_or_0(name: str, dtype: str) -> None:
    settings = {"approximate": "tanh"} if name == "gelu-tanh" else {}
    huge = np.array([100.0, 6e4, np.finfo(dtype).max])
    x = cr.tensor(np.r_[huge, -huge], dtype=dtype, requires_grad=True)
    getattr(F, name.partition("-")[0])(x, **settings).backward(cr.ones(6, dtype=dtype))
    np.testing.assert_allclose(x.grad.numpy(), [1, 1, 1, 0, 0, 0], rtol=2e-3, atol=1e-30)


@pytest.mark.parametrize(
    ("name", "count"),
    [("softplus", 1), ("soft_margin_loss", 2), ("binary_cross_entropy_with_logits", 2)],
)
def test_complex_numbers_are_refused(name: str, count: int) -> None:
    with pytest.raises(cr.DTypeError, match=f"{name}: expected real numbers, got complex64"):
        getattr(F, name)(*[cr.tensor([1j])] * count)


def test_softsign_of_complex_numbers() -> None:
    x = cr.tensor([0.3 + 0.2j, -2j], dtype=cr.complex128, requires_grad=True)
    assert cr.gradcheck(F.softsign, [x], fast_mode=True)
    assert cr.gradgradcheck(F.softsign, [x], fast_mode=True)


@pytest.mark.parametrize(
    ("name", "point", "wanted"),
    [
        ("sigmoid", -80.0, 1.8048513e-35),
        ("softplus", -80.0, 1.8048513e-35),
        ("logsigmoid", 80.0, -1.8048513e-35),
        ("silu", -80.0, -80 * 1.8048513e-35),
        ("mish", -40.0, -40 * 4.2483543e-18),
        ("elu", -1e-20, -1e-20),
    ],
)
def test_tiny_results_keep_their_digits(name: str, point: float, wanted: float) -> None:
    got = getattr(F, name)(cr.tensor(point, dtype=cr.float32)).item()
    assert got == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("call", GRID)
@pytest.mark.filterwarnings("error")
def test_half_precision_and_empty_inputs(call: str) -> None:
    name, settings = GRID[call]
    function = getattr(F, name)
    far = np.array([[-100, -50.0, -1.0, 0.5], [1.0, 2.0, 50.0, 100]])
    got = function(cr.tensor(far, dtype=cr.float16), **settings)
    assert got.dtype == cr.float16
    wanted = function(cr.tensor(far), **settings).numpy()
    np.testing.assert_allclose(got.numpy(), wanted, rtol=5e-3, atol=2e-3)
    assert function(cr.zeros(0, 2), **settings).numel() == 0


KEEP_INTEGERS = ("relu", "relu6", "hardtanh", "threshold")


@pytest.mark.parametrize(
    "call", [c for c in GRID if GRID[c][0] not in ("glu", "softmin", *KEEP_INTEGERS)]
)
def test_integers_become_the_default_dtype(call: str) -> None:
    name, settings = GRID[call]
    got = getattr(F, name)(cr.tensor([[1, 2], [3, 4]]), **settings)
    assert got.dtype == cr.float32


@pytest.mark.parametrize(
    "call", [c for c in GRID if "e=-inf" not in c and not c.startswith(("threshold", "rrelu"))]
)
def test_derivatives_to_second_order(call: str) -> None:
    name, settings = GRID[call]
    x = cr.tensor(POINTS[:2], requires_grad=True)
    assert cr.gradcheck(lambda t: getattr(F, name)(t, **settings), (x,), fast_mode=True)
    assert cr.gradgradcheck(lambda t: getattr(F, name)(t, **settings), (x,), fast_mode=True)


# --- prelu ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "weights"),
    [((3, 4), (1,)), ((3, 4), (4,)), ((2, 3, 2), (3,)), ((4,), (1,)), ((), (1,)), ((2, 3), ())],
)
def test_prelu_as_in_pytorch(shape: tuple[int, ...], weights: tuple[int, ...]) -> None:
    x, weight = np.asarray(RNG.standard_normal(shape)), np.asarray(RNG.random(weights))
    compare_with_torch(lambda lib, x, w: lib.nn.functional.prelu(x, w), x, weight)
    x.ravel()[:1] = 0
    compare_with_torch(lambda lib, x, w: lib.nn.functional.prelu(x, w), x, weight, order=1)


def test_errors_of_prelu() -> None:
    with pytest.raises(ValueError, match="parameter numbers = 3 and channel size = 4: give one"):
        F.prelu(cr.ones(2, 4), cr.ones(3))
    with pytest.raises(ValueError, match=r"scalar or 1D tensor, but got: ndim = 2: flatten it"):
        F.prelu(cr.ones(2, 4), cr.ones(2, 2))


# --- random ones ----------------------------------------------------------------------------------


def test_rrelu_draws_slopes_in_training() -> None:
    x = cr.full((1000,), -1.0, requires_grad=True)
    out = F.rrelu(x, 0.2, 0.6, training=True, rng=np.random.default_rng(0))
    slopes = -out.detach().numpy()
    assert slopes.min() >= 0.2
    assert slopes.max() <= 0.6
    assert slopes.std() > 0.1
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), slopes)
    assert F.rrelu(cr.tensor([2.0]), training=True).tolist() == [2.0]
    again = F.rrelu(x, 0.2, 0.6, training=True, rng=np.random.default_rng(0))
    assert again.tolist() == out.tolist()
    with pytest.raises(ValueError, match="less than or equal to the upper bound, but got lower=2"):
        F.rrelu(x, 2, 1)


def test_gumbel_softmax_draws_each_class_as_often_as_it_is_probable() -> None:
    logits = cr.tensor([0.2, 0.3, 0.5]).log().expand(20000, 3)
    hard = F.gumbel_softmax(logits, hard=True, rng=np.random.default_rng(0))
    assert set(np.unique(hard.numpy())) == {0.0, 1.0}
    np.testing.assert_allclose(hard.mean(0).numpy(), [0.2, 0.3, 0.5], atol=0.02)
    soft = F.gumbel_softmax(logits, tau=0.5, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(soft.argmax(-1).numpy(), hard.argmax(-1).numpy())
    assert soft.dtype == cr.float32


def test_gumbel_softmax_has_the_gradient_of_the_softmax() -> None:
    x = cr.tensor(RNG.standard_normal((2, 3)), requires_grad=True)
    grads = []
    for hard in (False, True):
        out = F.gumbel_softmax(x, 0.7, hard, dim=0, rng=np.random.default_rng(1))
        grads.append(cr.autograd_grad((out * cr.arange(6).reshape(2, 3)).sum(), x)[0].numpy())
    np.testing.assert_array_equal(*grads)
    assert np.abs(grads[0]).max() > 0


# --- in place -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["elu", "celu", "softplus", "leaky_relu", "hardshrink"])
def test_numpys_numbers_leave_the_dtype(name: str) -> None:
    assert getattr(F, name)(cr.ones(2), np.float64(0.3)).dtype == cr.float32


INPLACE = ["relu", "relu6", "leaky_relu", "elu", "selu", "celu", "silu", "mish"]
INPLACE += ["hardtanh", "hardsigmoid", "hardswish", "rrelu"]


@pytest.mark.parametrize("name", INPLACE)
def test_inplace_writes_over_the_input(name: str) -> None:
    function = getattr(F, name)
    leaf = cr.tensor(POINTS, requires_grad=True)
    x = leaf * 1
    out = function(x, inplace=True)
    assert out is x
    beside = cr.tensor(POINTS, requires_grad=True)
    expected = function(beside * 1)
    assert out.tolist() == expected.tolist()
    (out * out).sum().backward()
    (expected * expected).sum().backward()
    assert leaf.grad.tolist() == beside.grad.tolist()
    with pytest.raises(RuntimeError, match="leaf"):
        function(leaf, inplace=True)
    with pytest.raises(TypeError, match=f"{name}: inplace=True writes to a Tensor, but got list"):
        function([1.0], inplace=True)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("relu_", ()),
        ("leaky_relu_", (0.3,)),
        ("elu_", (2.0,)),
        ("selu_", ()),
        ("celu_", (2.0,)),
        ("rrelu_", ()),
        ("hardtanh_", (-1, 2)),
        ("threshold_", (0.5, 3.0)),
    ],
)
def test_names_with_an_underscore_write_in_place(name: str, arguments: Any) -> None:
    x = cr.tensor(POINTS)
    out = getattr(F, name)(x, *arguments)
    assert out is x
    assert x.tolist() == getattr(F, name[:-1])(cr.tensor(POINTS), *arguments).tolist()


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: F.gelu(x, approximate="erf"), ValueError, "either none or tanh, but got 'erf'"),
        (lambda x: F.celu(x, 0), ValueError, "alpha cannot be 0 for CELU"),
        (lambda x: F.hardtanh(x, 2, 1), ValueError, "min_val cannot be greater than max_val"),
        (lambda x: F.softshrink(x, -1), ValueError, "greater or equal to 0, but found to be -1"),
        (lambda x: F.glu(x), ValueError, "must be even, but dimension 0 is size 3"),
        (lambda x: F.glu(x[0]), ValueError, "glu does not support 0-dimensional tensors"),
        (lambda x: F.glu(x, 1), IndexError, "Dimension out of range"),
    ],
    ids=["gelu", "celu", "hardtanh", "softshrink", "glu-odd", "glu-0-d", "glu-dim"],
)
def test_errors(call: Callable[..., Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(cr.ones(3))


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, x: lib.nn.functional.relu(x),
        lambda lib, x: lib.nn.functional.relu6(x),
        lambda lib, x: lib.nn.functional.hardtanh(x, -2, 3),
        lambda lib, x: lib.nn.functional.threshold(x, 1, 7),
        lambda lib, x: lib.nn.functional.relu_(x.clone()),
        lambda lib, x: lib.relu(x),
        lambda lib, x: lib.nn.functional.feature_alpha_dropout(x, training=False),
    ],
)
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_activations_without_fractions_keep_integers(call, dtype):
    compare_with_torch(call, np.arange(-9, 9, dtype=dtype), order=0)


def test_bounds_with_fractions_make_floats_of_integers() -> None:
    x = cr.tensor([-3, 0, 3])
    assert F.hardtanh(x, -0.5, 2).tolist() == [-0.5, 0, 2]
    assert F.threshold(x, 1, 0.5).tolist() == [0.5, 0.5, 3]
