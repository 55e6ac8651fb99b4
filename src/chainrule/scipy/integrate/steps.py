"""Steps of solvers of ordinary differential equations, recorded with the values that were found.

SciPy finds the steps. Each is computed again as a recorded operation of the state before it, so
that the derivatives are those of the discrete solution with these steps ("discretise, then
optimise": P. Kidger, On Neural Differential Equations, 2022, section 5.1). A step of an explicit
Runge-Kutta method is its formula. One of another method is that of a Radau IIA method, whose stages
have the values of SciPy's interpolant and the derivatives of the implicit function theorem.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from chainrule import ops
from chainrule.autograd.tensor import Tensor, make
from chainrule.implicit.implicit_node import solution
from chainrule.implicit.inverse import DenseInverse, inverse_maker
from chainrule.interop.operands import arrays_of, tensor_of

Rate = Callable[[Any, Tensor], Tensor]
Time = Any  # a number, or a tensor without dimensions


class Segment(NamedTuple):
    """An accepted step of SciPy's solver."""

    start: float
    end: float
    state: Any  # at the end
    interpolant: Any


class Step(ABC):
    """The state during a step, as a polynomial of the time since its start.

    It is ``y + basis(x) @ rows``, where x is that time divided by the length of the step.
    """

    end: Tensor

    def __init__(self, rate: Rate, t: Time, h: Time, y: Tensor) -> None:
        self.rate, self.t, self.h, self.y = rate, t, h, y

    @property
    @abstractmethod
    def rows(self) -> Tensor:
        """The coefficients of the polynomials, a row for each."""

    def basis(self, x: Tensor) -> Tensor:
        """Return the values of the polynomials, a row for each time."""
        return ops.stack([x ** (i + 1) for i in range(len(self.rows))], -1)

    def at(self, times: Tensor) -> Tensor:
        """Return the states at some times, a row for each."""
        if not np.any(arrays_of(self.h)):
            found: Tensor = self.y + (times - self.t)[:, None] * self.rate(self.t, self.y)
            return found
        found = self.y + self.basis((times - self.t) / self.h) @ self.rows
        return found


# --- explicit Runge-Kutta methods -----------------------------------------------------------------


class ExplicitStep(Step):
    """A step of SciPy's RK23 or RK45, or of a class made like these."""

    def __init__(self, method: Any, rate: Rate, t: Time, h: Time, y: Tensor) -> None:
        super().__init__(rate, t, h, y)
        self.method = method
        self.stages = [rate(t, y)]
        for a, c in zip(method.A[1:], method.C[1:], strict=True):
            self._add_stage(a, c)
        self.end = y + h * self._combined(method.B)

    def _add_stage(self, a: Any, c: float) -> None:
        state = self.y + self.h * self._combined(a[: len(self.stages)])
        self.stages.append(self.rate(self.t + c * self.h, state))

    def _combined(self, weights: Any) -> Tensor:
        """Return combinations of the stages."""
        found: Tensor = _constant(weights, self.y) @ ops.stack(self.stages)
        return found

    @cached_property
    def rows(self) -> Tensor:
        self.stages.append(self.rate(self.t + self.h, self.end))
        found: Tensor = self.h * self._combined(self.method.P.T)
        return found


