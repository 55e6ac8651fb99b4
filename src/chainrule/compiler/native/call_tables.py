"""Call tables: machine code of long programs, for which one function would take LLVM too long.

LLVM takes about a millisecond for a line, but the operations of a long program are much alike. So
each becomes a call of a *kernel*, whose arrays and numbers are arguments: operations that differ
only in addresses, sizes and constants share one. The calls are rows of a table, which the function
reads from beginning to end; a longer program has a longer table, and hardly more kernels. A loop is
a kernel, or, if that would take too long to compile as well, rows and a jump back.

A row has the number of a kernel, and a word of 64 bits for each of its arguments: the bits of a
number, or for an array the argument of the function that it is in, and its distance from there.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.program import Program, Value
from chainrule.compiler.native.compile_cost import compile_ms
from chainrule.compiler.native.layout import MAX_ELEMENTS, BudgetError, LargeError, Layout
from chainrule.compiler.native.loop_nest import LOOP_NAME, RESERVED, Address
from chainrule.compiler.native.scalar_codegen import CODES
from chainrule.compiler.native.statement_codegen import Block, Repeat
from chainrule.compiler.native.table_loop import ARRAY, ELEMENT_TYPES, END, OFFSET_BITS, REPEAT

MEMORY = "memory"
"""The argument for arrays that no operation outside reads."""

_COST_FACTOR = 3
"""Time that LLVM takes for a kernel, in that for the same lines with sizes that it knows."""

_ALIGNMENT_BYTES = 64
_NUMBER_OR_NAME = re.compile(
    rf"\b({'|'.join(ELEMENT_TYPES)})\((-?\d[\d.]*(?:e[+-]?\d+)?)\)|(?<![\w.])[A-Za-z_]\w*"
)


class SeparateArrays(Layout):
    """Assigns an array of its own to each value, for which `Kernels.table` finds memory."""

    has_products = False

    def __init__(self, program: Program, repeats: bool) -> None:
        self.repeats = repeats
        self.codes = {"status": "i8"}  # type of the elements of each array
        self.lengths: dict[str, int] = {}  # in bytes, of those that are not arguments
        super().__init__(program)

    def parameter(self, value: Value, stem: str = "in") -> str:
        """Add an argument that holds a value; return its name."""
        name = super().parameter(value, stem)
        self.codes[name] = CODES[value.dtype]
        return name

    def reserve(self, value: Value, code: str) -> Address:
        """Return the address of an array for a value."""
        return Address(self._array(code, value.size * value.dtype.itemsize), "")

    def counter(self) -> str:
        """Return the name of an array for the number of an iteration."""
        return self._array("u8", 1)

    def _array(self, code: str, size: int) -> str:
        """Return the name of an array of so many bytes."""
        name = self.names.another(f"{MEMORY}_{code}_")
        self.codes[name] = code
        self.lengths[name] = max(-(-size // _ALIGNMENT_BYTES), 1) * _ALIGNMENT_BYTES
        return name


class Kernels:
    """The kernels of a program, and the function that calls them as a table says."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}  # of the kernels, by their source
        self.milliseconds = 0.0  # that LLVM takes for them
        self.argument_count = 0  # the largest of all tables
        self.repeats = False  # whether loops are rows, not kernels

    def table(
        self,
        blocks: Iterable[Block | Repeat],
        layout: SeparateArrays,
        arguments: Sequence[str],
        max_ms: float,
    ) -> tuple[Any, int]:
        """Return the table of calls that run blocks of lines in this order, and the size of memory.

        `arguments` are those of the function. Memory for all other arrays is in `MEMORY`, which is
        one of them. Raise BudgetError if new kernels take longer than `max_ms` to compile.
        """
        known = dict(self.numbers)
        rows = [*_rows(blocks, layout, known, {})]
        added = [*known][len(self.numbers) :]
        cost = _COST_FACTOR * sum(compile_ms(text) for text in added)
        if cost > max_ms:
            raise BudgetError(cost)
        places, size = _places(rows, layout.lengths)
        self.numbers = known
        self.milliseconds += cost
        self.argument_count = max(self.argument_count, len(arguments))
        words = {name: number << OFFSET_BITS for number, name in enumerate(arguments)}
        words |= {name: words[MEMORY] + place for name, place in places.items()}
        table = [
            words[item] if isinstance(item, str) else item
            for row in rows
            for item in (row.kernel, *row.given)
        ]
        return np.array([*table, END], np.int64), size

    @property
    def text(self) -> str:
        """The kernels as source, and last the function that calls them."""
        heads = ", ".join(f"array_{number}" for number in range(self.argument_count))
        names = "".join(f"kernel_{number}, " for number in self.numbers.values())
        texts = [text.replace("def ", f"def kernel_{n}", 1) for text, n in self.numbers.items()]
        body = f"run_table(table, ({names}), ({heads},))"
        return "\n\n".join([*texts, f"def {LOOP_NAME}(table, {heads}):\n    {body}\n"])

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the function's arguments: of arrays, of which it passes on the addresses."""
        return ("i8",) * (1 + self.argument_count)


