"""Recorded graphs in which the operations of compiled calls stand in the place of the calls."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from chainrule.autograd.node import Edge, Node, endpoint, reachable
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import next_seq
from chainrule.compiler.backward import CompiledNode
from chainrule.visualization.naming import Naming


def with_compiled_calls_expanded(tensors: Sequence[Tensor], naming: Naming) -> list[Tensor]:
    """Return tensors at the same places of a graph without nodes of compiled calls.

    Such a call is replaced by the nodes that it would have recorded in eager mode, and nodes after
    it by copies, which take over the names.
    """
    moved: dict[tuple[Node, int], Edge] = {}

    def edge_to(edge: Edge) -> Edge:
        return None if edge is None else moved.get(endpoint(edge), edge)

    roots = [endpoint(t._edge)[0] for t in tensors]
    for node in sorted(reachable(roots), key=lambda node: node.seq):
        edges = tuple(map(edge_to, node.edges))
        is_call = isinstance(node, CompiledNode)
        if edges == node.edges and not is_call:
            continue
        made = _copy(node, edges)
        if isinstance(made, CompiledNode):
            outputs = [t._edge for t in made.graph("a derivation")[0]()]
        else:
            outputs = [made.output_edge(index) for index in range(node.output_count)]
        moved.update(((node, index), edge) for index, edge in enumerate(outputs))
        naming.rename(node, outputs)
    return [make(t._array, edge_to(t._edge)) for t in tensors]


def _copy(node: Node, edges: tuple[Edge, ...]) -> Node:
    if isinstance(node, PrimitiveNode) and node.saved is not None:
        node.saved_values()  # raises if they have been written to, which the copy doesn't know
    made = copy.copy(node)
    made.edges, made.seq = edges, next_seq()
    return made
