"""broadcast_shapes, broadcast_tensors and broadcast_to."""

import numpy as np
import pytest

import chainrule as cr


@pytest.mark.parametrize(
    "shapes", [[(2, 1), (3,)], [(), (2,)], [(0, 1), (1, 4)], [(5,)], [], [3, (2, 1)]], ids=str
)
def test_broadcast_shapes(shapes):
    assert cr.broadcast_shapes(*shapes) == np.broadcast_shapes(*shapes)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"the shapes \[2, 3\], \[4\] can't be broadcast"):
        cr.broadcast_shapes((2, 3), (4,))
    with pytest.raises(ValueError, match="can't be broadcast"):
        cr.broadcast_tensors(cr.zeros(2, 3), cr.zeros(4))


def test_broadcast_tensors():
    x = cr.tensor([[1.0], [2.0]], dtype=cr.float64, requires_grad=True)
    y = cr.tensor([1, 2, 3])
    a, b, c = cr.broadcast_tensors(x, y, 2.5)
    assert a.shape == b.shape == c.shape == (2, 3)
    assert (a.dtype, b.dtype) == (cr.float64, cr.int64)
    assert b.tolist() == [[1, 2, 3]] * 2
    assert np.shares_memory(b.numpy(), y.numpy())
    (a * b).sum().backward()
    assert x.grad.tolist() == [[6], [6]]
    assert cr.broadcast_arrays is cr.broadcast_tensors
