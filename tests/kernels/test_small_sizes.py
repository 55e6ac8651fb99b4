"""Formulations of small arrays beside those of large ones."""

import numpy as np
import pytest

from chainrule.backend import numpy_xp


@pytest.mark.parametrize("size", [1, 127, 128, 300])
def test_logaddexp_agrees_at_all_sizes(size):
    x = np.linspace(-800, 800, size)
    y = x[::-1].copy()
    x[0] = y[0] = -np.inf
    y[-1] = np.inf
    np.testing.assert_allclose(numpy_xp.logaddexp(x, y), np.logaddexp(x, y), rtol=1e-14)


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (0, 2), ()])
@pytest.mark.parametrize("shift", [0, 1, -1, 3, 7, -9])
def test_roll_is_numpys(shape, shift):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    for axis in range(-len(shape), len(shape)):
        found = numpy_xp.roll(x, (shift,), (axis,))
        np.testing.assert_array_equal(found, np.roll(x, shift, axis))
        assert not np.shares_memory(found, x)
