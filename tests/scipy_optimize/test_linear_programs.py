"""`linprog`, beside differences of SciPy's solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_optimize = pytest.importorskip("scipy.optimize")

C, SIDES = np.array([-3.0, -2.0, -4.0]), np.array([3.0, 6.0, 9.0])
ROWS = np.array([[1.0, 1.0, 2.0], [2.0, 0.0, 3.0], [2.0, 1.0, 3.0]])


def program(o: Any, c: Any = C, A: Any = ROWS, b: Any = SIDES, e: Any = 0.2, top: Any = 5.0) -> Any:
    bounds = [(0, top), (0, None), (0.1, 9)]
    return o.linprog(c, A, b, [[1.0, 0.0, -1.0]], [e], bounds)


PROGRAMS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "cost": (lambda o, c: program(o, c).fun, C),
    "matrix": (lambda o, A: program(o, A=A).x, ROWS),
    "sides": (lambda o, b: program(o, b=b).x, SIDES),
    "equation": (lambda o, e: program(o, e=e).x, np.array(0.2)),
    "bound": (lambda o, t: program(o, b=10 * SIDES, top=t).x, np.array(1.5)),
    "bounds": (lambda o, t: o.linprog([1.0, -2.0], bounds=(t[0], t[1])).x, np.array([1.0, 2.0])),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_differences_are_scipys(name: str) -> None:
    function, at = PROGRAMS[name]

    def ours(x: Any) -> Any:
        return function(cr.scipy.optimize, x)

    direction, h = np.cos(np.arange(at.size)).reshape(at.shape), 1e-6
    value, slope = cr.jvp(ours, (at,), (direction,))
    np.testing.assert_allclose(value, function(scipy_optimize, at), rtol=1e-9, atol=1e-12)
    ends = [function(scipy_optimize, at + step * direction) for step in (h, -h)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * h), rtol=1e-5, atol=1e-8)
    rows = cr.jacobian(ours)(at).reshape(*np.shape(value), -1)
    np.testing.assert_allclose(rows @ direction.ravel(), slope, rtol=1e-9, atol=1e-12)
    gradient = cr.grad(lambda x: np.sum(ours(x) ** 2))
    curved = (gradient(at + h * direction) - gradient(at - h * direction)) / (2 * h)
    second = cr.jvp(gradient, (at,), (direction,))[1]
    np.testing.assert_allclose(second, curved, rtol=1e-5, atol=1e-6)


def test_mistakes() -> None:
    linprog = cr.scipy.optimize.linprog
    rows = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    with pytest.raises(cr.LinAlgError, match=r"3 constraints hold .* of 2 unknowns"):
        cr.jacobian(lambda b: linprog([-1.0, -1.0], rows, b).x)(np.array([1.0, 1.0, 2.0]))
    with pytest.raises(cr.AutogradError, match=r"`slack` of the result, .* has no derivative"):
        cr.grad(lambda b: program(cr.scipy.optimize, b=b).slack.sum())(SIDES)
    with pytest.raises(cr.AutogradError, match=r"linprog looks at values"):
        cr.vmap(lambda b: program(cr.scipy.optimize, b=b).x)(np.stack([SIDES, SIDES]))
    with pytest.raises(cr.MissingRuleError, match=r"of integers .* its solution jumps"):
        cr.jacobian(lambda b: linprog(C, ROWS, b, integrality=[1, 0, 0]).x)(SIDES)
