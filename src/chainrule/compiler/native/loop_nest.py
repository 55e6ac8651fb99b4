"""Loops over an iteration space as source, and the elements of memory that their turns reach."""

from __future__ import annotations

import keyword
from typing import NamedTuple

from chainrule.compiler.ir.program import Shape
from chainrule.compiler.native import vector_math
from chainrule.compiler.native.scalar_codegen import CODES

LOOP = "loop"
"""What all loops are called: those of one text are compiled once."""

RUN = 1024
"""So many numbers are added up in their own type before the sum goes on in float64."""

_INDICES = "ijklmnopqrstuvw"
RESERVED = {
    *(
        *keyword.kwlist,
        *CODES.values(),
        *vars(vector_math),
        *_INDICES,
        "np",
        "start",
        "stop",
        "run",
    ),
    *("abs", "min", "range", "out", "fresh", "filled", "over", "handed", "step", "part", LOOP),
}


class Place(NamedTuple):
    """Where a value begins: the array, and the number of the first element as source."""

    array: str
    start: str


class Memory(NamedTuple):
    """An array that the loop reads or writes: its name, and where the element of a turn is."""

    name: str
    offset: int
    strides: list[int]
    start: str = ""  # where the value begins, if that's not at 0

    @property
    def level(self) -> int:
        """The innermost loop on which the element depends."""
        return max([d for d, stride in enumerate(self.strides) if stride], default=-1)

    @property
    def element(self) -> str:
        """The element as source; all numbers are unsigned, so that none is checked for its sign."""
        text = f"{self.start} + " if self.start else ""
        text = f"{text}u8({self.offset})" if self.offset else text.removesuffix(" + ")
        for index, stride in zip(_INDICES, self.strides, strict=False):
            if stride:
                step = index if abs(stride) == 1 else f"u8({abs(stride)}) * {index}"
                text += f" + {step}" if stride > 0 else f" - {step}"
        return f"{self.name}[{text.removeprefix(' + ') or '0'}]"


class Nest:
    """The loops over an iteration space, and what stands before, in and after each."""

    def __init__(self, sizes: list[int], parted: bool) -> None:
        self.sizes = sizes
        self.parted = parted  # whether each call does some turns of the outermost loop
        self.depth = len(sizes)
        self.before: list[list[str]] = [[] for _ in range(self.depth + 1)]  # the last one's: inside
        self.after: list[list[str]] = [[] for _ in range(self.depth + 1)]
        self.begin_run: list[str] = []  # around the innermost loop, or stretches of it
        self.end_run: list[str] = []

    def rows(self, depth: int = 0) -> list[str]:
        """Return the source of the loops from a depth on."""
        rows = list(self.before[depth])
        if depth < self.depth:
            rows += self._runs(depth) if depth == self.depth - 1 else self._loop(depth)
        return rows + self.after[depth]

    def _loop(self, depth: int) -> list[str]:
        parted = self.parted and depth == 0
        ends = "u8(start), u8(stop)" if parted else f"u8({self.sizes[depth]})"
        inner = self.rows(depth + 1)
        return [f"for {_INDICES[depth]} in range({ends}):", *(f"    {row}" for row in inner)]

    def _runs(self, depth: int) -> list[str]:
        parted = self.parted and depth == 0
        if not self.begin_run or (not parted and self.sizes[depth] <= RUN):
            return [*self.begin_run, *self._loop(depth), *self.end_run]
        first, last = ("start", "stop") if parted else ("0", str(self.sizes[depth]))
        ends = f"run, min(run + u8({RUN}), u8({last}))"
        inner = [
            *self.begin_run,
            f"for {_INDICES[depth]} in range({ends}):",
            *(f"    {row}" for row in self.rows(depth + 1)),
            *self.end_run,
        ]
        return [
            f"for run in range(u8({first}), u8({last}), u8({RUN})):",
            *(f"    {row}" for row in inner),
        ]


def merged_axes(shape: Shape, rows: list[list[int]]) -> list[tuple[int, int]]:
    """Return the size of each loop over a shape, and the axis that has its step.

    Axes of one element need no loop; those in which all memory goes on evenly share one.
    """
    groups: list[tuple[int, int]] = []
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        if groups and all(row[groups[-1][1]] == row[axis] * n for row in rows):
            groups[-1] = groups[-1][0] * n, axis
        else:
            groups.append((n, axis))
    return groups
