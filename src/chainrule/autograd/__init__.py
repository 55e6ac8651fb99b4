"""Automatic differentiation: tensors, the graph that they record, and passes through it.

As in PyTorch, it has `autograd.backward`, `autograd.grad` and `autograd.Function`.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from chainrule import primitives as primitives  # registers every primitive
from chainrule.autograd import recorders as recorders  # sets `Primitive.apply`
from chainrule.autograd.backward import autograd_backward as backward
from chainrule.autograd.backward import autograd_grad as grad
from chainrule.autograd.function import Function
from chainrule.autograd.modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
)
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor
from chainrule.missing_names import submodule

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]


class _Variables(type):
    """Metaclass of `Variable`: calling it makes a tensor, and all tensors are its instances."""

    def __call__(
        cls, data: Any, requires_grad: bool = False, volatile: bool | None = None
    ) -> Tensor:
        if volatile is not None:
            warnings.warn(
                "Variable: volatile has no effect: say `with no_grad():`", UserWarning, stacklevel=2
            )
        return as_tensors((data,))[0].detach().requires_grad_(requires_grad)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor)


class Variable(metaclass=_Variables):
    """A tensor of the same memory, outside the graph: PyTorch's former class for recording.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.autograd.Variable(cr.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    >>> isinstance(cr.ones(2), cr.autograd.Variable)
    True
    """


if TYPE_CHECKING:
    from chainrule.autograd import forward_ad as forward_ad
    from chainrule.autograd import functional as functional
    from chainrule.autograd import graph as graph
    from chainrule.autograd import modes
    from chainrule.checks.gradcheck import gradcheck as gradcheck
    from chainrule.checks.gradcheck import gradgradcheck as gradgradcheck

    grad_mode = modes
else:

    def __getattr__(name: str) -> Any:
        if name in ("forward_ad", "functional", "graph"):
            return import_module(f"chainrule.autograd.{name}")
        if name == "grad_mode":  # PyTorch's name
            return import_module("chainrule.autograd.modes")
        if name in ("gradcheck", "gradgradcheck"):  # a layer above this package
            return getattr(import_module("chainrule.checks"), name)
        if name == "profiler":
            return import_module("chainrule.profiler")
        return submodule(__name__, name)
