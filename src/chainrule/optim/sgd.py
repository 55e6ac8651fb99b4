"""Stochastic gradient descent, with momentum or averaging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.backend import namespace
from chainrule.errors import ArgumentError
from chainrule.optim.optimizer import Group, ParamsT
from chainrule.optim.update_rule import State, UpdateRule, advance, option_value, state_value

Array = Any


class SGD(UpdateRule):
    """Gradient descent: p ← p - lr g, with or without momentum.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
    lr : float or Tensor, default 1e-3
        The learning rate, at least 0.
    momentum : float, default 0
        Momentum factor: the fraction of the momentum buffer that is kept in each step.
    dampening : float, default 0
        The gradient is added to the momentum buffer times 1 - dampening.
    weight_decay : float, default 0
        λ of an added penalty λ/2 ‖p‖².
    nesterov : bool, default False
        Use Nesterov momentum, which requires a momentum and no dampening.
    maximize : bool, default False
        Maximise the objective instead.
    foreach, fused : optional
        Accepted for PyTorch's sake, without effect: a step is always the fast one.
    differentiable : bool, default False
        True is refused: a step is never recorded.

    Raises
    ------
    ArgumentError
        If an option is out of range; TypeError and ArgumentError as `Optimizer` does for `params`.

    Notes
    -----
    With the gradient g (negated to maximise, plus λ p), the momentum buffer b is g in the first
    step, then b ← momentum · b + (1 - dampening) · g, and the step p ← p - lr · b, or with
    `nesterov` p ← p - lr · (g + momentum · b) [1]_. The state of a parameter is its
    ``momentum_buffer`` b, if there is a momentum.

    References
    ----------
    .. [1] I. Sutskever, J. Martens, G. Dahl, G. Hinton, On the importance of initialization and
       momentum in deep learning, ICML 2013; b there is -1/lr times the velocity v.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = cr.optim.SGD([w], lr=0.25)
    >>> w.pow(2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.5000, -1.0000], requires_grad=True)
    """

    _NON_NEGATIVE = ("lr", "momentum", "weight_decay")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())

    def _check(self, options: Group) -> None:
        super()._check(options)
        if options["nesterov"] and (options["momentum"] == 0 or options["dampening"] != 0):
            raise ArgumentError(
                "Nesterov momentum requires a momentum and zero dampening: got momentum "
                f"{options['momentum']} and dampening {options['dampening']}"
            )

    def _state_names(self, options: Group, p: Array) -> Sequence[str]:
        return ("momentum_buffer",) if options["momentum"] else ()

    def _initial(self, name: str, p: Array, g: Array, options: Group) -> Array:
        return namespace(p).array(g)

    def _numbers(self, state: State, options: Group, p: Array, fresh: bool) -> tuple[Any, ...]:
        lr = option_value(options["lr"])
        if not state:
            return (lr,)
        momentum, share = option_value(options["momentum"]), 1 - option_value(options["dampening"])
        return lr, momentum, None if share == 1 else share, fresh, bool(options["nesterov"])

    def _apply(
        self, xp: Any, p: Array, g: Array, state: State, numbers: Sequence[Any], scratch: Array
    ) -> None:
        lr = numbers[0]
        if not state:
            p -= g * lr
            return
        _, momentum, share, fresh, nesterov = numbers
        b = state["momentum_buffer"]
        if not fresh:
            b *= momentum
            b += g if share is None else xp.multiply(g, share, out=scratch)
        if nesterov:
            xp.multiply(b, momentum, out=scratch)
            scratch += g
            scratch *= lr
        else:
            xp.multiply(b, lr, out=scratch)
        p -= scratch


class ASGD(UpdateRule):
    """Averaged stochastic gradient descent: descent with a decaying rate, and the mean of the path.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
    lr : float or Tensor, default 1e-2
        The initial learning rate η₀, at least 0.
    lambd : float, default 1e-4
        Decay term λ of the rate and of the parameter.
    alpha : float, default 0.75
        Power of the decay of the rate.
    t0 : float, default 1e6
        The step after which the average starts.
    weight_decay, maximize, foreach, differentiable
        As for `SGD`.
    capturable : bool, default False
        Accepted for PyTorch's sake, without effect.

    Raises
    ------
    ArgumentError
        If an option is out of range; TypeError and ArgumentError as `Optimizer` does for `params`.

    Notes
    -----
    In step t, p ← (1 - λ ηₜ) p - ηₜ g with ηₜ₊₁ = η₀ / (1 + λ η₀ t)ᵃ, where a is `alpha`, and the
    average is ax ← ax + μₜ (p - ax) with μₜ₊₁ = 1 / max(1, t - t0) [1]_. The state of a parameter
    is ``step`` (t), ``eta`` (η), ``mu`` (μ) and ``ax``, the average, which is yours to read.

    References
    ----------
    .. [1] B. T. Polyak, A. B. Juditsky, Acceleration of stochastic approximation by averaging,
       SIAM J. Control Optim. 30(4), 1992; the schedule of L. Bottou's ``asgd``.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = cr.optim.ASGD([w], lr=0.25, lambd=0)
    >>> w.pow(2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.5000, -1.0000], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _state_names(self, options: Group, p: Array) -> Sequence[str]:
        return ("step", "eta", "mu", "ax")

    def _initial(self, name: str, p: Array, g: Array, options: Group) -> Array:
        if name == "mu":
            return np.ones(())
        return np.zeros(()) if name == "eta" else super()._initial(name, p, g, options)

    def _numbers(self, state: State, options: Group, p: Array, fresh: bool) -> tuple[Any, ...]:
        lr, lambd = option_value(options["lr"]), option_value(options["lambd"])
        t, eta, mu = advance(state["step"]), state["eta"], state["mu"]
        xp = namespace(eta)
        # Products are copies: in a trace the states themselves are written below.
        current, share = (lr if fresh else state_value(eta)) * 1.0, state_value(mu) * 1.0
        eta[...] = lr / (1 + lambd * lr * t) ** option_value(options["alpha"])
        mu[...] = 1 / xp.maximum(xp.asarray(t - option_value(options["t0"])), xp.asarray(1.0))
        if share.__class__ is float and share == 1:
            share = None  # the average is the parameter itself
        return current, 1 - lambd * current, share

    def _apply(
        self, xp: Any, p: Array, g: Array, state: State, numbers: Sequence[Any], scratch: Array
    ) -> None:
        eta, kept, mu = numbers
        xp.multiply(g, eta, out=scratch)
        p *= kept
        p -= scratch
        ax = state["ax"]
        if mu is None:
            ax[...] = p
        else:
            xp.subtract(p, ax, out=scratch)
            scratch *= mu
            ax += scratch
