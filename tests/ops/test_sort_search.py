"""Searching, counting, histograms and unique values."""

import math

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import check_derivatives, compare_with_torch

RNG = np.random.default_rng(4)
NAN = math.nan
X = np.array([[0.0, 1.0, 2.0], [2.0, 0.0, 0.0]])
INTS = np.array([[3, 1, 2], [1, 1, 3], [3, 1, 2]])
SORTED = np.sort(RNG.integers(0, 9, (2, 5)), axis=-1)
VALUES = RNG.integers(-1, 11, (2, 7))

CALLS = {
    "nonzero": (lambda lib, x: lib.nonzero(x), X),
    "nonzero-tuple": (lambda lib, x: x.nonzero(as_tuple=True), X),
    "where": (lambda lib, x: lib.where(x > 0), X),
    "where-number": (lambda lib, x: lib.where(x), 5),
    "nonzero-number": (lambda lib, x: (lib.nonzero(x), *x.nonzero(as_tuple=True)), 5),
    "nonzero-zero": (lambda lib, x: (lib.nonzero(x), *x.nonzero(as_tuple=True)), 0),
    "nonzero-nothing": (lambda lib, x: lib.nonzero(x), np.zeros((2, 0))),
    "argwhere": (lambda lib, x: lib.argwhere(x > 1), X),
    "where of a condition alone": (lambda lib, x: lib.where(x > 1), X),
    "unique": (lambda lib, x: lib.unique(x), INTS),
    "unique-all": (lambda lib, x: lib.unique(x, return_inverse=True, return_counts=True), INTS),
    "unique-rows": (lambda lib, x: x.unique(True, True, True, dim=0), INTS),
    "unique-columns": (lambda lib, x: x.unique(dim=1, return_counts=True), INTS),
    "unique-nan": (lambda lib, x: lib.unique(x, return_counts=True), [NAN, 1.0, NAN, 1.0]),
    "unique-number": (lambda lib, x: lib.unique(x, return_inverse=True), 5),
    "unique-nothing": (lambda lib, x: lib.unique(x, return_counts=True), np.zeros(0)),
    "consecutive": (lambda lib, x: lib.unique_consecutive(x, True, True), INTS),
    "consecutive-rows": (lambda lib, x: x.unique_consecutive(True, True, dim=0), INTS[[0, 2, 1]]),
    "consecutive-columns": (lambda lib, x: x.unique_consecutive(dim=1), INTS[:, [0, 0, 1]]),
    "consecutive-nan": (lambda lib, x: x.unique_consecutive(), [NAN, NAN, 1.0, 1.0]),
    "consecutive-nothing": (lambda lib, x: x.unique_consecutive(), np.zeros(0)),
    "bincount": (lambda lib, x: lib.bincount(x), np.array([1, 1, 4])),
    "bincount-long": (lambda lib, x: x.bincount(minlength=7), np.array([1, 1, 4])),
    "bincount-nothing": (lambda lib, x: x.bincount(), np.zeros(0, int)),
    "histc": (lambda lib, x: lib.histc(x, 4, 0, 3), [1.0, 2.0, 1.0, NAN, 9.0, 3.0]),
    "histc-range": (lambda lib, x: x.histc(bins=3), X),
    "histc-equal": (lambda lib, x: x.histc(4), [1.0, 1.0]),
    "histc-nothing": (lambda lib, x: x.histc(2), np.zeros(0)),
    "histogram": (lambda lib, x: lib.histogram(x, 4, range=(0.0, 3.0)), X),
    "histogram-edges": (
        lambda lib, x: x.histogram(lib.tensor([0.0, 1.0, 5.0], dtype=x.dtype), density=True),
        X,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_values(name):
    function, x = CALLS[name]
    compare_with_torch(function, x, order=0)


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(right):
    def function(lib, rows, values):
        return lib.searchsorted(rows, values, right=right)

    compare_with_torch(function, SORTED, VALUES)
    compare_with_torch(function, SORTED[0], VALUES)
    compare_with_torch(function, SORTED[0], 4)
    compare_with_torch(function, SORTED[:, :0], VALUES)
    compare_with_torch(function, SORTED, VALUES[:, :0])
    compare_with_torch(lambda lib, rows, v: lib.bucketize(v, rows, right=right), SORTED[0], VALUES)
    wide, many = np.sort(RNG.integers(0, 50, (3, 4, 20))), RNG.integers(0, 50, (3, 4, 30))
    compare_with_torch(function, wide, many)


def test_searchsorted_by_other_names():
    def function(lib, rows, values):
        order = lib.tensor([2, 0, 1])
        return (
            lib.searchsorted(rows, values, side="right", out_int32=True),
            lib.searchsorted(rows[[1, 2, 0]], values, sorter=order),
            lib.bucketize(values, rows, out_int32=True),
        )

    compare_with_torch(function, np.array([1, 3, 5]), np.array([3, 6, 0]))


def test_weights_are_summed_and_have_gradients():
    places = np.array([1, 0, 1])
    check_derivatives(lambda lib, i, w: lib.bincount(i, w, 4) ** 2, places, [0.5, 1.0, 2.0])
    compare_with_torch(lambda lib, i, w: lib.bincount(i, w), places, [0.5, 1.0, 2.0], order=0)
    compare_with_torch(lambda lib, i, w: lib.bincount(i, w), places, np.array([2, 3, 4]))


def test_results_have_no_history():
    x = cr.tensor(X, requires_grad=True)
    for out in (cr.histc(x), cr.nonzero(x), cr.argwhere(x)):
        assert not out.requires_grad


REPEATED = np.array([[3.0, 1.0, 1.0], [1.0, 3.0, 2.0], [3.0, 1.0, 1.0]])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: x.unique(), [[3, 1, 0], [0, 0, 2], [0, 0, 0]]),
        (lambda x: x.unique(return_counts=True)[0], [[3, 1, 0], [0, 0, 2], [0, 0, 0]]),
        (lambda x: x.unique(dim=0), [[2, 2, 2], [1, 1, 1], [0, 0, 0]]),
        (lambda x: x.unique_consecutive(), [[1, 2, 0], [0, 3, 4], [5, 6, 0]]),
        (lambda x: x.unique_consecutive(dim=1)[..., 1:], [[0, 2, 3], [0, 2, 3], [0, 2, 3]]),
    ],
)
def test_gradients_of_unique_values_go_to_the_first_of_equal_ones(call, expected):
    x = cr.tensor(REPEATED, requires_grad=True)
    out = call(x)
    assert out.equal(call(x.detach()))
    weights = cr.arange(1.0, out.numel() + 1, dtype=cr.float64).reshape(out.shape)
    if out.ndim == 2 and out.shape[0] == 2:
        weights = cr.tensor([[1.0] * 3, [2.0] * 3], dtype=cr.float64)
    if out.ndim == 2 and out.shape[0] == 3:
        weights = cr.tensor([[2.0, 3.0]] * 3, dtype=cr.float64)
    out.backward(weights)
    assert x.grad.tolist() == expected


