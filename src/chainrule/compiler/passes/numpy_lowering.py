"""Lowering for NumPy: the last pass before NumPy source is generated picks NumPy's fastest forms.

A sum along an axis of 2 to 4096 elements is two to fifty times as fast as a BLAS product with ones,
which rounds differently. Measurements are in `benchmarks/kernels.py` and DESIGN 7.
"""

from __future__ import annotations

import math
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
    reshaped = {op.out: op.args[0] for op in program.ops if op.function == "np.reshape"}
    for op in program.ops:
        parts = _match_sum(op, reshaped) if op.function == "np.sum" else None
        if parts is None:
            ops.append(op)
            continue
        x, axes = parts
        for axis in axes:
            n, dtype = x.shape[axis], x.dtype
            if (n, dtype) not in ones:
                ops.append(_op("np.ones", (n,), dtype))
                ones[n, dtype] = ops[-1].out
            factors = (x, ones[n, dtype]) if axis == len(x.shape) - 1 else (ones[n, dtype], x)
            ops.append(_op("np.matmul", *factors))
            x = ops[-1].out
        if x.shape == op.out.shape:
            ops[-1] = Op("np.matmul", factors, {}, op.outs, op.location)
        else:
            ops.append(Op("np.reshape", (x, op.out.shape), {}, op.outs))
    used = {v for op in ops for v in op.inputs}.union(program.results(), program.free_values())
    return program.with_ops([op for op in ops if op.function != "np.reshape" or op.out in used])


def _match_sum(op: Op, reshaped: dict[Value, Value]) -> tuple[Value, list[int]] | None:
    """Return an operand and its axes, one after the other, if the sum is faster as products.

    A sum over all axes but the last, as in the gradient of a bias, is one over the rows of the
    matrix that `reshaped` made an array of examples, or over the last but one axis first.
    """
    x = op.args[0]
    axes = op.kwargs.get("axis")
    if axes is None or x.dtype.char not in "fd" or x.size < _MIN_SUM_SIZE or len(x.shape) == 1:
        return None
    last = len(x.shape) - 1
    axes = sorted(axis % (last + 1) for axis in (axes if isinstance(axes, tuple) else (axes,)))
    if not axes:
        return None
    if len(axes) > 1 and axes == list(range(last)):
        matrix = reshaped.get(x)
        if matrix is not None and matrix.shape == (math.prod(x.shape[:-1]), x.shape[-1]):
            x, axes = matrix, [0]
        elif last == 2:
            axes = [1, 0]
    if (len(axes) > 1 and axes != [1, 0]) or axes[0] < len(x.shape) - 2:
        return None
    return (x, axes) if all(x.shape[axis] in _SUM_LENGTHS for axis in axes) else None


def _op(function: str, *args: Any) -> Op:
    ((shape, dtype),) = abstract_eval(function, args, {}).types
    return Op(function, args, {}, (Value(shape, dtype),))
