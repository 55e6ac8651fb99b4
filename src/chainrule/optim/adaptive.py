"""Optimisers with a rate for each element: RMSprop, Adagrad, Adadelta, Rprop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.autograd.tensor import Tensor
from chainrule.backend import namespace
from chainrule.errors import ArgumentError
from chainrule.optim.optimizer import Group, ParamsT
from chainrule.optim.update_rule import (
    State,
    UpdateRule,
    advance,
    average,
    average_squares,
    in_dtype_of,
    option_value,
    weights,
)

Array = Any


class RMSprop(UpdateRule):
    """RMSprop: the gradient divided by the root of the mean of its squares.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
    lr : float or Tensor, default 1e-2
        The learning rate, at least 0.
    alpha : float, default 0.99
        Decay rate of the mean of squares, at least 0.
    eps : float, default 1e-8
        Added to the denominator.
    weight_decay : float, default 0
        λ of an added penalty λ/2 ‖p‖².
    momentum : float, default 0
        Momentum factor of the scaled gradients.
    centered : bool, default False
        Divide by the standard deviation: subtract the square of the mean gradient.
    capturable, foreach, maximize, differentiable
        As for `Adam`.

    Raises
    ------
    ArgumentError
        If an option is out of range; TypeError and ArgumentError as `Optimizer` does for `params`.

    Notes
    -----
    With the gradient g (negated to maximise, plus λ p): v ← α v + (1 - α) g², b ← g / (√v + eps)
    plus momentum · b, and p ← p - lr b [1]_; `centered` takes v - m² in the place of v, where m is
    the mean of gradients [2]_. The state of a parameter is ``step``, ``square_avg`` (v), with
    `momentum` ``momentum_buffer`` (b), and with `centered` ``grad_avg`` (m).

    References
    ----------
    .. [1] G. Hinton, Neural networks for machine learning, lecture 6e, Coursera, 2012.
    .. [2] A. Graves, Generating sequences with recurrent neural networks, arXiv:1308.0850, 2013.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = cr.optim.RMSprop([w], lr=0.1, alpha=0.75)
    >>> w.pow(2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.8000, -1.8000], requires_grad=True)
    """

    _NON_NEGATIVE = ("lr", "alpha", "eps", "weight_decay", "momentum")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _state_names(self, options: Group, p: Array) -> Sequence[str]:
        names = ["step", "square_avg"]
        names += ["momentum_buffer"] if options["momentum"] else []
        return [*names, "grad_avg"] if options["centered"] else names

    def _numbers(self, state: State, options: Group, p: Array, fresh: bool) -> tuple[Any, ...]:
        advance(state["step"])
        lr, alpha, eps, momentum = (
            option_value(options[name]) for name in ("lr", "alpha", "eps", "momentum")
        )
        return lr, *weights(alpha), eps, momentum

    def _apply(
        self, xp: Any, p: Array, g: Array, state: State, numbers: Sequence[Any], scratch: Array
    ) -> None:
        lr, old, new, eps, momentum = numbers
        v = state["square_avg"]
        average_squares(xp, v, g, old, new, scratch)
        if "grad_avg" in state:
            m = state["grad_avg"]
            average(xp, m, g, old, new, scratch)
            xp.multiply(m, m, out=scratch)
            xp.subtract(v, scratch, out=scratch)
            xp.sqrt(scratch, out=scratch)
        else:
            xp.sqrt(v, out=scratch)
        scratch += eps
        xp.divide(g, scratch, out=scratch)
        if "momentum_buffer" in state:
            b = state["momentum_buffer"]
            b *= momentum
            b += scratch
            xp.multiply(b, lr, out=scratch)
        else:
            scratch *= lr
        p -= scratch


class Adagrad(UpdateRule):
    """Adagrad: the gradient divided by the root of the sum of its squares so far.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
    lr : float or Tensor, default 1e-2
        The learning rate, at least 0.
    lr_decay : float, default 0
        Decay of the rate: in step t it is lr / (1 + (t - 1) lr_decay).
    weight_decay : float, default 0
        λ of an added penalty λ/2 ‖p‖².
    initial_accumulator_value : float, default 0
        Initial value of the sums of squares.
    eps : float, default 1e-10
        Added to the denominator.
    foreach, maximize, differentiable, fused
        As for `Adam`.

    Raises
    ------
    ArgumentError
        If an option is out of range; TypeError and ArgumentError as `Optimizer` does for `params`.

    Notes
    -----
    With the gradient g (negated to maximise, plus λ p): G ← G + g², p ← p - lrₜ g / (√G + eps)
    [1]_. The state of a parameter, made with the optimiser, is ``step`` (t) and ``sum`` (G).

    References
    ----------
    .. [1] J. Duchi, E. Hazan, Y. Singer, Adaptive subgradient methods for online learning and
       stochastic optimization, JMLR 12, 2011.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = cr.optim.Adagrad([w], lr=0.25)
    >>> w.pow(2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.7500, -1.7500], requires_grad=True)
    """

    _NON_NEGATIVE = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())

    def add_param_group(self, param_group: Group) -> None:
        """Add a group of parameters, and their state: see `Optimizer.add_param_group`."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for param in group["params"]:
            self._arrays(param, self._state_names(group, param._array), None, group)

    def _state_names(self, options: Group, p: Array) -> Sequence[str]:
        return ("step", "sum")

    def _initial(self, name: str, p: Array, g: Array, options: Group) -> Array:
        if name == "step":
            return super()._initial(name, p, g, options)
        return filled_like(p, option_value(options["initial_accumulator_value"]))

    def _numbers(self, state: State, options: Group, p: Array, fresh: bool) -> tuple[Any, ...]:
        t, decay = advance(state["step"]), option_value(options["lr_decay"])
        return option_value(options["lr"]) / (1 + (t - 1) * decay), option_value(options["eps"])

    def _apply(
        self, xp: Any, p: Array, g: Array, state: State, numbers: Sequence[Any], scratch: Array
    ) -> None:
        lr, eps = numbers
        total = state["sum"]
        xp.multiply(g, g, out=scratch)
        total += scratch
        xp.sqrt(total, out=scratch)
        scratch += eps
        xp.divide(g, scratch, out=scratch)
        scratch *= lr
        p -= scratch


