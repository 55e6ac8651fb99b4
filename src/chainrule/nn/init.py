"""Initial values of parameters: functions that fill a tensor in place, unrecorded."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.arguments import tensor_of
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.linalg import qr
from chainrule.missing_names import missing
from chainrule.random import normal as draw_normal  # `normal` was the name of `normal_`
from chainrule.random import rand, randperm
from chainrule.special import erfinv

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_GAINS: dict[str, float] = {
    **dict.fromkeys(
        [
            "linear",
            "conv1d",
            "conv2d",
            "conv3d",
            "conv_transpose1d",
            "conv_transpose2d",
            "conv_transpose3d",
            "sigmoid",
        ],
        1.0,
    ),
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that keeps the variance of activations after a nonlinearity.

    Parameters
    ----------
    nonlinearity : str
        The name of a function of `nn.functional`: linear, a convolution, sigmoid, tanh, relu,
        leaky_relu or selu.
    param : number, optional
        The negative slope of leaky_relu, 0.01 by default.

    Raises
    ------
    ArgumentError
        For another name.

    Examples
    --------
    >>> calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity == "leaky_relu":
        if isinstance(param, bool) or not isinstance(param, int | float | None):
            raise ArgumentError(f"negative_slope {param!r} not a valid number")
        return math.sqrt(2 / (1 + (0.01 if param is None else float(param)) ** 2))
    if nonlinearity not in _GAINS:
        known = ", ".join([*_GAINS, "leaky_relu"])
        raise ArgumentError(f"Unsupported nonlinearity {nonlinearity!r}: expected one of {known}")
    return _GAINS[nonlinearity]


def _is_empty(tensor: Tensor) -> bool:
    """Return whether there is nothing to fill, with PyTorch's warning."""
    if 0 in tensor.shape:
        warnings.warn(
            f"Initializing zero-element tensors is a no-op: the shape is {list(tensor.shape)}",
            stacklevel=user_stack_level(),
        )
    return 0 in tensor.shape


