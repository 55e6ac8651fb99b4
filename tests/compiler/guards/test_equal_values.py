"""Guards on values that are equal but not the same: 1 and True, 0.0 and -0.0, nan and nan."""

from __future__ import annotations

import copy
import enum
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import chainrule as cr

NAN = float("nan")
ALIKE = [
    (1, 1.0),
    (1, True),
    (0, False),
    (0.0, -0.0),
    (NAN, 1.0),
    (complex(0, 1), complex(-0.0, 1)),
    (complex(1, 0), complex(1, -0.0)),
    (complex(NAN, 1), complex(NAN, 2)),
    (np.float32(1), np.float64(1)),
    (np.float32(0.0), np.float32(-0.0)),
    (np.float64("nan"), np.float64(1)),
    (np.int64(1), 1),
    (np.complex64(0), np.complex64(complex(0, -0.0))),
    (Decimal("0"), Decimal("-0")),
]
CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "list of 1": lambda x: [x],
    "list of 8": lambda x: [x] * 8,
    "list of 9": lambda x: [x] * 9,
    "mixed list": lambda x: ["name", None, 2, 0.5, x] * 3,
    "tuple of 20": lambda x: (x,) * 20,
    "deque of 9": lambda x: deque([x] * 9),
    "set": lambda x: {x},
    "frozenset": lambda x: frozenset([x]),
    "set with others": lambda x: {"name", 2, 3.0, x},
    "set of tuples": lambda x: {("name", x)},
    "values of a dict": lambda x: {"name": x},
    "keys of a dict": lambda x: {x: 1.5, "name": 2.0},
}


class Settings:
    """An object with one attribute."""

    value: Any = None


def again(value: Any) -> Any:
    """Return a copy; of a set in the same order, which functions may depend on."""
    return value.copy() if isinstance(value, set) else copy.deepcopy(value)


def kept(function: Any) -> int:
    return len(function.signatures)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("container", [name for name in CONTAINERS if name[:4] != "keys"])
@pytest.mark.parametrize(("first", "second"), ALIKE, ids=repr)
def test_a_value_found_by_name(first: Any, second: Any, container: str) -> None:
    settings, make = Settings(), CONTAINERS[container]

    @cr.compile(backend="numpy")
    def scaled(x: Any) -> Any:
        return x * len(repr(settings.value))

    x = cr.ones(2)
    for value in (first, second):
        settings.value = make(value)
        assert scaled(x).tolist() == [float(len(repr(settings.value)))] * 2
        settings.value = again(settings.value)
        scaled(x)  # the same value in another object needs no trace
    assert kept(scaled) == 2


@pytest.mark.parametrize("container", ["itself", "list of 1", "list of 9", "keys of a dict"])
@pytest.mark.parametrize(("first", "second"), ALIKE, ids=repr)
def test_a_value_passed_as_argument(first: Any, second: Any, container: str) -> None:
    if isinstance(first, Decimal):
        pytest.skip("an object of another kind is compared by identity")
    make = CONTAINERS[container]

    @cr.compile(backend="numpy")
    def scaled(x: Any, value: Any) -> Any:
        return x * len(repr(value))

    for value in (first, second):
        for _ in range(2):
            given = make(copy.deepcopy(value))
            assert scaled(cr.ones(1), given).item() == len(repr(given))
    assert kept(scaled) == 2


@pytest.mark.parametrize(("first", "second"), [(1, True), (False, 0), ((1, 2), (True, 2))])
def test_the_keys_of_a_dict_found_by_name(first: Any, second: Any) -> None:
    settings = Settings()

    @cr.compile(backend="numpy")
    def scaled(x: Any) -> Any:
        return x * len(repr(settings.value))

    for key in (first, second):
        for _ in range(2):
            settings.value = {"name": 0, key: 1}
            assert scaled(cr.ones(1)).item() == len(repr(settings.value))
    assert kept(scaled) == 2


class Mode(enum.IntEnum):
    """Numbers with names."""

    SLOW = 1


def test_an_enum_member_and_its_number() -> None:
    @cr.compile(backend="numpy")
    def scaled(x: Any, mode: Any) -> Any:
        return x * (2 if isinstance(mode, Mode) else 3)

    x = cr.ones(1)
    for _ in range(2):
        assert [scaled(x, m).item() for m in (Mode.SLOW, 1, Mode.SLOW)] == [2.0, 3.0, 2.0]
    assert kept(scaled) == 2
