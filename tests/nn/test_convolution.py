"""Convolutions, compared with PyTorch to the second order, and their errors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.nn import functional as F
from helpers.torch_comparison import compare_with_torch

RNG = np.random.default_rng(0)


def draw(*shape: int, dtype: str = "float64") -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(dtype)


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions_as_in_pytorch(
    rank: int, stride: int, padding: int, dilation: int, groups: int
) -> None:
    def function(lib: Any, x: Any, w: Any, b: Any) -> Any:
        name = f"conv{rank}d"
        return getattr(lib, name)(x, w, b, stride, padding, dilation, groups)

    size, kernel = (7, 6, 5)[:rank], (3, 2, 2)[:rank]
    compare_with_torch(function, draw(2, 4, *size), draw(4, 4 // groups, *kernel), draw(4))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dilation", [1, 3])
@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize("stride", [2, 3])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposes_as_in_pytorch(
    rank: int, stride: int, padding: int, kept: int, dilation: int, groups: int
) -> None:
    def function(lib: Any, x: Any, w: Any, b: Any) -> Any:
        name = f"conv_transpose{rank}d"
        return getattr(lib, name)(x, w, b, stride, padding, kept, groups, dilation)

    size, kernel = (3, 4, 3)[:rank], (3, 3, 2)[:rank]
    compare_with_torch(function, draw(2, 4, *size), draw(4, 3, *kernel), draw(3 * groups))


@pytest.mark.parametrize(
    ("shape", "kernel", "settings"),
    [
        ((2, 3, 9, 8), (4, 3, 3, 2), {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 3)}),
        ((2, 9, 8), (4, 2, 4, 3), {"padding": "same", "dilation": (1, 2)}),
        ((1, 2, 6, 6), (4, 2, 3, 3), {"padding": "valid"}),
        ((3, 2, 6, 7), (5, 2, 1, 1), {}),
        ((3, 2, 6, 7), (5, 2, 1, 1), {"stride": 2}),
        ((3, 2, 6, 7), (5, 2, 2, 2), {"stride": 4, "padding": 1}),
        ((1, 1, 3, 3), (1, 1, 3, 3), {"padding": 5}),
        ((2, 1, 1, 1), (2, 1, 1, 1), {}),
        ((0, 2, 4, 4), (3, 2, 3, 3), {}),
        ((5, 2, 4, 4), (6, 1, 3, 3), {"groups": 2}),
    ],
)
def test_settings_as_in_pytorch(shape: Any, kernel: Any, settings: Any) -> None:
    compare_with_torch(
        lambda lib, x, w: lib.nn.functional.conv2d(x, w, **settings), draw(*shape), draw(*kernel)
    )


def test_more_samples_than_one_chunk() -> None:
    """Each chunk of a batch uses the memory of the one before it, and the last one is smaller."""
    compare_with_torch(
        lambda lib, x, w: lib.conv2d(x, w, padding=1),
        draw(37, 16, 32, 32),
        draw(16, 16, 3, 3),
        order=1,
    )


def test_output_padding_where_only_the_dilation_allows_it() -> None:
    compare_with_torch(
        lambda lib, x, w: lib.conv_transpose1d(x, w, stride=2, output_padding=2, dilation=3),
        draw(2, 3, 4),
        draw(3, 2, 2),
    )


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_dtypes_are_kept(dtype: str) -> None:
    x = draw(2, 3, 5, 4) + 1j * draw(2, 3, 5, 4) if dtype == "complex128" else draw(2, 3, 5, 4)
    w = draw(2, 3, 2, 2) + 1j * draw(2, 3, 2, 2) if dtype == "complex128" else draw(2, 3, 2, 2)
    compare_with_torch(
        lambda lib, x, w: lib.conv2d(x, w, padding=1), x.astype(dtype), w.astype(dtype)
    )


def test_integers_become_floats_and_half_stays_half() -> None:
    ones = cr.ones(1, 1, 3, 3, dtype=cr.int64)
    assert cr.conv2d(ones, cr.ones(1, 1, 2, 2)).dtype == cr.float32
    half = cr.conv2d(ones.to(cr.float16), cr.ones(1, 1, 2, 2, dtype=cr.float16))
    assert half.dtype == cr.float16
    np.testing.assert_array_equal(half.numpy(), 4)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_convolutions_of_integers_are_integers(dtype: str) -> None:
    rng = np.random.default_rng(3)
    x, w = [rng.integers(0, 99, shape).astype(dtype) for shape in ((1, 2, 5, 4), (2, 2, 2, 2))]
    b = np.array([3, 1], dtype)
    compare_with_torch(lambda lib, x, w, b: lib.conv2d(x, w, b, padding=1), x, w, b)
    if dtype == "int64":
        compare_with_torch(lambda lib, x, w: lib.conv_transpose2d(x, w, stride=2), x, w)
    large = cr.full((1, 1, 2, 2), 2**60 + 1)
    assert cr.conv2d(large, cr.ones(1, 1, 2, 2, dtype=cr.int64)).item() == 2**62 + 4


def test_integers_with_a_bias_of_floats() -> None:
    ones = cr.ones(1, 1, 3, 3, dtype=cr.int64)
    with pytest.raises(TypeError, match="bias type"):
        cr.conv2d(ones, ones, cr.tensor([0.5]))


def test_a_nan_stays_in_the_windows_that_hold_it() -> None:
    image = np.zeros((1, 1, 5, 5))
    image[0, 0, 2, 2] = np.nan
    found = np.isnan(F.conv2d(cr.tensor(image), cr.ones(1, 1, 2, 2, dtype=cr.float64)).numpy())
    assert found.sum() == 4
    assert found[0, 0, 1:3, 1:3].all()


X, W = cr.ones(1, 2, 5, 5), cr.ones(3, 2, 3, 3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.conv2d(cr.ones(5, 5), W), cr.ShapeError, "Expected 3D (unbatched) or 4D"),
        (lambda: F.conv2d(X, cr.ones(3, 3)), cr.ShapeError, "expected weight to be at least 1"),
        (lambda: F.conv2d(X, cr.ones(0, 2, 3, 3)), cr.ShapeError, "weight must not be empty"),
        (lambda: F.conv2d(X, W.double()), cr.DTypeError, "and weight type (float64) should be"),
        (lambda: F.conv2d(X, W, cr.ones(3).double()), cr.DTypeError, "and bias type (float64)"),
        (lambda: F.conv2d(X, W, cr.ones(2)), cr.ShapeError, "1-dimensional with 3 elements"),
        (
            lambda: F.conv2d(cr.ones(1, 4, 5, 5), W),
            cr.ShapeError,
            "Given groups=1, weight of size [3, 2, 3, 3], expected input[1, 4, 5, 5] to have 2 "
            "channels, but got 4 channels instead",
        ),
        (lambda: F.conv2d(X, W, groups=2), cr.ShapeError, "divisible by 2 at dimension 0"),
        (lambda: F.conv2d(X, W, groups=0), ValueError, "non-positive groups is not supported"),
        (
            lambda: F.conv2d(X, W, dilation=3),
            cr.ShapeError,
            "Calculated padded input size per channel: (5 x 5). Kernel size: (7 x 7). Kernel size "
            "can't be greater than actual input size",
        ),
        (lambda: F.conv2d(X, W, stride=0), ValueError, "non-positive stride is not supported"),
        (lambda: F.conv2d(X, W, padding=-1), ValueError, "negative padding is not supported"),
        (lambda: F.conv2d(X, W, stride=(1, 1, 1)), ValueError, "a tuple of 2 ints"),
        (lambda: F.conv2d(X, W, stride=1.5), TypeError, "stride must be an int, or 2 of them"),
        (lambda: F.conv2d(X, W, padding="some"), ValueError, "Invalid padding string: 'some'"),
        (
            lambda: F.conv2d(X, W, padding="same", stride=2),
            ValueError,
            "padding='same' is not supported for strided convolutions",
        ),
        (
            lambda: F.conv_transpose2d(X, W),
            cr.ShapeError,
            "Given transposed=1, weight of size [3, 2, 3, 3], expected input[1, 2, 5, 5] to have 3",
        ),
        (
            lambda: F.conv_transpose2d(X, cr.ones(2, 1, 3, 3), output_padding=1),
            ValueError,
            "output padding must be smaller than either stride or dilation",
        ),
        (
            lambda: F.conv_transpose2d(X, cr.ones(2, 1, 3, 3), padding=4),
            cr.ShapeError,
            "Given input size per channel: (5 x 5). Calculated output size per channel: (-1 x -1).",
        ),
    ],
    ids=range(19),
)
def test_errors_say_what_was_expected(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_groups_of_few_channels_are_convolutions_of_their_own() -> None:
    """Depthwise, by strides and with more images than are computed at a time."""
    rng = np.random.default_rng(0)
    for channels, groups, outputs, how in [
        (70, 70, 70, {"padding": 1}),
        (70, 70, 140, {"stride": 2}),
        (6, 3, 6, {"dilation": 2, "padding": 2}),
        (8, 2, 2, {"padding": (0, 2), "stride": (1, 2)}),
    ]:
        x = cr.tensor(rng.standard_normal((3, channels, 14, 13)))
        shape = (outputs, channels // groups, 3, 3)
        w = cr.tensor(rng.standard_normal(shape), requires_grad=True)
        single = w.detach().clone().requires_grad_()
        out = F.conv2d(x, w, groups=groups, **how)
        pairs = zip(x.chunk(groups, 1), single.chunk(groups), strict=True)
        expected = cr.cat([F.conv2d(part, kernel, **how) for part, kernel in pairs], 1)
        cr.testing.assert_close(out, expected)
        factors = cr.tensor(rng.standard_normal(out.shape))
        (out * factors).sum().backward()
        (expected * factors).sum().backward()
        cr.testing.assert_close(w.grad, single.grad)
