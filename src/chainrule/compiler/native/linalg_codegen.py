"""Source of dense linear algebra of small matrices, by the functions of `dense_kernels`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from chainrule.compiler.ir.program import Op, Shape, Value
from chainrule.compiler.native.indexing_codegen import Operands, contiguous, nested
from chainrule.compiler.native.layout import LargeError, UnfitError
from chainrule.compiler.native.loop_nest import INDICES, Memory
from chainrule.compiler.native.scalar_codegen import CODES, literal

MAX_MATRIX = 32
"""Largest number of rows of a matrix that is factorised; beyond that, LAPACK is faster."""


MAX_MULTIPLIES = 1 << 16
"""Largest number of multiplications of a product; beyond that BLAS is faster."""


class LinearAlgebra(Operands):
    """Writer of products of small matrices, and of kernels, which overwrite stacks of them."""

    def matmul(self, op: Op) -> Iterator[str]:
        """Multiply matrices, vectors and stacks of matrices."""
        a, b = op.args
        code = CODES.get(op.out.dtype, "")
        if code[:1] != "f" or not a.dtype == b.dtype == op.out.dtype:
            raise UnfitError("a product of other than floating numbers")
        rows = a.shape[-2] if len(a.shape) > 1 else 1
        inner, columns = a.shape[-1], b.shape[-1] if len(b.shape) > 1 else 1
        stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        if math.prod(stack) * rows * inner * columns > MAX_MULTIPLIES:
            raise LargeError("a large product")
        depth = len(stack)
        if depth + 3 > len(INDICES):
            raise UnfitError("a stack with many axes")
        address = self.layout.allocate(op.out)
        x, x_steps = self._factor(a, stack, (rows, 0, inner))
        y, y_steps = self._factor(b, stack, (0, columns, inner))
        whole = Value((*stack, rows, columns), op.out.dtype)
        out = Memory(address.array, 0, [*contiguous(whole, whole).strides], address.start).element
        total, factor = f"total_{code}", f"factor_{code}"
        if columns == 1 and x_steps[0] == 1 < rows:  # neighbours in memory go innermost
            inside = nested([rows], [f"{out} = times_plus({out}, {factor}, {x})"], depth)
            body = [*nested([rows], [f"{out} = {code}(0)"], depth)]
            body += nested([inner], [f"{factor} = {y}", *inside], depth + 2)
            yield from nested(list(stack), [*nested([columns], body, depth + 1)])
            return
        if y_steps[1] in (0, 1) and columns > 1:
            body = [*nested([columns], [f"{out} = {code}(0)"], depth + 1)]
            inside = nested([columns], [f"{out} = times_plus({out}, {factor}, {y})"], depth + 1)
            body += nested([inner], [f"{factor} = {x}", *inside], depth + 2)
        else:
            sums = nested([inner], [f"{total} = times_plus({total}, {x}, {y})"], depth + 2)
            body = [
                *nested([columns], [f"{total} = {code}(0)", *sums, f"{out} = {total}"], depth + 1)
            ]
        yield from nested([*stack, rows], body)

    def _factor(self, value: Value, stack: Shape, sizes: Shape) -> tuple[str, list[int]]:
        """Return an element of a factor in loops over the stack, rows, columns and inner axis.

        The size of the axis that it lacks is 0. The other result are the strides of these three.
        """
        number = self.accesses.uniform_value(value)
        if number is not None:
            return literal(number, value.dtype) or "0", [0, 0, 0]
        access, missing = self.accesses.of(value), sizes.index(0)
        own = access.strides[-2:]
        first, second = own if len(own) == 2 else (0, *own) if missing == 1 else (*own, 0)
        steps = [first, 0, second] if missing == 1 else [0, second, first]
        outer = access._replace(strides=access.strides[:-2])
        strides = outer.broadcast(stack, value.shape[:-2]).strides
        address = self.layout.address(access.base)
        element = Memory(address.array, access.offset, [*strides, *steps], address.start).element
        return element, steps

    def solve(self, op: Op) -> Iterator[str]:
        """Solve systems."""
        a, b = op.args
        yield from self._copied(b, op.out)
        yield from self._eliminated(op, a, op.out.shape[:-2] if len(b.shape) > 1 else ())

    def solve_triangular(self, op: Op) -> Iterator[str]:
        """Solve systems with triangular matrices."""
        a, b = op.args
        flags = f", i8({int(op.kwargs['upper'])}), i8({int(op.kwargs['unit'])})"
        yield from self._copied(b, op.out)
        yield from self._eliminated(op, a, op.out.shape[:-2], "substitute", flags)

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
        yield from self._copied(a, work)
        first = ", ".join(self._first(value, sign.shape) for value in (sign, log))
        call = f"log_determinant({self._work(work)}, {first})"
        yield from nested(list(sign.shape), [call])

    def cholesky(self, op: Op) -> Iterator[str]:
        """Compute Cholesky factors."""
        (a,) = op.args
        if op.kwargs.get("upper"):
            raise UnfitError("an upper factor")
        yield from self._copied(a, op.out)
        yield from self._checked(f"cholesky({self._work(op.out)})", a.shape[:-2])

    def _eliminated(
        self, op: Op, a: Value, stack: Shape, kernel: str = "eliminate", flags: str = ""
    ) -> Iterator[str]:
        """Replace the right sides in the output by the solutions."""
        work = Value((*stack, *a.shape[-2:]), a.dtype)
        yield from self._copied(a, work)
        columns = f"u8({math.prod(op.out.shape[len(stack) + 1 :])}){flags}"
        call = f"{kernel}({self._work(work)}, {self._first(op.out, stack)}, {columns})"
        yield from self._checked(call, stack)

    def _copied(self, x: Value, to: Value) -> Iterator[str]:
        """Copy matrices, broadcast over the stack, to a value."""
        if max(x.shape[-2:-1] or x.shape) > MAX_MATRIX:
            raise LargeError("a large matrix")
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
