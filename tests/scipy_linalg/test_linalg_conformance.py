"""The conformance table of `scipy.linalg`: both modes, second order, compiled, vmap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from conformance import Case, cases_of, checks
from conformance.checks import Subject, arrays_of, demand, weighted_gradients
from conformance.rows.scipy_linalg import ROWS

DOUBLE = ("float64", "complex128")


UNKNOWN = ("lstsq", "orth", "subspace_angles", "funm")
"""Functions whose results depend on values in shape or dtype."""


FEW = 7
"""Step between the rows that are checked in full; the others are thorough tests."""


def each(dtypes: tuple[str, ...], unknown: bool = False, all_rows: bool = False) -> Any:
    groups = []
    for k, row in enumerate(ROWS):
        cases = [case for case in cases_of(row) if case.dtype in dtypes]
        if cases and not (unknown and row.primitive in UNKNOWN):
            marks = [] if all_rows or k % FEW == 0 else [pytest.mark.thorough]
            groups.append(pytest.param(cases, id=row.primitive, marks=marks))
    return pytest.mark.parametrize("cases", groups)


@each(("float64", "float32"), all_rows=True)
def test_values_are_scipys(cases: list[Case]) -> None:
    demand(check_value, cases)


def check_value(case: Case) -> None:
    """Values, shapes and dtypes are SciPy's, but for single precision, which is kept."""
    subject = Subject(case)
    got = arrays_of(subject(*checks.leaves(subject.points)))
    result = case.row.function(np)(*case.arrays())
    wanted = [np.asarray(x) for x in (result if isinstance(result, tuple) else (result,))]
    assert [a.dtype for a in got] == [a.dtype for a in wanted]
    double = case.dtype in DOUBLE
    checks.assert_close(got, wanted, *((1e-11, 1e-12) if double else (1e-3, 1e-4)))


@each(("float64",), all_rows=True)
def test_both_modes_agree_with_differences(cases: list[Case]) -> None:
    demand(checks.check_jvp, cases)


@each(DOUBLE, all_rows=True)
def test_both_modes_agree(cases: list[Case]) -> None:
    demand(checks.check_pairing, cases)


@each(DOUBLE)
def test_each_input_alone(cases: list[Case]) -> None:
    demand(checks.check_each_input_alone, [case for case in cases if len(case.arrays()) > 1])


@each(("complex128",))
def test_complex_numbers(cases: list[Case]) -> None:
    demand(check_value, cases)
    demand(checks.check_jvp, cases)


@each(DOUBLE)
def test_second_order_is_the_same_in_three_modes(cases: list[Case]) -> None:
    demand(checks.check_second_order, cases)


@each(("float32",))
def test_single_precision_is_kept(cases: list[Case]) -> None:
    demand(checks.check_dtypes, cases)
    demand(checks.check_untouched, cases)


@each(DOUBLE, unknown=True)
def test_compiled_equals_eager(cases: list[Case]) -> None:
    demand(checks.check_compiled, cases[:1])


@each(DOUBLE, unknown=True)
def test_a_vmap_gives_the_results_of_each_example(cases: list[Case]) -> None:
    demand(check_mapped, cases[-1:])


def check_mapped(case: Case) -> None:
    """The values and gradients under vmap are those of one example at a time."""
    subject = Subject(case)
    points = [np.stack([p, p * 0.99]) for p in subject.points]

    def of(*xs: cr.Tensor) -> list[cr.Tensor]:
        xs = tuple(x.detach().requires_grad_() for x in xs)
        outs = subject(*xs)
        first = weighted_gradients(outs, xs, [cr.ones_like(out) for out in outs])
        return [*(out.detach() for out in outs), *(g.detach() for g in first)]

    found = arrays_of(cr.vmap(of)(*map(cr.from_numpy, points)))
    for k in range(2):
        one = arrays_of(of(*[cr.from_numpy(np.asarray(p[k])) for p in points]))
        for mapped, wanted in zip(found, one, strict=True):
            np.testing.assert_allclose(mapped[k], wanted, rtol=1e-9, atol=1e-11)
