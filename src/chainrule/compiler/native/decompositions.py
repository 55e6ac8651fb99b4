"""Decompositions: operations of small programs as others that have machine code.

A rule is a function of arrays in a namespace, as the kernels are; it runs once on values that have
a shape and a dtype only, and what it calls is recorded. NumPy runs the operation undecomposed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.compiler.ir.program import Op, Program, map_values, same_type
from chainrule.compiler.native.fusion_groups import loop_shape
from chainrule.compiler.native.op_recorder import RecordedArray, Recorder
from chainrule.compiler.native.scalar_codegen import CODES
from chainrule.compiler.passes.regions import with_regions
from chainrule.kernels import elementwise, matrices, normal

Rule = Callable[..., Any]


def decompose(program: Program) -> Program:
    """Return a program, with its regions, without operations that have a rule."""
    ops: list[Op] = []
    for op in program.ops:
        _append(op, ops)
    return program.with_ops(ops)


def decompose_for_loops(program: Program) -> Program:
    """Return a program in which operations are decomposed that can be a part of loops then."""
    ops: list[Op] = []
    for op in program.ops:
        if op.regions:
            ops.append(with_regions(op, tuple(map(decompose_for_loops, op.regions))))
            continue
        rule = RULES.get(op.function)
        parts = None if rule is None else _recorded(rule, op)
        ops += parts if parts and _are_loops(parts, op) else [op]
    return program.with_ops(ops)


def _are_loops(parts: list[Op], op: Op) -> bool:
    """Return whether one loop nest can compute all parts of an operation."""
    shape = op.args[0].shape if op.function == "np.vecdot" else op.out.shape
    return all(loop_shape(part) == shape for part in parts)


def _append(op: Op, ops: list[Op]) -> None:
    rule = RULES.get(op.function)
    parts = None if rule is None else _recorded(rule, op)
    if op.regions:
        regions = tuple(map(decompose, op.regions))
        op = Op(op.function, op.args, op.kwargs, op.outs, op.location, regions)
    if parts is None:
        ops.append(op)
    for part in parts or ():
        _append(part, ops)


def _recorded(rule: Rule, op: Op) -> list[Op] | None:
    """Return the operations that a rule calls, or None if it does not hold for the arguments."""
    if any(v.dtype not in CODES for v in (*op.inputs, *op.outs)):
        return None
    ops: list[Op] = []
    args = map_values(op.args, lambda value: RecordedArray(value, ops))
    found = rule(Recorder(ops), *args, **op.kwargs)
    if found is NotImplemented or not same_type(found.value, op.out):
        return None
    last = found.value
    if not any(last in p.outs for p in ops):  # an operand
        last = Recorder(ops).call("np.reshape", found, op.out.shape).value
    return [
        Op(p.function, p.args, p.kwargs, op.outs if last in p.outs else p.outs, op.location)
        for p in ops
    ]


# --- rules ----------------------------------------------------------------------------------------


def _roll(xp: Any, x: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return _roll(xp, x.reshape((x.size,)), shift, 0).reshape(x.shape)
    shifts, axes = np.broadcast_arrays(shift, axis)
    for amount, along in zip(shifts.ravel().tolist(), axes.ravel().tolist(), strict=True):
        along %= x.ndim
        n = x.shape[along]
        if n and amount % n:
            lead, cut = (slice(None),) * along, n - amount % n
            parts = x[(*lead, slice(cut, n))], x[(*lead, slice(0, cut))]
            x = xp.concat(parts, axis=along)
    return x


def _vecdot(xp: Any, x: Any, y: Any, /, *, axis: int = -1) -> Any:
    return xp.sum(x * y, axis=axis)


def _det(xp: Any, x: Any) -> Any:
    """Return sign times exp of the logarithm, as NumPy does."""
    sign, log = xp.call("np.linalg.slogdet", x)
    return sign * xp.exp(log)


def _norm_1(xp: Any, x: Any) -> Any:
    return xp.max(xp.sum(abs(x), axis=-2), axis=-1)


def _cofactors(xp: Any, x: Any) -> Any:
    """Return det(x) x⁻ᵀ where that is accurate; elsewhere NumPy computes."""
    inverse = xp.call("np.linalg.inv", x)
    condition = _norm_1(xp, x) * _norm_1(xp, inverse)
    xp.check(xp.all(condition < matrices.MAX_CONDITION))
    axes = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    return _det(xp, x)[..., None, None] * xp.permute_dims(inverse, axes)


def _cholesky(xp: Any, x: Any, /, *, upper: bool = False) -> Any:
    if not upper:
        return NotImplemented
    axes = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    lower = xp.call("np.linalg.cholesky", xp.permute_dims(x, axes))
    return xp.permute_dims(lower, axes)


def _p_norm(xp: Any, x: Any, *, p: float, axis: Any, keepdims: bool) -> Any:
    """Return (Σ |x|ᵖ)^(1/p); if powers over- or underflow, that of scaled elements."""
    if x.dtype.kind != "f":
        return NotImplemented
    if x.size == 0:
        return xp.sum(abs(x), axis=axis, keepdims=keepdims)

    def root(total: Any) -> Any:
        return xp.sqrt(total) if p == 2 else total ** (1 / p)

    sizes, info = abs(x), np.finfo(x.dtype)
    total = xp.sum(x * x if p == 2 else sizes**p, axis=axis, keepdims=True)
    tiny, largest = float(info.tiny / info.eps), float(info.max)
    is_direct = (xp.min(total) > tiny) & (xp.max(total) <= largest)
    scale = (xp.max if p > 0 else xp.min)(sizes, axis=axis, keepdims=True)
    scale = xp.where((scale > 0) & xp.isfinite(scale), scale, 1.0)
    scaled = scale * root(xp.sum((sizes / scale) ** p, axis=axis, keepdims=True))
    found = xp.where(is_direct, root(total), scaled)
    reduced = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    dropped = () if keepdims else {a % x.ndim for a in reduced}
    return found.reshape(tuple([n for a, n in enumerate(found.shape) if a not in dropped]))


def _divided(xp: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return quotient and remainder with the sign of the divisor, as NumPy's npy_divmod does."""
    rest = xp.fmod(x, y)
    differs = (rest != 0) & ((rest < 0) != (y < 0))
    quotient = (x - rest) / y
    quotient = xp.where(differs, quotient - 1.0, quotient)
    floor = xp.floor(quotient)
    floor = xp.where(quotient - floor > 0.5, floor + 1.0, floor)
    quotient = xp.where(quotient != 0, floor, xp.copysign(0.0, x / y))
    signed = xp.where(differs, rest + y, xp.where(rest != 0, rest, xp.copysign(rest, y)))
    return quotient, signed


