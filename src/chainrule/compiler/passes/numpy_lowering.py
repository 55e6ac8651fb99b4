"""What NumPy does quicker in other words: the last pass before NumPy source is written.

`benchmarks/kernels.py` and DESIGN 7 have measurements. A sum along rows of 3 to 4096 numbers is
two to fifty times as quick as a product with ones, which BLAS does; it rounds otherwise.
"""

from __future__ import annotations

from typing import Any

from chainrule.compiler.ir.abstract_eval import abstract_eval
from chainrule.compiler.ir.program import Op, Program, Value

_MANY = 1 << 12
"""From so many elements on, a product with ones pays."""

_ROW = range(2, 4097)
"""So many numbers are added in a row: more would lose digits."""


def lowered(program: Program) -> Program:
    """Return the program with NumPy's quickest form of each line."""
    ops: list[Op] = []
    ones: dict[Any, Value] = {}
    for op in program.ops:
        parts = _as_product(op) if op.function == "np.sum" else None
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


def _as_product(op: Op) -> tuple[Value, int, tuple[int, ...]] | None:
    """Return what is summed, along which axis and to which shape, where a product is quicker."""
    x = op.args[0]
    axis = op.kwargs.get("axis")
    if isinstance(axis, tuple):
        axis = axis[0] if len(axis) == 1 else None
    if axis is None or x.dtype.char not in "fd" or x.size < _MANY:
        return None
    axis %= len(x.shape)
    if axis < len(x.shape) - 2 or len(x.shape) == 1 or x.shape[axis] not in _ROW:
        return None
    return x, axis, op.out.shape


def _op(function: str, *args: Any) -> Op:
    ((shape, dtype),) = abstract_eval(function, args, {}).types
    return Op(function, args, {}, (Value(shape, dtype),))
