"""Groups of recorded operations: modules, calls of functions, and repeated stretches of code."""

from __future__ import annotations

import ast
import linecache
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise, takewhile
from types import CodeType
from typing import Any

from chainrule.nn.modules.container import Sequential
from chainrule.visualization.naming import Naming
from chainrule.visualization.recording import Recording, Vertex

MIN_REPETITIONS = 3
"""Number of equal stretches in a row from which they are shown once."""


@dataclass(eq=False, slots=True)
class Group:
    """Consecutive operations under one title; `count` stretches, of which `items` is the first."""

    title: str
    kind: str  # "module", "call", "function" or "repeat"
    items: list[Item] = field(default_factory=list)
    count: int = 1

    def members(self) -> Iterator[Vertex]:
        """Yield the vertices of the group, without those that repeat them."""
        for item in self.items:
            if isinstance(item, Group):
                yield from item.members()
            else:
                yield item


Item = Vertex | Group


@dataclass(eq=False, slots=True)
class Arrangement:
    """The items of a picture, and for each vertex the one that is shown in its place."""

    root: Group
    shown: dict[Vertex, Vertex]
    copies: dict[Vertex, list[Vertex]]  # the vertices that each of those stands for

    def sources(self, vertex: Vertex) -> list[tuple[Vertex, int]]:
        """Return what a shown vertex and those that it stands for use: vertices and outputs."""
        found = [
            (self.shown[source.vertex], source.output)
            for copy in self.copies[vertex]
            for source in copy.sources
        ]
        return list(dict.fromkeys(found))


def arrange(recording: Recording, naming: Naming) -> Arrangement:
    """Group the operations of a graph, and fold repeated stretches."""
    root, folding = groups_of(recording, naming), _Folding()
    root.items = folding.fold(root.items)
    same = {v: v for v in recording.vertices} | folding.shown
    shown = {v: _final(same, v) for v in recording.vertices}
    _merge_inputs(recording, shown)
    copies: dict[Vertex, list[Vertex]] = {}
    for vertex, representative in shown.items():
        copies.setdefault(representative, []).append(vertex)
        if vertex.is_output and not representative.is_output:
            representative.is_output, representative.name = True, vertex.name
    arrangement = Arrangement(root, shown, copies)
    _place_inputs(arrangement, [v for v in recording.vertices if v.kind not in _COMPUTED])
    return arrangement


def groups_of(recording: Recording, naming: Naming) -> Group:
    """Return the operations of a graph in the groups that they are in, nothing folded."""
    operations = recording.operations
    items = _nested(operations, _paths(operations, naming), 0)
    while len(items) == 1 and isinstance(items[0], Group) and items[0].kind == "function":
        items = items[0].items  # a frame around everything
    return Group("", "module", items)


_COMPUTED = ("operation", "function")


def _final(same: dict[Vertex, Vertex], vertex: Vertex) -> Vertex:
    while same[vertex] is not vertex:
        vertex = same[vertex]
    return vertex


# --- groups ---------------------------------------------------------------------------------------

_Path = tuple[tuple[str, str, Any], ...]  # title, kind and identity of each group, outermost first


def _paths(operations: Sequence[Vertex], naming: Naming) -> list[_Path]:
    """Return the groups that each operation is in."""
    owners = _owners(operations, naming)
    paths: list[_Path] = []
    run = 0
    before: Vertex | None = None
    for vertex, owner in zip(operations, owners, strict=True):
        if before is None or (before.code, before.instruction) != (vertex.code, vertex.instruction):
            run += 1
        before = vertex
        if owner is not None:
            paths.append(tuple(_module_groups(owner, naming)))
            continue
        found: list[tuple[str, str, Any]] = []
        code = vertex.code
        if code is not None and not _is_top_level(code):
            found.append((f"{_function_name(code)}()", "function", code))
        found.append(("", "call", run))
        paths.append(tuple(found))
    return paths


def _is_top_level(code: CodeType) -> bool:
    return code.co_name.startswith("<")


def _function_name(code: CodeType) -> str:
    return code.co_qualname.rpartition("<locals>.")[2]


def _module_groups(path: str, naming: Naming) -> Iterator[tuple[str, str, Any]]:
    parts, outer = path.split("."), ""
    for count in range(len(parts) + 1):
        prefix = ".".join(parts[:count])
        module = naming.modules.get(prefix)
        if module is not None and (prefix or count == 0):
            name = prefix.removeprefix(outer)
            outer = f"{prefix}." if prefix else ""
            yield " · ".join(filter(None, [name, type(module).__name__])), "module", prefix


