"""Products that sum over a shared dimension."""

import numpy as np
import pytest

import chainrule as cr
from chainrule.backend import numpy_namespace
from chainrule.kernels import product_stacks
from chainrule.kernels.threads import using_threads


def random(*shape):
    return np.random.default_rng(0).random(shape)


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("mm", (2, 3), (3, 4)),
        ("mv", (2, 3), (3,)),
        ("dot", (3,), (3,)),
        ("bmm", (5, 2, 3), (5, 3, 4)),
        ("matmul", (5, 1, 2, 3), (6, 3, 4)),
        ("mm", (2, 0), (0, 4)),
    ],
)
def test_products(name, left, right):
    x, y = random(*left), random(*right)
    for result in (
        getattr(cr, name)(cr.tensor(x), cr.tensor(y)),
        getattr(cr.tensor(x), name)(cr.tensor(y)),
    ):
        np.testing.assert_allclose(result.numpy(), x @ y)


def test_outer():
    x, y = random(2), random(3)
    np.testing.assert_allclose(cr.outer(cr.tensor(x), cr.tensor(y)).numpy(), np.outer(x, y))
    with pytest.raises(cr.ShapeError, match="Expected 1-D arguments"):
        cr.outer(cr.ones(2, 2), cr.ones(2))


def test_linear():
    x, w, b = random(5, 3), random(2, 3), random(2)
    np.testing.assert_allclose(
        cr.linear(cr.tensor(x), cr.tensor(w), cr.tensor(b)).numpy(), x @ w.T + b
    )
    np.testing.assert_allclose(cr.linear(cr.tensor(x), cr.tensor(w)).numpy(), x @ w.T)
    np.testing.assert_allclose(cr.linear(cr.tensor(x), cr.tensor(w[0])).numpy(), x @ w[0])


def test_shapes_that_do_not_fit():
    with pytest.raises(
        cr.ShapeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"
    ):
        cr.ones(2, 3).mm(cr.ones(2, 3))
    with pytest.raises(cr.ShapeError, match="mm: expected tensors of 2 and 2 dimensions"):
        cr.mm(cr.ones(2, 3), cr.ones(3))
    with pytest.raises(cr.ShapeError, match="Expected size for first two dimensions of batch2"):
        cr.bmm(cr.ones(2, 3, 4), cr.ones(3, 4, 5))
    with pytest.raises(cr.ShapeError):
        cr.matmul(cr.tensor(1.0), cr.ones(2))


def test_dtypes_that_differ():
    with pytest.raises(cr.DTypeError, match="expected both tensors to have the same dtype"):
        cr.mm(cr.ones(2, 2), cr.ones(2, 2, dtype=cr.float64))
    assert cr.matmul(cr.ones(2, 2), cr.tensor([[1, 2], [3, 4]])).dtype == cr.float32


def test_gradients():
    x, w = cr.tensor(random(2, 3), requires_grad=True), cr.tensor(random(4, 3), requires_grad=True)
    b = cr.zeros(4, dtype=cr.float64, requires_grad=True)
    g = random(2, 4)
    cr.linear(x, w, b).backward(cr.tensor(g))
    np.testing.assert_allclose(x.grad.numpy(), g @ w.detach().numpy())
    np.testing.assert_allclose(w.grad.numpy(), g.T @ x.detach().numpy())
    np.testing.assert_allclose(b.grad.numpy(), g.sum(0))


@pytest.mark.parametrize("serial", [0, 5 * 6 * 7 - 1, 5 * 6 * 7])
@pytest.mark.parametrize("shape", [(8,), (1, 8), (2, 3), (1, 1)])
def test_stacks_of_products_in_threads_have_the_same_bits(shape, serial, monkeypatch):
    monkeypatch.setattr(numpy_namespace, "_STACK_MIN_ELEMENTS", 1)
    monkeypatch.setattr(product_stacks, "_PARALLEL_MIN_MULTIPLIES", 1)
    monkeypatch.setattr(product_stacks, "_SERIAL_MULTIPLIES", serial)
    rng = np.random.default_rng(0)
    for dtype in ("float32", "complex128", "int64"):
        x, y = (rng.integers(-9, 9, (*shape, *matrix)).astype(dtype) for matrix in ((5, 6), (7, 6)))
        with using_threads(3):
            found = cr.tensor(x) @ cr.tensor(y).swapaxes(-1, -2)
        np.testing.assert_array_equal(found.numpy(), np.matmul(x, y.swapaxes(-1, -2)))
    other = cr.ones(3, *(1,) * (len(shape) - 1), 7, 6).mT  # a stack that is broadcast, or an error
    if shape[0] in (1, 3):
        assert (cr.tensor(x, dtype=cr.float32) @ other).shape == (3, *shape[1:], 5, 7)
    else:
        with pytest.raises(cr.ShapeError):
            cr.tensor(x, dtype=cr.float32) @ other
