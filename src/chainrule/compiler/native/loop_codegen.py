"""From a cluster to the source of its loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from chainrule.compiler.ir.program import Names, Op, Value
from chainrule.compiler.native.call_wrapper import Arrays
from chainrule.compiler.native.fusion_groups import REDUCTIONS, FusionGroup
from chainrule.compiler.native.loop_nest import Memory, Nest, Place, merged_axes
from chainrule.compiler.native.scalar_codegen import (
    CODES,
    ELEMENTARY,
    Operand,
    Scalar,
    literal,
    operands_of,
    typed,
)
from chainrule.compiler.native.strides import Access, Accesses

LONG = 512
"""So many turns make a loop long: several of the widest vectors side by side, several times."""


class Loop(NamedTuple):
    """A cluster as source."""

    name: str
    text: str  # of the loop, for Numba
    caller: str  # of what Python calls, with arrays of any layout
    types: tuple[str, ...]  # of its arguments, for Numba
    calls: frozenset[str]  # the elementary functions in it
    long: bool  # whether the innermost loop has many turns
    shared: bool  # whether several threads share those of the outermost one
    inputs: tuple[Value, ...]
    outs: tuple[Value, ...]
    over: tuple[int | None, ...]  # the input that each of `outs` may be written over
    work: int  # how many elements its operations make


class Layout(Protocol):
    """Where values are: in arrays of a loop's own, or in the memory of a larger function."""

    names: Names
    calls: set[str]

    @property
    def expression(self) -> Callable[[Op, list[Operand]], Scalar | None]:
        """What a line is for one element."""

    @property
    def parted(self) -> bool:
        """Whether each call does some turns of the outermost loop."""

    def place(self, value: Value) -> Place:
        """Return where a value is."""

    def allocate(self, value: Value) -> Place:
        """Return where a value is to be."""

    def reduced(
        self, value: Value, kind: str, nest: Nest, steps: list[int], fills: bool
    ) -> tuple[Place, list[str]]:
        """Return where a reduction is to be, and the source that fills it with its first number."""


def loop_of(
    group: FusionGroup,
    name: str,
    accesses: Accesses,
    wanted: set[Value],
    targets: dict[Value, Value],
) -> Loop:
    """Return the loop that computes those values of a cluster that others want.

    What is to be written to a target at last is written over it, where the loop reads it so.
    """
    layout = Arrays(name, _cost(group, wanted))
    writer = _Writer(group, accesses, wanted, layout)
    layout.over = writer.overwritable_inputs(targets)
    layout.joined = writer.joined()
    writer.write()
    inputs = tuple(layout.inputs)
    outs = tuple(op.out for op in writer.ops if op.out in wanted)
    places = [layout.over.get(out) for out in outs]
    return Loop(
        name,
        layout.loop(writer.nest),
        layout.caller(writer.nest),
        layout.types(writer.nest),
        frozenset(layout.calls),
        writer.nest.sizes[-1] >= LONG,
        layout.shared(writer.nest),
        inputs,
        outs,
        tuple(None if target is None else inputs.index(target) for target in places),
        len(writer.ops) * math.prod(writer.shape),
    )


def _cost(group: FusionGroup, wanted: set[Value]) -> float:
    """Return roughly how many nanoseconds an element takes one thread."""
    ops = [op for _, op in group.ops]
    made = {op.out for op in ops}
    arrays = len({v for op in ops for v in op.inputs} - made) + len(made & wanted)
    calls = sum(op.function in ELEMENTARY for op in ops)
    width: int = max(v.dtype.itemsize for v in made)
    return (0.03 * arrays + 0.01 * len(ops) + 0.2 * calls) * width / 4


def rows_of(
    group: FusionGroup, accesses: Accesses, wanted: set[Value], layout: Layout
) -> list[str]:
    """Return a loop as a part of a function."""
    writer = _Writer(group, accesses, wanted, layout)
    writer.write()
    return writer.first_rows + writer.nest.rows()


