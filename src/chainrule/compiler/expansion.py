"""Recorded graphs in which the operations of compiled calls stand in the place of the calls."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from chainrule.autograd.node import Edge, Node, endpoint, reachable
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import next_seq
from chainrule.compiler.backward import CompiledNode


def expanded(tensors: Sequence[Tensor]) -> tuple[list[Tensor], dict[Node, list[Edge]]]:
    """Return tensors at the same places of a graph without nodes of compiled calls.

    Such a call is replaced by the nodes that it would have recorded in eager mode, and nodes after
    it by copies. The dict has the edges to the outputs of each node that was replaced.
    """
    replaced: dict[Node, list[Edge]] = {}

    def edge_to(edge: Edge) -> Edge:
        if edge is None:
            return None
        node, index = endpoint(edge)
        return replaced[node][index] if node in replaced else edge

    roots = [endpoint(t._edge)[0] for t in tensors]
    for node in sorted(reachable(roots), key=lambda node: node.seq):
        edges = tuple(map(edge_to, node.edges))
        if edges == node.edges and not isinstance(node, CompiledNode):
            continue
        made = _copy(node, edges)
        if isinstance(made, CompiledNode):
            replaced[node] = [*made.graph("a derivation")]
        else:
            replaced[node] = [made.output_edge(index) for index in range(node.output_count)]
    return [make(t._array, edge_to(t._edge)) for t in tensors], replaced


def _copy(node: Node, edges: tuple[Edge, ...]) -> Node:
    if isinstance(node, PrimitiveNode) and node.saved is not None:
        node.saved_values()  # raises if they have been written to, which the copy doesn't know
    made = copy.copy(node)
    made.edges, made.seq = edges, next_seq()
    return made