class Adadelta(UpdateRule):
    """Adadelta: steps in the unit of the parameter, by the ratio of two means of squares.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
    lr : float or Tensor, default 1
        Factor of the step, at least 0.
    rho : float, default 0.9
        Decay rate of both means, from 0 to 1.
    eps : float, default 1e-6
        Added to both means, so that the first step is not 0.
    weight_decay : float, default 0
        λ of an added penalty λ/2 ‖p‖².
    foreach, capturable, maximize, differentiable
        As for `Adam`.

    Raises
    ------
    ArgumentError
        If an option is out of range; TypeError and ArgumentError as `Optimizer` does for `params`.

    Notes
    -----
    With the gradient g (negated to maximise, plus λ p): v ← ρ v + (1 - ρ) g²,
    d = g √(u + eps) / √(v + eps), u ← ρ u + (1 - ρ) d², p ← p - lr d [1]_. The state of a parameter
    is ``step``, ``square_avg`` (v) and ``acc_delta`` (u).

    References
    ----------
    .. [1] M. D. Zeiler, ADADELTA: An adaptive learning rate method, arXiv:1212.5701, 2012.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = cr.optim.Adadelta([w], eps=0.25, rho=0)
    >>> w.pow(2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.5149, -1.5039], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _check(self, options: Group) -> None:
        super()._check(options)
        if not 0 <= options["rho"] <= 1:
            raise ArgumentError(f"Invalid rho value: {options['rho']}, expected from 0 to 1")

    def _state_names(self, options: Group, p: Array) -> Sequence[str]:
        return ("step", "square_avg", "acc_delta")

    def _numbers(self, state: State, options: Group, p: Array, fresh: bool) -> tuple[Any, ...]:
        advance(state["step"])
        return (
            option_value(options["lr"]),
            *weights(option_value(options["rho"])),
            option_value(options["eps"]),
        )

    def _apply(
        self, xp: Any, p: Array, g: Array, state: State, numbers: Sequence[Any], scratch: Array
    ) -> None:
        lr, old, new, eps = numbers
        v, u = state["square_avg"], state["acc_delta"]
        average_squares(xp, v, g, old, new, scratch)
        xp.add(v, eps, out=scratch)
        delta = xp.sqrt(u + eps)
        delta /= xp.sqrt(scratch, out=scratch)
        delta *= g
        average_squares(xp, u, delta, old, new, scratch)
        delta *= lr
        p -= delta


class Rprop(UpdateRule):
    """Resilient backpropagation: steps by the sign of the gradient, for full batches.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
    lr : float or Tensor, default 1e-2
        The first step of each element, at least 0.
    etas : (float, float), default (0.5, 1.2)
        Factors of the step after a change of sign, below 1, and without, above 1.
    step_sizes : (float, float), default (1e-6, 50)
        Smallest and largest step.
    capturable, foreach, maximize, differentiable
        As for `Adam`.

    Raises
    ------
    ArgumentError
        If an option is out of range; TypeError and ArgumentError as `Optimizer` does for `params`.

    Notes
    -----
    Where g and the last gradient agree in sign, the step s grows by etas[1]; where they don't, it
    shrinks by etas[0] and g counts as 0, for this step and as the last gradient. Then
    p ← p - s sign(g) [1]_. The state of a parameter is ``step``, ``prev`` (the last gradient) and
    ``step_size`` (s).

    References
    ----------
    .. [1] M. Riedmiller, H. Braun, A direct adaptive method for faster backpropagation learning:
       the RPROP algorithm, IEEE Int. Conf. Neural Networks, 1993; here as in iRprop⁻, C. Igel,
       M. Hüsken, 2000.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = cr.optim.Rprop([w], lr=0.25)
    >>> w.pow(2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.7500, -1.7500], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _check(self, options: Group) -> None:
        super()._check(options)
        low, high = options["etas"]
        if not 0 < low < 1 < high:
            raise ArgumentError(
                f"Invalid eta values: {low}, {high}, expected one between 0 and 1, and one above 1"
            )

    def _state_names(self, options: Group, p: Array) -> Sequence[str]:
        return ("step", "prev", "step_size")

    def _initial(self, name: str, p: Array, g: Array, options: Group) -> Array:
        if name == "step_size":
            return filled_like(p, option_value(options["lr"]))
        return super()._initial(name, p, g, options)

    def _numbers(self, state: State, options: Group, p: Array, fresh: bool) -> tuple[Any, ...]:
        advance(state["step"])
        return (*map(float, options["etas"]), *map(float, options["step_sizes"]))

    def _apply(
        self, xp: Any, p: Array, g: Array, state: State, numbers: Sequence[Any], scratch: Array
    ) -> None:
        shrink, grow, smallest, largest = numbers
        prev, size = state["prev"], state["step_size"]
        agreement = prev * g
        size *= xp.where(agreement < 0, shrink, xp.where(agreement > 0, grow, 1.0)).astype(p.dtype)
        xp.maximum(size, smallest, out=size)
        xp.minimum(size, largest, out=size)
        prev[...] = xp.where(agreement < 0, xp.zeros_like(g), g)
        xp.multiply(xp.sign(prev), size, out=scratch)
        p -= scratch


def filled_like(p: Array, value: Any) -> Array:
    """Return an array like `p` with one value; in a complex one both parts have it."""
    array = namespace(p).zeros_like(p)
    array += value * (1 + 1j) if p.dtype.kind == "c" else in_dtype_of(value, p)
    return array
