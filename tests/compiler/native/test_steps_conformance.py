"""The conformance table within the steps of a scan: the rows that have machine code there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.native.code import Code
from conformance import CONSTANTS, ROWS, Case, cases_of
from conformance.checks import Subject, weighted_gradients

pytest.importorskip("llvmlite", reason="machine code needs LLVM")

pytestmark = pytest.mark.no_verify("nothing runs here")

WITHOUT = frozenset(
    [
        # iterations of LAPACK, whose signs and order of vectors NumPy decides
        *("eig", "eigh", "svd", "pinv", "qr", "cofactor"),
        # factors of matrices of 96 rows or more, by LAPACK
        "solve_factored",
        # the number of squarings depends on the values
        "matrix_exp",
        # special functions by SciPy or by long expansions; Γ and its like through polygamma
        *("lgamma", "gamma", "polygamma", "beta", "betaln", "betainc", "gammainc", "gammaincc"),
        *("gammainc_moment", "betainc_moment"),
        *("erfi", "erfcx", "erfinv", "dawsn", "ndtri", "log_ndtr", "rel_entr", "zeta"),
        *("expi", "exp1"),
        *("bessel_j", "bessel_y", "bessel_i", "bessel_ie", "bessel_k", "bessel_ke"),
        # kernels of large arrays, which NumPy computes as fast
        *("convolve", "convolve_input", "convolve_weight", "resample"),
        *("max_pool", "pool_place", "pool_pick", "pool_positions"),
        # writes that compare
        *("maximum_at", "minimum_at"),
        # parts of the bits of a number
        "exponent",
    ]
)
"""Primitives of which some case has no machine code within a step. It may only shrink."""


REFUSED = "has no machine code"


class _CompiledError(Exception):
    """The program was machine code throughout."""


def _step_of(cases: list[Case]) -> tuple[Any, list[list[cr.Tensor]]]:
    """Return a scan whose steps compute cases and their gradients, and its inputs."""
    subjects = [Subject(case) for case in cases]
    differentiable = cases[0].row.differentiable
    weights = [
        [cr.ones_like(out.detach()) for out in subject(*map(cr.from_numpy, subject.points))]
        for subject in subjects
    ]

    def results(subject: Subject, points: Any, weights: Any, carry: Any) -> list[Any]:
        xs = [(x + carry * 0).detach().requires_grad_(differentiable) for x in points]
        outputs = subject(*xs)
        grads = weighted_gradients(outputs, xs, weights) if differentiable else []
        return [*(out.detach() for out in outputs), *grads]

    def step(carry: Any, points: Any) -> Any:
        each = zip(subjects, points, weights, strict=True)
        return carry * 0.5, [results(*parts, carry) for parts in each]

    def scan(*stacks: Any) -> Any:
        return cr.scan(step, cr.zeros((), dtype=cr.float64), list(stacks))[1]

    return scan, [[cr.tensor(np.stack([p] * 5)) for p in subject.points] for subject in subjects]


def _error_of(cases: list[Case]) -> str:
    """Return the text of the error that says what has no machine code, "" if all has."""
    scan, stacks = _step_of(cases)
    with pytest.raises((_CompiledError, cr.CompileError)) as found:
        cr.compile(scan, backend="native", strict=True)(*stacks)
    text = str(found.value)
    assert REFUSED in text or "may be a view or a copy" in text or not text
    return text


CASES: dict[str, list[Case]] = {}
for _row in (*ROWS, *CONSTANTS):
    for _case in cases_of(_row):
        if _case.dtype == "float64" and Subject(_case).floating:
            CASES.setdefault(_row.primitive, []).append(_case)


@pytest.mark.parametrize("name", CASES)
def test_steps_are_machine_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(self: Code) -> Any:
        raise _CompiledError

    monkeypatch.setattr(Code, "function", function)
    text = _error_of(CASES[name])  # of one program, which names one of the cases
    refused = [text] if REFUSED in text else []
    if text and not (refused and name in WITHOUT):
        refused = [str(case) for case in CASES[name] if REFUSED in _error_of([case])]
    assert bool(refused) == (name in WITHOUT), refused
