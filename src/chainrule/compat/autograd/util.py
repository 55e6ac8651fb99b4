"""Sequences with single elements replaced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["func", "subval", "subvals"]


def subvals(x: Sequence[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """Return a tuple of `x` with other elements: pairs of an index and a value."""
    changed = dict(ivs)
    return tuple([changed.get(i, value) for i, value in enumerate(x)])


def subval(x: Sequence[Any], i: int, v: Any) -> tuple[Any, ...]:
    """Return a tuple of `x` with another element at one index."""
    return subvals(x, [(i, v)])


def func(f: Any) -> Any:
    """Return a function as it is."""
    return f
