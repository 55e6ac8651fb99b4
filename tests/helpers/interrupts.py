"""Interrupts at a chosen bytecode instruction of chainrule."""

import dis
import functools
import os
import sys
from typing import NamedTuple

import chainrule

PACKAGE = os.path.dirname(chainrule.__file__) + os.sep


class Place(NamedTuple):
    """An instruction of chainrule's code or of code that it generated, and where it was called.

    -1 as the instruction is the entry of the function. The names of generated files have numbers,
    so the files of all generated code count as one.
    """

    filename: str
    function: str
    line: int
    instruction: int
    caller: tuple[str, int]

    def __str__(self):
        path = self.filename.removeprefix(PACKAGE)
        return f"{path}:{self.line} {self.function}+{self.instruction} from {self.caller}"


def _filename(code):
    name = code.co_filename
    if name.startswith(PACKAGE):
        return name
    generated = name.startswith("<") and not name.startswith(("<frozen", "<string", "<__array"))
    return "generated" if generated else None


def _function(frame):
    """Return the part of a `Place` that a frame has, None for code of others."""
    code, back = frame.f_code, frame.f_back
    filename = _filename(code)
    if filename is None:
        return None
    caller = (back.f_code.co_name, back.f_lasti) if back is not None else ("", 0)
    return filename, code.co_qualname, code.co_firstlineno, caller


def _is_entered(frame):
    """Whether a frame begins, and is not a generator that goes on."""
    return frame.f_lasti <= 4 * len(frame.f_code.co_freevars + frame.f_code.co_cellvars) + 4


def _is_exempt(code, instruction):
    """Whether CPython raises no signal there, or raises it where a handler covers it.

    These are the return of an `__enter__`, and the entry of an `__exit__`, which `settrace` can't
    interrupt as a signal does: `test_a_signal_during_the_last_operator_of_a_block` does.
    """
    if instruction < 0:
        return code.co_name == "__exit__"
    if instruction in _ends_of_with(code):
        return True
    return code.co_name == "__enter__" and code.co_code[instruction] == dis.opmap["RETURN_VALUE"]


@functools.cache
def _ends_of_with(code):
    """Return the instructions between a lock's `__enter__` and its block, and before `__exit__`.

    CPython looks for signals after calls and at the end of loops, so none of these is interrupted,
    and a lock that an interrupt there would leave locked is not left so.
    """
    instructions = list(dis.get_instructions(code))
    found = set()
    for i, instruction in enumerate(instructions[:-1]):
        if instruction.opname == "BEFORE_WITH":
            found.add(instructions[i + 1].offset)
        part = [each for each in instructions[i : i + 5] if each.opname != "PRECALL"][:4]
        nones = [each.opname == "LOAD_CONST" and each.argval is None for each in part[:3]]
        if len(part) == 4 and all(nones) and part[3].opname == "CALL" and part[3].arg == 2:
            found.update(
                each.offset for each in instructions[i : i + 5] if each.offset <= part[3].offset
            )
    return found


def places(run):
    """Return the places that a call comes by, in the order in which it first does."""
    found = {}

    def on_call(frame, event, argument):
        part = _function(frame)
        if part is None:
            return None
        *function, caller = part
        if _is_entered(frame) and not _is_exempt(frame.f_code, -1):
            found.setdefault(Place(*function, -1, caller))
        frame.f_trace_lines, frame.f_trace_opcodes = False, True

        def on_instruction(frame, event, argument):
            if event == "opcode" and not _is_exempt(frame.f_code, frame.f_lasti):
                found.setdefault(Place(*function, frame.f_lasti, caller))
            return on_instruction

        return on_instruction

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        run()
    finally:
        sys.settrace(before)
    return list(found)


def interrupt(run, place):
    """Call `run` with a KeyboardInterrupt at a place; return whether it came there."""
    reached = False
    function = (place.filename, place.function, place.line, place.caller)
    name = place.function

    def on_call(frame, event, argument):
        nonlocal reached
        if reached or frame.f_code.co_qualname != name or _function(frame) != function:
            return None
        if place.instruction < 0:
            if not _is_entered(frame):
                return None
            reached = True
            raise KeyboardInterrupt
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return on_instruction

    def on_instruction(frame, event, argument):
        nonlocal reached
        if not reached and event == "opcode" and frame.f_lasti == place.instruction:
            reached = True
            raise KeyboardInterrupt
        return on_instruction

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        run()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return reached
