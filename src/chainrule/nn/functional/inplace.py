"""What PyTorch's `inplace=True` and the names that end in an underscore mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.arguments import Operand, floating, tensor_of
from chainrule.autograd.inplace import in_place
from chainrule.autograd.tensor import Tensor


def applied(
    function: Callable[[Tensor], Tensor],
    x: Operand,
    name: str,
    inplace: bool = False,
    whole: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Return what `function` makes of `x`, written over `x` if `inplace`.

    Integers are floats to it; where `whole` is given, that makes integers of them.
    """
    if not inplace:
        if x.__class__ is Tensor and x._array.dtype.kind == "f":
            return function(x)
        return _of_number(function, whole, x)
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: inplace=True writes to a Tensor, but got {type(x).__name__}")
    return in_place(x, f"{name}_", lambda t: _of_number(function, whole, t))


def _of_number(
    function: Callable[[Tensor], Tensor], whole: Callable[[Tensor], Tensor] | None, x: Operand
) -> Tensor:
    x = tensor_of(x)
    if whole is not None and x._array.dtype.kind in "iu":
        return whole(x)
    return function(floating(x))


def writing(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the function that does the same in place: its name ends in an underscore."""

    def method(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return function(input, *args, inplace=True, **kwargs)

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__module__ = function.__module__
    method.__doc__ = f"Do `{function.__name__}` in place."
    return method
