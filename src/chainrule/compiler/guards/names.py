"""Names that a function has for its arguments, closure and globals."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any


def named_values(function: Any, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    """Return the arguments, free variables and globals of a function, with their names."""
    names = argument_names(function, args, kwargs)
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return names
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # an empty cell
            names.append((name, cell.cell_contents))
    space = function.__globals__
    names += [(name, space[name]) for name in sorted(code.co_names) if name in space]
    return names


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
