"""Memory order of gradients that arrive transposed at their leaf."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(1, 1), (3, 200), (200, 3), (70, 64), (1, 50)])
def test_gradients_of_transposed_weights_are_in_c_order(shape: tuple[int, int]) -> None:
    rows, columns = shape
    x = cr.tensor(RNG.standard_normal((5, columns)))
    w = cr.tensor(RNG.standard_normal(shape), requires_grad=True)
    g = RNG.standard_normal((5, rows))
    (x @ w.T).backward(cr.tensor(g))
    found = w.grad.numpy()
    assert found.flags.c_contiguous
    assert found.flags.owndata
    np.testing.assert_allclose(found, g.T @ x.numpy())
    (x @ w.T).backward(cr.tensor(g))
    np.testing.assert_allclose(w.grad.numpy(), 2 * (g.T @ x.numpy()))
