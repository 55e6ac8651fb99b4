"""Gradients through solvers, and SciPy's solvers with compiled gradients.

In the table, "Newton" is one iteration of Newton's method and one more solve with its matrix, and
"SciPy" is SciPy's solver with the value and the gradient in one function written by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from harness import Row, measure, table, versions
from scipy import optimize

import chainrule as cr


def root(count: int = 200) -> Row:
    """Return the row of a gradient through the root of a system."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(count, count)) / (2 * count**0.5)
    theta = rng.normal(size=count)

    def system(x: Any, theta: Any) -> Any:
        return x - np.tanh(weights @ x + theta)

    x = cr.scipy.optimize.root(system, np.zeros(count), theta, tol=1e-13).x
    solved = cr.implicit_function(lambda theta: x, system)

    def gradient() -> Any:
        return cr.grad(lambda theta: (solved(theta) ** 2).sum())(theta)

    def newton_and_solve() -> Any:
        matrix = cr.jacobian(system)(x, theta)
        step = np.linalg.solve(matrix, system(x, theta))
        return x - step, np.linalg.solve(matrix.T, 2 * x)

    jobs = {"chainrule": gradient, "Newton": newton_and_solve}
    return measure(f"gradient through a root of {count} unknowns", jobs, {"Newton": 1.2}, rounds=61)


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def by_hand(x: Any) -> tuple[Any, Any]:
    """Return Rosenbrock's function and its gradient as one would write them."""
    difference, rest = x[1:] - x[:-1] ** 2, 1 - x[:-1]
    slope = np.zeros_like(x)
    slope[:-1] = -400 * x[:-1] * difference - 2 * rest
    slope[1:] += 200 * difference
    return (100 * difference**2 + rest**2).sum(), slope


def minima(count: int = 1000) -> list[Row]:
    """Return the rows of 200 iterations of L-BFGS-B."""
    start = np.tile([-1.2, 1.0], count // 2)
    compiled = cr.compile(cr.value_and_grad(rosenbrock))
    settings: dict[str, Any] = {"jac": True, "method": "L-BFGS-B", "options": {"maxiter": 200}}
    plain = {**settings, "jac": None}
    ways = {
        "compiled": lambda: cr.scipy.optimize.minimize(compiled, start, **settings),
        "compiled, scipy.optimize": lambda: optimize.minimize(compiled, start, **settings),
        "eager": lambda: cr.scipy.optimize.minimize(rosenbrock, start, **plain),
    }
    return [
        measure(
            f"200 iterations of L-BFGS-B, Rosenbrock, {count} unknowns, {name}",
            {"chainrule": way, "SciPy": lambda: optimize.minimize(by_hand, start, **settings)},
            {} if name == "eager" else {"SciPy": 1.3},
        )
        for name, way in ways.items()
    ]


def main() -> str:
    tables = [table([root()], ["chainrule", "Newton"]), table(minima(), ["chainrule", "SciPy"])]
    return "\n\n".join([*tables, versions(cr, np, scipy)])


if __name__ == "__main__":
    print(main())
