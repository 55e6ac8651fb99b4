"""Loops that differ only in addresses are one function, and compute what they did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.native.jit import python_function
from chainrule.compiler.native.loop_sharing import share_loops

LOOP = """\
for i in range(u8(100)):
    a = memory_f8[u8({0}) + i]
    b = a * x[0]
    memory_f8[u8({1}) + u8(2) + i] = b
"""


def both(text: str) -> list[str]:
    """Return the lines of two loops, the second at other addresses."""
    return (text.format(0, 112) + text.format(112, 224)).splitlines()


def test_loops_at_other_addresses_are_one_function() -> None:
    functions, lines = share_loops(both(LOOP))
    assert len(functions) == 1
    assert lines == [
        "shared_0(memory_f8, u8(0), x, memory_f8, u8(112))",
        "shared_0(memory_f8, u8(112), x, memory_f8, u8(224))",
    ]
    text = "".join(f"    {line}\n" for line in lines)
    run = python_function("\n".join([*functions, f"def loop(memory_f8, x):\n{text}"]))
    memory = np.arange(400.0)
    run(memory, np.array([3.0]))
    np.testing.assert_array_equal(memory[228:326], 9 * np.arange(98.0))


@pytest.mark.parametrize(
    "after", ["y[0] = b", "for i in range(u8(9)):\n    y[i] = b", "y[i] = a if b else a", "b += a"]
)
def test_loops_whose_variables_are_read_later_stay(after: str) -> None:
    lines = [*both(LOOP), *after.splitlines()]
    assert share_loops(lines) == ([], lines)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("u8(100)", "u8(7)"),
        ("a * x[0]", "a * x[0] + f8({0})"),
        ("b = a", "b = memory_f8[u8(112)] + a"),
        ("a * x[0]", "total(memory_f8, u8({0}))"),
        ("b = a *", "b = b + a *"),
    ],
    ids=["short", "another number", "one array or two", "the whole memory", "a sum"],
)
def test_loops_that_are_short_or_differ_stay(old: str, new: str) -> None:
    lines = ["b = f8(0)", *both(LOOP.replace(old, new))]
    assert share_loops(lines) == ([], lines)


def test_loops_of_steps_are_shared_with_the_number_of_the_step() -> None:
    step = LOOP.replace("u8(2)", "u8(64) * (step)")
    inner = [f"    {line}" for line in both(step)]
    functions, lines = share_loops(["for step in range(u8(4)):", *inner])
    assert len(functions) == 1
    assert lines[1:] == [
        "    shared_0(memory_f8, u8(0), x, memory_f8, u8(112), step)",
        "    shared_0(memory_f8, u8(112), x, memory_f8, u8(224), step)",
    ]


def blurred(x: Any, width: Any) -> Any:
    """Transforms there and back, whose loops are alike, forward and backward."""
    spot = cr.fft.rfft2(cr.exp(-(x**2) / width))
    for _ in range(3):
        x = x * cr.fft.irfft2(cr.fft.rfft2(x) * spot, s=(16, 16)) + 0.1
    return (x**2).mean()


def layers(x: Any, width: Any) -> Any:
    """Equal layers, and steps in which the loops are alike."""
    for _ in range(3):
        x = cr.tanh(x - x.mean(1, keepdim=True)) * cr.softmax(x * width, 0) + x
    for _ in range(20):
        y = x + 0.01 * cr.sin(x)
        x = y + 0.01 * cr.sin(y)
    return x.sum()


@pytest.mark.parametrize("program", [blurred, layers])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_programs_with_shared_loops_compute_what_they_did(program: Any, dtype: Any) -> None:
    pytest.importorskip("llvmlite", reason="machine code needs llvmlite")
    x = cr.tensor(np.random.default_rng(0).random((16, 16)).astype(dtype))
    width = cr.tensor(np.asarray(2.5, dtype))
    function = cr.value_and_grad(program, (0, 1))
    native = cr.compile(function, backend="native")
    found = cr.tree.leaves(native(x, width))
    assert "shared_0(" in native.source_native
    for one, other in zip(found, cr.tree.leaves(function(x, width)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5 if dtype is np.float32 else 1e-12)
