"""How public functions and operators call the recorders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.arguments import RECORDERS, Operand, cast, floating, one_dim
from chainrule.autograd.operands import as_operands
from chainrule.autograd.tensor import Tensor
from chainrule.backend import promoted


def piecewise(name: str) -> Callable[[Any, Any], Any]:
    """Return the operator of a primitive that has no derivative."""
    recorder = RECORDERS[name]

    def operator(x: Any, y: Any) -> Any:
        if x.__class__ is not Tensor or y.__class__ is not Tensor:
            x, y = as_operands(x, y)
            if x is NotImplemented:
                return NotImplemented
        if x._array.dtype != y._array.dtype:
            dtype = promoted(x._array.dtype, y._array.dtype)
            x, y = cast(x, dtype), cast(y, dtype)
        return recorder(x, y)

    return operator


def strict(operator: Callable[[Any, Any], Any], name: str) -> Callable[[Operand, Operand], Tensor]:
    """Return the function of an operator, which raises where Python would try the other operand."""

    def function(x: Operand, y: Operand) -> Tensor:
        result = operator(x, y)
        if result is NotImplemented:
            raise TypeError(
                f"{name}(): expected tensors, arrays or numbers, got {type(x).__name__} and "
                f"{type(y).__name__}"
            )
        return result  # type: ignore[no-any-return]

    return function


def binary(name: str) -> Callable[[Operand, Operand], Tensor]:
    """Return the function of a primitive of two operands."""
    return strict(RECORDERS[name], name)


def of_floats(name: str) -> Callable[[Operand], Tensor]:
    """Return the recorder of a function that takes integers as numbers of the default dtype."""
    recorder = RECORDERS[name]

    def function(x: Operand) -> Tensor:
        if x.__class__ is Tensor and x._array.dtype.kind in "fc":
            return recorder(x)
        return recorder(floating(x))

    return function


def along(name: str, x: Tensor, dim: int | None) -> Tensor:
    """Apply a primitive along a dimension; None is the only one there is."""
    if dim is None and x.ndim > 1:
        raise TypeError(f"{name}() needs dim (or axis): the tensor has {x.ndim} dimensions")
    number = one_dim(0 if dim is None else dim, x.ndim)
    if x.ndim:
        return RECORDERS[name](x, axis=number)
    row = RECORDERS["reshape"](x, shape=(1,))
    return RECORDERS["reshape"](RECORDERS[name](row, axis=0), shape=())


def reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a result that nobody else holds in another shape: so it's no view of anything."""
    result = RECORDERS["reshape"](x, shape=shape)
    result._view = None
    return result
