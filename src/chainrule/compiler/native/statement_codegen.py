"""Source of the operations of a small program: loops, products, data movement and `for`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.abstract_eval import DRAW, resolve
from chainrule.compiler.ir.op_traits import WRITES
from chainrule.compiler.ir.program import Op, Program, Value, values_in
from chainrule.compiler.native.fourier_codegen import FOURIER, Fourier
from chainrule.compiler.native.fusion_groups import FusionGroup, find_groups, single_groups
from chainrule.compiler.native.indexing_codegen import RUNNING, Indexing, contiguous
from chainrule.compiler.native.layout import LargeError, Layout, LoopLines, UnfitError
from chainrule.compiler.native.linalg_codegen import LinearAlgebra
from chainrule.compiler.native.loop_codegen import generate_loop_lines
from chainrule.compiler.native.loop_nest import Address
from chainrule.compiler.native.reduction_codegen import FOLDED, Reductions
from chainrule.compiler.native.scalar_codegen import CODES, Operand, cast, scalar_or_libm
from chainrule.compiler.native.strides import Access, Accesses

MAX_ELEMENTS = 1 << 14
"""Largest number of iterations of a loop; threads share larger ones."""

_MAX_ELEMENTS_WRITTEN = 1 << 19
"""That of a loop in steps that write to regions of arrays, which threads don't share."""


class Block(NamedTuple):
    """The lines of a fusion group, or of an operation that is none."""

    lines: list[str]
    is_loop: bool = False  # whether it is a loop or branch of the program


class Repeat(NamedTuple):
    """Blocks that run several times, and the variable that counts how often they have."""

    counter: str
    length: int
    blocks: list[Block | Repeat]


def statement_lines(program: Program, accesses: Accesses, layout: Layout) -> Iterator[str]:
    """Yield the lines of a program or region, without storing its results."""
    for block in statement_blocks(program, accesses, layout):
        yield from lines_of(block)


def lines_of(block: Block | Repeat) -> Iterator[str]:
    """Yield the lines of a block, with those of a loop indented under its head."""
    if isinstance(block, Block):
        yield from block.lines
        return
    yield f"for {block.counter} in range(u8({block.length})):"
    lines = [line for inner in block.blocks for line in lines_of(inner)]
    yield from (f"    {line}" for line in lines or ["pass"])


def statement_blocks(
    program: Program, accesses: Accesses, layout: Layout, fused: bool = True
) -> Iterator[Block | Repeat]:
    """Yield the blocks of a program; each operation is one if they are not `fused`."""
    find = find_groups if fused else single_groups
    return _Statements(program, accesses, layout, find(program, accesses, scalar_or_libm)).blocks()


