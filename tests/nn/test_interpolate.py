"""Padding, resizing, folding and sampling, compared with PyTorch; their errors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.nn import functional as F
from helpers.torch_comparison import compare_with_torch, random_array

RNG = np.random.default_rng(2)


def draw(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape)


# --- padding --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, 0.0, 2.5, float("inf")])
@pytest.mark.parametrize(
    "pad", [(1, 2), (0, 1, 2, 0), (-1, 2), (-1, -1, 3, -2), (0, 0), (1, 0, 0, 0, 2, 1), (-2, -1)]
)
def test_constant_padding_as_in_pytorch(pad: Any, value: Any) -> None:
    compare_with_torch(lambda lib, x: lib.nn.functional.pad(x, pad, value=value), draw(2, 3, 4))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    ("shape", "pad"),
    [
        ((2, 5), (3, 1)),
        ((1, 2, 5), (0, 4)),
        ((2, 3, 4), (2, 1, 1, 2)),
        ((1, 2, 3, 4), (3, 3, 0, 2)),
        ((1, 1, 3, 3, 4), (1, 2, 2, 1, 0, 2)),
        ((1, 2, 3, 4), (-1, 1, 2, -1)),
    ],
)
def test_other_padding_as_in_pytorch(mode: str, shape: Any, pad: Any) -> None:
    if mode == "circular" and len(shape) - len(pad) // 2 < 2:
        shape = (1, *shape)
    compare_with_torch(lambda lib, x: lib.nn.functional.pad(x, pad, mode), draw(*shape))


def test_padding_keeps_the_dtype() -> None:
    for dtype in (cr.float16, cr.float32, cr.int64, cr.bool):
        assert F.pad(cr.ones(2, dtype=dtype), (1, 1)).dtype == dtype
        assert F.pad(cr.ones(2, dtype=dtype), (1, 1), "reflect").dtype == dtype


# --- interpolation --------------------------------------------------------------------------------

SHAPES = [(2, 1, 5), (1, 2, 4, 5), (1, 1, 3, 4, 2)]
SIZES = ((7, 3, 4), (2, 5, 1), (5, 9, 3))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "area"])
def test_nearest_and_area_to_a_size_as_in_pytorch(mode: str, shape: Any, size: Any) -> None:
    wanted = size[: len(shape) - 2]
    compare_with_torch(
        lambda lib, x: lib.nn.functional.interpolate(x, wanted, mode=mode), draw(*shape)
    )


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["linear", "bilinear", "bicubic", "trilinear"])
def test_linear_and_cubic_to_a_size_as_in_pytorch(mode: str, size: Any, corners: bool) -> None:
    rank = {"linear": 1, "trilinear": 3}.get(mode, 2)
    compare_with_torch(
        lambda lib, x: lib.nn.functional.interpolate(
            x, size[:rank], mode=mode, align_corners=corners
        ),
        draw(*SHAPES[rank - 1]),
    )


@pytest.mark.parametrize("recompute", [None, True])
@pytest.mark.parametrize("scale", [2, 1.7, 0.6, (0.5, 2.3)])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "area", "bilinear", "bicubic"])
def test_scales_as_in_pytorch(mode: str, scale: Any, recompute: Any) -> None:
    compare_with_torch(
        lambda lib, x: lib.nn.functional.interpolate(
            x, scale_factor=scale, mode=mode, recompute_scale_factor=recompute
        ),
        draw(1, 2, 5, 4),
        order=1,
    )


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("size", [(3, 2), (4, 12), (9, 7)])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiasing_as_in_pytorch(mode: str, size: Any, corners: bool) -> None:
    compare_with_torch(
        lambda lib, x: lib.nn.functional.interpolate(
            x, size, mode=mode, antialias=True, align_corners=corners
        ),
        draw(1, 2, 9, 8),
        order=1,
    )


@pytest.mark.parametrize("count", [7, 13, 100, 333])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear"])
def test_single_precision_chooses_pytorchs_pixels(mode: str, count: int) -> None:
    compare_with_torch(
        lambda lib, x: lib.nn.functional.interpolate(x, count, mode=mode),
        random_array((1, 1, 47), "float32"),
        order=1,
    )


def test_a_nan_stays_where_it_is() -> None:
    image = np.zeros((1, 1, 8, 8))
    image[0, 0, 3, 3] = np.nan
    found = F.interpolate(cr.tensor(image), scale_factor=2, mode="bilinear").numpy()
    assert np.isnan(found).sum() == 16


# --- folding --------------------------------------------------------------------------------------

WINDOWS = [
    {"kernel_size": 2},
    {"kernel_size": (2, 3), "stride": (2, 1), "padding": (1, 0)},
    {"kernel_size": 2, "dilation": (2, 1), "padding": 2, "stride": 3},
    {"kernel_size": 1, "stride": 2},
]


@pytest.mark.parametrize("settings", WINDOWS, ids=range(4))
def test_windows_as_columns_as_in_pytorch(settings: Any) -> None:
    def function(lib: Any, x: Any) -> Any:
        columns = lib.nn.functional.unfold(x, **settings)
        return columns, lib.nn.functional.fold(columns * columns, (5, 6), **settings)

    compare_with_torch(function, draw(2, 3, 5, 6))
    compare_with_torch(function, draw(3, 5, 6), order=1)


@pytest.mark.parametrize("name", ["pixel_shuffle", "pixel_unshuffle", "channel_shuffle"])
def test_shuffles_have_memory_of_their_own(name: str) -> None:
    x = cr.ones(1, 2, 3, 3)
    getattr(F, name)(x, 1).zero_()
    assert x.all()


def test_shuffles_as_in_pytorch() -> None:
    def function(lib: Any, x: Any) -> Any:
        pixels = lib.pixel_shuffle(x, 2)
        back = lib.pixel_unshuffle(pixels * pixels, 2)
        return pixels, back, lib.nn.functional.channel_shuffle(x, 4)

    compare_with_torch(function, draw(2, 8, 2, 3))


# --- grids ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 1, 3), (1, 2, 2, 3, 4)])
def test_affine_grids_as_in_pytorch(size: Any, corners: bool) -> None:
    rank = len(size) - 2
    compare_with_torch(
        lambda lib, x: lib.nn.functional.affine_grid(x, size, corners),
        draw(size[0], rank, rank + 1),
    )


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_samples_as_in_pytorch(mode: str, padding: str, corners: bool) -> None:
    compare_with_torch(
        lambda lib, x, grid: lib.nn.functional.grid_sample(x, grid, mode, padding, corners),
        draw(2, 2, 4, 5),
        2.5 * draw(2, 3, 4, 2),
        order=1 if mode == "bicubic" else 2,
    )


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_samples_of_volumes_as_in_pytorch(mode: str, padding: str, corners: bool) -> None:
    compare_with_torch(
        lambda lib, x, grid: lib.nn.functional.grid_sample(x, grid, mode, padding, corners),
        draw(1, 2, 2, 3, 4),
        1.5 * draw(1, 2, 2, 2, 3),
        order=1,
    )


def test_second_order_of_cubic_samples() -> None:
    x = cr.tensor(draw(1, 1, 4, 4), requires_grad=True)
    grid = cr.tensor(0.6 * draw(1, 2, 1, 2), requires_grad=True)
    assert cr.gradgradcheck(
        lambda x, grid: F.grid_sample(x, grid, "bicubic"), (x, grid), fast_mode=True
    )


# --- errors ---------------------------------------------------------------------------------------

X = cr.ones(1, 2, 4, 4)
GRID = cr.zeros(1, 3, 3, 2)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.pad(X, (1,)), ValueError, "Padding length must be divisible by 2"),
        (lambda: F.pad(X, (1, 1) * 5), cr.ShapeError, "less than or equal to two times the input"),
        (lambda: F.pad(X, (-3, -2)), cr.ShapeError, "resulted in a negative output size"),
        (lambda: F.pad(X, (1, 1), "some"), ValueError, "Unrecognised padding mode 'some'"),
        (lambda: F.pad(X, (1, 1), "reflect", 1.0), ValueError, "doesn't take in value argument"),
        (
            lambda: F.pad(X, (4, 0), "reflect"),
            cr.ShapeError,
            "Padding size should be less than the corresponding input dimension, but got: padding "
            "(4, 0) at dimension 3 of input [1, 2, 4, 4]",
        ),
        (lambda: F.pad(X, (5, 0), "circular"), cr.ShapeError, "wrapping around more than once"),
        (lambda: F.pad(cr.ones(2, 0), (1, 0), "replicate"), cr.ShapeError, "nothing to replicate"),
        (lambda: F.interpolate(X, 2, mode="cubic"), ValueError, "mode is one of nearest"),
        (lambda: F.interpolate(cr.ones(2, 2), 2), cr.ShapeError, "Only 3D, 4D and 5D input"),
        (lambda: F.interpolate(X, 2, mode="linear"), ValueError, "needs 3D input, but got 4D"),
        (
            lambda: F.interpolate(X, 2, align_corners=True),
            ValueError,
            "align_corners option can only be set with the interpolating modes",
        ),
        (lambda: F.interpolate(X, 2, antialias=True), ValueError, "Anti-alias option is restr"),
        (lambda: F.interpolate(X), ValueError, "either size or scale_factor should be defined"),
        (lambda: F.interpolate(X, 2, 2.0), ValueError, "and only one of them"),
        (lambda: F.interpolate(X, (2, 2, 2)), ValueError, "same number of spatial dimensions"),
        (
            lambda: F.interpolate(X, 2, recompute_scale_factor=True),
            ValueError,
            "recompute_scale_factor is not meaningful with an explicit size",
        ),
        (lambda: F.interpolate(X, 0), cr.ShapeError, "should be greater than 0, but got"),
        (lambda: F.unfold(X, 5), cr.ShapeError, "sliding blocks has a size of 0 or less"),
        (lambda: F.fold(cr.ones(3, 2), 2, 2), cr.ShapeError, "divisible by the product of kern"),
        (lambda: F.fold(cr.ones(4, 2), 2, 2), cr.ShapeError, "number of sliding blocks 1 * 1 = 1"),
        (lambda: cr.pixel_shuffle(X, 2), cr.ShapeError, "input.size(-3)=2 is not divisible by 4"),
        (lambda: cr.pixel_unshuffle(X, 3), cr.ShapeError, "are not both divisible by 3"),
        (lambda: cr.pixel_shuffle(cr.ones(4, 4), 2), cr.ShapeError, "at least 3 dimensions"),
        (lambda: cr.pixel_shuffle(X, 0), ValueError, "expects a positive upscale_factor"),
        (lambda: cr.channel_shuffle(X, 3), cr.ShapeError, "must be divisible by groups. Got 2"),
        (lambda: F.affine_grid(cr.ones(1, 2, 3), (1, 2)), cr.ShapeError, "only supports 4D and"),
        (lambda: F.affine_grid(cr.ones(1, 2, 3), (2, 1, 3, 3)), cr.ShapeError, "shape 2x2x3 for"),
        (lambda: F.grid_sample(X, GRID, "cubic"), ValueError, "expected mode to be 'bilinear'"),
        (lambda: F.grid_sample(X, GRID, "nearest", "some"), ValueError, "expected padding_mode"),
        (lambda: F.grid_sample(X, cr.zeros(3, 2)), cr.ShapeError, "same number of dimensions"),
        (lambda: F.grid_sample(X, cr.zeros(2, 3, 3, 2)), cr.ShapeError, "same batch size"),
        (
            lambda: F.grid_sample(cr.ones(1, 1, 2, 2, 2), cr.zeros(1, 1, 1, 1, 3), "bicubic"),
            ValueError,
            "bicubic interpolation only supports 4D input",
        ),
        (lambda: F.grid_sample(X, GRID.double()), cr.DTypeError, "input and grid to have same"),
    ],
    ids=range(34),
)
def test_errors_say_what_was_expected(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_neighbours_keep_uint8(mode: str) -> None:
    x = np.arange(24, dtype=np.uint8).reshape(1, 2, 3, 4)
    compare_with_torch(
        lambda lib, x: lib.nn.functional.interpolate(x, (5, 7), mode=mode), x, order=0
    )
    for again in (False, True):
        compare_with_torch(
            lambda lib, x, a=again: lib.nn.functional.interpolate(
                x, scale_factor=0.6, mode=mode, recompute_scale_factor=a
            ),
            x,
            order=0,
        )
