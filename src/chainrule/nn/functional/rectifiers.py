"""Activations that are x itself on the right of 0, and something smaller on the left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chainrule import ops
from chainrule.arguments import RECORDERS, Operand, floating
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import ArgumentError, ShapeError
from chainrule.nn.functional.inplace import applied, writing
from chainrule.random.draw import uniform_array

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "relu",
    "relu_",
    "relu6",
    "leaky_relu",
    "leaky_relu_",
    "prelu",
    "rrelu",
    "rrelu_",
    "elu",
    "elu_",
    "selu",
    "selu_",
    "celu",
    "celu_",
]

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def relu(input: Operand, inplace: bool = False) -> Tensor:
    """Return max(x, 0), the rectified linear unit.

    Parameters
    ----------
    input : Tensor
        Real numbers x, of any shape. Integers become numbers of the default dtype, but for `relu`,
        `relu6`, `hardtanh` and `threshold`, which keep them if their bounds are whole.
    inplace : bool, default False
        Write the result over `input`, and return that.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: 1 where x > 0, else 0, also at 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.relu(cr.tensor([-1.0, 3.0]))
    tensor([0., 3.])
    """
    return applied(RECORDERS["relu"], input, "relu", inplace, RECORDERS["relu"])


def relu6(input: Operand, inplace: bool = False) -> Tensor:
    """Return min(max(x, 0), 6); the arguments are those of `relu`.

    Notes
    -----
    Derivative: 1 between 0 and 6, else 0, also at 0 and 6.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.relu6(cr.tensor([-1.0, 3.0, 9.0]))
    tensor([0., 3., 6.])
    """
    return applied(
        lambda x: RECORDERS["hardtanh"](x, low=0.0, high=6.0),
        input,
        "relu6",
        inplace,
        lambda x: ops.clamp(x, 0, 6),
    )


def leaky_relu(input: Operand, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else negative_slope · x.

    Parameters
    ----------
    input, inplace
        As for `relu`.
    negative_slope : number, default 0.01
        The slope on the left of 0.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: 1 where x > 0, else `negative_slope`, also at 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.leaky_relu(cr.tensor([-1.0, 3.0]), 0.5)
    tensor([-0.5000,  3.0000])
    """
    slope = float(negative_slope)
    return applied(lambda x: RECORDERS["leaky_relu"](x, slope=slope), input, "leaky_relu", inplace)


def prelu(input: Operand, weight: Operand) -> Tensor:
    """Return x where it is positive, else weight · x, where `weight` is learned.

    Parameters
    ----------
    input : Tensor
        Real numbers x, of any shape.
    weight : Tensor, one element, or shape (c,)
        The slope on the left of 0: one for all, or one for each of the c channels, which are
        dimension 1 of `input`.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ShapeError
        If there are not as many weights as channels.

    Notes
    -----
    Derivatives: for `input` 1 where x > 0, else the weight; for `weight` the sum of x ≤ 0 [1]_.

    References
    ----------
    .. [1] K. He, X. Zhang, S. Ren, J. Sun, Delving deep into rectifiers, ICCV 2015.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.prelu(cr.tensor([-1.0, 3.0]), cr.tensor(0.25))
    tensor([-0.2500,  3.0000])
    """
    x, slope = floating(input), floating(weight)
    if slope.ndim > 1:
        raise ShapeError(
            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
            f"{slope.ndim}: flatten it"
        )
    count = slope.numel()
    if count != 1:
        channels = x.shape[1] if x.ndim > 1 else 1
        if count != channels:
            raise ShapeError(
                f"prelu: Mismatch of parameter numbers and input channel size. Found parameter "
                f"numbers = {count} and channel size = {channels}: give one weight, or one for "
                "each channel (dimension 1 of input)"
            )
        slope = RECORDERS["reshape"](slope, shape=(count,) + (1,) * (x.ndim - 2))
    elif slope.ndim:
        slope = RECORDERS["reshape"](slope, shape=())
    positive = RECORDERS["greater"](x.detach(), 0.0)
    above = RECORDERS["masked"](x, positive)
    below = RECORDERS["masked"](x, RECORDERS["logical_not"](positive))
    return RECORDERS["add"](above, RECORDERS["multiply"](below, slope))


