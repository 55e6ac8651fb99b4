"""Programs beyond the budget of LLVM: calls of shared kernels agree with eager mode."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.native import jit, small_groups, whole_program
from chainrule.compiler.native.call_tables import Kernels
from chainrule.compiler.native.layout import BudgetError

STATEMENTS = (
    *("cr.sin({a})", "cr.tanh({a} + {b})", "{a} * {b}", "0.5 * ({a} - {b})", "cr.sigmoid({a})"),
    *("{a} / (1.5 + {b} * {b})", "cr.where({a} > {c}, {a}, {b})", "cr.maximum({a}, {c} * {b})"),
    *("{a} - {b}.mean()", "{a} / (1 + cr.sqrt(1 + ({b} * {b}).sum()))", "{a} * {b}.amax()"),
    *("cr.softmax({a}, 0) + {b}", "cr.tanh(({a}.reshape(-1, 4) @ w).reshape(-1) + {c})"),
    *(
        "cr.cat([{a}[{k}:], {b}[:{k}]])",
        "{a}[index] * {c}",
        "{a}.flip(0)",
        "cr.cumsum({a}, 0) * {c}",
    ),
    "cr.cat([cr.linalg.solve(w + {c} * w.T, {a}[:4]), {b}[4:]])",
    "cr.sort({a} + ramp)[0] - ramp",
    "cr.where(mask, {a}, {c}).to(dtype) * {b}",
)


def long_loss(count: int, size: int, dtype: Any, seed: int) -> tuple[Callable[..., Any], list[Any]]:
    """Return a random program of so many statements, and its arguments."""
    draw = random.Random(seed)
    text = ["def loss(x, y, w):\n"]
    for i in range(count):
        recent = [f"t{j}" for j in range(max(0, i - 6), i)]
        a, b = (draw.choice(["x", "y", *recent * 3]) for _ in range(2))
        k, c = draw.randrange(1, size), draw.choice(["0.25", "-0.75", "0.1"])
        text.append(f"    t{i} = {draw.choice(STATEMENTS).format(a=a, b=b, c=c, k=k)}\n")
    text.append("    total = x.mean()\n")
    text += [f"    total = total + t{i}.mean()\n" for i in range(count - 1, -1, -6)]
    text.append("    return total\n")
    rng = np.random.default_rng(seed)
    scope = {"cr": cr, "index": cr.tensor(rng.permutation(size)), "dtype": dtype}
    scope["mask"] = cr.tensor(rng.random(size) > 0.5)
    scope["ramp"] = cr.arange(size) * 3.0  # without ties
    exec("".join(text), scope)
    arrays = rng.standard_normal(size), rng.standard_normal(size), 2 * np.eye(4) + 0.1
    return scope["loss"], [cr.tensor(array, dtype=dtype) for array in arrays]


@pytest.fixture
def always_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each function of several operations take too long to compile alone."""
    function_of = whole_program.function_of

    def limited(program: Any, over: Any = None, max_ms: Any = None, kernels: Any = None) -> Any:
        if kernels is None and len(program.ops) > 1:
            raise BudgetError(1e9)
        return function_of(program, over, max_ms, kernels)

    for module in (whole_program, small_groups):
        monkeypatch.setattr(module, "function_of", limited)


def is_table(compiled: Any) -> bool:
    return "run_table(" in compiled.source_native


def agree(compiled: Any, loss: Callable[..., Any], arguments: list[Any], rtol: float) -> None:
    expected = cr.value_and_grad(loss, (0, 1, 2))(*arguments)
    for _ in range(2):  # the second call finds memory as the first one left it
        found = compiled(*arguments)
        np.testing.assert_allclose(found[0], expected[0], rtol=rtol)
        for gradient, known in zip(found[1], expected[1], strict=True):
            scale = np.abs(known.numpy()).max()
            np.testing.assert_allclose(gradient, known, rtol=rtol, atol=rtol * scale)


needs_llvm = pytest.mark.skipif(not jit.is_installed(), reason="llvmlite is not installed")


