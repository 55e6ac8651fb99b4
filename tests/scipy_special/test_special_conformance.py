"""The conformance table of `scipy.special`: both modes, second order, compiled, vmap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.primitives import TABLE
from chainrule.scipy.special.ufunc import UFUNCS
from conformance import Case, Row, cases_of, checks
from conformance.checks import Subject, arrays_of, demand, weighted_gradients
from conformance.rows.scipy_special import ROWS

DIFFERENTIABLE = [row for row in ROWS if TABLE[row.primitive].differentiable]


def each(dtypes: tuple[str, ...], smooth: bool = False) -> Any:
    groups = {
        row.primitive: [
            case
            for case in cases_of(row)
            if case.dtype in dtypes and (case.situation.smooth or not smooth)
        ]
        for row in DIFFERENTIABLE
    }
    groups = {name: cases for name, cases in groups.items() if cases}
    return pytest.mark.parametrize("cases", groups.values(), ids=groups)


DOUBLE = ("float64", "complex128")


def test_every_declared_ufunc_with_a_derivative_has_a_row() -> None:
    wanted = {u.primitive.name for u in UFUNCS.values() if u.partials or u.constant}
    assert {row.primitive for row in ROWS} == wanted


@each((*DOUBLE, "float32"))
def test_values_are_scipys(cases: list[Case]) -> None:
    demand(checks.check_value, cases)
    demand(checks.check_primitive, cases)


@each(DOUBLE, smooth=True)
def test_both_modes_agree_with_differences(cases: list[Case]) -> None:
    demand(checks.check_vjp, cases)
    demand(checks.check_jvp, cases)


@pytest.mark.sampled(4)
@each(DOUBLE)
def test_both_modes_agree(cases: list[Case]) -> None:
    demand(checks.check_pairing, cases)
    demand(checks.check_each_input_alone, [case for case in cases if len(case.arrays()) > 1])
    demand(checks.check_unused_outputs, [c for c in cases if TABLE[c.row.primitive].multiple])


@pytest.mark.sampled(4)
@each(DOUBLE)
def test_second_order_is_the_same_in_three_modes(cases: list[Case]) -> None:
    demand(checks.check_second_order, cases)


@pytest.mark.sampled(4)
@each(("float32",), smooth=True)
def test_single_precision_is_double_precision_rounded(cases: list[Case]) -> None:
    demand(checks.check_single_precision, cases)


@pytest.mark.sampled(8)
@each((*DOUBLE, "float32"))
def test_dtypes_and_inputs_are_kept(cases: list[Case]) -> None:
    demand(checks.check_dtypes, cases)
    demand(checks.check_untouched, cases)


@pytest.mark.sampled(8)
@each(("float64",))
def test_memory_layout_makes_no_difference(cases: list[Case]) -> None:
    demand(checks.check_contiguity, cases[:1])


@pytest.mark.thorough
@each((*DOUBLE, "float32"))
def test_compiled_equals_eager(cases: list[Case]) -> None:
    demand(checks.check_compiled, [*cases[:1], *cases[-1:]])


@pytest.mark.thorough
@each(DOUBLE)
def test_a_vmap_gives_the_results_of_each_example(cases: list[Case]) -> None:
    demand(check_mapped, [*cases[:1], *cases[-1:]])


def check_mapped(case: Case) -> None:
    """The gradients and second derivatives under vmap are those of one example at a time."""
    subject = Subject(case)
    points = [np.stack([p, p * 0.99]) for p in subject.points]

    def of(*xs: cr.Tensor) -> list[cr.Tensor]:
        xs = tuple(x.detach().requires_grad_() for x in xs)
        outs = subject(*xs)
        ones = [cr.ones_like(out) for out in outs]
        first = weighted_gradients(outs, xs, ones, create_graph=True)
        second = weighted_gradients(first, xs, [cr.ones_like(g) for g in first])
        return [*(out.detach() for out in outs), *(g.detach() for g in first), *second]

    found = arrays_of(cr.vmap(of)(*map(cr.from_numpy, points)))
    for k in range(2):
        one = arrays_of(of(*[cr.from_numpy(np.asarray(p[k])) for p in points]))
        for mapped, wanted in zip(found, one, strict=True):
            np.testing.assert_allclose(mapped[k], wanted, rtol=1e-9, atol=1e-12)


REAL = [row for row in DIFFERENTIABLE if any(c.dtype == "float64" for c in cases_of(row))]


@pytest.mark.parametrize("row", REAL[::6], ids=lambda row: row.primitive)
def test_a_rule_wrong_by_a_ten_thousandth_is_noticed(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in cases_of(row) if case.dtype == "float64")
    if not case.situation.smooth:
        pytest.skip("SciPy computes it to few digits")
    checks.check_vjp(case)
    for plan in TABLE[row.primitive].plans():
        vjp = plan._compile()
        monkeypatch.setattr(
            plan, "vjp", lambda *a, f=vjp: tuple(None if g is None else g * 1.0001 for g in f(*a))
        )
    with pytest.raises(AssertionError):
        checks.check_vjp(case)
