"""How derivatives are taken: tensors, the graph they record, and the passes through it.

Who comes from PyTorch finds `autograd.backward`, `autograd.grad` and `autograd.Function` here.
"""

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
from chainrule.autograd.record import recorder
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

for _primitive in TABLE.values():
    recorder(_primitive)
