"""Minima and roots that SciPy finds by searches: global minima, brackets, Krylov and Broyden.

However it was found, a minimum is a zero of the gradient, which says how it moves.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.implicit.examples import with_numbers
from chainrule.implicit.solutions import without_history
from chainrule.interop.operands import arrays_of
from chainrule.scipy.error_texts import explaining
from chainrule.scipy.optimize.bounds import for_scipy
from chainrule.scipy.optimize.minimization import Problem, Run
from chainrule.scipy.optimize.roots import System
from chainrule.scipy.optimize.unknowns import OPTIMIZE, Unknowns, has_history, in_common

__all__ = ["MINIMA", "ROOTS", "search"]

ROOTS = frozenset(
    [
        "newton_krylov",
        "broyden1",
        "broyden2",
        "anderson",
        "linearmixing",
        "diagbroyden",
        "excitingmixing",
    ]
)
"""Names of SciPy's functions that find a root by its residual alone."""


class _Search:
    """A call of one of SciPy's functions: what it minimises, and the rest of the arguments."""

    def __init__(self, name: str, given: dict[str, Any]) -> None:
        self.name, self.rest = name, given
        objective, args = given.pop("func"), given.pop("args", ())
        self.local = dict(given.get("minimizer_kwargs") or {})
        bounds: Any = given.get("bounds")
        start = given.get("x0")
        if name == "basinhopping":
            args = self.local.pop("args", ())
            bounds = self.local.pop("bounds", None)
        elif name in _OF_NUMBERS:
            start = 0.0
            bounds = [(given["x1"], given["x2"])] if name == "fminbound" else None
        elif name == "brute":
            start = np.zeros(len(given["ranges"]))
        elif start is None:  # only its structure counts
            start = np.zeros(np.size(bounds.lb) if hasattr(bounds, "lb") else len(bounds))
        constraints = given.get("constraints") or ()
        is_pair = self.local.get("jac") is True
        self.problem = Problem(objective, start, args, is_pair, bounds, constraints)
        self.problem.title = name
        self.found: list[Any] = []  # what SciPy returns, for each example of a vmap
        self.results: list[Any] = []  # the same with the names of `minimize`

    def numbers(self) -> list[Any]:
        """Call SciPy's function."""
        problem, settings = self.problem, without_history(self.rest)
        run = Run(problem, None, (self.local.get("jac"), None, None))
        if self.name == "basinhopping":
            settings["minimizer_kwargs"] = self._of_steps(run)
        if problem.constraints:
            settings["constraints"] = self._constraints()
        value = _of_numbers(run.value) if self.name in _OF_NUMBERS else run.value
        found = getattr(OPTIMIZE, self.name)(value, **arrays_of(settings))
        self.found.append(found)
        if not hasattr(found, "x"):
            first = found[0] if isinstance(found, tuple) else found
            found = OPTIMIZE.OptimizeResult(x=first, fun=None, success=True, message="")
        else:
            found = OPTIMIZE.OptimizeResult(found)
        found.x = np.array(found.x, float).reshape(run.unknowns.size)
        self.results.append(found)
        return run.solution(found)

    def _of_steps(self, run: Run) -> dict[str, Any]:
        """Return the settings of the minimisations within a search."""
        settings = dict(self.local)
        if settings.get("jac") is True or callable(settings.get("jac")):
            settings["jac"] = run.gradient
        if self.problem.bounds is not None:
            settings["bounds"] = OPTIMIZE.Bounds(*self.problem.bounds.numbers())
        return settings

    def _constraints(self) -> Any:
        found = for_scipy(self.problem.constraints)
        if self.name == "shgo":
            return found
        return [
            OPTIMIZE.NonlinearConstraint(each["fun"], 0, 0 if each["type"] == "eq" else np.inf)
            for each in found
        ]

    def in_kind(self) -> Any:
        """Return what SciPy returned, with derivatives where there are any."""
        value, *held = with_numbers(f"scipy.optimize.{self.name}", self.numbers)
        result = self.problem.finish(value, held, self.results, None)
        found = in_common(self.found)
        if hasattr(found, "x"):
            return result
        if len(self.found) == 1 and not has_history(result.x):
            return found
        if not isinstance(found, tuple):
            return result.x
        return (result.x, result.fun, *found[2:])


_OF_NUMBERS = ("fminbound", "golden", "brent")


def _of_numbers(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(np.array([x], float))


def _minimum(name: str) -> Callable[..., Any]:
    """Return the differentiable form of one of SciPy's searches for a minimum."""

    @explaining(f"scipy.optimize.{name}")
    def function(*arguments: Any, **settings: Any) -> Any:
        bound = inspect.signature(getattr(OPTIMIZE, name)).bind(*arguments, **settings)
        return _Search(name, dict(bound.arguments)).in_kind()

    return function


def _root(name: str) -> Callable[..., Any]:
    """Return the differentiable form of one of SciPy's functions for roots."""

    @explaining(f"scipy.optimize.{name}")
    def function(F: Any, xin: Any, *arguments: Any, **settings: Any) -> Any:
        unknowns = Unknowns(name, xin)
        system = System(name, F, unknowns, ())

        def numbers() -> list[Any]:
            start = unknowns.start()
            find = getattr(OPTIMIZE, name)
            return [np.array(find(system.of_numbers(()), start, *arguments, **settings), float)]

        (value,) = with_numbers(f"scipy.optimize.{name}", numbers)
        return system.solution(value, None)

    return function


def _named(name: str, function: Callable[..., Any], what: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Find a {what}: `scipy.optimize.{name}`, with derivatives of the {what}.

    Its arguments and results are SciPy's; see `{"root" if what == "root" else "minimize"}`.
    """
    return function


MINIMA = frozenset(
    [
        *("differential_evolution", "basinhopping", "dual_annealing", "shgo", "direct", "brute"),
        *_OF_NUMBERS,
    ]
)
"""Names of SciPy's functions that find a minimum by values alone."""


@functools.cache
def search(name: str) -> Callable[..., Any]:
    """Return the differentiable form of one of `MINIMA` or `ROOTS`."""
    if name in ROOTS:
        return _named(name, _root(name), "root")
    return _named(name, _minimum(name), "minimum")
