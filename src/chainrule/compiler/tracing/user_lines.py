"""Lines of the user that record ops, for their locations and for the names of their results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import NamedTuple

from chainrule.autograd.location import INTERNAL, Location, locate, user_frame
from chainrule.compiler.ir.program import Op, Value
from chainrule.compiler.tracing.names import assigned_name


class _Instruction(NamedTuple):
    """An instruction of a function that runs."""

    frame: int  # its id
    code: CodeType
    offset: int


class UserLines:
    """The lines of one trace.

    The frames above the one in which the trace was entered wait for it: there the line of the user
    stays the same, and is looked for once.
    """

    def __init__(self) -> None:
        self.naming = True  # whether values are named after the user's variables
        self.caller: int | None = None  # id of the frame that called, whose variables don't count
        self._entry: int | None = None  # id of the frame in which the trace was entered
        self._above: _Instruction | None = None
        self._hinted: tuple[_Instruction | None, list[Value]] = (None, [])
        self._places: dict[tuple[int, int], tuple[CodeType, Location | None, str | None]] = {}

    @contextmanager
    def entered(self, frame: FrameType) -> Iterator[None]:
        """Record that a frame runs the function, as long as the block runs."""
        outer = self._entry, self._above
        self._entry, self._above = id(frame), None
        try:
            yield
        finally:
            self._entry, self._above = outer

    def annotate(self, ops: list[Op], frame: FrameType | None) -> None:
        """Set the user's location, at or above `frame`, of ops that one instruction records.

        The result is named after the variable it is bound to.
        """
        line = self._user_instruction(frame)
        if line is None:
            return
        _, code, offset = line
        place = self._places.get((id(code), offset))
        if place is None:
            name = assigned_name(code, offset)
            name = name if name is not None and name.isidentifier() else None
            place = self._places[id(code), offset] = code, locate(code, offset), name
        _, location, name = place
        for op in ops:
            op.location = location
        if name is None or not self.naming or line.frame == self.caller:
            return
        known, values = self._hinted
        if known == line:  # of several ops for one call, the last has the name
            for value in values:
                value.hint = ""
        self._hinted = line, list(ops[-1].outs)
        ops[-1].outs[0].hint = name

    def _user_instruction(self, frame: FrameType | None) -> _Instruction | None:
        while frame is not None:
            code = frame.f_code
            if not INTERNAL[code.co_filename]:
                return _Instruction(id(frame), code, frame.f_lasti)
            if id(frame) == self._entry:
                if self._above is None and (user := user_frame(frame)) is not None:
                    self._above = _Instruction(id(user), user.f_code, user.f_lasti)
                return self._above
            frame = frame.f_back
        return None
