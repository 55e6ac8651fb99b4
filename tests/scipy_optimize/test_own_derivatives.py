"""Solvers with derivatives that the user computes: by backward passes, or in foreign code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import chainrule as cr
from chainrule.scipy import optimize

CENTRE = 2.0


def quartic(x: Any) -> Any:
    return ((x - CENTRE) ** 2).sum() + (x**4).sum()


def closure(x: Any) -> Any:
    """Return value and gradient, as a script of PyTorch's computes them."""
    t = cr.tensor(x, requires_grad=True)
    loss = quartic(t)
    loss.backward()
    return loss, t.grad


def slope(x: Any) -> Any:
    return closure(x)[1]


def rows(x: Any) -> Any:
    """Return the Hessian of `quartic`, or the Jacobian of its gradient."""
    t = cr.tensor(x, requires_grad=True)
    (gradient,) = cr.autograd_grad(quartic(t), [t], create_graph=True)
    return cr.stack([cr.autograd_grad(each, [t], retain_graph=True)[0] for each in gradient])


def gradient_of_arrays(x: Any) -> Any:
    return 2 * (x - CENTRE) + 4 * x**3


FOUND = scipy.optimize.minimize(lambda x: quartic(x[:1]), np.zeros(1)).x[0]


def test_derivatives_by_backward_passes() -> None:
    start = np.zeros(2)
    solutions = [
        optimize.minimize(closure, start, jac=True).x,
        optimize.minimize(quartic, start, jac=slope).x,
        optimize.minimize(closure, start, jac=True, method="SLSQP", bounds=[(0, 9)] * 2).x,
        optimize.minimize(quartic, start, jac=slope, hess=rows, method="trust-exact").x,
        optimize.root(gradient_of_arrays, start, jac=rows).x,
        optimize.root(lambda x: (slope(x), rows(x)), start, jac=True).x,
        optimize.fsolve(gradient_of_arrays, start, fprime=rows),
        optimize.least_squares(gradient_of_arrays, start, jac=rows).x,
        optimize.newton(gradient_of_arrays, start, fprime=lambda x: np.diag(rows(x).numpy())),
    ]
    for each in solutions:
        assert type(each) is np.ndarray
        np.testing.assert_allclose(each, FOUND, atol=1e-4)
    found = optimize.root_scalar(
        gradient_of_arrays, x0=0.0, fprime=lambda x: rows(np.array([x])).item()
    )
    assert found.root == pytest.approx(FOUND, abs=1e-4)


def cosh(x: Any) -> float:
    return math.cosh(float(x[0]) - 1)


def sinh(x: Any) -> Any:
    return np.array([math.sinh(float(x[0]) - 1)])


def test_foreign_code_has_solutions_without_derivatives() -> None:
    settings: list[dict[str, Any]] = [
        {"jac": sinh},
        {"jac": sinh, "bounds": [(2, 3)]},
        {"jac": sinh, "constraints": {"type": "ineq", "fun": lambda x: x[0] - 1.5}},
        {"method": "Nelder-Mead"},
        {"method": "Powell", "bounds": [(2, 3)]},
    ]
    for each in settings:
        expected = scipy.optimize.minimize(cosh, [2.5], **each)
        found = optimize.minimize(cosh, np.array([2.5]), **each)
        assert type(found.x) is np.ndarray
        np.testing.assert_allclose(found.x, expected.x, atol=1e-3)
    two = math.acosh(2.0)

    def misfit(x: Any) -> list[float]:
        return [math.cosh(float(x[0])) - 2]

    def jacobian(x: Any) -> list[list[float]]:
        return [[math.sinh(float(x[0]))]]

    assert optimize.root(misfit, np.ones(1), jac=jacobian).x == pytest.approx([two])
    assert optimize.least_squares(misfit, np.ones(1), jac="2-point").x == pytest.approx([two])
    assert optimize.brentq(lambda x: math.cosh(x) - 2, 0, 3) == pytest.approx(two)


def test_foreign_code_loses_no_derivative() -> None:
    t = cr.tensor(2.0, dtype=cr.float64, requires_grad=True)

    def scaled(x: Any, t: Any) -> Any:
        return cosh(x) * t

    def solve(t: Any) -> Any:
        return optimize.minimize(scaled, np.zeros(1), t, method="Nelder-Mead").x[0]

    def closing(t: Any) -> Any:
        return optimize.minimize(lambda x: scaled(x, t), np.zeros(1), method="Nelder-Mead").x[0]

    for function in (solve, closing, cr.grad(solve), cr.grad(closing)):
        with pytest.raises(cr.errors.AutogradError, match="makes a number of a Tensor"):
            function(t)
    with pytest.raises(cr.errors.AutogradError, match="makes a number of a Tensor"):
        optimize.root(lambda x: [math.cosh(float(x[0])) - t], np.ones(1), jac=lambda x: [sinh(x)])
