"""NumPy functions called on tensors: recorded where there is a rule, never silently detached.

The tables `RULES`, `ANSWERS`, `NEW` and `REASONS` assign an implementation or an error to each
function; the page `docs/numpy.md` is generated from them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.autograd.operands import as_carried_results
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentTypeError
from chainrule.interop.binding import name_of
from chainrule.interop.operands import arrays_of, constant, is_tracked, tensors_in
from chainrule.interop.table import ANSWERS, NEW, REASONS, REASONS_OF_MODULES, RULES

__all__ = ["array_function"]


def array_function(function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Call the counterpart of a NumPy function on tensors (`__array_function__`)."""
    if not all([_is_known(kind) for kind in types]):
        return NotImplemented
    rule = RULES.get(function)
    if rule is not None:
        return as_carried_results(rule(args, kwargs), tensors_in([args, kwargs]))
    if function in NEW:
        return constant(function(*arrays_of(args), **arrays_of(kwargs)))
    if function not in ANSWERS and is_tracked(args, kwargs):
        raise ArgumentTypeError(_missing(function))
    return function(*arrays_of(args), **arrays_of(kwargs))


def _is_known(kind: type) -> bool:
    """Tell whether an operand's type leaves the call to tensors, as NumPy's arrays do."""
    if issubclass(kind, Tensor) or getattr(kind, "namespace", None) is not None:
        return True
    protocol = getattr(kind, "__array_function__", None)
    return protocol is np.ndarray.__array_function__


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
