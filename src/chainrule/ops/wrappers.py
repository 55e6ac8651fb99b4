"""How public functions and operators call the recorders."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from chainrule.arguments import Operand, cast, floating, one_dim
from chainrule.autograd.operands import as_operands, as_tensors
from chainrule.autograd.tensor import Tensor, default_dtype, make
from chainrule.backend import namespace, ndarray, numpy_xp, promoted
from chainrule.errors import DTypeError
from chainrule.primitives import elementwise, shaping
from chainrule.primitives.primitive import Primitive

np_asarray = numpy_xp.asarray


def piecewise(primitive: Primitive) -> Callable[[Any, Any], Any]:
    """Return the operator of a primitive that has no derivative."""
    apply, kernel = primitive.apply, getattr(numpy_xp, primitive.name)

    def operator(x: Any, y: Any) -> Any:
        if x.__class__ is Tensor and x._array.__class__ is ndarray:
            a, b = x._array, y
            if y.__class__ is Tensor:
                b = y._array
            if b.dtype is a.dtype if b.__class__ is ndarray else _is_weak(a, b):
                try:
                    return make(np_asarray(kernel(a, b)), None)
                except Exception:
                    pass  # the recorder says in our words what doesn't fit
        if x.__class__ is not Tensor or y.__class__ is not Tensor:
            x, y = as_operands(x, y)
            if x is NotImplemented:
                return NotImplemented
        if x._array.dtype != y._array.dtype:
            dtype = promoted(x._array.dtype, y._array.dtype)
            x, y = cast(x, dtype), cast(y, dtype)
        return apply(x, y)

    return operator


def _is_weak(array: Any, value: Any) -> bool:
    """Say whether NumPy takes `value` as a number in the dtype of `array`, as we do.

    It also compares integers with those that their dtype doesn't have.
    """
    kind = array.dtype.kind
    return (value.__class__ is int and kind in "fiu") or (value.__class__ is float and kind == "f")


def strict(operator: Callable[[Any, Any], Any], name: str) -> Callable[[Operand, Operand], Tensor]:
    """Return the function of an operator, which raises where Python would try the other operand."""

    def function(x: Operand, y: Operand) -> Tensor:
        result: Tensor = operator(x, y)
        if result is NotImplemented:
            raise TypeError(
                f"{name}(): expected tensors, arrays or numbers, got {type(x).__name__} and "
                f"{type(y).__name__}"
            )
        return result

    return function


def binary(primitive: Primitive) -> Callable[[Operand, Operand], Tensor]:
    """Return the function of a primitive of two operands."""
    return strict(primitive.apply, primitive.name)


def of_floats(primitive: Primitive) -> Callable[[Operand], Tensor]:
    """Return the recorder of a function that takes integers as numbers of the default dtype."""
    apply: Callable[[Tensor], Tensor] = primitive.apply

    def function(x: Operand) -> Tensor:
        if x.__class__ is Tensor and x._array.dtype.kind in "fc":
            return apply(x)
        return apply(floating(x))

    return function


def along(primitive: Primitive, x: Tensor, dim: int | None) -> Tensor:
    """Apply a primitive along a dimension; None is the only one there is."""
    if dim is None and x.ndim > 1:
        raise TypeError(
            f"{primitive.name}() needs dim (or axis): the tensor has {x.ndim} dimensions"
        )
    number = one_dim(0 if dim is None else dim, x.ndim)
    if x.ndim:
        return primitive.apply(x, axis=number)
    row = shaping.reshape.apply(x, shape=(1,))
    return shaping.reshape.apply(primitive.apply(row, axis=0), shape=())


def reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a result that nobody else holds in another shape: so it's no view of anything."""
    result = shaping.reshape.apply(x, shape=shape)
    result._view = None
    return result


def of_reals(primitive: Primitive, called: str | None = None) -> Callable[..., Tensor]:
    """Return the recorder of a function of real numbers, integers taken as the default dtype."""
    apply: Callable[..., Tensor] = primitive.apply
    name = called or primitive.name

    def function(x: Operand, **settings: Any) -> Tensor:
        if x.__class__ is not Tensor or x._array.dtype.kind != "f":
            x = real_floating(x, name)
        return apply(x, **settings)

    return function


def real_floating(x: Operand, name: str) -> Tensor:
    """Return a tensor of real floating numbers: the default dtype instead of an integer."""
    tensor = floating(x)
    if tensor._array.dtype.kind == "c":
        raise DTypeError(
            f"{name}: expected real numbers, got {tensor.dtype}, for which it is not implemented. "
            "Take the real part, or the absolute value, first"
        )
    return tensor


def real_pair(primitive: Primitive, *, floats: bool = True) -> Callable[[Operand, Operand], Tensor]:
    """Return the function of a primitive of two real numbers.

    Both are taken in their promoted dtype; with `floats`, in the default one instead of integers.
    """
    apply: Callable[[Any, Any], Tensor] = primitive.apply
    name = primitive.name

    def function(x: Operand, y: Operand) -> Tensor:
        if x.__class__ is not Tensor or not _alike(x, y):
            x, y = real_operands(name, x, y, floats=floats)
        return apply(x, y)

    return function


def _alike(x: Tensor, y: Operand) -> bool:
    dtype = x._array.dtype
    if dtype.kind != "f":
        return False
    return y.__class__ is float or (y.__class__ is Tensor and y._array.dtype is dtype)


def real_operands(name: str, *operands: Operand, floats: bool = True) -> tuple[Tensor, ...]:
    """Return real operands as tensors of one dtype."""
    tensors = as_tensors(operands)
    dtype = functools.reduce(promoted, [t._array.dtype for t in tensors])
    if floats and dtype.kind not in "fc":
        dtype = default_dtype()
    if dtype.kind == "c":
        raise DTypeError(
            f"{name}: expected real numbers, got {' and '.join(str(t.dtype) for t in tensors)}, "
            "for which it is not implemented. Take the real part, or the absolute value, first"
        )
    return tuple([t if t._array.dtype is dtype else cast(t, dtype) for t in tensors])


def nothing_of(x: Tensor) -> Tensor:
    """Return zeros that depend on `x`, with derivative 0."""
    nowhere = make(namespace(x._array).asarray(False), None)
    return elementwise.masked.apply(x, nowhere)
