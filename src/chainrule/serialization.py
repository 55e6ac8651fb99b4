"""PyTorch's names for the classes that files may name: `load` makes objects of them."""

from __future__ import annotations

import contextlib
from typing import Any

from chainrule.io import load as load
from chainrule.io import save as save
from chainrule.io.objects import SAFE_GLOBALS

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]


def add_safe_globals(safe_globals: list[Any]) -> None:
    """List classes and functions that `load` may use, whatever file of `save` names them."""
    SAFE_GLOBALS.extend(each for each in safe_globals if each not in SAFE_GLOBALS)


def get_safe_globals() -> list[Any]:
    """Return the listed classes."""
    return list(SAFE_GLOBALS)


def clear_safe_globals() -> None:
    """Forget the listed classes."""
    SAFE_GLOBALS.clear()


class safe_globals(contextlib.ContextDecorator):
    """A context manager that lists classes and functions for `load`.

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
        SAFE_GLOBALS[:] = self.before
