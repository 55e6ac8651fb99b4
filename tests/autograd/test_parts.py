"""Passes through reads and writes of parts: in place, with the gradients that the rules give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.primitives import indexing

ROWS, COLUMNS = 5, 4

KEYS: list[Any] = [
    0,
    -2,
    slice(1, 4),
    slice(None, None, -2),
    (2, 3),
    (slice(None), 1),
    (..., slice(0, 2)),
    ([0, 2, 2, 0],),
    (np.array([1, 3]), np.array([0, 0])),
    np.arange(ROWS) % 2 == 0,
    np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) % 3 == 0,
]

steps = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "add", "write through view", "use"]),
        st.sampled_from(range(len(KEYS))),
    ),
    min_size=1,
    max_size=8,
)


def program(chosen: list[tuple[str, int]], x: Any) -> Any:
    """Read and write parts of an array that depends on `x`, and of `x` itself."""
    y, total = x * 1.5, (x * x).sum() * 0.1
    for turn, (what, number) in enumerate(chosen):
        key = KEYS[number]
        if what == "read":
            total = total + (y[key] * (turn + 1)).sum() + x[key].sin().sum()
        elif what == "write":
            y[key] = x[key] * (y[key] * 0.5) + turn
        elif what == "add":
            y[key] += x.sum() * 0.1
        elif what == "write through view":
            y.T[1:3][:, 1:] = y.T[:2][:, 1:] * 2.0
        else:
            total = total + (y * 0.1).sin().sum()
    return total + y.sum()


START = np.linspace(-1.0, 1.0, ROWS * COLUMNS).reshape(ROWS, COLUMNS)


def gradient(chosen: list[tuple[str, int]], **settings: Any) -> Any:
    x = cr.tensor(START, requires_grad=True)
    (found,) = cr.autograd.grad(program(chosen, x), [x], **settings)
    return found.detach().numpy()


@given(steps)
@settings(max_examples=40, deadline=None)
def test_gradients_are_those_of_the_rules(chosen: list[tuple[str, int]]) -> None:
    by_rules = gradient(chosen, create_graph=True)
    np.testing.assert_allclose(gradient(chosen), by_rules, rtol=1e-12, atol=1e-12)
    x = cr.tensor(START, requires_grad=True)
    loss = program(chosen, x)
    loss.backward(retain_graph=True)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), by_rules, rtol=1e-12, atol=1e-12)
    loss.backward()  # nothing that the graph keeps was written to
    np.testing.assert_allclose(x.grad.numpy(), 2 * by_rules, rtol=1e-12, atol=1e-12)
    with cr.autograd.detect_anomaly(check_nan=True):  # takes the rules
        np.testing.assert_allclose(gradient(chosen), by_rules, rtol=1e-12, atol=1e-12)


@given(steps)
@settings(max_examples=20, deadline=None)
def test_gradients_are_pytorchs(chosen: list[tuple[str, int]]) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor(START, requires_grad=True)
    if any(step in (("read", 3), ("write", 3), ("add", 3)) for step in chosen):
        return  # PyTorch has no negative steps
    if any(number == 7 for what, number in chosen if what != "read"):
        return  # the order of writes to repeated indices is undefined there
    (found,) = torch.autograd.grad(program(chosen, x), [x])
    np.testing.assert_allclose(gradient(chosen), found.numpy(), rtol=1e-12, atol=1e-12)


def read_rows(x: Any) -> Any:
    total = 0.0
    for i in range(50):
        total = total + x[i].exp().sum()
    return total


def write_rows(x: Any) -> Any:
    y = cr.zeros(50, 3, dtype=cr.float64)
    y[0] = x[0]
    for i in range(1, 50):
        y[i] = y[i - 1] * 0.5 + x[i]
    return y.sum()


@pytest.mark.parametrize("loop", [read_rows, write_rows])
def test_a_loop_over_rows_makes_one_array_of_all(
    loop: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[int, ...]] = []
    xp = cr.backend.numpy_xp

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **settings: Any) -> Any:
            out = function(*args, **settings)
            made.append(out.shape)
            return out

        return call

    x = cr.tensor(np.ones((50, 3)), requires_grad=True)
    loss = loop(x)
    for name in ("index_add", "assign_at"):
        monkeypatch.setattr(xp, name, noted(getattr(xp, name)))
    loss.backward()
    assert made.count((50, 3)) <= 3, made
    assert x.grad is not None
    assert x.grad.shape == (50, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_reads_of_a_number(dtype: str) -> None:
    torch = pytest.importorskip("torch")

    def gradient(library: Any) -> Any:
        x = library.tensor(3.0, dtype=getattr(library, dtype), requires_grad=True)
        y = x * x
        reads = y[...] * 2 + y[()] + y[None].sum()
        # Recorded later, so that a pass has a sum of their gradients when it comes to the reads.
        abs((y * 2 + y * 3 + y * 4) * y + reads).backward()
        return x.grad

    assert gradient(cr).dtype.name == dtype
    np.testing.assert_allclose(gradient(cr).numpy(), gradient(torch).numpy())


def test_gradients_of_mapped_functions() -> None:
    def twice(x: Any, shared: Any) -> Any:
        return read_rows(x * shared) + read_rows(shared) + (x * shared)[::2, 1].sum()

    x, shared = np.linspace(-1.0, 1.0, 600).reshape(4, 50, 3), np.linspace(0.5, 1.0, 150)
    shared = shared.reshape(50, 3)
    gradients = cr.grad(twice, (0, 1))
    found = cr.vmap(gradients, in_dims=(0, None))(x, shared)
    nested = cr.vmap(cr.vmap(gradients, in_dims=(None, 0)), in_dims=(0, None))(x, shared[None])
    for i in range(2):
        expected = [gradients(one, shared)[i] for one in x]
        np.testing.assert_allclose(found[i], expected, rtol=1e-12)
        np.testing.assert_allclose(nested[i][:, 0], expected, rtol=1e-12)


def test_what_others_hold_is_not_written_to() -> None:
    seen: list[Any] = []
    x = cr.tensor(np.ones((4, 2)), requires_grad=True)
    y = x * 2.0
    y.register_hook(seen.append)
    y.retain_grad()
    before = y.clone()
    before.retain_grad()
    z = before * 1.0
    z[1] = y[0] * 3.0
    z.retain_grad()
    (z.sum() + (z * z)[2].sum()).backward()
    assert z.grad is not None
    assert before.grad is not None
    np.testing.assert_array_equal(z.grad.numpy()[:, 0], [1.0, 1.0, 5.0, 1.0])
    np.testing.assert_array_equal(before.grad.numpy()[:, 0], [1.0, 0.0, 5.0, 1.0])
    np.testing.assert_array_equal(seen[0].numpy()[:, 0], [4.0, 0.0, 5.0, 1.0])


def test_gradients_given_by_the_user_are_kept() -> None:
    x = cr.tensor(np.ones(4), requires_grad=True)
    y = x * 1.0
    y[1:] = x[:-1] * 2.0
    given_gradient = cr.tensor(np.arange(4.0) + 1.0)
    y.backward(given_gradient)
    np.testing.assert_array_equal(given_gradient.numpy(), [1.0, 2.0, 3.0, 4.0])
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), [5.0, 6.0, 8.0, 0.0])


def test_a_gradient_that_two_tensors_share_is_not_written_to() -> None:
    x, y = [cr.tensor(np.ones(4), requires_grad=True) for _ in range(2)]
    first, second = x * 1.0, y * 1.0
    part = second[:2] * 5.0
    (((first + second) * 3.0).sum() + part.sum()).backward()
    assert x.grad is not None
    assert y.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), [3.0, 3.0, 3.0, 3.0])
    np.testing.assert_array_equal(y.grad.numpy(), [8.0, 8.0, 3.0, 3.0])


def test_the_derivative_by_the_cotangent_of_a_write() -> None:
    """Its pass goes through writes that the recorded rule has made, at slices."""
    x = cr.tensor(np.arange(9.0).reshape(3, 3) + 1j, requires_grad=True)
    value = cr.tensor(np.array([[1j, 2.0]]), requires_grad=True)
    y = x * 1.0
    y[:2][:1, :2] = value
    g = cr.tensor(np.ones((3, 3)) + 2j, requires_grad=True)
    first = cr.autograd.grad([y], [x, value], [g], create_graph=True)
    u, v = np.arange(9.0).reshape(3, 3) - 1j, np.array([[5.0 + 1j, 7j]])
    (found,) = cr.autograd.grad(first, [g], [cr.tensor(u), cr.tensor(v)])
    u[:1, :2] = v
    np.testing.assert_array_equal(found.numpy(), u)


def test_the_rules_are_those_that_read_and_write_parts() -> None:
    reads = [indexing.getitem, indexing.select, indexing.index]
    assert [each.part for each in (*reads, indexing.assign)] == ["read"] * 3 + ["write"]
