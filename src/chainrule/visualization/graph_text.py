"""Grouped graphs as texts: a tree for terminals, Graphviz's dot language, and Mermaid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from chainrule.visualization.recording import Vertex
from chainrule.visualization.stretches import Arrangement, Group, Item
from chainrule.visualization.svg_drawing import cut, heading, lines_of, tooltip

# --- trees ----------------------------------------------------------------------------------------

_MAX_DEPTH = 28
"""Depth from which a branch goes on below the tree."""


class Tree:
    """The tree from outputs to inputs: each vertex once, with references to those above."""

    def __init__(self, arrangement: Arrangement) -> None:
        self.arrangement = arrangement
        self.groups = {v: path for v, path in group_paths(arrangement.root)}
        self.rows: list[tuple[str, str, str]] = []
        vertices = list(arrangement.root.members())
        uses = Counter(s for v in vertices for s in self._sources(v))
        shared = [v for v in vertices if uses[v] > 1 and v.kind not in ("leaf", "constant")]
        self.numbers = {v: f"#{number}" for number, v in enumerate(shared, 1)}
        self.seen = set[Vertex]()
        files = {v.location.short_file for v in vertices if v.location is not None}
        self.file = files.pop() if len(files) == 1 else ""  # of all operations
        outputs = [v for v in vertices if v.is_output and not uses[v]]
        outputs += [v for v in vertices if v.is_output and uses[v]]
        later = outputs
        while later:
            rows, later = later, []
            for vertex in rows:
                if vertex not in self.seen:
                    self._add(vertex, later)

    def _sources(self, vertex: Vertex) -> list[Vertex]:
        found = [source for source, _ in self.arrangement.sources(vertex)]
        return [v for v in dict.fromkeys(found) if v is not vertex]

    def _add(self, root: Vertex, later: list[Vertex]) -> None:
        stack = [(root, "", "")]
        while stack:
            vertex, lead, branch = stack.pop()
            name = cut(heading(vertex), 56)
            if number := self.numbers.get(vertex):
                name += f" {number}"
            if vertex in self.seen and vertex.kind not in ("leaf", "constant"):
                self.rows.append((f"{lead}{branch}{name}", "see above", ""))
                continue
            if len(lead) > 3 * _MAX_DEPTH and vertex.kind not in ("leaf", "constant"):
                self.numbers.setdefault(vertex, f"#{len(self.numbers) + 1}")
                text = f"{lead}{branch}{cut(heading(vertex), 56)} {self.numbers[vertex]}"
                self.rows.append((text, "goes on below", ""))
                later.append(vertex)
                continue
            self.seen.add(vertex)
            self.rows.append((f"{lead}{branch}{name}", vertex.type_text, self._notes(vertex)))
            inner = lead + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
            sources = self._sources(vertex)
            for i, source in reversed(list(enumerate(sources))):
                last = i == len(sources) - 1
                stack.append((source, inner, "└─ " if last else "├─ "))

    def _notes(self, vertex: Vertex) -> str:
        notes = lines_of(vertex, len(self.arrangement.copies[vertex]))[1:]
        groups = [group for group in self.groups.get(vertex, ()) if group.title]
        if groups and vertex.kind != "leaf":
            notes.append(f"[{path_text(groups)}]")
        if vertex.location is not None:
            line = f"line {vertex.location.line}"
            notes.append(line if self.file else vertex.location.short_place)
        return "  ".join(notes)

    def __str__(self) -> str:
        widths = [min(max((len(row[i]) for row in self.rows), default=0), 70) for i in (0, 1)]
        return "\n".join(
            f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in self.rows
        )


def path_text(groups: Sequence[Group]) -> str:
    """Return groups as text, modules by their dotted path and the class of the innermost one."""
    parts: list[str] = []
    for is_module, run in groupby(groups, lambda group: group.kind == "module"):
        titles = [group.title for group in run]
        names, kind = [t.split(" · ")[0] for t in titles if " · " in t], titles[-1].split(" · ")[-1]
        parts += [" · ".join(filter(None, [".".join(names), kind]))] if is_module else titles
    return " > ".join(parts)


def group_paths(
    group: Group, path: tuple[Group, ...] = ()
) -> Iterator[tuple[Vertex, tuple[Group, ...]]]:
    """Yield the vertices of a group with the groups that they are in, outermost first."""
    for item in group.items:
        if isinstance(item, Group):
            yield from group_paths(item, (*path, item))
        else:
            yield item, path


# --- dot and Mermaid ------------------------------------------------------------------------------


def _numbered(arrangement: Arrangement) -> dict[Vertex, str]:
    return {v: f"n{number}" for number, v in enumerate(arrangement.root.members())}


def _edges(arrangement: Arrangement, names: dict[Vertex, str]) -> Iterator[tuple[str, str]]:
    for vertex in names:
        for source, _ in dict.fromkeys(arrangement.sources(vertex)):
            if source is not vertex or vertex.kind != "closed":
                yield names[source], names[vertex]


_DOT_STYLES = {
    "leaf": 'shape=box style="rounded,filled" fillcolor="#e3f4e6" color="#3d8c4f"',
    "constant": 'shape=box style="rounded,filled" fillcolor="#eef0f3" color="#97a1ad"',
    "tensor": 'shape=box style="rounded,filled" fillcolor="#eef0f3" color="#97a1ad"',
    "function": 'shape=box style=filled fillcolor="#f3e8fb" color="#8a4fb0"',
    "closed": 'shape=box style=dashed color="#4a78b5"',
    "operation": 'shape=box color="#4a78b5"',
}


def dot(arrangement: Arrangement) -> str:
    """Return the graph in Graphviz's language, groups as frames."""
    names = _numbered(arrangement)
    lines = ["digraph chainrule {", '  node [fontname="Helvetica" fontsize=11]']

    def write(items: list[Item], indent: str) -> None:
        for item in items:
            if isinstance(item, Group):
                lines.append(f"{indent}subgraph cluster_{len(lines)} {{")
                lines.append(f"{indent}  label={_quoted(item.title)} style=dashed fontsize=11")
                write(item.items, indent + "  ")
                lines.append(f"{indent}}}")
                continue
            copies = len(arrangement.copies[item])
            label = "\n".join([cut(heading(item)), *lines_of(item, copies)])
            tip = _quoted(tooltip(item, copies))
            bold = " penwidth=2" if item.is_output else ""
            style = _DOT_STYLES[item.kind] + bold
            lines.append(f"{indent}{names[item]} [label={_quoted(label)} tooltip={tip} {style}]")

    write(arrangement.root.items, "  ")
    lines += [f"  {tail} -> {head}" for tail, head in _edges(arrangement, names)]
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_MERMAID_SHAPES = {"leaf": ("([", "])"), "constant": ("([", "])"), "function": ("[[", "]]")}


