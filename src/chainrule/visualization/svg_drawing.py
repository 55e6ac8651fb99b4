"""Drawing of grouped graphs as SVG, in light and dark, without any library."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

from chainrule.visualization.layered_layout import GAP_Y, Box, Link, Point, place
from chainrule.visualization.recording import Vertex
from chainrule.visualization.stretches import Arrangement, Group, Item

# --- texts ----------------------------------------------------------------------------------------

_MAX_TEXT = 44
"""Number of characters from which a line in a box is cut; the tooltip has all of it."""


def cut(text: str, length: int = _MAX_TEXT) -> str:
    """Return a text of at most `length` characters, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"


def width_of(text: str, size: float) -> float:
    """Return an upper bound of the width of a text in a usual sans-serif font, in pixels."""
    total = 0.0
    for letter in text:
        if unicodedata.east_asian_width(letter) in "WF" or ord(letter) > 0xFFFF:
            total += 1.25
        elif letter in "mwMW@%—‖×→…":
            total += 1.0
        elif letter.isupper():
            total += 0.78
        elif letter in "iljtf.,:;|!'()[] ·":
            total += 0.42
        else:
            total += 0.66
    return total * size


def bytes_text(count: float) -> str:
    """Return a number of bytes with a prefix."""
    for prefix in ("", "k", "M", "G"):
        if count < 1000:
            return f"{count:.3g} {prefix}B"
        count /= 1000
    return f"{count:.3g} TB"


def heading(vertex: Vertex) -> str:
    """Return the first line of a box: what is computed, and the variable that has it."""
    if vertex.kind in ("leaf", "constant", "tensor"):
        return vertex.name or vertex.title
    shown = [o.partition(" (")[0] if isinstance(o, str) else "·" for o in vertex.operands]
    text = vertex.title if set(shown) <= {"·"} else f"{vertex.title}({', '.join(shown)})"
    return f"{vertex.name} = {text}" if vertex.name else text


def lines_of(vertex: Vertex, copies: int = 1) -> list[str]:
    """Return the other lines of a box."""
    lines = [vertex.type_text]
    notes = []
    if vertex.saved is None:
        notes.append("freed")
    elif vertex.nbytes:
        notes.append(f"keeps {bytes_text(vertex.nbytes)}")
    if vertex.grad_norm is not None:
        notes.append(f"‖grad‖ = {vertex.grad_norm:.3g}")
    if vertex.kind == "closed":
        notes.insert(0, vertex.notes[0])
    if notes:
        lines.append(" · ".join(notes))
    if vertex.kind in ("leaf", "constant") and copies > 1:
        lines.append(f"one of {copies}")
    return lines


def tooltip(vertex: Vertex, copies: int = 1) -> str:
    """Return all that is known of a vertex."""
    lines = [heading(vertex)]
    if vertex.kind == "leaf":
        lines.append("a leaf: its gradient accumulates in .grad")
    if vertex.kind == "constant":
        lines.append("a constant: it requires no gradient")
    lines.append(vertex.type_text)
    if vertex.label and vertex.kind != "leaf":
        lines.append(vertex.label)
    if vertex.settings:
        lines.append(vertex.settings)
    for array in vertex.saved if vertex.saved is not None and vertex.kind != "closed" else ():
        shared = ", which lives anyway" if array.lives_anyway else ""
        lines.append(f"keeps {array.name}: {bytes_text(array.nbytes)}{shared}")
    if vertex.grad_norm is not None:
        lines.append(f"norm of the gradient: {vertex.grad_norm:.6g}")
    if copies > 1 and vertex.kind != "closed":
        lines.append(f"one of {copies}: the other repetitions do the same")
    lines += vertex.notes
    if vertex.location is not None:
        lines.append(vertex.location.described(vertex.location.short_place))
    return "\n".join(lines)


# --- layout of groups -----------------------------------------------------------------------------

_Key = tuple[Any, ...]


@dataclass(eq=False)
class _Frame:
    """A group with the places of its items, relative to its upper left corner."""

    group: Group
    keys: dict[_Key, int] = field(default_factory=dict)
    boxes: list[Box] = field(default_factory=list)
    links: dict[_Key, Link] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0
    is_end: list[bool] = field(default_factory=list)  # of links: whether an arrow ends there

    def index(self, key: _Key, box: Box) -> int:
        if key not in self.keys:
            self.keys[key] = len(self.boxes)
            self.boxes.append(box)
        return self.keys[key]


@dataclass
class _Parts:
    """Elements of a picture, from the lowest layer to the uppermost."""

    frames: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


_PAD, _TITLE = 14.0, 22.0
_LINE, _TITLE_SIZE, _TEXT_SIZE = 16.0, 13.0, 11.0


