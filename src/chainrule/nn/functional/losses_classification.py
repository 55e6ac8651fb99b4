"""Losses of classification: cross entropies and binary cross entropies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, cast, floating, tensor_of, whole_number
from chainrule.autograd.tensor import Tensor
from chainrule.backend import (
    first_where,
    is_known,
    namespace,
)
from chainrule.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError
from chainrule.interrupts import errstate
from chainrule.nn.functional.losses import (
    check_reduction,
    former_reduction,
    mean_from_sum,
    pair,
    reduce_losses,
    reduce_weighted,
)
from chainrule.ops import log_softmax
from chainrule.ops.matmul import linear
from chainrule.ops.wrappers import real_operands
from chainrule.primitives import activations, elementwise, indexing, shaping
from chainrule.primitives import losses as losses_primitives

__all__ = [
    "cross_entropy",
    "linear_cross_entropy",
    "nll_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
]

Array = Any


@former_reduction("size_average ignore_index reduce reduction label_smoothing")
def cross_entropy(
    input: Operand,
    target: Operand,
    weight: Operand | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy of the classes in `target` for unnormalised scores.

    Parameters
    ----------
    input : Tensor, shape (n, c), or (c,), or (n, c, ...)
        A score (a logit) for each of c classes.
    target : Tensor of ints, shape (n,), or (), or (n, ...)
        The right class, from 0 to c - 1. Or floats of the shape of `input`: the target probability
        of each class.
    weight : Tensor, shape (c,), optional
        Weights of the losses by class. The mean is then the weighted mean.
    ignore_index : int, default -100
        Rows with this target are ignored, in sums and means.
    reduction : {"mean", "sum", "none"}
        The reduction of the n losses.
    label_smoothing : number, default 0
        Fraction of the target probability that is distributed evenly over all classes.

    Returns
    -------
    Tensor, 0-d, or of the shape of `input` without the classes for "none"
        In nats: -log of the softmax of `input` at the right class. The mean of no losses is nan.

    Raises
    ------
    ShapeError, DTypeError, OutOfBoundsError, ArgumentError
        If shapes don't fit, `target` is not of integers or out of range, `reduction` is another
        word, or `label_smoothing` is outside of [0, 1].

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
        return _cross_entropy_of_probabilities(scores, classes, weight, *settings)
    dim = _class_dim(scores, classes, "cross_entropy")
    if weight is None and label_smoothing == 0 and _all_valid(classes, scores, dim, ignore_index):
        losses = losses_primitives.class_losses.apply(scores, classes, axis=dim)
        return reduce_losses(losses, "cross_entropy", reduction)
    rows = _ClassTargets("cross_entropy", scores.shape[dim], dim, classes, weight, ignore_index)
    logs = log_softmax(scores, dim)
    if label_smoothing == 0:
        return rows.reduce(rows.losses(logs), reduction)
    own = rows.reduce(rows.losses(logs), reduction)
    even = rows.reduce(rows.smoothed_losses(logs), reduction)
    share = label_smoothing / max(scores.shape[dim], 1)
    return ops.add(ops.multiply(own, 1 - label_smoothing), ops.multiply(even, share))


def linear_cross_entropy(
    input: Operand,
    linear_weight: Operand,
    target: Operand,
    *,
    linear_bias: Operand | None = None,
    weight: Operand | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """Return the cross entropy of scores that are a linear function of `input`.

    Parameters
    ----------
    input : Tensor, shape (n, i) or (i,)
        Features.
    linear_weight : Tensor, shape (c, ..., i)
        Weights of the c scores, for several targets of each row where there are more dimensions.
    target : Tensor
        As for `cross_entropy` of scores of the shape (n, c, ...).
    linear_bias : Tensor, shape (c, ...), optional
        Is added to the scores.
    weight, reduction, label_smoothing
        As for `cross_entropy`.
    ignore_index : int, optional
        As for `cross_entropy`; -100 if left out.
    options
        PyTorch's choice of the parts to compute at a time; accepted, without effect.

    Returns
    -------
    Tensor
        As of `cross_entropy`.

    Examples
    --------
    >>> import chainrule as cr
    >>> x, w = cr.tensor([[1.0, 2.0]]), cr.tensor([[2.0, 0.0], [0.0, 1.0]])
    >>> cr.nn.functional.linear_cross_entropy(x, w, cr.tensor([0]))
    tensor(0.6931)
    """
    x, w = tensor_of(input), tensor_of(linear_weight)
    if w.ndim < 2 or x.ndim not in ((1, 2) if w.ndim == 2 else (2,)):
        raise ShapeError(
            "linear_cross_entropy: expected input (n, i), and linear_weight (c, ..., i) with at "
            f"least 2 dimensions, but got {list(x.shape)} and {list(w.shape)}"
        )
    bias = None if linear_bias is None else ops.reshape(linear_bias, (-1,))
    scores = linear(x, ops.reshape(w, (-1, w.shape[-1])), bias)
    return cross_entropy(
        ops.reshape(scores, (*x.shape[:-1], *w.shape[:-1])),
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


@former_reduction("size_average ignore_index reduce reduction")
def nll_loss(
    input: Operand,
    target: Operand,
    weight: Operand | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood: -`input` at the classes in `target`.

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
    if weight is None and x.ndim == 2 and _all_valid(classes, x, dim, ignore_index):
        right = (np.arange(x.shape[0]), classes._array)
        losses = elementwise.negative.apply(indexing.index.apply(x, key=right))
        return reduce_losses(losses, "nll_loss", reduction)
    rows = _ClassTargets("nll_loss", x.shape[dim], dim, classes, weight, ignore_index)
    return rows.reduce(rows.losses(x), reduction)


def _class_dim(x: Tensor, classes: Tensor, name: str) -> int:
    """Return the dimension of the classes; raise if `classes` doesn't have all other dimensions."""
    if x.ndim == 0:
        raise ShapeError(f"{name}: input has no dimension of classes: its shape is []")
    dim = min(x.ndim - 1, 1)
    expected = x.shape[:dim] + x.shape[dim + 1 :]
    if classes.dtype.kind not in "iu":
        swapped = classes.ndim > x.ndim
        mend = f"{name}(input, target) takes target last" if swapped else "convert it with .long()"
        raise DTypeError(
            f"{name}: expected integers in target, the number of the right class in each row, but "
            f"got {classes.dtype}: {mend}"
        )
    if classes.shape != expected:
        raise ShapeError(
            f"{name}: expected input batch_size ({x.shape[0]}) to match target: input has shape "
            f"{list(x.shape)}, so target must have {list(expected)}, but has {list(classes.shape)}"
            f"{_mend_of_target(x, classes, dim, expected)}"
        )
    return dim


