"""Parameters of tests of which `python3 dev.py test` runs a part."""

from __future__ import annotations

from typing import Any

import pytest


def thorough(value: Any, **settings: Any) -> Any:
    """Return a parameter whose test is marked as thorough."""
    return pytest.param(value, marks=pytest.mark.thorough, **settings)


def one_dtype_in_turn(groups: dict[str, Any]) -> list[Any]:
    """Return the groups, named ``primitive-dtype``, as parameters.

    All but one of each primitive are thorough: the first dtype of the first primitive that has
    several, the second of the next, and so on.
    """
    by_primitive: dict[str, list[str]] = {}
    for name in groups:
        by_primitive.setdefault(name.rpartition("-")[0], []).append(name)
    kept = {names[i % len(names)] for i, names in enumerate(by_primitive.values())}
    return [
        pytest.param(cases, id=name) if name in kept else thorough(cases, id=name)
        for name, cases in groups.items()
    ]


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