class Drawing:
    """A grouped graph with all positions; `svg()` writes it."""

    def __init__(self, arrangement: Arrangement) -> None:
        self.arrangement = arrangement
        self.parents: dict[Item, Group] = {}
        self.frames: dict[Group, _Frame] = {}
        self.ranks: dict[Vertex, int] = {}
        self._walk(arrangement.root)
        self.carried: dict[Group, list[str]] = {}
        edges = list(self._edges())
        outward: dict[Group, set[Vertex]] = {}
        inward: dict[Group, set[Vertex]] = {}
        paths = []
        for tail, head in edges:
            above, below = self._ancestors(tail), self._ancestors(head)
            shared = sum(1 for a, b in zip(above, below, strict=False) if a is b)
            for group in above[shared:]:
                outward.setdefault(group, set()).add(tail)
            for group in below[shared:]:
                inward.setdefault(group, set()).add(tail)
            paths.append((tail, head, above, below, shared))
        self._link_paths(paths)
        self._place(arrangement.root)

    def _walk(self, group: Group) -> None:
        self.frames[group] = _Frame(group)
        for item in group.items:
            self.parents[item] = group
            if isinstance(item, Group):
                self._walk(item)
            else:
                self.ranks[item] = len(self.ranks)

    def _ancestors(self, item: Item) -> list[Group]:
        chain = []
        while item in self.parents:
            item = self.parents[item]
            chain.append(item)
        return chain[::-1]

    def _edges(self) -> Iterator[tuple[Vertex, Vertex]]:
        """Yield the edges that lead downwards; note those from one repetition to the next."""
        for vertex in self.ranks:
            for source, _ in dict.fromkeys(self.arrangement.sources(vertex)):
                if source is vertex and vertex.kind == "closed":
                    continue
                if self.ranks[source] < self.ranks[vertex] or source.kind in ("leaf", "constant"):
                    yield source, vertex
                    continue
                group = next((g for g in self._ancestors(vertex)[::-1] if g.kind == "repeat"), None)
                if group is not None:
                    text = f"{source.title} goes into the next {vertex.title}"
                    self.carried.setdefault(group, []).append(text)

    def _link_paths(self, paths: list[Any]) -> None:
        """Add each edge to the frames that it passes, with points on the borders."""
        for tail, head, above, below, shared in paths:
            for depth in range(len(above) - 1, shared - 1, -1):
                start = above[depth + 1] if depth + 1 < len(above) else tail
                self._link(above[depth], (start, tail), ("out", tail), False)
            start = above[shared] if shared < len(above) else tail
            end = below[shared] if shared < len(below) else head
            self._link(below[shared - 1], (start, tail), (end, tail), end is head)
            for depth in range(shared, len(below)):
                end = below[depth + 1] if depth + 1 < len(below) else head
                self._link(below[depth], ("in", tail), (end, tail), end is head)

    def _link(self, group: Group, tail: _Key, head: _Key, is_end: bool) -> None:
        """Add a link; a key has the item, or the side of the frame, and the source of the edge."""
        self.frames[group].links.setdefault((tail, head, is_end), Link(0, 0))

    def _place(self, group: Group) -> None:
        frame = self.frames[group]
        for item in group.items:
            if isinstance(item, Group):
                self._place(item)
                inner = self.frames[item]
                frame.index((item,), Box(inner.width, inner.height))
            else:
                frame.index((item,), self._box(item))
        for (tail, head, is_end), link in frame.links.items():
            link.tail, link.tail_offset = self._end(frame, tail, "out")
            link.head, link.head_offset = self._end(frame, head, "in")
            frame.is_end.append(is_end)
        width, height = place(frame.boxes, list(frame.links.values()))
        is_root = group is self.arrangement.root
        title = 0.0 if is_root else width_of(self.title(group), 12.0) + 2 * _PAD
        frame.width, frame.height = max(width + 2 * _PAD, title), height + 2 * _PAD
        shift_x, shift_y = (frame.width - width) / 2, _PAD
        if not is_root:
            shift_y += _TITLE - GAP_Y * any(box.end == "top" for box in frame.boxes)
            frame.height += shift_y - _PAD
            frame.height -= GAP_Y * any(box.end == "bottom" for box in frame.boxes)
        for box in frame.boxes:
            box.x += shift_x
            box.y += shift_y
            if box.end:  # a point on the border
                box.y = 0.0 if box.end == "top" else frame.height
        for link in frame.links.values():
            link.bends = [(x + shift_x, y + shift_y) for x, y in link.bends]

    def _end(self, frame: _Frame, key: _Key, side: str) -> tuple[int, float]:
        item, source = key
        if isinstance(item, str):
            end = "top" if item == "in" else "bottom"
            return frame.index((item, source), Box(4.0, 0.0, end)), 0.0
        index = frame.keys[item,]
        if isinstance(item, Group):
            inner = self.frames[item]
            point = inner.boxes[inner.keys[side, source]]
            return index, point.x - inner.width / 2
        return index, 0.0

    def _box(self, vertex: Vertex) -> Box:
        width = width_of(self.heading(vertex), _TITLE_SIZE * 1.06)  # bold
        lines = lines_of(vertex, self._copies(vertex))
        width = max([width, *(width_of(line, _TEXT_SIZE) for line in lines)])
        return Box(max(width + 24, 64.0), 14 + _LINE * (1 + len(lines)))

    def _copies(self, vertex: Vertex) -> int:
        return len(self.arrangement.copies[vertex])

    def heading(self, vertex: Vertex) -> str:
        """Return the first line of a box; a parameter's name without that of its module."""
        text = heading(vertex)
        if vertex.kind == "leaf" and vertex.owner and self.parents[vertex].kind == "module":
            text = text.removeprefix(f"{vertex.owner}.")
        return cut(text)

    def title(self, group: Group) -> str:
        """Return the title of a group, with what its repetitions hand on."""
        return cut(" · ".join([group.title, *dict.fromkeys(self.carried.get(group, ()))]), 60)

    # --- writing ---

    def svg(self, identity: str = "cr-graph") -> str:
        """Return the picture as a text of SVG."""
        frame = self.frames[self.arrangement.root]
        width, height = frame.width, frame.height
        parts = _Parts()
        self._write(frame, 0.0, 0.0, parts)
        size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" class="cr-graph" {size} role="img" '
                f'aria-label="recorded graph" style="max-width: 100%; height: auto">',
                f"<style>{STYLE}</style>",
                f'<defs><marker id="{identity}-arrow" viewBox="0 0 8 8" refX="7" refY="4" '
                'markerWidth="7" markerHeight="7" orient="auto"><path class="cr-head" '
                'd="M0 0.8L8 4L0 7.2z"/></marker></defs>',
                f'<rect class="cr-paper" width="{width:.0f}" height="{height:.0f}" rx="8"/>',
                *parts.frames,
                *[line.replace("#arrow", f"#{identity}-arrow") for line in parts.edges],
                *parts.texts,
                "</svg>",
                "",
            ]
        )

    def _write(self, frame: _Frame, left: float, top: float, parts: _Parts) -> None:
        if frame.group is not self.arrangement.root:
            title = escape(self.title(frame.group))
            parts.frames.append(
                f'<rect class="cr-group cr-{frame.group.kind}" x="{left:.1f}" y="{top:.1f}" '
                f'width="{frame.width:.1f}" height="{frame.height:.1f}" rx="10"/>'
            )
            parts.texts.append(
                f'<text class="cr-name" x="{left + 12:.1f}" y="{top + 18:.1f}">{title}</text>'
            )
        for link, is_end in zip(frame.links.values(), frame.is_end, strict=True):
            points = self._points(frame, link, left, top)
            arrow = ' marker-end="url(#arrow)"' if is_end else ""
            parts.edges.append(f'<path class="cr-edge" d="{curve(points)}"{arrow}/>')
        for item in frame.group.items:
            box = frame.boxes[frame.keys[item,]]
            x, y = left + box.x - box.width / 2, top + box.y - box.height / 2
            if isinstance(item, Group):
                self._write(self.frames[item], x, y, parts)
            else:
                parts.texts.append(self._vertex(item, x, y, box))

    def _points(self, frame: _Frame, link: Link, left: float, top: float) -> list[Point]:
        tail, head = frame.boxes[link.tail], frame.boxes[link.head]
        start = (tail.x + link.tail_offset, tail.y + tail.height / 2)
        end = (head.x + link.head_offset, head.y - head.height / 2)
        return [(x + left, y + top) for x, y in (start, *link.bends, end)]

    def _vertex(self, vertex: Vertex, x: float, y: float, box: Box) -> str:
        lines = lines_of(vertex, self._copies(vertex))
        kind = f"cr-node cr-{vertex.kind}" + " cr-output" * vertex.is_output
        middle, radius = x + box.width / 2, 18 if vertex.kind in ("leaf", "constant") else 6
        parts = [
            f'<g class="{kind}"><title>{escape(tooltip(vertex, self._copies(vertex)))}</title>'
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
            f'rx="{radius}"/>'
        ]
        texts = [("cr-title", self.heading(vertex)), *[("cr-text", line) for line in lines]]
        for number, (style, text) in enumerate(texts):
            baseline = y + 20 + _LINE * number
            parts.append(
                f'<text class="{style}" x="{middle:.1f}" y="{baseline:.1f}">{escape(text)}</text>'
            )
        return "".join([*parts, "</g>"])


