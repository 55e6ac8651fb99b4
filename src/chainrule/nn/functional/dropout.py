"""Dropout of elements or entire channels at random."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import device_of, move
from chainrule.errors import ArgumentError, ShapeError
from chainrule.nn.functional.activations import apply_activation
from chainrule.primitives import elementwise
from chainrule.random.draw import draw

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "dropout",
    "alpha_dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
]

_SELU_FLOOR = -1.7580993408473766
"""Limit of selu(x) for x → -∞."""


def keep_mask(shape: tuple[int, ...], p: float, rng: Generator | None) -> Any:
    """Return a random mask that is True with probability 1 - p."""
    return draw(draw_keep_mask, rng, shape, p)


def draw_keep_mask(generator: Generator, shape: tuple[int, ...], p: float) -> Any:
    """Draw the mask from a generator; the number of random bits used depends on the draws."""
    count = math.prod(shape)
    # 16 random bits decide most elements; those in the bin that p divides are decided by a float.
    bins = generator.integers(0, 1 << 16, count, dtype=np.uint16)
    threshold, remainder = divmod(p * (1 << 16), 1.0)
    keep = bins >= int(threshold)
    if remainder:
        (split_bin,) = np.nonzero(bins == int(threshold))
        keep[split_bin] = generator.random(split_bin.size) >= remainder
    return keep.reshape(shape)


def dropout(
    input: Operand,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    rng: Generator | None = None,
) -> Tensor:
    """Return `input` with elements replaced by 0 at random, and the others scaled up.

    Parameters
    ----------
    input : Tensor
        Any shape.
    p : number, default 0.5
        The probability of each element to become 0.
    training : bool, default True
        If not, return `input` as it is.
    inplace : bool, default False
        Write the result over `input`, and return that.
    rng : numpy.random.Generator, optional
        The generator to draw from: the one that `manual_seed` seeds if left out.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ArgumentError
        If `p` is not a probability.

    Notes
    -----
    The other elements are multiplied by 1 / (1 - p), which preserves the expected value. The
    derivative is this factor, or 0 [1]_.

    References
    ----------
    .. [1] N. Srivastava, G. Hinton, A. Krizhevsky, I. Sutskever, R. Salakhutdinov, Journal of
       Machine Learning Research 15, 2014.

    Examples
    --------
    >>> import chainrule as cr
    >>> out = cr.nn.functional.dropout(cr.ones(1000), 0.75)
    >>> sorted(set(out.tolist()))
    [0.0, 4.0]
    """
    _check_probability("dropout", p)
    return _apply_dropout("dropout", input, p, training, inplace, rng, None)


def _check_probability(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: dropout probability has to be between 0 and 1, but got {p}")


def _constant(array: Any, like: Tensor) -> Tensor:
    return make(move(array, device_of(like._array)), None)


def _apply_dropout(
    name: str,
    input: Operand,
    p: float,
    training: bool,
    inplace: bool,
    rng: Generator | None,
    leading: int | None,
) -> Tensor:
    """Drop single elements; with `leading`, entire slices behind that number of dimensions."""

    def function(x: Tensor) -> Tensor:
        if not training or p == 0:
            return x
        factors = keep_mask(_mask_shape(x, leading), p, rng).astype(x.dtype)
        if p < 1:
            factors *= x.dtype.type(1 / (1 - p))
        return elementwise.multiply.apply(x, _constant(factors, x))

    return apply_activation(function, input, name, inplace and training and p > 0)


def _mask_shape(x: Tensor, leading: int | None) -> tuple[int, ...]:
    if leading is None:
        return x.shape
    return x.shape[:leading] + (1,) * (x.ndim - leading)


def alpha_dropout(
    input: Operand,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    rng: Generator | None = None,
) -> Tensor:
    """Return `input` with random elements replaced by the lower limit of `selu`.

    Parameters
    ----------
    input, p, inplace, rng
        As for `dropout`.
    training : bool, default False
        If not, return `input` as it is.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ArgumentError
        If `p` is not a probability.

    Notes
    -----
    The result is then scaled and shifted so that mean 0 and variance 1 are preserved [1]_.

    References
    ----------
    .. [1] G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, Self-normalizing neural networks,
       NIPS 2017.

    Examples
    --------
    >>> import chainrule as cr
    >>> out = cr.nn.functional.alpha_dropout(cr.zeros(1000), 0.5, training=True)
    >>> len(set(out.tolist()))
    2
    """
    _check_probability("alpha_dropout", p)
    return _alpha("alpha_dropout", input, p, training, inplace, rng, None)


def _alpha(
    name: str,
    input: Operand,
    p: float,
    training: bool,
    inplace: bool,
    rng: Generator | None,
    leading: int | None,
) -> Tensor:
    if not training or p == 0:
        return tensor_of(input)

    def function(x: Tensor) -> Tensor:
        if p == 1:
            return elementwise.multiply.apply(x, 0.0)
        keep = keep_mask(_mask_shape(x, leading), p, rng)
        scale = 1 / math.sqrt((_SELU_FLOOR * _SELU_FLOOR * p + 1) * (1 - p))
        factors = keep.astype(x.dtype) * x.dtype.type(scale)
        offsets = (~keep).astype(x.dtype) * x.dtype.type(_SELU_FLOOR * scale)
        offsets -= x.dtype.type(_SELU_FLOOR * scale * p)
        scaled = elementwise.multiply.apply(x, _constant(factors, x))
        return elementwise.add.apply(scaled, _constant(offsets, x))

    return apply_activation(function, input, name, inplace)


def feature_alpha_dropout(
    input: Operand,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    rng: Generator | None = None,
) -> Tensor:
    """Apply `alpha_dropout` to entire channels (dimension 1); the arguments are the same.

    Raises
    ------
    ShapeError
        If there is no dimension 1.

    Examples
    --------
    >>> import chainrule as cr
    >>> out = cr.nn.functional.feature_alpha_dropout(cr.zeros(2, 3, 4), 0.5, training=True)
    >>> bool((out == out[:, :, :1]).all())
    True
    """
    _check_probability("feature_alpha_dropout", p)
    if training and p > 0:
        _check_dims("feature_alpha_dropout", input, (2, math.inf))
    return _alpha("feature_alpha_dropout", input, p, training, inplace, rng, 2)


def _check_dims(name: str, input: Any, allowed: tuple[float, float]) -> None:
    ndim = np.ndim(input) if not isinstance(input, Tensor) else input.ndim
    low, high = allowed
    if not low <= ndim <= high:
        wanted = f"at least {low}" if math.isinf(high) else f"{low} or {high}"
        raise ShapeError(
            f"{name}: expected {wanted} dimensions, the channels before the others, but got {ndim}"
        )


def dropout1d(
    input: Operand,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    rng: Generator | None = None,
) -> Tensor:
    """Apply `dropout` to entire channels of shape (l,); the arguments are the same.

    Parameters
    ----------
    input : Tensor, shape (n, c, l) or (c, l)
        Such as the output of a one-dimensional convolution.

    Raises
    ------
    ShapeError
        If there are other dimensions.

    Examples
    --------
    >>> import chainrule as cr
    >>> out = cr.nn.functional.dropout1d(cr.ones(2, 3, 4))
    >>> bool((out == out[:, :, :1]).all())
    True
    """
    _check_probability("dropout1d", p)
    _check_dims("dropout1d", input, (2, 3))
    return _apply_dropout("dropout1d", input, p, training, inplace, rng, _array(input).ndim - 1)


def _array(input: Operand) -> Any:
    return input._array if isinstance(input, Tensor) else input


def dropout2d(
    input: Operand,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    rng: Generator | None = None,
) -> Tensor:
    """Apply `dropout` to entire channels of shape (h, w); the arguments are the same.

    Parameters
    ----------
    input : Tensor, shape (n, c, h, w), or (n, c, l)
        Such as the output of a two-dimensional convolution. With three dimensions, the first two
        are the batch and the channels, as in PyTorch. With two, of shape (n, c), single elements
        are dropped, and a warning says that `dropout` does this.

    Raises
    ------
    ShapeError
        If there are other dimensions.

    Examples
    --------
    >>> import chainrule as cr
    >>> out = cr.nn.functional.dropout2d(cr.ones(2, 3, 4, 5))
    >>> bool((out == out[:, :, :1, :1]).all())
    True
    """
    _check_probability("dropout2d", p)
    if _array(input).ndim == 2:
        warnings.warn(
            "dropout2d: got an input of 2 dimensions, whose channels are single elements: dropout "
            "does the same without this warning",
            UserWarning,
            stacklevel=user_stack_level(),
        )
    else:
        _check_dims("dropout2d", input, (3, 4))
    return _apply_dropout("dropout2d", input, p, training, inplace, rng, 2)


def dropout3d(
    input: Operand,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    rng: Generator | None = None,
) -> Tensor:
    """Apply `dropout` to entire channels of shape (d, h, w); the arguments are the same.

    Parameters
    ----------
    input : Tensor, shape (n, c, d, h, w) or (c, d, h, w)
        Such as the output of a three-dimensional convolution.

    Raises
    ------
    ShapeError
        If there are other dimensions.

    Examples
    --------
    >>> import chainrule as cr
    >>> out = cr.nn.functional.dropout3d(cr.ones(2, 3, 2, 2, 2))
    >>> bool((out == out[:, :, :1, :1, :1]).all())
    True
    """
    _check_probability("dropout3d", p)
    _check_dims("dropout3d", input, (4, 5))
    return _apply_dropout("dropout3d", input, p, training, inplace, rng, _array(input).ndim - 3)
