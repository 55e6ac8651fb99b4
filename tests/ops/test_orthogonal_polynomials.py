"""Orthogonal polynomials: values of PyTorch's, and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.ops import orthogonal_polynomials
from helpers.torch_comparison import same_as_torch

X = np.linspace(-1.5, 1.5, 7)
DEGREES = np.array([[-1], [0], [1], [2], [5]])


@pytest.mark.parametrize("name", orthogonal_polynomials.__all__)
def test_polynomials_as_in_pytorch(name: str) -> None:
    def program(lib):
        function, x = getattr(lib.special, name), lib.tensor(X)
        single = [function(x, n) for n in (-1, 0, 1, 4)]
        return *single, function(x, lib.tensor(DEGREES)), function(lib.tensor([1, 2]), 3)

    same_as_torch(program)


def test_fractions_of_a_degree_are_cut_off_as_in_pytorch() -> None:
    def program(lib):
        return lib.special.hermite_polynomial_h(
            lib.tensor(X), lib.tensor([[2.9], [0.5], [-0.5], [-3]])
        )

    same_as_torch(program)
    degrees = cr.tensor([np.nan, np.inf, -np.inf, 1.0])
    assert np.isnan(cr.special.chebyshev_polynomial_t(0.5, degrees).numpy()).tolist() == [
        True
    ] * 3 + [False]


def test_gradients() -> None:
    x = cr.tensor([0.3, -0.7], dtype=cr.float64, requires_grad=True)
    assert cr.gradgradcheck(lambda x: cr.special.laguerre_polynomial_l(x, 4), x)
    assert cr.gradcheck(lambda x: cr.special.legendre_polynomial_p(x, cr.tensor([0, 3])), x)
