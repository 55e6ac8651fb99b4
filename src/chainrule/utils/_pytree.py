"""Trees under the names of PyTorch's `utils._pytree`, which libraries import; see `cr.tree`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from chainrule import pytree
from chainrule.tree import TreeDef, flatten, leaves, unflatten
from chainrule.tree import map as tree_map

__all__ = [
    "PyTree",
    "TreeSpec",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_map_only",
    "tree_structure",
    "tree_unflatten",
]

PyTree = Any
TreeSpec = TreeDef
tree_flatten, tree_leaves = flatten, leaves


def tree_unflatten(leaves: Iterable[Any], treespec: TreeDef) -> Any:
    """Return the tree of leaves and a structure: `cr.tree.unflatten` with its arguments swapped.

    Examples
    --------
    >>> numbers, structure = tree_flatten({"w": [1.0, 2.0]})
    >>> tree_unflatten([10 * x for x in numbers], structure)
    {'w': [10.0, 20.0]}
    """
    return unflatten(treespec, leaves)


def tree_structure(tree: Any) -> TreeDef:
    """Return the structure of a tree."""
    return TreeDef(tree)


def tree_map_only(kind: Any, function: Callable[[Any], Any], tree: Any) -> Any:
    """Return a tree in which the leaves of a type, or of one in a tuple, are changed.

    Examples
    --------
    >>> tree_map_only(int, lambda n: n + 1, [1, 2.0])
    [2, 2.0]
    """
    return pytree.map_leaves(tree, lambda x: function(x) if isinstance(x, kind) else x)


def tree_all(predicate: Callable[[Any], bool], tree: Any) -> bool:
    """Return whether a function is true of all leaves."""
    return all(map(predicate, leaves(tree)))


def tree_any(predicate: Callable[[Any], bool], tree: Any) -> bool:
    """Return whether a function is true of one of the leaves."""
    return any(map(predicate, leaves(tree)))


def tree_all_only(kind: Any, predicate: Callable[[Any], bool], tree: Any) -> bool:
    """Return whether a function is true of all leaves of a type."""
    return all(predicate(x) for x in leaves(tree) if isinstance(x, kind))


def tree_any_only(kind: Any, predicate: Callable[[Any], bool], tree: Any) -> bool:
    """Return whether a function is true of one of the leaves of a type."""
    return any(predicate(x) for x in leaves(tree) if isinstance(x, kind))
