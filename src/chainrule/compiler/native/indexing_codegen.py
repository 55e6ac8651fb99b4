"""Source of reads and writes at index arrays, of searches, and of running sums."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.program import Op, Shape, Value, values_in
from chainrule.compiler.native.layout import Layout, UnfitError
from chainrule.compiler.native.loop_nest import INDICES, Address, Memory
from chainrule.compiler.native.scalar_codegen import CODES, literal
from chainrule.compiler.native.strides import Access, Accesses


def nested(sizes: list[int], body: Iterable[str], depth: int = 0) -> Iterator[str]:
    """Yield lines within loops of these sizes, whose indices begin at a depth."""
    for i, size in enumerate(sizes):
        yield f"{'    ' * i}for {INDICES[depth + i]} in range(u8({size})):"
    for line in body:
        yield "    " * len(sizes) + line


def contiguous(value: Value, base: Value) -> Access:
    """Return the contiguous access to a value that begins at its base."""
    steps = [math.prod(value.shape[axis + 1 :]) for axis in range(len(value.shape))]
    return Access(base, 0, tuple(steps))


class Operands:
    """The values of a program or region, and where they are."""

    def __init__(self, accesses: Accesses, layout: Layout) -> None:
        self.accesses, self.layout = accesses, layout

    def element_at(self, value: Value, shape: Shape, axes: list[int]) -> str:
        """Return an element of a value broadcast to a shape, in loops over these axes."""
        number = self.accesses.uniform_value(value)
        if number is not None:
            return literal(number, value.dtype) or "0"
        access = self.accesses.of(value).broadcast(shape, value.shape)
        address = self.layout.address(access.base)
        strides = [access.strides[axis] for axis in axes]
        return Memory(address.array, access.offset, strides, address.start).element


_RUNNING = {
    **dict.fromkeys(["np.cumsum", "np.cumulative_sum"], ("0", "{} + {}")),
    **dict.fromkeys(["np.cumprod", "np.cumulative_prod"], ("1", "{} * {}")),
    "logcumsumexp": ("-INF", "log_add_exp({}, {})"),
}
"""The initial value of each running function, and the next value."""

RUNNING = tuple(_RUNNING)


def _are_within(numbers: range, n: int) -> bool:
    """Whether all numbers of a loop are indices from 0 to n - 1."""
    return not numbers or (min(numbers) >= 0 and max(numbers) < n)


class Selection(NamedTuple):
    """Elements that index arrays select: loops over the arrays, then over the slices."""

    shape: Shape  # as NumPy arranges them
    axes: list[int]  # the axis of each loop in that shape
    sizes: list[int]
    strides: list[int]  # of the loops, beside the place
    lines: list[str]  # compute the place from the indices
    place: str  # index of the first element of the slices
    depth: int  # number of loops over the index arrays

    def element(self, address: Address) -> str:
        """Return a selected element of an array that begins at an address."""
        start = f"{address.start} + {self.place}" if address.start else self.place
        return Memory(address.array, 0, self.strides, start).element

    def nest(self, body: str) -> Iterator[str]:
        """Yield the loops around a line."""
        inner = list(nested(self.sizes[self.depth :], [body], self.depth))
        yield from nested(self.sizes[: self.depth], [*self.lines, *inner])


class Indexing(Operands):
    """Writer of operations with index arrays."""

    def selection(self, access: Access, shape: Shape, key: Any) -> Selection:
        """Return the elements that a key with index arrays selects, as NumPy arranges them."""
        parts = list(key) if isinstance(key, tuple) else [key]
        if any(part is None for part in parts):
            raise UnfitError("a new axis beside index arrays")
        if ... in parts:
            place, missing = parts.index(...), len(shape) - len(parts) + 1
            parts[place : place + 1] = [slice(None)] * missing
        parts += [slice(None)] * (len(shape) - len(parts))
        offset = access.offset
        kept: list[tuple[int, int, int]] = []  # position, size and stride of each slice
        indices: list[tuple[Value, int, int]] = []  # arrays, with size and stride of their axes
        positions = []
        for position, (part, n, stride) in enumerate(
            zip(parts, shape, access.strides, strict=True)
        ):
            if isinstance(part, slice):
                if values_in(part):
                    raise UnfitError("a computed slice")
                chosen = range(n)[part]
                offset += stride * chosen.start if chosen else 0
                kept.append((position, len(chosen), stride * chosen.step))
                continue
            positions.append(position)
            if isinstance(part, Value):
                if part.dtype.kind != "i":
                    raise UnfitError("an index of another type")
                indices.append((part, n, stride))
            elif -n <= part < n:
                offset += stride * (part % n)
            else:
                raise UnfitError("an index out of bounds")
        along = np.broadcast_shapes(*(index.shape for index, _, _ in indices))
        together = positions[-1] - positions[0] == len(positions) - 1
        first = sum(position < positions[0] for position, _, _ in kept) if together else 0
        sizes = [size for _, size, _ in kept]
        return self._selected(
            offset,
            [*along, *sizes],
            [0] * len(along) + [stride for _, _, stride in kept],
            [*range(first, first + len(along))]
            + [i if i < first else i + len(along) for i in range(len(kept))],
            indices,
            len(along),
        )

    def _along(self, access: Access, shape: Shape, index: Value, axis: int) -> Selection:
        """Return the elements at an index along one axis, of which each row has its own."""
        if index.dtype.kind != "i" or len(index.shape) != len(shape):
            raise UnfitError("an index of another type")
        axis %= len(shape)
        sizes = [max(n, m) for n, m in zip(index.shape, shape, strict=True)]
        sizes[axis] = index.shape[axis]
        strides = [0 if n == 1 else s for n, s in zip(shape, access.strides, strict=True)]
        indices = [(index, shape[axis], access.strides[axis])]
        strides[axis] = 0
        axes = [*range(len(shape))]
        return self._selected(access.offset, sizes, strides, axes, indices, len(shape))

    def _selected(
        self,
        offset: int,
        sizes: list[int],
        strides: list[int],
        axes: list[int],
        indices: list[tuple[Value, int, int]],
        depth: int,
    ) -> Selection:
        if len(sizes) > len(INDICES):
            raise UnfitError("an index with many axes")
        lines, terms = [], [f"u8({offset})"]
        order = np.argsort(axes)
        shape = tuple([sizes[i] for i in order])
        for value, n, stride in indices:
            name = self.layout.names.another("index")
            counter = self.layout.counters.get(value)
            if counter is None:
                element = self.element_at(value, tuple(sizes[:depth]), list(range(depth)))
                lines.append(f"{name} = i8({element})")
            else:
                numbers, iteration = counter
                start, step = numbers.start, numbers.step
                lines.append(f"{name} = i8({start}) + i8({step}) * i8({iteration})")
            if counter is None or not _are_within(counter[0], n):
                lines.append(f"{name} = {name} + i8({n}) if {name} < i8(0) else {name}")
                outside = f"{name} < i8(0) or {name} >= i8({n})"
                lines += self.layout.check(outside, f"{name} = i8(0)")
            terms.append(f"{'+' if stride >= 0 else '-'} u8({abs(stride)}) * u8({name})")
        place = self.layout.names.another("place")
        lines.append(f"{place} = {' '.join(terms)}")
        return Selection(shape, axes, sizes, strides, lines, place, depth)

    def gather(self, op: Op) -> Iterator[str]:
        """Read at index arrays."""
        x, key = op.args
        access = self.accesses.of(x)
        selection = self.selection(access, x.shape, key)
        yield from self._gathered(x, op.out, access, selection)

    def _gathered(
        self, x: Value, out: Value, access: Access, selection: Selection
    ) -> Iterator[str]:
        number = self.accesses.uniform_value(x)
        if number is None:
            source = selection.element(self.layout.address(access.base))
        else:
            source = literal(number, x.dtype) or "0"
        if selection.shape != out.shape:
            raise UnfitError("an index of another kind")
        self.layout.allocate(out)
        target = self.operand(out, selection)
        yield from selection.nest(f"{target} = {source}")

    def take_along_axis(self, op: Op) -> Iterator[str]:
        """Read at an index along one axis."""
        x, index = op.args
        access = self.accesses.of(x)
        selection = self._along(access, x.shape, index, op.kwargs["axis"])
        yield from self._gathered(x, op.out, access, selection)

    def add_along_axis(self, op: Op) -> Iterator[str]:
        """Add to zeros at an index along one axis."""
        value, index = op.args
        address = self.layout.allocate(op.out)
        yield from self.layout.fill_lines(op.out, f"{CODES[op.out.dtype]}(0)")
        access = contiguous(op.out, op.out)
        selection = self._along(access, op.out.shape, index, op.kwargs["axis"])
        target, source = selection.element(address), self.operand(value, selection)
        yield from selection.nest(f"{target} = {target} + {source}")

    def search(self, op: Op) -> Iterator[str]:
        """Search in one sorted array for each element of another."""
        x, values, *rest = op.args
        side = rest[0] if rest else op.kwargs.get("side", "left")
        if len(rest) > 1 or op.kwargs.keys() - {"side"} or not isinstance(values, Value):
            raise UnfitError("a search with other arguments")
        access = self.accesses.of(x)
        if x.dtype != values.dtype or access.strides[0] < 0 or not x.size:
            raise UnfitError("a search among values of another type")
        address = self.layout.address(access.base)
        start = Memory(address.array, access.offset, [], address.start).position
        self.layout.allocate(op.out)
        axes = [*range(len(op.out.shape))]
        found = self.element_at(values, op.out.shape, axes)
        target = self.element_at(op.out, op.out.shape, axes)
        ends = f"u8({start}), u8({access.strides[0]}), {x.size}, {found}, {int(side == 'right')}"
        body = f"{target} = search({address.array}, {ends})"
        yield from nested(list(op.out.shape), [body])

    def running(self, op: Op) -> Iterator[str]:
        """Sum or multiply along one axis."""
        x, code = op.args[0], CODES[op.out.dtype]
        if op.kwargs.keys() - {"axis"} or len(op.args) > 1:
            raise UnfitError("a running sum with other arguments")
        axis = op.kwargs.get("axis", 0 if len(x.shape) == 1 else None)
        if axis is None:
            raise UnfitError("a running sum of all elements")
        axis %= len(x.shape)
        axes = [i for i in range(len(x.shape)) if i != axis] + [axis]
        self.layout.allocate(op.out)
        source, target = (self.element_at(v, x.shape, axes) for v in (x, op.out))
        if x.dtype != op.out.dtype:
            source = f"{code}({source})"
        first, following = _RUNNING[op.function]
        total = self.layout.names.another(f"total_{code}")
        sizes = [x.shape[i] for i in axes]
        inner = [f"{total} = {following.format(total, source)}", f"{target} = {total}"]
        letter = INDICES[len(sizes) - 1]
        body = [f"{total} = {code}({first})", f"for {letter} in range(u8({sizes[-1]})):"]
        body += [f"    {line}" for line in inner]
        yield from nested(sizes[:-1], body)

    def operand(self, value: Value, selection: Selection) -> str:
        """Return the element of a value, broadcast, that belongs to a selected element."""
        return self.element_at(value, selection.shape, selection.axes)
