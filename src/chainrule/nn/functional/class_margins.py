"""Losses of classes that are content with a margin between right and wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import RECORDERS, Operand, cast, floating, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.backend import first_where
from chainrule.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError
from chainrule.nn.functional.binary import binary_cross_entropy_with_logits
from chainrule.nn.functional.reduction import check_reduction, reduced
from chainrule.ops.wrappers import real_operands

__all__ = [
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
]


def multi_margin_loss(
    input: Operand,
    target: Operand,
    p: int = 1,
    margin: float = 1.0,
    weight: Operand | None = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    """Return how far other classes' scores come within the margin of the right one's.

    Parameters
    ----------
    input : Tensor, shape (n, c) or (c,)
        A score x for each of c classes.
    target : Tensor of ints, shape (n,) or ()
        The right class y.
    p : {1, 2}
        The power that is taken of what is within the margin.
    margin : number, default 1
        By how much the right score should be the largest.
    weight : Tensor, shape (c,), optional
        Multiplies the losses of each class.
    reduction : {"mean", "sum", "none"}
        What becomes of the n losses.

    Returns
    -------
    Tensor, 0-d, or of the shape of `target` for "none"

    Raises
    ------
    ArgumentError
        If `p` is another number, or `reduction` is another word.
    ShapeError, DTypeError, OutOfBoundsError
        If shapes don't fit, or `target` holds no integers or no class.

    Notes
    -----
    Σ max(0, margin - x_y + x_i)ᵖ / c over the classes i ≠ y. Where that is cut off, also at the
    margin, the derivative is 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.multi_margin_loss(cr.tensor([[0.5, 1.0, -2.0]]), cr.tensor([1]))
    tensor(0.1667)
    """
    name = "multi_margin_loss"
    if p not in (1, 2):
        raise ArgumentError(f"{name}: only p == 1 and p == 2 supported, but got {p}")
    x, classes = _rows(name, input), tensor_of(target)
    if classes.dtype.kind not in "iu":
        raise DTypeError(f"{name}: expected integers in target, but got {classes.dtype}")
    if classes.shape not in (x.shape[:-1], (x.shape[0],) if x.ndim == 2 else (1,)):
        raise ShapeError(
            f"{name}: inconsistent target size: {list(classes.shape)} for input of size: "
            f"{list(x.shape)}"
        )
    numbers, count = classes._array.reshape(x.shape[:-1]), x.shape[-1]
    _check_labels(name, numbers, count, "target out of range")
    key = ops.unsqueeze(tensor_of(numbers), -1)
    right = ops.gather(x, -1, key)
    excess = ops.relu(ops.add(ops.subtract(x, right), float(margin)))
    others = np.arange(count) != numbers[..., None]
    excess = RECORDERS["masked"](excess if p == 1 else ops.square(excess), others)
    losses = ops.reshape(ops.divide(ops.sum(excess, -1), count), classes.shape)
    if weight is not None:
        factors = cast(floating(weight), x.dtype)
        if factors.shape != (count,):
            raise ShapeError(
                f"{name}: inconsistent weight size, expected {count} but got {list(factors.shape)}"
            )
        losses = ops.multiply(losses, RECORDERS["index"](factors, key=classes._array))
    return reduced(losses, name, reduction)


def _rows(name: str, input: Operand) -> Tensor:
    x = floating(input)
    if x.ndim == 0:
        return ops.reshape(x, (1,))
    if x.ndim not in (1, 2) or x.shape[-1] == 0:
        raise ShapeError(
            f"{name}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(x.shape)}"
        )
    return x


def _check_labels(name: str, numbers: Any, count: int, text: str) -> None:
    outside = first_where((numbers < 0) | (numbers >= count), numbers)
    if outside is not None:
        raise OutOfBoundsError(
            f"{name}: {text}: {outside} is none of the {count} classes, which have the "
            f"numbers 0 to {count - 1}"
        )


def multilabel_margin_loss(input: Operand, target: Operand, *, reduction: str = "mean") -> Tensor:
    """Return how far other classes' scores come within 1 of those of several right ones.

    Parameters
    ----------
    input : Tensor, shape (n, c) or (c,)
        A score x for each of c classes.
    target : Tensor of ints, shape of `input`
        The right classes of each row, up to the first -1.
    reduction : {"mean", "sum", "none"}
        What becomes of the n losses.

    Returns
    -------
    Tensor, 0-d, or of the shape of `input` without the last dimension for "none"

    Raises
    ------
    ShapeError, DTypeError, OutOfBoundsError, ArgumentError
        If the shapes differ, `target` holds no integers or no class, or `reduction` is another
        word.

    Notes
    -----
    Σ max(0, 1 - x_j + x_i) / c over the right classes j and all other classes i. It takes memory of
    c² numbers a row.

    Examples
    --------
    >>> import chainrule as cr
    >>> scores, right = cr.tensor([0.1, 0.2, 0.4, 0.8]), cr.tensor([3, 0, -1, 1])
    >>> cr.nn.functional.multilabel_margin_loss(scores, right)
    tensor(0.8500)
    """
    name = "multilabel_margin_loss"
    x, classes = _rows(name, input), tensor_of(target)
    if classes.dtype.kind not in "iu":
        raise DTypeError(f"{name}: expected integers in target, but got {classes.dtype}")
    if classes.ndim == 0:
        classes = ops.reshape(classes, (1,))
    if classes.shape != x.shape:
        raise ShapeError(
            f"{name}: inconsistent target size: {list(classes.shape)} for input of size: "
            f"{list(x.shape)}"
        )
    listed = np.logical_and.accumulate(classes._array != -1, axis=-1)
    numbers = np.where(listed, classes._array, 0)
    _check_labels(name, numbers, x.shape[-1], "target is out of range")
    places = np.where(listed, numbers, numbers[..., :1])
    right = (places[..., None] == np.arange(x.shape[-1])).any(axis=-2) & listed[..., :1]
    scores = ops.unsqueeze(ops.gather(x, -1, tensor_of(numbers)), -1)
    excess = ops.relu(ops.add(ops.subtract(ops.unsqueeze(x, -2), scores), 1.0))
    excess = RECORDERS["masked"](excess, listed[..., None] & ~right[..., None, :])
    return reduced(ops.divide(ops.sum(excess, (-2, -1)), x.shape[-1]), name, reduction)


def multilabel_soft_margin_loss(
    input: Operand, target: Operand, weight: Operand | None = None, *, reduction: str = "mean"
) -> Tensor:
    """Return the mean over the classes of `binary_cross_entropy_with_logits`.

    Parameters
    ----------
    input : Tensor, shape (..., c)
        A score for each of c classes.
    target : Tensor, shape of `input`
        1 for the right classes, of which there may be several; else 0.
    weight : Tensor, shape (c,), optional
        Multiplies the terms of each class.
    reduction : {"mean", "sum", "none"}
        What becomes of the losses.

    Returns
    -------
    Tensor, 0-d, or of the shape of `input` without the last dimension for "none"

    Raises
    ------
    ShapeError, ArgumentError
        As for `binary_cross_entropy_with_logits`.

    Examples
    --------
    >>> import chainrule as cr
    >>> scores, right = cr.tensor([[0.0, 1000.0]]), cr.tensor([[1, 1]])
    >>> cr.nn.functional.multilabel_soft_margin_loss(scores, right)
    tensor(0.3466)
    """
    check_reduction("multilabel_soft_margin_loss", reduction)
    terms = binary_cross_entropy_with_logits(input, target, weight, reduction="none")
    return reduced(ops.mean(terms, -1), "multilabel_soft_margin_loss", reduction)


def soft_margin_loss(input: Operand, target: Operand, *, reduction: str = "mean") -> Tensor:
    """Return the mean of log(1 + exp(-target · input)), for targets 1 and -1.

    Parameters
    ----------
    input : Tensor
        Scores.
    target : Tensor
        1 or -1 for each: their shapes broadcast.
    reduction : {"mean", "sum", "none"}
        What becomes of the losses.

    Returns
    -------
    Tensor, 0-d, or of the broadcast shape for "none"

    Raises
    ------
    ArgumentError
        If `reduction` is another word.

    Notes
    -----
    Nothing overflows. Derivative for "sum": -target · sigmoid(-target · input).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.soft_margin_loss(cr.tensor([0.0, -1000.0]), cr.tensor([1, 1]))
    tensor(500.3466)
    """
    x, y = real_operands("soft_margin_loss", input, target)
    wrong = ops.negative(ops.multiply(x, y))
    losses = RECORDERS["softplus"](wrong, beta=1.0, threshold=np.inf)
    return reduced(losses, "soft_margin_loss", reduction)
