"""Register-blocked micro-kernel of matrix products, as LLVM instructions that Numba cannot express.

A tile is a few rows of one matrix times a few vectors of columns of the other, which are packed
contiguously. Its sums stay in vector registers during the loop over the inner dimension: the inner
kernel of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS
34(3), 2008, which BLIS uses, too. This module imports Numba.
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
def intrinsic_for(name: str) -> Any:
    """Return the intrinsic of a name such as `buffer_f4_8192` or `tile_f4_16_14x2`.

    `buffer_f4_8192` allocates 8192 float32 on the stack; for vectors of 16 float32, `copy_f4_16`
    copies one, `transpose_f4_16` transposes a square, and `tile_f4_16_14x2` computes a tile of 14
    rows of two vectors.
    """
    kind, code, *sizes = re.split("[_x]", name)
    makers: dict[str, Any]
    makers = {"buffer": _buffer, "copy": _copy, "transpose": _transpose, "tile": _tile}
    return intrinsic(makers[kind](code, *map(int, sizes)))


def _buffer(code: str, size: int) -> Any:
    element, _, kind = _ELEMENTS[code]

    def buffer(typing: Any) -> Any:
        """Return a buffer on the stack, aligned to a cache line."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            with builder.goto_entry_block():  # `cgutils.alloca_once` would zero it
                memory = builder.alloca(ir.ArrayType(element, size))
            memory.align = 64
            return builder.bitcast(memory, element.as_pointer())

        return types.CPointer(kind)(), generate

    return buffer


def _copy(code: str, width: int) -> Any:
    def copy_vector(typing: Any, b: Any, at: Any, count: Any, to: Any, target: Any) -> Any:
        """Copy a vector of `b`, with zeros from element `count` on."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _Vectors(builder, code, width).copy(*args)
            return context.get_dummy_value()

        return types.void(b, at, count, to, target), generate

    return copy_vector


def _transpose(code: str, width: int) -> Any:
    def transpose_square(
        typing: Any, b: Any, at: Any, step: Any, count: Any, to: Any, target: Any, row_step: Any
    ) -> Any:
        """Transpose rows of `b`, `step` apart; rows from `count` on repeat the last one."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _Vectors(builder, code, width).transpose(*args)
            return context.get_dummy_value()

        arguments = (b, at, step, count, to, target, row_step)
        return types.void(*arguments), generate

    return transpose_square


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
        """Store, or if `adds` add, the product of `a` and `b` to `rows` by `columns` of `c`.

        `a_row` and `a_column` are the strides of `a`, `b_row` and `c_row` the row strides of `b`
        and `c`.
        """

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _Tile(builder, code, width, height, count).write(*args)
            return context.get_dummy_value()

        arguments = (a, a_at, a_row, a_column, b, b_at, b_row, depth, c, c_at, c_row)
        return types.void(*arguments, rows, columns, adds), generate

    return tile


class _Vectors:
    """Emitter of vector instructions."""

    def __init__(self, builder: Any, code: str, width: int) -> None:
        element, self.suffix, kind = _ELEMENTS[code]
        self.builder, self.bytes, self.width = builder, kind.bitwidth // 8, width
        self.vector = ir.VectorType(element, width)

    def copy(self, b: Any, at: Any, count: Any, to: Any, target: Any) -> None:
        """Copy a vector, with zeros from element `count` on."""
        vector = self.read(self.builder.gep(b, [at]), self.mask(count))
        self.write(vector, self.builder.gep(to, [target]))

    def transpose(
        self, b: Any, at: Any, step: Any, count: Any, to: Any, target: Any, row_step: Any
    ) -> None:
        """Transpose a square by exchanging halves, quarters, and so on."""
        elements = range(self.width)
        numbers = self.row_numbers(self.width, count)
        rows = [self.read(self.row_pointer(b, at, n, step)) for n in numbers]
        size = 1
        while size < self.width:
            for i in elements:
                if not i & size:
                    first, second = rows[i], rows[i + size]
                    low = [j if not j & size else self.width + j - size for j in elements]
                    high = [j + size if not j & size else self.width + j for j in elements]
                    rows[i] = self.shuffle(first, second, low)
                    rows[i + size] = self.shuffle(first, second, high)
            size *= 2
        for i, row in enumerate(rows):
            self.write(row, self.row_pointer(to, target, WORD(i), row_step))

    def row_numbers(self, size: int, count: Any) -> list[Any]:
        """Return row numbers that repeat the last one from `count` on, so no branch is needed."""
        last = self.builder.sub(count, WORD(1))
        found = [WORD(0)]
        for i in range(1, size):
            exists = self.builder.icmp_signed("<", WORD(i), last)
            found.append(self.builder.select(exists, WORD(i), last))
        return found

    def row_pointer(self, array: Any, begin: Any, number: Any, step: Any) -> Any:
        """Return the pointer to the first element of a row."""
        distance = self.builder.mul(number, step)
        return self.builder.gep(array, [self.builder.add(begin, distance)])

    def shuffle(self, first: Any, second: Any, elements: list[int]) -> Any:
        """Return a vector of elements of two vectors."""
        mask = ir.Constant(ir.VectorType(INT, self.width), elements)
        return self.builder.shuffle_vector(first, second, mask)

    def broadcast(self, number: Any) -> Any:
        """Return a vector with one scalar in all elements."""
        empty = ir.Constant(ir.VectorType(number.type, self.width), ir.Undefined)
        one = self.builder.insert_element(empty, number, INT(0))
        return self.shuffle(one, empty, [0] * self.width)

    def mask(self, count: Any, first: int = 0) -> Any:
        """Return the mask of elements whose number, counted from `first`, is below `count`."""
        numbers = list(range(first, first + self.width))
        constants = ir.Constant(ir.VectorType(WORD, self.width), numbers)
        return self.builder.icmp_signed("<", constants, self.broadcast(count))

    def read(self, pointer: Any, mask: Any = None) -> Any:
        """Load a vector from a pointer; elements that are masked out are zero."""
        pointer = self.builder.bitcast(pointer, self.vector.as_pointer())
        if mask is None:
            return self.builder.load(pointer, align=self.bytes)
        kinds = (pointer.type, INT, mask.type, self.vector)
        function = self.function("llvm.masked.load", self.vector, *kinds, pointer=True)
        zero = ir.Constant(self.vector, None)
        return self.builder.call(function, [pointer, INT(self.bytes), mask, zero])

    def write(self, value: Any, pointer: Any, mask: Any = None) -> None:
        """Store a vector at a pointer, except elements that are masked out."""
        pointer = self.builder.bitcast(pointer, self.vector.as_pointer())
        if mask is None:
            self.builder.store(value, pointer, align=self.bytes)
            return
        kinds = (self.vector, pointer.type, INT, mask.type)
        function = self.function("llvm.masked.store", ir.VoidType(), *kinds, pointer=True)
        self.builder.call(function, [value, pointer, INT(self.bytes), mask])

    def function(self, name: str, returned: Any, *arguments: Any, pointer: bool = False) -> Any:
        """Return an LLVM intrinsic for vectors."""
        name = f"{name}.v{self.width}{self.suffix}{'.p0' * pointer}"
        kind = ir.FunctionType(returned, arguments)
        return cgutils.get_or_insert_function(self.builder.module, kind, name)


