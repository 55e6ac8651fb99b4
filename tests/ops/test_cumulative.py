"""Cumulative extrema and sums, differences, integrals."""

import math
import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule.transforms import jvp
from helpers.torch_comparison import check_derivatives, compare_with_torch

RNG = np.random.default_rng(2)
X = RNG.permutation(24).reshape(2, 3, 4) / 7
INF, NAN = math.inf, math.nan

FUNCTIONS = {
    "cummax": lambda lib, x: lib.cummax(x, 1)[0],
    "cummin": lambda lib, x: x.cummin(dim=2)[0],
    "logcumsumexp": lambda lib, x: lib.logcumsumexp(x, 1),
    "logcumsumexp-last": lambda lib, x: x.logcumsumexp(-1),
    "diff": lambda lib, x: lib.diff(x),
    "diff-twice": lambda lib, x: x.diff(2, 1),
    "diff-never": lambda lib, x: x.diff(0),
    "diff-too-often": lambda lib, x: x.diff(n=9, dim=0),
    "diff-ends": lambda lib, x: lib.diff(x, dim=1, prepend=x[:, :1] * 2, append=x[:, :2]),
    "trapezoid": lambda lib, x: lib.trapezoid(x),
    "trapezoid-dx": lambda lib, x: lib.trapz(x, dx=0.5, dim=1),
    "trapezoid-x": lambda lib, x: lib.trapezoid(x, x * x),
    "trapezoid-vector": lambda lib, x: lib.trapezoid(x, x[0, :, 0], dim=1),
    "cumulative_trapezoid": lambda lib, x: lib.cumulative_trapezoid(x, dim=0),
    "cumulative_trapezoid-x": lambda lib, x: lib.cumulative_trapezoid(x, x[0, 1], dim=-1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name):
    check_derivatives(FUNCTIONS[name], X)
    compare_with_torch(FUNCTIONS[name], X)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_the_index_of_equal_extrema_is_the_last(name):
    def function(lib, x):
        return getattr(lib, name)(x, 0)

    compare_with_torch(function, [1.0, 3.0, 3.0, 2.0, 3.0, 1.0, 1.0], order=1)
    compare_with_torch(function, [1.0, NAN, 3.0, NAN, 0.0], order=1)
    compare_with_torch(function, np.array([2, 2, 1, 3]))
    compare_with_torch(function, 2.5, order=1)
    compare_with_torch(function, np.zeros((0, 2)), order=1)


def test_logcumsumexp_of_far_apart_numbers():
    def function(lib, x):
        return lib.logcumsumexp(x, 0)

    compare_with_torch(function, [-1000.0, 1000.0, -1000.0, 999.0], order=1)
    compare_with_torch(function, [NAN, 1.0], order=1)
    compare_with_torch(function, 2.5)
    compare_with_torch(function, np.zeros(0))
    x = np.linspace(-300, 300, 7)[::-1].copy()
    check_derivatives(function, x)


def test_logcumsumexp_at_minus_infinity_has_derivative_zero():
    x = cr.tensor([-INF, -INF, 1.0, -INF, 2.0], dtype=cr.float64, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = cr.logcumsumexp(x, 0)
        (first,) = cr.autograd_grad(out.sum(), x, create_graph=True)
        tangent = jvp(lambda v: cr.logcumsumexp(v, 0), x.detach(), cr.ones_like(x))[1]
    assert out.tolist()[:4] == [-INF, -INF, 1, 1]
    share = 1 / (1 + math.e)
    np.testing.assert_allclose(first.tolist(), [0, 0, 2 + share, 0, 1 - share], rtol=1e-14)
    np.testing.assert_allclose(tangent.tolist(), [0, 0, 1, 1, 1], rtol=1e-14)
    (second,) = cr.autograd_grad(first[4], x)
    curve = share * (1 - share)
    np.testing.assert_allclose(second.tolist(), [0, 0, -curve, 0, curve], rtol=1e-13)


def test_logcumsumexp_beside_infinity():
    compare_with_torch(lambda lib, x: lib.logcumsumexp(x, 0), [1.0, INF, 2.0], order=1)


def test_logcumsumexp_of_many_agrees_with_logsumexp():
    x = cr.tensor(RNG.normal(0, 50, 1000), requires_grad=True)
    g = cr.tensor(RNG.normal(size=1000))
    (got,) = cr.autograd_grad(cr.logcumsumexp(x, 0), x, g)
    below = cr.tensor(np.tri(1000)) == 0
    table = cr.where(below, -INF, x.expand(1000, 1000))
    (wanted,) = cr.autograd_grad(cr.logsumexp(table, 1), x, g)
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-9, atol=1e-12)


def _complex(*shape):
    return RNG.normal(size=shape) + 1j * RNG.uniform(-1, 1, shape)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (0,), (3, 0)])
