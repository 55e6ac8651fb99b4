"""Reductions: values, dimensions, argument names, dtypes."""

import math

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import check_derivatives, compare_with_torch

REFERENCES = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "amax": np.max,
    "amin": np.min,
    "all": np.all,
    "any": np.any,
    "count_nonzero": np.count_nonzero,
    "var": lambda x, **k: np.var(x, ddof=1, **k),
    "std": lambda x, **k: np.std(x, ddof=1, **k),
    "norm": lambda x, axis=None, keepdims=False: np.sqrt(
        np.sum(x * x, axis=axis, keepdims=keepdims)
    ),
    "logsumexp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
}
DIMS = [None, 0, -1, (0, 2), [1], (0, 1, 2)]


def data():
    return np.random.default_rng(0).normal(size=(2, 3, 4))


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("dim", DIMS, ids=repr)
@pytest.mark.parametrize("keep", [False, True])
def test_a_reduction_has_numpys_values(name, dim, keep):
    x = data()
    axis = tuple(dim) if isinstance(dim, list) else dim
    expected = REFERENCES[name](x, axis=axis, keepdims=keep)
    t = cr.tensor(x)
    function, method = getattr(cr, name), getattr(t, name)
    spelled = {"keepdims": keep} if name == "count_nonzero" else {"keepdim": keep}
    results = [
        function(t, dim=dim, **spelled),
        function(t, axis=dim, keepdims=keep),
        method(dim=dim, keepdims=keep),
    ]
    for result in results:
        np.testing.assert_allclose(result.numpy(), expected)
        assert result.shape == np.shape(expected)
        assert result.dtype == np.asarray(expected).dtype


@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "amax", "argmax", "all", "logsumexp", "std"]
)
def test_a_dimension_out_of_range(name):
    message = r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"
    with pytest.raises(IndexError, match=message):
        getattr(cr, name)(cr.ones(2, 3), dim=2)


def test_arguments_that_contradict_each_other():
    x = cr.ones(2, 3)
    with pytest.raises(TypeError, match="dim and axis are two names of one argument"):
        x.sum(0, axis=1)
    with pytest.raises(ValueError, match="appears multiple times in the list of dims"):
        x.sum((0, -2))
    with pytest.raises(TypeError, match="a dimension must be an int, not str"):
        x.sum("rows")


def test_zero_dimensional_tensors_have_the_dimensions_0_and_minus_1():
    x = cr.tensor(3.0)
    for dim in (0, -1, None):
        assert x.sum(dim).item() == 3
        assert x.softmax(dim).item() == 1
        assert x.cumsum(dim).item() == 3
        assert x.cumsum(dim).shape == ()
    with pytest.raises(IndexError, match=r"range of \[-1, 0\], but got 1"):
        x.sum(1)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "int64"])
def test_sums_of_integers_are_int64(dtype):
    x = cr.tensor([1, 1, 1], dtype=dtype)
    for name in ("sum", "prod", "cumsum", "cumprod"):
        assert getattr(x, name)(0).dtype == cr.int64
    assert x.sum().item() == 3


def test_the_dtype_can_be_chosen():
    x = cr.tensor([1, 2])
    assert x.sum(dtype=cr.float32).dtype == cr.float32
    assert x.mean(dtype="float64").item() == 1.5
    assert x.softmax(0, dtype=cr.float64).dtype == cr.float64


def test_the_mean_of_integers_is_an_error():
    with pytest.raises(cr.DTypeError, match=r"could not infer output dtype.*Got: Long"):
        cr.tensor([1, 2]).mean()
    with pytest.raises(cr.DTypeError, match="Got: Bool"):
        cr.tensor([True]).std()


@pytest.mark.parametrize("name", ["sum", "prod", "all", "any", "norm"])
def test_empty_tensors_reduce_to_the_neutral_element(name):
    expected = {"sum": 0, "prod": 1, "all": True, "any": False, "norm": 0}[name]
    assert getattr(cr, name)(cr.zeros(0)).item() == expected
    assert getattr(cr, name)(cr.zeros(2, 0), dim=1).tolist() == [expected] * 2


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2)])
def test_exponentials_of_empty_tensors(shape):
    x = cr.zeros(shape)
    for name in ("softmax", "log_softmax"):
        assert getattr(x, name)(-1).shape == shape
    assert (x.logsumexp(-1) == -math.inf).all()
    assert x.logsumexp(-1).shape == shape[:-1]


