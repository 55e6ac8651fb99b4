"""Abstract evaluation: the types of NumPy's own results, without memory for what is large."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.ir.abstract_eval import abstract_eval, resolve
from chainrule.compiler.ir.program import Value

Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def calls(n: int, m: int) -> Iterator[Call]:
    """Yield calls of functions of arrays with the lengths n and m."""
    f, c, i = np.dtype(np.float32), np.dtype(np.complex64), np.dtype(np.int64)
    square, table, turned = Value((n, n), f), Value((n, m), f), Value((m, n), f)
    row, long = Value((m,), f), Value((n * m,), f)
    at, mask = Value((n,), i), Value((n, m), bool)
    complex_table, few = Value((n, m), c), Value((5,), f)
    yield from ((f"np.{name}", (table,), {}) for name in _OF_ONE)
    yield from ((f"np.{name}", (table,), {"axis": axis}) for name in _ALONG for axis in (0, -1))
    yield from ((f"np.{name}", (table, table), {}) for name in ("add", "arctan2", "equal"))
    yield from ((f"np.fft.{name}", (complex_table,), {}) for name in ("fft", "ifft", "fft2"))
    yield from ((f"np.fft.{name}", (table,), {}) for name in ("rfft", "rfft2", "fftshift"))
    yield from ((f"np.linalg.{name}", (square,), {}) for name in _OF_SQUARE)
    yield from ((f"np.linalg.{name}", (table,), {}) for name in ("norm", "qr", "matrix_norm"))
    yield "np.fft.irfft", (complex_table,), {}
    yield "np.linalg.svd", (table,), {"full_matrices": False}
    yield "np.linalg.svd", (turned,), {}
    yield "np.linalg.solve", (square, table), {}
    yield "np.matmul", (table, turned), {}
    yield "np.matmul", (Value((3, 2, n, m), f), row), {}
    yield "np.dot", (table, turned), {}
    yield "np.tensordot", (table, table), {"axes": 2}
    yield "np.einsum", ("ij,kj->ki", table, table), {}
    yield "np.einsum", ("ij,ij,j", table, table, row), {}
    yield "np.outer", (few, row), {}
    yield "np.kron", (Value((2, 3), f), table), {}
    yield "np.where", (mask, table, row), {}
    yield "np.take", (long, at), {}
    yield "np.take", (table, at), {"axis": 1}
    yield "np.searchsorted", (row, table), {}
    yield "np.concat", ((table, square),), {"axis": 1}
    yield "np.concat", ((table, mask),), {}
    yield "np.concat", ((row, long, at),), {}
    yield "np.stack", ([table, table],), {"axis": 1}
    yield "np.repeat", (table, 3), {"axis": 0}
    yield "np.tile", (table, 2), {}
    yield "np.roll", (table, n // 2), {}
    yield "np.pad", (table, 3), {}
    yield "np.diff", (table,), {"n": 2}
    yield "np.diff", (table,), {"n": 12}
    yield "np.convolve", (row, few), {}
    yield "np.interp", (row, few, few), {}
    yield "np.clip", (table, 0, 1), {}
    yield "np.meshgrid", (row, few), {}
    yield "np.reshape", (table, (m, -1)), {}
    yield "np.reshape", (long, (n, 1, m)), {}
    yield "np.astype", (table, np.float64), {}
    yield "np.zeros", ((n, m), np.float32), {}
    yield "np.full", ((n, m), 1), {}
    yield "np.ones", (n,), {"dtype": bool}
    yield "np.eye", (n, m), {"dtype": np.float32}
    yield "np.tri", (n,), {}
    yield "np.arange", (n, 3 * m, 0.5), {}
    yield "np.arange", (n * m,), {}
    yield "np.linspace", (0, 1, n * m), {}
    yield "np.indices", ((n, m),), {}
    for key in _keys(n, min(n, m), at):
        yield "getitem", (table, key), {}
    yield "getitem", (Value((n, 4, m), f), (at, slice(None), at)), {}
    yield "getitem", (Value((2, n, m), f), (1, slice(2, n), at)), {}
    yield "assign_at", (table, Value((n, m), f), at), {}
    yield "add_at", (table, Value((n, m), f)), {"key": at}
    yield "index_add", (Value((n, 3), f),), {"shape": (m, 3), "key": at}
    yield "add_along_axis", (table, Value((n, m), i)), {"shape": (n, m), "axis": 1}
    yield "take_along_axis", (table, Value((n, m), i)), {"axis": 1}
    yield "lasting", (), {"shape": (n, m), "key": at}
    yield "masked", (table, mask), {}
    yield "bits", (complex_table, np.dtype(np.float32)), {}
    yield "with_imag", (complex_table, table), {}
    yield "logcumsumexp", (table,), {"axis": 0}
    yield "windows", (row, 2, 1), {}
    yield "diagonal", (table, 1), {}


_OF_ONE = [
    *("sin", "negative", "modf", "sum", "max", "argmax", "mean", "std", "sort", "argsort", "tril"),
    *(
        "triu",
        "ravel",
        "transpose",
        "flip",
        "copy",
        "nansum",
        "median",
        "unwrap",
        "gradient",
        "cov",
    ),
    *("real", "isfinite", "ascontiguousarray", "count_nonzero", "trapezoid", "nan_to_num"),
]
_ALONG = [
    *("sum", "prod", "any", "argmin", "cumulative_sum", "cumulative_prod", "sort", "argsort"),
    *("flip", "expand_dims", "add.reduce", "add.accumulate", "ptp", "diff", "average"),
]
_OF_SQUARE = ["inv", "det", "slogdet", "cholesky", "eigh", "eigvalsh", "qr"]


def _keys(n: int, short: int, at: Value) -> list[Any]:
    rest = slice(None)
    slices = [slice(1, n - 1), (rest, slice(None, None, -2)), (..., 0), (None, rest, None)]
    return [*slices, 2, at, (rest, at), (at, at), (at, short - 1), (slice(0, n // 2), None, at)]


def name_of(call: Call) -> str:
    name, args, kwargs = call
    return f"{name}({args}, {kwargs})"


# The lengths are short, odd and even, equal, and such that one results from the other.
@pytest.mark.parametrize(("n", "m"), [(3, 4), (40, 41), (41, 40), (30, 30), (100, 51), (20, 300)])
def test_types_are_those_of_numpys_results(n: int, m: int) -> None:
    rng = np.random.default_rng(0)

    def actual(tree: Any) -> Any:
        if isinstance(tree, Value):
            if tree.dtype.kind in "ib":
                return np.zeros(tree.shape, tree.dtype)
            if len(tree.shape) == 2 and tree.shape[0] == tree.shape[1]:
                return np.eye(tree.shape[0], dtype=tree.dtype)
            return rng.normal(size=tree.shape).astype(tree.dtype)
        if isinstance(tree, tuple | list):
            return type(tree)(map(actual, tree))
        return {k: actual(v) for k, v in tree.items()} if isinstance(tree, dict) else tree

    for call in calls(n, m):
        name, args, kwargs = call
        found = abstract_eval(name, args, kwargs).types
        result = resolve(name)(*actual(args), **actual(kwargs))
        parts = result if isinstance(result, tuple | list) else [result]
        assert found == [(np.shape(p), np.asarray(p).dtype) for p in parts], name_of(call)


def peak(function: Callable[[], Any]) -> int:
    """Return the memory in bytes that a call takes at most."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_no_evaluation_takes_memory_by_size() -> None:
    for call in calls(20_000, 20_001):
        assert peak(partial(abstract_eval, *call)) < 20_000_000, name_of(call)


