"""Adam and its variants: AdamW, SparseAdam, Adamax, NAdam, RAdam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.backend import namespace
from chainrule.optim.optimizer import Group, ParamsT
from chainrule.optim.update_rule import (
    State,
    UpdateRule,
    advance,
    average,
    average_squares,
    in_dtype_of,
    option_value,
    state_value,
    weights,
)

Array = Any


class Adam(UpdateRule):
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
    foreach, capturable, fused : optional
        Accepted for PyTorch's sake, without effect: a step is always the fast one.
    differentiable : bool, default False
        True is refused: a step is never recorded.
    decoupled_weight_decay : bool, default False
        Apply the weight decay as `AdamW` does.

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
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _state_names(self, options: Group, p: Array) -> Sequence[str]:
        names = ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")
        return names if options["amsgrad"] else names[:3]

    def _numbers(self, state: State, options: Group, p: Array, fresh: bool) -> tuple[Any, ...]:
        beta1, beta2 = map(option_value, options["betas"])
        t = advance(state["step"])
        # p -= lr m̂ / (√v̂ + eps), with c, the factor in √v̂ = √v / c, moved out of the quotient.
        c = (1 - beta2**t) ** 0.5
        rate = option_value(options["lr"]) * c / (1 - beta1**t)
        return *weights(beta1), *weights(beta2), option_value(options["eps"]) * c, rate

    def _apply(
        self, xp: Any, p: Array, g: Array, state: State, numbers: Sequence[Any], scratch: Array
    ) -> None:
        old1, new1, old2, new2, eps, rate = numbers
        m, v = state["exp_avg"], state["exp_avg_sq"]
        average(xp, m, g, old1, new1, scratch)
        average_squares(xp, v, g, old2, new2, scratch)
        if "max_exp_avg_sq" in state:
            v = xp.maximum(state["max_exp_avg_sq"], v, out=state["max_exp_avg_sq"])
        xp.sqrt(v, out=scratch)
        scratch += eps
        xp.divide(m, scratch, out=scratch)
        scratch *= rate
        p -= scratch


class AdamW(Adam):
    """Adam with decoupled weight decay, which doesn't enter the gradient and its moments.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
    lr, betas, eps, amsgrad, maximize, foreach, capturable, differentiable, fused
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
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        UpdateRule.__init__(self, params, {**locals(), "decoupled_weight_decay": True})


