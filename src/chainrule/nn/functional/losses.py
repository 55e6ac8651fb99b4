"""Losses of regression, negative log-likelihoods, and the reduction of losses."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, cast, constant, floating
from chainrule.autograd.array_proxy import as_float
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import holds_somewhere, is_array, is_known, promoted
from chainrule.errors import ArgumentError, ArgumentTypeError, ShapeError
from chainrule.primitives import elementwise
from chainrule.primitives import losses as losses_primitives

__all__ = [
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "poisson_nll_loss",
    "gaussian_nll_loss",
    "kl_div",
]

# --- promotion, weights and reduction -------------------------------------------------------------


def pair(input: Operand, target: Operand) -> tuple[Tensor, Tensor]:
    """Return two tensors of one floating dtype."""
    x, y = floating(input), floating(target)
    if x.dtype != y.dtype:
        dtype = promoted(x.dtype, y.dtype)
        x, y = cast(x, dtype), cast(y, dtype)
    return x, y


def pair_checked(name: str, input: Operand, target: Operand) -> tuple[Tensor, Tensor]:
    """Return `pair`; warn if the shapes differ, since they broadcast."""
    x, y = pair(input, target)
    if x.shape != y.shape:
        mend = ": write target.reshape(input.shape)" if x.numel() == y.numel() else ""
        warnings.warn(
            f"{name}: using a target size ({list(y.shape)}) that is different to the input size "
            f"({list(x.shape)}). This will likely lead to incorrect results due to broadcasting: "
            f"reshape one of them, so that they have the same size{mend}.",
            UserWarning,
            stacklevel=user_stack_level(),
        )
    return x, y


def check_reduction(name: str, reduction: str) -> None:
    """Raise unless `reduction` is one of the three words."""
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(
            f"{name}: {reduction!r} is not a valid value for reduction: try 'mean', 'sum' or 'none'"
        )


P = ParamSpec("P")


def former_reduction(former: str) -> Callable[[Callable[P, Tensor]], Callable[P, Tensor]]:
    """Give a loss PyTorch's former arguments of its reduction, `size_average` and `reduce`.

    `former` are the names of the arguments that PyTorch takes by position and the loss doesn't.
    """
    names = former.split()

    def decorated(loss: Callable[P, Tensor]) -> Callable[P, Tensor]:
        positional = loss.__code__.co_argcount

        def reduced(*args: P.args, **kwargs: P.kwargs) -> Tensor:
            given: tuple[Any, ...] = args
            if len(given) > positional:
                kwargs.update(zip(names, given[positional:], strict=False))
                given = (*given[:positional], *given[positional + len(names) :])
            if "size_average" in kwargs or "reduce" in kwargs:
                mean, reduce = kwargs.pop("size_average", None), kwargs.pop("reduce", None)
                if mean is not None or reduce is not None:
                    kwargs["reduction"] = reduction_of(mean, reduce)
            return loss(*given, **kwargs)

        # Errors name the outermost function of the library: see `location.called_name`.
        reduced.__code__ = reduced.__code__.replace(co_qualname=loss.__name__)
        return functools.update_wrapper(reduced, loss)

    return decorated


def reduction_of(size_average: Any, reduce: Any) -> str:
    """Return the reduction that PyTorch's former arguments ask for: None is True."""
    if isinstance(size_average, str):
        raise ArgumentTypeError(
            f"size_average is a bool: say reduction={size_average!r}, by its name"
        )
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def reduce_losses(losses: Tensor, name: str, reduction: str) -> Tensor:
    """Return the mean or the sum of the losses, or the losses."""
    check_reduction(name, reduction)
    if reduction == "mean":
        return ops.mean(losses)
    return ops.sum(losses) if reduction == "sum" else losses


