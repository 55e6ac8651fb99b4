"""Nodes that a pass reaches, and those of them that lead to its inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import attrgetter

from chainrule.autograd.node import AccumulateGrad, Node, NodeOutput

_number = attrgetter("seq")


def reachable_with(
    targets: Collection[Node], roots: Iterable[Node], earliest: int
) -> tuple[set[Node], bool]:
    """Return the nodes that the roots lead to, numbered `earliest` or later, and the roots.

    Also return whether all of them lead to targets: no path ends elsewhere. That is so for the
    arguments of a transform, or where a script asks for the gradients of all of its leaves.
    """
    reached: set[Node] = set()
    stack = []
    all_lead = True
    for node in roots:
        if node.seq >= earliest:
            reached.add(node)
            stack.append(node)
    while stack:
        node = stack.pop()
        ends = True
        for edge in node.edges:
            if edge is None:
                continue
            ends = False
            if type(edge) is NodeOutput:
                edge = edge.node
            if edge in reached:
                continue
            if edge.seq >= earliest:
                reached.add(edge)
                if type(edge) is not AccumulateGrad:
                    stack.append(edge)
                elif edge not in targets:
                    all_lead = False
            elif node not in targets:
                all_lead = False
        if ends and node not in targets:
            all_lead = False
    return reached, all_lead


def leads(node: Node, nodes: Collection[Node]) -> bool:
    """Return whether an edge of a node leads to one of `nodes`."""
    return any([(e.node if type(e) is NodeOutput else e) in nodes for e in node.edges])


def leading(nodes: Collection[Node], targets: Collection[Node]) -> set[Node]:
    """Return those of `nodes` that lead to a target through `nodes`."""
    found: set[Node] = set()
    arriving = set(targets)
    for node in sorted(nodes, key=_number):
        for edge in node.edges:
            if edge is not None and (edge.node if type(edge) is NodeOutput else edge) in arriving:
                found.add(node)
                arriving.add(node)
                break
    return found


def capture_constants(
    captures: dict[Node, list[tuple[int, int]]], collective: Collection[Node]
) -> None:
    """Capture the cotangents of constants in collective nodes, under negative keys.

    Other processes take part in the derivatives of these cotangents, too.
    """
    for node in collective:
        for edge in node.edges:
            if type(edge) is AccumulateGrad and edge.private and edge not in captures:
                captures[edge] = [(0, -1 - len(captures))]
