"""Both ways to compute a convolution: with shifts of padded rows, and with copies of windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.kernels import (
    convolution,
    convolution_by_taps,
    convolution_shifts,
    convolution_windows,
    product_stacks,
)
from chainrule.kernels.threads import using_threads

# Shapes of images and kernels, stride, padding, dilation
SETTINGS: list[tuple[Any, ...]] = [
    ((5, 2, 7), (3, 2, 3), (1,), ((1, 1),), (1,)),
    ((5, 3, 6, 7), (4, 3, 3, 2), (1, 1), ((1, 1), (0, 2)), (1, 1)),
    ((5, 3, 9, 9), (2, 3, 3, 3), (1, 1), ((2, 0), (3, 3)), (1, 2)),
    ((5, 1, 9, 8), (4, 1, 2, 3), (2, 3), ((1, 1), (0, 1)), (2, 1)),
    ((3, 2, 4, 5, 6), (3, 2, 2, 3, 1), (1, 1, 1), ((0, 1), (1, 1), (0, 0)), (1, 1, 1)),
    ((2, 2, 4, 4), (3, 2, 1, 1), (1, 1), ((0, 0), (-1, -1)), (1, 1)),
]


def results(settings: tuple[Any, ...], dtype: str) -> list[np.ndarray]:
    """Return the output, and both gradients of its product with a fixed one."""
    convolution._plan.cache_clear()
    convolution_windows.windows_of.cache_clear()
    shape, kernel, stride, padding, dilation, groups = (*settings, 1)[:6]
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(dtype) for s in (shape, kernel))
    x = np.repeat(x, 2, axis=-1)[..., ::2]  # with strides
    form = {"window": (stride, padding, dilation, groups)}
    out = convolution.convolve(np, x, w, **form)
    y = rng.standard_normal(out.shape).astype(dtype)
    return [
        out,
        convolution.convolve_input(np, y, w, size=shape[2:], **form),
        convolution.convolve_weight(np, x, y, size=kernel[2:], **form),
    ]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_windows_and_shifts_agree(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for settings in SETTINGS:
        found = {}
        for windows in (False, True):
            monkeypatch.setattr(convolution, "_copies_windows", lambda *_, it=windows: it)
            for scratch in (100, 1 << 18):  # in batches of one or two samples, and all at a time
                monkeypatch.setattr(convolution_shifts, "_SCRATCH_ELEMENTS", scratch)
                monkeypatch.setattr(convolution_windows, "_WINDOW_ELEMENTS", scratch)
                found[windows, scratch] = results(settings, dtype)
        expected = found.pop((False, 1 << 18))
        for arrays in found.values():
            for x, y in zip(arrays, expected, strict=True):
                assert x.dtype == y.dtype
                np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12, err_msg=str(settings))


@pytest.mark.parametrize("windows", [False, True])
def test_stacks_of_products_agree_with_single_ones_in_any_number_of_threads(
    windows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution, "_copies_windows", lambda *_: windows)
    for settings in SETTINGS:
        monkeypatch.setattr(product_stacks, "_PARALLEL_MIN_MULTIPLIES", 1 << 40)
        monkeypatch.setattr(product_stacks, "_SERIAL_MULTIPLIES", 0)
        expected = results(settings, "float64")
        monkeypatch.setattr(product_stacks, "_PARALLEL_MIN_MULTIPLIES", 1)
        for serial, least in ((0, 1), (500, 1), (500, 20), (1 << 19, 1)):  # none, short, few, long
            monkeypatch.setattr(product_stacks, "_SERIAL_MULTIPLIES", serial)
            monkeypatch.setattr(product_stacks, "_MIN_STEP", least)
            monkeypatch.setattr(product_stacks, "_MIN_TERMS", least)
            with using_threads(1):
                alone = results(settings, "float64")
            with using_threads(3):
                together = results(settings, "float64")
            for x, y, z in zip(alone, together, expected, strict=True):
                assert np.array_equal(x, y)
                np.testing.assert_allclose(x, z, rtol=1e-10, atol=1e-12, err_msg=str(settings))


POINTS: list[tuple[Any, ...]] = [
    ((5, 6, 7), (4, 3, 1), (1,), ((0, 0),), (1,), 2),
    ((70, 4, 3, 5), (100, 4, 1, 1), (1, 1), ((0, 0), (0, 0)), (2, 1), 1),
    ((3, 4, 5, 6), (6, 2, 1, 1), (2, 3), ((1, 0), (-1, 1)), (1, 1), 2),
    ((3, 8, 2), (12, 4, 1), (1,), ((0, 0),), (1,), 2),  # few pixels
    ((5, 4, 3, 1), (6, 2, 3, 1), (1, 2), ((0, 0), (0, 0)), (1, 3), 2),  # one window
    ((5, 4, 3, 2), (6, 4, 3, 2), (3, 2), ((0, 2), (0, 1)), (1, 1), 1),
    ((5, 4, 3, 2), (6, 4, 3, 2), (3, 2), ((0, 3), (0, 1)), (2, 1), 1),  # of other pixels
]


@pytest.mark.parametrize("settings", POINTS, ids=str)
def test_kernels_of_one_element_or_the_size_of_the_image_are_products(
    settings: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution_by_taps, "_MAX_PRODUCTS", 10_000)  # for some of the samples
    found = results(settings, "float64")
    for choice in ("is_pointwise", "is_single"):
        monkeypatch.setattr(convolution, choice, lambda *_: False)
    for x, y in zip(found, results(settings, "float64"), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


def test_phases_of_strides_are_computed_together_or_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen, plain = [], convolution.is_by_phase
    for channels, kernel, stride, groups in ((16, 3, 2, 1), (1, 4, 2, 1), (64, 3, 2, 2)):
        y = np.zeros((8, 32, 14, 14))
        settings = (channels // groups, (kernel,) * 2, (stride,) * 2, (1, 1), groups)
        chosen.append(plain(np, y, *settings))
    assert chosen == [True, False, True]
    for settings in (
        *SETTINGS[3:5],
        ((2, 4, 7, 9), (4, 2, 3, 4), (2, 3), ((1, 1),) * 2, (1, 2), 2),
    ):
        found = []
        for by_phase in (True, False):
            monkeypatch.setattr(convolution, "is_by_phase", lambda *_, it=by_phase: it)
            found.append(results(settings, "float64"))
        for x, y in zip(*found, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12, err_msg=str(settings))


@pytest.mark.parametrize("shape", [(2, 16, 32, 32), (2, 8, 32, 32), (1, 9, 1024), (0, 9, 1024)])
def test_images_whose_channels_share_lines_of_the_cache_are_copied_as_others(
    shape: tuple[int, ...],
) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    images = convolution_windows.channels_last(x)
    out = np.empty(images.shape, np.float32)
    convolution_windows.copy_channels_last(images, out)
    assert np.array_equal(out, images)


def test_parts_and_steps_cover_all() -> None:
    for samples, most, multiplies in ((1, 1, 1), (7, 3, 1), (7, 3, 1 << 22), (99, 2, 1 << 22)):
        parts = product_stacks.parts_of(np, samples, most, multiplies)
        blocks = [block for part in parts for block in part]
        assert all(len(range(samples)[block]) <= most for block in blocks)
        assert [i for block in blocks for i in range(samples)[block]] == list(range(samples))
        assert (len(parts) > 1) == (samples > 1 and multiplies > 1)
    assert len(product_stacks.parts_of(None, 99, 2, 1 << 22)) == 1  # on a device
    for length, multiplies in ((1, 1), (64, 4608), (1000, 2304), (169, 20000), (7, 70000)):
        stack = product_stacks.Stack(np.ndarray, length, multiplies, alone=False)
        covered = [i for piece, _ in stack.pieces() for i in range(length)[piece]]
        assert covered == list(range(length))
        assert all(len(range(length)[piece]) % step == 0 for piece, step in stack.pieces())
        assert 0 < stack.step * multiplies < 1 << 19
    # Products that are large with few columns, and those of one part, are left to OpenBLAS.
    assert product_stacks.Stack(np.ndarray, 1000, 36864, alone=False).step == 0
    assert product_stacks.Stack(np.ndarray, 1000, 2304, alone=True).step == 0


def test_small_images_of_many_channels_are_copied_as_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, chosen = convolution._copies_windows, []

    def choose(*arguments: Any) -> bool:
        chosen.append(plain(*arguments))
        return chosen[-1]

    monkeypatch.setattr(convolution, "_copies_windows", choose)
    window = ((1, 1), ((1, 1), (1, 1)), (1, 1))
    for shape, kernel in (
        ((4, 16, 8, 8), (32, 16, 3, 3)),
        ((1, 3, 32, 32), (8, 3, 3, 3)),
        ((2, 16, 28, 28), (16, 16, 3, 3)),  # sums of shifts take one more copy for each shift
    ):
        results((shape, kernel, *window), "float32")
    # That of the last images is the plan of the output, too.
    assert chosen == [True] * 3 + [False] * 3 + [False, True]


@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_infinities_and_nan_reach_what_their_element_reaches(
    groups: int, stride: tuple[int, int], bad: float
) -> None:
    rng = np.random.default_rng(3)
    window = (stride, ((0, 0), (0, 0)), (2, 1), groups)  # zeros around would meet it, too
    x, w = rng.uniform(1, 2, (2, 8, 9, 21)), rng.uniform(1, 2, (8, 8 // groups, 2, 3))
    y = rng.uniform(1, 2, convolution.convolve(np, x, w, window=window).shape)
    maps = (
        (x, lambda x: convolution.convolve(np, x, w, window=window)),
        (y, lambda y: convolution.convolve_input(np, y, w, size=x.shape[2:], window=window)),
        (x, lambda x: convolution.convolve_weight(np, x, y, size=w.shape[2:], window=window)),
        (y, lambda y: convolution.convolve_weight(np, x, y, size=w.shape[2:], window=window)),
    )
    for array, function in maps:
        for place in [(1, 3, 0, array.shape[3] - 1), (0, 5, array.shape[2] // 2, 3)]:
            one, without, changed = np.zeros_like(array), array.copy(), array.copy()
            one[place], without[place], changed[place] = 1, 0, bad
            reached = function(one) != 0
            found, wanted = function(changed), function(without)
            np.testing.assert_array_equal(np.isfinite(found), ~reached)
            np.testing.assert_allclose(found[~reached], wanted[~reached], rtol=1e-13)
