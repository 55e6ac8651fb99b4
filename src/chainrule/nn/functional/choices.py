"""Softmax and its kin, which weigh what lies along a dimension; and gates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chainrule import ops
from chainrule.arguments import RECORDERS, DTypeLike, Operand, cast, floating, one_dim
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import device_of, move, namespace
from chainrule.creation import ones_like
from chainrule.errors import ShapeError
from chainrule.random.draw import draw

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["softmax", "log_softmax", "softmin", "gumbel_softmax", "glu"]


def softmax(
    input: Operand, dim: int | None = None, *, axis: int | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Return exp x, divided by its sum along a dimension.

    Parameters
    ----------
    input : Tensor
        Exponents x: integers are taken as numbers of the default dtype.
    dim : int
        Along which dimension the result sums to 1. Also spelled `axis`. It can be left out where
        there is only one.
    dtype : dtype, optional
        Convert to this first.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    TypeError
        If `dim` is left out, and there are several dimensions.

    Notes
    -----
    Derivative: diag s - s sᵀ, where s is the result. Nothing overflows.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.softmax(cr.tensor([1000.0, 1000.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return ops.softmax(input, dim, axis=axis, dtype=dtype)


def log_softmax(
    input: Operand, dim: int | None = None, *, axis: int | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Return the logarithm of `softmax`, precise where that is tiny; the arguments are the same.

    Notes
    -----
    Derivative: I - 1 sᵀ, where s is the softmax.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.log_softmax(cr.tensor([0.0, 1000.0]), dim=0)
    tensor([-1000.,     0.])
    """
    return ops.log_softmax(input, dim, axis=axis, dtype=dtype)


def softmin(
    input: Operand, dim: int | None = None, *, axis: int | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Return the softmax of -x; the arguments are those of `softmax`.

    Notes
    -----
    Derivative: s sᵀ - diag s, where s is the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.softmin(cr.tensor([0.0, 1000.0]), dim=0)
    tensor([1., 0.])
    """
    x = cast(floating(input), dtype)
    return softmax(RECORDERS["negative"](x), dim, axis=axis)


def gumbel_softmax(
    logits: Operand,
    tau: float = 1.0,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
    *,
    rng: Generator | None = None,
) -> Tensor:
    """Return random weights along a dimension: a draw of one class, made differentiable.

    Parameters
    ----------
    logits : Tensor
        Logarithms of probabilities that need not sum to 1.
    tau : number, default 1
        The temperature: the nearer to 0, the nearer the weights are to 0 and 1.
    hard : bool, default False
        Return exactly 0 and 1; the gradient is still that of the weights.
    eps : number
        Has no effect, as in PyTorch.
    dim : int, default -1
        Along which dimension one class is drawn.
    rng : numpy.random.Generator, optional
        What to draw from: the generator that `manual_seed` seeds if left out.

    Returns
    -------
    Tensor, shape and dtype of `logits`
        It sums to 1 along `dim`.

    Notes
    -----
    softmax((logits + G) / tau), where the G are independent Gumbel variables [1]_. The derivative
    is that of the softmax.

    References
    ----------
    .. [1] E. Jang, S. Gu, B. Poole, Categorical reparameterization with Gumbel-softmax, ICLR 2017.

    Examples
    --------
    >>> import chainrule as cr
    >>> weights = cr.nn.functional.gumbel_softmax(cr.zeros(4, 3), hard=True)
    >>> weights.sum(-1)
    tensor([1., 1., 1., 1.])
    """
    x = floating(logits)
    dim = one_dim(dim, x.ndim)
    precision = np.float64 if x.dtype.itemsize > 4 else np.float32
    drawn = draw("standard_exponential", rng, x.shape, dtype=precision)
    noise = -np.log(drawn).astype(x.dtype, copy=False)
    noise = move(namespace(noise).asarray(noise), device_of(x._array))
    noisy = RECORDERS["add"](x, make(noise, None))
    weights = softmax(RECORDERS["divide"](noisy, float(tau)), dim)
    if not hard or x.ndim == 0:
        return weights
    constant = weights.detach()
    chosen = ops.argmax(constant, dim, keepdim=True)
    one = RECORDERS["add_along_axis"](
        ones_like(chosen, dtype=x.dtype), chosen, shape=x.shape, axis=dim
    )
    return RECORDERS["add"](one, RECORDERS["subtract"](weights, constant))


def glu(input: Operand, dim: int = -1) -> Tensor:
    """Return a · sigmoid(b), where a and b are the halves of `input` along a dimension.

    Parameters
    ----------
    input : Tensor, shape (..., 2n, ...)
        Real numbers.
    dim : int, default -1
        Which dimension to halve: of even length.

    Returns
    -------
    Tensor, shape (..., n, ...)

    Raises
    ------
    ShapeError
        If the length is odd, or there is no dimension.

    Notes
    -----
    Derivatives: sigmoid(b) for a, and out (1 - sigmoid(b)) for b [1]_.

    References
    ----------
    .. [1] Y. Dauphin, A. Fan, M. Auli, D. Grangier, Language modeling with gated convolutional
       networks, ICML 2017.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.glu(cr.tensor([3.0, 4.0, 0.0, 1000.0]))
    tensor([1.5000, 4.0000])
    """
    x = floating(input)
    if x.ndim == 0:
        raise ShapeError("glu: glu does not support 0-dimensional tensors")
    axis = one_dim(dim, x.ndim)
    length = x.shape[axis]
    if length % 2:
        raise ShapeError(
            f"glu: Halving dimension must be even, but dimension {axis} is size {length}"
        )
    a, b = RECORDERS["split"](x, axis=axis, sizes=(length // 2, length // 2))
    return RECORDERS["multiply"](a, RECORDERS["sigmoid"](b))
