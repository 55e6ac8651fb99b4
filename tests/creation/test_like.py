"""Tensors like a given one, indices of triangles, Vandermonde matrices."""

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import check_derivatives, compare_with_torch

CALLS = {
    "new_zeros": lambda lib, x: (x.new_zeros(2), x.new_zeros((2, 3), dtype=lib.int64)),
    "new_ones": lambda lib, x: (x.new_ones(2, 3), x.new_ones(size=(1,))),
    "new_full": lambda lib, x: x.new_full((2,), 3.5),
    "new_tensor": lambda lib, x: (x.new_tensor([1.5, 2]), x.new_tensor(3)),
    "new_empty": lambda lib, x: x.new_empty(2, 0),
    "as_tensor": lambda lib, x: (lib.as_tensor(x), lib.as_tensor([1, 2], dtype=lib.float64)),
    "scalar_tensor": lambda lib, x: (lib.scalar_tensor(3), lib.scalar_tensor(2, dtype=lib.int64)),
    "tril_indices": lambda lib, x: (lib.tril_indices(2, 3), lib.tril_indices(3, 3, -1)),
    "triu_indices": lambda lib, x: (lib.triu_indices(2, 3), lib.triu_indices(3, 2, 1)),
    "vander": lambda lib, x: (lib.vander(x), lib.vander(x, N=2, increasing=True)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("name", CALLS)
def test_values(name, dtype):
    compare_with_torch(CALLS[name], np.array([1, 2, 3], dtype), order=0)


def test_new_tensors_are_leaves():
    x = cr.ones(2, requires_grad=True) * 2
    assert not x.new_zeros(2).requires_grad
    assert x.new_ones(2, requires_grad=True).is_leaf
    assert x.new_tensor([1.0]).device == x.device


def test_as_tensor_shares():
    array = np.zeros(2)
    assert cr.as_tensor(array).numpy() is not None
    array[0] = 5
    shared = cr.as_tensor(array)
    array[1] = 7
    assert shared.tolist() == [5, 7]


def test_powers_have_every_derivative_also_at_zero():
    check_derivatives(lambda lib, x: lib.vander(x), [0.0, 1.0, -2.0])
    x = cr.tensor([0.0], requires_grad=True)
    (g,) = cr.autograd_grad(cr.vander(x, 3, increasing=True), x, cr.tensor([[1.0, 5.0, 7.0]]))
    assert g.tolist() == [5]


def test_errors():
    with pytest.raises(cr.ShapeError, match="x must be a one-dimensional tensor"):
        cr.vander(cr.ones(2, 2))
    with pytest.raises(ValueError, match="N must be non-negative"):
        cr.vander(cr.ones(2), -1)