def _mend_of_target(x: Tensor, classes: Tensor, dim: int, expected: tuple[int, ...]) -> str:
    """Return how a target becomes one of the expected shape, "" if that is unknown."""
    if classes.shape == x.shape and x.shape[dim] > 1:  # one-hot
        return f": write target.argmax({dim})"
    if classes.ndim == x.ndim and classes.size == math.prod(expected):
        return f": write target.reshape({', '.join(map(str, expected)) or '()'})"
    return ""


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


class _ClassTargets:
    """The right class of each row, the weights of the classes, and the mask of ignored rows."""

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
        ignored = numbers == whole_number(ignore_index, name, "ignore_index")
        self.kept: Any = None  # mask of the rows that are not ignored; None for all
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
            self.factors = self._masked(indexing.index.apply(weights, key=self.classes._array))
        return weights

    def _masked(self, x: Tensor) -> Tensor:
        return x if self.kept is None else elementwise.masked.apply(x, self.kept)

    def losses(self, x: Tensor) -> Tensor:
        """Return the losses: -`x` at the right classes, weighted."""
        self._weights(x)
        picked = ops.squeeze(
            ops.gather(x, self.dim, ops.unsqueeze(self.classes, self.dim)), self.dim
        )
        picked = ops.negative(self._masked(picked))
        return picked if self.factors is None else ops.multiply(picked, self.factors)

    def smoothed_losses(self, x: Tensor) -> Tensor:
        """Return the negative sum over all classes, weighted by class."""
        weights = self._weights(x)
        if weights is not None:
            shape = (1,) * self.dim + (self.count,) + (1,) * (x.ndim - self.dim - 1)
            x = ops.multiply(x, shaping.reshape.apply(weights, shape=shape))
        return self._masked(ops.negative(ops.sum(x, self.dim)))

    def reduce(self, losses: Tensor, reduction: str) -> Tensor:
        """Return the mean of the losses that are not ignored, their sum, or the losses."""
        if reduction != "mean" or (self.kept is None and self.factors is None):
            return reduce_losses(losses, self.name, reduction)
        total = ops.sum(losses)
        if self.factors is None:
            kept: Any = self.kept
            waits = namespace(kept).waits  # the number stays on the device
            return mean_from_sum(total, kept.sum() if waits else np.count_nonzero(kept))
        divisor = ops.sum(self.factors)
        if is_known(divisor._array) and divisor.item() == 0:
            return mean_from_sum(total, 0)
        return ops.divide(total, divisor)


