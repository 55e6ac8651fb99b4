"""matrix_power with the exponent 0."""

import pytest

import chainrule as cr


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_the_power_0_is_constant(dtype):
    x = cr.full((2, 3, 3), 2, dtype=dtype).requires_grad_()
    out = cr.linalg.matrix_power(x, 0)
    assert out.dtype == dtype
    assert out.tolist() == [cr.eye(3).tolist()] * 2
    out.real.sum().backward()
    assert (x.grad == 0).all()
