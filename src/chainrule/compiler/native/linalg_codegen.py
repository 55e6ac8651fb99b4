"""Source of dense linear algebra of small matrices, by the functions of `dense_kernels`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from chainrule.compiler.ir.program import Op, Shape, Value
from chainrule.compiler.native.gemm import MIN_DIMENSION, Product, Strides, make_product
from chainrule.compiler.native.indexing_codegen import Operands, contiguous, nested
from chainrule.compiler.native.layout import LargeError, LoopLines, UnfitError
from chainrule.compiler.native.loop_nest import INDICES, Address, Memory
from chainrule.compiler.native.scalar_codegen import CODES, literal

MAX_MATRIX = 32
"""Largest number of rows of a matrix that is factorised; beyond that, LAPACK is faster."""

MAX_MATRIX_IN_LOOP = 64
"""The same in a loop, which is Python's if one of its operations is a call."""

MAX_SUBSTITUTED = 1 << 14
"""Largest number of elements of a triangular matrix, of more rows than are factorised, times right
sides; beyond, LAPACK is faster."""

MAX_SUBSTITUTED_IN_LOOP = 1 << 18
"""The same in a loop."""

MAX_MULTIPLIES = 1 << 16
"""Largest number of multiplications of a product in loops; beyond that BLAS is faster."""

MAX_VECTOR_MULTIPLIES = 1 << 20
"""The same of a product with a vector or a few of them, from which on a second thread pays."""

MIN_MULTIPLIES = 1 << 10
"""Number of multiplications from which tiles are faster than loops."""


MAX_PACKED = 1 << 22
"""Largest number of elements of a matrix that is packed before a loop."""

UNROLLED = 4
"""Number of rows, columns or terms that loops of products compute together."""

ROW, COLUMN, TERM = range(3)


class _Matrices(NamedTuple):
    """Matrices in loops over a stack, rows, columns and terms; the step along a missing axis is 0.

    A `number` stands for all elements.
    """

    address: Address
    offset: int
    stack: Strides
    steps: Strides
    number: str = ""

    def element(self, axis: int = ROW, count: int = 1, shift: int = 0) -> str:
        """Return the element as source, in a loop over every `count`-th of an axis."""
        if self.number:
            return self.number
        steps = [*self.steps]
        steps[axis] *= count
        offset = self.offset + shift * self.steps[axis]
        address = self.address
        return Memory(address.array, offset, [*self.stack, *steps], address.start).element


