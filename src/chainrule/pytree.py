"""Trees of dicts, lists, tuples, named tuples and dataclasses, with any other objects as leaves.

A tree may be nested to any depth, so no function here calls itself. A container inside itself, as
the parent of a child, is a leaf there.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
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
        return
    stack, active = [(path, node, iter(parts))], {id(node)}
    while stack:
        prefix, owner, rest = stack[-1]
        for step, part in rest:
            inner = None if id(part) in active else children(part)
            if inner is not None:
                stack.append((prefix + step, part, iter(inner)))
                active.add(id(part))
                break
            yield prefix + step, part
        else:
            stack.pop()
            active.discard(id(owner))


Children = list[tuple[str, Any]]


def fold(
    node: Any, leaf: Callable[[Any], Any], build: Callable[[Any, Children, list[Any]], Any]
) -> Any:
    """Return ``build(container, children, results for them)`` of a tree, bottom up."""
    parts = children(node)
    if parts is None:
        return leaf(node)
    stack: list[tuple[Any, Children, list[Any]]] = [(node, parts, [])]
    active = {id(node)}
    while True:
        owner, parts, found = stack[-1]
        if len(found) < len(parts):
            part = parts[len(found)][1]
            inner = None if id(part) in active else children(part)
            if inner is None:
                found.append(leaf(part))
            else:
                stack.append((part, inner, []))
                active.add(id(part))
            continue
        stack.pop()
        active.discard(id(owner))
        result = build(owner, parts, found)
        if not stack:
            return result
        stack[-1][2].append(result)


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
    return fold(node, change, lambda owner, parts, found: with_children(owner, found))


def changed_leaves(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return the tree with a function applied to its leaves; unchanged containers are the same."""

    def build(owner: Any, parts: Children, found: list[Any]) -> Any:
        if all(new is part for new, (_, part) in zip(found, parts, strict=True)):
            return owner
        return with_children(owner, found)

    return fold(node, change, build)


def with_leaves(node: Any, parts: Iterable[Any]) -> Any:
    """Return the tree with other leaves, in the order of `leaves`; None stays."""
    following = iter(parts)
    return map_leaves(node, lambda leaf: None if leaf is None else next(following))


def zip_leaves(node: Any, other: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the leaves of a tree, each with its path and its counterpart in another tree."""
    stack: list[tuple[str, Any, Any, frozenset[int]]] = [(path, node, other, frozenset())]
    while stack:
        path, node, other, above = stack.pop()
        parts, others = children(node), children(other)
        found = dict(others or ())
        if (
            parts is None
            or others is None
            or type(node) is not type(other)
            or id(node) in above
            or found.keys() != {step for step, _ in parts}
        ):
            yield path, node, other
            continue
        above |= {id(node)}
        stack += [(path + step, part, found[step], above) for step, part in reversed(parts)]


class Stateful:
    """A base class of objects whose tensors transforms differentiate by: modules.

    Functions take such an object itself; its gradient is a dict by names.
    """

    def _tensors(self) -> dict[str, Any]:
        """Return the tensors by names."""
        raise NotImplementedError

    def _replaced(
        self, tensors: Mapping[str, Any], function: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Return what a function returns, called while this object has other tensors."""
        raise NotImplementedError
