"""Gather, scatter-add and max pooling of large arrays, compared with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.kernels import flat_indexing, gather_scatter, threads

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(11)


def agree(function: Callable[..., Any], x: np.ndarray, *others: Any) -> None:
    """Compare value and gradient of `function(library, x, ...)` with PyTorch's."""
    found = []
    g = None
    for lib in (cr, torch):
        leaf = lib.from_numpy(x.copy()).requires_grad_()
        out = function(lib, leaf, *[lib.from_numpy(other.copy()) for other in others])
        if g is None:
            g = RNG.standard_normal(tuple(out.shape)).astype(x.dtype)
        out.backward(lib.from_numpy(g))
        found.append((out.detach().numpy(), leaf.grad.numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def draw(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


@pytest.fixture
def rows_used(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the kernels that a test calls, where SciPy's is not used."""
    monkeypatch.setattr(flat_indexing, "_sparse_product", lambda *_: None)
    names: list[str] = []
    for module, name in (
        (gather_scatter, "gather_along_last"),
        (gather_scatter, "add_along_last"),
        (flat_indexing, "_add_rows"),
        (flat_indexing, "_add_entries"),
    ):
        original = getattr(module, name)

        def spy(*args: Any, name: str = name, original: Any = original) -> Any:
            names.append(name)
            return original(*args)

        monkeypatch.setattr(module, name, spy)
    return names


@pytest.mark.parametrize("shape", [(40, 150), (2, 3, 1000), (700, 701), (2, 300_001)])
def test_gather_along_the_last_axis(shape: tuple[int, ...], rows_used: list[str]) -> None:
    index = RNG.integers(0, shape[-1], (*shape[:-1], shape[-1] + 7))
    agree(lambda lib, x, i: x.gather(-1, i), draw(*shape), index)
    assert rows_used == ["gather_along_last", "add_along_last"]


def test_other_indices_of_gather(rows_used: list[str]) -> None:
    x = draw(90, 80)
    agree(lambda lib, x, i: x.gather(0, i), x, RNG.integers(0, 90, (70, 80)))
    agree(lambda lib, x, i: x.gather(1, i), x, RNG.integers(0, 80, (70, 90)))
    agree(lambda lib, x, i: x.t().gather(1, i), x, RNG.integers(0, 90, (80, 70)))
    assert rows_used.count("gather_along_last") == 2  # all but the first
    negative = RNG.integers(-80, 80, (90, 80))
    got = cr.take_along_axis(cr.from_numpy(x), cr.from_numpy(negative), 1).numpy()
    np.testing.assert_array_equal(got, np.take_along_axis(x, negative, 1))


def test_adding_along_the_last_axis(rows_used: list[str]) -> None:
    x, index = draw(90, 80), RNG.integers(0, 80, (90, 80))
    agree(lambda lib, x, i, y: x.scatter_add(1, i, y), x, index, draw(90, 80))
    agree(lambda lib, x, i, y: y.scatter_add(1, i, x), x, index, draw(90, 80))
    assert rows_used == ["add_along_last", "add_along_last", "gather_along_last"]
    index[3, 4] -= 80
    got = cr.from_numpy(x).scatter_add(1, cr.from_numpy(index), cr.from_numpy(x)).numpy()
    wanted = x.copy()
    np.add.at(wanted, (np.arange(90)[:, None], index), x)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_a_full_index_equivalent_to_one_along_the_last_axis(rows_used: list[str]) -> None:
    x, index = draw(90, 80), RNG.integers(0, 80, (90, 80))
    for first, count in ((np.arange(90), 1), (np.arange(90)[::-1].copy(), 0)):
        rows_used.clear()
        agree(lambda lib, x, i, j: x[i, j], x, first[:, None], index)
        assert rows_used.count("gather_along_last") == count


def test_an_index_may_be_modified_after_use() -> None:
    index = cr.from_numpy(RNG.integers(0, 80, (90, 80)))
    x = cr.tensor(draw(90, 80), requires_grad=True)
    weights = cr.from_numpy(draw(90, 80))
    wanted = weights.gather(1, index).numpy()
    out = cr.zeros(90, 80).scatter_add(1, index, x)
    index.numpy().fill(0)
    out.backward(weights)
    np.testing.assert_array_equal(x.grad.numpy(), wanted)


@pytest.mark.parametrize("wrong", [80, -81])
def test_a_wrong_index_among_many(wrong: int) -> None:
    index = RNG.integers(0, 80, (90, 80))
    index[-1, -1] = wrong
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
        cr.take_along_axis(cr.ones(90, 80), cr.from_numpy(index), 1)


@pytest.mark.parametrize(
    "index",
    [
        RNG.permutation(300),
        RNG.integers(0, 300, 500),
        np.full(400, 7),
        np.array([3, 3]),
        RNG.integers(0, 2, 300),
    ],
    ids=["once", "a-few-times", "the-same", "twice", "two-rows"],
)
def test_added_rows(index: np.ndarray, rows_used: list[str]) -> None:
    x = draw(300, 140) if len(index) > 2 else draw(300, 20_000)
    agree(lambda lib, x, i: x.index_select(0, i), x, index)
    assert rows_used == ["_add_rows"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("count", "length", "used"),
    [
        *((400, 126, ["_add_entries"]), (400, 127, ["_add_entries"]), (400, 128, ["_add_rows"])),
        *((256, 2, ["_add_entries"]), (255, 2, []), (400, 3, ["_add_entries"])),
    ],
)
def test_short_rows_are_added_number_by_number(
    count: int, length: int, used: list[str], dtype: str, rows_used: list[str]
) -> None:
    """The sums are those of np.add.at, to the last bit, also of nan, inf and signs of zero."""
    index, value = RNG.integers(-50, 50, count), draw(count, length).astype(dtype)
    value[:9, 0] = np.inf, np.nan, -0.0, -np.inf, 0.0, -0.0, np.inf, 1e-40, 1e38
    found, wanted = np.full((50, length), -0.0, dtype), np.full((50, length), -0.0, dtype)
    with np.errstate(all="ignore"):
        flat_indexing.add(found, index, value)
        np.add.at(wanted, index, value)
    assert found.tobytes() == wanted.tobytes()
    assert rows_used == used
    with pytest.raises(IndexError, match="index 50 is out of bounds for axis 0 with size 50"):
        flat_indexing.add(found, np.full(count, 50), value)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(171, 3), (170, 3), (300, 2), (9, 7, 65), (40, 2, 9)])
def test_rows_are_added_by_a_sparse_product(
    shape: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sums are those of np.add.at, to the last bit, also of nan, inf and signs of zero."""
    pytest.importorskip("scipy.sparse")
    used = []
    original = flat_indexing._add_by_product
    monkeypatch.setattr(
        flat_indexing, "_add_by_product", lambda *args: used.append(1) or original(*args)
    )
    batch = shape[:2] if len(shape) == 3 and shape[0] == 9 else shape[:1]
    index, value = RNG.integers(-50, 50, batch), draw(*shape).astype(dtype)
    value.reshape(-1)[:9] = np.inf, np.nan, -0.0, -np.inf, 0.0, -0.0, np.inf, 1e-40, 1e38
    found = np.full((50, *shape[len(batch) :]), -0.0, dtype)
    wanted = found.copy()
    with np.errstate(all="ignore"):
        flat_indexing.add(found, index, value)
        np.add.at(wanted, index, value)
    assert found.tobytes() == wanted.tobytes()
    length = value.size // index.size * (2 if dtype == "complex64" else 1)
    assert bool(used) == (length > 2 and value.size >= 512)
    with pytest.raises(IndexError, match="index 50 is out of bounds for axis 0 with size 50"):
        flat_indexing.add(found, np.full(batch, 50), value)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("count", [511, 512, 3000])
def test_numbers_are_added_by_a_sparse_product(
    count: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sums are those of np.add.at, to the last bit, also of nan, inf and signs of zero."""
    sparse = pytest.importorskip("scipy.sparse")
    used = []
    original = sparse._sparsetools.csc_matvec
    monkeypatch.setattr(
        sparse._sparsetools, "csc_matvec", lambda *args: used.append(1) or original(*args)
    )
    index, value = RNG.integers(-50, 50, 2 * count)[::2], draw(count).astype(dtype)
    value[:9] = np.inf, np.nan, -0.0, -np.inf, 0.0, -0.0, np.inf, 1e-40, 1e38
    found = np.full(50, -0.0, dtype)
    wanted = found.copy()
    with np.errstate(all="ignore"):
        flat_indexing.add(found, index, value)
        np.add.at(wanted, index, value)
    assert found.tobytes() == wanted.tobytes()
    assert bool(used) == (count > 511 and dtype != "complex64")
    before = found.copy()
    with pytest.raises(IndexError, match="index -51 is out of bounds for axis 0 with size 50"):
        flat_indexing.add(found, np.append(index[1:], -51), value)
    assert found.tobytes() == before.tobytes() or count == 511  # NumPy adds up to the wrong one


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
@pytest.mark.parametrize("shape", [(30, 40), (600, 40), (3, 50, 40)])
def test_columns_are_added_in_blocks_of_rows(shape: tuple[int, ...], dtype: str) -> None:
    """The sums are those of np.add.at, to the last bit, also of nan, inf and signs of zero."""
    index = RNG.integers(-40, 40, 77)
    value = (9 * draw(*shape[:-1], index.size)).astype(dtype)
    if dtype == "float32":
        value.reshape(-1)[:9] = np.inf, np.nan, -0.0, -np.inf, 0.0, -0.0, np.inf, 1e-40, 1e38
    found = np.zeros(shape, dtype)
    wanted = found.copy()
    with np.errstate(all="ignore"):
        flat_indexing.add(found, (..., index), value)
        np.add.at(wanted, (..., index), value)
    assert found.tobytes() == wanted.tobytes()
    with pytest.raises(IndexError, match=f"index 40 is out of bounds for axis {len(shape) - 1}"):
        flat_indexing.add(found, (..., np.full(77, 40)), value)


@pytest.mark.parametrize(
    ("name", "index", "used"),
    [
        ("runs", np.repeat(np.arange(500), 33), True),
        ("short-runs", np.repeat(np.arange(600), 31), False),
        ("few", np.repeat(np.arange(160), 100), False),
        ("falling", np.repeat(np.arange(500)[::-1], 33), False),
        ("late", np.append(np.repeat(np.arange(500), 33), 3), False),
        ("negative", np.repeat(np.arange(500), 33) - 2, False),
    ],
)
def test_a_sorted_index_is_added_in_runs(name: str, index: np.ndarray, used: bool) -> None:
    value, found, wanted = draw(index.size), draw(600), np.zeros(600, "float32")
    wanted[...] = found
    assert flat_indexing.add_runs(found.copy(), index, value) == used
    flat_indexing.add(found, index, value)
    np.add.at(wanted, index, value)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    index[-1] = 600
    with pytest.raises(IndexError, match="index 600 is out of bounds for axis 0 with size 600"):
        flat_indexing.add(found, index, value)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("kind", ["random", "rising", "falling", "equal", "nan"])
def test_cumulative_extrema_of_long_rows(name: str, kind: str) -> None:
    """Rows of few and of many new extrema, on both sides of the length of runs."""
    x = draw(30, 700).astype("float64")
    if kind in ("rising", "falling"):
        x = np.sort(x, axis=1)[:, :: 1 if kind == "rising" else -1].copy()
    elif kind == "equal":
        x[:, 5:] = x[:, 5:6]
    elif kind == "nan":
        x[:, 300] = np.nan
    agree(lambda lib, x: getattr(lib, name)(x, 1)[0], x)
    found, wanted = [getattr(lib, name)(lib.from_numpy(x), 1)[1].numpy() for lib in (cr, torch)]
    np.testing.assert_array_equal(found, wanted)


def test_a_broadcast_cotangent_is_gathered_without_reading_it(rows_used: list[str]) -> None:
    index = cr.from_numpy(RNG.integers(0, 80, (90, 80)))
    y = cr.ones(90, 80, requires_grad=True)
    (3 * cr.zeros(90, 80).scatter_add(1, index, y).sum()).backward()
    np.testing.assert_array_equal(y.grad.numpy(), np.full((90, 80), 3.0))
    assert rows_used == ["add_along_last", "gather_along_last"]


def test_repeated_rows_are_added_in_order() -> None:
    """The sums are those of np.add.at, to the last bit; negative indices count from the end."""
    index, value = RNG.integers(-50, 50, (30, 40)), draw(30, 40, 64)
    found, wanted = draw(50, 64), np.empty((50, 64), "float32")
    wanted[...] = found
    flat_indexing.add(found, (index,), value)
    np.add.at(wanted, index, value)
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(IndexError, match="index 50 is out of bounds for axis 0 with size 50"):
        flat_indexing.add(found, (np.full((30, 40), 50),), value)


POOLS = {
    "disjoint": ((3, 4, 25, 25), dict(kernel_size=2)),
    "overlapping": ((3, 4, 20, 21), dict(kernel_size=3, stride=2)),
    "padded": ((3, 4, 20, 21), dict(kernel_size=3, stride=2, padding=1)),
    "wide": ((3, 4, 20, 21), dict(kernel_size=2, stride=3)),
    "dilated": ((3, 4, 20, 21), dict(kernel_size=2, dilation=2)),
    "ceil": ((3, 4, 20, 21), dict(kernel_size=3, stride=2, ceil_mode=True)),
    "large": ((30, 16, 25, 25), dict(kernel_size=2)),
    "large, padded": ((30, 16, 25, 25), dict(kernel_size=3, stride=2, padding=1)),
}


@pytest.mark.parametrize("values", ["distinct", "ties", "nan", "-inf"])
@pytest.mark.parametrize("name", POOLS)
def test_pools(name: str, values: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_pool", threads._Pool(3))
    shape, settings = POOLS[name]
    x = draw(*shape)
    if values == "ties":
        x = np.round(x)
    elif values != "distinct":
        x[:, 1, 3:12] = float(values)
    agree(lambda lib, x: lib.nn.functional.max_pool2d(x, **settings), x)


@pytest.mark.parametrize("shape", [(5, 3), (700, 500), (4, 3, 40_000), (300_000,)], ids=str)
@pytest.mark.parametrize("values", ["ordinary", "huge", "-inf"])
def test_cross_entropy(shape: tuple[int, ...], values: str) -> None:
    x = draw(*shape) * (1e4 if values == "huge" else 1)
    if values == "-inf":
        x[..., 1] = -np.inf
        if len(shape) == 2:
            x[2, :] = -np.inf  # no class has a probability: nan
    dim = min(1, len(shape) - 1)
    classes = np.array(RNG.integers(0, shape[dim], shape[:dim] + shape[dim + 1 :]))
    with np.errstate(invalid="ignore"):
        agree(lambda lib, x, c: lib.nn.functional.cross_entropy(x, c, reduction="none"), x, classes)
    wrong = classes.copy()
    wrong.reshape(-1)[-1] = shape[dim]
    with pytest.raises(IndexError, match=f"Target {shape[dim]} is out of bounds"):
        cr.nn.functional.cross_entropy(cr.from_numpy(x), cr.from_numpy(wrong))


def by_writing(shape: tuple[int, ...], key: Any) -> np.ndarray:
    """Return which values written at an index are still there: they are written one by one."""
    places = np.arange(int(np.prod(shape))).reshape(shape)[key]
    owner: dict[int, int] = {}
    for number, place in enumerate(places.reshape(-1).tolist()):
        owner[place] = number
    numbers = np.arange(places.size).reshape(places.shape)
    return (
        np.reshape([owner[place] for place in places.reshape(-1).tolist()], places.shape) == numbers
    )


@pytest.mark.parametrize(
    "key",
    [
        RNG.integers(-5, 5, 7),
        (slice(None), RNG.integers(0, 6, (2, 5))),
        (RNG.integers(0, 5, 4), Ellipsis),
        (slice(1, 4), RNG.integers(0, 6, 8)),
        (RNG.integers(0, 5, 9), RNG.integers(0, 6, 9)),
        *[
            flat_indexing.grid(RNG.integers(-n, n, (5, 6, 3)), axis)
            for axis, n in enumerate((5, 6, 3))
        ],
        flat_indexing.grid(RNG.integers(0, 6, (3, 9, 2)), 1),
    ],
)
def test_values_that_survive(key: Any) -> None:
    shape = 5, 6, 3
    found = gather_scatter.lasting(key, shape)
    wanted = by_writing(shape, key)
    assert found is None or not found.all()
    np.testing.assert_array_equal(np.ones(wanted.shape, bool) if found is None else found, wanted)


@pytest.mark.parametrize("shape", [(90, 80), (2, 70, 80), (60, 60)])
def test_writing_along_the_last_axis(shape: tuple[int, ...]) -> None:
    x, index, values = draw(*shape), RNG.integers(0, shape[-1], shape), draw(*shape)
    wanted = x.copy()
    np.put_along_axis(wanted, index, values, -1)
    got = cr.from_numpy(x).scatter(-1, cr.from_numpy(index), cr.from_numpy(values))
    np.testing.assert_array_equal(got.numpy(), wanted)
    index[-1, -1] = shape[-1]
    with pytest.raises(IndexError, match=f"index {shape[-1]} is out of bounds"):
        cr.from_numpy(x).scatter(-1, cr.from_numpy(index), cr.from_numpy(values))
