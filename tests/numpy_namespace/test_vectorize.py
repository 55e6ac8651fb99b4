"""np.vectorize over arrays that differentiate: arguments by position and name, functions."""

from __future__ import annotations

from typing import Any

import numpy as np

import chainrule as cr


def test_arguments_by_name_and_functions_are_numpys() -> None:
    def at(f: Any, x: Any, y: Any = 0.0, power: Any = 1) -> Any:
        return f(x) * y**power

    def table(xp: Any, x: Any, y: Any) -> Any:
        many = xp.vectorize(at, excluded={"power"})
        return many(xp.sin, x[:, None], y=y, power=2)

    x, y = np.array([0.3, 0.7]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(table(cr.numpy, x, y), table(np, x, y))
    slope = cr.grad(lambda y: (table(cr.numpy, x, y) ** 2).sum())(y)
    steps = 1e-6 * np.eye(3)
    values = [[(table(np, x, y + s * h) ** 2).sum() for s in (1, -1)] for h in steps]
    np.testing.assert_allclose(slope, [(a - b) / 2e-6 for a, b in values], rtol=1e-7)


def test_a_function_of_constants_alone_runs_once() -> None:
    assert cr.numpy.vectorize(lambda f: f(4.0))(np.sqrt) == 2.0


def test_a_decorator_with_settings() -> None:
    @cr.numpy.vectorize(otypes=[float])
    def cube(x: float) -> float:
        """Return a cube."""
        return x**3

    assert cr.grad(lambda x: cube(x).sum())(np.array([1.0, 2.0])).tolist() == [3.0, 12.0]
    assert cube.__doc__ == "Return a cube."
