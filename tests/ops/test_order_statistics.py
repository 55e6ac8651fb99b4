"""Medians, quantiles and modes, compared with PyTorch, and cases where PyTorch is wrong."""

import math

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import check_derivatives, compare_with_torch

RNG = np.random.default_rng(1)
X = RNG.permutation(24).reshape(2, 3, 4) / 7
INF, NAN = math.inf, math.nan

FUNCTIONS = {
    "median": lambda lib, x: x.median(),
    "median-dim": lambda lib, x: lib.median(x, 1)[0],
    "median-even": lambda lib, x: lib.median(x, dim=2, keepdim=True)[0],
    "nanmedian": lambda lib, x: lib.nanmedian(x),
    "nanmedian-dim": lambda lib, x: x.nanmedian(0)[0],
    "kthvalue": lambda lib, x: lib.kthvalue(x, 2)[0],
    "kthvalue-dim": lambda lib, x: x.kthvalue(k=3, dim=1, keepdim=True)[0],
    "mode": lambda lib, x: lib.mode(x, 1)[0],
    "msort": lambda lib, x: lib.msort(x),
    "quantile": lambda lib, x: lib.quantile(x, 0.3),
    "quantile-dim": lambda lib, x: x.quantile(0.45, dim=1, keepdim=True),
    "quantile-keepdim": lambda lib, x: x.quantile(0.45, keepdim=True),
    "quantiles": lambda lib, x: x.quantile(lib.tensor([0.1, 0.5, 1.0], dtype=x.dtype), 2),
    "quantiles-of-all": lambda lib, x: lib.quantile(
        x, lib.tensor([0.1, 0.9], dtype=x.dtype), keepdim=True
    ),
    "nanquantile": lambda lib, x: lib.nanquantile(x, 0.3, 0),
    **{
        f"quantile-{way}": lambda lib, x, way=way: x.quantile(0.4, 2, interpolation=way)
        for way in ("linear", "lower", "higher", "midpoint", "nearest")
    },
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name):
    check_derivatives(FUNCTIONS[name], X)
    compare_with_torch(FUNCTIONS[name], X)
    compare_with_torch(FUNCTIONS[name], X.astype("float32"))


def test_indices_without_ties():
    compare_with_torch(lambda lib, x: lib.median(x, 1)[1], X, order=0)
    compare_with_torch(lambda lib, x: lib.nanmedian(x, 1)[1], X, order=0)
    compare_with_torch(lambda lib, x: lib.kthvalue(x, 2, 1)[1], X, order=0)


def test_a_median_of_equal_elements():
    ties = [1.0, 2.0, 2.0, 3.0, 2.0]
    compare_with_torch(lambda lib, x: x.median(), ties)
    compare_with_torch(lambda lib, x: x.nanmedian(), [*ties, NAN])
    compare_with_torch(lambda lib, x: x.median(0)[0], ties, order=0)
    x = cr.tensor(ties, requires_grad=True)
    values, place = x.median(0)
    values.backward()
    assert x.grad.tolist() == [float(i == place.item()) for i in range(5)]
    x = cr.tensor([0.1] * 3, dtype=cr.float64, requires_grad=True)
    assert x.median().item() == 0.1


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_with_nan(name):
    def function(lib, x):
        return getattr(lib, name)(x), *getattr(lib, name)(x, 1)

    x = np.array([[3.0, NAN, 1.0, NAN], [2.0, 5.0, 4.0, 1.0]])
    compare_with_torch(function, x, order=0)
    compare_with_torch(lambda lib, x: getattr(lib, name)(x), x, order=1)
    compare_with_torch(lambda lib, x: getattr(lib, name)(x, 1)[0], [[NAN] * 4], order=0)
    compare_with_torch(lambda lib, x: getattr(lib, name)(x, 1)[0], x, order=1)


def test_integers():
    x = np.array([[3, 1, 2, 1], [4, 4, 0, 1]])
    compare_with_torch(
        lambda lib, x: (x.median(), x.median(1)[0], x.kthvalue(3)[0], x.mode()[0]), x
    )


def test_of_empty_tensors_and_of_one_number():
    compare_with_torch(lambda lib, x: x.median(), np.zeros(0))
    compare_with_torch(lambda lib, x: x.median(1), np.zeros((0, 3)), order=0)
    for name in ("median", "nanmedian", "mode"):
        compare_with_torch(lambda lib, x, n=name: getattr(x, n)(0), 2.5, order=1)
    compare_with_torch(lambda lib, x: (x.kthvalue(1)[0], x.median(), x.quantile(0.5, 0)), 2.5)
    assert math.isnan(cr.median(cr.zeros(0, dtype=cr.int64)).item())


def test_the_mode_of_ties_is_the_smallest_and_its_last_index():
    compare_with_torch(lambda lib, x: x.mode(), [2.0, 1.0, 2.0, 1.0, 3.0], order=1)
    compare_with_torch(lambda lib, x: x.mode(0, True), [[1.0, 1.0, 2.0], [2.0, 1.0, 2.0]], order=1)


