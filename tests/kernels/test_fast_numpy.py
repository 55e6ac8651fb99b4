"""The NumPy formulations for large arrays give the results of those for small ones."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.backend import numpy_xp
from chainrule.kernels import accumulation, fast_numpy, reductions

RNG = np.random.default_rng(4)
SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, -0.0]


def draw(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def with_special_values(*shape: int) -> np.ndarray:
    x = draw(*shape)
    x.flat[RNG.integers(0, x.size, len(SPECIAL))] = SPECIAL
    return x


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the formulations for large arrays that are called."""
    names: list[str] = []
    places = {
        fast_numpy: ("total", "row_sums", "narrow_column_sums", "stacked_column_sums", "where"),
        accumulation: ("cumulative_sum", "accumulated", "sequence_products"),
    }
    for module, name in [(module, name) for module, found in places.items() for name in found]:
        original = getattr(module, name)

        def spy(*args: Any, name: str = name, original: Any = original, **settings: Any) -> Any:
            names.append(name)
            return original(*args, **settings)

        monkeypatch.setattr(module, name, spy)
    return names


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [32_768, 100_003])
def test_sums(dtype: str, size: int, used: list[str]) -> None:
    x = draw(size, dtype=dtype) + 1
    got = cr.from_numpy(x).sum()
    assert got.dtype == dtype
    exact = float(x.astype("longdouble").sum())
    np.testing.assert_allclose(got.item(), exact, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(cr.from_numpy(x).mean().item(), exact / size, rtol=1e-6)
    kept = cr.from_numpy(x.reshape(1, -1)).sum((0, 1), keepdim=True)
    assert kept.shape == (1, 1)
    assert kept.item() == got.item()
    assert used == ["total"] * 3


def test_large_sums_stay_exact() -> None:
    """Naive summation of ten million numbers would lose one per cent in single precision."""
    x = np.full(10_000_000, 0.1, np.float32)
    np.testing.assert_allclose(cr.from_numpy(x).sum().item(), float(x[0]) * 1e7, rtol=1e-6)


@pytest.mark.parametrize("keepdim", [False, True])
def test_sums_on_several_threads_do_not_depend_on_their_number(keepdim: bool) -> None:
    x = cr.from_numpy(draw(4200, 1003))
    before, found = cr.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            cr.set_num_threads(count)
            found.append([x.sum(0, keepdim=keepdim).numpy(), x.sum().numpy()])
    finally:
        cr.set_num_threads(before)
    for sums in found[1:]:
        for one, other in zip(sums, found[0], strict=True):
            np.testing.assert_array_equal(one, other)
    wide = x.numpy().astype(float)
    np.testing.assert_allclose(found[0][0], wide.sum(0, keepdims=keepdim), atol=2e-4)
    np.testing.assert_allclose(found[0][1], wide.sum(), atol=5e-3)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("shape", [(1024, 33), (40, 2048), (4, 64, 250)])
def test_sums_of_rows(shape: Any, keepdim: bool, used: list[str]) -> None:
    x = draw(*shape)
    got = cr.from_numpy(x).sum(-1, keepdim=keepdim).numpy()
    wanted = x.astype("float64").sum(-1, keepdims=keepdim)
    assert used == ["row_sums"]
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(64, 16), (1, 1024), (3, 9000), (1000, 33), (70_001, 3)])
def test_sums_of_columns(shape: Any, dtype: str, keepdim: bool, used: list[str]) -> None:
    x = RNG.uniform(1, 2, shape).astype(dtype)
    got = cr.from_numpy(x).sum(0, keepdim=keepdim)
    wanted = x.astype("longdouble").sum(0, keepdims=keepdim).astype(float)
    assert "narrow_column_sums" in used
    assert got.dtype == dtype
    assert got.shape == wanted.shape
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(got.numpy(), wanted, rtol=16 * eps)
    np.testing.assert_allclose(cr.from_numpy(x).mean(0).numpy(), wanted.ravel() / len(x), rtol=1e-5)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("shape", [(400, 3), (2, 200, 4), (40_000, 31), (100_003, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_short_rows(
    dtype: str, shape: tuple[int, ...], keepdim: bool, used: list[str]
) -> None:
    x = RNG.uniform(1, 2, shape).astype(dtype)
    got = cr.from_numpy(x).sum(-1, keepdim=keepdim)
    assert used == ["row_sums"]
    assert got.dtype == dtype
    wanted = x.astype("longdouble").sum(-1, keepdims=keepdim).astype(float)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got.numpy(), wanted, rtol=4 * np.finfo(dtype).eps)
    swapped = cr.from_numpy(x.astype(x.dtype.newbyteorder())).sum(-1)
    np.testing.assert_allclose(swapped.numpy(), wanted.reshape(swapped.shape), rtol=1e-5)


def test_special_values_stay_in_their_short_rows() -> None:
    x = draw(20_000, 3)
    x[3, 0], x[70, 1], x[19_999, 2], x[5, 1], x[5, 2] = np.nan, np.inf, -np.inf, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(cr.from_numpy(x).sum(1).numpy(), x.sum(1), rtol=1e-5, atol=1e-6)


def test_sums_of_short_rows_on_several_threads_do_not_depend_on_their_number() -> None:
    x = cr.from_numpy(draw(1_500_000, 3))
    before, found = cr.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            cr.set_num_threads(count)
            found.append(x.sum(1).numpy())
    finally:
        cr.set_num_threads(before)
    for sums in found:
        np.testing.assert_array_equal(sums, found[0])


def test_sums_of_columns_on_several_threads_do_not_depend_on_their_number() -> None:
    x = cr.from_numpy(draw(1_500_000, 3))
    before, found = cr.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            cr.set_num_threads(count)
            found.append(x.sum(0).numpy())
    finally:
        cr.set_num_threads(before)
    for sums in found:
        np.testing.assert_array_equal(sums, found[0])


def test_special_values_stay_in_their_columns(used: list[str]) -> None:
    x = draw(50_000, 5)
    x[3, 0], x[70, 1], x[49_999, 2], x[5, 3], x[6, 3] = np.nan, np.inf, -np.inf, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        sums = cr.from_numpy(x).sum(0).numpy()
    np.testing.assert_array_equal(np.isnan(sums), [True, False, False, True, False])
    np.testing.assert_array_equal(sums[1:3], [np.inf, -np.inf])
    np.testing.assert_allclose(sums[4], x[:, 4].sum(dtype=float), rtol=1e-5, atol=1e-3)
    assert used


def test_sums_of_columns_in_other_layouts_are_numpys(used: list[str]) -> None:
    x = draw(300, 40)
    for other in (x[::2], x[:, ::2], np.asfortranarray(x), x.astype(">f4"), x.astype("f2")):
        found = cr.from_numpy(other).sum(0).numpy()
        np.testing.assert_array_equal(found, other.sum(0))
    assert used == []


def test_sums_of_other_axes_and_layouts_are_numpys(used: list[str]) -> None:
    x = draw(256, 300)
    np.testing.assert_array_equal(cr.from_numpy(x).sum(0).numpy(), x.sum(0))
    np.testing.assert_array_equal(cr.from_numpy(x.T).sum(1).numpy(), x.T.sum(1))
    assert used == []


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "axis", "name"),
    [
        ((40, 5, 6), 0, "narrow_column_sums"),
        ((10, 20, 3, 4), (0, 1), "narrow_column_sums"),
        ((10, 20, 3, 4), (1,), "stacked_column_sums"),
        ((10, 20, 3, 4), (1, 2), "stacked_column_sums"),
        ((20, 20, 3, 4), (2, 3), "row_sums"),
        ((300, 2, 3), 1, "stacked_column_sums"),
        ((2, 1024, 31), 1, "stacked_column_sums"),
        ((2, 1024, 32), 1, None),
        ((17, 20, 3), 0, None),  # 1020 elements
        ((10, 20, 3, 4), (0, 2), None),
        ((10, 20, 3, 4), (0, 3, 2), None),
        ((32, 8, 8, 8), (0, 2, 3), "narrow_column_sums"),
        ((16, 8, 2, 40), (0, 1, 3), "narrow_column_sums"),
        ((4, 2, 2, 1024), (0, 2, 3), "narrow_column_sums"),
        ((4, 2, 3, 1024), (0, 2, 3), None),  # long rows
        ((3, 8, 20, 20), (0, 2, 3), None),  # few
        ((16, 4, 8, 16), (0, 2), None),
    ],
)
def test_sums_over_adjacent_axes_and_both_ends(
    shape: Any, axis: Any, name: str | None, dtype: str, keepdim: bool, used: list[str]
) -> None:
    x = draw(*shape, dtype=dtype)
    x[(0,) * len(shape)], x[(-1,) * len(shape)] = np.inf, np.nan
    got = numpy_xp.sum(x, axis=axis, keepdims=keepdim)
    wanted = x.astype("longdouble").sum(axis, keepdims=keepdim)
    assert got.dtype == dtype
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=0, atol=3e-4 if dtype == "float32" else 1e-11)
    assert [one for one in used if one != "narrow_column_sums" or one == name][:1] == (
        [] if name is None else [name]
    )


