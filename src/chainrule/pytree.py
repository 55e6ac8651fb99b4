"""Trees of dicts, lists, tuples, named tuples and dataclasses, with any other objects as leaves."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def children(node: Any) -> list[tuple[str, Any]] | None:
    """Return the children of a container, each with its path as source code; None for a leaf."""
    if isinstance(node, dict):
        return [(f"[{key!r}]", node[key]) for key in node]
    if isinstance(node, list | tuple):
        return [(f"[{i}]", item) for i, item in enumerate(node)]
    if hasattr(type(node), "__dataclass_fields__"):  # faster than is_dataclass()
        return [(f".{f.name}", getattr(node, f.name)) for f in dataclasses.fields(node)]
    return None


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a tree, each with its path as source code."""
    parts = children(node)
    if parts is None:
        yield path, node
    else:
        for step, part in parts:
            yield from leaves(part, path + step)


def with_children(node: Any, parts: Iterable[Any]) -> Any:
    """Return a container of the type of `node` with other children, in the order of `children`.

    No user-defined constructor runs: it has done its work on the children already, and may take
    other arguments.
    """
    kind = type(node)
    if kind is dict:
        return dict(zip(node, parts, strict=True))
    if isinstance(node, tuple):  # named tuples without their own __new__
        return tuple.__new__(kind, parts) if hasattr(kind, "_fields") else kind(parts)
    if kind is list:
        return list(parts)
    made = copy.copy(node)
    if isinstance(node, list):
        made[:] = parts
    elif isinstance(node, dict):
        for key, part in zip(node, parts, strict=True):
            made[key] = part
    else:
        for field, part in zip(dataclasses.fields(node), parts, strict=True):
            object.__setattr__(made, field.name, part)
    return made


def map_leaves(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return the tree with a function applied to its leaves, in new containers."""
    parts = children(node)
    if parts is None:
        return change(node)
    return with_children(node, [map_leaves(part, change) for _, part in parts])


def with_leaves(node: Any, parts: Iterable[Any]) -> Any:
    """Return the tree with other leaves, in the order of `leaves`; None stays."""
    following = iter(parts)
    return map_leaves(node, lambda leaf: None if leaf is None else next(following))


def zip_leaves(node: Any, other: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the leaves of a tree, each with its path and its counterpart in another tree."""
    parts, others = children(node), children(other)
    if parts is None or others is None or type(node) is not type(other):
        yield path, node, other
        return
    found = dict(others)
    if found.keys() != {step for step, _ in parts}:
        yield path, node, other
        return
    for step, part in parts:
        yield from zip_leaves(part, found[step], path + step)
