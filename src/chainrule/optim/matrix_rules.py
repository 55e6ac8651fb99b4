"""Optimisers that see a parameter as a matrix: Adafactor, Muon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.backend import namespace
from chainrule.errors import ArgumentError
from chainrule.optim.optimizer import Group, ParamsT
from chainrule.optim.update_rule import (
    State,
    UpdateRule,
    advance,
    average,
    in_dtype_of,
    option_value,
)

Array = Any


class Adafactor(UpdateRule):
    """Adafactor: second moments kept as the outer product of their means by row and by column.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
    lr : float or Tensor, default 1e-2
        Upper bound of the relative rate, which is 1 / √t later on.
    beta2_decay : float, default -0.8
        Power c of the decay rate 1 - tᶜ of the second moments, at most 0.
    eps : (float or None, float), default (None, 1e-3)
        Lower bounds of the root of the second moments, where None is the dtype's epsilon, and of
        the root mean square of the parameter, by which the rate is multiplied.
    d : float, default 1
        Threshold of clipping: upper bound of the root mean square of an update, at least 1.
    weight_decay : float, default 0
        Fraction of a weight that is subtracted in each step, relative to `lr`.
    foreach, maximize
        As for `Adam`.

    Raises
    ------
    ArgumentError
        If an option is out of range; TypeError and ArgumentError as `Optimizer` does for `params`.

    Notes
    -----
    In step t, R ← (1 - tᶜ) R + tᶜ mean_row g² and C likewise for columns, V = R C / mean R (for
    vectors and scalars V ← (1 - tᶜ) V + tᶜ g²), U = g / √V, and
    p ← p - max(eps₂, rms p) min(lr, 1/√t) U / max(1, rms U / d) [1]_. The state of a parameter is
    ``step`` (t), and ``row_var`` (R) and ``col_var`` (C), or ``variance`` (V): memory for rows plus
    columns. Complex parameters are refused.

    References
    ----------
    .. [1] N. Shazeer, M. Stern, Adafactor: Adaptive learning rates with sublinear memory cost,
       ICML 2018; with the differences that PyTorch's documentation lists.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = cr.optim.Adafactor([w], lr=0.25)
    >>> w.pow(2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.6047, -1.6047], requires_grad=True)
    """

    _NON_NEGATIVE = ("lr", "weight_decay")
    _DECOUPLED = True
    _ELEMENTWISE = False
    _ALIKE = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _check(self, options: Group) -> None:
        super()._check(options)
        first, second = options["eps"]
        if not (first is None or first >= 0):
            raise ArgumentError(f"epsilon1 should be >= 0, or None, but got eps[0]={first}")
        if not second >= 0:
            raise ArgumentError(f"epsilon2 should be >= 0, but got eps[1]={second}")
        if not options["d"] >= 1:
            raise ArgumentError(f"Clipping threshold d should be >= 1, but got {options['d']}")
        if not options["beta2_decay"] <= 0:
            raise ArgumentError(f"beta2_decay should be <= 0, but got {options['beta2_decay']}")
        _check_real(options, "Adafactor")

    def _state_names(self, options: Group, p: Array) -> Sequence[str]:
        return ("step", "row_var", "col_var") if p.ndim > 1 else ("step", "variance")

    def _initial(self, name: str, p: Array, g: Array, options: Group) -> Array:
        if name == "step":
            return super()._initial(name, p, g, options)
        xp, shape = namespace(p), p.shape
        shapes = {"row_var": (*shape[:-1], 1), "col_var": (*shape[:-2], 1, *shape[-1:])}
        return xp.zeros(shapes.get(name, shape), dtype=p.dtype)

    def _numbers(self, state: State, options: Group, p: Array, fresh: bool) -> tuple[Any, ...]:
        xp = namespace(p)
        t, lr, eps = advance(state["step"]), option_value(options["lr"]), options["eps"]
        first = float(np.finfo(p.dtype).eps if eps[0] is None else eps[0])
        rate = in_dtype_of(xp.minimum(xp.asarray(lr), xp.asarray(1 / t**0.5)), p)
        scale = xp.maximum(_rms(xp, p), xp.asarray(float(eps[1]), dtype=p.dtype))
        share = t ** option_value(options["beta2_decay"])
        return share, 1 - share, scale, rate, first, option_value(options["d"])

    def _apply(
        self, xp: Any, p: Array, g: Array, state: State, numbers: Sequence[Any], scratch: Array
    ) -> None:
        share, kept, scale, rate, eps, d = numbers
        squares = xp.multiply(g, g, out=scratch)
        if p.ndim > 1:
            rows, columns = state["row_var"], state["col_var"]
            for mean, axis in ((rows, -1), (columns, -2)):
                mean *= kept
                mean += share * xp.mean(squares, axis=axis, keepdims=True)
            total = xp.maximum(
                xp.mean(rows, axis=-2, keepdims=True), xp.asarray(eps, dtype=p.dtype)
            )
            v = rows * columns / total
        else:
            v = state["variance"]
            v *= kept
            v += share * squares
        update = g / xp.sqrt(xp.maximum(v, xp.asarray(eps * eps, dtype=p.dtype)))
        clip = xp.maximum(_rms(xp, update) / d, xp.asarray(1.0, dtype=p.dtype))
        p -= update * (scale * rate / clip)


class Muon(UpdateRule):
    """Muon: momentum, orthogonalised, for the weight matrices of hidden layers.

    Parameters
    ----------
    params : iterable of Tensors, or of dicts
        The parameters to update: see `Optimizer`.
        Matrices only: give biases, embeddings and the last layer to `AdamW`.
    lr : float or Tensor, default 1e-3
        The learning rate, at least 0.
    weight_decay : float, default 0.1
        Fraction of a weight that is subtracted in each step, relative to `lr`.
    momentum : float, default 0.95
        Decay rate of the mean of gradients.
    nesterov : bool, default True
        Orthogonalise g + momentum (b - g) in the place of the mean b.
    ns_coefficients : (float, float, float), default (3.4445, -4.775, 2.0315)
        Coefficients a, b, c of the iteration.
    eps : float, default 1e-7
        Lower bound of the norm by which the matrix is divided before the iteration.
    ns_steps : int, default 5
        Number of iterations, below 100.
    adjust_lr_fn : {None, "original", "match_rms_adamw"}
        Factor of the rate for a matrix of shape (m, n): √max(1, m/n) by default, or 0.2 √max(m, n),
        with which learning rates and decays of AdamW fit.

    Raises
    ------
    ArgumentError
        If an option is out of range, or a parameter isn't a matrix; TypeError and ArgumentError
        as `Optimizer` does for `params`.

    Notes
    -----
    b ← momentum b + (1 - momentum) g. The matrix X, divided by its Frobenius norm, is iterated as
    X ← a X + (b A + c A²) X with A = X Xᵀ, which takes singular values near to 1 [1]_, and
    p ← (1 - lr weight_decay) p - lr' X. The state of a parameter is ``momentum_buffer``. PyTorch
    iterates in bfloat16, chainrule in the dtype of the parameter, float32 at least.

    References
    ----------
    .. [1] K. Jordan et al., Muon: An optimizer for hidden layers in neural networks, 2024,
       https://kellerjordan.github.io/posts/muon/; `adjust_lr_fn`: J. Liu et al., Muon is scalable
       for LLM training, arXiv:2502.16982, 2025.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.eye(2, requires_grad=True)
    >>> optimizer = cr.optim.Muon([w], lr=0.1)
    >>> w.pow(2).sum().backward()
    >>> optimizer.step()
    >>> bool(w[0, 0] < 0.95)
    True
    """

    _NON_NEGATIVE = ("lr", "weight_decay", "momentum")
    _DECOUPLED = True
    _ELEMENTWISE = False
    _ALIKE = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        super().__init__(params, locals())

    def _check(self, options: Group) -> None:
        super()._check(options)
        if len(options["ns_coefficients"]) != 3:
            raise ArgumentError(
                f"ns_coefficients must be three numbers, but got {options['ns_coefficients']}"
            )
        if not 0 <= options["ns_steps"] < 100:
            raise ArgumentError(
                f"Invalid ns_steps: {options['ns_steps']}, expected from 0, below 100"
            )
        if options["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ArgumentError(
                f"Adjust learning rate function {options['adjust_lr_fn']} is not supported: "
                "adjust_lr_fn None, 'original' or 'match_rms_adamw'"
            )
        for param in options["params"]:
            if param.ndim != 2:
                raise ArgumentError(
                    "Muon only supports 2D parameters, but one has shape "
                    f"{list(param.shape)}: give it to another optimiser, such as AdamW"
                )
        _check_real(options, "Muon")

    def _state_names(self, options: Group, p: Array) -> Sequence[str]:
        return ("momentum_buffer",)

    def _numbers(self, state: State, options: Group, p: Array, fresh: bool) -> tuple[Any, ...]:
        rows, columns = p.shape
        factor = math.sqrt(max(1, rows / columns if columns else 1))
        if options["adjust_lr_fn"] == "match_rms_adamw":
            factor = 0.2 * math.sqrt(max(rows, columns))
        a, b, c = map(float, options["ns_coefficients"])
        momentum, rate = option_value(options["momentum"]), option_value(options["lr"]) * factor
        nesterov, steps = bool(options["nesterov"]), option_value(options["ns_steps"])
        return rate, momentum, nesterov, a, b, c, option_value(options["eps"]), steps

    def _apply(
        self, xp: Any, p: Array, g: Array, state: State, numbers: Sequence[Any], scratch: Array
    ) -> None:
        rate, momentum, nesterov, a, b, c, eps, steps = numbers
        mean = state["momentum_buffer"]
        average(xp, mean, g, momentum, 1 - momentum, scratch)
        x = mean * momentum + g * (1 - momentum) if nesterov else mean
        x = x.astype(np.promote_types(p.dtype, np.float32))
        wide = p.shape[0] <= p.shape[1]
        x = x if wide else xp.permute_dims(x, (1, 0))
        norm = xp.sqrt(xp.sum(x * x))
        x = x / xp.maximum(norm, xp.asarray(eps, dtype=x.dtype))
        for _ in range(int(steps)):
            gram = xp.matmul(x, xp.permute_dims(x, (1, 0)))
            x = a * x + xp.matmul(b * gram + c * xp.matmul(gram, gram), x)
        x = x if wide else xp.permute_dims(x, (1, 0))
        p -= rate * x.astype(p.dtype)


def _rms(xp: Any, x: Array) -> Array:
    """Return the root mean square of an array, as an array of shape ()."""
    return xp.sqrt(xp.sum(x * x) / max(1, math.prod(x.shape)))


def _check_real(options: Group, title: str) -> None:
    if any(param.is_complex() for param in options["params"]):
        raise ArgumentError(
            f"{title} does not support complex parameters: give it the real and the imaginary part"
        )
