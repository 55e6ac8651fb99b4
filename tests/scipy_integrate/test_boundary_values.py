"""`solve_bvp`, beside differences of SciPy's solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_integrate = pytest.importorskip("scipy.integrate")

MESH = np.linspace(0, 1, 7)
WAVE = np.zeros((2, 7))
WAVE[0, 1], WAVE[0, 3] = 1, -1


def bratu(s: Any, xp: Any, k: Any) -> Any:
    found = s.solve_bvp(
        lambda x, y: [y[1], -k * xp.exp(y[0])], lambda a, b: [a[0], b[0]], MESH, 0 * WAVE
    )
    return xp.concatenate([found.sol(0.5), found.sol(0.3, 1), found.y[:, 3], found.yp[:, 2]])


def eigenvalue(s: Any, xp: Any, k: Any) -> Any:
    found = s.solve_bvp(
        lambda x, y, p: xp.vstack((y[1], -k * p[0] ** 2 * y[0])),
        lambda a, b, p: xp.array([a[0], b[0], a[1] - p[0] * k]),
        *(MESH, WAVE),
        p=[6],
    )
    return xp.concatenate([found.p, found.sol(0.3)])


def singular(s: Any, xp: Any, k: Any) -> Any:
    found = s.solve_bvp(
        lambda x, y: xp.vstack((y[1], -k * y[0] ** 5)),
        lambda a, b: xp.array([a[1], b[0] - 0.75**0.5]),
        *(MESH, np.ones((2, 7))),
        S=np.array([[0, 0], [0, -2.0]]),
    )
    return found.sol(0.3)


PROGRAMS: dict[Callable[[Any, Any, Any], Any], float] = {bratu: 1.0, eigenvalue: 1.1, singular: 1.0}


@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_differences_are_scipys(program: Any) -> None:
    at, h = PROGRAMS[program], 1e-4

    def ours(k: Any) -> Any:
        return program(cr.scipy.integrate, cr.numpy, k)

    def scipys(k: float) -> Any:
        return program(scipy_integrate, np, k)

    value, slope = cr.jvp(ours, (at,), (1.0,))
    np.testing.assert_allclose(value, scipys(at), rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(ours(at), scipys(at))
    wanted = (scipys(at + h) - scipys(at - h)) / (2 * h)
    np.testing.assert_allclose(slope, wanted, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(cr.jacobian(ours)(at), slope, rtol=1e-9, atol=1e-12)
    curved = (cr.jacobian(ours)(at + h) - cr.jacobian(ours)(at - h)) / (2 * h)
    second = cr.jacobian(cr.jacobian(ours))(at)
    np.testing.assert_allclose(second, curved, rtol=1e-3, atol=1e-3)


def test_the_mesh_is_constant() -> None:
    def program(width: Any) -> Any:
        found = cr.scipy.integrate.solve_bvp(
            lambda x, y: [y[1], -y[0]], lambda a, b: [a[0], b[0] - 1], width * MESH, WAVE
        )
        return found.y[0, 1]

    with pytest.raises(cr.MissingRuleError, match=r"by the mesh or S .* scale x in the equations"):
        cr.grad(program)(1.0)
