"""Trees of dicts, lists, tuples, named tuples and dataclasses, with anything as leaves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def children(node: Any) -> list[tuple[str, Any]] | None:
    """Return the parts of a container, each with the source that gets it; None for a leaf."""
    if isinstance(node, dict):
        return [(f"[{key!r}]", node[key]) for key in node]
    if isinstance(node, list | tuple):
        return [(f"[{i}]", item) for i, item in enumerate(node)]
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return [(f".{f.name}", getattr(node, f.name)) for f in dataclasses.fields(node)]
    return None


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a tree, each with the source that leads to it."""
    parts = children(node)
    if parts is None:
        yield path, node
    else:
        for step, part in parts:
            yield from leaves(part, path + step)


def mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return the same tree of other leaves, in new containers."""
    if isinstance(node, dict):
        return type(node)((key, mapped(part, change)) for key, part in node.items())
    if isinstance(node, list | tuple):
        parts = [mapped(part, change) for part in node]
        return type(node)(*parts) if hasattr(node, "_fields") else type(node)(parts)
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        values = {f.name: getattr(node, f.name) for f in dataclasses.fields(node)}
        return type(node)(**{name: mapped(part, change) for name, part in values.items()})
    return change(node)


def rebuilt(node: Any, parts: Iterable[Any]) -> Any:
    """Return the same tree with these leaves, in the order of `leaves`; None stays."""
    following = iter(parts)
    return mapped(node, lambda leaf: None if leaf is None else next(following))


def beside(node: Any, other: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the leaves of a tree, each with what another tree has in its place."""
    parts, others = children(node), children(other)
    if parts is None or others is None or type(node) is not type(other):
        yield path, node, other
        return
    found = dict(others)
    if found.keys() != {step for step, _ in parts}:
        yield path, node, other
        return
    for step, part in parts:
        yield from beside(part, found[step], path + step)
