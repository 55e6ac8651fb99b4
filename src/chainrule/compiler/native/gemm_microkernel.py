"""Tiles of matrix products in the vector registers of a processor, for which Numba has no words.

A tile is some rows of one matrix times some vectors of columns of another, which are packed side by
side. Its sums stay in registers while the loop runs over what is summed: the inner kernel of Goto
and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34(3), 2008, which
BLIS is made of, too. Numba is imported with this module.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

WORD, INT = ir.IntType(64), ir.IntType(32)
_ELEMENTS = {
    "f4": (ir.FloatType(), "f32", types.float32),
    "f8": (ir.DoubleType(), "f64", types.float64),
}


@functools.cache
def named(name: str) -> Any:
    """Return what a loop calls by names like `room_f4_8192`, `copied_f4_16`, `turned_f4_16` or
    `tile_f4_16_14x2`.

    That is memory for so many elements; and with vectors of 16 of them, what copies one, what turns
    a square, and a tile of 14 rows of 2.
    """
    kind, code, *sizes = re.split("[_x]", name)
    makers: dict[str, Any]
    makers = {"room": _room, "copied": _copied, "turned": _turned, "tile": _tile}
    return intrinsic(makers[kind](code, *map(int, sizes)))


def _room(code: str, size: int) -> Any:
    element, _, kind = _ELEMENTS[code]

    def room(typing: Any) -> Any:
        """Return memory of the function's own, at the begin of a cache line."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            with builder.goto_entry_block():  # `cgutils.alloca_once` would fill it with zeros
                memory = builder.alloca(ir.ArrayType(element, size))
            memory.align = 64
            return builder.bitcast(memory, element.as_pointer())

        return types.CPointer(kind)(), generate

    return room


def _copied(code: str, width: int) -> Any:
    def copied(typing: Any, b: Any, at: Any, count: Any, to: Any, place: Any) -> Any:
        """Write a vector of `b`, with zeros beyond so many elements."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _Vectors(builder, code, width).copy(*args)
            return context.get_dummy_value()

        return types.void(b, at, count, to, place), generate

    return copied


def _turned(code: str, width: int) -> Any:
    def turned(
        typing: Any, b: Any, at: Any, step: Any, count: Any, to: Any, place: Any, across: Any
    ) -> Any:
        """Write rows of `b`, which are `step` apart, as columns; beyond `count` the last again."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _Vectors(builder, code, width).turn(*args)
            return context.get_dummy_value()

        given = (b, at, step, count, to, place, across)
        return types.void(*given), generate

    return turned


def _tile(code: str, width: int, height: int, count: int) -> Any:
    def tile(
        typing: Any,
        a: Any,
        a_at: Any,
        a_row: Any,
        a_column: Any,
        b: Any,
        b_at: Any,
        b_row: Any,
        depth: Any,
        c: Any,
        c_at: Any,
        c_row: Any,
        rows: Any,
        columns: Any,
        adds: Any,
    ) -> Any:
        """Fill `rows` by `columns` of `c`, or add to them: products of `a` and `b`.

        Elements of `a` are `a_row` and `a_column` apart, rows of `b` are `b_row`.
        """

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _Tile(builder, code, width, height, count).write(*args)
            return context.get_dummy_value()

        given = (a, a_at, a_row, a_column, b, b_at, b_row, depth, c, c_at, c_row)
        return types.void(*given, rows, columns, adds), generate

    return tile


