"""The conformance table for compiled loops: every primitive agrees with the eager engine.

The source of a loop is plain Python. Here Python runs it, without LLVM and without compile time;
`test_loop_codegen.py` compiles some programs with LLVM.
"""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.compiler import native
from chainrule.compiler.native import fusion_groups
from conformance import CONSTANTS, ROWS, Case, cases_of, checks
from conformance.checks import demand
from helpers.parameters import dtypes_in_turn

CASES = [
    case
    for row in (*ROWS, *CONSTANTS)
    for case in cases_of(row)
    if case.dtype in ("float32", "complex64")
]
GROUPS = dtypes_in_turn(CASES)

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.no_verify("results are compared with eager ones here"),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("cases", GROUPS.values(), ids=GROUPS)
def test_loops_agree_with_eager(cases: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_emit_whole", lambda program: None)
    monkeypatch.setattr(fusion_groups, "LOOP_CALLS", 0)
    demand(checks.check_compiled, cases, "native")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("cases", GROUPS.values(), ids=GROUPS)
def test_small_programs_agree_with_eager(cases: list[Case]) -> None:
    with np.errstate(all="ignore"):  # machine code does not report floating-point errors
        demand(checks.check_compiled, cases, "native")
