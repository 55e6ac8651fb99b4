"""Every primitive gives compiled what it gives eagerly: the whole conformance table.

Every pass is verified on every program.
"""

from __future__ import annotations

import pytest

import conformance
from cases import CONSTANTS, ROWS, Case, cases_of
from chainrule.compiler import builder, passes
from conformance import demand

CASES = [case for row in (*ROWS, *CONSTANTS) for case in cases_of(row)]


def groups() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in CASES:
        found.setdefault(f"{case.row.primitive}-{case.dtype}", []).append(case)
    return found


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    optimized = passes.optimized
    monkeypatch.setattr(builder, "optimized", lambda program: optimized(program, check=True))


@pytest.mark.parametrize("cases", groups().values(), ids=groups())
def test_compiled_is_as_eager(cases: list[Case]) -> None:
    demand(conformance.check_compiled, cases)
