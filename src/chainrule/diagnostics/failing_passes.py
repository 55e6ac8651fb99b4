"""Backward passes that would fail: freed values, values that were written to, missing rules."""

from __future__ import annotations

from typing import Any

from chainrule.autograd.context import NOTHING
from chainrule.autograd.function_node import FunctionNode
from chainrule.autograd.node import ErrorNode, endpoint, made_at, mend_of_write, reachable
from chainrule.autograd.primitive_node import PrimitiveNode, check_saved
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.versions import write_log
from chainrule.errors import InPlaceError


def variable_of(shown: str) -> str:
    """Return the name of a variable without its quotes; loss if it has none."""
    return shown.strip("`") if shown.startswith("`") else "loss"


def problem_of(tensor: Tensor, name: str) -> str | None:
    """Return why a backward pass from a tensor would fail; None if it would not."""
    start = endpoint(tensor._edge)[0]
    for node in sorted(reachable([start], 0), key=lambda each: -each.seq):
        text = _problem_at(node, name)
        if text is not None:
            return text
    if tensor._array.size != 1:
        return several(tensor, name)
    if tensor.dtype.kind == "c":
        return f"backward() on {name} would fail, since it is complex: take .real, .imag or .abs()."
    return None


def several(tensor: Tensor, name: str) -> str:
    return (
        f"backward() on {name} alone would fail, since it has {tensor._array.size} elements "
        f"(shape {list(tensor.shape)}): reduce it first, as in "
        f"{variable_of(name)}.sum().backward(), or give a gradient of its shape."
    )


def _problem_at(node: Any, name: str) -> str | None:
    if isinstance(node, ErrorNode):
        return f"backward() would fail: {node.reason}"
    if isinstance(node, FunctionNode):
        if node.function.backward_rule is None:
            return (
                f"backward() would fail, since {node.function.name} has no backward "
                f"({node.location}): give it one with @{node.function.name}.backward."
            )
        freed = node.ctx._saved is None
    else:
        freed = getattr(node, "saved", NOTHING) is None
    if freed:
        return (
            f"The graph of {name} has been walked by a backward pass, which released its values: a "
            f"second one would fail, at {made_at(node)}. Compute it anew for each pass, detach() "
            "what is carried over from an earlier one, or pass retain_graph=True to the first."
        )
    if type(node) is PrimitiveNode and write_log.last > node.seq and node.plan.holds:
        try:
            check_saved(node, node.saved or ())
        except InPlaceError as error:
            writers = str(error).rpartition("and then written by ")[2]
            mend = mend_of_write(writers.partition(" at ")[0])
            return (
                f"backward() would fail, since a value that {made_at(node)}, needs has been "
                f"overwritten in place, by {writers} {mend[0].upper()}{mend[1:]}."
            )
    return None
