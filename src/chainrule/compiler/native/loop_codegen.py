"""Source of the loop nest of a fusion group."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from chainrule.compiler.ir.program import Names, Op, Program, Value
from chainrule.compiler.native.call_wrapper import Arrays
from chainrule.compiler.native.complex_codegen import (
    REAL_DTYPES,
    Expression,
    complex_operand,
    constant_operand,
)
from chainrule.compiler.native.fusion_groups import REDUCTIONS, FusionGroup
from chainrule.compiler.native.layout import Products
from chainrule.compiler.native.loop_nest import Address, Memory, Nest, collapse_axes
from chainrule.compiler.native.scalar_codegen import (
    CODES,
    ELEMENTARY,
    Operand,
    literal,
    operands_of,
)
from chainrule.compiler.native.strides import Access, Accesses

LONG_LOOP_ITERATIONS = 512
"""Iterations of a long loop: enough for several interleaved vectors of the widest kind."""


class Loop(NamedTuple):
    """The source of a fusion group, with its wrapper."""

    name: str
    text: str  # source of the loop, for LLVM
    wrapper: str  # source of the function that Python calls
    types: tuple[str, ...]  # types of its arguments, for LLVM
    long: bool  # whether the innermost loop has many iterations
    parallel: bool  # whether threads share the outermost loop
    inputs: tuple[Value, ...]
    outs: tuple[Value, ...]
    over: tuple[int | None, ...]  # the input that each output may overwrite
    work: int  # number of elements computed by its operations
    calls: int = 0  # number of NumPy calls that it replaces, if these matter
    checked: Program | None = None  # what NumPy computes if the loop reports that it cannot
    table: Any = None  # the calls that it makes, if it is the function of `Kernels`
    unused: int = 0  # arguments of that function that it has no array for
    products: Products | None = None  # that give machine code further arguments
    constants: tuple[Any, ...] = ()  # arrays that it passes on


class Layout(Protocol):
    """Addresses of values: separate arrays of a loop, or the buffers of a larger function."""

    names: Names

    @property
    def expression(self) -> Expression:
        """The function that returns the scalar source of an operation."""

    @property
    def is_split(self) -> bool:
        """Whether a call runs only a range of the outermost loop."""

    def address(self, value: Value) -> Address:
        """Return the address of a value."""

    def allocate(self, value: Value) -> Address:
        """Return the address of a value, allocated if needed."""

    def allocate_reduction(
        self, value: Value, kind: str, nest: Nest, steps: list[int], fills: bool
    ) -> tuple[Address, list[str]]:
        """Return the address of a reduction, and the lines that initialise it."""


def generate_loop(
    group: FusionGroup,
    name: str,
    accesses: Accesses,
    stored: set[Value],
    targets: dict[Value, Value],
) -> Loop:
    """Return the loop that computes the values of a group that others read.

    A value that is finally written to a target overwrites it in place if the accesses allow that.
    """
    layout = Arrays(name, _cost_ns(group, stored))
    writer = _LoopWriter(group, accesses, stored, layout)
    layout.over = writer.in_place_outputs(targets)
    layout.joined_sizes = writer.joined_sizes()
    writer.write()
    inputs = tuple(layout.inputs)
    outs = tuple(op.out for op in writer.ops if op.out in stored)
    places = [layout.over.get(out) for out in outs]
    return Loop(
        name,
        layout.loop(writer.nest),
        layout.wrapper(writer.nest),
        layout.types(writer.nest),
        writer.nest.sizes[-1] >= LONG_LOOP_ITERATIONS,
        layout.is_parallel(writer.nest),
        inputs,
        outs,
        tuple(None if target is None else inputs.index(target) for target in places),
        len(writer.ops) * math.prod(writer.shape),
    )


def _cost_ns(group: FusionGroup, stored: set[Value]) -> float:
    """Return the estimated time of an element on one thread in nanoseconds."""
    ops = [op for _, op in group.ops]
    made = {op.out for op in ops}
    arrays = len({v for op in ops for v in op.inputs} - made) + len(made & stored)
    calls = sum(op.function in ELEMENTARY for op in ops)
    width: int = max(v.dtype.itemsize for v in made)
    return (0.03 * arrays + 0.01 * len(ops) + 0.2 * calls) * width / 4


def generate_loop_lines(
    group: FusionGroup, accesses: Accesses, stored: set[Value], layout: Layout
) -> list[str]:
    """Return the lines of a loop within a larger function."""
    writer = _LoopWriter(group, accesses, stored, layout)
    writer.write()
    return writer.init_lines + writer.nest.lines()


class _LoopWriter:
    def __init__(
        self, group: FusionGroup, accesses: Accesses, stored: set[Value], layout: Layout
    ) -> None:
        assert group.shape is not None
        self.accesses, self.stored, self.layout = accesses, stored, layout
        self.names = layout.names
        self.shape = group.shape
        self.ops = [op for _, op in group.ops]
        self.own = {op.out for op in self.ops if op.function not in REDUCTIONS}
        self.depths: dict[Value, int] = {}
        self.imags: dict[Value, str] = {}  # names of imaginary parts
        self.reads: dict[Value, Access] = {}
        for op in self.ops:
            for value in op.inputs:
                if value not in self.own and accesses.uniform_value(value) is None:
                    self.reads[value] = accesses.of(value).broadcast(self.shape, value.shape)
        self.strides = {op.out: self._out_strides(op) for op in self.ops}
        self.nest = Nest(self._collapse(), layout.is_split)
        self.init_lines: list[str] = []
        self.loaded: dict[Any, tuple[str, str]] = {}  # variables of each element that was read
        self.store_lines: list[str] = []  # after all reads, which may be of the same memory

    def _out_strides(self, op: Op) -> list[int]:
        """Return the strides of an output along the axes of the loop; 0 along reduced axes."""
        reduced = set(_reduced_axes(op)) if op.function in REDUCTIONS else set()
        strides, step = [0] * len(self.shape), 1
        for axis in reversed(range(len(self.shape))):
            if axis not in reduced:
                strides[axis] = step
                step *= self.shape[axis]
        return strides

    def _collapse(self) -> list[int]:
        """Collapse the axes of all accesses; return the sizes of the loops."""
        rows = [*(list(a.strides) for a in self.reads.values()), *self.strides.values()]
        groups = collapse_axes(self.shape, rows)

        def collapsed(strides: Any) -> list[int]:
            return [strides[axis] for _, axis in groups] or [0]

        self.steps = {value: collapsed(access.strides) for value, access in self.reads.items()}
        self.strides = {value: collapsed(strides) for value, strides in self.strides.items()}
        return [size for size, _ in groups] or [1]

    def in_place_outputs(self, targets: dict[Value, Value]) -> dict[Value, Value]:
        """Return the outputs that can overwrite their target without changing later reads."""
        found = {}
        for op in self.ops:
            target = targets.get(op.out)
            if target is None or op.out not in self.own or op.out not in self.stored:
                continue
            reads = [(v, a) for v, a in self.reads.items() if a.base is target]
            stored = self.strides[op.out]
            if reads and all(not a.offset and self.steps[v] == stored for v, a in reads):
                found[op.out] = target
        return found

    def joined_sizes(self) -> list[int]:
        """Return the sizes of the reductions over the outermost loop."""
        made = [op.out for op in self.ops if op.function in REDUCTIONS]
        return [v.size for v in made if v in self.stored and not self.strides[v][0]]

    # --- elementwise operations ---

    def write(self) -> None:
        """Generate the lines of all operations."""
        for op in self.ops:
            if op.function in REDUCTIONS:
                if op.out in self.stored:
                    self._reduction(op)
            else:
                self._op(op)
        self.nest.before[-1] += self.store_lines

    def _operand(self, item: Any) -> tuple[Operand, int]:
        """Return an argument as an expression, and the loop depth at which it is available."""
        if not isinstance(item, Value):
            return constant_operand(item), 0
        number = None if item in self.own else self.accesses.uniform_value(item)
        if number is not None:
            if item.dtype in REAL_DTYPES:
                return complex_operand(number, item.dtype), 0
            return Operand(literal(number, item.dtype) or "", item.dtype, number), 0
        if item not in self.own:
            self._read(item)
        imag = self.imags.get(item, "")
        return Operand(self.names[item], item.dtype, None, imag), self.depths[item]

    def _read(self, value: Value) -> None:
        if value in self.depths:
            return
        access = self.reads[value]
        key = (access.base, access.offset, tuple(self.steps[value]))
        address = self.layout.address(access.base)
        elements = _elements(value, address, access.offset, self.steps[value])
        depth = self.depths[value] = elements[0].level + 1
        if key in self.loaded:
            self.names[value], imag = self.loaded[key]
            if imag:
                self.imags[value] = imag
        else:
            names = self._part_names(value)
            self.loaded[key] = names[0], self.imags.get(value, "")
            truth = " != 0" if value.dtype == np.bool_ else ""  # stored as a byte
            for name, memory in zip(names, elements, strict=True):
                self.nest.before[depth].append(f"{name} = {memory.element}{truth}")

    def _part_names(self, value: Value) -> list[str]:
        """Return the variables of a value: two for the parts of a complex one."""
        if value.dtype not in REAL_DTYPES:
            return [self.names[value]]
        self.imags[value] = self.names.another(f"{self.names[value]}_imag")
        return [self.names[value], self.imags[value]]

    def _op(self, op: Op) -> None:
        pairs = [self._operand(item) for item in operands_of(op)]
        expr = self.layout.expression(op, [operand for operand, _ in pairs])
        assert expr is not None
        depth = self.depths[op.out] = max(depth for _, depth in pairs)
        if isinstance(expr, tuple) and expr[1] == complex_operand(0, op.out.dtype).imag:
            self.imags[op.out] = expr[1]  # of real numbers, so that others know the part
            names, parts = [self.names[op.out], expr[1]], [expr[0]]
        else:
            names, parts = self._part_names(op.out), [expr] if isinstance(expr, str) else [*expr]
        self.nest.before[depth] += [
            f"{name} = {part}" for name, part in zip(names, parts, strict=False)
        ]
        if op.out in self.stored:
            address = self.layout.allocate(op.out)
            elements = _elements(op.out, address, 0, self.strides[op.out])
            for name, memory in zip(names, elements, strict=True):
                self.store_lines.append(f"{memory.element} = {name}")

    # --- reductions ---

    def _reduction(self, op: Op) -> None:
        kind = REDUCTIONS[op.function]
        x = " * ".join(self._operand(item)[0].text for item in op.args)
        code = CODES[op.out.dtype]
        if code != CODES[op.inputs[0].dtype]:
            x = f"{code}({x})"
        name, steps = self.names[op.out], self.strides[op.out]
        depth = max([d + 1 for d, step in enumerate(steps) if step], default=0)
        accumulates = any(not step for step in steps[:depth])  # over iterations of outer loops
        address, lines = self.layout.allocate_reduction(
            op.out, kind, self.nest, steps, fills=accumulates
        )
        self.init_lines += lines
        element = Memory(address.array, 0, steps, address.start).element
        if depth == self.nest.depth:  # not reduced in the innermost loop
            expr = x
        elif kind == "sum":
            expr = self._sum(name, x, code, depth)
        else:
            expr = self._extremum(name, x, code, kind, depth)
        expr = self._combined(element, expr, kind) if accumulates else expr
        self.nest.after[depth].append(f"{element} = {expr}")

    def _combined(self, element: str, x: str, kind: str) -> str:
        if kind == "sum":
            return f"{element} + {x}"
        return f"{'larger' if kind == 'max' else 'smaller'}({element}, {x})"

    def _sum(self, name: str, x: str, code: str, depth: int) -> str:
        """Sum segments by vector code in any order, and their sums in float64."""
        wide = "f8" if code == "f4" else code
        total, part = (self.names.another(f"{name}_{kind}") for kind in ("total", "run"))
        self.nest.before[depth].append(f"{total} = {wide}(0)")
        self.nest.before_run.append(f"{part} = {code}(0)")
        self.nest.before[-1].append(f"{part} = plus({part}, {x})")
        self.nest.after_run.append(f"{total} = {total} + {part}")
        return total

    def _extremum(self, name: str, x: str, code: str, kind: str, depth: int) -> str:
        """Take the extremum of integer ranks, in which nan is beyond all numbers."""
        integer, last = {"f4": ("i4", 0x7FFFFFFF), "f8": ("i8", 0x7FFFFFFFFFFFFFFF)}[code]
        identity, nan_rank = (-last - 1, last) if kind == "max" else (last, -last - 1)
        best, rank = (self.names.another(f"{name}_{kind}") for kind in ("best", "rank"))
        self.nest.before[depth].append(f"{best} = {integer}({identity})")
        self.nest.before[-1] += [
            f"{rank} = rank_{code}({x}, {integer}({nan_rank}))",
            f"{best} = {rank} if {rank} {'>' if kind == 'max' else '<'} {best} else {best}",
        ]
        return f"ranked_{code}({best})"


def _elements(value: Value, address: Address, offset: int, strides: list[int]) -> list[Memory]:
    """Return the accesses to an element in memory: two for the parts of a complex one."""
    if value.dtype not in REAL_DTYPES:
        return [Memory(address.array, offset, strides, address.start)]
    steps = [2 * stride for stride in strides]
    return [Memory(address.array, 2 * offset + i, steps, address.start) for i in (0, 1)]


def _reduced_axes(op: Op) -> tuple[int, ...]:
    axis = op.kwargs.get("axis")
    ndim = len(op.inputs[0].shape)
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(a % ndim for a in axes)