def test_variance_of_too_few_elements_warns_as_pytorch_does():
    with pytest.warns(UserWarning, match=r"std\(\): degrees of freedom is <= 0: of 1 ") as caught:
        cr.ones(1).std()
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="less the correction 3, .*correction=0"):
        cr.ones(2, 3).var(1, correction=3)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_variance_of_too_few_elements_is_nan():
    assert math.isnan(cr.tensor([1.0]).var().item())
    assert cr.tensor([1.0]).var(correction=0).item() == 0
    assert math.isnan(cr.zeros(0).var().item())


@pytest.mark.parametrize("shape", [(5,), (300, 50)])
@pytest.mark.parametrize("axis", [0, -1])
def test_the_derivative_of_logsumexp_is_precise_for_large_exponents(shape, axis):
    # In float32 the logarithm of the sum is a multiple of 1/16 here.
    x = np.random.default_rng(0).integers(0, 30, shape) / 8 + 1e6
    x[..., :1] = np.nan if len(shape) > 1 and axis == -1 else x[..., :1]
    x[:1] = 1e6
    wanted = cr.softmax(cr.tensor(x), axis).numpy()
    for dtype, near in (("float32", 3e-6), ("float64", 1e-14)):
        point = cr.tensor(x, dtype=dtype, requires_grad=True)
        out = cr.logsumexp(point, axis)
        (found,) = cr.autograd_grad(out, point, cr.ones_like(out), create_graph=True)
        np.testing.assert_allclose(found.numpy(force=True), wanted, rtol=near)
        t = cr.tensor(np.arange(x.size).reshape(shape) % 3.0, dtype=dtype)
        slope = cr.jvp(lambda v: cr.logsumexp(v, axis), point, t)[1].numpy(force=True)
        np.testing.assert_allclose(slope, (wanted * t.numpy()).sum(axis), rtol=near * 10)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom", "ignore:invalid value")
@pytest.mark.parametrize("correction", [2, 5, 2.5])
def test_variance_is_infinite_where_the_correction_takes_all(correction):
    x = [[1.0, 3.0], [2.0, 2.0]]
    compare_with_torch(lambda lib, x: lib.var(x, dim=1, correction=correction), x, order=0)
    np.testing.assert_array_equal(cr.tensor(x).std(1, correction=correction), [math.inf, math.nan])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["var", "std", "norm", "mean", "logsumexp"])
def test_results_keep_the_dtype(name, dtype):
    assert getattr(cr.tensor([1.0, 2.0], dtype=dtype), name)().dtype == dtype


def test_variance_and_norm_of_complex_numbers_are_real():
    x = np.array([1 + 2j, 3 - 1j, 0.5j])
    assert cr.tensor(x).var().dtype == cr.float64
    assert cr.tensor(x).var().item() == pytest.approx(np.var(x, ddof=1))
    assert cr.tensor(x).norm().item() == pytest.approx(np.linalg.norm(x))


def test_the_derivative_of_a_norm_at_zero_is_zero():
    x = cr.zeros(3, requires_grad=True)
    for value in (x.norm(), (x + 1).std()):
        (gradient,) = cr.autograd_grad(value, [x])
        assert gradient.tolist() == [0, 0, 0]


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_norms_of_huge_and_of_tiny_numbers(scale):
    x = cr.tensor([3.0 * scale, 4.0 * scale], requires_grad=True)
    y = x.norm()
    assert y.item() == pytest.approx(5 * scale, rel=1e-6)
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), [0.6, 0.8], rtol=1e-6)


def test_norms_with_inf_and_nan():
    inf, nan = float("inf"), float("nan")
    assert cr.tensor([1.0, -inf]).norm().item() == inf
    assert math.isnan(cr.tensor([1.0, nan]).norm().item())
    assert math.isnan(cr.tensor([inf, nan]).norm().item())


def test_other_norms():
    x = cr.tensor([[3.0, -4.0], [1.0, 0.0]])
    assert x.norm(1).item() == 8
    assert x.norm(float("inf"), dim=1).tolist() == [4, 1]
    assert x.norm("fro", 0).tolist() == pytest.approx([10**0.5, 4])
    with pytest.raises(ValueError, match="p must be a number, 'fro' or 'nuc', got 'max'"):
        x.norm("max")


