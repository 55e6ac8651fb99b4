"""SEMANTICS 63, 64 and 75: the values of derivatives at kinks, ties, zeros and infinities."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import leaf
from helpers.torch_comparison import same_as_torch

INF, NAN = math.inf, math.nan


def slope(function, *values, dtype=cr.float64):
    """Return the gradients of ``function(*values).sum()`` as lists: one, or a list of several."""
    leaves = [leaf(value, dtype) for value in values]
    grads = cr.autograd_grad(function(*leaves).sum(), leaves)
    lists = [grad.tolist() for grad in grads]
    return lists[0] if len(lists) == 1 else lists


def curvature(function, value):
    """Return the gradient of the gradient's sum."""
    x = leaf(value, cr.float64)
    (g,) = cr.autograd_grad(function(x).sum(), x, create_graph=True)
    return cr.autograd_grad(g.sum(), x, materialize_grads=True)[0].tolist()


dtypes = pytest.mark.parametrize("dtype", [cr.float16, cr.float32, cr.float64], ids=str)

# --- 63: kinks ------------------------------------------------------------------------------------


@dtypes
@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("name", ["relu", "abs", "sign", "norm"])
def test_s63_the_slope_at_zero_is_zero(name, zero, dtype):
    assert slope(lambda x: getattr(x, name)(), [zero], dtype=dtype) == [0]
    assert slope(lambda x: getattr(x, name)(), zero, dtype=dtype) == 0


@pytest.mark.parametrize("name", ["relu", "abs", "norm"])
def test_s63_beside_zero_it_is_not(name):
    tiny = 1e-300
    assert slope(lambda x: getattr(x, name)(), [tiny]) == [1]
    assert slope(lambda x: getattr(x, name)(), [-tiny]) == [0 if name == "relu" else -1]


def test_s63_relu():
    assert slope(cr.relu, [-INF, -2.0, -0.0, 0.0, 3.0, INF]) == [0, 0, 0, 0, 1, 1]


def test_s63_abs_and_sign():
    values = [-INF, -2.0, -0.0, 0.0, 3.0, INF]
    assert slope(cr.abs, values) == [-1, -1, 0, 0, 1, 1]
    assert slope(cr.sign, values) == [0] * 6


def test_s63_abs_of_a_complex_zero():
    z = leaf([0j, 3 + 4j], cr.complex128)
    z.abs().sum().backward()
    np.testing.assert_allclose(z.grad.detach().numpy(), [0, 0.6 + 0.8j])


@pytest.mark.parametrize("kind", [{}, {"p": 1}, {"p": 2}, {"p": INF}, {"p": "fro"}])
def test_s63_norms_at_zero(kind):
    assert slope(lambda x: x.norm(**kind), [0.0, 0.0, 0.0]) == [0, 0, 0]


def test_s63_the_norm_of_a_row_of_zeros():
    rows = [[0.0, 0.0], [3.0, 4.0]]
    np.testing.assert_allclose(slope(lambda x: x.norm(dim=1), rows), [[0, 0], [0.6, 0.8]])


@dtypes
def test_s63_sqrt_at_zero(dtype):
    assert slope(cr.sqrt, [0.0, 4.0], dtype=dtype) == [INF, 0.25]
    assert slope(cr.sqrt, 0.0, dtype=dtype) == INF


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"min": -1, "max": 1}, [0, 1, 1, 1, 0]),
        ({"min": -1}, [0, 1, 1, 1, 1]),
        ({"max": 1}, [1, 1, 1, 1, 0]),
        ({"min": 0, "max": 0}, [0, 0, 1, 0, 0]),
        ({"min": 1, "max": -1}, [0, 0, 0, 0, 0]),
    ],
)
def test_s63_clamp_passes_the_gradient_at_the_bound(bounds, expected):
    values = [-2.0, -1.0, 0.0, 1.0, 2.0]
    assert slope(lambda x: x.clamp(**bounds), values) == expected
    bounds = {name: cr.tensor(float(bound), dtype=cr.float64) for name, bound in bounds.items()}
    if len(bounds) < 2 or bounds["min"].item() <= bounds["max"].item():
        assert slope(lambda x: x.clamp(**bounds), values) == expected


