"""Convolutions as machine code, compared with those of NumPy's matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.backend import numpy_xp
from chainrule.compiler.native import convolution, padded_images
from chainrule.compiler.native.gemm import Registers, registers
from chainrule.compiler.native.namespace import gemm_namespace
from chainrule.kernels.threads import using_threads

pytest.importorskip("llvmlite")

HERE = registers()
if HERE is None:
    pytest.skip("NumPy multiplies by another library than OpenBLAS", allow_module_level=True)

WIDTHS = [Registers(32, (6, 4))] + [HERE] * (HERE.vector > 32)
"""Register blockings to test: that of AVX2, and that of this processor."""

RNG = np.random.default_rng(0)
TOLERANCE = {"f8": 1e-12, "f4": 2e-5}


def draw(*shape: int, dtype: str = "f8") -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(dtype)


def results(xp: Any, x: Any, w: Any, y: Any, window: Any) -> list[np.ndarray]:
    """Return a convolution and its two adjoints."""
    return [
        xp.convolve(x, w, window=window),
        xp.convolve_input(y, w, size=x.shape[2:], window=window),
        xp.convolve_weight(x, y, size=w.shape[2:], window=window),
    ]


def compare(x: np.ndarray, w: np.ndarray, window: Any, scale: float = 1.0) -> None:
    y = draw(*numpy_xp.convolve(x, w, window=window).shape).astype(x.dtype)
    expected = results(numpy_xp, x, w, y, window)
    tolerance = scale * TOLERANCE[x.dtype.str[1:]]
    for width in WIDTHS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(convolution, "registers", lambda width=width: width)
            native = results(gemm_namespace(1), x, w, y, window)
        for found, reference in zip(native, expected, strict=True):
            assert found.dtype == reference.dtype
            np.testing.assert_allclose(found, reference, atol=tolerance, rtol=tolerance)


@st.composite
def cases(draw_from: Any) -> tuple[Any, ...]:
    rank = draw_from(st.integers(1, 3))
    sizes = st.integers(1, 60 if rank == 1 else 19 if rank == 2 else 8)
    lists = lambda elements: draw_from(st.lists(elements, min_size=rank, max_size=rank))  # noqa: E731
    size, kernel = lists(sizes), lists(st.integers(1, 4))
    stride, dilation = lists(st.integers(1, 3)), lists(st.integers(1, 3))
    padding = [(draw_from(st.integers(0, 3)), draw_from(st.integers(0, 3))) for _ in range(rank)]
    for i in range(rank):
        size[i] = max(size[i], dilation[i] * (kernel[i] - 1) + 1 - sum(padding[i]), 1)
    groups = draw_from(st.sampled_from([1, 1, 2, 3]))
    channels = draw_from(st.integers(1, 18)), draw_from(st.integers(1, 35))
    samples, dtype = draw_from(st.integers(1, 4)), draw_from(st.sampled_from(["f4", "f8"]))
    window = (tuple(stride), tuple(padding), tuple(dilation), groups)
    return samples, groups, channels, size, kernel, window, dtype


@given(case=cases())
@settings(max_examples=60, deadline=None)
def test_any_window_as_numpy_computes_it(case: Any) -> None:
    samples, groups, (inputs, outputs), size, kernel, window, dtype = case
    x = draw(samples, groups * inputs, *size, dtype=dtype)
    compare(x, draw(groups * outputs, inputs, *kernel, dtype=dtype), window, 30)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_several_batches_and_depths(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """The padded images of a batch do not fit, nor do all terms of a product fit a panel."""
    monkeypatch.setattr(padded_images, "SCRATCH_ELEMENTS", 40 * 30 * 30 * 2)
    window = ((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    convolution._correlation.cache_clear()
    convolution._weight_correlation.cache_clear()
    compare(draw(5, 40, 28, 28, dtype=dtype), draw(20, 40, 3, 3, dtype=dtype), window, 30)
    convolution._correlation.cache_clear()
    convolution._weight_correlation.cache_clear()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kernel", [(3, 3), (2, 5), (1, 1)])
@pytest.mark.parametrize("multiplier", [1, 2])
def test_depthwise(dtype: str, kernel: tuple[int, int], multiplier: int) -> None:
    """Shifted images take the place of products: more pixels than a run, and few, with strides."""
    for size, stride in (((50, 49), (1, 1)), ((7, 9), (2, 3))):
        window = (stride, ((1, 0), (2, 2)), (1, 1), 5)
        w = draw(5 * multiplier, 1, *kernel, dtype=dtype)
        compare(draw(3, 5, *size, dtype=dtype), w, window, 30)


@pytest.mark.parametrize("stride", [3, 4])
def test_strides_with_many_phases(stride: int) -> None:
    """Kernels of as many elements as there are phases are one product, others one for each."""
    for kernel, dilation in ((stride, 1), (2, 1), (3, stride), (4, 2)):
        window = ((stride,) * 2, ((1, 2), (0, 1)), (dilation,) * 2, 1)
        compare(draw(2, 3, 17, 15), draw(4, 3, kernel, kernel), window)


def test_transposed_images_and_kernels() -> None:
    x, w = draw(9, 8, 4, 3).transpose(3, 2, 0, 1), draw(3, 3, 4, 6).transpose(3, 2, 0, 1)
    compare(x[:, :, ::2], w, ((1, 1), ((1, 0), (2, 1)), (1, 1), 1))


def test_padding_does_not_meet_infinity() -> None:
    """Elements outside an image are zeros, which meet only the numbers of their own windows."""
    x, w = draw(2, 3, 8, 8, dtype="f4"), draw(4, 3, 3, 3, dtype="f4")
    x[0, 1, 4, 4] = np.inf
    window = ((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    found = gemm_namespace(1).convolve(x, w, window=window)
    assert np.isfinite(found[1]).all()
    near = np.zeros((8, 8), bool)
    near[3:6, 3:6] = True
    np.testing.assert_array_equal(~np.isfinite(found[0, 0]), near)


def test_equal_to_the_bit_with_any_number_of_threads() -> None:
    x, w = draw(8, 12, 20, 20, dtype="f4"), draw(40, 12, 3, 3, dtype="f4")
    y = draw(8, 40, 20, 20, dtype="f4")
    window = ((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    found = []
    for count in (1, 2, 3):
        with using_threads(count):
            found.append(results(gemm_namespace(1), x, w, y, window))
    for others in found[1:]:
        for first, other in zip(found[0], others, strict=True):
            assert first.tobytes() == other.tobytes()


@pytest.mark.parametrize("dtypes", [("f4", "f8"), ("i8", "i8"), ("f2", "f2"), ("c16", "c16")])
def test_other_dtypes_are_left_to_numpy(dtypes: tuple[str, str]) -> None:
    x, w = draw(2, 3, 6, 6).astype(dtypes[0]), draw(4, 3, 3, 3).astype(dtypes[1])
    window = ((1, 1), ((0, 0), (0, 0)), (1, 1), 1)
    expected = numpy_xp.convolve(x, w, window=window)
    np.testing.assert_array_equal(gemm_namespace(1).convolve(x, w, window=window), expected)


def test_a_compiled_step_uses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    plain = convolution.Correlations.correlate

    def watched(self: Any, *arguments: Any) -> Any:
        found = plain(self, *arguments)
        called.append(found is not None)
        return found

    monkeypatch.setattr(convolution.Correlations, "correlate", watched)
    x, w = cr.tensor(draw(4, 3, 18, 18)), cr.tensor(draw(8, 3, 3, 3))
    compiled = cr.compile(
        lambda x, w: cr.nn.functional.conv2d(x, w).sum(), backend="native", verify=False
    )
    assert compiled(x, w).item() == pytest.approx(cr.nn.functional.conv2d(x, w).sum().item())
    assert called == [True]
