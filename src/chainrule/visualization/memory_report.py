"""`saved_report`: what a recorded graph keeps in memory, and what checkpointing would save."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.location import Location, own_frame
from chainrule.visualization.graph_text import group_paths, path_text
from chainrule.visualization.naming import Naming
from chainrule.visualization.recording import PACKED, Recording, Vertex, read
from chainrule.visualization.stretches import Group, groups_of
from chainrule.visualization.svg_drawing import bytes_text, cut


class SavedRow(NamedTuple):
    """What the operations of one kind on one line keep."""

    operation: str
    location: Location | None
    nbytes: int
    """Bytes, without memory that an earlier operation keeps or that lives anyway."""
    operations: int
    """Number of operations."""
    module: str = ""
    """The module that they belong to, such as ``0 · Linear``."""


class CheckpointRow(NamedTuple):
    """What `checkpoint` around the calls of a function or module would save."""

    name: str
    nbytes: int
    """Bytes that the graph would keep less."""
    operations: int
    """Number of operations that the backward pass would run again."""


class SavedReport:
    """What a graph keeps for its backward pass, made by `saved_report`: print it."""

    def __init__(self, recording: Recording, naming: Naming) -> None:
        recording.release()
        self.is_freed = any(v.saved is None for v in recording.vertices)
        """Whether a backward pass has freed some of the values."""
        self.is_packed = any(PACKED in v.notes for v in recording.vertices)
        """Whether hooks or `checkpoint` keep values in their own form, which is not counted."""
        owners: dict[int, Vertex] = {}
        sizes: dict[int, int] = {}
        anyway: dict[int, int] = {}
        for vertex in recording.vertices:
            for array in vertex.saved or ():
                if array.lives_anyway:
                    anyway[array.key] = array.nbytes
                elif owners.setdefault(array.key, vertex) is vertex:
                    sizes[array.key] = array.nbytes
        self.shared = sum(anyway.values())
        """Bytes of leaves and results, which live whether or not the graph does."""
        groups = groups_of(recording, naming)
        modules = {v: _module_of(path) for v, path in group_paths(groups)}
        self.rows = _rows(recording, owners, sizes, modules)
        self.checkpoints = sorted(_checkpoints(recording, groups), key=lambda row: -row.nbytes)

    @property
    def nbytes(self) -> int:
        """Bytes that the graph keeps, each memory counted once, without what lives anyway."""
        return sum(row.nbytes for row in self.rows)

    def __str__(self) -> str:
        total = self.nbytes
        lines = [f"The graph keeps {bytes_text(total)} for its backward pass"]
        if self.shared:
            lines[0] += f", and uses {bytes_text(self.shared)} that live anyway"
        if self.is_freed:
            lines.append(
                "A backward pass has freed values: ask before it, or use retain_graph=True"
            )
        if self.is_packed:
            lines.append(
                "What saved_tensors_hooks or checkpoint keep of some values is not counted"
            )
        if self.rows:
            lines.append(f"{'bytes':>9} {'share':>6}  operation")
        for row in self.rows[:_MAX_ROWS]:
            name = row.operation + (f" × {row.operations}" if row.operations > 1 else "")
            share = 100 * row.nbytes / total
            start = f"{bytes_text(row.nbytes):>9} {share:5.1f}%  {name:<17} "
            lines.append(f"{start} {_where(row.location, row.module)}".rstrip())
        if len(self.rows) > _MAX_ROWS:
            rest = sum(row.nbytes for row in self.rows[_MAX_ROWS:])
            lines.append(f"{bytes_text(rest):>9}         {len(self.rows) - _MAX_ROWS} more lines")
        for checkpoint in self.checkpoints[:_MAX_CHECKPOINTS]:
            lines.append(
                f"cr.checkpoint around {checkpoint.name} would keep "
                f"{bytes_text(checkpoint.nbytes)} less ({100 * checkpoint.nbytes / total:.0f}%),\n"
                f"  and run {checkpoint.operations} operations again"
            )
        return "\n".join(lines)

    __repr__ = __str__


_MAX_ROWS, _MAX_CHECKPOINTS = 20, 5


def saved_report(outputs: Any, *, names: Any = None) -> SavedReport:
    """Return what the recorded graph of tensors keeps in memory for its backward pass.

    Parameters
    ----------
    outputs : Tensor, or nested list, tuple or dict of Tensors
        Results of a computation, before their backward pass.
    names : dict of Tensors and Modules by name, or Module, optional
        As for `graph`; modules also of the caller's variables.

    Returns
    -------
    SavedReport
        Prints as a table. Its `rows` have the bytes by operation and line of code, largest first,
        where memory that several operations keep counts once, for the first. Its `checkpoints`
        are estimates of what `checkpoint` around each call of a function or module would save.

    Raises
    ------
    ArgumentError
        If there is no tensor among `outputs`.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.ones(1000, requires_grad=True)
    >>> report = cr.saved_report((x.exp().sin() ** 2).sum())
    >>> report.nbytes
    8000
    >>> [(row.operation, row.nbytes) for row in report.rows]
    [('exp', 4000), ('square', 4000)]
    """
    naming = Naming(names, own_frame(sys._getframe(1)))
    return SavedReport(read(outputs, naming, "saved_report"), naming)


def _module_of(path: tuple[Group, ...]) -> str:
    """Return the module of an operation in these groups, "" if it belongs to none."""
    modules = [group for group in path if group.kind == "module" and group.title]
    return path_text(modules)


def _rows(
    recording: Recording,
    owners: dict[int, Vertex],
    sizes: dict[int, int],
    modules: dict[Vertex, str],
) -> list[SavedRow]:
    by_vertex: dict[Vertex, int] = {}
    for key, vertex in owners.items():
        by_vertex[vertex] = by_vertex.get(vertex, 0) + sizes[key]
    found: dict[tuple[str, Location | None, str], list[int]] = {}
    for vertex in recording.operations:
        if vertex in by_vertex:
            row = vertex.title, vertex.location, modules.get(vertex, "")
            found.setdefault(row, []).append(by_vertex[vertex])
    rows = [
        SavedRow(title, location, sum(each), len(each), module)
        for (title, location, module), each in found.items()
    ]
    return sorted(rows, key=lambda row: -row.nbytes)


# --- checkpoints ----------------------------------------------------------------------------------


def _checkpoints(recording: Recording, root: Group) -> Iterator[CheckpointRow]:
    """Yield what checkpointing each function or module would save, equal ones together."""
    results = _result_memory(recording)
    users: dict[int, set[Vertex]] = {}
    for vertex in recording.vertices:
        for array in vertex.saved or ():
            users.setdefault(array.key, set()).add(vertex)
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    seen = set[frozenset[Vertex]]()
    for depth, group in _callables(root, 0):
        members = frozenset(group.members())
        if members in seen:
            continue  # such as a list of modules, in the module that has it
        seen.add(members)
        saving = _saving(members, users, results)
        if saving > 0 and len(members) > 1:
            name = group.title.rpartition(" · ")[2]
            found.setdefault((name, depth), []).append((saving, len(members)))
    for (name, _), calls in found.items():
        times = f" (each of {len(calls)} calls)" if len(calls) > 1 else ""
        yield CheckpointRow(
            f"{name}{times}", sum(saving for saving, _ in calls), sum(count for _, count in calls)
        )


def _callables(group: Group, depth: int) -> Iterator[tuple[int, Group]]:
    """Yield the calls of functions and modules, with how many others they are in."""
    for item in group.items:
        if isinstance(item, Group):
            if item.kind in ("module", "function"):
                yield depth, item
            yield from _callables(item, depth + 1)


def _result_memory(recording: Recording) -> dict[tuple[Vertex, int], int]:
    """Return the memory of results, of those that something keeps."""
    found = {}
    for vertex in recording.vertices:
        for array in vertex.saved or ():
            if array.origin is None:
                continue
            if array.origin < 0:
                found[vertex, ~array.origin] = array.key
            elif array.origin < len(vertex.operands):
                operand = vertex.operands[array.origin]
                if not isinstance(operand, str):
                    found[operand.vertex, operand.output] = array.key
    return found


def _saving(
    members: frozenset[Vertex],
    users: dict[int, set[Vertex]],
    results: dict[tuple[Vertex, int], int],
) -> int:
    """Return the bytes that members alone keep, less those of the operands kept in their place."""
    own: dict[int, int] = {}
    kept: set[int] = set()
    for vertex in members:
        for array in vertex.saved or ():
            if not array.lives_anyway and users[array.key] <= members:
                own[array.key] = array.nbytes
    operands = {
        (source.vertex, source.output)
        for vertex in members
        for source in vertex.sources
        if source.vertex not in members and source.vertex.kind != "leaf"
    }
    added = 0
    for vertex, index in operands:
        key = results.get((vertex, index))
        found = vertex.types[index] if index < len(vertex.types) else None
        if key in own:
            kept.add(key)
        elif key is None and found is not None and found[1] is not None:
            added += int(np.prod(found[0])) * int(np.dtype(found[1]).itemsize)
    return sum(size for key, size in own.items() if key not in kept) - added


def _where(location: Location | None, module: str) -> str:
    """Return the line as text, and the module or the source of the line."""
    if location is None:
        return module
    return f"{location.short_place}  {f'[{module}]' if module else cut(location.source, 40)}"
