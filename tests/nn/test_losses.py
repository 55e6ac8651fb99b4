"""Losses, compared with PyTorch over arguments and shapes and for huge inputs; their errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.nn import functional as F
from helpers.torch_comparison import compare_with_torch, optional_tensor

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-2, 2, (2, 3, 4))
P, Q = RNG.uniform(0.1, 0.9, (2, 3, 4))
W = RNG.uniform(0.5, 2, (3, 4))
SIGNS = np.array([[1.0, -1, 1, -1], [1, 1, -1, -1], [-1, 1, 1, 1]])
ZEROS_AND_ONES = (SIGNS > 0).astype(float)
COUNTS = np.array([[0.0, 1, 2, 5], [3, 0, 1, 2], [7, 1.5, 0.5, 1]])
VECTORS = RNG.standard_normal((3, 5, 4))
ROWS, CLASSES = RNG.standard_normal((5, 4)), np.array([0, 3, 1, 1, 2])

CALLS: dict[str, tuple[tuple[tuple[np.ndarray, ...], dict[str, Any]], ...]] = {
    "mse_loss": (((X, Y), {}), ((X, Y, W), {"last": "weight"})),
    "l1_loss": (((X, Y), {}), ((X, Y, W), {"last": "weight"})),
    "smooth_l1_loss": (((X, Y), {}), ((X, Y), {"beta": 0.5}), ((X, Y), {"beta": 0})),
    "huber_loss": (((X, Y), {}), ((X, Y), {"delta": 0.5}), ((X, Y, W), {"last": "weight"})),
    "poisson_nll_loss": (
        ((X, COUNTS), {}),
        ((P, COUNTS), {"log_input": False}),
        ((X, COUNTS), {"full": True}),
        ((P, COUNTS), {"log_input": False, "full": True, "eps": 1e-3}),
    ),
    "gaussian_nll_loss": (
        ((X, Y, W), {}),
        ((X, Y, W), {"full": True}),
        ((X, Y, W[:, :1]), {}),
        ((X, Y, W[:, 0]), {}),
        ((X, Y), {"var": 2.0}),
        ((X, Y, W - 0.5), {"eps": 0.7}),
    ),
    "kl_div": (((np.log(P), Q), {}), ((np.log(P), np.log(Q)), {"log_target": True})),
    "binary_cross_entropy": (((P, Q), {}), ((P, Q, W), {"last": "weight"})),
    "binary_cross_entropy_with_logits": (
        ((X, Q), {}),
        ((X, Q, W), {"last": "weight"}),
        ((X, Q, W[0]), {"last": "pos_weight"}),
        ((X, Q, W[0]), {"last": "weight"}),
    ),
    "hinge_embedding_loss": (((X, SIGNS), {}), ((X, SIGNS), {"margin": 0.3})),
    "margin_ranking_loss": (((X, Y, SIGNS), {}), ((X, Y, SIGNS), {"margin": 0.5})),
    "cosine_embedding_loss": (
        ((*VECTORS[:2], SIGNS.ravel()[:5]), {}),
        ((*VECTORS[:2], SIGNS.ravel()[:5]), {"margin": 0.2}),
        ((*VECTORS[:2, 0], np.asarray(-1.0)), {"margin": -0.9}),
    ),
    "triplet_margin_loss": (
        (tuple(VECTORS), {}),
        (tuple(VECTORS), {"margin": 3.0, "p": 1, "swap": True}),
        (tuple(VECTORS), {"p": 3, "eps": 0.1}),
        (tuple(VECTORS[:, 0]), {}),
    ),
    "triplet_margin_with_distance_loss": ((tuple(VECTORS), {"margin": 3.0, "swap": True}),),
    "multi_margin_loss": (
        ((ROWS, CLASSES), {}),
        ((ROWS, CLASSES), {"p": 2, "margin": 0.5}),
        ((ROWS, CLASSES, W[0]), {"last": "weight"}),
        ((ROWS[0], CLASSES[0]), {}),
        ((ROWS[0], CLASSES[:1]), {}),
    ),
    "multilabel_margin_loss": (
        ((ROWS[:3], np.array([[3, 0, -1, 1], [-1, 0, 1, 2], [0, 1, 2, 3]])), {}),
        ((ROWS[0], np.array([2, 2, -1, 3])), {}),
    ),
    "multilabel_soft_margin_loss": (
        ((X, ZEROS_AND_ONES), {}),
        ((X, ZEROS_AND_ONES, W[0]), {"last": "weight"}),
        ((X[0], ZEROS_AND_ONES[0]), {}),
    ),
    "soft_margin_loss": (((X, SIGNS), {}),),
}
GRID = {
    f"{name}-{number}": (name, arrays, settings)
    for name, many in CALLS.items()
    for number, (arrays, settings) in enumerate(many)
}
CONSTANTS = {  # which arguments are no function's variables: weights, signs, counts
    "hinge_embedding_loss": 1,
    "margin_ranking_loss": 2,
    "cosine_embedding_loss": 2,
    "poisson_nll_loss": 1,
    "multi_margin_loss": 1,
    "multilabel_margin_loss": 1,
    "multilabel_soft_margin_loss": 1,
    "soft_margin_loss": 1,
}


# PyTorch has no second derivatives of these.
NO_SECOND = ("binary_cross_entropy", "multilabel_margin_loss", "multi_margin_loss")


def _call(
    library: Any, name: str, settings: dict[str, Any], constants: Sequence[Any], reduction: str
) -> Callable[..., Any]:
    """Return a loss as a function of its differentiable inputs."""
    function = getattr(library.nn.functional, name)
    settings = {**settings, "reduction": reduction}
    last = settings.pop("last", None)
    constants = [library.tensor(a) for a in constants]

    def call(*variables: Any) -> Any:
        given = [*variables, *constants]
        if last is not None:
            return function(*given[:-1], **{last: given[-1]}, **settings)
        return function(*given, **settings)

    return call


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("call", GRID)
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
def test_as_in_pytorch(call: str, reduction: str) -> None:
    name, arrays, settings = GRID[call]
    count = CONSTANTS.get(name, len(arrays) - ("last" in settings))
    compare_with_torch(
        lambda lib, *xs: _call(lib, name, settings, arrays[count:], reduction)(*xs),
        *arrays[:count],
        order=1 if name in NO_SECOND else 2,
        rtol=1e-8,
    )


LIFTED = "gaussian_nll_loss-5"  # its gradient is that of variances which were not lifted


@pytest.mark.parametrize("call", sorted(set(GRID) - {LIFTED}))
def test_derivatives_to_second_order(call: str) -> None:
    name, arrays, settings = GRID[call]
    count = CONSTANTS.get(name, len(arrays) - ("last" in settings))
    function = _call(cr, name, settings, arrays[count:], "none")
    inputs = tuple(cr.tensor(a, requires_grad=True) for a in arrays[:count] if a.dtype.kind == "f")
    assert cr.gradcheck(function, inputs, fast_mode=True)
    assert cr.gradgradcheck(function, inputs, fast_mode=True)


@pytest.mark.parametrize("call", GRID)
def test_single_precision_is_kept(call: str) -> None:
    name, arrays, settings = GRID[call]
    inputs = [cr.tensor(a.astype("float32") if a.dtype.kind == "f" else a) for a in arrays]
    loss = _call(cr, name, settings, [], "none")(*inputs)
    assert loss.dtype == cr.float32


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_shapes_that_broadcast_get_a_warning(name: str) -> None:
    with pytest.warns(UserWarning, match=rf"{name}: using a target size \(\[4\]\) that is differ"):
        loss = getattr(F, name)(cr.ones(3, 4), cr.zeros(4))
    assert loss.shape == ()


def test_batchmean_of_kl_div_as_in_pytorch() -> None:
    compare_with_torch(
        lambda lib, x, y: lib.nn.functional.kl_div(x, y, reduction="batchmean"),
        np.log(P),
        Q,
        order=1,
    )


def test_kl_div_of_impossible_classes_is_finite() -> None:
    p = cr.tensor([0.0, 1.0], requires_grad=True)
    loss = F.kl_div(cr.tensor([0.5, 0.5]).log(), p, reduction="sum")
    assert loss.item() == pytest.approx(math.log(2))
    loss.backward()
    np.testing.assert_allclose(p.grad.numpy(), [math.log(2), 1 + math.log(2)], rtol=1e-6)


# --- cross entropies ------------------------------------------------------------------------------

SHAPES = {
    "rows": (RNG.standard_normal((5, 4)), np.array([0, 3, -100, 1, 2])),
    "single": (RNG.standard_normal(4), np.asarray(2)),
    "images": (RNG.standard_normal((3, 4, 2, 2)), RNG.integers(0, 4, (3, 2, 2))),
    "sequences": (RNG.standard_normal((3, 4, 2)), np.array([[0, -100], [1, 3], [-100, 2]])),
    "hopeless": (1e4 * RNG.standard_normal((5, 4)), RNG.integers(0, 4, 5)),
    "ignored": (RNG.standard_normal((2, 4)), np.array([-100, -100])),
    "no-rows": (RNG.standard_normal((0, 4)), np.zeros(0, int)),
}
SETTINGS = [
    {"reduction": reduction, "weight": weight, "label_smoothing": smoothing}
    for reduction, weight, smoothing in product(("mean", "sum", "none"), (None, W[0]), (0.0, 0.3))
]


def _names(settings: dict[str, Any]) -> str:
    weight = "weighted" if settings["weight"] is not None else "plain"
    return f"{settings['reduction']}-{weight}-{settings['label_smoothing']}"


@pytest.mark.parametrize("settings", SETTINGS, ids=_names)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("error")
def test_cross_entropy_as_in_pytorch(shape: str, settings: dict[str, Any]) -> None:
    weight = settings["weight"]
    rest = {key: value for key, value in settings.items() if key != "weight"}
    compare_with_torch(
        lambda lib, x, t: lib.nn.functional.cross_entropy(
            x, t, optional_tensor(lib, weight), **rest
        ),
        *SHAPES[shape],
        order=2 if shape not in ("hopeless", "ignored") else 1,
        rtol=1e-8,
        atol=1e-10,
    )


@pytest.mark.parametrize("settings", SETTINGS, ids=_names)
@pytest.mark.parametrize("shape", [(5, 4), (4,), (3, 4, 2, 2), (0, 4)], ids=str)
def test_cross_entropy_of_probabilities_as_in_pytorch(
    shape: tuple[int, ...], settings: dict[str, Any]
) -> None:
    weight = settings["weight"]
    rest = {key: value for key, value in settings.items() if key != "weight"}
    compare_with_torch(
        lambda lib, x, t: lib.nn.functional.cross_entropy(
            x, t, optional_tensor(lib, weight), **rest
        ),
        RNG.standard_normal(shape),
        RNG.random(shape),
        rtol=1e-8,
    )


@pytest.mark.parametrize("weight", [None, W[0]], ids=["plain", "weighted"])
@pytest.mark.parametrize("index", [-100, 1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nll_loss_as_in_pytorch(reduction: str, index: int, weight: Any) -> None:
    settings = {"reduction": reduction, "ignore_index": index}
    compare_with_torch(
        lambda lib, x, t: lib.nn.functional.nll_loss(
            x, t, optional_tensor(lib, weight), **settings
        ),
        RNG.standard_normal((3, 4, 2)),
        RNG.integers(0, 4, (3, 2)),
        order=2 if reduction == "none" else 1,
    )


def test_scores_that_are_minus_infinity_as_in_pytorch() -> None:
    scores = np.array([[0.0, -np.inf, 1.0], [2.0, 1.0, -np.inf]])
    compare_with_torch(
        lambda lib, x, t: lib.nn.functional.cross_entropy(x, t), scores, np.array([0, 1]), order=1
    )
    impossible = F.cross_entropy(cr.tensor(scores), cr.tensor([1, 1]))
    assert impossible.item() == math.inf


FAR = np.array([-1000.0, -100, -20, 0, 20, 100, 1000])


@pytest.mark.parametrize("target", [0.0, 1.0, 0.25])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.filterwarnings("error")
def test_huge_logits_as_in_pytorch(target: float, dtype: str) -> None:
    compare_with_torch(
        lambda lib, x, y: lib.nn.functional.binary_cross_entropy_with_logits(
            x, y, reduction="none"
        ),
        FAR.astype(dtype),
        np.full(7, target, dtype),
        rtol=1e-5,
        atol=1e-6,
        order=1,
    )


def test_small_losses_of_logits_keep_their_digits() -> None:
    scores, target = cr.tensor([-40.0, 40.0]), cr.tensor([0.0, 1.0])
    for pos_weight in (None, cr.ones(1)):
        loss = F.binary_cross_entropy_with_logits(
            scores, target, reduction="none", pos_weight=pos_weight
        )
        np.testing.assert_allclose(loss.numpy(), math.exp(-40), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.filterwarnings("error")
def test_certain_probabilities_as_in_pytorch(dtype: str) -> None:
    compare_with_torch(
        lambda lib, x, y: lib.nn.functional.binary_cross_entropy(x, y.detach(), reduction="none"),
        np.array([0, 0, 1, 1, 1e-30, 1e-9], dtype),
        np.array([0, 1, 0, 1, 1, 0], dtype),
        rtol=1e-5,
        order=1,
    )


def test_margins_are_cut_off_as_in_pytorch() -> None:
    x = np.array([[1.0, 0.0, 2.0, -1.0]])
    for name, target in {
        "multi_margin_loss": np.array([0]),
        "multilabel_margin_loss": np.array([[0, 2, -1, -1]]),
    }.items():
        compare_with_torch(
            lambda lib, x, t, n=name: getattr(lib.nn.functional, n)(x, t), x, target, order=1
        )
    for name, constants in {
        "hinge_embedding_loss": (np.array([1.0, -1.0, -1.0, 3.0]),),
        "margin_ranking_loss": (np.zeros(4), np.array([1.0, 1.0, -1.0, 1.0])),
    }.items():
        compare_with_torch(
            lambda lib, p, n=name, c=constants: getattr(lib.nn.functional, n)(
                p, *map(lib.tensor, c), margin=1.0
            ),
            x[0],
            order=1,
        )


# --- errors ---------------------------------------------------------------------------------------

_SCORES = cr.zeros(3, 4)
_RIGHT = cr.tensor([0, 1, 2])
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "reduction": (
        lambda: F.l1_loss(_SCORES, _SCORES, reduction="all"),
        ValueError,
        "l1_loss: 'all' is not a valid value for reduction: try",
    ),
    "weight-size": (
        lambda: F.mse_loss(_SCORES, _SCORES, weight=cr.ones(4)),
        ValueError,
        r"Weights and input must have the same size, but got \[4\] and \[3, 4\]",
    ),
    "weighted-reduction": (
        lambda: F.mse_loss(_SCORES, _SCORES, weight=_SCORES, reduction="all"),
        ValueError,
        "'all' is not a valid value",
    ),
    "beta": (
        lambda: F.smooth_l1_loss(_SCORES, _SCORES, beta=-1),
        ValueError,
        "does not support negative values for beta, but got -1",
    ),
    "delta": (
        lambda: F.huber_loss(_SCORES, _SCORES, delta=0),
        ValueError,
        "does not support non-positive values for delta, but got 0",
    ),
    "negative-var": (
        lambda: F.gaussian_nll_loss(_SCORES, _SCORES, -1.0),
        ValueError,
        "var has negative entry/entries",
    ),
    "var-size": (
        lambda: F.gaussian_nll_loss(_SCORES, _SCORES, cr.ones(5)),
        ValueError,
        r"var is of incorrect size: \[5\] for an input of size \[3, 4\]",
    ),
    "smoothing": (
        lambda: F.cross_entropy(_SCORES, _RIGHT, label_smoothing=1.5),
        ValueError,
        r"label_smoothing must be between 0.0 and 1.0. Got: 1.5",
    ),
    "class-weights": (
        lambda: F.cross_entropy(_SCORES, _RIGHT, cr.ones(3)),
        ValueError,
        r"for all 4 classes or no classes but got weight tensor of shape: \[3\]",
    ),
    "ignored-probabilities": (
        lambda: F.cross_entropy(_SCORES, _SCORES, ignore_index=1),
        ValueError,
        "ignore_index is not supported for floating point target",
    ),
    "no-class": (lambda: F.cross_entropy(_SCORES, cr.tensor([0, 1, 4])), IndexError, "Target 4"),
    "probabilities": (
        lambda: F.binary_cross_entropy(cr.tensor([0.5, 1.5]), cr.ones(2)),
        ValueError,
        "elements of input should be between 0 and 1, but they are between 0.5 and 1.5",
    ),
    "nan-probability": (
        lambda: F.binary_cross_entropy(cr.tensor([math.nan]), cr.ones(1)),
        ValueError,
        "elements of input should be between 0 and 1",
    ),
    "bce-size": (
        lambda: F.binary_cross_entropy(cr.ones(3, 1), cr.ones(3)),
        ValueError,
        r"Using a target size that is different to the input: \[3\] and \[3, 1\]",
    ),
    "logits-size": (
        lambda: F.binary_cross_entropy_with_logits(_SCORES, cr.ones(3)),
        ValueError,
        "Target size must be the same as input size",
    ),
    "ranking": (
        lambda: F.margin_ranking_loss(_SCORES, _SCORES, cr.ones(3)),
        ValueError,
        r"same dimension but got sizes: input1: \[3, 4\].*target: \[3\]",
    ),
    "cosine-target": (
        lambda: F.cosine_embedding_loss(_SCORES, _SCORES, cr.ones(3, 1)),
        ValueError,
        "0D or 1D target tensor expected, multi-target not supported",
    ),
    "cosine-inputs": (
        lambda: F.cosine_embedding_loss(cr.ones(4), cr.ones(4), cr.ones(3)),
        ValueError,
        r"1D target tensor expects 2D input tensors, but found inputs with sizes \[4\]",
    ),
    "triplet": (
        lambda: F.triplet_margin_loss(_SCORES, _SCORES, cr.ones(4)),
        ValueError,
        "anchor 2D, positive 2D, and negative 1D inputs",
    ),
    "power": (
        lambda: F.multi_margin_loss(_SCORES, _RIGHT, p=3),
        ValueError,
        "only p == 1 and p == 2 supported, but got 3",
    ),
    "margin-dtype": (
        lambda: F.multi_margin_loss(_SCORES, cr.ones(3)),
        TypeError,
        "expected integers in target, but got float32",
    ),
    "margin-size": (
        lambda: F.multi_margin_loss(_SCORES, cr.tensor([0, 1])),
        ValueError,
        r"inconsistent target size: \[2\] for input of size: \[3, 4\]",
    ),
    "margin-class": (
        lambda: F.multi_margin_loss(_SCORES, cr.tensor([0, 1, 4])),
        IndexError,
        "target out of range: 4 is none of the 4 classes",
    ),
    "margin-weight": (
        lambda: F.multi_margin_loss(_SCORES, _RIGHT, weight=cr.ones(3)),
        ValueError,
        r"inconsistent weight size, expected 4 but got \[3\]",
    ),
    "margin-input": (
        lambda: F.multi_margin_loss(cr.ones(2, 3, 4), _RIGHT),
        ValueError,
        "Expected non-empty vector or matrix",
    ),
    "labels-dtype": (
        lambda: F.multilabel_margin_loss(_SCORES, _SCORES),
        TypeError,
        "expected integers in target, but got float32",
    ),
    "labels-size": (
        lambda: F.multilabel_margin_loss(_SCORES, _RIGHT),
        ValueError,
        r"inconsistent target size: \[3\] for input of size: \[3, 4\]",
    ),
    "labels-class": (
        lambda: F.multilabel_margin_loss(cr.ones(4), cr.tensor([0, 4, -1, 0])),
        IndexError,
        "target is out of range: 4 is none of the 4 classes",
    ),
    "labels-reduction": (
        lambda: F.multilabel_soft_margin_loss(_SCORES, _SCORES, reduction="all"),
        ValueError,
        "multilabel_soft_margin_loss: 'all' is not a valid value",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, error, text = ERRORS[case]
    with pytest.raises(error, match=text):
        call()


def test_one_class_is_a_loss_of_one_score() -> None:
    x, y = np.array(0.3), np.array(0)
    for reduction in ("mean", "none"):
        for name in ("multi_margin_loss", "multilabel_margin_loss"):
            compare_with_torch(
                lambda lib, x, y, n=name, r=reduction: getattr(lib.nn.functional, n)(
                    x, y, reduction=r
                ),
                x,
                y,
                order=1,
            )


def test_targets_may_be_unsigned() -> None:
    compare_with_torch(
        lambda lib, x, y, t: lib.nn.functional.cosine_embedding_loss(x, y, t, margin=0.1),
        np.arange(6.0).reshape(2, 3),
        np.ones((2, 3)),
        np.array([1, 0], dtype=np.uint8),
        order=1,
    )
