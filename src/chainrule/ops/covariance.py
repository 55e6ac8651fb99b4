"""Covariance and correlation of variables."""

from __future__ import annotations

import math

from chainrule.arguments import RECORDERS, Operand, cast, floating, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.backend import holds_somewhere
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.ops.diagonals import diagonal
from chainrule.ops.kinks import clamp
from chainrule.ops.matmul import matmul
from chainrule.ops.reductions import mean, sum
from chainrule.ops.wrappers import reshaped

__all__ = ["cov", "corrcoef"]


def cov(
    input: Operand,
    *,
    correction: int = 1,
    fweights: Operand | None = None,
    aweights: Operand | None = None,
) -> Tensor:
    """Return the covariances of variables, which are the rows of a matrix.

    Parameters
    ----------
    input : Tensor, shape (variables, observations) or (observations,)
        Integers are taken as numbers of the default dtype.
    correction : int, default 1
        What is subtracted from the number of observations: 1 for a sample, 0 for a population.
    fweights : Tensor of integers, shape (observations,), optional
        How often each observation was made.
    aweights : Tensor, shape (observations,), optional
        How much each observation counts.

    Returns
    -------
    Tensor, shape (variables, variables); 0-d of one variable

    Raises
    ------
    ShapeError
        If there are more dimensions, or the weights don't fit.
    DTypeError, ArgumentError
        If `fweights` are no integers, or weights are negative.

    Notes
    -----
    The sum of conjugated products of deviations from the mean, divided by the sum of weights w less
    the correction (times Σ w a / Σ w for `aweights` a). Differentiable to every order, also by the
    `aweights`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cov(cr.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    input = floating(input)
    if input.ndim > 2:
        raise ShapeError(
            f"cov(): expected input to have two or fewer dimensions but got {input.ndim}"
        )
    rows = RECORDERS["reshape"](input, shape=(1, input.numel())) if input.ndim < 2 else input
    weights = _weights(rows, fweights=fweights, aweights=aweights)
    if weights is None:
        centred = RECORDERS["subtract"](rows, mean(rows, 1, True))
        scaled, freedom = centred, rows.shape[1] - correction
        product = matmul(scaled, RECORDERS["conj"](centred).mT)
        return _squeezed(RECORDERS["multiply"](product, 1 / freedom if freedom > 0 else math.inf))
    total = sum(weights)
    middle = RECORDERS["divide"](sum(RECORDERS["multiply"](rows, weights), 1, True), total)
    centred = RECORDERS["subtract"](rows, middle)
    if aweights is None or correction == 0:
        divisor = RECORDERS["subtract"](total, correction)
    else:
        squares = sum(RECORDERS["multiply"](weights, cast(tensor_of(aweights), weights.dtype)))
        lost = RECORDERS["divide"](RECORDERS["multiply"](squares, correction), total)
        divisor = RECORDERS["subtract"](total, lost)
    product = matmul(RECORDERS["multiply"](centred, weights), RECORDERS["conj"](centred).mT)
    return _squeezed(RECORDERS["divide"](product, clamp(divisor, min=0)))


def _weights(rows: Tensor, **given: Operand | None) -> Tensor | None:
    """Return the product of the weights of observations, of those that are given."""
    weights = None
    for name, value in given.items():
        if value is None:
            continue
        found = tensor_of(value)
        if found.shape != rows.shape[1:]:
            raise ShapeError(
                f"cov(): expected {name} to have the same numel as there are observations in the "
                f"input: {rows.shape[1]}, but got shape {list(found.shape)}"
            )
        if name == "fweights" and found.dtype.kind not in "iu":
            raise DTypeError(
                f"cov(): expected fweights to have integral dtype but got {found.dtype}: how often "
                "each observation was made. aweights takes other numbers"
            )
        if holds_somewhere(found._array < 0):
            raise ArgumentError(f"cov(): {name} cannot be negative")
        found = cast(found, RECORDERS["abs"](rows.detach()).dtype)
        weights = found if weights is None else RECORDERS["multiply"](weights, found)
    return weights


def _squeezed(x: Tensor) -> Tensor:
    return reshaped(x, ()) if x.shape == (1, 1) else x


def corrcoef(input: Operand) -> Tensor:
    """Return the correlations of variables, which are the rows of a matrix.

    Parameters
    ----------
    input : Tensor, shape (variables, observations) or (observations,)
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape (variables, variables); 0-d of one variable
        From -1 to 1; nan where a variable is constant.

    Raises
    ------
    ShapeError
        If there are more dimensions.

    Notes
    -----
    Covariances divided by both standard deviations.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.corrcoef(cr.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    pairs = cov(input)
    if pairs.ndim == 0:
        return RECORDERS["divide"](pairs, pairs)
    spread = RECORDERS["sqrt"](diagonal(pairs))
    across = RECORDERS["reshape"](spread, shape=(-1, 1))
    ratio = RECORDERS["divide"](RECORDERS["divide"](pairs, across), spread)
    return ratio if ratio.dtype.kind == "c" else clamp(ratio, -1, 1)
