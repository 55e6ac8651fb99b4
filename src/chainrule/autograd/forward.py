"""Forward mode: tangents propagated through the recorded graph.

Forward rules need the same saved values as reverse rules. So a function is recorded as for a
backward pass, and tangents then go through its nodes in order of creation. Propagation is itself
recorded where the caller records, which gives reverse over forward and forward over forward.
Perturbations can't be confused, since each propagation starts at nodes of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from chainrule.autograd.modes import current_modes, enable_grad, no_grad, run_in
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.node import (
    AccumulateGrad,
    Edge,
    Node,
    NodeOutput,
    endpoint,
    is_collective,
    reachable,
)
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import next_seq
from chainrule.autograd.views import current_node
from chainrule.interrupts import ERRSTATE, call_with, ignore_all
from chainrule.primitives import elementwise


def jvp_of(
    function: Callable[[], Sequence[Tensor]], inputs: Sequence[Tensor], tangents: Sequence[Any]
) -> list[Any]:
    """Return the tangents of the outputs of a function of `inputs`; None is a tangent of zeros."""
    outputs, found = outputs_and_jvp_of(function, inputs, tangents)
    pairs = zip(outputs, found, strict=True)
    return [TENSOR_XP.zeros_like(t) if tangent is None else tangent for t, tangent in pairs]


def outputs_and_jvp_of(
    function: Callable[[], Sequence[Tensor]], inputs: Sequence[Tensor], tangents: Sequence[Any]
) -> tuple[Sequence[Tensor], list[Any]]:
    """Return the outputs of a function of `inputs`, and their tangents: None is independent."""
    begin = next_seq()
    outputs = run_in(enable_grad(), function)
    edges = [endpoint(current_node(t)) for t in inputs]
    known = {edge: t for edge, t in zip(edges, tangents, strict=True) if t is not None}
    if known:
        nodes, _ = nodes_between(outputs, {n for n, _ in edges})
        nodes = {n for n in nodes if n.seq > begin}
        propagate_tangents(sorted(nodes, key=lambda node: node.seq), known)
    return outputs, [_tangent_of(t, known) for t in outputs]


JvpFunction = Callable[[Sequence[Tensor | None], bool], list[Any]]


def jvp_through(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> JvpFunction:
    """Return the JVP function of the graph recorded between `inputs` and `outputs`.

    It takes the tangents of the inputs, and whether to record.
    """
    edges = [current_node(t) for t in inputs]
    nodes, _ = nodes_between(outputs, {endpoint(edge)[0] for edge in edges})
    return jvp_between(edges, [current_node(t) for t in outputs], nodes, outputs)


def jvp_between(
    sources: Sequence[Edge], ends: Sequence[Edge], nodes: Collection[Node], like: Sequence[Tensor]
) -> JvpFunction:
    """Return the JVP function of `nodes`, from the edges `sources` to `ends`, of tensors `like`."""
    edges = [endpoint(edge) for edge in sources]
    own = {node for node, _ in edges}
    ordered = sorted([node for node in nodes if node not in own], key=lambda node: node.seq)

    def propagate(tangents: Sequence[Tensor | None]) -> list[Any]:
        known = {edge: t for edge, t in zip(edges, tangents, strict=True) if t is not None}
        propagate_tangents(ordered, known)
        found = [None if end is None else known.get(endpoint(end)) for end in ends]
        return [
            TENSOR_XP.zeros_like(x) if t is None else t for x, t in zip(like, found, strict=True)
        ]

    def jvp(tangents: Sequence[Tensor | None], recorded: bool) -> list[Any]:
        quiet = {ERRSTATE: ignore_all(ERRSTATE.get())}
        mode = enable_grad() if recorded else no_grad()
        return call_with(quiet, run_in, mode, propagate, tangents)

    return jvp


def tangents_between(
    roots: Sequence[Edge], sources: Sequence[Edge], tangents: Sequence[Tensor | None], earliest: int
) -> list[Tensor | None]:
    """Return the tangents of `roots`, given those of `sources`; None is a tangent of zeros.

    They go through nodes that are numbered `earliest` or later.
    """
    pairs = zip(sources, tangents, strict=True)
    known = {endpoint(edge): t for edge, t in pairs if t is not None}
    ends = [None if root is None else endpoint(root) for root in roots]
    reached = reachable([end[0] for end in ends if end is not None], earliest)
    reached -= {node for node, _ in known}
    propagate_tangents(sorted(reached, key=lambda node: node.seq), known)
    return [None if end is None else known.get(end) for end in ends]


def depends_on(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[bool]:
    """Return for each input whether any of the outputs depends on it."""
    nodes = [endpoint(current_node(t))[0] for t in inputs]
    reached, _ = nodes_between(outputs, set(nodes))
    return [node in reached for node in nodes]


def tracked(primal: Tensor) -> Tensor:
    """Return a tensor of the same values with a node of its own, connected to that of `primal`."""
    if primal.requires_grad:
        clone: Tensor = elementwise.clone.apply(primal)
        return clone
    leaf = make(primal._array, None).requires_grad_()
    leaf._node.private = True
    return leaf


def nodes_between(outputs: Sequence[Tensor], seeds: set[Node]) -> tuple[set[Node], bool]:
    """Return the nodes between seeds and outputs.

    Also return whether the outputs have other sources: an older node, a leaf, a source of a seed.
    Then the result may depend on what the caller differentiates. The arguments of transforms that
    the function called and that have ended are no such sources.
    """
    earliest = min([node.seq for node in seeds], default=0)
    reached: set[Node] = set()
    has_other_sources = False
    stack = [current_node(t) for t in outputs]
    while stack:
        edge = stack.pop()
        if edge is None:
            continue
        node: Any = edge.node if type(edge) is NodeOutput else edge
        if node in reached:
            continue
        is_leaf = type(node) is AccumulateGrad
        if node in seeds or (not is_leaf and node.seq >= earliest):
            reached.add(node)
            if not is_leaf:
                stack += node.edges
        elif node.seq < earliest or not (is_leaf and node.private):
            has_other_sources = True
    return reached, has_other_sources


def propagate_tangents(nodes: list[Node], tangents: dict[Any, Tensor]) -> None:
    """Add to `tangents` those of all outputs of `nodes` that depend on a seed."""
    state = current_modes()
    checked = state is not None and state.anomaly is not None and state.check_nan
    for node in nodes:
        arriving = tuple(
            [None if edge is None else tangents.get(endpoint(edge)) for edge in node.edges]
        )
        if any(tangent is not None for tangent in arriving) or is_collective(node):
            result = node.jvp(arriving, TENSOR_XP)
            for index, tangent in enumerate(result if isinstance(result, tuple) else (result,)):
                if tangent is not None:
                    tangents[node, index] = tangent
                    if checked:
                        from chainrule.autograd import anomaly

                        anomaly.check_tangent(node, arriving, tangent)


def _tangent_of(output: Tensor, tangents: dict[Any, Tensor]) -> Tensor | None:
    edge = current_node(output)
    return None if edge is None else tangents.get(endpoint(edge))
