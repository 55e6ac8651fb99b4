"""Register-blocked micro-kernel of matrix products, as LLVM's vector instructions.

A tile is a few rows of one matrix times a few vectors of columns of the other, which are packed
contiguously. Its sums stay in vector registers during the loop over the inner dimension: the inner
kernel of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS
34(3), 2008, which BLIS uses, too.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from chainrule.compiler.native.llvm_types import TYPES, Typed

if TYPE_CHECKING:
    from chainrule.compiler.native.llvm_expressions import ExpressionWriter

_BYTES = {"f4": 4, "f8": 8}
_KNOWN = re.compile(r"(buffer|copy|transpose|tile)_(f4|f8|i8)_(\d+)(?:_(\d+)x(\d+))?")

_POINTER = re.compile(r"(?:float|double|i\d+|<[^>]*>)\*")
"""Typed pointers, which llvmlite may write, and recent versions of LLVM don't read."""


def is_known(name: str) -> bool:
    """Return whether a name is one of this module: `buffer_f4_8192`, `tile_f4_16_14x2`.

    `buffer_f4_8192` allocates 8192 float32 on the stack; for vectors of 16 float32, `copy_f4_16`
    copies one, `transpose_f4_16` transposes a square, and `tile_f4_16_14x2` computes a tile of 14
    rows of two vectors.
    """
    return _KNOWN.fullmatch(name) is not None


def _parts(name: str) -> tuple[str, ...]:
    """Return the parts of a known name."""
    found = _KNOWN.fullmatch(name)
    assert found is not None, name
    return found.groups()


def call(function: ExpressionWriter, name: str, values: list[Typed]) -> Typed:
    """Emit the call of a function of this module."""
    kind, code, size, *_ = _parts(name)
    if kind == "buffer":
        memory = function.allocate(f"[{size} x {TYPES[code]}], align 64")
        return Typed(memory, f"*{code}")
    text, declarations = _function(name)
    function.module.functions[name] = text
    function.module.declarations |= declarations
    values = [v if v.kind[0] == "*" else function.convert(v, "i8") for v in values]
    return function.call(name, "void", values)


@functools.cache
def _function(name: str) -> tuple[str, dict[str, str]]:
    """Return the text of a function, and the declarations that it needs."""
    from llvmlite import ir

    kind, code, *sizes = _parts(name)
    width, *tile = [int(size) for size in sizes if size]
    word = ir.IntType(64)
    array = (ir.FloatType() if code == "f4" else ir.DoubleType()).as_pointer()
    arguments = {
        "copy": [array, word, word, array, word],
        "transpose": [array, word, word, word, array, word, word],
        "tile": [array, *[word] * 3, array, *[word] * 3, array, *[word] * 5],
    }[kind]
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), name)
    function.linkage = "internal"
    function.attributes.add("noinline" if kind == "tile" else "alwaysinline")
    builder = ir.IRBuilder(function.append_basic_block())
    if kind == "tile":
        _Tile(builder, code, width, *tile).write(*function.args)
    else:
        getattr(_Vectors(builder, code, width), kind)(*function.args)
    builder.ret_void()
    texts = {other.name: _POINTER.sub("ptr", str(other)) for other in module.functions}
    return texts.pop(name), texts


class _Vectors:
    """Emitter of vector instructions."""

    def __init__(self, builder: Any, code: str, width: int) -> None:
        from llvmlite import ir

        self.ir, self.builder, self.bytes, self.width = ir, builder, _BYTES[code], width
        self.word, self.integer = ir.IntType(64), ir.IntType(32)
        self.suffix = f"f{8 * self.bytes}"
        self.vector = ir.VectorType(ir.FloatType() if code == "f4" else ir.DoubleType(), width)

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
            self.write(row, self.row_pointer(to, target, self.word(i), row_step))

    def row_numbers(self, size: int, count: Any) -> list[Any]:
        """Return row numbers that repeat the last one from `count` on, so no branch is needed."""
        last = self.builder.sub(count, self.word(1))
        found = [self.word(0)]
        for i in range(1, size):
            exists = self.builder.icmp_signed("<", self.word(i), last)
            found.append(self.builder.select(exists, self.word(i), last))
        return found

    def row_pointer(self, array: Any, begin: Any, number: Any, step: Any) -> Any:
        """Return the pointer to the first element of a row."""
        distance = self.builder.mul(number, step)
        return self.builder.gep(array, [self.builder.add(begin, distance)])

    def shuffle(self, first: Any, second: Any, elements: list[int]) -> Any:
        """Return a vector of elements of two vectors."""
        mask = self.ir.Constant(self.ir.VectorType(self.integer, self.width), elements)
        return self.builder.shuffle_vector(first, second, mask)

    def broadcast(self, number: Any) -> Any:
        """Return a vector with one scalar in all elements."""
        empty = self.ir.Constant(self.ir.VectorType(number.type, self.width), self.ir.Undefined)
        one = self.builder.insert_element(empty, number, self.integer(0))
        return self.shuffle(one, empty, [0] * self.width)

    def mask(self, count: Any, first: int = 0) -> Any:
        """Return the mask of elements whose number, counted from `first`, is below `count`."""
        numbers = list(range(first, first + self.width))
        constants = self.ir.Constant(self.ir.VectorType(self.word, self.width), numbers)
        return self.builder.icmp_signed("<", constants, self.broadcast(count))

    def read(self, pointer: Any, mask: Any = None) -> Any:
        """Load a vector from a pointer; elements that are masked out are zero."""
        pointer = self.builder.bitcast(pointer, self.vector.as_pointer())
        if mask is None:
            return self.builder.load(pointer, align=self.bytes)
        kinds = (pointer.type, self.integer, mask.type, self.vector)
        function = self.function("llvm.masked.load", self.vector, *kinds, pointer=True)
        zero = self.ir.Constant(self.vector, None)
        return self.builder.call(function, [pointer, self.integer(self.bytes), mask, zero])

    def write(self, value: Any, pointer: Any, mask: Any = None) -> None:
        """Store a vector at a pointer, except elements that are masked out."""
        pointer = self.builder.bitcast(pointer, self.vector.as_pointer())
        if mask is None:
            self.builder.store(value, pointer, align=self.bytes)
            return
        kinds = (self.vector, pointer.type, self.integer, mask.type)
        function = self.function("llvm.masked.store", self.ir.VoidType(), *kinds, pointer=True)
        self.builder.call(function, [value, pointer, self.integer(self.bytes), mask])

    def function(self, name: str, returned: Any, *arguments: Any, pointer: bool = False) -> Any:
        """Return an LLVM intrinsic for vectors."""
        name = f"{name}.v{self.width}{self.suffix}{'.p0' * pointer}"
        known = self.builder.module.globals.get(name)
        kind = self.ir.FunctionType(returned, arguments)
        return known or self.ir.Function(self.builder.module, kind, name)


