"""Parameters of tests of which `python3 dev.py test` runs a part."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conformance import Case


def thorough(value: Any, **settings: Any) -> Any:
    """Return a parameter whose test is marked as thorough."""
    return pytest.param(value, marks=pytest.mark.thorough, **settings)


def dtypes_in_turn(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Return the cases of each primitive: every situation in one dtype, and every dtype.

    The first situation of a primitive has its first dtype, the second one its second, and so on;
    a dtype that none has comes with the first situation that it can.
    """
    dtypes: dict[str, dict[str, list[Case]]] = {}
    for case in cases:
        situations = dtypes.setdefault(case.row.primitive, {})
        situations.setdefault(case.situation.name, []).append(case)
    found: dict[str, list[Case]] = {}
    for primitive, situations in dtypes.items():
        chosen = [each[i % len(each)] for i, each in enumerate(situations.values())]
        for case in itertools.chain(*situations.values()):
            if case.dtype not in {each.dtype for each in chosen}:
                chosen.append(case)
        found[primitive] = chosen
    return found


def mark_sampled(items: list[pytest.Item]) -> None:
    """Mark as thorough all but every n-th case of the tests with the marker `sampled(n)`."""
    counts: dict[str, int] = {}
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is None:
            continue
        function = item.nodeid.partition("[")[0]
        number = counts[function] = counts.get(function, -1) + 1
        if number % marker.args[0]:
            item.add_marker(pytest.mark.thorough)