def test_draws_are_not_made() -> None:
    shape = (20_000, 20_000)
    for method, *args in [("random", shape), ("integers", 0, 5, shape), ("geometric", 0.5, shape)]:
        call = ("draw", (None, method, *args), {})
        assert peak(lambda call=call: abstract_eval(*call)) < 1_000_000
        assert abstract_eval(*call).types[0][0] == shape


def test_a_trace_takes_no_memory_by_size() -> None:
    """The arguments are views of one element, so only the trace could take memory."""
    x = cr.tensor(1.0).expand(20_000, 20_000)

    @cr.compile(backend="numpy")
    def sums(x: cr.Tensor) -> Any:
        y = x.t().sin().cumsum(0).sort(0)[0] @ x
        z = cr.einsum("ij,jk->ik", y, x).softmax(1) + cr.eye(20_000) * cr.ones(20_000, 20_000)
        return (z.reshape(-1)[: 10**8].cumsum(0).sum() + cr.rand(20_000, 20_000).sum()).detach()

    assert peak(lambda: sums.built_for((x,), {})) < 40_000_000


# Lengths on both sides of those that dummies have themselves, and functions on both sides: `where`
# with and without alternatives, `insert` at indices and by a mask.
@pytest.mark.parametrize("n", [4, 300, 2000])
def test_shapes_that_need_values_are_refused(n: int) -> None:
    x, mask, index = Value((n,), np.dtype(float)), Value((n,), bool), Value((3,), np.dtype(int))
    refused: list[Call] = [
        ("np.where", (mask,), {}),
        ("np.nonzero", (mask,), {}),
        ("np.insert", (x, mask, 0.0), {}),
        ("np.roots", (x,), {}),
    ]
    for call in refused:
        with pytest.raises(cr.CompileError, match=r"depends on values.*Use where"):
            abstract_eval(*call)
    assert abstract_eval("np.where", (mask, x, x), {}).types == [((n,), np.dtype(float))]
    assert abstract_eval("np.insert", (x, index, 0.0), {}).types == [((n + 3,), np.dtype(float))]


@pytest.mark.no_verify("which copies the arguments")
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_views_of_arrays_that_fit_in_no_memory_are_compiled(backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    x, n = cr.tensor(3.0).expand(10**7, 10**7), 10**14

    @cr.compile(backend=backend)
    def parts(x: cr.Tensor) -> Any:
        rows, long = x.t()[::-2, 3:7][:2] * cr.tensor(2.0), x.reshape(n)[n // 2 :][:3].sin()
        return rows.sum() + long.sum() + x.diagonal()[5:7].sum()

    assert parts(x).item() == pytest.approx(48 + 3 * np.sin(3.0) + 6)


def test_views_of_copies_are_copies_in_machine_code() -> None:
    """The order of a transposed matrix that is flattened is no order of its memory."""
    pytest.importorskip("llvmlite")
    x = cr.arange(12.0).reshape(3, 4)

    def orders(x: cr.Tensor) -> Any:
        y = x.t().ravel()
        return y[1:] * 2 + y[:-1], x.t()[1:3].reshape(-1)[::2].exp(), x[::2].reshape(2, 2, 2).sin()

    for got, wanted in zip(cr.compile(orders, backend="native")(x), orders(x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
