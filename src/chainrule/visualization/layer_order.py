"""Order of boxes within layers: its crossings, and orders by python-igraph or Graphviz."""

from __future__ import annotations

import shutil
import subprocess
from bisect import bisect_right, insort
from collections.abc import Sequence
from importlib import import_module
from typing import Any

_MAX_BOXES_OF_DOT = 1500
_SECONDS = 10.0

Layers = list[list[int]]
Edges = Sequence[tuple[int, int]]


def crossings(layers: Sequence[Sequence[int]], edges: Edges) -> int:
    """Return how many pairs of edges between neighbouring layers cross."""
    rank = {i: k for layer in layers for k, i in enumerate(layer)}
    level = {i: k for k, layer in enumerate(layers) for i in layer}
    found: dict[int, list[tuple[int, int]]] = {}
    for tail, head in edges:
        found.setdefault(level[tail], []).append((rank[tail], rank[head]))
    count = 0
    for pairs in found.values():
        heads: list[int] = []
        for _, head in sorted(pairs):
            count += len(heads) - bisect_right(heads, head)
            insort(heads, head)
    return count


# --- libraries ------------------------------------------------------------------------------------


def order_by_library(layers: Sequence[Sequence[int]], edges: Edges) -> Layers | None:
    """Return the boxes of each layer in an order with few crossings; None without a library."""
    found = _order_by_igraph(layers, edges)
    return _order_by_dot(layers, edges) if found is None else found


def _order_by_igraph(layers: Sequence[Sequence[int]], edges: Edges) -> Layers | None:
    try:
        igraph: Any = import_module("igraph")
    except ImportError:
        return None
    count = sum(map(len, layers))
    level = {i: k for k, layer in enumerate(layers) for i in layer}
    graph = igraph.Graph(n=count, edges=edges, directed=True)
    layout = graph.layout_sugiyama(layers=[level[i] for i in range(count)], maxiter=100)
    return [sorted(layer, key=lambda i: layout[i][0]) for layer in layers]


def _order_by_dot(layers: Sequence[Sequence[int]], edges: Edges) -> Layers | None:
    program = shutil.which("dot")
    if program is None or sum(map(len, layers)) > _MAX_BOXES_OF_DOT:
        return None
    lines = [f"{{rank=same; {'; '.join(map(str, layer))}}}" for layer in layers]
    lines += [f"{tail} -> {head}" for tail, head in edges]
    text = "digraph {\n" + "\n".join(lines) + "\n}\n"
    try:
        run = subprocess.run(
            [program, "-Tplain"], input=text, capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    rows = [line.split() for line in run.stdout.splitlines() if line.startswith("node ")]
    x = {int(row[1]): float(row[2]) for row in rows}
    if run.returncode or len(x) < sum(map(len, layers)):
        return None
    return [sorted(layer, key=x.__getitem__) for layer in layers]
