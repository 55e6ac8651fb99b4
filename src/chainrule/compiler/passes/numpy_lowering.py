"""Lowering for NumPy: the last pass before NumPy source is generated picks NumPy's fastest forms.

A sum along an axis of 2 to 4096 elements is two to fifty times as fast as a BLAS product with ones,
which rounds differently. Measurements are in `benchmarks/kernels.py` and DESIGN 7.
"""

from __future__ import annotations

from typing import Any

from chainrule.compiler.ir.abstract_eval import abstract_eval
from chainrule.compiler.ir.program import Op, Program, Value

_MIN_SUM_SIZE = 1 << 12
"""Number of summed elements from which a product with ones pays."""

_SUM_LENGTHS = range(2, 4097)
"""Lengths of the summed axis: BLAS adds sequentially, so longer sums would lose digits."""


def lower_to_numpy(program: Program) -> Program:
    """Return the program with NumPy's fastest form of each op."""
    ops: list[Op] = []
    ones: dict[Any, Value] = {}
    for op in program.ops:
        parts = _match_sum(op) if op.function == "np.sum" else None
        if parts is None:
            ops.append(op)
            continue
        x, axis, shape = parts
        n, dtype = x.shape[axis], x.dtype
        if (n, dtype) not in ones:
            ops.append(_op("np.ones", (n,), dtype))
            ones[n, dtype] = ops[-1].out
        factors = (x, ones[n, dtype]) if axis == len(x.shape) - 1 else (ones[n, dtype], x)
        product = _op("np.matmul", *factors)
        if product.out.shape == shape:
            ops.append(Op("np.matmul", factors, {}, op.outs, op.location))
        else:
            ops += [product, Op("np.reshape", (product.out, shape), {}, op.outs)]
    return program.with_ops(ops)


def _match_sum(op: Op) -> tuple[Value, int, tuple[int, ...]] | None:
    """Return operand, axis and result shape of a sum that is faster as a product, else None."""
    x = op.args[0]
    axis = op.kwargs.get("axis")
    if isinstance(axis, tuple):
        axis = axis[0] if len(axis) == 1 else None
    if axis is None or x.dtype.char not in "fd" or x.size < _MIN_SUM_SIZE:
        return None
    axis %= len(x.shape)
    if axis < len(x.shape) - 2 or len(x.shape) == 1 or x.shape[axis] not in _SUM_LENGTHS:
        return None
    return x, axis, op.out.shape


def _op(function: str, *args: Any) -> Op:
    ((shape, dtype),) = abstract_eval(function, args, {}).types
    return Op(function, args, {}, (Value(shape, dtype),))
