"""From a cluster to the source of its loop, for Numba, and of what calls it, for Python."""

from __future__ import annotations

import keyword
import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from chainrule.compiler.native import elementary
from chainrule.compiler.native.access import Access, Accesses
from chainrule.compiler.native.clusters import REDUCTIONS, Cluster
from chainrule.compiler.native.recycling import LEAST
from chainrule.compiler.native.scalars import (
    CODES,
    Operand,
    literal,
    operands_of,
    scalar,
    small_scalar,
    typed,
)
from chainrule.compiler.program import Line, Names, Shape, Value

LOOP = "loop"
"""What all loops are called: those of one text are compiled once."""

BLOCK = 1 << 16
"""So many elements are one thread's to compute at a time; fewer than two blocks aren't shared."""

RUN = 1024
"""So many numbers are added up in their own type before the sum goes on in float64."""

_INDICES = "ijklmnopqrstuvw"
RESERVED = {
    *(*keyword.kwlist, *CODES.values(), *vars(elementary), *_INDICES, "np", "start", "stop", "run"),
    *("abs", "min", "range", "empty", "shared", LOOP),
}


class Loop(NamedTuple):
    """A cluster as source."""

    name: str
    text: str  # of the loop, for Numba
    caller: str  # of what Python calls, with arrays of any layout
    calls: frozenset[str]  # the elementary functions in it
    inputs: tuple[Value, ...]
    outs: tuple[Value, ...]
    work: int  # how many elements its operations make


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


class Result(NamedTuple):
    """An array that the loop fills: how the caller makes it, and what it returns of it."""

    name: str
    made: str
    back: str
    parted: bool  # into a row for each part of the work


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


def loop_of(cluster: Cluster, name: str, accesses: Accesses, wanted: set[Value]) -> Loop:
    """Return the loop that computes those values of a cluster that others want."""
    return _Writer(cluster, name, accesses, wanted).loop()


class Layout(Protocol):
    """Where values are in the memory of a function that is more than one loop."""

    names: Names
    calls: set[str]

    def place(self, value: Value) -> Place:
        """Return where a value is."""

    def allocate(self, value: Value) -> Place:
        """Return where a value is to be."""

    def filled(self, value: Value, number: str) -> list[str]:
        """Return the source that writes a number over a value."""


class Place(NamedTuple):
    """Where a value begins: the array, and the number of the first element as source."""

    array: str
    start: str


def rows_of(cluster: Cluster, accesses: Accesses, wanted: set[Value], layout: Layout) -> list[str]:
    """Return a loop as a part of a function."""
    writer = _Writer(cluster, "", accesses, wanted, layout)
    writer.write()
    layout.calls |= writer.calls
    return writer.first_rows + writer.nest.rows()


