"""How derivatives are taken: tensors, the graph they record, and the passes through it.

Who comes from PyTorch finds `autograd.backward`, `autograd.grad` and `autograd.Function` here.
"""

from importlib import import_module
from typing import Any

from chainrule.autograd.derivatives import autograd_backward as backward
from chainrule.autograd.derivatives import autograd_grad as grad
from chainrule.autograd.function import Function
from chainrule.autograd.modes import (
    detect_anomaly,
    enable_grad,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
)
from chainrule.autograd.recorders import recorder
from chainrule.primitives import TABLE

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]


def __getattr__(name: str) -> Any:
    if name in ("gradcheck", "gradgradcheck"):  # which are above this package
        return getattr(import_module("chainrule.checks"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


for _primitive in TABLE.values():
    recorder(_primitive)
