"""Reads of elements that depend on constants alone: known, and checked at each call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.numpy as xp

GRID = np.array([1.0, 2.0, 3.0])
MASK = GRID[:2] > 1.5
SETTINGS: dict[str, Any] = {"steps": [1.0, 2.0], "factor": 1.0}


def by_grid(y: Any) -> Any:
    return y.sum() if xp.any(xp.diff(GRID) < 0) else (y * 2).sum()


def by_list(y: Any) -> Any:
    return y.sum() * float(xp.array(SETTINGS["steps"]).sum())


def by_number(y: Any) -> Any:
    h = xp.zeros(3)
    h[1] = SETTINGS["factor"]
    return y.sum() if h[1] > 0 else (y * 2).sum()


def by_mask(y: Any) -> Any:
    return y[np.asarray(xp.sin(GRID[:2]) > 0.5)].sum()


def by_tensor(y: Any) -> Any:
    return y.sum() if (cr.tensor(GRID) * 1.0)[0] > 0.5 else (y * 2).sum()


def by_mask_of_shared_memory(y: Any) -> Any:
    return (y * GRID[1:])[cr.from_numpy(MASK)].sum()


def test_branches_by_constants_follow_them() -> None:
    y = np.array([1.0, 2.0])
    for f in (by_grid, by_list, by_number, by_mask, by_tensor, by_mask_of_shared_memory):
        compiled = cr.compile(cr.value_and_grad(f), backend="numpy")
        for grid, steps, factor in (
            ([1.0, 2.0, 3.0], [1.0, 2.0], 1.0),
            ([1.0, 0.1, 3.0], [1.0, 3.0], -1.0),
            ([0.2, 1.0, 3.0], [4.0], 2.0),
        ):
            GRID[:] = grid
            MASK[:] = GRID[:2] > 0.5
            SETTINGS.update(steps=steps, factor=factor)
            for found, wanted in zip(compiled(y), cr.value_and_grad(f)(y), strict=True):
                np.testing.assert_array_equal(found, wanted, err_msg=f.__name__)


def test_arguments_parameters_and_random_numbers_are_not_known() -> None:
    weight = cr.tensor([1.0, -1.0])
    for f in (
        lambda y: y.sum() if xp.any(xp.diff(y) < 0) else y,
        lambda y: y.sum() if (weight * 2).sum() > 0 else y,
        lambda y: y.sum() if (xp.zeros(2) + y)[0] > 0 else y,
        lambda y: y.sum() if cr.rand(2).sum() > 0 else y,
        lambda y: y.sum() if cr.poisson(cr.full((2,), 3.0)).sum() > 5 else y,
    ):
        with pytest.raises(cr.CompileError, match="a value was asked for"):
            cr.compile(f, backend="numpy")(np.array([1.0, 2.0]))


PLACES = cr.tensor([3.0, -1.0, 2.0])

OF_SHAPE = {
    "np.where": lambda x: x[np.where(PLACES > 0)],
    "where of elements": lambda x: x[cr.where(PLACES * 2 > 0)[0]],
    "nonzero": lambda x: x[cr.nonzero(PLACES > 0)[:, 0]],
    "flatnonzero": lambda x: x[np.flatnonzero(PLACES > 0)],
    "argwhere": lambda x: x[cr.argwhere(PLACES > 0)[:, 0]],
    "unique": lambda x: x[np.unique(PLACES.abs().long() - 1)],
    "bincount": lambda x: x.sum() * cr.bincount(PLACES.abs().long()),
    "one_hot": lambda x: x[:, None] * cr.nn.functional.one_hot(PLACES.abs().long()),
    "repeat_interleave": lambda x: cr.repeat_interleave(x, PLACES.abs().long()),
    "mask": lambda x: x[PLACES > 0],
    "product of what a mask selects": lambda x: x[PLACES > 0].prod() * np.sort(x[PLACES > 0]),
    "sum with others": lambda x: x[PLACES > 0] + cr.log(x[PLACES > 0]).cumsum(0),
    "masked_select": lambda x: cr.masked_select(x, PLACES > 0),
    "under vmap": lambda x: cr.vmap(lambda y: (y * x)[np.nonzero(PLACES > 0)])(x),
    "in a loop": lambda x: cr.scan(lambda c, i: (c, (x * i)[np.where(PLACES > 0)]), x, x)[1],
}


@pytest.mark.parametrize("name", OF_SHAPE)
def test_tensors_by_name_decide_shapes(name: str) -> None:
    function = OF_SHAPE[name]
    compiled = cr.compile(cr.value_and_grad(lambda x: (function(x) ** 2).sum()), backend="numpy")
    x = cr.tensor([1.0, 2.0, 3.0])
    for places in ([3.0, -1.0, 2.0], [1.0, 1.0, 2.0], [3.0, -1.0, 2.0]):
        PLACES.copy_(cr.tensor(places))
        wanted = cr.value_and_grad(lambda x: (function(x) ** 2).sum())(x)
        for _ in range(2):
            for got, want in zip(compiled(x), wanted, strict=True):
                np.testing.assert_array_equal(got, want)


def test_arguments_and_parameters_decide_no_shapes() -> None:
    weight = cr.tensor([3.0, -1.0, 2.0], requires_grad=True)
    for f in (lambda x: x[np.where(x > 0)], lambda x: x[cr.nonzero(weight > 0)[:, 0]]):
        with pytest.raises(cr.CompileError, match="shape of the result depends on values"):
            cr.compile(f, backend="numpy")(PLACES)


CHOSEN = cr.tensor([True, False, True])

# Functions that don't read elements of a constant, and so raise as they do for an argument.
OF_UNREAD = {
    "index_put": (lambda x: cr.index_put(x, (CHOSEN,), x[:2]), "index_put: the shape"),
    "lstsq": (lambda x: x * cr.linalg.lstsq(PLACES[:, None], cr.ones(3, 1))[0], "lstsq: the"),
    "histc": (lambda x: x * cr.histc(PLACES, 3), "histc: the shape"),
}


@pytest.mark.parametrize("name", OF_UNREAD)
def test_what_reads_no_elements_of_constants_raises(name: str) -> None:
    function, message = OF_UNREAD[name]
    x = cr.tensor([1.0, 2.0, 3.0])
    with pytest.raises(cr.CompileError, match=message):
        cr.compile(function, backend="numpy")(x)


def test_nan_in_a_constant_does_not_compile_anew() -> None:
    data = cr.tensor([1.0, np.nan, 3.0])
    compiled = cr.compile(lambda x: x[np.where(data == data)], backend="numpy")  # no nan
    for _ in range(3):
        np.testing.assert_array_equal(compiled(cr.tensor([1.0, 2.0, 3.0])), [1.0, 3.0])
        assert len(compiled.signatures) == 1  # none whose checks fail


def test_constants_of_texts_decide_shapes() -> None:
    names = np.array(["a", "b", "a"])
    compiled = cr.compile(lambda x: x[np.where(names == "a")], backend="numpy")
    np.testing.assert_array_equal(compiled(cr.tensor([1.0, 2.0, 3.0])), [1.0, 3.0])


@pytest.mark.parametrize("rows", [[0, 2], [2, 2]])
def test_a_list_of_different_indices_overwrites_nothing(rows: list[int]) -> None:
    def written(x: Any) -> Any:
        y = x * 2.0
        y[rows] = x[[1, 0]] * 3.0
        return (y * y).sum()

    x = cr.tensor([1.0, 2.0, 3.0], dtype=cr.float64)
    compiled = cr.compile(cr.grad(written), backend="numpy")
    np.testing.assert_array_equal(compiled(x).numpy(), cr.grad(written)(x).numpy())
    assert ("lasting(" in compiled.source) == (rows == [2, 2])