def test_quantiles_between_equal_elements_share_the_gradient():
    compare_with_torch(lambda lib, x: x.quantile(0.4), [2.0, 1.0, 2.0, 2.0])
    compare_with_torch(lambda lib, x: x.quantile(0.5), [2.0, 2.0])


def test_quantiles_with_nan():
    x = np.array([[3.0, NAN, 1.0, NAN], [2.0, 5.0, 4.0, 1.0]])
    q = np.array([0.0, 0.3, 1.0])
    compare_with_torch(lambda lib, x, q: lib.quantile(x, q.detach(), 1), x, q, order=0)
    compare_with_torch(lambda lib, x, q: lib.nanquantile(x, q.detach(), 1), x, q, order=1)
    assert math.isnan(cr.nanquantile(cr.tensor([NAN, NAN]), 0.5).item())
    y = cr.tensor([[NAN, 1.0, 2.0], [3.0, 1.0, 2.0]], requires_grad=True)
    cr.quantile(y, 0.5, 1)[1].backward()
    assert y.grad.tolist() == [[0, 0, 0], [0, 0, 1]]


def test_quantiles_with_infinity():  # PyTorch has nan in all but the last
    x = cr.tensor([-INF, 1.0, INF])
    assert cr.quantile(x, cr.tensor([0.0, 0.5, 1.0])).tolist() == [-INF, 1, INF]
    assert cr.quantile(cr.tensor([INF, INF]), 0.3).item() == INF
    with np.errstate(invalid="ignore"):
        assert math.isnan(cr.quantile(cr.tensor([-INF, INF]), 0.3).item())


def test_gradients_of_quantiles_at_infinity():
    x = cr.tensor([-INF, 1.0, 3.0], requires_grad=True)
    cr.quantile(x, 0.75).backward()
    assert x.grad.tolist() == [0, 0.5, 0.5]


@pytest.mark.parametrize("name", ["topk", "topk-smallest", "quantile", "nanquantile"])
def test_long_rows_are_not_sorted_but_give_the_same(name):
    def function(lib, x):
        q = lib.tensor([0.0, 0.1234, 0.5, 1.0], dtype=x.dtype)
        return {
            "topk": lambda: lib.topk(x, 5, 1),
            "topk-smallest": lambda: lib.topk(x, 3, 1, largest=False),
            "quantile": lambda: lib.quantile(x, q, 1),
            "nanquantile": lambda: lib.nanquantile(x, q, 1),
        }[name]()

    x = RNG.normal(size=(2, 1500))
    compare_with_torch(function, x)
    x[0, 7] = NAN
    compare_with_torch(function, x, order=0)


def test_the_largest_of_many_equal_elements_come_in_order():
    x = cr.tensor(RNG.integers(0, 3, 2000))
    values, places = x.topk(9)
    assert values.tolist() == [2] * 9
    assert x[places].tolist() == [2] * 9
    assert places.tolist() == sorted(places.tolist())
    assert x.float().topk(0).values.shape == (0,)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_dtypes_are_kept(dtype):
    x = cr.tensor([1.0, 2.0, 4.0], dtype=dtype)
    for out in (x.median(), x.quantile(0.3), x.kthvalue(2).values, x.mode().values, x.msort()):
        assert out.dtype == dtype


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_the_quantile_levels_have_gradients(name):
    def function(lib, x, q):
        return getattr(lib, name)(x, q, dim=0)

    compare_with_torch(function, [[4.0, 1.0], [2.0, NAN], [7.0, 5.0]], [0.3, 0.9], order=0)
    compare_with_torch(function, [[4.0, 1.0], [2.0, 9.0], [7.0, 5.0]], [0.3, 0.9])
    compare_with_torch(function, [[4.0, 1.0], [2.0, 9.0], [7.0, 5.0]], 0.2)
    check_derivatives(function, [[4.0, 1.0], [2.0, 9.0], [7.0, 5.0]], [0.3, 0.9])


def test_a_single_number_keeps_its_shape():
    compare_with_torch(lambda lib, x: lib.quantile(x, 0.5, dim=0, keepdim=True), 2.0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: x[:0].median(0), cr.ShapeError, "to have non-zero size"),
        (lambda x: x[:0].mode(), cr.ShapeError, "to have non-zero size"),
        (lambda x: x.kthvalue(0), ValueError, "selected number k out of range"),
        (lambda x: x.kthvalue(4), ValueError, "selected number k out of range"),
        (lambda x: x.int().quantile(0.5), cr.DTypeError, "either float or double dtype"),
        (lambda x: x[:0].quantile(0.5), cr.ShapeError, "must be non-empty"),
        (lambda x: x.quantile(1.5), ValueError, r"in the range \[0, 1\]"),
        (lambda x: x.quantile(cr.tensor(NAN)), ValueError, r"in the range \[0, 1\]"),
        (lambda x: x.quantile(cr.ones(1, 1)), ValueError, "scalar or 1D tensor"),
        (lambda x: x.quantile(0.5, interpolation="x"), ValueError, "must be one of linear, lower"),
    ],
    ids=range(10),
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(cr.zeros(3))
