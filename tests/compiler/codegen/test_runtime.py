"""Runtime functions of generated source."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.compiler.codegen import runtime


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "i8"])
@pytest.mark.parametrize("shape", [(3,), ()])
def test_masked_writes_to_out(dtype: str, shape: tuple[int, ...]) -> None:
    x = np.full(shape, 2, dtype)
    mask = np.array([True, False, True])
    out = np.full(3, 7, dtype)
    expected = runtime.masked(x, mask)
    assert runtime.masked(x, mask, out=out) is out
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(out, [2, 0, 2])
