"""Which nodes a pass comes by, and which of them lead to what is asked for."""

from __future__ import annotations

from collections.abc import Collection
from operator import attrgetter
from typing import Any

from chainrule.autograd.node import Node, Port

_number = attrgetter("seq")


def reachable(roots: Collection[Node], earliest: int) -> set[Node]:
    """Return those of the roots, and of all nodes that they lead to, from `earliest` on."""
    reached = {node for node in roots if node.seq >= earliest}
    stack = list(reached)
    while stack:
        for edge in stack.pop().edges:
            node: Any = edge.node if type(edge) is Port else edge
            if node is not None and node not in reached and node.seq >= earliest:
                reached.add(node)
                stack.append(node)
    return reached


def leading(nodes: Collection[Node], targets: Collection[Node]) -> set[Node]:
    """Return those of the nodes from which an edge leads to a target, or to another of them."""
    found: set[Node] = set()
    arriving = set(targets)
    for node in sorted(nodes, key=_number):
        for edge in node.edges:
            if (edge.node if type(edge) is Port else edge) in arriving:
                found.add(node)
                arriving.add(node)
                break
    return found
