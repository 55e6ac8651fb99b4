"""Time of gradients through solvers, and of SciPy's solvers with compiled gradients.

    OPENBLAS_NUM_THREADS=1 python3 benchmarks/solvers.py

In one process, in interleaved rounds; times are tenth percentiles, since other processes only add.
The bars: the gradient through a root of 200 unknowns takes at most 1.2 of one iteration of Newton's
method and one more solve; `minimize` on Rosenbrock's function of 1000 unknowns with a compiled
gradient takes at most 1.3 of SciPy with a gradient written by hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

import chainrule as cr

ROUNDS = 200


def rounds(jobs: dict[str, Callable[[], Any]], count: int) -> dict[str, list[float]]:
    """Return the seconds of each job in each round."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(count):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def report(title: str, seconds: dict[str, list[float]], ours: str, peer: str, bar: float) -> None:
    """Print the tenth percentiles, and the ratio of two jobs."""
    least = {name: float(np.percentile(found, 10)) for name, found in seconds.items()}
    print(title)
    for name, found in least.items():
        print(f"    {name:48} {found * 1e3:9.3f} ms")
    print(f"    ratio {least[ours] / least[peer]:.2f}, bar {bar}")


# --- the gradient through a root ------------------------------------------------------------------


def root(count: int = 200) -> None:
    """Print the time of a gradient through the root of a system."""
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

    seconds = rounds(
        {
            "gradient through the root": gradient,
            "one Newton iteration and one solve": newton_and_solve,
        },
        ROUNDS,
    )
    title = f"root of {count} unknowns"
    report(title, seconds, "gradient through the root", "one Newton iteration and one solve", 1.2)


# --- a minimum with a compiled gradient -----------------------------------------------------------


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def by_hand(x: Any) -> tuple[Any, Any]:
    """Return Rosenbrock's function and its gradient as one would write them."""
    difference, rest = x[1:] - x[:-1] ** 2, 1 - x[:-1]
    slope = np.zeros_like(x)
    slope[:-1] = -400 * x[:-1] * difference - 2 * rest
    slope[1:] += 200 * difference
    return (100 * difference**2 + rest**2).sum(), slope


def minimum(count: int = 1000) -> None:
    """Print the time of 200 iterations."""
    start = np.tile([-1.2, 1.0], count // 2)
    compiled = cr.compile(cr.value_and_grad(rosenbrock))
    settings: dict[str, Any] = {"jac": True, "method": "L-BFGS-B", "options": {"maxiter": 200}}
    separate = {**settings, "jac": lambda x: by_hand(x)[1]}
    seconds = rounds(
        {
            "chainrule, compiled": lambda: cr.scipy.optimize.minimize(compiled, start, **settings),
            "SciPy, value and gradient by hand": lambda: optimize.minimize(
                by_hand, start, **settings
            ),
            "SciPy, two functions by hand": lambda: optimize.minimize(
                rosenbrock, start, **separate
            ),
            "SciPy, chainrule's compiled gradient": lambda: optimize.minimize(
                compiled, start, **settings
            ),
            "chainrule, not compiled": lambda: cr.scipy.optimize.minimize(
                rosenbrock, start, method="L-BFGS-B", options=settings["options"]
            ),
        },
        ROUNDS // 6,
    )
    title = f"200 iterations of L-BFGS-B on Rosenbrock's function of {count} unknowns"
    report(title, seconds, "chainrule, compiled", "SciPy, value and gradient by hand", 1.3)


if __name__ == "__main__":
    root()
    minimum()
