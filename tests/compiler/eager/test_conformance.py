"""The conformance table with eager kernels of machine code, for arrays of any size.

The source of kernels and of generated loops is plain Python. Here Python runs it, without LLVM and
without compile time; `test_kernels.py` compiles it with LLVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from chainrule.compiler import eager
from chainrule.compiler.eager.table import PRODUCTS, substitutes
from chainrule.compiler.native import jit
from chainrule.compiler.native.threads.tasks import Task
from conformance import CONSTANTS, ROWS, Case, cases_of, checks
from conformance.checks import demand
from helpers.parameters import dtypes_in_turn

WRITTEN_IN_PYTHON = {p: s for p, s in substitutes(1, 1).items() if p.name not in PRODUCTS}
AFFECTED = {primitive.name for primitive in WRITTEN_IN_PYTHON}
KINDS = ("float32", "float64", "complex128", "int64")

CASES = [
    case
    for row in (*ROWS, *CONSTANTS)
    if row.primitive in AFFECTED
    for case in cases_of(row)
    if case.dtype in KINDS
]
DOUBLE = [case for case in CASES if case.dtype in ("float64", "complex128")]
SMOOTH = [case for case in DOUBLE if case.situation.smooth]
FLOATING = [case for case in CASES if case.dtype != "int64"]
IN_TURN = [case for cases in dtypes_in_turn(FLOATING).values() for case in cases]


def each(cases: list[Case]) -> Any:
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.row.primitive, []).append(case)
    return pytest.mark.parametrize("cases", groups.values(), ids=groups)


RUN: set[str] = set()
"""The sources of the loops that were run."""


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    loops: dict[Task, Callable[..., None]] = {}

    def call(task: Task, iterations: int, step: int, *arguments: Any) -> None:
        code = task.code
        RUN.add(code.text)
        if task not in loops:
            loops[task] = jit.python_function(code.text)
        flat = [a.reshape(-1) if isinstance(a, np.ndarray) else a for a in arguments]
        for start in range(0, iterations, step):
            loops[task](start, min(start + step, iterations), *flat)

    monkeypatch.setattr(Task, "__call__", call)
    before = dict(eager._installed)
    eager.install(WRITTEN_IN_PYTHON)
    with np.errstate(all="ignore"):  # machine code does not report floating-point errors
        yield
    eager.install(before)


def test_the_table_covers_all_kernels() -> None:
    assert {case.row.primitive for case in FLOATING} == AFFECTED


@each(CASES)
def test_value_is_numpys(cases: list[Case]) -> None:
    demand(checks.check_value, cases)


@each(SMOOTH)
def test_vjp_agrees_with_differences(cases: list[Case]) -> None:
    demand(checks.check_vjp, cases)


@each(IN_TURN)
def test_both_modes_agree(cases: list[Case]) -> None:
    demand(checks.check_pairing, cases)


@each(DOUBLE)
def test_second_order_is_the_same_in_three_modes(cases: list[Case]) -> None:
    demand(checks.check_second_order, cases)


@each([case for case in DOUBLE if len(case.situation.inputs) > 1])
def test_each_input_alone(cases: list[Case]) -> None:
    demand(checks.check_each_input_alone, cases)


@each(IN_TURN)
def test_dtypes_are_kept(cases: list[Case]) -> None:
    demand(checks.check_dtypes, cases)


@pytest.mark.sampled(5)
@each(IN_TURN)
def test_inputs_are_untouched(cases: list[Case]) -> None:
    demand(checks.check_untouched, cases, 4)


def test_loops_were_run() -> None:
    assert len(RUN) > 2 * len(AFFECTED)
