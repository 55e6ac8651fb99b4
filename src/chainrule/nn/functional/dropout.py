"""Dropout: what is left out at random while training, element by element or channel by channel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import device_of, move
from chainrule.errors import ArgumentError, ShapeError
from chainrule.nn.functional.activations import applied
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

_SELU_FLOOR = -1.7580993408473766  # what selu tends to on the left


def kept(shape: tuple[int, ...], p: float, rng: Generator | None) -> Any:
    """Draw which elements stay: each with probability 1 - p."""
    return draw(drawn_kept, rng, shape, p)


def drawn_kept(generator: Generator, shape: tuple[int, ...], p: float) -> Any:
    """Draw the same from a generator; how many numbers that takes depends on them."""
    count = math.prod(shape)
    # 16 random bits say it of most elements; those in the one bin that p divides get 32 more.
    bins = generator.integers(0, 1 << 16, count, dtype=np.uint16)
    cut, rest = divmod(p * (1 << 16), 1.0)
    keep = bins >= int(cut)
    if rest:
        (divided,) = np.nonzero(bins == int(cut))
        keep[divided] = generator.random(divided.size) >= rest
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
        What to draw from: the generator that `manual_seed` seeds if left out.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ArgumentError
        If `p` is no probability.

    Notes
    -----
    The others are multiplied by 1 / (1 - p), so that the expected value stays. That, or 0, is also
    the derivative [1]_.

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
    return _dropped("dropout", input, p, training, inplace, rng, None)


def _check_probability(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: dropout probability has to be between 0 and 1, but got {p}")


def _constant(array: Any, like: Tensor) -> Tensor:
    return make(move(array, device_of(like._array)), None)


def _dropped(
    name: str,
    input: Operand,
    p: float,
    training: bool,
    inplace: bool,
    rng: Generator | None,
    leading: int | None,
) -> Tensor:
    """Drop elements; or, if `leading` is a number, what lies behind so many dimensions together."""

    def function(x: Tensor) -> Tensor:
        if not training or p == 0:
            return x
        factors = kept(_drawn_shape(x, leading), p, rng).astype(x.dtype)
        if p < 1:
            factors *= x.dtype.type(1 / (1 - p))
        return elementwise.multiply.apply(x, _constant(factors, x))

    return applied(function, input, name, inplace and training and p > 0)


def _drawn_shape(x: Tensor, leading: int | None) -> tuple[int, ...]:
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
    """Return `input` with elements replaced by the floor of `selu` at random.

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
        If `p` is no probability.

    Notes
    -----
    The result is then scaled and shifted so that mean 0 and variance 1 stay what they are [1]_.

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
        keep = kept(_drawn_shape(x, leading), p, rng)
        scale = 1 / math.sqrt((_SELU_FLOOR * _SELU_FLOOR * p + 1) * (1 - p))
        factors = keep.astype(x.dtype) * x.dtype.type(scale)
        offsets = (~keep).astype(x.dtype) * x.dtype.type(_SELU_FLOOR * scale)
        offsets -= x.dtype.type(_SELU_FLOOR * scale * p)
        scaled = elementwise.multiply.apply(x, _constant(factors, x))
        return elementwise.add.apply(scaled, _constant(offsets, x))

    return applied(function, input, name, inplace)


def feature_alpha_dropout(
    input: Operand,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    rng: Generator | None = None,
) -> Tensor:
    """Do `alpha_dropout` to whole channels, which are dimension 1; the arguments are the same.

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
    """Do `dropout` to whole channels of shape (l,); the arguments are the same.

    Parameters
    ----------
    input : Tensor, shape (n, c, l) or (c, l)
        What comes out of a one-dimensional convolution.

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
    return _dropped("dropout1d", input, p, training, inplace, rng, np.ndim(_array(input)) - 1)


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
    """Do `dropout` to whole channels of shape (h, w); the arguments are the same.

    Parameters
    ----------
    input : Tensor, shape (n, c, h, w), or (n, c, l)
        What comes out of a two-dimensional convolution; of three dimensions the first two are taken
        for the batch and the channels, as in PyTorch.

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
    _check_dims("dropout2d", input, (3, 4))
    return _dropped("dropout2d", input, p, training, inplace, rng, 2)


def dropout3d(
    input: Operand,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    rng: Generator | None = None,
) -> Tensor:
    """Do `dropout` to whole channels of shape (d, h, w); the arguments are the same.

    Parameters
    ----------
    input : Tensor, shape (n, c, d, h, w) or (c, d, h, w)
        What comes out of a three-dimensional convolution.

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
    return _dropped("dropout3d", input, p, training, inplace, rng, np.ndim(_array(input)) - 3)
