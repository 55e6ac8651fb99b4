"""Writes of a part to itself, as the last step of ``x[key] += value`` is."""

import numpy as np
import pytest

import chainrule as cr

KEYS = {
    "int": 1,
    "slice": slice(1, 3),
    "step": slice(None, None, 2),
    "ints": (1, 2),
    "mixed": (slice(1, None), 0),
    "none": (None, 1),
    "ellipsis": (..., 0),
    "array": np.array([0, 2]),
}


def _start() -> cr.Tensor:
    return cr.tensor(np.arange(12.0).reshape(4, 3) / 7, requires_grad=True)


def _copies(x: cr.Tensor) -> int:
    """Return the number of recorded writes that the history of `x` begins with."""
    count, node = 0, x.grad_fn
    while node is not None and node.name == "CopySlices":
        count, node = count + 1, node.next_functions[0][0]
    return count


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("through_view", [False, True])
def test_an_augmented_write_has_the_gradient_of_the_sum(key, through_view):
    x = _start()
    y = x * 1.0
    part = y[:, :] if through_view else y
    part[key] += part[key].detach() ** 2
    (y**2).sum().backward()
    mask = np.zeros((4, 3))
    mask[key] = 1
    values = x.detach().numpy()
    expected = values + mask * values**2
    np.testing.assert_allclose(y.detach().numpy(), expected)
    np.testing.assert_allclose(x.grad.numpy(), 2 * expected)


@pytest.mark.parametrize("key", [1, slice(1, 3), (..., 0)])
def test_it_is_recorded_once(key):
    y = _start() * 1.0
    y[key] += 1.0
    assert _copies(y) == 1


def test_other_parts_are_written():
    x = _start()
    y = x * 1.0
    y[1:3] = y[0:2]
    assert _copies(y) == 1
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy()[:, 0], [2, 1, 0, 1])


def test_a_bool_is_no_number():
    y = _start() * 1.0
    y[True] = y[1]
    rows = y.detach().numpy()
    np.testing.assert_array_equal(rows, np.repeat(rows[1:2], 4, axis=0))


def test_a_part_without_history_cuts_it_off():
    for cut in ("no_grad", "detach"):
        x = _start()
        y = x * 1.0
        if cut == "no_grad":
            with cr.no_grad():
                part = y[1]
        else:
            part = y[1].detach()
        y[1] = part
        y.sum().backward()
        np.testing.assert_array_equal(x.grad.numpy()[:, 0], [1, 0, 1, 1])


def test_a_part_of_an_earlier_history_follows_the_write():
    x = _start()
    y = x * 1.0
    part = y[1]
    y.mul_(3.0)
    y[1] = part
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full((4, 3), 3.0))
