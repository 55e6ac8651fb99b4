"""Elementwise functions: values, dtypes, forms of arguments."""

import math

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import compare_with_torch

UNARY = {
    "sqrt": (np.sqrt, 0.1, 3.0),
    "exp": (np.exp, -2.0, 2.0),
    "expm1": (np.expm1, -2.0, 2.0),
    "log": (np.log, 0.1, 3.0),
    "log1p": (np.log1p, -0.5, 3.0),
    "log2": (np.log2, 0.1, 3.0),
    "log10": (np.log10, 0.1, 3.0),
    "reciprocal": (np.reciprocal, 0.5, 2.0),
    "sin": (np.sin, -3.0, 3.0),
    "cos": (np.cos, -3.0, 3.0),
    "tan": (np.tan, -1.0, 1.0),
    "asin": (np.arcsin, -0.9, 0.9),
    "acos": (np.arccos, -0.9, 0.9),
    "atan": (np.arctan, -3.0, 3.0),
    "sinh": (np.sinh, -2.0, 2.0),
    "cosh": (np.cosh, -2.0, 2.0),
    "tanh": (np.tanh, -2.0, 2.0),
    "asinh": (np.arcsinh, -2.0, 2.0),
    "acosh": (np.arccosh, 1.1, 3.0),
    "atanh": (np.arctanh, -0.9, 0.9),
    "square": (np.square, -2.0, 2.0),
    "negative": (np.negative, -2.0, 2.0),
    "abs": (np.abs, -2.0, 2.0),
    "sign": (np.sign, -2.0, 2.0),
    "floor": (np.floor, -2.0, 2.0),
    "ceil": (np.ceil, -2.0, 2.0),
    "trunc": (np.trunc, -2.0, 2.0),
    "round": (np.round, -2.0, 2.0),
    "isnan": (np.isnan, -2.0, 2.0),
    "isinf": (np.isinf, -2.0, 2.0),
    "isfinite": (np.isfinite, -2.0, 2.0),
    "logical_not": (np.logical_not, -2.0, 2.0),
}

BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "eq": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_a_unary_function_has_numpys_values_and_the_operands_dtype(name, dtype, shape):
    reference, low, high = UNARY[name]
    x = np.random.default_rng(0).uniform(low, high, shape).astype(dtype)
    for result in (getattr(cr, name)(cr.tensor(x)), getattr(cr.tensor(x), name)()):
        np.testing.assert_allclose(result.numpy(), reference(x), rtol=1e-6)
        assert result.dtype == reference(x).dtype
        assert result.shape == shape


FLOATING = [
    "sqrt",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "reciprocal",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "sigmoid",
    "rsqrt",
]


@pytest.mark.parametrize("name", FLOATING)
def test_integers_are_taken_as_numbers_of_the_default_dtype(name):
    result = getattr(cr.tensor([1, 1]), name)() if name != "atanh" else cr.atanh(cr.tensor([0, 0]))
    assert result.dtype == cr.float32


@pytest.mark.parametrize("name", ["floor", "abs", "negative", "square", "sign", "round", "relu"])
def test_integers_stay_integers_where_the_result_is_one(name):
    assert getattr(cr, name)(cr.tensor([-3, 4])).dtype == cr.int64


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,))])
def test_a_binary_function_broadcasts_like_numpys(name, shapes):
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(0.5, 3, shape) for shape in shapes)
    expected = BINARY[name](x, y)
    a, b = cr.tensor(x), cr.tensor(y)
    for result in (getattr(cr, name)(a, b), getattr(cr, name)(a, y), getattr(cr, name)(x, b)):
        np.testing.assert_allclose(result.numpy(), expected)
        assert result.dtype == expected.dtype


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sub", "subtract"),
        ("mul", "multiply"),
        ("div", "divide"),
        ("true_divide", "divide"),
        ("neg", "negative"),
        ("ne", "not_equal"),
        ("lt", "less"),
        ("le", "less_equal"),
        ("gt", "greater"),
        ("ge", "greater_equal"),
        ("absolute", "abs"),
        ("clip", "clamp"),
        ("concat", "cat"),
        ("moveaxis", "movedim"),
    ],
)
def test_two_names_are_one_function(one, other):
    assert getattr(cr, one) is getattr(cr, other)


def test_alpha_scales_the_second_operand():
    x, y = cr.tensor([1.0, 2.0]), cr.tensor([10.0, 20.0])
    assert cr.add(x, y, alpha=2).tolist() == [21, 42]
    assert x.sub(y, alpha=0.5).tolist() == [-4, -8]