def test_logcumsumexp_of_complex_numbers(shape):
    compare_with_torch(lambda lib, x: lib.logcumsumexp(x, -1), _complex(*shape))


def test_logcumsumexp_of_complex_numbers_along_any_dimension():
    x = _complex(2, 7, 3)
    compare_with_torch(lambda lib, x: lib.logcumsumexp(x, 1), x)
    check_derivatives(lambda lib, x: lib.logcumsumexp(x, 0), x[:, :3])
    found = cr.logcumsumexp(cr.tensor(x + 9j), 1).numpy()
    np.testing.assert_allclose(found, np.log(np.cumsum(np.exp(x + 9j), 1)), rtol=1e-12)
    assert cr.logcumsumexp(cr.tensor([-1000, 1000, 1000j]), 0).tolist() == [-1000, 1000, 1000]
    nothing = cr.tensor([complex(-INF, 0), 0j], requires_grad=True)
    out = cr.logcumsumexp(nothing, 0)
    assert out.tolist() == [complex(-INF, 0), 0]
    assert cr.autograd_grad(out, nothing, cr.ones_like(out))[0].tolist() == [0, 1]


def test_the_gradient_of_a_long_cumprod_is_fast():
    """20,000 numbers have 4e8 partial derivatives, which would take 3 GB."""
    x = 1 + RNG.normal(size=20_000) / 1000
    x[15_000] = 0
    compare_with_torch(lambda lib, x: lib.cumprod(x, 0), x, order=1)
    ones = cr.ones(20_000, requires_grad=True)
    cr.cumprod(ones, 0).sum().backward()
    assert ones.grad.tolist() == list(range(20_000, 0, -1))


def test_a_cumprod_whose_last_factors_overflow():
    x = np.array([1e-150, 1e-150, 1e150, 1e150, 1e150, 0.5])
    compare_with_torch(lambda lib, x: lib.cumprod(x, 0), x, order=1)
    _, slopes = jvp(lambda x: cr.cumprod(x, 0), cr.tensor(x), cr.tensor(x))
    products = np.cumprod(x)
    np.testing.assert_allclose(slopes.numpy(), products * [1, 2, 3, 4, 5, 6])


def test_differences_of_order_zero_ignore_prepend_and_append():
    compare_with_torch(lambda lib, x, y: lib.diff(x, 0, -1, y, y), [1.0, 2.0], [3.0])


def test_differences_of_bools_and_integers():
    compare_with_torch(lambda lib, x: lib.diff(x), np.array([True, False, False]))
    compare_with_torch(lambda lib, x: lib.diff(x, n=2), np.array([1, 4, 9]))
    compare_with_torch(lambda lib, x: lib.diff(x), np.zeros((2, 0)))
    compare_with_torch(lambda lib, x: lib.trapezoid(x), [1.0])
    assert cr.trapezoid(cr.tensor([1, 2])).item() == 1.5


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: cr.cummax(x), TypeError, "needs dim"),
        (lambda x: cr.logcumsumexp(x[None] * 1j), TypeError, "logcumsumexp.. needs dim"),
        (lambda x: x.sum().diff(), cr.ShapeError, "at least one-dimensional"),
        (lambda x: x.diff(-1), ValueError, "must be non-negative but got -1"),
        (lambda x: cr.trapezoid(x.sum()), cr.ShapeError, "at least one dimension"),
        (lambda x: cr.trapezoid(x, x, dx=1), TypeError, "give one of them"),
    ],
    ids=range(6),
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(cr.zeros(3))
