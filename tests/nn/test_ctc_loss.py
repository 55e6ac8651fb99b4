"""ctc_loss, compared with PyTorch and with the sum over all alignments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import chainrule as cr
from chainrule.checks import gradcheck, gradgradcheck
from helpers.tensors import leaf
from helpers.torch_comparison import same_as_torch

F = cr.nn.functional
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(9, 4, 5))
TARGETS = np.array([[1, 2, 2, 3], [4, 4, 1, 0], [3, 1, 0, 0], [2, 2, 2, 2]])
TIMES, LENGTHS = [9, 7, 4, 8], [4, 3, 2, 4]

CASES = {
    "plain": {},
    "sum": {"reduction": "sum"},
    "none": {"reduction": "none"},
    "one after the other": {"targets": [1, 2, 2, 3, 4, 4, 1, 3, 1, 2, 2, 2, 2]},
    "another blank": {"blank": 3, "targets": TARGETS * 2 % 3},
    "last blank": {"blank": 4, "targets": TARGETS % 4},
    "nothing to say": {"lengths": [0, 3, 0, 4], "reduction": "none"},
    "all times": {"times": [9, 9, 9, 9]},
    "zero_infinity": {"times": [9, 7, 4, 4], "zero_infinity": True, "reduction": "none"},
    "no time, no labels": {"times": [9, 7, 4, 0], "lengths": [4, 3, 2, 0], "reduction": "none"},
}


def loss(lib, logits, **settings):
    times = lib.tensor(settings.pop("times", TIMES))
    lengths = lib.tensor(settings.pop("lengths", LENGTHS))
    targets = lib.module.as_tensor(np.asarray(settings.pop("targets", TARGETS)))
    functional = lib.module.nn.functional
    return functional.ctc_loss(logits.log_softmax(2), targets, times, lengths, **settings)


@pytest.mark.parametrize("settings", CASES.values(), ids=CASES.keys())
def test_values_and_gradients_are_pytorchs(settings):
    def program(lib):
        x = lib.leaf(LOGITS)
        out = loss(lib, x, **settings)
        weights = lib.tensor(np.arange(1.0, 5.0)) if out.ndim else 1.0
        (g,) = lib.grad((out * weights).sum(), x)
        return out + 1, g + 1  # PyTorch's zeros are 1e-17

    same_as_torch(program, rtol=1e-9)


def test_an_infinite_loss_has_no_gradient():
    x = leaf(LOGITS[:, 0])
    out = F.ctc_loss(x.log_softmax(1), cr.tensor([2, 2, 2, 2]), 6, 4, reduction="none")
    assert out.item() == np.inf
    out.backward()
    assert (x.grad == 0).all()


def test_without_a_batch():
    def program(lib):
        x = lib.leaf(LOGITS[:, 0])
        functional = lib.module.nn.functional
        settings = (lib.tensor([1, 2, 2]), lib.tensor(8), lib.tensor(3))
        out = functional.ctc_loss(x.log_softmax(1), *settings, reduction="none")
        return [out, *lib.grad(out, x), functional.ctc_loss(x.log_softmax(1), *settings)]

    same_as_torch(program, rtol=1e-9)


def _collapsed(way):
    return [k for k, _ in itertools.groupby(way) if k]


@pytest.mark.parametrize("labels", [[1], [1, 1], [2, 1], [1, 2, 1], []], ids=str)
def test_it_is_the_sum_over_all_alignments(labels):
    p = RNG.dirichlet(np.ones(3), size=5)
    total = sum(
        np.prod([p[t, k] for t, k in enumerate(way)])
        for way in itertools.product(range(3), repeat=5)
        if _collapsed(way) == labels
    )
    targets = cr.tensor(labels, dtype=cr.int64)
    got = F.ctc_loss(cr.tensor(p).log(), targets, 5, len(labels), reduction="sum")
    np.testing.assert_allclose(got.item(), -np.log(total), rtol=1e-12)


def test_the_derivative_is_that_in_log_probs_itself():
    x = leaf(np.log(RNG.uniform(0.1, 1, size=(5, 2, 3))))
    targets, times, lengths = cr.tensor([[1, 2], [2, 2]]), [5, 4], [2, 2]

    def function(x):
        return F.ctc_loss(x, targets, times, lengths, reduction="none")

    assert gradcheck(function, (x,), fast_mode=True)
    assert gradgradcheck(function, (x,), fast_mode=True)


def test_a_label_of_no_probability_is_never_there():
    p = np.full((4, 3), 1 / 2)
    p[:, 2] = 0
    with np.errstate(divide="ignore"):
        x = leaf(np.log(p))
    out = F.ctc_loss(x, cr.tensor([1]), 4, 1)
    out.backward()
    assert np.isfinite(x.grad.numpy()).all()
    assert np.isclose(out.item(), -np.log(10 / 16))  # ten of sixteen ways
    assert F.ctc_loss(x, cr.tensor([2]), 4, 1).item() == np.inf


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_dtypes_are_kept(dtype):
    x = cr.tensor(LOGITS, dtype=dtype).log_softmax(2)
    out = F.ctc_loss(x, cr.tensor(TARGETS), TIMES, LENGTHS)
    assert out.dtype == dtype
    assert abs(out.item() - loss_of_doubles()) < 0.05


def loss_of_doubles():
    x = cr.tensor(LOGITS).log_softmax(2)
    return F.ctc_loss(x, cr.tensor(TARGETS), TIMES, LENGTHS).item()


X = cr.zeros(9, 4, 5)
T = cr.tensor(TARGETS)
ERRORS = {
    "dims": (lambda: F.ctc_loss(cr.zeros(3), T, TIMES, LENGTHS), "expected log_probs of shape"),
    "blank": (lambda: F.ctc_loss(X, T, TIMES, LENGTHS, 5), "blank must be in label range"),
    "times": (
        lambda: F.ctc_loss(X, T, [9, 9], LENGTHS),
        "input_lengths must be of size",
    ),
    "too long": (lambda: F.ctc_loss(X, T, [10, 9, 9, 9], LENGTHS), "and at most 9, the number"),
    "negative": (lambda: F.ctc_loss(X, T, TIMES, [-1, 1, 1, 1]), "target_lengths to be not neg"),
    "label": (lambda: F.ctc_loss(X, T + 2, TIMES, LENGTHS), "Target 5 is out of bounds"),
    "in a row": (lambda: F.ctc_loss(X, T[0], TIMES, LENGTHS), "target_lengths add up to 13"),
    "narrow": (lambda: F.ctc_loss(X, T[:, :2], TIMES, LENGTHS), "expected targets of shape"),
    "floats": (lambda: F.ctc_loss(X, T * 1.0, TIMES, LENGTHS), "targets must be of integral type"),
    "reduction": (lambda: F.ctc_loss(X, T, TIMES, LENGTHS, reduction="no"), "reduction"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, text = ERRORS[name]
    with pytest.raises((ValueError, IndexError, cr.ShapeError, cr.DTypeError), match=text):
        call()