def reduce_weighted(
    losses: Tensor, weight: Operand | None, name: str, reduction: str, by_weights: bool = True
) -> Tensor:
    """Return weighted losses, reduced; a mean `by_weights` is divided by the sum of the weights."""
    if weight is None:
        return reduce_losses(losses, name, reduction)
    factors = cast(floating(weight), losses.dtype)
    if factors.shape != losses.shape:
        raise ShapeError(
            f"{name}: Weights and input must have the same size, but got {list(factors.shape)} and "
            f"{list(losses.shape)}"
        )
    check_reduction(name, reduction)
    losses = ops.multiply(losses, factors)
    if reduction == "mean" and by_weights:
        return ops.divide(ops.sum(losses), ops.sum(factors))
    return reduce_losses(losses, name, reduction)


def mean_from_sum(total: Tensor, count: Any) -> Tensor:
    """Return a sum divided by a count; nan for a count of 0, without NumPy's warning."""
    if is_array(count):  # not known yet
        return ops.divide(total, make(count.astype(total.dtype), None))
    return ops.divide(total, count) if count else ops.multiply(total, math.nan)


# --- losses of regression -------------------------------------------------------------------------


@former_reduction("size_average reduce reduction weight")
def mse_loss(
    input: Operand, target: Operand, *, reduction: str = "mean", weight: Operand | None = None
) -> Tensor:
    """Return the mean squared error.

    Parameters
    ----------
    input, target : Tensor, of one shape
        Predictions and targets.
    reduction : {"mean", "sum", "none"}
        The reduction of the squared differences.
    weight : Tensor, of that shape, optional
        Weights of the squared differences; their mean is the weighted mean.

    Returns
    -------
    Tensor, 0-d, or of the shape of `input` for "none"

    Raises
    ------
    ArgumentError
        If `reduction` is another word.
    ShapeError
        If `weight` has another shape.

    Warns
    -----
    UserWarning
        If the shapes differ: they then broadcast, which is rarely intended.

    Notes
    -----
    Derivative for "mean": 2 (input - target) / n, where n is the number of elements; for `target`
    its negative.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.mse_loss(cr.tensor([1.0, 2.0]), cr.tensor([1.0, 4.0]))
    tensor(2.)
    """
    x, y = pair_checked("mse_loss", input, target)
    return reduce_weighted(ops.square(ops.subtract(x, y)), weight, "mse_loss", reduction)


@former_reduction("size_average reduce reduction weight")
def l1_loss(
    input: Operand, target: Operand, *, reduction: str = "mean", weight: Operand | None = None
) -> Tensor:
    """Return the mean absolute error; arguments, errors and warnings are those of `mse_loss`.

    Notes
    -----
    Derivative for "mean": sign(input - target) / n, which is 0 where they are equal.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.l1_loss(cr.tensor([1.0, 2.0]), cr.tensor([1.0, 4.0]))
    tensor(1.)
    """
    x, y = pair_checked("l1_loss", input, target)
    return reduce_weighted(ops.abs(ops.subtract(x, y)), weight, "l1_loss", reduction)


