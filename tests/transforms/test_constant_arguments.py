"""Arrays among the arguments of a function that it isn't differentiated by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.numpy as cnp
import chainrule.scipy.linalg

STEP = 1e-6


def difference(function: Any, x: float) -> Any:
    return (function(x + STEP) - function(x - STEP)) / (2 * STEP)


def heated(k: Any, start: Any, source: Any) -> Any:
    """Write results to a copy of one argument, to a sum with another, and call their methods."""
    field = start.copy()
    for _ in range(3):
        field[1:-1] += k * (field[2:] - 2 * field[1:-1] + field[:-2])
        field[0] = k * k
    total = source.mean(axis=0)
    total += field * k
    return (source.dot(total) ** 2).sum()


START = np.array([1.0, 0.5, -0.2, 2.0])
SOURCE = np.arange(8.0).reshape(2, 4)


K = 0.3
EXPECTED = difference(lambda k: heated(k, START, SOURCE), K)


@pytest.mark.parametrize("k", [np.array(K), K, np.float64(K)], ids=["array", "float", "scalar"])
def test_results_are_written_to_copies_of_constants(k: Any) -> None:
    np.testing.assert_allclose(cr.grad(heated)(k, START, SOURCE), EXPECTED, rtol=1e-6)
    np.testing.assert_allclose(cr.grad(heated)(k, START, source=SOURCE), EXPECTED, rtol=1e-6)
    np.testing.assert_allclose(cr.jacobian(heated)(k, START, SOURCE), EXPECTED, rtol=1e-6)
    value, gradient = cr.compile(cr.value_and_grad(heated))(k, START, SOURCE)
    np.testing.assert_allclose(value, heated(K, START, SOURCE))
    np.testing.assert_allclose(gradient, EXPECTED, rtol=1e-6)


def test_constants_of_mapped_functions() -> None:
    ks = np.array([0.1, K])
    values = [heated(k, START, SOURCE) for k in ks]
    np.testing.assert_allclose(cr.vmap(heated, (0, None, None))(ks, START, SOURCE), values)
    gradients = cr.vmap(cr.grad(heated), (0, None, None))(ks, START, SOURCE)
    np.testing.assert_allclose(gradients[1], EXPECTED, rtol=1e-6)


def test_mapped_functions_write_to_no_constant() -> None:
    def function(x: Any, out: Any) -> Any:
        out[0] = x
        return out.sum()

    with pytest.raises(cr.InPlaceError, match=r"write to a clone\(\)"):
        cr.vmap(function, (0, None))(np.ones(2), np.zeros(3))


def test_second_derivatives_and_containers() -> None:
    second = difference(lambda k: cr.grad(heated)(k, START, SOURCE), K)
    np.testing.assert_allclose(cr.hessian(heated)(K, START, SOURCE), second, rtol=1e-6)
    found = cr.grad(lambda p, *rest: heated(p["k"], *rest))({"k": K}, START, SOURCE)
    np.testing.assert_allclose(found["k"], EXPECTED, rtol=1e-6)


def test_constants_are_written_to_as_numpy_does() -> None:
    def squares(x: Any, out: Any) -> Any:
        out[...] = x**2
        return out.sum(), out

    x, out = np.array([2.0, 3.0]), np.zeros(2)
    gradient, found = cr.grad(squares, has_aux=True)(x, out)
    np.testing.assert_array_equal(gradient, [4.0, 6.0])
    np.testing.assert_array_equal(out, [4.0, 9.0])
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, out)


def classes_of(first: Any, *others: Any) -> list[type]:
    seen: list[type] = []

    def function(x: Any, *rest: Any) -> Any:
        seen.extend(map(type, rest))
        return x.sum()

    cr.grad(function)(first, *others)
    return seen


def test_constants_that_are_numpys_own() -> None:
    x, floats = np.ones(2), np.ones(3)
    assert classes_of(x, floats) == [cnp.ndarray]
    assert classes_of(cr.ones(2), floats) == [np.ndarray]  # tensors have PyTorch's methods
    own = [np.arange(3), np.array([True]), np.ma.array([1.0])]
    assert classes_of(x, *own) == list(map(type, own))
    assert classes_of(x, floats, floats[:2]) == [np.ndarray, np.ndarray]
    assert classes_of(x, x) == [np.ndarray]


def test_asarray_gives_the_callers_memory() -> None:
    def function(x: Any, data: Any) -> Any:
        own = np.asarray(data)
        assert type(own) is np.ndarray
        assert np.shares_memory(own, SOURCE)
        return x.sum() * len(set(data[0])) * own.sum()

    assert cr.grad(function)(np.ones(1), SOURCE) == [4 * SOURCE.sum()]


def test_equal_elements_of_constants_are_equal_keys() -> None:
    labels = np.array([0.0, 1.0, 1.0, 0.0])
    assert cr.grad(lambda x, labels: x * len(set(labels)))(3.0, labels) == 2.0
    assert cr.grad(lambda x, labels: x * {1.0: 5.0}[labels[1]])(3.0, labels) == 5.0


def test_constants_that_share_memory_lose_no_gradient() -> None:
    def function(x: Any, a: Any, b: Any) -> Any:
        a[0] = x[0]
        return b.sum()

    a = np.ones(3)
    with pytest.raises(cr.AutogradError, match="its gradient would be lost"):
        cr.grad(function)(np.ones(1), a, a[:2])


def test_results_of_chainrules_functions_are_written_to_arrays_of_compiled_functions() -> None:
    def step(t: Any) -> Any:
        t = t.copy()
        t[1:-1] = chainrule.scipy.linalg.solve(cnp.eye(3) * 2, t[1:-1])
        t[0] = cnp.sin(t[1])
        return t

    x = np.arange(5.0)
    np.testing.assert_array_equal(cr.compile(step)(x), step(x))
    np.testing.assert_allclose(cr.jacobian(step)(x), cr.compile(cr.jacobian(step))(x))


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_results_that_are_constants_have_jacobians_of_zeros(mode: str) -> None:
    def function(x: Any) -> Any:
        return x * 2, 1.5, np.ones((3, 1)), np.arange(2), "label"

    found = cr.jacobian(function, mode=mode)(np.ones(2))
    np.testing.assert_array_equal(found[0], 2 * np.eye(2))
    assert [None if part is None else part.shape for part in found[1:]] == [
        (2,),
        (3, 1, 2),
        None,
        None,
    ]
    assert not found[1].any()
    assert cr.jacobian(lambda x: (x, 1.0))(2.0) == (1.0, 0.0)
