"""Arrays that operations saved, and that are written to later: gradients are those of before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import chainrule as cr
import chainrule.numpy as xp
from chainrule.autograd import versions
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.primitives import elementwise

X = np.array([0.3, -0.7, 1.1, 0.4])

Step = Callable[[Any, list[Any], int, int], Any]

STEPS: dict[str, Step] = {  # with NumPy or its namespace here, arrays of four numbers, two indices
    "new sine": lambda np, a, i, j: a.append(np.sin(a[i])),
    "new exponential": lambda np, a, i, j: a.append(np.exp(-0.1 * a[i])),  # saves its result
    "new product": lambda np, a, i, j: a.append(a[i] * a[j]),
    "new square": lambda np, a, i, j: a.append((0.5 * a[i]) ** 2),
    "new product of matrices": lambda np, a, i, j: a.append(np.outer(a[i], a[j]) @ a[i] * 0.3),
    "new copy": lambda np, a, i, j: a.append(a[i].copy()),
    "new view": lambda np, a, i, j: a.append(a[i][::-1]),
    "new sum": lambda np, a, i, j: a.append(0.1 * a[i] + np.sum(a[j] ** 2)),
    "write": lambda np, a, i, j: a[i].__setitem__(slice(1, 3), a[j][:2] * 0.7),
    "write a number": lambda np, a, i, j: a[i].__setitem__(j % 4, 0.5),
    "write all": lambda np, a, i, j: a[i].__setitem__(..., a[j] * a[j] * 0.5),
    "add in place": lambda np, a, i, j: a[i].__iadd__(a[j] * 0.2),
    "multiply in place": lambda np, a, i, j: a[i].__imul__(0.8),
    "fill": lambda np, a, i, j: a[i].fill(0.25),
    "write by out": lambda np, a, i, j: np.multiply(a[j], 0.9, out=a[i]),
    "write by ufunc": lambda np, a, i, j: np.add.at(a[i], [0, 0, 2], a[j][:3]),
    "drop": lambda np, a, i, j: a.__delitem__(i) if len(a) > 2 else None,
}

programs = st.lists(
    st.tuples(st.sampled_from(list(STEPS)), st.integers(0, 9), st.integers(0, 9)), max_size=14
)


def run(program: list[tuple[str, int, int]], x: Any, np: Any) -> Any:
    arrays = [x * 1.0, np.cos(x)]
    for step, i, j in program:
        STEPS[step](np, arrays, i % len(arrays), j % len(arrays))
    return sum([np.sum(a * a) for a in arrays])


def by_complex_steps(f: Callable[[Any], Any], x: Any) -> Any:
    return np.array([f(x + 1e-30j * row).imag / 1e-30 for row in np.eye(len(x))])


@pytest.fixture(params=[4, versions._MANY_SAVERS], scope="module")
def many(request: pytest.FixtureRequest) -> Any:
    """The number of savers from which those that are gone are dropped: on both sides."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(versions, "_MANY_SAVERS", request.param)
        patch.setattr(versions.sorted_savers, "limit", request.param)
        yield request.param


@hypothesis.given(programs)
@hypothesis.settings(max_examples=60, deadline=None)
def test_gradients_of_programs_that_write(many: int, program: list[tuple[str, int, int]]) -> None:
    wanted = by_complex_steps(lambda x: run(program, x, np), X)
    np.testing.assert_allclose(cr.grad(lambda x: run(program, x, xp))(X), wanted, atol=1e-12)


WRITES: dict[str, Callable[[Any], Any]] = {
    "item": lambda a: a.__setitem__(1, 5.0),
    "all": lambda a: a.__setitem__(..., 5.0),
    "a view": lambda a: a[1:].__imul__(2.0),
    "in place": lambda a: a.__imul__(2.0),
    "fill": lambda a: a.fill(3.0),
    "sort": lambda a: a.sort(),
}
SAVING: dict[str, Callable[[Any], Any]] = {
    "unary, of its input": np.sin,
    "unary, of its result": np.exp,
    "binary": lambda a: a * a[::-1],
    "binary with NumPy's": lambda a: a * X,
    "reduction": lambda a: np.prod(a) * np.ones(4),
    "several inputs": lambda a: np.where(a > 0, a, 0.1 * a) * a,
    "product": lambda a: np.outer(a, a) @ a,
    "several results": lambda a: np.linalg.eigh(np.outer(a, a) + np.diag(X))[0],
    "function of SciPy": lambda a: np.interp(a, X[[1, 0, 3, 2]], X),
}


def kept(saving: str, write: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    def before(x: Any) -> Any:
        return np.sum(SAVING[saving](2.0 * x) ** 2)

    def f(x: Any) -> Any:
        a = 2.0 * x
        y = SAVING[saving](a)
        result = np.sum(y**2)
        WRITES[write](a)
        WRITES[write](y)
        return result

    return before, f


@pytest.mark.parametrize("saving", SAVING)
@pytest.mark.parametrize("hooks", ["", "hooks", "anomaly"])
def test_each_recorder_keeps_what_is_written_to(saving: str, hooks: str) -> None:
    same = cr.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t)
    for write in WRITES:
        before, f = kept(saving, write)
        wanted = cr.grad(before)(X)
        if hooks == "hooks":
            with same:
                found = cr.grad(f)(X)
        elif hooks == "anomaly":
            with cr.autograd.detect_anomaly():
                found = cr.grad(f)(X)
        else:
            found = cr.grad(f)(X)
        np.testing.assert_allclose(found, wanted, err_msg=write)


def test_a_node_that_is_being_made_is_found_later() -> None:
    a, b = np.ones(3), np.ones(3)
    node = PrimitiveNode()
    versions.keep_saved(node)
    versions.preserve_saved(b)  # as another thread does
    node.plan, node.saved = elementwise.sin.plan((True,)), (a,)
    versions.preserve_saved(a)
    assert node.saved[0] is not a
    np.testing.assert_array_equal(node.saved[0], a)


def test_nodes_that_are_gone_cost_nothing() -> None:
    t = cr.tensor([1.0, 2.0])
    assert cr.grad(lambda x: np.sum(np.sin(x)))(X).shape == X.shape
    for _ in range(len(versions.savers) + 1):
        t[0] = 2.0
    assert all([reference() is not None for reference in versions.savers])