def test_sums_of_special_values() -> None:
    x = draw(200, 200)
    x[3, 5], x[4, 6], x[5, :2] = np.nan, np.inf, (np.inf, -np.inf)
    rows = cr.from_numpy(x).sum(1).numpy()
    assert np.isnan(rows[[3, 5]]).all()
    assert rows[4] == np.inf
    assert np.isfinite(np.delete(rows, [3, 4, 5])).all()
    assert np.isnan(cr.from_numpy(x).sum().item())


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", ">f4", "int16"])
@pytest.mark.parametrize("shape", [(256, 512), (300, 1001), (2100, 2051), (255, 600), (700, 100)])
def test_copies_of_transposed_matrices(shape: Any, dtype: str) -> None:
    x = (draw(*shape) * 100).astype(dtype)
    got = cr.asarray(x).t().contiguous().numpy()
    assert got.flags.c_contiguous
    assert not np.shares_memory(got, x)
    np.testing.assert_array_equal(got, x.T)
    part = cr.asarray(x).t()[1:, 2:]  # in neither order
    np.testing.assert_array_equal(part.contiguous().numpy(), x.T[1:, 2:])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_where_is_exact_to_the_bit(dtype: str, used: list[str]) -> None:
    x, y = with_special_values(80, 70).astype(dtype), with_special_values(80, 70).astype(dtype)
    mask = RNG.uniform(size=x.shape) < 0.5
    got = cr.where(cr.from_numpy(mask), cr.from_numpy(x), cr.from_numpy(y)).numpy()
    assert used == ["where"]
    np.testing.assert_array_equal(got.view("u1"), np.where(mask, x, y).view("u1"))
    with pytest.raises(ValueError, match="broadcast"):
        numpy_xp.where(mask, x, y[:3])


