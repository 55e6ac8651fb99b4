"""Forward mode: the recorded graph, walked the other way.

A node keeps what its rules need, and forward mode needs what reverse mode does. So a function is
recorded as for a backward pass, and then tangents go through its nodes in creation order. The walk
is itself recorded where the caller records, which gives reverse over forward and forward over
forward; perturbations can't be confused, since each walk starts at nodes of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.modes import enable_grad, set_grad_enabled
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.node import AccumulateGrad, Node, endpoint
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import next_seq
from chainrule.autograd.views import current_node
from chainrule.primitives import elementwise


def jvp_of(
    function: Callable[[], Sequence[Tensor]], inputs: Sequence[Tensor], tangents: Sequence[Any]
) -> list[Any]:
    """Return the tangents of what a function makes of `inputs`; None is a tangent of zeros."""
    outputs, found = pushed_on(function, inputs, tangents)
    pairs = zip(outputs, found, strict=True)
    return [TENSOR_XP.zeros_like(t) if tangent is None else tangent for t, tangent in pairs]


def pushed_on(
    function: Callable[[], Sequence[Tensor]], inputs: Sequence[Tensor], tangents: Sequence[Any]
) -> tuple[Sequence[Tensor], list[Any]]:
    """Return what a function makes of `inputs`, and the tangents; None is one that has not come."""
    begin = next_seq()
    with enable_grad():
        outputs = function()
    edges = [endpoint(current_node(t)) for t in inputs]
    known = {edge: t for edge, t in zip(edges, tangents, strict=True) if t is not None}
    if known:
        nodes, _ = _between(outputs, {n for n, _ in edges})
        _push([n for n in nodes if n.seq > begin], known)
    return outputs, [_arrived(t, known) for t in outputs]


Push = Callable[[Sequence[Tensor | None], bool], list[Any]]


def jvp_through(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> tuple[Push, bool]:
    """Return what makes tangents of `outputs` of those of `inputs`, by the graph between them.

    Also return whether anything else leads to the outputs. The walk is recorded if it is told to.
    """
    edges = [endpoint(current_node(t)) for t in inputs]
    own = {node for node, _ in edges}
    reached, beyond = _between(outputs, own)
    nodes = [node for node in reached if node not in own]
    ends = [current_node(t) for t in outputs]

    def jvp(tangents: Sequence[Tensor | None], recorded: bool) -> list[Any]:
        known = {edge: t for edge, t in zip(edges, tangents, strict=True) if t is not None}
        with set_grad_enabled(recorded), np.errstate(all="ignore"):
            _push(nodes, known)
            found = [None if end is None else known.get(endpoint(end)) for end in ends]
            pairs = zip(outputs, found, strict=True)
            return [TENSOR_XP.zeros_like(x) if t is None else t for x, t in pairs]

    return jvp, beyond


def tracked(primal: Tensor) -> Tensor:
    """Return the same values with a node of their own, connected to the history of `primal`."""
    if primal.requires_grad:
        clone: Tensor = elementwise.clone.apply(primal)
        return clone
    return make(primal._array, None).requires_grad_()


def _between(outputs: Sequence[Tensor], seeds: set[Node]) -> tuple[list[Node], bool]:
    """Return the nodes that lead from seeds to outputs, in creation order.

    Also return whether anything else does: an older node, a leaf, what a seed was made from. Then
    the result is a function of what the caller differentiates, too.
    """
    earliest = min((node.seq for node in seeds), default=0)
    reached: set[Node] = set()
    beyond = False
    stack = [current_node(t) for t in outputs]
    while stack:
        edge = stack.pop()
        if edge is None:
            continue
        node = endpoint(edge)[0]
        if node in reached:
            continue
        if node in seeds or (node.seq >= earliest and type(node) is not AccumulateGrad):
            reached.add(node)
            stack.extend(node.edges)
        else:
            beyond = True
    return sorted(reached, key=lambda node: node.seq), beyond


def _push(nodes: list[Node], tangents: dict[Any, Tensor]) -> None:
    """Give every output of `nodes` that depends on a seed its tangent."""
    for node in nodes:
        arriving = tuple(
            [None if edge is None else tangents.get(endpoint(edge)) for edge in node.edges]
        )
        if any(tangent is not None for tangent in arriving):
            result = node.jvp(arriving, TENSOR_XP)
            for index, tangent in enumerate(result if isinstance(result, tuple) else (result,)):
                if tangent is not None:
                    tangents[node, index] = tangent


def _arrived(output: Tensor, tangents: dict[Any, Tensor]) -> Tensor | None:
    edge = current_node(output)
    return None if edge is None else tangents.get(endpoint(edge))
