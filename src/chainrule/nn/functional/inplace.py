"""What PyTorch's `inplace=True` and the names that end in an underscore mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.arguments import Operand, floating
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.views import in_place


def applied(
    function: Callable[[Tensor], Tensor], x: Operand, name: str, inplace: bool = False
) -> Tensor:
    """Return what `function` makes of `x`, written over `x` if `inplace`."""
    if not inplace:
        return function(floating(x))
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: inplace=True writes to a Tensor, but got {type(x).__name__}")
    return in_place(x, f"{name}_", lambda t: function(floating(t)))


def writing(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the function that does the same in place: its name ends in an underscore."""

    def method(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return function(input, *args, inplace=True, **kwargs)

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__module__ = function.__module__
    method.__doc__ = f"Do `{function.__name__}` in place."
    return method
