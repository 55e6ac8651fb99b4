"""The choice of cases that `python3 dev.py test` runs."""

import pytest

from conformance import Case, Row, situation
from helpers.parameters import dtypes_in_turn, mark_sampled

SOURCE = """
import pytest

@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(7))
def test_many(number): pass

def test_one(): pass
"""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnknownMarkWarning")
def test_all_but_every_nth_case_are_thorough(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SOURCE)
    items, _ = pytester.inline_genitems()
    mark_sampled(items)
    kept = [item.name for item in items if item.get_closest_marker("thorough") is None]
    assert kept == ["test_many[0]", "test_many[3]", "test_many[6]", "test_one"]


def test_dtypes_in_turn_have_every_situation_and_every_dtype() -> None:
    names, dtypes = ("plain", "axis", "size-0"), ("float32", "float64", "complex64", "complex128")
    row = Row("sin", tuple(situation(name, (3,)) for name in names), dtypes=dtypes)
    cases = [Case(row, each, dtype) for each in row.situations for dtype in dtypes]
    chosen = dtypes_in_turn(cases)["sin"]
    assert [case.situation.name for case in chosen] == [*names, "plain"]
    assert {case.dtype for case in chosen} == set(dtypes)
