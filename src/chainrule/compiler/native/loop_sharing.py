"""Loops that differ only in where their arrays begin become calls of one function.

Networks of equal layers, transforms there and back, and the passes of a gradient are the same loops
at other addresses, and LLVM takes a millisecond or more for each. Values of a small program never
overlap in memory, so the function is given each of them as an array of its own.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Set
from typing import NamedTuple

from chainrule.compiler.native.llvm_codegen import MAX_COLD_ITERATIONS

_MIN_WORK = 64
"""Number of lines that are run from which a call does not matter, which takes some nanoseconds."""

_MIN_ITERATIONS = 8
"""That of iterations: LLVM writes shorter loops out, whose values need not leave registers."""

_HEAD = re.compile(r" *for (\w+) in range\((.*)\):$")
_COUNT = re.compile(r"u8\((\d+)\)$|\w+, min\(\w+ \+ u8\((\d+)\), .*\)$")
_STORE = re.compile(r" *(\w+(?:, \w+)*) ([-+*]?)= ")
_NAME = re.compile(r"(?<![\w.])(?:(memory_\w+)\[(u8\(\d+\))|([A-Za-z_]\w*)(?![\w(.]))")
_WORDS = frozenset(
    ["for", "in", "while", "if", "else", "and", "or", "not", "break", "pass", "INF", "NAN"]
)


class _Loop(NamedTuple):
    """The lines of a loop from `start` to `end`, and the loops inside."""

    start: int
    end: int
    runs: float  # in a call of the whole
    iterations: float  # in a run, infinite if they aren't known
    inner: list[_Loop]

    @property
    def is_cold(self) -> bool:
        """Whether LLVM does not vectorise it."""
        return self.runs * self.iterations <= MAX_COLD_ITERATIONS


class _Function(NamedTuple):
    """A loop as the parameters and the body of a function."""

    parameters: str
    body: str
    is_cold: bool


def share_loops(lines: list[str]) -> tuple[list[str], list[str]]:
    """Return functions for loops that occur several times, and the lines that call them."""
    outer = _outer_variables(lines)
    loops = _loops(lines, 0, len(lines), 1)
    calls = {loop.start: _call(loop, lines, outer) for loop in _nested(loops) if _is_long(loop)}
    uses = Counter([call[0] for call in calls.values() if call is not None])
    names: dict[_Function, str] = {}

    def replaced(loops: list[_Loop], start: int, end: int) -> Iterator[str]:
        for loop in loops:
            yield from lines[start : loop.start]
            call = calls.get(loop.start)
            if call is None or uses[call[0]] == 1:
                yield from replaced(loop.inner, loop.start, loop.end)
            else:
                name = names.setdefault(call[0], f"shared_{len(names)}")
                yield f"{' ' * _indent(lines[loop.start])}{name}({call[1]})"
            start = loop.end
        yield from lines[start:end]

    rest = [*replaced(loops, 0, len(lines))]
    return [f"def {name}({f.parameters}):\n{f.body}\n" for f, name in names.items()], rest


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _outer_variables(lines: list[str]) -> set[str]:
    """Return the variables that are assigned in a loop or branch and needed outside."""
    found, stored = set[str](), set[str]()
    blocks: list[tuple[int, set[str]]] = []  # those around a line, and what they have assigned
    for line in lines:
        indent = _indent(line)
        while blocks and blocks[-1][0] > indent:
            blocks.pop()
        if not blocks or blocks[-1][0] < indent:
            blocks.append((indent, set()))
        store = _STORE.match(line)
        first = store.end() if store and not store[2] else 0
        read = {match[3] for match in _NAME.finditer(line, first)}
        targets = _stored(line)
        *around, (_, inner) = blocks
        found |= {name for name in targets if any(name in block for _, block in around)}
        found |= {name for name in read & stored if not any(name in b for _, b in blocks)}
        inner |= targets
        stored |= targets
    return found


def _stored(line: str) -> set[str]:
    """Return the variables that a line assigns."""
    match = _STORE.match(line)
    return set(match[1].split(", ")) if match else set()


def _loops(lines: list[str], start: int, end: int, runs: float) -> list[_Loop]:
    """Return the outermost loops of lines."""
    found = []
    while start < end:
        first, head = start, _HEAD.match(lines[start])
        start += 1
        if head is None:
            continue
        while start < end and _indent(lines[start]) > _indent(head[0]):
            start += 1
        number = _COUNT.match(head[2])
        count = math.inf if number is None else int(number[1] or number[2])
        inner = _loops(lines, first + 1, start, runs * count)
        most = max([loop.iterations for loop in inner], default=1)
        found.append(_Loop(first, start, runs, count * most, inner))
    return found


def _nested(loops: list[_Loop]) -> Iterator[_Loop]:
    for loop in loops:
        yield loop
        yield from _nested(loop.inner)


def _is_long(loop: _Loop) -> bool:
    """Return whether a call of a loop takes hardly longer."""
    work = loop.iterations * (loop.end - loop.start - 1)
    return loop.iterations >= _MIN_ITERATIONS and (loop.is_cold or work >= _MIN_WORK)


def _call(loop: _Loop, lines: list[str], outer: Set[str]) -> tuple[_Function, str] | None:
    """Return a loop as a function, and the arguments of its call.

    Return None if it assigns `outer` variables.
    """
    part = lines[loop.start : loop.end]
    counters = {head[1] for line in part if (head := _HEAD.match(line))}
    stored = {name for line in part for name in _stored(line)}
    if not stored.isdisjoint(outer):
        return None
    names = _Names(counters, stored)
    indent = _indent(part[0])
    body = _NAME.sub(names.numbered, "\n".join([f"    {line[indent:]}" for line in part]))
    if names.is_unfit:
        return None
    function = _Function(", ".join(names.parameters), body, loop.is_cold)
    return function, ", ".join(names.arguments)


class _Names:
    """The names of a function's variables by those of the lines that it is made of."""

    def __init__(self, counters: Set[str], stored: Set[str]) -> None:
        self.counters, self.stored = counters, stored
        self.known: dict[str, str] = {}
        self.parameters: list[str] = []
        self.arguments: list[str] = []
        self.is_unfit = False

    def numbered(self, found: re.Match[str]) -> str:
        """Return what stands in place of a name, or of the beginning of an address."""
        memory, start, name = found.groups()
        if memory:
            array = self._parameter(f"{memory}, {start}")
            return f"{array}[{array}_start"
        if name in _WORDS:
            return name
        is_counter = name in self.counters
        if is_counter and name not in self.known:
            self.is_unfit |= not found.string[: found.start()].endswith("for ")
        self.is_unfit |= name.startswith("memory_")  # as a whole
        if is_counter or name in self.stored:
            return self.known.setdefault(name, f"v{len(self.known)}")
        return self._parameter(name)

    def _parameter(self, argument: str) -> str:
        if argument not in self.known:
            name = self.known[argument] = f"v{len(self.known)}"
            self.parameters.append(f"{name}, {name}_start" if ", " in argument else name)
            self.arguments.append(argument)
        return self.known[argument]
