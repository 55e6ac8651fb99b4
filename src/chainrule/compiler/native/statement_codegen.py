"""The lines of a small program as source: loops, products, what moves elements, and its `for`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from chainrule.compiler.ir.abstract_eval import DRAW, resolve
from chainrule.compiler.ir.program import Op, Program, Value, values_in
from chainrule.compiler.native.fusion_groups import FusionGroup, clustered
from chainrule.compiler.native.layout import Layout, UnfitError
from chainrule.compiler.native.loop_codegen import rows_of
from chainrule.compiler.native.loop_nest import Memory, Place
from chainrule.compiler.native.scalar_codegen import CODES, small_scalar
from chainrule.compiler.native.strides import Access, Accesses

PRODUCT = 1 << 16
"""The most multiplications of one product: from there on, BLAS is quicker."""


def statement_rows(program: Program, accesses: Accesses, layout: Layout) -> Iterator[str]:
    """Yield the source of a program or a body, all but where its results go."""
    return _Statements(program, accesses, layout).rows()


class _Statements:
    def __init__(self, program: Program, accesses: Accesses, layout: Layout) -> None:
        self.program, self.accesses, self.layout = program, accesses, layout
        self.groups = clustered(program, accesses, small_scalar)
        self.results = set(program.results())
        self.number = 0  # of the cluster that is written
        self.own = {*program.inputs, *(v for op in program.ops for v in op.outs)}
        self.last: dict[Value, int] = {}  # the last cluster that reads memory
        for number, group in enumerate(self.groups):
            for value in group.reads:
                self.last.update((owner, number) for owner in accesses.owners(value))
        for value in self.results:
            self.last.update((owner, len(self.groups)) for owner in accesses.owners(value))

    def rows(self) -> Iterator[str]:
        readers = Counter(v for c in self.groups for v in c.reads)
        for number, group in enumerate(self.groups):
            self.number = number
            if group.shape is None:
                for _, op in group.ops:
                    yield from self._op(op)
                continue
            made = [v for _, op in group.ops for v in op.outs]
            wanted = {v for v in made if self._is_wanted(v, group, readers)}
            yield from rows_of(group, self.accesses, wanted, self.layout)

    def _is_wanted(self, value: Value, group: FusionGroup, readers: Counter[Value]) -> bool:
        return value in self.results or readers[value] > (value in group.reads)

    def _op(self, op: Op) -> Iterator[str]:
        if self.accesses.is_view(op):
            return
        if op.function not in _WRITERS:
            self._known(op)
            return
        yield from _WRITERS[op.function](self, op)

    def _known(self, op: Op) -> None:
        """Compute now what depends on nothing."""
        if op.inputs or op.regions or op.function == DRAW or len(op.outs) != 1:
            raise UnfitError(f"there is no loop for {op.function}")
        found = resolve(op.function)(*op.args, **op.kwargs)
        self.layout.constant(op.out, np.asarray(found))

    # --- products ---

    def _matmul(self, op: Op) -> Iterator[str]:
        a, b = op.args
        code = CODES.get(op.out.dtype, "")
        if code[:1] != "f" or not a.dtype == b.dtype == op.out.dtype:
            raise UnfitError("a product of other than floating numbers")
        if max(len(a.shape), len(b.shape)) > 2:
            raise UnfitError("a stack of products")
        rows, inner, columns = (*a.shape[:-1], 1)[0], a.shape[-1], (*b.shape[1:], 1)[0]
        if rows * inner * columns > PRODUCT:
            raise UnfitError("a large product")
        left, right = self._matrix(a, len(a.shape) == 1), self._matrix(b, False)
        place = self.layout.allocate(op.out)
        self.layout.calls.add("times_plus")
        x = self._element(left, "ik")
        y = self._element(right, "kj")
        out = Memory(place.array, 0, [columns, 1], place.start).element
        body = []
        if right[2][1] in (0, 1) and columns > 1:
            body += [f"for j in range(u8({columns})):", f"    {out} = {code}(0)"]
            body += [f"for k in range(u8({inner})):", f"    factor_{code} = {x}"]
            body += [f"    for j in range(u8({columns})):"]
            body += [f"        {out} = times_plus({out}, factor_{code}, {y})"]
        else:
            body += [f"for j in range(u8({columns})):", f"    total_{code} = {code}(0)"]
            body += [f"    for k in range(u8({inner})):"]
            body += [f"        total_{code} = times_plus(total_{code}, {x}, {y})"]
            body += [f"    {out} = total_{code}"]
        yield f"for i in range(u8({rows})):"
        yield from (f"    {row}" for row in body)

    def _matrix(self, value: Value, row: bool) -> tuple[Place, int, tuple[int, int]]:
        """Return where a matrix is, and its steps; a vector is a row or a column."""
        access = self.accesses.of(value)
        steps = access.strides
        if len(steps) == 1:
            steps = (0, *steps) if row else (*steps, 0)
        return self.layout.place(access.base), access.offset, (steps[0], steps[1])

    def _element(self, matrix: tuple[Place, int, tuple[int, int]], indices: str) -> str:
        place, offset, steps = matrix
        by_index = dict(zip(indices, steps, strict=True))
        strides = [by_index.get(index, 0) for index in "ijk"]
        return Memory(place.array, offset, strides, place.start).element

    # --- elements from here to there ---

    def _region(self, out: Value, key: Any) -> tuple[Access, tuple[int, ...]]:
        """Return the part of an array that an index of slices and numbers picks, and its shape."""
        if values_in(key):
            raise UnfitError("an index that is computed")
        part = Value((), out.dtype)
        op = Op("getitem", (out, key), {}, (part,))
        view = self.accesses.view_of(op)
        if view is None:
            raise UnfitError("an index that is no view")
        return view

    def _joined(self, op: Op) -> Iterator[str]:
        parts = op.args[0]
        axis = op.kwargs.get("axis", 0)
        if op.function == "np.stack":
            keys = [(*[slice(None)] * (axis % len(op.out.shape)), i) for i in range(len(parts))]
        else:
            ends = np.cumsum([0, *(part.shape[axis] for part in parts)]).tolist()
            lead = [slice(None)] * (axis % len(op.out.shape))
            keys = [(*lead, slice(ends[i], ends[i + 1])) for i in range(len(parts))]
        if any(part.dtype != op.out.dtype for part in parts):
            raise UnfitError("parts of several types")
        place = self.layout.allocate(op.out)
        for part, key in zip(parts, keys, strict=True):
            if part.size:
                region, shape = self._region(op.out, key)
                yield from self.layout.moved(part, self.accesses, place, region, shape)

    def _put(self, op: Op) -> Iterator[str]:
        """Write or add to a part of a copy; in place, where nobody needs what was there."""
        base, value, key = op.args
        if value.dtype != base.dtype:
            raise UnfitError("a value of another type")
        if self._is_over(base) and self.accesses.of(value).base is not base:
            self.layout.places[op.out] = self.layout.place(base)
        else:
            yield from self.layout.copied(base, self.accesses, self.layout.allocate(op.out))
        yield from self._written(op.out, value, key, op.function == "plus_at")

    def _is_over(self, value: Value) -> bool:
        """Say whether nobody needs a value's memory after this line, or has it besides."""
        if self.accesses.of(value).base is not value or value in self.layout.borrowed:
            return False
        mine = value in self.own and self.last[value] == self.number
        return mine and self.layout.place(value).array.startswith("memory_")

    def _written(self, out: Value, value: Value, key: Any, adds: bool) -> Iterator[str]:
        number = self._counter(key, out)
        place, whole = self.layout.place(out), _plain(out, out)
        if number is not None:
            part = Value(out.shape[1:], out.dtype)
            place, region, shape = self._entry(out, whole, number), _plain(part, out), part.shape
        else:
            region, shape = self._region(out, key)
        if 0 not in shape:
            yield from self.layout.moved(value, self.accesses, place, region, shape, adds)

    def _counter(self, key: Any, stack: Value) -> str | None:
        """Return the entry of a stack that belongs to a step, as source, if that is an index."""
        parts = [part for part in (key if isinstance(key, tuple) else (key,)) if part is not ...]
        found = None
        if len(parts) == 1 and isinstance(parts[0], Value):
            found = self.layout.counters.get(parts[0])
        if found is None:
            return None
        (numbers, turn), length = found, stack.shape[0]
        last = numbers[-1]
        around = min(numbers[0], last) < 0 <= max(numbers[0], last)
        start = numbers.start + (length if min(numbers[0], last) < 0 else 0)  # from the end
        sign = "+" if numbers.step > 0 else "-"
        text = f"u8({start}) {sign} u8({abs(numbers.step)}) * ({turn})"
        return f"({text}) % u8({length})" if around else text

    def _placed(self, op: Op) -> Iterator[str]:
        self.layout.allocate(op.out)
        yield from self.layout.filled(op.out, f"{CODES[op.out.dtype]}(0)")
        yield from self._written(op.out, op.args[0], op.kwargs["key"], adds=False)

    def _reshape(self, op: Op) -> Iterator[str]:
        yield from self.layout.copied(op.args[0], self.accesses, self.layout.allocate(op.out))

    def _picked(self, op: Op) -> Iterator[str]:
        """Look at the entry of a stack that belongs to a step."""
        stack, key = op.args
        number, access = self._counter(key, stack), self.accesses.of(stack)
        if number is None or not _is_plain(access, stack):
            raise UnfitError("an index that is computed")
        self.layout.places[op.out] = self._entry(stack, access, number)
        self.layout.borrowed.add(op.out)
        yield from ()

    def _entry(self, stack: Value, access: Access, number: str) -> Place:
        place = self.layout.place(access.base)
        start = f"{place.start} + " if place.start else ""
        size = int(np.prod(stack.shape[1:], dtype=np.int64))
        return Place(place.array, f"{start}u8({access.offset}) + u8({size}) * ({number})")

    # --- loops ---

    def _for(self, op: Op) -> Iterator[str]:
        (body,) = op.regions
        layout, count = self.layout, len(op.args[0])
        for carry, value in zip(body.inputs, op.args[0], strict=False):
            yield from layout.copied(value, self.accesses, layout.allocate(carry))
        for out in op.outs[count:]:
            layout.allocate(out)
        turn = layout.names.another("turn")
        yield f"for {turn} in range(u8({op.kwargs['length']})):"
        number = f"u8({op.kwargs['length'] - 1}) - {turn}" if op.kwargs["reverse"] else turn
        rows: list[str] = []
        for value, stack in zip(body.inputs[count:], op.args[1], strict=True):
            rows += self._slice(value, stack, number)
        accesses = Accesses(body, self.accesses.constants | body.constants, self.accesses)
        for value, array in body.constants.items():
            if array.ndim:
                layout.constant(value, array)
        rows += statement_rows(body, accesses, layout)
        for out, value in zip(op.outs[count:], body.outputs[count:], strict=True):
            entry = self._entry(out, self.accesses.of(out), number)
            rows += layout.copied(value, accesses, entry)
        rows += self._handed_on(body, count, accesses)
        yield from (f"    {row}" for row in rows or ["pass"])
        for out, carry in zip(op.outs, body.inputs[:count], strict=False):
            layout.places[out] = layout.place(carry)

    def _slice(self, value: Value, stack: Any, number: str) -> list[str]:
        """Say where the part of a stack is that belongs to a step."""
        if isinstance(stack, range):
            self.layout.counters[value] = stack, number
            return []
        access = self.accesses.of(stack)
        if not _is_plain(access, stack):
            raise UnfitError("steps along a view")
        self.layout.places[value] = self._entry(stack, access, number)
        self.layout.borrowed.add(value)
        return []

    def _handed_on(self, body: Program, count: int, accesses: Accesses) -> list[str]:
        """Copy the new carries to where the next step finds them."""
        layout = self.layout
        carries = [layout.place(carry) for carry in body.inputs[:count]]
        first, rows = [], []
        for place, value in zip(carries, body.outputs, strict=False):
            if accesses.number(value) is None:
                access = accesses.of(value)
                source = layout.place(access.base)
                stays = source == place and access == _plain(value, access.base)
                lent = access.base in layout.borrowed
                if lent or (source in carries and not stays):  # it may be written over before
                    between = Value(value.shape, value.dtype)
                    first += layout.copied(value, accesses, layout.allocate(between))
                    value = between
            rows += layout.copied(value, accesses, place)
        return first + rows


def _plain(value: Value, base: Value) -> Access:
    """Return the access to a value that begins where another does, element after element."""
    steps = [math.prod(value.shape[axis + 1 :]) for axis in range(len(value.shape))]
    return Access(base, 0, tuple(steps))


def _is_plain(access: Access, value: Value) -> bool:
    """Say whether a value's elements follow each other in memory."""
    steps = _plain(value, value).strides
    sizes = value.shape
    return all(n == 1 or s == t for n, s, t in zip(sizes, access.strides, steps, strict=True))


_WRITERS: dict[str, Callable[[_Statements, Op], Iterator[str]]] = {
    "np.matmul": _Statements._matmul,
    "np.concat": _Statements._joined,
    "np.concatenate": _Statements._joined,
    "np.stack": _Statements._joined,
    "plus_at": _Statements._put,
    "assign_at": _Statements._put,
    "index_add": _Statements._placed,
    "np.reshape": _Statements._reshape,
    "getitem": _Statements._picked,
    "for": _Statements._for,
}
