"""Activation functions: softmax and gates, smooth functions, rectifiers, piecewise linear ones."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec

import numpy as np

from chainrule import ops
from chainrule.arguments import DTypeLike, Operand, cast, floating, one_dim, tensor_of
from chainrule.autograd.array_proxy import as_float
from chainrule.autograd.inplace import in_place
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import device_of, move, namespace
from chainrule.creation import ones_like
from chainrule.errors import ArgumentError, ArgumentTypeError, ShapeError
from chainrule.ops import clamp, where
from chainrule.ops.wrappers import real_floating
from chainrule.primitives import activations, elementwise, indexing, shaping
from chainrule.random.draw import draw, uniform_array

if TYPE_CHECKING:
    from numpy.random import Generator

P = ParamSpec("P")

__all__ = [
    "softmax",
    "log_softmax",
    "softmin",
    "gumbel_softmax",
    "glu",
    "sigmoid",
    "tanh",
    "gelu",
    "silu",
    "mish",
    "softplus",
    "softsign",
    "logsigmoid",
    "tanhshrink",
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
    "hardtanh",
    "hardtanh_",
    "hardsigmoid",
    "hardswish",
    "hardshrink",
    "softshrink",
    "threshold",
    "threshold_",
]

# --- softmax and gated linear units ---------------------------------------------------------------


def softmax(
    input: Operand, dim: int | None = None, *, axis: int | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Return exp x, divided by its sum along a dimension.

    Parameters
    ----------
    input : Tensor
        Exponents x: integers are taken as numbers of the default dtype.
    dim : int
        The dimension along which the result sums to 1. Also spelled `axis`. Without it, that of
        PyTorch's early versions, where there are several with a warning: 0 for 0, 1 and 3
        dimensions, otherwise 1.
    dtype : dtype, optional
        Convert to this first.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: diag s - s sᵀ, where s is the result. Nothing overflows.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.softmax(cr.tensor([1000.0, 1000.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    dim = _implicit_dim("softmax", input) if dim is None and axis is None else dim
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
    dim = _implicit_dim("log_softmax", input) if dim is None and axis is None else dim
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
    dim = _implicit_dim("softmin", input) if dim is None and axis is None else dim
    x = cast(floating(input), dtype)
    return softmax(elementwise.negative.apply(x), dim, axis=axis)


def _implicit_dim(name: str, input: Operand) -> int:
    """Return the dimension that PyTorch chooses, where several are possible with a warning."""
    ndim = tensor_of(input).ndim
    if ndim > 1:
        warnings.warn(
            f"{name}: the choice of dim={0 if ndim == 3 else 1} for {ndim} dimensions is "
            "deprecated, as in PyTorch: say dim=",
            UserWarning,
            stacklevel=user_stack_level(),
        )
    return 0 if ndim in (0, 1, 3) else 1


def gumbel_softmax(
    logits: Operand,
    tau: float = 1.0,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
    *,
    rng: Generator | None = None,
) -> Tensor:
    """Return random weights along a dimension: a differentiable approximation of drawing a class.

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
        The dimension of the classes.
    rng : numpy.random.Generator, optional
        The generator to draw from: the one that `manual_seed` seeds if left out.

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
    noisy = elementwise.add.apply(x, make(noise, None))
    weights = softmax(elementwise.divide.apply(noisy, as_float(tau)), dim)
    if not hard or x.ndim == 0:
        return weights
    constant = weights.detach()
    chosen = ops.argmax(constant, dim, keepdim=True)
    one = indexing.add_along_axis.apply(
        ones_like(chosen, dtype=x.dtype), chosen, shape=x.shape, axis=dim
    )
    return elementwise.add.apply(one, elementwise.subtract.apply(weights, constant))


