"""Source of dense linear algebra of small matrices, by the functions of `dense_kernels`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chainrule.compiler.ir.program import Op, Shape, Value
from chainrule.compiler.native.indexing_codegen import Operands, contiguous, nested
from chainrule.compiler.native.layout import UnfitError
from chainrule.compiler.native.loop_nest import INDICES, Memory
from chainrule.compiler.native.scalar_codegen import CODES

MAX_MATRIX = 32
"""Largest number of rows of a matrix that is factorised; beyond that, LAPACK is faster."""


class LinearAlgebra(Operands):
    """Writer of operations on small matrices."""

    def solve(self, op: Op) -> Iterator[str]:
        """Solve systems of small matrices."""
        a, b = op.args
        if len(b.shape) == 1:
            raise UnfitError("a system with one vector")
        yield from self._eliminated(op, a, b)

    def inverse(self, op: Op) -> Iterator[str]:
        """Invert small matrices."""
        yield from self._eliminated(op, op.args[0], None)

    def _eliminated(self, op: Op, a: Value, b: Value | None) -> Iterator[str]:
        n, columns = a.shape[-1], op.out.shape[-1]
        work, stack, lines = self._copied_matrix(a, op.out.shape[:-2])
        self.layout.allocate(op.out)
        loops = len(stack)
        row, column = INDICES[loops], INDICES[loops + 1]
        axes = [*range(loops + 2)]
        target = self.element_at(op.out, op.out.shape, axes)
        code = CODES[op.out.dtype]
        one = f"{code}(1) if {row} == {column} else {code}(0)"
        source = one if b is None else self.element_at(b, op.out.shape, axes)
        lines += [f"for {row} in range(u8({n})):", f"    for {column} in range(u8({columns})):"]
        lines.append(f"        {target} = {source}")
        out = self._matrix_start(op.out, loops)
        self.layout.calls.add("eliminate")
        call = f"eliminate({work}, {out}, u8({n}), u8({columns}))"
        lines += self._checked_call(call)
        yield from nested(list(stack), lines)

    def _checked_call(self, call: str) -> list[str]:
        name = self.layout.names.another("failure")
        return [f"{name} = {call}", *self.layout.check(f"{name} != i8(0)")]

    def _copied_matrix(self, a: Value, stack: Shape) -> tuple[str, Shape, list[str]]:
        """Return a work matrix as arguments, the stack, and the lines that copy a matrix to it."""
        n = a.shape[-1]
        if not 0 < n <= MAX_MATRIX or (a.dtype != np.dtype("f4") and a.dtype != np.dtype("f8")):
            raise UnfitError("a large matrix, or one of another type")
        if len(stack) + 2 > len(INDICES):
            raise UnfitError("a stack with many axes")
        work = Value((n, n), a.dtype)
        address = self.layout.allocate(work)
        row, column = INDICES[len(stack)], INDICES[len(stack) + 1]
        source = self.element_at(a, (*stack, n, n), [*range(len(stack) + 2)])
        strides = [0] * len(stack) + [n, 1]
        target = Memory(address.array, 0, strides, address.start).element
        lines = [f"for {row} in range(u8({n})):", f"    for {column} in range(u8({n})):"]
        lines.append(f"        {target} = {source}")
        return f"{address.array}, {address.start or 'u8(0)'}", stack, lines

    def _matrix_start(self, value: Value, loops: int) -> str:
        """Return the array and the index of the first element in loops over the first axes."""
        address, access = self.layout.address(value), contiguous(value, value)
        start = Memory(address.array, 0, list(access.strides[:loops]), address.start).position
        return f"{address.array}, u8({start})"

    def slogdet(self, op: Op) -> Iterator[str]:
        """Compute signs and logarithms of determinants."""
        (a,), (sign, log) = op.args, op.outs
        work, stack, lines = self._copied_matrix(a, sign.shape)
        for out in (sign, log):
            self.layout.allocate(out)
        self.layout.calls.add("log_determinant")
        outs = f"{self._matrix_start(sign, len(stack))}, {self._matrix_start(log, len(stack))}"
        lines.append(f"log_determinant({work}, u8({a.shape[-1]}), {outs})")
        yield from nested(list(stack), lines)

    def cholesky(self, op: Op) -> Iterator[str]:
        """Compute Cholesky factors."""
        (a,) = op.args
        n = a.shape[-1]
        if op.kwargs.get("upper"):
            raise UnfitError("an upper factor")
        if not 0 < n <= MAX_MATRIX or CODES.get(a.dtype, "")[:1] != "f":
            raise UnfitError("a large matrix, or one of another type")
        yield from self.layout.copy_lines(a, self.accesses, self.layout.allocate(op.out))
        stack = a.shape[:-2]
        self.layout.calls.add("cholesky")
        call = f"cholesky({self._matrix_start(op.out, len(stack))}, u8({n}))"
        yield from nested(list(stack), self._checked_call(call))
