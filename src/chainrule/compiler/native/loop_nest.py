"""Loop nests as source, and the memory elements that they access."""

from __future__ import annotations

import keyword
from typing import NamedTuple

from chainrule.compiler.ir.program import Shape
from chainrule.compiler.native import (
    dense_kernels,
    fourier_kernels,
    trigonometry,
    vector_math,
)
from chainrule.compiler.native.scalar_codegen import CODES

LOOP_NAME = "loop"
"""Name of all generated functions, so that equal sources are compiled once."""

PARTIAL_SUM_LENGTH = 1024
"""Number of elements summed in their own type before the sum continues in float64."""

INDICES = "ijklmnopqrstuvw"
RESERVED = {
    *(
        *keyword.kwlist,
        *CODES.values(),
        *vars(vector_math),
        *vars(trigonometry),
        *INDICES,
        "np",
        "start",
        "stop",
        "run",
    ),
    *("abs", "min", "range", "out", "fresh", "filled", "over", "to_out", "step", "part", LOOP_NAME),
    *("status", "otherwise", "table", "constants", "unused", "memory"),
    *("products", "team", *vars(dense_kernels), *vars(fourier_kernels)),
}


class Address(NamedTuple):
    """The start of a value: an array, and the index of the first element as source."""

    array: str
    start: str


class Memory(NamedTuple):
    """A strided access of a loop nest: array, offset, and stride of each loop."""

    name: str
    offset: int
    strides: list[int]
    start: str = ""  # index of the first element as source, empty for 0

    @property
    def level(self) -> int:
        """The innermost loop on which the element depends, -1 for none."""
        return max([d for d, stride in enumerate(self.strides) if stride], default=-1)

    @property
    def element(self) -> str:
        """The element as source."""
        return f"{self.name}[{self.position}]"

    @property
    def position(self) -> str:
        """The index as source; it is unsigned, which avoids checks for negative ones."""
        text = f"{self.start} + " if self.start else ""
        text = f"{text}u8({self.offset})" if self.offset else text.removesuffix(" + ")
        for index, stride in zip(INDICES, self.strides, strict=False):
            if stride:
                step = index if abs(stride) == 1 else f"u8({abs(stride)}) * {index}"
                text += f" + {step}" if stride > 0 else f" - {step}"
        return text.removeprefix(" + ") or "0"


class Nest:
    """A loop nest, with the lines before, inside and after each loop."""

    def __init__(self, sizes: list[int], is_split: bool) -> None:
        self.sizes = sizes
        self.is_split = is_split  # whether a call runs only a range of the outermost loop
        self.depth = len(sizes)
        self.before: list[list[str]] = [[] for _ in range(self.depth + 1)]  # the last: the body
        self.after: list[list[str]] = [[] for _ in range(self.depth + 1)]
        self.before_run: list[str] = []  # around the innermost loop, or its segments
        self.after_run: list[str] = []

    def lines(self, depth: int = 0) -> list[str]:
        """Return the lines of the loops from a depth on."""
        lines = list(self.before[depth])
        if depth < self.depth:
            lines += self._innermost(depth) if depth == self.depth - 1 else self._loop(depth)
        return lines + self.after[depth]

    def _loop(self, depth: int) -> list[str]:
        is_split = self.is_split and depth == 0
        ends = "u8(start), u8(stop)" if is_split else f"u8({self.sizes[depth]})"
        inner = self.lines(depth + 1)
        return [f"for {INDICES[depth]} in range({ends}):", *(f"    {line}" for line in inner)]

    def _innermost(self, depth: int) -> list[str]:
        is_split = self.is_split and depth == 0
        if not self.before_run or (not is_split and self.sizes[depth] <= PARTIAL_SUM_LENGTH):
            return [*self.before_run, *self._loop(depth), *self.after_run]
        first, last = ("start", "stop") if is_split else ("0", str(self.sizes[depth]))
        ends = f"run, min(run + u8({PARTIAL_SUM_LENGTH}), u8({last}))"
        inner = [
            *self.before_run,
            f"for {INDICES[depth]} in range({ends}):",
            *(f"    {line}" for line in self.lines(depth + 1)),
            *self.after_run,
        ]
        return [
            f"for run in range(u8({first}), u8({last}), u8({PARTIAL_SUM_LENGTH})):",
            *(f"    {line}" for line in inner),
        ]


def collapse_axes(shape: Shape, stride_rows: list[list[int]]) -> list[tuple[int, int]]:
    """Return the size of each loop over a shape, and the axis with its strides.

    Axes of length 1 are dropped, and axes that are contiguous in all accesses are collapsed.
    """
    groups: list[tuple[int, int]] = []
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        if groups and all(strides[groups[-1][1]] == strides[axis] * n for strides in stride_rows):
            groups[-1] = groups[-1][0] * n, axis
        else:
            groups.append((n, axis))
    return groups
