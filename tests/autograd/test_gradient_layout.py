"""Memory order of gradients that arrive transposed at their leaf."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "shape", [(1, 1), (3, 200), (200, 3), (70, 64), (64, 64), (65, 63), (1, 5000)]
)
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


def test_a_product_that_something_else_views_is_copied_into_the_gradient() -> None:
    x, kept = cr.ones(5, 70), []
    w = cr.tensor(RNG.standard_normal((70, 70)), requires_grad=True)
    v = w.T
    v.register_hook(lambda g: kept.append(g.T))
    (x @ v).sum().backward()
    before = kept[0].numpy().copy()
    w.grad.zero_()
    np.testing.assert_array_equal(kept[0].numpy(), before)
    assert before.any()


PROGRAMS = {
    "linear": (lambda x, w: x @ w.T, (5, 3), (4, 3)),
    "of three axes": (lambda x, w: (x[:, None] * w.permute(2, 0, 1)).exp(), (4, 2, 3), (2, 3, 4)),
    "convolution": (cr.nn.functional.conv2d, (2, 3, 5, 5), (4, 3, 2, 2)),
    "transposed convolution": (cr.nn.functional.conv_transpose2d, (2, 3, 4, 4), (3, 4, 2, 2)),
    "expanded": (lambda x, w: w.T.expand(2, 3, 4) + x, (3, 4), (4, 3)),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_can_be_viewed_as_their_tensors(program: str, create_graph: bool) -> None:
    """As in PyTorch: optimisers and trust regions of users join ``grad.view(-1)``."""
    function, *shapes = PROGRAMS[program]
    x, w = (cr.tensor(RNG.standard_normal(shape), requires_grad=True) for shape in shapes)
    loss = function(x, w).sum()
    found = cr.autograd_grad(loss, [x, w], retain_graph=True, create_graph=create_graph)
    loss.backward(create_graph=create_graph)
    for gradient, leaf in zip(found, (x, w), strict=True):
        assert gradient.is_contiguous()
        assert leaf.grad.is_contiguous()
        np.testing.assert_array_equal(gradient.detach(), leaf.grad.detach())
        assert gradient.requires_grad == leaf.grad.requires_grad
        assert gradient.view(-1).shape == (leaf.numel(),)


def test_second_derivatives_flow_through_a_gradient_in_c_order() -> None:
    x, w = cr.ones(5, 3), cr.tensor(RNG.standard_normal((4, 3)), requires_grad=True)
    (g,) = cr.autograd_grad((x @ w.T).pow(3).sum(), w, create_graph=True)
    (h,) = cr.autograd_grad(g.view(-1).sum(), w)
    rows = w.detach().sum(1).numpy()  # all of x is 1
    np.testing.assert_allclose(h.numpy(), np.repeat(5 * 6 * 3 * rows[:, None], 3, 1), rtol=1e-6)


def test_gradients_of_transposed_tensors_stay_as_they_arrive() -> None:
    w = cr.zeros(3, 4).t().detach().requires_grad_()
    assert not w.is_contiguous()
    (g,) = cr.autograd_grad((w.t() * cr.ones(3, 4)).sum(), w)
    assert not g.is_contiguous()
