"""Where a function finds what it uses: its globals, its closure, and what these lead to.

A compiled function holds for what it saw. So it asks before each call whether the tensors it closes
over are still the same ones, and Python numbers still the same numbers.
"""

from __future__ import annotations

import builtins
import inspect
import types
from collections.abc import Iterable, Iterator
from typing import Any

from chainrule.autograd.tensor import Tensor

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_DEPTH = 5
_MOST = 400


class Found:
    """Something that a function can get at: how, and what it was."""

    __slots__ = ("path", "scope", "value")

    def __init__(self, scope: Any, path: str, value: Any) -> None:
        self.scope = scope  # a namespace (dict), a cell, or an object
        self.path = path  # source that leads on from there
        self.value = value


def reachable(function: Any, objects: Iterable[Any]) -> list[Found]:
    """Return the tensors, numbers and strings that a function can get at.

    By names, or as attributes of the objects among its arguments.
    """
    found: list[Found] = []
    seen: set[int] = set()
    given = [(item, "", item) for item in objects if not isinstance(item, (*_PLAIN, Tensor))]
    for scope, path, value in (*_named(function, seen), *given):
        _search(scope, path, value, _DEPTH, seen, found)
        if len(found) > _MOST:
            break
    return found


def _named(function: Any, seen: set[int]) -> Iterator[tuple[Any, str, Any]]:
    """Yield what the names in a function mean, and in the functions that it calls by name."""
    if isinstance(function, types.MethodType):
        yield function, ".__self__", function.__self__
        function = function.__func__
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None and id(wrapped) not in seen:
        yield from _named(wrapped, seen)
    if not isinstance(function, types.FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    if (function.__module__ or "").split(".")[0] in ("chainrule", "numpy"):
        return
    values: list[tuple[Any, str, Any]] = []
    for cell in function.__closure__ or ():
        try:
            values.append((cell, ".cell_contents", cell.cell_contents))
        except ValueError:  # not filled yet
            continue
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__ and not hasattr(builtins, name):
            space = function.__globals__
            values.append((space, f"[{name!r}]", space[name]))
    for scope, path, value in values:
        if isinstance(value, types.FunctionType):
            yield scope, path, value
            yield from _named(value, seen)
        elif not isinstance(value, types.ModuleType | type):
            yield scope, path, value


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _search(
    scope: Any, path: str, value: Any, depth: int, seen: set[int], found: list[Found]
) -> None:
    """Collect what is at a path, and what that leads to."""
    if isinstance(value, (*_PLAIN, Tensor, types.FunctionType)) or is_generator(value):
        found.append(Found(scope, path, value))
        return
    if depth == 0 or len(found) > _MOST or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, dict | list):
        found.append(Found(scope, f"{path}.__len__()", len(value)))
    if isinstance(value, dict):
        parts = [(f"[{key!r}]", part) for key, part in value.items() if isinstance(key, _PLAIN)]
        for key, part in value.items():  # keys that source can't spell, such as tensors
            if not isinstance(key, _PLAIN):
                _search(part, "", part, depth - 1, seen, found)
    elif isinstance(value, list | tuple):
        parts = [(f"[{i}]", part) for i, part in enumerate(value)]
    elif hasattr(value, "__dict__") and not isinstance(value, types.ModuleType | type):
        parts = [(f".{name}", part) for name, part in vars(value).items() if name.isidentifier()]
    else:
        return
    for step, part in parts:
        _search(scope, path + step, part, depth - 1, seen, found)


def is_generator(x: Any) -> bool:
    """Say whether something is a `numpy.random.Generator`, which is not imported for that."""
    return hasattr(type(x), "bit_generator")


def named_values(function: Any, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    """Return what a function calls its arguments, and what else its own code names."""
    names: list[tuple[str, Any]] = []
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
        names += bound.arguments.items()
    except (TypeError, ValueError):
        pass
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return names
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        names.append((name, getattr(cell, "cell_contents", None)))
    space = function.__globals__
    names += [(name, space[name]) for name in sorted(code.co_names) if name in space]
    return names