def glu(input: Operand, dim: int = -1) -> Tensor:
    """Return a · sigmoid(b), where a and b are the halves of `input` along a dimension.

    Parameters
    ----------
    input : Tensor, shape (..., 2n, ...)
        Real numbers.
    dim : int, default -1
        The dimension to halve, of even length.

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
    a, b = shaping.split.apply(x, axis=axis, sizes=(length // 2, length // 2))
    return elementwise.multiply.apply(a, elementwise.sigmoid.apply(b))


# --- in-place variants ----------------------------------------------------------------------------


def apply_activation(
    function: Callable[[Tensor], Tensor],
    x: Operand,
    name: str,
    inplace: bool = False,
    on_integers: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Return ``function(x)``, written to the memory of `x` if `inplace`.

    Integers are converted to floats, unless `on_integers` is given, which is applied to them.
    """
    if not inplace:
        if x.__class__ is Tensor and x._array.dtype.kind == "f":
            return function(x)
        return _on_floats(function, on_integers, x)
    if not isinstance(x, Tensor):
        raise ArgumentTypeError(
            f"{name}: inplace=True writes to a Tensor, but got {type(x).__name__}"
        )
    return in_place(x, f"{name}_", lambda t: _on_floats(function, on_integers, t))


def _on_floats(
    function: Callable[[Tensor], Tensor], on_integers: Callable[[Tensor], Tensor] | None, x: Operand
) -> Tensor:
    x = tensor_of(x)
    if on_integers is not None and x._array.dtype.kind in "iu":
        return on_integers(x)
    return function(floating(x))


