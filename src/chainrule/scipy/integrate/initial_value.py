"""Initial value problems of ordinary differential equations: `solve_ivp` and `odeint`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import ArgumentError, AutogradError, ShapeError
from chainrule.implicit.implicit_node import solution
from chainrule.implicit.inverse import DenseInverse
from chainrule.interop.operands import are_known, arrays_of, is_tracked, tensor_of
from chainrule.numpy.array_class import as_ndarrays
from chainrule.scipy.dispatch import has_tensors
from chainrule.scipy.integrate.quadrature import scipy_integrate
from chainrule.scipy.integrate.steps import Segment, Step, Trajectory, with_value

__all__ = ["odeint", "solve_ivp"]

Function = Callable[..., Any]

_METHODS = ("RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA")


class _Problem:
    """The user's functions of time and state, for SciPy and recorded."""

    def __init__(self, title: str, fun: Function, y0: Any, args: Any, *others: Any) -> None:
        if not are_known([y0, args, *others]):
            raise AutogradError(
                f"{title} chooses its steps by values, which a compiled function doesn't know, nor "
                "does vmap: solve outside, solve the examples as one state, or step with "
                "chainrule.scan"
            )
        self.title, self.fun, self.args = title, fun, () if args is None else tuple(args)
        self.as_tensors = isinstance(y0, Tensor) and not y0.is_carried
        self.tracked = is_tracked(y0, args, *others)
        start = tensor_of(y0)
        start = start if start.ndim else ops.reshape(start, (1,))
        dtype = np.complex128 if start.dtype.kind == "c" else np.float64
        self.start = cast(start, np.dtype(dtype))
        self.segments: list[Segment] = []

    def in_kind(self, found: Any) -> Any:
        """Return a result in the kind of the initial state."""
        return found if self.as_tensors else as_ndarrays(found)

    def numbers(self, function: Function, *parts: Any) -> Any:
        """Return the value of a user's function of numbers; note whether it records."""
        if self.as_tensors:
            parts = tuple([make(p, None) if isinstance(p, np.ndarray) else p for p in parts])
        found = function(*parts, *self.args)
        self.tracked = self.tracked or is_tracked(found)
        return arrays_of(found)

    def of_numbers(self, function: Any) -> Any:
        """Return a user's function for SciPy; with the attributes of an event."""
        if not callable(function):
            return function

        def call(*parts: Any) -> Any:
            return self.numbers(function, *parts)

        for name in ("terminal", "direction"):
            if hasattr(function, name):
                setattr(call, name, getattr(function, name))
        return call

    def recorded(self, function: Function, *parts: Any) -> Tensor:
        """Return the value of a user's function of time and state, recorded."""
        parts = tuple([self.in_kind(p) if isinstance(p, Tensor) else p for p in parts])
        return tensor_of(function(*parts, *self.args))

    def rate(self, t: Any, y: Tensor) -> Tensor:
        """Return the derivative of the state by the time, recorded."""
        found = ops.reshape(self.recorded(self.fun, t, y), (-1,))
        if found.shape != y.shape:
            raise ShapeError(
                f"{self.title}: the function returned {found.numel()} numbers for "
                f"{y.numel()} unknowns"
            )
        return cast(found, y.dtype)

    def noting(self, method: Any) -> Any:
        """Return a class of SciPy's solver that notes accepted steps while something records."""

        def step(solver: Any) -> Any:
            message = method.step(solver)
            if self.tracked and solver.status != "failed":
                state = solver.y.copy()
                self.segments.append(Segment(solver.t_old, solver.t, state, solver.dense_output()))
            return message

        return type(method.__name__, (method,), {"step": step})

    def trajectory(self, method: Any, span: tuple[Any, Any], run: Callable[[], Any]) -> Trajectory:
        """Return the recorded steps: of another run, if nothing recorded in the first of them."""
        if not self.segments or self.segments[0].start != float(arrays_of(span[0])):
            self.segments.clear()
            run()
        return Trajectory(method, self.rate, span, self.start, self.segments)


