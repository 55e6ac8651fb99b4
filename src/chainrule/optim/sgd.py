"""Stochastic gradient descent, with or without momentum."""

from __future__ import annotations

import sys
from typing import Any, final

from chainrule.autograd.location import user_frame
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.versions import record_write
from chainrule.backend import namespace
from chainrule.errors import ArgumentError
from chainrule.optim.optimizer import (
    Group,
    Optimizer,
    Parameters,
    check_non_negative,
    gradient,
    in_dtype_of,
    option_value,
)


@final
class SGD(Optimizer):
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

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check(self, options: Group) -> None:
        check_non_negative(options, "lr", "momentum", "weight_decay")
        if options["nesterov"] and (options["momentum"] == 0 or options["dampening"] != 0):
            raise ArgumentError(
                "Nesterov momentum requires a momentum and zero dampening: got momentum "
                f"{options['momentum']} and dampening {options['dampening']}"
            )

    def _update(self, params: list[Tensor], options: Group) -> None:
        frame = user_frame(sys._getframe())
        lr, momentum = option_value(options["lr"]), float(options["momentum"])
        for param in params:
            p, g = param._array, gradient(param, options)
            if momentum:
                b = self._momentum_buffer(param, g, momentum, 1 - float(options["dampening"]))
                record_write(b, "SGD.step", frame)
                g = g + momentum * b if options["nesterov"] else b
            p -= in_dtype_of(lr, p) * g
            record_write(p, "SGD.step", frame)

    def _momentum_buffer(self, param: Tensor, g: Any, momentum: float, share: float) -> Any:
        """Return the updated momentum buffer, with `share` times the gradient added."""
        state = self.state[param]
        buffer = state.get("momentum_buffer")
        if buffer is None:
            return self._made(param, "momentum_buffer", namespace(param._array).array(g))
        b = buffer._array
        b *= momentum
        b += g if share == 1 else share * g
        return b