class _Statements(Indexing, LinearAlgebra, Reductions, Fourier):
    def __init__(
        self, program: Program, accesses: Accesses, layout: Layout, groups: list[FusionGroup]
    ) -> None:
        super().__init__(accesses, layout)
        self.program = program
        self.groups = groups
        self.results = set(program.results())
        writes = layout.loops and any([op.function in WRITES for op in program.ops])
        self.limit = _MAX_ELEMENTS_WRITTEN if writes else MAX_ELEMENTS
        self.number = 0  # of the current group
        self.computed = {*program.inputs, *(v for op in program.ops for v in op.outs)}
        self.last_reader: dict[Value, int] = {}  # the last group that reads a value
        for number, group in enumerate(self.groups):
            for value in group.reads:
                self.last_reader.update((owner, number) for owner in accesses.owners(value))
        for value in self.results:
            self.last_reader.update((owner, len(self.groups)) for owner in accesses.owners(value))

    def blocks(self) -> Iterator[Block | Repeat]:
        readers = Counter(v for c in self.groups for v in c.reads)
        for number, group in enumerate(self.groups):
            self.number = number
            if group.shape is None:
                for _, op in group.ops:
                    if op.function == "for" and self.layout.repeats:
                        yield from self._loop_blocks(op, fused=False)
                        continue
                    lines = [*self._op(op)]
                    if lines:
                        yield Block(lines, bool(op.regions))
                continue
            if math.prod(group.shape) > self.limit:
                raise LargeError("a large loop")
            stored = group.stored(self.results, readers)
            yield Block(generate_loop_lines(group, self.accesses, stored, self.layout))

    def _op(self, op: Op) -> Iterator[str]:
        if self.accesses.is_view(op):
            return
        if op.outs and not any(out.size for out in op.outs):
            for out in op.outs:
                self.layout.allocate(out)
            return
        if op.function not in WRITERS:
            self._fold_constant(op)
            return
        yield from WRITERS[op.function](self, op)

    def _fold_constant(self, op: Op) -> None:
        """Evaluate an operation without inputs at compile time."""
        if op.inputs or op.regions or op.function == DRAW or len(op.outs) != 1:
            raise UnfitError(f"there is no loop for {op.function}")
        found = resolve(op.function)(*op.args, **op.kwargs)
        self.layout.constant(op.out, np.asarray(found))

    # --- data movement ---

    def _index_region(self, out: Value, key: Any) -> tuple[Access, tuple[int, ...]]:
        """Return the access and shape of the region that a basic index selects."""
        if values_in(key):
            raise UnfitError("a computed index")
        part = Value((), out.dtype)
        op = Op("getitem", (out, key), {}, (part,))
        view = self.accesses.view_of(op)
        if view is None:
            raise UnfitError("an index that is not a view")
        return view

    def _concat(self, op: Op) -> Iterator[str]:
        parts = op.args[0]
        axis = op.kwargs.get("axis", 0)
        if axis is None:
            raise UnfitError("parts that are raveled first")
        if op.function == "np.stack":
            keys = [(*[slice(None)] * (axis % len(op.out.shape)), i) for i in range(len(parts))]
        else:
            ends = np.cumsum([0, *(part.shape[axis] for part in parts)]).tolist()
            lead = [slice(None)] * (axis % len(op.out.shape))
            keys = [(*lead, slice(ends[i], ends[i + 1])) for i in range(len(parts))]
        if any(cast(Operand("x", part.dtype), op.out.dtype) is None for part in parts):
            raise UnfitError("parts of several types")
        address = self.layout.allocate(op.out)
        for part, key in zip(parts, keys, strict=True):
            if part.size:
                region, shape = self._index_region(op.out, key)
                yield from self.layout.move_lines(part, self.accesses, address, region, shape)

    def _assign_at(self, op: Op) -> Iterator[str]:
        """Write or add to a region of a copy, or in place if this is the last use."""
        base, value, key = op.args
        if value.dtype != base.dtype:
            raise UnfitError("a value of another type")
        if self._is_last_use(base) and self.accesses.of(value).base is not base:
            self.layout.addresses[op.out] = self.layout.address(base)
        else:
            yield from self.layout.copy_lines(base, self.accesses, self.layout.allocate(op.out))
        yield from self._write_region(op.out, value, key, op.function == "plus_at")

    def _is_last_use(self, value: Value) -> bool:
        """Return whether this is the last use of a value whose memory has no other owner."""
        if self.accesses.of(value).base is not value or value in self.layout.aliases:
            return False
        is_last = value in self.computed and self.last_reader[value] == self.number
        return is_last and self.layout.address(value).array.startswith("memory_")

    def _write_region(self, out: Value, value: Value, key: Any, accumulate: bool) -> Iterator[str]:
        if not value.size:
            return
        number = self._counter(key, out)
        address, access = self.layout.address(out), contiguous(out, out)
        if self._is_by_arrays(key, out):
            selection = self.selection(access, out.shape, key)
            source = self.operand(value, selection)
            target = selection.element(address)
            text = f"{target} + {source}" if accumulate else source
            yield from selection.nest(f"{target} = {text}")
            return
        if number is not None:
            part = Value(out.shape[1:], out.dtype)
            address, region, shape = (
                self._entry(access, number),
                contiguous(part, out),
                part.shape,
            )
        else:
            region, shape = self._index_region(out, key)
        if 0 not in shape:
            yield from self.layout.move_lines(
                value, self.accesses, address, region, shape, accumulate
            )

    def _counter(self, key: Any, stack: Value) -> str | None:
        """Return the source of the entry of a stack that a loop counter selects, or None."""
        parts = [part for part in (key if isinstance(key, tuple) else (key,)) if part is not ...]
        found = None
        if len(parts) == 1 and isinstance(parts[0], Value):
            found = self.layout.counters.get(parts[0])
        if found is None:
            return None
        (counter_range, iteration), length = found, stack.shape[0]
        last = counter_range[-1]
        wraps = min(counter_range[0], last) < 0 <= max(counter_range[0], last)
        start = counter_range.start + (
            length if min(counter_range[0], last) < 0 else 0
        )  # negative indices
        sign = "+" if counter_range.step > 0 else "-"
        text = f"u8({start}) {sign} u8({abs(counter_range.step)}) * ({iteration})"
        return f"({text}) % u8({length})" if wraps else text

    def _index_add(self, op: Op) -> Iterator[str]:
        self.layout.allocate(op.out)
        yield from self.layout.fill_lines(op.out, f"{CODES[op.out.dtype]}(0)")
        value, key = op.args[0], op.kwargs["key"]
        yield from self._write_region(op.out, value, key, self._is_by_arrays(key, op.out))

    def _add_at(self, op: Op) -> Iterator[str]:
        """Add to a copy at index arrays, or in place if this is the last use."""
        assigned = Op("plus_at", (*op.args, op.kwargs["key"]), {}, op.outs, op.location)
        yield from self._assign_at(assigned)

    def _reshape(self, op: Op) -> Iterator[str]:
        yield from self.layout.copy_lines(op.args[0], self.accesses, self.layout.allocate(op.out))

    def _read_entry(self, op: Op) -> Iterator[str]:
        """Read the entry of a stack that a loop counter selects: contiguous ones are not copied."""
        stack, key = op.args
        number, access = self._counter(key, stack), self.accesses.of(stack)
        if number is None or not _has_contiguous_entries(access, op.out):
            yield from self.gather(op)
            return
        self.layout.addresses[op.out] = self._entry(access, number)
        self.layout.aliases.add(op.out)

    def _is_by_arrays(self, key: Any, array: Value) -> bool:
        """Return whether a key contains index arrays, or numbers that are computed."""
        return bool(values_in(key)) and self._counter(key, array) is None

    def _entry(self, access: Access, number: str) -> Address:
        address = self.layout.address(access.base)
        start = f"{address.start} + " if address.start else ""
        sign, step = "+" if access.strides[0] >= 0 else "-", abs(access.strides[0])
        text = f"{start}u8({access.offset}) {sign} u8({step}) * ({number})"
        return Address(address.array, text)

    # --- control flow ---

    def _check(self, op: Op) -> Iterator[str]:
        yield from self.layout.check(f"{self.element_at(op.args[0], (), [])} == 0")

    def _if(self, op: Op) -> Iterator[str]:
        layout = self.layout
        (predicate,) = op.args
        for out in op.outs:
            layout.allocate(out)
        test = self.element_at(predicate, (), [])
        for head, region in zip((f"if {test} != 0:", "else:"), op.regions, strict=True):
            accesses = self._inside(region)
            lines = [*statement_lines(region, accesses, layout)]
            for out, value in zip(op.outs, region.outputs, strict=True):
                lines += layout.copy_lines(value, accesses, layout.address(out))
            yield head
            yield from (f"    {line}" for line in lines or ["pass"])

    def _inside(self, region: Program) -> Accesses:
        """Return the accesses of a region, whose constants become arguments."""
        for value, array in region.constants.items():
            if array.ndim:
                self.layout.constant(value, array)
        return Accesses(region, self.accesses.constants | region.constants, self.accesses)

    def _for(self, op: Op) -> Iterator[str]:
        for block in self._loop_blocks(op, fused=True):
            yield from lines_of(block)

    def _loop_blocks(self, op: Op, fused: bool) -> Iterator[Block | Repeat]:
        """Yield what comes before a loop, and the loop."""
        (region,) = op.regions
        layout, count = self.layout, len(op.args[0])
        for carry, value in zip(region.inputs, op.args[0], strict=False):
            yield Block(layout.copy_lines(value, self.accesses, layout.allocate(carry)))
        for out in op.outs[count:]:
            layout.allocate(out)
        length = op.kwargs["length"]
        iteration = layout.names.another("iteration")
        number = f"u8({length - 1}) - {iteration}" if op.kwargs["reverse"] else iteration
        loop = LoopLines(_computed(region), length)
        layout.loops.append(loop)
        blocks = [*self._iteration(op, number, fused)]
        layout.loops.pop()
        yield Block(loop.before)
        yield Repeat(iteration, length, blocks)
        for out, carry in zip(op.outs, region.inputs[:count], strict=False):
            layout.addresses[out] = layout.address(carry)

    def _iteration(self, op: Op, number: str, fused: bool) -> Iterator[Block | Repeat]:
        """Yield the blocks of an iteration, given its number."""
        (region,), count = op.regions, len(op.args[0])
        for value, stack in zip(region.inputs[count:], op.args[1], strict=True):
            yield Block(self._bind_slice(value, stack, number))
        accesses = self._inside(region)
        stacks = [*zip(op.outs[count:], region.outputs[count:], strict=True)]
        entries = {out: self._entry(self.accesses.of(out), number) for out, _ in stacks}
        self.layout.place({value: entries[out] for out, value in stacks}, region)
        yield from statement_blocks(region, accesses, self.layout, fused)
        for out, value in stacks:
            yield Block(self.layout.copy_lines(value, accesses, entries[out]))
        yield Block(self._update_carries(region, count, accesses))

    def _bind_slice(self, value: Value, stack: Any, number: str) -> list[str]:
        """Bind a value to the entry of a stack for the current iteration."""
        if isinstance(stack, range):
            self.layout.counters[value] = stack, number
            return []
        access = self.accesses.of(stack)
        if not _has_contiguous_entries(access, value):
            counter = Value((), np.dtype(np.int64))
            self.layout.counters[counter] = range(stack.shape[0]), number
            return [*self.gather(Op("getitem", (stack, counter), {}, (value,)))]
        self.layout.addresses[value] = self._entry(access, number)
        self.layout.aliases.add(value)
        return []

    def _update_carries(self, region: Program, count: int, accesses: Accesses) -> list[str]:
        """Return the lines that copy the new carries to the addresses of the old ones."""
        layout = self.layout
        carries = [layout.address(carry) for carry in region.inputs[:count]]
        first, lines = [], []
        for address, value in zip(carries, region.outputs, strict=False):
            if accesses.uniform_value(value) is None:
                access = accesses.of(value)
                source = layout.address(access.base)
                is_unmoved = source == address and access == contiguous(value, access.base)
                is_alias = access.base in layout.aliases
                if is_alias or (
                    source in carries and not is_unmoved
                ):  # it may be overwritten before
                    temporary = Value(value.shape, value.dtype)
                    first += layout.copy_lines(value, accesses, layout.allocate(temporary))
                    value = temporary
            lines += layout.copy_lines(value, accesses, address)
        return first + lines


