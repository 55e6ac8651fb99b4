"""Parameters of tests of which `python3 dev.py test` runs a part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
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
    sampled = [(item, item.get_closest_marker("sampled")) for item in items]
    numbers: Counter[str] = Counter()
    for item, marker in sampled:
        if marker is not None and _count(item, numbers) % marker.args[0]:
            item.add_marker(pytest.mark.thorough)


def thin_out(
    items: list[pytest.Item], kept: int, which: Callable[[pytest.Item], object]
) -> list[pytest.Item]:
    """Remove all but every n-th of some cases of each test, and return them."""
    numbers: Counter[str] = Counter()
    left = [item for item in items if which(item) and _count(item, numbers) % kept]
    gone = set(left)
    items[:] = [item for item in items if item not in gone]
    return left


def is_thorough(item: pytest.Item) -> bool:
    return item.get_closest_marker("thorough") is not None


def is_first_of_the_compiler(item: pytest.Item) -> bool:
    """Tell whether an item is a test of the compiler that is not thorough."""
    return "/tests/compiler/" in item.path.as_posix() and not is_thorough(item)


def _count(item: pytest.Item, numbers: Counter[str]) -> int:
    """Return how many cases of the same test were counted before."""
    function = item.nodeid.partition("[")[0]
    numbers[function] += 1
    return numbers[function] - 1
