"""L-BFGS, with a fixed step or a line search for the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.modes import enable_grad, run_in
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import record_write
from chainrule.backend import is_known, namespace
from chainrule.errors import ArgumentError, CompileError
from chainrule.interrupts import errstate
from chainrule.optim.optimizer import Group, Optimizer, ParamsT
from chainrule.optim.update_rule import check_rate, options_in

Array = Any


class LBFGS(Optimizer):
    """L-BFGS: quasi-Newton steps from the differences of the last gradients.

    Parameters
    ----------
    params : iterable of Tensors
        The parameters to update, one group only: see `Optimizer`.
    lr : float, default 1
        Length of a step, relative to the direction; with a line search, of its first trial.
    max_iter : int, default 20
        Largest number of iterations in a call of `step`.
    max_eval : int, optional
        Largest number of calls of the closure in a call of `step`; by default 5/4 of `max_iter`.
    tolerance_grad : float, default 1e-7
        `step` ends when no element of the gradient is larger.
    tolerance_change : float, default 1e-9
        `step` ends when neither an element of a parameter nor the loss changes more.
    history_size : int, default 100
        Number of differences that are kept: twice as many vectors as long as all parameters.
    line_search_fn : {None, "strong_wolfe"}
        The line search: none by default.

    Raises
    ------
    ArgumentError
        If an option is out of range, there are several groups, or `step` gets no closure.
    CompileError
        If `step` is called in a compiled function: how often it evaluates the loss depends on
        values. Compile the loss and its gradient in the closure.

    Notes
    -----
    The direction is -H g, with the two-loop recursion [1]_ from the initial H = sᵀy / yᵀy; a pair
    with sᵀy ≤ 1e-10 is left out. Without a line search, the first step is lr min(1, 1/‖g‖₁) long
    relative to the direction. The search brackets and zooms by cubic interpolation [2]_, with
    c₁ = 1e-4 and c₂ = 0.9, and leaves an end of the bracket by a tenth of its length where that
    made no progress, as minFunc [3]_ does. For problems that fit into one closure of NumPy
    functions, ``scipy.optimize.minimize(..., method="L-BFGS-B")`` is as good.

    The state, under the first parameter: ``func_evals``, ``n_iter``, ``d`` (direction), ``t``
    (step), ``old_dirs`` (y), ``old_stps`` (s), ``ro`` (1 / sᵀy), ``H_diag``, ``prev_flat_grad``,
    ``prev_loss``.

    References
    ----------
    .. [1] J. Nocedal, S. J. Wright, Numerical optimization, 2nd ed., 2006, algorithm 7.4.
    .. [2] The same, algorithms 3.5 and 3.6, equation 3.59.
    .. [3] M. Schmidt, minFunc, 2005, https://www.cs.ubc.ca/~schmidtm/Software/minFunc.html

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([-1.2, 1.0], dtype=cr.float64, requires_grad=True)
    >>> optimizer = cr.optim.LBFGS([w], line_search_fn="strong_wolfe", max_iter=50)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure)
    tensor(24.2000, dtype=float64, grad_fn=<AddBackward0>)
    >>> w
    tensor([1.0000, 1.0000], dtype=float64, requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, options_in(locals()))

    def add_param_group(self, param_group: Group) -> None:
        """Add the only group of parameters: see `Optimizer.add_param_group`."""
        if self.param_groups:
            raise ArgumentError(
                "LBFGS doesn't support per-parameter options (parameter groups): give all "
                "parameters in one list"
            )
        super().add_param_group(param_group)

    def _check(self, options: Group) -> None:
        check_rate(options["lr"])
        if not options["lr"] >= 0:
            raise ArgumentError(f"Invalid learning rate: {options['lr']}, expected at least 0")
        if options["line_search_fn"] not in (None, "strong_wolfe"):
            raise ArgumentError(
                f"only 'strong_wolfe' is supported as line_search_fn, or None for a fixed step, "
                f"but got {options['line_search_fn']!r}"
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Iterate until one of the limits or tolerances is met.

        Parameters
        ----------
        closure : callable
            Clears the gradients, computes the loss, calls ``backward()`` and returns the loss. It
            is called several times, recorded even under `no_grad`.

        Returns
        -------
        The result of the first call of `closure`
        """
        params = self.param_groups[0]["params"]
        if closure is None:
            raise ArgumentError(
                "LBFGS evaluates the loss several times: call step(closure), where closure() clears"
                " the gradients, calls backward() and returns the loss"
            )
        if not all(is_known(param._array) for param in params):
            raise CompileError(
                "LBFGS.step can't be compiled: how often it evaluates the loss depends on values. "
                "Compile the closure's loss, or the function that computes it, and call step "
                "outside of the compiled function"
            )
        try:
            return self._iterate(_Objective(params, closure))
        except BaseException:  # an interrupt: each may have been written
            for param in params:
                record_write(param._array, "LBFGS.step")
            raise

    @errstate(all="ignore")  # divergence shows in the loss, as inf or nan
    def _iterate(self, objective: _Objective) -> Any:
        options = self.param_groups[0]
        state = self.state[options["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        result, loss, g = objective()
        evals = 1
        state["func_evals"] += 1
        if _largest(g) <= options["tolerance_grad"]:
            return result
        history = _History(state, options["history_size"])
        for n in range(1, options["max_iter"] + 1):
            state["n_iter"] += 1
            d = history.direction(g)
            history.gradient, before = g, loss
            t = float(options["lr"])
            if state["n_iter"] == 1:
                t /= max(1.0, float(abs(g).sum()))
            history.d, history.t, history.loss = d, t, before
            slope = _dot(g, d)
            if slope > -options["tolerance_change"]:
                break
            objective.along(d)
            if options["line_search_fn"]:
                start = _Trial(0.0, np.float64(loss), g, slope)
                search = _Search(objective, start, _largest(d), options["tolerance_change"])
                trial, more = search.run(t, options["max_eval"] - evals)
                objective.move(trial.t)
                t, loss, g = float(trial.t), float(trial.loss), trial.g
            else:
                objective.move(t)
                more = 0
                if n < options["max_iter"]:  # nobody asks for the loss after the last one
                    _, loss, g = objective()
                    more = 1
            history.t = t
            evals += more
            state["func_evals"] += more
            if (
                evals >= options["max_eval"]
                or _largest(g) <= options["tolerance_grad"]
                or _largest(d * t) <= options["tolerance_change"]
                or abs(loss - before) < options["tolerance_change"]
            ):
                break
        history.store(state)
        return result


class _Objective:
    """The loss and its gradient as functions of one real vector: of all parameters."""

    def __init__(self, params: list[Tensor], closure: Callable[[], Any]) -> None:
        self.params, self.closure = params, closure
        self.start: list[Array] = []
        self.d: Array = None

    def __call__(self) -> tuple[Any, float, Array]:
        """Return the closure's result, the loss, and the gradient as a new vector."""
        result = run_in(enable_grad(), self.closure)
        xp = namespace(self.params[0]._array)
        parts = []
        for param in self.params:
            grad: Any = param._grad
            array = xp.zeros_like(param._array) if grad is None else grad._array
            parts.append(_as_vector(xp, array))
        loss = result.item() if isinstance(result, Tensor) else float(result)
        return result, loss, xp.concat(parts)

    def along(self, d: Array) -> None:
        """Choose the line through the present parameters in the direction d."""
        self.start, self.d = [param._array.copy() for param in self.params], d

    def move(self, t: float) -> None:
        """Write the parameters at a place on the line."""
        xp, first = namespace(self.d), 0
        for param, start in zip(self.params, self.start, strict=True):
            p = param._array
            vector = _as_vector(xp, start)
            last = first + vector.size
            moved = vector + (t * self.d[first:last]).astype(vector.dtype)
            p[...] = (moved.view(p.dtype) if p.dtype.kind == "c" else moved).reshape(p.shape)
            record_write(p, "LBFGS.step")
            first = last

    def at(self, t: float) -> _Trial:
        """Return the loss at a place on the line, and its slope there."""
        self.move(t)
        _, loss, g = self()
        return _Trial(t, np.float64(loss), g, _dot(g, self.d))


def _as_vector(xp: Any, array: Array) -> Array:
    """Return the elements of an array, complex ones as pairs."""
    flat = xp.ascontiguousarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _dot(x: Array, y: Array) -> np.float64:
    return np.float64(x @ y)


def _largest(x: Array) -> float:
    return float(abs(x).max()) if x.size else 0.0


class _History:
    """The last differences of parameters and gradients, and the inverse Hessian that they make."""

    def __init__(self, state: dict[str, Any], size: int) -> None:
        self.size = size
        self.d: Array
        self.ys, self.steps = (
            [each._array for each in state.get(name) or []] for name in ("old_dirs", "old_stps")
        )
        self.ro = [float(each) for each in state.get("ro") or []]
        self.scale = float(state.get("H_diag") or 1)
        self.d, self.gradient = (
            array if array is None else array._array
            for array in map(state.get, ("d", "prev_flat_grad"))
        )
        self.t, self.loss = float(state.get("t") or 0), state.get("prev_loss")

    def store(self, state: dict[str, Any]) -> None:
        """Write everything into the state of the optimiser."""
        state.update(
            d=make(self.d, None),
            t=self.t,
            old_dirs=[make(y, None) for y in self.ys],
            old_stps=[make(s, None) for s in self.steps],
            ro=list(self.ro),
            H_diag=self.scale,
            prev_flat_grad=make(self.gradient, None),
            prev_loss=self.loss,
        )

    def direction(self, g: Array) -> Array:
        """Take up the last step, if there was one, and return -H g."""
        if self.gradient is None:
            return -g
        y, s = g - self.gradient, self.d * self.t
        ys = float(_dot(y, s))
        if ys > 1e-10:
            if len(self.ys) == self.size:
                del self.ys[0], self.steps[0], self.ro[0]
            self.ys.append(y)
            self.steps.append(s)
            self.ro.append(1 / ys)
            self.scale = ys / float(_dot(y, y))
        q, shares = -g, []
        for y, s, ro in reversed([*zip(self.ys, self.steps, self.ro, strict=True)]):
            share = float(_dot(s, q)) * ro
            shares.append(share)
            q -= share * y
        q *= self.scale
        for y, s, ro in zip(self.ys, self.steps, self.ro, strict=True):
            q += s * (shares.pop() - float(_dot(y, q)) * ro)
        return q


# --- line search ----------------------------------------------------------------------------------


class _Trial(NamedTuple):
    """A place on the line: the loss, the gradient, and the slope of the loss along the line."""

    t: float
    loss: np.float64
    g: Array
    slope: np.float64


class _Search:
    """The search for a place with the strong Wolfe conditions."""

    def __init__(
        self, objective: _Objective, start: _Trial, largest: float, tolerance: float
    ) -> None:
        self.objective, self.start = objective, start
        self.largest, self.tolerance = largest, tolerance

    def _too_high(self, trial: _Trial) -> bool:
        return bool(trial.loss > self.start.loss + 1e-4 * trial.t * self.start.slope)

    def _flat(self, trial: _Trial) -> bool:
        return bool(abs(trial.slope) <= -0.9 * self.start.slope)

    def run(self, t: float, limit: int) -> tuple[_Trial, int]:
        """Return the place that was found, and how often the loss was evaluated."""
        last, trial = self.start, self.objective.at(t)
        for count in range(limit):
            if self._too_high(trial) or (count > 1 and trial.loss >= last.loss):
                return self._zoom(last, trial, count, limit)
            if self._flat(trial):
                return trial, count + 1
            if trial.slope >= 0:
                return self._zoom(last, trial, count, limit)
            bounds = trial.t + 0.01 * (trial.t - last.t), trial.t * 10
            last, trial = trial, self.objective.at(_minimum_of_cubic(last, trial, *bounds))
        found = self.start if self.start.loss <= trial.loss else trial
        return found, max(limit, 0) + 1

    def _zoom(self, low: _Trial, high: _Trial, count: int, limit: int) -> tuple[_Trial, int]:
        """Shrink a bracket of which `low` is the end with the lower loss."""
        if not low.loss <= high.loss:
            low, high = high, low
        stalled = False
        while count < limit and not abs(high.t - low.t) * self.largest < self.tolerance:
            left, right = sorted((low.t, high.t))
            t = _minimum_of_cubic(low, high, left, right)
            margin = 0.1 * (right - left)
            near = min(right - t, t - left) < margin
            if near and (stalled or not left < t < right):
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stalled = False
            else:
                stalled = near
            trial = self.objective.at(t)
            count += 1
            if self._too_high(trial) or trial.loss >= low.loss:
                high = trial
            elif self._flat(trial):
                low = trial
                break
            else:
                if trial.slope * (high.t - low.t) >= 0:
                    high = low
                low = trial
        return low, count + 1


def _minimum_of_cubic(a: _Trial, b: _Trial, least: float, most: float) -> float:
    """Return where the cubic with these values and slopes is smallest, within bounds."""
    if a.t > b.t:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    d2 = np.sqrt(square)
    t = float(b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)))
    return min(max(t, least), most) if np.isfinite(t) else (least + most) / 2
