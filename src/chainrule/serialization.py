"""PyTorch's names for what `load` may execute: nothing is executed here."""

from __future__ import annotations

import contextlib
from typing import Any

from chainrule.io import load as load
from chainrule.io import save as save

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]

_listed: list[Any] = []


def add_safe_globals(safe_globals: list[Any]) -> None:
    """List classes, as scripts do that load objects of them: `load` reads none."""
    _listed.extend(each for each in safe_globals if each not in _listed)


def get_safe_globals() -> list[Any]:
    """Return the listed classes."""
    return list(_listed)


def clear_safe_globals() -> None:
    """Forget the listed classes."""
    _listed.clear()


class safe_globals(contextlib.ContextDecorator):
    """A context manager that lists classes: `load` executes nothing, in it as elsewhere.

    Examples
    --------
    >>> from chainrule import serialization
    >>> with serialization.safe_globals([set]):
    ...     set in serialization.get_safe_globals()
    True
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self.classes = safe_globals

    def __enter__(self) -> safe_globals:
        self.before = get_safe_globals()
        add_safe_globals(self.classes)
        return self

    def __exit__(self, *details: object) -> None:
        _listed[:] = self.before
