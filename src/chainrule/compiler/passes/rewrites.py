"""Algebraic rewrite rules: cheaper forms of an op, given the ops that define its operands.

A rule returns a value equal to the result of the op, another op in its place, or None. Rules that
only move data (transpose of a transpose) keep results to the bit. Rules that reorder arithmetic (a
factor moved to the smaller operand of a product, a sum of squares as a dot product) change their
rounding; docs/compiling.md lists these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.compiler.ir.constants import constant_key, scalar_of
from chainrule.compiler.ir.program import Op, Value, same_type
from chainrule.compiler.passes import slice_rewrites

Definitions = dict[Value, Op]
Add = Callable[..., Value]
Rule = Callable[[Op, "Context"], Any]


class Context:
    """The program so far as rules see it, and `add`, which appends an op."""

    def __init__(
        self, definitions: Definitions, constants: dict[Value, Any], uses: Counter[Value], add: Add
    ) -> None:
        self.definitions, self.constants, self.uses, self.add = definitions, constants, uses, add

    def definition(self, value: Any, function: str) -> Op | None:
        """Return the op that defines a value, if it calls this function."""
        op = self.definitions.get(value) if isinstance(value, Value) else None
        return op if op is not None and op.function == function else None

    def number(self, value: Any) -> Any:
        """Return the Python number that an argument is if it is a scalar constant, else None."""
        return scalar_of(value, self.constants)

    def factor(self, value: Any, x: Value) -> Any:
        """Return the Python number that is the same factor of x as a scalar constant, else None.

        A float32 constant is another factor of float64 than the number that it prints as.
        """
        if isinstance(value, Value) and value.dtype != x.dtype:
            return None
        return self.number(value)


def rewrite_op(
    op: Op, definitions: Definitions, constants: dict[Value, Any], uses: Counter[Value], add: Add
) -> Op | Value:
    """Return the op, its replacement, or an existing value that equals its result."""
    context = Context(definitions, constants, uses, add)
    for rule in RULES.get(op.function, ()):
        found = rule(op, context)
        if isinstance(found, Value):
            return found
        if found is not None:
            function, args, kwargs = found
            changed = Op(function, args, kwargs, op.outs, op.location)
            return rewrite_op(changed, definitions, constants, uses, add)
    return op


# --- exact rules ----------------------------------------------------------------------------------


def _identity_element(*numbers: tuple[int, float]) -> Rule:
    """Return the rule for identity elements, given by position and value: x * 1, x - 0 are x.

    For floats the sign of zero counts: -0.0 + 0.0 is 0.0, so only -0.0 may be added. A product or
    quotient of complex numbers has terms with the other part, which may be infinite.
    """

    def rule(op: Op, context: Context) -> Value | None:
        for position, number in numbers:
            other, found = op.args[1 - position], context.number(op.args[position])
            if found is None or not _is_like(other, op.out) or other.dtype.kind == "c":
                continue
            known: Value = other
            same = constant_key(float(found)) == constant_key(number)
            if found == number and (same or other.dtype.kind != "f"):
                return known
        return None

    return rule


def _is_like(value: Any, other: Value) -> bool:
    return isinstance(value, Value) and same_type(value, other)


def _reshape(op: Op, context: Context) -> Any:
    x, shape = op.args
    before = context.definition(x, "np.reshape")
    source = x if before is None else before.args[0]
    if source.shape == op.out.shape:
        return source
    total = context.definition(source, "np.sum")
    if total is not None and total.kwargs["keepdims"] and context.uses[source] == 1:
        summed, axis = total.args[0], total.kwargs["axis"]
        axes = set(range(len(summed.shape))) if axis is None else {*np.atleast_1d(axis).tolist()}
        if tuple(n for i, n in enumerate(summed.shape) if i not in axes) == shape:
            return "np.sum", (summed,), {"axis": axis, "keepdims": False}
    return None if before is None else ("np.reshape", (source, shape), {})


def _permute(op: Op, context: Context) -> Any:
    x, axes = op.args
    before = context.definition(x, "np.permute_dims")
    if before is None:
        return None
    source, first = before.args
    axes = tuple(first[axis] for axis in axes)
    return source if axes == tuple(range(len(axes))) else ("np.permute_dims", (source, axes), {})


def _broadcast(op: Op, context: Context) -> Any:
    x, shape = op.args
    before = context.definition(x, "np.broadcast_to")
    return None if before is None else ("np.broadcast_to", (before.args[0], shape), {})


def _astype(op: Op, context: Context) -> Any:
    return op.args[0] if _is_like(op.args[0], op.out) else None


def _negative(op: Op, context: Context) -> Any:
    x = op.args[0]
    before = context.definition(x, "np.negative")
    if before is not None:
        return before.args[0]
    product = context.definition(x, "np.multiply")
    if product is None or context.uses[x] != 1 or x.dtype.kind != "f":
        return None
    for position in (0, 1):
        factor = context.factor(product.args[1 - position], x)
        if factor is not None and _is_like(product.args[position], x):
            return "np.multiply", (product.args[position], -factor), {}
    return None


def _identity_product(op: Op, context: Context) -> Any:
    """I @ A is A: the seeds of a Jacobian are the rows of an identity matrix."""
    for position in (0, 1):
        eye = context.constants.get(op.args[position])
        other = op.args[1 - position]
        if eye is None or not _is_like(other, op.out) or eye.ndim != 2 or other.shape == (0, 0):
            continue
        if eye.shape[0] == eye.shape[1] and np.array_equal(eye, np.eye(eye.shape[0])):
            return other
    return None


def _masked(op: Op, context: Context) -> Any:
    """A finite constant where a mask is true is the mask times that constant.

    Not a negative one: its product with False is -0.0.
    """
    x, mask = op.args
    number: Any = x if isinstance(x, np.generic) else context.constants.get(x)
    if number is None or number.shape != () or not np.isfinite(number) or op.kwargs:
        return None
    if np.signbit([number.real, number.imag]).any():
        return None
    return "np.multiply", (mask, number[()]), {}


def _signed_product(op: Op, context: Context) -> Any:
    """-x * 3 is x * -3; x * -1 is -x."""
    for position in (0, 1):
        x = op.args[position]
        if not _is_like(x, op.out) or x.dtype.kind != "f":
            continue
        factor = context.factor(op.args[1 - position], x)
        if factor is None:
            continue
        before = context.definition(x, "np.negative")
        if before is not None:
            return "np.multiply", (before.args[0], -factor), {}
        if factor == -1:
            return "np.negative", (x,), {}
    return None


def _signed_sum(op: Op, context: Context) -> Any:
    """x + (-y) is x - y, and x - (-y) is x + y."""
    x, y = op.args
    before = context.definition(y, "np.negative")
    if before is not None:
        other = "np.subtract" if op.function == "np.add" else "np.add"
        return other, (x, before.args[0]), {}
    before = context.definition(x, "np.negative") if op.function == "np.add" else None
    return None if before is None else ("np.subtract", (y, before.args[0]), {})


def _added_zero(op: Op, context: Context) -> Any:
    """0.0 + (0.0 + x) is 0.0 + x, which has no negative zeros."""
    for position in (0, 1):
        before = context.definition(op.args[1 - position], "np.add")
        if before is None or not _is_like(before.out, op.out) or op.out.dtype.kind != "f":
            continue
        zeros = [_is_positive_zero(context.number(arg)) for arg in before.args]
        if any(zeros) and context.number(op.args[position]) == 0:
            return before.out
    return None


def _is_positive_zero(number: Any) -> bool:
    return number is not None and number == 0 and not np.signbit(number)


def _clip(op: Op, context: Context) -> Any:
    x, low, high = (*op.args, None, None)[:3]
    if op.kwargs or not isinstance(x, Value) or x.dtype.kind != "f":
        return None
    if high is None and low is not None:
        return "np.maximum", (x, low), {}
    return ("np.minimum", (x, high), {}) if low is None and high is not None else None


def _cross(op: Op, context: Context) -> Any:
    """A cross product is six products of components, which is faster than `np.linalg.cross`."""
    x, y = op.args
    axis = op.kwargs.get("axis", -1)
    if len(x.shape) != len(y.shape):
        return None
    after = (slice(None),) * (len(x.shape) - 1 - axis % len(x.shape))
    x, y = ([context.add("getitem", side, (..., i, *after)) for i in range(3)] for side in (x, y))
    parts = []
    for i, j in ((1, 2), (2, 0), (0, 1)):
        left = context.add("np.multiply", x[i], y[j])
        parts.append(context.add("np.subtract", left, context.add("np.multiply", x[j], y[i])))
    return "np.stack", (parts,), {"axis": axis % len(op.out.shape)}


# --- rules that change rounding -------------------------------------------------------------------


def _transposed_product(op: Op, context: Context) -> Any:
    """(a @ b).T is b.T @ a.T, which is in C order for the ops that read it."""
    x, axes = op.args
    product = context.definition(x, "np.matmul")
    if product is None or context.uses[x] != 1 or tuple(axes) != (1, 0):
        return None
    a, b = product.args
    if not len(a.shape) == len(b.shape) == 2:
        return None
    return "np.matmul", tuple([context.add("np.permute_dims", v, (1, 0)) for v in (b, a)]), {}


def _scaled_product(op: Op, context: Context) -> Any:
    """(a @ b) * c is a @ (b * c): the factor moves to the smaller operand."""
    for position in (0, 1):
        product = context.definition(op.args[position], "np.matmul")
        factor = context.number(op.args[1 - position])
        if product is None or factor is None or context.uses[product.out] != 1:
            continue
        a, b = product.args
        if not (_is_like(product.out, op.out) and len(a.shape) == len(b.shape) == 2):
            continue
        small = min(a, b, key=lambda v: v.size)
        if small.size >= op.out.size:
            continue
        scaled = context.add("np.multiply", small, op.args[1 - position])
        return "np.matmul", (scaled, b) if small is a else (a, scaled), {}
    return None


def _flat_product(op: Op, context: Context) -> Any:
    """A batch of matrices times one matrix is a single product of all their rows."""
    a, b = op.args
    if len(a.shape) < 3 or len(b.shape) != 2 or 0 in a.shape:
        return None
    if context.definition(a, "np.permute_dims") is not None or context.definition(
        a, "np.broadcast_to"
    ):
        return None  # the reshape would copy
    rows = context.add("np.reshape", a, (-1, a.shape[-1]))
    return "np.reshape", (context.add("np.matmul", rows, b), op.out.shape), {}


def _sum_of_matrix_products(op: Op, context: Context) -> Any:
    """The sum of xᵀ @ y over a batch is a single product of all rows of x and y."""
    product = context.definition(op.args[0], "np.matmul")
    axis, keepdims = op.kwargs.get("axis"), op.kwargs.get("keepdims")
    if product is None or context.uses[product.out] != 1 or axis is None or keepdims:
        return None
    x, y = product.args
    transposed = context.definition(x, "np.permute_dims")
    batch = tuple(range(len(product.out.shape) - 2))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if transposed is None or axes != batch or x.shape[:-2] != y.shape[:-2] or not batch:
        return None
    if transposed.args[1] != (*batch, len(batch) + 1, len(batch)) or 0 in x.shape:
        return None
    rows = context.add("np.reshape", transposed.args[0], (-1, x.shape[-2]))
    return (
        "np.matmul",
        (
            context.add("np.permute_dims", rows, (1, 0)),
            context.add("np.reshape", y, (-1, y.shape[-1])),
        ),
        {},
    )


def _sum_of_products(op: Op, context: Context) -> Any:
    """The sum of all elements of x * y is a dot product, without an array of products."""
    x = op.args[0]
    if op.kwargs.get("axis") is not None or op.kwargs.get("keepdims") or x.dtype.char not in "fd":
        return None
    square, product = context.definition(x, "np.square"), context.definition(x, "np.multiply")
    factors = square.args * 2 if square else product.args if product else ()
    if context.uses[x] != 1 or not factors or not all(_is_like(f, x) for f in factors):
        return None
    return "np.vdot", factors, {}


RULES: dict[str, tuple[Rule, ...]] = {
    "np.multiply": (_identity_element((0, 1.0), (1, 1.0)), _signed_product, _scaled_product),
    "np.divide": (_identity_element((1, 1.0)),),
    "np.add": (
        _identity_element((0, -0.0), (1, -0.0)),
        _signed_sum,
        _added_zero,
        slice_rewrites.add_to_slice,
    ),
    "np.subtract": (
        _identity_element((1, 0.0)),
        _signed_sum,
        slice_rewrites.subtract_from_slice,
    ),
    "getitem": (slice_rewrites.getitem, slice_rewrites.slice_of_elementwise),
    "assign_at": (slice_rewrites.write_nothing, slice_rewrites.assign_at),
    "plus_at": (
        slice_rewrites.write_nothing,
        slice_rewrites.plus_at,
        slice_rewrites.add_padded,
    ),
    "index_add": (slice_rewrites.index_add, slice_rewrites.pad_padded),
    "masked": (_masked,),
    "np.reshape": (_reshape,),
    "np.permute_dims": (_permute, _transposed_product),
    "np.broadcast_to": (_broadcast,),
    "np.astype": (_astype,),
    "np.negative": (_negative,),
    "np.clip": (_clip,),
    "np.linalg.cross": (_cross,),
    "np.matmul": (_identity_product, _flat_product),
    "np.sum": (_sum_of_products, _sum_of_matrix_products),
}