class SparseAdam(Adam):
    """Adam for embeddings: only rows of the table that the gradient reaches are updated.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
    lr, betas, eps, maximize
        As for `Adam`.

    Raises
    ------
    ArgumentError
        If an option is out of range; TypeError and ArgumentError as `Optimizer` does for `params`.

    Notes
    -----
    Gradients are dense here, so a row is one whose gradient is not all zeros, where PyTorch takes
    the rows that were looked up. Moments of the others don't decay; the step number counts all
    steps, and `eps` is added to √v without its correction, as PyTorch does.

    Examples
    --------
    >>> import chainrule as cr
    >>> table = cr.nn.Embedding(3, 1, _weight=cr.ones(3, 1), sparse=True)
    >>> optimizer = cr.optim.SparseAdam(table.parameters(), lr=0.25)
    >>> table(cr.tensor([0, 2])).sum().backward()
    >>> optimizer.step()
    >>> table.weight.detach().T
    tensor([[0.7500, 1.0000, 0.7500]])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        UpdateRule.__init__(self, params, locals())

    def _state_names(self, options: Group, p: Array) -> Sequence[str]:
        return "step", "exp_avg", "exp_avg_sq"

    def _numbers(self, state: State, options: Group, p: Array, fresh: bool) -> tuple[Any, ...]:
        beta1, beta2 = map(option_value, options["betas"])
        t = advance(state["step"])
        rate = option_value(options["lr"]) * (1 - beta2**t) ** 0.5 / (1 - beta1**t)
        return 1 - beta1, 1 - beta2, option_value(options["eps"]), rate

    def _apply(
        self, xp: Any, p: Array, g: Array, state: State, numbers: Sequence[Any], scratch: Array
    ) -> None:
        share1, share2, eps, rate = numbers
        m, v = state["exp_avg"], state["exp_avg_sq"]
        reached = xp.any(g != 0, axis=tuple(range(1, g.ndim)), keepdims=True)
        zero = xp.zeros_like(g)
        m += xp.where(reached, share1 * (g - m), zero)
        v += xp.where(reached, share2 * (g * g - v), zero)
        p -= xp.where(reached, rate * m / (xp.sqrt(v) + eps), zero)


class Adamax(UpdateRule):
    """Adamax: Adam with the maximum of past gradients in the place of their second moment.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
    lr : float or Tensor, default 2e-3
        The learning rate, at least 0.
    betas : (float, float), default (0.9, 0.999)
        Decay rates of the first moment and of the maximum: from 0, below 1.
    eps : float, default 1e-8
        Added to the absolute value of the gradient.
    weight_decay : float, default 0
        λ of an added penalty λ/2 ‖p‖².
    maximize, foreach, capturable, differentiable
        As for `Adam`.

    Raises
    ------
    ArgumentError
        If an option is out of range; TypeError and ArgumentError as `Optimizer` does for `params`.

    Notes
    -----
    With the gradient g (negated to maximise, plus λ p), in step t: m ← β₁ m + (1 - β₁) g,
    u ← max(β₂ u, |g| + eps), and p ← p - lr / (1 - β₁ᵗ) · m / u [1]_. The state of a parameter is
    ``step`` (t), ``exp_avg`` (m) and ``exp_inf`` (u).

    References
    ----------
    .. [1] D. P. Kingma, J. Ba, Adam: A method for stochastic optimization, ICLR 2015, algorithm 2.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, -200.0], requires_grad=True)
    >>> optimizer = cr.optim.Adamax([w], lr=0.25)
    >>> w.pow(2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([   0.7500, -199.7500], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _state_names(self, options: Group, p: Array) -> Sequence[str]:
        return ("step", "exp_avg", "exp_inf")

    def _numbers(self, state: State, options: Group, p: Array, fresh: bool) -> tuple[Any, ...]:
        beta1, beta2 = map(option_value, options["betas"])
        rate = option_value(options["lr"]) / (1 - beta1 ** advance(state["step"]))
        return *weights(beta1), beta2, option_value(options["eps"]), rate

    def _apply(
        self, xp: Any, p: Array, g: Array, state: State, numbers: Sequence[Any], scratch: Array
    ) -> None:
        old, new, beta2, eps, rate = numbers
        m, u = state["exp_avg"], state["exp_inf"]
        average(xp, m, g, old, new, scratch)
        xp.abs(g, out=scratch)
        scratch += eps
        u *= beta2
        xp.maximum(u, scratch, out=u)
        xp.divide(m, u, out=scratch)
        scratch *= rate
        p -= scratch


class NAdam(UpdateRule):
    """NAdam: Adam with Nesterov momentum.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
    lr : float or Tensor, default 2e-3
        The learning rate, at least 0.
    betas : (float, float), default (0.9, 0.999)
        Decay rates of the first and the second moment: from 0, below 1.
    eps : float, default 1e-8
        Added to the denominator.
    weight_decay : float, default 0
        λ of an added penalty λ/2 ‖p‖².
    momentum_decay : float, default 4e-3
        Decay ψ of the momentum's schedule.
    decoupled_weight_decay : bool, default False
        Apply the weight decay as `AdamW` does.
    maximize, foreach, capturable, differentiable
        As for `Adam`.

    Raises
    ------
    ArgumentError
        If an option is out of range; TypeError and ArgumentError as `Optimizer` does for `params`.

    Notes
    -----
    With the moments m and v of Adam and μₜ = β₁ (1 - 0.96^(t ψ) / 2), the step is
    p ← p - lr (μₜ₊₁ m / (1 - μ₁ … μₜ₊₁) + (1 - μₜ) g / (1 - μ₁ … μₜ)) / (√v̂ + eps) [1]_. The state
    of a parameter is ``step`` (t), ``mu_product`` (μ₁ … μₜ), ``exp_avg`` (m) and ``exp_avg_sq``
    (v).

    References
    ----------
    .. [1] T. Dozat, Incorporating Nesterov momentum into Adam, ICLR 2016 workshop.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, -200.0], requires_grad=True)
    >>> optimizer = cr.optim.NAdam([w], lr=0.25)
    >>> for _ in range(2):
    ...     optimizer.zero_grad()
    ...     w.pow(2).sum().backward()
    ...     optimizer.step()
    >>> bool((w.detach().abs() < cr.tensor([0.8, 199.8])).all())
    True
    """

    _NON_NEGATIVE = ("lr", "eps", "weight_decay", "momentum_decay")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _state_names(self, options: Group, p: Array) -> Sequence[str]:
        return ("step", "mu_product", "exp_avg", "exp_avg_sq")

    def _initial(self, name: str, p: Array, g: Array, options: Group) -> Array:
        return np.ones(()) if name == "mu_product" else super()._initial(name, p, g, options)

    def _numbers(self, state: State, options: Group, p: Array, fresh: bool) -> tuple[Any, ...]:
        beta1, beta2 = map(option_value, options["betas"])
        lr, decay = option_value(options["lr"]), option_value(options["momentum_decay"])
        t = advance(state["step"])
        mu, following = (beta1 * (1 - 0.5 * 0.96 ** (n * decay)) for n in (t, t + 1))
        product = state["mu_product"]
        product *= mu
        so_far = state_value(product)
        c = (1 - beta2**t) ** 0.5
        from_gradient = lr * (1 - mu) / (1 - so_far) * c
        from_moment = lr * following / (1 - so_far * following) * c
        eps = option_value(options["eps"]) * c
        return *weights(beta1), *weights(beta2), eps, from_gradient, from_moment

    def _apply(
        self, xp: Any, p: Array, g: Array, state: State, numbers: Sequence[Any], scratch: Array
    ) -> None:
        old1, new1, old2, new2, eps, from_gradient, from_moment = numbers
        m, v = state["exp_avg"], state["exp_avg_sq"]
        average(xp, m, g, old1, new1, scratch)
        average_squares(xp, v, g, old2, new2, scratch)
        direction = m * from_moment
        xp.multiply(g, from_gradient, out=scratch)
        direction += scratch
        xp.sqrt(v, out=scratch)
        scratch += eps
        direction /= scratch
        p -= direction


class RAdam(UpdateRule):
    """RAdam: Adam that steps without the second moment while its variance is too large.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
    lr : float or Tensor, default 1e-3
        The learning rate, at least 0.
    betas : (float, float), default (0.9, 0.999)
        Decay rates of the first and the second moment: from 0, below 1.
    eps : float, default 1e-8
        Added to the denominator.
    weight_decay : float, default 0
        λ of an added penalty λ/2 ‖p‖².
    decoupled_weight_decay : bool, default False
        Apply the weight decay as `AdamW` does.
    maximize, foreach, capturable, differentiable
        As for `Adam`.

    Raises
    ------
    ArgumentError
        If an option is out of range; TypeError and ArgumentError as `Optimizer` does for `params`.

    Notes
    -----
    With Adam's moments, ρ∞ = 2 / (1 - β₂) - 1 and ρₜ = ρ∞ - 2 t β₂ᵗ / (1 - β₂ᵗ), the step is
    p ← p - lr m̂ while ρₜ ≤ 5, then p ← p - lr r m̂ / (√v̂ + eps) with
    r² = (ρₜ - 4) (ρₜ - 2) ρ∞ / ((ρ∞ - 4) (ρ∞ - 2) ρₜ) [1]_; eps is added to √v, as in PyTorch. The
    state is Adam's.

    References
    ----------
    .. [1] L. Liu et al., On the variance of the adaptive learning rate and beyond, ICLR 2020.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = cr.optim.RAdam([w], lr=0.25)
    >>> w.pow(2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.5000, -1.0000], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _state_names(self, options: Group, p: Array) -> Sequence[str]:
        return ("step", "exp_avg", "exp_avg_sq")

    def _numbers(self, state: State, options: Group, p: Array, fresh: bool) -> tuple[Any, ...]:
        beta1, beta2 = map(option_value, options["betas"])
        step = state["step"]
        t = advance(step)
        xp = namespace(step)
        at_end = 2 / (1 - beta2) - 1
        rho = at_end - 2 * t * beta2**t / (1 - beta2**t)
        rate = option_value(options["lr"]) / (1 - beta1**t)
        part = (rho - 4) * (rho - 2) * at_end / ((at_end - 4) * (at_end - 2) * rho)
        rectified = in_dtype_of(xp.sqrt(xp.asarray(part * (1 - beta2**t))) * rate, p)
        # Before a step is rectified, `part` may be negative or infinite: the choice is a `where`.
        eps, is_rectified = option_value(options["eps"]), xp.asarray(rho > 5.0)
        return *weights(beta1), *weights(beta2), eps, rate, rectified, is_rectified

    def _apply(
        self, xp: Any, p: Array, g: Array, state: State, numbers: Sequence[Any], scratch: Array
    ) -> None:
        old1, new1, old2, new2, eps, rate, rectified, is_rectified = numbers
        m, v = state["exp_avg"], state["exp_avg_sq"]
        average(xp, m, g, old1, new1, scratch)
        average_squares(xp, v, g, old2, new2, scratch)
        xp.sqrt(v, out=scratch)
        scratch += eps
        p -= m * xp.where(is_rectified, rectified / scratch, in_dtype_of(xp.asarray(rate), p))
