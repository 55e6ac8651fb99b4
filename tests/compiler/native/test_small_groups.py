"""Runs of small fusion groups between large products agree with the eager engine."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
import chainrule.nn.functional as F
from chainrule.compiler import native
from chainrule.compiler.native import small_groups

RNG = np.random.default_rng(0)
W = RNG.normal(size=(6, 6)) / 3
X = RNG.normal(size=(4, 6))


pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture(autouse=True)
def products_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_emit_whole", lambda program: None)
    monkeypatch.setattr(small_groups, "MAX_MULTIPLIES", 32)  # less than 4 × 6 × 6


def agree(make: Callable[[], Callable[[Any], Any]]) -> Any:
    """Compare eager and compiled calls of a function with state, three times."""
    eager, compiled = make(), cr.compile(make(), backend="native")
    for call in range(3):
        x = cr.tensor(X + call)
        for got, wanted in zip(compiled(x), eager(x), strict=True):
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(got.detach(), wanted.detach(), rtol=1e-12, atol=1e-12)
    return compiled


def calls(source: str) -> list[str]:
    return re.findall(r"native\.\w+", source)


def training() -> Callable[[Any], Any]:
    net = [cr.tensor(W, requires_grad=True), cr.zeros(6, dtype=cr.float64, requires_grad=True)]
    optimiser = cr.optim.Adam(net, lr=0.1)
    labels = cr.tensor([1, 0, 5, 3])

    def step(x: Any) -> Any:
        loss = F.cross_entropy((x @ net[0] + net[1]).tanh() @ net[0], labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss, *[t.detach().clone() for t in net]

    step(cr.tensor(X))
    return step


def test_the_updates_of_all_parameters_are_one_call() -> None:
    source = agree(training).source_native
    last = source.rpartition("def step(")[2]
    updates = [row for row in last.splitlines() if "exp_avg2" in row and "native." in row]
    assert len(updates) == 1
    assert len(calls(last)) == 3
    assert len(re.findall("@|matmul", last)) == 5
    assert "[...] =" not in last  # updates are in place


def test_a_large_array_ends_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_groups, "MAX_ELEMENTS", 12)

    def make() -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            a = x.sum(0) * 2 + 1
            a = (a * a).tanh() - a.sum()
            a = a / a.max()
            b = (x * a).exp() + x  # 24 elements
            c = b.sum(1) * 3 - 1
            c = c / c.max()
            return [(c * c).sin() / (1 + c * c), a]

        return function

    source = agree(make).source_native
    heads = re.findall(r"def (\w+)\(.*\n    # (\d+) operations", source)
    assert len(heads) == 2


def test_a_written_value_need_not_be_read() -> None:
    def make() -> Callable[[Any], Any]:
        last = cr.zeros(6, dtype=cr.float64)

        def function(x: Any) -> Any:
            a = (x.sum(0) * 2).tanh()
            last.copy_(a / a.max() - a.sum())
            return [a, last.clone()]

        return function

    assert re.search(r"# \d+ operations", agree(make).source_native)


@pytest.mark.parametrize("axis", [0, 1])
def test_one_hot_scatter(axis: int) -> None:
    def gradient(x: Any, index: Any) -> Any:
        x = x.detach().requires_grad_()
        found = cr.take_along_axis(x, index, axis)
        return cr.autograd_grad((found * found).sum(), x)[0] * 2

    compiled = cr.compile(gradient, backend="native")
    places = np.array([[1, -1, 0, 2, -4, 3]])
    for index in (
        places if axis == 0 else places.T[:4],
        places[:, ::-1] if axis == 0 else 0 * X[:, :1],
    ):
        index = cr.tensor(index.astype(int))
        for _ in range(2):
            np.testing.assert_array_equal(
                compiled(cr.tensor(X), index), gradient(cr.tensor(X), index)
            )
    assert "add_along_axis" not in compiled.source_native
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(cr.tensor(X), index + 7)


def test_an_index_of_a_scatter_only_is_checked() -> None:
    compiled = cr.compile(
        lambda x, index: (
            cr.zeros(4, 6, dtype=x.dtype).scatter_add(1, index, x[:, :1] * 2) * 3
            + cr.take_along_axis(x, index * 0, 1)
        ),
        backend="native",
    )
    x, index = cr.tensor(X), cr.tensor([[1], [0], [2], [3]])
    assert compiled(x, index).sum().item() == pytest.approx(12 * X[:, 0].sum())
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(x, index + 3)


def test_scatter_of_several_elements_per_row() -> None:
    def gradient(x: Any, index: Any) -> Any:
        x = x.detach().requires_grad_()
        return cr.autograd_grad((cr.take_along_axis(x, index, 1) ** 2).sum(), x)[0] * 2

    compiled = cr.compile(gradient, backend="native")
    x, index = cr.tensor(X), cr.tensor([[1, 1], [0, 5], [2, 2], [3, 0]])
    np.testing.assert_array_equal(compiled(x, index), gradient(x, index))


# --- random programs ------------------------------------------------------------------------------

OPERATIONS: list[Callable[[Any, Any, Any], Any]] = [
    lambda a, b, s: a + b,
    lambda a, b, s: a * b - 0.5,
    lambda a, b, s: cr.maximum(a, -b),
    lambda a, b, s: cr.where(a > b, a, 0.25),
    lambda a, b, s: a.tanh() + cr.ones(6, dtype=cr.float64),
    lambda a, b, s: a.sigmoid() / (1 + b * b),
    lambda a, b, s: (a + b).mul_(2),
    lambda a, b, s: a @ s["w"],
    lambda a, b, s: (a - b.mean(-1, keepdim=True) * 0.75).flip(1),  # of equal numbers, not all
    lambda a, b, s: a.T.reshape(4, 6) * b[:, :1],
    lambda a, b, s: a * s["v"] + s["t"].T,
    lambda a, b, s: s["v"].mul_(0.5).add_(a.sum(0)) + b,
    lambda a, b, s: s["v"].copy_(a.sum(0)).mul_(0.25) + b,
    lambda a, b, s: s["t"].copy_(a.T).mul_(0.25).T + b,
    lambda a, b, s: s["t"].mul_(0.5).add_(b.T).T + a,
    lambda a, b, s: s["n"].add_(1) * 0.1 + a * cr.tensor([0.5, 1, 2, 3, 4, 5], dtype=cr.float64),
    lambda a, b, s: cr.cat([a[:2], b[2:]]),
    lambda a, b, s: s["w"].mul_(0.9).sum() + a,
]
numbers = st.integers(0, 50)
steps = st.lists(st.tuples(st.sampled_from(OPERATIONS), numbers, numbers), min_size=6, max_size=24)


@settings(max_examples=80, deadline=None)
@given(steps)
def test_random_programs_agree_with_eager(steps: list[Any]) -> None:
    def make() -> Callable[[Any], Any]:
        state = {
            "w": cr.tensor(W.copy()),
            "v": cr.tensor(X[0].copy()),
            "t": cr.tensor(np.asfortranarray(X.T)),
            "n": cr.tensor(np.zeros(())),
        }

        def function(x: Any) -> Any:
            values = [x, x @ state["w"]]
            for operation, i, j in steps:
                a, b = values[-1 - i % len(values)], values[-1 - j % len(values)]
                values.append(operation(a, b, state))
            return [*values[-2:], values[-3].T, *[t.clone() for t in state.values()]]

        return function

    agree(make)


@pytest.mark.filterwarnings("ignore::chainrule.errors.PerformanceWarning")
def test_operations_that_are_alike_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a program without repetition, of a few kinds of operations."""
    asked = []
    why_unfit = small_groups.why_unfit

    def counted(op: Any, constants: Any) -> Any:
        asked.append(op.function)
        return why_unfit(op, constants)

    monkeypatch.setattr(small_groups, "why_unfit", counted)
    monkeypatch.setenv("CHAINRULE_COMPILE_SECONDS", "0.05")  # beyond it there are several functions

    steps = [
        *(lambda x, y: x @ y, lambda x, y: y @ x, lambda x, y: x.sin(), lambda x, y: x[::-1] * y),
        *(lambda x, y: x + y, lambda x, y: cr.cat([x[1:], y[:1]])),
        *(lambda x, y: x - y[0], lambda x, y: x.tanh()),
    ]
    order = np.random.default_rng(0).integers(len(steps), size=150)

    def products(x: Any, y: Any) -> Any:
        for number in order:
            x = steps[number](x, y)
        return x

    x, y = cr.tensor(np.eye(4)), cr.tensor(np.full((4, 4), 0.1))
    found = cr.compile(products, verify=False)(x, y)
    np.testing.assert_allclose(found, products(x, y), rtol=1e-12)
    assert asked == ["np.concat"]
