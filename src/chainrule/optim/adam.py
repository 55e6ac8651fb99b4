"""Adam and AdamW, with or without AMSGrad."""

from __future__ import annotations

import sys
from abc import abstractmethod
from typing import Any, final

import numpy as np

from chainrule.autograd.location import user_frame
from chainrule.autograd.tensor import Tensor, make
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

Array = Any


class _AdamBase(Optimizer):
    """Base of Adam and AdamW, which differ in the weight decay."""

    def __init__(
        self,
        params: Parameters,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
        amsgrad: bool,
        maximize: bool,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    @abstractmethod
    def _decay_weights(self, param: Tensor, options: Group) -> Array:
        """Apply decoupled weight decay, if any; return the gradient for the moments."""

    def _check(self, options: Group) -> None:
        check_non_negative(options, "lr", "eps", "weight_decay")
        for index, beta in enumerate(options["betas"]):
            if not 0 <= beta < 1:
                raise ArgumentError(
                    f"Invalid beta parameter at index {index}: {beta}, expected from 0, below 1"
                )

    def _update(self, params: list[Tensor], options: Group) -> None:
        frame = user_frame(sys._getframe())
        for param in params:
            p, g = param._array, self._decay_weights(param, options)
            state = self._init_state(param, options["amsgrad"])
            step = state["step"]._array
            step += 1
            moments = [state[name]._array for name in _MOMENTS if name in state]
            if p.dtype.kind == "c":
                _adam_step(p.real, g.real, [moment.real for moment in moments], step, options)
                _adam_step(p.imag, g.imag, [moment.imag for moment in moments], step, options)
            else:
                _adam_step(p, g, moments, step, options)
            for array in (p, *moments):
                record_write(array, f"{type(self).__name__}.step", frame)

    def _init_state(self, param: Tensor, amsgrad: bool) -> dict[str, Any]:
        """Return the state of a parameter, initialised at its first step."""
        state = self.state[param]
        if "step" not in state:
            self._made(param, "step", np.zeros(()))
        for name in _MOMENTS if amsgrad else _MOMENTS[:2]:
            if name not in state:
                array = param._array
                self._made(param, name, namespace(array).zeros_like(array))
        return state

    def _load_value(self, value: Any, param: Tensor, name: str) -> Any:
        if name == "step":  # older versions and other libraries save a number
            return make(np.array(float(value)), None)
        return super()._load_value(value, param, name)


@final
class Adam(_AdamBase):
    """Adam: steps of about `lr` for each element, independent of the scale of its gradient.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
    lr : float or Tensor, default 1e-3
        The learning rate, at least 0.
    betas : (float, float), default (0.9, 0.999)
        Decay rates of the first and the second moment (exponential moving averages of the gradient
        and of its square): from 0, below 1.
    eps : float, default 1e-8
        Added to the denominator, for stability where gradients are tiny.
    weight_decay : float, default 0
        λ of an added penalty λ/2 ‖p‖².
    amsgrad : bool, default False
        Divide by the maximum of the second moments so far, with which the method converges in cases
        where Adam does not [2]_.
    maximize : bool, default False
        Maximise the objective instead.

    Raises
    ------
    ArgumentError
        If an option is out of range; TypeError and ArgumentError as `Optimizer` does for `params`.

    Notes
    -----
    With the gradient g (negated to maximise, plus λ p), in step t [1]_:
    m ← β₁ m + (1 - β₁) g, v ← β₂ v + (1 - β₂) g², and
    p ← p - lr m̂ / (√v̂ + eps), with the bias corrections m̂ = m / (1 - β₁ᵗ) and v̂ = v / (1 - β₂ᵗ).
    A complex parameter counts as two real ones. The state of a parameter is ``step`` (t, in
    float64), ``exp_avg`` (m), ``exp_avg_sq`` (v), and with `amsgrad` ``max_exp_avg_sq``.

    References
    ----------
    .. [1] D. P. Kingma, J. Ba, Adam: A method for stochastic optimization, ICLR 2015, algorithm 1.
    .. [2] S. J. Reddi, S. Kale, S. Kumar, On the convergence of Adam and beyond, ICLR 2018.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, -200.0], requires_grad=True)
    >>> optimizer = cr.optim.Adam([w], lr=0.25)
    >>> w.pow(2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([   0.7500, -199.7500], requires_grad=True)
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize)

    def _decay_weights(self, param: Tensor, options: Group) -> Array:
        return gradient(param, options)


@final
class AdamW(_AdamBase):
    """Adam with decoupled weight decay, which doesn't enter the gradient and its moments.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
    lr, betas, eps, amsgrad, maximize
        As for `Adam`.
    weight_decay : float, default 1e-2
        Fraction of a weight that is subtracted in each step, relative to `lr`.

    Raises
    ------
    ArgumentError
        If an option is out of range; TypeError and ArgumentError as `Optimizer` does for `params`.

    Notes
    -----
    p ← (1 - lr · weight_decay) p, and then Adam's step without a penalty [1]_. The state is Adam's.

    References
    ----------
    .. [1] I. Loshchilov, F. Hutter, Decoupled weight decay regularization, ICLR 2019, algorithm 2,
       with the schedule in `lr`.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, -200.0], requires_grad=True)
    >>> optimizer = cr.optim.AdamW([w], lr=0.25, weight_decay=0.5)
    >>> w.pow(2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([   0.6250, -174.7500], requires_grad=True)
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize)

    def _decay_weights(self, param: Tensor, options: Group) -> Array:
        p, decay = param._array, float(options["weight_decay"])
        if decay:
            p *= in_dtype_of(1 - option_value(options["lr"]) * decay, p)
        return gradient(param, {**options, "weight_decay": 0})


_MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")


def _adam_step(p: Array, g: Array, moments: list[Array], step: Array, options: Group) -> None:
    """Update a real parameter and its moments, with one array of scratch memory."""
    beta1, beta2 = map(float, options["betas"])
    xp = namespace(p)
    m, v = moments[:2]
    scratch = xp.multiply(g, 1 - beta1, out=xp.empty_like(p))
    m *= beta1
    m += scratch
    xp.multiply(g, g, out=scratch)
    scratch *= 1 - beta2
    v *= beta2
    v += scratch
    if options["amsgrad"]:
        v = xp.maximum(moments[2], v, out=moments[2])

    # p -= lr m̂ / (√v̂ + eps), with c, the factor in √v̂ = √v / c, moved out of the quotient.
    t = step.item() if xp.known else step
    c = (1 - beta2**t) ** 0.5
    eps, rate = float(options["eps"]) * c, option_value(options["lr"]) * c / (1 - beta1**t)
    if not xp.known:
        eps, rate = in_dtype_of(eps, p), in_dtype_of(rate, p)
    xp.sqrt(v, out=scratch)
    scratch += eps
    xp.divide(m, scratch, out=scratch)
    scratch *= rate
    p -= scratch