@pytest.mark.parametrize("function", [cr.maximum, cr.minimum])
def test_s63_ties_of_maximum_and_minimum_are_halved(function):
    x, y = slope(function, [1.0, 2.0, 0.0, INF], [1.0, 2.0, -0.0, INF])
    assert x == y == [0.5] * 4
    assert slope(lambda x: function(x, x), [3.0]) == [1]


def test_s63_beside_a_tie_one_takes_all():
    assert slope(cr.maximum, [1.0, 5.0], [2.0, 4.0]) == [[0, 1], [1, 0]]
    assert slope(cr.minimum, [1.0, 5.0], [2.0, 4.0]) == [[1, 0], [0, 1]]


def test_s63_ties_with_a_constant():
    assert slope(lambda x: cr.maximum(x, 0.0), [-1.0, 0.0, 1.0]) == [0, 0.5, 1]


@pytest.mark.parametrize("name", ["max", "min"])
def test_s63_max_spreads_evenly_over_ties(name):
    function = lambda x: getattr(x, name)()  # noqa: E731
    ends = [5.0, 1.0] if name == "max" else [-5.0, 1.0]
    top, other = ends
    assert slope(function, [top, other, top, top, top]) == [0.25, 0, 0.25, 0.25, 0.25]
    assert slope(function, [[top, other], [other, top]]) == [[0.5, 0], [0, 0.5]]
    assert slope(function, top) == 1
    assert slope(function, [INF, INF]) == [0.5, 0.5]


def test_s63_amax_and_amin_spread_along_their_dimension():
    rows = [[1.0, 3.0, 3.0], [2.0, 2.0, 1.0]]
    assert slope(lambda x: x.amax(1), rows) == [[0, 0.5, 0.5], [0.5, 0.5, 0]]
    assert slope(lambda x: x.amin(1), rows) == [[1, 0, 0], [0, 0, 1]]
    assert slope(lambda x: x.amin(1), [[2.0, 2.0]]) == [[0.5, 0.5]]


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_s63_max_over_a_dimension_goes_to_the_index_that_it_returns(name, dim):
    x = leaf([[1.0, 3.0, 3.0], [1.0, 3.0, 1.0], [1.0, 1.0, 3.0]])
    values, indices = getattr(x, name)(dim)
    values.sum().backward()
    picked = np.zeros((3, 3))
    np.put_along_axis(picked, np.expand_dims(indices.numpy(), dim), 1, axis=dim)
    assert x.grad.tolist() == picked.tolist()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_s63_as_in_torch():
    values = [-INF, -2.0, -1.0, -0.0, 0.0, 1.0, 2.0, INF]
    functions = [
        lambda m, x: m.relu(x),
        lambda m, x: m.abs(x),
        lambda m, x: m.sign(x),
        lambda m, x: m.sqrt(x),
        lambda m, x: m.clamp(x, -1, 1),
        lambda m, x: m.clamp(x, min=0),
        lambda m, x: m.clamp(x, max=1),
        lambda m, x: m.maximum(x, m.tensor([0.0] * 8, "float64")),
        lambda m, x: m.minimum(x, m.tensor([1.0] * 8, "float64")),
        lambda m, x: x.max(),
        lambda m, x: x.min(),
        lambda m, x: x[1:-1].norm(),
        lambda m, x: x[3:5].norm(),
        lambda m, x: m.reciprocal(x),
        lambda m, x: m.log(x),
        lambda m, x: m.log1p(x),
        lambda m, x: m.rsqrt(x),
        lambda m, x: m.tanh(x),
        lambda m, x: m.sigmoid(x),
        lambda m, x: m.atan(x),
        lambda m, x: m.exp(x),
        lambda m, x: x / x,
        lambda m, x: x.floor() + x.ceil() + x.trunc() + x.round(),
    ]

    def program(m):
        results = []
        for function in functions:
            x = m.leaf(values)
            results.append(m.grad(function(m, x).sum(), x))
        return results

    same_as_torch(program, rtol=1e-9)


# --- 63: products, powers and xlogy ---------------------------------------------------------------

ROWS = [[2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 0.0, 4.0], [0.0, 0.0, 0.0], [-0.0, 5.0, 1.0]]


