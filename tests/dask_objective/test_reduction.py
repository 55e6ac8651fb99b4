"""Sums of trees, in an order that depends on their number alone."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainrule as cr
from chainrule.distributed.reduction import FAN_IN, reduce_tree, sum_trees
from chainrule.errors import ArgumentError, ShapeError


@given(st.integers(1, 3 * FAN_IN**2))
def test_every_item_is_combined_once_and_in_order(count: int) -> None:
    sizes = []

    def joined(items: list[list[int]]) -> list[int]:
        sizes.append(len(items))
        return [number for item in items for number in item]

    assert reduce_tree([[i] for i in range(count)], joined) == list(range(count))
    assert all(1 <= size <= FAN_IN for size in sizes)


def test_trees_are_added_leaf_by_leaf() -> None:
    trees: list[Any] = [
        {"a": np.full(2, i), "b": (float(i), None), "c": cr.ones(1)} for i in (1, 2)
    ]
    found = sum_trees(trees)
    np.testing.assert_array_equal(found["a"], [3, 3])
    assert found["b"] == (3.0, None)
    assert found["c"].tolist() == [2.0]
    np.testing.assert_array_equal(trees[0]["a"], [1, 1])


def test_shapes_are_not_broadcast_and_structures_must_agree() -> None:
    with pytest.raises(ShapeError, match=r"shapes \[2\] and \[1\]"):
        sum_trees([np.ones(2), np.ones(1)])
    with pytest.raises(ShapeError, match=r"shapes \[2\] and \[\]"):
        sum_trees([np.ones(2), 1.0])
    with pytest.raises(ArgumentError, match="same structure"):
        sum_trees([{"a": 1.0}, {"b": 1.0}])