class LinearAlgebra(Operands):
    """Writer of products of small matrices, and of kernels, which overwrite stacks of them."""

    def matmul(self, op: Op) -> Iterator[str]:
        """Multiply matrices, vectors and stacks of matrices."""
        a, b = op.args
        code = CODES.get(op.out.dtype, "")
        if code[:1] != "f" or not a.dtype == b.dtype == op.out.dtype:
            raise UnfitError("a product of other than floating numbers")
        yield from self._tiled(op) or self._looped(op, code)

    def _looped(self, op: Op, code: str) -> Iterator[str]:
        """Yield the lines of a product in loops, of which the innermost is along memory."""
        a, b = op.args
        rows = a.shape[-2] if len(a.shape) > 1 else 1
        inner, columns = a.shape[-1], b.shape[-1] if len(b.shape) > 1 else 1
        stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        limit = MAX_MULTIPLIES if min(rows, columns) >= MIN_DIMENSION else MAX_VECTOR_MULTIPLIES
        if math.prod(stack) * rows * inner * columns > limit:
            raise LargeError("a large product")
        depth = len(stack)
        if depth + 3 > len(INDICES):
            raise UnfitError("a stack with many axes")
        whole = Value((*stack, rows, columns), op.out.dtype)
        strides = [*contiguous(whole, whole).strides, 0]
        out = _Matrices(self.layout.allocate(op.out), 0, strides[:-3], strides[-3:])
        x = self._matrices(a, stack, (rows, 0, inner))
        y = self._matrices(b, stack, (0, columns, inner))
        if columns == 1 and x.steps[ROW] == 1 < rows:
            body = _combinations(code, out, (y, x), (ROW, rows), inner, depth)
            outer = (COLUMN, columns)
        elif y.steps[COLUMN] in (0, 1) and columns > 1:
            body = _combinations(code, out, (x, y), (COLUMN, columns), inner, depth)
            outer = (ROW, rows)
        elif columns < UNROLLED <= rows:
            body = _sums(code, out, (x, y), (ROW, rows), inner, depth)
            outer = (COLUMN, columns)
        else:
            body = _sums(code, out, (x, y), (COLUMN, columns), inner, depth)
            outer = (ROW, rows)
        axis, size = outer
        yield from nested([*stack], nested([size], body, depth + axis))

    def _tiled(self, op: Op) -> list[str] | None:
        """Return the lines of a product of tiles, None if loops are as fast or it has no plan."""
        a, b = op.args
        if op.out.size * a.shape[-1] < MIN_MULTIPLIES or not self.layout.has_products:
            return None
        if any(self.accesses.uniform_value(v) is not None for v in (a, b)):
            return None
        product = make_product(a.shape, b.shape, a.dtype, b.dtype)
        if product is None:
            return None
        strides_a, strides_b = (self._strides(v, product.stack) for v in (a, b))
        loop = self._loop_without(b)
        is_packed = loop is not None and not product.stack and product.packed_size <= MAX_PACKED
        plan = product.plan(strides_a, strides_b, packed=is_packed)
        if plan is None:
            return None
        layout = self.layout
        second = self._first_address(b)
        if loop is not None and is_packed:
            second = self._packed(product, b, strides_b, loop)
        layout.allocate(op.out)
        repeats = math.prod(loop.length for loop in layout.loops)
        at = layout.products.add(product, plan, repeats)
        addresses = f"{self._first_address(a)}, {second}, {self._first_address(op.out)}"
        return [f"multiply(products, u8({at}), team, {addresses})"]

    def _strides(self, value: Value, stack: Shape) -> list[int]:
        """Return the strides of matrices, with broadcast stack axes."""
        outer = (*stack, *value.shape[-2:])
        return [*self.accesses.of(value).broadcast(outer, value.shape).strides]

    def _first_address(self, value: Value) -> str:
        """Return the address of the first element of a value."""
        access = self.accesses.of(value)
        address = self.layout.address(access.base)
        return f"address({address.array}, {address.start or 'u8(0)'} + u8({access.offset}))"

    def _loop_without(self, value: Value) -> LoopLines | None:
        """Return the outermost loop around that does not change a value, None if all do."""
        base = self.accesses.of(value).base
        return next((loop for loop in self.layout.loops if base not in loop.computed), None)

    def _packed(self, product: Product, b: Value, strides: list[int], loop: LoopLines) -> str:
        """Return the address of a matrix that is packed before a loop."""
        access, layout = self.accesses.of(b), self.layout
        key = access, b.shape
        if key not in loop.packed:
            memory = loop.packed[key] = Value((product.packed_size,), b.dtype)
            layout.allocate(memory)
            at = layout.products.add(product, product.packing_plan(strides), 1)
            where = self._first_address(b)
            addresses = f"{where}, {where}, {self._first_address(memory)}"
            loop.before.append(f"multiply(products, u8({at}), team, {addresses})")
        return self._first_address(loop.packed[key])

    def _matrices(self, value: Value, stack: Shape, sizes: Shape) -> _Matrices:
        """Return a factor, with the size of the axis that it lacks 0."""
        number = self.accesses.uniform_value(value)
        if number is not None:
            text = literal(number, value.dtype) or "0"
            return _Matrices(Address("", ""), 0, (), (0, 0, 0), text)
        access, missing = self.accesses.of(value), sizes.index(0)
        own = access.strides[-2:]
        first, second = own if len(own) == 2 else (0, *own) if missing == 1 else (*own, 0)
        steps = (first, 0, second) if missing == 1 else (0, second, first)
        outer = access._replace(strides=access.strides[:-2])
        strides = outer.broadcast(stack, value.shape[:-2]).strides
        address = self.layout.address(access.base)
        return _Matrices(address, access.offset, strides, steps)

    def solve(self, op: Op) -> Iterator[str]:
        """Solve systems."""
        a, b = op.args
        yield from self._copied(b, op.out)
        yield from self._eliminated(op, a, op.out.shape[:-2] if len(b.shape) > 1 else ())

    def solve_triangular(self, op: Op) -> Iterator[str]:
        """Solve systems with triangular matrices, which are read where they are."""
        (a, b), out = op.args, op.out
        stack, (n, columns) = out.shape[:-2], out.shape[-2:]
        most = MAX_SUBSTITUTED_IN_LOOP if self.layout.loops else MAX_SUBSTITUTED
        if n > MAX_MATRIX and n * n * columns > most:
            raise LargeError("a large matrix")
        if a.dtype != b.dtype:
            raise UnfitError("a matrix of another type")
        yield from self._copied(b, out)
        if self.accesses.uniform_value(a) is not None or min(self.accesses.of(a).strides) < 0:
            work = Value((*stack, n, n), a.dtype)
            yield from self._copied(a, work)
            a = work
        access = self.accesses.of(a)
        row, column = access.strides[-2:]
        access = access._replace(strides=access.strides[:-2])
        strides = [*access.broadcast(stack, a.shape[:-2]).strides]
        address = self.layout.address(access.base)
        start = Memory(address.array, access.offset, strides, address.start).position
        matrix = f"{address.array}, u8({start}), u8({row}), u8({column}), u8({n})"
        flags = f"i8({int(op.kwargs['upper'])}), i8({int(op.kwargs['unit'])})"
        call = f"substitute({matrix}, {self._first(out, stack)}, u8({columns}), {flags})"
        yield from self._checked(call, stack)

    def inverse(self, op: Op) -> Iterator[str]:
        """Invert matrices."""
        (a,), out = op.args, op.out
        *stack, n, _ = out.shape
        address, one = self.layout.allocate(out), f"{CODES[out.dtype]}(1)"
        yield from self.layout.fill_lines(out, f"{CODES[out.dtype]}(0)")
        strides = [*contiguous(out, out).strides[:-2], n + 1]
        diagonal = Memory(address.array, 0, strides, address.start).element
        yield from nested([*stack, n], [f"{diagonal} = {one}"])
        yield from self._eliminated(op, a, op.out.shape[:-2])

    def slogdet(self, op: Op) -> Iterator[str]:
        """Compute signs and logarithms of determinants."""
        (a,), (sign, log) = op.args, op.outs
        for out in (sign, log):
            self.layout.allocate(out)
        if not a.size:
            for out, number in ((sign, 1), (log, 0)):
                yield from self.layout.fill_lines(out, f"{CODES[out.dtype]}({number})")
            return
        work = Value((*sign.shape, *a.shape[-2:]), a.dtype)
        yield from self._factorised(a, work)
        first = ", ".join(self._first(value, sign.shape) for value in (sign, log))
        call = f"log_determinant({self._work(work)}, {first})"
        yield from nested(list(sign.shape), [call])

    def cholesky(self, op: Op) -> Iterator[str]:
        """Compute Cholesky factors."""
        (a,) = op.args
        if op.kwargs.get("upper"):
            raise UnfitError("an upper factor")
        yield from self._factorised(a, op.out)
        yield from self._checked(f"cholesky({self._work(op.out)})", a.shape[:-2])

    def qr(self, op: Op) -> Iterator[str]:
        """Compute QR decompositions."""
        (a,) = op.args
        *stack, m, n = a.shape
        if op.kwargs.get("mode", "reduced") != "reduced" and m > n:
            raise UnfitError("a complete basis")
        work = Value(a.shape, a.dtype)
        factors = Value((*stack, min(m, n)), a.dtype)
        yield from self._factorised(a, work)
        for value in (*op.outs, factors):
            self.layout.allocate(value)
        first, *rest = [self._first(value, tuple(stack)) for value in (work, *op.outs, factors)]
        call = f"householder({first}, u8({m}), u8({n}), {', '.join(rest)})"
        yield from self._checked(call, tuple(stack))

    def _eliminated(self, op: Op, a: Value, stack: Shape) -> Iterator[str]:
        """Replace the right sides in the output by the solutions."""
        work = Value((*stack, *a.shape[-2:]), a.dtype)
        yield from self._factorised(a, work)
        columns = f"u8({math.prod(op.out.shape[len(stack) + 1 :])})"
        call = f"eliminate({self._work(work)}, {self._first(op.out, stack)}, {columns})"
        yield from self._checked(call, stack)

    def _factorised(self, x: Value, to: Value) -> Iterator[str]:
        """Copy matrices to a value in which they are factorised."""
        if max(x.shape[-2:]) > (MAX_MATRIX_IN_LOOP if self.layout.loops else MAX_MATRIX):
            raise LargeError("a large matrix")
        yield from self._copied(x, to)

    def _copied(self, x: Value, to: Value) -> Iterator[str]:
        """Copy matrices, broadcast over the stack, to a value."""
        if not x.size or CODES.get(x.dtype, "")[:1] != "f":
            raise UnfitError("a matrix of another type")
        if len(to.shape) > len(INDICES):
            raise UnfitError("a stack with many axes")
        address = self.layout.allocate(to)
        region = contiguous(to, to)
        yield from self.layout.move_lines(x, self.accesses, address, region, to.shape)

    def _checked(self, call: str, stack: Shape) -> Iterator[str]:
        """Call a kernel for each matrix; NumPy computes if it fails."""
        failure = self.layout.names.another("failure")
        lines = [f"{failure} = {call}", *self.layout.check(f"{failure} != i8(0)")]
        yield from nested(list(stack), lines)

    def _first(self, value: Value, stack: Shape) -> str:
        """Return the array and the index of the first element in loops over the stack."""
        address, strides = self.layout.address(value), contiguous(value, value).strides
        start = Memory(address.array, 0, list(strides[: len(stack)]), address.start).position
        return f"{address.array}, u8({start})"

    def _work(self, value: Value) -> str:
        """Return array, index and number of rows of a matrix in loops over the stack."""
        return f"{self._first(value, value.shape[:-2])}, u8({value.shape[-1]})"


