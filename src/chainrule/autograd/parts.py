"""Backward passes through reads and writes of a part of an array: in place, where a pass may.

By its rule, the cotangent of a part that was read is an array of zeros but for the part, and that
of an array before a write a copy with zeros in the part. A loop that reads or writes one row a turn
would take a time that is quadratic in the number of turns. Here a pass reads and writes the part
alone, in sums that nothing but the pass holds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chainrule.autograd.node import NodeOutput
from chainrule.backend import is_basic_index, namespace, ndarray, numpy_xp

if TYPE_CHECKING:
    from chainrule.autograd.primitive_node import PrimitiveNode
    from chainrule.autograd.reverse import BackwardPass

Array = Any


def part_cotangents(node: PrimitiveNode, g: Array, run: BackwardPass) -> Sequence[Any] | None:
    """Return the cotangents of a node that reads or writes a part; None leaves them to its rule."""
    references = sys.getrefcount(g)
    leaves = run.leaves
    edge = node.edges[0]
    if leaves is None or run.anomaly or node.hooks is not None or edge.__class__ is NodeOutput:
        return None
    total = leaves.get(edge) if edge in leaves else run.pending.get(edge)
    sums = run.own_sums()
    if node.plan.part == "read":
        if total is None:
            sums.add(edge)  # what the rule returns is an array of its own
        elif edge in sums and _add(total, node, g):
            return _ADDED
        return None
    if edge is None or references > _ALONE or g.__class__ is not ndarray:
        return None
    if g.base is not None or not g.flags.writeable:
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
    xp = numpy_xp if g.__class__ is ndarray else namespace(g)
    done: bool = xp.add_in_place(total, node.settings["key"], g)
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


def _references() -> int:
    local = object()
    return _in_call(local)


def _in_call(argument: object) -> int:
    return _in_inner_call(argument)


def _in_inner_call(argument: object) -> int:
    return sys.getrefcount(argument)


_ALONE = _references()
"""Reference count of an argument's argument that only one local variable holds as well."""
