"""Names that a function has for its arguments, its closure and the results of its lines."""

from __future__ import annotations

import dis
import inspect
from bisect import bisect_right
from types import CodeType
from typing import Any, NamedTuple


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


class _Names(NamedTuple):
    """The instructions of a code object, and the variable of each that is a store."""

    code: CodeType
    offsets: list[int]
    stores: dict[int, str]


_NAMES: dict[int, _Names] = {}  # by the id of the code, whose hash takes as long as the code is
_MAX_NAMES = 256


def assigned_name(code: CodeType, instruction: int) -> str | None:
    """Return the name of the variable to which the result of an instruction is bound, if any."""
    _, offsets, stores = _NAMES.get(id(code)) or _read_names(code)
    following = bisect_right(offsets, instruction)
    return stores.get(offsets[following]) if following < len(offsets) else None


def _read_names(code: CodeType) -> _Names:
    found = list(dis.get_instructions(code))
    stores = {i.offset: i.argval for i in found if i.opname in _STORE_OPCODES}
    if len(_NAMES) >= _MAX_NAMES:
        _NAMES.clear()
    names = _NAMES[id(code)] = _Names(code, [i.offset for i in found], stores)
    return names


_STORE_OPCODES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
