"""Sums as products with ones, in NumPy's source."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

RNG = np.random.default_rng(0)
STACK, MATRIX, DEEP, LONG = (
    cr.tensor(RNG.standard_normal(shape))
    for shape in ((16, 64, 8), (1024, 8), (4, 8, 32, 8), (5000, 2, 3))
)


@pytest.mark.parametrize(
    ("function", "x", "products", "sums"),
    [
        (lambda x: x.sum((0, 1)), STACK, 2, 0),
        (lambda x: x.sum((-2, 0), keepdim=True), STACK, 2, 0),
        (lambda x: x.sum(1), STACK, 1, 0),
        (lambda x: x.sum(-1), STACK, 1, 0),
        (lambda x: x.sum(0), STACK, 0, 1),
        (lambda x: x.sum((0, 2)), STACK, 0, 1),
        (lambda x: x.sum((1, 2)), STACK, 0, 1),
        (lambda x: x.sum((0, 1)), STACK[:2, :3], 0, 1),  # too few elements
        (lambda x: x.reshape(16, 64, 8).sum((0, 1)), MATRIX, 1, 0),
        (lambda x: x.reshape(4, 16, 16, 8).sum((0, 1, 2)), MATRIX, 1, 0),
        (lambda x: x.reshape(16, 64, 8).sum((0, 1)) * x.reshape(16, 64, 8), MATRIX, 1, 0),
        (lambda x: x.reshape(16, 32, 16).sum((0, 1)), MATRIX, 2, 0),  # of other rows
        (lambda x: x.sum((0, 1, 2)), DEEP, 0, 1),
        (lambda x: x.sum((0, 1)), LONG, 0, 1),  # BLAS adds one after the other
    ],
)
def test_sums_of_one_axis_or_of_all_but_the_last_are_products(
    function: Callable[..., Any], x: cr.Tensor, products: int, sums: int
) -> None:
    compiled = cr.compile(function, backend="numpy")
    np.testing.assert_allclose(compiled(x).numpy(), function(x).numpy(), rtol=1e-12, atol=1e-12)
    assert len(re.findall(" @ ", compiled.source)) == products
    assert len(re.findall(r"\.sum\(", compiled.source)) == sums