class _Tile:
    """Emitter of a tile of `height` rows of `count` vectors."""

    def __init__(self, builder: Any, code: str, width: int, height: int, count: int) -> None:
        self.vectors = _Vectors(builder, code, width)
        self.builder, self.width = builder, width
        self.height, self.count = height, count
        self.cells = [(i, v) for i in range(height) for v in range(count)]

    def write(self, *arguments: Any) -> None:
        """Emit the tile for the arguments of the intrinsic."""
        a, a_at, a_row, a_column, b, b_at, b_row, depth, c, c_at, c_row, *sizes = arguments
        rows, columns, adds = sizes
        builder = self.builder
        numbers = self.vectors.row_numbers(self.height, rows)
        steps = [builder.mul(i, a_row) for i in numbers]
        a, b = builder.gep(a, [a_at]), builder.gep(b, [b_at])
        sums = self._sums(a, steps, a_column, b, b_row, depth)
        begins = [self.vectors.row_pointer(c, c_at, i, c_row) for i in numbers]
        targets = {(i, v): builder.gep(begins[i], [WORD(v * self.width)]) for i, v in self.cells}
        read_columns = builder.select(builder.icmp_signed("!=", adds, WORD(0)), columns, WORD(0))
        vectors, starts = self.vectors, [v * self.width for v in range(self.count)]
        read_masks = [vectors.mask(read_columns, start) for start in starts]
        write_masks = [vectors.mask(columns, start) for start in starts]
        # All rows are read before any is written: the last row may occur several times.
        old = {(i, v): vectors.read(targets[i, v], read_masks[v]) for i, v in self.cells}
        for i, v in self.cells:
            vectors.write(builder.fadd(old[i, v], sums[i, v]), targets[i, v], write_masks[v])

    def _sums(
        self, a: Any, steps: list[Any], a_column: Any, b: Any, b_row: Any, depth: Any
    ) -> dict[Any, Any]:
        """Emit the loop over the inner dimension, and return the sums."""
        builder, vector = self.builder, self.vectors.vector
        before = builder.block
        loop, after = builder.append_basic_block("sums"), builder.append_basic_block("summed")
        builder.branch(loop)
        builder.position_at_end(loop)
        k, a_here, b_here = (builder.phi(kind) for kind in (WORD, a.type, b.type))
        sums = {cell: builder.phi(vector) for cell in self.cells}
        columns = [
            self.vectors.read(builder.gep(b_here, [WORD(v * self.width)]))
            for v in range(self.count)
        ]
        fma = self.vectors.function("llvm.fma", vector, *[vector] * 3)
        found = {}
        for i, step in enumerate(steps):
            element = self.vectors.broadcast(builder.load(builder.gep(a_here, [step])))
            for v, column in enumerate(columns):
                found[i, v] = builder.call(fma, [element, column, sums[i, v]])
        phis = [
            (k, WORD(0), builder.add(k, WORD(1))),
            (a_here, a, builder.gep(a_here, [a_column])),
            (b_here, b, builder.gep(b_here, [b_row])),
            *((sums[cell], ir.Constant(vector, None), found[cell]) for cell in self.cells),
        ]
        for phi, first, next_one in phis:
            phi.add_incoming(first, before)
            phi.add_incoming(next_one, loop)
        builder.cbranch(builder.icmp_signed("<", phis[0][2], depth), loop, after)
        builder.position_at_end(after)
        return found
