"""Normalisation with weight and bias in blocks, beside the same from separate operations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.kernels import layer_norm
from chainrule.nn import functional as F
from chainrule.primitives import normalisation

RNG = np.random.default_rng(0)
ROWS = [(5, 3), (700, 3), (37, 600), (3, 2100), (2, 5, 4, 3)]
IMAGES = [(3, 4, 40), (2, 6, 6, 6), (5, 4, 30, 20), (2, 4, 3)]


def results(function: Any, shape: tuple[int, ...], of_weight: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(s) for s in (shape, of_weight, of_weight)]
    inputs = [cr.tensor(a, requires_grad=True) for a in arrays]
    out = function(*inputs)
    out.backward(cr.tensor(rng.standard_normal(shape)))
    return [out.detach().numpy(), *[x.grad.numpy() for x in inputs]]


def compare(found: list[Any], wanted: list[Any]) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


@pytest.fixture(params=[1 << 18, 64], ids=["one block", "blocks"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_norm, "_BLOCK_ELEMENTS", request.param)
    monkeypatch.setattr(layer_norm, "PARALLEL_MIN_ELEMENTS", 2 * request.param)
    monkeypatch.setattr(normalisation, "MIN_SIZE", 1)


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("shape", ROWS, ids=str)
def test_layer_norm(shape: tuple[int, ...]) -> None:
    last = shape[1:]
    compare(
        results(lambda x, w, b: F.layer_norm(x, last, w, b), shape, last),
        results(lambda x, w, b: F.layer_norm(x, last) * w + b, shape, last),
    )


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("shape", IMAGES, ids=str)
def test_group_norm(shape: tuple[int, ...], groups: int) -> None:
    each = (-1,) + (1,) * (len(shape) - 2)
    compare(
        results(lambda x, w, b: F.group_norm(x, groups, w, b), shape, shape[1:2]),
        results(
            lambda x, w, b: F.group_norm(x, groups) * w.reshape(each) + b.reshape(each),
            shape,
            shape[1:2],
        ),
    )


def test_float32_of_long_rows_keeps_its_digits() -> None:
    x = RNG.standard_normal((2, 1 << 16)).astype(np.float32) + 100
    w, b = np.ones((2, x.shape[1]), np.float32)
    out = F.layer_norm(cr.from_numpy(x), x.shape[1:], cr.from_numpy(w), cr.from_numpy(b))
    wanted = F.layer_norm(cr.from_numpy(x.astype(np.float64)), x.shape[1:])
    np.testing.assert_allclose(out.numpy(), 1 + wanted.numpy(), atol=2e-4)


def test_a_single_gradient_and_a_weight_alone() -> None:
    x, w = cr.randn(4, 3, dtype=cr.float64), cr.randn(3, dtype=cr.float64, requires_grad=True)
    g = cr.randn(4, 3, dtype=cr.float64)
    F.layer_norm(x, (3,), w).backward(g)
    np.testing.assert_allclose(w.grad, (g * F.layer_norm(x, (3,))).sum(0))
    assert F.layer_norm(x, (3,), None, cr.ones(3, dtype=cr.float64)).mean().item() == pytest.approx(
        1
    )


def test_input_and_output_can_be_overwritten() -> None:
    """What the derivative needs is saved apart from both."""
    x = cr.randn(4, 6, requires_grad=True)
    w, b = cr.ones(6, requires_grad=True), cr.zeros(6, requires_grad=True)
    wanted = cr.autograd_grad(F.layer_norm(x * 1, (6,), w, b).pow(2).sum(), (x, w, b))
    y = x * 1
    out = F.layer_norm(y, (6,), w, b)
    loss = out.pow(2).sum()
    y.zero_()
    for found, gradient in zip(cr.autograd_grad(loss, (x, w, b)), wanted, strict=True):
        np.testing.assert_allclose(found, gradient, rtol=1e-6)
    cr.autograd_grad(F.layer_norm(x, (6,), w).relu_().sum(), x)
    assert math.isfinite(loss.item())
