"""Matrix products as machine code: exactness, layouts, threads, and use in programs."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.compiler.native import gemm
from chainrule.compiler.native.gemm import Product, Registers, registers

pytest.importorskip("llvmlite")

HERE = registers()
if HERE is None:
    pytest.skip("NumPy multiplies by another library than OpenBLAS", allow_module_level=True)

WIDTHS = [Registers(32, (6, 4)), Registers(64, (14, 8))]
"""Register blockings of AVX2 and AVX-512; LLVM halves vectors that this processor lacks."""

SHAPES = [  # rows, terms, columns: partial tiles, odd edges, several panels and blocks of terms
    (1, 1, 1),
    (4, 4, 4),
    (14, 3, 32),
    (15, 40, 33),
    (16, 20, 40),
    (3, 5, 65),
    (29, 1030, 16),
    (57, 129, 64),
    (200, 37, 31),
    (64, 1000, 100),
    (300, 64, 70),
    (20, 300, 600),
]


def whole_numbers(rng: np.random.Generator, shape: Any, dtype: Any) -> np.ndarray:
    """Return small integers, whose products and sums are exact."""
    return rng.integers(-8, 9, shape).astype(dtype)


def layouts(x: np.ndarray) -> dict[str, np.ndarray]:
    """Return the same matrix in several memory layouts."""
    doubled = np.zeros([2 * n for n in x.shape], x.dtype)
    doubled[tuple([slice(None, None, 2)] * x.ndim)] = x
    return {
        "in C order": x,
        "transposed": np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
        "every other one": doubled[tuple([slice(None, None, 2)] * x.ndim)],
        "backwards": np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1],
    }


def check(a: np.ndarray, b: np.ndarray, width: Registers) -> None:
    product = Product(a.shape, b.shape, a.dtype, width)(a, b)
    expected = np.matmul(a.astype(np.int64), b.astype(np.int64))
    assert product.dtype == a.dtype
    np.testing.assert_array_equal(product, expected)


@pytest.mark.parametrize("width", WIDTHS, ids=lambda width: f"{width.vector} bytes")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_of_whole_numbers_are_exact(
    width: Registers, dtype: str, shape: tuple[int, int, int]
) -> None:
    rng = np.random.default_rng(1)
    rows, terms, columns = shape
    a = layouts(whole_numbers(rng, (rows, terms), dtype))
    b = layouts(whole_numbers(rng, (terms, columns), dtype))
    for first, second in itertools.product(a, b):
        check(a[first], b[second], width)


STACKS = [((3,), (3,)), ((2, 3), (2, 3)), ((3,), ()), ((2, 1), (1, 3)), ((2, 3, 2), (2, 1, 2))]


@pytest.mark.parametrize("width", WIDTHS, ids=lambda width: f"{width.vector} bytes")
@pytest.mark.parametrize("stacks", STACKS, ids=str)
def test_stacks_are_multiplied_one_by_one(width: Registers, stacks: Any) -> None:
    rng = np.random.default_rng(2)
    a = layouts(whole_numbers(rng, (*stacks[0], 20, 30), "f4"))
    b = layouts(whole_numbers(rng, (*stacks[1], 30, 40), "f4"))
    for first, second in itertools.product(a, b):
        check(a[first], b[second], width)


SIZES = st.integers(1, 90)


@settings(deadline=None, max_examples=60)
@given(
    sizes=st.tuples(SIZES, st.integers(1, 400), SIZES),
    orders=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    dtype=st.sampled_from(["f4", "f8"]),
    width=st.sampled_from(WIDTHS),
    seed=st.integers(0, 99),
)
def test_products_of_any_size_and_layout_are_exact(
    sizes: Any, orders: Any, dtype: str, width: Registers, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows, terms, columns = sizes
    a = [*layouts(whole_numbers(rng, (rows, terms), dtype)).values()][orders[0]]
    b = [*layouts(whole_numbers(rng, (terms, columns), dtype)).values()][orders[1]]
    check(a, b, width)


def test_rounding_errors_are_bounded() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((100, 3000)), rng.standard_normal((3000, 50))
    for dtype in (np.float32, np.float64):
        x, y = a.astype(dtype), b.astype(dtype)
        exact = np.matmul(x.astype(np.longdouble), y.astype(np.longdouble))
        ours = np.abs(Product(x.shape, y.shape, dtype, HERE)(x, y) - exact)
        bound = np.finfo(dtype).eps * np.matmul(np.abs(x), np.abs(y))
        assert np.all(ours <= 4 * bound)


def test_nan_and_infinity_stay_in_their_row_and_column() -> None:
    a, b = np.ones((40, 50), np.float32), np.ones((50, 70), np.float32)
    a[7, 3], b[5, 66] = np.nan, np.inf
    product = Product(a.shape, b.shape, a.dtype, HERE)(a, b)
    assert np.isnan(product[7]).all()
    assert np.isposinf(np.delete(product[:, 66], 7)).all()
    rest = np.delete(np.delete(product, 7, 0), 66, 1)
    np.testing.assert_array_equal(rest, 50)


def test_nothing_around_the_result_is_written() -> None:
    rng = np.random.default_rng(4)
    for rows, columns in [(5, 3), (15, 33), (64, 100), (31, 47)]:
        a, b = whole_numbers(rng, (rows, 300), "f4"), whole_numbers(rng, (300, columns), "f4")
        memory = np.full(rows * columns + 128, 77, np.float32)
        out = memory[64:-64].reshape(rows, columns)
        found = Product(a.shape, b.shape, "f4", HERE)(a, b, (out,))
        assert found is out
        np.testing.assert_array_equal(out, a @ b)
        assert (memory[:64] == 77).all()
        assert (memory[-64:] == 77).all()


def test_out_may_have_any_layout() -> None:
    rng = np.random.default_rng(5)
    a, b = whole_numbers(rng, (20, 30), "f4"), whole_numbers(rng, (30, 40), "f4")
    out = np.zeros((40, 20), np.float32).T
    Product(a.shape, b.shape, "f4", HERE)(a, b, (out,))
    np.testing.assert_array_equal(out, a @ b)


@pytest.mark.parametrize("layout", ["in C order", "transposed"])
def test_the_bits_do_not_depend_on_the_threads(layout: str) -> None:
    rng = np.random.default_rng(6)
    a = layouts(rng.standard_normal((300, 400)).astype("f4"))[layout]
    b = rng.standard_normal((400, 200)).astype("f4")
    product = Product(a.shape, b.shape, "f4", HERE)
    before = cr.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 5):
            cr.set_num_threads(threads)
            found.append(product(a, b).tobytes())
    finally:
        cr.set_num_threads(before)
    assert len(set(found)) == 1
    if layout == "in C order":  # nor on other rows
        row = Product((1, 400), b.shape, "f4", HERE)(a[100:101], b)
        assert row.tobytes() == product(a, b)[100:101].tobytes()


def test_several_threads_multiply_at_once() -> None:
    rng = np.random.default_rng(7)
    a, b = whole_numbers(rng, (200, 300), "f4"), whole_numbers(rng, (300, 200), "f4")
    product, expected, wrong = Product(a.shape, b.shape, "f4", HERE), a @ b, []

    def work() -> None:
        for _ in range(50):
            if not np.array_equal(product(a, b), expected):
                wrong.append(1)

    members = [threading.Thread(target=work) for _ in range(4)]
    for member in members:
        member.start()
    for member in members:
        member.join()
    assert not wrong


def test_the_number_of_plans_is_limited() -> None:
    memory, b = np.ones((20, 2000), np.float32), np.ones((30, 10), np.float32)
    product = Product((20, 30), b.shape, "f4", HERE)
    for width in range(30, 1000):
        view = memory.reshape(-1)[: 20 * width].reshape(20, width)[:, :30]
        np.testing.assert_array_equal(product(view, b), 30)
    assert len(product._plans) <= gemm._MAX_PLANS


def test_records_are_left_to_numpy() -> None:
    records = np.zeros((20, 30), [("x", "f4"), ("y", "u1")])
    records["x"] = whole_numbers(np.random.default_rng(8), (20, 30), "f4")
    a, b = records["x"], np.ones((30, 10), np.float32)
    np.testing.assert_array_equal(Product(a.shape, b.shape, "f4", HERE)(a, b), a @ b)


# --- in programs ----------------------------------------------------------------------------------


def test_large_products_of_programs_are_machine_code() -> None:
    rng = np.random.default_rng(9)
    w = cr.tensor(rng.standard_normal((150, 160)) * 0.1, requires_grad=True)
    x = cr.tensor(rng.standard_normal((2, 120, 150)))

    def gradient() -> Any:
        return cr.autograd_grad(((x @ w).tanh() @ w.T).sin().sum(), [w])[0]

    compiled = cr.compile(gradient, backend="native")
    np.testing.assert_allclose(compiled().numpy(), gradient().numpy(), rtol=1e-10, atol=1e-10)
    assert "native.matmul_1(" in compiled.source_native
    assert "tile_f8" in compiled.source_native
    assert "native" not in compiled.source


def test_products_in_regions_are_machine_code() -> None:
    rng = np.random.default_rng(10)
    a = cr.tensor(rng.standard_normal((150, 150)) * 0.05)
    x0 = cr.tensor(rng.standard_normal((140, 150)))

    def run() -> Any:
        return cr.scan(lambda x, _: ((x @ a).tanh(), x[0]), x0, cr.zeros(30))[0]

    compiled = cr.compile(run, backend="native")
    np.testing.assert_allclose(compiled().numpy(), run().numpy(), rtol=1e-10, atol=1e-12)
    assert "native.matmul_1(" in compiled.source_native


def test_small_and_integer_products_run_in_numpy() -> None:
    a, b = cr.ones(5, 5), cr.ones(5, 5)
    large = cr.ones(80, 80, dtype=cr.int64)

    def products_of(x: Any, y: Any, n: Any) -> Any:
        return x @ y, n @ n, (x @ y) @ x[0]

    compiled = cr.compile(products_of, backend="native")
    for found, expected in zip(compiled(a, b, large), products_of(a, b, large), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
    assert "native.matmul" not in compiled.source_native


def test_without_openblas_products_run_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm, "registers", lambda: None)
    a = cr.ones(80, 80)
    compiled = cr.compile(lambda x: (x @ x).sin().sum(), backend="native")
    assert float(compiled(a)) == pytest.approx(float((a @ a).sin().sum()))
    assert "native.matmul" not in compiled.source_native


def test_products_are_left_to_blas_if_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINRULE_BLAS", "off")
    assert registers.__wrapped__() is None


@pytest.mark.parametrize(
    ("features", "bytes_of_a_vector"),
    [
        (frozenset({"avx", "avx2", "fma"}), 32),
        (frozenset({"avx", "avx2"}), None),
        (gemm.AVX512 | {"avx2"}, 64),
        (frozenset(), None),
    ],
)
def test_vector_width_follows_from_the_processor(
    features: frozenset[str], bytes_of_a_vector: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gemm.openblas, "features", lambda: features)
    found = registers.__wrapped__()
    assert (found and found.vector) == bytes_of_a_vector