def _owners(operations: Sequence[Vertex], naming: Naming) -> list[str | None]:
    """Return the path of the module of each operation, None where it belongs to none.

    An operation belongs to the module whose parameter it uses. Those of the same call as the one
    before or after belong to its module, and those between two of a call to the module that has
    both. All others belong to the module whose forward they were recorded in.
    """
    derived: dict[Vertex, str] = {}  # computed from parameters of one module alone
    owners: list[str | None] = []
    for vertex in operations:
        sources = [source.vertex for source in vertex.sources]
        found = [v.owner if v.kind == "leaf" else derived.get(v) for v in sources]
        known = {owner for owner in found if owner is not None}
        if len(known) == 1 and None not in found and len(vertex.operands) == len(sources):
            derived[vertex] = next(iter(known))
        owner = _common(known) if known else None
        owners.append(owner if owner in naming.modules else None)
    return _of_forwards(operations, _filled(operations, owners, naming), naming)


def _common(paths: Iterable[str]) -> str:
    split = [path.split(".") for path in paths]
    shared = []
    for parts in zip(*split, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(shared)


def _filled(
    operations: Sequence[Vertex], owners: list[str | None], naming: Naming
) -> list[str | None]:
    """Give operations of a call to the module of the next ones of this call, or to both modules.

    Those between two modules of a `Sequential` are of layers without parameters.
    """
    found, forwards = list(owners), naming.forward_codes()
    calls = [(id(vertex.code), vertex.instruction) for vertex in operations]
    known = [i for i, owner in enumerate(owners) if owner is not None]
    for first, last in pairwise([-1, *known, len(operations)]):
        after = owners[last] if last < len(operations) else None
        before = owners[first] if first >= 0 else None
        both = _sequence_of(before, after, naming)
        for i in range(first + 1, last):
            owner = None if calls[i][0] in forwards else both
            if after is not None and calls[i] == calls[last]:
                is_between = before is not None and calls[i] == calls[first]
                owner = _common([before or "", after]) if is_between else after
            elif before is not None and calls[i] == calls[first]:
                owner = before
            found[i] = owner if owner in naming.modules else None
    return found


def _sequence_of(before: str | None, after: str | None, naming: Naming) -> str | None:
    """Return the path of the `Sequential` that two modules belong to, one after the other."""
    if before is None or after is None:
        return None
    common = _common([before, after])
    module = naming.modules.get(common)
    if type(module) is not Sequential:
        return None
    names = [name for name, _ in module.named_children()]
    inner = [p.removeprefix(f"{common}." * bool(common)).split(".")[0] for p in (before, after)]
    both = [names.index(name) for name in inner if name in names]
    return common if len(both) == 2 and both[0] < both[1] else None


def _of_forwards(
    operations: Sequence[Vertex], owners: list[str | None], naming: Naming
) -> list[str | None]:
    """Give operations to the module whose forward they were recorded in, the one of its neighbours.

    Several modules may have the same forward: then it is one that has the module before or after.
    """
    codes, found = naming.forward_codes(), list(owners)
    for order in (range(len(owners)), range(len(owners) - 1, -1, -1)):
        near: str | None = None
        for i in order:
            near = owners[i] if owners[i] is not None else near
            paths = codes.get(id(operations[i].code), []) if found[i] is None else []
            around = [
                p for p in paths if near is not None and f"{near}.".startswith(f"{p}." * bool(p))
            ]
            if around or len(paths) == 1:
                found[i] = max(around or paths, key=len)
    return found


def _nested(operations: Sequence[Vertex], paths: Sequence[_Path], depth: int) -> list[Item]:
    """Return items with a group for each run of operations that have the same path."""
    items: list[Item] = []

    def key(index: int) -> Any:
        return paths[index][depth] if len(paths[index]) > depth else None

    for group, run in groupby(range(len(operations)), key):
        indices = list(run)
        if group is None:
            items += [operations[i] for i in indices]
            continue
        inner = _nested([operations[i] for i in indices], [paths[i] for i in indices], depth + 1)
        title, kind, _ = group
        if kind == "call":
            title = callee(operations[indices[0]]) if len(indices) > 1 else ""
        if not title or (len(indices) == 1 and kind != "module"):
            items += inner
        elif kind == "module" and isinstance(inner[0], Group) and _is_one_call(inner):
            items.append(Group(title, kind, inner[0].items))
        else:
            items.append(Group(title, kind, inner))
    return items


def _is_one_call(items: Sequence[Item]) -> bool:
    return len(items) == 1 and isinstance(items[0], Group) and items[0].kind == "call"


def callee(vertex: Vertex) -> str:
    """Return the name of what the user called where an operation was recorded, or nothing."""
    code = vertex.code
    if code is None:
        return ""
    position = next(
        (p for i, p in enumerate(code.co_positions()) if i == vertex.instruction // 2), None
    )
    if position is None or None in position:
        return ""
    first, last, start, end = position
    assert first is not None
    assert last is not None
    lines = linecache.getlines(code.co_filename)[first - 1 : last]
    if not lines:
        return ""
    lines[-1] = lines[-1].encode()[:end].decode(errors="ignore")
    lines[0] = lines[0].encode()[start:].decode(errors="ignore")
    try:
        expression = ast.parse("".join(lines).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return ""
    function = expression.func if isinstance(expression, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return f"{function.attr}()"
    return f"{function.id}()" if isinstance(function, ast.Name) else ""


# --- repetitions ----------------------------------------------------------------------------------


class _Folding:
    """Folds stretches of items that do the same, one after the other."""

    def __init__(self) -> None:
        self.shown: dict[Vertex, Vertex] = {}
        self._numbers: dict[Any, int] = {}
        self._keys: dict[Item, int] = {}

    def fold(self, items: list[Item]) -> list[Item]:
        """Return items with repeated stretches as groups, within groups first."""
        for i, item in enumerate(items):
            if isinstance(item, Group):
                item.items = self.fold(item.items)
                if item.kind == "call" and _is_one_operation(item.items):
                    items[i] = item.items[0]  # called again and again on the same line
        longest = 1  # inner loops are folded before those around them
        while longest * MIN_REPETITIONS < 2 * len(items):
            folded = self._fold_once(items, longest)
            longest = longest if len(folded) < len(items) else 2 * longest
            items = folded
        return items

    def _fold_once(self, items: list[Item], longest: int) -> list[Item]:
        """Fold the stretches of at most so many items."""
        keys = [self._key(item) for item in items]
        following = _next_equal(keys)
        if all(j - i > longest for i, j in enumerate(following)):
            return items
        inside = {v: i for i, item in enumerate(items) for v in _vertices(item)}
        wiring = [_wiring(item, i, inside) for i, item in enumerate(items)]
        folded: list[Item] = []
        i = 0
        while i < len(items):
            period, count = _stretch(keys, following, wiring, i, longest)
            if count < MIN_REPETITIONS or (period == 1 and _is_folded(items[i])):
                folded.append(items[i])
                i += 1
                continue
            body = items[i : i + period]
            for k in range(period, period * count):
                self._show(items[i + k], body[k % period])
            folded.append(Group(f"× {count}", "repeat", body, count))
            i += period * count
        return folded

    def _show(self, item: Item, representative: Item) -> None:
        pairs = zip(_vertices(item), _vertices(representative), strict=True)
        self.shown.update((vertex, other) for vertex, other in pairs)

    def _key(self, item: Item) -> int:
        """Return a number that is the same for items that do the same."""
        if item not in self._keys:
            self._keys[item] = self._new_key(item)
        return self._keys[item]

    def _new_key(self, item: Item) -> int:
        if isinstance(item, Group):
            title = item.title.rpartition(" · ")[2] if item.kind == "module" else item.title
            key: Any = (title, item.kind, *map(self._key, item.items))
        else:
            types = tuple([t and (t[0], str(t[1])) for t in item.types])
            kinds = tuple([isinstance(operand, str) for operand in item.operands])
            key = (item.title, types, item.settings, kinds, id(item.code), item.instruction)
        return self._numbers.setdefault(key, len(self._numbers))


def _is_one_operation(items: Sequence[Item]) -> bool:
    return len(items) == 1 and isinstance(items[0], Group) and len(items[0].items) == 1


def _is_folded(item: Item) -> bool:
    return isinstance(item, Group) and item.kind == "repeat"


def _vertices(item: Item) -> Iterable[Vertex]:
    return item.members() if isinstance(item, Group) else (item,)


def _next_equal(keys: Sequence[int]) -> list[int]:
    """Return for each position the next one with the same key, or the length."""
    found, last = [len(keys)] * len(keys), dict[int, int]()
    for i in range(len(keys) - 1, -1, -1):
        found[i] = last.get(keys[i], len(keys))
        last[keys[i]] = i
    return found


_Wiring = tuple[int, ...]
_FAR = 1 << 60


def _wiring(item: Item, index: int, inside: dict[Vertex, int]) -> _Wiring:
    """Return how many items before this one its operands are, far away if they are no items."""
    return tuple(
        [
            index - inside.get(source.vertex, -_FAR)
            for vertex in _vertices(item)
            for source in vertex.sources
        ]
    )


_MAX_CANDIDATES = 8


def _stretch(
    keys: Sequence[int],
    following: Sequence[int],
    wiring: Sequence[_Wiring],
    i: int,
    longest: int,
) -> tuple[int, int]:
    """Return the period and the number of the equal stretches that begin at a position."""
    best, n = (1, 1), len(keys)
    j = following[i]
    for _ in range(_MAX_CANDIDATES):
        period = j - i
        if period > longest or i + (MIN_REPETITIONS - 1) * period >= n:
            break
        if all(keys[i + k * period] == keys[i] for k in range(2, MIN_REPETITIONS)):
            end = j
            while end < n and keys[end] == keys[end - period]:
                end += 1
            count = _equal_wiring(wiring, i, period, (end - i) // period)
            if count >= MIN_REPETITIONS and count * period > best[0] * best[1]:
                best = period, count
        j = following[j]
    return best


def _equal_wiring(wiring: Sequence[_Wiring], i: int, period: int, count: int) -> int:
    """Return how many stretches connect their own items as the first one does."""

    def within(start: int) -> list[list[int]]:
        return [[d if d <= k else _FAR for d in wiring[start + k]] for k in range(period)]

    first = within(i)
    for number in range(1, count):
        if within(i + number * period) != first:
            return number
    return count


# --- leaves and constants -------------------------------------------------------------------------


def _merge_inputs(recording: Recording, shown: dict[Vertex, Vertex]) -> None:
    """Show leaves and constants once that are used at the same place of each repetition."""
    users: dict[Vertex, set[tuple[Vertex, int]]] = {}
    for vertex in recording.operations:
        for position, operand in enumerate(vertex.operands):
            if not isinstance(operand, str) and operand.vertex.kind not in _COMPUTED:
                users.setdefault(operand.vertex, set()).add((shown[vertex], position))
    repeated = {v for v, other in shown.items() if v is not other}
    repeated |= set(shown[v] for v in repeated)
    merged: dict[Any, Vertex] = {}
    for vertex in recording.operations:
        if vertex not in repeated:
            continue
        for operand in vertex.operands:
            if isinstance(operand, str) or operand.vertex.kind in _COMPUTED:
                continue
            source = operand.vertex
            if not source.is_output:
                key = (source.kind, str(source.types), frozenset(users[source]))
                shown[source] = merged.setdefault(key, source)


def _place_inputs(arrangement: Arrangement, inputs: Sequence[Vertex]) -> None:
    """Put each leaf and constant into the smallest group that has all its users."""
    parents: dict[Item, Group] = {}
    stack = [arrangement.root]
    while stack:
        group = stack.pop()
        for item in group.items:
            parents[item] = group
            if isinstance(item, Group):
                stack.append(item)
    chains: dict[Vertex, list[Group]] = {}
    for user in list(arrangement.root.members()):
        uses = Counter(s.vertex for copy in arrangement.copies[user] for s in copy.sources)
        for source, _ in arrangement.sources(user):
            if source.kind in _COMPUTED:
                continue
            chain = _ancestors(user, parents)
            copies = arrangement.copies[source]
            if sum(uses[copy] for copy in copies) < len(arrangement.copies[user]):
                # Not of each repetition, such as what a loop starts from.
                chain = list(takewhile(lambda group: group.kind != "repeat", chain))
            before = chains.get(source, chain)
            chains[source] = [g for g, h in zip(before, chain, strict=False) if g is h]
    for vertex in reversed(inputs):
        if arrangement.shown[vertex] is vertex:
            group = chains.get(vertex, [arrangement.root])[-1]
            group.items.insert(0, vertex)


def _ancestors(item: Item, parents: dict[Item, Group]) -> list[Group]:
    chain = []
    while item in parents:
        item = parents[item]
        chain.append(item)
    return chain[::-1]