class _Tile:
    """Emitter of a tile of `height` rows of `count` vectors."""

    def __init__(self, builder: Any, code: str, width: int, height: int, count: int) -> None:
        self.vectors = _Vectors(builder, code, width)
        self.builder, self.width = builder, width
        self.height, self.count = height, count
        self.cells = [(i, v) for i in range(height) for v in range(count)]

    def write(self, *arguments: Any) -> None:
        """Emit the instructions.

        Store, or if `adds` add, the product of `a` and `b` to `rows` by `columns` of `c`. `a_row`
        and `a_column` are the strides of `a`, `b_row` and `c_row` the row strides of `b` and `c`.
        """
        a, a_at, a_row, a_column, b, b_at, b_row, depth, c, c_at, c_row, *sizes = arguments
        rows, columns, adds = sizes
        builder = self.builder
        numbers = self.vectors.row_numbers(self.height, rows)
        steps = [builder.mul(i, a_row) for i in numbers]
        a, b = builder.gep(a, [a_at]), builder.gep(b, [b_at])
        sums = self._sums(a, steps, a_column, b, b_row, depth)
        begins = [self.vectors.row_pointer(c, c_at, i, c_row) for i in numbers]
        targets = {
            (i, v): builder.gep(begins[i], [self.vectors.word(v * self.width)])
            for i, v in self.cells
        }
        word, vectors = self.vectors.word, self.vectors
        is_full = builder.icmp_signed(">=", columns, word(self.count * self.width))
        is_first = builder.icmp_signed("==", adds, word(0))
        starts = [v * self.width for v in range(self.count)]
        with builder.if_else(is_full) as (full, partial):
            with full, builder.if_else(is_first) as (stores, accumulates):
                with stores:
                    for cell in self.cells:
                        vectors.write(sums[cell], targets[cell])
                with accumulates:
                    old = {cell: vectors.read(targets[cell]) for cell in self.cells}
                    for cell in self.cells:
                        vectors.write(builder.fadd(old[cell], sums[cell]), targets[cell])
            with partial:
                read_columns = builder.select(is_first, word(0), columns)
                read_masks = [vectors.mask(read_columns, start) for start in starts]
                write_masks = [vectors.mask(columns, start) for start in starts]
                # All rows are read before any is written: the last row may occur several times.
                old = {(i, v): vectors.read(targets[i, v], read_masks[v]) for i, v in self.cells}
                for i, v in self.cells:
                    total = builder.fadd(old[i, v], sums[i, v])
                    vectors.write(total, targets[i, v], write_masks[v])

    def _sums(
        self, a: Any, steps: list[Any], a_column: Any, b: Any, b_row: Any, depth: Any
    ) -> dict[Any, Any]:
        """Emit the loop over the inner dimension, and return the sums."""
        builder, vector = self.builder, self.vectors.vector
        before = builder.block
        loop, after = builder.append_basic_block("sums"), builder.append_basic_block("summed")
        builder.branch(loop)
        builder.position_at_end(loop)
        k, a_here, b_here = (builder.phi(kind) for kind in (self.vectors.word, a.type, b.type))
        sums = {cell: builder.phi(vector) for cell in self.cells}
        columns = [
            self.vectors.read(builder.gep(b_here, [self.vectors.word(v * self.width)]))
            for v in range(self.count)
        ]
        fma = self.vectors.function("llvm.fma", vector, *[vector] * 3)
        found = {}
        for i, step in enumerate(steps):
            element = self.vectors.broadcast(builder.load(builder.gep(a_here, [step])))
            for v, column in enumerate(columns):
                found[i, v] = builder.call(fma, [element, column, sums[i, v]])
        phis = [
            (k, self.vectors.word(0), builder.add(k, self.vectors.word(1))),
            (a_here, a, builder.gep(a_here, [a_column])),
            (b_here, b, builder.gep(b_here, [b_row])),
            *(
                (sums[cell], self.vectors.ir.Constant(vector, None), found[cell])
                for cell in self.cells
            ),
        ]
        for phi, first, next_one in phis:
            phi.add_incoming(first, before)
            phi.add_incoming(next_one, loop)
        builder.cbranch(builder.icmp_signed("<", phis[0][2], depth), loop, after)
        builder.position_at_end(after)
        return found
