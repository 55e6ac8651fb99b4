"""Names that a function has for its arguments and its closure."""

from __future__ import annotations

import inspect
from typing import Any


def argument_names(function: Any, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    """Return the arguments of a call with the names of the parameters."""
    try:
        return [*inspect.signature(function).bind(*args, **kwargs).arguments.items()]
    except (TypeError, ValueError):
        return []


def cell_names(function: Any) -> dict[int, str]:
    """Return the names of the cells of a function's closure, by the cells' ids."""
    function = getattr(function, "__func__", function)
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    return {
        id(c): n for n, c in zip(names, getattr(function, "__closure__", None) or (), strict=True)
    }
