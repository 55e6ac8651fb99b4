"""Margin losses of distances, rankings and classes: zero outside of a margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, cast, floating, tensor_of
from chainrule.autograd.array_proxy import as_float
from chainrule.autograd.tensor import Tensor
from chainrule.backend import first_where, namespace
from chainrule.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError
from chainrule.nn.functional.linear import pairwise_distance
from chainrule.nn.functional.losses import check_reduction, former_reduction, pair, reduce_losses
from chainrule.nn.functional.losses_classification import binary_cross_entropy_with_logits
from chainrule.ops.wrappers import real_operands
from chainrule.primitives import activations, elementwise, indexing

__all__ = [
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "cosine_embedding_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
]


@former_reduction("size_average reduce reduction")
def hinge_embedding_loss(
    input: Operand, target: Operand, margin: float = 1.0, *, reduction: str = "mean"
) -> Tensor:
    """Return the mean of x where the target is 1, of max(0, margin - x) where it is -1.

    Parameters
    ----------
    input : Tensor
        Numbers x, usually distances.
    target : Tensor
        1 or -1 for each: their shapes broadcast.
    margin : number, default 1
        The x from which the loss is 0 where the target is -1.
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
    Derivative for "sum": 1 where the target is 1, -1 where it is -1 and x ≤ margin, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> F = cr.nn.functional
    >>> F.hinge_embedding_loss(cr.tensor([0.5, 0.25]), cr.tensor([1, -1]), reduction="none")
    tensor([0.5000, 0.7500])
    """
    x, y = pair(input, target)
    far = ops.clamp(ops.subtract(as_float(margin), x), min=0)
    near = elementwise.masked.apply(x, elementwise.not_equal.apply(y.detach(), -1.0))
    far = elementwise.masked.apply(far, elementwise.not_equal.apply(y.detach(), 1.0))
    return reduce_losses(ops.add(near, far), "hinge_embedding_loss", reduction)


@former_reduction("size_average reduce reduction")
def margin_ranking_loss(
    input1: Operand,
    input2: Operand,
    target: Operand,
    margin: float = 0.0,
    *,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of max(0, margin - target · (input1 - input2)).

    Parameters
    ----------
    input1, input2 : Tensor
        The numbers to rank.
    target : Tensor
        1 where `input1` should be the larger one, else -1. The three shapes broadcast, but have the
        same number of dimensions.
    margin : number, default 0
        The difference from which the loss is 0.
    reduction : {"mean", "sum", "none"}
        The reduction of the losses.

    Returns
    -------
    Tensor, 0-d, or of the broadcast shape for "none"

    Raises
    ------
    ShapeError
        If the numbers of dimensions differ.
    ArgumentError
        If `reduction` is another word.

    Notes
    -----
    Derivative for "sum": -target for `input1` where the loss is not cut off, also at the margin.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.margin_ranking_loss(cr.tensor([1.0]), cr.tensor([3.0]), cr.tensor([1]))
    tensor(2.)
    """
    first, second = pair(input1, input2)
    sign = cast(floating(target), first.dtype)
    if not first.ndim == second.ndim == sign.ndim:
        raise ShapeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {list(first.shape)}, input2: {list(second.shape)}, "
            f"target: {list(sign.shape)}"
        )
    gap = ops.multiply(sign, ops.subtract(first, second))
    losses = ops.clamp(ops.subtract(as_float(margin), gap), min=0)
    return reduce_losses(losses, "margin_ranking_loss", reduction)


