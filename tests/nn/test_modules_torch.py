"""Layers beside PyTorch's from equal weights: outputs, gradients, state dicts, printing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from helpers.layers import CASES, LABELED, Case, draw, outputs

torch = pytest.importorskip("torch")


SINGLE = {"CELU", "Hardsigmoid"}
"""Layers whose settings PyTorch rounds to float32."""


def pair(each: Case, dtype: str) -> tuple[Any, Any]:
    """Return both layers, with PyTorch's initial weights."""
    theirs = getattr(torch.nn, each.layer)(*each.args, **each.kwargs).to(getattr(torch, dtype))
    ours = getattr(cr.nn, each.layer)(*each.args, **each.kwargs).to(dtype)
    with torch.no_grad():
        for p in theirs.parameters():  # zeros and ones hide what they multiply
            p.add_(torch.empty_like(p).uniform_(-0.2, 0.2))
    assert repr(ours.load_state_dict(theirs.state_dict())) == "<All keys matched successfully>"
    return ours.train(each.train), theirs.train(each.train)


def run(layer: Any, library: Any, arrays: list[Any], each: Case) -> tuple[list[Any], list[Any]]:
    """Return the outputs, and the gradients of a weighted sum of them by inputs and parameters."""
    inputs = [
        library.tensor(a).requires_grad_(
            a.dtype.kind == "f" and (each.layer not in LABELED or not i)
        )
        for i, a in enumerate(arrays)
    ]
    if each.layer == "CTCLoss":  # PyTorch's gradient is that of its composition with log_softmax
        inputs[0] = library.tensor(arrays[0]).requires_grad_()
        layer, loss = lambda x, *rest: loss(x.log_softmax(-1), *rest), layer
        layer.parameters = loss.parameters
    passed = [x.clone() if "inplace" in each.kwargs else x for x in inputs]
    found = outputs(layer(*passed))
    rng = np.random.default_rng(1)
    total = sum((y * library.tensor(rng.normal(size=tuple(y.shape)))).sum() for y in found)
    if total.requires_grad:
        total.backward()
    leaves = [*inputs, *layer.parameters()]
    return found, [None if t.grad is None else np.asarray(t.grad) for t in leaves]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("each", CASES, ids=str)
def test_outputs_gradients_and_state_follow_pytorch(each: Case, dtype: str) -> None:
    torch.manual_seed(0)
    ours, theirs = pair(each, dtype)
    rng = np.random.default_rng(0)
    arrays = [draw(specification, rng, dtype) for specification in each.inputs]
    tolerance = 2e-5 if dtype == "float32" else 1e-10
    if each.layer in SINGLE and dtype == "float64":
        tolerance = 1e-7
    results = [run(layer, lib, arrays, each) for layer, lib in ((ours, cr), (theirs, torch))]
    assert len(results[0][0]) == len(results[1][0])
    for y, expected in zip(results[0][0], results[1][0], strict=True):
        assert str(expected.dtype).endswith(y.dtype.name)
        np.testing.assert_allclose(
            y.detach().numpy(), expected.detach().numpy(), atol=tolerance, rtol=tolerance
        )
    for gradient, expected in zip(results[0][1], results[1][1], strict=True):
        assert (gradient is None) == (expected is None)
        if expected is not None:
            np.testing.assert_allclose(gradient, expected, atol=tolerance, rtol=tolerance)
    state, their_state = ours.state_dict(), theirs.state_dict()
    assert list(state) == list(their_state)
    for name, value in state.items():  # running statistics were updated
        assert value.shape == tuple(their_state[name].shape)
        np.testing.assert_allclose(value.numpy(), their_state[name].numpy(), atol=tolerance)
    arrays_of = {name: torch.from_numpy(value.numpy()) for name, value in state.items()}
    theirs.load_state_dict(arrays_of)


@pytest.mark.parametrize("each", CASES, ids=str)
def test_layers_print_as_pytorchs(each: Case) -> None:
    layers = [getattr(lib.nn, each.layer)(*each.args, **each.kwargs) for lib in (cr, torch)]
    assert repr(layers[0]) == repr(layers[1])


def test_the_adaptive_softmax_has_all_probabilities() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], div_value=2.0)
    ours = cr.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], div_value=2.0)
    ours.load_state_dict(theirs.state_dict())
    x = np.random.default_rng(0).normal(size=(4, 8)).astype("float32")
    log_prob = ours.log_prob(cr.tensor(x))
    expected = theirs.log_prob(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(log_prob.detach().numpy(), expected, rtol=1e-5)
    assert ours.predict(cr.tensor(x)).tolist() == theirs.predict(torch.tensor(x)).tolist()
    one = ours(cr.tensor(x[0]), cr.tensor(7))
    assert one.output.shape == ()
    assert one.loss.item() == pytest.approx(-expected[0, 7], rel=1e-5)
    for target, text in ((20, r"in \[0, 19\]"), (-1, r"in \[0, 19\]")):
        with pytest.raises(IndexError, match=text):
            ours(cr.tensor(x[:1]), cr.tensor([target]))
    for cutoffs in ([], [5, 5], [10, 5], [0, 5], [20]):
        with pytest.raises(cr.ArgumentError, match="sorted in an increasing order"):
            cr.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs)
