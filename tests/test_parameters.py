"""The choice of cases that `python3 dev.py test` runs."""

import pytest

from helpers.parameters import mark_sampled

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
