"""Binary functions, interpolations and complex parts: edge cases, compared with PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import compare_with_torch, random_array, same_as_torch

NAN, INF = math.nan, math.inf


def grads(function: Any, *inputs: Any) -> list[Any]:
    """Return the gradients of the sum of a function of float64 numbers."""
    xs = [cr.tensor(x, dtype=cr.float64, requires_grad=True) for x in inputs]
    return [g.tolist() for g in cr.autograd_grad(function(*xs).sum(), xs, materialize_grads=True)]


def second(function: Any, x: float) -> float:
    point = cr.tensor(x, dtype=cr.float64, requires_grad=True)
    (first,) = cr.autograd_grad(function(point), point, create_graph=True)
    return cr.autograd_grad(first, point)[0].item()


# --- hard places ----------------------------------------------------------------------------------


def test_atan2_and_hypot_have_derivative_0_at_the_origin():
    assert grads(cr.atan2, [0.0, -0.0], [0.0, -0.0]) == [[0, 0], [0, 0]]
    assert grads(cr.hypot, [0.0], [0.0]) == [[0], [0]]
    assert grads(cr.atan2, 0.0, -2.0) == [-0.5, 0]


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_atan2_and_hypot_neither_over_nor_underflow_in_single_precision(size):
    x = cr.tensor([3 * size, 4 * size], requires_grad=True)
    assert cr.hypot(x[0], x[1]).item() == pytest.approx(5 * size, rel=1e-6)
    (g,) = cr.autograd_grad(cr.atan2(x[0], x[1]), x)
    np.testing.assert_allclose(g.numpy() * size, [4 / 25, -3 / 25], rtol=1e-5)
    (g,) = cr.autograd_grad(cr.hypot(x[0], x[1]), x)
    np.testing.assert_allclose(g.numpy(), [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("special", [1.0, 0.0, 1e-30, 1e30, INF, NAN])
def test_hypot_of_many_numbers(special, dtype):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 20000)).astype(dtype)
    x[7] = y[7] = special
    got = cr.hypot(cr.from_numpy(x), cr.from_numpy(y)).numpy()
    assert got.dtype == dtype
    np.testing.assert_allclose(got, np.hypot(x, y), rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("function", [cr.logaddexp, cr.logaddexp2])
def test_logaddexp_at_infinities(function):
    for x in (INF, -INF):
        assert grads(function, x, x) == [0.5, 0.5]
        assert function(cr.tensor(x), cr.tensor(x)).item() == x
    assert grads(function, [INF, -INF, 3], [-INF, INF, -INF]) == [[1, 0, 1], [0, 1, 0]]
    assert grads(function, [5e3, -5e3], [-5e3, 5e3]) == [[1, 0], [0, 1]]


def test_xlogy_at_its_corner():
    assert grads(cr.xlogy, [0.0, 0, 0], [0.0, 1, -1]) == [[0, 0, 0], [0, 0, 0]]
    assert cr.xlogy(cr.tensor([0.0, 0]), cr.tensor([0.0, NAN])).tolist()[0] == 0
    assert math.isnan(cr.xlogy(0.0, cr.tensor(NAN)).item())
    x, y = (cr.tensor(v, dtype=cr.float64, requires_grad=True) for v in (0.0, 4.0))
    (gx,) = cr.autograd_grad(cr.xlogy(x, y), x, create_graph=True)
    assert gx.item() == math.log(4)
    assert cr.autograd_grad(gx, y)[0].item() == 0.25
    assert grads(cr.special.xlog1py, [0.0, 0], [-1.0, 3]) == [[0, math.log1p(3)], [0, 0]]


def test_copysign_at_zeros():
    assert grads(cr.copysign, [0.0, -0.0, 2, -2], [-1.0, 1, -0.0, 3]) == [[0, 0, -1, -1], [0] * 4]
    assert math.copysign(1, cr.copysign(cr.tensor(0.0), -1.0).item()) == -1


def test_fmax_and_fmin_avoid_nan_and_take_the_first_of_equals():
    x, y = [1.0, 1, 2, NAN, NAN], [1.0, 3, 1, 2, NAN]
    assert grads(cr.fmax, x, y) == [[1, 0, 1, 0, 1], [0, 1, 0, 1, 0]]
    assert grads(cr.fmin, x, y) == [[1, 1, 0, 0, 1], [0, 0, 1, 1, 0]]
    compare_with_torch(lambda lib, a, b: lib.fmax(a, b), x, y, order=1)
    compare_with_torch(lambda lib, a, b: lib.fmin(a, b), x, y, order=1)


def test_fmod_has_the_true_quotient_as_derivative():
    # 1 / 0.1 rounds to 10, but only 9 times 0.1, as it is held, fits into 1.
    assert math.trunc(1 / 0.1) == 10
    assert grads(cr.fmod, 1.0, 0.1) == [1, -9]


def test_nan_to_num():
    values = [NAN, INF, -INF, 2.5]
    assert grads(cr.nan_to_num, values) == [[0, 0, 0, 1]]
    for dtype in (np.float16, np.float32, np.float64):
        x = np.array(values, dtype)
        np.testing.assert_array_equal(cr.nan_to_num(cr.tensor(x)).numpy(), np.nan_to_num(x))
    compare_with_torch(lambda lib, x: lib.nan_to_num(x, 1.0, 2.0, 3.0), values, order=1)
    compare_with_torch(lambda lib, x: lib.nan_to_num(x, nan=None, posinf=2.0), values, order=1)


def test_heaviside_passes_the_gradient_of_its_values():
    assert grads(cr.heaviside, [-1.0, 0, 2], [5.0, 6, 7]) == [[0, 0, 0], [0, 1, 0]]


# --- beside PyTorch -------------------------------------------------------------------------------

A, B = [[0.5, -1.5, 2.5]], [[1.25], [-0.75]]


@pytest.mark.parametrize(
    "name", ["atan2", "arctan2", "hypot", "logaddexp", "logaddexp2", "copysign", "fmod", "fmax"]
)
def test_binary_functions_as_in_pytorch(name):
    compare_with_torch(lambda lib, a, b: getattr(lib, name)(a, b), A, B)
    compare_with_torch(
        lambda lib, a, b: getattr(lib, name)(a, b), np.float32(A), np.float64(B), order=0
    )
    compare_with_torch(
        lambda lib, a, b: getattr(lib, name)(a, b), np.array([3, -4]), A[0][:2], order=0
    )


@pytest.mark.parametrize(
    "name", ["atan2", "hypot", "logaddexp", "copysign", "nextafter", "xlogy", "float_power"]
)
def test_integers_become_floats(name):
    result = getattr(cr, name)(cr.tensor([3, 4]), cr.tensor([1, 2]))
    assert result.dtype == (cr.float64 if name == "float_power" else cr.float32)
    half = cr.tensor([3.0, 4.0], dtype=cr.float16)
    result = getattr(cr, name)(half, half)
    assert result.dtype == (cr.float64 if name == "float_power" else cr.float16)


@pytest.mark.parametrize("name", ["fmod", "fmax", "fmin", "heaviside"])
def test_integers_stay(name):
    x, y = np.array([5, -5, 0]), np.array([3, 3, 2])
    result = getattr(cr, name)(cr.tensor(x), cr.tensor(y))
    assert result.dtype == cr.int64
    assert result.tolist() == getattr(np, name)(x, y).tolist()


@pytest.mark.parametrize("weight", [0.25, 0.5, 0.75, 0, 1, 2, -1.5])
def test_lerp_of_a_number(weight):
    start, end = [1e8, -3.0, 0.1], [0.3, 5.0, 0.7]
    compare_with_torch(lambda lib, a, b: lib.lerp(a, b, weight), start, end)


def test_lerp_of_a_tensor_ends_where_it_should():
    start, end, weight = [1e8, 1e8, 2.0], [0.3, 0.3, 4.0], [0.0, 1.0, 0.3]
    assert cr.lerp(*(cr.tensor(v, dtype=cr.float64) for v in (start, end, weight)))[1].item() == 0.3
    compare_with_torch(lambda lib, a, b, w: lib.lerp(a, b, w), start, end, weight)
    assert cr.lerp(cr.zeros(2), cr.ones(2), np.array([0.5, 1])).tolist() == [0.5, 1]


@pytest.mark.parametrize("value", [1, 0.5, -2])
def test_addcmul_and_addcdiv(value):
    for name in ("addcmul", "addcdiv"):
        compare_with_torch(
            lambda lib, *xs, n=name: getattr(lib, n)(*xs, value=value), A, B, [[2.0]]
        )
        compare_with_torch(
            lambda lib, x, y, z, n=name: getattr(x, n)(y, z, value=value), A, A, [[2.0]]
        )


@pytest.mark.parametrize("name", ["frac", "deg2rad", "rad2deg", "exp2", "angle", "sgn", "sinc"])
def test_unary_functions_as_in_pytorch(name):
    compare_with_torch(lambda lib, x: getattr(lib, name)(x), [0.5, -1.5, 2.5, 0.0], order=1)
    compare_with_torch(lambda lib, x: getattr(x, name)(), [0.5, -1.5, 2.5])
    if name not in ("frac", "sgn"):
        assert getattr(cr, name)(cr.tensor([1, 2])).dtype == cr.float32


@pytest.mark.parametrize("name", ["sgn", "angle"])
def test_sgn_and_angle_of_complex_numbers(name):
    compare_with_torch(lambda lib, z: getattr(lib, name)(z), np.array([1 + 2j, -3 + 0.5j, -2j]))
    z = cr.zeros(1, dtype=cr.complex128, requires_grad=True)
    getattr(cr, name)(z).real.sum().backward()
    assert z.grad.tolist() == [0]


def test_ldexp_and_frexp():
    compare_with_torch(lambda lib, x, n: lib.ldexp(x, n), A, np.array([[3, 2, 0]]))
    assert grads(lambda x: cr.ldexp(x, cr.tensor([-2])), [3.0]) == [[0.25]]  # PyTorch gives 0
    compare_with_torch(lambda lib, x, n: lib.ldexp(x, n), A, B)
    x = cr.tensor([1e-300, 3.0], dtype=cr.float64)
    assert cr.ldexp(x, cr.tensor([1990, -2])).tolist() == [math.ldexp(1e-300, 1990), 0.75]
    compare_with_torch(lambda lib, x: lib.frexp(x), [3.0, -0.3, 1e-310, 0.0], order=0)
    compare_with_torch(lambda lib, x: lib.frexp(x).mantissa, [3.0, -0.3])
    mantissa, exponent = cr.frexp(cr.tensor([INF, NAN, 8.0]))
    assert (mantissa[0].item(), exponent.tolist()) == (INF, [0, 0, 4])


def test_float_power_is_double():
    compare_with_torch(lambda lib, x: lib.float_power(x, 2), np.float32([2, 3]), order=0)
    compare_with_torch(lambda lib, x: lib.float_power(x, 2), [2.0, 3.0])
    assert cr.float_power(cr.tensor([1j]), 2).dtype == cr.complex128


# --- complex numbers ------------------------------------------------------------------------------


def test_complex_and_polar():
    compare_with_torch(lambda lib, x, y: lib.complex(x, y), [1.0, 2], [3.0, -1])
    compare_with_torch(lambda lib, x, y: lib.polar(x, y), [1.0, 2], [3.0, -1])
    assert cr.complex(cr.tensor([1.0]), cr.tensor([INF])).tolist() == [complex(1, INF)]
    assert cr.complex(cr.ones(2), 1.0).dtype == cr.complex64
    with pytest.raises(cr.DTypeError, match=r"complex: expected real numbers, got complex64"):
        cr.complex(cr.tensor([1j]), 0.0)
    with pytest.raises(cr.DTypeError, match=r"polar: expected real numbers"):
        cr.polar(cr.tensor([1j]), 0.0)


def test_view_as_real_and_view_as_complex():
    z = np.array([[1 + 2j, 3 - 1j]])
    compare_with_torch(lambda lib, z: lib.view_as_real(z), z)
    compare_with_torch(lambda lib, x: lib.view_as_complex(x), [[1.0, 2], [3, -1]])
    with pytest.raises(cr.DTypeError, match="view_as_real is only supported for complex tensors"):
        cr.view_as_real(cr.ones(2))
    with pytest.raises(cr.DTypeError, match=r"view_as_complex is only supported for .*floating"):
        cr.view_as_complex(cr.tensor([1, 2]))
    for shape in ((), (3,)):
        with pytest.raises(cr.ShapeError, match="must have a last dimension of size 2"):
            cr.view_as_complex(cr.ones(*shape))


VIEWS_WRITTEN = {
    "scaled": lambda lib, z, x: lib.view_as_real(z).mul_(lib.tensor([[2.0, 3.0]])),
    "parts": lambda lib, z, x: (
        lib.view_as_real(z)[..., 1].copy_(x[:, 0]),
        lib.view_as_real(z)[0].fill_(3.0),
    ),
    "rotated": lambda lib, z, x: lib.view_as_complex(x).mul_(1 + 2j),
    "complex-part": lambda lib, z, x: lib.view_as_complex(x)[1:].copy_(z[1:]),
    "chain": lambda lib, z, x: (
        lib.view_as_complex(x).imag.copy_(z.real),
        lib.view_as_real(lib.view_as_complex(x))[..., 0].add_(z.imag),
    ),
}


@pytest.mark.parametrize("name", VIEWS_WRITTEN)
def test_writes_to_pairs_and_complex_numbers_that_share_memory(name):
    def program(lib):
        leaves = [
            lib.leaf([1 + 2j, 3 - 1j, 0.5j], dtype="complex128"),
            lib.leaf([[1.0, 2.0], [3.0, -1.0], [0.5, 0.0]]),
        ]
        z, x = [leaf * 1 for leaf in leaves]
        VIEWS_WRITTEN[name](lib, z, x)
        loss = (z * z * (2 - 1j)).real.sum() + (x**3).sum() + lib.view_as_real(z)[1:].sum()
        return z, x, *lib.grad(loss, leaves)

    same_as_torch(program)


def test_pairs_that_are_apart_in_memory_are_refused():
    with pytest.raises(cr.ShapeError, match="last dimension with stride 1, got the strides"):
        cr.view_as_complex(cr.ones(2, 3).T)
    compiled = cr.compile(lambda x: cr.view_as_complex(x.T))
    with pytest.raises(cr.ShapeError, match=r"last dimension with stride 1: say contiguous\(\)"):
        compiled(cr.ones(2, 3))


def test_isreal():
    assert cr.isreal(cr.tensor([1 + 0j, 1j])).tolist() == [True, False]
    assert cr.isreal(cr.tensor([1.0, NAN])).tolist() == [True, True]


# --- questions, integers, aliases -----------------------------------------------------------------


def test_infinities_and_signs():
    x = [INF, -INF, NAN, 0.0, -0.0]
    for name in ("isposinf", "isneginf", "signbit"):
        compare_with_torch(lambda lib, t, n=name: getattr(lib, n)(t), x, order=0)
        compare_with_torch(lambda lib, t, n=name: getattr(lib, n)(t), np.array([1, -1, 0]), order=0)
    for function in (cr.isposinf, cr.isneginf):
        with pytest.raises(cr.DTypeError, match="does not support complex inputs, got complex64"):
            function(cr.tensor([1j]))


def test_gcd_lcm_and_shifts():
    x, y = np.array([[-4, 0, 12]]), np.array([[6], [3]])
    for name in ("gcd", "lcm"):
        compare_with_torch(lambda lib, a, b, n=name: getattr(lib, n)(a, b), x, y, order=0)
    compare_with_torch(lambda lib, a, b: a << b, x, y, order=0)
    compare_with_torch(lambda lib, a, b: a >> b, x, y, order=0)
    assert (1 << cr.tensor([1, 2])).tolist() == [2, 4]
    assert (256 >> cr.tensor([1, 2])).tolist() == [128, 64]
    t = cr.tensor([1, 2])
    t <<= 3
    t >>= 1
    assert t.tolist() == [4, 8]
    for function in (cr.gcd, cr.lcm, cr.bitwise_left_shift, cr.bitwise_right_shift):
        with pytest.raises(cr.DTypeError, match=r"expected integers, got float32: convert"):
            function(cr.tensor([1.0]), 2)


@pytest.mark.parametrize("name", ["atan2", "hypot", "fmod", "fmax", "xlogy", "logaddexp2"])
def test_complex_numbers_are_refused_with_the_reason(name):
    with pytest.raises(cr.DTypeError, match=rf"{name}: expected real numbers, got complex64 and"):
        getattr(cr, name)(cr.tensor([1j]), cr.tensor([1.0]))
    with pytest.raises(cr.ShapeError, match="must match the size"):
        getattr(cr, name)(cr.ones(2), cr.ones(3))


def test_aliases_are_the_functions_themselves():
    for alias, name in {
        "arctan2": "atan2",
        "arcsin": "asin",
        "arccos": "acos",
        "arctan": "atan",
        "arcsinh": "asinh",
        "arccosh": "acosh",
        "arctanh": "atanh",
        "fix": "trunc",
        "bitwise_not": "bitwise_invert",
        "conj_physical": "conj",
    }.items():
        assert getattr(cr, alias) is getattr(cr, name)
        assert callable(getattr(cr.Tensor, alias))


def test_pythons_round():
    x = cr.tensor([1.26, -0.5], requires_grad=True)
    assert round(x).tolist() == [1.0, 0.0]
    assert cr.allclose(round(x, 1), cr.tensor([1.3, -0.5]))
    assert cr.grad(lambda t: t * round(t, 1))(1.26) == pytest.approx(1.3)
    assert cr.compile(cr.grad(lambda t: t * round(t)))(1.26) == 1.0


def test_divmod():
    x, y = cr.tensor([7.0, -7.0], requires_grad=True), 3.0
    quotient, rest = divmod(x, y)
    assert (quotient.tolist(), rest.tolist()) == ([2, -3], [1, 2])
    assert cr.autograd_grad(rest.sum(), x)[0].tolist() == [1, 1]
    assert [t.tolist() for t in divmod(7, cr.tensor([2, 3]))] == [[3, 2], [1, 1]]
    with pytest.raises(TypeError):
        divmod(x, "three")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("atan2_", (2.0,)),
        ("arctan2_", (2.0,)),
        ("hypot_", (2.0,)),
        ("copysign_", (-1.0,)),
        ("fmod_", (0.3,)),
        ("xlogy_", (2.0,)),
        ("exp2_", ()),
        ("frac_", ()),
        ("deg2rad_", ()),
        ("nan_to_num_", ()),
        ("clamp_min_", (0.6,)),
        ("clamp_max_", (0.6,)),
        ("erf_", ()),
        ("lgamma_", ()),
        ("mvlgamma_", (1,)),
        ("logit_", ()),
        ("sinc_", ()),
        ("erfinv_", ()),
        ("arcsin_", ()),
        ("sgn_", ()),
        ("gt_", (0.6,)),
    ],
)
def test_in_place_variants_as_in_pytorch(name, arguments):
    pytest.importorskip("torch")

    def function(lib: Any, x: Any) -> Any:
        y = x * 1
        assert getattr(y, name)(*[lib.tensor(a) if name in _TENSORS else a for a in arguments]) is y
        return y

    compare_with_torch(function, np.array([0.4, 0.8]), order=1)


def test_in_place_variants_compared_with_the_functions():
    for method, arguments, function in (
        ("digamma_", (), cr.digamma),
        ("polygamma_", (2,), lambda x: cr.polygamma(2, x)),
        ("asinh_", (), cr.asinh),
        ("logical_and_", (cr.tensor([1, 0]),), lambda x: cr.tensor([1.0, 0])),
    ):
        x = cr.tensor([0.4, 0.8], requires_grad=True)
        y = x * 1
        assert getattr(y, method)(*arguments) is y
        assert y.tolist() == function(x).tolist()
        assert y.dtype == cr.float32


_TENSORS = ("atan2_", "arctan2_", "hypot_", "copysign_", "xlogy_")


def test_logaddexp_of_complex_numbers():
    x, y = 9 * random_array((4, 1), "complex128"), 9 * random_array((3,), "complex128", 1)
    compare_with_torch(lambda lib, x, y: lib.logaddexp(x, y), x, y)
    mixed = cr.logaddexp(cr.tensor([1j]), cr.tensor([800.0]))
    assert mixed.tolist() == [800]
