"""Losses: how far predictions are from what they should be."""

from __future__ import annotations

import warnings
from typing import Any

from chainrule import ops
from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.errors import DTypeError, ShapeError
from chainrule.nn.functional.reduction import reduced
from chainrule.ops import log_softmax

Array = Any

__all__ = ["mse_loss", "cross_entropy", "nll_loss"]


def mse_loss(input: Operand, target: Operand, *, reduction: str = "mean") -> Tensor:
    """Return the mean squared error.

    Parameters
    ----------
    input, target : Tensor, of one shape
        Predictions and what they should be.
    reduction : {"mean", "sum", "none"}
        What becomes of the squared differences.

    Returns
    -------
    Tensor, 0-d, or of the shape of `input` for "none"

    Raises
    ------
    ValueError
        If `reduction` is another word.

    Warns
    -----
    UserWarning
        If the shapes differ: they then broadcast, which is rarely meant.

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
    x, y = tensor_of(input), tensor_of(target)
    if x.shape != y.shape:
        warnings.warn(
            f"mse_loss: using a target size ({list(y.shape)}) that is different to the input size "
            f"({list(x.shape)}). This will likely lead to incorrect results due to broadcasting: "
            "reshape one of them, so that they have the same size.",
            UserWarning,
            stacklevel=2,
        )
    return reduced(ops.square(ops.subtract(x, y)), "mse_loss", reduction)


def cross_entropy(input: Operand, target: Operand, *, reduction: str = "mean") -> Tensor:
    """Return how improbable the classes in `target` are, given unnormalised scores.

    Parameters
    ----------
    input : Tensor, shape (n, c), or (c,), or (n, c, ...)
        A score (a logit) for each of c classes.
    target : Tensor of ints, shape (n,), or (), or (n, ...)
        The right class, from 0 to c - 1.
    reduction : {"mean", "sum", "none"}
        What becomes of the n losses.

    Returns
    -------
    Tensor, 0-d, or of the shape of `target` for "none"
        In nats: -log of the softmax of `input` at the right class.

    Raises
    ------
    ShapeError, DTypeError, IndexError, ValueError
        If shapes don't fit, `target` holds no integers or no class, or `reduction` is another word.

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
    scores, classes = tensor_of(input), tensor_of(target)
    dim = _class_dim(scores, classes, "cross_entropy")
    return _at_classes(log_softmax(scores, dim), classes, dim, "cross_entropy", reduction)


def nll_loss(input: Operand, target: Operand, *, reduction: str = "mean") -> Tensor:
    """Return the negative of what `input` holds at the classes in `target`.

    Parameters
    ----------
    input : Tensor, shape (n, c), or (c,), or (n, c, ...)
        Log-probabilities, as `log_softmax` gives them.
    target, reduction
        As for `cross_entropy`.

    Returns
    -------
    Tensor, 0-d, or of the shape of `target` for "none"

    Raises
    ------
    ShapeError, DTypeError, IndexError, ValueError
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
    x, classes = tensor_of(input), tensor_of(target)
    dim = _class_dim(x, classes, "nll_loss")
    return _at_classes(x, classes, dim, "nll_loss", reduction)


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


def _at_classes(x: Tensor, classes: Tensor, dim: int, name: str, reduction: str) -> Tensor:
    _check_classes(classes._array, x.shape[dim], name)
    chosen = ops.gather(x, dim, ops.unsqueeze(classes, dim))
    return reduced(ops.negative(ops.squeeze(chosen, dim)), name, reduction)


def _check_classes(classes: Array, count: int, name: str) -> None:
    """Raise if a class is not in 0 … count - 1: a negative one would count from the end."""
    outside = classes[(classes < 0) | (classes >= count)]
    if outside.size:
        raise IndexError(
            f"{name}: Target {outside[0]} is out of bounds: the {count} classes have the numbers "
            f"0 to {count - 1}"
        )
