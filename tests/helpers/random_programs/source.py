"""Random programs as readable source, for Hypothesis: lines of code that run in both libraries.

Hypothesis draws a list of instructions: the name of an operation and a few small numbers each.
`source_of` turns them into lines like ``t3 = t1 * t0[1:]``. The numbers choose operands, dimensions
and indices among those available, so every list of instructions is a program, and so is every part
of it (which shrinking needs). Shapes are tracked, so that most lines run without an error.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import strategies as st

Shape = tuple[int, ...]


class Instruction(NamedTuple):
    """An operation, and the numbers that choose its operands."""

    operation: str
    a: int
    b: int
    c: int
    d: int


def programs(operations: dict[str, Writer]) -> st.SearchStrategy[list[str]]:
    """Return the strategy that draws programs: lists of lines of code."""
    names = [name for name, writer in operations.items() for _ in range(writer.weight)]
    number = st.integers(0, 11)
    instruction = st.builds(Instruction, st.sampled_from(names), number, number, number, number)
    part = st.lists(instruction, max_size=12)  # a single list would seldom be long
    return st.tuples(part, part, part).map(
        lambda parts: source_of([*itertools.chain(*parts)], operations)
    )


class Variable(NamedTuple):
    name: str
    shape: Shape
    memory: int  # variables with different numbers never overlap
    leaf: bool = False
    one_of_several: bool = False


@dataclass
class Draft:
    """A program as it is being written."""

    lines: list[str] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    count: int = 0

    def pick(
        self,
        number: int,
        shape: Callable[[Shape], bool] = lambda _: True,
        only: Callable[[Variable], bool] = lambda _: True,
    ) -> Variable:
        """Return one of the matching variables, counted from the newest; any, if none matches."""
        fitting = [v for v in self.variables if only(v) and shape(v.shape)] or self.variables
        return fitting[-1 - min(number, len(fitting) - 1)]

    def make(self, source: str, *shapes: Shape, memory: int | None = None) -> None:
        """Add a line that assigns one variable for each shape."""
        names = []
        for shape in shapes:
            name = f"t{self.count}"
            owner = self.count if memory is None else memory
            leaf = source.startswith("lib.leaf") or source.endswith("requires_grad_()")
            several = len(shapes) > 1
            self.variables.append(Variable(name, shape, owner, leaf, several))
            names.append(name)
            self.count += 1
        self.lines.append(f"{', '.join(names)} = {source}")

    def do(self, source: str) -> None:
        """Add a line that assigns no variable."""
        self.lines.append(source)


class Writer(NamedTuple):
    """How an instruction becomes lines, and the weight with which it is drawn."""

    write: Callable[[Draft, Instruction], None]
    weight: int = 1


def source_of(instructions: Sequence[Instruction], operations: dict[str, Writer]) -> list[str]:
    """Return the program that the instructions describe."""
    draft = Draft()
    draft.make("lib.leaf([[0.5, -1.25, 0.0], [1.0, 2.0, -0.5]])", (2, 3))
    draft.make("t0 * 2", (2, 3))  # a tensor that in-place operations may write to
    for instruction in instructions:
        operations[instruction.operation].write(draft, instruction)
    return draft.lines


def reads_and_makes(line: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the variables that a line reads, and those that it assigns."""
    line = line.removeprefix("with lib.no_grad(): ")
    left, equals, right = line.partition(" = ")
    makes = tuple(left.split(", ")) if equals and re.fullmatch(r"t\d+(, t\d+)*", left) else ()
    return frozenset(re.findall(r"\bt\d+\b", right if makes else line)), makes