def test_the_unique_value_of_a_number_has_a_derivative():
    x = cr.tensor(5.0, requires_grad=True)
    for out in (x.unique(), x.unique(dim=0), x.unique_consecutive(), x.unique_consecutive(dim=0)):
        assert out.shape == (1,)
        assert cr.autograd_grad(out, x)[0].item() == 1


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: cr.searchsorted(x, x[0]), cr.ShapeError, "should be 1 dimension or the first"),
        (lambda x: cr.searchsorted(x[0], x, side="up"), ValueError, "'left' or 'right'"),
        (
            lambda x: cr.searchsorted(x[0], x, side="left", right=True),
            ValueError,
            "can't be set to opposites",
        ),
        (lambda x: cr.bucketize(x, x), cr.ShapeError, "must be 1 dimension"),
        (lambda x: x[0].bincount(), cr.DTypeError, "expected integers"),
        (lambda x: x.int().bincount(), cr.ShapeError, "1-d non-negative integral inputs"),
        (lambda x: (x[0].int() - 1).bincount(), ValueError, "1-d non-negative integral inputs"),
        (lambda x: x[0].int().bincount(x), cr.ShapeError, "same length as input"),
        (lambda x: x.histc(0), ValueError, "bins must be > 0"),
        (lambda x: x.histc(3, 2, 1), ValueError, "max is less than min"),
        (lambda x: (x + math.inf).histc(), ValueError, "is not finite"),
    ],
    ids=range(11),
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(cr.zeros(2, 3))


@pytest.mark.parametrize("size", [0, 2, 9])
def test_nonzero_of_a_given_size(size):
    for values in ([[0, 2, 0], [3, 0, 5]], [0.0, 1.0], 3, np.zeros((2, 0))):
        compare_with_torch(
            lambda lib, x: lib.nonzero_static(x, size=size, fill_value=-7),
            np.asarray(values),
            order=0,
        )
    masks = cr.tensor([[0, 1, 1], [1, 0, 0]])
    each = [cr.nonzero_static(row, size=size).tolist() for row in masks]
    assert cr.vmap(lambda x: cr.nonzero_static(x, size=size))(masks).tolist() == each
    assert cr.compile(lambda x: x.nonzero_static(size=size))(masks[0]).tolist() == each[0]


def test_a_negative_size_of_nonzero():
    with pytest.raises(ValueError, match="size must be non-negative"):
        cr.nonzero_static(cr.ones(2), size=-1)
