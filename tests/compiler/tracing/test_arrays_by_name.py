"""NumPy arrays that a compiled function finds by name: views of one are slices of one input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy

import chainrule as cr
from chainrule.compiler.tracing.symbol import view_index
from helpers.compile_comparison import agree

TABLE = np.random.default_rng(0).normal(size=(400, 3))
MATRIX = TABLE[:3]
FLAGS = TABLE > 0
COMPLEX = TABLE[:4] + 1j * TABLE[4:8]


def steps(step: Callable[[Any, int], Any], count: int) -> Callable[[Any], Any]:
    def repeated(x: Any) -> Any:
        for t in range(count):
            x = step(x, t)
        return x.sum()

    return repeated


STEPS: dict[str, Callable[[Any, int], Any]] = {
    "row": lambda x, t: cr.tanh(x * TABLE[t]),
    "rows before": lambda x, t: cr.tanh(x * TABLE[400 - 1 - t] + TABLE[t]),
    "reversed row": lambda x, t: cr.tanh(x * TABLE[t, ::-1]),
    "transposed": lambda x, t: cr.tanh(MATRIX.T @ x),
    "the whole": lambda x, t: cr.tanh(MATRIX @ x + MATRIX[:] @ x),
    "block": lambda x, t: cr.tanh(TABLE[t : t + 3].T @ x),
    "column": lambda x, t: cr.tanh(x * TABLE[t : t + 3, 1]),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("count", [31, 32, 390])
def test_steps_that_take_views_are_rolled_up(name: str, count: int) -> None:
    gradient = cr.compile(cr.grad(steps(STEPS[name], count)), backend="numpy")
    x = np.array([0.3, -0.2, 0.5])
    np.testing.assert_allclose(gradient(x), cr.grad(steps(STEPS[name], count))(x), rtol=1e-12)
    inputs = gradient.program.programs[0].inputs
    ops = [op for program in gradient.program.programs for op in program.ops]
    assert len(inputs) == 2  # x and the table
    assert sum(op.function == "for" for op in ops) == 2
    assert len(ops) < 16  # the first step and the last are on their own


VIEWS: dict[str, Callable[[], Any]] = {
    "diagonal": lambda: np.einsum("ii->i", MATRIX),
    "windows": lambda: np.lib.stride_tricks.sliding_window_view(TABLE[:, 0], 3)[1:4],
    "flat": lambda: TABLE[:4].reshape(-1)[3:6],
    "broadcast": lambda: np.broadcast_to(TABLE[5], (4, 3)),
    "imaginary": lambda: COMPLEX.imag[:, :3],
    "new axis": lambda: TABLE[3, None, :, None],
    "every other": lambda: TABLE[8:2:-2, [2, 0][1] :],
    "one number": lambda: TABLE[2:3, 1:2].reshape(()),
}


@pytest.mark.parametrize("name", VIEWS)
def test_any_view(name: str) -> None:
    agree(lambda x: (x.sum() * VIEWS[name]()).sum(), (cr.tensor([0.5, 1.0]),), {})


def test_what_is_written_to_a_row_from_outside_is_seen() -> None:
    table = np.ones((3, 2))
    compiled = cr.compile(lambda x: (x * table[1]).sum() + (table.T @ cr.ones(3, dtype=x.dtype))[0])
    x = cr.ones(2, dtype=cr.float64)
    assert compiled(x).item() == 5
    table[1] = 7.0
    assert compiled(x).item() == 14 + 9


def test_a_row_is_written_to_inside() -> None:
    def step(table: Any, x: Any) -> Any:
        row = cr.from_numpy(table[1])
        row.mul_(x)
        return cr.from_numpy(table).sum() + cr.from_numpy(table[1]).prod()

    tables = np.arange(1.0, 7.0).reshape(3, 2), np.arange(1.0, 7.0).reshape(3, 2)
    eager, compiled = (
        make(lambda x, table=table: step(table, x))
        for make, table in zip((lambda f: f, cr.compile), tables, strict=True)
    )
    for number in (2.0, 3.0):
        x = cr.tensor([number, 0.5], dtype=cr.float64)
        assert compiled(x).item() == eager(x).item()
        np.testing.assert_array_equal(*tables)


def test_masks_that_are_rows() -> None:
    agree(lambda x: sum(x[FLAGS[t]].sum() for t in range(3)), (cr.tensor([1.0, 2.0, 4.0]),), {})


# --- the index of a view --------------------------------------------------------------------------

SHAPES = of_numpy.array_shapes(min_dims=0, max_dims=3, max_side=4)


@given(st.data())
def test_the_index_of_a_view_gives_the_view(data: st.DataObject) -> None:
    base = np.arange(100.0)[: (n := np.prod(shape := data.draw(SHAPES), dtype=int))].reshape(shape)
    assert base.size == n
    for _ in range(data.draw(st.integers(0, 1))):
        base = base[data.draw(of_numpy.basic_indices(base.shape, allow_ellipsis=False))]
        if not isinstance(base, np.ndarray):
            return
        base = base.transpose(data.draw(st.permutations(range(base.ndim))))
    view = base[data.draw(of_numpy.basic_indices(base.shape, allow_newaxis=True))]
    if not isinstance(view, np.ndarray) or view is base:
        return
    view = view.transpose(data.draw(st.permutations(range(view.ndim))))
    index = view_index(view, base)
    if index is None:
        assert not view.size or min(base.strides, default=1) <= 0
        return
    key, axes = index
    found = base[(*key, ...)].transpose(axes).reshape(view.shape)
    np.testing.assert_array_equal(found, view)
    assert np.shares_memory(found, view)


@pytest.mark.parametrize(
    "view",
    [
        np.einsum("ii->i", MATRIX),
        TABLE.reshape(-1),
        TABLE.view(np.int64),
        np.broadcast_to(TABLE[0], (2, 3)),
        np.lib.stride_tricks.sliding_window_view(TABLE[:, 0], 3),
    ],
    ids=["diagonal", "flat", "integers", "broadcast", "windows"],
)
def test_other_views_have_no_index(view: Any) -> None:
    assert view_index(view, TABLE) is None
