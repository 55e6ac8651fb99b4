"""The conformance table within the steps of a scan: the rows that have machine code there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.native.code import Code
from conformance import CONSTANTS, ROWS, Case, Row, cases_of
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
        # writes whose order matters, or that compare
        *("maximum_at", "minimum_at", "assign"),
        # Fourier transforms
        *("fft_c2c", "fft_r2c"),
        # parts of the bits of a number
        "exponent",
    ]
)
"""Primitives of which some case has no machine code within a step. It may only shrink."""


class _CompiledError(Exception):
    """The program was machine code throughout."""


def _step_of(case: Case) -> tuple[Any, list[cr.Tensor]]:
    """Return a scan whose steps compute a case and its gradients, and its inputs."""
    subject = Subject(case)
    weights: list[list[cr.Tensor]] = []

    def step(carry: Any, points: Any) -> Any:
        xs = [(x + carry * 0).detach().requires_grad_(case.row.differentiable) for x in points]
        outputs = subject(*xs)
        if not weights:
            weights.append([cr.ones_like(out) for out in outputs])
        grads = weighted_gradients(outputs, xs, weights[0]) if case.row.differentiable else []
        return carry * 0.5, [*(out.detach() for out in outputs), *grads]

    def scan(*stacks: cr.Tensor) -> Any:
        return cr.scan(step, cr.zeros((), dtype=cr.float64), list(stacks))[1]

    outputs = subject(*(cr.from_numpy(x) for x in subject.points))
    weights.append([cr.ones_like(out.detach()) for out in outputs])
    return scan, [cr.tensor(np.stack([point] * 5)) for point in subject.points]


def _is_machine_code(case: Case) -> bool:
    scan, stacks = _step_of(case)
    with pytest.raises((_CompiledError, cr.CompileError)) as found:
        cr.compile(scan, backend="native", strict=True)(*stacks)
    text = str(found.value)
    assert "has no machine code" in text or "may be a view or a copy" in text or not text
    return "has no machine code" not in text


CASES = {
    row.primitive: row
    for row in (*ROWS, *CONSTANTS)
    if any(Subject(c).floating for c in cases_of(row))
}


@pytest.mark.parametrize("row", CASES.values(), ids=CASES)
def test_steps_are_machine_code(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(self: Code) -> Any:
        raise _CompiledError

    monkeypatch.setattr(Code, "function", function)
    cases = [c for c in cases_of(row) if c.dtype == "float64" and Subject(c).floating]
    refused = [str(case) for case in cases if not _is_machine_code(case)]
    assert bool(refused) == (row.primitive in WITHOUT), refused
