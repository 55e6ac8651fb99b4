"""Sums and means without NaN, variances, covariances, renorm."""

import math

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import check_derivatives, compare_with_torch

RNG = np.random.default_rng(3)
X = RNG.permutation(24).reshape(2, 3, 4) / 7 + 0.1
NAN = math.nan
GAPS = np.array([[1.0, NAN, 2.0], [NAN, NAN, NAN], [3.0, 4.0, 5.0]])

FUNCTIONS = {
    "nansum": lambda lib, x: lib.nansum(x, 1),
    "nanmean": lambda lib, x: x.nanmean((0, 2), True),
    "std_mean": lambda lib, x: lib.std_mean(x, 1),
    "std_mean-unbiased": lambda lib, x: lib.std_mean(x, False),
    "var_mean": lambda lib, x: lib.var_mean(x, dim=(0, 1), correction=0, keepdim=True),
    "var_mean-places": lambda lib, x: lib.var_mean(x, 2, True, True),
    "aminmax": lambda lib, x: lib.aminmax(x, dim=1, keepdim=True),
    "aminmax-all": lambda lib, x: x.aminmax(),
    "cov": lambda lib, x: lib.cov(x[0]),
    "cov-vector": lambda lib, x: x[0, 0].cov(correction=0),
    "cov-weights": lambda lib, x: lib.cov(
        x[0],
        fweights=lib.tensor([1, 2, 0, 3]),
        aweights=lib.ones(4).to(x.dtype),
    ),
    "cov-fweights": lambda lib, x: lib.cov(x[0], fweights=lib.tensor([1, 2, 0, 3]), correction=0),
    "corrcoef": lambda lib, x: lib.corrcoef(x[0]),
    "dist": lambda lib, x: lib.dist(x[0], x[1]),
    "dist-3": lambda lib, x: x[0].dist(x[1, 0] * 2, 3),
    "renorm": lambda lib, x: lib.renorm(x, 2, 1, 4.0),
    "renorm-1": lambda lib, x: x.renorm(1, 0, 1e3),
    "renorm-p": lambda lib, x: x.renorm(p=3, dim=-1, maxnorm=2.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name):
    check_derivatives(FUNCTIONS[name], X)
    compare_with_torch(FUNCTIONS[name], X)


def test_sums_and_means_without_nan():
    compare_with_torch(
        lambda lib, x: (lib.nansum(x), lib.nansum(x, 1), lib.nansum(x, 0, True)), GAPS
    )
    compare_with_torch(lambda lib, x: (lib.nanmean(x), lib.nanmean(x, 0)), GAPS)
    compare_with_torch(lambda lib, x: lib.nanmean(x, 1), GAPS, order=0)
    compare_with_torch(lambda lib, x: lib.nansum(x), np.array([1, 2]))
    compare_with_torch(lambda lib, x: (x.nansum(), x.nanmean()), np.zeros(0), order=0)


def test_a_single_observation():
    compare_with_torch(lambda lib, x: lib.std_mean(x, correction=0), [2.0], order=1)
    one = cr.tensor([2.0], requires_grad=True)
    spread, mean = cr.std_mean(one)
    assert math.isnan(spread.item())
    assert mean.item() == 2
    compare_with_torch(lambda lib, x: lib.corrcoef(x), [1.0, 2.0])


def test_complex_covariances():
    z = RNG.normal(size=(3, 5)) + 1j * RNG.normal(size=(3, 5))
    compare_with_torch(lambda lib, x: lib.cov(x), z)
    np.testing.assert_allclose(cr.corrcoef(cr.tensor(z)).numpy(), np.corrcoef(z), rtol=1e-12)


def test_covariances_by_their_weights():
    def function(lib, x, weights):
        return lib.cov(x, aweights=weights)

    check_derivatives(function, X[0], [0.5, 1.0, 2.0, 0.25])


def test_equal_tensors_have_distance_zero_with_derivative_zero():
    compare_with_torch(lambda lib, x, y: lib.dist(x, y), [1.0, 2.0], [1.0, 2.0], order=1)


def test_renorm_keeps_short_slices():
    x = cr.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]], requires_grad=True)
    out = cr.renorm(x, 2, 0, 1)
    np.testing.assert_array_equal(out[1:].detach().numpy(), x[1:].detach().numpy())
    out[1:].sum().backward()
    assert x.grad.tolist() == [[0, 0], [1, 1], [1, 1]]
    compare_with_torch(lambda lib, x: (x * 1).renorm_(2, 0, 1.0), [[3.0, 4.0], [0.3, 0.4]])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: x.int().nanmean(), cr.DTypeError, "nanmean"),
        (lambda x: cr.cov(x[None]), cr.ShapeError, "two or fewer dimensions"),
        (lambda x: cr.cov(x, fweights=cr.ones(2)), cr.ShapeError, "as there are observations"),
        (lambda x: x[0].renorm(2, 0, 1), cr.ShapeError, "at least 2 dimensions"),
        (lambda x: x.renorm(0, 0, 1), ValueError, "non-positive-norm not supported"),
        (lambda x: x.renorm(2, 0, -1), ValueError, "maxnorm to be >= 0"),
    ],
    ids=range(6),
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(cr.zeros(3, 3))
