"""Source of dense linear algebra of small matrices, by the functions of `dense_kernels`."""

from __future__ import annotations

from collections.abc import Iterator

from chainrule.compiler.ir.program import Op, Shape, Value
from chainrule.compiler.native.indexing_codegen import Operands, contiguous, nested
from chainrule.compiler.native.layout import LargeError, UnfitError
from chainrule.compiler.native.loop_nest import INDICES, Memory
from chainrule.compiler.native.scalar_codegen import CODES

MAX_MATRIX = 32
"""Largest number of rows of a matrix that is factorised; beyond that, LAPACK is faster."""


class LinearAlgebra(Operands):
    """Writer of operations on stacks of small matrices, which the kernels overwrite."""

    def solve(self, op: Op) -> Iterator[str]:
        """Solve systems."""
        a, b = op.args
        if len(b.shape) == 1:
            raise UnfitError("a system with one vector")
        yield from self._copied(b, op.out)
        yield from self._eliminated(op, a)

    def solve_triangular(self, op: Op) -> Iterator[str]:
        """Solve systems with triangular matrices."""
        a, b = op.args
        flags = f", i8({int(op.kwargs['upper'])}), i8({int(op.kwargs['unit'])})"
        yield from self._copied(b, op.out)
        yield from self._eliminated(op, a, "substitute", flags)

    def inverse(self, op: Op) -> Iterator[str]:
        """Invert matrices."""
        (a,), out = op.args, op.out
        *stack, n, _ = out.shape
        address, one = self.layout.allocate(out), f"{CODES[out.dtype]}(1)"
        yield from self.layout.fill_lines(out, f"{CODES[out.dtype]}(0)")
        strides = [*contiguous(out, out).strides[:-2], n + 1]
        diagonal = Memory(address.array, 0, strides, address.start).element
        yield from nested([*stack, n], [f"{diagonal} = {one}"])
        yield from self._eliminated(op, a)

    def slogdet(self, op: Op) -> Iterator[str]:
        """Compute signs and logarithms of determinants."""
        (a,), (sign, log) = op.args, op.outs
        for out in (sign, log):
            self.layout.allocate(out)
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
        self, op: Op, a: Value, kernel: str = "eliminate", flags: str = ""
    ) -> Iterator[str]:
        """Replace the right sides in the output by the solutions."""
        stack = op.out.shape[:-2]
        work = Value((*stack, *a.shape[-2:]), a.dtype)
        yield from self._copied(a, work)
        columns = f"u8({op.out.shape[-1]}){flags}"
        call = f"{kernel}({self._work(work)}, {self._first(op.out, stack)}, {columns})"
        yield from self._checked(call, stack)

    def _copied(self, x: Value, to: Value) -> Iterator[str]:
        """Copy matrices, broadcast over the stack, to a value."""
        if x.shape[-2] > MAX_MATRIX:
            raise LargeError("a large matrix")
        if not x.shape[-2] or CODES.get(x.dtype, "")[:1] != "f":
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