def _all_valid(classes: Tensor, scores: Tensor, dim: int, ignore_index: int) -> bool:
    """Tell whether every target is a valid class and none is `ignore_index`, in one pass."""
    numbers = classes._array
    if ignore_index >= 0 or numbers.__class__ is not np.ndarray:
        return False
    if numbers.size == 0 or numbers.dtype != np.int64:
        return False
    top = np.maximum.reduce(
        numbers.view(np.uint64), axis=None
    )  # negative numbers become the largest
    return bool(top < scores.shape[dim])


def _check_classes(classes: Array, count: int, name: str) -> None:
    """Raise if a class is not in 0 … count - 1: indexing would accept negative ones."""
    outside = first_where((classes < 0) | (classes >= count), classes)
    if outside is not None:
        raise OutOfBoundsError(
            f"{name}: Target {outside} is out of bounds: the {count} classes have the numbers "
            f"0 to {count - 1}"
        )


def _cross_entropy_of_probabilities(
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
        terms = ops.multiply(terms, shaping.reshape.apply(weights, shape=shape))
    if reduction == "none":
        return ops.negative(ops.sum(terms, dim))
    total = ops.negative(ops.sum(terms))
    return total if reduction == "sum" else mean_from_sum(total, scores.numel() // max(count, 1))


# --- binary cross entropy -------------------------------------------------------------------------


@former_reduction("size_average reduce reduction")
def binary_cross_entropy(
    input: Operand, target: Operand, weight: Operand | None = None, *, reduction: str = "mean"
) -> Tensor:
    """Return the binary cross entropy of `target` for given probabilities.

    Parameters
    ----------
    input : Tensor
        Probabilities x, from 0 to 1.
    target : Tensor, shape of `input`
        The target probabilities: usually 0 or 1.
    weight : Tensor, optional
        Multiplies each loss; its shape broadcasts to that of `input`.
    reduction : {"mean", "sum", "none"}
        The reduction of the losses.

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
    _check_same_shape(
        x, y, "binary_cross_entropy", "Using a target size that is different to the input"
    )
    values = x._array
    known = values.size and is_known(values)
    if known and not (values.min() >= 0 and values.max() <= 1):
        raise ArgumentError(
            "binary_cross_entropy: all elements of input should be between 0 and 1, but they are "
            f"between {values.min()} and {values.max()}: for scores use "
            "binary_cross_entropy_with_logits"
        )
    losses = _binary_cross_entropy(x, y)
    return _reduce_elements(losses, weight, "binary_cross_entropy", reduction)


@errstate(divide="ignore")
def _binary_cross_entropy(x: Tensor, y: Tensor) -> Tensor:
    losses: Tensor = losses_primitives.binary_cross_entropy.apply(x, y)
    return losses


@former_reduction("size_average reduce reduction pos_weight")
def binary_cross_entropy_with_logits(
    input: Operand,
    target: Operand,
    weight: Operand | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Operand | None = None,
) -> Tensor:
    """Return the binary cross entropy of `target` for scores, whose sigmoid is the probability.

    Parameters
    ----------
    input : Tensor
        Scores (logits) x.
    target : Tensor, shape of `input`
        The target probabilities: usually 0 or 1.
    weight : Tensor, optional
        Multiplies each loss; its shape broadcasts to that of `input`.
    reduction : {"mean", "sum", "none"}
        The reduction of the losses.
    pos_weight : Tensor, optional
        Weights of the positive class; the shape broadcasts to that of `input`.

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
    max(x, 0) - x y + log(1 + exp(-|x|)): without overflow, and precise for small losses.
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
    _check_same_shape(x, y, name, "Target size must be the same as input size")
    if pos_weight is None:
        losses = losses_primitives.binary_cross_entropy_with_logits.apply(x, y)
    else:
        settings = {"beta": 1.0, "threshold": np.inf}
        yes = activations.softplus.apply(ops.negative(x), **settings)
        no = activations.softplus.apply(x, **settings)
        yes = ops.multiply(ops.multiply(yes, cast(floating(pos_weight), x.dtype)), y)
        losses = ops.add(yes, ops.multiply(no, ops.subtract(1.0, y)))
    return _reduce_elements(losses, weight, name, reduction)


def _check_same_shape(x: Tensor, y: Tensor, name: str, text: str) -> None:
    if x.shape != y.shape:
        like = ": write target.reshape(input.shape)" if x.size == y.size else ""
        raise ShapeError(f"{name}: {text}: {list(y.shape)} and {list(x.shape)}{like}")


def _reduce_elements(losses: Tensor, weight: Operand | None, name: str, reduction: str) -> Tensor:
    if weight is not None:
        losses = ops.multiply(losses, cast(floating(weight), losses.dtype))
    return reduce_weighted(losses, None, name, reduction)
