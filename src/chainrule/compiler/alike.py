"""What lines have in common that do the same with other values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chainrule.compiler.ir.program import Line, Value

Leaf = Any  # a value, or a number within an index

_INDICES = {"getitem": 1, "assign_at": 2, "plus_at": 2}
"""Where these functions have an index; others have a keyword `key`."""


def parts_of(line: Line) -> tuple[Any, list[Leaf]]:
    """Return what is alike in lines that do the same, and what differs: values, and positions.

    The first can be looked up. What has bodies is like nothing else.
    """
    leaves: list[Leaf] = []
    if line.bodies:
        return object(), leaves
    place = _INDICES.get(line.function)
    args = tuple([_key(arg, leaves, i == place) for i, arg in enumerate(line.args)])
    kwargs = tuple([(k, _key(arg, leaves, k == "key")) for k, arg in line.kwargs.items()])
    key = (line.function, args, kwargs)
    try:
        hash(key)
    except TypeError:
        return object(), leaves
    return key, leaves


def _key(tree: Any, leaves: list[Leaf], index: bool) -> Any:
    if isinstance(tree, Value):
        leaves.append(tree)
        return (tree.shape, tree.dtype)
    if isinstance(tree, tuple | list):
        return (type(tree), *[_key(item, leaves, index) for item in tree])
    if isinstance(tree, slice):
        return ("slice", *[_key(part, leaves, False) for part in _ends(tree)])
    if index and type(tree) is int:
        leaves.append(tree)
        return int
    return (float, repr(tree)) if isinstance(tree, float) else (type(tree), tree)


def _ends(part: slice) -> tuple[Any, Any, Any]:
    return part.start, part.stop, part.step


def with_leaves(line: Line, leaves: Iterator[Leaf], outs: tuple[Value, ...]) -> Line:
    """Return a line that does the same with other leaves, given in the order of `parts_of`."""
    place = _INDICES.get(line.function)
    args = tuple([_filled(arg, leaves, i == place) for i, arg in enumerate(line.args)])
    kwargs = {k: _filled(arg, leaves, k == "key") for k, arg in line.kwargs.items()}
    return Line(line.function, args, kwargs, outs, line.location)


def _filled(tree: Any, leaves: Iterator[Leaf], index: bool) -> Any:
    if isinstance(tree, Value) or (index and type(tree) is int):
        return next(leaves)
    if isinstance(tree, tuple | list):
        items = [_filled(item, leaves, index) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, slice):
        return slice(*[_filled(part, leaves, False) for part in _ends(tree)])
    return tree
