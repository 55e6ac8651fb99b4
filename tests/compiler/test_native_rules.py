"""Every primitive gives in loops what it gives eagerly: the whole conformance table.

The source of a loop is plain Python too. Here Python runs it, which takes no time to compile and no
Numba; `test_native.py` has Numba run some.
"""

from __future__ import annotations

import functools

import pytest

import conformance
from cases import CONSTANTS, ROWS, Case, cases_of
from chainrule.compiler.native import elementary, jit
from conformance import demand

CASES = [case for row in (*ROWS, *CONSTANTS) for case in cases_of(row) if case.dtype == "float32"]


def groups() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in CASES:
        found.setdefault(f"{case.row.primitive}-{case.dtype}", []).append(case)
    return found


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "jitted", lambda function: function)
    monkeypatch.setattr(jit, "inlined", functools.partial(getattr, elementary))


@pytest.mark.parametrize("cases", groups().values(), ids=groups())
def test_loops_are_as_eager(cases: list[Case]) -> None:
    demand(conformance.check_compiled, cases, "native")