@former_reduction("size_average reduce reduction beta")
def smooth_l1_loss(
    input: Operand, target: Operand, *, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """Return the mean of d²/(2 beta) where |d| < beta, else |d| - beta/2, with d the difference.

    Parameters
    ----------
    input, target, reduction
        As for `mse_loss`, with its errors and its warning.
    beta : number, default 1
        The |d| from which the loss is linear. 0 gives `l1_loss`.

    Returns
    -------
    Tensor, 0-d, or of the shape of `input` for "none"

    Raises
    ------
    ArgumentError
        If `beta` is negative.

    Notes
    -----
    Derivative for "sum": d / beta, limited to the range from -1 to 1 [1]_.

    References
    ----------
    .. [1] R. Girshick, Fast R-CNN, ICCV 2015.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.smooth_l1_loss(cr.tensor([1.0, 2.0]), cr.tensor([1.0, 4.0]))
    tensor(0.7500)
    """
    if beta < 0:
        raise ArgumentError(
            f"smooth_l1_loss does not support negative values for beta, but got {beta}"
        )
    x, y = pair_checked("smooth_l1_loss", input, target)
    difference = ops.subtract(x, y)
    if beta == 0:
        return reduce_losses(ops.abs(difference), "smooth_l1_loss", reduction)
    losses = losses_primitives.huber.apply(difference, delta=as_float(beta))
    return reduce_losses(
        losses if beta == 1 else ops.divide(losses, beta), "smooth_l1_loss", reduction
    )


def huber_loss(
    input: Operand,
    target: Operand,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Operand | None = None,
) -> Tensor:
    """Return the mean of d²/2 where |d| < delta, else delta (|d| - delta/2).

    Parameters
    ----------
    input, target, reduction
        As for `mse_loss`, with its errors and its warning; d is their difference.
    delta : number, default 1
        The |d| from which the loss is linear.
    weight : Tensor, of the shape of `input`, optional
        Weights of the losses; a mean is still divided by their number.

    Returns
    -------
    Tensor, 0-d, or of the shape of `input` for "none"

    Raises
    ------
    ArgumentError
        If `delta` is not positive.

    Notes
    -----
    Derivative for "sum": d, limited to the range from -delta to delta [1]_.

    References
    ----------
    .. [1] P. J. Huber, Annals of Mathematical Statistics 35(1), 1964.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.huber_loss(cr.tensor([1.0, 2.0]), cr.tensor([1.0, 4.0]), delta=0.5)
    tensor(0.4375)
    """
    if delta <= 0:
        raise ArgumentError(
            f"huber_loss does not support non-positive values for delta, but got {delta}"
        )
    x, y = pair_checked("huber_loss", input, target)
    losses = losses_primitives.huber.apply(ops.subtract(x, y), delta=as_float(delta))
    return reduce_weighted(losses, weight, "huber_loss", reduction, by_weights=False)


@former_reduction("size_average eps reduce reduction")
def poisson_nll_loss(
    input: Operand,
    target: Operand,
    log_input: bool = True,
    full: bool = False,
    *,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of the counts in `target` under Poisson distributions.

    Parameters
    ----------
    input : Tensor
        The expected counts, or their logarithms.
    target : Tensor
        The counts. The shapes broadcast.
    log_input : bool, default True
        Whether `input` holds logarithms.
    full : bool, default False
        Add Stirling's approximation of log target! where `target` is above 1.
    eps : number, default 1e-8
        Added to expected counts before their logarithm is taken.
    reduction : {"mean", "sum", "none"}
        The reduction of the losses.

    Returns
    -------
    Tensor, 0-d, or of the broadcast shape for "none"

    Raises
    ------
    ArgumentError
        If `reduction` is another word.

    Notes
    -----
    exp(input) - target · input, or input - target · log(input + eps). Derivative for `input`:
    exp(input) - target, or 1 - target / (input + eps).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.poisson_nll_loss(cr.tensor([0.0, 1.0]), cr.tensor([1.0, 2.0]))
    tensor(0.8591)
    """
    x, y = pair(input, target)
    if log_input:
        losses = ops.subtract(ops.exp(x), ops.multiply(y, x))
    else:
        losses = ops.subtract(x, ops.multiply(y, ops.log(ops.add(x, eps))))
    if full:
        many = elementwise.greater.apply(y.detach(), 1.0)
        count = ops.where(many, y, 1.0)
        spread = ops.multiply(0.5, ops.log(ops.multiply(2 * math.pi, count)))
        stirling = ops.add(ops.subtract(ops.multiply(count, ops.log(count)), count), spread)
        losses = ops.add(losses, elementwise.masked.apply(stirling, many))
    return reduce_losses(losses, "poisson_nll_loss", reduction)


def gaussian_nll_loss(
    input: Operand,
    target: Operand,
    var: Operand,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of `target` under normal distributions.

    Parameters
    ----------
    input, target : Tensor
        Means, and observations.
    var : Tensor or number
        Variances: one number; or of the shape of `input`, of it without the last dimension, or
        with one dimension of length 1 instead.
    full : bool, default False
        Add log(2π) / 2.
    eps : number, default 1e-6
        Variances below it are replaced by it; the gradient is as if they were not.
    reduction : {"mean", "sum", "none"}
        The reduction of the losses.

    Returns
    -------
    Tensor, 0-d, or of the shape of `input` for "none"

    Raises
    ------
    ArgumentError
        If a variance is negative, or `reduction` is another word.
    ShapeError
        If `var` has another shape.

    Notes
    -----
    (log var + (input - target)² / var) / 2. Derivative for `input`: (input - target) / var [1]_.

    References
    ----------
    .. [1] D. A. Nix, A. S. Weigend, Estimating the mean and variance of the target probability
       distribution, ICNN 1994.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.gaussian_nll_loss(cr.tensor([1.0, 3.0]), cr.tensor([1.0, 1.0]), 2.0)
    tensor(0.8466)
    """
    x, y = pair(input, target)
    spread = _variances(x, var)
    small = elementwise.less.apply(spread.detach(), eps)
    if not is_known(small._array) or bool(ops.any(small)):
        lifted = ops.subtract(ops.clamp(spread.detach(), min=eps), spread.detach())
        spread = ops.add(spread, lifted)
    square = ops.square(ops.subtract(x, y))
    losses = ops.multiply(0.5, ops.add(ops.log(spread), ops.divide(square, spread)))
    if full:
        losses = ops.add(losses, 0.5 * math.log(2 * math.pi))
    return reduce_losses(losses, "gaussian_nll_loss", reduction)


def _variances(x: Tensor, var: Operand) -> Tensor:
    if isinstance(var, int | float | np.generic):
        spread = cast(floating(constant(np.asarray(var), x)), x.dtype)
    else:
        spread = floating(var)
    if holds_somewhere(spread._array < 0):
        raise ArgumentError("gaussian_nll_loss: var has negative entry/entries")
    if spread.ndim == 0 or spread.shape == x.shape:
        return spread
    if spread.shape == x.shape[:-1]:
        return ops.unsqueeze(spread, -1)
    differing = [n for m, n in zip(x.shape, spread.shape, strict=False) if m != n]
    if spread.ndim == x.ndim and differing == [1]:
        return spread
    raise ShapeError(
        f"gaussian_nll_loss: var is of incorrect size: {list(spread.shape)} for an input of size "
        f"{list(x.shape)}. Give one number, one variance for each element, or one for each row"
    )


@former_reduction("size_average reduce reduction log_target")
def kl_div(
    input: Operand, target: Operand, *, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """Return the Kullback-Leibler divergence of target distributions from predicted ones.

    Parameters
    ----------
    input : Tensor
        Logarithms of the predicted probabilities.
    target : Tensor
        The target probabilities p. The shapes broadcast.
    reduction : {"mean", "batchmean", "sum", "none"}
        The reduction of the terms. "batchmean" divides their sum by the length of dimension 0, and
        so is the divergence itself; "mean" divides by the number of terms.
    log_target : bool, default False
        Whether `target` holds logarithms too.

    Returns
    -------
    Tensor, 0-d, or of the broadcast shape for "none"

    Raises
    ------
    ArgumentError
        If `reduction` is another word.

    Notes
    -----
    p (log p - input), and 0 where p = 0. Derivative for `input`: -p; for `target`:
    log p + 1 - input, and -input where p = 0 [1]_.

    References
    ----------
    .. [1] S. Kullback, R. A. Leibler, Annals of Mathematical Statistics 22(1), 1951.

    Examples
    --------
    >>> import chainrule as cr
    >>> predicted, p = cr.tensor([0.5, 0.5]).log(), cr.tensor([0.0, 1.0])
    >>> cr.nn.functional.kl_div(predicted, p, reduction="sum")
    tensor(0.6931)
    """
    x, y = pair(input, target)
    if log_target:
        losses = ops.multiply(ops.exp(y), ops.subtract(y, x))
    else:
        zero = elementwise.astype.apply(elementwise.equal.apply(y.detach(), 0.0), dtype=y.dtype)
        own = ops.multiply(y, ops.log(ops.add(y, zero)))  # log 1 where y is 0
        losses = ops.subtract(own, ops.multiply(y, x))
    if reduction == "batchmean":
        return mean_from_sum(ops.sum(losses), x.shape[0] if x.ndim else 1)
    return reduce_losses(losses, "kl_div", reduction)
