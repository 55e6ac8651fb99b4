"""What runs again in a trace is recorded as the first time, with the operands of now."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.numpy as cnp
from chainrule.autograd import record
from chainrule.compiler.tracing import trace
from chainrule.errors import ShapeError

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


# --- under vmap -----------------------------------------------------------------------------------


def shared_and_own(x: Any, w: Any) -> Any:
    def one(row: Any) -> Any:
        for _ in range(3):
            row = cr.sin(row * w[:3]) * 0.5 + 2.0 / (1.0 + row * row) - w[0]
        return row

    return cr.vmap(one)(x)


def of_several_ranks(x: Any, w: Any) -> Any:
    def one(row: Any, scale: Any) -> Any:
        for _ in range(3):
            row = (row * scale + cr.ones((2, 1)) * row).sum(0) * w[1]
        return row * scale

    return cr.vmap(one)(x, x[:, 0])


def chosen_by_masks(x: Any, w: Any) -> Any:
    def one(row: Any) -> Any:
        for step in range(3):
            row = cr.where((row > 0.5) & (row < w[:3] + 2), row * row, row * step) + w[0]
        return row

    return cr.vmap(one)(x)


def nested(x: Any, w: Any) -> Any:
    def one(row: Any) -> Any:
        def step(y: Any) -> Any:
            return y * row.sum() + row * y - w[2]

        return cr.vmap(step)(row) + cr.vmap(step)(row * 2)

    return cr.vmap(one)(x)


def written_in_place(x: Any, w: Any) -> Any:
    def one(row: Any) -> Any:
        row = row * 1
        for step in range(3):
            row[step] += w[step] + row.sum()
            row *= 0.5
        return row

    return cr.vmap(one)(x)


def second_derivatives(x: Any, w: Any) -> Any:
    def one(row: Any) -> Any:
        return cr.grad(lambda y: (y * y * cr.exp(y * w[:3] * 0.1)).sum())(row)

    return cr.vmap(one)(x)


@pytest.mark.parametrize(
    "function",
    [
        *(shared_and_own, of_several_ranks, chosen_by_masks),
        *(nested, written_in_place, second_derivatives),
    ],
)
def test_operations_under_vmap(function: Callable[..., Any]) -> None:
    same_compiled(function, ROWS, np.linspace(0.5, 1.5, 4))


def test_a_vmapped_step_is_looked_up_when_it_is_recorded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluated = []
    evaluate = trace.abstract_eval

    def counted(name: str, *args: Any) -> Any:
        evaluated.append(name)
        return evaluate(name, *args)

    monkeypatch.setattr(trace, "abstract_eval", counted)

    def count(steps: int) -> int:
        def one(row: Any, rate: Any) -> Any:
            for _ in range(steps):
                row = row + rate * cr.sin(row) * 0.1
            return row

        def loss(x: Any, rate: Any) -> Any:
            return cr.vmap(one, (0, None))(x, rate).sum()

        evaluated.clear()
        gradients = cr.compile(cr.grad(loss, (0, 1)), backend="numpy", verify=False)
        gradients(cr.tensor(ROWS), cr.tensor(0.5, dtype=cr.float64))
        return len([n for n in evaluated if n in ("np.sin", "np.cos", "np.multiply", "np.add")])

    assert count(10) == count(40)


# --- arrays of chainrule.numpy that are written to ------------------------------------------------

KEPT = cnp.array([0.5, -1.0, 2.0])  # an array that functions reach by name


def relaxed(x: Any) -> Any:
    y = cnp.zeros(len(x))
    for i in range(1, len(x) - 1):
        y[i] = 0.5 * (cnp.sin(y[i - 1]) + y[i + 1] + x[i])
    return (y**2).sum()


def written_after_they_were_saved(x: Any) -> Any:
    y, total = x.copy(), 0.0
    for i in range(1, len(x) - 3):
        window = y[i : i + 3]
        total = total + (cnp.exp(window) * KEPT * window).sum()
        window *= x[i]
        y[i - 1] = total * 0.01
        y[i] = 0.5  # a number
    return total + y.sum()


def views_of_views(x: Any) -> Any:
    y = cnp.zeros((len(x), 2))
    left, part = y[:, 0], y[2:]
    for i in range(len(x) - 2):
        left[i] = x[i] * 2
        part[i] = y[i] + left[i : i + 2]
        part[i, 1] -= 3 * x[i + 1]
    part[...] = part * cnp.cos(y[:1])
    return (y * y).sum()


def of_two_types(x: Any) -> Any:
    y = cnp.zeros(len(x), dtype=cnp.float32)
    for i in range(1, len(x)):
        y[i] = x[i] * 2 + cnp.tanh(y[i - 1]) * (i % 3)
        y[-i : len(x)] = y[-i] * 0.5
    return (y * x).sum()


WRITERS = [relaxed, written_after_they_were_saved, views_of_views, of_two_types]


@pytest.mark.parametrize("function", WRITERS)
def test_gradients_of_arrays_that_are_written_to(function: Callable[..., Any]) -> None:
    x = np.linspace(-1.0, 1.0, 12)
    value, gradient = cr.value_and_grad(function)(x)
    found = cr.compile(cr.value_and_grad(function), backend="numpy", verify=False)(x)
    np.testing.assert_allclose(found[0], value, rtol=1e-6)
    np.testing.assert_allclose(found[1], gradient, rtol=1e-6)


def test_turns_that_write_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[Any] = []

    def count_calls(module: Any, name: str) -> None:
        function = getattr(module, name)

        def counting(*args: Any) -> Any:
            counted.append(name)
            return function(*args)

        monkeypatch.setattr(module, name, counting)

    count_calls(trace, "abstract_eval")
    count_calls(record, "as_carried")  # by the recorder of operations outside traces

    def calls(steps: int) -> int:
        counted.clear()
        cr.compile(cr.grad(relaxed), backend="numpy", verify=False)(np.ones(steps))
        return len(counted)

    assert calls(20) == calls(60)


@pytest.mark.parametrize("last", [slice(5, 7), (slice(5, 7), None), [1, 2]])
def test_written_values_that_do_not_fit_after_others_that_did(last: Any) -> None:
    def f(x: Any) -> Any:
        y = x * 1
        for i in range(4):
            y[i : i + 2] = x[i : i + 2]
        y[last] = x[:3]
        return y.sum()

    with pytest.raises(ShapeError, match=r"shape mismatch: .*\[3\].*: y\[last"):
        cr.compile(f)(cr.tensor(np.ones(9)))
