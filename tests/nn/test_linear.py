"""The fully connected layer."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.nn import Linear
from chainrule.optim import SGD


def test_parameters_are_leaves_within_their_bounds() -> None:
    layer = Linear(100, 50)
    assert layer.weight.shape == (50, 100)
    assert layer.bias is not None
    assert layer.bias.shape == (50,)
    for parameter in layer.parameters():
        assert parameter.is_leaf
        assert parameter.requires_grad
        assert parameter.dtype == cr.float32
        values = parameter.detach().numpy()
        assert np.abs(values).max() <= 0.1
        assert values.std() == pytest.approx(0.1 / 3**0.5, rel=0.25)


def test_options() -> None:
    layer = Linear(3, 2, bias=False, dtype=cr.float64)
    assert layer.bias is None
    assert [id(p) for p in layer.parameters()] == [id(layer.weight)]
    assert layer.weight.dtype == cr.float64
    assert repr(layer) == "Linear(in_features=3, out_features=2, bias=False)"
    assert Linear(0, 2)(cr.ones(1, 0)).shape == (1, 2)


def test_a_generator_makes_it_reproducible() -> None:
    first, second = (Linear(3, 2, rng=np.random.default_rng(1)) for _ in range(2))
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert a.tolist() == b.tolist()


def test_inside_no_grad_too_the_parameters_require_grad() -> None:
    with cr.no_grad():
        layer = Linear(3, 2)
    assert all(parameter.requires_grad for parameter in layer.parameters())


def test_learns_a_linear_map() -> None:
    rng = np.random.default_rng(0)
    x = cr.tensor(rng.standard_normal((100, 3)), dtype=cr.float32)
    y = x @ cr.tensor([[1.0], [-2.0], [3.0]]) + 0.5
    layer = Linear(3, 1, rng=rng)
    optimizer = SGD(layer.parameters(), lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        cr.nn.functional.mse_loss(layer(x), y).backward()
        optimizer.step()
    assert layer.bias is not None
    np.testing.assert_allclose(layer.weight.tolist(), [[1.0, -2.0, 3.0]], atol=1e-3)
    np.testing.assert_allclose(layer.bias.tolist(), [0.5], atol=1e-3)


def test_biases_are_added_in_the_memory_of_products_alone() -> None:
    rng = np.random.default_rng(0)
    f = cr.nn.functional

    def image(x: cr.Tensor, w: cr.Tensor, b: cr.Tensor | None = None) -> cr.Tensor:
        return f.conv2d(x.reshape(1, 1, 1, -1), w[:, :1, None, None], b)

    pairs = {
        "linear": (f.linear, lambda x, w, b: x @ w.T + b),
        "conv2d": (image, lambda x, w, b: image(x, w) + b[:, None, None]),
        "layer_norm": (
            lambda x, w, b: f.layer_norm(x, (32,), w[0], b),
            lambda x, w, b: f.layer_norm(x, (32,), w[0]) + b,
        ),
        "without weight": (
            lambda x, w, b: f.layer_norm(x, (32,), None, b) * w[0],
            lambda x, w, b: (f.layer_norm(x, (32,)) + b) * w[0],
        ),
    }
    for rows in (4, 300):  # below and above the size from which the memory is used again
        inputs = [
            cr.tensor(rng.standard_normal(shape), requires_grad=True)
            for shape in ((rows, 32), (32, 32), (32,))
        ]
        before = [x.tolist() for x in inputs]
        for name, pair in pairs.items():
            found = []
            for layer in pair:
                y = layer(*inputs)
                grads = cr.autograd_grad(y.square().sum(), inputs, create_graph=True)
                second = cr.autograd_grad(sum(g.square().sum() for g in grads), inputs)
                found.append([t.detach().numpy() for t in (y, *grads, *second)])
            for one, other in zip(*found, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-9, err_msg=name)
        assert [x.tolist() for x in inputs] == before


def test_biases_that_do_not_fit_the_memory_of_the_product() -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape, np.float32) for shape in ((1, 3), (9000, 3)))
    wide = rng.standard_normal((2, 1, 9000))
    for bias in (rng.standard_normal((2, 9000), np.float32), wide.astype(np.float32), wide):
        wanted = (x @ w.T) + bias
        tensors = [cr.tensor(part, requires_grad=True) for part in (x, w, bias)]
        found = cr.nn.functional.linear(*tensors)
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.detach(), wanted, rtol=1e-4, atol=1e-5)
        grads = cr.autograd_grad(found.sum(), tensors)
        assert [g.shape for g in grads] == [t.shape for t in tensors]