class _Row(NamedTuple):
    """The number of a kernel, and its arguments: bits of numbers and names of arrays."""

    kernel: int
    given: list[Any]
    repeated: int = 0  # number of rows before it that it repeats


def _rows(
    blocks: Iterable[Block | Repeat],
    layout: SeparateArrays,
    known: dict[str, int],
    counters: dict[str, str],
) -> Iterator[_Row]:
    """Yield the rows of blocks, and number their kernels. `counters` are the loops around."""
    for block in blocks:
        if isinstance(block, Repeat):
            count = layout.counter()
            yield from _rows([Block([f"{count}[0] = u8(0)"])], layout, known, {})
            rows = [*_rows(block.blocks, layout, known, {**counters, block.counter: count})]
            yield from rows
            back = sum(1 + len(row.given) for row in rows)
            yield _Row(REPEAT, [count, block.length, back], len(rows))
            continue
        for part in _parts(block, layout.codes):
            text, given = _kernel(part, layout.codes, counters)
            yield _Row(known.setdefault(text, len(known)), given)


def _parts(block: Block, codes: dict[str, str]) -> list[Block]:
    """Return the statements of a block, together where they share variables besides arrays.

    The parts of a concatenation are copies that other operations make, too.
    """
    starts = [n for n, line in enumerate(block.lines) if line[0] != " "]
    if not starts:
        return []
    if block.is_loop or len(starts) == 1:
        return [block]
    parts: list[tuple[list[str], set[str]]] = []
    for start, end in itertools.pairwise([*starts, len(block.lines)]):
        lines = block.lines[start:end]
        names = {item[0] for item in _NUMBER_OR_NAME.finditer("\n".join(lines)) if not item[1]}
        names = {name for name in names if name not in RESERVED and name not in codes}
        first = next((n for n, (_, others) in enumerate(parts) if names & others), len(parts))
        for part, others in parts[first:]:
            lines, names = part + lines, names | others
        parts[first:] = [(lines, names)]
    return [Block(lines) for lines, _ in parts]


def _kernel(block: Block, codes: dict[str, str], counters: dict[str, str]) -> tuple[str, list[Any]]:
    """Return the lines of a block as a function without a name, and its arguments.

    In the loops of a program, which take most of its time, numbers remain in the lines. The
    numbers of the iterations around are in the arrays `counters`.
    """
    counts: list[str] = []
    names: dict[str, str] = {}
    parameters: list[str] = []
    arguments: list[Any] = []
    unused = (f"v{number}" for number in itertools.count())

    def replaced(found: re.Match[str]) -> str:
        text, code = found[0], found[1]
        if code is not None:
            if block.is_loop:
                return text
            name = next(unused)
            parameters.append(f"{name}: {code}")
            arguments.append(_bits(found[2], code))
            return name
        if text not in names:
            if text in RESERVED and text not in codes:
                return text
            names[text] = next(unused)
            if text in codes:
                parameters.append(f"{names[text]}: {ARRAY}[{codes[text]}]")
                arguments.append(text)
            elif text in counters:
                array = next(unused)
                parameters.append(f"{array}: {ARRAY}[u8]")
                arguments.append(counters[text])
                counts.append(f"{names[text]} = {array}[0]\n")
        return names[text]

    lines = _NUMBER_OR_NAME.sub(replaced, "\n".join(block.lines))
    body = "".join([*counts, lines]).replace("\n", "\n    ")
    return f"def ({', '.join(parameters)}):\n    {body}\n", arguments


def _bits(number: str, code: str) -> int:
    """Return a number of a type as the bits of a word."""
    if code[0] != "f":
        return int(number)
    return int(np.array(float(number), code).view(f"i{code[1]}"))


def _places(rows: list[_Row], lengths: dict[str, int]) -> tuple[dict[str, int], int]:
    """Return the distance of each array in memory, which rows share, and the size of all."""
    first, last = _lifetimes(rows, lengths)
    begins, ends = defaultdict(list), defaultdict(list)
    for name in first:
        begins[first[name]].append(name)
        ends[last[name]].append(name)
    free: dict[int, list[int]] = defaultdict(list)  # places by length
    places: dict[str, int] = {}
    size = 0
    for number in range(len(rows)):
        for name in begins[number]:
            same = free[lengths[name]]
            places[name] = same.pop() if same else size
            size = max(size, places[name] + lengths[name])
        for name in ends[number]:
            free[lengths[name]].append(places[name])
    if size > MAX_ELEMENTS * 8:
        raise LargeError("the program is large")
    return places, size


def _lifetimes(rows: list[_Row], lengths: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the first and the last row in which each array is needed.

    What repeated rows share with others, they need from the first of them to the last.
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, row in enumerate(rows):
        for name in row.given:
            if name in lengths:
                first.setdefault(name, number)
                last[name] = number
    for end, row in enumerate(rows):
        begin = end - row.repeated
        if row.repeated:
            inside = {name for part in rows[begin:end] for name in part.given if name in lengths}
            for name in inside:
                if first[name] < begin or last[name] > end:
                    first[name], last[name] = min(first[name], begin), max(last[name], end)
    return first, last