@pytest.mark.parametrize(
    ("row", "first"),
    [
        ([2.0, 3.0, 4.0], [12, 8, 6]),
        ([2.0, 0.0, 4.0], [0, 8, 0]),
        ([0.0, 0.0, 4.0], [0, 0, 0]),
        ([7.0], [1]),
        ([0.0], [1]),
    ],
)
def test_s63_prod_with_zeros_is_exact(row, first):
    assert slope(cr.prod, row) == first
    assert slope(lambda x: x.prod(0), row) == first
    assert slope(lambda x: x.prod(1), [row]) == [first]


def test_s63_prod_of_a_scalar():
    assert slope(cr.prod, 0.0) == 1


@pytest.mark.parametrize("row", ROWS)
def test_s63_prod_and_cumprod_as_in_torch_to_second_order(row):
    def program(m):
        results = []
        for function in (lambda x: x.prod(), lambda x: x.cumprod(0)):
            x = m.leaf(row)
            (g,) = m.grad(function(x).sum(), x, create_graph=True)
            results += [g, m.grad((g * g).sum(), x)]
        return results

    same_as_torch(program)


def test_s63_prod_at_zeros_to_second_order():
    assert curvature(cr.prod, [2.0, 0.0, 4.0]) == [4, 6, 2]
    assert curvature(cr.prod, [0.0, 0.0, 4.0]) == [4, 4, 0]


def test_s63_x_to_the_power_zero_is_the_constant_one():
    values = [-INF, -2.0, -0.0, 0.0, 3.0, INF]
    for zero in (0, 0.0, cr.tensor(0.0, dtype=cr.float64)):
        assert slope(lambda x, zero=zero: x**zero, values) == [0] * 6


@pytest.mark.parametrize(
    ("power", "first", "second"),
    [(1, 1, 0), (2, 0, 2), (3, 0, 0), (0.5, INF, -INF), (1.5, 0, INF)],
)
def test_s63_powers_of_zero(power, first, second):
    assert slope(lambda x: x**power, 0.0) == first
    assert curvature(lambda x: x**power, 0.0) == second


def test_s63_zero_to_a_power():
    exponents = [0.5, 1.0, 2.0, 100.0]
    assert slope(lambda y: 0.0**y, exponents) == [0] * 4
    assert slope(lambda y: 0**y, exponents) == [0] * 4
    zeros = cr.zeros(4, dtype=cr.float64)
    assert slope(lambda y: zeros**y, exponents) == [0] * 4


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_s63_powers_as_in_torch():
    def program(m):
        x = m.leaf([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, -2.0, -2.0, -2.0])
        y = m.leaf([0.0, 1.0, 2.0, 0.5, -1.0, 0.0, 0.0, 0.0, 2.0, 3.0])
        return m.grad((x**y).sum(), [x, y])

    same_as_torch(program)


# --- 64: where ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [INF, -INF, NAN])
def test_s64_an_infinite_cotangent_gives_zero_in_the_branch_not_taken(bad):
    x, y = leaf([1.0, 1.0]), leaf([2.0, 2.0])
    chosen = cr.where(cr.tensor([True, False]), x, y)
    chosen.backward(cr.tensor([bad, bad]))
    assert x.grad[1].item() == 0
    assert y.grad[0].item() == 0
    np.testing.assert_array_equal(x.grad[0].item(), bad)


def test_s64_nan_values_in_the_branch_not_taken_do_no_harm():
    x = leaf([NAN, 2.0, INF])
    y = cr.where(cr.tensor([False, True, False]), x, 0.0)
    assert y.tolist() == [0, 2, 0]
    y.sum().backward()
    assert x.grad.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "pick",
    [
        lambda x, c: cr.where(c, x, 0.0),
        lambda x, c: cr.where(~c, 0.0, x),
        lambda x, c: x.masked_fill(~c, 0.0),
        lambda x, c: x.where(c, 0.0),
        lambda x, c: x[c],
    ],
    ids=["where", "where not", "masked_fill", "method", "index"],
)
def test_s64_every_way_to_choose(pick):
    x = leaf([NAN, 2.0])
    pick(x, cr.tensor([False, True])).sum().backward()
    assert x.grad.tolist() == [0, 1]


