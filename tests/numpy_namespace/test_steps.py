"""Numbers taken from what is piecewise constant: they lose no gradient."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

TABLE = np.linspace(0.0, 1.0, 12) ** 2
X = np.array([0.31, 0.77, 0.52, 0.27])


def interpolated(x: Any) -> Any:
    total = 0.0
    for v in x:
        i = int(np.floor(v / 0.1))
        t = v / 0.1 - i
        total = total + (1 - t) * TABLE[i] + t * TABLE[i + 1]
    return total


def voxels(x: Any) -> Any:
    """Means of the points in each cell of a grid."""
    total = 0.0
    for size, count in ((0.8, 1), (0.5, 2)):
        cells: dict[Any, list[Any]] = defaultdict(list)
        for point in x.reshape(2, 2):
            cells[tuple(point // size)].append(point)
        assert len(cells) == count
        total += sum((np.mean(np.stack(points), axis=0) ** 2).sum() for points in cells.values())
    return total


def remembered(x: Any) -> Any:
    known: dict[Any, Any] = {}

    def square(v: Any) -> Any:
        return known.setdefault(v, v * v)

    return square(x[0]) + square(3.0 * x[0] / 3.0)  # equal numbers with gradients of their own


def written(x: Any) -> Any:
    signs = np.zeros(2)
    signs[0], signs[1] = np.sign(x[0]), np.round(4.0 * x[1])
    return signs @ x[:2]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "interpolated": interpolated,
    "voxels": voxels,
    "remembered": remembered,
    "written": written,
    "array": lambda x: (np.asarray(np.floor(4 * x)) * x).sum(),
    "loop": lambda x: sum(x[0] ** k for k in range(int(np.ceil(3 * x[1])))),
    "index": lambda x: x[int(x[0] // 0.2)],
    "number": lambda x: float(np.trunc(5 * x[0] + x[1] // 0.1)) * x[1],
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_of_steps_lose_no_gradient(name: str) -> None:
    program = PROGRAMS[name]
    value, slope = cr.value_and_grad(program)(X)
    assert value == pytest.approx(program(X), rel=1e-12)
    differences = [(program(X + h) - program(X - h)) / 2e-6 for h in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(slope, differences, 1e-6, 1e-8)
    np.testing.assert_allclose(cr.jacobian(program, mode="forward")(X), slope, 1e-12)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: int(3 * x[0]) * x[1],
        lambda x: float(x[0] - np.floor(x[0])) * x[1],
        lambda x: float(np.floor(x[0]) + x[0]) * x[1],
        lambda x: math.floor(3 * x[0]) * x[1],
        lambda x: float(x[0] % 0.2) * x[1],
    ],
)
def test_other_numbers_raise(program: Callable[[Any], Any]) -> None:
    with pytest.raises(cr.AutogradError, match="makes a number of a Tensor"):
        cr.grad(program)(X)


def test_outside_of_transforms_numbers_of_steps_warn_as_others_do() -> None:
    x = cr.tensor(1.5, requires_grad=True)
    with pytest.warns(UserWarning, match="Converting a tensor"):
        assert int(cr.floor(x)) == 1


def test_the_rules_of_steps_are_zero() -> None:
    from chainrule.primitives.primitive import TABLE as primitives

    steps = [name for name, primitive in primitives.items() if primitive.steps]
    assert sorted(steps) == [
        "ceil",
        "floor",
        "floor_divide",
        "round",
        "sign",
        "trunc",
        "truncated_quotient",
    ]
    for name in steps:
        x = cr.tensor([0.3, -1.7], dtype=cr.float64, requires_grad=True)
        operands = (x, x.detach() + 1.1) if primitives[name].form == "binary" else (x,)
        primitives[name].apply(*operands).sum().backward()
        assert not x.grad.any()
