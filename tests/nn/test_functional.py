"""Activations and losses, compared with PyTorch and finite differences; their errors."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.nn import functional as F

RNG = np.random.default_rng(0)
SCORES = {
    "batch": (RNG.standard_normal((5, 4)), RNG.integers(0, 4, 5)),
    "single": (RNG.standard_normal(4), np.asarray(2)),
    "images": (RNG.standard_normal((3, 4, 2, 2)), RNG.integers(0, 4, (3, 2, 2))),
    "huge": (1e4 * RNG.standard_normal((5, 4)), RNG.integers(0, 4, 5)),
}


def compared(ours: Any, theirs: Any, *arrays: np.ndarray) -> None:
    """Compare values and gradients of two functions of the same arrays."""
    torch = pytest.importorskip("torch")
    x = [cr.tensor(array, requires_grad=array.dtype.kind == "f") for array in arrays]
    y = [torch.tensor(array, requires_grad=array.dtype.kind == "f") for array in arrays]
    our, their = ours(*x), theirs(*y)
    np.testing.assert_allclose(our.detach().numpy(), their.detach().numpy(), rtol=1e-12)
    our.sum().backward()
    their.sum().backward()
    for a, b in zip(x, y, strict=True):
        if a.requires_grad:
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("case", SCORES)
def test_classification_as_in_pytorch(name: str, case: str, reduction: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = getattr(F, name), getattr(torch.nn.functional, name)
    compared(
        lambda x, t: ours(x, t, reduction=reduction),
        lambda x, t: theirs(x, t, reduction=reduction),
        *SCORES[case],
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_mse_loss_as_in_pytorch(reduction: str) -> None:
    torch = pytest.importorskip("torch")
    compared(
        lambda x, y: F.mse_loss(x, y, reduction=reduction),
        lambda x, y: torch.nn.functional.mse_loss(x, y, reduction=reduction),
        *RNG.standard_normal((2, 3, 4)),
    )


def test_linear_as_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    arrays = [RNG.standard_normal(shape) for shape in [(5, 3), (2, 3), (2,)]]
    compared(F.linear, torch.nn.functional.linear, *arrays)
    compared(F.linear, torch.nn.functional.linear, *arrays[:2])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.cross_entropy(x, cr.tensor([0, 2])),
        lambda x: F.nll_loss(x, cr.tensor([0, 2])),
        lambda x: F.mse_loss(x, cr.ones(2, 3, dtype=cr.float64)),
        lambda x: F.softmax(x, dim=1),
        lambda x: F.log_softmax(x, dim=1),
        F.sigmoid,
        F.relu,
    ],
)
def test_derivatives_to_second_order(function: Any) -> None:
    x = cr.tensor(RNG.standard_normal((2, 3)), requires_grad=True)
    assert cr.gradcheck(function, (x,), fast_mode=True)
    assert cr.gradgradcheck(function, (x,), fast_mode=True)


def test_arguments_by_name() -> None:
    x, weight, bias = cr.ones(2, 3), cr.ones(4, 3), cr.ones(4)
    assert F.linear(input=x, weight=weight, bias=bias).tolist() == [[4.0] * 4] * 2
    assert F.bilinear(input1=x, input2=x, weight=cr.ones(4, 3, 3), bias=bias)[0, 0].item() == 10
    assert F.softmax(input=x, dim=1).tolist() == F.log_softmax(input=x, dim=1).exp().tolist()


def test_cross_entropy_of_very_negative_scores_is_finite() -> None:
    loss = F.cross_entropy(cr.tensor([[0.0, 1e30]]), cr.tensor([0]))
    assert loss.item() == pytest.approx(1e30, rel=1e-6)
    uniform = F.cross_entropy(cr.zeros(7, 10), cr.arange(7))
    assert uniform.item() == pytest.approx(math.log(10))


def test_shapes_that_would_broadcast_get_a_warning() -> None:
    with pytest.warns(
        UserWarning, match=r"target size \(\[3, 1\]\) that is different to the input"
    ):
        F.mse_loss(cr.ones(3), cr.ones(3, 1))


def test_errors_of_the_losses() -> None:
    scores = cr.zeros(3, 4)
    with pytest.raises(ValueError, match="'average' is not a valid value for reduction"):
        F.mse_loss(scores, scores, reduction="average")
    with pytest.raises(ValueError, match=r"input batch_size \(3\) to match.*\[3\], but has \[2\]"):
        F.cross_entropy(scores, cr.tensor([0, 1]))
    with pytest.raises(TypeError, match=r"expected integers in target.*float32"):
        F.cross_entropy(scores, cr.zeros(3))
    with pytest.raises(ValueError, match="no dimension of classes"):
        F.nll_loss(cr.tensor(1.0), cr.tensor(0))
    for wrong in (4, -1, -7):
        with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds: the 4 classes"):
            F.cross_entropy(scores, cr.tensor([0, 1, wrong]))


# --- names and arguments are PyTorch's ------------------------------------------------------------

DEPRECATED = {"size_average", "reduce", "_stacklevel", "out"}
OURS = {"rng", "axis"}


def signature(function: Any) -> list[str]:
    names = list(inspect.signature(function).parameters)
    return [name for name in names if name not in DEPRECATED | OURS]


@pytest.mark.parametrize("name", sorted(F.__all__))
def test_arguments_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn.functional, name, None) or getattr(torch, name)
    assert callable(theirs)
    try:
        wanted = signature(theirs)
    except ValueError:  # written in C++: it does not say
        return
    if wanted not in (["args", "kwargs"], ["input"]):
        assert signature(getattr(F, name)) == wanted


@pytest.mark.parametrize(
    "name",
    [
        *("alpha_dropout", "celu", "celu_", "cosine_similarity", "dropout", "group_norm"),
        *("feature_alpha_dropout", "hardshrink", "layer_norm", "pairwise_distance", "prelu"),
        *("relu_", "rms_norm", "rrelu", "rrelu_", "selu", "selu_", "threshold", "threshold_"),
    ],
)
def test_functions_at_pytorchs_top_level_are_at_this_one(name: str) -> None:
    assert hasattr(pytest.importorskip("torch"), name)
    found = getattr(cr, name)
    assert getattr(found, "without_out", found) is getattr(F, name)
