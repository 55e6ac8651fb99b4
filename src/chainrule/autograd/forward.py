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
from chainrule.autograd.record import RECORDERS, current_node, is_recording
from chainrule.autograd.tape import AccumulateGrad, Node, endpoint
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import tick
from chainrule.errors import DTypeError, ShapeError


def linearized(
    function: Callable[..., Any], primals: Sequence[Tensor], tangents: Sequence[Tensor]
) -> tuple[Any, Any]:
    """Return ``function(*primals)`` and its directional derivative, in the same structure."""
    for primal, tangent in zip(primals, tangents, strict=True):
        _check(primal, tangent)
    recording = is_recording()
    with enable_grad():
        inputs = [_tracked(primal) for primal in primals]
        outputs = function(*inputs)
    several = isinstance(outputs, tuple | list)
    tensors = list(outputs) if several else [outputs]
    sources = [endpoint(current_node(t)) for t in inputs]
    nodes = _between(tensors, {node for node, _ in sources})
    # Other leaves than ours mean that the result depends on what the caller differentiates.
    ours = {node for (node, _), t in zip(sources, primals, strict=True) if not t.requires_grad}
    outer = any(type(node) is AccumulateGrad and node not in ours for node in nodes)
    outer = recording and (outer or any(tangent.requires_grad for tangent in tangents))
    with set_grad_enabled(outer), np.errstate(all="ignore"):
        known: dict[Any, Any] = dict(zip(sources, tangents, strict=True))
        _push(nodes, known)
        derivatives = [_tangent_of(t, known) for t in tensors]
    if not outer:
        tensors = [t.detach() for t in tensors]
    return (tuple(tensors), tuple(derivatives)) if several else (tensors[0], derivatives[0])


def pushed(
    function: Callable[[], Sequence[Tensor]], inputs: Sequence[Tensor], tangents: Sequence[Any]
) -> list[Any]:
    """Return the tangents of what a function makes of `inputs`; None is a tangent of zeros."""
    begin = tick()
    with enable_grad():
        outputs = function()
    edges = [endpoint(current_node(t)) for t in inputs]
    known = {edge: t for edge, t in zip(edges, tangents, strict=True) if t is not None}
    _push([n for n in _between(outputs, {n for n, _ in edges}) if n.seq > begin], known)
    return [_tangent_of(t, known) for t in outputs]


def through(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor]
) -> Callable[[Sequence[Tensor | None], bool], list[Any]]:
    """Return what makes tangents of `outputs` of those of `inputs`, by the graph between them."""
    edges = [endpoint(current_node(t)) for t in inputs]
    own = {node for node, _ in edges}
    nodes = [node for node in _between(outputs, own) if node not in own]

    def push(tangents: Sequence[Tensor | None], recorded: bool) -> list[Any]:
        known = {edge: t for edge, t in zip(edges, tangents, strict=True) if t is not None}
        with set_grad_enabled(recorded), np.errstate(all="ignore"):
            _push(nodes, known)
            return [_tangent_of(t, known) for t in outputs]

    return push


def _check(primal: Tensor, tangent: Tensor) -> None:
    if primal.shape != tangent.shape:
        raise ShapeError(
            f"jvp: a tangent has its primal's shape: got {list(tangent.shape)}, expected "
            f"{list(primal.shape)}"
        )
    if primal.dtype.kind not in "fc":
        raise DTypeError(f"jvp: a primal must be floating or complex, got {primal.dtype}")


def _tracked(primal: Tensor) -> Tensor:
    """Return the same values with a node of their own, connected to the history of `primal`."""
    if primal.requires_grad:
        clone: Tensor = RECORDERS["clone"](primal)
        return clone
    return make(primal._array, None).requires_grad_()


def _between(outputs: Sequence[Tensor], seeds: set[Node]) -> list[Node]:
    """Return the nodes that outputs depend on, from the first seed on, in creation order."""
    earliest = min(node.seq for node in seeds)
    reached: set[Node] = set()
    stack = [current_node(t) for t in outputs if isinstance(t, Tensor)]
    while stack:
        edge = stack.pop()
        if edge is None:
            continue
        node = endpoint(edge)[0]
        if node not in reached and (node.seq >= earliest or type(node) is AccumulateGrad):
            reached.add(node)
            stack.extend(node.edges)
    return sorted(reached, key=lambda node: node.seq)


def _push(nodes: list[Node], tangents: dict[Any, Tensor]) -> None:
    """Give every output of `nodes` that depends on a seed its tangent."""
    for node in nodes:
        arriving = tuple(
            [None if edge is None else tangents.get(endpoint(edge)) for edge in node.edges]
        )
        if any(tangent is not None for tangent in arriving):
            result = node.push(arriving, TENSOR_XP)
            for index, tangent in enumerate(result if isinstance(result, tuple) else (result,)):
                if tangent is not None:
                    tangents[node, index] = tangent


def _tangent_of(output: Any, tangents: dict[Any, Tensor]) -> Any:
    if not isinstance(output, Tensor):
        return None
    edge = current_node(output)
    tangent = None if edge is None else tangents.get(endpoint(edge))
    return TENSOR_XP.zeros_like(output) if tangent is None else tangent
