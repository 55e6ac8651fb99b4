"""Programs compiled to fused loops agree with the eager engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.nn.functional as F
from chainrule.compiler import native
from chainrule.compiler.native import fusion_groups

pytest.importorskip("llvmlite", reason="machine code needs LLVM")


@pytest.fixture(autouse=True)
def loops_without_disk_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_emit_whole", lambda program: None)  # see test_native_whole
    monkeypatch.setattr(fusion_groups, "LOOP_CALLS", 0)  # fuse small arrays, too
    monkeypatch.setenv("CHAINRULE_CACHE", "")


def beside_eager(function: Callable[..., Any], *arrays: Any, rtol: float = 2e-5) -> Any:
    """Call a function eagerly and compiled, with gradients; return the compiled one."""
    found = []
    compiled = cr.compile(function, backend="native")
    for call in (function, compiled, compiled):
        tensors = [cr.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
        result = call(*tensors)
        outs = result if isinstance(result, tuple) else (result,)
        sum(out.sum() for out in outs if out.requires_grad).backward()
        grads = [t.grad.numpy() for t in tensors if t.grad is not None]
        found.append([*(out.detach().numpy() for out in outs), *grads])
    for later in found[1:]:
        for got, wanted in zip(later, found[0], strict=True):
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
            scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=1)
            np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol * scale)
    return compiled


def numbers(*shape: int, seed: int = 0, dtype: str = "float32") -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("bound", [50.0, -50.0])
def test_the_condition_of_a_while_loop_is_one_kernel(bound: float) -> None:
    def doublings(x: Any) -> Any:
        def is_small(carry: Any) -> Any:
            return (carry[0] < 3) & (carry[1].real.sum() < bound)

        first = cr.tensor(0), x.to(cr.complex128)
        return cr.while_loop(is_small, lambda c: (c[0] + 1, c[1] * 2), first)[0]

    x = cr.tensor(np.ones((3, 3, 2)))
    compiled = cr.compile(doublings, backend="native")
    assert compiled(x).item() == doublings(x).item()
    assert "def loop" in compiled.source_native


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chain_of_elementary_functions(dtype: str) -> None:
    def chain(x: Any, y: Any) -> Any:
        z = cr.tanh(x) * cr.exp(-y * y) + F.softplus(x) / (1 + cr.sigmoid(y))
        return cr.where(z > 0, cr.log1p(z * z), cr.erf(z)) + cr.expm1(x).clip(-0.5, 2)

    x, y = numbers(7, 300, dtype=dtype), numbers(300, seed=1, dtype=dtype)
    compiled = beside_eager(chain, x, y)
    assert "for i in range" in compiled.source_native
    assert f"tanh_f{np.dtype(dtype).itemsize}(" in compiled.source_native


def test_arithmetic_is_numpys_to_the_bit() -> None:
    def arithmetic(x: Any, y: Any) -> Any:
        return (x * y - y * x) + (x * x - y * y) / (x + 3) + cr.sqrt(abs(x)) * 0.1

    x, y = numbers(1000), numbers(1000, seed=1)
    compiled = cr.compile(arithmetic, backend="native")(cr.tensor(x), cr.tensor(y))
    np.testing.assert_array_equal(compiled, arithmetic(cr.tensor(x), cr.tensor(y)))


def test_segments_of_float32_sums_are_added_in_float64() -> None:
    x = np.random.default_rng(0).random(1 << 20, np.float32)
    compiled = cr.compile(lambda x: (abs(x) * x).sum(), backend="native")(cr.tensor(x))
    exact, rows = (x * x).astype(np.float64).sum(), (x * x).reshape(-1, 64)

    def error(total: Any) -> float:
        return abs(float(total) / exact - 1)

    assert error(np.add.accumulate(rows)[-1].astype(np.float64).sum()) > 1e-6  # 64 running sums
    assert error(compiled) < 1e-7  # half a unit of the last place is 6e-8


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((3, 4, 5), axis) for axis in (None, 0, 1, 2, (0, 2), (1, 2))]
    + [((70, 40, 60), axis) for axis in (None, 0, 2)],
)
def test_reductions_end_loops(shape: tuple[int, ...], axis: Any) -> None:
    def reduced(x: Any) -> Any:
        y = x * 2 + 1
        return (y * y).sum(axis), y.amax(axis, keepdim=True), (-y).amin(axis)

    compiled = beside_eager(reduced, numbers(*shape), rtol=1e-4)
    assert "np.sum" not in compiled.source_native.split("def reduced(")[1]


def test_views_are_strided_accesses() -> None:
    def views(x: Any, row: Any) -> Any:
        y = x.T * 2 + x.T.flip(0)
        z = x[1:, ::2] - x[:-1, 1::2] + row[None, :3]
        return y, z.sum(0), (z * x[0, 0]).mean()

    beside_eager(views, numbers(6, 6), numbers(3, seed=2))


def test_rows_with_softmax_and_products_between() -> None:
    def network(x: Any, w: Any, b: Any) -> Any:
        h = cr.relu(x @ w + b)
        return F.log_softmax(h * 0.5, -1)[:, 2].mean()

    beside_eager(network, numbers(30, 20), numbers(20, 10, seed=1), numbers(10, seed=2))


def test_nan_and_infinity_are_kept() -> None:
    def kept(x: Any) -> Any:
        y = x * 1
        return y.amax(), y.amin(), cr.exp(y) * 2, cr.tanh(y) * 2, cr.relu(y) + 1, y.clip(-1, 1) + 1

    compiled = cr.compile(kept, backend="native")
    for special in (np.nan, np.inf, -np.inf, -np.nan):
        x = numbers(40)
        x[17] = special
        with np.errstate(all="ignore"):
            wanted = [t.numpy() for t in kept(cr.tensor(x))]
            found = [t.numpy() for t in compiled(cr.tensor(x))]
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_inputs_of_any_layout_and_read_only() -> None:
    def double(x: Any) -> Any:
        return x * 2 + 1

    compiled = cr.compile(double, backend="native")
    x = numbers(8, 6)
    frozen = x.copy()
    frozen.flags.writeable = False
    for layout in (x, np.asfortranarray(x), numbers(8, 12)[:, ::2], frozen):
        np.testing.assert_array_equal(compiled(layout), layout * 2 + 1)


def test_large_sums_do_not_depend_on_the_threads() -> None:
    def total(x: Any) -> Any:
        return (cr.exp(x) * 0.5).sum(), (x * x).sum(0)

    x = cr.tensor(numbers(1000, 700))
    compiled = cr.compile(total, backend="native")
    before, found = cr.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            cr.set_num_threads(count)
            found.append([t.numpy() for t in compiled(x)])
    finally:
        cr.set_num_threads(before)
    for later in found[1:]:
        np.testing.assert_array_equal(later[0], found[0][0])
        np.testing.assert_array_equal(later[1], found[0][1])
    exact = np.exp(x.numpy().astype("f8")).sum() / 2
    np.testing.assert_allclose(found[0][0], exact, rtol=1e-6)


def test_results_are_fresh_arrays_and_threads_may_call_at_once() -> None:
    @cr.compile(backend="native")
    def work(x: Any) -> Any:
        return cr.tanh(x) * x + 1

    inputs = [cr.tensor(numbers(200_000, seed=s)) for s in range(4)]
    alone = [work(x).numpy().copy() for x in inputs]
    found: dict[int, list[Any]] = {}

    def call(number: int) -> None:
        found[number] = [work(inputs[number]).numpy() for _ in range(5)]

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, arrays in found.items():
        assert len({a.ctypes.data for a in arrays}) == 5
        for array in arrays:
            np.testing.assert_array_equal(array, alone[number])


def test_parameters_are_updated_in_place() -> None:
    w = cr.tensor(numbers(50, 20), requires_grad=True)
    twin = w.detach().clone().requires_grad_()

    def step(w: Any, x: Any) -> Any:
        loss = cr.tanh(x @ w).square().mean()
        loss.backward()
        with cr.no_grad():
            w -= 0.1 * w.grad * 3
        w.grad = None
        return loss.detach()

    x = cr.tensor(numbers(30, 50, seed=3))
    compiled = cr.compile(step, backend="native")
    for _ in range(3):
        np.testing.assert_allclose(compiled(w, x), step(twin, x), rtol=1e-5)
    np.testing.assert_allclose(w.detach(), twin.detach(), rtol=1e-5)


def test_draws_keep_their_order() -> None:
    def drawn(x: Any) -> Any:
        a = cr.rand_like(x) * 2 + x
        return a * cr.randn_like(x) + 1, cr.rand_like(x)

    x = cr.tensor(numbers(100))
    cr.manual_seed(3)
    wanted = drawn(x)
    cr.manual_seed(3)
    found = cr.compile(drawn, backend="native")(x)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_cheap_programs_run_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("CHAINRULE_CACHE", "")

    def values(x: Any) -> Any:
        return cr.linalg.eigvalsh(x * 2 + 1) * 0.5 + x

    for size, expected in ((4, False), (200, True)):
        x = cr.tensor(numbers(size, size))
        compiled = cr.compile(values, backend="native")
        np.testing.assert_allclose(compiled(x), values(x), rtol=1e-3, atol=1e-3)
        assert ("def loop(" in compiled.source_native) is expected


@pytest.mark.filterwarnings("ignore::chainrule.PerformanceWarning")
@pytest.mark.parametrize(("seconds", "loops"), [("0.003", 0), ("0.03", 1), ("", 2)])
def test_the_time_of_compiling_is_limited(
    seconds: str, loops: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def several(x: Any) -> Any:
        y = (cr.tanh(x * 2 + 1) + x * x) @ x
        return cr.exp(y) + y * y + cr.tanh(y)

    monkeypatch.setenv("CHAINRULE_COMPILE_SECONDS", seconds)
    compiled, x = cr.compile(several, backend="native"), cr.tensor(numbers(200, 200) * 0.1)
    np.testing.assert_allclose(compiled(x), several(x), rtol=1e-3, atol=1e-5)
    assert compiled.source_native.count("native.several_") == loops


def test_a_time_that_is_no_number_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINRULE_COMPILE_SECONDS", "5 s")
    with pytest.raises(cr.ArgumentError, match=r"is a number of seconds, got '5 s': unset it"):
        cr.compile(lambda x: (x * x).sum(), backend="native")(cr.tensor(numbers(5000)))


def test_regions_are_fused() -> None:
    def recurrent(w: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            gate = cr.sigmoid(h @ w + x)
            h = gate * h + (1 - gate) * cr.tanh(x)
            return h, (h * h).sum()

        h, energies = cr.scan(step, cr.zeros(xs.shape[1]), xs)
        return h.sum() + energies.sum()

    compiled = beside_eager(recurrent, numbers(300, 300) * 0.02, numbers(7, 300, seed=1))
    rows = compiled.source_native.split("def recurrent(")[1].splitlines()
    assert any(row.startswith("        ") and "native." in row for row in rows)


def test_a_loop_of_python_is_rolled_and_fused() -> None:
    def steps(y: Any, p: Any) -> Any:
        for _ in range(40):
            y = y + 0.01 * (cr.sin(y) * p - cr.tanh(y) * y)
        return y.sum()

    beside_eager(steps, numbers(30), numbers(30, seed=1))


def adam_by_hand(w: Any, m: Any, v: Any, g: Any) -> None:
    m.mul_(0.9).add_(0.1 * g)
    v.mul_(0.99).add_(0.01 * g * g)
    w.sub_(0.1 * m / (v.sqrt() + 1e-3))


def test_a_loop_with_several_outputs_updates_parameters_in_place() -> None:
    def step(w: Any, m: Any, v: Any, x: Any) -> Any:
        adam_by_hand(w, m, v, cr.tanh(x) * 2)

    state = [cr.tensor(numbers(70, 80, seed=s)).abs() for s in range(3)]
    twins = [t.clone() for t in state]
    x = cr.tensor(numbers(70, 80, seed=5))
    compiled = cr.compile(step, backend="native")
    for _ in range(3):
        compiled(*state, x)
        step(*twins, x)
    for got, want in zip(state, twins, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
    called = compiled.source_native.split("def step(")[1]
    assert "out=(m, v, w)" in called
    assert "[...]" not in called


def test_parameters_of_any_layout_are_updated() -> None:
    def step(w: Any, m: Any, v: Any, x: Any) -> Any:
        adam_by_hand(w, m, v, x * 2)
        return (w * v).sum()

    for layout in (lambda a: a.T.copy().T, lambda a: np.repeat(a, 2, 1)[:, ::2]):
        state = [cr.tensor(layout(np.abs(numbers(70, 80, seed=s)))) for s in range(3)]
        state[1] = cr.tensor(state[1].numpy().copy())
        arrays = [t.numpy() for t in state]
        twins = [t.clone() for t in state]
        x = cr.tensor(numbers(70, 80, seed=5))
        found, wanted = cr.compile(step, backend="native")(*state, x), step(*twins, x)
        np.testing.assert_allclose(found, wanted, rtol=1e-4)
        for got, want in zip(arrays, twins, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_reads_of_old_values_of_updated_parameters() -> None:
    def swapped(a: Any, b: Any) -> Any:
        old = a * 1
        total, other = a + b, a * 2 - b
        a.copy_(b * 1 + 0 * total)
        b.copy_(old + 0 * other)
        return total * other

    def returned(a: Any, b: Any) -> Any:
        before = a.clone()
        a.mul_(2).add_(b)
        b.sub_(before)
        return before, before @ b.T

    def shifted(a: Any, b: Any) -> Any:
        a[1:] = a[:-1] * 2 + b[1:]
        b.copy_(b.T * 2 + a)

    def read_later(a: Any, b: Any) -> Any:
        old = cr.tanh(a.clone()) @ b
        a.mul_(2).add_(1)
        b.mul_(cr.exp(-a)).add_(old)
        return (a + old) @ b

    for function in (swapped, returned, shifted, read_later):
        tensors = [cr.tensor(numbers(90, 90, seed=s) * 0.1) for s in range(2)]
        twins = [t.clone() for t in tensors]
        compiled = cr.compile(function, backend="native")
        for _ in range(2):
            found, wanted = compiled(*tensors), function(*twins)
            for got, want in zip(tensors, twins, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
            parts = (found, wanted) if isinstance(wanted, tuple) else ((found,), (wanted,))
            for got, want in zip(*parts, strict=True):
                if want is not None:
                    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [5, 100_000])
@pytest.mark.parametrize("whole", [False, True])
def test_equal_results_share_no_memory(
    size: int, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if whole:
        monkeypatch.undo()  # small programs in one function
        monkeypatch.setenv("CHAINRULE_CACHE", "")

    @cr.compile(backend="native")
    def twice(x: Any) -> Any:
        y = cr.tanh(x) * 2 + 1
        return y, y * 1, y[1:].clone(), y

    x = cr.tensor(numbers(size))
    first, second, part, again = (t.numpy() for t in twice(x))
    assert again is first  # one tensor, as eagerly
    assert not np.shares_memory(first, second)
    assert not np.shares_memory(first, part)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first[1:], part)
    kept = first.copy()
    twice(x * 2)
    np.testing.assert_array_equal(second, kept)


def test_profile_measures_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    total = cr.zeros(40)

    @cr.compile(backend="native")
    def function(x: Any) -> Any:
        total.add_(x.sum(0))
        return (x @ x.T).tanh() * 2 + 1

    rows = cr.profile(function, cr.ones(40, 40)).rows
    assert total.sum().item() == 0
    assert any("native.function_" in row.statement for row in rows)
    assert any("matmul" in row.statement or " @ " in row.statement for row in rows)
    assert all(row.seconds > 0 for row in rows)
    monkeypatch.undo()
    (row,) = cr.profile(cr.compile(lambda x: (x * 2).exp(), backend="native"), cr.ones(3)).rows
    assert row.statement == "the program as machine code"


@pytest.mark.parametrize("n", [(1 << 16) - 1, 1 << 16])
def test_a_dot_product_of_many_numbers_is_machine_code(n: int) -> None:
    x, y = (cr.tensor(np.random.default_rng(n).standard_normal(n)) for _ in range(2))

    def function(x: Any, y: Any) -> Any:
        return cr.linalg.norm(cr.stack([(x * y).sum(), cr.sort(y).values[0]]))

    made = cr.compile(function, backend="native")
    assert made(x, y).item() == pytest.approx(function(x, y).item(), rel=1e-12)
    assert ("np.vdot" in made.source_native) == (n < 1 << 16)


def test_operations_that_are_several_loops_of_one_shape_are_fused() -> None:
    x, y = numbers(40, 30, 50), numbers(40, 30, 50, seed=1)

    def softmax_like(x: Any, y: Any) -> Any:
        dots = cr.vecdot(x.exp(), y + 1)[..., None]
        return (x - dots) * y, cr.logaddexp2(x * 3, y), cr.round(x * 10)

    compiled = beside_eager(softmax_like, x, y)
    assert not any(name in compiled.source_native for name in ("vecdot", "np.round"))


def test_operations_that_are_loops_of_several_shapes_are_calls() -> None:
    compiled = beside_eager(lambda x: cr.linalg.vector_norm(x * 2, axis=1), numbers(40, 300))
    assert "p_norm" in compiled.source_native
