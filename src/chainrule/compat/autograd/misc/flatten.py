"""Trees of arrays as one vector, and back."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import chainrule.compat.autograd.numpy as np
from chainrule import pytree

__all__ = ["flatten", "flatten_func"]


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return a tree of arrays and numbers as one vector, and the function that makes it a tree.

    Elements of dicts are in the order of their keys.

    Examples
    --------
    >>> from chainrule.compat.autograd.misc import flatten
    >>> vector, unflatten = flatten({"b": 1.0, "a": [2.0, 3.0]})
    >>> vector, unflatten(vector * 2)["b"]
    (array([2., 3., 1.]), np.float64(2.0))
    """
    tree = _in_order(value)
    leaves = [leaf for _, leaf in pytree.leaves(tree)]
    shapes = [np.shape(leaf) for leaf in leaves]
    sizes = [int(np.size(leaf)) for leaf in leaves]
    vector = np.concatenate([np.ravel(leaf) for leaf in leaves]) if leaves else np.zeros(0)

    def unflatten(vector: Any) -> Any:
        spans = pairwise(np.cumsum([0, *sizes]))
        pieces = [np.reshape(vector[a:b], s) for (a, b), s in zip(spans, shapes, strict=True)]
        numbers = [part[()] if np.ndim(part) == 0 else part for part in pieces]
        return _in_order_of(value, pytree.with_leaves(tree, numbers))

    return vector, unflatten


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Any, Any, Any]:
    """Return a function of trees as one of vectors, `unflatten`, and the example as a vector."""
    vector, unflatten = flatten(example)
    return lambda x, *args: flatten(func(unflatten(x), *args))[0], unflatten, vector


def _in_order(tree: Any) -> Any:
    """Return a tree with the keys of its dicts sorted."""
    if isinstance(tree, dict):
        return {key: _in_order(tree[key]) for key in sorted(tree)}
    if isinstance(tree, list | tuple):
        return [_in_order(part) for part in tree]
    return tree


def _in_order_of(example: Any, tree: Any) -> Any:
    """Return a tree that `_in_order` made, in the containers of `example`."""
    if isinstance(example, dict):
        return {key: _in_order_of(part, tree[key]) for key, part in example.items()}
    if isinstance(example, list | tuple):
        parts = [_in_order_of(part, found) for part, found in zip(example, tree, strict=True)]
        return pytree.with_children(example, parts)
    return tree