def solve_ivp(
    fun: Function,
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """Solve an initial value problem: `scipy.integrate.solve_ivp`, with derivatives.

    Parameters
    ----------
    fun : callable
        ``fun(t, y, *args)``, the derivative of the state by the time. It is differentiated with
        respect to tensors that it closes over, too.
    t_span, y0, t_eval : two numbers, array of shape (n,), array of shape (m,)
        The range of time, the state at its beginning, and times at which to return the state. All
        may be tensors with a gradient.
    args : tuple
        Further arguments of `fun` and of the events, any objects with tensors in them.
    events : callable or list of callables
        ``event(t, y, *args)``. Times and states of events have derivatives.
    method, dense_output, vectorized, **options
        Of SciPy's function. `jac` may be ``chainrule.jacobian(fun, 1)``.

    Returns
    -------
    SciPy's result
        `y`, `sol`, `y_events` and, where they depend on what is recorded, `t` and `t_events` are
        tensors, or arrays that record, as `y0` is. Without a gradient it is SciPy's own.

    Raises
    ------
    AutogradError
        Under `vmap` and in a compiled function, since steps are chosen by values.
    LinAlgError
        In a backward pass, if an event function crosses zero with the slope zero.

    Notes
    -----
    The derivatives are those of the discrete solution with SciPy's steps ("discretise, then
    optimise" [1]_), in both modes and to every order: the formula itself for RK23, RK45 and
    DOP853, and collocation at the nodes of a Radau IIA method for the others, by the implicit
    function theorem at SciPy's values. The times of events follow from the implicit function
    theorem, too.

    References
    ----------
    .. [1] P. Kidger, On Neural Differential Equations, 2022, section 5.1.

    Examples
    --------
    >>> import chainrule as cr
    >>> def decayed(rate):
    ...     found = cr.scipy.integrate.solve_ivp(lambda t, y: -rate * y, (0, 2), [1.0], rtol=1e-8)
    ...     return found.y[0, -1]
    >>> round(cr.grad(decayed)(0.5), 5)  # -2 exp(-1)
    -0.73576
    """
    problem = _Problem("solve_ivp", fun, y0, args, t_span, t_eval)
    if isinstance(method, str) and method not in _METHODS:
        raise ArgumentError(f"solve_ivp: method is one of {', '.join(_METHODS)}, got {method!r}")
    known = getattr(scipy_integrate, method) if isinstance(method, str) else method
    single = callable(events)
    listed = None if events is None else [events] if single else [*events]
    options |= {key: problem.of_numbers(options[key]) for key in ("jac",) if key in options}

    def run() -> Any:
        return scipy_integrate.solve_ivp(
            problem.of_numbers(fun),
            arrays_of(tuple(t_span)),
            arrays_of(problem.start),
            problem.noting(known),
            t_eval=arrays_of(t_eval),
            dense_output=dense_output,
            events=None if listed is None else [problem.of_numbers(event) for event in listed],
            vectorized=vectorized,
            **options,
        )

    result = run()
    if dense_output and known in (scipy_integrate.BDF, scipy_integrate.LSODA):
        found = result.sol  # which of two steps counts between them, SciPy decides by the class
        result.sol = type(found)(found.ts, found.interpolants, alt_segment=True)
    if not problem.tracked:
        if has_tensors(y0):
            result.y = problem.in_kind(tensor_of(result.y))
        return result
    trajectory = problem.trajectory(known, tuple(t_span), run)
    return _Recorded(problem, trajectory, result, t_eval).result(listed or [])


class _Recorded:
    """SciPy's result with tensors that record in the place of its arrays."""

    def __init__(self, problem: _Problem, trajectory: Trajectory, found: Any, t_eval: Any) -> None:
        self.problem, self.trajectory, self.found = problem, trajectory, found
        self.t_eval = t_eval

    def result(self, events: list[Any]) -> Any:
        """Return the result."""
        found, in_kind = self.found, self.problem.in_kind
        count = len(found.t)
        if not count:  # it failed before the first of the times
            return found
        crossings = [self._event(event, i) for i, event in enumerate(events)]
        if self.t_eval is None:
            times = [*self.trajectory.times[:count]]
            states = [*self.trajectory.states[:count]]
            if found.status == 1:
                times[-1], states[-1] = self._last_of(crossings)
            t, y = _stacked(times), ops.stack(states)
        else:
            t = tensor_of(self.t_eval)[:count]
            y = self.trajectory.at(cast(t, np.dtype(float)), found.y.T)
        if is_tracked(t):
            found.t = in_kind(t)
        found.y = in_kind(ops.transpose(y, 0, 1))
        if events:
            found.t_events = [in_kind(ops.stack(t) if t else _EMPTY) for t, _ in crossings]
            found.y_events = [in_kind(ops.stack(y) if y else _EMPTY) for _, y in crossings]
        if found.sol is not None:
            found.sol = _Solution(found.sol, self.trajectory, self.problem)
        return found

    def _event(self, event: Function, index: int) -> tuple[list[Tensor], list[Tensor]]:
        """Return the times and states of an event."""
        times, states = [], []
        pairs = zip(self.found.t_events[index], self.found.y_events[index], strict=True)
        for time, state in pairs:
            step = self.trajectory.step_at(time)

            def residual(t: Tensor, step: Step = step) -> Tensor:
                return ops.reshape(self.problem.recorded(event, t[0], step.at(t)[0]), (1,))

            t = solution(residual, np.array([time]), DenseInverse, title="solve_ivp: an event")
            times.append(t[0])
            states.append(with_value(step.at(t)[0], state))
        return times, states

    def _last_of(self, crossings: list[tuple[list[Tensor], list[Tensor]]]) -> tuple[Any, Any]:
        """Return the time and state of the event that ended the solution."""
        pairs = [pair for times, states in crossings for pair in zip(times, states, strict=True)]
        return next(pair for pair in pairs if pair[0].item() == self.found.t[-1])


_EMPTY = make(np.empty(0), None)


def _stacked(times: list[Any]) -> Tensor:
    return ops.stack([tensor_of(np.float64(t) if isinstance(t, float) else t) for t in times])


class _Solution:
    """The state as a function of the time: SciPy's `OdeSolution`, which records."""

    def __init__(self, scipys: Any, trajectory: Trajectory, problem: _Problem) -> None:
        self.scipys, self.trajectory, self.problem = scipys, trajectory, problem
        self.ts, self.t_min, self.t_max = scipys.ts, scipys.t_min, scipys.t_max

    def __call__(self, t: Any) -> Any:
        """Return the state at a time, shape (n,), or the states at m times, shape (n, m)."""
        numbers = arrays_of(t)
        values = self.scipys(numbers)
        times = cast(ops.reshape(tensor_of(t), (-1,)), np.dtype(float))
        states = self.trajectory.at(times, np.atleast_2d(values.T))
        return self.problem.in_kind(ops.transpose(states, 0, 1) if np.ndim(numbers) else states[0])


def odeint(func: Function, y0: Any, t: Any, args: Any = (), *rest: Any, **options: Any) -> Any:
    """Solve an initial value problem: `scipy.integrate.odeint`, with derivatives.

    Parameters
    ----------
    func : callable
        ``func(y, t, *args)``, or ``func(t, y, *args)`` with ``tfirst=True``.
    y0, t : array of shape (n,), array of shape (m,)
        The state at ``t[0]``, and the times at which to return the state.
    args : tuple
        Further arguments, any objects with tensors in them.
    *rest, **options
        Of SciPy's function.

    Returns
    -------
    array or Tensor, shape (m, n)
        Differentiable with respect to `y0`, `t`, `args` and tensors that `func` closes over. With
        ``full_output=True``, a pair of it and SciPy's information.

    Notes
    -----
    The values are SciPy's. The derivatives are those of `solve_ivp` with the method LSODA, which
    `odeint` stands for, and the same tolerances.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> times = np.array([0.0, 1.0, 2.0])
    >>> decay = cr.jacobian(lambda k: cr.scipy.integrate.odeint(lambda y, t: -k * y, 1.0, times))
    >>> np.round(decay(0.5)[:, 0], 5)  # -t exp(-t / 2)
    array([ 0.     , -0.60653, -0.73576])
    """
    given = inspect.signature(scipy_integrate.odeint).bind(func, y0, t, args, *rest, **options)
    settings: dict[str, Any] = {**given.arguments}
    args = args if isinstance(args, tuple) else (args,)
    first = settings.get("tfirst", False)
    rate = func if first else lambda t, y, *args: func(y, t, *args)
    problem = _Problem("odeint", rate, y0, args, t)
    by_time, jac = problem.of_numbers(rate), problem.of_numbers(settings.get("Dfun"))
    numbers = {"func": by_time if first else lambda y, t: by_time(t, y), "args": ()}
    settings |= {**numbers, "Dfun": jac, "y0": arrays_of(problem.start), "t": arrays_of(t)}
    result = scipy_integrate.odeint(**settings)
    values = result[0] if isinstance(result, tuple) else result
    if problem.tracked:
        span = (t[0], t[-1])
        trajectory = problem.trajectory(
            scipy_integrate.LSODA, span, lambda: _with_lsoda(problem, by_time, settings)
        )
        found = problem.in_kind(trajectory.at(cast(tensor_of(t), np.dtype(float)), values))
    elif has_tensors(y0):
        found = problem.in_kind(tensor_of(values))
    else:
        return result
    return (found, *result[1:]) if isinstance(result, tuple) else found


def _with_lsoda(problem: _Problem, rate: Function, settings: dict[str, Any]) -> None:
    """Solve a problem of `odeint` by SciPy's stepping class of the same method."""
    tolerance = {name: settings.get(name) or 1.49012e-8 for name in ("rtol", "atol")}
    steps = {
        "first_step": settings.get("h0") or None,
        "max_step": settings.get("hmax") or np.inf,
        "min_step": settings.get("hmin") or 0.0,
    }
    times = settings["t"]
    method = problem.noting(scipy_integrate.LSODA)
    solver = method(rate, times[0], settings["y0"], times[-1], **tolerance, **steps)
    while solver.status == "running":
        message = solver.step()
    if solver.status == "failed":
        raise AutogradError(f"odeint: LSODA failed at the time {solver.t}: {message}")
