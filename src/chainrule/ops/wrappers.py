"""Public functions and operators of primitives: conversion of the operands, then one call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.arguments import Operand, cast, floating, one_dim
from chainrule.autograd.operands import (
    as_carried_results,
    as_operands,
    as_tensors,
    mend_of_operand,
)
from chainrule.autograd.tensor import Tensor, default_dtype, make
from chainrule.backend import namespace, ndarray, numpy_xp, promoted
from chainrule.errors import ArgumentTypeError, DTypeError
from chainrule.primitives import elementwise, shaping
from chainrule.primitives.primitive import Primitive

np_asarray = numpy_xp.asarray


def nondifferentiable_operator(primitive: Primitive) -> Callable[[Any, Any], Any]:
    """Return the binary operator of a primitive without a derivative."""
    apply, kernel = primitive.apply, getattr(numpy_xp, primitive.name)

    def operator(x: Any, y: Any) -> Any:
        if type(x) is Tensor and x._array.__class__ is ndarray:
            a, b = x._array, y
            if type(y) is Tensor:
                b = y._array
            if b.dtype is a.dtype if b.__class__ is ndarray else _is_weak(a, b):
                try:
                    found = make(np_asarray(kernel(a, b)), None)
                    return as_carried_results(found, (x,)) if b is y else found
                except Exception:
                    pass  # the recorder raises the error with our message
        elif type(x) is Tensor and x._array.dtype.kind == "f" and _is_weak(x._array, y):
            return apply(x, y)
        given = x, y
        if type(x) is not Tensor or type(y) is not Tensor:
            try:
                x, y = as_operands(x, y)
            except OverflowError:  # an integer outside the dtype's range may be compared
                x, y = as_operands(
                    *[np.asarray(v) if isinstance(v, int | np.integer) else v for v in (x, y)]
                )
            if x is NotImplemented:
                return NotImplemented
        if x._array.dtype != y._array.dtype:
            dtype = promoted(x._array.dtype, y._array.dtype)
            x, y = cast(x, dtype), cast(y, dtype)
        return as_carried_results(apply(x, y), given)

    return operator


def _is_weak(array: Any, value: Any) -> bool:
    """Say whether NumPy, like chainrule, takes the number `value` in the dtype of `array`.

    Comparisons of integers also accept numbers outside the range of the dtype.
    """
    kind = array.dtype.kind
    return (value.__class__ is int and kind in "fiu") or (value.__class__ is float and kind == "f")


def function_of_operator(
    operator: Callable[[Any, Any], Any], name: str
) -> Callable[[Operand, Operand], Tensor]:
    """Return a function that calls `operator` and raises TypeError in place of NotImplemented."""

    def function(x: Operand, y: Operand) -> Tensor:
        result: Tensor = operator(x, y)
        if result is NotImplemented:
            mend = mend_of_operand(x) or mend_of_operand(y)
            raise ArgumentTypeError(
                f"{name}(): expected tensors, arrays or numbers, got {type(x).__name__} and "
                f"{type(y).__name__}" + (mend and f": {mend}")
            )
        return result

    return function


def binary_function(primitive: Primitive) -> Callable[[Operand, Operand], Tensor]:
    """Return the public function of a binary primitive."""
    return function_of_operator(primitive.apply, primitive.name)


def unary_floating(primitive: Primitive) -> Callable[[Operand], Tensor]:
    """Return the public function of a unary primitive; integers become the default dtype."""
    apply: Callable[[Tensor], Tensor] = primitive.apply

    def function(x: Operand) -> Tensor:
        if type(x) is Tensor and x._array.dtype.kind in "fc":
            return apply(x)
        return apply(floating(x))

    return function


def apply_along_dim(primitive: Primitive, x: Tensor, dim: int | None) -> Tensor:
    """Apply a primitive along a dimension; None means the only dimension."""
    if dim is None and x.ndim > 1:
        raise ArgumentTypeError(
            f"{primitive.name}() needs dim (or axis): the tensor has {x.ndim} dimensions"
        )
    number = one_dim(0 if dim is None else dim, x.ndim)
    if x.ndim:
        return primitive.apply(x, axis=number)
    row = shaping.reshape.apply(x, shape=(1,))
    return shaping.reshape.apply(primitive.apply(row, axis=0), shape=())


def reshape_result(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Reshape a newly computed tensor that has no other references, so the result is not a view."""
    result = shaping.reshape.apply(x, shape=shape)
    result._view = None
    return result


def unary_real(primitive: Primitive, name: str = "") -> Callable[..., Tensor]:
    """Return the public function of a unary real primitive; integers become the default dtype."""
    apply: Callable[..., Tensor] = primitive.apply
    name = name or primitive.name

    def function(x: Operand, **settings: Any) -> Tensor:
        if type(x) is not Tensor or x._array.dtype.kind != "f":
            x = real_floating(x, name)
        return apply(x, **settings)

    return function


def real_floating(x: Operand, name: str) -> Tensor:
    """Return `x` as a real floating tensor; integers become the default dtype."""
    tensor = floating(x)
    if tensor._array.dtype.kind == "c":
        raise DTypeError(
            f"{name}: expected real numbers, got {tensor.dtype}, for which it is not implemented. "
            "Take the real part, or the absolute value, first"
        )
    return tensor


def binary_real(
    primitive: Primitive, *, to_floating: bool = True
) -> Callable[[Operand, Operand], Tensor]:
    """Return the public function of a binary real primitive.

    The operands are cast to their promoted dtype; with `to_floating`, integers become the default
    floating dtype.
    """
    apply: Callable[[Any, Any], Tensor] = primitive.apply
    name = primitive.name

    def function(x: Operand, y: Operand) -> Tensor:
        if type(x) is not Tensor or not _share_real_dtype(x, y):
            x, y = real_operands(name, x, y, to_floating=to_floating)
        return apply(x, y)

    return function


def _share_real_dtype(x: Tensor, y: Operand) -> bool:
    dtype = x._array.dtype
    if dtype.kind != "f":
        return False
    return y.__class__ is float or (type(y) is Tensor and y._array.dtype is dtype)


def real_operands(name: str, *operands: Operand, to_floating: bool = True) -> tuple[Tensor, ...]:
    """Return real operands as tensors of their promoted dtype."""
    tensors = as_tensors(operands)
    dtype = functools.reduce(promoted, [t._array.dtype for t in tensors])
    if to_floating and dtype.kind not in "fc":
        dtype = default_dtype()
    if dtype.kind == "c":
        raise DTypeError(
            f"{name}: expected real numbers, got {' and '.join(str(t.dtype) for t in tensors)}, "
            "for which it is not implemented. Take the real part, or the absolute value, first"
        )
    return tuple([t if t._array.dtype is dtype else cast(t, dtype) for t in tensors])


def zeros_depending_on(x: Tensor) -> Tensor:
    """Return zeros that stay in the graph of `x`, with derivative 0."""
    mask = make(namespace(x._array).asarray(False), None)
    return elementwise.masked.apply(x, mask)
