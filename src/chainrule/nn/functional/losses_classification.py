"""Losses of predicted classes: cross entropies of one among many."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import RECORDERS, Operand, cast, floating, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.backend import first_where, is_known
from chainrule.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError
from chainrule.nn.functional.reduction import check_reduction, reduced, shared_out
from chainrule.ops import log_softmax

Array = Any

__all__ = [
    "cross_entropy",
    "nll_loss",
]


def cross_entropy(
    input: Operand,
    target: Operand,
    weight: Operand | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return how improbable the classes in `target` are, given unnormalised scores.

    Parameters
    ----------
    input : Tensor, shape (n, c), or (c,), or (n, c, ...)
        A score (a logit) for each of c classes.
    target : Tensor of ints, shape (n,), or (), or (n, ...)
        The right class, from 0 to c - 1. Or floats of the shape of `input`: the probability that
        each class should have.
    weight : Tensor, shape (c,), optional
        Multiplies the losses of each class. A mean over classes is then the weighted one.
    ignore_index : int, default -100
        What `target` holds where there is nothing to learn: it counts in no sum and no mean.
    reduction : {"mean", "sum", "none"}
        What becomes of the n losses.
    label_smoothing : number, default 0
        This share of the probability is spread evenly over all classes.

    Returns
    -------
    Tensor, 0-d, or of the shape of `input` without the classes for "none"
        In nats: -log of the softmax of `input` at the right class. nan is the mean of none.

    Raises
    ------
    ShapeError, DTypeError, OutOfBoundsError, ArgumentError
        If shapes don't fit, `target` holds no integers or no class, `reduction` is another word, or
        `label_smoothing` is outside of [0, 1].

    Notes
    -----
    The same as `nll_loss` of `log_softmax`, which cannot overflow. Derivative for one row:
    softmax(input) minus 1 at the right class.

    Examples
    --------
    >>> import chainrule as cr
    >>> scores = cr.tensor([[2.0, 0.0], [0.0, 0.0]])
    >>> cr.nn.functional.cross_entropy(scores, cr.tensor([0, 1]), reduction="none")
    tensor([0.1269, 0.6931])
    """
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(
            f"cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}"
        )
    scores, classes = floating(input), tensor_of(target)
    if scores.shape == classes.shape and classes.dtype.kind == "f":
        settings = (ignore_index, reduction, float(label_smoothing))
        return _of_probabilities(scores, classes, weight, *settings)
    dim = _class_dim(scores, classes, "cross_entropy")
    if weight is None and label_smoothing == 0 and _all_count(classes, scores, dim, ignore_index):
        losses = RECORDERS["class_losses"](scores, classes, axis=dim)
        return reduced(losses, "cross_entropy", reduction)
    rows = _Rows("cross_entropy", scores.shape[dim], dim, classes, weight, ignore_index)
    logs = log_softmax(scores, dim)
    if label_smoothing == 0:
        return rows.reduced(rows.losses(logs), reduction)
    own = rows.reduced(rows.losses(logs), reduction)
    even = rows.reduced(rows.spread(logs), reduction)
    share = label_smoothing / max(scores.shape[dim], 1)
    return ops.add(ops.multiply(own, 1 - label_smoothing), ops.multiply(even, share))


