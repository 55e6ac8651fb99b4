"""Max pooling as machine code: equal to NumPy's kernels, which PyTorch's are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.backend import numpy_xp
from chainrule.compiler.native import pooling
from chainrule.kernels import pooling as plain

pytest.importorskip("llvmlite")

WINDOWS: dict[str, Any] = {  # kernel, stride, padding, dilation
    "dense": ((2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    "rest": ((3, 2), (3, 2), ((0, -1), (0, -1)), (1, 1)),
    "apart": ((2, 1), (3, 2), ((0, 0), (0, 0)), (1, 1)),
    "overlap": ((3, 3), (2, 1), ((0, 0), (0, 0)), (1, 1)),
    "padding": ((3, 2), (2, 2), ((1, 1), (1, 0)), (1, 1)),
    "ceil": ((2, 3), (2, 2), ((0, 1), (1, 1)), (1, 1)),
    "dilation": ((2, 3), (1, 2), ((1, 1), (2, 2)), (3, 2)),
    "one": ((1, 1), (2, 1), ((0, -1), (0, 0)), (1, 1)),
    "large": ((17, 16), (1, 1), ((8, 8), (8, 8)), (1, 1)),
}


def images(kind: str, dtype: str) -> np.ndarray:
    """Return images with many equal maxima, of which some are not finite."""
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, (3, 5, 11, 13)).astype(dtype)
    if kind == "infinite":
        x[rng.random(x.shape) < 0.4] = -np.inf
        x[rng.random(x.shape) < 0.1] = np.inf
        x[0, 0] = -np.inf
    if kind == "nan":
        x[rng.random(x.shape) < 0.05] = np.nan
    if kind == "zeros of both signs":
        x = np.copysign(0, x - 0.5)
    return x


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", ["finite", "infinite", "nan", "zeros of both signs"])
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_values_positions_and_gradients_are_those_of_numpy(
    window: Any, kind: str, dtype: str
) -> None:
    x = images(kind, dtype)
    out = pooling.max_pool(x, window=window)
    np.testing.assert_array_equal(out, plain.max_pool(numpy_xp, x, window=window))
    assert out is not None
    positions = plain.pool_positions(numpy_xp, x, out, window=window)
    found = pooling.pool_positions(x, out, window=window)
    if np.isnan(out).any():
        assert found is None
    else:
        assert found is not None
        assert found.dtype == positions.dtype
        np.testing.assert_array_equal(found, positions)
    g = np.random.default_rng(1).integers(-9, 10, out.shape).astype(dtype)  # exact sums
    placed = pooling.pool_place(g, positions, size=x.shape[2:], window=window)
    wanted = plain.pool_place(numpy_xp, g, positions, size=x.shape[2:], window=window)
    np.testing.assert_array_equal(placed, wanted)
    assert placed is not None
    assert placed.shape == x.shape


def test_an_infinite_cotangent_stays_where_it_belongs() -> None:
    x = images("finite", "f4")
    for window in WINDOWS.values():
        out = plain.max_pool(numpy_xp, x, window=window)
        positions = plain.pool_positions(numpy_xp, x, out, window=window)
        g = np.full_like(out, np.inf)
        placed = pooling.pool_place(g, positions, size=x.shape[2:], window=window)
        assert placed is not None
        assert not np.isnan(placed).any()


def test_what_is_not_supported_is_left_to_numpy() -> None:
    window, x = WINDOWS["dense"], images("finite", "f4")
    out = plain.max_pool(numpy_xp, x, window=window)
    positions = plain.pool_positions(numpy_xp, x, out, window=window)
    for other in (x[:0], x[..., ::2], x.swapaxes(2, 3), x.astype("f2"), x.astype(">f4")):
        assert pooling.max_pool(other, window=window) is None
    assert pooling.pool_positions(x, out.astype("f8"), window=window) is None
    wide = positions.astype("i8")
    assert pooling.pool_place(out, wide, size=x.shape[2:], window=window) is None
    assert pooling.pool_place(out[..., ::-1], positions, size=x.shape[2:], window=window) is None


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i8"])
@pytest.mark.parametrize("shape", [(64, 8, 12, 12), (0, 8, 12, 12), (8, 40, 40)])
def test_compiled_pooling(shape: tuple[int, ...], dtype: str) -> None:
    x = cr.tensor(np.random.default_rng(2).integers(-9, 10, shape).astype(dtype))
    settings = {"kernel_size": 3, "stride": 2, "padding": 1}

    def function(x: Any) -> Any:
        pooled, index = cr.nn.functional.max_pool2d(x, **settings, return_indices=True)
        return pooled, index, cr.nn.functional.max_pool2d(x.mT, **settings)

    functions = [function]
    if dtype in ("f4", "f8"):
        functions.append(cr.grad(lambda x: (function(x)[0] * function(x)[2].mT).sum()))
    for f in functions:
        for got, want in zip(cr.tree.leaves(cr.compile(f)(x)), cr.tree.leaves(f(x)), strict=True):
            np.testing.assert_array_equal(got.numpy(), want.numpy())


def test_threads_share_images() -> None:
    x = np.random.default_rng(3).standard_normal((16, 32, 40, 40)).astype("f4")
    window = WINDOWS["overlap"]
    before = cr.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            cr.set_num_threads(threads)
            out = pooling.max_pool(x, window=window)
            found.append(pooling.max_pool_vjp(out, x, out, window=window))
    finally:
        cr.set_num_threads(before)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
    np.testing.assert_array_equal(
        found[0], plain.max_pool_vjp(numpy_xp, out, x, out, window=window)
    )
