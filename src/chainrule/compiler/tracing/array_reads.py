"""Reads of NumPy arrays by Python code, which no operation of the program repeats.

`x * a` with a tensor x is an operation of the program, which reads the array a at each call. But
`float(a[0])` is a constant of the program, and so is `a.mean()`. Bytecode tells them apart: where
an array is loaded by its name, and which instruction takes it.
"""

from __future__ import annotations

import dis
import re
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import CodeType
from typing import Any

from chainrule.backend import storage_of

_VIEWS = ("T", "mT", "real", "imag")
_SHAPES = ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides", "flags", "__class__")
_FUNCTIONS_OF_SHAPES = ("len", "isinstance", "type", "id")
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_ATTR", "IMPORT_FROM")
_NO_RESULT = ("STORE", "POP", "RETURN", "YIELD", "DELETE")


def never_changes(array: Any) -> bool:
    """Whether an array is read-only, and so is the one whose memory it shares."""
    return not (array.flags.writeable or storage_of(array).flags.writeable)


def reads_elements(
    places: Iterable[tuple[Any, str]], codes: Iterable[CodeType], uses: set[tuple[int, int]]
) -> bool:
    """Whether Python code may read elements of an array that was found at these places.

    A place is an object and a path from it. `uses` are the instructions, each with the id of its
    code, at which operations of the program took the array or a view of it.
    """
    codes, known = list(codes), False
    for scope, path in places:
        name = _last_name(scope, path)
        if name is None:  # in a list, for example
            return True
        for code in codes:
            for each in code.co_freevars if path == _CELL else (name,):
                spans = _takers(code, each)
                known = known or spans is not None
                for span in spans or ():
                    if not any(key == id(code) and offset in span for key, offset in uses):
                        return True
    return not known


_CELL = ".cell_contents"


def _last_name(scope: Any, path: str) -> str | None:
    """Return the name by which code loads what is at a path; None if it does otherwise."""
    if path.startswith("['") and not (isinstance(scope, dict) and "__name__" in scope):
        return None  # an item of a dict
    found = re.fullmatch(r"(?:.*\.|\['|\.__dict__\[')(\w+)(?:'\])?", path)
    return found[1] if found else None


@lru_cache(4096)
def _takers(code: CodeType, name: str) -> tuple[range, ...] | None:
    """Return the offsets of the instruction that takes the array, for each load of a name.

    They are empty if it isn't known. Loads of which only the shape or dtype is taken are left out.
    None without any load.
    """
    found = [i for i in dis.get_instructions(code) if i.opname not in ("EXTENDED_ARG", "PRECALL")]
    loaded = any(i.opname in _LOADS and i.argval == name for i in found)
    return tuple(_takers_among(found, name)) if loaded else None


def _takers_among(found: list[Any], name: str) -> Iterator[range]:
    for i, each in enumerate(found):
        if each.opname in _LOADS and each.argval == name:
            first = i
            while first and found[first].opname == "LOAD_ATTR":
                first -= 1
            before = found[first - 1].argval if first else None
            if before in _FUNCTIONS_OF_SHAPES and found[i + 1].opname == "CALL":
                continue
            taker = _taker(found, i)
            if taker is not None:
                yield taker


def _taker(found: list[Any], start: int) -> range | None:
    above, unknown = 0, range(0)  # `above`: number of items on the stack above the array
    for i, each in enumerate(found[start + 1 :], start + 1):
        if each.opname == "LOAD_ATTR" and not above:
            if each.argval in _SHAPES:
                return None
            if each.argval not in _VIEWS:
                return unknown
            continue
        if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            return unknown
        pops, pushes = _effect(each)
        if pops > above:
            if each.opname not in ("BINARY_SUBSCR", "BINARY_SLICE") or above != pops - 1:
                following = found[i + 1 : i + 2]
                return range(each.offset, following[0].offset if following else sys.maxsize)
            pops, pushes = 1, 0  # a view, perhaps
        above += pushes - pops
    return unknown


def _effect(each: Any) -> tuple[int, int]:
    """Return the numbers of items that an instruction takes from the stack and puts there."""
    if each.opname == "CALL":
        return each.arg + 2, 1
    argument = each.arg if each.opcode >= dis.HAVE_ARGUMENT else None
    net = dis.stack_effect(each.opcode, argument)
    if each.opname.startswith(_NO_RESULT):
        return -net, 0
    if each.opname == "LOAD_METHOD":
        return 1, 2
    if each.opname.startswith(("LOAD_", "PUSH_", "COPY")) and net > 0:
        return 0, net
    return 1 - net, 1
