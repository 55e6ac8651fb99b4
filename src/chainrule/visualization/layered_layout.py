"""Placement of boxes in layers, so that edges lead downwards and cross seldom.

The four steps of Sugiyama, Tagawa and Toda (IEEE Trans. Syst. Man Cybern. 11(2), 1981): layers by
longest path, an order within layers by barycentres, coordinates, edges along dummy boxes. The
coordinates nearest to the wanted ones, without overlaps, are an isotonic regression, solved by
pooling neighbours (Barlow et al., Statistical Inference under Order Restrictions, 1972).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise

from chainrule.visualization.layer_order import (
    Edges,
    Layers,
    crossings,
    order_by_library,
)

GAP_X, GAP_Y = 26.0, 34.0
"""Distances between boxes of a layer, and between layers."""
_SWEEPS = 12
_LEAF_WEIGHT = 0.002
"""How much a link from a box without inputs counts: chains of operations are to be straight."""
_MAX_DUMMIES = 20_000
"""Number of dummy boxes from which long edges are straight lines."""

Point = tuple[float, float]


@dataclass(slots=True)
class Box:
    """A box to place: its size, and whether it is at the upper or lower end of the picture."""

    width: float
    height: float
    end: str = ""  # "top" or "bottom"
    x: float = 0.0  # of the centre
    y: float = 0.0
    layer: int = 0


@dataclass(slots=True)
class Link:
    """An edge between two boxes, from and to offsets from their centres."""

    tail: int
    head: int
    tail_offset: float = 0.0
    head_offset: float = 0.0
    bends: list[Point] = field(default_factory=list)


def place(boxes: list[Box], links: list[Link]) -> tuple[float, float]:
    """Set the positions of boxes and the bends of links; return the width and the height."""
    if not boxes:
        return 0.0, 0.0
    _assign_layers(boxes, links)
    placed, chains, segments = _with_dummies(boxes, links)
    above: list[list[_Near]] = [[] for _ in placed]
    below: list[list[_Near]] = [[] for _ in placed]
    has_input = {link.head for link in segments}
    for link in segments:
        shift = link.tail_offset - link.head_offset
        weight = 1.0 if link.tail in has_input or placed[link.tail].end else _LEAF_WEIGHT
        above[link.head].append((link.tail, shift, weight))
        below[link.tail].append((link.head, -shift, weight))
    layers = _ordered(placed, [(link.tail, link.head) for link in segments], above, below)
    upper = [a or b for a, b in zip(above, below, strict=True)]
    lower = [b or a for a, b in zip(above, below, strict=True)]
    both = [a + b for a, b in zip(above, below, strict=True)]
    for near, step in [(upper, 1), (lower, -1), (upper, 1)] * 2 + [(both, 1), (both, -1)]:
        for layer in layers[::step]:
            _spread(layer, near, placed)
    return _finish(placed, layers, links, chains)


def _ordered(placed: list[Box], edges: Edges, above: _All, below: _All) -> Layers:
    """Return the boxes of each layer in an order with few crossings."""
    layers: Layers = [[] for _ in range(max(box.layer for box in placed) + 1)]
    for i in sorted(range(len(placed)), key=lambda i: not above[i]):  # parameters to the right
        layers[placed[i].layer].append(i)
    for layer in layers:
        _spread(layer, [[]] * len(placed), placed)
    found = [[list(layer) for layer in layers]]
    for _ in range(_SWEEPS if len(placed) < 3000 else 4):
        for direction, near in ((layers, above), (layers[::-1], below)):
            for layer in direction:
                wanted = {i: _mean(i, near, placed) for i in layer}
                layer.sort(key=wanted.__getitem__)
                _spread(layer, near, placed)
            found.append([list(layer) for layer in layers])
    counts = [crossings(each, edges) for each in found]
    best = found[counts.index(min(counts))]
    ordered = order_by_library(best, edges) if min(counts) else None
    return ordered if ordered and crossings(ordered, edges) < min(counts) else best


_Near = tuple[int, float, float]
"""A box at the other end of a link, where the centre is wanted relative to its, and the weight."""

_All = list[list[_Near]]


def _mean(i: int, near: list[list[_Near]], placed: Sequence[Box]) -> float:
    if not near[i]:
        return placed[i].x
    total = sum(weight for _, _, weight in near[i])
    return sum((placed[j].x + shift) * weight for j, shift, weight in near[i]) / total


def _assign_layers(boxes: list[Box], links: Sequence[Link]) -> None:
    """Layer boxes by their longest path from the top; those without inputs near their users."""
    tails: dict[int, list[int]] = {i: [] for i in range(len(boxes))}
    heads: dict[int, list[int]] = {i: [] for i in range(len(boxes))}
    for link in links:
        tails[link.head].append(link.tail)
        heads[link.tail].append(link.head)
    order = list(TopologicalSorter(tails).static_order())
    begin = int(any(box.end == "top" for box in boxes))
    for i in order:
        least = 0 if boxes[i].end == "top" else begin
        boxes[i].layer = max([least, *[boxes[j].layer + 1 for j in tails[i]]])
    for i in order:
        if heads[i] and not tails[i] and boxes[i].end != "top":
            boxes[i].layer = min(boxes[j].layer for j in heads[i]) - 1
    last = max(box.layer + (box.end != "bottom") for box in boxes)
    for box in boxes:
        box.layer = last if box.end == "bottom" else box.layer


def _with_dummies(
    boxes: list[Box], links: Sequence[Link]
) -> tuple[list[Box], list[list[int]], list[Link]]:
    """Return boxes with a dummy for each layer that a link crosses, and links between layers."""
    placed, chains, segments = list(boxes), [], []
    spans = [range(boxes[link.tail].layer + 1, boxes[link.head].layer) for link in links]
    if sum(map(len, spans)) > _MAX_DUMMIES:
        spans = [range(0)] * len(links)
    for link, span in zip(links, spans, strict=True):
        chain = list(range(len(placed), len(placed) + len(span)))
        placed += [Box(2.0, 0.0, layer=layer) for layer in span]
        parts = [Link(a, b) for a, b in pairwise([link.tail, *chain, link.head])]
        parts[0].tail_offset, parts[-1].head_offset = link.tail_offset, link.head_offset
        segments += parts
        chains.append(chain)
    return placed, chains, segments


def _spread(layer: Sequence[int], near: _All, placed: list[Box]) -> None:
    """Move the boxes of a layer near to where links want them, in this order and apart."""
    # Of each pool: the mean of wanted positions less what stands before, its weight, its count.
    pools: list[tuple[float, float, int]] = []
    offsets: list[float] = []
    offset = before = 0.0
    for i in layer:
        box = placed[i]
        gap = GAP_X if box.height or not offsets else GAP_X / 2
        offset += (before + box.width) / 2 + gap if offsets else 0.0
        offsets.append(offset)
        before = box.width
        weight = sum(weight for _, _, weight in near[i]) or 1e-3
        pools.append((_mean(i, near, placed) - offset, weight, 1))
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (mean, weight, count), (other, heavier, more) = pools.pop(), pools.pop()
            total = weight + heavier
            pools.append(((mean * weight + other * heavier) / total, total, count + more))
    means = [mean for mean, _, count in pools for _ in range(count)]
    for i, mean, offset in zip(layer, means, offsets, strict=True):
        placed[i].x = mean + offset


def _finish(
    placed: list[Box], layers: list[list[int]], links: list[Link], chains: list[list[int]]
) -> tuple[float, float]:
    left = min(box.x - box.width / 2 for box in placed)
    top = 0.0
    spans = []
    for layer in layers:
        height = max((placed[i].height for i in layer), default=0.0)
        spans.append((top, top + height))
        for i in layer:
            placed[i].x -= left
            placed[i].y = top + height / 2
        top += height + GAP_Y
    for link, chain in zip(links, chains, strict=True):
        # Straight down beside the boxes of each layer, so as not to cut the corners of tall ones.
        tail, head = placed[link.tail], placed[link.head]
        start, end = spans[tail.layer][1], spans[head.layer][0]
        link.bends = [(tail.x + link.tail_offset, start)] * (tail.y + tail.height / 2 < start)
        link.bends += [(placed[i].x, y) for i in chain for y in spans[placed[i].layer]]
        link.bends += [(head.x + link.head_offset, end)] * (head.y - head.height / 2 > end)
    return max(box.x + box.width / 2 for box in placed), top - GAP_Y