class _Writer:
    def __init__(
        self,
        cluster: Cluster,
        name: str,
        accesses: Accesses,
        wanted: set[Value],
        layout: Layout | None = None,
    ) -> None:
        assert cluster.shape is not None
        self.layout = layout
        self.name, self.accesses, self.wanted = name, accesses, wanted
        self.shape = cluster.shape
        self.lines = [line for _, line in cluster.lines]
        self.own = {line.out for line in self.lines if line.function not in REDUCTIONS}
        self.names = Names(RESERVED | {name}) if layout is None else layout.names
        self.inputs: dict[Value, str] = {}  # the names of the arrays that are read
        self.level: dict[Value, int] = {}
        self.calls: set[str] = set()
        self.reads: dict[Value, Access] = {}
        for line in self.lines:
            for value in line.inputs:
                if value not in self.own and accesses.number(value) is None:
                    self.reads[value] = accesses.of(value).over(self.shape, value.shape)
        self.strides = {line.out: self._out_strides(line) for line in self.lines}
        self.nest = Nest(self._merge(), parted=layout is None)
        self.first_rows: list[str] = []
        self.first: dict[Any, str] = {}  # what an element that was read is called
        self.results: list[Result] = []

    def _out_strides(self, line: Line) -> list[int]:
        """Return the steps of what a line makes, as the loop goes; 0 where it's summed over."""
        reduced = set(_reduced_axes(line)) if line.function in REDUCTIONS else set()
        strides, step = [0] * len(self.shape), 1
        for axis in reversed(range(len(self.shape))):
            if axis not in reduced:
                strides[axis] = step
                step *= self.shape[axis]
        return strides

    def _merge(self) -> list[int]:
        """Make as few loops as can be: drop axes of one element, join those that go on evenly."""
        rows = [*(list(a.strides) for a in self.reads.values()), *self.strides.values()]
        groups = merged_axes(self.shape, rows)

        def merged(strides: Any) -> list[int]:
            return [strides[axis] for _, axis in groups] or [0]

        self.steps = {value: merged(access.strides) for value, access in self.reads.items()}
        self.strides = {value: merged(strides) for value, strides in self.strides.items()}
        return [size for size, _ in groups] or [1]

    # --- the loop ---

    def write(self) -> None:
        """Write all lines into the nest."""
        for line in self.lines:
            if line.function in REDUCTIONS:
                if line.out in self.wanted:
                    self._reduction(line)
            else:
                self._line(line)

    def loop(self) -> Loop:
        self.write()
        results = sorted(self.results, key=lambda result: result.parted)
        parameters = ["start", "stop", *self.inputs.values(), *(r.name for r in results)]
        rows = [f"def {LOOP}({', '.join(parameters)}):"]
        rows += [f"    {row}" for row in self.nest.rows()]
        return Loop(
            self.name,
            "\n".join(rows) + "\n",
            self._caller(),
            frozenset(self.calls),
            tuple(self.inputs),
            tuple(line.out for line in self.lines if line.out in self.wanted),
            len(self.lines) * math.prod(self.shape),
        )

    def _array(self, stem: str) -> str:
        name, number = stem, 1
        while name in self.names.taken:
            number += 1
            name = f"{stem}{number}"
        self.names.taken.add(name)
        return name

    def _operand(self, item: Any) -> tuple[Operand, int]:
        """Return an argument as an expression, and the depth at which it is known."""
        if not isinstance(item, Value):
            return typed(item) if isinstance(item, np.generic) else Operand("", None, item), 0
        number = None if item in self.own else self.accesses.number(item)
        if number is not None:
            return Operand(literal(number, item.dtype) or "", item.dtype, number), 0
        if item not in self.own:
            self._read(item)
        return Operand(self.names[item], item.dtype), self.level[item]

    def _read(self, value: Value) -> None:
        if value in self.level:
            return
        access = self.reads[value]
        key = (access.base, access.offset, tuple(self.steps[value]))
        if self.layout is not None:
            place = self.layout.place(access.base)
        else:
            if access.base not in self.inputs:
                stem = f"{access.base.hint or self.names[value]}_in"
                self.inputs[access.base] = self._array(stem)
            place = Place(self.inputs[access.base], "")
        memory = Memory(place.array, access.offset, self.steps[value], place.start)
        depth = self.level[value] = memory.level + 1
        if key in self.first:
            self.names[value] = self.first[key]
        else:
            self.first[key] = self.names[value]
            self.nest.before[depth].append(f"{self.names[value]} = {memory.element}")

    def _line(self, line: Line) -> None:
        pairs = [self._operand(item) for item in operands_of(line)]
        expression = scalar if self.layout is None else small_scalar
        found = expression(line, [operand for operand, _ in pairs])
        assert found is not None
        depth = self.level[line.out] = max(depth for _, depth in pairs)
        self.calls.update(found.calls)
        name = self.names[line.out]
        self.nest.before[depth].append(f"{name} = {found.text}")
        if line.out in self.wanted:
            element = self._out(line.out)
            self.nest.before[-1].append(f"{element} = {name}")

    def _out(self, value: Value) -> str:
        """Return the element that holds a value; note how the caller makes the array."""
        if self.layout is not None:
            place = self.layout.allocate(value)
        else:
            place = Place(self._array(f"{self.names[value]}_out"), "")
            empty = "empty" if value.nbytes >= LEAST else "np.empty"
            made = f"{empty}({value.shape}, {_dtype(value)})"
            self.results.append(Result(place.array, made, place.array, parted=False))
        return Memory(place.array, 0, self.strides[value], place.start).element

    # --- reductions ---

    def _reduction(self, line: Line) -> None:
        kind = REDUCTIONS[line.function]
        x = " * ".join(self._operand(item)[0].text for item in line.args)
        code = CODES[line.out.dtype]
        if code != CODES[line.inputs[0].dtype]:
            x = f"{code}({x})"
        name, steps = self.names[line.out], self.strides[line.out]
        depth = max([d + 1 for d, step in enumerate(steps) if step], default=0)
        adds = any(not step for step in steps[:depth])  # to what other turns have left
        wide = "f8" if kind == "sum" and code == "f4" and depth == 0 else code
        element = self._reduced_to(line, kind, wide, filled=adds)
        if depth == self.nest.depth:  # each turn of the innermost loop has an element of its own
            found = x
        elif kind == "sum":
            found = self._sum(name, x, code, depth)
        else:
            found = self._extremum(name, x, code, kind, depth)
        found = self._combined(element, found, kind) if adds else found
        self.nest.after[depth].append(f"{element} = {found}")

    def _combined(self, element: str, x: str, kind: str) -> str:
        if kind == "sum":
            return f"{element} + {x}"
        function = {"max": "larger", "min": "smaller"}[kind]
        self.calls.add(function)
        return f"{function}({element}, {x})"

    def _sum(self, name: str, x: str, code: str, depth: int) -> str:
        """Add up stretches by vector code, in any order, and then their sums in float64."""
        wide = "f8" if code == "f4" else code
        part = self._array(f"{name}_run")
        self.calls.add("plus")
        self.nest.before[depth].append(f"{name} = {wide}(0)")
        self.nest.begin_run.append(f"{part} = {code}(0)")
        self.nest.before[-1].append(f"{part} = plus({part}, {x})")
        self.nest.end_run.append(f"{name} = {name} + {part}")
        return name

    def _extremum(self, name: str, x: str, code: str, kind: str, depth: int) -> str:
        """Take the extremum of ranks, which are integers: nan is beyond all numbers."""
        integer, last = {"f4": ("i4", 0x7FFFFFFF), "f8": ("i8", 0x7FFFFFFFFFFFFFFF)}[code]
        worst, best = (-last - 1, last) if kind == "max" else (last, -last - 1)
        rank = self._array(f"{name}_rank")
        self.calls |= {f"rank_{code}", f"ranked_{code}"}
        self.nest.before[depth].append(f"{name} = {integer}({worst})")
        self.nest.before[-1] += [
            f"{rank} = rank_{code}({x}, {integer}({best}))",
            f"{name} = {rank} if {rank} {'>' if kind == 'max' else '<'} {name} else {name}",
        ]
        return f"ranked_{code}({name})"

    def _reduced_to(self, line: Line, kind: str, wide: str, filled: bool) -> str:
        """Return the element that a reduction writes; note how the caller makes the array."""
        out, steps = line.out, self.strides[line.out]
        if self.layout is not None:
            place = self.layout.allocate(out)
            if filled:
                code = CODES[out.dtype]
                number = {"sum": "0", "max": "-INF", "min": "INF"}[kind]
                self.first_rows += self.layout.filled(out, f"{code}({number})")
            return Memory(place.array, 0, steps, place.start).element
        name = self._array(f"{self.names[out]}_out")
        parted = not steps[0] and self.blocks > 1
        dtype = _dtype(out) if wide == CODES[out.dtype] else "np.float64"
        shape = (self.blocks, out.size) if parted else out.shape
        fill = {"sum": "0", "max": "-np.inf", "min": "np.inf"}[kind]
        made = f"np.full({shape}, {fill}, {dtype})" if filled else f"np.empty({shape}, {dtype})"
        back = name
        if parted:
            back = f"np.asarray({name}.{kind}(0), {_dtype(out)}).reshape({out.shape})"
        elif dtype != _dtype(out):
            back = f"{name}.astype({_dtype(out)})"
        self.results.append(Result(name, made, back, parted))
        return Memory(name, 0, steps).element

    # --- what calls it ---

    @property
    def step(self) -> int:
        """How many turns of the outermost loop one thread does at a time."""
        return max(BLOCK * self.nest.sizes[0] // math.prod(self.nest.sizes), 1)

    @property
    def blocks(self) -> int:
        """In how many parts the work is done; so results don't depend on who does them."""
        if math.prod(self.nest.sizes) < 2 * BLOCK:
            return 1
        return -(-self.nest.sizes[0] // self.step)

    def _caller(self) -> str:
        arrays = list(self.inputs.values())
        rows = [f"def {self.name}({', '.join(arrays)}):"]
        rows.append(f"    # {' · '.join(map(str, self.nest.sizes))} turns")
        rows += [f"    {result.name} = {result.made}" for result in self.results]
        whole = [r.name for r in self.results if not r.parted]
        flat = ", ".join(f"{name}.reshape(-1)" for name in [*arrays, *whole])
        turns = self.nest.sizes[0]
        if self.blocks == 1:
            rows.append(f"    {LOOP}(0, {turns}, {flat})")
        else:
            parts = "".join(f"{r.name}, " for r in self.results if r.parted)
            rows.append(f"    shared({LOOP}, {turns}, {self.step}, ({flat},), ({parts}))")
        backs = {r.name: r.back for r in self.results}
        rows.append(f"    return {', '.join(backs.values())}")
        return "\n".join(rows) + "\n"


def _reduced_axes(line: Line) -> tuple[int, ...]:
    axis = line.kwargs.get("axis")
    ndim = len(line.inputs[0].shape)
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(a % ndim for a in axes)


def _dtype(value: Value) -> str:
    return "bool" if value.dtype.kind == "b" else f"np.{value.dtype.name}"