def _fans(tensor: Tensor, name: str) -> tuple[int, int]:
    """Return the numbers of inputs and of outputs of one unit."""
    if tensor.ndim < 2:
        raise ShapeError(
            f"{name}: Fan in and fan out can not be computed for tensor with fewer than 2 "
            f"dimensions, got shape {list(tensor.shape)}"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    return _fans(tensor, "_calculate_fan_in_and_fan_out")  # code of users calls it


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    return _fan(tensor, mode, "_calculate_correct_fan")  # code of users calls it


def _fan(tensor: Tensor, mode: str, name: str) -> int:
    modes = ("fan_in", "fan_out")
    if str(mode).lower() not in modes:
        raise ArgumentError(f"{name}: Mode {mode} not supported, please use one of {modes}")
    return _fans(tensor, name)[modes.index(mode.lower())]


@no_grad()
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with draws from the uniform distribution on [a, b); return the tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> uniform_(cr.empty(3), -0.5, 0.5).abs().max() <= 0.5
    tensor(True)
    """
    drawn = rand(*tensor.shape, dtype=tensor.dtype, device=tensor.device, rng=generator)
    return tensor.copy_(drawn.mul_(b - a).add_(a))


@no_grad()
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with draws from the normal distribution; return the tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> normal_(cr.empty(2, 3), 5.0, 0.0)[0]
    tensor([5., 5., 5.])
    """
    return tensor.normal_(mean, std, rng=generator)


@no_grad()
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with draws from the normal distribution within [a, b]; return the tensor.

    Notes
    -----
    Draws are the inverse of the distribution function at uniform draws between its values at `a`
    and `b`.

    Examples
    --------
    >>> import chainrule as cr
    >>> trunc_normal_(cr.empty(100), std=3.0).abs().max() <= 2
    tensor(True)
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_: the distribution of "
            "values may be incorrect",
            stacklevel=2,
        )
    low, high = (math.erf((edge - mean) / (std * math.sqrt(2))) for edge in (a, b))
    drawn = rand(*tensor.shape, dtype="float64", device=tensor.device, rng=generator)
    values = erfinv(drawn * (high - low) + low) * (std * math.sqrt(2)) + mean
    return tensor.copy_(values.clamp(a, b))


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with a number; return the tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> constant_(cr.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones; return the tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> ones_(cr.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros; return the tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> zeros_(cr.ones(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity; return the tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> eye_(cr.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise ShapeError(f"eye_: Only tensors with 2 dimensions are supported, got {tensor.ndim}")
    return tensor.copy_(tensor_of(np.eye(*tensor.shape, dtype=tensor.dtype)))


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it preserves its channels; return the tensor.

    Parameters
    ----------
    tensor : Tensor, shape (out_channels, in_channels / groups, *kernel), of 3 to 5 dimensions
        As many channels as possible are preserved.
    groups : int, default 1
        The groups of the convolution.

    Examples
    --------
    >>> import chainrule as cr
    >>> dirac_(cr.empty(1, 1, 3))
    tensor([[[0., 1., 0.]]])
    """
    if not 3 <= tensor.ndim <= 5:
        raise ShapeError(
            f"dirac_: Only tensors with 3, 4, or 5 dimensions are supported, got {tensor.ndim}"
        )
    if tensor.shape[0] % groups:
        raise ArgumentError(f"dirac_: dim 0 ({tensor.shape[0]}) must be divisible by {groups}")
    values = np.zeros(tensor.shape, tensor.dtype)
    center = tuple(size // 2 for size in tensor.shape[2:])
    per_group = tensor.shape[0] // groups
    for group in range(groups):
        for d in range(min(per_group, tensor.shape[1])):
            values[(group * per_group + d, d, *center)] = 1
    return tensor.copy_(tensor_of(values))


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with uniform draws of variance 2 gain² / (fan_in + fan_out); return the tensor.

    Notes
    -----
    X. Glorot, Y. Bengio, Understanding the difficulty of training deep feedforward neural
    networks, AISTATS 2010.

    Examples
    --------
    >>> import chainrule as cr
    >>> xavier_uniform_(cr.empty(3, 3)).abs().max() <= 1
    tensor(True)
    """
    bound = gain * math.sqrt(6 / max(sum(_fans(tensor, "xavier_uniform_")), 1))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal draws of variance 2 gain² / (fan_in + fan_out); return the tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> xavier_normal_(cr.empty(3, 3), gain=0.0)[0]
    tensor([0., 0., 0.])
    """
    std = gain * math.sqrt(2 / max(sum(_fans(tensor, "xavier_normal_")), 1))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with uniform draws of variance gain² / fan; return the tensor.

    Parameters
    ----------
    tensor : Tensor, of 2 dimensions or more
        The weight.
    a : number, default 0
        The negative slope, of leaky_relu.
    mode : {'fan_in', 'fan_out'}
        Keep the variance in the forward or in the backward pass.
    nonlinearity : str, default 'leaky_relu'
        What follows, as for `calculate_gain`.
    generator : Generator, optional
        Draws the values.

    Notes
    -----
    K. He, X. Zhang, S. Ren, J. Sun, Delving deep into rectifiers, ICCV 2015.

    Examples
    --------
    >>> import chainrule as cr
    >>> kaiming_uniform_(cr.empty(3, 6)).abs().max() <= 1
    tensor(True)
    """
    if _is_empty(tensor):
        return tensor
    fan = _fan(tensor, mode, "kaiming_uniform_")
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3 / fan)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal draws of variance gain² / fan; return the tensor.

    The arguments are those of `kaiming_uniform_`.

    Examples
    --------
    >>> import chainrule as cr
    >>> kaiming_normal_(cr.empty(3, 6), mode="fan_out", nonlinearity="relu").shape
    (3, 6)
    """
    if _is_empty(tensor):
        return tensor
    fan = _fan(tensor, mode, "kaiming_normal_")
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(fan), generator)


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with a random (semi-)orthogonal matrix times a factor; return the tensor.

    Notes
    -----
    The matrix has as many rows as the first dimension. It is Q of the QR decomposition of a normal
    matrix, with the signs of R's diagonal, which makes it uniform (F. Mezzadri, How to generate
    random matrices from the classical compact groups, 2007).

    Examples
    --------
    >>> import chainrule as cr
    >>> w = orthogonal_(cr.empty(2, 3))
    >>> (w @ w.T).round(decimals=4).abs()
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndim < 2:
        raise ShapeError("orthogonal_: Only tensors with 2 or more dimensions are supported")
    if not tensor.numel():
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    shape = max(rows, columns), min(rows, columns)
    drawn: Any = draw_normal(0.0, 1.0, shape, rng=generator)
    q, r = qr(drawn)
    q = q * r.diagonal().sign()
    q = q.T if rows < columns else q
    return tensor.copy_(q.reshape(tensor.shape)).mul_(gain)


@no_grad()
def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Fill a matrix with normal draws, and a fraction of each column with zeros; return it.

    Notes
    -----
    J. Martens, Deep learning via Hessian-free optimization, ICML 2010.

    Examples
    --------
    >>> import chainrule as cr
    >>> (sparse_(cr.empty(10, 2), 0.3) == 0).sum(0)
    tensor([3, 3])
    """
    if tensor.ndim != 2:
        raise ShapeError(
            f"sparse_: Only tensors with 2 dimensions are supported, got {tensor.ndim}"
        )
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    normal_(tensor, 0.0, std, generator)
    for column in range(columns):
        tensor[randperm(rows, rng=generator)[:zeros], column] = 0
    return tensor


_FORMER = [
    "uniform",
    "normal",
    "constant",
    "eye",
    "dirac",
    "xavier_uniform",
    "xavier_normal",
    "kaiming_uniform",
    "kaiming_normal",
    "orthogonal",
    "sparse",
]


def __getattr__(name: str) -> Callable[..., Tensor]:
    """Return a function under its name of 2017, without the underscore."""
    if name not in _FORMER:
        raise missing(__name__, name)
    warnings.warn(
        f"nn.init.{name} is deprecated: write nn.init.{name}_",
        FutureWarning,
        stacklevel=user_stack_level(),
    )
    found: Callable[..., Tensor] = globals()[f"{name}_"]
    return found
