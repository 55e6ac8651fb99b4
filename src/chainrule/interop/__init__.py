"""NumPy's functions called on tensors: recorded where there is a rule, never silently cut off.

What each of them becomes is said by a table, `RULES`, `ANSWERS`, `NEW` and `REASONS`, which is also
the source of the page `docs/numpy.md`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.interop.binding import name_of
from chainrule.interop.operands import arrays_of, constant, is_tracked
from chainrule.interop.table import ANSWERS, NEW, REASONS, REASONS_OF_MODULES, RULES

__all__ = ["array_function"]


def array_function(function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Do what NumPy's `function`, called on tensors, stands for."""
    if not all([_is_known(kind) for kind in types]):
        return NotImplemented
    rule = RULES.get(function)
    if rule is not None:
        return rule(args, kwargs)
    if function in NEW:
        return constant(function(*arrays_of(args), **arrays_of(kwargs)))
    if function not in ANSWERS and is_tracked(args, kwargs):
        raise TypeError(_missing(function))
    return function(*arrays_of(args), **arrays_of(kwargs))


def _is_known(kind: type) -> bool:
    """Say whether an operand's type leaves the call to us: NumPy's arrays do."""
    if issubclass(kind, Tensor) or getattr(kind, "namespace", None) is not None:
        return True
    taken_over = getattr(kind, "__array_function__", None)
    return taken_over is np.ndarray.__array_function__


def _missing(function: Any) -> str:
    name = name_of(function)
    reason = REASONS.get(function) or REASONS_OF_MODULES.get(function.__module__)
    why = f" ({reason})" if reason else ""
    return (
        f"{name} has no derivative rule in chainrule{why}, and the gradient of an argument would "
        "be lost: compute it from functions that have one; or write the rule with "
        f"chainrule.autograd_function, whose forward calls {name} on x.numpy() and whose backward "
        "returns the gradient; or, where none is needed, call it on x.detach()"
    )