class _Writer:
    def __init__(
        self, group: FusionGroup, accesses: Accesses, wanted: set[Value], layout: Layout
    ) -> None:
        assert group.shape is not None
        self.accesses, self.wanted, self.layout = accesses, wanted, layout
        self.names, self.calls = layout.names, layout.calls
        self.shape = group.shape
        self.ops = [op for _, op in group.ops]
        self.own = {op.out for op in self.ops if op.function not in REDUCTIONS}
        self.level: dict[Value, int] = {}
        self.reads: dict[Value, Access] = {}
        for op in self.ops:
            for value in op.inputs:
                if value not in self.own and accesses.number(value) is None:
                    self.reads[value] = accesses.of(value).over(self.shape, value.shape)
        self.strides = {op.out: self._out_strides(op) for op in self.ops}
        self.nest = Nest(self._merge(), layout.parted)
        self.first_rows: list[str] = []
        self.first: dict[Any, str] = {}  # what an element that was read is called
        self.stores: list[str] = []  # after all that is read: some is written over

    def _out_strides(self, op: Op) -> list[int]:
        """Return the steps of what a line makes, as the loop goes; 0 where it's summed over."""
        reduced = set(_reduced_axes(op)) if op.function in REDUCTIONS else set()
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

    def overwritable_inputs(self, targets: dict[Value, Value]) -> dict[Value, Value]:
        """Return the outputs that go where a target is: each turn reads the element it writes."""
        found = {}
        for op in self.ops:
            target = targets.get(op.out)
            if target is None or op.out not in self.own or op.out not in self.wanted:
                continue
            reads = [(v, a) for v, a in self.reads.items() if a.base is target]
            wanted = self.strides[op.out]
            if reads and all(not a.offset and self.steps[v] == wanted for v, a in reads):
                found[op.out] = target
        return found

    def joined(self) -> list[int]:
        """Return the sizes of the reductions to which all turns of the outermost loop add."""
        made = [op.out for op in self.ops if op.function in REDUCTIONS]
        return [v.size for v in made if v in self.wanted and not self.strides[v][0]]

    # --- the loop ---

    def write(self) -> None:
        """Write all lines into the nest."""
        for op in self.ops:
            if op.function in REDUCTIONS:
                if op.out in self.wanted:
                    self._reduction(op)
            else:
                self._op(op)
        self.nest.before[-1] += self.stores

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
        place = self.layout.place(access.base)
        memory = Memory(place.array, access.offset, self.steps[value], place.start)
        depth = self.level[value] = memory.level + 1
        if key in self.first:
            self.names[value] = self.first[key]
        else:
            self.first[key] = self.names[value]
            truth = " != 0" if value.dtype == np.bool_ else ""  # in memory it is a byte
            self.nest.before[depth].append(f"{self.names[value]} = {memory.element}{truth}")

    def _op(self, op: Op) -> None:
        pairs = [self._operand(item) for item in operands_of(op)]
        found = self.layout.expression(op, [operand for operand, _ in pairs])
        assert found is not None
        depth = self.level[op.out] = max(depth for _, depth in pairs)
        self.calls.update(found.calls)
        name = self.names[op.out]
        self.nest.before[depth].append(f"{name} = {found.text}")
        if op.out in self.wanted:
            place = self.layout.allocate(op.out)
            element = Memory(place.array, 0, self.strides[op.out], place.start).element
            self.stores.append(f"{element} = {name}")

    # --- reductions ---

    def _reduction(self, op: Op) -> None:
        kind = REDUCTIONS[op.function]
        x = " * ".join(self._operand(item)[0].text for item in op.args)
        code = CODES[op.out.dtype]
        if code != CODES[op.inputs[0].dtype]:
            x = f"{code}({x})"
        name, steps = self.names[op.out], self.strides[op.out]
        depth = max([d + 1 for d, step in enumerate(steps) if step], default=0)
        adds = any(not step for step in steps[:depth])  # to what other turns have left
        place, first = self.layout.reduced(op.out, kind, self.nest, steps, fills=adds)
        self.first_rows += first
        element = Memory(place.array, 0, steps, place.start).element
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
        part = self.names.another(f"{name}_run")
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
        rank = self.names.another(f"{name}_rank")
        self.calls |= {f"rank_{code}", f"ranked_{code}"}
        self.nest.before[depth].append(f"{name} = {integer}({worst})")
        self.nest.before[-1] += [
            f"{rank} = rank_{code}({x}, {integer}({best}))",
            f"{name} = {rank} if {rank} {'>' if kind == 'max' else '<'} {name} else {name}",
        ]
        return f"ranked_{code}({name})"


def _reduced_axes(op: Op) -> tuple[int, ...]:
    axis = op.kwargs.get("axis")
    ndim = len(op.inputs[0].shape)
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(a % ndim for a in axes)