def test_s64_broadcast_branches():
    x = leaf(3.0)
    condition = cr.tensor([True, False, True])
    cr.where(condition, x, cr.tensor([0.0, NAN, 0.0])).backward(cr.tensor([1.0, INF, 1.0]))
    assert x.grad.item() == 2


def test_s64_under_create_graph_too():
    x = leaf([1.0, 4.0], cr.float64)
    y = cr.where(cr.tensor([False, True]), x * x, 0.0)
    (g,) = cr.autograd_grad(y, x, cr.tensor([INF, 1.0]), create_graph=True)
    assert g[1].item() == 8


def trap(x):
    return cr.where(x > 0, cr.sqrt(x), 0.0).sum()


def test_s64_the_usual_trap_gives_nan():
    x = leaf([0.0, 4.0])
    trap(x).backward()
    np.testing.assert_array_equal(x.grad.detach().numpy(), [NAN, 0.25])


def test_s64_which_anomaly_mode_names():
    x = leaf([0.0, 4.0])
    with (
        pytest.raises(RuntimeError, match=r"'SqrtBackward0' returned nan.*cr\.sqrt\(x\)"),
        cr.detect_anomaly(),
    ):
        trap(x).backward()


def test_s64_the_safe_form_is_right():
    x = leaf([0.0, 4.0])
    positive = x > 0
    safe = cr.where(positive, x, 1.0)
    with cr.detect_anomaly():
        cr.where(positive, cr.sqrt(safe), 0.0).sum().backward()
    assert x.grad.tolist() == [0, 0.25]


# --- 75: right where the textbook formula breaks down ---------------------------------------------


@pytest.fixture
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.usefixtures("_no_warnings")
@pytest.mark.parametrize("dtype", [cr.float32, cr.float64], ids=str)
def test_s75_sigmoid_far_out(dtype):
    x = leaf([-800.0, -50.0, 0.0, 50.0, 800.0], dtype)
    y = x.sigmoid()
    assert [y[0].item(), y[2].item(), y[4].item()] == [0, 0.5, 1]
    assert 0 < y[1].item() < 2e-22
    y.sum().backward()
    assert [x.grad[0].item(), x.grad[2].item(), x.grad[4].item()] == [0, 0.25, 0]
    assert 0 < x.grad[1].item() < 2e-22


@pytest.mark.usefixtures("_no_warnings")
def test_s75_tanh_far_out():
    assert slope(cr.tanh, [-800.0, 0.0, 800.0]) == [0, 1, 0]


@pytest.mark.usefixtures("_no_warnings")
@pytest.mark.parametrize("values", [[800.0, -800.0], [-800.0, 800.0, 0.0], [1e4, 1e4]])
def test_s75_softmax_and_its_logarithm_far_out(values):
    def both(x):
        return cr.cat([cr.softmax(x, 0), cr.log_softmax(x, 0), cr.logsumexp(x, 0)[None]])

    assert np.isfinite(both(leaf(values)).detach().numpy()).all()
    assert np.isfinite(slope(both, values)).all()


@pytest.mark.usefixtures("_no_warnings")
def test_s75_logsumexp_of_nothing_but_minus_infinity():
    x = leaf([[-INF, -INF], [0.0, -INF]], cr.float64)
    y = cr.logsumexp(x, 1)
    assert y.tolist() == [-INF, 0]
    y.sum().backward()
    assert x.grad.tolist() == [[0, 0], [1, 0]]


@pytest.mark.usefixtures("_no_warnings")
def test_s75_logsumexp_of_large_numbers():
    values = [1000.0, 1000.0 - math.log(3)]
    np.testing.assert_allclose(slope(lambda x: cr.logsumexp(x, 0), values), [0.75, 0.25])
    values = [-1000.0, -1000.0 - math.log(3)]
    np.testing.assert_allclose(slope(lambda x: cr.logsumexp(x, 0), values), [0.75, 0.25])


