"""Reductions of segments, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import check_derivatives, compare_with_torch

X = np.random.default_rng(0).normal(size=(2, 6, 3))
LENGTHS = np.array([[1, 0, 3, 2], [0, 4, 2, 0]])
WAYS = ("sum", "mean", "prod", "max", "min")


@pytest.mark.parametrize("way", WAYS)
def test_segments_as_in_pytorch(way: str) -> None:
    def function(lib: Any, x: Any, lengths: Any) -> Any:
        first = lib.segment_reduce(x[:, :, 0].contiguous(), way, lengths=lengths, axis=1)
        rows = lib.segment_reduce(x[0], way, lengths=lengths[0], initial=0.5)
        return first, lib.segment_reduce(x, way, lengths=lengths, axis=1, unsafe=True), rows

    compare_with_torch(function, X, LENGTHS, order=1 if way in ("sum", "prod") else 0)


@pytest.mark.parametrize("way", WAYS)
def test_derivatives_of_segments(way: str) -> None:
    def function(lib: Any, x: Any) -> Any:
        return lib.segment_reduce(x, way, lengths=lib.tensor([3, 1, 2]))

    check_derivatives(function, X[0])


@pytest.mark.parametrize("way", WAYS)
def test_lengths_of_each_example_and_of_a_compiled_function(way: str) -> None:
    def function(x: Any, lengths: Any) -> Any:
        return cr.segment_reduce(x, way, lengths=lengths)

    x, lengths = cr.tensor(X), cr.tensor(LENGTHS)
    wanted = cr.segment_reduce(x, way, lengths=lengths, axis=1)
    np.testing.assert_allclose(cr.vmap(function)(x, lengths), wanted)
    np.testing.assert_allclose(cr.compile(function)(x[0], lengths[0]), wanted[0])


def test_offsets_and_what_is_beyond_the_last_segment() -> None:
    x = cr.tensor([1.0, 2.0, 3.0, 4.0])
    assert cr.segment_reduce(x, "sum", offsets=cr.tensor([0, 1, 4])).tolist() == [1, 9]
    beyond = cr.segment_reduce(x, "max", lengths=cr.tensor([2, 1]), unsafe=True)
    assert beyond.tolist() == [2, 3]
    assert cr.segment_reduce(cr.ones(0, 2), "sum", lengths=cr.tensor([0])).tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"reduce": "sum"}, "either lengths or offsets"),
        ({"reduce": "sum", "lengths": [4], "offsets": [0, 4]}, "either lengths or offsets"),
        ({"reduce": "amax", "lengths": [4]}, "one of sum, mean, prod, max, min"),
        ({"reduce": "sum", "lengths": [[4]]}, r"lengths of shape \['s'\]"),
        ({"reduce": "sum", "lengths": [1, 2]}, "to sum to 4"),
        ({"reduce": "sum", "lengths": [5, -1]}, "negative"),
    ],
)
def test_errors_of_segments(settings: dict[str, Any], words: str) -> None:
    given = {k: cr.tensor(v) if k != "reduce" else v for k, v in settings.items()}
    with pytest.raises(ValueError, match=words):
        cr.segment_reduce(cr.ones(4), **given)