@former_reduction("size_average reduce reduction")
def cosine_embedding_loss(
    input1: Operand,
    input2: Operand,
    target: Operand,
    margin: float = 0.0,
    *,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of 1 - cos where the target is 1, of max(0, cos - margin) where it is -1.

    Parameters
    ----------
    input1, input2 : Tensor, shape (n, d) or (d,)
        Vectors; cos is the cosine of the angle between two.
    target : Tensor, shape (n,) or ()
        1 or -1 for each pair.
    margin : number, default 0
        The cosine up to which the loss is 0 where the target is -1.
    reduction : {"mean", "sum", "none"}
        The reduction of the losses.

    Returns
    -------
    Tensor, 0-d, or of the shape of `target` for "none"

    Raises
    ------
    ShapeError
        If the shapes don't fit.
    ArgumentError
        If `reduction` is another word.

    Notes
    -----
    1e-12 is added to the squared lengths, so that the derivative at 0 is 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> x, y = cr.tensor([1.0, 0.0]), cr.tensor([1.0, 1.0])
    >>> cr.nn.functional.cosine_embedding_loss(x, y, cr.tensor(-1))
    tensor(0.7071)
    """
    (first, second), sign = pair(input1, input2), tensor_of(target)
    if sign.ndim > 1:
        raise ShapeError(
            "cosine_embedding_loss: 0D or 1D target tensor expected, multi-target not supported: "
            f"got {list(sign.shape)}"
        )
    if not first.ndim == second.ndim == sign.ndim + 1:
        raise ShapeError(
            f"cosine_embedding_loss: {sign.ndim}D target tensor expects {sign.ndim + 1}D input "
            f"tensors, but found inputs with sizes {list(first.shape)} and {list(second.shape)}."
        )

    def dot(x: Tensor, y: Tensor) -> Tensor:
        return ops.sum(ops.multiply(x, y), -1)

    lengths = ops.multiply(ops.add(dot(first, first), 1e-12), ops.add(dot(second, second), 1e-12))
    cosine = ops.divide(dot(first, second), ops.sqrt(lengths))
    alike, apart = ops.subtract(1.0, cosine), ops.clamp(ops.subtract(cosine, margin), min=0)
    constant = sign.detach()
    losses = ops.add(
        elementwise.masked.apply(alike, ops.eq(constant, 1)),
        elementwise.masked.apply(apart, ops.eq(constant, -1)),
    )
    return reduce_losses(losses, "cosine_embedding_loss", reduction)


@former_reduction("size_average reduce reduction")
def triplet_margin_loss(
    anchor: Operand,
    positive: Operand,
    negative: Operand,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of max(0, |anchor - positive| - |anchor - negative| + margin).

    Parameters
    ----------
    anchor, positive, negative : Tensor, shape (..., d)
        Vectors: the positive one should be nearer to the anchor. Their shapes broadcast.
    margin : number, default 1
        The difference of the distances from which the loss is 0.
    p, eps : number, default 2 and 1e-6
        As for `pairwise_distance`.
    swap : bool, default False
        Use the distance between positive and negative instead, if that is smaller.
    reduction : {"mean", "sum", "none"}
        The reduction of the losses.

    Returns
    -------
    Tensor, 0-d, or of the shape without the last dimension for "none"

    Raises
    ------
    ShapeError
        If the numbers of dimensions differ.
    ArgumentError
        If `reduction` is another word, or `margin` is not above 0.

    Notes
    -----
    The derivative is that of the distances where the loss is not cut off [1]_.

    References
    ----------
    .. [1] V. Balntas, E. Riba, D. Ponsa, K. Mikolajczyk, Learning local feature descriptors with
       triplets and shallow convolutional neural networks, BMVC 2016.

    Examples
    --------
    >>> import chainrule as cr
    >>> anchor, near, far = cr.zeros(1, 2), cr.ones(1, 2), cr.full((1, 2), 1.5)
    >>> cr.nn.functional.triplet_margin_loss(anchor, near, far)
    tensor(0.2929)
    """
    settings = (margin, swap, reduction, "triplet_margin_loss")
    vectors = (floating(anchor), floating(positive), floating(negative))
    return _triplet(vectors, lambda a, b: pairwise_distance(a, b, p, eps), *settings)


def triplet_margin_with_distance_loss(
    anchor: Operand,
    positive: Operand,
    negative: Operand,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return the `triplet_margin_loss` for a distance function of your own.

    Parameters
    ----------
    anchor, positive, negative, margin, swap, reduction
        As for `triplet_margin_loss`, with its errors.
    distance_function : callable, optional
        Takes two tensors and returns their distances: `pairwise_distance` if left out.

    Returns
    -------
    Tensor, 0-d, or of the shape of the distances for "none"

    Examples
    --------
    >>> import chainrule as cr
    >>> anchor, near, far = cr.zeros(1, 2), cr.ones(1, 2), cr.full((1, 2), 1.5)
    >>> cr.nn.functional.triplet_margin_with_distance_loss(
    ...     anchor, near, far, distance_function=lambda x, y: (x - y).abs().sum(-1), margin=3.0
    ... )
    tensor(2.)
    """
    settings = (margin, swap, reduction, "triplet_margin_with_distance_loss")
    vectors = (floating(anchor), floating(positive), floating(negative))
    return _triplet(vectors, distance_function or pairwise_distance, *settings)


def _triplet(
    vectors: tuple[Tensor, Tensor, Tensor],
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
    name: str,
) -> Tensor:
    anchor, positive, negative = vectors
    if margin <= 0:
        raise ArgumentError(f"{name}: margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(
            f"{name}: The anchor, positive, and negative tensors are expected to have the same "
            f"number of dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and "
            f"negative {negative.ndim}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    losses = ops.clamp(ops.add(ops.subtract(near, far), as_float(margin)), min=0)
    return reduce_losses(losses, name, reduction)


# --- margin losses of classes ---------------------------------------------------------------------


@former_reduction("size_average reduce reduction")
def multi_margin_loss(
    input: Operand,
    target: Operand,
    p: int = 1,
    margin: float = 1.0,
    weight: Operand | None = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    """Return the hinge loss of class scores, with a margin between the right and the other classes.

    Parameters
    ----------
    input : Tensor, shape (n, c) or (c,)
        A score x for each of c classes.
    target : Tensor of ints, shape (n,) or ()
        The right class y.
    p : {1, 2}
        The power of the terms.
    margin : number, default 1
        The difference of the scores from which a term is 0.
    weight : Tensor, shape (c,), optional
        Weights of the losses by class.
    reduction : {"mean", "sum", "none"}
        The reduction of the n losses.

    Returns
    -------
    Tensor, 0-d, or of the shape of `target` for "none"

    Raises
    ------
    ArgumentError
        If `p` is another number, or `reduction` is another word.
    ShapeError, DTypeError, OutOfBoundsError
        If shapes don't fit, or `target` is not of integers or out of range.

    Notes
    -----
    Σ max(0, margin - x_y + x_i)ᵖ / c over the classes i ≠ y. The derivative of terms that are 0 is
    0, also at the margin.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.multi_margin_loss(cr.tensor([[0.5, 1.0, -2.0]]), cr.tensor([1]))
    tensor(0.1667)
    """
    name = "multi_margin_loss"
    if p not in (1, 2):
        raise ArgumentError(f"{name}: only p == 1 and p == 2 supported, but got {p}")
    x, classes = _vector_or_matrix(name, input), tensor_of(target)
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
    excess = ops.relu(ops.add(ops.subtract(x, right), as_float(margin)))
    others = namespace(numbers).arange(count) != numbers[..., None]
    excess = elementwise.masked.apply(excess if p == 1 else ops.square(excess), others)
    losses = ops.reshape(ops.divide(ops.sum(excess, -1), count), classes.shape)
    if weight is not None:
        factors = cast(floating(weight), x.dtype)
        if factors.shape != (count,):
            raise ShapeError(
                f"{name}: inconsistent weight size, expected {count} but got {list(factors.shape)}"
            )
        losses = ops.multiply(losses, indexing.index.apply(factors, key=classes._array))
    return reduce_losses(losses, name, reduction)


def _vector_or_matrix(name: str, input: Operand) -> Tensor:
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
    """Return the hinge loss of class scores with several right classes and a margin of 1.

    Parameters
    ----------
    input : Tensor, shape (n, c) or (c,)
        A score x for each of c classes.
    target : Tensor of ints, shape of `input`
        The right classes of each row, up to the first -1.
    reduction : {"mean", "sum", "none"}
        The reduction of the n losses.

    Returns
    -------
    Tensor, 0-d, or of the shape of `input` without the last dimension for "none"

    Raises
    ------
    ShapeError, DTypeError, OutOfBoundsError, ArgumentError
        If the shapes differ, `target` is not of integers or out of range, or `reduction` is another
        word.

    Notes
    -----
    Σ max(0, 1 - x_j + x_i) / c over the right classes j and all other classes i. It needs memory
    for c² numbers a row.

    Examples
    --------
    >>> import chainrule as cr
    >>> scores, right = cr.tensor([0.1, 0.2, 0.4, 0.8]), cr.tensor([3, 0, -1, 1])
    >>> cr.nn.functional.multilabel_margin_loss(scores, right)
    tensor(0.8500)
    """
    name = "multilabel_margin_loss"
    x, classes = _vector_or_matrix(name, input), tensor_of(target)
    if classes.dtype.kind not in "iu":
        raise DTypeError(f"{name}: expected integers in target, but got {classes.dtype}")
    if classes.ndim == 0:
        classes = ops.reshape(classes, (1,))
    if classes.shape != x.shape:
        raise ShapeError(
            f"{name}: inconsistent target size: {list(classes.shape)} for input of size: "
            f"{list(x.shape)}"
        )
    xp = namespace(classes._array)
    listed = xp.cumprod(classes._array != -1, axis=-1).astype(bool)
    numbers = xp.where(listed, classes._array, xp.zeros_like(classes._array))
    _check_labels(name, numbers, x.shape[-1], "target is out of range")
    classes_listed = xp.where(listed, numbers, numbers[..., :1])
    right = (classes_listed[..., None] == xp.arange(x.shape[-1])).any(axis=-2) & listed[..., :1]
    scores = ops.unsqueeze(ops.gather(x, -1, tensor_of(numbers)), -1)
    excess = ops.relu(ops.add(ops.subtract(ops.unsqueeze(x, -2), scores), 1.0))
    excess = elementwise.masked.apply(excess, listed[..., None] & ~right[..., None, :])
    return reduce_losses(ops.divide(ops.sum(excess, (-2, -1)), x.shape[-1]), name, reduction)


@former_reduction("size_average reduce reduction")
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
        Weights of the terms by class.
    reduction : {"mean", "sum", "none"}
        The reduction of the losses.

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
    return reduce_losses(ops.mean(terms, -1), "multilabel_soft_margin_loss", reduction)


@former_reduction("size_average reduce reduction")
def soft_margin_loss(input: Operand, target: Operand, *, reduction: str = "mean") -> Tensor:
    """Return the mean of log(1 + exp(-target · input)), for targets 1 and -1.

    Parameters
    ----------
    input : Tensor
        Scores.
    target : Tensor
        1 or -1 for each: their shapes broadcast.
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
    Nothing overflows. Derivative for "sum": -target · sigmoid(-target · input).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.soft_margin_loss(cr.tensor([0.0, -1000.0]), cr.tensor([1, 1]))
    tensor(500.3466)
    """
    x, y = real_operands("soft_margin_loss", input, target)
    wrong = ops.negative(ops.multiply(x, y))
    losses = activations.softplus.apply(wrong, beta=1.0, threshold=np.inf)
    return reduce_losses(losses, "soft_margin_loss", reduction)
