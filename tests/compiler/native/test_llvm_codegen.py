"""The subset of Python that becomes machine code computes what Python computes."""

from __future__ import annotations

import ast
import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

from chainrule.compiler.native import jit, llvm_split
from chainrule.compiler.native.code import Code, cached_code
from chainrule.compiler.native.llvm_types import UnsupportedError

pytest.importorskip("llvmlite", reason="machine code needs LLVM")


def run(text: str, types: tuple[str, ...], *arguments: Any) -> None:
    cached_code(text, types).function()(*arguments)


# --- numbers --------------------------------------------------------------------------------------

EDGES = {
    "i8": [0, 1, -1, 7, -7, 13, 1 << 40, -(1 << 40)],
    "f8": [0.0, -0.0, 1.5, -2.25, 1e300, -1e-300, math.inf, -math.inf, math.nan],
    "f4": [0.0, -0.0, 1.5, -2.25, 3e38, -1e-38, math.inf, -math.inf, math.nan],
}


def pairs(code: str) -> tuple[Any, Any]:
    x, y = zip(*itertools.product(EDGES[code], repeat=2), strict=True)
    return np.array(x, code), np.array(y, code)


@pytest.mark.parametrize("operation", ["x + y", "x - y", "x * y", "x / y", "-x", "abs(x)"])
@pytest.mark.parametrize("code", ["f4", "f8"])
def test_arithmetic_has_the_bits_of_numpy(code: str, operation: str) -> None:
    x, y = pairs(code)
    out = np.empty_like(x)
    text = "def loop(x_in, y_in, out):\n"
    text += f"    for i in range(u8({x.size})):\n"
    text += f"        x = x_in[i]\n        y = y_in[i]\n        out[i] = {operation}\n"
    run(text, (code,) * 3, x, y, out)
    with np.errstate(all="ignore"):
        wanted = eval(operation, {"x": x, "y": y})
    np.testing.assert_array_equal(out, wanted)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(out[known]), np.signbit(wanted[known]))


@pytest.mark.parametrize("operation", ["x // y", "x % y", "x & y", "x | y", "x ^ y", "x >> 3"])
def test_integers_round_down_as_in_python(operation: str) -> None:
    x, y = (values[pairs("i8")[1] != 0] for values in pairs("i8"))
    out = np.empty_like(x)
    text = f"def loop(x, y, out):\n    for i in range({x.size}):\n"
    text += f"        out[i] = {operation.replace('x', 'x[i]').replace('y', 'y[i]')}\n"
    run(text, ("i8",) * 3, x, y, out)
    wanted = [
        eval(operation, {"x": a, "y": b}) for a, b in zip(x.tolist(), y.tolist(), strict=True)
    ]
    assert out.tolist() == wanted