@pytest.mark.parametrize("bounds", [(None, 0.5), (-0.5, None), (-0.5, 0.5), (0.5, -0.5)])
def test_clip(bounds: Any) -> None:
    x = with_special_values(3000)
    low, high = bounds
    wanted = x if low is None else np.maximum(x, np.float32(low))
    wanted = wanted if high is None else np.minimum(wanted, np.float32(high))
    np.testing.assert_array_equal(cr.from_numpy(x).clamp(low, high).numpy(), wanted)
    ints = np.arange(-2000, 2000)
    found = cr.from_numpy(ints).clamp(min=-3, max=7).numpy()
    np.testing.assert_array_equal(found, np.clip(ints, -3, 7))


def test_relu() -> None:
    x = with_special_values(3000)
    np.testing.assert_array_equal(cr.from_numpy(x).relu().numpy(), np.maximum(x, 0))
    assert cr.from_numpy(x.astype("float16")).relu().dtype == cr.float16


@pytest.mark.parametrize("shape", [(), (3,), (5000,)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_logistic_function(shape: Any, dtype: str) -> None:
    x = np.array(20 * draw(*shape, dtype="float64") if shape else 0.7, dtype)
    wanted = 1 / (1 + np.exp(-x.astype("float64")))
    got = cr.from_numpy(x).sigmoid()
    assert got.dtype == dtype
    rtol = 4 * np.finfo(dtype).eps
    atol = 2e-5 if dtype == "float16" else 1e-44  # float16 has few digits
    np.testing.assert_allclose(got.numpy(), wanted, rtol=rtol, atol=atol)
    if shape == (5000,):
        special = np.resize(np.array([np.nan, np.inf, -np.inf, -200, 200], dtype), shape)
        found = cr.from_numpy(special).sigmoid().numpy()[:5]
        np.testing.assert_allclose(found, [np.nan, 1, 0, 0, 1], atol=1e-30)


@pytest.mark.parametrize("shape", [(100, 100), (64, 64), (3, 50, 333), (5000,), (40, 127)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cumulative_sums(shape: Any, dtype: str, used: list[str]) -> None:
    x, g = draw(*shape, dtype=dtype), draw(*shape, dtype=dtype)
    leaf = cr.tensor(x, requires_grad=True)
    got = leaf.cumsum(-1)
    got.backward(cr.from_numpy(g))
    assert used == ["cumulative_sum"] * 2
    assert got.dtype == leaf.grad.dtype == dtype
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    wanted = x.astype("float64").cumsum(-1)
    np.testing.assert_allclose(got.detach().numpy(), wanted, rtol=0, atol=tolerance)
    wanted = g.astype("float64")[..., ::-1].cumsum(-1)[..., ::-1]
    np.testing.assert_allclose(leaf.grad.numpy(), wanted, rtol=0, atol=tolerance)


def test_cumulative_sums_of_special_values_are_numpys() -> None:
    x = draw(100, 100)
    x[3, 70], x[4, 99] = np.inf, np.nan
    got = cr.from_numpy(x).cumsum(1).numpy()
    np.testing.assert_array_equal(got, x.cumsum(1))
    assert np.isfinite(got[3, :70]).all()
    leaf = cr.tensor(draw(100, 100), requires_grad=True)
    leaf.cumsum(1).backward(cr.from_numpy(x))
    np.testing.assert_array_equal(leaf.grad.numpy(), x[:, ::-1].cumsum(1)[:, ::-1])


def with_far_rows() -> np.ndarray:
    x = draw(200, 100)
    for row, offset in enumerate([95, -95, 1e4, -1e30, 68, -4, -50, 85]):
        x[row] += offset
    x[8, 3], x[9, 4:] = 88, -np.inf
    return x


SEQUENCES = [
    ((512, 9), 1, True),
    ((511, 9), 1, False),
    ((8, 64, 7), 2, True),
    ((600, 256), 1, True),
    ((600, 257), 1, False),
    ((9000, 3), 1, True),
    ((20, 512), 0, True),
    ((20, 192), 0, True),
    ((20, 191), 0, False),
    ((4, 7, 128), 1, True),
    ((16, 7, 63), 1, False),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "axis", "many"), SEQUENCES)
def test_accumulation_of_many_sequences(
    shape: Any, axis: int, many: bool, dtype: str, used: list[str]
) -> None:
    """The sums and products are NumPy's to the last bit, forwards and backwards."""
    x = draw(*shape, dtype=dtype)
    x.flat[[3, 5, 7]] = np.nan, np.inf, -0.0
    for ours, theirs in (("cumulative_prod", np.cumprod), ("cumulative_sum", np.cumsum)):
        found = getattr(numpy_xp, ours)(x, axis=axis)
        if "cumulative_sum" not in used:  # else by products with triangles
            np.testing.assert_array_equal(found, theirs(x, axis))
    assert ("accumulated" in used) == many
    if many:
        found = accumulation.accumulated(np.add, x, axis, backwards=True)
        np.testing.assert_array_equal(found, np.flip(np.cumsum(np.flip(x, axis), axis), axis))
    g = draw(*shape, dtype=dtype)
    found = numpy_xp.rule_kernels["cumulative_sum_vjp"](g, axis=axis)
    wanted = np.flip(np.cumsum(np.flip(g.astype("longdouble"), axis), axis), axis)
    np.testing.assert_allclose(found, wanted, atol=1e-3 if dtype == "float32" else 1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [5, 700])
def test_products_and_products_of_others(count: int, dtype: str, used: list[str]) -> None:
    """Rows with zeros, nan, infinities, overflow and underflow are as without division."""
    x = draw(count, 6, dtype=dtype)
    small, large = (1e-12, 1e12) if dtype == "float32" else (1e-100, 1e100)
    x[0, 2], x[1], x[2], x[3, [1, 4]] = 0, small, large, 0
    x[4, 0], x[4, 1] = np.inf, np.nan
    leaf = cr.tensor(x, requires_grad=True)
    with np.errstate(all="ignore"):
        out = leaf.prod(1)
        out.sum().backward()
        others = [np.prod(np.delete(x.astype("float64"), i, 1), 1) for i in range(6)]
        wanted = np.stack(others, 1).astype(dtype)
        whole = np.prod(x.astype("longdouble"), 1).astype(dtype)
    tolerance = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(leaf.grad.numpy()[1:], wanted[1:], rtol=tolerance)
    np.testing.assert_allclose(leaf.grad.numpy()[0], wanted[0], rtol=tolerance)
    np.testing.assert_allclose(out.detach().numpy(), whole, rtol=tolerance)
    assert ("sequence_products" in used) == (count == 700)


@pytest.mark.parametrize(
    ("shape", "axis"), [((40,), 0), ((70, 600), 1), ((3, 250, 64), 1), ((520, 9), 1)]
)
def test_gradients_of_cumulative_products(shape: Any, axis: int) -> None:
    """Each is the sum over the products of the other factors, also at zeros and at large ones."""
    x, g = 1 + draw(*shape, dtype="float64") / 9, draw(*shape, dtype="float64")
    x.reshape(-1)[[3, 20, 21, -9]] = 0, 1e-200, 1e250, 0
    leaf = cr.tensor(x, requires_grad=True)
    leaf.cumprod(axis).backward(cr.tensor(g))
    rows, weights = [np.moveaxis(v, axis, -1).astype("longdouble") for v in (x, g)]
    for k in (0, 3, 4, shape[axis] // 2, shape[axis] - 1):
        others = rows.copy()
        others[..., k] = 1
        wanted = (weights * np.cumprod(others, -1))[..., k:].sum(-1)
        found = np.moveaxis(leaf.grad.numpy(), axis, -1)[..., k]
        np.testing.assert_allclose(found, wanted.astype("float64"), rtol=1e-9, atol=1e-13)


@pytest.mark.skipif(sys.platform != "linux", reason="counts page faults of glibc's heap")
def test_freed_memory_is_used_again() -> None:
    """Arrays of a megabyte fault in their pages once, not each time."""
    script = """
import resource
import numpy as np
import chainrule as cr

x = cr.ones(100_000, dtype=cr.float64, requires_grad=True)
def faults():
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(10):
            (x.exp() * x.sin() + x.cos()).sum().backward()
        found = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return found
print(faults())
"""
    own = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}  # Dask sets some
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=own
    )
    assert int(done.stdout) < 200  # of 20,000 where the heap shrinks


def test_softmax_of_rows_near_zero_and_far_from_it() -> None:
    x = with_far_rows()
    wide = x.astype("float64")
    exact = np.exp(wide - wide.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    got = cr.from_numpy(x).softmax(1).numpy()
    np.testing.assert_allclose(got, exact, rtol=1e-6, atol=1e-38)
    for row in range(12):  # small arrays take another formulation
        alone = cr.from_numpy(x[row : row + 1]).softmax(1).numpy()
        np.testing.assert_allclose(got[row : row + 1], alone, rtol=1e-6, atol=1e-38)


@pytest.mark.parametrize("keepdim", [False, True])
def test_logsumexp_of_rows_near_zero_and_far_from_it(keepdim: bool) -> None:
    x = with_far_rows()
    x[10], x[11, 0], x[12, 0] = -np.inf, np.inf, np.nan
    leaf = cr.tensor(x, requires_grad=True)
    out = leaf.logsumexp(1, keepdim=keepdim)
    out.backward(cr.ones_like(out))
    with np.errstate(all="ignore"):
        wanted = np.logaddexp.reduce(x.astype("float64"), axis=1, keepdims=keepdim)
    np.testing.assert_allclose(out.detach().numpy(), wanted, rtol=1e-6, atol=1e-6)
    sums = leaf.grad.numpy().sum(1)
    assert np.isnan(sums[[11, 12]]).all()
    assert sums[10] == 0
    rounded = [2, 3]  # far from 0, x - logsumexp x has lost digits
    np.testing.assert_allclose(np.delete(sums, [*rounded, 10, 11, 12]), 1, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_logsumexp_of_rows_whose_exponentials_are_small(dtype: str) -> None:
    lows = np.array([0, -3, -20, -55, -57, -60, -90, -110, -600, -640, -660, -720, -800, 50, 80])
    x = (np.random.default_rng(0).random((15, 400)) - 0.5) * 30 + lows[:, None]
    x = x.astype(dtype)
    got = cr.from_numpy(x).logsumexp(1).numpy()
    wide = x.astype("longdouble")
    top = wide.max(1)
    exact = top + np.log(np.exp(wide - top[:, None]).sum(1))
    # Of large numbers, only the last digits are left to the sum.
    np.testing.assert_allclose(got, exact.astype("float64"), rtol=4 * np.finfo(dtype).eps)


def test_softmax_and_its_derivative() -> None:
    x = cr.tensor(draw(100, 500), requires_grad=True)
    out = x.softmax(-1)
    np.testing.assert_allclose(out.sum(-1).detach().numpy(), 1, rtol=1e-5)
    (out * out).sum().backward()
    np.testing.assert_allclose(x.grad.sum(-1).numpy(), 0, atol=1e-6)


# --- maxima, minima, any and all ------------------------------------------------------------------

REDUCED = [  # shape, axis, whether NumPy's own loops are used
    ((256, 2), 1, False),
    ((300, 5), -1, False),
    ((64, 32), 1, False),
    ((64, 33), 1, True),
    ((15, 32), 1, True),
    ((512,), 0, True),
    ((4096, 1), 0, True),
    ((22, 40, 3), 1, False),
    ((21, 40, 3), 1, True),
    ((20, 4, 64), 1, True),
    ((5, 300, 2), (0, 1), True),
    ((30, 90, 2), (0, 1), False),
    ((300, 2, 3), (1, 2), False),
    ((300, 2, 3), (2, 1), True),
    ((300, 2, 3), (0, 2), True),
    ((2051, 2), 0, False),
    ((1024, 5), (0,), False),
    ((17, 256), 0, False),
    ((17, 257), 0, True),
    ((3, 0, 400), 1, None),
]


@pytest.mark.parametrize("name", ["max", "min", "any", "all"])
@pytest.mark.parametrize(("shape", "axis", "plain"), REDUCED)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_of_short_rows_and_narrow_columns(
    name: str, shape: Any, axis: Any, plain: bool | None, keepdims: bool, monkeypatch: Any
) -> None:
    found_by = []
    original = reductions._reduced

    def spy(*args: Any) -> Any:
        found = original(*args)
        found_by.append(found is not None)
        return found

    monkeypatch.setattr(reductions, "_reduced", spy)
    x = draw(*shape, dtype="float64")
    if x.size:
        x.flat[RNG.integers(0, x.size, 4)] = np.nan, np.inf, -np.inf, 0.0
    whole = np.nan_to_num(x, posinf=9, neginf=-9).astype("i8")
    ours, theirs = getattr(numpy_xp, name), getattr(np, name)
    arrays = [x, x.astype("f4"), whole] if name in ("max", "min") else []
    for array in [*arrays, x > 2.5, x < 2.5]:
        if plain is None and name in ("max", "min"):
            with pytest.raises(ValueError, match="zero-size array"):
                ours(array, axis, keepdims)
            continue
        found = ours(array, axis, keepdims)
        wanted = theirs(array, axis=axis, keepdims=keepdims)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted, strict=isinstance(wanted, np.ndarray))
    if plain is not None:
        assert any(found_by) == (not plain)
    found = ours(x[::-1].T > 0, 0)  # which is not in C order
    np.testing.assert_array_equal(found, theirs((x[::-1].T > 0).copy(), 0))


VIEWS = {  # whether they are reduced in passes
    "windows": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, axis=1), -1, True),
    "33 columns": (lambda x: x[:, :33], 1, False),
    "32 columns": (lambda x: x[:, 1:33], 1, True),
    "one column": (lambda x: x[:, :1], 1, False),
    "rows": (lambda x: x[::7], (0,), True),
    "all": (lambda x: x[:, 1:], None, False),
    "both": (lambda x: x[::7, 1:], (0, 1), False),
    "transposed": (lambda x: x[:8].T, 1, True),
    "few": (lambda x: x[:, :8][:40].T[:, :30].repeat(9, 0)[:, ::2][:63], 1, False),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_of_views(name: str, keepdims: bool, monkeypatch: Any) -> None:
    view, axis, passes = VIEWS[name]
    found_by, original = [], reductions._in_passes

    def spy(*args: Any) -> Any:
        found_by.append(original(*args))
        return found_by[-1]

    monkeypatch.setattr(reductions, "_in_passes", spy)
    whole = draw(120, 90, dtype="float64")
    whole[3, :2] = np.nan, np.inf
    x = view(whole)
    for function in ("max", "min", "sum"):
        found = getattr(numpy_xp, function)(x, axis=axis, keepdims=keepdims)
        wanted = getattr(np, function)(x, axis=axis, keepdims=keepdims)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
        assert found.shape == wanted.shape
    assert all((found is not None) == passes for found in found_by)
    np.testing.assert_array_equal(
        numpy_xp.any(x > 2, axis, keepdims), (x > 2).any(axis, keepdims=keepdims)
    )


def test_reductions_cut_large_arrays_into_parts(monkeypatch: Any) -> None:
    monkeypatch.setattr(reductions, "_PART", 100)
    x = draw(400, 7)
    np.testing.assert_array_equal(numpy_xp.max(x, 1), np.max(x, 1))


@pytest.mark.parametrize("shape", [(5000, 5), (8200, 2), (1100, 16), (40_003, 1)])
def test_sums_of_few_columns_are_precise(shape: Any, used: list[str]) -> None:
    x = draw(*shape, dtype="float32") + 1
    exact = x.astype("longdouble").sum(0)
    np.testing.assert_allclose(numpy_xp.sum(x, axis=(0,)), exact, rtol=4e-7)
    assert used.count("narrow_column_sums") >= 3
