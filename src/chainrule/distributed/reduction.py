"""Sums over partitions, in an order that depends on nothing but their number.

Floating-point addition is not associative: a sum in the order in which results arrive has other
bits in each run. Here neighbours are added from left to right in groups, and then the sums of
groups in the same way, so that workers, timing and retries make no difference. The groups form a
tree: no worker receives more than `FAN_IN` results at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from chainrule import tree
from chainrule.autograd.modes import no_grad
from chainrule.errors import ShapeError

FAN_IN = 8
"""Number of results that are added at once."""


def reduce_tree(items: Sequence[Any], combine: Callable[[list[Any]], Any]) -> Any:
    """Combine neighbours in groups of `FAN_IN`, again and again until one item is left.

    Parameters
    ----------
    items : sequence, not empty
        Results, or futures or delayed objects that stand for them.
    combine : callable
        Takes a list of items, returns one. `sum_trees` adds here, ``dask.delayed(sum_trees)`` on
        the workers, in the same order.
    """
    level = list(items)
    while len(level) > 1:
        level = [combine(level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
    return level[0]


def sum_trees(trees: Sequence[Any]) -> Any:
    """Return the sum of trees leaf by leaf, from left to right; None stays.

    Raises
    ------
    ArgumentError
        If the structures differ.
    ShapeError
        If leaves differ in shape: they are not broadcast.
    """
    with no_grad():
        return functools.reduce(lambda a, b: tree.map(_add, a, b), trees)


def _add(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return a if b is None else b
    shapes = [list(getattr(leaf, "shape", ())) for leaf in (a, b)]
    if shapes[0] != shapes[1]:
        raise ShapeError(
            f"distributed: results to be added have the shapes {shapes[0]} and {shapes[1]}: "
            "return the same shapes for all partitions"
        )
    return a + b
