"""Remainders of large arrays are NumPy's to the bit, whatever the sizes and signs."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.kernels import remainders

FORMULAS = {
    "remainder": remainders.floored,
    "fmod": remainders.truncated,
    "floor_divide": remainders.floored_quotient,
}


def same_bits(found: np.ndarray, expected: np.ndarray) -> bool:
    numbers = ~np.isnan(expected)
    return found.dtype == expected.dtype and (
        np.array_equal(found[numbers], expected[numbers])
        and np.array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))
        and bool(np.isnan(found[~numbers]).all())
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FORMULAS)
def test_as_numpy(name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(3000).astype(dtype)
    near = np.nextafter(x / rng.integers(1, 50, x.size).astype(dtype), rng.choice([-9, 9], x.size))
    ones = np.nextafter(np.full_like(x, 2), 0) - rng.integers(0, 9, x.size) * np.finfo(dtype).eps
    divisors = [near, x / 7, ones, rng.standard_normal(x.size) * 1e-9, 0.3, -0.7, 2 * np.pi, np.inf]
    ufunc, formula = getattr(np, name), FORMULAS[name]
    for factor in (1, 1e-3, 1e4, 1e20):
        for divisor in divisors:
            a, b = (x * factor).astype(dtype), np.asarray(divisor, dtype)
            with np.errstate(all="ignore"):
                assert same_bits(remainders.in_blocks(ufunc, formula, a, b), ufunc(a, b)), (
                    factor,
                    divisor,
                )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FORMULAS)
def test_zeros_infinities_and_nans(name: str, dtype: str) -> None:
    tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    ufunc, formula = getattr(np, name), FORMULAS[name]
    special = np.array([0, -0.0, 1, -1, 0.5, tiny, -tiny, huge, np.inf, -np.inf, np.nan], dtype)
    for y in special:
        for x in special:
            a, b = np.full(3, x), np.full(3, y)
            with np.errstate(all="ignore"):
                assert same_bits(remainders.in_blocks(ufunc, formula, a, b), ufunc(a, b)), (x, y)


@pytest.mark.parametrize("size", [4095, 4096])
def test_large_tensors_with_gradients(size: int) -> None:
    x = cr.tensor(np.linspace(-9, 9, size), requires_grad=True)
    y = x % 0.75 + cr.fmod(x, 2.5)
    y.sum().backward()
    a = x.detach().numpy()
    assert np.array_equal(y.detach().numpy(), a % 0.75 + np.fmod(a, 2.5))
    assert x.grad is not None
    assert (x.grad == 2).all()