def _remainder(xp: Any, x: Any, y: Any) -> Any:
    return _divided(xp, x, y)[1] if _is_floating(x, y) else NotImplemented


def _floor_divide(xp: Any, x: Any, y: Any) -> Any:
    return xp.where(y == 0, x / y, _divided(xp, x, y)[0]) if _is_floating(x, y) else NotImplemented


def _is_floating(*operands: Any) -> bool:
    types = [z.dtype if isinstance(z, RecordedArray) else z for z in operands]
    return bool(np.result_type(*types).kind == "f")


def _round(xp: Any, x: Any, decimals: int = 0) -> Any:
    if x.dtype.kind != "f":
        return x if decimals >= 0 else NotImplemented
    if decimals == 0:
        return xp.rint(x)
    power = 10.0 ** abs(decimals)
    return xp.rint(x * power) / power if decimals > 0 else xp.rint(x / power) * power


def _nan_to_num(
    xp: Any, x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    if x.dtype.kind != "f":
        return x
    info = np.finfo(x.dtype)
    highest = float(info.max) if posinf is None else posinf
    lowest = float(info.min) if neginf is None else neginf
    found = xp.where(x == math.inf, highest, xp.where(x == -math.inf, lowest, x))
    return xp.where(x == x, found, nan)


def _heaviside(xp: Any, x: Any, y: Any) -> Any:
    return xp.where(x == 0, y, xp.where(x < 0, 0.0, xp.where(x > 0, 1.0, x)))


def _isin(xp: Any, x: Any, tested: Any, *, invert: bool = False, **_: Any) -> Any:
    if not isinstance(tested, RecordedArray) or x.dtype != tested.dtype:
        return NotImplemented
    found = xp.any(x[..., None] == tested.reshape((tested.size,)), axis=-1)
    return ~found if invert else found


def _normal_cdf(xp: Any, x: Any) -> Any:
    """Return Φ(x) by the formulas of `kernels.normal`."""
    if x.dtype.itemsize > 4:
        return 0.5 * xp.call("kernels.erfc", x * -0.7071067811865476)
    c0, c1, c2, c3, c4 = normal.CURVE
    u = x * x * normal.UNIT
    curve = c1 / (c3 / (u + c4) + u + c2) + u + c0
    return 1 / (1 + xp.exp(curve * -2 * x))


def _logaddexp2(xp: Any, x: Any, y: Any) -> Any:
    high, low = xp.maximum(x, y), xp.minimum(x, y)
    same = high == low  # maybe infinities, whose difference is nan
    gap = xp.where(same, 0.0, low) - xp.where(same, 0.0, high)
    return high + xp.log1p(xp.power(2.0, gap)) * 1.4426950408889634  # 1 / ln 2


def _take_along_axis(xp: Any, x: Any, index: Any, axis: int = -1) -> Any:
    return NotImplemented if axis is None else xp.call("take_along_axis", x, index, axis=axis)


def _cross(xp: Any, x: Any, y: Any, *, axis: int = -1) -> Any:
    if axis >= 0 and x.ndim != y.ndim:
        return NotImplemented
    axis = axis - x.ndim if axis >= 0 else axis
    after = (slice(None),) * (-axis - 1)
    a, b = ([z[(..., i, *after)] for i in (0, 1, 2, 0, 1)] for z in (x, y))
    parts = [a[i + 1] * b[i + 2] - a[i + 2] * b[i + 1] for i in range(3)]
    return xp.stack(parts, axis=axis)


def _flip(xp: Any, x: Any, axis: Any = None) -> Any:
    return x if x.ndim == 0 else NotImplemented  # others are views


def _lasting(xp: Any, *, shape: Any, key: Any) -> Any:
    """Write numbers to all places, and read them: the last of those to one place remains."""
    owner = xp.zeros(shape, np.int64)
    sizes = xp.call("getitem", owner, key).shape
    number = xp.arange(math.prod(sizes)).reshape(sizes)
    return xp.call("getitem", xp.call("assign_at", owner, number, key), key) == number


RULES: dict[str, Rule] = {
    "lasting": _lasting,
    "np.roll": _roll,
    "np.vecdot": _vecdot,
    "np.linalg.det": _det,
    "kernels.cofactors": _cofactors,
    "np.linalg.cholesky": _cholesky,
    "np.linalg.cross": _cross,
    "np.flip": _flip,
    "kernels.p_norm": _p_norm,
    "np.remainder": _remainder,
    "np.floor_divide": _floor_divide,
    "np.round": _round,
    "np.nan_to_num": _nan_to_num,
    "np.heaviside": _heaviside,
    "np.isin": _isin,
    "np.take_along_axis": _take_along_axis,
    "np.logaddexp2": _logaddexp2,
    "kernels.normal_cdf": _normal_cdf,
    "kernels.logaddexp": elementwise.logaddexp_of_many,
    **{
        f"kernels.{kernel.__name__}": kernel
        for kernel in (
            elementwise.xlogy,
            elementwise.xlog1py,
            elementwise.spherical_bessel_j,
        )
    },
}
"""What to compute in the place of an operation; NotImplemented where a rule does not hold."""