@pytest.mark.usefixtures("_no_warnings")
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_s75_norms_of_huge_and_of_tiny_numbers(scale):
    x = leaf([3 * scale, -4 * scale], cr.float64)
    y = x.norm()
    np.testing.assert_allclose(y.item(), 5 * scale, rtol=1e-14)
    y.backward()
    np.testing.assert_allclose(x.grad.detach().numpy(), [0.6, -0.8], rtol=1e-14)


@pytest.mark.usefixtures("_no_warnings")
@pytest.mark.parametrize("scale", [1e-40, 1e30])
def test_s75_norms_in_single_precision(scale):
    x = leaf([[3 * scale, 4 * scale]], cr.float32)
    y = x.norm(dim=1)
    np.testing.assert_allclose(y.item(), 5 * scale, rtol=1e-4)
    y.backward()
    np.testing.assert_allclose(x.grad.detach().numpy(), [[0.6, 0.8]], rtol=1e-4)


@pytest.mark.parametrize(
    "row",
    [[2.0, 0.0, 4.0, 5.0], [0.0, 3.0], [0.0, 0.0, 3.0, 1.0], [0.0], [1e-300, 0.0, 1e300]],
)
@pytest.mark.parametrize("name", ["prod", "cumprod"])
def test_s75_products_with_zeros(name, row):
    def function(m, x):
        return x.prod() if name == "prod" else x.cumprod(0)

    # The derivative of a product is the product itself with one in place of the factor.
    def replaced(i, value):
        values = [*row[:i], value, *row[i + 1 :]]
        return function(cr, cr.tensor(values, dtype=cr.float64)).sum().item()

    differences = [replaced(i, 1.0) - replaced(i, 0.0) for i in range(len(row))]
    np.testing.assert_allclose(slope(lambda x: function(cr, x), row), differences, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_s75_cumprod_with_infinite_factors():
    assert slope(lambda x: x.cumprod(0), [INF, 0.0, 1.0])[:2] == [1, INF]


def test_s75_var_and_std_of_equal_numbers():
    assert slope(lambda x: x.var(), [3.0, 3.0]) == [0, 0]
    assert slope(lambda x: x.std(), [3.0, 3.0]) == [0, 0]


@pytest.mark.parametrize("index", [3, -4, [0, 3], (0, 2), (slice(None), 2), (..., 5)], ids=str)
def test_s75_an_index_out_of_range(index):
    x = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with pytest.raises(IndexError):
        x[index]
    with pytest.raises(IndexError), cr.no_grad():
        x[index] = 0
    assert x.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_s75_a_tensor_as_index_out_of_range():
    x = leaf([1.0, 2.0])
    with pytest.raises(IndexError):
        x[cr.tensor([0, 2])]
    with pytest.raises(IndexError):
        x.gather(0, cr.tensor([2]))
    with pytest.raises(IndexError):
        x.index_select(0, cr.tensor([2]))
    with pytest.raises(IndexError):
        x.sum(1)


MIXED = {
    "times": lambda lib, x, r: x * lib.real(x) * r,
    "over": lambda lib, x, r: x / (1 + abs(x) * r),
    "power": lambda lib, x, r: abs(x) ** x * r,
    "angle": lambda lib, x, r: lib.angle(x) * x,
    "product": lambda lib, x, r: (x @ (r * r)) * x.sum(),
}


@pytest.mark.parametrize("name", MIXED)
def test_second_derivatives_where_real_numbers_were_promoted_to_complex_ones(name):
    x = cr.tensor([0.3 + 0.2j, -1 - 2j], dtype=cr.complex128, requires_grad=True)
    r = cr.tensor([0.3, 1.2], dtype=cr.float64, requires_grad=True)
    assert cr.gradgradcheck(lambda x, r: MIXED[name](cr, x, r), [x, r])


def test_second_derivatives_keep_the_dtype_of_what_was_promoted():
    x = cr.tensor([0.5, 2.0], requires_grad=True)
    wide = cr.tensor([3.0, 4.0], dtype=cr.float64)
    first = cr.autograd_grad((x * (x * x * wide)).sum(), x, create_graph=True)[0]
    (first * first).sum().backward()
    assert first.dtype == x.grad.dtype == cr.float32
    np.testing.assert_allclose(x.grad.numpy(), [40.5, 4608.0])
