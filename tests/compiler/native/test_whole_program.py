"""Small programs compiled to one function by LLVM agree with the eager engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler import native

pytest.importorskip("llvmlite", reason="machine code needs LLVM")


@pytest.fixture(autouse=True)
def no_disk_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINRULE_CACHE", "")


def gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    def both(*tensors: Any) -> Any:
        value = function(*tensors)
        return value.detach(), *cr.autograd_grad(value, tensors)

    return both


def agree(function: Callable[..., Any], *arrays: Any, rtol: float = 1e-5) -> Any:
    """Call a function eagerly and as one function of machine code, twice."""
    tensors = [cr.tensor(a, requires_grad=True) for a in arrays]
    compiled = cr.compile(function, backend="native")
    wanted = [t.detach().numpy() for t in function(*tensors)]
    for _ in range(2):
        for got, want in zip(compiled(*tensors), wanted, strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got.detach(), want, rtol=rtol, atol=rtol)
    assert compiled.source_native.startswith(("def loop(", "def shared_"))
    assert "native." not in compiled.source_native
    return compiled


def numbers(*shape: int, seed: int = 0, dtype: str = "float32") -> Any:
    return (np.random.default_rng(seed).normal(size=shape) * 0.4).astype(dtype)


@pytest.mark.parametrize("exponent", [3, 4, -2, -0.5, 1.5])
def test_no_small_power_is_a_call(exponent: float) -> None:
    compiled = cr.compile(lambda x: x**exponent, backend="native")
    np.testing.assert_allclose(compiled(cr.tensor([4.0])).item(), 4.0**exponent, rtol=1e-6)
    assert "**" not in compiled.source_native


def test_a_recurrent_net_and_its_gradient() -> None:
    def loss(w: Any, x: Any) -> Any:
        h, c, total = cr.zeros(5), cr.zeros(5), 0.0
        for t in range(16):
            gates = cr.cat([x[t], h]) @ w
            i, f, g = (gates[k * 5 : (k + 1) * 5] for k in range(3))
            c = cr.sigmoid(f) * c + cr.sigmoid(i) * cr.tanh(g)
            h = cr.tanh(c)
            total = total + (h * h).sum()
        return total

    compiled = agree(gradients(loss), numbers(9, 15), numbers(16, 4, seed=1))
    assert "times_plus(" in compiled.source_native
    assert "for iteration in range(" in compiled.source_native


def test_what_a_loop_ends_with_is_selected_by_a_constant_array() -> None:
    """The backward pass selects anew; the array is a constant of it, and not saved as well."""

    def selected(x: Any) -> Any:
        end = cr.scan(lambda c, row: (cr.sin(c + row), None), x[0] * 0.5, x)[0]
        chosen = end.index_select(0, cr.tensor([2, 0]))
        return cr.maximum(chosen, chosen * 0)

    x = cr.tensor(numbers(3, 3, dtype="float64"), requires_grad=True)
    compiled = cr.compile(selected, backend="native")
    found, wanted = (cr.autograd_grad(f(x).sum(), x)[0] for f in (compiled, selected))
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)
    taken = compiled.source.partition("def selected_backward(")[2].splitlines()[1]
    assert "f8" in taken, taken
    assert "i8" not in taken, taken


def test_time_steps_of_an_equation() -> None:
    def end(p: Any, y: Any) -> Any:
        for _ in range(30):
            slope = cr.stack([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1]])
            y = y + 0.01 * (slope + cr.sin(y))
        return y.sum()

    agree(
        gradients(end), numbers(2, dtype="float64"), numbers(3, seed=1, dtype="float64"), rtol=1e-12
    )


def test_a_jacobian_with_cross_products() -> None:
    def turned(axis: Any, point: Any) -> Any:
        return (cr.linalg.cross(axis, point) + axis * (axis * point).sum()) / point[2]

    def jacobian(*tensors: Any) -> Any:
        values = turned(*tensors)
        rows = [cr.autograd_grad(v, tensors, retain_graph=True) for v in values]
        return tuple(part for row in rows for part in row)

    agree(jacobian, numbers(3), numbers(3, seed=1))


def test_carries_that_are_swapped() -> None:
    def swapped(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            a, b, m = carry
            return (b, a + b, m.T + 1), a * 2

        (a, b, m), rows = cr.scan(step, (x[0], x[1], x), cr.zeros(4))
        return a, b, m, rows, rows.flip(0)

    agree(swapped, numbers(3, 3))


@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,))])
def test_products_of_all_orientations(shapes: Any) -> None:
    def product(a: Any, b: Any) -> Any:
        return cr.tanh(a @ b * 0.5).sum() + (cr.exp(a) * 0.1).sum()

    agree(gradients(product), numbers(*shapes[0]), numbers(*shapes[1], seed=1))


@pytest.mark.parametrize("columns", [1, 3])
def test_products_of_transposed_stacks(columns: int) -> None:
    def product(a: Any, b: Any) -> Any:
        return cr.tanh(a.mT @ b[..., :columns]).sum() + (cr.exp(a) * 0.1).sum()

    agree(gradients(product), numbers(2, 5, 4), numbers(2, 5, 3, seed=1))


VIEWS_OF_TABLES: dict[str, Callable[[Any], Any]] = {
    "sliced": lambda table: table[:, 1:4],
    "transposed": lambda table: table.transpose(1, 2),
    "columns first": lambda table: table.transpose(0, 2),
    "every other, from the end": lambda table: table.flip(0)[:, ::2],
}


@pytest.mark.parametrize("name", VIEWS_OF_TABLES)
def test_steps_along_views(name: str) -> None:
    view = VIEWS_OF_TABLES[name]

    def by_index(table: Any) -> Any:
        rows, total = view(table), 0.0
        for i in range(len(rows) - 1, -1, -1):
            total = cr.tanh(rows[i] * (i + 1)) + 0.5 * total
        return total.sum()

    def by_scan(table: Any) -> Any:
        rows = view(table)
        last, all_ = cr.scan(lambda h, row: (cr.sin(h + row), h * 2), rows[0], rows)
        return last.sum() + all_.cos().sum()

    for function in (by_index, by_scan):
        agree(gradients(function), numbers(12, 5, 12))


def test_parameters_are_updated() -> None:
    w = cr.tensor(numbers(4, 3), requires_grad=True)
    twin = w.detach().clone().requires_grad_()
    x = cr.tensor(numbers(5, 4, seed=2))

    def step(w: Any) -> Any:
        loss = cr.tanh(x @ w).square().mean()
        (grad,) = cr.autograd_grad(loss, [w])
        with cr.no_grad():
            w.sub_(0.1 * grad)
        return loss.detach(), grad

    compiled = cr.compile(step, backend="native")
    for _ in range(3):
        for got, want in zip(compiled(w), step(twin), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)
    assert compiled.source_native.startswith(("def loop(", "def shared_"))
    np.testing.assert_allclose(w.detach(), twin.detach(), rtol=1e-5)


def test_results_are_fresh_arrays() -> None:
    @cr.compile(backend="native")
    def twice(x: Any) -> Any:
        return x * 2 + 1, x

    x = cr.tensor(numbers(4))
    first = twice(x)[0].numpy()
    kept = first.copy()
    twice(x + 1)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: cr.linalg.inv(x @ x.T + cr.eye(4)) * 2 + 1,
        lambda x: cr.sort(x * 2 + 1)[0] * 2,
        lambda x: x.new_zeros(300, 300) @ (x.sum() * cr.ones(300, 300) + 1) + 1,
    ],
)
def test_unsupported_programs_run_in_loops(function: Callable[..., Any]) -> None:
    x = cr.tensor(numbers(4, 4))
    compiled = cr.compile(function, backend="native")
    np.testing.assert_allclose(compiled(x), function(x), rtol=1e-4)


def test_by_default_long_small_programs_are_one_function(monkeypatch: Any) -> None:
    def steps(x: Any) -> Any:
        for _ in range(100):
            x = x + 0.1 * cr.tanh(x)
        return x

    compiled = cr.compile(steps)
    x = cr.tensor(numbers(3))
    np.testing.assert_allclose(compiled(x), steps(x), rtol=1e-5)
    assert compiled.source_native.startswith(("def loop(", "def shared_"))
    monkeypatch.setattr(native, "_MIN_CALLS", 10**6)
    assert not cr.compile(steps)(x + 1).requires_grad


def test_negative_indices() -> None:
    def backward(x: Any, y: Any) -> Any:
        y, total = y.clone(), y.sum() * 0
        for i in range(20):
            total = total * 0.9 + y[-1 - i] * x[-i]  # x[0] first, then negative indices
            y[-2 - i] = total
            y[i - 10] = y[i - 10] + total
        return y, total

    agree(backward, numbers(30), numbers(40, seed=1))

    def around(x: Any) -> Any:
        out = cr.zeros(30)
        for i in range(30):
            out[i] = x[i - 3] * i + out[i - 1]
        return (out,)

    agree(around, numbers(30))


def test_entries_are_read_before_they_are_overwritten() -> None:
    def updated(b: Any, c: Any) -> Any:
        b = b.clone()
        for i in range(12):
            c = c * 0.7 + b[i - 3] * 0.2  # wrong if read after the write
            b[-1 - i] += c * 0.3
        return b, c

    agree(updated, numbers(12, 4), numbers(4, seed=1))

    def handed_on(b: Any, c: Any) -> Any:
        b, d = b.clone(), c
        for i in range(12):
            c, d = b[i], c * 0.5 + d
            b[i] = d
            b[-1 - i] += d * 0.3
        return b, c, d

    agree(handed_on, numbers(12, 4), numbers(4, seed=1))

    def kept(b: Any, c: Any) -> Any:
        b, rows = b.clone(), []
        for i in range(12):
            rows.append(b[i])
            b[i] = c * i
            b[i - 6] += rows[-1]
        return b, cr.stack(rows)

    agree(kept, numbers(12, 4), numbers(4, seed=1))
