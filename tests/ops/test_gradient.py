"""gradient: slopes by finite differences of neighbouring elements."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.checks import gradcheck
from helpers.tensors import leaf
from helpers.torch_comparison import compare_with_torch, same_as_torch

RNG = np.random.default_rng(0)
DATA = RNG.normal(size=(4, 5))
ROWS, COLUMNS = np.array([0.0, 1.0, 3.0, 3.5]), np.array([-2.0, -1.0, 2.0, 2.5, 7.0])

CALLS = {
    "plain": lambda lib, x: lib.gradient(x),
    "one spacing": lambda lib, x: lib.gradient(x, spacing=2.0),
    "an int": lambda lib, x: lib.gradient(x, spacing=2),
    "spacings": lambda lib, x: lib.gradient(x, spacing=(2.0, 0.5)),
    "one dim": lambda lib, x: lib.gradient(x, dim=1),
    "last dim": lambda lib, x: lib.gradient(x, dim=-1, spacing=3.0),
    "dims": lambda lib, x: lib.gradient(x, dim=(1, 0), spacing=[1.0, 2.0]),
    "coordinates": lambda lib, x: lib.gradient(x, spacing=(lib.tensor(ROWS), lib.tensor(COLUMNS))),
    "coordinates of one": lambda lib, x: lib.gradient(x, spacing=[lib.tensor(COLUMNS)], dim=1),
    "parabolas": lambda lib, x: lib.gradient(x, edge_order=2),
    "parabolas, coordinates": lambda lib, x: lib.gradient(
        x, spacing=(lib.tensor(ROWS), lib.tensor(COLUMNS)), edge_order=2
    ),
}
calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


@calls
def test_values_and_gradients_are_pytorchs(call):
    def program(lib):
        x = lib.leaf(DATA)
        slopes = call(lib, x)
        weights = [lib.tensor(DATA * k) for k in range(1, 3)]
        total = sum((s * w).sum() for s, w in zip(slopes, weights, strict=False))
        return [list(slopes), *lib.grad(total, x)]

    same_as_torch(program, rtol=1e-10)


def test_coordinates_have_a_gradient():
    x, h = leaf(DATA[0]), leaf(COLUMNS)
    assert gradcheck(
        lambda x, h: cr.gradient(x, spacing=[h], edge_order=2)[0], (x, h), fast_mode=True
    )


def test_integers_are_taken_as_floats():
    (slopes,) = cr.gradient(cr.tensor([1, 2, 4]))
    assert slopes.dtype == cr.get_default_dtype()
    assert slopes.tolist() == [1.0, 1.5, 2.0]


def test_errors():
    x = cr.zeros(4, 5)
    with pytest.raises(cr.ShapeError, match="spacing argument of length 1 and 2 dimensions"):
        cr.gradient(x, spacing=(2.0,))
    with pytest.raises(ValueError, match="only supports edge_order=1 and edge_order=2, got 3"):
        cr.gradient(x, edge_order=3)
    with pytest.raises(ValueError, match=r"each dimension size to be at least edge_order\+1"):
        cr.gradient(cr.zeros(1, 5))
    with pytest.raises(ValueError, match="expected a distance, or 4 coordinates along axis 0"):
        cr.gradient(x, spacing=[cr.zeros(5), cr.zeros(5)])
    with pytest.raises(ValueError, match="dim 0 appears multiple times in the list of dims"):
        cr.gradient(x, dim=(0, 0))


def test_nothing_given_is_a_distance_of_one():
    compare_with_torch(lambda lib, x: lib.gradient(x, spacing=None, dim=None), [1.0, 4, 9, 16])


def test_within_equal_distances_the_middle_has_no_part():
    values = [2.0, -2.0, np.inf, np.inf, -np.inf, 3.0, np.nan, 1.0, 2.0, 4.0]
    with np.errstate(invalid="ignore"):
        compare_with_torch(lambda lib, x: lib.gradient(x), values, order=0)
        ours = np.gradient(cr.tensor(values, dtype=cr.float64), 2.0)
        np.testing.assert_array_equal(ours.numpy(), np.gradient(np.array(values), 2.0))