def in_place_variant(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Return the in-place variant of a function, whose name ends in an underscore."""
    call: Callable[..., Tensor] = function

    def method(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        return call(*args, inplace=True, **kwargs)

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__module__ = function.__module__
    method.__doc__ = f"Do `{function.__name__}` in place."
    return method


# --- smooth activations ---------------------------------------------------------------------------


def sigmoid(input: Operand) -> Tensor:
    """Return 1 / (1 + exp(-x)).

    Parameters
    ----------
    input : Tensor
        Numbers x, of any shape. Integers become numbers of the default dtype.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: out (1 - out).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.sigmoid(cr.tensor([0.0, -1000.0]))
    tensor([0.5000, 0.0000])
    """
    return elementwise.sigmoid.apply(floating(input))


def tanh(input: Operand) -> Tensor:
    """Return the hyperbolic tangent; the argument is that of `sigmoid`.

    Notes
    -----
    Derivative: 1 - out².

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.tanh(cr.tensor([0.0, 1000.0]))
    tensor([0., 1.])
    """
    return elementwise.tanh.apply(floating(input))


def silu(input: Operand, inplace: bool = False) -> Tensor:
    """Return x · sigmoid(x), also called swish.

    Parameters
    ----------
    input : Tensor
        Real numbers x, of any shape. Integers become numbers of the default dtype.
    inplace : bool, default False
        Write the result over `input`, and return that.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: s + x s (1 - s), where s is the sigmoid of x [1]_.

    References
    ----------
    .. [1] S. Elfwing, E. Uchibe, K. Doya, Neural Networks 107, 2018.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.silu(cr.tensor([-1.0, 3.0]))
    tensor([-0.2689,  2.8577])
    """
    return apply_activation(
        lambda x: elementwise.multiply.apply(x, elementwise.sigmoid.apply(x)),
        input,
        "silu",
        inplace,
    )


def mish(input: Operand, inplace: bool = False) -> Tensor:
    """Return x · tanh(softplus(x)); the arguments are those of `silu`.

    Notes
    -----
    Derivative: t + x (1 - t²) sigmoid(x), where t = tanh(softplus(x)) [1]_.

    References
    ----------
    .. [1] D. Misra, Mish: a self regularized non-monotonic activation function, BMVC 2020.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.mish(cr.tensor([-1.0, 3.0]))
    tensor([-0.3034,  2.9865])
    """
    return apply_activation(activations.mish.apply, input, "mish", inplace)


def gelu(input: Operand, approximate: str = "none") -> Tensor:
    """Return x · Φ(x), where Φ is the distribution function of the standard normal.

    Parameters
    ----------
    input : Tensor
        Real numbers x, of any shape. Integers become numbers of the default dtype.
    approximate : {"none", "tanh"}
        "tanh" takes 1/2 + tanh(√(2/π) (x + 0.044715 x³)) / 2 for Φ, which is off by up to 5e-4.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ArgumentError
        If `approximate` is another word.

    Notes
    -----
    Derivative: Φ(x) + x φ(x), where φ is the density [1]_. In single precision Φ is off by up to
    2e-7.

    References
    ----------
    .. [1] D. Hendrycks, K. Gimpel, Gaussian error linear units, arXiv 1606.08415.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.gelu(cr.tensor([-1.0, 3.0]))
    tensor([-0.1587,  2.9960])
    >>> cr.nn.functional.gelu(cr.tensor([-1.0, 3.0]), approximate="tanh")
    tensor([-0.1588,  2.9964])
    """
    if approximate == "tanh":
        return activations.gelu_tanh.apply(floating(input))
    if approximate != "none":
        raise ArgumentError(
            f"gelu: approximate argument must be either none or tanh, but got {approximate!r}"
        )
    return activations.gelu.apply(floating(input))[0]


def softplus(input: Operand, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return log(1 + exp(beta x)) / beta, a smooth `relu`.

    Parameters
    ----------
    input : Tensor
        Real numbers x, of any shape. Integers become numbers of the default dtype.
    beta : number, default 1
        Sharpness of the bend at 0.
    threshold : number, default 20
        The value of beta x above which the result is x itself.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: sigmoid(beta x), and 1 above the threshold. Nothing overflows.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.softplus(cr.tensor([-1000.0, 0.0, 1000.0]))
    tensor([0.0000e+00, 6.9315e-01, 1.0000e+03])
    """
    x = real_floating(input, "softplus")
    return activations.softplus.apply(x, beta=as_float(beta), threshold=as_float(threshold))


def logsigmoid(input: Operand) -> Tensor:
    """Return log sigmoid(x), precise where that is tiny or near 1; the argument is `sigmoid`'s.

    Notes
    -----
    Derivative: sigmoid(-x) = 1 - exp(out).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.logsigmoid(cr.tensor([-1000.0, 0.0]))
    tensor([-1.0000e+03, -6.9315e-01])
    """
    return activations.logsigmoid.apply(floating(input))


def softsign(input: Operand) -> Tensor:
    """Return x / (1 + |x|); the argument is that of `sigmoid`.

    Notes
    -----
    Derivative: 1 / (1 + |x|)².

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.softsign(cr.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    x = floating(input)
    if x.is_complex():  # |x| has a derivative of its own
        return ops.divide(x, ops.add(ops.abs(x), 1))
    return activations.softsign.apply(x)


def tanhshrink(input: Operand) -> Tensor:
    """Return x - tanh(x); the argument is that of `sigmoid`.

    Notes
    -----
    Derivative: tanh(x)².

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.tanhshrink(cr.tensor([-1.0, 3.0]))
    tensor([-0.2384,  2.0049])
    """
    x = floating(input)
    return elementwise.subtract.apply(x, elementwise.tanh.apply(x))


# --- rectifiers: the identity for x > 0 -----------------------------------------------------------

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def relu(input: Operand, inplace: bool = False) -> Tensor:
    """Return max(x, 0), the rectified linear unit.

    Parameters
    ----------
    input : Tensor
        Real numbers x, of any shape. Integers become numbers of the default dtype, but for `relu`,
        `relu6`, `hardtanh` and `threshold`, which keep them if their bounds are integers.
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
    return apply_activation(elementwise.relu.apply, input, "relu", inplace, elementwise.relu.apply)


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
    return apply_activation(
        lambda x: activations.hardtanh.apply(x, low=0.0, high=6.0),
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
        The slope for x < 0.

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
    slope = as_float(negative_slope)
    return apply_activation(
        lambda x: activations.leaky_relu.apply(x, slope=slope), input, "leaky_relu", inplace
    )


def prelu(input: Operand, weight: Operand) -> Tensor:
    """Return x where it is positive, else weight · x, where `weight` is learned.

    Parameters
    ----------
    input : Tensor
        Real numbers x, of any shape.
    weight : Tensor, one element, or shape (c,)
        The slope for x < 0: one for all, or one for each of the c channels (dimension 1 of
        `input`).

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
        slope = shaping.reshape.apply(slope, shape=(count,) + (1,) * (x.ndim - 2))
    elif slope.ndim:
        slope = shaping.reshape.apply(slope, shape=())
    positive = elementwise.greater.apply(x.detach(), 0.0)
    above = elementwise.masked.apply(x, positive)
    below = elementwise.masked.apply(x, elementwise.logical_not.apply(positive))
    return elementwise.add.apply(above, elementwise.multiply.apply(below, slope))


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
        The generator to draw from: the one that `manual_seed` seeds if left out.

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
            return activations.leaky_relu.apply(x, slope=float(lower + upper) / 2)
        xp = namespace(x._array)
        slopes = uniform_array(x.shape, x.dtype, rng) * x.dtype.type(upper - lower)
        slopes = xp.asarray(slopes + x.dtype.type(lower))
        return elementwise.multiply.apply(
            x, make(xp.where(x._array > 0, slopes.dtype.type(1), slopes), None)
        )

    return apply_activation(function, input, "rrelu", inplace)


def elu(input: Operand, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else alpha (exp x - 1).

    Parameters
    ----------
    input, inplace
        As for `relu`.
    alpha : number, default 1
        The result tends to -alpha for x → -∞.

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
    return _elu_family(input, "elu", as_float(alpha), 1.0, 1.0, inplace)


def _elu_family(
    input: Operand, name: str, alpha: float, scale: float, rate: float, inplace: bool
) -> Tensor:
    return apply_activation(
        lambda x: activations.elu.apply(x, alpha=alpha, scale=scale, rate=rate),
        input,
        name,
        inplace,
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
    return _elu_family(input, "selu", _SELU_ALPHA, _SELU_SCALE, 1.0, inplace)


def celu(input: Operand, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else alpha (exp(x / alpha) - 1): `elu` with slope 1 at 0.

    Parameters
    ----------
    input, inplace
        As for `relu`.
    alpha : number, default 1
        The result tends to -alpha for x → -∞. Not 0.

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
    alpha = as_float(alpha)
    return _elu_family(input, "celu", alpha, 1.0, 1.0 / alpha, inplace)


relu_ = in_place_variant(relu)
leaky_relu_ = in_place_variant(leaky_relu)
rrelu_ = in_place_variant(rrelu)
elu_ = in_place_variant(elu)
selu_ = in_place_variant(selu)
celu_ = in_place_variant(celu)


# --- piecewise linear activations and thresholds --------------------------------------------------


def hardtanh(
    input: Operand, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Return x, limited to the range from `min_val` to `max_val`.

    Parameters
    ----------
    input, inplace
        As for `relu`.
    min_val, max_val : number, default -1 and 1
        The bounds.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ArgumentError
        If `min_val` is above `max_val`.

    Notes
    -----
    Derivative: 1 inside, 0 outside and at the bounds (where that of `clamp` is 1).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.hardtanh(cr.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ArgumentError(
            f"hardtanh: min_val cannot be greater than max_val, but got {min_val} and {max_val}"
        )
    low, high = as_float(min_val), as_float(max_val)
    return apply_activation(
        lambda x: activations.hardtanh.apply(x, low=low, high=high),
        input,
        "hardtanh",
        inplace,
        (lambda x: clamp(x, int(low), int(high))) if _are_integral(low, high) else None,
    )


def _are_integral(*bounds: float) -> bool:
    return all([float(bound).is_integer() for bound in bounds])


def hardsigmoid(input: Operand, inplace: bool = False) -> Tensor:
    """Return min(max(x + 3, 0), 6) / 6; the arguments are those of `relu`.

    Notes
    -----
    Derivative: 1/6 between -3 and 3, else 0, also at both.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.hardsigmoid(cr.tensor([-9.0, 0.0, 9.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    def function(x: Tensor) -> Tensor:
        shifted = activations.hardtanh.apply(elementwise.add.apply(x, 3.0), low=0.0, high=6.0)
        return elementwise.divide.apply(shifted, 6.0)

    return apply_activation(function, input, "hardsigmoid", inplace)


def hardswish(input: Operand, inplace: bool = False) -> Tensor:
    """Return x · min(max(x + 3, 0), 6) / 6; the arguments are those of `relu`.

    Notes
    -----
    Derivative: 0 up to -3 (there too), x/3 + 1/2, and 1 from 3 on [1]_.

    References
    ----------
    .. [1] A. Howard et al., Searching for MobileNetV3, ICCV 2019.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.hardswish(cr.tensor([-9.0, 1.0, 9.0]))
    tensor([-0.0000, 0.6667, 9.0000])
    """
    return apply_activation(activations.hardswish.apply, input, "hardswish", inplace)


def hardshrink(input: Operand, lambd: float = 0.5) -> Tensor:
    """Return x where it is farther than `lambd` from 0, else 0.

    Parameters
    ----------
    input : Tensor
        Real numbers x, of any shape.
    lambd : number, default 0.5
        Up to this magnitude numbers become 0.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: 1 where |x| > `lambd`, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.hardshrink(cr.tensor([-2.0, 0.25, 0.75]))
    tensor([-2.0000,  0.0000,  0.7500])
    """
    x = floating(input)
    small = elementwise.less_equal.apply(elementwise.abs.apply(x.detach()), as_float(lambd))
    return elementwise.masked.apply(x, elementwise.logical_not.apply(small))


def softshrink(input: Operand, lambd: float = 0.5) -> Tensor:
    """Return x shrunk towards 0 by `lambd`, and 0 where |x| is smaller than that.

    Parameters
    ----------
    input : Tensor
        Real numbers x, of any shape.
    lambd : number, default 0.5
        The shrinkage; not negative.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ArgumentError
        If `lambd` is negative.

    Notes
    -----
    Derivative: 1 where |x| > `lambd`, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.softshrink(cr.tensor([-2.0, 0.25, 0.75]))
    tensor([-1.5000,  0.0000,  0.2500])
    """
    if lambd < 0:
        raise ArgumentError(
            f"softshrink: lambda must be greater or equal to 0, but found to be {lambd}"
        )
    x = floating(input)
    near = elementwise.clamp.apply(x, low=-as_float(lambd), high=as_float(lambd))
    return elementwise.subtract.apply(x, near)


def threshold(input: Operand, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return x where it is above `threshold`, else `value`.

    Parameters
    ----------
    input, inplace
        As for `relu`.
    threshold, value : number
        The threshold, and the value of the result elsewhere.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: 1 where x > `threshold`, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.threshold(cr.tensor([-1.0, 3.0]), 0.5, 9.0)
    tensor([9., 3.])
    """

    def function(x: Tensor) -> Tensor:
        low = elementwise.less_equal.apply(x.detach(), as_float(threshold))
        kept = elementwise.masked.apply(x, elementwise.logical_not.apply(low))
        if not math.isfinite(value):
            return where(low, as_float(value), kept)
        if value == 0:
            return kept
        filling = elementwise.multiply.apply(
            elementwise.astype.apply(low, dtype=x.dtype), as_float(value)
        )
        return elementwise.add.apply(kept, filling)

    def of_integers(x: Tensor) -> Tensor:
        return where(x > threshold, x, int(value))

    on_integers = of_integers if _are_integral(value) else None
    return apply_activation(function, input, "threshold", inplace, on_integers)


hardtanh_ = in_place_variant(hardtanh)
threshold_ = in_place_variant(threshold)