@pytest.mark.parametrize("code", ["u1", "u8"])
def test_unsigned_integers_shift_zeros_in(code: str) -> None:
    largest = np.iinfo(code).max
    x = np.array([largest, largest - 4, largest // 2 + 1, 9], code)
    out = np.empty_like(x)
    text = f"def loop(x, out):\n    for i in range({x.size}):\n        out[i] = x[i] >> {code}(3)\n"
    run(text, (code,) * 2, x, out)
    assert out.tolist() == [value >> 3 for value in x.tolist()]


@pytest.mark.parametrize("comparison", ["==", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("code", ["f8", "i8"])
def test_comparisons(code: str, comparison: str) -> None:
    x, y = pairs(code)
    out = np.empty(x.shape, bool)
    text = f"def loop(x, y, out):\n    for i in range({x.size}):\n"
    run(f"{text}        out[i] = x[i] {comparison} y[i]\n", (code, code, "b1"), x, y, out)
    np.testing.assert_array_equal(out, eval(f"x {comparison} y", {"x": x, "y": y}))


@pytest.mark.parametrize("number", [0.1, -0.0, math.inf, math.nan, 1e300, 3e-46])
@pytest.mark.parametrize("code", ["f4", "f8"])
def test_constants_have_all_their_bits(code: str, number: float) -> None:
    out = np.empty(1, code)
    shown = {"inf": "INF", "nan": "NAN"}.get(repr(number), repr(number))
    run(f"def loop(out):\n    out[0] = {code}({shown})\n", (code,), out)
    with np.errstate(over="ignore", under="ignore"):
        wanted = np.array([number], code)
    np.testing.assert_array_equal(out, wanted)
    assert np.signbit(out[0]) == np.signbit(wanted[0])


@pytest.mark.parametrize("target", ["f4", "f8", "i4", "i8", "b1"])
@pytest.mark.parametrize("source", ["i4", "i8", "u1", "b1"])
def test_conversions(source: str, target: str) -> None:
    x = np.array([0, 1, 200, 3], np.dtype(source)) if source != "b1" else np.array([True, False])
    out = np.empty(x.shape, target)
    text = f"def loop(x, out):\n    for i in range({x.size}):\n"
    truth = " != 0" if source == "b1" else ""
    run(f"{text}        y = x[i]{truth}\n        out[i] = {target}(y)\n", (source, target), x, out)
    np.testing.assert_array_equal(out, x.astype(target))


def expression(source: random.Random, depth: int) -> str:
    """Return a random expression of integers a, b and c."""
    if depth == 0 or source.random() < 0.2:
        return source.choice(["a", "b", "c", "1", "3", "-2"])
    x, y, z = (expression(source, depth - 1) for _ in range(3))
    return source.choice(
        [
            f"({x} {source.choice('+-*&|^')} {y})",
            f"({x} if {y} < {z} else {y})",
            f"min({x}, {y})",
            f"i8({x} <= {y})",
            f"abs({x})",
            f"i8(not {x} or {y} != {z} and {z} > 0)",
        ]
    )


@pytest.mark.parametrize("seed", range(20))
def test_integer_expressions(seed: int) -> None:
    source = random.Random(seed)
    texts = [expression(source, 4) for _ in range(20)]
    out = np.zeros(len(texts), np.int64)
    lines = "".join(f"    out[{i}] = {text}\n" for i, text in enumerate(texts))
    values = [source.randrange(-20, 20) for _ in "abc"]
    run(f"def loop(a, b, c, out):\n{lines}", ("n", "n", "n", "i8"), *values, out)
    known = dict(zip("abc", values, strict=True))
    names = {"i8": lambda x: int(bool(x)) if isinstance(x, bool) else x, "min": min, "abs": abs}
    for found, text in zip(out.tolist(), texts, strict=True):
        assert found == int(eval(text, names, known)), text


# --- statements -----------------------------------------------------------------------------------

PROGRAMS = {
    "nested loops": """
def loop(n, out):
    total = 0
    for i in range(n):
        for j in range(i, n, 2):
            total += i * j
    out[0] = total
""",
    "falling range": """
def loop(n, out):
    total = 1
    for i in range(n, -1, -2):
        total = total * 3 + i
    out[0] = total
""",
    "while and break": """
def loop(n, out):
    steps, x = 0, n
    while x != 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
        if steps > 40:
            break
    out[0] = steps
""",
    "branches": """
def loop(n, out):
    found = 0
    for i in range(n):
        if i % 3 == 0:
            found += 1
        elif 2 < i <= 5 or i == 7:
            found += 10
        else:
            found -= 1
        if i == 9:
            break
    out[0] = found
""",
    "a variable of a loop after it": """
def loop(n, out):
    p = 0
    while p + 4 <= n:
        p += 4
    for p in range(p, n):
        out[0] = out[0] + p
    out[0] = out[0] * 100 + p
""",
    "tuples": """
def loop(n, out):
    a, b = 0, 1
    for i in range(n):
        a, b = b, a + b
    out[0] = a
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("n", [0, 1, 6, 11])
def test_statements(name: str, n: int) -> None:
    if n == 0 and name == "while and break":
        n = 27
    text, results = PROGRAMS[name], []
    for function in (
        jit.python_function(text),
        cached_code(text, ("n", "i8")).function(),
    ):
        out = np.zeros(1, np.int64)
        function(n, out)
        results.append(out[0])
    assert results[0] == results[1]


UNSUPPORTED = {
    "a variable of two types": "    x = 1\n    for i in range(3):\n        x = x * 0.5\n",
    "an unknown name": "    x = y + 1\n",
    "an unknown function": "    x = frobnicate(1)\n",
    "a container": "    x = [1, 2]\n",
    "signed and unsigned": "    for i in range(u8(3)):\n        out[i] = i + i8(1)\n",
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_outside_of_the_subset_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError):
        run(f"def loop(out):\n{UNSUPPORTED[name]}", ("f8",), np.zeros(3))


# --- LLVM's mistakes ------------------------------------------------------------------------------

MINIMA = """\
def loop(v0, v1, v2, v3, v4, v5):
    for v6 in range(u8(1)):
        v5[u8(0)] = f8(0.0)
    for v7 in range(u8(5)):
        v8 = v5[u8(0)]
        v9 = v8 * f8(0.0)
        v10 = v8 * f8(0.5)
        for v6 in range(u8(1)):
            v5[u8(96)] = v9
            v5[u8(112)] = v10
        for v6 in range(u8(3)):
            v5[u8(144) + v6] = f8(INF)
        v9 = v5[u8(96)]
        for v6 in range(u8(2)):
            for v11 in range(u8(3)):
                v12 = i8(9223372036854775807)
                for v13 in range(u8(2)):
                    v14 = v0[u8(0) + u8(12) * (v7) + u8(6) * v6 + u8(2) * v11 + v13]
                    v15 = v14 + v9
                    v16 = rank_f8(v15, i8(-9223372036854775808))
                    v12 = v16 if v16 < v12 else v12
                    v5[u8(128) + u8(6) * v6 + u8(2) * v11 + v13] = v15
                v5[u8(144) + v11] = smaller(v5[u8(144) + v11], ranked_f8(v12))
        for v6 in range(u8(3)):
            v5[u8(160) + v6] = f8(0)
        for v6 in range(u8(2)):
            for v11 in range(u8(3)):
                v17 = v5[u8(144) + v11]
                v18 = f8(0)
                v19 = f8(0)
                for v13 in range(u8(2)):
                    v15 = v5[u8(128) + u8(6) * v6 + u8(2) * v11 + v13]
                    v20 = v15 == v17
                    v21 = v15 != v15
                    v22 = v20 | v21
                    v23 = f8(v22)
                    v19 = plus(v19, v23)
                    v4[u8(0) + u8(6) * v6 + u8(2) * v11 + v13] = v22
                v18 = v18 + v19
                v5[u8(160) + v11] = v5[u8(160) + v11] + v18
        for v6 in range(u8(2)):
            for v11 in range(u8(3)):
                v24 = v5[u8(160) + v11]
                v25 = f8(1.0) / v24
                for v13 in range(u8(2)):
                    v22 = v4[u8(0) + u8(6) * v6 + u8(2) * v11 + v13] != 0
                    v26 = v25 if v22 else f8(0.0)
                    v5[u8(176) + u8(6) * v6 + u8(2) * v11 + v13] = v26
        for v6 in range(u8(3)):
            v5[u8(16) + u8(0) + u8(3) * (v7) + v6] = v5[u8(144) + v6]
        for v6 in range(u8(12)):
            v5[u8(32) + u8(0) + u8(12) * (v7) + v6] = v5[u8(176) + v6]
        for v6 in range(u8(1)):
            v5[u8(0)] = v5[u8(112)]
    for v6 in range(u8(15)):
        v2[v6] = v5[u8(16) + v6]
    for v6 in range(u8(60)):
        v3[v6] = v5[u8(32) + v6]
"""
"""A scan of five steps that return the minima of an array over two axes, and the gradients.

LLVM 22 computed another minimum on processors with AVX-512, see `jit`.
"""


def test_vectors_beyond_register_15() -> None:
    array = np.random.default_rng(4).standard_normal((2, 3, 2))
    inputs = [np.stack([array] * 5).ravel(), np.ones(6)]
    machine = cached_code(MINIMA, ("f8", "f8", "f8", "f8", "b1", "f8")).function()
    results = []
    for function in (jit.python_function(MINIMA), machine):
        memory = [np.zeros(15), np.zeros(60), np.zeros(64, bool), np.zeros(400)]
        function(*inputs, *memory)
        results.append(memory)
    for got, wanted in zip(*results, strict=True):
        np.testing.assert_array_equal(got, wanted)


# --- parts of long functions ----------------------------------------------------------------------


def random_loops(random_numbers: random.Random, depth: int = 0) -> list[str]:
    """Return statements with loops, with branches, and with numbers that these pass on."""
    lines = []
    for _ in range(random_numbers.randrange(3, 7)):
        i, j = "ijk"[depth], random_numbers.randrange(8)
        source = random_numbers.choice(["total", "other", f"out[{j}]"])
        fill = f"out[{j} + {i}] = {source} * 0.5 + 1"
        inner = random_loops(random_numbers, depth + 1) if depth < 2 else [fill]
        lines += random_numbers.choice(
            [
                [f"for {i} in range(u8(4)):", f"    {fill}"],
                ["total = out[0] + 1", f"for {i} in range(u8(3)):", f"    total += out[{i}]"],
                [f"if out[{j}] > other:", "    total -= other", "else:", "    other = other / 2"],
                [f"other = out[{j}] * 0.25", f"out[{j}] = other"],
                [f"for {i} in range(5):", f"    {fill}", f"    if out[{i}] > 2:", "        break"],
                [f"for {i} in range(u8(2)):", *indented(inner)],
            ]
        )
    return lines


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


TURNS = """
for i in range(u8(4)):
    for j in range(u8(2)):
        out[j] += total
    total = out[2] * 0.5
    for j in range(u8(2)):
        out[j + 2] += total
for i in range(u8(4)):
    for j in range(u8(2)):
        out[j] += 1
    if out[0] > 3:
        break
    for j in range(u8(2)):
        out[j + 4] += 1
total = out[1] * 1
other = out[2] * 1
"""
"""A number for the next turn, and an end of a loop between two others."""


def test_parts_compute_what_the_whole_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINRULE_CACHE", "")
    bodies = [random_loops(random.Random(seed)) for seed in range(11)]
    count = 0
    for number, body in enumerate([TURNS.strip().splitlines(), *bodies]):
        lines = ["total = out[1] * 1", "other = out[2] * 1", *body, "out[15] = total + other"]
        text = "\n".join(["def loop(out):", *indented(lines), ""])
        monkeypatch.setattr(llvm_split, "PART_LOOPS", 1 + number % 3)
        (function,) = ast.parse(text).body
        assert isinstance(function, ast.FunctionDef)
        count += len(llvm_split.split(function))
        found, wanted = np.linspace(0, 2, 16), np.linspace(0, 2, 16)
        Code(text, ("f8",)).function()(found)
        jit.python_function(text)(wanted)
        np.testing.assert_array_equal(found, wanted, err_msg=text)
    assert count > 10


@pytest.mark.parametrize("loops", [llvm_split.PART_LOOPS, llvm_split.PART_LOOPS + 1, 1000])
def test_functions_of_many_loops_are_divided(loops: int) -> None:
    lines = [f"for i in range(u8(8)):\n        out[i] += {n}" for n in range(loops)]
    (function,) = ast.parse("\n".join(["def loop(out):", *indented(lines)])).body
    assert isinstance(function, ast.FunctionDef)
    parts = llvm_split.split(function)
    for part in [function, *(part.function for part in parts)]:
        assert sum(isinstance(node, ast.For) for node in ast.walk(part)) <= llvm_split.PART_LOOPS
    assert len(parts) == (0 if loops == llvm_split.PART_LOOPS else loops // llvm_split.PART_LOOPS)
    assert {part.runs for part in parts} <= {1}


@pytest.mark.parametrize(
    ("head", "runs"),
    [
        ("for k in range(u8(5))", 5),
        ("for k in range(n[0])", math.inf),
        ("while n[0] > 0", math.inf),
    ],
)
def test_parts_of_loops_know_how_often_they_run(head: str, runs: float) -> None:
    inner = [f"    for i in range(u8(8)):\n            out[i] += {n}" for n in range(20)]
    text = "\n".join(["def loop(out, n):", *indented([f"{head}:", *inner])])
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    assert {part.runs for part in llvm_split.split(function)} == {runs}


@pytest.mark.parametrize(("steps", "is_vectorised"), [(1, False), (40, True)])
def test_loops_of_few_iterations_in_a_call_are_not_vectorised(
    steps: int, is_vectorised: bool
) -> None:
    lines = [f"for k in range(u8({steps})):", "    for i in range(u8(64)):"]
    lines.append("        out[i] = out[i] * out[i] + f8(k)")
    text = "\n".join(["def loop(out):", *indented(lines), ""])
    module = str(jit.optimized_module(text, ("f8",), False, "symbol"))
    assert ("x double>" in module) is is_vectorised
