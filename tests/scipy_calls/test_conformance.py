"""Functions of SciPy's that are no primitives: values, both modes, second order, vmap."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from conformance import cases_of, checks
from conformance.checks import Subject, arrays_of, demand
from conformance.row import Row
from conformance.rows.scipy_functions import ROWS

OF_VALUES = (
    *("milp", "isotonic_regression", "sproot", "siegelslopes", "eigvals of a singular pair"),
    *("FloaterHormannInterpolator", "expm_multiply", "qmc.discrepancy", "splrep", "make_splrep"),
    "LinearOperator",
)
"""Functions whose steps depend on values, and that no map takes."""


@pytest.mark.parametrize("row", ROWS, ids=[row.primitive for row in ROWS])
@pytest.mark.filterwarnings("ignore::chainrule.PerformanceWarning")
def test_function(row: Row) -> None:
    (case,) = cases_of(row)
    subject = Subject(case)
    found = arrays_of(subject(*checks.leaves(subject.points)))
    checks.assert_close(found, [np.asarray(row.function(np)(*case.arrays()))], 1e-7, 1e-9)
    if case.situation.smooth:
        demand(checks.check_jvp, [case])
    demand(checks.check_pairing, [case])
    demand(checks.check_second_order, [case])
    if row.primitive not in OF_VALUES:
        stacked = [cr.from_numpy(np.stack([p, p])) for p in subject.points]
        mapped = arrays_of(cr.vmap(lambda *xs: tuple(subject(*xs)))(*stacked))
        checks.assert_close([a[1] for a in mapped], found, 1e-7, 1e-9)
