"""Accuracy and limits of the normal distribution function and gelu."""

from __future__ import annotations

import math

import numpy as np
import pytest

import chainrule as cr
from chainrule.kernels import normal

X = np.concatenate([np.linspace(-9, 9, 30_001), 10.0 ** np.arange(-40, 0)]).astype(np.float32)


def exact(x: np.ndarray) -> np.ndarray:
    return np.array([math.erfc(-v / math.sqrt(2)) / 2 for v in x.tolist()])


@pytest.mark.parametrize(("dtype", "bound"), [("float16", 5e-4), ("float32", 2e-7)])
def test_single_precision(dtype: str, bound: float) -> None:
    x = X.astype(dtype)
    got = normal.normal_cdf(np, x)
    assert got.dtype == dtype
    assert np.abs(got - exact(x)).max() <= bound


def test_double_precision() -> None:
    x = X.astype(float)
    np.testing.assert_allclose(normal.normal_cdf(np, x), exact(x), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_limits_are_exact(dtype: str) -> None:
    ends = [0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 3e38, -3e38, 1e-45]
    x = np.resize(np.array(ends, dtype), 5000)
    found = normal.normal_cdf(np, x)[: len(ends)]
    np.testing.assert_array_equal(found, [0.5, 0.5, 1, 0, np.nan, 1, 0, 1, 0, 0.5])


@pytest.mark.parametrize("size", [10, 300_001])
def test_gelu_and_its_derivative(size: int) -> None:
    x = np.resize(X, size)
    leaf = cr.tensor(x, requires_grad=True)
    out = cr.nn.functional.gelu(leaf)
    out.backward(cr.ones_like(out))
    wide = x.astype(float)
    cdf = np.resize(exact(X), size)
    density = np.exp(-wide * wide / 2) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(out.detach().numpy(), wide * cdf, rtol=4e-7, atol=6e-7)
    np.testing.assert_allclose(leaf.grad.numpy(), cdf + wide * density, atol=4e-7)
