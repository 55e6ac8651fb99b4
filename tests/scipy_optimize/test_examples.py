"""Solvers under `vmap`: each example has its own solution, values without a gradient, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

pytest.importorskip("scipy.optimize")

optimize = cr.scipy.optimize
START, TIMES = np.ones(2), np.arange(5.0)
QUIET: dict[str, Any] = {"disp": 0, "full_output": True}


def number(x: Any, a: Any) -> Any:
    return (x - a) ** 2 + 0.3 * x**4


def bowl(x: Any, a: Any) -> Any:
    return ((x - a) ** 2).sum() + 0.3 * (x**4).sum()


def decay(t: Any, height: Any, rate: Any) -> Any:
    return height * np.exp(-rate * t)


def noisy(a: Any) -> Any:
    return a * np.exp(-0.3 * TIMES) + 0.1 * np.cos(TIMES)


def cubic(x: Any, a: Any) -> Any:
    return x**3 + x - a


SOLVERS: dict[str, Callable[[Any], Any]] = {
    "minimize_scalar": lambda a: optimize.minimize_scalar(number, args=(a,)).x,
    "minimize_scalar-fun": lambda a: optimize.minimize_scalar(number, args=(a,)).fun,
    "brent": lambda a: optimize.brent(number, args=(a,)),
    "golden": lambda a: optimize.golden(number, args=(a,), full_output=True)[1],
    "fminbound": lambda a: optimize.fminbound(number, 0, 3, args=(a,)),
    "fmin": lambda a: optimize.fmin(bowl, START, args=(a,), **QUIET)[1],
    "fmin_bfgs": lambda a: optimize.fmin_bfgs(bowl, START, args=(a,), **QUIET)[1],
    "fmin_l_bfgs_b": lambda a: optimize.fmin_l_bfgs_b(bowl, START, None, (a,), True)[1],
    "brute": lambda a: optimize.brute(bowl, ((0, 3), (0, 3)), (a,), 5, True)[1],
    "leastsq": lambda a: optimize.leastsq(lambda x: cubic(x, a), START, full_output=True)[1].sum(),
    "least_squares": lambda a: (
        optimize.least_squares(lambda x: np.array([1.0, 2.0, 3.0]) * x**2 - a, [1.0]).cost
    ),
    "curve_fit": lambda a: optimize.curve_fit(decay, TIMES, noisy(a))[0].sum(),
    "curve_fit-covariance": lambda a: optimize.curve_fit(decay, TIMES, noisy(a))[1].sum(),
    "fsolve": lambda a: optimize.fsolve(cubic, START, args=(a,), full_output=True)[0].sum(),
}


@pytest.mark.filterwarnings("ignore::chainrule.PerformanceWarning")
@pytest.mark.parametrize("name", SOLVERS)
def test_each_example_has_its_own_solution(name: str) -> None:
    solve, examples = SOLVERS[name], np.array([1.5, 1.2])
    one_by_one = [float(np.asarray(solve(a))) for a in examples]
    assert one_by_one[0] != one_by_one[1]
    np.testing.assert_allclose(cr.vmap(solve)(examples), one_by_one, 1e-6)
    slopes = [float(cr.grad(solve)(a)) for a in examples]
    np.testing.assert_allclose(cr.vmap(cr.grad(solve))(examples), slopes, 1e-5)


@pytest.mark.filterwarnings("ignore::chainrule.PerformanceWarning")
def test_what_differs_between_examples_is_none() -> None:
    def counts(a: Any) -> Any:
        found = optimize.fmin(bowl, START, args=(a,), **QUIET)
        assert found[2] is None or isinstance(found[2], int)
        assert found[4] == 0
        return found[0].sum()

    cr.vmap(counts)(np.array([1.5, -30.0]))
    with pytest.raises(cr.AutogradError, match="under vmap, the data of some examples don't"):
        cr.vmap(lambda a: optimize.curve_fit(lambda t, p: p * a * t, TIMES, 2 * TIMES)[1].sum())(
            np.array([0.0, 1.0])
        )
