"""Gathers and scatters of large arrays by kernels: the bits and the errors of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler import native
from chainrule.compiler.native import gather_scatter
from chainrule.compiler.native.kernel import MIN_SIZE

pytest.importorskip("llvmlite", reason="machine code needs LLVM")

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _not_as_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of so few operations would be one function of machine code."""
    monkeypatch.setattr(native, "_emit_whole", lambda program: None)


def leaves(results: Any) -> list[Any]:
    if isinstance(results, tuple | list):
        return [leaf for each in results for leaf in leaves(each)]
    return [results.numpy()]


# Gathers are of 50 rows of 8 numbers, at indices of any shape.
MOVES: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "rows": (lambda x, i, v: x.index_add(0, i, v), (3000,), (3000, 8)),
    "rows of zeros": (lambda x, i, v: cr.zeros_like(x).index_add(0, i, v), (3000,), (3000, 8)),
    "along the last axis": (lambda x, i, v: x.scatter_add(1, i.fmod(8), v), (50, 900), (50, 900)),
    "along, zeros": (lambda x, i, v: cr.zeros_like(x).scatter_add(1, i.fmod(8), v),)
    + 2 * ((50, 900),),
    "one number": (lambda x, i, v: x.index_put((i,), v.sum(), accumulate=True), (3000,), (3000, 8)),
    "one row": (lambda x, i, v: x.index_put((i,), v[0], accumulate=True), (3000,), (3000, 8)),
    "columns of values": (lambda x, i, v: x.index_add(0, i, v[:, 3:11]), (3000,), (3000, 16)),
    "reversed values": (lambda x, i, v: x.index_add(0, i, v.flip(0, 1)), (3000,), (3000, 8)),
    "elements": (
        lambda x, i, v: x.index_put((i, (i + 1).fmod(8)), v, accumulate=True),
        *((40_000,), (40_000,)),
    ),
    "elements at broadcast indices": (
        lambda x, i, v: x.index_put((i[:, None], (i + 1).fmod(8)), v, accumulate=True),
        *((80,), (80, 80)),
    ),
    "numbers": (lambda x, i, v: x[:, 0].index_add(0, i, v), (6000,), (6000,)),
    "many rows at few places": (lambda x, i, v: x.index_add(0, i.fmod(2), v), (9000,), (9000, 8)),
    "added to columns": (
        lambda x, i, v: cr.zeros_like(x).index_add(1, i.fmod(8), v),
        *((900,), (50, 900)),
    ),
    "added to more columns": (lambda x, i, v: x.index_add(1, i.fmod(8), v), (900,), (50, 900)),
    "along the first axis": (
        lambda x, i, v: cr.zeros_like(x).scatter_add(0, i, v),
        *((900, 8), (900, 8)),
    ),
    "taken along the first axis": (lambda x, i, v: x.gather(0, i) + v,) + 2 * ((900, 8),),
    "taken along a middle axis": (
        lambda x, i, v: x.reshape(2, 25, 8).gather(1, i.fmod(25)) + v,
        *((2, 900, 8), (2, 900, 8)),
    ),
    "along a middle axis": (
        lambda x, i, v: cr.zeros(2, 25, 8, dtype=x.dtype).scatter_add(1, i.fmod(25), v),
        *((2, 900, 8), (2, 900, 8)),
    ),
    "taken last": (lambda x, i, v: x[:, i.fmod(8)] + v, (900,), (50, 900)),
    "taken last, two axes": (lambda x, i, v: x[..., i.fmod(8)] + v, (90, 10), (50, 90, 10)),
    "taken along": (lambda x, i, v: v.gather(1, i) + x.sum(), (50, 900), (50, 900)),
    "taken rows": (lambda x, i, v: x[i] + v, (3000,), (3000, 8)),
    "taken rows, two axes": (lambda x, i, v: x[i] + v, (40, 75), (40, 75, 8)),
    "taken columns": (lambda x, i, v: x[:, 2:5][i] + v, (3000,), (3000, 3)),
    "taken from reversed rows": (lambda x, i, v: x.flip(0)[i] + v, (3000,), (3000, 8)),
    "taken from the transpose": (lambda x, i, v: x.mT[i.fmod(8)] + v, (3000,), (3000, 50)),
    "taken from a broadcast": (lambda x, i, v: x[:1].expand(50, 8)[i] + v, (3000,), (3000, 8)),
    "taken numbers": (lambda x, i, v: x[:, 1][i] + v, (6000,), (6000,)),
    "taken elements": (lambda x, i, v: x[i, i.fmod(8)] * x[i, i.fmod(8)] + v, (40_000,), (40_000,)),
    "at broadcast indices": (lambda x, i, v: x[i[:, None], i.fmod(8)] + v, (80,), (80, 80)),
    "at indices of 32 bits": (lambda x, i, v: x[i.to(cr.int32)] + v, (3000,), (3000, 8)),
    "side by side": (lambda x, i, v: cr.cat([x[i], v, x[(i + 1).fmod(50)]], 1), (3000,), (3000, 8)),
    "side by side, twice": (lambda x, i, v: cr.cat([x[i], x[i]], 1) * 2, (3000,), (3000, 8)),
    "on top": (lambda x, i, v: cr.cat([x[i], v], 0), (3000,), (3000, 8)),
    "side by side, and alone": (
        lambda x, i, v: ((y := x[i]), cr.cat([y, v], 1)),
        *((3000,), (3000, 8)),
    ),
}