@pytest.mark.parametrize("p", [0, 0.5, 1.5, 3, -1, -float("inf")])
def test_norms_of_any_order(p):
    def function(lib, x):
        return lib.norm(x, p, 1), x.norm(dim=0, p=p, keepdim=True)

    x = [[3.0, -4.0, 2.0], [1.0, 0.5, -1.5]]
    check_derivatives(function, x) if p != 0 else None
    compare_with_torch(function, x, order=1)
    if p > 0:
        compare_with_torch(function, np.zeros((2, 2)), order=1)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cumulative(name, dim):
    x = data()
    result = getattr(cr, name)(cr.tensor(x), dim)
    np.testing.assert_allclose(result.numpy(), getattr(np, name)(x, axis=dim))
    assert getattr(cr, name)(cr.tensor(x[0, 0])).shape == (4,)
    with pytest.raises(TypeError, match=r"needs dim \(or axis\): the tensor has 3 dimensions"):
        getattr(cr, name)(cr.tensor(x))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax(dim):
    x = data()
    expected = np.exp(x) / np.exp(x).sum(dim, keepdims=True)
    np.testing.assert_allclose(cr.softmax(cr.tensor(x), dim).numpy(), expected)
    np.testing.assert_allclose(cr.log_softmax(cr.tensor(x), axis=dim).numpy(), np.log(expected))


def test_exponentials_do_not_overflow():
    x = cr.tensor([1000.0, 1000.0])
    assert x.logsumexp(0).item() == pytest.approx(1000.6931)
    assert x.softmax(0).tolist() == [0.5, 0.5]
    assert cr.tensor([-float("inf")] * 2).logsumexp(0).item() == -float("inf")
    assert cr.tensor([1, 2]).softmax(0).dtype == cr.float32


@pytest.mark.parametrize("name", ["sum", "mean", "std", "var", "norm", "prod", "logsumexp", "amax"])
def test_gradients_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    ours, theirs = (m.tensor(data(), requires_grad=True) for m in (cr, torch))
    getattr(ours, name)(dim=1).sum().backward()
    getattr(theirs, name)(dim=1).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy())


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_no_correction_is_the_default_one(name):
    x = np.array([1.0, 2.0, 4.0])
    compare_with_torch(lambda lib, x: getattr(lib, name)(x, dim=None, correction=None), x)
    compare_with_torch(lambda lib, x: getattr(lib, name)(x, dim=0, correction=0.5), x)


@pytest.mark.parametrize("name", ["var", "std"])
def test_variance_of_empty_complex_tensors_is_real(name):
    compare_with_torch(lambda lib, x: getattr(lib, name)(x), np.zeros(0, complex), order=0)


EVERYTHING = ["sum", "mean", "nansum", "nanmean", "count_nonzero", "amax", "amin", "var", "std"]


@pytest.mark.parametrize("name", [*EVERYTHING, "norm", "var_mean", "std_mean", "all", "any"])
def test_no_dim_is_pytorchs_and_no_axis_the_array_apis(name):
    x = np.array([[1.0, 3.0], [2.0, 7.0]])
    order = 0 if name[:3] in ("var", "std") else 1  # PyTorch divides by 0 there
    compare_with_torch(lambda lib, x: getattr(lib, name)(x, dim=()), x, order=order)
    compare_with_torch(lambda lib, x: getattr(lib, name)(x, dim=[]), x, order=order)
    found = getattr(cr, name)(cr.tensor(x), axis=())
    assert (found[0] if isinstance(found, tuple) else found).shape == (2, 2)


@pytest.mark.parametrize("name", ["amax", "amin", "max", "min"])
def test_extrema_of_empty_tensors_name_the_function(name):
    with pytest.raises(ValueError, match=rf"^{name}\(\): Expected reduction dim"):
        getattr(cr.zeros(0), name)()


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_a_count_of_numbers_that_are_not_zero_has_derivative_zero(dim: int | None) -> None:
    x = cr.tensor([[0.0, 2.0], [3.0, 4.0]], requires_grad=True)
    count = x.norm(0, dim)
    assert count.dtype == x.dtype
    count.sum().backward()
    assert x.grad.tolist() == [[0, 0], [0, 0]]


def test_a_norm_in_another_dtype():
    x = np.array([[3, 4], [6, 8]], dtype="float32")
    for arguments in ((2,), (1, 0), (float("inf"), 1)):
        compare_with_torch(
            lambda lib, x, a=arguments: lib.norm(x, *a, dtype=lib.float64), x, order=0
        )


def test_nuclear_norms_are_sums_of_singular_values() -> None:
    x = cr.tensor(np.random.default_rng(1).normal(size=(4, 3, 2)), requires_grad=True)
    assert cr.gradcheck(lambda x: cr.norm(x, "nuc"), x)
    for dim, keepdim in ((None, False), ((0, 2), True), ((2, 1), False)):
        expected = cr.linalg.matrix_norm(x, "nuc", dim or (-2, -1), keepdim)
        assert cr.allclose(x.norm("nuc", dim, keepdim), expected)
    with pytest.raises(ValueError, match="p='nuc' is a norm of matrices"):
        cr.norm(x[0, 0], "nuc")
