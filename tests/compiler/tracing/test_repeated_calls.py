"""What runs again in a trace is recorded as the first time, with the operands of now."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

ROWS = np.linspace(-2.0, 3.0, 24).reshape(8, 3)


def values_and_gradients(function: Callable[..., Any], *arrays: Any) -> list[Any]:
    tensors = [cr.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    out = function(*tensors)
    out.sum().backward()
    return [out.detach().numpy(), *[t.grad.numpy() for t in tensors if t.requires_grad]]


def same_compiled(function: Callable[..., Any], *arrays: Any) -> None:
    wanted = values_and_gradients(function, *arrays)
    found = values_and_gradients(cr.compile(function, backend="numpy", verify=False), *arrays)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-12)


# --- views at other places ------------------------------------------------------------------------


def rows_written(x: Any) -> Any:
    y = x * 1
    for t in range(1, 8):
        y[t] = y[t - 1] * 0.5 + y[t]
    return y


def through_views(x: Any) -> Any:
    y = x * 1
    for t in range(6):
        row, both = y[t], y[t : t + 2]
        row *= 1.5
        both += t
        row[1] = both[1, 2]  # of a view that was written to through another
    return y


def from_the_end(x: Any) -> Any:
    return cr.stack([x[-t] * t + x[t - 1] for t in range(1, 9)])


def single_elements(x: Any) -> Any:
    total = x[0, 0] * 0
    for t in range(8):
        element = x[t, t % 3]
        total = total + element * element
    return total


def columns(x: Any) -> Any:
    return cr.stack([x[:, t] @ x[:, t] - x[2:, t].sum() for t in range(3)])


def shrinking_windows(x: Any) -> Any:
    return cr.stack([x[t:].sum(0) + x[: t + 1].mean(0) for t in range(8)])


def growing_windows(x: Any) -> Any:
    return cr.stack([x[0:t].mean(0) + x[t - 1 : t + 3].mean(0) for t in range(1, 9)])


def rows_and_columns(x: Any) -> Any:
    return cr.cat([part for t in range(3) for part in (x[t] * 2, x[:, t] ** 2)])


def of_transposed(x: Any) -> Any:
    y = x.T * 1
    found = [y[:, t].reshape(3, 1) for t in range(4)]
    y[:, 1:3] *= 2
    return cr.cat(found, 1) + y[:, :4]


@pytest.mark.parametrize(
    "function",
    [
        *(rows_written, through_views, from_the_end, single_elements, columns),
        *(shrinking_windows, growing_windows, rows_and_columns, of_transposed),
    ],
)
def test_views_at_moving_places(function: Callable[..., Any]) -> None:
    same_compiled(function, ROWS)


@pytest.mark.parametrize("index", [8, -9])
def test_an_index_out_of_bounds_after_others_within(index: int) -> None:
    @cr.compile
    def f(x: Any) -> Any:
        return sum(x[t].sum() for t in [0, 1, 2, index])

    with pytest.raises(IndexError, match=rf"index {index} is out of bounds .*: return sum"):
        f(cr.tensor(ROWS))


def test_a_read_only_input_has_read_only_rows() -> None:
    array = ROWS.copy()
    array.flags.writeable = False

    @cr.compile
    def f(x: Any) -> Any:
        _ = [x[t] * 2 for t in range(3)]
        x[3] *= 2
        return x

    with pytest.raises(ValueError, match="read-only"):
        f(array)


# --- operands of binary operations ----------------------------------------------------------------


def with_numbers(x: Any, n: Any) -> Any:
    """Numbers that are equal, or equal to tensors, and are not the same operands."""
    zero = cr.tensor(0.0, dtype=cr.float64)
    each = [x * 1, x * 1.0, 2 - x, 2.0 - x, x + 0.0, x - 0.0, x + zero, 1 / (x + 9), n * 2]
    each += [n * 2.5, n + x, x / (n + 1), np.float32(1.5) * x, True * x, x**n, x.float() * x]
    return cr.stack([each[0] * 0 + e for e in each * 2])


def test_numbers_and_promoted_tensors() -> None:
    same_compiled(with_numbers, ROWS[:, 0], np.arange(1, 9))


def test_gradients_of_promoted_tensors_have_their_dtypes() -> None:
    dtypes: list[Any] = []

    @cr.compile(verify=False)
    def gradient(x: Any) -> Any:
        x = x.clone().requires_grad_()
        y, narrow = x * 2, x.float()
        narrow.register_hook(lambda g: dtypes.append(g.dtype))
        sum((each * y).sum() for each in (x, x, x, narrow)).backward()
        return x.grad

    gradient(cr.tensor(ROWS))
    assert dtypes == [cr.float32]


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_signs_of_zeros() -> None:
    def f(x: Any) -> Any:
        return cr.stack([1 / (x * 0.0), 1 / (x * -0.0), 1 / (0.0 * x), 1 / (-0.0 * x)])

    x = cr.tensor([2.0, 3.0])
    np.testing.assert_array_equal(cr.compile(f)(x), f(x))


def test_a_number_and_a_tensor_of_equal_type_have_nodes_of_their_own() -> None:
    def f(x: Any, one: Any) -> Any:
        return (x[0] * 2.0 + x[1] * one) * 2.0 * one + one.detach() * x[2]

    same_compiled(f, ROWS[0], np.array(2.0))


def test_without_gradients_between_steps_with_them() -> None:
    def f(x: Any) -> Any:
        y = x
        for t in range(6):
            if t % 2:
                with cr.no_grad():
                    z = y * 3 + x
            else:
                z = y * 3 + x
            y = cr.sin(z) + x.detach() * x
        return y

    same_compiled(f, ROWS[0])


def test_other_threads_compute_as_ever_while_one_traces() -> None:
    x, n = cr.tensor([1.0, 2.0], requires_grad=True), cr.tensor([3, 4])
    found: list[Any] = []

    def elsewhere() -> None:
        y = 2 - x * 3 + x / n * x - (x + 1.0) @ x
        found.append(y.detach().numpy())
        y.sum().backward()
        found.append(x.grad.numpy())

    @cr.compile(verify=False)
    def f(w: Any) -> Any:
        w = w * 2
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return w * w

    f(cr.tensor([1.0]))
    a, m = np.array([1.0, 2.0]), np.array([3, 4])
    np.testing.assert_allclose(found[0], 2 - a * 3 + a * a / m - (a + 1) @ a)
    np.testing.assert_allclose(found[1], -3 + 2 * a / m - 2 * (2 * a + 1))