def curve(points: list[Point]) -> str:
    """Return a smooth path through points, vertical at each of them."""
    (x, y), *others = points
    parts = [f"M{x:.1f} {y:.1f}"]
    for next_x, next_y in others:
        if abs(next_x - x) < 0.05:
            parts.append(f"L{next_x:.1f} {next_y:.1f}")
        else:
            middle = (y + next_y) / 2
            parts.append(
                f"C{x:.1f} {middle:.1f} {next_x:.1f} {middle:.1f} {next_x:.1f} {next_y:.1f}"
            )
        x, y = next_x, next_y
    return "".join(parts)


_LIGHT = """--cr-paper: #fdfdfe; --cr-ink: #1d2733; --cr-muted: #5a6675; --cr-line: #8593a3;
  --cr-node: #ffffff;
  --cr-border: #4a78b5; --cr-leaf: #e3f4e6; --cr-leaf-border: #3d8c4f; --cr-constant: #eef0f3;
  --cr-constant-border: #97a1ad; --cr-function: #f3e8fb; --cr-function-border: #8a4fb0;
  --cr-module: #4a78b50d; --cr-repeat: #c7761e12; --cr-repeat-border: #c7761e;
  --cr-output: #fff3d6; --cr-output-border: #c08a12;"""
_DARK = """--cr-paper: #131a22; --cr-ink: #e6ebf1; --cr-muted: #a3afbd; --cr-line: #7d8a99;
  --cr-node: #1f2a37;
  --cr-border: #6b9bd8; --cr-leaf: #1d3a28; --cr-leaf-border: #5fb576; --cr-constant: #2a323c;
  --cr-constant-border: #77828f; --cr-function: #3a2549; --cr-function-border: #b884da;
  --cr-module: #6b9bd814; --cr-repeat: #e09a4a14; --cr-repeat-border: #e09a4a;
  --cr-output: #43381a; --cr-output-border: #dcb04a;"""