def nll_loss(
    input: Operand,
    target: Operand,
    weight: Operand | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative of what `input` holds at the classes in `target`.

    Parameters
    ----------
    input : Tensor, shape (n, c), or (c,), or (n, c, ...)
        Log-probabilities, as `log_softmax` gives them.
    target : Tensor of ints, shape (n,), or (), or (n, ...)
        The right class, from 0 to c - 1.
    weight, ignore_index, reduction
        As for `cross_entropy`.

    Returns
    -------
    Tensor, 0-d, or of the shape of `target` for "none"

    Raises
    ------
    ShapeError, DTypeError, OutOfBoundsError, ArgumentError
        As for `cross_entropy`.

    Notes
    -----
    Derivative for one row: -1 at the right class, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> log_probabilities = cr.tensor([[0.25, 0.75], [0.5, 0.5]]).log()
    >>> cr.nn.functional.nll_loss(log_probabilities, cr.tensor([1, 0]))
    tensor(0.4904)
    """
    x, classes = floating(input), tensor_of(target)
    dim = _class_dim(x, classes, "nll_loss")
    if weight is None and x.ndim == 2 and _all_count(classes, x, dim, ignore_index):
        right = (np.arange(x.shape[0]), classes._array)
        losses = RECORDERS["negative"](RECORDERS["index"](x, key=right))
        return reduced(losses, "nll_loss", reduction)
    rows = _Rows("nll_loss", x.shape[dim], dim, classes, weight, ignore_index)
    return rows.reduced(rows.losses(x), reduction)


def _class_dim(x: Tensor, classes: Tensor, name: str) -> int:
    """Return the dimension of the classes, after checking that `classes` has all the others."""
    if x.ndim == 0:
        raise ShapeError(f"{name}: input has no dimension of classes: its shape is []")
    if classes.dtype.kind not in "iu":
        raise DTypeError(
            f"{name}: expected integers in target, the number of the right class in each row, but "
            f"got {classes.dtype}: convert it with .long()"
        )
    dim = min(x.ndim - 1, 1)
    expected = x.shape[:dim] + x.shape[dim + 1 :]
    if classes.shape != expected:
        raise ShapeError(
            f"{name}: expected input batch_size ({x.shape[0]}) to match target: input has shape "
            f"{list(x.shape)}, so target must have {list(expected)}, but has {list(classes.shape)}"
        )
    return dim


def _class_weights(name: str, weight: Operand | None, count: int, dtype: Any) -> Tensor | None:
    if weight is None:
        return None
    factors = cast(floating(weight), dtype)
    if factors.shape != (count,):
        raise ShapeError(
            f"{name}: weight tensor should be defined either for all {count} classes or no classes "
            f"but got weight tensor of shape: {list(factors.shape)}"
        )
    return factors


class _Rows:
    """The right class of each row, what it weighs, and which rows are ignored."""

    def __init__(
        self,
        name: str,
        count: int,
        dim: int,
        classes: Tensor,
        weight: Operand | None,
        ignore_index: int,
    ) -> None:
        self.name, self.dim, self.count = name, dim, count
        numbers = classes._array
        ignored = numbers == ignore_index
        self.kept: Any = None  # where the rows are that count, if not everywhere
        if not is_known(numbers) or ignored.any():
            self.kept = ~ignored
            numbers = numbers * self.kept
        _check_classes(numbers, count if self.kept is None else max(count, 1), name)
        self.classes = tensor_of(numbers)
        self.weight = weight
        self.factors: Tensor | None = None

    def _weights(self, x: Tensor) -> Tensor | None:
        weights = _class_weights(self.name, self.weight, self.count, x.dtype)
        if weights is not None:
            self.factors = self._masked(RECORDERS["index"](weights, key=self.classes._array))
        return weights

    def _masked(self, x: Tensor) -> Tensor:
        return x if self.kept is None else RECORDERS["masked"](x, self.kept)

    def losses(self, x: Tensor) -> Tensor:
        """Return what `x` holds at the right classes: negative, and weighted."""
        self._weights(x)
        picked = ops.squeeze(
            ops.gather(x, self.dim, ops.unsqueeze(self.classes, self.dim)), self.dim
        )
        picked = ops.negative(self._masked(picked))
        return picked if self.factors is None else ops.multiply(picked, self.factors)

    def spread(self, x: Tensor) -> Tensor:
        """Return the negative sum over all classes, weighted by class."""
        weights = self._weights(x)
        if weights is not None:
            shape = (1,) * self.dim + (self.count,) + (1,) * (x.ndim - self.dim - 1)
            x = ops.multiply(x, RECORDERS["reshape"](weights, shape=shape))
        return self._masked(ops.negative(ops.sum(x, self.dim)))

    def reduced(self, losses: Tensor, reduction: str) -> Tensor:
        """Return the losses' mean over what counts, their sum, or them."""
        if reduction != "mean" or (self.kept is None and self.factors is None):
            return reduced(losses, self.name, reduction)
        total = ops.sum(losses)
        if self.factors is None:
            return shared_out(total, np.count_nonzero(self.kept))
        divisor = ops.sum(self.factors)
        if is_known(divisor._array) and divisor.item() == 0:
            return shared_out(total, 0)
        return ops.divide(total, divisor)


def _all_count(classes: Tensor, scores: Tensor, dim: int, ignore_index: int) -> bool:
    """Say whether every class is a right number, and none is `ignore_index`: in one pass."""
    numbers = classes._array
    if ignore_index >= 0 or numbers.__class__ is not np.ndarray:
        return False
    if numbers.size == 0 or numbers.dtype != np.int64:
        return False
    top = np.maximum.reduce(numbers.view(np.uint64), axis=None)  # a negative one were the largest
    return bool(top < scores.shape[dim])


def _check_classes(classes: Array, count: int, name: str) -> None:
    """Raise if a class is not in 0 … count - 1: a negative one would count from the end."""
    outside = first_where((classes < 0) | (classes >= count), classes)
    if outside is not None:
        raise OutOfBoundsError(
            f"{name}: Target {outside} is out of bounds: the {count} classes have the numbers "
            f"0 to {count - 1}"
        )


def _of_probabilities(
    scores: Tensor,
    probabilities: Tensor,
    weight: Operand | None,
    ignore_index: int,
    reduction: str,
    smoothing: float,
) -> Tensor:
    if ignore_index >= 0:
        raise ArgumentError(
            "cross_entropy: ignore_index is not supported for floating point target: set the "
            "probabilities of the row to 0 instead"
        )
    check_reduction("cross_entropy", reduction)
    dim = min(scores.ndim - 1, 1)
    count = scores.shape[dim]
    probabilities = cast(probabilities, scores.dtype)
    if smoothing:
        even = smoothing / max(count, 1)
        probabilities = ops.add(ops.multiply(probabilities, 1 - smoothing), even)
    terms = ops.multiply(log_softmax(scores, dim), probabilities)
    weights = _class_weights("cross_entropy", weight, count, scores.dtype)
    if weights is not None:
        shape = (1,) * dim + (count,) + (1,) * (scores.ndim - dim - 1)
        terms = ops.multiply(terms, RECORDERS["reshape"](weights, shape=shape))
    if reduction == "none":
        return ops.negative(ops.sum(terms, dim))
    total = ops.negative(ops.sum(terms))
    return total if reduction == "sum" else shared_out(total, scores.numel() // max(count, 1))