class _Vectors:
    """Instructions on vectors, as they are written."""

    def __init__(self, builder: Any, code: str, width: int) -> None:
        element, self.suffix, kind = _ELEMENTS[code]
        self.builder, self.bytes, self.width = builder, kind.bitwidth // 8, width
        self.vector = ir.VectorType(element, width)

    def copy(self, b: Any, at: Any, count: Any, to: Any, place: Any) -> None:
        """Write a vector, with zeros beyond so many elements."""
        vector = self.read(self.builder.gep(b, [at]), self.mask(count))
        self.write(vector, self.builder.gep(to, [place]))

    def turn(
        self, b: Any, at: Any, step: Any, count: Any, to: Any, place: Any, across: Any
    ) -> None:
        """Write a square with rows for columns, by exchanging halves, quarters, and so on."""
        lanes = range(self.width)
        rows = [self.read(self.at(b, at, n, step)) for n in self.numbers(self.width, count)]
        size = 1
        while size < self.width:
            for i in lanes:
                if not i & size:
                    first, second = rows[i], rows[i + size]
                    low = [j if not j & size else self.width + j - size for j in lanes]
                    high = [j + size if not j & size else self.width + j for j in lanes]
                    rows[i] = self.mixed(first, second, low)
                    rows[i + size] = self.mixed(first, second, high)
            size *= 2
        for i, row in enumerate(rows):
            self.write(row, self.at(to, place, WORD(i), across))

    def numbers(self, size: int, count: Any) -> list[Any]:
        """Return numbers of rows: those beyond `count` are the last one again; nobody need ask."""
        last = self.builder.sub(count, WORD(1))
        found = [WORD(0)]
        for i in range(1, size):
            here = self.builder.icmp_signed("<", WORD(i), last)
            found.append(self.builder.select(here, WORD(i), last))
        return found

    def at(self, array: Any, begin: Any, number: Any, step: Any) -> Any:
        """Return where a row begins."""
        distance = self.builder.mul(number, step)
        return self.builder.gep(array, [self.builder.add(begin, distance)])

    def mixed(self, first: Any, second: Any, lanes: list[int]) -> Any:
        """Return a vector of elements of two."""
        mask = ir.Constant(ir.VectorType(INT, self.width), lanes)
        return self.builder.shuffle_vector(first, second, mask)

    def spread(self, number: Any) -> Any:
        """Return a vector of one number, whatever it is, many times."""
        empty = ir.Constant(ir.VectorType(number.type, self.width), ir.Undefined)
        one = self.builder.insert_element(empty, number, INT(0))
        return self.mixed(one, empty, [0] * self.width)

    def mask(self, count: Any, first: int = 0) -> Any:
        """Return which elements of a vector, whose number one is `first`, are below so many."""
        numbers = list(range(first, first + self.width))
        places = ir.Constant(ir.VectorType(WORD, self.width), numbers)
        return self.builder.icmp_signed("<", places, self.spread(count))

    def read(self, place: Any, mask: Any = None) -> Any:
        """Return the vector at a place, zeros where a mask says so."""
        place = self.builder.bitcast(place, self.vector.as_pointer())
        if mask is None:
            return self.builder.load(place, align=self.bytes)
        kinds = (place.type, INT, mask.type, self.vector)
        function = self.function("llvm.masked.load", self.vector, *kinds, pointer=True)
        zero = ir.Constant(self.vector, None)
        return self.builder.call(function, [place, INT(self.bytes), mask, zero])

    def write(self, value: Any, place: Any, mask: Any = None) -> None:
        """Write a vector to a place, but where a mask says no."""
        place = self.builder.bitcast(place, self.vector.as_pointer())
        if mask is None:
            self.builder.store(value, place, align=self.bytes)
            return
        kinds = (self.vector, place.type, INT, mask.type)
        function = self.function("llvm.masked.store", ir.VoidType(), *kinds, pointer=True)
        self.builder.call(function, [value, place, INT(self.bytes), mask])

    def function(self, name: str, returned: Any, *given: Any, pointer: bool = False) -> Any:
        """Return one of LLVM's own functions on vectors."""
        name = f"{name}.v{self.width}{self.suffix}{'.p0' * pointer}"
        kind = ir.FunctionType(returned, given)
        return cgutils.get_or_insert_function(self.builder.module, kind, name)


class _Tile:
    """The instructions of a tile of so many rows of vectors, as they are written."""

    def __init__(self, builder: Any, code: str, width: int, height: int, count: int) -> None:
        self.vectors = _Vectors(builder, code, width)
        self.builder, self.width = builder, width
        self.height, self.count = height, count
        self.places = [(i, v) for i in range(height) for v in range(count)]

    def write(self, *given: Any) -> None:
        """Write them all, for the arguments of `tile`."""
        a, a_at, a_row, a_column, b, b_at, b_row, depth, c, c_at, c_row, *sizes = given
        rows, columns, adds = sizes
        builder = self.builder
        numbers = self.vectors.numbers(self.height, rows)
        steps = [builder.mul(i, a_row) for i in numbers]
        a, b = builder.gep(a, [a_at]), builder.gep(b, [b_at])
        sums = self._sums(a, steps, a_column, b, b_row, depth)
        begins = [self.vectors.at(c, c_at, i, c_row) for i in numbers]
        targets = {(i, v): builder.gep(begins[i], [WORD(v * self.width)]) for i, v in self.places}
        here = builder.select(builder.icmp_signed("!=", adds, WORD(0)), columns, WORD(0))
        vectors, starts = self.vectors, [v * self.width for v in range(self.count)]
        there, wanted = ([vectors.mask(n, start) for start in starts] for n in (here, columns))
        # All is read before any is written: the last row may be there several times.
        old = {(i, v): vectors.read(targets[i, v], there[v]) for i, v in self.places}
        for i, v in self.places:
            vectors.write(builder.fadd(old[i, v], sums[i, v]), targets[i, v], wanted[v])

    def _sums(
        self, a: Any, steps: list[Any], a_column: Any, b: Any, b_row: Any, depth: Any
    ) -> dict[Any, Any]:
        """Write the loop over what is summed, and return the sums."""
        builder, vector = self.builder, self.vectors.vector
        before = builder.block
        loop, after = builder.append_basic_block("sums"), builder.append_basic_block("summed")
        builder.branch(loop)
        builder.position_at_end(loop)
        k, a_here, b_here = (builder.phi(kind) for kind in (WORD, a.type, b.type))
        sums = {place: builder.phi(vector) for place in self.places}
        columns = [
            self.vectors.read(builder.gep(b_here, [WORD(v * self.width)]))
            for v in range(self.count)
        ]
        fma = self.vectors.function("llvm.fma", vector, *[vector] * 3)
        found = {}
        for i, step in enumerate(steps):
            element = self.vectors.spread(builder.load(builder.gep(a_here, [step])))
            for v, column in enumerate(columns):
                found[i, v] = builder.call(fma, [element, column, sums[i, v]])
        ways = [
            (k, WORD(0), builder.add(k, WORD(1))),
            (a_here, a, builder.gep(a_here, [a_column])),
            (b_here, b, builder.gep(b_here, [b_row])),
            *((sums[place], ir.Constant(vector, None), found[place]) for place in self.places),
        ]
        for phi, first, next_one in ways:
            phi.add_incoming(first, before)
            phi.add_incoming(next_one, loop)
        builder.cbranch(builder.icmp_signed("<", ways[0][2], depth), loop, after)
        builder.position_at_end(after)
        return found