def mermaid(arrangement: Arrangement) -> str:
    """Return the graph as a Mermaid flowchart, groups as subgraphs."""
    names = _numbered(arrangement)
    lines = ["flowchart TD"]

    def write(items: list[Item], indent: str) -> None:
        for item in items:
            if isinstance(item, Group):
                lines.append(f"{indent}subgraph g{len(lines)}[{_entities(item.title)}]")
                write(item.items, indent + "  ")
                lines.append(f"{indent}end")
                continue
            label = [cut(heading(item)), *lines_of(item, len(arrangement.copies[item]))]
            left, right = _MERMAID_SHAPES.get(item.kind, ("[", "]"))
            lines.append(f"{indent}{names[item]}{left}{_entities(*label)}{right}")

    write(arrangement.root.items, "  ")
    lines += [f"  {tail} --> {head}" for tail, head in _edges(arrangement, names)]
    for kind in ("leaf", "constant", "function"):
        found = [names[v] for v in names if v.kind == kind]
        if found:
            lines.append(f"  class {','.join(found)} {kind}")
    lines += [
        "  classDef leaf fill:#e3f4e6,stroke:#3d8c4f,color:#1d2733",
        "  classDef constant fill:#eef0f3,stroke:#97a1ad,color:#1d2733",
        "  classDef function fill:#f3e8fb,stroke:#8a4fb0,color:#1d2733",
    ]
    return "\n".join([*lines, ""])


def _entities(*texts: str) -> str:
    """Return lines as a quoted label, all but letters, digits and spaces as entities."""
    plain = " ._-=,"
    parts = [
        "".join(c if c.isalnum() or c in plain else f"#{ord(c)};" for c in text) for text in texts
    ]
    return f'"{"<br/>".join(parts)}"'
