"""Closing of groups, and of stretches of operations, until a picture has few enough boxes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from chainrule.visualization.recording import Vertex
from chainrule.visualization.stretches import Arrangement, Group, Item

MAX_BOXES = 300
"""Number of boxes from which groups are closed, innermost first."""


def condense(arrangement: Arrangement, limit: int = MAX_BOXES) -> None:
    """Close groups, then lines, then blocks of operations, until at most about `limit` are left."""
    root = arrangement.root
    while sum(1 for _ in root.members()) > limit:
        depth = max(_depths(root, 0), default=0)
        if depth == 0:
            break
        _close_at(arrangement, root, depth)
    lines: Sequence[Callable[[Item], Any]] = (_line_of, lambda item: None)
    for line_of in lines:
        if sum(1 for _ in root.members()) > limit:
            size = -(-len(root.items) // _BLOCKS)
            numbers = {item: i // size for i, item in enumerate(root.items)}
            _close_runs(root, arrangement, numbers, line_of)


_BLOCKS = 60
"""Number of equal blocks that are made of operations in no group."""


def _depths(group: Group, depth: int) -> Iterator[int]:
    for item in group.items:
        if isinstance(item, Group):
            yield from _depths(item, depth + 1)
    yield depth


def _close_at(arrangement: Arrangement, group: Group, depth: int) -> None:
    for i, item in enumerate(group.items):
        if not isinstance(item, Group):
            continue
        if depth == 1:
            times = f" × {item.count}" if item.count > 1 else ""
            names = _operation_names(item.members())
            title = f"{names}{times}" if item.kind == "repeat" else item.title
            group.items[i] = _closed(arrangement, list(item.members()), title)
        else:
            _close_at(arrangement, item, depth - 1)


def _operation_names(members: Iterator[Vertex]) -> str:
    found = list(
        dict.fromkeys(
            v.title.removesuffix("()") for v in members if v.kind not in ("leaf", "constant")
        )
    )
    return ", ".join(found[:3]) + ("…" if len(found) > 3 else "")


def _line_of(item: Item) -> Any:
    return None if isinstance(item, Group) else item.location


def _close_runs(
    root: Group,
    arrangement: Arrangement,
    numbers: Mapping[Item, int],
    line_of: Callable[[Item], Any],
) -> None:
    """Close each run of items that have the same number and line."""
    items: list[Item] = []
    for _, run in groupby(root.items, lambda item: (numbers[item], line_of(item))):
        members = list(run)
        if len(members) == 1:
            items += members
            continue
        vertices = [v for m in members for v in (m.members() if isinstance(m, Group) else (m,))]
        items.append(_closed(arrangement, vertices, _run_title(vertices)))
    root.items = items


def _run_title(vertices: Sequence[Vertex]) -> str:
    names = _operation_names(iter(vertices))
    found = {v.location for v in vertices}
    location = next(iter(found)) if len(found) == 1 else None
    return names if location is None else f"line {location.line}: {names}"


def _closed(arrangement: Arrangement, members: Sequence[Vertex], title: str) -> Vertex:
    """Return a vertex that stands for several."""
    last = members[-1]
    copies = [copy for v in members for copy in arrangement.copies.pop(v)]
    computed = [v for v in copies if v.kind not in ("leaf", "constant")]
    made = Vertex("closed", title, types=last.types, location=last.location, seq=last.seq)
    made.is_output = any(v.is_output for v in copies)
    made.name = next((v.name for v in members if v.is_output), "")
    known = [v.saved for v in copies if v.saved is not None]
    made.saved = [array for saved in known for array in saved] if known else None
    made.notes.append(f"{len(computed)} operations" if len(computed) != 1 else "1 operation")
    norms = [v.grad_norm for v in copies if v.kind == "leaf" and v.grad_norm is not None]
    if norms:
        made.grad_norm = sum(norm * norm for norm in norms) ** 0.5
    for copy in copies:
        arrangement.shown[copy] = made
    arrangement.copies[made] = copies
    return made