def rrelu(
    input: Operand,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    rng: Generator | None = None,
) -> Tensor:
    """Return x where it is positive, else a · x with a slope a that is random in training.

    Parameters
    ----------
    input, inplace
        As for `relu`.
    lower, upper : number, default 1/8 and 1/3
        In training a slope is drawn uniformly from this range for each element; else it is the
        middle of the range.
    training : bool, default False
        Whether to draw.
    rng : numpy.random.Generator, optional
        What to draw from: the generator that `manual_seed` seeds if left out.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ArgumentError
        If `lower` is above `upper`.

    Notes
    -----
    Derivative: 1 where x > 0, else the slope.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.rrelu(cr.tensor([-1.0, 3.0]), 0.25, 0.75)
    tensor([-0.5000,  3.0000])
    """
    if lower > upper:
        raise ArgumentError(
            "rrelu: Lower bound should be less than or equal to the upper bound, but got "
            f"lower={lower} and upper={upper}"
        )

    def function(x: Tensor) -> Tensor:
        if not training:
            return RECORDERS["leaky_relu"](x, slope=float(lower + upper) / 2)
        xp = namespace(x._array)
        slopes = uniform_array(x.shape, x.dtype, rng) * x.dtype.type(upper - lower)
        slopes = xp.asarray(slopes + x.dtype.type(lower))
        return RECORDERS["multiply"](
            x, make(xp.where(x._array > 0, slopes.dtype.type(1), slopes), None)
        )

    return applied(function, input, "rrelu", inplace)


def elu(input: Operand, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else alpha (exp x - 1).

    Parameters
    ----------
    input, inplace
        As for `relu`.
    alpha : number, default 1
        The result tends to -alpha on the left.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: 1 where x > 0, else alpha exp x, also at 0 [1]_.

    References
    ----------
    .. [1] D.-A. Clevert, T. Unterthiner, S. Hochreiter, Fast and accurate deep network learning by
       exponential linear units, ICLR 2016.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.elu(cr.tensor([-1.0, 3.0]))
    tensor([-0.6321,  3.0000])
    """
    return _exponential(input, "elu", float(alpha), 1.0, 1.0, inplace)


def _exponential(
    input: Operand, name: str, alpha: float, scale: float, rate: float, inplace: bool
) -> Tensor:
    return applied(
        lambda x: RECORDERS["elu"](x, alpha=alpha, scale=scale, rate=rate), input, name, inplace
    )


def selu(input: Operand, inplace: bool = False) -> Tensor:
    """Return a scaled `elu`, which keeps mean 0 and variance 1 from layer to layer.

    The arguments are those of `relu`.

    Notes
    -----
    1.0507… · elu(x, 1.6733…); the derivative follows [1]_.

    References
    ----------
    .. [1] G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, Self-normalizing neural networks,
       NIPS 2017.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.selu(cr.tensor([-1.0, 3.0]))
    tensor([-1.1113,  3.1521])
    """
    return _exponential(input, "selu", _SELU_ALPHA, _SELU_SCALE, 1.0, inplace)


def celu(input: Operand, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else alpha (exp(x / alpha) - 1): an `elu` without kink.

    Parameters
    ----------
    input, inplace
        As for `relu`.
    alpha : number, default 1
        The result tends to -alpha on the left. Not 0.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ArgumentError
        If `alpha` is 0.

    Notes
    -----
    Derivative: 1 where x > 0, else exp(x / alpha) [1]_.

    References
    ----------
    .. [1] J. T. Barron, Continuously differentiable exponential linear units, arXiv 1704.07483.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.celu(cr.tensor([-1.0, 3.0]), 2.0)
    tensor([-0.7869,  3.0000])
    """
    if alpha == 0:
        raise ArgumentError("celu: ZeroDivisionError: alpha cannot be 0 for CELU")
    alpha = float(alpha)
    return _exponential(input, "celu", alpha, 1.0, 1.0 / alpha, inplace)


relu_ = writing(relu)
leaky_relu_ = writing(leaky_relu)
rrelu_ = writing(rrelu)
elu_ = writing(elu)
selu_ = writing(selu)
celu_ = writing(celu)
