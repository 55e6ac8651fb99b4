"""Trees of dicts, lists, tuples, dataclasses and registered classes; other objects are leaves.

A tree may be nested to any depth, so no function here calls itself. A container inside itself, as
the parent of a child, is a leaf there.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np


class NodeType(NamedTuple):
    """How the objects of a class are taken apart and put together."""

    flatten: Callable[[Any], tuple[Any, Any]]
    """Return the children (a sequence, or a mapping by name) and the rest, compared by ``==``."""

    unflatten: Callable[[Any, Any], Any]
    """Return the object of the rest and other children, given as they were returned."""

    def parts(self, node: Any) -> list[tuple[str, Any]]:
        """Return the children, each with its path."""
        found, _ = self.flatten(node)
        if isinstance(found, Mapping):
            return [(f".{name}", part) for name, part in found.items()]
        return [(f"[{i}]", part) for i, part in enumerate(found)]

    def list_and_form(self, node: Any) -> tuple[list[Any], Any]:
        """Return a list of the children, and what makes an object of another form."""
        found, rest = self.flatten(node)
        return [part for _, part in self.parts(node)], (
            (*found, rest) if isinstance(found, Mapping) else (len(found), rest)
        )

    def with_parts(self, node: Any, parts: Iterable[Any]) -> Any:
        """Return an object as `node` with other children."""
        found, rest = self.flatten(node)
        if isinstance(found, Mapping):
            return self.unflatten(rest, dict(zip(found, parts, strict=True)))
        return self.unflatten(rest, tuple(parts))


REGISTERED: dict[type, NodeType | None] = {}
"""The classes whose objects are containers, beside Python's own; None for a known leaf."""


def node_type(node: Any) -> NodeType | None:
    """Return how an object of a registered class is taken apart; None for a leaf."""
    kind = type(node)
    try:
        return REGISTERED[kind]
    except KeyError:
        pass
    found = _XARRAY.get(kind.__name__) if kind.__module__.partition(".")[0] == "xarray" else None
    if vars(sys.modules.get(kind.__module__, object)).get(kind.__name__) is kind:
        REGISTERED[kind] = found  # not of classes that a function makes anew
    return found


def register(kind: type, container: NodeType) -> None:
    """Make a class one of containers."""
    REGISTERED[kind] = container
    _LEAVES.discard(kind)


def _data_array(rest: Any, parts: Any) -> Any:
    """Return a DataArray as another one, or the data alone if labels don't fit their shape."""
    template, (data,) = rest.template, parts
    return template.copy(data=data) if _fits(data, template) else data


def _fits(data: Any, template: Any) -> bool:
    """Return whether data are an array of a shape, not a container: a part of a Jacobian."""
    return children(data) is None and np.shape(data) == template.shape


def _dataset(rest: Any, parts: Any) -> Any:
    template = rest.template
    if all(_fits(data, template[name]) for name, data in parts.items()):
        return template.copy(data=parts)
    return parts


class _Labels:
    """What an xarray object says about its data: dimensions, coordinates, names and attributes."""

    def __init__(self, template: Any) -> None:
        self.template = template
        arrays = getattr(template, "data_vars", {"": template})
        self.forms = {name: (x.dims, x.shape, x.name, x.attrs) for name, x in arrays.items()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Labels) or self.forms != other.forms:
            return False
        a, b = (labels.template.coords.to_dataset() for labels in (self, other))
        return self.template.attrs == other.template.attrs and bool(a.identical(b))

    __hash__ = None  # type: ignore[assignment]  # Python's mark of what is compared by value


_XARRAY = {
    "DataArray": NodeType(lambda node: ((node.data,), _Labels(node)), _data_array),
    "Dataset": NodeType(
        lambda node: ({name: node[name].data for name in node.data_vars}, _Labels(node)), _dataset
    ),
}
"""The classes of xarray, by name, since it is not imported here: their data are the children."""


_LEAVES: set[type] = set()
"""Classes whose objects were found to be leaves."""


def children(node: Any) -> list[tuple[str, Any]] | None:
    """Return the children of a container, each with its path as source code; None for a leaf."""
    kind = type(node)
    if kind in _LEAVES:
        return None
    if kind is not list and kind is not tuple:
        if (found := node_type(node)) is not None:
            return found.parts(node)
        if isinstance(node, dict):
            return [(f"[{key!r}]", node[key]) for key in node]
        if not isinstance(node, _SEQUENCES):
            if hasattr(kind, "__dataclass_fields__"):  # faster than is_dataclass()
                return [(f".{f.name}", getattr(node, f.name)) for f in dataclasses.fields(node)]
            if kind in REGISTERED:  # which also remembers what is not registered
                _LEAVES.add(kind)
            return None
    elif len(node) == 1:  # the arguments of most calls
        return [("[0]", node[0])]
    return [(f"[{i}]", item) for i, item in enumerate(node)]


_SEQUENCES = (list, tuple)


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a tree, each with its path as source code."""
    if type(node) is list and _LEAVES.issuperset(map(type, node)):
        for i, part in enumerate(node):
            yield f"{path}[{i}]", part
        return
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


def describe(node: Any) -> str:
    """Return the kind of a leaf or container for errors, with its size and its names, if any."""
    if node is None:
        return "None"
    kind = type(node).__name__
    text = f"{'an' if kind.lower().startswith(('a', 'e', 'i', 'o', 'nd')) else 'a'} {kind}"
    parts = children(node)
    if parts is None:
        return text
    steps = () if isinstance(node, _SEQUENCES) else [step.strip("[].") for step, _ in parts[:8]]
    return f"{text} of {len(parts)}" + (f" ({', '.join(steps)})" if steps else "")


def without_labels(node: Any) -> Any:
    """Return the array of a `DataArray` or another registered container of one leaf."""
    if node_type(node) is not None and len(parts := list(leaves(node))) == 1:
        return parts[0][1]
    return node


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
    if (found := node_type(node)) is not None:
        return found.with_parts(node, parts)
    if kind is dict:
        return dict(zip(node, parts, strict=True))
    if isinstance(node, tuple):  # named tuples without their own __new__, with all attributes
        made = tuple.__new__(kind, parts) if hasattr(kind, "_fields") else kind(parts)
        if rest := getattr(node, "__dict__", None):
            made.__dict__.update(rest)
        return made
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
    if type(node) in _LEAVES:
        return change(node)
    if type(node) is list and _LEAVES.issuperset(map(type, node)):
        return [change(part) for part in node]
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


def zip_leaves(node: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the leaves of a tree, each with its path and its counterpart in another tree."""
    stack: list[tuple[str, Any, Any, frozenset[int]]] = [("", node, other, frozenset())]
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

    Functions take such an object itself; its gradient is a dict by names. It is no `abc.ABC`, whose
    metaclass the user's modules would have: they may have another.
    """

    def _tensors(self) -> dict[str, Any]:
        """Return the tensors by names."""
        raise NotImplementedError

    def _replaced(
        self, tensors: Mapping[str, Any], function: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Return what a function returns, called while this object has other tensors."""
        raise NotImplementedError
