"""Pooling, compared with PyTorch to the second order, and its errors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.nn import functional as F
from helpers.torch_comparison import compare_with_torch

RNG = np.random.default_rng(1)
SIZES = (9, 8, 5)
SETTINGS = {
    "plain": {"kernel_size": 2},
    "overlap": {"kernel_size": 3, "stride": 2},
    "apart": {"kernel_size": 2, "stride": 3},
    "padding": {"kernel_size": 3, "stride": 2, "padding": 1},
    "ceil": {"kernel_size": 2, "stride": 2, "ceil_mode": True},
    "ceil-padding": {"kernel_size": 3, "stride": 3, "padding": 1, "ceil_mode": True},
    "one": {"kernel_size": 1},
    "one-apart": {"kernel_size": 1, "stride": 2},
    "whole": {"kernel_size": 5, "stride": 1},
}


def draw(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_maximum_as_in_pytorch(rank: int, settings: str) -> None:
    def function(lib: Any, x: Any) -> Any:
        pool = getattr(lib.nn.functional, f"max_pool{rank}d")
        out, indices = pool(x, **SETTINGS[settings], return_indices=True)
        return out, indices, pool(x, **SETTINGS[settings], dilation=1)

    compare_with_torch(function, draw(2, 3, *SIZES[:rank]))


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("include", [True, False])
def test_mean_as_in_pytorch(rank: int, settings: str, include: bool) -> None:
    def function(lib: Any, x: Any) -> Any:
        pool = getattr(lib.nn.functional, f"avg_pool{rank}d")
        return pool(x, **SETTINGS[settings], count_include_pad=include)

    compare_with_torch(function, draw(2, 3, *SIZES[:rank]))


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel_size": (2, 3), "stride": (3, 1), "padding": (1, 0), "dilation": (1, 2)},
        {"kernel_size": 2, "dilation": 3, "padding": 1},
        {"kernel_size": (3, 2), "stride": 2, "dilation": 2, "ceil_mode": True},
    ],
)
def test_dilated_maximum_as_in_pytorch(settings: Any) -> None:
    compare_with_torch(
        lambda lib, x: lib.nn.functional.max_pool2d(x, **settings, return_indices=True),
        draw(3, 7, 8),
    )


@pytest.mark.parametrize("wrong", [2.0, True, "2", None, (2.0, 2), (2, 2, 2), 0])
def test_a_cached_window_accepts_no_value_of_another_type(wrong: Any) -> None:
    x = cr.from_numpy(draw(2, 3, 8, 8))
    for kernel_size in (2, 1, (2, 2)):
        cr.nn.functional.max_pool2d(x, kernel_size)
    if wrong is True:  # an int all the same
        assert cr.nn.functional.max_pool2d(x, wrong).shape == x.shape
        return
    for _ in range(2):
        with pytest.raises((TypeError, ValueError), match="kernel_size"):
            cr.nn.functional.max_pool2d(x, wrong)


@pytest.mark.parametrize("rank", [2, 3])
def test_divisor_override_as_in_pytorch(rank: int) -> None:
    compare_with_torch(
        lambda lib, x: getattr(lib.nn.functional, f"avg_pool{rank}d")(x, 2, divisor_override=3),
        draw(2, 1, *SIZES[:rank]),
    )


STRANGE = {
    "ties": [[1.0, 1.0, 0.0, 1.0, 1.0, 1.0]],
    "nan": [[1.0, np.nan, np.nan, 0.0, 1.0, np.nan]],
    "lost": [[-np.inf, -np.inf, -np.inf, 0.0, -np.inf, -np.inf]],
    "inf": [[np.inf, 1.0, np.inf, np.inf, 0.0, 1.0]],
}


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("values", STRANGE)
def test_ties_nan_and_infinities_as_in_pytorch(values: str, padding: int) -> None:
    def function(lib: Any, x: Any) -> Any:
        pools = lib.nn.functional
        return (
            *pools.max_pool1d(x, 3, 1, padding, return_indices=True),
            *pools.adaptive_max_pool1d(x, 2, return_indices=True),
        )

    compare_with_torch(function, np.array(STRANGE[values]), order=1)


@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize(
    ("rank", "size"),
    [(1, 3), (1, 4), (1, 12), (2, (3, 5)), (2, (None, 2)), (2, 1), (3, (2, 3, 1)), (3, 9)],
)
def test_adaptive_as_in_pytorch(kind: str, rank: int, size: Any) -> None:
    def function(lib: Any, x: Any) -> Any:
        return getattr(lib.nn.functional, f"adaptive_{kind}_pool{rank}d")(x, size)

    compare_with_torch(function, draw(2, 2, *SIZES[:rank]))


def test_adaptive_indices_as_in_pytorch() -> None:
    compare_with_torch(
        lambda lib, x: lib.nn.functional.adaptive_max_pool2d(x, (4, 3), return_indices=True),
        draw(2, 7, 8),
    )


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0, 1.5])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_power_means_as_in_pytorch(rank: int, power: float) -> None:
    def function(lib: Any, x: Any) -> Any:
        pool = getattr(lib.nn.functional, f"lp_pool{rank}d")
        return pool(x, power, 2), pool(x, power, 3, 2, True)

    compare_with_torch(function, abs(draw(2, 2, *SIZES[:rank])) + 0.1)


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0, float("inf"), -float("inf")])
def test_power_means_of_negative_numbers_as_in_pytorch(power: float) -> None:
    x = draw(2, 3, 8)
    with np.errstate(invalid="ignore"):
        compare_with_torch(lambda lib, x: lib.nn.functional.lp_pool1d(x, power, 2), x)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_maxima_with_their_indices(rank: int) -> None:
    def function(lib: Any, x: Any) -> Any:
        pools = lib.nn.functional
        some = getattr(pools, f"max_pool{rank}d_with_indices")(x, 2, 1)
        return *some, *getattr(pools, f"adaptive_max_pool{rank}d_with_indices")(x, 2)

    compare_with_torch(function, draw(2, 3, *SIZES[:rank]))


def test_power_means_of_zeros_have_no_infinite_gradient() -> None:
    x = cr.zeros(1, 4, requires_grad=True)
    F.lp_pool1d(x, 2, 2).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 0)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_unpooling_as_in_pytorch(rank: int) -> None:
    def function(lib: Any, x: Any) -> Any:
        pools = lib.nn.functional
        found = getattr(pools, f"max_pool{rank}d")(x, 2, return_indices=True)
        unpool = getattr(pools, f"max_unpool{rank}d")
        return unpool(*found, 2, output_size=x.shape)

    compare_with_torch(function, draw(2, 3, *SIZES[:rank]))


def test_unpooling_to_the_usual_size_as_in_pytorch() -> None:
    def function(lib: Any, x: Any) -> Any:
        pools = lib.nn.functional
        return pools.max_unpool2d(*pools.max_pool2d(x, 2, return_indices=True), 2)

    compare_with_torch(function, draw(2, 4, 6))


def test_single_precision_stays() -> None:
    x = cr.ones(1, 4, 4)
    results = [F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 3)]
    assert {out.dtype for out in [*results, F.lp_pool2d(x, 2, 2)]} == {cr.float32}
    assert F.max_pool2d(x.to(cr.float16), 2).dtype == cr.float16


def test_means_of_integers_are_rounded_to_zero() -> None:
    x = np.random.default_rng(3).integers(-99, 99, (2, 3, 6, 5))
    compare_with_torch(lambda lib, x: lib.nn.functional.avg_pool2d(x, 2, padding=1), x)


def test_many_positions_in_a_kernel() -> None:
    """More than a byte can count."""
    compare_with_torch(
        lambda lib, x: lib.nn.functional.max_pool2d(x, 18, 2, return_indices=True),
        draw(1, 20, 21),
    )


X = cr.ones(1, 2, 5, 5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.max_pool2d(cr.ones(5, 5), 2), cr.ShapeError, "Expected 3D (unbatched) or 4D"),
        (lambda: F.max_pool2d(X, 2, padding=2), ValueError, "pad should be at most half of eff"),
        (lambda: F.max_pool2d(X, 6), cr.ShapeError, "Calculated output size is too small"),
        (lambda: F.max_pool2d(X, 0), ValueError, "non-positive kernel_size is not supported"),
        (lambda: F.avg_pool2d(X, 2, divisor_override=0), ValueError, "divisor must be not zero"),
        (
            lambda: F.adaptive_avg_pool2d(cr.ones(1, 0, 2, 2), 1),
            cr.ShapeError,
            "Expected input to have non-zero size for non-batch dimensions",
        ),
        (lambda: F.adaptive_avg_pool2d(X, (1, 2, 3)), ValueError, "output_size must be 2 ints"),
        (
            lambda: F.adaptive_max_pool2d(X, -1),
            ValueError,
            "elements of output_size must be greater than or equal to 0 but got (-1, -1)",
        ),
        (
            lambda: F.max_unpool2d(X, cr.zeros(1, 2, 5, 4, dtype=cr.int64), 2),
            cr.ShapeError,
            "Expected shape of indices to be same as that of the input tensor",
        ),
        (
            lambda: F.max_unpool2d(X, cr.full((1, 2, 5, 5), 100, dtype=cr.int64), 2),
            IndexError,
            "Found an invalid max index: 100 (output volumes are of size 10 x 10)",
        ),
        (
            lambda: F.max_unpool2d(X, cr.zeros(1, 2, 5, 5, dtype=cr.int64), 2, output_size=(5, 5)),
            cr.ShapeError,
            "invalid output_size [5, 5]",
        ),
    ],
    ids=range(11),
)
def test_errors_say_what_was_expected(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_the_largest_of_integers_is_one(dtype: str) -> None:
    x = np.random.default_rng(3).integers(-99, 99, (2, 3, 6, 5)).astype(dtype)
    compare_with_torch(lambda lib, x: lib.nn.functional.max_pool2d(x, 2, padding=1), x, order=0)
    compare_with_torch(
        lambda lib, x: lib.nn.functional.max_pool2d(x, 3, return_indices=True), x, order=0
    )
    assert cr.nn.functional.max_pool1d(cr.tensor([[2**40 + 1, 5]]), 2).item() == 2**40 + 1


# --- fractional -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rank", "sizes"),
    [
        (2, {"kernel_size": 2, "output_size": (5, 4)}),
        (2, {"kernel_size": (2, 3), "output_size": 1}),
        (2, {"kernel_size": 3, "output_ratio": (0.5, 0.7)}),
        (3, {"kernel_size": 2, "output_size": (5, 4, 3)}),
        (3, {"kernel_size": (2, 3, 1), "output_ratio": 0.5}),
    ],
)
def test_fractional_maximum_as_in_pytorch(rank: int, sizes: Any) -> None:
    samples = RNG.random((2, 3, rank))

    def function(lib: Any, x: Any) -> Any:
        pool = getattr(lib.nn.functional, f"fractional_max_pool{rank}d")
        layer = getattr(lib.nn, f"FractionalMaxPool{rank}d")
        settings = {**sizes, "_random_samples": lib.tensor(samples)}
        return *pool(x, **settings, return_indices=True), layer(**settings)(x)

    compare_with_torch(function, draw(2, 3, *SIZES[:rank]))


def test_fractional_maximum_of_no_images() -> None:
    result = F.fractional_max_pool2d(cr.zeros(0, 3, 5, 5), 2, output_size=(2, 3))
    assert result.shape == (0, 3, 2, 3)


def test_fractional_windows_are_drawn() -> None:
    x = cr.arange(400.0).reshape(1, 20, 20)
    cr.manual_seed(0)
    layer = cr.nn.FractionalMaxPool2d(2, output_ratio=0.7)
    results = {tuple(layer(x).flatten().tolist()) for _ in range(20)}
    assert len(results) > 10
    for result in results:
        assert len(set(result)) == len(result) == 14 * 14
        assert result[-1] == 399.0  # the last window ends with the image
    assert F.fractional_max_pool2d_with_indices(x, 2, 7)[1].shape == (1, 7, 7)
    assert F.fractional_max_pool3d_with_indices(x[None], 1, 1)[1].tolist() == [[[[399]]]]


def test_errors_of_fractional_pooling() -> None:
    x = draw(1, 6, 6)
    for sizes in ({}, {"output_size": 3, "output_ratio": 0.5}):
        with pytest.raises(ValueError, match="either an output_size or an output_ratio"):
            cr.nn.FractionalMaxPool2d(2, **sizes)
    with pytest.raises(ValueError, match="output_ratio must be between 0 and 1"):
        cr.nn.FractionalMaxPool3d(2, output_ratio=(0.5, 1.5, 0.5))
    with pytest.raises(ValueError, match="5 windows of 3 don't fit into 6"):
        F.fractional_max_pool2d(x, 3, 5)
    with pytest.raises(ValueError, match=r"_random_samples of shape \[1, 1, 2\], got \[1, 1, 3\]"):
        F.fractional_max_pool2d(x, 2, 3, _random_samples=np.zeros((1, 1, 3)))


def test_samples_of_fractional_pooling_are_a_buffer() -> None:
    torch = pytest.importorskip("torch")
    samples = np.random.default_rng(0).random((2, 1, 2))
    x = np.random.default_rng(1).random((2, 1, 7, 7))
    ours, theirs = (
        lib.nn.FractionalMaxPool2d(2, output_size=3, _random_samples=lib.tensor(samples))
        for lib in (cr, torch)
    )
    assert list(ours.state_dict()) == list(theirs.state_dict())
    np.testing.assert_array_equal(ours(cr.tensor(x)), theirs(torch.tensor(x)))
    ours.load_state_dict({"_random_samples": cr.tensor(1 - samples)})
    theirs.load_state_dict({"_random_samples": torch.tensor(1 - samples)})
    np.testing.assert_array_equal(ours(cr.tensor(x)), theirs(torch.tensor(x)))


def test_a_nan_in_a_window_of_power_means_is_kept() -> None:
    x = cr.tensor([[1.0, float("nan"), 2.0, 3.0]])
    found = F.lp_pool1d(x, 2.0, 2)
    assert found.isnan().tolist() == [[True, False]]
