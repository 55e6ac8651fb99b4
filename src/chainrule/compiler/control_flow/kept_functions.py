"""Functions of loops and branches for their backward pass, which runs after other code.

What they find by name must be what it was: variables of closures are kept, since programs give them
new values (`x = cr.cond(p, lambda: f(x), lambda: x)`). Anything else that was changed is an error.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from types import CellType, FunctionType
from typing import Any

from chainrule.compiler.tracing.found import Found
from chainrule.control_flow import Branch, Step
from chainrule.errors import CompileError


def kept(
    name: str, functions: Sequence[Callable[..., Any]], reads: Sequence[Found]
) -> list[Callable[..., Any]]:
    """Return functions as they are now, which raise if what they read is changed."""
    known: dict[int, Any] = {}
    reads = [item for item in reads if not _is_own(item.scope)]

    def checked(frozen: Callable[..., Any], *args: Any) -> Any:
        rebound = _rebound(reads)
        for item in reads:
            if id(item.scope) not in rebound and has_changed(item):
                raise CompileError(
                    f"what the function of a {name} finds by name (of type "
                    f"{type(item.value).__name__}) is changed after the {name}, but the backward "
                    "pass needs it: change it later, or pass it as an operand"
                )
        return frozen(*args)

    return [functools.partial(checked, _frozen(function, known)) for function in functions]


def has_changed(item: Found) -> bool:
    """Return whether an object that was found by name is another one now."""
    is_size = not item.path or item.path.endswith(".__len__()")
    return not (is_size or item.form or item.holds())


def _is_own(scope: Any) -> bool:
    """Return whether an object is this package's, as the branches of a derivative are."""
    function = scope.func if isinstance(scope, functools.partial) else scope
    return str(getattr(function, "__module__", "")).partition(".")[0] == __name__.partition(".")[0]


def _rebound(reads: Sequence[Found]) -> set[int]:
    """Return the ids of the variables of closures that have new values now."""
    cells = [item for item in reads if isinstance(item.scope, CellType)]
    return {id(c.scope) for c in cells if c.path == ".cell_contents" and not c.holds()}


def _frozen(value: Any, known: dict[int, Any]) -> Any:
    """Return a function with cells of its own, and so for the functions in them."""
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, functools.partial):
        return functools.partial(_frozen(value.func, known), *value.args, **value.keywords)
    if isinstance(value, Branch | Step):
        found = known[id(value)] = copy.copy(value)
        found.f = _frozen(value.f, known)
        return found
    if not isinstance(value, FunctionType) or not value.__closure__:
        return value
    cells = tuple([CellType() for _ in value.__closure__])
    made = FunctionType(
        value.__code__, value.__globals__, value.__name__, value.__defaults__, cells
    )
    functools.update_wrapper(made, value)
    made.__kwdefaults__ = value.__kwdefaults__
    known[id(value)] = made
    for cell, before in zip(cells, value.__closure__, strict=True):
        try:
            cell.cell_contents = _frozen(before.cell_contents, known)
        except ValueError:  # it has no value yet
            continue
    return made
