"""Gradient descent, with or without momentum."""

from __future__ import annotations

from typing import Any, final

from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import record_write
from chainrule.backend import namespace
from chainrule.errors import ArgumentError
from chainrule.optim.optimizer import (
    Group,
    Optimizer,
    Parameters,
    check_at_least_0,
    gradient,
    in_precision,
    number,
)


@final
class SGD(Optimizer):
    """Gradient descent: p ← p - lr g, with or without momentum.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        What to update: see `Optimizer`.
    lr : float or Tensor, default 1e-3
        The learning rate, at least 0.
    momentum : float, default 0
        How much of the direction is kept from step to step.
    dampening : float, default 0
        How much less than the whole gradient then enters the direction.
    weight_decay : float, default 0
        λ of an added penalty λ/2 ‖p‖².
    nesterov : bool, default False
        Look ahead along the new direction; it needs a momentum and no dampening.
    maximize : bool, default False
        Ascend instead.

    Raises
    ------
    ArgumentError
        If an option is out of range; TypeError and ArgumentError as `Optimizer` does for `params`.

    Notes
    -----
    With the gradient g (its sign turned to maximise, λ p added), the direction is g itself in the
    first step, then b ← momentum · b + (1 - dampening) · g, and the step p ← p - lr · b, or with
    `nesterov` p ← p - lr · (g + momentum · b) [1]_. The state of a parameter is its
    ``momentum_buffer`` b, of its shape, if there is a momentum.

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
        check_at_least_0(options, "lr", "momentum", "weight_decay")
        if options["nesterov"] and (options["momentum"] == 0 or options["dampening"] != 0):
            raise ArgumentError(
                "Nesterov momentum requires a momentum and zero dampening: got momentum "
                f"{options['momentum']} and dampening {options['dampening']}"
            )

    def _update(self, params: list[Tensor], options: Group) -> None:
        lr, momentum = number(options["lr"]), float(options["momentum"])
        for param in params:
            p, g = param._array, gradient(param, options)
            if momentum:
                b = self._direction(param, g, momentum, 1 - float(options["dampening"]))
                g = g + momentum * b if options["nesterov"] else b
            p -= in_precision(lr, p) * g
            record_write(p, "SGD.step")

    def _direction(self, param: Tensor, g: Any, momentum: float, share: float) -> Any:
        """Return the parameter's momentum buffer, with `share` of the gradient added."""
        state = self.state[param]
        buffer = state.get("momentum_buffer")
        if buffer is None:
            buffer = state["momentum_buffer"] = make(namespace(param._array).array(g), None)
            return buffer._array
        b = buffer._array
        b *= momentum
        b += g if share == 1 else share * g
        record_write(b, "SGD.step")
        return b
