"""Names that a function has for its arguments, its closure and the results of its lines."""

from __future__ import annotations

import dis
import inspect
from bisect import bisect_right
from types import CodeType, FrameType
from typing import Any, NamedTuple

from chainrule.autograd.location import Location, locate, user_frame
from chainrule.compiler.ir.program import Op, Value


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


class UserLines:
    """Lines of the user that record ops of one trace: their locations, and names of results."""

    def __init__(self) -> None:
        self.naming = True  # whether values are named after the user's variables
        self.frame: FrameType | None = None  # of the user, if it is known already
        self.caller: int | None = None  # id of the frame that called, whose variables don't count
        self._hinted: tuple[Any, list[Value]] = (None, [])
        self._places: dict[tuple[int, int], tuple[CodeType, Location | None, str | None]] = {}

    def annotate(self, ops: list[Op], frame: FrameType | None) -> None:
        """Set the user's location, at or above `frame`, of ops that one instruction records.

        The result is named after the variable it is bound to.
        """
        frame = self.frame or user_frame(frame)
        if frame is None:
            return
        code, offset = frame.f_code, frame.f_lasti
        place = self._places.get((id(code), offset))
        if place is None:
            name = assigned_name(code, offset)
            name = name if name is not None and name.isidentifier() else None
            place = self._places[id(code), offset] = code, locate(code, offset), name
        _, location, name = place
        for op in ops:
            op.location = location
        if name is None or not self.naming or id(frame) == self.caller:
            return
        instruction = (id(frame), offset)
        if self._hinted[0] == instruction:  # of several ops for one call, the last has the name
            for value in self._hinted[1]:
                value.hint = ""
        self._hinted = instruction, list(ops[-1].outs)
        ops[-1].outs[0].hint = name
