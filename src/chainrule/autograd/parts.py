"""Backward passes through reads and writes of a part of an array: in place, where a pass may.

By its rule, the cotangent of a part that was read is an array of zeros but for the part, and that
of an array before a write a copy with zeros in the part. A loop that reads or writes one row a turn
would take a time that is quadratic in the number of turns. Here a pass reads and writes the part
alone, in sums that nothing but the pass holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chainrule.autograd.node import NodeOutput
from chainrule.autograd.references import ALONE_IN_INNER_CALL, count_references, is_own
from chainrule.backend import is_basic_index, namespace, numpy_xp

if TYPE_CHECKING:
    from chainrule.autograd.primitive_node import PrimitiveNode
    from chainrule.autograd.reverse import BackwardPass

Array = Any


def part_cotangents(node: PrimitiveNode, g: Array, run: BackwardPass) -> Sequence[Any] | None:
    """Return the cotangents of a node that reads or writes a part; None leaves them to its rule."""
    alone = count_references(g) <= ALONE_IN_INNER_CALL
    leaves, sums, edge = run.leaves, run.sums, node.edges[0]
    if leaves is None or run.anomaly or node.hooks is not None or edge.__class__ is NodeOutput:
        return None
    total = leaves.get(edge) if edge in leaves else run.pending.get(edge)
    if node.plan.part == "read":
        if total is None:
            sums.add(edge)  # what the rule returns is an array of its own
        elif edge in sums and _add(total, node, g):
            return _ADDED
        return None
    if edge is None or not is_own(g, alone):
        return None
    found = _taken(node, g)
    if found is not None and total is None:
        sums.add(edge)
    return found


_ADDED = (None,)


def _add(total: Array, node: PrimitiveNode, g: Array) -> bool:
    """Add the cotangent of a part to that of the array; return whether that is possible."""
    if total.__class__ is not g.__class__ or total.dtype is not g.dtype:
        return False
    if not total.ndim:
        return False  # a sum of 0-d arrays is a number, which can't be written to
    assert node.settings is not None
    done: bool = namespace(g).add_in_place(total, node.settings["key"], g)
    return done


def _taken(node: PrimitiveNode, g: Array) -> tuple[Array, Array | None] | None:
    """Return `g` with zeros in the part that was written, and a copy of the part."""
    assert node.settings is not None
    path, lasting = node.settings["path"], node.settings["lasting"]
    part, key = g, None
    for primitive, settings in path:
        if primitive.part != "read" or key is not None:
            return None
        if is_basic_index(settings["key"]):
            part = part[settings["key"]]  # a view
        else:
            key = settings["key"]
    if part is not g and part.base is not g:
        return None
    value = None
    if node.edges[1] is not None:
        value = part.copy() if key is None else numpy_xp.index(part, key=key)
        if lasting is not None:
            value = numpy_xp.masked(value, lasting)
    part[... if key is None else key] = 0
    return g, value
