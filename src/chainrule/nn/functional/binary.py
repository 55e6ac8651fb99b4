"""Cross entropies of yes and no."""

from __future__ import annotations

import numpy as np

from chainrule import ops
from chainrule.arguments import RECORDERS, Operand, cast, floating
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.errors import ArgumentError, ShapeError
from chainrule.nn.functional.reduction import pair, weighted
from chainrule.ops.wrappers import real_operands

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits"]


def binary_cross_entropy(
    input: Operand, target: Operand, weight: Operand | None = None, *, reduction: str = "mean"
) -> Tensor:
    """Return how improbable `target` is, given probabilities of yes.

    Parameters
    ----------
    input : Tensor
        Probabilities x, from 0 to 1.
    target : Tensor, shape of `input`
        What they should be: usually 0 or 1.
    weight : Tensor, optional
        Multiplies each loss; its shape broadcasts to that of `input`.
    reduction : {"mean", "sum", "none"}
        What becomes of the losses.

    Returns
    -------
    Tensor, 0-d, or of the shape of `input` for "none"

    Raises
    ------
    ArgumentError
        If an element of `input` is outside of [0, 1], or `reduction` is another word.
    ShapeError
        If the shapes differ.

    Notes
    -----
    -(y log x + (1 - y) log(1 - x)) for a target y, where a logarithm is never below -100.
    Derivative: (x - y) / (x (1 - x)), whose denominator is never below 1e-12. From logits,
    `binary_cross_entropy_with_logits` is more precise.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.binary_cross_entropy(cr.tensor([0.5, 0.0]), cr.tensor([1.0, 1.0]))
    tensor(50.3466)
    """
    x, y = pair(input, target)
    _check_same(x, y, "binary_cross_entropy", "Using a target size that is different to the input")
    values = x._array
    known = values.size and is_known(values)
    if known and not (values.min() >= 0 and values.max() <= 1):
        raise ArgumentError(
            "binary_cross_entropy: all elements of input should be between 0 and 1, but they are "
            f"between {values.min()} and {values.max()}: of scores take "
            "binary_cross_entropy_with_logits"
        )
    with np.errstate(divide="ignore"):
        losses = RECORDERS["binary_cross_entropy"](x, y)
    return _scaled(losses, weight, "binary_cross_entropy", reduction)


def binary_cross_entropy_with_logits(
    input: Operand,
    target: Operand,
    weight: Operand | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Operand | None = None,
) -> Tensor:
    """Return how improbable `target` is, given scores whose sigmoid is the probability of yes.

    Parameters
    ----------
    input : Tensor
        Scores (logits) x.
    target : Tensor, shape of `input`
        What their sigmoid should be: usually 0 or 1.
    weight : Tensor, optional
        Multiplies each loss; its shape broadcasts to that of `input`.
    reduction : {"mean", "sum", "none"}
        What becomes of the losses.
    pos_weight : Tensor, optional
        Multiplies the losses of yes; its shape broadcasts to that of `input`.

    Returns
    -------
    Tensor, 0-d, or of the shape of `input` for "none"

    Raises
    ------
    ShapeError
        If the shapes differ.
    ArgumentError
        If `reduction` is another word.

    Notes
    -----
    max(x, 0) - x y + log(1 + exp(-|x|)): nothing overflows, and small losses keep their digits.
    Derivative: sigmoid(x) - y.

    Examples
    --------
    >>> import chainrule as cr
    >>> scores = cr.tensor([0.0, -1000.0])
    >>> cr.nn.functional.binary_cross_entropy_with_logits(scores, cr.tensor([1.0, 1.0]))
    tensor(500.3466)
    """
    name = "binary_cross_entropy_with_logits"
    x, y = real_operands(name, input, target)
    _check_same(x, y, name, "Target size must be the same as input size")
    if pos_weight is None:
        losses = RECORDERS["binary_cross_entropy_with_logits"](x, y)
    else:
        settings = {"beta": 1.0, "threshold": np.inf}
        yes = RECORDERS["softplus"](ops.negative(x), **settings)
        no = RECORDERS["softplus"](x, **settings)
        yes = ops.multiply(ops.multiply(yes, cast(floating(pos_weight), x.dtype)), y)
        losses = ops.add(yes, ops.multiply(no, ops.subtract(1.0, y)))
    return _scaled(losses, weight, name, reduction)


def _check_same(x: Tensor, y: Tensor, name: str, text: str) -> None:
    if x.shape != y.shape:
        raise ShapeError(f"{name}: {text}: {list(y.shape)} and {list(x.shape)}")


def _scaled(losses: Tensor, weight: Operand | None, name: str, reduction: str) -> Tensor:
    if weight is not None:
        losses = ops.multiply(losses, cast(floating(weight), losses.dtype))
    return weighted(losses, None, name, reduction)