@needs_llvm
@pytest.mark.parametrize(
    ("size", "dtype", "rtol", "seed"),
    [
        (8, cr.float64, 1e-9, 0),
        (60, cr.float32, 2e-3, 1),
        *(
            pytest.param(size, dtype, rtol, seed, marks=pytest.mark.thorough)
            for size, dtype, rtol in ((60, cr.float64, 1e-9), (8, cr.float32, 2e-3))
            for seed in (2, 3)
        ),
    ],
)
def test_long_programs_agree_with_eager_mode(
    size: int, dtype: Any, rtol: float, seed: int, always_tables: None
) -> None:
    loss, arguments = long_loss(80, size, dtype, seed)
    compiled = cr.compile(cr.value_and_grad(loss, (0, 1, 2)), strict=True)
    agree(compiled, loss, arguments, rtol)
    assert is_table(compiled)


def test_tables_in_python_agree_with_eager_mode(interpreted: None, always_tables: None) -> None:
    loss, arguments = long_loss(60, 8, cr.float64, 2)
    compiled = cr.compile(cr.value_and_grad(loss, (0, 1, 2)))
    agree(compiled, loss, arguments, 1e-9)
    assert is_table(compiled)


@needs_llvm
def test_a_longer_program_has_a_longer_table_and_hardly_more_kernels(
    always_tables: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    table = Kernels.table

    def noted(self: Kernels, *args: Any) -> Any:
        made = table(self, *args)
        found.append((len(made[0]), len(self.numbers)))
        return made

    monkeypatch.setattr(Kernels, "table", noted)
    monkeypatch.setattr(jit, "object_code", lambda *args: 1 / 0)
    for count in (150, 300):
        loss, arguments = long_loss(count, 8, cr.float64, 3)
        with pytest.warns(UserWarning, match="runs as NumPy calls"):
            cr.compile(loss)(*arguments)
    (words, kernels), (more_words, more_kernels) = found
    assert more_words > 1.7 * words
    assert more_kernels < 1.3 * kernels


@needs_llvm
@pytest.mark.parametrize(("count", "table"), [(60, False), (450, True)])
def test_many_loops_in_one_function_are_a_table(
    count: int, table: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINRULE_COMPILE_SECONDS", "2.5")
    draw = random.Random(0)
    order = [(draw.randrange(3), draw.choice([0.4, 0.5])) for _ in range(count)]

    def products(x: cr.Tensor) -> cr.Tensor:
        found = [x, x.T, x + x.T]
        for at, scale in order:
            found.append(scale * (found[-1 - at] @ x + found[-1]))
        return found[-1]

    x, _ = cr.linalg.qr(cr.tensor(np.random.default_rng(0).standard_normal((3, 3))))
    compiled = cr.compile(products, strict=True)
    np.testing.assert_allclose(compiled(x), products(x), rtol=1e-9)
    assert is_table(compiled) is table


@pytest.fixture
def loops_as_rows(always_tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each loop of a table take too long to compile as one kernel."""
    table = Kernels.table

    def limited(self: Kernels, blocks: Any, *args: Any) -> Any:
        if not self.repeats:
            raise BudgetError(1e9)
        return table(self, blocks, *args)

    monkeypatch.setattr(Kernels, "table", limited)


def simulated(x: Any, y: Any, w: Any) -> Any:
    """Return a loss of loops: in a loop, one with exchanged carries, and one over a stack."""
    kept, before = [], y
    for k in range(9):
        for _ in range(10):
            x, y = 0.9 * cr.tanh(w @ x + y), cr.sin(x - 0.1 * y * before)
        x = cr.where(x > 0.2, x * 0.9, x + 0.01 * k)
        before = w.T @ x
        kept.append(x[1:] * y[:-1])
    total, stack = x.sum() * 0, cr.stack(kept)
    for row in stack.flip(0):
        total = 0.9 * total + (row * row[0]).sum()
    return total + (before * stack[4, 0]).sum()


@pytest.mark.parametrize("machine", [pytest.param("native", marks=needs_llvm), "interpreted"])
def test_loops_as_rows_agree_with_eager_mode(
    machine: str, loops_as_rows: None, request: pytest.FixtureRequest
) -> None:
    if machine == "interpreted":
        request.getfixturevalue("interpreted")
    rng = np.random.default_rng(0)
    x, y = (cr.tensor(rng.standard_normal(3)) for _ in range(2))
    arguments = [x, y, cr.tensor(np.eye(3) + 0.1 * rng.standard_normal((3, 3)))]
    compiled = cr.compile(cr.value_and_grad(simulated, (0, 1, 2)))
    agree(compiled, simulated, arguments, 1e-9)
    assert is_table(compiled)
    assert "for iteration" not in compiled.source_native


@needs_llvm
@pytest.mark.parametrize(("seconds", "has_rows"), [(0.3, True), (1.5, False)])
def test_long_loops_on_both_sides_of_the_budget(
    seconds: float, has_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINRULE_COMPILE_SECONDS", str(seconds))

    def loss(x: Any, w: Any) -> Any:
        for _ in range(12):  # a long step of few kernels
            for k in range(30):
                other = w + x if k % 4 else w
                x = cr.sin((cr.add, cr.mul, cr.sub)[k * k * k % 7 % 3](x[::-1], other))
        return x

    arguments = cr.tensor(np.linspace(0.1, 0.5, 4)), cr.tensor(np.linspace(-0.5, 0.7, 4))
    compiled = cr.compile(loss)
    np.testing.assert_allclose(compiled(*arguments), loss(*arguments), rtol=1e-12)
    assert is_table(compiled) is has_rows
    assert ("for iteration" not in compiled.source_native) is has_rows


@needs_llvm
def test_functions_between_calls_of_numpy_share_kernels(always_tables: None) -> None:
    def loss(x: Any, a: Any) -> Any:
        for k in range(40):
            x = (cr.sin, cr.tanh, cr.exp, cr.cos)[k * k * k % 11 % 4](x[::-1] if k % 3 else x * 0.5)
            if k % 8 == 7:
                x = x + cr.linalg.eigvalsh(a + k)
        return x.sum()

    x, a = cr.tensor(np.linspace(0.1, 0.5, 3)), cr.tensor(np.diag([1.0, 2.0, 4.0]))
    compiled = cr.compile(loss, backend="native")
    np.testing.assert_allclose(compiled(x, a), loss(x, a), rtol=1e-12)
    assert compiled.source_native.count("run_table(") == 1  # several functions call it
    assert compiled.source_native.count("loop(table, ") > 2


@needs_llvm
@pytest.mark.parametrize(
    "number", [-0.0, float("nan"), float("inf"), -1e-310, 3e-39, 1e300, 0.1, -7, 2**62]
)
def test_constants_keep_their_bits(number: float, always_tables: None) -> None:
    def steps(x: Any) -> Any:
        for k in range(12):  # without a period, so that it is no loop
            x = x * (number if k == 5 else 3) if k % 3 else x + (0 if k == 3 else -1)
        return x

    kind = cr.int64 if isinstance(number, int) else cr.float64
    x = cr.tensor([1, -2, 3], dtype=kind)
    parts = [x, x[:2], x[1]]  # several loops
    compiled = cr.compile(lambda *parts: [*map(steps, parts)], backend="native")
    for found, part in zip(compiled(*parts), parts, strict=True):
        with np.errstate(invalid="ignore"):  # inf - inf
            expected = steps(part).numpy()
        np.testing.assert_array_equal(found.numpy().view(np.int64), expected.view(np.int64))
    assert is_table(compiled)


@needs_llvm
def test_numpy_raises_the_errors_of_a_long_program(always_tables: None) -> None:
    def solved(a: Any, b: Any) -> Any:
        for k in range(6):
            b = (cr.sin, cr.tanh, cr.exp)[k * k % 7 % 3](cr.linalg.solve(a, b) * 0.5)
        return b

    compiled, b = cr.compile(solved, backend="native"), cr.ones(3, dtype=cr.float64)
    a = cr.tensor(np.diag([1.0, 2.0, 4.0]))
    np.testing.assert_allclose(compiled(a, b), solved(a, b), rtol=1e-12)
    assert is_table(compiled)
    with pytest.raises(np.linalg.LinAlgError):
        compiled(a * 0, b)


@needs_llvm
@pytest.mark.parametrize(
    ("seconds", "has_table"), [(0.001, False), (0.4, True), (1, True), (10, False)]
)
def test_on_both_sides_of_each_budget(
    seconds: float, has_table: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls of NumPy, tables of parts, a table, and one function."""
    monkeypatch.setenv("CHAINRULE_COMPILE_SECONDS", str(seconds))
    loss, arguments = long_loss(140, 8, cr.float64, round(10 * seconds))  # programs are kept
    compiled = cr.compile(cr.value_and_grad(loss, (0, 1, 2)))
    told = pytest.warns(cr.PerformanceWarning, match="remain NumPy calls")
    with told if seconds < 0.01 else nullcontext():
        agree(compiled, loss, arguments, 1e-9)
    assert is_table(compiled) == has_table
