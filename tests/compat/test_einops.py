"""einops on tensors: values and gradients are those that NumPy and differences give."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

einops = pytest.importorskip("einops")

from chainrule.compat.einops import EinMix, Rearrange, Reduce  # noqa: E402 (without einops, it fails)

X = np.random.default_rng(0).normal(size=(2, 3, 4, 6))


def pooled(operation: str) -> Callable[[Any], Any]:
    return lambda x: einops.reduce(x, "b c (h 2) (w 2) -> b c h w", operation)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "rearrange": lambda x: einops.rearrange(x, "b c (h p) (w q) -> b (p q c) h w", p=2, q=3),
    "rearrange of a list": lambda x: einops.rearrange([x, x * 2], "n b c h w -> b (n c) h w"),
    **{name: pooled(name) for name in ("sum", "mean", "max", "min", "prod")},
    "repeat": lambda x: einops.repeat(x, "b c h w -> b c (h 2) (n w)", n=3),
    "repeat along a new axis": lambda x: einops.repeat(x, "b c h w -> b n c h w", n=4),
    "einsum": lambda x: einops.einsum(x, x, "b c h w, b c h v -> b w v"),
    "pack": lambda x: einops.pack([x, x * 2], "b * h w")[0],
    "unpack": lambda x: einops.unpack(x, [[1], [2]], "b * h w")[1],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_einops_take_tensors(name: str) -> None:
    function = FUNCTIONS[name]
    wanted = function(X)
    for found in (
        function(cr.tensor(X)),
        cr.compile(function)(cr.tensor(X)),
        cr.vmap(function)(cr.tensor(X[None]))[0],
    ):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)
    assert cr.gradcheck(function, cr.tensor(X[:1, :, :2], requires_grad=True), fast_mode=True)


def test_any_and_all() -> None:
    for operation in ("any", "all"):
        found = einops.reduce(cr.tensor(X > 0), "b c h w -> b w", operation)
        assert found.tolist() == einops.reduce(X > 0, "b c h w -> b w", operation).tolist()


def test_other_tools_of_einops() -> None:
    x = cr.tensor(X, requires_grad=True)
    assert einops.parse_shape(x, "b _ h w") == {"b": 2, "h": 4, "w": 6}
    np.testing.assert_array_equal(einops.asnumpy(x), X)
    with pytest.raises(einops.EinopsError, match="expected 3 dims"):
        einops.rearrange(x, "a b c -> c b a")


def test_layers_are_modules() -> None:
    mix = EinMix("b c h w -> b (o c) h", weight_shape="o w", bias_shape="o", o=5, w=6)
    net = cr.nn.Sequential(
        Reduce("b c (h 2) w -> b c h w", "max"), mix, Rearrange("b c h -> b (c h)")
    )
    assert "(2): Rearrange('b c h -> b (c h)')" in repr(net)
    assert {name: tuple(p.shape) for name, p in net.named_parameters()} == {
        "1.weight": (5, 6),
        "1.bias": (1, 5, 1, 1),
    }
    net = copy.deepcopy(net.double())
    x = cr.tensor(X)
    largest = X.reshape(2, 3, 2, 2, 6).max(3)
    weight, bias = (p.detach().numpy() for p in net.parameters())
    wanted = np.einsum("bchw,ow->boch", largest, weight) + bias
    np.testing.assert_allclose(net(x).detach().numpy(), wanted.reshape(2, -1), rtol=1e-12)
    net(x).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


def test_layers_are_those_for_pytorch() -> None:
    torch = pytest.importorskip("torch")
    from einops.layers import torch as theirs

    settings: dict[str, Any] = {
        "weight_shape": "g i o",
        "bias_shape": "g o",
        "g": 3,
        "i": 6,
        "o": 4,
    }
    ours, other = (kind("b g h i -> b h (g o)", **settings) for kind in (EinMix, theirs.EinMix))
    other.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    x = X.astype(np.float32)
    np.testing.assert_allclose(
        ours(cr.tensor(x)).detach().numpy(),
        other(torch.tensor(x)).detach().numpy(),
        rtol=1e-5,
        atol=1e-6,
    )