def _computed(region: Program) -> set[Value]:
    """Return the values that an iteration of a loop computes or is given."""
    inner = (v for op in region.ops for part in op.regions for v in _computed(part))
    return {*region.inputs, *(v for op in region.ops for v in op.outs), *inner}


def _has_contiguous_entries(access: Access, entry: Value) -> bool:
    """Return whether the entries of a stack are contiguous, in whatever order they follow."""
    steps = contiguous(entry, entry).strides
    sizes = entry.shape
    return not entry.size or all(
        n == 1 or s == t for n, s, t in zip(sizes, access.strides[1:], steps, strict=True)
    )


WRITERS: dict[str, Callable[[_Statements, Op], Iterator[str]]] = {
    "check": _Statements._check,
    FOURIER: _Statements.fourier,
    "np.matmul": _Statements.matmul,
    "np.concat": _Statements._concat,
    "np.concatenate": _Statements._concat,
    "np.stack": _Statements._concat,
    "plus_at": _Statements._assign_at,
    "assign_at": _Statements._assign_at,
    "index_add": _Statements._index_add,
    "np.reshape": _Statements._reshape,
    "getitem": _Statements._read_entry,
    "add_at": _Statements._add_at,
    "take_along_axis": _Statements.take_along_axis,
    "add_along_axis": _Statements.add_along_axis,
    "np.searchsorted": _Statements.search,
    **dict.fromkeys(RUNNING, _Statements.running),
    **dict.fromkeys(FOLDED, _Statements.fold),
    **dict.fromkeys(["np.tril", "np.triu"], _Statements.triangle),
    **dict.fromkeys(["np.sort", "np.argsort"], _Statements.sort),
    "np.linalg.solve": _Statements.solve,
    "solve_triangular": _Statements.solve_triangular,
    "np.linalg.inv": _Statements.inverse,
    "kernels.inverses": _Statements.inverse,
    "np.linalg.slogdet": _Statements.slogdet,
    "np.linalg.cholesky": _Statements.cholesky,
    "np.linalg.qr": _Statements.qr,
    "for": _Statements._for,
    "if": _Statements._if,
}
