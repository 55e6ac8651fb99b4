"""Losses of distances that are content with a margin: beyond it nothing is to be gained."""

from __future__ import annotations

from collections.abc import Callable

from chainrule import ops
from chainrule.arguments import RECORDERS, Operand, cast, floating, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.nn.functional.reduction import pair, reduced
from chainrule.nn.functional.similarity import pairwise_distance

__all__ = [
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "cosine_embedding_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


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
        How large x should be where the target is -1.
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
    Derivative for "sum": 1 where the target is 1, -1 where it is -1 and x ≤ margin, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> F = cr.nn.functional
    >>> F.hinge_embedding_loss(cr.tensor([0.5, 0.25]), cr.tensor([1, -1]), reduction="none")
    tensor([0.5000, 0.7500])
    """
    x, y = pair(input, target)
    far = ops.clamp(ops.subtract(float(margin), x), min=0)
    near = RECORDERS["masked"](x, RECORDERS["not_equal"](y.detach(), -1.0))
    far = RECORDERS["masked"](far, RECORDERS["not_equal"](y.detach(), 1.0))
    return reduced(ops.add(near, far), "hinge_embedding_loss", reduction)


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
        What is ranked.
    target : Tensor
        1 where `input1` should be the larger one, else -1. The three shapes broadcast, but have the
        same number of dimensions.
    margin : number, default 0
        By how much it should be larger.
    reduction : {"mean", "sum", "none"}
        What becomes of the losses.

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
    losses = ops.clamp(ops.subtract(float(margin), gap), min=0)
    return reduced(losses, "margin_ranking_loss", reduction)


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
        Which cosine is low enough where the target is -1.
    reduction : {"mean", "sum", "none"}
        What becomes of the losses.

    Returns
    -------
    Tensor, 0-d, or of the shape of `target` for "none"

    Raises
    ------
    ShapeError
        If the shapes are others.
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
        RECORDERS["masked"](alike, ops.eq(constant, 1)),
        RECORDERS["masked"](apart, ops.eq(constant, -1)),
    )
    return reduced(losses, "cosine_embedding_loss", reduction)


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
        By how much.
    p, eps : number, default 2 and 1e-6
        As for `pairwise_distance`.
    swap : bool, default False
        Take the distance between the positive and the negative one if that is the smaller.
    reduction : {"mean", "sum", "none"}
        What becomes of the losses.

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
    """Return the `triplet_margin_loss` of distances that a function of yours measures.

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
    losses = ops.clamp(ops.add(ops.subtract(near, far), float(margin)), min=0)
    return reduced(losses, name, reduction)
