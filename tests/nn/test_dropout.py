"""Dropout: the dropped elements, their frequency, and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.nn import functional as F
from chainrule.nn.functional.dropout import keep_mask


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 1e-3, 1 / 3])
def test_each_element_stays_with_its_probability(p: float) -> None:
    keep = keep_mask((1000, 200), p, rng())
    assert keep.dtype == bool
    assert keep.mean() == pytest.approx(1 - p, abs=5 * np.sqrt(p * (1 - p) / keep.size))
    rows = keep.mean(1)
    assert rows.std() == pytest.approx(np.sqrt(p * (1 - p) / 200), rel=0.2)


def test_a_probability_smaller_than_a_bin_is_met() -> None:
    dropped = (~keep_mask((4_000_000,), 1e-5, rng())).sum()
    assert 15 <= dropped <= 70


@pytest.mark.parametrize("p", [0.0, 0.25, 0.5])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dropout_scales_the_remaining_elements(p: float, dtype: str) -> None:
    x = cr.tensor(np.arange(1, 1001).reshape(10, 100), dtype=dtype, requires_grad=True)
    out = F.dropout(x, p, rng=rng())
    assert out.dtype == x.dtype
    values, before = out.detach().numpy(), x.detach().numpy()
    stays = values != 0
    wanted = before[stays] * x.dtype.type(1 / (1 - p))
    np.testing.assert_array_equal(values[stays], wanted)
    out.backward(cr.ones_like(out))
    np.testing.assert_allclose(x.grad.numpy(), stays / (1 - p), rtol=1e-3)
    assert F.dropout(x, p, rng=rng()).tolist() == out.tolist()


def test_nothing_is_dropped_outside_of_training() -> None:
    x = cr.ones(100)
    for name in ("dropout", "alpha_dropout"):
        assert getattr(F, name)(x, 0.5, training=False) is x
        assert getattr(F, name)(x, 0.0, training=True) is x


def test_everything_is_dropped_with_probability_one() -> None:
    x = cr.ones(100, requires_grad=True)
    for name in ("dropout", "alpha_dropout"):
        out = getattr(F, name)(x, 1.0, training=True)
        assert out.tolist() == [0.0] * 100
        assert cr.autograd_grad(out.sum(), x)[0].tolist() == [0.0] * 100


@pytest.mark.parametrize("p", [0.2, 0.5])
def test_alpha_dropout_keeps_mean_and_variance(p: float) -> None:
    x = cr.tensor(rng().standard_normal(200_000))
    out = F.alpha_dropout(x, p, training=True, rng=rng())
    assert out.mean().item() == pytest.approx(0, abs=0.02)
    assert out.std().item() == pytest.approx(1, abs=0.02)


def test_alpha_dropout_has_two_values_of_zeros_as_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    ours = F.alpha_dropout(cr.zeros(1000, dtype=cr.float64), 0.3, training=True, rng=rng())
    theirs = torch.nn.functional.alpha_dropout(torch.zeros(1000, dtype=torch.float64), 0.3, True)
    np.testing.assert_allclose(np.unique(ours.numpy()), theirs.unique().numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "shape", "together"),
    [
        ("dropout1d", (20, 30, 4), (20, 30, 1)),
        ("dropout1d", (30, 4), (30, 1)),
        ("dropout2d", (20, 30, 2, 2), (20, 30, 1, 1)),
        ("dropout2d", (20, 30, 4), (20, 30, 1)),
        ("dropout3d", (20, 30, 2, 2, 2), (20, 30, 1, 1, 1)),
        ("dropout3d", (30, 2, 2, 2), (30, 1, 1, 1)),
        ("feature_alpha_dropout", (20, 30, 4), (20, 30, 1)),
    ],
)
def test_channels_are_dropped_as_a_whole(
    name: str, shape: tuple[int, ...], together: tuple[int, ...]
) -> None:
    x = cr.ones(shape, requires_grad=True)
    out = getattr(F, name)(x, 0.5, training=True, rng=rng())
    values = out.detach().numpy()
    first = values[tuple(slice(0, n) for n in together)]
    np.testing.assert_array_equal(values, np.broadcast_to(first, shape))
    assert len(np.unique(values)) == 2
    out.sum().backward()
    assert len(np.unique(x.grad.numpy())) == 2


def test_dropout2d_of_a_matrix_drops_elements_and_warns() -> None:
    with pytest.warns(UserWarning, match="dropout does the same"):
        out = F.dropout2d(cr.ones(20, 30), rng=rng())
    assert out.tolist() == F.dropout(cr.ones(20, 30), rng=rng()).tolist()


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout"])
def test_inplace(name: str) -> None:
    leaf = cr.ones(50, requires_grad=True)
    x = leaf * 2
    out = getattr(F, name)(x, 0.5, training=True, inplace=True, rng=rng())
    assert out is x
    beside = getattr(F, name)(leaf * 2, 0.5, training=True, rng=rng())
    assert out.tolist() == beside.tolist()
    out.sum().backward()
    assert set(leaf.grad.tolist()) == {0.0, leaf.grad.max().item()}


def test_forward_mode_goes_through_the_same_draw() -> None:
    x, t = cr.ones(20), cr.full((20,), 3.0)
    out, tangent = cr.jvp(lambda x: F.dropout(x, 0.5, rng=rng()), (x,), (t,))
    np.testing.assert_array_equal(tangent.numpy(), out.numpy() * 3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.dropout(cr.ones(3), 1.5), "has to be between 0 and 1, but got 1.5"),
        (lambda: F.alpha_dropout(cr.ones(3), -1), "alpha_dropout: dropout probability has to be"),
        (lambda: F.dropout1d(cr.ones(3)), "dropout1d: expected 2 or 3 dimensions.*but got 1"),
        (lambda: F.dropout2d(cr.ones(3)), "dropout2d: expected 3 or 4 dimensions.*but got 1"),
        (lambda: F.dropout3d(cr.ones(3, 2)), "dropout3d: expected 4 or 5 dimensions.*but got 2"),
        (
            lambda: F.feature_alpha_dropout(cr.ones(3), training=True),
            "expected at least 2 dimensions",
        ),
    ],
    ids=["p", "alpha", "1d", "2d", "3d", "feature"],
)
def test_errors(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()