def moved(
    name: str, dtype: Any, index: Callable[[Any], Any] = lambda i: i
) -> tuple[Any, Any, Any, Any]:
    """Return a compiled function, the function, and their results for the same arrays."""
    function, index_shape, value_shape = MOVES[name]
    i = index(RNG.integers(0, 50, index_shape))
    x = RNG.standard_normal((50, 8)).astype(dtype)
    x[7] = -0.0
    arrays = x, i, RNG.standard_normal(value_shape).astype(dtype)
    for array in arrays:
        array.flags.writeable = False
    tensors = [cr.tensor(array) for array in arrays]
    made = cr.compile(function, backend="native")
    return made, function, made(*tensors), function(*tensors)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MOVES)
def test_large_moves_use_kernels_and_add_in_the_order_of_numpy(name: str, dtype: Any) -> None:
    made, _, got, want = moved(name, dtype, lambda i: np.where(i == 7, 8, i))
    for a, b in zip(leaves(got), leaves(want), strict=True):
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()
    kernels = ("gather", "index_add", "add_at", "scatter")
    assert any(f"native.{kernel}" in made.source_native for kernel in kernels)


@pytest.mark.parametrize("name", MOVES)
def test_large_moves_count_negative_indices_from_the_end(name: str) -> None:
    _, _, got, want = moved(name, float, lambda i: np.where(i % 3, i, i // 7 - 7))
    for a, b in zip(leaves(got), leaves(want), strict=True):
        assert a.tobytes() == b.tobytes()


def test_gathers_beside_each_other_write_to_one_array() -> None:
    for name, is_joined in {
        "side by side": True,
        "side by side, twice": False,  # gathered once
        "side by side, and alone": False,
        "on top": False,
    }.items():
        made = moved(name, float)[0]
        assert ("gather_columns" in made.source_native) == is_joined
        assert ("np.conc" in made.source_native) != is_joined


def test_indices_of_two_axes_are_made_one_once() -> None:
    source = moved("taken elements", float)[0].source_native
    assert source.count("native.flat_index") == 1


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_sums_begin_with_the_sign_of_their_zeros(zero: float) -> None:
    def function(i: Any, v: Any) -> Any:
        return cr.full((2000, 16), zero, dtype=v.dtype).index_add(0, i, v)

    i, v = cr.tensor(RNG.integers(0, 1000, 900)), cr.tensor(RNG.standard_normal((900, 16)))
    got = cr.compile(function, backend="native")(i, v).numpy()
    assert got.tobytes() == function(i, v).numpy().tobytes()


@pytest.mark.parametrize("rows", [MIN_SIZE // 8 - 1, MIN_SIZE // 8])
def test_small_moves_are_left_to_numpy(rows: int) -> None:
    def function(x: Any, i: Any, v: Any) -> Any:
        return x[i] @ cr.ones(8, 1, dtype=x.dtype), x.index_add(0, i, v)

    x, v = (cr.tensor(RNG.standard_normal((n, 8))) for n in (50_000, rows))
    index = cr.tensor(RNG.integers(0, 50, rows))
    made = cr.compile(function, backend="native")
    for a, b in zip(leaves(made(x, index, v)), leaves(function(x, index, v)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    body = made.source_native
    for name in ("native.gather", "native.add_at"):
        assert (name in body) == (8 * rows >= MIN_SIZE)


def test_results_are_not_overwritten_by_later_calls() -> None:
    made = cr.compile(lambda x, i: (x[i], cr.zeros_like(x).index_add(0, i, x[i])), backend="native")
    index = cr.tensor(RNG.integers(0, 50, 6000))
    x = [cr.tensor(RNG.standard_normal((50, 8))) for _ in range(4)]
    found = [made(each, index) for each in x]
    for each, (taken, added) in zip(x, found, strict=True):
        np.testing.assert_array_equal(taken.numpy(), each.numpy()[index.numpy()])
        want = np.zeros((50, 8))
        np.add.at(want, index.numpy(), taken.numpy())
        np.testing.assert_array_equal(added.numpy(), want)


def test_moves_within_loops_and_their_gradients() -> None:
    def walk(x: Any, i: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            moved = cr.zeros_like(c).index_add(0, i, c[i].flip(0))
            return cr.erfinv(cr.tanh(c * 0.5 + moved) * 0.5), c.sum()  # no loop has erfinv

        return cr.scan(step, x, cr.zeros(3))[1].sum()

    x, i = cr.tensor(RNG.standard_normal((5000, 8))), cr.tensor(RNG.integers(0, 5000, 9000))
    made = cr.compile(cr.value_and_grad(walk), backend="native")
    for got, want in zip(made(x, i), cr.value_and_grad(walk)(x, i), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-12)
    assert "native.gather" in made.source_native


def test_no_indices() -> None:
    def function(x: Any, i: Any, v: Any) -> Any:
        return x[i].sum() + x.sum(), x.index_add(0, i, v)

    x, none = cr.tensor(RNG.standard_normal((600, 8))), cr.tensor(np.zeros(0, int))
    made = cr.compile(function, backend="native")
    total, same = made(x, none, cr.zeros(0, 8, dtype=cr.float64))
    assert total.item() == pytest.approx(x.sum().item())
    np.testing.assert_array_equal(same.numpy(), x.numpy())


def test_nothing_is_taken_along_an_empty_axis() -> None:
    made = cr.compile(lambda x, i: x.gather(0, i) * 2, backend="native")
    i = cr.tensor(np.zeros(6000, int))
    np.testing.assert_array_equal(made(cr.ones(1), i), np.full(6000, 2.0))
    with pytest.raises(IndexError, match="index 0 is out of bounds"):
        made(cr.ones(0), i)
    assert "native.gather" in made.source_native


def test_kernels_take_all_shapes_but_empty_ones() -> None:
    index = np.array([[2, 0], [1, 1]])
    found = gather_scatter.add_along_last(None, np.ones((2, 2)), index, (2, 3))
    assert found is not None
    assert found.tolist() == [[1, 0, 1], [0, 2, 0]]
    assert gather_scatter.add_along_last(None, np.ones((0, 2)), index[:0], (0, 3)) is None


WRONG = {
    "scatter": (lambda x, i, v: x.index_add(0, i, v), 0, 50),
    "gather": (lambda x, i, v: x[i] * 2, 0, 50),
    "elements": (lambda x, i, v: x[i, i % 8] * 2, 0, 50),
    "elements, second axis": (lambda x, i, v: x[abs(i) % 50, i] * 2, 1, 8),
    "side by side": (lambda x, i, v: cr.cat([x[i], v], 1), 0, 50),
    "last axis": (lambda x, i, v: x[:, i] * 2, 1, 8),
    "along": (lambda x, i, v: x.gather(1, i.reshape(50, 120)) * 2, 1, 8),
    "along the first axis": (lambda x, i, v: x.gather(0, i.reshape(750, 8)) * 2, 0, 50),
    "added along": (lambda x, i, v: x.scatter_add(0, i.reshape(750, 8), v[:750]), 0, 50),
    "added to columns": (lambda x, i, v: x.index_add(1, i, v.mT[:1].expand(50, 6000)), 1, 8),
    "added elements": (
        lambda x, i, v: x.index_put((abs(i) % 50, i), v[:, 0], accumulate=True),
        *(1, 8),
    ),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("wrong", [50, -51])
def test_large_moves_raise_the_errors_of_numpy(name: str, wrong: int) -> None:
    function, axis, size = WRONG[name]
    index = np.zeros(6000, int)
    x, v = cr.zeros(50, 8), cr.ones(6000, 8)
    made = cr.compile(function, backend="native")
    made(x, cr.tensor(index), v)
    index[5000] = wrong
    text = f"index {wrong} is out of bounds for (axis|dimension) {axis} with size {size}"
    for call in (made, function):
        with pytest.raises(IndexError, match=text):
            call(x, cr.tensor(index), v)
    made(x, cr.tensor(index * 0), v)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((141, 61), 1), ((61, 141), 0), ((8197,), 0), ((7, 2, 700), 1), ((9, 950, 1), 1)],
)
def test_large_running_sums_are_kernels_with_the_bits_of_numpy(
    shape: tuple[int, ...], axis: int, dtype: Any
) -> None:
    x = (1 + 0.01 * RNG.standard_normal(shape)).astype(dtype)
    made = cr.compile(
        lambda x: (
            [cr.cumsum(each, axis) for each in (x, x.flip(axis), 2 * x.flip(axis))],
            cr.cumprod(x, axis).flip(axis),
        ),
        backend="native",
    )
    (plain, back, doubled), products = made(cr.tensor(x))
    assert plain.numpy().tobytes() == np.cumsum(x, axis).tobytes()
    flipped = np.flip(x, axis)
    assert back.numpy().tobytes() == np.cumsum(flipped, axis).tobytes()
    assert doubled.numpy().tobytes() == np.cumsum(2 * flipped, axis).tobytes()
    assert products.numpy().tobytes() == np.flip(np.cumprod(x, axis), axis).tobytes()
    assert made.source_native.count("native.running_") == 4


def test_short_running_sums_and_those_of_integers_are_left_to_numpy() -> None:
    made = cr.compile(lambda x: cr.cumsum(x, 1), backend="native")
    for x in (RNG.standard_normal((8, 500)), RNG.integers(0, 9, (80, 500))):
        np.testing.assert_array_equal(made(cr.tensor(x)), np.cumsum(x, 1))
        assert "native.running_" not in (made.source_native or "")
