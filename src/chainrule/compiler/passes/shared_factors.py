"""Sharing of factors: operations on one matrix, or on its transpose, factorise it once.

`np.linalg` factorises in each call. Where several operations of a program have the same matrix,
such as a solution, the logarithm of the determinant and their derivatives, the matrix is factorised
where the first of them is, and all of them use the factors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from chainrule.backend import numpy_xp
from chainrule.compiler.ir.program import Op, Program, Value


class _Use(NamedTuple):
    """An operation on a matrix, or on its transpose."""

    op: Op
    matrix: Value
    transposed: bool


def share_factors(program: Program) -> Program:
    """Return the program with shared LU factors of large matrices."""
    made = {v: op for op in program.ops for v in op.outs}
    uses: dict[Value, list[_Use]] = {}
    for op in program.ops:
        use = _use(op, made)
        if use is not None:
            uses.setdefault(use.matrix, []).append(use)
    shared = {use.op: use for found in uses.values() if len(found) > 1 for use in found}
    if not shared:
        return program
    factors: dict[Value, tuple[Value, ...]] = {}
    ops: list[Op] = []
    for op in program.ops:
        use = shared.get(op)
        if use is None:
            ops.append(op)
            continue
        a = use.matrix
        if a not in factors:
            factors[a] = (Value(a.shape, a.dtype), Value(a.shape[:1], np.intp))
            ops.append(Op("kernels.lu_factor", (a,), {}, factors[a], op.location))
        ops += _by_factors(use, factors[a])
    return program.with_ops(ops)


def _use(op: Op, made: dict[Value, Op]) -> _Use | None:
    """Return the use of a matrix whose factors can be shared, if the operation is one."""
    if op.function not in _SHARING or op.kwargs:
        return None
    a = op.args[0]
    source = made.get(a)
    transposed = source is not None and _is_transpose(source)
    if transposed and source is not None:
        a = source.args[0]
    if op.function == "np.linalg.solve":
        b = op.args[1]
        if not isinstance(b, Value) or len(b.shape) != 2 or b.dtype != a.dtype:
            return None
    return _Use(op, a, transposed) if numpy_xp.has_lu_factors(a.shape, a.dtype) else None


_SHARING = frozenset(["np.linalg.solve", "np.linalg.inv", "np.linalg.slogdet", "kernels.inverses"])


def _is_transpose(op: Op) -> bool:
    return op.function == "np.permute_dims" and tuple(op.args[1]) == (1, 0)


def _by_factors(use: _Use, factors: tuple[Value, ...]) -> Iterator[Op]:
    """Yield the operations that compute the result from the factors."""
    op, a = use.op, use.matrix
    if op.function == "np.linalg.solve":
        settings = {"transposed": use.transposed}
        yield Op("kernels.lu_solve", (*factors, op.args[1]), settings, op.outs, op.location)
    elif op.function == "np.linalg.slogdet":
        yield Op("kernels.lu_slogdet", factors, {}, op.outs, op.location)
    else:
        settings = {"transposed": use.transposed, "lenient": op.function == "kernels.inverses"}
        yield Op("kernels.lu_inverse", (*factors, a), settings, op.outs, op.location)
