"""Index arrays, searches and small linear algebra as machine code: NumPy's results and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.native.linalg_codegen import MAX_MATRIX, MAX_MATRIX_IN_LOOP

pytest.importorskip("llvmlite", reason="machine code needs LLVM")

RNG = np.random.default_rng(3)


def compiled(function: Callable[..., Any], *arrays: Any) -> Any:
    """Return a function as one function of machine code, and check its results."""
    made = cr.compile(function, backend="native")
    found, wanted = made(*arrays), function(*arrays)
    for got, want in zip(leaves(found), leaves(wanted), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)
    assert made.source_native.startswith(("def loop(", "def shared_")), "NumPy computes a part"
    return made


def leaves(results: Any) -> list[Any]:
    flat = (
        [leaf for each in results for leaf in leaves(each)]
        if isinstance(results, tuple | list)
        else [np.asarray(results.detach())]
    )
    return flat


def with_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    def both(x: Any, *others: Any) -> Any:
        weights = cr.tensor(np.cos(np.arange(100)))

        def loss(x: Any) -> Any:
            out = function(x, *others)
            return (out * weights[: out.numel()].reshape(out.shape)).sum()

        return function(x, *others), cr.grad(loss)(x)

    return both


# --- index arrays ---------------------------------------------------------------------------------

ROWS, COLUMN = np.array([2, 0, -1, 2, 1]), np.array([[1], [-3], [0], [2], [1]])
KEYS = {
    "rows": lambda i, j: i,
    "rows, repeated axes": lambda i, j: (j,),
    "columns": lambda i, j: (slice(None), i),
    "elements": lambda i, j: (i, i),
    "broadcast": lambda i, j: (i, j),
    "rows and a slice": lambda i, j: (i, slice(None, None, -2)),
    "apart": lambda i, j: (i, slice(1, None), i),
    "a number beside": lambda i, j: (1, i),
    "apart from a number": lambda i, j: (i, slice(None), -1),
    "last axis": lambda i, j: (..., i),
    "one row": lambda i, j: i[1],
    "a slice of the index": lambda i, j: (i[::2], slice(0, 2)),
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("shape", [(3, 4, 3), (4, 3, 4)])
def test_reads_and_their_derivatives(name: str, shape: tuple[int, ...]) -> None:
    key = KEYS[name]
    function = with_gradient(lambda x, i, j: x[key(i, j)])
    x = cr.tensor(RNG.standard_normal(shape))
    compiled(function, x, cr.tensor(ROWS), cr.tensor(COLUMN))
    transposed = with_gradient(lambda x, i, j: x.mT.flip(0)[key(i, j)])
    compiled(transposed, x, cr.tensor(ROWS), cr.tensor(COLUMN))


@pytest.mark.parametrize("accumulate", [False, True])
def test_writes(accumulate: bool) -> None:
    def write(x: Any, i: Any, value: Any) -> Any:
        y = x * 2
        if accumulate:
            return y.index_put((i,), value, accumulate=True)
        y[i[:3]] = value[:3]  # without repeats
        return y + 1

    value = cr.tensor(RNG.standard_normal((5, 4)))
    index = cr.tensor(np.array([2, 0, 1, 2, 1]))
    compiled(write, cr.tensor(RNG.standard_normal((3, 4))), index, value)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_along_an_axis(axis: int) -> None:
    index = cr.tensor(RNG.integers(-2, 2, (2, 3, 2)))
    function = with_gradient(lambda x, i: cr.take_along_dim(x, i, axis))
    shape = [2, 3, 2]
    shape[axis] = 4
    compiled(function, cr.tensor(RNG.standard_normal(shape)), index)


@pytest.mark.parametrize("wrong", [3, -4])
def test_an_index_out_of_bounds_is_numpys_error(wrong: int) -> None:
    def write(x: Any, i: Any) -> Any:
        x.mul_(2)
        return (x[i] * 3).sum()

    made = cr.compile(write, backend="native")
    x = cr.tensor([1.0, 2.0, 3.0])
    made(x, cr.tensor([0, 2]))
    assert "status" in made.source_native
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
        made(x, cr.tensor([0, wrong]))
    assert x.tolist() == [4, 8, 12]  # as eagerly: it is doubled before the error


def test_an_index_in_a_loop_of_many_turns() -> None:
    """Stacks may have any size: loops of 1,000, 3,000, 5,000 and 10,000 turns are machine code."""

    def walk(table: Any, steps: Any) -> Any:
        def step(at: Any, move: Any) -> Any:
            at = (at + move) % 7
            return at, table[at]

        return cr.scan(step, cr.tensor(0), steps)[1]

    table = cr.tensor(RNG.standard_normal((7, 3)))
    for turns in (1, 31, 1000, 3000, 5000, 10_000):
        steps = cr.tensor(RNG.integers(0, 7, turns))
        compiled(walk, table, steps)


@pytest.mark.parametrize("side", ["left", "right"])
def test_search(side: str) -> None:
    x = np.array([-1.0, 0.0, 0.0, 0.0, 2.5, np.inf, np.nan])
    values = np.array([[-2.0, -1.0, -0.0], [0.0, 1.0, 2.5], [3.0, np.inf, np.nan]])
    for n in range(1, 8):
        function = lambda x, v: cr.searchsorted(x, v, side=side)  # noqa: E731
        compiled(function, cr.tensor(x[:n]), cr.tensor(values))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_running_sums_and_products(axis: int) -> None:
    x = cr.tensor(RNG.standard_normal((3, 4, 2)))
    compiled(lambda x: (cr.cumsum(x, axis) * 2, cr.cumprod(x, axis)), x)


# --- linear algebra -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 7, MAX_MATRIX])
@pytest.mark.parametrize("stack", [(), (3,), (2, 2)])
def test_systems_and_determinants(n: int, stack: tuple[int, ...]) -> None:
    a = cr.tensor(RNG.standard_normal((*stack, n, n)))
    b = cr.tensor(RNG.standard_normal((*stack, n, 2)))
    compiled(lambda a, b: (cr.linalg.solve(a, b), cr.linalg.inv(a), cr.linalg.slogdet(a)), a, b)
    compiled(lambda a, b: cr.linalg.solve(a.mT, b) * 2, a, b)


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(("n", "stack"), [(1, ()), (5, ()), (3, (4,)), (MAX_MATRIX, ())])
def test_triangular_systems(n: int, stack: tuple[int, ...], upper: bool, unit: bool) -> None:
    a = cr.tensor(RNG.standard_normal((*stack, n, n)) / n + 2 * np.eye(n))
    b = cr.tensor(RNG.standard_normal((*stack, n, 2)))

    def function(a: Any, b: Any) -> Any:
        return cr.linalg.solve_triangular(a.mT * 1, b * 2, upper=upper, unitriangular=unit) + 1

    def of_views(a: Any, b: Any) -> Any:
        flipped = a.flip((-2, -1))
        return cr.linalg.solve_triangular(flipped, b * 2, upper=upper, unitriangular=unit) + 1

    compiled(function, a, b)
    compiled(of_views, a, b)
    made = cr.compile(function, backend="native")
    made(a, b)
    assert "substitute(" in made.source_native


@pytest.mark.parametrize("n", [1, 4, MAX_MATRIX])
def test_cholesky_factors(n: int) -> None:
    x = RNG.standard_normal((3, n, n))
    compiled(lambda a: cr.linalg.cholesky(a) * 1, cr.tensor(x @ x.swapaxes(1, 2) + np.eye(n)))


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 5, 3), (3, 5), (MAX_MATRIX, 2)])
def test_qr_decompositions(shape: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        q, r = cr.linalg.qr(x * 2)
        return q * 1, r * 1

    x = RNG.standard_normal(shape)
    compiled(function, cr.tensor(x))
    compiled(function, cr.tensor(np.triu(x) * 1e-200))  # columns that are zero below the diagonal
    made = cr.compile(function, backend="native")
    made(cr.tensor(x))
    assert "householder(" in made.source_native


@pytest.mark.parametrize("element", [np.nan, np.inf, 1e-300, 1e300])
def test_qr_decompositions_of_extreme_elements(element: float) -> None:
    x = RNG.standard_normal((3, 3))
    x[2, 0] = element
    compiled(lambda x: [each * 1 for each in cr.linalg.qr(x * 2)], cr.tensor(x))


def test_larger_matrices_are_left_to_lapack() -> None:
    made = cr.compile(lambda a: cr.linalg.inv(a) * 2 + a, backend="native")
    made(cr.tensor(np.eye(MAX_MATRIX + 1)))
    assert "eliminate" not in made.source_native


@pytest.mark.parametrize("n", [MAX_MATRIX + 1, MAX_MATRIX_IN_LOOP, MAX_MATRIX_IN_LOOP + 1])
@pytest.mark.parametrize("call", ["solve", "solve_triangular"])
def test_larger_matrices_in_loops(n: int, call: str) -> None:
    def function(a: Any, x: Any) -> Any:
        for _ in range(20):
            x = getattr(cr.linalg, call)(a, x, **options).tanh() + x.sin() * x.cos()
        return x

    options = {"upper": False} if call == "solve_triangular" else {}
    a = cr.tensor(RNG.standard_normal((n, n)) / n + 2 * np.eye(n))
    x = cr.tensor(RNG.standard_normal((n, 1)))
    made = cr.compile(function, backend="native")
    np.testing.assert_allclose(made(a, x), function(a, x), rtol=1e-10)
    is_native = call == "solve_triangular" or n <= MAX_MATRIX_IN_LOOP
    kernel = "substitute(" if call == "solve_triangular" else "eliminate("
    assert (kernel in made.source_native) == is_native


def test_many_right_sides_of_small_triangular_matrices() -> None:
    def function(a: Any, b: Any) -> Any:
        return (cr.linalg.solve_triangular(a * 2, b, upper=False) ** 2).sum(0)

    a, b = np.eye(20) + 0.1, RNG.standard_normal((20, 500))
    made = cr.compile(function, backend="native")
    np.testing.assert_allclose(made(a, b), function(a, b), rtol=1e-10)
    assert "substitute(" in made.source_native


@pytest.mark.parametrize("call", ["inv", "solve", "solve_triangular", "cholesky"])
def test_singular_matrices_are_numpys_errors(call: str) -> None:
    def function(a: Any) -> Any:
        if call == "solve":
            return cr.linalg.solve(a * 2, a) + 1
        if call == "solve_triangular":
            return cr.linalg.solve_triangular(a * 2, a, upper=True) + 1
        return getattr(cr.linalg, call)(a * 2) + 1

    made = cr.compile(function, backend="native")
    made(cr.tensor(np.eye(3)))
    singular = cr.tensor(np.diag([1.0, 0.0, -1.0]))
    with pytest.raises(np.linalg.LinAlgError):
        function(singular)
    with pytest.raises(np.linalg.LinAlgError):
        made(singular)


def test_determinants_of_singular_matrices() -> None:
    a = np.stack([np.zeros((2, 2)), np.array([[0.0, 2.0], [3.0, 0.0]]), -np.eye(2)])
    compiled(lambda a: cr.linalg.slogdet(a * 1), cr.tensor(a))


# --- one line without machine code does not spoil a loop ------------------------------------------


def test_a_loop_beside_an_eigenvalue_is_one_call() -> None:
    def function(a: Any, xs: Any) -> Any:
        values = cr.linalg.eigvalsh(a)

        def step(c: Any, x: Any) -> Any:
            c = cr.tanh(c * values + x)
            return c, c.sum()

        return cr.scan(step, values * 0, xs)[1]

    a, xs = cr.tensor(np.diag([1.0, 2.0, 3.0])), cr.tensor(RNG.standard_normal((200, 3)))
    made = cr.compile(function, backend="native")
    np.testing.assert_allclose(made(a, xs), function(a, xs), rtol=1e-9)
    body = made.source_native.rpartition("def function(")[2]
    assert "for " not in body
    assert body.count("native.") == 1


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_branches_within_loops(sign: float) -> None:
    def function(xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = cr.cond(c.sum() > x, lambda: c * 0.5, lambda: c - x)
            return c, c.sum()

        return cr.scan(step, cr.ones(3, dtype=cr.float64), xs)[1]

    compiled(function, cr.tensor(sign * RNG.random(50)))
