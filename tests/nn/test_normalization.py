"""Normalisation, compared with PyTorch over shapes and arguments; running statistics, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.nn import functional as F
from helpers.torch_comparison import compare_with_torch, same_as_torch

RNG = np.random.default_rng(0)
LAYERS = {"rows": ((3, 4), (4,)), "images": ((2, 3, 4, 2), (4, 2)), "one": ((2, 3, 1), (1,))}


@pytest.mark.parametrize("given", [0, 1, 2])
@pytest.mark.parametrize("case", LAYERS)
def test_layer_norm_as_in_pytorch(case: str, given: int) -> None:
    shape, normalized = LAYERS[case]
    arrays = [RNG.standard_normal(shape), *RNG.standard_normal((2, *normalized))]
    compare_with_torch(
        lambda lib, x, *more: lib.nn.functional.layer_norm(x, normalized, *more, eps=0.1),
        *arrays[: 1 + given],
        rtol=1e-8,
        atol=1e-10,
    )


@pytest.mark.parametrize("eps", [None, 0.1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", LAYERS)
def test_rms_norm_as_in_pytorch(case: str, dtype: str, eps: float | None) -> None:
    shape, normalized = LAYERS[case]
    compare_with_torch(
        lambda lib, x, w: lib.nn.functional.rms_norm(x, normalized, w, eps),
        RNG.standard_normal(shape).astype(dtype),
        RNG.standard_normal(normalized).astype(dtype),
        rtol=1e-4 if dtype == "float32" else 1e-8,
        atol=1e-5 if dtype == "float32" else 1e-10,
        order=1,
    )


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 5), (2, 4, 3, 2)], ids=str)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_batch_norm_as_in_pytorch(shape: tuple[int, ...], training: bool, affine: bool) -> None:
    torch = pytest.importorskip("torch")
    statistics = RNG.random((2, 4)) + 0.5
    running = {lib: [lib.tensor(a) for a in statistics] for lib in (cr, torch)}
    arrays = [RNG.standard_normal(shape), *RNG.standard_normal((2, 4))]
    compare_with_torch(
        lambda lib, x, *more: lib.nn.functional.batch_norm(
            x, *running[lib], *more, training=training, momentum=0.3, eps=0.01
        ),
        *arrays[: 3 if affine else 1],
        rtol=1e-7,
        atol=1e-9,
    )
    for a, b, before in zip(running[cr], running[torch], statistics, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
        assert (a.numpy() == before).all() != training
        assert not a.requires_grad


def test_batch_norm_in_single_precision_of_doubles_beside_it() -> None:
    mean, var = cr.zeros(4, dtype=cr.float64), cr.ones(4, dtype=cr.float64)
    for training in (False, True):
        out = F.batch_norm(cr.rand(3, 4), mean, var, mean, var, training=training)
        assert out.dtype == cr.float32
    assert mean.dtype == cr.float64


@pytest.mark.parametrize("shape", [(2, 6), (2, 6, 3), (2, 6, 2, 2)], ids=str)
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_group_norm_as_in_pytorch(shape: tuple[int, ...], groups: int) -> None:
    compare_with_torch(
        lambda lib, x, w, b: lib.nn.functional.group_norm(x, groups, w, b),
        RNG.standard_normal(shape),
        *RNG.standard_normal((2, 6)),
        rtol=1e-7,
        atol=1e-8,
    )


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 2, 2)], ids=str)
def test_instance_norm_as_in_pytorch(shape: tuple[int, ...], own: bool) -> None:
    torch = pytest.importorskip("torch")
    statistics = RNG.random((2, 3)) + 0.5
    running = {lib: [lib.tensor(a) for a in statistics] for lib in (cr, torch)}
    compare_with_torch(
        lambda lib, x, w, b: lib.nn.functional.instance_norm(x, *running[lib], w, b, own, 0.4),
        RNG.standard_normal(shape),
        *RNG.standard_normal((2, 3)),
        rtol=1e-7,
        atol=1e-8,
    )
    for a, b in zip(running[cr], running[torch], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_instance_norm_alone_as_in_pytorch() -> None:
    compare_with_torch(
        lambda lib, x: lib.nn.functional.instance_norm(x),
        RNG.standard_normal((2, 3, 4)),
        rtol=1e-7,
        atol=1e-9,
    )


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("shape", [(2, 4, 3), (2, 4, 3, 2), (1, 4, 2, 1, 2)], ids=str)
def test_local_response_norm_as_in_pytorch(shape: tuple[int, ...], size: int) -> None:
    compare_with_torch(
        lambda lib, x: lib.nn.functional.local_response_norm(x, size, 0.5, 0.8, 2.0),
        RNG.standard_normal(shape),
        rtol=1e-7,
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.layer_norm(x, (3,)),
        lambda x: F.rms_norm(x, 3),
        lambda x: F.group_norm(x, 2),
        lambda x: F.instance_norm(x),
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: F.local_response_norm(x, 2, 0.5),
    ],
    ids=["layer", "rms", "group", "instance", "batch", "local"],
)
def test_derivatives_to_second_order(function: Callable[..., Any]) -> None:
    x = cr.tensor(RNG.standard_normal((2, 2, 3)), requires_grad=True)
    assert cr.gradcheck(function, (x,), fast_mode=True)
    assert cr.gradgradcheck(function, (x,), fast_mode=True)


def test_equal_elements_become_zero() -> None:
    x = cr.full((2, 3), 7.0, requires_grad=True)
    out = F.layer_norm(x, 3)
    assert out.tolist() == [[0.0] * 3] * 2
    out.sum().backward()
    assert np.isfinite(x.grad.numpy()).all()


_X = cr.ones(2, 4, 3)
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "layer": (
        lambda: F.layer_norm(_X, (4,)),
        ValueError,
        r"Given normalized_shape=\[4\], expected input with shape \[\*, 4\], but got.*\[2, 4, 3\]",
    ),
    "layer-empty": (lambda: F.layer_norm(_X, ()), ValueError, "at least 1-dimensional"),
    "layer-weight": (
        lambda: F.layer_norm(_X, 3, cr.ones(4)),
        ValueError,
        r"Expected weight to be of same shape as normalized_shape, but got weight of shape \[4\]",
    ),
    "rms": (lambda: F.rms_norm(_X, 2), ValueError, r"rms_norm: Given normalized_shape=\[2\]"),
    "batch-dims": (lambda: F.batch_norm(cr.ones(3), None, None), ValueError, "at least 2D input"),
    "batch-none": (
        lambda: F.batch_norm(_X, None, None),
        ValueError,
        "Expected running_mean and running_var to be defined when training=False",
    ),
    "batch-weight": (
        lambda: F.batch_norm(_X, None, None, cr.ones(3), training=True),
        ValueError,
        r"weight should contain 4 elements, one for each channel.*shape \[3\]",
    ),
    "batch-one": (
        lambda: F.batch_norm(cr.ones(1, 4), None, None, training=True),
        ValueError,
        r"Expected more than 1 value per channel when training, got input size \[1, 4\]",
    ),
    "group": (
        lambda: F.group_norm(_X, 3),
        ValueError,
        r"to be divisible by num_groups, but got input of shape \[2, 4, 3\] and num_groups=3",
    ),
    "group-dims": (lambda: F.group_norm(cr.ones(4), 2), ValueError, "at least 2 dimensions"),
    "complex": (lambda: F.rms_norm(_X * 1j, 3), TypeError, "expected real numbers, got complex64"),
    "instance-dims": (lambda: F.instance_norm(cr.ones(2, 3)), ValueError, "at least 3 dimensions"),
    "instance-one": (
        lambda: F.instance_norm(cr.ones(2, 3, 1)),
        ValueError,
        "Expected more than 1 spatial element when training",
    ),
    "local": (
        lambda: F.local_response_norm(cr.ones(2, 3), 2),
        ValueError,
        r"Expected 3D or higher dimensionality input \(got 2 dimensions\)",
    ),
}


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_squares_of_half_precision_do_not_overflow(name: str) -> None:
    compare_with_torch(
        lambda lib, x: getattr(lib.nn.functional, name)(x, (3,)),
        np.array([[463.25, 671.0, -325.5]], np.float16),
        order=1,
        rtol=2e-3,
        atol=2e-3,
    )


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, error, text = ERRORS[case]
    with pytest.raises(error, match=text):
        call()


def test_an_empty_batch_leaves_the_running_statistics() -> None:
    for training in (True, False):
        mean, variance = cr.ones(3), cr.full((3,), 2.0)
        x = cr.ones(0, 3, 4, requires_grad=True)
        out = F.batch_norm(x, mean, variance, training=training)
        out.sum().backward()
        assert out.shape == (0, 3, 4)
        assert (mean.tolist(), variance.tolist()) == ([1] * 3, [2] * 3)


@pytest.mark.parametrize("shape", [(40, 3, 30), (5, 60, 30), (2, 3, 2100), (9, 20, 70)], ids=str)
def test_batch_norm_of_sequences_is_that_of_their_elements(shape: tuple[int, ...]) -> None:
    arrays = [RNG.standard_normal(s) for s in (shape, shape, shape[1:2], shape[1:2])]
    g, *of_sequences = [cr.tensor(a, requires_grad=True) for a in arrays]
    of_elements = [cr.tensor(a, requires_grad=True) for a in arrays[1:]]
    out = F.batch_norm(of_sequences[0], None, None, *of_sequences[1:], training=True)
    rows = of_elements[0].moveaxis(1, 2).reshape(-1, shape[1])
    wanted = F.batch_norm(rows, None, None, *of_elements[1:], training=True)
    wanted = wanted.reshape(shape[0], shape[2], shape[1]).moveaxis(2, 1)
    np.testing.assert_allclose(out.numpy(force=True), wanted.numpy(force=True), rtol=1e-9)
    for result in (out, wanted):
        result.backward(g.detach())
    for a, b in zip(of_sequences, of_elements, strict=True):
        assert a.grad is not None
        assert b.grad is not None
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-7, atol=1e-9)


def _running_after(mean: cr.Tensor, x: cr.Tensor, momentum: object = 0.25) -> np.ndarray:
    F.batch_norm(x, mean, None, training=True, momentum=momentum)
    return np.asarray(mean.tolist())


def test_running_statistics_of_every_kind() -> None:
    x = cr.tensor(RNG.standard_normal((7, 3)), dtype=cr.float32)
    wanted = np.full(3, 2.0) + 0.25 * (x.numpy().mean(0) - 2.0)
    base = cr.full((6,), 2.0)
    kinds = [
        (cr.full((3,), 2.0), 0.25),
        (cr.full((3,), 2.0), cr.tensor(0.25)),
        (cr.full((3,), 2.0, dtype=cr.float64), 0.25),
        (cr.nn.Parameter(cr.full((3,), 2.0)), 0.25),
        (base[::2], 0.25),
    ]
    for mean, momentum in kinds:
        np.testing.assert_allclose(_running_after(mean, x, momentum), wanted, rtol=1e-6)
    assert base[1::2].tolist() == [2, 2, 2]
    half = cr.full((3,), 2.0, dtype=cr.float16)
    np.testing.assert_allclose(_running_after(half, x), wanted, rtol=2e-3)


def test_writes_to_running_statistics_are_known() -> None:
    x, weight = cr.ones(4, 3), cr.ones(3, requires_grad=True)
    for mean in (cr.zeros(3), cr.zeros(6)[::2], cr.zeros(3, dtype=cr.float64)):
        loss = (weight * mean).sum()
        F.batch_norm(x, mean, None, training=True)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    fixed = cr.zeros(1).expand(3)
    with pytest.raises(RuntimeError, match="read-only"):
        F.batch_norm(x, fixed, None, training=True)
    with cr.autograd.graph.allow_mutation_on_saved_tensors():
        mean = cr.ones(3)
        loss = (weight * mean).sum()
        F.batch_norm(x, mean, None, training=True)
        loss.backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [1, 1, 1]


def test_the_cumulative_average_of_compiled_steps() -> None:
    layers = [cr.nn.BatchNorm1d(3, momentum=None) for _ in range(2)]
    compiled = cr.compile(layers[1])
    for x in RNG.standard_normal((4, 5, 3)).astype("float32"):
        with cr.no_grad():
            found, wanted = compiled(cr.tensor(x)), layers[0](cr.tensor(x))
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    for own, other in zip(layers[1].buffers(), layers[0].buffers(), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-6, atol=1e-7)
    assert layers[1].num_batches_tracked == 4


def test_a_result_without_weights_may_be_changed_in_place() -> None:
    x = cr.randn(3, 2, 4, requires_grad=True)
    for normalize in (
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: F.instance_norm(x),
    ):
        (expected,) = cr.autograd.grad((normalize(x).relu() ** 3).sum(), x)
        (found,) = cr.autograd.grad((normalize(x).relu_() ** 3).sum(), x)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_normalization_across_maps_as_in_pytorch(size: int) -> None:
    same_as_torch(
        lambda lib: lib.nn.CrossMapLRN2d(size, 0.5, 0.7, 2.0)(lib.arange(56.0).reshape(2, 7, 2, 2)),
        rtol=1e-5,
    )