@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "divide", "pow", "less", "maximum"]
)
def test_a_foreign_operand_is_a_type_error(name):
    with pytest.raises(TypeError, match="expected tensors, arrays or numbers, got Tensor and str"):
        getattr(cr, name)(cr.ones(2), "two")


def test_shapes_that_do_not_broadcast():
    with pytest.raises(
        cr.ShapeError,
        match=r"The size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton "
        r"dimension 0",
    ):
        cr.ones(3) + cr.ones(4)


# --- division -------------------------------------------------------------------------------------


def test_integers_divide_into_the_default_dtype():
    quotient = cr.tensor([1, 2]) / cr.tensor([4, 4])
    assert quotient.dtype == cr.float32
    assert quotient.tolist() == [0.25, 0.5]
    for result in (cr.tensor([1, 2]) / 4, 4 / cr.tensor([1, 2]), cr.tensor([1, 2]) / 4.0):
        assert result.dtype == cr.float32


def test_rounding_modes():
    x, y = cr.tensor([7.0, -7.0]), 2
    assert cr.div(x, y, rounding_mode="floor").tolist() == [3, -4]
    assert cr.div(x, y, rounding_mode="trunc").tolist() == [3, -3]
    truncated = cr.div(cr.tensor([7, -7]), 2, rounding_mode="trunc")
    assert (truncated.dtype, truncated.tolist()) == (cr.int64, [3, -3])
    with pytest.raises(ValueError, match="expected rounding_mode to be one of"):
        cr.div(x, y, rounding_mode="up")


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
def test_quotients_of_integers_are_truncated_exactly(dtype: str) -> None:
    limits = np.iinfo(dtype)
    numbers = sorted({limits.min, limits.min // 2 - 1, *range(-3, 4), limits.max - 1, limits.max})
    numbers = [n for n in numbers if limits.min <= n]
    pairs = [(a, b) for a in numbers for b in numbers if b and (a, b) != (limits.min, -1)]
    x, y = (cr.tensor([p[i] for p in pairs], dtype=dtype) for i in (0, 1))
    wanted = [(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) for a, b in pairs]
    result = cr.div(x, y, rounding_mode="trunc")
    assert (result.dtype, result.tolist()) == (np.dtype(dtype), wanted)
    assert cr.compile(lambda x, y: x.div(y, rounding_mode="trunc"))(x, y).tolist() == wanted


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_gradient_of_a_truncated_quotient_is_zero_even_by_zero() -> None:
    x, y = cr.tensor([1.0, 0.0, np.inf], requires_grad=True), cr.tensor([0.0, 0.0, 1.0])
    y.requires_grad_()
    for mode in ("trunc", "floor"):
        grads = cr.autograd_grad(cr.div(x, y, rounding_mode=mode).sum(), [x, y])
        assert [g.tolist() for g in grads] == [[0, 0, 0], [0, 0, 0]]


# --- powers ---------------------------------------------------------------------------------------


def test_the_square_is_named_and_valued_like_a_power():
    x = cr.tensor([1.0, -3.0], requires_grad=True)
    for result in (x**2, x**2.0, x.pow(2), cr.pow(x, 2)):
        assert result.tolist() == [1, 9]
        assert result.grad_fn.name == "PowBackward0"


def test_the_dtype_of_powers():
    assert (cr.tensor([2, 3]) ** 2).dtype == cr.int64
    assert (cr.tensor([2, 3]) ** 2.0).dtype == cr.float32
    assert (cr.tensor([2, 3]) ** 0.5).dtype == cr.float32
    assert (2 ** cr.tensor([2, 3])).tolist() == [4, 8]
    assert (2 ** cr.tensor([2.0, 3.0])).dtype == cr.float32
    with pytest.raises(ValueError, match="negative integer powers"):
        cr.tensor([2]) ** -1


# --- clamp, where, masked_fill --------------------------------------------------------------------


def test_a_bound_that_is_nan_clamps_to_nan():
    nan = float("nan")
    compare_with_torch(
        lambda lib, x, low, high: lib.clamp(x, low, high),
        [1.0, 2, 3],
        [nan, 0, 4],
        [5.0, nan, 5],
        order=0,
    )
    compare_with_torch(lambda lib, x: lib.clamp(x, nan, 1.0), [1.0, 2, nan], order=0)


def test_clamp_with_numbers():
    x = cr.tensor([-1.0, 0.5, 3.0])
    assert x.clamp(0, 1).tolist() == [0, 0.5, 1]
    assert x.clamp(min=0).tolist() == [0, 0.5, 3]
    assert x.clamp(max=1).tolist() == [-1, 0.5, 1]
    assert x.clamp(2, 1).tolist() == [1, 1, 1]
    assert x.clamp(min=0).dtype == cr.float32
    assert cr.tensor([1, 5]).clamp(max=2.5).tolist() == [1, 2.5]
    assert cr.tensor([1, 5]).clamp(max=2).dtype == cr.int64
    assert cr.tensor([True, False]).clamp(-1, 1).tolist() == [1, 0]
    assert cr.tensor([True, False]).clamp(max=False).tolist() == [False, False]


def test_numpys_numbers_are_bounds_as_pythons_are():
    compiled = cr.compile(lambda x: x.clamp(np.float64(0.5)), backend="numpy")
    for function in (compiled, compiled.function):
        assert function(cr.tensor([0.0, 1.0])).dtype == cr.float32


def test_clamp_with_tensors():
    x = cr.tensor([-1.0, 0.5, 3.0, float("nan")], requires_grad=True)
    low = cr.tensor([0.0, 0.5, 0.0, 0.0], requires_grad=True)
    result = cr.clamp(x, min=low, max=cr.tensor(2.0))
    np.testing.assert_array_equal(result.detach().numpy(), [0, 0.5, 2, np.nan])
    gx, gl = cr.autograd_grad(result[:3].sum(), [x, low])
    assert gx.tolist() == [0, 1, 0, 0]
    assert gl.tolist() == [1, 0, 0, 0]


def test_clamp_needs_a_bound():
    with pytest.raises(ValueError, match="At least one of 'min' or 'max' must not be None"):
        cr.ones(2).clamp()


def test_where_takes_numbers_and_promotes():
    x = cr.tensor([-1.0, 2.0], dtype=cr.float64)
    result = cr.where(x > 0, x, 0.1)
    assert result.dtype == cr.float64
    assert result.tolist() == [0.1, 2.0]
    assert cr.where(x > 0, cr.tensor(1), cr.tensor(2.5)).tolist() == [2.5, 1.0]
    assert x.where(x > 0, 0).tolist() == [0, 2]
    assert cr.where(cr.tensor([0, 3]), 1, 2).tolist() == [2, 1]


def test_where_passes_no_gradient_to_what_was_not_selected():
    x = cr.tensor([0.0, 1.0], requires_grad=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        cr.where(x > 0, x * 2, cr.tensor(float("nan"))).sum().backward()
    assert x.grad.tolist() == [0, 2]


def test_masked_fill():
    x = cr.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    mask = cr.tensor([True, False])
    result = x.masked_fill(mask, -1)
    assert result.tolist() == [[-1, 2], [-1, 4]]
    assert result.dtype == cr.float32
    result.sum().backward()
    assert x.grad.tolist() == [[0, 1], [0, 1]]
    with pytest.raises(TypeError, match="only supports boolean masks"):
        x.masked_fill(cr.tensor([1, 0]), 0)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("value", [1j, np.complex64(1j), cr.tensor(1j)], ids=["number", "np", "cr"])
def test_masked_fill_drops_no_imaginary_part(dtype, value):
    with pytest.raises(cr.DTypeError, match=r"cannot be converted to type .* without overflow"):
        cr.masked_fill(cr.ones(2, dtype=dtype), cr.tensor([True, False]), value)


def test_rounding_to_decimals():
    assert cr.round(cr.tensor(3.14159, dtype=cr.float64), decimals=2).item() == 3.14
    assert cr.tensor(1234.0).round(decimals=-2).item() == 1200


def test_sigmoid_and_relu_keep_their_values_at_the_ends():
    x = cr.tensor([-800.0, 0.0, 800.0], requires_grad=True)
    y = x.sigmoid()
    assert y.tolist() == [0, 0.5, 1]
    y.sum().backward()
    assert x.grad.tolist() == [0, 0.25, 0]
    assert x.relu().tolist() == [0, 0, 800]


# --- closeness and equality -----------------------------------------------------------------------


def test_isclose_and_allclose():
    x = cr.tensor([1.0, float("nan"), float("inf")])
    assert cr.isclose(x, x).tolist() == [True, False, True]
    assert x.isclose(x, equal_nan=True).tolist() == [True, True, True]
    assert not cr.allclose(x, x)
    assert x.allclose(x, equal_nan=True)
    assert cr.tensor(0.1, dtype=cr.float64).isclose(0.1, rtol=0, atol=0).item()


@pytest.mark.parametrize("equal", [cr.equal, cr.Tensor.equal])
def test_equal_compares_whole_tensors(equal):
    x = cr.tensor([1.0, 2.0])
    assert equal(x, cr.tensor([1.0, 2.0])) is True
    assert equal(x, np.array([1, 2])) is True
    assert equal(x, cr.tensor([1.0, 3.0])) is False
    assert equal(x, cr.tensor([[1.0, 2.0]])) is False
    assert equal(cr.ones(0), cr.ones(0)) is True
    with pytest.raises(TypeError, match=r"'other' must be Tensor, not int.* each element write eq"):
        equal(x, 1)


# --- the same as PyTorch --------------------------------------------------------------------------


DTYPES = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]
UNARY_CASES = [
    (name, dtype)
    for name in [*FLOATING, "abs", "relu", "square", "neg"]
    for dtype in ["float32", "int64", "bool"]
    if dtype != "bool" or name in FLOATING  # PyTorch has no abs, relu and neg of bools
]
PROMOTION_CASES = [
    (name, left, right)
    for name in ["mul", "div", "maximum", "lt", "eq"]
    for left in DTYPES
    for right in DTYPES
    if "complex64" not in (left, right) or name not in ("maximum", "lt")
]


@pytest.mark.parametrize(("name", "dtype"), UNARY_CASES)
def test_dtypes_are_pytorchs(name, dtype):
    torch = pytest.importorskip("torch")
    x = np.array([1, 1], dtype) if name != "atanh" else np.array([0, 0], dtype)
    theirs = getattr(torch, name)(torch.tensor(x))
    ours = getattr(cr, name)(cr.tensor(x))
    assert ours.dtype == theirs.numpy().dtype
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


@pytest.mark.parametrize(("name", "left", "right"), PROMOTION_CASES)
def test_promotion_is_pytorchs(name, left, right):
    torch = pytest.importorskip("torch")
    x, y = np.array([1, 1], left), np.array([1, 1], right)
    theirs = getattr(torch, name)(torch.tensor(x), torch.tensor(y)).numpy()
    ours = getattr(cr, name)(cr.tensor(x), cr.tensor(y))
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours.numpy(), theirs)


def test_complex_expm1_at_infinities_is_that_of_exp():
    values = np.array([complex(np.inf, 0), complex(-np.inf, np.nan), complex(-np.inf, 1), 1e-20j])
    with np.errstate(all="ignore"):
        out = cr.expm1(cr.tensor(values)).numpy()
        assert np.array_equal(out[:3], [complex(np.inf, 0), -1, -1])
    assert out[3].imag == 1e-20


def test_the_imaginary_part_of_real_numbers_is_zero():
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    assert x.imag.tolist() == [0, 0]
    assert not x.imag.requires_grad


@pytest.mark.parametrize("name", ["sign", "sgn", "square"])
def test_functions_of_bools(name):
    compare_with_torch(lambda lib, x: getattr(lib, name)(x), np.array([True, False]))


@pytest.mark.parametrize("x", [math.inf, -math.inf, 1e300, 1.0, -1.0])
def test_the_derivative_of_asinh_of_huge_numbers(x):
    compare_with_torch(lambda lib, x: lib.asinh(x), x, order=2 if abs(x) == 1 else 0)
    x = cr.tensor(x, dtype=cr.float64, requires_grad=True)
    cr.asinh(x).backward()
    assert x.grad.item() == pytest.approx(1 / math.hypot(1, x.item()))


@pytest.mark.parametrize(
    "z", [1e-10 + 1e-9j, -1e-9 + 1e-5j, 1e-300j, 0.3 - 0.2j, 1e200 + 1j, -2 + 0j]
)
def test_complex_log1p_keeps_the_digits_of_small_numbers(z):
    # log((1 + z) / (1 - z)) / 2 is atanh(z), which NumPy has to the last digits
    found = cr.log1p(cr.tensor(z, dtype=cr.complex128)).item()
    wanted = np.log1p(z) if abs(z) > 0.5 else 2 * np.arctanh(z / (2 + z))
    assert found.real == pytest.approx(wanted.real, rel=1e-14, abs=0)
    assert found.imag == pytest.approx(wanted.imag, rel=1e-14, abs=0)
