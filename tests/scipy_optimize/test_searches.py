"""Minima and roots that SciPy finds by searches, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_optimize = pytest.importorskip("scipy.optimize")


def _bowl(x: Any, p: Any) -> Any:
    return (x[0] - p[0]) ** 2 + 2 * (x[1] - p[1]) ** 2 + 0.1 * (x**4).sum()


def _number(x: Any, p: Any) -> Any:
    return (x - p[0]) ** 2 + p[1] * x**4


BOX = [(-2, 2)] * 2
MINIMA: dict[str, Callable[[Any, Any], Any]] = {
    "differential_evolution": lambda o, p: (
        o.differential_evolution(_bowl, o.Bounds([-2, -2], [2, 2]), (p,), rng=1).x
    ),
    "basinhopping": lambda o, p: (
        o.basinhopping(_bowl, [1.0, 1.0], 2, rng=1, minimizer_kwargs={"args": (p,), "tol": 1e-9}).x
    ),
    "dual_annealing": lambda o, p: o.dual_annealing(_bowl, BOX, (p,), 2, rng=1).x,
    "shgo": lambda o, p: o.shgo(_bowl, BOX, (p,)).x,
    "brute": lambda o, p: o.brute(_bowl, BOX, (p,), 6),
    "fminbound": lambda o, p: o.fminbound(_number, 0, 2, (p,), 1e-9),
    "golden": lambda o, p: o.golden(_number, (p,), (0, 1)),
    "brent": lambda o, p: o.brent(_number, (p,), (0, 1), full_output=True)[0],
}
ROOTS = ("newton_krylov", "broyden1", "broyden2", "anderson", "diagbroyden")
AT = np.array([0.4, 0.7])


def reference(name: str, p: Any) -> Any:
    """Return the same minimum, found by a solver with gradients."""
    optimize = cr.scipy.optimize
    if name in ("fminbound", "golden", "brent"):
        return optimize.root_scalar(cr.grad(lambda x: _number(x, p)), x0=0.3, xtol=1e-15).root
    return optimize.minimize(_bowl, [0.3, 0.6], (p,), tol=1e-12).x


@pytest.mark.parametrize("name", MINIMA)
def test_minima(name: str) -> None:
    found = MINIMA[name](cr.scipy.optimize, AT)
    np.testing.assert_array_equal(found, MINIMA[name](scipy_optimize, AT))
    slope = cr.jacobian(lambda p: MINIMA[name](cr.scipy.optimize, p))(AT)
    wanted = cr.jacobian(lambda p: reference(name, p))(AT)
    np.testing.assert_allclose(slope, wanted, rtol=1e-3, atol=1e-4)


def test_modes_and_second_derivatives() -> None:
    def least(p: Any) -> Any:
        return cr.scipy.optimize.shgo(_bowl, BOX, (p,)).fun

    value = scipy_optimize.shgo(_bowl, BOX, (AT,)).fun
    assert least(AT) == pytest.approx(value, rel=1e-12)
    jvp = cr.jvp(least, (AT,), (np.ones(2),))[1]
    assert jvp == pytest.approx(cr.grad(least)(AT).sum(), rel=1e-6)
    wanted = cr.hessian(lambda p: cr.scipy.optimize.minimize(_bowl, [0, 0], (p,)).fun)(AT)
    np.testing.assert_allclose(cr.hessian(least)(AT), wanted, rtol=1e-4, atol=1e-5)


def test_bounds_and_constraints_hold_a_minimum() -> None:
    def corner(bounds: Any, limit: Any) -> Any:
        optimize = cr.scipy.optimize
        line = {"type": "ineq", "fun": lambda x: limit - x[0] - x[1]}
        return optimize.shgo(_bowl, bounds, (AT + 2.0,), constraints=(line,)).x

    slope = cr.jacobian(lambda limit: corner([(-2, 2), (-2, 0.5)], limit))(1.5)
    np.testing.assert_allclose(slope, [1.0, 0.0], atol=1e-6)


@pytest.mark.parametrize("name", ROOTS)
def test_roots(name: str) -> None:
    def find(optimize: Any, p: Any) -> Any:
        return getattr(optimize, name)(lambda x: x + 0.1 * x**3 - p, np.zeros(2), f_tol=1e-10)

    np.testing.assert_array_equal(find(cr.scipy.optimize, AT), find(scipy_optimize, AT))
    slope = cr.jacobian(lambda p: find(cr.scipy.optimize, p))(AT)
    wanted = np.diag(1 / (1 + 0.3 * find(scipy_optimize, AT) ** 2))
    np.testing.assert_allclose(slope, wanted, rtol=1e-6, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*runs for each of:UserWarning")
def test_jacobians_of_one_example_within_vmap() -> None:
    def meet(p: Any) -> Any:
        def equations(x: Any) -> Any:
            return [x[0] + 0.5 * (x[0] - x[1]) ** 3 - p[0], x[1] - p[1] * x[0]]

        return cr.scipy.optimize.root(equations, [0.0, 0.0]).x

    points = np.stack([AT, AT + 0.1])
    for function in (meet, cr.jacobian(meet)):
        wanted = [function(p) for p in points]
        np.testing.assert_allclose(cr.vmap(function)(points), wanted, rtol=1e-9)