LIGHT_PAGES = ['[data-theme="light"]', '[data-jp-theme-light="true"]']
DARK_PAGES = ['[data-theme="dark"]', '[data-jp-theme-light="false"]']
"""Elements around parts of a page that are light or dark whatever the system prefers."""


def within(pages: list[str], selector: str) -> str:
    """Return the CSS selector of an element within any of some others."""
    return ", ".join(f"{page} {selector}" for page in pages)


STYLE = f"""
.cr-graph {{ {_LIGHT} color-scheme: light dark;
  font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }}
@media (prefers-color-scheme: dark) {{ .cr-graph {{ {_DARK} }} }}
{within(LIGHT_PAGES, ".cr-graph")} {{ {_LIGHT} }}
{within(DARK_PAGES, ".cr-graph")} {{ {_DARK} }}
.cr-graph .cr-node rect {{ fill: var(--cr-node); stroke: var(--cr-border); stroke-width: 1.3; }}
.cr-graph .cr-leaf rect {{ fill: var(--cr-leaf); stroke: var(--cr-leaf-border); }}
.cr-graph .cr-constant rect, .cr-graph .cr-tensor rect
  {{ fill: var(--cr-constant); stroke: var(--cr-constant-border); }}
.cr-graph .cr-function rect {{ fill: var(--cr-function); stroke: var(--cr-function-border); }}
.cr-graph .cr-closed rect {{ stroke-dasharray: 4 3; }}
.cr-graph .cr-output rect
  {{ fill: var(--cr-output); stroke: var(--cr-output-border); stroke-width: 2; }}
.cr-graph .cr-paper {{ fill: var(--cr-paper); }}
.cr-graph .cr-group
  {{ fill: var(--cr-module); stroke: var(--cr-border); stroke-dasharray: 4 3; }}
.cr-graph .cr-repeat {{ fill: var(--cr-repeat); stroke: var(--cr-repeat-border); }}
.cr-graph .cr-name {{ fill: var(--cr-muted); font-size: 12px; font-weight: 600;
  paint-order: stroke; stroke: var(--cr-paper); stroke-width: 4px; stroke-linejoin: round; }}
.cr-graph .cr-title
  {{ fill: var(--cr-ink); font-size: {_TITLE_SIZE:.0f}px; font-weight: 600; text-anchor: middle; }}
.cr-graph .cr-text
  {{ fill: var(--cr-muted); font-size: {_TEXT_SIZE:.0f}px; text-anchor: middle; }}
.cr-graph .cr-edge {{ fill: none; stroke: var(--cr-line); stroke-width: 1.3; }}
.cr-graph .cr-head {{ fill: var(--cr-line); }}
.cr-graph .cr-found rect {{ stroke: #e0312f; stroke-width: 3.5; }}
"""
