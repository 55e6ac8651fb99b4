"""Products within functions of machine code: layouts, packing before loops, threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.native import linalg_codegen
from chainrule.compiler.native.gemm import registers

pytest.importorskip("llvmlite")
if registers() is None:
    pytest.skip("NumPy multiplies by another library than OpenBLAS", allow_module_level=True)

MANY = linalg_codegen.MIN_MULTIPLIES
Function = Callable[..., Any]


def whole(rng: np.random.Generator, *shape: int, dtype: str = "f8") -> Any:
    """Return small integers, whose products and sums are exact."""
    return cr.tensor(rng.integers(-4, 5, shape).astype(dtype))


def agree(function: Function, *tensors: Any) -> Any:
    """Compile to a single function, and compare its results with the eager ones: equal bits."""
    compiled = cr.compile(function, backend="native", strict=True)
    found, wanted = compiled(*tensors), function(*tensors)
    for got, want in zip(cr.tree.leaves(found), cr.tree.leaves(wanted), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_array_equal(got.numpy(), want.numpy())
    assert compiled.source_native.startswith(("def loop(", "def shared_"))
    return compiled


@pytest.mark.parametrize(
    "sizes", [(8, 16, 7), (8, 16, 8), (3, 100, 100), (4, 33, 4), (40, 700, 50)]
)
def test_large_products_are_tiled(sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(0)
    rows, terms, columns = sizes
    compiled = agree(lambda a, b: a @ b + 1, whole(rng, rows, terms), whole(rng, terms, columns))
    is_tiled = rows * terms * columns >= MANY and min(sizes) >= 4
    assert ("multiply(" in compiled.source_native) == is_tiled


VIEWS: dict[str, Function] = {
    "as they are": lambda a, b: (a, b),
    "transposed": lambda a, b: (a.mT, b.mT),
    "parts": lambda a, b: (a[..., 1:9, ::2], b[..., ::2, 3:13]),
    "backwards": lambda a, b: (a.flip(-1), b.flip(-2)),
    "one for all": lambda a, b: (a[:1], b),
    "another axis": lambda a, b: (a.transpose(0, -2), b[0]),
    "broadcast": lambda a, b: (a[:, :1].expand(5, 20, 20), b),
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_operands_may_be_views(view: Function, dtype: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (whole(rng, 5, 20, 20, dtype=dtype) for _ in range(2))

    def product(a: Any, b: Any) -> Any:
        x, y = view(a, b)
        return x @ y * 2

    agree(product, a, b)


@pytest.mark.parametrize("terms", [30, 1300])
def test_what_a_loop_does_not_change_is_packed_before_it(terms: int) -> None:
    rng = np.random.default_rng(2)
    rows, weights = whole(rng, 6, 9, terms), whole(rng, 20, terms)

    def run(rows: Any, weights: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            product = row @ weights.T
            return carry + product, product[:, 1]

        return cr.scan(step, cr.zeros(9, 20, dtype=rows.dtype), rows)

    text = agree(run, rows, weights).source_native
    before, _, inside = text.partition("for iteration in")
    assert (before.count("multiply("), inside.count("multiply(")) == (1, 1)


def test_what_a_loop_changes_is_not_packed_before_it() -> None:
    rng = np.random.default_rng(3)
    a, b = whole(rng, 12, 12, dtype="f8"), whole(rng, 5, 12, 12, dtype="f8")

    def run(a: Any, b: Any) -> Any:
        def step(power: Any, factor: Any) -> Any:
            power = (power @ power + power @ factor + power @ (power - factor)) % 7 - 3
            return power, power @ a

        return cr.scan(step, a, b)

    text = agree(run, a, b).source_native
    before, _, inside = text.partition("for iteration in")
    assert (before.count("multiply("), inside.count("multiply(")) == (1, 4)


def test_what_an_inner_loop_or_branch_computes_is_not_packed_before_the_outer_one() -> None:
    rng = np.random.default_rng(11)
    a, b = whole(rng, 12, 12), whole(rng, 4, 12, 12)

    def run(a: Any, b: Any) -> Any:
        def outer(carry: Any, x: Any) -> Any:
            def inner(carry: Any, y: Any) -> Any:
                first = (x + y) % 3
                return (carry @ first + first @ x) % 5 - 2, ()

            carry = cr.scan(inner, carry, b[:2])[0]
            chosen = cr.cond(carry.sum() > 0, lambda x: x @ (x + 1) % 3, lambda x: -x, x)
            return carry, carry @ chosen

        return cr.scan(outer, a, b)

    agree(run, a, b)


def test_what_inner_loops_do_not_change_is_packed_before_the_outermost_that_does_not() -> None:
    rng = np.random.default_rng(4)
    a, b, c = whole(rng, 12, 12), whole(rng, 3, 12, 12), whole(rng, 2, 12, 12)

    def run(a: Any, b: Any, c: Any) -> Any:
        def outer(carry: Any, left: Any) -> Any:
            def inner(carry: Any, right: Any) -> Any:
                return (carry @ a + carry @ left + right) % 5, ()

            return cr.scan(inner, carry, c)[0], carry

        return cr.scan(outer, a, b)

    lines = agree(run, a, b, c).source_native.split("\n")
    depths = [(len(line) - len(line.lstrip())) // 4 for line in lines if "multiply(" in line]
    assert sorted(depths) == [1, 2, 3, 3]


def test_results_are_written_where_they_are_stored() -> None:
    """Also those of which several are stored, that change in place, or that a carry repeats."""
    rng = np.random.default_rng(5)
    xs, w = whole(rng, 7, 11, 11), whole(rng, 11, 11)

    def run(xs: Any, w: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            h, last = carry
            y = (h @ w + x) % 5
            z = y * 1
            z[2:4] += y[0]
            return (y, z), (y, y, z, h, last, y.T, x)

        first, second = cr.scan(step, (xs[0], xs[1]), xs)
        total = second[0].sum(0)
        return first, second, total, total, total.T, second[1] + 1

    agree(run, xs, w)


def test_the_bits_do_not_depend_on_the_threads() -> None:
    rng = np.random.default_rng(6)
    w = cr.tensor(rng.standard_normal((128, 128)).astype("f4") * 0.1)
    xs = cr.tensor(rng.standard_normal((5, 64, 128)).astype("f4"))

    def run(w: Any, xs: Any) -> Any:
        return cr.scan(lambda h, x: ((h @ w + x).tanh(), ()), xs[0], xs)[0]

    before = cr.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 5):
            cr.set_num_threads(threads)
            compiled = cr.compile(run, backend="native", strict=True)
            found.append(compiled(w, xs).numpy().tobytes())
            assert "multiply(" in compiled.source_native
        cr.set_num_threads(1)
        found.append(compiled(w, xs).numpy().tobytes())
    finally:
        cr.set_num_threads(before)
    assert len(set(found)) == 1


def test_gradients_of_a_recurrent_layer() -> None:
    rng = np.random.default_rng(7)
    w, v = (cr.tensor(rng.standard_normal((30, 30)) * 0.2) for _ in range(2))
    xs = cr.tensor(rng.standard_normal((11, 6, 30)))

    def loss(w: Any, v: Any, xs: Any) -> Any:
        h = xs[0]
        for x in xs:
            h = (h @ w.T + x @ v).tanh()
        return (h * h).sum()

    function = cr.value_and_grad(loss, (0, 1, 2))
    compiled = cr.compile(function, backend="native", strict=True)
    found, wanted = compiled(w, v, xs), function(w, v, xs)
    for got, want in zip(cr.tree.leaves(found), cr.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-11, atol=1e-12)
    assert "multiply(" in compiled.source_native


def test_functions_of_a_larger_program_call_products_too() -> None:
    rng = np.random.default_rng(8)
    w, xs = whole(rng, 20, 20, dtype="f4"), whole(rng, 6, 10, 20, dtype="f4")
    large = cr.tensor(rng.standard_normal(100_000))

    def run(w: Any, xs: Any, large: Any) -> Any:
        h = cr.scan(lambda h, x: ((h @ w + x) % 5, ()), xs[0], xs)[0]
        return h, (large * 2 + 1).sin().sum()

    compiled = cr.compile(run, backend="native", strict=True)
    np.testing.assert_array_equal(compiled(w, xs, large)[0].numpy(), run(w, xs, large)[0].numpy())
    assert "native." in compiled.source_native
    assert "multiply(" in compiled.source_native


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 9, 12, 15])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_small_products_in_loops_are_exact(view: Function, size: int) -> None:
    rng = np.random.default_rng(9)
    a, b = (whole(rng, 5, 20, 20, dtype="f4") for _ in range(2))

    def products(a: Any, b: Any) -> Any:
        x, y = view(a, b)
        x, y = x[..., :size, :9], y[..., :9, :]
        vector = y.reshape(-1, *y.shape[-2:])[0, :, 0]
        return x @ y[..., :size], x @ y[..., :2], x @ vector, vector @ y[..., :3], vector @ vector

    agree(products, a, b)


def test_a_product_with_a_large_matrix_and_a_vector_is_machine_code() -> None:
    rng = np.random.default_rng(10)
    a, x = cr.tensor(rng.standard_normal((300, 300)) / 30), cr.tensor(rng.standard_normal(300))

    def power(a: Any, x: Any) -> Any:
        return cr.scan(lambda x, _: ((a @ x + x @ a) / 2, x[0]), x, cr.zeros(20))

    compiled = cr.compile(power, backend="native", strict=True)
    for got, want in zip(compiled(a, x), power(a, x), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-11, atol=1e-12)
    assert "times_plus(" in compiled.source_native
