"""The conformance table of all primitives, compiled: the same results as in eager mode.

The program is verified after every pass.
"""

from __future__ import annotations

from typing import Any

import pytest

import chainrule as cr
from chainrule.compiler import build, passes
from chainrule.compiler.tracing.symbol import Symbol
from conformance import CONSTANTS, ROWS, Case, cases_of, checks
from conformance.checks import Subject, demand, plain
from helpers.compile_comparison import in_tiny_blocks
from helpers.parameters import dtypes_in_turn

CASES = [case for row in (*ROWS, *CONSTANTS) for case in cases_of(row)]


def groups_of_one_dtype() -> dict[str, list[Case]]:
    """Return the cases of the first dtype of each primitive."""
    found: dict[str, list[Case]] = {}
    for case in CASES:
        cases = found.setdefault(case.row.primitive, [])
        if not cases or case.dtype == cases[0].dtype:
            cases.append(case)
    return found


IN_TURN = dtypes_in_turn(CASES)
ONE_DTYPE = groups_of_one_dtype()

pytestmark = pytest.mark.no_verify("results are compared with eager ones here")


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    optimize = passes.optimize
    monkeypatch.setattr(build, "optimize", lambda program: optimize(program, check=True))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("cases", IN_TURN.values(), ids=IN_TURN)
def test_compiled_equals_eager(cases: list[Case]) -> None:
    demand(checks.check_compiled, cases)


@pytest.mark.thorough
@pytest.mark.parametrize("cases", ONE_DTYPE.values(), ids=ONE_DTYPE)
def test_tiled_equals_eager(cases: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiny_blocks(monkeypatch)
    demand(checks.check_compiled, cases)


@pytest.mark.thorough
@pytest.mark.parametrize("cases", ONE_DTYPE.values(), ids=ONE_DTYPE)
def test_traced_layouts_match_memory(cases: list[Case]) -> None:
    demand(check_order, cases)


class _Traced(Exception):
    """Ends a call after its trace: nothing need be compiled."""


def check_order(case: Case) -> None:
    subject = Subject(case)
    points = plain(subject.points)
    outputs = [t._array for t in subject(*points)]
    traced: list[Any] = []

    def function(*points: Any) -> Any:
        traced[:] = [t._array for t in subject(*points)]
        raise _Traced

    with pytest.raises(_Traced):
        cr.compile(function, backend="numpy")(*points)
    for array, symbol in zip(outputs, traced, strict=True):
        if array.size and isinstance(symbol, Symbol) and symbol.layout is not None:
            assert _steps(array.shape, array.strides) == _steps(array.shape, symbol.layout)


def _steps(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    return [step for step, n in zip(strides, shape, strict=True) if n > 1]