class Dop853Step(ExplicitStep):
    """A step of SciPy's DOP853, whose interpolant has three further stages."""

    @cached_property
    def rows(self) -> Tensor:
        self.stages.append(self.rate(self.t + self.h, self.end))
        first, last = self.h * self.stages[0], self.h * self.stages[-1]
        for a, c in zip(self.method.A_EXTRA, self.method.C_EXTRA, strict=True):
            self._add_stage(a, c)
        change = self.end - self.y
        rows = ops.stack([change, first - change, 2 * change - (last + first)])
        return ops.cat([rows, self.h * self._combined(self.method.D)])

    def basis(self, x: Tensor) -> Tensor:
        """Return x, x(1 - x), x²(1 - x), x²(1 - x)² ..."""
        powers = [x ** ((i + 2) // 2) * (1 - x) ** ((i + 1) // 2) for i in range(len(self.rows))]
        return ops.stack(powers, -1)


# --- other methods --------------------------------------------------------------------------------


class _UncheckedInverse(DenseInverse):
    """The inverse at values that are as exact as the tolerances of the solver."""

    def _check_converged(self, step: Tensor) -> None:
        pass


class ImplicitStep(Step):
    """A step as by collocation at the nodes of a Radau IIA method, at values that SciPy found."""

    def __init__(
        self, segment: Segment, stages: int, rate: Rate, t: Time, h: Time, y: Tensor
    ) -> None:
        super().__init__(rate, t, h, y)
        nodes, integrals, self.inverse = radau(stages)
        times = segment.start + nodes * (segment.end - segment.start)
        values = np.array(segment.interpolant(times).T)
        values[-1] = segment.state

        def residual(vector: Tensor) -> Tensor:
            states = _as_states(vector, y)
            rates = [rate(t + c * h, states[i]) for i, c in enumerate(nodes.tolist())]
            found = states - y - h * (_constant(integrals, y) @ ops.stack(rates))
            return ops.reshape(ops.view_as_real(found) if found.is_complex() else found, -1)

        vector = values.ravel().view(np.float64)
        maker = inverse_maker("solve_ivp", None, vector.size)
        maker = _UncheckedInverse if maker is DenseInverse else maker
        self.states = _as_states(solution(residual, vector, maker, title="solve_ivp"), y)
        self.end = self.states[-1]

    @cached_property
    def rows(self) -> Tensor:
        found: Tensor = _constant(self.inverse, self.y) @ (self.states - self.y)
        return found


def _as_states(vector: Tensor, like: Tensor) -> Tensor:
    """Return a real vector as states, a row for each."""
    if like.is_complex():
        return ops.view_as_complex(ops.reshape(vector, (-1, len(like), 2)))
    return ops.reshape(vector, (-1, len(like)))


@cache
def radau(stages: int) -> tuple[Any, Any, Any]:
    """Return the nodes of the Radau IIA method, its matrix, and that of interpolation.

    E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, 1996, section IV.5.
    """
    polynomial = np.polynomial.Polynomial([0.0, 1.0]) ** (stages - 1)
    polynomial = polynomial * np.polynomial.Polynomial([-1.0, 1.0]) ** stages
    nodes = np.sort(polynomial.deriv(stages - 1).roots().real)
    powers = nodes[:, None] ** np.arange(stages)
    integrals = nodes[:, None] * powers / np.arange(1, stages + 1)
    return nodes, integrals @ np.linalg.inv(powers), np.linalg.inv(nodes[:, None] * powers)


# --- the whole solution ---------------------------------------------------------------------------


class Trajectory:
    """A solution: its steps, the times between them, and the states at these times."""

    def __init__(
        self, method: Any, rate: Rate, span: tuple[Time, Time], y0: Tensor, found: list[Segment]
    ) -> None:
        self.steps: list[Step] = []
        self.times, self.states = [span[0]], [y0]
        self.ends = np.array([segment.end for segment in found])
        bound = float(arrays_of(span[1]))
        for segment in found:
            t, y = self.times[-1], self.states[-1]
            end = span[1] if segment.end == bound else segment.end
            step = _step(method, segment, rate, t, end - t, y)
            self.steps.append(step)
            self.times.append(end)
            self.states.append(with_value(step.end, segment.state))

    def at(self, times: Tensor, values: Any) -> Tensor:
        """Return the states at some times, a row for each, with the values that SciPy found."""
        indices = self._indices(arrays_of(times))
        found = np.unique(indices)
        parts = [self.steps[i].at(times[np.flatnonzero(indices == i)]) for i in found]
        places = np.argsort(np.argsort(indices, kind="stable"))
        return with_value(ops.cat(parts)[places], values)

    def step_at(self, time: float) -> Step:
        """Return the step during which a time passes, with its polynomial recorded."""
        step = self.steps[int(self._indices(time))]
        _ = step.rows
        return step

    def _indices(self, times: Any) -> Any:
        """Return the number of the step that ends at each time or after it."""
        sign = -1 if self.ends[-1] < arrays_of(self.times[0]) else 1
        return np.minimum(np.searchsorted(sign * self.ends, sign * times), len(self.ends) - 1)


def _step(method: Any, segment: Segment, *problem: Any) -> Step:
    if hasattr(method, "A_EXTRA"):
        return Dop853Step(method, *problem)
    if hasattr(method, "P") and hasattr(method, "B"):
        return ExplicitStep(method, *problem)
    # LSODA's formulas are of orders up to 12.
    return ImplicitStep(segment, 5 if method.__name__ == "LSODA" else 3, *problem)


def with_value(moving: Tensor, value: Any) -> Tensor:
    """Return a tensor with another value and the same derivatives."""
    return moving + (tensor_of(np.asarray(value)) - moving.detach())


def _constant(array: Any, like: Tensor) -> Tensor:
    return make(np.ascontiguousarray(array, like.dtype), None)