def _combinations(
    code: str,
    out: _Matrices,
    factors: tuple[_Matrices, _Matrices],
    along: tuple[int, int],
    inner: int,
    depth: int,
) -> list[str]:
    """Return the lines that add multiples of rows of the second factor, or of columns."""
    axis, size = along
    numbers, vectors = factors

    def lines(count: int, shift: int) -> list[str]:
        text = out.element()
        given = []
        for q in range(count):
            given.append(f"factor_{code}_{q} = {numbers.element(TERM, count, shift + q)}")
            vector = vectors.element(TERM, count, shift + q)
            text = f"times_plus({text}, factor_{code}_{q}, {vector})"
        return [*given, *nested([size], [f"{out.element()} = {text}"], depth + axis)]

    zeros = nested([size], [f"{out.element()} = {code}(0)"], depth + axis)
    return [*zeros, *_unrolled(inner, lines, depth + TERM)]


def _sums(
    code: str,
    out: _Matrices,
    factors: tuple[_Matrices, _Matrices],
    along: tuple[int, int],
    inner: int,
    depth: int,
) -> list[str]:
    """Return the lines that sum the products of several rows, or columns, with one vector."""
    axis, size = along
    x, y = factors

    def lines(count: int, shift: int) -> list[str]:
        places = [(f"total_{code}_{q}", axis, count, shift + q) for q in range(count)]
        terms = [
            f"{total} = times_plus({total}, {x.element(*place)}, {y.element(*place)})"
            for total, *place in places
        ]
        return [
            *(f"{total} = {code}(0)" for total, *_ in places),
            *nested([inner], terms, depth + TERM),
            *(f"{out.element(*place)} = {total}" for total, *place in places),
        ]

    return list(_unrolled(size, lines, depth + axis))


def _unrolled(size: int, lines: Callable[[int, int], list[str]], depth: int) -> Iterator[str]:
    """Yield a loop of which an iteration has several of the given lines, and one for the rest."""
    count = UNROLLED if size >= 2 * UNROLLED else 1
    yield from nested([size // count], lines(count, 0), depth)
    if size % count:
        yield from nested([size % count], lines(1, size - size % count), depth)
